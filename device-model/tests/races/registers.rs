// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Several vCPUs write different bits of one register. Each bit must keep the value written by its vCPU.

use arctic_fidelity::proves;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use arctic_device_model::card::Card;
use arctic_device_model::host::Function;
use arctic_test_support::vfs::bench::*;
use arctic_test_support::vfs::world::Time;

const PROCESSORS: u32 = 4;
/// Duration of each test; sufficient on a loaded host.
const WHILE: Duration = Duration::from_millis(150);

fn card() -> Arc<Card> {
    VfBench::with(false, Some(QUOTA), Time::manual()).card
}

/// Runs `body(processor, round)` repeatedly on `PROCESSORS` threads that start at the same time.
fn together(body: impl Fn(u32, u32) + Sync) {
    let start = Barrier::new(PROCESSORS as usize);
    thread::scope(|scope| {
        for n in 0..PROCESSORS {
            let (start, body) = (&start, &body);
            scope.spawn(move || {
                start.wait();
                let end = Instant::now() + WHILE;
                (0u32..).take_while(|_| Instant::now() < end).for_each(|round| body(n, round));
            });
        }
    });
}

fn set(card: &Card, function: Function, at: u32, bytes: &[u8]) {
    card.write_gttmmadr(function, at.into(), bytes);
}

fn get(card: &Card, function: Function, at: u32) -> u32 {
    let mut data = [0; 4];
    card.read_gttmmadr(function, at.into(), &mut data);
    u32::from_le_bytes(data)
}

#[test]
fn masked_writes_leave_others_bits() {
    proves!(
        V13_135,
        "a masked write changes only the bits that it selects. The acknowledgement of a forcewake request follows \
        the request"
    );
    let card = card();
    const RING_MODE: u32 = 0x2_229c;
    const FORCEWAKE: (u32, u32) = (0xa188, 0x13_0044);
    together(|n, round| {
        let on = round & 1;
        for register in [RING_MODE, FORCEWAKE.0] {
            set(&card, Function::PF, register, &(1 << (16 + n) | on << n).to_le_bytes());
            let seen = get(&card, Function::PF, register);
            assert_eq!(seen >> n & 1, on, "{register:#x} of processor {n} in round {round}");
        }
        let seen = get(&card, Function::PF, FORCEWAKE.1);
        assert_eq!(seen >> n & 1, on, "the acknowledgement for processor {n} in round {round}");
    });
}

/// A byte access changes only that byte, of a storage register and of a virtual function's mailbox.
#[test]
fn narrow_writes_leave_others_bytes() {
    let card = card();
    for (function, register) in [(Function::PF, 0xc184), (VICTIMS[0], MAILBOX + 4)] {
        together(|n, round| {
            set(&card, function, register + n, &[round as u8]);
            let seen = get(&card, function, register).to_le_bytes();
            assert_eq!(seen[n as usize], round as u8, "{register:#x} of processor {n} in round {round}");
        });
    }
}

/// Contract B.4: the first write locks the WOPCM registers, and each vCPU then reads the value of that write.
#[test]
fn first_write_locks_the_wopcm_registers() {
    let card = card();
    let size = 0xc050;
    for round in 0..400 {
        card.reset_card();
        let start = Barrier::new(PROCESSORS as usize);
        let seen: Vec<u32> = thread::scope(|scope| {
            let lock = |n: u32| {
                let (card, start) = (&card, &start);
                move || {
                    start.wait();
                    set(card, Function::PF, size, &((n + 1) << 20).to_le_bytes());
                    get(card, Function::PF, size)
                }
            };
            let processors: Vec<_> = (0..PROCESSORS).map(|n| scope.spawn(lock(n))).collect();
            processors.into_iter().map(|processor| processor.join().unwrap()).collect()
        });
        assert!(seen[0] & 1 != 0 && seen.iter().all(|value| *value == seen[0]), "{seen:x?} in round {round}");
    }
}

/// The value read from an interrupt enable register is the value that the interrupt tree uses, after any order of
/// writes.
#[test]
fn enable_register_reads_the_value_in_use() {
    let card = card();
    let enable = 0x19_0030;
    for round in 0..200u32 {
        thread::scope(|scope| {
            for n in 0..PROCESSORS {
                let card = &card;
                let write = move |value: u32| set(card, Function::PF, enable, &(value * 0x1_0001).to_le_bytes());
                scope.spawn(move || (0..500).for_each(|at| write(round + n + at & 0xffff)));
            }
        });
        let (read, goes_by) = (get(&card, Function::PF, enable), card.gt().interrupts.enable_or_mask(enable));
        assert_eq!(read, goes_by, "in round {round}");
    }
}
