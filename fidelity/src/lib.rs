// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Items of the hardware documents as constants, with the macros that connect them to tests and code.
//!
//! A test claims the items that it proves with [`proves!`]; the code that implements an item carries [`mutant!`]s,
//! deliberate faults of which one can be selected in a build with the feature `mutants`. `cargo xtask mutants` runs each
//! mutant against the tests that claim its item; an item counts as exact only if they fail.
//!
//! Without the feature, [`mutant!`] is the constant `false` and costs nothing.
#![forbid(unsafe_code)]

pub mod claims;
pub mod items;
pub mod mutants;
#[cfg(feature = "results")]
pub mod results;

use std::fmt;

/// An item of a document, such as `V8-089`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Item {
    /// Volume number of the document.
    volume: u8,
    /// Number of the item in the document.
    number: u16,
}

impl Item {
    /// Returns the item of the constant `name`, such as `V8_089`.
    const fn named(name: &str) -> Self {
        let name = name.as_bytes();
        // `V`, the volume, `_`, three digits.
        let (mut at, mut volume) = (1, 0);
        while name[at] != b'_' {
            volume = volume * 10 + name[at] - b'0';
            at += 1;
        }
        let mut number = 0;
        while at + 1 < name.len() {
            at += 1;
            number = number * 10 + (name[at] - b'0') as u16;
        }
        Self { volume, number }
    }

    /// The document's volume number, and the item's number within the document.
    pub const fn parts(self) -> (u8, u16) {
        (self.volume, self.number)
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "V{}-{:03}", self.volume, self.number)
    }
}

/// Claims that the test that executes it proves an item, or several: `proves!(V8_089, "EMR selects the errors that set
/// EIR")`, `proves!([V8_057, V8_058], "...")`. The text states the rule that the test checks.
///
/// The compiler resolves the items. A claim counts only if a test that executes it passes, and fails with the mutants of
/// the item.
#[macro_export]
macro_rules! proves {
    ([$($item:ident),+ $(,)?], $rule:literal $(,)?) => {
        $($crate::claims::record($crate::items::$item, $rule, false, file!());)+
    };
    ($item:ident, $rule:literal $(,)?) => {
        $crate::proves!([$item], $rule)
    };
}

/// Like [`proves!`], for an item that is only a table of names, opcodes or presence: the test compares the card's table
/// with a copy of its own, so the item needs no mutant.
#[macro_export]
macro_rules! proves_table {
    ([$($item:ident),+ $(,)?], $rule:literal $(,)?) => {
        $($crate::claims::record($crate::items::$item, $rule, true, file!());)+
    };
    ($item:ident, $rule:literal $(,)?) => {
        $crate::proves_table!([$item], $rule)
    };
}

/// A condition that is true only while mutant `number` of the item is selected: `mutant!(V8_089, 1)`. The code that it
/// guards is a deliberate fault: a violation of the item that the tests that claim it must detect.
#[macro_export]
macro_rules! mutant {
    ($item:ident, $number:literal) => {
        $crate::mutants::selected($crate::items::$item, $number)
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_have_the_numbers_of_their_names() {
        assert_eq!(items::V8_089.parts(), (8, 89));
        assert_eq!(items::V13_288.parts(), (13, 288));
        assert_eq!(items::V13_004.to_string(), "V13-004");
        for items in [items::V8, items::V13] {
            assert!(items.is_sorted_by(|a, b| a < b), "in order, and each once");
        }
        assert_eq!((items::V8.len(), items::V13.len()), (166, 288));
    }

    #[test]
    fn no_mutant_is_selected_by_default() {
        assert!(!mutant!(V8_089, 1));
    }
}
