// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Work queues of parallel contexts. Each item updates the ring tails of all members (contract F.5).

use bitfield_struct::bitfield;

use crate::guc::functions::member::Member;
use crate::guc::messages::hxg::Error;
use crate::memory::{Fault, Gam, Space};

/// Descriptor: byte offset up to which items have been consumed.
const HEAD: u64 = 0;
/// Descriptor: byte offset up to which items have been written.
const TAIL: u64 = 4;
/// Descriptor: offset of an invalid item.
const ERROR_OFFSET: u64 = 8;
/// Descriptor: state of the queue.
const STATUS: u64 = 12;
/// State: an item was invalid (xe: WQ_STATUS_CMD_ERROR).
const STATUS_COMMAND_ERROR: u32 = 3;

/// Header of an item (xe: WQ_TYPE_MASK, WQ_LEN_MASK).
#[bitfield(u32)]
struct ItemHeader {
    /// Type.
    kind: u8,
    __: u8,
    /// Number of dwords behind the header.
    #[bits(11)]
    dwords: u16,
    #[bits(5)]
    __: u8,
}

/// Third dword of a [`MULTI_LRC`] item (xe: WQ_GUC_ID_MASK, WQ_RING_TAIL_MASK).
#[bitfield(u32)]
struct FirstMember {
    /// Number of the context.
    context: u16,
    #[bits(2)]
    __: u8,
    /// Ring tail of the first member in qwords.
    #[bits(11)]
    tail: u16,
    #[bits(3)]
    __: u8,
}

/// Item type: no operation, used to fill the ring up to its end.
const NOOP: u8 = 4;
/// Item type: new tails for all members.
const MULTI_LRC: u8 = 5;

/// Maximum size of a ring, in bytes; the drivers use 1 and 2 KiB. All items are consumed in one call, and a host can
/// refill the ring at any time, so the size bounds the duration of a call.
const LONGEST: u32 = 4 << 10;

fn valid_size(bytes: u32) -> bool {
    bytes != 0 && bytes.is_multiple_of(4) && bytes <= LONGEST
}

/// Location of a parallel context's work queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkQueue {
    descriptor: u64,
    ring: u64,
    bytes: u32,
    /// Offset up to which items have been consumed, if it is not in the descriptor because the client has not answered.
    unpublished: Option<u32>,
}

/// Reason why not all items could be consumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    Memory(Fault),
    Item,
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Self {
        Trouble::Memory(fault)
    }
}

impl WorkQueue {
    /// Bytes of a descriptor that the GuC uses.
    pub const DESCRIPTOR_BYTES: u64 = STATUS + 4;

    /// Returns the addresses of descriptor and ring, and the size of the ring in bytes.
    pub fn location(&self) -> (u64, u64, u32) {
        (self.descriptor, self.ring, self.bytes)
    }

    /// Creates a work queue from its [`WorkQueue::location`]; `None` if the size is invalid. Does not access the
    /// memory.
    pub fn restored((descriptor, ring, bytes): (u64, u64, u32)) -> Option<Self> {
        valid_size(bytes).then_some(WorkQueue { descriptor, ring, bytes, unpublished: None })
    }

    /// Checks the addresses and the size given at registration.
    #[allow(clippy::arithmetic_side_effects, reason = "a valid size is not 0 and a multiple of 4")]
    pub fn check(gam: &mut Gam<'_>, (descriptor, ring, bytes): (u64, u64, u32)) -> Result<Self, Error> {
        if !valid_size(bytes) {
            return Err(Error::InvalidContextRegistration);
        }
        for address in [descriptor, ring, ring.wrapping_add(u64::from(bytes) - 4)] {
            gam.read_u32(Space::Ggtt, address).map_err(|_| Error::InvalidGgttAddress)?;
        }
        Ok(WorkQueue { descriptor, ring, bytes, unpublished: None })
    }

    /// Consumes all items and writes the new tails to the members' images. An invalid item is recorded in the
    /// descriptor, and the queue is ignored from then on. Fails if an access failed: some items may not be consumed. Each
    /// item is consumed once, except for the one at which an access failed: a member never gets an older tail again.
    #[allow(clippy::arithmetic_side_effects, reason = "the descriptor has a 32-bit address")]
    pub fn consume(&mut self, gam: &mut Gam<'_>, context: u16, members: &[Member]) -> Result<(), Fault> {
        let published = gam.read_u32(Space::Ggtt, self.descriptor + HEAD)?;
        let mut at = self.unpublished.take().unwrap_or(published);
        let consumed = self.consume_from(gam, &mut at, context, members);
        if consumed == Err(Trouble::Item) {
            let _ = gam.write_u32(Space::Ggtt, self.descriptor + ERROR_OFFSET, at);
            let _ = gam.write_u32(Space::Ggtt, self.descriptor + STATUS, STATUS_COMMAND_ERROR);
            // Debug level, because a host can produce such items at a high rate.
            log::debug!("context {context}: invalid work queue item at offset {at:#x}");
        }
        if at != published
            && let Err(fault) = gam.write_u32(Space::Ggtt, self.descriptor + HEAD, at)
        {
            self.unpublished = Some(at);
            return Err(fault);
        }
        match consumed {
            Err(Trouble::Memory(fault)) => Err(fault),
            Ok(()) | Err(Trouble::Item) => Ok(()),
        }
    }

    #[allow(
        clippy::arithmetic_side_effects,
        reason = "addresses have 32 bits; offsets are at most `bytes`, which is not 0 and at most LONGEST; a tail has 27 bits"
    )]
    fn consume_from(&self, gam: &mut Gam<'_>, at: &mut u32, context: u16, members: &[Member]) -> Result<(), Trouble> {
        if gam.read_u32(Space::Ggtt, self.descriptor + STATUS)? == STATUS_COMMAND_ERROR {
            return Ok(());
        }
        // A tail at the end of the ring is equivalent to one at its start.
        let tail = gam.read_u32(Space::Ggtt, self.descriptor + TAIL)?;
        if tail > self.bytes || !tail.is_multiple_of(4) || *at > self.bytes || !at.is_multiple_of(4) {
            return Err(Trouble::Item);
        }
        // The ring has at most one item per dword.
        for _ in 0..self.bytes / 4 {
            if *at % self.bytes == tail % self.bytes {
                return Ok(());
            }
            let from = *at % self.bytes;
            let dword =
                |gam: &mut Gam<'_>, n: u32| gam.read_u32(Space::Ggtt, self.ring + u64::from(from) + u64::from(n) * 4);
            let header = ItemHeader::from(dword(gam, 0)?);
            let len = u32::from(header.dwords());
            if from + (len + 1) * 4 > self.bytes {
                return Err(Trouble::Item);
            }
            match header.kind() {
                NOOP => {}
                MULTI_LRC if len as usize == members.len() + 2 => {
                    let first = FirstMember::from(dword(gam, 2)?);
                    if first.context() != context {
                        return Err(Trouble::Item);
                    }
                    for (n, member) in (3..).zip(members) {
                        let tail = if n == 3 { first.tail().into() } else { dword(gam, n)? & 0x7ff_ffff };
                        member.set_tail(gam, tail * 8)?;
                    }
                }
                _ => return Err(Trouble::Item),
            }
            *at = (from + (len + 1) * 4) % self.bytes;
        }
        Ok(())
    }
}
