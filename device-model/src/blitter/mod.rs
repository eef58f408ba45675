//! The copy engine: the XY commands as data, and each as a state machine over the memory door.
//!
//! The command streamer finds a command by its header ([`lookup`]), collects its dwords, decodes them
//! ([`Blit::decode`]) and steps the blit until it is [`Progress::Done`]. A blit that faults stays where it was and can
//! be stepped again.

mod ccs;
mod command;
mod control;
mod fields;
mod raster;
mod rectangle;
#[cfg(test)]
mod tests;
mod tiling;
mod window;

use control::ControlCopy;
use rectangle::{Rectangle, Resolve};

pub use command::{BlitCommand, BlitError, COMMANDS, lookup};

use crate::memory::{Fault, Gam, Space};

/// How a step of a blit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The budget is used up; there is more to do.
    More,
    /// The blit is complete.
    Done,
}

/// A decoded blit, with how far it is.
#[derive(Clone, Copy, Debug)]
pub struct Blit {
    command: &'static BlitCommand,
    work: Work,
}

/// What a blit does.
#[derive(Clone, Copy, Debug)]
enum Work {
    /// Nothing.
    Nothing,
    Rectangle(Rectangle),
    Resolve(Resolve),
    Control(ControlCopy),
}

impl Blit {
    /// Decodes a whole command, BCS_SWCTRL being zero.
    pub fn decode(dwords: &[u32]) -> Result<Blit, BlitError> {
        Blit::decode_with(dwords, 0)
    }

    /// Decodes a whole command under the engine's BCS_SWCTRL (0x22200: bit 0, tiled sources of XY_SRC_COPY_BLT are Y;
    /// bit 1, its and XY_COLOR_BLT's tiled destinations are Y; else X).
    pub fn decode_with(dwords: &[u32], swctrl: u32) -> Result<Blit, BlitError> {
        let (command, work) = command::decode(dwords, swctrl)?;
        Ok(Blit { command, work })
    }

    /// The command.
    pub fn command(&self) -> &'static BlitCommand {
        self.command
    }

    /// Goes on for about `budget_bytes` bytes of linear copy, or for other work that takes as long (tiles, compression,
    /// many short rows, guest memory reached by messages). At least one piece is done. 1 MiB a step is far under 1 ms.
    pub fn step(&mut self, gam: &mut Gam<'_>, space: Space, budget_bytes: usize) -> Result<Progress, Fault> {
        match &mut self.work {
            Work::Nothing => Ok(Progress::Done),
            Work::Rectangle(rectangle) => rectangle.step(gam, space, budget_bytes),
            Work::Resolve(resolve) => resolve.step(gam, space, budget_bytes),
            Work::Control(control) => control.step(gam, space, budget_bytes),
        }
    }
}
