//! The scheduler: registered contexts, the queues of each engine class, what is on each engine, and who is told what.

mod ending;
mod placing;
mod sharing;

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;

use crate::engine::id::{EngineClass, EngineId};
use crate::engine::{EngineReport, Engines, Halt, Load, Outcome, Submitter};
use crate::execlist::descriptor::Descriptor;
use crate::gt::Gt;
use crate::memory::{Gam, Tlb, Views};
use crate::trace::What;
use crate::world::{FUNCTIONS, Function, functions, ticks};

use super::activity::Activity;
use super::ads::{Ads, MAX_LOGICAL};
use super::capture::{Capture, Hung};
use super::context::{Context, Home, Registration};
use super::firmware::Firmware;
use super::hxg::{Error, Outgoing, Reply};
use super::queue::{Entry, Place, Places, Queues, not_before};
use super::rotation::{Moment, Rotation};
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
/// Least time that a context gets to leave, in nanoseconds of engine time: what silicon does in microseconds before the
/// next arbitration point takes the engines milliseconds, and a context must not be reset for that.
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
    /// Time in nanoseconds of the card's clock.
    pub now: u64,
    /// Messages to the hosts: PF and VFs.
    pub out: &'t mut Vec<(Function, Outgoing)>,
}

impl<'t> Turn<'t> {
    /// The turn in which a request of `function` is carried out, now.
    pub fn new(
        gt: &'t Gt,
        engines: &'t Engines,
        views: &'t Views<'t>,
        tlb: &'t mut Tlb,
        function: Function,
        out: &'t mut Vec<(Function, Outgoing)>,
    ) -> Self {
        Turn { gt, engines, views, tlb, function, now: gt.clock.now(), out }
    }

    /// Engine time in nanoseconds.
    pub fn time(&self, engine: EngineId) -> u64 {
        self.gt.engine_clocks[engine.index()].time()
    }

    /// The time as `rotation` counts it.
    fn moment(&self, rotation: &Rotation) -> Moment {
        Moment { card: self.now, engine: self.gt.engine_clocks[rotation.on()].time() }
    }

    /// What is on the engine of `rotation` belongs to `function` from now on, which pays in the time of engine `on`; or
    /// nothing is there.
    fn occupy(&self, rotation: &mut Rotation, function: Option<Function>, on: EngineId) {
        rotation.occupy(self.moment(rotation), function, on.index(), self.time(on));
    }

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
        self.gt.trace.tell(function, None, || What::Guc {
            mailbox: false,
            fence: message.fence,
            dwords: message.hxg().to_vec(),
        });
        self.out.push((function, message));
    }
}

/// What there was and is of a function's work, for observation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Contexts that are registered.
    pub contexts: u32,
    /// Engine resets because of its contexts.
    pub engine_resets: u64,
    /// Accesses of its contexts without translation.
    pub cat_errors: u64,
}

/// Scheduler state of one GuC boot.
pub struct Scheduler {
    ads: Ads,
    /// Registered contexts by global id: the PF's ids as they are, a VF's behind the start of its range.
    contexts: HashMap<u16, Context>,
    queues: [Queues; CLASSES],
    seats: [Seat; EngineId::COUNT],
    /// The functions' turns at each engine.
    rotations: [Rotation; EngineId::COUNT],
    /// Classes that more than one function wants.
    rotating: [bool; CLASSES],
    /// Loads so far, over all boots: what a report of an earlier boot names is not loaded now.
    pub loads: u16,
    shares: [Share; FUNCTIONS],
    tallies: [Tally; FUNCTIONS],
    /// The drivers' activity records have them.
    shares_told: bool,
    /// Functions (a bit each) that keep their turn without work.
    standing: u64,
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
            rotations: std::array::from_fn(|_| Rotation::default()),
            rotating: [false; CLASSES],
            loads,
            shares: [Share::default(); FUNCTIONS],
            tallies: [Tally::default(); FUNCTIONS],
            shares_told: true,
            standing: 0,
            paused: 0,
            cat_error_type: 0,
            adverse: Vec::new(),
            hold_compute: firmware.holds_compute_switch_out(),
            capture: Capture::new(firmware.log(), ads.lists),
            activity: Activity::new(ads.map),
        }
    }

    /// What is on an engine.
    #[cfg(test)]
    pub fn seat(&self, engine: EngineId) -> &Seat {
        &self.seats[engine.index()]
    }

    /// Contexts that are registered.
    pub fn contexts(&self) -> usize {
        self.contexts.len()
    }

    /// What there was and is of `function`.
    pub fn tally(&self, function: Function) -> Tally {
        self.tallies[function.index()]
    }

    /// Whose context is on an engine, and its id as that function knows it.
    pub fn running(&self, engine: EngineId) -> Option<(Function, u16)> {
        let seat = &self.seats[engine.index()];
        let function = seat.occupant()?;
        Some((function, self.contexts.get(&seat.context)?.local))
    }

    /// Functions (a bit each) that have contexts with work on no engine.
    pub fn waiting(&self) -> u64 {
        self.queues.iter().fold(0, |set, queues| set | queues.waiting())
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

    /// Sets what `function` gets of the engines. With another quantum it begins anew, without debts.
    pub fn set_share(&mut self, function: Function, share: Share) {
        let before = std::mem::replace(&mut self.shares[function.index()], share);
        if before.quantum != share.quantum {
            self.rotations.iter_mut().for_each(|rotation| rotation.forgive(function));
        }
        self.shares_changed();
    }

    fn shares_changed(&mut self) {
        let stands = |share: &Share| share.priority == Priority::Normal && share.quantum != 0;
        let shares = (0..).map(Function).zip(&self.shares);
        self.shares_told = false;
        self.standing = shares.filter(|(_, share)| stands(share)).fold(0, |set, (function, _)| set | function.bit());
    }

    /// Policy SCHED_IF_IDLE: every function keeps its place in the rotation, work or not. It sets the priority of all
    /// functions at once (xe: abi/guc_klvs_abi.h).
    pub fn set_strict(&mut self, strict: bool) {
        let priority = if strict { Priority::Normal } else { Priority::Low };
        self.shares.iter_mut().for_each(|share| share.priority = priority);
        self.shares_changed();
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
        self.tallies[function.index()].contexts += 1;
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
        if context.home == Home::Queued && priority != before {
            let function = context.function;
            self.queues[class].look(function, |queue| {
                if let Some(entry) = queue.remove(id) {
                    queue.push(priority, entry);
                }
            });
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
                queues[usize::from(context.class.guc())].look(function, |queue| queue.remove(*id));
            }
            keep
        });
        self.tallies[function.index()].contexts = 0;
        set_bit(&mut self.paused, function, false);
        set_bit(&mut self.cat_error_type, function, false);
    }

    /// Asks the contexts of `function` to leave the engines, and keeps them off; [`Scheduler::quiet`] tells when it is
    /// done.
    pub fn pause(&mut self, turn: &mut Turn<'_>, function: Function) {
        set_bit(&mut self.paused, function, true);
        for (id, context) in self.contexts.iter_mut().filter(|(_, context)| context.function == function) {
            if context.home == Home::Queued {
                self.queues[usize::from(context.class.guc())].look(function, |queue| queue.remove(*id));
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
}

fn set_bit(set: &mut u64, function: Function, on: bool) {
    *set = *set & !function.bit() | if on { function.bit() } else { 0 };
}
