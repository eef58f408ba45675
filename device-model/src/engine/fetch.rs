//! Command fetch: the dwords that the parser has read ahead of itself (V8-205).

use vm_memory::Bytes;

use super::stream::Source;
use crate::memory::{Access, Fault, FaultReason, Gam, Span};
use crate::world::DmaFault;

/// Dwords read ahead: eight cachelines (V8-205). Commands that far ahead of a store may be stale, as in hardware.
const AHEAD: usize = 128;
/// Dwords of the longest command that the parser looks into: MI_STORE_DATA_IMM with a length field of ten bits.
pub const LONGEST: usize = 0x3ff + 2;

/// How a fetch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// The dwords asked for are in the window.
    Ready,
    /// The ring's tail is before them.
    Empty,
    /// The stream runs through so many bytes of a NULL page: MI_NOOPs without end (contract E.10).
    Null(u64),
}

/// The dwords from the parser's position on.
pub struct Window {
    words: Box<[u32; LONGEST]>,
    raw: Box<[u8; AHEAD * 4]>,
    at: usize,
    len: usize,
    /// Where the parser's position was brought up to date last.
    synced: usize,
}

impl Default for Window {
    fn default() -> Self {
        Window { words: Box::new([0; LONGEST]), raw: Box::new([0; AHEAD * 4]), at: 0, len: 0, synced: 0 }
    }
}

impl Window {
    /// Forgets what was read ahead: at a jump, and at the start of a step.
    pub fn flush(&mut self) {
        (self.at, self.len, self.synced) = (0, 0, 0);
    }

    /// The next dword, if it has been read.
    pub fn header(&self) -> Option<u32> {
        self.ahead().first().copied()
    }

    /// Dwords read and not yet consumed.
    pub fn available(&self) -> usize {
        self.len - self.at
    }

    /// What has been read and not yet consumed.
    #[inline]
    pub fn ahead(&self) -> &[u32] {
        self.words.get(self.at..self.len).unwrap_or_default()
    }

    /// Consumes dwords of [`Window::ahead`]; the parser's position lags behind until [`Window::lag`].
    #[inline]
    pub fn consume(&mut self, dwords: usize) {
        self.at = (self.at + dwords).min(self.len);
    }

    /// Dwords consumed since the last call: what the parser's position lags behind.
    pub fn lag(&mut self) -> u32 {
        let lag = self.at - self.synced;
        self.synced = self.at;
        lag as u32
    }

    /// Consumes a command of `dwords`, as far as it has been read; the parser's position is told by other means.
    pub fn take(&mut self, dwords: usize) -> &[u32] {
        let from = self.at;
        self.at = (from + dwords).min(self.len);
        self.synced = self.at;
        self.words.get(from..self.at).unwrap_or_default()
    }

    /// Reads ahead from `source`, `need` dwords at the least (1 to [`LONGEST`]).
    pub fn fill(&mut self, gam: &mut Gam<'_>, source: &Source, need: usize) -> Result<Fetched, Fault> {
        self.flush();
        let reach = source.dwords.min(need.max(AHEAD));
        if reach < need {
            return Ok(Fetched::Empty);
        }
        while self.len < need {
            let address = source.address_of(self.len);
            let wanted = (reach - self.len).min(source.run(self.len)) * 4;
            let span = gam.span(source.space, address, wanted, Access::Read)?;
            if matches!(span, Span::Null(_)) && self.len == 0 {
                return Ok(Fetched::Null(null_run(gam, source, address)));
            }
            let fault = Fault { space: source.space, address, access: Access::Read, reason: FaultReason::NotMapped };
            // Memory that a VMM maps in pieces of less than a dword holds no command.
            let n = span.len() / 4;
            let into = self.words.get_mut(self.len..self.len + n).filter(|into| !into.is_empty()).ok_or(fault)?;
            read(&span, &mut self.raw, into).map_err(|_| fault)?;
            self.len += n;
        }
        Ok(Fetched::Ready)
    }
}

/// Bytes from `address` on that one NULL page covers.
fn null_run(gam: &mut Gam<'_>, source: &Source, address: u64) -> u64 {
    match gam.span(source.space, address, usize::MAX, Access::Read) {
        Ok(Span::Null(bytes)) => (bytes as u64).max(4) & !3,
        _ => 4,
    }
}

/// Fills `into` from the start of `span`, which has the bytes; `raw` is room on the way.
fn read(span: &Span<'_>, raw: &mut [u8; AHEAD * 4], into: &mut [u32]) -> Result<(), DmaFault> {
    for (n, words) in into.chunks_mut(AHEAD).enumerate() {
        let raw = &mut raw[..words.len() * 4];
        match span {
            Span::Mapped(slice) => slice.read_slice(raw, n * AHEAD * 4).map_err(|_| DmaFault { iova: 0 })?,
            _ => span.part(n * AHEAD * 4, raw.len()).read(raw)?,
        }
        for (word, raw) in words.iter_mut().zip(raw.chunks_exact(4)) {
            *word = u32::from_le_bytes([raw[0], raw[1], raw[2], raw[3]]);
        }
    }
    Ok(())
}
