// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What the firmware of the graphics system controller reports about itself and the card.

use serde::Deserialize;
use serde::de::{self, Deserializer, Unexpected};

/// What the firmware reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Controller {
    /// The versions.
    pub versions: FirmwareVersions,
    /// SKU of the die (igsc: GSC_SKUID).
    pub sku: u32,
    /// Stepping of the die (igsc: GSC_SOC_STEP).
    pub step: u32,
    /// PCI subsystem IDs: vendor, device.
    pub subsystem: (u16, u16),
}

/// Stepping of the die for tools that know none of this name (igsc: GSC_SOC_STEP_INVALID_ID).
const UNKNOWN_STEP: u32 = 0xff;

/// The stepping with this name, in the protocol of updates (igsc: gsc_soc_step_id). The numbers of later ones are not
/// public.
pub fn step(name: &str) -> u32 {
    match name {
        "A0" => 0,
        "A1" => 1,
        "B0" => 2,
        _ => UNKNOWN_STEP,
    }
}

/// Versions of the firmware in the card's flash, from its card file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FirmwareVersions {
    /// Firmware of the controller, as the update client reports it.
    #[serde(deserialize_with = "version")]
    pub graphics: GraphicsVersion,
    /// The same firmware, as MKHI reports it.
    #[serde(deserialize_with = "version")]
    pub controller: ControllerVersion,
    /// Data partition.
    #[serde(deserialize_with = "version")]
    pub data: DataVersion,
    /// Expansion ROM.
    pub option_rom: OptionRomVersions,
}

impl FirmwareVersions {
    /// Versions of a card whose card file has none: of a Flex 170 (intel/xpumanager: doc/xpum_win_user_guide.md), and where
    /// none is public, of an Arc A750 (Solaris17/Arc-Firmware, issue 2).
    pub const FLEX_170: Self = FirmwareVersions {
        graphics: GraphicsVersion { project: *b"DG02", hotfix: 1, build: 3185 },
        controller: ControllerVersion { major: 101, minor: 0, hotfix: 1, build: 3185 },
        data: DataVersion { major: 101, oem: 651, vcn: 1 },
        option_rom: OptionRomVersions {
            code: [0x14, 0, 0x31, 0x04, 0, 0, 0, 0],
            data: [0x14, 0, 0x24, 0x04, 0, 0, 0, 0],
        },
    };
}

/// Version of the graphics firmware (igsc: igsc_fw_version), `PROJECT_HOTFIX.BUILD` in text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphicsVersion {
    /// Name of the project, printable ASCII.
    pub project: [u8; 4],
    /// Number of the hotfix.
    pub hotfix: u16,
    /// Number of the build.
    pub build: u16,
}

impl GraphicsVersion {
    /// The version in messages.
    pub fn bytes(self) -> [u8; 8] {
        let ([a, b, c, d], [e, f], [g, h]) = (self.project, self.hotfix.to_le_bytes(), self.build.to_le_bytes());
        [a, b, c, d, e, f, g, h]
    }
}

/// Version of the controller's firmware (mei: mkhi_fw_ver_block), `MAJOR.MINOR.HOTFIX.BUILD` in text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControllerVersion {
    /// Major version.
    pub major: u8,
    /// Minor version.
    pub minor: u16,
    /// Number of the hotfix.
    pub hotfix: u16,
    /// Number of the build.
    pub build: u16,
}

/// Version of the data partition (igsc: igsc_fwdata_version), `MAJOR.OEM.VCN` in text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataVersion {
    /// Major version of the project.
    pub major: u16,
    /// Version of the manufacturer's data.
    pub oem: u32,
    /// Version control number.
    pub vcn: u16,
}

/// Versions of the parts of the expansion ROM (igsc: igsc_oprom_version), each as eight bytes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OptionRomVersions {
    /// Code.
    pub code: [u8; 8],
    /// Data.
    pub data: [u8; 8],
}

/// A version that a card file has as text.
trait Version: Sized {
    /// Form of the text, for error messages.
    const FORM: &'static str;

    /// The version in `text`.
    fn parse(text: &str) -> Option<Self>;
}

/// The numbers in `text`, separated by dots.
fn numbers<const N: usize>(text: &str) -> Option<[u32; N]> {
    let numbers: Vec<_> = text.split('.').map(|number| number.parse().ok()).collect::<Option<_>>()?;
    numbers.try_into().ok()
}

impl Version for GraphicsVersion {
    const FORM: &'static str = "a version such as \"DG02_1.3185\"";

    fn parse(text: &str) -> Option<Self> {
        let (project, version) = text.rsplit_once('_')?;
        let project: [u8; 4] = project.as_bytes().try_into().ok()?;
        let [hotfix, build] = numbers(version)?;
        let valid = project.iter().all(u8::is_ascii_graphic);
        valid.then_some(GraphicsVersion { project, hotfix: hotfix.try_into().ok()?, build: build.try_into().ok()? })
    }
}

impl Version for ControllerVersion {
    const FORM: &'static str = "a version of four numbers such as \"101.0.1.3185\"";

    fn parse(text: &str) -> Option<Self> {
        let [major, minor, hotfix, build] = numbers(text)?;
        Some(ControllerVersion {
            major: major.try_into().ok()?,
            minor: minor.try_into().ok()?,
            hotfix: hotfix.try_into().ok()?,
            build: build.try_into().ok()?,
        })
    }
}

impl Version for DataVersion {
    const FORM: &'static str = "a version of three numbers such as \"101.651.1\"";

    fn parse(text: &str) -> Option<Self> {
        let [major, oem, vcn] = numbers(text)?;
        Some(DataVersion { major: major.try_into().ok()?, oem, vcn: vcn.try_into().ok()? })
    }
}

fn version<'de, D: Deserializer<'de>, V: Version>(from: D) -> Result<V, D::Error> {
    let text = String::deserialize(from)?;
    V::parse(&text).ok_or_else(|| de::Error::invalid_value(Unexpected::Str(&text), &V::FORM))
}
