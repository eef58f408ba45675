// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Processes that a test starts: none of them outlives its test, also if an assertion fails.

use std::io::{BufRead, BufReader, Read};
use std::ops::{Deref, DerefMut};
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// A child process, killed and reaped on drop.
#[derive(Debug)]
pub struct ChildProcess(Option<Child>);

impl ChildProcess {
    /// Starts `command`.
    pub fn spawn(command: &mut Command) -> Self {
        Self(Some(command.spawn().unwrap()))
    }

    /// Sends `signal`. The process must not have been reaped; it may have exited.
    pub fn signal(&self, signal: i32) {
        kill_process(Pid::from_child(self), Signal::from_named_raw(signal).unwrap()).unwrap();
    }

    /// Waits for the exit. Returns the status and what is left on the pipes.
    pub fn wait_with_output(mut self) -> Output {
        self.0.take().unwrap().wait_with_output().unwrap()
    }
}

impl Deref for ChildProcess {
    type Target = Child;

    fn deref(&self) -> &Child {
        self.0.as_ref().unwrap()
    }
}

impl DerefMut for ChildProcess {
    fn deref_mut(&mut self) -> &mut Child {
        self.0.as_mut().unwrap()
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A process of `arctic serve`, and the first lines of its stdout. It is killed on drop.
#[derive(Debug)]
pub struct Served {
    /// The process.
    pub process: ChildProcess,
    /// The lines of its stdout that have been read; none if it exited before it printed one.
    pub lines: Vec<String>,
}

impl Served {
    /// Starts `command` and reads its stdout up to the first line for which `is_last` holds. The server prints after all
    /// its sockets listen.
    pub fn start(command: &mut Command, is_last: impl Fn(&str) -> bool) -> Self {
        let mut process = ChildProcess::spawn(command.stdin(Stdio::null()).stdout(Stdio::piped()));
        let mut lines = Vec::new();
        for line in BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok) {
            lines.push(line);
            if lines.last().is_some_and(|line| is_last(line)) {
                break;
            }
        }
        Self { process, lines }
    }

    /// Returns the first line of stdout; empty if there is none.
    pub fn first_line(&self) -> &str {
        self.lines.first().map_or("", String::as_str)
    }

    /// Sends `signal` and waits for the exit. Returns the exit status, and the contents of stderr if it is a pipe.
    pub fn end(mut self, signal: i32) -> (Option<i32>, String) {
        self.process.signal(signal);
        let mut text = String::new();
        if let Some(mut stderr) = self.process.stderr.take() {
            stderr.read_to_string(&mut text).unwrap();
        }
        (self.process.wait().unwrap().code(), text)
    }
}
