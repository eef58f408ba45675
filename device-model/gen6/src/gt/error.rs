// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Errors and faults of engines, and the reset of the current context.

use std::sync::atomic::Ordering;

use super::{Gt, SideEffect};
use crate::memory::{Fault, FaultType, PAGE_MASK, Space};
use crate::registers::arbiter::{
    ERROR, FAULT_GGTT, FAULT_LOG, FAULT_LOG_ENTRIES, FAULT_SOURCE, FAULT_TYPE, FAULT_VALID, SOURCE_WRITE,
};
use crate::registers::engine::{CCID, Ccid, EIR, EMR, ESR, FATAL_ERRORS, INSTRUCTION_ERROR};
use crate::registers::render::{MATCH_PENDING, MATCHED};
use crate::topology::{EngineClass, EngineId};

impl Gt {
    /// An engine has found a header of no command (IVB-093).
    pub fn instruction_error(&self, engine: EngineId) {
        self.registers.set_bits(self.engine_offset(engine, ESR), INSTRUCTION_ERROR.mask());
        if !INSTRUCTION_ERROR.is_set(self.engine_value(engine, EMR)) {
            self.registers.set_bits(self.engine_offset(engine, EIR), INSTRUCTION_ERROR.mask());
        }
        self.update_status(engine, 0);
    }

    /// EIR is written: errors are cleared, in ESR too, but those that only a reset clears (IVB-093, ILK-162).
    pub(super) fn clear_errors(&self, engine: EngineId, bits: u32) {
        for register in [EIR, ESR] {
            self.registers.clear_bits(self.engine_offset(engine, register), bits & !FATAL_ERRORS);
        }
        self.update_status(engine, 0);
    }

    /// Records a fault in the fault register of `engine`, unless an earlier one is still there, in the error register, and
    /// one of the PPGTT in the log, and reports it (IVB-038..040, IVB-095).
    pub fn record_fault(&self, engine: EngineId, fault: &Fault) {
        let page = fault.address & PAGE_MASK;
        let ggtt = if fault.space == Space::Ggtt { FAULT_GGTT.mask() } else { 0 };
        let source = FAULT_SOURCE.of(if fault.write { SOURCE_WRITE } else { 0 });
        let kind = FAULT_TYPE.of(fault.kind as u32) & self.generation.fault_types;
        let latched = page | ggtt | source | kind | FAULT_VALID.mask();
        let latch = |old| if FAULT_VALID.is_set(old) { old } else { latched };
        self.registers.update(self.generation.engine(engine).fault_register, latch);
        let error = match fault.kind {
            FaultType::Page => 1,
            FaultType::InvalidDirectory => 1 << 2,
            FaultType::UnloadedDirectory => 1 << 8,
        };
        self.registers.set_bits(ERROR, error);
        if fault.space != Space::Ggtt {
            let entry = self.faults.fetch_add(1, Ordering::Relaxed) % FAULT_LOG_ENTRIES;
            self.registers.set(FAULT_LOG.saturating_add(entry.saturating_mul(4)), page);
        }
        self.update_status(engine, 0);
    }

    /// A fault register is written: a cleared valid bit clears all of it (IVB-039).
    pub(super) fn clear_fault(&self, offset: u32, value: u32) {
        if FAULT_VALID.is_set(value) {
            return;
        }
        self.registers.set(offset, 0);
        if let Some((engine, _)) = self.generation.engines().find(|(_, info)| info.fault_register == offset) {
            self.update_status(engine, 0);
        }
    }

    /// MTCH_CID_RST is written: with the pending bit, the render engine is reset if its current context is this one. The
    /// request is complete at once (IVB-102).
    pub(super) fn match_reset(&self, offset: u32, value: u32) -> Option<SideEffect> {
        let context = value & PAGE_MASK;
        let render = self.generation.engines().find(|(_, info)| info.class == EngineClass::Render);
        let matching = render.filter(|(engine, _)| {
            let current = Ccid::from_bits(self.engine_value(*engine, CCID));
            MATCH_PENDING.is_set(value) && current.valid() && current.address() == context
        });
        self.registers.set(offset, context | if matching.is_some() { MATCHED } else { 0 });
        matching.map(|(_, info)| SideEffect::Reset(info.reset_mask))
    }
}
