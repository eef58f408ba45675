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
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
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
        let not_run = prepare_driver(test, &plan)?;
        let kernel_before = kernel.warnings()?;
        let mut ended = match not_run {
            Some(reason) => Ended { not_run: Some(reason), ..Ended::default() },
            None => {
                send(&Message::Running)?;
                run_test(test, &plan).with_context(|| format!("{test} cannot be run"))?
            }
        };
        ended.number = *number;
        ended.kernel_before = kernel_before;
        ended.kernel = kernel.warnings()?;
        ended.taint = fs::read_to_string(TAINT)?.trim().parse().unwrap_or(u64::MAX);
        ended.clock = clock();
        let needs_new_guest = ended.needs_new_guest();
        send(&Message::Ended(ended))?;
        if needs_new_guest {
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
/// Returns the reason if the driver is not ready: without it, the test would find no device and skip.
fn prepare_driver(test: &Test, plan: &Plan) -> Result<Option<String>> {
    let driver = plan.driver;
    if test.binary == format!("{driver}_module_load") {
        // The subtest `load` skips if the driver is loaded.
        return if test.subtest.as_deref() == Some("load") && driver.is_loaded() { unload(driver) } else { Ok(None) };
    }
    if !driver.is_loaded() {
        let status = Command::new("load-driver").stdin(Stdio::null()).status();
        let status = status.context("load-driver cannot be started")?;
        if !status.success() || !driver.is_loaded() {
            return Ok(Some(format!("the driver {driver} could not be loaded: modprobe: {status}")));
        }
    }
    // modprobe succeeds even if the driver's probe of the device fails.
    let unbound = plan.card.as_deref().filter(|card| !driver.is_bound(card));
    Ok(unbound.map(|card| format!("the driver {driver} is not bound to {card}")))
}

/// Unloads the driver. Returns the reason if it is still loaded.
fn unload(driver: Driver) -> Result<Option<String>> {
    let remove = |module: &str| {
        let status = Command::new("modprobe").args(["-r", module]).status();
        status.context("modprobe cannot be started")
    };
    // mei_gsc, which not every kernel has, holds a reference to the driver.
    remove("mei_gsc")?;
    let status = remove(driver.name())?;
    let loaded = driver.is_loaded();
    Ok(loaded.then(|| format!("the driver {driver} could not be unloaded: modprobe -r: {status}")))
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
    if let Some(card) = &plan.card {
        command.env("IGT_DEVICE", format!("pci:slot={card}"));
    }
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(errors.try_clone()?).process_group(0);
    let mut child = command.spawn()?;
    let Supervised { status, timed_out, seconds } = supervise(&mut child, Duration::from_secs(plan.limit))?;
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

/// The end of a process.
struct Supervised {
    /// `None` if it has not exited even after SIGKILL.
    status: Option<ExitStatus>,
    /// Whether it exceeded its time limit.
    timed_out: bool,
    /// Time in seconds until it exited or exceeded its limit.
    seconds: f64,
}

/// Waits for the exit of `child`, which must be the leader of a process group. After `limit`, terminates the group by
/// SIGTERM, then by SIGKILL. In each case no process of the group remains, unless it cannot be killed.
fn supervise(child: &mut Child, limit: Duration) -> Result<Supervised> {
    let start = Instant::now();
    let mut exited = wait_for_exit(child, limit)?;
    let timed_out = !exited;
    let seconds = start.elapsed().as_secs_f64();
    for (signal, timeout) in [(Signal::TERM, TERM_TIMEOUT), (Signal::KILL, KILL_TIMEOUT)] {
        if !exited {
            signal_group(child, signal);
            exited = wait_for_exit(child, timeout)?;
        }
    }
    // Child processes that outlive the test must not affect the next one.
    signal_group(child, Signal::KILL);
    // Reaped last: until then, the ID of the process and of its group is not reused.
    let status = if exited { Some(child.wait()?) } else { None };
    Ok(Supervised { status, timed_out, seconds })
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
        bytes.extend_from_slice(format!("\n[{} bytes omitted]\n", length - 2 * half).as_bytes());
        file.seek(SeekFrom::Start(length - half))?;
        file.take(half).read_to_end(&mut bytes)?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Waits for the exit of `child` without reaping it. Returns false if it has not exited within `limit`.
fn wait_for_exit(child: &Child, limit: Duration) -> Result<bool> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    let start = Instant::now();
    loop {
        if waitid(WaitId::Pid(Pid::from_child(child)), options)?.is_some() {
            return Ok(true);
        }
        let elapsed = start.elapsed();
        if elapsed >= limit {
            return Ok(false);
        }
        // Most tests take less than 0.1 s; the polling interval grows with the run time.
        thread::sleep((elapsed / 20).clamp(Duration::from_millis(2), Duration::from_millis(50)));
    }
}

/// Sends `signal` to the process group of `child`, which must not have been reaped.
fn signal_group(child: &Child, signal: Signal) {
    // Fails only if no process of the group remains.
    let _ = kill_process_group(Pid::from_child(child), signal);
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

    /// Returns the kernel's messages of level "warning" or more severe since the last call. The first call returns those
    /// since the start of the kernel.
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
    use std::process::ChildStdout;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;

    #[test]
    fn only_kernel_warnings_are_reported() {
        let record = "4,871,5521673,-;xe 0000:00:01.0: [drm] hm\n SUBSYSTEM=pci\n DEVICE=+pci:0000:00:01.0\n";
        assert_eq!(warning(record), Some((4, "xe 0000:00:01.0: [drm] hm".to_owned())));
        assert_eq!(warning("6,872,5521673,-;fine\n"), None);
        assert_eq!(warning("12,873,5521673,-;[IGT] xe_query: starting subtest x\n"), None);
    }

    /// Starts `script` in a process group of its own. Returns when the script has printed `ready`.
    fn start(script: &str) -> (Child, ChildStdout) {
        let mut command = Command::new("sh");
        let mut child = command.args(["-c", script]).stdout(Stdio::piped()).process_group(0).spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let mut word = [0; 6];
        stdout.read_exact(&mut word).unwrap();
        assert_eq!(&word, b"ready\n");
        (child, stdout)
    }

    /// Returns whether the write end of `pipe` has been closed, so that no process with it remains. The time limit ends a
    /// wait for `sleep 600`.
    fn is_closed(pipe: &ChildStdout) -> bool {
        let limit = Timespec { tv_sec: 60, tv_nsec: 0 };
        poll(&mut [PollFd::new(pipe, PollFlags::IN)], Some(&limit)).unwrap() == 1
    }

    #[test]
    fn process_that_ignores_sigterm_is_killed() {
        let (mut child, stdout) = start("trap '' TERM; sleep 600 & echo ready; wait");
        let ended = supervise(&mut child, Duration::ZERO).unwrap();
        assert_eq!((ended.timed_out, ended.status.unwrap().signal()), (true, Some(libc::SIGKILL)));
        assert!(is_closed(&stdout), "a process of the group remains");
    }

    #[test]
    fn processes_that_outlive_a_test_are_killed() {
        let (mut child, stdout) = start("sleep 600 & echo ready; exit 3");
        let ended = supervise(&mut child, Duration::from_secs(60)).unwrap();
        assert_eq!((ended.timed_out, ended.status.unwrap().code()), (false, Some(3)));
        assert!(is_closed(&stdout), "a process of the group remains");
    }

    #[test]
    fn output_beyond_the_limit_keeps_both_ends() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![b'a'; STREAM_KEPT]).unwrap();
        file.write_all(b"the end").unwrap();
        let text = text_of(&mut file).unwrap();
        assert!(text.starts_with("aaa") && text.ends_with("the end") && text.contains("[7 bytes omitted]"));
    }
}
