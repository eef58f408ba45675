// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Runs each fuzz target of `fuzz/` for a minute, starting from the committed corpus.
//!
//! `ARCTIC_FUZZ_SECONDS` changes the time. libFuzzer needs a C++ compiler; without one the test prints a message and
//! passes. Findings are replayed by tests without these requirements (`tests/fuzz_regressions`, and tests of the device
//! model).

use std::path::Path;

use arctic_libfuzzer::{Fuzzing, Target};
use arctic_test_support::replay;

/// Targets and the maximum length of their inputs in bytes, ordered by findings per minute.
const TARGETS: [(&str, u32); 11] = [
    ("functions", 700),
    ("guc_messages", 700),
    ("vfio_user", 800),
    ("walkers", 2500),
    ("context_images", 400),
    ("command_streamer", 800),
    ("gen6_streamer", 800),
    ("vf_blob", 300),
    ("gen6_bars", 800),
    ("files", 4000),
    ("card_file", 2000),
];

fn fuzzing() -> Fuzzing<'static> {
    let target = |(name, longest)| {
        let inputs = replay::inputs(name).into_iter().map(|(_, bytes)| bytes).collect();
        Target { name, longest, inputs }
    };
    Fuzzing {
        package: Path::new(env!("CARGO_MANIFEST_DIR")),
        scratch: Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz"),
        targets: TARGETS.map(target).to_vec(),
    }
}

/// No input from a guest, a VMM or a card file may make the card panic, hang or violate isolation.
#[test]
fn each_target_for_a_minute() {
    fuzzing().run().unwrap_or_else(|failures| panic!("{failures}"));
}

#[test]
fn each_target_is_listed_with_inputs_that_fit() {
    fuzzing().check_targets();
}
