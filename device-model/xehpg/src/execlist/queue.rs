// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Submission queue and execution queue of an engine (V8-010..020).

use arctic_sriov::number::{byte, count};

use super::descriptor::Descriptor;
use crate::registers::EngineRegisters;
use crate::registers::engine_offsets::EXECLIST_SQ_CONTENTS;

/// Number of elements of a queue.
pub const ELEMENTS: usize = 8;

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

    /// Reads the submission queue of an engine; its contents do not change (V8-015).
    pub fn sample(registers: EngineRegisters<'_>) -> Self {
        Queue(std::array::from_fn(|n| registers.get64(element(count(n))).into()))
    }

    /// The first valid element from `from` on.
    pub fn valid_from(&self, from: usize) -> Option<(usize, Descriptor)> {
        self.0.iter().copied().enumerate().skip(from).find(|(_, descriptor)| descriptor.valid())
    }
}

/// Returns the offset of element `n` of the submission queue from the engine's base.
#[allow(clippy::arithmetic_side_effects, reason = "the queue has 8 elements")]
fn element(n: u32) -> u32 {
    EXECLIST_SQ_CONTENTS + 8 * n
}

/// Write position of ELSP: the high dword of an element, then its low dword, from E0 to E7, wrapping to E0 (V8-011;
/// i915: write_desc).
#[derive(Clone, Copy, Debug, Default)]
pub struct SubmitPort {
    element: u8,
    high: Option<u32>,
}

impl SubmitPort {
    /// Handles a written dword. The second dword of an element stores the element in the engine's submission queue.
    #[allow(clippy::arithmetic_side_effects, reason = "the element is below 8")]
    pub fn push(&mut self, registers: EngineRegisters<'_>, value: u32) {
        let Some(high) = self.high.take() else {
            self.high = Some(value);
            return;
        };
        registers.set64(element(self.element.into()), u64::from(high) << 32 | u64::from(value));
        self.element = (self.element + 1) % byte(ELEMENTS);
    }
}
