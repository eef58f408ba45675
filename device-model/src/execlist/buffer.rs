//! Where status quadwords go: the context status buffer in the global hardware status page with its copies in registers,
//! for a host that schedules (V8-057..059), and the FIFO of the GuC (V8-060).

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::sync::{Mutex, MutexGuard};

use super::status::ContextStatus;
use crate::memory::{Fault, Gam, Space};
use crate::registers::RegisterFile;

/// Entries of the buffer.
pub const ENTRIES: u32 = 12;
/// Byte in the status page of the first entry. Volume 8 prints dword 28h, every driver reads dword 10h (trap T1;
/// i915: I915_HWS_CSB_BUF0_INDEX).
pub const PAGE_ENTRIES: u64 = 0x10 * 4;
/// Byte in the status page that tells the entry written last, at the same distance as Volume 8 has it (i915:
/// ICL_HWS_CSB_WRITE_INDEX).
pub const PAGE_POINTER: u64 = 0x2f * 4;

/// CSFE_CHICKEN1, and its bit that turns the report to the status page off (xe: GHWSP_CSB_REPORT_DIS).
const CSFE_CHICKEN1: u32 = 0xd4;
const NO_PAGE_REPORT: u32 = 1 << 15;
const HWS_PGA: u32 = 0x80;
/// CTXT_ST_PTR: bits 3:0 the entry written last, bits 11:8 the host's own (i915: reset_csb_pointers).
const STATUS_POINTER: u32 = 0x3a0;
/// CTXT_ST_BUF: copies of entries 0 to 5, and of 6 to 11 (i915: wa_csb_read).
const STATUS_BUFFER: [u32; 2] = [0x370, 0x3c0];

/// Tells the host of a switch: entry, then pointer, in memory and in registers; the interrupt is the caller's, afterwards.
pub fn report(registers: &RegisterFile, base: u32, gam: &mut Gam<'_>, status: ContextStatus) -> Result<(), Fault> {
    let after = |pointer: u32| match pointer & 0xf {
        last if last + 1 < ENTRIES => last + 1,
        _ => 0,
    };
    let entry = after(registers.value(base + STATUS_POINTER));
    let half = ENTRIES / 2;
    let copy = base + STATUS_BUFFER[usize::from(entry >= half)] + entry % half * 8;
    registers.set(copy, status.0 as u32);
    registers.set(copy + 4, (status.0 >> 32) as u32);
    // The host's own pointer is in the same register.
    registers.update(base + STATUS_POINTER, |pointer| pointer & !0xff | entry);
    if registers.value(base + CSFE_CHICKEN1) & NO_PAGE_REPORT != 0 {
        return Ok(());
    }
    let page = u64::from(registers.value(base + HWS_PGA));
    gam.write_u64(Space::Ggtt, page + PAGE_ENTRIES + u64::from(entry) * 8, status.0)?;
    // A byte is not stored behind what came before by itself.
    fence(Ordering::Release);
    gam.write(Space::Ggtt, page + PAGE_POINTER, &[entry as u8])
}

/// Entries that a FIFO of the GuC holds; the depth of the hardware's is not public.
const DEPTH: usize = 64;

/// The FIFO in which the GuC finds the switches of one engine, behind a read port that gives an entry in two dwords
/// (V8-060; V13-202..204).
#[derive(Default)]
pub struct CsbPort {
    entries: Mutex<Fifo>,
    waiting: AtomicUsize,
}

#[derive(Default)]
struct Fifo {
    entries: VecDeque<u64>,
    /// The high dword that the next read gives.
    half: Option<u32>,
}

impl CsbPort {
    fn fifo(&self) -> MutexGuard<'_, Fifo> {
        self.entries.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// A switch is reported; of more than the FIFO holds the oldest goes, since nobody has read it.
    pub fn push(&self, status: ContextStatus) {
        let mut fifo = self.fifo();
        if fifo.entries.len() == DEPTH {
            fifo.entries.pop_front();
        }
        fifo.entries.push_back(status.0);
        self.waiting.store(fifo.entries.len(), Ordering::Release);
    }

    /// CSB FIFO Status: entries that have not been begun to read.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Acquire)
    }

    /// CSB Read Port: low dword of the oldest entry, then its high dword; 0 where there is none.
    pub fn read(&self) -> u32 {
        let mut fifo = self.fifo();
        if let Some(high) = fifo.half.take() {
            return high;
        }
        let Some(entry) = fifo.entries.pop_front() else { return 0 };
        fifo.half = Some((entry >> 32) as u32);
        self.waiting.store(fifo.entries.len(), Ordering::Release);
        entry as u32
    }

    /// Reads one entry through the port, if there is one.
    pub fn take(&self) -> Option<ContextStatus> {
        (self.waiting() != 0).then(|| {
            let low = self.read();
            ContextStatus(u64::from(self.read()) << 32 | u64::from(low))
        })
    }

    /// Forgets everything: the device is reset, not only its engines.
    pub fn clear(&self) {
        *self.fifo() = Fifo::default();
        self.waiting.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// V8-060: entries come in order, each in two reads; the status counts them.
    #[test]
    fn an_entry_takes_two_reads() {
        let port = CsbPort::default();
        assert_eq!((port.waiting(), port.read(), port.take()), (0, 0, None));
        port.push(ContextStatus(0x1111_2222_3333_4444));
        port.push(ContextStatus(0x5555_6666_7777_8888));
        assert_eq!(port.waiting(), 2);
        assert_eq!((port.read(), port.waiting()), (0x3333_4444, 1));
        assert_eq!((port.read(), port.waiting()), (0x1111_2222, 1));
        assert_eq!(port.take(), Some(ContextStatus(0x5555_6666_7777_8888)));
        assert_eq!((port.waiting(), port.read()), (0, 0));
        for n in 0..DEPTH as u64 + 1 {
            port.push(ContextStatus(n));
        }
        assert_eq!((port.waiting(), port.take()), (DEPTH, Some(ContextStatus(1))));
        port.clear();
        assert_eq!((port.waiting(), port.take()), (0, None));
    }
}
