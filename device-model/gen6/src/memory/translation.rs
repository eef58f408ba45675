// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Translation of graphics addresses to guest memory, for one step or one access of a CPU.

use std::cell::Cell;

use arctic_base::host::{Access, DmaView};
use arctic_base::memory::{Span, SpanError};
use vm_memory::VolatileSlice;

use super::fault_type::FaultType;
use super::ggtt::{Ggtt, Pte};
use super::tlb::Tlb;
use super::{PAGE, PAGE_MASK};

/// Size of the memory that a page directory entry maps (IVB-032).
const DIRECTORY_ENTRY: u32 = 4 << 20;
/// Bit of an entry of a page directory: the pages of its table have 32 KiB (IVB-035, ILK-013).
const BIG_PAGES: u32 = 1 << 1;
/// Size of a big page in bytes.
const BIG_PAGE: u32 = 32 << 10;
/// Number of entries of a page directory (G67-059).
const DIRECTORY_ENTRIES: u32 = 512;
/// Number of pages that [`MappedPages`] keeps: of a batch, and those that it writes in turn.
const MAPPED: usize = 16;
/// Number of directory entries of a bit of PP_DCLV (IVB-032).
const ENTRIES_OF_A_BIT: u32 = 16;

/// A page directory of the PPGTT. Its entries are in the table of the GGTT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Directory {
    /// Index of its first entry in the GGTT's table.
    pub first: u32,
    /// PP_DCLV: the groups of entries that are loaded.
    pub loaded: u32,
}

impl Directory {
    /// The directory that PP_DIR_BASE and PP_DCLV select: bits 31:16 are its place in units of 64 bytes (G67-060).
    pub fn new(base: u32, loaded: u32) -> Self {
        Directory { first: base >> 16 << 4, loaded }
    }

    /// Index in the GGTT's table of directory entry `entry`, if it is one that PP_DCLV does not exclude.
    pub fn loaded_entry(self, entry: u32) -> Option<u32> {
        let group = entry / ENTRIES_OF_A_BIT;
        let loaded = entry < DIRECTORY_ENTRIES && self.loaded >> group & 1 != 0;
        loaded.then(|| self.first.wrapping_add(entry))
    }
}

/// An address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// The global space.
    Ggtt,
    /// The space of a page directory.
    Ppgtt(Directory),
}

/// An access without a translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The address space.
    pub space: Space,
    /// The address.
    pub address: u32,
    /// Type of the fault.
    pub kind: FaultType,
    /// The access was a write.
    pub write: bool,
}

/// Translation of addresses, with the function's view of guest memory.
pub struct Memory<'m> {
    ggtt: &'m Ggtt,
    view: &'m dyn DmaView,
    /// Addresses are not translated.
    bypass: Cell<bool>,
    /// The TLB of the engine that makes the accesses; none for accesses of CPUs.
    tlb: Option<Tlb>,
}

impl<'m> Memory<'m> {
    /// Translates by `ggtt`; guest memory is `view`, for the duration of a step. No translation is cached.
    pub fn new(ggtt: &'m Ggtt, view: &'m dyn DmaView) -> Self {
        Memory { ggtt, view, bypass: Cell::new(false), tlb: None }
    }

    /// Adds the TLB of an engine, for one of its steps.
    pub fn with_tlb(self, tlb: Tlb) -> Self {
        Memory { tlb: Some(tlb), ..self }
    }

    /// The TLB, after a step.
    pub fn into_tlb(self) -> Option<Tlb> {
        self.tlb
    }

    /// Invalidates cached translations if the engine's number of invalidations has changed since the last call.
    #[inline]
    pub fn follow(&self, invalidations: u64) {
        if let Some(tlb) = &self.tlb {
            tlb.follow(invalidations);
        }
    }

    /// States whether addresses are those of guest memory, without a translation (IVB-010).
    #[inline]
    pub fn bypass(&self, bypass: bool) {
        self.bypass.set(bypass);
    }

    /// Returns whether an access was not answered by the client ([`DmaView::unanswered`]). A fault is then no property of
    /// the address.
    pub fn unanswered(&self) -> bool {
        self.view.unanswered()
    }

    /// The table of the GGTT.
    #[inline]
    pub fn ggtt(&self) -> &'m Ggtt {
        self.ggtt
    }

    /// Address of the page of 4 KiB of `address` by `directory`.
    fn page(&self, directory: Directory, address: u32) -> Result<u64, FaultType> {
        let entry = directory.loaded_entry(address / DIRECTORY_ENTRY).ok_or(FaultType::UnloadedDirectory)?;
        let entry = self.ggtt.entry(entry);
        let table = entry.page().ok_or(FaultType::InvalidDirectory)?;
        let size = if entry.0 & BIG_PAGES != 0 { BIG_PAGE } else { PAGE };
        // The table has an entry for each 4 KiB; of a big page, the first is used.
        let first = address % DIRECTORY_ENTRY & !size.saturating_sub(1);
        let at = table | u64::from(first / PAGE) << 2;
        let mut bytes = [0; 4];
        Span::guest(self.view, at, 4, Access::Read).read(&mut bytes).map_err(|_| FaultType::Page)?;
        let page = Pte(u32::from_le_bytes(bytes)).page().ok_or(FaultType::Page)?;
        let part = address & size.saturating_sub(1) & PAGE_MASK;
        Ok(page & !u64::from(size.saturating_sub(1)) | u64::from(part))
    }

    /// Walks the tables for the page of `address`.
    fn walk(&self, space: Space, address: u32) -> Result<u64, FaultType> {
        match space {
            Space::Ggtt => self.ggtt.entry(address / PAGE).page().ok_or(FaultType::Page),
            Space::Ppgtt(directory) => self.page(directory, address),
        }
    }

    /// Returns the physical address of `address`, for an access of the command streamer or a CPU.
    #[inline]
    pub fn translate(&self, space: Space, address: u32) -> Result<u64, Fault> {
        if self.bypass.get() {
            return Ok(address.into());
        }
        let page = match (&self.tlb, space) {
            (None, _) => self.walk(space, address),
            (Some(tlb), Space::Ggtt) => {
                // Before the entry is read: a write afterwards hides the page.
                let writes = self.ggtt.writes();
                self.walk(space, address).inspect(|_| tlb.show(address, Some(writes)))
            }
            (Some(tlb), Space::Ppgtt(_)) => {
                tlb.find(address / PAGE, false, || self.walk(space, address).inspect(|_| tlb.show(address, None)))
            }
        };
        let page = page.map_err(|kind| Fault { space, address, kind, write: false })?;
        Ok(page | u64::from(address % PAGE))
    }

    #[cold]
    fn page_of(&self, directory: Directory, address: u32, access: Access) -> Option<VolatileSlice<'m>> {
        let page = self.translate(Space::Ppgtt(directory), address & PAGE_MASK).ok()?;
        self.view.slice(page, PAGE as usize, access)
    }

    /// Returns a span of the page of a surface with this number, for a blit.
    pub fn surface(&self, space: Space, number: u32, access: Access) -> Result<Span<'m>, Fault> {
        let address = number.wrapping_mul(PAGE);
        let walk = || self.walk(space, address);
        let page = match &self.tlb {
            _ if self.bypass.get() => Ok(address.into()),
            Some(tlb) => tlb.find(number, space == Space::Ggtt, walk),
            None => walk(),
        };
        let page = page.map_err(|kind| Fault { space, address, kind, write: false })?;
        Ok(Span::guest(self.view, page, PAGE as usize, access))
    }

    /// Returns a span of bytes `[address, address + n)` of `space`, 1 <= n <= `len`, limited by the end of the page or
    /// of its mapping. `len` must not be 0.
    pub fn span(&self, space: Space, address: u32, len: usize, access: Access) -> Result<Span<'m>, Fault> {
        let target = self.translate(space, address)?;
        let rest = PAGE.saturating_sub(address % PAGE);
        Ok(Span::guest(self.view, target, len.min(rest as usize), access))
    }

    /// Accesses `len` bytes at `address`, span by span: `each` receives a span and its offset.
    fn each(
        &self,
        (space, address, len): (Space, u32, usize),
        access: Access,
        mut each: impl FnMut(Span<'m>, usize) -> Result<(), SpanError>,
    ) -> Result<(), Fault> {
        let (mut at, mut done) = (address, 0_usize);
        while done < len {
            let span = self.span(space, at, len.saturating_sub(done), access)?;
            let n = span.len();
            each(span, done).map_err(|_| Fault { space, address: at, kind: FaultType::Page, write: false })?;
            done = done.saturating_add(n);
            at = at.wrapping_add(u32::try_from(n).unwrap_or(PAGE));
        }
        Ok(())
    }

    /// Reads into `data`, across page boundaries.
    pub fn read(&self, space: Space, address: u32, data: &mut [u8]) -> Result<(), Fault> {
        let len = data.len();
        self.each((space, address, len), Access::Read, |span, done| {
            span.read(data.get_mut(done..done.saturating_add(span.len())).unwrap_or_default())
        })
    }

    /// Writes `data`, across page boundaries.
    pub fn write(&self, space: Space, address: u32, data: &[u8]) -> Result<(), Fault> {
        let written = self.each((space, address, data.len()), Access::Write, |span, done| {
            span.write(data.get(done..done.saturating_add(span.len())).unwrap_or_default())
        });
        written.map_err(|fault| Fault { write: true, ..fault })
    }

    /// Reads the dword at `address`.
    pub fn read32(&self, space: Space, address: u32) -> Result<u32, Fault> {
        let mut bytes = [0; 4];
        self.read(space, address, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// Writes the dword at `address`.
    pub fn write32(&self, space: Space, address: u32, value: u32) -> Result<(), Fault> {
        self.write(space, address, &value.to_le_bytes())
    }
}

/// Pages of the PPGTT in mapped guest memory, for accesses of one type of an engine in one step. A page stays valid as long
/// as its translation in the TLB.
pub struct MappedPages<'m> {
    access: Access,
    /// By the number of the page: its key ([`Tlb::key`], 0 if unused), and its bytes.
    slots: [(u64, Option<VolatileSlice<'m>>); MAPPED],
}

impl<'m> MappedPages<'m> {
    /// Creates an empty set of pages.
    pub fn new(access: Access) -> Self {
        MappedPages { access, slots: Default::default() }
    }

    /// The page of `address`, if it has a translation to mapped memory, and the TLB of an engine caches it.
    #[inline]
    #[allow(clippy::indexing_slicing, reason = "the index is reduced modulo the number of pages")]
    pub fn find(&mut self, memory: &Memory<'m>, directory: Directory, address: u32) -> Option<VolatileSlice<'m>> {
        let number = address / PAGE;
        let key = memory.tlb.as_ref()?.key(number);
        let slot = &mut self.slots[number as usize % MAPPED];
        if slot.0 != key {
            *slot = (key, memory.page_of(directory, address, self.access));
        }
        slot.1
    }
}
