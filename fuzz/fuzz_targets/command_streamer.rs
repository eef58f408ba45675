// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The command streamer, executing from the ring and from kernel and user batches of the PF and of a VF.
#![no_main]

#[path = "../../test-support/src/differential/choice.rs"]
#[allow(dead_code)] // the differential test uses the rest
mod choice;
#[path = "../../test-support/src/differential/compare.rs"]
mod compare;
#[path = "../../test-support/src/differential/grammar/mod.rs"]
#[allow(dead_code)] // the differential test uses the rest
mod grammar;
#[path = "../../test-support/src/differential/guests.rs"]
mod guests;
#[path = "../../test-support/src/harness/command_streamer.rs"]
mod harness;
#[path = "../../test-support/src/differential/layout.rs"]
mod layout;
#[path = "../../test-support/src/differential/reference/mod.rs"]
mod reference;
#[path = "../../test-support/src/differential/world.rs"]
#[allow(dead_code)] // the differential test uses the rest
mod world;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| harness::run(input));
