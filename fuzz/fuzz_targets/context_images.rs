// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Context images other than those saved by an engine, of the PF and of a VF.
#![no_main]

#[path = "../shared/bytes.rs"]
mod bytes;
#[path = "../../device-model/tests/differential/choice.rs"]
#[allow(dead_code)] // the differential test uses the rest, of this and of what follows
mod choice;
#[path = "../../device-model/tests/differential/grammar/mod.rs"]
#[allow(dead_code)]
mod grammar;
#[path = "../../device-model/tests/differential/guests.rs"]
mod guests;
#[path = "../../device-model/tests/context_images/harness.rs"]
mod harness;
#[path = "../../device-model/tests/differential/layout.rs"]
#[allow(dead_code)]
mod layout;
#[path = "../../device-model/tests/differential/world.rs"]
#[allow(dead_code)]
mod world;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| harness::run(input));
