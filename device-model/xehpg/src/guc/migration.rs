// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Saving and restoring a VF for its PF driver, and the fix-up by the VF's driver that follows a restore (xe:
//! abi/guc_actions_sriov_abi.h, xe_gt_sriov_pf_migration.c, xe_gt_sriov_vf.c).
//!
//! After the PF driver has restored a VF, RESUME does not let it run: SW_INT_0 notifies its driver, which stops its queues, sends
//! RESFIX_START with a marker, asks for its GGTT range again, adapts the addresses in its memory, and sends RESFIX_DONE with the
//! marker. What the GuC has itself (places of CT buffers and of the memory-based interrupt, descriptors of contexts, work queues)
//! has moved with the restore, because saved state has offsets in the GGTT range. A VF that is paused, saved and restored in
//! the middle begins again: the marker is not saved.

use crate::guc::Step;
use crate::guc::functions::client::{FixUp, State};
use crate::guc::messages::hxg::{self, Answer, Error, Reply, Request, global_address, reply_header};
use crate::guc::notices::{self, Notice};
use crate::guc::saved::{MOST_BYTES, SaveScope, SavedFunction, Unit, VfUnits, most_bytes};
use crate::guc::scheduler::GucCtx;
use crate::guc::state::GucState;
use crate::host::{Function, functions};
use crate::memory::Space;
use crate::state::format::{self, Kind};
use crate::state::{RestoreError, SaveError};

/// Operations of SAVE_RESTORE_VF, in the header of the request.
const SAVE: u32 = 0;
const RESTORE: u32 = 1;
/// Bits of the size that must be 0.
const SIZE_RESERVED: u32 = 0xf000_0000;

/// Prepares a VF to be saved or restored: serves doorbell rings that have not been served, adds messages to the channels of their
/// functions, and waits for the end of steps that use the VF's memory.
pub fn settle(guc: &mut GucState, ctx: &mut GucCtx<'_>, vf: Function) {
    guc.serve_doorbells(ctx);
    guc.post(ctx);
    ctx.units.end_steps_of(vf.bit(), &ctx.gt.memory);
}

fn units_of<'g, 't: 'g>(guc: &'g mut GucState, ctx: &mut GucCtx<'t>, vf: Function) -> VfUnits<'g> {
    settle(guc, ctx, vf);
    VfUnits { gt: ctx.gt, guc: Unit { guc, doorbells: &ctx.gt.doorbells, function: vf } }
}

/// PF2GUC_SAVE_RESTORE_VF: VF number, GGTT address of the buffer, size of the buffer in dwords. The operation is in the header.
/// Replies with the number of dwords that were used; a save without a buffer, with the number that it needs.
///
/// The state of a VF that runs changes, so its size is an upper bound. A restore that is refused for any reason leaves the paused
/// VF empty, as after a VF_RESET (MIG-025), and the reason is logged; a VF that is not paused, or not provisioned, does not change.
pub fn save_restore(guc: &mut GucState, ctx: &mut GucCtx<'_>, request: Request<'_>) -> Reply {
    let [vf, low, high, dwords] = request.all()?;
    let vf = Function::vf(vf).ok_or(Error::InvalidVf)?;
    if !guc.of(vf).config.provisioned() {
        return Err(Error::UnprovisionedVf);
    }
    let is_paused = guc.of(vf).state == State::Paused { notified: true } && !ctx.gt.memory.is_emptying(vf);
    let buffer = buffer_of(low, high, dwords);
    match request.header.data0() {
        SAVE => {
            let (address, bytes) = buffer?;
            let is_query = (address, bytes) == (0, 0);
            if !is_paused {
                return if is_query { Ok(dwords_of(most_bytes(guc.of(vf))).into()) } else { Err(Error::InvalidState) };
            }
            let saved = saved_bytes(guc, ctx, vf)?;
            if !is_query {
                if saved.len() > bytes {
                    return Err(Error::InvalidSize);
                }
                ctx.own().write(Space::Ggtt, address, &saved).map_err(|_| Error::InvalidGgttAddress)?;
            }
            Ok(dwords_of(saved.len()).into())
        }
        RESTORE if !is_paused => Err(Error::InvalidState),
        RESTORE => restore(guc, ctx, vf, buffer),
        _ => Err(Error::InvalidParams),
    }
}

/// Address and size in bytes of the buffer of a request.
fn buffer_of(low: u32, high: u32, dwords: u32) -> Result<(u64, usize), Error> {
    let address = global_address(low, high)?;
    if dwords & SIZE_RESERVED != 0 {
        return Err(Error::InvalidParams);
    }
    Ok((address, usize::try_from(dwords).unwrap_or(usize::MAX).saturating_mul(4)))
}

fn dwords_of(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(4)).unwrap_or(u32::MAX)
}

/// The saved state of a VF but that of its memory, which its PF driver transfers.
fn saved_bytes(guc: &mut GucState, ctx: &mut GucCtx<'_>, vf: Function) -> Result<Vec<u8>, Error> {
    let saved = units_of(guc, ctx, vf).save(SaveScope::WithoutMemory);
    let bytes = saved.map(|saved| saved.to_bytes()).map_err(|error| {
        guc.complain(vf, format_args!("cannot be saved: {error}"));
        match error {
            SaveError::OutsideRange { .. } => Error::InvalidGgttAddress,
            _ => Error::InvalidState,
        }
    })?;
    debug_assert!(bytes.len() <= MOST_BYTES, "the sections have limits of which the sum fits");
    Ok(bytes)
}

/// Restores a paused VF from the document at the begin of a buffer. Replies with the dwords of the document.
fn restore(guc: &mut GucState, ctx: &mut GucCtx<'_>, vf: Function, buffer: Result<(u64, usize), Error>) -> Reply {
    const SCOPE: SaveScope = SaveScope::WithoutMemory;
    let bytes = match buffer.and_then(|buffer| contents_of(ctx, buffer)) {
        Ok(bytes) => bytes,
        Err(error) => {
            units_of(guc, ctx, vf).empty(SCOPE).map_err(|_| Error::InvalidState)?;
            return Err(error);
        }
    };
    let (saved, length) = match function_in(&bytes) {
        Ok((saved, length)) => (Ok(saved), length),
        Err(error) => (Err(error), 0),
    };
    let restored = units_of(guc, ctx, vf).restore(saved.as_ref().map_err(Clone::clone), SCOPE);
    restored.map(|()| dwords_of(length).into()).map_err(|error| {
        guc.complain(vf, format_args!("cannot be restored: {error}"));
        Error::InvalidParams
    })
}

fn contents_of(ctx: &mut GucCtx<'_>, (address, bytes): (u64, usize)) -> Result<Vec<u8>, Error> {
    if bytes == 0 || bytes > MOST_BYTES {
        return Err(Error::InvalidSize);
    }
    let mut contents = vec![0; bytes];
    ctx.own().read(Space::Ggtt, address, &mut contents).map_err(|_| Error::InvalidGgttAddress)?;
    Ok(contents)
}

/// The function of the document at the begin of a buffer, and the bytes of the document.
fn function_in(buffer: &[u8]) -> Result<(SavedFunction, usize), RestoreError> {
    let length = usize::try_from(format::length_of(buffer, Kind::XeHpgFunction)?).unwrap_or(usize::MAX);
    let saved = SavedFunction::from_bytes(buffer.get(..length).unwrap_or(buffer))?;
    Ok((saved, length))
}

/// Returns whether the driver of a VF that is resumed has addresses to adapt. One that has set up no CT buffers, or that is
/// still probing, asks for its GGTT range in any case.
pub fn needs_fix_up(guc: &GucState, vf: Function) -> bool {
    let of = &guc.scheduler.functions[vf];
    of.fix_up != FixUp::Done && of.client.channel.is_some() && of.client.interrupt.configured()
}

/// Writes SW_INT_0 for a VF that was moved, before the reply to RESUME: its driver checks the byte as soon as its processors run
/// (xe: xe_gt_sriov_vf_recovery_pending). If its client does not answer, it is written in a later step.
pub fn signal_move(guc: &mut GucState, ctx: &mut GucCtx<'_>, vf: Function) {
    guc.unsignalled &= !vf.bit();
    // A driver that has begun knows it.
    if guc.of(vf).fix_up != FixUp::Due {
        return;
    }
    let interrupt = guc.of(vf).client.interrupt;
    if interrupt.write_migrated(&mut ctx.gam(vf)) {
        guc.raised |= vf.bit();
    } else if ctx.views.of(vf).may_wait_for_client() {
        guc.unsignalled |= vf.bit();
    }
}

/// Writes SW_INT_0 for the moved VFs for which it could not be written before.
pub fn signal_moves_again(guc: &mut GucState, ctx: &mut GucCtx<'_>) {
    for vf in functions(guc.unsignalled) {
        if guc.of(vf).state == State::FixUp {
            signal_move(guc, ctx, vf);
        } else {
            guc.unsignalled &= !vf.bit();
        }
    }
}

/// VF2GUC_RESFIX_START: the driver begins to adapt addresses; the marker in the header is not 0. Until RESFIX_DONE, the VF's
/// contexts stay off the engines, and no messages are exchanged.
///
/// A driver that handles SW_INT_0 twice sends it while the VF runs: the reply is sent when the contexts have left the engines.
pub fn start(guc: &mut GucState, ctx: &mut GucCtx<'_>, request: Request<'_>) -> Reply {
    let marker = u16::try_from(request.header.data0()).ok().filter(|marker| *marker != 0);
    let marker = marker.ok_or(Error::InvalidParams)?;
    let vf = ctx.function;
    guc.of(vf).fix_up = FixUp::Begun(marker);
    if guc.of(vf).state == State::Running {
        guc.scheduler.pause(ctx, vf);
        guc.set_state(vf, State::FixUp);
        guc.starting |= vf.bit();
    }
    Ok(Answer::default())
}

/// Replies to the RESFIX_START of VFs whose contexts have left the engines. What they are owed is sent before, as far as there is
/// room: afterwards, their drivers do not expect it. Returns the functions with new messages.
pub fn finish_starts(guc: &mut GucState, ctx: &mut GucCtx<'_>) -> Step {
    let mut step = Step::default();
    for vf in functions(guc.starting) {
        if !guc.scheduler.quiet(vf) {
            continue;
        }
        step.merge(guc.settle_up(ctx, vf).0);
        guc.drop_owed(vf);
        guc.starting &= !vf.bit();
        ctx.gt.set_mailbox_dword(vf, 0, reply_header(Ok(0)));
    }
    step
}

/// VF2GUC_RESFIX_DONE: the driver has adapted the addresses. With another marker than that of the last RESFIX_START, the VF was
/// moved again meanwhile, and the driver begins again.
pub fn done(guc: &mut GucState, ctx: &mut GucCtx<'_>, request: Request<'_>) -> Reply {
    let vf = ctx.function;
    let of = guc.of(vf);
    let FixUp::Begun(marker) = of.fix_up else { return Err(Error::VfMigrated) };
    if of.state != State::FixUp || u32::from(marker) != request.header.data0() || guc.starting & vf.bit() != 0 {
        return Err(Error::VfMigrated);
    }
    guc.of(vf).fix_up = FixUp::Done;
    guc.set_state(vf, State::Running);
    guc.scheduler.resume(ctx, vf);
    guc.pending |= vf.bit();
    guc.unsent |= vf.bit();
    notices::send(ctx, vf, Notice::FixUpDone);
    Ok(Answer::default())
}

/// The header of the reply to a mailbox request, if it is that the reply follows later.
pub fn busy_reply(guc: &GucState, vf: Function) -> Option<u32> {
    (guc.starting & vf.bit() != 0).then(hxg::busy_header)
}
