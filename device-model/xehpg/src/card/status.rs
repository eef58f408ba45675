// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Current activity of the card, by function and by engine, for display by user interfaces.

use std::collections::BTreeMap;

use arctic_base::status::{EngineStatus, FunctionStatus, IdRange, Quota, Scheduling, Status};

use super::Card;
use crate::command::Origin;
use crate::guc::functions::GucFunction;
use crate::guc::provisioning::{self, VfConfig};
use crate::host::Function;
use crate::topology::EngineClass;

/// Name of the GuC in [`Status::firmware`].
const GUC: &str = "guc";

impl From<&VfConfig> for Quota {
    fn from(config: &VfConfig) -> Quota {
        let ids = |range: provisioning::Quota| IdRange { begin: range.begin, count: range.count };
        let provisioning::Scheduling { exec_quantum_ms, preempt_timeout_us, priority } = config.scheduling;
        Quota {
            ggtt_start: config.ggtt_start,
            ggtt_size: config.ggtt_size,
            local_memory: config.local_memory,
            contexts: ids(config.contexts),
            doorbells: ids(config.doorbells),
            scheduling: Scheduling { exec_quantum_ms, preempt_timeout_us, priority },
            thresholds: config.thresholds.to_vec(),
        }
    }
}

impl Card {
    /// Number of contexts of a function that wait for an engine, by class.
    fn waiting(&self, function: &GucFunction) -> BTreeMap<String, u32> {
        let classes = self.gt.generation.engines.all().map(|id| self.gt.engine(id).class);
        let count =
            |class: EngineClass| (class.name().to_owned(), function.queued(class).try_into().unwrap_or(u32::MAX));
        classes.map(count).filter(|(_, count)| *count != 0).collect()
    }

    /// Takes a snapshot. Waits for a GuC step in progress, but not for engines.
    pub(super) fn snapshot(&self) -> Status {
        let has = |function: &Function| self.enabled(*function) || self.gt.memory.has_vf(*function);
        let functions: Vec<_> = Function::all().filter(has).collect();
        let known = |function: Function| FunctionStatus {
            function: function.number(),
            contexts: Some(0),
            engine_time_ns: Some(BTreeMap::new()),
            engine_resets: Some(0),
            cat_errors: Some(0),
            skipped_contexts: Some(self.gt.skipped(function).contexts()),
            skipped_user_commands: Some(self.gt.skipped(function).of(Origin::User)),
            skipped_driver_commands: Some(self.gt.skipped(function).of(Origin::Driver)),
            kernels: Some(self.gt.kernels(function).counts()),
            ..FunctionStatus::default()
        };
        let engine = |id| EngineStatus { engine: self.gt.engine(id).name.to_string(), ..EngineStatus::default() };
        let mut status = Status {
            functions: functions.iter().copied().map(known).collect(),
            engines: self.engines.present().map(engine).collect(),
            firmware: BTreeMap::from([(GUC.to_owned(), None)]),
            stream: self.gt.stream_status(),
            power: Some(self.gt.power_status()),
        };
        let guc = self.guc();
        let Some(scheduler) = guc.scheduler() else { return status };
        // With the GuC locked: a context that has left its engine since then would be counted beyond this time.
        let timebase = self.gt.generation.timebase;
        let now = timebase.ticks(self.gt.clock.now());
        status.firmware.insert(GUC.to_owned(), guc.firmware().map(|firmware| firmware.release.to_string()));
        for (id, of) in self.engines.present().zip(&mut status.engines) {
            let running = scheduler.running(id);
            if let Some(context) = running
                && let Some(function) = status.functions.get_mut(context.function.index())
            {
                function.on.push(of.engine.clone());
            }
            of.kernel = running.and_then(|_| self.gt.engine_kernel(id).status());
            (of.function, of.context) = running.map(|context| (context.function.number(), context.local)).unzip();
            let class = self.gt.engine(id).class.name();
            let mut times = BTreeMap::new();
            for (function, user) in functions.iter().zip(&mut status.functions) {
                let busy = scheduler.functions[*function].activity.busy(id, now);
                if busy != 0 {
                    let time = timebase.nanoseconds(busy);
                    times.insert(function.number(), time);
                    let all = user.engine_time_ns.get_or_insert_default().entry(class.into()).or_default();
                    *all = all.saturating_add(time);
                }
            }
            of.time_ns = Some(times);
        }
        for (function, of) in functions.into_iter().zip(&mut status.functions) {
            let state = &scheduler.functions[function];
            let tally = scheduler.tally(function);
            of.state = Some(state.state);
            of.quota = Some(Quota::from(&state.config));
            of.contexts = Some(tally.contexts);
            of.messages = Some(state.messages);
            of.waiting = Some(self.waiting(state));
            of.engine_resets = Some(tally.engine_resets);
            of.cat_errors = Some(tally.cat_errors);
        }
        status
    }
}
