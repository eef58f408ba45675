// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Text of one instruction, in the columns of iga64.

use super::{float, message};
use crate::isa::table::{self, Format};
use crate::isa::{Descriptor, Instruction, Place, Region, Source, Type, registers, swsb};

/// A line under construction. A column that is too long shortens the padding of those after it.
#[derive(Default)]
struct Columns {
    text: String,
    /// Counted characters of the open column.
    size: usize,
    debt: usize,
}

impl Columns {
    fn put(&mut self, text: &str) {
        self.text.push_str(text);
        self.size += text.len();
    }

    /// Appends text that the widths of columns do not count.
    fn put_uncounted(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn start(&mut self) {
        self.size = 0;
    }

    fn finish(&mut self, width: usize) {
        if self.size > width {
            self.debt += self.size - width;
        } else {
            let padding = width - self.size;
            let paid = padding.min(self.debt);
            self.debt -= paid;
            self.text.extend(std::iter::repeat_n(' ', padding - paid));
        }
    }
}

const PREDICATE: usize = 7;
const MNEMONIC: usize = 13;
const CONDITION: usize = 9;
const DST: usize = 12;
const SRC: usize = 16;
const SEND_DST: usize = 7;
const SEND_SRC: usize = 6;
const DESCRIPTOR: usize = 10;

/// Text of an instruction at the address `pc`, without spaces at its end. Targets are labels `L` with their address.
/// Returns `None` if a part has no text.
pub fn format(from: &Instruction, pc: u32) -> Option<String> {
    let mut line = Columns::default();
    line.start();
    predicate(&mut line, from);
    line.finish(PREDICATE);
    line.put(" ");
    line.start();
    mnemonic(&mut line, from)?;
    line.finish(MNEMONIC);
    line.put(" ");
    line.start();
    condition(&mut line, from)?;
    line.finish(CONDITION);
    operands(&mut line, from, pc)?;
    let options = options(from)?;
    if !options.is_empty() {
        line.put_uncounted(&format!(" {{{}}}", options.join(",")));
    }
    if from.row.format == Format::Send {
        line.put_uncounted(&format!(" // {}", message::describe(from)));
    }
    line.text.truncate(line.text.trim_end().len());
    Some(line.text)
}

/// True for instructions without execution size in their text.
fn has_no_operands(row: &table::Row) -> bool {
    matches!(row.format, Format::NoOperands | Format::Sync | Format::Jmpi)
}

fn predicate(line: &mut Columns, from: &Instruction) {
    if !from.no_mask && from.predicate == 0 {
        return;
    }
    line.put("(");
    if from.no_mask {
        line.put(if from.predicate != 0 { "W&" } else { "W" });
    }
    if from.predicate != 0 {
        let name = table::PREDICATE[usize::from(from.predicate & 15)];
        let invert = if from.invert { "~" } else { "" };
        let dot = if name.is_empty() { "" } else { "." };
        line.put(&format!("{invert}{}{dot}{name}", flag(from.flag)));
    }
    line.put(")");
}

fn flag(number: u8) -> String {
    format!("f{}.{}", number >> 1, number & 1)
}

fn known(name: &'static str) -> Option<&'static str> {
    (name != "?").then_some(name)
}

fn mnemonic(line: &mut Columns, from: &Instruction) -> Option<()> {
    let row = from.row;
    line.put(row.name);
    let modifier = usize::from(from.modifier & 15);
    let function = match row.format {
        Format::Math => known(table::MATH[modifier])?.into(),
        Format::Sync => known(table::SYNC[modifier])?.into(),
        Format::Send => known(table::SFID[modifier])?.into(),
        Format::Bfn => format!("({})", table::bfn_name(from.function)),
        Format::Dpas => format!("{}x{}", from.depth, from.repeat),
        _ if row.has_branch_control() && from.acc_write => "b".into(),
        _ => String::new(),
    };
    if !function.is_empty() {
        line.put(".");
        line.put(&function);
    }
    if has_no_operands(row) {
        line.put(" ");
    } else {
        line.put(&format!(" ({}|M{})", from.size, from.channel));
    }
    Some(())
}

fn condition(line: &mut Columns, from: &Instruction) -> Option<()> {
    if from.row.has_condition() && from.modifier != 0 {
        let name = known(table::CONDITION[usize::from(from.modifier & 15)])?;
        line.put(&format!("({name}){}", flag(from.flag)));
    }
    Some(())
}

fn operands(line: &mut Columns, from: &Instruction, pc: u32) -> Option<()> {
    let row = from.row;
    if row.format == Format::Send {
        return send(line, from);
    }
    let targets =
        if from.row.is_branch() && !from.register_target { 1 + usize::from(row.format == Format::JipUip) } else { 0 };
    let sources = if row.is_branch() { usize::from(from.register_target) } else { from.sources() };
    if row.has_destination() {
        line.put("  ");
        line.start();
        destination(line, from)?;
        line.finish(DST);
    } else if sources + targets > 0 || !options(from)?.is_empty() {
        line.put_uncounted(&" ".repeat(DST));
    }
    if sources + targets == 0 {
        if !options(from)?.is_empty() {
            line.put_uncounted(&" ".repeat(SRC));
        }
        return Some(());
    }
    for index in 0..(sources + targets).max(2) {
        if index < sources + targets {
            line.put("  ");
        }
        line.start();
        if index < targets {
            let distance = if index == 0 { from.jip } else { from.uip };
            line.put_uncounted(&label(i64::from(pc) + i64::from(distance)));
        } else if index < sources + targets {
            source(line, from, index - targets)?;
        }
        line.finish(SRC);
    }
    Some(())
}

/// Name of a label at an address.
pub fn label(address: i64) -> String {
    if address < 0 { format!("L_N{}", -address) } else { format!("L{address}") }
}

/// Name of a register and, with `unit`, its subregister in elements of that size.
fn register(place: Place, unit: Option<u32>) -> Option<String> {
    let (name, byte, has_sub, register) = match place {
        Place::Grf { reg, byte } => (format!("r{reg}"), byte, true, None),
        Place::Arf { reg, byte } => {
            let (register, index) = registers::by_number(reg)?;
            let number = if register.count > 0 { index.to_string() } else { String::new() };
            (format!("{}{number}", register.name), byte, register.has_sub, Some(register))
        }
        Place::Indirect { sub, offset: 0 } => return Some(format!("r[a0.{sub}]")),
        Place::Indirect { sub, offset } => return Some(format!("r[a0.{sub},{offset}]")),
    };
    let Some(unit) = unit else { return (byte == 0).then_some(name) };
    let unit = register.map_or(unit, |register| register.step(unit));
    if u32::from(byte) % unit != 0 {
        return None;
    }
    if !has_sub && byte == 0 {
        return Some(name);
    }
    Some(format!("{name}.{}", u32::from(byte) / unit))
}

fn destination(line: &mut Columns, from: &Instruction) -> Option<()> {
    let dst = &from.dst;
    if from.saturate {
        line.put("(sat)");
    }
    match from.row.format {
        Format::Call => line.put(&register(dst.place, Some(4))?),
        Format::Dpas => line.put(&format!("{}:{}", register(dst.place, None)?, dst.ty.name())),
        _ => {
            let place = register(dst.place, Some(dst.ty.size()))?;
            line.put(&format!("{place}<{}>:{}", dst.stride, dst.ty.name()));
        }
    }
    Some(())
}

fn source(line: &mut Columns, from: &Instruction, index: usize) -> Option<()> {
    let row = from.row;
    match from.src[index] {
        Source::Imm { ty, value } => {
            if row.format == Format::Sync {
                // A mask of tokens.
                if ty != Type::Ud || !matches!(from.modifier, 2 | 3) {
                    return None;
                }
                let tokens: Vec<String> =
                    (0..32).filter(|bit| value >> bit & 1 != 0).map(|bit| format!("${bit}")).collect();
                line.put_uncounted(&format!("({})", tokens.join(",")));
                return Some(());
            }
            line.put_uncounted(&immediate(ty, value));
            line.put(&format!(":{}", ty.name()));
        }
        Source::Reg { place, region, ty, abs, negate } => {
            match (negate, abs) {
                (true, true) => line.put("-(abs)"),
                (true, false) => line.put(if row.is_logic() { "~" } else { "-" }),
                (false, true) => line.put("(abs)"),
                (false, false) => {}
            }
            match row.format {
                Format::Ret | Format::Jmpi | Format::Call | Format::Jip | Format::JipUip => {
                    line.put(&register(place, Some(4))?);
                }
                Format::Sync => {
                    if from.src[0] != Source::NULL {
                        return None;
                    }
                    line.put("null");
                }
                Format::Dpas if index < 2 => line.put(&format!("{}:{}", register(place, None)?, ty.name())),
                Format::Dpas => line.put(&format!("{}:{}", register(place, Some(ty.size()))?, ty.name())),
                _ => {
                    let place = register(place, Some(ty.size()))?;
                    line.put(&format!("{place}{}:{}", region_text(row.format, index, region), ty.name()));
                }
            }
        }
    }
    Some(())
}

fn region_text(format: Format, index: usize, region: Region) -> String {
    let Region { vstride, width, hstride } = region;
    match (vstride, format, index) {
        (Some(vstride), Format::Ternary | Format::Bfn, 2) => format!("<{vstride}>"),
        (Some(vstride), Format::Ternary | Format::Bfn, _) => format!("<{vstride};{hstride}>"),
        (Some(vstride), ..) => format!("<{vstride};{width},{hstride}>"),
        (None, ..) => format!("<{width},{hstride}>"),
    }
}

/// Text of an immediate without its type.
fn immediate(ty: Type, value: u64) -> String {
    match ty {
        Type::W => (value as i16).to_string(),
        Type::D => (value as i32).to_string(),
        Type::Q => (value as i64).to_string(),
        Type::Hf => float::f16_text(value as u16),
        Type::F => float::f32_text(value as u32),
        Type::Df => float::f64_text(value),
        _ => format!("0x{value:X}"),
    }
}

fn send(line: &mut Columns, from: &Instruction) -> Option<()> {
    let send = &from.send;
    line.put("  ");
    line.start();
    line.put(&register(from.dst.place, None)?);
    line.finish(SEND_DST);
    for index in 0..2 {
        let Source::Reg { place, .. } = from.src[index] else { return None };
        line.put("  ");
        line.start();
        line.put(&register(place, None)?);
        let in_instruction = send.exbso || matches!(send.ex_desc, Descriptor::Imm(_));
        if index == 1 && in_instruction {
            line.put(&format!(":{}", send.src1_length));
        }
        line.finish(SEND_SRC);
    }
    line.put("  ");
    line.start();
    match send.ex_desc {
        Descriptor::Imm(value) => line.put_uncounted(&format!("0x{value:X}")),
        Descriptor::Reg(sub) => line.put(&format!("a0.{sub}")),
    }
    line.finish(DESCRIPTOR);
    line.put("  ");
    line.start();
    match send.desc {
        Descriptor::Imm(value) => line.put_uncounted(&format!("0x{value:08X}")),
        Descriptor::Reg(sub) => line.put(&format!("a0.{sub}")),
    }
    line.finish(DESCRIPTOR);
    Some(())
}

fn options(from: &Instruction) -> Option<Vec<String>> {
    let send = from.row.format == Format::Send;
    let branch = from.row.has_branch_control();
    let mut names: Vec<String> = [
        (from.acc_write && !send && !branch, "AccWrEn"),
        (from.atomic, "Atomic"),
        (from.breakpoint, "Breakpoint"),
        (from.compacted, "Compacted"),
        (send && from.saturate, "EOT"),
        (send && from.acc_write, "Serialize"),
        (send && from.send.exbso, "ExBSO"),
    ]
    .iter()
    .filter(|(set, _)| *set)
    .map(|(_, name)| (*name).to_string())
    .collect();
    let annotation = swsb::text(from.row, from.swsb)?;
    if !annotation.is_empty() {
        names.push(annotation);
    }
    Some(names)
}
