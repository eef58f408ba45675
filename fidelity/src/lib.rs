// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Items of the hardware documents as constants, with the macros by which tests claim them, and the report on the items, which the
//! program `arctic` prints (feature `report`). Apart from the report, for tests only.
//!
//! A test claims the items that it proves with [`proves!`]. The rows of `fidelity/mutants/` are deliberate faults:
//! `cargo xtask mutants` applies each to a copy of the sources and runs the tests that claim its item; an item counts as
//! exact only if they fail.
#![forbid(unsafe_code)]

pub mod claims;
pub mod document;
pub mod items;
#[cfg(feature = "report")]
pub mod report;

use std::fmt;

/// An item of a document, such as `V8-089`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Item {
    /// Name of the document.
    document: &'static str,
    /// Number of the item in the document.
    number: u16,
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:03}", self.document, self.number)
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
    fn constants_have_the_names_of_their_items() {
        assert_eq!(items::V8_089.to_string(), "V8-089");
        assert_eq!(items::V13_004.to_string(), "V13-004");
        assert_eq!(items::IVB_143.to_string(), "IVB-143");
        assert_eq!(items::AF_125.to_string(), "AF-125");
    }
}
