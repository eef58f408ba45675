// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Guest memory of the unit tests.

use std::sync::Arc;

use arctic_base::host::{Access, Dma, DmaView, Function};
use vm_memory::mmap::MmapRegion;
use vm_memory::{Bytes, VolatileMemory, VolatileSlice};

/// Mapped guest memory at an address; there is none elsewhere.
#[derive(Clone)]
pub(crate) struct Guest {
    start: u64,
    memory: Arc<MmapRegion>,
}

impl Guest {
    /// `len` bytes of memory at `start`.
    pub(crate) fn new(start: u64, len: usize) -> Self {
        Guest { start, memory: Arc::new(MmapRegion::new(len).unwrap()) }
    }

    fn dword(&self, at: u64) -> VolatileSlice<'_> {
        self.memory.get_slice(usize::try_from(at - self.start).unwrap(), 4).unwrap()
    }

    /// All bytes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.memory.size()];
        self.memory.get_slice(0, bytes.len()).unwrap().read_slice(&mut bytes, 0).unwrap();
        bytes
    }

    /// Sets the first bytes.
    pub(crate) fn fill(&self, bytes: &[u8]) {
        self.memory.get_slice(0, bytes.len()).unwrap().write_slice(bytes, 0).unwrap();
    }

    pub(crate) fn put(&self, at: u64, value: u32) {
        self.dword(at).write_obj(value, 0).unwrap();
    }

    pub(crate) fn get(&self, at: u64) -> u32 {
        self.dword(at).read_obj(0).unwrap()
    }
}

impl DmaView for Guest {
    fn slice(&self, iova: u64, len: usize, _: Access) -> Option<VolatileSlice<'_>> {
        let at = usize::try_from(iova.checked_sub(self.start)?).ok()?;
        self.memory.get_slice(at, len.min(self.memory.size().checked_sub(at)?)).ok()
    }
}

impl Dma for Guest {
    fn view(&self, _: Function) -> Arc<dyn DmaView> {
        Arc::new(self.clone())
    }
}
