// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The memory that the rectangle operations access: the translation of the engine, with the pages of one step. There is no
//! compression.

use std::convert::Infallible;

use arctic_base::blitter::BlitMemory;
use arctic_base::memory::{Access, Span, Zeroed};
use arctic_sriov::number::{low, size};

use crate::memory::{Fault, FaultType, Memory, PAGE, Space};

/// Number of pages that a step keeps: rows of tiles and rows of pixels are often in many pages, which are accessed in turn.
const KEPT: usize = 128;
/// Multiplier of the hash of a page's number: pages at the distance of a pitch have different places.
const HASH: u32 = 0x9e37_79b1;

/// The pages that one step of a blit has translated. Translations are valid until the step ends, as all spans of a step.
/// All accesses of a blit are in one space.
pub(super) struct Pages<'a, 'm> {
    memory: &'a Memory<'m>,
    /// Number and span of a page, from its first byte on, by a hash of its number.
    kept: [Option<(u32, Span<'m>)>; KEPT],
}

impl<'a, 'm> Pages<'a, 'm> {
    pub(super) fn new(memory: &'a Memory<'m>) -> Self {
        Pages { memory, kept: [const { None }; KEPT] }
    }
}

/// Addresses have 32 bits: those of pixels wrap (not documented).
impl<'m> BlitMemory<'m> for Pages<'_, 'm> {
    type Space = Space;
    type Fault = Fault;
    type Control = Infallible;

    #[inline]
    fn span(&mut self, space: Space, address: u64, len: usize, access: Access) -> Result<Span<'m>, Fault> {
        let address = low(address);
        let (number, offset) = (address / PAGE, size(u64::from(address % PAGE)));
        let place = size(u64::from(number.wrapping_mul(HASH) >> 25));
        let Some(kept) = self.kept.get_mut(place) else { return Err(not_mapped(space, address, access)) };
        let page = match kept {
            Some((at, page)) if *at == number => page,
            _ => {
                let page = self.memory.surface(space, number);
                let page = page.map_err(|fault| Fault { address, write: access == Access::Write, ..fault })?;
                &kept.insert((number, page)).1
            }
        };
        // Guest memory may end inside the page.
        let part = page.part(offset, len);
        if part.is_empty() { Err(not_mapped(space, address, access)) } else { Ok(part) }
    }

    fn zero(&mut self, _: Space, _: u64, _: u64) -> Result<Option<Zeroed>, Fault> {
        Ok(None)
    }

    fn control(&mut self, _: Space, _: u64, _: usize, _: Access) -> Result<Option<Infallible>, Fault> {
        Ok(None)
    }

    fn not_mapped(space: Space, address: u64, access: Access) -> Fault {
        not_mapped(space, low(address), access)
    }

    fn with_address(fault: Fault, address: u64) -> Fault {
        Fault { address: low(address), ..fault }
    }
}

fn not_mapped(space: Space, address: u32, access: Access) -> Fault {
    Fault { space, address, kind: FaultType::Page, write: access == Access::Write }
}
