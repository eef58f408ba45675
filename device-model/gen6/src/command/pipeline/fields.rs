// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Fields of the commands of the pipelines that help to understand a hung context (i915: gt/intel_gpu_commands.h; Mesa:
//! gen7.xml).

use arctic_base::command::Field;

/// PIPE_CONTROL: a notification is sent.
pub const CONTROL_NOTIFY: Field = Field::flag("Notify Enable", 1, 8);
/// PIPE_CONTROL: the post-sync operation.
pub const CONTROL_OPERATION: Field = Field::choice(
    "Post-Sync Operation",
    1,
    15,
    14,
    &[(0, "none"), (1, "write immediate"), (2, "write PS depth count"), (3, "write timestamp")],
);
/// PIPE_CONTROL: translations are invalidated.
pub const CONTROL_TLB: Field = Field::flag("TLB Invalidate", 1, 18);
/// PIPE_CONTROL: flushes that empty the pipeline: of the caches with data, and the stall of the command streamer.
pub const CONTROL_FLUSHES: [Field; 4] = [
    Field::flag("Depth Cache Flush Enable", 1, 0),
    Field::flag("DC Flush Enable", 1, 5),
    Field::flag("Render Target Cache Flush Enable", 1, 12),
    Field::flag("Command Streamer Stall Enable", 1, 20),
];
/// PIPE_CONTROL: statistics are set to 0.
pub const CONTROL_STATISTICS: Field = Field::flag("Global Snapshot Count Reset", 1, 19);
/// PIPE_CONTROL: the address is an offset in the status page.
pub const CONTROL_INDEX: Field = Field::flag("Store Data Index", 1, 21);
/// PIPE_CONTROL: the data are written to a register.
pub const CONTROL_REGISTER: Field = Field::flag("LRI Post-Sync Operation", 1, 23);
/// PIPE_CONTROL of Ivy Bridge: the address is in the GGTT.
pub const CONTROL_GLOBAL_GEN7: Field =
    Field::choice("Destination Address Type", 1, 24, 24, &[(0, "PPGTT"), (1, "GGTT")]);
/// PIPE_CONTROL of Sandy Bridge: the address is in the GGTT (G67-076).
pub const CONTROL_GLOBAL_GEN6: Field = Field::choice("Destination Address Type", 2, 2, 2, &[(0, "PPGTT"), (1, "GGTT")]);
/// PIPE_CONTROL: the address.
pub const CONTROL_ADDRESS: Field = Field::base("Address", 2, 3);
/// 3DPRIMITIVE of Ivy Bridge: not executed unless MI_PREDICATE's result is set (IVB-151).
pub const DRAW_PREDICATE: Field = Field::flag("Predicate Enable", 0, 8);

/// PIPE_CONTROL's fields with that of the generation for the space.
const fn control(global: Field) -> [Field; 23] {
    [
        CONTROL_FLUSHES[0],
        Field::flag("Stall At Pixel Scoreboard", 1, 1),
        Field::flag("State Cache Invalidation Enable", 1, 2),
        Field::flag("Constant Cache Invalidation Enable", 1, 3),
        Field::flag("VF Cache Invalidation Enable", 1, 4),
        CONTROL_FLUSHES[1],
        Field::flag("Pipe Control Flush Enable", 1, 7),
        CONTROL_NOTIFY,
        Field::flag("Indirect State Pointers Disable", 1, 9),
        Field::flag("Texture Cache Invalidation Enable", 1, 10),
        Field::flag("Instruction Cache Invalidate Enable", 1, 11),
        CONTROL_FLUSHES[2],
        Field::flag("Depth Stall Enable", 1, 13),
        CONTROL_OPERATION,
        Field::flag("Generic Media State Clear", 1, 16),
        CONTROL_TLB,
        CONTROL_STATISTICS,
        CONTROL_FLUSHES[3],
        CONTROL_INDEX,
        CONTROL_REGISTER,
        global,
        CONTROL_ADDRESS,
        Field::qword("Immediate Data", 3),
    ]
}

/// Fields of PIPE_CONTROL of Ivy Bridge.
pub const CONTROL_GEN7: &[Field] = &control(CONTROL_GLOBAL_GEN7);
/// Fields of PIPE_CONTROL of Sandy Bridge.
pub const CONTROL_GEN6: &[Field] = &control(CONTROL_GLOBAL_GEN6);

/// Fields of STATE_BASE_ADDRESS.
pub(super) const BASE_ADDRESS: &[Field] = &[
    Field::flag("General State Base Address Modify Enable", 1, 0),
    Field::base("General State Base Address", 1, 12),
    Field::flag("Surface State Base Address Modify Enable", 2, 0),
    Field::base("Surface State Base Address", 2, 12),
    Field::flag("Dynamic State Base Address Modify Enable", 3, 0),
    Field::base("Dynamic State Base Address", 3, 12),
    Field::flag("Indirect Object Base Address Modify Enable", 4, 0),
    Field::base("Indirect Object Base Address", 4, 12),
    Field::flag("Instruction Base Address Modify Enable", 5, 0),
    Field::base("Instruction Base Address", 5, 12),
    Field::base("General State Access Upper Bound", 6, 12),
    Field::base("Dynamic State Access Upper Bound", 7, 12),
    Field::base("Indirect Object Access Upper Bound", 8, 12),
    Field::base("Instruction Access Upper Bound", 9, 12),
];

/// Fields of PIPELINE_SELECT.
pub(super) const SELECT: &[Field] =
    &[Field::choice("Pipeline Selection", 0, 1, 0, &[(0, "3D"), (1, "media"), (2, "GPGPU")])];

/// Fields of 3DPRIMITIVE of Ivy Bridge.
pub(super) const DRAW: &[Field] = &[
    DRAW_PREDICATE,
    Field::flag("Indirect Parameter Enable", 0, 10),
    Field::value("Primitive Topology Type", 1, 5, 0),
    Field::choice("Vertex Access Type", 1, 8, 8, &[(0, "sequential"), (1, "random")]),
    Field::flag("End Offset Enable", 1, 9),
    Field::value("Vertex Count Per Instance", 2, 31, 0),
    Field::value("Start Vertex Location", 3, 31, 0),
    Field::value("Instance Count", 4, 31, 0),
    Field::value("Start Instance Location", 5, 31, 0),
    Field::signed("Base Vertex Location", 6, 31, 0),
];
