// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Clients of the firmware, which programs and drivers of the host connect to, and their connections (mei: hbm.c,
//! client.c).
//!
//! Each side of a connection sends a message only after the other one has permitted it by a flow control message. The
//! firmware permits one message of the host at a time, and the next one when it has sent the reply.

use super::controller::Controller;
use super::message::{FLOW_CONTROL, HEAD, Head, Message, MessageHeader};
use super::protocol::{Protocol, Request};
use super::{mkhi, update};

/// A client of the firmware. It accepts one connection.
pub struct Client {
    /// Address on the bus, not 0.
    pub address: u8,
    /// The protocol.
    pub protocol: Protocol,
    /// Version of the protocol.
    pub version: u8,
    /// Maximum length of a message in bytes.
    pub longest: u32,
    /// Returns the reply to a message; `None` if the protocol defines none.
    pub reply: fn(&Controller, &Request) -> Option<Message>,
}

/// Clients of HECI1 (GSC). The clients for protected content and HDCP are not modelled.
pub const GSC_CLIENTS: &[Client] = &[];

/// Clients of HECI2 (GSCFI), those of which versions are read. The addresses are assumptions.
pub const GSCFI_CLIENTS: &[Client] = &[
    Client { address: 1, protocol: mkhi::PROTOCOL, version: 1, longest: 0x1000, reply: mkhi::reply },
    Client { address: 2, protocol: update::PROTOCOL, version: 1, longest: 0x100c, reply: update::reply },
];

/// Maximum number of clients of a window.
const MOST: usize = 2;

const _: () = assert!(GSC_CLIENTS.len() <= MOST && GSCFI_CLIENTS.len() <= MOST);

/// The host has violated the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation;

/// Outcome of a request for a connection (mei: hw.h, mei_hbm_status).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// Done.
    Success = 0,
    /// There is no such client or no such connection.
    NotFound = 1,
    /// The client is connected.
    AlreadyExists = 2,
    /// The operation is not allowed.
    NotAllowed = 5,
}

/// Connection of a client of the firmware with one of the host.
#[derive(Clone, Copy, Debug, Default)]
struct Connection {
    /// Address of the host's client; 0 while the client is not connected.
    host: u8,
    /// The host may send a message.
    open: bool,
    /// The firmware must send a flow control message, which sets `open`.
    grant: bool,
    /// Number of messages that the host permits the firmware to send.
    credits: u8,
    /// The message of which the host has sent the beginning: its first bytes, and its length so far.
    head: Head,
    received: u32,
    /// A reply for which the host has not given a credit yet.
    reply: Option<Message>,
}

impl Connection {
    /// Adds a packet of `length` bytes, which starts with `head`, to the message that the host is sending.
    fn append(&mut self, head: &Head, length: u16) {
        let start = usize::try_from(self.received).unwrap_or(HEAD);
        let bytes = head.iter().take(length.into());
        self.head.iter_mut().skip(start).zip(bytes).for_each(|(to, from)| *to = *from);
        self.received = self.received.saturating_add(length.into());
    }

    /// Returns the message that is complete, and makes room for the next one.
    fn take(&mut self) -> Request {
        Request { head: std::mem::take(&mut self.head), length: std::mem::take(&mut self.received) }
    }
}

/// The clients of a window with their connections.
pub struct Clients {
    clients: &'static [Client],
    connections: [Connection; MOST],
}

impl Clients {
    /// `clients`, none of which is connected.
    pub fn new(clients: &'static [Client]) -> Self {
        Clients { clients, connections: [Connection::default(); MOST] }
    }

    /// Ends all connections.
    pub fn disconnect_all(&mut self) {
        self.connections = [Connection::default(); MOST];
    }

    /// All clients.
    pub fn all(&self) -> &'static [Client] {
        self.clients
    }

    /// The client at `address`.
    pub fn client(&self, address: u8) -> Option<&'static Client> {
        self.clients.iter().find(|client| client.address == address)
    }

    /// The client at `address` with its connection, if it is connected with `host`.
    fn connected(&mut self, address: u8, host: u8) -> Option<(&'static Client, &mut Connection)> {
        let mut pairs = self.clients.iter().zip(&mut self.connections);
        pairs.find(|(client, connection)| host != 0 && client.address == address && connection.host == host)
    }

    /// Connects the client at `address` with `host`.
    pub fn connect(&mut self, address: u8, host: u8) -> Status {
        let mut pairs = self.clients.iter().zip(&mut self.connections);
        match pairs.find(|(client, _)| client.address == address) {
            None => Status::NotFound,
            // Address 0 of the host is that of clients without connections.
            Some(_) if host == 0 => Status::NotAllowed,
            Some((_, connection)) if connection.host != 0 => Status::AlreadyExists,
            Some((_, connection)) => {
                *connection = Connection { host, grant: true, ..Connection::default() };
                Status::Success
            }
        }
    }

    /// Ends the connection of the client at `address` with `host`.
    pub fn disconnect(&mut self, address: u8, host: u8) -> Status {
        let Some((_, connection)) = self.connected(address, host) else { return Status::NotFound };
        *connection = Connection::default();
        Status::Success
    }

    /// Returns whether the client at `address` is connected with `host`.
    pub fn is_connected(&mut self, address: u8, host: u8) -> bool {
        self.connected(address, host).is_some()
    }

    /// Handles a flow control message of the host: the firmware may send one more message. Without a connection it has no
    /// effect: the firmware may have ended it.
    pub fn permit(&mut self, address: u8, host: u8) {
        if let Some((_, connection)) = self.connected(address, host) {
            connection.credits = connection.credits.saturating_add(1);
        }
    }

    /// Handles a packet of the host to a client, which starts with `head`. Returns whether there is such a connection.
    pub fn receive(&mut self, controller: &Controller, header: MessageHeader, head: &Head) -> Result<bool, Violation> {
        let Some((client, connection)) = self.connected(header.client(), header.host()) else { return Ok(false) };
        connection.append(head, header.length());
        if !connection.open || header.unoffered() != 0 || connection.received > client.longest {
            return Err(Violation);
        }
        if header.complete() {
            connection.open = false;
            connection.reply = (client.reply)(controller, &connection.take());
            connection.grant = connection.reply.is_none();
        }
        Ok(true)
    }

    /// Removes and returns the next message that the firmware may send to the host, with its header.
    pub fn next_message(&mut self) -> Option<(MessageHeader, Message)> {
        self.clients.iter().zip(&mut self.connections).find_map(|(client, connection)| {
            if connection.credits > 0
                && let Some(reply) = connection.reply.take()
            {
                connection.credits = connection.credits.saturating_sub(1);
                connection.grant = true;
                return Some((MessageHeader::new().with_client(client.address).with_host(connection.host), reply));
            }
            std::mem::take(&mut connection.grant).then(|| {
                connection.open = true;
                let message = Message::new(&[FLOW_CONTROL, client.address, connection.host]).filled(8);
                (MessageHeader::new(), message)
            })
        })
    }
}
