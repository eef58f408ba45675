// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the disassembler with a small instruction set.

use std::convert::Infallible;

use super::batch::Batch;
use super::line::{Dword, Line};
use crate::command::toy::{BLITTER_1, Engine, RENDER_1, RENDER_2};
use crate::command::{Requester, Target};

fn text(batch: &Batch<'_, Engine>) -> Vec<String> {
    let lines = batch.commands().map(|command| Line::<Infallible>::Command(command).to_string());
    lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

fn driver<'b>(words: &'b [u32], engine: Engine) -> Batch<'b, Engine> {
    Batch { requester: Requester::PfKernel, ends: false, ..Batch::new(words, 0x1000, engine) }
}

#[test]
fn fields_are_shown_with_their_names() {
    let words = [0x1000_0001, 0x7004, 5, 0x1108_0003, 0x40, 1, 0x44, 2, 0x1100_0001, 0x40, 3, 0x0500_0000, 9];
    assert_eq!(
        text(&Batch::new(&words, 0x1000, RENDER_1)),
        [
            "0x000000001000: 10000001 MI_STORE: Address 0x7004 (status page), Data 0x5",
            "0x00000000100c: 11080003 MI_LOAD: Relative, render+0x40 = 0x1, render+0x44 = 0x2",
            "0x000000001020: 11000001 MI_LOAD: 0x40 = 0x3",
            "0x00000000102c: 05000000 MI_END",
        ]
    );
    let command = Batch::new(&words, 0x1000, RENDER_1).commands().next().unwrap();
    let fields: Vec<_> = command.fields.iter().map(|field| (field.name.as_str(), field.value)).collect();
    assert_eq!(fields, [("Use Global GTT", 0), ("Address", 0x7004), ("Data", 5)]);
    assert_eq!(command.fields[1].meaning.as_deref(), Some("status page"));
}

/// The same dwords are other commands in another generation and on another engine.
#[test]
fn commands_are_those_of_the_engine() {
    let words = [0x1000_0002, 0x8000, 0x9000, 5, 0x5400_0001, 0x40, 0xffff];
    assert_eq!(
        text(&driver(&words, RENDER_1))[0],
        "0x000000001000: 10000002 MI_STORE: Address 0x8000, Data 0x9000 # 4 dwords, of which only 3 have a meaning"
    );
    assert_eq!(text(&driver(&words, RENDER_2))[0], "0x000000001000: 10000002 MI_STORE: Address 0x9000, Data 0x5");
    assert_eq!(text(&driver(&words, RENDER_1))[1], "0x000000001010: 54000001 unknown # render has no such command");
    assert_eq!(text(&driver(&words, BLITTER_1))[1], "0x000000001010: 54000001 XY_FILL: Pitch 64, X -1");
}

#[test]
fn invalid_and_truncated_commands_are_reported() {
    let words = [0x1040_0000, 0, 0x0400_0000, 0x7a00_0001, 0, 0, 0x1000_0001];
    assert_eq!(
        text(&Batch::new(&words, 0, RENDER_1)),
        [
            "0x000000000000: 10400000 MI_STORE: Use Global GTT, Address 0x0 # illegal: expected at least 3 dwords \
             # executed as MI_NOOP without privilege",
            "0x000000000008: 04000000 MI_ARB # executed as MI_NOOP without privilege",
            "0x00000000000c: 7a000001 3D_FLUSH # invalid length of 3 dwords",
            "0x000000000018: 10000001 MI_STORE # truncated: 1 of 3 dwords # illegal: expected at least 3 dwords",
        ]
    );
}

/// Runs of MI_NOOPs are one line, up to a mark; a command cannot contain a mark.
#[test]
fn marks_divide_runs_and_commands() {
    let words = [0, 0, 0, 0, 0x1000_0001, 0x0500_0000, 0];
    let marks = vec![(0x1008, "HEAD"), (0x1014, "TAIL")];
    assert_eq!(
        text(&Batch { marks, ..driver(&words, RENDER_1) }),
        [
            "0x000000001000: 00000000 MI_NOOP x2",
            "0x000000001008: 00000000 MI_NOOP x2 <== HEAD",
            "0x000000001010: 10000001 MI_STORE # TAIL is inside it: a command of 3 dwords cannot start here \
             # illegal: expected at least 3 dwords",
            "0x000000001014: 05000000 MI_END <== TAIL",
            "0x000000001018: 00000000 MI_NOOP",
        ]
    );
}

/// A batch ends at its end and at a start from which execution does not return; a ring continues.
#[test]
fn a_batch_ends_where_the_parser_leaves_it() {
    let words = [0x1881_0100, 0x5000, 0x1880_0000, 0x6000, 0x0500_0000];
    let user: Vec<_> = Batch::new(&words, 0, RENDER_1).commands().collect();
    let targets: Vec<_> = user.iter().map(|command| command.target).collect();
    assert_eq!(
        targets,
        [
            Some(Target { address: 0x5000, ppgtt: true, returns: true }),
            Some(Target { address: 0x6000, ppgtt: false, returns: false })
        ]
    );
    assert_eq!(user[1].notes, ["chained: execution continues there"]);
    let ring: Vec<_> = driver(&words, RENDER_1).commands().collect();
    assert!(ring[1].target.unwrap().returns && ring.len() == 3);
    assert_eq!(Batch::new(&[0x0500_0000, 0, 0], 0, RENDER_1).commands().count(), 1);
}

#[test]
fn lines_have_one_form() {
    let lines = [
        Line::section("Ring"),
        Line::note("empty"),
        Line::Dword(Dword { index: 2, name: "HEAD".into(), value: 0x40, meaning: "offset 0x40".into() }),
    ];
    assert_eq!(
        lines.map(|line: Line<Infallible>| line.to_string()),
        ["\nRing", "  # empty", "  [0x002] HEAD                         0x00000040  offset 0x40"]
    );
}

proptest::proptest! {
    /// Arbitrary input causes no panic, and every dword is in exactly one command.
    #[test]
    fn any_dwords_are_split(words in proptest::collection::vec(proptest::prelude::any::<u32>(), 0..200), mark in 0..800u64) {
        for engine in [RENDER_1, BLITTER_1, RENDER_2] {
            let ring = Batch { marks: vec![(0x1000 + mark, "HEAD")], ..driver(&words, engine) };
            let dwords: usize = ring.commands().map(|command| command.dwords.len().max(command.times)).sum();
            proptest::prop_assert_eq!(dwords, words.len());
            drop(text(&Batch::new(&words, 0, engine)));
        }
    }
}
