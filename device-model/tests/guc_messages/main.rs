// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Replays the corpus of the fuzz target for GuC messages (`fuzz/`), plus random inputs. `ARCTIC_FUZZ_INPUTS` sets the
//! number of random inputs.
#![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

#[path = "../hostile_vf/bench.rs"]
#[allow(dead_code)] // the hostile_vf test uses the rest, also of the modules below
mod bench;
#[path = "../../../fuzz/shared/bytes.rs"]
mod bytes;
#[path = "../hostile_vf/canary.rs"]
mod canary;
#[path = "../hostile/grammar.rs"]
#[allow(dead_code)]
mod grammar;
mod harness;
#[path = "../hostile_vf/pf.rs"]
mod pf;
#[path = "../hostile/process.rs"]
#[allow(dead_code)]
mod process;
#[path = "../hostile/random.rs"]
#[allow(dead_code)]
mod random;
#[path = "../../../fuzz/shared/replay.rs"]
mod replay;
#[path = "../hostile_vf/world.rs"]
#[allow(dead_code)]
mod world;

/// For each input of the corpus, other functions are unharmed and the card works afterwards.
#[test]
fn the_corpus() {
    replay::corpus("guc_messages", harness::run);
}

/// The same for random inputs.
#[test]
fn random_inputs() {
    replay::random(300, 1000, harness::run);
}
