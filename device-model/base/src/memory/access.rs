// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Results of accesses to memory.

/// Result of an operation that makes memory read as zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zeroed {
    /// Number of bytes that now read as zeros.
    pub len: u64,
    /// Number of these bytes that were backed by host memory before.
    pub held: u64,
}
