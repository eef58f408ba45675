// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Invalidation of cached translations by function, and which functions' memory the step of an engine uses.
//!
//! To take memory away from a function, a thread changes the translation (page tables, LMTT, GGTT or the map of guest
//! memory), invalidates the function ([`Epochs::invalidate`]), and waits for the end of the current step of each engine
//! whose [`StepFunctions`] contain the function ([`StepFunctions::contains`]). It can skip the other engines, even if
//! one of them begins a step for the function at this moment: the step first adds the function to its set, and then
//! reads the epoch and the translations. The fences of both sides order this, so either the invalidating thread finds
//! the function in the set, or the step finds the new epoch and translations.

use std::array;

use crate::host::{FUNCTIONS, Function, functions};
use crate::sync::atomic::{AtomicU64, Ordering, fence};

/// Counts the TLB invalidations of each function. A TLB that has last seen an older count of its function flushes
/// before its next use. It reads the count at the beginning of a step, with its engine's lock held and the function in
/// the engine's [`StepFunctions`].
pub struct Epochs([AtomicU64; FUNCTIONS]);

/// The initial counts are 1; a new TLB starts with 0.
impl Default for Epochs {
    fn default() -> Self {
        Epochs(array::from_fn(|_| AtomicU64::new(1)))
    }
}

#[allow(clippy::indexing_slicing, reason = "Function::index is below FUNCTIONS")]
impl Epochs {
    /// Invalidates all cached translations of `invalid` (one bit for each function).
    pub fn invalidate(&self, invalid: u64) {
        for function in functions(invalid) {
            self.0[function.index()].fetch_add(1, Ordering::AcqRel);
        }
    }

    /// The current count of `function`.
    #[inline]
    pub fn now(&self, function: Function) -> u64 {
        self.0[function.index()].load(Ordering::Acquire)
    }
}

/// The functions (one bit each) whose memory the current step of an engine uses: that of the engine's context, and for
/// a context of the PF also those whose GGTT pages it has accessed. Empty between steps. Changed with the engine's lock
/// held, or by threads that execute a part of the step.
#[derive(Default)]
pub struct StepFunctions(AtomicU64);

impl StepFunctions {
    /// Adds `function`. Translations that the thread reads afterwards are valid until it is removed, or it is
    /// invalidated by a thread that then waits for the end of the step.
    #[inline]
    pub fn add(&self, function: Function) {
        self.0.fetch_or(function.bit(), Ordering::Relaxed);
        // Pairs with the fence in `contains`.
        fence(Ordering::SeqCst);
    }

    /// Removes all functions at the end of a step.
    #[inline]
    pub fn clear(&self) {
        self.0.store(0, Ordering::Release);
    }

    /// Returns whether the current step may use memory of `functions` (one bit each) by translations that were changed
    /// before this call. If not, accesses by such translations are complete.
    #[inline]
    pub fn contains(&self, functions: u64) -> bool {
        fence(Ordering::SeqCst);
        self.0.load(Ordering::Acquire) & functions != 0
    }
}
