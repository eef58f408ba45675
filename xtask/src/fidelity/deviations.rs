// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `docs/fidelity.toml`: the items that the card implements not as their document says, and its checks.

use std::collections::BTreeSet;

use arctic_fidelity::report::{Item, Status};
use serde::Deserialize;

use super::claims::Claim;
use super::evidence::Found;

/// The contents of `docs/fidelity.toml`.
#[derive(Default, Deserialize)]
pub struct Deviations {
    /// Items that must be exact or listed.
    promised: Vec<String>,
    #[serde(default)]
    item: Vec<Deviation>,
}

/// Items that depart from the document, are approximate or are absent, for one reason.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deviation {
    /// The item, such as `V8-052`, if it is one.
    id: Option<String>,
    /// Items and ranges of items, such as `V13-165..175`, if there are several.
    #[serde(default)]
    ids: Vec<String>,
    pub status: Status,
    pub note: String,
    /// The driver's file that does what the card does, such as `xe: xe_lrc.c, set_memory_based_intr`.
    pub driver: Option<String>,
}

impl Deviations {
    /// Parses the file.
    ///
    /// # Errors
    /// A message, if the text is not in this form.
    pub fn parse(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error| format!("docs/fidelity.toml cannot be read: {}", error.message()))
    }

    /// The entry of an item.
    pub fn of(&self, document: &str, number: u16) -> Option<&Deviation> {
        self.item.iter().find(|entry| entry.claims().iter().any(|claim| claim.names(document, number)))
    }

    /// The place of a document in the report: documents with promised items come first, in the order of the promises.
    pub fn rank(&self, document: &str) -> usize {
        let mut promised = self.promised.iter().flat_map(|text| Claim::all_in(text));
        promised.position(|claim| claim.document == document).unwrap_or(usize::MAX)
    }

    /// Adds what is wrong with the entries.
    pub fn check(&self, items: &[Found], problems: &mut Vec<String>) {
        // The first item or range of each entry so far, and the last one of this entry.
        let mut before: Vec<Claim> = Vec::new();
        for entry in &self.item {
            let name = entry.texts().collect::<Vec<_>>().join(", ");
            for text in entry.texts().filter(|text| Claim::of(text).is_none()) {
                problems
                    .push(format!("docs/fidelity.toml lists {text}, which is neither an item nor a range of items"));
            }
            if name.is_empty() {
                problems.push("docs/fidelity.toml has an [[item]] without id and ids".into());
            }
            entry.check(&name, items, problems);
            let claims = entry.claims();
            for (n, claim) in claims.iter().enumerate() {
                let earlier = before.iter().chain(&claims[..n]);
                if let Some(other) =
                    earlier.filter(|other| other.document == claim.document).max_by_key(|other| other.first)
                    && other.first > claim.first
                {
                    problems.push(format!("{claim} must precede {other}"));
                }
            }
            before.extend(claims.into_iter().next());
        }
        for item in items {
            let listed = self.item.iter().flat_map(Deviation::claims);
            if listed.filter(|claim| names(claim, item)).count() > 1 {
                problems.push(format!("{} is listed twice", item.id));
            }
        }
        for claim in self.promised.iter().flat_map(|text| Claim::all_in(text)) {
            let promised = |item: &&Found| names(&claim, item) && item.status == Status::Unassessed;
            for item in items.iter().filter(promised) {
                problems.push(format!("{} is promised, but neither claimed by a test nor listed", item.id));
            }
        }
    }
}

fn names(claim: &Claim, item: &Item) -> bool {
    item.number().is_some_and(|number| claim.names(&item.document, number))
}

impl Deviation {
    /// The items and ranges as they are written.
    fn texts(&self) -> impl Iterator<Item = &str> {
        self.id.iter().chain(&self.ids).map(String::as_str)
    }

    /// The items and ranges; text that is neither is omitted.
    fn claims(&self) -> Vec<Claim> {
        self.texts().filter_map(Claim::of).collect()
    }

    /// Returns whether `driver` names a source file or header of xe or i915.
    fn names_driver_file(&self) -> bool {
        let Some((driver, place)) = self.driver.as_deref().and_then(|text| text.split_once(": ")) else { return false };
        let file = place.split([' ', ',', ';']).next().unwrap_or("");
        let stem = file.strip_suffix(".c").or_else(|| file.strip_suffix(".h"));
        ["xe", "i915"].contains(&driver) && stem.is_some_and(|stem| !stem.is_empty())
    }

    /// Checks one entry, which lists the items in `name`.
    fn check(&self, name: &str, items: &[Found], problems: &mut Vec<String>) {
        let Deviation { status, note, driver, .. } = self;
        for claim in self.claims() {
            // A range may have gaps, but its first and last item must exist.
            let exists = |end: u16| items.iter().any(|item| item.id == format!("{}-{end:03}", claim.document));
            let missing: BTreeSet<u16> = [claim.first, claim.last].into_iter().filter(|&end| !exists(end)).collect();
            for end in missing {
                problems.push(format!("docs/fidelity.toml lists {}-{end:03}, which is in no document", claim.document));
            }
            let needs_test = matches!(status, Status::Departs | Status::Approximate);
            let named = items.iter().filter(|item| names(&claim, item));
            for item in named.filter(|item| needs_test && item.tests.is_empty()) {
                let (id, status) = (&item.id, status.name());
                problems.push(format!("{id} is listed as {status}, but no test claims it"));
            }
        }
        if note.trim().is_empty() {
            problems.push(format!("{name} has no note in docs/fidelity.toml"));
        }
        match status {
            Status::Exact | Status::Unassessed | Status::Unproven | Status::Stale => {
                problems.push(format!("{name} is listed as {}: only tests give this status", status.name()));
            }
            Status::Departs if !self.names_driver_file() => problems.push(format!(
                "{name} is listed as departs, but names no file of xe or i915, as in driver = \"xe: xe_lrc.c, FUNCTION\""
            )),
            Status::Approximate | Status::Absent if driver.is_some() => problems.push(format!(
                "{name} is listed as {}, but names a driver's file: only an item that departs has one",
                status.name()
            )),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The file is the first word after the driver's name.
    #[test]
    fn a_departure_names_a_file_of_a_driver() {
        let named = |driver: &str| {
            let entry = format!("id = \"V1-001\"\nstatus = \"departs\"\nnote = \"a\"\n{driver}");
            toml::from_str::<Deviation>(&entry).unwrap().names_driver_file()
        };
        for driver in ["xe: xe_lrc.c", "i915: gt/intel_engine.h, ICL_HWS_CSB_WRITE_INDEX", "xe: a.c; i915: b.c"] {
            assert!(named(&format!("driver = \"{driver}\"")), "{driver}");
        }
        for driver in ["", "xe", "xe: ", "xe: .c", "xe: set_memory_based_intr in xe_lrc.c", "igt: a.c", "media: b.h"] {
            assert!(!named(&format!("driver = \"{driver}\"")), "{driver}");
        }
        assert!(!named(""), "no file");
    }
}
