// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Saved state of the table of the GGTT. The fences are those of the saved registers.

use std::sync::atomic::Ordering;

use super::{Ggtt, Pte};
use arctic_base::state::{Document, Record, RestoreError, SavedState, Tag, Writer};
use zerocopy::little_endian::U32;

/// The table of the GGTT: number of its entries, and page and value of those that are not 0, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedGgtt {
    pages: u32,
    entries: Vec<(u32, u32)>,
}

impl SavedState for SavedGgtt {
    const UNIT: &'static str = "GGTT";
    const TAGS: &'static [Tag] = &[TableRecord::TAG, EntryRecord::TAG];

    fn write(&self, to: &mut Writer) {
        let SavedGgtt { pages, entries } = self;
        to.record(TableRecord { pages: (*pages).into() });
        let entry = |(page, entry): &(u32, u32)| EntryRecord { page: (*page).into(), entry: (*entry).into() };
        to.records(entries.iter().map(entry));
    }

    fn read(from: &Document<'_>) -> Result<Self, RestoreError> {
        let TableRecord { pages } = from.record()?;
        let entry = |record: &EntryRecord| (record.page.get(), record.entry.get());
        Ok(SavedGgtt { pages: pages.get(), entries: from.records(MOST_PAGES)?.iter().map(entry).collect() })
    }
}

/// Pages of the largest GGTT: that of a table of 2 MiB.
const MOST_PAGES: usize = 1 << 19;

arctic_base::record! {
    /// The table.
    struct TableRecord[b"GTTT", 4] {
        /// Number of entries.
        pages: U32,
    }

    /// An entry that is not 0.
    struct EntryRecord[b"GTTE", 8] {
        page: U32,
        entry: U32,
    }
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
