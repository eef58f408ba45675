// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Command prefetch (V8-205).
#![warn(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use super::stream::Source;
use crate::memory::{Access, Fault, FaultReason, Gam, Span, SpanError};

/// Prefetch distance in dwords: eight cachelines (V8-205). Commands within this distance of a store that modifies them
/// may be stale, as on hardware.
const AHEAD: usize = 128;
/// Length in dwords of the longest command that the parser decodes, MI_STORE_DATA_IMM with a 10-bit length field.
pub const LONGEST: usize = 0x3ff + 2;

/// Result of a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// The requested dwords are in the window.
    Ready,
    /// Fewer than the requested dwords are available, for example before the ring's tail.
    Empty,
    /// The stream is on a NULL page, which reads as MI_NOOPs, for this number of bytes (contract E.10).
    Null(u64),
}

/// Prefetched dwords, starting at the parser's position.
pub struct Window {
    words: Box<[u32; LONGEST]>,
    raw: Box<[[u8; 4]; AHEAD]>,
    at: usize,
    len: usize,
    /// Index at which the parser's position was last updated.
    synced: usize,
}

impl Default for Window {
    fn default() -> Self {
        Window { words: Box::new([0; LONGEST]), raw: Box::new([[0; 4]; AHEAD]), at: 0, len: 0, synced: 0 }
    }
}

impl Window {
    /// Discards the prefetched dwords. Required at a jump and at the start of a step.
    pub fn flush(&mut self) {
        (self.at, self.len, self.synced) = (0, 0, 0);
    }

    /// Returns the next dword, or `None` if it is not prefetched.
    pub fn header(&self) -> Option<u32> {
        self.ahead().first().copied()
    }

    /// Returns the number of prefetched dwords that are not consumed yet.
    pub fn available(&self) -> usize {
        self.len.saturating_sub(self.at)
    }

    /// Returns the prefetched dwords that are not consumed yet.
    #[inline]
    pub fn ahead(&self) -> &[u32] {
        self.words.get(self.at..self.len).unwrap_or_default()
    }

    /// Consumes dwords of [`Window::ahead`]. The caller must advance the parser's position by [`Window::lag`].
    #[inline]
    pub fn consume(&mut self, dwords: usize) {
        self.at = self.at.saturating_add(dwords).min(self.len);
    }

    /// Returns the number of dwords consumed since the last call, by which the parser's position must advance.
    #[allow(clippy::cast_possible_truncation, reason = "at most LONGEST")]
    pub fn lag(&mut self) -> u32 {
        let lag = self.at.wrapping_sub(self.synced);
        self.synced = self.at;
        lag as u32
    }

    /// Consumes a command of `dwords` and returns its prefetched dwords. The caller must advance the parser's position,
    /// because [`Window::lag`] does not include the command.
    pub fn take(&mut self, dwords: usize) -> &[u32] {
        let from = self.at;
        self.at = from.saturating_add(dwords).min(self.len);
        self.synced = self.at;
        self.words.get(from..self.at).unwrap_or_default()
    }

    /// Prefetches at least `need` dwords (1 to [`LONGEST`]) from `source`.
    pub fn fill(&mut self, gam: &mut Gam<'_>, source: &Source, need: usize) -> Result<Fetched, Fault> {
        self.flush();
        let reach = source.dwords.min(need.max(AHEAD));
        if reach < need {
            return Ok(Fetched::Empty);
        }
        while self.len < need {
            let address = source.address_of(self.len);
            // At most LONGEST dwords, because `reach` is.
            let wanted = reach.wrapping_sub(self.len).min(source.run(self.len)).wrapping_mul(4);
            let span = gam.span(source.space, address, wanted, Access::Read)?;
            if matches!(span, Span::Null(_)) && self.len == 0 {
                return Ok(Fetched::Null(null_run(gam, source, address)));
            }
            let fault = Fault { space: source.space, address, access: Access::Read, reason: FaultReason::NotMapped };
            // A command cannot be read from memory that a VMM maps in fragments of less than a dword.
            let end = self.len.saturating_add(span.len() / 4);
            let into = self.words.get_mut(self.len..end).filter(|into| !into.is_empty()).ok_or(fault)?;
            read(&span, &mut self.raw, into).map_err(|_| fault)?;
            self.len = end;
        }
        Ok(Fetched::Ready)
    }
}

/// Returns the number of bytes from `address` to the end of the NULL page, at least 4.
fn null_run(gam: &mut Gam<'_>, source: &Source, address: u64) -> u64 {
    match gam.span(source.space, address, usize::MAX, Access::Read) {
        Ok(Span::Null(bytes)) => (bytes as u64).max(4) & !3,
        _ => 4,
    }
}

/// Fills `into` from the start of `span`, which must be large enough. `raw` is a temporary buffer.
fn read(span: &Span<'_>, raw: &mut [[u8; 4]; AHEAD], into: &mut [u32]) -> Result<(), SpanError> {
    let mut at = 0_usize;
    for words in into.chunks_mut(AHEAD) {
        let raw = raw.get_mut(..words.len()).unwrap_or_default();
        let bytes = raw.as_flattened_mut();
        span.read_at(at, bytes)?;
        at = at.wrapping_add(bytes.len());
        for (word, raw) in words.iter_mut().zip(raw) {
            *word = u32::from_le_bytes(*raw);
        }
    }
    Ok(())
}
