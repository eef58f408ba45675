// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Accesses the BARs and the configuration space of integrated GPUs, in any order.
#![no_main]

use arctic_test_support::harness::gen6_bars;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| gen6_bars::run(input));
