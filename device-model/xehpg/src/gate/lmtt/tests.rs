// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the walk with tables as written by xe, and with arbitrary memory contents.
#![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

use arctic_fidelity::proves;
use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

mod small;

const LOCAL: u64 = 16 << 30;
const DIRECTORY: u64 = 0x3_fff0_0000;
const TABLE_AT: u64 = 0x2_0001_0000;
const QUOTA: u64 = 4 << 30;

/// Local memory: dwords by address, 0 elsewhere.
#[derive(Clone, Default)]
struct Memory(HashMap<u64, u32>);

impl Memory {
    /// VF 7 has a table; its second page is at 6 MiB.
    fn of_vf_7() -> Self {
        Memory(HashMap::from([(DIRECTORY + 7 * 4, directory_entry(TABLE_AT)), (TABLE_AT + 4, table_entry(6 << 20))]))
    }

    fn walk(&self, lmtt: Lmtt, vf: u8, guest: u64, quota: u64) -> Result<u64, LmttFault> {
        lmtt.walk(vf, guest, quota, |at| Some(self.0.get(&at).copied().unwrap_or(0)))
    }
}

fn lmtt() -> Lmtt {
    Lmtt { register: register(DIRECTORY), local_bytes: LOCAL }
}

#[test]
fn formats() {
    proves!(
        [V13_102, V13_103, V13_104, V13_105, V13_106, V13_107],
        "register and entries as xe encodes them (35 bits), and the wider fields (37 bits) (contract D.5)"
    );
    assert_eq!(register(DIRECTORY), 0x8003_fff0);
    assert_eq!(directory_entry(0x7_ffff_0000), 0x7_ffff << 4 | 1);
    assert_eq!(table_entry((32 << 30) - PAGE), 0x3fff << 5 | 1);
    assert_eq!((table_address(!0), frame_address(!0)), ((128 << 30) - 0x1_0000, (128 << 30) - PAGE));
    assert_eq!((table_address(0xf), frame_address(0x1f)), (0, 0), "reserved bits are not part of the address");
    assert_eq!((lmtt().directory(), lmtt().enabled()), (DIRECTORY, true));
}

#[test]
fn a_page() {
    proves!(
        [V13_101, V13_102, V13_103, V13_104, V13_105, V13_106],
        "first and last byte of the second 2 MiB page of VF 7"
    );
    let memory = Memory::of_vf_7();
    assert_eq!(memory.walk(lmtt(), 7, PAGE, QUOTA), Ok(6 << 20));
    assert_eq!(memory.walk(lmtt(), 7, 2 * PAGE - 1, QUOTA), Ok((8 << 20) - 1));
    let read = |at| memory.0.get(&at).copied();
    assert_eq!(lmtt().table(7, read), Ok(TABLE_AT));
    assert_eq!(lmtt().frame(TABLE_AT, 1, read), Ok(6 << 20));
    assert_eq!(lmtt().frame(TABLE_AT, TABLE_ENTRIES, |at| panic!("{at:#x} was read")), Err(LmttFault::Quota));
    assert_eq!(lmtt().frame(u64::MAX - 3, 1, |at| panic!("{at:#x} was read")), Err(LmttFault::Memory));
}

#[test]
fn faults() {
    proves!([V13_101, V13_102, V13_103, V13_107], "each fault and its cause (contract D.5)");
    let memory = Memory::of_vf_7();
    let walk = |vf, guest| memory.walk(lmtt(), vf, guest, QUOTA);
    assert_eq!(walk(7, 0), Err(LmttFault::Entry));
    assert_eq!(walk(7, 2 * PAGE), Err(LmttFault::Entry));
    assert_eq!(walk(6, PAGE), Err(LmttFault::Directory), "a VF without a table");
    assert_eq!(walk(0, PAGE), Err(LmttFault::Function), "the PF has no LMTT");
    assert_eq!(walk(64, PAGE), Err(LmttFault::Function), "no entry 64");
    assert_eq!(walk(7, QUOTA), Err(LmttFault::Quota));
    let off = Lmtt { register: register(DIRECTORY) & !ENABLE, ..lmtt() };
    assert_eq!(memory.walk(off, 7, PAGE, QUOTA), Err(LmttFault::Disabled));
    assert_eq!(lmtt().walk(7, PAGE, QUOTA, |_| None), Err(LmttFault::Memory));
}

/// Contract D.5: quota and the 32 GiB limit are checked before any table is read, for any address.
#[test]
fn beyond_the_quota_nothing_is_read() {
    for (guest, quota) in [(0, 0), (PAGE, PAGE), (GUEST_BYTES, u64::MAX), (u64::MAX, u64::MAX)] {
        let read = |at| panic!("{at:#x} was read for {guest:#x}");
        assert_eq!(lmtt().walk(7, guest, quota, read), Err(LmttFault::Quota));
    }
}

/// Contract D.5: directory, table and frame must lie entirely within the card's memory.
#[test]
fn beyond_the_card() {
    let memory = Memory::of_vf_7();
    let small = |local_bytes| Lmtt { local_bytes, ..lmtt() };
    assert_eq!(memory.walk(small(DIRECTORY + 7 * 4 + 4), 7, PAGE, QUOTA), Ok(6 << 20));
    assert_eq!(memory.walk(small(DIRECTORY + 7 * 4 + 3), 7, PAGE, QUOTA), Err(LmttFault::Memory));
    let mut memory = Memory::of_vf_7();
    for (frame, outcome) in [(LOCAL - PAGE, Ok(LOCAL - PAGE)), (LOCAL, Err(LmttFault::Memory))] {
        memory.0.insert(TABLE_AT + 4, table_entry(frame));
        assert_eq!(memory.walk(lmtt(), 7, PAGE, QUOTA), outcome);
    }
    memory.0.insert(DIRECTORY + 7 * 4, directory_entry(LOCAL));
    assert_eq!(memory.walk(lmtt(), 7, PAGE, QUOTA), Err(LmttFault::Memory));
    let far = Lmtt { register: !0, ..lmtt() };
    assert_eq!(memory.walk(far, 7, PAGE, QUOTA), Err(LmttFault::Memory));
}

proptest! {
    #[test]
    fn no_address_without_an_entry(
        seed in any::<u64>(), directory in 0..0x1_0000_u32, enabled in prop::bool::weighted(0.9),
        vf in prop_oneof![9 => 1..64_u8, 1 => any::<u8>()],
        guest in prop_oneof![4 => 0..GUEST_BYTES, 1 => any::<u64>()],
        quota in prop_oneof![4 => GUEST_BYTES / 2..2 * GUEST_BYTES, 1 => any::<u64>(), 1 => 0..GUEST_BYTES],
        local_pages in 0..8192_u64,
    ) {
        proves!(
            [V13_101, V13_102, V13_103, V13_104, V13_105, V13_106],
            "with arbitrary memory contents, the walk reads at most two dwords, both within the card's memory. A \
            resulting address is within quota and card. Its frame is given by a valid entry in the table to which \
            the function's own valid directory entry points (contract D.5)"
        );
        let register = directory | if enabled { ENABLE } else { 0 };
        let lmtt = Lmtt { register, local_bytes: local_pages * PAGE };
        // Pseudo-random memory: odd values are valid entries, most of them small enough to point into the card.
        let dword = |at: u64| {
            let mixed = (at ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16;
            mixed as u32 & if mixed >> 40 & 7 == 0 { !0 } else { 0x1_ffff } | u32::from(mixed >> 44 & 3 != 0)
        };
        let mut read = Vec::new();
        let result = lmtt.walk(vf, guest, quota, |at| { read.push(at); Some(dword(at)) });
        prop_assert!(read.len() <= 2 && read.iter().all(|at| at % 4 == 0 && at + 4 <= lmtt.local_bytes));
        if let Ok(address) = result {
            prop_assert!(lmtt.enabled() && guest < quota && guest < GUEST_BYTES && (1..64).contains(&vf));
            prop_assert!(address < lmtt.local_bytes && address % PAGE == guest % PAGE);
            let table = dword(lmtt.directory() + 4 * u64::from(vf));
            let page = dword(table_address(table) + 4 * (guest / PAGE));
            prop_assert!(table & 1 == 1 && page & 1 == 1);
            prop_assert_eq!(address - address % PAGE, frame_address(page));
        }
    }

    #[test]
    fn vfs_with_separate_frames_share_no_address(
        frames in prop::collection::hash_set(0..8192_u64, 64), one in 0..32_u64, other in 0..32_u64, offset in 0..PAGE,
    ) {
        proves!([V13_010, V13_101], "two VFs with separate frames never reach the same address");
        let mut memory = Memory::default();
        let frames: Vec<u64> = frames.into_iter().collect();
        for (vf, own) in [(1_u64, &frames[..32]), (63, &frames[32..])] {
            let table = 0x1_0000 * vf;
            memory.0.insert(DIRECTORY + 4 * vf, directory_entry(table));
            memory.0.extend((0..).zip(own).map(|(n, frame)| (table + 4 * n, table_entry(frame * PAGE))));
        }
        let walk = |vf, page| memory.walk(lmtt(), vf, page * PAGE + offset, 32 * PAGE);
        prop_assert_eq!(walk(1, one), Ok(frames[one as usize] * PAGE + offset));
        prop_assert_eq!(walk(63, other), Ok(frames[32 + other as usize] * PAGE + offset));
        prop_assert_eq!(walk(1, 32 + other), Err(LmttFault::Quota));
    }
}
