// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Items of the hardware documents as constants, with the macros by which tests claim them. For tests only.
//!
//! A test claims the items that it proves with [`proves!`]. The rows of `fidelity/mutants/` are deliberate faults:
//! `cargo xtask mutants` applies each to a copy of the sources and runs the tests that claim its item; an item counts as
//! exact only if they fail.
#![forbid(unsafe_code)]

pub mod claims;
pub mod items;

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
}
