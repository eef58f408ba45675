// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A copy of the repository that has all mutants, each behind a switch that the environment sets.
//!
//! A function with mutants has its body several times: once for each mutant, and as it is. A place that is evaluated
//! while compiling cannot have a switch; such a mutant needs a build of its own ([`Tree::put`]).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;

use anyhow::Result;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::items::{Code, Items};
use super::rows::{self, Row};
use crate::copy;

/// The environment variable with the number of the mutant; no mutant is selected without it, or with 0.
pub const VARIABLE: &str = "ARCTIC_MUTANT";

/// The value of [`VARIABLE`], read once for each function.
const SELECTED: &str = "{ static SELECTED: ::std::sync::OnceLock<u32> = ::std::sync::OnceLock::new(); \
    *SELECTED.get_or_init(|| ::std::env::var(\"ARCTIC_MUTANT\").ok().and_then(|n| n.parse().ok()).unwrap_or(0)) }";

/// A mutant in the copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutant {
    /// Number within its item.
    pub number: u8,
    /// The value of [`VARIABLE`] that selects it; 0 if it needs a build of its own.
    pub switch: u32,
    /// Source files, from the repository's root.
    pub paths: BTreeSet<String>,
}

/// A replacement of bytes of a source.
type Edit = (Range<usize>, String);

/// The changes of a source: edits by the place that is repeated, then by switch.
type Places = BTreeMap<(usize, usize), BTreeMap<u32, Vec<Edit>>>;

/// The copy.
pub struct Tree {
    /// Its directory.
    pub folder: PathBuf,
    /// Mutants by item.
    pub mutants: BTreeMap<String, Vec<Mutant>>,
    /// Sources with switches, by path.
    switched: BTreeMap<String, String>,
    /// The edits of mutants that need a build of their own, by mutant and source path.
    apart: BTreeMap<(String, u8), BTreeMap<String, Vec<Edit>>>,
    /// The edits that put the switches into each source.
    switches: BTreeMap<String, Vec<Edit>>,
    sources: BTreeMap<String, String>,
}

impl Tree {
    /// Plans the copy in `folder`.
    ///
    /// # Errors
    /// If a row does not fit.
    pub fn new(folder: PathBuf, rows: &[Row], items: &Items) -> Result<Self> {
        let mut places: BTreeMap<usize, Places> = BTreeMap::new();
        let mut tree = Tree {
            folder,
            mutants: BTreeMap::new(),
            switched: BTreeMap::new(),
            apart: BTreeMap::new(),
            switches: BTreeMap::new(),
            sources: items.sources.iter().map(|source| (source.path.clone(), source.text.clone())).collect(),
        };
        for (switch, ((item, number), rows)) in (1..).zip(rows::by_mutant(rows)) {
            let mut found = Vec::new();
            for row in rows {
                let place = row.place(items)?;
                let repeated = match &place.item.code {
                    Code::Function { body } => encloses(body, &place.at).then(|| body.clone()),
                    Code::Opaque { body } => value_around(body, &place.at),
                    Code::Constant => None,
                };
                found.push((place.item.source, repeated, (place.at, row.replace.clone())));
            }
            let apart = found.iter().any(|(_, repeated, _)| repeated.is_none());
            let paths = found.iter().map(|(source, ..)| items.sources[*source].path.clone()).collect();
            for (source, repeated, edit) in found {
                match repeated.filter(|_| !apart) {
                    Some(at) => {
                        let of_place = places.entry(source).or_default().entry((at.start, at.end)).or_default();
                        of_place.entry(switch).or_default().push(edit);
                    }
                    None => {
                        let of_mutant = tree.apart.entry((item.to_owned(), number)).or_default();
                        of_mutant.entry(items.sources[source].path.clone()).or_default().push(edit);
                    }
                }
            }
            let mutant = Mutant { number, switch: if apart { 0 } else { switch }, paths };
            tree.mutants.entry(item.to_owned()).or_default().push(mutant);
        }
        for (source, places) in places {
            let source = &items.sources[source];
            let edits: Vec<Edit> = outermost(places)
                .into_iter()
                .map(|((start, end), by_switch)| (start..end, switched(&source.text, start..end, &by_switch)))
                .collect();
            tree.switched.insert(source.path.clone(), apply(&source.text, 0..source.text.len(), &edits));
            tree.switches.insert(source.path.clone(), edits);
        }
        Ok(tree)
    }

    /// Writes the copy.
    pub fn write(&self) -> Result<()> {
        copy::write(&self.folder, |path| self.switched.get(path).map(String::as_bytes))
    }

    /// Puts a mutant that needs a build of its own into the copy. [`Tree::write`] removes it.
    pub fn put(&self, item: &str, number: u8) -> Result<()> {
        for (path, edits) in self.apart.get(&(item.to_owned(), number)).into_iter().flatten() {
            let text = &self.sources[path];
            let all = [edits.as_slice(), self.switches.get(path).map_or(&[], Vec::as_slice)].concat();
            copy::write_if_other(&self.folder.join(path), apply(text, 0..text.len(), &all).as_bytes())?;
        }
        Ok(())
    }
}

fn encloses(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

/// Merges places that lie within others into these.
fn outermost(places: Places) -> Places {
    let mut merged = Places::new();
    let ranges: Vec<(usize, usize)> = places.keys().copied().collect();
    for (at, by_switch) in places {
        let outer = ranges.iter().filter(|range| encloses(&(range.0..range.1), &(at.0..at.1)));
        let outer = outer.max_by_key(|range| range.1 - range.0).copied().unwrap_or(at);
        let of_place = merged.entry(outer).or_default();
        for (switch, edits) in by_switch {
            of_place.entry(switch).or_default().extend(edits);
        }
    }
    merged
}

/// The text of a place with its mutants.
fn switched(text: &str, at: Range<usize>, by_switch: &BTreeMap<u32, Vec<Edit>>) -> String {
    let mut out = format!("{{ match {SELECTED} {{\n");
    for (switch, edits) in by_switch {
        out += &format!("{switch} => {{ {} }}\n", apply(text, at.clone(), edits));
    }
    out + &format!("_ => {{ {} }}\n}} }}", &text[at])
}

/// Returns the part `at` of `text` with replacements, which do not overlap.
fn apply(text: &str, at: Range<usize>, edits: &[Edit]) -> String {
    let mut edits = edits.to_vec();
    edits.sort_by_key(|(range, _)| range.start);
    let (mut out, mut from) = (String::new(), at.start);
    for (range, replacement) in edits {
        out += &text[from..range.start];
        out += &replacement;
        from = range.end;
    }
    out + &text[from..at.end]
}

/// Returns the smallest expression around `at` whose value can be exchanged; not one that is borrowed, assigned, called
/// or accessed by a field, a method or an index, because its place matters.
fn value_around(body: &syn::Block, at: &Range<usize>) -> Option<Range<usize>> {
    struct Find<'a> {
        at: &'a Range<usize>,
        best: Option<Range<usize>>,
        places: Vec<Range<usize>>,
    }
    impl<'ast> Visit<'ast> for Find<'_> {
        fn visit_expr(&mut self, expression: &'ast syn::Expr) {
            let range = expression.span().byte_range();
            if !encloses(&range, self.at) {
                return;
            }
            let place: Option<&syn::Expr> = match expression {
                syn::Expr::Reference(found) => Some(&found.expr),
                syn::Expr::MethodCall(found) => Some(&found.receiver),
                syn::Expr::Field(found) => Some(&found.base),
                syn::Expr::Index(found) => Some(&found.expr),
                syn::Expr::Assign(found) => Some(&found.left),
                syn::Expr::Unary(found) => Some(&found.expr),
                syn::Expr::Call(found) => Some(&found.func),
                _ => None,
            };
            self.places.extend(place.map(|place| place.span().byte_range()));
            if !matches!(expression, syn::Expr::Let(_)) && !self.places.contains(&range) {
                self.best = Some(range);
            }
            visit::visit_expr(self, expression);
        }
    }
    let mut find = Find { at, best: None, places: Vec::new() };
    find.visit_block(body);
    find.best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(number: u8, path: &str, find: &str, replace: &str) -> Row {
        Row { item: "V8-001".into(), number, path: path.into(), find: find.into(), replace: replace.into() }
    }

    fn tree(text: &str, rows: &[Row]) -> Tree {
        let mut items = Items::default();
        items.add("src/gate.rs".into(), text.into()).unwrap();
        Tree::new("/nowhere".into(), rows, &items).unwrap()
    }

    #[test]
    fn a_function_has_a_body_for_each_mutant() {
        let text = "fn at(a: u32, b: u32) -> bool { a < b && b != 0 }";
        let rows = [row(1, "gate::at", "a < b", "a <= b"), row(2, "gate::at", "&& b != 0", "")];
        let text = &tree(text, &rows).switched["src/gate.rs"];
        assert!(
            text.contains("1 => { { a <= b && b != 0 } }\n2 => { { a < b  } }\n_ => { { a < b && b != 0 } }"),
            "{text}"
        );
        syn::parse_file(text).unwrap();
    }

    #[test]
    fn a_mutant_of_two_places_has_one_switch() {
        let text = "fn a() -> u32 { 1 }\nfn b() -> u32 { 2 }";
        let tree = tree(text, &[row(1, "gate::a", "1", "3"), row(1, "gate::b", "2", "4")]);
        assert_eq!(tree.mutants["V8-001"].len(), 1);
        assert_eq!(tree.switched["src/gate.rs"].matches("\n1 => ").count(), 2);
    }

    #[test]
    fn a_function_that_returns_an_opaque_type_has_a_switch_in_an_expression() {
        let text = "fn all(n: u32) -> impl Iterator<Item = u32> { (0..n).map(move |at| at + 1) }";
        let text = &tree(text, &[row(1, "gate::all", "at + 1", "at")]).switched["src/gate.rs"];
        assert!(
            text.contains("(0..n).map(move |at| { match") && text.contains("1 => { at }\n_ => { at + 1 }"),
            "{text}"
        );
    }

    #[test]
    fn mutant_of_a_constant_is_built_alone() {
        let rows = [row(1, "gate::LIMIT", "8", "9"), row(2, "gate::f", "LIMIT", "1")];
        let tree = tree("const LIMIT: u32 = 8;\nfn f() -> u32 { LIMIT }", &rows);
        assert_eq!(tree.mutants["V8-001"].iter().map(|mutant| mutant.switch).collect::<Vec<_>>(), [0, 2]);
        assert!(tree.switched["src/gate.rs"].contains("const LIMIT: u32 = 8;"));
        assert_eq!(tree.apart[&("V8-001".to_owned(), 1)]["src/gate.rs"][0].1, "9");
    }
}
