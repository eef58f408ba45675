// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Replays the corpus of the command streamer's fuzz target (`fuzz/`), plus random inputs. `ARCTIC_FUZZ_INPUTS` sets
//! the number of random inputs.
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "tests: numbers are chosen by the test")]

use arctic_fidelity::proves;
use arctic_test_support::harness::command_streamer;
use arctic_test_support::replay;

#[test]
fn the_corpus() {
    proves!(
        [V13_044, V13_045, V13_046, V13_047, V13_080],
        "for each input of the corpus, isolation holds and the engine works afterwards"
    );
    replay::corpus("command_streamer", command_streamer::run);
}

/// The same for random inputs.
#[test]
fn random_inputs() {
    replay::random(2000, 400, command_streamer::run);
}
