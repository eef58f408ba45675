// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The receiving side of a connection: assembles messages, queues requests for the connection's thread, and passes replies
//! to the threads that wait for them.
//!
//! The connection's thread receives while it waits for a request. While it executes one, it may wait for a lock whose
//! holder waits for a reply of the client. A thread that waits for a reply then receives in its place, so a reply that
//! the client has sent always arrives. It reads requests that precede the reply, up to limits on their number, size and
//! descriptors, and queues them.
#![warn(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::FromRawFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use arctic_device_model::sync::IgnorePoison;
use libc::iovec;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use vmm_sys_util::sock_ctrl_msg::ScmSocket;

use super::budget::POLL_INTERVAL;
use super::connection::{Closed, DmaError, TimeLeft, next_poll};
use super::wire::{FLAG_ERROR, HEADER_LEN, Header, MAX_DATA, MAX_FDS};

/// Maximum number of queued requests, and of the bytes of their bodies and of their descriptors, at which no more is
/// received on behalf of the connection's thread. The last request may exceed the latter two.
const MOST_REQUESTS: usize = 256;
const MOST_BYTES: usize = MAX_DATA;
const MOST_FILES: usize = MAX_FDS;

/// Number of check intervals without a reply while one request of the client is executed, after which the reply is not
/// expected before that request has ended. QEMU's main loop, which serves DMA_READ and DMA_WRITE, waits for the big lock,
/// which a vCPU holds while it waits for the reply to its own access (QEMU: hw/vfio-user/proxy.c). The request may in turn
/// need a lock that the waiting thread holds.
const UNANSWERED_POLLS: u32 = 10;

/// The result of a request to the client: the body of the reply.
pub type Reply = Result<Vec<u8>, DmaError>;

/// A message that may be incomplete.
#[derive(Default)]
struct Partial {
    header: [u8; HEADER_LEN],
    /// Number of bytes of the header that have been received.
    header_bytes: usize,
    body: Vec<u8>,
    /// Number of bytes of the body that have been received.
    body_bytes: usize,
    files: Vec<File>,
}

/// A message from the client.
struct Message {
    header: Header,
    body: Vec<u8>,
    files: Vec<File>,
}

/// What the connection's thread does after an attempt to receive.
pub enum Received {
    /// It executes the request, whose contents are in the caller's buffers. A header with an invalid length has none.
    Request(Header),
    /// It receives the next message: a reply has been passed on.
    Reply,
    /// It waits until the socket is readable; `idle` between two messages.
    Wait {
        /// No byte of the next message has been received.
        idle: bool,
    },
}

#[derive(Default)]
struct State {
    partial: Partial,
    /// Requests that were received while the connection's thread executed another one, oldest first.
    requests: VecDeque<Message>,
    /// Why nothing more can be received.
    ended: Option<Closed>,
    /// The connection's thread executes no request: it receives. No other thread then reads the socket.
    attended: bool,
    /// A thread that waits for a reply receives.
    replaced: bool,
    /// Number of requests whose execution has begun.
    begun: u64,
    /// The request (by `begun`) during whose execution the client has not replied for [`UNANSWERED_POLLS`].
    unanswered_in: Option<u64>,
    /// The client has disconnected.
    closed: bool,
    next: u16,
    /// Requests to the client by id, with their replies once they have arrived.
    replies: HashMap<u16, Option<Reply>>,
}

impl State {
    /// Returns whether a thread that waits for a reply receives in place of the connection's thread.
    fn unattended(&self) -> bool {
        let bytes = self.requests.iter().fold(0_usize, |bytes, message| bytes.saturating_add(message.body.len()));
        let files = self.requests.iter().fold(0_usize, |files, message| files.saturating_add(message.files.len()));
        let room = self.requests.len() < MOST_REQUESTS && bytes < MOST_BYTES && files < MOST_FILES;
        room && !self.attended && self.ended.is_none()
    }

    /// Receives the next message; `None` if it is incomplete and the socket is empty.
    fn receive(&mut self, stream: &UnixStream) -> Result<Option<Message>, Closed> {
        let partial = &mut self.partial;
        while let Some(rest) = partial.header.get_mut(partial.header_bytes..).filter(|rest| !rest.is_empty()) {
            let idle = partial.header_bytes == 0;
            match receive(stream, rest, &mut partial.files) {
                Ok(0) if idle => return Err(Closed::ByClient),
                Ok(0) => return Err(Closed::Broken(ErrorKind::UnexpectedEof.into())),
                Ok(n) => partial.header_bytes = partial.header_bytes.saturating_add(n),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset && idle => return Err(Closed::ByClient),
                Err(error) => return Err(Closed::Broken(error)),
            }
        }
        let header = Header::decode(&partial.header);
        // Without a valid length the message has no body that could be received.
        let len = header.body_len().unwrap_or(0);
        if partial.body_bytes == 0 {
            partial.body.resize(len, 0);
        }
        while let Some(rest) = partial.body.get_mut(partial.body_bytes..).filter(|rest| !rest.is_empty()) {
            match Read::read(&mut &*stream, rest) {
                Ok(0) => return Err(Closed::Broken(ErrorKind::UnexpectedEof.into())),
                Ok(n) => partial.body_bytes = partial.body_bytes.saturating_add(n),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Closed::Broken(error)),
            }
        }
        (partial.header_bytes, partial.body_bytes) = (0, 0);
        let (body, files) = (std::mem::take(&mut partial.body), std::mem::take(&mut partial.files));
        Ok(Some(Message { header, body, files }))
    }

    /// Passes a reply to the waiting thread; a late or unsolicited reply is dropped.
    fn pass_on(&mut self, header: &Header, body: Vec<u8>) {
        let Some(reply) = self.replies.get_mut(&header.id) else {
            log::debug!("reply {} matches no request", header.id);
            return;
        };
        let refused = header.flags & FLAG_ERROR != 0;
        *reply = Some(if refused { Err(DmaError::Refused(header.error)) } else { Ok(body) });
        self.unanswered_in = None;
    }
}

/// The receiving side of a connection.
pub struct Inbox {
    stream: Arc<UnixStream>,
    state: Mutex<State>,
    /// A reply has arrived, or another thread must receive.
    changed: Condvar,
}

impl Inbox {
    /// The receiving side of `stream`, which must not block.
    pub fn new(stream: Arc<UnixStream>) -> Self {
        let state = State { attended: true, ..State::default() };
        Inbox { stream, state: Mutex::new(state), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().ignore_poison()
    }

    /// Receives without waiting, on the connection's thread. `body` and `files` are replaced by the contents of a request,
    /// after which [`Inbox::executed`] must be called.
    pub fn receive(&self, body: &mut Vec<u8>, files: &mut Vec<File>) -> Result<Received, Closed> {
        let mut state = self.lock();
        let message = match state.requests.pop_front() {
            Some(message) => message,
            None => {
                if let Some(ended) = state.ended.take() {
                    return Err(ended);
                }
                if state.partial.body_bytes == 0 && state.partial.body.is_empty() {
                    // Reuses the allocation of the caller.
                    std::mem::swap(&mut state.partial.body, body);
                    state.partial.body.clear();
                }
                match state.receive(&self.stream)? {
                    Some(message) => message,
                    None => return Ok(Received::Wait { idle: state.partial.header_bytes == 0 }),
                }
            }
        };
        let Message { header, body: theirs, files: attached } = message;
        if header.is_reply() && header.body_len().is_some() {
            state.pass_on(&header, theirs);
            drop(state);
            self.changed.notify_all();
            return Ok(Received::Reply);
        }
        (*body, *files) = (theirs, attached);
        state.attended = false;
        state.begun = state.begun.wrapping_add(1);
        let waited_for = !state.replies.is_empty();
        drop(state);
        if waited_for {
            self.changed.notify_all();
        }
        Ok(Received::Request(header))
    }

    /// The connection's thread has executed a request and will receive again.
    pub fn executed(&self) {
        self.lock().attended = true;
    }

    /// Receives on behalf of the connection's thread, without waiting.
    fn receive_for_others(&self) {
        let mut state = self.lock();
        while state.unattended() {
            match state.receive(&self.stream) {
                Ok(None) => return,
                Ok(Some(message)) if message.header.body_len().is_none() => {
                    // The start of the next message is unknown.
                    state.requests.push_back(message);
                    state.ended = Some(Closed::Broken(io::Error::from_raw_os_error(libc::EMSGSIZE)));
                }
                Ok(Some(Message { header, body, .. })) if header.is_reply() => state.pass_on(&header, body),
                Ok(Some(message)) => state.requests.push_back(message),
                Err(closed) => state.ended = Some(closed),
            }
        }
    }

    /// Registers a request to the client and returns its id. Fails if no reply can be expected: the client has disconnected,
    /// or has not replied before during the execution of its current request.
    pub fn enlist(&self) -> Result<u16, DmaError> {
        let mut state = self.lock();
        if state.closed || !state.attended && state.unanswered_in == Some(state.begun) {
            return Err(DmaError::NoAnswer);
        }
        let first = state.next;
        let id = (0..=u16::MAX).map(|n| first.wrapping_add(n)).find(|id| !state.replies.contains_key(id));
        let id = id.ok_or(DmaError::NoAnswer)?;
        state.next = id.wrapping_add(1);
        state.replies.insert(id, None);
        Ok(id)
    }

    /// Forgets a request to the client. A later reply to it is dropped.
    pub fn forget(&self, id: u16) {
        self.lock().replies.remove(&id);
    }

    /// Waits for the reply to the request `id` within `time_left`. Must not be called on the connection's thread. Receives
    /// while that thread executes a request of the client; the wait then lasts for at most [`UNANSWERED_POLLS`].
    pub fn wait(&self, id: u16, time_left: &TimeLeft<'_>) -> Reply {
        let (mut request, mut polls, mut polled) = (None, 0_u32, Instant::now());
        loop {
            // Without the lock: takes others.
            let timeout = next_poll(time_left);
            let mut state = self.lock();
            if let Some(reply) = state.replies.get_mut(&id).and_then(Option::take) {
                return reply;
            }
            let timeout = timeout.filter(|_| !state.closed && state.ended.is_none()).ok_or(DmaError::NoAnswer)?;
            let executed = (!state.attended).then_some(state.begun);
            let now = Instant::now();
            if executed != request || executed.is_none() {
                (request, polls, polled) = (executed, 0, now);
            } else if now.saturating_duration_since(polled) >= POLL_INTERVAL {
                (polls, polled) = (polls.saturating_add(1), now);
            }
            if polls >= UNANSWERED_POLLS {
                state.unanswered_in = executed;
                return Err(DmaError::NoAnswer);
            }
            if state.unattended() && !state.replaced {
                state.replaced = true;
                drop(state);
                let _replacing = Replacing(self);
                self.wait_until_readable(timeout);
                self.receive_for_others();
            } else {
                drop(self.changed.wait_timeout(state, timeout).ignore_poison());
            }
        }
    }

    /// An error ends the wait early; receiving then finds it.
    fn wait_until_readable(&self, timeout: Duration) {
        let timeout = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: timeout.subsec_nanos().into() };
        let _ = poll(&mut [PollFd::new(&*self.stream, PollFlags::IN)], Some(&timeout));
    }

    /// Must be called when the client has disconnected. Waiting threads return immediately.
    pub fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        state.requests.clear();
        drop(state);
        self.changed.notify_all();
    }
}

/// The calling thread receives in place of the connection's thread, until dropped.
struct Replacing<'i>(&'i Inbox);

impl Drop for Replacing<'_> {
    fn drop(&mut self) {
        self.0.lock().replaced = false;
        self.0.changed.notify_all();
    }
}

/// Calls recvmsg(2) once. Returns the number of bytes received, and appends the attached descriptors to `files`.
fn receive(stream: &UnixStream, buffer: &mut [u8], files: &mut Vec<File>) -> io::Result<usize> {
    let mut iovecs = [iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() }];
    let mut fds = [-1; MAX_FDS];
    // SAFETY: the only iovec describes `buffer`, which is borrowed mutably and outlives the call.
    let (bytes, count) = unsafe { stream.recv_with_fds(&mut iovecs, &mut fds)? };
    // SAFETY: the kernel has just installed the first `count` descriptors for this process; they have no other owner.
    files.extend(fds.iter().take(count).map(|fd| unsafe { File::from_raw_fd(*fd) }));
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "an overflow fails the test")]

    use std::io::Write;
    use std::thread;

    use arctic_device_model::host::Function;
    use arctic_device_model::profile::limits::Limits;

    use super::*;
    use crate::vfio_user::ClientDma;
    use crate::vfio_user::budget::ANSWER;
    use crate::vfio_user::channel::tests::connection;
    use crate::vfio_user::quota::Ledger;
    use crate::vfio_user::wire::{TYPE_REPLY, command};

    /// A connection, of which the test's thread is the connection's thread, and its client.
    fn client() -> (Arc<Inbox>, ClientDma, UnixStream) {
        let (sender, inbox, theirs) = connection();
        theirs.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let ledger = Ledger::new(Limits::default(), false);
        (inbox.clone(), ClientDma::new(sender, inbox, 4096, ledger, Function::PF), theirs)
    }

    fn send(stream: &UnixStream, header: Header, body: &[u8]) {
        let header = Header { size: u32::try_from(HEADER_LEN + body.len()).unwrap(), ..header };
        Write::write_all(&mut &*stream, &[&header.encode()[..], body].concat()).unwrap();
    }

    fn request(stream: &UnixStream, id: u16) {
        send(stream, Header { id, command: command::DEVICE_RESET, ..Header::default() }, &[]);
    }

    /// Receives the next DMA_READ of 4 bytes.
    fn dma_read(stream: &UnixStream) -> (Header, [u8; 16]) {
        let (mut header, mut body) = ([0; HEADER_LEN], [0; 16]);
        Read::read_exact(&mut &*stream, &mut header).unwrap();
        Read::read_exact(&mut &*stream, &mut body).unwrap();
        (Header::decode(&header), body)
    }

    fn answer(stream: &UnixStream, (header, fields): (Header, [u8; 16]), data: [u8; 4]) {
        send(stream, Header { flags: TYPE_REPLY, ..header }, &[&fields[..], &data].concat());
    }

    /// The id of the next request; `None` if none has arrived.
    fn received(inbox: &Inbox) -> Option<u16> {
        match inbox.receive(&mut Vec::new(), &mut Vec::new()).unwrap() {
            Received::Request(header) => Some(header.id),
            Received::Reply | Received::Wait { .. } => None,
        }
    }

    fn read(dma: &ClientDma) -> Result<[u8; 4], DmaError> {
        let mut data = [0; 4];
        dma.read_uncharged(0, &mut data).map(|()| data)
    }

    /// A reply arrives while the connection's thread executes a request, for each of several waiting threads. Requests
    /// before the replies are queued in order, and one that is not complete is continued.
    #[test]
    fn replies_arrive_while_a_request_is_executed() {
        let (inbox, dma, theirs) = client();
        request(&theirs, 7);
        assert_eq!(received(&inbox), Some(7));
        thread::scope(|scope| {
            let waiting = [scope.spawn(|| read(&dma)), scope.spawn(|| read(&dma))];
            let questions = [dma_read(&theirs), dma_read(&theirs)];
            request(&theirs, 8);
            answer(&theirs, questions[1], [1; 4]);
            request(&theirs, 9);
            answer(&theirs, questions[0], [1; 4]);
            (&theirs).write_all(&Header { id: 10, size: 16, ..Header::default() }.encode()[..5]).unwrap();
            for waiting in waiting {
                assert_eq!(waiting.join().unwrap(), Ok([1; 4]));
            }
        });
        inbox.executed();
        (&theirs).write_all(&Header { id: 10, size: 16, ..Header::default() }.encode()[5..]).unwrap();
        let ids: Vec<_> = (0..3).map(|_| received(&inbox)).collect();
        assert_eq!(ids, [Some(8), Some(9), Some(10)]);
    }

    /// A thread that began to wait while the connection's thread received takes its place when a request is executed.
    #[test]
    fn a_waiting_thread_takes_over_when_a_request_begins() {
        let (inbox, dma, theirs) = client();
        thread::scope(|scope| {
            let waiting = scope.spawn(|| read(&dma));
            let question = dma_read(&theirs);
            request(&theirs, 1);
            assert_eq!(received(&inbox), Some(1));
            answer(&theirs, question, [2; 4]);
            assert_eq!(waiting.join().unwrap(), Ok([2; 4]));
        });
    }

    /// A client that does not reply while its request is executed is not waited for until it has ended, and then for the
    /// full time.
    #[test]
    fn a_wait_ends_where_no_answer_can_come() {
        let (inbox, dma, theirs) = client();
        request(&theirs, 1);
        assert_eq!(received(&inbox), Some(1));
        let waited = || {
            let begun = Instant::now();
            assert_eq!(read(&dma), Err(DmaError::NoAnswer));
            begun.elapsed()
        };
        let first = thread::scope(|scope| scope.spawn(waited).join().unwrap());
        assert!(first >= POLL_INTERVAL * UNANSWERED_POLLS, "{first:?}");
        // The minimum of several runs: a busy host may delay any of them.
        let next = thread::scope(|scope| (0..5).map(|_| scope.spawn(waited).join().unwrap()).min());
        assert!(next.unwrap() < POLL_INTERVAL, "{next:?}");
        dma_read(&theirs);
        inbox.executed();
        assert!(thread::scope(|scope| scope.spawn(waited).join().unwrap()) >= ANSWER, "no request is executed");
        request(&theirs, 2);
        assert_eq!(received(&inbox), Some(2));
        dma_read(&theirs);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| read(&dma));
            answer(&theirs, dma_read(&theirs), [3; 4]);
            assert_eq!(waiting.join().unwrap(), Ok([3; 4]), "during the next request, it is asked again");
        });
    }

    /// Requests are queued up to a limit; the rest stays in the socket.
    #[test]
    fn the_queue_is_limited() {
        let (inbox, dma, theirs) = client();
        request(&theirs, 0);
        assert_eq!(received(&inbox), Some(0));
        let last = u16::try_from(MOST_REQUESTS + 10).unwrap();
        (1..=last).for_each(|id| request(&theirs, id));
        assert_eq!(thread::scope(|scope| scope.spawn(|| read(&dma)).join().unwrap()), Err(DmaError::NoAnswer));
        assert_eq!(inbox.lock().requests.len(), MOST_REQUESTS);
        for id in 1..=last {
            inbox.executed();
            assert_eq!(received(&inbox), Some(id));
        }
    }
}
