// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What uses the function that is migrated: a program in the guest of the physical function, or a guest of its own.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

/// What the VF's driver logs when it has recovered (`xe_gt_sriov_vf.c`).
pub const RECOVERED: &str = "migration recovery ended";
/// What it logs when it could not.
pub const FAILED: &str = "migration recovery failed";
/// Time for the recovery.
pub const RECOVERY: Duration = Duration::from_secs(30);
/// Polling interval of the kernel log.
const POLL: Duration = Duration::from_millis(2);
/// Time that the load has to be on the engines before a migration.
const BUSY: Duration = Duration::from_millis(300);
/// Time for the host to carry out a request, the recovery included.
const REQUEST: Duration = Duration::from_secs(60);
/// Name of the requests to stop the VF's guest.
pub const STOP: &str = "stop";
/// Name of the requests to let it go on.
pub const CONTINUE: &str = "continue";

/// Names of the files of a request with this name and number, from 1: that of the guest, and that of the host, which exists when the
/// request is carried out. Each name is used once, because a guest's client of 9p may not see that a file was removed and created
/// again.
pub fn request_files(name: &str, number: u32) -> (String, String) {
    (format!("{name}-{number}"), format!("{name}-{number}-done"))
}

/// What uses the function.
pub(super) enum User {
    /// A program in this guest.
    Program(Program),
    /// A guest of its own.
    Guest(GuestOfFunction),
}

impl User {
    /// Stops it while it has work on the engines.
    pub(super) fn stop(&mut self) -> Result<()> {
        match self {
            User::Program(program) => program.load.stop(),
            User::Guest(guest) => guest.stop(),
        }
    }

    /// Lets it go on after the function's driver has recovered. Returns the duration of the recovery in seconds.
    pub(super) fn go_on(&mut self) -> Result<f64> {
        let begin = Instant::now();
        match self {
            User::Program(program) => {
                program.log.wait()?;
                let recovery = begin.elapsed().as_secs_f64();
                program.load.go_on()?;
                Ok(recovery)
            }
            User::Guest(guest) => {
                guest.request(CONTINUE)?;
                Ok(begin.elapsed().as_secs_f64())
            }
        }
    }

    /// Lets it go on after an error.
    pub(super) fn release(&mut self) {
        // The first error is reported. A program is continued when it is dropped.
        if let User::Guest(guest) = self {
            let _ = guest.request(CONTINUE);
        }
    }

    /// Lets a program end, which fails if a batch has not ended well.
    pub(super) fn end(self) -> Result<()> {
        match self {
            User::Program(program) => program.load.end(),
            User::Guest(_) => Ok(()),
        }
    }
}

/// A guest that the host stops and continues.
pub(super) struct GuestOfFunction {
    folder: PathBuf,
    /// Number of stops so far.
    stops: u32,
}

impl GuestOfFunction {
    /// The host looks for requests in `folder`.
    pub(super) fn new(folder: &Path) -> Self {
        GuestOfFunction { folder: folder.to_owned(), stops: 0 }
    }

    fn stop(&mut self) -> Result<()> {
        thread::sleep(BUSY);
        self.stops += 1;
        self.request(STOP)
    }

    /// Requests what the name says, and waits until it is done.
    fn request(&self, name: &str) -> Result<()> {
        let (request, done) = request_files(name, self.stops);
        let path = self.folder.join(request);
        fs::write(&path, []).with_context(|| format!("{} cannot be written", path.display()))?;
        let (begin, done) = (Instant::now(), self.folder.join(done));
        while !done.exists() {
            ensure!(begin.elapsed() < REQUEST, "the host has not carried out `{name}` within {} s", REQUEST.as_secs());
            thread::sleep(POLL);
        }
        Ok(())
    }
}

/// A program that uses the function, and the kernel's log, in which the function's driver says that it has recovered.
pub(super) struct Program {
    load: BusyFunction,
    log: KernelLog,
}

impl Program {
    pub(super) fn new(load: BusyFunction) -> Result<Self> {
        Ok(Program { load, log: KernelLog::open()? })
    }
}

/// A program that keeps all engines of a function busy.
pub(super) struct BusyFunction(Child);

impl BusyFunction {
    pub(super) fn start(node: &Path) -> Result<BusyFunction> {
        // By its name: the image has a script that runs it by the loader of its libraries.
        let mut command = Command::new("arctic");
        command.args(["guest", "load", "--until-eof", "--device"]).arg(node).arg("all=80");
        let mut load = BusyFunction(command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?);
        thread::sleep(Duration::from_secs(2));
        load.runs()?;
        Ok(load)
    }

    /// Fails if the program has ended.
    fn runs(&mut self) -> Result<()> {
        match self.0.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("the program that uses the function has ended: {status}"),
        }
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        kill_process(Pid::from_child(&self.0), signal).context("the program that uses the function cannot be signalled")
    }

    fn stop(&mut self) -> Result<()> {
        thread::sleep(BUSY);
        self.runs()?;
        self.signal(Signal::STOP)
    }

    fn go_on(&mut self) -> Result<()> {
        self.signal(Signal::CONT)?;
        thread::sleep(BUSY);
        self.runs()
    }

    /// Lets the program end. It fails if one of its batches has not ended well.
    pub(super) fn end(mut self) -> Result<()> {
        drop(self.0.stdin.take());
        let status = self.0.wait()?;
        ensure!(status.success(), "the program that uses the function: {status}");
        Ok(())
    }
}

impl Drop for BusyFunction {
    fn drop(&mut self) {
        // Fails if it has ended.
        let _ = self.signal(Signal::CONT);
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The kernel's log from now on.
struct KernelLog(File);

impl KernelLog {
    fn open() -> Result<KernelLog> {
        let path = "/dev/kmsg";
        let mut options = OpenOptions::new();
        let file =
            options.read(true).custom_flags(libc::O_NONBLOCK).open(path).with_context(|| format!("open {path}"))?;
        let mut log = KernelLog(file);
        while log.line()?.is_some() {}
        Ok(log)
    }

    /// The next line, if there is one.
    fn line(&mut self) -> Result<Option<String>> {
        let mut bytes = [0; 8192];
        match self.0.read(&mut bytes) {
            Ok(read) => Ok(Some(String::from_utf8_lossy(&bytes[..read]).into_owned())),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            // Lines were overwritten.
            Err(error) if error.raw_os_error() == Some(libc::EPIPE) => Ok(Some(String::new())),
            Err(error) => Err(error).context("read of the kernel's log"),
        }
    }

    /// Waits until the function's driver has recovered.
    fn wait(&mut self) -> Result<()> {
        let begin = Instant::now();
        while begin.elapsed() < RECOVERY {
            match self.line()? {
                Some(line) if line.contains(RECOVERED) => return Ok(()),
                Some(line) if line.contains(FAILED) => bail!("the function's driver: {}", line.trim()),
                Some(_) => {}
                None => thread::sleep(POLL),
            }
        }
        bail!("the function's driver has not logged `{RECOVERED}` within {} s", RECOVERY.as_secs())
    }
}
