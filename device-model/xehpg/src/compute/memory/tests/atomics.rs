// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Atomic operations.

use super::*;

const OPERATIONS: [Atomic; 19] = [
    Atomic::Inc,
    Atomic::Dec,
    Atomic::Load,
    Atomic::Store,
    Atomic::Add,
    Atomic::Sub,
    Atomic::Smin,
    Atomic::Smax,
    Atomic::Umin,
    Atomic::Umax,
    Atomic::Cas,
    Atomic::Fadd,
    Atomic::Fsub,
    Atomic::Fmin,
    Atomic::Fmax,
    Atomic::Fcas,
    Atomic::And,
    Atomic::Or,
    Atomic::Xor,
];

/// Every operation on elements of every size, in every kind of memory: the old value is returned, and bytes beside the element
/// do not change.
#[test]
fn operations() {
    let world = World::new();
    let old = [0x01, 0x82, 0x03, 0x84, 0x05, 0x86, 0x07, 0x88];
    for va in [LOCAL_VA + 0x10, GUEST_VA + 0x10, REMOTE_VA + 0x10, LARGE_VA] {
        for operation in OPERATIONS {
            for size in [2, 4, 8] {
                for place in (0..8).step_by(size as usize) {
                    world.write(va, &old);
                    let before = u64::from_le_bytes(old) >> (place * 8) & u64::MAX >> (64 - size * 8);
                    for operands in [[0x7001_0002_8003_0004, 1], [before, 0x77]] {
                        world.write(va, &old);
                        let operands = operands.map(|operand: u64| operand & u64::MAX >> (64 - size * 8));
                        let result = world.once(|memory| {
                            memory.atomic(Surface::Flat, va + u64::from(place), size, operation, operands)
                        });
                        assert_eq!(result, Ok(Some(before)), "{operation:?} {size}");
                        let mut expected = old;
                        let new = operation.apply(before, operands, size).to_le_bytes();
                        expected[place as usize..(place + size) as usize].copy_from_slice(&new[..size as usize]);
                        assert_eq!(world.read::<8>(va), expected, "{operation:?} {size} {place} {va:#x}");
                    }
                }
            }
        }
    }
}

/// A NULL page reads 0. An element at an address that is not aligned has no atomic operation.
#[test]
fn null_page_and_alignment() {
    let world = World::new();
    world.put_state(0, &buffer(LOCAL_VA + 2, 64));
    world.once(|memory| {
        for size in [2, 4, 8] {
            assert_eq!(memory.atomic(Surface::Flat, NULL_VA, size, Atomic::Inc, [0; 2]), Ok(Some(0)));
        }
        assert_eq!(memory.take_remote_atomics(), 0);
        for (surface, address) in [(Surface::Flat, LOCAL_VA + 2), (Surface::State(0, 0), 4)] {
            let fault = memory.atomic(surface, address, 4, Atomic::Inc, [0; 2]).unwrap_err();
            assert_eq!(fault.kind, FaultKind::Alignment);
        }
        let fault = memory.atomic(Surface::Flat, UNMAPPED_VA, 4, Atomic::Load, [0; 2]).unwrap_err();
        assert_eq!((fault.kind, fault.address), (FaultKind::Address, Some(UNMAPPED_VA)));
    });
}

#[test]
fn atomic_against_other_threads() {
    proves!(
        EU_046,
        "atomic with respect to the guest's CPUs and other engines, in local and in guest memory: their threads update the \
        same cells at the same time"
    );
    const ROUNDS: u64 = 20_000;
    let world = World::new();
    let cells = [LOCAL_VA, GUEST_VA + 8];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let local = world.card.local().slice(local_of(LOCAL_VA), 8).unwrap();
            for cell in [local, world.client.mapped.get_slice(8, 8).unwrap()] {
                for _ in 0..ROUNDS {
                    u64::update(&cell, 0, |old| Some(old.wrapping_add(1 << 32))).unwrap().unwrap();
                }
            }
        });
        for _ in 0..2 {
            scope.spawn(|| {
                world.once(|memory| {
                    for va in cells {
                        for _ in 0..ROUNDS {
                            memory.atomic(Surface::Flat, va, 8, Atomic::Add, [1, 0]).unwrap();
                            memory.atomic(Surface::Flat, va + 2, 2, Atomic::Inc, [0; 2]).unwrap();
                            memory.take_cost();
                        }
                    }
                });
            });
        }
    });
    for va in cells {
        let increments = 2 * ROUNDS & 0xffff;
        // The upper half of the low dword was counted alone, and has the carry of the lower one.
        let carry = 2 * ROUNDS >> 16;
        assert_eq!(u64::from_le_bytes(world.read(va)), ROUNDS << 32 | (increments + carry) << 16 | increments);
    }
}

#[test]
fn plain_elements_do_not_tear() {
    proves!(EU_046, "aligned elements are not torn: one of two patterns is seen, whether lanes are consecutive or not");
    const ROUNDS: u64 = 20_000;
    let world = World::new();
    let patterns = [[0x11; 64], [0xee; 64]];
    world.write(LOCAL_VA, &patterns[0]);
    let run: Vec<u64> = (0..8).map(|lane| LOCAL_VA + lane * 8).collect();
    let reversed: Vec<u64> = run.iter().copied().rev().collect();
    let lanes = |addresses| LaneSpans { surface: Surface::Flat, addresses, enabled: 0xff, element: 8, size: 8 };
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            world.once(|memory| {
                for round in 0..ROUNDS {
                    let addresses = if round % 2 == 0 { &run } else { &reversed };
                    memory.write_lanes(&lanes(addresses), &patterns[(round % 2) as usize], &mut 0).unwrap();
                }
            });
            done.store(true, Ordering::SeqCst);
        });
        world.once(|memory| {
            let mut bytes = [0; 64];
            while !done.load(Ordering::SeqCst) {
                for addresses in [&run, &reversed] {
                    memory.read_lanes(&lanes(addresses), &mut bytes, &mut 0).unwrap();
                    assert!(bytes.chunks(8).all(|lane| lane == [0x11; 8] || lane == [0xee; 8]), "{bytes:x?}");
                }
            }
        });
    });
}
