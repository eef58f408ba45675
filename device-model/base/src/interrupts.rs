// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Delivery of a function's interrupt: from the registers of its sources to an MSI and to the level of its pin.

use std::sync::Arc;

use crate::host::{Function, InterruptSink};
use crate::sync::{Condvar, IgnorePoison, Mutex, MutexGuard};

/// The interrupt registers of a function: which events are pending, enabled and masked.
pub trait Sources {
    /// Returns whether the function's interrupt is enabled. If not, [`Sources::settle`] returns false.
    fn enabled(&self) -> bool;

    /// Evaluates the registers after a change. Returns whether an MSI must be sent for it.
    fn settle(&mut self) -> bool;

    /// Returns the level of the function's pin after [`Sources::settle`]; never high for a function without a pin.
    fn level(&self) -> bool {
        false
    }
}

/// The sources of a function's interrupt, changed by one thread at a time, and the MSI that results from a change.
pub struct Delivery<S> {
    function: Function,
    sink: Arc<dyn InterruptSink>,
    state: Mutex<State<S>>,
    /// Notified when the last MSI in flight has been sent.
    drained: Condvar,
    /// The level of the pin that the sink has. Held while the sink gets another one, which orders the levels; locked before
    /// `state`.
    line: Mutex<bool>,
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
        Delivery { function, sink, state, drained: Condvar::new(), line: Mutex::new(false) }
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

    /// Reports that the ranges of BAR `bar` that may be mapped have changed. Must be called without locks held.
    pub fn mappings_changed(&self, bar: u8) {
        self.sink.mappings_changed(self.function, bar);
    }

    /// Returns what `look` finds in the sources. It may change them, as reads of some registers do, but not so that an
    /// MSI must be sent. A change of the level is passed on by [`Delivery::update_line`].
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
    /// returned, no MSI is sent. On return the sink has a level of the pin that is at least as recent as the change. The
    /// sink must not block: deadlock.
    pub fn change(&self, change: impl FnOnce(&mut S)) {
        let mut state = self.state();
        let (was_enabled, level_before) = (state.sources.enabled(), state.sources.level());
        change(&mut state.sources);
        let send = state.sources.settle();
        let level_changed = state.sources.level() != level_before;
        if send {
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
            drop(state);
        } else {
            drop(state);
        }
        if level_changed {
            self.update_line();
        }
    }

    /// Passes the level of the pin to the sink, if the sink has another one.
    pub fn update_line(&self) {
        let mut passed = self.line.lock().ignore_poison();
        let level = self.state().sources.level();
        if *passed != level {
            self.sink.set_line(self.function, level);
            *passed = level;
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

    /// A pin: the level is set by each change.
    struct Wire(bool);

    impl Sources for Wire {
        fn enabled(&self) -> bool {
            true
        }

        fn settle(&mut self) -> bool {
            false
        }

        fn level(&self) -> bool {
            self.0
        }
    }

    /// Records the levels of a pin.
    #[derive(Default)]
    struct Levels(Mutex<Vec<bool>>);

    impl InterruptSink for Levels {
        fn raise(&self, _: Function, _: u16) {}

        fn set_line(&self, function: Function, requested: bool) {
            assert_eq!(function, Function::PF);
            self.0.lock().unwrap().push(requested);
            std::thread::yield_now();
        }
    }

    #[test]
    fn the_sink_gets_each_new_level_once() {
        let sink = Arc::new(Levels::default());
        let delivery = Delivery::new(Function::PF, sink.clone(), Wire(false));
        for level in [false, true, true, false, true] {
            delivery.change(|wire| wire.0 = level);
        }
        delivery.with(|wire| wire.0 = false);
        assert_eq!(*sink.0.lock().unwrap(), [true, false, true]);
        delivery.update_line();
        assert_eq!(*sink.0.lock().unwrap(), [true, false, true, false]);
    }

    /// Levels do not overtake each other: after concurrent changes the sink has the level of the last one.
    #[test]
    fn the_last_level_is_that_of_the_sources() {
        for round in 0..50_usize {
            let sink = Arc::new(Levels::default());
            let delivery = Delivery::new(Function::PF, sink.clone(), Wire(false));
            std::thread::scope(|scope| {
                for n in 0..3_usize {
                    let delivery = &delivery;
                    scope.spawn(move || {
                        (0..40_usize).for_each(|i| delivery.change(|wire| wire.0 = (i + n + round).is_multiple_of(3)))
                    });
                }
            });
            let levels = sink.0.lock().unwrap();
            assert!(levels.iter().zip(levels.iter().skip(1)).all(|(before, after)| before != after), "{levels:?}");
            assert_eq!(levels.last().copied().unwrap_or(false), delivery.with(|wire| wire.0));
        }
    }

    /// A sink that takes an MSI only when the test meets it at the barrier.
    struct Slow {
        sent: AtomicU32,
        begun: Barrier,
    }

    impl InterruptSink for Slow {
        fn raise(&self, function: Function, vector: u16) {
            assert_eq!((function, vector), (Function::new(3).unwrap(), 0));
            self.begun.wait();
            std::thread::sleep(Duration::from_millis(20));
            self.sent.fetch_add(1, Ordering::SeqCst);
        }

        fn set_line(&self, _: Function, _: bool) {}
    }

    #[test]
    fn a_change_that_disables_waits_for_msis_in_flight() {
        let sink = Arc::new(Slow { sent: AtomicU32::new(0), begun: Barrier::new(2) });
        let delivery = Delivery::new(Function::new(3).unwrap(), sink.clone(), Level::default());
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
