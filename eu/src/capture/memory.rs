// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The memory of a replay: the pages of a capture, and its surfaces and samplers.

use std::collections::HashMap;

use super::{
    ADDRESS, Capture, CapturedImage, CapturedSurface, Content, PAGE_BYTES, Page, PageName, Planes, SamplerName,
    SurfaceName,
};
use crate::exec::memory::{Access, Atomic, Extent, Image, Memory, MemoryFault, Sampler, Surface, count_inside};
use crate::exec::{FaultKind, Fetch};

/// A byte of memory that the replay has left otherwise than the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Virtual address.
    pub address: u64,
    /// As accesses to a compressed image deliver it.
    pub compressed: bool,
    /// Byte before the walker.
    pub before: u8,
    /// Byte that the card has left.
    pub card: u8,
    /// Byte that the replay has left.
    pub replay: u8,
    /// The replay has written to the page.
    pub written: bool,
}

/// Memory after a replay, compared with what the card has left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Pages of the capture.
    pub pages: u64,
    /// Pages that the replay has written.
    pub written: u64,
    /// Bytes that differ.
    pub bytes: u64,
    /// The first of them, by address.
    pub first: Option<Difference>,
}

/// A page during a replay.
#[derive(Clone, Copy)]
struct Place {
    /// Index in [`ReplayMemory::current`]; `None` for a page that reads as 0.
    index: Option<u32>,
}

/// A page of memory during a replay.
struct CurrentPage {
    name: PageName,
    content: Content,
    /// The replay has written it.
    written: bool,
}

/// The memory of a replay. Accesses outside of the capture's pages fail, as those that the card does not translate.
pub struct ReplayMemory<'c> {
    capture: &'c Capture,
    surfaces: HashMap<SurfaceName, u32>,
    samplers: HashMap<SamplerName, Option<Sampler>>,
    places: HashMap<PageName, Place>,
    current: Vec<CurrentPage>,
}

/// The name of the surface state of a surface.
fn name(surface: Surface) -> Option<SurfaceName> {
    match surface {
        Surface::Flat | Surface::Stateless => None,
        Surface::Binding(index) => Some(SurfaceName::Binding(index)),
        Surface::Bindless(offset) => Some(SurfaceName::Bindless(offset)),
        Surface::State(offset, _) => Some(SurfaceName::State(offset)),
    }
}

fn fault(address: u64) -> MemoryFault {
    MemoryFault { kind: FaultKind::Address, address: Some(address) }
}

impl<'c> ReplayMemory<'c> {
    /// The memory of a capture before its walker.
    pub fn new(capture: &'c Capture) -> Self {
        let mut places = HashMap::new();
        let mut current = Vec::new();
        for (name, page) in &capture.pages {
            let index = match page {
                Page::Null => None,
                Page::Memory { before, .. } => {
                    current.push(CurrentPage { name: *name, content: before.clone(), written: false });
                    Some(current.len() as u32 - 1)
                }
            };
            places.insert(*name, Place { index });
        }
        ReplayMemory {
            capture,
            surfaces: (0..).zip(&capture.surfaces).map(|(index, (name, _))| (*name, index)).collect(),
            samplers: capture.samplers.iter().copied().collect(),
            places,
            current,
        }
    }

    /// The surface of this name and its index. One that the capture does not have could not be read by the card.
    fn surface(&self, name: SurfaceName) -> Result<(u32, &'c CapturedSurface), MemoryFault> {
        let index = *self.surfaces.get(&name).ok_or(FaultKind::Address)?;
        let (_, surface) = self.capture.surfaces.get(index as usize).ok_or(FaultKind::Address)?;
        Ok((index, surface))
    }

    fn extent(&self, surface: Surface) -> Result<Extent, MemoryFault> {
        let Some(name) = name(surface) else {
            let is_flat = surface == Surface::Flat;
            return Ok(if is_flat { Extent::FLAT } else { Extent::stateless(self.capture.launch.general_base) });
        };
        Ok(self.surface(name)?.1.memory.extent(surface)?)
    }

    /// The page of an address. Memory without control data has no pages with compression.
    fn page(&self, at: u64, compressed: bool) -> Option<Place> {
        let address = at & !(PAGE_BYTES as u64 - 1);
        let find = |compressed| self.places.get(&PageName { address, compressed }).copied();
        if compressed { find(true).or_else(|| find(false)) } else { find(false) }
    }

    /// Calls `each(page, offset in the page, range of the access)` for the parts of an access. Returns how many bytes there are before
    /// the first one without a page, and its address.
    fn parts(
        &mut self,
        at: u64,
        len: usize,
        compressed: bool,
        mut each: impl FnMut(Option<&mut CurrentPage>, usize, std::ops::Range<usize>),
    ) -> (usize, Option<u64>) {
        let mut at = at & ADDRESS;
        let mut done = 0;
        while done < len {
            let Some(place) = self.page(at, compressed) else { return (done, Some(at)) };
            let offset = (at % PAGE_BYTES as u64) as usize;
            let count = (PAGE_BYTES - offset).min(len - done);
            let page = place.index.and_then(|index| self.current.get_mut(index as usize));
            each(page, offset, done..done + count);
            done += count;
            at = at.wrapping_add(count as u64) & ADDRESS;
        }
        (len, None)
    }

    fn load(&mut self, at: u64, bytes: &mut [u8], compressed: bool) -> Result<(), MemoryFault> {
        match self.load_part(at, bytes, compressed) {
            (_, None) => Ok(()),
            (_, Some(failed)) => Err(fault(failed)),
        }
    }

    fn load_part(&mut self, at: u64, bytes: &mut [u8], compressed: bool) -> (usize, Option<u64>) {
        let len = bytes.len();
        self.parts(at, len, compressed, |page, offset, range| {
            let into = &mut bytes[range];
            match page {
                Some(page) => into.copy_from_slice(&page.content.bytes()[offset..offset + into.len()]),
                None => into.fill(0),
            }
        })
    }

    fn store(&mut self, at: u64, bytes: &[u8], compressed: bool) -> Result<(), MemoryFault> {
        let (_, failed) = self.parts(at, bytes.len(), compressed, |page, offset, range| {
            let Some(page) = page else { return };
            page.written = true;
            let from = &bytes[range];
            match &mut page.content {
                Content::Bytes(bytes) => bytes[offset..offset + from.len()].copy_from_slice(from),
                Content::Zeros => {
                    let mut bytes = Box::new([0; PAGE_BYTES]);
                    bytes[offset..offset + from.len()].copy_from_slice(from);
                    page.content = Content::Bytes(bytes);
                }
            }
        });
        failed.map_or(Ok(()), |failed| Err(fault(failed)))
    }

    /// Compares memory with what the card has left.
    pub fn compare(&self) -> Comparison {
        let mut result = Comparison { pages: self.capture.pages.len() as u64, ..Comparison::default() };
        for page in &self.current {
            result.written += u64::from(page.written);
            let Some((before, card)) = self.left_by_card(page.name) else { continue };
            let [before, card, replay] = [before, card, &page.content].map(Content::bytes);
            if card == replay {
                continue;
            }
            for at in (0..PAGE_BYTES).filter(|at| card[*at] != replay[*at]) {
                result.bytes += 1;
                result.first.get_or_insert(Difference {
                    address: page.name.address + at as u64,
                    compressed: page.name.compressed,
                    before: before[at],
                    card: card[at],
                    replay: replay[at],
                    written: page.written,
                });
            }
        }
        result
    }

    /// The bytes of a page before the walker, and as the card has left them.
    fn left_by_card(&self, name: PageName) -> Option<(&Content, &Content)> {
        match self.capture.pages.get(&name)? {
            Page::Null => None,
            Page::Memory { before, after } => Some((before, after.as_ref().unwrap_or(before))),
        }
    }

    /// Bytes at a virtual address; `None` if the capture does not have them.
    pub(super) fn peek(&mut self, at: u64, bytes: &mut [u8]) -> Option<()> {
        self.load(at, bytes, false).ok()
    }

    /// The texels of an image of a message; `None` for one without texels.
    fn planes(&self, image: &Image) -> Result<Option<&'c Planes>, MemoryFault> {
        let surface = usize::try_from(image.handle).ok().and_then(|index| self.capture.surfaces.get(index));
        match surface.map(|(_, surface)| &surface.image) {
            Some(CapturedImage::Texels(_, planes)) => Ok(Some(planes)),
            Some(CapturedImage::Null(_)) => Ok(None),
            _ => Err(FaultKind::Surface.into()),
        }
    }
}

impl Memory for ReplayMemory<'_> {
    fn read(
        &mut self,
        surface: Surface,
        address: u64,
        element: usize,
        bytes: &mut [u8],
    ) -> Result<Access, MemoryFault> {
        let (at, inside) = self.extent(surface)?.place(address);
        if inside >= bytes.len() as u64 {
            self.load(at, bytes, false)?;
            return Ok(Access::Inside);
        }
        let (within, rest) = bytes.split_at_mut(count_inside(inside, bytes.len(), element));
        self.load(at, within, false)?;
        rest.fill(0);
        Ok(Access::Outside)
    }

    fn write(&mut self, surface: Surface, address: u64, element: usize, bytes: &[u8]) -> Result<Access, MemoryFault> {
        let (at, inside) = self.extent(surface)?.place(address);
        if inside >= bytes.len() as u64 {
            self.store(at, bytes, false)?;
            return Ok(Access::Inside);
        }
        self.store(at, &bytes[..count_inside(inside, bytes.len(), element)], false)?;
        Ok(Access::Outside)
    }

    fn atomic(
        &mut self,
        surface: Surface,
        address: u64,
        size: u32,
        operation: Atomic,
        operands: [u64; 2],
    ) -> Result<Option<u64>, MemoryFault> {
        let (at, inside) = self.extent(surface)?.place(address);
        if inside < size.into() {
            return Ok(None);
        }
        if !matches!(size, 2 | 4 | 8) {
            return Err(FaultKind::Message.into());
        }
        if !at.is_multiple_of(size.into()) {
            return Err(MemoryFault { kind: FaultKind::Alignment, address: Some(at) });
        }
        let mut bytes = [0; 8];
        self.load(at, &mut bytes[..size as usize], false)?;
        let old = u64::from_le_bytes(bytes);
        let new = operation.apply(old, operands, size).to_le_bytes();
        self.store(at, &new[..size as usize], false)?;
        Ok(Some(old))
    }

    fn image(&mut self, surface: Surface) -> Result<Image, MemoryFault> {
        let (index, surface) = self.surface(name(surface).ok_or(FaultKind::Surface)?)?;
        match surface.image {
            CapturedImage::None => Err(FaultKind::Surface.into()),
            CapturedImage::Unsupported => Err(FaultKind::Image.into()),
            CapturedImage::Null(image) | CapturedImage::Texels(image, _) => Ok(Image { handle: index.into(), ..image }),
        }
    }

    fn sampler(&mut self, pointer: Option<u32>, index: u8) -> Result<Sampler, MemoryFault> {
        let sampler = self.samplers.get(&SamplerName { pointer, index }).ok_or(FaultKind::Address)?;
        sampler.ok_or(FaultKind::Surface.into())
    }

    fn read_texel(&mut self, image: &Image, at: [u32; 3], bytes: &mut [u8]) -> Result<(), MemoryFault> {
        match self.planes(image)? {
            Some(planes) => self.load(planes.texel(image.levels.number, at), bytes, planes.compressed),
            None => {
                bytes.fill(0);
                Ok(())
            }
        }
    }

    fn write_texel(&mut self, image: &Image, at: [u32; 3], bytes: &[u8]) -> Result<(), MemoryFault> {
        match self.planes(image)? {
            Some(planes) => self.store(planes.texel(image.levels.number, at), bytes, planes.compressed),
            None => Ok(()),
        }
    }

    fn atomic_texel(
        &mut self,
        image: &Image,
        at: [u32; 3],
        operation: Atomic,
        operands: [u64; 2],
    ) -> Result<u64, MemoryFault> {
        let Some(planes) = self.planes(image)? else { return Ok(0) };
        if planes.compressed {
            return Err(FaultKind::Image.into());
        }
        let address = planes.texel(image.levels.number, at);
        Ok(self.atomic(Surface::Flat, address, 4, operation, operands)?.unwrap_or(0))
    }

    fn read_row(&mut self, image: &Image, x: u32, y: u32, bytes: &mut [u8]) -> Result<(), MemoryFault> {
        let Some(planes) = self.planes(image)? else {
            bytes.fill(0);
            return Ok(());
        };
        let mut x = u64::from(x);
        let mut rest = bytes;
        while !rest.is_empty() {
            let (at, run) = planes.byte(image.levels.number, x, y, 0);
            let (part, after) = rest.split_at_mut(rest.len().min(usize::try_from(run).unwrap_or(usize::MAX)));
            self.load(at, part, planes.compressed)?;
            (x, rest) = (x.wrapping_add(part.len() as u64), after);
        }
        Ok(())
    }

    fn write_row(&mut self, image: &Image, x: u32, y: u32, bytes: &[u8]) -> Result<(), MemoryFault> {
        let Some(planes) = self.planes(image)? else { return Ok(()) };
        let mut x = u64::from(x);
        let mut rest = bytes;
        while !rest.is_empty() {
            let (at, run) = planes.byte(image.levels.number, x, y, 0);
            let (part, after) = rest.split_at(rest.len().min(usize::try_from(run).unwrap_or(usize::MAX)));
            self.store(at, part, planes.compressed)?;
            (x, rest) = (x.wrapping_add(part.len() as u64), after);
        }
        Ok(())
    }
}

impl Fetch for ReplayMemory<'_> {
    fn fetch(&mut self, _: u64, address: u64, bytes: &mut [u8]) -> Result<usize, MemoryFault> {
        match self.load_part(address, bytes, false) {
            (0, Some(failed)) => Err(fault(failed)),
            (count, _) => Ok(count),
        }
    }
}
