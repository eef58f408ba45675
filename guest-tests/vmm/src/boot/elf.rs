// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Programs without an operating system.
//!
//! The file is a static ELF64 for x86-64, loaded to the physical addresses of its program headers, which must be at
//! 1 MiB or above (the memory below has the boot information, see [`layout`]). Every CPU enters it at its entry point,
//! at privilege level 0 in 64-bit mode, with interrupts disabled, without an IDT, and with an identity map of all RAM,
//! configuration space and both MMIO windows in pages of 2 MiB, accessible at every privilege level. `rdi` has the
//! address of the [`BootInfo`], `rsi` the CPU's index, `rsp` the top of a separate stack for each CPU. A write to port
//! 0xf4 ends the VM.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use arctic_sriov::number::count;
use linux_loader::elf::{EI_CLASS, ELFCLASS64};
use linux_loader::loader::{Elf, KernelLoader};
use vm_memory::{Bytes, GuestAddress};

use super::{BootInfo, LongMode};
use crate::error::Error;
use crate::layout;
use crate::memory::Ram;

/// `e_machine` of a program for x86-64.
const EM_X86_64: u16 = 62;

/// Loads the program and writes the boot information.
pub(crate) fn load(ram: &Ram, elf: &Path, info: BootInfo, command_line: &str) -> Result<LongMode, Error> {
    let format = |found: String| Error::Format { path: elf.into(), expected: "an ELF64 program for x86-64", found };
    let mut file = File::open(elf).map_err(Error::file(elf))?;
    let mut head = [0; 20];
    file.read_exact(&mut head).map_err(Error::file(elf))?;
    if head[EI_CLASS] != ELFCLASS64 || u16::from_le_bytes([head[18], head[19]]) != EM_X86_64 {
        return Err(format("it is for another architecture".into()));
    }
    let high = Some(GuestAddress(layout::HIGH_RAM));
    let loaded = Elf::load(&**ram, None, &mut file, high).map_err(|error| format(error.to_string()))?;
    // For an ELF file the loader returns the entry point in `kernel_load`.
    let entry = loaded.kernel_load.0;

    let tables = info.ram_low.saturating_sub(layout::ELF_PAGE_TABLES);
    if loaded.kernel_end > tables {
        return Err(Error::NoRoom { what: "the program with its page tables", ram: info.ram_low });
    }
    super::linux::write_command_line(ram, command_line)?;
    let info = BootInfo {
        magic: BootInfo::MAGIC,
        version: BootInfo::VERSION,
        size: count(size_of::<BootInfo>()),
        command_line: layout::COMMAND_LINE,
        command_line_size: command_line.len() as u64,
        mailbox: layout::MAILBOX,
        mailbox_size: layout::PAGE,
        ram_low: tables,
        ..info
    };
    let put = ram.write_obj(info, GuestAddress(layout::BOOT_INFO));
    put.map_err(|_| Error::NoRoom { what: "the boot information", ram: layout::LOW_RAM_END })?;
    let ranges = [0..layout::RAM_ABOVE_4G + info.ram_high, layout::MMIO64];
    LongMode::prepare(ram, entry, tables, &ranges)
}
