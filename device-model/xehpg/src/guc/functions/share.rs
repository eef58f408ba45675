// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A function's share of the engines: execution quantum, preemption timeout and priority (contract D.4, K.5).

/// Scheduling priority of a function (xe: abi/guc_klvs_abi.h, GUC_KLV_VF_CFG_SCHED_PRIORITY).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// Gets its turn in the rotation if it has work.
    #[default]
    Low,
    /// Gets its turn in the rotation even without work; the engines are then idle for its quantum.
    Normal,
    /// Gets a turn after each turn of a function of lower priority, if it has work.
    High,
}

impl Priority {
    /// Returns the priority for a KLV value; `None` if the value is invalid.
    pub fn of(value: u32) -> Option<Priority> {
        [Priority::Low, Priority::Normal, Priority::High].get(value as usize).copied()
    }
}

/// A function's share of each engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Execution quantum: length of a turn in nanoseconds of engine time; 0 = unlimited.
    pub quantum: u64,
    /// Maximum time for its contexts to leave at the end of a turn before the engine is reset, in nanoseconds of engine
    /// time; 0 = unlimited.
    pub preemption_timeout: u64,
    /// Scheduling priority.
    pub priority: Priority,
}

/// Adverse events caused by a function's contexts, for which a threshold may be set (contract D.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThresholdEvent {
    /// An access without a valid translation (threshold 0x8a03).
    CatError,
    /// An engine was reset because of one of its contexts (threshold 0x8a04).
    EngineReset,
    /// The function registered a parallel context (threshold 0x8a0d).
    ParallelContext,
}
