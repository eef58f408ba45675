// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Stores to memory, to the status page and to the table of the GGTT.

use super::{Current, Engine};
use crate::command::mi::fields;
use crate::gt::Gt;
use crate::memory::{Fault, Memory, PAGE, Pte, Space};
use crate::registers::engine::HEAD;

/// Offset of the reported head in the status page (i915: gt/intel_engine.h, intel_read_status_page).
const REPORTED_HEAD: u32 = 4 * 4;

impl Engine {
    /// MI_STORE_DATA_IMM: consecutive dwords, as many as the length has (IVB-157).
    pub(super) fn store_data(&mut self, current: &Current<'_>) -> Result<(), Fault> {
        let space = self.space(current.gt, current.has(fields::GLOBAL));
        let address = current.dword(2)? & fields::STORE_ADDRESS.mask();
        for n in 3..current.length {
            let at = address.wrapping_add(n.wrapping_sub(3).wrapping_mul(4));
            current.memory.write32(space, at, current.dword(n)?)?;
        }
        Ok(())
    }

    /// MI_STORE_DATA_INDEX: a dword or two to the status page (IVB-158).
    pub(super) fn store_index(&mut self, current: &Current<'_>) -> Result<(), Fault> {
        let (page, index) = (current.gt.status_page(self.id), current.dword(1)?);
        for n in 2..current.length.min(4) {
            let at = index.wrapping_add(n.wrapping_sub(2).wrapping_mul(4)) & fields::INDEX.mask();
            current.memory.write32(Space::Ggtt, page | at, current.dword(n)?)?;
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

    /// Writes the head to the status page: by MI_REPORT_HEAD, or where the ring's control register asks for it (IVB-078,
    /// IVB-146).
    pub(super) fn report_head(&self, gt: &Gt, memory: &Memory<'_>) -> Result<(), Fault> {
        let address = gt.status_page(self.id) | REPORTED_HEAD;
        memory.write32(Space::Ggtt, address, self.value(gt, HEAD))
    }
}
