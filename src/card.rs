// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Presents the card as PCI functions: connects the functions of `sriov` to the device model, and owns the memory files
//! and the ports to the machine.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

mod bus_port;
mod function;
mod msi_quiesce;
pub mod status;
mod windows;

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Instant;

use arctic_device_model::card::{Card, Workers};
use arctic_device_model::guc::hxg;
use arctic_device_model::hardware_error::{ErrorRegisters, HardwareError};
use arctic_device_model::host::{Clock, Dma, Function, HostClock};
use arctic_device_model::memory::{Memories, VfMemory};
use arctic_device_model::profile::CardProfile;
use arctic_device_model::profile::provision::{GgttAccess, TooMuch};
use arctic_sriov::function::{FunctionError, PciFunction};
use arctic_sriov::header::Identity;
use arctic_sriov::number::byte;
use arctic_sriov::sriov_capability::SriovLayout;
use arctic_sriov::virtual_function::VfConfigShim;

use self::bus_port::{BusPort, BusPorts, Config};
use self::function::CardShared;
#[cfg(feature = "vfio-user")]
pub(crate) use self::function::Exposure;
pub use self::function::{CardFunction, TrappedCounts};
use crate::io_events::{IoEventHandler, IoEventThread};
use crate::pci::{Machine, PciDevice};
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

/// Former name of [`Topology`].
#[deprecated(note = "renamed to `Topology`; removed in the release after the next")]
pub type Arrangement = Topology;

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
    /// The profile requires functions that PCI cannot describe.
    #[error(transparent)]
    Pci(#[from] FunctionError),
    /// The profile assigns more resources to its VFs than the card has.
    #[error(transparent)]
    TooMuch(#[from] TooMuch),
    /// The GuC rejects the VF resources of the profile.
    #[error("the GuC rejects the VF resources of [provision] in the card file ({0:?})")]
    Provision(hxg::Error),
    /// The files that back the BARs cannot be created.
    #[error("cannot create the card's memory files: {0}")]
    Memory(#[source] io::Error),
    /// The card's threads cannot be started, or the descriptors of its events cannot be created.
    #[error("cannot start the card's threads: {0}")]
    Threads(#[source] io::Error),
}

/// A card plugged into a machine, with its worker threads. Dropping it stops the threads. Functions that are still
/// referenced complete accesses, but do not execute any further work.
pub struct VirtualCard {
    profile: CardProfile,
    pub(crate) shared: Arc<CardShared>,
    pub(crate) all_functions: Vec<Arc<CardFunction>>,
    /// The PF and the VFs, without the configuration-only functions (`Exposure::ConfigOnly`).
    functions: Vec<Arc<CardFunction>>,
    started: Instant,
    _workers: Option<Workers>,
}

/// Returns the PCI identity of the PF and the VFs of a card.
pub(crate) fn identity(profile: &CardProfile) -> Identity {
    Identity::data_center_gpu(profile.device, profile.revision)
}

impl VirtualCard {
    /// Creates a card and plugs it into `machine`, which supports at most `vfs` VFs. TotalVFs is the smaller of `vfs`
    /// and the profile's `total_vfs`; if it is 0, the card has no SR-IOV capability. The card accesses guest memory
    /// through `memory`. Its own memory is backed by sparse files; their pages are allocated on first use.
    pub fn new(
        profile: CardProfile,
        vfs: u8,
        topology: Topology,
        memory: Arc<dyn Dma>,
        machine: Arc<dyn Machine>,
    ) -> Result<Self, CardError> {
        let mut card = Self::manual(profile, vfs, topology, memory, machine, Arc::new(HostClock::default()))?;
        let threads = thread::available_parallelism().map_or(1, |cores| cores.get().min(4));
        card._workers = Some(Workers::start(card.shared.card.clone(), threads).map_err(CardError::Threads)?);
        Ok(card)
    }

    /// Creates a card without threads, for deterministic tests. Accesses have only their immediate effects; all other
    /// work is done by calls to [`Card::work`], with `clock` as the time source.
    #[doc(hidden)]
    pub fn manual(
        profile: CardProfile,
        vfs: u8,
        topology: Topology,
        memory: Arc<dyn Dma>,
        machine: Arc<dyn Machine>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, CardError> {
        let vfs = vfs.min(profile.total_vfs);
        let provisioned = topology == Topology::Provisioned;
        // Checked before anything is allocated: the card file may request more than the card has.
        let quotas = if provisioned { profile.quotas(vfs)? } else { Vec::new() };
        let identity = identity(&profile);
        let vf_bar = profile.vf_local_memory_bar();
        let virtual_function = || PciFunction::virtual_function(&identity, vf_bar);

        let layout = SriovLayout { total_vfs: vfs.into(), vf_lmem_sizes: vec![vf_bar], vf_lmem_bytes: vf_bar };
        let function = PciFunction::physical(&identity, profile.local_memory_bar(), (vfs != 0).then_some(&layout))?;
        let pf = Config::Physical { function, disguised: topology != Topology::Native };
        let mut ports = vec![BusPort::new(pf, machine.msi(Function::PF))];
        for number in (1..=vfs).map(Function) {
            let config = match topology {
                Topology::Native => Config::virtual_function(PciFunction::virtual_function_on_bus(&identity)?),
                Topology::Together => Config::Shim(VfConfigShim::new(virtual_function()?)),
                Topology::Split | Topology::Provisioned => Config::virtual_function(virtual_function()?),
            };
            ports.push(BusPort::new(config, machine.msi(number)));
        }

        let (local_file, local) = windows::local_memory(profile.local_memory).map_err(CardError::Memory)?;
        let (ggtt_file, ggtt) = windows::global_table().map_err(CardError::Memory)?;
        let mut vf_files = Vec::new();
        let mut vf_memories = Vec::new();
        for _ in 1..=vfs {
            let (file, local) = windows::local_memory(vf_bar).map_err(CardError::Memory)?;
            let (table, ggtt) = match profile.ggtt {
                GgttAccess::Mapped => windows::global_table().map(|(file, region)| (Some(file), Some(region))),
                GgttAccess::Trapped => Ok((None, None)),
            }
            .map_err(CardError::Memory)?;
            vf_files.push((table, file));
            vf_memories.push(VfMemory { local, ggtt });
        }

        let host = Arc::new(BusPorts { ports: ports.clone(), memory: memory.clone(), machine: machine.clone() });
        let memories = Memories { local, ggtt, vfs: vf_memories };
        let card = Card::power_on(&profile, memories, host.clone(), host, clock);
        let shared = Arc::new(CardShared { card, topology, functions: OnceLock::new(), machine, memory });
        let mut ports = ports.into_iter();
        let mut functions = Vec::new();
        if let Some(port) = ports.next() {
            let files = (Some(ggtt_file), local_file, profile.local_memory);
            functions.push(CardFunction::whole(&shared, Function::PF, port, files).map_err(CardError::Threads)?);
        }
        for ((number, port), (table, file)) in (1..).map(Function).zip(ports).zip(vf_files) {
            let files = (table, file, vf_bar);
            functions.push(CardFunction::whole(&shared, number, port, files).map_err(CardError::Threads)?);
        }
        let mut all_functions = functions.clone();
        if topology == Topology::Split {
            for number in (1..=vfs).map(Function) {
                let port = BusPort::unconnected(Config::Shim(VfConfigShim::new(virtual_function()?)));
                all_functions.push(CardFunction::bare(&shared, number, port));
            }
        }
        // Set only here.
        let _ = shared.functions.set(all_functions.iter().map(Arc::downgrade).collect());
        if provisioned {
            shared.card.provision(&quotas).map_err(CardError::Provision)?;
            shared.enable_vfs(vfs);
            shared.set_vf_memory_space(true);
        }
        Ok(VirtualCard { profile, shared, all_functions, functions, started: Instant::now(), _workers: None })
    }

    /// The hardware model.
    pub fn model(&self) -> &Card {
        &self.shared.card
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

    /// Makes the card report a hardware error, to test the error handling of the PF's driver (V13-284..287): sets the
    /// error's bits in the error registers, and raises the PF's interrupt, or sends the message of a fatal error
    /// ([`Machine::fatal_error`]). The error has no other effect: the card continues to work. The bits stay set until
    /// the driver clears them, or a reset of the PF. May be called from any thread.
    ///
    /// ```no_run
    /// # fn raise(card: &arctic_gpu::VirtualCard) {
    /// use arctic_gpu::hardware_error::HardwareError;
    ///
    /// if let Some(error) = HardwareError::named("nonfatal-soc") {
    ///     card.raise_hardware_error(error);
    /// }
    /// # }
    /// ```
    pub fn raise_hardware_error(&self, error: HardwareError) {
        log::info!("hardware error raised: {}", error.name);
        self.shared.card.raise_hardware_error(error);
    }

    /// Returns the card's error registers, by severity.
    pub fn error_registers(&self) -> [ErrorRegisters; 3] {
        self.shared.card.error_registers()
    }

    /// Must be called after the guest memory map was replaced. Blocks until the card no longer uses the old map.
    pub fn memory_changed(&self) {
        // Steps that begin after this loop use a view of the new map; `quiesce` waits for earlier steps.
        for function in &self.functions {
            self.shared.memory.view(function.number());
        }
        self.shared.card.quiesce();
    }

    /// Serves the [`crate::IoEvent`]s of all functions on a separate thread, until the returned value is dropped.
    pub fn serve_io_events(&self) -> io::Result<IoEventThread> {
        IoEventThread::start(self.io_event_handlers()?)
    }

    /// Returns one event handler for each function, for a VMM with its own event loop; replaces
    /// [`VirtualCard::serve_io_events`]. Fails if no file descriptor is available.
    pub fn io_event_handlers(&self) -> io::Result<Vec<IoEventHandler>> {
        self.functions.iter().filter_map(IoEventHandler::new).collect()
    }

    /// Returns the report of trapped accesses and unimplemented registers so far.
    pub fn report(&self) -> Report {
        let functions: BTreeMap<_, _> =
            self.all_functions.iter().map(|member| (member.name(), member.trapped.counts())).collect();
        let model = arctic_device_model::report::Report::of(&self.shared.card);
        Report::new(&self.profile.name, model, functions)
    }
}

#[cfg(all(test, feature = "vfio-user"))]
mod tests;
