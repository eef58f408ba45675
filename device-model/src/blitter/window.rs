//! The part of a surface's memory that is open during a step, with the compression control that stands for it.

use super::ccs;
use crate::memory::{Access, Fault, FaultReason, Gam, Space, Span};
use crate::world::DmaFault;

/// Smallest page: what is opened starts at a multiple of it, so that neighbours on both sides are at hand.
const PAGE: u64 = 4096;
/// Bytes asked for at once; a translation gives less where its page ends.
const OPEN: usize = 2 << 20;
/// Most bytes of guest memory without a mapping in one piece: each 4 KiB of it is a message.
const REMOTE_PIECE: usize = 16 << 10;
/// How much dearer such bytes are.
const REMOTE_COST: usize = 32;
/// What each access costs besides its bytes.
const ACCESS_COST: usize = 256;

/// An open part of an address space; lives inside one step, as its spans do.
pub struct Window<'m> {
    space: Space,
    access: Access,
    compressed: bool,
    /// What the accesses so far have cost of a step's budget: bytes of linear copy that take as long.
    pub spent: usize,
    start: u64,
    span: Span<'m>,
    control: Span<'m>,
}

impl<'m> Window<'m> {
    /// A window on `space` that is not open anywhere yet.
    pub fn new(space: Space, access: Access, compressed: bool) -> Self {
        Window { space, access, compressed, spent: 0, start: 0, span: Span::Null(0), control: Span::Null(0) }
    }

    /// Moves the window to `address` where it is not inside; gives the address's offset in it.
    fn seek(&mut self, gam: &mut Gam<'m>, address: u64) -> Result<usize, Fault> {
        let offset = address.wrapping_sub(self.start);
        if offset < self.span.len() as u64 {
            return Ok(offset as usize);
        }
        for start in [address & !(PAGE - 1), address] {
            self.span = Span::Null(0);
            let span = gam.span(self.space, start, OPEN, self.access).map_err(|fault| Fault { address, ..fault })?;
            if address - start < span.len() as u64 {
                self.control = match self.compressed {
                    true => gam.ccs_span(self.space, start, span.len(), self.access)?,
                    false => Span::Null(0),
                };
                self.span = span;
                self.start = start;
                return Ok((address - start) as usize);
            }
        }
        Err(self.not_mapped(address))
    }

    /// Opens between 1 and `len` bytes from `address` on, as they lie in memory.
    pub fn open(&mut self, gam: &mut Gam<'m>, address: u64, len: usize) -> Result<Span<'m>, Fault> {
        let offset = self.seek(gam, address)?;
        Ok(self.span.part(offset, if self.remote() { len.min(REMOTE_PIECE) } else { len }))
    }

    fn remote(&self) -> bool {
        matches!(self.span, Span::Remote { .. })
    }

    /// Counts an access to `len` of the open bytes.
    pub fn charge(&mut self, len: usize) {
        let bytes = if self.remote() { len.saturating_mul(REMOTE_COST) } else { len };
        self.spent = self.spent.saturating_add(ACCESS_COST).saturating_add(bytes);
    }

    /// The fault of an access at `address` that the function's VMM does not map.
    pub fn not_mapped(&self, address: u64) -> Fault {
        Fault { space: self.space, address, access: self.access, reason: FaultReason::NotMapped }
    }

    /// Runs `work(memory, range of the access)` over the open parts of `[address, address + len)`.
    fn each(
        &mut self,
        gam: &mut Gam<'m>,
        address: u64,
        len: usize,
        mut work: impl FnMut(ccs::Controlled<'_, 'm>, std::ops::Range<usize>) -> Result<(), DmaFault>,
    ) -> Result<(), Fault> {
        let mut done = 0;
        while done < len {
            let at = address.wrapping_add(done as u64);
            let offset = self.seek(gam, at)?;
            let n = (self.span.len() - offset).min(len - done);
            let memory = ccs::Controlled { span: &self.span, control: &self.control, start: self.start, offset };
            work(memory, done..done + n).map_err(|_| self.not_mapped(at))?;
            self.charge(n);
            done += n;
        }
        Ok(())
    }

    /// Reads pixels, decompressed where the window is on a compressed surface.
    pub fn read(&mut self, gam: &mut Gam<'m>, address: u64, data: &mut [u8]) -> Result<(), Fault> {
        self.each(gam, address, data.len(), |memory, range| memory.read(&mut data[range]))
    }

    /// Writes pixels, compressed where the window is on a compressed surface.
    pub fn write(&mut self, gam: &mut Gam<'m>, address: u64, data: &[u8]) -> Result<(), Fault> {
        self.each(gam, address, data.len(), |memory, range| memory.write(&data[range]))
    }

    /// Puts what is compressed in all 256-byte blocks of the range back into plain pixels.
    pub fn resolve(&mut self, gam: &mut Gam<'m>, address: u64, len: usize) -> Result<(), Fault> {
        self.each(gam, address, len, |memory, range| memory.resolve(range.len()))
    }
}
