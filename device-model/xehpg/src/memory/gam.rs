// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Graphics address translation and memory access for one step, on behalf of one function. All accesses of the engines
//! and the GuC use it. Several threads may execute a step: each has a [`Gam`] and a TLB, and all share the step's guest
//! mappings.

use vm_memory::VolatileSlice;

use super::ppgtt::{self, WalkFault};
use super::storage::FrameBacking;
use super::tlb::{Backing, Page, Tlb};
use super::{Access, CellValue, Fault, FaultReason, GuestMappings, Memory, Space, Span, Zeroed, ggtt};
use crate::host::Function;

/// Minimum length in bytes for which [`Gam::zero`] queries the host for holes.
const MIN_SEARCHED: u64 = 64 << 10;

/// Smallest page in bytes.
const GUEST_PAGE: u64 = 4 << 10;

/// Mapped memory around an address ([`Gam::around`]).
#[derive(Clone, Copy)]
pub struct Window<'m> {
    /// Address of its first byte.
    pub base: u64,
    /// The memory.
    pub memory: VolatileSlice<'m>,
    /// It is local memory.
    pub local: bool,
}

impl Window<'_> {
    /// Place of an address in the memory; that of one which is outside is beyond the end.
    #[inline(always)]
    pub fn place(&self, address: u64) -> usize {
        arctic_sriov::number::size(address.wrapping_sub(self.base))
    }
}

/// The graphics access manager: translates addresses and accesses memory for one function during one step.
pub struct Gam<'m> {
    pub(super) memory: &'m Memory,
    views: &'m GuestMappings<'m>,
    function: Function,
    /// Functions (one bit each) that this thread knows to be recorded as used by the step.
    entered: u64,
    /// Bytes of local memory read and written; without [`Memory::count_traffic`] not all of them.
    traffic: [u64; 2],
    tlb: &'m mut Tlb,
}

impl<'m> Gam<'m> {
    /// Creates the manager for one step, which `views` has recorded for `function`; `tlb` must have caught up with the
    /// function's invalidation epoch since.
    pub(super) fn new(memory: &'m Memory, views: &'m GuestMappings<'m>, function: Function, tlb: &'m mut Tlb) -> Self {
        Gam { memory, views, function, entered: function.bit(), traffic: [0; 2], tlb }
    }

    /// Creates the memory access of a worker: another thread that executes a part of the same step, for the same
    /// function and with the same guest mappings. Each worker needs a TLB of its own, which is flushed if the engine's
    /// TLB has been flushed for any reason since the worker's last part ([`Tlb::follow`]). The engine's lock must be
    /// held until the last worker has finished: then everything that waits for a step boundary waits for the workers
    /// too.
    ///
    /// A flush during the step ([`Gam::flush_tlb`]) does not affect workers that have already been created.
    pub fn for_worker<'w>(&self, tlb: &'w mut Tlb) -> Gam<'w>
    where
        'm: 'w,
    {
        tlb.follow(self.tlb);
        Gam { tlb, traffic: [0; 2], ..*self }
    }

    /// Creates the memory access of the same step on behalf of another function, with a TLB that no engine uses.
    pub fn of<'w>(&self, function: Function, tlb: &'w mut Tlb) -> Gam<'w>
    where
        'm: 'w,
    {
        self.memory.gam(function, self.views, tlb)
    }

    /// Returns whether an access of the step was not answered by a function's client. A fault is then no property of the
    /// address: the access is to be tried again in a later step.
    pub fn unanswered(&self) -> bool {
        self.views.unanswered()
    }

    /// Counts bytes of local memory that are read or written.
    #[inline]
    pub fn count(&mut self, access: Access, bytes: u64) {
        let [read, written] = &mut self.traffic;
        let count = if access == Access::Read { read } else { written };
        *count = count.wrapping_add(bytes);
    }

    /// Takes the bytes of local memory read and written since the last call. With [`Memory::count_traffic`] these are all.
    pub fn take_traffic(&mut self) -> [u64; 2] {
        std::mem::take(&mut self.traffic)
    }

    /// The function on whose behalf accesses are made.
    pub fn function(&self) -> Function {
        self.function
    }

    /// Flushes cached translations (MI_FLUSH_DW and PIPE_CONTROL with TLB invalidate).
    pub fn flush_tlb(&mut self) {
        self.tlb.flush();
    }

    /// Translates a GGTT address. A VF can access only its own pages; the PF can access the pages of all functions,
    /// through the owner's second level of translation (V13-020, V13-030, V13-031).
    fn ggtt_page(&mut self, address: u64) -> Result<Page, FaultReason> {
        let (entry, owner) = loop {
            let index = address >> 12;
            let entry = self.memory.ggtt.effective(index);
            if address >> 32 != 0 || !entry.valid() {
                return Err(FaultReason::NotPresent { level: 0 });
            }
            let owner = entry.function().ok_or(FaultReason::NotOwned)?;
            if self.entered & owner.bit() != 0 {
                break (entry, owner);
            }
            if self.function.is_vf() {
                return Err(FaultReason::NotOwned);
            }
            // Recorded before the entry is used: the owner may be invalidating it. Each function is added at most once.
            self.views.enter(owner);
            self.entered |= owner.bit();
        };
        let local = entry.local();
        let page = Page {
            base: address & !(ggtt::GGTT_PAGE - 1),
            len: ggtt::GGTT_PAGE,
            target: entry.address(),
            root: 0,
            backing: if local { Backing::Local } else { Backing::System(owner) },
            writable: true,
        };
        if local { self.stored(owner, page) } else { Ok(page) }
    }

    /// Translates a page of `owner`'s local memory, limited to one frame, to the card's local memory.
    fn stored(&self, owner: Function, mut page: Page) -> Result<Page, FaultReason> {
        page.target = self.memory.host_address(owner, page.target)?;
        if self.memory.storage.place(page.target) != FrameBacking::PF {
            page.backing = Backing::Moved;
        }
        Ok(page)
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
        let (memory, function) = (self.memory, self.function);
        let load = |at: u64| {
            let at = memory.host_address(function, at)?;
            let entry = memory.storage.slice(at, 8).ok_or(FaultReason::OutsideLocal)?;
            u64::load(&entry, 0).ok_or(FaultReason::OutsideLocal)
        };
        let found = ppgtt::walk(memory.page_tables, self.tlb, function, root, address, load);
        let mut page = found.map_err(|fault| match fault {
            WalkFault::NotPresent { level } => FaultReason::NotPresent { level },
            WalkFault::Table(reason) => reason,
        })?;
        if page.backing == Backing::Local {
            page = self.stored(function, page.within_frame(address))?;
            if memory.counts_traffic() {
                page.backing = Backing::Counted;
            }
        }
        self.tlb.insert(address, page);
        Ok(page)
    }

    /// Returns the page that translates `address` for `access`.
    #[inline]
    pub(super) fn page(&mut self, space: Space, address: u64, access: Access) -> Result<Page, Fault> {
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

    /// Checks that `address` has a translation for `access`, without an access.
    pub fn check(&mut self, space: Space, address: u64, access: Access) -> Result<(), Fault> {
        self.page(space, address, access).map(|_| ())
    }

    /// Returns a span of bytes `[address, address + n)` of `space`, 1 <= n <= `len`, limited by the end of the page or
    /// of its mapping.
    #[inline]
    pub fn span(&mut self, space: Space, address: u64, len: usize, access: Access) -> Result<Span<'m>, Fault> {
        let (span, local) = self.uncounted_span(space, address, len, access)?;
        if local {
            self.count(access, span.len() as u64);
        }
        Ok(span)
    }

    /// Returns mapped memory of `len` bytes from `address` on, if all of them are in one page; otherwise the access is to be
    /// divided, or fails.
    #[inline]
    pub fn undivided(&mut self, space: Space, address: u64, len: usize, access: Access) -> Option<VolatileSlice<'m>> {
        let Ok((Span::Mapped(memory), local)) = self.uncounted_span(space, address, len, access) else { return None };
        if memory.len() != len {
            return None;
        }
        if local {
            self.count(access, len as u64);
        }
        Some(memory)
    }

    /// Returns a span as [`Gam::span`] does, without counting it, and whether it is of local memory.
    #[inline]
    pub(super) fn uncounted_span(
        &mut self,
        space: Space,
        address: u64,
        len: usize,
        access: Access,
    ) -> Result<(Span<'m>, bool), Fault> {
        let page = self.page(space, address, access)?;
        // The page contains the address, and its target has at most 48 bits.
        let offset = address.wrapping_sub(page.base);
        let len = len.min(usize::try_from(page.len.wrapping_sub(offset)).unwrap_or(usize::MAX));
        let target = page.target.wrapping_add(offset);
        match page.backing {
            Backing::Null => Ok((Span::Null(len), false)),
            Backing::Local | Backing::Moved | Backing::Counted => {
                let slice = self.memory.storage.slice_up_to(target, len);
                let span = slice.map(|slice| (Span::Mapped(slice), true));
                span.ok_or(Fault { space, address, access, reason: FaultReason::OutsideLocal })
            }
            Backing::System(owner) => Ok((Span::guest(self.views.of(owner), target, len, access), false)),
        }
    }

    /// Returns mapped memory that contains `address`: the page of local memory, or the 4 KiB of guest memory, of which all are
    /// marked as written. `None` for memory that is not mapped, of which [`Gam::span`] returns the span. What the caller
    /// accesses of local memory it must count ([`Gam::count`]).
    #[inline]
    pub fn around(&mut self, space: Space, address: u64, access: Access) -> Result<Option<Window<'m>>, Fault> {
        let page = self.page(space, address, access)?;
        match page.backing {
            Backing::Null => Ok(None),
            Backing::Local | Backing::Moved | Backing::Counted => {
                let len = usize::try_from(page.len).unwrap_or(usize::MAX);
                let memory = self.memory.storage.slice_up_to(page.target, len);
                Ok(memory.map(|memory| Window { base: page.base, memory, local: true }))
            }
            Backing::System(owner) => {
                let inside = address & (GUEST_PAGE - 1);
                // The page contains the address, is aligned and has at least this size.
                let target = page.target.wrapping_add(address.wrapping_sub(page.base)) & !(GUEST_PAGE - 1);
                let memory = self.views.of(owner).slice(target, arctic_sriov::number::size(GUEST_PAGE), access);
                Ok(memory.map(|memory| Window { base: address.wrapping_sub(inside), memory, local: false }))
            }
        }
    }

    /// Makes local memory that starts at `address` read as zeros, up to `len` bytes and up to the end of the page,
    /// without writing to memory that is already zero. VF memory cleared by the PF is released to the host regardless
    /// of its size, because the PF clears it at the end of an FLR (contract H.3.4). Other memory is usually cleared for
    /// use, and releasing it would cost a host page fault per page. Returns `None` if nothing was done, for example
    /// because the range is too short or not in local memory; the caller must then write zeros through [`Gam::span`].
    pub fn zero(&mut self, space: Space, address: u64, len: u64) -> Result<Option<Zeroed>, Fault> {
        let page = self.page(space, address, Access::Write)?;
        let offset = address.wrapping_sub(page.base);
        let len = len.min(page.len.wrapping_sub(offset));
        if !page.backing.is_local() || len < MIN_SEARCHED {
            return Ok(None);
        }
        let moved = self.memory.storage.place(page.target) != FrameBacking::PF;
        let release = moved && !self.function.is_vf();
        let held = self.memory.storage.zero(page.target.wrapping_add(offset), len, release);
        if held.is_some() {
            self.count(Access::Write, len);
        }
        Ok(held.map(|held| Zeroed { len, held }))
    }

    /// Reads into `data`, starting at `address`, across page boundaries.
    pub fn read(&mut self, space: Space, address: u64, data: &mut [u8]) -> Result<(), Fault> {
        let (mut at, mut rest) = (address, data);
        while !rest.is_empty() {
            let span = self.span(space, at, rest.len(), Access::Read)?;
            let (part, after) = rest.split_at_mut(span.len());
            span.read(part).map_err(|_| not_mapped(space, at, Access::Read))?;
            (at, rest) = (at.wrapping_add(span.len() as u64), after);
        }
        Ok(())
    }

    /// Writes `data`, starting at `address`, across page boundaries.
    pub fn write(&mut self, space: Space, address: u64, data: &[u8]) -> Result<(), Fault> {
        let (mut at, mut rest) = (address, data);
        while !rest.is_empty() {
            let span = self.span(space, at, rest.len(), Access::Write)?;
            let (part, after) = rest.split_at(span.len());
            span.write(part).map_err(|_| not_mapped(space, at, Access::Write))?;
            (at, rest) = (at.wrapping_add(span.len() as u64), after);
        }
        Ok(())
    }

    /// TLB lookup for a PPGTT address of local memory: returns the card's address if all `len` bytes are in one cached
    /// page that permits `access` and has this `backing`.
    #[inline(always)]
    fn hit(&self, space: Space, address: u64, len: usize, access: Access, backing: Backing) -> Option<u64> {
        let Space::Ppgtt(root) = space else { return None };
        let page = self.tlb.find(root, address)?;
        let offset = address.wrapping_sub(page.base);
        let permitted = page.backing == backing && (access == Access::Read || page.writable);
        if !permitted || page.len.wrapping_sub(offset) < len as u64 {
            return None;
        }
        Some(page.target.wrapping_add(offset))
    }

    /// Fast path of single loads and stores in local memory; `None` selects the slow path.
    #[inline(always)]
    fn local_hit(&self, space: Space, address: u64, len: usize, access: Access) -> Option<VolatileSlice<'m>> {
        self.memory.storage.home().slice(self.hit(space, address, len, access, Backing::Local)?, len)
    }

    /// Like [`Gam::local_hit`], for a frame that is stored in a VF's region.
    #[inline(never)]
    fn moved_hit(&self, space: Space, address: u64, len: usize, access: Access) -> Option<VolatileSlice<'m>> {
        self.memory.storage.slice(self.hit(space, address, len, access, Backing::Moved)?, len)
    }

    /// Reads a cell; atomic if aligned.
    #[inline(always)]
    pub fn load<T: CellValue>(&mut self, space: Space, address: u64) -> Result<T, Fault> {
        if let Some(slice) = self.local_hit(space, address, T::BYTES, Access::Read)
            && let Some(value) = T::load(&slice, 0)
        {
            return Ok(value);
        }
        if let Some(slice) = self.undivided(space, address, T::BYTES, Access::Read)
            && let Some(value) = T::load(&slice, 0)
        {
            return Ok(value);
        }
        let mut data = [0; 8];
        self.read(space, address, data.get_mut(..T::BYTES).unwrap_or_default())?;
        Ok(T::low(u64::from_le_bytes(data)))
    }

    /// Writes a cell; atomic if aligned.
    #[inline(always)]
    pub fn store<T: CellValue>(&mut self, space: Space, address: u64, value: T) -> Result<(), Fault> {
        if let Some(slice) = self.local_hit(space, address, T::BYTES, Access::Write)
            && value.store(&slice, 0)
        {
            return Ok(());
        }
        self.store_slowly(space, address, value)
    }

    #[cold]
    fn store_slowly<T: CellValue>(&mut self, space: Space, address: u64, value: T) -> Result<(), Fault> {
        if let Some(slice) = self.moved_hit(space, address, T::BYTES, Access::Write)
            && value.store(&slice, 0)
        {
            return Ok(());
        }
        if let Some(slice) = self.undivided(space, address, T::BYTES, Access::Write)
            && value.store(&slice, 0)
        {
            return Ok(());
        }
        let value: u64 = value.into();
        self.write(space, address, value.to_le_bytes().get(..T::BYTES).unwrap_or_default())
    }

    /// Reads a dword; atomic if aligned.
    #[inline]
    pub fn read_u32(&mut self, space: Space, address: u64) -> Result<u32, Fault> {
        self.load(space, address)
    }

    /// Writes a dword; atomic if aligned.
    #[inline(always)]
    pub fn write_u32(&mut self, space: Space, address: u64, value: u32) -> Result<(), Fault> {
        self.store(space, address, value)
    }

    /// Reads a qword; atomic if aligned.
    pub fn read_u64(&mut self, space: Space, address: u64) -> Result<u64, Fault> {
        self.load(space, address)
    }

    /// Writes a qword; atomic if aligned.
    pub fn write_u64(&mut self, space: Space, address: u64, value: u64) -> Result<(), Fault> {
        self.store(space, address, value)
    }
}

fn not_mapped(space: Space, address: u64, access: Access) -> Fault {
    Fault { space, address, access, reason: FaultReason::NotMapped }
}
