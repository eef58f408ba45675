//! The kernel drivers that judge the card: what a guest's image, its load and its log have to show of each.

use std::path::Path;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// The PCI device number that the guest's driver is to take although it is not in the driver's own list.
const FORCE_PROBE: &str = "56c0";

/// A driver that Linux has for the card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Driver {
    /// The card's own: it runs the physical function and the virtual ones.
    #[default]
    Xe,
    /// The older one, on the physical function alone: it has no SR-IOV for this card (contract G).
    I915,
}

impl Driver {
    /// The module's name, which is also its DRM name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Xe => "xe",
            Self::I915 => "i915",
        }
    }

    /// The driver whose DRM name is `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::value_variants().iter().copied().find(|driver| driver.name() == name)
    }

    /// Whether the kernel that this program runs on has loaded it.
    pub fn is_loaded(self) -> bool {
        Path::new("/sys/module").join(self.name()).exists()
    }

    fn others(self) -> impl Iterator<Item = Self> {
        Self::value_variants().iter().copied().filter(move |driver| *driver != self)
    }

    /// modprobe's configuration: this driver takes the card, and hotplug does not load the others.
    pub fn modprobe_options(self) -> String {
        let blacklist: String = self.others().map(|driver| format!("blacklist {driver}\n")).collect();
        format!("options {self} force_probe={FORCE_PROBE}\n{blacklist}")
    }

    /// The kernel's arguments by which the others leave the card alone, whoever loads them.
    pub fn blocked_others(self) -> String {
        self.others().map(|driver| format!("{driver}.force_probe=!{FORCE_PROBE}")).collect::<Vec<_>>().join(" ")
    }

    /// Modules that a distribution's hotplug loads for the physical function.
    pub fn hotplugged(self) -> &'static [&'static str] {
        match self {
            Self::Xe => &["xe", "mei", "mei_me", "mei_gsc"],
            // Its two engines behind HECI are auxiliary devices as xe's one is; the component driver of PXP follows.
            Self::I915 => &["i915", "mei", "mei_me", "mei_gsc"],
        }
    }

    /// Log lines without which a probe did not happen, as sets of words that one line has to have.
    pub fn probed(self, card: &'static str) -> Vec<Vec<&'static str>> {
        let initialized = match self {
            Self::Xe => "Initialized xe",
            Self::I915 => "Initialized i915",
        };
        vec![vec![initialized, card]]
    }

    /// And on a physical function, which loads the firmware.
    pub fn probed_physical(self, card: &'static str) -> Vec<Vec<&'static str>> {
        match self {
            Self::Xe => vec![vec![card, "GuC firmware from"]],
            Self::I915 => vec![
                vec![card, "GuC firmware i915/dg2_guc_70.bin"],
                vec![card, "HuC firmware i915/dg2_huc_gsc.bin"],
                vec![card, "GUC: submission enabled"],
                vec![card, "GUC: SLPC enabled"],
            ],
        }
    }

    /// Modules that the report names as the card's own, by how their names begin.
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
    fn each_driver_takes_the_card_alone() {
        assert_eq!(Driver::Xe.modprobe_options(), "options xe force_probe=56c0\nblacklist i915\n");
        assert_eq!(Driver::I915.modprobe_options(), "options i915 force_probe=56c0\nblacklist xe\n");
        assert_eq!(Driver::Xe.blocked_others(), "i915.force_probe=!56c0");
        assert_eq!(Driver::named("i915"), Some(Driver::I915));
        assert_eq!(Driver::named("vgem"), None);
    }
}
