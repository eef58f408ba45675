// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The interface to memory, which the user of the interpreter implements, and what it names.

pub use super::atomic::Atomic;
pub use super::fault::MemoryFault;
pub use super::image::{
    Addressing, Channel, ChannelKind, ChannelOrder, Comparison, Component, Dimensions, Filter, Image, ImageFormat,
    LevelFilter, Levels, Reduction, Sampler,
};
pub use super::mips::MipLayout;
pub use super::spans::{LaneFault, LaneSpans};
pub use super::surface::{Extent, Surface, SurfaceMemory, count_inside};

/// Whether an access was inside its surface. ISA-221: of elements that are wholly or partly outside, loads give 0 and stores
/// are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Access {
    /// All bytes were.
    Inside,
    /// Not all bytes were.
    Outside,
}

/// Bytes of the elements of `element` bytes, a power of two, that `bytes` has entirely.
pub fn elements(bytes: usize, element: usize) -> usize {
    bytes & !element.wrapping_sub(1)
}

/// Memory of a dispatch, as a thread reaches it. An implementor that host threads share is implemented for a reference.
///
/// An access that fails ends the thread in a fault, which names the access; the implementor gives the reason and, if it
/// knows it, the virtual address. If the thread is executed again, it begins with the same instruction, whose operands are as
/// they were: an implementor whose accesses may succeed later has to apply the atomic operations of the message once.
pub trait Memory {
    /// Reads elements of `element` bytes, a power of two. Elements that are not wholly inside the surface are 0.
    ///
    /// # Errors
    /// If the surface does not exist, or the address is in no memory.
    fn read(&mut self, surface: Surface, address: u64, element: usize, bytes: &mut [u8])
    -> Result<Access, MemoryFault>;

    /// Writes elements of `element` bytes, a power of two. Elements that are not wholly inside the surface are dropped.
    ///
    /// # Errors
    /// If the surface does not exist, or the address is in no memory.
    fn write(&mut self, surface: Surface, address: u64, element: usize, bytes: &[u8]) -> Result<Access, MemoryFault>;

    /// Reads what the lanes of a message load, in the order of the lanes; as [`Memory::read`] for each of them, of which an
    /// implementor may do the common part once. `bytes` has [`LaneSpans::size`] bytes for each lane; those of lanes that are
    /// not enabled do not change. Lanes with an element that is not wholly inside the surface are set in `outside`.
    ///
    /// # Errors
    /// As [`Memory::read`], with the lane. Lanes before it are read.
    fn read_lanes(&mut self, lanes: &LaneSpans<'_>, bytes: &mut [u8], outside: &mut u32) -> Result<(), LaneFault> {
        lanes.read_each(self, bytes, outside)
    }

    /// Writes what the lanes of a message store, in the order of the lanes, as [`Memory::read_lanes`] reads it.
    ///
    /// # Errors
    /// As [`Memory::write`], with the lane. Lanes before it are written.
    fn write_lanes(&mut self, lanes: &LaneSpans<'_>, bytes: &[u8], outside: &mut u32) -> Result<(), LaneFault> {
        lanes.write_each(self, bytes, outside)
    }

    /// Applies an operation to an aligned element of 2, 4 or 8 bytes, atomically with respect to all other accesses. Returns
    /// the element before, or `None` outside the surface.
    ///
    /// # Errors
    /// If the surface does not exist, or the address is in no memory.
    fn atomic(
        &mut self,
        surface: Surface,
        address: u64,
        size: u32,
        operation: Atomic,
        operands: [u64; 2],
    ) -> Result<Option<u64>, MemoryFault>;

    /// Description of an image.
    ///
    /// # Errors
    /// If the surface does not exist, or is no image.
    fn image(&mut self, surface: Surface) -> Result<Image, MemoryFault>;

    /// Description of a sampler: by a bindless pointer in dword 3 of a header, or by number.
    ///
    /// # Errors
    /// If the sampler does not exist.
    fn sampler(&mut self, pointer: Option<u32>, index: u8) -> Result<Sampler, MemoryFault>;

    /// Reads the bytes of a texel that is inside the image, which is the level [`Image::levels`] of its surface. By default the
    /// image is linear and has one level.
    ///
    /// # Errors
    /// If the texel is in no memory.
    fn read_texel(&mut self, image: &Image, at: [u32; 3], bytes: &mut [u8]) -> Result<(), MemoryFault> {
        self.read(Surface::Flat, image.texel(at), 1, bytes).map(|_| ())
    }

    /// Writes the bytes of a texel that is inside the image, as [`Memory::read_texel`] reads them.
    ///
    /// # Errors
    /// If the texel is in no memory.
    fn write_texel(&mut self, image: &Image, at: [u32; 3], bytes: &[u8]) -> Result<(), MemoryFault> {
        self.write(Surface::Flat, image.texel(at), 1, bytes).map(|_| ())
    }

    /// Applies an operation to a texel of 4 bytes that is inside the image, atomically with respect to all other accesses. Returns
    /// the texel before. By default the image is linear and has one level.
    ///
    /// # Errors
    /// If the texel is in no memory, or its memory has no atomic operations.
    fn atomic_texel(
        &mut self,
        image: &Image,
        at: [u32; 3],
        operation: Atomic,
        operands: [u64; 2],
    ) -> Result<u64, MemoryFault> {
        Ok(self.atomic(Surface::Flat, image.texel(at), 4, operation, operands)?.unwrap_or(0))
    }

    /// Reads bytes of a row of an image for a media block message, from byte `x` of row `y` on; all are inside the image
    /// ([`Image::media_row_bytes`]). By default the image is linear.
    ///
    /// # Errors
    /// If a byte is in no memory.
    fn read_row(&mut self, image: &Image, x: u32, y: u32, bytes: &mut [u8]) -> Result<(), MemoryFault> {
        self.read(Surface::Flat, image.media_byte(x, y), 1, bytes).map(|_| ())
    }

    /// Writes bytes of a row of an image, as [`Memory::read_row`] reads them.
    ///
    /// # Errors
    /// If a byte is in no memory.
    fn write_row(&mut self, image: &Image, x: u32, y: u32, bytes: &[u8]) -> Result<(), MemoryFault> {
        self.write(Surface::Flat, image.media_byte(x, y), 1, bytes).map(|_| ())
    }

    /// What the accesses since the last call have cost beyond what a message costs in any case ([`super::Budget`]), in
    /// instructions. It is asked for after each message. By default nothing.
    fn take_cost(&mut self) -> u64 {
        0
    }
}
