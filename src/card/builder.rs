// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The settings of a card, and its creation.

use std::num::NonZero;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use arctic_device_model::event_count::Waker;
use arctic_device_model::gpu::{Host, Model};
use arctic_device_model::host::{Clock, Dma, Function, HostClock, MAX_VFS};
use arctic_device_model::workers::Workers;
use arctic_sriov::function::PciFunction;
use arctic_sriov::virtual_function::VfConfigShim;

use super::bus_port::{BusPort, Config};
use super::bus_ports::BusPorts;
use super::function::{AllFunctions, CardShared, Withholding};
use super::{CardError, CardFunction, Topology, VirtualCard};
use crate::pci::{Bar, Machine};

/// Settings of a card that is to be created, from [`VirtualCard::builder`].
///
/// Without further settings, the card has no VFs, its worker threads run it, and its time is that of the host.
#[must_use = "`plug_into` creates the card"]
pub struct Builder<M> {
    model: M,
    vfs: u8,
    topology: Topology,
    clock: Arc<dyn Clock>,
    /// Number of worker threads; `None` for that of the model.
    workers: Option<NonZero<usize>>,
    /// Beginning of the names of the threads.
    names: String,
    /// Of a card without threads.
    waker: Option<Waker>,
    withholding: Option<Withholding>,
}

impl<M: Model> Builder<M> {
    pub(super) fn new(model: M) -> Self {
        let (topology, clock) = (Topology::Native, Arc::new(HostClock::default()));
        let names = String::new();
        Builder { model, vfs: 0, topology, clock, workers: None, names, waker: None, withholding: None }
    }

    /// The machine supports at most `count` VFs. TotalVFs is the smaller of `count` and the model's number; if it is 0, which is
    /// the default, the card has no SR-IOV capability.
    pub fn vfs(self, count: u8) -> Self {
        Builder { vfs: count, ..self }
    }

    /// How the functions are distributed over machines; [`Topology::Native`] by default.
    pub fn topology(self, topology: Topology) -> Self {
        Builder { topology, ..self }
    }

    /// The card's time, also for its timers; by default the host's monotonic clock. Workers sleep until a time of this clock as
    /// if it were the host's, so a clock that is not advances only a card without threads reliably.
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Builder { clock, ..self }
    }

    /// The card starts `count` worker threads. By default one for each processor, at most 16, or `threads` of the card
    /// file's `[limits]`.
    pub fn workers(self, count: NonZero<usize>) -> Self {
        Builder { workers: Some(count), ..self }
    }

    /// The names of the card's threads begin with `names`. Without it they are `gt0`, `gt1` and so on, `scrub` and `flr`. Linux
    /// shows 15 bytes of a name.
    pub fn thread_names(self, names: &str) -> Self {
        Builder { names: names.to_owned(), ..self }
    }

    /// The card has no threads: the VMM calls [`VirtualCard::work`] on its own. `waker` is called, once after each call that
    /// returned [`WorkStatus::Idle`](crate::WorkStatus::Idle), when there may be work again: from any thread, also from one that
    /// accesses the card, with locks of the card held. It must not block and must not access the card; it usually
    /// writes to an eventfd or unparks a thread.
    pub fn without_threads(self, waker: impl Fn() + Send + Sync + 'static) -> Self {
        Builder { waker: Some(Box::new(waker)), ..self }
    }

    /// Decides for a server which VFs read all ones.
    #[cfg(feature = "vfio-user")]
    pub(crate) fn withholding(self, withholding: Withholding) -> Self {
        Builder { withholding: Some(withholding), ..self }
    }

    /// Creates the card, plugs it into `machine`, and starts its threads. The card accesses guest memory through `memory`,
    /// usually a [`GuestRam`](crate::GuestRam). Its own memory is backed by sparse files; their pages are allocated on first use.
    ///
    /// # Errors
    /// The host has no more files, memory or threads, the machine cannot deliver the interrupts of a function, or the model's
    /// description is wrong. No thread of the card is left then.
    pub fn plug_into(mut self, machine: Arc<dyn Machine>, memory: Arc<dyn Dma>) -> Result<VirtualCard, CardError> {
        let waker = self.waker.take();
        let (workers, names) = (self.workers, std::mem::take(&mut self.names));
        let processors = || thread::available_parallelism().map_or(1, NonZero::get);
        let workers = workers.map_or_else(|| self.model.limits().threads(processors()), NonZero::get);
        let mut card = self.create(&machine, &memory)?;
        let gpu = &card.shared.gpu;
        match waker {
            Some(waker) => gpu.wakeups().set_waker(waker),
            None => {
                card._workers = Some(Workers::start(gpu.clone(), workers, &names).map_err(CardError::Threads)?);
            }
        }
        Ok(card)
    }

    /// Creates the card. Its work is not executed yet.
    fn create(self, machine: &Arc<dyn Machine>, memory: &Arc<dyn Dma>) -> Result<VirtualCard, CardError> {
        let Builder { model, vfs, topology, clock, withholding, .. } = self;
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
        let host = BusPorts { ports: bus_ports, memory: memory.clone(), machine: machine.clone(), functions };
        let host = Arc::new(host);
        let gpu = model.power_on(vfs, provisioned, Host { memory: host.clone(), interrupts: host, clock })?;
        if vfs != 0 && gpu.vfs().is_none() {
            return Err(CardError::NoVfs { described: vfs });
        }
        let (machine, memory) = (machine.clone(), memory.clone());
        let shared = Arc::new(CardShared { gpu, topology, functions: all, machine, memory, withholding });
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
}

/// The BARs of a function that is not on a bus with SR-IOV, as a machine gets them.
fn bars(function: &PciFunction) -> Vec<Bar> {
    let bar = |bar: &arctic_sriov::bar::Bar| Bar { index: bar.index(), size: bar.size(), kind: bar.kind() };
    function.bars().iter().map(bar).collect()
}
