//! The card as PCI devices: `sriov`'s functions in front of the device model, its memories in files, its ports to the
//! world.

pub mod ecam;
mod function;
mod port;
pub mod status;
mod windows;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use arctic_device_model::card::{Card, Workers};
use arctic_device_model::memory::{Memories, VfMemory};
use arctic_device_model::profile::CardProfile;
use arctic_device_model::profile::provision::GgttAccess;
use arctic_device_model::world::{Function, HostClock};
use arctic_sriov::function::{GTTMMADR_BAR, LMEM_BAR, PciFunction};
use arctic_sriov::header::Identity;
use arctic_sriov::sriov_capability::SriovLayout;
use arctic_sriov::virtual_function::VfFace;

use self::ecam::{BarPlacer, Ecam};
pub use self::function::TrappedCounts;
use self::function::{CardFunction, Family};
use self::port::{Config, Port, Ports};
use crate::report::Report;
use crate::vfio_user;

/// Bytes of a PCI Express function's configuration space.
const CONFIG_BYTES: u64 = 4096;
/// Vectors of INTx, MSI and MSI-X: the card has one MSI.
const VECTORS: [u32; 3] = [0, 1, 0];

const GTTMMADR: u32 = GTTMMADR_BAR as u32;
const LMEM: u32 = LMEM_BAR as u32;

/// Which guests have which functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrangement {
    /// VFs are functions beside the PF, in the PF's guest; its window onto configuration space is here.
    Together(Ecam),
    /// The PF's guest sees the bare configuration space of its VFs; each VF works in a guest of its own.
    Split,
    /// No guest has the PF: VFs exist from the start, shared out as the card file says.
    Provisioned,
}

impl Arrangement {
    /// The arrangement in a word.
    pub fn name(self) -> &'static str {
        match self {
            Arrangement::Together(_) => "together",
            Arrangement::Split => "split",
            Arrangement::Provisioned => "provisioned",
        }
    }
}

/// A function to be served, by the name of its socket (without ending).
pub struct Served {
    /// "pf", "vf1", "vf1-face" and so on.
    pub name: String,
    /// The function.
    pub function: vfio_user::Function,
}

/// A card with its threads, ready to be served.
pub struct VirtualCard {
    profile: CardProfile,
    family: Arc<Family>,
    members: Vec<Arc<CardFunction>>,
    started: Instant,
    _workers: Workers,
}

impl VirtualCard {
    /// The card as hardware.
    pub fn model(&self) -> &Card {
        &self.family.card
    }

    /// Puts a card together for a VMM that has `vfs` VF functions to give; the card offers as many VFs, or fewer if its
    /// file says so, and no SR-IOV with none. Its memories are sparse and cost nothing until they are used.
    pub fn new(profile: CardProfile, vfs: u8, arrangement: Arrangement) -> Result<Self> {
        let vfs = vfs.min(profile.total_vfs);
        let provisioned = arrangement == Arrangement::Provisioned;
        // Before anything is made: the card file may ask for more than there is.
        let quotas = if provisioned { profile.quotas(vfs)? } else { Vec::new() };
        let identity = Identity { revision: profile.revision, ..Identity::FLEX_170 };
        let vf_bar = profile.vf_local_memory_bar();
        let virtual_function = || PciFunction::virtual_function(&identity, vf_bar);

        let layout = SriovLayout { total_vfs: vfs.into(), vf_lmem_sizes: vec![vf_bar], vf_lmem_bytes: vf_bar };
        let pf = PciFunction::physical(&identity, profile.local_memory, (vfs != 0).then_some(&layout))?;
        let mut ports = vec![Port::new(Config::Physical(pf))];
        for _ in 1..=vfs {
            let function = virtual_function()?;
            ports.push(Port::new(match arrangement {
                Arrangement::Together(_) => Config::Face(VfFace::new(function)),
                Arrangement::Split | Arrangement::Provisioned => Config::alone(function),
            }));
        }

        let no_room = "the host has no room for the card's memories";
        let (local_file, local) = windows::local_memory(profile.local_memory).context(no_room)?;
        let (ggtt_file, ggtt) = windows::global_table().context(no_room)?;
        let mut vf_files = Vec::new();
        let mut vf_memories = Vec::new();
        for _ in 1..=vfs {
            let (file, local) = windows::local_memory(vf_bar).context(no_room)?;
            let (table, ggtt) = match profile.ggtt {
                GgttAccess::Mapped => windows::global_table().map(|(file, region)| (Some(file), Some(region))),
                GgttAccess::Trapped => Ok((None, None)),
            }
            .context(no_room)?;
            vf_files.push((table, file));
            vf_memories.push(VfMemory { local, ggtt });
        }

        let world = Arc::new(Ports(ports.clone()));
        let memories = Memories { local, ggtt, vfs: vf_memories };
        let card = Card::power_on(&profile, memories, world.clone(), world, Arc::new(HostClock::default()));
        let threads = thread::available_parallelism().map_or(1, |cores| cores.get().min(4));
        let workers = Workers::start(card.clone(), threads).context("the card's threads cannot be started")?;

        let placer = match arrangement {
            Arrangement::Together(ecam) if vfs != 0 => {
                let placer = BarPlacer::start(ecam, vfs, ports[0].memory.clone());
                Some(placer.context("the card's threads cannot be started")?)
            }
            _ => None,
        };
        let family = Arc::new(Family { card, arrangement, members: OnceLock::new(), placer });
        let mut ports = ports.into_iter();
        let mut members = Vec::new();
        if let Some(port) = ports.next() {
            let size = profile.local_memory;
            members.push(CardFunction::whole(&family, Function::PF, port, Some(ggtt_file), local_file, size));
        }
        for ((number, port), (table, file)) in (1..).map(Function).zip(ports).zip(vf_files) {
            members.push(CardFunction::whole(&family, number, port, table, file, vf_bar));
            if arrangement == Arrangement::Split {
                let port = Port::new(Config::Face(VfFace::new(virtual_function()?)));
                members.push(CardFunction::bare(&family, number, port));
            }
        }
        // Set once, here.
        let _ = family.members.set(members.iter().map(Arc::downgrade).collect());
        if provisioned {
            let refused = |error| anyhow!("the card's GuC refuses to share it out as [provision] says ({error:?})");
            family.card.provision(&quotas).map_err(refused)?;
            family.enable_vfs(vfs);
            family.set_vf_memory_space(true);
        }
        Ok(VirtualCard { profile, family, members, started: Instant::now(), _workers: workers })
    }

    /// The functions to serve: the PF first (unless the program plays its part), then by number.
    pub fn functions(&self) -> Vec<Served> {
        let provisioned = self.family.arrangement == Arrangement::Provisioned;
        let served = |member: &Arc<CardFunction>| Served {
            name: member.name(),
            function: vfio_user::Function {
                device: member.clone(),
                memory: member.port.memory.clone(),
                vectors: member.port.vectors.clone(),
            },
        };
        self.members.iter().filter(|member| member.number.is_vf() || !provisioned).map(served).collect()
    }

    /// VFs that the card offers.
    pub fn total_vfs(&self) -> u8 {
        self.members.iter().map(|member| member.number.0).max().unwrap_or(0)
    }

    /// What has been touched so far.
    pub fn report(&self) -> Report {
        let functions: BTreeMap<_, _> =
            self.members.iter().map(|member| (member.name(), member.trapped.counts())).collect();
        let model = arctic_device_model::report::Report::of(&self.family.card);
        Report::new(&self.profile.name, model, functions)
    }
}

#[cfg(test)]
mod tests;
