// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! CT buffers: replies, wrapping, flow control, and invalid contents.

use std::time::Duration;

use super::*;
use crate::generation::XE_HPG;
use crate::trace::{EventKind, Filter};

/// Contract B.6: requests get exactly one reply, fast requests none unless they fail; lengths are exact.
#[test]
fn replies() {
    let mut host = Host::up();
    host.poke(SCRATCH, 0x4001_0000);
    assert_eq!(host.tracked(0x550e, &[SCRATCH as u32, 0, 1]), 0xf000_0001);
    assert_eq!(host.tracked(0x0509, &[0x1001_0002, 80, 20]), 0xf000_0001);
    assert_eq!(host.tracked(0x0509, &[0x1001_0001, 80]), 0xe000_0103);
    assert_eq!(host.tracked(0x550e, &[SCRATCH as u32, 0]), 0xe000_0102);
    assert_eq!(host.tracked(0x5503, &[0, SCRATCH as u32, 0, 2]), 0xe000_0105, "not a valid list");
    assert_eq!(host.tracked(0x9999, &[]), 0xe000_0030);
    assert_eq!(host.tracked(0x1001, &[70000, 1]), 0xe000_0061);
    assert_eq!(host.tracked(0x550a, &[SCRATCH as u32, 0]), 0xf000_0000);
    host.fast(0x9999, &[1, 2, 3]);
    assert!(host.stepped().is_empty());
    assert_eq!(host.guc.counters().unknown, 2);
}

/// Contract B.6: TLB invalidations get responses with their sequence numbers, after a step boundary.
#[test]
fn tlb_invalidations() {
    let mut host = Host::up();
    let trace = host.gt.trace.subscribe(Filter::default());
    host.fast(0x7000, &[7, 0x8000_0000]);
    host.fast(0x7000, &[8, 0x8000_0001, 0, 0x1000, 0, 3]);
    host.fast(0x7002, &[9, 0x8000_0000]);
    assert_eq!(host.stepped(), [[2, 0x9000_7001, 7], [2, 0x9000_7001, 8], [2, 0x9000_7001, 9]]);
    let events = trace.take(Duration::ZERO).into_iter().map(|event| event.what);
    let invalidations: Vec<_> = events.filter(|what| matches!(what, EventKind::TlbInvalidation { .. })).collect();
    let by = |by: &'static str, all| EventKind::TlbInvalidation { by: by.into(), all };
    let [full, pages] = [by("a full request", false), by("a page-selective request", false)];
    assert_eq!(invalidations, [full, pages, by("a request for all functions", true)]);
}

/// Robustness: zeros are padding up to the length of the ring: a VF's driver fills it with them after the VF was moved (MIG-046).
/// Addresses beyond the GGTT are rejected before an offset is added to them.
#[test]
fn zeros_and_addresses_have_bounds() {
    let mut host = Host::up();
    let beyond = [u32::MAX; 5];
    assert_eq!(host.tracked(0x550a, &beyond[..2]), 0xe000_0080);
    assert_eq!(host.tracked(0x550c, &beyond[..4]), 0xe000_0080);
    assert_eq!(host.tracked(0x550d, &[1, u32::MAX, u32::MAX, u32::MAX, u32::MAX]), 0xe000_0080);
    assert_eq!(host.tracked(0x3003, &[2, u32::MAX, u32::MAX]), 0xe000_0080);
    host.put_padded(&[0; 300]);
    assert!(host.stepped().is_empty());
    assert_eq!((host.peek(CTB + 8), host.peek(CTB)), (0, host.driver.rings.tail()));
}

/// Contract B.6: the host's padding at the end of its ring is skipped; messages to the host wrap at the end.
#[test]
fn rings_wrap() {
    let mut host = Host::up();
    for seqno in 1..3000 {
        host.fast(0x7000, &[seqno, 0x8000_0003]);
        assert_eq!(host.stepped(), [[2, 0x9000_7001, seqno]]);
        assert_eq!(host.peek(CTB), host.driver.rings.tail(), "head follows");
    }
    assert_eq!((host.peek(CTB + 8), host.peek(CTB + 0x808)), (0, 0));
}

/// Contract B.6: the G2H ring is never overrun; messages stay queued until there is space, and no request is executed.
#[test]
fn full_ring() {
    let mut host = Host::up();
    let mut sent = 0;
    for _ in 0..60 {
        for _ in 0..8 {
            sent += 1;
            host.fast(0x7000, &[sent, 0x8000_0000]);
        }
        host.step();
    }
    assert!(host.deadline.is_some(), "the GuC retries");
    let mut seen = Vec::new();
    for _ in 0..40 {
        seen.extend(host.received().into_iter().map(|message| message[2]));
        host.step();
    }
    assert_eq!(seen, (1..=sent).collect::<Vec<_>>());
}

/// Contract B.6: invalid descriptors and lengths are reported in the status, and the ring is no longer used.
#[test]
fn broken_rings() {
    for (corrupt, status) in [
        ((|h: &mut Host| h.poke(CTB + 4, ct::RING_DWORDS)) as fn(&mut Host), 1),
        (|h| h.put_padded(&[0x8001_00ff, 0x2000_1000]), 2),
        (
            |h| {
                h.poke(CTB, 5);
                h.fast(0x7000, &[1, 0]);
            },
            4,
        ),
    ] {
        let mut host = Host::up();
        corrupt(&mut host);
        host.step();
        assert_eq!(host.peek(CTB + 8), status);
        host.received();
        host.fast(0x7000, &[9, 0]);
        assert!(host.stepped().is_empty());
    }
    let mut host = Host::up();
    host.poke(CTB + 0x800, u32::MAX);
    host.fast(0x7000, &[1, 0]);
    host.step();
    assert_eq!(host.peek(CTB + 0x808), 1);
}

/// Robustness: the GuC continues to work with arbitrary contents of the rings and the memory they refer to.
#[test]
fn random_messages() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 16) as u32
    };
    let mut host = Host::up();
    for round in 0..4000 {
        let known = &crate::guc::actions::ACTIONS[random() as usize % crate::guc::actions::ACTIONS.len()];
        let kind = [0, 1, 2, random() & 7][random() as usize % 4];
        let mut message = vec![0, kind << 28 | u32::from(known.code)];
        let len = match known.length {
            crate::guc::actions::Length::Exact(n)
            | crate::guc::actions::Length::AtLeast(n)
            | crate::guc::actions::Length::Either(n, _) => n,
            crate::guc::actions::Length::Pairs(n) => n,
        } as u32;
        for _ in 0..if random() % 4 == 0 { random() % 20 } else { len } {
            message.push(match random() % 6 {
                0 => random(),
                1 => random() % 8,
                2 => SCRATCH as u32 + random() % 0x1000,
                3 => Host::image(random() % 8, 0) as u32,
                4 => 0x2001_0001 + ((random() % 5) << 16),
                _ => random() % 3,
            });
        }
        message[0] = random() << 16 | (message.len() as u32 - 1);
        host.put_padded(&message);
        if random() % 3 == 0 {
            for id in XE_HPG.engines.all() {
                let loaded = host.engines.lock(id).loaded().is_some();
                if loaded && random() % 2 == 0 {
                    let outcomes =
                        [Outcome::Complete, Outcome::Preempted, Outcome::Waiting, Outcome::Halted(Halt::Fault(FAULT))];
                    host.end(XE_HPG.engines.info(id).name, outcomes[random() as usize % 4]);
                }
            }
        }
        if round % 97 == 0 {
            host.clock.advance(u64::from(random()));
        }
        host.step();
        host.received();
        if host.peek(CTB + 8) != 0 || host.peek(CTB + 0x808) != 0 {
            host.enable_rings(CTB + ct::G2H);
        }
        for at in 0..16 {
            host.poke(SCRATCH + at * 4, random());
            host.poke(Host::image(random() % 8, 0) + 0x1000 + 7 * 4, random() & 0x3ff8);
        }
    }
    assert!(host.guc.counters().done > 100, "{:?}", host.guc.counters());
    host.gt.registers.set(0xc000, 0);
    host.guc.reset(&host.gt);
    assert_eq!(host.upload(), 0x8001_f0ec);
}
