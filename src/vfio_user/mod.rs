//! The vfio-user server: one socket a PCI function, its protocol kept apart from the card behind [`Device`].

mod budget;
mod channel;
mod client_dma;
mod clients;
pub mod ecam;
pub(crate) mod irq;
mod server;
mod session;
pub(crate) mod socket;
pub mod wire;

pub use budget::StepBudget;
pub use client_dma::{ClientDma, DmaError};
pub use clients::{Served, ServedCard};
pub use irq::Vectors;
pub use server::{Function, Server, Settings};

/// A session that a test drives message by message, without a thread.
#[doc(hidden)]
pub mod by_hand {
    pub use super::channel::{Channel, Closed, Wake};
    pub use super::session::Session;
}

use crate::pci::PciDevice;

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
    /// A limit on what the client maps.
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

/// Index of the configuration space among the regions (`VFIO_PCI_CONFIG_REGION_INDEX`); the BARs have their own.
pub const CONFIG_REGION: u32 = vfio_bindings::bindings::vfio::VFIO_PCI_CONFIG_REGION_INDEX;

/// Vectors of INTx, MSI and MSI-X: every function has one MSI.
pub const VECTORS: [u32; wire::IRQ_INDEXES] = [0, 1, 0];

/// A PCI function as the transport sees it.
///
/// Calls come from the thread of the function's connection. The server checks every access against the region's size;
/// accesses to BARs are of 1, 2, 4 or 8 bytes, those to configuration space of any length (QEMU reads all 4096 at
/// once). A call must return well within 5 seconds, QEMU's patience, and never wait for a message from its own client.
pub trait Device: Send + Sync {
    /// The function. Byte n of what can be mapped of a BAR is byte n of its file.
    fn pci(&self) -> &dyn PciDevice;

    /// A client is at the door. `Err` tells the log why it is turned away; after `Ok` [`Device::disconnected`] comes for
    /// certain.
    fn admit(&self) -> Result<(), String>;

    /// The client resets the function (system reset, or a VMM of its own accord).
    fn reset(&self) {
        self.pci().reset();
    }

    /// The client is gone: nobody listens to interrupts, guest memory is no longer mapped.
    fn disconnected(&self);
}

#[cfg(test)]
pub(crate) mod tests;
