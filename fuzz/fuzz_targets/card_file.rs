// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Parses arbitrary text as card files.
#![no_main]

use arctic_test_support::harness::card_file;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| card_file::run(input));
