// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Saved state of the GT: registers, power, time, and what the engines are doing.

mod wire;

use std::sync::atomic::Ordering;

use arctic_base::state::RestoreError;

use super::engine::Activity;
use super::watchdog::Watchdog;
use super::{Gt, status};
use crate::memory::PAGE_MASK;
use crate::pcode::Pcode;
use crate::registers::arbiter::{FAULT_LOG, FAULT_LOG_ENTRIES};
use crate::registers::engine::{
    ACTHD, BB_ADDR, BB_ADDR_DIFF, BB_STATE, CTL_ENABLE, CTL_PAGES, CTL_SEMAPHORE_WAIT, CTL_WAIT, DIRECTORY_BASE_MASK,
    DMA_FADD, EMR_RESERVED, ESR, HEAD_OFFSET, HEAD_PREEMPT, HEAD_WAITS, HEAD_WRAPS, INSTRUCTION_ERROR, IPEHR, IPEIR,
    MODE_IDLE, NOPID, SLEEP_INDICATOR, TAIL_OFFSET,
};
use crate::registers::fuses;
use crate::registers::pch::GMBUS_STATUS;
use crate::registers::power::{FORCEWAKE_ACK, FORCEWAKE_MT_ACK, PCODE_READY};
use crate::registers::render::{MATCHED, SYNC_FLIP_STATUS, SYNC_FLIP_STATUS_1};
use crate::registers::{Decoded, EngineRegister, Kind, Live, PowerRegister, Scope};
use crate::residency::Spent;
use crate::sync::IgnorePoison;
use crate::topology::EngineId;

/// The latest time of a card that can be restored, in ns: 146 years. Sums of times do not overflow.
const LATEST: u64 = 1 << 62;

/// Read-only registers of engines that the model changes, by offset from the engine's base.
const CHANGED_OF_ENGINES: [u32; 10] =
    [IPEIR, IPEHR, ACTHD, DMA_FADD, NOPID, ESR, BB_STATE, BB_ADDR, HEAD_PREEMPT, BB_ADDR_DIFF];

/// Other read-only registers that the model changes.
const CHANGED: [u32; 5] = [FORCEWAKE_ACK, FORCEWAKE_MT_ACK, GMBUS_STATUS, SYNC_FLIP_STATUS, SYNC_FLIP_STATUS_1];

/// Saved state of the GT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedGt {
    /// Name of the generation.
    generation: String,
    /// Offset and value of each register with fuses.
    fuses: Vec<(u32, u32)>,
    /// Offset and value of each register that does not have its reset value, ascending.
    registers: Vec<(u32, u32)>,
    /// Number of faults that the log has received.
    faults: u32,
    /// The card's time in ns, and times of the card below.
    now: u64,
    sleep: Spent,
    /// The power controller's table of frequencies.
    frequencies: Vec<u32>,
    /// By index of the engine.
    engines: Vec<SavedActivity>,
}

/// What an engine is doing. Whether it is in a batch or in a command follows from its own state.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SavedActivity {
    flushes_suspended: bool,
    status: u32,
    watchdog: u64,
    halted: bool,
}

impl Activity {
    fn save(&self) -> SavedActivity {
        // No step is in progress. A restart has been taken before. Cached translations are not saved.
        let Activity {
            flushes_suspended,
            status,
            watchdog,
            invalidations: _,
            latest_pages: _,
            latest_ggtt_writes: _,
            executing: _,
            in_batch: _,
            in_command: _,
            halted,
            restart: _,
            busy: _,
        } = self;
        let Watchdog { since } = watchdog;
        SavedActivity {
            flushes_suspended: flushes_suspended.load(Ordering::Acquire),
            status: status.load(Ordering::Acquire),
            watchdog: since.load(Ordering::Acquire),
            halted: halted.load(Ordering::Acquire),
        }
    }

    fn restore(&self, saved: &SavedActivity) {
        let SavedActivity { flushes_suspended, status, watchdog, halted } = saved;
        self.end();
        self.invalidate_translations();
        self.flushes_suspended.store(*flushes_suspended, Ordering::Release);
        self.status.store(*status, Ordering::Release);
        self.watchdog.since.store(*watchdog, Ordering::Release);
        self.halted.store(*halted, Ordering::Release);
        // The card's time is another one.
        self.busy.reset();
    }
}

impl Gt {
    /// Returns the state, but that of the GGTT and of the interrupts, which have their own. No step may be in progress, no
    /// access to a register, and no engine may have a restart pending ([`Gt::take_restart`]).
    pub fn save(&self) -> SavedGt {
        // The aperture's fences are those of the registers. The other fields that are left out are the host's or counts for
        // monitoring.
        let Gt {
            generation,
            registers,
            interrupts: _,
            ggtt: _,
            aperture: _,
            clock: _,
            ahead: _,
            trace: _,
            residency,
            pcode,
            dma: _,
            wakeups: _,
            activity,
            faults,
            asleep: _,
        } = self;
        let values = registers.listing().map(|(offset, decoded)| (offset, registers.value(offset), decoded.reset));
        SavedGt {
            generation: generation.name.to_owned(),
            fuses: self.fuses().map(|(_, offset, value)| (offset, value)).collect(),
            registers: values.filter(|(_, value, reset)| value != reset).map(|(at, value, _)| (at, value)).collect(),
            faults: faults.load(Ordering::Relaxed),
            now: self.now(),
            sleep: residency.save(),
            frequencies: pcode.lock().ignore_poison().save(),
            engines: activity.iter().map(Activity::save).collect(),
        }
    }

    /// Name, offset and value of the registers with fuses.
    fn fuses(&self) -> impl Iterator<Item = (&'static str, u32, u32)> + use<'_> {
        fuses::TABLE.iter().map(|row| (row.name, row.offset, self.registers.value(row.offset)))
    }

    /// Checks that [`Gt::restore`] can restore saved state: the card has the same generation and fuses.
    pub fn check(&self, saved: &SavedGt) -> Result<(), RestoreError> {
        let SavedGt { generation, fuses, registers, faults: _, now, sleep, frequencies, engines } = saved;
        let invalid = RestoreError::invalid::<SavedGt>;
        if generation != self.generation.name {
            return Err(invalid("another generation"));
        }
        if fuses.len() != self.fuses().count() {
            return Err(invalid("the number of fuses"));
        }
        for ((at, saved), (resource, offset, here)) in fuses.iter().zip(self.fuses()) {
            if *at != offset {
                return Err(invalid("unknown fuses"));
            }
            if *saved != here {
                let (saved, here) = ((*saved).into(), here.into());
                return Err(RestoreError::Provisioning { resource, saved, here });
            }
        }
        if !registers.is_sorted_by(|(one, _), (next, _)| one < next) {
            return Err(invalid("a register twice"));
        }
        for (offset, value) in registers {
            let decoded = self.registers.decode(*offset).filter(|_| offset.is_multiple_of(4));
            let decoded = decoded.ok_or(invalid("an unknown register"))?;
            let different = value ^ decoded.reset;
            if different == 0 || different & !self.changing_bits(*offset, decoded) != 0 {
                return Err(invalid("a value that the register cannot have"));
            }
        }
        if *now > LATEST || !sleep.possible(*now) || Pcode::restored(frequencies).is_none() {
            return Err(invalid("a time or a frequency"));
        }
        let possible =
            |saved: &SavedActivity| saved.status & !status::STATES == 0 && saved.watchdog <= now.saturating_add(1);
        if engines.len() != self.activity.len() || !engines.iter().all(possible) {
            return Err(invalid("what an engine is doing"));
        }
        Ok(())
    }

    /// Replaces the state by a saved one that was checked. No step may be in progress, and no access to a register.
    /// [`Gt::set_in_batch`], [`Gt::set_in_command`] and [`Gt::update_busy`] must follow, and [`Gt::take_restart`] for each engine.
    pub fn restore(&self, saved: &SavedGt) {
        let SavedGt { generation: _, fuses: _, registers, faults, now, sleep, frequencies, engines } = saved;
        self.registers.reset();
        registers.iter().for_each(|(offset, value)| self.registers.set(*offset, *value));
        self.replace_fences();
        self.faults.store(*faults, Ordering::Relaxed);
        self.ahead.store(now.wrapping_sub(self.clock.now()), Ordering::Relaxed);
        self.residency.restore(sleep.clone());
        let pcode = Pcode::restored(frequencies);
        debug_assert!(pcode.is_some(), "frequencies were checked");
        *self.pcode.lock().ignore_poison() = pcode.unwrap_or_default();
        self.activity.iter().zip(engines).for_each(|(activity, saved)| activity.restore(saved));
    }

    /// Bits of the graphics bank that are states of the engines' sources.
    pub fn engine_states(&self) -> u32 {
        self.generation.engines.iter().fold(0, |all, info| all | status::STATES << info.interrupt_shift)
    }

    /// Bits of a register that can differ from its reset value.
    fn changing_bits(&self, offset: u32, decoded: &Decoded) -> u32 {
        match decoded.register.kind {
            Kind::Storage(mask) | Kind::Write1Clear(mask) => mask,
            Kind::Masked => 0xffff,
            Kind::ReadOnly => {
                let base = decoded.engine.map(|engine| self.generation.engine(engine).base);
                let changed = match base {
                    Some(base) => CHANGED_OF_ENGINES.contains(&offset.wrapping_sub(base)),
                    // A restore of a context sets those of the extended state.
                    None => decoded.register.scope == Scope::Extended || CHANGED.contains(&offset) || in_log(offset),
                };
                if changed { !0 } else { 0 }
            }
            Kind::Live(live) => self.changing_bits_of_unit(live, decoded.engine),
        }
    }

    /// Bits of a register with behaviour that its unit can change. What a unit computes or has elsewhere is not stored in
    /// the register.
    fn changing_bits_of_unit(&self, live: Live, engine: Option<EngineId>) -> u32 {
        match live {
            Live::Engine(register) => match register {
                EngineRegister::Tail => TAIL_OFFSET.mask(),
                EngineRegister::Head => HEAD_OFFSET.mask() | HEAD_WRAPS.mask() | HEAD_WAITS.mask(),
                EngineRegister::Control => {
                    let own = engine.map_or(0, |engine| self.generation.engine(engine).control_bits);
                    let waits = CTL_WAIT.mask() | CTL_SEMAPHORE_WAIT.mask();
                    CTL_PAGES.mask() | CTL_ENABLE.mask() | waits | own
                }
                EngineRegister::Mode => 0xffff & !MODE_IDLE.mask(),
                EngineRegister::ParserMode => 0xffff,
                EngineRegister::Errors => INSTRUCTION_ERROR.mask(),
                EngineRegister::ErrorMask => !EMR_RESERVED,
                EngineRegister::DirectoryBase => DIRECTORY_BASE_MASK,
                EngineRegister::WatchdogControl | EngineRegister::WatchdogThreshold | EngineRegister::LoadedGroups => {
                    !0
                }
                EngineRegister::SleepMessages => 0xffff & !SLEEP_INDICATOR.mask(),
                EngineRegister::WatchdogCounter
                | EngineRegister::Timestamp
                | EngineRegister::TimestampHigh
                | EngineRegister::DirectoryEntry
                | EngineRegister::Translation
                | EngineRegister::Copy(_) => 0,
            },
            Live::Power(register) => match register {
                PowerRegister::ForcewakeMt => 0xffff,
                PowerRegister::Forcewake => 1,
                PowerRegister::RcControl => !0,
                PowerRegister::Mailbox => !PCODE_READY.mask(),
                PowerRegister::Frequency | PowerRegister::Residency => 0,
            },
            Live::Display(_) | Live::Fault => !0,
            Live::MatchReset => PAGE_MASK | MATCHED,
            Live::Interrupt(_) | Live::Reset | Live::Barrier => 0,
        }
    }
}

/// The register is of the log of faults.
fn in_log(offset: u32) -> bool {
    (FAULT_LOG..FAULT_LOG.saturating_add(FAULT_LOG_ENTRIES.saturating_mul(4))).contains(&offset)
}
