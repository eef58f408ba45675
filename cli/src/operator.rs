// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The operator socket of a served card: `arctic status`, `arctic top`, `arctic inspect`, `arctic trace`, `arctic inject` and
//! `arctic vf` are its clients.
//!
//! A client sends requests, one JSON object per line with the name of the request in `request`. Each is answered by one
//! line, `{"ok": ANSWER}` or `{"error": SENTENCE}`, in order. A line that is not a request is answered with an error, and
//! the next line is read. After the answer to [`Request::Trace`] the server sends events, one JSON object per line, until
//! the client disconnects; it reads no further requests from this connection. Spaces may precede an event. After the answer to
//! [`Request::Capture`] the server sends lines in the same way, until the capture ends; it closes the connection then.
//! Pieces of saved state, `{"piece": BYTES}` with so many bytes behind the line, precede the answer to [`Request::Save`], and follow
//! [`Request::Restore`], of which an empty one is the last; the server closes the connection after these answers.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

mod client;
mod saved;
mod server;
mod subscribers;
mod transfer;

use std::io::{self, ErrorKind};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use arctic_device_model::hardware_error::ErrorRegisters;
use arctic_device_model::trace::Filter;
use arctic_gpu::card::status::Status;
use serde::{Deserialize, Serialize};

use crate::connections::{Stream, is_pause, send};

pub use client::{Connection, Failure, TransferError, WaitingCapture};
pub use server::{CardBackend, Server};

/// Name of the socket in the directory `operator`.
pub const NAME: &str = "operator.sock";
/// Maximum length of a request in bytes, with the end of its line.
const LONGEST_REQUEST: usize = 4096;
/// Maximum length of an answer or event in bytes, with the end of its line.
const LONGEST_ANSWER: usize = 1 << 20;
/// Time limit for a client to send a request, and to receive an answer or 64 KiB of events.
const TIME_LIMIT: Duration = Duration::from_secs(if cfg!(test) { 2 } else { 5 });

/// A request of an operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Reads the state of the card. The answer is a [`Status`].
    Status {},
    /// Reads a part of the card's state. The answer is a [`Node`](arctic_device_model::inspect::Node).
    Inspect {
        /// Names that lead to the part, separated by `/`; empty for the whole tree.
        #[serde(default)]
        path: String,
        /// Levels of parts below it.
        #[serde(default)]
        depth: u8,
    },
    /// Subscribes to the card's events. The answer is a [`Heading`](crate::capture::Heading). Refused if no event of the
    /// card can pass the filter.
    Trace {
        /// The events to send.
        #[serde(default)]
        filter: Filter,
    },
    /// Captures a walker. The answer is [`Accepted`]; [`CaptureStep`]s follow until the capture ends. Refused if another client
    /// captures one, or no walker can pass the filter.
    Capture {
        /// The walkers that count.
        #[serde(default)]
        filter: Filter,
        /// Number of the walker among those that begin from now on, from 1.
        walker: u64,
        /// Most MiB of memory that are captured, 1 to [`MOST_CAPTURE_MIB`].
        mib: u32,
    },
    /// Raises a hardware error. The answer is [`Raised`].
    Inject {
        /// Name of the error.
        error: String,
    },
    /// Lists the hardware errors that the card can report. The answer is [`Errors`].
    Errors {},
    /// Reads the error registers. The answer is [`Registers`].
    ErrorRegisters {},
    /// Stops the work of a function. The answer is [`Done`]. Refused if its work does not stop in time, and for a function that
    /// cannot be saved.
    Pause {
        /// Number of the function; 0 is the PF.
        function: u8,
    },
    /// Continues the work of a function that is paused. The answer is [`Done`].
    Resume {
        /// Number of the function.
        function: u8,
    },
    /// Saves a function. The answer is [`Done`]. A function that is not paused is paused meanwhile.
    Save {
        /// Number of the function.
        function: u8,
    },
    /// Restores a function. The answer is [`Done`]. A function that is not paused is paused meanwhile; it is empty afterwards, as
    /// after a reset, if it cannot be restored.
    Restore {
        /// Number of the function.
        function: u8,
    },
}

/// Returns the reason for which no event of the card in `status` can pass `filter`, if there is one: a function or the
/// engines that the card lacks.
pub fn unmatched(filter: &Filter, status: &Status) -> Option<String> {
    let has = |number: u8| status.functions.iter().any(|function| function.number() == number);
    if let Some(number) = filter.functions.iter().copied().find(|number| !has(*number)) {
        return Some(missing(number, status.total_vfs));
    }
    let engines: Vec<&str> = status.engines.iter().map(|engine| engine.engine.as_str()).collect();
    let any = filter.engines.is_empty() || filter.engines.iter().any(|name| engines.contains(&name.as_str()));
    let note = || filter.engines.iter().find_map(|name| driver_number(name, &engines)).unwrap_or_default();
    (!any).then(|| {
        format!("the card has no {}: its engines are {}{}", filter.engines.join(", "), engines.join(", "), note())
    })
}

/// What a missing engine may mean: drivers number the engines of a class that exist without gaps.
fn driver_number(name: &str, engines: &[&str]) -> Option<String> {
    let class = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let number: usize = name.strip_prefix(class)?.parse().ok()?;
    let of_class = |engine: &&&str| engine.trim_end_matches(|c: char| c.is_ascii_digit()) == class;
    let engine = engines.iter().filter(of_class).nth(number)?;
    Some(format!("; the driver's {name} is {engine} of the card"))
}

/// The reason for which nothing can be done with VF `number` of a card with `total_vfs` VFs, which lacks it.
fn missing(number: u8, total_vfs: u8) -> String {
    let vfs = match total_vfs {
        0 => "no VFs".into(),
        1 => "vf1 only".into(),
        last => format!("vf1 to vf{last}"),
    };
    format!("the card has no vf{number}: it has pf, and {vfs}")
}

/// Most MiB of memory of a capture.
pub const MOST_CAPTURE_MIB: u32 = 1024;

/// A walker is to be captured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accepted {
    /// Its number.
    pub walker: u64,
}

/// How far a capture is: one line each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "capture", rename_all = "kebab-case")]
pub enum CaptureStep {
    /// So many walkers that count have begun.
    Waiting {
        /// Number of walkers.
        begun: u64,
        /// Virtual address of the kernel of the last one; 0 if there is none.
        kernel: u64,
    },
    /// The walker is executed.
    Capturing {
        /// Virtual address of its kernel.
        kernel: u64,
    },
    /// The walker has ended. The bytes of the file follow this line, and nothing follows them.
    Done {
        /// Their number.
        bytes: u64,
    },
    /// There is no capture. Nothing follows.
    Failed {
        /// Why, as a sentence without its end.
        reason: String,
    },
}

/// A hardware error was raised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Raised {
    /// Name of the error.
    pub raised: String,
}

/// The hardware errors that a card can report; none if it reports none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errors {
    /// The errors.
    pub errors: Vec<NamedError>,
}

/// A hardware error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedError {
    /// Its name.
    pub name: String,
    /// The failure, in a few words.
    pub description: String,
}

/// A request about a function was carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// Name of the function: "pf", "vf1".
    pub function: String,
}

/// The card's error registers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registers {
    /// The registers, by severity.
    pub registers: Vec<ErrorRegisters>,
}

/// The answer to a request.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Answer<T> {
    Ok(T),
    Error(String),
}

/// The lines that arrive on a socket.
struct Lines<S> {
    socket: S,
    /// Bytes after the last line that was returned.
    received: Vec<u8>,
    /// Maximum length of a line in bytes.
    longest: usize,
    /// Spaces before a line do not count: without events, the server sends them again and again.
    skips_spaces: bool,
}

impl<S: std::borrow::Borrow<UnixStream>> Lines<S> {
    fn new(socket: S, longest: usize) -> Self {
        Lines { socket, received: Vec::new(), longest, skips_spaces: false }
    }

    /// Returns the next line without its end, or `None` at the end of the connection. Fails if the line is too long, or,
    /// with `TimedOut`, if it is not complete after `limit`; what has arrived of it is kept.
    fn next(&mut self, limit: Duration) -> io::Result<Option<Vec<u8>>> {
        let started = Instant::now();
        loop {
            if let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                let rest = self.received.split_off(end.saturating_add(1));
                let mut line = std::mem::replace(&mut self.received, rest);
                line.truncate(end);
                return Ok(Some(line));
            }
            if self.received.len() >= self.longest {
                return Err(io::Error::new(ErrorKind::InvalidData, format!("the line exceeds {} bytes", self.longest)));
            }
            let left = limit.saturating_sub(started.elapsed());
            if left.is_zero() {
                return Err(io::Error::new(ErrorKind::TimedOut, format!("no line in {} s", limit.as_secs())));
            }
            let mut bytes = [0; 4096];
            match self.socket.borrow().read_within(left, &mut bytes) {
                Ok(0) => return Ok(None),
                Ok(count) => {
                    let skips = self.skips_spaces && self.received.is_empty();
                    let line = bytes.iter().take(count).skip_while(|byte| skips && **byte == b' ');
                    self.received.extend(line);
                }
                // At the time limit, the loop ends above.
                Err(error) if is_pause(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads `count` bytes behind the last line. Fails with `TimedOut` if nothing arrives within `limit`.
    fn bytes(&mut self, count: usize, limit: Duration) -> io::Result<Vec<u8>> {
        let mut all = std::mem::take(&mut self.received);
        while all.len() < count {
            let mut bytes = [0; 64 << 10];
            match self.socket.borrow().read_within(limit, &mut bytes) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(read) => all.extend(bytes.iter().take(read)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_pause(&error) => return Err(ErrorKind::TimedOut.into()),
                Err(error) => return Err(error),
            }
        }
        self.received = all.split_off(count);
        Ok(all)
    }
}

fn send_line(socket: &UnixStream, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    send(socket, TIME_LIMIT, &line)
}

#[cfg(test)]
mod tests;
