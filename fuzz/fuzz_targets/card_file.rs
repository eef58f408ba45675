// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Arbitrary texts, parsed as card files.
#![no_main]

#[path = "../../test-support/src/harness/card_file.rs"]
mod harness;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| harness::run(input));
