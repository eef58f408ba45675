// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The instruction set: tables, decoder and encoder. Nothing here executes.

pub mod compaction;
mod condition;
mod decode;
pub mod descriptor;
mod encode;
#[allow(missing_docs, reason = "each field is named like its column in the document on the ISA")]
pub mod fields;
mod instruction;
pub mod registers;
pub mod swsb;
pub mod table;
mod types;

pub use condition::Condition;
pub use decode::{DecodeError, decode, decode_native, length, native};
pub use encode::{EncodeError, Encoded, encode, encode_native};
pub use instruction::{Descriptor, Destination, Instruction, Place, Region, Send, Source};
pub use types::Type;
