//! The memory of the guests: the context's own function's, and everybody else's.

use std::sync::{Arc, Mutex};

use arctic_device_model::memory::local::SharedRegion;
use arctic_device_model::world::{Dma, DmaFault, DmaView, Function};
use vm_memory::{Bytes, VolatileSlice};

use crate::layout::*;

/// The memory of one function's guest.
pub struct Guest {
    ram: SharedRegion,
    remote: Mutex<Vec<u8>>,
}

impl Guest {
    pub fn new() -> Self {
        Guest { ram: SharedRegion::anonymous(RAM.1).unwrap(), remote: Mutex::new(vec![0; REMOTE.1]) }
    }

    /// All of it: what is mapped, what takes messages.
    pub fn bytes(&self) -> (Vec<u8>, Vec<u8>) {
        let mut ram = vec![0; RAM.1];
        self.ram.slice(0, RAM.1).unwrap().read_slice(&mut ram, 0).unwrap();
        (ram, self.remote.lock().unwrap().clone())
    }

    /// Sets all of it.
    pub fn set(&self, ram: &[u8], remote: &[u8]) {
        self.ram.slice(0, RAM.1).unwrap().write_slice(ram, 0).unwrap();
        self.remote.lock().unwrap().copy_from_slice(remote);
    }
}

struct View(Arc<Guest>);

impl DmaView for View {
    fn slice(&self, iova: u64, len: usize) -> Option<VolatileSlice<'_>> {
        assert!(len > 0, "a span of nothing at {iova:#x}");
        let offset = iova.checked_sub(RAM.0).filter(|offset| *offset < RAM.1 as u64)?;
        self.0.ram.slice(offset, len.min(RAM.1 - offset as usize))
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

/// The context's own guest, and the guest of everybody else.
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
