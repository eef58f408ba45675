//! A PCI Express function: configuration accesses in, events for the device and the transport out.

use std::array;
use std::fmt;
use std::iter::Flatten;

use crate::bar::{BAR_REGISTERS, Bar, BarError};
use crate::capability::{
    Capability, DEVICE_CONTROL, ID_ARI, ID_EXPRESS, ID_MSI, ID_POWER_MANAGEMENT, ID_SRIOV, ID_VENDOR_SPECIFIC,
    INITIATE_FLR, MSI_ADDRESS, MSI_CONTROL, MSI_DATA, MSI_ENABLE, MSI_MASK, MSI_PENDING, PM_CONTROL,
};
use crate::config::{ConfigSpace, Field, LayoutError, Reset};
use crate::header::{COMMAND, COMMAND_BUS_MASTER, COMMAND_MEMORY_SPACE, Identity};
use crate::sriov_capability::{FIRST_VF_OFFSET, Sriov, SriovError, SriovLayout, SriovState, VF_STRIDE, VfBar};

/// BAR that holds registers and GGTT (xe: regs/xe_bars.h).
pub const GTTMMADR_BAR: u8 = 0;
/// BAR that holds local memory (xe: regs/xe_bars.h).
pub const LMEM_BAR: u8 = 2;
/// Bytes of GTTMMADR (V13-004).
pub const GTTMMADR_BYTES: u64 = 16 << 20;

/// PowerState, the lowest bits of Power Management Control/Status.
const POWER_STATE: u16 = 0b11;
const POWER_D3HOT: u16 = 3;

/// A function that cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionError {
    /// A BAR that PCI cannot express.
    Bar(BarError),
    /// Registers in each other's way.
    Layout(LayoutError),
    /// Virtual functions that cannot be offered.
    Sriov(SriovError),
}

impl fmt::Display for FunctionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FunctionError::Bar(error) => error.fmt(f),
            FunctionError::Layout(error) => error.fmt(f),
            FunctionError::Sriov(error) => error.fmt(f),
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

/// Device power states that the function has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PowerState {
    /// Working.
    D0,
    /// Asleep with its state kept: answers configuration accesses only.
    D3hot,
}

/// Address and data of the memory write that an interrupt is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MsiMessage {
    /// Where it goes.
    pub address: u64,
    /// What is written there.
    pub data: u32,
}

/// What a configuration write or a reset has changed outside of configuration space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A Function Level Reset has been started; configuration space is through it, the device has to follow.
    FunctionLevelReset,
    /// The function may send memory requests, or no longer.
    BusMaster(bool),
    /// The function answers accesses to its BARs, or no longer (it needs D0 as well, see [`PciFunction::decoded`]).
    MemorySpace(bool),
    /// The function has changed its power state.
    PowerState(PowerState),
    /// A BAR has another address, also while it is not decoded.
    BarMoved {
        /// Index of the BAR.
        bar: u8,
        /// Its new address on the bus.
        address: u64,
    },
    /// MSI has been enabled (with the message of vector 0), given another message, or disabled (`None`).
    Msi(Option<MsiMessage>),
    /// Vectors, one a bit, that were raised while masked and are to be sent now.
    MsiUnmasked(u32),
    /// Virtual functions 1 to `count` have come into being, out of reset (V13-016).
    VfEnable {
        /// How many there are.
        count: u16,
    },
    /// There are no virtual functions any more (V13-113..115).
    VfDisable,
    /// The virtual functions answer accesses to their BARs, or no longer; never true while there are none.
    VfMemorySpace(bool),
    /// A VF BAR has another address or another size, also while it is not decoded.
    VfBarMoved(VfBar),
}

/// One event for every kind, one for each 64-bit BAR and each 64-bit VF BAR.
const MAX_EVENTS: usize = 9 + 2 * (BAR_REGISTERS as usize / 2);

/// The events of one access, in the order in which to act on them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Events {
    list: [Option<Event>; MAX_EVENTS],
    count: usize,
}

impl Events {
    pub(crate) fn push(&mut self, event: Event) {
        if let Some(slot) = self.list.get_mut(self.count) {
            *slot = Some(event);
            self.count += 1;
        }
    }
}

impl IntoIterator for Events {
    type Item = Event;
    type IntoIter = Flatten<array::IntoIter<Option<Event>, MAX_EVENTS>>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter().flatten()
    }
}

/// The state that events tell of.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Controls {
    command: u16,
    power: PowerState,
    bars: [u64; BAR_REGISTERS as usize / 2],
    msi: Option<MsiMessage>,
    sriov: SriovState,
}

/// A PCI Express function.
pub struct PciFunction {
    pub(crate) config: ConfigSpace,
    bars: Vec<Bar>,
    express: Option<u16>,
    power_management: Option<u16>,
    msi: Option<u16>,
    sriov: Option<Sriov>,
    /// Capabilities that a client must not recognise in bulk, see [`PciFunction::read_config_disguised`].
    disguised: Vec<u16>,
}

impl PciFunction {
    /// The card's physical function: GTTMMADR, a window onto local memory of `lmem_bytes` (a power of two), and the
    /// SR-IOV capabilities if `sriov` offers any virtual function.
    pub fn physical(identity: &Identity, lmem_bytes: u64, sriov: Option<&SriovLayout>) -> Result<Self, FunctionError> {
        let bars = vec![
            // Prefetchable on the real card, unlike on its siblings for desktops.
            Bar::memory_64(GTTMMADR_BAR, GTTMMADR_BYTES, true)?,
            Bar::memory_64(LMEM_BAR, lmem_bytes, true)?,
        ];
        // GGC: GGMS = 3, 8 MiB of GGTT entries (i915: intel_ggtt.c, gen8_gmch_probe).
        let device_specific = [Field::word(0x50, 0x00c0)];
        let mut capabilities = vec![
            Capability::express(0x70),
            Capability::msi(0xac),
            Capability::power_management(0xd0),
            // The first extended capability; SR-IOV may not be it (see `read_config_disguised`).
            Capability::serial_number(0x100, identity.serial),
        ];
        // SR-IOV lies where the real card has it.
        let sriov = sriov.map(|layout| Sriov::new(layout, identity.device, 0x320, 0x420)).transpose()?.flatten();
        let sriov = sriov.map(|(sriov, own)| {
            capabilities.push(Capability::ari(0x200));
            capabilities.extend(own);
            sriov
        });
        Ok(PciFunction { sriov, ..Self::new(identity, bars, &device_specific, &capabilities)? })
    }

    /// A function out of a conventional reset, made of its parts; software finds the capabilities in their order.
    pub fn new(
        identity: &Identity,
        bars: Vec<Bar>,
        device_specific: &[Field],
        capabilities: &[Capability],
    ) -> Result<Self, LayoutError> {
        let fields = identity.fields().into_iter().chain(bars.iter().flat_map(Bar::fields));
        let fields = fields.chain(device_specific.iter().copied()).chain(Capability::chain(capabilities));
        Ok(PciFunction {
            config: ConfigSpace::new(fields)?,
            express: Capability::find_standard(capabilities, ID_EXPRESS),
            power_management: Capability::find_standard(capabilities, ID_POWER_MANAGEMENT),
            msi: Capability::find_standard(capabilities, ID_MSI),
            bars,
            sriov: None,
            disguised: [ID_SRIOV, ID_ARI]
                .iter()
                .filter_map(|id| Capability::find_extended(capabilities, *id))
                .collect(),
        })
    }

    /// Reads configuration space: any width and alignment; zeros outside of its 4096 bytes.
    pub fn read_config(&self, offset: u64, data: &mut [u8]) {
        self.config.read(offset, data);
    }

    /// Reads configuration space for a client whose view of the capability list is taken in bulk: a read longer than
    /// 4 bytes shows SR-IOV and ARI as vendor-specific capabilities, any other read what is there.
    ///
    /// QEMU takes one snapshot of all 4096 bytes and leaves these two out of the guest's list (vfio_add_ext_cap),
    /// whatever the device could do for them. Under another name they stay in it, and since QEMU passes the guest's
    /// own reads of 1, 2 or 4 bytes on, IDs included, the guest finds the real ones. That does not hold for the dword
    /// at 0x100, which is answered from the snapshot: neither capability may be there. The answer depends on nothing
    /// but the access, so no order of accesses can confuse it.
    pub fn read_config_disguised(&self, offset: u64, data: &mut [u8]) {
        self.read_config(offset, data);
        if data.len() <= 4 {
            return;
        }
        for at in &self.disguised {
            for (n, id) in ID_VENDOR_SPECIFIC.to_le_bytes().into_iter().enumerate() {
                let seen = (u64::from(*at) + n as u64).checked_sub(offset).and_then(|n| usize::try_from(n).ok());
                if let Some(byte) = seen.and_then(|n| data.get_mut(n)) {
                    *byte = id;
                }
            }
        }
    }

    /// Writes configuration space as a guest does: any width and alignment; what lies outside is dropped.
    pub fn write_config(&mut self, offset: u64, data: &[u8]) -> Events {
        let before = self.controls();
        let slept = self.power_state_bits();
        let latched = self.sriov.as_ref().map(|sriov| sriov.latch(&self.config));
        // Initiate FLR is no bit of the space: it reads 0, so the write itself is looked at.
        let flr = self.starts_flr(offset, data);
        self.config.write(offset, data);
        self.refuse_unsupported_power_state(slept);
        if let Some((sriov, latched)) = self.sriov.as_ref().zip(latched) {
            sriov.settle(&mut self.config, &latched);
        }
        let mut events = Events::default();
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

    /// A change that no guest's write makes, and the events that tell of it.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut Self)) -> Events {
        let before = self.controls();
        change(self);
        let mut events = Events::default();
        self.changes(before, &mut events);
        events
    }

    /// VF Enable goes with either reset (V13-114, V13-115).
    pub(crate) fn reset_config(&mut self, reset: Reset) {
        self.config.reset(reset);
        if let Some(sriov) = &self.sriov {
            sriov.resize(&mut self.config);
        }
    }

    /// TotalVFs; 0 for a function without SR-IOV.
    pub fn total_vfs(&self) -> u16 {
        self.sriov.as_ref().map_or(0, Sriov::total_vfs)
    }

    /// Virtual functions that exist now; 0 while VF Enable is clear.
    pub fn vfs_enabled(&self) -> u16 {
        self.sriov.as_ref().map_or(0, |sriov| sriov.vfs(&self.config))
    }

    /// Whether the virtual functions answer accesses to their BARs: VF Enable and VF MSE, and this function in D0.
    pub fn vf_memory_space(&self) -> bool {
        self.sriov_state().memory_space
    }

    /// The VF BARs, by ascending index, also while they are not decoded.
    pub fn vf_bars(&self) -> impl Iterator<Item = VfBar> {
        self.sriov.iter().flat_map(|sriov| sriov.bars(&self.config))
    }

    /// Bus address of the window of VF `vf` (1 to TotalVFs) at BAR `bar`, also while it is not decoded. Software that
    /// has not placed the BAR yet makes it a low address; one past the end of the address space is none.
    pub fn vf_bar_address(&self, vf: u16, bar: u8) -> Option<u64> {
        self.vf_bars().find(|found| found.index == bar && vf <= self.total_vfs())?.window(vf)
    }

    /// Distance of the routing ID of VF `vf` (1 to TotalVFs) from this function's.
    pub fn vf_routing_offset(&self, vf: u16) -> Option<u16> {
        (1..=self.total_vfs()).contains(&vf).then(|| FIRST_VF_OFFSET + (vf - 1) * VF_STRIDE)
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

    /// Bus address at which the BAR answers now: memory space enabled, in D0.
    pub fn decoded(&self, index: u8) -> Option<u64> {
        let enabled = self.config.word(COMMAND) & COMMAND_MEMORY_SPACE != 0 && self.power_state() == PowerState::D0;
        self.bar(index).filter(|_| enabled).map(|bar| self.address(bar))
    }

    /// Whether the function may send memory requests.
    pub fn bus_master(&self) -> bool {
        self.config.word(COMMAND) & COMMAND_BUS_MASTER != 0
    }

    /// The power state.
    pub fn power_state(&self) -> PowerState {
        if self.power_state_bits() == POWER_D3HOT { PowerState::D3hot } else { PowerState::D0 }
    }

    /// The message to send for an interrupt on MSI `vector`. A masked vector becomes pending instead and comes back
    /// as [`Event::MsiUnmasked`]; with MSI off, without bus mastering, or for a vector that is not there, it is lost.
    pub fn raise_msi(&mut self, vector: u16) -> Option<MsiMessage> {
        let message = self.msi_message().filter(|_| vector == 0 && self.bus_master())?;
        let msi = self.msi?;
        if self.config.dword(msi + MSI_MASK) & 1 != 0 {
            self.config.set(msi + MSI_PENDING, 1, 1);
            return None;
        }
        Some(message)
    }

    fn take_unmasked(&mut self) -> u32 {
        let Some(msi) = self.msi.filter(|_| self.bus_master() && self.msi_message().is_some()) else { return 0 };
        let due = self.config.dword(msi + MSI_PENDING) & !self.config.dword(msi + MSI_MASK);
        self.config.set(msi + MSI_PENDING, due, 0);
        due
    }

    fn msi_message(&self) -> Option<MsiMessage> {
        let msi = self.msi?;
        let enabled = self.config.word(msi + MSI_CONTROL) & MSI_ENABLE != 0;
        enabled.then(|| MsiMessage {
            address: self.qword(msi + MSI_ADDRESS),
            data: self.config.word(msi + MSI_DATA).into(),
        })
    }

    fn qword(&self, at: u16) -> u64 {
        u64::from(self.config.dword(at + 4)) << 32 | u64::from(self.config.dword(at))
    }

    fn address(&self, bar: &Bar) -> u64 {
        self.qword(bar.register()) & !(bar.size() - 1)
    }

    fn power_state_bits(&self) -> u16 {
        self.power_management.map_or(0, |at| self.config.word(at + PM_CONTROL)) & POWER_STATE
    }

    /// A write of a power state that the function does not have (D1, D2) changes nothing (PCI PM 1.2, 3.2.4).
    fn refuse_unsupported_power_state(&mut self, before: u16) {
        if let Some(at) = self.power_management
            && !matches!(self.power_state_bits(), 0 | POWER_D3HOT)
        {
            self.config.set(at + PM_CONTROL, POWER_STATE.into(), before.into());
        }
    }

    fn starts_flr(&self, offset: u64, data: &[u8]) -> bool {
        let Some(express) = self.express else { return false };
        let high_byte = u64::from(express + DEVICE_CONTROL + 1);
        let written = high_byte.checked_sub(offset).and_then(|n| data.get(usize::try_from(n).ok()?));
        written.is_some_and(|byte| u16::from(*byte) << 8 & INITIATE_FLR != 0)
    }

    fn controls(&self) -> Controls {
        let mut bars = [0; BAR_REGISTERS as usize / 2];
        for (address, bar) in bars.iter_mut().zip(&self.bars) {
            *address = self.address(bar);
        }
        Controls {
            command: self.config.word(COMMAND),
            power: self.power_state(),
            bars,
            msi: self.msi_message(),
            sriov: self.sriov_state(),
        }
    }

    /// Tells what is different from `before`: what is taken away first, what is given last.
    fn changes(&self, before: Controls, events: &mut Events) {
        let now = self.controls();
        let switched = |bit: u16| ((before.command ^ now.command) & bit != 0).then_some(now.command & bit != 0);
        let (vfs_before, vfs) = (before.sriov, now.sriov);
        if vfs_before.memory_space && !vfs.memory_space {
            events.push(Event::VfMemorySpace(false));
        }
        if vfs_before.vfs != vfs.vfs && vfs_before.vfs != 0 {
            events.push(Event::VfDisable);
        }
        if let Some(on) = switched(COMMAND_MEMORY_SPACE).filter(|on| !on) {
            events.push(Event::MemorySpace(on));
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
        if let Some(on) = switched(COMMAND_MEMORY_SPACE).filter(|on| *on) {
            events.push(Event::MemorySpace(on));
        }
        if let Some(on) = switched(COMMAND_BUS_MASTER) {
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
