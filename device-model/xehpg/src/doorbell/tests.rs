// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Unit tests of the doorbell block: stages, arming, coalescing, windows, and isolation between functions.

use arctic_fidelity::proves;
use proptest::prelude::*;

use super::*;

const VF1: Function = Function::new(1).unwrap();
const VF2: Function = Function::new(2).unwrap();

fn page(number: u64) -> Page {
    Page::at(WINDOW + number * PAGE_BYTES).expect("the page is in the window")
}

/// A block with rings routed to the GuC, as its firmware configures it.
fn block() -> Doorbells {
    let doorbells = Doorbells::new();
    assert!(!doorbells.write(DoorbellRegister::Control, 0, SEND_TO_CORE));
    doorbells
}

fn rung(doorbells: &Doorbells) -> Vec<u8> {
    doorbells.take_rung().iter().collect()
}

fn valid(doorbells: &Doorbells, index: u8) -> bool {
    DoorbellAddress::from(doorbells.read(DoorbellRegister::Address, u16::from(index))).valid()
}

fn message(groups: u8) -> Ring {
    Ring::Message { groups, to: Route::Guc }
}

#[test]
fn each_of_256_rings_its_own_bit() {
    proves!(V13_081, "each of the 256 doorbells has a separate status bit");
    let doorbells = block();
    for index in 0..=u8::MAX {
        doorbells.arm(index, VF1, page(1023 - u64::from(index))).unwrap();
    }
    for index in 0..=u8::MAX {
        assert_eq!(doorbells.ring(VF1, page(1023 - u64::from(index))), message(1 << (index / 32)));
        let status: Vec<u32> = (0..8).map(|group| doorbells.read(DoorbellRegister::Status, group)).collect();
        let expected: Vec<u32> = (0..8).map(|g| if g == index / 32 { 1 << (index % 32) } else { 0 }).collect();
        assert_eq!(status, expected);
        assert_eq!(rung(&doorbells), [index]);
    }
}

#[test]
fn a_ring_passes_three_stages() {
    proves!([V13_082, V13_089], "a ring is visible in each of the three stages; a read of the third clears the second");
    let doorbells = block();
    let read = |register| doorbells.read(register, 1);
    doorbells.arm(33, VF2, page(5)).unwrap();
    assert_eq!(doorbells.read(DoorbellRegister::Address, 33), 0x40_5001);
    assert_eq!((read(DoorbellRegister::Status), read(DoorbellRegister::InterruptStatus)), (0, 0));
    doorbells.ring(VF2, page(5));
    assert_eq!((read(DoorbellRegister::Status), doorbells.read(DoorbellRegister::Control, 0) & 0xff), (2, 2));
    assert_eq!(read(DoorbellRegister::InterruptStatus), 2);
    assert_eq!((read(DoorbellRegister::Status), doorbells.read(DoorbellRegister::Control, 0) & 0xff), (0, 0));
    assert_eq!(read(DoorbellRegister::InterruptStatus), 2, "must stay set until it is cleared");
    assert_eq!(rung(&doorbells), [33]);
    assert_eq!(read(DoorbellRegister::InterruptStatus), 0, "taken by the GuC");
}

#[test]
fn monitoring_begins_with_the_arming() {
    proves!(V13_084, "an access before arming is not detected, an access after arming is");
    let doorbells = block();
    assert_eq!(doorbells.ring(VF1, page(9)), Ring::Missed);
    doorbells.arm(0, VF1, page(9)).unwrap();
    assert_eq!(rung(&doorbells), [0_u8; 0]);
    assert_eq!(doorbells.ring(VF1, page(9)), message(1));
    assert_eq!(rung(&doorbells), [0]);
}

#[test]
fn the_host_cannot_arm() {
    proves!(
        [V13_083, V13_085, V13_093],
        "only the GuC writes address and Valid. Writes by the host have no effect in any state of the doorbell, and \
        a read of the cookie never sets Valid (trap 11)"
    );
    let doorbells = block();
    for register in [DoorbellRegister::Address, DoorbellRegister::Function] {
        assert!(!doorbells.write(register, 7, 0x40_0001));
        assert!(!doorbells.write(register, 700, 0x40_0001));
    }
    doorbells.read_cookie(7);
    assert_eq!(doorbells.watched(7), None);
    doorbells.arm(7, VF1, page(3)).unwrap();
    for value in [0, 0x40_4001, !0] {
        doorbells.write(DoorbellRegister::Address, 7, value);
        doorbells.write(DoorbellRegister::Function, 7, value);
        assert_eq!(doorbells.watched(7), Some((VF1, page(3))));
    }
}

#[test]
fn reading_a_cleared_cookie_clears_valid() {
    proves!(
        V13_086,
        "valid is cleared only when the block reads a cleared cookie, on request or at a ring, which then does not \
        count. Arming an armed doorbell does not clear Valid (trap 11)"
    );
    let doorbells = block();
    doorbells.arm(8, VF1, page(3)).unwrap();
    doorbells.read_cookie(8);
    assert!(valid(&doorbells, 8), "the cookie is not cleared");
    assert_eq!(doorbells.arm(8, VF2, page(4)), Err(Refused::IsArmed));
    assert_eq!(doorbells.watched(8), Some((VF1, page(3))));
    doorbells.clear_cookie(8);
    assert!(valid(&doorbells, 8), "the block has not read the cookie yet");
    assert_eq!(doorbells.ring(VF1, page(3)), Ring::Missed);
    assert!(!valid(&doorbells, 8));
    doorbells.arm(8, VF2, page(4)).unwrap();
    doorbells.clear_cookie(8);
    doorbells.read_cookie(8);
    assert!(!valid(&doorbells, 8));
}

#[test]
fn rings_do_not_clear_the_cookie() {
    proves!(V13_086, "the cookie counts rings and skips 0");
    let word = Armed::of(VF1, page(3)).with_cookie(u32::MAX);
    assert_eq!(word.rung().cookie(), 1);
    assert!(word.rung().watches(VF1, page(3)) && word.rung().pending());
}

#[test]
fn status_is_read_only_and_interrupt_status_is_cleared() {
    proves!([V13_087, V13_088], "the status is read-only; writing 1 to the interrupt status clears the bit");
    let doorbells = block();
    for index in [0, 1] {
        doorbells.arm(index, VF1, page(u64::from(index))).unwrap();
        doorbells.ring(VF1, page(u64::from(index)));
    }
    for value in [0, !0] {
        doorbells.write(DoorbellRegister::Status, 0, value);
        assert_eq!(doorbells.read(DoorbellRegister::Status, 0), 3);
    }
    assert_eq!(doorbells.read(DoorbellRegister::InterruptStatus, 0), 3);
    doorbells.write(DoorbellRegister::InterruptStatus, 0, 1);
    assert_eq!(doorbells.read(DoorbellRegister::InterruptStatus, 0), 2);
    assert_eq!(rung(&doorbells), [1]);
    for register in [DoorbellRegister::Status, DoorbellRegister::InterruptStatus] {
        doorbells.write(register, 8, !0);
        assert_eq!(doorbells.read(register, 8), 0, "only eight groups exist");
    }
}

#[test]
fn repeated_rings_send_one_message() {
    proves!(V13_089, "five rings before the GuC serves them send one message and set one bit");
    let doorbells = block();
    doorbells.arm(40, VF1, page(0)).unwrap();
    let results: Vec<Ring> = (0..5).map(|_| doorbells.ring(VF1, page(0))).collect();
    assert_eq!(results[0], message(2));
    assert!(results[1..].iter().all(|ring| *ring == Ring::Collapsed));
    assert_eq!(rung(&doorbells), [40]);
    assert_eq!(rung(&doorbells), [0_u8; 0]);
    assert_eq!(doorbells.rings(VF1), Rings { rung: 5, missed: 0 });
}

#[test]
fn concurrent_rings_set_one_bit_and_none_is_lost() {
    proves!(
        V13_089,
        "many rings from many threads set one bit per doorbell, and a ring that was not served is never lost"
    );
    let doorbells = block();
    doorbells.arm(0, VF1, page(0)).unwrap();
    doorbells.arm(200, VF2, page(0)).unwrap();
    std::thread::scope(|scope| {
        for function in [VF1, VF1, VF2] {
            let doorbells = &doorbells;
            scope.spawn(move || (0..10_000).for_each(|_| assert_ne!(doorbells.ring(function, page(0)), Ring::Missed)));
        }
        for _ in 0..1000 {
            assert!(doorbells.take_rung().iter().all(|index| [0, 200].contains(&index)));
        }
    });
    doorbells.ring(VF1, page(0));
    doorbells.ring(VF2, page(0));
    assert_eq!(rung(&doorbells), [0, 200]);
    assert_eq!((doorbells.rings(VF1).rung, doorbells.rings(VF2).rung), (20_001, 10_001));
}

#[test]
fn the_window_has_1024_pages() {
    proves!(
        [V13_007, V13_091],
        "the window is 4 MB from 0x400000 on, in 1,024 pages; every byte of a page rings the same doorbell"
    );
    assert_eq!((Page::at(0x3f_ffff), Page::at(0x80_0000), Page::at(u64::MAX)), (None, None, None));
    assert_eq!(Page::at(0x40_0000).map(Page::offset), Some(0x40_0000));
    assert_eq!(Page::at(0x7f_ffff).map(Page::offset), Some(0x7f_f000));
    assert!((0..4096).all(|byte| Page::at(0x40_5000 + byte) == Some(page(5))));
    assert_eq!((page(1023).0, Page::at(WINDOW + u64::from(PAGES) * PAGE_BYTES)), (1023, None));
}

#[test]
fn each_function_has_a_doorbell_window() {
    proves!([V13_092, V13_094], "a doorbell watches a page of one function, not the same page of another function");
    let doorbells = block();
    doorbells.arm(6, VF2, page(5)).unwrap();
    assert_eq!(doorbells.read(DoorbellRegister::Function, 6), 2);
    for function in (0..64).filter(|n| *n != 2).filter_map(Function::new) {
        assert_eq!(doorbells.ring(function, page(5)), Ring::Missed);
    }
    assert_eq!(doorbells.ring(VF2, page(6)), Ring::Missed);
    assert_eq!(rung(&doorbells), [0_u8; 0]);
    assert_eq!(doorbells.ring(VF2, page(5)), message(1));
    doorbells.arm(7, VF1, page(0)).unwrap();
    doorbells.arm(8, VF2, page(0)).unwrap();
    doorbells.ring(VF1, page(0));
    assert_eq!(rung(&doorbells), [6, 7]);
}

#[test]
fn only_the_first_ring_of_a_group_sends() {
    proves!(
        V13_097,
        "a group's bit is set when its status becomes nonzero. Further rings send no message until the group is \
        taken (trap 12)"
    );
    let doorbells = block();
    for index in 64..67 {
        doorbells.arm(index, VF1, page(u64::from(index))).unwrap();
    }
    assert_eq!(doorbells.ring(VF1, page(64)), message(4));
    assert_eq!(doorbells.ring(VF1, page(65)), Ring::Collapsed);
    assert_eq!(rung(&doorbells), [64, 65]);
    assert_eq!(doorbells.ring(VF1, page(66)), message(4));
}

#[test]
fn one_message_sets_bits_of_two_groups() {
    proves!(
        V13_098,
        "a ring of a page watched by doorbells of two groups sends one message with two bits. Each bit stays set \
        until its group is taken"
    );
    let doorbells = block();
    doorbells.arm(31, VF1, page(0)).unwrap();
    doorbells.arm(32, VF1, page(0)).unwrap();
    assert_eq!(doorbells.ring(VF1, page(0)), message(3));
    doorbells.read(DoorbellRegister::InterruptStatus, 0);
    assert_eq!(doorbells.read(DoorbellRegister::Control, 0), SEND_TO_CORE | 2);
    assert_eq!(doorbells.ring(VF1, page(0)), message(1), "no message for the group that was not taken");
    assert_eq!(rung(&doorbells), [31, 32]);
    assert_eq!(doorbells.read(DoorbellRegister::Control, 0), SEND_TO_CORE);
}

#[test]
fn rings_go_to_the_host_by_default() {
    proves!(
        V13_099,
        "after reset, rings notify the host. Once software routes them to the GuC, it also receives earlier rings \
        (trap 13)"
    );
    let doorbells = Doorbells::new();
    doorbells.arm(0, VF1, page(0)).unwrap();
    assert_eq!(doorbells.ring(VF1, page(0)), Ring::Message { groups: 1, to: Route::Host });
    assert_eq!(rung(&doorbells), [0_u8; 0]);
    assert!(doorbells.write(DoorbellRegister::Control, 0, SEND_TO_CORE | 0x7f), "a ring is pending");
    assert_eq!(doorbells.read(DoorbellRegister::Control, 0), SEND_TO_CORE | 1, "only hardware writes the group bits");
    assert_eq!(rung(&doorbells), [0]);
    assert_eq!(doorbells.ring(VF1, page(0)), message(1));
    doorbells.write(DoorbellRegister::Control, 0, 0);
    assert_eq!(doorbells.read(DoorbellRegister::Control, 0), 1);
}

#[test]
fn a_function_reset_disarms_its_doorbells() {
    proves!(
        V13_119,
        "after an FLR of a VF none of its doorbells is valid, and its pending rings are dropped. Other VFs are \
        unaffected"
    );
    let doorbells = block();
    for index in [0, 100, 255] {
        doorbells.arm(index, VF1, page(u64::from(index))).unwrap();
    }
    doorbells.arm(101, VF2, page(100)).unwrap();
    doorbells.ring(VF1, page(100));
    doorbells.ring(VF2, page(100));
    doorbells.reset_function(VF1);
    assert!([0, 100, 255].iter().all(|index| doorbells.watched(*index).is_none()));
    assert_eq!(doorbells.watched(101), Some((VF2, page(100))));
    assert_eq!(doorbells.ring(VF1, page(100)), Ring::Missed);
    // A doorbell that is reassigned to another function does not inherit the ring.
    doorbells.arm(100, VF2, page(7)).unwrap();
    assert_eq!(rung(&doorbells), [101]);
}

#[test]
fn reset_restores_power_on_state() {
    proves!([V13_099, V13_114], "a reset restores the state after power-on");
    let doorbells = block();
    doorbells.arm(3, VF1, page(3)).unwrap();
    doorbells.ring(VF1, page(3));
    doorbells.read(DoorbellRegister::InterruptStatus, 0);
    doorbells.ring(VF1, page(3));
    doorbells.reset();
    for register in [DoorbellRegister::Address, DoorbellRegister::Function, DoorbellRegister::Status] {
        assert_eq!(doorbells.read(register, 3), 0);
    }
    assert_eq!(doorbells.read(DoorbellRegister::InterruptStatus, 0), 0);
    assert_eq!(doorbells.read(DoorbellRegister::Control, 0), 0);
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Arm(u8, u8, u16),
    Ring(u8, u16),
    Disarm(u8),
    ClearCookie(u8),
    Reset(u8),
    Host(u8, u16, u32),
    Take,
}

fn act() -> impl Strategy<Value = Act> {
    // Few functions and pages, so that they collide.
    let (function, page) = (0u8..5, 0u16..4);
    prop_oneof![
        4 => (any::<u8>(), function.clone(), page.clone()).prop_map(|(i, f, p)| Act::Arm(i % 40, f, p)),
        8 => (function.clone(), page).prop_map(|(f, p)| Act::Ring(f, p)),
        1 => any::<u8>().prop_map(|i| Act::Disarm(i % 40)),
        1 => any::<u8>().prop_map(|i| Act::ClearCookie(i % 40)),
        1 => function.prop_map(Act::Reset),
        1 => (0u8..3, any::<u16>(), any::<u32>()).prop_map(|(r, o, v)| Act::Host(r, o, v)),
        2 => Just(Act::Take),
    ]
}

proptest! {
    #[test]
    fn only_armed_doorbells_of_the_function_notify_the_guc(acts in proptest::collection::vec(act(), 0..200)) {
        proves!(
            [V13_086, V13_092, V13_094, V13_119],
            "for any sequence of operations, the GuC is notified of exactly those doorbells that were armed for the \
            function and page at the time of the ring"
        );
        #[derive(Clone, Copy)]
        struct Known { function: u8, page: u16, rung: bool, cleared: bool }
        let doorbells = block();
        let mut known: [Option<Known>; 256] = [None; 256];
        for act in acts {
            match act {
                Act::Arm(index, function, page) => {
                    let armed = doorbells.arm(index, Function::new(function).unwrap(), Page(page)).is_ok();
                    let slot = &mut known[usize::from(index)];
                    prop_assert_eq!(armed, slot.is_none());
                    if armed {
                        *slot = Some(Known { function, page, rung: false, cleared: false });
                    }
                }
                Act::Ring(function, page) => {
                    let mut found = false;
                    for slot in &mut known {
                        if let Some(doorbell) = slot && doorbell.function == function && doorbell.page == page {
                            if doorbell.cleared {
                                *slot = None;
                            } else {
                                doorbell.rung = true;
                                found = true;
                            }
                        }
                    }
                    prop_assert_eq!(doorbells.ring(Function::new(function).unwrap(), Page(page)) != Ring::Missed, found);
                }
                Act::Disarm(index) => {
                    doorbells.disarm(index);
                    known[usize::from(index)] = None;
                }
                Act::ClearCookie(index) => {
                    doorbells.clear_cookie(index);
                    if let Some(doorbell) = &mut known[usize::from(index)] {
                        doorbell.cleared = true;
                    }
                }
                Act::Reset(function) => {
                    doorbells.reset_function(Function::new(function).unwrap());
                    for slot in &mut known {
                        slot.take_if(|doorbell| doorbell.function == function);
                    }
                }
                Act::Host(register, ordinal, value) => {
                    let registers = [DoorbellRegister::Address, DoorbellRegister::Function, DoorbellRegister::Status];
                    doorbells.write(registers[usize::from(register)], ordinal, value);
                    doorbells.read(DoorbellRegister::InterruptStatus, ordinal);
                }
                Act::Take => {
                    let mut expected = Vec::new();
                    for (index, slot) in (0..=u8::MAX).zip(&mut known) {
                        if let Some(doorbell) = slot && std::mem::take(&mut doorbell.rung) {
                            expected.push(index);
                        }
                    }
                    prop_assert_eq!(rung(&doorbells), expected);
                }
            }
        }
    }
}
