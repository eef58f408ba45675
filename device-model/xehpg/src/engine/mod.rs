// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The engines: their logical contexts, and the command streamer that executes them.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

mod access;
pub mod addressing;
mod alu;
mod atomic;
mod compute;
mod control;
mod counters;
mod engines;
mod error;
mod execute;
mod fetch;
mod flush;
mod head;
mod image;
mod inspect;
mod lrc;
mod observation;
mod remap;
mod running;
pub mod skipped;
mod step;
pub(crate) mod stream;
mod streamer;
mod switch;
#[cfg(test)]
mod tests;
mod transfer;
pub mod walkers;
mod watchdog;
mod watchdog_counter;
pub(crate) mod whitelist;

use std::sync::atomic::Ordering;

use crate::compute::ComputeUnit;
use crate::execlist::descriptor::Descriptor;
use crate::execlist::queue::Queue;
use crate::execlist::status::{ContextStatus, CsbInterruptMask, Detail};
use crate::execlist::{self, Execlist, Loaded};
use crate::generation::Generation;
use crate::gt::Gt;
use crate::host::Function;
use crate::interrupts::CONTEXT_SWITCH;
use crate::memory::{Fault, GuestMappings, Tlb};
use crate::oa::context::ContextCounters;
use crate::registers::engine_fields::GfxMode;
use crate::registers::engine_offsets::{self as reg, GLOBALS};
use crate::topology::{EngineId, EngineInfo};
use crate::trace::EventKind;
pub use counters::Counters;
pub use engines::{EngineReport, EngineUnit, Engines};
use fetch::Window;
use running::{Pending, Running};
use skipped::{MOST_WARNINGS, SkippedCommand};
use streamer::Streamer;

/// Returns dword `index` of a command, or 0 if the command is shorter.
#[inline]
fn word(words: &[u32], index: usize) -> u32 {
    words.get(index).copied().unwrap_or(0)
}

/// Submitter of a context. Determines where the outcome of the context is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submitter {
    /// The GuC. Outcomes are reported with [`EngineReport`].
    Guc,
    /// The host, through the engine's execlist queue. Context switches are reported in the context status buffer
    /// (V8-057).
    Execlist,
}

/// A logical context to restore and run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// The function that owns the context. For GuC submissions it is taken from the GuC's internal state and is never
    /// supplied by the guest. The submission queue registers are accessible only to the PF, so a context from a queue
    /// always belongs to the PF.
    pub function: Function,
    /// The submitter.
    pub submitter: Submitter,
    /// The submitter's identifier for the context: the GuC's ticket, which reports return, or the index of the queue
    /// element.
    pub context: u32,
    /// Context descriptor: GGTT address of the PPHWSP, valid (bit 0), PPGTT (bit 8), and identifiers in the high dword
    /// (contract F.1, V8-030, V8-031).
    pub descriptor: u64,
    /// Engines (one bit each, by index) that run the members of a parallel context, this one among them; 0 for any other
    /// context. Members advance together: a step ends after each command of the ring, and where a batch returns to the
    /// ring ([`Engine::in_ring`]).
    pub members: u32,
}

impl Load {
    /// The descriptor's fields.
    pub fn descriptor(&self) -> Descriptor {
        Descriptor::from(self.descriptor)
    }
}

/// Result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// No context is loaded.
    Idle,
    /// The budget is used up. The engine has more commands to execute.
    More,
    /// The condition of a semaphore or event wait is not met. The context remains loaded and must be stepped again
    /// later.
    Waiting,
    /// A batch is in a loop that only an external write can terminate. Scheduled like `Waiting`, but the time is
    /// charged to the context.
    Spinning,
    /// The ring is empty. The context is saved and unloaded.
    Complete,
    /// The context was preempted before completion, at an arbitration point or at an unsatisfied wait (V8-081). It is
    /// saved and unloaded.
    Preempted,
    /// The context cannot continue (fault or illegal command). It remains loaded until the engine is reset.
    Halted(Halt),
}

/// Reason why a context cannot continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halt {
    /// A memory access without a valid translation. Reported as a CAT error.
    Fault(Fault),
    /// A command that the engine does not implement.
    IllegalCommand {
        /// Header dword.
        header: u32,
        /// GGTT or PPGTT address of the command.
        address: u64,
    },
    /// A command in a batch of user space that the model does not execute, if the card file has `unmodelled = "fault"`.
    /// Reported as an illegal command.
    Unmodelled {
        /// Header dword.
        header: u32,
        /// GGTT or PPGTT address of the command.
        address: u64,
    },
    /// The step panicked because of a bug in the device model. The context is unloaded.
    Bug,
}

/// One engine with its command streamer.
pub struct Engine {
    id: EngineId,
    info: &'static EngineInfo,
    tlb: Tlb,
    window: Window,
    running: Option<Running>,
    execlist: Execlist,
    /// The PF's values of [`GLOBALS`] while a context of a VF is loaded.
    globals: [u32; GLOBALS.len()],
    counters: Counters,
    /// What the execution units keep from walker to walker.
    unit: ComputeUnit,
    /// The context's counters in OAR or OAC.
    observed: ContextCounters,
    /// The first command of the context that was skipped in a batch of user space, until it is taken.
    skipped: Option<SkippedCommand>,
    /// Address of the last context of the host's queue with such a command, and the number of them that were logged.
    queue_skips: (Option<u32>, u64),
}

impl Engine {
    /// Creates engine `id` of `generation` with no context loaded.
    pub fn new(generation: &Generation, id: EngineId) -> Self {
        let info = generation.engines.info(id);
        Engine {
            id,
            info,
            tlb: Tlb::default(),
            window: Window::default(),
            running: None,
            execlist: Execlist::new(info.instance),
            globals: Default::default(),
            counters: Counters::new(generation.commands, info.class),
            unit: ComputeUnit::default(),
            observed: ContextCounters::default(),
            skipped: None,
            queue_skips: (None, 0),
        }
    }

    /// Returns the engine's ID.
    pub fn id(&self) -> EngineId {
        self.id
    }

    /// Returns the engine's execution units, of which a test may change the costs of a step.
    pub fn execution_units(&mut self) -> &mut ComputeUnit {
        &mut self.unit
    }

    /// Returns the loaded context.
    pub fn loaded(&self) -> Option<Load> {
        self.running.as_ref().map(|running| running.load)
    }

    /// Returns the counts of unsupported and partially executed operations since the card was created.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Takes the first command that the context `load` has skipped in a batch of user space since it was loaded. Must
    /// be called after each step; returns the command once. The GuC counts and logs its contexts; those of the host's
    /// queue are counted and logged here, each until another one has a skipped command.
    pub fn take_skipped(&mut self, gt: &Gt, load: &Load) -> Option<SkippedCommand> {
        let skipped = self.skipped.take()?;
        let page = Descriptor::from(load.descriptor).lrca();
        let (last, warnings) = &mut self.queue_skips;
        if load.submitter == Submitter::Execlist && last.replace(page) != Some(page) {
            gt.skipped(load.function).count_context();
            if *warnings < MOST_WARNINGS {
                *warnings = warnings.saturating_add(1);
                skipped.warn(load.function, self.info.name, format_args!("the context at {page:#x}"));
            }
        }
        Some(skipped)
    }

    /// Returns the number of translations that the engine's TLB has cached since the card was created.
    pub fn tlb_fills(&self) -> u64 {
        self.tlb.fills()
    }

    /// Loads a context for the GuC. Subsequent steps execute it. Must not be called while a context is loaded.
    pub fn load(&mut self, gt: &Gt, load: Load) {
        debug_assert!(self.running.is_none(), "{} already has a context loaded", self.info.name);
        let queue = Queue::of(Descriptor::from(load.descriptor).with_valid(true));
        if let Loaded::Start(status, ..) = self.execlist.load(queue, None, false) {
            self.report_switch(gt, &gt.memory.step_views(self.id), status, load.submitter);
        }
        self.start(gt, load);
        self.show_status(gt);
    }

    #[allow(clippy::indexing_slicing, reason = "there is a clock for each engine")]
    fn start(&mut self, gt: &Gt, load: Load) {
        // Page tables may have changed since the context last ran. xe changes the page tables of a preempted context
        // without a TLB invalidation (xe: xe_pt.c, bind_op_prepare).
        self.tlb.flush();
        // The context clock is stopped until the next step reads the image.
        let now = gt.clock.now();
        gt.stop_context_clock(self.id, gt.generation.timebase.ticks(now));
        gt.engine_kernel(self.id).hide();
        gt.engine_clocks[self.id.index()].load(now);
        self.swap_global_registers(gt, load.function, Exchange::Enter);
        self.running = Some(Running::new(load));
        let Load { function, context, descriptor, .. } = load;
        gt.trace.record_of_engine(function, || (gt.engine(self.id).name, EventKind::Load { context, descriptor }));
    }

    /// Returns whether the next command is one of the ring, or no context is loaded.
    pub fn in_ring(&self) -> bool {
        self.running.as_ref().is_none_or(|running| running.position.batch().is_none())
    }

    /// Notifies the engine that RING_TAIL of the loaded context changed in memory (lite restore). The next step reads
    /// it.
    pub fn tail_moved(&mut self) {
        if let Some(running) = &mut self.running {
            running.tail_moved = true;
        }
    }

    /// Requests preemption to idle for the GuC: the loaded context is preempted at its next arbitration point.
    pub fn request_preemption(&mut self) {
        if let Some(running) = &mut self.running
            && !running.preempt
        {
            running.preempt = true;
            self.execlist.load(Queue::default(), Some(running.load.descriptor()), false);
        }
    }

    /// Handles a host write of a dword to ELSP (V8-011).
    pub fn push(&mut self, gt: &Gt, value: u32) {
        self.execlist.port.push(gt.registers.engine(self.id), value);
    }

    /// Loads the submission queue for the host (V8-013..020). Ignored if execlists are not enabled in the engine's mode
    /// register (V8-008).
    pub fn load_queue(&mut self, gt: &Gt) {
        let registers = gt.registers.engine(self.id);
        if !registers.fields::<GfxMode>().disable_legacy_mode() {
            self.counters.refused_loads = self.counters.refused_loads.saturating_add(1);
            return;
        }
        let queue = Queue::sample(registers);
        let running = self.running.as_ref();
        let goes_on = running.is_some_and(|it| it.load.submitter == Submitter::Execlist && it.halted.is_none());
        let descriptor = running.map(|it| it.load.descriptor());
        let views = gt.memory.step_views(self.id);
        match self.execlist.load(queue, descriptor, goes_on) {
            Loaded::Start(status, element, descriptor) => {
                self.report_switch(gt, &views, status, Submitter::Execlist);
                self.start(gt, of_queue(element, descriptor));
            }
            Loaded::StillIdle(status) => self.report_switch(gt, &views, status, Submitter::Execlist),
            Loaded::Lite(status, element, descriptor) => {
                if let Some(running) = &mut self.running {
                    running.load = of_queue(element, descriptor);
                    running.tail_moved = true;
                    running.preempt = false;
                }
                self.report_switch(gt, &views, status, Submitter::Execlist);
            }
            Loaded::Preempt => {
                if let Some(running) = &mut self.running {
                    running.preempt = true;
                }
            }
        }
        self.show_status(gt);
    }

    /// Reports a context switch to the GuC's FIFO (V8-060) and, if the host is the submitter, in the status buffer
    /// followed by an interrupt (V8-055). Switches with a masked reason are not reported (V8-056).
    #[allow(clippy::indexing_slicing, reason = "there is a port for each engine")]
    fn report_switch(&mut self, gt: &Gt, views: &GuestMappings<'_>, status: ContextStatus, submitter: Submitter) {
        let registers = gt.registers.engine(self.id);
        if CsbInterruptMask::from(registers.get(reg::CSB_INTERRUPT_MASK)).masks(status.reason()) {
            return;
        }
        gt.csb_ports[self.id.index()].push(status);
        let owner = self.running.as_ref().map_or(Function::PF, |running| running.load.function);
        gt.trace.record_of_engine(owner, || (gt.engine(self.id).name, EventKind::Switch { status: status.into() }));
        if submitter == Submitter::Execlist {
            let mut gam = gt.memory.gam(Function::PF, views, &mut self.tlb);
            if execlist::buffer::report(registers, &mut gam, status).is_err() {
                self.counters.lost_reports = self.counters.lost_reports.saturating_add(1);
            }
            gt.interrupts.raise_engine(self.id, CONTEXT_SWITCH);
        }
    }

    /// Reports that the context `load` was switched out for the reason `detail`, and starts the next element of the
    /// queue, if any (V8-016).
    fn switch(&mut self, gt: &Gt, views: &GuestMappings<'_>, load: Load, detail: Detail) {
        let (status, next) = self.execlist.switch(load.descriptor(), detail);
        // An element that follows a context submitted by the GuC belongs to a queue that the host has loaded since.
        let submitter = if next.is_some() { Submitter::Execlist } else { load.submitter };
        self.report_switch(gt, views, status, submitter);
        if let Some((element, descriptor)) = next {
            self.start(gt, of_queue(element, descriptor));
        }
    }

    /// Updates EXECLIST_STATUS with the state of the queue (V8-022).
    fn show_status(&self, gt: &Gt) {
        let running = self.running.as_ref();
        let arbitration = running.is_some_and(|running| running.arbitration);
        let status = self.execlist.shown(running.map(|running| running.load.descriptor()), arbitration);
        gt.registers.engine(self.id).set64(reg::EXECLIST_STATUS, status.into());
    }

    /// Resets the engine: stops and unloads the context, and saves its RING_HEAD and CTX_TIMESTAMP in the image.
    /// Returns the unloaded context, or `None` if no context was loaded.
    #[allow(clippy::indexing_slicing, reason = "there is a clock for each engine")]
    pub fn reset(&mut self, gt: &Gt) -> Option<Load> {
        self.execlist.reset();
        let running = self.running.take();
        self.show_status(gt);
        let running = running?;
        if let Some(Pending::Walker(walker)) = &running.pending {
            gt.trace.record_of_engine(running.load.function, || (gt.engine(self.id).name, walker.event()));
            walkers::warn_reset(gt, running.load.function, self.id, walker.place().as_ref());
        }
        gt.trace.record_of_engine(running.load.function, || (gt.engine(self.id).name, EventKind::Reset));
        let timestamp = gt.stop_context_clock(self.id, gt.timestamp());
        if running.restored() {
            let views = gt.memory.step_views(self.id);
            let mut gam = gt.memory.gam(running.load.function, &views, &mut self.tlb);
            // Errors are ignored: the state cannot be saved to an inaccessible image.
            let _ = running.lrc.save_stopped(&mut gam, gt.context_layout(self.id), &running.position, timestamp);
        }
        self.stop_counting(gt);
        self.tlb.flush();
        self.scrub_context_registers(gt, running.load.function);
        Some(running.load)
    }

    /// Executes one step, limited to about `budget` commands and about 1 ms of host time.
    #[allow(clippy::indexing_slicing, reason = "there is a clock for each engine")]
    pub fn step(&mut self, gt: &Gt, budget: u32) -> Outcome {
        let Some(running) = &mut self.running else { return Outcome::Idle };
        if let Some(halt) = running.halted {
            return Outcome::Halted(halt);
        }
        let clock = &gt.engine_clocks[self.id.index()];
        let started = gt.clock.now();
        clock.begin_step(started);
        self.window.flush();
        let info = self.info;
        let views = gt.memory.step_views(self.id);
        let function = running.load.function;
        let mut streamer = Streamer {
            gt,
            started,
            gam: gt.memory.gam(function, &views, &mut self.tlb),
            id: self.id,
            class: info.class,
            registers: gt.registers.engine(self.id),
            running,
            counters: &mut self.counters,
            unit: &mut self.unit,
            skipped: &mut self.skipped,
            observed: &mut self.observed,
        };
        let outcome = streamer.run(&mut self.window, budget);
        clock.end_step(gt.clock.now(), matches!(outcome, Outcome::Waiting | Outcome::Spinning));
        if matches!(outcome, Outcome::Complete | Outcome::Preempted)
            && let Some(running) = self.running.take()
        {
            self.stop_counting(gt);
            self.scrub_context_registers(gt, running.load.function);
            let detail = match running.waits_at {
                _ if outcome == Outcome::Complete => Detail::Complete,
                Some(header) => Detail::of_wait(header),
                None => Detail::Preempted,
            };
            self.switch(gt, &views, running.load, detail);
            if self.running.is_none() {
                gt.report_switch(self.id, Function::PF, None);
            }
        }
        self.show_status(gt);
        outcome
    }

    /// Clears the register state of a VF's context after it is unloaded. Other contexts must not read it, and some
    /// registers are shared between engines. The state of the PF's contexts is not cleared, because only the PF's
    /// driver can read it.
    fn scrub_context_registers(&mut self, gt: &Gt, function: Function) {
        if function.is_vf() {
            gt.context_layout(self.id).clear(&gt.registers);
            gt.registers.engine(self.id).set(reg::PR_CTR, 0);
            self.swap_global_registers(gt, function, Exchange::Leave);
        }
    }

    /// Exchanges the registers in [`GLOBALS`]. They hold a VF's values while one of its contexts is loaded, otherwise
    /// the PF's.
    fn swap_global_registers(&mut self, gt: &Gt, function: Function, way: Exchange) {
        let Some(vf) = gt.vf(function) else { return };
        let registers = gt.registers.engine(self.id);
        let theirs = vf.power_context(self.id);
        for ((own, ours), theirs) in GLOBALS.into_iter().zip(&mut self.globals).zip(theirs) {
            if way == Exchange::Enter {
                *ours = registers.get(own);
                registers.set(own, theirs.load(Ordering::Relaxed));
            } else {
                theirs.store(registers.get(own), Ordering::Relaxed);
                registers.set(own, *ours);
            }
        }
    }

    /// Returns the address of the command that the context waits at, or `None` if the last step did not end in a wait.
    pub fn waits_at(&self) -> Option<u64> {
        let waiting = self.running.as_ref().filter(|running| running.waits_at.is_some());
        waiting.map(|running| running.position.address())
    }

    /// Returns the time at which the watchdog can end the current wait, in ns of the card's clock. The engine must be
    /// stepped again by then. Returns `None` if the wait has no time limit.
    pub fn wake_at(&self) -> Option<u64> {
        self.running.as_ref()?.wait_ends
    }
}

/// Builds the load for an element of the host's queue.
fn of_queue(element: u8, descriptor: Descriptor) -> Load {
    Load {
        function: Function::PF,
        submitter: Submitter::Execlist,
        context: u32::from(element),
        descriptor: descriptor.into(),
        members: 0,
    }
}

/// Direction of [`Engine::swap_global_registers`]: to or from a VF's values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Exchange {
    Enter,
    Leave,
}
