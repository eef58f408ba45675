// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the command tables.

use arctic_base::command::Requester;

use super::mi::TABLE;
use super::*;

/// IVB-140: names and lengths of headers that drivers emit (i915: gt/gen6_engine_cs.c, gt/intel_ring_submission.c).
#[test]
fn headers_of_the_driver_are_decoded() {
    assert!(TABLE.is_sorted_by(|one, next| one.opcode < next.opcode));
    for (header, name, dwords) in [
        (0x0000_0000, "MI_NOOP", 1),
        (0x0100_0000, "MI_USER_INTERRUPT", 1),
        (0x0400_0001, "MI_ARB_ON_OFF", 1),
        (0x0c00_0000, "MI_SET_CONTEXT", 2),
        (0x1000_0002, "MI_STORE_DATA_IMM", 4),
        (0x1080_0001, "MI_STORE_DATA_INDEX", 3),
        (0x1100_0001, "MI_LOAD_REGISTER_IMM", 3),
        (0x1100_00fd, "MI_LOAD_REGISTER_IMM", 255),
        (0x1240_0001, "MI_STORE_REGISTER_MEM", 3),
        (0x1324_4001, "MI_FLUSH_DW", 3),
        (0x1880_0100, "MI_BATCH_BUFFER_START", 2),
        (0x0500_0000, "MI_BATCH_BUFFER_END", 1),
        (0x7a00_0002, "PIPE_CONTROL", 4),
        (0x7917_0123, "3DSTATE_SO_DECL_LIST", 0x125),
        (0x6904_0000, "3D command of one dword", 1),
        (0x7100_0006, "media command", 8),
        (0x7805_0005, "3D command", 7),
        (0x54c0_0006, "2D command", 8),
    ] {
        let command = Command::decode(header).unwrap();
        assert_eq!((command.name(), command.dwords(header)), (name, dwords), "{header:#x}");
    }
    for header in [0x0080_0000, 0x1f80_0000, 0x2000_0000, 0x8000_0000, 0xffff_ffff] {
        assert!(Command::decode(header).is_none(), "{header:#x}");
    }
}

/// IVB-133, IVB-134: commands that a batch without privilege executes as MI_NOOP, always or with an address in the GGTT.
#[test]
fn commands_without_privilege() {
    let forbidden = |header: u32| match Command::decode(header) {
        Some(Command::Mi(row)) => row.rule(Requester::PfUser).forbids(header),
        _ => panic!("{header:#x}"),
    };
    for header in
        [0x1100_0001, 0x1180_0000, 0x1200_0001, 0x0a00_0001, 0x0400_0000, 0x0280_0000, 0x0180_0000, 0x0c00_0000]
    {
        assert!(forbidden(header), "{header:#x}");
    }
    for header in [0x1000_0002, 0x1480_0001, 0x1b00_0001] {
        assert!(!forbidden(header) && forbidden(header | 1 << 22), "{header:#x}");
    }
    for header in [0x0000_0000, 0x0100_0000, 0x1880_0100, 0x0500_0000, 0x1300_0001, 0x0b14_0001] {
        assert!(!forbidden(header), "{header:#x}");
    }
}
