// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Embeds the card in a minimal VMM, in one process and without KVM. Shows the interfaces that the VMM implements and
//! uses, and the effects of guest accesses. `cargo run --release -p arctic-gpu --example in_process`
//!
//! The comments name the KVM ioctl that a real VMM would issue; `guest-tests/vmm` is such a VMM.

use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::sync::{Arc, Mutex};

use arctic_gpu::vm_memory::{GuestAddress, GuestMemoryMmap};
use arctic_gpu::vmm_sys_util::eventfd::{EFD_NONBLOCK, EventFd};
use arctic_gpu::{Function, GuestRam, Machine, MsiMessage, MsiSink, PciDevice, VirtualCard, card_file};

/// Interrupts of one function. In a real VMM the eventfd is an irqfd of a GSI, and `route` sets the route of that GSI.
struct Msi {
    name: String,
    irqfd: EventFd,
}

impl MsiSink for Msi {
    fn route(&self, message: Option<MsiMessage>) {
        // KVM_SET_GSI_ROUTING
        match message {
            Some(MsiMessage { address, data }) => {
                println!("{}: MSI is address {address:#x}, data {data:#x}", self.name)
            }
            None => println!("{}: MSI is disabled", self.name),
        }
    }

    fn trigger(&self) {
        // The only possible error is a counter overflow, in which case the interrupt is already pending.
        let _ = self.irqfd.write(1);
    }
}

/// A function and the index of one of its BARs.
type BarOf = (Arc<dyn PciDevice>, u8);

/// The VMM's bus: the BARs by guest address. `bar_moved` drops each function when its BAR is no longer decoded, which
/// avoids a reference cycle.
#[derive(Default)]
struct Bus {
    bars: Mutex<BTreeMap<u64, BarOf>>,
}

impl Machine for Bus {
    fn msi(&self, function: Function) -> io::Result<Arc<dyn MsiSink>> {
        // KVM_IRQFD
        let irqfd = EventFd::new(EFD_NONBLOCK)?;
        Ok(Arc::new(Msi { name: function.to_string(), irqfd }))
    }

    fn bar_moved(&self, function: &Arc<dyn PciDevice>, bar: u8, address: Option<u64>) -> io::Result<()> {
        let mut bars = self.bars.lock().expect("no panic with the lock held");
        bars.retain(|_, (owner, which)| owner.number() != function.number() || *which != bar);
        let Some(address) = address else { return Ok(()) };
        bars.insert(address, (function.clone(), bar));
        for mapping in function.mappings(bar) {
            // KVM_SET_USER_MEMORY_REGION, with the file mapped at mapping.file_offset
            let (from, end) = (address + mapping.offset, address + mapping.offset + mapping.len);
            println!("{}: BAR {bar} is memory at {from:#x}..{end:#x}", function.name());
        }
        for event in function.io_events().iter().filter(|event| event.bar == bar) {
            // KVM_IOEVENTFD
            println!("{}: writes to {:#x} are events", function.name(), address + event.offset);
        }
        Ok(())
    }

    fn mappings_changed(&self, function: &Arc<dyn PciDevice>, bar: u8) {
        // The PF's driver has changed the VF's local memory: map the BAR again, if it has an address.
        let bars = self.bars.lock().expect("no panic with the lock held");
        let placed = bars.iter().find(|(_, (owner, which))| owner.number() == function.number() && *which == bar);
        let Some((address, _)) = placed else { return };
        for mapping in function.mappings(bar) {
            println!("{}: BAR {bar} is now memory at {address:#x}, {:#x} bytes", function.name(), mapping.len);
        }
    }

    fn vfs_enabled(&self, vfs: &[Arc<dyn PciDevice>]) {
        for vf in vfs {
            println!("{} is at the PF's routing ID plus {}", vf.name(), vf.routing_offset());
        }
    }

    fn vfs_disabled(&self, vfs: &[Arc<dyn PciDevice>]) {
        println!("{} VFs are disabled", vfs.len());
    }
}

impl Bus {
    /// Handles an MMIO exit at a guest address: finds the function, its BAR and the offset.
    fn read32(&self, address: u64) -> u32 {
        let mut data = [0xff; 4];
        let bars = self.bars.lock().expect("no panic with the lock held");
        if let Some((at, (function, bar))) = bars.range(..=address).next_back() {
            // Offsets past the BAR's end read all ones, like addresses without a BAR.
            function.read_bar(*bar, address - at, &mut data);
        }
        u32::from_le_bytes(data)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    // The VMM: guest RAM and a bus. Use GuestMemoryAtomic if the memory map can change.
    let ram = Arc::new(GuestMemoryMmap::<()>::from_ranges(&[(GuestAddress(0), 64 << 20)])?);
    let bus = Arc::new(Bus::default());

    // The card: a built-in one or a file, with two VFs. Its threads stop when it is dropped.
    let card = VirtualCard::builder(card_file::load("small")?).vfs(2).plug_into(bus.clone(), GuestRam::new(ram))?;
    let _io_events = card.serve_io_events()?;
    let pf = card.pf();

    // The guest's configuration accesses, which a VMM traps: BARs, memory decode and bus mastering, MSI.
    let write32 = |at: u64, value: u32| pf.write_config(at, &value.to_le_bytes());
    let write16 = |at: u64, value: u16| pf.write_config(at, &value.to_le_bytes());
    println!("BARs: {:x?}", pf.bars());
    for (register, address) in [(0x10, 0x40_0000_0000_u64), (0x18, 0x50_0000_0000)] {
        write32(register, (address & 0xffff_ffff) as u32);
        write32(register + 4, (address >> 32) as u32);
    }
    write16(0x04, 0b110);
    // The MSI and SR-IOV capabilities of a Flex card, which a guest finds by walking the lists of capabilities.
    let (msi, sriov) = (0xac, 0x320);
    write32(msi + 4, 0xfee0_0000);
    write16(msi + 12, 0x31);
    write16(msi + 2, 1);

    // The guest's driver reads a register, here GUC_STATUS. Local memory is mapped, so accesses to it are not trapped.
    println!("pf: GUC_STATUS is {:#x}", bus.read32(0x40_0000_c000));

    // The guest assigns addresses to the VF BARs and enables two VFs; the VMM is then notified of their BARs.
    for (register, address) in [(sriov + 0x24, 0x60_0000_0000_u64), (sriov + 0x2c, 0x70_0000_0000)] {
        write32(register, (address & 0xffff_ffff) as u32);
        write32(register + 4, (address >> 32) as u32);
    }
    write16(sriov + 0x10, 2);
    write16(sriov + 0x08, 0b1001);
    // VF_CAP of VF 2: the first BARs of the VFs have 16 MiB each.
    println!("vf2: VF_CAP is {:#x}", bus.read32(0x60_0100_0000 + 0x19_01f8));

    // A machine reset, after which no BAR is decoded.
    pf.reset();
    println!("after the reset, GUC_STATUS reads {:#x}", bus.read32(0x40_0000_c000));
    Ok(())
}
