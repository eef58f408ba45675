// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The scheduler: registered contexts, the queues of each engine class, the state of each engine, and notifications to
//! the functions.

mod completion;
mod dispatch;
pub mod engine_slot;
pub mod round_robin;
mod vf_quanta;

use arctic_sriov::number::count;

use crate::engine::{EngineReport, Engines, Halt, Load, Outcome, Submitter};
use crate::execlist::descriptor::Descriptor;
use crate::generation::Generation;
use crate::gt::Gt;
use crate::guc::activity::Activity;
use crate::guc::functions::client::State;
use crate::guc::functions::context::{Context, GucContextId, Home, Registration};
use crate::guc::functions::engine_map::{EngineMap, MAX_LOGICAL};
use crate::guc::functions::queue::{Entry, InstanceState, Instances, not_before};
use crate::guc::functions::share::{Priority, Share, ThresholdEvent};
use crate::guc::functions::{CLASSES, Functions};
use crate::guc::load::ads::Ads;
use crate::guc::load::capture::{Capture, Hung};
use crate::guc::load::firmware::Firmware;
use crate::guc::messages::ctb::MOST_OUT_OF_REACH;
use crate::guc::messages::hxg::{Answer, DEREGISTER_CONTEXT_DONE, Error, Outgoing, Reply, SCHED_CONTEXT_MODE_DONE};
use crate::guc::scheduler::engine_slot::EngineSlot;
use crate::guc::scheduler::round_robin::{DeficitRoundRobin, Moment};
use crate::host::{Function, functions};
use crate::memory::{Gam, GuestMappings, Tlb};
use crate::topology::{EngineClass, EngineId, MAX_ENGINES};
use crate::trace::EventKind;
use crate::units::Units;

/// G2H: an engine was reset because of a context.
const CONTEXT_RESET_NOTIFICATION: u16 = 0x1008;
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
    /// The units for whose steps the GuC waits, the engines among them.
    pub units: &'t Units,
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
        units: &'t Units,
        views: &'t GuestMappings<'t>,
        tlb: &'t mut Tlb,
        function: Function,
        out: &'t mut Vec<(Function, Outgoing)>,
    ) -> Self {
        GucCtx { gt, engines, units, views, tlb, function, now: gt.clock.now(), out }
    }

    /// Returns the engine time of `engine`, in nanoseconds.
    #[allow(clippy::indexing_slicing, reason = "there is a clock for each engine")]
    pub fn time(&self, engine: EngineId) -> u64 {
        self.gt.engine_clocks[engine.index()].time()
    }

    /// Returns the current time as used by `rotation`.
    #[allow(clippy::indexing_slicing, reason = "there is a clock for each engine")]
    fn moment(&self, rotation: &DeficitRoundRobin) -> Moment {
        Moment { card: self.now, engine: self.gt.engine_clocks[rotation.on()].time() }
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
    pub fn send_message(&mut self, function: Function, message: Outgoing) {
        self.gt.trace.record(function, || EventKind::Guc {
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
    /// State of the functions, including their contexts and queues.
    pub functions: Functions,
    slots: [EngineSlot; MAX_ENGINES],
    /// Turns of the functions on each engine.
    rotations: [DeficitRoundRobin; MAX_ENGINES],
    /// Classes for which more than one function competes.
    rotating: [bool; CLASSES],
    /// Number of loads so far. Kept across boots, so that a report from an earlier boot does not match a current load.
    pub loads: u16,
    /// Whether the drivers' activity records contain the current shares.
    shares_recorded: bool,
    /// Functions (one bit each) that keep their turn without work.
    reserved: u64,
    /// Adverse events since they were last taken.
    pub threshold_events: Vec<(Function, ThresholdEvent)>,
    /// Compute contexts that wait to switch out must be released.
    hold_compute: bool,
    capture: Capture,
    /// Functions (one bit each) that may have contexts in [`unchecked`](crate::guc::functions::GucFunction).
    unchecked: u64,
    /// Busy time of the engines.
    pub activity: Activity,
}

impl Scheduler {
    /// Creates a scheduler without contexts. `functions` and `loads` continue from the last boot.
    pub fn new(generation: &Generation, ads: Ads, firmware: &Firmware, functions: Functions, loads: u16) -> Self {
        Scheduler {
            ads,
            functions,
            slots: [EngineSlot::default(); MAX_ENGINES],
            rotations: std::array::from_fn(DeficitRoundRobin::new),
            rotating: [false; CLASSES],
            loads,
            shares_recorded: true,
            reserved: 0,
            threshold_events: Vec::new(),
            hold_compute: firmware.holds_compute_switch_out(),
            capture: Capture::new(firmware.log(), ads.lists),
            unchecked: 0,
            activity: Activity::new(ads.map, generation.timebase),
        }
    }

    /// Returns the engines of each class.
    pub fn map(&self) -> EngineMap {
        self.ads.map
    }

    /// Returns the state of an engine.
    #[allow(clippy::indexing_slicing, reason = "there is a slot for each engine")]
    pub fn slot(&self, engine: EngineId) -> &EngineSlot {
        &self.slots[engine.index()]
    }

    /// Returns the number of registered contexts of all functions.
    #[cfg(test)]
    pub fn contexts(&self) -> usize {
        self.functions.iter().map(|(_, function)| function.contexts.len()).sum()
    }

    /// Returns the counters of `function`.
    pub fn tally(&self, function: Function) -> Tally {
        let function = &self.functions[function];
        Tally {
            contexts: count(function.contexts.len()),
            engine_resets: function.engine_resets,
            cat_errors: function.cat_errors,
        }
    }

    /// Returns the context loaded on an engine.
    #[allow(clippy::indexing_slicing, reason = "there is a slot for each engine")]
    pub fn running(&self, engine: EngineId) -> Option<GucContextId> {
        self.slots[engine.index()].context.filter(|_| self.slots[engine.index()].loaded)
    }

    /// Returns the functions (one bit each) with queued contexts.
    pub fn waiting(&self) -> u64 {
        self.functions.waiting_anywhere()
    }

    /// Returns whether any engine has a context loaded.
    pub fn busy(&self) -> bool {
        self.slots.iter().any(|slot| slot.loaded)
    }

    /// Returns whether no context of `function` is on an engine.
    pub fn quiet(&self, function: Function) -> bool {
        !self.slots.iter().any(|slot| slot.occupant() == Some(function))
    }

    /// Returns the share of `function`.
    pub fn share(&self, function: Function) -> Share {
        self.functions[function].share
    }

    /// Sets the share of `function`. If the quantum changes, its time deficit is cleared.
    pub fn set_share(&mut self, function: Function, share: Share) {
        let of = &mut self.functions[function];
        let before = std::mem::replace(&mut of.share, share);
        if before.quantum != share.quantum {
            of.credit = Default::default();
        }
        self.shares_changed();
    }

    fn shares_changed(&mut self) {
        let competes = |share: Share| share.priority == Priority::Normal && share.quantum != 0;
        let reserved = self.functions.iter().filter(|(_, of)| competes(of.share));
        self.reserved = reserved.fold(0, |set, (function, _)| set | function.bit());
        self.shares_recorded = false;
    }

    /// Applies policy SCHED_IF_IDLE: if `strict`, every function keeps its turn in the rotation, even without work.
    /// Sets the priority of all functions to normal or low (xe: abi/guc_klvs_abi.h).
    pub fn set_strict(&mut self, strict: bool) {
        let priority = if strict { Priority::Normal } else { Priority::Low };
        self.functions.iter_mut().for_each(|(_, function)| function.share.priority = priority);
        self.shares_changed();
    }

    /// Disables or enables the engine reset after a context has exceeded its preemption timeout.
    pub fn set_engine_reset_disabled(&mut self, disabled: bool) {
        self.ads.engine_reset_disabled = disabled;
    }

    fn context(&mut self, id: GucContextId) -> Result<&mut Context, Error> {
        self.functions.context_mut(id).ok_or(Error::ContextNotRegistered)
    }

    /// Returns `id` if it is a registered context that is not being deregistered (V13-036).
    pub fn owned(&self, id: GucContextId) -> Result<GucContextId, Error> {
        let own = self.functions.context(id).filter(|context| !context.deregistering);
        own.map(|_| id).ok_or(Error::ContextNotRegistered)
    }

    /// Records that `engine` now runs `function`, or is idle if `None`. The function is charged by the engine time of
    /// `on`.
    #[allow(clippy::indexing_slicing, reason = "there is a rotation for each engine")]
    fn occupy(&mut self, ctx: &GucCtx<'_>, engine: EngineId, function: Option<Function>, on: EngineId) {
        let rotation = &mut self.rotations[engine.index()];
        let now = ctx.moment(rotation);
        rotation.occupy(now, function, (on.index(), ctx.time(on)), &mut self.functions);
    }

    /// REGISTER_CONTEXT and REGISTER_CONTEXT_MULTI_LRC for `ctx.function`, which is also the function of `id`.
    pub fn register(&mut self, ctx: &mut GucCtx<'_>, id: GucContextId, registration: &Registration<'_>) -> Reply {
        let context = registration.check(&mut ctx.own(), &self.ads.map)?;
        let wide = context.members.len() > 1;
        // The PF's ids may lie in the range of a VF.
        let used = self.functions.context(id).is_some() || self.functions.numbered(context.number).is_some();
        if used {
            return Err(Error::ContextAlreadyRegistered);
        }
        self.functions[id.function].contexts.insert(id.local, context);
        if wide {
            self.threshold_events.push((id.function, ThresholdEvent::ParallelContext));
        }
        Ok(Answer::default())
    }

    /// UPDATE_CONTEXT_POLICIES.
    pub fn set_policies(&mut self, id: GucContextId, list: &[u32]) -> Reply {
        let context = self.context(id)?;
        let before = context.policies.priority;
        context.policies.update(list)?;
        let (class, priority) = (context.class, context.policies.priority);
        if context.home == Home::Queued && priority != before {
            self.functions.queue(id.function, class, |queue| {
                if let Some(entry) = queue.remove(id.local) {
                    queue.push(priority, entry);
                }
            });
        }
        Ok(Answer::default())
    }

    /// SCHED_CONTEXT_MODE_SET: the host is notified on completion.
    pub fn set_mode(&mut self, ctx: &mut GucCtx<'_>, id: GucContextId, enable: bool) -> Reply {
        let context = self.context(id)?;
        if context.disabling || context.deregistering {
            return Err(Error::PendingAction);
        }
        context.enabled = enable;
        if enable {
            ctx.send_message(id.function, Outgoing::event(SCHED_CONTEXT_MODE_DONE, &[u32::from(id.local), 1]));
            self.check_for_work(ctx, id);
            return Ok(Answer::default());
        }
        context.disabling = true;
        self.take_off(ctx, id);
        Ok(Answer::default())
    }

    /// SCHED_CONTEXT: the context may have new work.
    pub fn submit(&mut self, ctx: &mut GucCtx<'_>, id: GucContextId) -> Reply {
        self.context(id)?;
        self.check_for_work(ctx, id);
        Ok(Answer::default())
    }

    /// DEREGISTER_CONTEXT: the host is notified on completion.
    pub fn deregister(&mut self, ctx: &mut GucCtx<'_>, id: GucContextId) -> Reply {
        let context = self.context(id)?;
        if context.deregistering {
            return Err(Error::PendingAction);
        }
        context.enabled = false;
        context.deregistering = true;
        self.take_off(ctx, id);
        Ok(Answer::default())
    }

    /// Stops the running contexts of `function` immediately and drops all of its contexts. No messages are sent for
    /// them, because the driver or the PF has discarded them (V13-121).
    #[allow(clippy::indexing_slicing, reason = "there is a slot for each engine")]
    pub fn drop_function(&mut self, ctx: &mut GucCtx<'_>, function: Function) {
        for engine in ctx.gt.generation.engines.all() {
            let slot = self.slots[engine.index()];
            if slot.function() != Some(function) {
                continue;
            }
            if slot.loaded {
                self.reset_engine(ctx, engine);
            }
            self.slots[engine.index()] = EngineSlot::default();
        }
        self.functions.drop_contexts(function);
        ctx.gt.parked.drop_function(function);
        self.functions[function].paused = false;
        self.functions[function].client.cat_error_type = false;
    }

    /// Requests preemption of the contexts of `function` and keeps them off the engines. [`Scheduler::quiet`] returns
    /// true once they have left.
    #[allow(clippy::indexing_slicing, reason = "there is a slot for each engine")]
    pub fn pause(&mut self, ctx: &mut GucCtx<'_>, function: Function) {
        self.functions[function].paused = true;
        self.functions.unqueue(function);
        for engine in ctx.gt.generation.engines.all() {
            let Some(context) = self.slots[engine.index()].context.filter(|id| id.function == function) else {
                continue;
            };
            let own = self.functions.context(context).map_or(0, |context| context.policies.preemption_timeout);
            let timeout = match self.share(function).preemption_timeout {
                0 => own,
                timeout => timeout,
            };
            self.preempt_context(ctx, context, timeout);
        }
    }

    /// Allows the contexts of `function` to run again.
    pub fn resume(&mut self, ctx: &mut GucCtx<'_>, function: Function) {
        self.functions[function].paused = false;
        let contexts: Vec<u16> = self.functions[function].contexts.keys().copied().collect();
        for local in contexts {
            self.go_on(ctx, GucContextId { function, local }, ctx.now);
        }
    }
}
