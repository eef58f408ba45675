// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The aperture: CPU accesses to graphics memory. The address of a byte passes the fences, the tile layout with its
//! swizzling, and the GGTT, in this order (ILK-044).

use std::ops::Range;
use std::sync::{Arc, Mutex};

use arc_swap::ArcSwap;
use arctic_base::memory::{Access, Span};

use super::fence::{Fence, Fences};
use super::{Memory, PAGE, Space};
use crate::sync::IgnorePoison;

/// The translation of CPU accesses.
#[derive(Default)]
pub struct Aperture {
    /// Replaced as a whole. An access uses the fences that it finds when it begins.
    fences: ArcSwap<Fences>,
    /// Held while the fences are replaced, so that those of the latest registers remain.
    replacing: Mutex<()>,
}

impl Aperture {
    /// Replaces the fences, which `read` reads from the registers in the order of their numbers. Accesses in progress may
    /// still use the previous ones.
    pub fn replace<I: IntoIterator<Item = Fence>>(&self, read: impl FnOnce() -> I) {
        let _replacing = self.replacing.lock().ignore_poison();
        self.fences.store(Arc::new(read().into_iter().collect()));
    }

    /// Calls `each` for each part of `len` bytes at `address` with the part's span and its range in these bytes; the
    /// span is `None` if the part has no translation.
    #[inline]
    fn each(
        &self,
        memory: &Memory<'_>,
        address: u32,
        len: usize,
        access: Access,
        mut each: impl FnMut(Option<Span<'_>>, Range<usize>),
    ) {
        let fences = self.fences.load();
        let mut done = 0_usize;
        while done < len {
            // Beyond 4 GiB, no page has an entry.
            let Some(at) = u32::try_from(done).ok().and_then(|done| address.checked_add(done)) else {
                return each(None, done..len);
            };
            let (at, run) = fences.place(at, len.saturating_sub(done));
            let span = memory.span(Space::Ggtt, at, run, access).ok();
            let rest = PAGE.saturating_sub(at % PAGE) as usize;
            let end = done.saturating_add(span.as_ref().map_or(run.min(rest), Span::len));
            each(span, done..end);
            done = end;
        }
    }

    /// Reads `data` at `address`. Bytes without a translation read all ones.
    pub fn read(&self, memory: &Memory<'_>, address: u32, data: &mut [u8]) {
        self.each(memory, address, data.len(), Access::Read, |span, range| {
            let part = data.get_mut(range).unwrap_or_default();
            if span.is_none_or(|span| span.read(part).is_err()) {
                part.fill(0xff);
            }
        });
    }

    /// Writes `data` at `address`. Bytes without a translation are dropped.
    pub fn write(&self, memory: &Memory<'_>, address: u32, data: &[u8]) {
        self.each(memory, address, data.len(), Access::Write, |span, range| {
            if let Some(span) = span {
                // As a store to memory that the guest does not have.
                let _ = span.write(data.get(range).unwrap_or_default());
            }
        });
    }
}
