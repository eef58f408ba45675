//! A PCI Express function: configuration accesses in, events for the device and the transport out.

use std::array;
use std::fmt;
use std::iter::Flatten;

use crate::bar::{BAR_REGISTERS, Bar, BarError};
use crate::capability::{
    Capability, DEVICE_CONTROL, ID_EXPRESS, ID_MSI, ID_POWER_MANAGEMENT, INITIATE_FLR, MSI_ADDRESS, MSI_CONTROL,
    MSI_DATA, MSI_ENABLE, MSI_MASK, MSI_PENDING, PM_CONTROL,
};
use crate::config::{ConfigSpace, Field, LayoutError, Reset};
use crate::header::{COMMAND, COMMAND_BUS_MASTER, COMMAND_MEMORY_SPACE, Identity};

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
}

impl fmt::Display for FunctionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FunctionError::Bar(error) => error.fmt(f),
            FunctionError::Layout(error) => error.fmt(f),
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
}

/// One event for every kind, one for each 64-bit BAR.
const MAX_EVENTS: usize = 6 + BAR_REGISTERS as usize / 2;

/// The events of one access, in the order in which to act on them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Events {
    list: [Option<Event>; MAX_EVENTS],
    count: usize,
}

impl Events {
    fn push(&mut self, event: Event) {
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
}

/// A PCI Express function.
pub struct PciFunction {
    config: ConfigSpace,
    bars: Vec<Bar>,
    express: Option<u16>,
    power_management: Option<u16>,
    msi: Option<u16>,
}

impl PciFunction {
    /// The card's physical function: GTTMMADR, and a window onto local memory of `lmem_bytes` (a power of two).
    pub fn physical(identity: &Identity, lmem_bytes: u64) -> Result<Self, FunctionError> {
        let bars = vec![
            // Prefetchable on the real card, unlike on its siblings for desktops.
            Bar::memory_64(GTTMMADR_BAR, GTTMMADR_BYTES, true)?,
            Bar::memory_64(LMEM_BAR, lmem_bytes, true)?,
        ];
        // GGC: GGMS = 3, 8 MiB of GGTT entries (i915: intel_ggtt.c, gen8_gmch_probe).
        let device_specific = [Field::word(0x50, 0x00c0)];
        let capabilities = [
            Capability::express(0x70),
            Capability::msi(0xac),
            Capability::power_management(0xd0),
            Capability::serial_number(0x100, identity.serial),
        ];
        Ok(Self::new(identity, bars, &device_specific, &capabilities)?)
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
        })
    }

    /// Reads configuration space: any width and alignment; zeros outside of its 4096 bytes.
    pub fn read_config(&self, offset: u64, data: &mut [u8]) {
        self.config.read(offset, data);
    }

    /// Writes configuration space as a guest does: any width and alignment; what lies outside is dropped.
    pub fn write_config(&mut self, offset: u64, data: &[u8]) -> Events {
        let before = self.controls();
        let slept = self.power_state_bits();
        // Initiate FLR is no bit of the space: it reads 0, so the write itself is looked at.
        let flr = self.starts_flr(offset, data);
        self.config.write(offset, data);
        self.refuse_unsupported_power_state(slept);
        let mut events = Events::default();
        if flr {
            self.config.reset(Reset::FunctionLevel);
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
        let before = self.controls();
        self.config.reset(Reset::Conventional);
        let mut events = Events::default();
        self.changes(before, &mut events);
        events
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
        Controls { command: self.config.word(COMMAND), power: self.power_state(), bars, msi: self.msi_message() }
    }

    /// Tells what is different from `before`: what is taken away first, what is given last.
    fn changes(&self, before: Controls, events: &mut Events) {
        let now = self.controls();
        let switched = |bit: u16| ((before.command ^ now.command) & bit != 0).then_some(now.command & bit != 0);
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
        if let Some(on) = switched(COMMAND_MEMORY_SPACE).filter(|on| *on) {
            events.push(Event::MemorySpace(on));
        }
        if let Some(on) = switched(COMMAND_BUS_MASTER) {
            events.push(Event::BusMaster(on));
        }
        if before.msi != now.msi {
            events.push(Event::Msi(now.msi));
        }
    }
}

#[cfg(test)]
mod tests;
