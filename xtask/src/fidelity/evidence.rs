// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The items with what the sources have about them beside the report.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, DerefMut};

use arctic_fidelity::report::{Document, Item, Report};
use serde::Serialize;

/// A location in the sources.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Location {
    /// File, from the repository's root.
    pub path: String,
    /// Line, counted from 1.
    pub line: usize,
    /// Declaration or row at this location.
    pub symbol: String,
}

/// An item, and what was found about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Found {
    /// The item.
    #[serde(flatten)]
    pub item: Item,
    /// By mutant of the item: the tests that fail with it. None means that the mutant survives.
    pub mutants: BTreeMap<String, BTreeSet<String>>,
    /// By mutant: the share of unit tests that fail, if it is more than a fifth. Such a mutant proves nothing.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub coarse: BTreeMap<String, String>,
    /// Tests that compare the item's table with a copy of their own.
    pub tables: BTreeSet<String>,
    /// Claims in the sources that no test executed when the mutants were run, and what the quick tests do not compare.
    pub doubts: Vec<String>,
    /// The code and table rows that name it.
    pub places: Vec<Location>,
}

impl Deref for Found {
    type Target = Item;

    fn deref(&self) -> &Item {
        &self.item
    }
}

impl DerefMut for Found {
    fn deref_mut(&mut self) -> &mut Item {
        &mut self.item
    }
}

/// All that was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Findings {
    /// The documents.
    pub documents: Vec<Document>,
    /// All items, by document.
    pub items: Vec<Found>,
}

impl Findings {
    /// The report.
    pub fn report(&self) -> Report {
        let items = self.items.iter().map(|found| found.item.clone()).collect();
        Report { documents: self.documents.clone(), items }
    }
}
