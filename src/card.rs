//! The card as a PCI device: `sriov`'s functions in front of the device model, its memories in files, its ports to
//! the world.

use std::fs::File;
use std::io;
use std::os::fd::FromRawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::{Context, Result};
use arctic_device_model::card::{Card, GGTT_WINDOW, GTTMMADR_BYTES, Workers};
use arctic_device_model::memory::Memories;
use arctic_device_model::memory::ggtt::GGTT_BYTES;
use arctic_device_model::memory::local::SharedRegion;
use arctic_device_model::profile::CardProfile;
use arctic_device_model::world::{Dma, DmaView, Function, HostClock, InterruptSink, Unconnected};
use arctic_sriov::function::{Event, Events, GTTMMADR_BAR, LMEM_BAR, PciFunction};
use arctic_sriov::header::Identity;
use vm_memory::Bytes;
use vmm_sys_util::fallocate::{FallocateMode, fallocate};

use crate::dma::GuestMemory;
use crate::report::Report;
use crate::vfio_user::{self, Backing, CONFIG_REGION, Device, Region, Vectors};

/// Bytes of a PCI Express function's configuration space.
const CONFIG_BYTES: u64 = 4096;
/// Vectors of INTx, MSI and MSI-X: the card has one MSI.
const VECTORS: [u32; 3] = [0, 1, 0];

const GTTMMADR: u32 = GTTMMADR_BAR as u32;
const LMEM: u32 = LMEM_BAR as u32;

/// One function's way out of the card: its guest's memory and its interrupts, as configuration space permits them.
struct Port {
    config: Mutex<PciFunction>,
    memory: Arc<GuestMemory>,
    vectors: Arc<Vectors>,
    bus_master: AtomicBool,
}

impl Port {
    fn config(&self) -> MutexGuard<'_, PciFunction> {
        self.config.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The ports of all functions.
struct Ports(Vec<Arc<Port>>);

impl Dma for Ports {
    fn view(&self, function: Function) -> Arc<dyn DmaView> {
        match self.0.get(usize::from(function.0)) {
            Some(port) if port.bus_master.load(Ordering::Acquire) => port.memory.view(),
            _ => Arc::new(Unconnected),
        }
    }
}

impl InterruptSink for Ports {
    fn raise(&self, function: Function, vector: u16) {
        let Some(port) = self.0.get(usize::from(function.0)) else { return };
        // The VMM composes the message itself; what counts here is whether one may be sent now.
        let message = port.config().raise_msi(vector);
        if message.is_some() {
            port.vectors.raise_msi(vector);
        }
    }
}

/// Accesses that reached the program as messages, beside those to GTTMMADR, which the card counts.
#[derive(Default)]
struct Trapped {
    config: AtomicU64,
    local_memory: AtomicU64,
}

/// A card with its threads, ready to be served.
pub struct VirtualCard {
    profile: CardProfile,
    card: Arc<Card>,
    function: Arc<PhysicalFunction>,
    _workers: Workers,
}

impl VirtualCard {
    /// Puts a card together; its memories are sparse and cost nothing until they are used.
    pub fn new(profile: CardProfile) -> Result<Self> {
        let identity = Identity { revision: profile.revision, ..Identity::FLEX_170 };
        let port = Arc::new(Port {
            config: Mutex::new(PciFunction::physical(&identity, profile.local_memory, None)?),
            memory: Arc::default(),
            vectors: Arc::new(Vectors::new(VECTORS)),
            bus_master: AtomicBool::new(false),
        });
        let ports = Arc::new(Ports(vec![port.clone()]));

        let local = memfd(c"arctic-local-memory", profile.local_memory)
            .and_then(|file| Ok((SharedRegion::from_file(file.try_clone()?, to_usize(profile.local_memory)?)?, file)));
        let (local, local_file) = local.context("the host has no room for the card's local memory")?;
        // The file is laid out like the BAR, so that one file and one offset serve the VMM; the lower half stays empty.
        let gttmmadr = memfd(c"arctic-gttmmadr", GTTMMADR_BYTES).context("the host has no room for the card's GGTT")?;
        let ggtt = SharedRegion::from_file_at(gttmmadr.try_clone()?, GGTT_WINDOW, GGTT_BYTES)
            .context("the host has no room for the card's GGTT")?;

        let memories = Memories { local, ggtt, vfs: Vec::new() };
        let card = Card::power_on(&profile, memories, ports.clone(), ports, Arc::new(HostClock::default()));
        let threads = thread::available_parallelism().map_or(1, |cores| cores.get().min(4));
        let workers = Workers::start(card.clone(), threads).context("the card's threads cannot be started")?;

        let mut regions: Vec<Region> = (0..=CONFIG_REGION).map(|_| Region::default()).collect();
        regions[CONFIG_REGION as usize].size = CONFIG_BYTES;
        let window = GGTT_WINDOW..GTTMMADR_BYTES;
        let backing = Backing { file: gttmmadr, areas: vec![window] };
        regions[GTTMMADR as usize] = Region { size: GTTMMADR_BYTES, backing: Some(backing) };
        let backing = Backing { file: local_file, areas: Vec::new() };
        regions[LMEM as usize] = Region { size: profile.local_memory, backing: Some(backing) };

        let function = Arc::new(PhysicalFunction {
            number: Function::PF,
            port,
            card: card.clone(),
            regions,
            decoding: AtomicBool::new(false),
            trapped: Trapped::default(),
        });
        Ok(VirtualCard { profile, card, function, _workers: workers })
    }

    /// The physical function, to be served.
    pub fn physical_function(&self) -> vfio_user::Function {
        vfio_user::Function {
            device: self.function.clone(),
            memory: self.function.port.memory.clone(),
            vectors: self.function.port.vectors.clone(),
        }
    }

    /// What has been touched so far.
    pub fn report(&self) -> Report {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let own = &self.function.trapped;
        let regions = [("config", count(&own.config)), ("local_memory", count(&own.local_memory))];
        Report::new(&self.profile.name, arctic_device_model::report::Report::of(&self.card), &regions)
    }
}

/// A function on the PCI bus.
struct PhysicalFunction {
    number: Function,
    port: Arc<Port>,
    card: Arc<Card>,
    regions: Vec<Region>,
    /// The BARs answer: memory space is enabled and the function is in D0.
    decoding: AtomicBool,
    trapped: Trapped,
}

impl PhysicalFunction {
    /// Carries out what an access to configuration space has set in motion.
    fn follow(&self, events: Events) {
        for event in events {
            match event {
                Event::FunctionLevelReset => self.card.reset(),
                Event::MsiUnmasked(vectors) => {
                    (0..16).filter(|n| vectors >> n & 1 != 0).for_each(|n| self.port.vectors.raise_msi(n));
                }
                // The VMM routes BARs and composes messages from its own copy of configuration space.
                Event::MemorySpace(_) | Event::PowerState(_) | Event::BarMoved { .. } | Event::Msi(_) => {}
                Event::BusMaster(on) => self.port.bus_master.store(on, Ordering::Release),
                // The function offers no virtual ones yet.
                Event::VfEnable { .. } | Event::VfDisable | Event::VfMemorySpace(_) | Event::VfBarMoved(_) => {}
            }
        }
    }

    fn update(&self, change: impl FnOnce(&mut PciFunction) -> Events) {
        let mut config = self.port.config();
        let events = change(&mut config);
        self.decoding.store(config.decoded(GTTMMADR_BAR).is_some(), Ordering::Release);
        drop(config);
        self.follow(events);
    }
}

impl Device for PhysicalFunction {
    fn regions(&self) -> &[Region] {
        &self.regions
    }

    fn vectors(&self) -> [u32; 3] {
        VECTORS
    }

    fn read(&self, region: u32, offset: u64, data: &mut [u8]) {
        match region {
            CONFIG_REGION => {
                self.trapped.config.fetch_add(1, Ordering::Relaxed);
                self.port.config().read_config(offset, data);
            }
            // Nobody answers: the bus gives all ones.
            _ if !self.decoding.load(Ordering::Acquire) => data.fill(0xff),
            GTTMMADR => self.card.read(self.number, offset, data),
            LMEM => {
                self.trapped.local_memory.fetch_add(1, Ordering::Relaxed);
                let bytes = self.card.gt().memory.local().slice(offset, data.len());
                if bytes.and_then(|bytes| bytes.read_slice(data, 0).ok()).is_none() {
                    data.fill(0xff);
                }
            }
            _ => data.fill(0xff),
        }
        log::trace!("read {region}:{offset:#x} = {data:02x?}");
    }

    fn write(&self, region: u32, offset: u64, data: &[u8]) {
        log::trace!("write {region}:{offset:#x} = {data:02x?}");
        match region {
            CONFIG_REGION => {
                self.trapped.config.fetch_add(1, Ordering::Relaxed);
                self.update(|config| config.write_config(offset, data));
            }
            _ if !self.decoding.load(Ordering::Acquire) => {}
            GTTMMADR => self.card.write(self.number, offset, data),
            LMEM => {
                self.trapped.local_memory.fetch_add(1, Ordering::Relaxed);
                if let Some(bytes) = self.card.gt().memory.local().slice(offset, data.len()) {
                    // The server has checked the access against the region's size, which is the slice's.
                    let _ = bytes.write_slice(data, 0);
                }
            }
            _ => {}
        }
    }

    fn reset(&self) {
        self.update(PciFunction::reset);
        self.card.reset();
    }

    /// The machine that the card was in is gone: it is switched off, its memories are empty, the host has its pages back.
    fn disconnected(&self) {
        self.reset();
        for region in &self.regions {
            if let Some(backing) = &region.backing
                && let Err(error) = fallocate(&backing.file, FallocateMode::PunchHole, true, 0, region.size)
            {
                log::warn!("a memory of the card could not be emptied: {error}");
            }
        }
    }
}

/// A sparse file in memory.
fn memfd(name: &std::ffi::CStr, bytes: u64) -> io::Result<File> {
    // SAFETY: `name` ends with a NUL byte and outlives the call.
    let fd = unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is fresh and belongs to nobody else.
    let file = unsafe { File::from_raw_fd(fd) };
    file.set_len(bytes)?;
    Ok(file)
}

fn to_usize(bytes: u64) -> io::Result<usize> {
    usize::try_from(bytes).map_err(io::Error::other)
}

#[cfg(test)]
mod tests;
