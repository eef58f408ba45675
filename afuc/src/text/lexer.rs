// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tokens of the text form.

use std::num::ParseIntError;

use logos::{Lexer, Logos};

/// Why text is no token.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LexError {
    /// No token begins like this.
    #[default]
    Unknown,
    /// A number that does not fit into 32 bits.
    NumberTooLarge,
}

impl From<ParseIntError> for LexError {
    /// The patterns have digits only, at least one.
    fn from(_: ParseIntError) -> Self {
        Self::NumberTooLarge
    }
}

/// A token. Those that hold text refer to the source.
#[derive(Logos, Debug, Clone, Copy, PartialEq, Eq)]
#[logos(error = LexError)]
#[logos(skip r"[ \t\r\f]+")]
#[logos(skip(r";[^\n]*", allow_greedy = true))]
pub enum Token<'s> {
    #[token("\n")]
    Newline,
    /// A number that fits into 32 bits.
    #[regex("0x[0-9a-fA-F]+", |lex| u32::from_str_radix(&lex.slice()[2..], 16))]
    #[regex("[0-9]+", |lex| lex.slice().parse())]
    Number(u32),
    /// `$name`
    #[regex(r"\$[0-9a-zA-Z]+", skip_sigil)]
    Register(&'s str),
    /// `bN`
    #[regex("b[0-9]+", |lex| lex.slice()[1..].parse())]
    Bit(u32),
    /// `@NAME`
    #[regex("@[a-zA-Z_][a-zA-Z0-9_]*", skip_sigil)]
    Control(&'s str),
    /// `%NAME`
    #[regex("%[a-zA-Z_][a-zA-Z0-9_]*", skip_sigil)]
    Sqe(&'s str),
    /// `|NAME`
    #[regex(r"\|[a-zA-Z_][a-zA-Z0-9_]*", skip_sigil)]
    Pipe(&'s str),
    /// `#name`
    #[regex("#[a-zA-Z_][a-zA-Z0-9_]*", skip_sigil)]
    Label(&'s str),
    /// `#-256`, `#+16`, `#16`: the number of words, with its sign.
    #[regex("#[+-]?[0-9]+", |lex| lex.slice()[1..].parse())]
    Relative(i32),
    /// `#=0x3000`
    #[regex("#=0x[0-9a-fA-F]+", |lex| u32::from_str_radix(&lex.slice()[4..], 16))]
    #[regex("#=[0-9]+", |lex| lex.slice()[2..].parse())]
    Absolute(u32),
    /// `[hex]`
    #[regex(r"\[[0-9a-fA-F]+\]", literal)]
    Literal(u32),
    #[regex("[a-zA-Z_][a-zA-Z0-9_]*")]
    Identifier(&'s str),
    /// `.name`
    #[regex(r"\.[a-zA-Z_][a-zA-Z0-9_]*", skip_sigil)]
    Directive(&'s str),
    #[token("(rep)")]
    Rep,
    #[token("(peek)")]
    Peek,
    /// N of `(xmovN)`
    #[regex(r"\(xmov[0-9]+\)", |lex| modifier(lex, 5))]
    Xmov(u32),
    /// N of `(sdsN)`
    #[regex(r"\(sds[0-9]+\)", |lex| modifier(lex, 4))]
    Sds(u32),
    #[token("<<")]
    Shift,
    #[token(",")]
    Comma,
    #[token("[")]
    Open,
    #[token("]")]
    Close,
    #[token("+")]
    Plus,
    #[token("!")]
    Bang,
    #[token(":")]
    Colon,
}

fn skip_sigil<'s>(lex: &Lexer<'s, Token<'s>>) -> &'s str {
    &lex.slice()[1..]
}

fn literal<'s>(lex: &Lexer<'s, Token<'s>>) -> Result<u32, ParseIntError> {
    let slice = lex.slice();
    u32::from_str_radix(&slice[1..slice.len() - 1], 16)
}

fn modifier<'s>(lex: &Lexer<'s, Token<'s>>, name: usize) -> Result<u32, ParseIntError> {
    let slice = lex.slice();
    slice[name..slice.len() - 1].parse()
}
