// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Exhaustive tests of the walk at a small scale: 16-byte pages, 8-byte table alignment, four pages per VF, three VFs.

use super::*;
use arctic_fidelity::proves;

type Small = Walk<4, 3, 4, 4>;

/// The directory is at address 8; the VFs' entries are at 12, 16 and 20.
const DIRECTORY_AT: u64 = 8;
const ON: u32 = ENABLE | 1;

/// Reference model of the walk, following the manual: 128-bit arithmetic and division, and only permitted reads.
fn plain(
    local: u64,
    register: u32,
    vf: u8,
    guest: u64,
    quota: u64,
    dword: impl Fn(u128) -> u32,
) -> Result<u64, LmttFault> {
    let read = |at: u128| if at + 4 <= u128::from(local) { Ok(dword(at)) } else { Err(LmttFault::Memory) };
    if guest >= quota || guest >= 4 * 16 {
        return Err(LmttFault::Quota);
    }
    if vf == 0 || vf > 3 {
        return Err(LmttFault::Function);
    }
    if register < 0x8000_0000 {
        return Err(LmttFault::Disabled);
    }
    let directory = u128::from(register - 0x8000_0000) * 8;
    let entry = read(directory + u128::from(vf) * 4)?;
    if entry % 2 == 0 {
        return Err(LmttFault::Directory);
    }
    let table = u128::from(entry / 16 % 0x20_0000) * 8;
    let entry = read(table + u128::from(guest / 16) * 4)?;
    if entry % 2 == 0 {
        return Err(LmttFault::Entry);
    }
    let frame = u64::from(entry / 32 % 0x1_0000) * 16;
    if frame + 16 > local { Err(LmttFault::Memory) } else { Ok(frame + guest % 16) }
}

fn compare(local: u64, register: u32, vf: u8, guest: u64, quota: u64, dword: impl Fn(u128) -> u32) {
    let mut reads = Vec::with_capacity(2);
    let lmtt = Small { register, local_bytes: local };
    let found = lmtt.walk(vf, guest, quota, |at| {
        reads.push(at);
        Some(dword(at.into()))
    });
    assert_eq!(found, plain(local, register, vf, guest, quota, &dword), "{local} {register:#x} {vf} {guest} {quota}");
    assert!(reads.len() <= 2 && reads.iter().all(|at| at % 4 == 0 && at + 4 <= local), "{reads:?}");
}

#[test]
fn every_pattern_of_entries() {
    proves!(
        [V13_101, V13_102, V13_103, V13_104, V13_105, V13_106],
        "every directory entry pattern with every table entry pattern. Each is valid or not, has no reserved bit \
        set, one of them or all, and an address in the card (17 for a table, 9 for a frame), at the field's limit \
        or beyond local memory. 2 * 5 * 19 = 190 directory entries, 2 * 6 * 11 = 132 table entries, in a card of \
        128 bytes, for the first page, the last page and beyond the last page of each of three VFs: 190 * 132 * 3 * \
        4 = 300 960 walks"
    );
    let reserved = |bits: u32, top: u32| [0, 1 << 1, ((1 << bits) - 1) << 1, top, ((1 << bits) - 1) << 1 | top];
    let directory_entries = (0..17).chain([0x10_0000, 0x1f_ffff]).flat_map(|place: u32| {
        reserved(3, 0xfe00_0000)
            .into_iter()
            .flat_map(move |reserved_bits| [0, 1].map(|valid| place << 4 | reserved_bits | valid))
    });
    let mut walks = 0;
    for first in directory_entries {
        let table_entries = (0..9).chain([0x8000, 0xffff]).flat_map(|place: u32| {
            let reserved_bits = reserved(4, 0xffe0_0000).into_iter().chain([1 << 4]);
            reserved_bits.flat_map(move |reserved_bits| [0, 1].map(|valid| place << 5 | reserved_bits | valid))
        });
        for second in table_entries {
            for vf in 1..=3_u8 {
                // The dword at the VF's directory slot is a directory entry; all others are table entries.
                let at = u128::from(DIRECTORY_AT + 4 * u64::from(vf));
                for guest in [0, 15, 63, 64] {
                    compare(128, ON, vf, guest, 64, |address| if address == at { first } else { second });
                    walks += 1;
                }
            }
        }
    }
    assert_eq!(walks, 190 * 132 * 3 * 4);
}

#[test]
fn every_address_quota_function_and_size() {
    proves!(
        [V13_101, V13_102, V13_103, V13_107],
        "every guest address up to beyond the last, every quota, VF numbers inside and outside the valid range, \
        enabled and disabled, in a card of every size up to 72 bytes. 70 * 70 * 6 * 2 * 73 = 4 292 400 walks \
        through a memory that maps each page of each VF to a different frame"
    );
    // The VFs' tables are at 24, 32 and 40 (overlapping, four dwords each); the pages are at 0, 16, 32 and 48.
    let dword = |at: u128| match at {
        12 | 16 | 20 => (at as u32 / 4) << 4 | 1,
        at => (at as u32 / 4 % 4) << 5 | 1,
    };
    let mut walks = 0;
    for local in 0..73 {
        for register in [ON, ON & !ENABLE] {
            for vf in [0, 1, 2, 3, 4, u8::MAX] {
                for quota in (0..69).chain([u64::MAX]) {
                    for guest in (0..69).chain([u64::MAX]) {
                        compare(local, register, vf, guest, quota, dword);
                        walks += 1;
                    }
                }
            }
        }
    }
    assert_eq!(walks, 70 * 70 * 6 * 2 * 73);
}

/// Every directory address inside and beyond a card of 64 bytes, and at the register's limit (35 registers), with every
/// card size up to 64 and every VF: 35 * 65 * 5 = 11 375 walks. No read is outside the card, and no address wraps.
#[test]
fn every_place_of_a_directory() {
    for place in (0..32).chain([0x4000_0000, 0x7fff_fffe, 0x7fff_ffff]) {
        for local in 0..=64 {
            for vf in 0..5 {
                compare(local, ENABLE | place, vf, 17, 64, |at| (at as u32 / 4) << 4 | 1);
            }
        }
    }
}

#[test]
fn every_field_of_the_real_entries() {
    proves!(
        [V13_104, V13_106],
        "fields of the real format. Every table address (2^21) and frame address (2^16), and every combination of \
        reserved low bits (16 and 32) with the first and the last address, all with the upper bits clear and set: 2 \
        * (2^21 + 2^16 + 2 * 16 + 2 * 32) = 4 325 568 entries"
    );
    for above in [0, !0_u32] {
        for place in 0..1 << 21 {
            let entry = above & 0xfe00_0000 | place << 4;
            assert_eq!(table_address(entry), u64::from(place) * 65536);
        }
        for place in 0..1 << 16 {
            let entry = above & 0xffe0_0000 | place << 5;
            assert_eq!(frame_address(entry), u64::from(place) * (2 << 20));
        }
        for (place, reserved_bits) in
            [0, 0x1f_ffff].into_iter().flat_map(|place| (0..16).map(move |reserved_bits| (place, reserved_bits)))
        {
            assert_eq!(table_address(above & 0xfe00_0000 | place << 4 | reserved_bits), u64::from(place) * 65536);
        }
        for (place, reserved_bits) in
            [0, 0xffff].into_iter().flat_map(|place| (0..32).map(move |reserved_bits| (place, reserved_bits)))
        {
            assert_eq!(frame_address(above & 0xffe0_0000 | place << 5 | reserved_bits), u64::from(place) * (2 << 20));
        }
    }
}
