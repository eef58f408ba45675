// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The global graphics translation table (GGTT): 4 GiB of address space, 2^20 64-bit entries (V13-019, V13-027).
//!
//! The PF's table defines the owner and the valid bit of each page. A virtual function can change the other bits of its
//! own entries (V13-021..026). If its window is trapped, each access is checked. If its VMM maps the window, the VF
//! writes a separate table, and the effective entry is combined from both tables on use.

use std::iter;
use std::ops::Range;

use super::region::SharedRegion;
use super::{CellValue, Span};
use crate::gate;
pub use crate::gate::ggtt::GgttEntry;
use crate::host::Function;

/// Size of the table in bytes: the upper half of GTTMMADR (V13-004).
pub const GGTT_BYTES: usize = 8 << 20;
/// Page size of the GGTT in bytes (V13-028).
pub const GGTT_PAGE: u64 = gate::ggtt::PAGE;

impl GgttEntry {
    /// The owning function, if a function with that number exists.
    pub fn function(self) -> Option<Function> {
        match self.owner() {
            0 => Some(Function::PF),
            vf => Function::vf(u32::from(vf)),
        }
    }
}

/// The table, in memory that is also mapped by the PF's VMM. Each use of an entry reads it with a single load.
pub struct Ggtt {
    table: SharedRegion,
    /// The tables of VFs whose window is mapped by their VMM, VF 1 first.
    vfs: Vec<Option<SharedRegion>>,
}

impl Ggtt {
    /// Creates the GGTT from `table`, which has [`GGTT_BYTES`] bytes.
    pub fn new(table: SharedRegion) -> Self {
        Ggtt { table, vfs: Vec::new() }
    }

    /// Sets the separate tables of the VFs, VF 1 first, [`GGTT_BYTES`] each; `None` if accesses are trapped.
    pub fn set_vfs(&mut self, vfs: Vec<Option<SharedRegion>>) {
        self.vfs = vfs;
    }

    /// The regions of all tables.
    pub fn regions(&self) -> impl Iterator<Item = &SharedRegion> {
        iter::once(&self.table).chain(self.vfs.iter().flatten())
    }

    /// Number of entries.
    pub fn entries(&self) -> u64 {
        self.table.len() / 8
    }

    /// Entry `index` of the PF's table; an invalid entry if out of range.
    #[inline]
    pub fn entry(&self, index: u64) -> GgttEntry {
        load(&self.table, index)
    }

    /// Entry `index` as the hardware uses it: owner and valid bit from the PF's table, the other bits from the owner's
    /// separate table if the owner has written there.
    #[inline]
    pub fn effective(&self, index: u64) -> GgttEntry {
        let entry = self.entry(index);
        if entry.owner() == 0 { entry } else { self.with_owners_part(index, entry) }
    }

    /// The entries at `indices` with their numbers, as [`Ggtt::effective`] returns them. Pages of the separate table of `vf` in
    /// which it has written nothing are not read, because that would allocate them.
    pub fn effective_of(&self, vf: Function, indices: Range<u64>) -> impl Iterator<Item = (u64, GgttEntry)> {
        let bytes = indices.start.saturating_mul(8)..indices.end.saturating_mul(8);
        let mut written = self.table_of(vf).into_iter().flat_map(move |own| own.data(bytes.clone())).peekable();
        indices.map(move |index| {
            let at = index.saturating_mul(8);
            while written.next_if(|run| run.end <= at).is_some() {}
            let is_written = written.peek().is_some_and(|run| run.start <= at);
            let entry = self.entry(index);
            let is_own = entry.function() == Some(vf);
            (index, if is_own && !is_written { entry } else { self.effective(index) })
        })
    }

    fn with_owners_part(&self, index: u64, entry: GgttEntry) -> GgttEntry {
        let Some(owner) = entry.function() else { return entry };
        let own = self.table_of(owner).map_or(GgttEntry::new(), |table| load(table, index));
        entry.combine(own, owner.number())
    }

    /// The separate table of `vf`, if its window is mapped.
    pub(crate) fn table_of(&self, vf: Function) -> Option<&SharedRegion> {
        self.vfs.get(vf.index().checked_sub(1)?)?.as_ref()
    }

    /// Stores entry `index` of the PF's table; dropped if out of range.
    pub fn set_entry(&self, index: u64, entry: GgttEntry) {
        store(&self.table, index, entry.into());
    }

    /// Handles a trapped read of `function`'s window: reads `data.len()` bytes starting at `offset`, and zeros outside
    /// the function's entries.
    pub fn read(&self, function: Function, offset: u64, data: &mut [u8]) {
        data.fill(0);
        if !function.is_vf() {
            if let Some(bytes) = self.table.slice(offset, data.len()) {
                // Cannot fail: the slice has exactly this length.
                let _ = Span::Mapped(bytes).read(data);
            }
            return;
        }
        for (index, within, part) in parts(offset, data.len()) {
            let entry = self.effective(index);
            let value = entry.vf_read(function.number()).into_bits().to_le_bytes();
            if let (Some(data), Some(value)) = (data.get_mut(part), value.get(within)) {
                data.copy_from_slice(value);
            }
        }
    }

    /// Handles a trapped write of `function`'s window at `offset`. A partial write of an entry is merged with the value
    /// that the function reads there.
    pub fn write(&self, function: Function, offset: u64, data: &[u8]) {
        if !function.is_vf() {
            if let Some(bytes) = self.table.slice(offset, data.len()) {
                let _ = Span::Mapped(bytes).write(data);
            }
            return;
        }
        for (index, within, part) in parts(offset, data.len()) {
            self.change(index, function, |seen| {
                let mut value = seen.into_bits().to_le_bytes();
                if let (Some(value), Some(data)) = (value.get_mut(within.clone()), data.get(part.clone())) {
                    value.copy_from_slice(data);
                }
                u64::from_le_bytes(value).into()
            });
        }
    }

    /// Replaces an entry with the result of `new` for the value that `vf` reads; dropped if `vf` is not the owner
    /// (V13-025).
    fn change(&self, index: u64, vf: Function, new: impl Fn(GgttEntry) -> GgttEntry) {
        /// The PF may write the entry concurrently, in which case the owner is checked again. After this many attempts,
        /// the write is dropped.
        const ATTEMPTS: usize = 8;
        let own = self.table_of(vf);
        let Some(slice) = index.checked_mul(8).and_then(|at| own.unwrap_or(&self.table).slice(at, 8)) else { return };
        let mut attempts = 0..ATTEMPTS;
        u64::update(&slice, 0, |entry| {
            attempts.next()?;
            let entry = GgttEntry::from(entry);
            let written = match own {
                None => entry.vf_write(vf.number(), new(entry.vf_read(vf.number())))?,
                Some(_) => {
                    let effective = self.entry(index).combine(entry, vf.number());
                    effective.owned_by(vf.number()).then(|| new(effective.vf_read(vf.number())))?
                }
            };
            Some(written.into())
        });
    }

    /// Clears the separate table of `vf`. Called when its range has changed, its configuration was removed, or its FLR
    /// ends.
    pub fn empty_vf(&self, vf: Function) {
        if let Some(own) = self.table_of(vf) {
            own.clear(0..own.len());
        }
    }

    /// Discards all page addresses that `vf` has written to its entries at `indices`: in its separate table, and in the
    /// PF's table, where they are if its window is trapped or after [`Ggtt::settle_vf`]. Owner and valid bit are
    /// unchanged.
    pub fn erase_vf(&self, vf: Function, indices: Range<u64>) {
        self.empty_vf(vf);
        for index in indices {
            let cell = index.checked_mul(8).and_then(|at| self.table.slice(at, 8));
            let erase = |entry: u64| {
                let erased = GgttEntry::from(entry).vf_write(vf.number(), GgttEntry::new()).map(u64::from);
                erased.filter(|erased| *erased != entry)
            };
            // Fails if the entry is not the VF's or has no address.
            let _ = cell.and_then(|cell| u64::update(&cell, 0, erase));
        }
    }

    /// Copies the entries that `vf` has written to its separate table into the PF's table, from which the PF saves the
    /// function (PAUSE_DONE). Owner and valid bit are unchanged.
    pub fn settle_vf(&self, vf: Function) {
        let Some(own) = self.table_of(vf) else { return };
        for run in own.data(0..own.len()) {
            for index in run.start / 8..run.end / 8 {
                let Some(slice) = self.table.slice(index << 3, 8) else { continue };
                let mut attempts = 0..1;
                // One attempt: it fails if the PF concurrently assigns the page to another function, in which case the
                // entry must not be changed.
                u64::update(&slice, 0, |entry| {
                    attempts.next()?;
                    let entry = GgttEntry::from(entry);
                    let settled = entry.combine(load(own, index), vf.number());
                    (settled != entry).then(|| settled.into())
                });
            }
        }
    }

    /// Replaces the entries of `vf` in the PF's table at `indices` by `value`, a function of the index, which yields
    /// what the VF would write; owner and valid bit are unchanged. Clears the VF's separate table, which would take
    /// precedence. Returns whether the VF owns all of these entries.
    pub fn load_vf(&self, vf: Function, indices: Range<u64>, value: impl Fn(u64) -> GgttEntry) -> bool {
        self.empty_vf(vf);
        let mut owned = true;
        for index in indices {
            let (entry, value) = (self.entry(index), value(index));
            // Most entries have no address, before and after.
            if entry.vf_write(vf.number(), value) == Some(entry) {
                continue;
            }
            let cell = index.checked_mul(8).and_then(|at| self.table.slice(at, 8));
            let change = |entry: u64| GgttEntry::from(entry).vf_write(vf.number(), value).map(u64::from);
            let changed = cell.and_then(|cell| u64::update(&cell, 0, change));
            owned &= matches!(changed, Some(Ok(_)));
        }
        owned
    }

    /// Assigns the pages of `range` (GGTT addresses) to `function`: valid, but without a page address (xe:
    /// xe_ggtt_assign).
    pub fn assign(&self, function: Function, range: Range<u64>) {
        let entry = GgttEntry::assigned(function.number());
        let indices = indices(&range);
        for index in indices.start..indices.end.min(self.entries()) {
            self.set_entry(index, entry);
        }
    }
}

/// Returns the indices of the entries for `range` (GGTT addresses, multiples of [`GGTT_PAGE`]).
pub fn indices(range: &Range<u64>) -> Range<u64> {
    range.start / GGTT_PAGE..range.end / GGTT_PAGE
}

#[inline]
fn load(table: &SharedRegion, index: u64) -> GgttEntry {
    let load = |at: usize| u64::load(&table.slice(0, GGTT_BYTES)?, at);
    usize::try_from(index.saturating_mul(8)).ok().and_then(load).unwrap_or(0).into()
}

fn store(table: &SharedRegion, index: u64, value: u64) {
    if let Some(slice) = table.slice(index.saturating_mul(8), 8) {
        value.store(&slice, 0);
    }
}

/// Splits an access of `len` bytes at `offset` into entries: index, and the ranges of bytes within the entry and within
/// the access.
fn parts(offset: u64, len: usize) -> impl Iterator<Item = (u64, Range<usize>, Range<usize>)> {
    let mut done = 0_usize;
    std::iter::from_fn(move || {
        if done >= len {
            return None;
        }
        let at = offset.checked_add(done as u64)?;
        let within = (at % 8) as usize;
        let n = 8_usize.saturating_sub(within).min(len.saturating_sub(done));
        let from = done;
        done = from.saturating_add(n);
        Some((at / 8, within..within.saturating_add(n), from..done))
    })
}
