// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Contents of a card file: the enabled units of the die and the size of local memory.

pub mod limits;
pub mod provision;
mod register_values;

use arctic_sriov::number::low;
use serde::de::{Deserialize, Deserializer, Error, Unexpected};

use self::limits::Limits;
use self::provision::{GgttAccess, Provision};
use crate::generation::{Generation, XE_HPG};
use crate::registers::RegisterFile;
use crate::topology::{EngineClass, EngineId, EngineInfo};

/// 1 GiB in bytes.
const GIB: u64 = 1 << 30;

/// Properties that differ between cards with the same die. Parsed from a card file; every value is validated while
/// parsing, and an error states the expected values.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CardProfile {
    /// Display name.
    #[serde(deserialize_with = "name")]
    pub name: String,
    /// Size of local memory in bytes: a power of two between 1 and 16 GiB, because one BAR exposes all of it (V13-004).
    #[serde(deserialize_with = "local_memory")]
    pub local_memory: u64,
    /// PCI revision, which encodes the die's stepping (xe: xe_step.c, dg2_g10_revid_step_tbl).
    #[serde(deserialize_with = "revision")]
    pub revision: u8,
    /// Number of virtual functions; 0 is a card without SR-IOV.
    #[serde(default = "most_vfs", deserialize_with = "total_vfs")]
    pub total_vfs: u8,
    /// How VFs access the GGTT.
    #[serde(default)]
    pub ggtt: GgttAccess,
    /// Resources of each VF if no PF driver provisions the card.
    #[serde(default)]
    pub provision: Provision,
    /// Limits on the process resources that clients of a served card may consume.
    #[serde(default)]
    pub limits: Limits,
    /// Units that the fuses leave enabled.
    pub fuses: Fuses,
    /// Frequency limits of the GT.
    pub frequency: Frequency,
}

/// Contents of the fuse registers: a set bit is an enabled unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fuses {
    /// Dual subslices, 0x913c and 0x9144. A compute engine exists if its byte of the mask is not zero.
    #[serde(deserialize_with = "dss_mask")]
    pub dss_mask: u32,
    /// Pairs of EUs in a dual subslice, 0x9134.
    #[serde(deserialize_with = "eu_mask")]
    pub eu_mask: u8,
    /// Memory slices with their L3 banks, 0x9118.
    #[serde(deserialize_with = "mslice_mask")]
    pub mslice_mask: u8,
    /// Video decode engines, 0x9140 bits 7:0.
    #[serde(deserialize_with = "vdbox_mask")]
    pub vdbox_mask: u8,
    /// Video enhancement engines, 0x9140 bits 19:16.
    #[serde(deserialize_with = "vebox_mask")]
    pub vebox_mask: u8,
}

/// Frequency limits in MHz, multiples of 50 MHz, the unit of RP_STATE_CAP (0x145998).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields, try_from = "FrequencyFile")]
pub struct Frequency {
    /// Maximum (RP0).
    pub rp0: u32,
    /// Sustained (RP1).
    pub rp1: u32,
    /// Minimum (RPn).
    pub rpn: u32,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct FrequencyFile {
    #[serde(deserialize_with = "mhz")]
    rp0: u32,
    #[serde(deserialize_with = "mhz")]
    rp1: u32,
    #[serde(deserialize_with = "mhz")]
    rpn: u32,
}

impl TryFrom<FrequencyFile> for Frequency {
    type Error = String;

    fn try_from(file: FrequencyFile) -> Result<Self, String> {
        let FrequencyFile { rp0, rp1, rpn } = file;
        if rpn <= rp1 && rp1 <= rp0 {
            return Ok(Frequency { rp0, rp1, rpn });
        }
        Err(format!("rpn = {rpn}, rp1 = {rp1}, rp0 = {rp0} is out of order: expected rpn <= rp1 <= rp0"))
    }
}

impl CardProfile {
    /// Returns the hardware generation of the card.
    pub fn generation(&self) -> &'static Generation {
        &XE_HPG
    }

    /// Creates the card's registers, in their power-on state.
    pub fn registers(&self) -> RegisterFile {
        let Generation { registers, engine_registers, engines, .. } = *self.generation();
        RegisterFile::new(registers, engine_registers, engines).with_reset_values(&register_values::values(self))
    }

    /// Returns whether the card has `engine`; render and copy are on every card.
    pub fn has(&self, engine: EngineId) -> bool {
        let EngineInfo { class, instance, .. } = *self.generation().engines.info(engine);
        match class {
            EngineClass::Render | EngineClass::Copy => true,
            EngineClass::Compute => self.has_compute(instance),
            EngineClass::VideoDecode => self.has_video_decode(instance),
            EngineClass::VideoEnhance => self.has_video_enhance(instance),
        }
    }

    /// Returns whether compute engine `instance` has an enabled dual subslice (xe: xe_hw_engine.c, eight dual subslices
    /// per engine).
    pub fn has_compute(&self, instance: u8) -> bool {
        instance < 4 && self.fuses.dss_mask >> (8 * instance) & 0xff != 0
    }

    /// Returns whether the card has video decode engine `instance`.
    pub fn has_video_decode(&self, instance: u8) -> bool {
        instance < 8 && self.fuses.vdbox_mask >> instance & 1 != 0
    }

    /// Returns whether the card has video enhancement engine `instance`.
    pub fn has_video_enhance(&self, instance: u8) -> bool {
        instance < 4 && self.fuses.vebox_mask >> instance & 1 != 0
    }
}

fn name<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let name = String::deserialize(from)?;
    if name.trim().is_empty() || name.len() > 80 || name.contains(char::is_control) {
        return Err(D::Error::invalid_value(Unexpected::Str(&name), &"a name of 1 to 80 printable characters"));
    }
    Ok(name)
}

fn local_memory<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let text = String::deserialize(from)?;
    let gib = text.strip_suffix("GiB").and_then(|number| number.trim_end().parse::<u64>().ok());
    match gib {
        Some(gib @ (1 | 2 | 4 | 8 | 16)) => Ok(gib * GIB),
        _ => {
            Err(D::Error::invalid_value(Unexpected::Str(&text), &"\"1GiB\", \"2GiB\", \"4GiB\", \"8GiB\" or \"16GiB\""))
        }
    }
}

fn revision<'de, D: Deserializer<'de>>(from: D) -> Result<u8, D::Error> {
    match u64::deserialize(from)? {
        revision @ (0 | 1 | 4 | 5 | 8) => Ok((revision & 0xf) as u8),
        other => Err(D::Error::invalid_value(
            Unexpected::Unsigned(other),
            &"a stepping of DG2-G10: 0 (A0), 1 (A1), 4 (B0), 5 (B1) or 8 (C0)",
        )),
    }
}

/// Default number of VFs, as on a Flex 170.
fn most_vfs() -> u8 {
    31
}

fn total_vfs<'de, D: Deserializer<'de>>(from: D) -> Result<u8, D::Error> {
    match u64::deserialize(from)? {
        vfs @ 0..=63 => Ok((vfs & 0x3f) as u8),
        other => {
            let expected = "a number of virtual functions, 1 to 63, or 0 for a card without SR-IOV";
            Err(D::Error::invalid_value(Unexpected::Unsigned(other), &expected))
        }
    }
}

fn mask<'de, D: Deserializer<'de>, M>(from: D, highest: M, expected: &str) -> Result<M, D::Error>
where
    M: TryFrom<u64> + PartialOrd + Default,
{
    let number = u64::deserialize(from)?;
    let mask = M::try_from(number).ok().filter(|mask| *mask != M::default() && *mask <= highest);
    mask.ok_or_else(|| D::Error::invalid_value(Unexpected::Unsigned(number), &expected))
}

fn dss_mask<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    mask(from, 0xffff_ffff, "a mask of dual subslices, 0x1 to 0xffffffff")
}

fn eu_mask<'de, D: Deserializer<'de>>(from: D) -> Result<u8, D::Error> {
    mask(from, 0xff, "a mask of EU pairs, 0x1 to 0xff")
}

fn mslice_mask<'de, D: Deserializer<'de>>(from: D) -> Result<u8, D::Error> {
    mask(from, 0xf, "a mask of memory slices, 0x1 to 0xf")
}

fn vdbox_mask<'de, D: Deserializer<'de>>(from: D) -> Result<u8, D::Error> {
    mask(from, 0xff, "a mask of video decode engines, 0x1 to 0xff")
}

fn vebox_mask<'de, D: Deserializer<'de>>(from: D) -> Result<u8, D::Error> {
    mask(from, 0xf, "a mask of video enhancement engines, 0x1 to 0xf")
}

fn mhz<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    match u64::deserialize(from)? {
        mhz @ 50..=12750 if mhz % 50 == 0 => Ok(low(mhz)),
        other => Err(D::Error::invalid_value(Unexpected::Unsigned(other), &"a multiple of 50 MHz, 50 to 12750")),
    }
}
