//! What the card is doing now, by function and by engine: for the edges, which show it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Card;
use crate::engine::id::{EngineClass, EngineId};
use crate::guc::client::State;
use crate::guc::provisioning::VfConfig;
use crate::world::{FUNCTIONS, Function, ticks, ticks_to_ns};

/// The card at one moment. Times and counts are those since the GuC's firmware was started.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// The functions that exist: the PF, then VFs by number.
    pub functions: Vec<FunctionStatus>,
    /// The engines that the fuses leave.
    pub engines: Vec<EngineStatus>,
}

/// A function at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FunctionStatus {
    /// 0 for the PF.
    pub function: u8,
    /// What the GuC does for it; absent where the function was never heard of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// What the PF has given it; absent as above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<VfConfig>,
    /// Contexts that it has registered.
    pub contexts: u32,
    /// Engines that its contexts are on.
    pub on: Vec<String>,
    /// How long its contexts were on the engines of each class, in nanoseconds; classes that it has used.
    pub engine_time_ns: BTreeMap<String, u64>,
    /// Engine resets because of its contexts.
    pub engine_resets: u64,
    /// Accesses of its contexts without translation.
    pub cat_errors: u64,
}

/// An engine at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EngineStatus {
    /// Its name.
    pub engine: String,
    /// Whose context is on it; absent while it is idle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<u8>,
    /// The context, by the id that the function knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<u16>,
}

fn name(class: EngineClass) -> &'static str {
    match class {
        EngineClass::Render => "render",
        EngineClass::VideoDecode => "video decode",
        EngineClass::VideoEnhance => "video enhance",
        EngineClass::Copy => "copy",
        EngineClass::Compute => "compute",
    }
}

impl Card {
    /// What the card is doing now. It waits for a GuC step that is under way, not for engines.
    pub fn status(&self) -> Status {
        let now = ticks(self.gt.clock.now());
        let functions = (0..FUNCTIONS as u8).map(Function).filter(|function| self.enabled(*function));
        let mut status = Status {
            functions: functions.map(|f| FunctionStatus { function: f.0, ..FunctionStatus::default() }).collect(),
            engines: Vec::new(),
        };
        let guc = self.guc();
        let Some(scheduler) = guc.scheduler() else { return status };
        for id in self.engines.present() {
            let running = scheduler.running(id);
            let engine = id.info().name.to_string();
            if let Some((function, _)) = running
                && let Some(function) = status.functions.get_mut(function.index())
            {
                function.on.push(engine.clone());
            }
            let (function, context) = running.map(|(function, context)| (function.0, context)).unzip();
            status.engines.push(EngineStatus { engine, function, context });
        }
        for of in &mut status.functions {
            let function = Function(of.function);
            let client = guc.client(function);
            let tally = scheduler.tally(function);
            of.state = client.map(|client| client.state);
            of.quota = client.map(|client| client.config);
            of.contexts = tally.contexts;
            of.engine_resets = tally.engine_resets;
            of.cat_errors = tally.cat_errors;
            for id in EngineId::all() {
                let busy = scheduler.activity.busy(function, id, now);
                if busy != 0 {
                    *of.engine_time_ns.entry(name(id.info().class).into()).or_default() += ticks_to_ns(busy);
                }
            }
        }
        status
    }
}
