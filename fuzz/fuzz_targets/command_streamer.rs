// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The command streamer, executing from the ring and from kernel and user batches of the PF and of a VF.
#![no_main]

#[path = "../../device-model/tests/differential/choice.rs"]
#[allow(dead_code)] // the differential test uses the rest
mod choice;
#[path = "../../device-model/tests/differential/compare.rs"]
mod compare;
#[path = "../../device-model/tests/differential/grammar/mod.rs"]
#[allow(dead_code)] // the differential test uses the rest
mod grammar;
#[path = "../../device-model/tests/differential/guests.rs"]
mod guests;
#[path = "../../device-model/tests/command_streamer/harness.rs"]
mod harness;
#[path = "../../device-model/tests/differential/layout.rs"]
mod layout;
#[path = "../../device-model/tests/differential/reference/mod.rs"]
mod reference;
#[path = "../../device-model/tests/differential/world.rs"]
#[allow(dead_code)] // the differential test uses the rest
mod world;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| harness::run(input));
