//! The images of a guest within a guest: a machine with KVM that a VMM runs in, and the guest of that VMM.

use std::fs::File;
use std::path::Path;

use anyhow::Result;

use super::modules::{self, Modules};
use crate::driver::Driver;
use crate::parts::Parts;
use crate::tsc;

const OUTER_INIT: &str = include_str!("nested-outer.sh");
const INNER_INIT: &str = include_str!("nested-inner.sh");
/// The inner guest's files in the outer one, where the VMM's command line has them.
pub const KERNEL: &str = "/inner/kernel";
/// Its image.
pub const INITRD: &str = "/inner/initrd";

/// What goes into the two images beside the distribution's parts.
#[derive(Debug)]
pub struct Extra<'a> {
    /// The VMM: a program that takes `--kernel`, `--initrd` and `--append`.
    pub vmm: &'a Path,
    /// Its further arguments.
    pub arguments: &'a [&'a str],
    /// A program with [`crate::guest::main`] behind its argument `guest`.
    pub program: &'a Path,
    /// A folder with `i915/dg2_guc_70.bin`.
    pub firmware: &'a Path,
    /// Virtual functions that the inner guest enables.
    pub vfs: u8,
}

/// Writes the outer image, which holds the inner one, to the empty file `target`.
pub fn build(parts: &Parts, extra: &Extra<'_>, target: &mut File) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let inner_path = scratch.path().join("inner.cpio");
    let driver = Driver::Xe;
    let mut inner = super::system(&parts.tools.busybox, INNER_INIT)?;
    inner.file("etc/modprobe.d/card.conf", 0o644, driver.modprobe_options());
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
    // One argument a line: none of them has to be quoted.
    outer.file("inner/arguments", 0o644, extra.arguments.join("\n") + "\n");
    // The inner guest's time stamp counter is the host's, too: the outer KVM only adds an offset to it.
    let clock = tsc::arguments(tsc::host_khz(), parts.kernel.hz);
    outer.file("inner/append", 0o644, format!("ignore_loglevel {clock}\n"));
    let wanted = Modules { needed: &["kvm_amd"], wanted: &[] };
    modules::add(&mut outer, wanted, &parts.kernel, &parts.tools, &scratch.path().join("outer"))?;
    outer.write_to(target)
}
