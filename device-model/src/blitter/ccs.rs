//! Flat CCS: the byte of compression control that stands for each 256 bytes of local memory.
//!
//! Approximate: Intel does not publish how a compressed block looks. Here a block whose control byte is zero holds
//! its pixels as they are, and any other block holds them combined (exclusive or) with that byte. So the properties
//! that software can see hold: compressed memory read raw is not the pixels, the control travels by
//! XY_CTRL_SURF_COPY_BLT, a block with a changed control byte decompresses to something else, the right byte brings
//! the pixels back, and zero (what the drivers clear to) means uncompressed.

use crate::memory::Span;
use crate::memory::ccs::BLOCK;
use crate::world::DmaFault;

/// The control byte of a block that the copy engine has compressed.
const COMPRESSED: u8 = 0x5c;

/// Main memory from `offset` of `span` on, with its control.
#[derive(Clone, Copy)]
pub struct Controlled<'a, 'm> {
    /// Open memory.
    pub span: &'a Span<'m>,
    /// Its control bytes, the first for the block that holds `start`. A NULL span: memory without control.
    pub control: &'a Span<'m>,
    /// Address of the span's first byte.
    pub start: u64,
    /// Where the access begins.
    pub offset: usize,
}

impl Controlled<'_, '_> {
    fn plain(&self) -> bool {
        matches!(self.control, Span::Null(_))
    }

    /// Calls `each(offset of the part in the span, range of the access, control byte's index)` block by block.
    fn each(
        &self,
        len: usize,
        mut each: impl FnMut(usize, std::ops::Range<usize>, usize) -> Result<(), DmaFault>,
    ) -> Result<(), DmaFault> {
        let phase = (self.start % BLOCK as u64) as usize;
        let mut done = 0;
        while done < len {
            let at = self.offset + done;
            let n = (BLOCK - (phase + at) % BLOCK).min(len - done);
            each(at, done..done + n, (phase + at) / BLOCK)?;
            done += n;
        }
        Ok(())
    }

    fn control(&self, index: usize) -> Result<u8, DmaFault> {
        let mut byte = [0];
        self.control.part(index, 1).read(&mut byte)?;
        Ok(byte[0])
    }

    /// Reads pixels.
    pub fn read(&self, data: &mut [u8]) -> Result<(), DmaFault> {
        self.span.part(self.offset, data.len()).read(data)?;
        if self.plain() {
            return Ok(());
        }
        self.each(data.len(), |_, range, index| {
            combine(&mut data[range], self.control(index)?);
            Ok(())
        })
    }

    /// Writes pixels; the blocks they are in become compressed.
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
            let block = &mut block[..range.len()];
            block.copy_from_slice(&data[range]);
            combine(block, key);
            self.span.part(at, block.len()).write(block)
        })
    }

    /// Makes every block of the next `len` bytes uncompressed.
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

    /// Combines the whole block that holds offset `at` with `key`: from plain to compressed, and back.
    fn rewrite(&self, at: usize, key: u8) -> Result<(), DmaFault> {
        let phase = (self.start % BLOCK as u64) as usize;
        let first = at.saturating_sub((phase + at) % BLOCK);
        let span = self.span.part(first, BLOCK);
        let mut block = [0; BLOCK];
        let block = &mut block[..span.len()];
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
