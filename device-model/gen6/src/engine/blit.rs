// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Commands of the copy engine. A blit may take several steps of the engine, in which its command remains the current one.

use super::{Current, Engine, Flow};
use crate::blitter::{Blit, Progress, Tiles};
use crate::command::BlitCommand;
use crate::gt::Gt;
use crate::memory::{Fault, Memory, Space};
use crate::registers::copy::BCS_SWCTRL;

/// Maximum cost of the blits of a step, in bytes of a linear copy; it takes well under a millisecond at memory bandwidth.
pub(super) const BLIT_BYTES: usize = 2 << 20;
/// Length in dwords of the longest command that is executed.
pub(super) const LONGEST: usize = 9;

/// A blit that is not complete.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingBlit {
    pub(super) blit: Blit,
    /// The space of its surfaces: the engine's when the command was decoded.
    pub(super) space: Space,
    /// Length of its command in dwords.
    pub(super) length: u32,
    /// Its command, and the layouts when it was decoded, by which saved state has the blit.
    pub(super) dwords: [u32; LONGEST],
    pub(super) layouts: Layouts,
}

/// Values on which the layouts of tiled surfaces depend, which [`Tiles::new`] gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layouts {
    /// Value of BCS_SWCTRL.
    pub(super) control: u32,
    /// Engines access tiled surfaces swizzled.
    pub(super) swizzled: bool,
}

impl Layouts {
    pub(super) fn tiles(self) -> Tiles {
        Tiles::new(self.control, self.swizzled)
    }
}

impl Engine {
    /// Executes a command of the client 2D. What is not modelled is skipped and counted.
    pub(super) fn blit(&mut self, current: &Current<'_>, command: &'static BlitCommand) -> Result<Flow, Fault> {
        let gt = current.gt;
        let mut dwords = [0; LONGEST];
        let length = usize::try_from(current.length).unwrap_or(usize::MAX);
        let Some(used) = dwords.get_mut(..length) else {
            self.skip(command.name);
            return Ok(Flow::Next);
        };
        for (n, dword) in (0..).zip(used.iter_mut()) {
            *dword = current.dword(n)?;
        }
        let layouts = Layouts { control: self.value(gt, BCS_SWCTRL), swizzled: gt.engines_swizzle() };
        match self.blit_setup.execute(command, used, layouts.tiles()) {
            Ok(None) => Ok(Flow::Next),
            Ok(Some(blit)) => {
                // Surfaces are in the PPGTT while it is enabled (ILK-010), whatever the batch is in.
                let space = self.ppgtt(gt);
                self.pending = Some(PendingBlit { blit, space, length: current.length, dwords, layouts });
                Ok(self.continue_blit(gt, current.memory))
            }
            Err(_) => {
                self.skip(command.name);
                Ok(Flow::Next)
            }
        }
    }

    /// Executes a part of the pending blit, and continues behind its command when the blit is complete. A fault ends it;
    /// its remaining pixels are not written. An access that the client has not answered is tried again.
    pub(super) fn continue_blit(&mut self, gt: &Gt, memory: &Memory<'_>) -> Flow {
        let Some(pending) = &mut self.pending else { return Flow::Jumped };
        let (length, cost) = (pending.length, pending.blit.cost());
        match pending.blit.step(memory, pending.space, self.blit_budget) {
            Ok(Progress::More) => {
                gt.set_in_command(self.id, true);
                return Flow::Pause;
            }
            Ok(Progress::Done) => {}
            Err(_) if self.tries_again(gt, memory) => {
                gt.set_in_command(self.id, true);
                return Flow::Wait;
            }
            Err(fault) => gt.record_fault(self.id, &fault),
        }
        self.pending = None;
        gt.set_in_command(self.id, false);
        self.advance(gt, memory, length);
        self.blit_budget = self.blit_budget.saturating_sub(cost);
        if self.blit_budget == 0 { Flow::Pause } else { Flow::Jumped }
    }
}
