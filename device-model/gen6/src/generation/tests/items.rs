// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Items of the document of 2010 that Sandy Bridge has otherwise than Ivy Bridge, and sizes of both that depart from it.

use arctic_fidelity::{proves, proves_table};

use super::*;

/// ILK-022: a forced restore of the current context loads the groups of its image, although pages have translations.
#[test]
fn a_forced_restore_loads_the_groups_of_the_directory() {
    proves!(
        ILK_022,
        "PP_DCLV is loaded from the image of a context, also of the current one if that is forced, and entries of \
         disabled groups are not used any more; its upper half is reserved, and all bits are 1 after a reset"
    );
    let bench = bench(&snb());
    assert_eq!([0x2220, 0x2224].map(|at| bench.read(at)), [!0; 2]);
    bench.write(0x2224, 0);
    assert_eq!(bench.read(0x2224), !0, "reserved");
    bench.write(0x2520, 0x2200_2200);
    let switch = |flags: u32| [0x0c00_0000, CONTEXTS[0] | 0x100 | flags];
    let store = |value: u32| [0x1000_0002, 0, DATA, value];
    bench.run(RCS, &[&switch(1)[..], &store(1)].concat());
    (CONTEXTS[0]..).step_by(4).zip([0x1100_0001, 0x2220, !1, 0x0500_0000]).for_each(|(at, dword)| bench.put(at, dword));
    bench.run(RCS, &[&store(2)[..], &switch(0), &store(3)].concat());
    assert_eq!((bench.get(BEHIND + DATA), bench.read(0x2220), bench.read(0x4094)), (3, !0, 0), "not forced");
    bench.run(RCS, &[&store(4)[..], &switch(2), &store(5)].concat());
    assert_eq!((bench.get(BEHIND + DATA), bench.read(0x2220)), (4, !1));
    assert_eq!(bench.read(0x4094) & 0xffff_f001, DATA | 1, "the group is not loaded");
}

/// ILK-058: Sandy Bridge has 16 fences, with pitches of 10 bits.
#[test]
fn sandy_bridge_has_sixteen_fences() {
    proves!(
        ILK_058,
        "16 fences of 64 bits from 0x100000 on: last page in 63:44, pitch less one in units of 128 bytes in 41:32, first \
         page in 31:12, walk in bit 1, valid in bit 0"
    );
    let bench = bench(&snb());
    (0..16_u32).for_each(|page| bench.write((2 << 20) + page * 4, page << 12 | 1));
    for number in 0..16 {
        let at = 0x10_0000 + number * 8;
        [at, at + 4].iter().for_each(|at| bench.write(*at, !0));
        assert_eq!([bench.read(at), bench.read(at + 4)], [0xffff_f003, 0xffff_f3ff], "{number}");
        [at, at + 4].iter().for_each(|at| bench.write(*at, 0));
    }
    assert!(bench.card.gt().registers.decode(0x10_0080).is_none());
    let byte = |offset: u32| {
        let mut data = [0];
        bench.card.read(Function::PF, 2, offset.into(), &mut data);
        data[0]
    };
    // Each 16 bytes of a page have their own value: that of a byte of the aperture shows its place.
    let place = |offset: u32| u32::from(byte(offset)) << 4;
    (0..4096).step_by(4).for_each(|n| bench.put(0x4000 + n, (n >> 4) * 0x0101_0101));
    for number in [0, 7, 15] {
        let at = 0x10_0000 + number * 8;
        // Two X tiles wide: the second row of the first tile is behind the second tile's first row.
        bench.write(at + 4, 0x5000 | 7);
        bench.write(at, 0x4001);
        assert_eq!([0, 16, 511, 1024].map(|n| place(0x4000 + n)), [0, 16, 496, 512], "X, {number}");
        // Of one Y tile: a column of 32 rows of 16 bytes follows the other.
        bench.write(at + 4, 0x4000);
        bench.write(at, 0x4003);
        assert_eq!([0, 16, 128, 144].map(|n| place(0x4000 + n)), [0, 512, 16, 528], "Y, {number}");
        bench.write(at, 0x4002);
        assert_eq!(place(0x4000 + 128), 128, "not valid");
        bench.write(at + 4, 0);
    }
}

/// ILK-109: the render engine of Sandy Bridge reports its head as the others do; that of Ivy Bridge does not (IVB-078).
#[test]
fn the_render_engine_of_sandy_bridge_reports_its_head() {
    proves!(
        [IVB_078, ILK_109],
        "every engine of Sandy Bridge writes its head to the status page at each 64 KiB or 128 KiB of its ring; the render \
         engine of Ivy Bridge does not"
    );
    for (n, bench) in both().into_iter().enumerate() {
        // 64 pages of the ring are one page of memory, with MI_NOOPs.
        (0x100..0x140_u32).for_each(|page| bench.write((2 << 20) + page * 4, 0x3001));
        let pages = [[0x4080, 0x1_4080, 0x2_4080], [0x4080, 0x4180, 0x4280]][n];
        for (engine, (base, page)) in [RCS, VCS, BCS].into_iter().zip(pages).enumerate() {
            bench.write(page, STATUS);
            for (code, reports) in [(0, [0, 0]), (1, [0x1_0000, 0x2_0000]), (3, [0, 0x2_0000])] {
                bench.put(STATUS + 0x10, 0);
                for (offset, value) in
                    [(0x3c, 0), (0x34, 0), (0x30, 0), (0x38, 0x10_0000), (0x3c, 0x3f << 12 | code << 1 | 1)]
                {
                    bench.write(base + offset, value);
                }
                for (tail, reported) in [0x1_0008, 0x2_0008].into_iter().zip(reports) {
                    bench.write(base + 0x30, tail);
                    bench.work();
                    let reported = if n == 1 && engine == 0 { 0 } else { reported };
                    assert_eq!(bench.get(STATUS + 0x10), reported, "{n} {engine} {code} {tail:#x}");
                }
            }
        }
    }
}

/// ILK-070, ILK-095: the sizes of the table of the GGTT and of the block of registers are those that the driver uses.
#[test]
fn tables_and_registers_are_larger_than_in_the_document() {
    proves!(
        ILK_070,
        "entries have 4 bytes; the GGTT has 1 GiB, of which pages above 512 MiB can be used, and the PPGTT 2 GiB"
    );
    proves!(ILK_095, "registers above 512 KiB in BAR 0 are accessed as those below; the block ends at 2 MiB");
    for bench in both() {
        bench.write((2 << 20) + 0x3_ffff * 4, DATA | 1);
        bench.put(DATA, 0);
        bench.run(RCS, &[0x1040_0002, 0, 0x3fff_f000, 7]);
        assert_eq!(bench.get(DATA), 7);
        bench.write(0x2520, 0x0200_0200);
        bench.write(0x229c, 0x0200_0200);
        let fault = |address: u32| {
            bench.write(0x4094, 0);
            bench.run(RCS, &[0x1000_0002, 0, address, 7]);
            bench.read(0x4094) != 0
        };
        bench.write((2 << 20) + (DIRECTORY + 511) * 4, TABLE | 1);
        assert!(!fault(0x7fc0_0000 | DATA) && fault(0x8000_0000));
        bench.write(0x10_0000, 0x5000);
        assert_eq!(bench.read(0x10_0000), 0x5000);
        let missing = || bench.card.report().unmodelled.iter().map(|register| register.offset).max();
        assert!(missing() < Some(512 << 10));
        bench.read(0x1f_fffc);
        assert_eq!(missing(), Some(0x1f_fffc));
    }
}

#[test]
fn the_status_pages_of_sandy_bridge_are_off_after_a_reset() {
    proves_table!(ILK_174, "the registers with the addresses of the status pages are 0x1FFFF000 after a reset");
    let registers = snb().registers();
    assert_eq!([0x4080, 0x1_4080, 0x2_4080].map(|at| registers.value(at)), [0x1fff_f000; 3]);
    assert_eq!([RCS, VCS, BCS].map(|base| registers.value(base + 0x98)), [!0; 3], "HWSTAM masks all writes");
}
