//! Flat CCS: where the compression control of local memory lies, at the top of it (xe: get_flat_ccs_offset).

use super::tlb::Backing;
use super::{Access, Fault, Gam, Space, Span};

/// Bytes of main memory that one byte of control stands for (xe: NUM_BYTES_PER_CCS_BYTE).
pub const BLOCK: usize = 256;

impl<'m> Gam<'m> {
    /// Opens the control bytes of main memory `[address, address + len)`, as far as its page goes, the first for the
    /// 256-byte block that holds `address`. Memory without control (NULL pages, system memory, a card without flat
    /// CCS) gives a NULL span: zeros, writes dropped.
    pub fn ccs_span(&mut self, space: Space, address: u64, len: usize, access: Access) -> Result<Span<'m>, Fault> {
        let page = self.page(space, address, access)?;
        let offset = address - page.base;
        let end = offset.saturating_add(len as u64).min(page.len);
        let first = offset / BLOCK as u64;
        let count = usize::try_from(end.div_ceil(BLOCK as u64) - first).unwrap_or(usize::MAX);
        let control = match (page.backing, self.memory.flat_ccs) {
            (Backing::Local, Some(base)) => base.checked_add(page.target / BLOCK as u64 + first),
            _ => None,
        };
        let slice = control.and_then(|at| self.memory.local.slice(at, count));
        Ok(slice.map_or(Span::Null(count), Span::Mapped))
    }
}
