// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The interface between the card and a VMM, independent of the transport.
//!
//! A VMM calls the methods of [`PciDevice`]. It implements [`MsiSink`] for each function, [`LineSink`] for integrated GPUs,
//! and [`Machine`] to be notified of BAR moves, VF changes and other events. The card accesses guest memory through a
//! [`Dma`], usually a [`crate::GuestRam`].
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use vmm_sys_util::eventfd::EventFd;

pub use arctic_device_model::gpu::{BarMapping, StateError};
pub use arctic_device_model::host::{Access, Dma, DmaFault, DmaView, Function};
pub use arctic_sriov::bar::BarKind;
pub use arctic_sriov::event::{Event, MsiMessage};

/// Size of a PCI Express function's configuration space in bytes.
pub const CONFIG_BYTES: u64 = 4096;

/// A base address register of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    /// Index of the first of its registers. A Flex card has registers and GGTT in BAR 0, local memory in BAR 2
    /// (`arctic_device_model::pci`).
    pub index: u8,
    /// Size in bytes, a power of two.
    pub size: u64,
    /// The address space that it decodes. On a Flex card, all BARs are 64-bit prefetchable memory.
    pub kind: BarKind,
}

/// A register for which a VMM may register an ioeventfd. Writes then reach the card as events instead of accesses. The
/// value written is ignored. Processing is asynchronous: the guest's write may complete before the card processes the
/// event.
///
/// For KVM: use an ioeventfd of length `len` without datamatch. `NoDatamatch` of kvm-ioctls must not be used: it
/// registers an ioeventfd of length 0, for which KVM has a fast path that also treats a read of the register as a
/// write. `guest-tests/vmm` registers the ioeventfds without it (`src/pci/card.rs`).
///
/// A VMM that registers ioeventfds must also call [`crate::VirtualCard::serve_io_events`] or use
/// [`crate::VirtualCard::io_event_handlers`]; otherwise the events are not processed.
#[derive(Debug)]
#[non_exhaustive]
pub struct IoEvent {
    /// Index of the BAR.
    pub bar: u8,
    /// Offset of the register in the BAR.
    pub offset: u64,
    /// Width of the writes in bytes.
    pub len: u32,
    /// Signalled by a write; non-blocking.
    pub event: EventFd,
}

/// A PCI Express function, as a VMM uses it.
///
/// Methods may be called concurrently from any thread. A method returns when all effects of the access are complete or
/// queued for the card's own threads; it never waits for a guest. Reads of unimplemented offsets return all ones (zeros
/// in configuration space); writes to them are dropped.
///
/// The card's functions implement this trait; a method that is added later has a default implementation.
pub trait PciDevice: Send + Sync {
    /// The function's number on its card.
    fn number(&self) -> Function;

    /// The function's name in reports and log messages, unique on its card: "pf", "vf1".
    fn name(&self) -> String {
        self.number().to_string()
    }

    /// Offset of the function's routing ID from the PF's.
    fn routing_offset(&self) -> u16 {
        self.number().number().into()
    }

    /// Returns whether the function exists on the bus. A VF exists while VF Enable is set for it. Accesses to a
    /// function that does not exist read all ones.
    fn enabled(&self) -> bool {
        true
    }

    /// Returns whether the function may send memory requests.
    fn bus_master(&self) -> bool;

    /// Size of configuration space in bytes: [`CONFIG_BYTES`], or 256 for a conventional function.
    fn config_bytes(&self) -> u64 {
        CONFIG_BYTES
    }

    /// Reads configuration space at `offset`: 1, 2 or 4 bytes like a guest, or more.
    fn read_config(&self, offset: u64, data: &mut [u8]);

    /// Writes configuration space at `offset`. Changes of BARs, MSI and VFs are reported to [`Machine`] and [`MsiSink`]
    /// before this returns.
    fn write_config(&self, offset: u64, data: &[u8]);

    /// The base address registers, in ascending order of index. The addresses of a VF's BARs are defined by the PF's
    /// SR-IOV capability.
    fn bars(&self) -> &[Bar];

    /// Reads BAR `bar` at `offset`, 1 to 8 bytes.
    fn read_bar(&self, bar: u8, offset: u64, data: &mut [u8]);

    /// Writes BAR `bar` at `offset`, 1 to 8 bytes.
    fn write_bar(&self, bar: u8, offset: u64, data: &[u8]);

    /// The ranges of a BAR that may be mapped into the guest. Trapped accesses to these ranges are supported as well.
    /// Constant while the function exists, except for the LMEM BAR of a VF: the range has the size of the VF's local memory,
    /// which the PF can change ([`Machine::mappings_changed`]). With [`Topology::Together`](crate::Topology::Together) it
    /// has the size of the BAR.
    fn mappings(&self, bar: u8) -> Vec<BarMapping<'_>>;

    /// The registers for which a VMM may register ioeventfds.
    fn io_events(&self) -> &[IoEvent] {
        &[]
    }

    /// How the function is saved and restored; `None` if it never can be.
    fn saved_device(&self) -> Option<&dyn SavedDevice> {
        None
    }

    /// Performs a conventional reset; must be called on a reset of the machine.
    fn reset(&self);

    /// Must be called when the function's machine no longer exists: performs a reset and clears the memory of the
    /// function, so that the next machine cannot read its contents, before it returns. For the PF, this is the memory
    /// of the whole card. The default is sufficient for a function without memory.
    fn power_off(&self) {
        self.reset();
    }
}

/// A function whose state can be saved, and restored on another card, or on the same one. Of an integrated GPU this is the whole
/// card; of a Flex card it is a VF on a card without a PF driver ([`Topology::Provisioned`](crate::Topology::Provisioned)).
/// Every method of other functions returns [`StateError::Unsupported`] with a sentence that says why.
///
/// A VMM stops the guest's processors and pauses the function. It then copies guest memory and calls
/// [`SavedDevice::save`], in either order: the card no longer accesses it. On the other side it restores guest memory, pauses
/// the new function, restores it, resumes it, and starts the processors. The function there must have been given the quotas of
/// the saved one. What it does not get is the state of its registrations with the VMM: mappings, eventfds and the routing of
/// interrupts are those of the new function.
pub trait SavedDevice {
    /// Stops the function's work. On return the card does not access guest memory for it.
    ///
    /// # Errors
    /// [`StateError::Busy`] if the work does not stop within `limit`: a context that cannot be preempted ends only with its
    /// preemption timeout. It continues then.
    fn pause(&self, limit: Duration) -> Result<(), StateError>;

    /// Continues the function's work. If a VF was restored with another begin of its GGTT range, its driver is notified and
    /// adapts its addresses (Linux's xe, with interface 1.27 of the GuC).
    fn resume(&self) -> Result<(), StateError>;

    /// Writes the state of the paused function, with configuration space and the contents of its local memory. Parts that
    /// read as zeros are left out. The function stays as it is.
    fn save(&self, out: &mut dyn Write) -> Result<(), StateError>;

    /// Restores the paused function from the bytes of [`SavedDevice::save`], which may be hostile.
    ///
    /// # Errors
    /// The sentence of the error names what differs: the device, its stepping, the quotas or the version of the interface.
    /// A function that is not paused has not changed then. A paused one is empty, as after a reset, but for its configuration
    /// space, and stays paused: it is never restored in part.
    fn restore(&self, from: &mut dyn Read) -> Result<(), StateError>;
}

/// Delivers the interrupts of one function, which has one MSI vector. No card has MSI-X; the interrupt pin of an integrated
/// GPU has a [`LineSink`].
pub trait MsiSink: Send + Sync {
    /// MSI was enabled with this message, its message was changed, or MSI was disabled (`None`). Called on the thread
    /// that wrote configuration space or reset the function, before the write or reset returns. For KVM: sets the route
    /// of the irqfd's GSI.
    fn route(&self, message: Option<MsiMessage>) {
        let _ = message;
    }

    /// Sends the interrupt. Called from any thread, and only while MSI is enabled and unmasked and the function's bus
    /// mastering is enabled. Must not block. For KVM: writes to the irqfd.
    fn trigger(&self);

    /// Blocks until all interrupts triggered before the call have been delivered. Must be implemented by a sink that
    /// delivers interrupts on a separate thread. Must return within milliseconds in all cases. Called before a change
    /// of configuration space that may disable interrupts, with the function's configuration lock held.
    fn settle(&self) {}
}

/// Drives the interrupt line of one function whose configuration space names a pin.
pub trait LineSink: Send + Sync {
    /// The function asserts its pin, or no longer asserts it: a level, which stays until the next call. At first it is not
    /// asserted. Called from any thread, in the order of the changes and only for changes, while the function is in D0, and
    /// neither Interrupt Disable nor MSI Enable is set; a change of these is reported before the access that makes it
    /// returns. Must not block, and must not access the card. For KVM: `KVM_IRQ_LINE` of the GSI that the pin is routed to.
    fn set_level(&self, asserted: bool);
}

/// The machine that a card is plugged into.
///
/// Methods are called on the thread of the access that caused the change, after the card has applied the change and
/// before the access returns. They must not call [`PciDevice::write_config`], [`PciDevice::reset`] or
/// [`PciDevice::power_off`] of any function of the card (**deadlock**): the configuration lock of the function is held,
/// and for a change of a VF caused by the PF also the PF's configuration lock. All other methods of the card may be
/// called.
///
/// Functions hold an `Arc` of their machine. A machine that keeps functions, for example to find them by guest address,
/// must drop each `Arc<dyn PciDevice>` when [`Machine::bar_moved`] reports `None` for its BARs (which a reset of the PF
/// causes for all functions); otherwise machine and card leak (reference cycle).
pub trait Machine: Send + Sync {
    /// Returns the interrupt sink of a function. Called once per function, when the card is created.
    ///
    /// # Errors
    /// The creation of the card fails with the error ([`CardError::Interrupts`](crate::CardError::Interrupts)).
    fn msi(&self, function: Function) -> io::Result<Arc<dyn MsiSink>>;

    /// Returns the interrupt line of a function whose configuration space names a pin, which integrated GPUs do (INTA#).
    /// Called once for such a function, when the card is created. Without a line, which is the default, the guest gets
    /// interrupts by MSI only.
    fn line(&self, function: Function) -> Option<Arc<dyn LineSink>> {
        let _ = function;
        None
    }

    /// The guest address of a BAR has changed; `None` if it is no longer decoded: decoding is disabled, the function is
    /// in D3, or the VF was disabled. Also called for VFs, with addresses computed from the PF's SR-IOV capability. A
    /// move is reported by a single call with the new address.
    ///
    /// # Errors
    /// The BAR is at no address then, as after `None`. The card logs the error and reports the address again at the next
    /// change of the function's configuration space. What a guest can cause, such as BARs one over the other, should be no
    /// error.
    fn bar_moved(&self, function: &Arc<dyn PciDevice>, bar: u8, address: Option<u64>) -> io::Result<()> {
        let _ = (function, bar, address);
        Ok(())
    }

    /// The ranges that [`PciDevice::mappings`] returns for BAR `bar` have changed, because the PF has changed the VF's local
    /// memory. A machine that has mapped the BAR must replace its mappings: until then, the guest reaches memory that is no
    /// longer the VF's, or each access to new memory comes to the card. Called on a thread of the card without locks held,
    /// also at the same time as [`Machine::bar_moved`]: the mappings must be read under the machine's own lock. Must not
    /// block for long: the thread runs the card's engines.
    fn mappings_changed(&self, function: &Arc<dyn PciDevice>, bar: u8) {
        let _ = (function, bar);
    }

    /// The guest has set VF Enable. The functions in `vfs` now exist; they are in ascending order, starting with VF 1.
    /// The routing ID of each VF is the PF's routing ID plus [`PciDevice::routing_offset`].
    fn vfs_enabled(&self, vfs: &[Arc<dyn PciDevice>]) {
        let _ = vfs;
    }

    /// The functions in `vfs` no longer exist: VF Enable was cleared, or the PF was reset.
    fn vfs_disabled(&self, vfs: &[Arc<dyn PciDevice>]) {
        let _ = vfs;
    }

    /// The function has sent the PCI Express message ERR_FATAL, because a hardware error was raised
    /// ([`crate::VirtualCard::raise_hardware_error`]) and its driver or firmware has enabled error reporting. A machine
    /// with an emulated root port passes it to the port. Called on the thread that raised the error, without locks
    /// held.
    fn fatal_error(&self, function: Function) {
        let _ = function;
    }

    /// Called for each change made by a write to configuration space or by a reset.
    fn event(&self, function: &Arc<dyn PciDevice>, event: Event) {
        let _ = (function, event);
    }
}
