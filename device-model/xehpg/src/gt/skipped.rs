// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Counts, by function, of the commands that engines skip because the model has no unit that executes them.
#![allow(clippy::indexing_slicing, reason = "there is a count for each origin")]

use std::sync::atomic::{AtomicU64, Ordering};

use crate::command::origin::{ORIGINS, Origin};

/// Number of skipped commands of one function since power-on, by origin, and of contexts with such a command of user
/// space.
#[derive(Debug, Default)]
pub struct SkippedTotals {
    commands: [AtomicU64; ORIGINS],
    contexts: AtomicU64,
}

impl SkippedTotals {
    /// Counts one command.
    pub fn count(&self, origin: Origin) {
        // A 64-bit count does not overflow.
        self.commands[origin.index()].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of commands.
    pub fn of(&self, origin: Origin) -> u64 {
        self.commands[origin.index()].load(Ordering::Relaxed)
    }

    /// Counts a context.
    pub fn count_context(&self) {
        self.contexts.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of contexts.
    pub fn contexts(&self) -> u64 {
        self.contexts.load(Ordering::Relaxed)
    }
}
