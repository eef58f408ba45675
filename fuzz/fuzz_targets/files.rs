// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Decodes captures and dumps of drivers of which anything may be wrong, and makes timelines of captures.
#![no_main]
#![allow(dead_code, reason = "modules of the program, of which the target uses a part")]

#[path = "../../cli/src/any_file.rs"]
mod any_file;
#[path = "../../cli/src/capture.rs"]
mod capture;
#[path = "../../cli/src/decode/mod.rs"]
mod decode;
#[path = "../../cli/src/perfetto/mod.rs"]
mod perfetto;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| any_file::run(input));
