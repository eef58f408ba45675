// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The registers of OAG, its buffer, and the reports that steps write.

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

#[test]
fn the_timer_reports_at_its_instants() {
    proves!(
        [V13_216, V13_228, V13_230, V13_240],
        "with a timer, OAG writes a report to its buffer in the GGTT at each instant: timestamp, source and reason 0, render \
        clocks, no context"
    );
    let stream = Stream::new();
    stream.enable(Some(5));
    stream.at(1000);
    assert_eq!(stream.tail(), 0, "a register read writes no report");
    stream.settle();
    let reports = stream.reports(0);
    assert_eq!(reports.len(), 16, "32, 96, ... 928 and 992");
    let ratio = u64::from(stream.gt.actual_ratio());
    for (n, [id, time, context, ticks]) in (0..).zip(&reports) {
        let tick = 32 + 64 * n;
        assert_eq!((*id, u64::from(*time), *context), (1 << 19 | 1 << 18, tick, 0));
        assert_eq!(u64::from(*ticks), tick * ratio * 125 / 288);
    }
    assert_eq!(stream.gt.read(STATUS), 0);
}

#[test]
fn a_step_writes_a_bounded_number_of_reports() {
    let stream = Stream::sized(5);
    stream.enable(Some(5));
    stream.at(64 * 1300);
    assert!(stream.step().0 && stream.tail() == 512 * 256);
    assert!(stream.step().0 && stream.tail() == 1024 * 256);
    let (more, next) = stream.step();
    assert!(!more && stream.tail() == 1300 * 256);
    assert_eq!(next, u64::MAX, "1 ms after this step, of which the time is the end of time");
    let now = stream.clock.now();
    stream.gt.observation.step_at(0);
    assert_eq!(stream.gt.step_observation(now), (false, now + 1_000_000));
}

#[test]
fn the_buffer_wraps_at_its_end_and_not_at_an_address() {
    let stream = Stream::new();
    let reports = SIZE / 256;
    stream.gt.write(HEAD, BASE + SIZE - 512);
    stream.gt.write(TAIL, BASE + SIZE - 512);
    stream.enable(Some(5));
    stream.at(64 * 4);
    stream.settle();
    assert_eq!((stream.tail(), stream.reasons(SIZE - 512)), (512, vec![reason::TIMER; 4]));
    assert_eq!(stream.dword((reports - 1) * 256 + 4), 96);
    assert_eq!(stream.dword(4), 160, "the third is at the base");
    assert_eq!(stream.gt.read(STATUS), 0);
}

/// Reports whose length does not divide the size: the end of one is at the base.
#[test]
fn a_report_may_straddle_the_end() {
    let stream = Stream::new();
    stream.gt.write(GLOBAL_CONTROL, 1 | 2 | 5 << 2);
    stream.write(CONTROL, 1 << 2 | 1);
    let fit = SIZE / 448;
    for n in 1..=fit + 1 {
        stream.at(64 * u64::from(n));
        stream.settle();
        stream.gt.write(HEAD, stream.gt.read(TAIL));
    }
    assert_eq!(stream.tail(), (fit + 1) * 448 - SIZE);
    let last = fit * 448;
    assert_eq!(stream.dword(last + 8), 32 + 64 * fit, "timestamp");
    assert!(last + 448 > SIZE && stream.dword(last + 24) != 0, "ticks");
}

#[test]
fn a_full_buffer_is_overwritten_and_shown() {
    proves!(V13_213, "a report that makes the tail reach or pass the head sets the overflow bit; software clears it");
    let stream = Stream::new();
    let most = u64::from(SIZE / 256);
    stream.enable(Some(5));
    stream.at(64 * (most - 1));
    stream.settle();
    assert_eq!((stream.tail(), stream.gt.read(STATUS)), (SIZE - 256, 0), "all but one");
    stream.at(64 * most);
    stream.settle();
    assert_eq!((stream.tail(), stream.gt.read(STATUS)), (0, 2));
    stream.at(64 * (most + 1));
    stream.settle();
    assert_eq!((stream.tail(), u64::from(stream.dword(4))), (256, 32 + 64 * most), "the oldest report is overwritten");
    stream.gt.write(STATUS, 0);
    assert_eq!(stream.gt.read(STATUS), 0);
    // With the bit that disables it, reports are dropped.
    stream.gt.write(BUFFER, BASE | 2 | 1);
    stream.gt.write(HEAD, BASE + 512);
    stream.at(64 * (most + 3));
    stream.settle();
    assert_eq!((stream.tail(), stream.gt.read(STATUS)), (256, 2 | 8));
    let (_, lost) = stream.gt.observation.counts();
    assert_eq!(lost, 2);
}

#[test]
fn a_backlog_beyond_the_buffer_is_lost_and_shown() {
    proves!(V13_213, "more reports were due than the buffer holds: report lost and overflow");
    let stream = Stream::new();
    stream.enable(Some(5));
    stream.at(64 * 5000);
    stream.settle();
    assert_eq!(stream.gt.read(STATUS), 3);
    let (written, lost) = stream.gt.observation.counts();
    assert_eq!((written, lost), (513, 5000 - 513));
    assert_eq!(u64::from(stream.dword(stream.tail() + SIZE - 252)), 32 + 64 * 4999, "the newest is last");
}

#[test]
fn the_size_may_be_eightfold() {
    let stream = Stream::sized(3);
    stream.gt.write(BUFFER, BASE | 1);
    stream.gt.write(DEBUG, 1 << 28 | 1 << 12);
    stream.enable(Some(5));
    stream.at(64 * 600);
    stream.settle();
    assert_eq!((stream.tail(), stream.gt.read(STATUS)), (600 * 256, 0), "beyond 128 KiB");
}

#[test]
fn nothing_is_written_while_oag_is_disabled() {
    proves!(V13_239, "counters advance and reports are made from the enable on, until the disable");
    let stream = Stream::new();
    stream.at(500);
    stream.settle();
    stream.write(TRIGGER, 1);
    stream.settle();
    assert_eq!((stream.tail(), stream.gt.read(0xd980)), (0, 0));
    stream.enable(Some(5));
    stream.at(1000);
    stream.write(CONTROL, 0);
    let written = stream.tail();
    assert_eq!(written, 8 * 256, "reports due before the disable: 544 to 992");
    assert_eq!(stream.gt.read(CONTROL), 0);
    stream.at(5000);
    stream.settle();
    assert_eq!(stream.tail(), written);
}

/// Where a worker writes the reports, OAG reads as enabled until it has.
#[test]
fn a_disable_is_complete_when_its_reports_are_written() {
    let stream = Stream::sized(5);
    stream.enable(Some(5));
    stream.at(64 * 700);
    assert_eq!(stream.gt.write(CONTROL, 5 << 2), Some(SideEffect::Observe));
    assert_eq!(stream.gt.read(CONTROL), 5 << 2 | 1);
    assert!(stream.step().0);
    assert_eq!(stream.gt.read(CONTROL), 5 << 2 | 1);
    stream.settle();
    assert_eq!((stream.gt.read(CONTROL), stream.tail()), (5 << 2, 700 * 256));
    // An enable in the meantime drops what is left.
    stream.write(CONTROL, 5 << 2 | 1);
    stream.at(64 * 1400);
    stream.gt.write(CONTROL, 5 << 2);
    stream.gt.write(CONTROL, 5 << 2 | 1);
    stream.at(64 * 1402);
    stream.settle();
    assert_eq!(stream.tail(), 702 * 256);
}

#[test]
fn a_write_of_the_trigger_register_makes_a_report() {
    proves!(
        [V13_216, V13_232, V13_234, V13_240],
        "a write of OAG_MMIOTRIGGER by the CPU makes a report with reason 6, source CPU and the value as context, behind the \
        reports that are due before it"
    );
    let stream = Stream::new();
    stream.enable(Some(5));
    stream.at(100);
    stream.write(TRIGGER, 0xcafe);
    assert_eq!(stream.gt.read(TRIGGER), 0);
    assert_eq!(stream.reasons(0), [reason::TIMER, reason::TIMER, reason::MMIO], "the write has moved the tail");
    assert_eq!(stream.reports(0)[2][..3], [1 << 26 | 1 << 25 | 1 << 18, 100, 0xcafe]);
    stream.gt.write(DEBUG, 1 << 30 | 1 << 14);
    stream.write(TRIGGER, 1);
    assert_eq!(stream.tail(), 3 * 256);
}

#[test]
fn internal_triggers_report_at_a_change() {
    proves!([V13_232, V13_240], "a trigger that is on makes a report with its reason when its condition is inverted");
    let stream = Stream::new();
    stream.enable(None);
    stream.at(100);
    for value in [1 << 31, 1 << 31 | 1 << 22, 1 << 31 | 1 << 22] {
        stream.write(0xd924, value);
    }
    stream.write(0xd934, 1 << 22);
    stream.write(0xd934, 1 << 31);
    stream.write(0xd934, 1 << 31 | 1 << 22);
    assert_eq!(stream.reasons(0), [reason::INTERNAL, reason::INTERNAL << 1]);
}

#[test]
fn a_change_of_the_frequency_makes_a_report() {
    proves!(
        V13_242,
        "a request of a frequency makes a report with reason 5, also of the same one, unless it is disabled; the id has the \
        frequency if it is requested"
    );
    let stream = Stream::new();
    stream.gt.write(DEBUG, 1 << 21 | 1 << 22 | 1 << 6);
    stream.enable(None);
    stream.at(100);
    stream.gt.request_ratio(90);
    stream.at(200);
    stream.gt.request_ratio(90);
    stream.settle();
    assert_eq!(stream.reasons(0), [reason::FREQUENCY; 2]);
    assert!(stream.reports(0).iter().all(|report| report[0] & 0x1ff == 90));
    assert_eq!(stream.reports(0)[1][3] - stream.reports(0)[0][3], 100 * 90 * 125 / 288);
    stream.gt.write(DEBUG, 1 << 21 | 1 << 5);
    stream.gt.request_ratio(80);
    stream.settle();
    assert_eq!(stream.tail(), 512);
}

#[test]
fn rc6_stops_clocks_and_timer() {
    proves!(
        [V13_215, V13_228],
        "in RC6 GPU_TICKS and counters stand, the timer makes no report, and they go on afterwards"
    );
    let stream = Stream::new();
    stream.gt.write(0xa188, 0x0001_0001);
    stream.gt.permit_rc6(true);
    stream.gt.write(DEBUG, 1 << 18);
    stream.enable(Some(5));
    stream.at(100);
    stream.gt.write(0xa188, 0x0001_0000);
    let asleep = stream.gt.read(0xda90);
    stream.at(50_000);
    assert_eq!(stream.gt.read(0xda90), asleep);
    stream.gt.write(0xa188, 0x0001_0001);
    stream.at(50_100);
    assert!(stream.gt.read(0xda90) > asleep);
    stream.settle();
    assert_eq!(stream.reasons(0), [reason::TIMER, reason::TIMER, reason::SLEEP, reason::TIMER, reason::TIMER]);
    let times: Vec<_> = stream.reports(0).iter().map(|report| report[1]).collect();
    assert_eq!(times, [32, 96, 100, 50_016, 50_080]);
    // Also while OAG is off.
    stream.write(CONTROL, 0);
    stream.gt.write(0xa188, 0x0001_0000);
    let asleep = stream.gt.read(0xda90);
    stream.at(90_000);
    assert_eq!(stream.gt.read(0xda90), asleep);
    stream.gt.write(0xa188, 0x0001_0001);
    stream.at(90_000 + 288);
    assert_eq!(stream.gt.read(0xda90) - asleep, stream.gt.actual_ratio() * 125);
}

/// A0 has the clocks in which any engine runs a context; it needs the enable and the resume bit.
#[test]
fn a0_counts_the_time_of_the_engines() {
    proves!(
        [V13_209, V13_214, V13_236, V13_243],
        "A0 advances while an engine runs a context and the counters are resumed and enabled"
    );
    let stream = Stream::new();
    let gt = &stream.gt;
    let [render, copy] = [EngineClass::Render, EngineClass::Copy].map(|class| XE_HPG.engines.find(class, 0).unwrap());
    let clocks = |ticks: u32| ticks / 288 * gt.actual_ratio() * 125;
    stream.enable(None);
    stream.at(2880);
    assert_eq!(gt.read(0xd980), 0, "idle");
    gt.start_context_clock(render);
    stream.at(2 * 2880);
    gt.start_context_clock(copy);
    stream.at(3 * 2880);
    gt.stop_context_clock(render, gt.timestamp());
    stream.at(4 * 2880);
    gt.stop_context_clock(copy, gt.timestamp());
    stream.at(10 * 2880);
    assert_eq!((gt.read(0xd980), gt.read(0xda90)), (clocks(3 * 2880), clocks(10 * 2880)));
    gt.start_context_clock(render);
    gt.write(GLOBAL_CONTROL, 0);
    stream.at(11 * 2880);
    assert_eq!(gt.read(0xd980), clocks(3 * 2880), "stopped");
    gt.write(GLOBAL_CONTROL, 1);
    stream.write(CONTROL, 0);
    stream.at(12 * 2880);
    assert_eq!(gt.read(0xd980), clocks(3 * 2880), "disabled");
    // A driver may load counters.
    gt.write(0xd984, 0x7f);
    gt.write(0xdb28, 5);
    assert_eq!((gt.read(0xd984), gt.read(0xd980), gt.read(0xdb28)), (0x7f, clocks(3 * 2880), 5));
}

/// The set TestOa, as drivers write it.
#[test]
fn the_self_test_counts_its_fractions() {
    proves!(
        V13_255,
        "B counters have the clocks in which a comparison of the considered signals with a value holds; all signals are 0 while \
        their network is off or the generator is not connected"
    );
    let stream = Stream::new();
    let gt = &stream.gt;
    let registers = [
        0x4, 0xffff, 0x3, 0xffff, 0x7, 0xffff, 0x10_0002, 0xfff7, 0x10_0002, 0xffcf, 0x10_0082, 0xffef, 0x10_00c2,
        0xffe7, 0x10_0001, 0xffe7,
    ];
    for (at, value) in (0xd940..).step_by(4).zip(registers) {
        gt.write(at, value);
    }
    stream.enable(None);
    let tick = std::cell::Cell::new(0);
    let deltas = || {
        let b = || [0, 1, 2, 3, 4, 5, 6, 7].map(|n| gt.read(0xda94 + 4 * n));
        let (before, ticks) = (b(), gt.read(0xda90));
        tick.set(tick.get() + 2880);
        stream.at(tick.get());
        let ticks = gt.read(0xda90) - ticks;
        let after = b();
        [0, 1, 2, 3, 4, 5, 6, 7].map(|n| f64::from(after[n] - before[n]) / f64::from(ticks))
    };
    let constant = [0.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0];
    assert_eq!(deltas(), constant);
    gt.write(0x9888, 0x1008_0ff3);
    assert_eq!(deltas(), constant, "the network is off");
    gt.write(0xd04, 1 << 9);
    let fractions = [0.0, 1.0, 1.0, 1.0 / 2.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 6.0, 2.0 / 3.0];
    assert!(deltas().iter().zip(fractions).all(|(seen, exact)| (seen - exact).abs() < 1e-4));
    gt.write(0x9888, 0x1007_0000);
    assert!((deltas()[3] - 0.5).abs() < 1e-4, "another node");
    gt.write(0x9888, 0x1008_0000);
    assert_eq!(deltas(), constant);
}

#[test]
fn only_a_reset_of_the_gt_resets_oag() {
    proves!(V13_212, "the reset of an engine keeps OAG's registers and counters; a reset of the GT clears them");
    let stream = Stream::new();
    let gt = &stream.gt;
    stream.enable(Some(5));
    gt.start_context_clock(XE_HPG.engines.find(EngineClass::Render, 0).unwrap());
    stream.at(2880);
    let (ticks, busy) = (gt.read(0xda90), gt.read(0xd980));
    gt.registers.reset_engine(XE_HPG.engines.find(EngineClass::Render, 0).unwrap());
    stream.settle();
    assert_eq!((gt.read(CONTROL), gt.read(BUFFER), gt.read(GLOBAL_CONTROL)), (5 << 2 | 1, BASE | 1, 3 | 5 << 2));
    assert_eq!((gt.read(0xda90), gt.read(0xd980), stream.tail()), (ticks, busy, 45 * 256));
    gt.reset_observation();
    let all = [CONTROL, DEBUG, STATUS, HEAD, TAIL, BUFFER, GLOBAL_CONTROL, 0xda90, 0xd980, 0xd940];
    assert!(all.iter().all(|register| gt.read(*register) == 0));
    stream.at(5000);
    stream.settle();
    assert_eq!(gt.read(TAIL), 0);
    assert_ne!(gt.read(0xda90), 0, "the clock runs");
}

/// Accesses of the PF through GGTT entries of a VF, invalid entries, and the end of the GGTT.
#[test]
fn bytes_without_a_translation_are_dropped() {
    proves!(V13_218, "OAG accesses the GGTT as function 0; what lies in an invalid page is dropped, without a fault");
    let stream = Stream::new();
    let ggtt = stream.gt.memory.ggtt();
    ggtt.set_entry(u64::from(BASE >> 12) + 1, GgttEntry::from(0));
    ggtt.set_entry(u64::from(BASE >> 12) + 2, GgttEntry::from(u64::from(FUNCTIONS as u32) << 2 | 3));
    stream.enable(Some(5));
    stream.at(64 * 64);
    stream.settle();
    assert_eq!((stream.tail(), stream.gt.read(STATUS)), (64 * 256, 0));
    let timestamps: Vec<_> = [0, 15, 16, 47, 48, 63].iter().map(|n| stream.dword(n * 256 + 4)).collect();
    assert_eq!(timestamps, [32, 32 + 64 * 15, 0, 0, 32 + 64 * 48, 32 + 64 * 63]);
    // The last 4 KiB of the address space, and a buffer beyond its end.
    ggtt.set_entry((1 << 20) - 1, GgttEntry::from(3));
    stream.write(CONTROL, 0);
    stream.point_at(0xffff_f000, 0);
    stream.enable(Some(5));
    stream.at(64 * 64 + 64 * 32);
    stream.settle();
    assert_eq!((stream.gt.read(TAIL), stream.dword(4)), (0xffff_f000_u32.wrapping_add(32 * 256), 64 * 64 + 32));
}

/// Head and tail outside the buffer count modulo its size; nothing else is written.
#[test]
fn pointers_of_a_careless_driver_stay_in_the_buffer() {
    let stream = Stream::new();
    stream.gt.write(HEAD, 0xdead_bee0);
    stream.gt.write(TAIL, 0x1234_5678);
    stream.enable(Some(0));
    stream.at(4000);
    stream.settle();
    assert!(stream.tail() < SIZE && stream.tail().is_multiple_of(64));
    assert_eq!(stream.gt.read(STATUS) & 1, 1, "instants that are too close");
    assert!((SIZE..SIZE + 4096).step_by(4).all(|at| {
        stream.gt.memory.local().slice(u64::from(at), 4).unwrap().load::<u32>(0, Ordering::Acquire).unwrap() == 0
    }));
}

#[test]
fn a_buffer_in_no_memory_is_not_written() {
    let stream = Stream::new();
    stream.gt.write(BUFFER, BASE);
    stream.enable(Some(5));
    stream.at(1000);
    stream.settle();
    assert_eq!((stream.tail(), stream.dword(4)), (0, 0));
}

/// A VF reaches nothing of OAG by MMIO.
#[test]
fn a_vf_has_no_oag() {
    proves!(V13_218, "OAG is the PF's: its registers read 0 for a VF, which cannot write them");
    let stream = Stream::new();
    stream.enable(Some(5));
    stream.at(1000);
    stream.settle();
    let vf = Function::vf(1).unwrap();
    for register in (0xd900..0xdc00).step_by(4).chain([GLOBAL_CONTROL, 0x2b00, 0x9888, 0xd04]) {
        assert_eq!(stream.gt.mmio_read(vf, register), 0, "{register:#x}");
        let before = stream.gt.registers.value(register);
        assert_eq!(stream.gt.mmio_write(vf, register, !0, !0), None);
        assert_eq!(stream.gt.registers.value(register), before);
    }
}

/// The step is one of the unit, so that whatever waits for its steps does.
#[test]
fn a_step_is_recorded_as_the_units() {
    let stream = Stream::new();
    assert!(!stream.gt.memory.used_by(UnitId::Observation, 1));
    let _views = stream.gt.memory.step_views(UnitId::Observation);
}

#[test]
fn the_clock_is_twice_that_of_the_engines() {
    proves!(
        V13_230,
        "timestamps of reports count at 38.4 MHz, twice the rate of the engines' timestamps, from the same zero"
    );
    let stream = Stream::new();
    stream.clock.advance(1_000_000_000);
    assert_eq!((stream.gt.oa_time(), stream.gt.timestamp()), (38_400_000, 19_200_000));
    assert_eq!((stream.gt.read(0xa500), stream.gt.read(0xc3e8)), (38_400_000, 19_200_000));
    for _ in 0..100 {
        stream.clock.advance(37);
        assert_eq!(stream.gt.oa_time() / 2, stream.gt.timestamp());
    }
}

#[test]
fn the_registers_of_observation_exist() {
    proves!(
        [V13_235, V13_236],
        "context id, status, pointers and buffer, triggers, the sixteen registers of the comparisons, those of the flexible \
        counters, and the counters themselves"
    );
    let GtBench { gt, .. } = bench();
    let run = |first: u32, dwords: u32| (0..dwords).map(move |n| first + 4 * n);
    let registers = [0x2364, 0x2968, 0x1_511c, 0xdafc, 0xdb00, 0xdb04, 0xdb08, 0xd924, 0xd934, 0xda90, 0xdb20, 0xdb28];
    let flexible = [0xe458, 0xe558, 0xe658, 0xe758, 0xe45c, 0xe55c, 0xe65c];
    let counters = run(0xd980, 64).chain(run(0xda80, 4)).chain(run(0xda94, 16));
    let all = registers.into_iter().chain(flexible).chain(run(0xd940, 16)).chain(counters);
    for register in all {
        assert!(gt.registers.decode(register).is_some(), "{register:#x}");
    }
    for (register, value) in flexible.into_iter().zip(1..) {
        gt.write(register, value << 24 | 0x5a);
        assert_eq!(gt.read(register), value << 24 | 0x5a);
    }
}

#[test]
fn device_memory_is_counted_in_the_unit_of_the_super_queue() {
    proves!(
        V13_246,
        "A36 and A37 have reads and writes of device memory in units of 128 bytes, or of four transactions of 64 bytes"
    );
    let stream = Stream::new();
    let gt = &stream.gt;
    gt.count_memory_traffic([4096, 4096]);
    stream.enable(None);
    gt.count_memory_traffic([4096, 8192]);
    assert_eq!([0xdb20, 0xdb28].map(|register| gt.read(register)), [16, 32], "since the enable");
    gt.write(0x8718, 1 << 30 | 1 << 29);
    gt.count_memory_traffic([4096, 8192]);
    assert_eq!([0xdb20, 0xdb28].map(|register| gt.read(register)), [16 + 32, 32 + 64]);
}

#[test]
fn the_status_shows_the_stream() {
    let stream = Stream::new();
    assert_eq!(stream.gt.stream_status(), None);
    stream.enable(Some(5));
    stream.at(100);
    stream.settle();
    let status = stream.gt.stream_status().unwrap();
    assert_eq!((status.unit.as_str(), status.enabled, status.period_ns), ("OAG", true, Some(1667)));
    assert_eq!((status.bytes, status.written, status.lost), (256, 2, 0));
    stream.write(CONTROL, 1 << 2);
    let status = stream.gt.stream_status().unwrap();
    assert_eq!((status.enabled, status.bytes, status.written), (false, 448, 2));
}

#[test]
fn a_half_full_buffer_raises_an_interrupt() {
    proves!(
        [V13_201, V13_237],
        "the event of observation, in the identity of class 4 and instance 2, is raised when the tail comes to half of the buffer \
        from the head, and not again until it was below"
    );
    let stream = Stream::new();
    let gt = &stream.gt;
    gt.write(0x19_003c, 0xffff);
    gt.write(0x19_00ec, 0);
    gt.write(0x19_0008, 1 << 31);
    let half = u64::from(SIZE / 256 / 2);
    let raised = || gt.read(0x19_0018) >> 20 & 1;
    stream.enable(Some(5));
    stream.at(64 * (half - 1));
    stream.settle();
    assert_eq!(raised(), 0);
    stream.at(64 * half);
    stream.settle();
    assert_eq!(raised(), 1);
    gt.write(0x19_0070, 1 << 20);
    assert_eq!(gt.read(0x19_0060), 1 << 31 | 2 << 20 | 4 << 16 | 1 << 12);
    gt.write(0x19_0060, 1 << 31);
    gt.write(0x19_0018, 1 << 20);
    stream.at(64 * (half + 5));
    stream.settle();
    assert_eq!(raised(), 0, "it is still half full");
    gt.write(HEAD, gt.read(TAIL));
    stream.at(64 * (2 * half + 5));
    stream.settle();
    assert_eq!(raised(), 1);
}
