// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Executes walkers with kernels of any code, of the PF and of a VF.
#![no_main]

use arctic_test_support::harness::walkers;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| walkers::run(input));
