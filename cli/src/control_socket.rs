// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The control socket of a served card, by which the operator changes the card. A client sends requests, one JSON object
//! per line with the name of the request in `request`; each is answered by one line, `{"ok": ANSWER}` or
//! `{"error": SENTENCE}`, in order. A line that is not a request is answered with an error, and the next line is read.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::unix_listener::Listening;

/// Name of the socket in the directory of the operator's sockets.
pub const NAME: &str = "control.sock";
/// Maximum number of concurrent clients.
const MOST_CLIENTS: usize = 8;
/// Maximum length of a request in bytes.
const LONGEST_REQUEST: usize = 4096;
/// Maximum length of an answer in bytes.
const LONGEST_ANSWER: usize = 1 << 20;
/// Time limit for a client to send a request, and to receive the answer.
const PATIENCE: Duration = Duration::from_secs(if cfg!(test) { 2 } else { 5 });

/// The answer to a request.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Answer {
    Ok(Value),
    Error(String),
}

/// Listens at `path`; `carry_out` is called for each request, on the thread of its client.
pub fn start<R: DeserializeOwned + 'static>(
    path: &Path,
    carry_out: impl Fn(R) -> Result<Value, String> + Send + Sync + 'static,
) -> io::Result<Listening> {
    let carry_out = Arc::new(carry_out);
    Listening::start(path, "control", move |listener, stop| serve(listener, stop, &carry_out))
}

fn serve<R: DeserializeOwned + 'static>(
    listener: &UnixListener,
    stop: &AtomicBool,
    carry_out: &Arc<impl Fn(R) -> Result<Value, String> + Send + Sync + 'static>,
) {
    let mut clients: Vec<(UnixStream, JoinHandle<()>)> = Vec::new();
    loop {
        let client = listener.accept();
        if stop.load(Ordering::Acquire) {
            break;
        }
        clients.retain(|(_, thread)| !thread.is_finished());
        let accepted = client.and_then(|(client, _)| Ok((client.try_clone()?, client)));
        let Ok((kept, client)) = accepted else {
            // Out of file descriptors: do not spin.
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        if clients.len() >= MOST_CLIENTS {
            let _ = answer(&client, &Answer::Error("too many clients are connected to the control socket".into()));
            continue;
        }
        let carry_out = carry_out.clone();
        let served = move || {
            if let Err(error) = converse(&client, &*carry_out) {
                log::debug!("a control client was disconnected: {error}");
            }
            // The descriptor in `clients` keeps the connection open otherwise.
            let _ = client.shutdown(Shutdown::Both);
        };
        let thread = thread::Builder::new().name("control client".into()).spawn(served);
        clients.extend(thread.map(|thread| (kept, thread)));
    }
    for (client, thread) in clients {
        let _ = client.shutdown(Shutdown::Both);
        let _ = thread.join();
    }
}

/// Answers the requests of a client until it disconnects.
fn converse<R: DeserializeOwned>(
    client: &UnixStream,
    carry_out: &dyn Fn(R) -> Result<Value, String>,
) -> io::Result<()> {
    let mut lines = Lines { socket: client, received: Vec::new(), longest: LONGEST_REQUEST };
    loop {
        let line = match lines.next() {
            Ok(Some(line)) => line,
            Ok(None) => return Ok(()),
            Err(error) => {
                let _ = answer(client, &Answer::Error(format!("no request: {error}")));
                return Err(error);
            }
        };
        let result = match serde_json::from_slice(&line) {
            Ok(request) => carry_out(request),
            Err(error) => Err(format!("not a request: {error}")),
        };
        answer(client, &result.map_or_else(Answer::Error, Answer::Ok))?;
    }
}

fn answer(mut client: &UnixStream, answer: &Answer) -> io::Result<()> {
    client.set_write_timeout(Some(PATIENCE))?;
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    client.write_all(&line)
}

/// The lines that arrive on a socket.
struct Lines<S> {
    socket: S,
    /// Bytes after the last line that was returned.
    received: Vec<u8>,
    /// Maximum length of a line in bytes.
    longest: usize,
}

impl<S: std::borrow::Borrow<UnixStream>> Lines<S> {
    /// Returns the next line without its end, or `None` at the end of the connection. Fails if the line is too long, or
    /// is not complete after [`PATIENCE`].
    fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
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
            let left = PATIENCE.saturating_sub(started.elapsed());
            if left.is_zero() {
                return Err(io::Error::new(ErrorKind::TimedOut, format!("no line in {} s", PATIENCE.as_secs())));
            }
            let mut socket = self.socket.borrow();
            socket.set_read_timeout(Some(left))?;
            let mut bytes = [0; 1024];
            match socket.read(&mut bytes) {
                Ok(0) => return Ok(None),
                Ok(count) => self.received.extend(bytes.iter().take(count)),
                // At the time limit, the loop ends above.
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) => {
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// A request failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The card could not be asked, or sent no valid answer.
    #[error(transparent)]
    Socket(#[from] io::Error),
    /// The card refused the request.
    #[error("{0}")]
    Refused(String),
}

/// A connection to the control socket of a card.
pub struct Connection(Lines<UnixStream>);

impl Connection {
    /// Connects to the card that listens at `path`.
    pub fn open(path: &Path) -> io::Result<Self> {
        let socket = UnixStream::connect(path)?;
        socket.set_write_timeout(Some(PATIENCE))?;
        Ok(Connection(Lines { socket, received: Vec::new(), longest: LONGEST_ANSWER }))
    }

    /// Sends a request and returns the answer.
    pub fn ask<A: DeserializeOwned>(&mut self, request: &impl Serialize) -> Result<A, Failure> {
        let mut line = serde_json::to_vec(request).map_err(io::Error::from)?;
        line.push(b'\n');
        // A card that refuses the connection may have closed it already; its answer has the reason.
        let sent = self.0.socket.write_all(&line);
        let line = match (self.0.next(), sent) {
            (Ok(Some(line)), _) => line,
            (Ok(None), Ok(())) => return Err(io::Error::from(ErrorKind::UnexpectedEof).into()),
            (Err(error), _) | (_, Err(error)) => return Err(error.into()),
        };
        match serde_json::from_slice(&line).map_err(io::Error::from)? {
            Answer::Ok(answer) => Ok(serde_json::from_value(answer).map_err(io::Error::from)?),
            Answer::Error(reason) => Err(Failure::Refused(reason)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::sync::Mutex;

    use vmm_sys_util::tempdir::TempDir;

    use super::*;

    /// A request of these tests.
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(tag = "request", rename_all = "kebab-case", deny_unknown_fields)]
    enum Test {
        Double { number: u64 },
        Nothing {},
    }

    fn socket(dir: &TempDir) -> (std::path::PathBuf, Listening) {
        let path = dir.as_path().join(NAME);
        let socket = start(&path, |request: Test| match request {
            Test::Double { number } if number > 100 => Err(format!("{number} is too large")),
            Test::Double { number } => Ok((number * 2).into()),
            Test::Nothing {} => Ok(Value::Null),
        });
        (path, socket.unwrap())
    }

    /// Sends `bytes` and returns all that the card sends until it or the client closes the connection.
    fn exchange(path: &Path, bytes: &[u8]) -> String {
        let mut client = UnixStream::connect(path).unwrap();
        let _ = client.write_all(bytes);
        let _ = client.shutdown(Shutdown::Write);
        let mut text = String::new();
        client.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn each_request_has_its_answer() {
        let dir = TempDir::new().unwrap();
        let (path, socket) = socket(&dir);
        let mut connection = Connection::open(&path).unwrap();
        for number in 0..50 {
            assert_eq!(connection.ask::<u64>(&Test::Double { number }).unwrap(), number * 2);
        }
        let refused = connection.ask::<u64>(&Test::Double { number: 101 }).unwrap_err();
        assert_eq!(refused.to_string(), "101 is too large");
        connection.ask::<()>(&Test::Nothing {}).unwrap();
        let lines =
            "{\"request\":\"double\",\"number\":1}\n{\"number\":2,\"request\":\"double\"}\n{\"request\":\"nothing\"}\n";
        assert_eq!(exchange(&path, lines.as_bytes()), "{\"ok\":2}\n{\"ok\":4}\n{\"ok\":null}\n");
        drop(socket);
        assert!(!path.exists());
        assert!(matches!(connection.ask::<()>(&Test::Nothing {}), Err(Failure::Socket(_))));
    }

    #[test]
    fn lines_that_are_no_requests_are_refused() {
        let dir = TempDir::new().unwrap();
        let (path, _socket) = socket(&dir);
        let deep = "[".repeat(4000);
        for line in [
            "",
            "double",
            "{\"request\":\"double\"}",
            "{\"request\":\"halve\",\"number\":2}",
            "{\"request\":\"double\",\"number\":2,\"more\":1}",
            "{\"request\":\"nothing\",\"more\":1}",
            "{\"request\":\"double\",\"number\":-1}",
            "\u{0}\u{7f}\\",
            deep.as_str(),
        ] {
            let text = exchange(&path, format!("{line}\n{{\"request\":\"double\",\"number\":3}}\n").as_bytes());
            let (first, second) = text.trim_end().split_once('\n').unwrap();
            assert!(first.starts_with("{\"error\":\"not a request: "), "{line}: {first}");
            assert_eq!(second, "{\"ok\":6}", "{line}");
        }
        assert!(exchange(&path, b"\xff\xfe\n").starts_with("{\"error\":\"not a request: "));
        // Without its end, a line is not a request.
        assert_eq!(exchange(&path, b"{\"request\":\"nothing\"}"), "");
        // Too long: the rest of the line cannot be distinguished from a request. The card may close before all has arrived.
        let mut client = UnixStream::connect(&path).unwrap();
        client.write_all(&[b' '; LONGEST_REQUEST]).unwrap();
        let mut text = String::new();
        client.read_to_string(&mut text).unwrap();
        assert_eq!(text, "{\"error\":\"no request: the line exceeds 4096 bytes\"}\n");
    }

    /// Clients that send nothing, a byte at a time, or do not read occupy only their own connections, for a bounded time,
    /// and do not delay the end of the server.
    #[test]
    fn idle_clients_do_not_block_others() {
        let dir = TempDir::new().unwrap();
        let (path, socket) = socket(&dir);
        let idle: Vec<_> = (1..MOST_CLIENTS).map(|_| UnixStream::connect(&path).unwrap()).collect();
        assert_eq!(exchange(&path, b"{\"request\":\"double\",\"number\":3}\n"), "{\"ok\":6}\n");
        // The server may still count the client before: the last place is taken when a request is answered.
        let last = loop {
            let mut client = UnixStream::connect(&path).unwrap();
            let _ = client.write_all(b"{\"request\":\"double\",\"number\":3}\n");
            let mut answer = String::new();
            let _ = BufReader::new(&client).read_line(&mut answer);
            if answer == "{\"ok\":6}\n" {
                break client;
            }
        };
        let mut refused = Connection::open(&path).unwrap();
        let error = refused.ask::<u64>(&Test::Double { number: 1 }).unwrap_err().to_string();
        assert_eq!(error, "too many clients are connected to the control socket");
        // A client that sends a byte now and then is disconnected at the time limit of the line.
        let started = Instant::now();
        let mut slow = &last;
        while slow.write_all(b" ").is_ok() {
            assert!(started.elapsed() < PATIENCE * 4);
            thread::sleep(Duration::from_millis(100));
        }
        assert!(started.elapsed() > PATIENCE / 2);
        let begun = Instant::now();
        drop(socket);
        assert!(begun.elapsed() < PATIENCE / 2, "the server waits for idle clients");
        drop(idle);
    }

    /// A client that sends requests without reading answers is disconnected, and its requests are answered in order
    /// until then.
    #[test]
    fn a_client_that_does_not_read() {
        let dir = TempDir::new().unwrap();
        let path = dir.as_path().join(NAME);
        let seen = Arc::new(Mutex::new(0));
        let counted = seen.clone();
        let long = "x".repeat(60 << 10);
        let socket = start(&path, move |_: Test| {
            *counted.lock().unwrap() += 1;
            Ok(long.clone().into())
        });
        let socket = socket.unwrap();
        let mut client = UnixStream::connect(&path).unwrap();
        client.set_write_timeout(Some(PATIENCE * 3)).unwrap();
        while client.write_all(b"{\"request\":\"nothing\"}\n").is_ok() {}
        assert!(*seen.lock().unwrap() < 100);
        let mut connection = Connection::open(&path).unwrap();
        assert_eq!(connection.ask::<String>(&Test::Nothing {}).unwrap().len(), 60 << 10);
        drop(socket);
    }
}
