// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The driver's part of the GuC mailbox and CT buffer protocol (contract B.6).

/// First dword of the mailbox (VF_SW_FLAG).
pub const MAILBOX: u32 = 0x19_0240;
/// GUC_HOST_INTERRUPT: notifies the GuC.
pub const BELL: u32 = 0x19_01f0;

/// HXG header of a successful response, without its data.
pub const SUCCESS: u32 = 0xf000_0000;
/// HXG header of an error response, without its data.
pub const FAILURE: u32 = 0xe000_0000;

/// Size of each ring in dwords.
pub const RING_DWORDS: u32 = 1024;
/// Size of the descriptors and both rings in bytes.
pub const BYTES: u64 = 0x3000;

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
pub const ENABLE: [u32; 4] = [0x4509, 1, 0, 0];
/// The mailbox request that disables them.
pub const DISABLE: [u32; 4] = [0x4509, 0, 0, 0];

/// Returns the mailbox request that sets a KLV of the function's self-configuration; the response is [`SUCCESS`] with
/// data 1.
pub const fn configure(key: u32, dwords: u32, value: u64) -> [u32; 4] {
    [0x0508, key << 16 | dwords, value as u32, (value >> 32) as u32]
}

/// Returns the mailbox requests that register the CT buffers at GGTT address `buffers`, with the GuC-to-host ring at
/// `g2h`.
pub const fn registration(buffers: u64, g2h: u64) -> [[u32; 4]; 6] {
    [
        configure(0x0903, 2, buffers + H2G_DESCRIPTOR),
        configure(0x0902, 2, buffers + H2G),
        configure(0x0904, 1, RING_DWORDS as u64 * 4),
        configure(0x0906, 2, buffers + G2H_DESCRIPTOR),
        configure(0x0905, 2, g2h),
        configure(0x0907, 1, RING_DWORDS as u64 * 4),
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
    let mut message = vec![fence << 16 | payload.len() as u32 + 1, header];
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

    /// Returns the next message from the GuC, starting with the CT header; `None` if the ring is empty. `peek` reads a
    /// dword of the buffers. The caller must then write [`Rings::head`] to the descriptor.
    pub fn take(&mut self, mut peek: impl FnMut(u64) -> u32) -> Option<Vec<u32>> {
        if self.head == peek(G2H_DESCRIPTOR + TAIL) {
            return None;
        }
        let at = |dword: u32| G2H + u64::from(dword % RING_DWORDS) * 4;
        let header = peek(at(self.head));
        let message: Vec<u32> = (0..=header & 0xff).map(|n| peek(at(self.head + n))).collect();
        self.head = (self.head + message.len() as u32) % RING_DWORDS;
        Some(message)
    }
}
