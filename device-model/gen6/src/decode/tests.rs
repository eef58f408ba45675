// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the disassembler.

use std::convert::Infallible;

use arctic_base::command::Addressing;
use arctic_base::command::description::split;
use arctic_base::decode::line::Line;

use super::*;
use crate::command::PipelineCommand;
use crate::command::mi::{COMMON, IVY_BRIDGE_ONLY};
use crate::command::pipeline::IVY_BRIDGE_PIPELINES;
use crate::generation::IVY_BRIDGE;

fn on(engine: &str) -> EngineRef {
    EngineRef::named(&IVY_BRIDGE, engine).unwrap()
}

fn text(batch: &Batch<'_>) -> Vec<String> {
    let lines = batch.commands().map(|command| Line::<Infallible>::Command(command).to_string());
    lines.map(|line| line.split_whitespace().skip(2).collect::<Vec<_>>().join(" ")).collect()
}

fn driver<'b>(words: &'b [u32], engine: &str) -> Batch<'b> {
    Batch { requester: Requester::PfKernel, ends: false, ..Batch::new(words, 0x1000, on(engine)) }
}

/// A request as i915 writes it to the render ring (gt/gen6_engine_cs.c, gt/intel_ring_submission.c), each command with
/// its fields.
#[test]
fn a_request_of_the_driver_reads_as_it_is_executed() {
    let words = [
        0x7a00_0002,
        0x0110_5021,
        0x3000,
        7,
        0x1100_0003,
        0x2220,
        !0,
        0x2228,
        0x7fde_0000,
        0x1240_0001,
        0x2228,
        0x8000,
        0x0400_0000,
        0,
        0x0c00_0000,
        0x4_0109,
        0,
        0x0400_0001,
        0x1880_0100,
        0x1_0000,
        0x0100_0000,
        0x0040_0007,
    ];
    assert_eq!(
        text(&driver(&words, "rcs0")),
        [
            "PIPE_CONTROL: Depth Cache Flush Enable, DC Flush Enable, Render Target Cache Flush Enable, Post-Sync Operation \
             write immediate, Command Streamer Stall Enable, Destination Address Type GGTT, Address 0x3000, Immediate \
             Data 0x7",
            "MI_LOAD_REGISTER_IMM: rcs0.PP_DCLV = 0xffffffff, rcs0.PP_DIR_BASE = 0x7fde0000",
            "MI_STORE_REGISTER_MEM: Use Global GTT, Register rcs0.PP_DIR_BASE, Memory Address 0x8000",
            "MI_ARB_ON_OFF: Arbitration Enable off",
            "MI_NOOP",
            "MI_SET_CONTEXT: Restore Inhibit, Extended State Save Enable, Memory Space Select GGTT, Logical Context \
             Address 0x40000",
            "MI_NOOP",
            "MI_ARB_ON_OFF: Arbitration Enable on",
            "MI_BATCH_BUFFER_START: Address Space Indicator PPGTT, Batch Buffer Start Address 0x10000",
            "MI_USER_INTERRUPT",
            "MI_NOOP: Identification Number 0x7, Identification Number Register Write Enable",
        ]
    );
    let start = driver(&words, "rcs0").commands().find_map(|command| command.target).unwrap();
    assert_eq!(start, Target { address: 0x1_0000, ppgtt: true, returns: true });
}

/// A batch of user space: commands without privilege are marked, and a chained batch is the end.
#[test]
fn commands_without_privilege_are_marked() {
    let words = [0x1040_0002, 0, 0x5000, 1, 0x1000_0002, 0, 0x5000, 1, 0x1880_0100, 0x6000, 0];
    assert_eq!(
        text(&Batch::new(&words, 0, on("bcs0"))),
        [
            "MI_STORE_DATA_IMM: Use Global GTT, Address 0x5000, Data 0x1 # executed as MI_NOOP without privilege",
            "MI_STORE_DATA_IMM: Address 0x5000, Data 0x1",
            "MI_BATCH_BUFFER_START: Address Space Indicator PPGTT, Batch Buffer Start Address 0x6000 # chained: \
             execution continues there",
        ]
    );
    assert_eq!(text(&Batch::new(&[0x0c00_0000], 0, on("bcs0"))), ["unknown # bcs0 has no such command"]);
}

/// A batch with each command of Ivy Bridge is split into these commands, and each shows all its fields.
#[test]
fn each_command_is_disassembled() {
    let mut batch = Vec::new();
    let mut names = Vec::new();
    let mut add = |header: u32, name, dwords: u32| {
        batch.push(header);
        // Every bit is set, so that every flag is shown.
        batch.extend((1..dwords).map(|_| u32::MAX));
        names.push(name);
    };
    for row in COMMON.iter().chain(IVY_BRIDGE_ONLY).filter(|row| row.classes.has(on("rcs0").info().class)) {
        let bits = row.fields.iter().fold(0, |bits, field| bits | field.bits_of(0));
        let longest = row.group.map_or(row.least, |group| group.first + group.dwords).max(row.least);
        let length = if row.length.mask() == 0 { 0 } else { u32::from(longest) - 2 };
        add(u32::from(row.opcode) << 23 | bits | length, row.name, longest.into());
    }
    let wide = |row: &PipelineCommand| {
        let dwords = row.lengths.iter().max().map_or(2, |longest| u32::try_from(*longest).unwrap());
        if row.length.mask() == 0 { 1 } else { dwords }
    };
    for row in IVY_BRIDGE_PIPELINES.render {
        let bits = row.fields.iter().fold(0, |bits, field| bits | field.bits_of(0));
        let length = if row.length.mask() == 0 { 0 } else { wide(row) - 2 };
        add(u32::from(row.opcode) << 16 | bits | length, row.name, wide(row));
    }
    let found: Vec<_> = split(on("rcs0"), &batch).map(|piece| piece.name.unwrap()).collect();
    assert_eq!(found, names);
    let lines: Vec<_> = driver(&batch, "rcs0").commands().collect();
    assert_eq!(lines.len(), names.len());
    for line in lines {
        assert_eq!(line.notes, [""; 0], "{line:?}");
        let fields = on("rcs0").describe(line.dwords[0]).unwrap();
        let repeated = fields.group.map_or(0, |group| group.fields.len());
        assert!(line.fields.len() >= fields.fields.len() + repeated, "{line:?}");
        let text = line.text();
        for field in line.fields.iter().filter(|field| !field.name.ends_with(']')) {
            assert!(text.contains(&field.name), "{text} has no {}", field.name);
        }
    }
}

#[test]
fn registers_have_the_names_of_their_rows() {
    let name = |offset| on("bcs0").register(offset, Addressing::default());
    assert_eq!(
        [0x2_209c, 0x2002, 0x941c, 0x10_0008, 0x7_1008, 0x1f_fffc, u32::MAX].map(name),
        ["bcs0.MI_MODE", "0x002000", "GDRST", "FENCE[1]", "TRANSCONF", "0x1ffffc", "0xfffffffc"]
    );
}
