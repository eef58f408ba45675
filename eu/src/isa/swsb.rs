// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Software scoreboard annotations (ISA-101). They do not change results (ISA-100); assembler and disassembler need them.

use super::table::{Execute, Format, Row};

/// Names of the pipes in a distance and their bits: none is the pipe of the operands' type.
const PIPES: [(&str, u8); 5] = [("", 0x00), ("A", 0x08), ("F", 0x10), ("I", 0x18), ("L", 0x50)];

/// True for instructions of which a token beside a distance is allocated.
fn is_out_of_order(row: &Row) -> bool {
    use super::table::Lane;
    matches!(row.execute, Execute::Send | Execute::Dpas | Execute::Lane(Lane::Math)) || row.format == Format::Dpas
}

/// Text of an annotation; empty for none. `None` if the code is reserved.
pub fn text(row: &Row, code: u8) -> Option<String> {
    let (low, token) = (code & 7, code & 15);
    let set = |token| format!("${token}");
    if code & 0x80 != 0 {
        let distance = code >> 4 & 7;
        if distance == 0 {
            return None;
        }
        let pipe = if row.format == Format::Send { "A" } else { "" };
        let token = if is_out_of_order(row) { set(token) } else { format!("${token}.dst") };
        return Some(format!("{pipe}@{distance},{token}"));
    }
    match code & 0xf0 {
        0x20 => Some(format!("${token}.dst")),
        0x30 => Some(format!("${token}.src")),
        0x40 => Some(set(token)),
        _ => {
            if code == 0 {
                return Some(String::new());
            }
            let (pipe, _) = PIPES.iter().find(|(_, bits)| *bits == code & !7)?;
            (low != 0).then(|| format!("{pipe}@{low}"))
        }
    }
}

/// Code of an annotation in the parts of its text, as `["A@1", "$3"]`.
pub fn parse(row: &Row, parts: &[&str]) -> Result<u8, &'static str> {
    let mut distance = None;
    let mut token = None;
    for part in parts {
        if let Some(rest) = part.strip_prefix('$') {
            let (number, kind) = rest.split_once('.').map_or((rest, ""), |(number, kind)| (number, kind));
            let number: u8 = number.parse().map_err(|_| "a token is $0 to $15")?;
            if number > 15 || token.is_some() {
                return Err("a token is $0 to $15, and there is at most one");
            }
            token = Some((number, kind));
        } else if let Some((pipe, number)) = part.split_once('@') {
            let number: u8 = number.parse().map_err(|_| "a distance is 1 to 7")?;
            if !(1..=7).contains(&number) || distance.is_some() {
                return Err("a distance is 1 to 7, and there is at most one");
            }
            distance = Some((pipe, number));
        } else {
            return Err("an option is a name, a distance such as A@1 or a token such as $3.dst");
        }
    }
    match (distance, token) {
        (None, None) => Ok(0),
        (Some((pipe, number)), None) => {
            let (_, bits) = PIPES.iter().find(|(name, _)| *name == pipe).ok_or("the pipes are A, F, I and L")?;
            Ok(bits | number)
        }
        (None, Some((number, "dst"))) => Ok(0x20 | number),
        (None, Some((number, "src"))) => Ok(0x30 | number),
        (None, Some((number, ""))) => Ok(0x40 | number),
        (Some((pipe, distance)), Some((number, kind))) => {
            let expected = if row.format == Format::Send { "A" } else { "" };
            let expected_kind = if is_out_of_order(row) { "" } else { "dst" };
            if pipe != expected && pipe != "A" {
                return Err("a distance beside a token has no pipe, on messages A");
            }
            if pipe != expected || kind != expected_kind {
                return Err("beside a distance, a token is $n on messages, math and dpas, else $n.dst");
            }
            Ok(0x80 | distance << 4 | number)
        }
        _ => Err("a token is $n, $n.dst or $n.src"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::TABLE;
    use super::*;

    #[test]
    fn each_code_has_a_text_that_is_parsed_to_it() {
        for row in TABLE {
            let mut legal = 0;
            for code in 0..=255 {
                if let Some(text) = text(row, code) {
                    let parts: Vec<&str> = text.split(',').filter(|part| !part.is_empty()).collect();
                    assert_eq!(parse(row, &parts), Ok(code), "{} {text}", row.name);
                    legal += 1;
                }
            }
            assert_eq!(legal, 1 + 5 * 7 + 3 * 16 + 7 * 16);
        }
    }
}
