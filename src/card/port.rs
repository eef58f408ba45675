//! A function's way out of the card: configuration space decides what may pass, its machine what is there.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arctic_device_model::world::{Dma, DmaView, Function, InterruptSink, Unconnected};
use arctic_sriov::function::{Event, Events, GTTMMADR_BAR, PciFunction};
use arctic_sriov::virtual_function::VfFace;

use super::gate::Gate;
use crate::pci::MsiSink;

/// A function's configuration space, as its machine is to see it.
pub enum Config {
    /// The physical function.
    Physical {
        /// The function.
        function: PciFunction,
        /// QEMU would hide its SR-IOV capability, and is not shown it by that name.
        disguised: bool,
    },
    /// A virtual function in the guest of its PF, whose VMM takes it for an ordinary one.
    Face(VfFace),
    /// A virtual function on a bus that knows VFs, without BARs of its own, or as an ordinary one in a guest of its own.
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
    /// A virtual function that does not exist yet.
    pub fn virtual_function(function: PciFunction) -> Self {
        Config::Virtual { function, enabled: false, memory_space: false }
    }

    /// Reads configuration space; a function that does not exist reads as all ones (V13-016).
    pub fn read(&self, offset: u64, data: &mut [u8]) {
        match self {
            Config::Physical { function, disguised: true } => function.read_config_disguised(offset, data),
            Config::Physical { function, .. } => function.read_config(offset, data),
            Config::Face(face) => face.read_config(offset, data),
            Config::Virtual { function, enabled: true, .. } => function.read_config(offset, data),
            Config::Virtual { .. } => data.fill(0xff),
        }
    }

    /// Writes configuration space.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> Events {
        match self {
            Config::Physical { function, .. } | Config::Virtual { function, enabled: true, .. } => {
                function.write_config(offset, data)
            }
            Config::Face(face) => face.write_config(offset, data),
            Config::Virtual { .. } => Events::default(),
        }
    }

    /// Conventional reset.
    pub fn reset(&mut self) -> Events {
        match self {
            Config::Physical { function, .. } | Config::Virtual { function, .. } => function.reset(),
            Config::Face(face) => face.reset(),
        }
    }

    /// A virtual function comes into being, out of reset, or ceases to exist.
    pub fn set_enabled(&mut self, on: bool) -> Events {
        match self {
            Config::Physical { .. } => Events::default(),
            Config::Face(face) => face.set_enabled(on),
            Config::Virtual { function, enabled, .. } => {
                *enabled = on;
                function.reset()
            }
        }
    }

    /// The PF lets its VFs' BARs answer, or no longer (VF MSE).
    pub fn set_memory_space(&mut self, on: bool) -> Events {
        match self {
            Config::Physical { .. } => {}
            Config::Face(face) => face.set_memory_space(on),
            Config::Virtual { memory_space, .. } => *memory_space = on,
        }
        Events::default()
    }

    /// The function exists.
    pub fn enabled(&self) -> bool {
        match self {
            Config::Physical { .. } => true,
            Config::Face(face) => face.enabled(),
            Config::Virtual { enabled, .. } => *enabled,
        }
    }

    /// The BARs answer.
    fn decodes(&self) -> bool {
        match self {
            Config::Physical { .. } => self.decoded(GTTMMADR_BAR).is_some(),
            Config::Face(face) => face.decodes(),
            Config::Virtual { function, enabled, memory_space } => {
                *enabled && *memory_space && (function.bars().is_empty() || self.decoded(GTTMMADR_BAR).is_some())
            }
        }
    }

    /// Address at which a BAR answers by the function's own registers.
    pub fn decoded(&self, bar: u8) -> Option<u64> {
        match self {
            Config::Physical { function, .. } | Config::Virtual { function, .. } => function.decoded(bar),
            Config::Face(_) => None,
        }
    }

    /// Address of the BAR of VF `vf`, by the registers of this function, the PF.
    pub fn vf_bar_address(&self, vf: u16, bar: u8) -> Option<u64> {
        let Config::Physical { function, .. } = self else { return None };
        function.vf_bar_address(vf, bar)
    }

    /// The function may send memory requests, interrupts among them.
    fn bus_master(&self) -> bool {
        match self {
            Config::Physical { function, .. } => function.bus_master(),
            Config::Face(face) => face.bus_master(),
            Config::Virtual { function, enabled, .. } => *enabled && function.bus_master(),
        }
    }

    /// Whether an interrupt on MSI `vector` goes out now.
    fn raise_msi(&mut self, vector: u16) -> bool {
        match self {
            Config::Physical { function, .. } | Config::Virtual { function, enabled: true, .. } => {
                function.raise_msi(vector)
            }
            Config::Face(face) => face.raise_msi(vector),
            Config::Virtual { .. } => None,
        }
        .is_some()
    }
}

/// One function's configuration space, and its interrupts and guest memory as that permits them.
pub struct Port {
    config: Mutex<Config>,
    msi: Option<Arc<dyn MsiSink>>,
    gate: Gate,
    decoding: AtomicBool,
    bus_master: AtomicBool,
}

impl Port {
    /// The port of a function whose interrupts go to `msi`.
    pub fn new(config: Config, msi: Arc<dyn MsiSink>) -> Arc<Self> {
        Self::with(config, Some(msi))
    }

    /// The port of a function without interrupts.
    pub fn unconnected(config: Config) -> Arc<Self> {
        Self::with(config, None)
    }

    fn with(config: Config, msi: Option<Arc<dyn MsiSink>>) -> Arc<Self> {
        let (decoding, bus_master) = (AtomicBool::new(false), AtomicBool::new(false));
        Arc::new(Port { config: Mutex::new(config), msi, gate: Gate::default(), decoding, bus_master })
    }

    /// Configuration space, to be looked at; changes go through [`Port::update`].
    pub fn config(&self) -> MutexGuard<'_, Config> {
        self.config.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes configuration space, and with it what may pass from now on. Interrupts that were held back are sent;
    /// the rest of what has been set in motion is returned. No interrupt that the old state let out comes afterwards, and
    /// none that the new state lets out before the machine knows its route.
    pub fn update(&self, change: impl FnOnce(&mut Config) -> Events) -> Events {
        let (events, meanwhile) = self.gate.change(|| {
            self.msi.iter().for_each(|msi| msi.settle());
            let mut config = self.config();
            let events = change(&mut config);
            self.decoding.store(config.decodes(), Ordering::Release);
            self.bus_master.store(config.bus_master(), Ordering::Release);
            drop(config);
            for event in events {
                if let (Event::Msi(message), Some(msi)) = (event, &self.msi) {
                    msi.route(message);
                }
            }
            events
        });
        for event in events {
            if let Event::MsiUnmasked(_) = event {
                self.gate.pass(0, || self.trigger());
            }
        }
        (0..16).filter(|vector| meanwhile >> vector & 1 != 0).for_each(|vector| self.raise(vector));
        events
    }

    /// An interrupt on MSI `vector`: sent now, or pending until it is unmasked, or nothing where MSI is off.
    pub fn raise(&self, vector: u16) {
        // The machine composes the message itself; what counts here is whether one may be sent now.
        self.gate.pass(vector, || {
            let goes_out = self.config().raise_msi(vector);
            if goes_out {
                self.trigger();
            }
        });
    }

    fn trigger(&self) {
        if let Some(msi) = &self.msi {
            msi.trigger();
        }
    }

    /// Whether the BARs answer.
    pub fn decoding(&self) -> bool {
        self.decoding.load(Ordering::Acquire)
    }

    /// Whether the function may send memory requests.
    pub fn bus_master(&self) -> bool {
        self.bus_master.load(Ordering::Acquire)
    }
}

/// The ports of all functions, by number, and the memory behind them.
pub struct Ports {
    /// The PF's first.
    pub ports: Vec<Arc<Port>>,
    /// Guest memory, as the machines map it.
    pub memory: Arc<dyn Dma>,
}

impl Dma for Ports {
    fn view(&self, function: Function) -> Arc<dyn DmaView> {
        match self.ports.get(function.index()) {
            Some(port) if port.bus_master() => self.memory.view(function),
            _ => Arc::new(Unconnected),
        }
    }
}

impl InterruptSink for Ports {
    fn raise(&self, function: Function, vector: u16) {
        if let Some(port) = self.ports.get(function.index()) {
            port.raise(vector);
        }
    }
}
