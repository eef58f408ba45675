// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Sources as sequences of tokens. Sequences are equal whatever their spaces, line breaks and comments.

use std::fmt;
use std::ops::Range;

use anyhow::{Result, anyhow};
pub use arctic_source::Token;
use arctic_source::{delimiters, tokens};
use proc_macro2::{TokenStream, TokenTree};

/// Splits a source into tokens. Delimiters must be balanced.
pub fn split(source: &str) -> Result<Vec<Token>> {
    Ok(tokens(source.parse().map_err(|error| anyhow!("`{}` is not Rust: {error}", Shown(source)))?))
}

/// The tokens as text, separated by spaces, without documentation.
pub fn text(stream: TokenStream) -> String {
    let mut out = String::new();
    let trees: Vec<TokenTree> = stream.into_iter().collect();
    let is_documentation = |tree: Option<&TokenTree>| match tree {
        Some(TokenTree::Group(group)) => {
            group.stream().into_iter().next().is_some_and(|tree| tree.to_string() == "doc")
        }
        _ => false,
    };
    let mut rest = trees.iter();
    while let Some(tree) = rest.next() {
        match tree {
            TokenTree::Punct(hash) if hash.as_char() == '#' && is_documentation(rest.as_slice().first()) => {
                rest.next();
            }
            TokenTree::Group(group) => {
                let [open, close] = delimiters(group.delimiter());
                out.extend(open.into_iter().chain([' ']));
                out += &text(group.stream());
                out.extend(close.into_iter().chain([' ']));
            }
            tree => out += &format!("{tree} "),
        }
    }
    out
}

/// Returns the places, in bytes of their source, at which `wanted` stands in `tokens`.
pub fn find(tokens: &[Token], wanted: &[Token]) -> Vec<Range<usize>> {
    let (Some(first), Some(last)) = (wanted.first(), wanted.len().checked_sub(1)) else { return Vec::new() };
    let same = |window: &&[Token]| window.iter().zip(wanted).all(|(a, b)| a.text == b.text);
    let starts = tokens.windows(wanted.len()).filter(|window| window[0].text == first.text);
    starts.filter(same).map(|window| window[0].at.start..window[last].at.end).collect()
}

/// Returns the part of `tokens` that is most like `wanted`, of about its length, as bytes of its source; `None` if less
/// than half of it is equal.
pub fn nearest(tokens: &[Token], wanted: &[Token]) -> Option<Range<usize>> {
    let lengths = wanted.len().saturating_sub(3).max(1)..=wanted.len() + 3;
    let windows = lengths.flat_map(|len| tokens.windows(len));
    let best = windows.max_by_key(|window| (2 * common(window, wanted)).saturating_sub(window.len()))?;
    let is_near = 2 * common(best, wanted) >= wanted.len();
    is_near.then(|| best[0].at.start..best[best.len() - 1].at.end)
}

/// Length of the longest common subsequence.
fn common(a: &[Token], b: &[Token]) -> usize {
    let mut row = vec![0; b.len() + 1];
    for x in a {
        let mut diagonal = 0;
        for (n, y) in b.iter().enumerate() {
            let above = row[n + 1];
            row[n + 1] = if x.text == y.text { diagonal + 1 } else { above.max(row[n]) };
            diagonal = above;
        }
    }
    row[b.len()]
}

/// A source on one line.
pub struct Shown<'a>(pub &'a str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_found_across_lines_and_comments() {
        let source = "fn f() { if a && // why\n  b >> 3 != 0 { g(1) } else { g(2) } }";
        let tokens = split(source).unwrap();
        let places = |wanted: &str| find(&tokens, &split(wanted).unwrap());
        assert_eq!(places("b>>3").len(), 1);
        assert_eq!(&source[places("a && b")[0].clone()], "a && // why\n  b");
        assert_eq!(places("g").len(), 2);
        assert_eq!(places("b << 3"), []);
    }

    #[test]
    fn text_has_no_comments() {
        let text = |source: &str| text(source.parse().unwrap());
        assert_eq!(text("fn f() { /// A\n g(1) // B\n }"), "fn f ( ) { g ( 1 ) } ");
        assert_eq!(text("#[inline] fn f() {}"), "# [ inline ] fn f ( ) { } ");
    }

    #[test]
    fn the_nearest_sequence_is_proposed() {
        let source = "fn f() { let end = start + LENGTH; if at >= end { return None; } }";
        let tokens = split(source).unwrap();
        let nearest = |wanted: &str| nearest(&tokens, &split(wanted).unwrap()).map(|at| &source[at]);
        assert_eq!(nearest("at > end"), Some("at >= end"));
        assert_eq!(nearest("self.registers.value(base)"), None);
    }
}
