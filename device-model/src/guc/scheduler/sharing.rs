//! The engines shared out: whose turn each one is, and which of that function's contexts get on it.
//!
//! While one function alone has contexts for a class, nothing of this matters. Else each engine has turns of its own,
//! so that engines run different functions at the same time (V13-039). Members of a parallel context need several
//! engines at once: where there is such a context, the class has its turns as a whole, after its first engine.

use super::*;

/// Whose turn each logical instance of a class is.
type Turns = [Option<Function>; MAX_LOGICAL];

impl Scheduler {
    /// Fills the engines from the queues; returns when it wants to be called again at the latest.
    pub fn schedule(&mut self, turn: &mut Turn<'_>) -> Option<u64> {
        self.expire(turn);
        if !std::mem::replace(&mut self.shares_told, true) {
            self.activity.set_shares(&mut turn.gam(Function::PF), &self.shares);
        }
        let mut next = None;
        for class in EngineClass::BY_GUC {
            next = earlier(next, self.share_out(turn, class));
        }
        let left = EngineId::all().filter_map(|engine| self.time_to_leave(turn, engine)).min();
        earlier(next, left.map(|left| not_before(turn.now, left)))
    }

    fn share_out(&mut self, turn: &mut Turn<'_>, class: EngineClass) -> Option<u64> {
        let at = usize::from(class.guc());
        let queued = self.queues[at].waiting();
        if queued == 0 && self.standing == 0 {
            // Nobody waits for whoever is there.
            self.relax(turn, class);
            return None;
        }
        let seated = self.engines_of(class).filter_map(|(_, engine)| self.seats[engine.index()].function);
        let present = seated.fold(queued, |set, function| set | function.bit());
        let rivals = if present == 0 { 0 } else { present | self.standing };
        if rivals.count_ones() > 1 {
            return self.take_turns(turn, class);
        }
        self.relax(turn, class);
        let alone = functions(queued).next()?;
        let places = std::array::from_fn(|logical| self.place(turn, class, logical));
        self.fill(turn, class, alone, &places, true)
    }

    fn engines_of(&self, class: EngineClass) -> impl Iterator<Item = (usize, EngineId)> + use<> {
        let map = self.ads.map;
        (0..MAX_LOGICAL).filter_map(move |logical| Some((logical, map.engine(class, logical)?)))
    }

    /// There is no more than one function for a class.
    fn relax(&mut self, turn: &Turn<'_>, class: EngineClass) {
        if !std::mem::take(&mut self.rotating[usize::from(class.guc())]) {
            return;
        }
        for (_, engine) in self.engines_of(class) {
            let rotation = &mut self.rotations[engine.index()];
            turn.occupy(rotation, self.seats[engine.index()].occupant(), engine);
            rotation.relax(turn.moment(rotation));
        }
    }

    /// Several functions want engines of a class, or keep their place there without.
    fn take_turns(&mut self, turn: &mut Turn<'_>, class: EngineClass) -> Option<u64> {
        let at = usize::from(class.guc());
        self.rotating[at] = true;
        let wide = self.queues[at].has_wide() || self.engines_of(class).any(|(_, engine)| self.has_wide(engine));
        let (turns, mut next) = self.turns(turn, class, wide);
        self.oust(turn, class, &turns);
        for function in functions(self.queues[at].waiting()) {
            let places = self.places_of(turn, class, &turns, function);
            if places.iter().any(|place| *place != Place::Absent) {
                next = earlier(next, self.fill(turn, class, function, &places, false));
            }
        }
        if self.standing == 0 {
            self.fill_unclaimed(turn, class, &turns);
        }
        for function in functions(self.queues[at].waiting()) {
            next = earlier(next, self.queues[at].look(function, |queue| queue.wakes_at()));
        }
        if wide {
            self.charge_late_leavers(turn, class);
        }
        next
    }

    /// Whether a parallel context is on an engine.
    fn has_wide(&self, engine: EngineId) -> bool {
        let seat = &self.seats[engine.index()];
        seat.held && self.contexts.get(&seat.context).is_some_and(|context| context.members.len() > 1)
    }

    /// Passes the turns on that are over; also when the next one will be.
    fn turns(&mut self, turn: &mut Turn<'_>, class: EngineClass, together: bool) -> (Turns, Option<u64>) {
        let mut wants = [0u64; MAX_LOGICAL];
        let queues = &mut self.queues[usize::from(class.guc())];
        for function in functions(queues.waiting()) {
            let reach = queues.look(function, |queue| queue.reach(turn.now));
            for (_, wants) in wants.iter_mut().enumerate().filter(|(logical, _)| reach >> logical & 1 != 0) {
                *wants |= function.bit();
            }
        }
        for (logical, engine) in self.engines_of(class) {
            let seat = &self.seats[engine.index()];
            if let Some(function) = seat.function.filter(|_| seat.works(turn.engines.waiting(engine))) {
                wants[logical] |= function.bit();
            }
        }
        let mut turns = [None; MAX_LOGICAL];
        let mut next = None;
        let mut lead = None;
        for (logical, engine) in self.engines_of(class) {
            let rotation = &mut self.rotations[engine.index()];
            let now = turn.moment(rotation);
            if let Some((owner, contended)) = lead {
                rotation.follow(now, owner, contended, &self.shares);
                turns[logical] = owner;
                continue;
            }
            let wants = if together { wants.iter().fold(0, |all, set| all | set) } else { wants[logical] };
            turns[logical] = rotation.turn(now, wants, self.standing, &self.shares);
            next = earlier(next, rotation.left(&self.shares).map(|left| not_before(turn.now, left)));
            lead = together.then_some((turns[logical], rotation.contended()));
        }
        (turns, next)
    }

    /// Asks whoever is on an engine to leave whose turn it is not.
    fn oust(&mut self, turn: &mut Turn<'_>, class: EngineClass, turns: &Turns) {
        for (logical, engine) in self.engines_of(class) {
            let seat = self.seats[engine.index()];
            let (Some(function), Some(owner)) = (seat.function, turns[logical]) else { continue };
            if function != owner && !seat.ousted {
                self.ask_to_leave(turn, seat.context, self.share(function).preemption_timeout);
                for (_, engine) in self.engines_of(class) {
                    let other = &mut self.seats[engine.index()];
                    other.ousted |= other.held && other.context == seat.context;
                }
            }
        }
    }

    /// The instances of a class as `function` may have them.
    fn places_of(&self, turn: &Turn<'_>, class: EngineClass, turns: &Turns, function: Function) -> Places {
        std::array::from_fn(|logical| {
            let Some(engine) = self.ads.map.engine(class, logical) else { return Place::Absent };
            match self.seats[engine.index()].function {
                _ if turns[logical] != Some(function) => Place::Absent,
                Some(other) if other != function => Place::Leaving,
                _ => self.place(turn, class, logical),
            }
        })
    }

    fn place(&self, turn: &Turn<'_>, class: EngineClass, logical: usize) -> Place {
        let Some(engine) = self.ads.map.engine(class, logical) else { return Place::Absent };
        let seat = &self.seats[engine.index()];
        self.contexts.get(&seat.context).map_or(Place::Free, |context| {
            seat.place(context.policies.priority, turn.engines.waiting(engine), turn.time(engine))
        })
    }

    /// Puts contexts of `function` on instances of a class; `fresh` where nobody else claims those. Returns when to
    /// look again at the latest.
    fn fill(
        &mut self,
        turn: &mut Turn<'_>,
        class: EngineClass,
        function: Function,
        places: &Places,
        fresh: bool,
    ) -> Option<u64> {
        let plan = self.queues[usize::from(class.guc())].look(function, |queue| queue.plan(places, turn.now));
        for (entry, base) in plan.loads() {
            for at in (0..usize::from(entry.width)).filter(|_| fresh) {
                if let Some(engine) = self.ads.map.engine(class, base + at) {
                    let rotation = &mut self.rotations[engine.index()];
                    rotation.enter(turn.moment(rotation), function, &self.shares);
                }
            }
            if let Some(context) = self.contexts.get_mut(&entry.context) {
                context.home = Home::Placed(base as u8);
                self.load(turn, entry.context, base as u8);
            }
        }
        for (_, engine) in self.engines_of(class).filter(|(logical, _)| plan.leave >> logical & 1 != 0) {
            let seat = self.seats[engine.index()];
            let timeout = self.contexts.get(&seat.context).map_or(0, |context| context.policies.preemption_timeout);
            self.ask_to_leave(turn, seat.context, timeout);
        }
        let at = usize::from(class.guc());
        if self.queues[at].waiting() & function.bit() == 0 {
            return plan.deadline;
        }
        // Who has just got an engine has a slice too, and somebody waits for its end.
        let got = plan.loads().filter_map(|(_, base)| self.ads.map.engine(class, base));
        got.fold(plan.deadline, |next, engine| {
            let left = self.seats[engine.index()].slice_left(turn.time(engine));
            earlier(next, left.map(|left| not_before(turn.now, left)))
        })
    }

    /// Where nobody claims an engine, a context may look whether what it waits for has come.
    fn fill_unclaimed(&mut self, turn: &mut Turn<'_>, class: EngineClass, turns: &Turns) {
        let at = usize::from(class.guc());
        for function in functions(self.queues[at].waiting()) {
            let places = std::array::from_fn(|logical| match turns[logical] {
                None if self.place(turn, class, logical) == Place::Free => Place::Free,
                _ => Place::Absent,
            });
            if places.contains(&Place::Free) {
                self.fill(turn, class, function, &places, true);
            }
        }
    }

    /// A class that has its turns as a whole waits for each of its engines: who is late on any of them pays.
    fn charge_late_leavers(&mut self, turn: &Turn<'_>, class: EngineClass) {
        let seat = |engine: EngineId| &self.seats[engine.index()];
        let late = self.engines_of(class).find(|(_, engine)| seat(*engine).ousted && seat(*engine).loaded);
        if let Some((_, lead)) = self.engines_of(class).next() {
            // A late context on another engine is charged by that engine's time.
            let (payer, on) = match late {
                Some((_, engine)) => (seat(engine).function, engine),
                None => (seat(lead).occupant(), lead),
            };
            turn.occupy(&mut self.rotations[lead.index()], payer, on);
        }
    }
}

fn earlier(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    [one, other].into_iter().flatten().min()
}
