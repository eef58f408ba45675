// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Messages of the PF and VF drivers to the GuC: CT buffers, mailbox, and the memory that the messages point to.
#![no_main]


use arctic_test_support::harness::guc_messages;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| guc_messages::run(input));
