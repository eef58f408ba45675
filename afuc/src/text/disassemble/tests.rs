// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
use super::*;
use crate::text::{Options, assemble};

/// Offsets of the words that no path reaches.
fn unreached(source: &str) -> Vec<u32> {
    let image = assemble(&format!("[016ee001]\n[01000000]\n{source}"), &Options::default()).unwrap().image;
    let lines = Listing::of(&image).remove(0).lines;
    lines.iter().filter(|line| !line.reached).map(|line| line.address).collect()
}

#[test]
fn code_behind_a_delay_slot_that_is_a_branch_target_is_reached() {
    let behind = "mov $02, 0x1\nend: waitin\nmov $01, $data\n";
    assert!(unreached(&format!("breq $02, 0x1, #slot\nnop\njump #end\nslot: nop\n{behind}")).is_empty());
    for (first, second) in [("jump", "slot"), ("slot", "jump")] {
        let source = format!(
            "jump #start\nnop\njump: jump #end\nslot: nop\n{behind}\
             start: breq $02, 0x1, #{first}\nnop\nbreq $02, 0x2, #{second}\nnop\nwaitin\nnop\n"
        );
        assert!(unreached(&source).is_empty(), "{source}");
    }
}

#[test]
fn code_behind_a_delay_slot_that_is_no_target_is_not_reached() {
    assert_eq!(unreached("jump #end\nnop\nmov $02, 0x1\nend: waitin\nmov $01, $data\n"), [4]);
    assert_eq!(unreached("jump #end\njump #end\nnop\nend: waitin\nmov $01, $data\n"), [4]);
}

#[test]
fn preemption_handler_is_reached() {
    let source = |write: &str| {
        format!(
            "mov $02, #handler\n{write}nop\nswrite $02, [$00 + %PREEMPT_INSTR]\nwaitin\nmov $01, $data\n\
             handler: iret\nnop\n"
        )
    };
    assert!(unreached(&source("")).is_empty());
    assert_eq!(unreached(&source("mov $02, $03\n")), [8, 9]);
}
