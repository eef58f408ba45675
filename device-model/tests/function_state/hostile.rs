// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Replays the corpus of the fuzz target for saved state (`fuzz/`), plus random inputs. `ARCTIC_FUZZ_INPUTS` sets the number of
//! random inputs.

use arctic_test_support::harness::vf_blob;
use arctic_test_support::replay;

/// For each input of the corpus, other functions are unharmed, and the VF has all of the state or none.
#[test]
fn the_corpus() {
    replay::corpus("vf_blob", vf_blob::run);
}

/// The same for random inputs.
#[test]
fn random_inputs() {
    replay::random(100, 200, vf_blob::run);
}
