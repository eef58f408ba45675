//! A function on the PCI bus, as its client reaches it.

use std::fs::File;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use arctic_device_model::card::{Card, GGTT_WINDOW, GTTMMADR_BYTES};
use arctic_device_model::registers::REGISTER_BYTES;
use arctic_device_model::world::Function;
use arctic_sriov::function::{Event, Events, GTTMMADR_BAR, LMEM_BAR};
use serde::{Deserialize, Serialize};

use super::ecam::{BarAddresses, BarPlacer};
use super::port::{Config, Port};
use super::windows;
use super::{Arrangement, CONFIG_BYTES, GTTMMADR, LMEM, VECTORS};
use crate::vfio_user::{CONFIG_REGION, Device, Region};

/// What a client reaches through a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Face {
    /// All of it.
    Whole,
    /// Configuration space only: the function's BARs, memory and interrupts are those of another client.
    Bare,
}

/// Accesses of one function that its VMM could not do by itself.
#[derive(Default)]
pub struct Trapped {
    config: AtomicU64,
    register_reads: AtomicU64,
    register_writes: AtomicU64,
    doorbells: AtomicU64,
    ggtt: AtomicU64,
    local_memory: AtomicU64,
}

/// The counts of [`Trapped`] at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrappedCounts {
    /// Accesses to configuration space.
    pub config: u64,
    /// Register reads.
    pub register_reads: u64,
    /// Register writes.
    pub register_writes: u64,
    /// Accesses to the doorbell window.
    pub doorbells: u64,
    /// Accesses to the GGTT window.
    pub ggtt: u64,
    /// Accesses to the LMEM BAR.
    pub local_memory: u64,
}

impl TrappedCounts {
    /// The counts by name.
    pub fn named(&self) -> [(&'static str, u64); 6] {
        [
            ("config", self.config),
            ("register_reads", self.register_reads),
            ("register_writes", self.register_writes),
            ("doorbells", self.doorbells),
            ("ggtt", self.ggtt),
            ("local_memory", self.local_memory),
        ]
    }

    /// All of them together.
    pub fn total(&self) -> u64 {
        self.named().iter().map(|(_, count)| count).sum()
    }
}

impl Trapped {
    fn count(&self, region: u32, offset: u64, write: bool) {
        let counter = match region {
            CONFIG_REGION => &self.config,
            LMEM => &self.local_memory,
            GTTMMADR if offset >= GGTT_WINDOW => &self.ggtt,
            GTTMMADR if offset >= REGISTER_BYTES.into() => &self.doorbells,
            GTTMMADR if write => &self.register_writes,
            GTTMMADR => &self.register_reads,
            _ => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// The counts now.
    pub fn counts(&self) -> TrappedCounts {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        TrappedCounts {
            config: count(&self.config),
            register_reads: count(&self.register_reads),
            register_writes: count(&self.register_writes),
            doorbells: count(&self.doorbells),
            ggtt: count(&self.ggtt),
            local_memory: count(&self.local_memory),
        }
    }
}

/// What the functions of a card have in common.
pub struct Family {
    /// The card behind them.
    pub card: Arc<Card>,
    /// Who is whose neighbour in which guest.
    pub arrangement: Arrangement,
    /// All functions that a client can connect to; they hold the family.
    pub members: OnceLock<Vec<Weak<CardFunction>>>,
    /// Places VF BARs, where VFs live in the PF's guest.
    pub placer: Option<BarPlacer>,
}

impl Family {
    fn members(&self) -> impl Iterator<Item = Arc<CardFunction>> {
        self.members.get().into_iter().flatten().filter_map(Weak::upgrade)
    }

    fn vfs(&self) -> impl Iterator<Item = Arc<CardFunction>> {
        self.members().filter(|member| member.number.is_vf())
    }

    /// VF Enable has been set: the card knows its VFs before anybody can reach them.
    pub fn enable_vfs(&self, count: u8) {
        log::info!("VFs 1 to {count} are enabled");
        self.card.enable_vfs(count);
        for vf in self.vfs().filter(|vf| vf.number.0 <= count) {
            vf.update(|config| config.set_enabled(true));
        }
    }

    /// VF Enable has been cleared: nobody reaches a VF any more, and then the card forgets them. A VF in a guest of its
    /// own is gone from there for good, as a device pulled out: its client is hung up on.
    fn disable_vfs(&self) {
        log::info!("VFs are disabled");
        for vf in self.vfs() {
            vf.update(|config| config.set_enabled(false));
            if self.arrangement == Arrangement::Split
                && vf.face == Face::Whole
                && let Some(client) = vf.port.memory.client()
            {
                client.hang_up();
            }
        }
        self.card.disable_vfs();
    }

    /// The BARs of VFs answer, or no longer.
    pub fn set_vf_memory_space(&self, on: bool) {
        self.vfs().for_each(|vf| vf.update(|config| config.set_memory_space(on)));
    }
}

/// A function on the PCI bus.
pub struct CardFunction {
    /// Its number on the card.
    pub number: Function,
    /// What its client reaches.
    pub face: Face,
    /// Its way to the world.
    pub port: Arc<Port>,
    /// Accesses so far.
    pub trapped: Trapped,
    family: Arc<Family>,
    regions: Vec<Region>,
    connected: AtomicBool,
}

impl CardFunction {
    /// A function whose client may map parts of the two files, laid out like the BARs; `local_memory` is the size of
    /// its LMEM BAR.
    pub fn whole(
        family: &Arc<Family>,
        number: Function,
        port: Arc<Port>,
        gttmmadr: Option<File>,
        local: File,
        local_memory: u64,
    ) -> Arc<Self> {
        let mut function = Self::new(family, number, Face::Whole, port);
        function.regions[GTTMMADR as usize] = Region { size: GTTMMADR_BYTES, file: gttmmadr };
        function.regions[LMEM as usize] = Region { size: local_memory, file: Some(local) };
        Arc::new(function)
    }

    /// A function that shows its configuration space and nothing else.
    pub fn bare(family: &Arc<Family>, number: Function, port: Arc<Port>) -> Arc<Self> {
        Arc::new(Self::new(family, number, Face::Bare, port))
    }

    fn new(family: &Arc<Family>, number: Function, face: Face, port: Arc<Port>) -> Self {
        let mut regions: Vec<Region> = (0..=CONFIG_REGION).map(|_| Region::default()).collect();
        regions[CONFIG_REGION as usize].size = CONFIG_BYTES;
        let family = family.clone();
        CardFunction {
            number,
            face,
            port,
            family,
            regions,
            trapped: Trapped::default(),
            connected: AtomicBool::new(false),
        }
    }

    /// Whether a client is connected.
    pub fn connected(&self) -> bool {
        self.connected.load(Ordering::Acquire)
    }

    /// Whether the function exists.
    pub fn enabled(&self) -> bool {
        self.port.config().enabled()
    }

    /// Whether accesses to BARs through this face are answered.
    fn decoding(&self) -> bool {
        self.face == Face::Whole && self.port.decoding()
    }

    /// The name of the function's socket, without its ending.
    pub fn name(&self) -> String {
        match (self.number, self.face) {
            (Function::PF, _) => "pf".into(),
            (Function(number), Face::Whole) => format!("vf{number}"),
            (Function(number), Face::Bare) => format!("vf{number}-face"),
        }
    }

    /// Changes configuration space and carries out what that sets in motion.
    pub fn update(&self, change: impl FnOnce(&mut Config) -> Events) {
        let mut place = false;
        for event in self.port.update(change) {
            match event {
                Event::FunctionLevelReset if self.number.is_vf() => self.family.card.reset_function(self.number),
                Event::FunctionLevelReset => self.family.card.reset(),
                Event::VfEnable { count } => {
                    self.family.enable_vfs(count.try_into().unwrap_or(u8::MAX));
                    place = true;
                }
                Event::VfDisable => self.family.disable_vfs(),
                Event::VfMemorySpace(on) => self.family.set_vf_memory_space(on),
                Event::BusMaster(_) | Event::VfBarMoved(_) => place = true,
                // The VMM routes BARs and composes messages from its own copy of configuration space.
                Event::MemorySpace(_) | Event::PowerState(_) | Event::BarMoved { .. } | Event::Msi(_) => {}
                // Sent by the port.
                Event::MsiUnmasked(_) => {}
            }
        }
        if place && !self.number.is_vf() {
            self.place_vf_bars();
        }
    }

    /// Empties the function's memories.
    fn empty(&self) {
        for region in &self.regions {
            if let Some(file) = &region.file
                && let Err(error) = windows::empty(file, region.size)
            {
                log::warn!("a memory of the card could not be emptied: {error}");
            }
        }
    }

    /// Bytes of the host's memory that the function's files take.
    pub fn allocated(&self) -> u64 {
        self.regions.iter().filter_map(|region| region.file.as_ref()).map(windows::allocated).sum()
    }

    /// Has the BARs of the VFs in the PF's guest placed where the PF's capability says, as soon as the PF may write.
    fn place_vf_bars(&self) {
        let Some(placer) = &self.family.placer else { return };
        let config = self.port.config();
        let Config::Physical(pf) = &*config else { return };
        let mut wanted: Vec<BarAddresses> = Vec::new();
        if pf.bus_master() && pf.vf_bars().all(|bar| bar.address != 0) {
            let bars = |vf| Some([pf.vf_bar_address(vf, GTTMMADR_BAR)?, pf.vf_bar_address(vf, LMEM_BAR)?]);
            wanted.extend((1..=pf.total_vfs()).map_while(bars));
        }
        drop(config);
        placer.place(wanted);
    }
}

impl Device for CardFunction {
    fn regions(&self) -> &[Region] {
        &self.regions
    }

    /// Registers and doorbells are never mapped. Of local memory, the VMM of a VF in another guest gets as much as the VF
    /// has: pages that a guest touches are the host's, and it could touch all of a larger window.
    fn areas(&self, region: u32) -> Vec<Range<u64>> {
        let Some(Region { file: Some(_), size }) = self.regions.get(region as usize) else { return Vec::new() };
        let alone = self.number.is_vf() && !matches!(self.family.arrangement, Arrangement::Together(_));
        let area = match region {
            GTTMMADR => GGTT_WINDOW..GTTMMADR_BYTES,
            _ if alone => 0..self.family.card.gt().memory.quota(self.number).min(*size),
            _ => 0..*size,
        };
        if area.is_empty() { Vec::new() } else { vec![area] }
    }

    fn vectors(&self) -> [u32; 3] {
        VECTORS
    }

    fn read(&self, region: u32, offset: u64, data: &mut [u8]) {
        self.trapped.count(region, offset, false);
        let card = &self.family.card;
        match region {
            CONFIG_REGION => self.port.config().read(offset, data),
            // Nobody answers: the bus gives all ones.
            _ if !self.decoding() => data.fill(0xff),
            GTTMMADR => card.read(self.number, offset, data),
            LMEM => card.read_local(self.number, offset, data),
            _ => data.fill(0xff),
        }
        log::trace!("{}: read {region}:{offset:#x} = {data:02x?}", self.number.0);
    }

    fn write(&self, region: u32, offset: u64, data: &[u8]) {
        log::trace!("{}: write {region}:{offset:#x} = {data:02x?}", self.number.0);
        self.trapped.count(region, offset, true);
        let card = &self.family.card;
        match region {
            CONFIG_REGION => self.update(|config| config.write(offset, data)),
            _ if !self.decoding() => {}
            GTTMMADR => card.write(self.number, offset, data),
            LMEM => card.write_local(self.number, offset, data),
            _ => {}
        }
    }

    /// A VF in a guest of its own is served while it exists.
    fn admit(&self) -> Result<(), String> {
        if self.number.is_vf() && self.face == Face::Whole && self.family.arrangement == Arrangement::Split {
            let number = self.number.0;
            if !self.enabled() {
                let how = "start its guest after the PF's guest has enabled it (sriov_numvfs)";
                return Err(format!("VF {number} does not exist yet: {how}"));
            }
        }
        self.connected.store(true, Ordering::Release);
        Ok(())
    }

    fn reset(&self) {
        self.update(Config::reset);
        match self.number {
            Function::PF => {
                self.family.card.reset();
                if let Some(placer) = &self.family.placer {
                    placer.forget();
                }
            }
            vf => self.family.card.reset_function(vf),
        }
    }

    /// The function's machine is gone. With the PF's, the card is switched off: its memories are empty, the host has
    /// their pages back. A VF goes through an FLR, in which the PF's driver (or the card in its place) clears what it had.
    fn disconnected(&self) {
        self.connected.store(false, Ordering::Release);
        if self.face == Face::Bare {
            return;
        }
        self.reset();
        if self.number == Function::PF {
            self.family.members().for_each(|member| member.empty());
        }
    }
}
