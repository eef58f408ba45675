// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Guest memory whose client does not answer for a time.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use arctic_base::host::{Access, DmaFault, DmaView};
use vm_memory::VolatileSlice;

use super::*;

/// The view of one step in which accesses to a range of the guest's memory are not answered.
struct Silent<'g> {
    guest: &'g Guest,
    range: Range<u64>,
    unanswered: AtomicBool,
}

impl Silent<'_> {
    fn fail(&self, iova: u64) -> Result<(), DmaFault> {
        self.unanswered.store(true, Ordering::Relaxed);
        Err(DmaFault { iova })
    }
}

impl DmaView for Silent<'_> {
    fn slice(&self, iova: u64, len: usize, access: Access) -> Option<VolatileSlice<'_>> {
        self.guest.slice(iova, len, access).filter(|_| !self.range.contains(&iova))
    }

    fn read_remote(&self, iova: u64, _: &mut [u8]) -> Result<(), DmaFault> {
        self.fail(iova)
    }

    fn write_remote(&self, iova: u64, _: &[u8]) -> Result<(), DmaFault> {
        self.fail(iova)
    }

    fn unanswered(&self) -> bool {
        self.unanswered.load(Ordering::Relaxed)
    }
}

impl EngineBench {
    /// A step in which a page of the guest is not answered.
    fn silent_step(&mut self, page: u32) -> Outcome {
        let range = u64::from(page)..u64::from(page) + 0x1000;
        let view = Silent { guest: &self.guest, range, unanswered: AtomicBool::new(false) };
        self.engine.step(&self.gt, &view, 10_000)
    }

    /// Adds commands to the ring, without a step.
    fn emit(&mut self, dwords: &[u32]) {
        for dword in dwords {
            self.put(RING + self.tail, *dword);
            self.tail += 4;
        }
        self.gt.write(self.base() + 0x30, self.tail, !0);
    }
}

fn store(address: u32, value: u32) -> [u32; 4] {
    [MI_STORE_DATA_IMM | GGTT | 2, 0, address, value]
}

/// The command is executed again until the client answers: neither is its access dropped, nor does the engine stop.
#[test]
fn an_unanswered_access_is_tried_again() {
    let mut bench = EngineBench::new(RCS);
    bench.emit(&[store(DATA, 7), store(DATA + 4, 8)].concat());
    for page in [RING, DATA] {
        assert_eq!(bench.silent_step(page), Outcome::Waiting);
        bench.clock.advance(14_000_000_000);
        assert_eq!((bench.register(0x34), bench.get(DATA + 4)), (0, 0));
    }
    assert_eq!(bench.step(), Outcome::Progress);
    assert_eq!((bench.register(0x34), bench.get(DATA), bench.get(DATA + 4)), (32, 7, 8));
}

/// After a long time, the access is dropped as one without a translation.
#[test]
fn an_access_that_is_never_answered_is_dropped() {
    let mut bench = EngineBench::new(RCS);
    bench.emit(&[&store(DATA, 7)[..], &store(STATUS + 0x100, 8)].concat());
    assert_eq!(bench.silent_step(DATA), Outcome::Waiting);
    bench.clock.advance(30_000_000_000);
    assert_eq!(bench.silent_step(DATA), Outcome::Progress);
    assert_eq!((bench.register(0x34), bench.get(DATA), bench.get(STATUS + 0x100)), (32, 0, 8));
}

/// A page table that was not read is not taken for one without a translation.
#[test]
fn an_unanswered_page_table_is_read_again() {
    let mut bench = EngineBench::new(RCS);
    bench.batch(BEHIND + BATCH, &[MI_STORE_DATA_IMM | 2, 0, DATA, 5]);
    bench.emit(&[MI_BATCH_BUFFER_START | 1 << 8, BATCH]);
    assert_eq!(bench.silent_step(TABLE), Outcome::Waiting);
    assert_eq!(bench.step(), Outcome::Progress);
    assert_eq!(bench.get(BEHIND + DATA), 5);
}

/// A blit continues where it was not answered.
#[test]
fn an_unanswered_blit_is_continued() {
    let mut bench = EngineBench::new(BCS);
    // XY_COLOR_BLT of 4 pixels of 32 bits in two rows, which lie in two pages.
    bench.emit(&[0x5430_0004, 0x03f0_1000, 0, 2 << 16 | 4, DATA, 0xaa]);
    assert_eq!(bench.silent_step(BEHIND + DATA + 0x1000), Outcome::Waiting);
    assert_eq!(bench.register(0x34), 0);
    assert_eq!(bench.step(), Outcome::Progress);
    assert_eq!((bench.get(BEHIND + DATA), bench.get(BEHIND + DATA + 0x1000), bench.register(0x34)), (0xaa, 0xaa, 24));
}
