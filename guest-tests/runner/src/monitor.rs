// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! QEMU's machine protocol (QMP): one JSON document a line, commands in one direction, answers and events in the other.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};

/// Time for an answer. QEMU answers when its main loop has carried out the command.
const LIMIT: Duration = Duration::from_secs(20);

/// The monitor of a VM.
#[derive(Debug)]
pub struct Monitor {
    socket: BufReader<UnixStream>,
    /// Commands are accepted: the greeting was answered.
    negotiated: bool,
}

impl Monitor {
    /// The monitor at the other end of `socket`, which may not have begun yet.
    pub fn new(socket: UnixStream) -> Result<Self> {
        socket.set_read_timeout(Some(LIMIT))?;
        socket.set_write_timeout(Some(LIMIT))?;
        Ok(Monitor { socket: BufReader::new(socket), negotiated: false })
    }

    /// Stops the VM's processors and its clock; its devices go on.
    pub fn stop(&mut self) -> Result<()> {
        self.execute("stop")
    }

    /// Continues the VM.
    pub fn cont(&mut self) -> Result<()> {
        self.execute("cont")
    }

    fn execute(&mut self, command: &str) -> Result<()> {
        if !self.negotiated {
            let greeting = self.receive()?;
            if greeting.get("QMP").is_none() {
                bail!("QEMU's monitor began with {greeting}");
            }
            self.command("qmp_capabilities")?;
            self.negotiated = true;
        }
        self.command(command)
    }

    /// Sends a command and waits for its answer.
    fn command(&mut self, command: &str) -> Result<()> {
        let line = format!("{}\n", json!({ "execute": command }));
        let sent = self.socket.get_mut().write_all(line.as_bytes());
        sent.with_context(|| format!("`{command}` cannot be sent to QEMU"))?;
        loop {
            let answer = self.receive().with_context(|| format!("`{command}`"))?;
            if let Some(error) = answer.get("error") {
                return Err(anyhow!("QEMU refused `{command}`: {}", error["desc"].as_str().unwrap_or("no reason")));
            }
            // Others are events.
            if answer.get("return").is_some() {
                return Ok(());
            }
        }
    }

    fn receive(&mut self) -> Result<Value> {
        let mut line = String::new();
        match self.socket.read_line(&mut line) {
            Ok(0) => bail!("QEMU has closed its monitor"),
            Ok(_) => serde_json::from_str(&line).with_context(|| format!("QEMU's monitor sent {line:?}")),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                bail!("QEMU's monitor has not answered within {} s", LIMIT.as_secs())
            }
            Err(error) => Err(error).context("QEMU's monitor"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// A monitor at the other end of which `answers` are sent, one for each line that it receives but the first, which
    /// precedes them. Returns what was received.
    fn exchange(answers: &'static [&'static str], commands: impl FnOnce(&mut Monitor)) -> Vec<String> {
        let (ours, qemus) = UnixStream::pair().unwrap();
        let mut monitor = Monitor::new(ours).unwrap();
        let qemu = thread::spawn(move || {
            let mut lines = BufReader::new(qemus.try_clone().unwrap()).lines();
            let mut received = Vec::new();
            for (index, answer) in answers.iter().enumerate() {
                if index != 0 {
                    received.push(lines.next().unwrap().unwrap());
                }
                (&qemus).write_all(answer.as_bytes()).unwrap();
            }
            received
        });
        commands(&mut monitor);
        qemu.join().unwrap()
    }

    #[test]
    fn commands_follow_the_greeting_and_skip_events() {
        let answers: &[&str] = &[
            "{\"QMP\": {\"version\": {}, \"capabilities\": []}}\r\n",
            "{\"return\": {}}\r\n",
            "{\"event\": \"STOP\", \"timestamp\": {}}\r\n{\"return\": {}}\r\n",
            "{\"error\": {\"class\": \"GenericError\", \"desc\": \"no\"}}\r\n",
        ];
        let received = exchange(answers, |monitor| {
            monitor.stop().unwrap();
            assert_eq!(monitor.cont().unwrap_err().to_string(), "QEMU refused `cont`: no");
        });
        let expected = ["qmp_capabilities", "stop", "cont"].map(|name| format!("{{\"execute\":\"{name}\"}}"));
        assert_eq!(received, expected);
    }

    #[test]
    fn a_monitor_that_ends_is_an_error() {
        exchange(&["hello\n"], |monitor| assert!(monitor.stop().unwrap_err().to_string().contains("hello")));
        exchange(&["{}\n"], |monitor| assert!(monitor.stop().unwrap_err().to_string().contains("began with {}")));
        exchange(&[], |monitor| {
            let error = monitor.stop().unwrap_err().to_string();
            assert_eq!(error, "QEMU has closed its monitor");
        });
    }
}
