// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Accesses to configuration space and BARs of the PF and of VFs, in any order, on a complete card.
#![no_main]

#[path = "../../test-support/src/bytes.rs"]
mod bytes;
#[path = "../../test-support/src/harness/functions.rs"]
mod harness;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| harness::run(input));
