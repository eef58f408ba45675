// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! CT buffers in guest memory that is accessed through requests to the VF's client and is temporarily inaccessible.

use std::ops::Range;
use std::sync::atomic::Ordering;

use super::*;

/// Retry interval of the GuC for inaccessible memory, in nanoseconds.
const PAUSE: u64 = 2_000_000;
/// Guest addresses of VF 1: descriptors, rings, and interrupt page.
const DESCRIPTOR: Range<u64> = 0..0x1000;
const HEAD: Range<u64> = 0..4;
const PAYLOAD: Range<u64> = ct::H2G + 4..ct::G2H;
const TAIL_TO_HOST: Range<u64> = 0x804..0x808;
const INTERRUPTS: Range<u64> = 0x3000..0x4000;
const ANSWER: [[u32; 2]; 1] = [[0x0012_0001, SUCCESS | 1]];

impl Rig {
    /// Both VFs have CT buffers; the memory of VF 1 is accessed through requests to its client.
    fn with_client_memory() -> Self {
        let rig = Rig::talking();
        rig.host.ram.0[1].via_client.store(true, Ordering::SeqCst);
        rig
    }

    /// Runs a GuC step with notifications from the functions in `notified`, while the guest addresses `lost` of VF 1 are
    /// inaccessible (for writes if true, otherwise for reads).
    fn step_without(&mut self, notified: u64, lost: Option<(bool, Range<u64>)>) {
        *self.host.ram.0[1].lost.lock().unwrap() = lost;
        let step = self.host.guc.step(&self.host.gt, &self.host.engines, notified);
        *self.host.ram.0[1].lost.lock().unwrap() = None;
        self.host.deadline = step.next;
        self.messages = step.messages;
    }

    fn send_query(&mut self) {
        self.send_typed(VF1, 0, 0x0509, &[0x1001_0002, 80, 20]);
    }
}

/// If any access to the ring fails, the GuC retries without a further notification and replies once.
#[test]
fn inaccessible_ring_is_retried_and_answered_once() {
    for (writes, lost) in [(false, DESCRIPTOR), (false, PAYLOAD), (true, HEAD), (true, TAIL_TO_HOST)] {
        let mut rig = Rig::with_client_memory();
        for _ in 0..3 {
            rig.send_query();
            for n in 0..3 {
                rig.step_without(u64::from(n == 0) << 1, Some((writes, lost.clone())));
                let soon = rig.host.deadline.is_some_and(|at| at <= rig.host.clock.now() + PAUSE);
                assert!(soon, "{writes} {lost:x?}: {:?}", rig.host.deadline);
            }
            rig.step_without(0, None);
            assert_eq!(rig.received(VF1), ANSWER, "{writes} {lost:x?}");
            assert_eq!(rig.peek(VF1, VF1.base()), rig.drivers[1].rings.tail(), "{writes} {lost:x?}: the head follows");
            rig.step_without(0, None);
            assert!(rig.received(VF1).is_empty() && rig.host.deadline.is_none(), "{writes} {lost:x?}");
        }
    }
}

/// The pause begins at the end of the step, which may have waited for the client for longer.
#[test]
fn the_pause_begins_when_the_step_has_ended() {
    let mut rig = Rig::with_client_memory();
    *rig.host.ram.0[1].slow.lock().unwrap() = Some((rig.host.clock.clone(), 5 * PAUSE));
    rig.send_query();
    rig.step_without(0b10, Some((false, DESCRIPTOR)));
    assert_eq!(rig.host.deadline, Some(rig.host.clock.now() + PAUSE));
}

/// If a message was written but its interrupt was not, the interrupt is written later.
#[test]
fn failed_interrupt_write_is_retried() {
    let mut rig = Rig::with_client_memory();
    rig.send_query();
    rig.step_without(0b10, Some((true, INTERRUPTS)));
    assert_eq!((rig.messages, rig.host.deadline), (0, Some(rig.host.clock.now() + PAUSE)));
    rig.step_without(0, None);
    assert_eq!((rig.messages, rig.host.deadline), (0b10, None));
    assert_eq!(rig.received(VF1), ANSWER);
}

/// A ring that stays inaccessible is disabled after a timeout. If its memory is not accessed through a client, it is
/// disabled immediately.
#[test]
fn ring_is_disabled_after_the_timeout() {
    for with_client_memory in [true, false] {
        let mut rig = Rig::with_client_memory();
        rig.host.ram.0[1].via_client.store(with_client_memory, Ordering::SeqCst);
        rig.send_query();
        // The number of attempts within this time is irrelevant.
        for _ in 0..if with_client_memory { 1000 } else { 0 } {
            rig.step_without(0b10, Some((false, DESCRIPTOR)));
            assert!(rig.host.deadline.is_some());
            rig.host.clock.advance(29_000_000);
        }
        rig.host.clock.advance(1_000_000_000);
        rig.step_without(0b10, Some((false, DESCRIPTOR)));
        assert_eq!(rig.host.deadline, None, "{with_client_memory}");
        rig.step_without(0b10, None);
        assert!(rig.received(VF1).is_empty(), "{with_client_memory}");
        rig.connect(VF1);
        rig.send_query();
        rig.step_without(0b10, None);
        assert_eq!(rig.received(VF1), ANSWER, "{with_client_memory}: registered again");
    }
}
