// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Report of unimplemented registers and commands that drivers use, with counts, for display and as JSON.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

use std::collections::BTreeMap;

use serde::Serialize;

use crate::command::Origin;
use crate::status::KernelCounts;

/// A register that was accessed, with its name and the reason why it is not modelled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TouchedRegister {
    /// Offset in GTTMMADR; all ones is the total for offsets beyond the list's limit.
    pub offset: u32,
    /// Name of the register; an array element has its index in brackets, an engine register is prefixed with the
    /// engine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Number of reads.
    pub reads: u64,
    /// Number of writes.
    pub writes: u64,
    /// Why it is not modelled; absent if no reason is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
}

/// A command that an engine skipped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SkippedCommands {
    /// Number of the function; 0 is the PF.
    pub function: u8,
    /// The kind of batch that contained it.
    pub origin: Origin,
    /// Name of the engine.
    pub engine: &'static str,
    /// Name of the command.
    pub command: &'static str,
    /// How often it was skipped.
    pub count: u64,
}

/// What the kernels of one function have executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FunctionKernels {
    /// Number of the function; 0 is the PF.
    pub function: u8,
    /// What they have executed.
    #[serde(flatten)]
    pub counts: KernelCounts,
}

/// Accesses and commands that the card does not model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Registers that are not modelled, sorted by offset.
    pub unmodelled: Vec<TouchedRegister>,
    /// Registers accessed while their forcewake domain was asleep (V13-130); the access was still performed.
    pub asleep: Vec<TouchedRegister>,
    /// Commands that engines did not execute, or executed only in part, counted by engine and name. Most of them are 3D
    /// and media commands.
    pub undone: BTreeMap<String, u64>,
    /// The commands that engines did not execute at all, which are also in `undone`, by function and origin: those of
    /// user space make the results of a program invalid.
    pub skipped_commands: Vec<SkippedCommands>,
    /// What the kernels of each function that has begun a walker have executed, in the order of the functions.
    pub walkers: Vec<FunctionKernels>,
    /// Number of steps of the card that panicked, each because of a bug of the card. The unit that was stepped lost its work.
    pub panics: u64,
}

impl Report {
    /// Unmodelled registers without a known reason: candidates for implementation.
    pub fn unexplained(&self) -> impl Iterator<Item = &TouchedRegister> {
        self.unmodelled.iter().filter(|register| register.reason.is_none())
    }
}
