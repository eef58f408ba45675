// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Saved state of the table of the GGTT. The fences are those of the saved registers.

use std::sync::atomic::Ordering;

use arctic_base::state::{RestoreError, SavedState};
use serde::{Deserialize, Serialize};

use super::{Ggtt, Pte};

/// The table of the GGTT: number of its entries, and page and value of those that are not 0, ascending.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavedGgtt {
    pages: u32,
    entries: Vec<(u32, u32)>,
}

impl SavedState for SavedGgtt {
    const UNIT: &'static str = "GGTT";
    const VERSION: u32 = 1;
}

impl Ggtt {
    fn pages(&self) -> u32 {
        u32::try_from(self.entries.len()).unwrap_or(u32::MAX)
    }

    /// Returns the entries.
    pub fn save(&self) -> SavedGgtt {
        // A restore is a write of entries.
        let Ggtt { entries, writes: _ } = self;
        let entries = (0..).zip(entries.iter().map(|entry| entry.load(Ordering::Acquire)));
        SavedGgtt { pages: self.pages(), entries: entries.filter(|(_, entry)| *entry != 0).collect() }
    }

    /// Checks that [`Ggtt::restore`] can restore saved entries: the table has the same size.
    pub fn check(&self, saved: &SavedGgtt) -> Result<(), RestoreError> {
        let SavedGgtt { pages, entries } = saved;
        if *pages != self.pages() {
            let (saved, here) = ((*pages).into(), self.pages().into());
            return Err(RestoreError::Provisioning { resource: "GGTT pages", saved, here });
        }
        let ascending = entries.is_sorted_by(|(one, _), (next, _)| one < next);
        if !ascending || entries.iter().any(|(page, entry)| page >= pages || *entry == 0) {
            return Err(RestoreError::invalid::<SavedGgtt>("a page outside the table or twice, or an entry of 0"));
        }
        Ok(())
    }

    /// Replaces all entries by saved ones that were checked.
    pub fn restore(&self, saved: &SavedGgtt) {
        self.reset();
        saved.entries.iter().for_each(|(page, entry)| self.set(*page, Pte(*entry)));
    }
}
