//! One client's socket: messages in with their file descriptors, messages out, and the wait in between.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::{FromRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use libc::iovec;
use vmm_sys_util::poll::{EpollContext, EpollEvents, PollToken, WatchingEvents};
use vmm_sys_util::sock_ctrl_msg::ScmSocket;

use super::wire::{HEADER_LEN, Header, MAX_FDS};

/// How long a client may leave its socket full before it counts as gone; QEMU's own patience for a reply.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

/// Why a connection ended.
#[derive(Debug)]
pub enum Closed {
    /// The client went away, between two messages.
    ByClient,
    /// The server is stopping.
    Stopped,
    /// The stream is broken: a read or write failed, or it ended inside a message.
    Broken(io::Error),
}

/// What the thread of a function waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// A message from the client.
    Client,
    /// The end of the server.
    Stop,
    /// Another client at the door.
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

/// The sending half, shared by the function's thread (replies) and the engines' (DMA messages).
#[derive(Clone)]
pub struct Sender(Arc<Outgoing>);

struct Outgoing {
    stream: UnixStream,
    /// One message at a time.
    turn: Mutex<()>,
}

impl Sender {
    /// Sends a whole message, with at most one descriptor on its first byte.
    pub fn send(&self, message: &[u8], fd: Option<RawFd>) -> io::Result<()> {
        let Outgoing { stream, turn } = &*self.0;
        let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sent = 0;
        while sent < message.len() {
            let fds = if sent == 0 { fd.as_slice() } else { &[] };
            match stream.send_with_fds(&[&message[sent..]], fds) {
                Ok(n) => sent += n,
                Err(error) => match io::Error::from(error).kind() {
                    ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock => wait_writable(stream)?,
                    _ => return Err(error.into()),
                },
            }
        }
        Ok(())
    }

    /// Ends the connection, both ways; whoever receives sees the client leave.
    pub fn hang_up(&self) {
        // An error means that it has ended already.
        let _ = self.0.stream.shutdown(std::net::Shutdown::Both);
    }
}

fn wait_writable(stream: &UnixStream) -> io::Result<()> {
    let epoll = EpollContext::<Wake>::new()?;
    epoll.add_fd_with_events(stream, WatchingEvents::empty().set_write(), Wake::Client)?;
    match epoll.wait_timeout(&EpollEvents::new(), SEND_TIMEOUT)?.iter().count() {
        0 => Err(ErrorKind::TimedOut.into()),
        _ => Ok(()),
    }
}

/// Decides how long to poll before sleeping: a wake-up costs as much as the whole access, but a thread that spins
/// takes a core from the guest. So it spins only while the gaps between messages have been short enough to pay.
struct Spin {
    limit: Duration,
    budget: Duration,
}

impl Spin {
    fn learn(&mut self, gap: Duration) {
        self.budget = if gap <= self.limit { self.limit } else { self.budget / 2 };
        if self.budget < Duration::from_micros(2) {
            self.budget = Duration::ZERO;
        }
    }
}

/// The receiving half of a connection.
pub struct Channel<'s> {
    stream: UnixStream,
    sender: Sender,
    epoll: &'s EpollContext<Wake>,
    events: EpollEvents,
    refuse: &'s dyn Fn(),
    spin: Spin,
}

impl<'s> Channel<'s> {
    /// Takes over `stream`. `epoll` already watches for [`Wake::Stop`] and [`Wake::Listener`]; `refuse` turns another
    /// client away; `spin` is the longest that a wait polls before it sleeps.
    pub fn new(
        stream: UnixStream,
        epoll: &'s EpollContext<Wake>,
        refuse: &'s dyn Fn(),
        spin: Duration,
    ) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        epoll.add(&stream, Wake::Client)?;
        let sender = Sender(Arc::new(Outgoing { stream: stream.try_clone()?, turn: Mutex::default() }));
        let spin = Spin { limit: spin, budget: Duration::ZERO };
        Ok(Channel { stream, sender, epoll, events: EpollEvents::new(), refuse, spin })
    }

    /// The sending half.
    pub fn sender(&self) -> Sender {
        self.sender.clone()
    }

    /// Waits for a message's header and the descriptors that came with it.
    pub fn receive_header(&mut self, files: &mut Vec<File>) -> Result<Header, Closed> {
        let mut bytes = [0; HEADER_LEN];
        let mut have = 0;
        while have < HEADER_LEN {
            match receive(&self.stream, &mut bytes[have..], files) {
                Ok(0) if have == 0 => return Err(Closed::ByClient),
                Ok(0) => return Err(Closed::Broken(ErrorKind::UnexpectedEof.into())),
                Ok(n) => have += n,
                Err(error) => self.retry(error, have == 0)?,
            }
        }
        Ok(Header::decode(&bytes))
    }

    /// Fills `body` with the rest of the message.
    pub fn receive_body(&mut self, body: &mut [u8]) -> Result<(), Closed> {
        let mut have = 0;
        while have < body.len() {
            match self.stream.read(&mut body[have..]) {
                Ok(0) => return Err(Closed::Broken(ErrorKind::UnexpectedEof.into())),
                Ok(n) => have += n,
                Err(error) => self.retry(error, false)?,
            }
        }
        Ok(())
    }

    fn retry(&mut self, error: io::Error, idle: bool) -> Result<(), Closed> {
        match error.kind() {
            ErrorKind::Interrupted => Ok(()),
            ErrorKind::WouldBlock => self.wait(idle),
            ErrorKind::ConnectionReset if idle => Err(Closed::ByClient),
            _ => Err(Closed::Broken(error)),
        }
    }

    /// Returns when the client's socket may have something to read.
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
            let mut stop = false;
            for event in self.epoll.wait(&self.events).map_err(|error| Closed::Broken(error.into()))?.iter() {
                match event.token() {
                    Wake::Client => ready = true,
                    Wake::Stop => stop = true,
                    Wake::Listener => (self.refuse)(),
                }
            }
            if stop {
                return Err(Closed::Stopped);
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
        // The sending half may outlive this one by a moment, in an engine's hands: closing must not wait for it.
        let _ = self.epoll.delete(&self.stream);
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}

/// One `recvmsg`: some bytes, and the descriptors attached to them appended to `files`.
fn receive(stream: &UnixStream, buffer: &mut [u8], files: &mut Vec<File>) -> io::Result<usize> {
    let mut iovecs = [iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() }];
    let mut fds = [-1; MAX_FDS];
    // SAFETY: the only iovec describes `buffer`, which is borrowed mutably and outlives the call.
    let (bytes, count) = unsafe { stream.recv_with_fds(&mut iovecs, &mut fds)? };
    // SAFETY: the kernel has just installed the first `count` descriptors for this process; nobody else owns them.
    files.extend(fds[..count].iter().map(|fd| unsafe { File::from_raw_fd(*fd) }));
    Ok(bytes)
}
