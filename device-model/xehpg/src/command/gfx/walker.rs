// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Fields of COMPUTE_WALKER, with the interface descriptor, the post-sync operation and the inline data inside it (EU-020,
//! EU-021, EU-025; compute-runtime: hw_cmds_generated_xe_hpg_core.inl; Mesa: gen125.xml).

use arctic_base::command::Field;

/// Length in dwords.
pub const DWORDS: usize = 39;
/// Header of a command without flags.
pub const HEADER: u32 = 0x7208_0025;

/// The walker is skipped while MI_PREDICATE_RESULT is clear.
pub const PREDICATE: Field = Field::flag("Predicate Enable", 0, 8);
/// The numbers of groups come from registers (EU-027).
pub const INDIRECT: Field = Field::flag("Indirect Parameter Enable", 0, 10);
/// The walker is resumed at the group in [`RESUME`] (EU-070).
pub const VARIANT: Field = Field::choice("CFE SubOpcode Variant", 0, 17, 16, &[(0, "standard"), (1, "resume")]);
/// Offset of the indirect data from the general state base.
pub const INDIRECT_DATA: Field = Field::base("Indirect Data Start Address", 3, 6);
/// Lanes of a thread.
pub const SIMD: Field = Field::choice("SIMD Size", 4, 31, 30, &[(0, "SIMD8"), (1, "SIMD16"), (2, "SIMD32")]);
/// Hardware writes local ids.
pub const LOCAL_IDS: Field = Field::flag("Generate Local ID", 4, 29);
/// Dimensions of which the ids are in the payload.
pub const EMIT_IDS: Field = Field::choice("Emit Local", 4, 28, 26, &[(0, "none"), (1, "X"), (3, "XY"), (7, "XYZ")]);
/// A register of inline data follows the ids.
pub const EMIT_INLINE: Field = Field::flag("Emit Inline Parameter", 4, 25);
/// Order of the dimensions of local ids, the innermost first (EU-033).
pub const ID_ORDER: Field =
    Field::choice("Walk Order", 4, 24, 22, &[(0, "XYZ"), (1, "XZY"), (2, "YXZ"), (3, "ZXY"), (4, "YZX"), (5, "ZYX")]);
/// Order of local ids in tiles.
pub const TILE_LAYOUT: Field = Field::choice(
    "Tile Layout",
    4,
    21,
    19,
    &[(0, "linear"), (1, "TileY 32bpe"), (2, "TileY 64bpe"), (3, "TileY 128bpe")],
);
/// Order of thread groups.
pub const GROUP_ORDER: Field = Field::choice("Dispatch Walk Order", 4, 6, 5, &[(0, "linear"), (1, "Y first")]);
/// Lanes of the last thread of each group (EU-034).
pub const LAST_MASK: Field = Field::data("Execution Mask", 5);
/// Work items of a group in each dimension, less 1.
pub const LOCAL_SIZE: [Field; 3] = [
    Field::value("Local X Maximum", 6, 9, 0),
    Field::value("Local Y Maximum", 6, 19, 10),
    Field::value("Local Z Maximum", 6, 29, 20),
];
/// End of the range of groups in each dimension (EU-022).
pub const GROUPS_END: [Field; 3] = [
    Field::value("Thread Group ID X Dimension", 7, 31, 0),
    Field::value("Thread Group ID Y Dimension", 8, 31, 0),
    Field::value("Thread Group ID Z Dimension", 9, 31, 0),
];
/// Start of the range of groups in each dimension.
pub const GROUPS_START: [Field; 3] = [
    Field::value("Thread Group ID Starting X", 10, 31, 0),
    Field::value("Thread Group ID Starting Y", 11, 31, 0),
    Field::value("Thread Group ID Starting Z", 12, 31, 0),
];
/// Parts of a walker for tiles of a card; this card has one. Saved images have the ticket of a parked walker here.
pub const PARTITION: [Field; 2] = [Field::data("Partition ID", 13), Field::data("Partition Size", 14)];
/// The group at which a walker is resumed.
pub const RESUME: [Field; 3] =
    [Field::value("Preempt X", 15, 31, 0), Field::value("Preempt Y", 16, 31, 0), Field::value("Preempt Z", 17, 31, 0)];
/// Offset of the kernel from the instruction base.
pub const KERNEL: Field = Field::base("Kernel Start Pointer", 18, 6);
/// Software exceptions are enabled.
pub const SOFTWARE_EXCEPTIONS: Field = Field::flag("Software Exception Enable", 20, 7);
/// Mask stack exceptions are enabled.
pub const MASK_STACK_EXCEPTIONS: Field = Field::flag("Mask Stack Exception Enable", 20, 11);
/// Illegal opcode exceptions are enabled.
pub const ILLEGAL_EXCEPTIONS: Field = Field::flag("Illegal Opcode Exception Enable", 20, 13);
/// Floats in the alternative mode.
pub const ALTERNATIVE_FLOATS: Field = Field::flag("Floating Point Mode", 20, 16);
/// All channels follow the first one.
pub const SINGLE_FLOW: Field = Field::flag("Single Program Flow", 20, 18);
/// Floats keep denormals until the kernel says otherwise.
pub const DENORMALS: Field = Field::choice("Denorm Mode", 20, 19, 19, &[(0, "flush"), (1, "by kernel")]);
/// Offset of the sampler states from the dynamic state base.
pub const SAMPLERS: Field = Field::base("Sampler State Pointer", 21, 5);
/// Offset of the binding table from its pool.
pub const BINDING_TABLE: Field = Field::offset("Binding Table Pointer", 22, 20, 5);
/// Threads of a group.
pub const THREADS: Field = Field::value("Number of Threads in GPGPU Thread Group", 23, 9, 0);
/// Shared local memory of a group (EU-050).
pub const SLM: Field = Field::choice(
    "Shared Local Memory Size",
    23,
    20,
    16,
    &[(0, "0K"), (1, "1K"), (2, "2K"), (3, "4K"), (4, "8K"), (5, "16K"), (6, "32K"), (7, "64K")],
);
/// Rounding of floats at the start of a thread.
pub const ROUNDING: Field =
    Field::choice("Rounding Mode", 23, 23, 22, &[(0, "nearest even"), (1, "up"), (2, "down"), (3, "zero")]);
/// Barriers of a group.
pub const BARRIERS: Field = Field::value("Number of Barriers", 23, 30, 28);
/// Post-sync operation (EU-025).
pub const OPERATION: Field =
    Field::choice("Post Sync Operation", 26, 1, 0, &[(0, "none"), (1, "write immediate"), (3, "write timestamp")]);
/// Address of the post-sync operation.
pub const ADDRESS: Field = Field::address("Post Sync Address", 27, 3);
/// Value of the post-sync operation.
pub const IMMEDIATE: Field = Field::qword("Post Sync Immediate Data", 29);
/// First dword of the inline data.
pub const INLINE: usize = 31;

/// All fields.
pub(super) const FIELDS: [Field; 61] = [
    PREDICATE,
    Field::flag("Workload Partition Enable", 0, 9),
    INDIRECT,
    Field::flag("Systolic Mode Enable", 0, 14),
    Field::hex("Debug Object ID", 1, 31, 8),
    Field::value("Indirect Data Length", 2, 16, 0),
    INDIRECT_DATA,
    SIMD,
    LOCAL_IDS,
    EMIT_IDS,
    EMIT_INLINE,
    ID_ORDER,
    TILE_LAYOUT,
    Field::value("Message SIMD", 4, 18, 17),
    GROUP_ORDER,
    LAST_MASK,
    LOCAL_SIZE[0],
    LOCAL_SIZE[1],
    LOCAL_SIZE[2],
    GROUPS_END[0],
    GROUPS_END[1],
    GROUPS_END[2],
    GROUPS_START[0],
    GROUPS_START[1],
    GROUPS_START[2],
    PARTITION[0],
    PARTITION[1],
    RESUME[0],
    RESUME[1],
    RESUME[2],
    KERNEL,
    SOFTWARE_EXCEPTIONS,
    MASK_STACK_EXCEPTIONS,
    ILLEGAL_EXCEPTIONS,
    ALTERNATIVE_FLOATS,
    SINGLE_FLOW,
    DENORMALS,
    Field::flag("Thread Preemption Disable", 20, 20),
    Field::value("Sampler Count", 21, 4, 2),
    SAMPLERS,
    Field::value("Binding Table Entry Count", 22, 4, 0),
    BINDING_TABLE,
    THREADS,
    SLM,
    Field::flag("Barrier Enable", 23, 21),
    ROUNDING,
    Field::value("Thread Group Dispatch Size", 23, 27, 26),
    BARRIERS,
    Field::flag("BTD Mode", 23, 31),
    Field::value("Preferred SLM Allocation Size", 24, 3, 0),
    OPERATION,
    Field::flag("Dataport Pipeline Flush", 26, 2),
    Field::flag("L3 Flush", 26, 3),
    Field::hex("Post Sync MOCS", 26, 10, 4),
    Field::flag("Dataport Subslice Cache Flush", 26, 12),
    ADDRESS,
    IMMEDIATE,
    Field::qword("Inline Data 0", 31),
    Field::qword("Inline Data 1", 33),
    Field::qword("Inline Data 2", 35),
    Field::qword("Inline Data 3", 37),
];
