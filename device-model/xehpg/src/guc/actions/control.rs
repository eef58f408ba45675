// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! PF requests that manage VFs: configuration (quotas), policies, pause, stop and reset (contract D.4, D.6, D.7).

use std::ops::Range;

use crate::guc::Step;
use crate::guc::actions::mailbox;
use crate::guc::functions::client::{FixUp, State};
use crate::guc::load::firmware;
use crate::guc::messages::hxg::{Answer, Error, Reply, Request};
use crate::guc::messages::klv;
use crate::guc::migration;
use crate::guc::notices::{self, Notice};
use crate::guc::provisioning::VfConfig;
use crate::guc::saved;
use crate::guc::scheduler::GucCtx;
use crate::guc::state::GucState;
use crate::host::{Function, functions};
use crate::memory::ggtt;
use crate::trace::EventKind;

/// Maximum number of dwords of a configuration or policy list.
const MOST: u32 = 512;

/// PF2GUC_UPDATE_VF_CFG: function number, list address, number of dwords. An address and length of 0 clear the
/// configuration.
pub fn update_config(guc: &mut GucState, ctx: &mut GucCtx<'_>, request: Request<'_>) -> Reply {
    let [function, low, high, dwords] = request.all()?;
    let function = match function {
        0 => Function::PF,
        vf => Function::vf(vf).ok_or(Error::InvalidVf)?,
    };
    let mut config = guc.of(function).config;
    let applied = match (low, high, dwords) {
        (0, 0, 0) => {
            config = VfConfig::default();
            0
        }
        _ => {
            let list = klv::read(&mut ctx.own(), (low, high), dwords, MOST)?;
            if function.is_vf() {
                // Local memory stays assigned to the VF across GuC resets, so a list without this key must not change
                // it.
                config.local_memory = ctx.gt.memory.quota(function);
            }
            config.update(ctx.gt.generation.sriov, &list)?
        }
    };
    provision(guc, ctx, function, config)?;
    Ok(applied.into())
}

/// Applies `config` to `function`. Revokes resources that it no longer contains, and stops contexts that use them.
/// Returns an error if `config` is invalid or conflicts with the configuration of another VF.
pub fn provision(guc: &mut GucState, ctx: &mut GucCtx<'_>, function: Function, config: VfConfig) -> Result<(), Error> {
    let before = guc.of(function).config;
    if function.is_vf() {
        let format = ctx.gt.generation.sriov;
        config.check(format, firmware::wopcm_top(ctx.gt)..format.ggtt.end, ctx.gt.memory.local().len())?;
        let others = guc.scheduler.functions.iter().filter(|(other, _)| other.is_vf() && *other != function);
        if others.into_iter().any(|(_, other)| config.collides(&other.config)) {
            return Err(Error::InvalidKlvData);
        }
        if config.contexts != before.contexts {
            guc.scheduler.drop_function(ctx, function);
            // Its doorbells refer to context ids that may be assigned to another function.
            guc.doorbells.release_function(&ctx.gt.doorbells, function);
            ctx.gt.parked.limit(function, saved::room_for_groups(config.contexts.count));
        }
        if config.doorbells != before.doorbells {
            guc.doorbells.restrict(&ctx.gt.doorbells, function, config.doorbells);
        }
        let granted = &mut guc.of(function).granted;
        if *granted != config.ggtt() {
            *granted = config.ggtt();
            second_level::forget_global(ctx, function);
        }
        if config.local_memory != ctx.gt.memory.quota(function) {
            second_level::set_quota(ctx, function, config.local_memory);
        }
    }
    guc.of(function).config = config;
    guc.share(function);
    Ok(())
}

/// PF2GUC_UPDATE_VGT_POLICY: list address, number of dwords.
pub fn update_policy(guc: &mut GucState, ctx: &mut GucCtx<'_>, request: Request<'_>) -> Reply {
    let [low, high, dwords] = request.all()?;
    let list = klv::read(&mut ctx.own(), (low, high), dwords, MOST)?;
    let before = guc.policy;
    let applied = guc.policy.update(&list)?;
    if guc.policy.adverse_sample_period_ms != before.adverse_sample_period_ms {
        guc.thresholds.set_period(&mut guc.scheduler.functions, guc.policy.adverse_sample_period_ms);
    }
    if guc.policy.sched_if_idle != before.sched_if_idle {
        // The policy sets the priority of all functions to normal or low (xe: abi/guc_klvs_abi.h).
        let priority = u32::from(guc.policy.sched_if_idle);
        guc.scheduler.set_strict(guc.policy.sched_if_idle);
        for function in functions(!0) {
            guc.of(function).config.scheduling.priority = priority;
            guc.share(function);
        }
    }
    Ok(applied.into())
}

/// Command of VF_CONTROL: pause.
const PAUSE: u32 = 1;
/// Command of VF_CONTROL: resume.
const RESUME: u32 = 2;

/// PF2GUC_VF_CONTROL: VF number, command.
pub fn control(guc: &mut GucState, ctx: &mut GucCtx<'_>, request: Request<'_>) -> Reply {
    let [vf, command] = request.all()?;
    command_to(guc, ctx, Function::vf(vf).ok_or(Error::InvalidVf)?, command)
}

/// Executes a command of VF_CONTROL.
fn command_to(guc: &mut GucState, ctx: &mut GucCtx<'_>, vf: Function, command: u32) -> Reply {
    const STOP: u32 = 3;
    const FLR_START: u32 = 4;
    const FLR_FINISH: u32 = 5;
    let state = guc.of(vf).state;
    let next = match (command, state) {
        (PAUSE, State::Running | State::FixUp) => {
            guc.scheduler.pause(ctx, vf);
            guc.of(vf).paused_at = ctx.now;
            State::Paused { notified: false }
        }
        (RESUME, State::Paused { .. }) if migration::needs_fix_up(guc, vf) => State::FixUp,
        (RESUME, State::Paused { .. }) => {
            guc.of(vf).fix_up = FixUp::Done;
            guc.scheduler.resume(ctx, vf);
            State::Running
        }
        (STOP, State::Running | State::Paused { .. } | State::FixUp) => {
            guc.scheduler.drop_function(ctx, vf);
            guc.of(vf).fix_up = FixUp::Done;
            State::Stopped
        }
        (FLR_START, _) => {
            forget(guc, ctx, vf);
            notices::send(ctx, vf, Notice::ResetDone);
            State::Resetting
        }
        (FLR_FINISH, State::Resetting) => {
            second_level::forget_global(ctx, vf);
            State::Running
        }
        (PAUSE | RESUME | STOP | FLR_FINISH, _) => return Err(Error::InvalidState),
        _ => return Err(Error::InvalidParams),
    };
    guc.set_state(vf, next);
    if next == State::FixUp {
        migration::signal_move(guc, ctx, vf);
    }
    if matches!(next, State::Running | State::FixUp) {
        listen(guc, ctx, vf);
    }
    Ok(Answer::default())
}

/// Pauses or resumes a VF without a request of the PF driver.
pub fn set_paused(guc: &mut GucState, ctx: &mut GucCtx<'_>, vf: Function, paused: bool) -> Result<(), Error> {
    command_to(guc, ctx, vf, if paused { PAUSE } else { RESUME }).map(drop)
}

/// Handles requests that a VF may have sent while it was not served.
fn listen(guc: &mut GucState, ctx: &mut GucCtx<'_>, vf: Function) {
    guc.pending |= vf.bit();
    if mailbox::holds_request(ctx.gt, vf) {
        let caller = std::mem::replace(&mut ctx.function, vf);
        mailbox::answer(guc, ctx);
        ctx.function = caller;
    }
}

/// Time in nanoseconds after PAUSE for which PAUSE_DONE waits for space in the VF's CT buffer. Linux waits one second for
/// PAUSE_DONE (xe: pf_get_default_timeout).
const OWED_LIMIT: u64 = 200_000_000;

/// Notifies the PF of each VF that has completed a pause: no context is on an engine, and all messages for earlier
/// requests are in the VF's CT buffer. After a migration, xe's VF driver does not expect a message for an earlier request
/// (xe: guc_ct_change_state, guc_exec_queue_revert_pending_state_change). Messages for which the VF makes no space in
/// [`OWED_LIMIT`], for example because its processors have been stopped, are sent when it is resumed. Returns the
/// functions with new messages.
pub fn finish_pauses(guc: &mut GucState, ctx: &mut GucCtx<'_>) -> Step {
    let mut step = Step::default();
    for vf in functions(guc.pausing()) {
        // While the memory of an earlier reset is being emptied, data that the PF writes to restore the VF may be lost.
        if !guc.scheduler.quiet(vf) || ctx.gt.memory.is_emptying(vf) {
            continue;
        }
        // The driver of a moved VF does not expect messages for requests of before.
        let is_moved = guc.of(vf).fix_up != FixUp::Done;
        let (sent, complete) = if is_moved { (Step::default(), true) } else { guc.settle_up(ctx, vf) };
        step.merge(sent);
        if complete || ctx.now.saturating_sub(guc.of(vf).paused_at) >= OWED_LIMIT {
            guc.set_state(vf, State::Paused { notified: true });
            second_level::copy_global(ctx, vf);
            notices::send(ctx, vf, Notice::PauseDone);
        }
    }
    step
}

/// Drops what the VF's driver has set up, and its counts of adverse events.
fn forget(guc: &mut GucState, ctx: &mut GucCtx<'_>, vf: Function) {
    guc.forget(ctx, vf);
    // Contexts of the PF may use memory of the VF.
    ctx.gt.memory.invalidate(vf.bit());
    ctx.gt.trace.record(vf, || EventKind::TlbInvalidation { by: "a reset".into(), all: false });
    ctx.units.end_steps_of(vf.bit(), &ctx.gt.memory);
    guc.of(vf).watch.forget();
}

/// Tasks that remain for the card in the FLR of a VF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum FunctionReset {
    /// None: a thread of an earlier reset is still releasing the VF's local memory, and then does so again.
    Led,
    /// The PF driver handles the FLR and has not been notified yet. The card must release the VF's local memory
    /// ([`crate::memory::Memory::empty`]), without holding the GuC's lock, and then call `announce_reset`. xe clears
    /// the memory within a timeout of five seconds; the duration must not depend on how much the VF has written or on
    /// the host's load.
    Unannounced,
    /// There is no PF driver to handle the FLR. The card must clear the VF's memory, without holding the GuC's lock,
    /// and then call `finish_reset`. Clearing takes time proportional to the memory in use. The VF is not served until
    /// then.
    Unled,
}

/// Starts an FLR of a VF (V13-117): stops its contexts immediately. The PF driver, once notified, handles the reset
/// (V13-118, contract D.7). Without a PF driver, the card completes the reset as far as possible.
///
/// In every state, including those of an earlier FLR, the VF may have written local memory, GGTT entries and registers
/// through its BARs since, so each FLR discards all of it. The PF driver is notified of one FLR at a time: Linux
/// ignores a notification while it handles an FLR (xe: pf_begin_vf_flr), and a notification that it gets just after
/// FLR_FINISH makes it reset a VF that is in use again. It does not take part in an FLR that begins while it handles
/// another: the VF is not served in between, so the PF driver has no new state of it, and its FLR_FINISH concludes both.
pub fn function_reset(guc: &mut GucState, ctx: &mut GucCtx<'_>, vf: Function) -> FunctionReset {
    let leads = !guc.builtin_pf && guc.of(Function::PF).client.channel.is_some();
    forget(guc, ctx, vf);
    if leads {
        second_level::erase_global(ctx, vf, &guc.of(vf).granted);
        if !matches!(guc.of(vf).state, State::Emptying | State::ResetPending | State::Resetting) {
            guc.set_state(vf, State::Emptying);
        }
        return if ctx.gt.memory.begin_emptying(vf) { FunctionReset::Unannounced } else { FunctionReset::Led };
    }
    second_level::forget_global(ctx, vf);
    ctx.gt.memory.ggtt().assign(vf, guc.of(vf).config.ggtt());
    ctx.gt.memory.begin_clearing(vf);
    guc.set_state(vf, State::Clearing);
    FunctionReset::Unled
}

/// Continues an FLR after the local memory of `vf` has been released. Notifies the PF, unless the PF has already
/// started to handle the reset. If the PF has also finished, the VF is served again.
pub fn announce_reset(guc: &mut GucState, ctx: &mut GucCtx<'_>, vf: Function) {
    match guc.of(vf).state {
        State::Emptying => {
            notify_reset(guc, ctx, vf);
            guc.set_state(vf, State::ResetPending);
        }
        State::Running => listen(guc, ctx, vf),
        _ => {}
    }
}

/// Completes an FLR without a PF driver, after the memory of `vf` has been cleared. `last`: no other thread clears it
/// for another reset. The VF is then served again.
pub fn finish_reset(guc: &mut GucState, ctx: &mut GucCtx<'_>, vf: Function, last: bool) {
    if last && guc.of(vf).state == State::Clearing {
        guc.set_state(vf, State::Running);
    }
    if guc.of(vf).state == State::Running {
        listen(guc, ctx, vf);
    }
}

/// Interval in nanoseconds between repeated notifications of FLRs. xe's VF driver waits 50 ms for a reply and gives up
/// after ten attempts (xe: xe_guc_mmio_send_recv, vf_reset_guc_state); the PF driver must be notified, and handle the FLR,
/// within that time.
const NOTICE_INTERVAL: u64 = 20_000_000;

/// Notifies the PF again of an FLR that it has not started to handle. Linux loses a notification that it receives after
/// its FLR_FINISH of an earlier FLR has been executed and before it has recorded that; the VF would never be served
/// again. A repeated notification does no harm: Linux receives it before the end of the FLR that the first one began,
/// and ignores it (xe: pf_begin_vf_flr).
///
/// One FLR is notified again in each [`NOTICE_INTERVAL`], the one with the oldest notification: Linux logs each
/// notification, and after a reset of many VFs it is busy with the first ones for longer than the interval. None is
/// notified again while the PF has messages to read, because it may find the notification among them. Returns the time
/// of the next notification.
pub fn repeat_notices(guc: &mut GucState, ctx: &mut GucCtx<'_>) -> Option<u64> {
    let noticed_at = |vf: &Function| guc.scheduler.functions[*vf].noticed_at;
    let pending = guc.resets_pending();
    let oldest = functions(pending).min_by_key(noticed_at)?;
    let latest = functions(pending).map(|vf| noticed_at(&vf)).max()?;
    let due = latest.saturating_add(NOTICE_INTERVAL);
    if ctx.now < due {
        return Some(due);
    }
    // The notification itself may not be in the channel yet.
    guc.post(ctx);
    let gam = &mut ctx.gam(Function::PF);
    let channel = &guc.of(Function::PF).client.channel;
    if channel.as_ref().is_some_and(|channel| channel.all_read(gam)) {
        notify_reset(guc, ctx, oldest);
    }
    Some(ctx.now.saturating_add(NOTICE_INTERVAL))
}

/// Notifies the PF of an FLR.
fn notify_reset(guc: &mut GucState, ctx: &mut GucCtx<'_>, vf: Function) {
    notices::send(ctx, vf, Notice::Reset);
    guc.of(vf).noticed_at = ctx.now;
}

/// Updates of the second-level translation: the GGTT entries written by the VF, and its local memory.
pub mod second_level {
    use super::*;

    /// Handles a possible change of the LMTT: moves local memory frames to the storage of the functions to which it
    /// assigns them (contract D.5).
    pub fn adopt(ctx: &mut GucCtx<'_>) {
        ctx.gt.memory.prepare_adoption();
        ctx.units.while_stopped(|| ctx.gt.memory.adopt_lmtt());
    }

    /// Discards the GGTT entries that the VF has written.
    pub fn forget_global(ctx: &mut GucCtx<'_>, vf: Function) {
        ctx.gt.memory.ggtt().empty_vf(vf);
    }

    /// Discards the GGTT entries that the VF has written in its range `granted`, wherever they are stored.
    pub fn erase_global(ctx: &mut GucCtx<'_>, vf: Function, granted: &Range<u64>) {
        ctx.gt.memory.ggtt().erase_vf(vf, ggtt::indices(granted));
    }

    /// Copies the GGTT entries that the VF has written to the table that the PF reads.
    pub fn copy_global(ctx: &mut GucCtx<'_>, vf: Function) {
        ctx.gt.memory.ggtt().settle_vf(vf);
    }

    /// Sets the size of the VF's local memory to `bytes`.
    pub fn set_quota(ctx: &mut GucCtx<'_>, vf: Function, bytes: u64) {
        ctx.gt.memory.set_quota(vf, bytes);
        adopt(ctx);
    }
}
