// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The card's side of the operator socket: one thread accepts connections, and each connection has a thread.

use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use arctic_device_model::gpu::{CaptureProgress, WalkerCapture, WalkerRequest};
use arctic_device_model::inspect;
use arctic_device_model::trace::{Filter, Subscription};
use arctic_gpu::pci::PciDevice;
use arctic_gpu::vfio_user::socket::{self, SocketPath};
use arctic_gpu::vfio_user::{ServedCard, StartError};
use arctic_sriov::number::size;
use serde::Serialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::saved::SavedFunction;
use super::subscribers::{Subscriber, Subscribers};
use super::transfer::{self, ReceivePieces, SendPieces};
use super::{
    Accepted, Answer, CaptureStep, Done, LONGEST_REQUEST, Lines, MOST_CAPTURE_MIB, Raised, Request, TIME_LIMIT,
    missing, send_line, unmatched,
};
use crate::capture::{Heading, event_lines};
use crate::connections::{self, Client, Notices, send};

/// Maximum number of concurrent connections.
pub(super) const MOST_CONNECTIONS: usize = 16;
/// Interval without events after which a subscriber's connection is checked.
const POLL: Duration = Duration::from_millis(100);
/// Number of bytes of events that are sent at once.
const CHUNK: usize = 64 << 10;
/// Time without events after which a subscriber is sent a space, which precedes the next event: a subscriber that does not
/// read it can be distinguished from one that waits for events.
const HEARTBEAT: Duration = Duration::from_secs(2);

/// The card that answers requests.
pub trait Backend: Send + Sync + 'static {
    /// Carries out a request that is answered by one line. Returns the answer, or the reason for which it is refused.
    fn carry_out(&self, request: Request) -> Result<Box<RawValue>, String>;

    /// Subscribes to the events that `filter` selects. Fails with the reason if no event of the card can pass it.
    fn subscribe(&self, filter: Filter) -> Result<(Heading, Subscription), String>;

    /// Requests the capture of a walker. Fails with the reason if the card has none that can pass the filter, or another client
    /// captures one.
    fn capture(&self, request: WalkerRequest) -> Result<Box<dyn WalkerCapture>, String>;

    /// Saves the function with this number. Fails with the reason.
    fn save(&self, function: u8, out: &mut dyn Write) -> Result<Done, String>;

    /// Restores the function with this number. Fails with the reason.
    fn restore(&self, function: u8, from: &mut dyn Read) -> Result<Done, String>;
}

/// A served card.
pub struct CardBackend {
    /// The card.
    pub served: Arc<ServedCard>,
    /// Heading of its captures.
    pub heading: Heading,
}

impl Backend for CardBackend {
    fn carry_out(&self, request: Request) -> Result<Box<RawValue>, String> {
        let card = self.served.card();
        let answer = match request {
            Request::Status {} => to_raw_value(&card.status()),
            Request::Inspect { path, depth } => {
                let path = inspect::Path::new(&path)?;
                to_raw_value(&card.inspect(&path, depth).map_err(|missing| missing.to_string())?)
            }
            Request::Inject { error } if card.raise_hardware_error(&error) => to_raw_value(&Raised { raised: error }),
            Request::Inject { error } => return Err(format!("the card has no error {error:?}")),
            Request::Errors {} => to_raw_value(&json!({ "errors": card.hardware_errors() })),
            Request::ErrorRegisters {} => to_raw_value(&json!({ "registers": card.error_registers() })),
            Request::Pause { function } => to_raw_value(&self.saved(function)?.pause()?),
            Request::Resume { function } => to_raw_value(&self.saved(function)?.resume()?),
            Request::Trace { .. } | Request::Capture { .. } | Request::Save { .. } | Request::Restore { .. } => {
                return Err("the request is not answered by one line".into());
            }
        };
        answer.map_err(|error| error.to_string())
    }

    fn subscribe(&self, filter: Filter) -> Result<(Heading, Subscription), String> {
        let card = self.served.card();
        match unmatched(&filter, &card.status()) {
            Some(reason) => Err(reason),
            None => Ok((self.heading.clone(), card.trace().subscribe(filter))),
        }
    }

    fn capture(&self, request: WalkerRequest) -> Result<Box<dyn WalkerCapture>, String> {
        let card = self.served.card();
        if let Some(reason) = unmatched(&request.filter, &card.status()) {
            return Err(reason);
        }
        card.capture_walker(request)
    }

    fn save(&self, function: u8, out: &mut dyn Write) -> Result<Done, String> {
        self.saved(function)?.save(out)
    }

    fn restore(&self, function: u8, from: &mut dyn Read) -> Result<Done, String> {
        self.saved(function)?.restore(from)
    }
}

impl CardBackend {
    /// The function with this number, to save it or to restore it.
    fn saved(&self, number: u8) -> Result<SavedFunction<'_>, String> {
        let card = self.served.card();
        let function = card.functions().iter().find(|function| function.number().number() == number);
        function.map(|function| SavedFunction(function)).ok_or_else(|| missing(number, card.total_vfs()))
    }
}

/// What the threads of a server share.
struct Shared {
    backend: Box<dyn Backend>,
    stop: AtomicBool,
    subscribers: Subscribers,
}

impl Shared {
    /// Fails if the server is to stop.
    fn check_served(&self) -> io::Result<()> {
        let stops = self.stop.load(Ordering::Acquire);
        if stops { Err(io::Error::other("the card is no longer served")) } else { Ok(()) }
    }
}

/// A listening operator socket. Dropping it closes all connections, stops its threads and removes the socket.
pub struct Server {
    path: SocketPath,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens at `path`, accessible to this user only. A stale socket left by a terminated program is replaced.
    pub fn start(path: &Path, backend: impl Backend) -> io::Result<Self> {
        let (listener, bound) = socket::bind(path, None)?;
        let backend = Box::new(backend);
        let shared = Arc::new(Shared { backend, stop: AtomicBool::new(false), subscribers: Subscribers::default() });
        let thread = {
            let shared = shared.clone();
            let serve = {
                let shared = shared.clone();
                move |client: &Arc<Client<UnixStream>>| serve(client, &shared)
            };
            let limit = ("operator client", MOST_CONNECTIONS);
            let accept = move || {
                let notices = Notices {
                    refused: b"{\"error\":\"too many clients are connected to the operator socket\"}\n",
                    gave_way: b"{\"error\":\"no request: another client has this connection's place\"}\n",
                };
                connections::accept(&listener, &shared.stop, limit, &notices, serve);
            };
            thread::Builder::new().name("operator".into()).spawn(accept).map_err(StartError::of("start a thread"))?
        };
        Ok(Server { path: bound, shared, thread: Some(thread) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        connections::end(&self.shared.stop, || UnixStream::connect(self.path.as_path()), self.thread.take());
    }
}

fn answer(client: &Client<UnixStream>, value: impl Serialize) -> io::Result<()> {
    client.answer(|| send_line(client.stream(), &Answer::Ok(value)))
}

fn refuse(client: &Client<UnixStream>, reason: impl Into<String>) -> io::Result<()> {
    client.answer(|| send_line(client.stream(), &Answer::<()>::Error(reason.into())))
}

/// Answers the requests of a client until it disconnects.
fn serve(client: &Arc<Client<UnixStream>>, shared: &Shared) -> io::Result<()> {
    let mut lines = Lines::new(client.stream(), LONGEST_REQUEST);
    loop {
        let line = match client.receive(|| lines.next(TIME_LIMIT)) {
            Ok(Some(line)) => line,
            Ok(None) => return Ok(()),
            Err(error) => {
                let _ = refuse(client, format!("no request: {error}"));
                return Err(error);
            }
        };
        match serde_json::from_slice(&line) {
            Ok(Request::Trace { filter }) => match shared.subscribers.add(client, &shared.stop) {
                Some(subscriber) => match shared.backend.subscribe(filter) {
                    Ok((heading, subscription)) => return trace(&subscriber, shared, heading, &subscription),
                    Err(reason) => refuse(client, reason)?,
                },
                None => refuse(client, "too many clients receive the card's events")?,
            },
            Ok(Request::Capture { filter, walker, mib }) => match capture_request(filter, walker, mib) {
                Ok(request) => match shared.subscribers.add(client, &shared.stop) {
                    Some(subscriber) => match shared.backend.capture(request) {
                        Ok(waiting) => return capture(&subscriber, shared, walker, waiting),
                        Err(reason) => refuse(client, reason)?,
                    },
                    None => refuse(client, "too many clients receive the card's events")?,
                },
                Err(reason) => refuse(client, reason)?,
            },
            Ok(Request::Save { function }) => return save(client, shared, function),
            Ok(Request::Restore { function }) => return restore(client, shared, &mut lines, function),
            Ok(request) => match shared.backend.carry_out(request) {
                Ok(value) => answer(client, value)?,
                Err(reason) => refuse(client, reason)?,
            },
            Err(error) => refuse(client, mistake(&error))?,
        }
    }
}

/// The reason for which a line is not a request, as a sentence.
fn mistake(error: &serde_json::Error) -> String {
    let text = error.to_string();
    if !error.is_data() {
        return "not a request: the line is not a JSON object".into();
    }
    // The position in the line is omitted.
    let reason = text.split_once(" at line ").map_or(&*text, |(reason, _)| reason);
    format!("not a request: {reason}")
}

/// Sends events until the client disconnects or the server stops.
fn trace(
    subscriber: &Subscriber<'_>,
    shared: &Shared,
    heading: Heading,
    subscription: &Subscription,
) -> io::Result<()> {
    let client = subscriber.client();
    client.keep();
    answer(client, heading)?;
    let stream = client.stream();
    let mut last_sent = Instant::now();
    while !shared.stop.load(Ordering::Acquire) && is_connected(stream)? {
        let mut text = event_lines(subscription, POLL)?;
        if text.is_empty() && last_sent.elapsed() >= HEARTBEAT {
            text = b" ".to_vec();
        }
        subscriber.observe();
        if !text.is_empty() {
            text.chunks(CHUNK).try_for_each(|chunk| send(stream, TIME_LIMIT, chunk))?;
            subscriber.observe_after_send();
            last_sent = Instant::now();
        }
    }
    Ok(())
}

/// The request of a client for a capture.
fn capture_request(filter: Filter, walker: u64, mib: u32) -> Result<WalkerRequest, String> {
    if walker == 0 {
        return Err("walkers are counted from 1".into());
    }
    if mib == 0 || mib > MOST_CAPTURE_MIB {
        return Err(format!("a capture has 1 to {MOST_CAPTURE_MIB} MiB of memory"));
    }
    let most_bytes = size(u64::from(mib) << 20);
    Ok(WalkerRequest { filter, number: walker, most_bytes })
}

/// Sends how far a capture is, and its file, until it ends, the client disconnects or the server stops.
fn capture(
    subscriber: &Subscriber<'_>,
    shared: &Shared,
    walker: u64,
    mut waiting: Box<dyn WalkerCapture>,
) -> io::Result<()> {
    let client = subscriber.client();
    client.keep();
    answer(client, Accepted { walker })?;
    let stream = client.stream();
    let mut last_sent = Instant::now();
    let mut last_step = None;
    while !shared.stop.load(Ordering::Acquire) && is_connected(stream)? {
        let step = match waiting.wait(POLL) {
            CaptureProgress::Waiting { begun, kernel } => CaptureStep::Waiting { begun, kernel },
            CaptureProgress::Capturing { kernel } => CaptureStep::Capturing { kernel },
            CaptureProgress::Failed(reason) => return send_line(stream, &CaptureStep::Failed { reason }),
            CaptureProgress::Done(file) => {
                send_line(stream, &CaptureStep::Done { bytes: file.len() as u64 })?;
                return file.chunks(CHUNK).try_for_each(|chunk| send(stream, TIME_LIMIT, chunk));
            }
        };
        subscriber.observe();
        if last_step.as_ref() != Some(&step) {
            send_line(stream, &step)?;
            last_step = Some(step);
        } else if last_sent.elapsed() >= HEARTBEAT {
            send(stream, TIME_LIMIT, b" ")?;
        } else {
            continue;
        }
        subscriber.observe_after_send();
        last_sent = Instant::now();
    }
    Ok(())
}

/// Sends the saved state of a function and the answer.
fn save(client: &Client<UnixStream>, shared: &Shared, function: u8) -> io::Result<()> {
    let send = |piece: &[u8]| {
        shared.check_served()?;
        client.answer(|| transfer::send_piece(client.stream(), piece, TIME_LIMIT))
    };
    let mut out = BufWriter::with_capacity(transfer::PIECE, SendPieces(send));
    let saved = shared.backend.save(function, &mut out);
    let saved = saved.and_then(|done| out.flush().map(|()| done).map_err(|error| error.to_string()));
    end(client, saved)
}

/// Receives the saved state of a function and answers.
fn restore(
    client: &Client<UnixStream>,
    shared: &Shared,
    lines: &mut Lines<&UnixStream>,
    function: u8,
) -> io::Result<()> {
    let mut from = ReceivePieces::new(|| {
        shared.check_served()?;
        client.receive_more(|| transfer::receive_from_client(lines))
    });
    end(client, shared.backend.restore(function, &mut from))
}

/// Answers, behind or before pieces.
fn end(client: &Client<UnixStream>, result: Result<Done, String>) -> io::Result<()> {
    match result {
        Ok(done) => answer(client, done),
        Err(reason) => refuse(client, reason),
    }
}

/// Returns whether the client is still connected; what it sends is discarded.
fn is_connected(mut client: &UnixStream) -> io::Result<bool> {
    client.set_nonblocking(true)?;
    let connected = match client.read(&mut [0; 64]) {
        Ok(bytes) => bytes != 0,
        Err(error) => error.kind() == ErrorKind::WouldBlock,
    };
    client.set_nonblocking(false)?;
    Ok(connected)
}
