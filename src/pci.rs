//! The card as a VMM meets it, whatever stands between the two: what it asks of a function, and what it gives.
//!
//! A VMM calls [`PciDevice`]; it implements [`MsiSink`] for each function and, if it wants to hear what its guest does to
//! the card, [`Machine`]. Guest memory reaches the card as a [`Dma`], mostly as a [`crate::GuestRam`].

use std::fs::File;
use std::sync::Arc;

use vmm_sys_util::eventfd::EventFd;

pub use arctic_device_model::world::{Dma, DmaFault, DmaView, Function};
pub use arctic_sriov::function::{Event, GTTMMADR_BAR, LMEM_BAR, MsiMessage};

use crate::card::CardFunction;

/// Bytes of a PCI Express function's configuration space.
pub const CONFIG_BYTES: u64 = 4096;

/// A base address register of a function: 64-bit prefetchable memory, all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    /// Index of the first of its two registers: [`GTTMMADR_BAR`] or [`LMEM_BAR`].
    pub index: u8,
    /// Bytes, a power of two.
    pub size: u64,
}

/// A part of a BAR that a guest may have mapped: what it reads and writes there concerns memory and nothing else.
///
/// Offsets and length are multiples of 4 KiB. A VMM that cannot map it sends each access to the function instead.
#[derive(Clone, Copy, Debug)]
pub struct BarMapping<'f> {
    /// First byte in the BAR.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
    /// The file that holds them; to be mapped shared, readable and writable.
    pub file: &'f File,
    /// First byte in the file.
    pub file_offset: u64,
}

/// A register whose writes may reach the card as an event instead of an access: the value written does not matter,
/// nor when exactly the card hears of it.
///
/// For KVM: an ioeventfd of this length without datamatch. What kvm-ioctls calls `NoDatamatch` is one of length 0, and will
/// not do: KVM answers those on a fast path that takes a read of the register for a write. `guest-tests/vmm` has the few
/// lines that it takes instead (`src/pci/card.rs`).
///
/// Who turns writes into events has to see to it that somebody serves them: [`crate::VirtualCard::serve_io_events`].
#[derive(Debug)]
pub struct IoEvent {
    /// Index of the BAR.
    pub bar: u8,
    /// Offset of the register in the BAR.
    pub offset: u64,
    /// Width of the writes in bytes.
    pub len: u32,
    /// What a write signals; not blocking.
    pub event: EventFd,
}

/// A PCI Express function as a VMM drives it.
///
/// Every call may come from any thread, several at a time, and returns when all that the access sets in motion is done
/// or in the hands of the card's own threads; none waits for a guest. Offsets outside of what is there read all ones
/// (configuration space: zeros) and drop writes.
pub trait PciDevice: Send + Sync {
    /// Reads configuration space: 1, 2 or 4 bytes as a guest does, or more.
    fn read_config(&self, offset: u64, data: &mut [u8]);

    /// Writes configuration space. What the write changes for the machine (BARs, MSI, VFs) is told to [`Machine`] and
    /// [`MsiSink`] before this returns.
    fn write_config(&self, offset: u64, data: &[u8]);

    /// The base address registers, by rising index. A VF's are where the PF's capability says.
    fn bars(&self) -> &[Bar];

    /// Reads BAR `bar` at `offset`, 1 to 8 bytes.
    fn read_bar(&self, bar: u8, offset: u64, data: &mut [u8]);

    /// Writes BAR `bar` at `offset`, 1 to 8 bytes.
    fn write_bar(&self, bar: u8, offset: u64, data: &[u8]);

    /// The parts of a BAR that the guest may have mapped; they never change while the function exists. Accesses there
    /// that are trapped all the same are answered as well.
    fn mappings(&self, bar: u8) -> Vec<BarMapping<'_>>;

    /// The registers that may be events.
    fn io_events(&self) -> &[IoEvent] {
        &[]
    }

    /// Conventional reset, as when the machine is reset.
    fn reset(&self);
}

/// Where the interrupts of a function go: its one MSI vector. The card has neither INTx nor MSI-X.
pub trait MsiSink: Send + Sync {
    /// MSI has been enabled with this message, has another message, or is off (`None`). Comes on the thread that wrote
    /// configuration space, before the write returns. For KVM: the route of the irqfd's GSI.
    fn route(&self, message: Option<MsiMessage>) {
        let _ = message;
    }

    /// Sends the interrupt. Comes from any thread, only while MSI is enabled and not masked and the function may master
    /// the bus; must not block. For KVM: a write to the irqfd.
    fn trigger(&self);

    /// Returns when interrupts triggered before the call have been delivered, for a sink that hands them to a thread of its
    /// own. Must return within milliseconds in any case. Called before a change of configuration space that may disable
    /// interrupts, with the function's configuration lock held.
    fn settle(&self) {}
}

/// The machine that a card is plugged into.
///
/// Calls come on the thread whose access caused them, after the card has done its part and before the access returns.
/// They may call anything of the card but [`PciDevice::write_config`] and [`PciDevice::reset`], whose turn it still is.
///
/// Functions hold their machine. A machine that keeps functions, as to find them by guest address, lets go of them as
/// their BARs go (a reset of the PF takes all), or keeps itself and the card for ever.
pub trait Machine: Send + Sync {
    /// The interrupts of a function; asked once for each, when the card is made.
    fn msi(&self, function: Function) -> Arc<dyn MsiSink>;

    /// A BAR answers at another guest address now, or nowhere (`None`: decoding is off, the function sleeps or is no
    /// more). For VFs as well, by the PF's capability. A BAR that moves is told in one call.
    fn bar_moved(&self, function: &Arc<CardFunction>, bar: u8, address: Option<u64>) {
        let _ = (function, bar, address);
    }

    /// The guest has set VF Enable: these functions exist from now on, VF 1 first. On the bus each is found at the PF's
    /// routing ID plus [`CardFunction::routing_offset`].
    fn vfs_enabled(&self, vfs: &[Arc<CardFunction>]) {
        let _ = vfs;
    }

    /// These functions are no more: VF Enable has been cleared, or the PF reset.
    fn vfs_disabled(&self, vfs: &[Arc<CardFunction>]) {
        let _ = vfs;
    }

    /// Everything that a write to configuration space or a reset has changed, one by one.
    fn event(&self, function: &Arc<CardFunction>, event: Event) {
        let _ = (function, event);
    }
}
