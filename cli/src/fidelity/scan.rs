// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Finds the references to items in the sources: tests, lines of IGT lists, code, rows of tables.
//!
//! It scans text instead of syntax trees, because comments are the main input. It only distinguishes code, comments and
//! literals, which is sufficient to ignore braces in strings.

use std::collections::{BTreeMap, BTreeSet};

use super::index::{Claim, Flaw, Index, Place, Test};

/// The package with code shared by the tests of several packages. All of it counts as test code of each package that
/// uses it.
const SUPPORT: &str = "test-support";
/// Crate name of [`SUPPORT`] in sources.
const SUPPORT_CRATE: &str = "arctic_test_support";

/// Builds the index of `files`, which are keyed by path relative to the repository root.
pub fn index(files: &BTreeMap<String, String>) -> Index {
    let mut index = Index::default();
    let sources: Vec<Source<'_>> =
        files.iter().filter(|(path, _)| path.ends_with(".rs")).map(|(path, text)| Source::new(path, text)).collect();
    let uses = |source: &&Source<'_>| source.code.contains(SUPPORT_CRATE);
    let users: BTreeSet<&str> = sources.iter().filter(uses).map(Source::package).collect();
    let mut helpers: BTreeMap<&str, Asserting> = BTreeMap::new();
    for source in &sources {
        helpers.entry(source.package()).or_default().learn(source);
        if source.package() == SUPPORT {
            users.iter().for_each(|&user| helpers.entry(user).or_default().learn(source));
        }
    }
    helpers.values_mut().for_each(Asserting::settle);
    for source in &sources {
        let mut of_tests = vec![false; source.lines.len()];
        for found in source.tests() {
            of_tests[found.lines.clone()].fill(true);
            let text = source.lines[found.lines].join("\n");
            let claims = Claim::all_in(&text);
            let flaw = if found.ignored {
                Some(Flaw::Ignored)
            } else if !found.should_panic && !helpers[source.package()].asserts(&found.body) {
                Some(Flaw::AssertsNothing)
            } else {
                None
            };
            if !claims.is_empty() {
                index.tests.push(Test { path: source.path.into(), name: found.name, flaw, claims });
            }
        }
        for (at, line) in source.lines.iter().enumerate() {
            let claims = Claim::all_in(line);
            if !claims.is_empty() && !of_tests[at] && !source.is_test_code(at) {
                let symbol = source.symbol(at);
                index.places.push(Place { path: source.path.into(), line: at + 1, symbol, claims });
            }
        }
    }
    for (path, text) in files.iter().filter(|(path, _)| path.ends_with(".txt")) {
        let name = format!("\"{}\"", path.rsplit('/').next().unwrap_or(path));
        let runs = |source: &Source<'_>| source.path.starts_with("cli/tests/") && source.text.contains(&name);
        let flaw = (!sources.iter().any(runs)).then_some(Flaw::NotRun);
        index.tests.extend(list(path, text, flaw));
    }
    index
}

/// Returns the lines of an IGT list that prove items: lines with a comment that names items, and lines after a comment
/// line that names items, up to the next blank line.
fn list(path: &str, text: &str, flaw: Option<Flaw>) -> Vec<Test> {
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
            found.push(Test { path: path.into(), name, flaw, claims });
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

/// A test function in a file.
struct Found {
    name: String,
    /// The lines from its comment to its closing brace.
    lines: std::ops::Range<usize>,
    /// The code of its body.
    body: String,
    ignored: bool,
    should_panic: bool,
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

    fn tests(&self) -> Vec<Found> {
        let mut found = Vec::new();
        for (at, _) in self.code.match_indices("#[test]") {
            let Some(function) = self.code[at..].find("fn ").map(|n| at + n) else { continue };
            let Some((name, body)) = self.function(function) else { continue };
            let line = self.line_of(at);
            let belongs = |line: &&&str| line.trim().starts_with("//") || line.trim().starts_with("#[");
            let above = self.lines[..line].iter().rev().take_while(belongs).count();
            let attributes: String = self.code.lines().skip(line - above).take(above).collect();
            let attributes = attributes + &self.code[at..function];
            found.push(Found {
                name,
                lines: line - above..self.line_of(body.end) + 1,
                ignored: attributes.contains("#[ignore"),
                should_panic: attributes.contains("#[should_panic"),
                body: self.code[body].into(),
            });
        }
        found
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

/// The functions of a package's test code that assert something, by name.
#[derive(Default)]
struct Asserting {
    /// Functions without assertions, and the functions that each calls.
    calls: Vec<(String, BTreeSet<String>)>,
    names: BTreeSet<String>,
}

impl Asserting {
    fn learn(&mut self, source: &Source<'_>) {
        for (at, _) in source.code.match_indices("fn ") {
            let word = at > 0 && is_word(source.code.as_bytes()[at - 1]);
            if word || !source.is_test_code(source.line_of(at)) && !source.path.contains("/tests/") {
                continue;
            }
            let Some((name, body)) = source.function(at) else { continue };
            let body = &source.code[body];
            if says(body) {
                self.names.insert(name);
            } else {
                self.calls.push((name, calls(body)));
            }
        }
    }

    /// Computes the transitive closure: a function that calls an asserting function is an asserting function.
    fn settle(&mut self) {
        loop {
            let names = &self.names;
            let more: Vec<String> = self
                .calls
                .iter()
                .filter(|(name, calls)| !names.contains(name) && !calls.is_disjoint(names))
                .map(|(name, _)| name.clone())
                .collect();
            if more.is_empty() {
                return;
            }
            self.names.extend(more);
        }
    }

    fn asserts(&self, body: &str) -> bool {
        says(body) || !calls(body).is_disjoint(&self.names)
    }
}

/// Returns whether the code itself contains an assertion. `unwrap` does not count, because it usually only accesses a
/// value.
fn says(code: &str) -> bool {
    ["assert!", "assert_eq!", "assert_ne!", "assert_matches!", "panic!(", "unreachable!(", ".expect(", ".expect_err("]
        .iter()
        .any(|word| code.contains(word))
}

/// Names of the functions and macros that the code calls.
fn calls(code: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices('(') {
        let head = code[..at].trim_end_matches('!');
        let start = head.bytes().rposition(|b| !is_word(b)).map_or(0, |n| n + 1);
        let before = head[..start].trim_end();
        if start < head.len() && !before.ends_with("fn") {
            found.insert(head[start..].to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> Index {
        index(&files.iter().map(|&(path, text)| (path.to_owned(), text.to_owned())).collect())
    }

    fn tests_of(text: &str) -> Vec<(String, Option<Flaw>, String)> {
        let words = |test: &Test| test.claims.iter().map(Claim::to_string).collect::<Vec<_>>().join(" ");
        of(&[("a/src/tests.rs", text)]).tests.iter().map(|test| (test.name.clone(), test.flaw, words(test))).collect()
    }

    #[test]
    fn a_test_names_items_above_itself_and_within() {
        let text = "/// V1-009: a helper's.\nfn a() {}\n\n/// V1-010.\n// V1-011\n#[test]\n#[cfg(unix)]\nfn b() {\n    \
            // V1-012\n    let c = '{'; let d = \"}\"; let e = r#\"}\"}\"#; // }\n    assert!(x, \"V1-013\");\n}\n// V1-014\n";
        assert_eq!(tests_of(text), [("b".into(), None, "V1-010 V1-011 V1-012 V1-013".into())]);
    }

    #[test]
    fn a_property_is_a_test() {
        let text = "proptest! {\n    /// V1-003.\n    #[test]\n    fn p(x in any().prop_map(|y| { y }), z in 0..3) {\n        \
            prop_assert_eq!(x, z);\n    }\n\n    /// V1-004.\n    #[test]\n    fn q(x: &'static str) {\n        drop(x);\n    }\n}\n";
        let expected = [("p", None, "V1-003"), ("q", Some(Flaw::AssertsNothing), "V1-004")];
        assert_eq!(tests_of(text), expected.map(|(name, flaw, items)| (name.into(), flaw, items.into())));
    }

    #[test]
    fn a_test_that_cannot_fail_is_flawed() {
        let text = "fn looks() { assert_eq!(1, 1) }\nfn through() { looks() }\nfn idle() { x.unwrap(); }\n\
            /// V1-001\n#[test]\nfn a() { through(); }\n/// V1-002\n#[test]\nfn b() { idle(); }\n\
            /// V1-003\n#[test]\n#[ignore = \"slow\"]\nfn c() { looks(); }\n/// V1-004\n#[should_panic]\n#[test]\nfn d() { idle(); }\n\
            /// V1-005\n#[test]\nfn e() { /* assert!(false) */ idle(); }\n";
        let flaws: Vec<_> = tests_of(text).into_iter().map(|(name, flaw, _)| (name, flaw)).collect();
        let flawed = Some(Flaw::AssertsNothing);
        let expected = [("a", None), ("b", flawed), ("c", Some(Flaw::Ignored)), ("d", None), ("e", flawed)];
        assert_eq!(flaws, expected.map(|(name, flaw)| (name.into(), flaw)));
    }

    #[test]
    fn an_assertion_of_the_model_itself_proves_nothing() {
        let text = "fn model() { assert!(true) }\n#[cfg(test)]\nmod tests {\n    /// V1-001\n    #[test]\n    fn a() { \
            model(); }\n}\n";
        let index = of(&[("a/src/model.rs", text)]);
        assert_eq!(index.tests[0].flaw, Some(Flaw::AssertsNothing));
    }

    #[test]
    fn shared_test_code_asserts_for_the_packages_that_use_it() {
        let support = ("test-support/src/bench.rs", "// V1-009\npub fn works() { assert!(true) }\n");
        let test = "/// V1-001\n#[test]\nfn a() { works(); }\n";
        let uses = format!("use arctic_test_support::works;\n{test}");
        let index = of(&[support, ("a/tests/a.rs", &uses), ("b/tests/b.rs", test)]);
        let flaws: Vec<_> = index.tests.iter().map(|test| test.flaw).collect();
        assert_eq!(flaws, [None, Some(Flaw::AssertsNothing)]);
        assert!(index.places.is_empty(), "shared test code implements no item: {:?}", index.places);
    }

    #[test]
    fn lists_of_guests_are_tests_if_a_guest_test_runs_them() {
        let text = "a@b\nigt@c@d # V1-001\n\n# V1-002: both of\n# V1-003\ne@f\ng@h # V1-004\n\ni@j\n";
        let runs = ("cli/tests/guest.rs", "#[test]\nfn x() { list(\"l.txt\") }\n");
        for (files, flaw) in [(vec![runs], None), (vec![], Some(Flaw::NotRun))] {
            let index = of(&[files, vec![("cli/tests/igt/l.txt", text)]].concat());
            let found: Vec<_> = index
                .tests
                .iter()
                .map(|test| (test.to_string(), test.claims.iter().map(Claim::to_string).collect::<Vec<_>>().join(" ")))
                .collect();
            let expected = [("c@d", "V1-001"), ("e@f", "V1-002 V1-003"), ("g@h", "V1-004 V1-002 V1-003")];
            assert_eq!(found, expected.map(|(test, items)| (format!("cli/tests/igt/l.txt::{test}"), items.to_owned())));
            assert!(index.tests.iter().all(|test| test.flaw == flaw));
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
