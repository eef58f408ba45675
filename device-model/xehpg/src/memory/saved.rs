// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Saved state of a VF in memory: its GGTT entries, and a description of its local memory. The contents of local memory
//! are transferred separately, and guest memory by the VMM.
#![warn(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::ops::Range;

use zerocopy::little_endian::{U32, U64};

use super::Memory;
use super::ggtt::{GGTT_BYTES, GgttEntry};
use super::storage::FRAME;
use crate::host::Function;
use crate::state::{Document, Record, RestoreError, SaveError, SaveState, SavedState, Tag, Writer};

/// A GGTT range, to convert addresses in it to offsets and back.
pub struct Reach(pub Range<u64>);

impl Reach {
    /// Returns the offset of an address.
    pub fn offset<T: SavedState>(&self, address: u64) -> Result<u64, SaveError> {
        let outside = SaveError::OutsideRange { unit: T::UNIT, address };
        let offset = address.checked_sub(self.0.start).filter(|_| address < self.0.end);
        offset.ok_or(outside)
    }

    /// Returns the offset of a configured address, or `None` for 0.
    pub fn offset_if_set<T: SavedState>(&self, address: u64) -> Result<Option<u64>, SaveError> {
        if address == 0 { Ok(None) } else { self.offset::<T>(address).map(Some) }
    }

    /// Returns the address of an offset at which `len` bytes lie in the range, with this alignment.
    pub fn address<T: SavedState>(&self, offset: u64, len: u64, alignment: u64) -> Result<u64, RestoreError> {
        let address = self.0.start.checked_add(offset);
        let inside = |address: &u64| address.checked_add(len).is_some_and(|end| end <= self.0.end);
        let address = address.filter(inside).filter(|address| address.is_multiple_of(alignment));
        address.ok_or(RestoreError::invalid::<T>("an address outside the GGTT range or not aligned"))
    }

    /// Returns the address of an offset, or 0 for `None`.
    pub fn address_if_set<T: SavedState>(
        &self,
        at: Option<u64>,
        len: u64,
        alignment: u64,
    ) -> Result<u64, RestoreError> {
        at.map_or(Ok(0), |offset| self.address::<T>(offset, len, alignment))
    }
}

/// The GGTT entries of a VF: number of pages of its range, page, and the entry as the VF reads it. Pages without an address are left
/// out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedGgtt {
    pages: u32,
    entries: Vec<(u32, u64)>,
}

impl SavedState for SavedGgtt {
    const UNIT: &'static str = "GGTT";
    const TAGS: &'static [Tag] = &[GgttRecord::TAG, EntryRecord::TAG];

    fn write(&self, to: &mut Writer) {
        let SavedGgtt { pages, entries } = self;
        to.record(GgttRecord { pages: (*pages).into() });
        let entry = |(page, entry): &(u32, u64)| EntryRecord { page: (*page).into(), entry: (*entry).into() };
        to.records(entries.iter().map(entry));
    }

    fn read(from: &Document<'_>) -> Result<Self, RestoreError> {
        let GgttRecord { pages } = from.record()?;
        let entry = |record: &EntryRecord| (record.page.get(), record.entry.get());
        let entries = from.records(MOST_PAGES)?.iter().map(entry).collect();
        Ok(SavedGgtt { pages: pages.get(), entries })
    }
}

/// Largest number of entries.
const MOST_PAGES: usize = GGTT_BYTES / size_of::<u64>();

arctic_base::record! {
    /// The table of a function.
    struct GgttRecord[b"GGTT", 4] {
        /// Pages of the function's range.
        pages: U32,
    }

    /// A GGTT entry as the function reads it.
    struct EntryRecord[b"GGTE", 12] {
        /// Page of the function's range.
        page: U32,
        entry: U64,
    }

    /// Local memory.
    struct FramesRecord[b"LMEM", 8] {
        /// Size in bytes.
        bytes: U64,
    }

    /// A part of local memory that contains data.
    struct DataRecord[b"LMRN", 16] {
        offset: U64,
        len: U64,
    }
}

/// The GGTT entries of a VF.
pub struct GgttState<'m> {
    /// The card's memory.
    pub memory: &'m Memory,
    /// The VF.
    pub function: Function,
    /// Indices of the entries for the VF's GGTT range.
    pub indices: Range<u64>,
}

impl SaveState for GgttState<'_> {
    type Saved = SavedGgtt;

    fn save(&self) -> Result<SavedGgtt, SaveError> {
        let entries = self.memory.ggtt().effective_of(self.function, self.indices.clone());
        let entries = entries.map(|(_, entry)| entry.vf_read(self.function.number()));
        let entries = (0..).zip(entries);
        let written = entries.filter(|(_, entry)| has_contents(*entry));
        let pages = self.indices.end.saturating_sub(self.indices.start);
        Ok(SavedGgtt {
            pages: u32::try_from(pages).unwrap_or(u32::MAX),
            entries: written.map(|(page, entry)| (page, entry.into())).collect(),
        })
    }

    fn restore(&mut self, saved: &SavedGgtt) -> Result<(), RestoreError> {
        let indices = self.indices.clone();
        let pages = indices.end.saturating_sub(indices.start);
        if u64::from(saved.pages) != pages {
            return Err(RestoreError::invalid::<SavedGgtt>("the number of pages"));
        }
        let entries: BTreeMap<u32, GgttEntry> =
            saved.entries.iter().map(|(page, entry)| (*page, (*entry).into())).collect();
        let inside = |page: &u32| u64::from(*page) < pages;
        if entries.len() != saved.entries.len() || !entries.keys().all(inside) {
            return Err(RestoreError::invalid::<SavedGgtt>("a page outside the function's range, or twice"));
        }
        // Bits that no field uses are kept by hardware as well, but not the owner: a VF does not see it.
        if entries.values().any(|entry| entry.owner() != 0 || !has_contents(*entry)) {
            return Err(RestoreError::invalid::<SavedGgtt>("an entry with an owner, or without contents"));
        }
        let value = |index: u64| {
            let page = u32::try_from(index.wrapping_sub(indices.start)).ok();
            page.and_then(|page| entries.get(&page)).copied().unwrap_or_default()
        };
        let owned = self.memory.ggtt().load_vf(self.function, indices.clone(), value);
        self.memory.invalidate(self.function.bit());
        if owned { Ok(()) } else { Err(RestoreError::invalid::<SavedGgtt>("a page that the function does not own")) }
    }
}

/// Returns whether the entry, as a VF reads it, has more than the valid bit.
fn has_contents(entry: GgttEntry) -> bool {
    entry.with_valid(false) != GgttEntry::new()
}

/// Description of a VF's local memory: its size in bytes, and the parts that contain data (offset and length),
/// ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedFrames {
    bytes: u64,
    data: Vec<(u64, u64)>,
}

impl SavedState for SavedFrames {
    const UNIT: &'static str = "local memory";
    const TAGS: &'static [Tag] = &[FramesRecord::TAG, DataRecord::TAG];

    fn write(&self, to: &mut Writer) {
        let SavedFrames { bytes, data } = self;
        to.record(FramesRecord { bytes: (*bytes).into() });
        let run = |(offset, len): &(u64, u64)| DataRecord { offset: (*offset).into(), len: (*len).into() };
        to.records(data.iter().map(run));
    }

    fn read(from: &Document<'_>) -> Result<Self, RestoreError> {
        let FramesRecord { bytes } = from.record()?;
        let run = |record: &DataRecord| (record.offset.get(), record.len.get());
        Ok(SavedFrames { bytes: bytes.get(), data: from.records(MOST_RUNS)?.iter().map(run).collect() })
    }
}

/// Largest number of parts of local memory with data: every other page of 16 GiB.
const MOST_RUNS: usize = 1 << 21;

impl SavedFrames {
    /// The parts that contain data, by the VF's address; their contents must be transferred. The rest reads as zeros.
    pub fn data(&self) -> impl Iterator<Item = Range<u64>> {
        self.data.iter().map(|(offset, len)| *offset..offset.saturating_add(*len))
    }
}

/// The frames of a VF's local memory.
pub struct Frames<'m> {
    /// The card's memory.
    pub memory: &'m Memory,
    /// The VF.
    pub function: Function,
}

impl SaveState for Frames<'_> {
    type Saved = SavedFrames;

    fn save(&self) -> Result<SavedFrames, SaveError> {
        let data = self.memory.data_of(self.function).map(|run| (run.start, run.end.saturating_sub(run.start)));
        Ok(SavedFrames { bytes: self.memory.quota(self.function), data: data.collect() })
    }

    /// Checks that the VF has a frame for all data. The contents are not changed.
    fn restore(&mut self, saved: &SavedFrames) -> Result<(), RestoreError> {
        let here = self.memory.quota(self.function);
        if saved.bytes != here {
            return Err(RestoreError::invalid::<SavedFrames>("the size"));
        }
        let frames: Vec<bool> = self.memory.frames_of(self.function).map(|frame| frame.is_some()).collect();
        let mut from = 0;
        for (offset, len) in &saved.data {
            let end = offset.checked_add(*len).filter(|end| *end <= here && offset < end && *offset >= from);
            let Some(end) = end else { return Err(RestoreError::invalid::<SavedFrames>("a range of data")) };
            let mut pages = offset / FRAME..end.div_ceil(FRAME);
            if !pages.all(|page| usize::try_from(page).is_ok_and(|page| frames.get(page) == Some(&true))) {
                return Err(RestoreError::invalid::<SavedFrames>("data where the function has no frame"));
            }
            from = end;
        }
        Ok(())
    }
}
