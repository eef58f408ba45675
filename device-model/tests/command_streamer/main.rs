// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Replays the corpus of the command streamer's fuzz target (`fuzz/`), plus random inputs. `ARCTIC_FUZZ_INPUTS` sets
//! the number of random inputs.
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "tests: numbers are chosen by the test")]

#[path = "../../../test-support/src/differential/choice.rs"]
#[allow(dead_code)] // the differential test uses the rest
mod choice;
#[path = "../../../test-support/src/differential/compare.rs"]
mod compare;
#[path = "../../../test-support/src/differential/grammar/mod.rs"]
#[allow(dead_code)] // the differential test uses the rest
mod grammar;
#[path = "../../../test-support/src/differential/guests.rs"]
mod guests;
#[path = "../../../test-support/src/harness/command_streamer.rs"]
mod harness;
#[path = "../../../test-support/src/differential/layout.rs"]
mod layout;
#[path = "../../../test-support/src/differential/reference/mod.rs"]
mod reference;
#[path = "../../../test-support/src/differential/world.rs"]
#[allow(dead_code)] // the differential test uses the rest
mod world;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use choice::{Choice, Seeded};

/// Runs an input; prints it if it fails.
fn run(name: &str, input: &[u8]) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| harness::run(input))) {
        println!("{name}: {input:02x?}");
        resume_unwind(panic);
    }
}

/// V13-044..047, V13-080: for each input of the corpus, isolation holds and the engine works afterwards.
#[test]
fn the_corpus() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus/command_streamer");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "no corpus in {folder}");
    for file in files {
        run(&file.display().to_string(), &fs::read(&file).unwrap());
    }
}

/// The same for random inputs.
#[test]
fn random_inputs() {
    let inputs = std::env::var("ARCTIC_FUZZ_INPUTS").ok().and_then(|n| n.parse().ok()).unwrap_or(2000);
    for seed in 0..inputs {
        let mut seeded = Seeded::new(seed);
        let len = seeded.below(400);
        let input: Vec<u8> = (0..len).map(|_| seeded.dword() as u8).collect();
        run(&format!("seed {seed}"), &input);
    }
}
