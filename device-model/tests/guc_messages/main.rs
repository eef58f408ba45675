// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Replays the corpus of the fuzz target for GuC messages (`fuzz/`), plus random inputs. `ARCTIC_FUZZ_INPUTS` sets the
//! number of random inputs.
#![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

#[path = "../../../test-support/src/vfs/bench.rs"]
#[allow(dead_code)] // the hostile_vf test uses the rest, also of the modules below
mod bench;
#[path = "../../../test-support/src/bytes.rs"]
mod bytes;
#[path = "../../../test-support/src/vfs/canary.rs"]
mod canary;
#[path = "../../../test-support/src/grammar.rs"]
#[allow(dead_code)]
mod grammar;
#[path = "../../../test-support/src/harness/guc_messages.rs"]
mod harness;
#[path = "../../../test-support/src/vfs/pf.rs"]
mod pf;
#[path = "../../../test-support/src/process.rs"]
#[allow(dead_code)]
mod process;
#[path = "../../../test-support/src/random.rs"]
#[allow(dead_code)]
mod random;
#[path = "../../../test-support/src/replay.rs"]
mod replay;
#[path = "../../../test-support/src/vfs/world.rs"]
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
