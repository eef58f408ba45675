// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Clients of a listening socket, UNIX or TCP: one thread accepts connections, each connection has a thread, and their
//! number is limited. Transfers have time limits, so that a client that does not read or write is disconnected. At the
//! maximum number of connections, one that the server waits for gives way to the next client.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use arctic_device_model::sync::IgnorePoison;
use rustix::net::SendFlags;

/// Time for which the server waits for a client before another client may have its place: a client that sends its
/// request after it has connected needs less, also on a loaded host.
const GRACE: Duration = Duration::from_millis(100);
/// Maximum time for which a client beyond the maximum number waits for a place.
const PLACE_TIMEOUT: Duration = Duration::from_secs(1);
/// Interval at which that is checked.
const RECHECK: Duration = Duration::from_millis(2);

/// A connected socket.
pub trait Stream: AsFd + Send + Sync + Sized + 'static {
    /// Ends the connection for all its descriptors.
    fn close(&self);

    /// Reads what has arrived, or waits for it at most for `limit`, which is not zero.
    fn read_within(&self, limit: Duration, bytes: &mut [u8]) -> io::Result<usize>;

    /// Writes some of `bytes`, waiting for space at most for `limit`, which is not zero.
    fn write_within(&self, limit: Duration, bytes: &[u8]) -> io::Result<usize>;

    /// Writes `bytes` as far as there is space for them, without waiting.
    fn write_now(&self, bytes: &[u8]);
}

/// A socket that listens.
pub trait Listener {
    /// Its connections.
    type Stream: Stream;

    /// Waits for a connection.
    fn accept(&self) -> io::Result<Self::Stream>;
}

macro_rules! sockets {
    ($($listener:ty, $stream:ty;)*) => {$(
        impl Stream for $stream {
            fn close(&self) {
                let _ = self.shutdown(Shutdown::Both);
            }

            fn read_within(&self, limit: Duration, bytes: &mut [u8]) -> io::Result<usize> {
                self.set_read_timeout(Some(limit))?;
                (&mut &*self).read(bytes)
            }

            fn write_within(&self, limit: Duration, bytes: &[u8]) -> io::Result<usize> {
                self.set_write_timeout(Some(limit))?;
                (&mut &*self).write(bytes)
            }

            fn write_now(&self, bytes: &[u8]) {
                // An error means that the client has disconnected or does not read.
                let _ = rustix::net::send(self, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
            }
        }

        impl Listener for $listener {
            type Stream = $stream;

            fn accept(&self) -> io::Result<$stream> {
                <$listener>::accept(self).map(|(client, _)| client)
            }
        }
    )*};
}

sockets! {
    UnixListener, UnixStream;
    TcpListener, TcpStream;
}

/// What a connection's thread does.
#[derive(Clone, Copy, Debug)]
enum Activity {
    /// It waits for a request since then.
    Receives(Instant),
    /// It waits since then until the client has read an answer.
    Sends(Instant),
    /// It carries out a request.
    Works,
    /// The connection ends: another client has its place.
    GaveWay,
}

/// A connected client.
pub struct Client<S> {
    stream: S,
    state: Mutex<State>,
}

struct State {
    activity: Activity,
    /// Number of requests that were received.
    requests: u64,
    /// The connection ends before its next request.
    last: bool,
    /// The connection does not give way.
    kept: bool,
}

impl<S: Stream> Client<S> {
    fn new(stream: S) -> Self {
        let activity = Activity::Receives(Instant::now());
        Client { stream, state: Mutex::new(State { activity, requests: 0, last: false, kept: false }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().ignore_poison()
    }

    /// The connection.
    pub fn stream(&self) -> &S {
        &self.stream
    }

    /// Receives a request by `receive`. Meanwhile, after a time, the connection may be given to another client; then it
    /// is closed, and this fails.
    pub fn receive<T>(&self, receive: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        {
            let mut state = self.state();
            if state.last {
                state.activity = Activity::GaveWay;
            }
        }
        let received = self.receive_more(receive)?;
        let mut state = self.state();
        state.requests = state.requests.saturating_add(1);
        Ok(received)
    }

    /// Receives more of the current request by `receive`, on the same terms.
    pub fn receive_more<T>(&self, receive: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.wait(Activity::Receives(Instant::now()))?;
        let received = receive();
        self.wait(Activity::Works)?;
        received
    }

    /// Sends an answer, or a part of it, by `send`, on the same terms.
    pub fn answer<T>(&self, send: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.wait(Activity::Sends(Instant::now()))?;
        let sent = send();
        self.wait(Activity::Works)?;
        sent
    }

    /// From now on the connection does not give way in [`accept`].
    pub fn keep(&self) {
        self.state().kept = true;
    }

    fn wait(&self, activity: Activity) -> io::Result<()> {
        let mut state = self.state();
        if matches!(state.activity, Activity::GaveWay) {
            return Err(io::Error::new(ErrorKind::ConnectionAborted, "another client has this connection's place"));
        }
        state.activity = activity;
        Ok(())
    }

    /// Since when the connection's thread has been waiting for the client.
    fn waits_since(&self) -> Option<Instant> {
        let state = self.state();
        match state.activity {
            _ if state.kept => None,
            // Bytes that the thread has not read yet: it waits for the host's CPU.
            Activity::Receives(_) if rustix::io::ioctl_fionread(&self.stream).is_ok_and(|bytes| bytes != 0) => None,
            Activity::Receives(since) | Activity::Sends(since) => Some(since),
            Activity::Works | Activity::GaveWay => None,
        }
    }

    /// Ends the connection if its thread still waits for the client. `reason` is sent, unless part of an answer was.
    fn give_way(&self, reason: &[u8]) {
        let mut state = self.state();
        match state.activity {
            Activity::Receives(_) => self.stream.write_now(reason),
            Activity::Sends(_) => {}
            Activity::Works | Activity::GaveWay => return,
        }
        state.activity = Activity::GaveWay;
        self.stream.close();
    }

    /// Ends the connection after the answer to the current request, if it has had one. Returns whether it does.
    fn end_after_answer(&self) -> bool {
        let mut state = self.state();
        state.last = !state.kept && state.requests != 0;
        state.last
    }
}

/// What is sent to clients that are disconnected.
pub struct Notices<'n> {
    /// To a client that is refused.
    pub refused: &'n [u8],
    /// To a client without a request, whose place another client has.
    pub gave_way: &'n [u8],
}

struct Connection<S> {
    client: Arc<Client<S>>,
    thread: JoinHandle<()>,
}

/// Accepts connections until `stop` is set and one more client has connected; then ends the connections and their
/// threads. `serve` serves a client on its thread.
///
/// If there are `most` clients, the one that the server has been waiting for longest, at least [`GRACE`], gives way to
/// the next one. If no client is silent, the first that has had an answer gives way after its current request. Otherwise
/// the next client is disconnected after [`PLACE_TIMEOUT`].
pub fn accept<L: Listener>(
    listener: &L,
    stop: &AtomicBool,
    (name, most): (&str, usize),
    notices: &Notices<'_>,
    serve: impl Fn(&Arc<Client<L::Stream>>) -> io::Result<()> + Clone + Send + 'static,
) {
    let mut connections: Vec<Connection<L::Stream>> = Vec::new();
    loop {
        let client = listener.accept();
        if stop.load(Ordering::Acquire) {
            break;
        }
        let Ok(stream) = client else {
            // Out of file descriptors: do not spin.
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        if !make_room(&mut connections, stop, most, notices) {
            stream.write_now(notices.refused);
            stream.close();
            continue;
        }
        let client = Arc::new(Client::new(stream));
        let serve = serve.clone();
        let what = name.to_owned();
        let served = client.clone();
        let run = move || {
            if let Err(error) = serve(&served) {
                log::debug!("{what} was disconnected: {error}");
            }
            // The descriptor in `connections` keeps the connection open otherwise.
            served.stream.close();
        };
        match thread::Builder::new().name(name.into()).spawn(run) {
            Ok(thread) => connections.push(Connection { client, thread }),
            Err(error) => {
                log::warn!("{name}: cannot start a thread: {error}");
                client.stream.write_now(notices.refused);
            }
        }
    }
    for Connection { client, thread } in connections {
        client.stream.close();
        let _ = thread.join();
    }
}

/// Removes connections that have ended, and ends one if there are `most`. Returns whether there is room for a new one.
fn make_room<S: Stream>(
    connections: &mut Vec<Connection<S>>,
    stop: &AtomicBool,
    most: usize,
    notices: &Notices<'_>,
) -> bool {
    let started = Instant::now();
    // The time when a connection was last ended.
    let mut ended: Option<Instant> = None;
    loop {
        connections.retain(|connection| !connection.thread.is_finished());
        if connections.len() < most {
            return true;
        }
        if stop.load(Ordering::Acquire) || started.elapsed() >= PLACE_TIMEOUT {
            return false;
        }
        if ended.is_none_or(|ended| ended.elapsed() >= GRACE) {
            let silent = connections.iter().filter_map(|of| Some((of.client.waits_since()?, of)));
            let silent = silent.min_by_key(|(since, _)| *since).filter(|(since, _)| since.elapsed() >= GRACE);
            if let Some((_, connection)) = silent {
                connection.client.give_way(notices.gave_way);
                ended = Some(Instant::now());
            } else if started.elapsed() >= GRACE && connections.iter().any(|of| of.client.end_after_answer()) {
                ended = Some(Instant::now());
            }
        }
        thread::sleep(RECHECK);
    }
}

/// Ends [`accept`], which runs on `thread` with this `stop`; `connect` connects to its socket. If it cannot, the thread goes
/// on.
pub fn end<S>(stop: &AtomicBool, connect: impl FnOnce() -> io::Result<S>, thread: Option<JoinHandle<()>>) {
    stop.store(true, Ordering::Release);
    // Wakes the thread.
    let woken = connect().is_ok();
    if let Some(thread) = thread.filter(|_| woken) {
        let _ = thread.join();
    }
}

/// Sends `bytes`. Fails if the other side has not read enough of them after `limit`.
pub fn send(socket: &impl Stream, limit: Duration, mut bytes: &[u8]) -> io::Result<()> {
    let started = Instant::now();
    while !bytes.is_empty() {
        let left = limit.saturating_sub(started.elapsed());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        match socket.write_within(left, bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => {
                debug_assert!(count <= bytes.len(), "a write of more bytes than there are");
                bytes = bytes.get(count..).unwrap_or_default();
            }
            Err(error) if is_pause(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns whether a transfer ended at its time limit, or by a signal.
pub fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
