// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Limits on the resources that clients consume in the server process of the card (`[limits]` of a card file).

use arctic_sriov::number::low;
use serde::de::{Deserialize, Deserializer, Error, Unexpected};

/// Limits on guest memory that clients map for the card: per function, and for all functions together.
///
/// The limit of each function is capped at an equal share of the total, so that one client cannot exhaust the resources
/// of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Bytes of address space for the files that the client of one function maps, 1 GiB to 64 TiB.
    #[serde(deserialize_with = "bytes")]
    pub mapped: u64,
    /// `mapped` for all functions together.
    #[serde(deserialize_with = "bytes")]
    pub mapped_in_all: u64,
    /// Mappings of these files for one function, 16 to 65535: one for each file, or more if the whole file exceeds
    /// `mapped`.
    #[serde(deserialize_with = "count")]
    pub mappings: u32,
    /// `mappings` for all functions together; the default of the kernel's `vm.max_map_count` is 65530.
    #[serde(deserialize_with = "count")]
    pub mappings_in_all: u32,
    /// Sections of guest memory of one function, 16 to 16777216, after merging of those that continue each other. A
    /// section takes 32 to 64 bytes.
    #[serde(deserialize_with = "large_count")]
    pub sections: u32,
    /// `sections` for all functions together.
    #[serde(deserialize_with = "large_count")]
    pub sections_in_all: u32,
    /// Files kept open for the client of one function, 16 to 65535. Sections of the same file share one.
    #[serde(deserialize_with = "count")]
    pub descriptors: u32,
    /// `descriptors` for all functions together.
    #[serde(deserialize_with = "count")]
    pub descriptors_in_all: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            mapped: 1 << 40,
            mapped_in_all: 64 << 40,
            mappings: 4096,
            mappings_in_all: 48 << 10,
            sections: 1 << 20,
            sections_in_all: 4 << 20,
            descriptors: 1024,
            descriptors_in_all: 32 << 10,
        }
    }
}

impl Limits {
    /// The limits of each of `functions` functions: at most an equal share of the total.
    pub fn each(&self, functions: usize) -> Limits {
        let parts = functions.max(1) as u64;
        let part = |one: u32, all: u32| one.min(u32::try_from(u64::from(all) / parts).unwrap_or(all));
        Limits {
            mapped: self.mapped.min(self.mapped_in_all / parts),
            mappings: part(self.mappings, self.mappings_in_all),
            sections: part(self.sections, self.sections_in_all),
            descriptors: part(self.descriptors, self.descriptors_in_all),
            ..*self
        }
    }
}

fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let text = String::deserialize(from)?;
    let number = |unit| text.strip_suffix(unit).and_then(|number: &str| number.trim_end().parse::<u64>().ok());
    let gib = number("GiB").or_else(|| number("TiB").and_then(|tib| tib.checked_mul(1 << 10)));
    match gib {
        Some(gib @ 1..=0x1_0000) => Ok(gib << 30),
        _ => Err(D::Error::invalid_value(Unexpected::Str(&text), &"\"1GiB\" to \"64TiB\"")),
    }
}

fn count<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    match u64::deserialize(from)? {
        count @ 16..=65535 => Ok(low(count)),
        other => Err(D::Error::invalid_value(Unexpected::Unsigned(other), &"a number from 16 to 65535")),
    }
}

fn large_count<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    match u64::deserialize(from)? {
        count @ 16..=0x100_0000 => Ok(low(count)),
        other => Err(D::Error::invalid_value(Unexpected::Unsigned(other), &"a number from 16 to 16777216")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_divided_among_functions() {
        let limits = Limits::default();
        assert_eq!(limits.each(1), limits);
        let each = limits.each(64);
        let counts = (each.mappings, each.sections, each.descriptors);
        assert_eq!((each.mapped, counts), (1 << 40, (768, 65536, 512)));
        assert!(each.mapped * 64 <= limits.mapped_in_all && each.sections * 64 <= limits.sections_in_all);
        assert!(each.mappings * 64 <= limits.mappings_in_all);
        let few = Limits { descriptors_in_all: 100, ..limits }.each(5);
        assert_eq!(few.descriptors, 20);
    }
}
