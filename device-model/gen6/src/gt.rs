// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! State that the units share, and accesses to registers.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

mod display;
mod engine;
mod error;
mod interrupt;
mod power;
mod reset;
pub mod saved;
mod status;
#[cfg(test)]
mod tests;
mod watchdog;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use arctic_base::event_count::EventCount;
use arctic_base::gpu::Host;
use arctic_base::host::{Clock, Dma, DmaView, Function, InterruptSink};
use arctic_base::registers::{Kind, Touched, Touches, Unit};
use arctic_base::report::{Report, TouchedRegister};
use arctic_base::trace::{Recorder, TracingSink};
use arctic_sriov::number::size;

use self::engine::Activity;
use crate::generation::Generation;
use crate::interrupts::Interrupts;
use crate::memory::fence::Fence;
use crate::memory::{Aperture, Ggtt, PAGE_MASK};
use crate::pcode::Pcode;
use crate::profile::IntegratedProfile;
use crate::registers::arbiter::{ARB_MODE, SWIZZLED, TILECTL};
use crate::registers::fence::{FENCE_BYTES, FENCES};
use crate::registers::power::{FORCEWAKE_ACK, FORCEWAKE_MT_ACK};
use crate::registers::{Access, DisplayRegister, Gen6, Live, RegisterFile, Scope};
use crate::residency::Residency;
use crate::topology::EngineId;

/// An action that a register write requests of the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SideEffect {
    /// The engine may have work.
    Wake(EngineId),
    /// Resets the domains in this value of GDRST.
    Reset(u32),
    /// Waits for the end of CPU accesses that may use the previous fences (ILK-062).
    EndAccesses,
    /// Waits for the end of the step of an engine, which may use translations that were valid before.
    EndStep(EngineId),
    /// Waits for the end of the steps of all engines and of CPU accesses, which may use previous translations.
    EndAll,
}

/// State that the units share.
pub struct Gt {
    /// The generation of the card.
    pub generation: &'static Generation,
    /// The register file.
    pub registers: RegisterFile,
    /// The interrupt registers.
    pub interrupts: Interrupts,
    /// The table of the GGTT.
    pub ggtt: Ggtt,
    /// The translation of CPU accesses.
    pub aperture: Aperture,
    /// The host's clock.
    pub clock: Arc<dyn Clock>,
    /// Difference between the card's time and the host's, modulo 2^64: 0 unless a saved card was restored.
    ahead: AtomicU64,
    /// Recorder of the trace events.
    pub trace: Arc<Recorder>,
    /// RC6.
    residency: Residency,
    /// The power controller.
    pcode: Mutex<Pcode>,
    /// Guest memory.
    dma: Arc<dyn Dma>,
    /// Wakes the workers.
    pub wakeups: EventCount,
    /// What each engine is doing, by [`EngineId::index`].
    activity: Box<[Activity]>,
    /// Number of faults that the log has received.
    faults: AtomicU32,
    /// Registers that were read while asleep.
    asleep: Touched,
}

impl Gt {
    /// Creates the power-on state of the card that `profile` describes.
    pub fn new(profile: &IntegratedProfile, host: Host) -> Self {
        let trace = Recorder::new(host.clock.clone());
        let sink: Arc<dyn InterruptSink> = Arc::new(TracingSink { sink: host.interrupts, trace: trace.clone() });
        Gt {
            generation: profile.generation,
            registers: profile.registers(),
            interrupts: Interrupts::new(sink, profile.interrupt_setup()),
            ggtt: Ggtt::new(size(profile.ggtt_table)),
            aperture: Aperture::default(),
            clock: host.clock,
            ahead: AtomicU64::new(0),
            trace,
            residency: Residency::default(),
            pcode: Mutex::default(),
            dma: host.memory,
            wakeups: EventCount::new(),
            activity: profile.generation.engines.iter().map(|_| Activity::default()).collect(),
            faults: AtomicU32::new(0),
            asleep: Touched::default(),
        }
    }

    /// The card's time in ns. It goes on with the host's clock, and where a saved card is restored, from the time at which it
    /// was saved.
    pub fn now(&self) -> u64 {
        self.clock.now().wrapping_add(self.ahead.load(Ordering::Relaxed))
    }

    /// The host's time at a time of the card.
    pub fn host_time(&self, time: u64) -> u64 {
        time.wrapping_sub(self.ahead.load(Ordering::Relaxed))
    }

    /// The current view of guest memory, for one step or one access.
    pub fn view(&self) -> Arc<dyn DmaView> {
        self.dma.view(Function::PF)
    }

    /// Returns whether a forcewake request is acknowledged.
    fn awake(&self) -> bool {
        self.registers.value(FORCEWAKE_MT_ACK) | self.registers.value(FORCEWAKE_ACK) != 0
    }

    /// A CPU reads the register at `offset`, a multiple of 4.
    pub fn mmio_read(&self, offset: u32) -> u32 {
        // Writes wake the GT by themselves, through a FIFO (G67-034).
        if self.registers.decode(offset).is_some_and(|decoded| decoded.range.is_some()) && !self.awake() {
            self.asleep.note(offset, false);
        }
        self.read(offset)
    }

    /// Reads the register at `offset`, a multiple of 4. One that is not modelled reads 0 and is counted.
    pub fn read(&self, offset: u32) -> u32 {
        let Some(decoded) = self.registers.decode(offset) else {
            self.registers.note_unmodelled(offset, false);
            return 0;
        };
        let access = Access { function: Function::PF, offset, decoded };
        match decoded.register.kind {
            Kind::Live(live) => live.read(self, access),
            _ => self.registers.value(offset),
        }
    }

    /// Writes the bits `lanes` of the register at `offset`, a multiple of 4; the others are 0 in `value`. A write to a
    /// register that is not modelled is dropped and counted.
    pub fn write(&self, offset: u32, value: u32, lanes: u32) -> Option<SideEffect> {
        let Some(decoded) = self.registers.decode(offset) else {
            self.registers.note_unmodelled(offset, true);
            return None;
        };
        let access = Access { function: Function::PF, offset, decoded };
        match decoded.register.kind {
            Kind::Live(live) => {
                let kept = if lanes == !0 { 0 } else { live.stored(self, access) & !lanes };
                live.write(self, access, value | kept)
            }
            kind => {
                self.registers.write_plain(offset, kind.limited(lanes), value);
                (decoded.register.scope == Scope::Aperture).then(|| {
                    self.replace_fences();
                    SideEffect::EndAccesses
                })
            }
        }
    }

    /// Replaces the fences of the aperture by those of the registers.
    fn replace_fences(&self) {
        self.aperture.replace(|| {
            let swizzled = SWIZZLED.is_set(self.registers.value(TILECTL));
            (0..self.generation.fences).filter_map(move |number| {
                let at = FENCES.saturating_add(number.saturating_mul(FENCE_BYTES));
                let dword = |at| self.registers.value(at);
                Fence::decode(dword(at), dword(at.saturating_add(4)), swizzled)
            })
        });
    }

    /// Returns whether engines access tiled surfaces swizzled (IVB-010).
    pub fn engines_swizzle(&self) -> bool {
        self.generation.swizzle.is_set(self.registers.value(ARB_MODE))
    }

    /// Returns whether accesses of engines are not translated: their addresses are those of the guest's memory, below 4 GiB
    /// (IVB-010).
    #[inline]
    pub fn bypasses_translation(&self) -> bool {
        self.generation.bypass.is_some_and(|bypass| bypass.is_set(self.registers.value(ARB_MODE)))
    }

    /// Resets the state that a reset of the function resets.
    pub fn reset(&self) {
        self.registers.reset();
        self.replace_fences();
        self.activity.iter().for_each(|activity| activity.status.store(0, Ordering::Release));
        self.generation.engines().for_each(|(engine, _)| self.invalidate_translations(engine));
        self.faults.store(0, Ordering::Relaxed);
        self.interrupts.reset();
        self.ggtt.reset();
        self.residency.reset();
    }

    /// Name of the register of the dword at byte `offset`, with its engine: `rcs0.RING_TAIL`, `GDRST`.
    pub(crate) fn register_name(&self, offset: u32) -> Option<String> {
        let decoded = self.registers.decode(offset)?;
        let name = decoded.name();
        Some(decoded.engine.map_or(name.clone(), |engine| format!("{}.{name}", self.generation.engine(engine).name)))
    }

    fn listed(&self, touched: &BTreeMap<u32, Touches>) -> Vec<TouchedRegister> {
        let entry = |(offset, touches): (&u32, &Touches)| TouchedRegister {
            offset: *offset,
            name: self.register_name(*offset),
            reads: touches.reads,
            writes: touches.writes,
            reason: None,
        };
        touched.iter().map(entry).collect()
    }

    /// Returns the report of accesses that are not modelled.
    pub fn report(&self) -> Report {
        Report {
            unmodelled: self.listed(&self.registers.unmodelled()),
            asleep: self.listed(&self.asleep.list()),
            ..Report::default()
        }
    }
}

impl Live {
    /// Value of the bits that a write stores as they are: a write of some bytes must keep them in the others. In other bits,
    /// written zeros have no effect.
    fn stored(self, gt: &Gt, access: Access<'_>) -> u32 {
        let value = gt.registers.value(access.offset);
        match self {
            Live::Display(DisplayRegister::GmbusCommand) | Live::Fault => value,
            Live::Engine(register) => value & register.stored_bits(),
            Live::Interrupt(register) => register.stored(gt, access),
            Live::Power(register) => value & register.stored_bits(),
            Live::MatchReset => value & PAGE_MASK,
            Live::Reset | Live::Barrier => 0,
        }
    }
}

impl Unit<Gen6, Gt> for Live {
    type Effect = SideEffect;

    fn read(&self, gt: &Gt, access: Access<'_>) -> u32 {
        match self {
            Live::Display(register) => register.read(gt, access),
            Live::Engine(register) => register.read(gt, access),
            Live::Interrupt(register) => register.read(gt, access),
            Live::Power(register) => register.read(gt, access),
            Live::Fault | Live::MatchReset => gt.registers.value(access.offset),
            Live::Reset | Live::Barrier => 0,
        }
    }

    fn write(&self, gt: &Gt, access: Access<'_>, value: u32) -> Option<SideEffect> {
        match self {
            Live::Display(register) => register.write(gt, access, value),
            Live::Engine(register) => register.write(gt, access, value),
            Live::Interrupt(register) => register.write(gt, access, value),
            Live::Power(register) => register.write(gt, access, value),
            Live::Fault => {
                gt.clear_fault(access.offset, value);
                None
            }
            Live::MatchReset => gt.match_reset(access.offset, value),
            Live::Reset => Some(SideEffect::Reset(value)),
            Live::Barrier => Some(SideEffect::EndAll),
        }
    }
}
