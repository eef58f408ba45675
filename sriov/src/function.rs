// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A PCI function, conventional or Express: handles configuration accesses and returns events for the device and the
//! transport.

use std::array;
use std::fmt;
use std::iter::Flatten;
use std::ops::Range;

use crate::bar::{BAR_REGISTERS, Bar, BarError, BarKind};
use crate::capability::{
    Capability, DEVICE_CONTROL, ID_ARI, ID_EXPRESS, ID_MSI, ID_POWER_MANAGEMENT, ID_SRIOV, ID_VENDOR_SPECIFIC,
    MSI_ADDRESS, MsiLayout, PM_CONTROL,
};
use crate::config::{CONFIG_BYTES, CONVENTIONAL_CONFIG_BYTES, ConfigSpace, Field, LayoutError, Reset};
use crate::header::{Command, Identity, Status};
use crate::register::Register;
use crate::registers::{DeviceControl, DeviceStatus, MsiControl, PmControl};
use crate::saved::{self, PartId};
use crate::sriov_capability::{MAX_VF_BARS, Sriov, SriovError, SriovLayout, SriovState, VfBar};

/// BAR that holds registers and GGTT (xe: regs/xe_bars.h).
pub const GTTMMADR_BAR: u8 = 0;
/// BAR that holds local memory (xe: regs/xe_bars.h).
pub const LMEM_BAR: u8 = 2;
/// Size of GTTMMADR in bytes (V13-004).
pub const GTTMMADR_BYTES: u64 = 16 << 20;

/// Offset of the SR-IOV capability of the physical function, the same as on the real card.
pub const SRIOV_CAPABILITY: u16 = 0x320;

/// PowerState of Power Management Control/Status: D3hot. 0 is D0.
const POWER_D3HOT: u8 = 3;

/// The function cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FunctionError {
    /// Invalid BAR size or register.
    Bar(BarError),
    /// Overlapping or out-of-range configuration space fields.
    Layout(LayoutError),
    /// Invalid SR-IOV configuration.
    Sriov(SriovError),
    /// The card has no virtual functions.
    NoVirtualFunctions,
}

impl fmt::Display for FunctionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FunctionError::Bar(error) => error.fmt(f),
            FunctionError::Layout(error) => error.fmt(f),
            FunctionError::Sriov(error) => error.fmt(f),
            FunctionError::NoVirtualFunctions => f.write_str("the card has no virtual functions"),
        }
    }
}

impl std::error::Error for FunctionError {}

impl From<BarError> for FunctionError {
    fn from(error: BarError) -> Self {
        FunctionError::Bar(error)
    }
}

impl From<LayoutError> for FunctionError {
    fn from(error: LayoutError) -> Self {
        FunctionError::Layout(error)
    }
}

impl From<SriovError> for FunctionError {
    fn from(error: SriovError) -> Self {
        FunctionError::Sriov(error)
    }
}

/// Device power states that the function supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerState {
    /// Fully operational.
    D0,
    /// Low power, state preserved. The function responds only to configuration accesses.
    D3hot,
}

/// Address and data of an MSI memory write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MsiMessage {
    /// Target address.
    pub address: u64,
    /// Data to write.
    pub data: u32,
}

/// Effect of a configuration write or a reset outside configuration space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A Function Level Reset was initiated. Configuration space is already reset; the caller must reset the device.
    FunctionLevelReset,
    /// Bus mastering was enabled or disabled: whether the function may send memory requests.
    BusMaster(bool),
    /// Memory space was enabled or disabled. BARs are decoded only in D0, see [`PciFunction::decoded`].
    MemorySpace(bool),
    /// I/O space was enabled or disabled.
    IoSpace(bool),
    /// The power state changed.
    PowerState(PowerState),
    /// A BAR address changed. Also reported while the BAR is not decoded.
    BarMoved {
        /// Index of the BAR.
        bar: u8,
        /// New bus address.
        address: u64,
    },
    /// MSI was enabled (with the message of vector 0), its message changed, or it was disabled (`None`).
    Msi(Option<MsiMessage>),
    /// Bit mask of vectors that were raised while masked and must be sent now.
    MsiUnmasked(u32),
    /// Virtual functions 1 to `count` were enabled; they are in reset state (V13-016).
    VfEnable {
        /// Number of virtual functions.
        count: u16,
    },
    /// All virtual functions were disabled (V13-113..115).
    VfDisable,
    /// Decoding of the VF BARs was enabled or disabled. Never true while no virtual function exists.
    VfMemorySpace(bool),
    /// The address or size of a VF BAR changed. Also reported while the BAR is not decoded.
    VfBarMoved(VfBar),
}

/// A register field that keeps its value, because the function rejects the written one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RevertedWrite {
    /// Name of the register or field in the PCI Express specification.
    pub register: &'static str,
    /// Offset of the register in configuration space.
    pub offset: u16,
    /// The value that was written, at its position in the register.
    pub written: u32,
    /// The value that the field keeps, at the same position.
    pub kept: u32,
}

/// One event of each kind, one per BAR and one per VF BAR.
const MAX_EVENTS: usize = 10 + BAR_REGISTERS as usize + MAX_VF_BARS;

/// The power state, and the fields that [`Sriov::settle`] checks.
const MAX_REVERTED: usize = 5;

/// Events of one access, in the order in which the caller must handle them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Events {
    list: [Option<Event>; MAX_EVENTS],
    count: usize,
    reverted: RevertedWrites,
}

impl Events {
    fn push(&mut self, event: Event) {
        if let Some(slot) = self.list.get_mut(self.count) {
            *slot = Some(event);
            self.count = self.count.saturating_add(1);
        }
    }

    /// The fields that the access has written and that keep their values. They have no effect on the device.
    pub fn reverted(&self) -> impl Iterator<Item = RevertedWrite> + '_ {
        self.reverted.0.iter().flatten().copied()
    }
}

impl IntoIterator for Events {
    type Item = Event;
    type IntoIter = Flatten<array::IntoIter<Option<Event>, MAX_EVENTS>>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter().flatten()
    }
}

/// The reverted writes of one access.
#[derive(Clone, Copy, Debug, Default)]
pub struct RevertedWrites([Option<RevertedWrite>; MAX_REVERTED]);

impl RevertedWrites {
    /// Sets the bits of `mask` in the 32 bits at `offset` to `value`, as before the write. If the write has changed them,
    /// adds it to the list.
    pub(crate) fn revert(
        &mut self,
        config: &mut ConfigSpace,
        register: &'static str,
        (offset, mask): (u16, u32),
        value: u32,
    ) {
        let (written, kept) = (config.dword(offset) & mask, value & mask);
        if written != kept {
            config.set(offset, mask, value);
            if let Some(slot) = self.0.iter_mut().find(|slot| slot.is_none()) {
                *slot = Some(RevertedWrite { register, offset, written, kept });
            }
        }
    }

    /// Like [`RevertedWrites::revert`] for the bits of `mask` in the register `R` of the capability at `start`.
    pub(crate) fn revert_register<R: Register>(
        &mut self,
        config: &mut ConfigSpace,
        register: &'static str,
        start: u16,
        mask: R,
        value: R,
    ) {
        self.revert(config, register, (start.saturating_add(R::AT), mask.value()), value.value());
    }
}

/// Returns whether the command register enables the address space of a BAR.
fn space_enabled(command: Command, kind: BarKind) -> bool {
    match kind {
        BarKind::Memory32 { .. } | BarKind::Memory64 { .. } => command.memory_space(),
        BarKind::Io => command.io_space(),
    }
}

/// The command register with the address spaces of `bars` enabled.
fn spaces(bars: &[Bar]) -> Command {
    bars.iter().fold(Command::new(), |command, bar| match bar.kind() {
        BarKind::Memory32 { .. } | BarKind::Memory64 { .. } => command.with_memory_space(true),
        BarKind::Io => command.with_io_space(true),
    })
}

/// State that is compared to derive the events of a change.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Controls {
    command: Command,
    power: PowerState,
    bars: [u64; BAR_REGISTERS as usize],
    msi: Option<MsiMessage>,
    sriov: SriovState,
}

/// A PCI function. It is a PCI Express function if it has the PCI Express capability, and a conventional one otherwise.
pub struct PciFunction {
    pub(crate) config: ConfigSpace,
    bars: Vec<Bar>,
    express: Option<u16>,
    power_management: Option<u16>,
    msi: Option<u16>,
    pub(crate) sriov: Option<Sriov>,
    /// The parts of its saved state, with their bytes in configuration space.
    pub(crate) parts: Vec<(PartId, Range<u16>)>,
    /// Offsets of capabilities that have a different ID in bulk reads, see [`PciFunction::read_config_disguised`].
    disguised: Vec<u16>,
}

impl PciFunction {
    /// The card's physical function: GTTMMADR, a BAR for local memory of `lmem_bytes` (a power of two), and the SR-IOV
    /// capabilities if `sriov` specifies at least one virtual function.
    pub fn physical(identity: &Identity, lmem_bytes: u64, sriov: Option<&SriovLayout>) -> Result<Self, FunctionError> {
        let bars = vec![
            // Prefetchable as on the real card; desktop DG2 cards differ.
            Bar::memory_64(GTTMMADR_BAR, GTTMMADR_BYTES, true)?,
            Bar::memory_64(LMEM_BAR, lmem_bytes, true)?,
        ];
        // GGC: GGMS = 3, 8 MiB of GGTT entries (i915: intel_ggtt.c, gen8_gmch_probe).
        let device_specific = [Field::word(0x50, 0x00c0)];
        let mut capabilities = vec![
            Capability::express(0x70),
            Capability::msi(0xac),
            Capability::power_management(0xd0),
            // Must be the first extended capability: SR-IOV cannot be at 0x100 (see `read_config_disguised`).
            Capability::serial_number(0x100, identity.serial),
        ];
        let sriov = sriov.map(|layout| Sriov::new(layout, identity.device, SRIOV_CAPABILITY, 0x420));
        let sriov = sriov.transpose()?.flatten();
        let sriov = sriov.map(|(sriov, own)| {
            capabilities.push(Capability::ari(0x200));
            capabilities.extend(own);
            sriov
        });
        Ok(PciFunction { sriov, ..Self::new(identity, bars, &device_specific, &capabilities)? })
    }

    /// Builds a function in its state after a conventional reset. The capability lists follow the order of
    /// `capabilities`.
    pub fn new(
        identity: &Identity,
        bars: Vec<Bar>,
        device_specific: &[Field],
        capabilities: &[Capability],
    ) -> Result<Self, LayoutError> {
        let fields = identity.fields(spaces(&bars)).into_iter().chain(bars.iter().flat_map(Bar::fields));
        let fields = fields.chain(device_specific.iter().copied()).chain(Capability::chain(capabilities));
        Ok(PciFunction {
            config: ConfigSpace::new(fields)?,
            express: Capability::find_standard(capabilities, ID_EXPRESS),
            power_management: Capability::find_standard(capabilities, ID_POWER_MANAGEMENT),
            msi: Capability::find_standard(capabilities, ID_MSI),
            bars,
            sriov: None,
            parts: saved::parts(device_specific, capabilities),
            disguised: [ID_SRIOV, ID_ARI]
                .iter()
                .filter_map(|id| Capability::find_extended(capabilities, *id))
                .collect(),
        })
    }

    /// Reads configuration space, with any width and alignment. Bytes outside the 4096 bytes read 0.
    pub fn read_config(&self, offset: u64, data: &mut [u8]) {
        self.config.read(offset, data);
    }

    /// Reads configuration space for a client that copies the capability list with one bulk read: reads longer than 4
    /// bytes return SR-IOV and ARI with a vendor-specific ID. All other reads return the true contents.
    ///
    /// QEMU takes one snapshot of all 4096 bytes and removes these two capabilities from the guest's list
    /// (vfio_add_ext_cap). With a vendor-specific ID they stay in the list. QEMU forwards the guest's own reads of 1, 2
    /// or 4 bytes, IDs included, so the guest sees the true IDs. The exception is the dword at 0x100, which QEMU reads
    /// from the snapshot, so neither capability may be located there. The result depends only on the access itself, not
    /// on earlier accesses.
    pub fn read_config_disguised(&self, offset: u64, data: &mut [u8]) {
        self.read_config(offset, data);
        if data.len() <= 4 {
            return;
        }
        for at in &self.disguised {
            for (n, id) in ID_VENDOR_SPECIFIC.to_le_bytes().into_iter().enumerate() {
                let seen =
                    u64::from(*at).saturating_add(n as u64).checked_sub(offset).and_then(|n| usize::try_from(n).ok());
                if let Some(byte) = seen.and_then(|n| data.get_mut(n)) {
                    *byte = id;
                }
            }
        }
    }

    /// Writes configuration space as software does, with any width and alignment. Bytes outside the space are dropped.
    pub fn write_config(&mut self, offset: u64, data: &[u8]) -> Events {
        let before = self.controls();
        let slept = self.power_state_bits();
        let latched = self.sriov.as_ref().map(|sriov| sriov.latch(&self.config));
        // Initiate FLR always reads 0, so it is detected from the written data.
        let flr = self.starts_flr(offset, data);
        self.config.write(offset, data);
        let mut events = Events::default();
        self.revert_unsupported_power_state(slept, &mut events.reverted);
        if let Some((sriov, latched)) = self.sriov.as_ref().zip(latched) {
            sriov.settle(&mut self.config, &latched, &mut events.reverted);
        }
        if flr {
            self.reset_config(Reset::FunctionLevel);
            events.push(Event::FunctionLevelReset);
        }
        self.changes(before, &mut events);
        let due = self.take_unmasked();
        if due != 0 {
            events.push(Event::MsiUnmasked(due));
        }
        events
    }

    /// Conventional reset of the function's configuration space (V13-114).
    pub fn reset(&mut self) -> Events {
        self.change(|function| function.reset_config(Reset::Conventional))
    }

    /// Applies a change that is not a guest write and returns the resulting events.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut Self)) -> Events {
        let before = self.controls();
        change(self);
        let mut events = Events::default();
        self.changes(before, &mut events);
        events
    }

    /// Both resets clear VF Enable (V13-114, V13-115).
    pub(crate) fn reset_config(&mut self, reset: Reset) {
        self.config.reset(reset);
        if let Some(sriov) = &self.sriov {
            sriov.resize(&mut self.config);
        }
    }

    /// TotalVFs; 0 without the SR-IOV capability.
    pub fn total_vfs(&self) -> u16 {
        self.sriov.as_ref().map_or(0, Sriov::total_vfs)
    }

    /// Number of enabled virtual functions; 0 while VF Enable is clear.
    pub fn vfs_enabled(&self) -> u16 {
        self.sriov.as_ref().map_or(0, |sriov| sriov.vfs(&self.config))
    }

    /// Returns whether the virtual functions decode their BARs: VF Enable and VF MSE are set and this function is in
    /// D0.
    #[cfg(test)]
    pub(crate) fn vf_memory_space(&self) -> bool {
        self.sriov_state().memory_space
    }

    /// Number of virtual functions that decode their BARs if this function is in D0: 0 unless VF Enable and VF MSE are
    /// set.
    pub fn vfs_decoding(&self) -> u16 {
        let state = self.sriov.as_ref().map(|sriov| sriov.state(&self.config, true));
        state.filter(|state| state.memory_space).map_or(0, |state| state.vfs)
    }

    /// The VF BARs, by ascending index, whether decoded or not.
    pub fn vf_bars(&self) -> impl Iterator<Item = VfBar> {
        self.sriov.iter().flat_map(|sriov| sriov.bars(&self.config))
    }

    /// Bus address of BAR `bar` of VF `vf` (1 to TotalVFs), whether decoded or not. The address is low until software
    /// programs the BAR. Returns `None` for an address beyond the end of the address space.
    pub fn vf_bar_address(&self, vf: u16, bar: u8) -> Option<u64> {
        self.vf_bars().find(|found| found.index == bar && vf <= self.total_vfs())?.window(vf)
    }

    fn sriov_state(&self) -> SriovState {
        let awake = self.power_state() == PowerState::D0;
        self.sriov.as_ref().map_or_else(SriovState::default, |sriov| sriov.state(&self.config, awake))
    }

    /// The BARs, by ascending index.
    pub fn bars(&self) -> &[Bar] {
        &self.bars
    }

    /// The BAR with this index.
    pub fn bar(&self, index: u8) -> Option<&Bar> {
        self.bars.iter().find(|bar| bar.index() == index)
    }

    /// Bus address of the BAR if it is decoded: its address space enabled and the function in D0.
    pub fn decoded(&self, index: u8) -> Option<u64> {
        self.bar(index).filter(|bar| self.decodes(bar)).map(|bar| self.address(bar))
    }

    fn decodes(&self, bar: &Bar) -> bool {
        space_enabled(self.command(), bar.kind()) && self.power_state() == PowerState::D0
    }

    /// Size of configuration space in bytes: 4096 with the PCI Express capability, 256 without.
    pub fn config_bytes(&self) -> u64 {
        if self.express.is_some() { CONFIG_BYTES as u64 } else { CONVENTIONAL_CONFIG_BYTES }
    }

    /// Returns whether the function may send memory requests.
    pub fn bus_master(&self) -> bool {
        self.command().bus_master()
    }

    /// Current power state.
    pub fn power_state(&self) -> PowerState {
        if self.power_state_bits() == POWER_D3HOT { PowerState::D3hot } else { PowerState::D0 }
    }

    /// Returns the message to send for an interrupt on MSI `vector`. If the vector is masked, it becomes pending and is
    /// reported later as [`Event::MsiUnmasked`]. The interrupt is lost if MSI or bus mastering is disabled or the
    /// vector does not exist.
    #[allow(clippy::arithmetic_side_effects, reason = "capabilities lie below 4096")]
    pub fn raise_msi(&mut self, vector: u16) -> Option<MsiMessage> {
        let message = self.msi_message().filter(|_| vector == 0 && self.bus_master())?;
        let (msi, layout) = self.msi_layout()?;
        if let Some((mask, pending)) = layout.masking()
            && self.config.dword(msi + mask) & 1 != 0
        {
            self.config.set(msi + pending, 1, 1);
            return None;
        }
        Some(message)
    }

    /// Records a fatal error of the device: sets Fatal Error Detected. Returns whether the function sends the message
    /// ERR_FATAL: fatal error reporting or SERR# is enabled (PCIe 6.2.5). There is no AER capability.
    pub fn record_fatal_error(&mut self) -> bool {
        let Some(express) = self.express else { return false };
        let detected = DeviceStatus::new().with_fatal_error(true);
        self.config.set_register(express, detected, detected);
        let serr = self.command().serr();
        if serr {
            let signaled = Status::new().with_signaled_system_error(true);
            self.config.set_register(0, signaled, signaled);
        }
        serr || self.config.register::<DeviceControl>(express).fatal_error_reporting()
    }

    #[allow(clippy::arithmetic_side_effects, reason = "capabilities lie below 4096")]
    fn take_unmasked(&mut self) -> u32 {
        let Some((msi, layout)) = self.msi_layout() else { return 0 };
        let Some((mask, pending)) = layout.masking() else { return 0 };
        if !self.bus_master() || self.msi_message().is_none() {
            return 0;
        }
        let due = self.config.dword(msi + pending) & !self.config.dword(msi + mask);
        self.config.set(msi + pending, due, 0);
        due
    }

    #[allow(clippy::arithmetic_side_effects, reason = "capabilities lie below 4096")]
    fn msi_message(&self) -> Option<MsiMessage> {
        let (msi, layout) = self.msi_layout()?;
        let enabled = self.config.register::<MsiControl>(msi).enable();
        let address = match layout.wide() {
            true => self.qword(msi + MSI_ADDRESS),
            false => self.config.dword(msi + MSI_ADDRESS).into(),
        };
        enabled.then(|| MsiMessage { address, data: self.config.word(msi + layout.data()).into() })
    }

    /// Offset and layout of the MSI capability.
    fn msi_layout(&self) -> Option<(u16, MsiLayout)> {
        let msi = self.msi?;
        Some((msi, MsiLayout::of(self.config.register(msi))))
    }

    #[allow(clippy::arithmetic_side_effects, reason = "capabilities lie below 4096")]
    fn qword(&self, at: u16) -> u64 {
        u64::from(self.config.dword(at + 4)) << 32 | u64::from(self.config.dword(at))
    }

    fn address(&self, bar: &Bar) -> u64 {
        // For a BAR with one register, the mask removes the register behind it.
        self.qword(bar.register()) & bar.address_mask()
    }

    fn command(&self) -> Command {
        self.config.register(0)
    }

    fn power_state_bits(&self) -> u8 {
        self.power_management.map_or(0, |at| self.config.register::<PmControl>(at).power_state())
    }

    /// Discards a write of an unsupported power state (D1, D2) (PCI PM 1.2, 3.2.4).
    fn revert_unsupported_power_state(&mut self, before: u8, reverted: &mut RevertedWrites) {
        if let Some(at) = self.power_management
            && !matches!(self.power_state_bits(), 0 | POWER_D3HOT)
        {
            let state = |bits| PmControl::new().with_power_state(bits);
            reverted.revert_register(&mut self.config, "PowerState", at, state(0b11), state(before));
        }
    }

    /// Fails with the place of the power state if `config` has one that is unsupported.
    #[allow(clippy::arithmetic_side_effects, reason = "capabilities lie below 4096")]
    pub(crate) fn check_power_state(&self, config: &ConfigSpace) -> Result<(), (PartId, u16)> {
        let Some(at) = self.power_management else { return Ok(()) };
        match config.register::<PmControl>(at).power_state() {
            0 | POWER_D3HOT => Ok(()),
            _ => Err((PartId::Standard(ID_POWER_MANAGEMENT), at + PM_CONTROL)),
        }
    }

    #[allow(clippy::arithmetic_side_effects, reason = "capabilities lie below 4096")]
    fn starts_flr(&self, offset: u64, data: &[u8]) -> bool {
        let Some(express) = self.express else { return false };
        let high_byte = u64::from(express + DEVICE_CONTROL + 1);
        let written = high_byte.checked_sub(offset).and_then(|n| data.get(usize::try_from(n).ok()?));
        written.is_some_and(|byte| DeviceControl::from_bits(u16::from(*byte) << 8).initiate_flr())
    }

    fn controls(&self) -> Controls {
        let mut bars = [0; BAR_REGISTERS as usize];
        for (address, bar) in bars.iter_mut().zip(&self.bars) {
            *address = self.address(bar);
        }
        Controls {
            command: self.command(),
            power: self.power_state(),
            bars,
            msi: self.msi_message(),
            sriov: self.sriov_state(),
        }
    }

    /// Appends the differences from `before`. Removals precede additions.
    fn changes(&self, before: Controls, events: &mut Events) {
        let now = self.controls();
        let switched = |bit: fn(&Command) -> bool| {
            let (before, now) = (bit(&before.command), bit(&now.command));
            (before != now).then_some(now)
        };
        let (vfs_before, vfs) = (before.sriov, now.sriov);
        if vfs_before.memory_space && !vfs.memory_space {
            events.push(Event::VfMemorySpace(false));
        }
        if vfs_before.vfs != vfs.vfs && vfs_before.vfs != 0 {
            events.push(Event::VfDisable);
        }
        if let Some(on) = switched(Command::memory_space).filter(|on| !on) {
            events.push(Event::MemorySpace(on));
        }
        if let Some(on) = switched(Command::io_space).filter(|on| !on) {
            events.push(Event::IoSpace(on));
        }
        if before.power != now.power {
            events.push(Event::PowerState(now.power));
        }
        for (bar, (old, new)) in self.bars.iter().zip(before.bars.into_iter().zip(now.bars)) {
            if old != new {
                events.push(Event::BarMoved { bar: bar.index(), address: new });
            }
        }
        for bar in vfs.bars.iter().zip(&vfs_before.bars).filter(|(new, old)| new != old).map(|(new, _)| *new) {
            events.push(Event::VfBarMoved(bar));
        }
        if let Some(on) = switched(Command::memory_space).filter(|on| *on) {
            events.push(Event::MemorySpace(on));
        }
        if let Some(on) = switched(Command::io_space).filter(|on| *on) {
            events.push(Event::IoSpace(on));
        }
        if let Some(on) = switched(Command::bus_master) {
            events.push(Event::BusMaster(on));
        }
        if before.msi != now.msi {
            events.push(Event::Msi(now.msi));
        }
        if vfs_before.vfs != vfs.vfs && vfs.vfs != 0 {
            events.push(Event::VfEnable { count: vfs.vfs });
        }
        if vfs.memory_space && !vfs_before.memory_space {
            events.push(Event::VfMemorySpace(true));
        }
    }
}

#[cfg(test)]
mod tests;
