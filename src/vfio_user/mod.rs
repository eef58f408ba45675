// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The vfio-user server, with one socket per PCI function. [`Device`] separates the protocol from the card.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

mod budget;
mod channel;
mod client_dma;
mod clients;
mod connection;
pub mod ecam;
mod inbox;
pub(crate) mod irq;
pub mod memory;
#[doc(hidden)]
pub mod quota;
mod server;
mod session;
#[doc(hidden)]
pub mod socket;
mod start_error;
#[doc(hidden)]
pub mod wire;

pub use budget::StepBudget;
pub use client_dma::ClientDma;
pub use clients::{Served, ServedCard};
pub use connection::DmaError;
pub use irq::Vectors;
pub use server::{Function, Server, Settings};
pub use session::PROTOCOL_VERSION;
pub use start_error::StartError;

/// Access to a session for tests that drive it message by message, without a thread.
#[doc(hidden)]
pub mod test_driver {
    pub use super::channel::{Channel, Wake};
    pub use super::connection::Closed;
    pub use super::session::Session;
}

use crate::pci::PciDevice;

/// An error number of a reply, as in `errno.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

impl Errno {
    /// Invalid message or argument.
    pub const EINVAL: Errno = Errno(libc::EINVAL);
    /// A mapping overlaps another.
    pub const EEXIST: Errno = Errno(libc::EEXIST);
    /// A limit on the client's mappings is exceeded.
    pub const ENOSPC: Errno = Errno(libc::ENOSPC);
    /// A file cannot be mapped.
    pub const ENOMEM: Errno = Errno(libc::ENOMEM);
    /// The command is not supported.
    pub const ENOTSUP: Errno = Errno(libc::ENOTSUP);
    /// An engine still uses a section that is to be unmapped.
    pub const EBUSY: Errno = Errno(libc::EBUSY);
    /// The message is longer than the maximum of the protocol.
    pub const EMSGSIZE: Errno = Errno(libc::EMSGSIZE);
}

/// Region index of configuration space (`VFIO_PCI_CONFIG_REGION_INDEX`); the BARs have the indexes before it.
pub const CONFIG_REGION: u32 = vfio_bindings::bindings::vfio::VFIO_PCI_CONFIG_REGION_INDEX;

/// Number of vectors of INTx, MSI and MSI-X of a function without an interrupt pin: every function has one MSI.
pub const VECTORS: [u32; wire::IRQ_INDEXES] = [0, 1, 0];
/// Number of vectors of INTx, MSI and MSI-X of a function with an interrupt pin.
pub const VECTORS_WITH_PIN: [u32; wire::IRQ_INDEXES] = [1, 1, 0];

/// A PCI function, as used by the transport.
///
/// Methods are called on the thread of the function's connection. The server checks every access against the region's
/// size; accesses to BARs have 1, 2, 4 or 8 bytes, accesses to configuration space any length (QEMU reads all 4096 in
/// one access). A method must return well within 5 seconds, QEMU's timeout, and must not request a message from its own
/// client: QEMU does not reply before the method has returned. It may wait for other threads that have requested one.
pub trait Device: Send + Sync {
    /// The function. Byte n of a mappable area of a BAR must be byte n of its file.
    fn pci(&self) -> &dyn PciDevice;

    /// A client has connected. `Err` is the reason to reject it, for the log; after `Ok`, [`Device::disconnected`] is
    /// always called.
    fn admit(&self) -> Result<(), String>;

    /// The client resets the function (system reset, or on the VMM's own initiative).
    fn reset(&self) {
        self.pci().reset();
    }

    /// The client has disconnected: interrupts are disarmed and guest memory is no longer mapped.
    fn disconnected(&self);
}

#[cfg(test)]
pub(crate) mod tests;
