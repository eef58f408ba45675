// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Groups of one size. Where a global size is no multiple of the local size, the last groups in that direction are smaller, and
//! the launch is divided as a driver divides it into walkers: one region for each combination of full and partial sizes, with a
//! payload of its own (NEO: `dispatch_info_builder.h`).

use super::memory::Space;
use super::payload::{store, triple};
use super::{LaunchError, LocalIds, Range, Settings, implicit, threads};
use crate::exec::Program;
use crate::exec::payload::{self, Dispatch, Header, LocalIds as IdRegisters, Payload};
use crate::zebin::Kernel;

/// What the groups of one size have in common.
pub struct Region {
    /// Work items of a group.
    pub local: [u32; 3],
    /// What its threads start with.
    pub payload: Payload,
    /// First uop.
    pub entry: u32,
}

impl Range {
    /// Work items of a full group: in a direction with fewer items, all of them.
    pub fn full(&self) -> [u32; 3] {
        [0, 1, 2].map(|index| self.local[index].min(self.global[index]).max(1))
    }

    /// Groups in each direction, a partial one among them.
    pub fn groups(&self) -> [u32; 3] {
        [0, 1, 2].map(|index| self.global[index].div_ceil(self.local[index].max(1)))
    }

    /// Number of the region of a group: a bit for each direction in which the group is the partial one.
    pub fn region(&self, group: [u32; 3]) -> usize {
        let full = self.full();
        (0..3).filter(|index| group[*index] >= self.global[*index] / full[*index]).map(|index| 1 << index).sum()
    }

    /// Work items of a group of each region; `None` for a region without groups. The first has the largest groups.
    pub fn regions(&self) -> [Option<[u32; 3]>; 8] {
        let full = self.full();
        let mut number = 0;
        [(); 8].map(|()| {
            let bits = number;
            number += 1;
            let mut local = full;
            for index in (0..3).filter(|index| bits >> index & 1 != 0) {
                local[index] = self.global[index] % full[index];
            }
            (!local.contains(&0)).then_some(local)
        })
    }
}

/// Work items of a group of this size.
pub fn items(local: [u32; 3]) -> u64 {
    local.iter().fold(1, |items: u64, size| items.saturating_mul(u64::from(*size)))
}

/// What the payloads of all regions are made of.
pub struct Contents<'c> {
    pub kernel: &'c Kernel,
    pub range: &'c Range,
    pub settings: &'c Settings,
    /// Cross-thread data; each region stores its local size.
    pub payload: Vec<u8>,
    /// Bytes of the payload that are inline data.
    pub inline: usize,
    /// Bytes of implicit values of functions before the payload.
    pub before: usize,
    /// Bytes of the payload behind the inline data, before the per-thread data.
    pub rest: usize,
    /// Bytes of per-thread data.
    pub per_thread: usize,
    pub printf: Option<u64>,
    /// Surface state of the scratch memory, divided by 64.
    pub scratch: u32,
}

impl Contents<'_> {
    /// Writes the payload for groups of the size `local` to `indirect`, as the rest of the cross-thread data and the per-thread
    /// data of each thread.
    pub fn place(
        &mut self,
        local: [u32; 3],
        indirect: u64,
        code: &Program,
        space: &mut Space,
    ) -> Result<Region, LaunchError> {
        let Contents {
            kernel, range, settings, inline: inline_bytes, before, rest, per_thread, printf, scratch, ..
        } = *self;
        for part in kernel.payload.iter().filter(|part| part.kind == "local_size") {
            store(&mut self.payload, part, &triple(local));
        }
        let (first, others) = self.payload.split_at(inline_bytes);
        let mut inline = [0; 32];
        inline[..inline_bytes].copy_from_slice(first);
        let cross_thread = indirect + before as u64;
        space.poke(cross_thread, others);
        let ids_in_registers = per_thread > 0
            && match settings.local_ids {
                LocalIds::Hardware => true,
                LocalIds::Memory => false,
                LocalIds::Driver => hardware_ids(local, kernel.walk_order),
            };
        let threads = threads(local, kernel.simd);
        for thread in 0..threads {
            let at = cross_thread + (rest + thread as usize * per_thread) as u64;
            space.poke(at, &ids(kernel, local, thread, per_thread));
        }
        if before > 0 {
            let row = payload::id_bytes(kernel.simd);
            let local_ids: Vec<u8> = (0..threads).flat_map(|thread| ids(kernel, local, thread, row * 3)).collect();
            let dimensions = implicit::dimensions(range, settings.dimensions);
            let structure = implicit::structure(kernel, range, local, dimensions, printf, &local_ids, space)?;
            space.poke(indirect, &structure);
        }
        let entry = code.entry(i64::from(if ids_in_registers { kernel.skip_per_thread } else { 0 }));
        let ids = ids_in_registers.then(|| IdRegisters {
            local,
            order: kernel.walk_order,
            emitted: [true; 3],
            registers: kernel.per_thread.div_ceil(32).min(Payload::MOST_ID_REGISTERS),
        });
        let payload = Payload::new(Dispatch {
            simd: kernel.simd,
            threads,
            last_mask: payload::last_mask(items(local), kernel.simd),
            header: Header { indirect: indirect as u32, scratch: scratch << 10, ..Header::default() },
            ids,
            inline: Some(inline),
            cr0: [0; 2],
            exceptions: false,
        });
        Ok(Region { local, payload, entry })
    }
}

/// Local ids of a thread, at least zeros up to this number of bytes, and no more of them.
fn ids(kernel: &Kernel, local: [u32; 3], thread: u32, bytes: usize) -> Vec<u8> {
    let mut ids = payload::local_ids(kernel.simd, local, kernel.walk_order, thread);
    ids.resize(bytes, 0);
    ids
}

/// EU-033: hardware makes ids if the sizes of the first two dimensions of the walk are powers of two.
fn hardware_ids(local: [u32; 3], order: [u32; 3]) -> bool {
    let size = |index: u32| local[index as usize % 3];
    let used = local.iter().filter(|size| **size > 1).count();
    size(order[0]).is_power_of_two() && (used < 2 || size(order[1]).is_power_of_two())
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
                    let start = group[index] * range.full()[index];
                    assert_eq!(size[index], range.full()[index].min(global[index] - start), "{group:?}");
                }
                sum += items(size);
            }
            assert_eq!(sum, items(global));
        }
    }
}
