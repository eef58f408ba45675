// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Contexts as a driver creates them (contract K.1).

use alloc::vec;
use alloc::vec::Vec;

use arctic_mi::header::{CS_MMIO, FORCE_POSTED, MI_LOAD_REGISTER_IMM};
use arctic_mi::{BATCH_BUFFER_END, high, low};

/// Offset of a context's image from its status page, to which the descriptor points.
pub const IMAGE: u64 = 0x1000;

// Dword offsets of register values in an image (V8-046).

/// RING_HEAD.
pub const HEAD: u64 = 5;
/// RING_TAIL.
pub const TAIL: u64 = 7;

/// Length of an image that a driver writes.
pub const IMAGE_DWORDS: usize = END + 1;
/// MI_BATCH_BUFFER_END, which ends an image.
const END: usize = 0x5a;

/// Registers of the first load, by offset from the engine's base.
const RING_REGISTERS: [u32; 15] =
    [0x244, 0x34, 0x30, 0x38, 0x3c, 0x168, 0x140, 0x110, 0x1c0, 0x1c4, 0x1c8, 0x180, 0x2b4, 0x120, 0x124];
/// Registers of the second load: CTX_TIMESTAMP, PDP3 to PDP0.
const PAGE_TABLE_REGISTERS: [u32; 9] = [0x3a8, 0x28c, 0x288, 0x284, 0x280, 0x27c, 0x278, 0x274, 0x270];

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
        let bytes = u32::try_from(commands.len() * 4).expect("a ring has fewer bytes");
        let tail = bytes.next_multiple_of(8) % 0x1000;
        Context { ring, bytes: 0x1000, tail, root }
    }

    /// Returns the image: the ring context (xe: dg2_xcs_offsets), without context state, with the batch's end where a
    /// VF's memory-based interrupts end.
    pub fn image(&self) -> Vec<u32> {
        const LOAD: u32 = MI_LOAD_REGISTER_IMM | CS_MMIO | FORCE_POSTED;
        let mut words = vec![0; IMAGE_DWORDS];
        for (at, registers) in [(0x01, &RING_REGISTERS[..]), (0x21, &PAGE_TABLE_REGISTERS)] {
            words[at] = LOAD | (2 * u32::try_from(registers.len()).expect("few registers") - 1);
            for (word, register) in words[at + 1..].iter_mut().step_by(2).zip(registers) {
                *word = *register;
            }
        }
        // Restore inhibited, no synchronous switch.
        words[3] = 0x0009_0009;
        words[7] = self.tail;
        words[9] = low(self.ring);
        words[0xb] = self.bytes - 0x1000 | 1;
        words[0x31] = high(self.root);
        words[0x33] = low(self.root);
        words[END] = BATCH_BUFFER_END | 1;
        words
    }
}

/// Returns the lower half of the descriptor of a context with its status page at a GGTT address: valid, with a PPGTT of
/// four levels.
pub const fn descriptor(status_page: u64) -> u32 {
    low(status_page) | 1 << 8 | 3 << 3 | 1
}

/// Returns the payload of REGISTER_CONTEXT for the engine instances in `mask` of a class.
pub const fn registration(id: u32, class: u32, mask: u32, descriptor: u32) -> [u32; 11] {
    [1, id, class, mask, 0, 0, 0, 0, 0, descriptor, 0]
}
