// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Delivery of a function's interrupt: from the registers of its sources to an MSI.

use std::sync::Arc;

use crate::host::{Function, InterruptSink};
use crate::sync::{Condvar, IgnorePoison, Mutex, MutexGuard};

/// The interrupt registers of a function: which events are pending, enabled and masked.
pub trait Sources {
    /// Returns whether the function's interrupt is enabled. If not, [`Sources::settle`] returns false.
    fn enabled(&self) -> bool;

    /// Evaluates the registers after a change. Returns whether an MSI must be sent for it.
    fn settle(&mut self) -> bool;
}

/// The sources of a function's interrupt, changed by one thread at a time, and the MSI that results from a change.
pub struct Delivery<S> {
    function: Function,
    sink: Arc<dyn InterruptSink>,
    state: Mutex<State<S>>,
    /// Notified when the last MSI in flight has been sent.
    drained: Condvar,
}

struct State<S> {
    sources: S,
    /// Number of MSIs in flight to the sink.
    sending: u32,
    /// Number of threads that wait until no MSI is in flight.
    draining: u32,
}

impl<S> Delivery<S> {
    /// Creates the delivery of `function`. `sink` receives its MSI.
    pub fn new(function: Function, sink: Arc<dyn InterruptSink>, sources: S) -> Self {
        let state = Mutex::new(State { sources, sending: 0, draining: 0 });
        Delivery { function, sink, state, drained: Condvar::new() }
    }

    /// The function that is interrupted.
    pub fn function(&self) -> Function {
        self.function
    }

    /// Sends the function's MSI, whatever its sources.
    pub fn send(&self) {
        self.sink.raise(self.function, 0);
    }

    /// Reports a fatal error of the function.
    pub fn fatal_error(&self) {
        self.sink.fatal_error(self.function);
    }

    /// Returns what `look` finds in the sources. It may change them, as reads of some registers do, but not so that an
    /// MSI must be sent.
    pub fn with<T>(&self, access: impl FnOnce(&mut S) -> T) -> T {
        access(&mut self.state().sources)
    }

    fn state(&self) -> MutexGuard<'_, State<S>> {
        self.state.lock().ignore_poison()
    }
}

impl<S: Sources> Delivery<S> {
    /// Changes the sources, releases their lock, and sends the MSI that results from the change. A change that disables
    /// the interrupt waits for MSIs in flight, as a read from a PCIe device pushes its posted MSI writes: after it has
    /// returned, no MSI is sent. The sink must not block: deadlock.
    pub fn change(&self, change: impl FnOnce(&mut S)) {
        let mut state = self.state();
        let was_enabled = state.sources.enabled();
        change(&mut state.sources);
        if state.sources.settle() {
            state.sending = state.sending.saturating_add(1);
            drop(state);
            let _sending = Sending(self);
            self.send();
        } else if was_enabled && !state.sources.enabled() {
            state.draining = state.draining.saturating_add(1);
            while state.sending != 0 {
                state = self.drained.wait(state).ignore_poison();
            }
            state.draining = state.draining.saturating_sub(1);
        }
    }
}

/// An MSI in flight; completes on drop, also if the sink panics.
struct Sending<'a, S>(&'a Delivery<S>);

impl<S> Drop for Sending<'_, S> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.sending = state.sending.saturating_sub(1);
        if state.sending == 0 && state.draining != 0 {
            self.0.drained.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use super::*;

    /// A level: enabled, and an event that is pending until it is sent.
    #[derive(Default)]
    struct Level {
        enabled: bool,
        pending: bool,
    }

    impl Sources for Level {
        fn enabled(&self) -> bool {
            self.enabled
        }

        fn settle(&mut self) -> bool {
            let send = self.enabled && self.pending;
            self.pending &= !send;
            send
        }
    }

    /// A sink that takes an MSI only when the test meets it at the barrier.
    struct Slow {
        sent: AtomicU32,
        begun: Barrier,
    }

    impl InterruptSink for Slow {
        fn raise(&self, function: Function, vector: u16) {
            assert_eq!((function, vector), (Function(3), 0));
            self.begun.wait();
            std::thread::sleep(Duration::from_millis(20));
            self.sent.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_change_that_disables_waits_for_msis_in_flight() {
        let sink = Arc::new(Slow { sent: AtomicU32::new(0), begun: Barrier::new(2) });
        let delivery = Delivery::new(Function(3), sink.clone(), Level::default());
        delivery.change(|level| level.pending = true);
        assert_eq!(sink.sent.load(Ordering::SeqCst), 0, "it is not enabled");
        std::thread::scope(|scope| {
            scope.spawn(|| delivery.change(|level| level.enabled = true));
            sink.begun.wait();
            delivery.change(|level| level.enabled = false);
            assert_eq!(sink.sent.load(Ordering::SeqCst), 1, "the MSI has arrived");
        });
        delivery.change(|level| level.pending = true);
        assert_eq!((sink.sent.load(Ordering::SeqCst), delivery.with(|level| level.pending)), (1, true));
    }
}
