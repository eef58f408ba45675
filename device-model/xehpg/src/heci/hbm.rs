// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Host bus messages (HBM): responses of the graphics system controller's firmware while a driver sets up the link.
//!
//! This firmware has no clients, so enumeration returns an empty list and connection requests are refused.

/// Newest supported version of the protocol: major, minor (xe: mei, hw.h).
const VERSION: (u8, u8) = (2, 2);

/// Status: client not found.
const CLIENT_NOT_FOUND: u8 = 1;
/// Status: operation not allowed.
const NOT_ALLOWED: u8 = 5;

/// Maximum number of request bytes that a reply depends on; a shorter request is padded with zeros.
pub const REQUEST_BYTES: usize = 8;
/// Length of the longest reply in bytes (enumeration).
pub const LONGEST_REPLY: usize = 36;

/// Command HOST_START_REQ, the only one that is valid before the link is established.
pub const HOST_START: u8 = 0x01;

/// A reply message.
pub struct Reply {
    bytes: [u8; LONGEST_REPLY],
    len: usize,
}

impl Reply {
    /// A reply of `len` bytes that starts with `head` and is filled with zeros.
    #[allow(clippy::indexing_slicing, reason = "a head is no longer than the longest reply")]
    fn new<const N: usize>(len: usize, head: [u8; N]) -> Self {
        let mut bytes = [0; LONGEST_REPLY];
        bytes[..N].copy_from_slice(&head);
        Reply { bytes, len }
    }

    /// The bytes of the message.
    #[allow(clippy::indexing_slicing, reason = "no reply is longer than the longest reply")]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// A request type of the host.
pub struct Command {
    /// Command code, the first byte of the request.
    pub code: u8,
    /// Minimum length of the request in bytes.
    pub bytes: usize,
    /// Builds the reply; `None` if the protocol defines no reply.
    pub reply: fn(&[u8; REQUEST_BYTES]) -> Option<Reply>,
}

/// All requests that a host may send (xe: mei, hw.h, MEI Bus Message Command IDs), except power gating, which the
/// window does not support.
pub const COMMANDS: [Command; 12] = [
    Command {
        code: HOST_START,
        bytes: 4,
        reply: |&[_, _, minor, major, ..]| {
            let supported = (major, minor) <= VERSION;
            Some(Reply::new(4, [0x81, supported.into(), VERSION.1, VERSION.0]))
        },
    },
    // HOST_STOP
    Command { code: 0x02, bytes: 4, reply: |_| Some(Reply::new(4, [0x82])) },
    // HOST_ENUM: the bitmap of clients is empty
    Command { code: 0x04, bytes: 4, reply: |_| Some(Reply::new(36, [0x84])) },
    // HOST_CLIENT_PROPERTIES
    Command { code: 0x05, bytes: 4, reply: |r| Some(Reply::new(28, [0x85, r[1], CLIENT_NOT_FOUND])) },
    // CLIENT_CONNECT
    Command { code: 0x06, bytes: 4, reply: |r| Some(Reply::new(4, [0x86, r[1], r[2], CLIENT_NOT_FOUND])) },
    // CLIENT_DISCONNECT
    Command { code: 0x07, bytes: 4, reply: |r| Some(Reply::new(4, [0x87, r[1], r[2], CLIENT_NOT_FOUND])) },
    // MEI_FLOW_CONTROL: ignored, as no client exists
    Command { code: 0x08, bytes: 8, reply: |_| None },
    // NOTIFY
    Command { code: 0x10, bytes: 4, reply: |r| Some(Reply::new(8, [0x90, r[1], r[2], CLIENT_NOT_FOUND, r[3]])) },
    // DMA_SETUP: refused, as messages are only exchanged through the window
    Command { code: 0x12, bytes: 40, reply: |_| Some(Reply::new(4, [0x92, NOT_ALLOWED])) },
    // CAPABILITIES: none of the requested ones is supported
    Command { code: 0x13, bytes: 4, reply: |_| Some(Reply::new(4, [0x93])) },
    // CLIENT_DMA_MAP
    Command { code: 0x14, bytes: 16, reply: |_| Some(Reply::new(2, [0x94, NOT_ALLOWED])) },
    // CLIENT_DMA_UNMAP
    Command { code: 0x15, bytes: 4, reply: |_| Some(Reply::new(2, [0x95, NOT_ALLOWED])) },
];
