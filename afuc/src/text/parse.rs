// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The parser: recursive descent over the tokens, one statement after the other. After an error it goes on at the next
//! line.

mod mnemonic;
mod operands;

use std::ops::Range;

use logos::{Logos, SpannedIter};

use crate::isa::{ENCODINGS, Generation, Instruction, Op, Slot};

use super::assemble::{Assembler, Spans, Use};
use super::diagnostic::Diagnostic;
use super::lexer::Token;

use mnemonic::{Form, form};
pub(super) use operands::FAR_BRANCH;
use operands::{Destination, relative};

type Span = Range<usize>;
type Parsed<T> = Result<T, Diagnostic>;
/// A label in an operand, and how the instruction uses it.
type LabelUse<'s> = (&'s str, Span, Use);

pub(super) struct Parser<'s> {
    source: &'s str,
    tokens: SpannedIter<'s, Token<'s>>,
    next: Option<(Result<Token<'s>, ()>, Span)>,
    /// `.if` directives that are open: true if their statements count.
    conditions: Vec<bool>,
}

impl<'s> Parser<'s> {
    pub fn new(source: &'s str) -> Self {
        Self { source, tokens: Token::lexer(source).spanned(), next: None, conditions: Vec::new() }
    }

    /// Reads all statements.
    pub fn parse(&mut self, out: &mut Assembler<'s>) {
        loop {
            let (token, span) = match self.peek() {
                None => break,
                Some((token, span)) => (token, span),
            };
            if token == Ok(Token::Newline) {
                self.take();
                continue;
            }
            let result =
                if self.is_skipped() { self.skipped(out, token) } else { self.statement(out, token, span.clone()) };
            if let Err(error) = result {
                out.errors.push(error);
                self.skip_line();
            }
            if out.is_full() {
                return;
            }
        }
        if !self.conditions.is_empty() {
            let end = self.source.len();
            let error = Diagnostic::new(end.saturating_sub(1)..end, "an `.if` has no `.endif`", "the source ends here");
            out.errors.push(error);
        }
    }

    fn is_skipped(&self) -> bool {
        self.conditions.iter().any(|active| !active)
    }

    /// Reads a line in a part that does not count.
    fn skipped(&mut self, out: &mut Assembler<'s>, token: Result<Token<'s>, ()>) -> Parsed<()> {
        match token {
            Ok(Token::Directive("if")) => self.conditions.push(false),
            Ok(Token::Directive("else" | "endif")) => return self.statement(out, token, 0..0),
            _ => {}
        }
        self.skip_line();
        Ok(())
    }

    fn peek(&mut self) -> Option<(Result<Token<'s>, ()>, Span)> {
        if self.next.is_none() {
            self.next = self.tokens.next();
        }
        self.next.clone()
    }

    fn peek_token(&mut self) -> Option<Token<'s>> {
        self.peek().and_then(|(token, _)| token.ok())
    }

    fn take(&mut self) -> Option<(Result<Token<'s>, ()>, Span)> {
        self.peek();
        self.next.take()
    }

    fn skip_line(&mut self) {
        while self.peek().is_some_and(|(token, _)| token != Ok(Token::Newline)) {
            self.take();
        }
    }

    /// Takes a token, which must be there and be a token.
    fn expect_token(&mut self, what: &str) -> Parsed<(Token<'s>, Span)> {
        match self.take() {
            Some((Ok(Token::Newline), span)) => {
                self.next = Some((Ok(Token::Newline), span.clone()));
                Err(Diagnostic::new(span.start..span.start, format!("{what} is missing"), "the line ends here"))
            }
            Some((Ok(token), span)) => Ok((token, span)),
            Some((Err(()), span)) => Err(self.no_token(span)),
            None => {
                let end = self.source.len();
                Err(Diagnostic::new(end.saturating_sub(1)..end, format!("{what} is missing"), "the source ends here"))
            }
        }
    }

    /// Explains text that is no token.
    fn no_token(&self, span: Span) -> Diagnostic {
        let text = self.source.get(span.clone()).unwrap_or_default();
        if text.starts_with(|c: char| c.is_ascii_digit() || c == '[' || c == '#') {
            return Diagnostic::new(span, "the number does not fit into 32 bits", "not a 32-bit number");
        }
        Diagnostic::new(span, format!("`{}` has no meaning here", text.escape_debug()), "unknown token")
    }

    fn expect(&mut self, token: Token<'s>, text: &str) -> Parsed<Span> {
        match self.peek() {
            Some((Ok(found), span)) if found == token => {
                self.take();
                Ok(span)
            }
            Some((Ok(Token::Newline), span)) => {
                Err(Diagnostic::new(span.start..span.start, format!("`{text}` is missing"), "the line ends here"))
            }
            Some((_, span)) => Err(Diagnostic::new(span, format!("`{text}` is missing"), format!("`{text}` expected"))),
            None => self.expect_token(&format!("`{text}`")).map(|(_, span)| span),
        }
    }

    fn comma(&mut self) -> Parsed<()> {
        self.expect(Token::Comma, ",").map(|_| ())
    }

    fn statement(&mut self, out: &mut Assembler<'s>, token: Result<Token<'s>, ()>, span: Span) -> Parsed<()> {
        match token {
            Ok(Token::Literal(word)) => {
                self.take();
                out.emit_literal(word, &span)
            }
            Ok(Token::Open) => {
                self.take();
                let (name, label) = self.label("a label")?;
                self.expect(Token::Close, "]")?;
                out.emit_label_word(name, label, Use::Literal)
            }
            Ok(Token::Directive(name)) => {
                self.take();
                self.directive(out, name, span)
            }
            Ok(Token::Bit(_)) => {
                // A label such as `b10:`.
                self.take();
                self.expect(Token::Colon, ":")?;
                out.declare_label(&self.source[span.clone()], span)
            }
            Ok(Token::Identifier(name)) => {
                self.take();
                if self.peek_token() == Some(Token::Colon) {
                    self.take();
                    return out.declare_label(name, span);
                }
                self.instruction(out, name, span, Instruction::new(Op::Nop), [0..0, 0..0, 0..0])
            }
            Ok(Token::Rep | Token::Peek | Token::Xmov(_) | Token::Sds(_)) => self.modified_instruction(out),
            Ok(_) => {
                self.take();
                Err(Diagnostic::new(
                    span,
                    "no statement begins like this",
                    "a label, directive or instruction expected",
                ))
            }
            Err(()) => {
                self.take();
                Err(self.no_token(span))
            }
        }
    }

    fn modified_instruction(&mut self, out: &mut Assembler<'s>) -> Parsed<()> {
        let mut base = Instruction::new(Op::Nop);
        let mut spans = [0..0, 0..0, 0..0];
        let mut last = 0;
        loop {
            let (token, span) = self.expect_token("an instruction")?;
            let order = match token {
                Token::Rep => {
                    (base.rep, spans[0]) = (true, span.clone());
                    1
                }
                Token::Xmov(n) | Token::Sds(n) => {
                    if n == 0 || n > 3 {
                        return Err(Diagnostic::new(
                            span,
                            format!("there is no modifier for {n}"),
                            "1 to 3 is possible",
                        ));
                    }
                    base.extra = u8::try_from(n).unwrap_or_default();
                    // The kind is checked when the mnemonic is known.
                    (base.preincrement, spans[1]) = (matches!(token, Token::Sds(_)), span.clone());
                    2
                }
                Token::Peek => {
                    (base.peek, spans[2]) = (true, span.clone());
                    3
                }
                Token::Identifier(name) => return self.instruction(out, name, span, base, spans),
                _ => return Err(Diagnostic::new(span, "an instruction is missing", "instruction expected")),
            };
            if order <= last {
                let reason = "the order is (rep), then (xmovN) or (sdsN), then (peek)";
                let help = "put each at its place, once";
                return Err(Diagnostic::new(span, "the modifiers are out of order", reason).help(help));
            }
            last = order;
        }
    }

    fn directive(&mut self, out: &mut Assembler<'s>, name: &'s str, span: Span) -> Parsed<()> {
        match name {
            "align" => {
                let (bytes, span) = self.number("the alignment in bytes")?;
                out.align(bytes, span)
            }
            "jumptbl" => out.packet_table(&span),
            "section" => match self.expect_token("the section's name")? {
                (Token::Identifier(name), span) => out.next_section(name, span),
                (_, span) => Err(Diagnostic::new(span, "this is no name of a section", "a name expected")),
            },
            "gen" => {
                let (number, span) = self.number("the generation")?;
                out.declare_generation(number, span)
            }
            "nozero" => {
                out.no_leading_zero();
                Ok(())
            }
            "word" => loop {
                let (word, span) = self.immediate(out)?;
                out.emit_word(word, &span)?;
                if self.peek_token() != Some(Token::Comma) {
                    break Ok(());
                }
                self.take();
            },
            "table" => loop {
                let (name, span) = match self.expect_token("a label")? {
                    (Token::Identifier(name) | Token::Label(name), span) => (name, span),
                    (_, span) => return Err(Diagnostic::new(span, "this is no label", "a label expected")),
                };
                out.emit_label_word(name, span, Use::Word)?;
                if self.peek_token() != Some(Token::Comma) {
                    break Ok(());
                }
                self.take();
            },
            "equ" => {
                let (Token::Identifier(name), span) = self.expect_token("a name")? else {
                    return Err(Diagnostic::new(span, "`.equ` needs a name", "`.equ NAME, VALUE`"));
                };
                self.comma()?;
                let (value, _) = self.immediate(out)?;
                if out.constants.insert(name, value).is_some() {
                    return Err(Diagnostic::new(span, format!("constant `{name}` is defined twice"), "defined before"));
                }
                Ok(())
            }
            "if" => {
                let (token, span) = self.expect_token("a generation")?;
                let number = match token {
                    Token::Identifier("a5xx") => 5,
                    Token::Identifier("a6xx") => 6,
                    Token::Identifier("a7xx") => 7,
                    _ => return Err(Diagnostic::new(span, "this is no generation", "a5xx, a6xx or a7xx")),
                };
                let wanted = Generation::from_number(number);
                self.conditions.push(Some(out.set(&span)?.generation()) == wanted);
                Ok(())
            }
            "else" | "endif" => {
                self.take_directive(name);
                match self.conditions.pop() {
                    None => Err(Diagnostic::new(span, format!("`.{name}` has no `.if`"), "no `.if` is open")),
                    Some(active) if name == "else" => {
                        self.conditions.push(!active);
                        Ok(())
                    }
                    Some(_) => Ok(()),
                }
            }
            _ => Err(Diagnostic::new(span, format!("there is no directive `.{name}`"), "unknown directive")
                .help("directives: .align .jumptbl .section .gen .nozero .word .table .equ .if .else .endif")),
        }
    }

    /// Takes the directive's own token, if [`Self::skipped`] did not take it.
    fn take_directive(&mut self, name: &str) {
        if matches!(self.peek_token(), Some(Token::Directive(found)) if found == name) {
            self.take();
        }
    }

    fn instruction(
        &mut self,
        out: &mut Assembler<'s>,
        mnemonic: &'s str,
        span: Span,
        mut base: Instruction,
        modifiers: [Span; 3],
    ) -> Parsed<()> {
        let Some(form) = form(mnemonic) else {
            let error = Diagnostic::new(span, format!("there is no instruction `{mnemonic}`"), "unknown instruction");
            let error = error.help("`afuc isa` lists all instructions");
            return Err(error.help_by_name("", mnemonic, ENCODINGS.iter().map(|row| row.mnemonic)));
        };
        let mut spans = Spans { mnemonic: span.clone(), slots: std::array::from_fn(|_| span.clone()) };
        let is_sds = std::mem::take(&mut base.preincrement);
        if base.extra != 0 && is_sds != matches!(form, Form::Write(Op::Cwrite)) {
            let title = format!("`{mnemonic}` does not take this modifier");
            let reason = if is_sds { "(sdsN) is for cwrite" } else { "(xmovN) is for register ALU instructions" };
            return Err(Diagnostic::new(modifiers[1].clone(), title, reason).help("leave the modifier away"));
        }
        for (slot, modifier) in [Slot::Rep, Slot::Extra, Slot::Peek].into_iter().zip(modifiers) {
            if !modifier.is_empty() {
                spans.slots[slot as usize] = modifier;
            }
        }
        let (i, target) = self.operands(out, form, base, &mut spans).map_err(|error| {
            let is_form = error.title.ends_with("is missing") || error.title.starts_with("this is no");
            if is_form && error.help.is_none() { error.help(form.usage(mnemonic)) } else { error }
        })?;
        out.emit(&i, mnemonic, &spans, target)
    }

    /// Reads the operands of a form.
    fn operands(
        &mut self,
        out: &Assembler<'s>,
        form: Form,
        base: Instruction,
        spans: &mut Spans,
    ) -> Parsed<(Instruction, Option<LabelUse<'s>>)> {
        let mut i = base;
        let mut target = None;
        match form {
            Form::Plain(op) => i.op = op,
            Form::Two(reg, imm) => {
                i.dst = self.register(spans, Slot::Dst)?;
                self.comma()?;
                i.src1 = self.register(spans, Slot::Src1)?;
                self.comma()?;
                self.register_or_immediate(out, &mut i, spans, reg, imm)?;
            }
            Form::Not => {
                i.dst = self.register(spans, Slot::Dst)?;
                self.comma()?;
                self.register_or_immediate(out, &mut i, spans, Op::Not, Op::NotImm)?;
            }
            Form::Msb => {
                i.op = Op::Msb;
                i.dst = self.register(spans, Slot::Dst)?;
                self.comma()?;
                i.src2 = self.register(spans, Slot::Src2)?;
            }
            Form::Mov => {
                i.dst = self.register(spans, Slot::Dst)?;
                self.comma()?;
                if let Some(Token::Label(_)) = self.peek_token() {
                    let (name, span) = self.label("a label")?;
                    target = Some((name, span, Use::Immediate));
                    i.op = Op::MovImm;
                } else {
                    self.register_or_immediate(out, &mut i, spans, Op::Or, Op::MovImm)?;
                }
                if i.op == Op::MovImm && self.peek_token() == Some(Token::Shift) {
                    self.take();
                    let (shift, span) = self.number("the shift")?;
                    spans.slots[Slot::Src1 as usize] = span;
                    i.src1 = u8::try_from(shift).unwrap_or(u8::MAX);
                }
            }
            Form::Setbit | Form::Clrbit => {
                i.dst = self.register(spans, Slot::Dst)?;
                self.comma()?;
                i.src1 = self.register(spans, Slot::Src1)?;
                self.comma()?;
                if matches!(form, Form::Setbit) && matches!(self.peek_token(), Some(Token::Register(_))) {
                    i.op = Op::Setbit;
                    i.src2 = self.register(spans, Slot::Src2)?;
                } else {
                    i.op = if matches!(form, Form::Setbit) { Op::SetbitImm } else { Op::Clrbit };
                    i.src2 = self.bit(spans, Slot::Src2)?;
                }
            }
            Form::Bits(op) => {
                i.op = op;
                i.dst = self.register(spans, Slot::Dst)?;
                self.comma()?;
                i.src1 = self.register(spans, Slot::Src1)?;
                self.comma()?;
                i.imm = self.bit(spans, Slot::Imm)?.into();
                self.comma()?;
                i.src2 = self.bit(spans, Slot::Src2)?;
            }
            Form::Read(op) | Form::Write(op) => {
                i.op = op;
                if matches!(form, Form::Read(_)) {
                    i.dst = self.register(spans, Slot::Dst)?;
                } else {
                    i.src2 = self.register(spans, Slot::Src2)?;
                }
                self.comma()?;
                self.address(out, &mut i, spans)?;
            }
            Form::Branch(imm, bit) => {
                i.src1 = self.register(spans, Slot::Src1)?;
                self.comma()?;
                if matches!(self.peek_token(), Some(Token::Bit(_))) {
                    i.op = bit;
                    i.src2 = self.bit(spans, Slot::Src2)?;
                } else {
                    i.op = imm;
                    let (value, span) = self.immediate(out)?;
                    spans.slots[Slot::Src2 as usize] = span;
                    i.src2 = u8::try_from(value).unwrap_or(u8::MAX);
                    if value > 0xff {
                        let reason = format!("{value:#x}; 5 bits are possible, at most 0x1f");
                        let span = spans.slots[Slot::Src2 as usize].clone();
                        let help = "subtract it from a copy of the register, and compare the difference with 0x0";
                        return Err(Diagnostic::new(span, "the immediate does not fit", reason).help(help));
                    }
                }
                self.comma()?;
                let destination = self.destination()?;
                target = relative(out, &mut i, destination)?;
            }
            Form::Jump => {
                if matches!(self.peek_token(), Some(Token::Register(_))) {
                    i.op = Op::JumpReg;
                    i.src1 = self.register(spans, Slot::Src1)?;
                } else {
                    i.op = Op::BrneBit;
                    let destination = self.destination()?;
                    target = relative(out, &mut i, destination)?;
                }
            }
            Form::Absolute(op) => {
                i.op = op;
                match self.destination()? {
                    Destination::Label(name, span) => target = Some((name, span, Use::Absolute)),
                    Destination::Number(number, span) => {
                        // Mesa extends the sign of 26 bits.
                        if !(-(1 << 25)..1 << 26).contains(&number) {
                            return Err(Diagnostic::new(span, "the target is out of reach", "26 bits are possible"));
                        }
                        i.imm = number.cast_unsigned() & 0x03ff_ffff;
                    }
                    Destination::Absolute(word, span) => {
                        (i.imm, spans.slots[Slot::Imm as usize]) = (word, span);
                    }
                }
            }
            Form::Setsecure => {
                i.op = Op::Setsecure;
                let number = self.register(spans, Slot::Src1)?;
                if number != 2 {
                    let span = spans.slots[Slot::Src1 as usize].clone();
                    let reason = "the register is not encoded";
                    return Err(Diagnostic::new(span, "`setsecure` is for $02 only", reason).help("write `$02`"));
                }
                self.comma()?;
                match self.destination()? {
                    Destination::Label(name, span) => target = Some((name, span, Use::SetSecure)),
                    Destination::Number(3, _) => {}
                    Destination::Number(_, span) | Destination::Absolute(_, span) => {
                        let title = "the target of `setsecure` is always three words ahead";
                        return Err(
                            Diagnostic::new(span, title, "another target cannot be encoded").help("write `#+3`")
                        );
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
        Ok((i, target))
    }
}
