// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registers that commands may access, by requester (V13-080): the documented whitelists for non-privileged batches
//! (V8-175..185), the slots programmed by the driver (V8-186), and the registers accessible to VFs.

use std::sync::LazyLock;

use crate::command::Requester;
use crate::generation::XE_HPG;
use crate::registers::{RegisterFile, Scope};
use crate::topology::{EngineClass, EngineId, EngineInfo, TRTT_REGISTERS, trtt};

/// First offset and number of dwords.
type Range = (u32, u32);

/// Registers on a whitelist.
struct Given {
    /// Offsets from the engine's base.
    own: &'static [Range],
    /// Absolute offsets, identical for all engines of the class.
    absolute: &'static [Range],
}

/// Registers that batches on every engine may write, and therefore read (V8-181..184).
const WRITE: Given = Given {
    own: &[(0x094, 1), (0x0c0, 1), (0x178, 2), (0x1fc, 1), (0x21c, 1), (0x3b4, 2), (0x3bc, 1), (0x41c, 1), (0x600, 32)],
    absolute: &[],
};

/// Command buffer, BB_OFFSET, threads dispatched, observation, predicates and dispatch dimensions: registers that
/// render and compute engines have at the same offset from their base.
const PIPELINE: &[Range] = &[(0x084, 1), (0x158, 1), (0x290, 2), (0x360, 2), (0x400, 7), (0x500, 3)];

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

/// Number of whitelisted dwords in the HEVC block of a video decoder (V8-184).
const HEVC_DWORDS: u32 = 64;

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
const fn read(class: EngineClass) -> &'static [Range] {
    match class {
        // Includes the second register range of the render streamer (V8-006).
        EngineClass::Render => &[(0x2800, 192), (0x1_808c, 1), (0x1_8358, 2)],
        EngineClass::Compute => &[(0x1_5000, 160)],
        EngineClass::Copy | EngineClass::VideoDecode | EngineClass::VideoEnhance => &[(0x91b8, 4)],
    }
}

/// Whitelists of one engine, sorted, with absolute offsets: writable registers and read-only registers.
struct Lists {
    write: Vec<Range>,
    read: Vec<Range>,
}

impl Lists {
    #[allow(clippy::arithmetic_side_effects, reason = "an engine's block lies below 4 MiB")]
    fn of(info: &EngineInfo) -> Self {
        let given = |given: Given| {
            let own = given.own.iter().map(|(offset, dwords)| (info.mmio_base + offset, *dwords));
            own.chain(given.absolute.iter().copied()).collect::<Vec<_>>()
        };
        let blocks = [
            trtt(info.class, info.instance).map(|first| (first, TRTT_REGISTERS)),
            info.hevc_base().map(|first| (first, HEVC_DWORDS)),
        ];
        let sorted = |mut ranges: Vec<Range>| {
            ranges.sort_unstable();
            ranges
        };
        Lists {
            write: sorted([given(WRITE), given(write(info.class)), blocks.into_iter().flatten().collect()].concat()),
            read: sorted([given(READ), read(info.class).to_vec()].concat()),
        }
    }
}

static LISTS: LazyLock<Vec<Lists>> = LazyLock::new(|| XE_HPG.engines.list().iter().map(Lists::of).collect());

/// Returns whether one of the sorted, non-overlapping ranges contains the dword at `offset`.
fn within(ranges: &[Range], offset: u32) -> bool {
    let after = ranges.partition_point(|(first, _)| *first <= offset);
    let before = after.checked_sub(1).and_then(|last| ranges.get(last));
    before.is_some_and(|(first, dwords)| offset.wrapping_sub(*first) < dwords.saturating_mul(4))
}

/// Kind of register access by a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Read the register.
    Read,
    /// Write the register.
    Write,
}

/// Registers that only the PF's driver may write, regardless of whitelists and slots (V13-052, trap 7 of V13):
/// OACONTROL.
const KERNEL_ONLY: [u32; 1] = [0x2b00];

/// Returns whether commands of `requester` on `engine` may access the register at `offset` (V13-052, V13-080).
/// Non-privileged batches may access the whitelisted registers and the slots programmed for them. A non-privileged
/// batch of a VF is further limited to the registers of its context and registers common to all functions. The VF's
/// driver may access all of these and the slots programmed for it. The PF's driver has full access.
pub fn permits(registers: &RegisterFile, engine: EngineId, requester: Requester, offset: u32, wanted: Wanted) -> bool {
    if wanted == Wanted::Write && requester != Requester::PfKernel && KERNEL_ONLY.contains(&offset) {
        return false;
    }
    let slot =
        |target| nonprivileged_slot(registers, registers.engines().info(engine).mmio_base, offset, wanted, target);
    match requester {
        Requester::PfKernel => true,
        Requester::PfUser => slot(Target::User).unwrap_or_else(|| listed(engine, offset, wanted)),
        Requester::VfUser => {
            slot(Target::User).unwrap_or_else(|| listed(engine, offset, wanted))
                && (registers.decode(offset).is_none() || belongs(registers, engine, offset, wanted))
        }
        Requester::VfKernel => {
            slot(Target::VirtualKernel).unwrap_or_else(|| belongs(registers, engine, offset, wanted))
        }
    }
}

/// Returns whether the register is state of a VF's context on `engine` or is accessible to all functions.
fn belongs(registers: &RegisterFile, engine: EngineId, offset: u32, wanted: Wanted) -> bool {
    let Some(decoded) = registers.decode(offset) else { return false };
    let own = decoded.engine.is_none_or(|at| at == engine);
    match decoded.register.scope {
        Scope::Card => false,
        Scope::Common => wanted == Wanted::Read,
        Scope::Position => own && wanted == Wanted::Read,
        Scope::Power => own,
        scope @ (Scope::Context(_) | Scope::ContextOf(..)) => own && scope.kept_by(registers.engines().info(engine)),
    }
}

/// Returns whether the documented whitelists permit the access for non-privileged batches on `engine`. Writable
/// registers are readable (V8-175).
pub(super) fn listed(engine: EngineId, offset: u32, wanted: Wanted) -> bool {
    let Some(lists) = LISTS.get(engine.index()) else { return false };
    within(&lists.write, offset) || wanted == Wanted::Read && within(&lists.read, offset)
}

/// FORCE_TO_NONPRIV slots: 0-11 at 0x4d0, 12-15 at 0x010, 16-19 at 0x1d0 (V8-186, trap T22).
const SLOTS: [Range; 3] = [(0x4d0, 12), (0x010, 4), (0x1d0, 4)];

/// Requesters that a slot applies to (V13-079).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// Non-privileged batches.
    User = 0,
    /// Rings and privileged batches of VFs.
    VirtualKernel = 1,
}

/// Evaluates the driver's slots: address 25:2, number of registers 1:0 (1, 4, 16, 64), access 29:28 (both, read, write,
/// none). Bit 30 denies that access regardless of whitelists and other slots. xe uses it to deny reads of observation
/// registers that the whitelists permit (xe: xe_reg_whitelist.c). Bit 31 selects the target. Its position is specific
/// to this model, and current drivers leave it clear. Returns `None` if no slot applies.
#[allow(
    clippy::arithmetic_side_effects,
    reason = "an engine's block lies below 4 MiB, and a range has at least 4 bytes"
)]
fn nonprivileged_slot(
    registers: &RegisterFile,
    base: u32,
    offset: u32,
    wanted: Wanted,
    target: Target,
) -> Option<bool> {
    let mut permitted = None;
    for at in SLOTS.iter().flat_map(|(first, slots)| (0..*slots).map(move |n| base + first + n * 4)) {
        let slot = registers.value(at);
        let bytes = 4u32 << (2 * (slot & 3));
        let address = slot & 0x03ff_fffc;
        if address == 0 || slot >> 31 != target as u32 || offset & !(bytes - 1) != address & !(bytes - 1) {
            continue;
        }
        let access = slot >> 28 & 3;
        if !matches!((access, wanted), (0, _) | (1, Wanted::Read) | (2, Wanted::Write)) {
            continue;
        }
        if slot & 1 << 30 != 0 {
            return Some(false);
        }
        permitted = Some(true);
    }
    permitted
}
