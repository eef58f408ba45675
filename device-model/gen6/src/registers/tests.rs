// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the tables.

mod documents;

use std::collections::BTreeSet;

use arctic_fidelity::{proves, proves_table};

use super::*;
use crate::generation::{GENERATIONS, IVY_BRIDGE, SANDY_BRIDGE};

fn file() -> RegisterFile {
    IVY_BRIDGE_REGISTERS.file(IVY_BRIDGE.engines)
}

/// Every row has a source: an item, or a file of the driver.
#[test]
fn every_row_has_a_source() {
    let tables = |registers: &RegisterTables| [registers.card, registers.engine, registers.pipe].concat();
    let own = GENERATIONS.iter().flat_map(|generation| generation.engines).map(|engine| engine.rows);
    for row in GENERATIONS.iter().flat_map(|generation| tables(generation.registers)).chain(own).flatten() {
        let known = ["IVB-", "ILK-", "G67-", "i915: "].iter().any(|prefix| row.source.starts_with(prefix));
        assert!(known && !row.name.is_empty(), "{:#x} {}: {}", row.offset, row.name, row.source);
    }
}

/// The engines' registers stand at their bases (IVB-003), and no register of the card overlaps them: construction fails
/// otherwise.
#[test]
fn engine_registers_are_at_each_base() {
    proves_table!(IVB_003, "the engines have their registers at 2000, 12000 and 22000");
    let file = file();
    for (base, index) in [(0x2000, 0), (0x1_2000, 1), (0x2_2000, 2)] {
        let tail = file.decode(base + engine::TAIL).unwrap();
        assert_eq!((tail.register.name, tail.engine), ("RING_BUFFER_TAIL", Some(EngineId::new(index))));
    }
    let names: BTreeSet<_> = file.listing().map(|(_, decoded)| decoded.register.name).collect();
    assert!(names.len() > 100);
}

/// IVB-004: the reset values that are not 0.
#[test]
fn reset_values_are_the_documents() {
    proves_table!(IVB_004, "the reset values that are not 0");
    let file = file();
    for (offset, value) in [
        (0x20a0, 0x28a0_1010),
        (0x229c, 0x800),
        (0x7008, 0x200),
        (0x7000, 4),
        (0x7004, 0x180),
        (0x2098, 0xffff_ffff),
        (0x20a8, 0xffff_ffff),
        (0x20b4, 0xffff_ffff),
        (0x21a8, 0x48a7_b8cd),
        (0x4028, 0x000f_fea4),
        (0x402c, 0x0001_1d10),
        (0x403c, 0x3f20_1f00),
        (0x4040, 0x0900_ff40),
        (0x4044, 0x1f08_0700),
        (0x4048, 0x1f18),
        (0x404c, 5),
        (0x4050, 0x1f10_7f00),
        (0x4054, 0x2f20),
        (0x4058, 0x3f10_0f00),
        (0x405c, 0x1_0000),
        (0x4060, 0x1f10_0f00),
        (0x4064, 0x3f30_2f20),
        (0x4068, 0x9f40),
        (0x406c, 0x14e4),
        (0x4070, 0x1020_2020),
        (0x4074, 0x43f2_0101),
    ] {
        assert_eq!(file.value(offset), value, "{offset:#x}");
    }
}

/// IVB-002: of masked registers, the high half selects the bits that change, and reads 0.
#[test]
fn masked_registers() {
    proves!([IVB_002, IVB_005], "the high half selects the bits of a masked register that change, and reads 0");
    let file = file();
    for offset in [0x4000, 0x4030, 0x7000, 0x7004, 0x7008, 0x212c, 0x2028, 0x229c] {
        let kind = file.decode(offset).unwrap().register.kind;
        assert_eq!(kind, Kind::Masked, "{offset:#x}");
        let before = file.value(offset);
        file.write_plain(offset, kind, 0x0000_ffff);
        assert_eq!(file.value(offset), before, "{offset:#x}: no bit is selected");
        file.write_plain(offset, kind, 0x0120_0100);
        assert_eq!(file.value(offset), before & !0x20 | 0x100, "{offset:#x}");
    }
}

/// IVB-039, IVB-044, IVB-077: addresses store the bits of a page.
#[test]
fn addresses_store_the_bits_of_a_page() {
    proves!([IVB_044, IVB_077], "addresses store the bits of a page");
    let file = file();
    for offset in [0x4080, 0x4180, 0x4280, 0x2038] {
        file.write_plain(offset, file.decode(offset).unwrap().register.kind, !0);
        assert_eq!(file.value(offset), 0xffff_f000, "{offset:#x}");
    }
}

/// G67-027: the enable bit of the DAC does not take, and neither does the trigger of the detection.
#[test]
fn the_dac_is_fused_off() {
    let file = file();
    file.write_plain(0xe_1100, file.decode(0xe_1100).unwrap().register.kind, !0);
    assert_eq!(file.value(0xe_1100) & (1 << 31 | 1 << 16 | 3 << 24), 0);
}

/// ILK-058, ILK-175, G67-062: 16 fences with pitches of 10 bits, or 32 with 11; page numbers, pitch, type and valid bit are
/// stored, and none is valid after a reset.
#[test]
fn fences_store_the_bits_of_their_generation() {
    for (generation, count, upper) in [(&SANDY_BRIDGE, 16, 0xffff_f3ff), (&IVY_BRIDGE, 32, 0xffff_f7ff)] {
        let file = generation.registers.file(generation.engines);
        assert_eq!(generation.fences, count);
        for fence in 0..count {
            for (at, stored) in [(0, 0xffff_f003), (4, upper)] {
                let at = fence::FENCES + fence * fence::FENCE_BYTES + at;
                assert_eq!(file.value(at), 0);
                file.write_plain(at, file.decode(at).unwrap().register.kind, !0);
                assert_eq!(file.value(at), stored);
            }
        }
        let behind = file.decode(fence::FENCES + count * fence::FENCE_BYTES);
        assert!(behind.is_none_or(|found| !found.register.name.starts_with("FENCE")));
    }
}

/// ILK-022, ILK-028, ILK-173, ILK-174, ILK-177, ILK-178: the reset values of Sandy Bridge.
#[test]
fn reset_values_of_sandy_bridge_are_the_documents() {
    let file = SANDY_BRIDGE.registers.file(SANDY_BRIDGE.engines);
    for base in [0x2000, 0x1_2000, 0x2_2000] {
        for (register, value) in [(0x220, !0), (0x6c, !0), (0x94, 0), (0x98, !0), (0xa8, !0), (0xb4, !0), (0x3c, 0)] {
            assert_eq!(file.value(base + register), value, "{base:#x} {register:#x}");
        }
    }
    for (offset, value) in [(0x4080, 0x1fff_f000), (0x207c, !0), (0x251c, 0x780), (0x40b0, !0)] {
        assert_eq!(file.value(offset), value, "{offset:#x}");
    }
}
