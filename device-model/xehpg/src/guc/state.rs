// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! State of the running GuC kernel.

use crate::gt::Gt;
use crate::guc::doorbell::DoorbellTable;
use crate::guc::functions::client::Client;
pub use crate::guc::functions::client::Counters;
use crate::guc::functions::client::{FixUp, State};
use crate::guc::functions::context::GucContextId;
use crate::guc::functions::share::{Priority, Share};
use crate::guc::functions::thresholds::ThresholdMonitor;
use crate::guc::functions::{Functions, GucFunction};
use crate::guc::load::ads::Ads;
use crate::guc::load::firmware::Firmware;
use crate::guc::messages::hxg::{Answer, Error, Reply, Request};
use crate::guc::messages::invalidations::Invalidations;
use crate::guc::provisioning::threshold_event::Kind;
use crate::guc::provisioning::{Scheduling, VgtPolicy};
use crate::guc::scheduler::{GucCtx, Scheduler};
use crate::guc::slpc::Slpc;
use crate::host::Function;

/// Executes a request of [`GucCtx::function`], from its CT buffer or its mailbox.
pub type Handler = fn(&mut GucState, &mut GucCtx<'_>, Request<'_>) -> Reply;

/// Maximum number of log messages about requests of the PF per boot.
const COMPLAINTS: u8 = 32;
/// Maximum number of log messages about requests of each VF per boot; counted separately, so that one VF cannot
/// suppress the messages about others.
const VF_COMPLAINTS: u8 = 8;

/// State kept across GuC resets.
#[derive(Default)]
pub struct PersistentState {
    /// [`Scheduler::loads`].
    pub loads: u16,
    /// State of the functions, as after a boot.
    pub functions: Functions,
}

/// State of one boot of the GuC.
pub struct GucState {
    /// The loaded firmware.
    pub firmware: Firmware,
    /// The functions with their contexts, and the engines.
    pub scheduler: Scheduler,
    /// Policies that apply to all functions.
    pub policy: VgtPolicy,
    /// Doorbells and the contexts assigned to them.
    pub doorbells: DoorbellTable,
    /// Sample period of adverse events.
    pub thresholds: ThresholdMonitor,
    /// Share of the compute engines while a render engine is busy: quantum in ms and percent.
    pub render_compute_yield: Option<(u32, u32)>,
    /// Request counters of all functions.
    pub counters: Counters,
    /// No PF driver is present, and the card acts as the PF.
    pub builtin_pf: bool,
    /// Functions that may have requests in their CT buffer, one bit each.
    pub pending: u64,
    /// TLB invalidations that the current step has received.
    pub invalidations: Invalidations,
    /// VFs in the state [`State::Paused`] for which PAUSE_DONE has not been sent.
    pausing: u64,
    /// VFs to which messages wait: in the state [`State::Paused`] for which PAUSE_DONE has been sent, or moved ([`FixUp`]) and
    /// without a driver that has adapted its addresses.
    pub(super) withheld: u64,
    /// VFs whose RESFIX_START is answered when their contexts have left the engines.
    pub(super) starting: u64,
    /// Moved VFs whose SW_INT_0 could not be written, because the client did not answer.
    pub(super) unsignalled: u64,
    /// VFs whose memory-based interrupt has been written outside of a step.
    pub(super) raised: u64,
    /// VFs in the state [`State::ResetPending`].
    resets_pending: u64,
    /// Functions with unsent messages.
    pub(super) unsent: u64,
    /// Functions with new messages for which the memory-based interrupt could not be written.
    pub(super) unnotified: u64,
    /// Functions with a CT buffer that was inaccessible.
    pub(super) inaccessible: u64,
    /// Functions with a request in the mailbox that is to be executed again, because an access was not answered.
    pub(super) unanswered_mailboxes: u64,
    /// Next function to serve.
    pub(super) next: Function,
    pub(super) slpc: Slpc,
    log_control: u32,
}

impl GucState {
    /// Creates the state of a newly started kernel from `ads`. `persistent` is the state kept from earlier boots.
    pub fn new(gt: &Gt, firmware: Firmware, ads: Ads, persistent: PersistentState) -> Self {
        GucState {
            firmware,
            doorbells: DoorbellTable::boot(&gt.doorbells),
            thresholds: ThresholdMonitor::default(),
            scheduler: Scheduler::new(gt.generation, ads, &firmware, persistent.functions, persistent.loads),
            policy: VgtPolicy::default(),
            render_compute_yield: None,
            counters: Counters::default(),
            builtin_pf: false,
            pending: 0,
            invalidations: Invalidations::default(),
            pausing: 0,
            withheld: 0,
            starting: 0,
            unsignalled: 0,
            raised: 0,
            resets_pending: 0,
            unsent: 0,
            unnotified: 0,
            inaccessible: 0,
            unanswered_mailboxes: 0,
            next: Function::PF,
            slpc: Slpc::default(),
            log_control: 0,
        }
    }

    /// Returns the state to keep for the next boot.
    pub fn persistent(self) -> PersistentState {
        PersistentState { loads: self.scheduler.loads, functions: self.scheduler.functions.next_boot() }
    }

    /// Returns the state of `function`.
    pub fn of(&mut self, function: Function) -> &mut GucFunction {
        &mut self.scheduler.functions[function]
    }

    /// Drops everything that the driver of `function` has set up: contexts (queued or on an engine), doorbells, CT
    /// buffers, interrupt and opt-ins; keeps its configuration (CLIENT_SOFT_RESET, VF_RESET, FLR; V13-120, V13-121).
    pub fn forget(&mut self, ctx: &mut GucCtx<'_>, function: Function) {
        self.scheduler.drop_function(ctx, function);
        self.doorbells.release_function(&ctx.gt.doorbells, function);
        self.of(function).client = Client::default();
        self.of(function).fix_up = FixUp::Done;
        self.drop_pending(function);
        ctx.out.retain(|(to, _)| *to != function);
    }

    /// Records that nothing is to be done for the CT buffers of `function`.
    pub fn drop_pending(&mut self, function: Function) {
        for set in [
            &mut self.pending,
            &mut self.unsent,
            &mut self.unnotified,
            &mut self.inaccessible,
            &mut self.unanswered_mailboxes,
            &mut self.starting,
            &mut self.unsignalled,
        ] {
            *set &= !function.bit();
        }
    }

    /// Replaces what the driver of `function` has set up, apart from contexts and doorbells. Messages and responses
    /// that it owes are sent in the next step in which the function is not paused.
    pub fn set_client(&mut self, function: Function, client: Client) {
        self.drop_pending(function);
        if client.channel.is_some() {
            self.unsent |= function.bit();
        }
        if !client.invalidations.is_empty() {
            self.invalidations.add(function, function.bit(), function.bit());
        }
        self.of(function).client = client;
    }

    /// Drops what `function` is owed for earlier requests: messages that answer them, and responses to TLB invalidations.
    pub fn drop_owed(&mut self, function: Function) {
        let client = &mut self.of(function).client;
        client.invalidations.clear();
        if let Some(channel) = &mut client.channel {
            channel.drop_answers();
        }
    }

    /// Passes the configured share of `function` to the scheduler.
    pub fn share(&mut self, function: Function) {
        let Scheduling { exec_quantum_ms, preempt_timeout_us, priority } = self.of(function).config.scheduling;
        let share = Share {
            quantum: u64::from(exec_quantum_ms) * 1_000_000,
            preemption_timeout: u64::from(preempt_timeout_us) * 1000,
            priority: Priority::of(priority).unwrap_or_default(),
        };
        self.scheduler.set_share(function, share);
    }

    /// Counts an adverse event caused by `function`, and reports it to the PF if the threshold is exceeded (contract
    /// D.10).
    pub fn note(&mut self, ctx: &mut GucCtx<'_>, function: Function, kind: Kind) {
        if let Some(message) = self.thresholds.note(&mut self.scheduler.functions, function, kind, ctx.now) {
            ctx.send_message(Function::PF, message);
        }
    }

    /// Executes an SLPC request.
    pub fn slpc_request(&mut self, ctx: &mut GucCtx<'_>, data: &[u32]) -> Reply {
        let reply = self.slpc.request(ctx.gt, &mut ctx.own(), data);
        self.slpc.show(ctx.gt, self.scheduler.busy());
        reply
    }

    /// UK_LOG_ENABLE_LOGGING: stores the control dword, which has no effect because there is no firmware log.
    pub fn set_log_control(&mut self, control: u32) -> Reply {
        self.log_control = control;
        Ok(Answer::default())
    }

    /// Returns context `local` of `function`, which need not be registered. Fails if the function may not use this id:
    /// the ids of a VF are limited to its range (contract C.5, F.1).
    pub fn context_id(&self, function: Function, local: u32) -> Result<GucContextId, Error> {
        self.context_number(function, local)?;
        let local = u16::try_from(local).map_err(|_| Error::InvalidContextIndex)?;
        Ok(GucContextId { function, local })
    }

    /// Returns the number ([`Context::number`](crate::guc::functions::context::Context::number)) of context `local` of `function`.
    pub fn context_number(&self, function: Function, local: u32) -> Result<u16, Error> {
        let functions = &self.scheduler.functions;
        let number = if function.is_vf() { functions[function].config.contexts.global(local) } else { Some(local) };
        let number = number.and_then(|number| u16::try_from(number).ok()).ok_or(Error::InvalidContextIndex)?;
        // The PF's ids may lie in the range of a VF.
        let of_pf = function.is_vf() && functions[Function::PF].contexts.contains_key(&number);
        if of_pf { Err(Error::InvalidContextIndex) } else { Ok(number) }
    }

    /// Returns the VFs (one bit each) that are being paused and for which PAUSE_DONE has not been sent.
    pub fn pausing(&self) -> u64 {
        self.pausing
    }

    /// Returns the VFs (one bit each) with an FLR that the PF has been notified of and has not started to handle.
    pub fn resets_pending(&self) -> u64 {
        self.resets_pending
    }

    /// Sets the state of `function`.
    pub fn set_state(&mut self, function: Function, state: State) {
        self.of(function).state = state;
        let is_moved = self.of(function).fix_up != FixUp::Done;
        let withheld = match state {
            State::Paused { notified } => notified || is_moved,
            State::FixUp => true,
            _ => false,
        };
        let sets = [
            (&mut self.pausing, state == State::Paused { notified: false }),
            (&mut self.withheld, withheld),
            (&mut self.resets_pending, state == State::ResetPending),
        ];
        for (set, is_member) in sets {
            *set = *set & !function.bit() | if is_member { function.bit() } else { 0 };
        }
    }

    /// Updates the request counters of `function`.
    pub fn count(&mut self, function: Function, note: impl Fn(&mut Counters)) {
        note(&mut self.counters);
        note(&mut self.of(function).counters);
    }

    /// Logs a problem with a request of `function`. The number of messages is limited.
    #[allow(clippy::arithmetic_side_effects, reason = "the count ends at the limit")]
    pub fn complain(&mut self, function: Function, what: std::fmt::Arguments<'_>) {
        let complaints = &mut self.of(function).complaints;
        if *complaints < if function.is_vf() { VF_COMPLAINTS } else { COMPLAINTS } {
            *complaints += 1;
            log::warn!("GuC, function {}: {what}", function.number());
        }
    }
}
