// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Destinations of status quadwords: for a host that schedules contexts, the context status buffer in the global
//! hardware status page, with copies in registers (V8-057..059); for the GuC, a FIFO (V8-060).

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::sync::{Mutex, MutexGuard};

use arctic_sriov::number::{high, low};

use super::status::ContextStatus;
use crate::memory::{Fault, Gam, Space};
use crate::registers::{EngineRegisters, engine_offsets as reg};
use crate::sync::IgnorePoison;

/// Number of entries of the buffer.
pub const ENTRIES: u32 = 12;
/// Offset in bytes of the first entry in the status page. Volume 8 states dword 28h, but every driver reads dword 10h
/// (trap T1; i915: I915_HWS_CSB_BUF0_INDEX).
pub const PAGE_ENTRIES: u64 = 0x10 * 4;
/// Offset in bytes of the write pointer in the status page, at the same distance as in Volume 8 (i915:
/// ICL_HWS_CSB_WRITE_INDEX).
pub const PAGE_POINTER: u64 = 0x2f * 4;

/// CSFE_CHICKEN1: disables the report to the status page (xe: GHWSP_CSB_REPORT_DIS).
const NO_PAGE_REPORT: u32 = 1 << 15;
/// Copies of entries 0 to 5, and of 6 to 11 (i915: wa_csb_read).
const STATUS_BUFFER: [u32; 2] = [reg::CTXT_ST_BUF, reg::CTXT_ST_BUF_UPPER];

/// Reports a switch to the host: writes the entry, then the pointer, to registers and to memory. The caller must raise
/// the interrupt afterwards.
#[allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "4 bits of pointer, and a 32-bit page address"
)]
pub fn report(registers: EngineRegisters<'_>, gam: &mut Gam<'_>, status: ContextStatus) -> Result<(), Fault> {
    let after = |pointer: u32| match pointer & 0xf {
        last if last + 1 < ENTRIES => last + 1,
        _ => 0,
    };
    let entry = after(registers.get(reg::CTXT_ST_PTR));
    let half = ENTRIES / 2;
    let copy = STATUS_BUFFER[usize::from(entry >= half)] + entry % half * 8;
    registers.set64(copy, status.into());
    // The same register contains the host's read pointer.
    registers.update(reg::CTXT_ST_PTR, |pointer| pointer & !0xff | entry);
    if registers.get(reg::CSFE_CHICKEN1) & NO_PAGE_REPORT != 0 {
        return Ok(());
    }
    let page = u64::from(registers.get(reg::HWS_PGA));
    gam.write_u64(Space::Ggtt, page + PAGE_ENTRIES + u64::from(entry) * 8, status.into())?;
    // Byte writes are unordered. The entry must be visible before the pointer.
    fence(Ordering::Release);
    gam.write(Space::Ggtt, page + PAGE_POINTER, &entry.to_le_bytes()[..1])
}

/// Depth of the GuC's FIFO; the depth of the hardware FIFO is not public.
const DEPTH: usize = 64;

/// FIFO of one engine's context switches for the GuC, with a read port that returns an entry as two dwords (V8-060;
/// V13-202..204).
#[derive(Default)]
pub struct CsbPort {
    entries: Mutex<Fifo>,
    waiting: AtomicUsize,
}

#[derive(Default)]
struct Fifo {
    entries: VecDeque<u64>,
    /// High dword that the next read returns, if the low dword was read.
    half: Option<u32>,
}

impl CsbPort {
    fn fifo(&self) -> MutexGuard<'_, Fifo> {
        self.entries.lock().ignore_poison()
    }

    /// Appends a switch; if the FIFO is full, the oldest unread entry is dropped.
    pub fn push(&self, status: ContextStatus) {
        let mut fifo = self.fifo();
        if fifo.entries.len() == DEPTH {
            fifo.entries.pop_front();
        }
        fifo.entries.push_back(status.into());
        self.waiting.store(fifo.entries.len(), Ordering::Release);
    }

    /// CSB FIFO Status: number of entries of which no dword was read.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Acquire)
    }

    /// CSB Read Port: low dword of the oldest entry, then its high dword; 0 if the FIFO is empty.
    pub fn read(&self) -> u32 {
        let mut fifo = self.fifo();
        if let Some(high) = fifo.half.take() {
            return high;
        }
        let Some(entry) = fifo.entries.pop_front() else { return 0 };
        fifo.half = Some(high(entry));
        self.waiting.store(fifo.entries.len(), Ordering::Release);
        low(entry)
    }

    /// Reads one entry through the port, if there is one.
    pub fn take(&self) -> Option<ContextStatus> {
        (self.waiting() != 0).then(|| {
            let low = self.read();
            ContextStatus::from(u64::from(self.read()) << 32 | u64::from(low))
        })
    }

    /// Removes all entries, for a device reset. Engine resets keep them.
    pub fn clear(&self) {
        *self.fifo() = Fifo::default();
        self.waiting.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use arctic_fidelity::proves;

    use super::*;

    #[test]
    fn an_entry_takes_two_reads() {
        proves!(
            [V8_060, V13_202, V13_203],
            "entries are in order, each takes two reads; the status register counts them"
        );
        let port = CsbPort::default();
        assert_eq!((port.waiting(), port.read(), port.take()), (0, 0, None));
        port.push(ContextStatus::from(0x1111_2222_3333_4444));
        port.push(ContextStatus::from(0x5555_6666_7777_8888));
        assert_eq!(port.waiting(), 2);
        assert_eq!((port.read(), port.waiting()), (0x3333_4444, 1));
        assert_eq!((port.read(), port.waiting()), (0x1111_2222, 1));
        assert_eq!(port.take(), Some(ContextStatus::from(0x5555_6666_7777_8888)));
        assert_eq!((port.waiting(), port.read()), (0, 0));
        for n in 0..DEPTH as u64 + 1 {
            port.push(ContextStatus::from(n));
        }
        assert_eq!((port.waiting(), port.take()), (DEPTH, Some(ContextStatus::from(1))));
        port.clear();
        assert_eq!((port.waiting(), port.take()), (0, None));
    }
}
