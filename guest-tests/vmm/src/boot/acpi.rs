// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! ACPI tables. They describe CPUs, interrupt controllers, configuration space and the windows for BARs to Linux.

use std::ops::Range;

use acpi_tables::Aml;
use acpi_tables::aml::{
    AddressSpace, AddressSpaceCacheable, Device, EISAName, IO, Interrupt, Memory32Fixed, Name, Package, Path,
    ResourceTemplate, ZERO,
};
use acpi_tables::fadt::{FADTBuilder, Flags};
use acpi_tables::gas::{self, AccessSize, GAS};
use acpi_tables::madt::{EnabledStatus, IoApic, LocalInterruptController, MADT, ProcessorLocalApic};
use acpi_tables::mcfg::MCFG;
use acpi_tables::rsdp::Rsdp;
use acpi_tables::sdt::Sdt;
use acpi_tables::xsdt::XSDT;
use arctic_sriov::number;
use vm_memory::{Bytes, GuestAddress};

use crate::error::Error;
use crate::layout;
use crate::memory::Ram;

/// Sleep type for power off.
pub const S5: u8 = 5;
/// Value of the reset register that resets the VM.
pub const RESET: u8 = 1;

const OEM: [u8; 6] = *b"ARCTIC";
const TABLE: [u8; 8] = *b"REFVMM  ";
const REVISION: u32 = 1;
/// FADT, IAPC_BOOT_ARCH: no VGA and no CMOS clock.
const NO_VGA_NO_CLOCK: u16 = 1 << 2 | 1 << 5;

/// The tables as laid out in RAM, from [`layout::ACPI`].
pub(crate) struct Tables {
    bytes: Vec<u8>,
}

impl Tables {
    /// Creates the tables of a VM with `cpus` CPUs and this window for 64-bit BARs.
    fn new(cpus: u8, mmio64: &Range<u64>) -> Self {
        let mut tables = Tables { bytes: vec![0; Rsdp::len().next_multiple_of(ALIGNMENT)] };
        let dsdt = tables.add(&dsdt(mmio64));

        let port = |port: u16| {
            let (space, size) = (gas::AddressSpace::SystemIo, AccessSize::ByteAccess);
            GAS::new(space, 8, 0, size, port.into())
        };
        // Hardware-reduced ACPI: no legacy timers, events and interrupts.
        let mut fadt = FADTBuilder::new(OEM, TABLE, REVISION).dsdt_64(dsdt);
        fadt = fadt.flag(Flags::HwReducedAcpi).flag(Flags::ResetRegSup).flag(Flags::Headless);
        fadt = fadt.flag(Flags::Wbinvd).flag(Flags::PwrButton).flag(Flags::SlpButton);
        fadt.iapc_boot_arch = NO_VGA_NO_CLOCK.into();
        fadt.reset_reg = port(layout::RESET_PORT);
        fadt.reset_value = RESET;
        fadt.sleep_control_reg = port(layout::SLEEP_PORT);
        fadt.sleep_status_reg = port(layout::SLEEP_PORT);
        let fadt = tables.add(&fadt.finalize());

        let local = LocalInterruptController::Address(number::low(layout::LOCAL_APIC));
        let mut madt = MADT::new(OEM, TABLE, REVISION, local);
        for cpu in 0..cpus {
            madt.add_structure(ProcessorLocalApic::new(cpu, cpu, EnabledStatus::Enabled));
        }
        madt.add_structure(IoApic::new(0, number::low(layout::IO_APIC), 0));
        let madt = tables.add(&madt);

        let mut mcfg = MCFG::new(OEM, TABLE, REVISION);
        mcfg.add_ecam(layout::ECAM, 0, 0, LAST_BUS);
        let mcfg = tables.add(&mcfg);

        let mut xsdt = XSDT::new(OEM, TABLE, REVISION);
        [fadt, madt, mcfg].into_iter().for_each(|table| xsdt.add_entry(table));
        let xsdt = tables.add(&xsdt);

        let mut rsdp = Vec::new();
        Rsdp::new(OEM, xsdt).to_aml_bytes(&mut rsdp);
        tables.bytes[..rsdp.len()].copy_from_slice(&rsdp);
        tables
    }

    /// Appends a table and returns its address.
    fn add(&mut self, table: &dyn Aml) -> u64 {
        let address = layout::ACPI + self.bytes.len() as u64;
        table.to_aml_bytes(&mut self.bytes);
        self.bytes.resize(self.bytes.len().next_multiple_of(ALIGNMENT), 0);
        address
    }
}

/// Alignment of tables.
const ALIGNMENT: usize = 16;
/// Last bus of configuration space.
const LAST_BUS: u8 = ((layout::ECAM_BYTES >> 20) - 1 & 0xff) as u8;

/// Writes the tables; the root pointer is at [`layout::ACPI`].
pub(crate) fn write(ram: &Ram, cpus: u8, mmio64: &Range<u64>) -> Result<(), Error> {
    let put = ram.write_slice(&Tables::new(cpus, mmio64).bytes, GuestAddress(layout::ACPI));
    put.map_err(|_| Error::NoRoom { what: "ACPI", ram: layout::HIGH_RAM })
}

/// Returns the table of devices: a serial port, the PCI host bridge with its windows, and a device that reserves the
/// configuration space, without which Linux does not use ECAM.
fn dsdt(mmio64: &Range<u64>) -> Sdt {
    // A consumed interrupt: edge-triggered, active high, exclusive.
    let interrupt = Interrupt::new(true, true, false, false, layout::SERIAL_IRQ);
    let registers = IO::new(layout::SERIAL_PORT, layout::SERIAL_PORT, 1, 8);
    let serial = ResourceTemplate::new(vec![&registers, &interrupt]);

    let configuration = Memory32Fixed::new(true, number::low(layout::ECAM), number::low(layout::ECAM_BYTES));
    let configuration = ResourceTemplate::new(vec![&configuration]);

    let uncached = AddressSpaceCacheable::NotCacheable;
    let low = layout::MMIO32;
    let buses = AddressSpace::<u16>::new_bus_number(0, LAST_BUS.into());
    let ports = IO::new(layout::CONFIG_ADDRESS_PORT, layout::CONFIG_ADDRESS_PORT, 1, 8);
    let low = AddressSpace::<u32>::new_memory(uncached, true, number::low(low.start), number::low(low.end - 1), None);
    let high = AddressSpace::<u64>::new_memory(uncached, true, mmio64.start, mmio64.end - 1, None);
    let windows = ResourceTemplate::new(vec![&buses, &ports, &low, &high]);

    let mut code = Vec::new();
    for (name, id, resources) in [
        // Linux matches the compatible ID PNP0A03 (PCI host bridge).
        ("_SB_.PCI0", ["PNP0A08", "PNP0A03"], &windows),
        ("_SB_.CONF", ["PNP0C02"; 2], &configuration),
        ("_SB_.COM1", ["PNP0501"; 2], &serial),
    ] {
        let [id, compatible] = id.map(EISAName::new);
        let id = Name::new(Path::new("_HID"), &id);
        let compatible = Name::new(Path::new("_CID"), &compatible);
        let number = Name::new(Path::new("_UID"), &ZERO);
        let resources = Name::new(Path::new("_CRS"), resources);
        Device::new(Path::new(name), vec![&id, &compatible, &number, &resources]).to_aml_bytes(&mut code);
    }
    Name::new(Path::new("_S5_"), &Package::new(vec![&S5])).to_aml_bytes(&mut code);

    /// Size of a table's header in bytes.
    const HEADER: u32 = 36;
    let mut dsdt = Sdt::new(*b"DSDT", HEADER, 6, OEM, TABLE, REVISION);
    dsdt.append_slice(&code);
    dsdt
}

#[cfg(test)]
mod tests {
    #![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

    use super::*;

    /// Returns the table at `address`, with its length from the header, after checking its checksum.
    fn table(tables: &Tables, address: u64) -> &[u8] {
        let bytes = &tables.bytes[(address - layout::ACPI) as usize..];
        let len = u32::from_le_bytes(bytes[4..8].try_into().unwrap()) as usize;
        let sum = bytes[..len].iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte));
        assert_eq!(sum, 0, "{:?}", String::from_utf8_lossy(&bytes[..4]));
        &bytes[..len]
    }

    #[test]
    fn every_table_is_found_and_adds_up() {
        let tables = Tables::new(3, &layout::MMIO64);
        let address = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
        assert!(tables.bytes.starts_with(b"RSD PTR "));
        let xsdt = table(&tables, address(&tables.bytes[24..32]));
        let found: Vec<_> = xsdt[36..].chunks(8).map(|entry| table(&tables, address(entry))).collect();
        let names: Vec<_> = found.iter().map(|table| &table[..4]).collect();
        assert_eq!(names, [b"FACP", b"APIC", b"MCFG"]);
        let dsdt = table(&tables, address(&found[0][140..148]));
        assert!(dsdt.starts_with(b"DSDT"));
        let contains = |bytes: u64| dsdt.windows(8).any(|window| window == bytes.to_le_bytes());
        assert!(contains(layout::MMIO64.start) && contains(layout::MMIO64.end - 1));
        let ecam = &found[2][44..56];
        assert_eq!((address(&ecam[..8]), ecam[10], ecam[11]), (layout::ECAM, 0, 255));
        // Three CPUs of 8 bytes and an I/O APIC of 12 bytes after the header.
        assert_eq!(found[1].len(), 44 + 3 * 8 + 12);
        assert!(layout::ACPI + Tables::new(layout::MAX_CPUS, &layout::MMIO64).bytes.len() as u64 <= layout::HIGH_RAM);
    }
}
