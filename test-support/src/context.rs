// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Contexts as a driver creates them (contract K.1).

use arctic_device_model::generation::XE_HPG;

/// Offset of a context's image from its status page, to which the descriptor points.
pub const IMAGE: u64 = 0x1000;

// Dword offsets of register values in an image (V8-046).

/// RING_HEAD.
pub const HEAD: u64 = 5;
/// RING_TAIL.
pub const TAIL: u64 = 7;

/// Contents of the image of a context that has not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Context {
    /// GGTT address of the ring.
    pub ring: u64,
    /// Size of the ring in bytes.
    pub bytes: u32,
    /// Offset after the last command in the ring.
    pub tail: u32,
    /// Address of the page tables' root, or 0.
    pub root: u64,
}

impl Context {
    /// Returns a context that executes `commands` from the start of a ring of one page.
    pub fn of(ring: u64, commands: &[u32], root: u64) -> Self {
        let tail = (commands.len() as u32 * 4).next_multiple_of(8) % 0x1000;
        Context { ring, bytes: 0x1000, tail, root }
    }

    /// Returns the image: the ring context, without context state.
    pub fn image(&self) -> Vec<u32> {
        let mut words = XE_HPG.blank_image();
        // Restore inhibited, no synchronous switch.
        words[3] = 0x0009_0009;
        words[TAIL as usize] = self.tail;
        words[9] = self.ring as u32;
        words[0xb] = self.bytes - 0x1000 | 1;
        words[0x31] = (self.root >> 32) as u32;
        words[0x33] = self.root as u32;
        words
    }
}

/// Returns the lower half of the descriptor of a context with its status page at a GGTT address: valid, with a PPGTT of
/// four levels.
pub const fn descriptor(status_page: u64) -> u32 {
    status_page as u32 | 1 << 8 | 3 << 3 | 1
}

/// Returns the payload of REGISTER_CONTEXT for the engine instances in `mask` of a class.
pub const fn registration(id: u32, class: u32, mask: u32, descriptor: u32) -> [u32; 11] {
    [1, id, class, mask, 0, 0, 0, 0, 0, descriptor, 0]
}
