// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Plain fills of linear memory; contiguous rows are one run.

use arctic_sriov::number::size;

use super::{Rectangle, cells};
use crate::blitter::ranges::TranslatedRanges;
use crate::blitter::tiling::{BLOCK_BYTES, Surface};
use crate::blitter::{BlitMemory, Progress};
use crate::memory::Access;
use crate::memory::region::Aligned;

/// Maximum number of bytes of a pixel.
const LONGEST_PIXEL: usize = 16;
/// Minimum number of bytes of a fill for which a block of repeated pixels is prepared.
const WORTH_A_PATTERN: u64 = 2 * BLOCK_BYTES as u64;
/// Cost of checking that a page contains no data, in bytes of linear copy.
const CHECK_COST: u64 = 16 << 10;
impl Rectangle {
    /// The bytes of a linear rectangle from byte `done` on that are contiguous in memory: column and row, relative to the
    /// rectangle, and length, at most `limit`. `merged` if all rows are contiguous.
    #[allow(clippy::arithmetic_side_effects, reason = "the widths of the command fields bound every Area")]
    #[inline]
    pub(super) fn run(&self, done: u64, merged: bool, limit: usize) -> (i64, i64, usize) {
        let width = u64::from(self.area.width);
        let total = self.bytes();
        let (column, row) = (done % width, done / width);
        let left = if merged { total - done } else { width - column };
        (column as i64, row as i64, size(left.min(limit.max(1) as u64)))
    }

    /// Number of bytes of the rectangle.
    #[allow(clippy::arithmetic_side_effects, reason = "the widths of the command fields bound every Area")]
    pub(super) fn bytes(&self) -> u64 {
        u64::from(self.area.width) * u64::from(self.area.height)
    }

    /// Returns whether the rows are contiguous in a surface.
    pub(super) fn is_merged(&self, surface: &Surface) -> bool {
        surface.pitch == i64::from(self.area.width)
    }

    /// Fills the rectangle with a pixel.
    #[allow(clippy::arithmetic_side_effects, reason = "the widths of the command fields bound every Area")]
    pub(super) fn fill_linear<'m, M: BlitMemory<'m>>(
        &mut self,
        memory: &mut M,
        space: M::Space,
        budget: usize,
        pixel: &[u8],
    ) -> Result<Progress, M::Fault> {
        let merged = self.is_merged(&self.destination);
        let mut into = TranslatedRanges::<M>::new(space, Access::Write, false);
        let total = self.bytes();
        let zeros = merged && pixel.iter().all(|byte| *byte == 0);
        // Many short spans, such as pages of 4 KiB, are written from one block of repeated pixels.
        let mut block: Option<Aligned<{ BLOCK_BYTES + LONGEST_PIXEL }>> = None;
        while self.done < total {
            let spent = into.spent();
            if spent >= budget && spent > 0 {
                return Ok(Progress::More);
            }
            let (column, row, len) = self.run(self.done, merged, budget.saturating_sub(spent));
            let address = self.destination.address(self.area.column + column, self.area.row + row);
            if zeros && let Some(zeroed) = memory.zero(space, address, total - self.done)? {
                self.done += zeroed.len;
                into.charge_mapped(size(zeroed.held.max(CHECK_COST)));
                continue;
            }
            let destination = into.open(memory, address, len)?;
            let n = destination.len();
            let phase = size(column.unsigned_abs()) % pixel.len().max(1);
            let filled = if n <= BLOCK_BYTES && total >= WORTH_A_PATTERN {
                let block = block.get_or_insert_with(|| {
                    let mut block = Aligned([0; BLOCK_BYTES + LONGEST_PIXEL]);
                    cells::repeat(pixel, 0, &mut block.0);
                    block
                });
                destination.write(block.0.get(phase..phase + n).unwrap_or_default())
            } else {
                let (first, second) = pixel.split_at_checked(phase).unwrap_or((pixel, &[]));
                let mut rotated = [0; LONGEST_PIXEL];
                rotated.iter_mut().zip(second.iter().chain(first)).for_each(|(into, byte)| *into = *byte);
                destination.fill(rotated.get(..pixel.len()).unwrap_or_default())
            };
            filled.map_err(|_| into.not_mapped(address))?;
            into.charge(&destination, n);
            self.done += n as u64;
        }
        Ok(Progress::Done)
    }
}
