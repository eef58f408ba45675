// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Fuzz harness of the vfio-user server. A client sends valid and mutated protocol messages, arbitrary bytes and file
//! descriptors of several kinds, truncates its files, and disconnects. Engines access the memory that it has mapped.
//!
//! The harness runs the session on the calling thread, one message at a time. A second function has an idle client and
//! memory filled with canaries.

mod scratch;

use std::collections::VecDeque;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use arctic_device_model::host::Access;
use arctic_gpu::MsiSink;
use arctic_gpu::vfio_user::memory::GuestMemory;
use arctic_gpu::vfio_user::test_driver::{Channel, Closed, Session, Wake};
use arctic_gpu::vfio_user::wire::*;
use arctic_gpu::vfio_user::{CONFIG_REGION, VECTORS, Vectors};
use rustix::fs::{FallocateFlags, SealFlags, fallocate};
use vm_memory::Bytes as _;
use vmm_sys_util::eventfd::{EFD_NONBLOCK, EventFd};
use vmm_sys_util::poll::EpollContext;
use vmm_sys_util::sock_ctrl_msg::ScmSocket;

use self::scratch::{Descriptors, FILE, Scratch, memory_file, seal};
use crate::bytes::Bytes;

/// Maximum number of input bytes that are used; further bytes are ignored.
const MOST: usize = 4096;
/// Maximum number of operations per input.
const OPERATIONS: usize = 64;
/// Pattern that fills the other function's memory.
const CANARY: [u8; 8] = *b"\xca\x9a\x27\x1e\xd0\x0d\x5a\xfe";
/// IOVA of the other function's guest memory.
const SECRET: u64 = 0x10_0000;

/// A served function: device, guest memory, interrupt vectors.
struct Served {
    device: Scratch,
    memory: GuestMemory,
    vectors: Vectors,
    epoll: EpollContext<Wake>,
    /// Always signalled, so that waiting for more input ends with `Closed::Stopped`.
    _stop: EventFd,
}

impl Served {
    fn new(fill: &[u8; 8]) -> Served {
        let stop = EventFd::new(EFD_NONBLOCK).unwrap();
        stop.write(1).unwrap();
        let epoll = EpollContext::new().unwrap();
        epoll.add(&stop, Wake::Stop).unwrap();
        let (memory, vectors) = (GuestMemory::default(), Vectors::new(VECTORS));
        Served { device: Scratch::new(fill), memory, vectors, epoll, _stop: stop }
    }

    fn connect(&self) -> (Connection, Session<'_>) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let channel = Channel::new(theirs, &self.epoll, &|| (), Duration::ZERO).unwrap();
        let session = Session::new(channel, &self.device, &self.memory, &self.vectors);
        (Connection { stream: ours, sent: Vec::new(), requests: VecDeque::new(), next: 0 }, session)
    }
}

/// The client of one function.
struct Connection {
    stream: UnixStream,
    /// Bytes sent that the session has not consumed yet.
    sent: Vec<u8>,
    /// Requests from the server that are still without a reply.
    requests: VecDeque<Reply>,
    next: u16,
}

/// A message that the client has received: a reply or a request.
struct Reply {
    header: Header,
    body: Vec<u8>,
    file: Option<File>,
}

impl Connection {
    fn send(&mut self, bytes: &[u8], fds: &[RawFd]) {
        if bytes.is_empty() {
            return;
        }
        assert_eq!(self.stream.send_with_fds(&[bytes], fds).unwrap(), bytes.len());
        self.sent.extend_from_slice(bytes);
    }

    fn message(&mut self, command: u16, flags: u32, body: &[u8], fds: &[RawFd]) {
        self.next = self.next.wrapping_add(1);
        let header = Header { id: self.next, command, size: (HEADER_LEN + body.len()) as u32, flags, error: 0 };
        self.send(&[&header.encode()[..], body].concat(), fds);
    }

    /// Returns the next message from the server, if there is one.
    fn receive(&mut self) -> Option<Reply> {
        let mut bytes = [0; HEADER_LEN];
        let (n, file) = self.stream.recv_with_fd(&mut bytes).ok().filter(|(n, _)| *n != 0)?;
        assert_eq!(n, HEADER_LEN, "incomplete header");
        let header = Header::decode(&bytes);
        let mut body = vec![0; header.body_len().expect("valid size in the header")];
        self.stream.read_exact(&mut body).expect("a body of the length in the header");
        Some(Reply { header, body, file })
    }

    /// Returns the next reply; queues requests from the server that precede it.
    fn reply(&mut self) -> Option<Reply> {
        loop {
            let message = self.receive()?;
            if message.header.is_reply() {
                return Some(message);
            }
            self.requests.push_back(message);
        }
    }

    /// Makes the session process all complete messages; returns `false` if the session has ended.
    fn serve(&mut self, session: &mut Session<'_>, own: u64) -> bool {
        let (mut body, mut files) = (Vec::new(), Vec::new());
        while let Some(header) = self.sent.first_chunk::<HEADER_LEN>().map(Header::decode) {
            let len = header.body_len();
            if len.is_some_and(|len| self.sent.len() < HEADER_LEN + len) {
                return true;
            }
            files.clear();
            let served = session.serve_one(&mut body, &mut files);
            let answered = !header.no_reply() && (len.is_none() || !header.is_reply());
            let reply = self.reply();
            assert_eq!(reply.is_some(), answered, "{header:?}: reply {:?}", reply.map(|reply| reply.header));
            if let Some(reply) = reply {
                check(&header, &reply, own);
            }
            assert!(self.reply().is_none(), "two replies to {header:?}");
            match (len, served) {
                (Some(len), Ok(())) => drop(self.sent.drain(..HEADER_LEN + len)),
                // The thread that waits for the reply has received it, while the session executed the request before it.
                (Some(len), Err(Closed::Stopped)) if header.is_reply() => drop(self.sent.drain(..HEADER_LEN + len)),
                (None, Err(Closed::Broken(_))) => return false,
                (_, other) => panic!("{header:?}: {other:?}"),
            }
        }
        true
    }
}

/// Checks that the reply belongs to the request and contains no data or file of another function.
fn check(request: &Header, reply: &Reply, own: u64) {
    let Header { id, command, flags, error, .. } = reply.header;
    assert_eq!((id, command, flags & FLAG_TYPE), (request.id, request.command, TYPE_REPLY));
    assert_eq!(flags & FLAG_ERROR != 0, error != 0);
    assert!(error == 0 || reply.body.is_empty());
    assert!(!reply.body.windows(8).any(|bytes| bytes == CANARY), "reply contains another function's memory");
    if let Some(file) = &reply.file {
        assert_eq!(file.metadata().unwrap().ino(), own, "reply carries another function's file");
    }
}

/// Returns a well-formed body for a command.
fn body_of(command: u16, bytes: &mut Bytes<'_>) -> Vec<u8> {
    let dwords = |fields: &[u32]| fields.iter().flat_map(|field| field.to_le_bytes()).collect::<Vec<u8>>();
    let qwords = |fields: &[u64]| fields.iter().flat_map(|field| field.to_le_bytes()).collect::<Vec<u8>>();
    let page = |bytes: &mut Bytes<'_>| u64::from(bytes.byte() % 8) * 0x1000;
    match command {
        command::VERSION => {
            const TEXTS: [&str; 6] = [
                "{}\0",
                "{\"capabilities\":{\"max_msg_fds\":1}}\0",
                "{\"capabilities\":{\"max_data_xfer_size\":0,\"max_dma_maps\":18446744073709551615}}\0",
                "{\"capabilities\":{\"pgsizes\":-1}}",
                "",
                "[[[[[[[[",
            ];
            [&[0; 4], bytes.of(&TEXTS).as_bytes()].concat()
        }
        command::DMA_MAP => {
            let flags = bytes.of(&[3, 3, 3, 1, 2, 0, 7, 15]);
            [dwords(&[32, flags]), qwords(&[page(bytes), page(bytes), page(bytes)])].concat()
        }
        command::DMA_UNMAP => [dwords(&[24, bytes.of(&[0, 0, 0, 2])]), qwords(&[page(bytes), page(bytes)])].concat(),
        command::DEVICE_GET_REGION_INFO => dwords(&[bytes.of(&[32, 64, 80]), 0, bytes.of(&[0, 2, 7, 8]), 0]),
        command::DEVICE_GET_IRQ_INFO => dwords(&[16, 0, u32::from(bytes.byte() % 4), 0]),
        command::DEVICE_SET_IRQS => {
            let kind = bytes.of(&[0x24, 0x24, 0x21, 0x22]);
            [dwords(&[20, kind, bytes.of(&[1, 1, 0, 2]), 0, bytes.of(&[1, 1, 0, 2])]), vec![1]].concat()
        }
        command::REGION_READ | command::REGION_WRITE => {
            let (region, width) = (bytes.of(&[0, 2, CONFIG_REGION]), bytes.of(&[1, 2, 4, 8, 64, 4096]));
            let offset = u64::from(bytes.word() & 0x3fff);
            [qwords(&[offset]), dwords(&[region, width]), vec![bytes.byte(); width.min(64) as usize]].concat()
        }
        command::DEVICE_GET_INFO => dwords(&[16, 0, 0, 0]),
        command::DEVICE_RESET => Vec::new(),
        _ => vec![0; 16],
    }
}

const COMMANDS: [u16; 16] = [1, 2, 2, 2, 3, 3, 4, 5, 7, 8, 8, 9, 10, 11, 13, 6];

fn message(connection: &mut Connection, descriptors: &Descriptors, bytes: &mut Bytes<'_>) {
    let how = bytes.byte();
    let command = COMMANDS[usize::from(how & 0xf)];
    let mut body = body_of(command, bytes);
    for _ in 0..how >> 4 & 3 {
        // Overwrites four or eight bytes at a dword offset.
        let (at, value) = (usize::from(bytes.byte()) * 4, bytes.edge().to_le_bytes());
        let (at, len) = (at.min(body.len()), if bytes.byte() & 1 != 0 { 8 } else { 4 });
        body.iter_mut().skip(at).zip(&value[..len]).for_each(|(byte, value)| *byte = *value);
    }
    let fds = if matches!(command, 2 | 8) || how & 0x40 != 0 { descriptors.some(bytes) } else { Vec::new() };
    let mut flags = 0;
    if how & 0x80 != 0 {
        match bytes.byte() % 6 {
            0 => body.truncate(usize::from(bytes.byte()) % (body.len() + 1)),
            1 => body.resize(usize::from(bytes.byte()), 0xcc),
            2 => flags = FLAG_NO_REPLY,
            3 => flags = bytes.edge() as u32,
            4 => {
                // A header with a size that does not match the body.
                let size = bytes.edge() as u32;
                let header = Header { id: bytes.word(), command, size, flags: 0, error: 0 };
                connection.send(&[&header.encode()[..], &body].concat(), &fds);
                return;
            }
            _ => {
                // Split into three writes; the first two carry descriptors.
                let cut = usize::from(bytes.byte()) % (body.len() + 1);
                let header = Header { id: 9, command, size: (16 + body.len()) as u32, flags: 0, error: 0 };
                connection.send(&header.encode(), &fds);
                connection.send(&body[..cut], &fds);
                connection.send(&body[cut..], &[]);
                return;
            }
        }
    }
    connection.message(command, flags, &body, &fds);
}

/// Accesses guest memory as an engine does, through mapped spans or by messages.
fn engine(memory: &GuestMemory, bytes: &mut Bytes<'_>) {
    let view = memory.view();
    let iova = match bytes.byte() & 3 {
        0 => bytes.edge(),
        _ => u64::from(bytes.word()),
    };
    let mut data = vec![0xee; usize::from(bytes.byte()) + 1];
    match bytes.byte() % 4 {
        0 => {
            if let Some(slice) = view.slice(iova, data.len(), Access::Read) {
                assert!(slice.len() <= data.len());
                slice.read_slice(&mut data[..slice.len()], 0).unwrap();
            }
        }
        1 => {
            if let Some(slice) = view.slice(iova, data.len(), Access::Write) {
                slice.write_slice(&data[..slice.len()], 0).unwrap();
            }
        }
        2 => drop(view.read_remote(iova, &mut data)),
        _ => drop(view.write_remote(iova, &data)),
    }
    assert!(!data.windows(8).any(|bytes| bytes == CANARY), "engine read another function's memory");
}

/// IOVA of a section without a file descriptor, which the server accesses by messages to the client.
const REMOTE: u64 = 0x9_0000;

/// Reads or writes client memory by messages, as an engine does. The client replies correctly, or sends an incorrect
/// message first.
///
/// Returns `false` if the session has ended.
fn question(
    memory: &GuestMemory,
    connection: &mut Connection,
    session: &mut Session<'_>,
    own: u64,
    bytes: &mut Bytes<'_>,
) -> bool {
    let before = memory.sections();
    connection.message(command::DMA_MAP, 0, &map(3, REMOTE, 0x1000), &[]);
    if !connection.serve(session, own) {
        return false;
    }
    if !connection.sent.is_empty() || memory.sections() == before {
        // An incomplete message blocks the client's replies, or the IOVA range was already mapped.
        return true;
    }
    let (offset, len, write) = (u64::from(bytes.byte()) * 8, usize::from(bytes.byte() % 48) + 1, bytes.byte() & 1 != 0);
    let view = memory.view();
    let access = move || {
        let mut data = vec![0xee; len];
        let done = if write {
            view.write_remote(REMOTE + offset, &data)
        } else {
            view.read_remote(REMOTE + offset, &mut data)
        };
        (done.is_ok(), data)
    };
    let access = std::thread::spawn(access);
    let (mut stays, mut honest) = (true, true);
    while !access.is_finished() {
        let Some(question) = connection.requests.pop_front().or_else(|| connection.receive()) else {
            std::thread::yield_now();
            continue;
        };
        let Header { id, command, flags, .. } = question.header;
        assert_eq!((command, flags), (if write { command::DMA_WRITE } else { command::DMA_READ }, 0));
        let address = u64::from_le_bytes(question.body[..8].try_into().unwrap());
        let count = u64::from_le_bytes(question.body[8..16].try_into().unwrap()) as usize;
        assert!((REMOTE + offset..REMOTE + offset + len as u64).contains(&address) && (1..=len).contains(&count));
        let mut answer = question.body[..16].to_vec();
        answer.resize(if write { 16 } else { 16 + count }, 0xab);
        let mut reply = |id, flags, error, body: &[u8]| {
            let header = Header { id, command, size: (HEADER_LEN + body.len()) as u32, flags, error };
            connection.send(&[&header.encode()[..], body].concat(), &[]);
        };
        match bytes.byte() % 8 {
            0 => {
                honest = false;
                reply(id, TYPE_REPLY, 0, &answer[..usize::from(bytes.byte()) % (answer.len() + 1)]);
            }
            1 => {
                honest = false;
                reply(id, TYPE_REPLY, 0, &[&answer[..], &[0xab; 9]].concat());
            }
            2 => {
                honest = false;
                reply(id, TYPE_REPLY | FLAG_ERROR, bytes.edge() as u32, &[]);
            }
            3 => reply(id.wrapping_add(bytes.word() | 1), TYPE_REPLY, 0, &answer),
            // A request with the ID of the expected reply.
            4 => reply(id, 0, 0, &answer),
            _ => {}
        }
        reply(id, TYPE_REPLY | bytes.byte() as u32 & FLAG_NO_REPLY, 0, &answer);
        stays = stays && connection.serve(session, own);
    }
    let (done, data) = access.join().unwrap();
    connection.message(command::DMA_UNMAP, 0, &unmap(REMOTE, 0x1000), &[]);
    stays = stays && connection.serve(session, own);
    // A reply must be used completely or be rejected. The data in a reply to a write is ignored.
    assert!(done || !honest, "the client replied correctly, but the access failed");
    assert!(!done || write || data.iter().all(|byte| *byte == 0xab), "{data:02x?}");
    stays
}

/// Returns the body of DMA_UNMAP.
fn unmap(iova: u64, size: u64) -> Vec<u8> {
    let fields = [iova, size].into_iter().flat_map(u64::to_le_bytes);
    [24, 0].into_iter().flat_map(u32::to_le_bytes).chain(fields).collect()
}

/// Returns the body of DMA_MAP.
fn map(flags: u32, iova: u64, size: u64) -> Vec<u8> {
    let fields = [0, iova, size].into_iter().flat_map(u64::to_le_bytes);
    [32, flags].into_iter().flat_map(u32::to_le_bytes).chain(fields).collect()
}

/// Modifies a file after its descriptor was passed to the server.
fn modify_file(descriptors: &Descriptors, bytes: &mut Bytes<'_>) {
    let file = File::from(descriptors.get(usize::from(bytes.byte()) % Descriptors::FILES).try_clone().unwrap());
    match bytes.byte() % 4 {
        0 => drop(file.set_len(u64::from(bytes.byte()) * 0x100)),
        1 => seal(&file, SealFlags::from_bits_retain(1 << (bytes.byte() & 3))),
        2 => drop(file.write_at(&bytes.edge().to_le_bytes(), bytes.word().into())),
        // Frees its pages without changing its length.
        _ => _ = fallocate(&file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 0, 0x2000),
    }
}

/// A served function with an idle client. Its guest memory, BAR and registers are filled with canaries.
struct Bystander {
    served: &'static Served,
    secret: File,
    _client: (Connection, Session<'static>),
}

thread_local! {
    /// Shared by all inputs, because its state must never change.
    static BYSTANDER: Bystander = Bystander::new(Box::leak(Box::new(Served::new(&CANARY))));
}

impl Bystander {
    fn new(served: &'static Served) -> Bystander {
        let secret = memory_file(0x1000, SealFlags::SHRINK);
        secret.write_all_at(&CANARY.repeat(0x1000 / 8), 0).unwrap();
        served.device.file.write_all_at(&CANARY.repeat(FILE as usize / 8), 0).unwrap();
        let (mut connection, mut session) = served.connect();
        let own = served.device.file.metadata().unwrap().ino();
        connection.message(command::VERSION, 0, b"\0\0\0\0{}\0", &[]);
        connection.message(command::DMA_MAP, 0, &map(3, SECRET, 0x1000), &[secret.as_raw_fd()]);
        assert!(connection.serve(&mut session, own));
        Bystander { served, secret, _client: (connection, session) }
    }

    fn unharmed(&self) {
        let is_intact = |file: &File, len: usize| {
            let mut bytes = vec![0; len];
            file.read_exact_at(&mut bytes, 0).unwrap();
            bytes.chunks_exact(8).all(|bytes| bytes == CANARY)
        };
        assert!(is_intact(&self.secret, 0x1000), "the idle function's guest memory was written");
        assert!(is_intact(&self.served.device.file, FILE as usize), "the idle function's BAR was written");
        let regions = self.served.device.bytes.lock().unwrap();
        assert!(
            regions.values().all(|region| region.chunks_exact(8).all(|bytes| bytes == CANARY)),
            "the idle function's registers were written"
        );
        assert_eq!((*self.served.device.resets.lock().unwrap(), self.served.memory.sections()), (0, 1));
    }
}

/// Runs one input; panics if an invariant is violated.
#[allow(unexpected_cfgs)] // set by cargo-fuzz
pub fn run(input: &[u8]) {
    BYSTANDER.with(Bystander::unharmed);
    let lowest = lowest_descriptor();
    serve(input);
    BYSTANDER.with(Bystander::unharmed);
    // Checked only under cargo-fuzz: in the test binary other threads open descriptors at the same time.
    assert!(!cfg!(fuzzing) || lowest_descriptor() == lowest, "descriptors leak");
}

fn lowest_descriptor() -> RawFd {
    File::open("/dev/null").unwrap().as_raw_fd()
}

fn serve(input: &[u8]) {
    let mut bytes = Bytes(&input[..input.len().min(MOST)]);
    let (descriptors, served) = (Descriptors::default(), Served::new(&[0; 8]));
    let own = served.device.file.metadata().unwrap().ino();
    let versed = |connection: &mut Connection, session: &mut Session<'_>| {
        connection.message(command::VERSION, 0, b"\0\0\0\0{}\0", &[]);
        assert!(connection.serve(session, own));
    };
    let (mut connection, mut session) = served.connect();
    if bytes.byte() & 1 != 0 {
        versed(&mut connection, &mut session);
    }
    for _ in 0..OPERATIONS {
        if !bytes.more() {
            break;
        }
        let mut stays = true;
        match bytes.byte() % 16 {
            0..9 => message(&mut connection, &descriptors, &mut bytes),
            9 => {
                let len = usize::from(bytes.byte() % 64);
                connection.send(bytes.take(len), &descriptors.some(&mut Bytes(&[])));
            }
            10 | 11 => engine(&served.memory, &mut bytes),
            12 | 13 => modify_file(&descriptors, &mut bytes),
            14 if bytes.byte() & 1 != 0 => {
                stays = question(&served.memory, &mut connection, &mut session, own, &mut bytes);
            }
            14 => served.vectors.trigger(),
            _ => stays = false,
        }
        stays = stays && connection.serve(&mut session, own);
        if !stays {
            let gone = *served.device.disconnects.lock().unwrap();
            drop((connection, session));
            assert_eq!(*served.device.disconnects.lock().unwrap(), gone + 1);
            assert_eq!(served.memory.sections(), 0, "memory of a disconnected client is still mapped");
            (connection, session) = served.connect();
            versed(&mut connection, &mut session);
        }
    }
    if !connection.sent.is_empty() {
        // The last message is incomplete.
        let ended = session.serve_one(&mut Vec::new(), &mut Vec::new());
        assert!(matches!(ended, Err(Closed::Stopped)), "{ended:?}");
    }
    drop((connection, session));
    let (mut connection, mut session) = served.connect();
    versed(&mut connection, &mut session);
    connection.message(command::REGION_READ, 0, &[[0; 8].as_slice(), &[0; 4], &[4, 0, 0, 0]].concat(), &[]);
    assert!(connection.serve(&mut session, own), "the next client is not served");
}
