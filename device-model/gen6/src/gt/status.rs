// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! State of an engine's sources of interrupts, in the status register of the GT and in the status page (IVB-091,
//! ILK-144), and the sync flush, which changes it (IVB-065).

use std::sync::atomic::Ordering;

use super::Gt;
use crate::memory::{Memory, Space};
use crate::registers::Bank;
use crate::registers::arbiter::FAULT_VALID;
use crate::registers::engine::{EIR, EMR, HWSTAM, IMR, INSTPM, SYNC_FLUSH};
use crate::registers::interrupt::{ERROR_INTERRUPT, NOT_IN_STATUS_PAGE, PAGE_FAULT_INTERRUPT, SYNC_INTERRUPT};
use crate::registers::render::{SYNC_FLIP_STATUS_1, SYNC_FLUSH_TOGGLE};
use crate::topology::{EngineClass, EngineId};

/// Sources of which a state is an event as long as it lasts.
const LEVELS: u32 = ERROR_INTERRUPT | PAGE_FAULT_INTERRUPT;
/// Sources with a state.
pub(super) const STATES: u32 = LEVELS | SYNC_INTERRUPT;

impl Gt {
    /// State of the sources of `engine`, relative to its first bit. Those without a state are 0.
    fn states(&self, engine: EngineId) -> u32 {
        let info = self.generation.engine(engine);
        let errors = self.engine_value(engine, EIR) & !self.engine_value(engine, EMR) != 0;
        let fault = FAULT_VALID.is_set(self.registers.value(info.fault_register));
        let sync = self.activity(engine).status.load(Ordering::Acquire) & SYNC_INTERRUPT;
        sync | if errors { ERROR_INTERRUPT } else { 0 } | if fault { PAGE_FAULT_INTERRUPT } else { 0 }
    }

    /// Events of `engine` have occurred, one bit each, or registers have changed on which states depend: sets the status
    /// register, writes the status page if HWSTAM and IMR admit one of the sources that have changed, and sends
    /// interrupts.
    pub fn update_status(&self, engine: EngineId, events: u32) {
        let states = self.states(engine);
        let old = self.activity(engine).status.swap(states, Ordering::AcqRel);
        self.settle_status(engine, old, events);
    }

    fn settle_status(&self, engine: EngineId, old: u32, events: u32) {
        let states = self.activity(engine).status.load(Ordering::Acquire);
        let shift = self.generation.engine(engine).interrupt_shift;
        let changed = old ^ states;
        if changed != 0 {
            self.interrupts.set_status(Bank::Graphics, changed << shift, states << shift);
        }
        let masked = self.engine_value(engine, HWSTAM) | self.engine_value(engine, IMR) >> shift | NOT_IN_STATUS_PAGE;
        if (changed | events) & !masked != 0 {
            let view = self.view();
            // A status page without a translation drops the write, as any store.
            let memory = Memory::new(&self.ggtt, &*view);
            memory.bypass(self.bypasses_translation());
            let _ = memory.write32(Space::Ggtt, self.status_page(engine), states);
        }
        let sent = events | changed & states & LEVELS;
        if sent != 0 {
            self.interrupt_by_engine(engine, sent);
        }
    }

    /// Records again the events of sources with a state that still lasts: an interrupt that software clears before its cause
    /// is pending again (ILK-162).
    pub(super) fn renew_events(&self) {
        for (engine, _) in self.generation.engines() {
            let lasting = self.activity(engine).status.load(Ordering::Acquire) & LEVELS;
            if lasting != 0 {
                self.interrupt_by_engine(engine, lasting);
            }
        }
    }

    /// Address of the status page of `engine`, in the GGTT (IVB-044).
    pub fn status_page(&self, engine: EngineId) -> u32 {
        self.registers.value(self.generation.engine(engine).status_page)
    }

    /// Completes a sync flush that INSTPM requests, unless MI_SUSPEND_FLUSH suspends it: translations are invalidated
    /// (IVB-036), its bit is cleared, and the sync status changes (IVB-065, ILK-143). The model has no other caches. Returns
    /// whether there was one.
    pub fn complete_sync_flush(&self, engine: EngineId) -> bool {
        let mode = self.engine_offset(engine, INSTPM);
        let activity = self.activity(engine);
        if !SYNC_FLUSH.is_set(self.registers.value(mode)) || activity.flushes_suspended.load(Ordering::Acquire) {
            return false;
        }
        self.invalidate_translations(engine);
        self.registers.clear_bits(mode, SYNC_FLUSH.mask());
        if self.generation.engine(engine).class == EngineClass::Render {
            self.registers.update(SYNC_FLIP_STATUS_1, |old| old ^ SYNC_FLUSH_TOGGLE.mask());
        }
        let old = activity.status.fetch_xor(SYNC_INTERRUPT, Ordering::AcqRel);
        self.settle_status(engine, old, SYNC_INTERRUPT);
        true
    }

    /// MI_SUSPEND_FLUSH: suspends sync flushes, or completes one that was suspended (IVB-149).
    pub fn suspend_flushes(&self, engine: EngineId, suspended: bool) {
        self.activity(engine).flushes_suspended.store(suspended, Ordering::Release);
        self.complete_sync_flush(engine);
    }
}
