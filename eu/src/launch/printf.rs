// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Text that kernels have written with printf.

use super::memory::Space;

/// Kinds of values in a record: 1 char, 2 short, 3 int, 4 float, 5 string, 6 long, 7 pointer, 8 double; vectors from 9.
enum Value {
    Int(i64),
    Float(f64),
    Text(String),
}

/// Longest string.
const LONGEST: usize = 4096;

/// Reads the buffer at this address: a counter of bytes, then records of a format string's address and values.
pub fn printf_text(space: &Space, address: u64) -> String {
    let dword = |at: u64| u32::from_le_bytes(space.peek(at, 4).try_into().unwrap_or_default());
    let end = u64::from(dword(address)).min(1 << 22);
    let mut text = String::new();
    let mut at = 4u64;
    while at + 8 <= end {
        let qword = |at: u64| u64::from(dword(address + at)) | u64::from(dword(address + at + 4)) << 32;
        let Some(format) = string(space, qword(at)) else { return text };
        at += 8;
        let mut rest = format.as_str();
        while let Some(start) = rest.find('%') {
            text.push_str(&rest[..start]);
            rest = &rest[start + 1..];
            if let Some(after) = rest.strip_prefix('%') {
                text.push('%');
                rest = after;
                continue;
            }
            let length = rest.find(|c: char| c.is_ascii_alphabetic() && !"hlv".contains(c)).unwrap_or(rest.len());
            let (flags, after) = rest.split_at(length);
            let conversion = after.chars().next().unwrap_or('d');
            rest = after.get(1..).unwrap_or_default();
            if at + 8 > end {
                return text;
            }
            let kind = dword(address + at);
            at += 4;
            let value = match kind {
                1 => Value::Int(i64::from(dword(address + at) as i8)),
                2 => Value::Int(i64::from(dword(address + at) as i16)),
                3 => Value::Int(i64::from(dword(address + at).cast_signed())),
                4 => Value::Float(f64::from(f32::from_bits(dword(address + at)))),
                5 => Value::Text(string(space, qword(at)).unwrap_or_default()),
                6 | 7 => Value::Int(qword(at).cast_signed()),
                8 => Value::Float(f64::from_bits(qword(at))),
                _ => return text,
            };
            at += if (5..9).contains(&kind) { 8 } else { 4 };
            text.push_str(&convert(&value, flags, conversion));
        }
        text.push_str(rest);
    }
    text
}

/// The string at an address, if it is in a buffer.
fn string(space: &Space, address: u64) -> Option<String> {
    let buffer = space.nearest(address)?;
    let inside = buffer.size.checked_sub(usize::try_from(address - buffer.start).ok()?)?;
    let bytes = space.peek(address, inside.min(LONGEST));
    let end = bytes.iter().position(|byte| *byte == 0)?;
    Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
}

fn convert(value: &Value, flags: &str, conversion: char) -> String {
    let flags = flags.trim_end_matches(['h', 'l']);
    let (width, precision) = flags.split_once('.').map_or((flags, None), |(width, rest)| (width, rest.parse().ok()));
    let left = width.starts_with('-');
    let zeros = width.starts_with('0');
    let width: usize = width.trim_start_matches(['-', '0', '+', ' ', '#']).parse().unwrap_or(0);
    let body = match (value, conversion) {
        (Value::Int(value), 'x') => format!("{:x}", *value as u32),
        (Value::Int(value), 'X') => format!("{:X}", *value as u32),
        (Value::Int(value), 'p') => format!("{value:#x}"),
        (Value::Int(value), 'u') => (*value as u32).to_string(),
        (Value::Int(value), 'c') => char::from(*value as u8).to_string(),
        (Value::Int(value), _) => value.to_string(),
        (Value::Float(value), 'e') => format!("{value:.*e}", precision.unwrap_or(6)),
        (Value::Float(value), 'g') => value.to_string(),
        (Value::Float(value), _) => format!("{value:.*}", precision.unwrap_or(6)),
        (Value::Text(text), _) => text.clone(),
    };
    match (left, zeros) {
        (true, _) => format!("{body:<width$}"),
        (false, true) => format!("{body:0>width$}"),
        (false, false) => format!("{body:>width$}"),
    }
}
