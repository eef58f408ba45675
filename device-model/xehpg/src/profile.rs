// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Contents of a card file: the enabled units of the die and the size of local memory.

mod guc_versions;
pub mod provision;
mod register_values;

pub use arctic_base::limits;
use arctic_sriov::header::Identity;
use arctic_sriov::number::low;
use serde::de::{Deserialize, Deserializer, Error, Unexpected};

use self::limits::Limits;
use self::provision::{GgttAccess, Provision, VfLocalMemory};
pub use crate::generation::Version;
use crate::generation::{DSS_PER_COMPUTE_ENGINE, Die, Generation, XE_HPG};
use crate::heci::controller::{self, Controller, FirmwareVersions};
use crate::pci;
use crate::registers::RegisterFile;
use crate::sensors::Power;
use crate::topology::{EngineClass, EngineId, EngineInfo};
pub use guc_versions::GucVersions;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Properties that differ between cards of a generation. Parsed from a card file; every value is validated while
/// parsing, also against the die, and an error states the expected values.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CardProfile {
    family: Family,
    /// Display name.
    pub name: String,
    /// The die.
    pub die: &'static Die,
    /// PCI device ID; the first of the die, if a card file has none.
    pub device: u16,
    /// Size of local memory in bytes, a multiple of 1 GiB.
    pub local_memory: u64,
    /// PCI revision, which encodes the die's stepping (xe: xe_step.c).
    pub revision: u8,
    /// Number of virtual functions; 0 is a card without SR-IOV.
    pub total_vfs: u8,
    /// How VFs access the GGTT.
    pub ggtt: GgttAccess,
    /// How VFs access their local memory.
    pub vf_local_memory: VfLocalMemory,
    /// Resources of each VF if no PF driver provisions the card.
    pub provision: Provision,
    /// What happens to contexts of user space with commands that the model does not execute.
    pub unmodelled: Unmodelled,
    /// Limits on the process resources that clients of a served card may consume.
    pub limits: Limits,
    /// Units that the fuses leave enabled.
    pub fuses: Fuses,
    /// Frequency limits of the GT.
    pub frequency: Frequency,
    /// Power that the card's sensors report; that of a Flex 170, if a card file has none.
    pub power: Power,
    /// Interface of the GuC that a card without a PF driver claims; the default of the model, if a card file has none.
    pub guc: GucVersions,
    /// Versions of the firmware in flash; those of a Flex 170, if a card file has none.
    pub firmware: FirmwareVersions,
}

/// The keys of a card file, each checked for itself.
#[derive(serde::Deserialize)]
#[serde(remote = "CardProfile", deny_unknown_fields)]
struct Unchecked {
    #[serde(default)]
    family: Family,
    #[serde(deserialize_with = "name")]
    name: String,
    #[serde(default = "default_die", deserialize_with = "die")]
    die: &'static Die,
    #[serde(default = "no_device", deserialize_with = "device")]
    device: u16,
    #[serde(deserialize_with = "local_memory")]
    local_memory: u64,
    #[serde(deserialize_with = "revision")]
    revision: u8,
    #[serde(default = "most_vfs", deserialize_with = "total_vfs")]
    total_vfs: u8,
    #[serde(default)]
    ggtt: GgttAccess,
    #[serde(default)]
    vf_local_memory: VfLocalMemory,
    #[serde(default)]
    provision: Provision,
    #[serde(default)]
    unmodelled: Unmodelled,
    #[serde(default)]
    limits: Limits,
    fuses: Fuses,
    frequency: Frequency,
    #[serde(default = "flex_170_power", deserialize_with = "power")]
    power: Power,
    #[serde(default)]
    guc: GucVersions,
    #[serde(default = "flex_170_firmware")]
    firmware: FirmwareVersions,
}

/// Value of the key `family` of a card file, which other families have too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Family {
    #[default]
    XeHpg,
}

/// What happens to a context of user space when its batch contains a command that the model does not execute: of the 3D,
/// compute and media pipelines, and of the display.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Unmodelled {
    /// The command is skipped and counted; the context continues.
    #[default]
    Skip,
    /// The command is illegal: the context stops at it, and its driver is notified of the reset of the context.
    Fault,
}

impl<'de> Deserialize<'de> for CardProfile {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut profile = Unchecked::deserialize(from)?;
        if profile.device == no_device() {
            profile.device = profile.die.devices[0];
        }
        profile.check_against_die().map_err(D::Error::custom)?;
        Ok(profile)
    }
}

impl CardProfile {
    /// Returns an error if the die does not have the device ID, the revision, or a unit that the fuses enable.
    fn check_against_die(&self) -> Result<(), String> {
        let CardProfile { die, device, revision, fuses, .. } = self;
        if !die.devices.contains(device) {
            let expected: Vec<_> = die.devices.iter().map(|device| format!("{device:#06x}")).collect();
            return Err(format!("device = {device:#06x} has no {}: expected {}", die.name, expected.join(" or ")));
        }
        if !die.steppings.iter().any(|(valid, _)| valid == revision) {
            return Err(format!(
                "revision = {revision} is not a stepping of {}: expected {}",
                die.name,
                steppings(die)
            ));
        }
        let units: [(&str, u32, u32); 4] = [
            ("dss_mask", fuses.dss_mask, die.dss()),
            ("mslice_mask", fuses.mslice_mask.into(), die.mslices.into()),
            ("vdbox_mask", fuses.vdbox_mask.into(), die.vdboxes.into()),
            ("vebox_mask", fuses.vebox_mask.into(), die.veboxes.into()),
        ];
        for (field, mask, there) in units {
            if mask & !there != 0 {
                let name = die.name;
                return Err(format!(
                    "{field} = {mask:#x} enables units that {name} does not have: expected bits of {there:#x}"
                ));
            }
        }
        Ok(())
    }
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
    /// The GuC is disabled: its DMA engine does not work, so no firmware can be loaded (V13-189).
    #[serde(default)]
    pub guc_disabled: bool,
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
        self.die.generation
    }

    /// Returns the size of the BAR that exposes local memory, in bytes: the next power of two (V13-004). Beyond local
    /// memory the BAR reads all ones and ignores writes.
    pub fn local_memory_bar(&self) -> u64 {
        self.local_memory.next_power_of_two()
    }

    /// Creates the card's registers, in their power-on state.
    pub fn registers(&self) -> RegisterFile {
        let Generation { registers, engines, .. } = *self.generation();
        RegisterFile::new(registers, engines).with_reset_values(&register_values::values(self))
    }

    /// Returns what the firmware of the graphics system controller reports.
    pub fn controller(&self) -> Controller {
        let Identity { subsystem_vendor, subsystem, .. } = pci::identity(self.device, self.revision);
        let stepping = self.die.steppings.iter().find(|(revision, _)| *revision == self.revision);
        Controller {
            versions: self.firmware.clone(),
            sku: self.die.firmware_sku,
            step: controller::step(stepping.map_or("", |(_, name)| name)),
            subsystem: (subsystem_vendor, subsystem),
        }
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
        instance < 4 && self.fuses.dss_mask >> (DSS_PER_COMPUTE_ENGINE * instance) & 0xff != 0
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

fn default_die() -> &'static Die {
    XE_HPG.dies[0]
}

fn die<'de, D: Deserializer<'de>>(from: D) -> Result<&'static Die, D::Error> {
    let name = String::deserialize(from)?;
    XE_HPG.die(&name).ok_or_else(|| {
        let names: Vec<_> = XE_HPG.dies.iter().map(|die| format!("\"{}\"", die.name)).collect();
        D::Error::invalid_value(Unexpected::Str(&name), &format!("a die: {}", names.join(" or ")).as_str())
    })
}

/// Value of a profile's device ID while the card file has none; no device has it.
fn no_device() -> u16 {
    0
}

fn device<'de, D: Deserializer<'de>>(from: D) -> Result<u16, D::Error> {
    let device = u16::deserialize(from)?;
    if device == no_device() {
        return Err(D::Error::invalid_value(Unexpected::Unsigned(device.into()), &"a PCI device ID of the die"));
    }
    Ok(device)
}

fn local_memory<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let text = String::deserialize(from)?;
    let gib = text.strip_suffix("GiB").and_then(|number| number.trim_end().parse::<u64>().ok());
    match gib {
        Some(gib @ 1..=16) => Ok(gib * GIB),
        _ => Err(D::Error::invalid_value(Unexpected::Str(&text), &"a number of GiB, \"1GiB\" to \"16GiB\"")),
    }
}

/// Text of the steppings of a die, for error messages.
fn steppings(die: &Die) -> String {
    let texts: Vec<_> = die.steppings.iter().map(|(revision, name)| format!("{revision} ({name})")).collect();
    texts.join(", ")
}

fn revision<'de, D: Deserializer<'de>>(from: D) -> Result<u8, D::Error> {
    let number = u64::deserialize(from)?;
    let revision = u8::try_from(number).ok();
    let of_die = |die: &Die| die.steppings.iter().any(|(valid, _)| Some(*valid) == revision);
    revision.filter(|_| XE_HPG.dies.iter().any(|die| of_die(die))).ok_or_else(|| {
        let texts: Vec<_> = XE_HPG.dies.iter().map(|die| format!("{}: {}", die.name, steppings(die))).collect();
        D::Error::invalid_value(
            Unexpected::Unsigned(number),
            &format!("a stepping of {}", texts.join("; of ")).as_str(),
        )
    })
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

/// Firmware of a card whose card file has none.
fn flex_170_firmware() -> FirmwareVersions {
    FirmwareVersions::FLEX_170
}

/// Power of a card whose card file has none.
fn flex_170_power() -> Power {
    Power::FLEX_170
}

fn power<'de, D: Deserializer<'de>>(from: D) -> Result<Power, D::Error> {
    let power = Power::deserialize(from)?;
    let Power { board, idle, voltage, package, memory, inlet: _ } = power;
    if idle > board || !(1..=4095).contains(&board) {
        let expected = "expected idle <= board, and board from 1 to 4095 W";
        return Err(D::Error::custom(format!("[power] has board = {board} and idle = {idle}: {expected}")));
    }
    let (min, max) = (voltage.min, voltage.max);
    if min > max || !(1..=5000).contains(&max) {
        let expected = "expected min <= max, and max from 1 to 5000 mV";
        return Err(D::Error::custom(format!("[power] has a voltage with min = {min} and max = {max}: {expected}")));
    }
    if package.seconds == 0 || memory.seconds == 0 {
        return Err(D::Error::custom("[power] has a time constant of 0 s: expected at least 1 s"));
    }
    Ok(power)
}

fn mhz<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    match u64::deserialize(from)? {
        mhz @ 50..=12750 if mhz % 50 == 0 => Ok(low(mhz)),
        other => Err(D::Error::invalid_value(Unexpected::Unsigned(other), &"a multiple of 50 MHz, 50 to 12750")),
    }
}
