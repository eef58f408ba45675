// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! COMPUTE_WALKER: an operation of the engine that takes many steps, like a blit. Later commands are executed after it, so
//! flushes and post-sync operations follow the end of its threads (EU-009, EU-020, EU-025, EU-070).

use arctic_eu::exec::MessageKind;
use arctic_eu::exec::profile::Profile;
use arctic_sriov::number::low;

use super::running::Pending;
use super::streamer::{Flow, Pace, STEP_TIME, Streamer};
use super::walkers::{self, PendingWalker};
use super::{Halt, reg};
use crate::command::gfx::walker as field;
use crate::compute::{Owner, ParkedRun, PostSync, RunStop, Times, Walker, WalkerCounts, WalkerRun};
use crate::execlist::descriptor::Descriptor;
use crate::memory::Fault;
use crate::oa::flexible::{self, FlexibleCounts, UnitWork};
use crate::oa::work::KernelWork;
use crate::profile::Unmodelled;

/// A dword of a timestamp packet. Software waits for it to be other than 1, so that value is not written (EU-025).
fn packet(time: u32) -> u32 {
    if time == 1 { 2 } else { time }
}

/// What a walker with groups of so many threads has executed, for the counters of observation.
fn kernel_work(counts: &WalkerCounts, threads: u32) -> KernelWork {
    let kinds = &counts.kinds;
    let groups = counts.threads.checked_div(threads.into()).unwrap_or(0);
    let [read, written, atomic] =
        [MessageKind::SlmRead, MessageKind::SlmWrite, MessageKind::SlmAtomic].map(|kind| kinds.of(kind));
    let shared = read.saturating_add(written).saturating_add(atomic);
    KernelWork {
        threads: groups.saturating_mul(threads.div_ceil(2).into()),
        barriers: kinds.barriers,
        slm_reads: read.saturating_add(atomic),
        slm_writes: written.saturating_add(atomic),
        memory: kinds.messages.saturating_sub(shared),
        atomics: kinds.of(MessageKind::Atomic).saturating_add(atomic),
    }
}

impl Streamer<'_> {
    /// Begins a walker.
    pub(super) fn compute_walker(&mut self, words: &[u32]) -> Flow {
        let indirect = [0, 4, 8].map(|axis: u32| self.registers.get(reg::DISPATCHDIM.wrapping_add(axis)));
        match Walker::new(words, &self.running.compute, indirect) {
            Ok(walker) => {
                let mut pending = self.pending(walker);
                if self.gt.captures.armed() {
                    self.capture(&mut pending);
                }
                self.running.pending = Some(Pending::Walker(pending));
                Flow::Next
            }
            Err(error) => {
                self.counters.refuse_walker(error);
                Flow::Illegal
            }
        }
    }

    /// Captures a walker that begins now, if a request is for it.
    #[cold]
    fn capture(&self, walker: &mut PendingWalker) {
        let function = self.running.load.function;
        let engine = self.gt.engine(self.id).name;
        if let Some(job) = self.gt.captures.begin(function, engine, walker.run.walker(), &self.running.compute) {
            walker.run.capture(job);
        }
    }

    /// A walker that begins now.
    fn pending(&mut self, walker: Walker) -> Box<PendingWalker> {
        let started = self.times();
        Box::new(PendingWalker { run: WalkerRun::new(walker, started, self.unit), done: false })
    }

    /// The walker that the context's image has: with its groups in flight, or from the group in the command on.
    pub(super) fn resumed_walker(&mut self, words: &[u32]) -> Option<Box<PendingWalker>> {
        let restored = match self.gt.parked.take(self.owner(), Walker::ticket(words)) {
            Some(ParkedRun::Here(run)) => return Some(Box::new(PendingWalker { run: *run, done: false })),
            Some(ParkedRun::Restored(restored)) => Some(restored),
            None => None,
        };
        let mut walker = self.pending(Walker::new(words, &self.running.compute, [0; 3]).ok()?);
        if let Some(restored) = restored {
            restored.go_on(&mut walker.run, &self.gt.eu_rates);
        }
        Some(walker)
    }

    /// Makes the resumed walker, if there is one, the operation that the engine executes.
    pub(super) fn go_on_with_walker(&mut self) {
        if let Some(walker) = self.running.resumed.take() {
            self.running.pending = Some(Pending::Walker(walker));
        }
    }

    /// The context, as owner of a parked walker.
    pub(super) fn owner(&self) -> Owner {
        Owner { function: self.running.load.function, page: Descriptor::from(self.running.load.descriptor).lrca() }
    }

    /// The ticket for the walker of a context that is being saved; 0 if no group is in flight.
    pub(super) fn ticket(&self) -> u64 {
        match &self.running.pending {
            Some(Pending::Walker(walker)) if !walker.run.at_boundary() => self.gt.parked.ticket(),
            _ => 0,
        }
    }

    /// Parks the walker of a context that was saved with `ticket`.
    pub(super) fn park(&mut self, ticket: u64) {
        if let Some(Pending::Walker(mut walker)) = self.running.pending.take_if(|it| matches!(it, Pending::Walker(_))) {
            walker.run.leave();
            self.trace_event(|_| walker.event());
            if ticket == 0 {
                walker.run.release(self.unit);
            } else {
                self.gt.parked.park(self.owner(), ticket, walker.run);
            }
        }
    }

    fn times(&self) -> Times {
        let now = self.gt.timestamp();
        Times { context: self.gt.context_clock(self.id).read(|| now), card: low(now) }
    }

    /// Executes a bounded part of the pending walker. A context that is to leave the engine leaves it at once, with its group in
    /// flight, if the function may park another walker; otherwise at the end of the group.
    pub(super) fn step_walker(&mut self) -> Result<Pace, Halt> {
        let leaves = self.may_leave();
        let owner = self.owner();
        let Some(Pending::Walker(walker)) = &mut self.running.pending else { return Ok(Pace::Done) };
        let function = self.running.load.function;
        if leaves && !walker.done && !walker.run.is_being_copied() {
            walker.run.end_offer(&self.gt.offers);
            if walker.run.at_boundary() || self.gt.parked.reserve(owner, walker.run.room()) {
                return Ok(Pace::Leave);
            }
        }
        let (part, mut left) = (self.unit.part_cost, self.unit.step_cost);
        let clock = self.gt.context_clock(self.id);
        clock.hold(self.gt.timestamp());
        while !walker.done {
            let space = self.running.lrc.space;
            walker.run.set_profiled(self.gt.counts_instructions());
            let stop = walker.run.step(&mut self.gam, space, self.unit, part, leaves);
            clock.advance(walker.run.take_ticks(&self.gt.eu_rates));
            let counts = walker.run.take_counts();
            self.counters.walkers.add(counts);
            self.gt.kernels(function).add(counts);
            let threads = walker.run.walker().dispatch.threads;
            let work = kernel_work(&counts, threads);
            let flexible = match walker.run.profile() {
                None => FlexibleCounts::default(),
                Some(profile) => {
                    let work = UnitWork::new(profile, threads, &self.gt.eu_rates);
                    let counts = flexible::counts(self.gt.flexible_counters(), &work, self.class);
                    *profile = Profile::default();
                    counts
                }
            };
            self.gt.count_kernel_work(&work, &flexible);
            self.observed.count_kernels(&work, &flexible);
            self.gt.engine_kernel(self.id).show(walker.run.walker().kernel_address(), walker.run.counts());
            if let Some(unexecuted) = walker.run.take_unexecuted() {
                walkers::warn_unexecuted(self.gt, function, self.id, &unexecuted);
                if self.gt.unmodelled == Unmodelled::Fault {
                    let address = self.running.position.address();
                    return Err(Halt::Unmodelled { header: field::HEADER, address });
                }
            }
            match stop {
                RunStop::Done => walker.done = true,
                RunStop::Boundary => return Ok(Pace::Leave),
                RunStop::Deadlock => {
                    clock.release(self.gt.timestamp());
                    return Ok(Pace::Stalled);
                }
                RunStop::Message => return Ok(Pace::More),
                RunStop::Fault(fault, place) => {
                    walker.run.end_offer(&self.gt.offers);
                    if !self.gam.unanswered() {
                        self.gt.kernels(function).add(WalkerCounts { faults: 1, ..WalkerCounts::default() });
                        walkers::warn_fault(self.gt, function, self.id, &fault, place.as_deref());
                    }
                    return Err(Halt::Fault(fault));
                }
                RunStop::Budget => {
                    left = left.saturating_sub(part);
                    let time = self.gt.clock.now().saturating_sub(self.started);
                    if left == 0 || time > STEP_TIME || self.gam.unanswered() {
                        if !leaves {
                            walker.run.offer(&self.gt.offers, function, space);
                        }
                        return Ok(Pace::More);
                    }
                }
            }
        }
        walker.run.end_offer(&self.gt.offers);
        clock.release(self.gt.timestamp());
        let (post_sync, started) = (walker.run.walker().post_sync, walker.run.started);
        self.post_sync(post_sync, started).map_err(Halt::Fault)?;
        if let Some(Pending::Walker(walker)) = self.running.pending.take() {
            self.counters.walkers.walkers = self.counters.walkers.walkers.saturating_add(1);
            self.gt.kernels(function).count_walker();
            self.gt.engine_kernel(self.id).hide();
            self.trace_event(|_| walker.event());
            walker.run.release(self.unit);
        }
        self.running.loops.effect();
        Ok(Pace::Done)
    }

    /// The post-sync operation of a walker whose threads have ended.
    fn post_sync(&mut self, operation: PostSync, started: Times) -> Result<(), Fault> {
        let space = self.running.lrc.space;
        match operation {
            PostSync::None => Ok(()),
            PostSync::Immediate { address, value } => self.gam.write_u64(space, address, value),
            PostSync::Timestamp { address } => {
                let ended = self.times();
                let mut bytes = [0; 16];
                let times = [started.context, started.card, ended.context, ended.card];
                for (raw, time) in bytes.chunks_exact_mut(4).zip(times) {
                    raw.copy_from_slice(&packet(time).to_le_bytes());
                }
                // The end of the context's time comes last: software waits for it (EU-025).
                let (start, end) = bytes.split_at(8);
                self.gam.write(space, address, start)?;
                self.gam.write(space, address.wrapping_add(8), end)
            }
        }
    }
}
