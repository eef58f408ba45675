// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Contents of a card file of this family.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

use arctic_base::limits::Limits;
use arctic_sriov::header::{Identity, Pin};
use serde::de::{Deserialize, Deserializer, Error, Unexpected};

use crate::generation::{GENERATIONS, Generation};
use crate::interrupts::InterruptSetup;
use crate::registers::RegisterFile;
use crate::registers::fuses::{
    DISPLAY_DISABLED, FUSE_LOCK, FUSE_STRAP, MAD_DIMM, PCH_DISPLAY_DISABLED, RP_STATE_CAP, RP0, RP1, RPN, SFUSE_STRAP,
};

/// 1 MiB in bytes.
const MIB: u64 = 1 << 20;

/// Lock bit of GGC.
const GGC_LOCK: u16 = 1;

/// Unit of the frequency limits in MHz (G67-038).
const FREQUENCY_UNIT: u32 = 50;

/// Properties that differ between cards of the family. Parsed from a card file; every value is validated while parsing,
/// and an error states the expected values.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct IntegratedProfile {
    /// Display name.
    pub name: String,
    /// The generation.
    pub generation: &'static Generation,
    /// PCI device ID.
    pub device: u16,
    /// PCI revision.
    pub revision: u8,
    /// Size of the aperture (BAR 2) in bytes: 64 MiB to 512 MiB, a power of two (G67-005).
    pub aperture: u64,
    /// Size of the table of the GGTT in bytes: 1 MiB for an address space of 1 GiB, or 2 MiB (G67-006).
    pub ggtt_table: u64,
    /// Both channels of memory have modules of the same size, so that drivers switch on the swizzling of tiled surfaces
    /// (G67-064).
    pub swizzling: bool,
    /// Whether the display is there.
    pub display: Display,
    /// Limits of the frequency.
    pub frequency: FrequencyLimits,
    /// Limits on the process resources that clients of a served card may consume.
    pub limits: Limits,
}

/// The display of a card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Display {
    /// A display engine with nothing connected (G67-024).
    #[default]
    Unconnected,
    /// Fuses disable the display (G67-020). Firmware leaves the master enable of the interrupts set: drivers that find the
    /// display fused off do not write it (G67-021).
    FusedOff,
}

/// Limits of the frequency in MHz, multiples of 50.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FrequencyLimits {
    /// Maximum (RP0).
    pub rp0: u32,
    /// Guaranteed (RP1).
    pub rp1: u32,
    /// Minimum (RPn).
    pub rpn: u32,
}

/// Value of the key `family` of a card file, which other families have too.
#[derive(Default, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Family {
    #[default]
    Gen6,
}

/// A card file of the family.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default, rename = "family")]
    _family: Family,
    name: String,
    #[serde(deserialize_with = "generation")]
    generation: &'static Generation,
    device: u16,
    revision: u8,
    #[serde(deserialize_with = "aperture")]
    aperture: u64,
    #[serde(deserialize_with = "ggtt")]
    ggtt: u64,
    #[serde(default)]
    swizzling: bool,
    #[serde(default)]
    display: Display,
    #[serde(deserialize_with = "frequency")]
    frequency: FrequencyLimits,
    #[serde(default)]
    limits: Limits,
}

impl<'de> Deserialize<'de> for IntegratedProfile {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let file = File::deserialize(from)?;
        let File { name, generation, device, revision, aperture, ggtt, swizzling, display, frequency, limits, .. } =
            file;
        if name.trim().is_empty() || name.len() > 80 || name.contains(char::is_control) {
            return Err(D::Error::custom("name is empty, too long or not printable: expected 1 to 80 characters"));
        }
        if !generation.devices.contains(&device) {
            let valid: Vec<_> = generation.devices.iter().map(|device| format!("{device:#06x}")).collect();
            let (name, valid) = (generation.name, valid.join(" or "));
            return Err(D::Error::custom(format!("device = {device:#06x} is not of {name}: expected {valid}")));
        }
        if display == Display::FusedOff && !generation.display_fuse {
            let name = generation.name;
            return Err(D::Error::custom(format!(
                "{name} has no fuse of the display: expected display = \"unconnected\""
            )));
        }
        Ok(IntegratedProfile {
            name,
            generation,
            device,
            revision,
            aperture,
            ggtt_table: ggtt,
            swizzling,
            display,
            frequency,
            limits,
        })
    }
}

fn generation<'de, D: Deserializer<'de>>(from: D) -> Result<&'static Generation, D::Error> {
    let name = String::deserialize(from)?;
    GENERATIONS.iter().find(|generation| generation.name == name).copied().ok_or_else(|| {
        let names: Vec<_> = GENERATIONS.iter().map(|generation| format!("\"{}\"", generation.name)).collect();
        D::Error::invalid_value(Unexpected::Str(&name), &format!("a generation: {}", names.join(" or ")).as_str())
    })
}

fn aperture<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    match String::deserialize(from)?.as_str() {
        "64MiB" => Ok(64 * MIB),
        "128MiB" => Ok(128 * MIB),
        "256MiB" => Ok(256 * MIB),
        "512MiB" => Ok(512 * MIB),
        other => {
            let expected = "\"64MiB\", \"128MiB\", \"256MiB\" or \"512MiB\"";
            Err(D::Error::invalid_value(Unexpected::Str(other), &expected))
        }
    }
}

/// Returns the size of the table for a size of the address space.
fn ggtt<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    match String::deserialize(from)?.as_str() {
        "1GiB" => Ok(MIB),
        "2GiB" => Ok(2 * MIB),
        other => Err(D::Error::invalid_value(Unexpected::Str(other), &"\"1GiB\" or \"2GiB\"")),
    }
}

fn frequency<'de, D: Deserializer<'de>>(from: D) -> Result<FrequencyLimits, D::Error> {
    let limits = FrequencyLimits::deserialize(from)?;
    let FrequencyLimits { rp0, rp1, rpn } = limits;
    let valid = |mhz: u32| mhz.is_multiple_of(FREQUENCY_UNIT) && (50..=12750).contains(&mhz);
    if [rp0, rp1, rpn].into_iter().all(valid) && rpn <= rp1 && rp1 <= rp0 {
        return Ok(limits);
    }
    let expected = "expected multiples of 50 MHz from 50 to 12750 with rpn <= rp1 <= rp0";
    Err(D::Error::custom(format!("[frequency] has rpn = {rpn}, rp1 = {rp1}, rp0 = {rp0}: {expected}")))
}

impl IntegratedProfile {
    /// The PCI identity: a VGA compatible display controller (G67-002) of Intel's reference board.
    pub fn pci_identity(&self) -> Identity {
        Identity {
            vendor: 0x8086,
            device: self.device,
            revision: self.revision,
            class: 0x03_00_00,
            subsystem_vendor: 0x8086,
            subsystem: 0x2010,
            serial: 0,
            pin: Some(Pin::A),
        }
    }

    /// GGC: size of the table of the GGTT in bits 9:8, no stolen memory in bits 7:3 (G67-006), locked by firmware.
    pub fn graphics_control(&self) -> u16 {
        let mebibytes = u16::try_from(self.ggtt_table / MIB);
        debug_assert!(matches!(mebibytes, Ok(1 | 2)), "{} bytes of entries", self.ggtt_table);
        mebibytes.unwrap_or_default() << 8 | GGC_LOCK
    }

    /// MSAC: size of the aperture in bits 2:1, which determine the bits of its BAR that are read-only: 0 is 128 MiB, 1 is 256
    /// MiB, 3 is 512 MiB. There is no value for 64 MiB.
    pub fn aperture_control(&self) -> u8 {
        match self.aperture / MIB {
            512 => 3 << 1,
            256 => 1 << 1,
            _ => 0,
        }
    }

    /// Creates the card's registers, in their power-on state.
    pub fn registers(&self) -> RegisterFile {
        let mut file = self.generation.registers.file(self.generation.engines);
        let FrequencyLimits { rp0, rp1, rpn } = self.frequency;
        let [rp0, rp1, rpn] = [rp0, rp1, rpn].map(|mhz| mhz / FREQUENCY_UNIT);
        file.set_reset(RP_STATE_CAP, RP0.of(rp0) | RP1.of(rp1) | RPN.of(rpn));
        if self.swizzling {
            file.set_reset(MAD_DIMM.saturating_add(4), file.reset_value(MAD_DIMM));
        }
        if self.display == Display::FusedOff {
            file.set_reset(FUSE_STRAP, DISPLAY_DISABLED.mask());
            file.set_reset(SFUSE_STRAP, FUSE_LOCK.mask() | PCH_DISPLAY_DISABLED.mask());
        }
        file.reset();
        file
    }

    /// Properties of the interrupts.
    pub fn interrupt_setup(&self) -> InterruptSetup {
        let enabled_by_firmware = self.display == Display::FusedOff;
        InterruptSetup { pch_event: self.generation.pch_event, enabled_by_firmware }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use arctic_fidelity::proves;

    use super::*;

    const IVB: &str = include_str!("../configs/ivb.toml");
    const SNB: &str = include_str!("../configs/snb.toml");

    /// The built-in card of Sandy Bridge.
    pub(crate) fn snb() -> IntegratedProfile {
        toml::from_str(SNB).unwrap()
    }

    /// The built-in card of Ivy Bridge with the display fused off.
    pub(crate) fn fused() -> IntegratedProfile {
        toml::from_str(include_str!("../configs/ivb-fused.toml")).unwrap()
    }

    /// The built-in card of Ivy Bridge.
    pub(crate) fn ivb() -> IntegratedProfile {
        toml::from_str(IVB).unwrap()
    }

    #[test]
    fn the_card_file_is_read() {
        let ivb = ivb();
        assert_eq!((ivb.generation.name, ivb.device, ivb.revision), ("ivy-bridge", 0x0162, 9));
        assert_eq!((ivb.aperture, ivb.ggtt_table, ivb.graphics_control()), (256 << 20, 1 << 20, 0x101));
        assert!(!ivb.swizzling);
        // 1150, 650 and 350 MHz.
        assert_eq!(ivb.registers().value(RP_STATE_CAP), 0x0007_0d17);
    }

    /// The cards with and without swizzling differ in nothing else.
    #[test]
    fn the_swizzled_card_is_the_same_card() {
        let key = "swizzling = true\n";
        let text = |file: &str| {
            let lines = file.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
            lines.map(|line| format!("{line}\n")).collect::<String>()
        };
        let (plain, swizzled) = (text(IVB), text(include_str!("../configs/ivb-swizzled.toml")));
        assert!(swizzled.contains(key) && swizzled.replace(key, "") == plain);
        assert!(toml::from_str::<IntegratedProfile>(&swizzled).unwrap().swizzling);
    }

    /// ILK-046: the sizes of the aperture are those of the document.
    #[test]
    fn the_aperture_has_the_size_of_the_card_file() {
        proves!(ILK_046, "the sizes of the aperture are those of the document");
        for mebibytes in [64_u64, 128, 256, 512] {
            let card = IVB.replace("256MiB", &format!("{mebibytes}MiB"));
            let card: IntegratedProfile = toml::from_str(&card).unwrap();
            let bars = arctic_base::gpu::Model::physical_function(&card, 0).unwrap();
            let aperture = bars.bars().iter().find(|bar| bar.index() == 2).map(|bar| bar.size());
            assert_eq!(aperture, Some(mebibytes << 20));
        }
    }

    /// G67-001, G67-020: the other cards.
    #[test]
    fn the_other_card_files_are_read() {
        let snb = snb();
        assert_eq!((snb.generation.name, snb.device, snb.revision), ("sandy-bridge", 0x0112, 9));
        assert_eq!((snb.aperture, snb.ggtt_table, snb.display), (256 << 20, 1 << 20, Display::Unconnected));
        // 1350, 850 and 850 MHz.
        assert_eq!(snb.registers().value(RP_STATE_CAP), 0x0011_111b);
        let (ivb, fused) = (ivb(), fused());
        assert_eq!((fused.device, fused.display, ivb.display), (ivb.device, Display::FusedOff, Display::Unconnected));
        let fuses = |profile: &IntegratedProfile| [FUSE_STRAP, SFUSE_STRAP].map(|at| profile.registers().value(at));
        assert_eq!((fuses(&ivb), fuses(&fused)), ([0, 1 << 13], [1 << 30, 1 << 13 | 1 << 7]));
    }

    /// G67-022: Sandy Bridge has no fuse of the display that a driver reads.
    #[test]
    fn a_fused_display_is_refused_where_no_fuse_is_read() {
        let file = SNB.replace("[frequency]", "display = \"fused-off\"\n[frequency]");
        let error = toml::from_str::<IntegratedProfile>(&file).unwrap_err();
        assert!(error.message().contains("sandy-bridge has no fuse of the display"), "{}", error.message());
    }

    #[test]
    fn mistakes_are_refused_with_the_expected_values() {
        for (from, to, expected) in [
            ("\"ivy-bridge\"", "\"haswell\"", "a generation: \"sandy-bridge\" or \"ivy-bridge\""),
            ("[frequency]", "display = \"hdmi\"\n[frequency]", "`unconnected` or `fused-off`"),
            ("0x0162", "0x56c0", "expected 0x0162 or 0x0152"),
            ("\"256MiB\"", "\"1GiB\"", "\"64MiB\""),
            ("ggtt = \"1GiB\"", "ggtt = \"4GiB\"", "\"1GiB\" or \"2GiB\""),
            ("rp1 = 650", "rp1 = 651", "multiples of 50 MHz"),
            ("rp1 = 650", "rp1 = 1200", "rpn <= rp1 <= rp0"),
            ("rp1 = 650", "rp3 = 650", "unknown field"),
            ("revision = 9", "revision = 9\nswizzling = 1", "expected a boolean"),
            ("revision = 9", "revision = 256", "u8"),
            ("device = 0x0162\n", "", "missing field `device`"),
        ] {
            assert!(IVB.contains(from), "{from}");
            let error = toml::from_str::<IntegratedProfile>(&IVB.replacen(from, to, 1)).unwrap_err();
            assert!(error.message().contains(expected), "{to}: {}", error.message());
        }
    }
}
