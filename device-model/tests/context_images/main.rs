// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Replays the corpus of the context image fuzz target (`fuzz/`), plus random inputs. `ARCTIC_FUZZ_INPUTS` sets the
//! number of random inputs.
#![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

#[path = "../../../fuzz/shared/bytes.rs"]
mod bytes;
#[path = "../differential/choice.rs"]
#[allow(dead_code)] // the differential test uses the rest, also of the modules below
mod choice;
#[path = "../differential/grammar/mod.rs"]
#[allow(dead_code)]
mod grammar;
#[path = "../differential/guests.rs"]
mod guests;
mod harness;
#[path = "../differential/layout.rs"]
#[allow(dead_code)]
mod layout;
#[path = "../../../fuzz/shared/replay.rs"]
mod replay;
#[path = "../differential/world.rs"]
#[allow(dead_code)]
mod world;

/// For each input of the corpus, other functions are unharmed and the engine works afterwards.
#[test]
fn the_corpus() {
    replay::corpus("context_images", harness::run);
}

/// The same for random inputs.
#[test]
fn random_inputs() {
    replay::random(2000, 400, harness::run);
}
