// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Command line arguments.

use std::path::PathBuf;

use arctic_gpu::card_file::{self, CardFile};
use arctic_vmm::{Boot, CardConfig, Config, layout};
use clap::Parser;

/// Boot a KVM guest with a virtual Flex 170. The card's PF and VFs are all assigned to this guest.
///
/// The card is part of this process. Its local memory and GGTT are mapped into the guest, notifications of the GuC are
/// ioeventfds, and interrupts are irqfds. Linux finds the card at 01:00.0 below a root port; with --vfs N,
/// `echo N > /sys/bus/pci/devices/0000:01:00.0/sriov_numvfs` enables N virtual functions.
///
/// The xe driver requires `xe.force_probe=56c0` and its firmware files; `arctic firmware` adds them to the guest image.
///
/// The guest's serial port is connected to this terminal; Ctrl-C ends the VM. At exit, an access report is printed to
/// stderr: trapped accesses and accesses to unmodelled registers. The exit status is 0 if the guest powered off or
/// requested a reset (as it does after a panic), 130 after Ctrl-C (a second Ctrl-C does not wait for the vCPUs), and 1
/// after a failure. If the guest writes to port 0xf4, the exit status is the written value, at most 255.
///
/// Examples:
///   arctic-vmm --kernel /boot/vmlinuz --initrd initrd.img --vfs 2 --append xe.force_probe=56c0
///   arctic-vmm --kernel bzImage --initrd rootfs.cpio --append 'root=/dev/ram0 quiet' --memory 4G --cpus 4
///   arctic-vmm --elf guest.elf --card small
#[derive(Parser)]
#[command(name = "arctic-vmm", version, verbatim_doc_comment)]
pub struct Args {
    /// Linux kernel to boot: a bzImage, such as a distribution's /boot/vmlinuz
    #[arg(long, value_name = "FILE", required_unless_present = "elf")]
    kernel: Option<PathBuf>,
    /// The kernel's initrd
    #[arg(long, value_name = "FILE", conflicts_with = "elf")]
    initrd: Option<PathBuf>,
    /// Program to run instead of Linux: a static ELF64 that is entered in 64-bit mode with the address of a
    /// `struct boot_info` in rdi
    #[arg(long, value_name = "ELF", conflicts_with = "kernel")]
    elf: Option<PathBuf>,
    /// Additional kernel arguments, appended to `console=ttyS0 panic=-1`; with --elf, the whole command line
    #[arg(long, value_name = "ARGS", default_value = "", allow_hyphen_values = true)]
    append: String,
    /// Guest RAM size, such as 512M or 4G
    #[arg(long, value_name = "SIZE", default_value = "2G", value_parser = parse_size)]
    memory: u64,
    /// Number of vCPUs
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=i64::from(layout::MAX_CPUS)))]
    cpus: u8,
    /// The card: a card file, or the name of a built-in one (flex170, flex170-63vf, small)
    #[arg(long, value_name = "FILE|NAME", default_value = "flex170")]
    card: String,
    /// Number of virtual functions of the card, up to the maximum of its card file (flex170: 31, flex170-63vf: 63)
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=63))]
    vfs: u8,
    /// Boot without a card
    #[arg(long, conflicts_with_all = ["card", "vfs"])]
    no_card: bool,
}

/// Kernel arguments that are always passed: the console device, and a reboot on panic, which ends the VM.
const KERNEL_ARGUMENTS: &str = "console=ttyS0 panic=-1";

impl Args {
    /// Returns the configuration of the VM.
    pub fn config(self) -> Result<Config, String> {
        let boot = match (self.elf, self.kernel) {
            (Some(elf), _) => Boot::Elf { elf, command_line: self.append },
            (None, Some(kernel)) => {
                let command_line = format!("{KERNEL_ARGUMENTS} {}", self.append).trim_end().to_owned();
                Boot::Linux { kernel, initrd: self.initrd, command_line }
            }
            (None, None) => return Err("--kernel or --elf is required".into()),
        };
        let card = match self.no_card {
            true => None,
            false => {
                let card = card_file::load(&self.card).and_then(CardFile::flex);
                let profile = card.map_err(|error| error.to_string())?;
                if self.vfs > profile.total_vfs {
                    let most = profile.total_vfs;
                    return Err(format!(
                        "card {} supports at most {most} VFs: reduce --vfs or use another card",
                        self.card
                    ));
                }
                Some(CardConfig { profile, vfs: self.vfs })
            }
        };
        Ok(Config { boot, memory: self.memory, cpus: self.cpus, card, output: Box::new(std::io::stdout()) })
    }
}

/// Parses a number of bytes with a unit.
fn parse_size(text: &str) -> Result<u64, String> {
    let shift = match text.bytes().last().map(|unit| unit.to_ascii_uppercase()) {
        Some(b'K') => 10,
        Some(b'M') => 20,
        Some(b'G') => 30,
        _ => return Err("expected a size with a suffix, such as 512M or 4G".into()),
    };
    let number: u64 =
        text[..text.len() - 1].parse().map_err(|_| "expected a size with a suffix, such as 512M or 4G".to_owned())?;
    number.checked_mul(1 << shift).ok_or_else(|| "the size exceeds 64 bits".into())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn a_size_requires_a_suffix() {
        assert_eq!(parse_size("512M"), Ok(512 << 20));
        assert_eq!(parse_size("4g"), Ok(4 << 30));
        for wrong in ["", "G", "12", "1.5G", "99999999999G", "4\u{e9}"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn kernel_or_elf_is_required() {
        Args::command().debug_assert();
        assert!(Args::try_parse_from(["arctic-vmm"]).is_err());
        assert!(Args::try_parse_from(["arctic-vmm", "--elf", "a", "--kernel", "b"]).is_err());
        assert!(Args::try_parse_from(["arctic-vmm", "--elf", "a", "--initrd", "b"]).is_err());
        assert!(Args::try_parse_from(["arctic-vmm", "--elf", "a"]).is_ok());
        let args = Args::try_parse_from(["arctic-vmm", "--kernel", "b", "--append", "-x quiet"]).unwrap();
        let Boot::Linux { command_line, .. } = args.config().unwrap().boot else { panic!("expected Linux") };
        assert_eq!(command_line, "console=ttyS0 panic=-1 -x quiet");
    }
}
