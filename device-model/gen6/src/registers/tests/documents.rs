// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Rows of the tables against copies of the documents' tables.

use super::*;

/// Offset, stored bits and reset value of registers that are only stored.
type Stored = (u32, u32, u32);

/// Writes all ones, then zeros, to each register.
fn check(rows: &[Stored]) {
    let file = file();
    for (offset, stored, reset) in rows {
        let kind = file.decode(*offset).unwrap().register.kind;
        assert_eq!(file.value(*offset), *reset, "{offset:#x}");
        file.write_plain(*offset, kind, !0);
        assert_eq!(file.value(*offset), *stored, "{offset:#x}");
        file.write_plain(*offset, kind, if kind == Kind::Masked { 0xffff_0000 } else { 0 });
        assert_eq!(file.value(*offset), 0, "{offset:#x}");
    }
}

fn range(offsets: std::ops::Range<u32>, stored: u32) -> Vec<Stored> {
    offsets.step_by(4).map(|offset| (offset, stored, 0)).collect()
}

#[test]
fn registers_of_the_arbiters_are_stored_with_the_documents_masks() {
    proves_table!(
        [IVB_011, IVB_012, IVB_013, IVB_014, IVB_015, IVB_016, IVB_017, IVB_018, IVB_019, IVB_021, IVB_022],
        "offset, stored bits and reset value of the registers that tune the arbiters"
    );
    check(&[
        (0x4000, 0xffff, 0),
        (0x4028, !0, 0x000f_fea4),
        (0x402c, !0, 0x0001_1d10),
        (0x403c, !0, 0x3f20_1f00),
        (0x4040, !0, 0x0900_ff40),
        // Bits 31:29 are read-only.
        (0x4044, 0x1fff_ffff, 0x1f08_0700),
        (0x4048, !0, 0x1f18),
        (0x404c, !0, 5),
        (0x4050, !0, 0x1f10_7f00),
        (0x4054, !0, 0x2f20),
        (0x4058, !0, 0x3f10_0f00),
        (0x405c, !0, 0x1_0000),
        (0x4060, !0, 0x1f10_0f00),
        (0x4064, !0, 0x3f30_2f20),
        (0x4068, !0, 0x9f40),
        (0x406c, !0, 0x14e4),
        (0x4070, !0, 0x1020_2020),
        (0x4074, !0, 0x43f2_0101),
        (0x4204, !0, 0),
        (0x4208, !0, 0),
        (0x43bc, !0, 0),
        (0x9038, 0b11, 0),
    ]);
    check(&range(0x4034..0x403c, !0));
    check(&range(0x43a0..0x43a8, !0));
    // Counts in bits 21:16, 13:8 and 5:0.
    check(&range(0x43a8..0x43b0, 0x003f_3f3f));
    check(&range(0x43b0..0x43b8, !0));
    check(&range(0x43c0..0x4400, !0));
}

#[test]
fn mode_registers_are_stored_with_the_documents_masks() {
    proves_table!(
        [IVB_058, IVB_059, IVB_060, IVB_061, IVB_062, IVB_063, IVB_068, IVB_178, IVB_186],
        "offset, stored bits and reset value of the registers of modes, and of those for statistics and FBC"
    );
    check(&[
        (0x20a0, !0, 0x28a0_1010),
        (0x212c, 0xffff, 0),
        (0x229c, 0xffff, 0x800),
        (0x7000, 0xffff, 4),
        (0x7004, 0xffff, 0x180),
        (0x7008, 0xffff, 0x200),
        (0x7020, !0, 0),
        (0x5_0380, !0, 0),
    ]);
    check(&range(0x2300..0x2358, !0));
    let file = file();
    for offset in [0x212c, 0x229c, 0x7000, 0x7004, 0x7008] {
        assert_eq!(file.decode(offset).unwrap().register.kind, Kind::Masked, "{offset:#x}");
    }
}

/// The windows of the display's response mask and of the flips are stored, or read as without an event.
#[test]
fn masks_of_display_events_are_stored() {
    proves!(
        [IVB_110, IVB_111, IVB_175],
        "DERRMR is stored and masks everything after a reset; the flip status has no pending flip and is read-only"
    );
    check(&[(0x4_4050, !0, !0), (0x22d0, 0, 0), (0x22d4, 0, 0)]);
}

#[test]
fn the_arbiter_is_idle() {
    proves_table!(IVB_020, "GAM_DONE reads all ones, bits 3 and 0 among them, and is read-only");
    let file = file();
    assert_eq!(file.decode(0x40b0).unwrap().register.kind, Kind::ReadOnly);
    assert_eq!(file.value(0x40b0), !0);
}
