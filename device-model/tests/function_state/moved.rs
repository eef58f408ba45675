// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A VF that its PF driver saves and restores at any step, as Linux does by SAVE_RESTORE_VF, and whose driver adapts to it.

use arctic_device_model::guc::functions::client::State;
use arctic_device_model::topology::EngineClass;
use arctic_guc_driver::actions::VF_CONTROL;
use arctic_test_support::ct;
use arctic_test_support::kernels::COUNT;
use arctic_test_support::vfs::bench::*;
use arctic_test_support::vfs::world::Time;

use super::kernels::{COUNTER, submit_counting};
use super::{GO, done, state, submit_waiting};

const SAVE: u32 = 0x550b;
const RESTORE: u32 = 0x550b | 1 << 16;
const RESFIX_DONE: u32 = 0x5508;
const RESFIX_START: u32 = 0x550f;
const SUCCESS: u32 = 0xf000_0000;
/// Offset of the buffer for saved state in the memory of the PF's driver.
const BUFFER: u64 = at::DATA;
const VF: u32 = ATTACKER.number() as u32;

/// Offset of the page of the memory-based interrupt, and of the GuC's status and source bytes.
const INTERRUPTS: u64 = at::SCRATCH + 0x8000;
const STATUS: u64 = INTERRUPTS + 25 * 16;
const SOURCE: u64 = INTERRUPTS + 0x400 + 25;

/// Sends a request of the PF's driver; returns the header of the reply. What else arrives is dropped.
fn request_of_pf(bench: &VfBench, code: u32, payload: &[u32]) -> u32 {
    let mut pf = bench.pf.borrow_mut();
    let pf = pf.as_mut().unwrap();
    pf.send(&ct::request(0x12, code, payload));
    for _ in 0..1000 {
        bench.card.step();
        while let Some(message) = pf.take() {
            if message[0] >> 16 == 0x12 && message[1] >> 28 == 0xf {
                return message[1];
            }
            assert_eq!(message[1] >> 28, 9, "{message:x?}");
        }
    }
    panic!("no reply to {code:#x}");
}

/// Moves the VF onto itself by its PF driver.
fn move_by_pf(bench: &VfBench) {
    move_by_pf_and(bench, |_| ());
    assert_eq!(state(bench, ATTACKER), Some(State::FixUp));
    // SW_INT_0, before the reply.
    assert_eq!(bench.attacker.peek(STATUS) & 0xff, 0xff);
}

/// The same, with what the PF driver does between RESTORE and RESUME.
fn move_by_pf_and(bench: &VfBench, then: impl FnOnce(&VfBench)) {
    assert_eq!(request_of_pf(bench, VF_CONTROL, &[VF, 1]), SUCCESS);
    bench.until("the end of the pause", 5000, |bench| bench.card.function_state(ATTACKER).is_paused());
    let address = bench.pf.borrow().as_ref().unwrap().base() + BUFFER;
    let dwords = request_of_pf(bench, SAVE, &[VF, 0, 0, 0]) & 0xfff_ffff;
    assert!(dwords > 0);
    let buffer = [VF, address as u32, 0, dwords];
    assert_eq!(request_of_pf(bench, SAVE, &buffer), SUCCESS | dwords);
    assert_eq!(request_of_pf(bench, RESTORE, &buffer), SUCCESS | dwords);
    then(bench);
    assert_eq!(request_of_pf(bench, VF_CONTROL, &[VF, 2]), SUCCESS);
}

/// What the driver does then, apart from its addresses.
fn fix_up(bench: &mut VfBench, marker: u32) -> u32 {
    let vf = &mut bench.attacker;
    assert_eq!(vf.mail(&[RESFIX_START | marker << 16])[0], SUCCESS);
    assert_eq!(vf.mail(&[0x5509, 1])[..2], [SUCCESS | 2, base(ATTACKER) as u32]);
    vf.mail(&[RESFIX_DONE | marker << 16])[0]
}

/// Kernels in flight, contexts that wait and an idle VF are moved after each number of steps: the results are those of a VF that
/// was not moved. Some are moved again within the fix-up.
#[test]
fn a_vf_is_moved_at_every_step() {
    for mapped in [true, false] {
        let mut in_flight = 0;
        for steps in 0..24 {
            let mut bench = VfBench::with(mapped, None, Time::manual());
            bench.attacker_up();
            for (key, at) in [(ct::self_cfg::INTERRUPT_SOURCE, SOURCE), (ct::self_cfg::INTERRUPT_STATUS, STATUS)] {
                let message = ct::configure(key, base(ATTACKER) + at);
                assert_eq!(bench.attacker.mail(&message)[0], SUCCESS | 1);
            }
            submit_counting(&mut bench.attacker, 0, EngineClass::Compute, COUNT, 3, 40_000);
            submit_waiting(&mut bench.attacker, 2);
            bench.work(steps);
            move_by_pf(&bench);
            in_flight += bench.card.gt().parked.count(ATTACKER);
            bench.attacker.poke(GO, 1);
            bench.work(20);
            assert!(!done(&bench.attacker, 2), "it has not adapted its addresses");
            if steps % 4 == 3 {
                // The driver's RESFIX_DONE of before the second move is not that of its place.
                assert_eq!(bench.attacker.mail(&[RESFIX_START | 9 << 16])[0], SUCCESS);
                move_by_pf(&bench);
                assert_eq!(bench.attacker.mail(&[RESFIX_DONE | 9 << 16])[0], 0xe000_0107);
            }
            assert_eq!(fix_up(&mut bench, steps + 1), SUCCESS);
            bench.until("the contexts", 60_000, |bench| done(&bench.attacker, 0) && done(&bench.attacker, 2));
            assert_eq!(bench.attacker.peek(COUNTER), 3 * 4 * 40_000, "mapped {mapped}, {steps} steps");
            submit_waiting(&mut bench.attacker, 3);
            bench.until("a new context", 5000, |bench| done(&bench.attacker, 3));
            assert!(!bench.attacker.rings_stopped());
            assert_eq!(bench.card.panics(), 0);
        }
        assert!(in_flight > 4, "{in_flight} groups in flight");
    }
}

/// What a VF has written to its GGTT range before a restore does not hide what its PF driver restores there.
#[test]
fn entries_of_before_the_restore_are_dropped() {
    for mapped in [true, false] {
        let mut bench = VfBench::with(mapped, None, Time::manual());
        bench.attacker_up();
        let page = (base(ATTACKER) + at::WINDOW.start) / 4096 + 3;
        let address = |bench: &VfBench| {
            let state = bench.card.function_state(ATTACKER);
            state.ggtt().find(|(index, _)| *index == page).map(|(_, entry)| u64::from(entry) & 0x3fff_ffff_f000)
        };
        bench.attacker.set_global(page, 0x1234_5003);
        assert_eq!(address(&bench), Some(0x1234_5000));
        move_by_pf_and(&bench, |bench| {
            let pf = bench.pf.borrow();
            let own = u64::from(ATTACKER.number()) << 2;
            pf.as_ref().unwrap().access.set_entry(page, 0x5432_1000 | own | 1);
        });
        assert_eq!(address(&bench), Some(0x5432_1000), "mapped {mapped}");
    }
}
