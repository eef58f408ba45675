// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Operands: registers, immediates, bits, addresses and targets.

use crate::isa::{Instruction, Op, Slot, register};
use crate::names::{ControlSet, Space, names, register_number};

use super::super::assemble::{Assembler, Spans, Use};
use super::super::diagnostic::Diagnostic;
use super::super::lexer::Token;
use super::super::limits::{MAX_BIT, no_bit};
use super::{LabelUse, Parsed, Parser, Span};

/// The target of a branch or call.
pub(super) enum Destination<'s> {
    Label(&'s str, Span),
    /// Words from the instruction for a branch; in a call, as Mesa prints it, the absolute word.
    Number(i32, Span),
    Absolute(u32, Span),
}

impl<'s> Parser<'s> {
    pub(super) fn register_or_immediate(
        &mut self,
        out: &Assembler<'s>,
        instruction: &mut Instruction,
        spans: &mut Spans,
        reg: Op,
        imm: Op,
    ) -> Parsed<()> {
        if matches!(self.peek_token(), Some(Token::Register(_))) {
            instruction.op = reg;
            instruction.src2 = self.register(spans, Slot::Src2)?;
        } else {
            instruction.op = imm;
            let (value, span) = self.immediate(out)?;
            (instruction.imm, spans.slots[Slot::Imm as usize]) = (value, span);
        }
        Ok(())
    }

    pub(super) fn register(&mut self, spans: &mut Spans, slot: Slot) -> Parsed<u8> {
        let (token, span) = self.expect_token("a register")?;
        let Token::Register(name) = token else {
            return Err(Diagnostic::syntax(span, "this is no register", "a register such as $02 expected"));
        };
        spans.slots[slot as usize] = span.clone();
        let number = match name {
            "sp" => register::SP,
            "lr" => register::LR,
            "rem" => register::REM,
            "memdata" | "addr" => register::MEMDATA_ADDR,
            "regdata" | "usraddr" => register::REGDATA_USRADDR,
            "data" => register::DATA,
            _ => match u8::from_str_radix(name, 16) {
                Ok(number) if number < 32 && name.len() == 2 => number,
                _ => {
                    return Err(Diagnostic::new(span, format!("there is no register ${name}"), "unknown register").help(
                        "registers are $00 to $1f (hexadecimal), $sp $lr $rem $memdata $regdata $addr $usraddr $data",
                    ));
                }
            },
        };
        Ok(number)
    }

    pub(super) fn bit(&mut self, spans: &mut Spans, slot: Slot) -> Parsed<u8> {
        match self.expect_token("a bit number")? {
            (Token::Bit(number), span) => {
                spans.slots[slot as usize] = span.clone();
                u8::try_from(number).ok().filter(|bit| *bit <= MAX_BIT).ok_or_else(|| no_bit(span, number))
            }
            (_, span) => Err(Diagnostic::syntax(span, "this is no bit number", "a bit number such as b5 expected")),
        }
    }

    pub(super) fn number(&mut self, what: &str) -> Parsed<(u32, Span)> {
        match self.expect_token(what)? {
            (Token::Number(number), span) => Ok((number, span)),
            (_, span) => Err(Diagnostic::syntax(span, format!("{what} is missing"), "a number expected")),
        }
    }

    pub(super) fn label(&mut self, what: &str) -> Parsed<(&'s str, Span)> {
        match self.expect_token(what)? {
            (Token::Label(name), span) => Ok((name, span)),
            (_, span) => Err(Diagnostic::syntax(span, format!("{what} is missing"), "a label such as #l5 expected")),
        }
    }

    pub(super) fn destination(&mut self) -> Parsed<Destination<'s>> {
        match self.expect_token("the target")? {
            (Token::Label(name), span) => Ok(Destination::Label(name, span)),
            (Token::Relative(number), span) => Ok(Destination::Number(number, span)),
            (Token::Absolute(word), span) => Ok(Destination::Absolute(word, span)),
            (_, span) => Err(Diagnostic::syntax(span, "this is no target", "a label such as #l5 expected")),
        }
    }

    /// `[base + offset]`, with `!` for pre-increment.
    pub(super) fn address(
        &mut self,
        out: &Assembler<'s>,
        instruction: &mut Instruction,
        spans: &mut Spans,
    ) -> Parsed<()> {
        self.expect(Token::Open, "[")?;
        instruction.src1 = self.register(spans, Slot::Src1)?;
        self.expect(Token::Plus, "+")?;
        let (value, span) = self.immediate(out)?;
        (instruction.imm, spans.slots[Slot::Imm as usize]) = (value, span);
        self.expect(Token::Close, "]")?;
        if self.peek_token() == Some(Token::Bang) {
            if let Some((_, span)) = self.take() {
                spans.slots[Slot::Preincrement as usize] = span;
            }
            instruction.preincrement = true;
        }
        Ok(())
    }

    /// A number, a constant, or the name of a register; then any number of `+ value`.
    pub(super) fn immediate(&mut self, out: &Assembler<'s>) -> Parsed<(u32, Span)> {
        let (token, mut span) = self.expect_token("an immediate")?;
        let named = |space, name: &str, kind: &str, span: &Span| {
            register_number(space, out.set(span)?, name).ok_or_else(|| {
                let title = format!("there is no {kind} register `{name}`");
                let error = Diagnostic::new(span.clone(), title, "not a name of this chip");
                let names = out.set(span).map(|set| names(space, set)).unwrap_or_default();
                error.help_by_name(sigil(space), name, names.iter().map(|row| row.name))
            })
        };
        let mut value = match token {
            Token::Number(value) => value,
            Token::Control(name) => named(Space::Control, name, "control", &span)?,
            Token::Sqe(name) => named(Space::Sqe, name, "SQE", &span)?,
            Token::Pipe(name) => named(Space::Pipe, name, "pipe", &span)?,
            Token::Identifier(name) => {
                let value = match out.constants.get(name) {
                    Some(value) => *value,
                    None => gpu_register(out.set(&span)?, name).ok_or_else(|| {
                        let title = format!("there is no constant or GPU register `{name}`");
                        let gpu = out.set(&span).map(|set| names(Space::Gpu, set)).unwrap_or_default();
                        let known = gpu.iter().map(|row| row.name).chain(out.constants.keys().copied());
                        Diagnostic::new(span.clone(), title, "unknown name").help_by_name("", name, known)
                    })?,
                };
                value.wrapping_add(self.index()?)
            }
            _ => {
                return Err(Diagnostic::syntax(
                    span,
                    "this is no immediate",
                    "a number or the name of a register expected",
                ));
            }
        };
        while self.peek_token() == Some(Token::Plus) {
            self.take();
            let (more, end) = self.number("a number after `+`")?;
            value = value
                .checked_add(more)
                .ok_or_else(|| Diagnostic::new(end.clone(), "the sum does not fit into 32 bits", "too large"))?;
            span.end = end.end;
        }
        Ok((value, span))
    }

    /// `[n]` after the name of an array; as in a literal, the digits are hexadecimal.
    pub(super) fn index(&mut self) -> Parsed<u32> {
        match self.peek_token() {
            Some(Token::Literal(index)) => {
                self.take();
                Ok(index)
            }
            Some(Token::Open) => {
                self.take();
                let (index, _) = self.number("the index")?;
                self.expect(Token::Close, "]")?;
                Ok(index)
            }
            _ => Ok(0),
        }
    }
}

/// What precedes a register's name in a space.
const fn sigil(space: Space) -> &'static str {
    match space {
        Space::Control => "@",
        Space::Sqe => "%",
        Space::Pipe => "|",
        Space::Gpu => "",
    }
}

/// The number of a GPU register. An array's name may end in `_REG`, as the README of Mesa writes it (AF-110).
pub(super) fn gpu_register(set: ControlSet, name: &str) -> Option<u32> {
    register_number(Space::Gpu, set, name).or_else(|| register_number(Space::Gpu, set, name.strip_suffix("_REG")?))
}

/// The cure for a branch that is too long.
pub(in crate::text) const FAR_BRANCH: &str = "branch to a `jump` between here and there";

/// Puts a branch's target into the instruction, or returns the label.
pub(super) fn relative<'s>(
    out: &Assembler<'s>,
    instruction: &mut Instruction,
    destination: Destination<'s>,
) -> Parsed<Option<LabelUse<'s>>> {
    let (offset, span) = match destination {
        Destination::Label(name, span) => return Ok(Some((name, span, Use::Relative))),
        Destination::Number(offset, span) => (i64::from(offset), span),
        Destination::Absolute(word, span) => (i64::from(word) - i64::from(out.here()), span),
    };
    match i16::try_from(offset) {
        Ok(offset) => {
            instruction.imm = u32::from(offset.cast_unsigned());
            Ok(None)
        }
        Err(_) => {
            let reason = format!("{offset} words; a branch reaches -32768 to 32767");
            Err(Diagnostic::new(span, "the target is out of reach", reason).help(FAR_BRANCH))
        }
    }
}
