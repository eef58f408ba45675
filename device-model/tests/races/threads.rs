// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Concurrency tests: threads for the drivers and vCPUs of several functions, for the card's workers, and for a host
//! that performs resets.

use arctic_device_model::gpu::VirtualFunctions;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use arctic_device_model::gpu::Gpu;
use arctic_device_model::host::{ALL_FUNCTIONS, Function};
use arctic_device_model::workers::Workers;
use arctic_test_support::process::setting;
use arctic_test_support::vfs::bench::*;
use arctic_test_support::vfs::others::{fill, snapshot};
use arctic_test_support::vfs::pf::Pf;
use arctic_test_support::vfs::world::Time;

use crate::driver::{Driver, Processor};
use crate::interleaved::{reset_attacker, works};

/// Prints the name of a thread that makes no progress for 30 seconds, which indicates a deadlock, and aborts the
/// process.
struct Watchdog {
    /// Name and number of iterations of each thread.
    iterations: Vec<(&'static str, Arc<AtomicU64>)>,
    stop: Arc<AtomicBool>,
}

impl Watchdog {
    fn new() -> Watchdog {
        Watchdog { iterations: Vec::new(), stop: Arc::new(AtomicBool::new(false)) }
    }

    /// Runs `body` repeatedly on a separate thread, until [`Watchdog::watch`] stops all threads.
    fn spawn(&mut self, name: &'static str, mut body: impl FnMut() + Send + 'static) -> thread::JoinHandle<()> {
        let (count, stop) = (Arc::new(AtomicU64::new(0)), self.stop.clone());
        self.iterations.push((name, count.clone()));
        thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                body();
                count.fetch_add(1, Ordering::Relaxed);
            }
            // Marks the thread as terminated.
            count.store(u64::MAX, Ordering::Relaxed);
        })
    }

    /// Monitors the threads for at least `minimum`, and then until `enough` returns true or a minute has passed since
    /// the start; then stops them and waits for them.
    fn watch(self, minimum: Duration, enough: impl Fn() -> bool, threads: Vec<thread::JoinHandle<()>>) {
        const TIMEOUT: Duration = Duration::from_secs(30);
        let (start, mut progress) = (Instant::now(), vec![(0, Instant::now()); self.iterations.len()]);
        while threads.iter().any(|thread| !thread.is_finished()) {
            thread::sleep(Duration::from_millis(5));
            // A thread that ends before it is stopped has panicked.
            let ended = threads.iter().any(thread::JoinHandle::is_finished);
            if ended || start.elapsed() > minimum && (enough() || start.elapsed() > 2 * TIMEOUT) {
                self.stop.store(true, Ordering::Relaxed);
            }
            for ((name, count), (last, since)) in self.iterations.iter().zip(&mut progress) {
                let now = count.load(Ordering::Relaxed);
                if now != *last {
                    (*last, *since) = (now, Instant::now());
                } else if now != u64::MAX && since.elapsed() > TIMEOUT {
                    let all: Vec<_> =
                        self.iterations.iter().map(|(name, count)| (name, count.load(Ordering::Relaxed))).collect();
                    // Written directly: the test harness captures output of `eprintln!` until the test ends, and would
                    // lose it in the abort.
                    let _ = writeln!(
                        std::io::stderr(),
                        "{name}: no progress for {TIMEOUT:?}, possibly a deadlock. Iterations: {all:?}"
                    );
                    std::process::abort();
                }
            }
        }
        for thread in threads {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    }
}

fn duration() -> Duration {
    Duration::from_millis(setting("ARCTIC_RACES_MS", 1500))
}

/// A driver and two more vCPUs use one VF; a driver and another vCPU use a second VF, which the host resets repeatedly;
/// a third VF is idle. Two workers run the card, and the host also invalidates TLBs and unmaps memory that the second
/// VF is writing. The jobs of the first VF complete, and no thread writes unmapped memory after `Card::quiesce` has
/// returned.
#[test]
fn resets_of_one_function_do_not_affect_others() {
    let mut bench = VfBench::with(true, Some(QUOTA), Time::real());
    bench.victims.iter_mut().for_each(Vf::up);
    bench.attacker.up();
    fill(&bench);
    let before = snapshot(&bench, false);
    let workers = Workers::start(bench.card.clone(), 2, "").unwrap();
    let mut watchdog = Watchdog::new();
    let mut threads = Vec::new();
    let jobs = Arc::new(AtomicU64::new(0));
    let mut driver = Driver::new(bench.vf(VICTIMS[0]));
    let done = jobs.clone();
    threads.push(watchdog.spawn("the victim's driver", move || {
        driver.step();
        done.store(driver.jobs().into(), Ordering::Relaxed);
        thread::yield_now();
    }));
    let mut driver = Driver::new(bench.vf(ATTACKER));
    driver.vf.disturbed = true;
    driver.floods = true;
    let mut steps = 0;
    threads.push(watchdog.spawn("the driver of the function that is reset", move || {
        if steps % 64 == 0 {
            driver.restart();
        }
        steps += 1;
        driver.step();
    }));
    for (seed, (name, function)) in (1..).zip([
        ("the victim's second vCPU", VICTIMS[0]),
        ("the victim's third vCPU", VICTIMS[0]),
        ("a vCPU of the function that is reset", ATTACKER),
    ]) {
        let mut processor = Processor::new(bench.vf(function));
        // The driver of this function restarts repeatedly and uses the same mailbox.
        processor.vf.disturbed = function == ATTACKER;
        let mut random = Random::new(seed);
        // The third vCPU does not use the mailbox, which must have only one user at a time.
        let without_mailbox = seed == 2;
        threads.push(watchdog.spawn(name, move || {
            if without_mailbox {
                processor.vf.get(random.below(0x40_0000 / 4) as u32 * 4);
                processor.vf.set(0x40_0000 + random.below(8) as u32 * 4096, 1);
            } else {
                processor.step(&mut random);
            }
        }));
    }
    let (card, guests, mut random) = (bench.card.clone(), bench.guests.clone(), Random::new(7));
    threads.push(watchdog.spawn("the host", move || {
        match random.below(4) {
            0 => card.reset_function(ATTACKER),
            1 => {
                guests.map(ATTACKER, false);
                card.quiesce();
                // From here on, the memory may be reused.
                let guest = guests.of(ATTACKER);
                let new_data = arctic_test_support::vfs::canary::bytes(0, guest.bytes().len());
                guest.fill(&new_data);
                thread::sleep(Duration::from_micros(random.below(1000)));
                assert!(guest.bytes() == new_data, "unmapped memory was written");
                guest.fill(&vec![0; new_data.len()]);
                guests.map(ATTACKER, true);
            }
            2 => card.gt().memory.invalidate(ALL_FUNCTIONS),
            _ => drop(card.status()),
        }
        thread::sleep(Duration::from_micros(random.below(2000)));
    }));
    watchdog.watch(duration(), || jobs.load(Ordering::Relaxed) > 1, threads);
    drop(workers);
    println!("the victim completed {} jobs", jobs.load(Ordering::Relaxed));
    assert!(jobs.load(Ordering::Relaxed) > 1, "the victim completed fewer than two jobs");
    assert_eq!(bench.card.panics(), 0);
    reset_attacker(&mut bench, &before);
}

/// Two vCPUs of the PF's guest write registers with side effects, including resets and GuC firmware loads, and read any
/// register, while three VFs are in use and the host resets the card and its functions and enables and disables VFs.
/// The card does not panic or deadlock; after a reset it works, and no guest's memory has changed.
#[test]
fn concurrent_resets_of_card_engines_and_functions() {
    let mut bench = VfBench::with(true, None, Time::real());
    let guests = [Function::PF, VICTIMS[0], ATTACKER, VICTIMS[1]];
    for function in guests {
        let guest = bench.guests.of(function);
        guest.fill(&arctic_test_support::vfs::canary::bytes(function.number(), guest.bytes().len()));
    }
    let workers = Workers::start(bench.card.clone(), 2, "").unwrap();
    let mut watchdog = Watchdog::new();
    let mut threads = Vec::new();
    for function in [VICTIMS[0], ATTACKER] {
        let mut driver = Driver::new(bench.vf(function));
        driver.vf.disturbed = true;
        let mut steps = 0;
        threads.push(watchdog.spawn("a VF's driver", move || {
            if steps % 64 == 0 {
                driver.restart();
            }
            steps += 1;
            driver.step();
        }));
    }
    let mut processor = Processor::new(bench.vf(VICTIMS[1]));
    processor.vf.disturbed = true;
    let mut random = Random::new(3);
    threads.push(watchdog.spawn("a VF's vCPU", move || processor.step(&mut random)));
    for (seed, name) in [(4, "the PF's first vCPU"), (5, "the PF's second vCPU")] {
        let (card, mut random) = (bench.card.clone(), Random::new(seed));
        threads.push(watchdog.spawn(name, move || {
            let (register, value) = pf_write(&mut random);
            card.write_gttmmadr(Function::PF, register.into(), &value.to_le_bytes());
            let mut data = [0; 4];
            card.read_gttmmadr(Function::PF, random.below(0x40_0000 / 4) * 4, &mut data);
        }));
    }
    let (card, mut random) = (bench.card.clone(), Random::new(6));
    threads.push(watchdog.spawn("the host", move || {
        match random.below(8) {
            0 => card.reset_card(),
            1 => card.disable_vfs(),
            2 | 3 => card.enable_vfs(3),
            4 => card.quiesce(),
            n => card.reset_function(Function::new(n as u8 - 4).unwrap()),
        }
        thread::sleep(Duration::from_micros(random.below(3000)));
    }));
    watchdog.watch(duration(), || true, threads);
    drop(workers);
    assert_eq!(bench.card.panics(), 0);
    bench.card.disable_vfs();
    bench.card.reset_card();
    *bench.pf.borrow_mut() = Some(Pf::up(&bench.card));
    bench.work(60);
    for guest in guests {
        let bytes = bench.guests.of(guest).bytes();
        assert!(
            bytes == arctic_test_support::vfs::canary::bytes(guest.number(), bytes.len()),
            "{guest:?}'s memory has changed"
        );
    }
    bench.victims[0].up();
    works(&mut bench, |bench| &mut bench.victims[0]);
    bench.attacker.up();
    works(&mut bench, |bench| &mut bench.attacker);
}

/// Returns offset and value of a random register write of the PF that has side effects: resets of engines and GuC,
/// firmware loads, execlist submission, error registers, interrupts, forcewake, power and mailboxes.
fn pf_write(random: &mut Random) -> (u32, u32) {
    let base = random.of(&[0x2000, 0x2_2000, 0x1a000, 0x1c_0000, 0x1c_8000]);
    match random.below(64) {
        0 => (0x941c, random.of(&[1, 8, 2, 4, 1 << 5, 1 << 13])),
        1 => (0x10_1010, 1 << 31),
        2..6 => (0xc314, 0x11 << 16 | 0x11),
        6..12 => (base + 0x550, 1),
        12..20 => (base + 0x230, random.dword()),
        20..23 => (base + 0x29c, 0x0008_0008),
        23..26 => (base + 0xd0, 0x0001_0000 | random.below(2) as u32),
        26..34 => (base + random.of(&[0xb0, 0xb4]), random.dword()),
        34..40 => (0xa188, 0x0001_0000 | random.below(2) as u32),
        40..42 => (0xced8, 1),
        42..48 => (random.of(&[0x19_0030, 0x19_0034, 0x19_0090, 0x19_0008, 0x19_0018, 0x19_0070]), random.dword()),
        48..52 => (MAILBOX + random.below(4) as u32 * 4, random.dword()),
        52..56 => (GUC_HOST_INTERRUPT, 1),
        56..60 => (0x37_3000 + random.below(3) as u32 * 4, random.dword()),
        _ => (0x13_8124 + random.below(3) as u32 * 4, random.dword()),
    }
}
