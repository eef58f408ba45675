// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Surfaces: what the addresses of messages are relative to, and where they are.

use super::fault::FaultKind;
use super::memory::elements;

/// What the addresses of a message are relative to. EU-040.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Surface {
    /// Virtual addresses.
    Flat,
    /// Offsets from the general state base.
    Stateless,
    /// Entry of the binding table.
    Binding(u8),
    /// Byte offset of a surface state from the bindless surface base.
    Bindless(u32),
    /// Byte offset of a surface state from the surface state base, and the hardware thread for a scratch surface. EU-041.
    State(u32, u32),
}

/// The memory of a surface, as messages with untyped elements access it. Addresses have 48 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SurfaceMemory {
    /// None: reads give 0, writes are dropped.
    Null,
    /// Bytes from `base` on.
    Buffer {
        /// Virtual address of the first byte.
        base: u64,
        /// Number of bytes; of a decoded state 1 to 2^50.
        bytes: u64,
    },
    /// `pitch` bytes for each hardware thread, that of the first one from `base` on (EU-041).
    Scratch {
        /// Virtual address of the first byte.
        base: u64,
        /// Bytes of a thread; of a decoded state 1 to 2^18.
        pitch: u64,
        /// Number of hardware threads.
        threads: u64,
    },
    /// An image, which has no untyped elements.
    Texels,
}

/// Where the addresses of a message are: an address `a & mask` below `bytes` is at the virtual address `base + (a & mask)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    base: u64,
    bytes: u64,
    mask: u64,
}

/// Bits of a virtual address. EU-006.
const ADDRESS: u64 = (1 << 48) - 1;

impl Extent {
    /// Of [`Surface::Flat`]: virtual addresses.
    pub const FLAT: Extent = Extent { base: 0, bytes: u64::MAX, mask: ADDRESS };

    /// Of [`Surface::Stateless`]: offsets of 32 bits from the general state base.
    pub fn stateless(general_base: u64) -> Extent {
        Extent { base: general_base, bytes: u64::MAX, mask: u32::MAX as u64 }
    }

    /// Virtual address, and number of bytes from there to the end of the surface.
    #[inline(always)]
    pub fn place(self, address: u64) -> (u64, u64) {
        let offset = address & self.mask;
        (self.base.wrapping_add(offset) & ADDRESS, self.bytes.saturating_sub(offset))
    }
}

impl SurfaceMemory {
    /// Where the surface of this name and with this memory is. A hardware thread beyond those of a scratch surface has no bytes.
    ///
    /// # Errors
    /// [`FaultKind::Surface`] for an image, and for a scratch surface in a message without a thread's number.
    #[inline(always)]
    pub fn extent(self, surface: Surface) -> Result<Extent, FaultKind> {
        let (base, bytes) = match (self, surface) {
            (SurfaceMemory::Buffer { base, bytes }, _) => (base, bytes),
            (SurfaceMemory::Null, _) => (0, 0),
            (SurfaceMemory::Scratch { base, pitch, threads }, Surface::State(_, thread)) => {
                let thread = u64::from(thread);
                (base.wrapping_add(thread.wrapping_mul(pitch)), if thread < threads { pitch } else { 0 })
            }
            (SurfaceMemory::Scratch { .. } | SurfaceMemory::Texels, _) => return Err(FaultKind::Surface),
        };
        Ok(Extent { base, bytes, mask: u64::MAX })
    }
}

/// Bytes of the elements of `element` bytes, a power of two, of an access of `len` bytes that are wholly inside a surface, of
/// which `inside` bytes are left.
pub fn count_inside(inside: u64, len: usize, element: usize) -> usize {
    elements(usize::try_from(inside).unwrap_or(usize::MAX).min(len), element)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_its_part_of_a_scratch_surface() {
        let memory = SurfaceMemory::Scratch { base: 0x1_0000, pitch: 0x400, threads: 3 };
        let place = |thread, address| memory.extent(Surface::State(0, thread)).map(|extent| extent.place(address));
        assert_eq!(place(0, 0), Ok((0x1_0000, 0x400)));
        assert_eq!(place(2, 0x3ff), Ok((0x1_0bff, 1)));
        // Behind its part, and beyond the last thread.
        assert_eq!(place(2, 0x400), Ok((0x1_0c00, 0)));
        assert_eq!(place(3, 0), Ok((0x1_0c00, 0)));
        for surface in [Surface::Binding(1), Surface::Bindless(64)] {
            assert_eq!(memory.extent(surface), Err(FaultKind::Surface));
        }
    }

    #[test]
    fn addresses_are_inside_of_their_surfaces() {
        let buffer = SurfaceMemory::Buffer { base: 0x1000, bytes: 10 }.extent(Surface::Binding(0)).unwrap();
        assert_eq!([buffer.place(3), buffer.place(10), buffer.place(u64::MAX)], [(0x1003, 7), (0x100a, 0), (0xfff, 0)]);
        let null = SurfaceMemory::Null.extent(Surface::Bindless(0)).unwrap();
        assert_eq!(null.place(0).1, 0);
        assert_eq!(SurfaceMemory::Texels.extent(Surface::State(0, 0)), Err(FaultKind::Surface));
        assert_eq!(Extent::FLAT.place(0xffff_0000_0000_0010).0, 0x10);
        assert_eq!(Extent::stateless(0x5000).place(0x7_0000_0004).0, 0x5004);
        assert_eq!([count_inside(10, 16, 4), count_inside(u64::MAX, 16, 4), count_inside(3, 16, 4)], [8, 16, 0]);
    }
}
