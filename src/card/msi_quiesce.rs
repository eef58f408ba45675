// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Mutual exclusion between interrupt delivery and changes of the configuration that permits interrupts.

use std::sync::{Condvar, Mutex, MutexGuard};

use arctic_device_model::sync::IgnorePoison;

/// Serialises interrupts with configuration changes. An interrupt raised during a change does not block; it is deferred
/// until the change is complete. A change waits for interrupts that are already being sent.
#[derive(Default)]
pub struct MsiQuiesce {
    state: Mutex<State>,
    passed: Condvar,
}

#[derive(Default)]
struct State {
    /// Number of interrupts that are being sent.
    passing: u32,
    /// A change is in progress, or waits for `passing` to become 0.
    changing: bool,
    /// Vectors raised during the change, one bit each.
    held_back: u16,
}

impl MsiQuiesce {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().ignore_poison()
    }

    /// Runs `send` for an interrupt on `vector`. During a change the vector is recorded instead, and
    /// [`MsiQuiesce::change`] returns it.
    pub fn pass(&self, vector: u16, send: impl FnOnce()) {
        let mut state = self.state();
        if state.changing {
            state.held_back |= 1 << (vector & 15);
            return;
        }
        state.passing = state.passing.saturating_add(1);
        drop(state);
        let _passing = Passing(self);
        send();
    }

    /// Runs `change` while no interrupt is being sent. Returns its result and the vectors raised meanwhile, which the
    /// caller must raise again. Must not be called concurrently.
    pub fn change<T>(&self, change: impl FnOnce() -> T) -> (T, u16) {
        let mut state = self.state();
        state.changing = true;
        while state.passing != 0 {
            state = self.passed.wait(state).ignore_poison();
        }
        drop(state);
        let changing = Changing(self);
        let done = change();
        drop(changing);
        (done, std::mem::take(&mut self.state().held_back))
    }
}

/// Guard for an interrupt that is being sent. It is also dropped if the sink panics.
struct Passing<'a>(&'a MsiQuiesce);

impl Drop for Passing<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.passing = state.passing.saturating_sub(1);
        if state.passing == 0 && state.changing {
            self.0.passed.notify_all();
        }
    }
}

/// Guard for a change in progress.
struct Changing<'a>(&'a MsiQuiesce);

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        self.0.state().changing = false;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    /// An interrupt raised during a change does not block, and is returned when the change is complete.
    #[test]
    fn an_interrupt_during_a_change_is_held_back() {
        let gate = MsiQuiesce::default();
        let sent = AtomicU32::new(0);
        let send = |vector| {
            gate.pass(vector, || {
                sent.fetch_add(1, Ordering::SeqCst);
            })
        };
        let ((), held_back) = gate.change(|| {
            thread::scope(|scope| drop(scope.spawn(|| [0, 0, 3].map(send))));
            assert_eq!(sent.load(Ordering::SeqCst), 0);
        });
        assert_eq!(held_back, 0b1001);
        send(0);
        assert_eq!(sent.load(Ordering::SeqCst), 1);
        assert_eq!(gate.change(|| 5), (5, 0), "each vector is returned once");
    }

    /// A change begins when the last interrupt in progress has been sent, even if its sink panics.
    #[test]
    fn a_change_waits_for_what_is_on_its_way() {
        let gate = MsiQuiesce::default();
        let (begin, begun) = mpsc::channel();
        let (go_on, goes_on) = mpsc::channel::<()>();
        let sent = AtomicU32::new(0);
        let (gate, sent) = (&gate, &sent);
        thread::scope(|scope| {
            let sender = scope.spawn(move || {
                gate.pass(0, || {
                    begin.send(()).unwrap();
                    goes_on.recv().unwrap();
                    sent.fetch_add(1, Ordering::SeqCst);
                    panic!("a sink that fails");
                });
            });
            begun.recv().unwrap();
            let change = scope.spawn(|| gate.change(|| sent.load(Ordering::SeqCst)));
            while !gate.state().changing {
                thread::yield_now();
            }
            assert!(!change.is_finished());
            go_on.send(()).unwrap();
            assert_eq!(change.join().unwrap(), (1, 0));
            assert!(sender.join().is_err());
        });
    }
}
