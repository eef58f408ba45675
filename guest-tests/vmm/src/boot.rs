// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Initial contents of RAM and of the CPUs' registers.

pub mod acpi;
pub mod elf;
mod info;
pub mod linux;
mod long_mode;

pub use self::info::BootInfo;
pub(crate) use self::long_mode::LongMode;

use std::path::PathBuf;

/// The program or kernel that the VM runs.
#[derive(Clone, Debug)]
pub enum Boot {
    /// A program without an operating system: an ELF64 file that receives a [`BootInfo`].
    Elf {
        /// The file.
        elf: PathBuf,
        /// Its command line.
        command_line: String,
    },
    /// Linux.
    Linux {
        /// A bzImage, such as a distribution's /boot/vmlinuz.
        kernel: PathBuf,
        /// The initramfs.
        initrd: Option<PathBuf>,
        /// The kernel's command line.
        command_line: String,
    },
}
