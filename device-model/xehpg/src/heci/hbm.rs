// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Host bus messages (HBM): setup of the link, enumeration of the firmware's clients and connections with them.

use super::client::{Clients, Status};
use super::message::{FLOW_CONTROL, Head, Message};

/// Newest supported version of the protocol: major, minor (xe: mei, hw.h).
const VERSION: (u8, u8) = (2, 2);

/// Command HOST_START_REQ, the only one that is valid before the link is established.
pub const HOST_START: u8 = 0x01;

/// Number of slots of a flow control message, including its header.
pub const FLOW_CONTROL_SLOTS: u8 = 3;

/// A request type of the host.
pub struct Command {
    /// Command code, the first byte of the request.
    pub code: u8,
    /// Minimum length of the request in bytes.
    pub bytes: usize,
    /// Executes the request and builds the reply; `None` if the protocol defines no reply.
    pub reply: fn(&mut Clients, &Head) -> Option<Message>,
}

/// All requests that a host may send (xe: mei, hw.h, MEI Bus Message Command IDs), except power gating, which the
/// window does not support.
pub const COMMANDS: [Command; 12] = [
    Command {
        code: HOST_START,
        bytes: 4,
        reply: |clients, &[_, _, minor, major, ..]| {
            clients.disconnect_all();
            let supported = (major, minor) <= VERSION;
            Some(Message::new(&[0x81, supported.into(), VERSION.1, VERSION.0]))
        },
    },
    // HOST_STOP
    Command {
        code: 0x02,
        bytes: 4,
        reply: |clients, _| {
            clients.disconnect_all();
            Some(Message::new(&[0x82]).filled(4))
        },
    },
    // HOST_ENUM
    Command { code: 0x04, bytes: 4, reply: |clients, _| Some(addresses(clients)) },
    // HOST_CLIENT_PROPERTIES
    Command { code: 0x05, bytes: 4, reply: |clients, r| Some(properties(clients, r[1])) },
    // CLIENT_CONNECT
    Command {
        code: 0x06,
        bytes: 4,
        reply: |clients, r| Some(Message::new(&[0x86, r[1], r[2], clients.connect(r[1], r[2]) as u8])),
    },
    // CLIENT_DISCONNECT
    Command {
        code: 0x07,
        bytes: 4,
        reply: |clients, r| Some(Message::new(&[0x87, r[1], r[2], clients.disconnect(r[1], r[2]) as u8])),
    },
    Command {
        code: FLOW_CONTROL,
        bytes: 8,
        reply: |clients, r| {
            clients.permit(r[1], r[2]);
            None
        },
    },
    // NOTIFY: no client sends notifications
    Command {
        code: 0x10,
        bytes: 4,
        reply: |clients, r| {
            let connected = clients.is_connected(r[1], r[2]);
            let status = if connected { Status::NotAllowed } else { Status::NotFound };
            Some(Message::new(&[0x90, r[1], r[2], status as u8, r[3]]).filled(8))
        },
    },
    // DMA_SETUP: refused, as messages are only exchanged through the window
    Command { code: 0x12, bytes: 40, reply: |_, _| Some(Message::new(&[0x92, Status::NotAllowed as u8]).filled(4)) },
    // CAPABILITIES: none of the requested ones is supported
    Command { code: 0x13, bytes: 4, reply: |_, _| Some(Message::new(&[0x93]).filled(4)) },
    // CLIENT_DMA_MAP
    Command { code: 0x14, bytes: 16, reply: |_, _| Some(Message::new(&[0x94, Status::NotAllowed as u8])) },
    // CLIENT_DMA_UNMAP
    Command { code: 0x15, bytes: 4, reply: |_, _| Some(Message::new(&[0x95, Status::NotAllowed as u8])) },
];

/// Reply to HOST_ENUM: the bit of each client's address.
fn addresses(clients: &Clients) -> Message {
    let mut valid = [0_u8; 32];
    for client in clients.all() {
        if let Some(byte) = valid.get_mut(usize::from(client.address >> 3)) {
            *byte |= 1 << (client.address & 7);
        }
    }
    Message::new(&[0x84, 0, 0, 0]).bytes_and(&valid)
}

/// Reply to HOST_CLIENT_PROPERTIES: the client accepts one connection, and has no fixed address and no receive buffer
/// that connections share.
fn properties(clients: &Clients, address: u8) -> Message {
    let message = |status: Status| Message::new(&[0x85, address, status as u8, 0]);
    match clients.client(address) {
        Some(client) => {
            let properties = message(Status::Success).bytes_and(&client.protocol);
            properties.bytes_and(&[client.version, 1, 0, 0]).dword(client.longest)
        }
        None => message(Status::NotFound).filled(28),
    }
}
