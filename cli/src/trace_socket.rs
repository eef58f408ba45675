// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The trace socket of a served card. A client sends a filter (one JSON line) and receives events (one JSON line each)
//! until it disconnects.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use arctic_device_model::trace::{Filter, Recorder, Subscription};
use serde::{Deserialize, Serialize};

use crate::unix_listener::{Listening, connected};

/// Name of the socket in the card's directory.
pub const NAME: &str = "trace.sock";
/// Version of the protocol and of the capture format.
pub const VERSION: u32 = 1;
/// Maximum number of concurrent clients.
const MOST_CLIENTS: usize = 8;
/// Maximum length of a filter in bytes.
const LONGEST_FILTER: u64 = 4096;
/// Time limit for a client to send its filter, and to receive the data sent to it.
const PATIENCE: Duration = Duration::from_secs(5);
/// Interval without events after which the connection is checked.
const LOOK: Duration = Duration::from_millis(100);

/// First line of a trace connection and of a capture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heading {
    /// [`VERSION`].
    pub arctic_capture: u32,
    /// Name of the card.
    pub card: String,
    /// The generation of an integrated GPU, whose engines have other commands than those of the Flex series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<String>,
}

impl Heading {
    /// The heading of a capture of the card with this name, of this generation if it is an integrated GPU.
    pub fn new(card: &str, generation: Option<&str>) -> Self {
        Heading { arctic_capture: VERSION, card: card.into(), generation: generation.map(Into::into) }
    }
}

/// Listens at `path` for trace clients of a card with this heading.
pub fn start(path: &Path, heading: Heading, recorder: Arc<Recorder>) -> io::Result<Listening> {
    Listening::start(path, "trace", move |listener, stop| serve(listener, stop, &heading, &recorder))
}

fn serve(listener: &UnixListener, stop: &Arc<AtomicBool>, heading: &Heading, recorder: &Arc<Recorder>) {
    let mut threads: Vec<JoinHandle<()>> = Vec::new();
    loop {
        let client = listener.accept();
        if stop.load(Ordering::Acquire) {
            break;
        }
        threads.retain(|thread| !thread.is_finished());
        let Ok((client, _)) = client else {
            // Out of file descriptors: do not spin.
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        if threads.len() >= MOST_CLIENTS {
            let _ = refuse(&client, "too many trace clients are connected to the card");
            continue;
        }
        let (stop, heading, recorder) = (stop.clone(), heading.clone(), recorder.clone());
        let followed = move || {
            if let Err(error) = follow(client, &stop, &heading, &recorder) {
                log::debug!("a trace client was disconnected: {error}");
            }
        };
        threads.extend(thread::Builder::new().name("trace client".into()).spawn(followed));
    }
    for thread in threads {
        let _ = thread.join();
    }
}

fn refuse(mut client: &UnixStream, why: &str) -> io::Result<()> {
    client.set_write_timeout(Some(PATIENCE))?;
    writeln!(client, "{}", serde_json::json!({ "error": why }))
}

fn follow(client: UnixStream, stop: &AtomicBool, heading: &Heading, recorder: &Arc<Recorder>) -> io::Result<()> {
    client.set_read_timeout(Some(PATIENCE))?;
    client.set_write_timeout(Some(PATIENCE))?;
    let mut line = String::new();
    BufReader::new((&client).take(LONGEST_FILTER)).read_line(&mut line)?;
    let filter: Filter = match serde_json::from_str(&line) {
        Ok(filter) => filter,
        Err(error) => return refuse(&client, &format!("no filter: {error}")),
    };
    let subscription = recorder.subscribe(filter);
    writeln!(&client, "{}", serde_json::to_string(heading)?)?;
    client.set_nonblocking(true)?;
    while !stop.load(Ordering::Acquire) && connected(&client) {
        let text = text(&subscription)?;
        if !text.is_empty() {
            client.set_nonblocking(false)?;
            (&client).write_all(&text)?;
            client.set_nonblocking(true)?;
        }
    }
    Ok(())
}

/// Returns the events since the last call, one per line.
fn text(subscription: &Subscription) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    for event in subscription.take(LOOK) {
        serde_json::to_writer(&mut text, &event)?;
        text.push(b'\n');
    }
    Ok(text)
}

/// A capture of all events of a card. Dropping it completes the file.
pub struct Capture {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<()>>>,
    path: PathBuf,
}

impl Capture {
    /// Starts writing all events to `path`.
    pub fn start(path: &Path, heading: &Heading, recorder: &Arc<Recorder>) -> io::Result<Self> {
        let mut file = io::BufWriter::new(std::fs::File::create(path)?);
        writeln!(file, "{}", serde_json::to_string(heading)?)?;
        let subscription = recorder.subscribe(Filter::default());
        let stop = Arc::new(AtomicBool::new(false));
        let ending = stop.clone();
        let write = move || {
            loop {
                let last = ending.load(Ordering::Acquire);
                file.write_all(&text(&subscription)?)?;
                if last {
                    return file.flush();
                }
            }
        };
        let thread = thread::Builder::new().name("capture".into()).spawn(write)?;
        Ok(Capture { stop, thread: Some(thread), path: path.to_owned() })
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(Ok(Err(error))) = self.thread.take().map(JoinHandle::join) {
            log::warn!("the capture {} is incomplete: {error}", self.path.display());
        }
    }
}

/// A client's trace connection to a card, positioned after the heading.
pub struct Followed {
    lines: BufReader<UnixStream>,
    partial: Vec<u8>,
    /// The heading that the card sent.
    pub heading: Heading,
}

/// Maximum length of a line in bytes: an event has a bounded number of dwords.
const LONGEST_LINE: usize = 64 << 10;

impl Followed {
    /// Connects to the card that listens at `path` and sends the filter.
    pub fn connect(path: &Path, filter: &Filter) -> io::Result<Self> {
        let socket = UnixStream::connect(path)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        writeln!(&socket, "{}", serde_json::to_string(filter)?)?;
        let mut lines = BufReader::new(socket);
        let mut first = String::new();
        lines.read_line(&mut first)?;
        let heading = serde_json::from_str(&first).map_err(|_| {
            let told: Option<serde_json::Value> = serde_json::from_str(&first).ok();
            let why = told.and_then(|told| Some(told.get("error")?.as_str()?.to_owned()));
            io::Error::new(ErrorKind::InvalidData, why.unwrap_or_else(|| "not the trace socket of a card".into()))
        })?;
        lines.get_ref().set_read_timeout(Some(LOOK))?;
        Ok(Followed { lines, partial: Vec::new(), heading })
    }

    /// Returns the next line, `Ok(None)` if there was none for 100 ms, or an end-of-file error if the card is no longer
    /// served.
    pub fn line(&mut self) -> io::Result<Option<String>> {
        match self.lines.read_until(b'\n', &mut self.partial) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) if self.partial.ends_with(b"\n") => {
                let line = std::mem::take(&mut self.partial);
                Ok(Some(String::from_utf8_lossy(&line).trim_end().to_owned()))
            }
            Ok(_) if self.partial.len() > LONGEST_LINE => Err(ErrorKind::InvalidData.into()),
            Ok(_) => Err(ErrorKind::UnexpectedEof.into()),
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use arctic_device_model::host::{Function, ManualClock};
    use arctic_device_model::trace::{Event, EventKind};
    use vmm_sys_util::tempdir::TempDir;

    use super::*;

    #[test]
    fn each_client_gets_the_events_of_its_filter() {
        let dir = TempDir::new().unwrap();
        let path = dir.as_path().join(NAME);
        let recorder = Recorder::new(Arc::new(ManualClock::default()));
        let socket = start(&path, Heading::new("test", Some("ivy-bridge")), recorder.clone()).unwrap();
        let filter = Filter { functions: vec![1], ..Filter::default() };
        let mut followed = Followed::connect(&path, &filter).unwrap();
        assert_eq!(followed.heading, Heading::new("test", Some("ivy-bridge")));
        recorder.record(Function(2), || EventKind::Wait);
        recorder.record(Function(1), || EventKind::Msi { vector: 0 });
        let line = followed.line().unwrap().unwrap();
        let event: Event = serde_json::from_str(&line).unwrap();
        assert_eq!((event.function, event.what), (1, EventKind::Msi { vector: 0 }), "{line}");
        assert_eq!(followed.line().unwrap(), None);
        drop(followed);
        while recorder.on() {
            thread::sleep(Duration::from_millis(5));
        }
        let mut nonsense = UnixStream::connect(&path).unwrap();
        nonsense.write_all(b"{\"engine\": 1}\n").unwrap();
        let mut answer = String::new();
        nonsense.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("{\"error\":\"no filter: unknown field"), "{answer}");
        drop(socket);
        assert!(!path.exists());
    }

    #[test]
    fn a_capture_has_everything() {
        let dir = TempDir::new().unwrap();
        let path = dir.as_path().join("capture");
        let recorder = Recorder::new(Arc::new(ManualClock::default()));
        let capture = Capture::start(&path, &Heading::new("test", None), &recorder).unwrap();
        for vector in 0..1000 {
            recorder.record(Function::PF, || EventKind::Msi { vector });
        }
        drop(capture);
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 1001);
    }
}
