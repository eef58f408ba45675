//! The whole card: what a function's GTTMMADR reaches, what its register writes set in motion, and the work to do.

mod bell;
mod calls;
mod contention;
mod deferred;
mod functions;
pub mod status;
#[cfg(test)]
mod tests;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::Thread;
use std::time::Duration;

use self::bell::Bell;
use self::calls::Calls;
use self::contention::Contention;
use self::deferred::Deferred;
use crate::doorbell::{NACK, Page};
use crate::engine::id::{ENGINES, EngineClass, EngineId};
use crate::engine::{EngineReport, Engines, Halt, Load, Outcome, Submitter};
use crate::gt::virtual_function::pf_view;
use crate::gt::{Gt, Request};
use crate::guc::Guc;
use crate::interrupts::GUC2HOST;
use crate::memory::ggtt::{GGTT_BYTES, Ggtt};
use crate::memory::layout::MemoryLayout;
use crate::memory::{Memories, Memory};
use crate::profile::CardProfile;
use crate::registers::REGISTER_BYTES;
use crate::world::{Clock, Dma, Function, InterruptSink, MAX_VFS, functions};

/// First byte of the GGTT's window in GTTMMADR (V13-004).
pub const GGTT_WINDOW: u64 = 8 << 20;
/// Bytes of GTTMMADR.
pub const GTTMMADR_BYTES: u64 = GGTT_WINDOW + GGTT_BYTES as u64;

/// Commands an engine may execute in one step.
const STEP_BUDGET: u32 = 1024;

/// Bits of GDRST (xe: XEHP GRDOM; i915: intel_engine_cs.c get_reset_domain).
const GRDOM_FULL: u32 = 1 << 0;
const GRDOM_GUC: u32 = 1 << 3;

fn reset_domain(engine: EngineId) -> u32 {
    let info = &ENGINES[engine.index()];
    match info.class {
        EngineClass::Render | EngineClass::Compute => 1 << 1,
        EngineClass::Copy => 1 << 2,
        EngineClass::VideoDecode => 1 << (5 + info.instance),
        EngineClass::VideoEnhance => 1 << (13 + info.instance),
    }
}

/// What [`Card::work`] found to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Something was done; there may be more.
    Busy,
    /// Nothing to do before the time (ns of the card's clock), or before the bell rings.
    Idle(Option<u64>),
}

/// The card.
pub struct Card {
    gt: Gt,
    engines: Engines,
    guc: Mutex<Guc>,
    calls: Calls,
    deferred: Deferred,
    contention: Contention,
    /// The thread that gives memory back to the host; without one, that is part of [`Card::work`].
    scrubber: OnceLock<Thread>,
    /// How many VFs are enabled: 1 to this number.
    vfs: AtomicU8,
    bell: Bell,
    stopping: AtomicBool,
    panics: AtomicU64,
}

impl Card {
    /// The card that `profile` describes, powered on between its memories, which have the
    /// sizes that [`Memories`] names.
    pub fn power_on(
        profile: &CardProfile,
        memories: Memories,
        dma: Arc<dyn Dma>,
        sink: Arc<dyn InterruptSink>,
        clock: Arc<dyn Clock>,
    ) -> Arc<Self> {
        let layout = MemoryLayout::of(profile.local_memory);
        let Memories { local, ggtt, vfs } = memories;
        let memory = Memory::new(local, Ggtt::new(ggtt), dma).with_flat_ccs(layout.usable).with_vfs(vfs);
        Card::assemble(Gt::new(profile, memory, sink, clock), Engines::new(|engine| profile.has(engine)))
    }

    /// A card out of reset, made of its shared parts and the engines that the fuses leave.
    pub fn assemble(gt: Gt, engines: Engines) -> Arc<Self> {
        Arc::new(Card {
            gt,
            engines,
            guc: Mutex::new(Guc::new()),
            calls: Calls::new(),
            deferred: Deferred::new(),
            contention: Contention::new(),
            scrubber: OnceLock::new(),
            vfs: AtomicU8::new(0),
            bell: Bell::new(),
            stopping: AtomicBool::new(false),
            panics: AtomicU64::new(0),
        })
    }

    /// The shared parts.
    pub fn gt(&self) -> &Gt {
        &self.gt
    }

    /// The engines.
    pub fn engines(&self) -> &Engines {
        &self.engines
    }

    /// Steps that have panicked, each a bug of the card.
    pub fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }

    /// Reads GTTMMADR of `function` at `offset`, any width; what is not there reads 0 (V13-018).
    pub fn read(&self, function: Function, offset: u64, data: &mut [u8]) {
        if !self.enabled(function) {
            data.fill(0xff);
            return;
        }
        data.fill(0);
        if offset >= GGTT_WINDOW {
            self.gt.memory.ggtt().read(function, offset - GGTT_WINDOW, data);
            return;
        }
        if let Some(page) = Page::at(offset) {
            self.read_doorbell(function, page, offset, data);
            return;
        }
        let mut done = 0;
        while done < data.len() {
            let at = offset + done as u64;
            let within = (at % 4) as usize;
            let n = (4 - within).min(data.len() - done);
            let value = match u32::try_from(at) {
                Ok(register) if register < REGISTER_BYTES => self.read_register(function, register & !3),
                _ => NACK,
            };
            let value = value.to_le_bytes();
            data[done..done + n].copy_from_slice(&value[within..within + n]);
            done += n;
        }
    }

    /// Writes GTTMMADR of `function` at `offset`, any width; complete, with all it sets in motion, before it returns.
    pub fn write(&self, function: Function, offset: u64, data: &[u8]) {
        if !self.enabled(function) {
            return;
        }
        if offset >= GGTT_WINDOW {
            self.gt.memory.ggtt().write(function, offset - GGTT_WINDOW, data);
            return;
        }
        if let Some(page) = Page::at(offset) {
            // Here are no registers, and the value is nothing to a doorbell (V13-007, V13-091).
            self.ring_doorbell(function, page);
            return;
        }
        let mut done = 0;
        while done < data.len() {
            let at = offset + done as u64;
            let Some(register) = u32::try_from(at).ok().filter(|at| *at < REGISTER_BYTES) else { return };
            let within = (at % 4) as usize;
            let n = (4 - within).min(data.len() - done);
            let (mut value, mut lanes) = ([0; 4], [0; 4]);
            value[within..within + n].copy_from_slice(&data[done..done + n]);
            lanes[within..within + n].fill(0xff);
            let (value, lanes) = (u32::from_le_bytes(value), u32::from_le_bytes(lanes));
            let request = match (function.is_vf(), pf_view(register & !3)) {
                (true, _) => self.gt.write_vf_lanes(function, register & !3, value, lanes),
                (false, Some((vf, register))) => {
                    // The window shows a VF's registers; nobody rings for the VF through it.
                    self.gt.write_vf_lanes(vf, register, value, lanes);
                    None
                }
                (false, None) => self.gt.write_lanes(register & !3, value, lanes),
            };
            if let Some(request) = request {
                self.carry_out(function, request);
            }
            done += n;
        }
    }

    fn read_register(&self, function: Function, register: u32) -> u32 {
        match (function.is_vf(), pf_view(register)) {
            (true, _) => self.gt.read_vf(function, register),
            (false, Some((vf, register))) => self.gt.read_vf(vf, register),
            (false, None) => self.gt.read(register),
        }
    }

    /// Carries out what a register write of `function` asks for, or leaves it to a worker where it may ask the function's
    /// client for guest memory.
    fn carry_out(&self, function: Function, request: Request) {
        use Request::{EngineStatus, LoadQueue, StartGucDma, Submit};
        let reaches_memory = matches!(request, StartGucDma | Submit(..) | LoadQueue(_) | EngineStatus(_));
        if reaches_memory && self.gt.memory.asks_client(function) && self.deferred.push(request).is_ok() {
            self.call_workers();
            return;
        }
        self.carry_out_now(function, request);
    }

    fn carry_out_now(&self, function: Function, request: Request) {
        match request {
            Request::RingGuc => self.ring_guc(function),
            Request::LookAtDoorbells => self.call_guc(function.bit()),
            Request::StartGucDma => self.guc_for(function).start_dma(&self.gt),
            Request::Reset(domains) => {
                // What was written before the reset is not done after it.
                while self.carry_out_deferred() {}
                self.reset_domains(domains);
            }
            Request::DriverFlr => {
                self.reset();
                self.gt.finish_driver_flr();
            }
            Request::TlbInvalidate => self.engines.pass_step_boundary(),
            Request::Submit(engine, value) => self.engines.lock(engine).push(&self.gt, value),
            Request::LoadQueue(engine) => self.load_queue(engine),
            Request::EngineStatus(engine) => {
                // As in a step: the engine writes the same page, and nothing is taken away meanwhile.
                let _step = self.engines.lock(engine);
                self.gt.tell_error_bit(engine);
            }
            // The engine stops at a step boundary; once its lock was free it has passed one.
            Request::EngineReset(engine, _) => drop(self.engines.lock(engine)),
        }
    }

    /// Carries out the next request that a register write has left to a worker. Such are the PF's alone.
    fn carry_out_deferred(&self) -> bool {
        self.deferred.next(|request| self.carry_out_now(Function::PF, request))
    }

    /// RING_EXECLIST_CONTROL: a new queue for an engine, from the host.
    fn load_queue(&self, id: EngineId) {
        if !self.engines.has(id) {
            return;
        }
        {
            let mut engine = self.engines.lock(id);
            engine.load_queue(&self.gt);
            self.engines.set_runnable(id, engine.loaded().is_some());
        }
        self.call_workers();
    }

    /// Tells the GuC how a context of its own stands; nobody else's.
    fn report(&self, engine: EngineId, load: Load, outcome: Outcome) {
        if load.submitter == Submitter::Guc {
            self.engines.report(EngineReport { engine, load, outcome });
            self.call_guc(load.function.bit());
        }
    }

    /// GDRST: the GuC and the engines named by the domains lose their work and state.
    fn reset_domains(&self, domains: u32) {
        let mut guc = self.guc_for(Function::PF);
        if domains & (GRDOM_GUC | GRDOM_FULL) != 0 {
            guc.reset(&self.gt);
        }
        for id in EngineId::all() {
            if domains & (reset_domain(id) | GRDOM_FULL) != 0 {
                let mut engine = self.engines.lock(id);
                engine.reset(&self.gt);
                self.engines.set_runnable(id, false);
                self.gt.registers.reset_engine(id);
            }
        }
        self.gt.memory.invalidate();
    }

    /// Resets the physical function: registers, GuC and engines as after power-on; memory keeps its contents, and what a
    /// VF had of it is the PF's.
    pub fn reset(&self) {
        self.recover();
        // All of it is one thing to whoever comes by from another thread: what he loads is lost or comes afterwards.
        let mut guc = self.guc_for(Function::PF);
        guc.reset(&self.gt);
        self.deferred.clear();
        let mut held = self.engines.hold();
        for engine in &mut held {
            engine.reset(&self.gt);
            self.engines.set_runnable(engine.id(), false);
        }
        self.gt.memory.forget_vfs();
        self.gt.reset();
        drop(held);
        drop(guc);
        // The next user of a VF must not find what the last one had; without a lock, in pieces.
        for vf in (1..=MAX_VFS as u8).map(Function) {
            self.gt.memory.free_unused(vf);
        }
        self.call_workers();
    }

    /// Returns when every step that ran at the call has ended: what it had a view of, nobody holds any more (rule 8).
    pub fn quiesce(&self) {
        drop(self.guc());
        self.engines.pass_step_boundary();
    }

    /// There is something for the GuC to look at that concerns `functions` (a bit each).
    fn call_guc(&self, functions: u64) {
        self.calls.call(functions);
        self.call_workers();
    }

    /// There is work that somebody has put where workers look for it: those that sleep wake up.
    pub fn call_workers(&self) {
        self.bell.ring();
    }

    /// The GuC's step, if it has been called and nobody has taken the call: for a thread that is awake anyway and serves
    /// events. It spares the workers being woken for a ring that gives engines nothing to do.
    pub fn attend_guc(&self) {
        self.guarded(|| self.step_guc(self.gt.clock.now()));
    }

    /// Does one bounded piece of work, if there is any: a GuC step if one is due, and a step of each runnable engine. The
    /// engines have their steps however often functions call the GuC.
    pub fn work(&self) -> Turn {
        let now = self.gt.clock.now();
        let deferred = self.carry_out_deferred();
        let mut busy = self.step_guc(now) || deferred;
        let mut next = self.calls.deadline();
        for id in self.engines.present() {
            if !self.engines.runnable(id) {
                continue;
            }
            let look_at = self.engines.look_at(id);
            if look_at > now {
                next = next.min(look_at);
                continue;
            }
            busy |= self.step_engine(id, now);
        }
        if self.gt.memory.untidy() {
            match self.scrubber.get() {
                Some(thread) => thread.unpark(),
                None => busy |= self.gt.memory.scrub(),
            }
        }
        if busy { Turn::Busy } else { Turn::Idle((next != u64::MAX).then_some(next)) }
    }

    /// Has the GuC do a step if one is due; tells whether it did.
    fn step_guc(&self, now: u64) -> bool {
        if !self.calls.due(now) {
            return false;
        }
        let (step, sooner) = {
            let mut guc = self.guc_for_calls();
            let step = guc.step(&self.gt, &self.engines, self.calls.take_rang());
            self.publish_queued(&guc);
            (step, self.calls.set_deadline(step.next))
        };
        for function in functions(step.interrupts) {
            self.gt.interrupts_of(function).raise_guc(GUC2HOST);
        }
        for function in functions(step.messages) {
            self.gt.interrupts_of(function).send();
        }
        // Others may have gone to sleep until a later time than the GuC now wants, or past an engine it loaded.
        if sooner || self.engines.present().any(|id| self.engines.runnable(id)) {
            self.call_workers();
        }
        true
    }

    /// Steps one engine unless another worker is at it; tells whether it did.
    fn step_engine(&self, id: EngineId, now: u64) -> bool {
        let Some(mut engine) = self.engines.try_lock(id) else {
            let wanted = self.engines.wanted(id);
            if wanted {
                // Whoever wants it takes it for a moment; this worker must not sleep over it.
                std::thread::yield_now();
            }
            return wanted;
        };
        let Some(load) = engine.loaded() else {
            self.engines.set_runnable(id, false);
            return true;
        };
        let seen = self.engines.changes();
        let outcome = engine.step(&self.gt, STEP_BUDGET);
        match outcome {
            Outcome::Waiting | Outcome::Spinning => {
                let first = self.engines.put_off(id, now, seen);
                if let Some(at) = engine.wake_at() {
                    self.engines.look_by(id, at);
                }
                drop(engine);
                if first {
                    self.report(id, load, outcome);
                }
                return true;
            }
            Outcome::More => {
                self.engines.set_runnable(id, true);
                drop(engine);
            }
            Outcome::Idle | Outcome::Complete | Outcome::Preempted => {
                // The next element of a queue may be there already.
                self.engines.set_runnable(id, engine.loaded().is_some());
                drop(engine);
                self.report(id, load, outcome);
            }
            Outcome::Halted(_) => {
                self.engines.set_runnable(id, false);
                drop(engine);
                self.report(id, load, outcome);
            }
        }
        self.engines.look_at_all();
        true
    }

    /// Works until [`Card::stop`]: the body of a worker thread. A step that panics costs the engine or the GuC whose
    /// step it was its work, and nobody else (rule 6 of the design).
    pub fn run(&self) {
        while !self.stopping.load(Ordering::Acquire) {
            let seen = self.bell.rings();
            if let Some(Turn::Idle(until)) = self.guarded(|| self.work()) {
                self.wait(seen, until);
            }
        }
    }

    /// Gives back to the host what functions have left behind, until [`Card::stop`]: the body of a thread of its own. A VF's
    /// client holds the file of its local memory, too, and can make such a call on it last as long as its own.
    fn run_scrubber(&self) {
        while !self.stopping.load(Ordering::Acquire) {
            if self.guarded(|| self.gt.memory.scrub()) != Some(true) {
                std::thread::park();
            }
        }
    }

    /// What `step` tells; `None` if it panicked.
    fn guarded<T>(&self, step: impl FnOnce() -> T) -> Option<T> {
        let told = catch_unwind(AssertUnwindSafe(step)).ok();
        if told.is_none() {
            if self.panics.fetch_add(1, Ordering::Relaxed) == 0 {
                log::error!("a step of the card panicked, which is a bug: what it was about is reset");
            }
            self.recover();
        }
        told
    }

    /// Empties what panics have left half done: a poisoned lock tells whose step it was. The scheduler hears of an
    /// engine that has lost its context, the driver of a GuC that is in reset.
    fn recover(&self) {
        if self.guc.is_poisoned() {
            self.guc().reset(&self.gt);
            self.guc.clear_poison();
        }
        for id in EngineId::all() {
            if let Some(load) = self.engines.abandon(id, &self.gt) {
                self.report(id, load, Outcome::Halted(Halt::Bug));
            }
        }
        if let Err(error) = self.guc().revive(&self.gt, &self.engines) {
            log::error!("the GuC does not come up again: {error:?}");
        }
        self.call_guc(u64::MAX);
    }

    fn wait(&self, seen: u64, until: Option<u64>) {
        while self.bell.rings() == seen && !self.stopping.load(Ordering::Acquire) {
            let left = until.map(|until| until.saturating_sub(self.gt.clock.now()));
            if left == Some(0) {
                return;
            }
            self.bell.sleep(seen, left.map(Duration::from_nanos));
        }
    }

    /// Ends [`Card::run`] in every worker.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.bell.ring();
        self.scrubber.get().inspect(|thread| thread.unpark());
    }
}

/// The threads that drive the card; they end when this is dropped.
pub struct Workers {
    card: Arc<Card>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Workers {
    /// Starts `count` threads, and one that gives memory back to the host.
    pub fn start(card: Arc<Card>, count: usize) -> std::io::Result<Self> {
        let mut workers = Workers { card, threads: Vec::new() };
        let card = Arc::clone(&workers.card);
        let scrubber = std::thread::Builder::new().name("scrub".into()).spawn(move || card.run_scrubber())?;
        // Set once: a card has its workers once.
        let _ = workers.card.scrubber.set(scrubber.thread().clone());
        workers.threads.push(scrubber);
        for n in 0..count {
            let card = Arc::clone(&workers.card);
            workers.threads.push(std::thread::Builder::new().name(format!("gt{n}")).spawn(move || card.run())?);
        }
        Ok(workers)
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.card.stop();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
