// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Parsers of numbers in the lines of dumps.

/// The text after `name:` at the start of a line.
pub fn value<'l>(line: &'l str, name: &str) -> Option<&'l str> {
    line.strip_prefix(name)?.strip_prefix(':').map(str::trim)
}

/// Parses a hexadecimal number, with or without 0x; text after it is ignored.
pub fn hex(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    let end = digits.find(|c: char| !c.is_ascii_hexdigit() && c != '_').unwrap_or(digits.len());
    u64::from_str_radix(&digits[..end].replace('_', ""), 16).ok()
}

/// Parses a decimal number.
pub fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}
