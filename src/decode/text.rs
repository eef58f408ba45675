//! Numbers in the lines of dumps and on the command line.

/// What stands behind `name:` in a line.
pub fn value<'l>(line: &'l str, name: &str) -> Option<&'l str> {
    line.strip_prefix(name)?.strip_prefix(':').map(str::trim)
}

/// A number in hexadecimal, with or without 0x; what is behind it is not looked at.
pub fn hex(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    let end = digits.find(|c: char| !c.is_ascii_hexdigit() && c != '_').unwrap_or(digits.len());
    u64::from_str_radix(&digits[..end].replace('_', ""), 16).ok()
}

/// A decimal number.
pub fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}
