// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The scheduler: registered contexts, the queues of each engine class, the state of each engine, and notifications to
//! the functions.

mod completion;
mod dispatch;
mod vf_quanta;

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;

use crate::engine::{EngineReport, Engines, Halt, Load, Outcome, Submitter};
use crate::execlist::descriptor::Descriptor;
use crate::gt::Gt;
use crate::host::{FUNCTIONS, Function, functions, ticks};
use crate::memory::{Gam, GuestMappings, Tlb};
use crate::topology::{EngineClass, EngineId};
use crate::trace::EventKind;

use super::activity::Activity;
use super::ads::{Ads, MAX_LOGICAL};
use super::capture::{Capture, Hung};
use super::context::{Context, Home, Registration};
use super::engine_slot::EngineSlot;
use super::firmware::Firmware;
use super::hxg::{Error, Outgoing, Reply};
use super::queue::{Entry, InstanceState, Instances, Queues, not_before};
use super::round_robin::{DeficitRoundRobin, Moment};
use super::share::{Adverse, Priority, Share};

const CLASSES: usize = EngineClass::BY_GUC.len();

/// G2H: scheduling of a context was enabled or disabled.
const SCHED_CONTEXT_MODE_DONE: u16 = 0x1002;
/// G2H: an engine was reset because of a context.
const CONTEXT_RESET_NOTIFICATION: u16 = 0x1008;
/// G2H: a context was deregistered.
const DEREGISTER_CONTEXT_DONE: u16 = 0x4600;
/// G2H: a context made an access without a valid translation (CAT error).
const NOTIFY_MEMORY_CAT_ERROR: u16 = 0x6000;
/// G2H: registers of an engine about to be reset have been captured in the log.
const STATE_CAPTURE_NOTIFICATION: u16 = 0x8002;
/// CAT error type if the hardware reports none (xe: XE_GUC_CAT_ERR_TYPE_INVALID).
const CAT_ERROR_TYPE_UNKNOWN: u32 = 0xdead_beef;

/// Time for which a context that waited for a memory change may not preempt others, in nanoseconds.
const WAIT_PAUSE: u64 = 1_000_000;
/// Minimum preemption timeout, in nanoseconds of engine time. Hardware reaches the next arbitration point within
/// microseconds, an emulated engine within milliseconds. This difference must not cause a reset.
const LEAST_PREEMPTION_TIMEOUT: u64 = 20_000_000;

/// State that the GuC uses during one step or request.
pub struct GucCtx<'t> {
    /// Shared state of the card.
    pub gt: &'t Gt,
    /// The engines. Lock order: engine locks are taken after the GuC's lock.
    pub engines: &'t Engines,
    /// Guest memory of the functions.
    pub views: &'t GuestMappings<'t>,
    /// The GuC's TLB.
    pub tlb: &'t mut Tlb,
    /// Function that made the request being executed.
    pub function: Function,
    /// Current time of the card's clock, in nanoseconds.
    pub now: u64,
    /// Messages to the PF and the VFs.
    pub out: &'t mut Vec<(Function, Outgoing)>,
}

impl<'t> GucCtx<'t> {
    /// Creates the state for executing a request of `function` at the current time.
    pub fn new(
        gt: &'t Gt,
        engines: &'t Engines,
        views: &'t GuestMappings<'t>,
        tlb: &'t mut Tlb,
        function: Function,
        out: &'t mut Vec<(Function, Outgoing)>,
    ) -> Self {
        GucCtx { gt, engines, views, tlb, function, now: gt.clock.now(), out }
    }

    /// Returns the engine time of `engine`, in nanoseconds.
    pub fn time(&self, engine: EngineId) -> u64 {
        self.gt.engine_clocks[engine.index()].time()
    }

    /// Returns the current time as used by `rotation`.
    fn moment(&self, rotation: &DeficitRoundRobin) -> Moment {
        Moment { card: self.now, engine: self.gt.engine_clocks[rotation.on()].time() }
    }

    /// Records that the engine of `rotation` now runs `function`, or is idle if `None`. The function is charged by the
    /// engine time of `on`.
    fn occupy(&self, rotation: &mut DeficitRoundRobin, function: Option<Function>, on: EngineId) {
        rotation.occupy(self.moment(rotation), function, on.index(), self.time(on));
    }

    /// Returns a [`Gam`] with the address spaces of `function`.
    pub fn gam(&mut self, function: Function) -> Gam<'_> {
        self.gt.memory.gam(function, self.views, self.tlb)
    }

    /// Returns a [`Gam`] with the address spaces of `self.function`.
    pub fn own(&mut self) -> Gam<'_> {
        self.gam(self.function)
    }

    /// Queues a message to `function`.
    pub fn tell(&mut self, function: Function, message: Outgoing) {
        self.gt.trace.tell(function, None, || EventKind::Guc {
            mailbox: false,
            fence: message.fence,
            dwords: message.hxg().to_vec(),
        });
        self.out.push((function, message));
    }
}

/// Counters of a function's contexts, for monitoring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of registered contexts.
    pub contexts: u32,
    /// Number of engine resets caused by its contexts.
    pub engine_resets: u64,
    /// Number of accesses of its contexts without a valid translation.
    pub cat_errors: u64,
}

/// Scheduler state of one GuC boot.
pub struct Scheduler {
    ads: Ads,
    /// Registered contexts by global id: the PF's ids are used unchanged, a VF's are offset by the start of its range.
    contexts: HashMap<u16, Context>,
    queues: [Queues; CLASSES],
    slots: [EngineSlot; EngineId::COUNT],
    /// Turns of the functions on each engine.
    rotations: [DeficitRoundRobin; EngineId::COUNT],
    /// Classes for which more than one function competes.
    rotating: [bool; CLASSES],
    /// Number of loads so far. Kept across boots, so that a report from an earlier boot does not match a current load.
    pub loads: u16,
    shares: [Share; FUNCTIONS],
    tallies: [Tally; FUNCTIONS],
    /// Whether the drivers' activity records contain the current shares.
    shares_told: bool,
    /// Functions (one bit each) that keep their turn without work.
    standing: u64,
    /// Functions (one bit each) with contexts that must stay off the engines.
    paused: u64,
    /// Functions (one bit each) that have opted in to CAT error types.
    cat_error_type: u64,
    /// Adverse events since they were last taken.
    pub adverse: Vec<(Function, Adverse)>,
    /// Compute contexts that wait to switch out must be released.
    hold_compute: bool,
    capture: Capture,
    /// Busy time of the engines.
    pub activity: Activity,
}

impl Scheduler {
    /// Creates a scheduler without contexts. `loads` continues from the last boot.
    pub fn new(ads: Ads, firmware: &Firmware, loads: u16) -> Self {
        Scheduler {
            ads,
            contexts: HashMap::new(),
            queues: Default::default(),
            slots: [EngineSlot::default(); EngineId::COUNT],
            rotations: std::array::from_fn(|_| DeficitRoundRobin::default()),
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

    /// Returns the state of an engine.
    #[cfg(test)]
    pub fn slot(&self, engine: EngineId) -> &EngineSlot {
        &self.slots[engine.index()]
    }

    /// Returns the number of registered contexts.
    pub fn contexts(&self) -> usize {
        self.contexts.len()
    }

    /// Returns the counters of `function`.
    pub fn tally(&self, function: Function) -> Tally {
        self.tallies[function.index()]
    }

    /// Returns the owner of the context loaded on an engine, and the owner's id of that context.
    pub fn running(&self, engine: EngineId) -> Option<(Function, u16)> {
        let slot = &self.slots[engine.index()];
        let function = slot.occupant()?;
        Some((function, self.contexts.get(&slot.context)?.local))
    }

    /// Returns the functions (one bit each) with queued contexts.
    pub fn waiting(&self) -> u64 {
        self.queues.iter().fold(0, |set, queues| set | queues.waiting())
    }

    /// Returns whether any engine has a context loaded.
    pub fn busy(&self) -> bool {
        self.slots.iter().any(|slot| slot.loaded)
    }

    /// Returns whether no context of `function` is on an engine.
    pub fn quiet(&self, function: Function) -> bool {
        !self.slots.iter().any(|slot| slot.loaded && slot.function == Some(function))
    }

    /// Sets whether CAT errors of `function` are reported with their type.
    pub fn set_cat_error_type(&mut self, function: Function, told: bool) {
        set_bit(&mut self.cat_error_type, function, told);
    }

    /// Returns the share of `function`.
    pub fn share(&self, function: Function) -> Share {
        self.shares[function.index()]
    }

    /// Sets the share of `function`. If the quantum changes, its time deficit is cleared.
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

    /// Applies policy SCHED_IF_IDLE: if `strict`, every function keeps its turn in the rotation, even without work.
    /// Sets the priority of all functions to normal or low (xe: abi/guc_klvs_abi.h).
    pub fn set_strict(&mut self, strict: bool) {
        let priority = if strict { Priority::Normal } else { Priority::Low };
        self.shares.iter_mut().for_each(|share| share.priority = priority);
        self.shares_changed();
    }

    /// Disables or enables the engine reset after a context has exceeded its preemption timeout.
    pub fn set_engine_reset_disabled(&mut self, disabled: bool) {
        self.ads.engine_reset_disabled = disabled;
    }

    fn context(&mut self, id: u32) -> Result<(u16, &mut Context), Error> {
        let id = u16::try_from(id).map_err(|_| Error::InvalidContextIndex)?;
        self.contexts.get_mut(&id).map(|context| (id, context)).ok_or(Error::ContextNotRegistered)
    }

    /// Returns the global id `id` if `function` has registered that context. Fails for contexts of other functions
    /// (V13-036).
    pub fn owned(&self, function: Function, id: u32) -> Result<u16, Error> {
        let id = u16::try_from(id).map_err(|_| Error::InvalidContextIndex)?;
        let own = self.contexts.get(&id).filter(|context| context.function == function && !context.deregistering);
        own.map(|_| id).ok_or(Error::ContextNotRegistered)
    }

    /// REGISTER_CONTEXT and REGISTER_CONTEXT_MULTI_LRC for `ctx.function`. `id` is the context's global id;
    /// `registration` contains the function's own id.
    pub fn register(&mut self, ctx: &mut GucCtx<'_>, id: u16, registration: &Registration<'_>) -> Reply {
        let function = ctx.function;
        let context = registration.check(&mut ctx.own(), &self.ads.map, function)?;
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

    /// SCHED_CONTEXT_MODE_SET: the host is notified on completion.
    pub fn set_mode(&mut self, ctx: &mut GucCtx<'_>, id: u32, enable: bool) -> Reply {
        let (id, context) = self.context(id)?;
        if context.disabling || context.deregistering {
            return Err(Error::PendingAction);
        }
        context.enabled = enable;
        if enable {
            ctx.tell(context.function, Outgoing::event(SCHED_CONTEXT_MODE_DONE, &[u32::from(context.local), 1]));
            self.look(ctx, id);
            return Ok(0);
        }
        context.disabling = true;
        self.take_off(ctx, id);
        Ok(0)
    }

    /// SCHED_CONTEXT: the context may have new work.
    pub fn submit(&mut self, ctx: &mut GucCtx<'_>, id: u32) -> Reply {
        let (id, _) = self.context(id)?;
        self.look(ctx, id);
        Ok(0)
    }

    /// DEREGISTER_CONTEXT: the host is notified on completion.
    pub fn deregister(&mut self, ctx: &mut GucCtx<'_>, id: u32) -> Reply {
        let (id, context) = self.context(id)?;
        if context.deregistering {
            return Err(Error::PendingAction);
        }
        context.enabled = false;
        context.deregistering = true;
        self.take_off(ctx, id);
        Ok(0)
    }

    /// Returns the function that registered the context with global id `id`.
    pub fn owner(&self, id: u32) -> Option<Function> {
        self.contexts.get(&u16::try_from(id).ok()?).map(|context| context.function)
    }

    /// Stops the running contexts of `function` immediately and drops all of its contexts. No messages are sent for
    /// them, because the driver or the PF has discarded them (V13-121).
    pub fn drop_function(&mut self, ctx: &mut GucCtx<'_>, function: Function) {
        for engine in EngineId::all() {
            let slot = self.slots[engine.index()];
            if slot.function != Some(function) {
                continue;
            }
            if slot.loaded {
                self.reset_engine(ctx, engine);
            }
            self.slots[engine.index()] = EngineSlot::default();
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

    /// Requests preemption of the contexts of `function` and keeps them off the engines. [`Scheduler::quiet`] returns
    /// true once they have left.
    pub fn pause(&mut self, ctx: &mut GucCtx<'_>, function: Function) {
        set_bit(&mut self.paused, function, true);
        for (id, context) in self.contexts.iter_mut().filter(|(_, context)| context.function == function) {
            if context.home == Home::Queued {
                self.queues[usize::from(context.class.guc())].look(function, |queue| queue.remove(*id));
                context.home = Home::Rest;
            }
        }
        for engine in EngineId::all() {
            let slot = self.slots[engine.index()];
            if slot.function == Some(function) {
                let own = self.contexts.get(&slot.context).map_or(0, |context| context.policies.preemption_timeout);
                let timeout = match self.share(function).preemption_timeout {
                    0 => own,
                    timeout => timeout,
                };
                self.ask_to_leave(ctx, slot.context, timeout);
            }
        }
    }

    /// Allows the contexts of `function` to run again.
    pub fn resume(&mut self, ctx: &mut GucCtx<'_>, function: Function) {
        set_bit(&mut self.paused, function, false);
        let of = |(id, context): (&u16, &Context)| (context.function == function).then_some(*id);
        let mut contexts: Vec<u16> = self.contexts.iter().filter_map(of).collect();
        contexts.sort_unstable();
        for id in contexts {
            self.go_on(ctx, id, ctx.now);
        }
    }
}

fn set_bit(set: &mut u64, function: Function, on: bool) {
    *set = *set & !function.bit() | if on { function.bit() } else { 0 };
}
