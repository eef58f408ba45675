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

/// Number of pages that are translated at once if pages are accessed in sequence. Between the copies of two pages, each read
/// of what the CPU has just stored in parts would wait until the stores of the copy before it are complete.
const AHEAD: u32 = 8;

/// The pages that one step of a blit has translated. Translations are valid until the step ends, as all spans of a step.
/// All accesses of a blit are in one space.
pub(super) struct Pages<'a, 'm> {
    memory: &'a Memory<'m>,
    /// Key and span of a page, from its first byte on, by a hash of its key.
    kept: [Option<(u32, Span<'m>)>; KEPT],
}

/// Bit of the key of a page that is written: a page that is read and written has two keys, because the view of the guest's
/// memory marks what is written. The other bits are the number of the page.
const WRITTEN: u32 = 1 << 31;

/// The key of a page for an access.
#[inline]
fn key(number: u32, access: Access) -> u32 {
    match access {
        Access::Read => number,
        Access::Write => number | WRITTEN,
    }
}

impl<'a, 'm> Pages<'a, 'm> {
    pub(super) fn new(memory: &'a Memory<'m>) -> Self {
        Pages { memory, kept: [const { None }; KEPT] }
    }

    /// The place of a page in `kept`.
    #[inline]
    fn place(key: u32) -> usize {
        size(u64::from(key.wrapping_mul(HASH) >> 25))
    }

    /// A page, if it is kept.
    #[inline]
    fn kept(&self, key: u32) -> Option<&Span<'m>> {
        self.kept.get(Self::place(key))?.as_ref().and_then(|(at, page)| (*at == key).then_some(page))
    }

    /// Translates a page, and those that follow if the one before it is kept.
    #[inline(never)]
    fn translate(&mut self, space: Space, key: u32) -> Result<(), Fault> {
        let pages = if self.kept(key.wrapping_sub(1)).is_some() { AHEAD } else { 1 };
        // The first is last, so that none of the others takes its place.
        for key in (1..pages).rev().map(|page| key.wrapping_add(page)) {
            if self.kept(key).is_none() {
                // A page without a translation is an error only if it is accessed.
                let _ = self.keep(space, key);
            }
        }
        self.keep(space, key)
    }

    fn keep(&mut self, space: Space, key: u32) -> Result<(), Fault> {
        let access = if key & WRITTEN == 0 { Access::Read } else { Access::Write };
        let page = self.memory.surface(space, key & !WRITTEN, access)?;
        if let Some(kept) = self.kept.get_mut(Self::place(key)) {
            *kept = Some((key, page));
        }
        Ok(())
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
        let key = key(number, access);
        if self.kept(key).is_none() {
            let translated = self.translate(space, key);
            translated.map_err(|fault| Fault { address, write: access == Access::Write, ..fault })?;
        }
        let Some(page) = self.kept(key) else { return Err(not_mapped(space, address, access)) };
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
