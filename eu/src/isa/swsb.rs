// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Software scoreboard annotations (ISA-101). They do not change results (ISA-100); assembler and disassembler need
//! them.

use super::table::{Format, Row};

/// The in-order pipe in which a distance counts instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pipe {
    /// That of the operands' type.
    OfTypes,
    /// All pipes.
    All,
    /// Float.
    Float,
    /// Integer.
    Int,
    /// 64-bit types.
    Long,
}

impl Pipe {
    const LIST: [Pipe; 5] = [Pipe::OfTypes, Pipe::All, Pipe::Float, Pipe::Int, Pipe::Long];

    /// Bits 7:3 of the code of a distance, in place. The code of `Long` follows those of tokens.
    const fn bits(self) -> u8 {
        match self {
            Pipe::OfTypes => 0x00,
            Pipe::All => 0x08,
            Pipe::Float => 0x10,
            Pipe::Int => 0x18,
            Pipe::Long => 0x50,
        }
    }

    /// Prefix of a distance in the text.
    const fn prefix(self) -> &'static str {
        match self {
            Pipe::OfTypes => "",
            Pipe::All => "A",
            Pipe::Float => "F",
            Pipe::Int => "I",
            Pipe::Long => "L",
        }
    }
}

/// What an instruction does with a token (SBID).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TokenUse {
    /// Waits for the destination of the token's instruction.
    Destination,
    /// Waits for its sources.
    Sources,
    /// Allocates the token.
    Set,
}

impl TokenUse {
    const LIST: [TokenUse; 3] = [TokenUse::Destination, TokenUse::Sources, TokenUse::Set];

    /// Bits 7:4 of the code of a token, in place.
    const fn bits(self) -> u8 {
        match self {
            TokenUse::Destination => 0x20,
            TokenUse::Sources => 0x30,
            TokenUse::Set => 0x40,
        }
    }

    /// Suffix of a token in the text.
    const fn suffix(self) -> &'static str {
        match self {
            TokenUse::Destination => ".dst",
            TokenUse::Sources => ".src",
            TokenUse::Set => "",
        }
    }
}

/// Bit of a code with a distance and a token.
const BOTH: u8 = 0x80;

/// An annotation: distances are 1 to 7, tokens 0 to 15.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Annotation {
    /// No dependency.
    None,
    /// Waits for the instruction so many before this one in the pipe.
    Distance(Pipe, u8),
    /// Uses a token.
    Token(TokenUse, u8),
    /// A distance and a token; [`Combined`] has its pipe and the use of the token.
    Both(u8, u8),
}

impl Annotation {
    /// `None` for a reserved code.
    fn from_code(code: u8) -> Option<Annotation> {
        let (distance, token) = (code & 7, code & 15);
        if code & BOTH != 0 {
            let distance = code >> 4 & 7;
            return (distance != 0).then_some(Annotation::Both(distance, token));
        }
        if let Some(usage) = TokenUse::LIST.into_iter().find(|usage| usage.bits() == code & 0xf0) {
            return Some(Annotation::Token(usage, token));
        }
        if code == 0 {
            return Some(Annotation::None);
        }
        let pipe = Pipe::LIST.into_iter().find(|pipe| pipe.bits() == code & !7)?;
        (distance != 0).then_some(Annotation::Distance(pipe, distance))
    }

    /// The code.
    fn code(self) -> u8 {
        if let Annotation::Distance(_, distance) | Annotation::Both(distance, _) = self {
            debug_assert!((1..=7).contains(&distance), "distance {distance}");
        }
        if let Annotation::Token(_, token) | Annotation::Both(_, token) = self {
            debug_assert!(token < 16, "token {token}");
        }
        match self {
            Annotation::None => 0,
            Annotation::Distance(pipe, distance) => pipe.bits() | distance,
            Annotation::Token(usage, token) => usage.bits() | token,
            Annotation::Both(distance, token) => BOTH | distance << 4 | token,
        }
    }
}

/// Meaning of a distance beside a token, which depends on the instruction and is not in the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Combined {
    /// Pipe of the distance.
    pipe: Pipe,
    /// Use of the token.
    usage: TokenUse,
}

impl Combined {
    /// Instructions that are executed out of order set the token, the others wait for its destination.
    fn of(row: &Row) -> Combined {
        let out_of_order = matches!(row.format, Format::Send | Format::Dpas | Format::Math);
        Combined {
            pipe: if row.format == Format::Send { Pipe::All } else { Pipe::OfTypes },
            usage: if out_of_order { TokenUse::Set } else { TokenUse::Destination },
        }
    }
}

fn distance_text(pipe: Pipe, distance: u8) -> String {
    format!("{}@{distance}", pipe.prefix())
}

fn token_text(usage: TokenUse, token: u8) -> String {
    format!("${token}{}", usage.suffix())
}

/// Text of an annotation; empty for none. `None` if the code is reserved.
pub fn text(row: &Row, code: u8) -> Option<String> {
    Some(match Annotation::from_code(code)? {
        Annotation::None => String::new(),
        Annotation::Distance(pipe, distance) => distance_text(pipe, distance),
        Annotation::Token(usage, token) => token_text(usage, token),
        Annotation::Both(distance, token) => {
            let combined = Combined::of(row);
            format!("{},{}", distance_text(combined.pipe, distance), token_text(combined.usage, token))
        }
    })
}

/// A number without sign or leading zeros.
fn number(text: &str) -> Option<u8> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let leading = text.len() > 1 && text.starts_with('0');
    if digits && !leading { text.parse().ok() } else { None }
}

/// An error in the text of an annotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Index of the part that is wrong.
    pub part: usize,
    /// Why it is wrong.
    pub reason: &'static str,
}

/// Parses a token without its `$`.
fn parse_token(text: &str) -> Result<(TokenUse, u8), &'static str> {
    let (digits, suffix) = text.split_at(text.find('.').unwrap_or(text.len()));
    let token = number(digits).filter(|token| *token < 16).ok_or("a token of the scoreboard is $0 to $15")?;
    let usage = TokenUse::LIST.into_iter().find(|usage| usage.suffix() == suffix);
    Ok((usage.ok_or("a token is $n, $n.dst or $n.src")?, token))
}

fn parse_distance(prefix: &str, digits: &str) -> Result<(Pipe, u8), &'static str> {
    let distance = number(digits).filter(|distance| (1..=7).contains(distance)).ok_or("a distance is 1 to 7")?;
    let pipe = Pipe::LIST.into_iter().find(|pipe| pipe.prefix() == prefix);
    Ok((pipe.ok_or("the pipes are A, F, I and L")?, distance))
}

/// Code of an annotation by the parts of its text, as `["A@1", "$3"]`: at most one distance and one token, in any
/// order, without spaces.
pub fn parse(row: &Row, parts: &[&str]) -> Result<u8, ParseError> {
    let mut distance = None;
    let mut token = None;
    for (index, part) in parts.iter().enumerate() {
        let fail = |reason| ParseError { part: index, reason };
        if let Some(rest) = part.strip_prefix('$') {
            if token.replace((index, parse_token(rest).map_err(fail)?)).is_some() {
                return Err(fail("there is at most one token"));
            }
        } else if let Some((prefix, digits)) = part.split_once('@') {
            if distance.replace((index, parse_distance(prefix, digits).map_err(fail)?)).is_some() {
                return Err(fail("there is at most one distance"));
            }
        } else {
            return Err(fail("a dependency is a distance such as A@1 or a token such as $3.dst"));
        }
    }
    let annotation = match (distance, token) {
        (None, None) => Annotation::None,
        (Some((_, (pipe, distance))), None) => Annotation::Distance(pipe, distance),
        (None, Some((_, (usage, token)))) => Annotation::Token(usage, token),
        (Some((distance_part, (pipe, distance))), Some((token_part, (usage, token)))) => {
            let combined = Combined::of(row);
            if pipe != combined.pipe {
                let reason = "a distance beside a token is written @n, on messages A@n";
                return Err(ParseError { part: distance_part, reason });
            }
            if usage != combined.usage {
                let reason = "beside a distance, a token is $n on messages, math and dpas, else $n.dst";
                return Err(ParseError { part: token_part, reason });
            }
            Annotation::Both(distance, token)
        }
    };
    Ok(annotation.code())
}

#[cfg(test)]
mod tests {
    use super::super::table::{TABLE, by_name};
    use super::*;

    #[test]
    fn text_of_each_legal_code_is_parsed_to_the_code() {
        for row in TABLE {
            let mut legal = 0;
            for code in 0..=255 {
                if let Some(text) = text(row, code) {
                    let parts: Vec<&str> = text.split(',').filter(|part| !part.is_empty()).collect();
                    assert_eq!(parse(row, &parts), Ok(code), "{} {text}", row.name);
                    legal += 1;
                }
            }
            let (none, distances, tokens, both) = (1, 5 * 7, 3 * 16, 7 * 16);
            assert_eq!(legal, none + distances + tokens + both);
        }
    }

    /// The rows of ISA-101.
    #[test]
    fn codes_have_the_text_of_isa_101() {
        for (code, expected) in [
            (0x00, Some("")),
            (0x01, Some("@1")),
            (0x0f, Some("A@7")),
            (0x12, Some("F@2")),
            (0x1b, Some("I@3")),
            (0x54, Some("L@4")),
            (0x2a, Some("$10.dst")),
            (0x3f, Some("$15.src")),
            (0x45, Some("$5")),
            // Reserved: a distance of 0, and bits 6:3 of 1011 and above.
            (0x08, None),
            (0x50, None),
            (0x58, None),
            (0x5f, None),
            (0x60, None),
            (0x77, None),
            (0x80, None),
        ] {
            for name in ["add", "math", "dpas", "send"] {
                assert_eq!(text(by_name(name).unwrap(), code).as_deref(), expected, "{name} {code:#x}");
            }
        }
        for (name, expected) in [
            ("add", "@3,$9.dst"),
            ("sync", "@3,$9.dst"),
            ("math", "@3,$9"),
            ("dpas", "@3,$9"),
            ("dpasw", "@3,$9"),
            ("send", "A@3,$9"),
            ("sendc", "A@3,$9"),
        ] {
            assert_eq!(text(by_name(name).unwrap(), 0xb9).as_deref(), Some(expected), "{name}");
        }
    }

    #[test]
    fn parse_of_invalid_annotation_reports_index_and_reason() {
        for (name, parts, index, reason) in [
            ("add", &["A@1", "$3.dst"][..], 0, "is written @n"),
            ("add", &["$3.dst", "F@1"], 1, "is written @n"),
            ("add", &["@1", "$3"], 1, "else $n.dst"),
            ("add", &["@1", "$3.src"], 1, "else $n.dst"),
            ("send", &["@1", "$3"], 0, "on messages A"),
            ("send", &["A@1", "$3.dst"], 1, "$n on messages"),
            ("add", &["$+3"], 0, "$0 to $15"),
            ("add", &["$03"], 0, "$0 to $15"),
            ("add", &["$16"], 0, "$0 to $15"),
            ("add", &["$"], 0, "$0 to $15"),
            ("add", &["$3."], 0, "$n, $n.dst or $n.src"),
            ("add", &["$3.foo"], 0, "$n, $n.dst or $n.src"),
            ("add", &["@+1"], 0, "1 to 7"),
            ("add", &["@0"], 0, "1 to 7"),
            ("add", &["A@8"], 0, "1 to 7"),
            ("add", &["Q@1"], 0, "the pipes are"),
            ("add", &["@1", "@2"], 1, "at most one distance"),
            ("add", &["$1", "$2"], 1, "at most one token"),
            ("add", &["NoMask"], 0, "a dependency is"),
        ] {
            let error = parse(by_name(name).unwrap(), parts).unwrap_err();
            assert!(error.part == index && error.reason.contains(reason), "{name} {parts:?}: {error:?}");
        }
    }
}
