// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Context images other than those saved by an engine, of the PF and of a VF.
#![no_main]

#[path = "../../test-support/src/bytes.rs"]
mod bytes;
#[path = "../../test-support/src/differential/choice.rs"]
#[allow(dead_code)] // the differential test uses the rest, of this and of what follows
mod choice;
#[path = "../../test-support/src/differential/grammar/mod.rs"]
#[allow(dead_code)]
mod grammar;
#[path = "../../test-support/src/differential/guests.rs"]
mod guests;
#[path = "../../test-support/src/harness/context_images.rs"]
mod harness;
#[path = "../../test-support/src/differential/layout.rs"]
#[allow(dead_code)]
mod layout;
#[path = "../../test-support/src/differential/world.rs"]
#[allow(dead_code)]
mod world;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| harness::run(input));
