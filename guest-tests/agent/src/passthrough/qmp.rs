// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A client of QEMU's monitor protocol (QMP) on a Unix socket.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// An open monitor.
pub(super) struct Monitor {
    lines: BufReader<UnixStream>,
    /// Events that arrived before the response to a command.
    events: Vec<Value>,
}

impl Monitor {
    /// Connects to the monitor at `path` and leaves the negotiation mode. `limit` applies to each later read.
    pub fn connect(path: &Path, limit: Duration) -> Result<Self> {
        let socket = UnixStream::connect(path).with_context(|| format!("no monitor at {}", path.display()))?;
        socket.set_read_timeout(Some(limit))?;
        let mut monitor = Self { lines: BufReader::new(socket), events: Vec::new() };
        monitor.next().context("the monitor sends no greeting")?;
        monitor.execute("qmp_capabilities", json!({}))?;
        Ok(monitor)
    }

    /// Executes `command` and returns its result.
    pub fn execute(&mut self, command: &str, arguments: Value) -> Result<Value> {
        let line = json!({ "execute": command, "arguments": arguments });
        self.lines.get_mut().write_all(format!("{line}\n").as_bytes())?;
        loop {
            let response = self.next().with_context(|| format!("no response to {command}"))?;
            if let Some(error) = response.get("error") {
                bail!("{command}: {}", error["desc"].as_str().unwrap_or("an error without a description"));
            }
            match response.get("return") {
                Some(result) => return Ok(result.clone()),
                None => self.events.push(response),
            }
        }
    }

    /// Blocks until `event` occurs for the device `device`, at most for `limit`.
    pub fn wait_for(&mut self, event: &str, device: &str, limit: Duration) -> Result<()> {
        let start = Instant::now();
        let matches = |value: &Value| value["event"] == event && value["data"]["device"] == device;
        loop {
            if let Some(at) = self.events.iter().position(matches) {
                self.events.remove(at);
                return Ok(());
            }
            if start.elapsed() >= limit {
                bail!("no {event} for {device} within {} s", limit.as_secs());
            }
            let next = self.next().with_context(|| format!("no {event} for {device}"))?;
            self.events.push(next);
        }
    }

    fn next(&mut self) -> Result<Value> {
        let mut line = String::new();
        if self.lines.read_line(&mut line)? == 0 {
            bail!("QEMU has closed its monitor");
        }
        serde_json::from_str(&line).with_context(|| format!("the monitor sent {}", line.trim_end()))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;
    use std::thread;

    use super::*;

    /// Runs `client` against a monitor that sends `lines` after each request, one group per request.
    fn with_monitor<T>(lines: &'static [&'static str], client: impl FnOnce(&mut Monitor) -> T) -> T {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("monitor");
        let listener = UnixListener::bind(&path).unwrap();
        let server = thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            writeln!(socket, "{{\"QMP\": {{}}}}").unwrap();
            let mut requests = BufReader::new(socket.try_clone().unwrap()).lines();
            for group in [&["{\"return\": {}}"]].into_iter().map(|group| &group[..]).chain([lines]) {
                if requests.next().is_none() {
                    return;
                }
                group.iter().for_each(|line| writeln!(socket, "{line}").unwrap());
            }
        });
        let result = client(&mut Monitor::connect(&path, Duration::from_secs(5)).unwrap());
        server.join().unwrap();
        result
    }

    #[test]
    fn an_event_before_the_response_is_kept() {
        let lines = &["{\"event\": \"DEVICE_DELETED\", \"data\": {\"device\": \"vf\"}}", "{\"return\": {\"a\": 1}}"];
        with_monitor(lines, |monitor| {
            assert_eq!(monitor.execute("device_del", json!({"id": "vf"})).unwrap(), json!({"a": 1}));
            monitor.wait_for("DEVICE_DELETED", "vf", Duration::from_secs(5)).unwrap();
        });
    }

    #[test]
    fn an_error_has_the_monitors_words() {
        let lines = &["{\"error\": {\"class\": \"DeviceNotFound\", \"desc\": \"Device 'vf' not found\"}}"];
        let error = with_monitor(lines, |monitor| monitor.execute("device_del", json!({"id": "vf"})).unwrap_err());
        assert_eq!(error.to_string(), "device_del: Device 'vf' not found");
    }
}
