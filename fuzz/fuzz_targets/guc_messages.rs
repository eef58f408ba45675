// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Sends messages of the PF's and a VF's driver to the GuC: CT buffers, mailbox, and memory to which messages refer.
#![no_main]

use arctic_test_support::harness::guc_messages;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| guc_messages::run(input));
