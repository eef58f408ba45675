// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Loads context images that no engine has saved, of the PF and of a VF.
#![no_main]

use arctic_test_support::harness::context_images;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| context_images::run(input));
