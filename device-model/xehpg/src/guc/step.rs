// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A step of the running GuC kernel: the requests of the functions, the outcomes of their contexts, and the messages to
//! them.

use crate::engine::EngineReport;
use crate::guc::Step;
use crate::guc::actions;
use crate::guc::actions::control;
use crate::guc::functions::client::State;
use crate::guc::functions::share;
use crate::guc::messages::ctb::{Channel, MOST_OUT_OF_REACH};
use crate::guc::messages::hxg::{Error, Header, MAX_DWORDS, Outgoing, Request, Type};
use crate::guc::migration;
use crate::guc::provisioning::threshold_event::Kind;
use crate::guc::scheduler::GucCtx;
use crate::guc::state::GucState;
use crate::host::{FUNCTIONS, Function, functions};
use crate::trace::EventKind;

/// Maximum number of requests taken from one CT buffer before the next function is served.
const REQUESTS_A_TURN: usize = 32;
/// Maximum number of functions served in one step.
const TURNS_A_STEP: usize = 8;
/// Retry interval while a host's CT buffer is full, in nanoseconds.
const RING_FULL_PAUSE: u64 = 200_000;
/// Retry interval while a host's CT buffer is inaccessible, in nanoseconds.
const OUT_OF_REACH_PAUSE: u64 = 2_000_000;

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

impl GucState {
    /// Counts the adverse events that the scheduler has recorded.
    fn count_threshold_events(&mut self, ctx: &mut GucCtx<'_>) {
        for (function, kind) in std::mem::take(&mut self.scheduler.threshold_events) {
            let kind = match kind {
                share::ThresholdEvent::CatError => Kind::CatError,
                share::ThresholdEvent::EngineReset => Kind::EngineReset,
                share::ThresholdEvent::ParallelContext => Kind::MultiLrc,
            };
            self.note(ctx, function, kind);
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
        self.scheduler.check_again(ctx);
        let more = self.take_turns(ctx);
        self.serve_doorbells(ctx);
        actions::finish_invalidations(self, ctx);
        let mut step = migration::finish_starts(self, ctx);
        step.merge(control::finish_pauses(self, ctx));
        let notice = control::repeat_notices(self, ctx);
        let next = self.scheduler.schedule(ctx);
        self.count_threshold_events(ctx);
        let busy = self.scheduler.busy();
        if busy != was_busy {
            self.slpc.show(ctx.gt, busy);
        }
        step.merge(self.flush(ctx));
        migration::signal_moves_again(self, ctx);
        step.messages |= std::mem::take(&mut self.raised);
        // From the end of the step, which may have waited for a client for longer than the pause.
        let ended = ctx.gt.clock.now();
        let out_of_reach = (self.inaccessible | self.unnotified) & !self.withheld
            | self.unanswered_mailboxes
            | self.unsignalled
            | self.scheduler.unchecked();
        let retry = match (self.unsent & !self.withheld, out_of_reach) {
            (0, 0) => None,
            (0, _) => Some(ended.saturating_add(OUT_OF_REACH_PAUSE)),
            _ => Some(ended.saturating_add(RING_FULL_PAUSE)),
        };
        let more = more.then_some(ctx.now);
        step.next = [next, retry, more, notice].into_iter().flatten().min();
        step
    }

    /// Schedules the contexts of the doorbells that have rung, as SCHED_CONTEXT does.
    pub fn serve_doorbells(&mut self, ctx: &mut GucCtx<'_>) {
        for index in ctx.gt.doorbells.take_rung().iter() {
            let Some(context) = self.doorbells.bound(index) else { continue };
            self.note(ctx, context.function, Kind::Doorbell);
            // The context may have been dropped; such rings are ignored.
            if self.scheduler.owned(context).is_ok() {
                let _ = self.scheduler.submit(ctx, context);
            }
        }
    }

    fn channel(&mut self, function: Function) -> Option<&mut Channel> {
        self.of(function).client.channel.as_mut()
    }

    /// Adds queued messages to the channels of their functions, without writing them to memory.
    pub fn post(&mut self, ctx: &mut GucCtx<'_>) {
        for (function, message) in ctx.out.drain(..) {
            if let Some(channel) = self.channel(function) {
                channel.post(message);
                self.unsent |= function.bit();
            }
        }
    }

    /// Writes queued messages to the CT buffers, except those of paused and moved VFs: their memory may be transferred meanwhile.
    /// Returns the functions with new messages.
    fn flush(&mut self, ctx: &mut GucCtx<'_>) -> Step {
        self.post(ctx);
        let mut step = Step::default();
        for function in functions((self.unsent | self.unnotified) & !self.withheld) {
            step.merge(self.flush_to(ctx, function));
        }
        step
    }

    /// Writes queued messages to the CT buffer of `function`.
    fn flush_to(&mut self, ctx: &mut GucCtx<'_>, function: Function) -> Step {
        let mut step = Step::default();
        let client = &mut self.scheduler.functions[function].client;
        let Some(channel) = &mut client.channel else {
            self.unsent &= !function.bit();
            self.unnotified &= !function.bit();
            return step;
        };
        let new = channel.flush(&mut ctx.gam(function)) || self.unnotified & function.bit() != 0;
        let via_client = ctx.views.of(function).may_wait_for_client();
        // Messages wait for space in the ring. If only the tail could not be written, a client may answer later; other memory
        // stays inaccessible.
        if !channel.unsent() || channel.waiting() == 0 && !via_client {
            self.unsent &= !function.bit();
        }
        self.unnotified &= !function.bit();
        if !new {
            return step;
        }
        if client.interrupt.configured() {
            if client.interrupt.write(&mut ctx.gam(function)) {
                step.messages |= function.bit();
            } else if via_client {
                self.unnotified |= function.bit();
            }
        } else {
            step.interrupts |= function.bit();
        }
        step
    }

    /// Writes the messages for requests of `function` to its CT buffer. Returns also whether none is left; none of its
    /// contexts may be on an engine, because it would cause further ones.
    pub fn settle_up(&mut self, ctx: &mut GucCtx<'_>, function: Function) -> (Step, bool) {
        self.post(ctx);
        let step = self.flush_to(ctx, function);
        let unsent = (self.unsent | self.unnotified) & function.bit() != 0;
        (step, !unsent && self.of(function).client.invalidations.is_empty())
    }

    /// Serves the pending functions round-robin, each for a limited number of requests, so that a function with many
    /// requests does not delay the others. Returns whether more requests may be pending.
    #[allow(clippy::arithmetic_side_effects, reason = "the turns end at TURNS_A_STEP")]
    fn take_turns(&mut self, ctx: &mut GucCtx<'_>) -> bool {
        let mut blocked = 0;
        let mut turns = 0;
        for _ in 0..FUNCTIONS {
            let function = self.next;
            self.next = function.next();
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
        let of = self.of(function);
        if of.state != State::Running || ctx.gt.memory.is_emptying(function) {
            return Served::Empty;
        }
        self.inaccessible &= !function.bit();
        let Some(channel) = self.channel(function) else { return Served::Empty };
        if channel.waiting() > 0 {
            return Served::Blocked;
        }
        let mut room = [0; MAX_DWORDS];
        let before = channel.h2g.offset();
        let mut served = Served::More;
        for _ in 0..REQUESTS_A_TURN {
            // Not held over a request: its handler may post messages.
            let Some(channel) = self.channel(function) else { return Served::Empty };
            let request_at = channel.h2g.offset();
            match channel.h2g.receive(&mut ctx.own(), &mut room) {
                None => {
                    served = Served::Empty;
                    break;
                }
                // Only format 0, HXG, exists.
                Some(request) if request.format != 0 => self.count(function, |counters| counters.malformed += 1),
                Some(request) => {
                    if !self.take_request(ctx, request.fence, request.hxg) {
                        if let Some(channel) = self.channel(function) {
                            channel.h2g.put_back(request_at);
                        }
                        self.inaccessible |= function.bit();
                        served = Served::Blocked;
                        break;
                    }
                    self.of(function).messages += 1;
                }
            }
        }
        let Some(channel) = self.channel(function) else { return Served::Empty };
        channel.h2g.publish_head(&mut ctx.own());
        let failed = channel.h2g.out_of_reach(ctx.now);
        let retries = failed && ctx.views.of(function).may_wait_for_client();
        if failed && !retries {
            channel.h2g.give_up();
        }
        let is_corrupt = channel.broken() && before != channel.h2g.offset();
        if retries {
            self.inaccessible |= function.bit();
            return Served::Blocked;
        }
        if is_corrupt && served == Served::Empty {
            self.complain(function, format_args!("CT buffers are corrupt"));
        }
        served
    }

    /// Executes a request. Returns false if it has failed because the function's client does not answer an access, and must
    /// be executed again: a handler changes nothing before its accesses.
    #[allow(clippy::arithmetic_side_effects, reason = "a 64-bit count does not overflow")]
    fn take_request(&mut self, ctx: &mut GucCtx<'_>, fence: u16, hxg: &[u32]) -> bool {
        let function = ctx.function;
        ctx.gt.trace.record(function, || EventKind::Guc { mailbox: false, fence, dwords: hxg.to_vec() });
        let [header, payload @ ..] = hxg else { return true };
        let header = Header::from(*header);
        let (kind, code) = (header.kind_from_host(), header.code());
        let (Some(kind @ (Type::Request | Type::FastRequest | Type::Event)), known) =
            (kind, kind.and_then(|_| actions::carry_out(self, ctx, Request { header, payload })))
        else {
            self.count(function, |counters| counters.malformed += 1);
            return true;
        };
        let reply = match known {
            Some(reply) => reply,
            None => {
                self.count(function, |counters| counters.unknown += 1);
                self.complain(function, format_args!("action {code:#06x} failed: {:?}", Error::UnknownAction));
                // A sender that expects no reply could not match this error to its request.
                if kind == Type::Request {
                    ctx.send_message(function, Outgoing::reply(fence, Err(Error::UnknownAction)));
                }
                return true;
            }
        };
        let repeats = &mut self.of(function).repeats;
        if reply.is_err() && ctx.views.of(function).unanswered() && repeats.may_repeat(ctx.now, MOST_OUT_OF_REACH) {
            return false;
        }
        repeats.end();
        match reply {
            Ok(_) => self.count(function, |counters| counters.done += 1),
            Err(error) => {
                self.count(function, |counters| counters.failed += 1);
                self.complain(function, format_args!("action {code:#06x} failed: {error:?}"));
            }
        }
        let reply = reply.map(|answer| answer.data0);
        match kind {
            Type::Request => ctx.send_message(function, Outgoing::reply(fence, reply)),
            Type::FastRequest if reply.is_err() => ctx.send_message(function, Outgoing::reply(fence, reply)),
            _ => {}
        }
        true
    }
}
