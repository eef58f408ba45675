//! A function's way out of the card: configuration space decides what may pass, its client what is there.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arctic_device_model::world::{Dma, DmaView, Function, InterruptSink, Unconnected};
use arctic_sriov::function::{Event, Events, GTTMMADR_BAR, PciFunction};
use arctic_sriov::virtual_function::VfFace;

use super::VECTORS;
use crate::dma::GuestMemory;
use crate::vfio_user::Vectors;

/// A function's configuration space, as its client is to see it.
pub enum Config {
    /// The physical function. QEMU would hide its SR-IOV capability, and is not shown it by that name.
    Physical(PciFunction),
    /// A virtual function in the guest of its PF.
    Face(VfFace),
    /// A virtual function as an ordinary one, in a guest of its own.
    Alone {
        /// The function.
        function: PciFunction,
        /// VF Enable is set for it.
        enabled: bool,
        /// VF MSE is set.
        memory_space: bool,
    },
}

impl Config {
    /// A virtual function for a guest of its own; it does not exist yet.
    pub fn alone(function: PciFunction) -> Self {
        Config::Alone { function, enabled: false, memory_space: false }
    }

    /// Reads configuration space; a function that does not exist reads as all ones (V13-016).
    pub fn read(&self, offset: u64, data: &mut [u8]) {
        match self {
            Config::Physical(function) => function.read_config_disguised(offset, data),
            Config::Face(face) => face.read_config(offset, data),
            Config::Alone { function, enabled: true, .. } => function.read_config(offset, data),
            Config::Alone { .. } => data.fill(0xff),
        }
    }

    /// Writes configuration space.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> Events {
        match self {
            Config::Physical(function) | Config::Alone { function, enabled: true, .. } => {
                function.write_config(offset, data)
            }
            Config::Face(face) => face.write_config(offset, data),
            Config::Alone { .. } => Events::default(),
        }
    }

    /// Conventional reset.
    pub fn reset(&mut self) -> Events {
        match self {
            Config::Physical(function) | Config::Alone { function, .. } => function.reset(),
            Config::Face(face) => face.reset(),
        }
    }

    /// A virtual function comes into being, out of reset, or ceases to exist.
    pub fn set_enabled(&mut self, on: bool) -> Events {
        match self {
            Config::Physical(_) => Events::default(),
            Config::Face(face) => face.set_enabled(on),
            Config::Alone { function, enabled, .. } => {
                *enabled = on;
                function.reset()
            }
        }
    }

    /// The PF lets its VFs' BARs answer, or no longer (VF MSE).
    pub fn set_memory_space(&mut self, on: bool) -> Events {
        match self {
            Config::Physical(_) => {}
            Config::Face(face) => face.set_memory_space(on),
            Config::Alone { memory_space, .. } => *memory_space = on,
        }
        Events::default()
    }

    /// The function exists.
    pub fn enabled(&self) -> bool {
        match self {
            Config::Physical(_) => true,
            Config::Face(face) => face.enabled(),
            Config::Alone { enabled, .. } => *enabled,
        }
    }

    /// The BARs answer.
    fn decodes(&self) -> bool {
        match self {
            Config::Physical(function) => function.decoded(GTTMMADR_BAR).is_some(),
            Config::Face(face) => face.decodes(),
            Config::Alone { function, enabled, memory_space } => {
                *enabled && *memory_space && function.decoded(GTTMMADR_BAR).is_some()
            }
        }
    }

    /// The function may send memory requests, interrupts among them.
    fn bus_master(&self) -> bool {
        match self {
            Config::Physical(function) => function.bus_master(),
            Config::Face(face) => face.bus_master(),
            Config::Alone { function, enabled, .. } => *enabled && function.bus_master(),
        }
    }

    /// Whether an interrupt on MSI `vector` goes out now.
    fn raise_msi(&mut self, vector: u16) -> bool {
        match self {
            Config::Physical(function) | Config::Alone { function, enabled: true, .. } => function.raise_msi(vector),
            Config::Face(face) => face.raise_msi(vector),
            Config::Alone { .. } => None,
        }
        .is_some()
    }
}

/// One function's configuration space, and its guest's memory and interrupts as that permits them.
pub struct Port {
    config: Mutex<Config>,
    /// Guest memory, as the client maps it.
    pub memory: Arc<GuestMemory>,
    /// Interrupts, as the client arms them.
    pub vectors: Arc<Vectors>,
    decoding: AtomicBool,
    bus_master: AtomicBool,
}

impl Port {
    /// The port of a function without client.
    pub fn new(config: Config) -> Arc<Self> {
        Arc::new(Port {
            config: Mutex::new(config),
            memory: Arc::default(),
            vectors: Arc::new(Vectors::new(VECTORS)),
            decoding: AtomicBool::new(false),
            bus_master: AtomicBool::new(false),
        })
    }

    /// Configuration space, to be looked at; changes go through [`Port::update`].
    pub fn config(&self) -> MutexGuard<'_, Config> {
        self.config.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes configuration space, and with it what may pass from now on. Interrupts that were held back are sent;
    /// the rest of what has been set in motion is returned.
    pub fn update(&self, change: impl FnOnce(&mut Config) -> Events) -> Events {
        let mut config = self.config();
        let events = change(&mut config);
        self.decoding.store(config.decodes(), Ordering::Release);
        self.bus_master.store(config.bus_master(), Ordering::Release);
        drop(config);
        for event in events {
            if let Event::MsiUnmasked(vectors) = event {
                (0..16).filter(|n| vectors >> n & 1 != 0).for_each(|n| self.vectors.raise_msi(n));
            }
        }
        events
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

/// The ports of all functions, by number.
pub struct Ports(pub Vec<Arc<Port>>);

impl Dma for Ports {
    fn view(&self, function: Function) -> Arc<dyn DmaView> {
        match self.0.get(function.index()) {
            Some(port) if port.bus_master() => port.memory.view(),
            _ => Arc::new(Unconnected),
        }
    }
}

impl InterruptSink for Ports {
    fn raise(&self, function: Function, vector: u16) {
        let Some(port) = self.0.get(function.index()) else { return };
        // The VMM composes the message itself; what counts here is whether one may be sent now.
        let goes_out = port.config().raise_msi(vector);
        if goes_out {
            port.vectors.raise_msi(vector);
        }
    }
}
