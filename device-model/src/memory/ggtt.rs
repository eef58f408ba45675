//! The global graphics translation table: 4 GiB of global addresses, a million 64-bit entries (V13-019, V13-027).
//!
//! The PF's table is the truth for who owns a page and whether it is valid. A virtual function changes the rest of its
//! own entries (V13-021..026): each access by itself where its window is trapped; where its VMM maps the window, the VF
//! writes a table of its own, and an entry is put together from both when it is used.

use std::sync::atomic::{AtomicU64, Ordering};

use arctic_sriov::gate::ggtt as gate;
use vm_memory::{Bytes, VolatileMemory};

use super::local::SharedRegion;
use crate::world::Function;

/// Bytes of the table: the upper half of GTTMMADR (V13-004).
pub const GGTT_BYTES: usize = 8 << 20;
/// Bytes of one global page (V13-028).
pub const GGTT_PAGE: u64 = gate::PAGE;

/// One global entry (V13-027; xe: xelp_ggtt_pte_flags, XE_GGTT_PTE_DM, GGTT_PTE_VFID).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GgttEntry(pub u64);

impl GgttEntry {
    /// Bit 0: the entry may be used.
    pub fn valid(self) -> bool {
        gate::valid(self.0)
    }

    /// Bit 1: the address is in local memory; else it is the owner's guest-physical memory.
    pub fn local(self) -> bool {
        gate::local(self.0)
    }

    /// Bits 11:2: number of the owning function.
    pub fn owner(self) -> u16 {
        gate::owner(self.0)
    }

    /// The owning function, if there is one of that number.
    pub fn function(self) -> Option<Function> {
        match self.owner() {
            0 => Some(Function::PF),
            vf => Function::vf(u32::from(vf)),
        }
    }

    /// Bits 45:12: address of the page.
    pub fn address(self) -> u64 {
        gate::address(self.0)
    }
}

/// The table itself, in memory that the PF's VMM maps too: an entry is one load, read at each use.
pub struct Ggtt {
    table: SharedRegion,
    /// What each VF writes where its VMM maps its window, VF 1 first.
    vfs: Vec<Option<SharedRegion>>,
}

impl Ggtt {
    /// Stands on `table`, which has [`GGTT_BYTES`] bytes.
    pub fn new(table: SharedRegion) -> Self {
        Ggtt { table, vfs: Vec::new() }
    }

    /// Gives virtual functions tables of their own, VF 1 first, [`GGTT_BYTES`] each; `None`: each access is trapped.
    pub fn set_vfs(&mut self, vfs: Vec<Option<SharedRegion>>) {
        self.vfs = vfs;
    }

    /// Number of entries.
    pub fn entries(&self) -> u64 {
        self.table.len() / 8
    }

    /// Entry `index` of the PF's table; an invalid one where there is none.
    #[inline]
    pub fn entry(&self, index: u64) -> GgttEntry {
        load(&self.table, index)
    }

    /// Entry `index` as the hardware uses it: owner and valid bit from the PF's table, the rest from the owner's own table
    /// if the owner has written there.
    #[inline]
    pub fn effective(&self, index: u64) -> GgttEntry {
        let entry = self.entry(index);
        if entry.owner() == 0 { entry } else { self.with_owners_part(index, entry) }
    }

    fn with_owners_part(&self, index: u64, entry: GgttEntry) -> GgttEntry {
        let Some(owner) = entry.function() else { return entry };
        let own = self.table_of(owner).map_or(0, |table| load(table, index).0);
        GgttEntry(gate::combine(entry.0, own, owner.0))
    }

    /// The table of `vf`'s own, if its window is mapped.
    pub(crate) fn table_of(&self, vf: Function) -> Option<&SharedRegion> {
        self.vfs.get(vf.index().checked_sub(1)?)?.as_ref()
    }

    /// Stores entry `index` of the PF's table; dropped where there is none.
    pub fn set_entry(&self, index: u64, entry: GgttEntry) {
        store(&self.table, index, entry.0);
    }

    /// An access of `function` to its window that came as a message: reads `data.len()` bytes from `offset` on, zeros
    /// where there is nothing for it.
    pub fn read(&self, function: Function, offset: u64, data: &mut [u8]) {
        data.fill(0);
        if !function.is_vf() {
            if let Some(bytes) = self.table.slice(offset, data.len()) {
                // The slice has just the length.
                let _ = bytes.read_slice(data, 0);
            }
            return;
        }
        for (index, within, part) in parts(offset, data.len()) {
            let value = gate::vf_read(self.effective(index).0, function.0).to_le_bytes();
            data[part.clone()].copy_from_slice(&value[within..within + part.len()]);
        }
    }

    /// Writes `data` from `offset` on for `function`. A part of an entry is put into what the function reads there.
    pub fn write(&self, function: Function, offset: u64, data: &[u8]) {
        if !function.is_vf() {
            if let Some(bytes) = self.table.slice(offset, data.len()) {
                let _ = bytes.write_slice(data, 0);
            }
            return;
        }
        for (index, within, part) in parts(offset, data.len()) {
            self.change(index, function, |seen| {
                let mut value = seen.to_le_bytes();
                value[within..within + part.len()].copy_from_slice(&data[part.clone()]);
                u64::from_le_bytes(value)
            });
        }
    }

    /// Writes what `new` makes of the entry as its owner `vf` sees it; dropped where `vf` is not the owner (V13-025).
    fn change(&self, index: u64, vf: Function, new: impl Fn(u64) -> u64) {
        /// The PF may write the entry at the same time: the owner is looked at again. Whoever keeps changing it loses.
        const ATTEMPTS: usize = 8;
        let own = self.table_of(vf);
        let Some(slice) = index.checked_mul(8).and_then(|at| own.unwrap_or(&self.table).slice(at, 8)) else { return };
        let Ok(cell) = slice.get_atomic_ref::<AtomicU64>(0) else { return };
        for _ in 0..ATTEMPTS {
            let entry = cell.load(Ordering::Acquire);
            let written = match own {
                None => gate::vf_write(entry, vf.0, new(gate::vf_read(entry, vf.0))),
                Some(_) => {
                    let effective = gate::combine(self.entry(index).0, entry, vf.0);
                    gate::owned_by(effective, vf.0).then(|| new(gate::vf_read(effective, vf.0)))
                }
            };
            let Some(written) = written else { return };
            if cell.compare_exchange(entry, written, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                return;
            }
        }
    }

    /// Forgets what `vf` has written into its own table: its range has changed, its configuration is gone, or its FLR
    /// ends.
    pub fn empty_vf(&self, vf: Function) {
        if let Some(own) = self.table_of(vf) {
            own.clear(0..own.len());
        }
    }

    /// Puts what `vf` has written into its own table into the PF's, where the PF reads it to save the function
    /// (PAUSE_DONE). Owner and valid bit stay.
    pub fn settle_vf(&self, vf: Function) {
        let Some(own) = self.table_of(vf) else { return };
        for run in own.data(0..own.len()) {
            for index in run.start / 8..run.end / 8 {
                let Some(slice) = self.table.slice(index * 8, 8) else { continue };
                let Ok(cell) = slice.get_atomic_ref::<AtomicU64>(0) else { continue };
                let entry = cell.load(Ordering::Acquire);
                let settled = gate::combine(entry, load(own, index).0, vf.0);
                if settled != entry {
                    // The PF may give the page to another at this moment: then it is not the VF's to settle.
                    let _ = cell.compare_exchange(entry, settled, Ordering::AcqRel, Ordering::Acquire);
                }
            }
        }
    }

    /// Gives the pages of `range` (global addresses) to `function`: valid, and without an address yet (xe:
    /// xe_ggtt_assign).
    pub fn assign(&self, function: Function, range: std::ops::Range<u64>) {
        let entry = GgttEntry(gate::assigned(function.0));
        for index in range.start / GGTT_PAGE..(range.end / GGTT_PAGE).min(self.entries()) {
            self.set_entry(index, entry);
        }
    }
}

#[inline]
fn load(table: &SharedRegion, index: u64) -> GgttEntry {
    let load =
        |at: usize| Some(table.slice(0, GGTT_BYTES)?.get_atomic_ref::<AtomicU64>(at).ok()?.load(Ordering::Acquire));
    GgttEntry(usize::try_from(index.saturating_mul(8)).ok().and_then(load).unwrap_or(0))
}

fn store(table: &SharedRegion, index: u64, value: u64) {
    if let Some(slice) = table.slice(index.saturating_mul(8), 8)
        && let Ok(cell) = slice.get_atomic_ref::<AtomicU64>(0)
    {
        cell.store(value, Ordering::Release);
    }
}

/// The entries that an access of `len` bytes at `offset` touches: index, first byte within the entry, bytes of the
/// access.
fn parts(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done >= len {
            return None;
        }
        let at = offset.checked_add(done as u64)?;
        let within = (at % 8) as usize;
        let n = (8 - within).min(len - done);
        done += n;
        Some((at / 8, within, done - n..done))
    })
}
