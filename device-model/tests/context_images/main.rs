// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Replays the corpus of the context image fuzz target (`fuzz/`), plus random inputs. `ARCTIC_FUZZ_INPUTS` sets the
//! number of random inputs.
#![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

use arctic_test_support::harness::context_images;
use arctic_test_support::replay;

/// For each input of the corpus, other functions are unharmed and the engine works afterwards.
#[test]
fn the_corpus() {
    replay::corpus("context_images", context_images::run);
}

/// The same for random inputs.
#[test]
fn random_inputs() {
    replay::random(2000, 400, context_images::run);
}
