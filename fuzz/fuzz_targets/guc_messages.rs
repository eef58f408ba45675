// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Messages of the PF and VF drivers to the GuC: CT buffers, mailbox, and the memory that the messages point to.
#![no_main]

#[path = "../../device-model/tests/hostile_vf/bench.rs"]
#[allow(dead_code)] // the test of a hostile function uses the rest, of this and of what follows
mod bench;
#[path = "../shared/bytes.rs"]
mod bytes;
#[path = "../../device-model/tests/hostile_vf/canary.rs"]
mod canary;
#[path = "../../device-model/tests/hostile/grammar.rs"]
#[allow(dead_code)]
mod grammar;
#[path = "../../device-model/tests/guc_messages/harness.rs"]
mod harness;
#[path = "../../device-model/tests/hostile_vf/pf.rs"]
mod pf;
#[path = "../../device-model/tests/hostile/process.rs"]
#[allow(dead_code)]
mod process;
#[path = "../../device-model/tests/hostile/random.rs"]
#[allow(dead_code)]
mod random;
#[path = "../../device-model/tests/hostile_vf/world.rs"]
#[allow(dead_code)]
mod world;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| harness::run(input));
