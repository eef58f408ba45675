// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic trace`: traces a served card, command by command.

mod walker;

use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, anyhow};
use arctic_device_model::trace::{Event, EventKind, Filter};
use arctic_gpu::card::status::Status;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

use super::function_number;
use super::offered::Offered;
use super::quantity::quantity;
use super::stdout::{Stdout, complain};
use crate::decode::capture;
use crate::decode::engine::{FLEX, classes, names};
use crate::operator::{Connection, MOST_CAPTURE_MIB, Request, unmatched};
use crate::perfetto::Timeline;

/// Trace a card served by `arctic serve`, or that of `arctic boot`, until Ctrl-C. The trace has context loads, restores, stops and resets, each
/// command with its address, messages between driver and GuC, and interrupts.
///
/// Each line has the time in ms, the function, the engine and the event; commands of a batch are indented. An engine
/// that waits on a semaphore is reported once, also to clients that connect later, which helps to locate a hang.
/// Tracing slows the card down but does not change its behaviour; it has no cost while no client is connected. Events
/// that arrive faster than they are read are dropped, and a line reports their number; filters reduce the number of
/// events. `arctic decode` reads files written with --save.
///
/// With --perfetto, the events are also written as a timeline for https://ui.perfetto.dev: a track for each engine and each
/// function, with contexts, batches and kernels as slices (docs/debugging.md).
///
/// With --walker, nothing is traced but one dispatch of a kernel: its code, state and memory are saved, and `eu run FILE` executes it
/// again on the host and compares the memory with what the card left (docs/compute.md).
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("kept").args(["save", "perfetto"]).multiple(true)), after_help = "Examples:\n  \
    arctic trace\n  \
    arctic trace /tmp/card\n  \
    arctic trace /tmp/card --engine ccs0 --function vf1\n  \
    arctic trace /tmp/card --engine copy --save copies.capture\n  \
    arctic trace --perfetto card.perfetto --quiet\n  \
    arctic trace --function pf --walker 12 --save walker.eu\n  \
    arctic trace /tmp/card --json | jq -c 'select(.event == \"guc\")'")]
pub struct TraceArgs {
    /// The card's directory (`arctic serve --dir`), or its operator.sock; the default is the only card of this user
    #[arg(value_name = "DIR|SOCKET")]
    card: Option<PathBuf>,
    #[arg(
        long,
        value_name = "ENGINE",
        value_parser = Offered::new(engines, engine_names),
        hide_possible_values = true,
        help = engine_help()
    )]
    engine: Vec<Engines>,
    /// Only this function: pf, vf1, vf2...
    #[arg(long, value_name = "FUNCTION", value_parser = function)]
    function: Vec<u8>,
    /// Save the events to this file, for `arctic decode`; with --walker, the walker, for `eu run` and `eu trace`
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Write a timeline of the events to this file, for https://ui.perfetto.dev
    #[arg(long, value_name = "FILE", conflicts_with = "walker")]
    perfetto: Option<PathBuf>,
    /// Place the timeline on the axis of a guest's clock: FILE has the line that `arctic guest clock` prints in a guest with the PF
    #[arg(long, value_name = "FILE", requires = "perfetto")]
    guest_clock: Option<PathBuf>,
    /// Capture a walker (a dispatch of a kernel) with the memory that it accesses, before and after it: the Nth of those that begin
    /// from now on, on the engines and functions of --engine and --function; with --save
    #[arg(
        long,
        value_name = "N",
        requires = "save",
        conflicts_with_all = ["json", "quiet"],
        value_parser = quantity::<u64>("walkers", 1..=u64::MAX)
    )]
    walker: Option<u64>,
    /// Give a capture up if the walker accesses more memory than this, in MiB; with --walker
    #[arg(
        long,
        value_name = "MIB",
        requires = "walker",
        default_value_t = 256,
        value_parser = quantity::<u32>("MiB", 1..=MOST_CAPTURE_MIB.into())
    )]
    limit: u32,
    /// Print only the final counts; with --save or --perfetto
    #[arg(long, requires = "kept", conflicts_with = "json")]
    quiet: bool,
    /// Print the events as JSON, one document per line
    #[arg(long)]
    json: bool,
}

/// Engines by name.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Engines(Vec<String>);

fn engines(text: &str) -> Result<Engines, String> {
    super::decode::engine(text)?;
    Ok(Engines(FLEX.select(text).iter().map(|engine| engine.name().to_owned()).collect()))
}

fn engine_names() -> Vec<&'static str> {
    names(FLEX).into_iter().chain(classes()).collect()
}

/// Returns the help of --engine.
fn engine_help() -> String {
    format!("Only this engine (rcs0), or the engines of this class ({})", classes().join(", "))
}

fn function(text: &str) -> Result<u8, String> {
    function_number(text).ok_or_else(|| "expected pf, or vf1 to vf63".into())
}

/// Traces until a signal arrives or the card is no longer served.
pub fn run(arguments: &TraceArgs) -> Result<()> {
    let path = super::operator_socket(arguments.card.as_deref())?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        flag::register(signal, stop.clone()).context("cannot install signal handlers")?;
    }
    let filter = Filter {
        engines: arguments.engine.iter().flat_map(|engines| engines.0.clone()).collect(),
        functions: arguments.function.clone(),
    };
    let failed = |failure| super::failure(&path, &failure);
    let mut connection = Connection::open(&path).map_err(|error| failed(error.into()))?;
    let status: Status = connection.request(&Request::Status {}).map_err(failed)?;
    if let Some(reason) = unmatched(&filter, &status) {
        return Err(super::usage(anyhow!(reason)));
    }
    if let (Some(walker), Some(save)) = (arguments.walker, &arguments.save) {
        let request = Request::Capture { filter, walker, mib: arguments.limit };
        let waiting = connection.capture(&request).map_err(failed)?;
        return walker::save(waiting, walker, save, &path, &stop);
    }
    let mut events = connection.trace(filter).map_err(failed)?;
    let mut waiting = Some(format!("connected to {}, waiting for events", path.display()));
    waiting.take_if(|_| !io::stderr().is_terminal());
    let mut kept = arguments.save.as_ref().map(|path| keep(path)).transpose()?;
    let heading = serde_json::to_string(&events.heading)?;
    let family = capture::family(&events.heading).map_err(|why| anyhow!("{}: {why}", path.display()))?;
    if let Some((file, path)) = &mut kept {
        writeln!(file, "{heading}").with_context(|| unwritten(path))?;
    }
    let guest = arguments.guest_clock.as_deref();
    let create = |path: &PathBuf| Timeline::create(path, &events.heading.card, family, guest);
    let mut timeline = arguments.perfetto.as_ref().map(create).transpose()?;
    let mut stdout = Stdout::new();
    let mut printed = Ok(());
    let mut count = Count::default();
    while !stop.load(Ordering::Relaxed) {
        let line = match events.next() {
            Ok(Some(line)) => line,
            Ok(None) => {
                waiting.take().into_iter().for_each(complain);
                if let Some((file, path)) = &mut kept {
                    file.flush().with_context(|| unwritten(path))?;
                }
                timeline.as_mut().map_or(Ok(()), Timeline::flush)?;
                printed = stdout.flush();
                if printed.is_err() {
                    break;
                }
                continue;
            }
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                complain("the card is no longer served");
                break;
            }
            Err(error) => return Err(anyhow!("the connection to {} failed: {error}", path.display())),
        };
        if let Some((file, path)) = &mut kept {
            writeln!(file, "{line}").with_context(|| unwritten(path))?;
        }
        let event: Event =
            serde_json::from_str(&line).with_context(|| format!("invalid event from {}", path.display()))?;
        waiting = None;
        count.add(&event);
        timeline.as_mut().map_or(Ok(()), |timeline| timeline.add(&event))?;
        printed = match (arguments.quiet, arguments.json) {
            (true, _) => Ok(()),
            (_, true) => writeln!(stdout, "{line}"),
            _ => capture::text(&event, family, &Filter::default()).map_or(Ok(()), |text| writeln!(stdout, "{text}")),
        };
        if printed.is_err() {
            break;
        }
    }
    let printed = printed.and_then(|()| stdout.flush());
    if let Some((mut file, path)) = kept {
        file.flush().with_context(|| unwritten(path))?;
    }
    complain(count);
    if let Some(timeline) = timeline {
        complain(timeline.finish()?);
    }
    Ok(printed?)
}

fn unwritten(path: &Path) -> String {
    format!("{} cannot be written", path.display())
}

fn keep(path: &Path) -> Result<(BufWriter<File>, &Path)> {
    let file = File::create(path).with_context(|| format!("{} cannot be created", path.display()))?;
    Ok((BufWriter::new(file), path))
}

/// Counts of the received events.
#[derive(Default)]
struct Count {
    events: u64,
    commands: u64,
    lost: u64,
}

impl Count {
    fn add(&mut self, event: &Event) {
        self.events += 1;
        match event.what {
            EventKind::Command { .. } => self.commands += 1,
            EventKind::Lost { events } => self.lost += events,
            _ => {}
        }
    }
}

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} events, {} of them commands; {} missing", self.events, self.commands, self.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_and_functions_are_read() {
        assert_eq!(engines("ccs2").unwrap().0, ["ccs2"]);
        assert_eq!(engines("compute").unwrap().0, ["ccs0", "ccs1", "ccs2", "ccs3"]);
        assert!(engines("gpu").is_err());
        assert_eq!((function("pf"), function("vf63")), (Ok(0), Ok(63)));
        assert!(function("vf0").is_err() && function("vf64").is_err() && function("1").is_err());
    }
}
