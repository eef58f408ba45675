//! The automatic report of the ring's head into the PPHWSP (V8-069).

use super::reg;
use super::streamer::Streamer;
use crate::memory::{Fault, Space};

/// Byte of the PPHWSP that holds the head, as MI_REPORT_HEAD writes it too (V8-110).
pub(super) const REPORTED_HEAD: u64 = 16;

/// How many bytes of ring lie between two reports: RING_CTL bits 2:1 (IVB: RING_BUFFER_CTL, 4 KiB only with execlists).
fn interval(ctl: u32) -> Option<u32> {
    match ctl >> 1 & 3 {
        0 => None,
        1 => Some(64 << 10),
        2 => Some(4 << 10),
        _ => Some(128 << 10),
    }
}

impl Streamer<'_> {
    /// Reports the head if it has come into another page (or 16, or 32) since the last look. The parser looks when it
    /// reads ahead: before the first command that it has not seen yet is carried out.
    pub(super) fn auto_report_head(&mut self) -> Result<(), Fault> {
        let head = self.running.position.ring.head;
        let Some(last) = self.running.head_seen.replace(head).filter(|last| *last != head) else { return Ok(()) };
        match interval(self.own(reg::RING_CTL)) {
            Some(bytes) if head / bytes != last / bytes => {
                self.store(Space::Ggtt, self.running.lrc.pphwsp + REPORTED_HEAD, head)
            }
            _ => Ok(()),
        }
    }
}
