// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A source file: its functions, also in macros, the items that they claim, and which lines are test code.

use std::ops::RangeInclusive;

use anyhow::{Result, anyhow};
use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use super::claims::Claim;
use crate::mutants::hash::hash;
use crate::mutants::tokens;

/// The package with code shared by the tests of several packages: all of it is test code.
const SUPPORT: &str = "test-support/";

/// The macros by which a test claims items.
const CLAIMS: [&str; 2] = ["proves", "proves_table"];

/// Tests in these directories have random inputs, or those that fuzz targets have found.
const RANDOM: [&str; 2] = ["device-model/tests/command_streamer/", "device-model/tests/differential/"];

/// Properties in these files compare one command at a time with a reference that does not use the command's table. They
/// count like tests without random inputs.
const REFERENCES: [&str; 1] = ["device-model/xehpg/src/blitter/tests/pixels.rs"];

/// Names of generators of random values: a function that uses one is random.
const GENERATORS: [&str; 2] = ["Random", "random"];

/// A function with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Name.
    pub name: String,
    /// Items that it claims, in order.
    pub claims: Vec<Claim>,
    /// It is a property, or uses random values.
    pub random: bool,
    /// It is test code.
    pub test: bool,
    /// The attribute `test` makes it a test.
    pub is_test: bool,
    /// It is compiled only with the feature `long-tests`, by an attribute of the function or of what encloses it in the file.
    pub is_long: bool,
    /// [`hash`] of its tokens, without attributes, documentation and claims.
    pub hash: String,
}

/// A source file.
pub struct Source<'a> {
    /// Path from the repository's root.
    pub path: &'a str,
    /// All functions with a body, in order.
    pub functions: Vec<Function>,
    lines: Vec<&'a str>,
    /// Lines of items that are compiled only for tests, counted from 1.
    tests: Vec<RangeInclusive<usize>>,
}

/// What encloses a sequence of tokens.
#[derive(Clone, Copy)]
struct Around {
    test: bool,
    random: bool,
    long: bool,
}

/// What the attributes before an item say of it.
#[derive(Clone, Copy, Default)]
struct Attributes {
    /// The line of `cfg(test)`.
    for_tests: Option<usize>,
    /// `test`.
    test: bool,
    /// `cfg(feature = "long-tests")`.
    long: bool,
}

/// The text of the attribute of code of the long tier, without white space.
const LONG: &str = "cfg(feature=\"long-tests\")";

impl<'a> Source<'a> {
    /// Parses a file.
    ///
    /// # Errors
    /// If it is not Rust.
    pub fn new(path: &'a str, text: &'a str) -> Result<Self> {
        let stream: TokenStream = text.parse().map_err(|error| anyhow!("{path} is not Rust: {error}"))?;
        let mut source = Self { path, functions: Vec::new(), lines: text.lines().collect(), tests: Vec::new() };
        let test = path.split('/').any(|part| part == "tests" || part == "tests.rs") || path.starts_with(SUPPORT);
        let random = RANDOM.iter().any(|folder| path.starts_with(folder));
        source.walk(stream, Around { test, random, long: false });
        Ok(source)
    }

    /// Reads the items in a sequence of tokens: functions, modules, and what is in other braces.
    fn walk(&mut self, stream: TokenStream, mut around: Around) {
        let trees: Vec<TokenTree> = stream.into_iter().collect();
        // Those of the current item, until it ends.
        let mut attributes = Attributes::default();
        let mut at = 0;
        while at < trees.len() {
            let within = Around {
                test: around.test || attributes.for_tests.is_some(),
                long: around.long || attributes.long,
                ..around
            };
            match &trees[at..] {
                [TokenTree::Punct(hash), TokenTree::Group(attribute), ..]
                    if hash.as_char() == '#' && attribute.delimiter() == Delimiter::Bracket =>
                {
                    match without_spaces(attribute).as_str() {
                        "cfg(test)" => attributes.for_tests = Some(hash.span().start().line),
                        "test" => attributes.test = true,
                        LONG => attributes.long = true,
                        _ => {}
                    }
                    at += 2;
                    continue;
                }
                [TokenTree::Punct(hash), TokenTree::Punct(inner), TokenTree::Group(attribute), ..]
                    if hash.as_char() == '#' && inner.as_char() == '!' && without_spaces(attribute) == LONG =>
                {
                    around.long = true;
                    at += 3;
                    continue;
                }
                [TokenTree::Ident(word), TokenTree::Ident(name), rest @ ..] if word == "fn" => {
                    if let Some(end) = body(rest) {
                        let tokens = trees[at..at + 3 + end].iter().cloned().collect();
                        self.function(name.to_string(), tokens, within, attributes.test);
                        // A function in a function.
                        if let TokenTree::Group(group) = &rest[end] {
                            self.walk(group.stream(), within);
                        }
                        self.end_of_item(&mut attributes, &rest[end]);
                        at += 3 + end;
                        continue;
                    }
                }
                [TokenTree::Group(group), ..] => {
                    let property =
                        at >= 2 && trees[at - 2].to_string() == "proptest" && trees[at - 1].to_string() == "!";
                    self.walk(group.stream(), Around { random: around.random || property, ..within });
                    if group.delimiter() == Delimiter::Brace {
                        self.end_of_item(&mut attributes, &trees[at]);
                    }
                }
                [TokenTree::Punct(end), ..] if end.as_char() == ';' => self.end_of_item(&mut attributes, &trees[at]),
                _ => {}
            }
            at += 1;
        }
    }

    fn end_of_item(&mut self, attributes: &mut Attributes, last: &TokenTree) {
        if let Some(first) = std::mem::take(attributes).for_tests {
            self.tests.push(first..=last.span().end().line);
        }
    }

    fn function(&mut self, name: String, tokens: TokenStream, around: Around, is_test: bool) {
        let mut claims = Vec::new();
        claims_in(tokens.clone(), &mut claims);
        let text = tokens::text(without_claims(tokens));
        let random = around.random || text.split(' ').any(|word| GENERATORS.contains(&word));
        let random = random && !REFERENCES.contains(&self.path);
        let hash = hash(text.as_bytes());
        let (test, is_long) = (around.test, around.long);
        self.functions.push(Function { name, claims, random, test, is_test, is_long, hash });
    }

    /// Returns whether a line, counted from 0, is test code.
    fn is_test_code(&self, line: usize) -> bool {
        self.path.split('/').any(|part| part == "tests" || part == "tests.rs")
            || self.path.starts_with(SUPPORT)
            || self.tests.iter().any(|lines| lines.contains(&(line + 1)))
    }

    /// The lines outside test code that name items: number, counted from 1, symbol, items.
    pub fn places(&self) -> Vec<(usize, String, Vec<Claim>)> {
        let with_claims = self.lines.iter().enumerate().map(|(at, line)| (at, Claim::all_in(line)));
        with_claims
            .filter(|(at, claims)| !claims.is_empty() && !self.is_test_code(*at))
            .map(|(at, claims)| (at + 1, self.symbol(at), claims))
            .collect()
    }

    /// Returns whether the file has this text.
    pub fn contains(&self, text: &str) -> bool {
        self.lines.iter().any(|line| line.contains(text))
    }

    /// The symbol of a line that names an item: the declaration below a comment, or the row around a source reference.
    fn symbol(&self, line: usize) -> String {
        let trimmed = |at: usize| self.lines.get(at).map_or("", |line| line.trim());
        if trimmed(line).starts_with("//!") {
            return "the module".into();
        }
        if trimmed(line).starts_with("///") {
            let part = |at: &usize| !trimmed(*at).starts_with("//") && !trimmed(*at).starts_with("#[");
            return (line..self.lines.len()).find(part).map_or_else(String::new, |at| declaration(trimmed(at)));
        }
        if let Some(name) = trimmed(line).split('"').nth(1)
            && !trimmed(line).starts_with("//")
        {
            let earlier = (line.saturating_sub(4)..line).rev().filter_map(|at| trimmed(at).split('"').nth(1));
            let named = std::iter::once(name).chain(earlier).find(|name| Claim::all_in(name).is_empty());
            return named.unwrap_or("a row").into();
        }
        let indent = |at: usize| self.lines[at].len() - self.lines[at].trim_start().len();
        let starts = ["fn ", "const ", "static ", "struct ", "enum ", "trait ", "impl ", "mod "];
        let declares = |at: &usize| {
            indent(*at) < indent(line).max(1) && starts.iter().any(|start| visible(trimmed(*at)).starts_with(start))
        };
        (0..line).rev().find(declares).map_or_else(|| "the module".into(), |at| declaration(trimmed(at)))
    }
}

fn without_spaces(attribute: &Group) -> String {
    attribute.stream().to_string().split_whitespace().collect()
}

/// The place of the body of a function in the tokens after its name; `None` if it has none.
fn body(rest: &[TokenTree]) -> Option<usize> {
    let ends = |tree: &TokenTree| match tree {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        tree => tree.to_string() == ";",
    };
    rest.iter().position(ends).filter(|at| matches!(rest[*at], TokenTree::Group(_)))
}

/// Adds the items that calls of the macros claim.
fn claims_in(stream: TokenStream, found: &mut Vec<Claim>) {
    let trees: Vec<TokenTree> = stream.into_iter().collect();
    for (at, tree) in trees.iter().enumerate() {
        if let TokenTree::Group(group) = tree {
            claims_in(group.stream(), found);
        }
        if let [TokenTree::Ident(name), TokenTree::Punct(bang), TokenTree::Group(arguments), ..] = &trees[at..]
            && CLAIMS.iter().any(|macro_name| name == macro_name)
            && bang.as_char() == '!'
        {
            // The text of a claim is a literal and names none.
            let items = arguments.stream().into_iter().take_while(|tree| !matches!(tree, TokenTree::Literal(_)));
            found.extend(items.flat_map(|tree| Claim::all_in(&tree.to_string())));
        }
    }
}

/// The tokens without calls of the macros that claim items.
fn without_claims(stream: TokenStream) -> TokenStream {
    let mut kept: Vec<TokenTree> = Vec::new();
    let mut trees = stream.into_iter().peekable();
    while let Some(tree) = trees.next() {
        let is_claim = matches!(&tree, TokenTree::Ident(name) if CLAIMS.iter().any(|claim| name == claim));
        match tree {
            TokenTree::Ident(_) if is_claim && trees.peek().is_some_and(|next| next.to_string() == "!") => {
                // `!`, the arguments, and `;`.
                trees.by_ref().take(3).for_each(drop);
            }
            TokenTree::Group(group) => {
                kept.push(Group::new(group.delimiter(), without_claims(group.stream())).into());
            }
            tree => kept.push(tree),
        }
    }
    kept.into_iter().collect()
}

/// A declaration without its visibility and function qualifiers.
fn visible(line: &str) -> &str {
    let mut line = line;
    if let Some(rest) = line.strip_prefix("pub") {
        let rest = rest.trim_start();
        line = if rest.starts_with('(') { rest.split_once(')').map_or(rest, |(_, rest)| rest) } else { rest };
    }
    let mut line = line.trim_start();
    for word in ["const fn", "unsafe fn", "async fn"] {
        if line.starts_with(word) {
            line = &line[word.len() - 2..];
        }
    }
    line
}

/// A declaration's kind and name: `fn span`, `const ROWS`, `impl Engine`; only the name for a field or variant.
fn declaration(line: &str) -> String {
    let line = visible(line);
    let end = |c: char| !(c.is_alphanumeric() || c == '_');
    for kind in ["fn", "const", "static", "struct", "enum", "trait", "type", "mod", "macro_rules!"] {
        if let Some(name) = line.strip_prefix(kind).and_then(|rest| rest.strip_prefix(' ')) {
            let name = name.strip_prefix("mut ").unwrap_or(name);
            return format!("{kind} {}", name.split(end).next().unwrap_or(""));
        }
    }
    if line.starts_with("impl") {
        return line.trim_end_matches(['{', ' ']).into();
    }
    if let Some(name) = line.split('"').nth(1) {
        return name.into();
    }
    line.split(end).next().unwrap_or("").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source<'a>(path: &'a str, text: &'a str) -> Source<'a> {
        Source::new(path, text).unwrap()
    }

    /// Name and items of the functions that claim some.
    fn claims(text: &str) -> Vec<(String, String)> {
        let words = |claims: &[Claim]| claims.iter().map(Claim::to_string).collect::<Vec<_>>().join(" ");
        let functions = source("a/src/tests.rs", text).functions;
        let claiming = functions.iter().filter(|function| !function.claims.is_empty());
        claiming.map(|function| (function.name.clone(), words(&function.claims))).collect()
    }

    /// Comments and literals claim nothing.
    #[test]
    fn a_test_claims_items_by_macros() {
        let text = "/// V1-009.\n#[test]\n#[cfg(unix)]\nfn b() {\n    // proves!(V1_012, \"\")\n    let c = '{'; \
            let d = \"}\"; let e = r#\"}\"}\"#; // }\n    proves!(V1_010, \"as V1-014\");\n    \
            arctic_fidelity::proves_table!(\n [V1_011,\n V1_015], \"\");\n    disproves!(V1_016, \"\");\n}\n";
        assert_eq!(claims(text), [("b".into(), "V1-010 V1-011 V1-015".into())]);
    }

    #[test]
    fn properties_and_functions_with_random_values_are_random() {
        let text = "proptest! {\n    #[test]\n    fn p(x in any().prop_map(|y| { y }), z in 0..3) {\n        \
            proves!(V1_003, \"\");\n    }\n}\nfn q() { let mut r = Random::new(3); }\nfn r(at: u32) { randomly(at) }\n";
        assert_eq!(claims(text), [("p".into(), "V1-003".into())]);
        let functions = source("a/src/tests.rs", text).functions;
        assert_eq!(functions.iter().map(|function| function.random).collect::<Vec<_>>(), [true, true, false]);
        assert!(source("device-model/tests/differential/main.rs", "fn all() {}").functions[0].random);
        assert!(!source(REFERENCES[0], text).functions[0].random);
    }

    #[test]
    fn functions_are_found_in_macros_modules_and_implementations() {
        let text = "cases! { fn a(m: &M) -> u8 { 1 } }\nimpl A { fn b(&self); const fn c() -> fn(u8) { fn d() {} d } }\n\
            #[cfg(test)]\nmod tests { fn e() {} }\n#[cfg(test)]\nuse x::y;\nfn f() {}";
        let found: Vec<_> =
            source("a/src/b.rs", text).functions.into_iter().map(|function| (function.name, function.test)).collect();
        let expected = [("a", false), ("c", false), ("d", false), ("e", true), ("f", false)];
        assert_eq!(found, expected.map(|(name, test)| (name.to_owned(), test)));
    }

    #[test]
    fn attributes_make_tests_and_functions_of_the_long_tier() {
        let found = |text: &str| {
            let functions = source("a/tests/b.rs", text).functions;
            functions
                .into_iter()
                .map(|function| (function.name, function.is_test, function.is_long))
                .collect::<Vec<_>>()
        };
        let long = "#[cfg(feature = \"long-tests\")]\n";
        let text = format!(
            "fn a() {{}}\n#[test]\n/// B.\n#[should_panic]\nfn b() {{ fn c() {{}} }}\nproptest! {{\n    fn d(x in any()) {{}}\n\
                #[test]\n    fn e(x in any()) {{}}\n}}\n#[test]\n{long}fn f() {{}}\nfn g() {{}}\n{long}mod h {{ #[test] fn i() {{}} }}"
        );
        let expected = [
            ("a", false, false),
            ("b", true, false),
            ("c", false, false),
            ("d", false, false),
            ("e", true, false),
            ("f", true, true),
            ("g", false, false),
            ("i", true, true),
        ];
        assert_eq!(found(&text), expected.map(|(name, test, long)| (name.to_owned(), test, long)));
        let text = "//! A.\n#![allow(unused)]\n#![cfg(feature = \"long-tests\")]\n#[test]\nfn a() {}\nfn b() {}";
        assert_eq!(found(text), [("a", true, true), ("b", false, true)].map(|(n, t, l)| (n.to_owned(), t, l)));
    }

    #[test]
    fn comments_claims_and_other_functions_do_not_change_a_hash() {
        let hash = |text: &str| {
            let functions = source("a.rs", text).functions;
            functions.into_iter().find(|function| function.name == "f").unwrap().hash
        };
        let before = hash("/// A.\n#[inline]\nfn f() { g(1) }");
        assert_eq!(before, hash("fn h() {}\n/// B.\nfn f() {\n // C\n /// D\n g ( 1 )\n}"));
        assert_eq!(before, hash("fn f() { proves!([V1_001, V1_002], \"A\"); g(1) }"));
        assert_ne!(before, hash("fn f() { g(2) }"));
    }

    #[test]
    fn locations_name_the_declaration() {
        let text = "//! V1-001\n\n/// V1-002: long\n/// comment.\n#[inline]\npub(crate) const fn span(&self) {\n    \
            // V1-003\n    a();\n}\n\nconst ROWS: &[Row] = &[\n    row(0x98, \"HWSTAM\", \"V1-004\"),\n    row(\n        \
            0x99,\n        \"LONG\",\n        \"V1-005\",\n    ),\n];\npub enum Kind {\n    /// V1-006\n    Flat(u8),\n}\n\
            #[cfg(test)]\nmod tests {\n    // V1-007\n}\n";
        let found: Vec<_> =
            source("a/src/model.rs", text).places().into_iter().map(|(line, symbol, _)| (line, symbol)).collect();
        let expected = [(1, "the module"), (3, "fn span"), (7, "fn span"), (12, "HWSTAM"), (16, "LONG"), (20, "Flat")];
        assert_eq!(found, expected.map(|(line, symbol)| (line, symbol.to_owned())));
        assert!(source("test-support/src/bench.rs", "// V1-009\npub fn works() {}\n").places().is_empty());
    }
}
