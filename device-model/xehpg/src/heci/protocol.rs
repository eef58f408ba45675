// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What the clients of the firmware have in common: their identity, and the messages that they receive.

use super::message::Head;

/// Protocol of a client: the bytes of its GUID, as bus messages have them.
pub type Protocol = [u8; 16];

/// The bytes of a GUID with these fields.
pub const fn guid(low: u32, middle: u16, high: u16, rest: [u8; 8]) -> Protocol {
    let (low, middle, high) = (low.to_le_bytes(), middle.to_le_bytes(), high.to_le_bytes());
    let [a, b, c, d, e, f, g, h] = rest;
    [low[0], low[1], low[2], low[3], middle[0], middle[1], high[0], high[1], a, b, c, d, e, f, g, h]
}

/// A complete message of the host to a client.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// Its first bytes.
    pub head: Head,
    /// Its length in bytes.
    pub length: u32,
}
