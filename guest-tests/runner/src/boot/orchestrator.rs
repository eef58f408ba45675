// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Sequences a run in which several guests share the card. The PF guest boots first, the VF guests boot when their
//! functions are enabled, all VF guests work concurrently, and the VFs are disabled last.

use super::job;
use super::serial::Step;

/// A guest of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GuestId {
    /// The guest with the PF.
    Physical,
    /// The guest with this VF, numbered from 1.
    Virtual(u8),
}

/// An action for the run to carry out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Start this guest.
    Boot(GuestId),
    /// Start the work of all VF guests.
    Go,
    /// Make the VF guests end their work: the migrations are done.
    End,
    /// Make the PF guest disable the VFs and shut down.
    Finish,
    /// Terminate the VF guests: their functions no longer exist.
    Abandon,
}

/// Progress of one guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Absent,
    Running,
    Waiting,
    Over,
}

/// The state of a run with several guests.
#[derive(Debug)]
pub(super) struct Orchestrator {
    /// `None` if the card's server process provisions the VFs and no guest has the PF.
    physical: Option<State>,
    virtuals: Vec<State>,
    gone: bool,
}

impl Orchestrator {
    /// Creates the state of a run with `vfs` VF guests, and a PF guest if `held` is set.
    pub(super) fn new(held: bool, vfs: u8) -> Self {
        Self { physical: held.then_some(State::Absent), virtuals: vec![State::Absent; vfs.into()], gone: false }
    }

    /// Returns the initial orders.
    pub(super) fn begin(&mut self) -> Vec<Order> {
        match &mut self.physical {
            Some(state) => {
                *state = State::Running;
                vec![Order::Boot(GuestId::Physical)]
            }
            None => self.boot_virtuals(),
        }
    }

    /// Returns the orders that follow from `step` of the guest `id`.
    pub(super) fn advance(&mut self, id: GuestId, step: &Step) -> Vec<Order> {
        match (id, step) {
            (GuestId::Physical, Step::Enabled) => self.boot_virtuals(),
            (GuestId::Physical, Step::Mark(name)) if name == job::MIGRATED => vec![Order::End],
            (GuestId::Physical, Step::Ended) => {
                self.physical = Some(State::Over);
                match self.virtuals.iter().any(|state| matches!(state, State::Running | State::Waiting)) {
                    true => vec![Order::Abandon],
                    false => Vec::new(),
                }
            }
            (GuestId::Virtual(vf), Step::Waiting | Step::Ended) => {
                let state = if *step == Step::Ended { State::Over } else { State::Waiting };
                if let Some(known) = self.virtuals.get_mut(usize::from(vf).wrapping_sub(1)) {
                    *known = state;
                }
                self.go_or_finish()
            }
            _ => Vec::new(),
        }
    }

    /// Returns whether every started guest has ended and no further guest is to be started.
    pub(super) fn is_over(&self) -> bool {
        let ended = |state: &State| matches!(state, State::Over);
        let physical = self.physical.as_ref();
        physical.is_none_or(ended)
            && self.virtuals.iter().all(|state| ended(state) || physical.is_some() && *state == State::Absent)
    }

    fn boot_virtuals(&mut self) -> Vec<Order> {
        let absent = (1..).zip(self.virtuals.iter_mut()).filter(|(_, state)| **state == State::Absent);
        absent
            .map(|(number, state)| {
                *state = State::Running;
                Order::Boot(GuestId::Virtual(number))
            })
            .collect()
    }

    fn go_or_finish(&mut self) -> Vec<Order> {
        let all = |wanted: &[State]| self.virtuals.iter().all(|state| wanted.contains(state));
        let mut orders = Vec::new();
        if !self.gone && all(&[State::Waiting, State::Over]) && self.virtuals.contains(&State::Waiting) {
            self.gone = true;
            orders.push(Order::Go);
        }
        if all(&[State::Over]) && self.physical == Some(State::Running) {
            orders.push(Order::Finish);
        }
        orders
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use GuestId::*;
    use Order::*;

    #[test]
    fn four_guests_boot_work_and_end_in_order() {
        let mut orchestrator = Orchestrator::new(true, 3);
        assert_eq!(orchestrator.begin(), [Boot(Physical)]);
        assert_eq!(orchestrator.advance(Physical, &Step::Mark("before".into())), []);
        // The server rejects a client that connects before its function is enabled, so no VF guest is started earlier.
        assert_eq!(orchestrator.advance(Physical, &Step::Enabled), [1, 2, 3].map(|vf| Boot(Virtual(vf))));
        assert_eq!(orchestrator.advance(Virtual(2), &Step::Waiting), []);
        assert_eq!(orchestrator.advance(Virtual(1), &Step::Waiting), []);
        assert_eq!(orchestrator.advance(Virtual(3), &Step::Waiting), [Go]);
        assert_eq!(orchestrator.advance(Virtual(3), &Step::Ended), []);
        assert_eq!(orchestrator.advance(Physical, &Step::Mark(job::MIGRATED.into())), [End]);
        assert_eq!(orchestrator.advance(Virtual(1), &Step::Ended), []);
        assert_eq!(orchestrator.advance(Virtual(2), &Step::Ended), [Finish]);
        assert!(!orchestrator.is_over());
        assert_eq!(orchestrator.advance(Physical, &Step::Ended), []);
        assert!(orchestrator.is_over());
    }

    #[test]
    fn without_a_physical_guest_the_virtual_ones_start_at_once() {
        let mut orchestrator = Orchestrator::new(false, 2);
        assert_eq!(orchestrator.begin(), [Boot(Virtual(1)), Boot(Virtual(2))]);
        assert_eq!(orchestrator.advance(Virtual(1), &Step::Waiting), []);
        assert_eq!(orchestrator.advance(Virtual(2), &Step::Waiting), [Go]);
        assert_eq!(orchestrator.advance(Virtual(2), &Step::Ended), []);
        assert!(!orchestrator.is_over());
        assert_eq!(orchestrator.advance(Virtual(1), &Step::Ended), []);
        assert!(orchestrator.is_over());
    }

    #[test]
    fn lost_vf_guest_does_not_block_the_others() {
        let mut orchestrator = Orchestrator::new(true, 2);
        orchestrator.begin();
        orchestrator.advance(Physical, &Step::Enabled);
        assert_eq!(orchestrator.advance(Virtual(1), &Step::Waiting), []);
        assert_eq!(orchestrator.advance(Virtual(2), &Step::Ended), [Go]);
        assert_eq!(orchestrator.advance(Virtual(1), &Step::Ended), [Finish]);
        // All VF guests were lost before any was ready: no `Go` is issued.
        let mut orchestrator = Orchestrator::new(true, 1);
        orchestrator.begin();
        orchestrator.advance(Physical, &Step::Enabled);
        assert_eq!(orchestrator.advance(Virtual(1), &Step::Ended), [Finish]);
    }

    #[test]
    fn loss_of_the_pf_guest_ends_the_others() {
        let mut orchestrator = Orchestrator::new(true, 2);
        orchestrator.begin();
        orchestrator.advance(Physical, &Step::Enabled);
        orchestrator.advance(Virtual(1), &Step::Waiting);
        assert_eq!(orchestrator.advance(Physical, &Step::Ended), [Abandon]);
        orchestrator.advance(Virtual(1), &Step::Ended);
        orchestrator.advance(Virtual(2), &Step::Ended);
        assert!(orchestrator.is_over());
        // Lost before it enabled the VFs: no other guest was started.
        let mut orchestrator = Orchestrator::new(true, 2);
        orchestrator.begin();
        assert_eq!(orchestrator.advance(Physical, &Step::Ended), []);
        assert!(orchestrator.is_over());
    }
}
