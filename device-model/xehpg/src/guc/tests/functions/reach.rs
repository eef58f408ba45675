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
    fn asked() -> Self {
        let rig = Rig::talking();
        rig.host.ram.0[1].asked.store(true, Ordering::SeqCst);
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

    fn ask(&mut self) {
        self.send_typed(VF1, 0, 0x0509, &[0x1001_0002, 80, 20]);
    }
}

/// If any access to the ring fails, the GuC retries without a further notification and replies once.
#[test]
fn a_ring_is_tried_again() {
    for (writes, lost) in [(false, DESCRIPTOR), (false, PAYLOAD), (true, HEAD), (true, TAIL_TO_HOST)] {
        let mut rig = Rig::asked();
        for _ in 0..3 {
            rig.ask();
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

/// If a message was written but its interrupt was not, the interrupt is written later.
#[test]
fn an_interrupt_is_tried_again() {
    let mut rig = Rig::asked();
    rig.ask();
    rig.step_without(0b10, Some((true, INTERRUPTS)));
    assert_eq!((rig.messages, rig.host.deadline), (0, Some(rig.host.clock.now() + PAUSE)));
    rig.step_without(0, None);
    assert_eq!((rig.messages, rig.host.deadline), (0b10, None));
    assert_eq!(rig.received(VF1), ANSWER);
}

/// A ring that stays inaccessible is disabled after a timeout. If its memory is not accessed through a client, it is
/// disabled immediately.
#[test]
fn a_ring_is_given_up() {
    for asked in [true, false] {
        let mut rig = Rig::asked();
        rig.host.ram.0[1].asked.store(asked, Ordering::SeqCst);
        rig.ask();
        // The number of attempts within this time is irrelevant.
        for _ in 0..if asked { 1000 } else { 0 } {
            rig.step_without(0b10, Some((false, DESCRIPTOR)));
            assert!(rig.host.deadline.is_some());
            rig.host.clock.advance(29_000_000);
        }
        rig.host.clock.advance(1_000_000_000);
        rig.step_without(0b10, Some((false, DESCRIPTOR)));
        assert_eq!(rig.host.deadline, None, "{asked}");
        rig.step_without(0b10, None);
        assert!(rig.received(VF1).is_empty(), "{asked}");
        rig.connect(VF1);
        rig.ask();
        rig.step_without(0b10, None);
        assert_eq!(rig.received(VF1), ANSWER, "{asked}: registered again");
    }
}
