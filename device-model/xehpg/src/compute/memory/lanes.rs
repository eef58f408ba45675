// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Accesses by the lanes of a message: what they have in common is done once.

use arctic_eu::exec::memory::{Extent, LaneFault, LaneSpans, MemoryFault};
use vm_memory::VolatileSlice;

use super::KernelMemory;
use crate::memory::{Access, CellValue, Span, cell};

/// Mapped memory that lanes of a message have in common.
#[derive(Clone, Copy)]
struct Window<'m> {
    /// Virtual address of its first byte.
    base: u64,
    memory: VolatileSlice<'m>,
}

impl Window<'_> {
    /// Place of a virtual address; that of one which is outside is beyond the end.
    #[inline(always)]
    fn place(&self, at: u64) -> usize {
        arctic_sriov::number::size(at.wrapping_sub(self.base))
    }
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
            && let Ok(Span::Mapped(memory)) = self.gam.span(self.space, at, bytes.len(), Access::Read)
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
            && let Ok(Span::Mapped(memory)) = self.gam.span(self.space, at, bytes.len(), Access::Write)
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
                Ok(())
            }
        }
    }

    /// Mapped memory around a virtual address; `None` if there is none, or the access would fail.
    #[inline]
    fn window(&mut self, at: u64, access: Access) -> Option<Window<'m>> {
        let (base, memory) = self.gam.around(self.space, at, access).ok()??;
        Some(Window { base, memory })
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
        let mut window: Option<Window<'m>> = None;
        for (lane, address) in lanes.iter() {
            let (at, inside) = extent.place(address);
            if inside >= N as u64
                && let Some(window) = &window
                && let Some(value) = T::load(&window.memory, window.place(at))
                && let Some(into) = bytes.as_chunks_mut::<N>().0.get_mut(lane)
                && let Some(value) = value.into().to_le_bytes().first_chunk()
            {
                *into = *value;
            } else {
                self.read_lane(Lane { lane, at, inside }, &mut window, lanes, bytes, outside)?;
            }
        }
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
        let mut window: Option<Window<'m>> = None;
        for (lane, address) in lanes.iter() {
            let (at, inside) = extent.place(address);
            let mut value = [0; 8];
            if let (Some(value), Some(from)) = (value.first_chunk_mut::<N>(), bytes.as_chunks::<N>().0.get(lane)) {
                *value = *from;
            }
            let stored = inside >= N as u64
                && window
                    .as_ref()
                    .is_some_and(|window| T::low(u64::from_le_bytes(value)).store(&window.memory, window.place(at)));
            if !stored {
                self.write_lane(Lane { lane, at, inside }, &mut window, lanes, bytes, outside)?;
            }
        }
        Ok(())
    }

    /// Loads a lane of any kind: from the memory around the last lane, or from elsewhere, of which the memory around it is kept.
    #[inline(never)]
    fn read_lane(
        &mut self,
        Lane { lane, at, inside }: Lane,
        window: &mut Option<Window<'m>>,
        lanes: &LaneSpans<'_>,
        bytes: &mut [u8],
        outside: &mut u32,
    ) -> Result<(), LaneFault> {
        let bytes = lanes.bytes_mut(bytes, lane);
        if inside < bytes.len() as u64 {
            *outside |= bit(lane);
            return self.load_inside(at, inside, lanes.element, bytes).map_err(in_lane(lane));
        }
        let mut read = |window: &Option<Window<'_>>| {
            window.as_ref().is_some_and(|window| cell::read(&window.memory, window.place(at), bytes))
        };
        if read(window) {
            return Ok(());
        }
        *window = self.window(at, Access::Read);
        if read(window) { Ok(()) } else { self.load(at, bytes).map_err(in_lane(lane)) }
    }

    /// Stores a lane as [`KernelMemory::read_lane`] loads it.
    #[inline(never)]
    fn write_lane(
        &mut self,
        Lane { lane, at, inside }: Lane,
        window: &mut Option<Window<'m>>,
        lanes: &LaneSpans<'_>,
        bytes: &[u8],
        outside: &mut u32,
    ) -> Result<(), LaneFault> {
        let bytes = lanes.bytes(bytes, lane);
        if inside < bytes.len() as u64 {
            *outside |= bit(lane);
            return self.store_inside(at, inside, lanes.element, bytes).map_err(in_lane(lane));
        }
        let write = |window: &Option<Window<'_>>| {
            window.as_ref().is_some_and(|window| cell::write(&window.memory, window.place(at), bytes))
        };
        if write(window) {
            return Ok(());
        }
        *window = self.window(at, Access::Write);
        if write(window) { Ok(()) } else { self.store(at, bytes).map_err(in_lane(lane)) }
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
