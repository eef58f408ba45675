// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Replays the corpus of the walkers' fuzz target (`fuzz/`), plus random inputs. `ARCTIC_FUZZ_INPUTS` sets the number of
//! random inputs.

mod clusters;

use arctic_test_support::harness::walkers;
use arctic_test_support::replay;

/// For each kernel of the corpus, isolation holds, the next kernel finds no data of it, and the engine works afterwards.
#[test]
fn the_corpus() {
    replay::corpus("walkers", walkers::run);
}

/// The same for kernels of random bytes.
#[test]
fn random_inputs() {
    replay::random(2000, 400, walkers::run);
}

/// The same for valid kernels, of either function, on either engine, with each cost of a step. All inputs of the fuzzer's start
/// are in the corpus.
#[test]
fn valid_kernels() {
    let corpus = replay::inputs("walkers");
    for (name, input) in walkers::seeds() {
        let found = corpus.iter().find(|(of, _)| *of == name);
        let encoded = input.encode();
        assert!(
            found.is_some_and(|(_, bytes)| *bytes == encoded),
            "{name}: run the example `walker_seeds`, and pack the corpus"
        );
        for flags in (0x02..=0xff).step_by(0x1b) {
            let mut input = input.clone();
            input.choices.flags ^= flags;
            walkers::run(&input.encode());
        }
    }
}
