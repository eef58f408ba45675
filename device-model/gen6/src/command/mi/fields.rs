// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Fields of the MI commands (IVB-141..165; i915: gt/intel_gpu_commands.h). The field lists are named after the commands.

use arctic_base::command::{AddressingBits, Field, Group};

/// The address is in the GGTT (most commands).
pub const GLOBAL: Field = Field::flag("Use Global GTT", 0, 22);
/// MI_NOOP: bits 21:0 are written to NOPID (IVB-141).
pub const WRITE_NOPID: Field = Field::flag("Identification Number Register Write Enable", 0, 22);
/// MI_NOOP: the value for NOPID.
pub const NOPID: Field = Field::hex("Identification Number", 0, 21, 0);
/// MI_WAIT_FOR_EVENT: the condition code that must be clear, or none (IVB-143).
pub const WAIT_CONDITION: Field = Field::choice("Condition Code Wait", 0, 19, 16, CONDITION_CODES);
/// MI_FLUSH: statistics are set to 0 (IVB-118, IVB-144).
pub const FLUSH_STATISTICS: Field = Field::flag("Global Snapshot Count Reset", 0, 3);
/// MI_ARB_ON_OFF: arbitration is enabled (IVB-147).
pub const ARBITRATION: Field = Field::choice("Arbitration Enable", 0, 0, 0, OFF_ON);
/// MI_SUSPEND_FLUSH: flushes by registers are suspended (IVB-149).
pub const SUSPEND: Field = Field::choice("Suspend Flush", 0, 0, 0, OFF_ON);
/// MI_PREDICATE: comparison (IVB-150).
pub const PREDICATE_COMPARE: Field =
    Field::choice("Compare Operation", 0, 1, 0, &[(0, "true"), (1, "false"), (2, "SRCS_EQUAL"), (3, "DELTAS_EQUAL")]);
/// MI_PREDICATE: combination of the comparison with the current predicate.
pub const PREDICATE_COMBINE: Field =
    Field::choice("Combine Operation", 0, 4, 3, &[(0, "SET"), (1, "AND"), (2, "OR"), (3, "XOR")]);
/// MI_PREDICATE: how the combination is loaded into the predicate.
pub const PREDICATE_LOAD: Field = Field::choice("Load Operation", 0, 7, 6, &[(0, "KEEP"), (2, "LOAD"), (3, "LOADINV")]);
/// MI_DISPLAY_FLIP: the plane (IVB-153).
pub const FLIP_PLANE: Field = Field::choice(
    "Display Plane Select",
    0,
    21,
    19,
    &[(0, "plane A"), (1, "plane B"), (2, "sprite A"), (3, "sprite B"), (4, "plane C"), (5, "sprite C")],
);
/// MI_SEMAPHORE_MBOX: the value in memory is updated (IVB-154).
pub const MAILBOX_UPDATE: Field = Field::flag("Update Semaphore", 0, 21);
/// MI_SEMAPHORE_MBOX: a value is compared.
pub const MAILBOX_COMPARE: Field = Field::flag("Compare Semaphore", 0, 20);
/// MI_SEMAPHORE_MBOX: the compared value is in a register.
pub const MAILBOX_COMPARE_REGISTER: Field = Field::flag("Compare Register", 0, 18);
/// MI_SEMAPHORE_MBOX: the register.
pub const MAILBOX_REGISTER: Field =
    Field::choice("Register Select", 0, 17, 16, &[(0, "SYNC_0"), (1, "SYNC_2"), (2, "SYNC_1"), (3, "general")]);
/// MI_SEMAPHORE_MBOX: the value that must be exceeded, or is stored.
pub const MAILBOX_DATA: Field = Field::data("Semaphore Data", 1);
/// MI_SEMAPHORE_MBOX: the address, or the offset of a general register.
pub const MAILBOX_ADDRESS: Field = Field::base("Semaphore Address", 2, 2);
/// MI_SET_CONTEXT: the extended state is saved at the next switch (IVB-155).
pub const CONTEXT_SAVE_EXTENDED: Field = Field::flag("Extended State Save Enable", 1, 3);
/// MI_SET_CONTEXT: the extended state is restored.
pub const CONTEXT_RESTORE_EXTENDED: Field = Field::flag("Extended State Restore Enable", 1, 2);
/// MI_SET_CONTEXT: the image is restored although the context is the current one.
pub const CONTEXT_FORCE: Field = Field::flag("Force Restore", 1, 1);
/// MI_SET_CONTEXT: the image is not restored.
pub const CONTEXT_INHIBIT: Field = Field::flag("Restore Inhibit", 1, 0);
/// MI_STORE_DATA_IMM: the address (IVB-157).
pub const STORE_ADDRESS: Field = Field::base("Address", 2, 2);
/// MI_STORE_DATA_INDEX: the offset in the status page (IVB-158).
pub const INDEX: Field = Field::offset("Offset", 1, 11, 2);
/// MI_LOAD_REGISTER_IMM: bytes of each register that are not written (IVB-159).
pub const BYTE_DISABLES: Field = Field::hex("Byte Write Disables", 0, 11, 8);
/// MI_UPDATE_GTT: page of the first entry (IVB-160).
pub const ENTRY: Field = Field::base("Entry Address", 1, 12);
/// Highest bit of a register's offset in commands (IVB-161, IVB-163).
const REGISTER_HIGH: u8 = 25;
/// MI_STORE_REGISTER_MEM, MI_LOAD_REGISTER_MEM: the register.
pub const REGISTER: Field = Field::register("Register", 1, REGISTER_HIGH, AddressingBits::NONE);
/// MI_LOAD_REGISTER_IMM: a register, in the first dword of each pair (IVB-159).
pub const LOADED_REGISTER: Field = Field::register("Register", 0, REGISTER_HIGH, AddressingBits::NONE);
/// MI_STORE_REGISTER_MEM, MI_LOAD_REGISTER_MEM: the address.
pub const MEMORY: Field = Field::base("Memory Address", 2, 2);
/// MI_FLUSH_DW: the address is an offset in the status page (G67-075).
pub const FLUSH_INDEX: Field = Field::flag("Store Data Index", 0, 21);
/// MI_FLUSH_DW: translations are invalidated.
pub const FLUSH_TLB: Field = Field::flag("TLB Invalidate", 0, 18);
/// MI_FLUSH_DW: the post-sync operation.
pub const FLUSH_OPERATION: Field =
    Field::choice("Post-Sync Operation", 0, 15, 14, &[(0, "none"), (1, "write immediate"), (3, "write timestamp")]);
/// MI_FLUSH_DW: a notification is sent.
pub const FLUSH_NOTIFY: Field = Field::flag("Notify Enable", 0, 8);
/// MI_FLUSH_DW: the address is in the GGTT.
pub const FLUSH_GLOBAL: Field = Field::choice("Destination Address Type", 1, 2, 2, &[(0, "PPGTT"), (1, "GGTT")]);
/// MI_FLUSH_DW: the address.
pub const FLUSH_ADDRESS: Field = Field::base("Address", 1, 3);
/// MI_REPORT_PERF_COUNT: the address is in the GGTT (i915: MI_REPORT_PERF_COUNT_GGTT).
pub const REPORT_GLOBAL: Field = Field::flag("Use Global GTT", 1, 0);
/// MI_BATCH_BUFFER_START: the address is an offset in protected memory (IVB-164).
pub const BATCH_CLEAR: Field = Field::flag("Clear Command Buffer Enable", 0, 11);
/// MI_BATCH_BUFFER_START: space of the batch, and its privilege.
pub const BATCH_SPACE: Field = Field::choice("Address Space Indicator", 0, 8, 8, &[(0, "GGTT"), (1, "PPGTT")]);
/// MI_BATCH_BUFFER_START: address of the batch.
pub const BATCH_ADDRESS: Field = Field::base("Batch Buffer Start Address", 1, 2);
/// MI_CONDITIONAL_BATCH_BUFFER_END: memory is compared (IVB-165).
pub const END_COMPARE: Field = Field::flag("Compare Semaphore", 0, 21);
/// MI_CONDITIONAL_BATCH_BUFFER_END: the value that must be exceeded.
pub const END_DATA: Field = Field::data("Compare Data", 1);
/// MI_CONDITIONAL_BATCH_BUFFER_END: the address.
pub const END_ADDRESS: Field = Field::base("Compare Address", 2, 3);

const OFF_ON: &[(u32, &str)] = &[(0, "off"), (1, "on")];

const CONDITION_CODES: &[(u32, &str)] =
    &[(0, "none"), (1, "code 0"), (2, "code 1"), (3, "code 2"), (4, "code 3"), (5, "code 4")];

macro_rules! fields {
    ($($name:ident: $fields:expr $(, $first:literal + $dwords:literal: $group:expr)?;)*) => {
        $(pub(super) const $name: (&[Field], Option<Group>) = (&$fields, fields!(@ $($first, $dwords, $group)?));)*
    };
    (@) => { None };
    (@ $first:literal, $dwords:literal, $group:expr) => {
        Some(Group { first: $first, dwords: $dwords, fields: &$group })
    };
}

// Fields of each command, optionally followed by its repeated group: first dword, dwords per element, fields of an
// element.
fields! {
    MI_NOOP: [NOPID, WRITE_NOPID];
    MI_USER_INTERRUPT: [];
    // IVB-143 has no positions of the events of bits 0 and 1: they follow the pattern of pipe B (bits 8 and 9).
    MI_WAIT_FOR_EVENT: [
        Field::flag("Display Pipe A Scan Line Wait", 0, 0),
        Field::flag("Display Plane A Flip Pending Wait", 0, 1),
        Field::flag("Display Sprite A Flip Pending Wait", 0, 2),
        Field::flag("Display Pipe A Vertical Blank Wait", 0, 3),
        Field::flag("Display Pipe A Horizontal Blank Wait", 0, 5),
        Field::flag("Display Pipe B Scan Line Wait", 0, 8),
        Field::flag("Display Plane B Flip Pending Wait", 0, 9),
        Field::flag("Display Sprite B Flip Pending Wait", 0, 10),
        Field::flag("Display Pipe B Vertical Blank Wait", 0, 11),
        Field::flag("Display Pipe B Horizontal Blank Wait", 0, 13),
        Field::flag("Display Pipe C Scan Line Wait", 0, 14),
        Field::flag("Display Plane C Flip Pending Wait", 0, 15),
        WAIT_CONDITION,
        Field::flag("Display Sprite C Flip Pending Wait", 0, 20),
        Field::flag("Display Pipe C Vertical Blank Wait", 0, 21),
        Field::flag("Display Pipe C Horizontal Blank Wait", 0, 22)
    ];
    MI_FLUSH: [
        Field::flag("State/Instruction Cache Invalidate", 0, 1),
        Field::flag("Render Cache Flush Inhibit", 0, 2),
        FLUSH_STATISTICS,
        Field::flag("Generic Media State Clear", 0, 4),
        Field::flag("Indirect State Pointers Disable", 0, 5)
    ];
    MI_ARB_CHECK: [];
    MI_REPORT_HEAD: [];
    MI_ARB_ON_OFF: [ARBITRATION];
    MI_BATCH_BUFFER_END: [];
    MI_SUSPEND_FLUSH: [SUSPEND];
    MI_PREDICATE: [PREDICATE_COMPARE, PREDICATE_COMBINE, PREDICATE_LOAD];
    MI_TOPOLOGY_FILTER: [Field::value("Topology Filter Value", 0, 5, 0)];
    MI_DISPLAY_FLIP: [
        FLIP_PLANE,
        Field::flag("Async Flip Indicator", 0, 22),
        Field::flag("Tile X", 1, 0),
        Field::value("Pitch in 64 Bytes", 1, 15, 6),
        Field::choice("Flip Type", 2, 1, 0, &[(0, "synchronous"), (1, "asynchronous")]),
        Field::base("Display Buffer Base Address", 2, 12)
    ];
    MI_SEMAPHORE_MBOX: [
        MAILBOX_REGISTER, MAILBOX_COMPARE_REGISTER, MAILBOX_COMPARE, MAILBOX_UPDATE, GLOBAL, MAILBOX_DATA, MAILBOX_ADDRESS
    ];
    MI_SET_CONTEXT: [
        CONTEXT_INHIBIT,
        CONTEXT_FORCE,
        CONTEXT_RESTORE_EXTENDED,
        CONTEXT_SAVE_EXTENDED,
        Field::choice("Memory Space Select", 1, 8, 8, &[(1, "GGTT")]),
        Field::base("Logical Context Address", 1, 12)
    ];
    MI_URB_CLEAR: [Field::hex("URB Address", 1, 13, 0), Field::value("URB Clear Length", 1, 28, 16)];
    MI_STORE_DATA_IMM: [GLOBAL, STORE_ADDRESS], 3 + 1: [Field::data("Data", 0)];
    MI_STORE_DATA_INDEX: [INDEX], 2 + 1: [Field::data("Data", 0)];
    MI_LOAD_REGISTER_IMM: [BYTE_DISABLES], 1 + 2: [LOADED_REGISTER, Field::data("Data", 1)];
    MI_UPDATE_GTT: [GLOBAL, ENTRY], 2 + 1: [Field::data("Entry", 0)];
    MI_STORE_REGISTER_MEM: [GLOBAL, REGISTER, MEMORY];
    MI_FLUSH_DW: [
        Field::flag("Video Pipeline Cache Invalidate", 0, 7),
        FLUSH_NOTIFY,
        Field::flag("Flush LLC", 0, 9),
        FLUSH_OPERATION,
        FLUSH_TLB,
        FLUSH_INDEX,
        Field::flag("Protected Memory Enable", 0, 22),
        FLUSH_GLOBAL,
        FLUSH_ADDRESS
    ], 2 + 1: [Field::data("Immediate Data", 0)];
    MI_CLFLUSH: [GLOBAL, Field::base("Page and Starting Cacheline", 1, 6), Field::hex("Address High", 2, 15, 0)],
        3 + 1: [Field::data("Half Cache Lines", 0)];
    MI_REPORT_PERF_COUNT: [
        REPORT_GLOBAL,
        Field::flag("Core Mode Enable", 1, 4),
        Field::base("Memory Address", 1, 6),
        Field::data("Report ID", 2)
    ];
    MI_LOAD_REGISTER_MEM: [Field::flag("Async Mode Enable", 0, 21), GLOBAL, REGISTER, MEMORY];
    MI_BATCH_BUFFER_START: [BATCH_SPACE, BATCH_CLEAR, BATCH_ADDRESS];
    MI_CONDITIONAL_BATCH_BUFFER_END: [END_COMPARE, GLOBAL, END_DATA, END_ADDRESS];
}
