//! The engines: what they are, their logical contexts, and the command streamer that runs them.

mod access;
mod alu;
mod atomic;
mod attention;
mod clock;
mod control;
mod counters;
mod error;
mod fetch;
mod flush;
mod head;
pub mod id;
mod image;
mod layout;
mod lrc;
pub mod power;
mod reg;
mod remap;
mod stream;
mod streamer;
mod switch;
#[cfg(test)]
mod tests;
mod transfer;
mod turnstile;
mod watchdog;
mod whitelist;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard};

use crate::execlist::descriptor::Descriptor;
use crate::execlist::queue::Queue;
use crate::execlist::status::{ContextStatus, Detail};
use crate::execlist::{self, Execlist, Loaded};
use crate::gt::Gt;
use crate::interrupts::CONTEXT_SWITCH;
use crate::memory::{Fault, Tlb, Views};
use crate::trace::What;
use crate::world::{Function, ticks};
use attention::{Attention, Changes};
pub use clock::EngineClock;
pub use counters::Counters;
use fetch::Window;
use id::EngineId;
pub(crate) use layout::GLOBALS;
pub use layout::blank_image;
use streamer::{Running, Streamer};
pub use turnstile::Held;
use turnstile::Turnstile;

/// Who has put a context on an engine, and hears how it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submitter {
    /// The GuC, by reports.
    Guc,
    /// The host, through the engine's own queue: by the context status buffer (V8-057).
    Execlist,
}

/// A logical context to restore and run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// The function that the work is done for, from the GuC's own records (rule 1 of the design); the registers of a
    /// queue are the PF's alone, and so are its contexts.
    pub function: Function,
    /// Who submitted it.
    pub submitter: Submitter,
    /// The submitter's name of the context: the GuC's ticket, which comes back in reports, or the element of the queue.
    pub context: u32,
    /// Context descriptor: GGTT address of the PPHWSP, bit 0 valid, bit 8 PPGTT; names in the high dword (contract F.1,
    /// V8-030, V8-031).
    pub descriptor: u64,
}

impl Load {
    /// The descriptor's fields.
    pub fn descriptor(&self) -> Descriptor {
        Descriptor(self.descriptor)
    }
}

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing is loaded.
    Idle,
    /// The budget is used up; there is more to do at once.
    More,
    /// A semaphore or event is not satisfied; the context stays loaded, look again later.
    Waiting,
    /// A batch goes round a loop that only the world outside can end: as before, but the time is the context's.
    Spinning,
    /// The ring ran empty: the context is saved and unloaded.
    Complete,
    /// The context left before its end, for a preemption request that was honoured at an arbitration point or by an
    /// unsuccessful wait (V8-081): it is saved and unloaded.
    Preempted,
    /// The context cannot go on (fault or illegal command); it stays loaded until the engine is reset.
    Halted(Halt),
}

/// Why a context cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halt {
    /// A memory access without translation: reported as CAT error.
    Fault(Fault),
    /// A command that the engine does not have, at this GGTT or PPGTT address.
    IllegalCommand {
        /// Header dword.
        header: u32,
        /// Where it stood.
        address: u64,
    },
    /// The step itself failed: a bug of the card, not of the context. Nothing is loaded any more.
    Bug,
}

/// One engine with its command streamer.
pub struct Engine {
    id: EngineId,
    tlb: Tlb,
    window: Window,
    running: Option<Running>,
    execlist: Execlist,
    /// The PF's values of [`GLOBALS`] while a virtual function's context is loaded.
    globals: [u32; GLOBALS.len()],
    counters: Counters,
}

impl Engine {
    /// An engine with nothing loaded.
    pub fn new(id: EngineId) -> Self {
        Engine {
            id,
            tlb: Tlb::default(),
            window: Window::default(),
            running: None,
            execlist: Execlist::new(id.info().instance),
            globals: Default::default(),
            counters: Counters::default(),
        }
    }

    /// Which engine it is.
    pub fn id(&self) -> EngineId {
        self.id
    }

    /// What is loaded.
    pub fn loaded(&self) -> Option<Load> {
        self.running.as_ref().map(|running| running.load)
    }

    /// What was asked of the engine and not done, or done in part, since the card came up.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Restores a context for the GuC; the engine must have nothing loaded. It runs in the steps that follow.
    pub fn load(&mut self, gt: &Gt, load: Load) {
        debug_assert!(self.running.is_none(), "{} is loaded twice", self.id.info().name);
        let queue = Queue::of(Descriptor(load.descriptor | 1));
        if let Loaded::Start(status, ..) = self.execlist.load(queue, None, false) {
            self.tell(gt, &gt.memory.views(), status, load.submitter);
        }
        self.start(gt, load);
        self.show_status(gt);
    }

    fn start(&mut self, gt: &Gt, load: Load) {
        // A context that comes back sees its page tables as they are now: xe changes those of a preempted context
        // without another invalidation (xe: xe_pt.c, bind_op_prepare).
        self.tlb.flush();
        // Until the image is read, at the next step, its clock stands.
        let now = gt.clock.now();
        gt.context_clocks[self.id.index()].stop(ticks(now));
        gt.engine_clocks[self.id.index()].load(now);
        self.exchange_globals(gt, load.function, Exchange::Enter);
        self.running = Some(Running::new(load));
        let Load { function, context, descriptor, .. } = load;
        gt.trace.tell(function, Some(self.id), || What::Load { context, descriptor });
    }

    /// The loaded context's RING_TAIL in memory has moved (lite restore): look again.
    pub fn tail_moved(&mut self) {
        if let Some(running) = &mut self.running {
            running.tail_moved = true;
        }
    }

    /// Asks the loaded context to leave at its next arbitration point: the GuC preempts to idle.
    pub fn request_preemption(&mut self) {
        if let Some(running) = &mut self.running
            && !running.preempt
        {
            running.preempt = true;
            self.execlist.load(Queue::default(), Some(running.load.descriptor()), false);
        }
    }

    /// The host has written a dword to ELSP (V8-011).
    pub fn push(&mut self, gt: &Gt, value: u32) {
        self.execlist.port.push(&gt.registers, self.id.info().mmio_base, value);
    }

    /// The host loads the submission queue (V8-013..020). Nothing happens where the engine's mode register does not
    /// enable it (V8-008).
    pub fn load_queue(&mut self, gt: &Gt) {
        let base = self.id.info().mmio_base;
        if gt.registers.value(base + execlist::GFX_MODE) & execlist::DISABLE_LEGACY_MODE == 0 {
            self.counters.refused_loads += 1;
            return;
        }
        let queue = Queue::sample(&gt.registers, base);
        let running = self.running.as_ref();
        let goes_on = running.is_some_and(|it| it.load.submitter == Submitter::Execlist && it.halted.is_none());
        let descriptor = running.map(|it| it.load.descriptor());
        let views = gt.memory.views();
        match self.execlist.load(queue, descriptor, goes_on) {
            Loaded::Start(status, element, descriptor) => {
                self.tell(gt, &views, status, Submitter::Execlist);
                self.start(gt, of_queue(element, descriptor));
            }
            Loaded::StillIdle(status) => self.tell(gt, &views, status, Submitter::Execlist),
            Loaded::Lite(status, element, descriptor) => {
                if let Some(running) = &mut self.running {
                    running.load = of_queue(element, descriptor);
                    running.tail_moved = true;
                    running.preempt = false;
                }
                self.tell(gt, &views, status, Submitter::Execlist);
            }
            Loaded::Preempt => {
                if let Some(running) = &mut self.running {
                    running.preempt = true;
                }
            }
        }
        self.show_status(gt);
    }

    /// Reports a switch to whoever schedules: to the host in the status buffer, then by interrupt (V8-055), in either
    /// case to the FIFO of the GuC (V8-060). A masked reason is not reported at all (V8-056).
    fn tell(&mut self, gt: &Gt, views: &Views<'_>, status: ContextStatus, submitter: Submitter) {
        let base = self.id.info().mmio_base;
        if gt.registers.value(base + execlist::CSB_INTERRUPT_MASK) & status.reason() as u32 != 0 {
            return;
        }
        gt.csb_ports[self.id.index()].push(status);
        let whose = self.running.as_ref().map_or(Function::PF, |running| running.load.function);
        gt.trace.tell(whose, Some(self.id), || What::Switch { status: status.0 });
        if submitter == Submitter::Execlist {
            let mut gam = gt.memory.gam(Function::PF, views, &mut self.tlb);
            if execlist::buffer::report(&gt.registers, base, &mut gam, status).is_err() {
                self.counters.lost_reports += 1;
            }
            gt.interrupts.raise_engine(self.id, CONTEXT_SWITCH);
        }
    }

    /// `load` has left for the reason `detail`: what follows it in the queue starts (V8-016).
    fn switch(&mut self, gt: &Gt, views: &Views<'_>, load: Load, detail: Detail) {
        let (status, next) = self.execlist.switch(load.descriptor(), detail);
        // What the GuC's context leaves for is the host's new queue, if anything.
        let submitter = if next.is_some() { Submitter::Execlist } else { load.submitter };
        self.tell(gt, views, status, submitter);
        if let Some((element, descriptor)) = next {
            self.start(gt, of_queue(element, descriptor));
        }
    }

    /// Shows in EXECLIST_STATUS how the queue stands (V8-022).
    fn show_status(&self, gt: &Gt) {
        let running = self.running.as_ref();
        let arbitration = running.is_some_and(|running| running.arbitration);
        let status = self.execlist.shown(running.map(|running| running.load.descriptor()), arbitration).register();
        let at = self.id.info().mmio_base + execlist::STATUS;
        gt.registers.set(at, status as u32);
        gt.registers.set(at + 4, (status >> 32) as u32);
    }

    /// Resets the engine: whatever is loaded is stopped where it is, its HEAD and CTX_TIMESTAMP saved, and unloaded.
    pub fn reset(&mut self, gt: &Gt) -> Option<Load> {
        self.execlist.reset();
        let running = self.running.take();
        self.show_status(gt);
        let running = running?;
        gt.trace.tell(running.load.function, Some(self.id), || What::Reset);
        let timestamp = gt.context_clocks[self.id.index()].stop(gt.timestamp());
        if running.restored() {
            let views = gt.memory.views();
            let mut gam = gt.memory.gam(running.load.function, &views, &mut self.tlb);
            // A context whose image is out of reach has nobody to tell.
            let _ = running.lrc.save_stopped(&mut gam, &running.position, timestamp);
        }
        self.tlb.flush();
        self.forget(gt, running.load.function);
        Some(running.load)
    }

    /// Runs for at most about `budget` commands or 1 ms of host time, whichever comes first.
    pub fn step(&mut self, gt: &Gt, budget: u32) -> Outcome {
        let Some(running) = &mut self.running else { return Outcome::Idle };
        if let Some(halt) = running.halted {
            return Outcome::Halted(halt);
        }
        let clock = &gt.engine_clocks[self.id.index()];
        let started = gt.clock.now();
        clock.begin_step(started);
        self.window.flush();
        let info = self.id.info();
        let views = gt.memory.views();
        let mut streamer = Streamer {
            gt,
            started,
            gam: gt.memory.gam(running.load.function, &views, &mut self.tlb),
            id: self.id,
            class: info.class,
            base: info.mmio_base,
            running,
            counters: &mut self.counters,
        };
        let outcome = streamer.run(&mut self.window, budget);
        clock.end_step(gt.clock.now(), matches!(outcome, Outcome::Waiting | Outcome::Spinning));
        if matches!(outcome, Outcome::Complete | Outcome::Preempted)
            && let Some(running) = self.running.take()
        {
            self.forget(gt, running.load.function);
            let detail = match running.waits_at {
                _ if outcome == Outcome::Complete => Detail::Complete,
                Some(header) => Detail::of_wait(header),
                None => Detail::Preempted,
            };
            self.switch(gt, &views, running.load, detail);
        }
        self.show_status(gt);
        outcome
    }

    /// A context of `function` has left the engine: of a virtual function's nothing stays in the registers, some of which
    /// belong to more than the engine. What the physical function leaves there is seen by its own driver alone.
    fn forget(&mut self, gt: &Gt, function: Function) {
        if function.is_vf() {
            layout::clear_context(self.id, &gt.registers);
            gt.registers.set(self.id.info().mmio_base + reg::PR_CTR, 0);
            self.exchange_globals(gt, function, Exchange::Leave);
        }
    }

    /// What a virtual function's contexts share is in the registers while one of them is loaded, and the PF's otherwise.
    fn exchange_globals(&mut self, gt: &Gt, function: Function, way: Exchange) {
        let Some(vf) = gt.vf(function) else { return };
        let theirs = vf.globals(self.id);
        for ((own, ours), theirs) in GLOBALS.into_iter().zip(&mut self.globals).zip(theirs) {
            let register = self.id.info().mmio_base + own;
            if way == Exchange::Enter {
                *ours = gt.registers.value(register);
                gt.registers.set(register, theirs.load(Ordering::Relaxed));
            } else {
                theirs.store(gt.registers.value(register), Ordering::Relaxed);
                gt.registers.set(register, *ours);
            }
        }
    }

    /// When an engine that waits has to be looked at again at the latest, in ns of the card's clock: its watchdog ends the
    /// wait.
    pub fn wake_at(&self) -> Option<u64> {
        self.running.as_ref()?.wait_ends
    }
}

/// An element of the host's queue.
fn of_queue(element: u8, descriptor: Descriptor) -> Load {
    Load {
        function: Function::PF,
        submitter: Submitter::Execlist,
        context: u32::from(element),
        descriptor: descriptor.0,
    }
}

/// Whether a virtual function's values come or go.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Exchange {
    Enter,
    Leave,
}

/// What an engine has to tell the GuC after a step of a context that the GuC has loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineReport {
    /// The engine.
    pub engine: EngineId,
    /// The context that ran ([`Load::context`]) and its function.
    pub load: Load,
    /// `Waiting`, `Spinning`, `Complete`, `Preempted` or `Halted`.
    pub outcome: Outcome,
}

/// All engines of the card, each behind its own lock. Lock order: GuC before engine.
pub struct Engines {
    slots: Vec<Slot>,
    changes: Changes,
    reports: Mutex<Vec<EngineReport>>,
}

struct Slot {
    engine: Turnstile<Engine>,
    present: bool,
    attention: Attention,
}

impl Engines {
    /// All engines of the die; those that `present` denies are fused off and never run.
    pub fn new(present: impl Fn(EngineId) -> bool) -> Self {
        let slot =
            |id| Slot { engine: Turnstile::new(Engine::new(id)), present: present(id), attention: Attention::new() };
        Engines { slots: EngineId::all().map(slot).collect(), changes: Changes::new(), reports: Mutex::default() }
    }

    /// Engines that the fuses leave.
    pub fn present(&self) -> impl Iterator<Item = EngineId> {
        EngineId::all().filter(|id| self.slots[id.index()].present)
    }

    /// Whether the fuses leave the engine.
    pub fn has(&self, id: EngineId) -> bool {
        self.slots[id.index()].present
    }

    /// Takes an engine's lock; waits at most for one step. A worker that steps the engine again and again lets the
    /// caller in between two steps, because [`Engines::try_lock`] gives way.
    pub fn lock(&self, id: EngineId) -> MutexGuard<'_, Engine> {
        self.slots[id.index()].engine.lock()
    }

    /// Unloads, without a look at it, what an engine had loaded whose step panicked.
    pub fn abandon(&self, id: EngineId, gt: &Gt) -> Option<Load> {
        let lock = &self.slots[id.index()].engine;
        if !lock.mutex().is_poisoned() {
            return None;
        }
        let mut engine = lock.lock();
        lock.mutex().clear_poison();
        self.set_runnable(id, false);
        gt.context_clocks[id.index()].stop(gt.timestamp());
        engine.tlb.flush();
        engine.execlist.reset();
        let running = engine.running.take();
        engine.show_status(gt);
        let load = running?.load;
        engine.forget(gt, load.function);
        Some(load)
    }

    /// Whether somebody waits in [`Engines::lock`].
    pub fn wanted(&self, id: EngineId) -> bool {
        self.slots[id.index()].engine.wanted()
    }

    /// Takes an engine's lock if nobody has it and nobody waits for it.
    pub fn try_lock(&self, id: EngineId) -> Option<MutexGuard<'_, Engine>> {
        self.slots[id.index()].engine.try_lock()
    }

    /// Marks an engine as having something to do at once, or nothing; with its lock held.
    pub fn set_runnable(&self, id: EngineId, runnable: bool) {
        self.slots[id.index()].attention.set_runnable(runnable);
    }

    /// How often memory may have changed: to be read before a step that [`Engines::put_off`] may follow.
    pub fn changes(&self) -> u64 {
        self.changes.count()
    }

    /// Puts the next look at a waiting engine off, longer each time, but for what has changed since `seen`; true for the
    /// first time in a row.
    pub fn put_off(&self, id: EngineId, now: u64, seen: u64) -> bool {
        self.slots[id.index()].attention.put_off(now, &self.changes, seen)
    }

    /// The next look at a waiting engine is at `at` (ns) at the latest.
    pub fn look_by(&self, id: EngineId, at: u64) {
        self.slots[id.index()].attention.look_by(at);
    }

    /// Whether the engine's last look found that it has to wait for memory to change.
    pub fn waiting(&self, id: EngineId) -> bool {
        self.slots[id.index()].attention.waiting()
    }

    /// When a runnable engine is to be stepped next, in ns of the card's clock.
    pub fn look_at(&self, id: EngineId) -> u64 {
        self.slots[id.index()].attention.look_at()
    }

    /// Memory has changed: what any engine waits for may be there.
    pub fn look_at_all(&self) {
        self.changes.tell(self.slots.iter().map(|slot| &slot.attention));
    }

    /// Whether the engine has something to do.
    pub fn runnable(&self, id: EngineId) -> bool {
        self.slots[id.index()].attention.runnable()
    }

    /// Hands a report to the scheduler.
    pub fn report(&self, report: EngineReport) {
        self.reports.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(report);
    }

    /// Takes all reports, oldest first, into `into` (emptied first).
    pub fn take_reports(&self, into: &mut Vec<EngineReport>) {
        into.clear();
        into.append(&mut self.reports.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
    }

    /// What the engines were asked for and did not do, or did in part, by engine and name: for the report.
    pub fn undone(&self) -> BTreeMap<String, u64> {
        let of = |id: EngineId| self.lock(id).counters().told().into_iter().map(move |(what, n)| (id, what, n));
        self.present().flat_map(of).map(|(id, what, n)| (format!("{} {what}", id.info().name), n)).collect()
    }

    /// Takes the locks of all engines: none is in a step until they are dropped. Workers that come by do not go to sleep
    /// over it. Nobody else holds two engines at a time, and the caller must hold none.
    pub fn hold(&self) -> Vec<Held<'_, Engine>> {
        self.slots.iter().filter(|slot| slot.present).map(|slot| slot.engine.hold()).collect()
    }

    /// Runs `work` while no engine is in a step: for what no step may see half done.
    pub fn stand_still<T>(&self, work: impl FnOnce() -> T) -> T {
        let _held = self.hold();
        work()
    }

    /// Returns when every engine has passed a step boundary since the call (rule 8 of the design).
    pub fn pass_step_boundary(&self) {
        for id in self.present() {
            drop(self.lock(id));
        }
    }
}
