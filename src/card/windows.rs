//! The files behind the BARs: what a VMM maps and what the card's units see are the same bytes.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::FromRawFd;
use std::os::unix::fs::MetadataExt;

use arctic_device_model::card::{GGTT_WINDOW, GTTMMADR_BYTES};
use arctic_device_model::memory::ggtt::GGTT_BYTES;
use arctic_device_model::memory::local::SharedRegion;
use vmm_sys_util::fallocate::{FallocateMode, fallocate};

/// Local memory of `bytes`, or a VF's window onto it.
pub fn local_memory(bytes: u64) -> io::Result<(File, SharedRegion)> {
    let file = memfd(c"arctic-local-memory", bytes)?;
    let len = usize::try_from(bytes).map_err(io::Error::other)?;
    let region = SharedRegion::from_file(file.try_clone()?, len)?;
    Ok((file, region))
}

/// The global table, or what a VF writes of it. The file is laid out like GTTMMADR, so that one file and one offset
/// serve the VMM; the lower half stays empty.
pub fn global_table() -> io::Result<(File, SharedRegion)> {
    let file = memfd(c"arctic-gttmmadr", GTTMMADR_BYTES)?;
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

/// A sparse file in memory.
pub fn memfd(name: &CStr, bytes: u64) -> io::Result<File> {
    // SAFETY: `name` ends with a NUL byte and outlives the call.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is fresh and belongs to nobody else.
    let file = unsafe { File::from_raw_fd(fd) };
    file.set_len(bytes)?;
    Ok(file)
}
