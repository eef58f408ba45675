// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Requests of the PF to manage its VFs: configuration (quotas), policies, pause, stop and reset (contract D.4, D.6,
//! D.7).

use super::client::State;
use super::doorbell;
use super::firmware;
use super::hxg::{Error, Outgoing, Reply};
use super::klv;
use super::mailbox::{self, GGTT_TOP};
use super::provisioning::VfConfig;
use super::scheduler::GucCtx;
use super::state::GucState;
use crate::host::{Function, functions};

/// G2H to the PF: the state of a VF has changed.
const VF_STATE_NOTIFY: u16 = 0x5106;

/// Events of VF_STATE_NOTIFY (xe: abi/guc_actions_sriov_abi.h).
#[derive(Clone, Copy)]
#[repr(u32)]
enum Notice {
    Reset = 1,
    ResetDone = 2,
    PauseDone = 3,
}

fn notify(ctx: &mut GucCtx<'_>, vf: Function, notice: Notice) {
    ctx.tell(Function::PF, Outgoing::event(VF_STATE_NOTIFY, &[u32::from(vf.0), notice as u32]));
}

/// Maximum number of dwords of a configuration or policy list.
const MOST: u32 = 512;

/// PF2GUC_UPDATE_VF_CFG: function number, list address, number of dwords. An address and length of 0 clear the
/// configuration.
pub fn update_config(guc: &mut GucState, ctx: &mut GucCtx<'_>, m: &[u32]) -> Reply {
    let function = match m[0] {
        0 => Function::PF,
        vf => Function::vf(vf).ok_or(Error::InvalidVf)?,
    };
    let mut config = guc.clients.get(function).map_or_else(VfConfig::default, |client| client.config);
    let applied = match (m[1], m[2], m[3]) {
        (0, 0, 0) => {
            config = VfConfig::default();
            0
        }
        (low, high, dwords) => {
            let list = klv::read(&mut ctx.own(), (low, high), dwords, MOST)?;
            if function.is_vf() {
                // Local memory stays assigned to the VF over a reset of the GuC: a list without this key must not
                // change it.
                config.local_memory = ctx.gt.memory.quota(function);
            }
            config.update(&list)?
        }
    };
    provision(guc, ctx, function, config)?;
    Ok(applied)
}

/// Applies `config` to `function`. Resources that it no longer contains are revoked, and work that uses them is
/// stopped.
pub fn provision(guc: &mut GucState, ctx: &mut GucCtx<'_>, function: Function, config: VfConfig) -> Result<(), Error> {
    let before = guc.clients.of(function).config;
    if function.is_vf() {
        config.check(firmware::wopcm_top(ctx.gt)..GGTT_TOP, ctx.gt.memory.local().len())?;
        let others = guc.clients.iter().filter(|(other, _)| other.is_vf() && *other != function);
        if others.into_iter().any(|(_, other)| config.collides(&other.config)) {
            return Err(Error::InvalidKlvData);
        }
        if config.contexts != before.contexts {
            guc.scheduler.drop_function(ctx, function);
            // The context ids that its doorbells refer to may be assigned to another function.
            guc.doorbells.release_function(&ctx.gt.doorbells, function);
        }
        if config.doorbells != before.doorbells {
            let quota = doorbell::Quota::new(config.doorbells.begin, config.doorbells.count)?;
            guc.doorbells.set_quota(&ctx.gt.doorbells, function, quota);
        }
        let granted = &mut guc.granted[function.index()];
        if *granted != config.ggtt() {
            *granted = config.ggtt();
            second_level::forget_global(ctx, function);
        }
        if config.local_memory != ctx.gt.memory.quota(function) {
            second_level::set_quota(ctx, function, config.local_memory);
        }
    }
    for (kind, threshold) in config.thresholds() {
        guc.adverse.set_threshold(function, kind, threshold);
    }
    guc.clients.of(function).config = config;
    guc.share(function);
    Ok(())
}

/// PF2GUC_UPDATE_VGT_POLICY: list address, number of dwords.
pub fn update_policy(guc: &mut GucState, ctx: &mut GucCtx<'_>, m: &[u32]) -> Reply {
    let list = klv::read(&mut ctx.own(), (m[0], m[1]), m[2], MOST)?;
    let before = guc.policy;
    let applied = guc.policy.update(&list)?;
    if guc.policy.adverse_sample_period_ms != before.adverse_sample_period_ms {
        guc.adverse.set_period(guc.policy.adverse_sample_period_ms);
    }
    if guc.policy.sched_if_idle != before.sched_if_idle {
        // The policy sets the priority of all functions: normal or low (xe: abi/guc_klvs_abi.h).
        let priority = u32::from(guc.policy.sched_if_idle);
        guc.scheduler.set_strict(guc.policy.sched_if_idle);
        for function in functions(!0) {
            if let Some(client) = guc.clients.get_mut(function) {
                client.config.scheduling.priority = priority;
                guc.share(function);
            }
        }
    }
    Ok(applied)
}

/// PF2GUC_VF_CONTROL: VF number, command.
pub fn control(guc: &mut GucState, ctx: &mut GucCtx<'_>, m: &[u32]) -> Reply {
    const PAUSE: u32 = 1;
    const RESUME: u32 = 2;
    const STOP: u32 = 3;
    const FLR_START: u32 = 4;
    const FLR_FINISH: u32 = 5;
    let vf = Function::vf(m[0]).ok_or(Error::InvalidVf)?;
    let state = guc.clients.of(vf).state;
    let next = match (m[1], state) {
        (PAUSE, State::Running) => {
            guc.scheduler.pause(ctx, vf);
            State::Paused { told: false }
        }
        (RESUME, State::Paused { .. }) => {
            guc.scheduler.resume(ctx, vf);
            State::Running
        }
        (STOP, State::Running | State::Paused { .. }) => {
            guc.scheduler.drop_function(ctx, vf);
            State::Stopped
        }
        (FLR_START, _) => {
            forget(guc, ctx, vf);
            notify(ctx, vf, Notice::ResetDone);
            State::Resetting
        }
        (FLR_FINISH, State::Resetting) => {
            second_level::forget_global(ctx, vf);
            State::Running
        }
        (PAUSE | RESUME | STOP | FLR_FINISH, _) => return Err(Error::InvalidState),
        _ => return Err(Error::InvalidParams),
    };
    guc.clients.of(vf).state = next;
    if next == State::Running {
        listen(guc, ctx, vf);
    }
    Ok(0)
}

/// Handles requests that a VF may have made while it was not served.
fn listen(guc: &mut GucState, ctx: &mut GucCtx<'_>, vf: Function) {
    guc.pending |= vf.bit();
    if mailbox::holds_request(ctx.gt, vf) {
        let caller = std::mem::replace(&mut ctx.function, vf);
        mailbox::answer(guc, ctx);
        ctx.function = caller;
    }
}

/// Notifies the PF of each VF with a completed pause: none of its contexts is on an engine.
pub fn finish_pauses(guc: &mut GucState, ctx: &mut GucCtx<'_>) {
    for vf in functions(guc.pausing()) {
        if guc.scheduler.quiet(vf) {
            guc.clients.of(vf).state = State::Paused { told: true };
            second_level::copy_global(ctx, vf);
            notify(ctx, vf, Notice::PauseDone);
        }
    }
}

/// Drops all state that a VF has created: contexts, whether queued or on an engine, CT buffers, opt-ins (V13-120,
/// V13-121).
fn forget(guc: &mut GucState, ctx: &mut GucCtx<'_>, vf: Function) {
    guc.scheduler.drop_function(ctx, vf);
    guc.doorbells.release_function(&ctx.gt.doorbells, vf);
    guc.adverse.forget(vf);
    guc.clients.of(vf).reset();
    guc.pending &= !vf.bit();
    ctx.out.retain(|(to, _)| *to != vf);
}

/// Remaining work for the FLR of a VF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum FunctionReset {
    /// None for the card: the PF driver is handling an FLR already, or there is nothing that it could handle.
    Led,
    /// The PF driver handles the FLR, and has not been notified yet: the card releases the VF's local memory
    /// ([`crate::memory::Memory::empty`]), then calls `announce_reset`. xe clears the memory within a timeout of five
    /// seconds, which must not depend on how much the VF has written, or on the host's load. Must be done without the
    /// GuC's lock.
    Unannounced,
    /// There is no PF driver to handle the FLR: the card clears the VF's memory, then calls `finish_reset`. Clearing
    /// takes time proportional to the memory in use and must be done without the GuC's lock. The VF is not served until
    /// then.
    Unled,
}

/// FLR of a VF (V13-117): its work ends immediately, and the PF is notified, which then handles the reset (V13-118,
/// contract D.7). Without a PF driver, the card completes the reset as far as possible.
pub fn function_reset(guc: &mut GucState, ctx: &mut GucCtx<'_>, vf: Function) -> FunctionReset {
    let state = guc.clients.of(vf).state;
    let leads = !guc.builtin_pf && guc.clients.get(Function::PF).is_some_and(|pf| pf.channel.is_some());
    if leads && state == State::Resetting {
        // The PF driver is already handling a reset, and the VF cannot have created new state since.
        return FunctionReset::Led;
    }
    forget(guc, ctx, vf);
    if leads {
        if state == State::ResetPending {
            return FunctionReset::Led;
        }
        guc.clients.of(vf).state = State::Emptying;
        // Fails if an earlier reset is still emptying the memory: that thread will notify the PF.
        return if ctx.gt.memory.begin_emptying(vf) { FunctionReset::Unannounced } else { FunctionReset::Led };
    }
    second_level::forget_global(ctx, vf);
    ctx.gt.memory.ggtt().assign(vf, guc.clients.of(vf).config.ggtt());
    guc.clients.of(vf).state = State::Clearing;
    FunctionReset::Unled
}

/// The local memory of `vf` has been released for an FLR. Notifies the PF, unless it has begun to handle the reset by
/// itself; if it has finished as well, the VF is served again.
pub fn announce_reset(guc: &mut GucState, ctx: &mut GucCtx<'_>, vf: Function) {
    match guc.clients.of(vf).state {
        State::Emptying => {
            notify(ctx, vf, Notice::Reset);
            guc.clients.of(vf).state = State::ResetPending;
        }
        State::Running => listen(guc, ctx, vf),
        _ => {}
    }
}

/// The memory of `vf` has been cleared for an FLR without a PF driver: it is served again.
pub fn finish_reset(guc: &mut GucState, ctx: &mut GucCtx<'_>, vf: Function) {
    let state = &mut guc.clients.of(vf).state;
    if *state == State::Clearing {
        *state = State::Running;
        listen(guc, ctx, vf);
    }
}

/// Updates of the second-level translation: the GGTT entries that the VF wrote, and its local memory.
pub mod second_level {
    use super::*;

    /// The LMTT may have changed: local memory frames are moved to the storage of the functions it assigns them to
    /// (contract D.5).
    pub fn adopt(ctx: &mut GucCtx<'_>) {
        ctx.gt.memory.prepare_adoption();
        ctx.engines.stand_still(|| ctx.gt.memory.adopt_lmtt());
    }

    /// Discards the GGTT entries that the VF has written.
    pub fn forget_global(ctx: &mut GucCtx<'_>, vf: Function) {
        ctx.gt.memory.ggtt().empty_vf(vf);
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
