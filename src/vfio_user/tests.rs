// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the server with two types of clients: a raw client that can misbehave, and the `vfio_user` crate's client
//! as an independent implementation.
#![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

mod fuzz;
mod hostile;
mod independent_client;
mod protocol;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

pub(crate) use arctic_test_support::poll::eventually;
use vmm_sys_util::sock_ctrl_msg::ScmSocket;
use vmm_sys_util::tempdir::TempDir;
use vmm_sys_util::tempfile::TempFile;

use super::memory::GuestMemory;
use super::memory::tests::{memory_file, sealed};
use super::wire::*;
use super::*;
use crate::pci::{Bar, BarKind, BarMapping};

/// A test device: trapped BAR 0 of 4 KiB, BAR 2 with a sparse file, 4 KiB of configuration space; every byte is memory.
struct Scratch {
    bars: [Bar; 2],
    file: File,
    bytes: Mutex<BTreeMap<u32, Vec<u8>>>,
    resets: AtomicUsize,
    disconnects: AtomicUsize,
    closed: AtomicBool,
    /// For writes at [`RAISE`].
    vectors: OnceLock<Arc<Vectors>>,
    /// Taken by writes at [`LOCKED`] and by resets, as the lock of an engine.
    lock: Mutex<()>,
    /// Number of threads that take `lock`, or have taken it.
    locking: AtomicUsize,
}

/// A write at this offset of BAR 0 raises MSI 0.
const RAISE: u64 = 0xff8;
/// A write at this offset of BAR 0 takes a lock.
const LOCKED: u64 = 0xff4;
/// A read at this offset of BAR 0 panics.
const BUG: u64 = 0xffc;
const MEMORY: BarKind = BarKind::Memory64 { prefetchable: true };
const BAR2_AREA: std::ops::Range<u64> = 0x1000..0x3000;

impl Scratch {
    fn new() -> Arc<Scratch> {
        let file = TempFile::new().unwrap().into_file();
        file.set_len(0x4000).unwrap();
        let bytes = [(0, 0x1000), (2, 0x4000), (CONFIG_REGION, 0x1000)].map(|(region, size)| (region, vec![0; size]));
        Arc::new(Scratch {
            bars: [Bar { index: 0, size: 0x1000, kind: MEMORY }, Bar { index: 2, size: 0x4000, kind: MEMORY }],
            file,
            bytes: Mutex::new(bytes.into()),
            resets: AtomicUsize::new(0),
            disconnects: AtomicUsize::new(0),
            closed: AtomicBool::new(false),
            vectors: OnceLock::new(),
            lock: Mutex::new(()),
            locking: AtomicUsize::new(0),
        })
    }

    fn take_lock(&self) -> MutexGuard<'_, ()> {
        self.locking.fetch_add(1, Ordering::Relaxed);
        self.lock.lock().unwrap()
    }

    fn read(&self, region: u32, offset: u64, data: &mut [u8]) {
        let from = offset as usize;
        data.copy_from_slice(&self.bytes.lock().unwrap()[&region][from..from + data.len()]);
    }

    fn write(&self, region: u32, offset: u64, data: &[u8]) {
        let from = offset as usize;
        self.bytes.lock().unwrap().get_mut(&region).unwrap()[from..from + data.len()].copy_from_slice(data);
    }
}

impl PciDevice for Scratch {
    fn number(&self) -> crate::pci::Function {
        crate::pci::Function::PF
    }

    fn bus_master(&self) -> bool {
        true
    }

    fn read_config(&self, offset: u64, data: &mut [u8]) {
        self.read(CONFIG_REGION, offset, data);
    }

    fn write_config(&self, offset: u64, data: &[u8]) {
        self.write(CONFIG_REGION, offset, data);
    }

    fn bars(&self) -> &[Bar] {
        &self.bars
    }

    fn read_bar(&self, bar: u8, offset: u64, data: &mut [u8]) {
        assert!(bar != 0 || offset != BUG, "an intended panic of this test, not a failure");
        self.read(bar.into(), offset, data);
    }

    fn write_bar(&self, bar: u8, offset: u64, data: &[u8]) {
        if (bar, offset) == (0, RAISE) {
            self.vectors.get().inspect(|vectors| vectors.raise_msi(0));
        }
        if (bar, offset) == (0, LOCKED) {
            drop(self.take_lock());
        }
        self.write(bar.into(), offset, data);
    }

    fn mappings(&self, bar: u8) -> Vec<BarMapping<'_>> {
        let (offset, len) = (BAR2_AREA.start, BAR2_AREA.end - BAR2_AREA.start);
        let mapping = BarMapping { offset, len, file: &self.file, file_offset: offset };
        if bar == 2 { vec![mapping] } else { Vec::new() }
    }

    fn reset(&self) {
        drop(self.take_lock());
        self.resets.fetch_add(1, Ordering::Relaxed);
    }
}

impl Device for Scratch {
    fn pci(&self) -> &dyn PciDevice {
        self
    }

    fn admit(&self) -> Result<(), String> {
        if self.closed.load(Ordering::Relaxed) { Err("it is closed".into()) } else { Ok(()) }
    }

    fn disconnected(&self) {
        self.disconnects.fetch_add(1, Ordering::Relaxed);
    }
}

/// A served [`Scratch`] and the directory of its socket.
struct ServerBench {
    device: Arc<Scratch>,
    memory: Arc<GuestMemory>,
    vectors: Arc<Vectors>,
    path: PathBuf,
    server: Option<Server>,
    _dir: TempDir,
}

impl ServerBench {
    fn new() -> ServerBench {
        let dir = TempDir::new().unwrap();
        let path = dir.as_path().join("pf.sock");
        let device = Scratch::new();
        let memory = Arc::new(GuestMemory::default());
        let vectors = Arc::new(Vectors::new(VECTORS));
        let _ = device.vectors.set(vectors.clone());
        let function = Function { device: device.clone(), memory: memory.clone(), vectors: vectors.clone() };
        let server = Some(Server::start(&path, function, Settings::default()).unwrap());
        ServerBench { device, memory, vectors, path, server, _dir: dir }
    }

    fn connect(&self) -> Raw {
        Raw::connect(&self.path)
    }

    /// A connected client after the version exchange.
    fn client(&self) -> Raw {
        self.connect().versed()
    }
}

/// A client that sends arbitrary messages.
pub(crate) struct Raw {
    pub(crate) stream: UnixStream,
    next: u16,
}

pub(crate) struct Reply {
    pub(crate) header: Header,
    pub(crate) body: Vec<u8>,
    pub(crate) file: Option<File>,
}

impl Reply {
    pub(crate) fn u32(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.body[at..at + 4].try_into().unwrap())
    }

    pub(crate) fn u64(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.body[at..at + 8].try_into().unwrap())
    }
}

impl Raw {
    pub(crate) fn connect(path: &Path) -> Raw {
        let stream = UnixStream::connect(path).unwrap();
        // If the server hangs, the test fails instead of hanging too.
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(5))).unwrap();
        Raw { stream, next: 7 }
    }

    /// The same client after the version exchange.
    pub(crate) fn versed(mut self) -> Raw {
        let reply = self.request(command::VERSION, b"\0\0\0\0{}\0");
        assert_eq!(reply.header.error, 0);
        self
    }

    pub(crate) fn header(&mut self, command: u16, body: &[u8], flags: u32) -> Header {
        self.next += 1;
        Header { id: self.next, command, size: (HEADER_LEN + body.len()) as u32, flags, error: 0 }
    }

    pub(crate) fn send(&mut self, header: Header, body: &[u8], fds: &[RawFd]) {
        let message = [&header.encode()[..], body].concat();
        assert_eq!(self.stream.send_with_fds(&[&message[..]], fds).unwrap(), message.len());
    }

    pub(crate) fn receive(&mut self) -> Reply {
        let mut bytes = [0; HEADER_LEN];
        let (n, file) = self.stream.recv_with_fd(&mut bytes).unwrap();
        assert_eq!(n, HEADER_LEN, "connection closed");
        let header = Header::decode(&bytes);
        let mut body = vec![0; header.body_len().unwrap()];
        self.stream.read_exact(&mut body).unwrap();
        Reply { header, body, file }
    }

    pub(crate) fn request_with_fds(&mut self, command: u16, body: &[u8], fds: &[RawFd]) -> Reply {
        let header = self.header(command, body, 0);
        self.send(header, body, fds);
        let reply = self.receive();
        assert_eq!((reply.header.id, reply.header.command), (header.id, command));
        assert!(reply.header.is_reply());
        assert_eq!(reply.header.flags & FLAG_ERROR != 0, reply.header.error != 0);
        reply
    }

    pub(crate) fn request(&mut self, command: u16, body: &[u8]) -> Reply {
        self.request_with_fds(command, body, &[])
    }

    pub(crate) fn closed(&mut self) -> bool {
        matches!(self.stream.read(&mut [0; 1]), Ok(0)) || self.stream.write(&[0]).is_err()
    }
}

pub(crate) fn dwords(fields: &[u32]) -> Vec<u8> {
    fields.iter().flat_map(|field| field.to_le_bytes()).collect()
}

pub(crate) fn access(offset: u64, region: u32, count: u32, data: &[u8]) -> Vec<u8> {
    [&offset.to_le_bytes()[..], &region.to_le_bytes(), &count.to_le_bytes(), data].concat()
}

pub(crate) fn dma_map(flags: u32, offset: u64, iova: u64, size: u64) -> Vec<u8> {
    let fields = [offset, iova, size].into_iter().flat_map(u64::to_le_bytes);
    dwords(&[32, flags]).into_iter().chain(fields).collect()
}

pub(crate) fn dma_unmap(flags: u32, iova: u64, size: u64) -> Vec<u8> {
    dwords(&[24, flags]).into_iter().chain([iova, size].into_iter().flat_map(u64::to_le_bytes)).collect()
}
