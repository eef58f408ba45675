//! Guest memory as a function's client maps it: an immutable table of sections, replaced at each map and unmap.
//!
//! A client that makes its memory file shorter turns each touch of a mapping beyond the new end into SIGBUS, the end of
//! this process and of every other client's card. So only a file that cannot become shorter is mapped here; any other is
//! read and written by system calls, or by messages to the client (see `Backing`).

mod files;
pub mod quota;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use arctic_device_model::world::{DmaFault, DmaView, Function};
use rustix::fs::{SealFlags, fcntl_get_seals, fstatfs};
use rustix::process::{Resource, getrlimit};
use vm_memory::mmap::MmapRegionBuilder;
use vm_memory::{Bytes, FileOffset, MmapRegion, VolatileMemory, VolatileSlice};

use self::files::{Files, Kept};
use self::quota::{Account, Charge, Counted, Ledger};
use crate::vfio_user::wire::{DMA_HINTS, DMA_READABLE, DMA_WRITABLE};
use crate::vfio_user::{ClientDma, Errno, StepBudget};

/// How long an unmap waits for engines to drop their views; a step lasts under 1 ms.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// One section of guest memory, as DMA_MAP announced it.
#[derive(Clone)]
struct Mapping {
    iova: u64,
    /// Last address; a section can end at the top of the 64-bit space.
    last: u64,
    flags: u32,
    backing: Backing,
    /// What the section takes, until the last view of it is dropped.
    _charge: Arc<Charge>,
}

/// How the bytes of a section are reached.
#[derive(Clone)]
enum Backing {
    /// In this process: a file in memory that is sealed against becoming shorter.
    Mapped(Arc<Mapped>),
    /// By system calls: a file in memory that may become shorter, which is then an error of the call.
    File(Arc<Window>),
    /// By messages: the client sent no file, or one that neither of these will do for.
    Client,
}

impl Backing {
    /// Tables and views that know the section, whatever they are.
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
    /// Of the section's first byte.
    offset: u64,
}

impl Mapping {
    fn allows(&self, flags: u32) -> bool {
        self.flags & flags == flags
    }

    /// Bytes `[at, at + len)` of the section mapped as `memory`, cut at its end.
    fn bytes<'m>(&self, memory: &'m MmapRegion, at: u64, len: usize) -> Option<VolatileSlice<'m>> {
        let offset = usize::try_from(at.checked_sub(self.iova)?).ok()?;
        memory.get_slice(offset, len.min(memory.size().checked_sub(offset)?)).ok()
    }

    /// Reads from address `at` of the section on; the whole of `data` is inside.
    fn read(&self, at: u64, data: &mut [u8], client: Option<Asking<'_>>) -> Option<()> {
        match &self.backing {
            Backing::Mapped(mapped) => self.bytes(&mapped.memory, at, data.len())?.read_slice(data, 0).ok(),
            Backing::File(window) => window.file.file.read_exact_at(data, window.offset + (at - self.iova)).ok(),
            Backing::Client => client.and_then(|(client, step)| client.read(at, data, step).ok()),
        }
    }

    /// Writes to address `at` of the section on; the whole of `data` is inside.
    fn write(&self, at: u64, data: &[u8], client: Option<Asking<'_>>) -> Option<()> {
        match &self.backing {
            Backing::Mapped(mapped) => self.bytes(&mapped.memory, at, data.len())?.write_slice(data, 0).ok(),
            Backing::File(window) => window.file.file.write_all_at(data, window.offset + (at - self.iova)).ok(),
            Backing::Client => client.and_then(|(client, step)| client.write(at, data, step).ok()),
        }
    }
}

/// The client that memory without a file is asked of, and what the step that asks may wait for it.
type Asking<'v> = (&'v ClientDma, &'v StepBudget);

/// The sections of one client at one moment, sorted and without overlaps.
#[derive(Default)]
struct Table {
    mappings: Vec<Mapping>,
    client: Option<Arc<ClientDma>>,
    /// Some section is reached by messages.
    by_messages: bool,
}

impl Table {
    fn find(&self, iova: u64) -> Option<&Mapping> {
        let after = self.mappings.partition_point(|mapping| mapping.iova <= iova);
        self.mappings[..after].last().filter(|mapping| iova <= mapping.last)
    }

    /// Runs `step` on each section that `[iova, iova + len)` touches, with the piece's address and range of the data.
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
            let rest = usize::try_from(mapping.last - at).unwrap_or(usize::MAX).saturating_add(1);
            let end = done + rest.min(len - done);
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

    /// Only sections that the device may both read and write: a write through the mapping of a read-only one would
    /// be a fault of this process. Those are reached like memory without a descriptor, and checked there.
    fn slice(&self, iova: u64, len: usize) -> Option<VolatileSlice<'_>> {
        let mapping = self.find(iova).filter(|mapping| mapping.allows(DMA_READABLE | DMA_WRITABLE))?;
        match &mapping.backing {
            Backing::Mapped(mapped) => mapping.bytes(&mapped.memory, iova, len),
            Backing::File(_) | Backing::Client => None,
        }
    }

    fn read(&self, iova: u64, data: &mut [u8], client: Option<Asking<'_>>) -> Result<(), DmaFault> {
        self.pieces(iova, data.len(), DMA_READABLE, |mapping, at, range| mapping.read(at, &mut data[range], client))
    }

    fn write(&self, iova: u64, data: &[u8], client: Option<Asking<'_>>) -> Result<(), DmaFault> {
        self.pieces(iova, data.len(), DMA_WRITABLE, |mapping, at, range| mapping.write(at, &data[range], client))
    }
}

/// Without sections that are reached by messages the table is the view of every step.
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

/// The view of one step where a section is reached by messages: how long the step has waited for the client is counted.
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
    /// The function itself.
    pub(crate) function: Function,
    table: ArcSwap<Table>,
    /// One change at a time, with the files that are kept.
    change: Mutex<Connection>,
    account: Arc<Account>,
    /// The log has been told that the client's memory is slow.
    told: AtomicBool,
    /// The log has been told that the client is at a limit.
    refused: AtomicBool,
}

/// What is kept for the client that is connected.
#[derive(Default)]
struct Connection {
    files: Files,
    counted: Option<Counted>,
}

impl Default for GuestMemory {
    /// The memory of a function alone, with the default limits.
    fn default() -> Self {
        GuestMemory::new(Function::PF, Ledger::new(Default::default(), false))
    }
}

impl GuestMemory {
    /// The memory of `function`, whose client has its part of what `ledger` gives; empty until it maps some.
    pub fn new(function: Function, ledger: Arc<Ledger>) -> Self {
        GuestMemory {
            function,
            table: ArcSwap::default(),
            change: Mutex::default(),
            account: Account::new(ledger),
            told: AtomicBool::new(false),
            refused: AtomicBool::new(false),
        }
    }

    /// The present sections, for one step.
    pub fn view(&self) -> Arc<dyn DmaView> {
        let table = self.table.load_full();
        match table.by_messages {
            true => Arc::new(Asked { table, step: StepBudget::default() }),
            false => table,
        }
    }

    /// Sections mapped now.
    pub fn sections(&self) -> usize {
        self.table.load().mappings.len()
    }

    /// What the clients of the card have taken.
    pub(crate) fn ledger(&self) -> &Arc<Ledger> {
        self.account.ledger()
    }

    /// Sections that the client may have.
    pub(crate) fn most_sections(&self) -> u32 {
        self.account.sections()
    }

    /// The client that maps the memory, once it has said its version.
    pub(crate) fn client(&self) -> Option<Arc<ClientDma>> {
        self.table.load().client.clone()
    }

    fn change(&self) -> MutexGuard<'_, Connection> {
        self.change.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Names the client that memory without descriptors is fetched from.
    pub(crate) fn connect(&self, client: Arc<ClientDma>) {
        let mut connection = self.change();
        connection.counted = Some(self.account.ledger().session());
        self.told.store(false, Ordering::Relaxed);
        self.refused.store(false, Ordering::Relaxed);
        self.table.store(Table::new(Vec::new(), Some(client)));
    }

    /// Forgets all sections: the client is gone. Views in use keep their mappings until they are dropped.
    pub(crate) fn clear(&self) {
        let mut connection = self.change();
        self.table.store(Arc::default());
        *connection = Connection::default();
    }

    /// Adds the section `[iova, iova + size)`; with a file, it is the file's bytes from `offset` on. A file that could
    /// become shorter is not mapped into this process, which the log is told once a client.
    ///
    /// EINVAL for a section that makes no sense or a file that is none, EEXIST for one that overlaps another, ENOSPC beyond
    /// a limit (see [`quota`]), ENOMEM where the file cannot be mapped with the rights that the section has.
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
        let mut mappings = Vec::with_capacity(old.mappings.len() + 1);
        mappings.extend_from_slice(&old.mappings[..at]);
        mappings.push(Mapping { iova, last, flags, backing, _charge: Arc::new(charge) });
        mappings.extend_from_slice(&old.mappings[at..]);
        self.table.store(Table::new(mappings, old.client.clone()));
        Ok(())
    }

    fn tell_refused(&self, error: Errno) {
        if error == Errno::ENOSPC && !self.refused.swap(true, Ordering::Relaxed) {
            let remedy = "raise it in [limits] of the card file, or the limit of open files (ulimit -n)";
            log::warn!("{}: the client maps more guest memory than its limit: {remedy}", function_name());
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
        // In this order: a file that has the seal is as long as it is seen to be, for ever.
        let sealed = sealed_against_shrinking(&file);
        let metadata = file.metadata().map_err(|_| Errno::EINVAL)?;
        // A mapping beyond the end of a file is a fault when touched; directories and descriptors of O_PATH have a length.
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
            let name = function_name();
            let remedy = "give QEMU memory-backend-memfd with share=on, seal=on and hugetlb=off";
            log::warn!("{name}: the client may cut its memory file short, so {how}, which is slow: {remedy}");
        }
        Ok((backing, charge))
    }

    /// Removes all sections inside `[iova, iova + size)` (or all there are), and returns when no engine holds them.
    ///
    /// ENOENT where there is none, EINVAL where a section would be cut in two, EBUSY where an engine has not let go
    /// within a second (the section is gone from the table all the same).
    pub(crate) fn unmap(&self, range: Option<(u64, u64)>) -> Result<(), Errno> {
        let gone = {
            let _connection = self.change();
            let old = self.table.load_full();
            let (from, to) = match range {
                None => (0, old.mappings.len()),
                Some((iova, size)) => old.inside(iova, size)?,
            };
            let gone = old.mappings[from..to].to_vec();
            let mut mappings = Vec::with_capacity(old.mappings.len() - gone.len());
            mappings.extend_from_slice(&old.mappings[..from]);
            mappings.extend_from_slice(&old.mappings[to..]);
            self.table.store(Table::new(mappings, old.client.clone()));
            gone
        };
        let start = Instant::now();
        for backing in gone.into_iter().map(|mapping| mapping.backing) {
            // Every table that knew the section, however old, holds it; the last one to go leaves only this handle.
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
    /// Indexes of the sections inside `[iova, iova + size)`.
    fn inside(&self, iova: u64, size: u64) -> Result<(usize, usize), Errno> {
        let last = size.checked_sub(1).and_then(|size| iova.checked_add(size)).ok_or(Errno::EINVAL)?;
        let from = self.mappings.partition_point(|mapping| mapping.last < iova);
        let to = self.mappings.partition_point(|mapping| mapping.iova <= last);
        let range = self.mappings.get(from..to).filter(|range| !range.is_empty()).ok_or(Errno::ENOENT)?;
        let cut = range.iter().any(|mapping| mapping.iova < iova || mapping.last > last);
        if cut { Err(Errno::EINVAL) } else { Ok((from, to)) }
    }
}

/// Whether the file can never become shorter than it is: a seal that nobody can take off again. QEMU's
/// memory-backend-memfd has it by default (QEMU: backends/hostmem-memfd.c); files with a name cannot have it.
fn sealed_against_shrinking(file: &File) -> bool {
    fcntl_get_seals(file).is_ok_and(|seals| seals.contains(SealFlags::SHRINK))
}

/// Whether the file is in a tmpfs, where a memfd lives too. Only there is a page to be had for the asking: hugetlbfs may
/// have none left, which is SIGBUS as well, and others may have to wait for a disk or for a program that never answers.
fn in_memory(file: &File) -> bool {
    fstatfs(file).is_ok_and(|found| found.f_type == libc::TMPFS_MAGIC)
}

/// The longest file that this process may write: a write beyond that raises SIGXFSZ.
fn longest_file() -> u64 {
    getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX)
}

/// The name of the function whose client the calling thread serves, for the log.
pub(crate) fn function_name() -> String {
    thread::current().name().unwrap_or("a function").to_owned()
}

/// Maps a section of the client's file with the rights that the client grants. A file that is sealed against writing
/// refuses to be mapped for that, and can be sealed so only while nobody has mapped it: a mapping keeps its rights.
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
