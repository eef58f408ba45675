// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Assembly text: disassembler, assembler, errors with their place.

mod assemble;
mod diagnostic;
mod disassemble;
mod float;
mod format;
mod message;
mod parse;

pub use assemble::assemble;
pub use diagnostic::{Diagnostic, Diagnostics};
pub use disassemble::{Line, disassemble, lines};
pub use format::format;
pub use message::describe;
