// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Accesses by the lanes of a message: what they have in common is done once.

use arctic_eu::exec::memory::{Extent, LaneFault, LaneSpans, MemoryFault};

use super::KernelMemory;
use crate::memory::{Access, CellValue, Window, cell};

/// Behind the last lane of a message.
const LANES: usize = 32;

/// Mapped memory that lanes of a message have in common.
struct Shared<'m> {
    window: Window<'m>,
    /// The first lane of which the access is not counted yet.
    from: usize,
}

/// Where an enabled lane accesses memory.
#[derive(Clone, Copy)]
struct Lane {
    lane: usize,
    /// Virtual address.
    at: u64,
    /// Bytes from there to the end of the surface.
    inside: u64,
}

impl<'m> KernelMemory<'_, 'm> {
    /// Loads what the lanes of a message load ([`arctic_eu::exec::memory::Memory::read_lanes`]).
    pub(super) fn load_lanes(
        &mut self,
        lanes: &LaneSpans<'_>,
        bytes: &mut [u8],
        outside: &mut u32,
    ) -> Result<(), LaneFault> {
        let first = lanes.enabled.trailing_zeros() as usize;
        let extent = self.extent(lanes.surface).map_err(in_lane(first))?;
        if let Some((address, first, count)) = run(lanes)
            && let Some(bytes) = bytes.get_mut(run_bytes(lanes, first, count))
            && let (at, inside) = extent.place(address)
            && inside >= bytes.len() as u64
            && let Some(memory) = self.gam.undivided(self.space, at, bytes.len(), Access::Read)
            && cell::read(&memory, 0, bytes)
        {
            return Ok(());
        }
        match lanes.size {
            4 => self.read_cells::<4, u32>(extent, lanes, bytes, outside),
            8 => self.read_cells::<8, u64>(extent, lanes, bytes, outside),
            _ => {
                let mut window = None;
                for (lane, address) in lanes.iter() {
                    let (at, inside) = extent.place(address);
                    let lane = Lane { lane, at, inside };
                    self.read_lane(lane, &mut window, lanes, bytes, outside)?;
                }
                self.count_before(LANES, &mut window, lanes, Access::Read);
                Ok(())
            }
        }
    }

    /// Stores what the lanes of a message store ([`arctic_eu::exec::memory::Memory::write_lanes`]).
    pub(super) fn store_lanes(
        &mut self,
        lanes: &LaneSpans<'_>,
        bytes: &[u8],
        outside: &mut u32,
    ) -> Result<(), LaneFault> {
        let first = lanes.enabled.trailing_zeros() as usize;
        let extent = self.extent(lanes.surface).map_err(in_lane(first))?;
        if let Some((address, first, count)) = run(lanes)
            && let Some(bytes) = bytes.get(run_bytes(lanes, first, count))
            && let (at, inside) = extent.place(address)
            && inside >= bytes.len() as u64
            && let Some(memory) = self.gam.undivided(self.space, at, bytes.len(), Access::Write)
            && cell::write(&memory, 0, bytes)
        {
            return Ok(());
        }
        match lanes.size {
            4 => self.write_cells::<4, u32>(extent, lanes, bytes, outside),
            8 => self.write_cells::<8, u64>(extent, lanes, bytes, outside),
            _ => {
                let mut window = None;
                for (lane, address) in lanes.iter() {
                    let (at, inside) = extent.place(address);
                    let lane = Lane { lane, at, inside };
                    self.write_lane(lane, &mut window, lanes, bytes, outside)?;
                }
                self.count_before(LANES, &mut window, lanes, Access::Write);
                Ok(())
            }
        }
    }

    /// Mapped memory around the address of a lane; `None` if there is none, or the access would fail.
    #[inline]
    fn window(&mut self, Lane { lane, at, .. }: Lane, access: Access) -> Option<Shared<'m>> {
        Some(Shared { window: self.gam.around(self.space, at, access).ok()??, from: lane })
    }

    /// Counts accesses of the lanes before `lane`, if they were to local memory. The access of `lane` itself is counted elsewhere.
    #[inline]
    fn count_before(&mut self, lane: usize, window: &mut Option<Shared<'m>>, lanes: &LaneSpans<'_>, access: Access) {
        if let Some(Shared { window, from }) = window {
            if window.local {
                let before = |lane: usize| 1_u64.wrapping_shl(arctic_sriov::number::count(lane)).wrapping_sub(1);
                let counted = u64::from(lanes.enabled) & before(lane) & !before(*from);
                self.gam.count(access, u64::from(counted.count_ones()).wrapping_mul(lanes.size as u64));
            }
            *from = lane.saturating_add(1);
        }
    }

    /// Loads lanes of `N` bytes, those that are aligned as cells. The memory around the last lane is kept for the next one.
    #[inline]
    fn read_cells<const N: usize, T: CellValue>(
        &mut self,
        extent: Extent,
        lanes: &LaneSpans<'_>,
        bytes: &mut [u8],
        outside: &mut u32,
    ) -> Result<(), LaneFault> {
        let mut window: Option<Shared<'m>> = None;
        for (lane, address) in lanes.iter() {
            let (at, inside) = extent.place(address);
            if inside >= N as u64
                && let Some(Shared { window, .. }) = &window
                && let Some(value) = T::load(&window.memory, window.place(at))
                && let Some(into) = bytes.as_chunks_mut::<N>().0.get_mut(lane)
                && let Some(value) = value.into().to_le_bytes().first_chunk()
            {
                *into = *value;
            } else {
                self.read_lane(Lane { lane, at, inside }, &mut window, lanes, bytes, outside)?;
            }
        }
        self.count_before(LANES, &mut window, lanes, Access::Read);
        Ok(())
    }

    /// Stores lanes as [`KernelMemory::read_cells`] loads them.
    #[inline]
    fn write_cells<const N: usize, T: CellValue>(
        &mut self,
        extent: Extent,
        lanes: &LaneSpans<'_>,
        bytes: &[u8],
        outside: &mut u32,
    ) -> Result<(), LaneFault> {
        let mut window: Option<Shared<'m>> = None;
        for (lane, address) in lanes.iter() {
            let (at, inside) = extent.place(address);
            let mut value = [0; 8];
            if let (Some(value), Some(from)) = (value.first_chunk_mut::<N>(), bytes.as_chunks::<N>().0.get(lane)) {
                *value = *from;
            }
            let stored = inside >= N as u64
                && window.as_ref().is_some_and(|Shared { window, .. }| {
                    T::low(u64::from_le_bytes(value)).store(&window.memory, window.place(at))
                });
            if !stored {
                self.write_lane(Lane { lane, at, inside }, &mut window, lanes, bytes, outside)?;
            }
        }
        self.count_before(LANES, &mut window, lanes, Access::Write);
        Ok(())
    }

    /// Loads a lane of any kind: from the memory around the last lane, or from elsewhere, of which the memory around it is kept.
    #[inline(never)]
    fn read_lane(
        &mut self,
        place: Lane,
        window: &mut Option<Shared<'m>>,
        lanes: &LaneSpans<'_>,
        bytes: &mut [u8],
        outside: &mut u32,
    ) -> Result<(), LaneFault> {
        let Lane { lane, at, inside } = place;
        let bytes = lanes.bytes_mut(bytes, lane);
        if inside < bytes.len() as u64 {
            *outside |= bit(lane);
            self.count_before(lane, window, lanes, Access::Read);
            return self.load_inside(at, inside, lanes.element, bytes).map_err(in_lane(lane));
        }
        let mut read = |shared: &Option<Shared<'_>>| {
            shared.as_ref().is_some_and(|Shared { window, .. }| cell::read(&window.memory, window.place(at), bytes))
        };
        if read(window) {
            return Ok(());
        }
        self.count_before(lane, window, lanes, Access::Read);
        *window = self.window(place, Access::Read);
        if read(window) {
            return Ok(());
        }
        self.count_before(lane, window, lanes, Access::Read);
        self.load(at, bytes).map_err(in_lane(lane))
    }

    /// Stores a lane as [`KernelMemory::read_lane`] loads it.
    #[inline(never)]
    fn write_lane(
        &mut self,
        place: Lane,
        window: &mut Option<Shared<'m>>,
        lanes: &LaneSpans<'_>,
        bytes: &[u8],
        outside: &mut u32,
    ) -> Result<(), LaneFault> {
        let Lane { lane, at, inside } = place;
        let bytes = lanes.bytes(bytes, lane);
        if inside < bytes.len() as u64 {
            *outside |= bit(lane);
            self.count_before(lane, window, lanes, Access::Write);
            return self.store_inside(at, inside, lanes.element, bytes).map_err(in_lane(lane));
        }
        let write = |shared: &Option<Shared<'_>>| {
            shared.as_ref().is_some_and(|Shared { window, .. }| cell::write(&window.memory, window.place(at), bytes))
        };
        if write(window) {
            return Ok(());
        }
        self.count_before(lane, window, lanes, Access::Write);
        *window = self.window(place, Access::Write);
        if write(window) {
            return Ok(());
        }
        self.count_before(lane, window, lanes, Access::Write);
        self.store(at, bytes).map_err(in_lane(lane))
    }
}

/// The enabled lanes, if their bytes are one behind the other in memory as they are in `bytes`: address and number of the first
/// lane, and their number.
#[inline]
fn run(lanes: &LaneSpans<'_>) -> Option<(u64, usize, usize)> {
    let first = lanes.enabled.trailing_zeros();
    let mask = lanes.enabled.wrapping_shr(first);
    let count = mask.trailing_ones();
    if count < 2 || mask.checked_shr(count).unwrap_or(0) != 0 {
        return None;
    }
    let enabled = lanes.addresses.get(first as usize..first.saturating_add(count) as usize)?;
    let start = *enabled.first()?;
    let mut next = start;
    for address in enabled {
        if *address != next {
            return None;
        }
        next = next.wrapping_add(lanes.size as u64);
    }
    // The last byte is not behind the last address.
    (next > start).then_some((start, first as usize, count as usize))
}

/// The bytes of lanes of a run.
fn run_bytes(lanes: &LaneSpans<'_>, first: usize, count: usize) -> std::ops::Range<usize> {
    let start = first.saturating_mul(lanes.size);
    start..start.saturating_add(count.saturating_mul(lanes.size))
}

fn in_lane(lane: usize) -> impl Fn(MemoryFault) -> LaneFault {
    move |fault| LaneFault { lane: arctic_sriov::number::count(lane), fault }
}

/// The bit of a lane.
fn bit(lane: usize) -> u32 {
    1_u32.wrapping_shl(arctic_sriov::number::count(lane))
}
