//! `arctic guest hang`: a batch that waits for what never comes, and the dump that the driver makes of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::batch::{Batch, Compare};
use super::device::Device;
use super::submit::find;
use super::vm::Place;

/// Where the kernel shows dumps, one folder each (CONFIG_DEV_COREDUMP).
const DUMPS: &str = "/sys/class/devcoredump";

/// Which engine, and what becomes of the dump.
#[derive(Debug, clap::Args)]
pub struct Hang {
    /// The engine
    #[arg(long, value_name = "NAME", default_value = "rcs0")]
    engine: String,
    /// Where to copy the driver's dump, for `arctic decode`
    #[arg(long, value_name = "FILE")]
    dump: Option<PathBuf>,
    /// Use this render node instead of the first that belongs to xe
    #[arg(long, value_name = "NODE")]
    device: Option<PathBuf>,
    /// Seconds that the driver may take to notice; its own limit is 5 s unless job_timeout_ms says otherwise
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    timeout: u64,
}

/// Hangs the engine, waits until the driver has taken the job off it, and copies its dump.
pub fn run(hang: &Hang) -> Result<()> {
    let device = Device::open(hang.device.as_deref())?;
    let vm = device.vm()?;
    let queue = vm.queue(find(&device, &hang.engine)?)?;
    let buffer = vm.buffer(Place::Vram, 64 << 10)?;
    let flag = buffer.address() + 0x1000;
    let mut batch = Batch::at(buffer.address());
    batch.store_dword(flag, 0xc0de);
    batch.semaphore_wait(flag, Compare::Equal, 1);
    batch.batch_buffer_end();
    buffer.load(&batch)?;
    let start = Instant::now();
    let fence = queue.submit(buffer.address())?;
    let limit = Duration::from_secs(hang.timeout);
    // The fence of a job that is given up signals too.
    fence.wait(limit)?;
    let after = start.elapsed().as_secs_f64();
    println!("{} was hung at {:#x}; the driver gave the job up after {after:.1} s", hang.engine, buffer.address() + 16);
    if let Some(to) = &hang.dump {
        let bytes = copy(Path::new(DUMPS), to, limit)?;
        println!("{bytes} bytes of dump in {}", to.display());
    }
    Ok(())
}

/// Copies the first dump that appears within `limit`; the kernel forgets it when it is read and written to.
fn copy(dumps: &Path, to: &Path, limit: Duration) -> Result<u64> {
    let start = Instant::now();
    loop {
        let mut found = fs::read_dir(dumps).into_iter().flatten().flatten().map(|entry| entry.path().join("data"));
        if let Some(data) = found.find(|data| data.exists()) {
            // The file has no size that could be asked for.
            let dump = fs::read(&data).with_context(|| format!("{} cannot be read", data.display()))?;
            ensure!(!dump.is_empty(), "{} is empty", data.display());
            fs::write(to, &dump).with_context(|| format!("{} cannot be written", to.display()))?;
            return Ok(dump.len() as u64);
        }
        if start.elapsed() > limit {
            bail!("no dump appears in {}", dumps.display());
        }
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
        assert!(copy(&folder.path().join("none"), &to, Duration::ZERO).is_err());
        fs::create_dir_all(folder.path().join("dumps/devcd1")).unwrap();
        fs::write(folder.path().join("dumps/devcd1/data"), "dump").unwrap();
        assert_eq!(copy(&folder.path().join("dumps"), &to, Duration::ZERO).unwrap(), 4);
        assert_eq!(fs::read_to_string(to).unwrap(), "dump");
    }
}
