// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Replays the corpus of the fuzz target for GuC messages (`fuzz/`), plus random inputs. `ARCTIC_FUZZ_INPUTS` sets the
//! number of random inputs.
#![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

use arctic_test_support::harness::guc_messages;
use arctic_test_support::replay;

/// For each input of the corpus, other functions are unharmed and the card works afterwards.
#[test]
fn the_corpus() {
    replay::corpus("guc_messages", guc_messages::run);
}

/// The same for random inputs.
#[test]
fn random_inputs() {
    replay::random(300, 1000, guc_messages::run);
}
