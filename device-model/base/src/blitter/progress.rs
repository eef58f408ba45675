// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The result of a step of an operation.

/// Result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The budget is used up; the operation is not complete.
    More,
    /// The operation is complete.
    Done,
}
