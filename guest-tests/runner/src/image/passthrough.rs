// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The parts of an image that passes VFs on: QEMU with the firmware that an inner guest needs, and the inner guest's
//! kernel and image.

use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result};
use arctic_guest_agent::passthrough::{INITRD, KERNEL, QEMU};

use super::cpio::Tree;
use super::elf::HostProgram;
use super::modules::{self, Modules};
use super::{Extra, add_host_program, add_program};
use crate::artifacts::{Parts, Qemu};

const INIT: &str = include_str!("passthrough-inner.sh");
/// Directory of QEMU's firmware in the outer guest.
const DATA: &str = "usr/share/qemu";
/// The files that QEMU loads for a q35 machine that boots a kernel.
pub(super) const FILES: &[&str] = &["bios-256k.bin", "kvmvapic.bin", "linuxboot_dma.bin"];

/// Adds `qemu` with its libraries and firmware.
pub(super) fn add_qemu(tree: &mut Tree, qemu: &Qemu) -> Result<()> {
    let host = match qemu.binary() {
        (program, Some((loader, options))) => HostProgram::started_by(loader, options, program)?,
        (program, None) => HostProgram::of(program)?,
    };
    add_host_program(tree, QEMU, host, &format!("-L /{DATA}"));
    let folders = qemu.data_folders()?;
    for file in FILES {
        let path = folders.iter().map(|folder| folder.join(file)).find(|path| path.is_file());
        let path = path.with_context(|| format!("QEMU has no firmware {file}, which inner guests need"))?;
        tree.copy(&format!("{DATA}/{file}"), 0o644, &path);
    }
    Ok(())
}

/// Adds the inner guest: the kernel of `parts`, and an image with xe and the program. A VF needs no firmware.
pub(super) fn add_inner(tree: &mut Tree, parts: &Parts, extra: &Extra, scratch: &Path) -> Result<()> {
    let image = scratch.join("inner.cpio");
    let mut inner = super::system(&parts.tools.busybox, INIT)?;
    inner.file("etc/modprobe.d/card.conf", 0o644, extra.driver.modprobe_options(extra.forced));
    if let Some(program) = &extra.program {
        add_program(&mut inner, "arctic", program)?;
    }
    let wanted = Modules { needed: &[extra.driver.name(), "virtio_pci", "virtio_console"], wanted: &[] };
    modules::add(&mut inner, wanted, &parts.kernel, &parts.tools, &scratch.join("inner"))?;
    inner.write_to(&mut File::create(&image)?)?;
    tree.copy(KERNEL.trim_start_matches('/'), 0o644, &parts.kernel.image);
    tree.copy(INITRD.trim_start_matches('/'), 0o644, &image);
    Ok(())
}
