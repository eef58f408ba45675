// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Memory of a launch: buffers at virtual addresses, surfaces and samplers. Host threads access it at the same time.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use vm_memory::{MmapRegion, VolatileMemory, VolatileSlice};

mod window;

use super::LaunchError;
use crate::exec::FaultKind;
use crate::exec::memory::{
    Access, Atomic, Image, LaneFault, LaneSpans, Memory, MemoryFault, Sampler, Surface, elements,
};
use window::{Window, Word};

/// Distance between buffers, so that an address a little outside of one is in none.
const GAP: u64 = 1 << 16;
/// Largest buffer.
const LARGEST: usize = 1 << 34;

/// A buffer.
#[derive(Debug)]
pub struct Buffer {
    /// Virtual address.
    pub start: u64,
    /// Bytes.
    pub size: usize,
    /// Name for reports.
    pub name: String,
    region: MmapRegion,
}

impl Buffer {
    /// Place of an access in the buffer, if all of it is inside.
    #[inline(always)]
    fn offset(&self, address: u64, size: usize) -> Option<usize> {
        let offset = usize::try_from(address.wrapping_sub(self.start)).ok()?;
        let last = self.size.checked_sub(size)?;
        (offset <= last).then_some(offset)
    }

    /// Reads `SIZE` bytes.
    #[inline(always)]
    fn load<const SIZE: usize, T: Word<SIZE>>(&self, offset: usize, bytes: &mut [u8]) -> Option<()> {
        let value = self.region.as_volatile_slice().get_ref::<T>(offset).ok()?.load();
        *bytes.first_chunk_mut::<SIZE>()? = value.bytes();
        Some(())
    }

    /// Writes `SIZE` bytes.
    #[inline(always)]
    fn store<const SIZE: usize, T: Word<SIZE>>(&self, offset: usize, bytes: &[u8]) -> Option<()> {
        let value = T::of(*bytes.first_chunk::<SIZE>()?);
        self.region.as_volatile_slice().get_ref::<T>(offset).ok()?.store(value);
        Some(())
    }

    /// A part of the buffer.
    #[inline]
    fn bytes(&self, offset: usize, size: usize) -> Result<VolatileSlice<'_>, FaultKind> {
        self.region.as_volatile_slice().subslice(offset, size).map_err(|_| FaultKind::Address)
    }
}

/// What a surface state describes.
#[derive(Clone, Copy, Debug)]
pub enum State {
    /// Bytes from a virtual address.
    Buffer {
        /// First address.
        start: u64,
        /// Bytes.
        size: u64,
    },
    /// An image.
    Image(Image),
    /// A part for each hardware thread. EU-041.
    Scratch {
        /// First address.
        start: u64,
        /// Bytes of a thread.
        pitch: u64,
    },
}

/// Bytes of a surface state.
pub const STATE_BYTES: u32 = 64;
/// Bytes between samplers, in units of the pointer in a header.
pub const SAMPLER_BYTES: u32 = 32;

/// Memory, surfaces and samplers.
#[derive(Debug, Default)]
pub struct Space {
    /// Buffers in the order of their addresses.
    buffers: Vec<Buffer>,
    /// Number of buffers that begin at or below each multiple of [`GAP`], up to the beginning of the last one.
    below: Vec<u32>,
    next: u64,
    /// Surface states by number; their offset is the number times [`STATE_BYTES`].
    pub states: Vec<State>,
    /// Number of the buffer where each surface begins, so that accesses find it at once.
    owners: Vec<usize>,
    /// Surface state of each entry of the binding table.
    pub bindings: Vec<(u8, usize)>,
    /// Samplers; the pointer to one is its number times [`SAMPLER_BYTES`].
    pub samplers: Vec<Sampler>,
    /// Sampler of each number in the sampler table.
    pub sampler_table: Vec<(u8, usize)>,
}

/// Rights to a place: the buffer and the offset in it.
type Place<'s> = (&'s Buffer, usize);

impl Space {
    /// Memory without buffers. The first is below 4 GiB, where offsets from the general state base, which is 0, reach it.
    pub fn new() -> Space {
        Space { next: GAP, ..Space::default() }
    }

    /// Makes a buffer of zeros and returns its address.
    pub fn allocate(&mut self, name: &str, size: usize) -> Result<u64, LaunchError> {
        let fail = || LaunchError::Memory { name: name.into(), size };
        if size > LARGEST {
            return Err(fail());
        }
        let region = MmapRegion::new(size.max(1).next_multiple_of(4096)).map_err(|_| fail())?;
        let start = self.next;
        self.next = (start + size as u64 + GAP).next_multiple_of(GAP);
        self.below.resize((start / GAP) as usize, self.buffers.len() as u32);
        self.buffers.push(Buffer { start, size, name: name.into(), region });
        Ok(start)
    }

    /// Makes a buffer with these contents.
    pub fn allocate_with(&mut self, name: &str, bytes: &[u8]) -> Result<u64, LaunchError> {
        let address = self.allocate(name, bytes.len())?;
        self.poke(address, bytes);
        Ok(address)
    }

    /// Writes to a buffer; what is outside is dropped.
    pub fn poke(&self, address: u64, bytes: &[u8]) {
        let mut memory = self;
        let _ = memory.write(Surface::Flat, address, 1, bytes);
    }

    /// Bytes of a buffer.
    pub fn peek(&self, address: u64, size: usize) -> Vec<u8> {
        let mut bytes = vec![0; size];
        let mut memory = self;
        let _ = memory.read(Surface::Flat, address, 1, &mut bytes);
        bytes
    }

    /// Adds a surface state and returns its byte offset.
    pub fn add_state(&mut self, state: State) -> u32 {
        let start = match &state {
            State::Buffer { start, .. } | State::Scratch { start, .. } => *start,
            State::Image(image) => image.base,
        };
        self.owners.push(self.number_of_nearest(start).unwrap_or(usize::MAX));
        self.states.push(state);
        (self.states.len() as u32 - 1) * STATE_BYTES
    }

    /// Address and size of the buffer with this name.
    pub fn named(&self, name: &str) -> Option<(u64, u64)> {
        self.buffers.iter().find(|buffer| buffer.name == name).map(|buffer| (buffer.start, buffer.size as u64))
    }

    /// The buffer at or below an address.
    pub fn nearest(&self, address: u64) -> Option<&Buffer> {
        self.buffers.get(self.number_of_nearest(address)?)
    }

    #[inline(always)]
    fn number_of_nearest(&self, address: u64) -> Option<usize> {
        let place = usize::try_from(address / GAP).unwrap_or(usize::MAX);
        // Buffers begin at multiples of the distance.
        let count = self.below.get(place).map_or(self.buffers.len(), |count| *count as usize);
        count.checked_sub(1)
    }

    /// The buffer that has these bytes. It is looked for if it is not that of the number `owner`.
    #[inline]
    fn find(&self, address: u64, size: usize, owner: usize) -> Option<Place<'_>> {
        let address = address & ADDRESS;
        if let Some(buffer) = self.buffers.get(owner)
            && let Some(offset) = buffer.offset(address, size)
        {
            return Some((buffer, offset));
        }
        let buffer = self.nearest(address)?;
        Some((buffer, buffer.offset(address, size)?))
    }

    /// The buffer that has all bytes of an access, which are inside the surface, as most are. `None` for others, and if the
    /// surface does not begin in that buffer.
    #[inline(always)]
    fn direct(&self, surface: Surface, address: u64, size: usize) -> Option<Place<'_>> {
        let (address, owner) = match surface {
            Surface::Flat | Surface::Stateless => (address & ADDRESS, self.number_of_nearest(address & ADDRESS)?),
            Surface::Bindless(_) | Surface::State(..) | Surface::Binding(_) => {
                let (State::Buffer { start, size: limit }, owner) = self.state(surface).ok()? else { return None };
                if limit.checked_sub(size as u64).is_none_or(|last| last < address) {
                    return None;
                }
                (start.wrapping_add(address) & ADDRESS, owner)
            }
        };
        let buffer = self.buffers.get(owner)?;
        Some((buffer, buffer.offset(address, size)?))
    }

    /// A surface state, and the number of the buffer where the surface begins.
    #[inline]
    fn state(&self, surface: Surface) -> Result<(&State, usize), FaultKind> {
        let number = match surface {
            Surface::Binding(index) => {
                self.bindings.iter().find(|(number, _)| *number == index).map(|(_, state)| *state)
            }
            Surface::Bindless(offset) | Surface::State(offset, _) => Some((offset / STATE_BYTES) as usize),
            Surface::Flat | Surface::Stateless => None,
        };
        let number = number.ok_or(FaultKind::Surface)?;
        let state = self.states.get(number).ok_or(FaultKind::Surface)?;
        Ok((state, self.owners.get(number).copied().unwrap_or(usize::MAX)))
    }

    /// Where a surface is. `None` for flat addresses.
    #[inline]
    fn extent(&self, surface: Surface) -> Result<Option<Extent>, FaultKind> {
        if matches!(surface, Surface::Flat | Surface::Stateless) {
            return Ok(None);
        }
        let (state, owner) = self.state(surface)?;
        let (start, size) = match (state, surface) {
            (State::Buffer { start, size }, _) => (*start, *size),
            (State::Scratch { start, pitch }, Surface::State(_, thread)) => (start + u64::from(thread) * pitch, *pitch),
            _ => return Err(FaultKind::Surface),
        };
        Ok(Some(Extent { start, size, owner }))
    }

    /// What the lanes of a message access, if that is in one buffer: the surface, or the buffer at the first lane's address.
    fn window(&self, lanes: &LaneSpans<'_>) -> Option<Window<'_>> {
        match self.extent(lanes.surface).ok()? {
            Some(Extent { start, size, owner }) => {
                let size = usize::try_from(size).ok()?;
                let (buffer, offset) = self.find(start, size, owner)?;
                Some(Window::new(buffer.bytes(offset, size).ok()?, 0, u64::MAX))
            }
            None => {
                let (_, address) = lanes.iter().next()?;
                let buffer = self.nearest(address & ADDRESS)?;
                Some(Window::new(buffer.bytes(0, buffer.size).ok()?, buffer.start, ADDRESS))
            }
        }
    }

    /// Reads what is inside of a surface, from whatever buffer has it.
    #[inline(never)]
    fn read_slowly(
        &self,
        surface: Surface,
        address: u64,
        element: usize,
        bytes: &mut [u8],
    ) -> Result<Access, MemoryFault> {
        let Reached { address, length, owner } = self.resolve(surface, address, element, bytes.len())?;
        let (within, rest) = bytes.split_at_mut(length);
        rest.fill(0);
        if !within.is_empty() {
            let (buffer, offset) = self.find(address, length, owner).ok_or_else(|| no_buffer(address))?;
            buffer.bytes(offset, length)?.copy_to(within);
        }
        Ok(if rest.is_empty() { Access::Inside } else { Access::Outside })
    }

    /// Writes as [`Space::read_slowly`] reads.
    #[inline(never)]
    fn write_slowly(
        &self,
        surface: Surface,
        address: u64,
        element: usize,
        bytes: &[u8],
    ) -> Result<Access, MemoryFault> {
        let Reached { address, length, owner } = self.resolve(surface, address, element, bytes.len())?;
        let (within, rest) = bytes.split_at(length);
        if !within.is_empty() {
            let (buffer, offset) = self.find(address, length, owner).ok_or_else(|| no_buffer(address))?;
            buffer.bytes(offset, length)?.copy_from(within);
        }
        Ok(if rest.is_empty() { Access::Inside } else { Access::Outside })
    }

    /// What an access reaches.
    #[inline]
    fn resolve(&self, surface: Surface, address: u64, element: usize, size: usize) -> Result<Reached, FaultKind> {
        let Some(Extent { start, size: limit, owner }) = self.extent(surface)? else {
            return Ok(Reached { address, length: size, owner: usize::MAX });
        };
        let inside = limit.saturating_sub(address).min(size as u64);
        Ok(Reached { address: start.wrapping_add(address), length: elements(inside as usize, element), owner })
    }
}

/// Where a surface is.
struct Extent {
    /// First address.
    start: u64,
    /// Bytes.
    size: u64,
    /// Number of the buffer where it begins.
    owner: usize,
}

/// What an access reaches.
struct Reached {
    /// Virtual address.
    address: u64,
    /// Bytes of the elements that are wholly inside the surface.
    length: usize,
    /// Number of the buffer where the surface begins.
    owner: usize,
}

/// Applies an operation that the host has. Returns the value before.
#[inline]
fn by_host(word: &AtomicU32, operation: Atomic, [first, second]: [u32; 2]) -> Option<u32> {
    let order = Ordering::SeqCst;
    Some(match operation {
        Atomic::Inc => word.fetch_add(1, order),
        Atomic::Dec => word.fetch_sub(1, order),
        Atomic::Add => word.fetch_add(first, order),
        Atomic::Sub => word.fetch_sub(first, order),
        Atomic::Load => word.load(order),
        Atomic::Store => word.swap(first, order),
        Atomic::Cas => word.compare_exchange(first, second, order, order).unwrap_or_else(|old| old),
        _ => return None,
    })
}

/// Bits of a virtual address. EU-006.
const ADDRESS: u64 = (1 << 48) - 1;

/// The fault of an address that is in no buffer.
#[cold]
fn no_buffer(address: u64) -> MemoryFault {
    MemoryFault { kind: FaultKind::Address, address: Some(address & ADDRESS) }
}

/// Host threads share the memory: each has a reference to it.
impl Memory for &Space {
    fn read(
        &mut self,
        surface: Surface,
        address: u64,
        element: usize,
        bytes: &mut [u8],
    ) -> Result<Access, MemoryFault> {
        if let Some((buffer, offset)) = self.direct(surface, address, bytes.len()) {
            // A dword of 8, 16 or 32 lanes.
            let read = match bytes.len() {
                32 => buffer.load::<32, [u64; 4]>(offset, bytes),
                64 => buffer.load::<64, [u64; 8]>(offset, bytes),
                128 => buffer.load::<128, [u64; 16]>(offset, bytes),
                4 => buffer.load::<4, u32>(offset, bytes),
                size => buffer.bytes(offset, size).ok().map(|from| _ = from.copy_to(bytes)),
            };
            if read.is_some() {
                return Ok(Access::Inside);
            }
        }
        self.read_slowly(surface, address, element, bytes)
    }

    fn write(&mut self, surface: Surface, address: u64, element: usize, bytes: &[u8]) -> Result<Access, MemoryFault> {
        if let Some((buffer, offset)) = self.direct(surface, address, bytes.len()) {
            let written = match bytes.len() {
                32 => buffer.store::<32, [u64; 4]>(offset, bytes),
                64 => buffer.store::<64, [u64; 8]>(offset, bytes),
                128 => buffer.store::<128, [u64; 16]>(offset, bytes),
                4 => buffer.store::<4, u32>(offset, bytes),
                size => buffer.bytes(offset, size).ok().map(|into| into.copy_from(bytes)),
            };
            if written.is_some() {
                return Ok(Access::Inside);
            }
        }
        self.write_slowly(surface, address, element, bytes)
    }

    fn read_lanes(&mut self, lanes: &LaneSpans<'_>, bytes: &mut [u8], outside: &mut u32) -> Result<(), LaneFault> {
        let inside = self.window(lanes).is_some_and(|window| window.read_lanes(lanes, bytes));
        if inside { Ok(()) } else { lanes.read_each(self, bytes, outside) }
    }

    fn write_lanes(&mut self, lanes: &LaneSpans<'_>, bytes: &[u8], outside: &mut u32) -> Result<(), LaneFault> {
        let inside = self.window(lanes).is_some_and(|window| window.write_lanes(lanes, bytes));
        if inside { Ok(()) } else { lanes.write_each(self, bytes, outside) }
    }

    fn atomic(
        &mut self,
        surface: Surface,
        address: u64,
        size: u32,
        operation: Atomic,
        operands: [u64; 2],
    ) -> Result<Option<u64>, MemoryFault> {
        let Reached { address, length, owner } = self.resolve(surface, address, size as usize, size as usize)?;
        if length < size as usize {
            return Ok(None);
        }
        let (buffer, offset) = self.find(address, length, owner).ok_or_else(|| no_buffer(address))?;
        let slice = buffer.region.as_volatile_slice();
        if size == 8 {
            let word = slice.get_atomic_ref::<AtomicU64>(offset).map_err(|_| FaultKind::Alignment)?;
            let change = |old| Some(operation.apply(old, operands, 8));
            let old = word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, change);
            return Ok(Some(old.unwrap_or_else(|old| old)));
        }
        if size == 4
            && let Ok(word) = slice.get_atomic_ref::<AtomicU32>(offset)
            && let Some(old) = by_host(word, operation, operands.map(|operand| operand as u32))
        {
            return Ok(Some(old.into()));
        }
        // An element of two bytes is a part of its dword.
        let shift = (offset as u32 & 3) * 8;
        let mask = u32::MAX >> (32 - size * 8);
        let word = slice.get_atomic_ref::<AtomicU32>(offset & !3).map_err(|_| FaultKind::Alignment)?;
        let change = |old: u32| {
            let new = operation.apply(u64::from(old >> shift & mask), operands, size) as u32;
            Some(old & !(mask << shift) | new << shift)
        };
        let old = word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, change);
        Ok(Some(u64::from(old.unwrap_or_else(|old| old) >> shift & mask)))
    }

    fn image(&mut self, surface: Surface) -> Result<Image, MemoryFault> {
        match self.state(surface)? {
            (State::Image(image), _) => Ok(*image),
            _ => Err(FaultKind::Surface.into()),
        }
    }

    fn sampler(&mut self, pointer: Option<u32>, index: u8) -> Result<Sampler, MemoryFault> {
        let number = match pointer {
            Some(pointer) => Some((pointer / SAMPLER_BYTES) as usize + usize::from(index)),
            None => self.sampler_table.iter().find(|(number, _)| *number == index).map(|(_, sampler)| *sampler),
        };
        number.and_then(|number| self.samplers.get(number)).copied().ok_or(FaultKind::Surface.into())
    }
}
