// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Executes commands from the ring and from privileged and non-privileged batches, of the PF and of a VF.
#![no_main]

use arctic_test_support::harness::command_streamer;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| command_streamer::run(input));
