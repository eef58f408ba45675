// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! One client's socket: receiving messages with their file descriptors, sending messages, and waiting.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::RawFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use arctic_device_model::sync::IgnorePoison;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use vmm_sys_util::poll::{EpollContext, EpollEvents, PollToken};
use vmm_sys_util::sock_ctrl_msg::ScmSocket;

use super::connection::{Closed, TimeLeft, next_poll};
use super::inbox::{Inbox, Received};
use super::wire::Header;

/// Time for which a client may leave its socket full before it is disconnected. Only the connection's own thread waits
/// that long.
pub(super) const SEND_TIMEOUT: Duration = Duration::from_secs(3);
/// Time after which a client is disconnected if an engine cannot send a message to it: the client does not read its
/// socket.
const STALL_LIMIT: Duration = Duration::from_millis(100);
/// Time that a client has for the version exchange before another client may have its place.
const GRACE: Duration = Duration::from_millis(100);
/// The same for a client that sends other messages.
const UNNEGOTIATED: Duration = Duration::from_secs(1);
/// Interval at which that is checked while another client waits.
const RECHECK: Duration = Duration::from_millis(2);

/// Events for which the thread of a function waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// A message from the client.
    Client,
    /// The server is stopping.
    Stop,
    /// A connection attempt of another client.
    Listener,
}

impl PollToken for Wake {
    fn as_raw_token(&self) -> u64 {
        *self as u64
    }

    fn from_raw_token(data: u64) -> Self {
        match data {
            0 => Wake::Client,
            1 => Wake::Stop,
            _ => Wake::Listener,
        }
    }
}

/// The sending half, shared by the function's thread (replies) and engine threads (DMA messages).
#[derive(Clone)]
pub struct Sender(Arc<Outgoing>);

struct Outgoing {
    stream: Arc<UnixStream>,
    /// A message is being sent.
    sending: Mutex<bool>,
    sent: Condvar,
}

/// The right to send one message.
struct Sending<'o>(&'o Outgoing);

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        *self.0.sending() = false;
        self.0.sent.notify_one();
    }
}

impl Outgoing {
    fn sending(&self) -> MutexGuard<'_, bool> {
        self.sending.lock().ignore_poison()
    }

    /// Waits while another message is being sent. Returns `None` if the patience ends first.
    fn begin(&self, time_left: &TimeLeft<'_>) -> Option<Sending<'_>> {
        let mut sending = self.sending();
        while *sending {
            let timeout = next_poll(time_left)?;
            let waited = self.sent.wait_timeout(sending, timeout);
            (sending, _) = waited.ignore_poison();
        }
        *sending = true;
        Some(Sending(self))
    }

    /// Waits for space in the socket buffer, until the next check; fails with `TimedOut` if the patience has ended.
    fn wait_for_room(&self, time_left: &TimeLeft<'_>) -> io::Result<()> {
        let timeout = next_poll(time_left).ok_or(ErrorKind::TimedOut)?;
        let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&*self.stream, PollFlags::OUT)], Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Sender {
    fn new(stream: Arc<UnixStream>) -> Self {
        Sender(Arc::new(Outgoing { stream, sending: Mutex::new(false), sent: Condvar::new() }))
    }

    /// Sends a whole message, with at most one descriptor on its first byte, within `time_left`, which includes waiting
    /// for other messages and for space in the socket buffer.
    ///
    /// Fails with `TimedOut` if the client does not read. The connection is then closed if part of the message was
    /// sent, or if the wait took 100 ms or longer.
    pub fn send(&self, message: &[u8], fd: Option<RawFd>, time_left: &TimeLeft<'_>) -> io::Result<()> {
        let begun = Instant::now();
        let mut sent = 0;
        let result = match self.0.begin(time_left) {
            Some(_sending) => self.send_all(message, fd, time_left, &mut sent),
            None => Err(ErrorKind::TimedOut.into()),
        };
        if let Err(error) = &result
            && error.kind() == ErrorKind::TimedOut
            && (sent != 0 || begun.elapsed() >= STALL_LIMIT)
        {
            self.hang_up();
        }
        result
    }

    fn send_all(
        &self,
        message: &[u8],
        fd: Option<RawFd>,
        time_left: &TimeLeft<'_>,
        sent: &mut usize,
    ) -> io::Result<()> {
        while let Some(rest) = message.get(*sent..).filter(|rest| !rest.is_empty()) {
            let fds = if *sent == 0 { fd.as_slice() } else { &[] };
            match self.0.stream.send_with_fds(&[rest], fds) {
                Ok(n) => *sent = sent.saturating_add(n),
                Err(error) => match io::Error::from(error).kind() {
                    ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock => self.0.wait_for_room(time_left)?,
                    _ => return Err(error.into()),
                },
            }
        }
        Ok(())
    }

    /// Shuts down the connection in both directions; the client reads end of file.
    pub fn hang_up(&self) {
        // An error means that the connection has ended already.
        let _ = self.0.stream.shutdown(std::net::Shutdown::Both);
    }
}

/// Decides how long to poll before sleeping. A wake-up costs as much as a whole access, but a polling thread occupies a
/// core that the guest could use. The thread therefore polls while the gaps between messages are short, and after one so
/// long that polling is a small part of the time: the message that ends it is often the first of several, such as those of an
/// interrupt handler.
struct Spin {
    limit: Duration,
    budget: Duration,
}

impl Spin {
    /// A gap of so many times the limit is long.
    const LONG: u32 = 20;

    #[allow(clippy::arithmetic_side_effects, reason = "division by 2, and the limit is at most 10 ms")]
    fn learn(&mut self, gap: Duration) {
        let polls = gap <= self.limit || gap >= self.limit * Self::LONG;
        self.budget = if polls { self.limit } else { self.budget / 2 };
        if self.budget < Duration::from_micros(2) {
            self.budget = Duration::ZERO;
        }
    }
}

/// The receiving half of a connection.
pub struct Channel<'s> {
    stream: Arc<UnixStream>,
    sender: Sender,
    inbox: Arc<Inbox>,
    epoll: &'s EpollContext<Wake>,
    events: EpollEvents,
    refuse: &'s dyn Fn(),
    spin: Spin,
    /// When the client connected, until it has negotiated the version.
    new_since: Option<Instant>,
}

impl<'s> Channel<'s> {
    /// Takes ownership of `stream`. `epoll` already watches [`Wake::Stop`] and [`Wake::Listener`]; `refuse` rejects
    /// another client; `spin` is the maximum time that a wait polls before it sleeps. Until [`negotiated`](Self::negotiated)
    /// is called, a client that is silent gives way to another one.
    pub fn new(
        stream: UnixStream,
        epoll: &'s EpollContext<Wake>,
        refuse: &'s dyn Fn(),
        spin: Duration,
    ) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        epoll.add(&stream, Wake::Client)?;
        let stream = Arc::new(stream);
        let (sender, inbox) = (Sender::new(stream.clone()), Arc::new(Inbox::new(stream.clone())));
        let spin = Spin { limit: spin, budget: Duration::ZERO };
        let new_since = Some(Instant::now());
        Ok(Channel { stream, sender, inbox, epoll, events: EpollEvents::new(), refuse, spin, new_since })
    }

    /// The client has negotiated the version: from now on, other clients are refused.
    pub fn negotiated(&mut self) {
        self.new_since = None;
    }

    /// The sending half.
    pub fn sender(&self) -> Sender {
        self.sender.clone()
    }

    /// The receiving side, for threads that wait for replies.
    pub fn inbox(&self) -> &Arc<Inbox> {
        &self.inbox
    }

    /// Receives the next message. Passes a reply to the thread that waits for it and returns `None`. Otherwise returns the
    /// header of a request, with its body and descriptors in `body` and `files`; the body of a header with an invalid
    /// length is empty. Threads that wait for replies then receive until [`Inbox::executed`] is called.
    pub fn receive(&mut self, body: &mut Vec<u8>, files: &mut Vec<File>) -> Result<Option<Header>, Closed> {
        loop {
            match self.inbox.receive(body, files)? {
                Received::Request(header) => return Ok(Some(header)),
                Received::Reply => return Ok(None),
                Received::Wait { idle } => self.wait(idle)?,
            }
        }
    }

    /// Returns when the client's socket may be readable.
    fn wait(&mut self, idle: bool) -> Result<(), Closed> {
        let start = Instant::now();
        if idle {
            while start.elapsed() < self.spin.budget {
                thread::yield_now();
                if self.readable() {
                    self.spin.learn(start.elapsed());
                    return Ok(());
                }
            }
        }
        let mut ready = false;
        while !ready {
            let (mut stop, mut another) = (false, false);
            for event in self.epoll.wait(&self.events).map_err(|error| Closed::Broken(error.into()))?.iter() {
                match event.token() {
                    Wake::Client => ready = true,
                    Wake::Stop => stop = true,
                    Wake::Listener => another = true,
                }
            }
            if stop {
                return Err(Closed::Stopped);
            }
            match self.new_since {
                _ if !another => {}
                None => (self.refuse)(),
                Some(since) if since.elapsed() >= if ready { UNNEGOTIATED } else { GRACE } => {
                    return Err(Closed::GaveWay);
                }
                Some(_) if ready => {}
                // The other client waits in the accept queue, so that the next wait does not sleep.
                Some(_) => thread::sleep(RECHECK),
            }
        }
        if idle {
            self.spin.learn(start.elapsed());
        }
        Ok(())
    }

    fn readable(&self) -> bool {
        self.epoll
            .wait_timeout(&self.events, Duration::ZERO)
            .is_ok_and(|events| events.iter().any(|event| event.token() != Wake::Listener))
    }
}

impl Drop for Channel<'_> {
    fn drop(&mut self) {
        // An engine thread may still hold the sending half; the connection must be closed without waiting for it.
        let _ = self.epoll.delete(&*self.stream);
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Read;

    use super::*;
    use crate::vfio_user::connection::for_a_time;

    /// Both halves of a connection, and the client's socket.
    pub fn connection() -> (Sender, Arc<Inbox>, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let ours = Arc::new(ours);
        (Sender::new(ours.clone()), Arc::new(Inbox::new(ours)), theirs)
    }

    fn sender() -> (Sender, UnixStream) {
        let (sender, _, theirs) = connection();
        (sender, theirs)
    }

    /// Gaps between messages that polling cannot bridge end it, unless they are so long that it costs little.
    #[test]
    fn polling_follows_the_gaps_between_messages() {
        let us = Duration::from_micros;
        let mut spin = Spin { limit: us(50), budget: Duration::ZERO };
        for (gap, budget) in [(50, 50), (51, 25), (999, 12), (51, 6), (51, 3), (51, 0), (999, 0), (1_000, 50), (40, 50)]
        {
            spin.learn(us(gap));
            assert_eq!(spin.budget.as_micros(), budget, "after a gap of {gap} us");
        }
    }

    /// If no byte of a message can be sent for a long time, the client does not read and is disconnected.
    #[test]
    fn a_long_wait_ends_the_connection() {
        let (sender, mut theirs) = sender();
        let mut sent = 0;
        while sender.send(&[1; 64], None, &for_a_time(Duration::from_millis(20))).is_ok() {
            sent += 64;
        }
        assert_eq!(sender.send(&[2; 64], None, &for_a_time(STALL_LIMIT)).unwrap_err().kind(), ErrorKind::TimedOut);
        theirs.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut received = Vec::new();
        theirs.read_to_end(&mut received).expect("the connection ends");
        assert_eq!(received.len(), sent);
    }

    /// Messages time out if the socket stays full, also while another message waits for space, and do not affect later
    /// messages. A message that was sent partly, or that has waited for a long time, closes the connection.
    #[test]
    fn messages_to_a_full_socket_time_out() {
        const SHORT: Duration = Duration::from_millis(20);
        let (sender, mut theirs) = sender();
        // The messages are small enough to be sent atomically.
        let mut sent = 0;
        while sender.send(&[1; 64], None, &for_a_time(SHORT)).is_ok() {
            sent += 64;
        }
        thread::scope(|scope| {
            let senders: Vec<_> =
                (0..4).map(|_| scope.spawn(|| sender.send(&[2; 64], None, &for_a_time(SHORT)))).collect();
            for sender in senders {
                assert_eq!(sender.join().unwrap().unwrap_err().kind(), ErrorKind::TimedOut);
            }
        });
        theirs.read_exact(&mut vec![0; sent]).unwrap();
        sender.send(&[3; 64], None, &for_a_time(SHORT)).unwrap();
        let mut next = [0; 64];
        theirs.read_exact(&mut next).unwrap();
        assert_eq!(next, [3; 64], "nothing of a message that timed out");
        assert_eq!(sender.send(&vec![4; 1 << 20], None, &for_a_time(SHORT)).unwrap_err().kind(), ErrorKind::TimedOut);
        theirs.read_to_end(&mut Vec::new()).unwrap();
        assert!(sender.send(&[5; 64], None, &for_a_time(SHORT)).is_err(), "the connection has ended");
    }
}
