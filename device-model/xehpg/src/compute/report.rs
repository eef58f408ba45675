// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What walkers report: what they have executed, where a thread is, why a step ends, and the room that they take.

use arctic_eu::exec::{FaultKind, KindCounts, SavedGroup};

use super::replay::SavedReplay;
use crate::memory::Fault;

/// Most bytes of the groups of the parked walkers of a function when they are saved. A function with many contexts has less
/// ([`super::ParkedWalkers::limit`]), so that all that the GuC saves of a VF fits in the 8 MiB that xe reserves for it
/// (`XE_GT_SRIOV_PF_MIGRATION_GUC_DATA_MAX_SIZE`). A group beyond it runs to its end.
pub const MOST_SAVED_BYTES: usize = 6 << 20;

/// Timestamps of a walker: CTX_TIMESTAMP and TIMESTAMP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Time of the context.
    pub context: u32,
    /// Time of the card, low dword.
    pub card: u32,
}

/// What a walker has executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WalkerCounts {
    /// Groups that have ended.
    pub groups: u64,
    /// Threads that were started.
    pub threads: u64,
    /// Instructions.
    pub instructions: u64,
    /// Instructions by kind.
    pub kinds: KindCounts,
    /// Threads that have ended at an instruction that cannot be executed.
    pub faults: u64,
    /// Instructions with an illegal opcode that threads have passed over (EU-060).
    pub passed_over: u64,
    /// Accesses outside of a surface or of shared local memory, which read 0 or are dropped (EU-044).
    pub outside: u64,
    /// Atomic operations that were executed as a read and a write, by messages to a function's client.
    pub remote_atomics: u64,
}

impl WalkerCounts {
    /// The sums.
    #[must_use]
    pub fn plus(self, other: WalkerCounts) -> WalkerCounts {
        self.each(other, u64::saturating_add)
    }

    /// What was executed since `before`.
    pub(super) fn since(self, before: WalkerCounts) -> WalkerCounts {
        self.each(before, u64::saturating_sub)
    }

    fn each(self, other: WalkerCounts, of: fn(u64, u64) -> u64) -> WalkerCounts {
        WalkerCounts {
            groups: of(self.groups, other.groups),
            threads: of(self.threads, other.threads),
            instructions: of(self.instructions, other.instructions),
            kinds: self.kinds.each(other.kinds, of),
            faults: of(self.faults, other.faults),
            passed_over: of(self.passed_over, other.passed_over),
            outside: of(self.outside, other.outside),
            remote_atomics: of(self.remote_atomics, other.remote_atomics),
        }
    }
}

/// Where a thread of a kernel is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelPlace {
    /// Virtual address of the kernel.
    pub kernel: u64,
    /// Group.
    pub group: [u32; 3],
    /// Thread of the group.
    pub thread: u32,
    /// Virtual address of the instruction.
    pub address: u64,
    /// The instruction, disassembled.
    pub instruction: String,
}

/// An instruction that a thread has come to and that was not executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unexecuted {
    /// Where.
    pub place: KernelPlace,
    /// Why the thread has ended; `None` if it has passed over the instruction, which has an illegal opcode (EU-060).
    pub ended: Option<FaultKind>,
}

/// Result of a step of a walker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunStop {
    /// All groups have ended.
    Done,
    /// The budget is used up.
    Budget,
    /// An access was a message to a function's client.
    Message,
    /// A group has ended, and the next one is not begun, as requested.
    Boundary,
    /// All threads of the group that have not ended wait for a barrier that none of them will complete (EU-053).
    Deadlock,
    /// An access has failed. The thread has not executed the instruction: the step can be repeated.
    Fault(Fault, Option<Box<KernelPlace>>),
}

/// Room that a walker takes while its context is on no engine, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Of the host's memory, about.
    pub host: usize,
    /// When it is saved, at most.
    pub saved: usize,
}

impl Room {
    /// The sums.
    pub(super) fn plus(self, other: Room) -> Room {
        Room { host: self.host.saturating_add(other.host), saved: self.saved.saturating_add(other.saved) }
    }
}

/// Most bytes of a saved group of this shape.
pub(super) fn saved_bytes(threads: usize, registers: u32, slm: usize) -> usize {
    SavedGroup::most_bytes(threads, registers, slm).saturating_add(SavedReplay::MOST_BYTES)
}

impl std::fmt::Display for KernelPlace {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let KernelPlace { kernel, group: [x, y, z], thread, address, instruction } = self;
        write!(out, "the kernel at {kernel:#x}, group {x},{y},{z}, thread {thread}, at {address:#x}: {instruction}")
    }
}
