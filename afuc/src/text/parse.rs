// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The parser: recursive descent over the tokens, one statement after the other. After an error it goes on at the next
//! line.

mod forms;
mod mnemonic;
mod operands;

use std::ops::Range;

use logos::{Logos, SpannedIter};

use crate::isa::{ENCODINGS, Generation, Instruction, Op, Slot};

use super::assemble::{Assembler, Spans, Use};
use super::diagnostic::Diagnostic;
use super::lexer::{LexError, Token};

use mnemonic::{Form, form};
pub(super) use operands::FAR_BRANCH;

type Span = Range<usize>;
type Parsed<T> = Result<T, Diagnostic>;
/// A label in an operand, and how the instruction uses it.
type LabelUse<'s> = (&'s str, Span, Use);
/// What the lexer makes of a piece of text.
type Lexed<'s> = Result<Token<'s>, LexError>;

/// An open `.if` directive.
struct Condition {
    /// True if the statements of the current part count.
    is_true: bool,
    has_else: bool,
}

/// Places of an instruction's modifiers; empty if it does not have them.
#[derive(Default)]
struct Modifiers {
    /// True if `extra` is `(sdsN)`, false if it is `(xmovN)`.
    is_sds: bool,
    rep: Span,
    extra: Span,
    peek: Span,
}

pub(super) struct Parser<'s> {
    source: &'s str,
    tokens: SpannedIter<'s, Token<'s>>,
    next: Option<(Lexed<'s>, Span)>,
    /// Open `.if` directives, outermost first. A statement counts if all are true.
    conditions: Vec<Condition>,
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
            let result = if self.is_skipped() {
                self.skip_statement(out, token, span)
            } else {
                self.statement(out, token, span)
            };
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
        self.conditions.iter().any(|condition| !condition.is_true)
    }

    /// Skips a line of a part whose condition is false; tracks nested `.if` directives.
    fn skip_statement(&mut self, out: &mut Assembler<'s>, token: Lexed<'s>, span: Span) -> Parsed<()> {
        match token {
            Ok(Token::Directive("if")) => self.conditions.push(Condition { is_true: false, has_else: false }),
            Ok(Token::Directive("else" | "endif")) => return self.statement(out, token, span),
            _ => {}
        }
        self.skip_line();
        Ok(())
    }

    fn peek(&mut self) -> Option<(Lexed<'s>, Span)> {
        if self.next.is_none() {
            self.next = self.tokens.next();
        }
        self.next.clone()
    }

    fn peek_token(&mut self) -> Option<Token<'s>> {
        self.peek().and_then(|(token, _)| token.ok())
    }

    fn take(&mut self) -> Option<(Lexed<'s>, Span)> {
        self.peek();
        self.next.take()
    }

    fn skip_line(&mut self) {
        while self.peek().is_some_and(|(token, _)| token != Ok(Token::Newline)) {
            self.take();
        }
    }

    /// Takes the next token of the line. `what` names it in the error if the line or the source ends, or the text is no
    /// token.
    fn expect_token(&mut self, what: &str) -> Parsed<(Token<'s>, Span)> {
        match self.take() {
            Some((Ok(Token::Newline), span)) => {
                self.next = Some((Ok(Token::Newline), span.clone()));
                Err(Diagnostic::syntax(span.start..span.start, format!("{what} is missing"), "the line ends here"))
            }
            Some((Ok(token), span)) => Ok((token, span)),
            Some((Err(error), span)) => Err(self.no_token(error, span)),
            None => {
                let end = self.source.len();
                let span = end.saturating_sub(1)..end;
                Err(Diagnostic::syntax(span, format!("{what} is missing"), "the source ends here"))
            }
        }
    }

    /// Explains text that is no token.
    fn no_token(&self, error: LexError, span: Span) -> Diagnostic {
        match error {
            LexError::NumberTooLarge => {
                Diagnostic::new(span, "the number does not fit into 32 bits", "not a 32-bit number")
            }
            LexError::Unknown => {
                let text = self.source.get(span.clone()).unwrap_or_default();
                Diagnostic::new(span, format!("`{}` has no meaning here", text.escape_debug()), "unknown token")
            }
        }
    }

    fn expect(&mut self, token: Token<'s>, text: &str) -> Parsed<Span> {
        match self.peek() {
            Some((Ok(found), span)) if found == token => {
                self.take();
                Ok(span)
            }
            Some((Ok(Token::Newline), span)) => {
                Err(Diagnostic::syntax(span.start..span.start, format!("`{text}` is missing"), "the line ends here"))
            }
            Some((_, span)) => {
                Err(Diagnostic::syntax(span, format!("`{text}` is missing"), format!("`{text}` expected")))
            }
            None => self.expect_token(&format!("`{text}`")).map(|(_, span)| span),
        }
    }

    fn comma(&mut self) -> Parsed<()> {
        self.expect(Token::Comma, ",").map(|_| ())
    }

    fn statement(&mut self, out: &mut Assembler<'s>, token: Lexed<'s>, span: Span) -> Parsed<()> {
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
                self.instruction(out, name, span, Instruction::new(Op::Nop), Modifiers::default())
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
            Err(error) => {
                self.take();
                Err(self.no_token(error, span))
            }
        }
    }

    fn modified_instruction(&mut self, out: &mut Assembler<'s>) -> Parsed<()> {
        let mut base = Instruction::new(Op::Nop);
        let mut modifiers = Modifiers::default();
        let mut last_position = None;
        loop {
            let (token, span) = self.expect_token("an instruction")?;
            let position = match token {
                Token::Rep => {
                    base.rep = true;
                    modifiers.rep = span.clone();
                    Slot::Rep
                }
                Token::Xmov(n) | Token::Sds(n) => {
                    let Some(extra) = u8::try_from(n).ok().filter(|extra| (1..=3).contains(extra)) else {
                        return Err(Diagnostic::new(
                            span,
                            "the number of the modifier is out of range",
                            format!("{n}; 1 to 3 are possible"),
                        ));
                    };
                    base.extra = extra;
                    // The kind is checked when the mnemonic is known.
                    modifiers.is_sds = matches!(token, Token::Sds(_));
                    modifiers.extra = span.clone();
                    Slot::Extra
                }
                Token::Peek => {
                    base.peek = true;
                    modifiers.peek = span.clone();
                    Slot::Peek
                }
                Token::Identifier(name) => return self.instruction(out, name, span, base, modifiers),
                _ => return Err(Diagnostic::new(span, "an instruction is missing", "instruction expected")),
            } as usize;
            if last_position.is_some_and(|last| position <= last) {
                let reason = "the order is (rep), then (xmovN) or (sdsN), then (peek)";
                let help = "write each modifier at most once, in this order";
                return Err(Diagnostic::new(span, "the modifiers are out of order", reason).help(help));
            }
            last_position = Some(position);
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
                let wanted = match token {
                    Token::Identifier("a5xx") => Generation::from_number(5),
                    Token::Identifier("a6xx") => Generation::from_number(6),
                    Token::Identifier("a7xx") => Generation::from_number(7),
                    _ => None,
                };
                let is_true = match wanted {
                    Some(wanted) => out.set(&span).map(|set| set.generation() == wanted),
                    None => Err(Diagnostic::new(span, "this is no generation", "a5xx, a6xx or a7xx")),
                };
                // Open after an error too: its `.else` and `.endif` are no further errors.
                let is_first = !matches!(is_true, Ok(false));
                self.conditions.push(Condition { is_true: is_first, has_else: false });
                is_true.map(|_| ())
            }
            "else" => match self.conditions.last_mut() {
                None => Err(no_if(name, span)),
                Some(condition) if condition.has_else => {
                    let title = "this `.if` already has an `.else`";
                    Err(Diagnostic::new(span, title, "an `.if` has at most one `.else`"))
                }
                Some(condition) => {
                    *condition = Condition { is_true: !condition.is_true, has_else: true };
                    Ok(())
                }
            },
            "endif" => self.conditions.pop().map(|_| ()).ok_or_else(|| no_if(name, span)),
            _ => Err(Diagnostic::new(span, format!("there is no directive `.{name}`"), "unknown directive")
                .help("directives: .align .jumptbl .section .gen .nozero .word .table .equ .if .else .endif")),
        }
    }

    fn instruction(
        &mut self,
        out: &mut Assembler<'s>,
        mnemonic: &'s str,
        span: Span,
        base: Instruction,
        modifiers: Modifiers,
    ) -> Parsed<()> {
        let Some(form) = form(mnemonic) else {
            let error = Diagnostic::new(span, format!("there is no instruction `{mnemonic}`"), "unknown instruction");
            let error = error.help("`afuc isa` lists all instructions");
            return Err(error.help_by_name("", mnemonic, ENCODINGS.iter().map(|row| row.mnemonic)));
        };
        let mut spans = Spans { mnemonic: span.clone(), slots: std::array::from_fn(|_| span.clone()) };
        let Modifiers { is_sds, rep, extra, peek } = modifiers;
        if base.extra != 0 && is_sds != matches!(form, Form::Write(Op::Cwrite)) {
            let title = format!("`{mnemonic}` does not take this modifier");
            let reason = if is_sds { "(sdsN) is for cwrite" } else { "(xmovN) is for register ALU instructions" };
            return Err(Diagnostic::new(extra, title, reason).help("leave the modifier away"));
        }
        for (slot, modifier) in [(Slot::Rep, rep), (Slot::Extra, extra), (Slot::Peek, peek)] {
            if !modifier.is_empty() {
                spans.slots[slot as usize] = modifier;
            }
        }
        let (instruction, target) = self
            .operands(out, form, base, &mut spans)
            .map_err(|error| if error.is_syntax { error.help(form.usage(mnemonic)) } else { error })?;
        out.emit(&instruction, mnemonic, &spans, target)
    }
}

/// The error of an `.else` or `.endif` outside of all `.if` directives.
fn no_if(name: &str, span: Span) -> Diagnostic {
    Diagnostic::new(span, format!("`.{name}` has no `.if`"), "no `.if` is open")
}
