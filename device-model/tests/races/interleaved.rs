// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Accesses and steps of the card in an order determined by a seed.

use arctic_device_model::gpu::{Gpu, VirtualFunctions};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use arctic_device_model::host::Function;
use arctic_device_model::topology::EngineClass;
use arctic_test_support::mi;
use arctic_test_support::process::setting;
use arctic_test_support::vfs::bench::*;
use arctic_test_support::vfs::others::{Snapshot, fill, nothing_leaked, snapshot, unharmed};
use arctic_test_support::vfs::pf::Pf;
use arctic_test_support::vfs::world::Time;

use crate::driver::{Driver, Processor};

/// Number of accesses and steps per case.
const TURNS: u64 = 600;

fn cases(what: &str, default: u64, case: impl Fn(&mut Random)) {
    let (first, count) = (setting("ARCTIC_RACES_SEED", 1), setting("ARCTIC_RACES_CASES", default));
    for seed in first..first + count {
        let mut random = Random::new(seed);
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| case(&mut random))) {
            println!("{what}: reproduce with ARCTIC_RACES_SEED={seed} ARCTIC_RACES_CASES=1");
            resume_unwind(panic);
        }
    }
}

/// Checks that jobs of a new driver complete on each engine class.
pub fn works(bench: &mut VfBench, vf: impl Fn(&mut VfBench) -> &mut Vf) {
    for class in EngineClass::BY_GUC {
        let one = vf(bench);
        one.poke(at::SCRATCH, 0);
        let job = mi::store_data_imm(one.global(at::SCRATCH), 0x600d);
        one.submit(1, class, &job);
        bench.until_mut("work after the resets", 60_000, |bench| vf(bench).peek(at::SCRATCH) == 0x600d);
        vf(bench).request(0x4503, &[1]);
        bench.until_mut("the end of a context", 60_000, |bench| {
            let one = vf(bench);
            one.consume();
            let function = one.function;
            bench.card.status().functions[function.index()].contexts == Some(0)
        });
    }
}

/// Resets the attacker by FLR and checks that it has leaked no data, that no other function's data has changed since
/// `before`, and that its next driver works.
pub fn reset_attacker(bench: &mut VfBench, before: &Snapshot) {
    bench.card.reset_function(ATTACKER);
    bench.work(40);
    nothing_leaked(bench, false);
    // The victims' drivers and vCPUs have changed their rings and mailboxes, which are therefore restored before the
    // comparison.
    for victim in &bench.victims {
        victim.write_words(Vf::ring(5, 0), &[0; 8]);
        for n in 1..4 {
            victim.set(MAILBOX + n * 4, arctic_test_support::vfs::canary::word(victim.function.number(), n.into()));
        }
    }
    unharmed(before, &snapshot(bench, false));
    bench.attacker_up();
    works(bench, |bench| &mut bench.attacker);
    assert_eq!(bench.card.panics(), 0);
}

/// Runs the card for a random time.
fn turn(bench: &VfBench, random: &mut Random) {
    bench.work(1 + random.below(2) as u32);
    bench.pass(random.below(100_000));
}

/// A card that provisions VFs without a PF driver. One function is reset at random points of its work, a second
/// function works, and a third is idle. One more vCPU of each working function accesses registers, mailbox and
/// doorbells. The second function's jobs complete, and no function's data is lost or leaked.
#[test]
fn reset_of_one_function_leaves_the_others_working() {
    cases("functions beside one that is reset", 24, |random| {
        let mapped = random.one_in(2);
        let mut bench = VfBench::with(mapped, Some(QUOTA), Time::manual());
        bench.victims.iter_mut().for_each(Vf::up);
        bench.attacker.up();
        bench.attacker.disturbed = true;
        fill(&bench);
        let before = snapshot(&bench, false);
        let driver = |bench: &VfBench, function| Driver::new(bench.vf(function));
        let (mut works_on, mut reset) = (driver(&bench, VICTIMS[0]), driver(&bench, ATTACKER));
        reset.vf.disturbed = true;
        reset.restart();
        let mut processors = [VICTIMS[0], ATTACKER].map(|function| Processor::new(bench.vf(function)));
        // This function's driver restarts repeatedly, using the same mailbox.
        processors[1].vf.disturbed = true;
        for _ in 0..TURNS {
            match random.below(10) {
                0..3 => works_on.step(),
                3..5 => reset.step(),
                5 => processors[0].step(random),
                6 => processors[1].step(random),
                7 if random.one_in(4) => bench.card.reset_function(ATTACKER),
                7 if random.one_in(2) => reset.restart(),
                _ => turn(&bench, random),
            }
        }
        let done = works_on.jobs();
        bench.until_mut("the next job of the function that is not reset", 60_000, |_| {
            works_on.step();
            works_on.jobs() > done
        });
        assert_eq!(bench.card.panics(), 0);
        reset_attacker(&mut bench, &before);
    });
}

/// A PF driver resets engines, GuC and functions at random, enables and disables VFs, and starts FLRs, invalidations
/// and provisioning between any two accesses of three working functions. The card does not panic or deadlock. After a
/// restart it works, and no guest's memory has changed.
#[test]
fn random_resets_of_engines_guc_and_functions() {
    cases("resets of everything", 24, |random| {
        let mut bench = VfBench::with(random.one_in(2), None, Time::manual());
        let guests = [Function::PF, VICTIMS[0], ATTACKER, VICTIMS[1]];
        let functions = [VICTIMS[0], ATTACKER, VICTIMS[1]];
        let mut drivers = functions.map(|function| {
            let mut driver = Driver::new(bench.vf(function));
            driver.vf.disturbed = true;
            driver.restart();
            driver
        });
        for function in guests {
            let guest = bench.guests.of(function);
            guest.fill(&arctic_test_support::vfs::canary::bytes(function.number(), guest.bytes().len()));
        }
        let mut processors = functions.map(|function| Processor::new(bench.vf(function)));
        processors.iter_mut().for_each(|processor| processor.vf.disturbed = true);
        for _ in 0..TURNS {
            let n = random.below(3) as usize;
            match random.below(16) {
                0..6 => drivers[n].step(),
                6..8 => processors[n].step(random),
                8 if random.one_in(4) => drivers[n].restart(),
                9 if random.one_in(8) => disturb(&mut bench, random),
                _ => turn(&bench, random),
            }
        }
        // Restarts the PF driver.
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
        bench.victims[1].up();
        works(&mut bench, |bench| &mut bench.victims[1]);
        assert_eq!(bench.card.panics(), 0);
    });
}

/// Performs one random operation that only the PF can do.
fn disturb(bench: &mut VfBench, random: &mut Random) {
    const GDRST: u32 = 0x941c;
    const GU_CNTL: u32 = 0x10_1010;
    const TLB_INVALIDATE: u32 = 0xcee4;
    let card = bench.card.clone();
    let set = |register: u32, value: u32| card.write_gttmmadr(Function::PF, register.into(), &value.to_le_bytes());
    let again = |bench: &VfBench| *bench.pf.borrow_mut() = Some(Pf::up(&bench.card));
    match random.below(10) {
        // Resets engines only; the GuC is not notified.
        0 => set(GDRST, random.of(&[2, 4, 1 << 5, 1 << 7, 1 << 13])),
        1 => {
            set(GDRST, random.of(&[1, 8]));
            bench.work(random.below(4) as u32);
            again(bench);
        }
        2 => {
            set(GU_CNTL, 1 << 31);
            bench.work(random.below(4) as u32);
            again(bench);
        }
        3 => {
            card.disable_vfs();
            bench.work(random.below(4) as u32);
            card.enable_vfs(3);
        }
        4 => {
            card.reset_card();
            again(bench);
        }
        5 => set(TLB_INVALIDATE, 1),
        6 => bench.pf.borrow_mut().as_mut().unwrap().share_out(),
        7 => card.disable_vfs(),
        8 => card.enable_vfs(3),
        _ => card.reset_function(Function::new(1 + random.below(3) as u8).unwrap()),
    }
}
