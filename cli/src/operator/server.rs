// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The card's side of the operator socket: one thread accepts connections, and each connection has a thread.

use std::io::{self, ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use arctic_device_model::trace::{Filter, Subscription};
use arctic_gpu::vfio_user::ServedCard;
use arctic_gpu::vfio_user::socket::{self, SocketPath};
use serde::Serialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

use super::{Answer, LONGEST_REQUEST, Lines, Raised, Request, TIME_LIMIT, send_line, unmatched};
use crate::capture::{Heading, event_lines};
use crate::connections::{self, send};

/// Maximum number of concurrent connections.
pub(super) const MOST_CONNECTIONS: usize = 16;
/// Maximum number of connections that receive events. The others remain for requests.
pub(super) const MOST_SUBSCRIBERS: usize = 8;
/// Interval without events after which a subscriber's connection is checked.
const POLL: Duration = Duration::from_millis(100);
/// Number of bytes of events that are sent at once.
const CHUNK: usize = 64 << 10;

/// The card that answers requests.
pub trait Backend: Send + Sync + 'static {
    /// Carries out a request other than [`Request::Trace`]. Returns the answer, or the reason for which it is refused.
    fn carry_out(&self, request: Request) -> Result<Box<RawValue>, String>;

    /// Subscribes to the events that `filter` selects. Fails with the reason if no event of the card can pass it.
    fn subscribe(&self, filter: Filter) -> Result<(Heading, Subscription), String>;
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
            Request::Inject { error } if card.raise_hardware_error(&error) => to_raw_value(&Raised { raised: error }),
            Request::Inject { error } => return Err(format!("the card has no error {error:?}")),
            Request::ErrorRegisters {} => to_raw_value(&json!({ "registers": card.error_registers() })),
            Request::Trace { .. } => return Err("a subscription has no single answer".into()),
        };
        answer.map_err(|error| error.to_string())
    }

    fn subscribe(&self, filter: Filter) -> Result<(Heading, Subscription), String> {
        let card = self.served.card();
        match unmatched(&filter, &card.status()) {
            Some(reason) => Err(reason),
            None => Ok((self.heading.clone(), card.gpu().trace().subscribe(filter))),
        }
    }
}

/// What the threads of a server share.
struct Shared {
    backend: Box<dyn Backend>,
    stop: AtomicBool,
    subscribers: AtomicUsize,
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
        let shared = Arc::new(Shared { backend, stop: AtomicBool::new(false), subscribers: AtomicUsize::new(0) });
        let thread = {
            let shared = shared.clone();
            let serve = {
                let shared = shared.clone();
                move |client: &UnixStream| serve(client, &shared)
            };
            let refuse = |client: &UnixStream| {
                let _ = refuse(client, "too many clients are connected to the operator socket");
            };
            let limit = ("operator client", MOST_CONNECTIONS);
            let accept = move || connections::accept(&listener, &shared.stop, limit, refuse, serve);
            thread::Builder::new().name("operator".into()).spawn(accept)?
        };
        Ok(Server { path: bound, shared, thread: Some(thread) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        connections::end(&self.shared.stop, || UnixStream::connect(self.path.as_path()), self.thread.take());
    }
}

fn answer(client: &UnixStream, value: impl Serialize) -> io::Result<()> {
    send_line(client, &Answer::Ok(value))
}

fn refuse(client: &UnixStream, reason: impl Into<String>) -> io::Result<()> {
    send_line(client, &Answer::<()>::Error(reason.into()))
}

/// Answers the requests of a client until it disconnects.
fn serve(client: &UnixStream, shared: &Shared) -> io::Result<()> {
    let mut lines = Lines::new(client, LONGEST_REQUEST);
    loop {
        let line = match lines.next(TIME_LIMIT) {
            Ok(Some(line)) => line,
            Ok(None) => return Ok(()),
            Err(error) => {
                let _ = refuse(client, format!("no request: {error}"));
                return Err(error);
            }
        };
        match serde_json::from_slice(&line) {
            Ok(Request::Trace { filter }) => match Subscriber::new(&shared.subscribers) {
                Some(_counted) => match shared.backend.subscribe(filter) {
                    Ok((heading, subscription)) => return trace(client, shared, heading, &subscription),
                    Err(reason) => refuse(client, reason)?,
                },
                None => refuse(client, "too many clients receive the card's events")?,
            },
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
    match error.is_data() {
        // The position in the line is omitted.
        true => format!("not a request: {}", text.split(" at line ").next().unwrap_or_default()),
        false => "not a request: the line is not a JSON object".into(),
    }
}

/// Sends events until the client disconnects or the server stops.
fn trace(client: &UnixStream, shared: &Shared, heading: Heading, subscription: &Subscription) -> io::Result<()> {
    answer(client, heading)?;
    while !shared.stop.load(Ordering::Acquire) && is_connected(client)? {
        let text = event_lines(subscription, POLL)?;
        text.chunks(CHUNK).try_for_each(|chunk| send(client, TIME_LIMIT, chunk))?;
    }
    Ok(())
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

/// A counted subscriber.
struct Subscriber<'s>(&'s AtomicUsize);

impl<'s> Subscriber<'s> {
    /// Counts a subscriber until it is dropped; `None` if there are [`MOST_SUBSCRIBERS`].
    fn new(subscribers: &'s AtomicUsize) -> Option<Self> {
        let more = |count: usize| (count < MOST_SUBSCRIBERS).then(|| count.saturating_add(1));
        subscribers.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok().map(|_| Subscriber(subscribers))
    }
}

impl Drop for Subscriber<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
