//! What a client sends over its socket, with descriptors, and what engines do with the memory that it has handed over.
#![no_main]

#[path = "../shared/bytes.rs"]
mod bytes;
#[path = "../../tests/corpora/vfio_user.rs"]
mod harness;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| harness::run(input));
