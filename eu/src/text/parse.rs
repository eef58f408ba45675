// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Parser of one instruction's text.

use std::ops::Range;

use super::float;
use crate::isa::table::{self, Format, Row};
use crate::isa::{Descriptor, Destination, Instruction, Place, Region, Source, Type, registers, swsb};

/// An error and its place in the line.
pub type Error = (Range<usize>, String);

/// A target: the place of its name in the line, and the name.
#[derive(Clone, Debug)]
pub struct Target {
    pub span: Range<usize>,
    pub name: String,
}

/// A parsed instruction with targets that are not resolved yet.
#[derive(Clone, Debug)]
pub struct Parsed {
    pub instruction: Instruction,
    pub targets: Vec<Target>,
}

/// A position in a line.
pub struct Cursor<'l> {
    line: &'l str,
    at: usize,
}

impl<'l> Cursor<'l> {
    pub fn new(line: &'l str) -> Cursor<'l> {
        Cursor { line, at: 0 }
    }

    fn rest(&self) -> &'l str {
        &self.line[self.at..]
    }

    fn space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    /// True at the end of the line or at a comment.
    pub fn is_at_end(&mut self) -> bool {
        self.space();
        self.rest().is_empty() || self.rest().starts_with("//")
    }

    fn eat(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    fn expect(&mut self, text: &str, what: &str) -> Result<(), Error> {
        if self.eat(text) { Ok(()) } else { Err(self.error(format!("`{text}` is missing {what}"))) }
    }

    /// The characters for which `is_part` holds.
    fn take(&mut self, is_part: impl Fn(char) -> bool) -> &'l str {
        let rest = self.rest();
        let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    fn word(&mut self) -> &'l str {
        self.take(|c| c.is_alphanumeric() || c == '_')
    }

    fn number<T: std::str::FromStr>(&mut self, what: &str) -> Result<T, Error> {
        let start = self.at;
        let digits = self.take(|c| c.is_ascii_digit());
        digits.parse().map_err(|_| self.error_from(start, format!("{what} is missing or too large")))
    }

    /// An error at the next word.
    fn error(&self, message: String) -> Error {
        let length = self.rest().find(char::is_whitespace).unwrap_or(self.rest().len());
        (self.at..self.at + length.max(1), message)
    }

    fn error_from(&self, start: usize, message: String) -> Error {
        (start..self.at.max(start + 1), message)
    }
}

/// Parses an instruction. The cursor is at its first character.
pub fn instruction(cursor: &mut Cursor<'_>) -> Result<Parsed, Error> {
    cursor.space();
    let mut guard = None;
    if cursor.eat("(") {
        guard = Some(predicate(cursor)?);
        cursor.space();
    }
    let start = cursor.at;
    let name = cursor.word();
    let Some(row) = table::by_name(name) else {
        return Err(cursor.error_from(start, format!("no instruction has the name `{name}`: see `eu isa`")));
    };
    let mut into = Instruction::new(row);
    if let Some((no_mask, control)) = guard {
        into.no_mask = no_mask;
        if let Some((invert, flag, code)) = control {
            into.invert = invert;
            into.flag = flag;
            into.predicate = code;
        }
    }
    function(cursor, &mut into)?;
    if !matches!(row.format, Format::NoOperands | Format::Sync | Format::Jmpi) {
        execution_size(cursor, &mut into)?;
    }
    cursor.space();
    if row.has_condition() && cursor.rest().starts_with('(') && !is_modifier(cursor.rest()) {
        condition(cursor, &mut into)?;
    }
    let mut targets = Vec::new();
    match row.format {
        Format::Send => send(cursor, &mut into)?,
        _ => operands(cursor, &mut into, &mut targets)?,
    }
    cursor.space();
    if cursor.eat("{") {
        options(cursor, &mut into)?;
    }
    if !cursor.is_at_end() {
        return Err(cursor.error("there is more text than the instruction has operands".into()));
    }
    Ok(Parsed { instruction: into, targets })
}

/// True at `(sat)` or `(abs)`.
fn is_modifier(rest: &str) -> bool {
    rest.starts_with("(sat)") || rest.starts_with("(abs)")
}

type Guard = (bool, Option<(bool, u8, u8)>);

fn predicate(cursor: &mut Cursor<'_>) -> Result<Guard, Error> {
    let no_mask = cursor.eat("W");
    if no_mask && !cursor.eat("&") {
        cursor.expect(")", "after W")?;
        return Ok((true, None));
    }
    let invert = cursor.eat("~");
    let flag = flag(cursor)?;
    let mut code = 1;
    if cursor.eat(".") {
        let start = cursor.at;
        let name = cursor.word();
        let found = (2..14).find(|code| table::PREDICATE[usize::from(*code)] == name);
        code = found
            .ok_or_else(|| cursor.error_from(start, "a predicate control is anyv, allv, any2h … all32h".into()))?;
    }
    cursor.expect(")", "after the predicate")?;
    Ok((no_mask, Some((invert, flag, code))))
}

/// A flag register as `f0.1`, or `f0` for `f0.0`.
fn flag(cursor: &mut Cursor<'_>) -> Result<u8, Error> {
    let start = cursor.at;
    cursor.expect("f", "before the number of the flag register")?;
    let register: u8 = cursor.number("the number of the flag register")?;
    let mut sub = 0;
    if cursor.rest().starts_with(".0") || cursor.rest().starts_with(".1") {
        cursor.eat(".");
        sub = cursor.number("the number of the flag's word")?;
    }
    if register > 1 || sub > 1 {
        return Err(cursor.error_from(start, "the flags are f0.0, f0.1, f1.0 and f1.1".into()));
    }
    Ok(register * 2 + sub)
}

/// Index of a name in a table of 16; `?` stands for a code without name.
fn code_of(names: &[&str; 16], name: &str) -> Option<u8> {
    (0..16).find(|code| names[usize::from(*code)] == name && name != "?")
}

fn function(cursor: &mut Cursor<'_>, into: &mut Instruction) -> Result<(), Error> {
    let start = cursor.at;
    let dot = cursor.eat(".");
    let names = match into.row.format {
        Format::Math => &table::MATH,
        Format::Sync => &table::SYNC,
        Format::Send => &table::SFID,
        Format::Bfn => {
            let rest = cursor.rest();
            let code = if cursor.eat("(") {
                // The expression may have parentheses itself.
                let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                cursor.at += end - 1;
                let expression = rest[1..end].strip_suffix(')').unwrap_or_default();
                (0..=255).find(|code| table::bfn_name(*code) == expression)
            } else {
                let digits = cursor.word();
                digits.strip_prefix("0x").and_then(|hex| u8::from_str_radix(hex, 16).ok())
            };
            into.function = code.ok_or_else(|| {
                cursor.error_from(start, "bfn needs a function such as bfn.(s0&s1|s2) or bfn.0xF8".into())
            })?;
            return Ok(());
        }
        Format::Dpas => {
            into.depth = cursor.number("the systolic depth, as in dpas.8x8,")?;
            cursor.expect("x", "after the depth")?;
            into.repeat = cursor.number("the repeat count, as in dpas.8x8,")?;
            return Ok(());
        }
        _ => {
            if dot {
                if !into.row.has_branch_control() || !cursor.eat("b") {
                    return Err(cursor.error_from(start, format!("{} has no such form", into.row.name)));
                }
                into.acc_write = true;
            }
            return Ok(());
        }
    };
    let name = cursor.word();
    into.modifier = code_of(names, name).ok_or_else(|| {
        let known: Vec<&str> = names.iter().copied().filter(|name| *name != "?").collect();
        cursor.error_from(start, format!("{} needs one of: {}", into.row.name, known.join(", ")))
    })?;
    Ok(())
}

fn execution_size(cursor: &mut Cursor<'_>, into: &mut Instruction) -> Result<(), Error> {
    cursor.space();
    let start = cursor.at;
    cursor.expect("(", "before the execution size, as in (16|M0)")?;
    into.size = cursor.number("the execution size")?;
    if cursor.eat("|") {
        cursor.expect("M", "before the channel")?;
        into.channel = cursor.number("the channel")?;
    }
    cursor.expect(")", "after the execution size")?;
    if !into.size.is_power_of_two() || into.size > 32 {
        return Err(cursor.error_from(start, "the execution size is 1, 2, 4, 8, 16 or 32".into()));
    }
    if !into.channel.is_multiple_of(4) || into.channel > 28 {
        return Err(cursor.error_from(start, "the channel is M0, M4, M8 … M28".into()));
    }
    Ok(())
}

fn condition(cursor: &mut Cursor<'_>, into: &mut Instruction) -> Result<(), Error> {
    let start = cursor.at;
    cursor.eat("(");
    let name = cursor.word();
    let code = code_of(&table::CONDITION, name).filter(|code| *code != 0);
    into.modifier =
        code.ok_or_else(|| cursor.error_from(start, "a condition is eq, ne, gt, ge, lt, le, ov or un".into()))?;
    cursor.expect(")", "after the condition")?;
    let flag = flag(cursor)?;
    if into.predicate != 0 && into.flag != flag {
        return Err(cursor.error_from(start, "predicate and condition must name the same flag".into()));
    }
    into.flag = flag;
    Ok(())
}

fn operands(cursor: &mut Cursor<'_>, into: &mut Instruction, targets: &mut Vec<Target>) -> Result<(), Error> {
    let row = into.row;
    if row.has_destination() {
        cursor.space();
        into.saturate = cursor.eat("(sat)");
        into.dst = destination(cursor, row)?;
    }
    if row.is_branch() {
        return branch(cursor, into, targets);
    }
    for index in 0..into.sources() {
        cursor.space();
        into.src[index] = source(cursor, row, index)?;
    }
    Ok(())
}

fn branch(cursor: &mut Cursor<'_>, into: &mut Instruction, targets: &mut Vec<Target>) -> Result<(), Error> {
    let count = if into.row.format == Format::JipUip { 2 } else { 1 };
    cursor.space();
    let register = cursor.rest().strip_prefix('r').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    if register || into.row.format == Format::Ret {
        let (place, name) = place(cursor)?;
        into.register_target = true;
        let place = subregister(cursor, place, name, 4)?;
        into.src[0] = Source::Reg { place, region: Region::SCALAR, ty: Type::D, abs: false, negate: false };
        return Ok(());
    }
    for _ in 0..count {
        cursor.space();
        let start = cursor.at;
        let name = cursor.take(|c| c.is_alphanumeric() || "_-+.".contains(c));
        if name.is_empty() {
            return Err(cursor.error("a label is missing".into()));
        }
        targets.push(Target { span: start..cursor.at, name: name.to_string() });
    }
    Ok(())
}

/// A register without subregister, and its entry among the architecture registers.
fn place(cursor: &mut Cursor<'_>) -> Result<(Place, Option<&'static registers::Register>), Error> {
    let start = cursor.at;
    if cursor.eat("r[") {
        cursor.expect("a0.", "in a register-indirect operand")?;
        let sub = cursor.number("the number of the address word")?;
        let mut offset = 0;
        if cursor.eat(",") {
            let negative = cursor.eat("-");
            let value: i16 = cursor.number("the offset")?;
            offset = if negative { -value } else { value };
        }
        cursor.expect("]", "after the address")?;
        return Ok((Place::Indirect { sub, offset }, None));
    }
    let name = cursor.take(|c| c.is_ascii_alphabetic());
    if name == "r" {
        let reg = cursor.number("the number of the register")?;
        return Ok((Place::Grf { reg, byte: 0 }, None));
    }
    let Some(register) = registers::REGISTERS.iter().find(|register| register.name == name) else {
        return Err(cursor.error_from(start, "a register is r0 to r255, acc0, a0, f0, cr0, null …".into()));
    };
    let mut reg = register.first;
    if register.count > 0 {
        let index: u8 = cursor.number("the number of the register")?;
        if index >= register.count {
            return Err(cursor.error_from(start, format!("the last of these is {name}{}", register.count - 1)));
        }
        reg += index;
    }
    Ok((Place::Arf { reg, byte: 0 }, Some(register)))
}

/// A subregister in elements of `unit` bytes, if there is one.
fn subregister(
    cursor: &mut Cursor<'_>,
    mut place: Place,
    register: Option<&registers::Register>,
    unit: u32,
) -> Result<Place, Error> {
    let start = cursor.at;
    if !cursor.eat(".") {
        return Ok(place);
    }
    let index: u32 = cursor.number("the subregister")?;
    let unit = register.map_or(unit, |register| register.step(unit));
    let bytes = u8::try_from(index.saturating_mul(unit)).ok().filter(|bytes| *bytes < 32);
    let bytes = bytes.ok_or_else(|| cursor.error_from(start, "the subregister is beyond the register".into()))?;
    match &mut place {
        Place::Grf { byte, .. } | Place::Arf { byte, .. } => *byte = bytes,
        Place::Indirect { .. } => {
            return Err(cursor.error_from(start, "a register-indirect operand has no subregister".into()));
        }
    }
    Ok(place)
}

/// The type at the end of an operand that has other parts, seen before them.
fn type_ahead(cursor: &Cursor<'_>) -> Result<(Type, usize), Error> {
    let rest = cursor.rest();
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let operand = &rest[..end];
    let missing = || cursor.error("the operand needs a type, such as :f or :ud".into());
    let colon = operand.rfind(':').ok_or_else(missing)?;
    let name = operand[colon + 1..].trim_end_matches('{');
    let ty = Type::from_name(name).ok_or_else(missing)?;
    Ok((ty, cursor.at + colon + 1 + name.len()))
}

fn destination(cursor: &mut Cursor<'_>, row: &Row) -> Result<Destination, Error> {
    if row.format == Format::Call {
        let (found, register) = place(cursor)?;
        return Ok(Destination { place: subregister(cursor, found, register, 4)?, stride: 1, ty: Type::D });
    }
    let (ty, end) = type_ahead(cursor)?;
    let (found, register) = place(cursor)?;
    let place = subregister(cursor, found, register, ty.size())?;
    let mut stride = 1;
    if cursor.eat("<") {
        stride = cursor.number("the stride")?;
        cursor.expect(">", "after the stride")?;
    }
    cursor.expect(":", "before the type")?;
    cursor.at = end;
    Ok(Destination { place, stride, ty })
}

fn source(cursor: &mut Cursor<'_>, row: &Row, index: usize) -> Result<Source, Error> {
    if row.format == Format::Sync {
        return sync_source(cursor);
    }
    let start = cursor.at;
    let (ty, end) = type_ahead(cursor)?;
    let mut negate = cursor.eat("~");
    if let Some(rest) = cursor.rest().strip_prefix('-')
        && !rest.starts_with(|c: char| c.is_ascii_digit())
        && !rest.starts_with("inf")
        && !rest.starts_with("qnan")
        && !rest.starts_with("snan")
    {
        negate = cursor.eat("-");
    }
    let abs = cursor.eat("(abs)");
    let rest = cursor.rest();
    let literal = ["qnan(", "snan(", "inf:"].iter().any(|prefix| rest.trim_start_matches('-').starts_with(prefix));
    if literal || rest.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        let text = &cursor.line[cursor.at..end];
        let text = text.rsplit_once(':').map_or(text, |(text, _)| text);
        let value = immediate(text, ty);
        cursor.at = end;
        let value = value
            .ok_or_else(|| cursor.error_from(start, format!("`{text}` is no immediate of the type {}", ty.name())))?;
        return Ok(Source::Imm { ty, value });
    }
    let (found, register) = place(cursor)?;
    let place = subregister(cursor, found, register, ty.size())?;
    let mut region = if row.format == Format::Dpas { Region::PACKED } else { Region::SCALAR };
    if cursor.eat("<") {
        region = region_of(cursor, row.format, index)?;
    }
    cursor.expect(":", "before the type")?;
    cursor.at = end;
    Ok(Source::Reg { place, region, ty, abs, negate })
}

fn region_of(cursor: &mut Cursor<'_>, format: Format, index: usize) -> Result<Region, Error> {
    let start = cursor.at;
    let ternary = matches!(format, Format::Ternary | Format::Bfn);
    let first: u8 = cursor.number("the stride")?;
    let region = if ternary && index == 2 {
        Region { vstride: Some(first), width: 1, hstride: 0 }
    } else if cursor.eat(",") {
        Region { vstride: None, width: first, hstride: cursor.number("the horizontal stride")? }
    } else {
        cursor.expect(";", "after the vertical stride")?;
        let second: u8 = cursor.number("the width or the horizontal stride")?;
        if ternary {
            let width = first.checked_div(second).unwrap_or(1).max(1);
            Region { vstride: Some(first), width, hstride: second }
        } else {
            cursor.expect(",", "after the width")?;
            Region { vstride: Some(first), width: second, hstride: cursor.number("the horizontal stride")? }
        }
    };
    if !cursor.eat(">") {
        return Err(cursor.error_from(start, "a region is <V;W,H>, <W,H> or, with three sources, <V;H> and <H>".into()));
    }
    Ok(region)
}

fn sync_source(cursor: &mut Cursor<'_>) -> Result<Source, Error> {
    if cursor.eat("null") {
        return Ok(Source::NULL);
    }
    let start = cursor.at;
    cursor.expect("(", "before the tokens, as in ($1,$3); or null")?;
    let mut value = 0;
    while !cursor.eat(")") {
        cursor.expect("$", "before the number of the token")?;
        let token: u32 = cursor.number("the number of the token")?;
        if token > 31 {
            return Err(cursor.error_from(start, "a token of the mask of sync is $0 to $31".into()));
        }
        value |= 1 << token;
        cursor.eat(",");
    }
    Ok(Source::Imm { ty: Type::Ud, value })
}

/// Value of hexadecimal digits, without a sign.
pub fn hex(digits: &str) -> Option<u64> {
    if digits.starts_with('+') { None } else { u64::from_str_radix(digits, 16).ok() }
}

/// Bits of an immediate.
fn immediate(text: &str, ty: Type) -> Option<u64> {
    match ty {
        Type::F => return float::parse(text, false).map(u64::from),
        Type::Hf => return float::parse(text, true).map(u64::from),
        Type::Df if text.contains('.') || text.contains("e+") || text.contains("e-") => {
            return text.parse::<f64>().ok().map(f64::to_bits);
        }
        _ => {}
    }
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let value = match digits.strip_prefix("0x") {
        Some(hex) => self::hex(hex)?,
        None if digits.starts_with(|c: char| c.is_ascii_digit()) => digits.parse().ok()?,
        None => return None,
    };
    let bits = match ty {
        Type::V | Type::Uv | Type::Vf => 32,
        _ => ty.size() * 8,
    };
    let value = if negative { -i128::from(value) } else { i128::from(value) };
    let range = -(1i128 << (bits - 1))..1i128 << bits;
    let masked = (value & ((1i128 << bits) - 1)) as u64;
    range.contains(&value).then_some(masked)
}

fn send(cursor: &mut Cursor<'_>, into: &mut Instruction) -> Result<(), Error> {
    cursor.space();
    into.dst = Destination { place: place(cursor)?.0, ..Destination::NULL };
    for index in 0..2 {
        cursor.space();
        let place = place(cursor)?.0;
        into.src[index] = Source::Reg { place, region: Region::SCALAR, ty: Type::Ud, abs: false, negate: false };
        if index == 1 && cursor.eat(":") {
            into.send.src1_length = cursor.number("the length of source 1")?;
        }
    }
    into.send.ex_desc = descriptor(cursor)?;
    into.send.desc = descriptor(cursor)?;
    Ok(())
}

fn descriptor(cursor: &mut Cursor<'_>) -> Result<Descriptor, Error> {
    cursor.space();
    let start = cursor.at;
    if cursor.eat("a0.") {
        let sub: u8 = cursor.number("the number of the dword in a0")?;
        if sub > 7 {
            return Err(cursor.error_from(start, "a0 has the dwords a0.0 to a0.7".into()));
        }
        return Ok(Descriptor::Reg(sub));
    }
    let text = cursor.word();
    let value = text.strip_prefix("0x").and_then(|hex| u32::from_str_radix(hex, 16).ok());
    value
        .map(Descriptor::Imm)
        .ok_or_else(|| cursor.error_from(start, "a descriptor is a number such as 0x0 or a0.2".into()))
}

/// Names that are legal between braces.
const OPTIONS: &str = "AccWrEn, Serialize, Atomic, Breakpoint, Compacted, EOT and ExBSO, as the instruction has them";

fn options(cursor: &mut Cursor<'_>, into: &mut Instruction) -> Result<(), Error> {
    let mut start = cursor.at;
    let inside = cursor.take(|c| c != '}');
    cursor.expect("}", "after the options")?;
    let send = into.row.format == Format::Send;
    let mut annotation = Vec::new();
    let mut spans = Vec::new();
    for part in inside.split(',') {
        let option = part.trim();
        let first = start + part.len() - part.trim_start().len();
        let span = first..first + option.len();
        start += part.len() + 1;
        match option {
            "" => {}
            "AccWrEn" if !send && !into.row.has_branch_control() => into.acc_write = true,
            "Serialize" if send => into.acc_write = true,
            "Atomic" => into.atomic = true,
            "Breakpoint" => into.breakpoint = true,
            "Compacted" => into.compacted = true,
            "EOT" if send => into.saturate = true,
            "ExBSO" if send => into.send.exbso = true,
            _ if option.contains(['$', '@']) => {
                annotation.push(option);
                spans.push(span);
            }
            _ => {
                let dependencies = "a distance such as A@1 and a token such as $3.dst";
                return Err((span, format!("`{option}` is no option: there are {OPTIONS}, {dependencies}")));
            }
        }
    }
    into.swsb = swsb::parse(into.row, &annotation)
        .map_err(|error| (spans.get(error.part).cloned().unwrap_or(start..start + 1), error.reason.to_string()))?;
    Ok(())
}
