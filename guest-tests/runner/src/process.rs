// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Child processes, each in its own process group. Drop kills the group if the child is still running. If the spawning
//! thread exits, the kernel kills the child (PR_SET_PDEATHSIG) but not its descendants. [`Child::spawn`] must therefore
//! be called from a thread that outlives the child.

use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::interrupt;

/// Interval at which waiting loops poll the interrupt flag and child processes.
pub const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Limit for a child's exit after EOF of its stdout, and then for EOF of its stderr.
const EXIT_LIMIT: Duration = Duration::from_secs(10);

/// A running child process and its process group.
#[derive(Debug)]
pub struct Child {
    inner: std::process::Child,
    name: String,
    /// Whether it has a process group of its own, which gets its signals.
    group: bool,
}

impl Child {
    /// Starts `command` in a process group of its own, which does not receive the terminal's Ctrl-C. `name` is used in
    /// messages.
    pub fn spawn(command: &mut Command, name: &str) -> Result<Self> {
        Self::start(command.process_group(0), name, true)
    }

    /// Starts `command` in this program's process group, so that it may read from the terminal and change its mode.
    pub fn spawn_on_terminal(command: &mut Command, name: &str) -> Result<Self> {
        Self::start(command, name, false)
    }

    fn start(command: &mut Command, name: &str, group: bool) -> Result<Self> {
        // The kernel kills the child if this program is killed.
        die_with_parent(command, std::process::id());
        let inner = command.spawn().with_context(|| format!("{name} cannot be started"))?;
        Ok(Self { inner, name: name.to_owned(), group })
    }

    /// The child's name for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The underlying child, for example for its pipes.
    pub fn inner(&mut self) -> &mut std::process::Child {
        &mut self.inner
    }

    /// Returns the exit status if the child has exited. Does not block.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.inner.try_wait()?)
    }

    /// Blocks until the child exits, at most for `limit`. Returns `None` on timeout.
    pub fn wait(&mut self, limit: Duration) -> Result<Option<ExitStatus>> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.ended()? {
                return Ok(Some(status));
            }
            if start.elapsed() >= limit {
                return Ok(None);
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Sends SIGTERM to the child or its group, and SIGKILL if the child is still running after `timeout`. Returns the exit status
    /// if the child exited before the SIGKILL; surviving descendants in the group receive no SIGKILL then.
    pub fn stop(&mut self, timeout: Duration) -> Result<Option<ExitStatus>> {
        self.signal(libc::SIGTERM);
        let status = self.wait(timeout)?;
        if status.is_none() {
            self.kill();
        }
        Ok(status)
    }

    fn kill(&mut self) {
        self.signal(libc::SIGKILL);
        // Reaps the child; returns quickly, since the child has been killed.
        let _ = self.inner.wait();
    }

    fn signal(&mut self, signal: i32) {
        // The process ID of a reaped child may have been reused.
        if matches!(self.inner.try_wait(), Ok(None)) {
            let id = self.inner.id() as i32;
            // SAFETY: kill takes no pointers; the process is the unreaped child, and the group its own (`spawn`).
            unsafe { libc::kill(if self.group { -id } else { id }, signal) };
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if matches!(self.inner.try_wait(), Ok(None)) {
            self.kill();
        }
    }
}

/// Makes the kernel kill the process of `command` when the thread that spawned it exits. The spawn fails with ESRCH if
/// the process is not a child of `parent`, for example because `parent` exited before the request took effect.
fn die_with_parent(command: &mut Command, parent: u32) {
    // SAFETY: the closure runs between fork and exec. It calls only prctl and getppid, which are async-signal-safe, and
    // does not allocate.
    unsafe {
        command.pre_exec(move || {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
                return Err(io::Error::last_os_error());
            }
            if libc::getppid().cast_unsigned() != parent {
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
            Ok(())
        });
    }
}

/// Runs `command` and calls `line` for each line of its stdout. Fails if the exit status is not 0 or if the child is
/// still running 10 s after EOF of its stdout; the error contains the most informative line of its stderr. Until EOF of
/// stdout, a signal interrupts the call (see [`interrupt`]).
pub fn run_lines(command: &mut Command, name: &str, mut line: impl FnMut(&str)) -> Result<()> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = Child::spawn(command, name)?;
    let stdout = child.inner().stdout.take();
    let stderr = child.inner().stderr.take();
    let (sender, lines) = channel();
    let (error_sender, errors) = channel();
    thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut pipe) = stderr {
            // On a read error, the text read so far is used.
            let _ = pipe.read_to_end(&mut text);
        }
        // The receiver is gone if the command has succeeded or the limit has expired.
        let _ = error_sender.send(String::from_utf8_lossy(&text).into_owned());
    });
    thread::spawn(move || {
        let Some(pipe) = stdout else { return };
        for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
            if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    });
    loop {
        interrupt::check()?;
        match lines.recv_timeout(Duration::from_millis(100)) {
            Ok(text) => line(&text),
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let status = child.wait(EXIT_LIMIT)?;
    // Kills the group of a child that has not exited, which closes its stderr.
    drop(child);
    match status {
        Some(status) if status.success() => Ok(()),
        _ => {
            // A descendant of the child may still hold stderr open.
            let errors = errors.recv_timeout(EXIT_LIMIT).unwrap_or_default();
            bail!("{name} failed: {}", last_error(&errors))
        }
    }
}

/// Like [`run_lines`], but returns the complete stdout. Invalid UTF-8 is replaced by U+FFFD, and an unterminated last
/// line is terminated.
pub fn output(command: &mut Command, name: &str) -> Result<String> {
    let mut text = String::new();
    run_lines(command, name, |line| {
        text.push_str(line);
        text.push('\n');
    })?;
    Ok(text)
}

/// Returns apt's first `E:` line of `text` without that prefix, else the last nonempty line, else "no error message".
fn last_error(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let chosen = lines.iter().find(|line| line.starts_with("E:")).or(lines.last());
    chosen.map_or("no error message", |line| line.trim_start_matches("E:").trim()).to_owned()
}

/// Returns the first regular file `name` in the directories of PATH, /usr/sbin and /sbin. Does not check whether it is
/// executable.
pub fn find_program(name: &str) -> Option<std::path::PathBuf> {
    let mut folders: Vec<_> = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect();
    // depmod is in sbin, which is often missing from the PATH of ordinary users.
    folders.extend(["/usr/sbin", "/sbin"].map(Into::into));
    folders.into_iter().map(|folder| folder.join(name)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drop_kills_the_process_group() {
        let mut child = Child::spawn(Command::new("sh").args(["-c", "sleep 100 & wait"]), "sh").unwrap();
        thread::sleep(Duration::from_millis(50));
        let group = child.inner().id() as i32;
        drop(child);
        let start = Instant::now();
        // SAFETY: signal 0 only checks whether the group exists.
        while unsafe { libc::kill(-group, 0) } == 0 {
            assert!(start.elapsed() < Duration::from_secs(5), "a process of the group is still alive");
            thread::sleep(POLL_INTERVAL);
        }
    }

    #[test]
    fn spawn_fails_without_the_parent() {
        let mut command = Command::new("true");
        // The parent of the new process is this test.
        die_with_parent(&mut command, 0);
        assert_eq!(command.spawn().unwrap_err().raw_os_error(), Some(libc::ESRCH));
    }

    #[test]
    fn error_contains_the_first_apt_error_line() {
        let error = run_lines(
            Command::new("sh").args(["-c", "echo W: x >&2; echo E: no such package >&2; exit 1"]),
            "apt",
            |_| (),
        );
        assert_eq!(error.unwrap_err().to_string(), "apt failed: no such package");
    }

    #[test]
    fn output_includes_an_unterminated_last_line() {
        assert_eq!(output(Command::new("sh").args(["-c", "echo a; printf b"]), "sh").unwrap(), "a\nb\n");
    }
}
