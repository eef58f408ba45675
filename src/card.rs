// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Presents the card as PCI functions: connects the functions of `sriov` to the device model, and owns the memory files
//! and the ports to the machine.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

mod bus_port;
mod bus_ports;
mod function;
mod io_events;
mod msi_quiesce;
mod reverted;
mod saved;
pub mod status;
mod trapped;

use std::collections::BTreeMap;
use std::io;
use std::num::NonZero;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use arctic_device_model::gpu::{Gpu, Host, Model, PowerOnError, ReportableError, Values};
use arctic_device_model::host::{Clock, Dma, Function, HostClock, MAX_VFS};
use arctic_device_model::limits::TotalTooSmall;
use arctic_device_model::workers::Workers;
use arctic_sriov::function::{FunctionError, PciFunction};
use arctic_sriov::number::byte;
use arctic_sriov::virtual_function::VfConfigShim;

use self::bus_port::{BusPort, Config};
use self::bus_ports::BusPorts;
pub use self::function::CardFunction;
#[cfg(feature = "vfio-user")]
pub(crate) use self::function::Exposure;
use self::function::{AllFunctions, CardShared};
pub use self::io_events::{IoEventHandler, IoEventThread};
use crate::pci::{Bar, Machine, PciDevice, function_name};
use crate::report::Report;

/// How the functions are distributed over machines, and how VFs are presented to a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Topology {
    /// One machine has the PF and its VFs, and its VMM supports SR-IOV. Configuration space is the same as on a
    /// physical bus.
    Native,
    /// One machine has the PF and its VFs, and its VMM does not support SR-IOV (QEMU over vfio-user): VFs are presented
    /// as ordinary functions next to the PF.
    Together,
    /// The PF's guest sees only the configuration space of its VFs; each VF is used by a separate guest.
    Split,
    /// No guest has the PF. VFs exist from the start, with resources partitioned according to the card file.
    Provisioned,
}

impl Topology {
    /// Name of the topology, a single lowercase word.
    pub fn name(self) -> &'static str {
        match self {
            Topology::Native => "native",
            Topology::Together => "together",
            Topology::Split => "split",
            Topology::Provisioned => "provisioned",
        }
    }
}

/// Errors of creating a card.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CardError {
    /// The card's description requires functions that PCI cannot describe.
    #[error(transparent)]
    Pci(#[from] FunctionError),
    /// The card cannot be powered on.
    #[error(transparent)]
    PowerOn(#[from] PowerOnError),
    /// The card has no VFs ([`Gpu::vfs`]), although its model describes some.
    #[error("the card's model describes {described} VFs, and the card has none")]
    NoVfs {
        /// Number of VFs that the model describes.
        described: u8,
    },
    /// The machine cannot deliver the interrupts of a function ([`Machine::msi`]).
    #[error("cannot connect the interrupts of {}: {error}", function_name(*.function))]
    Interrupts {
        /// The function.
        function: Function,
        /// The machine's error.
        #[source]
        error: io::Error,
    },
    /// A limit in the card file is too small for the number of functions.
    #[error(transparent)]
    Limits(#[from] TotalTooSmall),
    /// The card's threads cannot be started, or the descriptors of its events cannot be created.
    #[error("cannot start the card's threads: {0}")]
    Threads(#[source] io::Error),
}

/// A card plugged into a machine, with its worker threads. Dropping it stops the threads. Functions that are still
/// referenced complete accesses, but do not execute any further work.
pub struct VirtualCard {
    name: String,
    pub(crate) shared: Arc<CardShared>,
    pub(crate) all_functions: Vec<Arc<CardFunction>>,
    /// The PF and the VFs, without the configuration-only functions (`Exposure::ConfigOnly`).
    functions: Vec<Arc<CardFunction>>,
    started: Instant,
    _workers: Option<Workers>,
}

/// The BARs of a function that is not on a bus with SR-IOV, as a machine gets them.
fn bars(function: &PciFunction) -> Vec<Bar> {
    let bar = |bar: &arctic_sriov::bar::Bar| Bar { index: bar.index(), size: bar.size(), kind: bar.kind() };
    function.bars().iter().map(bar).collect()
}

impl VirtualCard {
    /// Creates a card and plugs it into `machine`, which supports at most `vfs` VFs. TotalVFs is the smaller of `vfs`
    /// and the model's; if it is 0, the card has no SR-IOV capability. The card accesses guest memory through `memory`.
    /// Its own memory is backed by sparse files; their pages are allocated on first use.
    ///
    /// A [`CardProfile`](crate::CardProfile) is the model of a card that a card file describes.
    pub fn new(
        model: impl Model,
        vfs: u8,
        topology: Topology,
        memory: Arc<dyn Dma>,
        machine: Arc<dyn Machine>,
    ) -> Result<Self, CardError> {
        let threads = model.limits().threads(thread::available_parallelism().map_or(1, NonZero::get));
        let mut card = Self::manual(model, vfs, topology, memory, machine, Arc::new(HostClock::default()))?;
        card._workers = Some(Workers::start(card.shared.gpu.clone(), threads).map_err(CardError::Threads)?);
        Ok(card)
    }

    /// Creates a card without threads, for deterministic tests. Accesses have only their immediate effects; all other
    /// work is done by calls to [`Gpu::work`], with `clock` as the time source.
    #[doc(hidden)]
    pub fn manual(
        model: impl Model,
        vfs: u8,
        topology: Topology,
        memory: Arc<dyn Dma>,
        machine: Arc<dyn Machine>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, CardError> {
        let vfs = vfs.min(model.total_vfs()).min(MAX_VFS);
        let provisioned = topology == Topology::Provisioned;
        let physical = model.physical_function(vfs)?;
        let pf_bars = bars(&physical);
        let vf_bars = if vfs == 0 { Vec::new() } else { bars(&model.virtual_function()?) };
        let pf = Config::Physical { function: physical, disguised: topology != Topology::Native };
        let msi = |function| machine.msi(function).map_err(|error| CardError::Interrupts { function, error });
        let line = if pf.has_pin() { machine.line(Function::PF) } else { None };
        let mut ports = vec![BusPort::new(pf, msi(Function::PF)?, line)];
        for number in Function::first_vfs(vfs) {
            let config = match topology {
                Topology::Native => Config::virtual_function(model.virtual_function_on_bus()?),
                Topology::Together => Config::Shim(VfConfigShim::new(model.virtual_function()?)),
                Topology::Split | Topology::Provisioned => Config::virtual_function(model.virtual_function()?),
            };
            ports.push(BusPort::new(config, msi(number)?, None));
        }

        let all = AllFunctions::default();
        let (bus_ports, functions) = (ports.clone(), all.clone());
        let host = Arc::new(BusPorts { ports: bus_ports, memory: memory.clone(), machine: machine.clone(), functions });
        let gpu = model.power_on(vfs, provisioned, Host { memory: host.clone(), interrupts: host, clock })?;
        if vfs != 0 && gpu.vfs().is_none() {
            return Err(CardError::NoVfs { described: vfs });
        }
        let shared = Arc::new(CardShared { gpu, topology, functions: all, machine, memory });
        let mut functions = Vec::new();
        for (number, port) in Function::all().zip(ports) {
            let bars = if number.is_vf() { &vf_bars } else { &pf_bars };
            functions.push(CardFunction::full(&shared, number, port, bars.clone()).map_err(CardError::Threads)?);
        }
        let mut all_functions = functions.clone();
        if topology == Topology::Split {
            for number in Function::first_vfs(vfs) {
                let port = BusPort::unconnected(Config::Shim(VfConfigShim::new(model.virtual_function()?)));
                all_functions.push(CardFunction::config_only(&shared, number, port));
            }
        }
        // Set only here.
        let _ = shared.functions.set(all_functions.iter().map(Arc::downgrade).collect());
        if provisioned {
            shared.enable_vfs(vfs);
            shared.set_vf_memory_space(true);
        }
        let name = model.name().to_owned();
        Ok(VirtualCard { name, shared, all_functions, functions, started: Instant::now(), _workers: None })
    }

    /// The card, without its PCI functions.
    pub fn gpu(&self) -> &Arc<dyn Gpu> {
        &self.shared.gpu
    }

    /// The physical function.
    #[allow(clippy::indexing_slicing, reason = "the PF always exists")]
    pub fn pf(&self) -> &Arc<CardFunction> {
        &self.functions[0]
    }

    /// The PF and all VFs that the card offers, by number, whether enabled or not ([`PciDevice::enabled`]).
    pub fn functions(&self) -> &[Arc<CardFunction>] {
        &self.functions
    }

    /// Number of VFs that the card offers.
    pub fn total_vfs(&self) -> u8 {
        byte(self.functions.len().saturating_sub(1))
    }

    /// Makes the card report the hardware error `name`, one of [`VirtualCard::hardware_errors`], to test the error
    /// handling of the PF's driver. Returns false if the card has no such error. The error has no other effect: the card
    /// continues to work. May be called from any thread.
    ///
    /// On a Flex card (V13-284..287) the error's bits are set in the error registers, and the PF's interrupt is raised,
    /// or the message of a fatal error is sent ([`Machine::fatal_error`]). The bits stay set until the driver clears
    /// them, or a reset of the PF.
    ///
    /// ```no_run
    /// # fn raise(card: &arctic_gpu::VirtualCard) {
    /// assert!(card.raise_hardware_error("nonfatal-soc"));
    /// # }
    /// ```
    pub fn raise_hardware_error(&self, name: &str) -> bool {
        let raised = self.shared.gpu.hardware_errors().is_some_and(|errors| errors.raise(name));
        if raised {
            log::info!("hardware error raised: {name}");
        }
        raised
    }

    /// The hardware errors that the card can report; none for a card that reports no errors.
    pub fn hardware_errors(&self) -> Vec<ReportableError> {
        self.shared.gpu.hardware_errors().map_or_else(Vec::new, |errors| errors.reportable())
    }

    /// Returns the card's error registers, by severity.
    pub fn error_registers(&self) -> Vec<Values> {
        self.shared.gpu.hardware_errors().map_or_else(Vec::new, |errors| errors.error_registers())
    }

    /// Must be called after the guest memory map was replaced. Blocks until the card no longer uses the old map.
    pub fn memory_changed(&self) {
        // Steps that begin after this loop use a view of the new map; `quiesce` waits for earlier steps.
        for function in &self.functions {
            self.shared.memory.view(function.number());
        }
        self.shared.gpu.quiesce();
    }

    /// Serves the [`crate::IoEvent`]s of all functions on a separate thread, until the returned value is dropped.
    pub fn serve_io_events(&self) -> io::Result<IoEventThread> {
        IoEventThread::start(self.io_event_handlers()?)
    }

    /// Returns the event handlers of all functions, for a VMM with its own event loop; replaces
    /// [`VirtualCard::serve_io_events`]. A Flex card has one for each function. Fails if no file descriptor is available.
    pub fn io_event_handlers(&self) -> io::Result<Vec<IoEventHandler>> {
        self.functions.iter().flat_map(IoEventHandler::of).collect()
    }

    /// Returns the report of trapped accesses and unimplemented registers so far.
    pub fn report(&self) -> Report {
        let functions: BTreeMap<_, _> =
            self.all_functions.iter().map(|member| (member.name(), member.trapped.counts())).collect();
        Report::new(&self.name, self.shared.gpu.report(), functions)
    }
}

#[cfg(all(test, feature = "vfio-user"))]
mod tests;
