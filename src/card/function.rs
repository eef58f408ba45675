// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A function on the PCI bus.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Instant;

use arctic_device_model::gpu::{Gpu, IoRegister};
use arctic_device_model::host::{Dma, Function};
use arctic_device_model::sync::IgnorePoison;
use arctic_sriov::bar::BAR_REGISTERS;
use arctic_sriov::event::{Event, Events};
use vmm_sys_util::eventfd::{EFD_NONBLOCK, EventFd};

use super::Topology;
use super::access_log::{Place, Value};
use super::bus_port::{BusPort, Config};
use super::reverted::RevertedLog;
use super::trapped::Trapped;
use crate::line_limit::LineLimit;
use crate::pci::{Bar, BarMapping, IoEvent, Machine, PciDevice, SavedDevice};
use crate::report::TrappedCounts;

/// The resources of a function that are accessible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposure {
    /// Configuration space, BARs, memory and interrupts.
    Full,
    /// Configuration space only. The function's BARs, memory and interrupts belong to another machine.
    ConfigOnly,
}

/// All functions of a card, including those with [`Exposure::ConfigOnly`]. Weak, because each function holds a reference to
/// [`CardShared`].
pub type AllFunctions = Arc<OnceLock<Vec<Weak<CardFunction>>>>;

/// State shared by the functions of a card.
pub struct CardShared {
    /// The card.
    pub gpu: Arc<dyn Gpu>,
    /// How the functions are distributed over machines.
    pub topology: Topology,
    /// All functions.
    pub functions: AllFunctions,
    /// The machine that the card is plugged into.
    pub machine: Arc<dyn Machine>,
    /// Guest memory, without the restrictions that configuration space imposes on each function.
    pub memory: Arc<dyn Dma>,
    /// The VFs that read all ones.
    pub withholding: Option<Withholding>,
}

/// Returns whether an enabled VF must read all ones in configuration space, because its BARs are not where the guest expects
/// them. Called with any lock of the card held.
pub type Withholding = Box<dyn Fn(Function) -> bool + Send + Sync>;

/// Creates an event for each register.
fn io_events(registers: &[IoRegister]) -> io::Result<Vec<IoEvent>> {
    let event = |register: &IoRegister| {
        let event = EventFd::new(EFD_NONBLOCK)?;
        Ok(IoEvent { bar: register.bar, offset: register.offset, len: register.len, event })
    };
    registers.iter().map(event).collect()
}

impl CardShared {
    fn functions(&self) -> impl Iterator<Item = Arc<CardFunction>> {
        self.functions.get().into_iter().flatten().filter_map(Weak::upgrade)
    }

    fn vfs(&self) -> impl Iterator<Item = Arc<CardFunction>> {
        self.functions().filter(|member| member.number.is_vf())
    }

    fn io_registers(&self) -> &'static [IoRegister] {
        self.gpu.events().map_or(&[], |events| events.io_registers())
    }

    fn pf(&self) -> Option<Arc<CardFunction>> {
        self.functions().find(|member| !member.number.is_vf())
    }

    /// Enables VFs 1 to `count`, after VF Enable was set. Ordering: the device model enables the VFs before they become
    /// accessible.
    pub fn enable_vfs(&self, count: u8) {
        log::info!("VFs 1 to {count} are enabled");
        if let Some(vfs) = self.gpu.vfs() {
            vfs.enable_vfs(count);
        }
        let enabled: Vec<_> = self.vfs().filter(|vf| vf.number.number() <= count).collect();
        enabled.iter().for_each(|vf| vf.update(|config| config.set_enabled(true)));
        self.machine.vfs_enabled(&of_devices(enabled));
    }

    /// Disables all VFs, after VF Enable was cleared. Ordering: the VFs become inaccessible before the device model
    /// disables them.
    fn disable_vfs(&self) {
        log::info!("VFs are disabled");
        let gone: Vec<_> = self.vfs().filter(|vf| vf.enabled()).collect();
        gone.iter().for_each(|vf| vf.update(|config| config.set_enabled(false)));
        if let Some(vfs) = self.gpu.vfs() {
            vfs.disable_vfs();
        }
        self.machine.vfs_disabled(&of_devices(gone));
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
fn of_devices(mut functions: Vec<Arc<CardFunction>>) -> Vec<Arc<dyn PciDevice>> {
    functions.retain(|function| function.exposure == Exposure::Full);
    functions.into_iter().map(|function| function as Arc<dyn PciDevice>).collect()
}

/// A function on the PCI bus.
pub struct CardFunction {
    pub(super) number: Function,
    pub(crate) exposure: Exposure,
    pub(crate) port: Arc<BusPort>,
    pub(crate) trapped: Trapped,
    reverted: RevertedLog,
    /// Limits the lines on BARs that the machine cannot move.
    unplaced: LineLimit,
    pub(super) shared: Arc<CardShared>,
    bars: Vec<Bar>,
    config_bytes: u64,
    /// The registers that may be written by events. Kept, because each access looks at them.
    io_registers: &'static [IoRegister],
    /// In the order of `io_registers`.
    io_events: Vec<IoEvent>,
    /// The BAR addresses last reported to the machine, in the order of `bars`. The mutex is the configuration lock: it is
    /// held while a change of configuration space is applied and reported, which serialises the reports to the machine
    /// in order.
    placed: Mutex<[Option<u64>; BAR_REGISTERS as usize]>,
    /// The function itself, passed to its machine.
    this: Weak<CardFunction>,
    /// Held from reading an event of a register until the card has processed the write.
    processing: Mutex<()>,
    connected: AtomicBool,
    /// Number of resets of this function.
    resets: AtomicU64,
}

impl CardFunction {
    /// Creates a function with these BARs, in ascending order of index.
    pub(super) fn full(
        shared: &Arc<CardShared>,
        number: Function,
        port: Arc<BusPort>,
        bars: Vec<Bar>,
    ) -> io::Result<Arc<Self>> {
        let io_events = io_events(shared.io_registers())?;
        Ok(Arc::new_cyclic(|this| CardFunction {
            bars,
            io_events,
            ..Self::new(shared, number, Exposure::Full, port, this)
        }))
    }

    /// Creates a function with configuration space only.
    pub(super) fn config_only(shared: &Arc<CardShared>, number: Function, port: Arc<BusPort>) -> Arc<Self> {
        Arc::new_cyclic(|this| Self::new(shared, number, Exposure::ConfigOnly, port, this))
    }

    fn new(
        shared: &Arc<CardShared>,
        number: Function,
        exposure: Exposure,
        port: Arc<BusPort>,
        this: &Weak<Self>,
    ) -> Self {
        let config_bytes = port.config().bytes();
        CardFunction {
            number,
            exposure,
            config_bytes,
            port,
            trapped: Trapped::new(shared.gpu.access_kinds()),
            reverted: RevertedLog::default(),
            unplaced: LineLimit::default(),
            shared: shared.clone(),
            bars: Vec::new(),
            io_registers: shared.io_registers(),
            io_events: Vec::new(),
            placed: Mutex::default(),
            this: this.clone(),
            processing: Mutex::default(),
            // Of a function in the VMM's process, always; a server says when clients connect and disconnect.
            connected: AtomicBool::new(true),
            resets: AtomicU64::new(0),
        }
    }

    /// The registers of [`PciDevice::io_events`], in the same order.
    pub(crate) fn io_registers(&self) -> &'static [IoRegister] {
        self.io_registers
    }

    /// The counts of trapped accesses so far.
    pub fn trapped(&self) -> TrappedCounts {
        self.trapped.counts()
    }

    /// Equivalent to a write to the register with index `register` in [`PciDevice::io_events`], for a VMM that detects
    /// such writes by means other than events. Events must be processed by [`crate::IoEventHandler`] instead, which orders
    /// them with the accesses that depend on them.
    pub fn io_written(&self, register: usize) {
        if self.post_written(register) {
            self.shared.gpu.wakeups().post();
        }
    }

    /// Processes a pending event of a register, including the work that it requests, on the calling thread. Must be
    /// called when the event is readable.
    pub(crate) fn serve_event(&self, register: usize) {
        if self.take_event(register)
            && let Some(events) = self.shared.gpu.events()
        {
            events.poll();
        }
    }

    /// Takes a pending event of a register, if any, and passes the write to the card. Returns whether there was one. The
    /// work that it requests is not done; the caller must start it without holding a lock that the guest's VMM may need
    /// to reply to the card.
    fn take_event(&self, register: usize) -> bool {
        let Some(event) = self.io_events.get(register) else { return false };
        let _order = self.processing.lock().ignore_poison();
        let written = event.event.read().is_ok();
        if written {
            self.post_written(register);
        }
        written
    }

    /// Passes a write of a register to the card. Returns false if its BAR is not decoded.
    fn post_written(&self, register: usize) -> bool {
        let decoded = self.io_events.get(register).is_some_and(|event| self.decodes(event.bar));
        if let (true, Some(events)) = (decoded, self.shared.gpu.events()) {
            events.io_written(self.number, register);
        }
        decoded
    }

    /// Processes pending events that the card must receive before an access at `offset` of `bar`.
    fn take_events_before(&self, bar: u8, offset: u64) {
        for (index, register) in self.io_registers.iter().enumerate() {
            if register.bar == bar && register.ordered.contains(&offset) && self.take_event(index) {
                self.shared.gpu.wakeups().post();
            }
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

    /// Number of resets of the function: by FLR, or by its machine.
    pub(crate) fn resets(&self) -> u64 {
        self.resets.load(Ordering::Relaxed)
    }

    /// Resets the function in the device model.
    fn reset_gpu(&self) {
        self.resets.fetch_add(1, Ordering::Relaxed);
        self.shared.gpu.reset(self.number);
    }

    /// Number of guest memory sections that the function's machine maps.
    pub(crate) fn guest_sections(&self) -> usize {
        self.shared.memory.view(self.number).sections()
    }

    /// An offset in a BAR, for the log.
    fn place(&self, bar: u8, offset: u64) -> Place<'_> {
        Place { gpu: &*self.shared.gpu, function: self.number, bar, offset }
    }

    /// Returns whether accesses to a BAR are decoded.
    fn decodes(&self, bar: u8) -> bool {
        self.exposure == Exposure::Full && self.port.decodes(bar)
    }

    /// Changes configuration space and applies the resulting events. Changes are serialised by `placed`.
    pub(crate) fn update(&self, change: impl FnOnce(&mut Config) -> Events) {
        self.update_and(change, || {});
    }

    /// Changes configuration space, applies the resulting events, and calls `then` before the next change.
    fn update_and(&self, change: impl FnOnce(&mut Config) -> Events, then: impl FnOnce()) {
        // Always succeeds: the caller holds a reference.
        let Some(this) = self.this.upgrade() else { return };
        let this: Arc<dyn PciDevice> = this;
        let mut placed = self.placed.lock().ignore_poison();
        let events = self.port.update(change);
        for write in events.reverted() {
            if let Some(line) = self.reverted.line(&self.name(), write, Instant::now()) {
                log::warn!("{line}");
            }
        }
        for event in events {
            match event {
                Event::FunctionLevelReset => self.reset_gpu(),
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
        then();
        for (bar, placed) in self.bars.iter().zip(&mut *placed) {
            let address = self.address(bar.index);
            if *placed == address {
                continue;
            }
            let moved = self.shared.machine.bar_moved(&this, bar.index, address);
            *placed = address.filter(|_| moved.is_ok());
            if let Err(error) = moved
                && let Some(suppressed) = self.unplaced.admit(Instant::now())
            {
                let place = address.map_or_else(|| "no address".into(), |address| format!("{address:#x}"));
                log::warn!("{}: BAR {} cannot be moved to {place}: {error}{suppressed}", self.name(), bar.index);
            }
        }
    }

    /// Current guest address of a BAR; `None` if it is not decoded.
    fn address(&self, bar: u8) -> Option<u64> {
        if !self.decodes(bar) {
            return None;
        }
        let own = self.port.config().decoded(bar);
        let vf = Some(self.number).filter(|number| number.is_vf());
        own.or_else(|| self.shared.pf()?.port.config().vf_bar_address(vf?.number().into(), bar))
    }

    /// Host memory allocated for the function's memory, in bytes.
    pub(crate) fn allocated(&self) -> u64 {
        match self.exposure {
            Exposure::Full => self.shared.gpu.own_memory().map_or(0, |memory| memory.allocated(self.number)),
            Exposure::ConfigOnly => 0,
        }
    }
}

impl PciDevice for CardFunction {
    fn number(&self) -> Function {
        self.number
    }

    /// "pf", "vf1", and "vf1-config-only" for a configuration-only function (`Exposure::ConfigOnly`).
    fn name(&self) -> String {
        match (self.number, self.exposure) {
            (Function::PF, _) => "pf".into(),
            (vf, Exposure::Full) => format!("vf{}", vf.number()),
            (vf, Exposure::ConfigOnly) => format!("vf{}-config-only", vf.number()),
        }
    }

    /// First VF Offset and VF Stride are 1.
    fn routing_offset(&self) -> u16 {
        self.number.number().into()
    }

    fn enabled(&self) -> bool {
        self.port.config().enabled()
    }

    fn bus_master(&self) -> bool {
        self.port.bus_master()
    }

    fn config_bytes(&self) -> u64 {
        self.config_bytes
    }

    fn read_config(&self, offset: u64, data: &mut [u8]) {
        self.trapped.count_config();
        if self.shared.withholding.as_ref().is_some_and(|withheld| withheld(self.number)) {
            self.port.config().read_withheld(offset, data);
        } else {
            self.port.config().read(offset, data);
        }
        log::trace!("{}: read config:{offset:#x} = {}", self.number.number(), Value(data));
    }

    fn write_config(&self, offset: u64, data: &[u8]) {
        log::trace!("{}: write config:{offset:#x} = {}", self.number.number(), Value(data));
        self.trapped.count_config();
        let written = || {
            if self.exposure == Exposure::Full
                && self.enabled()
                && let Some(registers) = self.shared.gpu.config_registers()
            {
                registers.config_written(self.number, offset, data);
            }
        };
        self.update_and(|config| config.write(offset, data), written);
    }

    fn bars(&self) -> &[Bar] {
        &self.bars
    }

    fn read_bar(&self, bar: u8, offset: u64, data: &mut [u8]) {
        self.trapped.count(self.shared.gpu.access_kind(bar, offset, false));
        if self.decodes(bar) {
            self.take_events_before(bar, offset);
            self.shared.gpu.read(self.number, bar, offset, data);
        } else {
            // No BAR decodes the address: the bus returns all ones.
            data.fill(0xff);
        }
        log::trace!("{}: read {} = {}", self.number.number(), self.place(bar, offset), Value(data));
    }

    fn write_bar(&self, bar: u8, offset: u64, data: &[u8]) {
        log::trace!("{}: write {} = {}", self.number.number(), self.place(bar, offset), Value(data));
        self.trapped.count(self.shared.gpu.access_kind(bar, offset, true));
        if self.decodes(bar) {
            self.take_events_before(bar, offset);
            self.shared.gpu.write(self.number, bar, offset, data);
        }
    }

    fn mappings(&self, bar: u8) -> Vec<BarMapping<'_>> {
        // QEMU maps a BAR once, before a PF driver in its guest has assigned memory to the VF.
        let limited = self.shared.topology != Topology::Together;
        match (self.exposure, self.shared.gpu.own_memory()) {
            (Exposure::Full, Some(memory)) => memory.mappings(self.number, bar, limited),
            (Exposure::Full, None) | (Exposure::ConfigOnly, _) => Vec::new(),
        }
    }

    fn io_events(&self) -> &[IoEvent] {
        &self.io_events
    }

    fn saved_device(&self) -> Option<&dyn SavedDevice> {
        Some(self)
    }

    fn reset(&self) {
        self.update(Config::reset);
        self.reset_gpu();
    }

    /// For the PF, the card is powered off: its memory is cleared and the pages are returned to the host. A VF is reset
    /// by an FLR; then its memory is cleared and its pages are returned to the host.
    fn power_off(&self) {
        self.reset();
        if let Some(memory) = self.shared.gpu.own_memory() {
            memory.clear(self.number);
        }
    }
}
