// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Submission queue and execution queue of an engine (V8-010..020).

use arctic_sriov::number::{byte, count};

use super::descriptor::Descriptor;
use crate::registers::RegisterFile;

/// Number of elements of a queue.
pub const ELEMENTS: usize = 8;
/// RING_EXECLIST_SQ_CONTENTS: offset of the first of sixteen dwords.
pub const SQ_CONTENTS: u32 = 0x510;

/// Eight descriptors, E0 to E7.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queue(pub [Descriptor; ELEMENTS]);

impl Queue {
    /// A queue of one element.
    pub fn of(descriptor: Descriptor) -> Self {
        let mut queue = Queue::default();
        queue.0[0] = descriptor;
        queue
    }

    /// Reads the submission queue of the engine at `base`; its contents do not change (V8-015).
    #[allow(clippy::arithmetic_side_effects, reason = "offsets in an engine's block; the queue has 8 elements")]
    pub fn sample(registers: &RegisterFile, base: u32) -> Self {
        let dword = |n: usize| u64::from(registers.value(base + SQ_CONTENTS + 4 * count(n)));
        Queue(std::array::from_fn(|n| Descriptor(dword(2 * n) | dword(2 * n + 1) << 32)))
    }

    /// The first valid element from `from` on.
    pub fn valid_from(&self, from: usize) -> Option<(usize, Descriptor)> {
        self.0.iter().copied().enumerate().skip(from).find(|(_, descriptor)| descriptor.valid())
    }
}

/// Write position of ELSP: the high dword of an element, then its low dword, from E0 to E7, wrapping to E0 (V8-011;
/// i915: write_desc).
#[derive(Clone, Copy, Debug, Default)]
pub struct SubmitPort {
    element: u8,
    high: Option<u32>,
}

impl SubmitPort {
    /// Handles a written dword. The second dword of an element stores the element in the submission queue of the engine
    /// at `base`.
    #[allow(clippy::arithmetic_side_effects, reason = "offsets in an engine's block; the element is below 8")]
    pub fn push(&mut self, registers: &RegisterFile, base: u32, value: u32) {
        let Some(high) = self.high.take() else {
            self.high = Some(value);
            return;
        };
        let at = base + SQ_CONTENTS + 8 * u32::from(self.element);
        registers.set(at, value);
        registers.set(at + 4, high);
        self.element = (self.element + 1) % byte(ELEMENTS);
    }
}
