// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Presents the card as PCI functions: connects the functions of `sriov` to the device model, and owns the memory files
//! and the ports to the machine.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

mod access_log;
mod builder;
mod bus_port;
mod bus_ports;
mod function;
mod inspect;
mod io_events;
mod msi_quiesce;
mod reverted;
mod saved;
pub mod status;
mod trapped;

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::Instant;

use arctic_device_model::gpu::{
    Model, PowerOnError, ReportableError, Values, WalkerCapture, WalkerRequest, WorkStatus,
};
use arctic_device_model::host::{Clock, Function};
use arctic_device_model::limits::TotalTooSmall;
use arctic_device_model::trace::Recorder;
use arctic_device_model::workers::Workers;
use arctic_sriov::function::FunctionError;
use arctic_sriov::number::byte;

pub use self::builder::Builder;
pub use self::function::CardFunction;
use self::function::CardShared;
#[cfg(feature = "vfio-user")]
pub(crate) use self::function::Exposure;
pub use self::io_events::{IoEventHandler, IoEventThread};
use crate::pci::PciDevice;
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
    /// The card has no VFs ([`Gpu::vfs`](crate::gpu::Gpu::vfs)), although its model describes some.
    #[error("the card's model describes {described} VFs, and the card has none")]
    NoVfs {
        /// Number of VFs that the model describes.
        described: u8,
    },
    /// The machine cannot deliver the interrupts of a function ([`Machine::msi`](crate::Machine::msi)).
    #[error("cannot connect the interrupts of {function}: {error}")]
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

/// A card plugged into a machine, with its worker threads if it has some. Dropping it stops the threads. Functions that are still
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

impl VirtualCard {
    /// Begins the creation of a card that `model` describes. A [`CardProfile`](crate::CardProfile) is the model of a card that a
    /// card file describes.
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use arctic_gpu::{Dma, Machine, VirtualCard, card_file};
    /// # fn create(machine: Arc<dyn Machine>, memory: Arc<dyn Dma>) -> Result<VirtualCard, Box<dyn std::error::Error>> {
    /// let card = VirtualCard::builder(card_file::load("flex170")?).vfs(7).plug_into(machine, memory)?;
    /// # Ok(card)
    /// # }
    /// ```
    pub fn builder<M: Model>(model: M) -> Builder<M> {
        Builder::new(model)
    }

    /// Executes a bounded amount of pending work, for a VMM that runs the card on its own threads
    /// ([`Builder::without_threads`]). Several threads may call it at once. Must not be called in a method of
    /// [`Machine`](crate::Machine), [`MsiSink`](crate::MsiSink) or [`LineSink`](crate::LineSink) (deadlock).
    ///
    /// After [`WorkStatus::Idle`], nothing is due until the time that it has, of the card's [clock](VirtualCard::clock), or
    /// until the waker is called. After [`WorkStatus::Busy`], more may be due now, and the waker is not called.
    pub fn work(&self) -> WorkStatus {
        let gpu = &self.shared.gpu;
        let seen = gpu.wakeups().posted();
        match gpu.work() {
            WorkStatus::Idle(_) if !gpu.wakeups().arm(seen) => WorkStatus::Busy,
            status => status,
        }
    }

    /// The card's clock.
    pub fn clock(&self) -> &dyn Clock {
        self.shared.gpu.clock()
    }

    /// The recorder of the card's events.
    pub fn trace(&self) -> &Arc<Recorder> {
        self.shared.gpu.trace()
    }

    /// Requests the capture of a walker, a dispatch of a kernel, with the memory that it accesses. The request ends when what is
    /// returned is dropped.
    ///
    /// # Errors
    /// The card has no execution units, or another request has not ended. The text is a sentence.
    pub fn capture_walker(&self, request: WalkerRequest) -> Result<Box<dyn WalkerCapture>, String> {
        let captures = self.shared.gpu.walker_captures().ok_or("this card has no execution units")?;
        captures.capture_walker(request)
    }

    /// The descriptors of all files and events of the card and its functions. A VMM that closes descriptors, to enter a sandbox,
    /// must keep them, and those that it has itself given to the card. They are open as long as the card. The card opens no
    /// further ones after its creation, but [`VirtualCard::serve_io_events`] and [`VirtualCard::io_event_handlers`] do.
    pub fn descriptors(&self) -> Vec<RawFd> {
        let memory = self.shared.gpu.own_memory().map_or_else(Vec::new, |memory| memory.descriptors());
        let events = self.functions.iter().flat_map(|function| function.io_events());
        memory.into_iter().chain(events.map(|event| event.event.as_raw_fd())).collect()
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
    /// or the message of a fatal error is sent ([`Machine::fatal_error`](crate::Machine::fatal_error)). The bits stay set until the driver clears
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
