// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `eu isa`.

use std::fmt::Write;

use arctic_eu::isa::Type;
use arctic_eu::isa::table::{self, Format, Row};

/// Prints the reference of all instructions, or of one.
#[derive(clap::Args)]
pub struct Options {
    /// Mnemonic, as `mad`, or opcode, as `0x5b`
    opcode: Option<String>,
}

impl Options {
    pub fn execute(self) -> super::Result {
        let Some(wanted) = self.opcode else {
            let mut text = String::new();
            for row in table::TABLE {
                let _ = writeln!(
                    text,
                    "{:#04x}  {:<8} {:<8} {:<5} {}",
                    row.code, row.name, row.item, row.modifiers, row.summary
                );
            }
            return super::print(&text);
        };
        let code = wanted.strip_prefix("0x").and_then(|hex| u8::from_str_radix(hex, 16).ok());
        let row = code.and_then(table::by_code).or_else(|| table::by_name(&wanted));
        let row = row.ok_or_else(|| format!("error: no instruction {wanted}: `eu isa` lists all"))?;
        super::print(&describe(row))
    }
}

fn names(types: &[Type]) -> String {
    types.iter().map(|ty| ty.name()).collect::<Vec<_>>().join(" ")
}

fn describe(row: &Row) -> String {
    let mut text = format!("{} ({:#04x}): {}\n", row.name, row.code, row.summary);
    let _ = writeln!(text, "item       {}", row.item);
    let _ = writeln!(text, "format     {}", format_text(row.format));
    let known = [('P', "predicate"), ('C', "condition"), ('S', "saturate"), ('M', "source modifiers")];
    let modifiers: Vec<&str> =
        known.iter().filter(|(letter, _)| row.modifiers.contains(*letter)).map(|(_, name)| *name).collect();
    let _ = writeln!(text, "modifiers  {}", if modifiers.is_empty() { "none".into() } else { modifiers.join(", ") });
    for (dst, src) in row.types {
        let _ = writeln!(text, "types      {} <- {}", names(dst), names(src));
    }
    text
}

fn format_text(format: Format) -> &'static str {
    match format {
        Format::NoOperands => "no operands",
        Format::Sync => "a function: nop, allrd, allwr, fence, bar, host; tokens or null",
        Format::Unary => "dst src0; source 0 can be an immediate",
        Format::Binary => "dst src0 src1; source 1 can be an immediate",
        Format::Math => "a function; dst src0",
        Format::Ternary => "dst src0 src1 src2; sources 0 and 2 can be immediates of 16 bits",
        Format::Bfn => "a function of three bits, as (s0&s1|s2); dst src0 src1 src2",
        Format::Dpas => "depth x repeat count; dst src0 src1 src2",
        Format::Send => "dst src0 src1:length extended-descriptor descriptor",
        Format::Jip => "one target",
        Format::JipUip => "two targets: JIP, UIP",
        Format::Jmpi => "one target, a label or a register",
        Format::Call => "dst and a target",
        Format::Ret => "a register with return address and mask",
    }
}
