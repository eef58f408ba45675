//! Guest memory without a file descriptor: DMA_READ and DMA_WRITE messages to the client.

use std::collections::HashMap;
use std::io;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use super::channel::Sender;
use super::wire::{Builder, FLAG_ERROR, Header, command};

/// How long anybody waits for the client; QEMU answers from its main loop.
const REPLY_TIMEOUT: Duration = Duration::from_secs(1);

/// How long an engine, or the GuC, may have waited for one client in vain before it is no longer waited for: everybody
/// else waits with it. An answer within [`QUICK`] costs nothing; of what has been spent, a [`REGAINED`]th of the time that
/// goes by comes back.
const PATIENCE: Duration = REPLY_TIMEOUT;
const QUICK: Duration = Duration::from_millis(10);
const REGAINED: u32 = 10;

/// Address and count in front of the data.
const ACCESS_LEN: usize = 16;

/// Why a DMA message brought nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DmaError {
    /// The client is gone, or has stopped answering.
    #[error("it does not answer")]
    NoAnswer,
    /// The client refused with this error number; QEMU says ENODEV while bus mastering is off.
    #[error("it refuses with errno {0}")]
    Refused(u32),
    /// Asked from the connection's own thread, which is the one that would have to receive the reply.
    #[error("asked on the thread that receives its answers")]
    WrongThread,
}

type Reply = Result<Vec<u8>, DmaError>;

#[derive(Default)]
struct Pending {
    closed: bool,
    next: u16,
    waiting: HashMap<u16, SyncSender<Reply>>,
}

/// What is left of the patience with a client.
struct Patience {
    left: Duration,
    since: Instant,
}

impl Patience {
    fn new(now: Instant) -> Self {
        Patience { left: PATIENCE, since: now }
    }

    /// How long to wait for the next answer; `None`: not at all.
    fn wait(&mut self, now: Instant) -> Option<Duration> {
        let gone = now.saturating_duration_since(self.since);
        self.left = (self.left + gone / REGAINED).min(PATIENCE);
        self.since = now;
        (self.left >= QUICK).then_some(self.left)
    }

    /// An answer has taken this long, or has not come.
    fn spend(&mut self, waited: Duration, answered: bool) {
        if waited > QUICK || !answered {
            self.left = self.left.saturating_sub(waited);
        }
    }
}

/// The client as the owner of guest memory. Engines ask, the connection's thread routes the replies.
pub struct ClientDma {
    sender: Sender,
    receiver: ThreadId,
    max_data: usize,
    pending: Mutex<Pending>,
    patience: Mutex<Patience>,
}

impl ClientDma {
    /// For a client that takes at most `max_data` bytes a message; called on the thread that receives its messages.
    pub(super) fn new(sender: Sender, max_data: usize) -> Self {
        ClientDma {
            sender,
            receiver: thread::current().id(),
            max_data: max_data.max(1),
            pending: Mutex::default(),
            patience: Mutex::new(Patience::new(Instant::now())),
        }
    }

    /// Fills `data` from guest address `iova` on. Who asks holds up others meanwhile: a client that is slow too often is
    /// not waited for.
    pub fn read(&self, iova: u64, data: &mut [u8]) -> Result<(), DmaError> {
        let mut at = iova;
        for piece in data.chunks_mut(self.max_data) {
            let reply = self.ask_patiently(command::DMA_READ, at, piece.len(), &[])?;
            let bytes = reply.get(ACCESS_LEN..).filter(|bytes| bytes.len() == piece.len());
            piece.copy_from_slice(bytes.ok_or(DmaError::NoAnswer)?);
            at = at.wrapping_add(piece.len() as u64);
        }
        Ok(())
    }

    /// Writes `data` to guest address `iova` on, with the same impatience.
    pub fn write(&self, iova: u64, data: &[u8]) -> Result<(), DmaError> {
        let mut at = iova;
        for piece in data.chunks(self.max_data) {
            self.ask_patiently(command::DMA_WRITE, at, piece.len(), piece)?;
            at = at.wrapping_add(piece.len() as u64);
        }
        Ok(())
    }

    /// Writes a few bytes for somebody who holds up nobody.
    pub fn write_at_leisure(&self, iova: u64, data: &[u8]) -> Result<(), DmaError> {
        self.ask(command::DMA_WRITE, iova, data.len(), data, REPLY_TIMEOUT).map(drop)
    }

    /// Ends the client's connection: it sees its server leave, and its session ends as if it had left itself.
    pub fn hang_up(&self) {
        self.sender.hang_up();
    }

    fn ask_patiently(&self, command: u16, iova: u64, count: usize, data: &[u8]) -> Reply {
        let patience = || self.patience.lock().unwrap_or_else(PoisonError::into_inner);
        let start = Instant::now();
        let wait = patience().wait(start).ok_or(DmaError::NoAnswer)?;
        let reply = self.ask(command, iova, count, data, wait);
        patience().spend(start.elapsed(), !matches!(reply, Err(DmaError::NoAnswer)));
        reply
    }

    fn ask(&self, command: u16, iova: u64, count: usize, data: &[u8], wait: Duration) -> Reply {
        if thread::current().id() == self.receiver {
            return Err(DmaError::WrongThread);
        }
        let (answer, reply) = sync_channel(1);
        let id = self.enlist(answer)?;
        let mut message = Builder::default();
        message.clear().u64(iova).u64(count as u64).bytes(data);
        let header = Header { id, command, size: 0, flags: 0, error: 0 };
        let sent: io::Result<()> = self.sender.send(message.finish(header), None);
        let reply = match sent {
            Ok(()) => reply.recv_timeout(wait).unwrap_or(Err(DmaError::NoAnswer)),
            Err(_) => Err(DmaError::NoAnswer),
        };
        self.lock().waiting.remove(&id);
        reply
    }

    fn enlist(&self, answer: SyncSender<Reply>) -> Result<u16, DmaError> {
        let mut pending = self.lock();
        if pending.closed {
            return Err(DmaError::NoAnswer);
        }
        let first = pending.next;
        let id = (0..=u16::MAX).map(|n| first.wrapping_add(n)).find(|id| !pending.waiting.contains_key(id));
        let id = id.ok_or(DmaError::NoAnswer)?;
        pending.next = id.wrapping_add(1);
        pending.waiting.insert(id, answer);
        Ok(id)
    }

    /// Hands a reply to whoever asked; one that nobody waits for (too late, or made up) is dropped.
    pub(super) fn answered(&self, header: &Header, body: &[u8]) {
        let Some(answer) = self.lock().waiting.remove(&header.id) else {
            log::debug!("reply {} to no question", header.id);
            return;
        };
        let reply = if header.flags & FLAG_ERROR != 0 { Err(DmaError::Refused(header.error)) } else { Ok(body.into()) };
        // The engine may have given up in this moment.
        let _ = answer.try_send(reply);
    }

    /// The client is gone: whoever waits learns it at once.
    pub(super) fn close(&self) {
        let mut pending = self.lock();
        pending.closed = true;
        pending.waiting.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Quick answers cost nothing, however many; a client that never answers is waited for a second, and then for a tenth
    /// of the time.
    #[test]
    fn patience_ends_and_comes_back() {
        let mut now = Instant::now();
        let mut patience = Patience::new(now);
        for _ in 0..10_000 {
            assert_eq!(patience.wait(now), Some(PATIENCE));
            now += 9 * MS;
            patience.spend(9 * MS, true);
        }
        for rounds in [1, 10, 1000] {
            let start = now;
            let mut waited = Duration::ZERO;
            for _ in 0..rounds {
                match patience.wait(now) {
                    Some(wait) => {
                        waited += wait;
                        now += wait;
                        patience.spend(wait, false);
                    }
                    None => now += MS,
                }
            }
            let most = PATIENCE + (now - start) / 9;
            assert!(waited <= most && waited * 20 >= now - start, "{waited:?} of {:?}", now - start);
        }
        assert_eq!(patience.wait(now + 20 * PATIENCE), Some(PATIENCE), "it is forgotten in time");
    }

    /// Answers that come late each time are waited for no longer than no answers are.
    #[test]
    fn late_answers_cost_as_much() {
        let mut now = Instant::now();
        let (mut patience, start, mut waited) = (Patience::new(now), now, Duration::ZERO);
        while now - start < 20 * PATIENCE {
            match patience.wait(now) {
                Some(wait) => {
                    let answered = wait >= 50 * MS;
                    let wait = wait.min(50 * MS);
                    waited += wait;
                    now += wait;
                    patience.spend(wait, answered);
                }
                None => now += MS,
            }
        }
        assert!(waited < 4 * PATIENCE, "{waited:?} of 20 s");
    }
}
