// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Flat CCS: compression control data of local memory, stored at the top of local memory (xe: get_flat_ccs_offset).

use std::ops::Range;

use super::{Access, Fault, Gam, Memory, Space, Span};

/// Bytes of main memory per byte of control data (xe: NUM_BYTES_PER_CCS_BYTE).
pub const BLOCK: usize = 256;
const BYTES: u64 = BLOCK as u64;

impl Memory {
    /// Address range of the control data for local memory `[address, address + len)`, whole blocks.
    pub(super) fn control_of(&self, address: u64, len: u64) -> Option<Range<u64>> {
        let start = self.flat_ccs?.checked_add(address / BYTES)?;
        Some(start..start.checked_add(len / BYTES)?)
    }
}

impl<'m> Gam<'m> {
    /// Returns a span of the control bytes of main memory `[address, address + len)`, up to the end of its page. The
    /// first byte belongs to the 256-byte block that contains `address`. Memory without control data (NULL pages,
    /// system memory, a card without flat CCS) yields a NULL span: reads return zeros, writes are dropped.
    pub fn ccs_span(&mut self, space: Space, address: u64, len: usize, access: Access) -> Result<Span<'m>, Fault> {
        let page = self.page(space, address, access)?;
        let offset = address.wrapping_sub(page.base);
        let end = offset.saturating_add(len as u64).min(page.len);
        let first = offset / BYTES;
        let count = usize::try_from(end.div_ceil(BYTES).saturating_sub(first)).unwrap_or(usize::MAX);
        let control = match (page.backing, self.memory.flat_ccs) {
            (backing, Some(base)) if backing.is_local() => base.checked_add((page.target / BYTES).wrapping_add(first)),
            _ => None,
        };
        let slice = control.and_then(|at| self.memory.local().slice(at, count));
        if slice.is_some() {
            self.count(access, count as u64);
        }
        Ok(slice.map_or(Span::Null(count), Span::Mapped))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "an overflow fails the test")]

    use std::sync::Arc;

    use vm_memory::Bytes;

    use super::*;
    use crate::generation::XE_HPG;
    use crate::host::{Function, NullHost};
    use crate::memory::ggtt::{GGTT_BYTES, Ggtt, GgttEntry};
    use crate::memory::region::SharedRegion;
    use crate::memory::{FaultReason, Tlb};

    fn memory() -> Memory {
        let ggtt = Ggtt::new(SharedRegion::anonymous(GGTT_BYTES).unwrap());
        let memory =
            Memory::new(XE_HPG.page_tables, SharedRegion::anonymous(1 << 20).unwrap(), ggtt, Arc::new(NullHost));
        // Local page 3, a page beyond the range of the control data, and a page of guest memory.
        for (index, entry) in [(0, 0x3003), (1, 0x7fff_f003), (2, 0x3001)] {
            memory.ggtt().set_entry(index, GgttEntry::from(entry));
        }
        memory
    }

    /// Contract B.9: the address of a block's control data follows from its physical page; other memory has none.
    #[test]
    fn control_bytes() {
        let memory = memory().with_flat_ccs(0xff000);
        let views = memory.views();
        let mut tlb = Tlb::default();
        let mut gam = memory.gam(Function::PF, &views, &mut tlb);
        // From the middle of block 2 to the middle of block 5: four of the sixteen control bytes of page 3.
        let span = gam.ccs_span(Space::Ggtt, 0x280, 0x300, Access::Write).unwrap();
        assert_eq!(span.len(), 4);
        span.write(&[1, 2, 3, 4]).unwrap();
        let mut control = [0; 16];
        memory.local().slice(0xff000 + 0x30, 16).unwrap().read_slice(&mut control, 0).unwrap();
        assert_eq!(control, [0, 0, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        // Up to the end of the page; none for guest memory and for local memory without control data.
        assert_eq!(gam.ccs_span(Space::Ggtt, 0xf00, 0x10000, Access::Read).unwrap().len(), 1);
        for page in [1, 2] {
            let span = gam.ccs_span(Space::Ggtt, page << 12, 0x10000, Access::Read).unwrap();
            assert!(matches!(span, Span::Null(16)));
        }
        let fault = gam.ccs_span(Space::Ggtt, 0x3000, 1, Access::Read).err();
        assert_eq!(fault.unwrap().reason, FaultReason::NotPresent { level: 0 });
    }

    /// Without a base address flat CCS is disabled: no memory has control data.
    #[test]
    fn without_flat_ccs() {
        let memory = memory();
        let views = memory.views();
        let mut tlb = Tlb::default();
        let span = memory.gam(Function::PF, &views, &mut tlb).ccs_span(Space::Ggtt, 0, 4096, Access::Read).unwrap();
        assert!(matches!(span, Span::Null(16)));
    }
}
