// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Accesses to memory: type and results.

/// Type of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Data or instruction read.
    Read,
    /// Data write.
    Write,
}

/// Result of an operation that makes memory read as zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Zeroed {
    /// Number of bytes that now read as zeros.
    pub len: u64,
    /// Number of these bytes that were backed by host memory before.
    pub held: u64,
}
