// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A minimal vfio-user client, and a minimal driver for the copy engine of a PF without GuC submission (as i915 with
//! `enable_guc=0`): execlists of one context, with all data structures in local memory.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::RawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use arctic_gpu::vfio_user::wire::{FLAG_ERROR, HEADER_LEN, Header, TYPE_REPLY, command};
use vmm_sys_util::sock_ctrl_msg::ScmSocket;

use crate::context::{self, Context};
use crate::mi::{self, Global, Reg};

/// Region index of GTTMMADR: registers and GGTT.
pub const GTTMMADR: u32 = 0;
/// Region index of the local memory BAR.
pub const LMEM: u32 = 2;
/// Region index of the configuration space.
pub const CONFIG: u32 = 7;
/// Offset of the Command register in the configuration space.
pub const COMMAND: u64 = 4;
/// Value of the Command register: Memory Space Enable and Bus Master Enable.
pub const MEMORY_AND_BUS_MASTER: [u8; 2] = [6, 0];

/// A DMA request from the server.
pub struct Question {
    /// Header of the message.
    pub header: Header,
    /// IOVA of the first byte.
    pub iova: u64,
    /// Number of bytes.
    pub count: usize,
}

/// A vfio-user client that can also send malformed messages, through `stream`.
pub struct Raw {
    /// The socket.
    pub stream: UnixStream,
    last_id: u16,
    /// DMA requests received while waiting for a reply, oldest first.
    pub questions: Vec<Question>,
}

/// Returns the body of a REGION_READ or REGION_WRITE message.
pub fn access(offset: u64, region: u32, count: u32, data: &[u8]) -> Vec<u8> {
    [&offset.to_le_bytes()[..], &region.to_le_bytes(), &count.to_le_bytes(), data].concat()
}

impl Raw {
    /// Connects to the socket at `path` and negotiates the protocol version.
    pub fn connect(path: &Path) -> Raw {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut raw = Raw { stream, last_id: 0, questions: Vec::new() };
        raw.request(command::VERSION, b"\0\0\0\0{}\0", &[]);
        raw
    }

    /// Returns a header with a new message ID for `command` with this body.
    pub fn header(&mut self, command: u16, body: &[u8]) -> Header {
        self.last_id = self.last_id.wrapping_add(1);
        Header { id: self.last_id, command, size: (HEADER_LEN + body.len()) as u32, flags: 0, error: 0 }
    }

    /// Sends a command without waiting for its reply; returns its header.
    pub fn send(&mut self, command: u16, body: &[u8], fds: &[RawFd]) -> Header {
        let header = self.header(command, body);
        let message = [&header.encode()[..], body].concat();
        assert_eq!(self.stream.send_with_fds(&[&message[..]], fds).unwrap(), message.len());
        header
    }

    fn receive(&mut self) -> std::io::Result<(Header, Vec<u8>)> {
        let mut bytes = [0; HEADER_LEN];
        self.stream.read_exact(&mut bytes)?;
        let header = Header::decode(&bytes);
        let mut body = vec![0; header.body_len().unwrap()];
        self.stream.read_exact(&mut body)?;
        Ok((header, body))
    }

    /// Sends a command and returns the body of its reply.
    pub fn request(&mut self, command: u16, body: &[u8], fds: &[RawFd]) -> Vec<u8> {
        let sent = self.send(command, body, fds);
        loop {
            let (header, body) = self.receive().unwrap();
            if header.is_reply() && header.id == sent.id {
                assert_eq!(header.error, 0, "command {command}");
                return body;
            }
            self.queue_request(header, &body);
        }
    }

    fn queue_request(&mut self, header: Header, body: &[u8]) {
        let field = |at: usize| u64::from_le_bytes(body[at..at + 8].try_into().unwrap());
        self.questions.push(Question { header, iova: field(0), count: field(8) as usize });
    }

    /// Returns the next DMA request of the server; `None` if none arrives within `timeout`.
    pub fn question(&mut self, timeout: Duration) -> Option<Question> {
        if !self.questions.is_empty() {
            return Some(self.questions.remove(0));
        }
        self.stream.set_read_timeout(Some(timeout)).unwrap();
        let received = self.receive();
        self.stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        match received {
            Ok((header, body)) => {
                self.queue_request(header, &body);
                self.questions.pop()
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// Replies to a DMA request. `Ok` replies to a read with data of this byte value, and acknowledges a write. `Err`
    /// replies with this errno.
    pub fn answer(&mut self, question: &Question, result: Result<u8, u32>) {
        let fields = [question.iova.to_le_bytes(), (question.count as u64).to_le_bytes()].concat();
        let (flags, error, body) = match result {
            Err(errno) => (TYPE_REPLY | FLAG_ERROR, errno, Vec::new()),
            Ok(byte) if question.header.command == command::DMA_READ => {
                (TYPE_REPLY, 0, [&fields[..], &vec![byte; question.count]].concat())
            }
            Ok(_) => (TYPE_REPLY, 0, fields),
        };
        let header = Header { size: (HEADER_LEN + body.len()) as u32, flags, error, ..question.header };
        self.stream.write_all(&[&header.encode()[..], &body].concat()).unwrap();
    }

    /// Sends DMA_MAP for guest memory. Without a file descriptor, the server accesses the memory by DMA requests.
    pub fn map(&mut self, iova: u64, size: u64, fds: &[RawFd]) {
        let fields = [0, iova, size].into_iter().flat_map(u64::to_le_bytes);
        let body: Vec<u8> = [32_u32, 3].into_iter().flat_map(u32::to_le_bytes).chain(fields).collect();
        self.request(command::DMA_MAP, &body, fds);
    }
}

// Offsets in local memory, which the GGTT maps at the same addresses.

/// The context: ring buffer (four pages), PPHWSP, context image.
pub const CONTEXT: u64 = 0x10_0000;
/// The global hardware status page.
const STATUS_PAGE: u64 = 0x8_0000;
/// The batch buffer.
pub const BATCH: u64 = 0x20_0000;
/// Data of tests.
pub const DATA: u64 = 0x21_0000;
/// GGTT address of two pages that are mapped to guest memory, not to local memory.
pub const GUEST: u64 = 0x40_0000;
/// Bytes of the firmware image of [`Transport::load_firmware`].
pub const FIRMWARE_BYTES: u32 = 1 << 20;
/// IOVA of this guest memory.
pub const IOVA: u64 = 0x8000_0000;

/// MMIO base of ccs0.
pub const CCS_BASE: u64 = 0x1_a000;
/// MMIO base of the copy engine.
const BCS_BASE: u64 = 0x2_2000;

impl Transport for Raw {
    fn write(&mut self, region: u32, offset: u64, data: &[u8]) {
        self.request(command::REGION_WRITE, &access(offset, region, data.len() as u32, data), &[]);
    }

    fn read_u32(&mut self, region: u32, offset: u64) -> u32 {
        let body = self.request(command::REGION_READ, &access(offset, region, 4, &[]), &[]);
        u32::from_le_bytes(body[16..20].try_into().unwrap())
    }
}

/// Access to the PF's regions; the provided methods are the driver.
pub trait Transport {
    /// Writes bytes at an offset of a region.
    fn write(&mut self, region: u32, offset: u64, data: &[u8]);

    /// Reads the dword at an offset of a region.
    fn read_u32(&mut self, region: u32, offset: u64) -> u32;

    /// Writes dwords to local memory.
    fn words(&mut self, at: u64, words: &[u32]) {
        for (at, word) in (at..).step_by(4).zip(words) {
            self.write(LMEM, at, &word.to_le_bytes());
        }
    }

    /// Writes a register.
    fn register(&mut self, offset: u64, value: u32) {
        self.write(GTTMMADR, offset, &value.to_le_bytes());
    }

    /// Initialises the copy engine, writes `batch` at [`BATCH`], and submits a context with the commands of `ring` (at
    /// most a page) in its ring buffer.
    fn run(&mut self, ring: &[u32], batch: &[u32]) {
        self.run_beside(IOVA, ring, batch);
    }

    /// Same as [`Transport::run`], but maps the pages at [`GUEST`] to `iova`.
    fn run_beside(&mut self, iova: u64, ring: &[u32], batch: &[u32]) {
        self.run_on(BCS_BASE, iova, ring, batch);
    }

    /// Same as [`Transport::run_beside`], on the engine with this MMIO base.
    fn run_on(&mut self, base: u64, iova: u64, ring: &[u32], batch: &[u32]) {
        self.enable();
        let local = [STATUS_PAGE, BATCH, DATA].into_iter().chain((0..10).map(|n| CONTEXT + n * 4096));
        let entries = local.map(|page| (page, page | 3)).chain([(GUEST, iova | 1), (GUEST + 4096, (iova + 4096) | 1)]);
        for (page, entry) in entries {
            self.map_global(page, entry);
        }
        let pphwsp = CONTEXT + 0x4000;
        self.words(pphwsp + context::IMAGE, &Context { bytes: 0x4000, ..Context::of(CONTEXT, ring, 0) }.image());
        self.words(CONTEXT, &mi::padded(ring));
        self.words(BATCH, batch);
        self.register(base + 0x29c, 0x0008_0008);
        self.register(base + 0x80, STATUS_PAGE as u32);
        self.register(base + 0x3a0, 0xffff_0b0b);
        let descriptor = 1_u64 << 39 | u64::from(context::descriptor(pphwsp));
        for n in (0..8).rev() {
            let descriptor = if n == 0 { descriptor } else { 0 };
            self.register(base + 0x510 + 8 * n, descriptor as u32);
            self.register(base + 0x514 + 8 * n, (descriptor >> 32) as u32);
        }
        self.register(base + 0x550, 1);
    }

    /// Writes the GGTT entry of the page at the GGTT address `page`.
    fn map_global(&mut self, page: u64, entry: u64) {
        self.write(GTTMMADR, (8 << 20) + page / 4096 * 8, &entry.to_le_bytes());
    }

    /// Maps the GGTT pages of the firmware image of [`Transport::load_firmware`] to the page of guest memory at [`IOVA`].
    fn map_firmware(&mut self) {
        self.enable();
        for page in (GUEST..GUEST + u64::from(FIRMWARE_BYTES)).step_by(4096) {
            self.map_global(page, IOVA | 1);
        }
    }

    /// Starts a load of GuC firmware from guest memory ([`Transport::map_firmware`]): the DMA engine reads the image page
    /// by page, each with a separate DMA request, while the GuC's lock is held.
    fn load_firmware(&mut self) {
        for (register, value) in [
            (0xc050, 0x3f_3001),
            (0xc340, 0x4001),
            (0xc300, GUEST as u32),
            (0xc304, 0x8_0000),
            (0xc308, 0x2000),
            (0xc30c, 0x7_0000),
            (0xc310, FIRMWARE_BYTES),
            (0xc314, 0x0011_0011),
        ] {
            self.register(register, value);
        }
    }

    /// Runs an endless batch that stores the engine's timestamp in each iteration, and waits until it has started.
    fn spin(&mut self) {
        let jump = mi::batch_buffer_start(Global(BATCH));
        let store = mi::store_register_mem(Reg::Own(mi::TIMESTAMP), Global(DATA + 8));
        self.run(&jump, &[&store[..], &jump].concat());
        assert!((0..100).any(|_| self.spins()), "the engine did not start the batch");
    }

    /// Returns whether the endless batch is running: whether the stored timestamp changes within 20 ms.
    fn spins(&mut self) -> bool {
        let before = self.read_u32(LMEM, DATA + 8);
        std::thread::sleep(Duration::from_millis(20));
        self.read_u32(LMEM, DATA + 8) != before
    }

    /// Enables memory space and bus mastering in the command register.
    fn enable(&mut self) {
        self.write(CONFIG, COMMAND, &MEMORY_AND_BUS_MASTER);
    }

    /// Submits commands that copy the dword at [`IOVA`] to [`DATA`], where [`Transport::fetched`] reads it.
    fn fetch(&mut self) {
        let load = mi::load_register_mem(Reg::Own(mi::GPR0), Global(GUEST));
        let store = mi::store_register_mem(Reg::Own(mi::GPR0), Global(DATA));
        self.write(LMEM, DATA, &[0; 4]);
        self.run(&[load, store].concat(), &[]);
    }

    /// Resets the copy engine, idle or busy (i915: gen8_engine_reset_prepare, GEN11_GRDOM_BLT).
    fn reset_engine(&mut self) {
        self.register(BCS_BASE + 0xd0, 0x0001_0001);
        self.register(0x941c, 1 << 2);
        self.register(BCS_BASE + 0xd0, 0x0001_0000);
    }

    /// Returns the dword that the commands of [`Transport::fetch`] stored.
    fn fetched(&mut self) -> u32 {
        self.read_u32(LMEM, DATA)
    }
}
