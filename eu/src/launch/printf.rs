// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Text that kernels have written with printf.

use super::memory::Space;

/// Value of an argument.
enum Value {
    Int(i64),
    Float(f64),
    Text(String),
}

/// Longest string.
const LONGEST: usize = 4096;
/// Longest text of a launch; the rest is not printed.
const MOST_TEXT: usize = 1 << 26;
/// Largest width and precision of a number.
const MOST: usize = 512;

/// A conversion: what is between `%` and the letter, and the letter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Format {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zeros: bool,
    width: usize,
    precision: Option<usize>,
    /// Bits of an integer.
    bits: u32,
    letter: char,
}

impl Format {
    /// Reads what is behind a `%`, and returns the rest.
    fn parse(text: &str) -> (Format, &str) {
        let mut format = Format { bits: 32, letter: 'd', ..Format::default() };
        let mut rest = text;
        while let Some(flag) = rest.chars().next().filter(|flag| "-+ #0".contains(*flag)) {
            match flag {
                '-' => format.left = true,
                '+' => format.plus = true,
                ' ' => format.space = true,
                '#' => format.alternate = true,
                _ => format.zeros = true,
            }
            rest = &rest[1..];
        }
        let number = |rest: &mut &str| {
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let (digits, after) = rest.split_at(end);
            *rest = after;
            digits.parse::<usize>().unwrap_or(0).min(MOST)
        };
        format.width = number(&mut rest);
        if let Some(after) = rest.strip_prefix('.') {
            rest = after;
            format.precision = Some(number(&mut rest));
        }
        // The number of elements of a vector is in the record, too.
        if let Some(after) = rest.strip_prefix('v') {
            rest = after;
            number(&mut rest);
        }
        for (length, bits) in [("hh", 8), ("hl", 32), ("h", 16), ("l", 64)] {
            if let Some(after) = rest.strip_prefix(length) {
                rest = after;
                format.bits = bits;
                break;
            }
        }
        let mut letters = rest.chars();
        format.letter = letters.next().unwrap_or('d');
        (format, letters.as_str())
    }

    /// Text of a value, as in C.
    fn text(&self, value: &Value) -> String {
        let (sign, body) = match value {
            Value::Text(text) => ("", text.chars().take(self.precision.unwrap_or(usize::MAX)).collect()),
            Value::Int(value) => self.integer(*value),
            Value::Float(value) => self.float(*value),
        };
        let missing = self.width.saturating_sub(sign.len() + body.chars().count());
        let is_number = !matches!(value, Value::Text(_)) && self.letter != 'c';
        let finite = !matches!(value, Value::Float(value) if !value.is_finite());
        let exact = matches!(value, Value::Int(_)) && self.precision.is_some();
        if self.left {
            format!("{sign}{body}{}", " ".repeat(missing))
        } else if self.zeros && is_number && finite && !exact {
            format!("{sign}{}{body}", "0".repeat(missing))
        } else {
            format!("{}{sign}{body}", " ".repeat(missing))
        }
    }

    /// What is before a number that is not negative.
    fn positive(&self) -> &'static str {
        match (self.plus, self.space) {
            (true, _) => "+",
            (false, true) => " ",
            (false, false) => "",
        }
    }

    fn integer(&self, value: i64) -> (&'static str, String) {
        let shift = 64 - self.bits;
        let signed = value << shift >> shift;
        let unsigned = value.cast_unsigned() << shift >> shift;
        let (sign, digits) = match self.letter {
            'u' => ("", unsigned.to_string()),
            'x' => (if self.alternate && unsigned != 0 { "0x" } else { "" }, format!("{unsigned:x}")),
            'X' => (if self.alternate && unsigned != 0 { "0X" } else { "" }, format!("{unsigned:X}")),
            'o' => (if self.alternate { "0" } else { "" }, format!("{unsigned:o}")),
            'p' => ("0x", format!("{value:x}")),
            'c' => return ("", char::from(value as u8).to_string()),
            _ => (if signed < 0 { "-" } else { self.positive() }, signed.unsigned_abs().to_string()),
        };
        (sign, format!("{digits:0>0$}", self.precision.unwrap_or(1)))
    }

    fn float(&self, value: f64) -> (&'static str, String) {
        let sign = if value.is_sign_negative() && !value.is_nan() { "-" } else { self.positive() };
        let size = value.abs();
        let precision = self.precision.unwrap_or(6);
        let body = if value.is_nan() {
            "nan".into()
        } else if size.is_infinite() {
            "inf".into()
        } else {
            match self.letter.to_ascii_lowercase() {
                'e' => exponential(size, precision),
                'g' => self.shortest(size, precision.max(1)),
                'a' => hexadecimal(size, self.precision),
                _ => format!("{size:.precision$}"),
            }
        };
        (sign, if self.letter.is_ascii_uppercase() { body.to_ascii_uppercase() } else { body })
    }

    /// With the exponent only if that is shorter, and without zeros at the end.
    fn shortest(&self, size: f64, digits: usize) -> String {
        let scientific = format!("{size:.*e}", digits - 1);
        let exponent: i32 = scientific.split_once('e').and_then(|(_, text)| text.parse().ok()).unwrap_or(0);
        let trim = |text: &str| {
            let zeros = !self.alternate && text.contains('.');
            if zeros { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text.to_string() }
        };
        if (-4..digits as i32).contains(&exponent) {
            let after = usize::try_from(digits as i32 - 1 - exponent).unwrap_or(0);
            return trim(&format!("{size:.after$}"));
        }
        let text = exponential(size, digits - 1);
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "+00"));
        format!("{}e{exponent}", trim(mantissa))
    }
}

/// A sign and at least two digits of the exponent.
fn exponential(size: f64, precision: usize) -> String {
    let text = format!("{size:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    format!("{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// `0x1.8p+1`.
fn hexadecimal(size: f64, precision: Option<usize>) -> String {
    let bits = size.to_bits();
    let (mut fraction, exponent) = (bits & ((1 << 52) - 1), (bits >> 52) as i32);
    let mut first = u64::from(exponent != 0);
    let exponent = match (exponent, fraction) {
        (0, 0) => 0,
        (0, _) => -1022,
        _ => exponent - 1023,
    };
    if let Some(digits) = precision.filter(|digits| *digits < 13) {
        let unit = 1u64 << (52 - 4 * digits);
        let all = first << 52 | fraction;
        let half = unit / 2;
        let odd = all / unit & 1;
        let rounded = (all + half - 1 + odd) / unit * unit;
        (first, fraction) = (rounded >> 52, rounded & ((1 << 52) - 1));
    }
    let digits = format!("{fraction:013x}");
    let digits = match precision {
        Some(count) => format!("{digits:0<count$}")[..count].to_string(),
        None => digits.trim_end_matches('0').to_string(),
    };
    let point = if digits.is_empty() { "" } else { "." };
    format!("0x{first}{point}{digits}p{exponent:+}")
}

/// Reads the records of a buffer.
struct Reader<'s> {
    space: &'s Space,
    address: u64,
    at: u64,
    end: u64,
}

impl Reader<'_> {
    /// A little-endian number of `size` bytes; `None` at the end.
    fn number(&mut self, size: u64) -> Option<u64> {
        if self.at + size > self.end {
            return None;
        }
        let bytes = self.space.peek(self.address + self.at, size as usize);
        self.at += size;
        Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    fn string(&mut self) -> Option<String> {
        let address = self.number(8)?;
        string(self.space, address)
    }

    /// The values of an argument: one, or the elements of a vector.
    fn values(&mut self) -> Option<Vec<Value>> {
        let kind = self.number(4)?;
        // Kinds of vectors are those of their elements in another order.
        let (element, is_vector) = match kind {
            9..=11 => (kind - 8, true),
            12 => (6, true),
            13 => (4, true),
            14 => (8, true),
            _ => (kind, false),
        };
        let count = if is_vector { self.number(4)?.min(16) } else { 1 };
        let size: u64 = match element {
            1 => 1,
            2 => 2,
            3 | 4 => 4,
            5..=8 => 8,
            _ => return None,
        };
        let mut values = Vec::new();
        for _ in 0..count {
            let raw = self.number(size)?;
            values.push(match element {
                1 => Value::Int(i64::from(raw as i8)),
                2 => Value::Int(i64::from(raw as i16)),
                3 => Value::Int(i64::from(raw as i32)),
                4 => Value::Float(f64::from(f32::from_bits(raw as u32))),
                5 => Value::Text(string(self.space, raw).unwrap_or_default()),
                8 => Value::Float(f64::from_bits(raw)),
                _ => Value::Int(raw.cast_signed()),
            });
        }
        // Each element has the room of a dword; what is left of it is behind all of them.
        self.at += 4u64.saturating_sub(size) * count;
        Some(values)
    }
}

/// Reads the buffer at this address: a counter of bytes, then records of a format string's address and values.
pub fn printf_text(space: &Space, address: u64) -> String {
    let mut reader = Reader { space, address, at: 0, end: 4 };
    reader.end = reader.number(4).unwrap_or(0).min(1 << 22);
    let mut text = String::new();
    while text.len() < MOST_TEXT
        && let Some(format) = reader.string()
    {
        let mut rest = format.as_str();
        while let Some(start) = rest.find('%') {
            text.push_str(&rest[..start]);
            rest = &rest[start + 1..];
            if let Some(after) = rest.strip_prefix('%') {
                text.push('%');
                rest = after;
                continue;
            }
            let (format, after) = Format::parse(rest);
            rest = after;
            let Some(values) = reader.values() else { return text };
            let values: Vec<String> = values.iter().map(|value| format.text(value)).collect();
            text.push_str(&values.join(","));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn text(format: &str, value: &Value) -> String {
        let (format, rest) = Format::parse(format);
        assert_eq!(rest, "|");
        format.text(value)
    }

    #[test]
    fn integers_have_the_text_of_c() {
        for (format, value, expected) in [
            ("d|", -3, "-3"),
            ("5d|", 42, "   42"),
            ("-5d|", 42, "42   "),
            ("05d|", -42, "-0042"),
            ("+d|", 42, "+42"),
            (".3d|", 7, "007"),
            ("6.3d|", -7, "  -007"),
            ("x|", -1, "ffffffff"),
            ("#X|", 255, "0XFF"),
            ("o|", 8, "10"),
            ("hhd|", 255, "-1"),
            ("hu|", -1, "65535"),
            ("lx|", -1, "ffffffffffffffff"),
            ("ld|", i64::MIN, "-9223372036854775808"),
            ("v4hlx|", 17, "11"),
            ("c|", 120, "x"),
            ("p|", 4096, "0x1000"),
        ] {
            assert_eq!(text(format, &Value::Int(value)), expected, "%{format}");
        }
    }

    #[test]
    fn floats_and_strings_have_the_text_of_c() {
        for (format, value, expected) in [
            ("f|", 1.5, "1.500000"),
            (".2f|", 2.345, "2.35"),
            ("8.3f|", -1.0, "  -1.000"),
            ("08.3f|", -1.0, "-001.000"),
            ("e|", 1e10, "1.000000e+10"),
            (".1E|", 0.00123, "1.2E-03"),
            ("g|", 0.0001, "0.0001"),
            ("g|", 0.00001, "1e-05"),
            ("g|", 123456.0, "123456"),
            ("G|", 1e20, "1E+20"),
            (".3g|", 1234.0, "1.23e+03"),
            ("a|", 1.0, "0x1p+0"),
            ("a|", 3.25, "0x1.ap+1"),
            (".1a|", 1.97, "0x2.0p+0"),
            ("5f|", f64::INFINITY, "  inf"),
            ("05F|", -f64::INFINITY, " -INF"),
        ] {
            assert_eq!(text(format, &Value::Float(value)), expected, "%{format}");
        }
        assert_eq!(text("5.3s|", &Value::Text("abcdef".into())), "  abc");
        assert_eq!(text("-4s|", &Value::Text("hi".into())), "hi  ");
    }
}
