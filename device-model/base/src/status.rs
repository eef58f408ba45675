// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A snapshot of a running card for display: its functions, its engines, its firmware. The values that a family does not
//! have are absent, also from the JSON document.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A snapshot of the card. Times and counts start when the card is powered on, or when its firmware starts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The physical function, then the VFs of the card in order, enabled or not.
    pub functions: Vec<FunctionStatus>,
    /// The engines that are not fused off.
    pub engines: Vec<EngineStatus>,
    /// Versions of the micro-controllers' firmware by name, from the file that a driver has loaded, or of the card's own if
    /// it needs no driver; null if none is running.
    #[serde(default)]
    pub firmware: BTreeMap<String, Option<String>>,
    /// The stream of counters; absent if there has been none since power-on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<StreamStatus>,
    /// Frequency and sleep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<PowerStatus>,
}

/// Frequency and sleep of the GT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PowerStatus {
    /// Frequency in MHz; 0 while it sleeps.
    pub mhz: u32,
    /// The frequency that was requested.
    pub requested_mhz: u32,
    /// Time in RC6 since power-on, in nanoseconds.
    pub rc6_ns: u64,
}

/// A stream of reports of counters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StreamStatus {
    /// Name of the unit that writes it.
    pub unit: String,
    /// It is enabled.
    pub enabled: bool,
    /// Distance of two reports of the timer in nanoseconds; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period_ns: Option<u64>,
    /// Length of a report in bytes.
    pub bytes: usize,
    /// Reports written since power-on.
    pub written: u64,
    /// Reports that were due since power-on and not written.
    pub lost: u64,
}

/// A snapshot of one function.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FunctionStatus {
    /// Function number; 0 is the PF.
    pub function: u8,
    /// State of the function in the firmware that schedules it; absent if none is running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<FunctionState>,
    /// Quota that the PF has assigned; absent if no firmware is running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<Quota>,
    /// Number of registered contexts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contexts: Option<u32>,
    /// Names of the engines on which its contexts are running.
    #[serde(default)]
    pub on: Vec<String>,
    /// Time that its contexts ran on the engines of each class, in nanoseconds. Only classes that it has used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_time_ns: Option<BTreeMap<String, u64>>,
    /// Number of its contexts that wait for an engine, by class; only classes with such contexts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<BTreeMap<String, u32>>,
    /// Number of requests that its driver has sent to the firmware through CT buffers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<u64>,
    /// Number of engine resets caused by its contexts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_resets: Option<u64>,
    /// Number of CAT errors: accesses of its contexts without a valid translation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cat_errors: Option<u64>,
    /// Number of contexts that have had a command of user space skipped, because the model does not execute it: the
    /// results of their programs are not valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped_contexts: Option<u64>,
    /// Number of commands skipped in batches of user space since power-on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped_user_commands: Option<u64>,
    /// Number of commands skipped in the driver's own batches since power-on. Drivers create the default state of
    /// contexts with them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped_driver_commands: Option<u64>,
    /// What its kernels have executed since power-on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernels: Option<KernelCounts>,
}

/// What the kernels of one function have executed on the execution units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KernelCounts {
    /// Number of walkers that have ended.
    pub walkers: u64,
    /// Number of thread groups that have ended.
    pub groups: u64,
    /// Number of instructions.
    pub instructions: u64,
    /// Number of threads that have ended at an instruction that cannot be executed, and of accesses that had no valid
    /// translation.
    pub faults: u64,
}

impl KernelCounts {
    /// Returns whether no walker was begun.
    pub fn is_zero(&self) -> bool {
        *self == KernelCounts::default()
    }
}

/// State of a function in the firmware that schedules it (contract D.7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FunctionState {
    /// Its requests are executed.
    #[default]
    Running,
    /// Paused by the PF: its contexts leave the engines, messages for earlier requests are sent, and its requests stay
    /// pending.
    Paused {
        /// Whether PAUSE_DONE has been sent to the PF.
        notified: bool,
    },
    /// Moved and resumed: its driver adapts addresses, until then only requests for that are executed, and its contexts stay
    /// off the engines.
    FixUp,
    /// Stopped by the PF; runs again only after a reset.
    Stopped,
    /// Reset: the card releases its local memory, then notifies the PF.
    Emptying,
    /// Reset: the PF has been notified and has not sent FLR_START yet.
    ResetPending,
    /// The PF driver performs its part of the reset, until FLR_FINISH.
    Resetting,
    /// Reset without a PF driver: the card clears its memory.
    Clearing,
}

/// What the PF has assigned to a function. For the PF, zero means "no limit" (contract D.2). Values that a document lacks
/// are 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Quota {
    /// First GGTT address.
    pub ggtt_start: u64,
    /// Size of the GGTT range in bytes.
    pub ggtt_size: u64,
    /// Local memory in bytes.
    pub local_memory: u64,
    /// Context ids.
    pub contexts: IdRange,
    /// Doorbells.
    pub doorbells: IdRange,
    /// Share of the engines.
    pub scheduling: Scheduling,
    /// Thresholds of adverse events, in the order of their keys; 0 = never reported.
    pub thresholds: Vec<u32>,
}

/// A contiguous range of ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IdRange {
    /// First id.
    pub begin: u32,
    /// Number of ids.
    pub count: u32,
}

/// A function's share of the engines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Scheduling {
    /// Execution quantum in milliseconds; 0 = unlimited.
    pub exec_quantum_ms: u32,
    /// Preemption timeout in microseconds; 0 = none.
    pub preempt_timeout_us: u32,
    /// 0 low, 1 normal, 2 high.
    pub priority: u32,
}

/// A snapshot of one engine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EngineStatus {
    /// Engine name.
    pub engine: String,
    /// Number of the function for which it executes; absent while the engine is idle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<u8>,
    /// ID of the running context within its function; absent while the engine is idle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<u16>,
    /// Time that contexts of each function, by its number, ran on it, in nanoseconds. Only functions that have used it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ns: Option<BTreeMap<u8, u64>>,
    /// The kernel that it executes; absent if it executes none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelStatus>,
}

/// The walker that an engine executes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KernelStatus {
    /// Virtual address of the kernel in the process of the engine's context.
    pub address: u64,
    /// Number of its thread groups that have ended.
    pub groups: u64,
    /// Number of instructions that it has executed.
    pub instructions: u64,
}
