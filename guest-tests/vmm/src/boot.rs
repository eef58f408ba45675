//! What is in RAM and in the registers when the first instruction runs.

pub mod acpi;
pub mod bare;
mod info;
pub mod linux;
mod long_mode;

pub use self::info::BootInfo;
pub(crate) use self::long_mode::LongMode;

use std::path::PathBuf;

/// What the machine runs.
#[derive(Clone, Debug)]
pub enum Boot {
    /// A program without an operating system: an ELF64 file that gets a [`BootInfo`].
    Bare {
        /// The file.
        elf: PathBuf,
        /// Its command line.
        command_line: String,
    },
    /// Linux.
    Linux {
        /// A bzImage, as distributions have it in /boot.
        kernel: PathBuf,
        /// The first file system.
        initrd: Option<PathBuf>,
        /// The kernel's command line.
        command_line: String,
    },
}
