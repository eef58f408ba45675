// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the register tables and of the access rules.

use super::*;
use crate::generation::XE_HPG;
use crate::profile::CardProfile;
use arctic_fidelity::{proves, proves_table};

/// The profile used by the tests: a full die with 16 GiB.
pub fn profile() -> CardProfile {
    toml::from_str(include_str!("../../configs/flex170.toml")).unwrap()
}

/// Every row has a name and a source, is dword-aligned within the register space, and does not overlap another row.
#[test]
fn every_row_is_sound() {
    let mut taken = std::collections::BTreeMap::new();
    let engine_rows = XE_HPG
        .engines
        .all()
        .flat_map(|e| XE_HPG_REGISTERS.engine.iter().map(move |r| (XE_HPG.engines.info(e).mmio_base, r)));
    for (base, row) in TABLES.iter().flat_map(|table| table.iter()).map(|r| (0, r)).chain(engine_rows) {
        assert!(!row.name.is_empty() && !row.source.is_empty(), "{:#x}", row.offset);
        assert!(row.count > 0 && row.stride >= 4 && row.stride % 4 == 0 && row.offset % 4 == 0, "{}", row.name);
        for ordinal in 0..u32::from(row.count) {
            let at = base + row.offset + ordinal * row.stride;
            assert!(at < REGISTER_BYTES, "{}", row.name);
            let block = at.checked_sub(VIEW_BASE).map(|behind| behind / VIEW_STRIDE);
            assert!(block.is_none_or(|n| n == 0 || n > 63), "{} is in the PF's view of a VF", row.name);
            assert!(row.copies == Copies::One || block == Some(0), "{} is outside the block of functions", row.name);
            let other = taken.insert(at, row.name);
            assert_eq!(other, None, "{} and {other:?} at {at:#x}", row.name);
        }
        match row.kind {
            Kind::Masked => assert_eq!(row.reset >> 16, 0, "{}", row.name),
            Kind::Storage(mask) | Kind::Write1Clear(mask) => assert_ne!(mask, 0, "{}", row.name),
            Kind::ReadOnly | Kind::Live(_) => {}
        }
    }
}

#[test]
fn the_flex_170_has_4096_hardware_threads() {
    proves_table!(
        EU_091,
        "fuses: 32 dual sub-slices for geometry and compute, 16 EUs in each, four memory slices of eight banks of L3; 8 \
        threads an EU in the hardware configuration"
    );
    proves!(
        [EU_090, EU_092],
        "slices, dual sub-slices, EUs, type of memory, threads, engines, size of an L3 bank and SLM in the hardware \
        configuration"
    );
    let profile = profile();
    let file = profile.registers();
    assert_eq!([0x913c, 0x9144].map(|offset| file.value(offset)), [u32::MAX; 2]);
    // A bit for two EUs.
    assert_eq!((file.value(0x9134).count_ones() * 2, (file.value(0x9118) & 0xf).count_ones() * 8), (16, 32));
    let table = (XE_HPG.hwconfig)(XE_HPG.die("dg2-g10").unwrap());
    let value = |key| table.as_chunks::<3>().0.iter().find(|row| row[0] == key).map(|row| row[2]);
    let expected = [(1, 8), (2, 32), (3, 16), (11, 4), (15, 8), (23, 1), (24, 4), (64, 512), (65, 128), (70, 32)];
    for (key, expected) in expected {
        assert_eq!(value(key), Some(expected), "{key}");
    }
    assert_eq!(value(2).unwrap() * value(3).unwrap() * value(15).unwrap(), 4096);
}

/// Contract B.2, B.4, G.2, K.4: the register values by which drivers identify a Flex 170.
#[test]
fn the_flex_170_describes_itself() {
    let file = profile().registers();
    for (offset, value) in [
        (0x4900, 0x1000),
        (0x10_83a0, 0x1000),
        (0x4910, (16248 * 16) << 8),
        (0x9118, 0xf),
        (0x9120, 4),
        (0x9134, 0xff),
        (0x913c, 0xffff_ffff),
        (0x9140, 0x0003_0005),
        (0x9144, 0xffff_ffff),
        (0xd00, 0x14),
        (0xd8c, 0),
        (0xc068, 0x4000_0000),
        (0xc1dc, 1),
        (0x10_100c, 0x8000_0000),
        (0x10_1010, 0x80),
        (0x10_80c0, 0xfc00_0000),
        (0x10_80c4, 3),
        (0x14_5998, 41 | 39 << 8 | 6 << 16),
        (0x19_01f8, 0),
        (0x1c_008c, 1),
        (0x1d_008c, 1 | 2 << 4),
        (0x2_608c, 5 | 3 << 4),
    ] {
        assert_eq!(file.value(offset), value, "{offset:#x}");
        assert!(file.decode(offset).is_some(), "{offset:#x}");
    }
}

/// Contract B.2, G.2: the WOPCM is the last 4 MiB of stolen memory, where i915 expects it, and reports its size to xe.
#[test]
fn wopcm_is_at_the_end_of_stolen_memory() {
    let profile = profile();
    let file = profile.registers();
    let both = |offset| u64::from(file.value(offset)) | u64::from(file.value(offset + 4)) << 32;
    let (stolen, reserved) = (both(0x10_80c0), both(0x10_82c0));
    assert_eq!((reserved >> 7 & 7, reserved & 1), (2, 1), "4 MiB, enabled");
    let base = reserved & !0xf_ffff;
    assert_eq!(base + (4 << 20), profile.local_memory);
    assert!(base >= stolen & !0xf_ffff);
}

/// Contract K.3, K.4: every register of the reference tables is modelled.
#[test]
fn the_reference_tables_are_covered() {
    let file = profile().registers();
    let single = [
        0x4900, 0x4910, 0x8718, 0x9114, 0x9118, 0x911c, 0x9120, 0x9134, 0x9138, 0x913c, 0x9140, 0x9144, 0x941c, 0x9424,
        0x9434, 0x9524, 0x9530, 0xa008, 0xa024, 0xa090, 0xa094, 0xa0ac, 0xa0c4, 0xa0c8, 0xa168, 0xa188, 0xa210, 0xa26c,
        0xa278, 0xa2a0, 0xa500, 0xa504, 0xb188, 0xc000, 0xc050, 0xc064, 0xc068, 0xc1dc, 0xc340, 0xc3e8, 0xc3ec, 0xc71c,
        0xceb8, 0xcebc, 0xcec4, 0xced8, 0xcedc, 0xcee0, 0xcee4, 0xcee8, 0xceec, 0xcf04, 0xcf2c, 0xcf30, 0xcf34, 0xcf38,
        0xcf54, 0xcf58, 0xd00, 0xd84, 0xd8c, 0xdaf4, 0xdaf8, 0xdafc, 0xdb00, 0xdb04, 0xdb08, 0xdb1c, 0x2b28, 0xe18c,
        0xe48c, 0xe4f4, 0xe5f0, 0xe7c8, 0xe7cc, 0xe90c, 0xfd0, 0xfd4, 0xfd8, 0xfdc, 0x1_4800, 0x1_4804, 0x7_8000,
        0x7_8004, 0x10_1008, 0x10_100c, 0x10_1010, 0x10_1014, 0x10_1018, 0x10_80c0, 0x10_80c4, 0x10_8100, 0x10_8104,
        0x10_82c0, 0x10_82c4, 0x10_83a0, 0x13_0044, 0x13_8060, 0x13_8108, 0x13_8124, 0x13_8128, 0x13_812c, 0x13_816c,
        0x13_81a8, 0x13_81b4, 0x14_5930, 0x14_5938, 0x14_593c, 0x14_5978, 0x14_5998, 0x14_59a0, 0x14_5ef0, 0x19_0008,
        0x19_0010, 0x19_0018, 0x19_001c, 0x19_0060, 0x19_0064, 0x19_0070, 0x19_0074, 0x19_01f0, 0x19_01f8, 0x37_3004,
        0x37_4004, 0x37_4c48,
    ];
    let run = |start: u32, end: u32| (start..=end).step_by(4);
    let runs = [
        run(0x4800, 0x480c),
        run(0xa540, 0xa56c),
        run(0xb020, 0xb09c),
        run(0xc180, 0xc1bc),
        run(0xc200, 0xc2fc),
        run(0xc300, 0xc314),
        run(0xd50, 0xd7c),
        run(0x19_0030, 0x19_0048),
        run(0x19_0240, 0x19_024c),
        run(0x4_44e0, 0x4_44fc),
    ];
    let masks = [0x90, 0xa0, 0xa8, 0xac, 0xb0, 0xb4, 0xd0, 0xd4, 0xe4, 0xe8, 0xec, 0xf0, 0xf4, 0x100, 0x104];
    let masks = masks.map(|low| 0x19_0000 + low);
    let engine = [
        0x30, 0x34, 0x38, 0x3c, 0x50, 0x5c, 0x74, 0x60, 0x78, 0x68, 0x6c, 0x80, 0x8c, 0x98, 0x9c, 0xa4, 0xac, 0xa8,
        0xb0, 0xb4, 0xb8, 0xc0, 0xc4, 0xc8, 0xcc, 0xd0, 0x140, 0x168, 0x178, 0x17c, 0x204, 0x234, 0x238, 0x240, 0x244,
        0x29c, 0x358, 0x35c, 0x3a8, 0x4d0, 0x4fc, 0x510, 0x550, 0x600, 0x67c,
    ];
    let engines = XE_HPG.engines.all().flat_map(|e| engine.map(|offset| XE_HPG.engines.info(e).mmio_base + offset));
    for offset in single.into_iter().chain(runs.into_iter().flatten()).chain(masks).chain(engines) {
        assert!(file.decode(offset).is_some(), "{offset:#x}");
    }
}

/// Contract B.4, notation: bits 31:16 of a masked write are the write mask, and read 0.
#[test]
fn a_masked_register_takes_the_selected_bits() {
    let file = profile().registers();
    let rcu_mode = 0x1_4800;
    file.write_plain(rcu_mode, Kind::Masked, 0x0003_0003);
    file.write_plain(rcu_mode, Kind::Masked, 0x0001_fffe);
    assert_eq!(file.value(rcu_mode), 2);
}

#[test]
fn write_one_to_clear_and_partly_writable() {
    proves!(V13_176, "writing 1 clears a bit; bits outside the mask of a stored register do not change");
    let file = profile().registers();
    file.set(0x10_0168, 0xff);
    file.write_plain(0x10_0168, Kind::Write1Clear(!0), 0x0f);
    assert_eq!(file.value(0x10_0168), 0xf0);
    file.write_plain(0xc068, Kind::Storage(0xbfff_ffff), 1);
    assert_eq!(file.value(0xc068), 0x4000_0001);
}

#[test]
fn an_engine_reset_stays_in_its_block() {
    proves!(
        V13_113,
        "an engine reset restores the reset values of its own block only. Some blocks are 8 KiB apart (contract \
        G.1)"
    );
    let file = profile().registers();
    let engines = || XE_HPG.engines.list().iter().map(|engine| engine.mmio_base);
    assert!(engines().any(|base| engines().any(|next| next == base + 0x2000)));
    for engine in XE_HPG.engines.all() {
        for base in engines() {
            file.set(base + 0x80, 0x1234_5000);
        }
        file.reset_engine(engine);
        let own = XE_HPG.engines.info(engine).mmio_base;
        for base in engines() {
            let expected = if base == own { 0 } else { 0x1234_5000 };
            assert_eq!(file.value(base + 0x80), expected, "{base:#x} after a reset of {own:#x}");
        }
    }
    assert_eq!(file.value(0x2_208c), 3);
}

/// Accesses to unmodelled registers are counted by offset.
#[test]
fn unmodelled_registers_are_counted() {
    let file = profile().registers();
    assert!(file.decode(0x6_0000).is_none());
    file.note_unmodelled(0x6_0000, true);
    file.note_unmodelled(0x6_0000, false);
    file.note_unmodelled(0x6_0000, false);
    assert_eq!(file.unmodelled()[&0x6_0000], Touches { reads: 2, writes: 1 });
}

#[test]
fn registers_are_in_the_low_three_megabytes() {
    proves!(
        [V13_003, V13_007],
        "the registers of GT, media and display are in the low 3 MiB; above them are the registers of the GSC, and \
        the doorbell registers below the doorbell window (V13-007)"
    );
    let file = profile().registers();
    let last = file.listing().map(|(offset, _)| offset).filter(|offset| *offset < 3 << 20).max().unwrap();
    for offset in (last + 4..4 << 20).step_by(4).filter(|offset| !matches!(offset >> 12, 0x373 | 0x374 | 0x3ff)) {
        assert!(file.decode(offset).is_none(), "{offset:#x}");
    }
    assert!(file.listing().all(|(offset, _)| offset < 4 << 20));
}

#[test]
fn geometry_and_compute_fuses_are_combined() {
    proves!(V13_152, "the instances that exist follow the union of the fuses for geometry and for compute");
    let (row_chicken, mslice) = (0xe4f0, 0xe90c);
    let enabled = |geometry, compute| {
        let values = [(0x913c, geometry), (0x9144, compute), (0x9118, 0)];
        let file = RegisterFile::new(&XE_HPG_REGISTERS, XE_HPG.engines).with_reset_values(&values);
        let set = |offset, n: u16| {
            (0..n)
                .filter(|n| {
                    file.set_instance(offset, *n, 0x77);
                    file.instance_value(offset, *n) == 0x77
                })
                .fold(0_u32, |set, n| set | 1 << n)
        };
        (set(row_chicken, 32), set(mslice, 4))
    };
    assert_eq!(enabled(0x0000_0001, 0x0000_0100), (0x0000_0101, 0b0011));
    assert_eq!(enabled(0x8000_0000, 0), (0x8000_0000, 0b1000));
    assert_eq!(enabled(0, 0x0080_0000), (0x0080_0000, 0b0100));
}

#[test]
fn fuse_mirrors_follow_the_card() {
    proves!(
        V13_160,
        "the fuse mirrors have the compute and geometry dual subslices and the memory slices with L3 of the card, \
        and software cannot change them"
    );
    let mut profile = profile();
    for (dss, meml3) in [(u32::MAX, 0xf), (0x0000_00ff, 1), (0x00f0_ff0f, 0b0111)] {
        (profile.fuses.dss_mask, profile.fuses.mslice_mask) = (dss, meml3);
        let file = profile.registers();
        let mirrors = || [0x9144, 0x913c, 0x9118].map(|offset| file.value(offset));
        assert_eq!((mirrors(), mirrors()[2] & 0xf), ([dss, dss, u32::from(meml3)], u32::from(meml3)));
        for offset in [0x9144, 0x913c, 0x9118] {
            file.write_plain(offset, file.decode(offset).unwrap().register.kind, !file.value(offset));
        }
        assert_eq!(mirrors(), [dss, dss, u32::from(meml3)]);
    }
}

#[test]
fn flexible_eu_counters_have_seven_registers() {
    proves!(
        V13_256,
        "the seven registers that select the events of the EUs' flexible counters exist, each with 32 bits"
    );
    let file = profile().registers();
    let offsets = [0xe458, 0xe558, 0xe658, 0xe758, 0xe45c, 0xe55c, 0xe65c];
    for (offset, n) in offsets.into_iter().zip(0..) {
        let register = file.decode(offset).unwrap().register;
        assert_eq!((register.name, register.reset), (format!("EU_PERF_CNTL{n}").as_str(), 0x0300_f00f), "no event");
        file.set(offset, 0xa5a5_0000 | n);
    }
    for (offset, n) in offsets.into_iter().zip(0..) {
        assert_eq!(file.value(offset), 0xa5a5_0000 | n, "{offset:#x}");
    }
}

#[test]
fn the_pcu_has_an_interrupt_register_set() {
    proves!(
        V13_285,
        "the PCU's interrupt has four registers in 0x444e0..0x444f0: status, mask, identity and enable. After a \
        reset it is masked and disabled; software writes mask and enable, and clears identity bits by writing 1"
    );
    let file = profile().registers();
    let offsets = [0x4_44e0, 0x4_44e4, 0x4_44e8, 0x4_44ec];
    let values = || offsets.map(|offset| file.value(offset));
    assert_eq!(offsets.map(|at| file.decode(at).unwrap().register.name), ["PCU_ISR", "PCU_IMR", "PCU_IIR", "PCU_IER"]);
    assert_eq!(values(), [0, u32::MAX, 0, 0]);
    offsets.iter().for_each(|offset| file.set(*offset, 0xff));
    for offset in offsets {
        file.write_plain(offset, file.decode(offset).unwrap().register.kind, 0x1230_0f0f);
    }
    assert_eq!(values(), [0xff, 0x1230_0f0f, 0xf0, 0x1230_0f0f]);
}

#[test]
fn values_are_saved_restored_and_reset() {
    proves!(
        V13_125,
        "values of one VF do not change those of another; saved values are found by their offsets, and a reset \
        restores the reset values"
    );
    let file = profile().registers();
    let [one, two] = [(); 2].map(|()| FunctionRegisters::new(&file));
    let fresh = two.save();
    let copy = file.decode(0x19_0244).unwrap().function_copy.unwrap();
    one.write(copy, Kind::<Live>::Storage(0xffff), 0x1234_5678);
    assert_eq!((one.value(copy), two.value(copy)), (0x5678, 0));
    assert_eq!(two.save(), fresh);
    assert_eq!([0x19_0244, 0x19_0008, 0x19_0245].map(|at| two.copy_at(at)), [Some(copy), None, None]);
    // Each register has its own value.
    for (number, (offset, _)) in (1..).zip(&fresh) {
        one.set(one.copy_at(*offset).unwrap(), 0x1000 + number);
    }
    let saved = one.save();
    assert_eq!(saved.len(), fresh.len());
    assert!((1..).zip(&saved).all(|(number, (_, value))| *value == 0x1000 + number));
    for (offset, value) in saved {
        two.set(two.copy_at(offset).unwrap(), value);
    }
    assert_eq!(two.save(), one.save());
    assert_ne!(two.save(), fresh);
    two.reset();
    assert_eq!(two.save(), fresh);
    assert!(fresh.contains(&(0x19_01f8, 1)) && fresh.is_sorted());
}
