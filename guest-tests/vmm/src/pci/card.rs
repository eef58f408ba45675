// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Connects the card to KVM: memslots and ioeventfds of BARs, and irqfds.

use std::collections::HashMap;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex, MutexGuard};

use arctic_gpu::{Function, Machine, MsiSink, PciDevice};
use kvm_bindings::{KVMIO, kvm_ioeventfd, kvm_ioeventfd_flag_nr_deassign};
use kvm_ioctls::VmFd;
use std::sync::PoisonError;
use vmm_sys_util::eventfd::EventFd;
use vmm_sys_util::ioctl::ioctl_with_ref;
use vmm_sys_util::ioctl_iow_nr;

use crate::irq::{Msi, Routes};
use crate::layout;
use crate::memory::{SlotNumber, Slots};
use crate::mmio::RangeMap;

ioctl_iow_nr!(KVM_IOEVENTFD, KVMIO, 0x79, kvm_ioeventfd);

/// Adds or removes an ioeventfd for writes of `len` bytes at `address`. `len` must not be 0 (any length), which is the
/// only choice in kvm-ioctls without datamatch: KVM handles such ioeventfds on a fast path that treats reads as writes
/// (Linux: handle_ept_misconfig), and drivers read VF_CAP.
fn io_event(vm: &VmFd, event: &EventFd, address: u64, len: u32, on: bool) -> io::Result<()> {
    let flags = if on { 0 } else { 1 << kvm_ioeventfd_flag_nr_deassign };
    let request = kvm_ioeventfd { addr: address, len, fd: event.as_raw_fd(), flags, ..Default::default() };
    // SAFETY: KVM reads one `kvm_ioeventfd`, which outlives the call; both descriptors are open.
    match unsafe { ioctl_with_ref(vm, KVM_IOEVENTFD(), &request) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A BAR as target of MMIO exits.
#[derive(Clone)]
pub struct BarTarget {
    function: Arc<dyn PciDevice>,
    bar: u8,
}

impl BarTarget {
    /// Handles a read by the guest.
    pub fn read(&self, offset: u64, data: &mut [u8]) {
        self.function.read_bar(self.bar, offset, data);
    }

    /// Handles a write by the guest.
    pub fn write(&self, offset: u64, data: &[u8]) {
        self.function.write_bar(self.bar, offset, data);
    }
}

/// All BARs of the VM by address.
pub type Bars = RangeMap<BarTarget>;

/// The slot of the card.
pub struct CardSlot {
    vm: Arc<VmFd>,
    slots: Arc<Slots>,
    routes: Arc<Routes>,
    bars: Arc<Bars>,
    /// KVM resources of each BAR that has an address.
    placed: Mutex<HashMap<(Function, u8), Placed>>,
}

/// The resources that are removed when a BAR moves.
struct Placed {
    address: u64,
    slots: Vec<SlotNumber>,
}

impl CardSlot {
    /// Creates an empty slot.
    pub fn new(vm: Arc<VmFd>, slots: Arc<Slots>) -> Arc<Self> {
        let routes = Routes::new(vm.clone());
        Arc::new(CardSlot { vm, slots, routes, bars: Arc::default(), placed: Mutex::default() })
    }

    /// The BARs with an assigned address.
    pub fn bars(&self) -> &Arc<Bars> {
        &self.bars
    }

    /// Adds an ioeventfd for four-byte writes to an address outside all BARs.
    pub fn add_io_event(&self, address: u64, event: &EventFd) -> io::Result<()> {
        io_event(&self.vm, event, address, 4, true)
    }

    /// Drops all references to the card; they form a reference cycle.
    pub fn unplug(&self) {
        self.bars.remove(|_| true);
        let placed: Vec<_> = self.placed().drain().collect();
        placed.into_iter().flat_map(|(_, placed)| placed.slots).for_each(|slot| self.slots.remove(slot));
    }

    fn placed(&self) -> MutexGuard<'_, HashMap<(Function, u8), Placed>> {
        self.placed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives KVM what it needs of a BAR at `address`. After an error, nothing of it is left.
    fn place(&self, function: &Arc<dyn PciDevice>, bar: u8, address: u64) -> io::Result<Placed> {
        let mut placed = Placed { address, slots: Vec::new() };
        if let Err(error) = self.map(&**function, bar, &mut placed) {
            self.take_back(&**function, bar, placed);
            return Err(error);
        }
        let size = function.bars().iter().find(|info| info.index == bar).map_or(0, |info| info.size);
        self.bars.insert(address..address + size, BarTarget { function: function.clone(), bar });
        Ok(placed)
    }

    /// Adds the memslots of a BAR. Where the guest has placed it over another one, accesses cause exits until it moves.
    fn add_slots(&self, function: &dyn PciDevice, bar: u8, placed: &mut Placed) -> io::Result<()> {
        for part in function.mappings(bar) {
            let slot = self.slots.add_file(placed.address + part.offset, part.file, part.file_offset, part.len);
            placed.slots.extend(unless_taken(slot)?);
        }
        Ok(())
    }

    /// Adds the memslots and ioeventfds of a BAR.
    fn map(&self, function: &dyn PciDevice, bar: u8, placed: &mut Placed) -> io::Result<()> {
        self.add_slots(function, bar, placed)?;
        for event in function.io_events().iter().filter(|event| event.bar == bar) {
            // Writes of other widths cause exits.
            unless_taken(io_event(&self.vm, &event.event, placed.address + event.offset, event.len, true))?;
        }
        Ok(())
    }

    fn take_back(&self, function: &dyn PciDevice, bar: u8, placed: Placed) {
        self.bars.remove(|target| target.bar == bar && target.function.number() == function.number());
        for event in function.io_events().iter().filter(|event| event.bar == bar) {
            // An error means that the ioeventfd did not exist.
            let _ = io_event(&self.vm, &event.event, placed.address + event.offset, event.len, false);
        }
        placed.slots.into_iter().for_each(|slot| self.slots.remove(slot));
    }
}

/// Returns true if a BAR at this address is completely within the host bridge's windows. Returns false, for example,
/// while a guest sizes a BAR with decoding enabled, or has written only half of an address.
fn within_windows(address: u64, size: u64) -> bool {
    let Some(end) = address.checked_add(size) else { return false };
    [layout::MMIO32, layout::MMIO64].iter().any(|window| window.start <= address && end <= window.end)
}

/// Returns `None` if KVM has refused a range because another one has it.
fn unless_taken<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
        other => other.map(Some),
    }
}

impl Machine for CardSlot {
    fn msi(&self, function: Function) -> io::Result<Arc<dyn MsiSink>> {
        let msi = Msi::connect(&self.routes, function)?;
        Ok(msi)
    }

    fn bar_moved(&self, function: &Arc<dyn PciDevice>, bar: u8, address: Option<u64>) -> io::Result<()> {
        let size = function.bars().iter().find(|info| info.index == bar).map_or(0, |info| info.size);
        let address = address.filter(|address| within_windows(*address, size));
        let key = (function.number(), bar);
        // Held until return, which serialises BAR moves: an address that moves from one BAR to another must be removed
        // from the first before it is added to the second.
        let mut placed = self.placed();
        if placed.get(&key).map(|placed| placed.address) == address {
            return Ok(());
        }
        if let Some(before) = placed.remove(&key) {
            self.take_back(&**function, bar, before);
        }
        if let Some(address) = address {
            placed.insert(key, self.place(function, bar, address)?);
        }
        Ok(())
    }

    fn mappings_changed(&self, function: &Arc<dyn PciDevice>, bar: u8) {
        let mut placed = self.placed();
        let Some(placed) = placed.get_mut(&(function.number(), bar)) else { return };
        placed.slots.drain(..).for_each(|slot| self.slots.remove(slot));
        if let Err(error) = self.add_slots(&**function, bar, placed) {
            log::warn!("{} BAR {bar} is not mapped, its accesses are slow: {error}", function.name());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_decoded_within_the_host_bridges_windows_alone() {
        const MIB: u64 = 1 << 20;
        assert!(within_windows(layout::MMIO32.start, 16 * MIB));
        assert!(within_windows(layout::MMIO64.end - 16 * MIB, 16 * MIB));
        for outside in [0, layout::ECAM, layout::MMIO32.end - MIB, layout::LOCAL_APIC, 0xffff_ffff_ff00_0000, u64::MAX]
        {
            assert!(!within_windows(outside, 16 * MIB), "{outside:#x}");
        }
    }
}
