// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The description of the VM for a bare-metal guest.

use vm_memory::ByteValued;

/// The description of the VM at [`layout::BOOT_INFO`](crate::layout::BOOT_INFO); its address is in `rdi` on entry.
/// Little-endian, without padding. The same structure in C:
///
/// ```c
/// struct boot_info {
///     uint64_t magic;             /*   0: BOOT_INFO_MAGIC */
///     uint32_t version;           /*   8: 1; incremented when fields are appended */
///     uint32_t size;              /*  12: size of this structure in bytes */
///     uint64_t ram_low;           /*  16: bytes of RAM from address 0, up to the page tables */
///     uint64_t ram_high;          /*  24: bytes of RAM from 4 GiB, or 0 */
///     uint64_t ecam;              /*  32: configuration space, 4 KiB per function */
///     uint32_t bus_first;         /*  40: bus range of the configuration space */
///     uint32_t bus_last;          /*  44 */
///     uint64_t mmio32;            /*  48: window for 32-bit BARs: address */
///     uint64_t mmio32_size;       /*  56: window for 32-bit BARs: size in bytes */
///     uint64_t mmio64;            /*  64: window for 64-bit BARs: address */
///     uint64_t mmio64_size;       /*  72: window for 64-bit BARs: size in bytes */
///     uint32_t pf_bus;            /*  80: location of the card's PF */
///     uint32_t pf_device;         /*  84 */
///     uint32_t pf_function;       /*  88 */
///     uint32_t vfs;               /*  92: number of VFs that can be enabled; VF n has routing ID PF + n */
///     uint64_t mailbox;           /*  96: a page shared by guest and host for communication */
///     uint64_t mailbox_size;      /* 104 */
///     uint64_t command_line;      /* 112: NUL-terminated string */
///     uint64_t command_line_size; /* 120: length without the NUL */
///     uint32_t cpus;              /* 128: number of CPUs, all of which enter the program: see `boot::bare` */
///     uint32_t root_port_devfn;   /* 132: device << 3 | function of the root port on bus 0 */
/// };                              /* 136 bytes */
/// ```
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct BootInfo {
    /// [`BootInfo::MAGIC`].
    pub magic: u64,
    /// [`BootInfo::VERSION`].
    pub version: u32,
    /// Size of this structure in bytes.
    pub size: u32,
    /// Bytes of RAM from address 0 that the guest may use; followed by its page tables.
    pub ram_low: u64,
    /// Bytes of RAM from 4 GiB.
    pub ram_high: u64,
    /// Address of configuration space.
    pub ecam: u64,
    /// First bus of the configuration space.
    pub bus_first: u32,
    /// Last bus of the configuration space.
    pub bus_last: u32,
    /// Address of the window for 32-bit BARs.
    pub mmio32: u64,
    /// Size of that window in bytes.
    pub mmio32_size: u64,
    /// Address of the window for 64-bit BARs.
    pub mmio64: u64,
    /// Size of that window in bytes.
    pub mmio64_size: u64,
    /// Bus of the PF.
    pub pf_bus: u32,
    /// Device number of the PF.
    pub pf_device: u32,
    /// Function number of the PF.
    pub pf_function: u32,
    /// Number of VFs that can be enabled.
    pub vfs: u32,
    /// Address of the page shared by guest and host for communication.
    pub mailbox: u64,
    /// Size of that page in bytes.
    pub mailbox_size: u64,
    /// Address of the command line.
    pub command_line: u64,
    /// Length of the command line in bytes, without the NUL.
    pub command_line_size: u64,
    /// Number of CPUs.
    pub cpus: u32,
    /// Device and function of the root port on bus 0.
    pub root_port_devfn: u32,
}

impl BootInfo {
    /// "arcticvm" as a little-endian number.
    pub const MAGIC: u64 = u64::from_le_bytes(*b"arcticvm");
    /// Version of the layout.
    pub const VERSION: u32 = 1;
}

// SAFETY: all fields are integers, and the assertion below shows that there is no padding between or after them.
unsafe impl ByteValued for BootInfo {}

const _: () = assert!(size_of::<BootInfo>() == 136);

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    #[test]
    fn the_layout_matches_the_c_header() {
        assert_eq!(offset_of!(BootInfo, ecam), 32);
        assert_eq!(offset_of!(BootInfo, mmio64), 64);
        assert_eq!(offset_of!(BootInfo, vfs), 92);
        assert_eq!(offset_of!(BootInfo, mailbox), 96);
        assert_eq!(offset_of!(BootInfo, root_port_devfn), 132);
        assert_eq!(BootInfo::MAGIC.to_le_bytes(), *b"arcticvm");
    }
}
