//! The tables are sound, and their registers do what they say.

use super::*;
use crate::engine::id::{EngineClass, EngineId};
use crate::profile::CardProfile;

/// The card of the tests: a whole die with 16 GiB.
pub fn profile() -> CardProfile {
    toml::from_str(include_str!("../../../configs/flex170.toml")).unwrap()
}

/// Design rule 3, rule 9: every row has a name and a source, lies on a dword inside the registers, overlaps no other.
#[test]
fn every_row_is_sound() {
    let mut taken = std::collections::BTreeMap::new();
    let engine_rows = EngineId::all().flat_map(|e| ENGINE_TABLE.iter().map(move |r| (e.info().mmio_base, r)));
    for (base, row) in TABLES.iter().flat_map(|table| table.iter()).map(|r| (0, r)).chain(engine_rows) {
        assert!(!row.name.is_empty() && !row.source.is_empty(), "{:#x}", row.offset);
        assert!(row.count > 0 && row.stride >= 4 && row.stride % 4 == 0 && row.offset % 4 == 0, "{}", row.name);
        for ordinal in 0..u32::from(row.count) {
            let at = base + row.offset + ordinal * row.stride;
            assert!(at < REGISTER_BYTES, "{}", row.name);
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

/// Contract B.2, B.4, G.2, K.4: what the drivers learn about a Flex 170 from its registers.
#[test]
fn the_flex_170_describes_itself() {
    let file = RegisterFile::of_card(&profile());
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
        (0xd00, 0xe),
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

/// Contract B.4, notation: bits 31:16 of a masked write select, and read 0.
#[test]
fn a_masked_register_takes_the_selected_bits() {
    let file = RegisterFile::of_card(&profile());
    let rcu_mode = 0x1_4800;
    file.write_plain(rcu_mode, Kind::Masked, 0x0003_0003);
    file.write_plain(rcu_mode, Kind::Masked, 0x0001_fffe);
    assert_eq!(file.value(rcu_mode), 2);
}

/// V13-176: a written 1 clears; bits outside the mask of a stored register keep.
#[test]
fn write_one_to_clear_and_partly_writable() {
    let file = RegisterFile::of_card(&profile());
    file.set(0x10_0168, 0xff);
    file.write_plain(0x10_0168, Kind::Write1Clear(!0), 0x0f);
    assert_eq!(file.value(0x10_0168), 0xf0);
    file.write_plain(0xc068, Kind::Storage(0xbfff_ffff), 1);
    assert_eq!(file.value(0xc068), 0x4000_0001);
}

/// V8-009, contract G.1: an engine's reset gives its own block the reset values and no other.
#[test]
fn an_engine_reset_stays_in_its_block() {
    let file = RegisterFile::of_card(&profile());
    for base in [0x2000, 0x2_2000] {
        file.set(base + 0x80, 0x1234_5000);
    }
    file.reset_engine(EngineId::find(EngineClass::Copy, 0).unwrap());
    assert_eq!((file.value(0x2080), file.value(0x2_2080), file.value(0x2_208c)), (0x1234_5000, 0, 3));
}

/// Design rule 10: what is not modelled is counted by offset.
#[test]
fn unmodelled_registers_are_counted() {
    let file = RegisterFile::of_card(&profile());
    assert!(file.decode(0x6_0000).is_none());
    file.note_unmodelled(0x6_0000, true);
    file.note_unmodelled(0x6_0000, false);
    file.note_unmodelled(0x6_0000, false);
    assert_eq!(file.unmodelled()[&0x6_0000], Touches { reads: 2, writes: 1 });
}
