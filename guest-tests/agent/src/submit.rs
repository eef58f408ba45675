// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic guest submit`: runs empty batches, or batches with given commands, on one engine, each submitted after
//! completion of the previous one, to measure the cost of a submission or to see how the driver and the card treat a
//! command.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::batch::Batch;
use super::device::{Device, Engine};
use super::vm::{Place, Queue};

/// Submissions before the first phase, to register and enable the context and to let the driver allocate its memory.
const WARM_UP: u32 = 32;

/// Number of submissions, engine and timing.
#[derive(Debug, clap::Args)]
pub struct Submit {
    /// Submissions per phase, 0 for none; may be repeated for further phases. The engine's timestamp register is read
    /// before each phase and after the last one (DRM_XE_DEVICE_QUERY_ENGINE_CYCLES), which separates the phases in the
    /// card's log
    #[arg(long, value_name = "N", default_value = "1000")]
    count: Vec<u32>,
    /// The engine
    #[arg(long, value_name = "NAME", default_value = "rcs0")]
    engine: String,
    /// Dwords of commands in each batch, in hexadecimal, separated by commas; the batch ends after them
    #[arg(long, value_name = "DWORDS", value_delimiter = ',', value_parser = dword)]
    commands: Vec<u32>,
    /// Microseconds to sleep after each submission, so that the driver has handled its interrupt before the next one
    #[arg(long, value_name = "US", default_value_t = 0)]
    pause: u64,
    /// Use this render node instead of the first that belongs to the card's driver
    #[arg(long, value_name = "NODE")]
    device: Option<PathBuf>,
    /// Seconds that one batch may take
    #[arg(long, value_name = "SECONDS", default_value_t = 20)]
    timeout: u64,
}

/// Runs the phases and prints one line per phase.
pub fn run(submit: &Submit) -> Result<()> {
    let device = Device::open(submit.device.as_deref())?;
    let engine = find(&device, &submit.engine)?;
    let vm = device.vm()?;
    let queue = vm.queue(engine)?;
    let buffer = vm.buffer(Place::Vram, 64 << 10)?;
    let mut batch = Batch::at(buffer.address());
    batch.push(&submit.commands);
    batch.batch_buffer_end();
    buffer.load(&batch)?;
    let run = |count| one_after_another(&queue, buffer.address(), count, submit);
    // The card is not suspended between phases, since the driver suspends it only after one second without work.
    run(if submit.commands.is_empty() { WARM_UP } else { 0 })?;
    for count in &submit.count {
        device.engine_cycles(engine)?;
        let start = Instant::now();
        run(*count)?;
        let each = start.elapsed().as_secs_f64() * 1e6 / f64::from((*count).max(1));
        let what = if submit.commands.is_empty() { "empty submissions" } else { "submissions" };
        println!("{count} {what} on {}, {each:.0} us each, pauses included", submit.engine);
    }
    device.engine_cycles(engine)?;
    Ok(())
}

fn dword(text: &str) -> Result<u32, String> {
    u32::from_str_radix(text.trim_start_matches("0x"), 16)
        .map_err(|_| format!("`{text}` is not a hexadecimal number of 32 bits"))
}

/// Returns the engine with this name.
pub fn find(device: &Device, name: &str) -> Result<Engine> {
    let engines = device.engines()?;
    let names: Vec<String> = engines.iter().map(Engine::name).collect();
    let found = engines.into_iter().find(|engine| engine.name() == name);
    found.with_context(|| missing(name, &names))
}

/// The reason for which there is no engine `name`. Drivers number the engines of a class that exist without gaps, unlike the
/// card and the documents of Intel.
fn missing(name: &str, names: &[String]) -> String {
    let class = |name: &str| name.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
    let last = names.iter().rev().find(|of| class(of) == class(name) && class(name) != name);
    let note = last.map_or(String::new(), |last| format!("; the driver's {last} may be {name} of the card"));
    format!("the driver has no engine {name}; its engines are {}{note}", names.join(", "))
}

fn one_after_another(queue: &Queue<'_>, address: u64, count: u32, submit: &Submit) -> Result<()> {
    let timeout = Duration::from_secs(submit.timeout);
    for n in 1..=count {
        let fence = queue.submit(address)?;
        // The fences of a banned queue signal too; the ban is checked once, after the last submission.
        if n < count {
            fence.wait(timeout)?
        } else {
            queue.wait(&fence, timeout)?
        }
        if submit.pause > 0 {
            thread::sleep(Duration::from_micros(submit.pause));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_engine_may_have_another_number() {
        let names = ["rcs0", "vcs0", "vcs1", "ccs0"].map(str::to_owned);
        let engines = "its engines are rcs0, vcs0, vcs1, ccs0";
        for (name, note) in
            [("vcs2", "; the driver's vcs1 may be vcs2 of the card"), ("vecs0", ""), ("vcs", ""), ("bcs1", "")]
        {
            assert_eq!(missing(name, &names), format!("the driver has no engine {name}; {engines}{note}"));
        }
    }
}
