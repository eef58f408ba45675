// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! MMIO dispatch by a sorted table, which is replaced as a whole. Lookups take no lock.

use std::ops::Range;
use std::sync::Mutex;

use arc_swap::ArcSwap;
use std::sync::PoisonError;

/// Maps address ranges to targets.
pub struct RangeMap<T> {
    /// Sorted by start address.
    table: ArcSwap<Vec<(Range<u64>, T)>>,
    /// Serialises writers of the table.
    writer: Mutex<()>,
}

impl<T> Default for RangeMap<T> {
    fn default() -> Self {
        RangeMap { table: ArcSwap::from_pointee(Vec::new()), writer: Mutex::new(()) }
    }
}

impl<T: Clone> RangeMap<T> {
    /// Calls `access` with the target that contains all `len` bytes at `address`, and the offset within its range.
    /// Returns `None` if there is no such target. Of several overlapping ranges, the one with the highest start address
    /// is used.
    pub fn find<R>(&self, address: u64, len: usize, access: impl FnOnce(&T, u64) -> R) -> Option<R> {
        let table = self.table.load();
        let behind = table.partition_point(|(range, _)| range.start <= address);
        let end = address.checked_add(len as u64)?;
        let (range, target) = table[..behind].iter().rev().find(|(range, _)| end <= range.end)?;
        Some(access(target, address - range.start))
    }

    /// Adds a range.
    pub fn insert(&self, range: Range<u64>, target: T) {
        self.change(|table| {
            let place = table.partition_point(|(other, _)| other.start <= range.start);
            table.insert(place, (range, target));
        });
    }

    /// Removes all targets for which `gone` returns true. A concurrent access may still use a removed target.
    pub fn remove(&self, gone: impl Fn(&T) -> bool) {
        self.change(|table| table.retain(|(_, target)| !gone(target)));
    }

    fn change(&self, change: impl FnOnce(&mut Vec<(Range<u64>, T)>)) {
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut table = Vec::clone(&self.table.load());
        change(&mut table);
        self.table.store(table.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_is_found_for_its_bytes_only() {
        let map = RangeMap::default();
        map.insert(0x3000..0x4000, "c");
        map.insert(0x1000..0x2000, "a");
        let at = |address, len| map.find(address, len, |name, offset| (*name, offset));
        assert_eq!(at(0x1000, 4), Some(("a", 0)));
        assert_eq!(at(0x1ffc, 4), Some(("a", 0xffc)));
        assert_eq!(at(0x1ffc, 8), None, "crosses the end");
        assert_eq!(at(0x2000, 1), None);
        assert_eq!(at(0xfff, 1), None);
        assert_eq!(at(0x3abc, 1), Some(("c", 0xabc)));
        assert_eq!(at(u64::MAX, 8), None);
        map.insert(0x800..0x8000, "below");
        assert_eq!(at(0x1000, 4), Some(("a", 0)), "the higher start has priority");
        assert_eq!(at(0x2000, 1), Some(("below", 0x1800)));
        map.remove(|name| *name == "below");
        map.remove(|name| *name == "a");
        assert_eq!(at(0x1000, 4), None);
        assert_eq!(at(0x3000, 4), Some(("c", 0)));
    }
}
