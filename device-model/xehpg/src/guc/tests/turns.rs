// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The scheduler with several functions: dispatch of their contexts, and the messages to them.

use arctic_fidelity::proves;
use std::sync::atomic::{AtomicBool, Ordering};

use vm_memory::VolatileSlice;

use super::*;
use crate::guc::functions::context::{GucContextId, Registration};
use crate::guc::functions::share::{Priority, Share, ThresholdEvent};
use crate::guc::scheduler::Scheduler;
use crate::host::{Access, Dma, DmaFault, DmaView, FUNCTIONS};
use crate::memory::Tlb;

pub(super) const MS: u64 = 1_000_000;
/// Bytes of guest memory of each function, and of its GGTT range.
pub(super) const RAM: usize = 1 << 20;
/// Start of the functions' GGTT ranges.
pub(super) const GLOBAL: u64 = 0x1000_0000;
/// Bytes per context: images of its members 16 KiB apart, followed by its work queue.
const CONTEXT_BYTES: u64 = 0x1_0000;
/// Maximum number of contexts per function.
const CONTEXTS: u16 = 16;

/// Guest memory of all functions, separate for each.
pub(super) struct GuestRam(pub Vec<Arc<Ram>>);

/// Guest memory of one function.
pub(super) struct Ram {
    bytes: SharedRegion,
    /// All accesses are requests to the client.
    pub via_client: AtomicBool,
    /// The client clears what a request has read.
    pub cleared_by_reads: AtomicBool,
    /// Inaccessible addresses: for writes (true) or for reads (false).
    pub lost: Mutex<Option<(bool, std::ops::Range<u64>)>>,
    /// Inaccessible means that the client does not answer.
    pub unanswered: AtomicBool,
    /// Time in nanoseconds for which an access to an inaccessible address waits, on this clock.
    pub slow: Mutex<Option<(Arc<ManualClock>, u64)>>,
}

impl Ram {
    fn new() -> Self {
        Ram {
            bytes: SharedRegion::anonymous(RAM).unwrap(),
            via_client: AtomicBool::new(false),
            cleared_by_reads: AtomicBool::new(false),
            lost: Mutex::default(),
            unanswered: AtomicBool::new(false),
            slow: Mutex::default(),
        }
    }

    /// The client answers no read of the first `length` bytes, if `silent`.
    pub fn set_silent(&self, silent: bool, length: u64) {
        *self.lost.lock().unwrap() = silent.then_some((false, 0..length));
        self.unanswered.store(silent, Ordering::SeqCst);
    }

    fn remote(&self, writes: bool, iova: u64, len: usize) -> Result<VolatileSlice<'_>, DmaFault> {
        let lost = self.lost.lock().unwrap();
        let overlaps = |range: &std::ops::Range<u64>| iova < range.end && range.start < iova + len as u64;
        let reached = lost.as_ref().is_none_or(|(lost, range)| *lost != writes || !overlaps(range));
        if !reached && let Some((clock, time)) = &*self.slow.lock().unwrap() {
            clock.advance(*time);
        }
        self.bytes.slice(iova, len).filter(|_| reached).ok_or(DmaFault { iova })
    }
}

impl Default for GuestRam {
    fn default() -> Self {
        GuestRam((0..FUNCTIONS).map(|_| Arc::new(Ram::new())).collect())
    }
}

impl Dma for GuestRam {
    fn view(&self, function: Function) -> Arc<dyn DmaView> {
        self.0[function.index()].clone()
    }
}

impl DmaView for Ram {
    fn slice(&self, iova: u64, len: usize, _: Access) -> Option<VolatileSlice<'_>> {
        let direct = !self.via_client.load(Ordering::SeqCst) && self.lost.lock().unwrap().is_none();
        self.bytes.slice(iova, len).filter(|_| direct)
    }

    fn read_remote(&self, iova: u64, data: &mut [u8]) -> Result<(), DmaFault> {
        let bytes = self.remote(false, iova, data.len())?;
        bytes.read_slice(data, 0).map_err(|_| DmaFault { iova })?;
        if self.cleared_by_reads.load(Ordering::SeqCst) {
            bytes.write_slice(&vec![0; data.len()], 0).map_err(|_| DmaFault { iova })?;
        }
        Ok(())
    }

    fn write_remote(&self, iova: u64, data: &[u8]) -> Result<(), DmaFault> {
        self.remote(true, iova, data.len())?.write_slice(data, 0).map_err(|_| DmaFault { iova })
    }

    fn may_wait_for_client(&self) -> bool {
        self.via_client.load(Ordering::SeqCst)
    }

    fn unanswered(&self) -> bool {
        self.unanswered.load(Ordering::SeqCst)
    }
}

/// A scheduler with contexts of several functions, called directly instead of through driver messages.
pub(super) struct SchedulerBench {
    pub gt: Gt,
    pub engines: Engines,
    units: Units,
    pub scheduler: Scheduler,
    pub clock: Arc<ManualClock>,
    pub deadline: Option<u64>,
    tlb: Tlb,
    out: Vec<(Function, Outgoing)>,
}

pub(super) fn id(function: u8, local: u16) -> GucContextId {
    GucContextId { function: numbered(function), local }
}

/// GGTT address of the image of the context's `member`.
pub(super) fn image(function: u8, local: u16, member: u64) -> u64 {
    GLOBAL + u64::from(function) * RAM as u64 + u64::from(local) * CONTEXT_BYTES + member * 0x4000
}

impl SchedulerBench {
    pub fn new() -> Self {
        let mut host = Host::up();
        let scheduler = host.guc.state.take().expect("no kernel is running").scheduler;
        for function in 0..FUNCTIONS as u64 {
            for at in (0..RAM as u64).step_by(4096) {
                let page = (GLOBAL + function * RAM as u64 + at) >> 12;
                host.gt.memory.ggtt().set_entry(page, GgttEntry::from(at | function << 2 | 1));
            }
        }
        let Host { gt, engines, guc, clock, .. } = host;
        let units = guc.units().clone();
        SchedulerBench { gt, engines, units, scheduler, clock, deadline: None, tlb: Tlb::default(), out: Vec::new() }
    }

    pub fn with<T>(&mut self, function: u8, act: impl FnOnce(&mut Scheduler, &mut GucCtx<'_>) -> T) -> T {
        let views = self.gt.memory.views();
        let (gt, engines, units) = (&self.gt, &self.engines, &self.units);
        let (tlb, out) = (&mut self.tlb, &mut self.out);
        let now = self.clock.now();
        let mut ctx = GucCtx { gt, engines, units, views: &views, tlb, function: numbered(function), now, out };
        act(&mut self.scheduler, &mut ctx)
    }

    /// Advances the clock and the engine time.
    pub fn pass(&self, ns: u64) {
        pass(&self.gt, &self.clock, ns);
    }

    pub fn poke(&mut self, at: u64, value: u32) {
        let function = ((at - GLOBAL) / RAM as u64) as u8;
        self.with(function, |_, ctx| ctx.own().write_u32(Space::Ggtt, at, value)).unwrap();
    }

    /// Registers a context with `width` members.
    pub fn register(&mut self, function: u8, local: u16, class: EngineClass, mask: u32, width: u64) {
        let descriptors: Vec<u32> =
            (0..width).flat_map(|member| [image(function, local, member) as u32 | 0x19, 0]).collect();
        let queue = image(function, local, 3);
        let work_queue = if width > 1 { (queue, queue + 0x400, 0x400) } else { (0, 0, 0) };
        let class = u32::from(class.guc());
        self.with(function, |scheduler, ctx| {
            let number = u16::from(function) * CONTEXTS + local;
            let registration = Registration { number, class, mask, work_queue, descriptors: &descriptors };
            scheduler.register(ctx, id(function, local), &registration).unwrap();
        });
    }

    /// Gives every member of a context work, and enables the context.
    pub fn enable(&mut self, function: u8, local: u16, width: u64) {
        for member in 0..width {
            self.poke(image(function, local, member) + 0x1000 + 7 * 4, 64);
        }
        let id = id(function, local);
        self.with(function, |scheduler, ctx| scheduler.set_mode(ctx, id, true)).unwrap();
    }

    /// Registers and enables a context with endless work.
    pub fn start(&mut self, function: u8, local: u16, class: EngineClass, mask: u32) {
        self.register(function, local, class, mask, 1);
        self.enable(function, local, 1);
    }

    pub fn share(&mut self, function: u8, quantum: u64, preemption_timeout: u64, priority: Priority) {
        self.scheduler.set_share(numbered(function), Share { quantum, preemption_timeout, priority });
    }

    /// Runs one GuC step; returns the messages sent since the last one.
    pub fn step(&mut self) -> Vec<(u8, Vec<u32>)> {
        let mut reports = Vec::new();
        self.engines.take_reports(&mut reports);
        self.deadline = self.with(0, |scheduler, ctx| {
            for report in &reports {
                scheduler.report(ctx, report);
            }
            scheduler.schedule(ctx)
        });
        self.out.drain(..).map(|(function, message)| (function.number(), message.hxg().to_vec())).collect()
    }

    /// Function and local id of the context on an engine.
    pub fn runs(&self, engine: &str) -> Option<(u8, u16)> {
        let load = self.engines.lock(engine_named(engine)).loaded()?;
        Some((load.function.number(), load.context as u16 % CONTEXTS))
    }

    /// Ends the engine's context with `outcome`, and reports it as a worker does.
    pub fn end(&mut self, engine: &str, outcome: Outcome) {
        let id = engine_named(engine);
        let mut streamer = self.engines.lock(id);
        let load = streamer.loaded().expect("no context is loaded");
        match outcome {
            Outcome::Complete | Outcome::Preempted => drop(streamer.reset(&self.gt)),
            _ => {}
        }
        drop(streamer);
        if outcome == Outcome::Waiting {
            self.engines.back_off(id, self.clock.now(), self.engines.changes());
        }
        self.engines.report(EngineReport { engine: id, load, outcome, skipped: None });
    }
}

#[test]
fn messages_carry_local_ids() {
    proves!(V13_036, "functions may use equal context ids; messages to the hosts contain their own ids (contract B.8)");
    let mut bench = SchedulerBench::new();
    bench.start(1, 3, EngineClass::Copy, 1);
    assert_eq!(bench.step(), [(1, vec![0x9000_1002, 3, 1])]);
    assert_eq!(bench.runs("bcs0"), Some((1, 3)));
    let load = bench.engines.lock(engine_named("bcs0")).loaded().unwrap();
    assert_eq!(load.function, numbered(1), "V13-037: the load contains the function");
    bench.scheduler.functions[numbered(1)].client.cat_error_type = true;
    bench.end("bcs0", Outcome::Halted(Halt::Fault(FAULT)));
    assert_eq!(bench.step(), [(1, vec![0x9000_6000, 3, 0xdead_beef]), (1, vec![0x9000_1008, 3])]);
    let threshold_events = std::mem::take(&mut bench.scheduler.threshold_events);
    assert_eq!(threshold_events, [(numbered(1), ThresholdEvent::CatError), (numbered(1), ThresholdEvent::EngineReset)]);
    bench.start(2, 3, EngineClass::Copy, 1);
    bench.step();
    bench.end("bcs0", Outcome::Halted(Halt::Fault(FAULT)));
    assert_eq!(bench.step(), [(2, vec![0x9000_6000, 3]), (2, vec![0x9000_1008, 3])], "this function did not opt in");
    bench.with(1, |scheduler, ctx| scheduler.deregister(ctx, id(1, 3))).unwrap();
    assert_eq!(bench.step(), [(1, vec![0x9000_4600, 3])]);
}

#[test]
fn engines_run_different_functions() {
    proves!([V13_039, V13_043], "engines run different functions at the same time, without affecting each other");
    let mut bench = SchedulerBench::new();
    bench.start(1, 0, EngineClass::Render, 1);
    bench.start(2, 0, EngineClass::Copy, 1);
    bench.start(0, 0, EngineClass::Compute, 1);
    bench.step();
    let runs = ["rcs0", "bcs0", "ccs0"].map(|engine| bench.runs(engine));
    assert_eq!(runs, [Some((1, 0)), Some((2, 0)), Some((0, 0))]);
    bench.end("rcs0", Outcome::Halted(Halt::Fault(FAULT)));
    assert!(bench.step().iter().all(|(function, _)| *function == 1));
    assert_eq!((bench.runs("rcs0"), bench.runs("bcs0")), (None, Some((2, 0))));
}

#[test]
fn a_dropped_function_leaves_nothing() {
    proves!(
        V13_121,
        "contexts of a dropped function leave the engines immediately, without a message; those of others continue"
    );
    let mut bench = SchedulerBench::new();
    for (function, class) in [(1, EngineClass::Render), (1, EngineClass::Copy), (2, EngineClass::Compute)] {
        bench.start(function, class.guc().into(), class, 1);
    }
    bench.step();
    bench.start(1, 9, EngineClass::Compute, 1);
    bench.start(2, 9, EngineClass::Render, 1);
    bench.step();
    let before = bench.engines.lock(engine_named("ccs0")).loaded();
    bench.with(0, |scheduler, ctx| scheduler.drop_function(ctx, numbered(1)));
    assert!(bench.scheduler.quiet(numbered(1)) && !bench.scheduler.quiet(numbered(2)));
    assert_eq!((bench.runs("bcs0"), bench.engines.lock(engine_named("ccs0")).loaded()), (None, before));
    assert_eq!(bench.step(), []);
    assert_eq!(bench.runs("rcs0"), Some((2, 9)), "the waiting context gets the engine");
    assert_eq!(bench.scheduler.contexts(), 2);
    bench.start(1, 9, EngineClass::Copy, 1);
    bench.step();
    assert_eq!(bench.runs("bcs0"), Some((1, 9)), "its ids are free again");
}

/// A member that has completed its work leaves its engine idle, and the engine's time stands still then. The time slice
/// of a parallel context nevertheless ends, on all of its engines with that of the members that still run.
#[test]
fn a_time_slice_ends_on_the_engine_of_an_idle_member() {
    for idle in ["vcs0", "vcs2"] {
        let other = if idle == "vcs0" { "vcs2" } else { "vcs0" };
        for waiter in [2, 1] {
            let mut bench = SchedulerBench::new();
            bench.register(0, 1, EngineClass::VideoDecode, 0b01, 2);
            bench.enable(0, 1, 2);
            bench.step();
            bench.end(idle, Outcome::Complete);
            bench.step();
            assert_eq!((bench.runs(idle), bench.runs(other)), (None, Some((0, 1))));
            bench.register(
                0,
                2,
                EngineClass::VideoDecode,
                if idle == "vcs0" { 0b01 } else { 0b10 / waiter as u32 },
                waiter,
            );
            bench.enable(0, 2, waiter);
            bench.step();
            assert!(!bench.scheduler.slot(engine_named(other)).leaving, "the slice has not ended");
            bench.clock.advance(2 * MS);
            bench.gt.engine_clocks[engine_named(other).index()].run(2 * MS);
            bench.step();
            assert!(bench.scheduler.slot(engine_named(other)).leaving, "{waiter} on {idle}: the slice has ended");
            bench.end(other, Outcome::Preempted);
            bench.step();
            assert_eq!(bench.runs(idle), Some((0, 2)));
        }
    }
}

/// A parallel context gives way while none of its members has anything to do but wait.
#[test]
fn a_parallel_context_yields_when_its_running_members_wait() {
    let mut bench = SchedulerBench::new();
    bench.register(0, 1, EngineClass::VideoDecode, 0b01, 2);
    bench.enable(0, 1, 2);
    bench.step();
    bench.end("vcs0", Outcome::Complete);
    bench.end("vcs2", Outcome::Waiting);
    bench.step();
    bench.register(0, 2, EngineClass::VideoDecode, 0b01, 1);
    bench.enable(0, 2, 1);
    bench.step();
    assert!(bench.scheduler.slot(engine_named("vcs2")).leaving);
}

/// Contract D.7 (VF_CONTROL PAUSE, RESUME): the contexts leave, by a reset if necessary, and are resumed later.
#[test]
fn pause_and_resume() {
    let mut bench = SchedulerBench::new();
    bench.share(1, 0, 30 * MS, Priority::Low);
    bench.start(1, 0, EngineClass::Copy, 1);
    bench.start(1, 1, EngineClass::Copy, 1);
    bench.start(1, 2, EngineClass::Render, 1);
    bench.step();
    bench.with(0, |scheduler, ctx| scheduler.pause(ctx, numbered(1)));
    assert!(!bench.scheduler.quiet(numbered(1)));
    bench.end("bcs0", Outcome::Preempted);
    bench.step();
    assert_eq!((bench.runs("bcs0"), bench.runs("rcs0")), (None, Some((1, 2))));
    assert_eq!(bench.deadline, Some(bench.clock.now() + 30 * MS));
    bench.pass(30 * MS);
    assert_eq!(bench.step(), [(1, vec![0x9000_1008, 2])]);
    assert!(bench.scheduler.quiet(numbered(1)));
    bench.enable(1, 0, 1);
    bench.start(2, 0, EngineClass::Copy, 1);
    bench.step();
    assert_eq!(bench.runs("bcs0"), Some((2, 0)), "work submitted meanwhile waits");
    bench.end("bcs0", Outcome::Complete);
    bench.step();
    assert_eq!(bench.runs("bcs0"), None);
    bench.with(0, |scheduler, ctx| scheduler.resume(ctx, numbered(1)));
    bench.step();
    assert_eq!(bench.runs("bcs0"), Some((1, 0)));
}

use proptest::prelude::*;

/// An action of a host, driver or engine.
#[derive(Clone, Copy, Debug)]
enum Act {
    Start { function: u8, local: u16, class: usize, wide: bool },
    SetMode { function: u8, local: u16, on: bool },
    Deregister { function: u8, local: u16 },
    Drop(u8),
    Pause(u8),
    Resume(u8),
    Share { function: u8, quantum: u64, timeout: u64, priority: u32 },
    Strict(bool),
    End { engine: usize, outcome: usize },
    Pass(u64),
}

fn act() -> impl Strategy<Value = Act> {
    let id = || (0u8..4, 0u16..4);
    prop_oneof![
        6 => (id(), 0usize..2, any::<bool>())
            .prop_map(|((function, local), class, wide)| Act::Start { function, local, class, wide }),
        3 => (id(), any::<bool>()).prop_map(|((function, local), on)| Act::SetMode { function, local, on }),
        1 => id().prop_map(|(function, local)| Act::Deregister { function, local }),
        1 => (0u8..4).prop_map(Act::Drop),
        1 => (0u8..4).prop_map(Act::Pause),
        1 => (0u8..4).prop_map(Act::Resume),
        1 => (0u8..4, 0u64..20, 0u64..40, 0u32..3).prop_map(|(function, quantum, timeout, priority)| Act::Share {
            function,
            quantum: quantum * MS,
            timeout: timeout * MS,
            priority,
        }),
        1 => any::<bool>().prop_map(Act::Strict),
        8 => (0usize..4, 0usize..5).prop_map(|(engine, outcome)| Act::End { engine, outcome }),
        4 => (0u64..40).prop_map(|ms| Act::Pass(ms * MS)),
    ]
}

const SHARED: [&str; 4] = ["vcs0", "vcs2", "vecs0", "vecs1"];

impl SchedulerBench {
    fn act(&mut self, act: Act) {
        match act {
            Act::Start { function, local, class, wide } => {
                let class = [EngineClass::VideoDecode, EngineClass::VideoEnhance][class];
                let width = if wide { 2 } else { 1 };
                if self.scheduler.functions.context(id(function, local)).is_none() {
                    self.register(function, local, class, if wide { 0b01 } else { 0b11 }, width);
                    self.enable(function, local, width);
                }
            }
            // Requests in an unsuitable state fail; the result is ignored.
            Act::SetMode { function, local, on } => {
                let _ = self.with(function, |scheduler, ctx| scheduler.set_mode(ctx, id(function, local), on));
            }
            Act::Deregister { function, local } => {
                let _ = self.with(function, |scheduler, ctx| scheduler.deregister(ctx, id(function, local)));
            }
            Act::Drop(function) => self.with(0, |scheduler, ctx| scheduler.drop_function(ctx, numbered(function))),
            Act::Pause(function) => self.with(0, |scheduler, ctx| scheduler.pause(ctx, numbered(function))),
            Act::Resume(function) => self.with(0, |scheduler, ctx| scheduler.resume(ctx, numbered(function))),
            Act::Share { function, quantum, timeout, priority } => {
                self.share(function, quantum, timeout, Priority::of(priority).unwrap());
            }
            Act::Strict(strict) => self.scheduler.set_strict(strict),
            Act::End { engine, outcome } => {
                let outcomes = [
                    Outcome::Complete,
                    Outcome::Preempted,
                    Outcome::Waiting,
                    Outcome::Spinning,
                    Outcome::Halted(Halt::Fault(FAULT)),
                ];
                if self.runs(SHARED[engine]).is_some() {
                    self.end(SHARED[engine], outcomes[outcome]);
                }
            }
            Act::Pass(ns) => self.pass(ns),
        }
    }

    fn check(&self) {
        for engine in SHARED {
            let id = engine_named(engine);
            let (loaded, known) = (self.runs(engine), self.scheduler.running(id));
            assert!(
                loaded.is_none() || known.is_none() || known.map(|c| (c.function.number(), c.local)) == loaded,
                "{engine}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// For any sequence of actions of hosts, drivers and engines, the scheduler's state matches the engines. Once all
    /// contexts may run and complete, all of them do: parallel contexts, turns, strict rotation and pauses do not block
    /// each other.
    #[test]
    fn every_context_completes(acts in prop::collection::vec(act(), 1..80)) {
        let mut bench = SchedulerBench::new();
        for act in acts {
            bench.act(act);
            bench.step();
            bench.check();
        }
        for function in 0..4 {
            bench.act(Act::Resume(function));
        }
        // A function that has used engines for longer than its turns passes over turns until it has made up for it: with the
        // shortest quantum, a turn for each millisecond of `Act::Pass`.
        for _ in 0..20_000 {
            for engine in SHARED {
                if bench.runs(engine).is_some() {
                    bench.end(engine, Outcome::Complete);
                }
            }
            bench.step();
            bench.check();
            let idle = bench.scheduler.waiting() == 0 && SHARED.iter().all(|engine| bench.runs(engine).is_none());
            if idle && (0..4).all(|function| bench.scheduler.quiet(numbered(function))) {
                break;
            }
            // Waiting contexts are checked again by the deadline.
            bench.pass(bench.deadline.map_or(MS, |at| at.saturating_sub(bench.clock.now())));
        }
        prop_assert!(SHARED.iter().all(|engine| bench.runs(engine).is_none()));
        prop_assert_eq!(bench.scheduler.waiting(), 0);
        for function in 0..4 {
            prop_assert!(bench.scheduler.quiet(numbered(function)));
        }
    }
}
