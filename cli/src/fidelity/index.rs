// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The references to items in the sources: the tests that claim them and the code that implements them. The build
//! script writes the index as text, which is embedded in the program and parsed at run time.

use std::collections::BTreeMap;
use std::fmt;

/// One item or a range of items of a document, as referenced in a comment: `V8-052`, `V13-048..051`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claim {
    /// Name of the document, such as `V8`.
    pub document: String,
    /// Number of the item, or of the first of the range.
    pub first: u16,
    /// Number of the last item of the range; equal to `first` for a single item.
    pub last: u16,
}

impl Claim {
    /// Returns whether it names more than one item.
    pub fn is_range(&self) -> bool {
        self.last != self.first
    }

    /// Returns whether it names item `number` of `document`.
    pub fn names(&self, document: &str, number: u16) -> bool {
        self.document == document && (self.first..=self.last).contains(&number)
    }

    /// All claims in `text`, in order: `V8-052`, and `V13-048..051` or `V13-048..V13-051`.
    pub fn all_in(text: &str) -> Vec<Self> {
        let mut found = Vec::new();
        let mut rest = text;
        let mut before = ' ';
        while let Some(at) = rest.find('V') {
            before = rest[..at].chars().next_back().unwrap_or(before);
            rest = &rest[at..];
            let single = (!before.is_ascii_alphanumeric()).then(|| single(rest)).flatten();
            let Some((document, first, end)) = single else {
                before = 'V';
                rest = &rest[1..];
                continue;
            };
            let mut claim = Self { document: document.into(), first, last: first };
            rest = &rest[end..];
            before = '0';
            if let Some(behind) = rest.strip_prefix("..") {
                let to = match single_at(behind) {
                    Some((named, last, end)) if named == document => Some((last, end)),
                    _ => number(behind),
                };
                if let Some((last, end)) = to.filter(|&(last, _)| last > first) {
                    claim.last = last;
                    rest = &behind[end..];
                }
            }
            found.push(claim);
        }
        found
    }
}

/// Parses exactly three digits: the number, and the offset of its end.
fn number(text: &str) -> Option<(u16, usize)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 3 { Some((text[..3].parse().ok()?, 3)) } else { None }
}

/// Parses `V8-052` at the beginning of `text`: document, number, and the offset of its end.
fn single(text: &str) -> Option<(&str, u16, usize)> {
    let volume = text[1..].bytes().take_while(u8::is_ascii_digit).count();
    let document = &text[..1 + volume];
    // `V8_052` is the constant of `V8-052`.
    let (number, end) = number(text[1 + volume..].strip_prefix(['-', '_'])?)?;
    (volume > 0).then_some((document, number, 2 + volume + end))
}

fn single_at(text: &str) -> Option<(&str, u16, usize)> {
    text.starts_with('V').then(|| single(text)).flatten()
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:03}", self.document, self.first)?;
        if self.is_range() { write!(f, "..{:03}", self.last) } else { Ok(()) }
    }
}

/// A test that claims items, or a line of an IGT list that is about them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Test {
    /// File, from the repository's root.
    pub path: String,
    /// Name of the function, or of the IGT subtest.
    pub name: String,
    /// The items.
    pub claims: Vec<Claim>,
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{}", self.path, self.name)
    }
}

/// A location outside the tests that names items: a comment of code, or a row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// File, from the repository's root.
    pub path: String,
    /// Line, counted from 1.
    pub line: usize,
    /// The declaration or row at this location.
    pub symbol: String,
    /// The items named.
    pub claims: Vec<Claim>,
}

/// All tests and other locations in the sources that name items.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Index {
    /// In the order of their paths and lines.
    pub tests: Vec<Test>,
    /// In the order of their paths and lines.
    pub places: Vec<Place>,
    /// Hashes of the sources (`hash.rs`), by path from the repository's root.
    pub hashes: BTreeMap<String, String>,
}

/// One line per test, place or hash, with fields separated by tabs.
impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = |claims: &[Claim]| claims.iter().map(Claim::to_string).collect::<Vec<_>>().join(" ");
        for test in &self.tests {
            writeln!(f, "test\t{}\t{}\t{}", test.path, test.name, words(&test.claims))?;
        }
        for place in &self.places {
            writeln!(f, "place\t{}\t{}\t{}\t{}", place.path, place.line, place.symbol, words(&place.claims))?;
        }
        for (path, hash) in &self.hashes {
            writeln!(f, "hash\t{path}\t{hash}")?;
        }
        Ok(())
    }
}

impl Index {
    /// Parses the text form; invalid lines are ignored.
    pub fn parse(text: &str) -> Self {
        let mut index = Self::default();
        for line in text.lines() {
            match *line.split('\t').collect::<Vec<_>>() {
                ["test", path, name, claims] => {
                    index.tests.push(Test { path: path.into(), name: name.into(), claims: Claim::all_in(claims) })
                }
                ["place", path, line, symbol, claims] => index.places.push(Place {
                    path: path.into(),
                    line: line.parse().unwrap_or(0),
                    symbol: symbol.into(),
                    claims: Claim::all_in(claims),
                }),
                ["hash", path, hash] => drop(index.hashes.insert(path.into(), hash.into())),
                _ => {}
            }
        }
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_found_one_by_one_and_in_ranges() {
        let text =
            "V1-001, V1-003..005 and V2-100..V2-101; V1-1, V1-0001, AV1-002, V1-T4, V1-009..002 (V1-010..V2-011)";
        let found: Vec<String> = Claim::all_in(text).iter().map(Claim::to_string).collect();
        assert_eq!(found, ["V1-001", "V1-003..005", "V2-100..101", "V1-009", "V1-010", "V2-011"]);
        let range = &Claim::all_in("V1-003..005")[0];
        assert!(range.names("V1", 4) && range.names("V1", 5) && !range.names("V1", 6) && !range.names("V2", 4));
    }

    #[test]
    fn the_text_form_is_read_back() {
        let claims = Claim::all_in("V1-001 V1-003..005");
        let test = Test { path: "a/b.rs".into(), name: "e".into(), claims: claims.clone() };
        let place = Place { path: "c.rs".into(), line: 7, symbol: "fn d".into(), claims: claims.clone() };
        let hashes = BTreeMap::from([("c.rs".to_owned(), "00ff".to_owned())]);
        let index = Index { tests: vec![test], places: vec![place], hashes };
        assert_eq!(Index::parse(&index.to_string()), index);
    }
}
