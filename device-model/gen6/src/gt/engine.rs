// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Accesses to the registers of an engine: ring, modes, time.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};

use arctic_base::host::Function;
use arctic_base::registers::{Unit, masked};
use arctic_base::trace::EventKind;
use arctic_sriov::number::{high, low};

use super::watchdog::Watchdog;
use super::{Gt, SideEffect};
use crate::memory::{Directory, LATEST, SHOWN_GLOBAL, Tlb};
use crate::registers::engine::{
    CCID, CTL, CTL_ENABLE, CTL_PAGES, CTL_SEMAPHORE_WAIT, CTL_WAIT, DIRECTORY_BASE_MASK, DIRECTORY_ENTRY_MASK,
    DIRECTORY_INDEX, EMR_RESERVED, HEAD, HEAD_OFFSET, HEAD_WRAPS, MI_MODE, MODE_IDLE, MODE_STOP, PP_DCIR, PP_DCLV,
    PP_DIR_BASE, SLEEP_DISABLED, SLEEP_INDICATOR, TAIL, TAIL_OFFSET, TIMESTAMP_MASK, VALID,
};
use crate::registers::{Access, EngineRegister, Gen6};
use crate::residency::Residency;
use crate::topology::{EngineClass, EngineId};

impl Unit<Gen6, Gt> for EngineRegister {
    type Effect = SideEffect;

    fn read(&self, gt: &Gt, access: Access<'_>) -> u32 {
        let value = gt.registers.value(access.offset);
        match (self, access.decoded.engine) {
            (EngineRegister::Mode, Some(engine)) if gt.engine_idle(engine) => value | MODE_IDLE.mask(),
            (EngineRegister::WatchdogCounter, Some(engine)) => gt.watchdog_counter(engine),
            (EngineRegister::Timestamp, _) => low(gt.timestamp()),
            (EngineRegister::TimestampHigh, _) => high(gt.timestamp()),
            (EngineRegister::SleepMessages, Some(engine))
                if !SLEEP_DISABLED.is_set(value) && gt.engine_idle(engine) =>
            {
                value | SLEEP_INDICATOR.mask()
            }
            (EngineRegister::DirectoryEntry, Some(engine)) => gt.directory_entry(engine),
            (EngineRegister::Translation, _) => gt.tlb_read_port(access.decoded.ordinal.into()),
            (EngineRegister::Copy(register), Some(engine)) => gt.engine_value(engine, *register),
            _ => value,
        }
    }

    fn write(&self, gt: &Gt, access: Access<'_>, value: u32) -> Option<SideEffect> {
        let engine = access.decoded.engine?;
        let at = access.offset;
        match self {
            EngineRegister::Tail => {
                gt.registers.set(at, value & TAIL_OFFSET.mask());
            }
            EngineRegister::Head => {
                gt.registers.set(at, value & (HEAD_OFFSET.mask() | HEAD_WRAPS.mask()));
                return None;
            }
            EngineRegister::Control => {
                let stored = CTL_PAGES.mask() | CTL_ENABLE.mask() | gt.generation.engine(engine).control_bits;
                // Writing 1 to CTL_WAIT clears it, writing 0 keeps it (IVB-181); no write changes CTL_SEMAPHORE_WAIT.
                let waits = (CTL_WAIT.mask() & !value) | CTL_SEMAPHORE_WAIT.mask();
                let (old, _) = gt.registers.update(at, |old| value & stored | old & waits);
                if !CTL_ENABLE.is_set(value) {
                    gt.activity(engine).end();
                    if CTL_ENABLE.is_set(old) && gt.ring_empty(engine) {
                        gt.invalidate_state(engine);
                    }
                }
            }
            EngineRegister::Mode => {
                gt.registers.update(at, |old| masked(old, value) & !MODE_IDLE.mask());
            }
            EngineRegister::ParserMode => {
                gt.registers.update(at, |old| masked(old, value));
                return gt.complete_sync_flush(engine).then_some(SideEffect::EndStep(engine));
            }
            EngineRegister::Errors => {
                gt.clear_errors(engine, value);
                return None;
            }
            EngineRegister::ErrorMask => {
                gt.registers.set(at, value | EMR_RESERVED);
                gt.update_status(engine, 0);
                return None;
            }
            EngineRegister::DirectoryBase => {
                gt.registers.set(at, value & DIRECTORY_BASE_MASK);
                gt.invalidate_translations(engine);
                return Some(SideEffect::EndStep(engine));
            }
            EngineRegister::LoadedGroups => {
                gt.registers.set(at, value);
                gt.invalidate_translations(engine);
                return Some(SideEffect::EndStep(engine));
            }
            EngineRegister::WatchdogControl => {
                gt.registers.set(at, value);
                gt.set_watchdog(engine);
            }
            EngineRegister::WatchdogThreshold => {
                // The threshold is read when the watchdog is polled.
                gt.registers.set(at, value);
            }
            EngineRegister::SleepMessages => {
                gt.registers.update(at, |old| masked(old, value) & !SLEEP_INDICATOR.mask());
                return None;
            }
            EngineRegister::WatchdogCounter
            | EngineRegister::Timestamp
            | EngineRegister::TimestampHigh
            | EngineRegister::DirectoryEntry
            | EngineRegister::Translation
            | EngineRegister::Copy(_) => return None,
        }
        Some(SideEffect::Wake(engine))
    }
}

impl EngineRegister {
    /// Bits that a write stores as they are. In the others, written zeros have no effect.
    pub(super) fn stored_bits(self) -> u32 {
        match self {
            EngineRegister::Tail
            | EngineRegister::Head
            | EngineRegister::ErrorMask
            | EngineRegister::DirectoryBase
            | EngineRegister::LoadedGroups
            | EngineRegister::WatchdogControl
            | EngineRegister::WatchdogThreshold => !0,
            EngineRegister::Control => !CTL_WAIT.mask(),
            _ => 0,
        }
    }
}

/// What an engine is doing, besides what its registers show.
#[derive(Default)]
pub(super) struct Activity {
    /// Sync flushes by INSTPM are suspended (IVB-149).
    pub(super) flushes_suspended: AtomicBool,
    /// State of the sources of interrupts, by which a change is found (IVB-091).
    pub(super) status: AtomicU32,
    /// The watchdog.
    pub(super) watchdog: Watchdog,
    /// Number of invalidations of the engine's translations.
    pub(super) invalidations: AtomicU64,
    /// The latest pages of the command streamer, which the read ports of the TLB return (ILK-029); 0: none.
    pub(super) latest_pages: [AtomicU32; LATEST],
    /// Number of writes of GGTT entries when `latest_pages` was stored; after another write its GGTT pages are not shown.
    pub(super) latest_ggtt_writes: AtomicU64,
    /// A worker executes a step.
    pub(super) executing: AtomicBool,
    /// A batch is being executed.
    pub(super) in_batch: AtomicBool,
    /// A command has been executed in part. A stopped parser completes it first.
    pub(super) in_command: AtomicBool,
    /// The engine has stopped at a command that it cannot execute, until its ring is disabled or it is reset.
    pub(super) halted: AtomicBool,
    /// The ring was disabled or the engine was reset: execution begins anew at the head.
    pub(super) restart: AtomicBool,
    /// Time that the engine was not idle, for monitoring.
    pub(super) busy: Residency,
}

impl Activity {
    /// Ends the batch, the current command and a halt: the ring is disabled, or the engine is reset. Execution begins anew
    /// at the head.
    pub(super) fn end(&self) {
        self.restart.store(true, Ordering::Release);
        self.in_batch.store(false, Ordering::Release);
        self.in_command.store(false, Ordering::Release);
        self.halted.store(false, Ordering::Release);
    }

    /// Invalidates the engine's translations.
    pub(super) fn invalidate_translations(&self) {
        self.invalidations.fetch_add(1, Ordering::AcqRel);
        self.latest_pages.iter().for_each(|latest| latest.store(0, Ordering::Release));
    }
}

impl Gt {
    #[allow(clippy::indexing_slicing, reason = "there is an element for each engine")]
    pub(super) fn activity(&self, engine: EngineId) -> &Activity {
        &self.activity[engine.index()]
    }

    /// Records whether a worker executes a step of `engine`, with the engine's lock held. Meanwhile the engine is not idle.
    pub fn set_executing(&self, engine: EngineId, executing: bool) {
        self.activity(engine).executing.store(executing, Ordering::Release);
        // Pairs with the fence in `engine_idle`: either the driver that has stopped the parser sees the step, or the step
        // sees that the parser is stopped.
        fence(Ordering::SeqCst);
    }

    /// Resets what `engine` is doing, without its registers: besides [`Activity::end`], flushes are no longer suspended and
    /// the watchdog does not count.
    pub fn reset_activity(&self, engine: EngineId) {
        let activity = self.activity(engine);
        activity.end();
        activity.flushes_suspended.store(false, Ordering::Release);
        activity.watchdog.stop();
    }

    /// Records whether `engine` executes a batch.
    pub fn set_in_batch(&self, engine: EngineId, in_batch: bool) {
        self.activity(engine).in_batch.store(in_batch, Ordering::Release);
    }

    /// Records whether the current command of `engine` has been executed in part.
    pub fn set_in_command(&self, engine: EngineId, in_command: bool) {
        self.activity(engine).in_command.store(in_command, Ordering::Release);
    }

    /// Records whether `engine` has stopped at a command that it cannot execute.
    pub fn set_halted(&self, engine: EngineId, halted: bool) {
        self.activity(engine).halted.store(halted, Ordering::Release);
    }

    /// Returns, and clears, whether the ring of `engine` was disabled, or the engine reset, since the last call.
    pub fn take_restart(&self, engine: EngineId) -> bool {
        self.activity(engine).restart.swap(false, Ordering::AcqRel)
    }

    /// Returns whether `engine` may execute its next command, or the rest of the current one: the ring is enabled, the
    /// parser is not stopped, and there is a command. A stopped parser completes the current command. An engine that has
    /// halted at a command executes none.
    pub fn engine_runnable(&self, engine: EngineId) -> bool {
        let activity = self.activity(engine);
        let [control, mode] = [CTL, MI_MODE].map(|register| self.engine_value(engine, register));
        let has_commands = !self.ring_empty(engine) || activity.in_batch.load(Ordering::Acquire);
        let may_continue = has_commands && !MODE_STOP.is_set(mode) || activity.in_command.load(Ordering::Acquire);
        let halted = activity.halted.load(Ordering::Acquire) && !activity.restart.load(Ordering::Acquire);
        CTL_ENABLE.is_set(control) && may_continue && !halted
    }

    /// The entry of the page directory that PP_DCIR selects; 0 for one that PP_DCLV excludes (ILK-020..022).
    fn directory_entry(&self, engine: EngineId) -> u32 {
        let [index, base, loaded] = [PP_DCIR, PP_DIR_BASE, PP_DCLV].map(|register| self.engine_value(engine, register));
        let entry = Directory::new(base, loaded).loaded_entry(DIRECTORY_INDEX.get(index));
        entry.map_or(0, |entry| self.ggtt.entry(entry).0 & DIRECTORY_ENTRY_MASK)
    }

    /// Invalidates the cached translations of `engine`. Its next command uses none of them; a step in progress may
    /// complete its current command by them.
    pub fn invalidate_translations(&self, engine: EngineId) {
        self.activity(engine).invalidate_translations();
        self.trace.record_of_engine(Function::PF, || {
            let by = "a flush, a load of the page directory or a reset".into();
            (self.generation.engine(engine).name, EventKind::TlbInvalidation { by, all: false })
        });
    }

    /// Number of invalidations of the translations of `engine`.
    #[inline]
    pub fn invalidations(&self, engine: EngineId) -> u64 {
        self.activity(engine).invalidations.load(Ordering::Acquire)
    }

    /// Stores the latest pages that the command streamer of `engine` has translated, after a step.
    pub fn store_latest_pages(&self, engine: EngineId, tlb: &Tlb) {
        let (activity, (latest, writes)) = (self.activity(engine), tlb.latest());
        activity.latest_ggtt_writes.store(writes, Ordering::Release);
        activity.latest_pages.iter().zip(latest).for_each(|(latest, page)| latest.store(page, Ordering::Release));
    }

    /// A read port of the render engine's TLB. A page of the GGTT is not shown after a write of an entry (ILK-139).
    fn tlb_read_port(&self, port: usize) -> u32 {
        let render = self.generation.engines().find(|(_, info)| info.class == EngineClass::Render);
        let Some(activity) = render.map(|(engine, _)| self.activity(engine)) else { return 0 };
        let page = activity.latest_pages.get(port).map_or(0, |page| page.load(Ordering::Acquire));
        let written = self.ggtt.writes() != activity.latest_ggtt_writes.load(Ordering::Acquire);
        if page & SHOWN_GLOBAL != 0 && written { 0 } else { page }
    }

    /// Returns whether the head of the ring of `engine` has reached its tail.
    fn ring_empty(&self, engine: EngineId) -> bool {
        HEAD_OFFSET.mask() & self.engine_value(engine, HEAD) == self.engine_value(engine, TAIL)
    }

    /// The ring of `engine` is disabled while it is empty: the state that the engine has loaded is invalid, its
    /// translations and its context (IVB-078).
    fn invalidate_state(&self, engine: EngineId) {
        self.invalidate_translations(engine);
        self.registers.clear_bits(self.engine_offset(engine, CCID), VALID.mask());
    }

    /// Offset of a register of an engine.
    #[inline]
    pub fn engine_offset(&self, engine: EngineId, register: u32) -> u32 {
        self.generation.engine(engine).base.saturating_add(register)
    }

    /// Value of a register of an engine, without side effects.
    #[inline]
    pub fn engine_value(&self, engine: EngineId, register: u32) -> u32 {
        self.registers.value(self.engine_offset(engine, register))
    }

    /// The time in units of the timestamp.
    pub fn timestamp(&self) -> u64 {
        self.generation.timebase.ticks(self.now()) & TIMESTAMP_MASK
    }

    /// Returns whether an engine is idle: no step is in progress, and its ring is disabled, or empty without a batch, or its
    /// parser is stopped between two commands. One that has halted at a command is idle only when the driver stops its
    /// parser.
    pub fn engine_idle(&self, engine: EngineId) -> bool {
        fence(Ordering::SeqCst);
        let activity = self.activity(engine);
        let executing = activity.executing.load(Ordering::Acquire);
        let halted = activity.halted.load(Ordering::Acquire);
        let stopped = MODE_STOP.is_set(self.engine_value(engine, MI_MODE));
        !executing && !self.engine_runnable(engine) && (!halted || stopped)
    }

    /// The engine may have become busy or idle: by a write to a register, at the start or end of a step, by a reset.
    pub fn update_busy(&self, engine: EngineId) {
        self.activity(engine).busy.update(self.now(), || !self.engine_idle(engine));
    }

    /// Time that the engine was not idle since power-on, or since a saved card was restored, in ns.
    pub fn busy_time(&self, engine: EngineId) -> u64 {
        self.activity(engine).busy.spent(self.now())
    }

    /// Returns whether all engines are idle.
    pub fn engines_idle(&self) -> bool {
        self.generation.engines().all(|(engine, _)| self.engine_idle(engine))
    }
}
