// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! One client's session: the version exchange, then a loop that reads a message, executes it and replies.
#![warn(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arctic_sriov::number;
use serde::{Deserialize, Serialize};
use vfio_bindings::bindings::vfio::*;

use super::channel::{Channel, SEND_TIMEOUT};
use super::client_dma::ClientDma;
use super::connection::{Closed, for_a_time};
use super::memory::GuestMemory;
use super::wire::*;
use super::{CONFIG_REGION, Device, Errno, Vectors};
use crate::pci::{BarMapping, MsiSink};

/// Major and minor version of the protocol: 0.0 is the only one supported by QEMU 11.1.
pub const PROTOCOL_VERSION: (u16, u16) = (0, 0);

#[derive(Serialize, Deserialize)]
struct VersionData {
    #[serde(default)]
    capabilities: Capabilities,
}

/// The capabilities exchanged by client and server; absent fields have the protocol's defaults.
#[derive(Serialize, Deserialize)]
#[serde(default)]
struct Capabilities {
    max_msg_fds: u32,
    max_data_xfer_size: u64,
    max_dma_maps: u64,
    pgsizes: u64,
}

impl Default for Capabilities {
    fn default() -> Self {
        Capabilities {
            max_msg_fds: number::count(MAX_FDS),
            max_data_xfer_size: MAX_DATA as u64,
            max_dma_maps: MAX_DMA_MAPS as u64,
            pgsizes: 4096,
        }
    }
}

/// The session of a function's client.
pub struct Session<'s> {
    channel: Channel<'s>,
    device: &'s dyn Device,
    memory: &'s GuestMemory,
    vectors: &'s Vectors,
    client: Option<Arc<ClientDma>>,
    out: Builder,
}

impl<'s> Session<'s> {
    /// Starts a session on a fresh connection.
    pub fn new(channel: Channel<'s>, device: &'s dyn Device, memory: &'s GuestMemory, vectors: &'s Vectors) -> Self {
        Session { channel, device, memory, vectors, client: None, out: Builder::default() }
    }

    /// Serves the client until it disconnects, violates the protocol irrecoverably, or `stop` is set.
    pub fn run(&mut self, stop: &AtomicBool) -> Closed {
        let mut body = Vec::new();
        let mut files = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            files.clear();
            if let Err(closed) = self.serve_one(&mut body, &mut files) {
                return closed;
            }
        }
        Closed::Stopped
    }

    /// Processes one message. `body` and `files` are buffers for its contents.
    pub fn serve_one(&mut self, body: &mut Vec<u8>, files: &mut Vec<File>) -> Result<(), Closed> {
        let Some(header) = self.channel.receive(body, files)? else { return Ok(()) };
        if header.body_len().is_none() {
            // The start of the next message is unknown: reply with an error and end the connection.
            self.reply(&header, Err(Errno::EMSGSIZE))?;
            return Err(Closed::Broken(std::io::Error::from_raw_os_error(libc::EMSGSIZE)));
        }
        self.out.clear();
        let raised = self.vectors.raised();
        let result = self.execute(&header, body, std::mem::take(files));
        if self.vectors.raised() != raised {
            // Ordering as on a bus: an interrupt caused by an access is signalled before the access completes.
            self.vectors.settle();
        }
        self.reply(&header, result)?;
        self.channel.inbox().executed();
        Ok(())
    }

    fn reply(&mut self, header: &Header, result: Result<Option<RawFd>, Errno>) -> Result<(), Closed> {
        if let Err(errno) = result {
            log::debug!("command {} failed with errno {}", header.command, errno.0);
        }
        if header.no_reply() {
            return Ok(());
        }
        let mut answer = Header { flags: TYPE_REPLY, error: 0, ..*header };
        let fd = match result {
            Ok(fd) => fd,
            Err(errno) => {
                self.out.clear();
                answer.flags |= FLAG_ERROR;
                answer.error = errno.0.unsigned_abs();
                None
            }
        };
        self.channel.sender().send(self.out.finish(answer), fd, &for_a_time(SEND_TIMEOUT)).map_err(Closed::Broken)
    }

    /// Executes one command. Writes the reply's fields to `out`. Returns the descriptor to attach to the reply, if any.
    fn execute(&mut self, header: &Header, body: &[u8], files: Vec<File>) -> Result<Option<RawFd>, Errno> {
        if self.client.is_none() && header.command != command::VERSION {
            return Err(Errno::EINVAL);
        }
        match header.command {
            command::VERSION => self.version(body)?,
            command::DMA_MAP => self.dma_map(body, files)?,
            command::DMA_UNMAP => self.dma_unmap(body)?,
            command::DEVICE_GET_INFO => self.device_info(body)?,
            command::DEVICE_GET_REGION_INFO => return self.region_info(body),
            command::DEVICE_GET_IRQ_INFO => self.irq_info(body)?,
            command::DEVICE_SET_IRQS => self.vectors.set(body, files)?,
            command::REGION_READ => self.region_read(body)?,
            command::REGION_WRITE => self.region_write(body)?,
            command::DEVICE_RESET => self.device.reset(),
            _ => return Err(Errno::ENOTSUP),
        }
        Ok(None)
    }

    fn version(&mut self, body: &[u8]) -> Result<(), Errno> {
        let (version, text) = parse::<Version>(body)?;
        if self.client.is_some() || version.major != PROTOCOL_VERSION.0 {
            return Err(Errno::EINVAL);
        }
        let text = text.strip_suffix(b"\0").unwrap_or(text);
        let theirs = match text {
            [] => Capabilities::default(),
            text => serde_json::from_slice::<VersionData>(text).map_err(|_| Errno::EINVAL)?.capabilities,
        };
        let max_data = usize::try_from(theirs.max_data_xfer_size).unwrap_or(usize::MAX).min(MAX_DATA);
        if max_data < LEAST_DATA {
            let name = self.device.pci().name();
            log::warn!("{name}: rejected a client with max_data_xfer_size {max_data}, below {LEAST_DATA}");
            return Err(Errno::EINVAL);
        }
        let ledger = self.memory.ledger().clone();
        let (sender, inbox) = (self.channel.sender(), self.channel.inbox().clone());
        let client = Arc::new(ClientDma::new(sender, inbox, max_data, ledger, self.memory.function));
        self.memory.connect(client.clone());
        self.client = Some(client);
        self.channel.negotiated();

        // QEMU refuses a larger number than its own.
        let max_dma_maps = u64::from(self.memory.most_sections()).min(MAX_DMA_MAPS as u64);
        let ours = VersionData { capabilities: Capabilities { max_dma_maps, ..Capabilities::default() } };
        let json = serde_json::to_vec(&ours).map_err(|_| Errno::ENOMEM)?;
        let version = Version { major: PROTOCOL_VERSION.0.into(), minor: PROTOCOL_VERSION.1.into() };
        self.out.put(&version).bytes(&json).bytes(b"\0");
        Ok(())
    }

    fn dma_map(&mut self, body: &[u8], files: Vec<File>) -> Result<(), Errno> {
        let (DmaMap { flags, offset, address, size, .. }, _) = parse(body)?;
        let mut files = files.into_iter();
        let file = files.next();
        if files.next().is_some() {
            return Err(Errno::EINVAL);
        }
        self.memory.map(address.get(), size.get(), flags.get(), offset.get(), file)
    }

    fn dma_unmap(&mut self, body: &[u8]) -> Result<(), Errno> {
        let (unmap, _) = parse::<DmaUnmap>(body)?;
        match unmap.flags.get() {
            0 => self.memory.unmap(Some((unmap.address.get(), unmap.size.get())))?,
            VFIO_DMA_UNMAP_FLAG_ALL => self.memory.unmap(None)?,
            _ => return Err(Errno::ENOTSUP),
        }
        self.out.put(unmap);
        Ok(())
    }

    fn device_info(&mut self, body: &[u8]) -> Result<(), Errno> {
        parse::<DeviceQuery>(body)?;
        self.out.put(&DeviceInfo {
            argsz: number::count(size_of::<DeviceInfo>()).into(),
            flags: (VFIO_DEVICE_FLAGS_PCI | VFIO_DEVICE_FLAGS_RESET).into(),
            regions: REGIONS.into(),
            irqs: number::count(IRQ_INDEXES).into(),
        });
        Ok(())
    }

    fn region_info(&mut self, body: &[u8]) -> Result<Option<RawFd>, Errno> {
        let (query, _) = parse::<IndexQuery>(body)?;
        let index = query.index.get();
        if index >= REGIONS {
            return Err(Errno::EINVAL);
        }
        let mappings = u8::try_from(index).map_or_else(|_| Vec::new(), |bar| self.device.pci().mappings(bar));
        let areas: Vec<_> =
            mappings.iter().map(|BarMapping { offset, len, .. }| *offset..offset.saturating_add(*len)).collect();
        let size = self.region_size(index);
        let complete = put_region_info(&mut self.out, index, size, &areas, query.argsz.get());
        Ok(mappings.first().filter(|_| complete).map(|mapping| mapping.file.as_raw_fd()))
    }

    /// Size of a region in bytes; 0 if the function has no such region.
    fn region_size(&self, index: u32) -> u64 {
        if index == CONFIG_REGION {
            return self.device.pci().config_bytes();
        }
        let bars = self.device.pci().bars();
        bars.iter().find(|bar| u32::from(bar.index) == index).map_or(0, |bar| bar.size)
    }

    fn irq_info(&mut self, body: &[u8]) -> Result<(), Errno> {
        let (IndexQuery { index, .. }, _) = parse(body)?;
        let count = self.vectors.count(index.get()).ok_or(Errno::EINVAL)?;
        // Without NORESIZE, QEMU arms vectors one by one instead of disarming all each time.
        let flags = match (count, index.get()) {
            (0, _) => 0,
            (_, VFIO_PCI_INTX_IRQ_INDEX) => VFIO_IRQ_INFO_EVENTFD | VFIO_IRQ_INFO_MASKABLE | VFIO_IRQ_INFO_AUTOMASKED,
            _ => VFIO_IRQ_INFO_EVENTFD,
        };
        let argsz = number::count(size_of::<IrqInfo>()).into();
        self.out.put(&IrqInfo { argsz, flags: flags.into(), index: *index, count: count.into() });
        Ok(())
    }

    /// Parses and checks an access, which must lie inside an existing region. Returns it, its length and the data that
    /// follow it.
    fn access<'b>(&self, body: &'b [u8]) -> Result<(&'b RegionAccess, usize, &'b [u8]), Errno> {
        let (access, data) = parse::<RegionAccess>(body)?;
        let (offset, region, count) = (access.offset.get(), access.region.get(), access.count.get() as usize);
        let size = self.region_size(region);
        let end = offset.checked_add(count as u64).ok_or(Errno::EINVAL)?;
        let width_ok = matches!(count, 1 | 2 | 4 | 8) || region == CONFIG_REGION && (1..=MAX_DATA).contains(&count);
        if end > size || !width_ok {
            return Err(Errno::EINVAL);
        }
        Ok((access, count, data))
    }

    fn region_read(&mut self, body: &[u8]) -> Result<(), Errno> {
        let (access, count, _) = self.access(body)?;
        let data = self.out.put(access).space(count);
        match access.region.get() {
            CONFIG_REGION => self.device.pci().read_config(access.offset.get(), data),
            bar => self.device.pci().read_bar((bar & 0xff) as u8, access.offset.get(), data),
        }
        Ok(())
    }

    fn region_write(&mut self, body: &[u8]) -> Result<(), Errno> {
        let (access, count, data) = self.access(body)?;
        let data = data.get(..count).ok_or(Errno::EINVAL)?;
        match access.region.get() {
            CONFIG_REGION => self.device.pci().write_config(access.offset.get(), data),
            bar => self.device.pci().write_bar((bar & 0xff) as u8, access.offset.get(), data),
        }
        self.out.put(access);
        Ok(())
    }
}

impl Drop for Session<'_> {
    /// Releases the client's resources: its memory, its eventfds, and pending requests to it.
    fn drop(&mut self) {
        if let Some(client) = &self.client {
            client.close();
        }
        self.vectors.clear();
        self.memory.clear();
        self.device.disconnected();
    }
}
