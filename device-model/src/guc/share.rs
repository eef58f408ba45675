//! What a function gets of the engines beside the others: its execution quantum, its preemption timeout, its priority
//! (contract D.4, K.5).

/// When a function's turn comes (xe: abi/guc_klvs_abi.h, GUC_KLV_VF_CFG_SCHED_PRIORITY).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// In its place of the rotation, if it has work.
    #[default]
    Low,
    /// In its place of the rotation, work or not: an idle function's engines stay idle for its quantum.
    Normal,
    /// After each turn of a function that is not high, if it has work.
    High,
}

impl Priority {
    /// The priority of a KLV's value; `None` for one that does not exist.
    pub fn of(value: u32) -> Option<Priority> {
        [Priority::Low, Priority::Normal, Priority::High].get(value as usize).copied()
    }
}

/// A function's share of each engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// Length of its turns in nanoseconds of engine time; 0 = unlimited.
    pub quantum: u64,
    /// How long its contexts may take to leave at the end of a turn before the engine is reset, in nanoseconds of engine
    /// time; 0 = for ever.
    pub preemption_timeout: u64,
    /// When its turn comes.
    pub priority: Priority,
}

/// What has happened to a function's work that a threshold may be set for (contract D.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adverse {
    /// An access without translation (threshold 0x8a03).
    CatError,
    /// An engine was reset because of one of its contexts (threshold 0x8a04).
    EngineReset,
    /// It registered a parallel context (threshold 0x8a0d).
    ParallelContext,
}
