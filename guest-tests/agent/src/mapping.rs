// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! CPU mappings of buffers that the GPU accesses concurrently.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

/// A shared mapping of a buffer object. Every access is volatile, since the GPU modifies the memory concurrently.
/// Accesses are bounds-checked. An offset out of range is a bug in the caller and panics.
pub struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to the process, and only `self` unmaps it.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps `len` bytes at `offset` of `file`.
    pub fn new(file: &File, offset: u64, len: usize) -> io::Result<Self> {
        // SAFETY: a new shared mapping at an address chosen by the kernel overlaps no memory in use.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                offset as libc::off_t,
            )
        };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast() != libc::MAP_FAILED => Ok(Mapping { start, len }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Size in bytes.
    #[allow(clippy::len_without_is_empty, reason = "a mapping is never empty")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns a pointer to `size` bytes at `offset`, for the kernel to read.
    pub fn pointer(&self, offset: usize, size: usize) -> *mut u8 {
        let end = offset.checked_add(size).expect("offset overflows");
        assert!(end <= self.len, "{size} bytes at {offset:#x} are outside of {:#x}", self.len);
        // SAFETY: checked above to lie within the mapping, which is one allocation.
        unsafe { self.start.as_ptr().add(offset) }
    }

    /// Reads the dword at byte `offset` (a multiple of 4).
    pub fn read_u32(&self, offset: usize) -> u32 {
        assert!(offset.is_multiple_of(4));
        // SAFETY: in bounds (`pointer`), aligned (mappings are page-aligned), and every bit pattern is a valid u32.
        u32::from_le(unsafe { self.pointer(offset, 4).cast::<u32>().read_volatile() })
    }

    /// Reads the quadword at byte `offset` (a multiple of 8).
    pub fn read_u64(&self, offset: usize) -> u64 {
        assert!(offset.is_multiple_of(8));
        // SAFETY: as for `read_u32`.
        u64::from_le(unsafe { self.pointer(offset, 8).cast::<u64>().read_volatile() })
    }

    /// Writes the dword at byte `offset` (a multiple of 4).
    pub fn write_u32(&self, offset: usize, value: u32) {
        assert!(offset.is_multiple_of(4));
        // SAFETY: as for `read_u32`; no Rust reference into the mapping exists.
        unsafe { self.pointer(offset, 4).cast::<u32>().write_volatile(value.to_le()) }
    }

    /// Writes the quadword at byte `offset` (a multiple of 8).
    pub fn write_u64(&self, offset: usize, value: u64) {
        assert!(offset.is_multiple_of(8));
        // SAFETY: as for `write_u32`.
        unsafe { self.pointer(offset, 8).cast::<u64>().write_volatile(value.to_le()) }
    }

    /// Reads `len` bytes (a multiple of 8) from offset 0.
    pub fn read(&self, len: usize) -> Vec<u8> {
        assert!(len.is_multiple_of(8) && len <= self.len);
        (0..len / 8).flat_map(|index| self.read_u64(8 * index).to_le_bytes()).collect()
    }

    /// Writes `bytes` (a multiple of 8 bytes) at offset 0.
    pub fn write(&self, bytes: &[u8]) {
        let (quadwords, rest) = bytes.as_chunks::<8>();
        assert!(rest.is_empty());
        for (index, quadword) in quadwords.iter().enumerate() {
            self.write_u64(8 * index, u64::from_le_bytes(*quadword));
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `new` mapped exactly this range, and no pointer into it outlives `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_go_in_and_out_in_order() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(4096).unwrap();
        let mapping = Mapping::new(&file, 0, 4096).unwrap();
        mapping.write(&[1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(mapping.read_u32(4), 0x0807_0605);
        mapping.write_u32(0, 0xaabb_ccdd);
        assert_eq!(mapping.read(8), [0xdd, 0xcc, 0xbb, 0xaa, 5, 6, 7, 8]);
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| mapping.read_u32(4096))).is_err());
    }
}
