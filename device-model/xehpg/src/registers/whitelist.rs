// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registers that non-privileged batches may access: the documented whitelists (V8-175..185), and the offsets of the
//! slots by which a driver extends them (V8-186).

use crate::topology::{EngineClass, EngineInfo, TRTT_REGISTERS, trtt};

/// First offset and number of dwords.
pub type Dwords = (u32, u32);

/// Registers on a whitelist.
pub struct Given {
    /// Offsets from the engine's base.
    pub own: &'static [Dwords],
    /// Absolute offsets, identical for all engines of the class.
    pub absolute: &'static [Dwords],
}

/// A register that batches may read and write while a bit of another register of the same engine is set. Offsets are
/// from the engine's base.
pub struct Controlled {
    /// Class of the engines that have the register.
    pub class: EngineClass,
    /// The register.
    pub register: u32,
    /// The register with the bit, which only drivers write.
    pub control: u32,
    /// The bit, as a mask.
    pub bit: u32,
}

/// Whitelists of a generation.
pub struct Whitelists {
    /// Registers that batches on every engine may write, and therefore read.
    pub write: Given,
    /// Additional registers that batches may write, by class.
    pub write_by_class: fn(EngineClass) -> Given,
    /// Registers that batches on every engine may read but not write.
    pub read: Given,
    /// Additional registers that batches may read but not write, by class: absolute offsets.
    pub read_by_class: fn(EngineClass) -> &'static [Dwords],
    /// Registers that batches may access if the driver permits it.
    pub controlled: &'static [Controlled],
    /// Number of whitelisted dwords in the HEVC block of a video decoder.
    pub hevc_dwords: u32,
    /// FORCE_TO_NONPRIV slots, relative to the engine's base, in order.
    pub slots: &'static [Dwords],
    /// Registers that only the PF's driver may write, regardless of whitelists and slots.
    pub kernel_only: &'static [u32],
}

/// The whitelists of Xe-HPG.
pub static XE_HPG_WHITELISTS: Whitelists = Whitelists {
    write: WRITE,
    write_by_class: write,
    read: READ,
    read_by_class: read,
    // CS_CHICKEN1, the context's preemption control, while FF_SLICE_CS_CHICKEN1 selects control per context (i915:
    // engine_fake_wa_init, FtrPerCtxtPreemptionGranularityControl; IGT: gem_ctx_isolation). No document describes it.
    controlled: &[Controlled { class: EngineClass::Render, register: 0x580, control: 0x0e0, bit: 1 << 14 }],
    // V8-184.
    hevc_dwords: 64,
    // Slots 0-11, 12-15, 16-19 (V8-186, trap T22).
    slots: &[(0x4d0, 12), (0x010, 4), (0x1d0, 4)],
    // OACONTROL (V13-052, trap 7 of V13).
    kernel_only: &[0x2b00],
};

/// Registers that batches on every engine may write, and therefore read (V8-181..184).
const WRITE: Given = Given {
    own: &[(0x094, 1), (0x0c0, 1), (0x178, 2), (0x1fc, 1), (0x21c, 1), (0x3b4, 2), (0x3bc, 1), (0x41c, 1), (0x600, 32)],
    absolute: &[],
};

/// Command buffer, BB_OFFSET, threads dispatched, observation, predicates and dispatch dimensions: registers that
/// render and compute engines have at the same offset from their base.
const PIPELINE: &[Dwords] = &[(0x084, 1), (0x158, 1), (0x290, 2), (0x360, 2), (0x400, 7), (0x500, 3)];

/// Additional registers that batches may write, by class. The PRM lists absolute offsets for the render and copy
/// engines, and offsets from the engine's base for the other engines (trap T20).
const fn write(class: EngineClass) -> Given {
    match class {
        // V8-181.
        EngineClass::Render => Given {
            own: PIPELINE,
            absolute: &[
                (0x7000, 3),
                (0x7038, 1),
                (0x7040, 1),
                (0x2300, 22),
                (0x5200, 8),
                (0x5240, 8),
                (0x5280, 4),
                (0x22c8, 2),
                (0x22d8, 2),
                (0x22f0, 4),
                (0x2420, 1),
                (0x2430, 5),
                (0x2448, 14),
                (0x24a0, 4),
                (0x25b0, 4),
                (0x25d0, 4),
                (0x2690, 3),
                (0x26d8, 8),
                (0x2960, 1),
                (0x2968, 1),
                (0x2aa0, 1),
                (0xb100, 1),
                (0xb118, 1),
                (0xb134, 2),
                (0xb158, 2),
                (0xe518, 1),
                (0x1_7520, 1),
            ],
        },
        // V8-182.
        EngineClass::Compute => Given { own: PIPELINE, absolute: &[(0x1_5114, 1), (0x1_511c, 1), (0x1_51e0, 1)] },
        // V8-183.
        EngineClass::Copy => Given { own: &[(0x200, 2)], absolute: &[] },
        // V8-184: MFC. The HEVC block is separate.
        EngineClass::VideoDecode => Given { own: &[(0x800, 512)], absolute: &[] },
        EngineClass::VideoEnhance => Given { own: &[], absolute: &[] },
    }
}

/// Registers that batches on every engine may read but not write (V8-176), including rows that the lists of all classes
/// repeat (V8-177..180).
const READ: Given = Given {
    own: &[(0x08c, 1), (0x358, 2), (0x3a8, 1)],
    absolute: &[
        (0x0d00, 1),
        (0x2700, 64),
        (0x2b00, 320),
        (0xa01c, 1),
        (0xa058, 1),
        (0xa064, 3),
        (0xa288, 2),
        (0xa538, 2),
        (0xd900, 192),
        (0x13_8108, 2),
        (0x14_5040, 7),
        (0x14_5828, 13),
        (0x14_5928, 24),
    ],
};

/// Registers that batches may read but not write, by class (V8-177..180).
const fn read(class: EngineClass) -> &'static [Dwords] {
    match class {
        // Includes the second register range of the render streamer (V8-006).
        EngineClass::Render => &[(0x2800, 192), (0x1_808c, 1), (0x1_8358, 2)],
        EngineClass::Compute => &[(0x1_5000, 160)],
        EngineClass::Copy | EngineClass::VideoDecode | EngineClass::VideoEnhance => &[(0x91b8, 4)],
    }
}

/// Kind of register access by a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Read the register.
    Read,
    /// Write the register.
    Write,
}

/// Whitelists of one engine, sorted, with absolute offsets.
pub struct Whitelist {
    write: Vec<Dwords>,
    read: Vec<Dwords>,
}

impl Whitelist {
    /// Returns the whitelists of an engine.
    pub fn of(lists: &Whitelists, engine: &EngineInfo) -> Self {
        let given = |given: &Given| {
            let own = given.own.iter().map(|(offset, dwords)| (engine.mmio_base.saturating_add(*offset), *dwords));
            own.chain(given.absolute.iter().copied()).collect::<Vec<_>>()
        };
        let blocks = [
            trtt(engine.class, engine.instance).map(|first| (first, TRTT_REGISTERS)),
            engine.hevc_base().map(|first| (first, lists.hevc_dwords)),
        ];
        let sorted = |mut dwords: Vec<Dwords>| {
            dwords.sort_unstable();
            dwords
        };
        let by_class = (lists.write_by_class)(engine.class);
        Whitelist {
            write: sorted([given(&lists.write), given(&by_class), blocks.into_iter().flatten().collect()].concat()),
            read: sorted([given(&lists.read), (lists.read_by_class)(engine.class).to_vec()].concat()),
        }
    }

    /// Returns whether non-privileged batches may access the register at `offset`. Writable registers are readable
    /// (V8-175).
    pub fn permits(&self, offset: u32, wanted: Wanted) -> bool {
        within(&self.write, offset) || wanted == Wanted::Read && within(&self.read, offset)
    }
}

/// Returns whether one of the sorted, non-overlapping runs contains the dword at `offset`.
fn within(runs: &[Dwords], offset: u32) -> bool {
    let after = runs.partition_point(|(first, _)| *first <= offset);
    let before = after.checked_sub(1).and_then(|last| runs.get(last));
    before.is_some_and(|(first, dwords)| offset.wrapping_sub(*first) < dwords.saturating_mul(4))
}
