// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The vfio-user transport with guest memory that has no file descriptor: a relay in front of each function's socket
//! removes the descriptor from each DMA_MAP and replies to the card's DMA_READ and DMA_WRITE requests.

use std::fs::File;
use std::io::{IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;

use arctic_gpu::vfio_user::wire::{FLAG_ERROR, HEADER_LEN, Header, MAX_FDS, TYPE_REPLY, command};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use vmm_sys_util::sock_ctrl_msg::ScmSocket;

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

/// Forwards the VMM's messages to the card, without the file descriptors of guest memory.
fn forward(vmm: &UnixStream, card: &Mutex<UnixStream>, receive_from: &UnixStream) -> Option<()> {
    loop {
        let Message { header, body, files } = receive(receive_from)?;
        let is_map = !header.is_reply() && header.command == command::DMA_MAP;
        let fds: Vec<_> = files.iter().filter(|_| !is_map).map(AsRawFd::as_raw_fd).collect();
        let sent = send(&card.lock().unwrap(), header, &body, &fds);
        if sent.is_none() {
            let _ = vmm.shutdown(std::net::Shutdown::Both);
            return None;
        }
    }
}

/// Forwards the card's messages to the VMM, except DMA_READ and DMA_WRITE requests: replies to these with the contents
/// of `ram`, which is at guest address `base`.
fn backward(
    vmm: &UnixStream,
    card: &Mutex<UnixStream>,
    receive_from: &UnixStream,
    ram: &File,
    base: u64,
) -> Option<()> {
    loop {
        let Message { header, body, files } = receive(receive_from)?;
        if header.is_reply() {
            let fds: Vec<_> = files.iter().map(AsRawFd::as_raw_fd).collect();
            send(vmm, header, &body, &fds)?;
            continue;
        }
        let (fields, data) = body.split_at_checked(16)?;
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
        let card = card.lock().unwrap();
        match done {
            true => send(&card, reply, &answer, &[])?,
            false => send(&card, Header { flags: TYPE_REPLY | FLAG_ERROR, error: 14, ..reply }, &[], &[])?,
        }
    }
}

/// Listens at `path` and relays each VMM's connection to the function's socket `card`.
pub fn relay(path: PathBuf, card: PathBuf, ram: &File, base: u64) {
    let listener = UnixListener::bind(&path).unwrap();
    let ram = Arc::new(ram.try_clone().unwrap());
    thread::spawn(move || {
        for vmm in listener.incoming().map_while(Result::ok) {
            let Ok(to_card) = UnixStream::connect(&card) else { return };
            let (Ok(from_card), Ok(to_vmm)) = (to_card.try_clone(), vmm.try_clone()) else { return };
            let to_card = Arc::new(Mutex::new(to_card));
            let (card, ram) = (to_card.clone(), ram.clone());
            thread::spawn(move || {
                backward(&to_vmm, &card, &from_card, &ram, base);
                let _ = to_vmm.shutdown(std::net::Shutdown::Both);
            });
            thread::spawn(move || {
                let Ok(from_vmm) = vmm.try_clone() else { return };
                forward(&vmm, &to_card, &from_vmm);
                let _ = to_card.lock().unwrap().shutdown(std::net::Shutdown::Both);
            });
        }
    });
}
