// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The device that a zebin is for, and archives with zebins for several devices.

use std::fmt;

use super::{Zebin, ZebinError, number};

/// Family of the cores of Xe-HPG, among them those of DG2.
const XE_HPG: u32 = 0x0c07;

/// The device that a file was compiled for, as its section `.note.intelgt.compat` has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// Number of the product family.
    pub product: u32,
    /// Number of the family of cores.
    pub core: u32,
    /// Architecture, release and revision, as `12.55.8`; 0 if the file does not have them.
    pub version: [u32; 3],
}

impl Target {
    /// True for a device with the execution units of Xe-HPG.
    pub fn is_supported(self) -> bool {
        self.core == XE_HPG
    }

    /// Name of the product family; `None` if it is not known here.
    pub fn name(self) -> Option<&'static str> {
        Some(match self.product {
            0x01d => "Tiger Lake",
            0x4f6 => "DG2",
            0x4f7 => "Ponte Vecchio",
            0x4f8 => "Meteor Lake",
            0x4f9 => "Arrow Lake",
            0x4fa => "Battlemage",
            0x4fb => "Lunar Lake",
            _ => return None,
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name}")?,
            None => write!(f, "product family {:#x}", self.product)?,
        }
        let [architecture, release, revision] = self.version;
        if architecture != 0 { write!(f, " ({architecture}.{release}.{revision})") } else { Ok(()) }
    }
}

impl Zebin {
    /// The device that the file is for; `None` if it does not say.
    pub fn target(&self) -> Option<Target> {
        let section = self.section(".note.intelgt.compat")?;
        let mut rest = self.bytes(section);
        let mut target = Target::default();
        // Lengths of name and description, type, name, description; each padded to four bytes.
        while let (Some(name), Some(length), Some(kind)) = (number(rest, 0, 4), number(rest, 4, 4), number(rest, 8, 4))
        {
            let start = 12_u64.saturating_add(name.next_multiple_of(4));
            let value = number(rest, start, 4).unwrap_or(0) as u32;
            match kind {
                1 => target.product = value,
                2 => target.core = value,
                6 => target.version = [value >> 22, value >> 14 & 0xff, value & 0x3f],
                _ => {}
            }
            let end = start.saturating_add(length.next_multiple_of(4));
            rest = usize::try_from(end).ok().and_then(|end| rest.get(end..)).unwrap_or_default();
        }
        (target.core != 0).then_some(target)
    }

    /// Checks that the file is for a device with the execution units of Xe-HPG. One that does not say is taken for one.
    ///
    /// # Errors
    /// If it is for another device.
    pub fn check_target(&self) -> Result<(), ZebinError> {
        match self.target() {
            Some(target) if !target.is_supported() => Err(ZebinError::Target(target.to_string())),
            _ => Ok(()),
        }
    }
}

/// First bytes of an archive, as `ocloc` makes it for several devices.
pub const ARCHIVE: &[u8] = b"!<arch>\n";
/// Bytes of the header of a member.
const HEADER: usize = 60;

/// Contents of the members of an archive, as far as they are there.
fn members(file: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = file.get(ARCHIVE.len()..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (header, contents) = rest.split_at_checked(HEADER)?;
        let size: usize = std::str::from_utf8(&header[48..58]).ok()?.trim().parse().ok()?;
        let member = contents.get(..size)?;
        rest = contents.get(size.checked_next_multiple_of(2)?..).unwrap_or_default();
        Some(member)
    })
}

/// The first zebin of an archive that is for a device with the execution units of Xe-HPG.
///
/// # Errors
/// If there is none.
pub fn choose(file: &[u8]) -> Result<Zebin, ZebinError> {
    let mut others = Vec::new();
    for member in members(file).filter(|member| Zebin::is_elf(member)) {
        let zebin = Zebin::parse(member.to_vec())?;
        match zebin.target() {
            Some(target) if !target.is_supported() => others.push(target.to_string()),
            _ => return Ok(zebin),
        }
    }
    Err(if others.is_empty() { ZebinError::Magic } else { ZebinError::Target(others.join(", ")) })
}
