// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registers that commands may access, by requester (V13-080): the whitelists for non-privileged batches (V8-175..185),
//! the slots programmed by the driver (V8-186), and the registers accessible to VFs.

use crate::command::Requester;
use crate::registers::engine_fields::NonprivSlot;
pub use crate::registers::whitelist::Wanted;
use crate::registers::{RegisterFile, Scope};
use crate::topology::EngineId;

/// Returns whether commands of `requester` on `engine` may access the register at `offset` (V13-052, V13-080).
/// Non-privileged batches may access the whitelisted registers and the slots programmed for them. A non-privileged
/// batch of a VF is further limited to the registers of its context and registers common to all functions. The VF's
/// driver may access all of these and the slots programmed for it. The PF's driver has full access.
pub fn permits(registers: &RegisterFile, engine: EngineId, requester: Requester, offset: u32, wanted: Wanted) -> bool {
    if wanted == Wanted::Write
        && requester != Requester::PfKernel
        && registers.tables().whitelists.kernel_only.contains(&offset)
    {
        return false;
    }
    let slot = |target| nonprivileged_slot(registers, engine, offset, wanted, target);
    let listed = || registers.whitelist(engine).permits(offset, wanted) || controlled(registers, engine, offset);
    match requester {
        Requester::PfKernel => true,
        Requester::PfUser => slot(Target::User).unwrap_or_else(listed),
        Requester::VfUser => {
            slot(Target::User).unwrap_or_else(listed)
                && (registers.decode(offset).is_none() || belongs(registers, engine, offset, wanted))
        }
        Requester::VfKernel => {
            slot(Target::VirtualKernel).unwrap_or_else(|| belongs(registers, engine, offset, wanted))
        }
    }
}

/// Returns whether batches may access the register because the driver has set the bit that permits it.
fn controlled(registers: &RegisterFile, engine: EngineId, offset: u32) -> bool {
    let class = registers.engines().info(engine).class;
    let own = registers.engine(engine);
    let mut rows = registers.tables().whitelists.controlled.iter().filter(|row| row.class == class);
    rows.any(|row| own.own(offset) == row.register && own.get(row.control) & row.bit != 0)
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

/// Requesters that a slot applies to (V13-079).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// Non-privileged batches.
    User,
    /// Rings and privileged batches of VFs.
    VirtualKernel,
}

/// Evaluates the driver's slots. A slot that denies its access does so regardless of whitelists and other slots. xe uses
/// it to deny reads of observation registers that the whitelists permit (xe: xe_reg_whitelist.c). Current drivers leave
/// the bit that selects the target clear. Returns `None` if no slot applies.
#[allow(clippy::arithmetic_side_effects, reason = "slots lie in an engine's block, and a range has at least 4 bytes")]
fn nonprivileged_slot(
    registers: &RegisterFile,
    engine: EngineId,
    offset: u32,
    wanted: Wanted,
    target: Target,
) -> Option<bool> {
    let mut permitted = None;
    let own = registers.engine(engine);
    let slots = registers.tables().whitelists.slots;
    for at in slots.iter().flat_map(|(first, count)| (0..*count).map(move |n| first + n * 4)) {
        let slot = NonprivSlot::from(own.get(at));
        let bytes = 4u32 << (2 * slot.range());
        let (address, of) =
            (slot.dword() << 2, if slot.virtual_kernel() { Target::VirtualKernel } else { Target::User });
        if address == 0 || of != target || offset & !(bytes - 1) != address & !(bytes - 1) {
            continue;
        }
        if !matches!((slot.access(), wanted), (0, _) | (1, Wanted::Read) | (2, Wanted::Write)) {
            continue;
        }
        if slot.deny() {
            return Some(false);
        }
        permitted = Some(true);
    }
    permitted
}
