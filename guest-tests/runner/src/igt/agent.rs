// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The test agent in the guest: runs one process per test, and reports the start and the result of each test to the
//! host, one message per line.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::time::{ClockId, clock_gettime};

use super::list::Test;
use super::protocol::{Ended, Message, Plan};
use crate::driver::Driver;
use crate::image::IGT_FOLDER;

const PORT: &str = "/dev/virtio-ports/agent";
const TAINT: &str = "/proc/sys/kernel/tainted";
/// Maximum number of bytes kept of an output stream, half from its beginning and half from its end.
const STREAM_KEPT: usize = 512 << 10;
/// Grace periods of a test: to clean up after SIGTERM, and to exit after SIGKILL.
const TERM_TIMEOUT: Duration = Duration::from_secs(3);
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
/// Kernel log levels up to "warning" are reported.
const WARNING: u8 = 4;

/// Runs the plan in the file `plan`. Returns early after a test that makes the guest unusable; the host then boots a
/// new guest.
pub fn run(plan: &Path) -> Result<()> {
    let text = fs::read_to_string(plan).with_context(|| format!("{} cannot be read", plan.display()))?;
    let plan: Plan = serde_json::from_str(&text).context("the plan cannot be parsed")?;
    let mut port = OpenOptions::new().write(true).open(PORT).with_context(|| format!("{PORT} cannot be opened"))?;
    let mut send = |message: &Message| -> Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        Ok(port.write_all(&line)?)
    };
    let mut kernel = KernelLog::open()?;
    for (number, test) in &plan.tests {
        send(&Message::Started { number: *number, clock: clock() })?;
        prepare_driver(test, plan.driver)?;
        send(&Message::Running)?;
        kernel.skip()?;
        let mut ended = run_test(test, &plan).with_context(|| format!("{test} cannot be run"))?;
        ended.number = *number;
        ended.kernel = kernel.warnings()?;
        ended.taint = fs::read_to_string(TAINT)?.trim().parse().unwrap_or(u64::MAX);
        ended.clock = clock();
        let spoilt = ended.spoils_guest();
        send(&Message::Ended(ended))?;
        if spoilt {
            break;
        }
    }
    Ok(())
}

/// The guest's clock in seconds, including time spent suspended.
fn clock() -> f64 {
    let time = clock_gettime(ClockId::Boottime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Loads the driver before a test in the same way as a distribution, except for tests that load the driver themselves.
fn prepare_driver(test: &Test, driver: Driver) -> Result<()> {
    let loaded = driver.is_loaded();
    let own_loading = test.binary == format!("{driver}_module_load");
    if own_loading && loaded && test.subtest.as_deref() == Some("load") {
        // The subtest skips if the driver is loaded. mei_gsc holds a reference to the driver and is unloaded first.
        for module in ["mei_gsc", driver.name()] {
            Command::new("modprobe").args(["-r", module]).status().context("modprobe cannot be started")?;
        }
    }
    if !own_loading && !loaded {
        Command::new("load-driver").stdin(Stdio::null()).status().context("load-driver cannot be started")?;
    }
    Ok(())
}

fn run_test(test: &Test, plan: &Plan) -> Result<Ended> {
    let mut output = scratch_file("/tmp/test.output")?;
    let mut errors = scratch_file("/tmp/test.errors")?;
    let mut command = Command::new(format!("/{IGT_FOLDER}/{}", test.binary));
    for (option, value) in [("--run-subtest", &test.subtest), ("--dynamic-subtest", &test.dynamic)] {
        if let Some(value) = value {
            command.args([option, value]);
        }
    }
    // A fixed seed makes failures reproducible. IGT's tests of its own runners run only with IGT_CI_META_TEST.
    command.env("IGT_PLAIN_OUTPUT", "1").env("IGT_SRANDOM", "1").env("IGT_CI_META_TEST", "1");
    if let Some(device) = &plan.device {
        command.env("IGT_DEVICE", device);
    }
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(errors.try_clone()?).process_group(0);
    let start = Instant::now();
    let mut child = command.spawn()?;
    let limit = Duration::from_secs(plan.limit);
    let mut status = wait(&mut child, limit)?;
    let timed_out = status.is_none();
    let seconds = start.elapsed().as_secs_f64();
    for (signal, timeout) in [(libc::SIGTERM, TERM_TIMEOUT), (libc::SIGKILL, KILL_TIMEOUT)] {
        if status.is_none() {
            signal_group(&child, signal);
            status = wait(&mut child, timeout)?;
        }
    }
    // Child processes that outlive the test must not affect the next one.
    signal_group(&child, libc::SIGKILL);
    Ok(Ended {
        status: status.and_then(|status| status.code()),
        signal: status.and_then(|status| status.signal()),
        timed_out,
        seconds,
        output: text_of(&mut output)?,
        errors: text_of(&mut errors)?,
        ..Ended::default()
    })
}

fn scratch_file(path: &str) -> Result<File> {
    let mut options = OpenOptions::new();
    // Opened for appending: the test's processes share the file and must not overwrite each other's output.
    options.create(true).append(true).read(true);
    let file = options.open(path).with_context(|| format!("{path} cannot be created"))?;
    file.set_len(0)?;
    Ok(file)
}

fn text_of(file: &mut File) -> Result<String> {
    let length = file.seek(SeekFrom::End(0))?;
    let half = STREAM_KEPT as u64 / 2;
    let mut bytes = Vec::new();
    file.rewind()?;
    if length <= 2 * half {
        file.read_to_end(&mut bytes)?;
    } else {
        file.take(half).read_to_end(&mut bytes)?;
        bytes.extend_from_slice(format!("\n[{} bytes left out]\n", length - 2 * half).as_bytes());
        file.seek(SeekFrom::Start(length - half))?;
        file.take(half).read_to_end(&mut bytes)?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn wait(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        let elapsed = start.elapsed();
        if elapsed >= limit {
            return Ok(None);
        }
        // Most tests take less than 0.1 s; the polling interval grows with the run time.
        thread::sleep((elapsed / 20).clamp(Duration::from_millis(2), Duration::from_millis(50)));
    }
}

fn signal_group(child: &Child, signal: i32) {
    // SAFETY: kill has no memory effects. The group belongs to the test. Its ID is not reused until process IDs wrap,
    // which does not happen during a test.
    unsafe { libc::kill(-(child.id() as i32), signal) };
}

/// The kernel log as records with levels, read from /dev/kmsg.
struct KernelLog {
    file: File,
}

impl KernelLog {
    fn open() -> Result<Self> {
        let mut options = OpenOptions::new();
        let file = options
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/kmsg")
            .context("/dev/kmsg cannot be opened")?;
        Ok(Self { file })
    }

    /// Skips all records up to now.
    fn skip(&mut self) -> Result<()> {
        self.file.seek(SeekFrom::End(0))?;
        Ok(())
    }

    /// Returns the kernel's messages of level "warning" or more severe since the last call.
    fn warnings(&mut self) -> Result<Vec<(u8, String)>> {
        let mut lines = Vec::new();
        let mut record = [0; 8192];
        loop {
            match self.file.read(&mut record) {
                Ok(0) => break,
                Ok(length) => lines.extend(warning(&String::from_utf8_lossy(&record[..length]))),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // Records were overwritten before they were read: continue with the oldest remaining record.
                Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {}
                Err(error) => return Err(error).context("/dev/kmsg cannot be read"),
            }
        }
        Ok(lines)
    }
}

/// Returns level and text of a `/dev/kmsg` record (`priority,sequence,time,flags;text`) if it is a kernel message of
/// level "warning" or more severe.
fn warning(record: &str) -> Option<(u8, String)> {
    let (head, text) = record.split_once(';')?;
    let priority: u32 = head.split(',').next()?.parse().ok()?;
    // The facility, in the bits above the level, is 0 for kernel messages. Tests log with another facility.
    let level = u8::try_from(priority).ok().filter(|level| *level <= WARNING)?;
    Some((level, text.lines().next().unwrap_or_default().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_kernel_warnings_are_reported() {
        let record = "4,871,5521673,-;xe 0000:00:01.0: [drm] hm\n SUBSYSTEM=pci\n DEVICE=+pci:0000:00:01.0\n";
        assert_eq!(warning(record), Some((4, "xe 0000:00:01.0: [drm] hm".to_owned())));
        assert_eq!(warning("6,872,5521673,-;fine\n"), None);
        assert_eq!(warning("12,873,5521673,-;[IGT] xe_query: starting subtest x\n"), None);
    }

    #[test]
    fn a_test_that_hangs_is_ended_and_long_output_is_shortened() {
        let mut child = Command::new("sleep").arg("60").process_group(0).spawn().unwrap();
        assert!(wait(&mut child, Duration::from_millis(30)).unwrap().is_none());
        signal_group(&child, libc::SIGKILL);
        assert_eq!(wait(&mut child, KILL_TIMEOUT).unwrap().unwrap().signal(), Some(libc::SIGKILL));
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![b'a'; STREAM_KEPT]).unwrap();
        file.write_all(b"the end").unwrap();
        let text = text_of(&mut file).unwrap();
        assert!(text.starts_with("aaa") && text.ends_with("the end") && text.contains("[7 bytes left out]"));
    }
}
