// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the command tables.

use arctic_base::command::Requester;
use arctic_fidelity::proves;

use super::mi::{COMMON, IVY_BRIDGE_ONLY, fields};
use super::*;

fn decode(header: u32, class: EngineClass) -> Option<Command> {
    IVY_BRIDGE_COMMANDS.decode(header, class)
}

#[test]
fn rows_are_consistent() {
    COMMON.iter().chain(IVY_BRIDGE_ONLY).for_each(MiCommand::check);
    for commands in [&SANDY_BRIDGE_COMMANDS, &IVY_BRIDGE_COMMANDS] {
        PipelineCommand::check(commands.pipelines.render, 0xffff_0000);
    }
}

/// IVB-140: names and lengths of headers that drivers emit (i915: gt/gen6_engine_cs.c, gt/intel_ring_submission.c).
#[test]
fn headers_of_the_driver_are_decoded() {
    proves!([IVB_140, ILK_097], "lengths and names of headers that drivers emit");
    use EngineClass::{Copy, Render, Video};
    for (class, header, name, dwords) in [
        (Render, 0x0000_0000, "MI_NOOP", 1),
        (Render, 0x0100_0000, "MI_USER_INTERRUPT", 1),
        (Render, 0x0400_0001, "MI_ARB_ON_OFF", 1),
        (Render, 0x0c00_0000, "MI_SET_CONTEXT", 2),
        (Render, 0x1000_0002, "MI_STORE_DATA_IMM", 4),
        (Copy, 0x1080_0001, "MI_STORE_DATA_INDEX", 3),
        (Render, 0x1100_0001, "MI_LOAD_REGISTER_IMM", 3),
        (Render, 0x1100_00fd, "MI_LOAD_REGISTER_IMM", 255),
        (Render, 0x1240_0001, "MI_STORE_REGISTER_MEM", 3),
        (Copy, 0x1324_4001, "MI_FLUSH_DW", 3),
        (Video, 0x1880_0100, "MI_BATCH_BUFFER_START", 2),
        (Render, 0x0500_0000, "MI_BATCH_BUFFER_END", 1),
        (Render, 0x7a00_0002, "PIPE_CONTROL", 4),
        (Render, 0x7917_0123, "3DSTATE_SO_DECL_LIST", 0x125),
        (Render, 0x6904_0000, "PIPELINE_SELECT", 1),
        (Render, 0x6906_0007, "3D command of one dword", 1),
        (Render, 0x7100_0106, "MEDIA_OBJECT", 0x108),
        (Render, 0x7106_0106, "media command", 0x108),
        (Render, 0x7805_0005, "3DSTATE_DEPTH_BUFFER", 7),
        (Render, 0x7834_0005, "3D command", 7),
        (Video, 0x7000_0103, "MFX command", 0x105),
        (Video, 0x7600_1003, "MFX command of any length", 0x1005),
        (Video, 0x6800_0103, "MFX_WAIT", 1),
        (Copy, 0x54c0_0006, "XY_SRC_COPY_BLT", 8),
        (Copy, 0x5000_0003, "COLOR_BLT", 5),
        (Copy, 0x5400_0004, "XY_COLOR_BLT", 6),
        (Copy, 0x40c0_0001, "XY_SETUP_CLIP_BLT", 3),
        (Copy, 0x5080_0008, "2D command", 10),
    ] {
        let command = decode(header, class).unwrap();
        assert_eq!((command.name(), command.dwords(header)), (name, dwords), "{header:#x}");
    }
    for header in [0x0080_0000, 0x1f80_0000, 0x2000_0000, 0x8000_0000, 0xffff_ffff] {
        assert!(decode(header, Render).is_none(), "{header:#x}");
    }
}

/// IVB-093, ILK-097: an engine has only the commands of its clients, and of MI those of its class.
#[test]
fn commands_are_decoded_only_on_their_engines() {
    proves!([IVB_093, ILK_097], "an engine has only the commands of its clients");
    use EngineClass::{Copy, Render, Video};
    for (header, render, video, copy) in [
        (0x1000_0002, true, true, true),
        (0x0600_0000, true, false, false),
        (0x0c00_0000, true, false, false),
        (0x1380_0001, true, false, false),
        (0x1300_0001, false, true, true),
        (0x0a00_0001, true, false, true),
        (0x7a00_0002, true, true, false),
        (0x54c0_0006, false, false, true),
    ] {
        let found = [Render, Video, Copy].map(|class| decode(header, class).is_some());
        assert_eq!(found, [render, video, copy], "{header:#x}");
    }
}

/// G67-120: commands of one generation only. Those of Haswell exist in none.
#[test]
fn a_generation_has_its_own_rows() {
    for opcode in 0..0x40 {
        let both = lookup(&mi::SANDY_BRIDGE, opcode << 23).map(|row| row.name);
        let ivy = lookup(&mi::IVY_BRIDGE, opcode << 23).map(|row| row.name);
        let only = IVY_BRIDGE_ONLY.iter().find(|row| u32::from(row.opcode) == opcode).map(|row| row.name);
        assert_eq!((ivy, both.is_some() && only.is_some()), (both.or(only), false), "{opcode:#x}");
    }
    for haswell in [0x01, 0x06, 0x09, 0x0f, 0x1a, 0x2a] {
        assert!(lookup(&mi::IVY_BRIDGE, haswell << 23).is_none(), "{haswell:#x}");
    }
}

/// G67-121: the rows of the copy engine are consistent, and have the lengths that drivers send.
#[test]
fn rows_of_the_copy_engine_are_consistent() {
    BlitCommand::check(&blitter::COMMANDS, 0xffc0_0000);
    for row in blitter::COMMANDS.iter().filter(|row| row.action != Blt::Skipped) {
        let [length] = row.lengths else { panic!("{}", row.name) };
        let header = 2 << 29 | u32::from(row.opcode) << 22 | (u32::try_from(*length).unwrap() - 2);
        assert_eq!(blitter::lookup(&blitter::COMMANDS, header).name, row.name);
        assert_eq!(row.dwords(header) as usize, *length);
        assert!(row.fields.iter().any(|field| usize::from(field.dword) == length - 1), "{} has a last dword", row.name);
    }
    let pattern = [0x5440_0004, 0x5480_0007, 0x5540_0007, 0x5c80_0005];
    let decoded = pattern.map(|header| decode(header, EngineClass::Copy).unwrap().name());
    assert_eq!(decoded, ["XY_PAT_BLT", "XY_MONO_PAT_BLT", "XY_FULL_BLT", "XY_PAT_BLT_IMMEDIATE"]);
    assert!(decode(0x54c0_0006, EngineClass::Render).is_none(), "the render engine has no client 2D");
}

/// IVB-133, IVB-134: commands that a batch without privilege executes as MI_NOOP, always or with an address in the GGTT.
#[test]
fn commands_without_privilege() {
    proves!([IVB_133, IVB_134], "the commands that a batch without privilege executes as MI_NOOP");
    let forbidden = |header: u32| match decode(header, EngineClass::Render) {
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
    for header in [0x0000_0000, 0x0100_0000, 0x1880_0100, 0x0500_0000, 0x1400_0001, 0x0b14_0001] {
        assert!(!forbidden(header), "{header:#x}");
    }
    let Some(Command::Mi(report)) = decode(0x1400_0001, EngineClass::Render) else { panic!() };
    assert_eq!(report.rule(Requester::PfUser).operand_bits(), fields::REPORT_GLOBAL.mask());
}
