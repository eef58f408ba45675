// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic_eu_fuzz::capture` says what is checked.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| arctic_eu_fuzz::capture(input));
