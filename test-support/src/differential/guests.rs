// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Guest memory of the context's function, and of all other functions.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use arctic_device_model::host::{Access, Dma, DmaFault, DmaView, Function};
use arctic_device_model::memory::region::SharedRegion;
use vm_memory::{Bytes, VolatileSlice};

use crate::differential::layout::*;

/// Memory of one function's guest.
pub struct Guest {
    ram: SharedRegion,
    remote: Mutex<Vec<u8>>,
    /// Pages of the mapped memory that were taken for a write.
    marked: Mutex<BTreeSet<usize>>,
}

impl Guest {
    pub fn new() -> Self {
        Guest {
            ram: SharedRegion::anonymous(RAM.1).unwrap(),
            remote: Mutex::new(vec![0; REMOTE.1]),
            marked: Mutex::default(),
        }
    }

    /// Returns the contents of the mapped memory and of the memory accessed by messages.
    pub fn bytes(&self) -> (Vec<u8>, Vec<u8>) {
        let mut ram = vec![0; RAM.1];
        self.ram.slice(0, RAM.1).unwrap().read_slice(&mut ram, 0).unwrap();
        (ram, self.remote.lock().unwrap().clone())
    }

    /// Panics if a page of the mapped memory differs from `before`, to which it was set, that was not taken for a write.
    pub fn check_marks(&self, before: &[u8]) {
        let (now, _) = self.bytes();
        let marked = self.marked.lock().unwrap();
        let mut pages = before.chunks(PAGE as usize).zip(now.chunks(PAGE as usize)).enumerate();
        let missing = pages.find(|(page, (before, now))| before != now && !marked.contains(page)).map(|(page, _)| page);
        assert_eq!(missing, None, "the page of guest memory that was changed without a mark");
    }

    /// Sets the contents of both memories.
    pub fn set(&self, ram: &[u8], remote: &[u8]) {
        self.marked.lock().unwrap().clear();
        self.ram.slice(0, RAM.1).unwrap().write_slice(ram, 0).unwrap();
        self.remote.lock().unwrap().copy_from_slice(remote);
    }
}

struct View(Arc<Guest>);

impl DmaView for View {
    fn slice(&self, iova: u64, len: usize, access: Access) -> Option<VolatileSlice<'_>> {
        assert!(len > 0, "a span of 0 bytes at {iova:#x}");
        let offset = iova.checked_sub(RAM.0).filter(|offset| *offset < RAM.1 as u64)?;
        let slice = self.0.ram.slice(offset, len.min(RAM.1 - offset as usize))?;
        if access == Access::Write {
            let page = |at: usize| at / PAGE as usize;
            let (first, last) = (page(offset as usize), page(offset as usize + slice.len() - 1));
            self.0.marked.lock().unwrap().extend(first..=last);
        }
        Some(slice)
    }

    fn read_remote(&self, iova: u64, data: &mut [u8]) -> Result<(), DmaFault> {
        let part = remote(iova, data.len())?;
        data.copy_from_slice(&self.0.remote.lock().unwrap()[part]);
        Ok(())
    }

    fn write_remote(&self, iova: u64, data: &[u8]) -> Result<(), DmaFault> {
        let part = remote(iova, data.len())?;
        self.0.remote.lock().unwrap()[part].copy_from_slice(data);
        Ok(())
    }
}

fn remote(iova: u64, len: usize) -> Result<std::ops::Range<usize>, DmaFault> {
    let part = || {
        let at = usize::try_from(iova.checked_sub(REMOTE.0)?).ok()?;
        Some(at..at.checked_add(len).filter(|end| *end <= REMOTE.1)?)
    };
    part().ok_or(DmaFault { iova })
}

/// Guest memory of the context's function, and of all other functions.
pub struct Guests {
    pub function: Function,
    pub own: Arc<Guest>,
    pub other: Arc<Guest>,
}

impl Dma for Guests {
    fn view(&self, function: Function) -> Arc<dyn DmaView> {
        Arc::new(View(if function == self.function { self.own.clone() } else { self.other.clone() }))
    }
}
