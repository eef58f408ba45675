// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! XY_CTRL_SURF_COPY_BLT: copies of compression control data from and to the flat CCS.

use arctic_sriov::number::size;

use super::tiling::ADDRESS_MASK;
use crate::memory::ccs::BLOCK;
use crate::memory::{Access, CopyError, Fault, FaultReason, Gam, Space, Span};
use arctic_base::blitter::Progress;

/// Location of control bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// In memory at this address (direct access).
    Memory(u64),
    /// The control bytes of the main surface at this address (indirect access).
    Surface(u64),
}

impl Control {
    #[allow(clippy::arithmetic_side_effects, reason = "BLOCK is a constant")]
    fn open<'m>(
        self,
        gam: &mut Gam<'m>,
        space: Space,
        done: u64,
        len: usize,
        access: Access,
    ) -> Result<(Span<'m>, u64), Fault> {
        match self {
            Control::Memory(base) => {
                let address = base.wrapping_add(done) & ADDRESS_MASK;
                Ok((gam.span(space, address, len, access)?, address))
            }
            Control::Surface(base) => {
                let main = base & !(BLOCK as u64 - 1);
                let address = main.wrapping_add(done.wrapping_mul(BLOCK as u64)) & ADDRESS_MASK;
                Ok((gam.ccs_span(space, address, len.saturating_mul(BLOCK), access)?, address))
            }
        }
    }
}

/// A copy of control bytes, with its progress.
#[derive(Clone, Copy, Debug)]
pub struct ControlCopy {
    /// Source.
    pub from: Control,
    /// Destination.
    pub to: Control,
    /// Number of control bytes: at most 256 KiB.
    pub len: u64,
    /// Number of control bytes copied so far.
    pub done: u64,
}

impl ControlCopy {
    /// Continues the copy for about `budget` bytes.
    pub fn step(&mut self, gam: &mut Gam<'_>, space: Space, budget: usize) -> Result<Progress, Fault> {
        let mut spent = 0_usize;
        while self.done < self.len {
            if spent >= budget && spent > 0 {
                return Ok(Progress::More);
            }
            let left = size(self.len.saturating_sub(self.done));
            let (to, address) = self.to.open(gam, space, self.done, left, Access::Write)?;
            let (from, origin) = self.from.open(gam, space, self.done, to.len(), Access::Read)?;
            from.copy_to(&to, from.len()).map_err(|error| match error {
                CopyError::Source(_) => not_mapped(space, origin, Access::Read),
                CopyError::Destination(_) => not_mapped(space, address, Access::Write),
            })?;
            self.done = self.done.saturating_add(from.len() as u64);
            spent = spent.saturating_add(from.len().max(BLOCK));
        }
        Ok(Progress::Done)
    }
}

fn not_mapped(space: Space, address: u64, access: Access) -> Fault {
    Fault { space, address, access, reason: FaultReason::NotMapped }
}
