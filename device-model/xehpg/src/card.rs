// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The card: access to each function's GTTMMADR, the effects of register writes, and the execution of pending work.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

mod bar_files;
mod cluster;
mod contention;
mod deferred;
pub mod function_state;
mod functions;
mod gpu;
#[doc(hidden)]
pub mod guc_pending;
mod locks;
mod observation;
mod power_on;
mod register_map;
mod report;
mod save_restore;
mod status;
#[cfg(test)]
mod tests;
mod units;
mod work;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;

use self::bar_files::BarFiles;
use self::deferred::Deferred;
use self::guc_pending::GucPending;
use self::locks::GucUnit;
use self::units::{CardUnits, SteppedUnit};
use crate::doorbell::{NACK, Page};
use crate::engine::skipped::SkippedCommand;
use crate::engine::{EngineReport, Engines, Halt, Load, Outcome, Submitter};
use crate::event_count::EventCount;
use crate::gpu::{Host, OwnThreads};
use crate::gt::{Gt, SideEffect};
use crate::guc::Guc;
use crate::host::{ALL_FUNCTIONS, Clock, Dma, Function, InterruptSink};
use crate::memory::ggtt::{GGTT_BYTES, Ggtt};
use crate::memory::layout::MemoryLayout;
use crate::memory::{Memories, Memory, Tlb};
pub use crate::pci::GTTMMADR_BYTES;
use crate::profile::CardProfile;
use crate::registers::REGISTER_BYTES;
use crate::registers::guc::Gdrst;
use crate::sync::MutexGuard;
use crate::topology::{EngineId, UnitId};
use crate::units::{StepLock, Unit};
use arctic_base::registers::{read_dwords, write_dwords};

/// Offset of the GGTT window in GTTMMADR (V13-004).
pub const GGTT_WINDOW: u64 = 8 << 20;
const _: () = assert!(GTTMMADR_BYTES == GGTT_WINDOW + GGTT_BYTES as u64, "GTTMMADR ends with the GGTT window");

/// Maximum time for which a register access waits until a worker has executed an earlier deferred request.
const DEFERRED_WAIT: Duration = Duration::from_secs(1);

/// Maximum number of commands that an engine executes in one step.
pub const STEP_BUDGET: u32 = 1024;

/// The card's own threads.
struct Scrubber {
    /// The scrubber thread.
    thread: Thread,
    /// Beginning of the names of all of the card's own threads.
    names: String,
}

/// The card.
pub struct Card {
    gt: Gt,
    engines: Engines,
    guc: Arc<GucUnit>,
    guc_pending: GucPending,
    deferred: Arc<Deferred>,
    /// All units that workers step, in the order of their locks.
    units: Box<[Arc<dyn SteppedUnit>]>,
    /// The scrubber thread, which returns memory to the host. If not set, [`Card::step`] does this.
    scrubber: OnceLock<Scrubber>,
    /// The scrubber thread, and the threads that release the local memory of VFs in reset.
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Reference to the card for the threads that it starts.
    this: Weak<Card>,
    /// The files that back the BARs; empty if the card was created without files.
    bar_files: BarFiles,
    /// Number of enabled VFs: VFs 1 to this number exist.
    vfs: AtomicU8,
    event_count: EventCount,
    stopping: AtomicBool,
    panics: AtomicU64,
}

impl Card {
    /// Creates and powers on the card that `profile` describes. `memories` must have the sizes given in [`Memories`].
    /// Without files for its BARs, a VMM cannot map them.
    pub fn power_on(
        profile: &CardProfile,
        memories: Memories,
        dma: Arc<dyn Dma>,
        sink: Arc<dyn InterruptSink>,
        clock: Arc<dyn Clock>,
    ) -> Arc<Self> {
        let host = Host { memory: dma, interrupts: sink, clock };
        Card::with_files(profile, memories, BarFiles::default(), host)
    }

    fn with_files(profile: &CardProfile, memories: Memories, bar_files: BarFiles, host: Host) -> Arc<Self> {
        let layout = MemoryLayout::of(profile.local_memory);
        let Memories { local, ggtt, vfs } = memories;
        let memory = Memory::new(profile.generation().page_tables, local, Ggtt::new(ggtt), host.memory)
            .with_flat_ccs(layout.usable)
            .with_vfs(vfs);
        let engines = Engines::new(profile.generation(), |engine| profile.has(engine));
        Card::assembled(Gt::new(profile, memory, host.interrupts, host.clock), engines, Vec::new(), bar_files)
    }

    /// Creates a card in the state after reset from its shared state and the engines that are not fused off.
    pub fn assemble(gt: Gt, engines: Engines) -> Arc<Self> {
        Card::assembled(gt, engines, Vec::new(), BarFiles::default())
    }

    /// Creates a card with these units beside the GuC and the engines.
    pub(crate) fn assembled(
        gt: Gt,
        engines: Engines,
        further: Vec<Arc<dyn SteppedUnit>>,
        bar_files: BarFiles,
    ) -> Arc<Self> {
        let CardUnits { guc, deferred, all: units } = CardUnits::new(&engines, &gt.observation, further);
        Arc::new_cyclic(|this| Card {
            gt,
            engines,
            guc,
            guc_pending: GucPending::new(),
            deferred,
            units,
            scrubber: OnceLock::new(),
            threads: Mutex::new(Vec::new()),
            this: this.clone(),
            bar_files,
            vfs: AtomicU8::new(0),
            event_count: EventCount::new(),
            stopping: AtomicBool::new(false),
            panics: AtomicU64::new(0),
        })
    }

    /// The state shared by the GuC and all engines.
    pub fn gt(&self) -> &Gt {
        &self.gt
    }

    /// The engines.
    pub fn engines(&self) -> &Engines {
        &self.engines
    }

    /// Number of steps that have panicked. Each one is a bug in the device model.
    pub fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }

    /// Reads GTTMMADR of `function` at `offset`, in any width. Unimplemented registers read as 0 (V13-018).
    pub fn read_gttmmadr(&self, function: Function, offset: u64, data: &mut [u8]) {
        if !self.enabled(function) {
            data.fill(0xff);
            return;
        }
        data.fill(0);
        if offset >= GGTT_WINDOW {
            let at = offset.saturating_sub(GGTT_WINDOW);
            self.gt.memory.ggtt().read(function, at, data);
            return;
        }
        if let Some(page) = Page::at(offset) {
            self.read_doorbell(function, page, offset, data);
            return;
        }
        read_dwords(offset, data, |at| match u32::try_from(at) {
            Ok(register) if register < REGISTER_BYTES => self.gt.mmio_read(function, register),
            _ => NACK,
        });
    }

    /// Writes GTTMMADR of `function` at `offset`, in any width. All effects of the write are complete on return, except
    /// for requests deferred to a worker.
    pub fn write_gttmmadr(&self, function: Function, offset: u64, data: &[u8]) {
        if !self.enabled(function) {
            return;
        }
        if offset >= GGTT_WINDOW {
            self.gt.memory.ggtt().write(function, offset.saturating_sub(GGTT_WINDOW), data);
            return;
        }
        if let Some(page) = Page::at(offset) {
            // The doorbell window contains no registers, and doorbells ignore the written value (V13-007, V13-091).
            self.ring_doorbell(function, page);
            return;
        }
        write_dwords(offset, data, |at, value, lanes| {
            let Some(register) = u32::try_from(at).ok().filter(|at| *at < REGISTER_BYTES) else { return };
            if let Some(request) = self.gt.mmio_write(function, register, value, lanes) {
                self.carry_out(function, request);
            }
        });
    }

    /// Executes a request from a register write of `function`, or defers it to a worker if it may have to request guest
    /// memory from the function's client, or waits for a step that does.
    fn carry_out(&self, function: Function, request: SideEffect) {
        use SideEffect::{EngineStatus, LoadQueue, StartGucDma, Submit, TlbInvalidate};
        let reaches_memory =
            matches!(request, StartGucDma | Submit(..) | LoadQueue(_) | EngineStatus(_) | TlbInvalidate);
        if reaches_memory && self.gt.memory.may_wait_for_client(function) {
            if request == StartGucDma && self.start_dma_without_messages() {
                return;
            }
            if request == TlbInvalidate {
                // Usually no step waits for the client. i915 before 6.8 polls the register for 4 ms only, in which a
                // worker may not run.
                if self.end_steps_soon() {
                    return;
                }
                self.gt.begin_tlb_invalidation();
            }
            let deferred = self.deferred.push(request).or_else(|request| {
                self.wake_workers();
                // Executed here, the request would overtake those before it.
                let limit = if self.scrubber.get().is_some() { DEFERRED_WAIT } else { Duration::ZERO };
                self.deferred.push_within(request, limit)
            });
            if deferred.is_ok() {
                self.wake_workers();
                return;
            }
            self.deferred_ended(request);
        }
        self.carry_out_now(function, request);
    }

    /// Executes a transfer of the GuC's DMA engine, if it needs no message to the client and the GuC's lock is free. Returns
    /// whether it is complete. Firmware is mostly in local memory, and drivers poll for the end for 100 ms only, in which a
    /// worker may not run.
    fn start_dma_without_messages(&self) -> bool {
        // Otherwise it would overtake requests before it.
        if !self.deferred.is_empty() {
            return false;
        }
        let views = self.gt.memory.views_without_messages();
        self.guc.try_lock().is_some_and(|mut guc| !guc.start_dma(&self.gt, &self.engines, &views))
    }

    fn carry_out_now(&self, function: Function, request: SideEffect) {
        match request {
            SideEffect::NotifyGuc => self.notify_guc(function),
            SideEffect::ServeDoorbells => self.kick_guc(function.bit()),
            SideEffect::StartGucDma => {
                let again = self.guc_for(function).start_dma(&self.gt, &self.engines, &self.gt.memory.views());
                // At the end of the queue: the client may have to send another request before it answers.
                if again && self.deferred.push(request).is_ok() {
                    self.wake_workers();
                    std::thread::yield_now();
                }
            }
            SideEffect::Reset(domains) => {
                // Requests deferred before the reset are executed before it, unless a worker is executing one: it and
                // those behind it then race with the reset, as on hardware.
                while self.carry_out_deferred() {}
                self.reset_domains(domains);
            }
            SideEffect::DriverFlr => {
                self.reset_card();
                self.gt.finish_driver_flr();
            }
            SideEffect::TlbInvalidate => self.end_steps(Some(function)),
            SideEffect::Report(request) => {
                self.gt.trigger_report(request, None);
                self.write_reports();
            }
            SideEffect::Observe => self.write_reports(),
            SideEffect::Submit(engine, value) => self.engines.lock(engine).push(&self.gt, value),
            SideEffect::LoadQueue(engine) => self.load_queue(engine),
            SideEffect::EngineStatus(engine) => {
                // Locked as for a step: the engine writes the same page, whose memory must not be unmapped meanwhile.
                let _step = self.engines.lock(engine);
                let memory = &self.gt.memory;
                let mut tlb = Tlb::default();
                let views = memory.step_views(engine);
                self.gt.report_error_bit(&mut memory.gam(Function::PF, &views, &mut tlb), engine);
            }
            // The engine stops at a step boundary. It has passed one once its lock has been acquired.
            SideEffect::EngineReset(engine, _) => drop(self.engines.lock(engine)),
        }
    }

    /// Executes the next deferred register-write request. Only requests of the PF are deferred.
    fn carry_out_deferred(&self) -> bool {
        self.deferred.next(|request| {
            self.carry_out_now(Function::PF, request);
            self.deferred_ended(request);
        })
    }

    /// A request is no longer deferred.
    fn deferred_ended(&self, request: SideEffect) {
        if request == SideEffect::TlbInvalidate {
            self.gt.end_tlb_invalidation();
        }
    }

    /// RING_EXECLIST_CONTROL: loads the execution queue that the host has written for the engine.
    fn load_queue(&self, id: EngineId) {
        if !self.engines.has(id) {
            return;
        }
        {
            let mut engine = self.engines.lock(id);
            engine.load_queue(&self.gt);
            self.engines.set_runnable(id, engine.loaded().is_some());
        }
        self.wake_workers();
    }

    /// Reports `outcome` to the GuC if the GuC submitted the context; contexts from other submitters are ignored.
    fn report_outcome(&self, engine: EngineId, load: Load, outcome: Outcome, skipped: Option<SkippedCommand>) {
        if load.submitter == Submitter::Guc {
            self.engines.report(EngineReport { engine, load, outcome, skipped });
            self.kick_guc(load.function.bit());
        }
    }

    /// GDRST: resets the GuC and the engines selected by `domains`; with the bit of the whole GT, all units. Their work and
    /// state are lost.
    fn reset_domains(&self, domains: u32) {
        let mut guc = self.guc_for(Function::PF);
        let request = Gdrst::from(domains);
        if request.guc() || request.full() {
            guc.reset(&self.gt);
            self.guc.publish_queued(&guc);
        }
        for id in self.gt.generation.engines.all() {
            if domains >> self.gt.engine(id).reset & 1 != 0 || request.full() {
                let mut engine = self.engines.lock(id);
                engine.reset(&self.gt);
                self.engines.set_runnable(id, false);
                self.gt.registers.reset_engine(id);
            }
        }
        if request.full() {
            let further = guc.units().iter().filter(|unit| !matches!(unit.id(), UnitId::Engine(_)));
            further.filter_map(Unit::hold).for_each(|mut unit| unit.reset(&self.gt));
        }
        self.gt.memory.invalidate(ALL_FUNCTIONS);
    }

    /// Resets the physical function: registers, GuC and engines return to their power-on state. Memory keeps its
    /// contents; local memory and GGTT pages that were assigned to VFs return to the PF.
    pub fn reset_card(&self) {
        self.recover();
        // The PF's memory is not emptied, so nothing remains to be done.
        let _ = self.function_state(Function::PF).reset();
    }

    /// Resets all functions, with the GuC's lock held by the caller.
    fn reset_all(&self, mut guc: MutexGuard<'_, Guc>) {
        // Atomic with respect to other threads: a concurrent load is either dropped or executed after the reset.
        guc.reset(&self.gt);
        self.guc.publish_queued(&guc);
        self.deferred.clear().into_iter().for_each(|request| self.deferred_ended(request));
        let mut held = guc.units().hold();
        held.iter_mut().for_each(|unit| unit.reset(&self.gt));
        self.gt.memory.forget_vfs();
        self.gt.reset();
        drop(held);
        drop(guc);
        // Prevents data remanence: the next user of a VF must not read the previous user's data. Done in bounded
        // pieces, with no lock held.
        for vf in Function::vfs() {
            self.gt.memory.free_unused(vf);
        }
        self.wake_workers();
    }

    /// Requests a GuC step on behalf of `functions` (one bit each).
    fn kick_guc(&self, functions: u64) {
        self.guc_pending.call(functions);
        self.wake_workers();
    }

    /// Wakes sleeping workers. Ordering: the work must be visible to them before the call.
    pub fn wake_workers(&self) {
        self.event_count.post();
    }

    /// Body of the scrubber thread: returns memory that functions no longer use to the host until [`OwnThreads::stop_threads`]. The
    /// thread is separate from the workers because the client of a VF also has the VF's local memory file open, and can
    /// delay a system call on that file for as long as one of its own takes.
    fn run_scrubber(&self) {
        while !self.stopping.load(Ordering::Acquire) {
            if self.guarded(|| self.gt.memory.scrub()) != Some(true) {
                std::thread::park();
            }
        }
    }

    /// Runs `step` and returns its result. If it panics, recovers the card and returns `None`.
    fn guarded<T>(&self, step: impl FnOnce() -> T) -> Option<T> {
        let finished = catch_unwind(AssertUnwindSafe(step)).ok();
        if finished.is_none() {
            if self.panics.fetch_add(1, Ordering::Relaxed) == 0 {
                log::error!("a step of the device model panicked (bug): the affected unit is reset");
            }
            self.recover();
        }
        finished
    }

    /// Resets the unit that a panic left in an inconsistent state. A poisoned lock shows which one panicked.
    fn recover(&self) {
        let panicked = |unit: &&Arc<dyn SteppedUnit>| unit.lock().is_some_and(StepLock::is_poisoned);
        self.units.iter().filter(panicked).for_each(|unit| unit.recover(self));
        if let Err(error) = self.guc().restart_builtin(&self.gt, &self.engines) {
            log::error!("the GuC failed to restart after a reset: {error:?}");
        }
        self.kick_guc(u64::MAX);
    }
}

impl OwnThreads for Card {
    /// Starts the scrubber thread.
    fn start_threads(&self, names: &str) -> std::io::Result<()> {
        let Some(card) = self.this.upgrade() else { return Ok(()) };
        let scrubber = std::thread::Builder::new().name(format!("{names}scrub")).spawn(move || card.run_scrubber())?;
        // Set only here.
        let _ = self.scrubber.set(Scrubber { thread: scrubber.thread().clone(), names: names.to_owned() });
        self.threads().push(scrubber);
        Ok(())
    }

    /// Ends and joins the scrubber thread and the threads of resets.
    fn stop_threads(&self) {
        self.stopping.store(true, Ordering::Release);
        self.scrubber.get().inspect(|scrubber| scrubber.thread.unpark());
        let threads = std::mem::take(&mut *self.threads());
        for thread in threads {
            let _ = thread.join();
        }
    }
}
