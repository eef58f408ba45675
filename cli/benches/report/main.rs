// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `cargo bench`: measures the costs of the card as ratios and counts that are stable on a noisy host, and compares
//! each with its target.
//!
//! `cargo bench -- --json` prints one JSON document; `cargo bench -- probe copy` measures only the rows with one of these
//! words in their names.

mod accesses;
mod bench_output;
mod guests;
mod memory;
mod trace;

use std::collections::BTreeMap;
use std::io::Read;
use std::process::{Command, ExitCode, Stdio};
use std::thread;

use anyhow::{Context, Result, anyhow, ensure};
use arctic_guest_runner::interrupt::{self, Interrupted};
use arctic_guest_runner::process::{self, Child};
use clap::Parser;
use serde::Serialize;

use crate::accesses::Durations;
use crate::bench_output::{Finding, one_for_each_row, value};
use crate::memory::MemoryUse;
use crate::trace::Access;

/// Measure the card: trapped accesses, copy engine, command streamer, memory.
///
/// Boots two guests, with the components in the cache of `arctic boot`. The exit status is 0 if every target was met; 1 if
/// one was missed or could not be measured, for instance without KVM or valgrind; 130 after a signal.
#[derive(Parser)]
struct Arguments {
    /// Measure only the rows with one of these words in their names (case matters)
    words: Vec<String>,
    /// Print only one JSON document on stdout
    #[arg(long)]
    json: bool,
    /// Passed by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

/// A target value and the required relation to it.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
enum Target {
    /// Less than the value.
    Under(f64),
    /// The value or less.
    AtMost(f64),
    /// The value or more.
    AtLeast(f64),
}

impl Target {
    fn met(self, measured: f64) -> bool {
        match self {
            Target::Under(limit) => measured < limit,
            Target::AtMost(limit) => measured <= limit,
            Target::AtLeast(limit) => measured >= limit,
        }
    }

    fn text(self) -> String {
        match self {
            Target::Under(limit) => format!("under {limit}"),
            Target::AtMost(limit) => format!("at most {limit}"),
            Target::AtLeast(limit) => format!("at least {limit}"),
        }
    }
}

/// One line of the report.
#[derive(Serialize)]
struct Row {
    name: &'static str,
    unit: &'static str,
    target: Target,
    /// Absent if it could not be measured; `detail` has the reason.
    measured: Option<f64>,
    met: Option<bool>,
    detail: String,
}

/// A measurement: names, units and targets of its rows, and the function that returns a value for each of them, in the
/// same order.
struct Measurement {
    title: &'static str,
    rows: &'static [(&'static str, &'static str, Target)],
    run: fn() -> Result<Vec<Finding>>,
}

const MEASUREMENTS: [Measurement; 7] = [
    Measurement {
        title: "starting an idle card",
        rows: &[("idle card, memory", "MiB", Target::Under(64.0))],
        run: idle_card,
    },
    Measurement {
        title: "copies and fills of the copy engine",
        rows: &[
            ("2 MiB copy / non-temporal memcpy", "", Target::AtLeast(0.9)),
            ("2 MiB fill / non-temporal memset", "", Target::AtLeast(0.9)),
        ],
        run: copy_engine,
    },
    Measurement {
        title: "instructions of the command streamer",
        rows: &[("one MI_STORE_DATA_IMM, PPGTT, TLB hits", "instructions", Target::Under(150.0))],
        run: streamer,
    },
    Measurement {
        title: "registers, notifications of the GuC and submissions through the library and over vfio-user",
        rows: &[
            ("register read, library / vfio-user", "", Target::Under(1.0)),
            ("notification of the GuC, library / vfio-user", "", Target::Under(1.0)),
            ("submission to its seqno, library / vfio-user", "", Target::Under(1.0)),
            ("submission to its interrupt, library / vfio-user", "", Target::Under(1.0)),
            ("empty walker to its seqno, through the library", "us", Target::Under(15.0)),
        ],
        run: transports,
    },
    Measurement {
        title: "accesses of a bare-metal guest in the reference VMM",
        rows: &[
            ("KVM: register read / bare exit", "", Target::AtMost(1.05)),
            ("KVM: notification of the GuC / ioeventfd with a waiting thread", "", Target::AtMost(1.1)),
            ("KVM: hot register write / ioeventfd without a waiting thread", "", Target::AtMost(1.1)),
        ],
        run: kvm,
    },
    Measurement {
        title: "booting a guest that probes the card",
        rows: &[("PF probe, trapped", "accesses", Target::Under(20_000.0))],
        run: probe,
    },
    Measurement {
        title: "booting a guest that submits empty batches, every access in the card's log (half a minute)",
        rows: &[
            ("empty submission, trapped", "accesses", Target::AtMost(14.0)),
            ("empty submission back to back, trapped", "accesses", Target::AtMost(14.0)),
        ],
        run: submission,
    },
];

/// Formats the memory of a card.
fn show_memory(memory_use: &MemoryUse) -> String {
    let resident = memory_use.resident;
    let program = resident.total - resident.own - resident.shared;
    let backing = memory_use.backing;
    format!(
        "{:.1} MiB anonymous, {program:.1} MiB program, {backing:.1} MiB backing local memory and GGTT",
        resident.own
    )
}

fn idle_card() -> Result<Vec<Finding>> {
    let idle = guests::idle_card()?;
    Ok(vec![(Some(idle.total()), show_memory(&idle))])
}

/// Runs a bench of another package and returns its output; the build reports progress on stderr. A signal ends the bench
/// and is reported as [`Interrupted`].
fn bench_of(package: &str, bench: &str) -> Result<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let name = format!("the bench {bench} of {package}");
    let mut command = Command::new(cargo);
    command.args(["bench", "--quiet", "--package", package, "--bench", bench]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let mut child = Child::spawn(&mut command, &name)?;
    let mut pipe = child.inner().stdout.take().with_context(|| format!("{name} has no stdout"))?;
    let reader = thread::spawn(move || {
        let mut text = String::new();
        pipe.read_to_string(&mut text).map(|_| text)
    });
    let status = loop {
        interrupt::check()?;
        if let Some(status) = child.wait(process::POLL_INTERVAL)? {
            break status;
        }
    };
    ensure!(status.success(), "{name} ended with {status}");
    let text = reader.join().map_err(|_| anyhow!("the thread that reads the output of {name} panicked"))?;
    text.with_context(|| format!("cannot read the output of {name}"))
}

fn device_model(bench: &str) -> Result<String> {
    bench_of("arctic-device-model", bench)
}

/// Register reads relative to exits on unassigned memory, and notifications of the GuC and hot register writes relative
/// to ioeventfds outside the card.
fn kvm() -> Result<Vec<Finding>> {
    let text = bench_of("arctic-vmm", "kvm")?;
    let names = [
        "register read / exit",
        "notification of the GuC / ioeventfd with a waiting thread",
        "hot register write / ioeventfd without a waiting thread",
    ];
    let mut found = names.map(|name| value(&text, name));
    if let (Some(_), detail) = &mut found[0] {
        let ticks: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("ticks of ")).collect();
        *detail = format!("ticks, the shortest of many: {}", ticks.join(", "));
    }
    Ok(found.into())
}

fn copy_engine() -> Result<Vec<Finding>> {
    let text = device_model("blit")?;
    let names = ["linear copy / non-temporal memcpy", "linear fill / non-temporal memset"];
    Ok(names.map(|name| value(&text, name)).into())
}

fn streamer() -> Result<Vec<Finding>> {
    let text = device_model("streamer")?;
    let mut found = value(&text, "instructions for one MI_STORE_DATA_IMM");
    if let (Some(_), detail) = &mut found {
        *detail = "callgrind, difference of two runs".into();
    }
    Ok(vec![found])
}

fn transports() -> Result<Vec<Finding>> {
    let [library, vfio_user] = accesses::measure()?;
    let finding = |operation: fn(&Durations) -> f64| {
        let (library, vfio_user) = (operation(&library), operation(&vfio_user));
        let detail = format!("{:.2} us through the library, {:.2} us over vfio-user", library * 1e6, vfio_user * 1e6);
        (Some(library / vfio_user), detail)
    };
    // In the order of the measurement's rows.
    let operations: [fn(&Durations) -> f64; 4] = [
        |durations| durations.register_read,
        |durations| durations.notification,
        |durations| durations.submission_to_seqno,
        |durations| durations.submission_to_interrupt,
    ];
    let mut found: Vec<_> = operations.into_iter().map(finding).collect();
    let (library, vfio_user) = (library.walker_to_seqno * 1e6, vfio_user.walker_to_seqno * 1e6);
    found.push((Some(library), format!("{vfio_user:.2} us over vfio-user")));
    Ok(found)
}

fn probe() -> Result<Vec<Finding>> {
    let probe = guests::probe()?;
    let ggtt = probe.trapped.get("ggtt").copied().unwrap_or(0);
    let total: u64 = probe.trapped.values().sum();
    let parts: Vec<String> = probe.trapped.iter().map(|(region, count)| format!("{region} {count}")).collect();
    let (parts, idle) = (parts.join(", "), probe.held);
    let detail = format!(
        "firmware and shutdown included; {parts}; with the guest idle the card holds {:.1} MiB: {}",
        idle.total(),
        show_memory(&idle)
    );
    // GGTT entries are written through shared memory; if they are trapped nevertheless, they do not count for this
    // target.
    Ok(vec![(Some((total - ggtt) as f64), detail)])
}

fn submission() -> Result<Vec<Finding>> {
    let submission = guests::submission()?;
    let profile = arctic_gpu::card_file::load("flex170")?.flex()?;
    let registers = profile.registers();
    let finding = |each: &BTreeMap<Access, f64>| {
        let mut parts: Vec<(&Access, &f64)> = each.iter().collect();
        parts.sort_by(|a, b| b.1.total_cmp(a.1));
        let parts: Vec<String> = parts
            .into_iter()
            .map(|(access, each)| {
                let verb = if access.write { "write" } else { "read" };
                let offset = u32::try_from(access.offset).ok().filter(|_| access.region == 0);
                let name = offset.and_then(|offset| registers.decode(offset));
                let name = name
                    .map_or_else(|| format!("{}:{:#x}", access.region, access.offset), |found| registers.name(found));
                format!("{verb} {name} {each:.2}")
            })
            .collect();
        // Rounded to hundredths; one stray access in either phase contributes less than that.
        ((each.values().sum::<f64>() * 100.0).round() / 100.0, parts.join(", "))
    };
    let found = [finding(&submission.apart), finding(&submission.back_to_back)];
    Ok(found.into_iter().map(|(sum, detail)| (Some(sum), detail)).collect())
}

fn measure(words: &[String]) -> Result<Vec<Row>> {
    let wanted = |name: &str| words.is_empty() || words.iter().any(|word| name.contains(word.as_str()));
    let mut rows = Vec::new();
    for measurement in &MEASUREMENTS {
        if !measurement.rows.iter().any(|(name, ..)| wanted(name)) {
            continue;
        }
        interrupt::check()?;
        eprintln!("{}", measurement.title);
        let number = measurement.rows.len();
        let findings = match (measurement.run)().and_then(|findings| one_for_each_row(findings, number)) {
            Err(error) if error.is::<Interrupted>() => return Err(error),
            Err(error) => vec![(None, format!("{error:#}")); number],
            Ok(findings) => findings,
        };
        let found = measurement.rows.iter().zip(findings).filter(|((name, ..), _)| wanted(name));
        for ((name, unit, target), (measured, detail)) in found {
            let met = measured.map(|measured| target.met(measured));
            rows.push(Row { name, unit, target: *target, measured, met, detail });
        }
    }
    // A signal may have made the last measurement fail.
    interrupt::check()?;
    ensure!(!rows.is_empty(), "no row has {} in its name", words.join(" or "));
    Ok(rows)
}

fn table(rows: &[Row]) -> String {
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or_default();
    let mut text = format!("{:<width$} {:>10} {:<13} {:<15} met\n", "name", "measured", "", "target");
    for row in rows {
        let measured = row.measured.map_or_else(
            || "-".into(),
            |measured| {
                if measured == measured.trunc() { format!("{measured}") } else { format!("{measured:.2}") }
            },
        );
        let met = match row.met {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "not measured",
        };
        text.push_str(&format!(
            "{:<width$} {measured:>10} {:<13} {:<15} {met}\n",
            row.name,
            row.unit,
            row.target.text()
        ));
    }
    for row in rows.iter().filter(|row| !row.detail.is_empty()) {
        text.push_str(&format!("\n{}: {}\n", row.name, row.detail));
    }
    text
}

fn main() -> ExitCode {
    interrupt::install();
    let arguments = Arguments::parse();
    let rows = match measure(&arguments.words) {
        Ok(rows) => rows,
        Err(error) => {
            eprintln!("bench: {error:#}");
            return if error.is::<Interrupted>() { ExitCode::from(130) } else { ExitCode::FAILURE };
        }
    };
    let ok = rows.iter().all(|row| row.met == Some(true));
    match arguments.json {
        true => println!("{:#}", serde_json::json!({ "ok": ok, "results": rows })),
        false => print!("{}", table(&rows)),
    }
    ExitCode::from(u8::from(!ok))
}
