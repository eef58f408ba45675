// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The guest's physical address space.

use std::ops::Range;

/// Page size of the guest and of KVM's mappings.
pub const PAGE: u64 = 0x1000;

/// Initial GDT.
pub const GDT: u64 = 0x500;
/// The boot data: [`BootInfo`](crate::boot::BootInfo), or Linux' zero page.
pub const BOOT_INFO: u64 = 0x7000;
/// Linux' initial page tables, for the lower 4 GiB.
pub const PAGE_TABLES: u64 = 0x9000;
/// Size in bytes of a bare-metal guest's page tables, at the end of its RAM below 4 GiB.
pub const ELF_PAGE_TABLES: u64 = 4 << 20;
/// A page for communication between a bare-metal guest and the test on the host.
pub const MAILBOX: u64 = 0x1_0000;
/// Command line, NUL-terminated.
pub const COMMAND_LINE: u64 = 0x2_0000;
/// Maximum length of the command line including NUL: the limit of Linux on x86.
pub const COMMAND_LINE_BYTES: usize = 2048;
/// Stacks of a bare-metal guest's CPUs: the stack of CPU n starts at `STACKS + (n + 1) * STACK_BYTES` and grows down.
pub const STACKS: u64 = 0x3_0000;
/// Size of each stack in bytes.
pub const STACK_BYTES: u64 = 0x4000;
/// Maximum number of CPUs: their stacks fit below [`LOW_RAM_END`].
pub const MAX_CPUS: u8 = 16;
/// End of conventional memory.
pub const LOW_RAM_END: u64 = 0x9_fc00;
/// ACPI tables, in RAM that is reported as reserved.
pub const ACPI: u64 = 0xe_0000;
/// Load address of programs and kernels.
pub const HIGH_RAM: u64 = 0x10_0000;

/// Minimum RAM, sufficient for the data above and a small program.
pub const LEAST_RAM: u64 = 8 << 20;
/// Maximum RAM.
pub const MOST_RAM: u64 = 128 << 30;
/// Maximum RAM below 4 GiB.
pub const RAM_BELOW_4G: u64 = 0x8000_0000;
/// Address of the RAM that does not fit below 4 GiB.
pub const RAM_ABOVE_4G: u64 = 0x1_0000_0000;

/// Configuration space: 4 KiB per function, 1 MiB per bus.
pub const ECAM: u64 = 0xb000_0000;
/// Size of the configuration space in bytes: 256 buses.
pub const ECAM_BYTES: u64 = 0x1000_0000;
/// Window for 32-bit BARs.
pub const MMIO32: Range<u64> = 0xc000_0000..0xf000_0000;
/// Window for 64-bit BARs, if the host's CPUs have at least 40 address bits.
pub const MMIO64: Range<u64> = 0x40_0000_0000..0x100_0000_0000;

/// Returns the subrange of [`MMIO64`] that is addressable with `bits` address bits; `None` if it is empty.
pub fn reachable_mmio64(bits: u32) -> Option<Range<u64>> {
    let end = MMIO64.end.min(1u64.checked_shl(bits).unwrap_or(u64::MAX));
    (MMIO64.start < end).then_some(MMIO64.start..end)
}

/// The in-kernel I/O APIC.
pub const IO_APIC: u64 = 0xfec0_0000;
/// The in-kernel local APICs.
pub const LOCAL_APIC: u64 = 0xfee0_0000;
/// Three pages reserved for KVM on Intel.
pub const KVM_TSS: u64 = 0xfffb_d000;

/// Bus of the card.
pub const CARD_BUS: u8 = 1;
/// Device and function of the root port on bus 0: 00:01.0.
pub const ROOT_PORT: u8 = 1 << 3;

/// Number of I/O APIC inputs; also the first GSI of MSIs.
pub const IO_APIC_PINS: u32 = 24;
/// IRQ of the serial port.
pub const SERIAL_IRQ: u32 = 4;

/// A write to this port ends the VM; the value is the exit code.
pub const EXIT_PORT: u16 = 0xf4;
/// First of the serial port's eight registers.
pub const SERIAL_PORT: u16 = 0x3f8;
/// Command port of the keyboard controller, used for legacy resets.
pub const KEYBOARD_PORT: u16 = 0x64;
/// ACPI's sleep control register.
pub const SLEEP_PORT: u16 = 0x600;
/// ACPI's reset register.
pub const RESET_PORT: u16 = 0x601;
/// Legacy configuration address port; the data port is 4 bytes higher.
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
