// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Raster operations of the XY commands: computation of destination pixels.

/// Raster operation code of a plain copy of the source.
pub const SRC_COPY: u8 = 0xcc;
/// Raster operation code of a plain fill with the pattern.
pub const PAT_COPY: u8 = 0xf0;

/// Number of bytes combined per iteration; a multiple of the pixel size.
const PIECE: usize = 256;

/// A raster operation with its channel mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raster {
    /// Bit `4 * pattern + 2 * source + destination` is the result for these three bits.
    pub code: u8,
    /// Writable bytes of a 32-bit pixel, one bit each; all four for other pixel sizes.
    pub channels: u8,
}

impl Raster {
    /// Returns whether the new pixels (a pattern, or a source) replace the old ones unchanged.
    #[inline]
    pub fn plain(self, pattern: bool) -> bool {
        self.code == if pattern { PAT_COPY } else { SRC_COPY } && self.channels == 0xf
    }

    /// Combines `new` (a pattern, or a source) with the contents of `old`, which starts at channel `phase` of a pixel.
    pub fn merge(self, old: &mut [u8], new: &[u8], pattern: bool, phase: usize) {
        let mut result = [0u8; PIECE];
        for (old, new) in old.chunks_mut(PIECE).zip(new.chunks(PIECE)) {
            let Some(result) = result.get_mut(..old.len()) else { return };
            result.fill(0);
            for term in (0..8u8).filter(|term| self.code >> term & 1 != 0) {
                let flip = |bit: u8| if term & bit != 0 { 0 } else { 0xff };
                let (p, s, d) = (flip(4), flip(2), flip(1));
                // The command has only one of pattern and source; the other operand is zero.
                let (absent, operand) = if pattern { (s, p) } else { (p, s) };
                if absent == 0 {
                    continue;
                }
                for ((result, old), new) in result.iter_mut().zip(old.iter()).zip(new) {
                    *result |= (new ^ operand) & (old ^ d);
                }
            }
            if self.channels == 0xf {
                old.copy_from_slice(result);
                continue;
            }
            // A piece is a multiple of the pixel, so each one starts in the same phase.
            let mask = |n: usize| if self.channels >> (n.wrapping_add(phase) % 4) & 1 != 0 { 0xff } else { 0 };
            let masks = [0, 1, 2, 3].map(mask);
            for (old, result) in old.chunks_mut(4).zip(result.chunks(4)) {
                for ((old, result), mask) in old.iter_mut().zip(result).zip(masks) {
                    *old = *old & !mask | result & mask;
                }
            }
        }
    }
}
