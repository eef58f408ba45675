// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A function on the PCI bus.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use arctic_device_model::card::{Card, GGTT_WINDOW, GTTMMADR_BYTES};
use arctic_device_model::host::{Dma, Function};
use arctic_device_model::registers::REGISTER_BYTES;
use arctic_device_model::sync::IgnorePoison;
use arctic_sriov::function::{Event, Events, GTTMMADR_BAR, LMEM_BAR};
use serde::{Deserialize, Serialize};

use super::bus_port::{BusPort, Config};
use super::{Topology, windows};
use crate::io_events;
use crate::pci::{Bar, BarMapping, IoEvent, Machine, PciDevice};

/// The resources of a function that are accessible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposure {
    /// Configuration space, BARs, memory and interrupts.
    Full,
    /// Configuration space only. The function's BARs, memory and interrupts belong to another machine.
    ConfigOnly,
}

/// Counters of one function's trapped accesses, which its VMM cannot serve from a mapping.
#[derive(Default)]
pub struct Trapped {
    config: AtomicU64,
    register_reads: AtomicU64,
    register_writes: AtomicU64,
    doorbells: AtomicU64,
    ggtt: AtomicU64,
    local_memory: AtomicU64,
}

/// A snapshot of the counters of one function's trapped accesses, which its VMM cannot serve from a mapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TrappedCounts {
    /// Accesses to configuration space.
    pub config: u64,
    /// Register reads.
    pub register_reads: u64,
    /// Register writes.
    pub register_writes: u64,
    /// Accesses to the doorbell window.
    pub doorbells: u64,
    /// Accesses to the GGTT window.
    pub ggtt: u64,
    /// Accesses to the LMEM BAR.
    pub local_memory: u64,
}

impl TrappedCounts {
    /// The counts with their names.
    pub fn named(&self) -> [(&'static str, u64); 6] {
        [
            ("config", self.config),
            ("register_reads", self.register_reads),
            ("register_writes", self.register_writes),
            ("doorbells", self.doorbells),
            ("ggtt", self.ggtt),
            ("local_memory", self.local_memory),
        ]
    }

    /// The sum of all counts.
    pub fn total(&self) -> u64 {
        self.named().iter().map(|(_, count)| count).sum()
    }
}

impl Trapped {
    fn count(&self, bar: u8, offset: u64, write: bool) {
        let counter = match bar {
            LMEM_BAR => &self.local_memory,
            GTTMMADR_BAR if offset >= GGTT_WINDOW => &self.ggtt,
            GTTMMADR_BAR if offset >= REGISTER_BYTES.into() => &self.doorbells,
            GTTMMADR_BAR if write => &self.register_writes,
            GTTMMADR_BAR => &self.register_reads,
            _ => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// The current counts.
    pub fn counts(&self) -> TrappedCounts {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        TrappedCounts {
            config: count(&self.config),
            register_reads: count(&self.register_reads),
            register_writes: count(&self.register_writes),
            doorbells: count(&self.doorbells),
            ggtt: count(&self.ggtt),
            local_memory: count(&self.local_memory),
        }
    }
}

/// State shared by the functions of a card.
pub struct CardShared {
    /// The hardware model.
    pub card: Arc<Card>,
    /// How the functions are distributed over machines.
    pub topology: Topology,
    /// All functions, including those with [`Exposure::ConfigOnly`]. Weak, because each function holds a reference to
    /// this structure.
    pub functions: OnceLock<Vec<Weak<CardFunction>>>,
    /// The machine that the card is plugged into.
    pub machine: Arc<dyn Machine>,
    /// Guest memory, without the restrictions that configuration space imposes on each function.
    pub memory: Arc<dyn Dma>,
}

impl CardShared {
    fn functions(&self) -> impl Iterator<Item = Arc<CardFunction>> {
        self.functions.get().into_iter().flatten().filter_map(Weak::upgrade)
    }

    fn vfs(&self) -> impl Iterator<Item = Arc<CardFunction>> {
        self.functions().filter(|member| member.number.is_vf())
    }

    fn pf(&self) -> Option<Arc<CardFunction>> {
        self.functions().find(|member| !member.number.is_vf())
    }

    /// Enables VFs 1 to `count`, after VF Enable was set. Ordering: the device model enables the VFs before they become
    /// accessible.
    pub fn enable_vfs(&self, count: u8) {
        log::info!("VFs 1 to {count} are enabled");
        self.card.enable_vfs(count);
        let enabled: Vec<_> = self.vfs().filter(|vf| vf.number.0 <= count).collect();
        enabled.iter().for_each(|vf| vf.update(|config| config.set_enabled(true)));
        self.machine.vfs_enabled(&whole(enabled));
    }

    /// Disables all VFs, after VF Enable was cleared. Ordering: the VFs become inaccessible before the device model
    /// disables them.
    fn disable_vfs(&self) {
        log::info!("VFs are disabled");
        let gone: Vec<_> = self.vfs().filter(|vf| vf.enabled()).collect();
        gone.iter().for_each(|vf| vf.update(|config| config.set_enabled(false)));
        self.card.disable_vfs();
        self.machine.vfs_disabled(&whole(gone));
    }

    /// Enables or disables the decoding of the VF BARs (VF MSE).
    pub fn set_vf_memory_space(&self, on: bool) {
        self.vfs().for_each(|vf| vf.update(|config| config.set_memory_space(on)));
    }

    /// Reports new addresses of the VF BARs to the machine.
    fn move_vf_bars(&self) {
        self.vfs().for_each(|vf| vf.update(|_| Events::default()));
    }
}

/// The functions that have BARs, as a machine gets them.
fn whole(mut functions: Vec<Arc<CardFunction>>) -> Vec<Arc<dyn PciDevice>> {
    functions.retain(|function| function.exposure == Exposure::Full);
    functions.into_iter().map(|function| function as Arc<dyn PciDevice>).collect()
}

/// GTTMMADR and LMEM.
const BARS: usize = 2;

/// The files that back GTTMMADR (`None` if each access is trapped) and LMEM, with the layout of the BARs, and the size
/// of LMEM in bytes.
type Files = (Option<File>, File, u64);

/// A function on the PCI bus.
pub struct CardFunction {
    number: Function,
    pub(crate) exposure: Exposure,
    pub(crate) port: Arc<BusPort>,
    pub(crate) trapped: Trapped,
    shared: Arc<CardShared>,
    bars: Vec<Bar>,
    files: [Option<File>; BARS],
    /// Size of local memory, which its BAR may exceed: beyond it, accesses are trapped and read all ones.
    local_bytes: u64,
    io_events: Vec<IoEvent>,
    /// The BAR addresses last reported to the machine. The mutex is the configuration lock: it is held while a change
    /// of configuration space is applied and reported, which serialises the reports to the machine in order.
    placed: Mutex<[Option<u64>; BARS]>,
    /// The function itself, passed to its machine.
    this: Weak<CardFunction>,
    /// Held from reading a doorbell event until the doorbell is posted to the GuC.
    ringing: Mutex<()>,
    connected: AtomicBool,
}

impl CardFunction {
    pub(super) fn whole(
        shared: &Arc<CardShared>,
        number: Function,
        port: Arc<BusPort>,
        (gttmmadr, local, local_bytes): Files,
    ) -> io::Result<Arc<Self>> {
        let bar = |index, size| Bar { index, size };
        let io_events = io_events::new()?;
        Ok(Arc::new_cyclic(|this| CardFunction {
            bars: vec![bar(GTTMMADR_BAR, GTTMMADR_BYTES), bar(LMEM_BAR, local_bytes.next_power_of_two())],
            files: [gttmmadr, Some(local)],
            local_bytes,
            io_events: io_events.into(),
            ..Self::new(shared, number, Exposure::Full, port, this)
        }))
    }

    /// Creates a function with configuration space only.
    pub(super) fn bare(shared: &Arc<CardShared>, number: Function, port: Arc<BusPort>) -> Arc<Self> {
        Arc::new_cyclic(|this| Self::new(shared, number, Exposure::ConfigOnly, port, this))
    }

    fn new(
        shared: &Arc<CardShared>,
        number: Function,
        exposure: Exposure,
        port: Arc<BusPort>,
        this: &Weak<Self>,
    ) -> Self {
        CardFunction {
            number,
            exposure,
            port,
            trapped: Trapped::default(),
            shared: shared.clone(),
            bars: Vec::new(),
            files: [None, None],
            local_bytes: 0,
            io_events: Vec::new(),
            placed: Mutex::default(),
            this: this.clone(),
            ringing: Mutex::default(),
            // A function in the VMM's process is always connected; a server reports when clients connect and
            // disconnect.
            connected: AtomicBool::new(shared.topology == Topology::Native),
        }
    }

    /// The counts of trapped accesses so far.
    pub fn trapped(&self) -> TrappedCounts {
        self.trapped.counts()
    }

    /// Equivalent to a write to GUC_HOST_INTERRUPT, for a VMM that detects such writes by means other than events.
    /// Events of [`PciDevice::io_events`] must be processed by [`crate::IoEventHandler`] instead, which orders them
    /// with mailbox accesses.
    pub fn ring(&self) {
        if self.decoding() {
            self.shared.card.guc_doorbell(self.number);
        }
    }

    /// Processes a pending event of GUC_HOST_INTERRUPT, including the GuC's step, on the calling thread. Must be called
    /// when the event is readable.
    pub(crate) fn serve_doorbell(&self) {
        if self.hear_doorbell() {
            self.shared.card.poll_guc();
        }
    }

    /// Reads a pending doorbell event, if any, and posts it to the GuC. Returns whether there was one. The GuC's step
    /// is only requested; the caller must start it without holding a lock that the guest's VMM may need to reply to the
    /// card.
    fn hear_doorbell(&self) -> bool {
        let Some(doorbell) = self.io_events.first() else { return false };
        let _order = self.ringing.lock().ignore_poison();
        let rang = doorbell.event.read().is_ok();
        if rang && self.decoding() {
            self.shared.card.post_guc_doorbell(self.number);
        }
        rang
    }

    /// Processes a pending doorbell event; must be called before an access to the mailbox. On a busy host the event
    /// thread may be delayed by more than the 50 ms for which a driver polls for the response (xe:
    /// xe_guc_mmio_send_recv). Also, the doorbell of one request must not be processed after the next request has been
    /// partly written to the mailbox.
    fn hear_doorbell_at(&self, offset: u64) {
        if io_events::MAILBOX.contains(&offset) && self.hear_doorbell() {
            self.shared.card.wake_workers();
        }
    }

    /// Returns whether a machine is connected to the function.
    pub fn connected(&self) -> bool {
        self.connected.load(Ordering::Acquire)
    }

    /// Sets whether a machine is connected to the function.
    #[cfg(feature = "vfio-user")]
    pub(crate) fn set_connected(&self, on: bool) {
        self.connected.store(on, Ordering::Release);
    }

    /// Number of guest memory sections that the function's machine maps.
    pub(crate) fn guest_sections(&self) -> usize {
        self.shared.memory.view(self.number).sections()
    }

    /// Returns whether accesses to the BARs are decoded.
    fn decoding(&self) -> bool {
        self.exposure == Exposure::Full && self.port.decoding()
    }

    /// Changes configuration space and applies the resulting events. Changes are serialised by `placed`.
    pub(crate) fn update(&self, change: impl FnOnce(&mut Config) -> Events) {
        // Always succeeds: the caller holds a reference.
        let Some(this) = self.this.upgrade() else { return };
        let this: Arc<dyn PciDevice> = this;
        let mut placed = self.placed.lock().ignore_poison();
        for event in self.port.update(change) {
            match event {
                Event::FunctionLevelReset if self.number.is_vf() => self.shared.card.reset_function(self.number),
                Event::FunctionLevelReset => self.shared.card.reset(),
                Event::VfEnable { count } => self.shared.enable_vfs(count.try_into().unwrap_or(u8::MAX)),
                Event::VfDisable => self.shared.disable_vfs(),
                Event::VfMemorySpace(on) => self.shared.set_vf_memory_space(on),
                Event::VfBarMoved(_) => self.shared.move_vf_bars(),
                // Already applied by the port, including pending interrupts; BAR moves are handled below.
                Event::BusMaster(_) | Event::Msi(_) | Event::MsiUnmasked(_) => {}
                Event::MemorySpace(_) | Event::IoSpace(_) | Event::PowerState(_) | Event::BarMoved { .. } => {}
            }
            self.shared.machine.event(&this, event);
        }
        for (bar, placed) in self.bars.iter().zip(&mut *placed) {
            let address = self.address(bar.index);
            if *placed != address {
                *placed = address;
                self.shared.machine.bar_moved(&this, bar.index, address);
            }
        }
    }

    /// Current guest address of a BAR; `None` if it is not decoded.
    fn address(&self, bar: u8) -> Option<u64> {
        if !self.decoding() {
            return None;
        }
        let own = self.port.config().decoded(bar);
        let vf = Some(self.number).filter(|number| number.is_vf());
        own.or_else(|| self.shared.pf()?.port.config().vf_bar_address(vf?.0.into(), bar))
    }

    fn file(&self, bar: u8) -> Option<&File> {
        self.bars.iter().zip(&self.files).find(|(found, _)| found.index == bar)?.1.as_ref()
    }

    /// Host memory allocated for the function's files, in bytes.
    pub(crate) fn allocated(&self) -> u64 {
        self.files.iter().flatten().map(windows::allocated).sum()
    }

    fn empty(&self) {
        for (bar, file) in self.bars.iter().zip(&self.files) {
            if let Some(Err(error)) = file.as_ref().map(|file| windows::empty(file, bar.size)) {
                log::warn!("cannot clear a memory file of the card: {error}");
            }
        }
    }
}

impl PciDevice for CardFunction {
    fn number(&self) -> Function {
        self.number
    }

    /// "pf", "vf1", and "vf1-face" for a configuration-only function (`Exposure::ConfigOnly`).
    fn name(&self) -> String {
        match (self.number, self.exposure) {
            (Function::PF, _) => "pf".into(),
            (Function(number), Exposure::Full) => format!("vf{number}"),
            (Function(number), Exposure::ConfigOnly) => format!("vf{number}-face"),
        }
    }

    /// First VF Offset and VF Stride are 1.
    fn routing_offset(&self) -> u16 {
        self.number.0.into()
    }

    fn enabled(&self) -> bool {
        self.port.config().enabled()
    }

    fn bus_master(&self) -> bool {
        self.port.bus_master()
    }

    fn vf_bar_address(&self, vf: u16, bar: u8) -> Option<u64> {
        self.port.config().vf_bar_address(vf, bar)
    }

    fn vfs_decoding(&self) -> u16 {
        self.port.config().vfs_decoding()
    }

    fn read_config(&self, offset: u64, data: &mut [u8]) {
        self.trapped.config.fetch_add(1, Ordering::Relaxed);
        match self.shared.machine.withholds(self.number) {
            true => self.port.config().read_withheld(offset, data),
            false => self.port.config().read(offset, data),
        }
        log::trace!("{}: read config:{offset:#x} = {data:02x?}", self.number.0);
    }

    fn write_config(&self, offset: u64, data: &[u8]) {
        log::trace!("{}: write config:{offset:#x} = {data:02x?}", self.number.0);
        self.trapped.config.fetch_add(1, Ordering::Relaxed);
        self.update(|config| config.write(offset, data));
    }

    fn bars(&self) -> &[Bar] {
        &self.bars
    }

    fn read_bar(&self, bar: u8, offset: u64, data: &mut [u8]) {
        self.trapped.count(bar, offset, false);
        let card = &self.shared.card;
        match bar {
            // No BAR decodes the address: the bus returns all ones.
            _ if !self.decoding() => data.fill(0xff),
            GTTMMADR_BAR => {
                self.hear_doorbell_at(offset);
                card.read(self.number, offset, data);
            }
            LMEM_BAR => card.read_local(self.number, offset, data),
            _ => data.fill(0xff),
        }
        log::trace!("{}: read {bar}:{offset:#x} = {data:02x?}", self.number.0);
    }

    fn write_bar(&self, bar: u8, offset: u64, data: &[u8]) {
        log::trace!("{}: write {bar}:{offset:#x} = {data:02x?}", self.number.0);
        self.trapped.count(bar, offset, true);
        let card = &self.shared.card;
        match bar {
            _ if !self.decoding() => {}
            GTTMMADR_BAR => {
                self.hear_doorbell_at(offset);
                card.write(self.number, offset, data);
            }
            LMEM_BAR => card.write_local(self.number, offset, data),
            _ => {}
        }
    }

    /// Registers and doorbells are never mapped. For a VMM that has only a VF, the mapping of local memory is limited
    /// to the VF's quota: pages that a guest touches are allocated on the host, and a guest could touch all pages of a
    /// larger window.
    fn mappings(&self, bar: u8) -> Vec<BarMapping<'_>> {
        let Some((file, bar)) = self.file(bar).zip(self.bars.iter().find(|found| found.index == bar)) else {
            return Vec::new();
        };
        let alone = matches!(self.shared.topology, Topology::Split | Topology::Provisioned);
        let area = match bar.index {
            GTTMMADR_BAR => GGTT_WINDOW..GTTMMADR_BYTES,
            _ if self.number.is_vf() && alone => {
                0..self.shared.card.gt().memory.quota(self.number).min(self.local_bytes)
            }
            _ => 0..self.local_bytes,
        };
        let mapping =
            BarMapping { offset: area.start, len: area.end.saturating_sub(area.start), file, file_offset: area.start };
        if area.is_empty() { Vec::new() } else { vec![mapping] }
    }

    fn io_events(&self) -> &[IoEvent] {
        &self.io_events
    }

    fn reset(&self) {
        self.update(Config::reset);
        match self.number {
            Function::PF => self.shared.card.reset(),
            vf => self.shared.card.reset_function(vf),
        }
    }

    /// For the PF, the card is powered off: its memory is cleared and the pages are returned to the host. A VF is reset
    /// by an FLR, in which the PF driver (or the card, if no guest has the PF) clears the VF's resources. The VF's
    /// local memory is cleared and its pages are returned to the host.
    fn power_off(&self) {
        self.reset();
        match self.number {
            Function::PF => self.shared.functions().for_each(|member| member.empty()),
            vf => self.shared.card.gt().memory.empty(vf, || false),
        }
    }
}
