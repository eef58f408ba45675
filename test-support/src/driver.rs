// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Drivers of the functions of a card in the same process.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use arctic_device_model::card::{Card, GGTT_WINDOW};
use arctic_device_model::generation::XE_HPG;
use arctic_device_model::host::Function;
use arctic_device_model::memory::region::SharedRegion;
use arctic_device_model::topology::EngineClass;
pub use arctic_guc_driver::{Access, DriverState, GucDriver, Layout};
use vm_memory::{Bytes, VolatileSlice};

/// Number of contexts. Each has an image and a ring for each of its four members, and one batch.
pub const CONTEXTS: u32 = 16;

/// Locations of a driver's data structures and of memory that its work accesses, as GGTT addresses or as offsets in the
/// driver's memory.
#[derive(Clone, Copy, Debug)]
pub struct Places {
    /// Data structures of the GuC protocol. The PPGTT maps the batches at the same addresses.
    pub layout: Layout,
    /// Page tables.
    pub tables: u64,
    /// Work queues.
    pub queues: u64,
    /// Memory for results.
    pub scratch: u64,
    /// Mapped guest memory.
    pub ram: u64,
    /// Guest memory that is accessed by messages.
    pub remote: u64,
    /// Guest memory with a mapping that ends within a dword.
    pub odd: u64,
}

impl Places {
    /// Converts offsets in a driver's memory to addresses, for memory that is mapped at `base`.
    pub const fn at(self, base: u64) -> Self {
        Places {
            layout: self.layout.at(base),
            tables: base + self.tables,
            queues: base + self.queues,
            scratch: base + self.scratch,
            ram: base + self.ram,
            remote: base + self.remote,
            odd: base + self.odd,
        }
    }
}

impl Deref for Places {
    type Target = Layout;

    fn deref(&self) -> &Layout {
        &self.layout
    }
}

/// Accesses of a function's driver to a card in the same process.
pub struct CardAccess {
    function: Function,
    card: Arc<Card>,
    /// Region of the driver's memory; the card's local memory if `None`.
    memory: Option<SharedRegion>,
    /// Offset of the driver's memory in the region.
    offset: u64,
}

impl CardAccess {
    /// Returns the accesses of the PF's driver, with its memory at a device address.
    pub fn of_pf(card: &Arc<Card>, offset: u64) -> Self {
        CardAccess { function: Function::PF, card: card.clone(), memory: None, offset }
    }

    /// Returns the accesses of a VF's driver, with its memory at the start of its LMEM BAR.
    pub fn of_vf(card: &Arc<Card>, function: Function, bar: SharedRegion) -> Self {
        CardAccess { function, card: card.clone(), memory: Some(bar), offset: 0 }
    }

    /// Writes a GGTT entry through a trapped access.
    pub fn set_entry(&self, index: u64, entry: u64) {
        self.card.write_gttmmadr(self.function, GGTT_WINDOW + index * 8, &entry.to_le_bytes());
    }

    fn dword(&self, at: u64) -> VolatileSlice<'_> {
        let region = self.memory.as_ref().unwrap_or_else(|| self.card.gt().memory.local());
        region.slice(self.offset + at, 4).unwrap()
    }
}

impl arctic_guc_driver::Access for CardAccess {
    fn set(&self, register: u32, value: u32) {
        self.card.write_gttmmadr(self.function, u64::from(register), &value.to_le_bytes());
    }

    fn get(&self, register: u32) -> u32 {
        let mut data = [0; 4];
        self.card.read_gttmmadr(self.function, u64::from(register), &mut data);
        u32::from_le_bytes(data)
    }

    fn poke(&self, at: u64, value: u32) {
        self.dword(at).store(value, 0, Ordering::SeqCst).unwrap();
    }

    fn peek(&self, at: u64) -> u32 {
        self.dword(at).load(0, Ordering::SeqCst).unwrap()
    }
}

/// Submission by the device model's names of engine classes.
pub trait SubmitToClass: GucDriver {
    /// Writes, registers and enables a context that executes `commands`.
    fn submit(&mut self, id: u32, class: EngineClass, commands: &[u32]) {
        self.submit_to(id, class.guc().into(), commands);
    }
}

impl<D: GucDriver + ?Sized> SubmitToClass for D {}

/// Returns the instance numbers of each engine class of a card, in the GuC's class order.
pub fn instances(card: &Card) -> Vec<Vec<u8>> {
    let of = |class: &EngineClass| {
        let present = card.engines().present().map(|engine| XE_HPG.engines.info(engine));
        present.filter(|info| info.class == *class).map(|info| info.instance).collect()
    };
    EngineClass::BY_GUC.iter().map(of).collect()
}
