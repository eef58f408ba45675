//! Flat CCS: where the compression control of local memory lies, at the top of it (xe: get_flat_ccs_offset).

use std::ops::Range;

use super::tlb::Backing;
use super::{Access, Fault, Gam, Memory, Space, Span};

/// Bytes of main memory that one byte of control stands for (xe: NUM_BYTES_PER_CCS_BYTE).
pub const BLOCK: usize = 256;

impl Memory {
    /// Where the control of local memory `[address, address + len)` lies, whole blocks.
    pub(super) fn control_of(&self, address: u64, len: u64) -> Option<Range<u64>> {
        let start = self.flat_ccs?.checked_add(address / BLOCK as u64)?;
        Some(start..start.checked_add(len / BLOCK as u64)?)
    }
}

impl<'m> Gam<'m> {
    /// Opens the control bytes of main memory `[address, address + len)`, as far as its page goes, the first for the
    /// 256-byte block that holds `address`. Memory without control (NULL pages, system memory, a card without flat
    /// CCS) gives a NULL span: zeros, writes dropped.
    pub fn ccs_span(&mut self, space: Space, address: u64, len: usize, access: Access) -> Result<Span<'m>, Fault> {
        let page = self.page(space, address, access)?;
        let offset = address - page.base;
        let end = offset.saturating_add(len as u64).min(page.len);
        let first = offset / BLOCK as u64;
        let count = usize::try_from(end.div_ceil(BLOCK as u64) - first).unwrap_or(usize::MAX);
        let control = match (page.backing, self.memory.flat_ccs) {
            (Backing::Local | Backing::Moved, Some(base)) => base.checked_add(page.target / BLOCK as u64 + first),
            _ => None,
        };
        let slice = control.and_then(|at| self.memory.local().slice(at, count));
        Ok(slice.map_or(Span::Null(count), Span::Mapped))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use vm_memory::Bytes;

    use super::*;
    use crate::memory::ggtt::{GGTT_BYTES, Ggtt, GgttEntry};
    use crate::memory::local::SharedRegion;
    use crate::memory::{FaultReason, Tlb};
    use crate::world::{Function, Unconnected};

    fn memory() -> Memory {
        let ggtt = Ggtt::new(SharedRegion::anonymous(GGTT_BYTES).unwrap());
        let memory = Memory::new(SharedRegion::anonymous(1 << 20).unwrap(), ggtt, Arc::new(Unconnected));
        // Local pages 3 and beyond the control's reach, and a page of guest memory.
        for (index, entry) in [(0, 0x3003), (1, 0x7fff_f003), (2, 0x3001)] {
            memory.ggtt().set_entry(index, GgttEntry(entry));
        }
        memory
    }

    /// Contract B.9: the control of a block is where its physical page says; elsewhere there is none.
    #[test]
    fn control_bytes() {
        let memory = memory().with_flat_ccs(0xff000);
        let views = memory.views();
        let mut tlb = Tlb::default();
        let mut gam = memory.gam(Function::PF, &views, &mut tlb);
        // From the middle of block 2 to the middle of block 5: four control bytes of the sixteen of page 3.
        let span = gam.ccs_span(Space::Ggtt, 0x280, 0x300, Access::Write).unwrap();
        assert_eq!(span.len(), 4);
        span.write(&[1, 2, 3, 4]).unwrap();
        let mut control = [0; 16];
        memory.local().slice(0xff000 + 0x30, 16).unwrap().read_slice(&mut control, 0).unwrap();
        assert_eq!(control, [0, 0, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        // As far as the page goes; nothing for guest memory and local memory that has no control.
        assert_eq!(gam.ccs_span(Space::Ggtt, 0xf00, 0x10000, Access::Read).unwrap().len(), 1);
        for page in [1, 2] {
            let span = gam.ccs_span(Space::Ggtt, page << 12, 0x10000, Access::Read).unwrap();
            assert!(matches!(span, Span::Null(16)));
        }
        let fault = gam.ccs_span(Space::Ggtt, 0x3000, 1, Access::Read).err();
        assert_eq!(fault.unwrap().reason, FaultReason::NotPresent { level: 0 });
    }

    /// Without a base there is no flat CCS: the card has no control anywhere.
    #[test]
    fn without_flat_ccs() {
        let memory = memory();
        let views = memory.views();
        let mut tlb = Tlb::default();
        let span = memory.gam(Function::PF, &views, &mut tlb).ccs_span(Space::Ggtt, 0, 4096, Access::Read).unwrap();
        assert!(matches!(span, Span::Null(16)));
    }
}
