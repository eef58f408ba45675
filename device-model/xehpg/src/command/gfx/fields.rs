// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Fields of the pipeline commands that are relevant for debugging a hung context (Mesa: gen125.xml; compute-runtime:
//! hw_cmds_generated_xe_hpg_core.inl; xe: xe_gpu_commands.h).

use arctic_base::command::Field;

/// PIPE_CONTROL: predicated by MI_PREDICATE_RESULT (V8-137).
pub const CONTROL_PREDICATE: Field = Field::flag("Predicate Enable", 0, 8);
/// PIPE_CONTROL: WPARID times CS_MI_ADDRESS_OFFSET is added to the address.
pub const CONTROL_PARTITION: Field = Field::flag("Workload Partition ID Offset Enable", 0, 14);
/// PIPE_CONTROL: raise an interrupt on completion.
pub const CONTROL_NOTIFY: Field = Field::flag("Notify Enable", 1, 8);
/// PIPE_CONTROL: the post-sync operation.
pub const CONTROL_OPERATION: Field = Field::choice(
    "Post Sync Operation",
    1,
    15,
    14,
    &[(0, "none"), (1, "write immediate"), (2, "write PS depth count"), (3, "write timestamp")],
);
/// PIPE_CONTROL: invalidate the engine's TLB.
pub const CONTROL_TLB: Field = Field::flag("TLB Invalidate", 1, 18);
/// PIPE_CONTROL: the address is an offset in a status page.
pub const CONTROL_INDEX: Field = Field::flag("Store Data Index", 1, 21);
/// PIPE_CONTROL: the immediate is written to a register.
pub const CONTROL_MMIO: Field = Field::flag("LRI Post Sync Operation", 1, 23);
/// PIPE_CONTROL: the address is a GGTT address.
pub const CONTROL_GLOBAL: Field = Field::choice("Destination Address Type", 1, 24, 24, &[(0, "PPGTT"), (1, "GGTT")]);

/// L3_CONTROL: the immediate is written.
pub const L3_OPERATION: Field = Field::choice("Post Sync Operation", 0, 14, 14, &[(0, "none"), (1, "write immediate")]);
/// L3_CONTROL: the address is a GGTT address.
pub const L3_GLOBAL: Field = Field::choice("Destination Address Type", 0, 21, 21, &[(0, "PPGTT"), (1, "GGTT")]);

/// A command's fields and its length in dwords.
pub(super) struct Fields {
    pub dwords: u32,
    pub fields: &'static [Field],
}

/// The command with this upper word; `None` if only its name is known.
pub(super) fn of(opcode: u16) -> Option<&'static Fields> {
    TABLE.iter().find(|(word, _)| *word == opcode).map(|(_, command)| command)
}

macro_rules! table {
    ($($opcode:literal $dwords:literal: $fields:expr;)*) => {
        pub(super) static TABLE: &[(u16, Fields)] =
            &[$(($opcode, Fields { dwords: $dwords, fields: &$fields })),*];
    };
}

table! {
    // STATE_BASE_ADDRESS
    0x6101 22: [
        Field::flag("General State Base Address Modify Enable", 1, 0),
        Field::address("General State Base Address", 1, 12),
        Field::hex("Stateless Data Port Access MOCS", 3, 22, 16),
        Field::flag("Surface State Base Address Modify Enable", 4, 0),
        Field::address("Surface State Base Address", 4, 12),
        Field::flag("Dynamic State Base Address Modify Enable", 6, 0),
        Field::address("Dynamic State Base Address", 6, 12),
        Field::flag("Indirect Object Base Address Modify Enable", 8, 0),
        Field::address("Indirect Object Base Address", 8, 12),
        Field::flag("Instruction Base Address Modify Enable", 10, 0),
        Field::address("Instruction Base Address", 10, 12),
        Field::flag("General State Buffer Size Modify Enable", 12, 0),
        Field::base("General State Buffer Size", 12, 12),
        Field::flag("Dynamic State Buffer Size Modify Enable", 13, 0),
        Field::base("Dynamic State Buffer Size", 13, 12),
        Field::flag("Indirect Object Buffer Size Modify Enable", 14, 0),
        Field::base("Indirect Object Buffer Size", 14, 12),
        Field::flag("Instruction Buffer Size Modify Enable", 15, 0),
        Field::base("Instruction Buffer Size", 15, 12),
        Field::flag("Bindless Surface State Base Address Modify Enable", 16, 0),
        Field::address("Bindless Surface State Base Address", 16, 12),
        Field::data("Bindless Surface State Size", 18),
        Field::flag("Bindless Sampler State Base Address Modify Enable", 19, 0),
        Field::address("Bindless Sampler State Base Address", 19, 12),
        Field::base("Bindless Sampler State Buffer Size", 21, 12)
    ];
    // STATE_SIP
    0x6102 3: [Field::address("System Instruction Pointer", 1, 4)];
    // STATE_COMPUTE_MODE
    0x6105 2: [
        Field::value("Z Pass Async Compute Thread Limit", 1, 2, 0),
        Field::value("Force Non-Coherent", 1, 4, 3),
        Field::flag("Fast Clear Disabled on Compressed Surface", 1, 5),
        Field::value("Pixel Async Compute Thread Limit", 1, 9, 7),
        Field::flag("Large GRF Mode", 1, 15),
        Field::hex("Mask Bits", 1, 31, 16)
    ];
    // 3DSTATE_BTD
    0x6106 6: [
        Field::value("DispatchTimeoutCounter", 1, 1, 0),
        Field::value("AMFS Mode", 1, 4, 3),
        Field::value("Per DSS Memory Backed Buffer Size", 2, 2, 0),
        Field::address("Memory Backed Buffer Base Pointer", 2, 10),
        Field::address("Scratch Space Buffer", 4, 10)
    ];
    // PIPELINE_SELECT
    0x6904 1: [
        Field::choice("Pipeline Selection", 0, 1, 0, &[(0, "3D"), (1, "media"), (2, "GPGPU")]),
        Field::flag("Media Sampler DOP Clock Gate Enable", 0, 4),
        Field::flag("Systolic Mode Enable", 0, 7),
        Field::hex("Mask Bits", 0, 15, 8)
    ];
    // CFE_STATE
    0x7200 6: [
        Field::address("Scratch Space Buffer", 1, 10),
        Field::value("Number of Walkers", 3, 5, 3),
        Field::flag("Fused EU Dispatch", 3, 6),
        Field::flag("Single Slice Dispatch CCS Mode", 3, 13),
        Field::value("Over Dispatch Control", 3, 15, 14),
        Field::value("Maximum Number of Threads", 3, 31, 16)
    ];
    // COMPUTE_WALKER
    0x7208 39: super::walker::FIELDS;
    // 3DSTATE_BINDING_TABLE_POOL_ALLOC
    0x7919 4: [
        Field::hex("Surface Object Control State", 1, 6, 0),
        Field::address("Binding Table Pool Base Address", 1, 12),
        Field::base("Binding Table Pool Buffer Size", 3, 12)
    ];
    // PIPE_CONTROL
    0x7a00 6: [
        CONTROL_PREDICATE,
        Field::flag("HDC Pipeline Flush", 0, 9),
        Field::flag("L3 Read Only Cache Invalidate", 0, 10),
        Field::flag("Untyped Data-Port Cache Flush", 0, 11),
        Field::flag("CCS Flush", 0, 13),
        CONTROL_PARTITION,
        Field::flag("Depth Cache Flush Enable", 1, 0),
        Field::flag("Stall At Pixel Scoreboard", 1, 1),
        Field::flag("State Cache Invalidation Enable", 1, 2),
        Field::flag("Constant Cache Invalidation Enable", 1, 3),
        Field::flag("VF Cache Invalidation Enable", 1, 4),
        Field::flag("DC Flush Enable", 1, 5),
        Field::flag("Protected Memory Application ID", 1, 6),
        Field::flag("Pipe Control Flush Enable", 1, 7),
        CONTROL_NOTIFY,
        Field::flag("Indirect State Pointers Disable", 1, 9),
        Field::flag("Texture Cache Invalidation Enable", 1, 10),
        Field::flag("Instruction Cache Invalidate Enable", 1, 11),
        Field::flag("Render Target Cache Flush Enable", 1, 12),
        Field::flag("Depth Stall Enable", 1, 13),
        CONTROL_OPERATION,
        Field::flag("Generic Media State Clear", 1, 16),
        Field::flag("PSS Stall Sync Enable", 1, 17),
        CONTROL_TLB,
        Field::flag("Depth Stall Sync Enable", 1, 19),
        Field::flag("Command Streamer Stall Enable", 1, 20),
        CONTROL_INDEX,
        Field::flag("Protected Memory Enable", 1, 22),
        CONTROL_MMIO,
        CONTROL_GLOBAL,
        Field::flag("AMFS Flush Enable", 1, 25),
        Field::flag("Flush LLC", 1, 26),
        Field::flag("Protected Memory Disable", 1, 27),
        Field::flag("Tile Cache Flush Enable", 1, 28),
        Field::flag("Command Cache Invalidate Enable", 1, 29),
        Field::flag("L3 Fabric Flush", 1, 30),
        Field::flag("TBIMR Force Batch Closure", 1, 31),
        Field::address_or_register("Address", 2, 2, (1, 23)),
        Field::qword("Immediate Data", 4)
    ];
    // L3_CONTROL; ranges of addresses to flush follow
    0x7d80 5: [
        Field::flag("Depth Cache Flush", 0, 8),
        Field::flag("Render Target Cache Flush Enable", 0, 9),
        Field::flag("HDC Pipeline Flush", 0, 10),
        Field::flag("Untyped Data-Port Cache Flush", 0, 13),
        L3_OPERATION,
        Field::flag("Command Streamer Stall Enable", 0, 20),
        L3_GLOBAL,
        Field::address("Address", 1, 3),
        Field::qword("Immediate Data", 3)
    ];
}
