// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The state of a card in the text format of OpenMetrics 1.0, for Prometheus and programs that read the same format.

pub mod server;

use std::fmt;

use arctic_gpu::card::status::{self, FunctionStatus, Kind, QUANTITIES, Status};
use arctic_gpu::gpu::{self, PowerStatus};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::{Registry, Unit};

/// Prefix of the metrics' names.
const PREFIX: &str = "arctic";

/// Returns the metrics of a card in this state.
pub fn text(status: Status) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix(PREFIX);
    registry.register_collector(Box::new(Snapshot(status)));
    let mut text = String::new();
    text::encode(&mut text, &registry)?;
    Ok(text)
}

/// The state of a card.
#[derive(Debug)]
struct Snapshot(Status);

/// Name and help of a metric; its unit is appended to the name.
type Named = (&'static str, &'static str, Option<Unit>);

/// A number in the status of a function; `None` if the card's family does not report it.
type Number = fn(&gpu::FunctionStatus) -> Option<u64>;

/// The kinds of batches whose skipped commands are counted, and the counts.
const ORIGINS: [(&str, Number); 2] =
    [("user", |of| of.skipped_user_commands), ("driver", |of| of.skipped_driver_commands)];

impl Collector for Snapshot {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Snapshot(status) = self;
        let mut metrics = Metrics(&mut encoder);
        metrics.info(status)?;
        metrics.gauge(
            ("uptime", "Time since the card was powered on", Some(Unit::Seconds)),
            [([], status.uptime_seconds)],
        )?;
        let resident =
            ("resident_memory", "Resident memory of the server, with mapped memory of guests", Some(Unit::Bytes));
        metrics.gauge::<0, _>(resident, [([], status.resident_bytes)])?;
        metrics.gauge::<0, _>(
            ("vfs_enabled", "Virtual functions that are enabled", None),
            [([], u64::from(status.enabled_vfs))],
        )?;

        let functions = || status.functions.iter().map(|of| (of.name(), of));
        for (named, bit) in BITS {
            let known = functions().filter_map(|(name, of)| Some(([("function", name)], u64::from(bit(of)?))));
            metrics.gauge(named, known)?;
        }
        for of in &QUANTITIES {
            let unit = of.unit.map(|status::Unit::Bytes| Unit::Bytes);
            let known = functions().filter_map(|(name, function)| Some(([("function", name)], (of.value)(function)?)));
            match of.kind {
                Kind::Gauge => metrics.gauge((of.name, of.help, unit), known)?,
                Kind::Counter => metrics.counter((of.name, of.help, unit), known)?,
            }
        }
        for (named, kind, value) in POWER {
            let known = status.power.map(|power| ([], value(&power)));
            match kind {
                Kind::Gauge => metrics.gauge::<0, _>(named, known)?,
                Kind::Counter => metrics.counter::<0, _>(named, known)?,
            }
        }
        let time =
            ("engine_time", "Time that contexts of the function ran on the engines of a class", Some(Unit::Seconds));
        metrics.counter(
            time,
            functions().flat_map(|(name, of)| {
                let classes = of.gpu.engine_time_ns.iter().flatten();
                classes.map(move |(class, time)| {
                    ([("function", name.clone()), ("class", class.clone())], *time as f64 / 1e9)
                })
            }),
        )?;
        let skipped =
            ("skipped_commands", "Commands that the card does not execute and has skipped, by the kind of batch", None);
        metrics.counter(
            skipped,
            functions().flat_map(|(name, of)| {
                ORIGINS.into_iter().filter_map(move |(origin, number)| {
                    Some(([("function", name.clone()), ("origin", origin.into())], number(&of.gpu)?))
                })
            }),
        )?;
        let trapped = ("trapped_accesses", "Accesses that the VMM has forwarded, by kind", None);
        metrics.counter(
            trapped,
            functions().flat_map(|(name, of)| {
                of.trapped
                    .named()
                    .map(move |(kind, count)| ([("function", name.clone()), ("kind", kind.to_owned())], count))
            }),
        )
    }
}

/// A number in the state of the GT.
type PowerNumber = (Named, Kind, fn(&PowerStatus) -> f64);

const POWER: [PowerNumber; 2] = [
    (("frequency", "Frequency of the GT in MHz, 0 while it sleeps", None), Kind::Gauge, |power| power.mhz.into()),
    (("rc6_time", "Time that the GT was in RC6", Some(Unit::Seconds)), Kind::Counter, |power| {
        power.rc6_ns as f64 / 1e9
    }),
];

/// A property of a function that is 0 or 1; `None` if it has neither.
type Property = (Named, fn(&FunctionStatus) -> Option<bool>);

const BITS: [Property; 3] = [
    (("function_enabled", "1 if the function is enabled", None), |of| Some(of.enabled)),
    (("function_connected", "1 if a VMM is connected to the function", None), |of| Some(of.connected)),
    (("function_awake", "1 if the function is in the power state D0", None), |of| {
        of.enabled.then(|| of.power_state == "D0")
    }),
];

/// Writes metrics.
struct Metrics<'e, 'd>(&'e mut DescriptorEncoder<'d>);

impl Metrics<'_, '_> {
    fn info(&mut self, status: &Status) -> fmt::Result {
        let firmware =
            status.firmware.iter().map(|(name, version)| (name.clone(), version.clone().unwrap_or_default()));
        let labels = [("card".into(), status.card.clone()), ("topology".into(), status.topology.clone())].into_iter();
        let labels: Vec<(String, String)> = labels.chain(firmware).collect();
        let mut metric = self.0.encode_descriptor("card", "The card and its firmware", None, MetricType::Info)?;
        metric.encode_info(&labels)
    }

    fn gauge<const N: usize, V: EncodeGaugeValue>(
        &mut self,
        (name, help, unit): Named,
        series: impl IntoIterator<Item = ([(&'static str, String); N], V)>,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, unit.as_ref(), MetricType::Gauge)?;
        series.into_iter().try_for_each(|(labels, value)| metric.encode_family(&labels)?.encode_gauge(&value))
    }

    fn counter<const N: usize, V: EncodeCounterValue>(
        &mut self,
        (name, help, unit): Named,
        series: impl IntoIterator<Item = ([(&'static str, String); N], V)>,
    ) -> fmt::Result {
        const NONE: Option<&Exemplar<[(&str, &str); 0], u64>> = None;
        let mut metric = self.0.encode_descriptor(name, help, unit.as_ref(), MetricType::Counter)?;
        series.into_iter().try_for_each(|(labels, value)| metric.encode_family(&labels)?.encode_counter(&value, NONE))
    }
}
