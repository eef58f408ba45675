//! Host bus messages: what the graphics system controller's firmware answers when a driver sets up the link.
//!
//! No client sits behind this firmware, so enumeration finds none and a connection has nowhere to go.

/// The newest version of the protocol that is spoken: major, minor (xe: mei, hw.h).
const VERSION: (u8, u8) = (2, 2);

/// Status: there is no such client.
const CLIENT_NOT_FOUND: u8 = 1;
/// Status: the operation is not allowed here.
const NOT_ALLOWED: u8 = 5;

/// Bytes of a request that any reply looks at; a shorter request is padded with zeros.
pub const REQUEST_BYTES: usize = 8;
/// Bytes of the longest reply (enumeration).
pub const LONGEST_REPLY: usize = 36;

/// Command HOST_START_REQ, the only one before the link is up.
pub const HOST_START: u8 = 0x01;

/// The bytes of a reply.
pub struct Reply {
    bytes: [u8; LONGEST_REPLY],
    len: usize,
}

impl Reply {
    /// A reply of `len` bytes that begins with `head` and goes on with zeros.
    fn new<const N: usize>(len: usize, head: [u8; N]) -> Self {
        let mut bytes = [0; LONGEST_REPLY];
        bytes[..N].copy_from_slice(&head);
        Reply { bytes, len }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// A request of the host.
pub struct Command {
    /// First byte of the request.
    pub code: u8,
    /// Bytes that the request has at least.
    pub bytes: usize,
    /// What is answered, `None` where the protocol has no answer.
    pub reply: fn(&[u8; REQUEST_BYTES]) -> Option<Reply>,
}

/// Every request that a host may send (xe: mei, hw.h, MEI Bus Message Command IDs). Power gating is missing: the
/// window does not offer it.
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
    // MEI_FLOW_CONTROL: a credit for nobody
    Command { code: 0x08, bytes: 8, reply: |_| None },
    // NOTIFY
    Command { code: 0x10, bytes: 4, reply: |r| Some(Reply::new(8, [0x90, r[1], r[2], CLIENT_NOT_FOUND, r[3]])) },
    // DMA_SETUP: messages go through the window alone
    Command { code: 0x12, bytes: 40, reply: |_| Some(Reply::new(4, [0x92, NOT_ALLOWED])) },
    // CAPABILITIES: none of those asked for
    Command { code: 0x13, bytes: 4, reply: |_| Some(Reply::new(4, [0x93])) },
    // CLIENT_DMA_MAP
    Command { code: 0x14, bytes: 16, reply: |_| Some(Reply::new(2, [0x94, NOT_ALLOWED])) },
    // CLIENT_DMA_UNMAP
    Command { code: 0x15, bytes: 4, reply: |_| Some(Reply::new(2, [0x95, NOT_ALLOWED])) },
];
