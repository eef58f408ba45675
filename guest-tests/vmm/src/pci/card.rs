//! The card's place in the machine: what KVM is told when a BAR moves, and where its interrupts go.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arctic_gpu::{CardFunction, Function, Machine, MsiSink, PciDevice};
use kvm_ioctls::{IoEventAddress, NoDatamatch, VmFd};
use vmm_sys_util::eventfd::EventFd;

use crate::irq::{Msi, Routes};
use crate::layout;
use crate::memory::{SlotNumber, Slots};
use crate::mmio::RangeMap;

/// A BAR that answers MMIO exits.
#[derive(Clone)]
pub struct BarTarget {
    function: Arc<CardFunction>,
    bar: u8,
}

impl BarTarget {
    /// The guest reads.
    pub fn read(&self, offset: u64, data: &mut [u8]) {
        self.function.read_bar(self.bar, offset, data);
    }

    /// The guest writes.
    pub fn write(&self, offset: u64, data: &[u8]) {
        self.function.write_bar(self.bar, offset, data);
    }
}

/// All of the machine's BARs by address.
pub type Bars = RangeMap<BarTarget>;

/// The slot that the card is plugged into.
pub struct CardSlot {
    vm: Arc<VmFd>,
    slots: Arc<Slots>,
    routes: Arc<Routes>,
    bars: Arc<Bars>,
    /// What KVM has been told of each BAR that has an address.
    placed: Mutex<HashMap<(Function, u8), Placed>>,
}

/// What has to be taken back when a BAR moves.
struct Placed {
    address: u64,
    slots: Vec<SlotNumber>,
}

impl CardSlot {
    /// An empty slot.
    pub fn new(vm: Arc<VmFd>, slots: Arc<Slots>) -> Arc<Self> {
        let routes = Routes::new(vm.clone());
        Arc::new(CardSlot { vm, slots, routes, bars: Arc::default(), placed: Mutex::default() })
    }

    /// The BARs that have an address.
    pub fn bars(&self) -> &Arc<Bars> {
        &self.bars
    }

    /// Turns writes to a place where no BAR is into an event.
    pub fn add_io_event(&self, address: u64, event: &EventFd) -> io::Result<()> {
        let told = self.vm.register_ioevent(event, &IoEventAddress::Mmio(address), NoDatamatch);
        told.map_err(|error| io::Error::from_raw_os_error(error.errno()))
    }

    /// Lets go of the card, which else would hold itself.
    pub fn unplug(&self) {
        self.bars.remove(|_| true);
        let placed: Vec<_> = self.placed().drain().collect();
        placed.into_iter().flat_map(|(_, placed)| placed.slots).for_each(|slot| self.slots.remove(slot));
    }

    fn placed(&self) -> MutexGuard<'_, HashMap<(Function, u8), Placed>> {
        self.placed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn place(&self, function: Arc<CardFunction>, bar: u8, address: u64) -> Placed {
        let mut slots = Vec::new();
        for part in function.mappings(bar) {
            match self.slots.add_file(address + part.offset, part.file, part.file_offset, part.len) {
                Ok(slot) => slots.push(slot),
                // The guest has put it over another BAR. Its accesses come as exits, and are answered.
                Err(error) => log::debug!("{} BAR {bar} at {address:#x} is not mapped: {error}", function.name()),
            }
        }
        for event in function.io_events().iter().filter(|event| event.bar == bar) {
            let at = IoEventAddress::Mmio(address + event.offset);
            // Of no particular length: whatever the guest writes there rings.
            if let Err(error) = self.vm.register_ioevent(&event.event, &at, NoDatamatch) {
                log::debug!("writes of {} to {:#x} are no events: {error}", function.name(), address + event.offset);
            }
        }
        let size = function.bars().iter().find(|info| info.index == bar).map_or(0, |info| info.size);
        self.bars.insert(address..address + size, BarTarget { function, bar });
        Placed { address, slots }
    }

    fn take_back(&self, function: &CardFunction, bar: u8, placed: Placed) {
        self.bars.remove(|target| target.bar == bar && target.function.number() == function.number());
        for event in function.io_events().iter().filter(|event| event.bar == bar) {
            // An error says that it never was one.
            let at = IoEventAddress::Mmio(placed.address + event.offset);
            let _ = self.vm.unregister_ioevent(&event.event, &at, NoDatamatch);
        }
        placed.slots.into_iter().for_each(|slot| self.slots.remove(slot));
    }
}

/// Whether the host bridge passes on accesses to all of a BAR there. It does not while a guest sizes a BAR without
/// switching decoding off, or has written half of an address.
fn within_windows(address: u64, size: u64) -> bool {
    let Some(end) = address.checked_add(size) else { return false };
    [layout::MMIO32, layout::MMIO64].iter().any(|window| window.start <= address && end <= window.end)
}

impl Machine for CardSlot {
    fn msi(&self, function: Function) -> Arc<dyn MsiSink> {
        match Msi::connect(&self.routes, function) {
            Ok(msi) => msi,
            Err(error) => {
                log::error!("function {} will not interrupt: {error}", function.0);
                Arc::new(Unconnected)
            }
        }
    }

    fn bar_moved(&self, function: &Arc<CardFunction>, bar: u8, address: Option<u64>) {
        let size = function.bars().iter().find(|info| info.index == bar).map_or(0, |info| info.size);
        let address = address.filter(|address| within_windows(*address, size));
        let key = (function.number(), bar);
        // Held to the end: another function's BAR waits, so that an address that goes from one to the other has left
        // the one before.
        let mut placed = self.placed();
        if placed.get(&key).map(|placed| placed.address) == address {
            return;
        }
        if let Some(before) = placed.remove(&key) {
            self.take_back(function, bar, before);
        }
        if let Some(address) = address {
            placed.insert(key, self.place(function.clone(), bar, address));
        }
    }
}

/// An MSI that goes nowhere, for want of descriptors.
struct Unconnected;

impl MsiSink for Unconnected {
    fn trigger(&self) {}
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
