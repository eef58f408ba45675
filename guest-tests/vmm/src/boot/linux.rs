// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Boots Linux with its 64-bit boot protocol (`Documentation/arch/x86/boot.rst`).

use std::fs::File;
use std::ops::Range;
use std::path::Path;

use arctic_sriov::number;
use linux_loader::configurator::linux::LinuxBootConfigurator;
use linux_loader::configurator::{BootConfigurator, BootParams};
use linux_loader::loader::bootparam::{boot_e820_entry, boot_params};
use linux_loader::loader::{BzImage, KernelLoader};
use vm_memory::{Bytes, GuestAddress, GuestMemoryBackend, GuestMemoryRegion};

use super::{LongMode, acpi};
use crate::error::Error;
use crate::layout::{self, PAGE};
use crate::memory::Ram;

/// Types of entries in the E820 memory map.
const E820_RAM: u32 = 1;
const E820_RESERVED: u32 = 2;
/// `xloadflags`: the kernel has a 64-bit entry point, 512 bytes after its start.
const XLF_KERNEL_64: u16 = 1 << 0;
const ENTRY_64: u64 = 0x200;
/// Type of a boot loader without an assigned ID.
const LOADER: u8 = 0xff;

/// Loads kernel and initrd, and writes the boot parameters.
pub(crate) fn load(
    ram: &Ram,
    kernel: &Path,
    initrd: Option<&Path>,
    command_line: &str,
    cpus: u8,
    mmio64: &Range<u64>,
) -> Result<LongMode, Error> {
    let format = |found: String| Error::Format { path: kernel.into(), expected: "a bzImage for x86-64", found };
    let low = ram.iter().next().map_or(0, |region| region.len());

    let mut file = File::open(kernel).map_err(Error::file(kernel))?;
    let size = file.metadata().map_err(Error::file(kernel))?.len();
    if layout::HIGH_RAM + size > low {
        return Err(Error::NoRoom { what: "the kernel", ram: low });
    }
    let load_at = Some(GuestAddress(layout::HIGH_RAM));
    let loaded = BzImage::load(&**ram, load_at, &mut file, load_at).map_err(|error| format(error.to_string()))?;
    let mut header = loaded.setup_header.ok_or_else(|| format("it has no header".into()))?;
    if header.xloadflags & XLF_KERNEL_64 == 0 {
        return Err(format("it has no 64-bit entry point".into()));
    }
    // The address range into which the kernel decompresses itself.
    let place = loaded.kernel_load.0.max(header.pref_address);
    let kernel_end = place.saturating_add(header.init_size.into());
    if kernel_end > low {
        return Err(Error::NoRoom { what: "the kernel", ram: low });
    }

    if let Some(initrd) = initrd {
        let mut file = File::open(initrd).map_err(Error::file(initrd))?;
        let size = file.metadata().map_err(Error::file(initrd))?.len();
        let end = low.min(u64::from(header.initrd_addr_max) + 1);
        let start = end.checked_sub(size).map(|start| start & !(PAGE - 1)).filter(|start| *start >= kernel_end);
        let start = start.ok_or(Error::NoRoom { what: "the initrd", ram: low })?;
        let read = ram.read_exact_volatile_from(GuestAddress(start), &mut file, number::size(size));
        read.map_err(|error| Error::file(initrd)(std::io::Error::other(error)))?;
        // Both fit into 32 bits, since the end is below 4 GiB.
        (header.ramdisk_image, header.ramdisk_size) = (number::low(start), number::low(size));
    }

    write_command_line(ram, command_line)?;
    header.cmd_line_ptr = number::low(layout::COMMAND_LINE);
    header.type_of_loader = LOADER;
    let mut params = boot_params { hdr: header, acpi_rsdp_addr: layout::ACPI, ..Default::default() };
    let map = memory_map(ram);
    params.e820_entries = number::byte(map.len());
    params.e820_table[..map.len()].copy_from_slice(&map);
    let params = BootParams::new(&params, GuestAddress(layout::BOOT_INFO));
    LinuxBootConfigurator::write_bootparams(&params, &**ram)
        .map_err(|_| Error::NoRoom { what: "the zero page", ram: low })?;
    acpi::write(ram, cpus, mmio64)?;
    let first_4g = 0..layout::RAM_ABOVE_4G;
    LongMode::prepare(ram, loaded.kernel_load.0 + ENTRY_64, layout::PAGE_TABLES, &[first_4g])
}

/// Returns the E820 map: the RAM, and ranges that Linux must not use.
fn memory_map(ram: &Ram) -> Vec<boot_e820_entry> {
    let entry = |start: u64, end: u64, kind| boot_e820_entry { addr: start, size: end - start, r#type: kind };
    let mut map = vec![
        entry(0, layout::LOW_RAM_END, E820_RAM),
        entry(layout::ACPI, layout::HIGH_RAM, E820_RESERVED),
        entry(layout::ECAM, layout::ECAM + layout::ECAM_BYTES, E820_RESERVED),
    ];
    for region in ram.iter() {
        let start = region.start_addr().0;
        map.push(entry(start.max(layout::HIGH_RAM), start + region.len(), E820_RAM));
    }
    map.sort_unstable_by_key(|entry| entry.addr);
    map
}

/// Writes the command line, NUL-terminated, at [`layout::COMMAND_LINE`].
pub(super) fn write_command_line(ram: &Ram, command_line: &str) -> Result<(), Error> {
    if command_line.len() >= layout::COMMAND_LINE_BYTES {
        return Err(Error::CommandLine(command_line.len()));
    }
    let bytes = [command_line.as_bytes(), b"\0"].concat();
    let put = ram.write_slice(&bytes, GuestAddress(layout::COMMAND_LINE));
    put.map_err(|_| Error::NoRoom { what: "the command line", ram: layout::LOW_RAM_END })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_map_is_sorted_and_has_no_overlap() {
        let ram = crate::memory::ram(layout::RAM_BELOW_4G + (64 << 20)).unwrap();
        let map: Vec<_> = memory_map(&ram).iter().map(|part| (part.addr, part.size, part.r#type)).collect();
        assert!(map.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "{map:x?}");
        assert!(map.contains(&(layout::HIGH_RAM, layout::RAM_BELOW_4G - layout::HIGH_RAM, E820_RAM)));
        assert!(map.contains(&(layout::RAM_ABOVE_4G, 64 << 20, E820_RAM)));
        assert!(map.contains(&(layout::ECAM, layout::ECAM_BYTES, E820_RESERVED)));
    }

    #[test]
    fn a_file_that_is_no_kernel_is_refused_by_name() {
        let ram = crate::memory::ram(16 << 20).unwrap();
        let own = std::env::current_exe().unwrap();
        let refused = load(&ram, Path::new("/proc/cpuinfo"), None, "", 1, &layout::MMIO64).err().unwrap().to_string();
        assert!(refused.starts_with("/proc/cpuinfo is not a bzImage for x86-64"), "{refused}");
        let missing = load(&ram, &own.join("absent"), None, "", 1, &layout::MMIO64).err().unwrap();
        assert!(matches!(missing, Error::File { .. }));
        let long = "x".repeat(layout::COMMAND_LINE_BYTES);
        assert!(matches!(write_command_line(&ram, &long), Err(Error::CommandLine(2048))));
    }
}
