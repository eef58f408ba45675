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

/// `write`, then a store of `$02` in PREEMPT_INSTR, and a handler that only this store can lead to.
fn preemption_handler(write: &str) -> String {
    format!("{write}swrite $02, [$00 + %PREEMPT_INSTR]\nwaitin\nmov $01, $data\nhandler: iret\nnop\n")
}

#[test]
fn preemption_handler_stored_from_an_immediate_is_reached() {
    assert!(unreached(&preemption_handler("mov $02, #handler\nnop\n")).is_empty());
    assert!(unreached(&preemption_handler("mov $02, $03\nmov $02, #handler\n")).is_empty());
}

#[test]
fn preemption_handler_stored_from_an_overwritten_register_is_not_reached() {
    for write in ["mov $02, $03", "load $05, [$02 + 0x4]!", "store $05, [$02 + 0x4]!"] {
        assert_eq!(unreached(&preemption_handler(&format!("mov $02, #handler\n{write}\n"))), [7, 8], "{write}");
    }
    let source = "mov $lr, #handler\nbl #next\nnop\nnext: swrite $lr, [$00 + %PREEMPT_INSTR]\nwaitin\nmov $01, $data\n\
        handler: iret\nnop\n";
    assert_eq!(unreached(source), [8, 9]);
}

#[test]
fn preemption_handler_moved_before_a_terminator_or_data_is_not_reached() {
    let source = preemption_handler("jump #start\nmov $02, #handler\njump #start\nstart: nop\n");
    assert_eq!(unreached(&source), [4, 9, 10]);
    let source = preemption_handler("jump #start\nmov $02, #handler\n[00000000]\nstart: nop\n");
    assert_eq!(unreached(&source), [4, 9, 10]);
}

/// A search backward from each store takes 2^39 steps here, which does not end within the limit of a test.
#[test]
fn preemption_handlers_of_a_large_image_are_found_in_linear_time() {
    let store = assemble("[016ee001]\nswrite $02, [$00 + %PREEMPT_INSTR]\n", &Options::default()).unwrap().image;
    let mut image = Image { words: vec![store.words[1]; 1 << 20], ..store };
    image.words[0] = store.words[0];
    let lines = Listing::of(&image).remove(0).lines;
    assert_eq!(lines.len(), 1 << 20);
    assert!(lines.iter().all(|line| line.reached));
}
