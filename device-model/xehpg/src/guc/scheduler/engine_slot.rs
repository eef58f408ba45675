// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Scheduler state of one engine: the context that holds it, whether that context is loaded, and the time-slice and
//! preemption deadlines. Times are engine time ([`crate::gt::EngineClock`]) of that engine.

use crate::guc::functions::context::GucContextId;
use crate::guc::functions::queue::InstanceState;
use crate::host::Function;
use serde::Serialize;

/// The context that holds an engine, or that was loaded on it last.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct EngineSlot {
    /// The context.
    pub context: Option<GucContextId>,
    /// Index of the member of the context that runs on this engine; 0 unless the context is a parallel context.
    pub member: u8,
    /// Identifier of this context load. A report with a different identifier is stale.
    pub ticket: u32,
    /// The context holds the engine, even while this member has nothing to run.
    pub held: bool,
    /// The member is loaded on the engine.
    pub loaded: bool,
    /// End of the time slice, in ns of engine time; `None` if unlimited.
    #[serde(rename = "slice_end_ns")]
    pub slice_end: Option<u64>,
    /// Preemption has been requested.
    pub leaving: bool,
    /// Preemption deadline, in ns of engine time.
    #[serde(rename = "leave_by_ns")]
    pub leave_by: Option<u64>,
    /// Preemption has been requested because the function's turn has ended.
    pub evicted: bool,
    /// The engine reported that the context waits for a memory change (e.g. MI_SEMAPHORE_WAIT). Valid only while the
    /// engine is still waiting, see [`EngineSlot::works`].
    pub waiting: bool,
    /// The reported wait is a polling loop, which counts as work for time sharing among functions.
    pub spins: bool,
    /// The context is halted, and engine resets are disabled.
    pub stuck: bool,
}

impl EngineSlot {
    /// Returns the instance state that the queue uses for scheduling. `priority` is the context's priority, `waits` is
    /// set if the engine is still waiting, and `time` is the engine time.
    pub fn place(&self, priority: u8, waits: bool, time: u64) -> InstanceState {
        match (self.held, self.leaving) {
            (false, _) => InstanceState::Free,
            (true, true) => InstanceState::Leaving,
            (true, false) => {
                InstanceState::Busy { priority, slice_left: self.slice_left(time), waiting: self.waiting && waits }
            }
        }
    }

    /// Returns the remaining time slice at engine time `time`, in ns; `None` if unlimited.
    pub fn slice_left(&self, time: u64) -> Option<u64> {
        self.slice_end.map(|end| end.saturating_sub(time))
    }

    /// Returns the function that owns the context.
    pub fn function(&self) -> Option<Function> {
        self.context.map(|context| context.function)
    }

    /// Returns the function that owns the context loaded on the engine.
    pub fn occupant(&self) -> Option<Function> {
        self.function().filter(|_| self.loaded)
    }

    /// Returns whether the context counts as work of its function: it holds the engine, is not being preempted, and
    /// does not wait for memory. A polling loop counts as work. `waits` is set if the engine is still waiting.
    pub fn works(&self, waits: bool) -> bool {
        self.held && !self.leaving && !(self.waiting && !self.spins && waits)
    }

    /// Records a preemption request with the deadline `leave_by`. If one is pending, the earlier deadline applies.
    pub fn leave(&mut self, leave_by: Option<u64>) {
        self.leave_by = match (self.leave_by, leave_by) {
            (Some(before), now) if self.leaving => Some(now.map_or(before, |now| before.min(now))),
            _ => leave_by,
        };
        self.leaving = true;
    }
}
