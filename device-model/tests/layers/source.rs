// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The paths in a source file, by its tokens: paths in macros, which are not parsed, count too.

use std::collections::BTreeMap;

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// A token of Rust source: an identifier, `::`, or a single character of punctuation.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Token {
    text: String,
    line: usize,
}

/// The tokens of Rust source, without comments; a literal is the token `0`.
fn tokens(source: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let stream = source.parse().unwrap_or_else(|error| panic!("no Rust source: {error}"));
    append(stream, &mut found);
    found
}

/// Appends the tokens of a stream, and those inside of its delimiters.
fn append(stream: TokenStream, found: &mut Vec<Token>) {
    let mut trees = stream.into_iter().peekable();
    while let Some(tree) = trees.next() {
        let line = tree.span().start().line;
        let mut push = |text: &str, line| found.push(Token { text: text.to_owned(), line });
        match tree {
            TokenTree::Ident(name) => push(&name.to_string(), line),
            TokenTree::Literal(_) => push("0", line),
            TokenTree::Punct(first) => {
                let second = |next: &TokenTree| matches!(next, TokenTree::Punct(next) if next.as_char() == ':');
                let is_path = first.as_char() == ':' && first.spacing() == Spacing::Joint;
                if is_path && trees.next_if(second).is_some() {
                    push("::", line);
                } else {
                    push(&first.as_char().to_string(), line);
                }
            }
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                push(open, group.span_open().start().line);
                append(group.stream(), found);
                found.push(Token { text: close.to_owned(), line: group.span_close().start().line });
            }
        }
    }
}

/// What one source file contains, outside items for tests.
#[derive(Debug, Default)]
pub struct File {
    /// Names of the modules that it declares in files of their own.
    pub modules: Vec<String>,
    /// Names in the crate's root that its paths start with, with line and path.
    pub uses: Vec<(String, usize, String)>,
    /// Its paths that leave the module: number of modules that are left, and the path from there.
    pub outside: Vec<(usize, Vec<String>)>,
    /// The names that it imports from modules below it, with the module of its folder.
    pub imports: BTreeMap<String, String>,
    /// Its words, each with the first line on which it is.
    pub words: BTreeMap<String, usize>,
    /// The paths of `use` that start with a name, as of another crate.
    pub named: Vec<Vec<String>>,
}

/// Scans the source of the module at `depth` below the crate's root: 1 for `gt`, 2 for `gt::power`.
pub fn scan(source: &str, depth: usize) -> File {
    let tokens = tokens(source);
    let word = |index: usize| tokens.get(index).map_or("", |token| token.text.as_str());
    let mut file = File::default();
    // Nesting of braces, and its value at each open inline module.
    let (mut braces, mut inline) = (0_usize, Vec::new());
    // The paths of `use` that start with a name.
    let mut named = Vec::new();
    let mut i = 0;
    while i < tokens.len() {
        file.words.entry(word(i).to_owned()).or_insert(tokens[i].line);
        match word(i) {
            "#" if is_for_tests(&tokens, i) => {
                let end = (i..tokens.len()).find(|index| word(*index) == "]").map_or(tokens.len(), |end| end + 1);
                i = end_of_item(&tokens, end);
                continue;
            }
            "mod" if word(i + 2) == ";" => file.modules.push(word(i + 1).to_owned()),
            "mod" if word(i + 2) == "{" => inline.push(braces),
            // `use<..>` of a type is no import.
            "use" if !matches!(word(i + 1), "crate" | "super" | "::" | "<") && inline.is_empty() => {
                let end = expand(&tokens, i + 1, &[], &mut named);
                if word(end) == "as"
                    && let Some(name) = named.last_mut().and_then(|path| path.last_mut())
                {
                    *name = word(end + 1).to_owned();
                }
            }
            "{" => braces += 1,
            "}" => {
                braces = braces.saturating_sub(1);
                if inline.last() == Some(&braces) {
                    inline.pop();
                }
            }
            // A renamed root, whose name then begins paths, is reported as well.
            "crate" | "super" if matches!(word(i + 1), "::" | "as") => {
                let mut paths = Vec::new();
                let end = expand(&tokens, i, &[], &mut paths);
                for path in paths {
                    let supers = path.iter().take_while(|segment| *segment == "super").count();
                    let from_root = if path[0] == "crate" { 1 } else { supers };
                    let left = if path[0] == "crate" { depth } else { supers.saturating_sub(inline.len()).min(depth) };
                    if left == depth {
                        let name = path.get(from_root).cloned().unwrap_or_default();
                        file.uses.push((name, tokens[i].line, path.join("::")));
                    }
                    file.outside.push((left, path[from_root..].to_vec()));
                }
                i = end;
                continue;
            }
            _ => (),
        }
        i += 1;
    }
    file.named.clone_from(&named);
    for mut path in named {
        if path[0] == "self" {
            path.remove(0);
        }
        if let [module, .., name] = path.as_slice()
            && file.modules.contains(module)
        {
            // `self` in a group is the module before it.
            let name = if name == "self" { &path[path.len() - 2] } else { name };
            file.imports.insert(name.clone(), module.clone());
        }
    }
    file
}

/// Returns whether the attribute at `start` is `#[cfg(test)]` or `#[cfg(all(test, ...))]`.
fn is_for_tests(tokens: &[Token], start: usize) -> bool {
    let begins = |texts: &[&str]| {
        tokens[start..].iter().map(|token| token.text.as_str()).take(texts.len()).eq(texts.iter().copied())
    };
    begins(&["#", "[", "cfg", "(", "test", ")", "]"]) || begins(&["#", "[", "cfg", "(", "all", "(", "test", ","])
}

/// Index after the item, field or variant that starts at `start`, which may have more attributes.
fn end_of_item(tokens: &[Token], start: usize) -> usize {
    let word = |index: usize| tokens.get(index).map_or("", |token| token.text.as_str());
    // After attributes and visibility, the name of a field or variant is followed by punctuation.
    let name = (start..).scan(0_usize, |depth, index| {
        match word(index) {
            "(" | "[" => *depth += 1,
            ")" | "]" => *depth = depth.saturating_sub(1),
            "#" | "pub" => (),
            _ if *depth == 0 => return Some(Some(index)),
            _ => (),
        }
        Some(None)
    });
    let is_field = name.flatten().next().is_some_and(|name| matches!(word(name + 1), ":" | "," | "}"));
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(start) {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            "<" if is_field => depth += 1,
            ">" if is_field => depth = depth.saturating_sub(1),
            ")" | "]" | "}" if depth == 0 => return index,
            ")" | "]" => depth -= 1,
            "}" => {
                depth -= 1;
                if depth == 0 && !is_field {
                    // A `use` with a group ends with a semicolon.
                    return index + 1 + usize::from(tokens.get(index + 1).is_some_and(|next| next.text == ";"));
                }
            }
            "," if is_field && depth == 0 => return index + 1,
            ";" if depth == 0 => return index + 1,
            _ => (),
        }
    }
    tokens.len()
}

/// Appends the paths of the tree that starts at `start`, such as `crate::{a, b::{c, d}}`. Returns the index after it.
fn expand(tokens: &[Token], start: usize, prefix: &[String], paths: &mut Vec<Vec<String>>) -> usize {
    let word = |index: usize| tokens.get(index).map_or("", |token| token.text.as_str());
    let mut path = prefix.to_vec();
    let mut i = start;
    loop {
        if word(i) == "{" {
            i += 1;
            while !matches!(word(i), "}" | "") {
                i = expand(tokens, i, &path, paths);
                // A name after `as`, and the comma.
                while !matches!(word(i), "," | "}" | "") {
                    i += 1;
                }
                i += usize::from(word(i) == ",");
            }
            return i + 1;
        }
        let is_segment = word(i) == "*" || word(i).starts_with(|c: char| c.is_alphabetic() || c == '_');
        if !is_segment {
            break;
        }
        path.push(word(i).to_owned());
        i += 1;
        if word(i) != "::" {
            break;
        }
        i += 1;
    }
    paths.push(path);
    i
}
