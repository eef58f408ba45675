// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Flat CCS: one byte of compression control data for each 256 bytes of local memory.
//!
//! Approximate: Intel does not publish the format of a compressed block. In this model a block with a control byte of
//! zero stores its pixels unchanged; any other block stores them XORed with that byte. This preserves the properties
//! that software can observe: a raw read of compressed memory does not return the pixels, XY_CTRL_SURF_COPY_BLT copies
//! the control data, a block with a modified control byte decompresses to other data, restoring the byte restores the
//! pixels, and zero (the value to which drivers clear it) means uncompressed.

use arctic_sriov::number::size;

use crate::host::DmaFault;
use crate::memory::Span;
use crate::memory::ccs::BLOCK;

/// Control byte of a block compressed by the copy engine.
const COMPRESSED: u8 = 0x5c;

/// Main memory at `offset` of `span`, with its control data.
#[derive(Clone, Copy)]
pub struct Controlled<'a, 'm> {
    /// The opened main memory.
    pub span: &'a Span<'m>,
    /// Its control bytes, starting with that of the block that contains `start`; a NULL span if the memory has no
    /// control data.
    pub control: &'a Span<'m>,
    /// Address of the span's first byte.
    pub start: u64,
    /// Offset of the access in the span.
    pub offset: usize,
}

impl Controlled<'_, '_> {
    /// Offset of the span's first byte in its block.
    #[allow(clippy::arithmetic_side_effects, reason = "BLOCK is not 0")]
    fn phase(&self) -> usize {
        size(self.start % BLOCK as u64)
    }

    fn plain(&self) -> bool {
        matches!(self.control, Span::Null(_))
    }

    /// Splits an access into blocks: calls `each(offset of the part in the span, range of the access, index of the
    /// control byte)`.
    fn each(
        &self,
        len: usize,
        mut each: impl FnMut(usize, std::ops::Range<usize>, usize) -> Result<(), DmaFault>,
    ) -> Result<(), DmaFault> {
        let phase = self.phase();
        let mut done = 0_usize;
        while done < len {
            let at = self.offset.saturating_add(done);
            let from_block = phase.saturating_add(at);
            // At least 1, so the loop ends.
            let n = BLOCK.wrapping_sub(from_block % BLOCK).min(len.saturating_sub(done));
            let end = done.saturating_add(n);
            each(at, done..end, from_block / BLOCK)?;
            done = end;
        }
        Ok(())
    }

    fn control(&self, index: usize) -> Result<u8, DmaFault> {
        let mut byte = [0];
        self.control.part(index, 1).read(&mut byte)?;
        Ok(byte[0])
    }

    /// Reads and decompresses pixels.
    pub fn read(&self, data: &mut [u8]) -> Result<(), DmaFault> {
        self.span.part(self.offset, data.len()).read(data)?;
        if self.plain() {
            return Ok(());
        }
        self.each(data.len(), |_, range, index| {
            combine(data.get_mut(range).unwrap_or_default(), self.control(index)?);
            Ok(())
        })
    }

    /// Writes pixels; the blocks that contain them become compressed.
    pub fn write(&self, data: &[u8]) -> Result<(), DmaFault> {
        if self.plain() {
            return self.span.part(self.offset, data.len()).write(data);
        }
        self.each(data.len(), |at, range, index| {
            let mut key = self.control(index)?;
            if key == 0 {
                key = COMPRESSED;
                if range.len() < BLOCK {
                    self.rewrite(at, key)?;
                }
                self.control.part(index, 1).write(&[key])?;
            }
            let mut block = [0; BLOCK];
            let len = range.len();
            block.iter_mut().zip(data.get(range).unwrap_or_default()).for_each(|(to, from)| *to = *from);
            let block = block.get_mut(..len).unwrap_or_default();
            combine(block, key);
            self.span.part(at, len).write(block)
        })
    }

    /// Decompresses every block of the next `len` bytes in place.
    pub fn resolve(&self, len: usize) -> Result<(), DmaFault> {
        if self.plain() {
            return Ok(());
        }
        self.each(len, |at, _, index| match self.control(index)? {
            0 => Ok(()),
            key => {
                self.rewrite(at, key)?;
                self.control.part(index, 1).write(&[0])
            }
        })
    }

    /// XORs the whole block that contains offset `at` with `key`, which compresses an uncompressed block and
    /// decompresses a compressed one.
    fn rewrite(&self, at: usize, key: u8) -> Result<(), DmaFault> {
        let phase = self.phase();
        let first = at.saturating_sub(phase.saturating_add(at) % BLOCK);
        let span = self.span.part(first, BLOCK);
        let mut block = [0; BLOCK];
        let block = block.get_mut(..span.len()).unwrap_or_default();
        span.read(block)?;
        combine(block, key);
        span.write(block)
    }
}

fn combine(data: &mut [u8], key: u8) {
    if key != 0 {
        data.iter_mut().for_each(|byte| *byte ^= key);
    }
}
