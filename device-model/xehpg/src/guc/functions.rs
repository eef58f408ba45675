// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The GuC's state of each function, in one structure per function.

pub mod client;
pub mod context;
pub mod engine_map;
pub mod function_activity;
pub mod member;
pub mod parallel;
pub mod queue;
pub mod share;
pub mod thresholds;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Index, IndexMut, Range};

use crate::guc::functions::client::{Client, Counters, FixUp, State};
use crate::guc::functions::context::{Context, GucContextId, Home};
use crate::guc::functions::function_activity::FunctionActivity;
use crate::guc::functions::queue::Queue;
use crate::guc::functions::share::Share;
use crate::guc::provisioning::VfConfig;
use crate::guc::provisioning::threshold_event::Watch;
use crate::host::{FUNCTIONS, Function, RetryTime, functions};
use crate::topology::{EngineClass, MAX_ENGINES};

/// Number of engine classes, in the GuC's numbering.
pub const CLASSES: usize = EngineClass::BY_GUC.len();

/// The GuC's state of one function. It lasts for one boot of the GuC, except for [`GucFunction::granted`].
#[derive(Default)]
pub struct GucFunction {
    /// What the function's driver has set up, apart from contexts and doorbells.
    pub client: Client,
    /// Current state (contract D.7).
    pub state: State,
    /// Configuration assigned by the PF; kept when the function is reset.
    pub config: VfConfig,
    /// GGTT range last assigned to the function. Kept across boots, because the VF's GGTT entries survive a GuC reset.
    pub granted: Range<u64>,
    /// Time in nanoseconds at which the PF was last notified of an FLR ([`crate::guc::actions::control::repeat_notices`]); valid in the
    /// state [`State::ResetPending`].
    pub(super) noticed_at: u64,
    /// What the driver has to do because the function was restored at another place.
    pub fix_up: FixUp,
    /// Time in nanoseconds of the last PAUSE; valid in the state [`State::Paused`].
    pub(super) paused_at: u64,
    /// Request counters since the last boot.
    pub counters: Counters,
    /// Number of log messages about requests of the function.
    pub(super) complaints: u8,
    /// For how long a request has been repeated because the client does not answer its accesses.
    pub(super) repeats: RetryTime,
    /// The same of the request in the mailbox.
    pub(super) mailbox_repeats: RetryTime,
    /// Contexts whose work could not be read because the client did not answer, by the function's own ids.
    pub(super) unchecked: BTreeSet<u16>,
    /// For how long the client has not answered when they were checked again.
    pub(super) checks: RetryTime,
    /// Registered contexts, by the function's own ids.
    pub contexts: BTreeMap<u16, Context>,
    /// Runnable contexts of each class. Changed only by [`Functions::queue`].
    queues: [Queue; CLASSES],
    /// The contexts must stay off the engines.
    pub paused: bool,
    /// Share of the engines; follows from the configuration.
    pub share: Share,
    /// Remaining credit of the function on each engine, in ns; negative after an overrun ([`crate::guc::scheduler::round_robin`]).
    pub credit: [i64; MAX_ENGINES],
    /// Busy time of each engine, and the share of engine time as shown to the drivers.
    pub activity: FunctionActivity,
    /// Number of requests received through the CT buffer.
    pub messages: u64,
    /// Number of engine resets caused by its contexts.
    pub engine_resets: u64,
    /// Number of accesses of its contexts without a valid translation.
    pub cat_errors: u64,
    /// Number of contexts with a skipped command in a batch of user space.
    pub(super) skipped_contexts: u64,
    /// Counts of adverse events.
    pub watch: Watch,
}

impl GucFunction {
    /// Returns whether a parallel context is queued for `class`.
    #[allow(clippy::indexing_slicing, reason = "a class of the GuC is below CLASSES")]
    pub fn has_wide(&self, class: EngineClass) -> bool {
        self.queues[usize::from(class.guc())].has_wide()
    }

    /// Number of contexts that are queued for `class`.
    #[allow(clippy::indexing_slicing, reason = "a class of the GuC is below CLASSES")]
    pub fn queued(&self, class: EngineClass) -> usize {
        self.queues[usize::from(class.guc())].len()
    }
}

/// The state of all functions, by function, and the sets of functions with queued contexts.
pub struct Functions {
    all: Box<[GucFunction]>,
    /// Functions (one bit each) with queued contexts, by class.
    waiting: [u64; CLASSES],
}

impl Default for Functions {
    fn default() -> Self {
        Functions { all: (0..FUNCTIONS).map(|_| GucFunction::default()).collect(), waiting: [0; CLASSES] }
    }
}

impl Index<Function> for Functions {
    type Output = GucFunction;

    #[allow(clippy::indexing_slicing, reason = "Function::index is below FUNCTIONS")]
    fn index(&self, function: Function) -> &GucFunction {
        &self.all[function.index()]
    }
}

impl IndexMut<Function> for Functions {
    #[allow(clippy::indexing_slicing, reason = "Function::index is below FUNCTIONS")]
    fn index_mut(&mut self, function: Function) -> &mut GucFunction {
        &mut self.all[function.index()]
    }
}

impl Functions {
    /// Returns the state for the next boot: of the current one, only what survives a GuC reset.
    pub fn next_boot(mut self) -> Self {
        for function in &mut self.all {
            let granted = std::mem::take(&mut function.granted);
            *function = GucFunction { granted, ..GucFunction::default() };
        }
        self.waiting = [0; CLASSES];
        self
    }

    /// Returns all functions with their state.
    pub fn iter(&self) -> impl Iterator<Item = (Function, &GucFunction)> {
        Function::all().zip(&self.all)
    }

    /// Returns all functions with their state.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (Function, &mut GucFunction)> {
        Function::all().zip(&mut self.all)
    }

    /// Returns a context.
    pub fn context(&self, id: GucContextId) -> Option<&Context> {
        self[id.function].contexts.get(&id.local)
    }

    /// Returns a context.
    pub fn context_mut(&mut self, id: GucContextId) -> Option<&mut Context> {
        self[id.function].contexts.get_mut(&id.local)
    }

    /// Returns the context with this number ([`Context::number`]).
    pub fn numbered(&self, number: u16) -> Option<GucContextId> {
        self.iter().find_map(|(function, of)| {
            let begin = if function.is_vf() { of.config.contexts.begin } else { 0 };
            let local = u16::try_from(u32::from(number).checked_sub(begin)?).ok()?;
            let context = of.contexts.get(&local)?;
            (context.number == number).then_some(GucContextId { function, local })
        })
    }

    /// Returns the functions (one bit each) with queued contexts of `class`.
    #[allow(clippy::indexing_slicing, reason = "a class of the GuC is below CLASSES")]
    pub fn waiting(&self, class: EngineClass) -> u64 {
        self.waiting[usize::from(class.guc())]
    }

    /// Returns the functions (one bit each) with queued contexts.
    pub fn waiting_anywhere(&self) -> u64 {
        self.waiting.iter().fold(0, |all, set| all | set)
    }

    /// Returns whether any function has a parallel context of `class` queued.
    pub fn has_wide(&self, class: EngineClass) -> bool {
        functions(self.waiting(class)).any(|function| self[function].has_wide(class))
    }

    /// Calls `look` with the queue of `function` for `class`, and updates [`Functions::waiting`] afterwards.
    #[allow(
        clippy::indexing_slicing,
        reason = "Function::index is below FUNCTIONS, and a class of the GuC below CLASSES"
    )]
    pub fn queue<T>(&mut self, function: Function, class: EngineClass, access: impl FnOnce(&mut Queue) -> T) -> T {
        let class = usize::from(class.guc());
        let queue = &mut self.all[function.index()].queues[class];
        let answer = access(queue);
        let set = &mut self.waiting[class];
        *set = *set & !function.bit() | if queue.is_empty() { 0 } else { function.bit() };
        answer
    }

    /// Removes the contexts of `function` from its queues.
    pub fn unqueue(&mut self, function: Function) {
        for context in self[function].contexts.values_mut().filter(|context| context.home == Home::Queued) {
            context.home = Home::Rest;
        }
        self.clear_queues(function);
    }

    fn clear_queues(&mut self, function: Function) {
        self[function].queues = Default::default();
        self.waiting.iter_mut().for_each(|set| *set &= !function.bit());
    }

    /// Drops the contexts of `function`, including those in its queues. None of them may be on an engine.
    pub fn drop_contexts(&mut self, function: Function) {
        self[function].contexts.clear();
        self[function].unchecked.clear();
        self.clear_queues(function);
    }
}
