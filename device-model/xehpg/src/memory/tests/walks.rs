// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Page tables that change during a walk (TOCTOU): each entry is read once, and the walk uses the value that was read.

use std::collections::HashMap;

use super::ppgtt::{self, WalkFault};
use super::tlb::{Backing, Tlb};
use super::*;

/// Values of an entry: zero, table addresses, pages of both memories, a large page, a 64 KiB page, a NULL page,
/// read-only.
const ENTRIES: [u64; 9] = [0, 0x5003, 0x5043, 0x7803, 0x9003, 0x20_0883, 0x203, 0x1_0903, 0xb801];

/// All combinations of the first value of the entries at four levels (9^4 = 6561); a second read of an entry fails the
/// test. The walk reads each entry at most once, at most four in all, each in the table to which the previous entry
/// points; the resulting page is determined by the first values.
#[test]
fn every_entry_is_read_once() {
    const ADDRESS: u64 = 0x1234_5678_9000;
    let field = 0x3fff_ffff_f000_u64;
    for case in 0..ENTRIES.len().pow(4) {
        let first: [u64; 4] =
            std::array::from_fn(|level| ENTRIES[case / ENTRIES.len().pow(level as u32) % ENTRIES.len()]);
        let mut reads: HashMap<u64, u32> = HashMap::new();
        let mut order = Vec::new();
        let mut tlb = Tlb::default();
        // Tables may point to each other: the n-th read returns the n-th value of the case, regardless of its address.
        let found =
            ppgtt::walk(&ppgtt::XE_HPG_PAGE_TABLES, &mut tlb, Function::new(1).unwrap(), 0x1000, ADDRESS, |at| {
                let times = reads.entry(at).or_default();
                *times += 1;
                assert_eq!(*times, 1, "{first:x?}: {at:#x} is read again");
                order.push(at);
                Ok::<u64, std::convert::Infallible>(first[order.len() - 1])
            });
        assert!(order.len() <= 4);
        let mut table = 0x1000;
        let mut expected = None;
        for (n, (at, entry)) in order.iter().zip(first).enumerate() {
            let level = 3 - n as u32;
            assert_eq!(at & !0xfff, table, "{first:x?}: level {level}");
            let leaf = entry & 1 == 0 || level == 0 || level < 3 && entry & 0x80 != 0;
            assert_eq!(leaf, n + 1 == order.len(), "{first:x?}: level {level}");
            if leaf {
                expected = Some((level, entry));
            }
            table = entry & field;
        }
        let (level, entry) = expected.unwrap();
        match found {
            Err(fault) => {
                assert_eq!((fault, entry & 1), (WalkFault::NotPresent { level: level as u8 }, 0), "{first:x?}");
            }
            Ok(page) => {
                let compact = first[2] & 0x40 != 0;
                let len: u64 = match level {
                    2 => 1 << 30,
                    1 => 1 << 21,
                    _ if compact || entry & 0x100 != 0 => 1 << 16,
                    _ => 1 << 12,
                };
                assert_eq!((page.len, page.base), (len, ADDRESS & !(len - 1)), "{first:x?}");
                assert_eq!(page.target, entry & field & !(len - 1), "{first:x?}");
                assert_eq!(page.writable, entry & 2 != 0, "{first:x?}");
                let backing = match (entry & 0x200 != 0, entry & 0x800 != 0) {
                    (true, _) => Backing::Null,
                    (_, true) => Backing::Local,
                    _ => Backing::System(Function::new(1).unwrap()),
                };
                assert_eq!(page.backing, backing, "{first:x?}");
            }
        }
    }
}
