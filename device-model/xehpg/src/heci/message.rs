// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Messages that host and firmware exchange through the window.

use arctic_sriov::number::byte;
use bitfield_struct::bitfield;

/// Header of a packet (mei: hw.h, mei_msg_hdr).
#[bitfield(u32)]
pub struct MessageHeader {
    /// Address of the firmware's client; 0 in a bus message.
    pub client: u8,
    /// Address of the host's client; 0 in a bus message.
    pub host: u8,
    /// Length in bytes.
    #[bits(9)]
    pub length: u16,
    #[bits(3)]
    __: u8,
    /// Extended header and DMA ring, which the firmware does not offer.
    #[bits(2)]
    pub unoffered: u8,
    /// The message is from the host's driver, not from one of its programs.
    pub internal: bool,
    /// Last packet of the message.
    pub complete: bool,
}

/// Bus message MEI_FLOW_CONTROL of host and firmware: the other side may send a message to a client.
pub const FLOW_CONTROL: u8 = 0x08;

/// Maximum number of bytes of a request on which the firmware's reply depends; a shorter request is padded with zeros.
pub const HEAD: usize = 8;

/// The first bytes of a message of the host.
pub type Head = [u8; HEAD];

/// Length of the firmware's longest message in bytes: the version of the data partition ([`super::update`]).
pub const LONGEST: usize = 64;

/// Maximum number of slots of a message of the firmware, including its header.
pub const MESSAGE_SLOTS: u8 = 1 + byte(LONGEST.div_ceil(4));

/// A message of the firmware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    bytes: [u8; LONGEST],
    len: usize,
}

impl Message {
    /// A message that starts with `head`.
    pub fn new(head: &[u8]) -> Self {
        Message { bytes: [0; LONGEST], len: 0 }.bytes_and(head)
    }

    /// The message with `more` after its end; what exceeds [`LONGEST`] is dropped.
    pub fn bytes_and(mut self, more: &[u8]) -> Self {
        let free = self.bytes.iter_mut().skip(self.len);
        self.len = self.len.saturating_add(free.zip(more).map(|(to, from)| *to = *from).count());
        self
    }

    /// The message with a word after its end.
    pub fn word(self, value: u16) -> Self {
        self.bytes_and(&value.to_le_bytes())
    }

    /// The message with a dword after its end.
    pub fn dword(self, value: u32) -> Self {
        self.bytes_and(&value.to_le_bytes())
    }

    /// The message, filled with zeros to a length of `len` bytes, at most [`LONGEST`].
    pub fn filled(mut self, len: usize) -> Self {
        self.len = self.len.max(len.min(LONGEST));
        self
    }

    /// The length in bytes.
    pub fn length(&self) -> u16 {
        byte(self.len).into()
    }

    /// The bytes of the message.
    #[allow(clippy::indexing_slicing, reason = "no message is longer than the longest one")]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}
