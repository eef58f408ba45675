// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The TLB invalidations that a step of the GuC has received.

use crate::host::Function;

/// Sets of functions (one bit each) for the TLB invalidations that a step of the GuC has received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Invalidations {
    /// Functions to which responses must be sent.
    pub requested: u64,
    /// Functions whose cached translations must be dropped.
    pub drop: u64,
    /// Functions whose memory may be used by old translations until the current steps of engines have ended.
    pub wait: u64,
}

impl Invalidations {
    /// Adds a request of `function`.
    pub fn add(&mut self, function: Function, drop: u64, wait: u64) {
        self.requested |= function.bit();
        self.drop |= drop;
        self.wait |= wait;
    }
}
