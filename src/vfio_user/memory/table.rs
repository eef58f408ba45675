// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A snapshot of one client's sections with their backings: the view of guest memory for one step.

use std::ops::Range;
use std::sync::atomic::{Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, Weak};
use std::time::Duration;

use arctic_device_model::host::{Access, DmaFault, DmaView};
use arctic_device_model::sync::IgnorePoison;
use vm_memory::VolatileSlice;

use super::backing::Backing;
use super::sections::{Section, Sections};
use crate::vfio_user::wire::{DMA_READABLE, DMA_WRITABLE};
use crate::vfio_user::{ClientDma, StepBudget};

/// The client that provides memory without a file, and the step's budget for waiting on it.
pub type ClientAccess<'v> = (&'v ClientDma, &'v StepBudget);

/// Signalled when the last table of a generation is dropped.
#[derive(Default)]
pub struct Drained {
    lock: Mutex<()>,
    dropped: Condvar,
}

impl Drained {
    /// Waits until all tables of `generations` have been dropped, at most for `limit`. Returns whether they have.
    pub fn wait(&self, generations: &[Weak<Generation>], limit: Duration) -> bool {
        let in_use = || generations.iter().any(|generation| generation.strong_count() != 0);
        let lock = self.lock.lock().ignore_poison();
        drop(self.dropped.wait_timeout_while(lock, limit, |()| in_use()).ignore_poison());
        let drained = !in_use();
        // Accesses of the steps happen before the return.
        fence(Ordering::Acquire);
        drained
    }
}

/// Held by each table between two unmaps of memory files. When the last of these tables is dropped, no step uses what the
/// second unmap has removed.
#[derive(Default)]
pub struct Generation {
    drained: Arc<Drained>,
}

impl Generation {
    /// A generation whose end `drained` signals.
    pub fn new(drained: &Arc<Drained>) -> Arc<Generation> {
        Arc::new(Generation { drained: drained.clone() })
    }
}

impl Drop for Generation {
    fn drop(&mut self) {
        // A thread that has found the generation in use, with the lock held, is then asleep.
        drop(self.drained.lock.lock().ignore_poison());
        self.drained.dropped.notify_all();
    }
}

/// A snapshot of the sections of one client.
#[derive(Clone, Default)]
pub struct Table {
    pub sections: Sections,
    /// By number; a number without a backing is accessed by messages.
    pub backings: Arc<[Option<Arc<Backing>>]>,
    pub client: Option<Arc<ClientDma>>,
    /// At least one section is accessed by messages.
    pub by_messages: bool,
    /// The last field: it is dropped after the backings.
    pub generation: Arc<Generation>,
}

impl Table {
    fn backing(&self, section: &Section) -> Option<&Backing> {
        self.backings.get(section.backing as usize)?.as_deref()
    }

    /// Calls `step` for each section that `[iova, iova + len)` overlaps, with the start address of the overlap and its
    /// range in the data.
    pub fn pieces(
        &self,
        iova: u64,
        len: usize,
        needs: u32,
        mut step: impl FnMut(&Section, u64, Range<usize>) -> Option<()>,
    ) -> Result<(), DmaFault> {
        let mut done = 0;
        while done < len {
            let at = iova.checked_add(done as u64).ok_or(DmaFault { iova })?;
            let section =
                self.sections.find(at).filter(|section| section.allows(needs)).ok_or(DmaFault { iova: at })?;
            let rest = usize::try_from(section.last.saturating_sub(at)).unwrap_or(usize::MAX).saturating_add(1);
            let end = done.saturating_add(rest).min(len);
            step(section, at, done..end).ok_or(DmaFault { iova: at })?;
            done = end;
        }
        Ok(())
    }

    pub fn read(&self, iova: u64, data: &mut [u8], client: Option<ClientAccess<'_>>) -> Result<(), DmaFault> {
        self.pieces(iova, data.len(), DMA_READABLE, |section, at, range| {
            let data = data.get_mut(range)?;
            match self.backing(section) {
                Some(backing) => backing.read(section, at, data),
                None => client.and_then(|(client, step)| client.read(at, data, step).ok()),
            }
        })
    }

    pub fn write(&self, iova: u64, data: &[u8], client: Option<ClientAccess<'_>>) -> Result<(), DmaFault> {
        self.pieces(iova, data.len(), DMA_WRITABLE, |section, at, range| {
            let data = data.get(range)?;
            match self.backing(section) {
                Some(backing) => backing.write(section, at, data),
                None => client.and_then(|(client, step)| client.write(at, data, step).ok()),
            }
        })
    }
}

/// If no section is accessed by messages, the table itself is the view of every step.
impl DmaView for Table {
    /// Returns `None` for sections that the device may not both read and write: a write through the mapping of a
    /// read-only section would fault in this process, or ignore the section's rights. Such sections are accessed by
    /// `read_remote` and `write_remote`, which check the rights.
    fn slice(&self, iova: u64, len: usize, _: Access) -> Option<VolatileSlice<'_>> {
        let section = self.sections.find(iova).filter(|section| section.allows(DMA_READABLE | DMA_WRITABLE))?;
        match self.backing(section)? {
            Backing::Mapped(mapped) => mapped.bytes(section, iova, len),
            Backing::File(_) => None,
        }
    }

    fn read_remote(&self, iova: u64, data: &mut [u8]) -> Result<(), DmaFault> {
        self.read(iova, data, None)
    }

    fn write_remote(&self, iova: u64, data: &[u8]) -> Result<(), DmaFault> {
        self.write(iova, data, None)
    }

    fn sections(&self) -> usize {
        self.sections.len()
    }
}

/// The view of one step if a section is accessed by messages. It accumulates the time that the step has waited for the
/// client.
pub struct ClientView {
    pub table: Arc<Table>,
    pub step: StepBudget,
}

impl ClientView {
    fn client(&self) -> Option<ClientAccess<'_>> {
        self.table.client.as_deref().map(|client| (client, &self.step))
    }
}

impl DmaView for ClientView {
    fn slice(&self, iova: u64, len: usize, access: Access) -> Option<VolatileSlice<'_>> {
        self.table.slice(iova, len, access)
    }

    fn read_remote(&self, iova: u64, data: &mut [u8]) -> Result<(), DmaFault> {
        self.table.read(iova, data, self.client())
    }

    fn write_remote(&self, iova: u64, data: &[u8]) -> Result<(), DmaFault> {
        self.table.write(iova, data, self.client())
    }

    fn sections(&self) -> usize {
        self.table.sections.len()
    }

    fn may_wait_for_client(&self) -> bool {
        true
    }

    fn unanswered(&self) -> bool {
        self.step.unanswered()
    }
}
