// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! State shared by the engines and the GuC: memory, registers, interrupts and time.

#[cfg(test)]
mod tests;
pub mod virtual_function;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use arctic_sriov::number::{high, low};

use crate::doorbell::Doorbells;
use crate::engine::EngineClock;
use crate::engine::power;
use crate::execlist::{self, buffer::CsbPort};
use crate::heci::{self, Heci};
use crate::host::{Clock, Function, InterruptSink, ticks, ticks_to_ns};
use crate::interrupts::{Interrupts, L3_PARITY};
use crate::memory::Memory;
use crate::pcode::{self, Activity, Pcode};
use crate::profile::CardProfile;
use crate::registers::ranges::{self, Range, Replication};
use crate::registers::{Decoded, Kind, Live, MCR_SELECTOR, RegisterFile, masked};
use crate::residency::{Awake, Residency};
use crate::topology::{EngineClass, EngineId, WakeDomain};
use crate::trace::{Recorder, TracingSink};
use virtual_function::VirtualFunction;

/// Context timestamp of one engine as read by MMIO: ticks of the 19.2 MHz counter that the context has run. While the
/// clock of an engine runs, the GT stays out of RC6. Only the engine modifies it; any thread may read it.
pub struct ContextClock {
    /// Bit 32 is set while the clock runs. Bits 31:0 hold global ticks minus context ticks while running, and the
    /// context ticks while stopped.
    state: AtomicU64,
    engine: EngineId,
    residency: Arc<Residency>,
}

impl ContextClock {
    fn new(engine: EngineId, residency: Arc<Residency>) -> Self {
        ContextClock { state: AtomicU64::new(0), engine, residency }
    }

    /// Continues from `context_ticks` at global tick `now`.
    pub fn set(&self, now: u64, context_ticks: u32) {
        let since = low(now).wrapping_sub(context_ticks);
        self.state.store(self.running() | u64::from(since), Ordering::Release);
    }

    fn running(&self) -> u64 {
        self.state.load(Ordering::Relaxed) & RUNNING
    }

    /// Starts counting from 0 at global tick `now`; calls `wake` if the GT leaves RC6.
    fn start(&self, now: u64, wake: impl FnOnce()) {
        let before = self.state.swap(RUNNING | u64::from(low(now)), Ordering::AcqRel);
        if before & RUNNING == 0 {
            self.residency.set(Awake::Engine(self.engine), true, ticks_to_ns(now), wake);
        }
    }

    /// Stops at global tick `now` and returns the context's ticks.
    pub fn stop(&self, now: u64) -> u32 {
        let ticks = self.read(now);
        let before = self.state.swap(u64::from(ticks), Ordering::AcqRel);
        if before & RUNNING != 0 {
            self.residency.set(Awake::Engine(self.engine), false, ticks_to_ns(now), || ());
        }
        ticks
    }

    /// The context's ticks at global tick `now`.
    pub fn read(&self, now: u64) -> u32 {
        let state = self.state.load(Ordering::Acquire);
        if state & RUNNING != 0 { low(now).wrapping_sub(low(state)) } else { low(state) }
    }
}

/// See [`ContextClock`].
const RUNNING: u64 = 1 << 32;

/// An action that is requested by a register write and performed by the card, outside the shared GT state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// The host interrupted the GuC (GUC_HOST_INTERRUPT).
    RingGuc,
    /// GuC DMA was started (DMA_CTRL bit 0).
    StartGucDma,
    /// The GuC must scan its doorbells.
    LookAtDoorbells,
    /// Resets the domains in this value of GDRST.
    Reset(u32),
    /// The driver requested a function level reset (GU_CNTL bit 31).
    DriverFlr,
    /// A dword was written to an engine's submission queue (ELSP).
    Submit(EngineId, u32),
    /// An engine must load its submission queue (RING_EXECLIST_CONTROL bit 0).
    LoadQueue(EngineId),
    /// Reset handshake of an engine, with the value written to RESET_CTL. The register already reads as ready for
    /// reset.
    EngineReset(EngineId, u32),
    /// The error bit of an engine's interrupt status has changed and must be reported in the status page and by an
    /// interrupt.
    EngineStatus(EngineId),
    /// The TLBs were invalidated. The invalidation is complete once every engine has passed a step boundary.
    TlbInvalidate,
}

/// RESET_CTL: reset requested by the driver.
const REQUEST_RESET: u32 = 1 << 0;
/// RESET_CTL: engine ready for reset.
const READY_TO_RESET: u32 = 1 << 1;
/// RESET_CTL: catastrophic error, cleared by a masked write of 1.
const CAT_ERROR: u32 = 1 << 2;
/// POWERGATE_ENABLE: domains that may be power gated while the GT is awake (xe: regs/xe_gt_regs.h).
const POWERGATE_ENABLE: u32 = 0xa210;
const RENDER_POWERGATE: u32 = 1 << 0;
const MEDIA_POWERGATE: u32 = 1 << 1;
/// GU_CNTL: function level reset.
const DRIVER_FLR: u32 = 1 << 31;
/// GT_CORE_STATUS: values for RC6 and RC0.
const RC6: u32 = 3;
const RC0: u32 = 0;
/// Unit of the RC6 residency counter in ns.
const RC6_UNIT: u64 = 1280;
/// GT_PERF_STATUS bits 19:11: actual frequency.
const CAGF_MASK: u32 = 0x000f_f800;

/// Registers of the interrupt tree.
const TREE: std::ops::Range<u32> = 0x19_0000..0x19_0200;

/// CS_MMIO_GROUP_INSTANCE_SELECT, relative to the engine's base: the steering of a streamer's commands (V13-142).
const CS_STEERING: u32 = 0xcc;
/// CS_MMIO_GROUP_INSTANCE_SELECT: reads are steered to the group in bits 29:23 and the instance in bits 22:16 (xe:
/// xe_engine_regs.h).
const SELECTIVE_READ: u32 = 1 << 30;

/// Initiator of a register access; each has separate steering (V13-140..142).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agent {
    /// Software, by MMIO.
    Host,
    /// Commands of the streamer at this base.
    Streamer(u32),
}

/// The shared state of the GT.
pub struct Gt {
    /// Memory and address translation.
    pub memory: Memory,
    /// The register file.
    pub registers: RegisterFile,
    /// The interrupt tree.
    pub interrupts: Interrupts,
    /// The doorbells.
    pub doorbells: Doorbells,
    /// The card's clock.
    pub clock: Arc<dyn Clock>,
    /// Context timestamp of each engine, by [`EngineId::index`].
    pub context_clocks: Box<[ContextClock]>,
    /// Step clock of each engine, by [`EngineId::index`].
    pub engine_clocks: Box<[EngineClock]>,
    /// Context status events of each engine for the GuC, by [`EngineId::index`].
    pub csb_ports: Box<[CsbPort]>,
    /// RC6 state.
    pub residency: Arc<Residency>,
    /// Number of semaphore signals.
    semaphore_signals: AtomicU64,
    /// Recorder of the trace events.
    pub trace: Arc<Recorder>,
    /// Per-VF state, VF 1 first.
    vfs: Box<[VirtualFunction]>,
    /// Makes updates of a forcewake request, its acknowledgement and `residency` atomic.
    forcewake: Mutex<()>,
    /// The power controller's mailbox.
    pcode: Mutex<Pcode>,
    /// HECI1 (GSC) and HECI2 (GSCFI).
    heci: [Mutex<Heci>; 2],
}

/// Bits of the GSC's interrupt identity for HECI1 and HECI2 (contract B.10).
const HECI_INTERRUPTS: [u16; 2] = [1 << 15, 1 << 14];

impl Gt {
    /// Creates the power-on state of the card described by `profile`.
    pub fn new(profile: &CardProfile, memory: Memory, sink: Arc<dyn InterruptSink>, clock: Arc<dyn Clock>) -> Self {
        let residency = Arc::new(Residency::default());
        residency.set(Awake::Forbidden, true, clock.now(), || ());
        let trace = Recorder::new(clock.clone());
        let sink: Arc<dyn InterruptSink> = Arc::new(TracingSink { sink, trace: trace.clone() });
        Gt {
            memory,
            registers: RegisterFile::of_card(profile),
            interrupts: Interrupts::new(Function::PF, sink.clone()),
            vfs: Function::vfs().map(|vf| VirtualFunction::new(vf, sink.clone())).collect(),
            doorbells: Doorbells::new(),
            clock,
            context_clocks: EngineId::all().map(|engine| ContextClock::new(engine, residency.clone())).collect(),
            engine_clocks: EngineId::all().map(|_| EngineClock::default()).collect(),
            csb_ports: EngineId::all().map(|_| CsbPort::default()).collect(),
            residency,
            semaphore_signals: AtomicU64::new(0),
            trace,
            forcewake: Mutex::new(()),
            pcode: Mutex::new(Pcode::new()),
            heci: [Mutex::new(Heci::new()), Mutex::new(Heci::new())],
        }
    }

    /// Current value of the 19.2 MHz counter.
    pub fn timestamp(&self) -> u64 {
        ticks(self.clock.now())
    }

    /// Signals every engine that waits for a semaphore in signal mode to poll it again (V8-119).
    pub fn signal_semaphores(&self) {
        self.semaphore_signals.fetch_add(1, Ordering::AcqRel);
    }

    /// Number of semaphore signals so far.
    pub fn semaphore_signals(&self) -> u64 {
        self.semaphore_signals.load(Ordering::Acquire)
    }

    /// The power controller's mailbox.
    pub fn pcode(&self) -> MutexGuard<'_, Pcode> {
        self.pcode.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn forcewake(&self) -> MutexGuard<'_, ()> {
        self.forcewake.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// HECI window 0 (GSC) or 1 (GSCFI).
    fn heci(&self, window: u8) -> MutexGuard<'_, Heci> {
        self.heci[usize::from(window & 1)].lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Sets whether the GuC may put the GT into RC6 (SETUP_PC_GUCRC, contract B.11). Any reset of the GuC forbids it
    /// again.
    pub fn permit_rc6(&self, permitted: bool) {
        self.keep_awake(Awake::Forbidden, !permitted);
    }

    /// Sets or clears one reason that keeps the GT awake. On wakeup, the engines' registers are restored (V8-190).
    fn keep_awake(&self, reason: Awake, awake: bool) {
        self.residency.set(reason, awake, self.clock.now(), || power::sleep_and_wake(&self.registers));
    }

    /// Starts the context clock of `engine` at 0 and wakes the GT. Called when the engine starts a context.
    pub fn start_context_clock(&self, engine: EngineId) {
        self.context_clocks[engine.index()].start(self.timestamp(), || power::sleep_and_wake(&self.registers));
    }

    /// Resets the registers, interrupt trees, doorbells, mailboxes and HECI windows to their power-on state.
    pub fn reset(&self) {
        let forcewake = self.forcewake();
        self.registers.reset();
        self.residency.drop_forcewakes(self.clock.now());
        drop(forcewake);
        // Resets these registers again, atomically with the tree, so that a concurrent write affects either both or
        // neither.
        self.interrupts.reset_with(|| self.registers.reset_range(TREE));
        self.vfs.iter().for_each(VirtualFunction::reset);
        self.doorbells.reset();
        self.csb_ports.iter().for_each(CsbPort::clear);
        self.permit_rc6(false);
        *self.pcode() = Pcode::new();
        for window in 0..2 {
            *self.heci(window) = Heci::new();
        }
    }

    /// Injects an L3 parity error; the model never generates one otherwise. The render engine reports it (V8-086).
    pub fn inject_l3_parity_error(&self) {
        if let Some(engine) = EngineId::find(EngineClass::Render, 0) {
            self.interrupts.raise_engine(engine, L3_PARITY);
        }
    }

    /// Reports completion of the reset requested in GU_CNTL to the driver (GU_DEBUG bit 31).
    pub fn finish_driver_flr(&self) {
        self.registers.set(crate::registers::GU_DEBUG, DRIVER_FLR);
    }

    /// Reads the register at `offset` (a dword) by MMIO. An unmodelled register reads 0, and the access is counted.
    pub fn read(&self, offset: u32) -> u32 {
        self.read_by(Agent::Host, offset)
    }

    /// Reads the register at `offset` on behalf of `agent`, with the agent's steering.
    pub fn read_by(&self, agent: Agent, offset: u32) -> u32 {
        let Some(decoded) = self.registers.decode(offset) else {
            self.registers.note_unmodelled(offset, false);
            return 0;
        };
        if let Some(range) = decoded.range
            && !self.mcr_access_allowed(agent, offset, range, false)
        {
            return 0;
        }
        match decoded.register.kind {
            Kind::Live(live) => self.read_live(live, offset, decoded),
            _ => self.registers.value(offset),
        }
    }

    /// Writes the register at `offset` by MMIO. Returns the request that the card must perform, if the write causes
    /// one.
    pub fn write(&self, offset: u32, value: u32) -> Option<Request> {
        self.write_by(Agent::Host, offset, value)
    }

    /// Like [`Gt::write`], but writes only the bits in `lanes`, for accesses narrower than a register. The other bits
    /// keep their value in a storage register. In a register whose written bits trigger actions, they are written as 0,
    /// which has no effect.
    pub fn write_lanes(&self, offset: u32, value: u32, lanes: u32) -> Option<Request> {
        if lanes == !0 {
            return self.write(offset, value);
        }
        let decoded = self.registers.decode(offset);
        let Some((Kind::Storage(mask), range)) = decoded.map(|found| (found.register.kind, found.range)) else {
            return self.write(offset, value & lanes);
        };
        if range.is_none_or(|range| self.mcr_access_allowed(Agent::Host, offset, range, true)) {
            self.registers.write_plain(offset, Kind::Storage(mask & lanes), value);
        }
        None
    }

    /// Writes the register at `offset` on behalf of `agent`, with the agent's steering.
    pub fn write_by(&self, agent: Agent, offset: u32, value: u32) -> Option<Request> {
        let Some(decoded) = self.registers.decode(offset) else {
            self.registers.note_unmodelled(offset, true);
            return None;
        };
        if let Some(range) = decoded.range
            && !self.mcr_access_allowed(agent, offset, range, true)
        {
            return None;
        }
        match decoded.register.kind {
            Kind::Live(live) => self.write_live(live, offset, value, decoded),
            kind => {
                self.registers.write_plain(offset, kind, value);
                None
            }
        }
    }

    /// Returns whether an access to a GT register selects an instance that is not fused off. An access to a sleeping
    /// domain is counted and still performed, because drivers may rely on the time that a real GT takes to enter sleep.
    fn mcr_access_allowed(&self, agent: Agent, offset: u32, range: &Range, write: bool) -> bool {
        if self.asleep(range.wake)
            && ranges::second_domain(offset).is_none_or(|domain| self.asleep(domain))
            && !(write && ranges::shadowed(offset))
        {
            self.registers.note_asleep(offset, write);
        }
        let steering = match (range.replication, agent) {
            (Replication::Single | Replication::Sqidi | Replication::Gam, _) => return true,
            (_, Agent::Host) => self.registers.value(MCR_SELECTOR),
            // A streamer's steering applies only to reads; without SELECTIVE_READ, any instance may respond.
            (_, Agent::Streamer(base)) => {
                let own = self.registers.value(base + CS_STEERING);
                if write || own & SELECTIVE_READ == 0 {
                    return true;
                }
                let (group, instance) = (own >> 23 & 0x7f, own >> 16 & 0x7f);
                if group > 0xf || instance > 0x7 {
                    return false;
                }
                group << 27 | instance << 24
            }
        };
        // A multicast write is delivered to all instances; a read always accesses the selected one (V13-144..146).
        if write && steering >> 31 != 0 {
            return true;
        }
        let fuses = ranges::Fuses {
            dss: self.registers.value(0x913c) | self.registers.value(0x9144),
            meml3: self.registers.value(0x9118),
        };
        range.replication.present(steering, fuses)
    }

    /// Returns whether a forcewake domain is asleep. Either the whole GT is asleep, or the domain's power gating is
    /// enabled and neither a forcewake request nor one of its engines keeps it awake (V13-138).
    fn asleep(&self, domain: WakeDomain) -> bool {
        let gated = |enable: u32, forcewake: u8| {
            self.registers.value(POWERGATE_ENABLE) & enable != 0
                && !self.residency.holds(Awake::Forcewake(forcewake))
                && !EngineId::all().any(|e| e.info().wake == domain && self.residency.holds(Awake::Engine(e)))
        };
        match domain {
            WakeDomain::AlwaysOn => false,
            WakeDomain::Gt => self.residency.asleep(),
            WakeDomain::Render => self.residency.asleep() || gated(RENDER_POWERGATE, 1),
            WakeDomain::Vdbox(n) => self.residency.asleep() || gated(MEDIA_POWERGATE, 2 + n),
            WakeDomain::Vebox(n) => self.residency.asleep() || gated(MEDIA_POWERGATE, 10 + n),
        }
    }

    fn read_live(&self, live: Live, offset: u32, decoded: &Decoded) -> u32 {
        let ordinal = decoded.ordinal;
        let half = |value: u64| if ordinal == 0 { low(value) } else { high(value) };
        match live {
            Live::Timestamp => half(self.timestamp()),
            // 36 bits wide (contract E.7).
            Live::RingTimestamp => half(self.timestamp() & 0xf_ffff_ffff),
            Live::ContextTimestamp => {
                decoded.engine.map_or(0, |engine| self.context_clocks[engine.index()].read(self.timestamp()))
            }
            Live::CoreStatus => {
                if self.residency.asleep() {
                    RC6
                } else {
                    RC0
                }
            }
            Live::Rc6Residency => low(self.residency.slept(self.clock.now()) / RC6_UNIT),
            Live::PerfStatus => {
                let sleeping = if self.residency.asleep() { CAGF_MASK } else { 0 };
                self.registers.value(offset) & !sleeping
            }
            Live::LmemCfg => self.memory.lmem_cfg(),
            Live::Pcode if ordinal == 0 => self.pcode().read_mailbox(),
            Live::Pcode => self.pcode().read_data(usize::from(ordinal) - 1),
            Live::Reading => {
                let now = self.clock.now();
                let activity = Activity { now, busy: now.saturating_sub(self.residency.slept(now)) };
                pcode::reading(offset, activity).unwrap_or(0)
            }
            Live::Heci(window) => self.heci(window).read(offset % heci::WINDOW_BYTES),
            Live::Doorbell(register) => self.doorbells.read(register, ordinal),
            Live::MasterTile
            | Live::MasterGt
            | Live::GtInterrupt
            | Live::InterruptIdentity
            | Live::InterruptSelector => self.interrupts.read(live, ordinal),
            _ => self.registers.value(offset),
        }
    }

    fn write_live(&self, live: Live, offset: u32, value: u32, decoded: &Decoded) -> Option<Request> {
        let ordinal = decoded.ordinal;
        match live {
            Live::Forcewake { ack } => {
                let _forcewake = self.forcewake();
                let held = masked(self.registers.value(offset), value);
                self.registers.set(offset, held);
                self.registers.set(ack + 4 * u32::from(ordinal), held);
                let domain = Awake::Forcewake(forcewake_domain(offset));
                self.keep_awake(domain, held != 0);
                None
            }
            Live::InterruptEnable | Live::InterruptMask => {
                self.interrupts.write_with(live, offset, ordinal, value, || self.registers.set(offset, value));
                None
            }
            Live::MasterTile
            | Live::MasterGt
            | Live::GtInterrupt
            | Live::InterruptIdentity
            | Live::InterruptSelector => {
                self.interrupts.write(live, offset, ordinal, value);
                None
            }
            Live::GucHostInterrupt => Some(Request::RingGuc),
            Live::Gdrst => Some(Request::Reset(value)),
            Live::WopcmLock { mask } => {
                // Of two concurrent writes, only the first takes effect.
                self.registers.update(offset, |old| if old & 1 == 0 { value & mask | 1 } else { old });
                None
            }
            Live::GucDma => {
                let (_, control) = self.registers.update(offset, |old| masked(old, value));
                (control & 1 != 0).then_some(Request::StartGucDma)
            }
            Live::TlbInvalidate => {
                self.memory.invalidate();
                Some(Request::TlbInvalidate)
            }
            Live::LmemCfg => {
                self.memory.set_lmem_cfg(value);
                None
            }
            Live::GuCntl => {
                self.registers.update(offset, |old| old & 0x80 | value & !(DRIVER_FLR | 0x80));
                (value & DRIVER_FLR != 0).then_some(Request::DriverFlr)
            }
            Live::ResetControl => {
                let written = value >> 16 & value;
                self.registers.update(offset, |old| {
                    let wanted = masked(old, value) & REQUEST_RESET;
                    let ready = if wanted != 0 { READY_TO_RESET } else { 0 };
                    wanted | ready | old & CAT_ERROR & !written
                });
                decoded.engine.map(|engine| Request::EngineReset(engine, value))
            }
            Live::ErrorIdentity => {
                let engine = decoded.engine?;
                self.clear_errors(engine, value).then_some(Request::EngineStatus(engine))
            }
            Live::ErrorMask => {
                let engine = decoded.engine?;
                self.mask_errors(engine, value).then_some(Request::EngineStatus(engine))
            }
            Live::SubmitPort => decoded.engine.map(|engine| Request::Submit(engine, value)),
            Live::ExeclistControl => decoded.engine.filter(|_| value & execlist::LOAD != 0).map(Request::LoadQueue),
            Live::Pcode => {
                match ordinal {
                    0 => self.pcode().write_mailbox(value),
                    data => self.pcode().write_data(usize::from(data) - 1, value),
                }
                None
            }
            Live::Heci(window) => {
                let effect = self.heci(window).write(offset % heci::WINDOW_BYTES, value);
                if effect.interrupt {
                    self.interrupts.raise_gsc(HECI_INTERRUPTS[usize::from(window & 1)]);
                }
                None
            }
            Live::Doorbell(register) => {
                self.doorbells.write(register, ordinal, value).then_some(Request::LookAtDoorbells)
            }
            Live::Reading
            | Live::Timestamp
            | Live::RingTimestamp
            | Live::ContextTimestamp
            | Live::CoreStatus
            | Live::Rc6Residency
            | Live::PerfStatus => None,
        }
    }
}

/// Forcewake domain of the request register at `offset`: 0 GT, 1 render, 2..=9 VDBOX, 10..=13 VEBOX.
fn forcewake_domain(offset: u32) -> u8 {
    match offset {
        0xa188 => 0,
        0xa278 => 1,
        media => (media.wrapping_sub(0xa540) / 4 + 2 & 0xff) as u8,
    }
}
