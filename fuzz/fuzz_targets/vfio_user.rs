// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Messages and descriptors that a client sends over its socket, and engine accesses to the memory it maps.
#![no_main]

#[path = "../../test-support/src/bytes.rs"]
mod bytes;
#[path = "../../test-support/src/harness/vfio_user.rs"]
mod harness;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| harness::run(input));
