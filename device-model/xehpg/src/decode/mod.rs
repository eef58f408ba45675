// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Disassembler for a card's memory and messages: batches, rings, context images, status quadwords and GuC messages. It
//! uses the tables with which the card executes them, but does not need a card. Its run time is bounded by the length
//! of the input.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

pub mod batch;
pub mod context;
mod engine;
pub mod guc;
pub mod line;
pub mod register;
pub mod show;
pub mod status;
#[cfg(test)]
mod tests;

pub use batch::Command;
pub use guc::Message;
pub use line::Dword;
pub use show::Shown;

pub use crate::command::Target;
pub use crate::command::description::split;
use crate::generation::EngineRef;

/// Input of the disassembler.
pub type Batch<'b> = batch::Batch<'b, EngineRef>;
/// One line of disassembly.
pub type Line = line::Line<Message>;
