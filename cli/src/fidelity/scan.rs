// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Finds the references to items in the sources: tests, lines of IGT lists, code, rows of tables.
//!
//! It scans text instead of syntax trees, because comments are the main input. It only distinguishes code, comments and
//! literals, which is sufficient to ignore braces in strings.

use std::collections::BTreeMap;

use super::index::{Claim, Index, Place, Test};

/// The package with code shared by the tests of several packages: all of it is test code.
const SUPPORT: &str = "test-support";

/// The macros by which a test claims items.
const CLAIMS: [&str; 2] = ["proves!(", "proves_table!("];

/// Builds the index of `files`, which are keyed by path relative to the repository root.
pub fn index(files: &BTreeMap<String, String>) -> Index {
    let mut index = Index::default();
    let sources: Vec<Source<'_>> =
        files.iter().filter(|(path, _)| path.ends_with(".rs")).map(|(path, text)| Source::new(path, text)).collect();
    for source in &sources {
        for (name, claims) in source.tests() {
            index.tests.push(Test { path: source.path.into(), name, claims });
        }
        for (at, line) in source.lines.iter().enumerate() {
            let claims = Claim::all_in(line);
            if !claims.is_empty() && !source.is_test_code(at) {
                let symbol = source.symbol(at);
                index.places.push(Place { path: source.path.into(), line: at + 1, symbol, claims });
            }
        }
    }
    for (path, text) in files.iter().filter(|(path, _)| path.ends_with(".txt")) {
        let name = format!("\"{}\"", path.rsplit('/').next().unwrap_or(path));
        let runs = |source: &Source<'_>| source.path.starts_with("cli/tests/") && source.text.contains(&name);
        if sources.iter().any(runs) {
            index.tests.extend(list(path, text));
        }
    }
    index
}

/// Returns the lines of an IGT list that are about items: lines with a comment that names items, and lines after a comment
/// line that names items, up to the next blank line.
fn list(path: &str, text: &str) -> Vec<Test> {
    let (mut found, mut above, mut in_comment) = (Vec::new(), Vec::new(), false);
    for line in text.lines() {
        let (test, comment) = line.split_once('#').unwrap_or((line, ""));
        let mut claims = Claim::all_in(comment);
        let test = test.trim();
        if test.is_empty() {
            if !in_comment {
                above.clear();
            }
            in_comment = !comment.is_empty();
            above.append(&mut claims);
            continue;
        }
        in_comment = false;
        claims.extend(above.iter().cloned());
        if !claims.is_empty() {
            let name = test.strip_prefix("igt@").unwrap_or(test).into();
            found.push(Test { path: path.into(), name, claims });
        }
    }
    found
}

/// Classification of a byte of a source.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Code,
    Comment,
    Literal,
}

/// Classifies each byte of `text`.
fn kinds(text: &str) -> Vec<Kind> {
    let bytes = text.as_bytes();
    let mut kinds = vec![Kind::Code; bytes.len()];
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let (kind, length) = if rest.starts_with(b"//") {
            (Kind::Comment, rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len()))
        } else if rest.starts_with(b"/*") {
            (Kind::Comment, block_comment(rest))
        } else if rest[0] == b'"' {
            (Kind::Literal, quoted(rest, b'"'))
        } else if rest[0] == b'r' && !word_before(bytes, at) && raw_string(rest).is_some() {
            (Kind::Literal, raw_string(rest).unwrap_or(1))
        } else if rest[0] == b'\'' {
            character(&text[at..]).map_or((Kind::Code, 1), |length| (Kind::Literal, length))
        } else {
            (Kind::Code, 1)
        };
        let end = (at + length).min(bytes.len());
        kinds[at..end].fill(kind);
        at = end;
    }
    kinds
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Returns whether the `r` at `at` is the end of a longer word; `br"` also begins a raw string.
fn word_before(bytes: &[u8], at: usize) -> bool {
    let before = |n: usize| at.checked_sub(n).is_some_and(|at| is_word(bytes[at]));
    before(1) && (bytes[at - 1] != b'b' || before(2))
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                break;
            }
        } else {
            at += 1;
        }
    }
    at
}

fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != quote {
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    at + 1
}

fn raw_string(rest: &[u8]) -> Option<usize> {
    let hashes = rest[1..].iter().take_while(|&&b| b == b'#').count();
    if rest.get(1 + hashes) != Some(&b'"') {
        return None;
    }
    let closing = [b"\"".as_slice(), &vec![b'#'; hashes]].concat();
    let body = &rest[2 + hashes..];
    let end = body.windows(closing.len()).position(|window| window == closing)?;
    Some(2 + hashes + end + closing.len())
}

/// The length of a character literal; `None` for a lifetime.
fn character(text: &str) -> Option<usize> {
    let mut characters = text.char_indices().skip(1);
    match characters.next()? {
        (_, '\\') => Some(quoted(text.as_bytes(), b'\'')),
        _ => characters.next().filter(|&(_, c)| c == '\'').map(|(at, _)| at + 1),
    }
}

/// One file.
struct Source<'a> {
    path: &'a str,
    text: &'a str,
    lines: Vec<&'a str>,
    /// The text with comments and literals replaced by blanks; offsets are unchanged.
    code: String,
    /// Line of `#[cfg(test)]` before a module with a body; this line and all following lines are test code.
    tests_from: usize,
}

impl<'a> Source<'a> {
    fn new(path: &'a str, text: &'a str) -> Self {
        let blank = |(&byte, kind)| match (byte, kind) {
            (b'\n', _) | (_, Kind::Code) if byte.is_ascii() => byte,
            _ => b' ',
        };
        let code = text.as_bytes().iter().zip(kinds(text)).map(blank).map(char::from).collect::<String>();
        let lines: Vec<&str> = text.lines().collect();
        let opens = |at: usize| {
            let behind = code.lines().skip(at + 1).find(|line| !line.trim().is_empty()).unwrap_or("");
            behind.trim_start().trim_start_matches("pub ").starts_with("mod ") && behind.trim_end().ends_with('{')
        };
        let of_tests = |(at, line): &(usize, &str)| line.trim() == "#[cfg(test)]" && opens(*at);
        let tests_from = code.lines().enumerate().find(of_tests).map_or(usize::MAX, |(at, _)| at);
        Self { path, text, lines, code, tests_from }
    }

    /// The package of the file; helpers are looked up within the package.
    fn package(&self) -> &'a str {
        match self.path.split('/').next() {
            Some(first) if !["src", "tests", "benches"].contains(&first) => first,
            _ => ".",
        }
    }

    fn is_test_code(&self, line: usize) -> bool {
        let in_tests = self.path.split('/').any(|part| part == "tests" || part == "tests.rs");
        in_tests || self.package() == SUPPORT || line >= self.tests_from
    }

    fn line_of(&self, offset: usize) -> usize {
        self.code[..offset].matches('\n').count()
    }

    /// The function with its `fn` keyword at `at` in the code: name, and the range of its body.
    fn function(&self, at: usize) -> Option<(String, std::ops::Range<usize>)> {
        let rest = self.code.get(at + 3..)?;
        let name: String = rest.trim_start().chars().take_while(|&c| c.is_alphanumeric() || c == '_').collect();
        let (mut depth, mut start, mut braces) = (0i32, None, 0i32);
        for (offset, byte) in rest.bytes().enumerate() {
            match (byte, start) {
                (b'(' | b'[', None) => depth += 1,
                (b')' | b']', None) => depth -= 1,
                (b';', None) if depth == 0 => return None,
                (b'{', None) if depth == 0 => (start, braces) = (Some(at + 3 + offset), 1),
                (b'{', Some(_)) => braces += 1,
                (b'}', Some(from)) => {
                    braces -= 1;
                    if braces == 0 {
                        return Some((name, from..at + 3 + offset + 1));
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// The functions of test code that claim items: tests, and cases of a test with a harness of its own.
    fn tests(&self) -> Vec<(String, Vec<Claim>)> {
        let mut found = Vec::new();
        for (at, _) in self.code.match_indices("fn ") {
            let word = at > 0 && is_word(self.code.as_bytes()[at - 1]);
            if word || !self.is_test_code(self.line_of(at)) {
                continue;
            }
            let Some((name, body)) = self.function(at) else { continue };
            let claims: Vec<Claim> = CLAIMS.iter().flat_map(|word| self.calls(word, body.clone())).collect();
            if !claims.is_empty() {
                found.push((name, claims));
            }
        }
        found
    }

    /// The items in the calls of the macro `word` within `body`. Its text is a literal and names none.
    fn calls(&self, word: &str, body: std::ops::Range<usize>) -> Vec<Claim> {
        let code = &self.code[body];
        // `proves!(` is not the end of a longer name.
        let starts = code.match_indices(word).filter(|&(at, _)| at == 0 || !is_word(code.as_bytes()[at - 1]));
        starts.flat_map(|(at, _)| Claim::all_in(code[at..].split(')').next().unwrap_or_default())).collect()
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
            let code = self.code.lines().nth(*at).unwrap_or("").trim();
            indent(*at) < indent(line).max(1) && starts.iter().any(|start| visible(code).starts_with(start))
        };
        (0..line).rev().find(declares).map_or_else(|| "the module".into(), |at| declaration(trimmed(at)))
    }
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

    fn of(files: &[(&str, &str)]) -> Index {
        index(&files.iter().map(|&(path, text)| (path.to_owned(), text.to_owned())).collect())
    }

    fn tests_of(text: &str) -> Vec<(String, String)> {
        let words = |test: &Test| test.claims.iter().map(Claim::to_string).collect::<Vec<_>>().join(" ");
        of(&[("a/src/tests.rs", text)]).tests.iter().map(|test| (test.name.clone(), words(test))).collect()
    }

    /// Comments and literals claim nothing.
    #[test]
    fn a_test_claims_items_by_macros() {
        let text = "/// V1-009.\n#[test]\n#[cfg(unix)]\nfn b() {\n    // proves!(V1_012, \"\")\n    let c = '{'; \
            let d = \"}\"; let e = r#\"}\"}\"#; // }\n    proves!(V1_010, \"as V1-014\");\n    \
            arctic_fidelity::proves_table!(\n [V1_011,\n V1_015], \"\");\n    disproves!(V1_016, \"\");\n}\n";
        assert_eq!(tests_of(text), [("b".into(), "V1-010 V1-011 V1-015".into())]);
    }

    #[test]
    fn a_property_is_a_test() {
        let text = "proptest! {\n    #[test]\n    fn p(x in any().prop_map(|y| { y }), z in 0..3) {\n        \
            proves!(V1_003, \"\");\n    }\n}\n";
        assert_eq!(tests_of(text), [("p".into(), "V1-003".into())]);
    }

    #[test]
    fn test_support_implements_no_item() {
        let index = of(&[("test-support/src/bench.rs", "// V1-009\npub fn works() {}\n")]);
        assert!(index.places.is_empty(), "{:?}", index.places);
    }

    #[test]
    fn lists_of_guests_are_tests_if_a_guest_test_runs_them() {
        let text = "a@b\nigt@c@d # V1-001\n\n# V1-002: both of\n# V1-003\ne@f\ng@h # V1-004\n\ni@j\n";
        let runs = ("cli/tests/guest.rs", "#[test]\nfn x() { list(\"l.txt\") }\n");
        assert_eq!(of(&[("cli/tests/igt/l.txt", text)]).tests, []);
        {
            let index = of(&[runs, ("cli/tests/igt/l.txt", text)]);
            let found: Vec<_> = index
                .tests
                .iter()
                .map(|test| (test.to_string(), test.claims.iter().map(Claim::to_string).collect::<Vec<_>>().join(" ")))
                .collect();
            let expected = [("c@d", "V1-001"), ("e@f", "V1-002 V1-003"), ("g@h", "V1-004 V1-002 V1-003")];
            assert_eq!(found, expected.map(|(test, items)| (format!("cli/tests/igt/l.txt::{test}"), items.to_owned())));
        }
    }

    #[test]
    fn locations_name_the_declaration() {
        let text = "//! V1-001\n\n/// V1-002: long\n/// comment.\n#[inline]\npub(crate) const fn span(&self) {\n    \
            // V1-003\n    a();\n}\n\nconst ROWS: &[Row] = &[\n    row(0x98, \"HWSTAM\", \"V1-004\"),\n    row(\n        \
            0x99,\n        \"LONG\",\n        \"V1-005\",\n    ),\n];\npub enum Kind {\n    /// V1-006\n    Flat(u8),\n}\n\
            #[cfg(test)]\nmod tests {\n    // V1-007\n}\n";
        let index = of(&[("a/src/model.rs", text)]);
        let found: Vec<_> = index.places.iter().map(|place| (place.line, place.symbol.as_str())).collect();
        let expected = [(1, "the module"), (3, "fn span"), (7, "fn span"), (12, "HWSTAM"), (16, "LONG"), (20, "Flat")];
        assert_eq!(found, expected);
    }
}
