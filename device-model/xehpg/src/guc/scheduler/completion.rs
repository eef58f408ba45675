// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Handling of engine reports, and resets of contexts that are halted or exceed their preemption timeout.
#![allow(
    clippy::indexing_slicing,
    reason = "there are a slot and a port for each engine, and the payload has two dwords"
)]

use arctic_sriov::number::low;

use super::*;
use crate::engine::skipped::{MOST_WARNINGS, SkippedCommand};

/// Drains the engine's context-status FIFO (V8-060). Returns whether the reported context left before it was complete.
/// A context removed without a switch has no entry; the outcome of the report is used then.
fn left_unfinished(ctx: &GucCtx<'_>, report: &EngineReport) -> bool {
    let port = &ctx.gt.csb_ports[report.engine.index()];
    let away = report.load.descriptor().id();
    let entries = (0..port.waiting()).filter_map(|_| port.take());
    let left = entries.filter(|status| status.away() == away).last();
    left.map_or(report.outcome == Outcome::Preempted, |status| status.detail() != 0)
}

impl Scheduler {
    /// Handles the report of an engine.
    #[allow(clippy::arithmetic_side_effects, reason = "a 64-bit count does not overflow")]
    pub fn report(&mut self, ctx: &mut GucCtx<'_>, report: &EngineReport) {
        // A report of a skipped command follows no switch.
        let unfinished = report.outcome != Outcome::More && left_unfinished(ctx, report);
        let slot = &mut self.slots[report.engine.index()];
        if !slot.loaded || slot.ticket != report.load.context {
            return;
        }
        let Some(id) = slot.context else { return };
        if let Some(skipped) = report.skipped {
            self.note_skipped(ctx, id, report.engine, skipped);
        }
        let slot = &mut self.slots[report.engine.index()];
        match report.outcome {
            Outcome::More => {}
            Outcome::Waiting | Outcome::Spinning => {
                slot.waiting = true;
                slot.spins = report.outcome == Outcome::Spinning;
                self.release_switch_out(ctx, report.engine);
            }
            Outcome::Idle | Outcome::Complete | Outcome::Preempted => self.off(ctx, report.engine, unfinished),
            // Already handled; the engine was stepped again because the host submitted more work.
            Outcome::Halted(_) if slot.stuck => {}
            Outcome::Halted(halt) => {
                let GucContextId { function, local } = id;
                log::debug!(
                    "context {local} of function {} on {}: {halt:?}",
                    function.number(),
                    ctx.gt.engine(report.engine).name
                );
                if matches!(halt, Halt::Fault(_)) && self.functions.context(id).is_some() {
                    let of = &mut self.functions[function];
                    of.cat_errors += 1;
                    let payload = [u32::from(local), CAT_ERROR_TYPE_UNKNOWN];
                    let len = if of.client.cat_error_type { 2 } else { 1 };
                    self.threshold_events.push((function, ThresholdEvent::CatError));
                    ctx.send_message(function, Outgoing::event(NOTIFY_MEMORY_CAT_ERROR, &payload[..len]));
                }
                // A bug in the device model leaves the engine empty, so there is no context to preserve.
                if self.ads.engine_reset_disabled && halt != Halt::Bug {
                    self.slots[report.engine.index()].stuck = true;
                } else {
                    self.reset_context(ctx, id);
                }
            }
        }
    }

    /// Notes that a command of user space in the context was skipped. The first of a context is counted and logged, for
    /// [`MOST_WARNINGS`] contexts of a function per boot of the GuC.
    #[allow(clippy::arithmetic_side_effects, reason = "a 64-bit count does not overflow")]
    fn note_skipped(&mut self, ctx: &GucCtx<'_>, id: GucContextId, engine: EngineId, skipped: SkippedCommand) {
        let Some(context) = self.functions.context_mut(id) else { return };
        if std::mem::replace(&mut context.skipped, true) {
            return;
        }
        let GucContextId { function, local } = id;
        let of = &mut self.functions[function];
        of.skipped_contexts += 1;
        ctx.gt.skipped(function).count_context();
        if of.skipped_contexts <= MOST_WARNINGS {
            skipped.warn(function, ctx.gt.engine(engine).name, format_args!("context {local}"));
        }
    }

    /// Clears the semaphore at which i915's compute contexts wait before they switch out (contract G.5).
    pub(super) fn release_switch_out(&mut self, ctx: &mut GucCtx<'_>, engine: EngineId) {
        let slot = self.slots[engine.index()];
        if !self.hold_compute || ctx.gt.engine(engine).class != EngineClass::Compute {
            return;
        }
        if let Some(id) = slot.context
            && let Some(context) = self.functions.context(id)
            && let Some(member) = context.members.get(usize::from(slot.member))
            && member.release_switch_out(&mut ctx.gam(id.function)) == Ok(true)
        {
            self.slots[engine.index()].waiting = false;
            ctx.engines.set_runnable(engine, true);
        }
    }

    /// Handles a member that has left its engine.
    pub(super) fn off(&mut self, ctx: &mut GucCtx<'_>, engine: EngineId, unfinished: bool) {
        let slot = &mut self.slots[engine.index()];
        let pauses = slot.waiting && !(slot.spins && slot.evicted);
        let eligible_at = if pauses { ctx.now.saturating_add(WAIT_PAUSE) } else { ctx.now };
        slot.loaded = false;
        slot.waiting = false;
        let (Some(id), member) = (slot.context, usize::from(slot.member)) else { return };
        self.emptied(ctx, engine);
        let Some(context) = self.functions.context_mut(id) else { return };
        if let Some(member) = context.members.get_mut(member) {
            member.loaded = false;
            member.ready |= unfinished;
        }
        if context.members.iter().any(|member| member.loaded) {
            // Other members still run. A member with new work is loaded again alongside them.
            self.go_on(ctx, id, ctx.now);
        } else {
            self.settle(ctx, id, eligible_at);
        }
    }

    pub(super) fn emptied(&mut self, ctx: &mut GucCtx<'_>, engine: EngineId) {
        self.occupy(ctx, engine, None, engine);
        let tick = ctx.gt.generation.timebase.ticks(ctx.now);
        self.activity.switch(&mut ctx.gam(Function::PF), &mut self.functions, (engine, None), tick);
    }

    pub(super) fn reset_engine(&mut self, ctx: &mut GucCtx<'_>, engine: EngineId) {
        let ticket = self.slots[engine.index()].ticket;
        ctx.gt.awake_for_guc(engine, || {
            let mut streamer = ctx.engines.lock(engine);
            if streamer.loaded().is_some_and(|load| load.context == ticket) {
                streamer.reset(ctx.gt);
                ctx.engines.set_runnable(engine, false);
            }
        });
        self.slots[engine.index()].loaded = false;
        self.emptied(ctx, engine);
    }

    /// Captures the state of the engines on which a context is loaded.
    pub(super) fn note_state(&self, ctx: &mut GucCtx<'_>, id: GucContextId) {
        // The log and its lists belong to the PF, and the PF driver only searches them for its own contexts.
        let Some(context) = self.functions.context(id).filter(|_| !id.function.is_vf()) else { return };
        let on = |engine: &EngineId| {
            let slot = &self.slots[engine.index()];
            slot.loaded && slot.context == Some(id)
        };
        let hung = ctx.gt.generation.engines.all().filter(on).filter_map(|engine| {
            let member = context.members.get(usize::from(self.slots[engine.index()].member))?;
            Some(Hung { engine, lrca: low(member.descriptor) & !0xfff, context: u32::from(id.local) })
        });
        let hung: Vec<Hung> = hung.collect();
        if let Some(status) = self.capture.write(ctx.gt, &mut ctx.gam(Function::PF), &hung) {
            ctx.send_message(Function::PF, Outgoing::event(STATE_CAPTURE_NOTIFICATION, &[status as u32]));
        }
    }

    /// Resets the engines on which a context is loaded. The context is not scheduled again until the host enables it
    /// (i915: guc_context_replay). Contexts of the same function on other engines of the reset domain are preempted, and
    /// reset if they do not leave (IGT: gem_reset_stats@shared-reset-domain). Those of other functions are not affected:
    /// the engines of this card share no state, so one function does not end the work of another.
    #[allow(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        reason = "an instance and a member are below MAX_LOGICAL; there is a slot for each engine; a count has 64 bits; a \
                  bit of GDRST is below 32"
    )]
    pub(super) fn reset_context(&mut self, ctx: &mut GucCtx<'_>, id: GucContextId) {
        self.note_state(ctx, id);
        log::debug!("context {} of function {} is reset", id.local, id.function.number());
        let Some(context) = self.functions.context_mut(id) else { return };
        context.enabled = false;
        let (class, home, width) = (context.class, context.home, context.members.len());
        for member in &mut context.members {
            member.loaded = false;
            member.ready = false;
        }
        let mut domains: u32 = 0;
        if let Home::Placed(base) = home {
            for at in 0..width {
                if let Some(engine) = self.ads.map.engine(class, usize::from(base) + at)
                    && self.slots[engine.index()].loaded
                {
                    self.reset_engine(ctx, engine);
                    domains |= 1 << ctx.gt.engine(engine).reset;
                }
            }
        }
        self.vacate(ctx, id, domains);
        self.threshold_events.push((id.function, ThresholdEvent::EngineReset));
        self.functions[id.function].engine_resets += 1;
        ctx.send_message(id.function, Outgoing::event(CONTEXT_RESET_NOTIFICATION, &[u32::from(id.local)]));
        self.settle(ctx, id, ctx.now);
    }

    /// Requests preemption of the contexts of the function of `reset`, except `reset` itself, on all engines of the reset
    /// domains in `domains` (bits of GDRST). Those that have not left after the minimum timeout are reset.
    fn vacate(&mut self, ctx: &mut GucCtx<'_>, reset: GucContextId, domains: u32) {
        for engine in ctx.gt.generation.engines.all() {
            let slot = self.slots[engine.index()];
            let victim = slot.context.filter(|other| *other != reset && other.function == reset.function);
            if slot.loaded
                && domains >> ctx.gt.engine(engine).reset & 1 != 0
                && let Some(victim) = victim
            {
                self.preempt_context(ctx, victim, LEAST_PREEMPTION_TIMEOUT);
            }
        }
    }

    /// Resets each engine on which a context has exceeded its preemption timeout.
    pub(super) fn expire(&mut self, ctx: &mut GucCtx<'_>) {
        for engine in ctx.gt.generation.engines.all() {
            if self.time_to_leave(ctx, engine) != Some(0) {
                continue;
            }
            let slot = self.slots[engine.index()];
            let Some(id) = slot.context else { continue };
            let there = ctx.engines.lock(engine).loaded().is_some_and(|load| load.context == slot.ticket);
            if there {
                self.reset_context(ctx, id);
            } else {
                // The context has left the engine, and its report is pending.
                self.slots[engine.index()].leave_by = None;
            }
        }
    }

    /// Returns the remaining time until the preemption deadline of the context on an engine, in ns of engine time;
    /// `None` if there is no deadline. Returns 0 for a halted context, because it reaches no arbitration point and its
    /// steps do not advance engine time.
    pub(super) fn time_to_leave(&self, ctx: &GucCtx<'_>, engine: EngineId) -> Option<u64> {
        let slot = &self.slots[engine.index()];
        let leave_by = slot.leave_by.filter(|_| slot.loaded && !self.ads.engine_reset_disabled)?;
        Some(if slot.stuck { 0 } else { leave_by.saturating_sub(ctx.time(engine)) })
    }
}
