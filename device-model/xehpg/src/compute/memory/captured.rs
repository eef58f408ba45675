// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The memory of a walker that is captured: each page, surface and sampler is recorded before its first access. The accesses
//! themselves are those of [`KernelMemory`].

use arctic_base::blitter::{Compression, Piece};
use arctic_eu::capture::{PAGE_BYTES, PageName, SamplerName, SurfaceName};
use arctic_eu::exec::memory::{Access, Atomic, Image, LaneFault, LaneSpans, Memory, MemoryFault, Sampler, Surface};
use arctic_eu::exec::{FaultKind, Fetch};

use super::super::bases::ADDRESS;
use super::super::surface::{STATE_BYTES, SurfaceState};
use super::super::surfaces::{Heap, StateName};
use super::super::texels::Texels;
use super::{KernelMemory, SAMPLER_BYTES};
use crate::memory::{self, Span, cell};

/// A page as it is in memory.
pub(in super::super) enum CopiedPage {
    /// No address of it is translated.
    Unmapped,
    /// It reads as 0, and writes are dropped.
    Null,
    /// The memory has no control data: accesses to compressed images are as all others.
    Uncontrolled,
    /// It is reached by messages to the function's client.
    Remote,
    /// These bytes.
    Bytes(Box<[u8; PAGE_BYTES]>),
}

impl KernelMemory<'_, '_> {
    /// Copies a page. It is no access of the walker: nothing is recorded or counted.
    pub(in super::super) fn copy_page(&mut self, name: PageName) -> CopiedPage {
        let mut bytes = Box::new([0; PAGE_BYTES]);
        let mut at = name.address;
        let mut done = 0_usize;
        while let Some(rest) = bytes.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let Ok(span) = self.gam.span(self.space, at, rest.len(), memory::Access::Read) else {
                return CopiedPage::Unmapped;
            };
            let count = span.len().min(rest.len());
            let part = rest.get_mut(..count).unwrap_or_default();
            let copied = match &span {
                Span::Null(_) => return CopiedPage::Null,
                Span::Remote { .. } => return CopiedPage::Remote,
                Span::Mapped(_) if name.compressed => match self.controlled(at, count, memory::Access::Read) {
                    Ok(Some((span, control))) => {
                        control.read(Piece { span: &span, start: at, offset: 0 }, part).is_ok()
                    }
                    Ok(None) => return CopiedPage::Uncontrolled,
                    Err(_) => false,
                },
                Span::Mapped(memory) => cell::read(memory, 0, part),
            };
            if !copied || count == 0 {
                return CopiedPage::Unmapped;
            }
            done = done.saturating_add(count);
            at = at.wrapping_add(count as u64) & ADDRESS;
        }
        CopiedPage::Bytes(bytes)
    }
}

/// The name in a capture.
fn captured_name(name: StateName) -> SurfaceName {
    match name {
        StateName::Binding(index) => SurfaceName::Binding(index),
        StateName::Offset(Heap::Bindless, offset) => SurfaceName::Bindless(offset),
        StateName::Offset(Heap::Surface, offset) => SurfaceName::State(offset),
    }
}

/// Where what a walker accesses is recorded.
pub(in super::super) trait AccessRecord {
    /// Returns whether a page is recorded, or need not be.
    fn has_page(&mut self, name: PageName) -> bool;

    /// Records a page before its first access.
    fn add_page(&mut self, name: PageName, page: CopiedPage);

    /// Returns whether a surface is recorded.
    fn has_surface(&self, name: SurfaceName) -> bool;

    /// Records a surface, of which the state is at this virtual address.
    fn add_surface(&mut self, name: SurfaceName, address: u64, state: &SurfaceState);

    /// Returns whether a sampler is recorded.
    fn has_sampler(&self, name: SamplerName) -> bool;

    /// Records a sampler; `None` for a state without a meaning.
    fn add_sampler(&mut self, name: SamplerName, sampler: Option<Sampler>);
}

/// The memory of a walker that is captured.
pub(in super::super) struct CapturingMemory<'c, 's, 'm, R> {
    memory: &'c mut KernelMemory<'s, 'm>,
    job: &'c mut R,
}

impl<'c, 's, 'm, R: AccessRecord> CapturingMemory<'c, 's, 'm, R> {
    pub fn new(memory: &'c mut KernelMemory<'s, 'm>, job: &'c mut R) -> Self {
        CapturingMemory { memory, job }
    }

    /// Records the pages of bytes at a virtual address.
    fn touch(&mut self, at: u64, len: u64, compressed: bool) {
        let Some(last) = len.checked_sub(1) else { return };
        let page = |at: u64| at & ADDRESS & !(PAGE_BYTES as u64).wrapping_sub(1);
        let (mut address, last) = (page(at), page(at.wrapping_add(last)));
        loop {
            self.touch_page(address, compressed);
            if address == last {
                return;
            }
            address = page(address.wrapping_add(PAGE_BYTES as u64));
        }
    }

    fn touch_page(&mut self, address: u64, compressed: bool) {
        let name = PageName { address, compressed };
        if self.job.has_page(name) {
            return;
        }
        match self.memory.copy_page(name) {
            CopiedPage::Uncontrolled => self.touch_page(address, false),
            page => self.job.add_page(name, page),
        }
    }

    /// Records a surface: its state, and what it has been decoded to.
    fn touch_surface(&mut self, surface: Surface) {
        let Some(name) = StateName::of(surface) else { return };
        if self.job.has_surface(captured_name(name)) {
            return;
        }
        if let Some(entry) = self.memory.entry_address(name) {
            self.touch(entry, 4, false);
        }
        let Ok(address) = self.memory.state_address(name) else { return };
        self.touch(address, STATE_BYTES as u64, false);
        let state = match self.memory.surfaces.find(name) {
            Some(state) => Ok(*state),
            None => self.memory.decode(name),
        };
        if let Ok(state) = state {
            self.job.add_surface(captured_name(name), address, &state);
        }
    }

    /// Records what an access of `len` bytes of a surface touches.
    fn touch_access(&mut self, surface: Surface, address: u64, len: u64) {
        self.touch_surface(surface);
        if let Ok(extent) = self.memory.extent(surface) {
            let (at, inside) = extent.place(address);
            self.touch(at, len.min(inside), false);
        }
    }

    fn touch_lanes(&mut self, lanes: &LaneSpans<'_>) {
        self.touch_surface(lanes.surface);
        let Ok(extent) = self.memory.extent(lanes.surface) else { return };
        for (_, address) in lanes.iter() {
            let (at, inside) = extent.place(address);
            self.touch(at, inside.min(lanes.size as u64), false);
        }
    }

    /// Records what an access of `len` bytes of a row of an image touches, from byte `x` of plane `z` on.
    fn touch_row(&mut self, image: &Image, x: u64, [y, z]: [u32; 2], len: u64) {
        let state = u16::try_from(image.handle).ok().and_then(|index| self.memory.surfaces.state(index));
        let Some(Texels::Planes(planes)) = state.and_then(|state| Some(state.image.ok()?.texels)) else { return };
        let mut done = 0_u64;
        while done < len {
            let place = planes.byte(image.levels.number, x.wrapping_add(done), y, z);
            let count = (place.run as u64).min(len.wrapping_sub(done));
            self.touch(place.address, count, place.compressed);
            done = done.saturating_add(count.max(1));
        }
    }

    fn touch_texel(&mut self, image: &Image, [x, y, z]: [u32; 3], len: usize) {
        let texel = image.format.texel_bytes() as u64;
        self.touch_row(image, u64::from(x).wrapping_mul(texel), [y, z], len as u64);
    }
}

impl<R: AccessRecord> Memory for CapturingMemory<'_, '_, '_, R> {
    fn read(
        &mut self,
        surface: Surface,
        address: u64,
        element: usize,
        bytes: &mut [u8],
    ) -> Result<Access, MemoryFault> {
        self.touch_access(surface, address, bytes.len() as u64);
        self.memory.read(surface, address, element, bytes)
    }

    fn write(&mut self, surface: Surface, address: u64, element: usize, bytes: &[u8]) -> Result<Access, MemoryFault> {
        self.touch_access(surface, address, bytes.len() as u64);
        self.memory.write(surface, address, element, bytes)
    }

    fn read_lanes(&mut self, lanes: &LaneSpans<'_>, bytes: &mut [u8], outside: &mut u32) -> Result<(), LaneFault> {
        self.touch_lanes(lanes);
        self.memory.read_lanes(lanes, bytes, outside)
    }

    fn write_lanes(&mut self, lanes: &LaneSpans<'_>, bytes: &[u8], outside: &mut u32) -> Result<(), LaneFault> {
        self.touch_lanes(lanes);
        self.memory.write_lanes(lanes, bytes, outside)
    }

    fn atomic(
        &mut self,
        surface: Surface,
        address: u64,
        size: u32,
        operation: Atomic,
        operands: [u64; 2],
    ) -> Result<Option<u64>, MemoryFault> {
        self.touch_access(surface, address, size.into());
        self.memory.atomic(surface, address, size, operation, operands)
    }

    fn image(&mut self, surface: Surface) -> Result<Image, MemoryFault> {
        self.touch_surface(surface);
        self.memory.image(surface)
    }

    fn sampler(&mut self, pointer: Option<u32>, index: u8) -> Result<Sampler, MemoryFault> {
        let name = SamplerName { pointer, index };
        let is_new = !self.job.has_sampler(name);
        if is_new {
            let (at, _) = self.memory.sampler_address(pointer, index);
            self.touch(at, SAMPLER_BYTES as u64, false);
        }
        let sampler = self.memory.sampler(pointer, index);
        if is_new {
            match &sampler {
                Ok(sampler) => self.job.add_sampler(name, Some(*sampler)),
                Err(MemoryFault { kind: FaultKind::Surface, .. }) => self.job.add_sampler(name, None),
                Err(_) => {}
            }
        }
        sampler
    }

    fn read_texel(&mut self, image: &Image, at: [u32; 3], bytes: &mut [u8]) -> Result<(), MemoryFault> {
        self.touch_texel(image, at, bytes.len());
        self.memory.read_texel(image, at, bytes)
    }

    fn write_texel(&mut self, image: &Image, at: [u32; 3], bytes: &[u8]) -> Result<(), MemoryFault> {
        self.touch_texel(image, at, bytes.len());
        self.memory.write_texel(image, at, bytes)
    }

    fn atomic_texel(
        &mut self,
        image: &Image,
        at: [u32; 3],
        operation: Atomic,
        operands: [u64; 2],
    ) -> Result<u64, MemoryFault> {
        self.touch_texel(image, at, 4);
        self.memory.atomic_texel(image, at, operation, operands)
    }

    fn read_row(&mut self, image: &Image, x: u32, y: u32, bytes: &mut [u8]) -> Result<(), MemoryFault> {
        self.touch_row(image, x.into(), [y, 0], bytes.len() as u64);
        self.memory.read_row(image, x, y, bytes)
    }

    fn write_row(&mut self, image: &Image, x: u32, y: u32, bytes: &[u8]) -> Result<(), MemoryFault> {
        self.touch_row(image, x.into(), [y, 0], bytes.len() as u64);
        self.memory.write_row(image, x, y, bytes)
    }

    fn take_cost(&mut self) -> u64 {
        self.memory.take_cost()
    }
}

impl<R: AccessRecord> Fetch for CapturingMemory<'_, '_, '_, R> {
    fn fetch(&mut self, space: u64, address: u64, bytes: &mut [u8]) -> Result<usize, MemoryFault> {
        self.touch(address, bytes.len() as u64, false);
        self.memory.fetch(space, address, bytes)
    }
}
