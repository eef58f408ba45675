// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What the view shows: the difference of two snapshots of a card, by engine and by function.

use std::collections::BTreeMap;
use std::time::Duration;

use arctic_gpu::card::status::{FunctionStatus, Kind, QUANTITIES, Status, name_of};
use arctic_gpu::gpu::{EngineStatus, KernelStatus, PowerStatus, StreamStatus};
use serde::Serialize;

/// Name of the quantity of [`QUANTITIES`] that counts the instructions of kernels.
const EU_INSTRUCTIONS: &str = "eu_instructions";

/// A snapshot of a card, and the time at which it was taken.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Since the start of the program.
    pub at: Duration,
    /// The snapshot.
    pub status: Status,
}

/// A card between two samples; a line of `--json`.
#[derive(Clone, Debug, Serialize)]
pub struct View {
    /// Name of the card.
    pub card: String,
    /// Seconds since the card was powered on.
    pub uptime_seconds: f64,
    /// Seconds between the two samples.
    pub seconds: f64,
    /// The card was powered on after the first sample: rates are since then.
    pub restarted: bool,
    /// TotalVFs.
    pub total_vfs: u8,
    /// Number of VFs that are enabled.
    pub enabled_vfs: u8,
    /// Resident memory of the server in bytes.
    pub resident_bytes: u64,
    /// Frequency and sleep; absent if the card's family does not report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power: Option<Power>,
    /// The engines.
    pub engines: Vec<Engine>,
    /// The execution units; absent if the card's family has none that execute kernels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub execution_units: Option<ExecutionUnits>,
    /// The functions.
    pub functions: Vec<Function>,
    /// The stream of counters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<StreamStatus>,
}

/// Frequency and sleep of the GT.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Power {
    /// The state at the second sample.
    #[serde(flatten)]
    pub now: PowerStatus,
    /// Part of the time that the GT was in RC6, 0 to 1.
    pub rc6: f64,
}

/// An engine.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Engine {
    /// Its name.
    pub engine: String,
    /// Part of the time that contexts ran on it, 0 to 1; absent if the card's family does not measure it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy: Option<f64>,
    /// The same by name of the function, without those that did not use it.
    pub functions: BTreeMap<String, f64>,
    /// Name of the function for which it executes at the second sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running: Option<String>,
    /// Its context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<u16>,
    /// The kernel that it executes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelStatus>,
}

/// What kernels have executed on the execution units.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExecutionUnits {
    /// Instructions per second.
    pub instructions: f64,
    /// Each function's part of them, 0 to 1, by name, without those that have executed none.
    pub functions: BTreeMap<String, f64>,
}

/// A function.
#[derive(Clone, Debug, Serialize)]
pub struct Function {
    /// Its name: "pf", "vf1".
    pub function: String,
    /// Its state, as `arctic status` shows it.
    pub state: &'static str,
    /// Time that its contexts ran, by class of engines, as a part of the time; above 1 on several engines of a class.
    pub busy: BTreeMap<String, f64>,
    /// Contexts that wait for an engine of a class.
    pub waiting: BTreeMap<String, u32>,
    /// The current values of what can rise and fall, by name.
    pub values: BTreeMap<&'static str, u64>,
    /// Increase of what is counted, by name, per second.
    pub rates: BTreeMap<&'static str, f64>,
    /// Accesses that its VMM has forwarded, per second.
    pub traps: f64,
    /// The counts that `rates` has the increase of, since the card was powered on.
    pub totals: BTreeMap<&'static str, u64>,
}

impl Function {
    /// The sum over the classes of engines.
    pub fn total_busy(&self) -> f64 {
        self.busy.values().fold(0.0, |sum, part| sum + part)
    }

    /// A rate, 0 if the card does not count it.
    pub fn rate(&self, name: &str) -> f64 {
        self.rates.get(name).copied().unwrap_or(0.0)
    }

    /// Whether there is anything to see of it.
    pub fn active(&self) -> bool {
        self.state != "absent"
            && (self.total_busy() > 0.0 || self.traps > 0.0 || self.rates.values().any(|rate| *rate > 0.0))
    }
}

impl View {
    /// The card between two samples, of which `from` is the earlier one; with `None`, or after a restart, since it was powered on.
    pub fn between(from: Option<&Sample>, to: &Sample) -> View {
        let status = &to.status;
        let elapsed = |from: &Sample| to.at.saturating_sub(from.at).as_secs_f64();
        // A card that was started since the first sample is up for less than the interval; the other one also for what it was up
        // before, of which a half is more than the time that a snapshot takes.
        let restarted =
            from.is_some_and(|from| status.uptime_seconds - elapsed(from) < from.status.uptime_seconds / 2.0);
        let from = from.filter(|_| !restarted);
        // By the card's time: a request takes a while.
        let before = from.map_or(0.0, |from| from.status.uptime_seconds);
        let seconds = (status.uptime_seconds - before).max(1e-3);
        let span = Span { from: from.map(|from| &from.status), seconds };
        let functions: Vec<Function> = status.functions.iter().map(|function| span.function(function)).collect();
        View {
            card: status.card.clone(),
            uptime_seconds: status.uptime_seconds,
            seconds,
            restarted,
            total_vfs: status.total_vfs,
            enabled_vfs: status.enabled_vfs,
            resident_bytes: status.resident_bytes,
            power: status.power.map(|now| span.power(now)),
            engines: status.engines.iter().map(|engine| span.engine(engine)).collect(),
            execution_units: ExecutionUnits::of(&functions),
            functions,
            stream: status.stream.clone(),
        }
    }
}

impl ExecutionUnits {
    fn of(functions: &[Function]) -> Option<ExecutionUnits> {
        let rate = |of: &Function| of.rates.get(EU_INSTRUCTIONS).copied();
        let rates = functions.iter().filter_map(|of| Some((of.function.clone(), rate(of)?)));
        let rates: Vec<_> = rates.collect();
        let instructions = rates.iter().fold(0.0, |sum, (_, rate)| sum + rate);
        let used = rates.iter().filter(|(_, rate)| *rate > 0.0);
        let functions = used.map(|(name, rate)| (name.clone(), rate / instructions)).collect();
        (!rates.is_empty()).then_some(ExecutionUnits { instructions, functions })
    }
}

/// The time between two snapshots.
struct Span<'s> {
    from: Option<&'s Status>,
    seconds: f64,
}

impl Span<'_> {
    /// Increase per second of a count, which starts at 0 again after a reset of what counts it.
    fn rate(&self, before: Option<u64>, now: u64) -> f64 {
        let increase = now.checked_sub(before.unwrap_or(0)).unwrap_or(now);
        increase as f64 / self.seconds
    }

    /// Increase of a time in nanoseconds, as a part of the time.
    fn part(&self, before: Option<u64>, now: u64) -> f64 {
        self.rate(before, now) / 1e9
    }

    fn power(&self, now: PowerStatus) -> Power {
        let before = self.from.and_then(|from| from.power).map(|power| power.rc6_ns);
        Power { now, rc6: self.part(before, now.rc6_ns).min(1.0) }
    }

    fn engine(&self, now: &EngineStatus) -> Engine {
        let before = self.from.and_then(|from| from.engines.iter().find(|engine| engine.engine == now.engine));
        let before = before.and_then(|engine| engine.time_ns.as_ref());
        let part = |(function, time): (&u8, &u64)| {
            (name_of(*function), self.part(before.and_then(|times| times.get(function).copied()), *time))
        };
        let functions: BTreeMap<String, f64> =
            now.time_ns.iter().flatten().map(part).filter(|(_, part)| *part > 0.0).collect();
        Engine {
            engine: now.engine.clone(),
            busy: now.time_ns.as_ref().map(|_| functions.values().fold(0.0, |sum, part| sum + part).min(1.0)),
            functions,
            running: now.function.map(name_of),
            context: now.context,
            kernel: now.kernel,
        }
    }

    fn function(&self, now: &FunctionStatus) -> Function {
        let before = self.from.and_then(|from| from.functions.iter().find(|of| of.number() == now.number()));
        let times = before.and_then(|of| of.gpu.engine_time_ns.as_ref());
        let busy = now.gpu.engine_time_ns.iter().flatten();
        let busy = busy
            .map(|(class, time)| (class.clone(), self.part(times.and_then(|times| times.get(class).copied()), *time)));
        let known =
            |kind| QUANTITIES.iter().filter(move |of| of.kind == kind).filter_map(|of| Some((of, (of.value)(now)?)));
        Function {
            function: now.name(),
            state: now.state(),
            busy: busy.collect(),
            waiting: now.gpu.waiting.clone().unwrap_or_default(),
            values: known(Kind::Gauge).map(|(of, value)| (of.name, value)).collect(),
            rates: known(Kind::Counter)
                .map(|(of, value)| (of.name, self.rate(before.and_then(of.value), value)))
                .collect(),
            traps: self.rate(before.map(|of| of.trapped.total()), now.trapped.total()),
            totals: known(Kind::Counter).map(|(of, value)| (of.name, value)).collect(),
        }
    }
}
