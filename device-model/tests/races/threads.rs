// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Concurrency test: processors of several functions and of the PF, workers, and a host that makes resets.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use arctic_device_model::card::Workers;
use arctic_device_model::host::Function;
use arctic_test_support::process::setting;
use arctic_test_support::vfs::bench::*;
use arctic_test_support::vfs::others::{fill, snapshot};
use arctic_test_support::vfs::pf::Pf;
use arctic_test_support::vfs::world::Time;

use crate::driver::{Driver, Processor};
use crate::interleaved::{attacker_starts_anew, works};

/// Aborts the process, and names the thread, if a thread makes no progress for half a minute, which indicates a
/// deadlock.
struct Watchdog {
    beats: Vec<(&'static str, Arc<AtomicU64>)>,
    stop: Arc<AtomicBool>,
}

impl Watchdog {
    fn new() -> Watchdog {
        Watchdog { beats: Vec::new(), stop: Arc::new(AtomicBool::new(false)) }
    }

    /// Runs `body` repeatedly on a separate thread, until all are stopped.
    fn spawn(&mut self, name: &'static str, mut body: impl FnMut() + Send + 'static) -> thread::JoinHandle<()> {
        let (beat, stop) = (Arc::new(AtomicU64::new(0)), self.stop.clone());
        self.beats.push((name, beat.clone()));
        thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                body();
                beat.fetch_add(1, Ordering::Relaxed);
            }
            // Marks the thread as terminated.
            beat.store(u64::MAX, Ordering::Relaxed);
        })
    }

    /// Monitors the threads for the duration `until` and until `enough` returns true, stops them, and waits for all of
    /// them.
    fn watch(self, until: Duration, enough: impl Fn() -> bool, threads: Vec<thread::JoinHandle<()>>) {
        const PATIENCE: Duration = Duration::from_secs(30);
        let (start, mut moved) = (Instant::now(), vec![(0, Instant::now()); self.beats.len()]);
        while threads.iter().any(|thread| !thread.is_finished()) {
            thread::sleep(Duration::from_millis(5));
            // A thread that ends before it is stopped has panicked.
            let ended = threads.iter().any(thread::JoinHandle::is_finished);
            if ended || start.elapsed() > until && (enough() || start.elapsed() > 2 * PATIENCE) {
                self.stop.store(true, Ordering::Relaxed);
            }
            for ((name, beat), (last, since)) in self.beats.iter().zip(&mut moved) {
                let now = beat.load(Ordering::Relaxed);
                if now != *last {
                    (*last, *since) = (now, Instant::now());
                } else if now != u64::MAX && since.elapsed() > PATIENCE {
                    let all: Vec<_> =
                        self.beats.iter().map(|(name, beat)| (name, beat.load(Ordering::Relaxed))).collect();
                    // Written directly, because output of `eprintln!` is captured until the test ends, which it never
                    // does.
                    let _ = writeln!(
                        std::io::stderr(),
                        "{name}: no progress for {PATIENCE:?}, possibly a deadlock. Iterations: {all:?}"
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
    Duration::from_millis(setting("RACES_MS", 1500))
}

/// Two processors and the driver of a function, the same of a function that is reset repeatedly, and an idle function,
/// with two workers, while the host invalidates TLBs and unmaps memory that is being written: after the card is
/// quiesced no thread writes that memory.
#[test]
fn functions_beside_one_that_is_reset() {
    let mut bench = Bench::with(true, Some(QUOTA), Time::real());
    bench.victims.iter_mut().for_each(Vf::up);
    bench.attacker.up();
    fill(&bench);
    let before = snapshot(&bench, false);
    let workers = Workers::start(bench.card.clone(), 2).unwrap();
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
    threads.push(watchdog.spawn("the driver of the function in reset", move || {
        if steps % 64 == 0 {
            driver.restart();
        }
        steps += 1;
        driver.step();
    }));
    for (seed, (name, function)) in (1..).zip([
        ("the victim's second processor", VICTIMS[0]),
        ("the victim's third processor", VICTIMS[0]),
        ("a processor of the function in reset", ATTACKER),
    ]) {
        let mut processor = Processor::new(bench.vf(function));
        // This function's driver restarts repeatedly, using the same mailbox.
        processor.vf.disturbed = function == ATTACKER;
        let mut random = Random::new(seed);
        // The third processor does not use the mailbox, which supports one writer.
        let only_looks = seed == 2;
        threads.push(watchdog.spawn(name, move || {
            if only_looks {
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
                // The memory belongs to another owner from here.
                let guest = guests.of(ATTACKER);
                let others = arctic_test_support::vfs::canary::bytes(0, guest.bytes().len());
                guest.fill(&others);
                thread::sleep(Duration::from_micros(random.below(1000)));
                assert!(guest.bytes() == others, "unmapped memory was written");
                guest.fill(&vec![0; others.len()]);
                guests.map(ATTACKER, true);
            }
            2 => card.gt().memory.invalidate(),
            _ => drop(card.status()),
        }
        thread::sleep(Duration::from_micros(random.below(2000)));
    }));
    watchdog.watch(duration(), || jobs.load(Ordering::Relaxed) > 1, threads);
    drop(workers);
    println!("the victim completed {} jobs", jobs.load(Ordering::Relaxed));
    assert!(jobs.load(Ordering::Relaxed) > 1, "the victim completed no job");
    assert_eq!(bench.card.panics(), 0);
    attacker_starts_anew(&mut bench, &before);
}

/// Two processors of the PF's guest access its registers of all kinds, including resets and firmware loads of the GuC,
/// while three functions work and the host resets functions and enables and disables VFs. The card does not panic or
/// deadlock; after a new start it works, and no guest's memory has changed.
#[test]
fn resets_of_everything() {
    let mut bench = Bench::with(true, None, Time::real());
    let guests = [Function::PF, VICTIMS[0], ATTACKER, VICTIMS[1]];
    for function in guests {
        let guest = bench.guests.of(function);
        guest.fill(&arctic_test_support::vfs::canary::bytes(function.0, guest.bytes().len()));
    }
    let workers = Workers::start(bench.card.clone(), 2).unwrap();
    let mut watchdog = Watchdog::new();
    let mut threads = Vec::new();
    for function in [VICTIMS[0], ATTACKER] {
        let mut driver = Driver::new(bench.vf(function));
        driver.vf.disturbed = true;
        let mut steps = 0;
        threads.push(watchdog.spawn("a driver", move || {
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
    threads.push(watchdog.spawn("a virtual function's processor", move || processor.step(&mut random)));
    for (seed, name) in [(4, "the PF's processor"), (5, "the PF's second processor")] {
        let (card, mut random) = (bench.card.clone(), Random::new(seed));
        threads.push(watchdog.spawn(name, move || {
            let (register, value) = pf_write(&mut random);
            card.write(Function::PF, register.into(), &value.to_le_bytes());
            let mut data = [0; 4];
            card.read(Function::PF, random.below(0x40_0000 / 4) * 4, &mut data);
        }));
    }
    let (card, mut random) = (bench.card.clone(), Random::new(6));
    threads.push(watchdog.spawn("the host", move || {
        match random.below(8) {
            0 => card.reset(),
            1 => card.disable_vfs(),
            2 | 3 => card.enable_vfs(3),
            4 => card.quiesce(),
            n => card.reset_function(Function(n as u8 - 4)),
        }
        thread::sleep(Duration::from_micros(random.below(3000)));
    }));
    watchdog.watch(duration(), || true, threads);
    drop(workers);
    assert_eq!(bench.card.panics(), 0);
    bench.card.disable_vfs();
    bench.card.reset();
    *bench.pf.borrow_mut() = Some(Pf::up(&bench.card));
    bench.work(60);
    for guest in guests {
        let bytes = bench.guests.of(guest).bytes();
        assert!(
            bytes == arctic_test_support::vfs::canary::bytes(guest.0, bytes.len()),
            "{guest:?}'s memory has changed"
        );
    }
    bench.victims[0].up();
    works(&mut bench, |bench| &mut bench.victims[0]);
    bench.attacker.up();
    works(&mut bench, |bench| &mut bench.attacker);
}

/// Returns a PF register write with side effects: resets of engines and GuC, firmware loads, execlist ports, error
/// registers, interrupts, forcewake, power and mailboxes.
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
        52..56 => (BELL, 1),
        56..60 => (0x37_3000 + random.below(3) as u32 * 4, random.dword()),
        _ => (0x13_8124 + random.below(3) as u32 * 4, random.dword()),
    }
}
