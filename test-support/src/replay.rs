// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Runs inputs of a fuzz target without a fuzzer: its corpus, and random inputs.

use std::fs::File;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

use flate2::read::GzDecoder;
use tar::Archive;

/// Runs an input; prints the input if it panics.
fn replay(name: &str, input: &[u8], run: fn(&[u8])) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(input))) {
        let hex: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
        println!("{name}: {hex}");
        resume_unwind(panic);
    }
}

/// Returns names and contents of the inputs in the corpus of `target`, from its archive (`cargo xtask corpus`).
///
/// # Panics
/// If the archive is missing, corrupt or empty.
pub fn inputs(target: &str) -> Vec<(String, Vec<u8>)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../fuzz/corpus/{target}.tar.gz"));
    let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut archive = Archive::new(GzDecoder::new(file));
    let inputs = archive.entries().expect("the archive is readable").map(|entry| {
        let mut entry = entry.expect("the archive entry is valid");
        let name = entry.path().expect("the archive entry has a valid path").display().to_string();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).expect("the contents of the archive entry are readable");
        (name, bytes)
    });
    let inputs: Vec<_> = inputs.collect();
    assert!(!inputs.is_empty(), "no inputs in {}", path.display());
    inputs
}

/// Runs all inputs in the corpus of `target`.
pub fn corpus(target: &str, run: fn(&[u8])) {
    for (name, input) in inputs(target) {
        replay(&format!("{target}: {name}"), &input, run);
    }
}

/// Runs `inputs` random inputs of 0 to `longest` - 1 bytes; `ARCTIC_FUZZ_INPUTS` overrides `inputs`.
///
/// # Panics
/// If `longest` is 0, or if `run` panics.
pub fn random(inputs: u64, longest: u64, run: fn(&[u8])) {
    for (seed, input) in random_inputs(inputs, longest).enumerate() {
        replay(&format!("seed {seed}"), &input, run);
    }
}

/// The random inputs of [`random`]: the same in every run.
///
/// # Panics
/// If `longest` is 0.
pub fn random_inputs(inputs: u64, longest: u64) -> impl Iterator<Item = Vec<u8>> {
    let inputs = std::env::var("ARCTIC_FUZZ_INPUTS").ok().and_then(|n| n.parse().ok()).unwrap_or(inputs);
    (0..inputs).map(move |seed| {
        let mut state = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        // xorshift64* with a fixed seed: the same inputs in every run.
        let mut next = || {
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32
        };
        (0..next() % longest).map(|_| next() as u8).collect()
    })
}
