// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Current activity of the card, by function and by engine, for display by user interfaces.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Card;
use crate::command::Origin;
use crate::guc::client::State;
use crate::guc::provisioning::VfConfig;
use crate::host::Function;

/// A snapshot of the card. Times and counts start when the GuC firmware starts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The PF, then the VFs of the card in order, enabled or not.
    pub functions: Vec<FunctionStatus>,
    /// The engines that are not fused off.
    pub engines: Vec<EngineStatus>,
    /// Versions of the micro-controllers' firmware.
    #[serde(default)]
    pub firmware: FirmwareStatus,
}

/// A snapshot of one function.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FunctionStatus {
    /// Function number; 0 is the PF.
    pub function: u8,
    /// State of the function in the GuC; absent if no firmware is running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// Quota that the PF has assigned; absent if no firmware is running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<VfConfig>,
    /// Number of registered contexts.
    pub contexts: u32,
    /// Names of the engines on which its contexts are running.
    pub on: Vec<String>,
    /// Time that its contexts ran on the engines of each class, in nanoseconds. Only classes that it has used.
    pub engine_time_ns: BTreeMap<String, u64>,
    /// Number of engine resets caused by its contexts.
    pub engine_resets: u64,
    /// Number of CAT errors: accesses of its contexts without a valid translation.
    pub cat_errors: u64,
    /// Number of contexts that have had a command of user space skipped, because the model does not execute it: the
    /// results of their programs are not valid.
    #[serde(default)]
    pub skipped_contexts: u64,
    /// Number of commands skipped in batches of user space since power-on.
    #[serde(default)]
    pub skipped_user_commands: u64,
    /// Number of commands skipped in the driver's own batches since power-on. Drivers create the default state of
    /// contexts with them.
    #[serde(default)]
    pub skipped_driver_commands: u64,
}

/// Versions of the micro-controllers' firmware.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FirmwareStatus {
    /// Release of the GuC's, from the header of the file that the PF's driver loaded, or of the card's own if it needs no
    /// driver; null if none is running.
    #[serde(default)]
    pub guc: Option<String>,
}

/// A snapshot of one engine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EngineStatus {
    /// Engine name.
    pub engine: String,
    /// Function that owns the running context; absent while the engine is idle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<u8>,
    /// ID of the running context within its function; absent while the engine is idle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<u16>,
}

impl Card {
    /// Takes a snapshot. Waits for a GuC step in progress, but not for engines.
    pub fn status(&self) -> Status {
        let timebase = self.gt.generation.timebase;
        let now = timebase.ticks(self.gt.clock.now());
        let has = |function: &Function| self.enabled(*function) || self.gt.memory.has_vf(*function);
        let functions: Vec<_> = Function::all().filter(has).collect();
        let known = |function: Function| FunctionStatus {
            function: function.number(),
            skipped_contexts: self.gt.skipped(function).contexts(),
            skipped_user_commands: self.gt.skipped(function).of(Origin::User),
            skipped_driver_commands: self.gt.skipped(function).of(Origin::Driver),
            ..FunctionStatus::default()
        };
        let engine = |id| EngineStatus { engine: self.gt.engine(id).name.to_string(), ..EngineStatus::default() };
        let mut status = Status {
            functions: functions.iter().copied().map(known).collect(),
            engines: self.engines.present().map(engine).collect(),
            ..Status::default()
        };
        let guc = self.guc();
        let Some(scheduler) = guc.scheduler() else { return status };
        status.firmware.guc = guc.firmware().map(|firmware| firmware.release.to_string());
        for (id, of) in self.engines.present().zip(&mut status.engines) {
            let running = scheduler.running(id);
            if let Some(context) = running
                && let Some(function) = status.functions.get_mut(context.function.index())
            {
                function.on.push(of.engine.clone());
            }
            (of.function, of.context) = running.map(|context| (context.function.number(), context.local)).unzip();
        }
        for (function, of) in functions.into_iter().zip(&mut status.functions) {
            let state = &scheduler.functions[function];
            let tally = scheduler.tally(function);
            of.state = Some(state.state);
            of.quota = Some(state.config);
            of.contexts = tally.contexts;
            of.engine_resets = tally.engine_resets;
            of.cat_errors = tally.cat_errors;
            for id in self.gt.generation.engines.all() {
                let busy = state.activity.busy(id, now);
                if busy != 0 {
                    let time = of.engine_time_ns.entry(self.gt.engine(id).class.name().into()).or_default();
                    *time = time.saturating_add(timebase.nanoseconds(busy));
                }
            }
        }
        status
    }
}
