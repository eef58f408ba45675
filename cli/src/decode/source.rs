// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What a file is of: the GPU that a dump names, the tables that it is decoded with, and what of it was not understood.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::engine::{FAMILIES, FLEX, Family, of_device, of_platform};
use super::text::{hex, value};

/// The GPU that a dump names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gpu {
    /// PCI device ID.
    pub device: Option<u16>,
    /// Name of the platform in i915.
    pub platform: Option<String>,
}

impl Gpu {
    /// The GPU of a dump of i915 or xe, by its lines `PCI ID` and `Platform`.
    pub fn of(text: &str) -> Gpu {
        let find = |name: &str| text.lines().find_map(|line| value(line.trim_start(), name));
        Gpu {
            device: find("PCI ID").and_then(hex).and_then(|id| u16::try_from(id).ok()),
            platform: find("Platform").filter(|name| !name.is_empty()).map(str::to_owned),
        }
    }

    /// The family whose tables describe this GPU.
    pub fn family(&self) -> Option<Family> {
        self.device.map_or_else(|| of_platform(self.platform.as_deref()?), of_device)
    }

    fn is_named(&self) -> bool {
        self.device.is_some() || self.platform.is_some()
    }
}

impl fmt::Display for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.device, &self.platform) {
            (Some(device), Some(platform)) => write!(f, "GPU 8086:{device:04x} ({platform})"),
            (Some(device), None) => write!(f, "GPU 8086:{device:04x}"),
            (None, Some(platform)) => write!(f, "a GPU of the platform {platform}"),
            (None, None) => write!(f, "a GPU that it does not name"),
        }
    }
}

/// What a file was taken for, and the tables that it is decoded with.
#[derive(Clone, Debug, Serialize)]
pub struct Source {
    /// The type of the file, and of which GPU it is.
    pub input: String,
    /// Name of the family with the tables.
    pub tables: &'static str,
    /// The tables or the type were assumed: the file does not say what they are, or it says something else.
    pub assumed: bool,
    /// The family with the tables.
    #[serde(skip)]
    pub family: Option<Family>,
}

impl Source {
    /// A dump, of the type `what`, of `gpu`; `card` is the family that the user names. Fails with the reason if there are no
    /// tables for it.
    pub fn of_dump(what: &str, gpu: &Gpu, card: Option<Family>) -> Result<Source, String> {
        let (family, assumed) = match (card, gpu.family()) {
            (Some(card), Some(own)) => (card, card.name() != own.name()),
            (Some(card), None) => (card, true),
            (None, Some(own)) => (own, false),
            (None, None) if gpu.is_named() => {
                let known: Vec<&str> = FAMILIES.iter().map(|family| family.title()).collect();
                return Err(format!(
                    "it is {what} of {gpu}, which is unknown: there are tables for {} only; --card decodes it with those of \
                     another card",
                    known.join(", ")
                ));
            }
            (None, None) => (FLEX, true),
        };
        Ok(Source { input: format!("{what} of {gpu}"), tables: family.title(), assumed, family: Some(family) })
    }
}

/// `xe's devcoredump of GPU 8086:56c0, decoded with the tables of the Flex series`.
impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, decoded with the tables of {}", self.input, self.tables)?;
        if self.assumed { write!(f, ", which are assumed: --card names those of another card") } else { Ok(()) }
    }
}

/// What of a file was decoded, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Understood {
    /// Commands, messages, registers, images and events that have a meaning.
    pub decoded: u64,
    /// Numbers of things that have none, by what they are.
    pub not_understood: BTreeMap<String, u64>,
}

impl Understood {
    /// Counts something that was decoded.
    pub fn decoded(&mut self) {
        self.decoded += 1;
    }

    /// Counts something that was not understood.
    pub fn unknown(&mut self, what: impl Into<String>) {
        *self.not_understood.entry(what.into()).or_default() += 1;
    }

    /// Fails with the reason if nothing was understood.
    pub fn check(&self) -> Result<(), String> {
        match self.decoded {
            0 if self.not_understood.is_empty() => Err("nothing in it can be decoded".into()),
            0 => Err(format!("nothing in it was understood: {self}")),
            _ => Ok(()),
        }
    }
}

/// `2 unknown commands, 1 object without data`.
impl fmt::Display for Understood {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts: Vec<_> = self.not_understood.iter().map(|(what, count)| format!("{count} of: {what}")).collect();
        write!(f, "{}", counts.join("; "))
    }
}
