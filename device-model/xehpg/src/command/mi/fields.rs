// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Fields of the MI commands (Mesa: gen125.xml; compute-runtime: hw_cmds_generated_xe_hpg_core.inl; i915:
//! intel_gpu_commands.h; xe: xe_mi_commands.h). The field lists are named after the commands.

use arctic_base::command::{AddressingBits, Field, Group};

/// The address is a GGTT address (most commands).
pub const GLOBAL: Field = Field::flag("Use Global GTT", 0, 22);
/// MI_COPY_MEM_MEM: the source is a GGTT address.
pub const SOURCE_GLOBAL: Field = Field::flag("Use Global GTT Source", 0, 22);
/// MI_COPY_MEM_MEM: the destination is a GGTT address.
pub const DESTINATION_GLOBAL: Field = Field::flag("Use Global GTT Destination", 0, 21);
/// MI_STORE_DATA_INDEX: store to the context's own status page instead of the engine's global one.
pub const OWN_PAGE: Field = Field::flag("Use Per-Process Hardware Status Page", 0, 21);
/// MI_STORE_DATA_INDEX: offset in the status page (V13-055).
pub const INDEX: Field = Field::offset("Offset", 1, 11, 2);
/// MI_UPDATE_GTT: address of the page whose entry is written first.
pub const FIRST_PAGE: Field = Field::base("Entry Address", 1, 12);
/// MI_REPORT_PERF_COUNT: the address is a GGTT address.
pub const REPORT_GLOBAL: Field = Field::flag("Use Global GTT", 1, 0);
/// Explicit predication by MI_SET_PREDICATE_RESULT (V8-140).
pub const PREDICATE: Field = Field::flag("Predication Enable", 0, 15);
/// MI_STORE_REGISTER_MEM: predication by MI_PREDICATE_RESULT (V8-126).
pub const RESULT_PREDICATE: Field = Field::flag("Predicate Enable", 0, 21);
/// LRI, LRM, SRM, LRR's destination: the register offset is relative to the engine's base.
pub const CS_MMIO: Field = Field::flag("Add CS MMIO Start Offset", 0, 19);
/// LRR: the source register offset is relative to the engine's base.
pub const SOURCE_CS_MMIO: Field = Field::flag("Add CS MMIO Start Offset Source", 0, 18);
/// LRI, LRM, SRM, LRR's destination: the register offset is remapped to the executing engine instance (trap T19).
pub const MMIO_REMAP: Field = Field::flag("MMIO Remap Enable", 0, 17);
/// LRR: the source register offset is remapped to the executing engine instance.
pub const SOURCE_MMIO_REMAP: Field = Field::flag("MMIO Remap Enable Source", 0, 16);
/// Highest bit of a register's offset in commands.
pub const REGISTER_HIGH: u8 = 22;
/// LRI, LRM, SRM, LRR's destination: how the register's offset is meant.
pub const ADDRESSING: AddressingBits = AddressingBits { relative: Some(CS_MMIO.low), remapped: Some(MMIO_REMAP.low) };
/// LRR: how the source register's offset is meant.
pub const SOURCE_ADDRESSING: AddressingBits =
    AddressingBits { relative: Some(SOURCE_CS_MMIO.low), remapped: Some(SOURCE_MMIO_REMAP.low) };
/// LRM and SRM: WPARID times CS_MI_ADDRESS_OFFSET is added to the address.
pub const PARTITION: Field = Field::flag("Workload Partition ID Offset Enable", 0, 16);
/// MI_STORE_DATA_IMM: see [`PARTITION`].
pub const STORE_PARTITION: Field = Field::flag("Workload Partition ID Offset Enable", 0, 11);
/// MI_SEMAPHORE_WAIT: see [`PARTITION`].
pub const WAIT_PARTITION: Field = Field::flag("Workload Partition ID Offset Enable", 0, 18);
/// MI_ATOMIC: see [`PARTITION`].
pub const ATOMIC_PARTITION: Field = Field::flag("Workload Partition ID Offset Enable", 1, 0);
/// MI_LOAD_REGISTER_IMM: bytes of each register that are not written.
pub const BYTE_DISABLES: Field = Field::hex("Byte Write Disables", 0, 11, 8);
/// MI_LOAD_REGISTER_IMM: writes may be posted.
pub const FORCE_POSTED: Field = Field::flag("Force Posted", 0, 12);
/// MI_LOAD_REGISTER_MEM: the register's write is posted (V8-130).
pub const ASYNC: Field = Field::flag("Async Mode Enable", 0, 21);
/// MI_NOOP: bits 21:0 are written to NOPID.
pub const WRITE_NOPID: Field = Field::flag("Identification Number Register Write Enable", 0, 22);
/// MI_NOOP: the value written to NOPID.
pub const NOPID: Field = Field::hex("Identification Number", 0, 21, 0);
/// MI_ARB_ON_OFF: enables preemption.
pub const ARBITRATION: Field = Field::choice("Arbitration Enable", 0, 0, 0, &[(0, "off"), (1, "on")]);
/// MI_BATCH_BUFFER_START: address space of the batch.
pub const BATCH_SPACE: Field = Field::choice("Address Space Indicator", 0, 8, 8, &[(0, "GGTT"), (1, "PPGTT")]);
/// MI_BATCH_BUFFER_START: BB_OFFSET is added to the address.
pub const BATCH_OFFSET: Field = Field::flag("Add Offset Enable", 0, 16);
/// MI_BATCH_BUFFER_START: nested batch.
pub const SECOND_LEVEL: Field = Field::flag("Second Level Batch Buffer", 0, 22);
/// MI_BATCH_BUFFER_START: address of the batch.
pub const BATCH_ADDRESS: Field = Field::address("Batch Buffer Start Address", 1, 2);
/// MI_PRT_BATCH_BUFFER_START: every later restore of the context executes the batch, too. The document names the field,
/// but its position is in no source that this project has. This bit is the model's choice (V8-160).
pub const PERSISTENT: Field = Field::flag("Persistence Enable", 0, 9);
/// MI_CONDITIONAL_BATCH_BUFFER_END: enables the comparison.
pub const END_COMPARE: Field = Field::flag("Compare Semaphore", 0, 21);
/// MI_CONDITIONAL_BATCH_BUFFER_END: memory contains a mask followed by the data.
pub const END_MASKED: Field = Field::flag("Compare Mask Mode", 0, 19);
/// MI_CONDITIONAL_BATCH_BUFFER_END: ends only the current batch level.
pub const END_LEVEL: Field = Field::flag("End Current Batch Buffer Level", 0, 18);
/// Comparison of memory or register (SAD) with the command's data (SDD).
pub const COMPARE: Field = Field::choice("Compare Operation", 0, 14, 12, COMPARISONS);
/// MI_SEMAPHORE_WAIT: the address is a register's offset.
pub const WAIT_REGISTER: Field = Field::flag("Register Poll Mode", 0, 16);
/// MI_SEMAPHORE_WAIT: compare a register with GPR0 instead of the command's dword.
pub const WAIT_INDIRECT: Field = Field::flag("Indirect Semaphore Data Dword", 0, 17);
/// MI_SEMAPHORE_WAIT: whether memory is read again on a signal or by polling.
pub const WAIT_MODE: Field = Field::choice("Wait Mode", 0, 15, 15, &[(0, "signal"), (1, "poll")]);
/// MI_ATOMIC, MI_SEMAPHORE_SIGNAL: executed after a flush.
pub const POST_SYNC: Field = Field::flag("Post-Sync Operation", 0, 21);
/// MI_ATOMIC: the operands are in the command.
pub const INLINE_DATA: Field = Field::flag("Inline Data", 0, 18);
/// MI_ATOMIC: the old value is returned in GPR4 (and GPR5).
pub const RETURN_DATA: Field = Field::flag("Return Data Control", 0, 16);
/// MI_ATOMIC: operation.
pub const ATOMIC_OPCODE: Field = Field::choice("Atomic Opcode", 0, 15, 8, ATOMICS);
/// MI_ATOMIC, part of [`ATOMIC_OPCODE`]: operation.
pub const ATOMIC_OPERATION: Field = Field::value("Atomic Operation", 0, 12, 8);
/// MI_ATOMIC, part of [`ATOMIC_OPCODE`]: operand size.
pub const ATOMIC_SIZE: Field = Field::value("Atomic Operand Size", 0, 15, 13);
/// MI_SET_PREDICATE: result register that suppresses the following commands, and its suppressing value.
pub const SET_PREDICATE: Field = Field::choice("Predicate Enable", 0, 3, 0, SET_PREDICATES);
/// MI_SET_PREDICATE: condition on WPARID.
pub const SET_PREDICATE_WPARID: Field =
    Field::choice("Predicate Enable WPARID", 0, 5, 4, &[(0, "never"), (1, "if zero"), (2, "if not zero")]);
/// MI_PREDICATE: comparison.
pub const PREDICATE_COMPARE: Field =
    Field::choice("Compare Operation", 0, 1, 0, &[(0, "true"), (1, "false"), (2, "SRCS_EQUAL"), (3, "DELTAS_EQUAL")]);
/// MI_PREDICATE: combination of the comparison with the current result.
pub const PREDICATE_COMBINE: Field =
    Field::choice("Combine Operation", 0, 4, 3, &[(0, "SET"), (1, "AND"), (2, "OR"), (3, "XOR")]);
/// MI_PREDICATE: value loaded into the result register.
pub const PREDICATE_LOAD: Field = Field::choice("Load Operation", 0, 7, 6, &[(0, "KEEP"), (2, "LOAD"), (3, "LOADINV")]);
/// MI_FLUSH_DW: the post-sync operation.
pub const FLUSH_OPERATION: Field =
    Field::choice("Post-Sync Operation", 0, 15, 14, &[(0, "none"), (1, "write immediate"), (3, "write timestamp")]);
/// MI_FLUSH_DW: invalidate the engine's TLB.
pub const FLUSH_TLB: Field = Field::flag("TLB Invalidate", 0, 18);
/// MI_FLUSH_DW: the address is an offset in a status page.
pub const FLUSH_INDEX: Field = Field::flag("Store Data Index", 0, 21);
/// MI_FLUSH_DW: raise an interrupt on completion.
pub const FLUSH_NOTIFY: Field = Field::flag("Notify Enable", 0, 8);
/// MI_FLUSH_DW: the address is a GGTT address.
pub const FLUSH_GLOBAL: Field = Field::choice("Destination Address Type", 1, 2, 2, &[(0, "PPGTT"), (1, "GGTT")]);

const COMPARISONS: &[(u32, &str)] =
    &[(0, "SAD > SDD"), (1, "SAD >= SDD"), (2, "SAD < SDD"), (3, "SAD <= SDD"), (4, "SAD == SDD"), (5, "SAD != SDD")];

const SET_PREDICATES: &[(u32, &str)] = &[
    (0, "never"),
    (1, "if RESULT_2 clear"),
    (2, "if RESULT_2 set"),
    (3, "if RESULT clear"),
    (4, "if RESULT set"),
    (5, "if RESULT_1 clear"),
    (6, "if RESULT_1 set"),
    (15, "always"),
];

/// Operand size: four bytes from 00h, eight from 20h, sixteen from 40h.
const ATOMICS: &[(u32, &str)] = &[
    (0x01, "4B AND"),
    (0x02, "4B OR"),
    (0x03, "4B XOR"),
    (0x04, "4B MOVE"),
    (0x05, "4B INC"),
    (0x06, "4B DEC"),
    (0x07, "4B ADD"),
    (0x08, "4B SUB"),
    (0x09, "4B RSUB"),
    (0x0a, "4B IMAX"),
    (0x0b, "4B IMIN"),
    (0x0c, "4B UMAX"),
    (0x0d, "4B UMIN"),
    (0x0e, "4B CMPWR"),
    (0x0f, "4B PREDEC"),
    (0x21, "8B AND"),
    (0x22, "8B OR"),
    (0x23, "8B XOR"),
    (0x24, "8B MOVE"),
    (0x25, "8B INC"),
    (0x26, "8B DEC"),
    (0x27, "8B ADD"),
    (0x28, "8B SUB"),
    (0x29, "8B RSUB"),
    (0x2a, "8B IMAX"),
    (0x2b, "8B IMIN"),
    (0x2c, "8B UMAX"),
    (0x2d, "8B UMIN"),
    (0x2e, "8B CMPWR"),
    (0x2f, "8B PREDEC"),
    (0x4e, "16B CMPWR"),
];

/// Opcodes of the ALU (V8-148).
const ALU_OPCODES: &[(u32, &str)] = &[
    (0x000, "NOOP"),
    (0x001, "FENCE_RD"),
    (0x002, "FENCE_WR"),
    (0x080, "LOAD"),
    (0x480, "LOADINV"),
    (0x081, "LOAD0"),
    (0x481, "LOAD1"),
    (0x082, "LOADIND"),
    (0x100, "ADD"),
    (0x101, "SUB"),
    (0x102, "AND"),
    (0x103, "OR"),
    (0x104, "XOR"),
    (0x105, "SHL"),
    (0x106, "SHR"),
    (0x107, "SAR"),
    (0x180, "STORE"),
    (0x580, "STOREINV"),
    (0x181, "STOREIND"),
];

/// Operands of the ALU (V8-149).
const ALU_OPERANDS: &[(u32, &str)] = &[
    (0x00, "R0"),
    (0x01, "R1"),
    (0x02, "R2"),
    (0x03, "R3"),
    (0x04, "R4"),
    (0x05, "R5"),
    (0x06, "R6"),
    (0x07, "R7"),
    (0x08, "R8"),
    (0x09, "R9"),
    (0x0a, "R10"),
    (0x0b, "R11"),
    (0x0c, "R12"),
    (0x0d, "R13"),
    (0x0e, "R14"),
    (0x0f, "R15"),
    (0x20, "SRCA"),
    (0x21, "SRCB"),
    (0x31, "ACCU"),
    (0x32, "ZF"),
    (0x33, "CF"),
];

/// An instruction of the ALU (V8-147).
pub const ALU: [Field; 3] = [
    Field::choice("ALU Opcode", 0, 31, 20, ALU_OPCODES),
    Field::choice("Operand 1", 0, 19, 10, ALU_OPERANDS),
    Field::choice("Operand 2", 0, 9, 0, ALU_OPERANDS),
];

const SCAN_LINES: [Field; 3] = [
    Field::value("Display (Plane) Select", 0, 21, 19),
    Field::value("Start Scan Line Number", 1, 28, 16),
    Field::value("End Scan Line Number", 1, 12, 0),
];

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
    MI_SET_PREDICATE: [SET_PREDICATE, SET_PREDICATE_WPARID];
    MI_USER_INTERRUPT: [];
    MI_WAIT_FOR_EVENT: [Field::hex("Events", 0, 21, 0)];
    MI_WAIT_FOR_EVENT_2: [
        Field::value("Display Plane Flip Pending Wait Enable", 0, 5, 0),
        Field::value("Display Pipe Vertical Blank Wait Enable", 0, 10, 8),
        Field::value("Display Pipe Scan Line Wait Enable", 0, 14, 12)
    ];
    MI_ARB_CHECK: [Field::flag("Pre-Fetch Disable", 0, 0), Field::hex("Mask Bits", 0, 15, 8)];
    MI_REPORT_HEAD: [];
    MI_ARB_ON_OFF: [ARBITRATION, Field::flag("Allow Lite Restore", 0, 1)];
    MI_BATCH_BUFFER_END: [Field::flag("End Context", 0, 0), PREDICATE];
    MI_SUSPEND_FLUSH: [Field::flag("Suspend Flush", 0, 0)];
    MI_PREDICATE: [PREDICATE_COMPARE, PREDICATE_COMBINE, PREDICATE_LOAD];
    MI_TOPOLOGY_FILTER: [Field::hex("Topology Filter Value", 0, 5, 0)];
    MI_SET_APPID: [
        Field::value("Protected Memory Application ID", 0, 6, 0),
        Field::choice("Protected Memory Application ID Type", 0, 7, 7, &[(0, "DISPLAY_APP"), (1, "TRANSCODE_APP")])
    ];
    MI_LOAD_SCAN_LINES_INCL: SCAN_LINES;
    MI_LOAD_SCAN_LINES_EXCL: SCAN_LINES;
    MI_DISPLAY_FLIP: [
        Field::value("Display Plane Select", 0, 13, 8),
        Field::flag("Async Flip Indicator", 0, 22),
        Field::value("Tile Parameter", 1, 2, 0),
        Field::value("Display Buffer Pitch", 1, 15, 6),
        Field::flag("Stereoscopic 3D Mode", 1, 31),
        Field::choice("Flip Type", 2, 1, 0, &[(0, "sync"), (1, "async"), (2, "stereo 3D")]),
        Field::flag("VRR Master Flip", 2, 11),
        Field::base("Display Buffer Base Address", 2, 12)
    ];
    MI_SET_CONTEXT: [
        Field::flag("Restore Inhibit", 1, 0),
        Field::flag("Force Restore", 1, 1),
        Field::flag("Resource Streamer State Restore Enable", 1, 2),
        Field::flag("Resource Streamer State Save Enable", 1, 3),
        Field::flag("Core Mode Enable", 1, 4),
        Field::flag("Address Space", 1, 8),
        Field::base("Logical Context Address", 1, 12)
    ];
    MI_MATH: [], 1 + 1: ALU;
    MI_SEMAPHORE_SIGNAL: [
        POST_SYNC,
        // Tested by the privilege rules of MI_SEMAPHORE_SIGNAL.
        GLOBAL
    ];
    MI_SEMAPHORE_WAIT: [
        COMPARE,
        WAIT_MODE,
        WAIT_REGISTER,
        WAIT_INDIRECT,
        WAIT_PARTITION,
        GLOBAL,
        Field::data("Semaphore Data Dword", 1),
        Field::address_or_register("Semaphore Address", 2, 2, (0, 16)),
        Field::value("Wait Token Number", 4, 9, 2)
    ];
    MI_FORCE_WAKEUP: [
        Field::flag("Force Media-Slice0 Awake", 1, 0),
        Field::flag("Force Render Awake", 1, 1),
        Field::flag("Force Media-Slice1 Awake", 1, 2),
        Field::flag("Force Media-Slice2 Awake", 1, 3),
        Field::flag("Force Media-Slice3 Awake", 1, 4),
        Field::hex("Mask Bits", 1, 31, 16)
    ];
    MI_STORE_DATA_IMM: [
        Field::flag("Force Write Completion Check", 0, 10),
        STORE_PARTITION,
        Field::hex("MOCS", 0, 19, 14),
        Field::flag("MOCS Enable", 0, 20),
        Field::flag("Store Qword", 0, 21),
        GLOBAL,
        Field::flag("Core Mode Enable", 1, 0),
        Field::address("Address", 1, 2)
    ], 3 + 1: [Field::data("Data", 0)];
    MI_STORE_DATA_INDEX: [OWN_PAGE, INDEX, Field::data("Data DWord 0", 2), Field::data("Data DWord 1", 3)];
    MI_LOAD_REGISTER_IMM: [BYTE_DISABLES, FORCE_POSTED, MMIO_REMAP, CS_MMIO],
        1 + 2: [Field::register("Register", 0, REGISTER_HIGH, ADDRESSING), Field::data("Data", 1)];
    MI_UPDATE_GTT: [FIRST_PAGE], 2 + 2: [Field::qword("Entry", 0)];
    MI_STORE_REGISTER_MEM: [
        Field::flag("MOCS Enable", 0, 15),
        PARTITION,
        MMIO_REMAP,
        CS_MMIO,
        RESULT_PREDICATE,
        GLOBAL,
        Field::register("Register", 1, REGISTER_HIGH, ADDRESSING),
        Field::address("Memory Address", 2, 2)
    ];
    MI_FLUSH_DW: [
        Field::flag("Video Pipeline Cache Invalidate", 0, 7),
        FLUSH_NOTIFY,
        Field::flag("Flush LLC", 0, 9),
        FLUSH_OPERATION,
        Field::flag("Flush CCS", 0, 16),
        FLUSH_TLB,
        FLUSH_INDEX,
        Field::flag("Protected Memory Enable", 0, 22),
        FLUSH_GLOBAL,
        Field::address("Address", 1, 3),
        Field::qword("Immediate Data", 3)
    ];
    MI_CLFLUSH: [GLOBAL, Field::address("Address", 1, 6)], 3 + 1: [Field::data("Half Cache Lines", 0)];
    MI_REPORT_PERF_COUNT: [
        REPORT_GLOBAL,
        Field::flag("Core Mode Enable", 1, 4),
        Field::address("Memory Address", 1, 6),
        Field::data("Report ID", 3)
    ];
    MI_LOAD_REGISTER_MEM: [
        Field::flag("MOCS Enable", 0, 15),
        PARTITION,
        MMIO_REMAP,
        CS_MMIO,
        ASYNC,
        GLOBAL,
        Field::register("Register", 1, REGISTER_HIGH, ADDRESSING),
        Field::address("Memory Address", 2, 2)
    ];
    MI_LOAD_REGISTER_REG: [
        SOURCE_MMIO_REMAP,
        MMIO_REMAP,
        SOURCE_CS_MMIO,
        CS_MMIO,
        Field::register("Source Register", 1, REGISTER_HIGH, SOURCE_ADDRESSING),
        Field::register("Destination Register", 2, REGISTER_HIGH, ADDRESSING)
    ];
    MI_COPY_MEM_MEM: [
        DESTINATION_GLOBAL,
        SOURCE_GLOBAL,
        Field::address("Destination Memory Address", 1, 2),
        Field::address("Source Memory Address", 3, 2)
    ];
    MI_ATOMIC: [
        ATOMIC_OPCODE,
        RETURN_DATA,
        Field::flag("CS Stall", 0, 17),
        INLINE_DATA,
        Field::choice("Data Size", 0, 20, 19, &[(0, "dword"), (1, "qword"), (2, "octword")]),
        POST_SYNC,
        GLOBAL,
        ATOMIC_PARTITION,
        Field::address("Memory Address", 1, 2),
        Field::data("Operand1 Data Dword 0", 3),
        Field::data("Operand2 Data Dword 0", 4),
        Field::data("Operand1 Data Dword 1", 5),
        Field::data("Operand2 Data Dword 1", 6),
        Field::data("Operand1 Data Dword 2", 7),
        Field::data("Operand2 Data Dword 2", 8),
        Field::data("Operand1 Data Dword 3", 9),
        Field::data("Operand2 Data Dword 3", 10)
    ];
    MI_BATCH_BUFFER_START: [
        BATCH_SPACE,
        Field::flag("Resource Streamer Enable", 0, 10),
        PREDICATE,
        BATCH_OFFSET,
        Field::flag("Enable Command Cache", 0, 19),
        SECOND_LEVEL,
        BATCH_ADDRESS
    ];
    MI_CONDITIONAL_BATCH_BUFFER_END: [
        COMPARE,
        PREDICATE,
        END_LEVEL,
        END_MASKED,
        END_COMPARE,
        GLOBAL,
        Field::data("Compare Data Dword", 1),
        Field::address("Compare Address", 2, 2)
    ];
    MI_PRT_BATCH_BUFFER_START: [BATCH_SPACE, PERSISTENT, BATCH_ADDRESS];
}
