// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Work of a VF that is saved at any step and restored on another card, in another range of the GGTT: memory and context are
//! those of work that was not moved.

use arctic_device_model::generation::XE_HPG;
use arctic_device_model::topology::{EngineClass, EngineId};
use arctic_test_support::differential::choice::{self, Seeded};
use arctic_test_support::differential::compare::Worlds;
use arctic_test_support::differential::grammar::Case;
use arctic_test_support::differential::moved::{MovableWork, Sites};
use arctic_test_support::harness::walkers;

use super::setting;

/// Runs so many cases of commands, which are moved at waits that were inserted at random places.
fn commands(first: u64, cases: u64) {
    let mut sites = Sites::default();
    for seed in first..first + cases {
        let mut seeded = Seeded::new(seed);
        let class = choice::of(&mut seeded, &EngineClass::BY_GUC);
        let present: Vec<EngineId> =
            sites.engines().filter(|engine| XE_HPG.engines.info(*engine).class == class).collect();
        if present.is_empty() {
            continue;
        }
        let engine = choice::of(&mut seeded, &present);
        let case = Case::generate_movable(&mut seeded, engine, 48);
        let work = MovableWork::of_case(&mut seeded, case.clone());
        let expected = sites.run(&work);
        let found = sites.run_moved(&work, &mut seeded, 1);
        assert!(found == expected, "seed {seed}: {}\n{}", found.difference(&expected), case.disassembled());
    }
    println!("{cases} cases, {} moves", sites.moves);
    assert!(sites.moves > cases * 2, "{} moves in {cases} cases", sites.moves);
}

/// Runs walkers of kernels, atomic operations among them, which are moved after steps of so many instructions.
fn kernels(seed: u64, costs: &[u64], most: u32) {
    let mut sites = Sites::default();
    let mut seeded = Seeded::new(seed);
    // A context with a fault is banned.
    let mut worlds = Worlds::default();
    let works = walkers::works().into_iter();
    let works = works.filter(|(_, work)| worlds.of(true).run(work, &[]).stop.name() == "Complete");
    for (name, work) in works.collect::<Vec<_>>() {
        for cost in costs {
            let work = MovableWork::of_walkers(work.clone(), *cost);
            let expected = sites.run(&work);
            let found = sites.run_moved(&work, &mut seeded, most);
            assert!(found == expected, "{name}, {cost}: {}", found.difference(&expected));
        }
    }
    println!("{} moves, {} walkers in flight", sites.moves, sites.in_flight);
    assert!(sites.in_flight > 40, "{} walkers in flight in {} moves", sites.in_flight, sites.moves);
}

/// Number of cases of commands, if `ARCTIC_MOVED_CASES` does not set it.
const CASES: u64 = 60;

#[test]
fn moved_commands_have_the_result_of_commands_that_are_not_moved() {
    commands(setting("ARCTIC_DIFFERENTIAL_SEED", 1), setting("ARCTIC_MOVED_CASES", CASES));
}

#[test]
fn moved_walkers_have_the_result_of_walkers_that_are_not_moved() {
    let more = setting("ARCTIC_MOVED_CASES", CASES) / CASES;
    kernels(1, &[7], 6);
    for seed in 2..=more {
        kernels(seed, &[1, 5, 60, 1000], 40);
    }
}
