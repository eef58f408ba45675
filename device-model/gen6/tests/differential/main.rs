// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Differential test of the command streamers of Gen7 against a plain reference: both execute the same random commands;
//! memory, entries of the GGTT, registers and the reason of the stop are compared. Raw dwords are executed too, without a
//! reference.
//!
//! `ARCTIC_DIFFERENTIAL_CASES` sets the number of cases (default 500), `ARCTIC_DIFFERENTIAL_SEED` the first seed.
#![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

mod grammar;
mod reference;
mod world;

use std::collections::BTreeMap;

use arctic_fidelity::proves;
use arctic_test_support::differential::choice::{Choice, Seeded, of};
use arctic_test_support::differential::compare::Disagreement;
use arctic_test_support::differential::minimise::minimise_by;

use grammar::{BATCHES, BEHIND, Case, Class, END, PLAIN, STATUS};
use world::{Kind, Stop, World, contents};

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |value| value.parse().unwrap_or_else(|_| panic!("{name}={value}?")))
}

/// Executes a case on a card and in the reference; returns the reason of the stop, and the first difference, if any.
fn run(case: &Case) -> (Stop, Option<Disagreement<Kind>>) {
    let engine = World::new(case).run(case);
    (engine.stop, engine.difference(&reference::Reference::new(case).run()))
}

#[test]
fn the_engine_does_what_the_reference_does() {
    proves!(
        [
            IVB_030, IVB_031, IVB_032, IVB_033, IVB_039, IVB_040, IVB_066, IVB_067, IVB_075, IVB_076, IVB_078, IVB_079,
            IVB_091, IVB_093, IVB_100, IVB_103, IVB_104, IVB_105, IVB_120, IVB_130, IVB_131, IVB_133, IVB_134, IVB_140,
            IVB_141, IVB_142, IVB_143, IVB_144, IVB_146, IVB_147, IVB_148, IVB_150, IVB_154, IVB_155, IVB_157, IVB_158,
            IVB_159, IVB_160, IVB_161, IVB_162, IVB_163, IVB_164, IVB_165, IVB_166
        ],
        "the engine's resulting state equals the state that a simple implementation of these items produces"
    );
    let cases = setting("ARCTIC_DIFFERENTIAL_CASES", 500);
    let first = setting("ARCTIC_DIFFERENTIAL_SEED", 1);
    let mut stops = BTreeMap::<_, u64>::new();
    for seed in first..first + cases {
        let case = Case::generate(&mut Seeded::new(seed), 24);
        let (stop, difference) = run(&case);
        *stops.entry(stop).or_default() += 1;
        if let Some(found) = difference {
            let (small, found) = minimise_by(case, found, |case| run(case).1);
            panic!("seed {seed}: {found}\n{small:x?}");
        }
    }
    println!("{stops:?}");
    assert!(cases < 500 || stops.len() == 4 && stops.values().all(|n| n * 50 > cases), "{stops:?}");
}

/// Random dwords, half of them headers of commands, in the ring, a privileged batch or one of user space.
#[test]
fn raw_dwords_of_user_space_change_no_memory_of_the_ggtt() {
    proves!(IVB_131, "whatever dwords a batch of the PPGTT has, memory that only the GGTT maps is not changed");
    for seed in 0..setting("ARCTIC_DIFFERENTIAL_CASES", 300) {
        let choice = &mut Seeded::new(seed);
        let place = choice.below(3);
        let words: Vec<u32> = (0..choice.below(120))
            .map(|_| match choice.below(4) {
                0 => choice.dword(),
                1 => choice.below(16),
                2 => of(choice, &grammar::DATA) + choice.below(64) * 4,
                _ => choice.below(64) << 23 | choice.dword() & 0x7f_ff00 | choice.below(4),
            })
            .collect();
        let class = of(choice, &[Class::Render, Class::Copy]);
        let batches = vec![vec![END.to_vec()]; 2 * BATCHES.len()];
        let mut case = Case {
            class,
            ring: Vec::new(),
            batches,
            images: Default::default(),
            values: vec![1; PLAIN.len() + 4],
            head: 0,
            ppgtt: true,
        };
        let start = |space: u32| vec![vec![0x1880_0000 | space, BATCHES[0]]];
        let body = vec![words.clone(), END.to_vec()];
        match place {
            0 => case.ring = vec![words],
            1 => (case.ring, case.batches[0]) = (start(0), body),
            _ => (case.ring, case.batches[BATCHES.len()]) = (start(1 << 8), body),
        }
        let left = World::new(&case).run(&case);
        if place == 2 {
            let mut before = vec![0; BEHIND as usize / 4];
            for (at, value) in contents(&case).into_iter().filter(|(at, _)| *at < BEHIND) {
                before[at as usize / 4] = value;
            }
            // Events are written to the status page.
            before[STATUS as usize / 4] = left.memory[STATUS as usize / 4];
            let changed = before.iter().zip(&left.memory).position(|(before, after)| before != after);
            assert_eq!(changed, None, "seed {seed}: {case:x?}");
        }
    }
}

/// A case in which only MI_STORE_DATA_IMM matters keeps one, the ends of its batches, empty images, and initial values of 0.
#[test]
fn minimised_case_keeps_the_command_that_matters_and_the_ends_of_batches() {
    let is_store = |words: &Vec<u32>| words[0] >> 23 == 0x20;
    let stores = |case: &Case| case.batches.iter().flatten().chain(&case.ring).filter(|words| is_store(words)).count();
    let found = Disagreement { kind: Kind::Memory, lines: vec!["a difference".to_owned()] };
    let mut cases = (1..20).map(|seed| Case::generate(&mut Seeded::new(seed), 24)).filter(|case| stores(case) > 1);
    let case = cases.next().expect("a case with stores");
    let (small, _) = minimise_by(case, found.clone(), |case| (stores(case) > 0).then(|| found.clone()));
    assert_eq!(stores(&small), 1);
    assert_eq!(small.ring.len() + small.batches.iter().map(Vec::len).sum::<usize>(), 1 + small.batches.len());
    assert!(small.batches.iter().all(|batch| batch.last().is_some_and(|words| words[..] == END)));
    assert_eq!((small.head, small.values.iter().sum::<u32>(), small.images.concat().len()), (0, 0, 0));
}
