// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Guest memory as mapped by a function's client. The sections are in an immutable table, which each map and unmap
//! replaces.
//!
//! If a client truncates its memory file, every access to a mapping beyond the new end raises SIGBUS, which would
//! terminate this process and thereby disconnect all other clients. Therefore only files that cannot be truncated are
//! mapped; other files are accessed by system calls, or by messages to the client (see `Backing`).
#![warn(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

mod files;
#[doc(hidden)]
pub mod quota;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use arctic_device_model::host::{DmaFault, DmaView, Function};
use arctic_device_model::sync::IgnorePoison;
use rustix::fs::{SealFlags, fcntl_get_seals, fstatfs};
use rustix::process::{Resource, getrlimit};
use vm_memory::mmap::MmapRegionBuilder;
use vm_memory::{Bytes, FileOffset, MmapRegion, VolatileMemory, VolatileSlice};

use self::files::{Files, Kept};
use self::quota::{Account, Charge, Counted, Ledger};
use crate::vfio_user::wire::{DMA_HINTS, DMA_READABLE, DMA_WRITABLE};
use crate::vfio_user::{ClientDma, Errno, StepBudget};

/// Time limit for an unmap to wait for engines to drop their views; a step takes less than 1 ms.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// One section of guest memory, as specified by DMA_MAP.
#[derive(Clone)]
struct Mapping {
    iova: u64,
    /// Last address (inclusive); a section can end at the top of the 64-bit space.
    last: u64,
    flags: u32,
    backing: Backing,
    /// The resources charged for the section, until the last view of it is dropped.
    _charge: Arc<Charge>,
}

/// How a section is accessed.
#[derive(Clone)]
enum Backing {
    /// Mapped into this process; for a memory file that is sealed against truncation.
    Mapped(Arc<Mapped>),
    /// By system calls; for a memory file that may be truncated, after which the system call fails.
    File(Arc<Window>),
    /// By messages; if the client sent no file, or a file that can be neither mapped nor accessed by system calls.
    Client,
}

impl Backing {
    /// Number of references to the section by tables and views.
    fn holders(&self) -> usize {
        match self {
            Backing::Mapped(memory) => Arc::strong_count(memory),
            Backing::File(window) => Arc::strong_count(window),
            Backing::Client => 1,
        }
    }
}

/// A section that is mapped into this process.
struct Mapped {
    memory: MmapRegion,
    _file: Arc<Kept>,
}

/// A section in a file that is not mapped.
struct Window {
    file: Arc<Kept>,
    /// Offset of the section's first byte.
    offset: u64,
}

impl Mapping {
    fn allows(&self, flags: u32) -> bool {
        self.flags & flags == flags
    }

    /// Bytes `[at, at + len)` of the section mapped as `memory`, truncated at its end.
    fn bytes<'m>(&self, memory: &'m MmapRegion, at: u64, len: usize) -> Option<VolatileSlice<'m>> {
        let offset = usize::try_from(at.checked_sub(self.iova)?).ok()?;
        memory.get_slice(offset, len.min(memory.size().checked_sub(offset)?)).ok()
    }

    /// Offset of address `at` in the section's file.
    fn place(&self, window: &Window, at: u64) -> Option<u64> {
        window.offset.checked_add(at.checked_sub(self.iova)?)
    }

    /// Reads `data` from address `at`; the whole range must be inside the section.
    fn read(&self, at: u64, data: &mut [u8], client: Option<Asking<'_>>) -> Option<()> {
        match &self.backing {
            Backing::Mapped(mapped) => self.bytes(&mapped.memory, at, data.len())?.read_slice(data, 0).ok(),
            Backing::File(window) => window.file.file.read_exact_at(data, self.place(window, at)?).ok(),
            Backing::Client => client.and_then(|(client, step)| client.read(at, data, step).ok()),
        }
    }

    /// Writes `data` to address `at`; the whole range must be inside the section.
    fn write(&self, at: u64, data: &[u8], client: Option<Asking<'_>>) -> Option<()> {
        match &self.backing {
            Backing::Mapped(mapped) => self.bytes(&mapped.memory, at, data.len())?.write_slice(data, 0).ok(),
            Backing::File(window) => window.file.file.write_all_at(data, self.place(window, at)?).ok(),
            Backing::Client => client.and_then(|(client, step)| client.write(at, data, step).ok()),
        }
    }
}

/// The client that provides memory without a file, and the step's budget for waiting on it.
type Asking<'v> = (&'v ClientDma, &'v StepBudget);

/// A snapshot of the sections of one client, sorted and without overlaps.
#[derive(Default)]
struct Table {
    mappings: Vec<Mapping>,
    client: Option<Arc<ClientDma>>,
    /// At least one section is accessed by messages.
    by_messages: bool,
}

impl Table {
    fn find(&self, iova: u64) -> Option<&Mapping> {
        let after = self.mappings.partition_point(|mapping| mapping.iova <= iova);
        self.mappings.get(after.checked_sub(1)?).filter(|mapping| iova <= mapping.last)
    }

    /// Calls `step` for each section that `[iova, iova + len)` overlaps, with the start address of the overlap and its
    /// range in the data.
    fn pieces(
        &self,
        iova: u64,
        len: usize,
        needs: u32,
        mut step: impl FnMut(&Mapping, u64, std::ops::Range<usize>) -> Option<()>,
    ) -> Result<(), DmaFault> {
        let mut done = 0;
        while done < len {
            let at = iova.checked_add(done as u64).ok_or(DmaFault { iova })?;
            let mapping = self.find(at).filter(|mapping| mapping.allows(needs)).ok_or(DmaFault { iova: at })?;
            let rest = usize::try_from(mapping.last.saturating_sub(at)).unwrap_or(usize::MAX).saturating_add(1);
            let end = done.saturating_add(rest).min(len);
            step(mapping, at, done..end).ok_or(DmaFault { iova: at })?;
            done = end;
        }
        Ok(())
    }
}

impl Table {
    fn new(mappings: Vec<Mapping>, client: Option<Arc<ClientDma>>) -> Arc<Self> {
        let by_messages = mappings.iter().any(|mapping| matches!(mapping.backing, Backing::Client));
        Arc::new(Table { mappings, client, by_messages })
    }

    /// Returns `None` for sections that the device may not both read and write: a write through the mapping of a
    /// read-only section would fault in this process. Such sections are accessed by `read` and `write`, which check the
    /// rights.
    fn slice(&self, iova: u64, len: usize) -> Option<VolatileSlice<'_>> {
        let mapping = self.find(iova).filter(|mapping| mapping.allows(DMA_READABLE | DMA_WRITABLE))?;
        match &mapping.backing {
            Backing::Mapped(mapped) => mapping.bytes(&mapped.memory, iova, len),
            Backing::File(_) | Backing::Client => None,
        }
    }

    fn read(&self, iova: u64, data: &mut [u8], client: Option<Asking<'_>>) -> Result<(), DmaFault> {
        self.pieces(iova, data.len(), DMA_READABLE, |mapping, at, range| mapping.read(at, data.get_mut(range)?, client))
    }

    fn write(&self, iova: u64, data: &[u8], client: Option<Asking<'_>>) -> Result<(), DmaFault> {
        self.pieces(iova, data.len(), DMA_WRITABLE, |mapping, at, range| mapping.write(at, data.get(range)?, client))
    }
}

/// If no section is accessed by messages, the table itself is the view of every step.
impl DmaView for Table {
    fn slice(&self, iova: u64, len: usize) -> Option<VolatileSlice<'_>> {
        self.slice(iova, len)
    }

    fn read_remote(&self, iova: u64, data: &mut [u8]) -> Result<(), DmaFault> {
        self.read(iova, data, None)
    }

    fn write_remote(&self, iova: u64, data: &[u8]) -> Result<(), DmaFault> {
        self.write(iova, data, None)
    }

    fn sections(&self) -> usize {
        self.mappings.len()
    }
}

/// The view of one step if a section is accessed by messages. It accumulates the time that the step has waited for the
/// client.
struct Asked {
    table: Arc<Table>,
    step: StepBudget,
}

impl Asked {
    fn client(&self) -> Option<Asking<'_>> {
        self.table.client.as_deref().map(|client| (client, &self.step))
    }
}

impl DmaView for Asked {
    fn slice(&self, iova: u64, len: usize) -> Option<VolatileSlice<'_>> {
        self.table.slice(iova, len)
    }

    fn read_remote(&self, iova: u64, data: &mut [u8]) -> Result<(), DmaFault> {
        self.table.read(iova, data, self.client())
    }

    fn write_remote(&self, iova: u64, data: &[u8]) -> Result<(), DmaFault> {
        self.table.write(iova, data, self.client())
    }

    fn sections(&self) -> usize {
        self.table.mappings.len()
    }

    fn asks_client(&self) -> bool {
        true
    }
}

/// The guest memory of one function.
pub struct GuestMemory {
    /// The function.
    pub(crate) function: Function,
    /// The function's name in log messages.
    pub(crate) name: String,
    table: ArcSwap<Table>,
    /// Serialises changes; also holds the client's files.
    change: Mutex<Connection>,
    account: Arc<Account>,
    /// The warning about slow access to the client's memory was logged.
    told: AtomicBool,
    /// The warning about a limit of the client was logged.
    refused: AtomicBool,
}

/// State of the connected client.
#[derive(Default)]
struct Connection {
    files: Files,
    counted: Option<Counted>,
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
        GuestMemory {
            function,
            name,
            table: ArcSwap::default(),
            change: Mutex::default(),
            account: Account::new(ledger),
            told: AtomicBool::new(false),
            refused: AtomicBool::new(false),
        }
    }

    /// Returns a view of the current sections, for one step.
    pub fn view(&self) -> Arc<dyn DmaView> {
        let table = self.table.load_full();
        match table.by_messages {
            true => Arc::new(Asked { table, step: StepBudget::default() }),
            false => table,
        }
    }

    /// Number of sections that are mapped now.
    pub fn sections(&self) -> usize {
        self.table.load().mappings.len()
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

    /// Sets the client that provides memory without descriptors, and removes all sections.
    pub(crate) fn connect(&self, client: Arc<ClientDma>) {
        let mut connection = self.change();
        connection.counted = Some(self.account.ledger().session());
        self.told.store(false, Ordering::Relaxed);
        self.refused.store(false, Ordering::Relaxed);
        self.table.store(Table::new(Vec::new(), Some(client)));
    }

    /// Removes all sections; must be called after the client disconnected. Views in use keep their mappings until they
    /// are dropped.
    pub(crate) fn clear(&self) {
        let mut connection = self.change();
        self.table.store(Arc::default());
        *connection = Connection::default();
    }

    /// Adds the section `[iova, iova + size)`; with a file, it is backed by the file's bytes from `offset` on. A file
    /// that could be truncated is not mapped into this process; a warning is logged once per client.
    ///
    /// Errors: EINVAL for an invalid section or a file that is not a regular file, EEXIST if it overlaps another
    /// section, ENOSPC beyond a limit (see [`quota`]), ENOMEM if the file cannot be mapped with the rights of the
    /// section.
    pub(crate) fn map(&self, iova: u64, size: u64, flags: u32, offset: u64, file: Option<File>) -> Result<(), Errno> {
        let last = size.checked_sub(1).and_then(|size| iova.checked_add(size)).ok_or(Errno::EINVAL)?;
        if flags & (DMA_READABLE | DMA_WRITABLE) == 0 || flags & !(DMA_READABLE | DMA_WRITABLE | DMA_HINTS) != 0 {
            return Err(Errno::EINVAL);
        }
        let mut connection = self.change();
        let old = self.table.load();
        let at = old.mappings.partition_point(|mapping| mapping.iova <= iova);
        let before = at.checked_sub(1).and_then(|at| old.mappings.get(at));
        if before.is_some_and(|mapping| mapping.last >= iova) {
            return Err(Errno::EEXIST);
        }
        if old.mappings.get(at).is_some_and(|mapping| mapping.iova <= last) {
            return Err(Errno::EEXIST);
        }
        let backed = match file {
            Some(file) => self.back(&mut connection.files, file, offset, size, flags),
            None => self.account.section(0).map(|charge| (Backing::Client, charge)),
        };
        let (backing, charge) = backed.inspect_err(|error| self.tell_refused(*error))?;
        let mut mappings = Vec::with_capacity(old.mappings.len().saturating_add(1));
        let (before, after) = old.mappings.split_at(at);
        mappings.extend_from_slice(before);
        mappings.push(Mapping { iova, last, flags, backing, _charge: Arc::new(charge) });
        mappings.extend_from_slice(after);
        self.table.store(Table::new(mappings, old.client.clone()));
        Ok(())
    }

    fn tell_refused(&self, error: Errno) {
        if error == Errno::ENOSPC && !self.refused.swap(true, Ordering::Relaxed) {
            let remedy = "raise [limits] in the card file, or the limit of open files (ulimit -n)";
            log::warn!("{}: the client maps more guest memory than its limit: {remedy}", self.name);
        }
    }

    fn back(
        &self,
        files: &mut Files,
        file: File,
        offset: u64,
        size: u64,
        flags: u32,
    ) -> Result<(Backing, Charge), Errno> {
        let end = offset.checked_add(size).ok_or(Errno::EINVAL)?;
        // Ordering: the seal is checked before the length is read, so the length cannot decrease afterwards.
        let sealed = sealed_against_shrinking(&file);
        let metadata = file.metadata().map_err(|_| Errno::EINVAL)?;
        // An access to a mapping beyond the end of the file faults. Directories and O_PATH descriptors also have a
        // length.
        if !metadata.is_file() || end > metadata.len() {
            return Err(Errno::EINVAL);
        }
        let in_memory = in_memory(&file);
        if sealed && in_memory {
            let charge = self.account.section(size)?;
            let kept = files.keep(file, &metadata, &self.account)?;
            let memory = map_file(kept.file.clone(), offset, size, flags)?;
            return Ok((Backing::Mapped(Arc::new(Mapped { memory, _file: kept })), charge));
        }
        let charge = self.account.section(0)?;
        let (backing, how) = if in_memory && end <= longest_file() {
            let file = files.keep(file, &metadata, &self.account)?;
            (Backing::File(Arc::new(Window { file, offset })), "each access of the guest's memory is a system call")
        } else {
            (Backing::Client, "each access of the guest's memory is a message to the client")
        };
        if !self.told.swap(true, Ordering::Relaxed) {
            let name = &self.name;
            let remedy = "give QEMU memory-backend-memfd with share=on, seal=on and hugetlb=off";
            log::warn!("{name}: the client may cut its memory file short, so {how}, which is slow: {remedy}");
        }
        Ok((backing, charge))
    }

    /// Removes all sections inside `[iova, iova + size)` (all sections if `None`). Blocks until no engine uses them,
    /// for at most one second.
    ///
    /// A range without sections is no error: a VMM with a guest IOMMU unmaps ranges that hold nothing, and the kernel
    /// accepts this (Linux: `vfio_dma_do_unmap`; QEMU: backends/iommufd.c).
    ///
    /// Errors: EINVAL if a section would be split, EBUSY if an engine still uses a section after one second (it is
    /// removed from the table nevertheless).
    pub(crate) fn unmap(&self, range: Option<(u64, u64)>) -> Result<(), Errno> {
        let gone = {
            let _connection = self.change();
            let old = self.table.load_full();
            let (from, to) = match range {
                None => (0, old.mappings.len()),
                Some((iova, size)) => old.inside(iova, size)?,
            };
            let (before, after) = old.mappings.split_at(to);
            let (before, gone) = before.split_at(from);
            self.table.store(Table::new([before, after].concat(), old.client.clone()));
            gone.to_vec()
        };
        let start = Instant::now();
        for backing in gone.into_iter().map(|mapping| mapping.backing) {
            // Each table that contains the section holds a reference to it, including replaced tables. When the last of
            // them is dropped, only the reference in `gone` remains.
            while backing.holders() > 1 {
                if start.elapsed() > DRAIN_TIMEOUT {
                    return Err(Errno::EBUSY);
                }
                thread::sleep(Duration::from_micros(50));
            }
        }
        Ok(())
    }
}

impl Table {
    /// Returns the index range of the sections inside `[iova, iova + size)`; it may be empty.
    fn inside(&self, iova: u64, size: u64) -> Result<(usize, usize), Errno> {
        let last = size.checked_sub(1).and_then(|size| iova.checked_add(size)).ok_or(Errno::EINVAL)?;
        let from = self.mappings.partition_point(|mapping| mapping.last < iova);
        let to = self.mappings.partition_point(|mapping| mapping.iova <= last);
        let range = self.mappings.get(from..to).unwrap_or_default();
        let cut = range.iter().any(|mapping| mapping.iova < iova || mapping.last > last);
        if cut { Err(Errno::EINVAL) } else { Ok((from, to)) }
    }
}

/// Returns whether the file can never be truncated; the seal cannot be removed. QEMU's memory-backend-memfd sets it by
/// default (QEMU: backends/hostmem-memfd.c); files with a name cannot have it.
fn sealed_against_shrinking(file: &File) -> bool {
    fcntl_get_seals(file).is_ok_and(|seals| seals.contains(SealFlags::SHRINK))
}

/// Returns whether the file is in a tmpfs, which includes memfds. Only tmpfs always provides a page for an access:
/// hugetlbfs may run out of pages, which also raises SIGBUS, and other file systems may block on a disk or on a
/// user-space server that never replies.
fn in_memory(file: &File) -> bool {
    fstatfs(file).is_ok_and(|found| found.f_type == libc::TMPFS_MAGIC)
}

/// Maximum file size that this process may write: a write beyond it raises SIGXFSZ.
fn longest_file() -> u64 {
    getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX)
}

/// Maps a section of the client's file with the rights that the client grants. A file that is sealed against writing
/// cannot be mapped writable, and such a seal cannot be added while a writable mapping exists, so a mapping keeps its
/// rights.
fn map_file(file: Arc<File>, offset: u64, size: u64, flags: u32) -> Result<MmapRegion, Errno> {
    let len = usize::try_from(size).map_err(|_| Errno::EINVAL)?;
    let mut prot = 0;
    if flags & DMA_READABLE != 0 {
        prot |= libc::PROT_READ;
    }
    if flags & DMA_WRITABLE != 0 {
        prot |= libc::PROT_WRITE;
    }
    MmapRegionBuilder::new(len)
        .with_file_offset(FileOffset::from_arc(file, offset))
        .with_mmap_prot(prot)
        .with_mmap_flags(libc::MAP_SHARED | libc::MAP_NORESERVE)
        .build()
        .map_err(|_| Errno::ENOMEM)
}

#[cfg(test)]
pub(crate) mod tests;
