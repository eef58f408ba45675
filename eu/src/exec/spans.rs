// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What the lanes of one message access.

use super::fault::MemoryFault;
use super::memory::{Access, Memory};
use super::surface::Surface;

/// What the lanes of a message access: for each enabled lane the bytes from its address on, which are elements one behind the
/// other.
#[derive(Clone, Copy, Debug)]
pub struct LaneSpans<'s> {
    /// What the addresses are relative to.
    pub surface: Surface,
    /// Address of each lane, at most 32.
    pub addresses: &'s [u64],
    /// Bit `n`: lane `n` takes part.
    pub enabled: u32,
    /// Bytes of an element, a power of two.
    pub element: usize,
    /// Bytes of a lane, a multiple of `element`.
    pub size: usize,
}

/// An access of a lane failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneFault {
    /// Lane.
    pub lane: u32,
    /// Reason.
    pub fault: MemoryFault,
}

impl LaneSpans<'_> {
    /// Number and address of each enabled lane.
    #[inline(always)]
    pub fn iter(&self) -> impl Iterator<Item = (usize, u64)> {
        let mut left = self.enabled;
        let addresses = self.addresses;
        std::iter::from_fn(move || {
            let lane = left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            Some((lane, *addresses.get(lane)?))
        })
    }

    /// The bytes of a lane among those of all lanes; none if there are not so many.
    #[inline(always)]
    pub fn bytes<'b>(&self, bytes: &'b [u8], lane: usize) -> &'b [u8] {
        bytes.get(lane * self.size..(lane + 1) * self.size).unwrap_or_default()
    }

    /// As [`LaneSpans::bytes`].
    #[inline(always)]
    pub fn bytes_mut<'b>(&self, bytes: &'b mut [u8], lane: usize) -> &'b mut [u8] {
        bytes.get_mut(lane * self.size..(lane + 1) * self.size).unwrap_or_default()
    }

    /// Reads lane by lane, by [`Memory::read`].
    ///
    /// # Errors
    /// As [`Memory::read_lanes`].
    pub fn read_each<M: Memory + ?Sized>(
        &self,
        memory: &mut M,
        bytes: &mut [u8],
        outside: &mut u32,
    ) -> Result<(), LaneFault> {
        for (lane, address) in self.iter() {
            let access = memory.read(self.surface, address, self.element, self.bytes_mut(bytes, lane));
            note(lane, access, outside)?;
        }
        Ok(())
    }

    /// Writes lane by lane, by [`Memory::write`].
    ///
    /// # Errors
    /// As [`Memory::write_lanes`].
    pub fn write_each<M: Memory + ?Sized>(
        &self,
        memory: &mut M,
        bytes: &[u8],
        outside: &mut u32,
    ) -> Result<(), LaneFault> {
        for (lane, address) in self.iter() {
            let access = memory.write(self.surface, address, self.element, self.bytes(bytes, lane));
            note(lane, access, outside)?;
        }
        Ok(())
    }
}

/// Records what came of the access of a lane.
fn note(lane: usize, access: Result<Access, MemoryFault>, outside: &mut u32) -> Result<(), LaneFault> {
    match access {
        Ok(Access::Inside) => {}
        Ok(Access::Outside) => *outside |= 1 << lane,
        Err(fault) => return Err(LaneFault { lane: lane as u32, fault }),
    }
    Ok(())
}
