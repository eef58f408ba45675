// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The copy engine (BLT): fills and copies of rectangles, in bounded steps.
//!
//! The command streamer collects the dwords of a command and executes it with the state that earlier commands have set
//! ([`Setup::execute`]). A command that accesses memory results in a [`Blit`], which is stepped until it is
//! [`Progress::Done`].
//!
//! Not modelled, and reported as skipped commands: text, colour patterns in memory, monochrome patterns and sources.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

mod command;
mod memory;
#[cfg(test)]
mod tests;
mod tiles;

use arctic_base::blitter::rectangle::Rectangle;
pub use arctic_base::blitter::{BlitError, Progress};
pub use command::{SETUP_DWORDS, Setup};
use memory::Pages;
pub use tiles::Tiles;

use crate::memory::{Fault, Memory, Space};

/// A fill or a copy, with its progress.
#[derive(Clone, Copy, Debug)]
pub struct Blit {
    rectangle: Rectangle,
    /// Estimated cost, in the unit of the budget of a step.
    cost: usize,
}

impl Blit {
    /// Executes the blit for about the time of a linear copy of `budget` bytes. Makes progress unless it faults, whatever
    /// the budget is.
    pub fn step(&mut self, memory: &Memory<'_>, space: Space, budget: usize) -> Result<Progress, Fault> {
        self.rectangle.step(&mut Pages::new(memory), space, budget)
    }

    /// Progress of the steps so far.
    pub fn done(&self) -> u64 {
        self.rectangle.done()
    }

    /// The same blit, of which steps have already done a part, as [`Blit::done`] returns it; `None` if no part of it is as
    /// large.
    pub fn resumed(self, done: u64) -> Option<Self> {
        Some(Blit { rectangle: self.rectangle.resumed(done)?, ..self })
    }

    /// The estimated cost of the whole blit, for the budget of several blits in a step.
    pub fn cost(&self) -> usize {
        self.cost
    }
}
