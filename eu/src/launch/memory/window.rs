// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What the lanes of a message access, if that is in one buffer: bounds are checked once for each lane, by one comparison.

use vm_memory::{ByteValued, VolatileArrayRef, VolatileMemory, VolatileSlice};

use crate::exec::memory::LaneSpans;

/// The part of a buffer that the lanes of a message can access.
pub struct Window<'s> {
    bytes: VolatileSlice<'s>,
    /// Address of its first byte, and the bits that addresses have.
    start: u64,
    mask: u64,
}

impl<'s> Window<'s> {
    /// The window of these bytes, of which the first has the address `start`. Addresses have the bits of `mask`.
    #[inline(always)]
    pub fn new(bytes: VolatileSlice<'s>, start: u64, mask: u64) -> Window<'s> {
        Window { bytes, start, mask }
    }

    /// Place of an address. One that is outside is beyond the end.
    #[inline(always)]
    fn place(&self, address: u64) -> usize {
        usize::try_from((address & self.mask).wrapping_sub(self.start)).unwrap_or(usize::MAX)
    }

    /// Reads the bytes of all lanes. Returns false if not all are inside; some of them may have been read.
    #[inline]
    pub fn read_lanes(&self, lanes: &LaneSpans<'_>, bytes: &mut [u8]) -> bool {
        match lanes.size {
            4 => self.read_dwords(lanes, bytes) || self.read::<4, u32>(lanes, bytes),
            8 => self.read::<8, u64>(lanes, bytes),
            12 => self.read::<12, [u32; 3]>(lanes, bytes),
            16 => self.read::<16, u128>(lanes, bytes),
            1 => self.read::<1, u8>(lanes, bytes),
            2 => self.read::<2, u16>(lanes, bytes),
            _ => false,
        }
    }

    /// Writes the bytes of all lanes, as [`Window::read_lanes`] reads them.
    #[inline]
    pub fn write_lanes(&self, lanes: &LaneSpans<'_>, bytes: &[u8]) -> bool {
        match lanes.size {
            4 => self.write_dwords(lanes, bytes) || self.write::<4, u32>(lanes, bytes),
            8 => self.write::<8, u64>(lanes, bytes),
            12 => self.write::<12, [u32; 3]>(lanes, bytes),
            16 => self.write::<16, u128>(lanes, bytes),
            1 => self.write::<1, u8>(lanes, bytes),
            2 => self.write::<2, u16>(lanes, bytes),
            _ => false,
        }
    }

    /// The dwords of the part.
    #[inline(always)]
    fn dwords(&self) -> Option<VolatileArrayRef<'_, u32>> {
        self.bytes.get_array_ref(0, self.bytes.len() / 4).ok()
    }

    /// Number of the dword at an address. That of an address between two dwords is beyond the end.
    #[inline(always)]
    fn index(&self, address: u64) -> usize {
        self.place(address).rotate_right(2)
    }

    /// Reads a dword of each lane.
    #[inline(always)]
    fn read_dwords(&self, lanes: &LaneSpans<'_>, bytes: &mut [u8]) -> bool {
        let Some(dwords) = self.dwords() else { return false };
        let values = bytes.as_chunks_mut::<4>().0.iter_mut().zip(lanes.addresses);
        for (lane, (value, address)) in values.enumerate() {
            if lanes.enabled >> lane & 1 != 0 {
                let index = self.index(*address);
                if index >= dwords.len() {
                    return false;
                }
                *value = dwords.load(index).to_ne_bytes();
            }
        }
        true
    }

    /// Writes a dword of each lane.
    #[inline(always)]
    fn write_dwords(&self, lanes: &LaneSpans<'_>, bytes: &[u8]) -> bool {
        let Some(dwords) = self.dwords() else { return false };
        let values = bytes.as_chunks::<4>().0.iter().zip(lanes.addresses);
        for (lane, (value, address)) in values.enumerate() {
            if lanes.enabled >> lane & 1 != 0 {
                let index = self.index(*address);
                if index >= dwords.len() {
                    return false;
                }
                dwords.store(index, u32::from_ne_bytes(*value));
            }
        }
        true
    }

    /// Reads `SIZE` bytes of each lane, as one value of the type `T`.
    #[inline(always)]
    fn read<const SIZE: usize, T: Word<SIZE>>(&self, lanes: &LaneSpans<'_>, bytes: &mut [u8]) -> bool {
        let values = bytes.as_chunks_mut::<SIZE>().0.iter_mut().zip(lanes.addresses);
        if lanes.enabled.trailing_ones() as usize >= lanes.addresses.len() {
            // Without a test for each lane.
            for (value, address) in values {
                let Ok(from) = self.bytes.get_ref::<T>(self.place(*address)) else { return false };
                *value = from.load().bytes();
            }
            return true;
        }
        for (lane, (value, address)) in values.enumerate() {
            if lanes.enabled >> lane & 1 != 0 {
                let Ok(from) = self.bytes.get_ref::<T>(self.place(*address)) else { return false };
                *value = from.load().bytes();
            }
        }
        true
    }

    /// Writes as [`Window::read`] reads.
    #[inline(always)]
    fn write<const SIZE: usize, T: Word<SIZE>>(&self, lanes: &LaneSpans<'_>, bytes: &[u8]) -> bool {
        let values = bytes.as_chunks::<SIZE>().0;
        for (lane, (value, address)) in values.iter().zip(lanes.addresses).enumerate() {
            if lanes.enabled >> lane & 1 != 0 {
                let Ok(into) = self.bytes.get_ref::<T>(self.place(*address)) else { return false };
                into.store(T::of(*value));
            }
        }
        true
    }
}

/// A number, or some, of `SIZE` bytes.
pub trait Word<const SIZE: usize>: ByteValued {
    fn bytes(self) -> [u8; SIZE];
    fn of(bytes: [u8; SIZE]) -> Self;
}

macro_rules! words {
    ($($size:literal $word:ident)*) => {
        $(
            impl Word<$size> for $word {
                #[inline(always)]
                fn bytes(self) -> [u8; $size] {
                    self.to_ne_bytes()
                }

                #[inline(always)]
                fn of(bytes: [u8; $size]) -> $word {
                    $word::from_ne_bytes(bytes)
                }
            }
        )*
    };
}

words!(1 u8 2 u16 4 u32 8 u64 16 u128);

macro_rules! blocks {
    ($($size:literal $count:literal)*) => {
        $(
            impl Word<$size> for [u64; $count] {
                #[inline(always)]
                fn bytes(self) -> [u8; $size] {
                    let mut all = [0; $size];
                    for (bytes, word) in all.as_chunks_mut::<8>().0.iter_mut().zip(self) {
                        *bytes = word.to_ne_bytes();
                    }
                    all
                }

                #[inline(always)]
                fn of(bytes: [u8; $size]) -> [u64; $count] {
                    let mut all = [0; $count];
                    for (word, bytes) in all.iter_mut().zip(bytes.as_chunks::<8>().0) {
                        *word = u64::from_ne_bytes(*bytes);
                    }
                    all
                }
            }
        )*
    };
}

blocks!(32 4 64 8 128 16);

impl Word<12> for [u32; 3] {
    #[inline(always)]
    fn bytes(self) -> [u8; 12] {
        let mut bytes = [[0; 4]; 3];
        for (bytes, word) in bytes.iter_mut().zip(self) {
            *bytes = word.to_ne_bytes();
        }
        let mut all = [0; 12];
        all.copy_from_slice(bytes.as_flattened());
        all
    }

    #[inline(always)]
    fn of(bytes: [u8; 12]) -> [u32; 3] {
        let [a, b, c, ..] = bytes.as_chunks::<4>().0 else { return [0; 3] };
        [a, b, c].map(|word| u32::from_ne_bytes(*word))
    }
}
