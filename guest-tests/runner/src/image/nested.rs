// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The images for nested virtualisation: an outer VM with KVM that runs a VMM, and the inner guest of that VMM.

use std::fs::File;
use std::path::Path;

use anyhow::Result;

use super::modules::{self, Modules};
use crate::artifacts::Parts;
use crate::driver::Driver;
use crate::tsc;

const OUTER_INIT: &str = include_str!("nested-outer.sh");
const INNER_INIT: &str = include_str!("nested-inner.sh");
/// Path of the inner guest's kernel in the outer guest, for the VMM's command line.
pub const KERNEL: &str = "/inner/kernel";
/// Path of the inner guest's initramfs in the outer guest.
pub const INITRD: &str = "/inner/initrd";

/// Contents of the two images in addition to the distribution's components.
#[derive(Debug)]
pub struct Extra<'a> {
    /// The VMM: a program with the options `--kernel`, `--initrd` and `--append`.
    pub vmm: &'a Path,
    /// Additional arguments of the VMM.
    pub arguments: &'a [&'a str],
    /// A program that runs [`arctic_guest_agent::main`] if its first argument is `guest`.
    pub program: &'a Path,
    /// A directory with `i915/dg2_guc_70.bin`.
    pub firmware: &'a Path,
    /// PCI device ID of the card.
    pub device: u16,
    /// Number of VFs that the inner guest enables.
    pub vfs: u8,
}

/// Writes the outer image, which contains the inner one, to the empty file `target`.
pub fn build(parts: &Parts, extra: &Extra<'_>, target: &mut File) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let inner_path = scratch.path().join("inner.cpio");
    let driver = Driver::Xe;
    let mut inner = super::system(&parts.tools.busybox, INNER_INIT)?;
    inner.file("etc/modprobe.d/card.conf", 0o644, driver.modprobe_options(Some(extra.device)));
    inner.file("etc/vfs", 0o644, format!("{}\n", extra.vfs));
    super::add_firmware(&mut inner, extra.firmware)?;
    super::add_program(&mut inner, "arctic", extra.program)?;
    let wanted = Modules { needed: &["xe"], wanted: &[] };
    modules::add(&mut inner, wanted, &parts.kernel, &parts.tools, &scratch.path().join("inner"))?;
    inner.write_to(&mut File::create(&inner_path)?)?;

    let mut outer = super::system(&parts.tools.busybox, OUTER_INIT)?;
    outer.copy(&KERNEL[1..], 0o644, &parts.kernel.image);
    outer.copy(&INITRD[1..], 0o644, &inner_path);
    super::add_program(&mut outer, "vmm", extra.vmm)?;
    // One argument per line, so that no quoting is needed.
    outer.file("inner/arguments", 0o644, extra.arguments.join("\n") + "\n");
    // The inner guest's TSC has the host's rate: the outer KVM only adds an offset.
    let clock = tsc::arguments(tsc::host_khz(), parts.kernel.hz);
    outer.file("inner/append", 0o644, format!("ignore_loglevel {clock}\n"));
    let wanted = Modules { needed: &["kvm_amd"], wanted: &[] };
    modules::add(&mut outer, wanted, &parts.kernel, &parts.tools, &scratch.path().join("outer"))?;
    outer.write_to(target)
}
