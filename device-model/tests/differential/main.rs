// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Differential test of the engine against a slow, simple reference implementation. Both execute the same random
//! well-formed commands. The test then compares memory, GGTT, registers, context image, and the position where the
//! parser stopped.
//!
//! `ARCTIC_DIFFERENTIAL_COMMANDS` sets the number of commands to execute (default 60 000; a million takes about ten
//! seconds), `ARCTIC_DIFFERENTIAL_SEED` the first seed, `ARCTIC_MOVED_CASES` the number of cases that are moved.
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "tests: numbers are chosen by the test")]

mod moved;

use arctic_fidelity::proves;
use std::collections::BTreeMap;
use std::time::Instant;

use arctic_device_model::generation::XE_HPG;
use arctic_device_model::topology::{EngineClass, EngineId};
use arctic_test_support::differential::choice::{self, Choice, Seeded};
use arctic_test_support::differential::compare::{Worlds, compare};
use arctic_test_support::differential::grammar::Case;
use arctic_test_support::differential::minimise::minimise;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |value| value.parse().unwrap_or_else(|_| panic!("{name}={value}?")))
}

#[test]
fn the_engine_does_what_the_reference_does() {
    proves!(
        [
            V8_045, V8_087, V8_089, V8_090, V8_096, V8_097, V8_098, V8_105, V8_106, V8_110, V8_112, V8_114, V8_118,
            V8_120, V8_122, V8_123, V8_124, V8_125, V8_126, V8_127, V8_130, V8_131, V8_132, V8_133, V8_134, V8_135,
            V8_137, V8_140, V8_145, V8_146, V8_147, V8_148, V8_149, V8_150, V8_151, V8_152, V8_153, V8_154, V8_155,
            V8_159, V8_163, V8_170, V8_171, V13_044, V13_045, V13_046, V13_047, V13_048, V13_052, V13_053, V13_054,
            V13_055, V13_056, V13_057, V13_059, V13_062, V13_065, V13_066, V13_067, V13_070, V13_076, V13_211, V13_219,
            V13_230
        ],
        "the engine's resulting state equals the state that a simple implementation of these items produces, \
        whether the context is interrupted or not"
    );
    let wanted = setting("ARCTIC_DIFFERENTIAL_COMMANDS", 60_000);
    let first = setting("ARCTIC_DIFFERENTIAL_SEED", 1);
    let one = std::env::var_os("ARCTIC_DIFFERENTIAL_SEED").is_some()
        && std::env::var_os("ARCTIC_DIFFERENTIAL_COMMANDS").is_none();
    let mut worlds = Worlds::default();
    let (mut executed, mut cases, mut reported_tenths) = (0u64, 0u64, 0);
    let mut stops: BTreeMap<&str, u64> = BTreeMap::new();
    let mut findings: BTreeMap<String, String> = BTreeMap::new();
    let start = Instant::now();
    for seed in first.. {
        if executed >= wanted {
            break;
        }
        let mut seeded = Seeded::new(seed);
        let class = choice::of(&mut seeded, &EngineClass::BY_GUC);
        let instances: Vec<EngineId> =
            XE_HPG.engines.all().filter(|engine| XE_HPG.engines.info(*engine).class == class).collect();
        let engine = choice::of(&mut seeded, &instances);
        let vf = seeded.one_in(2);
        let interruptions = seeded.one_in(2).then(|| 1 + seeded.below(24));
        let case = Case::generate(&mut seeded, engine, vf, interruptions, 48);
        let comparison = compare(&mut worlds, &case);
        executed += u64::from(comparison.commands);
        cases += 1;
        *stops.entry(comparison.stop.name()).or_default() += 1;
        if let Some(found) = comparison.disagreement {
            let (small, found) = minimise(&mut worlds, case, found);
            let text = format!("seed {seed}\n{}{found}\n", small.disassembled());
            println!("{text}");
            findings.entry(small.name()).or_insert(text);
            if findings.len() >= 8 {
                break;
            }
        }
        if executed * 10 / wanted.max(1) > reported_tenths && wanted > 200_000 {
            reported_tenths = executed * 10 / wanted;
            eprintln!("{executed} commands in {cases} cases, {:.0} s", start.elapsed().as_secs_f64());
        }
        if one {
            break;
        }
    }
    println!("{executed} commands in {cases} cases, {:.1} s: {stops:?}", start.elapsed().as_secs_f64());
    let preemptions = worlds.of(false).preemptions + worlds.of(true).preemptions;
    println!("{preemptions} preemptions");
    assert!(findings.is_empty(), "{} disagreements; reproduce with ARCTIC_DIFFERENTIAL_SEED=<seed>", findings.len());
    if !one && wanted >= 10_000 {
        for stop in ["Complete", "Waiting", "Fault", "Illegal"] {
            assert!(preemptions > cases / 10, "{preemptions} preemptions in {cases} cases");
            assert!(stops.get(stop).is_some_and(|n| *n * 400 > cases), "{stop} is too rare: {stops:?}");
        }
    }
}
