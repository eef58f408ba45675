// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A minimal VMM client and driver for the PF's copy engine: no GuC, an execlist of one context, all data structures in
//! local memory, written by messages (i915 with `enable_guc=0`).

use std::io::{ErrorKind, Read, Write};
use std::os::fd::RawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use arctic_gpu::vfio_user::wire::{FLAG_ERROR, HEADER_LEN, Header, TYPE_REPLY, command};
use vmm_sys_util::sock_ctrl_msg::ScmSocket;

use crate::context::{self, Context};
use crate::mi::{self, Global, Reg};

/// Region of registers and GGTT.
pub const GTTMMADR: u32 = 0;
/// Region of local memory.
pub const LMEM: u32 = 2;
/// Region of configuration space.
pub const CONFIG: u32 = 7;

/// A request from the server.
pub struct Question {
    /// Header of the message.
    pub header: Header,
    /// First address of the memory.
    pub iova: u64,
    /// Bytes of the memory.
    pub count: usize,
}

/// A client without a library, which can send any bytes.
pub struct Raw {
    /// The socket.
    pub stream: UnixStream,
    next: u16,
    /// Requests received while waiting for a reply.
    pub questions: Vec<Question>,
}

/// Returns the body of an access to a region.
pub fn access(offset: u64, region: u32, count: u32, data: &[u8]) -> Vec<u8> {
    [&offset.to_le_bytes()[..], &region.to_le_bytes(), &count.to_le_bytes(), data].concat()
}

impl Raw {
    /// Connects and negotiates the version.
    pub fn connect(path: &Path) -> Raw {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut raw = Raw { stream, next: 0, questions: Vec::new() };
        raw.ask(command::VERSION, b"\0\0\0\0{}\0", &[]);
        raw
    }

    /// Returns the header of the next command.
    pub fn header(&mut self, command: u16, body: &[u8]) -> Header {
        self.next = self.next.wrapping_add(1);
        Header { id: self.next, command, size: (HEADER_LEN + body.len()) as u32, flags: 0, error: 0 }
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
    pub fn ask(&mut self, command: u16, body: &[u8], fds: &[RawFd]) -> Vec<u8> {
        let sent = self.send(command, body, fds);
        loop {
            let (header, body) = self.receive().unwrap();
            if header.is_reply() && header.id == sent.id {
                assert_eq!(header.error, 0, "command {command}");
                return body;
            }
            self.note(header, &body);
        }
    }

    fn note(&mut self, header: Header, body: &[u8]) {
        let field = |at: usize| u64::from_le_bytes(body[at..at + 8].try_into().unwrap());
        self.questions.push(Question { header, iova: field(0), count: field(8) as usize });
    }

    /// Returns the next request of the server; `None` if none arrives within `patience`.
    pub fn question(&mut self, patience: Duration) -> Option<Question> {
        if !self.questions.is_empty() {
            return Some(self.questions.remove(0));
        }
        self.stream.set_read_timeout(Some(patience)).unwrap();
        let received = self.receive();
        self.stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        match received {
            Ok((header, body)) => {
                self.note(header, &body);
                self.questions.pop()
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// Answers a read with bytes of this value, acknowledges a write, or answers either with an error number.
    pub fn answer(&mut self, question: &Question, what: Result<u8, u32>) {
        let fields = [question.iova.to_le_bytes(), (question.count as u64).to_le_bytes()].concat();
        let (flags, error, body) = match what {
            Err(errno) => (TYPE_REPLY | FLAG_ERROR, errno, Vec::new()),
            Ok(byte) if question.header.command == command::DMA_READ => {
                (TYPE_REPLY, 0, [&fields[..], &vec![byte; question.count]].concat())
            }
            Ok(_) => (TYPE_REPLY, 0, fields),
        };
        let header = Header { size: (HEADER_LEN + body.len()) as u32, flags, error, ..question.header };
        self.stream.write_all(&[&header.encode()[..], &body].concat()).unwrap();
    }

    /// Maps guest memory, with a file descriptor if there is one.
    pub fn map(&mut self, iova: u64, size: u64, fds: &[RawFd]) {
        let fields = [0, iova, size].into_iter().flat_map(u64::to_le_bytes);
        let body: Vec<u8> = [32_u32, 3].into_iter().flat_map(u32::to_le_bytes).chain(fields).collect();
        self.ask(command::DMA_MAP, &body, fds);
    }
}

// Offsets in local memory, equal to the GGTT addresses.

/// The context: a ring of four pages, then status page and image.
pub const CONTEXT: u64 = 0x10_0000;
const STATUS_PAGE: u64 = 0x8_0000;
/// The batch.
pub const BATCH: u64 = 0x20_0000;
/// Data of tests.
pub const DATA: u64 = 0x21_0000;
/// Two pages that map guest memory.
pub const GUEST: u64 = 0x40_0000;
/// IOVA of that guest memory: two pages.
pub const IOVA: u64 = 0x8000_0000;

const COPY: u64 = 0x2_2000;

impl Transport for Raw {
    fn write(&mut self, region: u32, offset: u64, data: &[u8]) {
        self.ask(command::REGION_WRITE, &access(offset, region, data.len() as u32, data), &[]);
    }

    fn read_u32(&mut self, region: u32, offset: u64) -> u32 {
        let body = self.ask(command::REGION_READ, &access(offset, region, 4, &[]), &[]);
        u32::from_le_bytes(body[16..20].try_into().unwrap())
    }
}

/// Access to the PF's registers and memory, and the driver's operations based on it.
pub trait Transport {
    /// Writes bytes of a region.
    fn write(&mut self, region: u32, offset: u64, data: &[u8]);

    /// Reads a dword of a region.
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

    /// Initialises the copy engine and submits `ring` (at most a page), after writing the dwords of the batch.
    fn run(&mut self, ring: &[u32], batch: &[u32]) {
        self.run_beside(IOVA, ring, batch);
    }

    /// The same, with guest memory at `iova`.
    fn run_beside(&mut self, iova: u64, ring: &[u32], batch: &[u32]) {
        self.enable();
        let own = [STATUS_PAGE, BATCH, DATA].into_iter().chain((0..10).map(|n| CONTEXT + n * 4096));
        let shown = own.map(|page| (page, page | 3)).chain([(GUEST, iova | 1), (GUEST + 4096, (iova + 4096) | 1)]);
        for (page, entry) in shown {
            self.write(GTTMMADR, (8 << 20) + page / 4096 * 8, &u64::to_le_bytes(entry));
        }
        let status_page = CONTEXT + 0x4000;
        self.words(status_page + context::IMAGE, &Context { bytes: 0x4000, ..Context::of(CONTEXT, ring, 0) }.image());
        self.words(CONTEXT, &mi::padded(ring));
        self.words(BATCH, batch);
        self.register(COPY + 0x29c, 0x0008_0008);
        self.register(COPY + 0x80, STATUS_PAGE as u32);
        self.register(COPY + 0x3a0, 0xffff_0b0b);
        let descriptor = 1_u64 << 39 | u64::from(context::descriptor(status_page));
        for n in (0..8).rev() {
            let descriptor = if n == 0 { descriptor } else { 0 };
            self.register(COPY + 0x510 + 8 * n, descriptor as u32);
            self.register(COPY + 0x514 + 8 * n, (descriptor >> 32) as u32);
        }
        self.register(COPY + 0x550, 1);
    }

    /// Makes the GuC's boot ROM search the guest's first page for a signature: 1024 dwords, each a separate request to
    /// the client, with the GuC's lock held. The image in front of the signature is in local memory and has no code.
    fn look_for_signature(&mut self) {
        const KEY: u32 = 1024;
        self.enable();
        for (page, entry) in [(BATCH, BATCH | 3), (GUEST, IOVA | 1)] {
            self.write(GTTMMADR, (8 << 20) + page / 4096 * 8, &u64::to_le_bytes(entry));
        }
        let header = [6, 32 + KEY, 0x1_0000, 0, 0x8086, 0x2024_0101, 32 + KEY + 1, KEY, 0, 0];
        self.words(BATCH, &header);
        self.words(BATCH + 0x40, &[70 << 16, 1 << 16]);
        for (register, value) in [
            (0xc050, 0x3f_3001),
            (0xc340, 0x4001),
            (0xc200, GUEST as u32),
            (0xc300, BATCH as u32),
            (0xc304, 0x8_0000),
            (0xc308, 0x2000),
            (0xc30c, 0x7_0000),
            (0xc310, 128 + 4),
            (0xc314, 0x0011_0011),
        ] {
            self.register(register, value);
        }
    }

    /// Runs an endless batch that stores the timestamp in each iteration.
    fn spin(&mut self) {
        let again = mi::batch_buffer_start(Global(BATCH));
        let tell = mi::store_register_mem(Reg::Own(mi::TIMESTAMP), Global(DATA + 8));
        self.run(&again, &[&tell[..], &again].concat());
        assert!((0..100).any(|_| self.spins()), "the engine did not start the batch");
    }

    /// Returns whether the stored timestamp changes.
    fn spins(&mut self) -> bool {
        let before = self.read_u32(LMEM, DATA + 8);
        std::thread::sleep(Duration::from_millis(20));
        self.read_u32(LMEM, DATA + 8) != before
    }

    /// Enables memory space and bus mastering.
    fn enable(&mut self) {
        self.write(CONFIG, 4, &[6, 0]);
    }

    /// Submits a ring that reads a dword of guest memory and stores it where [`Transport::fetched`] reads it.
    fn fetch(&mut self) {
        let load = mi::load_register_mem(Reg::Own(mi::GPR0), Global(GUEST));
        let store = mi::store_register_mem(Reg::Own(mi::GPR0), Global(DATA));
        self.write(LMEM, DATA, &[0; 4]);
        self.run(&[load, store].concat(), &[]);
    }

    /// Resets the copy engine in any state (i915: gen8_engine_reset_prepare, GEN11_GRDOM_BLT).
    fn reset_engine(&mut self) {
        self.register(COPY + 0xd0, 0x0001_0001);
        self.register(0x941c, 1 << 2);
        self.register(COPY + 0xd0, 0x0001_0000);
    }

    /// Returns the dword that [`Transport::fetch`] has stored.
    fn fetched(&mut self) -> u32 {
        self.read_u32(LMEM, DATA)
    }
}
