//! The scheduler: registered contexts, the queue of each engine class, what is on each engine, and who is told what.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;

use crate::engine::id::{EngineClass, EngineId};
use crate::engine::{EngineReport, Engines, Halt, Load, Outcome};
use crate::gt::Gt;
use crate::memory::{Gam, Tlb, Views};
use crate::world::{FUNCTIONS, Function, ticks};

use super::activity::Activity;
use super::ads::{Ads, MAX_LOGICAL};
use super::capture::{Capture, Hung};
use super::context::{Context, Home, Registration};
use super::firmware::Firmware;
use super::hxg::{Error, Outgoing, Reply};
use super::queue::{Entry, Place, Queue};
use super::seat::Seat;
use super::share::{Adverse, Priority, Share};

const CLASSES: usize = EngineClass::BY_GUC.len();

/// G2H: scheduling of a context is on or off.
const SCHED_CONTEXT_MODE_DONE: u16 = 0x1002;
/// G2H: an engine was reset because of a context.
const CONTEXT_RESET_NOTIFICATION: u16 = 0x1008;
/// G2H: a context is forgotten.
const DEREGISTER_CONTEXT_DONE: u16 = 0x4600;
/// G2H: a context made an access without translation.
const NOTIFY_MEMORY_CAT_ERROR: u16 = 0x6000;
/// G2H: the registers of an engine that is reset are in the log.
const STATE_CAPTURE_NOTIFICATION: u16 = 0x8002;
/// CAT error type where the hardware does not tell one (xe: XE_GUC_CAT_ERR_TYPE_INVALID).
const CAT_ERROR_TYPE_UNKNOWN: u32 = 0xdead_beef;

/// How long a context that waited for memory to change does not push others out, in nanoseconds.
const WAIT_PAUSE: u64 = 1_000_000;
/// Least time that a context gets to leave, in nanoseconds: silicon needs microseconds to reach the next arbitration
/// point, an engine's thread on a busy host some milliseconds, and a context must not be reset for that.
const LEAST_PREEMPTION_TIMEOUT: u64 = 20_000_000;

/// What one call of the GuC has at hand.
pub struct Turn<'t> {
    /// Shared parts.
    pub gt: &'t Gt,
    /// Engines; their locks come after the GuC's.
    pub engines: &'t Engines,
    /// Guest memory of the functions.
    pub views: &'t Views<'t>,
    /// What the GuC remembers of translations.
    pub tlb: &'t mut Tlb,
    /// Whose request is carried out.
    pub function: Function,
    /// Time in nanoseconds.
    pub now: u64,
    /// Messages to the hosts: PF and VFs.
    pub out: &'t mut Vec<(Function, Outgoing)>,
}

impl Turn<'_> {
    /// Memory as `function` reaches it.
    pub fn gam(&mut self, function: Function) -> Gam<'_> {
        self.gt.memory.gam(function, self.views, self.tlb)
    }

    /// Memory as the function reaches it whose request is carried out.
    pub fn own(&mut self) -> Gam<'_> {
        self.gam(self.function)
    }

    /// Puts a message to `function` on its way.
    pub fn tell(&mut self, function: Function, message: Outgoing) {
        self.out.push((function, message));
    }
}

/// Scheduler state of one GuC boot.
pub struct Scheduler {
    ads: Ads,
    /// Registered contexts by global id: the PF's ids as they are, a VF's behind the start of its range.
    contexts: HashMap<u16, Context>,
    queues: [Queue; CLASSES],
    seats: [Seat; EngineId::COUNT],
    /// Loads so far, over all boots: what a report of an earlier boot names is not loaded now.
    pub loads: u16,
    shares: [Share; FUNCTIONS],
    /// Functions (a bit each) whose contexts stay off the engines.
    paused: u64,
    /// Functions (a bit each) that want CAT errors with their type (opt-in).
    cat_error_type: u64,
    /// What has happened since it was last taken that thresholds may be set for.
    pub adverse: Vec<(Function, Adverse)>,
    /// A compute context that waits to switch out is let go.
    hold_compute: bool,
    capture: Capture,
    /// How busy the engines are.
    pub activity: Activity,
}

impl Scheduler {
    /// A scheduler without contexts; `loads` goes on where the last boot ended.
    pub fn new(ads: Ads, firmware: &Firmware, loads: u16) -> Self {
        Scheduler {
            ads,
            contexts: HashMap::new(),
            queues: Default::default(),
            seats: [Seat::default(); EngineId::COUNT],
            loads,
            shares: [Share::default(); FUNCTIONS],
            paused: 0,
            cat_error_type: 0,
            adverse: Vec::new(),
            hold_compute: firmware.holds_compute_switch_out(),
            capture: Capture::new(firmware.log(), ads.lists),
            activity: Activity::new(ads.map),
        }
    }

    /// Contexts that are registered.
    pub fn contexts(&self) -> usize {
        self.contexts.len()
    }

    /// Whether any engine has a context.
    pub fn busy(&self) -> bool {
        self.seats.iter().any(|seat| seat.loaded)
    }

    /// Whether nothing of `function` is on an engine.
    pub fn quiet(&self, function: Function) -> bool {
        !self.seats.iter().any(|seat| seat.loaded && seat.function == Some(function))
    }

    /// Whether `function` is told the type of its CAT errors.
    pub fn set_cat_error_type(&mut self, function: Function, told: bool) {
        set_bit(&mut self.cat_error_type, function, told);
    }

    /// What `function` gets of the engines.
    pub fn share(&self, function: Function) -> Share {
        self.shares[function.index()]
    }

    /// Sets what `function` gets of the engines; a turn that has begun ends by what holds then.
    pub fn set_share(&mut self, function: Function, share: Share) {
        self.shares[function.index()] = share;
    }

    /// Policy SCHED_IF_IDLE: every function keeps its place in the rotation, work or not. It sets the priority of all
    /// functions at once (xe: abi/guc_klvs_abi.h).
    pub fn set_strict(&mut self, strict: bool) {
        let priority = if strict { Priority::Normal } else { Priority::Low };
        self.shares.iter_mut().for_each(|share| share.priority = priority);
    }

    /// Whether an engine is reset when its context does not leave in time.
    pub fn set_engine_reset_disabled(&mut self, disabled: bool) {
        self.ads.engine_reset_disabled = disabled;
    }

    fn context(&mut self, id: u32) -> Result<(u16, &mut Context), Error> {
        let id = u16::try_from(id).map_err(|_| Error::InvalidContextIndex)?;
        self.contexts.get_mut(&id).map(|context| (id, context)).ok_or(Error::ContextNotRegistered)
    }

    /// The global id of a context that `function` has registered as `id`; no other's (V13-036).
    pub fn owned(&self, function: Function, id: u32) -> Result<u16, Error> {
        let id = u16::try_from(id).map_err(|_| Error::InvalidContextIndex)?;
        let own = self.contexts.get(&id).filter(|context| context.function == function && !context.deregistering);
        own.map(|_| id).ok_or(Error::ContextNotRegistered)
    }

    /// REGISTER_CONTEXT and REGISTER_CONTEXT_MULTI_LRC of the function whose request is carried out: `id` is the
    /// context's global id, the registration has the function's own.
    pub fn register(&mut self, turn: &mut Turn<'_>, id: u16, registration: &Registration<'_>) -> Reply {
        let function = turn.function;
        let context = registration.check(&mut turn.own(), &self.ads.map, function)?;
        let wide = context.members.len() > 1;
        match self.contexts.entry(id) {
            Slot::Occupied(_) => return Err(Error::ContextAlreadyRegistered),
            Slot::Vacant(slot) => slot.insert(context),
        };
        if wide {
            self.adverse.push((function, Adverse::ParallelContext));
        }
        Ok(0)
    }

    /// UPDATE_CONTEXT_POLICIES.
    pub fn set_policies(&mut self, id: u32, list: &[u32]) -> Reply {
        let (id, context) = self.context(id)?;
        let before = context.policies.priority;
        context.policies.update(list)?;
        let (class, priority) = (usize::from(context.class.guc()), context.policies.priority);
        if context.home == Home::Queued
            && priority != before
            && let Some(entry) = self.queues[class].remove(id)
        {
            self.queues[class].push(priority, entry);
        }
        Ok(0)
    }

    /// SCHED_CONTEXT_MODE_SET: the host hears of it when it is done.
    pub fn set_mode(&mut self, turn: &mut Turn<'_>, id: u32, enable: bool) -> Reply {
        let (id, context) = self.context(id)?;
        if context.disabling || context.deregistering {
            return Err(Error::PendingAction);
        }
        context.enabled = enable;
        if enable {
            turn.tell(context.function, Outgoing::event(SCHED_CONTEXT_MODE_DONE, &[u32::from(context.local), 1]));
            self.look(turn, id);
            return Ok(0);
        }
        context.disabling = true;
        self.take_off(turn, id);
        Ok(0)
    }

    /// SCHED_CONTEXT: there may be work.
    pub fn submit(&mut self, turn: &mut Turn<'_>, id: u32) -> Reply {
        let (id, _) = self.context(id)?;
        self.look(turn, id);
        Ok(0)
    }

    /// DEREGISTER_CONTEXT: the host hears of it when it is done.
    pub fn deregister(&mut self, turn: &mut Turn<'_>, id: u32) -> Reply {
        let (id, context) = self.context(id)?;
        if context.deregistering {
            return Err(Error::PendingAction);
        }
        context.enabled = false;
        context.deregistering = true;
        self.take_off(turn, id);
        Ok(0)
    }

    /// Who has registered the context with global id `id`.
    pub fn owner(&self, id: u32) -> Option<Function> {
        self.contexts.get(&u16::try_from(id).ok()?).map(|context| context.function)
    }

    /// Stops what runs of `function` where it is, and forgets its contexts: its driver or its host has given them up,
    /// and hears of none of them any more (V13-121).
    pub fn drop_function(&mut self, turn: &mut Turn<'_>, function: Function) {
        for engine in EngineId::all() {
            let seat = self.seats[engine.index()];
            if seat.function != Some(function) {
                continue;
            }
            if seat.loaded {
                self.reset_engine(turn, engine);
            }
            self.seats[engine.index()] = Seat::default();
        }
        let queues = &mut self.queues;
        self.contexts.retain(|id, context| {
            let keep = context.function != function;
            if !keep && context.home == Home::Queued {
                queues[usize::from(context.class.guc())].remove(*id);
            }
            keep
        });
        set_bit(&mut self.paused, function, false);
        set_bit(&mut self.cat_error_type, function, false);
    }

    /// Asks the contexts of `function` to leave the engines, and keeps them off; [`Scheduler::quiet`] tells when it is
    /// done.
    pub fn pause(&mut self, turn: &mut Turn<'_>, function: Function) {
        set_bit(&mut self.paused, function, true);
        for (id, context) in self.contexts.iter_mut().filter(|(_, context)| context.function == function) {
            if context.home == Home::Queued {
                self.queues[usize::from(context.class.guc())].remove(*id);
                context.home = Home::Rest;
            }
        }
        for engine in EngineId::all() {
            let seat = self.seats[engine.index()];
            if seat.function == Some(function) {
                let own = self.contexts.get(&seat.context).map_or(0, |context| context.policies.preemption_timeout);
                let timeout = match self.share(function).preemption_timeout {
                    0 => own,
                    timeout => timeout,
                };
                self.ask_to_leave(turn, seat.context, timeout);
            }
        }
    }

    /// The contexts of `function` may run again.
    pub fn resume(&mut self, turn: &mut Turn<'_>, function: Function) {
        set_bit(&mut self.paused, function, false);
        let of = |(id, context): (&u16, &Context)| (context.function == function).then_some(*id);
        let mut contexts: Vec<u16> = self.contexts.iter().filter_map(of).collect();
        contexts.sort_unstable();
        for id in contexts {
            self.go_on(turn, id, turn.now);
        }
    }

    /// Sees whether a context has work, and tells whoever is to do it.
    fn look(&mut self, turn: &mut Turn<'_>, id: u16) {
        let Some(context) = self.contexts.get_mut(&id) else { return };
        if !context.enabled {
            return;
        }
        if let Some(work_queue) = context.work_queue {
            work_queue.consume(&mut turn.gam(context.function), context.local, &context.members);
        }
        for at in 0..context.members.len() {
            let member = &mut context.members[at];
            if !member.loaded {
                // An image that is gone has nothing to run.
                member.ready |= member.ring_has_work(&mut turn.gam(context.function)).unwrap_or(false);
                continue;
            }
            let Home::Placed(base) = context.home else { continue };
            let Some(engine) = self.ads.map.engine(context.class, usize::from(base) + at) else { continue };
            let ticket = self.seats[engine.index()].ticket;
            let mut streamer = turn.engines.lock(engine);
            if streamer.loaded().is_some_and(|load| load.context == ticket) {
                streamer.tail_moved(turn.gt);
                turn.engines.set_runnable(engine, true);
            } else {
                // It has ended, and its report is on the way.
                member.ready = true;
            }
        }
        self.go_on(turn, id, turn.now);
    }

    /// Brings a context that has work nearer to its engines.
    fn go_on(&mut self, turn: &mut Turn<'_>, id: u16, eligible_at: u64) {
        let Some(context) = self.contexts.get_mut(&id) else { return };
        let paused = self.paused & context.function.bit() != 0;
        if paused || !context.enabled || !context.members.iter().any(|member| member.ready) {
            return;
        }
        match context.home {
            Home::Queued => {}
            Home::Rest => {
                context.home = Home::Queued;
                let entry = Entry { context: id, mask: context.mask, width: context.members.len() as u8, eligible_at };
                self.queues[usize::from(context.class.guc())].push(context.policies.priority, entry);
            }
            Home::Placed(base) => self.load(turn, id, base),
        }
    }

    /// Puts the members that have work on the engines that the context holds.
    fn load(&mut self, turn: &mut Turn<'_>, id: u16, base: u8) {
        let Some(context) = self.contexts.get_mut(&id) else { return };
        let leaving = (0..context.members.len()).any(|at| {
            let engine = self.ads.map.engine(context.class, usize::from(base) + at);
            engine.is_some_and(|engine| self.seats[engine.index()].leaving)
        });
        if leaving {
            return;
        }
        let slice_end = match context.policies.quantum {
            0 => None,
            quantum => Some(turn.now.saturating_add(quantum)),
        };
        for at in 0..context.members.len() {
            let Some(engine) = self.ads.map.engine(context.class, usize::from(base) + at) else { continue };
            let seat = &mut self.seats[engine.index()];
            if !seat.held {
                let function = Some(context.function);
                *seat = Seat { context: id, function, member: at as u8, held: true, slice_end, ..Seat::default() };
            }
            let member = &mut context.members[at];
            if member.loaded || !member.ready {
                continue;
            }
            self.loads = self.loads.wrapping_add(1);
            let ticket = u32::from(self.loads) << 16 | u32::from(id);
            seat.ticket = ticket;
            seat.loaded = true;
            member.loaded = true;
            member.ready = false;
            let load = Load { function: context.function, context: ticket, descriptor: member.descriptor };
            let mut streamer = turn.engines.lock(engine);
            if streamer.loaded().is_some() {
                // Someone else than this scheduler has put something there.
                streamer.reset(turn.gt);
            }
            streamer.load(turn.gt, load);
            turn.engines.set_runnable(engine, true);
            drop(streamer);
            switched(&mut self.activity, turn, engine, Some(u32::from(id)));
        }
    }

    /// Takes a context out of the queue or asks it to leave its engines; settles at once where it is on none.
    fn take_off(&mut self, turn: &mut Turn<'_>, id: u16) {
        let Some(context) = self.contexts.get_mut(&id) else { return };
        match context.home {
            Home::Rest => {}
            Home::Queued => {
                self.queues[usize::from(context.class.guc())].remove(id);
                context.home = Home::Rest;
            }
            Home::Placed(_) => {
                let timeout = context.policies.preemption_timeout;
                self.ask_to_leave(turn, id, timeout);
            }
        }
        self.settle(turn, id, turn.now);
    }

    /// Asks a context to leave its engines within `timeout` ns (0: whenever it likes).
    fn ask_to_leave(&mut self, turn: &mut Turn<'_>, id: u16, timeout: u64) {
        let Some(context) = self.contexts.get(&id) else { return };
        let Home::Placed(base) = context.home else { return };
        let leave_by = match timeout {
            0 => None,
            timeout => Some(turn.now.saturating_add(timeout.max(LEAST_PREEMPTION_TIMEOUT))),
        };
        for at in 0..context.members.len() {
            let Some(engine) = self.ads.map.engine(context.class, usize::from(base) + at) else { continue };
            let seat = &mut self.seats[engine.index()];
            seat.leave(leave_by);
            seat.waiting &= turn.engines.waiting(engine);
            if !seat.loaded {
                continue;
            }
            let mut streamer = turn.engines.lock(engine);
            if streamer.loaded().is_some_and(|load| load.context == seat.ticket) {
                streamer.request_preemption();
                turn.engines.set_runnable(engine, true);
            }
        }
    }

    /// A context that is on no engine any more gives them back, and the host hears what it waits for.
    fn settle(&mut self, turn: &mut Turn<'_>, id: u16, eligible_at: u64) {
        let Some(context) = self.contexts.get_mut(&id) else { return };
        if context.members.iter().any(|member| member.loaded) {
            return;
        }
        if let Home::Placed(base) = context.home {
            for at in 0..context.members.len() {
                if let Some(engine) = self.ads.map.engine(context.class, usize::from(base) + at) {
                    self.seats[engine.index()] = Seat::default();
                }
            }
            context.home = Home::Rest;
        }
        if std::mem::take(&mut context.disabling) {
            turn.tell(context.function, Outgoing::event(SCHED_CONTEXT_MODE_DONE, &[u32::from(context.local), 0]));
        }
        if context.deregistering {
            if context.home == Home::Queued {
                self.queues[usize::from(context.class.guc())].remove(id);
            }
            let (function, local) = (context.function, context.local);
            self.contexts.remove(&id);
            turn.tell(function, Outgoing::event(DEREGISTER_CONTEXT_DONE, &[u32::from(local)]));
            return;
        }
        self.go_on(turn, id, eligible_at);
    }

    /// An engine has something to tell.
    pub fn report(&mut self, turn: &mut Turn<'_>, report: &EngineReport) {
        let seat = &mut self.seats[report.engine.index()];
        if !seat.loaded || seat.ticket != report.load.context {
            return;
        }
        let id = seat.context;
        match report.outcome {
            Outcome::More => {}
            Outcome::Waiting => {
                seat.waiting = true;
                self.release_switch_out(turn, report.engine);
            }
            Outcome::Idle | Outcome::Complete => self.off(turn, report.engine, false),
            Outcome::Preempted => self.off(turn, report.engine, true),
            Outcome::Halted(halt) => {
                if let Halt::Fault(fault) = halt {
                    log::debug!("context {id} on {}: {fault:?}", report.engine.info().name);
                    if let Some(context) = self.contexts.get(&id) {
                        let payload = [u32::from(context.local), CAT_ERROR_TYPE_UNKNOWN];
                        let len = if self.cat_error_type & context.function.bit() != 0 { 2 } else { 1 };
                        self.adverse.push((context.function, Adverse::CatError));
                        turn.tell(context.function, Outgoing::event(NOTIFY_MEMORY_CAT_ERROR, &payload[..len]));
                    }
                }
                self.reset_context(turn, id);
            }
        }
    }

    /// Contract G.5: i915's compute contexts end with a semaphore that the GuC has to clear.
    fn release_switch_out(&mut self, turn: &mut Turn<'_>, engine: EngineId) {
        let seat = self.seats[engine.index()];
        if !self.hold_compute || engine.info().class != EngineClass::Compute {
            return;
        }
        let context = self.contexts.get(&seat.context);
        if let Some(context) = context
            && let Some(member) = context.members.get(usize::from(seat.member))
            && member.release_switch_out(&mut turn.gam(context.function)) == Ok(true)
        {
            self.seats[engine.index()].waiting = false;
            turn.engines.set_runnable(engine, true);
        }
    }

    /// A member has left its engine.
    fn off(&mut self, turn: &mut Turn<'_>, engine: EngineId, unfinished: bool) {
        let seat = &mut self.seats[engine.index()];
        let eligible_at = if seat.waiting { turn.now.saturating_add(WAIT_PAUSE) } else { turn.now };
        seat.loaded = false;
        seat.waiting = false;
        let (id, member) = (seat.context, usize::from(seat.member));
        switched(&mut self.activity, turn, engine, None);
        let Some(context) = self.contexts.get_mut(&id) else { return };
        if let Some(member) = context.members.get_mut(member) {
            member.loaded = false;
            member.ready |= unfinished;
        }
        if context.members.iter().any(|member| member.loaded) {
            // The others still run: a member with new work goes back beside them.
            self.go_on(turn, id, turn.now);
        } else {
            self.settle(turn, id, eligible_at);
        }
    }

    fn reset_engine(&mut self, turn: &mut Turn<'_>, engine: EngineId) {
        let ticket = self.seats[engine.index()].ticket;
        let mut streamer = turn.engines.lock(engine);
        if streamer.loaded().is_some_and(|load| load.context == ticket) {
            streamer.reset(turn.gt);
            turn.engines.set_runnable(engine, false);
        }
        drop(streamer);
        self.seats[engine.index()].loaded = false;
        switched(&mut self.activity, turn, engine, None);
    }

    /// Writes down how the engines stand that a context is on.
    fn note_state(&self, turn: &mut Turn<'_>, id: u16) {
        // The log and its lists are the PF's, and so are the contexts that it looks for there.
        let Some(context) = self.contexts.get(&id).filter(|context| !context.function.is_vf()) else { return };
        let on = |engine: &EngineId| {
            let seat = &self.seats[engine.index()];
            seat.loaded && seat.context == id
        };
        let hung = EngineId::all().filter(on).filter_map(|engine| {
            let member = context.members.get(usize::from(self.seats[engine.index()].member))?;
            Some(Hung { engine, lrca: member.descriptor as u32 & !0xfff, context: u32::from(id) })
        });
        let hung: Vec<Hung> = hung.collect();
        if let Some(status) = self.capture.write(turn.gt, &mut turn.gam(Function::PF), &hung) {
            turn.tell(Function::PF, Outgoing::event(STATE_CAPTURE_NOTIFICATION, &[status as u32]));
        }
    }

    /// Resets the engines that a context is on; it is not scheduled again before the host enables it anew
    /// (i915: guc_context_replay).
    fn reset_context(&mut self, turn: &mut Turn<'_>, id: u16) {
        self.note_state(turn, id);
        let Some(context) = self.contexts.get_mut(&id) else { return };
        context.enabled = false;
        let (class, home, width) = (context.class, context.home, context.members.len());
        let (function, local) = (context.function, context.local);
        for member in &mut context.members {
            member.loaded = false;
            member.ready = false;
        }
        if let Home::Placed(base) = home {
            for at in 0..width {
                if let Some(engine) = self.ads.map.engine(class, usize::from(base) + at)
                    && self.seats[engine.index()].loaded
                {
                    self.reset_engine(turn, engine);
                }
            }
        }
        self.adverse.push((function, Adverse::EngineReset));
        turn.tell(function, Outgoing::event(CONTEXT_RESET_NOTIFICATION, &[u32::from(local)]));
        self.settle(turn, id, turn.now);
    }

    /// Resets engines whose contexts did not leave in time.
    fn expire(&mut self, turn: &mut Turn<'_>) {
        for engine in EngineId::all() {
            let seat = self.seats[engine.index()];
            if self.due(&seat).is_none_or(|due| due > turn.now) {
                continue;
            }
            let there = turn.engines.lock(engine).loaded().is_some_and(|load| load.context == seat.ticket);
            if there {
                self.reset_context(turn, seat.context);
            } else {
                // It has left, and its report is on the way.
                self.seats[engine.index()].leave_by = None;
            }
        }
    }

    fn place(&self, engines: &Engines, class: EngineClass, logical: usize) -> Place {
        let Some(engine) = self.ads.map.engine(class, logical) else { return Place::Absent };
        let seat = &self.seats[engine.index()];
        self.contexts
            .get(&seat.context)
            .map_or(Place::Free, |context| seat.place(context.policies.priority, engines.waiting(engine)))
    }

    /// When a context has to have left an engine.
    fn due(&self, seat: &Seat) -> Option<u64> {
        seat.leave_by.filter(|_| seat.loaded && !self.ads.engine_reset_disabled)
    }

    /// Fills the engines from the queues; returns when it wants to be called again at the latest.
    pub fn schedule(&mut self, turn: &mut Turn<'_>) -> Option<u64> {
        self.expire(turn);
        let mut next = None;
        for class in EngineClass::BY_GUC {
            let queue = usize::from(class.guc());
            if self.queues[queue].is_empty() {
                continue;
            }
            let places: [Place; MAX_LOGICAL] = std::array::from_fn(|logical| self.place(turn.engines, class, logical));
            let plan = self.queues[queue].plan(&places, turn.now);
            for (entry, base) in plan.loads() {
                if let Some(context) = self.contexts.get_mut(&entry.context) {
                    context.home = Home::Placed(base as u8);
                    self.load(turn, entry.context, base as u8);
                }
            }
            for logical in (0..MAX_LOGICAL).filter(|at| plan.leave >> at & 1 != 0) {
                if let Some(engine) = self.ads.map.engine(class, logical) {
                    let seat = self.seats[engine.index()];
                    let context = self.contexts.get(&seat.context);
                    let timeout = context.map_or(0, |context| context.policies.preemption_timeout);
                    self.ask_to_leave(turn, seat.context, timeout);
                }
            }
            next = [next, plan.deadline].into_iter().flatten().min();
        }
        let due = self.seats.iter().filter_map(|seat| self.due(seat)).min();
        [next, due].into_iter().flatten().min()
    }
}

/// A context came on an engine, or the engine fell idle.
fn switched(activity: &mut Activity, turn: &mut Turn<'_>, engine: EngineId, context: Option<u32>) {
    let now = ticks(turn.now);
    activity.switch(&mut turn.gam(Function::PF), engine, context, now);
}

fn set_bit(set: &mut u64, function: Function, on: bool) {
    *set = *set & !function.bit() | if on { function.bit() } else { 0 };
}
