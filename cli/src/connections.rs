// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Clients of a listening socket, UNIX or TCP: one thread accepts connections, each connection has a thread, and their
//! number is limited. Transfers have time limits, so that a client that does not read or write is disconnected.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A connected socket.
pub trait Stream: Send + Sized + 'static {
    /// Another descriptor of the connection.
    fn duplicate(&self) -> io::Result<Self>;

    /// Ends the connection for all its descriptors.
    fn close(&self);

    /// Reads what has arrived, or waits for it at most for `limit`, which is not zero.
    fn read_within(&self, limit: Duration, bytes: &mut [u8]) -> io::Result<usize>;

    /// Writes some of `bytes`, waiting for space at most for `limit`, which is not zero.
    fn write_within(&self, limit: Duration, bytes: &[u8]) -> io::Result<usize>;
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
            fn duplicate(&self) -> io::Result<Self> {
                self.try_clone()
            }

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

/// Accepts connections until `stop` is set and one more client has connected; then ends the connections and their
/// threads. `serve` serves a client on its thread. A client beyond `most` at a time is passed to `refuse`, on this thread,
/// and disconnected.
pub fn accept<L: Listener>(
    listener: &L,
    stop: &AtomicBool,
    (name, most): (&str, usize),
    refuse: impl Fn(&L::Stream),
    serve: impl Fn(&L::Stream) -> io::Result<()> + Clone + Send + 'static,
) {
    let mut connections: Vec<(L::Stream, JoinHandle<()>)> = Vec::new();
    loop {
        let client = listener.accept();
        if stop.load(Ordering::Acquire) {
            break;
        }
        connections.retain(|(_, thread)| !thread.is_finished());
        let accepted = client.and_then(|client| Ok((client.duplicate()?, client)));
        let Ok((kept, client)) = accepted else {
            // Out of file descriptors: do not spin.
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        if connections.len() >= most {
            refuse(&client);
            continue;
        }
        let (serve, what) = (serve.clone(), name.to_owned());
        let run = move || {
            if let Err(error) = serve(&client) {
                log::debug!("{what} was disconnected: {error}");
            }
            // The descriptor in `connections` keeps the connection open otherwise.
            client.close();
        };
        let thread = thread::Builder::new().name(name.into()).spawn(run);
        connections.extend(thread.map(|thread| (kept, thread)));
    }
    for (client, thread) in connections {
        client.close();
        let _ = thread.join();
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
            Ok(count) => bytes = bytes.get(count..).unwrap_or_default(),
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
