// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Requests of the PF to manage its VFs: configuration (quotas), policies, pause, stop and reset (contract D.4, D.6,
//! D.7).

use super::client::State;
use super::doorbell;
use super::firmware;
use super::hxg::{Error, Outgoing, Reply};
use super::kernel::Kernel;
use super::klv;
use super::mailbox::{self, GGTT_TOP};
use super::provisioning::VfConfig;
use super::scheduler::Turn;
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

fn notify(turn: &mut Turn<'_>, vf: Function, notice: Notice) {
    turn.tell(Function::PF, Outgoing::event(VF_STATE_NOTIFY, &[u32::from(vf.0), notice as u32]));
}

/// Maximum number of dwords of a configuration or policy list.
const MOST: u32 = 512;

/// PF2GUC_UPDATE_VF_CFG: function number, list address, number of dwords. An address and length of 0 clear the
/// configuration.
pub fn update_config(kernel: &mut Kernel, turn: &mut Turn<'_>, m: &[u32]) -> Reply {
    let function = match m[0] {
        0 => Function::PF,
        vf => Function::vf(vf).ok_or(Error::InvalidVf)?,
    };
    let mut config = kernel.clients.get(function).map_or_else(VfConfig::default, |client| client.config);
    let applied = match (m[1], m[2], m[3]) {
        (0, 0, 0) => {
            config = VfConfig::default();
            0
        }
        (low, high, dwords) => {
            let list = klv::read(&mut turn.own(), (low, high), dwords, MOST)?;
            if function.is_vf() {
                // Local memory stays assigned to the VF over a reset of the GuC: a list without this key must not
                // change it.
                config.local_memory = turn.gt.memory.quota(function);
            }
            config.update(&list)?
        }
    };
    provision(kernel, turn, function, config)?;
    Ok(applied)
}

/// Applies `config` to `function`. Resources that it no longer contains are revoked, and work that uses them is
/// stopped.
pub fn provision(kernel: &mut Kernel, turn: &mut Turn<'_>, function: Function, config: VfConfig) -> Result<(), Error> {
    let before = kernel.clients.of(function).config;
    if function.is_vf() {
        config.check(firmware::wopcm_top(turn.gt)..GGTT_TOP, turn.gt.memory.local().len())?;
        let others = kernel.clients.iter().filter(|(other, _)| other.is_vf() && *other != function);
        if others.into_iter().any(|(_, other)| config.collides(&other.config)) {
            return Err(Error::InvalidKlvData);
        }
        if config.contexts != before.contexts {
            kernel.scheduler.drop_function(turn, function);
            // The context ids that its doorbells refer to may be assigned to another function.
            kernel.doorbells.release_function(&turn.gt.doorbells, function);
        }
        if config.doorbells != before.doorbells {
            let quota = doorbell::Quota::new(config.doorbells.begin, config.doorbells.count)?;
            kernel.doorbells.set_quota(&turn.gt.doorbells, function, quota);
        }
        let granted = &mut kernel.granted[function.index()];
        if *granted != config.ggtt() {
            *granted = config.ggtt();
            second_level::forget_global(turn, function);
        }
        if config.local_memory != turn.gt.memory.quota(function) {
            second_level::set_quota(turn, function, config.local_memory);
        }
    }
    for (kind, threshold) in config.thresholds() {
        kernel.adverse.set_threshold(function, kind, threshold);
    }
    kernel.clients.of(function).config = config;
    kernel.share(function);
    Ok(())
}

/// PF2GUC_UPDATE_VGT_POLICY: list address, number of dwords.
pub fn update_policy(kernel: &mut Kernel, turn: &mut Turn<'_>, m: &[u32]) -> Reply {
    let list = klv::read(&mut turn.own(), (m[0], m[1]), m[2], MOST)?;
    let before = kernel.policy;
    let applied = kernel.policy.update(&list)?;
    if kernel.policy.adverse_sample_period_ms != before.adverse_sample_period_ms {
        kernel.adverse.set_period(kernel.policy.adverse_sample_period_ms);
    }
    if kernel.policy.sched_if_idle != before.sched_if_idle {
        // The policy sets the priority of all functions: normal or low (xe: abi/guc_klvs_abi.h).
        let priority = u32::from(kernel.policy.sched_if_idle);
        kernel.scheduler.set_strict(kernel.policy.sched_if_idle);
        for function in functions(!0) {
            if let Some(client) = kernel.clients.get_mut(function) {
                client.config.scheduling.priority = priority;
                kernel.share(function);
            }
        }
    }
    Ok(applied)
}

/// PF2GUC_VF_CONTROL: VF number, command.
pub fn control(kernel: &mut Kernel, turn: &mut Turn<'_>, m: &[u32]) -> Reply {
    const PAUSE: u32 = 1;
    const RESUME: u32 = 2;
    const STOP: u32 = 3;
    const FLR_START: u32 = 4;
    const FLR_FINISH: u32 = 5;
    let vf = Function::vf(m[0]).ok_or(Error::InvalidVf)?;
    let state = kernel.clients.of(vf).state;
    let next = match (m[1], state) {
        (PAUSE, State::Running) => {
            kernel.scheduler.pause(turn, vf);
            State::Paused { told: false }
        }
        (RESUME, State::Paused { .. }) => {
            kernel.scheduler.resume(turn, vf);
            State::Running
        }
        (STOP, State::Running | State::Paused { .. }) => {
            kernel.scheduler.drop_function(turn, vf);
            State::Stopped
        }
        (FLR_START, _) => {
            forget(kernel, turn, vf);
            notify(turn, vf, Notice::ResetDone);
            State::Resetting
        }
        (FLR_FINISH, State::Resetting) => {
            second_level::forget_global(turn, vf);
            State::Running
        }
        (PAUSE | RESUME | STOP | FLR_FINISH, _) => return Err(Error::InvalidState),
        _ => return Err(Error::InvalidParams),
    };
    kernel.clients.of(vf).state = next;
    if next == State::Running {
        listen(kernel, turn, vf);
    }
    Ok(0)
}

/// Handles requests that a VF may have made while it was not served.
fn listen(kernel: &mut Kernel, turn: &mut Turn<'_>, vf: Function) {
    kernel.pending |= vf.bit();
    if mailbox::holds_request(turn.gt, vf) {
        let caller = std::mem::replace(&mut turn.function, vf);
        mailbox::answer(kernel, turn);
        turn.function = caller;
    }
}

/// Notifies the PF of each VF with a completed pause: none of its contexts is on an engine.
pub fn finish_pauses(kernel: &mut Kernel, turn: &mut Turn<'_>) {
    for vf in functions(kernel.pausing()) {
        if kernel.scheduler.quiet(vf) {
            kernel.clients.of(vf).state = State::Paused { told: true };
            second_level::copy_global(turn, vf);
            notify(turn, vf, Notice::PauseDone);
        }
    }
}

/// Drops all state that a VF has created: contexts, whether queued or on an engine, CT buffers, opt-ins (V13-120,
/// V13-121).
fn forget(kernel: &mut Kernel, turn: &mut Turn<'_>, vf: Function) {
    kernel.scheduler.drop_function(turn, vf);
    kernel.doorbells.release_function(&turn.gt.doorbells, vf);
    kernel.adverse.forget(vf);
    kernel.clients.of(vf).reset();
    kernel.pending &= !vf.bit();
    turn.out.retain(|(to, _)| *to != vf);
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
pub fn function_reset(kernel: &mut Kernel, turn: &mut Turn<'_>, vf: Function) -> FunctionReset {
    let state = kernel.clients.of(vf).state;
    let leads = !kernel.plays_pf && kernel.clients.get(Function::PF).is_some_and(|pf| pf.channel.is_some());
    if leads && state == State::Resetting {
        // The PF driver is already handling a reset, and the VF cannot have created new state since.
        return FunctionReset::Led;
    }
    forget(kernel, turn, vf);
    if leads {
        if state == State::ResetPending {
            return FunctionReset::Led;
        }
        kernel.clients.of(vf).state = State::Emptying;
        // Fails if an earlier reset is still emptying the memory: that thread will notify the PF.
        return if turn.gt.memory.begin_emptying(vf) { FunctionReset::Unannounced } else { FunctionReset::Led };
    }
    second_level::forget_global(turn, vf);
    turn.gt.memory.ggtt().assign(vf, kernel.clients.of(vf).config.ggtt());
    kernel.clients.of(vf).state = State::Clearing;
    FunctionReset::Unled
}

/// The local memory of `vf` has been released for an FLR. Notifies the PF, unless it has begun to handle the reset by
/// itself; if it has finished as well, the VF is served again.
pub fn announce_reset(kernel: &mut Kernel, turn: &mut Turn<'_>, vf: Function) {
    match kernel.clients.of(vf).state {
        State::Emptying => {
            notify(turn, vf, Notice::Reset);
            kernel.clients.of(vf).state = State::ResetPending;
        }
        State::Running => listen(kernel, turn, vf),
        _ => {}
    }
}

/// The memory of `vf` has been cleared for an FLR without a PF driver: it is served again.
pub fn finish_reset(kernel: &mut Kernel, turn: &mut Turn<'_>, vf: Function) {
    let state = &mut kernel.clients.of(vf).state;
    if *state == State::Clearing {
        *state = State::Running;
        listen(kernel, turn, vf);
    }
}

/// Updates of the second-level translation: the GGTT entries that the VF wrote, and its local memory.
pub mod second_level {
    use super::*;

    /// The LMTT may have changed: local memory frames are moved to the storage of the functions it assigns them to
    /// (contract D.5).
    pub fn adopt(turn: &mut Turn<'_>) {
        turn.gt.memory.prepare_adoption();
        turn.engines.stand_still(|| turn.gt.memory.adopt_lmtt());
    }

    /// Discards the GGTT entries that the VF has written.
    pub fn forget_global(turn: &mut Turn<'_>, vf: Function) {
        turn.gt.memory.ggtt().empty_vf(vf);
    }

    /// Copies the GGTT entries that the VF has written to the table that the PF reads.
    pub fn copy_global(turn: &mut Turn<'_>, vf: Function) {
        turn.gt.memory.ggtt().settle_vf(vf);
    }

    /// Sets the size of the VF's local memory to `bytes`.
    pub fn set_quota(turn: &mut Turn<'_>, vf: Function, bytes: u64) {
        turn.gt.memory.set_quota(vf, bytes);
        adopt(turn);
    }
}
