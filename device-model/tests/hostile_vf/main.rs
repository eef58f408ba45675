// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A hostile virtual function attacks other functions: it uses its BARs, rings and contexts in any way. It must not be
//! able to read or write data of other functions, get more engine time than its quantum allows, or make the card panic,
//! hang or leak memory.
//!
//! `ARCTIC_HOSTILE_CASES` sets the number of random cases, `ARCTIC_HOSTILE_SEED` the first seed.
#![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

mod aim;
mod at_once;
mod attacks;
mod kernels;
mod residue;
mod sweeps;
mod time;

use arctic_device_model::gpu::Gpu;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arctic_device_model::topology::EngineClass;
use arctic_test_support::mi::{self, Compare, Global, Reg};
use arctic_test_support::process::{resident, setting};
use arctic_test_support::vfs::bench::*;
use arctic_test_support::vfs::canary;
use arctic_test_support::vfs::others::{fill, nothing_leaked, own_control, snapshot, unharmed};
use arctic_test_support::vfs::world::{self, Time, read};

use attacks::attack;

/// Maximum number of log lines about kernels: 64 for the attacker, since the card was created.
const KERNEL_LINES: u64 = 64;

/// Returns the offsets of the registers that the card models.
fn listing(bench: &VfBench) -> Vec<u32> {
    bench.card.gt().registers.listing().map(|(offset, _)| offset).collect()
}

/// Aborts the process after a minute without progress, which indicates a deadlock or an endless loop.
struct Watchdog(std::sync::Arc<AtomicU64>);

impl Watchdog {
    fn new(what: &'static str) -> Self {
        let beats = std::sync::Arc::new(AtomicU64::new(0));
        let watched = std::sync::Arc::downgrade(&beats);
        std::thread::spawn(move || {
            let mut last = u64::MAX;
            while let Some(now) = watched.upgrade().map(|beats| beats.load(Ordering::Relaxed)) {
                if now == last {
                    // Written directly, because output of `eprintln!` is captured until the test ends.
                    let _ = writeln!(std::io::stderr(), "{what}: no progress for a minute after beat {now}");
                    std::process::abort();
                }
                last = now;
                std::thread::sleep(Duration::from_secs(60));
            }
        });
        Watchdog(beats)
    }

    fn beat(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A victim's job that runs during the attack: it loads values into its engine's registers, waits for a semaphore, and
/// then stores the registers.
struct Job {
    victim: usize,
    class: EngineClass,
}

impl Job {
    const ID: u32 = 3;
    const GATE: u64 = at::SCRATCH + 0x100;
    const DONE: u64 = at::SCRATCH + 0x104;
    const OUT: u64 = at::SCRATCH + 0x200;
    const GPRS: u32 = 32;

    fn value(&self, n: u32) -> u32 {
        canary::word(VICTIMS[self.victim].number(), u64::from(n) + 77)
    }

    fn start(bench: &mut VfBench, victim: usize, class: EngineClass) -> Job {
        let job = Job { victim, class };
        let vf = &mut bench.victims[victim];
        let base = vf.base();
        let mut words: Vec<u32> =
            (0..Self::GPRS).flat_map(|n| mi::load_register_imm(Reg::Own(mi::GPR0 + n * 4), job.value(n))).collect();
        words.extend(mi::semaphore_wait(Global(base + Self::GATE), Compare::Equal, 1));
        for n in 0..Self::GPRS {
            let out = base + Self::OUT + u64::from(n) * 4;
            words.extend(mi::store_register_mem(Reg::Own(mi::GPR0 + n * 4), Global(out)));
        }
        words.extend(mi::store_data_imm(Global(base + Self::DONE), 0x600d));
        vf.write_words(Self::GATE, &[0; 0x100]);
        vf.submit(Self::ID, class, &words);
        bench.work(20);
        job
    }

    /// The same by a kernel.
    fn start_kernel(bench: &mut VfBench, victim: usize, class: EngineClass) -> Job {
        let job = Job { victim, class };
        let vf = &mut bench.victims[victim];
        let values: Vec<u32> = (0..Self::GPRS).map(|n| job.value(n)).collect();
        vf.write_words(Self::GATE, &[0; 0x100]);
        let ring = kernels::waiting_job(vf, Self::ID, Self::GATE, Self::OUT, Self::DONE, &values);
        vf.submit(Self::ID, class, &ring);
        bench.work(20);
        job
    }

    fn finish(self, bench: &mut VfBench) {
        bench.victims[self.victim].poke(Self::GATE, 1);
        bench.until("a victim's job", 60_000, |bench| bench.victims[self.victim].peek(Self::DONE) == 0x600d);
        let vf = &mut bench.victims[self.victim];
        for n in 0..Self::GPRS {
            let seen = vf.peek(Self::OUT + u64::from(n) * 4);
            assert_eq!(seen, self.value(n), "{:?}: register {n} of {:?}", self.class, vf.function);
        }
        retire(bench, self.victim, Self::ID);
    }
}

/// Deregisters a victim's context, and reads the completion message.
fn retire(bench: &mut VfBench, victim: usize, id: u32) {
    bench.victims[victim].consume();
    bench.victims[victim].request(arctic_guc_driver::actions::DEREGISTER_CONTEXT, &[id]);
    bench.until("the end of a victim's context", 60_000, |bench| {
        bench.victims[victim].consume();
        bench.card.status().functions[VICTIMS[victim].index()].contexts == Some(0)
    });
}

/// Checks that each victim's job completes on this engine class.
fn works(bench: &mut VfBench, class: EngineClass) {
    for victim in 0..2 {
        let vf = &mut bench.victims[victim];
        vf.poke(at::SCRATCH, 0);
        let job = mi::store_data_imm(vf.global(at::SCRATCH), 0x600d);
        vf.submit(1, class, &job);
        bench.until("a victim's work", 60_000, |bench| bench.victims[victim].peek(at::SCRATCH) == 0x600d);
        retire(bench, victim, 1);
    }
    for victim in &bench.victims {
        for n in 1..4 {
            victim.set(MAILBOX + n * 4, canary::word(victim.function.number(), n.into()));
        }
    }
}

/// One case: resets the attacker, runs random attacks, and checks the invariants.
fn case(bench: &mut VfBench, random: &mut Random, registers: &[u32], watchdog: &Watchdog) {
    let logged = world::lines();
    bench.card.reset_function(ATTACKER);
    bench.work(40);
    assert_eq!(
        own_control(bench).iter().position(|byte| *byte != 0),
        None,
        "compression control data was not cleared by an FLR"
    );
    assert!(
        read(&bench.attacker.local, 0, LOCAL as usize).iter().all(|byte| *byte == 0),
        "memory was not cleared by an FLR"
    );
    bench.attacker_up();
    bench.work(20);
    let idle = random.one_in(3);
    let class = random.of(&EngineClass::BY_GUC);
    let computes = matches!(class, EngineClass::Render | EngineClass::Compute) && random.one_in(2);
    let start = if computes { Job::start_kernel } else { Job::start };
    let jobs = if idle { None } else { Some([0, 1].map(|victim| start(bench, victim, class))) };
    let before = snapshot(bench, idle);
    for _ in 0..20 + random.below(60) {
        attack(bench, random, registers);
        watchdog.beat();
    }
    bench.work(100);
    unharmed(&before, &snapshot(bench, idle));
    for job in jobs.into_iter().flatten() {
        job.finish(bench);
    }
    nothing_leaked(bench, random.one_in(16));
    works(bench, class);
    assert_eq!(bench.card.panics(), 0);
    let lines = world::lines() - logged;
    assert!(lines < 40 + KERNEL_LINES, "{lines} log lines in one case");
    let held = world::held(&bench.files);
    assert!(held < 80 << 20, "the card's files use {} MiB", held >> 20);
}

fn random_attacks(mapped: bool, driver: bool) {
    let watchdog = Watchdog::new("a hostile function");
    let mut bench = VfBench::with(mapped, (!driver).then_some(QUOTA), Time::real());
    bench.victims.iter_mut().for_each(Vf::up);
    fill(&bench);
    works(&mut bench, EngineClass::Copy);
    let registers = listing(&bench);
    let (first, cases) = (setting("ARCTIC_HOSTILE_SEED", 1), setting("ARCTIC_HOSTILE_CASES", 40));
    let mut warm = None;
    for seed in first..first + cases {
        let mut random = Random::new(seed ^ u64::from(mapped) << 32 ^ u64::from(driver) << 33);
        let done = catch_unwind(AssertUnwindSafe(|| case(&mut bench, &mut random, &registers, &watchdog)));
        if let Err(panic) = done {
            println!(
                "reproduce with ARCTIC_HOSTILE_SEED={seed} ARCTIC_HOSTILE_CASES=1; mapped {mapped}, PF driver {driver}"
            );
            resume_unwind(panic);
        }
        if seed == first + 8 {
            warm = Some(resident());
        }
        if let Some(warm) = warm {
            let grown = resident().saturating_sub(warm);
            assert!(grown < 256 << 20, "{} MiB more", grown >> 20);
        }
    }
    let status = bench.card.status();
    let tally = &status.functions[ATTACKER.index()];
    let (cat_errors, engine_resets) = (tally.cat_errors.unwrap(), tally.engine_resets.unwrap());
    println!("{cat_errors} accesses without translation, {engine_resets} engine resets");
    assert!(cat_errors >= cases && engine_resets >= cases, "too few faults and resets for an effective test");
}

/// Random attacks with mapped GGTT windows.
#[test]
fn random_attacks_with_mapped_tables() {
    random_attacks(true, false);
}

/// Random attacks with trapped GGTT windows.
#[test]
fn random_attacks_with_trapped_tables() {
    random_attacks(false, false);
}

/// Random attacks with a PF driver, which provisions VFs by messages and completes the FLRs.
#[test]
fn random_attacks_under_a_pf_driver() {
    random_attacks(true, true);
}
