// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! State shared by the engines and the GuC: memory, registers, interrupts and time.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

mod clock;
pub mod decoder;
mod engine_clock;
mod engine_control;
mod frequency;
mod gsc;
mod guc;
mod hardware_error;
mod interrupt;
pub mod kernels;
mod memory;
pub mod observation;
mod power;
pub mod power_context;
mod report;
mod reset;
pub mod saved;
pub mod skipped;
mod steering;
#[cfg(test)]
mod tests;
pub mod virtual_function;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

pub use clock::ContextClock;
pub use engine_clock::EngineClock;

use crate::compute::{Captures, EuRates, Offers, ParkedWalkers};
use crate::context_image;
use crate::doorbell::{DoorbellRegister, Doorbells};
use crate::execlist::buffer::CsbPort;
use crate::generation::{Die, Generation};
use crate::heci::{self, Heci};
use crate::host::{Clock, FUNCTIONS, Function, InterruptSink};
use crate::interrupts::Interrupts;
use crate::memory::Memory;
use crate::oa::Observation;
use crate::pcode::Pcode;
use crate::profile::{CardProfile, GucVersions, Unmodelled};
use crate::registers::{
    Access, EngineRegister, InterruptRegister, Kind, Live, MemoryRegister, ObservationRegister, PowerRegister,
    RegisterFile, ResetRegister, Unit, XeHpg,
};
use crate::residency::{Awake, Residency};
use crate::sensors::{Meter, Power};
use crate::state::DeviceIdentity;
use crate::topology::{EngineId, EngineInfo};
use crate::trace::{Recorder, TracingSink};
use kernels::{EngineKernel, KernelTotals};
use observation::ReportRequest;
use skipped::SkippedTotals;
use steering::Agent;
use virtual_function::{VirtualFunction, decode_vf_view};

/// An action that is requested by a register write and performed by the card, outside the shared GT state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SideEffect {
    /// The host notified the GuC (GUC_HOST_INTERRUPT; xe: xe_guc_notify).
    NotifyGuc,
    /// GuC DMA was started (DMA_CTRL bit 0).
    StartGucDma,
    /// The GuC must scan its doorbells.
    ServeDoorbells,
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
    /// A report of the observation unit is to be made.
    Report(ReportRequest),
    /// What the observation unit has to write is to be written.
    Observe,
    /// The TLBs were invalidated. The invalidation is complete once every engine has passed a step boundary.
    TlbInvalidate,
}

/// The shared state of the GT.
pub struct Gt {
    /// The hardware generation of the card.
    pub generation: &'static Generation,
    /// The card's die.
    pub die: &'static Die,
    /// What must be equal of a card where saved state is restored.
    pub identity: DeviceIdentity,
    /// The card's power and heat.
    power: Power,
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
    /// Layout of the context images of each engine, by [`EngineId::index`].
    context_layouts: Box<[context_image::Layout]>,
    /// Context timestamp of each engine, by [`EngineId::index`].
    context_clocks: Box<[ContextClock]>,
    /// Step clock of each engine, by [`EngineId::index`].
    pub engine_clocks: Box<[EngineClock]>,
    /// Context status events of each engine for the GuC, by [`EngineId::index`].
    pub csb_ports: Box<[CsbPort]>,
    /// Number of TLB invalidations that a worker executes.
    tlb_invalidations: AtomicU32,
    /// RC6 state.
    pub residency: Arc<Residency>,
    /// Number of semaphore signals.
    semaphore_signals: AtomicU64,
    /// Walkers whose context has left its engine with a group in flight.
    pub parked: ParkedWalkers,
    /// Walkers whose groups clusters may execute.
    pub offers: Offers,
    /// The walker that is to be captured.
    pub captures: Arc<Captures>,
    /// Observation.
    pub observation: Arc<Observation>,
    /// Recorder of the trace events.
    pub trace: Arc<Recorder>,
    /// Per-VF state, VF 1 first.
    vfs: Box<[VirtualFunction]>,
    /// Number of skipped commands of each function, PF first.
    skipped: Box<[SkippedTotals]>,
    /// What the kernels of each function have executed, PF first.
    kernels: Box<[KernelTotals]>,
    /// The kernel of each engine, by [`EngineId::index`].
    engine_kernels: Box<[EngineKernel]>,
    /// Speed of the execution units.
    pub eu_rates: EuRates,
    /// What happens to contexts with commands that the model does not execute.
    pub unmodelled: Unmodelled,
    /// The interface of the GuC that the card claims if no PF driver loads a firmware.
    pub guc_versions: GucVersions,
    /// The fuses disable the GuC.
    guc_disabled: bool,
    /// The GuC permits RC6.
    guc_permits_rc6: AtomicBool,
    /// Makes updates of a forcewake request or of the permission of RC6, its acknowledgement and `residency` atomic.
    forcewake: Mutex<()>,
    /// The power controller's mailbox.
    pcode: Mutex<Pcode>,
    /// Energy and temperatures.
    meter: Mutex<Meter>,
    /// HECI1 (GSC) and HECI2 (GSCFI).
    heci: [Mutex<Heci>; 2],
}

impl Gt {
    /// Creates the power-on state of the card described by `profile`.
    pub fn new(profile: &CardProfile, memory: Memory, sink: Arc<dyn InterruptSink>, clock: Arc<dyn Clock>) -> Self {
        let generation = profile.generation();
        let engines = generation.engines;
        let residency = Arc::new(Residency::default());
        let now = clock.now();
        residency.set(Awake::Forbidden, true, now, || ());
        let trace = Recorder::new(clock.clone());
        let sink: Arc<dyn InterruptSink> = Arc::new(TracingSink { sink, trace: trace.clone() });
        let registers = profile.registers();
        let gt = Gt {
            generation,
            die: profile.die,
            identity: DeviceIdentity { device: profile.device, revision: profile.revision },
            power: profile.power,
            memory,
            interrupts: Interrupts::new(Function::PF, generation.interrupts, sink.clone()),
            vfs: Function::vfs().map(|vf| VirtualFunction::new(vf, generation, &registers, sink.clone())).collect(),
            registers,
            doorbells: Doorbells::new(),
            clock,
            context_layouts: engines.all().map(|engine| generation.context_layout(engine)).collect(),
            context_clocks: engines
                .all()
                .map(|engine| ContextClock::new(engine, generation.timebase, residency.clone()))
                .collect(),
            engine_clocks: engines.all().map(|_| EngineClock::default()).collect(),
            csb_ports: engines.all().map(|_| CsbPort::default()).collect(),
            residency,
            semaphore_signals: AtomicU64::new(0),
            tlb_invalidations: AtomicU32::new(0),
            parked: ParkedWalkers::default(),
            offers: Offers::default(),
            captures: Arc::default(),
            observation: Arc::new(Observation::new(generation.observation)),
            trace,
            skipped: (0..FUNCTIONS).map(|_| SkippedTotals::default()).collect(),
            kernels: (0..FUNCTIONS).map(|_| KernelTotals::default()).collect(),
            engine_kernels: engines.all().map(|_| EngineKernel::default()).collect(),
            eu_rates: EuRates::new(
                profile.fuses.dss_mask,
                profile.fuses.eu_mask,
                profile.frequency.rp0,
                generation.timebase,
            ),
            unmodelled: profile.unmodelled,
            guc_versions: profile.guc,
            guc_disabled: profile.fuses.guc_disabled,
            guc_permits_rc6: AtomicBool::new(false),
            forcewake: Mutex::new(()),
            pcode: Mutex::new(Pcode::new()),
            meter: Mutex::new(Meter::new(profile.power, now)),
            heci: Heci::windows(profile.controller()).map(Mutex::new),
        };
        gt.begin_observation();
        gt
    }

    /// Number of commands of `function` that engines have skipped.
    #[allow(clippy::indexing_slicing, reason = "Function::index is below FUNCTIONS")]
    pub fn skipped(&self, function: Function) -> &SkippedTotals {
        &self.skipped[function.index()]
    }

    /// What the kernels of `function` have executed.
    #[allow(clippy::indexing_slicing, reason = "Function::index is below FUNCTIONS")]
    pub fn kernels(&self, function: Function) -> &KernelTotals {
        &self.kernels[function.index()]
    }

    /// The kernel that `engine` executes.
    #[allow(clippy::indexing_slicing, reason = "there is a kernel for each engine")]
    pub fn engine_kernel(&self, engine: EngineId) -> &EngineKernel {
        &self.engine_kernels[engine.index()]
    }

    /// Fixed properties of `engine`.
    #[inline]
    pub fn engine(&self, engine: EngineId) -> &'static EngineInfo {
        self.generation.engines.info(engine)
    }

    /// Returns whether the fuses disable the GuC (V13-189).
    pub fn guc_disabled(&self) -> bool {
        self.guc_disabled
    }

    /// Returns the layout of the context images of `engine`.
    #[allow(clippy::indexing_slicing, reason = "there is a layout for each engine of the generation")]
    pub(crate) fn context_layout(&self, engine: EngineId) -> &context_image::Layout {
        &self.context_layouts[engine.index()]
    }

    /// Signals every engine that waits for a semaphore in signal mode to poll it again (V8-119).
    pub fn signal_semaphores(&self) {
        self.semaphore_signals.fetch_add(1, Ordering::AcqRel);
    }

    /// Number of semaphore signals so far.
    pub fn semaphore_signals(&self) -> u64 {
        self.semaphore_signals.load(Ordering::Acquire)
    }

    /// Reads the register at `offset` (a dword) of `function` by MMIO. An unmodelled register reads 0, and the PF's
    /// access is counted.
    pub fn mmio_read(&self, function: Function, offset: u32) -> u32 {
        if function.is_vf() { self.read_vf(function, offset) } else { self.read(offset) }
    }

    /// Writes the bits in `lanes` of the register at `offset` (a dword) of `function` by MMIO. In a register that stores
    /// the written value, the other bits keep their value. In a register whose written ones trigger actions, they are
    /// written as 0. Returns the action that the card must perform, if the write causes one.
    pub fn mmio_write(&self, function: Function, offset: u32, value: u32, lanes: u32) -> Option<SideEffect> {
        if function.is_vf() {
            return self.write_vf(function, offset, value, lanes);
        }
        self.write_as(Agent::Host, offset, value, lanes)
    }

    /// Reads the register at `offset` (a dword) of the PF by MMIO.
    pub fn read(&self, offset: u32) -> u32 {
        self.read_as(Agent::Host, offset)
    }

    /// Writes the whole register at `offset` of the PF by MMIO, as [`Gt::mmio_write`].
    pub fn write(&self, offset: u32, value: u32) -> Option<SideEffect> {
        self.write_as(Agent::Host, offset, value, !0)
    }

    /// Reads the register at `offset` for a command of the streamer of `engine`, with the streamer's steering.
    pub fn streamer_read(&self, engine: EngineId, offset: u32) -> u32 {
        self.read_as(Agent::Streamer(engine), offset)
    }

    /// Writes the register at `offset` for a command of the streamer of `engine`, as [`Gt::mmio_write`].
    pub fn streamer_write(&self, engine: EngineId, offset: u32, value: u32) -> Option<SideEffect> {
        self.write_as(Agent::Streamer(engine), offset, value, !0)
    }

    /// Reads the register at `offset` in the PF's register space for `agent`.
    #[inline]
    fn read_as(&self, agent: Agent, offset: u32) -> u32 {
        let Some(decoded) = self.registers.decode(offset) else {
            if let Some((vf, register)) = decode_vf_view(offset) {
                return self.read_vf(vf, register);
            }
            self.registers.note_unmodelled(offset, false);
            return 0;
        };
        if let Some(range) = decoded.range {
            self.note_asleep(offset, range, false);
            if decoded.replicated() {
                return self.read_steered(agent, offset, range);
            }
        }
        match decoded.register.kind {
            Kind::Live(live) => live.read(self, Access { function: Function::PF, offset, decoded }),
            _ => self.registers.value(offset),
        }
    }

    /// Writes the register at `offset` in the PF's register space for `agent`.
    #[inline]
    fn write_as(&self, agent: Agent, offset: u32, value: u32, lanes: u32) -> Option<SideEffect> {
        let Some(decoded) = self.registers.decode(offset) else {
            match decode_vf_view(offset) {
                // The PF accesses a VF's registers here, which does not notify the GuC on behalf of the VF.
                Some((vf, register)) => drop(self.write_vf(vf, register, value, lanes)),
                None => self.registers.note_unmodelled(offset, true),
            }
            return None;
        };
        if let Some(range) = decoded.range {
            self.note_asleep(offset, range, true);
            if decoded.replicated() {
                let written = (decoded.register.kind.limited(lanes), value & lanes);
                self.write_steered(agent, offset, decoded, range, written);
                return None;
            }
        }
        match decoded.register.kind {
            Kind::Live(live) => self.write_live(live, Access { function: Function::PF, offset, decoded }, value, lanes),
            kind => {
                self.registers.write_plain(offset, kind.limited(lanes), value & lanes);
                None
            }
        }
    }

    /// Writes the bits in `lanes` of a register with side effects. In a register that stores the written value, the
    /// other bits are written with their current value; this is not atomic with respect to other writes of the register.
    #[inline]
    fn write_live(&self, live: Live, access: Access<'_>, value: u32, lanes: u32) -> Option<SideEffect> {
        let partial = lanes != u32::MAX;
        let kept = if partial && live.stores(access.function) { live.read(self, access) & !lanes } else { 0 };
        live.write(self, access, value & lanes | kept)
    }
}

impl Live {
    /// Returns whether a write stores its value in the register of `function`, so that a written 0 changes the bit. In
    /// the others it changes nothing: a write triggers an action with its value, or a written 1 triggers an action or
    /// clears the bit, or they are masked (bits 31:16 select which of bits 15:0 change), or read-only. A HECI window has
    /// registers of both kinds and is accessed by dwords.
    fn stores(self, function: Function) -> bool {
        match self {
            Live::Doorbell(register) => register == DoorbellRegister::Control,
            Live::Engine(register) => register == EngineRegister::ErrorMask,
            Live::Interrupt(InterruptRegister::MasterGt) => function.is_vf(),
            Live::Interrupt(register) => {
                use InterruptRegister::{Enable, Mask, MasterTile};
                matches!(register, Enable | Mask | MasterTile)
            }
            Live::Memory(register) => register == MemoryRegister::LmemCfg,
            Live::Observation(register) => register != ObservationRegister::MmioTrigger,
            Live::Power(register) => {
                use PowerRegister::{LimitReasons, Pcode, PowerLimit, RcControl};
                matches!(register, LimitReasons | Pcode | PowerLimit | RcControl)
            }
            Live::Reset(register) => register == ResetRegister::GuCntl,
            Live::Clock(_) | Live::Guc(_) | Live::Heci(_) => false,
        }
    }

    /// What a read returns; `None` if it would change something: take a snapshot of interrupts, clear a bit, or take a message.
    pub(crate) fn peek(self, gt: &Gt, access: Access<'_>) -> Option<u32> {
        let has_effect = match self {
            Live::Doorbell(register) => register == DoorbellRegister::InterruptStatus,
            Live::Heci(_) => heci::takes_message(access.offset % heci::WINDOW_BYTES),
            Live::Interrupt(register) => register == InterruptRegister::Bank,
            _ => false,
        };
        (!has_effect).then(|| self.read(gt, access))
    }

    /// The register, as one of its unit.
    fn unit(&self) -> &dyn Unit<XeHpg, Gt, Effect = SideEffect> {
        match self {
            Live::Clock(register) => register,
            Live::Doorbell(register) => register,
            Live::Engine(register) => register,
            Live::Guc(register) => register,
            Live::Heci(register) => register,
            Live::Interrupt(register) => register,
            Live::Memory(register) => register,
            Live::Observation(register) => register,
            Live::Power(register) => register,
            Live::Reset(register) => register,
        }
    }
}

impl Unit<XeHpg, Gt> for Live {
    type Effect = SideEffect;

    fn read(&self, gt: &Gt, access: Access<'_>) -> u32 {
        self.unit().read(gt, access)
    }

    fn write(&self, gt: &Gt, access: Access<'_>, value: u32) -> Option<SideEffect> {
        self.unit().write(gt, access, value)
    }
}
