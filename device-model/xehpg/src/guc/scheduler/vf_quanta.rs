// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Time sharing of the engines: selects the function that owns the current turn of each engine, and which of that
//! function's contexts run.
//!
//! If only one function has contexts for a class, there are no turns. Otherwise each engine has separate turns, so that
//! engines can run different functions at the same time (V13-039). The members of a parallel context need several
//! engines at the same time. If such a context exists, all engines of the class follow the turns of the first engine.
#![allow(
    clippy::indexing_slicing,
    reason = "there are a slot and a rotation for each engine; a class is below CLASSES and has MAX_LOGICAL instances"
)]

use arctic_sriov::number::byte;

use super::*;

/// Function that owns the current turn of each logical instance of a class.
type Turns = [Option<Function>; MAX_LOGICAL];

impl Scheduler {
    /// Dispatches queued contexts to the engines. Returns the time by which it must be called again.
    pub fn schedule(&mut self, ctx: &mut GucCtx<'_>) -> Option<u64> {
        self.expire(ctx);
        if !std::mem::replace(&mut self.shares_recorded, true) {
            self.activity.set_shares(&mut ctx.gam(Function::PF), &mut self.functions);
        }
        let mut next = None;
        for class in EngineClass::BY_GUC {
            next = earlier(next, self.share_out(ctx, class));
        }
        next = earlier(next, self.end_slices(ctx));
        let left = ctx.gt.generation.engines.all().filter_map(|engine| self.time_to_leave(ctx, engine)).min();
        earlier(next, left.map(|left| not_before(ctx.now, left)))
    }

    /// Preempts contexts whose time slice has ended and which must leave then even if no other context waits
    /// ([`Policies::preempt_to_idle`]). Returns the time at which the next such slice may end.
    ///
    /// [`Policies::preempt_to_idle`]: crate::guc::functions::context::Policies::preempt_to_idle
    fn end_slices(&mut self, ctx: &mut GucCtx<'_>) -> Option<u64> {
        let mut next = None;
        for engine in ctx.gt.generation.engines.all() {
            let slot = &self.slots[engine.index()];
            let Some(id) = slot.context.filter(|_| slot.loaded && !slot.leaving) else { continue };
            let Some(context) = self.functions.context(id).filter(|context| context.policies.preempt_to_idle) else {
                continue;
            };
            match slot.slice_left(ctx.time(engine)) {
                Some(0) => {
                    let timeout = context.policies.preemption_timeout;
                    self.preempt_context(ctx, id, timeout);
                }
                left => next = earlier(next, left.map(|left| not_before(ctx.now, left))),
            }
        }
        next
    }

    fn share_out(&mut self, ctx: &mut GucCtx<'_>, class: EngineClass) -> Option<u64> {
        let queued = self.functions.waiting(class);
        if queued == 0 && self.reserved == 0 {
            // No context is queued for this class, and no function keeps its turn without work.
            self.relax(ctx, class);
            return None;
        }
        let placed = self.engines_of(class).filter_map(|(_, engine)| self.slots[engine.index()].function());
        let present = placed.fold(queued, |set, function| set | function.bit());
        let competing = if present == 0 { 0 } else { present | self.reserved };
        if competing.count_ones() > 1 {
            return self.take_turns(ctx, class);
        }
        self.relax(ctx, class);
        let alone = functions(queued).next()?;
        let places = std::array::from_fn(|logical| self.place(ctx, class, logical));
        self.fill(ctx, class, alone, &places, true)
    }

    fn engines_of(&self, class: EngineClass) -> impl Iterator<Item = (usize, EngineId)> + use<> {
        let map = self.ads.map;
        (0..MAX_LOGICAL).filter_map(move |logical| Some((logical, map.engine(class, logical)?)))
    }

    /// Ends the rotation of a class that at most one function uses.
    fn relax(&mut self, ctx: &GucCtx<'_>, class: EngineClass) {
        if !std::mem::take(&mut self.rotating[usize::from(class.guc())]) {
            return;
        }
        for (_, engine) in self.engines_of(class) {
            self.occupy(ctx, engine, self.slots[engine.index()].occupant(), engine);
            let rotation = &mut self.rotations[engine.index()];
            rotation.relax(ctx.moment(rotation), &mut self.functions);
        }
    }

    /// Schedules a class for which several functions compete, or in which functions keep their turns without work.
    fn take_turns(&mut self, ctx: &mut GucCtx<'_>, class: EngineClass) -> Option<u64> {
        self.rotating[usize::from(class.guc())] = true;
        let wide = self.functions.has_wide(class) || self.engines_of(class).any(|(_, engine)| self.has_wide(engine));
        let (turns, mut next) = self.turns(ctx, class, wide);
        self.evict(ctx, class, &turns);
        for function in functions(self.functions.waiting(class)) {
            let places = self.places_of(ctx, class, &turns, function);
            if places.iter().any(|place| *place != InstanceState::Absent) {
                next = earlier(next, self.fill(ctx, class, function, &places, false));
            }
        }
        if self.reserved == 0 {
            self.fill_unclaimed(ctx, class, &turns);
        }
        for function in functions(self.functions.waiting(class)) {
            next = earlier(next, self.functions.queue(function, class, |queue| queue.wakes_at()));
        }
        if wide {
            self.charge_late_contexts(ctx, class);
        }
        next
    }

    /// Returns whether a parallel context holds the engine.
    fn has_wide(&self, engine: EngineId) -> bool {
        let slot = &self.slots[engine.index()];
        slot.held && self.context_on(slot).is_some_and(|context| context.members.len() > 1)
    }

    /// Ends turns that are over and starts the next ones. Also returns the time by which the turns must be checked
    /// again.
    fn turns(&mut self, ctx: &mut GucCtx<'_>, class: EngineClass, together: bool) -> (Turns, Option<u64>) {
        let mut wants = [0u64; MAX_LOGICAL];
        for function in functions(self.functions.waiting(class)) {
            let reach = self.functions.queue(function, class, |queue| queue.reach(ctx.now));
            for (_, wants) in wants.iter_mut().enumerate().filter(|(logical, _)| reach >> logical & 1 != 0) {
                *wants |= function.bit();
            }
        }
        for (logical, engine) in self.engines_of(class) {
            let slot = &self.slots[engine.index()];
            if let Some(function) = slot.function().filter(|_| slot.works(ctx.engines.waiting(engine))) {
                wants[logical] |= function.bit();
            }
        }
        let mut turns = [None; MAX_LOGICAL];
        let mut next = None;
        let mut lead = None;
        for (logical, engine) in self.engines_of(class) {
            let rotation = &mut self.rotations[engine.index()];
            let now = ctx.moment(rotation);
            if let Some((owner, contended)) = lead {
                rotation.follow(now, owner, contended, &mut self.functions);
                turns[logical] = owner;
                continue;
            }
            let wants = if together { wants.iter().fold(0, |all, set| all | set) } else { wants[logical] };
            turns[logical] = rotation.turn(now, wants, self.reserved, &mut self.functions);
            next = earlier(next, rotation.left(&self.functions).map(|left| not_before(ctx.now, left)));
            lead = together.then_some((turns[logical], rotation.contended()));
        }
        (turns, next)
    }

    /// Requests preemption on engines where another function owns the turn.
    fn evict(&mut self, ctx: &mut GucCtx<'_>, class: EngineClass, turns: &Turns) {
        for (logical, engine) in self.engines_of(class) {
            let slot = self.slots[engine.index()];
            let (Some(context), Some(owner)) = (slot.context, turns[logical]) else { continue };
            if context.function != owner && !slot.evicted {
                self.preempt_context(ctx, context, self.share(context.function).preemption_timeout);
                for (_, engine) in self.engines_of(class) {
                    let other = &mut self.slots[engine.index()];
                    other.evicted |= other.held && other.context == Some(context);
                }
            }
        }
    }

    /// Returns the instances of a class that `function` may use.
    fn places_of(&self, ctx: &GucCtx<'_>, class: EngineClass, turns: &Turns, function: Function) -> Instances {
        std::array::from_fn(|logical| {
            let Some(engine) = self.ads.map.engine(class, logical) else { return InstanceState::Absent };
            match self.slots[engine.index()].function() {
                _ if turns[logical] != Some(function) => InstanceState::Absent,
                Some(other) if other != function => InstanceState::Leaving,
                _ => self.place(ctx, class, logical),
            }
        })
    }

    /// Returns the context that holds an engine, or was loaded on it last.
    fn context_on(&self, slot: &EngineSlot) -> Option<&Context> {
        self.functions.context(slot.context?)
    }

    /// Returns the state of an instance. The time of an engine stands still while its member of a parallel context has
    /// nothing to run, so the engine is then as busy as the one that the other members keep busy for longest.
    fn place(&self, ctx: &GucCtx<'_>, class: EngineClass, logical: usize) -> InstanceState {
        let Some(engine) = self.ads.map.engine(class, logical) else { return InstanceState::Absent };
        let slot = &self.slots[engine.index()];
        let Some(context) = self.context_on(slot) else { return InstanceState::Free };
        let place = |engine: EngineId| {
            let slot = &self.slots[engine.index()];
            slot.place(context.policies.priority, ctx.engines.waiting(engine), ctx.time(engine))
        };
        if slot.loaded || !slot.held {
            return place(engine);
        }
        let runs = |engine: &EngineId| {
            let other = &self.slots[engine.index()];
            other.loaded && other.context == slot.context
        };
        let running = self.engines_of(class).map(|(_, engine)| engine).filter(runs).map(place);
        let longest = running.max_by_key(|place| match place {
            InstanceState::Busy { waiting: false, slice_left, .. } => slice_left.unwrap_or(u64::MAX).saturating_add(1),
            _ => 0,
        });
        longest.unwrap_or_else(|| place(engine))
    }

    /// Loads contexts of `function` onto instances of a class. `fresh` is set if no other function claims these
    /// instances. Returns the time by which it must be called again.
    #[allow(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        reason = "an instance and a member are below MAX_LOGICAL, and there are a slot and a rotation for each engine"
    )]
    fn fill(
        &mut self,
        ctx: &mut GucCtx<'_>,
        class: EngineClass,
        function: Function,
        places: &Instances,
        fresh: bool,
    ) -> Option<u64> {
        let plan = self.functions.queue(function, class, |queue| queue.plan(places, ctx.now));
        for (entry, base) in plan.loads() {
            for at in (0..usize::from(entry.width)).filter(|_| fresh) {
                if let Some(engine) = self.ads.map.engine(class, base + at) {
                    let rotation = &mut self.rotations[engine.index()];
                    rotation.enter(ctx.moment(rotation), function, &mut self.functions);
                }
            }
            let id = GucContextId { function, local: entry.context };
            if let Some(context) = self.functions.context_mut(id) {
                let base = byte(base);
                context.home = Home::Placed(base);
                self.load(ctx, id, base);
            }
        }
        for (_, engine) in self.engines_of(class).filter(|(logical, _)| plan.leave >> logical & 1 != 0) {
            let Some(id) = self.slots[engine.index()].context else { continue };
            let timeout = self.functions.context(id).map_or(0, |context| context.policies.preemption_timeout);
            self.preempt_context(ctx, id, timeout);
        }
        if self.functions.waiting(class) & function.bit() == 0 {
            return plan.deadline;
        }
        // A context that was just loaded also has a time slice, and queued contexts wait for the end of that slice.
        let got = plan.loads().filter_map(|(_, base)| self.ads.map.engine(class, base));
        got.fold(plan.deadline, |next, engine| {
            let left = self.slots[engine.index()].slice_left(ctx.time(engine));
            earlier(next, left.map(|left| not_before(ctx.now, left)))
        })
    }

    /// Loads contexts onto engines that no function claims, so that they can recheck the condition that they wait for.
    fn fill_unclaimed(&mut self, ctx: &mut GucCtx<'_>, class: EngineClass, turns: &Turns) {
        for function in functions(self.functions.waiting(class)) {
            let places = std::array::from_fn(|logical| match turns[logical] {
                None if self.place(ctx, class, logical) == InstanceState::Free => InstanceState::Free,
                _ => InstanceState::Absent,
            });
            if places.contains(&InstanceState::Free) {
                self.fill(ctx, class, function, &places, true);
            }
        }
    }

    /// If all engines of a class share their turns, a context that leaves one of them late delays the next turn on all
    /// of them. Its function is charged for this time.
    fn charge_late_contexts(&mut self, ctx: &GucCtx<'_>, class: EngineClass) {
        let slot = |engine: EngineId| &self.slots[engine.index()];
        let late = self.engines_of(class).find(|(_, engine)| slot(*engine).evicted && slot(*engine).loaded);
        if let Some((_, lead)) = self.engines_of(class).next() {
            // A late context on another engine is charged in that engine's time.
            let (charged, on) = match late {
                Some((_, engine)) => (slot(engine).function(), engine),
                None => (slot(lead).occupant(), lead),
            };
            self.occupy(ctx, lead, charged, on);
        }
    }
}

fn earlier(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    [one, other].into_iter().flatten().min()
}
