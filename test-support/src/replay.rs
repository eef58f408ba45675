// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Runs the inputs of a fuzz target without a fuzzer: its corpus plus random inputs.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;

/// Runs an input; a panic prints it.
fn replay(name: &str, input: &[u8], run: fn(&[u8])) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| run(input))) {
        let hex: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
        println!("{name}: {hex}");
        resume_unwind(panic);
    }
}

/// Runs all inputs in the corpus of `target`.
pub fn corpus(target: &str, run: fn(&[u8])) {
    // The package is the root of the workspace or one of its members.
    let home = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let folder = home.ancestors().map(|at| at.join("fuzz/corpus").join(target)).find(|folder| folder.is_dir());
    let folder = folder.unwrap_or_else(|| panic!("no corpus of {target}"));
    let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "nothing in {}", folder.display());
    for file in files {
        replay(&file.display().to_string(), &fs::read(&file).unwrap(), run);
    }
}

/// Runs `inputs` random inputs of less than `longest` bytes; `ARCTIC_FUZZ_INPUTS` overrides the number.
pub fn random(inputs: u64, longest: u64, run: fn(&[u8])) {
    let inputs = std::env::var("ARCTIC_FUZZ_INPUTS").ok().and_then(|n| n.parse().ok()).unwrap_or(inputs);
    for seed in 0..inputs {
        let mut state = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        // xorshift64* with a fixed seed: the same inputs in every run.
        let mut next = || {
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32
        };
        let input: Vec<u8> = (0..next() % longest).map(|_| next() as u8).collect();
        replay(&format!("seed {seed}"), &input, run);
    }
}
