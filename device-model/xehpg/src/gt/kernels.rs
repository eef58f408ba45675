// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What kernels have executed, by function, and the kernel on each engine. Written by the engines once a step, read by any
//! thread.

use std::sync::atomic::{AtomicU64, Ordering};

use arctic_base::status::{KernelCounts, KernelStatus};

use crate::compute::WalkerCounts;

/// Maximum number of log lines about the kernels of one function.
const MOST_WARNINGS: u64 = 64;

/// What the kernels of one function have executed since power-on.
#[derive(Debug, Default)]
pub struct KernelTotals {
    walkers: AtomicU64,
    groups: AtomicU64,
    instructions: AtomicU64,
    faults: AtomicU64,
    warnings: AtomicU64,
}

impl KernelTotals {
    /// Adds what a walker has executed in a step.
    pub fn add(&self, counts: WalkerCounts) {
        // A 64-bit count does not overflow.
        self.groups.fetch_add(counts.groups, Ordering::Relaxed);
        self.instructions.fetch_add(counts.instructions, Ordering::Relaxed);
        self.faults.fetch_add(counts.faults, Ordering::Relaxed);
    }

    /// Counts a walker that has ended.
    pub fn count_walker(&self) {
        self.walkers.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns whether another line about the function's kernels may be logged.
    pub fn may_warn(&self) -> bool {
        self.warnings.fetch_add(1, Ordering::Relaxed) < MOST_WARNINGS
    }

    /// The counts.
    pub fn counts(&self) -> KernelCounts {
        KernelCounts {
            walkers: self.walkers.load(Ordering::Relaxed),
            groups: self.groups.load(Ordering::Relaxed),
            instructions: self.instructions.load(Ordering::Relaxed),
            faults: self.faults.load(Ordering::Relaxed),
        }
    }
}

/// Address in [`EngineKernel`] while no kernel is executed: kernels have addresses of 48 bits.
const NONE: u64 = u64::MAX;

/// The kernel that one engine executes. Its values are read one by one, and can be of two steps.
#[derive(Debug)]
pub struct EngineKernel {
    address: AtomicU64,
    groups: AtomicU64,
    instructions: AtomicU64,
}

impl Default for EngineKernel {
    fn default() -> Self {
        EngineKernel { address: AtomicU64::new(NONE), groups: AtomicU64::new(0), instructions: AtomicU64::new(0) }
    }
}

impl EngineKernel {
    /// Shows what the kernel at `address` has executed.
    pub fn show(&self, address: u64, counts: WalkerCounts) {
        self.groups.store(counts.groups, Ordering::Relaxed);
        self.instructions.store(counts.instructions, Ordering::Relaxed);
        self.address.store(address, Ordering::Relaxed);
    }

    /// Shows that no kernel is executed.
    pub fn hide(&self) {
        self.address.store(NONE, Ordering::Relaxed);
    }

    /// The kernel.
    pub fn status(&self) -> Option<KernelStatus> {
        let address = Some(self.address.load(Ordering::Relaxed)).filter(|address| *address != NONE)?;
        let [groups, instructions] = [&self.groups, &self.instructions].map(|count| count.load(Ordering::Relaxed));
        Some(KernelStatus { address, groups, instructions })
    }
}
