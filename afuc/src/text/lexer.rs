// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tokens of the text form.

use logos::{Lexer, Logos};

/// A token. Those that hold text refer to the source.
#[derive(Logos, Debug, Clone, Copy, PartialEq, Eq)]
#[logos(skip r"[ \t\r\f]+")]
#[logos(skip(r";[^\n]*", allow_greedy = true))]
pub enum Token<'s> {
    #[token("\n")]
    Newline,
    /// A number that fits into 32 bits.
    #[regex("0x[0-9a-fA-F]+", |lex| u32::from_str_radix(&lex.slice()[2..], 16).ok())]
    #[regex("[0-9]+", |lex| lex.slice().parse().ok())]
    Number(u32),
    /// `$name`
    #[regex(r"\$[0-9a-zA-Z]+", skip_sigil)]
    Register(&'s str),
    /// `bN`
    #[regex("b[0-9]+", |lex| lex.slice()[1..].parse().ok())]
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
    #[regex("#[+-]?[0-9]+", |lex| lex.slice()[1..].parse().ok())]
    Relative(i32),
    /// `#=0x3000`
    #[regex("#=0x[0-9a-fA-F]+", |lex| u32::from_str_radix(&lex.slice()[4..], 16).ok())]
    #[regex("#=[0-9]+", |lex| lex.slice()[2..].parse().ok())]
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

fn literal<'s>(lex: &Lexer<'s, Token<'s>>) -> Option<u32> {
    let slice = lex.slice();
    u32::from_str_radix(&slice[1..slice.len() - 1], 16).ok()
}

fn modifier<'s>(lex: &Lexer<'s, Token<'s>>, name: usize) -> Option<u32> {
    let slice = lex.slice();
    slice[name..slice.len() - 1].parse().ok()
}
