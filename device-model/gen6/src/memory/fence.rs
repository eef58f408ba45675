// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Fences: the tiled regions of the aperture (ILK-055..063, G67-062).

use arctic_base::blitter::tiling::{Surface, Tiling};
use arctic_sriov::number::low;

use super::tiling::Walk;
use super::{PAGE, PAGES};
use crate::registers::fence::{FENCE_PAGE, FENCE_PITCH, FENCE_VALID, FENCE_WALK_Y, PITCH_UNIT};

/// A fence: a region of pages, and the surface of which it shows the bytes in row order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fence {
    /// First page.
    first: u32,
    /// Last page, inclusive.
    last: u32,
    /// The tiles, from the first page on.
    surface: Surface,
}

impl Fence {
    /// Decodes the dwords of a fence register; `None` if the fence is not valid, or has no page because its bounds are
    /// reversed. The tiles are swizzled or not. The document has no meaning for an X pitch that is not a multiple of 512
    /// bytes (ILK-058): it is rounded down, to at least one tile.
    pub fn decode(low: u32, high: u32, swizzled: bool) -> Option<Fence> {
        let (first, last) = (FENCE_PAGE.get(low), FENCE_PAGE.get(high));
        if !FENCE_VALID.is_set(low) || last < first {
            return None;
        }
        let layout = if FENCE_WALK_Y.is_set(low) { Walk::Y } else { Walk::X }.layout(swizzled);
        let (width, _) = layout.extent();
        let pitch = FENCE_PITCH.get(high).saturating_add(1).saturating_mul(PITCH_UNIT);
        let pitch = (pitch & !width.saturating_sub(1)).max(width);
        let base = u64::from(first).saturating_mul(PAGE.into());
        let tiling = Tiling::Tiled(layout);
        Some(Fence { first, last, surface: Surface::new(base, pitch.into(), tiling) })
    }

    /// Place of the byte at `address` of the region, and the number of bytes from it on that are contiguous (ILK-055). These
    /// end before the end of the row and of the fence at the latest: both are at the end of a tile's row.
    #[inline]
    #[allow(clippy::arithmetic_side_effects, reason = "a pitch is a tile at least, and 256 KiB at most")]
    fn place(&self, address: u32) -> (u32, u64) {
        let offset = i64::from(address).saturating_sub_unsigned(self.surface.base);
        let (row, column) = (offset / self.surface.pitch, offset % self.surface.pitch);
        (low(self.surface.address(column, row)), self.surface.run(column))
    }
}

/// Pages to which a fence applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Region {
    first: u32,
    last: u32,
    fence: Fence,
}

/// The fences of a card: regions in ascending order that do not overlap. The document has no meaning for fences that
/// overlap (ILK-060): the one with the lowest number applies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fences {
    regions: Vec<Region>,
}

impl FromIterator<Fence> for Fences {
    /// The fences, in the order of their numbers.
    fn from_iter<I: IntoIterator<Item = Fence>>(fences: I) -> Self {
        let mut this = Fences::default();
        for fence in fences {
            let mut page = fence.first;
            while page <= fence.last {
                let (taken, last) = this.find(page);
                let last = last.min(fence.last);
                if taken.is_none() {
                    let at = this.regions.partition_point(|region| region.last < page);
                    this.regions.insert(at, Region { first: page, last, fence });
                }
                page = last.saturating_add(1);
            }
        }
        this
    }
}

impl Fences {
    /// The fence of `page`, and the last page up to which that does not change.
    #[inline]
    fn find(&self, page: u32) -> (Option<&Fence>, u32) {
        let next = self.regions.partition_point(|region| region.last < page);
        match self.regions.get(next) {
            Some(region) if region.first <= page => (Some(&region.fence), region.last),
            Some(region) => (None, region.first.saturating_sub(1)),
            None => (None, PAGES.saturating_sub(1)),
        }
    }

    /// Graphics address of the byte that the aperture shows at `address`, and the number of bytes from it on, 1 to
    /// `len`, that follow it in both. `len` must not be 0.
    #[inline]
    pub fn place(&self, address: u32, len: usize) -> (u32, usize) {
        let (fence, last) = self.find(address / PAGE);
        let (at, run) = match fence {
            Some(fence) => fence.place(address),
            None => {
                let end = u64::from(last).saturating_add(1).saturating_mul(PAGE.into());
                (address, end.saturating_sub(address.into()))
            }
        };
        (at, len.min(usize::try_from(run).unwrap_or(usize::MAX)))
    }
}
