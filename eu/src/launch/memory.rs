// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Memory of a launch: buffers at virtual addresses, surfaces and samplers. Host threads access it at the same time.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use vm_memory::{Bytes, MmapRegion, VolatileMemory};

use super::LaunchError;
use crate::exec::FaultKind;
use crate::exec::memory::{Access, Atomic, Image, Memory, MemoryFault, Sampler, Surface, elements};

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
    next: u64,
    /// Surface states by number; their offset is the number times [`STATE_BYTES`].
    pub states: Vec<State>,
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
        self.states.push(state);
        (self.states.len() as u32 - 1) * STATE_BYTES
    }

    /// Address and size of the buffer with this name.
    pub fn named(&self, name: &str) -> Option<(u64, u64)> {
        self.buffers.iter().find(|buffer| buffer.name == name).map(|buffer| (buffer.start, buffer.size as u64))
    }

    /// The buffer at or below an address.
    pub fn nearest(&self, address: u64) -> Option<&Buffer> {
        let index = self.buffers.partition_point(|buffer| buffer.start <= address);
        index.checked_sub(1).map(|index| &self.buffers[index])
    }

    #[inline]
    fn find(&self, address: u64, size: usize) -> Option<Place<'_>> {
        let buffer = self.nearest(address & ADDRESS)?;
        let offset = usize::try_from((address & ADDRESS) - buffer.start).ok()?;
        (offset.checked_add(size)? <= buffer.size).then_some((buffer, offset))
    }

    fn state(&self, surface: Surface) -> Result<&State, FaultKind> {
        let number = match surface {
            Surface::Binding(index) => {
                self.bindings.iter().find(|(number, _)| *number == index).map(|(_, state)| *state)
            }
            Surface::Bindless(offset) | Surface::State(offset, _) => Some((offset / STATE_BYTES) as usize),
            Surface::Flat | Surface::Stateless => None,
        };
        number.and_then(|number| self.states.get(number)).ok_or(FaultKind::Surface)
    }

    /// The virtual address of an access, and how many bytes its elements have that are wholly inside the surface. `None`
    /// for flat addresses.
    fn resolve(
        &self,
        surface: Surface,
        address: u64,
        element: usize,
        size: usize,
    ) -> Result<(u64, Option<usize>), FaultKind> {
        let (start, limit) = match surface {
            Surface::Flat | Surface::Stateless => return Ok((address, None)),
            _ => match (self.state(surface)?, surface) {
                (State::Buffer { start, size }, _) => (*start, *size),
                (State::Scratch { start, pitch }, Surface::State(_, thread)) => {
                    (start + u64::from(thread) * pitch, *pitch)
                }
                _ => return Err(FaultKind::Surface),
            },
        };
        let inside = limit.saturating_sub(address).min(size as u64);
        Ok((start.wrapping_add(address), Some(elements(inside as usize, element))))
    }
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
        let (address, inside) = self.resolve(surface, address, element, bytes.len())?;
        let length = inside.unwrap_or(bytes.len());
        let (within, rest) = bytes.split_at_mut(length);
        rest.fill(0);
        if !within.is_empty() {
            let (buffer, offset) = self.find(address, length).ok_or_else(|| no_buffer(address))?;
            buffer.region.read_slice_at(offset, within)?;
        }
        Ok(if rest.is_empty() { Access::Inside } else { Access::Outside })
    }

    fn write(&mut self, surface: Surface, address: u64, element: usize, bytes: &[u8]) -> Result<Access, MemoryFault> {
        let (address, inside) = self.resolve(surface, address, element, bytes.len())?;
        let (within, rest) = bytes.split_at(inside.unwrap_or(bytes.len()));
        if !within.is_empty() {
            let (buffer, offset) = self.find(address, within.len()).ok_or_else(|| no_buffer(address))?;
            buffer.region.write_slice_at(offset, within)?;
        }
        Ok(if rest.is_empty() { Access::Inside } else { Access::Outside })
    }

    fn atomic(
        &mut self,
        surface: Surface,
        address: u64,
        size: u32,
        operation: Atomic,
        operands: [u64; 2],
    ) -> Result<Option<u64>, MemoryFault> {
        let (address, inside) = self.resolve(surface, address, size as usize, size as usize)?;
        if inside.is_some_and(|inside| inside < size as usize) {
            return Ok(None);
        }
        let (buffer, offset) = self.find(address, size as usize).ok_or_else(|| no_buffer(address))?;
        let slice = buffer.region.as_volatile_slice();
        if size == 8 {
            let word = slice.get_atomic_ref::<AtomicU64>(offset).map_err(|_| FaultKind::Alignment)?;
            let change = |old| Some(operation.apply(old, operands, 8));
            let old = word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, change);
            return Ok(Some(old.unwrap_or_else(|old| old)));
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
            State::Image(image) => Ok(*image),
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

/// Copies between a region and bytes.
trait Copies {
    fn read_slice_at(&self, offset: usize, bytes: &mut [u8]) -> Result<(), FaultKind>;
    fn write_slice_at(&self, offset: usize, bytes: &[u8]) -> Result<(), FaultKind>;
}

impl Copies for MmapRegion {
    #[inline]
    fn read_slice_at(&self, offset: usize, bytes: &mut [u8]) -> Result<(), FaultKind> {
        self.as_volatile_slice().read_slice(bytes, offset).map_err(|_| FaultKind::Address)
    }

    #[inline]
    fn write_slice_at(&self, offset: usize, bytes: &[u8]) -> Result<(), FaultKind> {
        self.as_volatile_slice().write_slice(bytes, offset).map_err(|_| FaultKind::Address)
    }
}
