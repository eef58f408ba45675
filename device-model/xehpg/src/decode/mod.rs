// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Disassembler for a card's memory and messages: batches, rings, context images, status quadwords and GuC messages. It
//! uses the tables with which the card executes them, but does not need a card. Its run time is bounded by the length
//! of the input.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

pub mod context;
mod engine;
pub mod family;
pub mod guc;
mod kernel;
pub mod register;
pub mod status;
#[cfg(test)]
mod tests;

pub use arctic_base::command::Target;
pub use arctic_base::command::description::split;
pub use arctic_base::decode::batch::Command;
pub use arctic_base::decode::line::Dword;
pub use arctic_base::decode::show::Shown;
use arctic_base::decode::{batch, line};
pub use guc::Message;

pub use crate::generation::EngineRef;

/// Input of the disassembler.
pub type Batch<'b> = batch::Batch<'b, EngineRef>;
/// One line of disassembly.
pub type Line = line::Line<Message>;
