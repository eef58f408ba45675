// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Messages of the PF and VF drivers to the GuC: CT buffers, mailbox, and the memory that the messages point to.
#![no_main]

#[path = "../../test-support/src/vfs/bench.rs"]
#[allow(dead_code)] // the test of a hostile function uses the rest, of this and of what follows
mod bench;
#[path = "../../test-support/src/bytes.rs"]
mod bytes;
#[path = "../../test-support/src/vfs/canary.rs"]
mod canary;
#[path = "../../test-support/src/grammar.rs"]
#[allow(dead_code)]
mod grammar;
#[path = "../../test-support/src/harness/guc_messages.rs"]
mod harness;
#[path = "../../test-support/src/vfs/pf.rs"]
mod pf;
#[path = "../../test-support/src/process.rs"]
#[allow(dead_code)]
mod process;
#[path = "../../test-support/src/random.rs"]
#[allow(dead_code)]
mod random;
#[path = "../../test-support/src/vfs/world.rs"]
#[allow(dead_code)]
mod world;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| harness::run(input));
