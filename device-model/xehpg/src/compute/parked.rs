// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Walkers whose context has left its engine while a group was in flight (EU-070). The threads of the group are objects of the
//! host. The saved image of the context has a ticket for them.
//!
//! A ticket is used once and never again. It lies in memory of the guest, so it counts only with the function and the context
//! that it was given to: a forged or copied one finds nothing, and the walker is begun again at its group.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::report::{MOST_SAVED_BYTES, Room};
use super::run::{SavedRun, WalkerRun};
use super::time::EuRates;
use crate::host::Function;

/// Most parked walkers of a function. Beyond it a group runs to its end, and its context leaves the engine then.
pub(super) const MOST_OF_FUNCTION: usize = 64;
/// Most bytes of the host's memory that the parked walkers of a function take.
const MOST_BYTES_OF_FUNCTION: usize = 64 << 20;

/// The context that a walker belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Function of the context.
    pub function: Function,
    /// GGTT address of its PPHWSP.
    pub page: u32,
}

/// A walker of a context that is on no engine.
pub enum ParkedRun {
    /// As it has left the engine.
    Here(Box<WalkerRun>),
    /// Restored with its function.
    Restored(RestoredRun),
}

/// A walker that was restored with its function, and has not gone on since.
pub struct RestoredRun(Box<SavedRun>);

impl RestoredRun {
    /// Lets `run` go on with the group in flight, if it begins with a group of this shape. Otherwise the group is begun anew.
    pub fn go_on(self, run: &mut WalkerRun, rates: &EuRates) {
        run.restore(*self.0, rates);
    }
}

struct Parked {
    owner: Owner,
    ticket: u64,
    room: Room,
    /// `None` while the context leaves its engine: then it is only room that is taken.
    run: Option<ParkedRun>,
}

/// The parked walkers of a card. Its lock is held for no other one.
#[derive(Default)]
pub struct ParkedWalkers {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The last ticket that was given.
    last: u64,
    walkers: Vec<Parked>,
    /// Most bytes of the groups of a function when they are saved, of functions with less than [`MOST_SAVED_BYTES`].
    limits: BTreeMap<Function, usize>,
}

impl State {
    fn limit_of(&self, function: Function) -> usize {
        self.limits.get(&function).copied().unwrap_or(MOST_SAVED_BYTES)
    }

    /// Keeps a walker instead of the one that its context had.
    fn replace(&mut self, parked: Parked) {
        self.walkers.retain(|other| other.owner != parked.owner);
        self.walkers.push(parked);
    }
}

impl ParkedWalkers {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the most bytes of the groups of a function when they are saved, which has no parked walkers.
    pub fn limit(&self, function: Function, saved: usize) {
        let mut state = self.state();
        if saved < MOST_SAVED_BYTES {
            state.limits.insert(function, saved);
        } else {
            state.limits.remove(&function);
        }
    }

    /// The most bytes of the groups of a function when they are saved.
    pub(super) fn limit_of(&self, function: Function) -> usize {
        self.state().limit_of(function)
    }

    /// Takes this room for a walker of a context that is to leave its engine. Returns false if its function has none. Engines do
    /// this at the same time, so the room is taken before the context is saved; [`ParkedWalkers::park`] uses it, and whatever drops or
    /// takes the context's walker gives it back.
    pub fn reserve(&self, owner: Owner, room: Room) -> bool {
        let mut state = self.state();
        let limit = state.limit_of(owner.function);
        let own =
            state.walkers.iter().filter(|parked| parked.owner.function == owner.function && parked.owner != owner);
        let (count, taken) = own.fold((0_usize, room), |(n, sum), parked| (n.saturating_add(1), sum.plus(parked.room)));
        let has_room = count < MOST_OF_FUNCTION && taken.host <= MOST_BYTES_OF_FUNCTION && taken.saved <= limit;
        if has_room {
            state.replace(Parked { owner, ticket: 0, room, run: None });
        }
        has_room
    }

    /// Gives a ticket, for [`ParkedWalkers::park`].
    #[allow(clippy::arithmetic_side_effects, reason = "2^64 tickets are not given")]
    pub fn ticket(&self) -> u64 {
        let mut state = self.state();
        state.last += 1;
        state.last
    }

    /// Keeps a walker until its context goes on. A context has at most one: another one is dropped.
    pub fn park(&self, owner: Owner, ticket: u64, run: WalkerRun) {
        let room = run.room();
        self.state().replace(Parked { owner, ticket, room, run: Some(ParkedRun::Here(Box::new(run))) });
    }

    /// What is saved of the walkers of a function: page and ticket of each, ascending. None of its contexts is on an engine.
    pub(super) fn save(&self, function: Function) -> Vec<(u32, u64, SavedRun)> {
        let state = self.state();
        let own = state.walkers.iter().filter(|parked| parked.owner.function == function);
        let mut saved: Vec<_> = own
            .filter_map(|parked| {
                let run = match parked.run.as_ref()? {
                    ParkedRun::Here(run) => run.save()?,
                    ParkedRun::Restored(RestoredRun(run)) => run.as_ref().clone(),
                };
                Some((parked.owner.page, parked.ticket, run))
            })
            .collect();
        saved.sort_unstable_by_key(|(page, ..)| *page);
        saved
    }

    /// Keeps a saved walker that takes this room when it is saved. Tickets that are given later are others.
    pub(super) fn restore(&self, owner: Owner, ticket: u64, run: SavedRun, saved: usize) {
        let mut state = self.state();
        state.last = state.last.max(ticket);
        let host = run.groups.iter().map(|(_, group)| group.threads.host_bytes()).fold(0, usize::saturating_add);
        let room = Room { host, saved };
        state.replace(Parked { owner, ticket, room, run: Some(ParkedRun::Restored(RestoredRun(Box::new(run)))) });
    }

    /// Takes the walker of a context that goes on, if this is its ticket. With another ticket it is dropped.
    pub fn take(&self, owner: Owner, ticket: u64) -> Option<ParkedRun> {
        let mut state = self.state();
        let at = state.walkers.iter().position(|parked| parked.owner == owner)?;
        let parked = state.walkers.swap_remove(at);
        parked.run.filter(|_| parked.ticket == ticket)
    }

    /// Drops the walker of a context.
    pub fn drop_context(&self, owner: Owner) {
        self.state().walkers.retain(|parked| parked.owner != owner);
    }

    /// Drops the walkers of a function.
    pub fn drop_function(&self, function: Function) {
        self.state().walkers.retain(|parked| parked.owner.function != function);
    }

    /// Number of parked walkers of `function`.
    pub fn count(&self, function: Function) -> usize {
        let state = self.state();
        state.walkers.iter().filter(|parked| parked.owner.function == function && parked.run.is_some()).count()
    }

    /// Bytes of the host's memory that the parked walkers of `function` take, about, with those that are about to be parked.
    pub fn bytes(&self, function: Function) -> usize {
        let state = self.state();
        let own = state.walkers.iter().filter(|parked| parked.owner.function == function);
        own.fold(0, |sum, parked| sum.saturating_add(parked.room.host))
    }
}
