// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The table of instructions (ISA-110): decoder, encoder, text, interpreter, reference and generators of tests use its rows.

use super::types::Type::{self, B, Bf, D, F, Hf, Ub, Ud, Uw, W};

/// Layout of an instruction's operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// No operands.
    NoOperands,
    /// ISA-024: a function and an optional mask of tokens.
    Sync,
    /// ISA-011, ISA-012.
    Unary,
    /// ISA-011 to ISA-013.
    Binary,
    /// ISA-023: a function; one source or two.
    Math,
    /// ISA-015.
    Ternary,
    /// ISA-017: ternary with a truth table.
    Bfn,
    /// ISA-018.
    Dpas,
    /// ISA-019.
    Send,
    /// ISA-021: one target.
    Jip,
    /// ISA-021: two targets.
    JipUip,
    /// ISA-022: one target, immediate or in a register.
    Jmpi,
    /// ISA-022: destination and one target.
    Call,
    /// ISA-022: target in a register.
    Ret,
}

/// Operation of a lane. The interpreter has one function for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "named like the instructions")]
pub enum LaneOp {
    Add,
    Mul,
    Avg,
    Frc,
    Rndu,
    Rndd,
    Rnde,
    Rndz,
    Mac,
    Mach,
    Lzd,
    Fbh,
    Fbl,
    Cbit,
    Addc,
    Subb,
    Add3,
    Dp4a,
    Mad,
    Mov,
    Sel,
    Not,
    And,
    Or,
    Xor,
    Shr,
    Shl,
    Asr,
    Bfn,
    Ror,
    Rol,
    Cmp,
    Cmpn,
    Csel,
    Bfrev,
    Bfe,
    Bfi1,
    Bfi2,
    Math,
}

/// A branch or another instruction that changes the instruction pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "named like the instructions")]
pub enum Control {
    Jmpi,
    Brd,
    Brc,
    If,
    Else,
    Endif,
    While,
    Break,
    Cont,
    Halt,
    Call,
    Calla,
    Ret,
    Goto,
    Join,
}

/// How the interpreter executes an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Execute {
    /// The same operation in each enabled lane.
    Lane(LaneOp),
    /// A branch.
    Control(Control),
    /// A message.
    Send,
    /// sync: only the barrier has an effect.
    Sync,
    /// A matrix product.
    Dpas,
    /// Indexed move.
    Movi,
    /// No effect.
    Nop,
    /// Raises the illegal-opcode exception.
    Illegal,
    /// Legal, but no compiler emits it for this hardware: reported as unsupported (ISA-164, ISA-190).
    Unsupported,
}

/// Destination types and source types that occur together.
pub type Types = (&'static [Type], &'static [Type]);

/// An instruction.
#[derive(Debug)]
pub struct Row {
    /// Mnemonic.
    pub name: &'static str,
    /// Opcode, 7 bits.
    pub code: u8,
    /// Operands.
    pub format: Format,
    /// Types, 64-bit types left out (ISA-041).
    pub types: &'static [Types],
    /// Letters: `P` predicate, `C` condition modifier, `S` saturate, `M` source modifiers.
    pub modifiers: &'static str,
    /// Item of the document on the ISA.
    pub item: &'static str,
    /// Operation.
    pub execute: Execute,
    /// Description in a line.
    pub summary: &'static str,
}

const INT: &[Type] = &[Ub, B, Uw, W, Ud, D];
const NARROW: &[Type] = &[Ub, B, Uw, W];
const DWORD: &[Type] = &[Ud, D];
const WORD_DWORD: &[Type] = &[Uw, W, Ud, D];
const NUMERIC: &[Types] = &[(INT, INT), (&[F], &[F]), (&[Hf], &[Hf]), (&[Bf, F], &[Bf, F])];
const INTEGER: &[Types] = &[(INT, INT)];
const DWORDS: &[Types] = &[(DWORD, DWORD)];
const UNSIGNED: &[Types] = &[(&[Ud], &[Ud])];
const FLOAT: &[Types] = &[(&[F], &[F])];
const FLOATS: &[Types] = &[(&[F], &[F]), (&[Hf], &[Hf])];
const ROTATE: &[Types] = &[(&[Ud], &[Ud]), (&[Uw], &[Uw])];
const MOV: &[Types] =
    &[(INT, INT), (&[F, Hf], INT), (INT, &[F, Hf]), (&[F], &[F, Hf, Bf]), (&[Hf], &[Hf, F]), (&[Bf], &[F])];
const MUL: &[Types] = &[(NARROW, NARROW), (INT, INT), (&[F], &[F]), (&[Hf], &[Hf]), (&[Bf, F], &[Bf, F])];
const MAD: &[Types] =
    &[(&[F], &[F]), (&[Hf], &[Hf]), (&[Bf, F], &[Bf, F]), (&[Uw, W], &[Ub, B]), (WORD_DWORD, &[Uw, W])];
const CSEL: &[Types] = &[(&[F], &[F]), (&[Hf], &[Hf]), (WORD_DWORD, WORD_DWORD)];
const NONE: &[Types] = &[];

#[allow(clippy::too_many_arguments, reason = "the columns of the table")]
const fn row(
    code: u8,
    name: &'static str,
    format: Format,
    types: &'static [Types],
    modifiers: &'static str,
    item: &'static str,
    execute: Execute,
    summary: &'static str,
) -> Row {
    Row { name, code, format, types, modifiers, item, execute, summary }
}

use Execute::{Control as Ctl, Dpas, Illegal, Lane as L, Movi, Nop, Send, Sync, Unsupported};

/// All instructions, by opcode.
#[rustfmt::skip]
pub static TABLE: &[Row] = &[
    row(0x00, "illegal", Format::NoOperands, NONE, "", "ISA-025", Illegal, "raises the illegal-opcode exception"),
    row(0x01, "sync", Format::Sync, NONE, "", "ISA-102", Sync, "waits for tokens or for the barrier"),
    row(0x20, "jmpi", Format::Jmpi, NONE, "P", "ISA-175", Ctl(Control::Jmpi), "jumps; the thread and all its channels"),
    row(0x21, "brd", Format::Jip, NONE, "P", "ISA-177", Ctl(Control::Brd), "branch that diverges"),
    row(0x22, "if", Format::JipUip, NONE, "P", "ISA-173", Ctl(Control::If), "channels without the predicate wait at JIP"),
    row(0x23, "brc", Format::JipUip, NONE, "P", "ISA-177", Ctl(Control::Brc), "branch that converges"),
    row(0x24, "else", Format::JipUip, NONE, "", "ISA-173", Ctl(Control::Else), "channels of the block wait at the endif"),
    row(0x25, "endif", Format::Jip, NONE, "", "ISA-173", Ctl(Control::Endif), "enables the channels that wait here"),
    row(0x27, "while", Format::Jip, NONE, "P", "ISA-174", Ctl(Control::While), "channels with the predicate go to the loop's head"),
    row(0x28, "break", Format::JipUip, NONE, "P", "ISA-174", Ctl(Control::Break), "channels with the predicate leave the loop"),
    row(0x29, "cont", Format::JipUip, NONE, "P", "ISA-174", Ctl(Control::Cont), "channels with the predicate wait at the while"),
    row(0x2a, "halt", Format::JipUip, NONE, "P", "ISA-174", Ctl(Control::Halt), "channels with the predicate wait at UIP"),
    row(0x2b, "calla", Format::Call, NONE, "P", "ISA-176", Ctl(Control::Calla), "call of an address relative to the instruction base"),
    row(0x2c, "call", Format::Call, NONE, "P", "ISA-176", Ctl(Control::Call), "saves return address and mask, jumps"),
    row(0x2d, "ret", Format::Ret, NONE, "P", "ISA-176", Ctl(Control::Ret), "returns to the saved address with the saved mask"),
    row(0x2e, "goto", Format::JipUip, NONE, "P", "ISA-171", Ctl(Control::Goto), "channels with the predicate wait at UIP"),
    row(0x2f, "join", Format::Jip, NONE, "", "ISA-172", Ctl(Control::Join), "enables the channels that wait here"),
    row(0x31, "send", Format::Send, NONE, "P", "ISA-019", Send, "message to a shared function"),
    row(0x32, "sendc", Format::Send, NONE, "P", "ISA-204", Send, "send after the check of thread dependencies"),
    row(0x38, "math", Format::Math, FLOATS, "PSM", "ISA-150", L(LaneOp::Math), "function: inv, log, exp, sqt, rsqt, sin, cos"),
    row(0x40, "add", Format::Binary, NUMERIC, "PCSM", "ISA-111", L(LaneOp::Add), "src0 + src1"),
    row(0x41, "mul", Format::Binary, MUL, "PCSM", "ISA-111", L(LaneOp::Mul), "src0 * src1"),
    row(0x42, "avg", Format::Binary, INTEGER, "PCSM", "ISA-111", L(LaneOp::Avg), "(src0 + src1 + 1) >> 1, exactly"),
    row(0x43, "frc", Format::Unary, FLOAT, "PCM", "ISA-124", L(LaneOp::Frc), "src0 - floor(src0)"),
    row(0x44, "rndu", Format::Unary, FLOAT, "PCM", "ISA-124", L(LaneOp::Rndu), "round up"),
    row(0x45, "rndd", Format::Unary, FLOAT, "PCM", "ISA-124", L(LaneOp::Rndd), "round down"),
    row(0x46, "rnde", Format::Unary, FLOAT, "PCM", "ISA-124", L(LaneOp::Rnde), "round to nearest even"),
    row(0x47, "rndz", Format::Unary, FLOAT, "PCM", "ISA-124", L(LaneOp::Rndz), "round toward zero"),
    row(0x48, "mac", Format::Binary, MUL, "PCSM", "ISA-121", L(LaneOp::Mac), "accumulator + src0 * src1"),
    row(0x49, "mach", Format::Binary, DWORDS, "PM", "ISA-120", L(LaneOp::Mach), "low 32 bits of src0 * src1; with AccWrEn the high 32 bits"),
    row(0x4a, "lzd", Format::Unary, &[(&[Ud], INT)], "PCM", "ISA-117", L(LaneOp::Lzd), "number of leading zeros"),
    row(0x4b, "fbh", Format::Unary, &[(&[Ud], DWORD)], "P", "ISA-117", L(LaneOp::Fbh), "first bit from the high end that differs from the sign"),
    row(0x4c, "fbl", Format::Unary, UNSIGNED, "P", "ISA-117", L(LaneOp::Fbl), "number of trailing zeros, 0xffffffff for zero"),
    row(0x4d, "cbit", Format::Unary, &[(&[Ud], &[Ub, Uw, Ud])], "P", "ISA-117", L(LaneOp::Cbit), "number of ones"),
    row(0x4e, "addc", Format::Binary, UNSIGNED, "PC", "ISA-122", L(LaneOp::Addc), "src0 + src1; carry to the accumulator"),
    row(0x4f, "subb", Format::Binary, UNSIGNED, "PC", "ISA-122", L(LaneOp::Subb), "src0 - src1; borrow to the accumulator"),
    row(0x52, "add3", Format::Ternary, &[(WORD_DWORD, WORD_DWORD)], "PCSM", "ISA-118", L(LaneOp::Add3), "src0 + src1 + src2"),
    row(0x58, "dp4a", Format::Ternary, DWORDS, "PCS", "ISA-119", L(LaneOp::Dp4a), "src0 + dot product of four bytes"),
    row(0x59, "dpas", Format::Dpas, NONE, "", "ISA-185", Dpas, "src0 + src1 * src2, matrices"),
    row(0x5a, "dpasw", Format::Dpas, NONE, "", "ISA-190", Dpas, "dpas with half of src2 from the fused thread"),
    row(0x5b, "mad", Format::Ternary, MAD, "PCSM", "ISA-112", L(LaneOp::Mad), "src0 + src1 * src2; floats fused"),
    row(0x5d, "madm", Format::Ternary, FLOAT, "PM", "ISA-164", Unsupported, "mad with extended mantissas"),
    row(0x60, "nop", Format::NoOperands, NONE, "", "ISA-025", Nop, "no effect"),
    row(0x61, "mov", Format::Unary, MOV, "PCSM", "ISA-045", L(LaneOp::Mov), "copies and converts"),
    row(0x62, "sel", Format::Binary, NUMERIC, "PCSM", "ISA-066", L(LaneOp::Sel), "chooses by predicate; minimum or maximum with a condition"),
    row(0x63, "movi", Format::Binary, DWORDS, "P", "ISA-123", Movi, "indexed move"),
    row(0x64, "not", Format::Unary, INTEGER, "PCM", "ISA-114", L(LaneOp::Not), "bitwise NOT"),
    row(0x65, "and", Format::Binary, INTEGER, "PCM", "ISA-114", L(LaneOp::And), "bitwise AND"),
    row(0x66, "or", Format::Binary, INTEGER, "PCM", "ISA-114", L(LaneOp::Or), "bitwise OR"),
    row(0x67, "xor", Format::Binary, INTEGER, "PCM", "ISA-114", L(LaneOp::Xor), "bitwise exclusive OR"),
    row(0x68, "shr", Format::Binary, INTEGER, "PCSM", "ISA-113", L(LaneOp::Shr), "logical shift right"),
    row(0x69, "shl", Format::Binary, INTEGER, "PCSM", "ISA-113", L(LaneOp::Shl), "shift left"),
    row(0x6b, "bfn", Format::Bfn, ROTATE, "P", "ISA-017", L(LaneOp::Bfn), "bitwise function by truth table"),
    row(0x6c, "asr", Format::Binary, INTEGER, "PCSM", "ISA-113", L(LaneOp::Asr), "arithmetic shift right"),
    row(0x6e, "ror", Format::Binary, ROTATE, "PC", "ISA-113", L(LaneOp::Ror), "rotates right"),
    row(0x6f, "rol", Format::Binary, ROTATE, "PC", "ISA-113", L(LaneOp::Rol), "rotates left"),
    row(0x70, "cmp", Format::Binary, NUMERIC, "PCM", "ISA-065", L(LaneOp::Cmp), "compares; ones or zeros, and the flag"),
    row(0x71, "cmpn", Format::Binary, NUMERIC, "PCM", "ISA-065", L(LaneOp::Cmpn), "compares; true if src1 is NaN"),
    row(0x72, "csel", Format::Ternary, CSEL, "CSM", "ISA-067", L(LaneOp::Csel), "src0 if the condition holds for src2, else src1"),
    row(0x77, "bfrev", Format::Unary, UNSIGNED, "P", "ISA-117", L(LaneOp::Bfrev), "reverses the bits"),
    row(0x78, "bfe", Format::Ternary, DWORDS, "P", "ISA-115", L(LaneOp::Bfe), "extracts src0 bits at src1 from src2"),
    row(0x79, "bfi1", Format::Binary, DWORDS, "P", "ISA-116", L(LaneOp::Bfi1), "mask of src0 bits at src1"),
    row(0x7a, "bfi2", Format::Ternary, DWORDS, "P", "ISA-116", L(LaneOp::Bfi2), "inserts src1 into src2 under the mask src0"),
];

/// Returns the instruction with this opcode.
pub fn by_code(code: u8) -> Option<&'static Row> {
    TABLE.binary_search_by_key(&code, |row| row.code).ok().map(|index| &TABLE[index])
}

/// Returns the instruction with this mnemonic.
pub fn by_name(name: &str) -> Option<&'static Row> {
    TABLE.iter().find(|row| row.name == name)
}

impl Row {
    /// Number of source operands in the text, as far as the format determines it.
    pub fn sources(&self) -> usize {
        match self.format {
            Format::NoOperands | Format::Jip | Format::JipUip | Format::Jmpi | Format::Call => 0,
            Format::Sync | Format::Unary | Format::Math | Format::Ret => 1,
            Format::Binary | Format::Send => 2,
            Format::Ternary | Format::Bfn | Format::Dpas => 3,
        }
    }

    /// True if the text has a destination.
    pub fn has_destination(&self) -> bool {
        !matches!(
            self.format,
            Format::NoOperands | Format::Sync | Format::Jip | Format::JipUip | Format::Jmpi | Format::Ret
        )
    }

    /// True for branches.
    pub fn is_branch(&self) -> bool {
        matches!(self.execute, Execute::Control(_))
    }

    /// True for logic operations, in which a negated source is the bitwise NOT. ISA-058.
    pub fn is_logic(&self) -> bool {
        matches!(self.execute, Execute::Lane(LaneOp::Not | LaneOp::And | LaneOp::Or | LaneOp::Xor | LaneOp::Bfn))
    }

    /// True for branches with a form `.b`. ISA-171.
    pub fn has_branch_control(&self) -> bool {
        matches!(self.execute, Execute::Control(Control::If | Control::Else | Control::Goto))
    }

    /// True if bits 95:92 are a condition modifier.
    pub fn has_condition(&self) -> bool {
        matches!(self.format, Format::Unary | Format::Binary | Format::Ternary)
    }
}

/// Names of the functions of math. ISA-150.
pub const MATH: [&str; 16] = [
    "?", "inv", "log", "exp", "sqt", "rsqt", "sin", "cos", "?", "fdiv", "pow", "idiv", "iqot", "irem", "invm", "rsqtm",
];
/// Names of the functions of sync. ISA-024.
pub const SYNC: [&str; 16] =
    ["nop", "?", "allrd", "allwr", "?", "?", "?", "?", "?", "?", "?", "?", "?", "fence", "bar", "host"];
/// Names of the shared functions. ISA-201.
pub const SFID: [&str; 16] =
    ["null", "?", "smpl", "gtwy", "dc2", "rc", "urb", "btd", "rta", "dcro", "dc0", "pixi", "dc1", "tgm", "slm", "ugm"];
/// Names of the condition modifiers. ISA-064.
pub const CONDITION: [&str; 16] =
    ["", "eq", "ne", "gt", "ge", "lt", "le", "?", "ov", "un", "?", "?", "?", "?", "?", "eo"];
/// Names of the predicate controls, without those of a single channel. ISA-063.
pub const PREDICATE: [&str; 16] = [
    "", "", "anyv", "allv", "any2h", "all2h", "any4h", "all4h", "any8h", "all8h", "any16h", "all16h", "any32h",
    "all32h", "?", "?",
];

/// Expressions of the 256 functions of bfn, as iga64 prints them.
pub fn bfn_name(function: u8) -> &'static str {
    include_str!("bfn.txt").lines().nth(usize::from(function)).unwrap_or("?")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn rows_are_in_the_order_of_their_codes_and_found_by_code_and_name() {
        assert!(TABLE.is_sorted_by(|left, right| left.code < right.code));
        for row in TABLE {
            assert!(std::ptr::eq(by_code(row.code).unwrap(), row));
            assert!(std::ptr::eq(by_name(row.name).unwrap(), row));
            assert!(row.item.starts_with("ISA-") && row.code < 128);
        }
        assert_eq!((0..=255).filter_map(by_code).count(), TABLE.len());
    }

    /// ISA-017: the index of the truth table is src0 | src1 << 1 | src2 << 2.
    #[test]
    fn each_bfn_expression_has_the_truth_table_of_its_number() {
        let names: HashSet<&str> = (0..=255).map(bfn_name).collect();
        assert_eq!(names.len(), 256);
        for function in 0..=255u8 {
            let expected = (0..8).fold(0u8, |table, index| {
                let sources = [index & 1 != 0, index & 2 != 0, index & 4 != 0];
                table | u8::from(evaluate(bfn_name(function), sources)) << index
            });
            assert_eq!(expected, function, "{}", bfn_name(function));
        }
    }

    /// Value of an expression with `~`, then `&`, then `^`, then `|`, the operators in the order of their binding.
    fn evaluate(text: &str, sources: [bool; 3]) -> bool {
        fn level(text: &mut &str, sources: [bool; 3], depth: usize) -> bool {
            let Some(operator) = ['|', '^', '&'].get(depth) else {
                if let Some(rest) = text.strip_prefix('~') {
                    *text = rest;
                    return !level(text, sources, depth);
                }
                if let Some(rest) = text.strip_prefix('(') {
                    *text = rest;
                    let value = level(text, sources, 0);
                    *text = &text[1..];
                    return value;
                }
                let index = usize::from(text.as_bytes()[1] - b'0');
                *text = &text[2..];
                return sources[index];
            };
            let mut value = level(text, sources, depth + 1);
            while let Some(rest) = text.strip_prefix(*operator) {
                *text = rest;
                let right = level(text, sources, depth + 1);
                value = match operator {
                    '|' => value | right,
                    '^' => value ^ right,
                    _ => value & right,
                };
            }
            value
        }
        match text {
            "zeros" => false,
            "ones" => true,
            _ => level(&mut &*text, sources, 0),
        }
    }
}
