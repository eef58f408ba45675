// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A card with functions served over sockets. Each function's client is its machine.

use std::io;
use std::sync::{Arc, OnceLock, Weak};

use arctic_device_model::gpu::Model;
use arctic_device_model::host::{Dma, DmaView, Function, NullHost};
use arctic_device_model::profile::limits::{LEAST_COUNT, Limits};
use arctic_sriov::event::Event;

use arctic_sriov::header::Identity;

use super::ecam::{BarPlacer, Ecam, PfState, Requester};
use super::memory::GuestMemory;
use super::quota::{self, Ledger};
use super::{Device, VECTORS, VECTORS_WITH_PIN, Vectors};
use crate::card::{CardError, CardFunction, Exposure, Topology, VirtualCard};
use crate::pci::{LineSink, Machine, MsiSink, PciDevice};

/// A function to be served, with the name of its socket (without extension).
#[non_exhaustive]
pub struct Served {
    /// "pf", "vf1", "vf1-config-only" and so on.
    pub name: String,
    /// The function.
    pub function: super::Function,
}

/// A card to be served over sockets.
pub struct ServedCard {
    card: VirtualCard,
    clients: Arc<Clients>,
}

impl ServedCard {
    /// Creates a card for clients that support at most `vfs` VFs. `ecam` is the configuration space window of the PF's
    /// guest, for [`Topology::Together`].
    pub fn new(model: impl Model, vfs: u8, topology: Topology, ecam: Ecam) -> Result<Self, CardError> {
        let functions = usize::from(vfs) + 1;
        let limits = spare(model.limits().each(functions)?, quota::spare_descriptors(functions), functions);
        let ledger = Ledger::new(limits, topology == Topology::Together);
        let clients = Clients::new(vfs, topology, (ecam, model.identity()), &ledger).map_err(CardError::Threads)?;
        let mut builder = VirtualCard::builder(model).vfs(vfs).topology(topology);
        if let Some(placer) = clients.placer.get().cloned() {
            builder = builder.withholding(Box::new(move |vf| vf.is_vf() && placer.withholds(vf.number())));
        }
        let card = builder.plug_into(clients.clone(), clients.clone())?;
        // Set only here.
        let _ = clients.pf.set(Arc::downgrade(card.pf()));
        card.all_functions.iter().for_each(|function| function.set_connected(false));
        // Weak, because the card holds the clients' memory, which holds the ledger.
        let gpu = Arc::downgrade(&card.shared.gpu);
        let delays_others = move |function| gpu.upgrade()?.vfs().map(|vfs| vfs.delays_others(function));
        ledger.set_waits(move |function| delays_others(function).unwrap_or(false));
        Ok(ServedCard { card, clients })
    }

    /// The card.
    pub fn card(&self) -> &VirtualCard {
        &self.card
    }

    /// The functions to serve: the PF first (unless the program acts as the PF driver), then the VFs by number.
    pub fn functions(&self) -> Vec<Served> {
        let provisioned = self.clients.topology == Topology::Provisioned;
        let served = |function: &Arc<CardFunction>| {
            // Memory and eventfds from the client of a configuration-only function are not used.
            let Hands { memory, vectors } = match function.exposure {
                Exposure::Full => self.clients.hands(function.number()).cloned().unwrap_or_default(),
                Exposure::ConfigOnly => {
                    let ledger = Ledger::new(Limits::default(), false);
                    Hands::new(function.number(), function.name(), &ledger)
                }
            };
            let device = Arc::new(Endpoint { function: function.clone(), clients: self.clients.clone() });
            Served { name: function.name(), function: super::Function { device, memory, vectors } }
        };
        let functions = self.card.all_functions.iter();
        functions.filter(|member| member.number().is_vf() || !provisioned).map(served).collect()
    }

    /// A PCI function, not of the card, that programs the VF BARs in the PF's guest if a client connects to it; `None`
    /// if no VFs are in that guest. It is for a bus that the guest's IOMMU does not translate; without it, the PF
    /// programs them.
    pub fn ecam_requester(&self) -> Option<Served> {
        let placer = self.clients.placer.get()?.clone();
        let device = Arc::new(Requester::new(placer).ok()?);
        let Hands { vectors, .. } = Hands::default();
        let memory = self.clients.requester.clone();
        Some(Served { name: device.name(), function: super::Function { device, memory, vectors } })
    }
}

/// Reduces the limits of each of `functions` functions to `descriptors` spare descriptors of this process. Clients
/// without files in their memory do not need any, so too few are no error.
fn spare(limits: Limits, descriptors: u32, functions: usize) -> Limits {
    let functions = u32::try_from(functions).unwrap_or(u32::MAX);
    let share = descriptors.checked_div(functions).unwrap_or(descriptors);
    if share < LEAST_COUNT.min(limits.descriptors) {
        log::warn!(
            "the limit of open files leaves {share} files of guest memory for each of {functions} functions: raise it \
             (ulimit -n), or clients that need more cannot map their memory"
        );
    }
    Limits {
        descriptors: limits.descriptors.min(share),
        descriptors_in_all: limits.descriptors_in_all.min(descriptors),
        ..limits
    }
}

/// Memory and interrupt vectors provided by a client.
#[derive(Clone)]
pub(super) struct Hands {
    pub memory: Arc<GuestMemory>,
    pub vectors: Arc<Vectors>,
}

impl Hands {
    /// Empty memory with the limits of `ledger`, and disarmed vectors.
    fn new(function: Function, name: String, ledger: &Arc<Ledger>) -> Self {
        let memory = GuestMemory::new(function, name, ledger.clone());
        Hands { memory: Arc::new(memory), vectors: Arc::new(Vectors::new(VECTORS)) }
    }

    /// The same for a function with an interrupt pin.
    fn with_pin(self) -> Self {
        Hands { vectors: Arc::new(Vectors::new(VECTORS_WITH_PIN)), ..self }
    }
}

impl Default for Hands {
    fn default() -> Self {
        Hands { memory: Arc::default(), vectors: Arc::new(Vectors::new(VECTORS)) }
    }
}

/// The clients of all functions, which together are the machine that the card is plugged into.
pub(super) struct Clients {
    /// Indexed by function number.
    hands: Vec<Hands>,
    topology: Topology,
    /// The PF, once the card has been created.
    pf: OnceLock<Weak<CardFunction>>,
    /// Programs the VF BARs; set only if the VFs are in the PF's guest.
    placer: OnceLock<Arc<BarPlacer>>,
    /// Of the function that programs them instead of the PF, if it has a client.
    requester: Arc<GuestMemory>,
}

impl Clients {
    fn new(
        vfs: u8,
        topology: Topology,
        (ecam, identity): (Ecam, Identity),
        ledger: &Arc<Ledger>,
    ) -> std::io::Result<Arc<Self>> {
        let hands = Function::all().take(usize::from(vfs).saturating_add(1)).map(|n| {
            let hands = Hands::new(n, n.to_string(), ledger);
            // VFs have no pin (PCIe 9.3.4.1.14).
            if n == Function::PF && identity.pin.is_some() { hands.with_pin() } else { hands }
        });
        let hands: Vec<_> = hands.collect();
        let (placer, requester) = (OnceLock::new(), Hands::default().memory);
        if topology == Topology::Together && vfs != 0 {
            let pf = hands.first().map(|pf| pf.memory.clone()).unwrap_or_default();
            let _ = placer.set(Arc::new(BarPlacer::start(ecam, identity, vfs, [requester.clone(), pf])?));
        }
        Ok(Arc::new(Clients { hands, topology, pf: OnceLock::new(), placer, requester }))
    }

    pub(super) fn hands(&self, function: Function) -> Option<&Hands> {
        self.hands.get(function.index())
    }
}

impl Dma for Clients {
    fn view(&self, function: Function) -> Arc<dyn DmaView> {
        self.hands(function).map_or_else(|| Arc::new(NullHost) as Arc<dyn DmaView>, |hands| hands.memory.view())
    }
}

impl Machine for Clients {
    fn msi(&self, function: Function) -> io::Result<Arc<dyn MsiSink>> {
        Ok(self.hands(function).cloned().unwrap_or_default().vectors)
    }

    fn line(&self, function: Function) -> Option<Arc<dyn LineSink>> {
        Some(self.hands(function)?.vectors.clone())
    }

    fn event(&self, function: &Arc<dyn PciDevice>, event: Event) {
        let Some(placer) = self.placer.get() else { return };
        let number = function.number().number();
        match event {
            Event::BusMaster(_)
            | Event::VfBarMoved(_)
            | Event::VfEnable { .. }
            | Event::VfDisable
            | Event::VfMemorySpace(_)
                if !function.number().is_vf() =>
            {
                if let Some(pf) = self.pf.get().and_then(Weak::upgrade) {
                    placer.pf_changed(PfState::of(&pf));
                }
            }
            Event::MemorySpace(on) if function.number().is_vf() => placer.memory_space(number, on),
            Event::BarMoved { bar, address } if function.number().is_vf() => placer.bar(number, bar, address),
            _ => {}
        }
    }
}

/// A function as used by its server.
struct Endpoint {
    function: Arc<CardFunction>,
    clients: Arc<Clients>,
}

impl Device for Endpoint {
    fn pci(&self) -> &dyn PciDevice {
        &*self.function
    }

    /// A VF in a separate guest accepts a client only while it is enabled. The connection outlasts the VF: while the VF
    /// is not enabled, all reads return all ones and writes are dropped; memory, interrupts and resets are accepted.
    fn admit(&self) -> Result<(), String> {
        let function = &self.function;
        let split = self.clients.topology == Topology::Split;
        if split && function.number().is_vf() && function.exposure == Exposure::Full && !function.enabled() {
            let how = "start its guest after the PF's guest has enabled it (sriov_numvfs)";
            return Err(format!("VF {} does not exist yet: {how}", function.number().number()));
        }
        function.set_connected(true);
        if let (Some(placer), true) = (self.clients.placer.get(), function.number().is_vf()) {
            placer.vf_client(function.number().number(), true);
        }
        Ok(())
    }

    fn reset(&self) {
        self.function.reset();
        if let (Some(placer), Function::PF) = (self.clients.placer.get(), self.function.number()) {
            placer.machine_reset();
        }
    }

    fn disconnected(&self) {
        self.function.set_connected(false);
        if self.function.exposure == Exposure::ConfigOnly {
            return;
        }
        self.function.power_off();
        match (self.clients.placer.get(), self.function.number()) {
            (Some(placer), Function::PF) => placer.client_gone(),
            (Some(placer), vf) => placer.vf_client(vf.number(), false),
            (None, _) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;
    use crate::CardProfile;

    /// Log messages about a client's memory name the function that the client is connected to, also for the functions
    /// that have only configuration space.
    #[test]
    fn the_memory_of_a_client_has_the_name_of_its_function() {
        let profile: CardProfile = toml::from_str(include_str!("../../configs/small.toml")).unwrap();
        for (topology, expected) in [
            (Topology::Together, &["pf", "vf1", "vf2"][..]),
            (Topology::Split, &["pf", "vf1", "vf2", "vf1-config-only", "vf2-config-only"]),
            (Topology::Provisioned, &["vf1", "vf2"]),
        ] {
            let served = ServedCard::new(profile.clone(), 2, topology, Ecam::default()).unwrap();
            let functions = served.functions();
            let names: Vec<_> = functions.iter().map(|served| served.function.memory.name.as_str()).collect();
            assert_eq!(names, expected, "{topology:?}");
            for served in &functions {
                let (device, memory) = (&served.function.device, &served.function.memory);
                assert_eq!((served.name.as_str(), device.pci().number()), (memory.name.as_str(), memory.function));
            }
        }
    }

    /// The limits of the card file and those of the process apply; too small a total in the card file is an error.
    #[test]
    fn limits_are_reduced_to_the_spare_descriptors() {
        let limits = Limits::default().each(3).unwrap();
        let of = |descriptors| spare(limits, descriptors, 3);
        let descriptors = |limits: Limits| (limits.descriptors, limits.descriptors_in_all);
        assert_eq!(of(u32::MAX), limits);
        assert_eq!(descriptors(of(301)), (100, 301));
        assert_eq!(descriptors(of(2)), (0, 2));
        let mut profile: CardProfile = toml::from_str(include_str!("../../configs/small.toml")).unwrap();
        profile.limits.mappings_in_all = 47;
        let error = ServedCard::new(profile, 2, Topology::Split, Ecam::default()).err().map(|error| error.to_string());
        let expected = "[limits] mappings_in_all = 47 is too small for 3 functions: expected at least 48";
        assert_eq!(error.as_deref(), Some(expected));
    }

    /// Each function gets its share of the common limits; the card reports whether others wait.
    #[test]
    fn each_function_has_its_part_of_the_limits() {
        let mut profile: CardProfile = toml::from_str(include_str!("../../configs/small.toml")).unwrap();
        profile.limits = Limits { sections_in_all: 3000, ..Limits::default() };
        let served = ServedCard::new(profile, 2, Topology::Split, Ecam::default()).unwrap();
        let hands = &served.clients.hands;
        assert_eq!(hands.iter().map(|hands| hands.memory.most_sections()).collect::<Vec<_>>(), [1000; 3]);
        let ledger = hands[0].memory.ledger();
        let _sessions = [0; 3].map(|_| ledger.session());
        let begun = Instant::now();
        while ledger.held_up(Function::PF) {
            assert!(begun.elapsed() < Duration::from_secs(10), "no function waits on an idle card");
            std::thread::yield_now();
        }
    }
}
