// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The vfio-user transport with guest memory that has no file descriptor: a relay in front of each function's socket
//! removes the descriptor from each DMA_MAP and replies to the card's DMA_READ and DMA_WRITE requests, at once or while the
//! VMM waits for the card ([`LateReplies`]).

use std::fs::File;
use std::io::{IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use arctic_gpu::vfio_user::wire::{FLAG_ERROR, HEADER_LEN, Header, MAX_FDS, TYPE_REPLY, command};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use vmm_sys_util::sock_ctrl_msg::ScmSocket;

use crate::poll::TIMEOUT;

/// A message with its file descriptors.
struct Message {
    header: Header,
    body: Vec<u8>,
    files: Vec<OwnedFd>,
}

fn receive(stream: &UnixStream) -> Option<Message> {
    let mut bytes = [0; HEADER_LEN];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC;
    let mut have = recvmsg(stream, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags).ok()?.bytes;
    let rights = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    let files = rights.flatten().collect();
    while have < HEADER_LEN {
        have += (&mut &*stream).read(&mut bytes[have..]).ok().filter(|n| *n != 0)?;
    }
    let header = Header::decode(&bytes);
    let mut body = vec![0; header.body_len()?];
    (&mut &*stream).read_exact(&mut body).ok()?;
    Some(Message { header, body, files })
}

fn send(stream: &UnixStream, header: Header, body: &[u8], fds: &[RawFd]) -> Option<()> {
    let header = Header { size: (HEADER_LEN + body.len()) as u32, ..header };
    let message = [&header.encode()[..], body].concat();
    (stream.send_with_fds(&[&message[..]], fds).ok()? == message.len()).then_some(())
}

/// A reply to the card, and the connection that it belongs to.
type HeldReply = (Arc<Mutex<UnixStream>>, Header, Vec<u8>);

#[derive(Default)]
struct Held {
    /// Number of requests that write or reset, of which the last one ends the holding; 0 if replies are sent at once.
    requests: u32,
    replies: Vec<HeldReply>,
    /// Command, address and size of the access whose reply was held back last, until the card's next access.
    access: Option<(u16, [u8; 16])>,
    /// Number of accesses that the card has made again: the reply came too late for it.
    repeated: u32,
}

/// Replies that the relays of a machine hold back, as a VMM does whose thread for these messages runs late.
#[derive(Default)]
pub struct LateReplies {
    held: Mutex<Held>,
    changed: Condvar,
}

impl LateReplies {
    /// Holds back replies until the VMM has sent as many requests of any function that write or reset: the card receives
    /// them while it executes the last of these.
    pub fn hold(&self, requests: u32) {
        self.held.lock().unwrap().requests = requests;
    }

    /// Waits until a reply is held back, that is, the card waits for guest memory; panics after [`TIMEOUT`].
    pub fn wait_for_one(&self, what: &str) {
        let held = self.held.lock().unwrap();
        let waited = self.changed.wait_timeout_while(held, TIMEOUT, |held| held.replies.is_empty()).unwrap();
        assert!(!waited.1.timed_out(), "{what}: the card does not access guest memory");
    }

    /// Number of accesses that the card has made a second time after their reply was held back.
    pub fn repeated(&self) -> u32 {
        self.held.lock().unwrap().repeated
    }

    /// Sends the reply to the access of `fields` (address and size), or holds it back.
    fn reply(&self, card: &Arc<Mutex<UnixStream>>, header: Header, fields: [u8; 16], body: Vec<u8>) -> Option<()> {
        let mut held = self.held.lock().unwrap();
        let access = (header.command, fields);
        held.repeated += u32::from(held.access.take() == Some(access));
        if held.requests == 0 {
            return send(&card.lock().unwrap(), header, &body, &[]);
        }
        held.access = Some(access);
        held.replies.push((card.clone(), header, body));
        self.changed.notify_all();
        Some(())
    }

    /// The VMM has sent a request that writes or resets.
    fn requested(&self) {
        let mut held = self.held.lock().unwrap();
        held.requests = held.requests.saturating_sub(1);
        if held.requests == 0 {
            for (card, header, body) in held.replies.drain(..) {
                // An error means that the card has closed the connection; `forward` finds it.
                let _ = send(&card.lock().unwrap(), header, &body, &[]);
            }
        }
    }
}

/// Forwards the VMM's messages to the card, without the file descriptors of guest memory.
fn forward(vmm: &UnixStream, card: &Mutex<UnixStream>, receive_from: &UnixStream, late: &LateReplies) -> Option<()> {
    loop {
        let Message { header, body, files } = receive(receive_from)?;
        let is_map = !header.is_reply() && header.command == command::DMA_MAP;
        let fds: Vec<_> = files.iter().filter(|_| !is_map).map(AsRawFd::as_raw_fd).collect();
        let sent = send(&card.lock().unwrap(), header, &body, &fds);
        if sent.is_none() {
            let _ = vmm.shutdown(std::net::Shutdown::Both);
            return None;
        }
        if matches!(header.command, command::REGION_WRITE | command::DEVICE_RESET) {
            late.requested();
        }
    }
}

/// Forwards the card's messages to the VMM, except DMA_READ and DMA_WRITE requests: replies to these with the contents
/// of `ram`, which is at guest address `base`.
fn backward(
    vmm: &UnixStream,
    card: &Arc<Mutex<UnixStream>>,
    receive_from: &UnixStream,
    (ram, base): (&File, u64),
    late: &LateReplies,
) -> Option<()> {
    loop {
        let Message { header, body, files } = receive(receive_from)?;
        if header.is_reply() {
            let fds: Vec<_> = files.iter().map(AsRawFd::as_raw_fd).collect();
            send(vmm, header, &body, &fds)?;
            continue;
        }
        let (fields, data) = body.split_first_chunk::<16>()?;
        let field = |at: usize| u64::from_le_bytes(fields[at..at + 8].try_into().unwrap());
        let (at, count) = (field(0).checked_sub(base), field(8) as usize);
        let reply = Header { flags: TYPE_REPLY, error: 0, ..header };
        let mut answer = fields.to_vec();
        let done = match header.command {
            command::DMA_READ => {
                answer.resize(16 + count, 0);
                at.is_some_and(|at| ram.read_exact_at(&mut answer[16..], at).is_ok())
            }
            _ => at.is_some_and(|at| ram.write_all_at(data, at).is_ok()),
        };
        match done {
            true => late.reply(card, reply, *fields, answer)?,
            false => {
                late.reply(card, Header { flags: TYPE_REPLY | FLAG_ERROR, error: 14, ..reply }, *fields, Vec::new())?
            }
        }
    }
}

/// Listens at `path` and relays each VMM's connection to the function's socket `card`.
pub fn relay(path: PathBuf, card: PathBuf, ram: &File, base: u64, late: &Arc<LateReplies>) {
    let listener = UnixListener::bind(&path).unwrap();
    let ram = Arc::new(ram.try_clone().unwrap());
    let late = late.clone();
    thread::spawn(move || {
        for vmm in listener.incoming().map_while(Result::ok) {
            let Ok(to_card) = UnixStream::connect(&card) else { return };
            let (Ok(from_card), Ok(to_vmm)) = (to_card.try_clone(), vmm.try_clone()) else { return };
            let to_card = Arc::new(Mutex::new(to_card));
            let (card, ram) = (to_card.clone(), ram.clone());
            let (forwards, backwards) = (late.clone(), late.clone());
            thread::spawn(move || {
                backward(&to_vmm, &card, &from_card, (&ram, base), &backwards);
                let _ = to_vmm.shutdown(std::net::Shutdown::Both);
            });
            thread::spawn(move || {
                let Ok(from_vmm) = vmm.try_clone() else { return };
                forward(&vmm, &to_card, &from_vmm, &forwards);
                let _ = to_card.lock().unwrap().shutdown(std::net::Shutdown::Both);
            });
        }
    });
}
