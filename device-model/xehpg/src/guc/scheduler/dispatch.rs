// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Loading and unloading of contexts on engines.

use arctic_sriov::number::{byte, low};

use super::*;
use crate::compute::Owner;

/// Maximum number of a function's contexts that are checked again in one step.
const CHECKS_A_STEP: usize = 32;

impl Scheduler {
    /// Checks whether a context has new work. If so, notifies its engines or queues it.
    #[allow(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        reason = "`at` is below the number of members, a base below MAX_LOGICAL, and there is a slot for each engine"
    )]
    pub(super) fn check_for_work(&mut self, ctx: &mut GucCtx<'_>, id: GucContextId) {
        let Some(context) = self.functions.context_mut(id) else { return };
        if !context.enabled {
            return;
        }
        let mut failed = false;
        if let Some(work_queue) = &mut context.work_queue {
            failed = work_queue.consume(&mut ctx.gam(id.function), id.local, &context.members).is_err();
        }
        for at in 0..context.members.len() {
            let member = &mut context.members[at];
            if !member.loaded {
                // If the context image cannot be read, there is nothing to run.
                match member.ring_has_work(&mut ctx.gam(id.function)) {
                    Ok(work) => member.ready |= work,
                    Err(_) => failed = true,
                }
                continue;
            }
            let Home::Placed(base) = context.home else { continue };
            let Some(engine) = self.ads.map.engine(context.class, usize::from(base) + at) else { continue };
            let ticket = self.slots[engine.index()].ticket;
            let mut streamer = ctx.engines.lock(engine);
            if streamer.loaded().is_some_and(|load| load.context == ticket) {
                streamer.tail_moved();
                ctx.engines.set_runnable(engine, true);
            } else {
                // The context has left the engine, and its report is pending.
                member.ready = true;
            }
        }
        if failed && ctx.views.of(id.function).unanswered() {
            self.functions[id.function].unchecked.insert(id.local);
            self.unchecked |= id.function.bit();
        }
        self.go_on(ctx, id, ctx.now);
    }

    /// Functions (one bit each) that are served and have contexts to check again. Memory of the others may be transferred
    /// meanwhile.
    pub fn unchecked(&self) -> u64 {
        let served = functions(self.unchecked).filter(|function| self.functions[*function].state == State::Running);
        served.fold(0, |set, function| set | function.bit())
    }

    /// Checks again the contexts whose memory could not be accessed because the function's client did not answer.
    pub fn check_again(&mut self, ctx: &mut GucCtx<'_>) {
        for function in functions(self.unchecked()) {
            self.check_again_of(ctx, function);
            if self.functions[function].unchecked.is_empty() {
                self.unchecked &= !function.bit();
            }
        }
    }

    /// Checks again a limited number of the function's contexts, up to one for which the client does not answer. After a
    /// limited time without an answer, all of them are given up.
    fn check_again_of(&mut self, ctx: &mut GucCtx<'_>, function: Function) {
        for _ in 0..CHECKS_A_STEP {
            let Some(local) = self.functions[function].unchecked.pop_first() else { return };
            self.check_for_work(ctx, GucContextId { function, local });
            let of = &mut self.functions[function];
            if !of.unchecked.contains(&local) {
                of.checks.end();
                continue;
            }
            if !of.checks.may_repeat(ctx.now, MOST_OUT_OF_REACH) {
                of.unchecked.clear();
                of.checks.end();
            }
            return;
        }
    }

    /// Queues a context that has work, or loads it if it already holds its engines.
    pub(super) fn go_on(&mut self, ctx: &mut GucCtx<'_>, id: GucContextId, eligible_at: u64) {
        let of = &mut self.functions[id.function];
        let Some(context) = of.contexts.get_mut(&id.local) else { return };
        if of.paused || !context.enabled || !context.members.iter().any(|member| member.ready) {
            return;
        }
        match context.home {
            Home::Queued => {}
            Home::Rest => {
                context.home = Home::Queued;
                let (mask, width) = (context.mask, byte(context.members.len()));
                let entry = Entry { context: id.local, mask, width, eligible_at };
                let (class, priority) = (context.class, context.policies.priority);
                self.functions.queue(id.function, class, |queue| queue.push(priority, entry));
            }
            Home::Placed(base) => self.load(ctx, id, base),
        }
    }

    /// Loads the members that have work onto the engines that the context holds.
    #[allow(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        reason = "an instance and a member are below MAX_LOGICAL, and there is a slot for each engine"
    )]
    pub(super) fn load(&mut self, ctx: &mut GucCtx<'_>, id: GucContextId, base: u8) {
        let Some(context) = self.functions.context(id) else { return };
        let (class, width, number, quantum) =
            (context.class, context.members.len(), context.number, context.policies.quantum);
        let map = self.ads.map;
        let engine_of = |at| map.engine(class, usize::from(base) + at);
        let leaving = |engine: EngineId| self.slots[engine.index()].leaving;
        if (0..width).any(|at| engine_of(at).is_some_and(leaving)) {
            return;
        }
        let members = match width {
            1 => 0,
            _ => (0..width).filter_map(engine_of).fold(0, |set, engine| set | engine.bit()),
        };
        for at in 0..width {
            let Some(engine) = engine_of(at) else { continue };
            let slot = &mut self.slots[engine.index()];
            if !slot.held {
                let slice_end = match quantum {
                    0 => None,
                    quantum => Some(ctx.time(engine).saturating_add(quantum)),
                };
                let context = Some(id);
                *slot = EngineSlot { context, member: byte(at), held: true, slice_end, ..EngineSlot::default() };
            }
            let member = self.functions.context_mut(id).and_then(|context| context.members.get_mut(at));
            let Some(member) = member.filter(|member| !member.loaded && member.ready) else { continue };
            self.loads = self.loads.wrapping_add(1);
            let ticket = u32::from(self.loads) << 16 | u32::from(number);
            slot.ticket = ticket;
            slot.loaded = true;
            member.loaded = true;
            member.ready = false;
            // The engine's status words contain the function's own id of the context (V8-031, V8-060).
            let (low, count) = (low(member.descriptor), (self.loads & 0xff) as u8);
            let descriptor = Descriptor::named(low, id.local, count, id.function.number()).into();
            let load = Load { function: id.function, submitter: Submitter::Guc, context: ticket, descriptor, members };
            let mut streamer = ctx.engines.lock(engine);
            if streamer.loaded().is_some() {
                // A submitter other than the scheduler has loaded a context on this engine.
                streamer.reset(ctx.gt);
            }
            streamer.load(ctx.gt, load);
            ctx.engines.set_runnable(engine, true);
            drop(streamer);
            let (loaded, tick) = ((id.function, u32::from(number)), ctx.gt.generation.timebase.ticks(ctx.now));
            self.occupy(ctx, engine, Some(id.function), engine);
            self.activity.switch(&mut ctx.gam(Function::PF), &mut self.functions, (engine, Some(loaded)), tick);
        }
    }

    /// Removes a context from the queue, or requests its preemption. Completes immediately if the context is on no
    /// engine.
    pub(super) fn take_off(&mut self, ctx: &mut GucCtx<'_>, id: GucContextId) {
        let Some(context) = self.functions.context_mut(id) else { return };
        match context.home {
            Home::Rest => {}
            Home::Queued => {
                context.home = Home::Rest;
                let class = context.class;
                self.functions.queue(id.function, class, |queue| queue.remove(id.local));
            }
            Home::Placed(_) => {
                let timeout = context.policies.preemption_timeout;
                self.preempt_context(ctx, id, timeout);
            }
        }
        self.settle(ctx, id, ctx.now);
    }

    /// Requests preemption of a context on all of its engines within `timeout` ns of engine time (0: no limit).
    #[allow(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        reason = "an instance and a member are below MAX_LOGICAL, and there is a slot for each engine"
    )]
    pub(super) fn preempt_context(&mut self, ctx: &mut GucCtx<'_>, id: GucContextId, timeout: u64) {
        let Some(context) = self.functions.context(id) else { return };
        let Home::Placed(base) = context.home else { return };
        for at in 0..context.members.len() {
            let Some(engine) = self.ads.map.engine(context.class, usize::from(base) + at) else { continue };
            let leave_by = match timeout {
                0 => None,
                timeout => Some(ctx.time(engine).saturating_add(timeout.max(LEAST_PREEMPTION_TIMEOUT))),
            };
            let slot = &mut self.slots[engine.index()];
            slot.leave(leave_by);
            slot.waiting &= ctx.engines.waiting(engine);
            if !slot.loaded {
                continue;
            }
            let mut streamer = ctx.engines.lock(engine);
            if streamer.loaded().is_some_and(|load| load.context == slot.ticket) {
                streamer.request_preemption();
                ctx.engines.set_runnable(engine, true);
            }
        }
    }

    /// Releases the engines of a context that is no longer loaded on any engine, and sends the notifications that the
    /// host waits for.
    #[allow(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        reason = "an instance and a member are below MAX_LOGICAL, and there is a slot for each engine"
    )]
    pub(super) fn settle(&mut self, ctx: &mut GucCtx<'_>, id: GucContextId, eligible_at: u64) {
        let Some(context) = self.functions.context_mut(id) else { return };
        if context.members.iter().any(|member| member.loaded) {
            return;
        }
        if let Home::Placed(base) = context.home {
            for at in 0..context.members.len() {
                if let Some(engine) = self.ads.map.engine(context.class, usize::from(base) + at) {
                    self.slots[engine.index()] = EngineSlot::default();
                }
            }
            context.home = Home::Rest;
        }
        if std::mem::take(&mut context.disabling) {
            ctx.send_message(id.function, Outgoing::event(SCHED_CONTEXT_MODE_DONE, &[u32::from(id.local), 0]));
        }
        if context.deregistering {
            for member in &context.members {
                let page = Descriptor::from(member.descriptor).lrca();
                ctx.gt.parked.drop_context(Owner { function: id.function, page });
            }
            let class = context.class;
            if context.home == Home::Queued {
                self.functions.queue(id.function, class, |queue| queue.remove(id.local));
            }
            self.functions[id.function].contexts.remove(&id.local);
            ctx.send_message(id.function, Outgoing::event(DEREGISTER_CONTEXT_DONE, &[u32::from(id.local)]));
            return;
        }
        self.go_on(ctx, id, eligible_at);
    }
}
