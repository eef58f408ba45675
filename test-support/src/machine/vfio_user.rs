// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Accesses the card over vfio-user sockets with an independent client: the `vfio_user` crate, which Cloud Hypervisor
//! also uses.
//!
//! The client assumes that every request succeeds and never reads requests sent by the card. Therefore these tests
//! do not send requests that the server rejects. With all functions in one guest they do not move VF BARs, because the
//! card would program them by DMA to the guest's ECAM.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use arctic_gpu::report::Report;
use arctic_gpu::vfio_user::ecam::Ecam;
use arctic_gpu::vfio_user::{ServedCard, Server, Settings};
use arctic_gpu::{Topology, card_file};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use vfio_bindings::bindings::vfio::*;
use vfio_user::Client;
use vm_memory::{Bytes, FileOffset, MmapRegion, VolatileMemory};
use vmm_sys_util::eventfd::{EFD_NONBLOCK, EventFd};
use vmm_sys_util::tempdir::TempDir;
use vmm_sys_util::tempfile::TempFile;

use super::by_messages::{self, LateReplies};
use crate::machine::bus;
use crate::machine::transport::{Machine, RAM_BYTES, VFS, Visibility};
use crate::poll::TIMEOUT;

const CONFIG: u32 = VFIO_PCI_CONFIG_REGION_INDEX;
/// Offset of Message Control in the card's MSI capability.
const MSI_CONTROL: u16 = 0xae;
/// Guest address of the mapped memory.
const RAM: u64 = 0x10_0000;

/// Part of a BAR that the VMM has mapped.
struct Window {
    bar: u8,
    offset: u64,
    memory: MmapRegion,
}

/// A VMM's connection to one function.
struct Connection {
    client: Client,
    msi: EventFd,
    windows: Vec<Window>,
}

impl Connection {
    /// Connects, maps guest memory for DMA, and maps the mappable parts of BARs; `None` if the connection is refused.
    fn new(path: &Path, ram: &File) -> Option<Self> {
        let mut client = Client::new(path).ok()?;
        client.dma_map(0, RAM, RAM_BYTES, ram.as_raw_fd()).ok()?;
        let msi = EventFd::new(EFD_NONBLOCK).unwrap();
        assert_eq!(client.get_irq_info(VFIO_PCI_MSI_IRQ_INDEX).ok()?.count, 1);
        let mut windows = Vec::new();
        for bar in [0, 2] {
            let region = client.region(bar).unwrap();
            let Some(file) = &region.file_offset else { continue };
            // A region without sparse mmap areas is mappable as a whole.
            let mut areas: Vec<_> = region.sparse_areas.iter().map(|area| (area.offset, area.size)).collect();
            if areas.is_empty() {
                areas.push((0, region.size));
            }
            for (offset, size) in areas {
                let place = FileOffset::new(file.file().try_clone().unwrap(), file.start() + offset);
                let memory = MmapRegion::from_file(place, size as usize).unwrap();
                windows.push(Window { bar: bar as u8, offset, memory });
            }
        }
        Some(Connection { client, msi, windows })
    }

    /// Passes an eventfd to the server or revokes it, as VMMs do when their guest enables or disables MSI.
    fn arm(&mut self, on: bool) -> Result<(), vfio_user::Error> {
        let data = if on { VFIO_IRQ_SET_DATA_EVENTFD } else { VFIO_IRQ_SET_DATA_NONE };
        let fds = if on { &[self.msi.as_raw_fd()][..] } else { &[] };
        let flags = data | VFIO_IRQ_SET_ACTION_TRIGGER;
        self.client.set_irqs(VFIO_PCI_MSI_IRQ_INDEX, flags, 0, fds.len() as u32, fds)
    }
}

/// A card exported over vfio-user, and one VMM connection per function.
pub struct VfioUser {
    connections: Vec<Option<Connection>>,
    ram: Vec<File>,
    _servers: Vec<Server>,
    card: ServedCard,
    dir: TempDir,
    topology: Topology,
    /// Clients connect through a relay that strips the file descriptors of guest memory from DMA_MAP requests.
    by_messages: bool,
    /// Replies that these relays hold back.
    late: Arc<LateReplies>,
}

/// Returns the socket name of a function or of its relay.
fn socket(function: u8, relayed: bool) -> String {
    let name = if function == 0 { "pf".into() } else { format!("vf{function}") };
    if relayed { format!("{name}-relay.sock") } else { format!("{name}.sock") }
}

/// Returns a machine in which each function is in a separate guest.
pub fn split() -> Box<dyn Machine> {
    Box::new(VfioUser::new(Topology::Split))
}

/// Returns a machine in which all functions are in one guest, as with upstream QEMU.
pub fn together() -> Box<dyn Machine> {
    Box::new(VfioUser::new(Topology::Together))
}

/// Returns guest memory sealed against shrinking, which the card maps.
fn sealed() -> File {
    let file = File::from(memfd_create("guest", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap());
    file.set_len(RAM_BYTES).unwrap();
    fcntl_add_seals(&file, SealFlags::SHRINK).unwrap();
    file
}

/// Returns guest memory that the VMM could truncate at any time; the card accesses it by system calls.
fn plain() -> File {
    let file = TempFile::new_with_prefix("/dev/shm/arctic").or_else(|_| TempFile::new()).unwrap().into_file();
    file.set_len(RAM_BYTES).unwrap();
    file
}

/// Returns a machine in which no guest has the PF, and each VF is in a separate guest from the start.
pub fn provisioned() -> Box<dyn Machine> {
    Box::new(VfioUser::new(Topology::Provisioned))
}

/// Like [`split`], but guest memory has no file descriptor: the card accesses it by DMA_READ and DMA_WRITE messages.
pub fn by_messages() -> Box<dyn Machine> {
    Box::new(VfioUser::by_messages())
}

impl VfioUser {
    /// A machine as of [`by_messages`].
    pub fn by_messages() -> Self {
        Self::with(Topology::Split, true)
    }

    /// The replies to the card's accesses to guest memory that has no file descriptor.
    pub fn late_replies(&self) -> Arc<LateReplies> {
        self.late.clone()
    }

    fn new(topology: Topology) -> Self {
        Self::with(topology, false)
    }

    fn with(topology: Topology, by_messages: bool) -> Self {
        let card = ServedCard::new(card_file::load("small").unwrap(), VFS, topology, Ecam::default()).unwrap();
        let dir = TempDir::new().unwrap();
        let mut servers = Vec::new();
        for served in card.functions() {
            let path = dir.as_path().join(format!("{}.sock", served.name));
            servers.push(Server::start(&path, served.function, Settings::default()).unwrap());
        }
        let ram = match topology {
            Topology::Together => vec![plain()],
            _ => (0..=VFS).map(|_| sealed()).collect(),
        };
        let connections = (0..=VFS).map(|_| None).collect();
        let late = Arc::<LateReplies>::default();
        if by_messages {
            for (function, ram) in ram.iter().enumerate() {
                let [relayed, socket] =
                    [true, false].map(|relayed| dir.as_path().join(socket(function as u8, relayed)));
                by_messages::relay(relayed, socket, ram, RAM, &late);
            }
        }
        let mut machine = VfioUser { connections, ram, _servers: servers, card, dir, topology, by_messages, late };
        machine.power_on();
        machine
    }

    /// Returns whether each function is in a separate guest.
    fn apart(&self) -> bool {
        self.topology != Topology::Together
    }

    /// Connects the VMMs that are present at power-on.
    fn power_on(&mut self) {
        match self.topology {
            Topology::Provisioned => (1..=VFS).for_each(|vf| self.connect(vf)),
            _ => self.connect(0),
        }
    }

    /// Returns whether the function accepts a connection: a VF in a separate guest does so only while it is enabled.
    fn exists(&mut self, function: u8) -> bool {
        if function == 0 || self.topology != Topology::Split {
            return true;
        }
        let machine: &mut dyn Machine = self;
        let capability = bus::sriov(machine);
        machine.config16(0, capability + bus::SRIOV_CONTROL) & bus::VF_ENABLE != 0
            && (1..=u16::from(VFS)).contains(&machine.config16(0, capability + bus::NUM_VFS))
            && u16::from(function) <= machine.config16(0, capability + bus::NUM_VFS)
    }

    /// Connects to a function. Retries while the server still serves the previous client, as it accepts one at a time.
    fn connect(&mut self, function: u8) {
        let name = socket(function, self.by_messages);
        let path = self.dir.as_path().join(&name);
        let ram = &self.ram[if self.apart() { usize::from(function) } else { 0 }];
        let start = Instant::now();
        while self.connections[usize::from(function)].is_none() {
            self.connections[usize::from(function)] = Connection::new(&path, ram);
            assert!(start.elapsed() < TIMEOUT, "timed out connecting to {name}");
        }
    }

    /// Performs `access` on the function's client, which stays connected while a VF is disabled; `None` if the function
    /// has no client and does not exist.
    fn with_client<T>(
        &mut self,
        function: u8,
        access: impl Fn(&mut Client) -> Result<T, vfio_user::Error>,
    ) -> Option<T> {
        let slot = usize::from(function);
        if let Some(connection) = &mut self.connections[slot] {
            return Some(access(&mut connection.client).expect("a request failed"));
        }
        if !self.exists(function) {
            return None;
        }
        self.connect(function);
        let connection = self.connections[slot].as_mut()?;
        Some(access(&mut connection.client).expect("a request failed on a new connection"))
    }

    fn window(&mut self, function: u8, bar: u8, offset: u64, len: usize) -> Option<(&MmapRegion, usize)> {
        // Ensures that the function is connected.
        self.with_client(function, |_| Ok(()))?;
        let connection = self.connections[usize::from(function)].as_ref()?;
        let end = offset + len as u64;
        let inside = |window: &&Window| {
            window.bar == bar && window.offset <= offset && end <= window.offset + window.memory.size() as u64
        };
        let window = connection.windows.iter().find(inside)?;
        Some((&window.memory, (offset - window.offset) as usize))
    }

    fn ram_of(&self, function: u8) -> &File {
        &self.ram[if self.apart() { usize::from(function) } else { 0 }]
    }
}

impl Machine for VfioUser {
    fn visibility(&self) -> Visibility {
        let apart = self.apart();
        Visibility {
            vf_ids: apart,
            vf_bars: true,
            places_vf_bars: apart,
            one_memory: !apart,
            memory_by_messages: self.by_messages,
        }
    }

    fn read_config(&mut self, function: u8, offset: u16, data: &mut [u8]) {
        let len = data.len();
        let read = self.with_client(function, |client| {
            let mut bytes = vec![0; len];
            client.region_read(CONFIG, offset.into(), &mut bytes).map(|()| bytes)
        });
        data.copy_from_slice(&read.unwrap_or(vec![0xff; len]));
    }

    fn write_config(&mut self, function: u8, offset: u16, data: &[u8]) {
        if offset == MSI_CONTROL
            && let Some(connection) = &mut self.connections[usize::from(function)]
        {
            // An error here means a closed connection, which `with_client` handles below.
            let _ = connection.arm(data[0] & 1 != 0);
        }
        self.with_client(function, |client| client.region_write(CONFIG, offset.into(), data));
    }

    fn read_bar(&mut self, function: u8, bar: u8, offset: u64, data: &mut [u8]) {
        let len = data.len();
        let read = self.with_client(function, |client| {
            let mut bytes = vec![0; len];
            client.region_read(bar.into(), offset, &mut bytes).map(|()| bytes)
        });
        data.copy_from_slice(&read.unwrap_or(vec![0xff; len]));
    }

    fn write_bar(&mut self, function: u8, bar: u8, offset: u64, data: &[u8]) {
        self.with_client(function, |client| client.region_write(bar.into(), offset, data));
    }

    fn read_beside(&mut self, function: u8, bar: u8, offset: u64, data: &mut [u8]) -> bool {
        let Some((memory, at)) = self.window(function, bar, offset, data.len()) else { return false };
        memory.as_volatile_slice().read_slice(data, at).is_ok()
    }

    fn write_beside(&mut self, function: u8, bar: u8, offset: u64, data: &[u8]) -> bool {
        let Some((memory, at)) = self.window(function, bar, offset, data.len()) else { return false };
        memory.as_volatile_slice().write_slice(data, at).is_ok()
    }

    fn ram(&self) -> u64 {
        RAM
    }

    fn read_ram(&mut self, function: u8, address: u64, data: &mut [u8]) {
        self.ram_of(function).read_exact_at(data, address - RAM).unwrap();
    }

    fn write_ram(&mut self, function: u8, address: u64, data: &[u8]) {
        self.ram_of(function).write_all_at(data, address - RAM).unwrap();
    }

    fn take_msis(&mut self, function: u8) -> u64 {
        let connection = self.connections[usize::from(function)].as_ref();
        connection.map_or(0, |connection| connection.msi.read().unwrap_or(0))
    }

    fn reset(&mut self, function: u8) {
        self.with_client(function, Client::reset);
    }

    /// Disconnects all VMMs and connects new ones to the same card.
    fn power_cycle(&mut self) {
        self.connections.iter_mut().for_each(|connection| *connection = None);
        self.power_on();
    }

    fn report(&self) -> Report {
        self.card.card().report()
    }
}
