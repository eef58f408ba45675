// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Where a byte of a surface is in memory: X and Y tiles, and swizzled addresses (ILK-047..055, IVB-010).

/// The layout of a surface; each discriminant is i915's number of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Tiling {
    /// Row by row.
    Linear = 0,
    /// Tiles of 512 bytes by 8 rows.
    X = 1,
    /// Tiles of 128 bytes by 32 rows, in columns of 16 bytes.
    Y = 2,
}

/// The address bits that are added to bit 6 of the address of tiled memory, without carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swizzle {
    bits: &'static [u32],
}

impl Swizzle {
    /// The swizzling of one of i915's modes (`I915_BIT_6_SWIZZLE_*`); `None` if it depends on the physical address, or is
    /// unknown.
    pub fn of_mode(mode: u32) -> Option<Self> {
        let modes: [&[u32]; 5] = [&[], &[9], &[9, 10], &[9, 11], &[9, 10, 11]];
        modes.get(mode as usize).map(|bits| Swizzle { bits })
    }

    /// The offset at which the byte with the unswizzled offset `at` is.
    fn apply(self, at: usize) -> usize {
        self.bits.iter().fold(at, |swizzled, bit| swizzled ^ (at >> bit & 1) << 6)
    }
}

/// Returns the offset of byte `x` of row `y` in a surface with rows of `pitch` bytes.
pub fn offset(tiling: Tiling, swizzle: Swizzle, pitch: usize, x: usize, y: usize) -> usize {
    let tiled = |width: usize, height: usize, inside: usize| {
        swizzle.apply((y / height) * height * pitch + (x / width) * 4096 + inside)
    };
    match tiling {
        Tiling::Linear => y * pitch + x,
        Tiling::X => tiled(512, 8, (y % 8) * 512 + x % 512),
        Tiling::Y => tiled(128, 32, (x % 128 / 16) * 512 + (y % 32) * 16 + x % 16),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The documents' examples: X at pitch 1024, Y at pitch 256.
    #[test]
    fn tiled_offsets_equal_the_examples_of_the_documents() {
        let none = Swizzle::default();
        assert_eq!(offset(Tiling::Linear, none, 1024, 600, 9), 9816);
        assert_eq!(offset(Tiling::X, none, 1024, 600, 9), 4096 * 3 + 512 + 88);
        assert_eq!(offset(Tiling::Y, none, 256, 130, 33), 4096 * 3 + 16 + 2);
    }

    #[test]
    fn swizzled_tiles_cover_their_memory_once() {
        for (tiling, pitch, height, mode) in
            [(Tiling::X, 1024, 16, 0), (Tiling::X, 1024, 16, 2), (Tiling::Y, 256, 64, 0), (Tiling::Y, 256, 64, 1)]
        {
            let swizzle = Swizzle::of_mode(mode).unwrap();
            let mut seen = vec![false; pitch * height];
            for (x, y) in (0..height).flat_map(|y| (0..pitch).map(move |x| (x, y))) {
                let at = offset(tiling, swizzle, pitch, x, y);
                assert!(!std::mem::replace(&mut seen[at], true), "{tiling:?} mode {mode} {x},{y}");
            }
        }
    }

    /// Bit 6 changes by bits 9 and 10 of the same address.
    #[test]
    fn a_swizzled_address_differs_in_bit_6() {
        let x = Swizzle::of_mode(2).unwrap();
        assert_eq!(offset(Tiling::X, x, 1024, 0, 0), 0);
        assert_eq!(offset(Tiling::X, x, 1024, 0, 1), 512 ^ 64);
        assert_eq!(offset(Tiling::X, x, 1024, 0, 2), 1024 ^ 64);
        assert_eq!(offset(Tiling::X, x, 1024, 0, 3), 1536);
        assert_eq!(Swizzle::of_mode(5), None);
    }
}
