// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Reasons why a page has no translation.

/// Type of a fault, as in the fault registers (IVB-039).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultType {
    /// The page is not valid, or guest memory does not have it.
    Page = 0,
    /// The entry of the page directory is not valid.
    InvalidDirectory = 1,
    /// PP_DCLV excludes the entry of the page directory.
    UnloadedDirectory = 2,
}
