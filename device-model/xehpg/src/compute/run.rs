// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A walker in progress: its groups are executed one after the other, in steps that a budget of cost bounds, and beside the
//! engine by clusters to which the groups are offered.

use std::sync::{Arc, MutexGuard};

use arctic_eu::exec::Program;
use arctic_eu::exec::profile::Profile;

use super::capture::CaptureJob;
use super::memory::CapturingMemory;
use super::report::{KernelPlace, Room, RunStop, Times, Unexecuted, WalkerCounts, saved_bytes};
use super::shared::{Helper, Offers, OpenOffer, Remaining, SharedWalker, Taking};
use super::slot::{NoGroup, SavedInFlight, Slot};
use super::time::EuRates;
use super::unit::ComputeUnit;
use super::walker::{Walker, WalkerWords};
use crate::host::Function;
use crate::memory::{Gam, Space};

/// A walker with groups in flight, apart from its command, which the context's image has, and from its code.
#[derive(Clone)]
pub(super) struct SavedRun {
    /// When the walker was begun.
    pub started: Times,
    /// Instructions of the longest group so far.
    pub longest: u64,
    /// Instructions of all groups so far.
    pub instructions: u64,
    /// The next group to begin.
    pub next: Option<[u32; 3]>,
    /// The groups in flight, at least one, with the number of the slot of each.
    pub groups: Vec<(u32, SavedInFlight)>,
}

/// A walker in progress. It can be parked between two steps, and goes on as if it had not been.
pub struct WalkerRun {
    shared: Arc<SharedWalker>,
    /// When the walker was begun.
    pub started: Times,
    /// Where the engine executes groups.
    own: Slot,
    /// The groups are offered to clusters.
    offer: Option<OpenOffer>,
    /// Slots have groups that were restored, which go on by the translated kernel.
    restored: bool,
    /// Instructions of the longest group so far.
    longest: u64,
    /// Ticks of CTX_TIMESTAMP that [`WalkerRun::take_ticks`] has returned.
    ticks: u64,
    counts: WalkerCounts,
    /// Those that [`WalkerRun::take_counts`] has returned.
    taken: WalkerCounts,
    /// Instructions by class that were counted and not taken.
    profile: Option<Box<Profile>>,
    unexecuted: Option<Unexecuted>,
    /// It is captured. Then it is not offered.
    capture: Option<Box<CaptureJob>>,
}

#[allow(clippy::arithmetic_side_effects, reason = "counts of 64 bits do not overflow")]
impl WalkerRun {
    /// Begins a walker on the execution units of an engine.
    pub fn new(walker: Walker, started: Times, unit: &mut ComputeUnit) -> WalkerRun {
        let threads = unit.take_threads(walker.dispatch.threads as usize, walker.registers, walker.slm);
        WalkerRun {
            shared: Arc::new(SharedWalker::new(walker)),
            started,
            own: Slot::new(0, threads, unit.take_surfaces()),
            offer: None,
            restored: false,
            longest: 0,
            ticks: 0,
            counts: WalkerCounts::default(),
            taken: WalkerCounts::default(),
            profile: None,
            unexecuted: None,
            capture: None,
        }
    }

    /// Captures the walker, which has just begun.
    pub fn capture(&mut self, job: Box<CaptureJob>) {
        self.capture = Some(job);
    }

    /// Goes on with the groups in flight of a saved walker, with the first of which this walker begins. Without effect if they have
    /// another shape.
    pub(super) fn restore(&mut self, saved: SavedRun, rates: &EuRates) {
        let walker = &self.shared.walker;
        let shape = (walker.dispatch.threads as usize, walker.registers, walker.slm);
        if walker.first.is_none() || saved.groups.iter().any(|(_, group)| group.threads.shape() != shape) {
            return;
        }
        let begun = saved.groups.iter().map(|(_, group)| group.group.number).max().unwrap_or(0);
        *self.shared.remaining() = Remaining { group: saved.next, begun };
        (self.started, self.longest) = (saved.started, saved.longest);
        self.counts.instructions = saved.instructions;
        self.taken = self.counts;
        self.ticks = rates.ticks(walker.dispatch.threads, saved.longest, saved.instructions);
        self.restored = true;
        for (number, group) in saved.groups {
            match number.checked_sub(1) {
                None => self.own.restore(group),
                Some(helper) => self.shared.restore_helper(helper as usize, group),
            }
        }
    }

    /// What is saved of a walker with groups in flight; `None` without one. It must not be offered.
    pub(super) fn save(&self) -> Option<SavedRun> {
        let save = |slot: &Slot| Some((slot.number(), slot.save(self.shared.program().as_ref())?));
        let own = save(&self.own);
        let helpers = self.shared.helpers().filter_map(|helper| save(helper.slot.as_ref()?));
        let groups: Vec<_> = own.into_iter().chain(helpers).collect();
        let next = self.shared.remaining().group;
        let (started, longest, instructions) = (self.started, self.longest, self.counts.instructions);
        (!groups.is_empty()).then_some(SavedRun { started, longest, instructions, next, groups })
    }

    /// The walker.
    pub fn walker(&self) -> &Walker {
        &self.shared.walker
    }

    /// What it has executed, without what clusters execute now.
    pub fn counts(&self) -> WalkerCounts {
        self.counts
    }

    /// What it has executed since the last call.
    pub fn take_counts(&mut self) -> WalkerCounts {
        let before = std::mem::replace(&mut self.taken, self.counts);
        self.counts.since(before)
    }

    /// Counts instructions by class from the next step on, or no longer.
    pub fn set_profiled(&mut self, profiled: bool) {
        self.shared.set_profiled(profiled);
    }

    /// Instructions by class that were counted, if they were: to be set to 0 by the caller.
    pub fn profile(&mut self) -> Option<&mut Profile> {
        self.profile.as_deref_mut()
    }

    /// Ticks of CTX_TIMESTAMP since the last call, by the instructions that it has executed.
    pub fn take_ticks(&mut self, rates: &EuRates) -> u32 {
        let ticks = rates.ticks(self.shared.walker.dispatch.threads, self.longest, self.counts.instructions);
        let before = std::mem::replace(&mut self.ticks, ticks);
        u32::try_from(ticks.saturating_sub(before)).unwrap_or(u32::MAX)
    }

    /// Takes the first instruction since the last call that was not executed.
    pub fn take_unexecuted(&mut self) -> Option<Unexecuted> {
        self.unexecuted.take()
    }

    /// Offers the groups that are not begun to clusters.
    pub fn offer(&mut self, offers: &Offers, function: Function, space: Space) {
        if self.offer.is_none() && self.capture.is_none() && self.shared.remaining().group.is_some() {
            self.offer = Some(offers.make(self.shared.clone(), function, space));
        }
    }

    /// Ends the offer. Clusters execute nothing of the walker afterwards: waits for the parts that they execute now.
    pub fn end_offer(&mut self, offers: &Offers) {
        if let Some(offer) = self.offer.take() {
            offers.end(offer);
            self.collect(SharedWalker::helpers);
        }
    }

    /// Adds what the engine and `helpers` have executed.
    fn collect<'w, I>(&'w mut self, helpers: impl FnOnce(&'w SharedWalker) -> I)
    where
        I: Iterator<Item = MutexGuard<'w, Helper>>,
    {
        let WalkerRun { shared, own, counts, longest, profile, unexecuted, .. } = self;
        let mut add = |slot: &mut Slot| {
            *counts = counts.plus(slot.take_counts());
            *longest = slot.longest.max(*longest);
            if let Some(of_slot) = &mut slot.profile {
                profile.get_or_insert_default().add(of_slot);
                **of_slot = Profile::default();
            }
            if let Some(instruction) = slot.take_unexecuted() {
                unexecuted.get_or_insert(instruction);
            }
        };
        add(own);
        helpers(shared).for_each(|mut helper| helper.slot.iter_mut().for_each(|slot| add(slot)));
    }

    /// Returns whether no group is in flight: then all that is left is in the command of [`WalkerRun::resume_words`]. It must not be
    /// offered.
    pub fn at_boundary(&self) -> bool {
        self.first_in_flight().is_none()
    }

    /// The first of the groups in flight.
    fn first_in_flight(&self) -> Option<[u32; 3]> {
        let helpers = self.shared.helpers().filter_map(|helper| helper.slot.as_ref()?.flight);
        let first = self.own.flight.into_iter().chain(helpers).min_by_key(|flight| flight.number)?;
        Some(first.group)
    }

    /// The command that resumes the walker: at the first group in flight, or at the next one. It must not be offered.
    pub fn resume_words(&self, ticket: u64) -> WalkerWords {
        let group = self.first_in_flight().or_else(|| self.shared.remaining().group);
        self.shared.walker.resume_at(group, ticket)
    }

    /// The room that it takes while its context is on no engine. It must not be offered.
    pub fn room(&self) -> Room {
        let code = self.shared.program().as_ref().map_or(0, Program::host_bytes);
        let Walker { dispatch, registers, slm, .. } = &self.shared.walker;
        let saved = saved_bytes(dispatch.threads as usize, *registers, *slm);
        let own = Room { host: code + size_of::<SharedWalker>() + self.own.host_bytes(), saved };
        let helpers = self.shared.helpers().filter_map(|helper| {
            let slot = helper.slot.as_ref()?;
            Some(Room { host: slot.host_bytes(), saved: slot.flight.map_or(0, |_| saved) })
        });
        helpers.fold(own, Room::plus)
    }

    /// Gives what other walkers can use back to the execution units.
    pub fn release(self, unit: &mut ComputeUnit) {
        let WalkerRun { shared, own, .. } = self;
        let walker = &shared.walker;
        let (threads, surfaces) = own.into_parts();
        unit.keep_surfaces(surfaces);
        if let Some(program) = shared.program_mut().take() {
            unit.keep_program(walker.kernel, program);
        }
        unit.keep_threads(threads, walker.dispatch.threads as usize, walker.registers, walker.slm);
    }

    /// Returns whether all that is left is to copy the memory of its capture.
    pub fn is_being_copied(&self) -> bool {
        self.capture.as_ref().is_some_and(|capture| capture.held().is_some())
    }

    /// The context leaves its engine: the walker is not captured any more.
    pub fn leave(&mut self) {
        if let Some(mut capture) = self.capture.take() {
            capture.leave();
        }
    }

    /// Executes the walker until it stops, or until the step has cost `budget`, in instructions; the last message can cost more.
    /// With `to_boundary` no further group is begun; it must not be offered then.
    pub fn step(
        &mut self,
        gam: &mut Gam<'_>,
        space: Space,
        unit: &mut ComputeUnit,
        budget: u64,
        to_boundary: bool,
    ) -> RunStop {
        match self.capture.take() {
            None => self.execute(gam, space, unit, budget, to_boundary, None),
            Some(capture) => self.step_captured(gam, space, unit, budget, to_boundary, capture),
        }
    }

    /// As [`WalkerRun::step`], with a capture, which is kept unless it has ended. When the walker has stopped, its pages are copied
    /// before the stop is returned.
    #[cold]
    fn step_captured(
        &mut self,
        gam: &mut Gam<'_>,
        space: Space,
        unit: &mut ComputeUnit,
        budget: u64,
        to_boundary: bool,
        mut capture: Box<CaptureJob>,
    ) -> RunStop {
        if capture.held().is_none() {
            let is_captured = !capture.is_given_up();
            let (budget, job) =
                if is_captured { (CaptureJob::part(budget), Some(&mut *capture)) } else { (budget, None) };
            let stop = self.execute(gam, space, unit, budget, to_boundary, job);
            // An access that was not answered is made again: it is no end of the walker.
            if !gam.unanswered() {
                let place = if stop == RunStop::Deadlock { self.place() } else { None };
                capture.hold(&stop, self.counts, place.as_ref());
            }
            if capture.held().is_none() {
                // One that was given up is freed bit by bit.
                self.capture = (is_captured || capture.free()).then_some(capture);
                return stop;
            }
        }
        let is_left = if capture.is_given_up() {
            capture.free()
        } else {
            capture.copy_pages(&mut self.own.memory(gam, self.shared.job(space)))
        };
        if is_left {
            self.capture = Some(capture);
            return RunStop::Budget;
        }
        capture.held().cloned().unwrap_or(RunStop::Budget)
    }

    fn execute(
        &mut self,
        gam: &mut Gam<'_>,
        space: Space,
        unit: &mut ComputeUnit,
        budget: u64,
        to_boundary: bool,
        capture: Option<&mut CaptureJob>,
    ) -> RunStop {
        let mut left = budget;
        let stop = self.step_slots(gam, space, unit, &mut left, to_boundary, capture);
        match stop {
            RunStop::Done => self.collect(SharedWalker::helpers),
            _ => self.collect(SharedWalker::helpers_at_rest),
        }
        stop
    }

    fn step_slots(
        &mut self,
        gam: &mut Gam<'_>,
        space: Space,
        unit: &mut ComputeUnit,
        left: &mut u64,
        to_boundary: bool,
        mut capture: Option<&mut CaptureJob>,
    ) -> RunStop {
        let (shared, own) = (&*self.shared, &mut self.own);
        if shared.program().is_none() {
            let mut memory = own.memory(gam, shared.job(space));
            let program = match capture.as_deref_mut() {
                None => unit.take_program(&shared.walker, &mut memory),
                Some(job) => unit.take_program(&shared.walker, &mut CapturingMemory::new(&mut memory, job)),
            };
            memory.take_fault();
            let messages = memory.messages();
            *shared.program_mut() = Some(program);
            if messages != 0 {
                return RunStop::Message;
            }
        }
        if std::mem::take(&mut self.restored) {
            let go_on = |slot: &mut Slot| shared.program_mut().iter_mut().for_each(|program| slot.go_on(program));
            go_on(own);
            shared.helpers().for_each(|mut helper| helper.slot.iter_mut().for_each(|slot| go_on(slot)));
        }
        // Groups that clusters have left to the engine come first: its own would otherwise begin others for ever.
        if shared.has_helpers() {
            for mut helper in shared.helpers_at_rest() {
                let Helper { slot: Some(slot), left_to_engine, .. } = &mut *helper else { continue };
                if slot.flight.is_none() || (!*left_to_engine && !to_boundary) {
                    continue;
                }
                match shared.run_slot(slot, gam, space, &mut NoGroup, left, None) {
                    RunStop::Done => *left_to_engine = false,
                    stop => return stop,
                }
            }
        }
        let stop = if to_boundary {
            shared.run_slot(own, gam, space, &mut NoGroup, left, capture)
        } else {
            shared.run_slot(own, gam, space, &mut Taking(shared), left, capture)
        };
        if stop != RunStop::Done || !shared.has_helpers() {
            return if stop == RunStop::Done && shared.remaining().group.is_some() { RunStop::Boundary } else { stop };
        }
        for mut helper in shared.helpers() {
            let Helper { slot: Some(slot), left_to_engine, .. } = &mut *helper else { continue };
            match shared.run_slot(slot, gam, space, &mut NoGroup, left, None) {
                RunStop::Done => *left_to_engine = false,
                stop => return stop,
            }
        }
        if shared.remaining().group.is_some() { RunStop::Boundary } else { RunStop::Done }
    }

    /// Where the thread that has its turn is; `None` if no group is in flight.
    pub fn place(&self) -> Option<KernelPlace> {
        let place = |slot: &Slot| slot.place(&self.shared.walker, self.shared.program().as_ref()?);
        place(&self.own).or_else(|| self.shared.helpers_at_rest().find_map(|helper| place(helper.slot.as_ref()?)))
    }
}
