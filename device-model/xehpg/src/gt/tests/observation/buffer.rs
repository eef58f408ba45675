// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The buffer of the reports: its place and size, overflow, careless and hostile drivers.

use super::*;

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
