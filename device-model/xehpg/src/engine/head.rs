// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Automatic report of the ring's head in the PPHWSP (V8-069).

use super::streamer::Streamer;
use crate::memory::{Fault, Space};
use crate::registers::engine_fields::RingCtl;

/// Offset of the head report in the PPHWSP, also used by MI_REPORT_HEAD (V8-110).
pub(super) const REPORTED_HEAD: u64 = 16;

/// Returns the distance in bytes between two reports (IVB: RING_BUFFER_CTL, 4 KiB only with execlists).
fn interval(ctl: RingCtl) -> Option<u32> {
    match ctl.head_report() {
        0 => None,
        1 => Some(64 << 10),
        2 => Some(4 << 10),
        _ => Some(128 << 10),
    }
}

impl Streamer<'_> {
    /// Reports the head if it has crossed a boundary of 1, 16 or 32 pages since the last check. Called before each
    /// prefetch.
    #[allow(clippy::arithmetic_side_effects, reason = "an interval is not 0, and the page has a 32-bit address")]
    pub(super) fn auto_report_head(&mut self) -> Result<(), Fault> {
        let head = self.running.position.ring.head;
        let Some(last) = self.running.head_seen.replace(head).filter(|last| *last != head) else { return Ok(()) };
        match interval(self.registers.fields()) {
            Some(bytes) if head / bytes != last / bytes => {
                self.store(Space::Ggtt, self.running.lrc.pphwsp + REPORTED_HEAD, head)
            }
            _ => Ok(()),
        }
    }
}
