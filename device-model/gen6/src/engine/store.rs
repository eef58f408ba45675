// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Stores to memory, to the status page and to the GGTT.

use super::{Current, Engine};
use crate::command::mi::fields;
use crate::memory::{Fault, PAGE, Pte, Space};
use crate::registers::engine::HWSTAM;
use crate::registers::interrupt::STATUS_PAGE_STATES;

impl Engine {
    /// MI_STORE_DATA_IMM: a dword, or two (IVB-157).
    pub(super) fn store_data(&mut self, current: &Current<'_>) -> Result<(), Fault> {
        let space = self.space(current.gt, current.has(fields::GLOBAL));
        let address = current.dword(2)? & fields::STORE_ADDRESS.mask();
        current.memory.write32(space, address, current.dword(3)?)?;
        if current.length >= 5 {
            current.memory.write32(space, address.wrapping_add(4), current.dword(4)?)?;
        }
        Ok(())
    }

    /// MI_STORE_DATA_INDEX: a dword or two to the status page (IVB-158).
    pub(super) fn store_index(&mut self, current: &Current<'_>) -> Result<(), Fault> {
        let address = self.status_page(current.gt) | current.dword(1)? & fields::INDEX.mask();
        current.memory.write32(Space::Ggtt, address, current.dword(2)?)?;
        if current.length >= 4 {
            current.memory.write32(Space::Ggtt, address.wrapping_add(4), current.dword(3)?)?;
        }
        Ok(())
    }

    /// MI_UPDATE_GTT: entries of consecutive pages (IVB-160).
    pub(super) fn update_gtt(&mut self, current: &Current<'_>) -> Result<(), Fault> {
        let first = current.dword(1)? / PAGE;
        for (page, n) in (first..).zip(2..current.length) {
            current.memory.ggtt().set(page, Pte(current.dword(n)?));
        }
        Ok(())
    }

    /// Writes the interrupt status to dword 0 of the status page, if HWSTAM does not mask one of the events `bits`. The
    /// bits of events without a state are 0 (IVB-091).
    pub(super) fn report_status(&self, current: &Current<'_>, bits: u32) {
        if bits & !self.value(current.gt, HWSTAM) != 0 {
            // A status page without a translation drops the write, as any store.
            let _ = current.memory.write32(Space::Ggtt, self.status_page(current.gt), bits & STATUS_PAGE_STATES);
        }
    }
}
