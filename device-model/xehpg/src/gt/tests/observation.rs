// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The registers of OAG, its buffer, and the reports that steps write.

mod buffer;
mod counters;
mod triggers;
mod unit;

use vm_memory::Bytes;

use super::*;
use crate::host::FUNCTIONS;
use crate::memory::ggtt::GgttEntry;
use crate::oa::format::reason;
use crate::topology::UnitId;

const CONTROL: u32 = 0xdaf4;
const DEBUG: u32 = 0xdaf8;
const STATUS: u32 = 0xdafc;
const HEAD: u32 = 0xdb00;
const TAIL: u32 = 0xdb04;
const BUFFER: u32 = 0xdb08;
const TRIGGER: u32 = 0xdb1c;
const GLOBAL_CONTROL: u32 = 0x2b28;

/// GGTT address of the buffer, aligned to 4 KiB only as xe's; local memory begins there.
const BASE: u32 = 0x10_1000;
/// Size of the buffer with size field 0.
const SIZE: u32 = 128 << 10;
/// Masked: no reports of the frequency and of RC6.
const QUIET: u32 = 0x0024_0024;

/// A card whose buffer has this size field.
struct Stream {
    gt: Gt,
    clock: Arc<ManualClock>,
    size: u32,
}

impl Stream {
    fn new() -> Stream {
        Stream::sized(0)
    }

    fn sized(field: u32) -> Stream {
        let size = SIZE << field;
        let region = |len| SharedRegion::anonymous(len).unwrap();
        let ggtt = Ggtt::new(region(GGTT_BYTES));
        for page in 0..u64::from(size) >> 12 {
            ggtt.set_entry((u64::from(BASE) >> 12) + page, GgttEntry::from(page << 12 | 3));
        }
        let memory = Memory::new(XE_HPG.page_tables, region(4 << 20), ggtt, Arc::new(NullHost));
        let clock = Arc::new(ManualClock::default());
        let gt = Gt::new(&crate::registers::tests::profile(), memory, Arc::new(Msis::default()), clock.clone());
        gt.write(DEBUG, QUIET);
        let stream = Stream { gt, clock, size };
        stream.point_at(BASE, field);
        stream
    }

    /// Sets the buffer's registers as the drivers do.
    fn point_at(&self, base: u32, field: u32) {
        for (register, value) in [(STATUS, 0), (HEAD, base), (BUFFER, base | field << 3 | 1), (TAIL, base)] {
            self.gt.write(register, value);
        }
    }

    /// Enables OAG, with a timer.
    fn enable(&self, exponent: Option<u32>) {
        self.gt.write(GLOBAL_CONTROL, 1 | exponent.map_or(0, |exponent| 2 | exponent << 2));
        self.write(CONTROL, 5 << 2 | 1);
    }

    /// Writes a register as a CPU does, with its effect.
    fn write(&self, register: u32, value: u32) {
        match self.gt.write(register, value) {
            None => {}
            Some(SideEffect::Observe) => self.gt.write_reports_of_access(),
            Some(SideEffect::Report(request)) => {
                self.gt.trigger_report(request, None);
                self.gt.write_reports_of_access();
            }
            Some(other) => panic!("{other:?}"),
        }
    }

    /// Sets the time to this tick of OA time.
    fn at(&self, tick: u64) {
        let time = XE_HPG.observation.timebase.nanoseconds(tick);
        self.clock.advance(time - self.clock.now());
    }

    fn step(&self) -> (bool, u64) {
        self.gt.step_observation(u64::MAX)
    }

    /// Steps until nothing is due.
    fn settle(&self) {
        while self.step().0 {}
    }

    fn dword(&self, offset: u32) -> u32 {
        let at = u64::from(offset % self.size);
        self.gt.memory.local().slice(at, 4).unwrap().load(0, Ordering::Acquire).unwrap()
    }

    fn tail(&self) -> u32 {
        self.gt.read(TAIL) - BASE
    }

    /// The reports of 256 bytes between offsets: id, timestamp, context, ticks.
    fn reports(&self, from: u32) -> Vec<[u32; 4]> {
        let end = if self.tail() < from { self.tail() + self.size } else { self.tail() };
        (from..end).step_by(256).map(|at| [0, 4, 8, 12].map(|n| self.dword(at + n))).collect()
    }

    fn reasons(&self, from: u32) -> Vec<u8> {
        self.reports(from).iter().map(|report| (report[0] >> 19 & 0x7f) as u8).collect()
    }
}
