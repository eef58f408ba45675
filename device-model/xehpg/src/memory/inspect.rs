// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Translations of a function as a part of the card's state: its GGTT range, its page tables and its local memory. Guest memory
//! is not read: all tables are the card's.

use std::ops::Range;

use arctic_base::inspect::{Inspect, Inspector, Node, Run, Runs};

use super::ppgtt::{COMPACT_INDEX_BITS, ENTRY_BYTES, INDEX_BITS, PageTableFormat, SHIFT_4K, SHIFT_64K};
use super::{CellValue, FRAME, Memory, ggtt};
use crate::host::Function;

/// Maximum number of entries of page tables that are read for a list: the lock of an engine or of the GuC is held meanwhile.
const MOST_ENTRIES: usize = 1 << 18;

/// The entries of a range of the GGTT. Parts are the runs of valid pages, and each page by its address.
pub struct GgttRange<'m> {
    /// The memory.
    pub memory: &'m Memory,
    /// The function that reads the entries.
    pub function: Function,
    /// Addresses.
    pub range: Range<u64>,
}

impl Inspect for GgttRange<'_> {
    fn inspect(&self, to: &mut Inspector<'_>) {
        let owner =
            |entry: ggtt::GgttEntry| entry.function().map_or_else(|| "?".into(), |function| function.to_string());
        let place = |entry: ggtt::GgttEntry| if entry.local() { "local memory" } else { "system memory" };
        if let Some((name, address)) = to.wanted_address().filter(|(_, address)| self.range.contains(address)) {
            let entry = self.memory.ggtt().effective(address / ggtt::GGTT_PAGE);
            to.value_with_parts(&name, Node::hex(u64::from(entry), 16), |to| {
                to.value("valid", entry.valid());
                to.value("place", place(entry));
                to.value("owner", owner(entry));
                to.address("target", entry.address());
            });
            return;
        }
        let mut runs = Runs::new(to);
        let indices = ggtt::indices(&self.range);
        for (index, entry) in self.memory.ggtt().effective_of(self.function, indices) {
            let run = || Run {
                address: index.saturating_mul(ggtt::GGTT_PAGE),
                bytes: ggtt::GGTT_PAGE,
                target: entry.address(),
                kind: format!("{} of {}", place(entry), owner(entry)),
            };
            // The entry of a page without a mapping has address 0 (`GgttEntry::assigned`).
            if entry.valid() && entry.address() != 0 && !runs.add(run()) {
                return;
            }
        }
        runs.end();
    }
}

/// The page tables of a context. Parts are the runs of mapped pages, and the walk for an address.
pub struct PageTables<'m> {
    /// The memory.
    pub memory: &'m Memory,
    /// The function that has the tables.
    pub function: Function,
    /// Address of the root.
    pub root: u64,
}

impl PageTables<'_> {
    fn entry(&self, table: u64, index: u64) -> Option<u64> {
        let format = self.memory.page_tables;
        let at = (table & format.address).wrapping_add(index.wrapping_mul(ENTRY_BYTES));
        let at = self.memory.host_address(self.function, at).ok()?;
        u64::load(&self.memory.storage.slice(at, 8)?, 0)
    }

    fn kind(format: &PageTableFormat, entry: u64) -> String {
        let place = match entry {
            null if null & format.null != 0 => "null",
            local if local & format.local != 0 => "local memory",
            _ => "system memory",
        };
        let access = if entry & format.writable == 0 { ", read-only" } else { "" };
        format!("{place}{access}")
    }

    /// Shows the entries that translate `address`.
    fn walk(&self, to: &mut Inspector<'_>, address: u64) {
        let format = self.memory.page_tables;
        let mut table = self.root;
        let mut compact = false;
        let last = format.directories.len();
        for level in 0..=last {
            let (number, shift, bits) = match format.directories.get(level) {
                Some(directory) => (directory.number, directory.shift, INDEX_BITS),
                None if compact => (0, SHIFT_64K, COMPACT_INDEX_BITS),
                None => (0, SHIFT_4K, INDEX_BITS),
            };
            let index = address >> shift & (1_u64 << bits).wrapping_sub(1);
            let Some(entry) = self.entry(table, index) else {
                to.value(&format!("level_{number}"), "the table is outside the function's local memory");
                return;
            };
            let is_page = level == last || level > 0 && entry & format.page_size != 0;
            let is_present = entry & format.present != 0;
            to.value_with_parts(&format!("level_{number}"), Node::hex(entry, 16), |to| {
                to.address("table", table & format.address);
                to.value("index", index);
                to.value("present", is_present);
            });
            if is_page && is_present {
                let shift = if level == last && entry & format.hint_64k != 0 { SHIFT_64K } else { shift };
                let within = (1_u64 << shift).wrapping_sub(1);
                to.address("target", entry & format.address & !within | address & within);
                to.value("page_bytes", 1_u64 << shift);
                to.value("kind", Self::kind(format, entry));
            }
            if is_page || !is_present {
                return;
            }
            compact = entry & format.compact_64k != 0;
            table = entry;
        }
    }

    /// Adds the pages below a table, whose entries are those of level `level`. Returns whether more can be added.
    fn list(
        &self,
        runs: &mut Runs<'_, '_>,
        read: &mut usize,
        (table, base): (u64, u64),
        level: usize,
        compact: bool,
    ) -> bool {
        let format = self.memory.page_tables;
        let directory = format.directories.get(level);
        let (shift, bits) = match directory {
            Some(directory) => (directory.shift, INDEX_BITS),
            None if compact => (SHIFT_64K, COMPACT_INDEX_BITS),
            None => (SHIFT_4K, INDEX_BITS),
        };
        for index in 0..1_u64 << bits {
            *read = read.saturating_add(1);
            if *read > MOST_ENTRIES {
                runs.cut();
                return false;
            }
            // A table that cannot be read has no other entries either.
            let Some(entry) = self.entry(table, index) else { return true };
            if entry & format.present == 0 {
                continue;
            }
            let address = base | index << shift;
            let is_page = directory.is_none() || level > 0 && entry & format.page_size != 0;
            let goes_on = if is_page {
                let bytes = 1_u64 << shift;
                let target = entry & format.address & !bytes.wrapping_sub(1);
                runs.add(Run { address, bytes, target, kind: Self::kind(format, entry) })
            } else {
                let below = (entry, address);
                self.list(runs, read, below, level.saturating_add(1), entry & format.compact_64k != 0)
            };
            if !goes_on {
                return false;
            }
        }
        true
    }
}

impl Inspect for PageTables<'_> {
    fn inspect(&self, to: &mut Inspector<'_>) {
        if let Some((name, address)) = to.wanted_address() {
            return to.part(&name, |to| self.walk(to, address));
        }
        let mut runs = Runs::new(to);
        if self.list(&mut runs, &mut 0, (self.root, 0), 0, false) {
            runs.end();
        }
    }
}

/// The local memory of a VF: the frames that the LMTT assigns to it.
pub struct LocalMemory<'m> {
    /// The memory.
    pub memory: &'m Memory,
    /// The VF.
    pub vf: Function,
}

impl Inspect for LocalMemory<'_> {
    fn inspect(&self, to: &mut Inspector<'_>) {
        let mut runs = Runs::new(to);
        for (page, target) in (0_u64..).zip(self.memory.frames_of(self.vf)) {
            let run = |target| Run {
                address: page.saturating_mul(FRAME),
                bytes: FRAME,
                target,
                kind: "local memory of the card".into(),
            };
            if target.is_some_and(|target| !runs.add(run(target))) {
                return;
            }
        }
        runs.end();
    }
}
