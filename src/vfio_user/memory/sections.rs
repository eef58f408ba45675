// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The sections of one client as an immutable ordered set. A change copies one chunk and the list of chunks, and shares
//! the other chunks with the old set.

use std::sync::Arc;

/// Maximum number of sections in a chunk: 16 KiB. The cost of a change is one chunk plus one reference for each chunk.
const CHUNK: usize = 512;
/// A change joins a chunk below this length with a neighbour, if both fit in one. So the number of chunks is bounded by
/// the number of sections.
const SPARSE: usize = CHUNK / 4;

/// A range of I/O virtual addresses with the same rights in consecutive bytes of one backing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    pub iova: u64,
    /// Last address (inclusive); a section can end at the top of the 64-bit space.
    pub last: u64,
    /// Offset of the first byte in its file; the IOVA for memory of the client without a file.
    pub offset: u64,
    /// Number of the backing.
    pub backing: u32,
    /// `DMA_READABLE`, `DMA_WRITABLE`.
    pub rights: u32,
}

impl Section {
    pub fn allows(&self, rights: u32) -> bool {
        self.rights & rights == rights
    }

    /// Offset of address `at` in the backing; `at` must be inside the section.
    pub fn place(&self, at: u64) -> Option<u64> {
        self.offset.checked_add(at.checked_sub(self.iova)?)
    }

    /// Returns whether `next` continues this section: addresses and offsets follow each other, with equal rights.
    fn continues_with(&self, next: &Section) -> bool {
        (self.backing, self.rights) == (next.backing, next.rights)
            && self.last.checked_add(1) == Some(next.iova)
            && self.place(next.iova) == Some(next.offset)
    }

    /// The parts of the section before address `first` and after address `last`.
    fn outside(self, first: u64, last: u64) -> [Option<Section>; 2] {
        let before = first.checked_sub(1).filter(|end| *end >= self.iova).map(|last| Section { last, ..self });
        let after = last.checked_add(1).filter(|iova| *iova <= self.last);
        let after = after.and_then(|iova| Some(Section { iova, offset: self.place(iova)?, ..self }));
        [before, after]
    }
}

/// A non-empty sorted list of sections, with its first address.
#[derive(Clone)]
struct Chunk {
    first: u64,
    sections: Arc<[Section]>,
}

impl Chunk {
    fn new(sections: &[Section]) -> Option<Chunk> {
        sections.first().map(|first| Chunk { first: first.iova, sections: sections.into() })
    }
}

/// Position of a section: chunk, index in the chunk. The position after the last section of a chunk is equal to that of
/// the first section of the next.
#[derive(Clone, Copy)]
struct Position {
    chunk: usize,
    index: usize,
}

/// The change of a set: the sections that it removes and those that it adds.
pub struct Change {
    pub sections: Sections,
    pub removed: Vec<Section>,
    pub added: Vec<Section>,
}

/// Sections in ascending order, without overlaps. No section continues the one before it.
#[derive(Clone, Default)]
pub struct Sections {
    chunks: Vec<Chunk>,
    len: usize,
}

impl Sections {
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the section that contains `iova`.
    pub fn find(&self, iova: u64) -> Option<&Section> {
        self.last_before(self.first_after(iova)).filter(|section| iova <= section.last)
    }

    /// Position of the first section that begins after `iova`.
    fn first_after(&self, iova: u64) -> Position {
        let chunk = self.chunks.partition_point(|chunk| chunk.first <= iova).saturating_sub(1);
        let sections = self.chunks.get(chunk).map_or(&[][..], |chunk| &chunk.sections);
        Position { chunk, index: sections.partition_point(|section| section.iova <= iova) }
    }

    /// The section before a position of [`Sections::first_after`].
    fn last_before(&self, position: Position) -> Option<&Section> {
        // Only in the first chunk can all sections be after an address.
        self.chunks.get(position.chunk)?.sections.get(position.index.checked_sub(1)?)
    }

    fn iter_from(&self, position: Position) -> impl Iterator<Item = &Section> {
        let mut chunks = self.chunks.get(position.chunk..).unwrap_or_default().iter();
        let head = chunks.next().and_then(|chunk| chunk.sections.get(position.index..)).unwrap_or_default();
        head.iter().chain(chunks.flat_map(|chunk| chunk.sections.iter()))
    }

    /// Returns whether a section overlaps `[first, last]`.
    pub fn meets(&self, first: u64, last: u64) -> bool {
        let after = self.first_after(first);
        self.last_before(after).is_some_and(|section| section.last >= first)
            || self.iter_from(after).next().is_some_and(|section| section.iova <= last)
    }

    /// Adds `section`, which must not overlap another; it is merged with the neighbours that it continues or that
    /// continue it.
    pub fn insert(&self, section: Section) -> Change {
        let (mut merged, mut from) = (section, self.first_after(section.iova));
        let after = self.iter_from(from).next();
        let mut removed = Vec::new();
        if let Some(before) = self.last_before(from).filter(|before| before.continues_with(&section)) {
            merged = Section { last: merged.last, ..*before };
            from.index = from.index.saturating_sub(1);
            removed.push(*before);
        }
        if let Some(after) = after.filter(|after| section.continues_with(after)) {
            merged.last = after.last;
            removed.push(*after);
        }
        self.replace(from, removed, vec![merged])
    }

    /// Removes `[first, last]`; sections that it cuts keep the parts outside.
    pub fn remove(&self, first: u64, last: u64) -> Change {
        let mut from = self.first_after(first);
        if self.last_before(from).is_some_and(|before| before.last >= first) {
            from.index = from.index.saturating_sub(1);
        }
        let removed: Vec<_> = self.iter_from(from).take_while(|section| section.iova <= last).copied().collect();
        let mut added = Vec::new();
        if let (Some(head), Some(tail)) = (removed.first(), removed.last()) {
            let ([before, _], [_, after]) = (head.outside(first, last), tail.outside(first, last));
            added.extend(before.into_iter().chain(after));
        }
        self.replace(from, removed, added)
    }

    /// Replaces the sections `removed`, which begin at `from`, by `added`.
    fn replace(&self, from: Position, removed: Vec<Section>, added: Vec<Section>) -> Change {
        // The chunks from `from.chunk` up to `end` are replaced: those that contain a removed section.
        let (mut end, mut covered) = (from.chunk, 0_usize);
        let needed = from.index.saturating_add(removed.len());
        while let Some(chunk) = self.chunks.get(end).filter(|_| covered < needed || end == from.chunk) {
            covered = covered.saturating_add(chunk.sections.len());
            end = end.saturating_add(1);
        }
        let old = |chunk: usize| self.chunks.get(chunk).map_or(&[][..], |chunk| &chunk.sections);
        let head = old(from.chunk).get(..from.index).unwrap_or_default();
        let last = if end > from.chunk { old(end.saturating_sub(1)) } else { &[] };
        let kept = covered.saturating_sub(needed);
        let tail = last.get(last.len().saturating_sub(kept)..).unwrap_or_default();
        let (mut start, mut new) = (from.chunk, [head, &added, tail].concat());
        let fits = |chunk: &[Section], with: &[Section]| {
            with.len() < SPARSE && !chunk.is_empty() && chunk.len().saturating_add(with.len()) <= CHUNK
        };
        if let Some(before) = start.checked_sub(1)
            && fits(old(before), &new)
        {
            (start, new) = (before, [old(before), &new].concat());
        }
        // A chunk is cut at the change: sections that are added in ascending or descending order fill chunks.
        let least = new.len().saturating_sub(CHUNK).max(SPARSE);
        let cut = if new.len() <= CHUNK { 0 } else { head.len().clamp(least, CHUNK) };
        let (first, second) = new.split_at_checked(cut).unwrap_or_default();
        let joined = fits(old(end), second).then(|| [second, old(end)].concat());
        let mut chunks = Vec::with_capacity(self.chunks.len().saturating_add(2));
        chunks.extend_from_slice(self.chunks.get(..start).unwrap_or_default());
        chunks.extend(Chunk::new(first));
        chunks.extend(Chunk::new(joined.as_deref().unwrap_or(second)));
        let end = end.saturating_add(joined.is_some().into());
        chunks.extend_from_slice(self.chunks.get(end..).unwrap_or_default());
        let len = self.len.saturating_sub(removed.len()).saturating_add(added.len());
        Change { sections: Sections { chunks, len }, removed, added }
    }

    /// All sections in ascending order.
    #[cfg(test)]
    pub fn iter(&self) -> impl Iterator<Item = &Section> {
        self.iter_from(Position { chunk: 0, index: 0 })
    }

    /// Lengths of the chunks.
    #[cfg(test)]
    pub fn chunks(&self) -> impl Iterator<Item = usize> {
        self.chunks.iter().map(|chunk| chunk.sections.len())
    }
}
