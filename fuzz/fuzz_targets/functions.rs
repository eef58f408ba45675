// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Accesses configuration spaces and BARs of the PF and of VFs of a complete card, in any order.
#![no_main]

use arctic_test_support::harness::functions;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| functions::run(input));
