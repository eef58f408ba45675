// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The connection of a function to its machine: interrupts and guest memory accesses, gated by configuration space.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use arctic_device_model::sync::IgnorePoison;
use arctic_sriov::event::{Event, Events, PowerState};
use arctic_sriov::function::PciFunction;
use arctic_sriov::virtual_function::VfConfigShim;

use super::msi_quiesce::MsiQuiesce;
use crate::pci::{LineSink, MsiSink};

/// All six BARs, one bit each.
const ALL_BARS: u8 = 0x3f;

/// The bit of a BAR in a set of BARs; 0 for an index that no BAR has.
fn bar_bit(bar: u8) -> u8 {
    1_u8.checked_shl(bar.into()).unwrap_or(0) & ALL_BARS
}

/// A function's configuration space, as presented to its machine.
pub enum Config {
    /// The physical function.
    Physical {
        /// The function.
        function: PciFunction,
        /// Bulk reads return the SR-IOV capability under a vendor-specific ID, because QEMU would hide it from the
        /// guest.
        disguised: bool,
    },
    /// A virtual function in the guest of its PF, presented as an ordinary function by a VMM without SR-IOV support.
    Shim(VfConfigShim),
    /// A virtual function: without BAR registers on a bus with SR-IOV support, or an ordinary function in a separate
    /// guest.
    Virtual {
        /// The function.
        function: PciFunction,
        /// VF Enable is set for it.
        enabled: bool,
        /// VF MSE is set.
        memory_space: bool,
    },
}

impl Config {
    /// A virtual function that is not enabled yet.
    pub fn virtual_function(function: PciFunction) -> Self {
        Config::Virtual { function, enabled: false, memory_space: false }
    }

    /// Reads configuration space; a function that is not enabled reads as all ones (V13-016).
    pub fn read(&self, offset: u64, data: &mut [u8]) {
        match self {
            Config::Physical { function, disguised: true } => function.read_config_disguised(offset, data),
            Config::Physical { function, .. } => function.read_config(offset, data),
            Config::Shim(shim) => shim.read_config(offset, data),
            Config::Virtual { function, enabled: true, .. } => function.read_config(offset, data),
            Config::Virtual { .. } => data.fill(0xff),
        }
    }

    /// Reads configuration space as if the function were not enabled.
    pub fn read_withheld(&self, offset: u64, data: &mut [u8]) {
        match self {
            Config::Shim(shim) => shim.read_disabled(offset, data),
            Config::Physical { .. } | Config::Virtual { .. } => data.fill(0xff),
        }
    }

    /// Writes configuration space.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> Events {
        match self {
            Config::Physical { function, .. } | Config::Virtual { function, enabled: true, .. } => {
                function.write_config(offset, data)
            }
            Config::Shim(shim) => shim.write_config(offset, data),
            Config::Virtual { .. } => Events::default(),
        }
    }

    /// Conventional reset.
    pub fn reset(&mut self) -> Events {
        match self {
            Config::Physical { function, .. } | Config::Virtual { function, .. } => function.reset(),
            Config::Shim(shim) => shim.reset(),
        }
    }

    /// Enables a virtual function, in its reset state, or disables it.
    pub fn set_enabled(&mut self, on: bool) -> Events {
        match self {
            Config::Physical { .. } => Events::default(),
            Config::Shim(shim) => shim.set_enabled(on),
            Config::Virtual { function, enabled, .. } => {
                *enabled = on;
                function.reset()
            }
        }
    }

    /// Enables or disables the decoding of the VF's BARs, as set by the PF (VF MSE).
    pub fn set_memory_space(&mut self, on: bool) -> Events {
        match self {
            Config::Physical { .. } => {}
            Config::Shim(shim) => shim.set_memory_space(on),
            Config::Virtual { memory_space, .. } => *memory_space = on,
        }
        Events::default()
    }

    /// Returns whether the function exists.
    pub fn enabled(&self) -> bool {
        match self {
            Config::Physical { .. } => true,
            Config::Shim(shim) => shim.enabled(),
            Config::Virtual { enabled, .. } => *enabled,
        }
    }

    /// The BARs that are decoded, one bit each by index.
    fn decoding(&self) -> u8 {
        let own = |function: &PciFunction| {
            let decoded = function.bars().iter().filter(|bar| function.decoded(bar.index()).is_some());
            decoded.fold(0, |bars, bar| bars | bar_bit(bar.index()))
        };
        match self {
            Config::Physical { function, .. } => own(function),
            Config::Shim(shim) if shim.decodes() => ALL_BARS,
            Config::Virtual { function, enabled: true, memory_space: true } if function.bars().is_empty() => ALL_BARS,
            Config::Virtual { function, enabled: true, memory_space: true } => own(function),
            Config::Shim(_) | Config::Virtual { .. } => 0,
        }
    }

    /// Size of configuration space in bytes.
    pub fn bytes(&self) -> u64 {
        match self {
            Config::Physical { function, .. } | Config::Virtual { function, .. } => function.config_bytes(),
            Config::Shim(shim) => shim.function().config_bytes(),
        }
    }

    /// Address of a BAR according to the function's own BAR registers; `None` if it is not decoded.
    pub fn decoded(&self, bar: u8) -> Option<u64> {
        match self {
            Config::Physical { function, .. } | Config::Virtual { function, .. } => function.decoded(bar),
            Config::Shim(_) => None,
        }
    }

    /// Address of BAR `bar` of VF `vf` according to the SR-IOV capability of this function; `None` if it is not the PF.
    pub fn vf_bar_address(&self, vf: u16, bar: u8) -> Option<u64> {
        let Config::Physical { function, .. } = self else { return None };
        function.vf_bar_address(vf, bar)
    }

    /// Number of VFs that decode their BARs according to the SR-IOV capability of this function, in any power state.
    pub fn vfs_decoding(&self) -> u16 {
        let Config::Physical { function, .. } = self else { return 0 };
        function.vfs_decoding()
    }

    /// Current power state of the function.
    pub fn power_state(&self) -> PowerState {
        match self {
            Config::Physical { function, .. } | Config::Virtual { function, .. } => function.power_state(),
            Config::Shim(shim) => shim.function().power_state(),
        }
    }

    /// Returns whether the function may send memory requests, including interrupts.
    fn bus_master(&self) -> bool {
        match self {
            Config::Physical { function, .. } => function.bus_master(),
            Config::Shim(shim) => shim.bus_master(),
            Config::Virtual { function, enabled, .. } => *enabled && function.bus_master(),
        }
    }

    /// Whether the function's header names an interrupt pin. VFs have none (PCIe 9.3.4.1.14).
    pub fn has_pin(&self) -> bool {
        matches!(self, Config::Physical { function, .. } if function.has_pin())
    }

    /// Sets whether the device requests an interrupt.
    fn set_interrupt_status(&mut self, requested: bool) {
        if let Config::Physical { function, .. } = self {
            function.set_interrupt_status(requested);
        }
    }

    /// Returns whether the function asserts its pin.
    fn asserts_pin(&self) -> bool {
        matches!(self, Config::Physical { function, .. } if function.asserts_pin())
    }

    /// Raises MSI `vector`. Returns whether it must be sent now; otherwise it was latched as pending, or dropped.
    fn raise_msi(&mut self, vector: u16) -> bool {
        match self {
            Config::Physical { function, .. } | Config::Virtual { function, enabled: true, .. } => {
                function.raise_msi(vector)
            }
            Config::Shim(shim) => shim.raise_msi(vector),
            Config::Virtual { .. } => None,
        }
        .is_some()
    }
}

/// The interrupt line of a function.
struct Line {
    sink: Arc<dyn LineSink>,
    /// The level that the sink has. Held while the sink gets another one, which orders the levels; locked before the
    /// configuration space.
    asserted: Mutex<bool>,
}

/// One function's configuration space, and the interrupts and guest memory accesses that it permits.
pub struct BusPort {
    config: Mutex<Config>,
    msi: Option<Arc<dyn MsiSink>>,
    line: Option<Line>,
    quiesce: MsiQuiesce,
    /// The BARs that are decoded, one bit each by index.
    decoding: AtomicU8,
    bus_master: AtomicBool,
    /// Number of interrupts that were sent.
    interrupts: AtomicU64,
}

impl BusPort {
    /// The port of a function with interrupt sink `msi`, and a `line` if it has a pin that is connected.
    pub fn new(config: Config, msi: Arc<dyn MsiSink>, line: Option<Arc<dyn LineSink>>) -> Arc<Self> {
        Self::with(config, Some(msi), line)
    }

    /// The port of a function without interrupts.
    pub fn unconnected(config: Config) -> Arc<Self> {
        Self::with(config, None, None)
    }

    fn with(config: Config, msi: Option<Arc<dyn MsiSink>>, line: Option<Arc<dyn LineSink>>) -> Arc<Self> {
        let (decoding, bus_master, interrupts) = (AtomicU8::new(0), AtomicBool::new(false), AtomicU64::new(0));
        let line = line.map(|sink| Line { sink, asserted: Mutex::new(false) });
        Arc::new(BusPort {
            config: Mutex::new(config),
            msi,
            line,
            quiesce: MsiQuiesce::default(),
            decoding,
            bus_master,
            interrupts,
        })
    }

    /// Locks configuration space for reading; changes must go through [`BusPort::update`].
    pub fn config(&self) -> MutexGuard<'_, Config> {
        self.config.lock().ignore_poison()
    }

    /// Changes configuration space, and updates the permission to send interrupts and access memory. Interrupts
    /// deferred during the change are sent after it. Returns the events of the change. Ordering: interrupts that only
    /// the old state permits are not sent after the change, and interrupts that the new state permits are not sent
    /// before the machine has their route.
    pub fn update(&self, change: impl FnOnce(&mut Config) -> Events) -> Events {
        let (events, meanwhile) = self.quiesce.change(|| {
            self.msi.iter().for_each(|msi| msi.settle());
            let mut config = self.config();
            let events = change(&mut config);
            self.decoding.store(config.decoding(), Ordering::Release);
            self.bus_master.store(config.bus_master(), Ordering::Release);
            drop(config);
            for event in events {
                if let (Event::Msi(message), Some(msi)) = (event, &self.msi) {
                    msi.route(message);
                }
            }
            events
        });
        self.drive_line();
        for event in events {
            if let Event::MsiUnmasked(_) = event {
                self.quiesce.pass(0, || self.trigger());
            }
        }
        (0..16).filter(|vector| meanwhile >> vector & 1 != 0).for_each(|vector| self.raise(vector));
        events
    }

    /// Raises an interrupt on MSI `vector`. It is sent immediately, is latched while the vector is masked, or is
    /// dropped if MSI is disabled.
    pub fn raise(&self, vector: u16) {
        // Only decides whether the message may be sent now; the machine composes it.
        self.quiesce.pass(vector, || {
            let goes_out = self.config().raise_msi(vector);
            if goes_out {
                self.trigger();
            }
        });
    }

    /// Sets whether the device requests an interrupt: Interrupt Status, and the level of the line.
    pub fn set_line(&self, requested: bool) {
        self.config().set_interrupt_status(requested);
        self.drive_line();
    }

    /// Passes the level of the pin to the line's sink, if the sink has another one.
    fn drive_line(&self) {
        let Some(line) = &self.line else { return };
        let mut passed = line.asserted.lock().ignore_poison();
        let asserted = self.config().asserts_pin();
        if *passed != asserted {
            self.interrupts.fetch_add(asserted.into(), Ordering::Relaxed);
            line.sink.set_level(asserted);
            *passed = asserted;
        }
    }

    /// Records a fatal error in configuration space. Returns whether the function sends the message ERR_FATAL.
    pub fn record_fatal_error(&self) -> bool {
        match &mut *self.config() {
            Config::Physical { function, .. } => function.record_fatal_error(),
            Config::Shim(_) | Config::Virtual { .. } => false,
        }
    }

    /// Number of interrupts that were sent: messages, and assertions of the pin.
    pub fn interrupts(&self) -> u64 {
        self.interrupts.load(Ordering::Relaxed)
    }

    fn trigger(&self) {
        if let Some(msi) = &self.msi {
            self.interrupts.fetch_add(1, Ordering::Relaxed);
            msi.trigger();
        }
    }

    /// Returns whether a BAR is decoded.
    pub fn decodes(&self, bar: u8) -> bool {
        self.decoding.load(Ordering::Acquire) & bar_bit(bar) != 0
    }

    /// Returns whether the function may send memory requests.
    pub fn bus_master(&self) -> bool {
        self.bus_master.load(Ordering::Acquire)
    }
}
