// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Executes commands of the ring and of batches of integrated GPUs, with accesses and moves of the card in between.
#![no_main]

use arctic_test_support::harness::gen6_streamer;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| gen6_streamer::run(input));
