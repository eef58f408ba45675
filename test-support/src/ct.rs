// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A driver's end of the GuC's mailbox and CT buffers (contract B.6).

/// First dword of the mailbox (VF_SW_FLAG).
pub const MAILBOX: u32 = 0x19_0240;
/// GUC_HOST_INTERRUPT, the GuC's doorbell.
pub const BELL: u32 = 0x19_01f0;

/// HXG header of a successful response, without its data.
pub const SUCCESS: u32 = 0xf000_0000;
/// HXG header of an error response, without its data.
pub const FAILURE: u32 = 0xe000_0000;

/// Dwords of each ring.
pub const RING_DWORDS: u32 = 1024;
/// Bytes of both buffers.
pub const BYTES: u64 = 0x3000;

// Offsets in the buffers, and in a descriptor.

/// Descriptor of the ring to the GuC.
pub const H2G_DESCRIPTOR: u64 = 0;
/// Descriptor of the ring from the GuC.
pub const G2H_DESCRIPTOR: u64 = 0x800;
/// The ring to the GuC.
pub const H2G: u64 = 0x1000;
/// The ring from the GuC.
pub const G2H: u64 = 0x2000;
/// Position of the reader, in a descriptor.
pub const HEAD: u64 = 0;
/// Position of the writer, in a descriptor.
pub const TAIL: u64 = 4;
/// Error status, in a descriptor.
pub const STATUS: u64 = 8;

/// The mailbox request that enables registered rings.
pub const ENABLE: [u32; 4] = [0x4509, 1, 0, 0];
/// The mailbox request that disables them.
pub const DISABLE: [u32; 4] = [0x4509, 0, 0, 0];

/// Returns the mailbox request that sets a key of the driver's own configuration; its response is [`SUCCESS`] with 1.
pub const fn configure(key: u32, dwords: u32, value: u64) -> [u32; 4] {
    [0x0508, key << 16 | dwords, value as u32, (value >> 32) as u32]
}

/// Returns the mailbox requests that register the buffers at a GGTT address, with the ring from the GuC at `g2h`.
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

/// Returns a request without a response, CT header first.
pub fn fast_request(action: u32, payload: &[u32]) -> Vec<u32> {
    message(0x8001, 2 << 28 | action, payload)
}

/// Returns a request with a response, which has the same `fence`.
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
    /// Returns the position behind the last message to the GuC.
    pub fn tail(&self) -> u32 {
        self.tail
    }

    /// Returns the position behind the last message taken.
    pub fn head(&self) -> u32 {
        self.head
    }

    /// Writes dwords behind the last message, and then the tail; `poke` writes a dword of the buffers.
    pub fn put(&mut self, message: &[u32], mut poke: impl FnMut(u64, u32)) {
        for dword in message {
            poke(H2G + u64::from(self.tail) * 4, *dword);
            self.tail = (self.tail + 1) % RING_DWORDS;
        }
        poke(H2G_DESCRIPTOR + TAIL, self.tail);
    }

    /// Returns the next message of the GuC, CT header first, if there is one; `peek` reads a dword of the buffers. The
    /// driver writes [`Rings::head`] to the descriptor afterwards.
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
