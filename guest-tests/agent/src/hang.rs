// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic guest hang`: submits a batch that does not end, and saves the driver's dump.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use arctic_mi::compute::{Bases, Walker, cfe_state, state_base_address};

use super::batch::{Batch, Compare};
use super::device::Device;
use super::gen6::gem::{Context as Gen6Context, Object, Order, Program};
use super::submit::find;
use super::vm::Place;

/// Dump locations: a directory per dump (CONFIG_DEV_COREDUMP, for xe), or a file per card (i915).
const DUMPS: [(&str, &str); 2] = [("/sys/class/devcoredump", "data"), ("/sys/class/drm", "error")];
/// Contents of i915's file before there is a dump.
const NONE_YET: &[u8] = b"No error state collected";

/// The engine to hang, and the handling of the dump.
#[derive(Debug, clap::Args)]
pub struct Hang {
    /// The engine to hang
    #[arg(long, value_name = "NAME", default_value = "rcs0")]
    engine: String,
    /// Hang it in a kernel without an end, on an engine with execution units, instead of in a batch (xe)
    #[arg(long)]
    kernel: bool,
    /// File to which the driver's dump is copied, for `arctic decode`
    #[arg(long, value_name = "FILE")]
    dump: Option<PathBuf>,
    /// Use this render node instead of the first that belongs to the card's driver
    #[arg(long, value_name = "NODE")]
    device: Option<PathBuf>,
    /// Seconds that the driver may take to detect the hang; xe takes 5 s unless job_timeout_ms is changed, i915 a few
    /// heartbeats
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    timeout: u64,
}

/// Hangs the engine, waits until the driver has removed the job from it, and copies the driver's dump.
pub fn run(hang: &Hang) -> Result<()> {
    let device = Device::open(hang.device.as_deref())?;
    let limit = Duration::from_secs(hang.timeout);
    let start = Instant::now();
    let address = match (device.address_spaces(), hang.kernel) {
        (true, false) => wait_for_memory(&device, &hang.engine, limit)?,
        (true, true) => execute_for_ever(&device, &hang.engine, limit)?,
        (false, false) => jump_for_ever(&device, &hang.engine, limit)?,
        (false, true) => bail!("--kernel needs xe and a card with COMPUTE_WALKER"),
    };
    let after = start.elapsed().as_secs_f64();
    println!("{} hung at {address:#x}; the driver cancelled the job after {after:.1} s", hang.engine);
    if let Some(to) = &hang.dump {
        let bytes = copy(&DUMPS.map(|(folder, file)| (Path::new(folder), file)), to, limit)?;
        println!("dump of {bytes} bytes written to {}", to.display());
    }
    Ok(())
}

/// Submits a batch that waits for a value that is never written, and returns the address of the wait when the driver has
/// cancelled the batch.
fn wait_for_memory(device: &Device, engine: &str, limit: Duration) -> Result<u64> {
    let vm = device.vm()?;
    let queue = vm.queue(find(device, engine)?)?;
    let buffer = vm.buffer(Place::Vram, 64 << 10)?;
    let flag = buffer.address() + 0x1000;
    let mut batch = Batch::at(buffer.address());
    batch.store_dword(flag, 0xc0de);
    batch.semaphore_wait(flag, Compare::Equal, 1);
    batch.batch_buffer_end();
    buffer.load(&batch)?;
    let fence = queue.submit(buffer.address())?;
    // The fence also signals when the driver cancels the job.
    fence.wait(limit)?;
    Ok(buffer.address() + 16)
}

/// Offset of the kernel in its buffer.
const KERNEL: u32 = 0x2000;
/// `L0: (W) jmpi L0`, then the end of a thread, which it does not reach.
const ENDLESS: [u32; 8] = [0x8000_0020, 0x4000, 0, 0, 0x8000_0031, 0x4, 0x3020_7f0c, 0];
/// PIPELINE_SELECT of the compute pipeline.
const COMPUTE_PIPELINE: u32 = 0x6904_0302;

/// Submits a batch with a walker of one thread and a kernel that does not end, and returns the address of the kernel when the driver
/// has cancelled the batch.
fn execute_for_ever(device: &Device, engine: &str, limit: Duration) -> Result<u64> {
    let vm = device.vm()?;
    let queue = vm.queue(find(device, engine)?)?;
    let buffer = vm.buffer(Place::Vram, 64 << 10)?;
    let base = buffer.address();
    let bases = Bases { general: base, surface: base, dynamic: base, instruction: base, bindless: base };
    let mut batch = Batch::at(base);
    batch.push(&[COMPUTE_PIPELINE]).push(&cfe_state(0)).push(&state_base_address(&bases));
    batch.push(&Walker::of(KERNEL).words()).batch_buffer_end();
    while batch.here() < base + u64::from(KERNEL) {
        batch.noop();
    }
    batch.push(&ENDLESS);
    buffer.load(&batch)?;
    queue.submit(base)?.wait(limit)?;
    Ok(base + u64::from(KERNEL))
}

/// Submits a batch that jumps to its start, on a GPU without a command that waits for a value in memory, and returns its
/// address when the driver has cancelled it.
fn jump_for_ever(device: &Device, engine: &str, limit: Duration) -> Result<u64> {
    let memory = Object::new(device, 4096)?;
    let program = Program::new(device, |batch| {
        batch.store_dword(&memory, 0, 0xc0de).jump_to_start();
    })?;
    let context = Gen6Context::new(device, find(device, engine)?)?;
    context.submit(&program, Order::default())?.wait(limit)?;
    Ok(program.object().presumed())
}

/// Copies the first dump that appears within `limit`. The kernel keeps the dump until it is written to.
fn copy(dumps: &[(&Path, &str)], to: &Path, limit: Duration) -> Result<u64> {
    let start = Instant::now();
    loop {
        let files = dumps.iter().flat_map(|(folder, file)| {
            fs::read_dir(folder).into_iter().flatten().flatten().map(move |entry| entry.path().join(file))
        });
        // These files report no size, so their contents are checked.
        let mut read = files.filter_map(|file| fs::read(file).ok());
        if let Some(dump) = read.find(|dump| !dump.is_empty() && !dump.starts_with(NONE_YET)) {
            fs::write(to, &dump).with_context(|| format!("{} cannot be written", to.display()))?;
            return Ok(dump.len() as u64);
        }
        ensure!(start.elapsed() <= limit, "the driver has written no dump");
        thread::sleep(Duration::from_millis(100));
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn the_dump_is_copied() {
        let folder = TempDir::new().unwrap();
        let to = folder.path().join("to");
        let (dumps, cards) = (folder.path().join("dumps"), folder.path().join("drm"));
        let places = [(dumps.as_path(), "data"), (cards.as_path(), "error")];
        fs::create_dir_all(cards.join("card0")).unwrap();
        fs::write(cards.join("card0/error"), "No error state collected\n").unwrap();
        assert!(copy(&places, &to, Duration::ZERO).is_err());
        fs::create_dir_all(dumps.join("devcd1")).unwrap();
        fs::write(dumps.join("devcd1/data"), "dump").unwrap();
        assert_eq!(copy(&places, &to, Duration::ZERO).unwrap(), 4);
        assert_eq!(fs::read_to_string(to).unwrap(), "dump");
    }
}
