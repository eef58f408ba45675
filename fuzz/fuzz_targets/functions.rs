// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Accesses to configuration space and BARs of the PF and of VFs, in any order, on a complete card.
#![no_main]


use arctic_test_support::harness::functions;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| functions::run(input));
