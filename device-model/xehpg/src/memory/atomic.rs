// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Atomic operations on cells, of command streamers and of kernels.

use super::{Access, CellValue, Fault, Gam, Space, Span};

/// An atomic operation that is executed as a read and a write, of which the write was not answered: its address and what was
/// read. The client may have performed the write, so the operation is not repeated on its result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BegunAtomic(Option<(u64, u64)>);

impl BegunAtomic {
    /// Its parts, to be saved.
    pub fn parts(self) -> Option<(u64, u64)> {
        self.0
    }

    /// The operation with these parts.
    pub fn from_parts(parts: Option<(u64, u64)>) -> Self {
        BegunAtomic(parts)
    }

    /// Takes what an operation at `at` has read. What another one has read is dropped.
    fn take(&mut self, at: u64) -> Option<u64> {
        self.0.take().filter(|(begun, _)| *begun == at).map(|(_, old)| old)
    }
}

/// A cell that was updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Updated {
    /// Value before.
    pub old: u64,
    /// It was updated by a read and a write, because it is not mapped; not atomically, as other agents see it.
    pub by_messages: bool,
}

impl Gam<'_> {
    /// Replaces the value of the cell at `at`, which is aligned, by that of `new` for it. Returns `None` if there is none. In
    /// memory that is mapped, the operation is atomic with respect to the guest's CPUs and all engines. Guest memory that is
    /// accessed by messages has no such access: there, it is a read and a write. After a fault that was an unanswered access,
    /// the operation is repeated with the same `begun`. A NULL page reads as zeros.
    ///
    /// # Errors
    /// If the address has no translation for a write, or the access fails.
    pub fn update<T: CellValue>(
        &mut self,
        space: Space,
        at: u64,
        begun: &mut BegunAtomic,
        new: impl Fn(u64) -> Option<u64>,
    ) -> Result<Option<Updated>, Fault> {
        let (span, local) = self.uncounted_span(space, at, T::BYTES, Access::Write)?;
        if let Span::Mapped(slice) = &span
            && slice.len() == T::BYTES
            && let Some(updated) = T::update(slice, 0, |old: T| new(old.into()).map(T::low))
        {
            if local {
                self.count(Access::Read, T::BYTES as u64);
                self.count(Access::Write, T::BYTES as u64);
            }
            return Ok(updated.ok().map(|old| Updated { old: old.into(), by_messages: false }));
        }
        let old = match begun.take(at) {
            Some(old) => old,
            None => self.load::<T>(space, at)?.into(),
        };
        let Some(value) = new(old) else { return Ok(None) };
        *begun = BegunAtomic(Some((at, old)));
        self.store(space, at, T::low(value))?;
        *begun = BegunAtomic::default();
        // No agent observes an operation on a NULL page.
        Ok(Some(Updated { old, by_messages: !matches!(span, Span::Null(_)) }))
    }
}
