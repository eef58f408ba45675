// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A hostile guest attacks the whole card. Regardless of the guest's writes, the card must not panic, hang, leak
//! memory, or access memory outside the guest's, and must work again after a reset.
//!
//! `ARCTIC_HOSTILE_CASES` sets the number of random cases, `ARCTIC_HOSTILE_SEED` the first seed.
#![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

mod bench;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use arctic_device_model::card::GTTMMADR_BYTES;
use arctic_device_model::engine::Counters;
use arctic_device_model::guc::actions::ACTIONS;
use arctic_device_model::topology::EngineClass;
use arctic_device_model::workers::Workers;
use arctic_test_support::ct::GUC_HOST_INTERRUPT;
use arctic_test_support::firmware;
use arctic_test_support::grammar;
use arctic_test_support::mi::{self, Global, Process};
use arctic_test_support::poll::eventually;
use arctic_test_support::process::{resident, setting};

use bench::*;

/// Returns the offsets of the registers that the card models.
fn listing(bench: &CardBench) -> Vec<u32> {
    bench.card.gt().registers.listing().map(|(offset, _)| offset).collect()
}

/// Reads and writes each dword of GTTMMADR's registers in pseudo-random order, with all widths.
#[test]
fn every_register() {
    let mut bench = CardBench::new();
    bench.initialise_driver();
    let mut random = Random::new(1);
    let dwords = 1u64 << 21;
    for pattern in [0, u32::MAX, 0x5a5a_a5a5] {
        let start = random.below(dwords);
        for n in 0..dwords {
            // An odd stride visits each dword once.
            let offset = (start + n * 0x9_e377) % dwords * 4;
            let value = if pattern == 0x5a5a_a5a5 { random.any() as u32 } else { pattern };
            bench.card.write_gttmmadr(PF, offset, &value.to_le_bytes());
            let mut data = [0; 8];
            let width = random.of(&[1, 2, 4, 8]);
            let skew = if random.one_in(8) { random.below(4) } else { 0 };
            bench.card.read_gttmmadr(PF, offset + skew, &mut data[..width]);
            if random.one_in(16) {
                bench.card.write_gttmmadr(PF, offset + skew, &random.any().to_le_bytes()[..width]);
            }
            if n % 0x1000 == 0 {
                bench.work(2);
            }
        }
    }
    assert!(bench.guest().unharmed());
    bench.assert_job_completes();
}

/// Random accesses to GTTMMADR and beyond its end, with all widths, aligned or not: reads from the end on return 0, and the
/// card works afterwards.
#[test]
fn random_accesses_up_to_the_end_of_gttmmadr_are_contained() {
    let mut bench = CardBench::new();
    bench.initialise_driver();
    let mut random = Random::new(2);
    for _ in 0..200_000 {
        let offset = match random.below(8) {
            0 => random.edge(),
            1 => GTTMMADR_BYTES - random.below(16),
            2 => (8 << 20) - random.below(16),
            _ => (8 << 20) + random.below(8 << 20),
        };
        let width = random.of(&[1, 2, 4, 8, 3, 5]);
        let mut data = random.any().to_le_bytes();
        bench.card.write_gttmmadr(PF, offset, &data[..width]);
        bench.card.read_gttmmadr(PF, offset, &mut data[..width]);
        if offset >= GTTMMADR_BYTES {
            assert_eq!(data[..width], [0; 8][..width], "at {offset:#x}");
        }
        if random.one_in(1000) {
            bench.work(2);
        }
    }
    assert!(bench.guest().unharmed());
    bench.assert_job_completes();
}

/// Submits a context with an image, a ring and a batch of random contents.
fn context(bench: &mut CardBench, random: &mut Random, registers: &[u32]) {
    let id = random.below(u64::from(CONTEXTS)) as u32;
    let class = random.of(&EngineClass::BY_GUC);
    // A ring with privileged commands, or a ring that starts an unprivileged batch.
    let ring = match random.below(3) {
        0 => PLACES.stream(random, class, registers, 512),
        _ => mi::batch_buffer_start(Process(PLACES.batch(id))).to_vec(),
    };
    let batch = PLACES.stream(random, class, registers, 1024);
    bench.write_words(PLACES.batch(id), &batch);
    bench.write_context(id, 0, &ring);
    let image = PLACES.image(id, 0) + 0x1000;
    while random.one_in(6) {
        let at =
            random.of(&[3, 5, 7, 9, 0xb, 0xd, 0xf, 0x11, 0x13, 0x15, 0x31, 0x33, 0x50, 0x52, 0x57, 0x59, 0x63, 0x65]);
        let value = if random.one_in(2) { PLACES.global_address(random) as u32 | 1 } else { random.dword() };
        bench.poke(image + at * 4, value);
    }
    let class = if random.one_in(20) { random.dword() } else { u32::from(class.guc()) };
    let mask = if random.one_in(10) { random.dword() } else { 1 };
    bench.register(id, class, mask);
    if random.one_in(2) {
        let (quantum, timeout) = (random.below(2000) as u32, random.below(2000) as u32);
        bench.request(0x100b, &[id, 0x2003_0001, random.below(5) as u32, 0x2001_0001, quantum, 0x2002_0001, timeout]);
    }
    bench.request(0x1001, &[id, 1]);
    if random.one_in(2) {
        bench.work(5);
        bench.request(0x4503, &[id]);
    }
}

/// Submits a parallel context with random contents of its work queue.
fn parallel(bench: &mut CardBench, random: &mut Random, registers: &[u32]) {
    let id = random.below(u64::from(CONTEXTS)) as u32;
    let width = 1 + random.below(4) as u32;
    for member in 0..width {
        let words = PLACES.stream(random, EngineClass::VideoDecode, registers, 256);
        bench.write_context(id, member, &words);
    }
    let bytes = random.of(&[0x1000, 0x800, 64, 0x1_0000, 4]);
    let items = grammar::work_items(random, id, width);
    bench.write_words(QUEUES + 0x1000, &items);
    let head = if random.one_in(4) { random.dword() } else { 0 };
    let tail = if random.one_in(4) { random.dword() } else { items.len() as u32 * 4 };
    bench.write_words(QUEUES, &[head, tail, 0, 0]);
    let mut payload =
        vec![1, id, 3, 1 + random.below(3) as u32, QUEUES as u32, 0, QUEUES as u32 + 0x1000, 0, bytes, width];
    for member in 0..width {
        payload.extend([bench.descriptor(id, member), 0]);
    }
    if random.one_in(3) {
        let at = random.below(payload.len() as u64) as usize;
        payload[at] = random.dword();
    }
    bench.request(0x4601, &payload);
    bench.request(0x1001, &[id, 1]);
    bench.request(0x1000, &[id]);
}

/// Sends a message for a random action, mostly with a valid length.
fn message(bench: &mut CardBench, random: &mut Random) {
    let action = &ACTIONS[random.below(ACTIONS.len() as u64) as usize];
    let len = grammar::payload_len(random, action.length);
    let mut payload: Vec<u32> = (0..len)
        .map(|_| match random.below(4) {
            0 => random.dword(),
            1 => random.below(u64::from(CONTEXTS)) as u32,
            2 => PLACES.global_address(random) as u32,
            _ => 0,
        })
        .collect();
    if random.one_in(8) {
        // All ones in each dword: sums of addresses and offsets overflow.
        payload.fill(u32::MAX);
    }
    let code = if random.one_in(10) { random.below(0x1_0000) as u32 } else { u32::from(action.code) };
    let mut words = vec![(random.any() as u32) << 16 | (payload.len() as u32 + 1), random.of(&[0, 1, 2]) << 28 | code];
    words.extend(payload);
    if random.one_in(10) {
        words[0] = random.dword();
    }
    bench.send(&words);
}

/// One operation of a hostile guest.
fn attack(bench: &mut CardBench, random: &mut Random, registers: &[u32]) {
    match random.below(32) {
        0..6 | 24.. => context(bench, random, registers),
        6 | 7 => parallel(bench, random, registers),
        8..12 => message(bench, random),
        12 => {
            let id = random.below(u64::from(CONTEXTS)) as u32;
            let code = random.of(&[0x1000, 0x1001, 0x4503]);
            bench.request(code, &[id, random.below(2) as u32][..if code == 0x1001 { 2 } else { 1 }]);
        }
        // CT descriptors.
        13 if random.one_in(2) => bench.initialise_driver(),
        13 => bench.poke(CTB + random.of(&[0, 4, 8, 0x800, 0x804, 0x808]), random.dword()),
        14 => {
            let words =
                [random.of(&[0x0508, 0x4509, 0x4100, 0x5507, 0x5500]), random.dword(), random.dword(), random.dword()];
            bench.mail(&words);
        }
        15 => {
            let register = random.of(registers);
            bench.set(register, random.dword());
        }
        16 => {
            let at = TABLES + random.below(0x6000 / 8) * 8;
            bench.poke64(at, random.edge() << 12 | random.below(0x1000));
        }
        17 => {
            let page = match random.below(2) {
                0 => PLACES.global_address(random) >> 12,
                _ => random.below(1 << 20),
            };
            bench.access.set_entry(page, random.edge() << 12 | random.below(8));
        }
        18 => match random.below(4) {
            0 => bench.set(GDRST, 1 << random.below(20)),
            1 => bench.set(GU_CNTL, 1 << 31),
            2 => bench.start_firmware(),
            _ => bench.initialise_driver(),
        },
        19 => bench.set_memory_unmapped(random.one_in(2)),
        20 => bench.consume(),
        21 => bench.advance_clock(random.below(2_000_000_000)),
        _ => drop(bench.work(random.below(40) as u32)),
    }
}

/// Random attacks on a running card, which must work after each case.
#[test]
fn random_attacks() {
    let mut bench = CardBench::new();
    let registers = listing(&bench);
    let (first, cases) = (setting("ARCTIC_HOSTILE_SEED", 1), setting("ARCTIC_HOSTILE_CASES", 150));
    let mut warm = None;
    for seed in first..first + cases {
        let mut random = Random::new(seed);
        let case = catch_unwind(AssertUnwindSafe(|| {
            bench.initialise_driver();
            for _ in 0..30 + random.below(60) {
                attack(&mut bench, &mut random, &registers);
            }
            bench.work(100);
            assert!(bench.guest().unharmed(), "the guards around guest memory were written");
            bench.assert_job_completes();
        }));
        if let Err(panic) = case {
            println!("reproduce with ARCTIC_HOSTILE_SEED={seed} ARCTIC_HOSTILE_CASES=1");
            resume_unwind(panic);
        }
        // Resident memory may grow by the memory that guests have written, but not more.
        let resident = resident();
        let warm = *warm.get_or_insert(resident);
        assert!(resident < warm + (1 << 30) + (256 << 20), "{} MiB more", (resident - warm) >> 20);
    }
    let count = |of: fn(&Counters) -> u64| -> u64 {
        let engines = bench.card.engines();
        engines.present().map(|id| of(engines.lock(id).counters())).sum()
    };
    for (what, n) in [
        ("illegal commands", count(|counters| counters.illegal)),
        ("privileged commands of users", count(|counters| counters.privilege_violations)),
        ("refused register accesses of users", count(|counters| counters.register_refusals)),
        ("refused blits", count(|counters| counters.refused_blits.values().map(|refused| refused.0).sum())),
    ] {
        println!("{n} {what}");
        assert!(n * 20 >= cases, "{n} {what} in {cases} cases: too few for an effective test");
    }
}

/// Three workers and one thread with accesses and resets run concurrently without a deadlock.
#[test]
fn workers_and_accesses_at_once() {
    let (done, finished) = channel();
    let driver = thread::spawn(move || {
        let mut bench = CardBench::new();
        let registers = listing(&bench);
        let _workers = Workers::start(bench.card.clone(), 3, "").unwrap();
        let mut random = Random::new(3);
        let end = Instant::now() + Duration::from_millis(setting("ARCTIC_HOSTILE_STRESS_MS", 1500));
        while Instant::now() < end {
            bench.initialise_driver();
            for _ in 0..200 {
                match random.below(10) {
                    0 => bench.set(random.of(&[0xcee4, 0xcf7c, 0xcf04, 0xcee8]), 1),
                    1 => bench.set(GUC_HOST_INTERRUPT, 1),
                    _ => attack(&mut bench, &mut random, &registers),
                }
            }
        }
        bench.initialise_driver();
        bench.poke(SCRATCH, 0);
        bench.submit(1, EngineClass::Copy, &mi::store_data_imm(Global(SCRATCH), 0x600d));
        eventually("the card works", || bench.peek(SCRATCH) == 0x600d);
        assert_eq!(bench.card.panics(), 0);
        done.send(()).unwrap();
    });
    if finished.recv_timeout(Duration::from_secs(60)).is_err() {
        if driver.is_finished() {
            resume_unwind(driver.join().unwrap_err());
        }
        panic!("timed out after 60 s: deadlock");
    }
    driver.join().unwrap();
}

/// A panic in an engine's step ends that context's work and is reported to its driver; other contexts and the engine
/// continue.
#[test]
fn panic_in_an_engine_step_ends_only_its_context() {
    let mut bench = CardBench::new();
    bench.initialise_driver();
    let _workers = Workers::start(bench.card.clone(), 2, "").unwrap();
    bench.poke(SCRATCH, 0);
    // An endless batch that increments a counter.
    let count_up = mi::atomic_increment(Global(SCRATCH));
    let again = mi::batch_buffer_start(Global(PLACES.batch(2)));
    bench.write_words(PLACES.batch(2), &[count_up, again].concat());
    bench.submit(2, EngineClass::Render, &again);
    eventually("the other engine runs", || bench.peek(SCRATCH) > 0);
    bench.panic_at(RAM.0 + 0x5000);
    bench.submit(1, EngineClass::Copy, &mi::store_data_imm(Global(GLOBAL_RAM + 0x5000), 1));
    let is_notified = || {
        let tail = bench.peek(CTB + 0x804);
        (0..tail.saturating_sub(1)).any(|at| {
            let at = CTB + 0x2000 + u64::from(at) * 4;
            bench.peek(at) == 0x9000_1008 && bench.peek(at + 4) == 1
        })
    };
    eventually("CONTEXT_RESET_NOTIFICATION", is_notified);
    assert_eq!(bench.card.panics(), 1);
    let count = bench.peek(SCRATCH);
    eventually("the other engine continues", || bench.peek(SCRATCH) != count);
    bench.submit(3, EngineClass::Copy, &mi::store_data_imm(Global(SCRATCH + 0x100), 7));
    eventually("the engine continues", || bench.peek(SCRATCH + 0x100) == 7);
    assert_eq!(bench.card.panics(), 1);
}

/// A panic in the GuC puts the GuC into reset. Its driver can read this state and can start the GuC again.
#[test]
fn a_panic_in_the_guc_resets_it() {
    let mut bench = CardBench::new();
    bench.initialise_driver();
    let _workers = Workers::start(bench.card.clone(), 2, "").unwrap();
    bench.enable_rings(GLOBAL_RAM + 0x8000);
    bench.panic_at(RAM.0 + 0x8000);
    bench.request(0x1001, &[1, 1]);
    eventually("the GuC is in reset", || bench.get(firmware::STATUS) == 1);
    assert_eq!(bench.card.panics(), 1);
    bench.initialise_driver();
    bench.poke(SCRATCH, 0);
    bench.submit(1, EngineClass::Copy, &mi::store_data_imm(Global(SCRATCH), 0x600d));
    eventually("the card works", || bench.peek(SCRATCH) == 0x600d);
}

/// Contract E.2: commands in guest memory with a mapping that ends within a dword cause a fault, not an endless wait.
#[test]
fn commands_in_odd_bits_of_memory() {
    let mut bench = CardBench::new();
    bench.initialise_driver();
    bench.submit(1, EngineClass::Copy, &mi::batch_buffer_start(Global(GLOBAL_ODD)));
    assert!(bench.work(1000), "the engine did not become idle");
    let sent: Vec<u32> = (0..16).map(|at| bench.peek(CTB + 0x2000 + at * 4)).collect();
    assert!(sent.windows(2).any(|pair| pair == [0x9000_1008, 1]), "no CONTEXT_RESET_NOTIFICATION: {sent:x?}");
    assert_eq!(bench.card.panics(), 0, "a reset after a panic sends the same notification");
}
