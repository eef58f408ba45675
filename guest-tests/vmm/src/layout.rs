//! Where things are in the guest's physical address space.

use std::ops::Range;

/// Size of a page of the guest's and of everything that KVM maps.
pub const PAGE: u64 = 0x1000;

/// Global descriptor table of the first instructions.
pub const GDT: u64 = 0x500;
/// What the guest is told about the machine: [`BootInfo`](crate::boot::BootInfo), or Linux' zero page.
pub const BOOT_INFO: u64 = 0x7000;
/// Linux' first page tables, for the lower 4 GiB.
pub const PAGE_TABLES: u64 = 0x9000;
/// Bytes that a bare-metal guest's page tables take at the end of its lower RAM.
pub const BARE_PAGE_TABLES: u64 = 4 << 20;
/// A page that a bare-metal guest and the test on the host use as they like.
pub const MAILBOX: u64 = 0x1_0000;
/// Command line, ended by a NUL byte.
pub const COMMAND_LINE: u64 = 0x2_0000;
/// Longest command line, with its NUL byte: what Linux takes on x86.
pub const COMMAND_LINE_BYTES: usize = 2048;
/// Stacks of a bare-metal guest's CPUs: CPU n starts at `STACKS + (n + 1) * STACK_BYTES` and grows down.
pub const STACKS: u64 = 0x3_0000;
/// Bytes of each stack.
pub const STACK_BYTES: u64 = 0x4000;
/// Most CPUs: their stacks fit below [`LOW_RAM_END`].
pub const MAX_CPUS: u8 = 16;
/// End of the RAM that an old machine has below its adapters.
pub const LOW_RAM_END: u64 = 0x9_fc00;
/// ACPI tables, in RAM that the guest is told to be reserved.
pub const ACPI: u64 = 0xe_0000;
/// Where programs and kernels go.
pub const HIGH_RAM: u64 = 0x10_0000;

/// Least RAM: room for the tables above and a small program.
pub const LEAST_RAM: u64 = 8 << 20;
/// Most RAM.
pub const MOST_RAM: u64 = 128 << 30;
/// Most RAM below 4 GiB.
pub const RAM_BELOW_4G: u64 = 0x8000_0000;
/// Where the rest of the RAM is.
pub const RAM_ABOVE_4G: u64 = 0x1_0000_0000;

/// Configuration space: 4 KiB a function, 1 MiB a bus.
pub const ECAM: u64 = 0xb000_0000;
/// Bytes of the configuration space's window: 256 buses.
pub const ECAM_BYTES: u64 = 0x1000_0000;
/// Where 32-bit BARs may be.
pub const MMIO32: Range<u64> = 0xc000_0000..0xf000_0000;
/// Where 64-bit BARs may be, on a host whose processors have 40 bits of address.
pub const MMIO64: Range<u64> = 0x40_0000_0000..0x100_0000_0000;

/// As much of [`MMIO64`] as processors with `bits` bits of address reach; none if that is nothing.
pub fn reachable_mmio64(bits: u32) -> Option<Range<u64>> {
    let end = MMIO64.end.min(1u64.checked_shl(bits).unwrap_or(u64::MAX));
    (MMIO64.start < end).then_some(MMIO64.start..end)
}

/// The in-kernel I/O APIC.
pub const IO_APIC: u64 = 0xfec0_0000;
/// The in-kernel local APICs.
pub const LOCAL_APIC: u64 = 0xfee0_0000;
/// Three pages that KVM on Intel wants for itself.
pub const KVM_TSS: u64 = 0xfffb_d000;

/// Bus of the card.
pub const CARD_BUS: u8 = 1;
/// Device and function of the root port on bus 0: 00:01.0.
pub const ROOT_PORT: u8 = 1 << 3;

/// Inputs of the I/O APIC. Numbers from here on are MSIs.
pub const IO_APIC_PINS: u32 = 24;
/// Interrupt of the serial port.
pub const SERIAL_IRQ: u32 = 4;

/// A write ends the machine; the value is the test's result.
pub const EXIT_PORT: u16 = 0xf4;
/// First of the serial port's eight registers.
pub const SERIAL_PORT: u16 = 0x3f8;
/// Command port of the keyboard controller that old machines are reset with.
pub const KEYBOARD_PORT: u16 = 0x64;
/// ACPI's sleep control register.
pub const SLEEP_PORT: u16 = 0x600;
/// ACPI's reset register.
pub const RESET_PORT: u16 = 0x601;
/// Address (and, 4 bytes on, data) of configuration space as machines before PCI Express had it.
pub const CONFIG_ADDRESS_PORT: u16 = 0xcf8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_processors_have_a_smaller_window() {
        assert_eq!(reachable_mmio64(52), Some(MMIO64));
        assert_eq!(reachable_mmio64(64), Some(MMIO64));
        assert_eq!(reachable_mmio64(39), Some(MMIO64.start..1 << 39));
        assert_eq!(reachable_mmio64(36), None);
    }
}
