// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Writes reports to the OA buffer, page by page.

use arctic_sriov::number::{low, size};

use super::buffer::Buffer;
use super::format::LONGEST;
use crate::memory::ggtt::GGTT_PAGE;
use crate::memory::{Gam, Space, Tlb};

/// Most reports that are encoded before they are written: those of a page.
pub const MOST_REPORTS: usize = 16;

/// What a step of the unit has.
#[derive(Default)]
pub struct Writer {
    /// The TLB of the unit's steps, which access the GGTT only.
    pub tlb: Tlb,
    /// Reports that are to be written.
    pub batch: Batch,
}

/// Reports that are to be written, one after the other.
#[derive(Default)]
pub struct Batch(Vec<u8>);

/// Result of writing a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Offset of the tail.
    pub tail: u32,
    /// Reports that were written.
    pub reports: u64,
    /// Reports that were dropped, because the buffer is full and keeps what it has, or is in no memory.
    pub dropped: u64,
    /// The tail has reached or passed the head.
    pub overflow: bool,
}

impl Batch {
    /// Begins a batch.
    pub fn begin(&mut self) {
        self.0.clear();
        self.0.reserve(MOST_REPORTS.saturating_mul(LONGEST));
    }

    /// Adds a report.
    pub fn add(&mut self, report: &[u8]) {
        self.0.extend_from_slice(report);
    }

    /// Writes the batch, of reports of `bytes` bytes, from `tail` on: offsets. Bytes at addresses without a valid translation are
    /// dropped (V13-218); the others are in memory when this returns.
    pub fn write(&self, gam: &mut Gam<'_>, buffer: &Buffer, (head, tail): (u32, u32), bytes: usize) -> Written {
        let mut written = Written { tail, ..Written::default() };
        let length = u32::try_from(bytes).unwrap_or(0);
        for report in self.0.chunks_exact(bytes.max(1)) {
            let full = buffer.overflows(head, written.tail, length);
            written.overflow |= full;
            if !buffer.global || full && buffer.keeps {
                written.dropped = written.dropped.saturating_add(1);
                continue;
            }
            store(gam, buffer, written.tail, report);
            written.tail = buffer.after(written.tail, length);
            written.reports = written.reports.saturating_add(1);
        }
        written
    }
}

/// Stores a report, of which the end may be at the beginning of the buffer.
fn store(gam: &mut Gam<'_>, buffer: &Buffer, offset: u32, report: &[u8]) {
    let (mut offset, mut rest) = (offset, report);
    while !rest.is_empty() {
        let address = buffer.address(offset);
        let in_page = size(GGTT_PAGE.wrapping_sub(address % GGTT_PAGE));
        let in_buffer = size(u64::from(buffer.size.saturating_sub(offset)));
        let (part, after) = rest.split_at(rest.len().min(in_page).min(in_buffer).max(1));
        // A fault of a page concerns only what lies in it.
        let _ = gam.write(Space::Ggtt, address, part);
        offset = buffer.after(offset, low(part.len() as u64));
        rest = after;
    }
}
