// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Limits on the resources that clients consume in the server process of the card (`[limits]` of a card file).

use std::ops::RangeInclusive;

use arctic_sriov::number::low;
use serde::de::{Deserialize, Deserializer, Error, Unexpected};

/// Range of `mapped` and `mapped_in_all` in GiB, 1 GiB to 64 TiB.
const GIB: RangeInclusive<u64> = 1..=64 << 10;
/// Minimum of the other limits, in a card file and as the share of a function.
pub const LEAST_COUNT: u32 = 16;
/// Maximum of the limits of mappings and descriptors.
const MOST_FILES: u32 = 65535;
/// Maximum number of threads.
const MOST_THREADS: u8 = 16;
/// Maximum of the limits of sections.
const MOST_SECTIONS: u32 = 1 << 24;

/// Limits on guest memory that clients map for the card, per function and for all functions together; and the threads of the card.
///
/// The limit of each function is capped at an equal share of the total, so that one client cannot exhaust the resources
/// of another. In a card file sizes are 1 GiB to 64 TiB, numbers of mappings and descriptors are 16 to 65535, and
/// numbers of sections are 16 to 16777216.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Bytes of address space for the files that the client of one function maps.
    #[serde(deserialize_with = "bytes")]
    pub mapped: u64,
    /// `mapped` for all functions together.
    #[serde(deserialize_with = "bytes")]
    pub mapped_in_all: u64,
    /// Mappings of these files for one function: one for each file, or more if the whole file exceeds `mapped`.
    #[serde(deserialize_with = "number_up_to::<MOST_FILES, _>")]
    pub mappings: u32,
    /// `mappings` for all functions together; the default of the kernel's `vm.max_map_count` is 65530.
    #[serde(deserialize_with = "number_up_to::<MOST_FILES, _>")]
    pub mappings_in_all: u32,
    /// Sections of guest memory of one function, after merging of those that continue each other. A section takes 32 to
    /// 64 bytes.
    #[serde(deserialize_with = "number_up_to::<MOST_SECTIONS, _>")]
    pub sections: u32,
    /// `sections` for all functions together.
    #[serde(deserialize_with = "number_up_to::<MOST_SECTIONS, _>")]
    pub sections_in_all: u32,
    /// Files kept open for the client of one function. Sections of the same file share one.
    #[serde(deserialize_with = "number_up_to::<MOST_FILES, _>")]
    pub descriptors: u32,
    /// `descriptors` for all functions together.
    #[serde(deserialize_with = "number_up_to::<MOST_FILES, _>")]
    pub descriptors_in_all: u32,
    /// Threads that execute the card's work, 1 to 16; fewer if the process may use fewer processors.
    #[serde(deserialize_with = "threads")]
    pub threads: u8,
}

/// A total of the limits is too small for the number of functions: the share of each would be below the minimum of the
/// limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("[limits] {limit} = {total} is too small for {functions} functions: expected at least {least}")]
pub struct TotalTooSmall {
    limit: &'static str,
    total: String,
    functions: usize,
    least: String,
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
            threads: MOST_THREADS,
        }
    }
}

impl Limits {
    /// Number of threads that execute the card's work, if the process may use so many processors.
    pub fn threads(&self, processors: usize) -> usize {
        processors.clamp(1, usize::from(self.threads).max(1))
    }

    /// The limits of each of `functions` functions: at most an equal share of the total. Fails if that reduces a limit
    /// to less than its minimum in a card file.
    pub fn each(&self, functions: usize) -> Result<Limits, TotalTooSmall> {
        let parts = functions.max(1) as u64;
        let share = |limit, one: u64, all: u64, least: u64, text: fn(u64) -> String| {
            let share = all / parts;
            if share < one.min(least) {
                let (total, least) = (text(all), text(least.saturating_mul(parts)));
                return Err(TotalTooSmall { limit, total, functions, least });
            }
            Ok(one.min(share))
        };
        let count = |limit, one: u32, all: u32| {
            share(limit, one.into(), all.into(), LEAST_COUNT.into(), |count| count.to_string()).map(low)
        };
        let gib = |bytes: u64| format!("\"{}GiB\"", bytes >> 30);
        Ok(Limits {
            mapped: share("mapped_in_all", self.mapped, self.mapped_in_all, GIB.start() << 30, gib)?,
            mappings: count("mappings_in_all", self.mappings, self.mappings_in_all)?,
            sections: count("sections_in_all", self.sections, self.sections_in_all)?,
            descriptors: count("descriptors_in_all", self.descriptors, self.descriptors_in_all)?,
            ..*self
        })
    }
}

fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let text = String::deserialize(from)?;
    let number = |unit| text.strip_suffix(unit).and_then(|number: &str| number.trim_end().parse::<u64>().ok());
    let gib = number("GiB").or_else(|| number("TiB").and_then(|tib| tib.checked_mul(1 << 10)));
    let expected = format!("\"{}GiB\" to \"{}TiB\"", GIB.start(), GIB.end() >> 10);
    gib.filter(|gib| GIB.contains(gib))
        .map(|gib| gib << 30)
        .ok_or_else(|| D::Error::invalid_value(Unexpected::Str(&text), &expected.as_str()))
}

fn threads<'de, D: Deserializer<'de>>(from: D) -> Result<u8, D::Error> {
    let number = u64::deserialize(from)?;
    let valid = u8::try_from(number).ok().filter(|number| (1..=MOST_THREADS).contains(number));
    let expected = || format!("a number from 1 to {MOST_THREADS}");
    valid.ok_or_else(|| D::Error::invalid_value(Unexpected::Unsigned(number), &expected().as_str()))
}

/// Deserialises a number from [`LEAST_COUNT`] to `MOST`.
fn number_up_to<'de, const MOST: u32, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    let number = u64::deserialize(from)?;
    let valid = u32::try_from(number).ok().filter(|number| (LEAST_COUNT..=MOST).contains(number));
    let expected = || format!("a number from {LEAST_COUNT} to {MOST}");
    valid.ok_or_else(|| D::Error::invalid_value(Unexpected::Unsigned(number), &expected().as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_divided_among_functions() {
        let limits = Limits::default();
        assert_eq!(limits.each(1), Ok(limits));
        let each = limits.each(64).unwrap();
        let counts = (each.mappings, each.sections, each.descriptors);
        assert_eq!((each.mapped, counts), (1 << 40, (768, 65536, 512)));
        assert!(each.mapped * 64 <= limits.mapped_in_all && each.sections * 64 <= limits.sections_in_all);
        assert!(each.mappings * 64 <= limits.mappings_in_all);
        let few = Limits { descriptors_in_all: 100, ..limits }.each(5);
        assert_eq!(few.unwrap().descriptors, 20);
    }

    #[test]
    fn threads_are_limited_by_the_card_file_and_the_processors() {
        let of = |threads, processors| Limits { threads, ..Limits::default() }.threads(processors);
        assert_eq!([of(16, 2), of(16, 64), of(16, 0), of(3, 64), of(1, 2)], [2, 16, 1, 3, 1]);
        assert_eq!(Limits::default().threads(16), 16);
    }

    /// Each total with the minimum for 64 functions, and with less. A total is not too small for a limit that is lower
    /// than the share.
    #[test]
    fn a_total_too_small_for_the_number_of_functions_is_an_error() {
        let message = |limits: Limits| limits.each(64).map_err(|error| error.to_string());
        let limits = Limits::default();
        let least = Limits {
            mapped_in_all: 64 << 30,
            mappings_in_all: 1024,
            sections_in_all: 1024,
            descriptors_in_all: 1024,
            ..limits
        };
        let each = message(least).unwrap();
        assert_eq!((each.mapped, each.mappings, each.sections, each.descriptors), (1 << 30, 16, 16, 16));
        for (less, name, text) in [
            (
                Limits { mapped_in_all: 63 << 30, ..least },
                "mapped",
                "\"63GiB\" is too small for 64 functions: expected at least \"64GiB\"",
            ),
            (
                Limits { mappings_in_all: 1023, ..least },
                "mappings",
                "1023 is too small for 64 functions: expected at least 1024",
            ),
            (
                Limits { sections_in_all: 16, ..least },
                "sections",
                "16 is too small for 64 functions: expected at least 1024",
            ),
            (
                Limits { descriptors_in_all: 0, ..least },
                "descriptors",
                "0 is too small for 64 functions: expected at least 1024",
            ),
        ] {
            assert_eq!(message(less), Err(format!("[limits] {name}_in_all = {text}")));
        }
        let low = Limits { sections: 3, sections_in_all: 200, ..limits };
        assert_eq!(message(low).map(|each| each.sections), Ok(3));
    }
}
