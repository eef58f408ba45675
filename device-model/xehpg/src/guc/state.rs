// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! State and step execution of the running GuC kernel.

use arctic_sriov::number::byte;

use crate::engine::EngineReport;
use crate::gt::Gt;
use crate::host::{FUNCTIONS, Function, functions};
use crate::trace::EventKind;

use super::Step;
use super::action::{self, Invalidations};
use super::ads::Ads;
use super::adverse::{Adverse, Kind};
use super::client::Client;
pub use super::client::Counters;
use super::client::State;
use super::context::GucContextId;
use super::control;
use super::doorbell::{self, DoorbellTable};
use super::firmware::Firmware;
use super::functions::{Functions, GucFunction};
use super::hxg::{Error, MAX_DWORDS, Outgoing, Reply, Type, action as action_of};
use super::provisioning::{Scheduling, VgtPolicy};
use super::scheduler::{GucCtx, Scheduler};
use super::share::{self, Priority, Share};
use super::slpc::Slpc;

/// Maximum number of requests taken from one CT buffer before the next function is served.
const REQUESTS_A_TURN: usize = 32;
/// Maximum number of functions served in one step.
const TURNS_A_STEP: usize = 8;
/// Retry interval while a host's CT buffer is full, in nanoseconds.
const RING_FULL_PAUSE: u64 = 200_000;
/// Retry interval while a host's CT buffer is inaccessible, in nanoseconds.
const OUT_OF_REACH_PAUSE: u64 = 2_000_000;
/// Maximum number of log messages about requests of the PF per boot.
const COMPLAINTS: u8 = 32;
/// Maximum number of log messages about requests of each VF per boot; counted separately, so that one VF cannot
/// suppress the messages about others.
const VF_COMPLAINTS: u8 = 8;

/// Result of serving a function.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Served {
    /// No request to execute: the CT buffer is empty or unusable, or the function is not being served.
    Empty,
    /// There may be more requests.
    More,
    /// Must be retried later: the host must read its messages first, or the CT buffer is inaccessible.
    Blocked,
}

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
    pub adverse: Adverse,
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
    /// VFs in the state [`State::Paused`] for which PAUSE_DONE has been sent. Messages to them wait.
    paused: u64,
    /// VFs in the state [`State::ResetPending`].
    resets_pending: u64,
    /// Functions with unsent messages.
    unsent: u64,
    /// Functions with new messages for which the memory-based interrupt could not be written.
    untold: u64,
    /// Functions with a CT buffer that was inaccessible.
    unread: u64,
    /// Next function to serve.
    next: u8,
    slpc: Slpc,
    log_control: u32,
}

impl GucState {
    /// Creates the state of a newly started kernel from `ads`. `persistent` is the state kept from earlier boots.
    pub fn new(gt: &Gt, firmware: Firmware, ads: Ads, persistent: PersistentState) -> Self {
        GucState {
            firmware,
            doorbells: DoorbellTable::boot(&gt.doorbells),
            adverse: Adverse::default(),
            scheduler: Scheduler::new(gt.generation, ads, &firmware, persistent.functions, persistent.loads),
            policy: VgtPolicy::default(),
            render_compute_yield: None,
            counters: Counters::default(),
            builtin_pf: false,
            pending: 0,
            invalidations: Invalidations::default(),
            pausing: 0,
            paused: 0,
            resets_pending: 0,
            unsent: 0,
            untold: 0,
            unread: 0,
            next: 0,
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
        self.drop_pending(function);
        ctx.out.retain(|(to, _)| *to != function);
    }

    /// Records that nothing is to be done for the CT buffers of `function`.
    pub fn drop_pending(&mut self, function: Function) {
        for set in [&mut self.pending, &mut self.unsent, &mut self.untold, &mut self.unread] {
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
        if let Some(message) = self.adverse.note(&mut self.scheduler.functions, function, kind, ctx.now) {
            ctx.tell(Function::PF, message);
        }
    }

    /// Counts the adverse events that the scheduler has recorded.
    fn note_adverse(&mut self, ctx: &mut GucCtx<'_>) {
        for (function, kind) in std::mem::take(&mut self.scheduler.adverse) {
            let kind = match kind {
                share::Adverse::CatError => Kind::CatError,
                share::Adverse::EngineReset => Kind::EngineReset,
                share::Adverse::ParallelContext => Kind::MultiLrc,
            };
            self.note(ctx, function, kind);
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
        Ok(0)
    }

    /// Returns context `local` of `function`, which need not be registered. Fails if the function may not use this id:
    /// the ids of a VF are limited to its range (contract C.5, F.1).
    pub fn context_id(&self, function: Function, local: u32) -> Result<GucContextId, Error> {
        self.context_number(function, local)?;
        let local = u16::try_from(local).map_err(|_| Error::InvalidContextIndex)?;
        Ok(GucContextId { function, local })
    }

    /// Returns the number ([`Context::number`](super::context::Context::number)) of context `local` of `function`.
    pub fn context_number(&self, function: Function, local: u32) -> Result<u16, Error> {
        let functions = &self.scheduler.functions;
        let number = match function.is_vf() {
            true => functions[function].config.contexts.global(local),
            false => Some(local),
        };
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
        let sets = [
            (&mut self.pausing, State::Paused { told: false }),
            (&mut self.paused, State::Paused { told: true }),
            (&mut self.resets_pending, State::ResetPending),
        ];
        for (set, member) in sets {
            *set = *set & !function.bit() | if state == member { function.bit() } else { 0 };
        }
    }

    /// Runs one step: handles engine reports and host requests, then schedules.
    pub fn step(&mut self, ctx: &mut GucCtx<'_>, reports: &[EngineReport], notified: u64) -> Step {
        // The PF's CT buffer is checked in every step.
        self.pending |= notified | Function::PF.bit();
        for function in functions(notified) {
            self.note(ctx, function, Kind::HostToGuc);
        }
        let was_busy = self.scheduler.busy();
        for report in reports {
            self.scheduler.report(ctx, report);
        }
        let more = self.take_turns(ctx);
        doorbell::serve(self, ctx);
        action::finish_invalidations(self, ctx);
        control::finish_pauses(self, ctx);
        let notice = control::repeat_notices(self, ctx);
        let next = self.scheduler.schedule(ctx);
        self.note_adverse(ctx);
        let busy = self.scheduler.busy();
        if busy != was_busy {
            self.slpc.show(ctx.gt, busy);
        }
        let mut step = self.send(ctx);
        let retry = match (self.unsent & !self.paused, (self.unread | self.untold) & !self.paused) {
            (0, 0) => None,
            (0, _) => Some(ctx.now.saturating_add(OUT_OF_REACH_PAUSE)),
            _ => Some(ctx.now.saturating_add(RING_FULL_PAUSE)),
        };
        let more = more.then_some(ctx.now);
        step.next = [next, retry, more, notice].into_iter().flatten().min();
        step
    }

    /// Adds queued messages to the channels of their functions, without writing them to memory.
    pub fn post(&mut self, ctx: &mut GucCtx<'_>) {
        for (function, message) in ctx.out.drain(..) {
            if let Some(channel) = &mut self.scheduler.functions[function].client.channel {
                channel.post(message);
                self.unsent |= function.bit();
            }
        }
    }

    /// Writes queued messages to the CT buffers, except those of paused VFs: their memory may be transferred meanwhile.
    /// Returns the functions with new messages.
    pub fn send(&mut self, ctx: &mut GucCtx<'_>) -> Step {
        self.post(ctx);
        let mut step = Step::default();
        for function in functions((self.unsent | self.untold) & !self.paused) {
            let client = &mut self.scheduler.functions[function].client;
            let Some(channel) = &mut client.channel else {
                self.unsent &= !function.bit();
                self.untold &= !function.bit();
                continue;
            };
            let new = channel.flush(&mut ctx.gam(function)) || self.untold & function.bit() != 0;
            let asks = ctx.views.of(function).asks_client();
            if !channel.unsent() || channel.waiting() == 0 && !asks {
                self.unsent &= !function.bit();
            }
            self.untold &= !function.bit();
            if !new {
                continue;
            }
            if client.interrupt.configured() {
                match client.interrupt.write(&mut ctx.gam(function)) {
                    true => step.messages |= function.bit(),
                    false if asks => self.untold |= function.bit(),
                    false => {}
                }
            } else {
                step.interrupts |= function.bit();
            }
        }
        step
    }

    /// Serves the pending functions round-robin, each for a limited number of requests, so that a function with many
    /// requests does not delay the others. Returns whether more requests may be pending.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "a function is below FUNCTIONS, and the turns end at TURNS_A_STEP"
    )]
    fn take_turns(&mut self, ctx: &mut GucCtx<'_>) -> bool {
        let mut blocked = 0;
        let mut turns = 0;
        for _ in 0..FUNCTIONS {
            let function = Function(self.next);
            self.next = (self.next + 1) % byte(FUNCTIONS);
            if self.pending & function.bit() == 0 {
                continue;
            }
            self.pending &= !function.bit();
            ctx.function = function;
            match self.take_requests(ctx, function) {
                Served::Empty => {}
                Served::More => self.pending |= function.bit(),
                Served::Blocked => blocked |= function.bit(),
            }
            turns += 1;
            if turns == TURNS_A_STEP {
                break;
            }
        }
        ctx.function = Function::PF;
        let more = self.pending != 0;
        self.pending |= blocked;
        more
    }

    /// Executes requests from the CT buffer of `function`.
    #[allow(clippy::arithmetic_side_effects, reason = "a 64-bit count does not overflow")]
    fn take_requests(&mut self, ctx: &mut GucCtx<'_>, function: Function) -> Served {
        let of = &mut self.scheduler.functions[function];
        if of.state != State::Running || ctx.gt.memory.is_emptying(function) {
            return Served::Empty;
        }
        self.unread &= !function.bit();
        if of.client.channel.as_ref().is_some_and(|channel| channel.waiting() > 0) {
            return Served::Blocked;
        }
        let Some(mut channel) = of.client.channel.take() else { return Served::Empty };
        let mut room = [0; MAX_DWORDS];
        let before = channel.h2g.offset();
        let mut served = Served::More;
        for _ in 0..REQUESTS_A_TURN {
            match channel.h2g.receive(&mut ctx.own(), &mut room) {
                None => {
                    served = Served::Empty;
                    break;
                }
                Some(request) if request.format != 0 => self.count(function, |counters| counters.malformed += 1),
                Some(request) => self.take_request(ctx, request.fence, request.hxg),
            }
        }
        channel.h2g.publish_head(&mut ctx.own());
        if channel.h2g.out_of_reach(ctx.now) {
            if ctx.views.of(function).asks_client() {
                self.unread |= function.bit();
                served = Served::Blocked;
            } else {
                channel.h2g.give_up();
            }
        }
        if channel.broken() && served == Served::Empty && before != channel.h2g.offset() {
            self.complain(function, format_args!("CT buffers are corrupt"));
        }
        self.of(function).client.channel = Some(channel);
        served
    }

    #[allow(clippy::arithmetic_side_effects, reason = "a 64-bit count does not overflow")]
    fn take_request(&mut self, ctx: &mut GucCtx<'_>, fence: u16, hxg: &[u32]) {
        let function = ctx.function;
        ctx.gt.trace.record(function, || EventKind::Guc { mailbox: false, fence, dwords: hxg.to_vec() });
        let [header, payload @ ..] = hxg else { return };
        let kind = Type::of(*header).filter(|_| header >> 31 == 0);
        let code = action_of(*header);
        let (Some(kind @ (Type::Request | Type::FastRequest | Type::Event)), known) =
            (kind, kind.and_then(|_| action::carry_out(self, ctx, code, payload)))
        else {
            self.count(function, |counters| counters.malformed += 1);
            return;
        };
        let reply = match known {
            Some(reply) => reply,
            None => {
                self.count(function, |counters| counters.unknown += 1);
                self.complain(function, format_args!("action {code:#06x} failed: {:?}", Error::UnknownAction));
                // A sender that expects no reply could not match this error to its request.
                if kind == Type::Request {
                    ctx.tell(function, Outgoing::reply(fence, Err(Error::UnknownAction)));
                }
                return;
            }
        };
        match reply {
            Ok(_) => self.count(function, |counters| counters.done += 1),
            Err(error) => {
                self.count(function, |counters| counters.failed += 1);
                self.complain(function, format_args!("action {code:#06x} failed: {error:?}"));
            }
        }
        match kind {
            Type::Request => ctx.tell(function, Outgoing::reply(fence, reply)),
            Type::FastRequest if reply.is_err() => ctx.tell(function, Outgoing::reply(fence, reply)),
            _ => {}
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
            log::warn!("GuC, function {}: {what}", function.0);
        }
    }
}
