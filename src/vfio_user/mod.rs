//! The vfio-user server: one socket a PCI function, its protocol kept apart from the card behind [`Device`].

mod channel;
mod client_dma;
mod irq;
mod server;
mod session;
pub mod wire;

use std::fs::File;
use std::ops::Range;

pub use client_dma::{ClientDma, DmaError};
pub use irq::Vectors;
pub(crate) use server::bind;
pub use server::{Function, Server, Settings};

/// An error number of a reply, as in `errno.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

impl Errno {
    /// A message or an argument makes no sense.
    pub const EINVAL: Errno = Errno(libc::EINVAL);
    /// A mapping overlaps another.
    pub const EEXIST: Errno = Errno(libc::EEXIST);
    /// Nothing is mapped there.
    pub const ENOENT: Errno = Errno(libc::ENOENT);
    /// Too many mappings.
    pub const ENOSPC: Errno = Errno(libc::ENOSPC);
    /// A file could not be mapped.
    pub const ENOMEM: Errno = Errno(libc::ENOMEM);
    /// The command is not served.
    pub const ENOTSUP: Errno = Errno(libc::ENOTSUP);
    /// An engine still holds what should go away.
    pub const EBUSY: Errno = Errno(libc::EBUSY);
    /// The message is longer than any that the protocol needs.
    pub const EMSGSIZE: Errno = Errno(libc::EMSGSIZE);
}

/// One region of a function as VFIO numbers them: six BARs, ROM, configuration space, VGA.
#[derive(Default)]
pub struct Region {
    /// Bytes; 0 where the function has no such region.
    pub size: u64,
    /// The file that a client may map in parts (see [`Device::areas`]) instead of sending accesses; byte n of the
    /// region is byte n of the file.
    pub file: Option<File>,
}

/// Index of the configuration space among the regions (`VFIO_PCI_CONFIG_REGION_INDEX`).
pub const CONFIG_REGION: u32 = vfio_bindings::bindings::vfio::VFIO_PCI_CONFIG_REGION_INDEX;

/// A PCI function as the transport sees it.
///
/// Calls come from the thread of the function's connection. The server checks every access against the region's size;
/// accesses to BARs are of 1, 2, 4 or 8 bytes, those to configuration space of any length (QEMU reads all 4096 at
/// once). A call must return well within 5 seconds, QEMU's patience, and never wait for a message from its own client.
pub trait Device: Send + Sync {
    /// The regions by index; missing ones at the end count as absent.
    fn regions(&self) -> &[Region];

    /// The parts of a region's file that a client may map now, in bytes from the region's start: none without a file.
    fn areas(&self, region: u32) -> Vec<Range<u64>> {
        let region = self.regions().get(region as usize);
        region.filter(|region| region.file.is_some()).map(|region| 0..region.size).into_iter().collect()
    }

    /// Vectors of INTx, MSI and MSI-X.
    fn vectors(&self) -> [u32; wire::IRQ_INDEXES];

    /// Fills `data` from `offset` of a region.
    fn read(&self, region: u32, offset: u64, data: &mut [u8]);

    /// Writes `data` to `offset` of a region.
    fn write(&self, region: u32, offset: u64, data: &[u8]);

    /// A client is at the door. `Err` tells the log why it is turned away; after `Ok` [`Device::disconnected`] comes for
    /// certain.
    fn admit(&self) -> Result<(), String>;

    /// The client resets the function (system reset, or a VMM of its own accord).
    fn reset(&self);

    /// The client is gone: nobody listens to interrupts, guest memory is no longer mapped.
    fn disconnected(&self);
}

#[cfg(test)]
pub(crate) mod tests;
