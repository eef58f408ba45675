// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Stores to memory, to the status page and to the table of the GGTT.

use arctic_base::command::row::lookup;
use vm_memory::VolatileSlice;

use super::{Current, Engine};
use crate::command::Mi;
use crate::command::mi::fields;
use crate::gt::Gt;
use crate::memory::{Access, CellValue, Fault, MappedPages, Memory, PAGE, Pte, Space};
use crate::registers::engine::{ACTHD, CTL, CTL_ENABLE, DMA_FADD, HEAD, IPEHR, MI_MODE, MODE_STOP};

/// Offset of the reported head in the status page (i915: gt/intel_engine.h, intel_read_status_page).
const REPORTED_HEAD: u32 = 4 * 4;

/// Length in dwords of MI_STORE_DATA_IMM with a dword of data.
const STORE: u32 = 4;

/// The mapped pages of a step's batches, and those to which they store.
pub(super) struct StorePages<'m> {
    batches: MappedPages<'m>,
    targets: MappedPages<'m>,
}

impl Default for StorePages<'_> {
    fn default() -> Self {
        StorePages { batches: MappedPages::new(Access::Read), targets: MappedPages::new(Access::Write) }
    }
}

/// Reads the dword at `address` of a mapped page, if it is aligned.
#[inline]
fn dword(page: &VolatileSlice<'_>, address: u32) -> Option<u32> {
    u32::load(page, (address % PAGE) as usize)
}

impl Engine {
    /// Fast path: executes the commands MI_STORE_DATA_IMM of a batch in the PPGTT that store a dword to the PPGTT, up to the
    /// first other one, and at most `budget`. Returns their number. It does not execute one of which a page has no
    /// translation, or is not mapped.
    // Not inlined: in one function with the other path, its values do not fit into registers.
    #[inline(never)]
    pub(super) fn stores<'m>(&mut self, gt: &Gt, memory: &Memory<'m>, mapped: &mut StorePages<'m>, budget: u32) -> u32 {
        let StorePages { batches: pages, targets } = mapped;
        let Some(first) = self.batch.filter(|batch| batch.ppgtt && self.pending.is_none()) else { return 0 };
        if gt.trace.on() || gt.bypasses_translation() {
            return 0;
        }
        // Before the directory is read: a load of another one invalidates afterwards.
        let invalidations = gt.invalidations(self.id);
        memory.follow(invalidations);
        let Space::Ppgtt(directory) = self.ppgtt(gt) else { return 0 };
        let [control, mode] = [CTL, MI_MODE].map(|register| self.offset(gt, register));
        let mut next = first.next;
        let mut header = 0;
        let mut done = 0_u32;
        let mut batch = pages.find(memory, directory, next);
        while done < budget {
            if next.is_multiple_of(PAGE) {
                batch = pages.find(memory, directory, next);
            }
            let Some(page) = &batch else { break };
            let Some(word) = dword(page, next) else { break };
            let row =
                lookup(gt.generation.commands.mi, word).filter(|row| row.action == Mi::StoreData && word >> 29 == 0);
            if row.is_none_or(|row| row.length.dwords(word) != STORE || row.may_be_restricted(word)) {
                break;
            }
            // A command that crosses the page is left to the other path.
            let [address, value] = [8, 12].map(|offset| next.wrapping_add(offset));
            let words = if value / PAGE == next / PAGE { dword(page, address).zip(dword(page, value)) } else { None };
            let Some((address, value)) = words else { break };
            let address = address & fields::STORE_ADDRESS.mask();
            let Some(page) = targets.find(memory, directory, address) else { break };
            if !value.store(&page, (address % PAGE) as usize) {
                break;
            }
            (next, header, done) = (next.wrapping_add(STORE * 4), word, done.saturating_add(1));
            // Software may stop the parser, or invalidate translations, at any time.
            let runs = CTL_ENABLE.is_set(gt.registers.value(control)) && !MODE_STOP.is_set(gt.registers.value(mode));
            if !runs || gt.invalidations(self.id) != invalidations {
                break;
            }
        }
        if let Some(batch) = &mut self.batch
            && done > 0
        {
            // The registers show the last command.
            let last = next.wrapping_sub(STORE * 4);
            batch.next = last;
            self.publish_batch(gt);
            [ACTHD, DMA_FADD].iter().for_each(|register| gt.registers.set(self.offset(gt, *register), last));
            gt.registers.set(self.offset(gt, IPEHR), header);
            self.batch = Some(super::Batch { next, ..first });
        }
        done
    }

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
        let first = (current.dword(1)? & fields::ENTRY.mask()) / PAGE;
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
