// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Where the levels of an image are in its surface. EU-043.

/// Layout of the levels of an image in each of its planes (Mesa isl.c: `get_image_offset_sa_gfx4_2d`, `_gfx9_1d`): level 1 is below
/// level 0, level 2 to the right of level 1, and each further one below the level before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MipLayout {
    /// Columns and rows of level 0, in texels.
    pub size: [u32; 2],
    /// What the columns and rows of each level are rounded up to, powers of two of at most 2^16.
    pub align: [u32; 2],
    /// Levels of lines are one behind the other.
    pub in_line: bool,
}

impl MipLayout {
    /// Most levels of a surface.
    pub const MOST: u8 = 15;

    /// The layout of a surface with one level.
    pub const ONE: MipLayout = MipLayout { size: [1; 2], align: [1; 2], in_line: false };

    /// True if the alignments are powers of two of at most 2^16.
    pub fn is_valid(&self) -> bool {
        self.align.iter().all(|align| align.is_power_of_two() && *align <= 1 << 16)
    }

    /// Column and row of the first texel of a level. Levels from [`MipLayout::MOST`] on are at the place of the last one.
    #[inline]
    pub fn corner(&self, level: u8) -> [u32; 2] {
        if level == 0 { [0; 2] } else { self.further(level.min(Self::MOST - 1)) }
    }

    fn further(&self, level: u8) -> [u32; 2] {
        let extent = |axis: usize, level: u8| {
            let size = self.size[axis].checked_shr(level.into()).unwrap_or(0).max(1);
            let rest = self.align[axis].wrapping_sub(1);
            size.saturating_add(rest) & !rest
        };
        let sum = |axis, levels: &mut dyn Iterator<Item = u8>| {
            levels.fold(0u32, |sum, level| sum.saturating_add(extent(axis, level)))
        };
        if self.in_line {
            return [sum(0, &mut (0..level)), 0];
        }
        let column = if level > 1 { extent(0, 1) } else { 0 };
        [column, sum(1, &mut (0..level).filter(|level| *level != 1))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A surface of 100 by 60 texels, aligned to 8 by 4: 50 x 30, 25 x 15, 12 x 7, 6 x 3, 3 x 1, 1 x 1.
    #[test]
    fn levels_are_below_and_beside_each_other() {
        let layout = MipLayout { size: [100, 60], align: [8, 4], in_line: false };
        let corners = [0, 1, 2, 3, 4, 5, 6].map(|level| layout.corner(level));
        assert_eq!(corners, [[0, 0], [0, 60], [56, 60], [56, 76], [56, 84], [56, 88], [56, 92]]);
        let line = MipLayout { in_line: true, ..layout };
        assert_eq!([0, 1, 2, 3].map(|level| line.corner(level)), [[0, 0], [104, 0], [160, 0], [192, 0]]);
        assert_eq!(layout.corner(14), layout.corner(255));
    }

    proptest::proptest! {
        /// Levels of one plane do not overlap, whatever the size is.
        #[test]
        fn levels_do_not_overlap(width in 1u32..20_000, height in 1u32..20_000, align in 0..4u32, in_line: bool) {
            let height = if in_line { 1 } else { height };
            let layout = MipLayout { size: [width, height], align: [1 << align, 4], in_line };
            let count = 32 - width.max(height).leading_zeros();
            let levels: Vec<_> = (0..count as u8).map(|level| {
                let [x, y] = layout.corner(level);
                let size = |size: u32| (size >> level).max(1);
                [x, y, x + size(width), y + size(height)]
            }).collect();
            for (index, [left, top, right, bottom]) in levels.iter().enumerate() {
                for [x0, y0, x1, y1] in &levels[index + 1..] {
                    proptest::prop_assert!(x0 >= right || x1 <= left || y0 >= bottom || y1 <= top);
                }
            }
        }
    }
}
