//! Registers that commands may touch, by who gives them (V13-080): the public lists of what batches without privilege may
//! (V8-175..185), the slots that the driver adds (V8-186), and what is a virtual function's.

use std::sync::LazyLock;

use super::id::{EngineClass, EngineId, TRTT_REGISTERS, trtt};
use crate::command::Requester;
use crate::registers::{RegisterFile, Scope};

/// First offset and dwords.
type Range = (u32, u32);

/// What a public list gives to one kind of engines.
struct Given {
    /// Offsets from the engine's base.
    own: &'static [Range],
    /// Offsets that are the same whichever of them asks.
    absolute: &'static [Range],
}

/// What batches may write, and so read, on every engine (V8-181..184).
const WRITE: Given = Given {
    own: &[(0x094, 1), (0x0c0, 1), (0x178, 2), (0x1fc, 1), (0x21c, 1), (0x3b4, 2), (0x3bc, 1), (0x41c, 1), (0x600, 32)],
    absolute: &[],
};

/// Command buffer, BB_OFFSET, threads dispatched, observation, predicates and dispatch dimensions: the registers that both
/// render and compute engines have at the same offset from their base.
const PIPELINE: &[Range] = &[(0x084, 1), (0x158, 1), (0x290, 2), (0x360, 2), (0x400, 7), (0x500, 3)];

/// What batches may write besides, by class. The document prints the rows of the render and copy engines as absolute
/// offsets, those of the others from the engine's base (trap T20).
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
        // V8-184: MFC; the HEVC block is a block of its own.
        EngineClass::VideoDecode => Given { own: &[(0x800, 512)], absolute: &[] },
        EngineClass::VideoEnhance => Given { own: &[], absolute: &[] },
    }
}

/// Dwords of the HEVC block of a video decoder that are on its list (V8-184).
const HEVC_DWORDS: u32 = 64;

/// What batches may read besides, on every engine: V8-176, and what the lists of all classes repeat (V8-177..180).
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

/// What batches may read besides, by class (V8-177..180).
const fn read(class: EngineClass) -> &'static [Range] {
    match class {
        // The second window of the render streamer among them (V8-006).
        EngineClass::Render => &[(0x2800, 192), (0x1_808c, 1), (0x1_8358, 2)],
        EngineClass::Compute => &[(0x1_5000, 160)],
        EngineClass::Copy | EngineClass::VideoDecode | EngineClass::VideoEnhance => &[(0x91b8, 4)],
    }
}

/// The public lists of one engine, in absolute offsets and sorted: what may be written, and what may be read besides.
struct Lists {
    write: Vec<Range>,
    read: Vec<Range>,
}

impl Lists {
    fn of(engine: EngineId) -> Self {
        let info = engine.info();
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

static LISTS: LazyLock<Vec<Lists>> = LazyLock::new(|| EngineId::all().map(Lists::of).collect());

/// Whether one of the sorted ranges holds the dword at `offset`. Ranges do not overlap.
fn within(ranges: &[Range], offset: u32) -> bool {
    let after = ranges.partition_point(|(first, _)| *first <= offset);
    ranges[..after].last().is_some_and(|(first, dwords)| offset - first < dwords * 4)
}

/// What a command wants of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Its value.
    Read,
    /// To change it.
    Write,
}

/// Registers that only the physical function's driver may write, whatever a list or slot says (V13-052, trap 7 of V13):
/// OACONTROL.
const KERNEL_ONLY: [u32; 1] = [0x2b00];

/// Whether the register at `offset` may be touched by commands of `requester` on `engine` (V13-052, V13-080). Users have
/// the public lists and the slots that the driver opens to them. A virtual function has, of whatever else permits it, no
/// more than what is its context's own or the same for everybody; its kernel driver has all of that, and the slots that
/// are opened to it. The physical function's driver has everything.
pub fn permits(registers: &RegisterFile, engine: EngineId, requester: Requester, offset: u32, wanted: Wanted) -> bool {
    if wanted == Wanted::Write && requester != Requester::Kernel && KERNEL_ONLY.contains(&offset) {
        return false;
    }
    let slot = |target| nonprivileged_slot(registers, engine.info().mmio_base, offset, wanted, target);
    match requester {
        Requester::Kernel => true,
        Requester::User => slot(Target::User).unwrap_or_else(|| listed(engine, offset, wanted)),
        Requester::VirtualUser => {
            slot(Target::User).unwrap_or_else(|| listed(engine, offset, wanted))
                && (registers.decode(offset).is_none() || belongs(registers, engine, offset, wanted))
        }
        Requester::VirtualKernel => {
            slot(Target::VirtualKernel).unwrap_or_else(|| belongs(registers, engine, offset, wanted))
        }
    }
}

/// Whether a virtual function's context on `engine` has the register as its own, or may read it as anybody may.
fn belongs(registers: &RegisterFile, engine: EngineId, offset: u32, wanted: Wanted) -> bool {
    let Some(decoded) = registers.decode(offset) else { return false };
    let own = decoded.engine.is_none_or(|at| at == engine);
    match decoded.register.scope {
        Scope::Card => false,
        Scope::Common => wanted == Wanted::Read,
        Scope::Position => own && wanted == Wanted::Read,
        Scope::Power => own,
        scope @ (Scope::Context(_) | Scope::ContextOf(..)) => own && scope.kept_by(engine),
    }
}

/// Whether the public lists let batches without privilege on `engine` touch the register: what may be written may be read
/// (V8-175).
pub(super) fn listed(engine: EngineId, offset: u32, wanted: Wanted) -> bool {
    let Some(lists) = LISTS.get(engine.index()) else { return false };
    within(&lists.write, offset) || wanted == Wanted::Read && within(&lists.read, offset)
}

/// FORCE_TO_NONPRIV slots: 0-11 at 0x4d0, 12-15 at 0x010, 16-19 at 0x1d0 (V8-186, trap T22).
const SLOTS: [Range; 3] = [(0x4d0, 12), (0x010, 4), (0x1d0, 4)];

/// Whom a slot is for (V13-079).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// Batches without privilege.
    User = 0,
    /// Rings and privileged batches of virtual functions.
    VirtualKernel = 1,
}

/// What the driver's slots say: address 25:2, registers 1:0 (1, 4, 16, 64), access 29:28 (both, read, write, none), bit 30
/// forbids that access whatever the lists and other slots say (xe: xe_reg_whitelist.c, whose slots for observation forbid
/// reads of what the lists open). Bit 31 tells whom the slot is for; the place is the model's own, drivers of today leave
/// it clear.
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
