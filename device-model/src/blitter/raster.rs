//! Raster operations of the XY commands: what becomes of a destination pixel.

/// The code of a plain copy of the source.
pub const SRC_COPY: u8 = 0xcc;
/// The code of a plain fill with the pattern.
pub const PAT_COPY: u8 = 0xf0;

/// A raster operation with the channels that it may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raster {
    /// Bit `4 * pattern + 2 * source + destination` is the result for those three bits.
    pub code: u8,
    /// Bytes of a 32-bit pixel that change, one bit each; all four for other pixel sizes.
    pub channels: u8,
}

impl Raster {
    /// True where the new pixels (a pattern, or a source) simply replace the old ones.
    pub fn plain(self, pattern: bool) -> bool {
        self.code == if pattern { PAT_COPY } else { SRC_COPY } && self.channels == 0xf
    }

    /// Combines `new` with what is in `old`, which starts at channel `phase`; `new` is a pattern (colour) or a source.
    pub fn merge(self, old: &mut [u8], new: &[u8], pattern: bool, phase: usize) {
        for (index, (old, new)) in old.iter_mut().zip(new).enumerate() {
            if self.channels >> ((index + phase) % 4) & 1 == 0 {
                continue;
            }
            let (p, s) = if pattern { (*new, 0) } else { (0, *new) };
            *old = self.combine(p, s, *old);
        }
    }

    fn combine(self, pattern: u8, source: u8, destination: u8) -> u8 {
        let when = |wanted: bool, byte: u8| if wanted { byte } else { !byte };
        (0..8u8)
            .filter(|term| self.code >> term & 1 != 0)
            .map(|term| when(term & 4 != 0, pattern) & when(term & 2 != 0, source) & when(term & 1 != 0, destination))
            .fold(0, |all, term| all | term)
    }
}
