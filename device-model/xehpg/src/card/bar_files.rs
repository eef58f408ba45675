// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The files that back the BARs. Mappings by a VMM and accesses by the card's units refer to the same pages.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::MetadataExt;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use vmm_sys_util::fallocate::{FallocateMode, fallocate};

use super::{GGTT_WINDOW, GTTMMADR_BYTES};
use crate::host::Function;
use crate::memory::ggtt::GGTT_BYTES;
use crate::memory::region::SharedRegion;

/// The files of one function, with the layouts of its BARs.
pub struct FunctionFiles {
    /// GTTMMADR; `None` if each access is trapped.
    pub gttmmadr: Option<File>,
    /// Local memory.
    pub local: File,
    /// Size of local memory in bytes, which the BAR may exceed.
    pub local_bytes: u64,
    /// Local memory may be mapped; otherwise each access is trapped.
    pub maps_local: bool,
}

impl FunctionFiles {
    fn files(&self) -> impl Iterator<Item = &File> {
        self.gttmmadr.iter().chain([&self.local])
    }

    /// Returns the pages of all files to the host, which clears their contents.
    fn empty(&self) -> io::Result<()> {
        self.gttmmadr.iter().try_for_each(|file| empty(file, GTTMMADR_BYTES))?;
        empty(&self.local, self.local_bytes)
    }
}

/// The files of all functions, by number. Empty for a card without files.
#[derive(Default)]
pub struct BarFiles(pub Vec<FunctionFiles>);

impl BarFiles {
    /// The files of `function`.
    pub fn of(&self, function: Function) -> Option<&FunctionFiles> {
        self.0.get(function.index())
    }

    /// The descriptors of the files of all functions.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        self.0.iter().flat_map(FunctionFiles::files).map(AsRawFd::as_raw_fd)
    }

    /// Host memory allocated for the files of `function`, in bytes.
    pub fn allocated(&self, function: Function) -> u64 {
        self.of(function).into_iter().flat_map(FunctionFiles::files).map(allocated).sum()
    }

    /// Clears the files of all functions.
    pub fn empty(&self) {
        for files in &self.0 {
            if let Err(error) = files.empty() {
                log::warn!("cannot clear a memory file of the card: {error}");
            }
        }
    }
}

/// Creates local memory of `bytes`, or a VF's window onto it.
pub fn local_memory(bytes: u64) -> io::Result<(File, SharedRegion)> {
    let file = memfd("arctic-local-memory", bytes)?;
    let len = usize::try_from(bytes).map_err(io::Error::other)?;
    let region = SharedRegion::from_file(file.try_clone()?, len)?;
    Ok((file, region))
}

/// Creates the GGTT, or a VF's separate table. The file has the layout of GTTMMADR, so file offsets equal BAR offsets;
/// its lower half stays empty.
pub fn global_table() -> io::Result<(File, SharedRegion)> {
    let file = memfd("arctic-gttmmadr", GTTMMADR_BYTES)?;
    let region = SharedRegion::from_file_at(file.try_clone()?, GGTT_WINDOW, GGTT_BYTES)?;
    Ok((file, region))
}

/// Returns the pages of the first `bytes` of `file` to the host (hole punch). The range then reads as zeros.
fn empty(file: &File, bytes: u64) -> io::Result<()> {
    Ok(fallocate(file, FallocateMode::PunchHole, true, 0, bytes)?)
}

/// Host memory allocated for `file`, in bytes.
fn allocated(file: &File) -> u64 {
    /// Unit of `st_blocks`, in bytes.
    const BLOCK: u64 = 512;
    file.metadata().map_or(0, |metadata| metadata.blocks().saturating_mul(BLOCK))
}

/// Creates a sparse memfd of `bytes`, sealed against resizing. Without the seals, a process that has received the
/// descriptor could truncate the file, and accesses to the card's own mapping would raise SIGBUS.
fn memfd(name: &str, bytes: u64) -> io::Result<File> {
    let file = File::from(memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
    file.set_len(bytes)?;
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client that has received a BAR's file can write to it but not resize it. After a truncation the card's own
    /// accesses would raise SIGBUS, and an extended file would use memory that was not granted.
    #[test]
    fn the_file_of_a_bar_cannot_be_resized() {
        for file in [local_memory(1 << 20).unwrap().0, global_table().unwrap().0] {
            let bytes = file.metadata().unwrap().len();
            for length in [0, bytes - 4096, bytes + 4096] {
                assert!(file.set_len(length).is_err(), "{length:#x}");
            }
            assert_eq!(file.metadata().unwrap().len(), bytes);
        }
    }
}
