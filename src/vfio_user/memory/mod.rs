// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Guest memory as mapped by a function's client. The sections are in an immutable table, which each map and unmap
//! replaces.
//!
//! A guest's IOMMU makes a client map single pages, in any order. A section is an entry of the table (`sections`), which
//! refers to a range of a file; the file is mapped once (`backing`). Sections that continue each other are merged, so
//! the bounds of a DMA_MAP are not kept: DMA_UNMAP removes exactly its range, and cuts sections.
//!
//! If a client truncates its memory file, every access to a mapping beyond the new end raises SIGBUS, which would
//! terminate this process and thereby disconnect all other clients. Therefore only files that cannot be truncated are
//! mapped; other files are accessed by system calls, or by messages to the client.
#![warn(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod backing;
mod sections;
mod table;

use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use arctic_device_model::host::{DmaView, Function};
use arctic_device_model::sync::IgnorePoison;

use self::backing::{Access, Backings, CLIENT};
use self::sections::{Change, Section};
use self::table::{ClientView, Drained, Generation, Table};
use crate::vfio_user::quota::{Account, Charge, Counted, Ledger};
use crate::vfio_user::wire::{DMA_HINTS, DMA_READABLE, DMA_WRITABLE};
use crate::vfio_user::{ClientDma, Errno, StepBudget};

/// Remedies for a client that reaches a limit.
const RAISE_LIMITS: &str = "raise [limits] in the card file, or the limit of open files (ulimit -n)";
const SECTIONS: &str = "sections of guest memory";
const LARGER_PAGES: &str = "a guest with an IOMMU maps each page: use huge pages for what it maps (transparent_hugepage=\
                            always, or hugetlbfs for the memory of an inner guest), or raise `sections` in [limits] of \
                            the card file";

/// Time limit for an unmap to wait for engines to drop their views; a step takes less than 1 ms.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// The guest memory of one function.
pub struct GuestMemory {
    /// The function.
    pub(crate) function: Function,
    /// The function's name in log messages.
    pub(crate) name: String,
    table: ArcSwap<Table>,
    /// Signalled when no step uses a generation of tables any longer.
    drained: Arc<Drained>,
    /// Serialises changes; also holds the client's files.
    change: Mutex<Connection>,
    account: Arc<Account>,
    /// The warning about slow access to a memory file was logged.
    slow: AtomicBool,
    /// The warning about a limit of the client was logged.
    refused: AtomicBool,
}

/// State of the connected client.
#[derive(Default)]
struct Connection {
    backings: Backings,
    /// Charges the sections in the table.
    charge: Option<Charge>,
    /// Generations of replaced tables that steps may still use.
    used: Vec<Weak<Generation>>,
    _counted: Option<Counted>,
}

impl Default for GuestMemory {
    /// The memory of a single function, with the default limits.
    fn default() -> Self {
        GuestMemory::new(Function::PF, "pf".into(), Ledger::new(Default::default(), false))
    }
}

impl GuestMemory {
    /// The memory of `function`, called `name` in log messages, with the per-function limits of `ledger`; empty until
    /// its client maps sections.
    pub fn new(function: Function, name: String, ledger: Arc<Ledger>) -> Self {
        let drained = Arc::default();
        GuestMemory {
            function,
            name,
            table: ArcSwap::from_pointee(Table { generation: Generation::new(&drained), ..Table::default() }),
            drained,
            change: Mutex::default(),
            account: Account::new(ledger),
            slow: AtomicBool::new(false),
            refused: AtomicBool::new(false),
        }
    }

    /// Returns a view of the current sections, for one step.
    pub fn view(&self) -> Arc<dyn DmaView> {
        let table = self.table.load_full();
        match table.by_messages {
            true => Arc::new(ClientView { table, step: StepBudget::default() }),
            false => table,
        }
    }

    /// Number of sections that are mapped now, after merging.
    pub fn sections(&self) -> usize {
        self.table.load().sections.len()
    }

    /// The resources charged to all clients of the card.
    pub(crate) fn ledger(&self) -> &Arc<Ledger> {
        self.account.ledger()
    }

    /// Maximum number of sections of the client.
    pub(crate) fn most_sections(&self) -> u32 {
        self.account.sections()
    }

    /// The client that maps the memory; `None` before its VERSION message.
    pub(crate) fn client(&self) -> Option<Arc<ClientDma>> {
        self.table.load().client.clone()
    }

    fn change(&self) -> MutexGuard<'_, Connection> {
        self.change.lock().ignore_poison()
    }

    /// A table without sections.
    fn empty(&self, client: Option<Arc<ClientDma>>) -> Arc<Table> {
        Arc::new(Table { client, generation: Generation::new(&self.drained), ..Table::default() })
    }

    /// Sets the client that provides memory without descriptors, and removes all sections.
    pub(crate) fn connect(&self, client: Arc<ClientDma>) {
        let mut connection = self.change();
        self.slow.store(false, Ordering::Relaxed);
        self.refused.store(false, Ordering::Relaxed);
        self.table.store(self.empty(Some(client)));
        *connection = Connection { _counted: Some(self.account.ledger().session()), ..Connection::default() };
    }

    /// Removes all sections; must be called after the client disconnected. Views in use keep their mappings until they
    /// are dropped.
    pub(crate) fn clear(&self) {
        let mut connection = self.change();
        self.table.store(self.empty(None));
        *connection = Connection::default();
    }

    /// Adds the section `[iova, iova + size)`; with a file, it is backed by the file's bytes from `offset` on. A file
    /// that could be truncated is not mapped into this process; a warning is logged once per client.
    ///
    /// Errors: EINVAL for an invalid section or a file that is not a regular file, EEXIST if it overlaps another
    /// section, ENOSPC beyond a limit (see [`quota`](super::quota)), ENOMEM if the file cannot be mapped with the rights of the
    /// section.
    pub fn map(&self, iova: u64, size: u64, flags: u32, offset: u64, file: Option<File>) -> Result<(), Errno> {
        let last = size.checked_sub(1).and_then(|size| iova.checked_add(size)).ok_or(Errno::EINVAL)?;
        let rights = flags & (DMA_READABLE | DMA_WRITABLE);
        if rights == 0 || flags & !(DMA_READABLE | DMA_WRITABLE | DMA_HINTS) != 0 {
            return Err(Errno::EINVAL);
        }
        let mut connection = self.change();
        let old = self.table.load();
        if old.sections.meets(iova, last) {
            return Err(Errno::EEXIST);
        }
        let backing = match file {
            Some(file) => {
                let found = connection.backings.back(file, offset, size, rights, &self.account);
                let (number, access) = found
                    .inspect_err(|error| self.warn_of_limit(*error, "guest memory", (iova, last), RAISE_LIMITS))?;
                self.warn_of_slow_access(access, (iova, last));
                number
            }
            None => CLIENT,
        };
        let offset = if backing == CLIENT { iova } else { offset };
        let change = old.sections.insert(Section { iova, last, offset, backing, rights });
        let made = self.apply(&mut connection, &old, change, old.generation.clone());
        if let Err(error) = made {
            self.warn_of_limit(error, SECTIONS, (iova, last), LARGER_PAGES);
            connection.backings.release(backing);
        }
        made
    }

    /// Removes `[iova, iova + size)` (everything if `None`). Sections that reach beyond the range keep the parts outside,
    /// without a new mapping. Blocks until no step uses a memory file in the range, for at most one second.
    ///
    /// A range without sections is no error: a VMM with a guest IOMMU unmaps ranges that hold nothing, and the kernel
    /// accepts this (Linux: `vfio_dma_do_unmap`; QEMU: backends/iommufd.c).
    ///
    /// Errors: EINVAL for an invalid range, ENOSPC if the parts outside exceed the limit of sections (nothing is
    /// removed), EBUSY if a step still uses the memory after one second (it is removed from the table nevertheless).
    pub fn unmap(&self, range: Option<(u64, u64)>) -> Result<(), Errno> {
        let (first, last) = match range {
            None => (0, u64::MAX),
            Some((iova, size)) => {
                (iova, size.checked_sub(1).and_then(|size| iova.checked_add(size)).ok_or(Errno::EINVAL)?)
            }
        };
        // The backings are dropped last, so that this thread removes the mappings.
        let (_backings, used) = {
            let mut connection = self.change();
            let old = self.table.load_full();
            if !old.sections.meets(first, last) {
                return Ok(());
            }
            let change = old.sections.remove(first, last);
            let warn = |error: &Errno| self.warn_of_limit(*error, SECTIONS, (first, last), LARGER_PAGES);
            if change.removed.iter().all(|section| section.backing == CLIENT) {
                return self.apply(&mut connection, &old, change, old.generation.clone()).inspect_err(warn);
            }
            self.apply(&mut connection, &old, change, Generation::new(&self.drained)).inspect_err(warn)?;
            connection.used.retain(|generation| generation.strong_count() != 0);
            // Steps use this table, older tables of its generation, and tables of older generations.
            connection.used.push(Arc::downgrade(&old.generation));
            (old.backings.clone(), connection.used.clone())
        };
        if self.drained.wait(&used, DRAIN_TIMEOUT) { Ok(()) } else { Err(Errno::EBUSY) }
    }

    /// Warns about the first request (first and last address) beyond a limit.
    fn warn_of_limit(&self, error: Errno, what: &str, (first, last): (u64, u64), remedy: &str) {
        if error == Errno::ENOSPC && !self.refused.swap(true, Ordering::Relaxed) {
            let name = &self.name;
            log::warn!(
                "{name}: the client maps more {what} than its limit ({first:#x} to {last:#x} is refused): {remedy}"
            );
        }
    }

    /// Warns about the first section (first and last address) with slow accesses.
    fn warn_of_slow_access(&self, access: Access, (first, last): (u64, u64)) {
        let how = match access {
            Access::Mapped => return,
            Access::SystemCalls => "each access is a system call",
            Access::Messages => "each access is a message to the client",
        };
        // One warning about slow access, also if the memory is later accessed by messages.
        if let Some(client) = self.client() {
            client.first_slow_access();
        }
        if !self.slow.swap(true, Ordering::Relaxed) {
            let name = &self.name;
            let remedy = "give QEMU memory-backend-memfd with share=on, seal=on and hugetlb=off";
            log::warn!(
                "{name}: the client may cut its memory file short (section {first:#x} to {last:#x}, and others like it), so \
                 {how}, which is slow: {remedy}"
            );
        }
    }

    /// Replaces the table; fails with ENOSPC beyond the limit of sections.
    fn apply(
        &self,
        connection: &mut Connection,
        old: &Table,
        change: Change,
        generation: Arc<Generation>,
    ) -> Result<(), Errno> {
        let Change { sections, removed, added } = change;
        let charge = connection.charge.get_or_insert_with(|| self.account.charge());
        charge.set_sections(sections.len())?;
        connection.backings.count(&added, &removed);
        let backings = connection.backings.changed().map_or_else(|| old.backings.clone(), Into::into);
        let by_messages = connection.backings.by_messages() != 0;
        let client = old.client.clone();
        self.table.store(Arc::new(Table { sections, backings, client, by_messages, generation }));
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests;
