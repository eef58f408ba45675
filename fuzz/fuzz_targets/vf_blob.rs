// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Restores changed saved state of a virtual function, and runs the function.
#![no_main]

use arctic_test_support::harness::vf_blob;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| vf_blob::run(input));
