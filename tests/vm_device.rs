// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The card on the MMIO bus of a VMM based on `vm-device`.

use std::io;
use std::sync::{Arc, Mutex};

use arctic_gpu::vm_device::MmioBar;
use arctic_gpu::vm_memory::{GuestAddress, GuestMemoryMmap};
use arctic_gpu::{Function, GuestRam, Machine, MsiSink, PciDevice, VirtualCard, card_file};
use arctic_test_support::null_machine::NullMachine;
use vm_device::bus::{MmioAddress, MmioRange};
use vm_device::device_manager::{IoManager, MmioManager};

/// The machine's MMIO bus, with the addresses of the BARs that are on it.
#[derive(Default)]
struct Bus(Mutex<Placed>);

/// The bus, and the number of the function, the index and the address of each BAR on it.
type Placed = (IoManager, Vec<(u8, u8, u64)>);

impl Machine for Bus {
    fn msi(&self, _: Function) -> io::Result<Arc<dyn MsiSink>> {
        Ok(Arc::new(NullMachine))
    }

    fn bar_moved(&self, function: &Arc<dyn PciDevice>, bar: u8, address: Option<u64>) -> io::Result<()> {
        let mut bus = self.0.lock().unwrap();
        let (manager, placed) = &mut *bus;
        let this = (function.number().number(), bar);
        if let Some(at) = placed.iter().position(|(number, index, _)| (*number, *index) == this) {
            let (.., address) = placed.swap_remove(at);
            assert!(manager.deregister_mmio(MmioAddress(address)).is_some());
        }
        let Some(address) = address else { return Ok(()) };
        let size = function.bars().iter().find(|it| it.index == bar).map(|it| it.size).unwrap();
        let range = MmioRange::new(MmioAddress(address), size).map_err(io::Error::other)?;
        manager.register_mmio(range, Arc::new(MmioBar::new(function.clone(), bar))).map_err(io::Error::other)?;
        placed.push((this.0, this.1, address));
        Ok(())
    }
}

impl Bus {
    fn read(&self, address: u64) -> Option<u32> {
        let mut data = [0; 4];
        self.0.lock().unwrap().0.mmio_read(MmioAddress(address), &mut data).ok()?;
        Some(u32::from_le_bytes(data))
    }

    fn write(&self, address: u64, value: u32) {
        self.0.lock().unwrap().0.mmio_write(MmioAddress(address), &value.to_le_bytes()).unwrap();
    }
}

/// Registers are on the bus at the BAR's address, and follow it. After a reset nothing is on the bus, and the card is not kept.
#[test]
fn bars_are_on_the_bus_where_the_guest_has_put_them() {
    let ram = GuestRam::new(Arc::new(GuestMemoryMmap::<()>::from_ranges(&[(GuestAddress(0), 1 << 20)]).unwrap()));
    let bus = Arc::new(Bus::default());
    let card = VirtualCard::builder(card_file::load("small").unwrap()).plug_into(bus.clone(), ram).unwrap();
    let pf = card.pf();
    let place = |address: u64| pf.write_config(0x10, &address.to_le_bytes());
    let (first, second, scratch) = (0x40_0000_0000, 0x50_0000_0000, 0x19_0240);
    place(first);
    assert_eq!(bus.read(first + scratch), None);
    pf.write_config(4, &2_u16.to_le_bytes());
    bus.write(first + scratch, 0x1234);
    assert_eq!(bus.read(first + scratch), Some(0x1234));
    let mut long = [0; 16];
    bus.0.lock().unwrap().0.mmio_read(MmioAddress(first + scratch), &mut long).unwrap();
    assert_eq!(long, [0xff; 16]);
    pf.write_config(4, &0_u16.to_le_bytes());
    place(second);
    pf.write_config(4, &2_u16.to_le_bytes());
    assert_eq!((bus.read(first + scratch), bus.read(second + scratch)), (None, Some(0x1234)));
    pf.reset();
    assert_eq!(bus.read(second + scratch), None);
    let left = Arc::downgrade(pf);
    drop(card);
    assert_eq!(left.strong_count(), 0, "the bus keeps the card");
}
