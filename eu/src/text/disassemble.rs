// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Disassembler of code: labels, instructions, and literals for bytes that have no text.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::assemble;
use super::format::{format, label};
use crate::isa::table::Format;
use crate::isa::{self, Instruction};

/// An instruction or a literal, with its place.
#[derive(Clone, Debug)]
pub struct Line {
    /// Address in bytes from the start of the code.
    pub address: u32,
    /// Bytes.
    pub bytes: Vec<u8>,
    /// The instruction; `None` for bytes that are none.
    pub instruction: Option<Instruction>,
    /// Text.
    pub text: String,
}

/// Divides code into lines. Assembling the text of all lines gives the same bytes.
pub fn lines(code: &[u8]) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut at = 0;
    while at < code.len() {
        let rest = &code[at..];
        let length = isa::length(rest).min(rest.len());
        let bytes = &rest[..length];
        let address = u32::try_from(at).unwrap_or(u32::MAX);
        let instruction = isa::decode(bytes).ok();
        let text = instruction.as_ref().and_then(|decoded| {
            let text = format(decoded, address)?;
            // What the text does not say is written as a literal.
            assemble::encodes_to(&text, address, bytes).then_some(text)
        });
        let text = text.unwrap_or_else(|| literal(bytes, instruction.as_ref(), address));
        lines.push(Line { address, bytes: bytes.to_vec(), instruction, text });
        at += length;
    }
    lines
}

/// A directive with the bytes as dwords, and the instruction that the hardware takes them for.
fn literal(bytes: &[u8], instruction: Option<&Instruction>, address: u32) -> String {
    let (dwords, rest) = bytes.as_chunks::<4>();
    let (name, words): (_, Vec<String>) = if rest.is_empty() {
        (".inst", dwords.iter().map(|dword| format!("0x{:08X}", u32::from_le_bytes(*dword))).collect())
    } else {
        (".byte", bytes.iter().map(|byte| format!("0x{byte:02X}")).collect())
    };
    let comment = match (instruction, isa::decode(bytes)) {
        (Some(decoded), _) => format(decoded, address).unwrap_or_default(),
        (None, Err(error)) => error.to_string(),
        _ => String::new(),
    };
    let comment: Vec<&str> = comment.split_whitespace().collect();
    format!("        {name} {} // {}", words.join(" "), comment.join(" ")).trim_end().to_string()
}

/// Text of code. `assemble` makes the same bytes of it.
pub fn disassemble(code: &[u8]) -> String {
    let lines = lines(code);
    let starts: BTreeSet<i64> = lines.iter().map(|line| i64::from(line.address)).collect();
    let mut labels = BTreeSet::from([0]);
    for line in &lines {
        let Some(decoded) = &line.instruction else { continue };
        let after = i64::from(line.address) + line.bytes.len() as i64;
        let ends = decoded.row.format == Format::Send && decoded.saturate;
        if decoded.row.is_branch() || ends {
            labels.insert(after);
            if decoded.row.is_branch() && !decoded.register_target {
                labels.insert(i64::from(line.address) + i64::from(decoded.jip));
                if decoded.row.format == Format::JipUip {
                    labels.insert(i64::from(line.address) + i64::from(decoded.uip));
                }
            }
        }
    }
    let mut text = String::new();
    for line in &lines {
        let address = i64::from(line.address);
        if labels.contains(&address) && starts.contains(&address) {
            let _ = writeln!(text, "{}:", label(address));
        }
        let _ = writeln!(text, "{}", line.text);
    }
    text
}
