// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Instructions: the operands of each form.

use crate::isa::{Instruction, Op, Slot};

use super::super::assemble::{Assembler, Spans, Use};
use super::super::diagnostic::Diagnostic;
use super::super::lexer::Token;
use super::super::limits::{
    CALL_TARGET_BITS, MAX_BIT, MAX_BRANCH_IMMEDIATE, SETSECURE_REGISTER, SETSECURE_TITLE, SETSECURE_WORDS,
    branch_immediate_too_large, shift_too_large,
};
use super::mnemonic::Form;
use super::operands::{Destination, relative};
use super::{LabelUse, Parsed, Parser};

impl<'s> Parser<'s> {
    /// Reads the operands of a form.
    pub(super) fn operands(
        &mut self,
        out: &Assembler<'s>,
        form: Form,
        base: Instruction,
        spans: &mut Spans,
    ) -> Parsed<(Instruction, Option<LabelUse<'s>>)> {
        let mut instruction = base;
        let mut target = None;
        match form {
            Form::Plain(op) => instruction.op = op,
            Form::Two(reg, imm) => {
                instruction.dst = self.register(spans, Slot::Dst)?;
                self.comma()?;
                instruction.src1 = self.register(spans, Slot::Src1)?;
                self.comma()?;
                self.register_or_immediate(out, &mut instruction, spans, reg, imm)?;
            }
            Form::Not => {
                instruction.dst = self.register(spans, Slot::Dst)?;
                self.comma()?;
                self.register_or_immediate(out, &mut instruction, spans, Op::Not, Op::NotImm)?;
            }
            Form::Msb => {
                instruction.op = Op::Msb;
                instruction.dst = self.register(spans, Slot::Dst)?;
                self.comma()?;
                instruction.src2 = self.register(spans, Slot::Src2)?;
            }
            Form::Mov => {
                instruction.dst = self.register(spans, Slot::Dst)?;
                self.comma()?;
                if let Some(Token::Label(_)) = self.peek_token() {
                    let (name, span) = self.label("a label")?;
                    target = Some((name, span, Use::Immediate));
                    instruction.op = Op::MovImm;
                } else {
                    self.register_or_immediate(out, &mut instruction, spans, Op::Or, Op::MovImm)?;
                }
                if instruction.op == Op::MovImm && self.peek_token() == Some(Token::Shift) {
                    self.take();
                    let (shift, span) = self.number("the shift")?;
                    spans.slots[Slot::Src1 as usize] = span.clone();
                    instruction.src1 = match u8::try_from(shift) {
                        Ok(shift) if shift <= MAX_BIT => shift,
                        _ => return Err(shift_too_large(span, shift)),
                    };
                }
            }
            Form::Setbit | Form::Clrbit => {
                instruction.dst = self.register(spans, Slot::Dst)?;
                self.comma()?;
                instruction.src1 = self.register(spans, Slot::Src1)?;
                self.comma()?;
                if matches!(form, Form::Setbit) && matches!(self.peek_token(), Some(Token::Register(_))) {
                    instruction.op = Op::Setbit;
                    instruction.src2 = self.register(spans, Slot::Src2)?;
                } else {
                    instruction.op = if matches!(form, Form::Setbit) { Op::SetbitImm } else { Op::Clrbit };
                    instruction.src2 = self.bit(spans, Slot::Src2)?;
                }
            }
            Form::Bits(op) => {
                instruction.op = op;
                instruction.dst = self.register(spans, Slot::Dst)?;
                self.comma()?;
                instruction.src1 = self.register(spans, Slot::Src1)?;
                self.comma()?;
                instruction.imm = self.bit(spans, Slot::Imm)?.into();
                self.comma()?;
                instruction.src2 = self.bit(spans, Slot::Src2)?;
            }
            Form::Read(op) | Form::Write(op) => {
                instruction.op = op;
                if matches!(form, Form::Read(_)) {
                    instruction.dst = self.register(spans, Slot::Dst)?;
                } else {
                    instruction.src2 = self.register(spans, Slot::Src2)?;
                }
                self.comma()?;
                self.address(out, &mut instruction, spans)?;
            }
            Form::Branch(imm, bit) => {
                instruction.src1 = self.register(spans, Slot::Src1)?;
                self.comma()?;
                if matches!(self.peek_token(), Some(Token::Bit(_))) {
                    instruction.op = bit;
                    instruction.src2 = self.bit(spans, Slot::Src2)?;
                } else {
                    instruction.op = imm;
                    let (value, span) = self.immediate(out)?;
                    spans.slots[Slot::Src2 as usize] = span.clone();
                    instruction.src2 = match u8::try_from(value) {
                        Ok(value) if value <= MAX_BRANCH_IMMEDIATE => value,
                        _ => return Err(branch_immediate_too_large(span, value)),
                    };
                }
                self.comma()?;
                let destination = self.destination()?;
                target = relative(out, &mut instruction, destination)?;
            }
            Form::Jump => {
                if matches!(self.peek_token(), Some(Token::Register(_))) {
                    instruction.op = Op::JumpReg;
                    instruction.src1 = self.register(spans, Slot::Src1)?;
                } else {
                    // A jump is a brne of bit 0 of $00, which is always 0 (Instruction::is_jump).
                    instruction.op = Op::BrneBit;
                    let destination = self.destination()?;
                    target = relative(out, &mut instruction, destination)?;
                }
            }
            Form::Absolute(op) => {
                instruction.op = op;
                match self.destination()? {
                    Destination::Label(name, span) => target = Some((name, span, Use::Absolute)),
                    Destination::Number(number, span) => {
                        // Mesa prints the 26-bit target sign-extended, so negative numbers are accepted.
                        if !(-(1 << (CALL_TARGET_BITS - 1))..1 << CALL_TARGET_BITS).contains(&number) {
                            let reason = format!("{CALL_TARGET_BITS} bits are possible");
                            return Err(Diagnostic::new(span, "the target is out of reach", reason));
                        }
                        instruction.imm = number.cast_unsigned() & ((1 << CALL_TARGET_BITS) - 1);
                    }
                    Destination::Absolute(word, span) => {
                        (instruction.imm, spans.slots[Slot::Imm as usize]) = (word, span);
                    }
                }
            }
            Form::Setsecure => {
                instruction.op = Op::Setsecure;
                let number = self.register(spans, Slot::Src1)?;
                if number != SETSECURE_REGISTER {
                    let span = spans.slots[Slot::Src1 as usize].clone();
                    let reason = "the register is not encoded";
                    return Err(Diagnostic::new(
                        span,
                        format!("`setsecure` is for ${SETSECURE_REGISTER:02x} only"),
                        reason,
                    )
                    .help(format!("write `${SETSECURE_REGISTER:02x}`")));
                }
                self.comma()?;
                match self.destination()? {
                    Destination::Label(name, span) => target = Some((name, span, Use::SetSecure)),
                    Destination::Number(SETSECURE_WORDS, _) => {}
                    Destination::Number(_, span) | Destination::Absolute(_, span) => {
                        let reason = "another target cannot be encoded";
                        let help = format!("write `#+{SETSECURE_WORDS}`");
                        return Err(Diagnostic::new(span, SETSECURE_TITLE, reason).help(help));
                    }
                }
            }
        }
        // A third operand of the old syntax (AF-056).
        if let (Form::Read(_) | Form::Write(_), Some(Token::Comma)) = (form, self.peek_token()) {
            self.take();
            let (_, span) = self.expect_token("an operand")?;
            let help = "for 0x4 write `!` after the bracket; leave 0x0 and 0x8 away";
            return Err(Diagnostic::new(span, "the flags operand is old syntax", "not an operand").help(help));
        }
        Ok((instruction, target))
    }
}
