// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The copy engine: each XY command is executed as a resumable state machine that accesses memory through [`Gam`].
//!
//! The command streamer looks up a command by its header ([`crate::command::blt::lookup`]), collects its dwords,
//! decodes them ([`Blit::decode`]) and steps the blit until it is [`Progress::Done`]. A blit that faults keeps its
//! progress and can be stepped again.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

mod ccs;
mod command;
mod control;
mod memory;
#[cfg(test)]
mod tests;

use arctic_base::blitter::rectangle::{self, Rectangle, Resolve};
pub use arctic_base::blitter::{BlitError, Progress};
use arctic_base::blitter::{raster, tiling};
pub use ccs::ControlBytes;
use control::ControlCopy;

use crate::command::XE_HPG_COMMANDS;
use crate::command::blt::{self, BlitCommand};
use crate::memory::{Fault, Gam, Space};

/// A decoded blit, with its progress.
#[derive(Clone, Copy, Debug)]
pub struct Blit {
    command: &'static BlitCommand,
    work: Work,
}

/// The operation of a blit.
#[derive(Clone, Copy, Debug)]
enum Work {
    /// No operation.
    Nothing,
    Rectangle(Rectangle),
    Resolve(Resolve),
    Control(ControlCopy),
}

impl Blit {
    /// Decodes a complete command of Xe-HPG; BCS_SWCTRL is taken as zero.
    pub fn decode(dwords: &[u32]) -> Result<Blit, BlitError> {
        Blit::decode_with(dwords, 0)
    }

    /// Like [`Blit::decode`], with the engine's BCS_SWCTRL as for [`Blit::new`].
    pub fn decode_with(dwords: &[u32], swctrl: u32) -> Result<Blit, BlitError> {
        let header = dwords.first().copied().unwrap_or(0);
        let command = blt::lookup(XE_HPG_COMMANDS.blt, header).ok_or(BlitError::Unknown(header))?;
        Blit::new(command, dwords, swctrl)
    }

    /// Decodes the dwords of a complete `command` with the engine's BCS_SWCTRL (0x22200). With bit 0 set, tiled sources
    /// of XY_SRC_COPY_BLT are Y-tiled; with bit 1 set, tiled destinations of XY_SRC_COPY_BLT and XY_COLOR_BLT are
    /// Y-tiled. Otherwise they are X-tiled.
    #[inline]
    pub fn new(command: &'static BlitCommand, dwords: &[u32], swctrl: u32) -> Result<Blit, BlitError> {
        let work = command::decode(command, dwords, swctrl)?;
        Ok(Blit { command, work })
    }

    /// The command.
    pub fn command(&self) -> &'static BlitCommand {
        self.command
    }

    /// Executes the blit for about the time of a linear copy of `budget_bytes` bytes. Slower operations (tiling,
    /// compression, many short rows, guest memory that is not mapped and is accessed by vfio-user DMA messages) process
    /// fewer bytes. Makes progress unless it faults, whatever the budget is.
    pub fn step(&mut self, gam: &mut Gam<'_>, space: Space, budget_bytes: usize) -> Result<Progress, Fault> {
        match &mut self.work {
            Work::Nothing => Ok(Progress::Done),
            Work::Rectangle(rectangle) => rectangle.step(gam, space, budget_bytes),
            Work::Resolve(resolve) => resolve.step(gam, space, budget_bytes),
            Work::Control(control) => control.step(gam, space, budget_bytes),
        }
    }
}
