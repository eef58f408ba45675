// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Accesses to the GGTT window, byte by byte, at both ends of the table and beyond.

use crate::gate::PF;
use arctic_fidelity::proves;

use super::*;

const END: u64 = GGTT_BYTES as u64;
/// Entries at both ends of the table, as written by the PF. Owners 0 to 2, one invalid entry, one with the number of a
/// missing function.
const ENTRIES: [u64; 6] = [
    0x0011_1111_1111_1000 | 1 << 2 | 1,
    0x0022_2222_2222_2000 | 2 << 2 | 3,
    0x0033_3333_3333_3000 | 1 << 2,
    0x0044_4444_4444_4000 | 0x41 << 2 | 1,
    0x0055_5555_5555_5000 | 3,
    0x0066_6666_6666_6000 | 1 << 2 | 3,
];
/// Bits of an entry that a VF cannot change: Valid and the owner (V13-024).
const KEPT: [u8; 8] = [0xfd, 0x0f, 0, 0, 0, 0, 0, 0];

fn index(n: usize) -> u64 {
    if n < 3 { n as u64 } else { END / 8 - 6 + n as u64 }
}

fn place(at: u128) -> Option<(usize, usize)> {
    (0..6).find(|n| at / 8 == u128::from(index(*n))).map(|n| (n, (at % 8) as usize))
}

fn owner(n: usize) -> u64 {
    ENTRIES[n] >> 2 & 0x3ff
}

/// Byte `at` of the window as `function` reads it, while the table contains `now`.
fn seen(now: &[[u8; 8]; 6], function: u8, at: u128) -> u8 {
    let Some((n, byte)) = place(at) else { return 0 };
    match function {
        PF => now[n][byte],
        vf if owner(n) == u64::from(vf) => now[n][byte] & ![0xfc, 0x0f, 0, 0, 0, 0, 0, 0][byte],
        _ => 0,
    }
}

#[test]
fn every_access_of_the_window() {
    proves!(
        [V13_019, V13_020, V13_021, V13_022, V13_023, V13_024, V13_025, V13_026],
        "every function (PF, two VFs), with trapped and mapped window, every offset from three entries before \
        either end of the table to two beyond it, and the highest offsets, every length up to 17: 2 * 3 * 112 * 18 \
        = 12 096 reads and as many writes. A read returns only bits that the function may read; a write changes \
        only bits that the function may write, and no other entry"
    );
    let mut cases = 0;
    for mapped in [false, true] {
        let mut ggtt = Ggtt::new(SharedRegion::anonymous(GGTT_BYTES).unwrap());
        if mapped {
            ggtt.set_vfs((0..2).map(|_| Some(SharedRegion::anonymous(GGTT_BYTES).unwrap())).collect());
        }
        let restore = || {
            for (n, entry) in ENTRIES.into_iter().enumerate() {
                ggtt.set_entry(index(n), GgttEntry::from(entry));
                for vf in [Function::new(1).unwrap(), Function::new(2).unwrap()] {
                    let own = ggtt.table_of(vf);
                    own.inspect(|own| own.slice(index(n) * 8, 8).unwrap().store(0_u64, 0, Ordering::SeqCst).unwrap());
                }
            }
        };
        let state = || -> [[u8; 8]; 6] { std::array::from_fn(|n| ggtt.effective(index(n)).into_bits().to_le_bytes()) };
        let untouched = [3, END / 16, END / 8 - 4];
        for function in 0..3_u8 {
            let offsets = (0..40).chain(END - 24..END + 16).chain(u64::MAX - 31..=u64::MAX);
            for offset in offsets {
                for len in 0..=17_usize {
                    restore();
                    let before = state();
                    let inside = u128::from(offset) + len as u128 <= u128::from(END);
                    let mut data = vec![0xee; len];
                    ggtt.read(Function::new(function).unwrap(), offset, &mut data);
                    for (at, byte) in (u128::from(offset)..).zip(&data) {
                        // The PF accesses the table as a whole: an access that exceeds it is dropped.
                        let expected = if function == PF && !inside { 0 } else { seen(&before, function, at) };
                        assert_eq!(*byte, expected, "{mapped} {function} {offset:#x} {len}: {at:#x}");
                    }
                    let data: Vec<u8> = (0..len as u8).map(|n| 0x91 + n * 6).collect();
                    ggtt.write(Function::new(function).unwrap(), offset, &data);
                    let mut expected = before;
                    for (at, byte) in (u128::from(offset)..).zip(&data) {
                        let Some((n, within)) = place(at) else { continue };
                        let cell = &mut expected[n][within];
                        match function {
                            PF if inside => *cell = *byte,
                            vf if vf != PF && owner(n) == u64::from(vf) => {
                                *cell = *cell & KEPT[within] | byte & !KEPT[within];
                            }
                            _ => {}
                        }
                    }
                    assert_eq!(state(), expected, "{mapped} {function} {offset:#x} {len}");
                    cases += 1;
                    if function == PF && inside && offset < 64 {
                        // The access may have modified the entries after the first three.
                        (3..8).for_each(|n| ggtt.set_entry(n, GgttEntry::from(0)));
                    }
                    assert!(
                        untouched.iter().all(|n| ggtt.effective(*n).into_bits() == 0),
                        "{mapped} {function} {offset:#x} {len}"
                    );
                }
            }
        }
    }
    assert_eq!(cases, 2 * 3 * 112 * 18);
}

/// Entries beyond the table are invalid, and writes to them are dropped, up to the highest index.
#[test]
fn there_are_no_entries_beyond_the_last() {
    let mut ggtt = Ggtt::new(SharedRegion::anonymous(GGTT_BYTES).unwrap());
    ggtt.set_vfs(vec![Some(SharedRegion::anonymous(GGTT_BYTES).unwrap())]);
    let last = END / 8 - 1;
    for index in [last + 1, last + 2, 1 << 32, u64::MAX / 8, u64::MAX / 8 + 1, u64::MAX] {
        ggtt.set_entry(index, GgttEntry::from(!0));
        assert_eq!((ggtt.entry(index).into_bits(), ggtt.effective(index).into_bits()), (0, 0), "{index:#x}");
    }
    assert_eq!((ggtt.entry(0).into_bits(), ggtt.entry(last).into_bits()), (0, 0));
}
