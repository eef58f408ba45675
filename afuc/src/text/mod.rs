// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The text form: assembler and disassembler. `assemble(disassemble(image)) == image` for any image.

mod assemble;
mod diagnostic;
mod disassemble;
mod lexer;
mod limits;
mod parse;
mod print;

pub use assemble::{Assembled, Options, assemble};
pub use diagnostic::{Diagnostic, Diagnostics};
pub use disassemble::{Line, LineKind, Listing, Syntax, disassemble, disassemble_raw};
pub use print::{Target, instruction_text, write_instruction};
