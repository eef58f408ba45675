//! The files behind the BARs: what a VMM maps and what the card's units see are the same bytes.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;

use arctic_device_model::card::{GGTT_WINDOW, GTTMMADR_BYTES};
use arctic_device_model::memory::ggtt::GGTT_BYTES;
use arctic_device_model::memory::local::SharedRegion;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use vmm_sys_util::fallocate::{FallocateMode, fallocate};

/// Local memory of `bytes`, or a VF's window onto it.
pub fn local_memory(bytes: u64) -> io::Result<(File, SharedRegion)> {
    let file = memfd("arctic-local-memory", bytes)?;
    let len = usize::try_from(bytes).map_err(io::Error::other)?;
    let region = SharedRegion::from_file(file.try_clone()?, len)?;
    Ok((file, region))
}

/// The global table, or what a VF writes of it. The file is laid out like GTTMMADR, so that one file and one offset
/// serve the VMM; the lower half stays empty.
pub fn global_table() -> io::Result<(File, SharedRegion)> {
    let file = memfd("arctic-gttmmadr", GTTMMADR_BYTES)?;
    let region = SharedRegion::from_file_at(file.try_clone()?, GGTT_WINDOW, GGTT_BYTES)?;
    Ok((file, region))
}

/// Gives the pages of `file`'s first `bytes` back to the host: they read 0 from now on.
pub fn empty(file: &File, bytes: u64) -> io::Result<()> {
    Ok(fallocate(file, FallocateMode::PunchHole, true, 0, bytes)?)
}

/// Bytes of the host's memory that `file` takes.
pub fn allocated(file: &File) -> u64 {
    /// What `st_blocks` counts in.
    const BLOCK: u64 = 512;
    file.metadata().map_or(0, |metadata| metadata.blocks() * BLOCK)
}

/// A sparse file in memory, of this length for ever: whoever is given it cannot cut it short, which would make each touch
/// of the card's own mapping a SIGBUS.
pub fn memfd(name: &str, bytes: u64) -> io::Result<File> {
    let file = File::from(memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?);
    file.set_len(bytes)?;
    fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client that has been given a BAR's file can write it, and that is all: with a shorter one the card's own
    /// accesses would be bus errors, a longer one costs memory that nobody has granted.
    #[test]
    fn nobody_changes_the_length_of_a_bars_file() {
        for file in [local_memory(1 << 20).unwrap().0, global_table().unwrap().0] {
            let bytes = file.metadata().unwrap().len();
            for length in [0, bytes - 4096, bytes + 4096] {
                assert!(file.set_len(length).is_err(), "{length:#x}");
            }
            assert_eq!(file.metadata().unwrap().len(), bytes);
        }
    }
}
