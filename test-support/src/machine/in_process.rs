// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The card linked as a library into a minimal VMM. The VMM's bus updates BAR addresses and VFs only on the card's
//! notifications. Its memory logs writes; each page that the card changes must be in the log.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use arctic_gpu::report::Report;
use arctic_gpu::{
    CardFunction, Function, GuestRam, IoEventThread, Machine as VmmMachine, MsiMessage, MsiSink, PciDevice,
    VirtualCard, card_file,
};
use vm_memory::{Bytes, FileOffset, MmapRegion, VolatileMemory};

use crate::logged_ram::LoggedRam;
use crate::machine::transport::{Machine, RAM_BYTES, VFS, Visibility};

/// Guest address of guest memory.
const RAM: u64 = 0x10_0000;

/// MSIs of one function.
#[derive(Default)]
struct Msi {
    route: Mutex<Option<MsiMessage>>,
    sent: Mutex<Vec<MsiMessage>>,
    /// Number of triggers without a route, which a VMM could not deliver.
    astray: AtomicU64,
}

impl MsiSink for Msi {
    fn route(&self, message: Option<MsiMessage>) {
        *self.route.lock().unwrap() = message;
    }

    fn trigger(&self) {
        match *self.route.lock().unwrap() {
            Some(message) => self.sent.lock().unwrap().push(message),
            None => _ = self.astray.fetch_add(1, Ordering::Relaxed),
        }
    }
}

#[derive(Default)]
struct Places {
    /// Guest addresses of decoded BARs.
    bars: BTreeMap<(u8, u8), u64>,
    /// Enabled VFs.
    vfs: Vec<u8>,
}

/// The VMM's bus: state from the card's notifications, and MSIs.
#[derive(Default)]
struct Bus {
    places: Mutex<Places>,
    /// The mappings of a BAR have changed.
    remap: AtomicBool,
    msis: [Arc<Msi>; VFS as usize + 1],
}

impl Bus {
    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap()
    }
}

impl VmmMachine for Bus {
    fn msi(&self, function: Function) -> io::Result<Arc<dyn MsiSink>> {
        Ok(self.msis[function.index()].clone())
    }

    fn bar_moved(&self, function: &Arc<dyn PciDevice>, bar: u8, address: Option<u64>) -> io::Result<()> {
        let place = (function.number().number(), bar);
        let mut places = self.places();
        match address {
            Some(address) => _ = places.bars.insert(place, address),
            None => assert!(places.bars.remove(&place).is_some(), "{place:?} removed twice"),
        }
        Ok(())
    }

    fn mappings_changed(&self, _: &Arc<dyn PciDevice>, _: u8) {
        self.remap.store(true, Ordering::Release);
    }

    fn vfs_enabled(&self, vfs: &[Arc<dyn PciDevice>]) {
        let mut places = self.places();
        assert!(places.vfs.is_empty());
        for vf in vfs {
            assert_eq!(vf.routing_offset(), u16::from(vf.number().number()));
            places.vfs.push(vf.number().number());
        }
    }

    fn vfs_disabled(&self, vfs: &[Arc<dyn PciDevice>]) {
        let gone: Vec<_> = vfs.iter().map(|vf| vf.number().number()).collect();
        let mut places = self.places();
        assert_eq!(places.vfs, gone, "VFs disabled differ from the VFs enabled");
        places.vfs.clear();
    }
}

fn all_ones(data: &[u8]) -> bool {
    data.iter().all(|byte| *byte == 0xff)
}

/// A mapping of part of a BAR.
struct Window {
    function: u8,
    bar: u8,
    offset: u64,
    memory: MmapRegion,
}

/// A card with its bus and guest memory.
struct InProcess {
    // Fields are declared in drop order.
    _doorbells: IoEventThread,
    card: VirtualCard,
    windows: Vec<Window>,
    bus: Arc<Bus>,
    memory: LoggedRam,
    /// Addresses that the guest has assigned to BARs.
    wanted: BTreeMap<(u8, u8), u64>,
}

/// Returns a machine that embeds the library with native SR-IOV: configuration space as on a physical bus.
pub fn native() -> Box<dyn Machine> {
    Box::new(InProcess::new())
}

/// Maps all that may be mapped.
fn windows(card: &VirtualCard) -> Vec<Window> {
    let mut windows = Vec::new();
    for function in card.functions() {
        for bar in function.bars() {
            for part in function.mappings(bar.index) {
                let place = FileOffset::new(part.file.try_clone().unwrap(), part.file_offset);
                let memory = MmapRegion::from_file(place, part.len as usize).unwrap();
                let number = function.number().number();
                windows.push(Window { function: number, bar: bar.index, offset: part.offset, memory });
            }
        }
    }
    windows
}

impl InProcess {
    fn new() -> Self {
        let memory = LoggedRam::new(RAM, RAM_BYTES as usize);
        let bus = Arc::new(Bus::default());
        let profile = card_file::load("small").unwrap();
        let guest = GuestRam::new(memory.card.clone());
        let card = VirtualCard::builder(profile).vfs(VFS).plug_into(bus.clone(), guest).unwrap();
        let doorbells = card.serve_io_events().unwrap();
        InProcess { _doorbells: doorbells, windows: windows(&card), card, bus, memory, wanted: BTreeMap::new() }
    }

    fn function(&self, function: u8) -> &CardFunction {
        &self.card.functions()[usize::from(function)]
    }

    /// Returns whether the function exists on the bus.
    fn exists(&self, function: u8) -> bool {
        function == 0 || self.bus.places().vfs.contains(&function)
    }

    /// Returns whether the bus decodes the BAR; panics if its address differs from the one that the guest assigned.
    fn answers(&self, function: u8, bar: u8) -> bool {
        let placed = self.bus.places().bars.get(&(function, bar)).copied();
        assert!(placed.is_none() || placed == self.wanted.get(&(function, bar)).copied(), "BAR {bar} of {function}");
        placed.is_some()
    }

    fn window(&mut self, function: u8, bar: u8, offset: u64, len: usize) -> Option<(&MmapRegion, usize)> {
        if !self.answers(function, bar) {
            return None;
        }
        if self.bus.remap.swap(false, Ordering::AcqRel) {
            self.windows = windows(&self.card);
        }
        let inside = |window: &&Window| {
            let end = window.offset + window.memory.size() as u64;
            (window.function, window.bar) == (function, bar)
                && (window.offset..end).contains(&offset)
                && offset + len as u64 <= end
        };
        let window = self.windows.iter().find(inside)?;
        Some((&window.memory, (offset - window.offset) as usize))
    }
}

impl Machine for InProcess {
    fn visibility(&self) -> Visibility {
        Visibility { vf_ids: false, vf_bars: false, places_vf_bars: true, one_memory: true, memory_by_messages: false }
    }

    fn read_config(&mut self, function: u8, offset: u16, data: &mut [u8]) {
        // The VMM also forwards reads of absent functions. The card must return all ones, as a bus does.
        self.function(function).read_config(offset.into(), data);
        assert!(self.exists(function) || all_ones(data), "VF {function} is disabled, but reads return {data:x?}");
    }

    fn write_config(&mut self, function: u8, offset: u16, data: &[u8]) {
        self.function(function).write_config(offset.into(), data);
    }

    fn read_bar(&mut self, function: u8, bar: u8, offset: u64, data: &mut [u8]) {
        self.function(function).read_bar(bar, offset, data);
        assert!(
            self.answers(function, bar) || all_ones(data),
            "BAR {bar} of {function} is not decoded, but reads return {data:x?}"
        );
    }

    /// Signals the eventfd for notifications of the GuC, as a KVM ioeventfd does.
    fn write_bar(&mut self, function: u8, bar: u8, offset: u64, data: &[u8]) {
        let function = self.function(function);
        let doorbell = function
            .io_events()
            .iter()
            .find(|event| (event.bar, event.offset, event.len as usize) == (bar, offset, data.len()));
        match doorbell {
            Some(doorbell) => doorbell.event.write(1).unwrap(),
            None => function.write_bar(bar, offset, data),
        }
    }

    fn read_beside(&mut self, function: u8, bar: u8, offset: u64, data: &mut [u8]) -> bool {
        let Some((memory, at)) = self.window(function, bar, offset, data.len()) else { return false };
        memory.as_volatile_slice().read_slice(data, at).is_ok()
    }

    fn write_beside(&mut self, function: u8, bar: u8, offset: u64, data: &[u8]) -> bool {
        let Some((memory, at)) = self.window(function, bar, offset, data.len()) else { return false };
        memory.as_volatile_slice().write_slice(data, at).is_ok()
    }

    fn ram(&self) -> u64 {
        RAM
    }

    fn read_ram(&mut self, _function: u8, address: u64, data: &mut [u8]) {
        self.memory.read(address, data);
    }

    fn write_ram(&mut self, _function: u8, address: u64, data: &[u8]) {
        self.memory.write(address, data);
    }

    fn take_msis(&mut self, function: u8) -> u64 {
        let (address, data) = self.msi_message(function);
        let msi = &self.bus.msis[usize::from(function)];
        assert_eq!(msi.astray.load(Ordering::Relaxed), 0, "function {function}: an MSI was triggered without a route");
        let sent = std::mem::take(&mut *msi.sent.lock().unwrap());
        let programmed = MsiMessage { address, data: data.into() };
        assert!(sent.iter().all(|message| *message == programmed), "function {function}: {sent:x?}");
        sent.len() as u64
    }

    fn placed(&mut self, function: u8, bar: u8, address: u64) {
        self.wanted.insert((function, bar), address);
    }

    fn read_bus(&mut self, address: u64) -> Option<u32> {
        let bars = self.bus.places().bars.clone();
        let mut data = [0xff; 4];
        for ((function, bar), at) in bars {
            let function = self.function(function);
            let size = function.bars().iter().find(|found| found.index == bar).unwrap().size;
            if (at..at + size).contains(&address) {
                function.read_bar(bar, address - at, &mut data);
            }
        }
        Some(u32::from_le_bytes(data))
    }

    fn reset(&mut self, function: u8) {
        self.function(function).reset();
    }

    /// Powers the card off, which must free the pages of its memory files, and drops it, which must release all
    /// references to functions, guest memory and bus; then creates a new card.
    fn power_cycle(&mut self) {
        self.card.pf().power_off();
        for function in self.card.functions() {
            for part in function.bars().iter().flat_map(|bar| function.mappings(bar.index)) {
                assert_eq!(part.file.metadata().unwrap().blocks(), 0, "{} still has pages allocated", function.name());
            }
        }
        let next = InProcess::new();
        let InProcess { _doorbells: doorbells, card, windows, bus, memory, .. } = std::mem::replace(self, next);
        let functions: Vec<Weak<CardFunction>> = card.functions().iter().map(Arc::downgrade).collect();
        drop(doorbells);
        drop(card);
        assert!(
            functions.iter().all(|function| function.upgrade().is_none()),
            "a function was not freed with its card"
        );
        assert_eq!(Arc::strong_count(&memory.card), 1, "the card still references guest memory");
        assert_eq!(Arc::strong_count(&bus), 1, "the card still references its machine");
        drop(windows);
    }

    fn report(&self) -> Report {
        self.card.report()
    }
}
