//! The card's one door to memory: global and per-process translation, local memory, guest memory.

pub mod ccs;
pub mod ggtt;
pub mod layout;
pub mod local;
pub mod ppgtt;
pub mod span;
#[cfg(test)]
mod tests;
pub mod tlb;

use std::cell::OnceCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use vm_memory::{Bytes, VolatileMemory, VolatileSlice};

use crate::world::{Dma, DmaView, FUNCTIONS, Function};
use ggtt::Ggtt;
use local::SharedRegion;
use ppgtt::WalkFault;
pub use span::Span;
pub use tlb::Tlb;
use tlb::{Backing, Page};

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
    local: SharedRegion,
    ggtt: Ggtt,
    dma: Arc<dyn Dma>,
    epoch: AtomicU64,
    flat_ccs: Option<u64>,
    vfs: Vec<VfMemory>,
}

impl Memory {
    /// Puts the card's memories together.
    pub fn new(local: SharedRegion, ggtt: Ggtt, dma: Arc<dyn Dma>) -> Self {
        Memory { local, ggtt, dma, epoch: AtomicU64::new(1), flat_ccs: None, vfs: Vec::new() }
    }

    /// The same memory with compression control from `base` of local memory on (XEHP_FLAT_CCS_BASE_ADDR).
    pub fn with_flat_ccs(mut self, base: u64) -> Self {
        self.flat_ccs = Some(base);
        self
    }

    /// The same memory with what the VFs' VMMs map.
    pub fn with_vfs(mut self, vfs: Vec<VfMemory>) -> Self {
        self.vfs = vfs;
        self
    }

    /// Local memory as the card's own units address it.
    pub fn local(&self) -> &SharedRegion {
        &self.local
    }

    /// The global table.
    pub fn ggtt(&self) -> &Ggtt {
        &self.ggtt
    }

    /// The guest mappings that one step touches; hold them for that step only.
    pub fn views(&self) -> Views<'_> {
        Views { dma: &*self.dma, taken: [const { OnceCell::new() }; FUNCTIONS] }
    }

    /// Tells every TLB to forget, from its next step on. Whoever reports the invalidation as done must first see each
    /// engine pass a step boundary.
    pub fn invalidate(&self) {
        self.epoch.fetch_add(1, Ordering::Release);
    }

    /// Opens the door for one step of work done for `function`. `views` is what [`Memory::views`] gave.
    pub fn gam<'m>(&'m self, function: Function, views: &'m Views<'m>, tlb: &'m mut Tlb) -> Gam<'m> {
        tlb.catch_up(self.epoch.load(Ordering::Acquire));
        Gam { memory: self, views, function, tlb }
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

/// The graphics access manager: translates and reaches memory for one function during one step.
pub struct Gam<'m> {
    memory: &'m Memory,
    views: &'m Views<'m>,
    function: Function,
    tlb: &'m mut Tlb,
}

impl<'m> Gam<'m> {
    /// The function that the accesses are made for.
    pub fn function(&self) -> Function {
        self.function
    }

    /// Forgets cached translations (MI_FLUSH_DW and PIPE_CONTROL with TLB invalidate).
    pub fn flush_tlb(&mut self) {
        self.tlb.flush();
    }

    fn ggtt_page(&self, address: u64) -> Result<Page, FaultReason> {
        let entry = self.memory.ggtt.entry(address >> 12);
        if address >> 32 != 0 || !entry.valid() {
            return Err(FaultReason::NotPresent { level: 0 });
        }
        Ok(Page {
            base: address & !(ggtt::GGTT_PAGE - 1),
            len: ggtt::GGTT_PAGE,
            target: entry.address(),
            root: 0,
            backing: if entry.local() { Backing::Local } else { Backing::System },
            writable: true,
        })
    }

    #[inline]
    fn ppgtt_page(&mut self, root: u64, address: u64) -> Result<Page, FaultReason> {
        match self.tlb.find(root, address) {
            Some(page) => Ok(*page),
            None => self.walk(root, address),
        }
    }

    #[cold]
    fn walk(&mut self, root: u64, address: u64) -> Result<Page, FaultReason> {
        let local = &self.memory.local;
        let load = |at: u64| local.slice(at, 8)?.load::<u64>(0, Ordering::Acquire).ok();
        let page = ppgtt::walk(self.tlb, root, address, load).map_err(|fault| match fault {
            WalkFault::NotPresent { level } => FaultReason::NotPresent { level },
            WalkFault::BadTable => FaultReason::OutsideLocal,
        })?;
        self.tlb.insert(address, page);
        Ok(page)
    }

    /// The page that translates `address` for `access`.
    #[inline]
    fn page(&mut self, space: Space, address: u64, access: Access) -> Result<Page, Fault> {
        let fault = |reason| Fault { space, address, access, reason };
        let page = match space {
            Space::Ggtt => self.ggtt_page(address),
            Space::Ppgtt(root) => self.ppgtt_page(root, address),
        }
        .map_err(fault)?;
        if access == Access::Write && !page.writable {
            return Err(fault(FaultReason::ReadOnly));
        }
        Ok(page)
    }

    /// Opens bytes `[address, address + n)` of `space`, 1 <= n <= `len`: as far as the page (or its mapping) goes.
    #[inline]
    pub fn span(&mut self, space: Space, address: u64, len: usize, access: Access) -> Result<Span<'m>, Fault> {
        let page = self.page(space, address, access)?;
        let offset = address - page.base;
        let len = len.min(usize::try_from(page.len - offset).unwrap_or(usize::MAX));
        let target = page.target + offset;
        match page.backing {
            Backing::Null => Ok(Span::Null(len)),
            Backing::Local => self.memory.local.slice_up_to(target, len).map(Span::Mapped).ok_or(Fault {
                space,
                address,
                access,
                reason: FaultReason::OutsideLocal,
            }),
            Backing::System => {
                let view = self.views.of(self.function);
                Ok(match view.slice(target, len) {
                    Some(slice) => Span::Mapped(slice),
                    None => Span::Remote { view, iova: target, len },
                })
            }
        }
    }

    /// Fills `data` from `address` on, across pages.
    pub fn read(&mut self, space: Space, address: u64, data: &mut [u8]) -> Result<(), Fault> {
        let mut done = 0;
        while done < data.len() {
            let at = address.wrapping_add(done as u64);
            let span = self.span(space, at, data.len() - done, Access::Read)?;
            let n = span.len();
            span.read(&mut data[done..done + n]).map_err(|_| not_mapped(space, at, Access::Read))?;
            done += n;
        }
        Ok(())
    }

    /// Writes `data` from `address` on, across pages.
    pub fn write(&mut self, space: Space, address: u64, data: &[u8]) -> Result<(), Fault> {
        let mut done = 0;
        while done < data.len() {
            let at = address.wrapping_add(done as u64);
            let span = self.span(space, at, data.len() - done, Access::Write)?;
            let n = span.len();
            span.write(&data[done..done + n]).map_err(|_| not_mapped(space, at, Access::Write))?;
            done += n;
        }
        Ok(())
    }

    /// Local memory of `len` bytes at a process address whose page is in the TLB: the short way of single loads and
    /// stores; `None` sends them the long one.
    #[inline(always)]
    fn local_hit(&self, space: Space, address: u64, len: usize, access: Access) -> Option<VolatileSlice<'m>> {
        let Space::Ppgtt(root) = space else { return None };
        let page = self.tlb.find(root, address)?;
        let offset = address.wrapping_sub(page.base);
        let permitted = page.backing == Backing::Local && (access == Access::Read || page.writable);
        if !permitted || page.len.wrapping_sub(offset) < len as u64 {
            return None;
        }
        self.memory.local.slice(page.target.wrapping_add(offset), len)
    }

    /// Reads a dword; in one piece where it is aligned.
    #[inline]
    pub fn read_u32(&mut self, space: Space, address: u64) -> Result<u32, Fault> {
        if let Some(slice) = self.local_hit(space, address, 4, Access::Read)
            && let Ok(value) = slice.load::<u32>(0, Ordering::Acquire)
        {
            return Ok(value);
        }
        if let Span::Mapped(slice) = self.span(space, address, 4, Access::Read)?
            && let Ok(value) = slice.load::<u32>(0, Ordering::Acquire)
        {
            return Ok(value);
        }
        let mut data = [0; 4];
        self.read(space, address, &mut data)?;
        Ok(u32::from_le_bytes(data))
    }

    /// Writes a dword; in one piece where it is aligned.
    #[inline(always)]
    pub fn write_u32(&mut self, space: Space, address: u64, value: u32) -> Result<(), Fault> {
        if let Some(slice) = self.local_hit(space, address, 4, Access::Write)
            && let Ok(cell) = slice.get_atomic_ref::<AtomicU32>(0)
        {
            cell.store(value.to_le(), Ordering::Release);
            return Ok(());
        }
        self.write_u32_slowly(space, address, value)
    }

    #[cold]
    fn write_u32_slowly(&mut self, space: Space, address: u64, value: u32) -> Result<(), Fault> {
        if let Span::Mapped(slice) = self.span(space, address, 4, Access::Write)?
            && slice.store(value, 0, Ordering::Release).is_ok()
        {
            return Ok(());
        }
        self.write(space, address, &value.to_le_bytes())
    }

    /// Reads a qword; in one piece where it is aligned.
    pub fn read_u64(&mut self, space: Space, address: u64) -> Result<u64, Fault> {
        if let Some(slice) = self.local_hit(space, address, 8, Access::Read)
            && let Ok(value) = slice.load::<u64>(0, Ordering::Acquire)
        {
            return Ok(value);
        }
        if let Span::Mapped(slice) = self.span(space, address, 8, Access::Read)?
            && let Ok(value) = slice.load::<u64>(0, Ordering::Acquire)
        {
            return Ok(value);
        }
        let mut data = [0; 8];
        self.read(space, address, &mut data)?;
        Ok(u64::from_le_bytes(data))
    }

    /// Writes a qword; in one piece where it is aligned.
    pub fn write_u64(&mut self, space: Space, address: u64, value: u64) -> Result<(), Fault> {
        if let Some(slice) = self.local_hit(space, address, 8, Access::Write)
            && let Ok(cell) = slice.get_atomic_ref::<AtomicU64>(0)
        {
            cell.store(value.to_le(), Ordering::Release);
            return Ok(());
        }
        self.write_u64_slowly(space, address, value)
    }

    #[cold]
    fn write_u64_slowly(&mut self, space: Space, address: u64, value: u64) -> Result<(), Fault> {
        if let Span::Mapped(slice) = self.span(space, address, 8, Access::Write)?
            && slice.store(value, 0, Ordering::Release).is_ok()
        {
            return Ok(());
        }
        self.write(space, address, &value.to_le_bytes())
    }
}

fn not_mapped(space: Space, address: u64, access: Access) -> Fault {
    Fault { space, address, access, reason: FaultReason::NotMapped }
}
