// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Cells: aligned dwords and qwords of mapped memory, which are read and written as a whole, concurrently with a guest's CPUs.
//!
//! This is the only place that writes single values to memory of guests or of the card: other modules have a slice of memory
//! and no means to change it (`device-model/tests/layers`). The memory that a slice for [`crate::host::Access::Write`] covers
//! has been marked in the guest's log of writes when the slice was made.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use vm_memory::{Bytes, VolatileMemory, VolatileSlice};

/// The value of a cell, in the byte order of the host.
pub trait CellValue: Copy + Into<u64> {
    /// Its size in bytes, at most 8.
    const BYTES: usize;
    /// The value of the low bytes.
    fn low(value: u64) -> Self;
    /// Loads the cell at an offset; `None` if it is not aligned or not inside.
    fn load(slice: &VolatileSlice<'_>, offset: usize) -> Option<Self>;
    /// Stores a value. Returns whether the cell is aligned and inside.
    fn store(self, slice: &VolatileSlice<'_>, offset: usize) -> bool;
    /// Replaces the value by that of `new` for it, or not at all. Returns the old value, as `Err` if it was not replaced;
    /// `None` if the cell is not aligned or not inside.
    fn update(
        slice: &VolatileSlice<'_>,
        offset: usize,
        new: impl FnMut(Self) -> Option<Self>,
    ) -> Option<Result<Self, Self>>;
}

macro_rules! cell_value {
    ($value:ty, $atomic:ty) => {
        impl CellValue for $value {
            const BYTES: usize = size_of::<$value>();

            #[inline(always)]
            #[allow(clippy::cast_possible_truncation, reason = "the low bytes are meant")]
            fn low(value: u64) -> Self {
                value as $value
            }

            #[inline(always)]
            fn load(slice: &VolatileSlice<'_>, offset: usize) -> Option<Self> {
                let cell = slice.get_atomic_ref::<$atomic>(offset).ok()?;
                Some(<$value>::from_le(cell.load(Ordering::Acquire)))
            }

            #[inline(always)]
            fn store(self, slice: &VolatileSlice<'_>, offset: usize) -> bool {
                let Ok(cell) = slice.get_atomic_ref::<$atomic>(offset) else { return false };
                cell.store(self.to_le(), Ordering::Release);
                true
            }

            #[inline]
            fn update(
                slice: &VolatileSlice<'_>,
                offset: usize,
                mut new: impl FnMut(Self) -> Option<Self>,
            ) -> Option<Result<Self, Self>> {
                let cell = slice.get_atomic_ref::<$atomic>(offset).ok()?;
                let new = |old| new(<$value>::from_le(old)).map(<$value>::to_le);
                let updated = cell.fetch_update(Ordering::SeqCst, Ordering::SeqCst, new);
                Some(updated.map(<$value>::from_le).map_err(<$value>::from_le))
            }
        }
    };
}

cell_value!(u32, AtomicU32);
cell_value!(u64, AtomicU64);

/// The largest cell of which `slice` and a length of `len` bytes are multiples; 0 if there is none.
#[inline(always)]
fn cell_bytes(slice: &VolatileSlice<'_>, len: usize) -> usize {
    match (slice.ptr_guard().as_ptr().addr() | len) % 8 {
        0 => 8,
        4 => 4,
        _ => 0,
    }
}

/// Reads the bytes from an offset on. Each aligned dword and qword is read as a whole if the first byte and the length are
/// aligned to one; different ones are read one after the other. Returns whether all bytes are inside.
#[inline]
pub fn read(slice: &VolatileSlice<'_>, offset: usize, bytes: &mut [u8]) -> bool {
    let Ok(part) = slice.subslice(offset, bytes.len()) else { return false };
    match cell_bytes(&part, bytes.len()) {
        8 => {
            let values = bytes.as_chunks_mut().0;
            part.get_array_ref::<u64>(0, values.len()).is_ok_and(|cells| {
                values.iter_mut().enumerate().for_each(|(index, value)| *value = cells.load(index).to_ne_bytes());
                true
            })
        }
        4 => {
            let values = bytes.as_chunks_mut().0;
            part.get_array_ref::<u32>(0, values.len()).is_ok_and(|cells| {
                values.iter_mut().enumerate().for_each(|(index, value)| *value = cells.load(index).to_ne_bytes());
                true
            })
        }
        _ => part.read_slice(bytes, 0).is_ok(),
    }
}

/// Writes the bytes from an offset on, as [`read`] reads them. Nothing is written if not all of them are inside.
#[inline]
pub fn write(slice: &VolatileSlice<'_>, offset: usize, bytes: &[u8]) -> bool {
    let Ok(part) = slice.subslice(offset, bytes.len()) else { return false };
    match cell_bytes(&part, bytes.len()) {
        8 => {
            let values = bytes.as_chunks().0;
            part.get_array_ref::<u64>(0, values.len()).is_ok_and(|cells| {
                values.iter().enumerate().for_each(|(index, value)| cells.store(index, u64::from_ne_bytes(*value)));
                true
            })
        }
        4 => {
            let values = bytes.as_chunks().0;
            part.get_array_ref::<u32>(0, values.len()).is_ok_and(|cells| {
                values.iter().enumerate().for_each(|(index, value)| cells.store(index, u32::from_ne_bytes(*value)));
                true
            })
        }
        _ => part.write_slice(bytes, 0).is_ok(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing, reason = "an index outside fails the test")]

    use vm_memory::mmap::MmapRegion;

    use super::*;

    #[test]
    fn cells_are_aligned_and_inside_and_in_the_order_of_memory() {
        let region = MmapRegion::<()>::new(4096).unwrap();
        let memory = region.get_slice(0, 16).unwrap();
        assert!(0x1122_3344_u32.store(&memory, 4) && 0x5566_7788_99aa_bbcc_u64.store(&memory, 8));
        assert_eq!(u32::load(&memory, 8), Some(0x99aa_bbcc));
        assert_eq!(
            (u64::load(&memory, 0), u64::load(&memory, 8)),
            (Some(0x1122_3344 << 32), Some(0x5566_7788_99aa_bbcc))
        );
        assert_eq!(u32::update(&memory, 4, |old| Some(old + 1)), Some(Ok(0x1122_3344)));
        assert_eq!(u32::update(&memory, 4, |_| None), Some(Err(0x1122_3345)));
        for offset in [1, 2, 6, 14, 16, usize::MAX] {
            assert_eq!((u32::load(&memory, offset), 1_u32.store(&memory, offset)), (None, false), "{offset}");
            assert_eq!(u64::update(&memory, offset, Some), None, "{offset}");
        }
        assert_eq!((u64::load(&memory, 4), u64::load(&memory, 12)), (None, None));
    }

    #[test]
    fn bytes_are_moved_at_every_alignment() {
        let region = MmapRegion::<()>::new(4096).unwrap();
        let memory = region.get_slice(0, 64).unwrap();
        let all: Vec<u8> = (1..=64).collect();
        for offset in 0..=64 {
            for len in 0..=64 {
                assert!(write(&memory, 0, &[0; 64]));
                let inside = offset + len <= 64;
                assert_eq!(write(&memory, offset, &all[..len]), inside, "{len} bytes at {offset}");
                let mut expected = [0; 64];
                if inside {
                    expected[offset..offset + len].copy_from_slice(&all[..len]);
                }
                let (mut found, mut part) = ([9; 64], [9; 64]);
                assert!(read(&memory, 0, &mut found));
                assert_eq!(found, expected, "{len} bytes at {offset}");
                assert_eq!(read(&memory, offset, &mut part[..len]), inside);
                assert_eq!(part[..len] == all[..len], inside || len == 0);
            }
        }
        assert!(!read(&memory, usize::MAX, &mut [0; 4]) && !write(&memory, usize::MAX, &[0; 4]));
    }
}
