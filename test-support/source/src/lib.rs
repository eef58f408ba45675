// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Rust sources as sequences of tokens, for tests and tools that read them: with the contents of macros, which are not parsed.
#![forbid(unsafe_code)]

use std::ops::Range;

use proc_macro2::{Delimiter, Group, Spacing, Span, TokenStream, TokenTree};

/// A token and its place.
#[derive(Clone, Debug)]
pub struct Token {
    /// A word, a literal, a delimiter, `::`, or one character of another operator.
    pub text: String,
    /// Bytes of the source.
    pub at: Range<usize>,
    /// Line of the source, from 1.
    pub line: usize,
}

impl Token {
    fn new(text: impl ToString, span: Span) -> Token {
        Token { text: text.to_string(), at: span.byte_range(), line: span.start().line }
    }

    /// Returns whether it is a word: an identifier or a keyword, and not a literal such as `b"a"`.
    pub fn is_word(&self) -> bool {
        self.text.starts_with(|c: char| c.is_alphabetic() || c == '_') && !self.text.contains(['"', '\''])
    }
}

/// The tokens of a stream and within its delimiters, without comments.
pub fn tokens(stream: TokenStream) -> Vec<Token> {
    let mut found = Vec::new();
    append(stream, &mut found);
    found
}

fn append(stream: TokenStream, found: &mut Vec<Token>) {
    let mut after_colon = false;
    for tree in stream {
        let in_path = after_colon && is(&tree, ':');
        after_colon = !in_path
            && matches!(&tree, TokenTree::Punct(punct) if punct.as_char() == ':' && punct.spacing() == Spacing::Joint);
        match tree {
            TokenTree::Group(group) => {
                let [open, close] = delimiters(group.delimiter());
                found.extend(open.map(|text| Token::new(text, group.span_open())));
                append(group.stream(), found);
                found.extend(close.map(|text| Token::new(text, group.span_close())));
            }
            tree => match found.last_mut().filter(|_| in_path) {
                Some(first) => (first.text, first.at.end) = ("::".into(), tree.span().byte_range().end),
                None => found.push(Token::new(&tree, tree.span())),
            },
        }
    }
}

/// The opening and the closing delimiter, if they are visible.
pub fn delimiters(delimiter: Delimiter) -> [Option<char>; 2] {
    match delimiter {
        Delimiter::Parenthesis => [Some('('), Some(')')],
        Delimiter::Brace => [Some('{'), Some('}')],
        Delimiter::Bracket => [Some('['), Some(']')],
        Delimiter::None => [None; 2],
    }
}

fn is(tree: &TokenTree, text: char) -> bool {
    matches!(tree, TokenTree::Punct(punct) if punct.as_char() == text)
}

/// The stream without the items, fields and variants for tests: those with `#[cfg(test)]` or `#[cfg(all(test, ...))]`.
pub fn without_tests(stream: TokenStream) -> TokenStream {
    let trees: Vec<TokenTree> = stream.into_iter().collect();
    let mut kept = Vec::new();
    let mut rest = trees.as_slice();
    while let [tree, after @ ..] = rest {
        let item = after_attributes(rest);
        let attributes = &rest[..rest.len() - item.len()];
        if attributes.iter().any(is_for_tests) {
            rest = after_item(item);
            continue;
        }
        kept.push(match tree {
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), without_tests(group.stream()));
                inner.set_span(group.span());
                inner.into()
            }
            tree => tree.clone(),
        });
        rest = after;
    }
    kept.into_iter().collect()
}

fn is_for_tests(attribute: &TokenTree) -> bool {
    let TokenTree::Group(attribute) = attribute else { return false };
    let text: String = attribute.stream().to_string().split_whitespace().collect();
    text == "cfg(test)" || text.starts_with("cfg(all(test,")
}

fn after_attributes(mut trees: &[TokenTree]) -> &[TokenTree] {
    while let [hash, TokenTree::Group(_), item @ ..] = trees
        && is(hash, '#')
    {
        trees = item;
    }
    trees
}

/// What follows the item, field or variant that `trees` begin with.
fn after_item(trees: &[TokenTree]) -> &[TokenTree] {
    let declared = trees.iter().filter(|tree| !matches!(tree, TokenTree::Group(_)) && tree.to_string() != "pub");
    // The name of a field or variant is followed by punctuation.
    let is_field = declared.clone().nth(1).is_none_or(|tree| is(tree, ':') || is(tree, ','));
    let mut angles = 0_usize;
    for (at, tree) in trees.iter().enumerate() {
        let ends = match tree {
            TokenTree::Group(group) => group.delimiter() == Delimiter::Brace && !is_field,
            tree => {
                angles = (angles + usize::from(is(tree, '<'))).saturating_sub(usize::from(is(tree, '>')));
                is(tree, ';') || is_field && angles == 0 && is(tree, ',')
            }
        };
        if ends {
            // A `use` with a group ends with a semicolon.
            let rest = &trees[at + 1..];
            return if rest.first().is_some_and(|tree| is(tree, ';')) { &rest[1..] } else { rest };
        }
    }
    &[]
}
