// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Groups of one size. Where a global size is no multiple of the local size, the last groups in that direction are smaller, and
//! the launch is divided as a driver divides it into walkers: one region for each combination of whole and partial sizes, with a
//! payload of its own (NEO: `dispatch_info_builder.h`).

use super::Range;

/// What the groups of one size have in common.
pub struct Region {
    /// Work items of a group.
    pub local: [u32; 3],
    /// First registers behind r0 that are the same for all threads: inline data.
    pub inline: [u8; 32],
    /// Address of cross-thread and per-thread data.
    pub indirect: u64,
    /// Local ids come in registers.
    pub ids_in_registers: bool,
    /// First uop.
    pub entry: u32,
}

impl Range {
    /// Work items of a whole group: in a direction with fewer items, all of them.
    pub fn whole(&self) -> [u32; 3] {
        [0, 1, 2].map(|index| self.local[index].min(self.global[index]).max(1))
    }

    /// Groups in each direction, a partial one among them.
    pub fn groups(&self) -> [u32; 3] {
        [0, 1, 2].map(|index| self.global[index].div_ceil(self.local[index].max(1)))
    }

    /// Number of the region of a group: a bit for each direction in which the group is the partial one.
    pub fn region(&self, group: [u32; 3]) -> usize {
        let whole = self.whole();
        (0..3).filter(|index| group[*index] >= self.global[*index] / whole[*index]).map(|index| 1 << index).sum()
    }

    /// Work items of a group of each region; `None` for a region without groups. The first has the largest groups.
    pub fn regions(&self) -> [Option<[u32; 3]>; 8] {
        let whole = self.whole();
        let mut number = 0;
        [(); 8].map(|()| {
            let bits = number;
            number += 1;
            let mut local = whole;
            for index in (0..3).filter(|index| bits >> index & 1 != 0) {
                local[index] = self.global[index] % whole[index];
            }
            (!local.contains(&0)).then_some(local)
        })
    }
}

/// Work items of a group of this size.
pub fn items(local: [u32; 3]) -> u64 {
    local.iter().map(|size| u64::from(*size)).product()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each group is in a region, and the regions have all work items.
    #[test]
    fn regions_divide_the_range() {
        for (global, local) in
            [([10, 7, 1], [4, 4, 1]), ([3, 1, 5], [8, 1, 2]), ([64, 2, 2], [16, 2, 2]), ([9, 9, 9], [2, 4, 5])]
        {
            let range = Range { global, local, offset: [0; 3] };
            let regions = range.regions();
            let [width, height, depth] = range.groups();
            let mut sum = 0;
            for group in (0..width * height * depth).map(|n| [n % width, n / width % height, n / width / height]) {
                let size = regions[range.region(group)].unwrap();
                for index in 0..3 {
                    let start = group[index] * range.whole()[index];
                    assert_eq!(size[index], range.whole()[index].min(global[index] - start), "{group:?}");
                }
                sum += items(size);
            }
            assert_eq!(sum, items(global));
        }
    }
}
