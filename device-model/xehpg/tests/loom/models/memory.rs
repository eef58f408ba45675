// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Guest memory shared with loom threads: dwords with atomic loads and stores.

use std::sync::Arc as StdArc;

use arctic_base::host::{Access, Dma, DmaFault, DmaView, Function};
use arctic_base::memory::region::SharedRegion;
use arctic_xehpg::generation::XE_HPG;
use arctic_xehpg::memory::ggtt::{GGTT_BYTES, Ggtt, GgttEntry};
use arctic_xehpg::memory::{Gam, Memory, Tlb};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use vm_memory::VolatileSlice;

/// Memory of the PF's guest at I/O virtual address 0, which the card accesses through the first page of the GGTT.
pub struct Guest {
    pub dwords: Arc<Vec<AtomicU32>>,
    memory: Memory,
}

impl Guest {
    /// Guest memory of this many dwords, all zero; at most one page.
    pub fn new(dwords: usize) -> Guest {
        let dwords = Arc::new((0..dwords).map(|_| AtomicU32::new(0)).collect());
        let ggtt = Ggtt::new(SharedRegion::anonymous(GGTT_BYTES).unwrap());
        // Valid, in the PF's memory, at address 0.
        ggtt.set_entry(0, GgttEntry::from(1));
        let local = SharedRegion::anonymous(0x1000).unwrap();
        let dma = StdArc::new(Dwords(Arc::clone(&dwords)));
        Guest { dwords, memory: Memory::new(XE_HPG.page_tables, local, ggtt, dma) }
    }

    /// Calls `step` with the PF's memory.
    pub fn step<R>(&self, step: impl FnOnce(&mut Gam<'_>) -> R) -> R {
        let views = self.memory.views();
        step(&mut self.memory.gam(Function::PF, &views, &mut Tlb::default()))
    }
}

/// The memory as the card finds it: not mapped, so every access calls this type. A copy of one dword, which `Gam` makes
/// for its loads and stores of dwords, is an acquire load or a release store. Longer copies are relaxed, because the
/// library does not order their parts.
#[derive(Clone)]
struct Dwords(Arc<Vec<AtomicU32>>);

impl Dwords {
    fn dword(&self, iova: u64) -> Result<&AtomicU32, DmaFault> {
        let at = usize::try_from(iova / 4).ok().filter(|_| iova.is_multiple_of(4));
        at.and_then(|at| self.0.get(at)).ok_or(DmaFault { iova })
    }
}

impl DmaView for Dwords {
    fn slice(&self, _: u64, _: usize, _: Access) -> Option<VolatileSlice<'_>> {
        None
    }

    fn read_remote(&self, iova: u64, data: &mut [u8]) -> Result<(), DmaFault> {
        let order = if data.len() == 4 { Ordering::Acquire } else { Ordering::Relaxed };
        for (at, bytes) in (iova..).step_by(4).zip(data.as_chunks_mut::<4>().0) {
            *bytes = self.dword(at)?.load(order).to_le_bytes();
        }
        Ok(())
    }

    fn write_remote(&self, iova: u64, data: &[u8]) -> Result<(), DmaFault> {
        let order = if data.len() == 4 { Ordering::Release } else { Ordering::Relaxed };
        for (at, bytes) in (iova..).step_by(4).zip(data.as_chunks::<4>().0) {
            self.dword(at)?.store(u32::from_le_bytes(*bytes), order);
        }
        Ok(())
    }
}

impl Dma for Dwords {
    fn view(&self, _: Function) -> StdArc<dyn DmaView> {
        StdArc::new(self.clone())
    }
}
