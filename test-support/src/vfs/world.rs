// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Test environment of a card: guest memory of each function, files, clock, and a counter of log lines.

use std::cell::Cell;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Instant;

use arctic_device_model::host::{
    Access, Clock, Dma, DmaFault, DmaView, Function, InterruptSink, ManualClock, NullHost,
};
use arctic_device_model::memory::region::SharedRegion;
use vm_memory::{Bytes, VolatileSlice};
use vmm_sys_util::tempfile::TempFile;

/// Mapped guest memory: address and size in bytes. Each function's guest has separate memory at this address.
pub const RAM: (u64, u64) = (0x1000_0000, 1 << 20);
/// Guest memory that is accessed by messages.
pub const REMOTE: (u64, u64) = (0x2000_0000, 0x4000);
/// Guest memory with a mapping that ends after three bytes.
pub const ODD: (u64, u64) = (0x3000_0000, 3);
/// Bytes of guard on both sides of [`RAM`], which must not change.
const GUARD: u64 = 0x1000;
const GUARD_BYTE: u8 = 0xc5;
/// Size in bytes of the guest memory at addresses that only one function's guest maps.
const PRIVATE_BYTES: u64 = 0x1_0000;
/// Number of functions, including the PF.
pub const FUNCTIONS: usize = 4;

/// Returns the first address of the memory that only the guest of `function` maps.
pub fn private(function: Function) -> u64 {
    0x4000_0000 + u64::from(function.number()) * 0x100_0000
}

/// Guest addresses that a VMM routes to a device instead of memory. Without methods for them, accesses fail.
pub trait Trap: Send + Sync {
    /// Returns whether `iova` is routed to the device.
    fn claims(&self, iova: u64) -> bool;
    /// Performs a read.
    fn read(&self, iova: u64, _data: &mut [u8]) -> Result<(), DmaFault> {
        Err(DmaFault { iova })
    }
    /// Performs a write.
    fn write(&self, iova: u64, _data: &[u8]) -> Result<(), DmaFault> {
        Err(DmaFault { iova })
    }
}

/// Memory of one function's guest as mapped by its VMM.
pub struct Guest {
    function: Function,
    ram: SharedRegion,
    private: SharedRegion,
    odd: SharedRegion,
    remote: Mutex<Vec<u8>>,
    trap: RwLock<Option<Arc<dyn Trap>>>,
}

impl Guest {
    fn new(function: Function) -> Self {
        let region = |len| SharedRegion::anonymous(len as usize).unwrap();
        let ram = region(RAM.1 + 2 * GUARD);
        for at in [0, GUARD + RAM.1] {
            ram.slice(at, GUARD as usize).unwrap().write_slice(&[GUARD_BYTE; GUARD as usize], 0).unwrap();
        }
        Guest {
            function,
            ram,
            private: region(PRIVATE_BYTES),
            odd: region(4096),
            remote: Mutex::new(vec![0; REMOTE.1 as usize]),
            trap: RwLock::default(),
        }
    }

    /// Makes `trap` handle accesses to the addresses that it claims, with precedence over memory.
    pub fn set_trap(&self, trap: Arc<dyn Trap>) {
        *self.trap.write().unwrap() = Some(trap);
    }

    /// Removes the trap.
    pub fn clear_trap(&self) {
        *self.trap.write().unwrap() = None;
    }

    /// Returns whether the bytes beside [`RAM`] are unchanged.
    pub fn unharmed(&self) -> bool {
        [0, GUARD + RAM.1].iter().all(|at| read(&self.ram, *at, GUARD as usize) == [GUARD_BYTE; GUARD as usize])
    }

    /// Returns each region of the guest's memory, with the offset of that memory in it, and its bytes.
    fn regions(&self) -> [(&SharedRegion, u64, u64); 3] {
        [(&self.ram, GUARD, RAM.1), (&self.private, 0, PRIVATE_BYTES), (&self.odd, 0, self.odd.len())]
    }

    fn trapped(&self, iova: u64) -> Option<Arc<dyn Trap>> {
        self.trap.read().unwrap().as_ref().filter(|trap| trap.claims(iova)).cloned()
    }

    /// Returns all bytes of the guest's memory, region after region.
    pub fn bytes(&self) -> Vec<u8> {
        let mut all = Vec::new();
        for (region, at, len) in self.regions() {
            all.extend(read(region, at, len as usize));
        }
        all.extend(&*self.remote.lock().unwrap());
        all
    }

    /// Sets the contents of all regions, in the order of [`Guest::bytes`].
    pub fn fill(&self, bytes: &[u8]) {
        let mut rest = bytes;
        for (region, at, len) in self.regions() {
            let (now, later) = rest.split_at(len as usize);
            region.slice(at, now.len()).unwrap().write_slice(now, 0).unwrap();
            rest = later;
        }
        self.remote.lock().unwrap().copy_from_slice(rest);
    }

    /// Returns the first `len` bytes of two mapped regions: [`RAM`] and the private memory.
    pub fn starts(&self, len: usize) -> [Vec<u8>; 2] {
        let [ram, private, _] = self.regions();
        [ram, private].map(|(region, at, _)| read(region, at, len))
    }

    /// Sets the first bytes of both regions.
    pub fn set_starts(&self, bytes: &[u8]) {
        for (region, at, _) in &self.regions()[..2] {
            region.slice(*at, bytes.len()).unwrap().write_slice(bytes, 0).unwrap();
        }
    }

    fn remote(&self, iova: u64, len: usize) -> Option<std::ops::Range<usize>> {
        let at = usize::try_from(iova.checked_sub(REMOTE.0)?).ok()?;
        Some(at..at.checked_add(len).filter(|end| *end <= REMOTE.1 as usize)?)
    }
}

struct View(Arc<Guest>);

impl DmaView for View {
    fn slice(&self, iova: u64, len: usize, _: Access) -> Option<VolatileSlice<'_>> {
        assert!(len > 0, "a span of 0 bytes at {iova:#x}");
        if self.0.trapped(iova).is_some() {
            return None;
        }
        let own = private(self.0.function);
        let areas = [RAM, (own, PRIVATE_BYTES), ODD];
        areas.into_iter().zip(self.0.regions()).find_map(|((first, bytes), (region, at, _))| {
            let offset = iova.checked_sub(first).filter(|offset| *offset < bytes)?;
            region.slice(at + offset, len.min((bytes - offset) as usize))
        })
    }

    fn read_remote(&self, iova: u64, data: &mut [u8]) -> Result<(), DmaFault> {
        if let Some(trap) = self.0.trapped(iova) {
            return trap.read(iova, data);
        }
        let part = self.0.remote(iova, data.len()).ok_or(DmaFault { iova })?;
        data.copy_from_slice(&self.0.remote.lock().unwrap()[part]);
        Ok(())
    }

    fn write_remote(&self, iova: u64, data: &[u8]) -> Result<(), DmaFault> {
        if let Some(trap) = self.0.trapped(iova) {
            return trap.write(iova, data);
        }
        let part = self.0.remote(iova, data.len()).ok_or(DmaFault { iova })?;
        self.0.remote.lock().unwrap()[part].copy_from_slice(data);
        Ok(())
    }
}

/// The guests of all functions, and for each guest whether its memory is unmapped.
pub struct Guests([Arc<Guest>; FUNCTIONS], [AtomicBool; FUNCTIONS]);

impl Default for Guests {
    fn default() -> Self {
        Guests(std::array::from_fn(|n| Arc::new(Guest::new(Function::new(n as u8).unwrap()))), Default::default())
    }
}

impl Guests {
    /// Returns the guest of a function.
    pub fn of(&self, function: Function) -> &Arc<Guest> {
        &self.0[function.index()]
    }

    /// Maps or unmaps all memory of a function's guest; takes effect for views created later.
    pub fn map(&self, function: Function, mapped: bool) {
        self.1[function.index()].store(!mapped, Ordering::SeqCst);
    }
}

impl Dma for Guests {
    fn view(&self, function: Function) -> Arc<dyn DmaView> {
        match self.0.get(function.index()) {
            Some(guest) if !self.1[function.index()].load(Ordering::SeqCst) => Arc::new(View(guest.clone())),
            _ => Arc::new(NullHost),
        }
    }
}

/// Counts the interrupts of each function.
#[derive(Default)]
pub struct Msis(pub [AtomicU64; FUNCTIONS]);

impl InterruptSink for Msis {
    fn raise(&self, function: Function, vector: u16) {
        assert_eq!(vector, 0, "{function:?}");
        self.0[function.index()].fetch_add(1, Ordering::Relaxed);
    }

    fn set_line(&self, _: Function, _: bool) {}
}

/// A clock that either runs in real time plus a manually advanced offset, or is only advanced manually. Real time
/// bounds the duration of steps.
pub struct Time(Option<Mutex<Running>>, ManualClock);

struct Running {
    last: Instant,
    elapsed: u64,
}

/// Maximum time between two reads of the clock, in ns. Longer delays are caused by a busy host and must not be charged
/// to guests.
const LONGEST_INTERVAL: u64 = 2_000_000;

impl Time {
    /// Returns a clock that runs in real time.
    pub fn real() -> Self {
        Time(Some(Mutex::new(Running { last: Instant::now(), elapsed: 0 })), ManualClock::default())
    }

    /// Returns a clock that is only advanced manually.
    pub fn manual() -> Self {
        Time(None, ManualClock::default())
    }

    /// Advances the clock.
    pub fn advance(&self, nanoseconds: u64) {
        self.1.advance(nanoseconds);
    }
}

impl Clock for Time {
    fn now(&self) -> u64 {
        let elapsed = self.0.as_ref().map_or(0, |running| {
            let mut running = running.lock().unwrap();
            let gone = std::mem::replace(&mut running.last, Instant::now());
            let gone = running.last.duration_since(gone).as_nanos() as u64;
            running.elapsed += gone.min(LONGEST_INTERVAL);
            running.elapsed
        });
        elapsed + self.1.now()
    }
}

/// A sparse file that both the card and the test map, as a card and a VMM do.
pub struct Shared {
    file: File,
    len: usize,
}

impl Shared {
    /// Returns a file of `len` zero bytes.
    pub fn new(len: u64) -> Self {
        let file = TempFile::new_with_prefix("/dev/shm/arctic").or_else(|_| TempFile::new()).unwrap().into_file();
        file.set_len(len).unwrap();
        Shared { file, len: len as usize }
    }

    /// Returns a new mapping.
    pub fn map(&self) -> SharedRegion {
        SharedRegion::from_file(self.file.try_clone().unwrap(), self.len).unwrap()
    }

    /// Returns the bytes of host memory that the file uses.
    pub fn held(&self) -> u64 {
        self.file.metadata().unwrap().blocks() * 512
    }
}

/// Returns the bytes of host memory that all files use.
pub fn held(files: &[Shared]) -> u64 {
    files.iter().map(Shared::held).sum()
}

/// Reads bytes of a region without allocating pages for its holes.
pub fn read(region: &SharedRegion, at: u64, len: usize) -> Vec<u8> {
    let mut data = vec![0; len];
    for run in region.data(at..at + len as u64) {
        let place = (run.start - at) as usize..(run.end - at) as usize;
        region.slice(run.start, place.len()).unwrap().read_slice(&mut data[place], 0).unwrap();
    }
    data
}

thread_local! {
    static LINES: Cell<u64> = const { Cell::new(0) };
}

/// Returns the number of log lines written by this thread. A guest must not be able to flood the log.
pub fn lines() -> u64 {
    LINES.get()
}

struct Count;

impl log::Log for Count {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.level() <= log::Level::Info
    }

    fn log(&self, record: &log::Record<'_>) {
        if self.enabled(record.metadata()) {
            LINES.set(LINES.get() + 1);
            if std::env::var_os("ARCTIC_HOSTILE_LOG").is_some() {
                println!("{}: {}", record.level(), record.args());
            }
        }
    }

    fn flush(&self) {}
}

/// Installs the counter of log lines.
pub fn count_lines() {
    if log::set_logger(&Count).is_ok() {
        log::set_max_level(log::LevelFilter::Info);
    }
}
