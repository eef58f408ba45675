// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Kernel modules: the dependency closure of a guest's modules, uncompressed, with the indexes that libkmod reads.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};

use super::cpio::Tree;
use crate::artifacts::modules::{ModuleFile, built_in, dependencies, index, uncompressed_name, unpacked};
use crate::artifacts::{Kernel, Parts, Tools};
use crate::driver::Driver;
use crate::process;

/// Transport modules required by the guest unless built into the kernel. The card's driver is also required.
const NEEDED: &[&str] = &["virtio_pci", "virtio_console", "9p", "9pnet_virtio"];

/// [`NEEDED`], and what a guest needs to pass VFs on to inner guests.
const NEEDED_OUTER: &[&str] =
    &["virtio_pci", "virtio_console", "9p", "9pnet_virtio", "vfio_pci", "vfio_iommu_type1", "kvm_amd"];

/// The kernel option of each module that an image can require (complete list in docs/own-kernel.md).
const OPTIONS: &[(&str, &str)] = &[
    ("xe", "CONFIG_DRM_XE=m"),
    ("i915", "CONFIG_DRM_I915=m"),
    ("virtio_pci", "CONFIG_VIRTIO_PCI"),
    ("virtio_console", "CONFIG_VIRTIO_CONSOLE"),
    ("9p", "CONFIG_9P_FS"),
    ("9pnet_virtio", "CONFIG_NET_9P_VIRTIO"),
    ("kvm_amd", "CONFIG_KVM_AMD"),
    ("vfio_pci", "CONFIG_VFIO_PCI"),
    ("vfio_iommu_type1", "CONFIG_VFIO_IOMMU_TYPE1"),
    ("virtio_blk", "CONFIG_VIRTIO_BLK"),
    ("ext4", "CONFIG_EXT4_FS"),
];

/// Modules that a distribution's hotplug would load for the card and for the VM, and modules that IGT loads itself.
const WANTED: &[&str] = &[
    "xe",
    "i915", // the driver not under test; IGT requests either
    "configfs",
    "vgem",
    "qemu_fw_cfg", // for the VM and IGT
    "mei_gsc",
    "mei_gsc_proxy",
    "mei_hdcp",
    "mei_pxp", // xe.mei-gscfi, i915.mei-gsc and their clients
    "pmt_telemetry",
    "pmt_crashlog",
    "pmt_discovery", // intel_vsec.*
    "xe_vfio_pci",
    "mtd_intel_dg", // currently not in Debian's kernel
    "virtio_blk",
    "ext4", // for the drive with the compute stack
];

/// Index files of a modules directory that depmod does not generate.
const INDEXES: &[&str] = &["modules.builtin", "modules.builtin.modinfo", "modules.order"];

/// All lists that determine an image's modules, for the image's cache key.
pub fn selection(passthrough: bool) -> [&'static [&'static str]; 3] {
    let Modules { needed, wanted } = of_guest(passthrough);
    [needed, wanted, INDEXES]
}

/// The modules of a guest that tests the card in QEMU, for either driver; with `passthrough` it passes VFs on to inner
/// guests.
pub fn of_guest(passthrough: bool) -> Modules<'static> {
    Modules { needed: if passthrough { NEEDED_OUTER } else { NEEDED }, wanted: WANTED }
}

/// Whether an error names the kernel option of the module `name`.
#[cfg(test)]
pub(super) fn has_option(name: &str) -> bool {
    OPTIONS.iter().any(|(module, _)| *module == name)
}

/// Fails if `kernel` lacks one of the required `modules` of a guest or its `driver`.
pub fn check(kernel: &Kernel, driver: Driver, modules: Modules<'_>) -> Result<()> {
    let (files, built_in) = (index(kernel)?, built_in(&kernel.modules)?);
    let needed = [driver.name()].into_iter().chain(modules.needed.iter().copied());
    match needed.into_iter().find(|name| !files.contains_key(*name) && !built_in.contains(*name)) {
        Some(name) => Err(missing(kernel, name)),
        None => Ok(()),
    }
}

/// Returns whether the guest's kernel has the module `mei_gsc`. Debian's is required to have it.
pub fn has_mei_gsc(parts: &Parts) -> Result<bool> {
    Ok(!parts.kernel_is_own || index(&parts.kernel)?.contains_key("mei_gsc"))
}

/// Returns the error for a `kernel` without the required module `name`.
fn missing(kernel: &Kernel, name: &str) -> anyhow::Error {
    let driver = Driver::named(name).is_some();
    let why = if driver { format!("which --driver {name} needs") } else { "which the guest needs".to_owned() };
    let option = OPTIONS.iter().find(|(module, _)| *module == name);
    let remedy = option.map_or(String::new(), |(_, option)| format!(": build the kernel with {option}"));
    anyhow!("kernel {} has no module {name}, {why}{remedy}", kernel.release)
}

/// The modules of an image; their dependencies are added.
#[derive(Clone, Copy, Debug)]
pub struct Modules<'a> {
    /// Required: building the image fails if one is neither available nor built into the kernel.
    pub needed: &'a [&'a str],
    /// Optional: added if the kernel has them.
    pub wanted: &'a [&'a str],
}

/// Adds the modules to `tree`, uncompressed, so that any modprobe can load them and their signatures stay valid.
/// `scratch` is a working directory for depmod. Returns the names of the modules added.
pub fn add(
    tree: &mut Tree,
    modules: Modules<'_>,
    kernel: &Kernel,
    tools: &Tools,
    scratch: &Path,
) -> Result<Vec<String>> {
    let files = index(kernel)?;
    let built_in = built_in(&kernel.modules)?;
    let mut done = BTreeMap::new();
    let mut todo = Vec::new();
    for name in modules.needed {
        match (files.contains_key(*name), built_in.contains(*name)) {
            (true, _) => todo.push((*name).to_owned()),
            (false, true) => {}
            (false, false) => return Err(missing(kernel, name)),
        }
    }
    todo.extend(modules.wanted.iter().filter(|name| files.contains_key(**name)).map(|name| (*name).to_owned()));
    todo.extend(kernel.own_modules.keys().cloned());
    let mut todo: Vec<(String, Option<String>)> = todo.into_iter().map(|name| (name, None)).collect();
    let base = format!("lib/modules/{}", kernel.release);
    let staged = scratch.join(&base);
    while let Some((name, user)) = todo.pop() {
        if done.contains_key(&name) || built_in.contains(&name) {
            continue;
        }
        let ModuleFile { place, source } = files.get(&name).with_context(|| {
            let user = user.unwrap_or_default();
            let (release, folder) = (&kernel.release, kernel.modules.display());
            format!("kernel {release} has no module {name}, which {user} depends on: {folder} is incomplete, run `make modules_install` again")
        })?;
        let bytes = unpacked(source)?;
        let further = dependencies(&bytes).with_context(|| format!("{} is corrupt", source.display()))?;
        todo.extend(further.into_iter().map(|module| (module, Some(name.clone()))));
        let plain = uncompressed_name(place);
        let target = staged.join(&plain);
        fs::create_dir_all(target.parent().unwrap_or(&staged))?;
        fs::write(target, bytes)?;
        done.insert(name, plain);
    }
    for name in INDEXES.iter().filter(|name| kernel.modules.join(name).is_file()) {
        fs::copy(kernel.modules.join(name), staged.join(name))?;
    }
    let mut depmod = tools.depmod();
    process::run_lines(depmod.arg("-b").arg(scratch).arg(&kernel.release), "depmod", |_| ())?;
    if fs::metadata(staged.join("modules.dep.bin")).map_or(0, |index| index.len()) == 0 {
        bail!("depmod wrote no modules.dep.bin, which IGT needs to load modules: use depmod of kmod");
    }
    tree.copy_folder(&format!("usr/{base}"), &staged)?;
    Ok(done.into_keys().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a kernel with the modules `files` and the built-in modules `built_in`.
    fn kernel(folder: &Path, files: &[&str], built_in: &[&str]) -> Kernel {
        let modules = folder.join("7.2.0-dev");
        fs::create_dir_all(modules.join("kernel")).unwrap();
        for file in files {
            fs::write(modules.join("kernel").join(file), "").unwrap();
        }
        let lines: String = built_in.iter().map(|name| format!("kernel/{name}.ko\n")).collect();
        fs::write(modules.join("modules.builtin"), lines).unwrap();
        Kernel {
            image: folder.join("bzImage"),
            modules,
            release: "7.2.0-dev".into(),
            hz: None,
            own_modules: BTreeMap::new(),
        }
    }

    /// Only the driver of the run is required; the error names a missing module and the option that builds it.
    #[test]
    fn only_the_runs_own_driver_is_needed() {
        let folder = tempfile::tempdir().unwrap();
        let built_in = ["virtio-pci", "virtio_console", "9p", "9pnet_virtio"];
        let with_xe = kernel(folder.path(), &["xe.ko.gz"], &built_in);
        let plain = of_guest(false);
        check(&with_xe, Driver::Xe, plain).unwrap();
        assert_eq!(
            check(&with_xe, Driver::I915, plain).unwrap_err().to_string(),
            "kernel 7.2.0-dev has no module i915, which --driver i915 needs: build the kernel with CONFIG_DRM_I915=m"
        );
        let folder = tempfile::tempdir().unwrap();
        let with_i915 = kernel(folder.path(), &["i915.ko", "9p.ko.zst"], &built_in[..2]);
        assert!(check(&with_i915, Driver::Xe, plain).unwrap_err().to_string().contains("CONFIG_DRM_XE=m"));
        assert_eq!(
            check(&with_i915, Driver::I915, plain).unwrap_err().to_string(),
            "kernel 7.2.0-dev has no module 9pnet_virtio, which the guest needs: build the kernel with CONFIG_NET_9P_VIRTIO"
        );
        assert_eq!(
            check(&with_xe, Driver::Xe, of_guest(true)).unwrap_err().to_string(),
            "kernel 7.2.0-dev has no module vfio_pci, which the guest needs: build the kernel with CONFIG_VFIO_PCI"
        );
        assert!(NEEDED_OUTER.starts_with(NEEDED));
        assert!(
            NEEDED_OUTER.iter().chain(&["xe", "i915"]).all(|name| OPTIONS.iter().any(|(module, _)| module == name))
        );
    }
}
