// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The card's functions as exposed by sysfs and debugfs.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// The root of sysfs; tests use a temporary directory.
#[derive(Clone, Debug)]
pub struct Sysfs {
    root: PathBuf,
}

impl Default for Sysfs {
    fn default() -> Self {
        Self { root: "/sys".into() }
    }
}

/// Resources of a VF as printed by its driver (`xe: xe_gt_sriov_vf_print_config`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    /// GGTT address space in bytes.
    pub ggtt_bytes: Option<u64>,
    /// Local memory in bytes.
    pub lmem_bytes: Option<u64>,
    /// Number of GuC context IDs.
    pub contexts: Option<u32>,
    /// Number of doorbells.
    pub doorbells: Option<u32>,
}

impl Sysfs {
    /// Uses a tree at `root`.
    #[cfg(test)]
    pub fn at(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// Returns the sysfs directory of the PCI function at `address`.
    pub fn device(&self, address: &str) -> PathBuf {
        self.root.join("bus/pci/devices").join(address)
    }

    /// Enables or disables automatic driver binding for new VFs of `pf`.
    pub fn set_autoprobe(&self, pf: &str, on: bool) -> Result<()> {
        self.write(pf, "sriov_drivers_autoprobe", if on { "1" } else { "0" })
    }

    /// Enables `count` VFs of `pf`, or disables all with `count` 0. Blocks until the kernel has finished.
    pub fn set_vfs(&self, pf: &str, count: u8) -> Result<()> {
        self.write(pf, "sriov_numvfs", &count.to_string())
    }

    fn write(&self, address: &str, attribute: &str, value: &str) -> Result<()> {
        let path = self.device(address).join(attribute);
        fs::write(&path, value).with_context(|| format!("{value} cannot be written to {}", path.display()))
    }

    /// Returns the PCI address of VF `vf` (from 1) of `pf`, if it exists.
    pub fn virtual_function(&self, pf: &str, vf: u8) -> Option<String> {
        name(fs::read_link(self.device(pf).join(format!("virtfn{}", vf.checked_sub(1)?))).ok()?)
    }

    /// Returns the name of the driver bound to `address`.
    pub fn driver(&self, address: &str) -> Option<String> {
        name(fs::read_link(self.device(address).join("driver")).ok()?)
    }

    /// Binds the function at `address` to `driver`, in place of its present driver.
    pub fn bind(&self, address: &str, driver: &str) -> Result<()> {
        self.write(address, "driver_override", driver)?;
        if self.driver(address).is_some() {
            self.write(address, "driver/unbind", address)?;
        }
        let path = self.root.join("bus/pci/drivers_probe");
        fs::write(&path, address).with_context(|| format!("{address} cannot be written to {}", path.display()))?;
        let bound = self.driver(address);
        ensure!(
            bound.as_deref() == Some(driver),
            "{address} has the driver {}, not {driver}",
            bound.as_deref().unwrap_or("none")
        );
        Ok(())
    }

    /// Returns the number of the IOMMU group of the function at `address`.
    pub fn iommu_group(&self, address: &str) -> Option<String> {
        name(fs::read_link(self.device(address).join("iommu_group")).ok()?)
    }

    /// Returns the default domain of an IOMMU group, such as `identity`, `DMA` or `DMA-FQ`.
    pub fn iommu_domain(&self, group: &str) -> Result<String> {
        let path = self.root.join("kernel/iommu_groups").join(group).join("type");
        let text = fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
        Ok(text.trim().to_owned())
    }

    /// Returns the name of the render node of the function at `address`, for example `renderD129`.
    pub fn render_node(&self, address: &str) -> Option<String> {
        let entries = fs::read_dir(self.device(address).join("drm")).ok()?;
        let mut names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.find(|name| name.starts_with("renderD"))
    }

    /// Returns the PCI address of the device of a render node.
    pub fn address_of(&self, node: &Path) -> Option<String> {
        name(fs::read_link(self.root.join("class/drm").join(node.file_name()?).join("device")).ok()?)
    }

    /// Returns the resources of the VF at `address`; empty for a PF or if debugfs is not readable.
    pub fn quota(&self, address: &str) -> Quota {
        let folder = self.root.join("kernel/debug/dri").join(address);
        let texts =
            ["tile0/gt0/vf/self_config", "gt0/vf/self_config"].map(|path| fs::read_to_string(folder.join(path)));
        texts.into_iter().find_map(io::Result::ok).map(|text| Quota::parse(&text)).unwrap_or_default()
    }
}

/// Returns the last component of a path.
fn name(path: PathBuf) -> Option<String> {
    Some(path.file_name()?.to_string_lossy().into_owned())
}

impl Quota {
    fn parse(text: &str) -> Self {
        let number = |key: &str| {
            let line = text.lines().find_map(|line| line.trim().strip_prefix(key))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        let count = |key: &str| number(key).and_then(|count| count.try_into().ok());
        Self {
            ggtt_bytes: number("GGTT size:"),
            lmem_bytes: number("LMEM size:"),
            contexts: count("GuC contexts:"),
            doorbells: count("GuC doorbells:"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// `xe: xe_gt_sriov_vf_print_config`.
    #[test]
    fn a_quota_is_what_the_driver_prints() {
        let text = "GGTT range:\t0xfb600000-0xfedfffff\nGGTT size:\t58720256 (56.0 MiB)\nLMEM size:\t134217728 (128 MiB)\n\
                    GuC contexts:\t1024\nGuC doorbells:\t4\n";
        let quota = Quota::parse(text);
        assert_eq!((quota.ggtt_bytes, quota.lmem_bytes), (Some(56 << 20), Some(128 << 20)));
        assert_eq!((quota.contexts, quota.doorbells), (Some(1024), Some(4)));
        assert_eq!(Quota::parse(""), Quota::default());
    }

    #[test]
    fn functions_are_found_by_the_kernel_s_links() {
        let folder = tempfile::tempdir().unwrap();
        let devices = folder.path().join("bus/pci/devices");
        let (pf, vf) = ("0000:00:01.0", "0000:00:01.1");
        fs::create_dir_all(devices.join(pf)).unwrap();
        fs::create_dir_all(devices.join(vf).join("drm/renderD129")).unwrap();
        fs::create_dir_all(devices.join(vf).join("drm/card1")).unwrap();
        symlink(format!("../{vf}"), devices.join(pf).join("virtfn0")).unwrap();
        symlink("../../../bus/pci/drivers/xe", devices.join(vf).join("driver")).unwrap();
        fs::create_dir_all(folder.path().join("class/drm/renderD129")).unwrap();
        symlink(format!("../../../{vf}"), folder.path().join("class/drm/renderD129/device")).unwrap();
        let sysfs = Sysfs::at(folder.path());
        assert_eq!(sysfs.virtual_function(pf, 1).as_deref(), Some(vf));
        assert_eq!(sysfs.virtual_function(pf, 2), None);
        assert_eq!((sysfs.driver(vf).as_deref(), sysfs.driver(pf)), (Some("xe"), None));
        assert_eq!(sysfs.render_node(vf).as_deref(), Some("renderD129"));
        assert_eq!(sysfs.address_of(Path::new("/dev/dri/renderD129")).as_deref(), Some(vf));
        assert_eq!(sysfs.quota(vf), Quota::default());
        fs::create_dir_all(folder.path().join("kernel/debug/dri").join(vf).join("gt0/vf")).unwrap();
        let config = folder.path().join("kernel/debug/dri").join(vf).join("gt0/vf/self_config");
        fs::write(config, "GuC doorbells:\t4\n").unwrap();
        assert_eq!(sysfs.quota(vf).doorbells, Some(4));
    }

    /// A driver that does not bind is named.
    #[test]
    fn a_function_is_bound_to_the_driver_of_choice() {
        let folder = tempfile::tempdir().unwrap();
        let address = "0000:00:01.1";
        let device = folder.path().join("bus/pci/devices").join(address);
        fs::create_dir_all(&device).unwrap();
        fs::create_dir_all(folder.path().join("bus/pci/drivers/xe")).unwrap();
        fs::create_dir_all(folder.path().join("kernel/iommu_groups/7")).unwrap();
        fs::write(folder.path().join("kernel/iommu_groups/7/type"), "identity\n").unwrap();
        symlink("../../../../kernel/iommu_groups/7", device.join("iommu_group")).unwrap();
        let sysfs = Sysfs::at(folder.path());
        assert_eq!(sysfs.iommu_group(address).as_deref(), Some("7"));
        assert_eq!(sysfs.iommu_domain("7").unwrap(), "identity");
        let error = sysfs.bind(address, "vfio-pci").unwrap_err().to_string();
        assert_eq!(error, "0000:00:01.1 has the driver none, not vfio-pci");
        symlink("../../drivers/xe", device.join("driver")).unwrap();
        sysfs.bind(address, "xe").unwrap();
        let read = |path: &str| fs::read_to_string(folder.path().join("bus/pci").join(path)).unwrap();
        assert_eq!(read("drivers_probe"), address);
        assert_eq!(read("drivers/xe/unbind"), address);
        assert_eq!(read("devices/0000:00:01.1/driver_override"), "xe");
    }
}
