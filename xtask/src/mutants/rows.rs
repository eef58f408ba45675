// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Mutants as data: `fidelity/mutants/DOCUMENT.toml`. Production code has nothing of them.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::items::{Item, Items};
use super::tokens::{self, Shown};
use crate::root;

/// The directory of the files, from the repository's root.
pub const FOLDER: &str = "fidelity/mutants";

/// One row: a change of one place of the code. A mutant of several places has several rows with one number.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Such as `V8-089`.
    pub item: String,
    /// Number within the item, from 1.
    pub number: u8,
    /// Path of the Rust item: see [`Items`].
    pub path: String,
    /// A sequence of tokens with balanced delimiters that is unique in the Rust item.
    pub find: String,
    /// What replaces it; it may be empty. It names what the module does not import by its whole path.
    pub replace: String,
}

/// A file of rows.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    mutant: Vec<Row>,
}

/// The place of a row in the sources.
pub struct Place<'a> {
    pub item: &'a Item,
    /// What is replaced, in bytes of the source.
    pub at: Range<usize>,
}

impl Row {
    /// `V8-089/1`.
    pub fn mutant(&self) -> String {
        format!("{}/{}", self.item, self.number)
    }

    /// Finds the place of the row.
    ///
    /// # Errors
    /// If the row does not fit: no item has the path, or the sequence is not there, or more than once.
    pub fn place<'a>(&self, items: &'a Items) -> Result<Place<'a>> {
        let found = items.get(&self.path);
        ensure!(!found.is_empty(), "{}: no Rust item has the path {}", self.mutant(), self.path);
        let wanted = tokens::split(&self.find)?;
        let places =
            || found.iter().flat_map(|item| tokens::find(&item.tokens, &wanted).into_iter().map(move |at| (item, at)));
        let count = places().count();
        ensure!(count == 1, "{}: `{}` is {count} times in {}", self.mutant(), Shown(&self.find), self.path);
        let (item, at) = places().next().context("counted above")?;
        Ok(Place { item, at })
    }

    /// Proposes a path and text for a row that does not fit.
    pub fn proposal(&self, items: &Items) -> Option<(String, String)> {
        let wanted = tokens::split(&self.find).ok()?;
        let here = (!items.get(&self.path).is_empty()).then_some(self.path.as_str());
        let paths = here.into_iter().chain(items.like(&self.path));
        let texts = |path: &str| {
            let near = |item: &Item| {
                let at = tokens::nearest(&item.tokens, &wanted)?;
                Some(items.sources[item.source].text[at].to_owned())
            };
            items.get(path).iter().find_map(near)
        };
        paths.into_iter().find_map(|path| Some((path.to_owned(), texts(path)?)))
    }
}

/// Reads all rows, in the order of their mutants.
pub fn read() -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for entry in fs::read_dir(root().join(FOLDER)).with_context(|| format!("cannot read {FOLDER}"))? {
        let path = entry?.path();
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let file: File = toml::from_str(&text).with_context(|| format!("{} is no file of mutants", path.display()))?;
        rows.extend(file.mutant);
    }
    rows.sort_by(|a, b| (&a.item, a.number).cmp(&(&b.item, b.number)));
    Ok(rows)
}

/// The rows of each mutant, by item and number.
pub fn by_mutant(rows: &[Row]) -> BTreeMap<(&str, u8), Vec<&Row>> {
    let mut mutants: BTreeMap<(&str, u8), Vec<&Row>> = BTreeMap::new();
    for row in rows {
        mutants.entry((&row.item, row.number)).or_default().push(row);
    }
    mutants
}

/// Prints each row that does not fit, with a proposal if `propose`.
///
/// # Errors
/// If there is such a row.
pub fn check(rows: &[Row], items: &Items, propose: bool) -> Result<()> {
    let mut wrong = 0;
    for row in rows {
        let Err(error) = row.place(items) else { continue };
        wrong += 1;
        println!("{error:#}");
        match row.proposal(items).filter(|_| propose) {
            Some((path, text)) => {
                println!("  path = \"{path}\"\n  find = '{}'\n  replace = '{}'", Shown(&text), Shown(&row.replace))
            }
            None if propose => println!("  nothing like it was found"),
            None => {}
        }
    }
    ensure!(wrong == 0, "{wrong} rows of {FOLDER} do not fit the code; `cargo xtask mutants --fix` proposes new text");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_fits() {
        check(&read().unwrap(), &Items::read().unwrap(), false).unwrap();
    }

    #[test]
    fn a_row_that_does_not_fit_is_an_error_with_a_proposal() {
        let mut items = Items::default();
        items
            .add("device-model/xehpg/src/gate.rs".into(), "fn valid(entry: u32) -> bool { entry & VALID != 0 }".into())
            .unwrap();
        let row = |path: &str, find: &str| Row {
            item: "V13-001".into(),
            number: 1,
            path: path.into(),
            find: find.into(),
            replace: "true".into(),
        };
        assert!(row("gate::valid", "entry & VALID != 0").place(&items).is_ok());
        let missing = row("gate::valid", "entry & VALID == 0");
        assert_eq!(
            missing.place(&items).err().unwrap().to_string(),
            "V13-001/1: `entry & VALID == 0` is 0 times in gate::valid"
        );
        assert_eq!(missing.proposal(&items), Some(("gate::valid".into(), "entry & VALID != 0".into())));
        let moved = row("lmtt::valid", "entry & VALID != 0");
        assert_eq!(moved.place(&items).err().unwrap().to_string(), "V13-001/1: no Rust item has the path lmtt::valid");
        assert_eq!(moved.proposal(&items).unwrap().0, "gate::valid");
    }
}
