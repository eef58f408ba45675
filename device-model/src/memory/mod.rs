//! The card's one door to memory: global and per-process translation, local memory, guest memory.

pub mod ccs;
mod epoch;
mod gam;
pub mod ggtt;
pub mod layout;
pub mod local;
pub mod ppgtt;
pub mod span;
pub mod storage;
#[cfg(test)]
mod tests;
pub mod tlb;

use std::cell::OnceCell;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use arctic_sriov::gate::lmtt::{self, Lmtt, LmttFault};
use vm_memory::{Bytes, VolatileSlice};

use crate::world::{Dma, DmaView, FUNCTIONS, Function, MAX_VFS};
use epoch::Epoch;
pub use gam::{Gam, Zeroed};
use ggtt::Ggtt;
use local::SharedRegion;
pub use span::Span;
use storage::{FRAME, Place, Storage};
pub use tlb::Tlb;

/// An address space of the GT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// The global space, through the GGTT.
    Ggtt,
    /// A process's space: address of the root table in local memory (PDP0 of the context image).
    Ppgtt(u64),
}

/// What an access wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Data or instruction read.
    Read,
    /// Data write.
    Write,
}

/// An access that no translation permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Space of the access.
    pub space: Space,
    /// Address in that space.
    pub address: u64,
    /// What was wanted.
    pub access: Access,
    /// Why it failed.
    pub reason: FaultReason,
}

/// Why a translation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultReason {
    /// No valid entry; for the per-process tables, of this level (3 is the root). The GGTT has level 0 only.
    NotPresent {
        /// Level of the missing entry.
        level: u8,
    },
    /// A write to a page whose entry forbids it.
    ReadOnly,
    /// The entry points outside local memory.
    OutsideLocal,
    /// The guest's VMM does not map the address for the device.
    NotMapped,
    /// A global page of another function (V13-020).
    NotOwned,
    /// The function has not been given local memory there (V13-101).
    NotGiven,
}

/// What the VMM of one virtual function maps.
pub struct VfMemory {
    /// The function's LMEM BAR, by the guest's offset; sparse.
    pub local: SharedRegion,
    /// What the function writes into its GGTT window, [`ggtt::GGTT_BYTES`]; `None` where each access is trapped.
    pub ggtt: Option<SharedRegion>,
}

/// The memories that a card stands on.
pub struct Memories {
    /// Local memory, which is the PF's LMEM BAR; has the profile's size.
    pub local: SharedRegion,
    /// The global table, [`ggtt::GGTT_BYTES`].
    pub ggtt: SharedRegion,
    /// The virtual functions' own, VF 1 first; a card without VFs has none.
    pub vfs: Vec<VfMemory>,
}

/// Local memory, the GGTT and the way to guest memory.
pub struct Memory {
    storage: Storage,
    ggtt: Ggtt,
    dma: Arc<dyn Dma>,
    epoch: Epoch,
    flat_ccs: Option<u64>,
    /// LMEM_CFG (0xcf58): the directory of the LMTT.
    lmem_cfg: AtomicU32,
    /// Bytes of local memory that each VF has been given, whole frames; by [`Function::index`].
    quotas: [AtomicU64; FUNCTIONS],
}

impl Memory {
    /// Puts the card's memories together.
    pub fn new(local: SharedRegion, ggtt: Ggtt, dma: Arc<dyn Dma>) -> Self {
        Memory {
            storage: Storage::new(local),
            ggtt,
            dma,
            epoch: Epoch::new(),
            flat_ccs: None,
            lmem_cfg: AtomicU32::new(0),
            quotas: [const { AtomicU64::new(0) }; FUNCTIONS],
        }
    }

    /// The same memory with compression control from `base` of local memory on (XEHP_FLAT_CCS_BASE_ADDR).
    pub fn with_flat_ccs(mut self, base: u64) -> Self {
        self.flat_ccs = Some(base);
        self
    }

    /// The same memory with what the VFs' VMMs map.
    pub fn with_vfs(mut self, vfs: Vec<VfMemory>) -> Self {
        let (local, ggtt) = vfs.into_iter().map(|vf| (vf.local, vf.ggtt)).unzip();
        self.storage.set_vfs(local);
        self.ggtt.set_vfs(ggtt);
        self
    }

    /// Local memory as the PF's BAR shows it: frames that a VF has been given are not stored here.
    pub fn local(&self) -> &SharedRegion {
        self.storage.home()
    }

    /// The global table.
    pub fn ggtt(&self) -> &Ggtt {
        &self.ggtt
    }

    /// The guest mappings that one step touches; hold them for that step only.
    pub fn views(&self) -> Views<'_> {
        Views { dma: &*self.dma, taken: [const { OnceCell::new() }; FUNCTIONS] }
    }

    /// Whether accesses of `function`'s guest memory may ask its client ([`DmaView::asks_client`]).
    pub fn asks_client(&self, function: Function) -> bool {
        self.dma.view(function).asks_client()
    }

    /// Tells every TLB to forget, from its next step on. Whoever reports the invalidation as done must first see each
    /// engine pass a step boundary.
    pub fn invalidate(&self) {
        self.epoch.invalidate();
    }

    /// Opens the door for one step of work done for `function`. `views` is what [`Memory::views`] gave.
    pub fn gam<'m>(&'m self, function: Function, views: &'m Views<'m>, tlb: &'m mut Tlb) -> Gam<'m> {
        tlb.catch_up(self.epoch.now(), function);
        Gam::new(self, views, function, tlb)
    }

    /// LMEM_CFG has been written.
    pub fn set_lmem_cfg(&self, value: u32) {
        self.lmem_cfg.store(value, Ordering::Release);
        self.invalidate();
    }

    /// LMEM_CFG (V13-107).
    pub fn lmem_cfg(&self) -> u32 {
        self.lmem_cfg.load(Ordering::Acquire)
    }

    /// Gives `vf` the first `bytes` of its local memory (UPDATE_VF_CFG); only whole frames count. The frames themselves
    /// follow by [`Memory::adopt_lmtt`].
    pub fn set_quota(&self, vf: Function, bytes: u64) {
        if vf.is_vf() {
            self.quotas[vf.index()].store(bytes / FRAME * FRAME, Ordering::Release);
            self.invalidate();
        }
    }

    /// Local memory that `vf` has been given, in bytes.
    pub fn quota(&self, vf: Function) -> u64 {
        self.quotas[vf.index()].load(Ordering::Acquire)
    }

    /// Local memory that functions can be given; above it lies the card's own (V13-012, V13-034).
    fn usable(&self) -> u64 {
        self.flat_ccs.unwrap_or(self.local().len())
    }

    fn table_entry(&self, at: u64) -> Option<u32> {
        self.storage.slice(at, 4)?.load(0, Ordering::Acquire).ok()
    }

    /// The card's local memory address behind `function`'s own: the PF's are the card's (V13-011), a VF's go through the
    /// LMTT (V13-108, V13-109).
    fn host_address(&self, function: Function, address: u64) -> Result<u64, FaultReason> {
        if !function.is_vf() {
            return Ok(address);
        }
        let found = self.lmtt().walk(function.0, address, self.quota(function), |at| self.table_entry(at));
        found.map_err(|fault| match fault {
            LmttFault::Memory => FaultReason::OutsideLocal,
            _ => FaultReason::NotGiven,
        })
    }

    /// The LMTT as the PF has it now.
    fn lmtt(&self) -> Lmtt {
        Lmtt { register: self.lmem_cfg(), local_bytes: self.usable() }
    }

    /// Where the LMTT, as it is now, wants each frame to be stored. A frame that is given twice goes to the first, by
    /// function and page; one that holds tables of the LMTT stays at home, where the PF's guest writes them.
    fn places(&self) -> Vec<Place> {
        let mut places = vec![Place::HOME; self.storage.frames()];
        let lmtt = self.lmtt();
        let given = (1..=MAX_VFS as u8).map(Function).filter(|vf| self.quota(*vf) > 0);
        let tables: Vec<(Function, u64)> =
            given.filter_map(|vf| Some((vf, lmtt.table(vf.0, |at| self.table_entry(at)).ok()?))).collect();
        let mut held = vec![false; places.len()];
        for address in tables.iter().map(|(_, table)| *table).chain([lmtt.directory()]) {
            if let Some(held) = held.get_mut((address / FRAME) as usize) {
                *held = true;
            }
        }
        for (vf, table) in tables {
            let Some(region) = self.storage.region(vf) else { continue };
            let pages = self.quota(vf).min(region.len()).min(lmtt::GUEST_BYTES) / FRAME;
            for page in 0..pages {
                let Ok(address) = lmtt.frame(table, page, |at| self.table_entry(at)) else { continue };
                let frame = (address / FRAME) as usize;
                if let Some(place @ &mut Place::HOME) = places.get_mut(frame)
                    && !held[frame]
                {
                    *place = Place::of(vf, page as u16);
                }
            }
        }
        places
    }

    /// Stores each frame with the VF that the LMTT, as it is now, gives it to: its VMM's mapping of the LMEM BAR shows it
    /// from now on. A frame that changes place loses its contents ([`storage`]); the time that takes does not depend on
    /// what it held. To be called while all engines stand still ([`crate::engine::Engines::stand_still`]) and with the
    /// GuC's lock held, when the PF reports a change of the LMTT or of a quota. What is left behind is for
    /// [`Memory::scrub`].
    pub fn adopt_lmtt(&self) {
        let moved = self.storage.settle(&self.places());
        for run in &moved {
            // What was compressed is not there any more.
            if let Some(control) = self.control_of(run.start, run.end - run.start) {
                self.local().clear(control);
            }
        }
        if !moved.is_empty() {
            self.invalidate();
        }
    }

    /// Does beforehand what [`Memory::adopt_lmtt`] can do while the engines run. With the GuC's lock held.
    pub fn prepare_adoption(&self) {
        self.storage.make_room(&self.places());
    }

    /// Where frames are stored.
    #[cfg(test)]
    pub fn storage(&self) -> &storage::Storage {
        &self.storage
    }

    /// Whether functions have left behind what [`Memory::scrub`] gives back.
    pub fn untidy(&self) -> bool {
        self.storage.untidy()
    }

    /// Gives a piece of what functions have left behind where no frame is stored any more back to the host: a bounded step.
    /// False where nothing is left to do, or another thread is at it.
    pub fn scrub(&self) -> bool {
        self.storage.scrub()
    }

    /// Empties the local memory that `vf` has been given, and its compression control, as its PF does at the end of an
    /// FLR. No engine may work for `vf` meanwhile, and its quota must not change; all else goes on.
    pub fn clear_vf(&self, vf: Function) {
        for page in 0..self.quota(vf) / FRAME {
            let _still = self.storage.still();
            if let Ok(address) = self.host_address(vf, page * FRAME) {
                self.storage.clear(address, FRAME);
                if let Some(control) = self.control_of(address, FRAME) {
                    self.local().clear(control);
                }
            }
        }
    }

    /// Empties what `vf` has of its LMEM BAR beyond its local memory: part of every FLR, whatever leads it.
    pub fn free_unused(&self, vf: Function) {
        self.storage.free_unused(vf);
    }

    /// Bytes of the VF's region that hold something.
    #[cfg(test)]
    pub(crate) fn stored_by(&self, vf: Function) -> u64 {
        let region = self.storage.region(vf).unwrap();
        region.data(0..region.len()).map(|run| run.end - run.start).sum()
    }

    /// Every VF loses its local memory and its global table: PF FLR or conventional reset (V13-114, V13-115). The engines
    /// stand still.
    pub fn forget_vfs(&self) {
        self.set_lmem_cfg(0);
        for vf in (1..=MAX_VFS as u8).map(Function) {
            self.set_quota(vf, 0);
            self.ggtt.empty_vf(vf);
        }
        self.adopt_lmtt();
    }

    /// An access of `function`'s LMEM BAR that came as a message: calls `each(local memory if it is there, its part of
    /// the access)`.
    fn each_of_bar(
        &self,
        function: Function,
        offset: u64,
        len: usize,
        mut each: impl FnMut(Option<VolatileSlice<'_>>, Range<usize>),
    ) {
        let _still = self.storage.still();
        let mut done = 0;
        while done < len {
            let at = offset.checked_add(done as u64);
            let n = at.map_or(len, |at| usize::try_from(FRAME - at % FRAME).unwrap_or(len)).min(len - done);
            let address = at.and_then(|at| self.host_address(function, at).ok());
            each(address.and_then(|address| self.storage.slice(address, n)), done..done + n);
            done += n;
        }
    }

    /// Reads the LMEM BAR of `function`; all ones where it has no memory (V13-010, V13-011).
    pub fn read_bar(&self, function: Function, offset: u64, data: &mut [u8]) {
        data.fill(0xff);
        self.each_of_bar(function, offset, data.len(), |memory, part| {
            if let Some(memory) = memory {
                // The slice has just the length.
                let _ = memory.read_slice(&mut data[part], 0);
            }
        });
    }

    /// Writes the LMEM BAR of `function`; dropped where it has no memory.
    pub fn write_bar(&self, function: Function, offset: u64, data: &[u8]) {
        self.each_of_bar(function, offset, data.len(), |memory, part| {
            if let Some(memory) = memory {
                let _ = memory.write_slice(&data[part], 0);
            }
        });
    }
}

/// Guest mappings by function, each taken when a step first needs it and kept alive until the step ends.
pub struct Views<'m> {
    dma: &'m dyn Dma,
    taken: [OnceCell<Arc<dyn DmaView>>; FUNCTIONS],
}

impl Views<'_> {
    /// The mappings of `function`.
    pub fn of(&self, function: Function) -> &dyn DmaView {
        &**self.taken[function.index()].get_or_init(|| self.dma.view(function))
    }
}
