// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! CT buffers: the two message rings between host and GuC, with their descriptors (contract B.6, K.7).
#![warn(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod inspect;

use std::collections::VecDeque;

use arctic_sriov::number::count;

use crate::guc::messages::hxg::{CtHeader, MAX_DWORDS, Outgoing};
use crate::memory::{Fault, Gam, Space};
use crate::sync::atomic::{Ordering, fence};

/// Descriptor field: dword offset up to which the receiver has read.
const HEAD: u64 = 0;
/// Descriptor field: dword offset up to which the sender has written.
const TAIL: u64 = 4;
/// Descriptor field: status; 0 = no error.
const STATUS: u64 = 8;

/// Status bit: head or tail is beyond the buffer.
const STATUS_OVERFLOW: u32 = 1 << 0;
/// Status bit: a message extends beyond the tail.
const STATUS_UNDERFLOW: u32 = 1 << 1;
/// Status bit: the receiver's offset was modified by the other side.
const STATUS_MISMATCH: u32 = 1 << 2;

/// Maximum number of zeros in dwords between messages, if the ring is not smaller. After a VF was moved, its driver fills all of
/// the buffer with zeros and changes neither head nor tail (xe: xe_guc_ct_start), so the ring may be full of them; xe's has 1024
/// dwords. The limit bounds the time of a step.
const MOST_ZEROS: u32 = 16384;

/// Maximum time for which all accesses to a ring may fail, in nanoseconds of the card's clock. Guest memory that is
/// accessed through requests to the client may be temporarily inaccessible: the client is blocked on one of its own
/// accesses, or has used up the time for which it may delay others. The limit is a time, because the number of attempts
/// depends on the notifications of all functions.
pub const MOST_OUT_OF_REACH: u64 = 30_000_000_000;

/// Location of one ring, as configured by SELF_CFG.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// GGTT address of the descriptor.
    pub descriptor: u64,
    /// GGTT address of the buffer.
    pub buffer: u64,
    /// Bytes in the buffer, a multiple of 4 KiB.
    pub bytes: u32,
}

impl Location {
    /// Returns whether the descriptor, the buffer and its size are all configured.
    pub fn complete(&self) -> bool {
        self.descriptor != 0 && self.buffer != 0 && self.bytes != 0
    }
}

/// A ring of this many dwords (1 to 2^30). Positions are less than the size. The ring is empty if head equals tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ring(u32);

/// Contents of a ring between head and tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// No message; at most padding.
    Nothing,
    /// A message: its header, and the number of dwords that follow at the head. All of them have been written.
    Message { header: u32, len: u32 },
    /// Invalid contents, with the status bit to set.
    Corrupt(u32),
}

impl Ring {
    fn contains(self, position: u32) -> bool {
        position < self.0
    }

    /// Returns the position `by` dwords after `from`. `by` is at most the size of the ring.
    fn advance(self, from: u32, by: u32) -> u32 {
        let to = from.wrapping_add(by);
        if to < self.0 { to } else { to.wrapping_sub(self.0) }
    }

    /// Returns the number of dwords that have been written and not yet read.
    fn used(self, head: u32, tail: u32) -> u32 {
        tail.checked_sub(head).unwrap_or_else(|| self.0.wrapping_sub(head).wrapping_add(tail))
    }

    /// Returns the number of free dwords. One dword always stays free, because a full ring would be indistinguishable
    /// from an empty one.
    fn room(self, head: u32, tail: u32) -> u32 {
        self.0.saturating_sub(1).saturating_sub(self.used(head, tail))
    }

    /// Returns the number of dwords, at most `len`, from position `from` to the end of the ring.
    fn before_end(self, from: u32, len: u32) -> u32 {
        self.0.saturating_sub(from).min(len)
    }

    /// Advances `head` past the header of the next message. If a message does not fit before the end of the ring, the
    /// sender fills the remainder with zeros; up to `padding` zeros are skipped. `read` is called once for each dword.
    fn next<E>(
        self,
        head: &mut u32,
        tail: u32,
        padding: u32,
        mut read: impl FnMut(u32) -> Result<u32, E>,
    ) -> Result<Next, E> {
        if !self.contains(tail) {
            return Ok(Next::Corrupt(STATUS_OVERFLOW));
        }
        let mut zeros = 0_u32;
        while *head != tail {
            let header = read(*head)?;
            *head = self.advance(*head, 1);
            if header == 0 {
                zeros = zeros.saturating_add(1);
                if zeros > padding && *head != tail {
                    return Ok(Next::Corrupt(STATUS_UNDERFLOW));
                }
                continue;
            }
            let len = CtHeader::from(header).dwords().into();
            let is_complete = len != 0 && len <= self.used(*head, tail);
            return Ok(if is_complete { Next::Message { header, len } } else { Next::Corrupt(STATUS_UNDERFLOW) });
        }
        Ok(Next::Nothing)
    }
}

/// One ring, as accessed by the GuC.
#[derive(Debug)]
pub struct CtBuffer {
    at: Location,
    ring: Ring,
    /// The GuC's offset: the head of a ring that it reads, the tail of a ring that it writes.
    own: u32,
    /// The GuC's offset as last written to the descriptor.
    published: u32,
    /// The last access failed.
    failed: bool,
    /// Time at which the first of the consecutive failures was detected.
    out_of_reach_since: Option<u64>,
    /// The ring is corrupt or permanently inaccessible. It is not used until the host registers it again.
    broken: bool,
}

/// Saved positions of one ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedPosition {
    /// The GuC's offset.
    pub own: u32,
    /// The offset in the descriptor.
    pub published: u32,
    /// The ring is not used.
    pub broken: bool,
}

/// Saved state of CT buffers in use: positions, and the waiting messages with their fences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedChannel {
    /// Host to GuC.
    pub h2g: SavedPosition,
    /// GuC to host.
    pub g2h: SavedPosition,
    /// Fence and dwords of the messages that wait.
    pub waiting: Vec<(u16, Vec<u32>)>,
}

/// A request received from the ring.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'b> {
    /// Fence for the reply.
    pub fence: u16,
    /// Message format; only 0 (HXG) exists.
    pub format: u8,
    /// The HXG dwords.
    pub hxg: &'b [u32],
}

impl CtBuffer {
    /// Opens a ring, with the GuC's offset in descriptor field `own`. Returns `None` if the descriptor cannot be read
    /// or is invalid.
    fn open(gam: &mut Gam<'_>, at: Location, own: u64) -> Option<Self> {
        let ring = Ring(at.bytes / 4);
        let own = gam.read_u32(Space::Ggtt, at.descriptor.wrapping_add(own)).ok()?;
        let reachable =
            CtBuffer { at, ring, own, published: own, failed: false, out_of_reach_since: None, broken: false };
        ring.contains(own).then_some(reachable)
    }

    fn save(&self) -> SavedPosition {
        SavedPosition { own: self.own, published: self.published, broken: self.broken }
    }

    fn restored(at: Location, SavedPosition { own, published, broken }: SavedPosition) -> Option<Self> {
        let ring = Ring(at.bytes / 4);
        let valid = ring.contains(own) && ring.contains(published);
        valid.then_some(CtBuffer { at, ring, own, published, failed: false, out_of_reach_since: None, broken })
    }

    /// Opens the H2G ring for reading.
    pub fn open_h2g(gam: &mut Gam<'_>, at: Location) -> Option<Self> {
        Self::open(gam, at, HEAD)
    }

    /// Opens the G2H ring for writing.
    pub fn open_g2h(gam: &mut Gam<'_>, at: Location) -> Option<Self> {
        Self::open(gam, at, TAIL)
    }

    fn field(&self, gam: &mut Gam<'_>, field: u64) -> Result<u32, Fault> {
        gam.read_u32(Space::Ggtt, self.at.descriptor.wrapping_add(field))
    }

    fn set_field(&self, gam: &mut Gam<'_>, field: u64, value: u32) -> Result<(), Fault> {
        gam.write_u32(Space::Ggtt, self.at.descriptor.wrapping_add(field), value)
    }

    fn break_with(&mut self, gam: &mut Gam<'_>, status: u32) {
        self.broken = true;
        let old = self.field(gam, STATUS).unwrap_or(0);
        let _ = self.set_field(gam, STATUS, old | status);
    }

    /// Records the result of an access.
    fn note(&mut self, failed: bool) {
        self.failed = failed;
        self.out_of_reach_since = self.out_of_reach_since.filter(|_| failed);
    }

    /// Marks the ring as broken, because its memory cannot become accessible again.
    pub fn give_up(&mut self) {
        self.broken = true;
    }

    /// Returns whether the last access failed and may be retried. Marks the ring as broken if all accesses have failed
    /// for too long at time `now`, in nanoseconds.
    pub fn out_of_reach(&mut self, now: u64) -> bool {
        if self.failed && !self.broken {
            let since = *self.out_of_reach_since.get_or_insert(now);
            self.broken = now.saturating_sub(since) >= MOST_OUT_OF_REACH;
        }
        self.failed && !self.broken
    }

    fn address(&self, dword: u32) -> u64 {
        self.at.buffer.wrapping_add(u64::from(dword) * 4)
    }

    /// Copies `into.len()` dwords from dword offset `from`, wrapping at the end of the ring.
    fn copy_out(&self, gam: &mut Gam<'_>, from: u32, into: &mut [u32]) -> Result<(), Fault> {
        let mut room = [[0; 4]; MAX_DWORDS];
        let dwords = room.get_mut(..into.len()).unwrap_or_default();
        let (first, second) = dwords.split_at_mut(self.ring.before_end(from, count(dwords.len())) as usize);
        gam.read(Space::Ggtt, self.address(from), first.as_flattened_mut())?;
        gam.read(Space::Ggtt, self.at.buffer, second.as_flattened_mut())?;
        for (into, dword) in into.iter_mut().zip(dwords) {
            *into = u32::from_le_bytes(*dword);
        }
        Ok(())
    }

    /// Copies `len` dwords to dword offset `to`, wrapping at the end of the ring.
    fn copy_in(&self, gam: &mut Gam<'_>, to: u32, dwords: impl Iterator<Item = u32>, len: u32) -> Result<(), Fault> {
        // A header and the longest message.
        let mut room = [[0; 4]; 1 + MAX_DWORDS];
        for (bytes, dword) in room.iter_mut().zip(dwords) {
            *bytes = dword.to_le_bytes();
        }
        let written = room.get(..len as usize).unwrap_or_default();
        let (first, second) = written.split_at(self.ring.before_end(to, count(written.len())) as usize);
        gam.write(Space::Ggtt, self.address(to), first.as_flattened())?;
        gam.write(Space::Ggtt, self.at.buffer, second.as_flattened())
    }

    /// Reads the next request from the ring into `room`. Returns `None` if the ring is empty, broken or inaccessible.
    /// The caller must publish the new head with [`CtBuffer::publish_head`].
    pub fn receive<'b>(&mut self, gam: &mut Gam<'_>, room: &'b mut [u32; MAX_DWORDS]) -> Option<Incoming<'b>> {
        if self.broken {
            return None;
        }
        let before = self.own;
        let next = self.read_next(gam, room);
        self.note(next.is_err());
        let Ok(Some((header, len))) = next else {
            if next.is_err() {
                self.own = before;
            }
            return None;
        };
        let header = CtHeader::from(header);
        Some(Incoming { fence: header.fence(), format: header.format(), hxg: room.get(..len)? })
    }

    /// Reads the next request into `room`. Returns its header and number of dwords.
    fn read_next(&mut self, gam: &mut Gam<'_>, room: &mut [u32; MAX_DWORDS]) -> Result<Option<(u32, usize)>, Fault> {
        // Read both fields in one access: each access through the client is a message.
        const _: () = assert!(STATUS == TAIL + 4);
        let mut fields = [[0; 4]; 2];
        gam.read(Space::Ggtt, self.at.descriptor.wrapping_add(TAIL), fields.as_flattened_mut())?;
        // Pairs with the host's release store of the tail. The message must be read after the tail.
        fence(Ordering::Acquire);
        let [tail, status] = fields.map(u32::from_le_bytes);
        if tail == self.own || status != 0 {
            return Ok(None);
        }
        let mut head = self.own;
        let read = |dword| gam.read_u32(Space::Ggtt, self.address(dword));
        let next = self.ring.next(&mut head, tail, self.ring.0.min(MOST_ZEROS), read)?;
        self.own = head;
        let (header, len) = match next {
            Next::Nothing => return Ok(None),
            Next::Message { header, len } => (header, len),
            Next::Corrupt(status) => {
                self.break_with(gam, status);
                return Ok(None);
            }
        };
        let Some(hxg) = room.get_mut(..len as usize) else { return Ok(None) };
        self.copy_out(gam, self.own, hxg)?;
        self.own = self.ring.advance(self.own, len);
        Ok(Some((header, len as usize)))
    }

    /// Writes the head to the descriptor if it has changed since it was last published.
    pub fn publish_head(&mut self, gam: &mut Gam<'_>) {
        if self.broken || self.own == self.published {
            return;
        }
        match self.field(gam, HEAD) {
            Ok(head) if head == self.published => {
                let notified = self.set_field(gam, HEAD, self.own);
                self.note(notified.is_err());
                if notified.is_ok() {
                    self.published = self.own;
                }
            }
            Ok(_) => self.break_with(gam, STATUS_MISMATCH),
            Err(_) => self.note(true),
        }
    }

    /// Puts back the requests received since [`CtBuffer::offset`] was `offset`; the head must not have been published since.
    pub fn put_back(&mut self, offset: u32) {
        self.own = offset;
    }

    /// Returns the GuC's own offset in dwords.
    pub fn offset(&self) -> u32 {
        self.own
    }

    /// Appends a message. Returns `false` if the ring is full, broken or inaccessible.
    fn send(&mut self, gam: &mut Gam<'_>, message: &Outgoing) -> bool {
        let Ok(head) = self.field(gam, HEAD) else { return false };
        if !self.ring.contains(head) {
            self.break_with(gam, STATUS_OVERFLOW);
            return false;
        }
        let need = count(message.hxg().len()).saturating_add(1);
        if need > self.ring.room(head, self.own) {
            return false;
        }
        let dwords = std::iter::once(message.ct_header()).chain(message.hxg().iter().copied());
        if self.copy_in(gam, self.own, dwords, need).is_err() {
            return false;
        }
        self.own = self.ring.advance(self.own, need);
        true
    }
}

/// Both rings, and the messages waiting for space in the G2H ring.
#[derive(Debug)]
pub struct Channel {
    /// Requests from the host.
    pub h2g: CtBuffer,
    g2h: CtBuffer,
    waiting: VecDeque<Outgoing>,
}

impl Channel {
    /// Opens both rings. Returns `None` if either cannot be opened.
    pub fn open(gam: &mut Gam<'_>, h2g: Location, g2h: Location) -> Option<Self> {
        Some(Channel {
            h2g: CtBuffer::open_h2g(gam, h2g)?,
            g2h: CtBuffer::open_g2h(gam, g2h)?,
            waiting: VecDeque::new(),
        })
    }

    /// Returns the locations of the rings: host to GuC, GuC to host.
    pub fn locations(&self) -> (&Location, &Location) {
        (&self.h2g.at, &self.g2h.at)
    }

    /// Returns positions and waiting messages.
    pub fn save(&self) -> SavedChannel {
        let waiting = self.waiting.iter().map(|message| (message.fence, message.hxg().to_vec())).collect();
        SavedChannel { h2g: self.h2g.save(), g2h: self.g2h.save(), waiting }
    }

    /// Continues rings at `h2g` and `g2h`, without access to their memory. Returns `None` if a position is outside its
    /// ring, a message has an invalid length, or more than `most` messages wait.
    pub fn restored(h2g: Location, g2h: Location, saved: &SavedChannel, most: usize) -> Option<Self> {
        let message = |(fence, hxg): &(u16, Vec<u32>)| Outgoing::restored(*fence, hxg);
        let waiting = saved.waiting.iter().take(most).map(message).collect::<Option<VecDeque<_>>>()?;
        let channel =
            Channel { h2g: CtBuffer::restored(h2g, saved.h2g)?, g2h: CtBuffer::restored(g2h, saved.g2h)?, waiting };
        (saved.waiting.len() <= most).then_some(channel)
    }

    /// Returns whether either ring is broken. The host must then register them again.
    pub fn broken(&self) -> bool {
        self.h2g.broken || self.g2h.broken
    }

    /// Queues a message for the host.
    pub fn post(&mut self, message: Outgoing) {
        self.waiting.push_back(message);
    }

    /// Returns whether messages, or the tail after them, have not been written yet.
    pub fn unsent(&self) -> bool {
        !self.waiting.is_empty() || !self.g2h.broken && self.g2h.published != self.g2h.own
    }

    /// Drops the waiting messages that answer a request.
    pub fn drop_answers(&mut self) {
        self.waiting.retain(|message| !message.answers_request());
    }

    /// Returns the number of messages waiting for space. While there are any, no requests are executed, which bounds
    /// the queue.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns whether the host has read all messages.
    pub fn all_read(&self, gam: &mut Gam<'_>) -> bool {
        !self.unsent() && self.g2h.field(gam, HEAD) == Ok(self.g2h.own)
    }

    /// Writes queued messages to the ring while there is space, then publishes the tail. Returns whether the host has
    /// new messages to read.
    pub fn flush(&mut self, gam: &mut Gam<'_>) -> bool {
        while let Some(message) = self.waiting.front() {
            if self.g2h.broken || !self.g2h.send(gam, message) {
                break;
            }
            self.waiting.pop_front();
        }
        if self.g2h.broken {
            self.waiting.clear();
        }
        let new = self.g2h.own != self.g2h.published && self.g2h.set_field(gam, TAIL, self.g2h.own).is_ok();
        if new {
            self.g2h.published = self.g2h.own;
        }
        new
    }
}

#[cfg(test)]
mod tests;
