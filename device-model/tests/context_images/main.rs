// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Replays the corpus of the context image fuzz target (`fuzz/`), plus random inputs. `ARCTIC_FUZZ_INPUTS` sets the
//! number of random inputs.
#![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

#[path = "../../../test-support/src/bytes.rs"]
mod bytes;
#[path = "../../../test-support/src/differential/choice.rs"]
#[allow(dead_code)] // the differential test uses the rest, also of the modules below
mod choice;
#[path = "../../../test-support/src/differential/grammar/mod.rs"]
#[allow(dead_code)]
mod grammar;
#[path = "../../../test-support/src/differential/guests.rs"]
mod guests;
#[path = "../../../test-support/src/harness/context_images.rs"]
mod harness;
#[path = "../../../test-support/src/differential/layout.rs"]
#[allow(dead_code)]
mod layout;
#[path = "../../../test-support/src/replay.rs"]
mod replay;
#[path = "../../../test-support/src/differential/world.rs"]
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
