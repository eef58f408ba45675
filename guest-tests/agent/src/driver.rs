// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The kernel drivers for the card, and the requirements of each on a guest's image, command line and kernel log.

use std::path::Path;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::sysfs::Sysfs;

/// A Linux driver for the card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Driver {
    /// The default driver, for the PF and the VFs.
    #[default]
    Xe,
    /// The older driver: for the PF only, because it does not support SR-IOV on a Flex card; the driver of integrated
    /// GPUs.
    I915,
}

impl Driver {
    /// The module's name, which is also its DRM driver name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Xe => "xe",
            Self::I915 => "i915",
        }
    }

    /// Returns the driver with the DRM driver name `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::value_variants().iter().copied().find(|driver| driver.name() == name)
    }

    /// Returns whether this driver is loaded in the running kernel.
    pub fn is_loaded(self) -> bool {
        Path::new("/sys/module").join(self.name()).exists()
    }

    /// Returns whether this driver is bound to the PCI function at `address` in the running kernel.
    pub fn is_bound(self, address: &str) -> bool {
        Sysfs::default().driver(address).as_deref() == Some(self.name())
    }

    fn others(self) -> impl Iterator<Item = Self> {
        Self::value_variants().iter().copied().filter(move |driver| *driver != self)
    }

    /// Returns the modprobe configuration that makes this driver bind to the card and prevents hotplug from loading the
    /// others. The drivers do not bind to a data center GPU by default: `forced` is its PCI device ID. They bind to an
    /// integrated GPU without options.
    pub fn modprobe_options(self, forced: Option<u16>) -> String {
        let blacklist: String = self.others().map(|driver| format!("blacklist {driver}\n")).collect();
        let options = forced.map(|device| format!("options {self} force_probe={device:04x}\n"));
        options.unwrap_or_default() + &blacklist
    }

    /// Returns kernel arguments that prevent the other drivers from binding to the card with PCI device ID `device`,
    /// even if they are loaded.
    pub fn blocked_others(self, device: u16) -> String {
        self.others().map(|driver| format!("{driver}.force_probe=!{device:04x}")).collect::<Vec<_>>().join(" ")
    }

    /// Modules that a distribution's hotplug loads for the PF.
    pub fn hotplugged(self) -> &'static [&'static str] {
        match self {
            Self::Xe => &["xe", "mei", "mei_me", "mei_gsc"],
            // i915's two HECI engines are auxiliary devices, like xe's HECI engine. The PXP component driver is loaded
            // after them.
            Self::I915 => &["i915", "mei", "mei_me", "mei_gsc"],
        }
    }

    /// Log lines that a successful probe prints, each as a set of words that one line must contain.
    pub fn probed(self, card: &str) -> Vec<Vec<&str>> {
        let initialized = match self {
            Self::Xe => "Initialized xe",
            Self::I915 => "Initialized i915",
        };
        vec![vec![initialized, card]]
    }

    /// Additional log lines of a successful probe on a PF, where the driver loads firmware. i915 loads HuC firmware
    /// through `mei_gsc`; a kernel without that module (`mei_gsc` is false) logs no HuC firmware.
    pub fn probed_physical(self, card: &str, mei_gsc: bool) -> Vec<Vec<&str>> {
        match self {
            Self::Xe => vec![vec![card, "GuC firmware from"]],
            // Linux 6.1 has `GuC submission enabled`, 7.2 has `GUC: submission enabled`.
            Self::I915 => [
                vec![card, "GuC firmware i915/dg2_guc_70.bin"],
                vec![card, "submission enabled"],
                vec![card, "SLPC enabled"],
            ]
            .into_iter()
            .chain(mei_gsc.then(|| vec![card, "HuC firmware i915/dg2_huc_gsc.bin"]))
            .collect(),
        }
    }

    /// Name prefixes of the modules that the report lists as drivers of the card.
    pub fn of_the_card(self) -> &'static [&'static str] {
        match self {
            Self::Xe => &["xe", "mei", "pmt", "intel_vsec"],
            Self::I915 => &["i915", "mei"],
        }
    }
}

impl std::fmt::Display for Driver {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_driver_is_blocked_for_the_card() {
        assert_eq!(Driver::Xe.modprobe_options(Some(0x56c0)), "options xe force_probe=56c0\nblacklist i915\n");
        assert_eq!(Driver::I915.modprobe_options(Some(0x56c0)), "options i915 force_probe=56c0\nblacklist xe\n");
        assert_eq!(Driver::I915.modprobe_options(None), "blacklist xe\n");
        assert_eq!(Driver::Xe.blocked_others(0x56c0), "i915.force_probe=!56c0");
        assert_eq!(Driver::named("i915"), Some(Driver::I915));
        assert_eq!(Driver::named("vgem"), None);
    }
}
