// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Differential test of the engine against a slow, simple reference implementation. Both execute the same random
//! well-formed commands. The test then compares memory, GGTT, registers, context image, and the position where the
//! parser stopped.
//!
//! `ARCTIC_DIFFERENTIAL_COMMANDS` sets the number of commands to execute (default 60 000; a million takes about ten
//! seconds), `ARCTIC_DIFFERENTIAL_SEED` the first seed.
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "tests: numbers are chosen by the test")]

mod shrink;

use std::collections::BTreeMap;
use std::time::Instant;

use arctic_device_model::generation::XE_HPG;
use arctic_device_model::topology::{EngineClass, EngineId};
use arctic_test_support::differential::choice::{self, Choice, Seeded};
use arctic_test_support::differential::compare::{Worlds, both, disagreement};
use arctic_test_support::differential::grammar::Case;

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |value| value.parse().unwrap_or_else(|_| panic!("{name}={value}?")))
}

/// V8-045, V8-087, V8-089, V8-090, V8-096..098, V8-105, V8-106, V8-110, V8-112, V8-114, V8-118, V8-120, V8-122..127,
/// V8-130..135, V8-137, V8-140, V8-145..155, V8-159, V8-163, V8-170, V8-171, V13-044..048, V13-052..057, V13-059,
/// V13-062, V13-065..067, V13-070, V13-076: the engine's resulting state equals the state that a simple implementation
/// of these items produces, whether the context is interrupted or not.
#[test]
fn the_engine_does_what_the_reference_does() {
    let wanted = setting("ARCTIC_DIFFERENTIAL_COMMANDS", 60_000);
    let first = setting("ARCTIC_DIFFERENTIAL_SEED", 1);
    let one = std::env::var_os("ARCTIC_DIFFERENTIAL_SEED").is_some()
        && std::env::var_os("ARCTIC_DIFFERENTIAL_COMMANDS").is_none();
    let mut worlds = Worlds::default();
    let (mut executed, mut cases, mut told) = (0u64, 0u64, 0);
    let mut stops: BTreeMap<String, u64> = BTreeMap::new();
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
        let (engine, reference, commands) = both(&mut worlds, &case);
        executed += u64::from(commands);
        cases += 1;
        let stop = format!("{:?}", reference.stop);
        *stops.entry(stop.split(' ').next().unwrap_or_default().to_owned()).or_default() += 1;
        if let Some(difference) = disagreement(&engine, &reference) {
            let (small, difference) = shrink::shrink(&mut worlds, case, difference);
            let text = format!("seed {seed}\n{}{difference}\n", small.disassembled());
            println!("{text}");
            findings.entry(small.name()).or_insert(text);
            if findings.len() >= 8 {
                break;
            }
        }
        if let Err(harm) = worlds.of(vf).unharmed() {
            panic!("seed {seed}: {harm}");
        }
        if executed * 10 / wanted.max(1) > told && wanted > 200_000 {
            told = executed * 10 / wanted;
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
