// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Flat CCS: one byte of compression control data for each 256 bytes of local memory.
//!
//! Approximate: Intel does not publish the format of a compressed block. In this model a block with a control byte of
//! zero stores its pixels unchanged; any other block stores them XORed with that byte. This preserves the properties
//! that software can observe: a raw read of compressed memory does not return the pixels, XY_CTRL_SURF_COPY_BLT copies
//! the control data, a block with a modified control byte decompresses to other data, restoring the byte restores the
//! pixels, and zero (the value to which drivers clear it) means uncompressed.

use arctic_base::blitter::{Compression, Piece};
use arctic_sriov::number::size;

use crate::memory::ccs::BLOCK;
use crate::memory::{Span, SpanError};

/// Control byte of a block compressed by the copy engine.
const COMPRESSED: u8 = 0x5c;

/// The control bytes of a span of main memory, starting with that of the block that contains the span's first byte.
pub struct ControlBytes<'m>(pub Span<'m>);

impl<'m> ControlBytes<'m> {
    fn of<'a>(&'a self, memory: Piece<'a, 'm>) -> Controlled<'a, 'm> {
        let Piece { span, start, offset } = memory;
        Controlled { span, control: &self.0, start, offset }
    }

    /// Writes pixels, as [`Compression::write`] does; but a block that is not compressed remains so.
    pub fn write_in_form(&self, memory: Piece<'_, 'm>, data: &[u8]) -> Result<(), SpanError> {
        self.of(memory).write_in_form(data)
    }
}

impl Compression for ControlBytes<'_> {
    fn read(&self, memory: Piece<'_, '_>, data: &mut [u8]) -> Result<(), SpanError> {
        self.of(memory).read(data)
    }

    fn write(&self, memory: Piece<'_, '_>, data: &[u8]) -> Result<(), SpanError> {
        self.of(memory).write(data)
    }

    fn resolve(&self, memory: Piece<'_, '_>, len: usize) -> Result<(), SpanError> {
        self.of(memory).resolve(len)
    }
}

/// Main memory at `offset` of `span`, with its control data.
#[derive(Clone, Copy)]
struct Controlled<'a, 'm> {
    /// The opened main memory.
    span: &'a Span<'m>,
    /// Its control bytes, starting with that of the block that contains `start`.
    control: &'a Span<'m>,
    /// Address of the span's first byte.
    start: u64,
    /// Offset of the access in the span.
    offset: usize,
}

impl Controlled<'_, '_> {
    /// Offset of the span's first byte in its block.
    #[allow(clippy::arithmetic_side_effects, reason = "BLOCK is not 0")]
    fn phase(&self) -> usize {
        size(self.start % BLOCK as u64)
    }

    /// Splits an access into blocks: calls `each(offset of the part in the span, range of the access, index of the
    /// control byte)`.
    fn each(
        &self,
        len: usize,
        mut each: impl FnMut(usize, std::ops::Range<usize>, usize) -> Result<(), SpanError>,
    ) -> Result<(), SpanError> {
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

    fn control(&self, index: usize) -> Result<u8, SpanError> {
        let mut byte = [0];
        self.control.part(index, 1).read(&mut byte)?;
        Ok(byte[0])
    }

    /// Reads and decompresses pixels.
    fn read(&self, data: &mut [u8]) -> Result<(), SpanError> {
        self.span.part(self.offset, data.len()).read(data)?;
        self.each(data.len(), |_, range, index| {
            combine(data.get_mut(range).unwrap_or_default(), self.control(index)?);
            Ok(())
        })
    }

    /// Writes pixels; the blocks that contain them become compressed.
    fn write(&self, data: &[u8]) -> Result<(), SpanError> {
        self.each(data.len(), |at, range, index| {
            let mut key = self.control(index)?;
            if key == 0 {
                key = COMPRESSED;
                if range.len() < BLOCK {
                    self.rewrite(at, key)?;
                }
                self.control.part(index, 1).write(&[key])?;
            }
            self.write_with(at, data.get(range).unwrap_or_default(), key)
        })
    }

    /// Writes pixels in the form that their blocks have.
    fn write_in_form(&self, data: &[u8]) -> Result<(), SpanError> {
        self.each(data.len(), |at, range, index| {
            self.write_with(at, data.get(range).unwrap_or_default(), self.control(index)?)
        })
    }

    /// Writes pixels of one block, which has the control byte `key`.
    fn write_with(&self, at: usize, data: &[u8], key: u8) -> Result<(), SpanError> {
        let mut block = [0; BLOCK];
        let block = block.get_mut(..data.len()).unwrap_or_default();
        block.copy_from_slice(data);
        combine(block, key);
        self.span.part(at, data.len()).write(block)
    }

    /// Decompresses every block of the next `len` bytes in place.
    fn resolve(&self, len: usize) -> Result<(), SpanError> {
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
    fn rewrite(&self, at: usize, key: u8) -> Result<(), SpanError> {
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
