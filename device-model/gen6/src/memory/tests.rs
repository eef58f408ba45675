// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the translation with a small guest.

mod aperture;
mod fences;

use arctic_base::host::DmaView;
use arctic_fidelity::proves;
use vm_memory::Bytes;

use super::*;
use crate::guest::Guest;

/// Address of the guest's memory, above 4 GiB.
const RAM: u64 = 0x12_0000_0000;

/// A valid entry for guest page `n`.
fn pte(n: u32) -> Pte {
    Pte(n << 12 | 0x12 << 4 | 0b101)
}

/// G67-056, IVB-034: the address of an entry has 40 bits; the cacheability is not part of it.
#[test]
fn entries_have_forty_bits() {
    proves!(
        [IVB_034, ILK_016],
        "an entry has a valid bit and an address of 40 bits; its other bits do not change the page"
    );
    assert_eq!(Pte(0xabcd_e125).page(), Some(0x12_abcd_e000));
    assert_eq!(Pte(0xffff_ffff).page(), Some(0xff_ffff_f000));
    assert_eq!(Pte(0xffff_fffe).page(), None);
}

/// G67-055: entries are written in any width, and are invalid beyond the table.
#[test]
fn the_table_is_accessed_in_any_width() {
    proves!(
        [ILK_004, ILK_072, ILK_075],
        "software reads and writes the entries, with all their bits, through their place in the BAR"
    );
    let ggtt = Ggtt::new(16);
    ggtt.write(0, &0x1122_3344_5566_7788_u64.to_le_bytes());
    ggtt.write(5, &[0xaa, 0xbb]);
    ggtt.write(15, &[0xcc, 0xdd]);
    let mut data = [0; 18];
    ggtt.read(0, &mut data);
    assert_eq!(data[..8], [0x88, 0x77, 0x66, 0x55, 0x44, 0xaa, 0xbb, 0x11]);
    assert_eq!(data[12..], [0, 0, 0, 0xcc, 0, 0]);
    assert_eq!((ggtt.entry(1), ggtt.entry(4)), (Pte(0x11bb_aa44), Pte(0)));
    ggtt.reset();
    assert_eq!(ggtt.entry(1), Pte(0));
}

/// An access crosses pages that are not consecutive in guest memory.
#[test]
fn accesses_cross_pages() {
    let (guest, ggtt) = (Guest::new(RAM, 0x1_0000), Ggtt::new(0x1000));
    ggtt.set(5, pte(3));
    ggtt.set(6, pte(1));
    let memory = Memory::new(&ggtt, &guest);
    memory.write(Space::Ggtt, 0x5ffe, &[1, 2, 3, 4]).unwrap();
    assert_eq!(memory.read32(Space::Ggtt, 0x5ffe), Ok(0x0403_0201));
    assert_eq!(memory.translate(Space::Ggtt, 0x6001), Ok(RAM + 0x1001));
    let mut byte = [0; 2];
    guest.slice(RAM + 0x3ffe, 2, Access::Read).unwrap().read_slice(&mut byte, 0).unwrap();
    assert_eq!(byte, [1, 2]);
    let fault = |address| Fault { space: Space::Ggtt, address, kind: FaultType::Page, write: false };
    assert_eq!(memory.read32(Space::Ggtt, 0x6ffe), Err(fault(0x7000)));
    assert_eq!(memory.write32(Space::Ggtt, 0x7000, 1), Err(Fault { write: true, ..fault(0x7000) }));
    ggtt.set(7, Pte(0x1f_f001));
    assert_eq!(
        memory.write32(Space::Ggtt, 0x7000, 1),
        Err(Fault { write: true, ..fault(0x7000) }),
        "the guest has no such memory"
    );
}

/// IVB-032, IVB-039, G67-059, G67-060: the directory is in the table of the GGTT; its faults are distinguished.
#[test]
fn the_ppgtt_walks_through_the_ggtt() {
    proves!(
        [IVB_032, IVB_033, ILK_002, ILK_009, ILK_014, ILK_015, ILK_017],
        "directory entries are in the table of the GGTT, page tables anywhere; three kinds of faults"
    );
    let (guest, ggtt) = (Guest::new(RAM, 0x1_0000), Ggtt::new(0x1_0000));
    let directory = Directory::new(0x0010_0000, 1 << 2);
    assert_eq!(directory.first, 0x100);
    let memory = Memory::new(&ggtt, &guest);
    let space = Space::Ppgtt(directory);
    // Group 2 has entries 32 to 47; entry 33 maps the addresses from 132 MiB.
    ggtt.set(0x100 + 33, pte(2));
    guest.put(RAM + 0x2000 + 5 * 4, pte(7).0);
    let base = 33 << 22;
    memory.write32(space, base + 0x5010, 0xcafe).unwrap();
    assert_eq!(memory.translate(space, base + 0x5010), Ok(RAM + 0x7010));
    let kind = |address| memory.translate(space, address).unwrap_err().kind;
    assert_eq!(kind(base + 0x6000), FaultType::Page);
    assert_eq!(kind(34 << 22), FaultType::InvalidDirectory);
    assert_eq!(kind(0), FaultType::UnloadedDirectory);
    assert_eq!(kind(0x8000_0000), FaultType::UnloadedDirectory, "2 GiB is the end");
}

/// IVB-032, G67-059: the walk of every page of the PPGTT, against its arithmetic with one operation per term: tables of
/// three guest pages, some entries invalid, for each bit of PP_DCLV alone.
#[test]
fn every_page_of_the_ppgtt_is_walked() {
    proves!([IVB_032, ILK_009, ILK_022, ILK_070], "the walk of every page, for each bit of PP_DCLV");
    let (guest, ggtt) = (Guest::new(RAM, 0x1_0000), Ggtt::new(0x1000));
    const FIRST: u32 = 0x40;
    let (invalid_directory, invalid_page) = (|entry: u32| entry % 7 == 3, |entry: u32| entry % 5 == 2);
    let frame = |table: u32, entry: u32| (entry * 3 + table) % 16;
    for entry in (0..512).filter(|entry| !invalid_directory(*entry)) {
        ggtt.set(FIRST + entry, pte(1 + entry % 3));
    }
    for (table, entry) in (0..3).flat_map(|table| (0..1024).map(move |entry| (table, entry))) {
        let value = if invalid_page(entry) { pte(9).0 & !1 } else { pte(frame(table, entry)).0 };
        guest.put(RAM + u64::from(1 + table) * 4096 + u64::from(entry) * 4, value);
    }
    let memory = Memory::new(&ggtt, &guest);
    for page in 0..1 << 20 {
        let (directory_entry, entry) = (page / 1024, page % 1024);
        // The bit of the page, except in one directory of 16; bits that select nothing in these entries are set.
        let bit = directory_entry / 16 % 32;
        let loaded = if page % 16 == 9 { !(1 << bit) } else { 1 << bit };
        let space = Space::Ppgtt(Directory { first: FIRST, loaded });
        let expected = match () {
            () if directory_entry >= 512 || page % 16 == 9 => Err(FaultType::UnloadedDirectory),
            () if invalid_directory(directory_entry) => Err(FaultType::InvalidDirectory),
            () if invalid_page(entry) => Err(FaultType::Page),
            () => Ok(RAM + u64::from(frame(directory_entry % 3, entry)) * 4096),
        };
        let walk = |offset| memory.translate(space, page * 4096 + offset).map_err(|fault| fault.kind);
        assert_eq!(walk(0), expected, "page {page:#x}");
        assert_eq!(walk(0xffd), expected.map(|start| start + 0xffd), "page {page:#x}");
    }
}

/// IVB-034, IVB-035, ILK-013, ILK-016: every value of an entry's low bits, in the table of the GGTT and as a directory entry
/// with pages of either size, against arithmetic with one operation per bit.
#[test]
fn every_low_bit_of_an_entry() {
    let (guest, ggtt) = (Guest::new(RAM, 0x1_0000), Ggtt::new(0x1000));
    let memory = Memory::new(&ggtt, &guest);
    for low in 0..0x1000_u32 {
        ggtt.set(5, Pte(0xabcd_e000 | low));
        let upper = (4..12).filter(|bit| low >> bit & 1 != 0).fold(0, |sum, bit| sum + (1_u64 << (bit + 28)));
        let expected = (low & 1 != 0).then_some(0xabcd_e000 + upper + 0x123);
        assert_eq!(memory.translate(Space::Ggtt, 0x5123).ok(), expected, "{low:#x}");
    }
    // A table of which each entry maps another page, below directory entries with all low bits that keep its address.
    let frame = |entry: u32| 0x40 + entry * 3;
    (0..1024).for_each(|entry| guest.put(RAM + 0x2000 + u64::from(entry) * 4, pte(frame(entry)).0));
    for bits in (0..16).filter(|bits| bits & 1 == 1) {
        ggtt.set(0x40, Pte(0x2000 | 0x120 | bits));
        let space = Space::Ppgtt(Directory { first: 0x40, loaded: 1 });
        for page in 0..1024 {
            let expected = if bits & 2 == 0 {
                RAM + u64::from(frame(page)) * 4096
            } else {
                // The first of eight entries has the address; its lower bits are those of the page in the big page.
                (RAM + u64::from(frame(page / 8 * 8)) * 4096) / 0x8000 * 0x8000 + u64::from(page % 8) * 4096
            };
            assert_eq!(memory.translate(space, page * 4096 + 0xabc), Ok(expected + 0xabc), "page {page:#x}, {bits:#x}");
        }
    }
}
