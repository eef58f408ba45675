// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Actions that a host can request over the CT buffers: code, payload length, permitted senders and handler (contract
//! B.6, G.4).

pub(super) mod builtin_pf;
pub(super) mod control;
pub mod mailbox;
pub mod names;
mod relay;

use arctic_sriov::number::count;

use crate::guc::doorbell::Assignment;
use crate::guc::functions::context::Registration;
use crate::guc::load::ads;
use crate::guc::messages::hxg::{Answer, Error, Outgoing, Reply, Request, TLB_INVALIDATION_DONE, global_address};
use crate::guc::messages::invalidations::Invalidations;
use crate::guc::messages::klv;
use crate::guc::messages::sender::Sender;
use crate::guc::migration;
use crate::guc::scheduler::{GucCtx, Scheduler};
use crate::guc::slpc;
use crate::guc::state::{GucState, Handler};
use crate::host::{ALL_FUNCTIONS, functions};
use crate::memory::Fault;
use crate::trace::EventKind;

/// Number of payload dwords that an action accepts, after the HXG header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// Exactly this many.
    Exact(usize),
    /// Either of two lengths.
    Either(usize, usize),
    /// At least this many; the handler performs further checks.
    AtLeast(usize),
    /// This many, followed by an even number of dwords.
    Pairs(usize),
}

impl Length {
    /// Returns whether a payload of `dwords` dwords is accepted.
    pub fn permits(self, dwords: usize) -> bool {
        match self {
            Length::Exact(n) => dwords == n,
            Length::Either(a, b) => dwords == a || dwords == b,
            Length::AtLeast(n) => dwords >= n,
            Length::Pairs(n) => dwords.checked_sub(n).is_some_and(|rest| rest.is_multiple_of(2)),
        }
    }
}

/// An action.
pub struct Action {
    /// Code in the HXG header.
    pub code: u16,
    /// Name in the drivers' sources.
    pub name: &'static str,
    /// Payload length.
    pub length: Length,
    /// Permitted senders.
    pub sender: Sender,
    /// Executes the action.
    handler: Handler,
}

const fn action(code: u16, name: &'static str, length: Length, sender: Sender, handler: Handler) -> Action {
    Action { code, name, length, sender, handler }
}

const fn absent(code: u16, name: &'static str) -> Action {
    action(code, name, Length::AtLeast(0), Sender::NotSupported, |_, _, _| Err(Error::NotSupported))
}

use Length::{AtLeast, Either, Exact, Pairs};
use Sender::{Any, Physical, Virtual};

/// All CT buffer actions that the GuC recognises, the most frequent ones first.
pub const ACTIONS: &[Action] = &[
    action(0x1000, "SCHED_CONTEXT", Exact(1), Any, submit),
    action(0x7000, "TLB_INVALIDATION", Either(2, 6), Any, invalidate),
    action(0x7002, "TLB_INVALIDATION_ALL", Exact(2), Physical, invalidate_all),
    action(0x1001, "SCHED_CONTEXT_MODE_SET", Exact(2), Any, set_mode),
    action(0x4502, "REGISTER_CONTEXT", Exact(11), Any, register),
    action(0x4601, "REGISTER_CONTEXT_MULTI_LRC", Pairs(12), Any, register_parallel),
    action(0x100b, "UPDATE_CONTEXT_POLICIES", AtLeast(1), Any, set_policies),
    action(0x4503, "DEREGISTER_CONTEXT", Exact(1), Any, deregister),
    action(0x0010, "ALLOCATE_DOORBELL", Exact(5), Any, allocate_doorbell),
    action(0x0020, "DEALLOCATE_DOORBELL", Exact(1), Any, deallocate_doorbell),
    action(0x550e, "OPT_IN_FEATURE_KLV", Exact(3), Any, opt_in),
    action(0x0509, "UPDATE_SCHEDULING_POLICIES_KLV", AtLeast(1), Any, scheduling_policies),
    action(0x0506, "GLOBAL_SCHED_POLICY_CHANGE", Exact(1), Physical, global_policies),
    action(0x3003, "PC_SLPC_REQUEST", AtLeast(1), Physical, |k, t, r| k.slpc_request(t, r.payload)),
    action(0x3004, "SETUP_PC_GUCRC", Exact(1), Physical, |_, t, r| slpc::set_guc_rc(t.gt, r.one()?)),
    action(0x550a, "SET_ENG_UTIL_BUFF", Exact(2), Physical, usage_buffer),
    action(0x550c, "SET_DEVICE_ENGINE_ACTIVITY_BUFFER", Exact(4), Physical, device_activity),
    action(0x550d, "SET_FUNCTION_ENGINE_ACTIVITY_BUFFER", Exact(5), Physical, function_activity),
    action(0x5101, "PF2GUC_RELAY_TO_VF", AtLeast(3), Physical, relay::to_vf),
    action(0x5103, "VF2GUC_RELAY_TO_PF", AtLeast(2), Virtual, relay::to_pf),
    action(0x5502, "PF2GUC_UPDATE_VGT_POLICY", Exact(3), Physical, control::update_policy),
    action(0x5503, "PF2GUC_UPDATE_VF_CFG", Exact(4), Physical, control::update_config),
    action(0x5506, "PF2GUC_VF_CONTROL", Exact(2), Physical, control::control),
    action(0x550b, "PF2GUC_SAVE_RESTORE_VF", Exact(4), Physical, migration::save_restore),
    action(0x0030, "LOG_BUFFER_FILE_FLUSH_COMPLETE", Exact(1), Any, |_, _, _| Ok(Answer::default())),
    action(0x0040, "UK_LOG_ENABLE_LOGGING", Exact(1), Physical, |k, _, r| k.set_log_control(r.one()?)),
    // Log messages are not buffered, so a flush has no effect.
    action(0x0302, "FORCE_LOG_BUFFER_FLUSH", Exact(1), Physical, |_, _, _| Ok(Answer::default())),
    absent(0x4000, "AUTHENTICATE_HUC"),
    absent(0x4602, "REGISTER_CONTEXT_MULTI_QUEUE"),
    absent(0x4603, "MULTI_QUEUE_CONTEXT_CGP_SYNC"),
    absent(0x7003, "PAGE_RECLAMATION"),
    absent(0x6003, "PAGE_FAULT_RES_DESC"),
    // Not available in this firmware version, and not used by the driver (contract D.8).
];

/// Executes a request. Returns `None` if the action is unknown.
pub fn carry_out(guc: &mut GucState, ctx: &mut GucCtx<'_>, request: Request<'_>) -> Option<Reply> {
    let action = ACTIONS.iter().find(|action| action.code == request.header.code())?;
    if let Err(error) = action.sender.check(ctx.function) {
        return Some(Err(error));
    }
    if !action.length.permits(request.payload.len()) {
        return Some(Err(Error::InvalidSize));
    }
    Some((action.handler)(guc, ctx, request))
}

fn bad_address(_: Fault) -> Error {
    Error::InvalidGgttAddress
}

fn submit(guc: &mut GucState, ctx: &mut GucCtx<'_>, request: Request<'_>) -> Reply {
    let id = guc.context_id(ctx.function, request.one()?)?;
    guc.scheduler.submit(ctx, id)
}

fn set_mode(guc: &mut GucState, ctx: &mut GucCtx<'_>, request: Request<'_>) -> Reply {
    let [id, mode] = request.all()?;
    let id = guc.context_id(ctx.function, id)?;
    match mode {
        0 => guc.scheduler.set_mode(ctx, id, false),
        1 => guc.scheduler.set_mode(ctx, id, true),
        _ => Err(Error::InvalidParams),
    }
}

fn set_policies(guc: &mut GucState, ctx: &mut GucCtx<'_>, request: Request<'_>) -> Reply {
    let [id, policies @ ..] = request.payload else { return Err(Error::InvalidSize) };
    let id = guc.context_id(ctx.function, *id)?;
    guc.scheduler.set_policies(id, policies)
}

/// ALLOCATE_DOORBELL of the request's function.
fn allocate_doorbell(guc: &mut GucState, ctx: &mut GucCtx<'_>, request: Request<'_>) -> Reply {
    let Assignment { context, id, page } = Assignment::requested(request.payload)?;
    let context = guc.scheduler.owned(guc.context_id(ctx.function, context)?)?;
    guc.doorbells.allocate(&ctx.gt.doorbells, &guc.scheduler.functions, context, (id, page))
}

/// DEALLOCATE_DOORBELL of the request's function.
fn deallocate_doorbell(guc: &mut GucState, ctx: &mut GucCtx<'_>, request: Request<'_>) -> Reply {
    let [context] = request.all()?;
    let context = guc.scheduler.owned(guc.context_id(ctx.function, context)?)?;
    guc.doorbells.deallocate(&ctx.gt.doorbells, context)
}

/// DEREGISTER_CONTEXT: also releases the context's doorbell.
fn deregister(guc: &mut GucState, ctx: &mut GucCtx<'_>, request: Request<'_>) -> Reply {
    let id = guc.context_id(ctx.function, request.one()?)?;
    let reply = guc.scheduler.deregister(ctx, id)?;
    guc.doorbells.release_context(&ctx.gt.doorbells, id);
    Ok(reply)
}

fn register(guc: &mut GucState, ctx: &mut GucCtx<'_>, request: Request<'_>) -> Reply {
    let &[_, id, class, mask, _, _, _, _, _, ref descriptors @ ..] = request.payload else {
        return Err(Error::InvalidSize);
    };
    let number = guc.context_number(ctx.function, id)?;
    let registration = Registration { number, class, mask, work_queue: (0, 0, 0), descriptors };
    register_as(guc, ctx, id, &registration)
}

fn register_parallel(guc: &mut GucState, ctx: &mut GucCtx<'_>, request: Request<'_>) -> Reply {
    let &[_, id, class, mask, low, high, ring_low, ring_high, bytes, members, ref descriptors @ ..] = request.payload
    else {
        return Err(Error::InvalidSize);
    };
    if members as usize != descriptors.len() / 2 {
        return Err(Error::InvalidSize);
    }
    let work_queue = (global_address(low, high)?, global_address(ring_low, ring_high)?, bytes);
    let number = guc.context_number(ctx.function, id)?;
    let registration = Registration { number, class, mask, work_queue, descriptors };
    register_as(guc, ctx, id, &registration)
}

fn register_as(guc: &mut GucState, ctx: &mut GucCtx<'_>, id: u32, registration: &Registration<'_>) -> Reply {
    let id = guc.context_id(ctx.function, id)?;
    guc.scheduler.register(ctx, id, registration)
}

/// TLB_INVALIDATION: concerns the translations of the requesting function. The GGTT is shared, so if the PF invalidates
/// it, the response also waits for steps that use GGTT pages of VFs. The GGTT is not cached between steps.
fn invalidate(guc: &mut GucState, ctx: &mut GucCtx<'_>, request: Request<'_>) -> Reply {
    /// Bits 7:0 of the operation (xe: XE_GUC_TLB_INVAL_TYPE_SHIFT; contract C.3).
    const TYPE: u32 = 0xff;
    const GGTT: u32 = 3;
    let [seqno, operation, ..] = request.payload else { return Err(Error::InvalidSize) };
    let own = ctx.function.bit();
    let by = || names::of_invalidation(operation & TYPE).into();
    ctx.gt.trace.record(ctx.function, || EventKind::TlbInvalidation { by: by(), all: false });
    let shared = operation & TYPE == GGTT && !ctx.function.is_vf();
    note_invalidation(guc, ctx, *seqno, own, if shared { ALL_FUNCTIONS } else { own });
    Ok(Answer::default())
}

/// Records an invalidation. Its response is sent by [`finish_invalidations`].
fn note_invalidation(guc: &mut GucState, ctx: &GucCtx<'_>, seqno: u32, drop: u64, wait: u64) {
    guc.of(ctx.function).client.invalidations.push(seqno);
    guc.invalidations.add(ctx.function, drop, wait);
}

/// TLB_INVALIDATION_ALL: concerns the translations of all functions. Also re-reads the LMTT, because the second-level
/// translation may have changed (contract D.5).
fn invalidate_all(guc: &mut GucState, ctx: &mut GucCtx<'_>, request: Request<'_>) -> Reply {
    let [seqno, ..] = request.payload else { return Err(Error::InvalidSize) };
    control::second_level::adopt(ctx);
    ctx.gt.trace.record(ctx.function, || EventKind::TlbInvalidation { by: names::INVALIDATION_ALL.into(), all: true });
    note_invalidation(guc, ctx, *seqno, ALL_FUNCTIONS, ALL_FUNCTIONS);
    Ok(Answer::default())
}

/// OPT_IN_FEATURE_KLV: checks the key and value length of each opt-in. Returns the number of applied keys.
fn opt_in(guc: &mut GucState, ctx: &mut GucCtx<'_>, request: Request<'_>) -> Reply {
    const MOST: u32 = 64;
    let [low, high, dwords] = request.all()?;
    let list = klv::read(&mut ctx.own(), (low, high), dwords, MOST)?;
    for item in klv::walk(&list) {
        match item? {
            (klv::EXT_CAT_ERR_TYPE, []) => guc.of(ctx.function).client.cat_error_type = true,
            (klv::EXT_CAT_ERR_TYPE, _) => return Err(Error::MalformedKlv),
            _ => return Err(Error::InvalidKlvKey),
        }
    }
    Ok(count(klv::walk(&list).count()).into())
}

/// UPDATE_SCHEDULING_POLICIES_KLV: checks and stores the yield policy. The policy has no effect, because the emulated
/// render and compute engines run concurrently.
fn scheduling_policies(guc: &mut GucState, ctx: &mut GucCtx<'_>, request: Request<'_>) -> Reply {
    for item in klv::walk(request.payload) {
        match item? {
            (klv::RENDER_COMPUTE_YIELD, [quantum, ratio]) if *ratio <= 100 => {
                // A VF's value is accepted but not stored: the PF's policy applies.
                if !ctx.function.is_vf() {
                    guc.render_compute_yield = Some((*quantum, *ratio));
                }
            }
            (klv::RENDER_COMPUTE_YIELD, [_, _]) => return Err(Error::InvalidParams),
            (klv::RENDER_COMPUTE_YIELD, _) => return Err(Error::MalformedKlv),
            _ => return Err(Error::InvalidKlvKey),
        }
    }
    Ok(count(klv::walk(request.payload).count()).into())
}

fn global_policies(guc: &mut GucState, ctx: &mut GucCtx<'_>, request: Request<'_>) -> Reply {
    let format = &ctx.gt.generation.firmware.ads;
    if let Some(disabled) =
        ads::read_policies(&mut ctx.own(), u64::from(request.one()?), format).map_err(bad_address)?
    {
        guc.scheduler.set_engine_reset_disabled(disabled);
    }
    Ok(Answer::default())
}

fn usage_buffer(guc: &mut GucState, ctx: &mut GucCtx<'_>, request: Request<'_>) -> Reply {
    let [low, high] = request.all()?;
    guc.scheduler.activity.set_usage(&mut ctx.own(), global_address(low, high)?).map_err(bad_address)?;
    Ok(Answer::default())
}

fn device_activity(guc: &mut GucState, ctx: &mut GucCtx<'_>, request: Request<'_>) -> Reply {
    let [low, high, records_low, records_high] = request.all()?;
    let (metadata, records) = (global_address(low, high)?, global_address(records_low, records_high)?);
    guc.scheduler.activity.set_device(&mut ctx.own(), metadata, records).map_err(bad_address)?;
    Ok(Answer::default())
}

fn function_activity(guc: &mut GucState, ctx: &mut GucCtx<'_>, request: Request<'_>) -> Reply {
    let [functions, low, high, records_low, records_high] = request.all()?;
    if functions > crate::guc::activity::MAX_FUNCTIONS {
        return Err(Error::InvalidParams);
    }
    let (metadata, records) = (global_address(low, high)?, global_address(records_low, records_high)?);
    let Scheduler { activity, functions: of, .. } = &mut guc.scheduler;
    activity.set_functions(&mut ctx.own(), of, (functions, metadata, records)).map_err(bad_address)?;
    Ok(Answer::default())
}

/// Executes all pending invalidations and sends each response to the function that requested it. Waits for the units
/// whose current steps use memory of the functions concerned, and for no others.
pub fn finish_invalidations(guc: &mut GucState, ctx: &mut GucCtx<'_>) {
    let Invalidations { requested, drop, wait } = std::mem::take(&mut guc.invalidations);
    if requested == 0 {
        return;
    }
    ctx.gt.memory.invalidate(drop);
    ctx.units.end_steps_of(wait, &ctx.gt.memory);
    for function in functions(requested) {
        for seqno in guc.of(function).client.invalidations.drain(..) {
            ctx.send_message(function, Outgoing::event(TLB_INVALIDATION_DONE, &[seqno]));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "an overflow fails the test")]

    use arctic_fidelity::proves;

    use super::*;

    /// Contract B.6: action codes are unique.
    #[test]
    fn codes_are_unique() {
        for (at, action) in ACTIONS.iter().enumerate() {
            assert!(ACTIONS[at + 1..].iter().all(|other| other.code != action.code), "{}", action.name);
        }
    }

    /// Contract B.6: permitted payload lengths.
    #[test]
    fn lengths() {
        proves!(GUC_005, "each form of a length");
        assert!(Exact(2).permits(2) && !Exact(2).permits(3));
        assert!(Either(2, 6).permits(6) && !Either(2, 6).permits(4));
        assert!(Pairs(12).permits(14) && !Pairs(12).permits(13) && !Pairs(12).permits(10));
    }
}
