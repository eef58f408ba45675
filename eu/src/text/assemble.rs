// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Assembler: labels, literals and instructions to bytes.

use std::collections::HashMap;
use std::ops::Range;

use super::diagnostic::{Diagnostic, Diagnostics};
use super::parse::{self, Cursor, Parsed, Target};
use crate::isa;

/// What a line stands for.
enum Item {
    Instruction(Box<Parsed>),
    Bytes(Vec<u8>),
}

/// Assembles a source to code.
pub fn assemble(source: &str) -> Result<Vec<u8>, Diagnostics> {
    let mut errors = Diagnostics::default();
    let mut labels: HashMap<&str, u32> = HashMap::new();
    let mut items = Vec::new();
    let mut address = 0u32;
    for (number, line) in (1..).zip(source.lines()) {
        if errors.0.len() >= Diagnostics::LIMIT {
            break;
        }
        let mut report = |span: Range<usize>, message: String| {
            errors.0.push(Diagnostic { line: number, span, message });
        };
        let text = line.split_once("//").map_or(line, |(text, _)| text);
        let trimmed = text.trim();
        if trimmed.is_empty() {
            continue;
        }
        if let Some(name) = trimmed.strip_suffix(':')
            && name.chars().all(|c| c.is_alphanumeric() || c == '_')
        {
            if labels.insert(name, address).is_some() {
                report(
                    0..text.trim_end().len(),
                    format!(
                        "the label {name} is defined twice: assemble the text of one kernel (`eu disasm --kernel NAME`)"
                    ),
                );
            }
            continue;
        }
        match item(line, trimmed) {
            Ok(item) => {
                let length = match &item {
                    Item::Instruction(parsed) => parsed.instruction.length(),
                    Item::Bytes(bytes) => u32::try_from(bytes.len()).unwrap_or(u32::MAX),
                };
                items.push((number, address, item));
                address = address.saturating_add(length);
            }
            Err((span, message)) => report(span, message),
        }
    }
    let mut code = Vec::new();
    for (number, address, item) in items {
        match item {
            Item::Bytes(bytes) => code.extend(bytes),
            Item::Instruction(mut parsed) => {
                let result =
                    resolve(&mut parsed, address, |name| labels.get(name).copied().map(i64::from)).and_then(|()| {
                        isa::encode(&parsed.instruction).map_err(|error| (0..usize::MAX, error.to_string()))
                    });
                match result {
                    Ok(encoded) => code.extend(encoded.bytes()),
                    Err((span, message)) => errors.0.push(Diagnostic { line: number, span, message }),
                }
            }
        }
    }
    errors.0.sort_by_key(|error| error.line);
    errors.0.truncate(Diagnostics::LIMIT);
    if errors.0.is_empty() { Ok(code) } else { Err(errors) }
}

/// True if the text of an instruction at `address` is assembled to these bytes.
pub fn encodes_to(text: &str, address: u32, bytes: &[u8]) -> bool {
    let Ok(mut parsed) = parse::instruction(&mut Cursor::new(text)) else { return false };
    resolve(&mut parsed, address, |_| None).is_ok()
        && isa::encode(&parsed.instruction).is_ok_and(|encoded| encoded.bytes() == bytes)
}

fn item(line: &str, trimmed: &str) -> Result<Item, parse::Error> {
    let start = line.len() - line.trim_start().len();
    let span = start..start + trimmed.len();
    for (directive, size) in [(".inst", 4), (".byte", 1)] {
        let Some(rest) = trimmed.strip_prefix(directive) else { continue };
        let mut bytes = Vec::new();
        for word in rest.split_whitespace() {
            let digits = word.strip_prefix("0x").unwrap_or(word);
            let value = parse::hex(digits)
                .and_then(|value| u32::try_from(value).ok())
                .filter(|value| size == 4 || *value < 256);
            let Some(value) = value else {
                return Err((span, format!("`{word}` is no hexadecimal number of {size} bytes")));
            };
            bytes.extend(&value.to_le_bytes()[..size]);
        }
        return Ok(Item::Bytes(bytes));
    }
    let mut cursor = Cursor::new(line);
    parse::instruction(&mut cursor).map(|parsed| Item::Instruction(Box::new(parsed)))
}

/// Sets the targets. A label that is not defined, with a name made of an address, is that address.
fn resolve(parsed: &mut Parsed, address: u32, labels: impl Fn(&str) -> Option<i64>) -> Result<(), parse::Error> {
    let distances: Vec<i32> = parsed
        .targets
        .iter()
        .map(|Target { span, name }| {
            let target = labels(name).or_else(|| address_of(name));
            let target = target.ok_or_else(|| (span.clone(), format!("the label {name} is not defined")))?;
            i32::try_from(target - i64::from(address)).map_err(|_| (span.clone(), "the target is too far".to_string()))
        })
        .collect::<Result<_, _>>()?;
    parsed.instruction.jip = distances.first().copied().unwrap_or(0);
    parsed.instruction.uip = distances.get(1).copied().unwrap_or(0);
    Ok(())
}

/// Address in the name of a label of the disassembler.
fn address_of(name: &str) -> Option<i64> {
    let digits = name.strip_prefix('L')?;
    match digits.strip_prefix("_N") {
        Some(digits) => digits.parse::<i64>().ok().map(|address| -address),
        None => digits.parse().ok(),
    }
}
