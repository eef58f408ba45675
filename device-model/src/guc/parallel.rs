//! Work queues of parallel contexts: items that move the ring tails of all members at once (contract F.5).

use crate::memory::{Fault, Gam, Space};

use super::context::Member;
use super::hxg::Error;

/// Descriptor: byte offset up to which items have been consumed.
const HEAD: u64 = 0;
/// Descriptor: byte offset up to which items have been written.
const TAIL: u64 = 4;
/// Descriptor: where the item stands that could not be understood.
const ERROR_OFFSET: u64 = 8;
/// Descriptor: state of the queue.
const STATUS: u64 = 12;
/// State: an item could not be understood (xe: WQ_STATUS_CMD_ERROR).
const STATUS_COMMAND_ERROR: u32 = 3;

/// Item type: nothing, fills the ring up to its end.
const NOOP: u32 = 4;
/// Item type: new tails for all members.
const MULTI_LRC: u32 = 5;

/// Longest ring that is accepted, in bytes; the drivers use 1 and 2 KiB. All items of a ring are taken at once, and a host
/// can see to it that there are always as many as fit.
const LONGEST: u32 = 4 << 10;

/// Where a parallel context's work queue lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkQueue {
    descriptor: u64,
    ring: u64,
    bytes: u32,
}

/// Why the items could not all be consumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    Memory,
    Item,
}

impl From<Fault> for Trouble {
    fn from(_: Fault) -> Self {
        Trouble::Memory
    }
}

impl WorkQueue {
    /// Checks addresses and size of a registration.
    pub fn check(gam: &mut Gam<'_>, (descriptor, ring, bytes): (u64, u64, u32)) -> Result<Self, Error> {
        if bytes == 0 || bytes % 4 != 0 || bytes > LONGEST {
            return Err(Error::InvalidContextRegistration);
        }
        for address in [descriptor, ring, ring.wrapping_add(u64::from(bytes) - 4)] {
            gam.read_u32(Space::Ggtt, address).map_err(|_| Error::InvalidGgttAddress)?;
        }
        Ok(WorkQueue { descriptor, ring, bytes })
    }

    /// Consumes all items that have been written: the tails go into the members' images. A queue that makes no sense
    /// is marked as such in its descriptor and left alone.
    pub fn consume(&self, gam: &mut Gam<'_>, context: u16, members: &[Member]) {
        let Ok(head) = gam.read_u32(Space::Ggtt, self.descriptor + HEAD) else { return };
        let mut at = head;
        if self.consume_from(gam, &mut at, context, members) == Err(Trouble::Item) {
            let _ = gam.write_u32(Space::Ggtt, self.descriptor + ERROR_OFFSET, at);
            let _ = gam.write_u32(Space::Ggtt, self.descriptor + STATUS, STATUS_COMMAND_ERROR);
            // A host can write such items faster than anybody reads them.
            log::debug!("context {context}: work queue item at {at:#x} is not understood");
        }
        if at != head {
            let _ = gam.write_u32(Space::Ggtt, self.descriptor + HEAD, at);
        }
    }

    fn consume_from(&self, gam: &mut Gam<'_>, at: &mut u32, context: u16, members: &[Member]) -> Result<(), Trouble> {
        if gam.read_u32(Space::Ggtt, self.descriptor + STATUS)? == STATUS_COMMAND_ERROR {
            return Ok(());
        }
        // The tail may stand at the very end, which is the same place as the start.
        let tail = gam.read_u32(Space::Ggtt, self.descriptor + TAIL)?;
        if tail > self.bytes || !tail.is_multiple_of(4) || *at > self.bytes || !at.is_multiple_of(4) {
            return Err(Trouble::Item);
        }
        // No more items than the ring has dwords.
        for _ in 0..self.bytes / 4 {
            if *at % self.bytes == tail % self.bytes {
                return Ok(());
            }
            let from = *at % self.bytes;
            let dword =
                |gam: &mut Gam<'_>, n: u32| gam.read_u32(Space::Ggtt, self.ring + u64::from(from) + u64::from(n) * 4);
            let header = dword(gam, 0)?;
            let len = header >> 16 & 0x7ff;
            if from + (len + 1) * 4 > self.bytes {
                return Err(Trouble::Item);
            }
            match header & 0xff {
                NOOP => {}
                MULTI_LRC if len as usize == members.len() + 2 => {
                    let first = dword(gam, 2)?;
                    if first as u16 != context {
                        return Err(Trouble::Item);
                    }
                    for (n, member) in (3..).zip(members) {
                        let tail = if n == 3 { first >> 18 & 0x7ff } else { dword(gam, n)? & 0x7ff_ffff };
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
