// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Concurrency and floods: workers, resets and accesses from several threads, and endless requests.

use arctic_device_model::gpu::Gpu;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use arctic_device_model::profile::provision::Quota;
use arctic_device_model::topology::EngineClass;
use arctic_device_model::workers::Workers;
use arctic_test_support::actions;
use arctic_test_support::mi::{self, Global};
use arctic_test_support::process::{resident, setting};
use arctic_test_support::vfs::bench::*;
use arctic_test_support::vfs::others::*;
use arctic_test_support::vfs::world::{Time, held, lines};

use crate::attacks::attack;
use crate::kernels;
use crate::{Watchdog, aim, listing};

/// Runs jobs on another VF until `stop` is set; returns the number of completed jobs.
fn neighbour(mut vf: Vf, stop: &AtomicBool, beats: &AtomicU64) -> u64 {
    let mut done = 0;
    while !stop.load(Ordering::Relaxed) {
        let class = EngineClass::BY_GUC[done as usize % 5];
        let value = done as u32 | 1 << 31;
        vf.submit(1, class, &mi::store_data_imm(vf.global(at::SCRATCH), value));
        wait("a victim's work", || vf.peek(at::SCRATCH) == value);
        vf.request(0x4503, &[1]);
        wait("the end of a victim's context", || {
            vf.consume();
            vf.card.status().functions[vf.function.index()].contexts == Some(0)
        });
        done += 1;
        beats.fetch_add(1, Ordering::Relaxed);
    }
    done
}

fn wait(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(40), "timed out after 40 s waiting for: {what}");
        thread::sleep(Duration::from_micros(200));
    }
}

/// Three workers run while the attacker performs accesses, changes entries that engines are reading, and is reset by
/// FLR at random times; two other VFs must complete their work.
#[test]
fn workers_and_resets_at_once() {
    let registers = listing(&VfBench::new(true));
    attacks_and_resets("everything at once", |bench, random| attack(bench, random, &registers));
}

/// The same with walkers alone, which engines and clusters execute.
#[test]
fn kernels_on_several_workers_and_resets() {
    attacks_and_resets("kernels on several workers", |bench, random| {
        // After a reset the function has no contexts.
        if random.one_in(8) {
            bench.attacker_up();
        }
        kernels::attack(bench, random);
    });
}

/// Performs attacks while three workers run, entries change and the attacker is reset.
fn attacks_and_resets(what: &'static str, attack: impl Fn(&mut VfBench, &mut Random)) {
    let watchdog = Watchdog::new(what);
    let share = Quota { preempt_timeout_us: 2_000_000, ..QUOTA };
    let mut bench = VfBench::with(true, Some(share), Time::real());
    bench.victims.iter_mut().for_each(Vf::up);
    bench.attacker.up();
    fill(&bench);
    bench.attacker.disturbed = true;
    let before = snapshot(&bench, false);
    let workers = Workers::start(bench.card.clone(), 3, "").unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let until = |stop: &Arc<AtomicBool>| {
        let stop = stop.clone();
        move || !stop.load(Ordering::Relaxed)
    };
    let neighbours = VICTIMS.map(|function| {
        let (vf, stop, beats) = (bench.vf(function), stop.clone(), watchdog.0.clone());
        thread::spawn(move || neighbour(vf, &stop, &beats))
    });
    let forger = {
        let (vf, goes_on) = (bench.vf(ATTACKER), until(&stop));
        thread::spawn(move || {
            let mut random = Random::new(11);
            while goes_on() {
                vf.set_global(aim::window(&mut random) >> 12, aim::entry(&mut random));
                vf.poke64(at::TABLES + random.below(0x8000 / 8) * 8, aim::process_entry(&mut random));
            }
        })
    };
    let resetter = {
        let (card, goes_on) = (bench.card.clone(), until(&stop));
        thread::spawn(move || {
            let mut random = Random::new(12);
            while goes_on() {
                thread::sleep(Duration::from_micros(random.below(20_000)));
                card.reset_function(ATTACKER);
            }
        })
    };
    let mut random = Random::new(13);
    let end = Instant::now() + Duration::from_millis(setting("ARCTIC_HOSTILE_STRESS_MS", 2000));
    let mut attacks = 0;
    while Instant::now() < end {
        attack(&mut bench, &mut random);
        attacks += 1;
    }
    stop.store(true, Ordering::Relaxed);
    forger.join().unwrap();
    resetter.join().unwrap();
    let done = neighbours.map(|neighbour| neighbour.join().unwrap());
    println!("{attacks} attacks, while the victims completed {done:?} jobs");
    drop(workers);
    assert_eq!(bench.card.panics(), 0);
    assert!(done.iter().all(|done| *done > 0), "{done:?}");
    let kernels = bench.card.status().functions[ATTACKER.index()].kernels;
    assert!(kernels.is_some_and(|kernels| kernels.instructions > 0), "{kernels:?}");
    for victim in &bench.victims {
        // Each job rewrites its ring, so it is cleared before the comparison.
        victim.write_words(Vf::ring(1, 0), &[0; 8]);
    }
    unharmed(&before, &snapshot(&bench, false));
    nothing_leaked(&bench, true);
}

/// Floods of requests from a function that does not read its G2H ring: memory use does not grow.
#[test]
fn request_floods_do_not_grow_memory() {
    let watchdog = Watchdog::new("floods");
    for driver in [false, true] {
        let mut bench = VfBench::with(true, (!driver).then_some(QUOTA), Time::real());
        bench.attacker.up();
        let (mut warm, logged) = (0, lines());
        for round in 0..6000u32 {
            let vf = &mut bench.attacker;
            match round % 8 {
                0 => (0..60).for_each(|n| vf.request(0x5103, &[n, 0x101, 0])),
                1 => (0..60).for_each(|n| vf.request(actions::TLB_INVALIDATION, &[n, actions::INVALIDATE_FLUSH])),
                2 => (0..60).for_each(|n| vf.request(0x9999, &[n])),
                3 => (0..200).for_each(|n| {
                    vf.mail(&[0x5509, n, 0, 0]);
                }),
                4 => {
                    // Faulting contexts and their doorbells, while the notifications are not read.
                    for id in 0..16 {
                        vf.write_context(id, 0, &mi::store_data_imm(Global(base(VICTIMS[0])), 1));
                        vf.register(id, 0, 1);
                        vf.request(0x0010, &[id, id % 8, 0x40_0000 + id % 8 * 4096, 0, 0]);
                        vf.request(0x1001, &[id, 1]);
                    }
                }
                5 => {
                    for page in 0..8 {
                        vf.set(0x40_0000 + page * 4096, 1);
                    }
                }
                6 if round % 64 == 6 => bench.flr(),
                7 if round % 32 == 7 => bench.attacker_up(),
                _ => {}
            }
            bench.work(6);
            watchdog.beat();
            if round == 1000 {
                warm = resident();
            }
        }
        let grown = resident().saturating_sub(warm);
        // Other tests of this process run concurrently.
        assert!(grown < 256 << 20, "{} MiB more", grown >> 20);
        assert!(held(&bench.files) < 80 << 20);
        assert!(lines() - logged < 64, "{} log lines", lines() - logged);
        assert_eq!(bench.card.panics(), 0);
    }
}

/// Endless notifications of the GuC or TLB invalidations of one function, at a higher rate than any VMM produces, do not
/// take engine time from other functions.
#[test]
fn endless_doorbells_take_no_engine_time_of_others() {
    let _watchdog = Watchdog::new("ringing");
    let mut bench = VfBench::with(true, Some(Quota { preempt_timeout_us: 2_000_000, ..QUOTA }), Time::real());
    bench.victims.iter_mut().for_each(Vf::up);
    bench.attacker.up();
    let _workers = Workers::start(bench.card.clone(), 2, "").unwrap();
    let cell = at::SCRATCH + 0x40;
    let vf = &mut bench.victims[0];
    let ring = vf.jump(1);
    let count = mi::atomic_increment(vf.process(cell));
    vf.write_words(Vf::batch(1), &[&count[..], &[mi::ARB_CHECK], &ring].concat());
    vf.submit(1, EngineClass::Copy, &ring);
    wait("the victim's counter", || vf.peek(cell) != 0);
    let counted = |milliseconds| {
        let before = vf.peek(cell);
        thread::sleep(Duration::from_millis(milliseconds));
        vf.peek(cell).wrapping_sub(before)
    };
    let alone = counted(300);
    let stop = &AtomicBool::new(false);
    let (card, attacker) = (&bench.card, &mut bench.attacker);
    let [rung, flushed] = [false, true].map(|flushes| {
        stop.store(false, Ordering::Relaxed);
        thread::scope(|scope| {
            let ring = || {
                while !stop.load(Ordering::Relaxed) {
                    card.write_gttmmadr(ATTACKER, u64::from(GUC_HOST_INTERRUPT), &[1, 0, 0, 0]);
                }
            };
            if flushes {
                let attacker = &mut *attacker;
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        attacker.request(actions::TLB_INVALIDATION, &[1, actions::INVALIDATE_FLUSH]);
                        attacker.consume();
                    }
                });
            } else {
                (0..3).for_each(|_| drop(scope.spawn(ring)));
            }
            let counted = counted(300);
            stop.store(true, Ordering::Relaxed);
            counted
        })
    });
    println!("{alone} iterations alone, {rung} during notifications of the GuC, {flushed} during TLB invalidations");
    assert!(rung.min(flushed) > alone / 50, "{alone} iterations alone, {rung} and {flushed} during a flood");
}
