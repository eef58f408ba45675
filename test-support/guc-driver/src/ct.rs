// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Messages, mailbox and CT buffers (contract B.6).

use alloc::vec;
use alloc::vec::Vec;

use arctic_mi::{high, low};

use crate::actions;

/// First dword of the mailbox (VF_SW_FLAG).
pub const MAILBOX: u32 = 0x19_0240;
/// GUC_HOST_INTERRUPT: notifies the GuC.
pub const GUC_HOST_INTERRUPT: u32 = 0x19_01f0;

/// HXG header of a successful response, without its data.
pub const SUCCESS: u32 = 0xf000_0000;
/// HXG header of an error response, without its data.
pub const FAILURE: u32 = 0xe000_0000;

/// Size of each ring in dwords.
pub const RING_DWORDS: u32 = 1024;
/// Size of the descriptors and both rings in bytes.
pub const BYTES: u64 = 0x3000;

/// Size of both descriptors in dwords.
pub const DESCRIPTOR_DWORDS: usize = 0x400;

// Offsets in the buffers, and in a descriptor.

/// Descriptor of the host-to-GuC ring.
pub const H2G_DESCRIPTOR: u64 = 0;
/// Descriptor of the GuC-to-host ring.
pub const G2H_DESCRIPTOR: u64 = 0x800;
/// The host-to-GuC ring.
pub const H2G: u64 = 0x1000;
/// The GuC-to-host ring.
pub const G2H: u64 = 0x2000;
/// Read position, in a descriptor.
pub const HEAD: u64 = 0;
/// Write position, in a descriptor.
pub const TAIL: u64 = 4;
/// Error status, in a descriptor.
pub const STATUS: u64 = 8;

/// The mailbox request that enables registered rings.
pub const ENABLE: [u32; 4] = [actions::CONTROL_CTB, 1, 0, 0];
/// The mailbox request that disables them.
pub const DISABLE: [u32; 4] = [actions::CONTROL_CTB, 0, 0, 0];

/// Keys of a function's self-configuration (xe: GUC_KLV_SELF_CFG_*).
pub mod self_cfg {
    /// Address of the status page of the memory-based interrupt.
    pub const INTERRUPT_STATUS: u32 = 0x0900;
    /// Address of the source page of the memory-based interrupt.
    pub const INTERRUPT_SOURCE: u32 = 0x0901;
    /// Address of the host-to-GuC ring.
    pub const H2G: u32 = 0x0902;
    /// Address of the host-to-GuC ring's descriptor.
    pub const H2G_DESCRIPTOR: u32 = 0x0903;
    /// Length of the host-to-GuC ring in bytes.
    pub const H2G_BYTES: u32 = 0x0904;
    /// Address of the GuC-to-host ring.
    pub const G2H: u32 = 0x0905;
    /// Address of the GuC-to-host ring's descriptor.
    pub const G2H_DESCRIPTOR: u32 = 0x0906;
    /// Length of the GuC-to-host ring in bytes.
    pub const G2H_BYTES: u32 = 0x0907;

    /// Keys with GGTT addresses as values, of two dwords.
    pub const ADDRESSES: [u32; 6] = [INTERRUPT_STATUS, INTERRUPT_SOURCE, H2G, H2G_DESCRIPTOR, G2H, G2H_DESCRIPTOR];
    /// Keys with lengths as values, of one dword.
    pub const LENGTHS: [u32; 2] = [H2G_BYTES, G2H_BYTES];

    /// Returns the header of the KLV: key and number of dwords of the value.
    pub const fn klv(key: u32) -> u32 {
        key << 16 | if matches!(key, H2G_BYTES | G2H_BYTES) { 1 } else { 2 }
    }
}

/// Returns the mailbox request that sets a KLV of the function's self-configuration ([`self_cfg`]); the response is
/// [`SUCCESS`] with data 1.
pub const fn configure(key: u32, value: u64) -> [u32; 4] {
    [actions::SELF_CFG, self_cfg::klv(key), low(value), high(value)]
}

/// Returns the mailbox requests that register the CT buffers at GGTT address `buffers`, with the GuC-to-host ring at
/// `g2h`.
pub const fn registration(buffers: u64, g2h: u64) -> [[u32; 4]; 6] {
    [
        configure(self_cfg::H2G_DESCRIPTOR, buffers + H2G_DESCRIPTOR),
        configure(self_cfg::H2G, buffers + H2G),
        configure(self_cfg::H2G_BYTES, RING_DWORDS as u64 * 4),
        configure(self_cfg::G2H_DESCRIPTOR, buffers + G2H_DESCRIPTOR),
        configure(self_cfg::G2H, g2h),
        configure(self_cfg::G2H_BYTES, RING_DWORDS as u64 * 4),
    ]
}

/// Returns a fast request, which has no response, starting with the CT header.
pub fn fast_request(action: u32, payload: &[u32]) -> Vec<u32> {
    message(0x8001, 2 << 28 | action, payload)
}

/// Returns a request, starting with the CT header; its response has the same `fence`.
pub fn request(fence: u32, action: u32, payload: &[u32]) -> Vec<u32> {
    message(fence, action, payload)
}

fn message(fence: u32, header: u32, payload: &[u32]) -> Vec<u32> {
    let dwords = u32::try_from(payload.len()).expect("a message has fewer dwords") + 1;
    let mut message = vec![fence << 16 | dwords, header];
    message.extend(payload);
    message
}

/// The driver's positions in both rings.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rings {
    tail: u32,
    head: u32,
}

impl Rings {
    /// Returns the write position in the host-to-GuC ring, in dwords.
    pub fn tail(&self) -> u32 {
        self.tail
    }

    /// Returns the read position in the GuC-to-host ring, in dwords.
    pub fn head(&self) -> u32 {
        self.head
    }

    /// Appends `message` to the host-to-GuC ring, then writes the tail; `poke` writes a dword of the buffers.
    pub fn put(&mut self, message: &[u32], mut poke: impl FnMut(u64, u32)) {
        for dword in message {
            poke(H2G + u64::from(self.tail) * 4, *dword);
            self.tail = (self.tail + 1) % RING_DWORDS;
        }
        poke(H2G_DESCRIPTOR + TAIL, self.tail);
    }

    /// Writes zeros up to the end of the host-to-GuC ring, if a message of `dwords` does not fit before it, as xe does.
    /// The message must follow.
    pub fn pad(&mut self, dwords: usize, mut poke: impl FnMut(u64, u32)) {
        let rest = RING_DWORDS - self.tail;
        if dwords > rest as usize {
            (self.tail..RING_DWORDS).for_each(|dword| poke(H2G + u64::from(dword) * 4, 0));
            self.tail = 0;
        }
    }

    /// Returns the next message from the GuC, starting with the CT header; `None` if the ring is empty. `peek` reads a
    /// dword of the buffers. The caller must then write [`Rings::head`] to the descriptor.
    pub fn take(&mut self, mut peek: impl FnMut(u64) -> u32) -> Option<Vec<u32>> {
        if self.head == peek(G2H_DESCRIPTOR + TAIL) {
            return None;
        }
        let at = |dword: u32| G2H + u64::from(dword % RING_DWORDS) * 4;
        let header = peek(at(self.head));
        let message: Vec<u32> = (0..=header & 0xff).map(|n| peek(at(self.head + n))).collect();
        self.head = (self.head + (header & 0xff) + 1) % RING_DWORDS;
        Some(message)
    }
}
