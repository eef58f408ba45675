// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Doorbells, from allocation by the driver to the running context, without submission messages.

use super::*;
use crate::doorbell::{PAGE_BYTES, Page, Ring, Route, WINDOW};
use crate::guc::functions::context::GucContextId;
use crate::guc::messages::hxg::Error;
use arctic_fidelity::proves;

const FAILURE: u32 = 0xe000_0000;
const SUCCESS: u32 = 0xf000_0000;

fn page(number: u64) -> Page {
    Page::at(WINDOW + number * PAGE_BYTES).unwrap()
}

impl Host {
    /// Registers and enables a context that has no work yet.
    fn idle(&mut self, id: u32) {
        self.register_on(id, EngineClass::Copy, 1);
        self.policies(id, 2, 0, 0);
        self.poke(Self::image(id, 0) + 0x1000 + 5 * 4, 0);
        self.set_tail(id, 0);
        self.fast(0x1001, &[id, 1]);
        assert_eq!(self.stepped(), [[3, 0x9000_1002, id, 1]]);
        assert_eq!(self.runs("bcs0"), None);
    }

    fn allocate(&mut self, context: u32, doorbell: u32, offset: u64) -> u32 {
        self.tracked(0x0010, &[context, doorbell, offset as u32, (offset >> 32) as u32, 0])
    }

    fn ring_doorbell(&self, function: Function, number: u64) -> Ring {
        self.gt.doorbells.ring(function, page(number))
    }
}

#[test]
fn a_ring_schedules_the_context() {
    proves!(
        [V13_035, V13_096, V13_099],
        "end to end. After allocation and a tail update, a ring runs the context. After deallocation, rings have no \
        effect"
    );
    let mut host = Host::up();
    host.idle(5);
    assert_eq!(host.allocate(5, 17, page(3).offset()), SUCCESS);
    assert_eq!(host.gt.read(0x3f_f000 + 8 * 17), 0x40_3001);
    assert_eq!(host.gt.read(0x3f_f004 + 8 * 17), 0);
    host.set_tail(5, 64);
    assert_eq!(host.ring_doorbell(numbered(1), 3), Ring::Missed, "the page belongs to the PF");
    assert!(host.stepped().is_empty());
    assert_eq!(host.runs("bcs0"), None);
    assert_eq!(host.ring_doorbell(Function::PF, 3), Ring::Message { groups: 1, to: Route::Guc });
    assert!(host.stepped().is_empty(), "no message is needed or sent");
    assert_eq!(host.runs("bcs0"), Some(5));
    host.end("bcs0", Outcome::Complete);
    assert!(host.stepped().is_empty());
    assert_eq!(host.runs("bcs0"), None);
    assert_eq!(host.tracked(0x0020, &[5]), SUCCESS);
    assert_eq!(host.ring_doorbell(Function::PF, 3), Ring::Missed);
    assert_eq!(host.tracked(0x0020, &[5]), FAILURE | Error::InvalidDoorbellId as u32);
}

#[test]
fn pending_rings_are_handled_once() {
    proves!(V13_089, "pending rings are coalesced and handled once");
    let mut host = Host::up();
    host.idle(5);
    host.allocate(5, 0, page(0).offset());
    host.set_tail(5, 64);
    for _ in 0..1000 {
        host.ring_doorbell(Function::PF, 0);
    }
    host.step();
    assert_eq!(host.runs("bcs0"), Some(5));
    assert!(host.gt.doorbells.take_rung().iter().next().is_none());
}

#[test]
fn invalid_doorbell_requests_are_refused() {
    proves!(
        [V13_036, V13_090, V13_095, V13_096],
        "contexts of other senders, doorbells in memory, and offsets that are not a page of the window are rejected"
    );
    let mut host = Host::up();
    host.idle(5);
    for (context, doorbell, offset, error) in [
        (6, 0, page(0).offset(), Error::ContextNotRegistered),
        (0x1_0005, 0, page(0).offset(), Error::InvalidContextIndex),
        (5, 256, page(0).offset(), Error::InvalidDoorbellId),
        (5, 0, 0, Error::InvalidParams),
        (5, 0, page(0).offset() + 4, Error::InvalidParams),
        (5, 0, WINDOW + 1024 * PAGE_BYTES, Error::InvalidParams),
        (5, 0, 1 << 32 | page(0).offset(), Error::InvalidParams),
        (5, 0, u64::MAX, Error::InvalidParams),
    ] {
        assert_eq!(host.allocate(context, doorbell, offset), FAILURE | error as u32, "{offset:#x}");
    }
    let memory = [5, 0, 0x1234_5000, 0, 0x80_0000];
    assert_eq!(host.tracked(0x0010, &memory), FAILURE | Error::NotSupported as u32);
    assert_eq!(host.tracked(0x0010, &memory[..4]), FAILURE | Error::InvalidSize as u32);
    assert!((0..=255).all(|index| host.gt.doorbells.watched(index).is_none()));
}

#[test]
fn another_functions_context_is_refused() {
    proves!(V13_036, "a VF cannot arm a doorbell for a context of the PF");
    let mut host = Host::up();
    host.idle(5);
    let state = host.guc.state.as_mut().unwrap();
    let context = |function| GucContextId { function, local: 5 };
    assert!(state.scheduler.owned(context(Function::PF)).is_ok());
    assert_eq!(state.scheduler.owned(context(numbered(1))), Err(Error::ContextNotRegistered));
}

#[test]
fn doorbell_is_disarmed_by_deregistration_and_resets() {
    proves!(
        V13_119,
        "a doorbell is disarmed by deregistering its context, CLIENT_SOFT_RESET, FLR, and a reset of the GuC \
        (contract B.6)"
    );
    let mut host = Host::up();
    let armed = |host: &mut Host| {
        host.idle(5);
        assert_eq!(host.allocate(5, 1, page(1).offset()), SUCCESS);
        assert_eq!(host.gt.doorbells.watched(1), Some((Function::PF, page(1))));
    };
    armed(&mut host);
    host.fast(0x4503, &[5]);
    assert_eq!(host.stepped(), [[2, 0x9000_4600, 5]]);
    assert_eq!(host.ring_doorbell(Function::PF, 1), Ring::Missed);

    armed(&mut host);
    assert_eq!(host.mail(&[0x5507])[0], SUCCESS);
    assert_eq!(host.gt.doorbells.watched(1), None);
    host.enable_rings(CTB + ct::G2H);

    armed(&mut host);
    let _ = host.guc.function_reset(&host.gt, &host.engines, numbered(1));
    assert!(host.gt.doorbells.watched(1).is_some(), "another function's FLR");
    host.guc.reset(&host.gt);
    assert_eq!(host.gt.doorbells.watched(1), None);
    assert_eq!(host.gt.read(0xc5c0), 0, "rings are routed to the host again");
}

#[test]
fn flr_disarms() {
    proves!(V13_119, "FLR of a VF disarms its doorbells, even if no firmware runs");
    let mut host = Host::new();
    host.gt.doorbells.arm(9, numbered(2), page(0)).unwrap();
    host.gt.doorbells.arm(10, numbered(3), page(0)).unwrap();
    let _ = host.guc.function_reset(&host.gt, &host.engines, numbered(2));
    assert_eq!(host.gt.doorbells.watched(9), None);
    assert!(host.gt.doorbells.watched(10).is_some());
}

/// Contract D.10: doorbell rings that the GuC handles for a VF count against its threshold.
#[test]
fn rings_of_a_vf_are_counted() {
    use crate::guc::provisioning::Quota;
    use crate::guc::provisioning::threshold_event::Kind;

    const VF: Function = numbered(1);
    let mut host = Host::up();
    let state = host.guc.state.as_mut().unwrap();
    let functions = &mut state.scheduler.functions;
    state.thresholds.set_period(functions, 1000);
    functions[VF].config.thresholds[Kind::Doorbell as usize] = 2;
    functions[VF].config.doorbells = Quota { begin: 8, count: 1 };
    let context = GucContextId { function: VF, local: 0 };
    state.doorbells.allocate(&host.gt.doorbells, functions, context, (0, page(0))).unwrap();
    for notified in [false, false, true, false] {
        for _ in 0..10 {
            host.ring_doorbell(VF, 0);
        }
        let expected: &[Vec<u32>] = if notified { &[vec![3, 0x9000_5104, 1, 0x8a08]] } else { &[] };
        assert_eq!(host.stepped(), expected);
    }
}
