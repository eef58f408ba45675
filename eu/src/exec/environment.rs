// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What the messages of a thread reach: memory, and what the threads of a group share.

use super::memory::{Access, Memory};

/// Barriers and shared local memory of a group, and what its threads exchange.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Shared local memory.
    pub slm: Vec<u8>,
    /// Arrivals at the barrier since it was complete.
    pub arrived: u32,
    /// Times that the barrier was complete.
    pub completed: u32,
    /// The thread that executes, by its number in the group.
    pub current: u32,
    /// What each thread has given to the other one of its pair, as far as threads have executed such instructions.
    pub exchanges: Vec<Exchange>,
}

/// What a thread gives to the other one of its pair, for products of matrices of which each has half of the rows. ISA-190.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// Number of products for which it has given its rows.
    pub(super) given: u64,
    /// Number of products for which it has taken those of the other.
    pub(super) taken: u64,
    /// Rows of the last product and of the one before it: the other thread can be one product behind.
    pub(super) rows: [[u32; 32]; 2],
}

/// What a message does, as far as it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// Anything else.
    Other,
    /// An atomic operation on memory.
    Atomic,
    /// A read of shared local memory.
    SlmRead,
    /// A write of shared local memory.
    SlmWrite,
    /// An atomic operation on shared local memory.
    SlmAtomic,
}

/// Number of [`MessageKind`]s.
pub const MESSAGE_KINDS: usize = 5;

/// Instructions by kind. All that are not counted here are operations on registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindCounts {
    /// Branches, calls and returns.
    pub control: u64,
    /// Messages.
    pub messages: u64,
    /// Channels of messages, enabled or not.
    pub channels: u64,
    /// Messages by what they do, by [`MessageKind`].
    pub accesses: [u64; MESSAGE_KINDS],
    /// Barriers that a thread has passed.
    pub barriers: u64,
    /// Products of matrices (dpas, dpasw).
    pub products: u64,
}

impl KindCounts {
    /// Messages that do this.
    #[must_use]
    pub fn of(&self, kind: MessageKind) -> u64 {
        self.accesses[kind as usize]
    }

    /// The counts, each combined with that of `other`.
    #[must_use]
    pub fn each(self, other: KindCounts, of: impl Fn(u64, u64) -> u64) -> KindCounts {
        KindCounts {
            control: of(self.control, other.control),
            messages: of(self.messages, other.messages),
            channels: of(self.channels, other.channels),
            accesses: std::array::from_fn(|kind| of(self.accesses[kind], other.accesses[kind])),
            barriers: of(self.barriers, other.barriers),
            products: of(self.products, other.products),
        }
    }
}

/// What a thread's messages reach.
pub struct Environment<'e> {
    /// Memory of the dispatch.
    pub memory: &'e mut dyn Memory,
    /// State of the group.
    pub group: &'e mut Group,
    /// Accesses outside of a surface.
    pub outside: u64,
    /// Instruction and lane of the first of them.
    pub first_outside: Option<(u32, u32)>,
    /// Instructions with an illegal opcode that were passed over (EU-060).
    pub passed_over: u64,
    /// The first of them.
    pub first_passed_over: Option<u32>,
    /// What messages have cost beyond one instruction each. See [`super::Budget`].
    pub cost: u64,
    /// Instructions by kind.
    pub counts: KindCounts,
}

impl<'e> Environment<'e> {
    /// An environment in which nothing has happened.
    pub fn new(memory: &'e mut dyn Memory, group: &'e mut Group) -> Environment<'e> {
        Environment {
            memory,
            group,
            outside: 0,
            first_outside: None,
            passed_over: 0,
            first_passed_over: None,
            cost: 0,
            counts: KindCounts::default(),
        }
    }

    /// Counts an instruction that was passed over.
    #[cold]
    pub(super) fn note_passed_over(&mut self, instruction: u32) {
        self.passed_over += 1;
        self.first_passed_over.get_or_insert(instruction);
    }

    /// Counts the accesses of these lanes, which were outside of a surface.
    pub(super) fn note_lanes(&mut self, lanes: u32, instruction: u32) {
        if lanes != 0 {
            self.outside += u64::from(lanes.count_ones());
            self.first_outside.get_or_insert((instruction, lanes.trailing_zeros()));
        }
    }

    /// Counts an access outside of a surface.
    pub(super) fn note(&mut self, access: Access, instruction: u32, lane: u32) {
        if access == Access::Outside {
            self.outside += 1;
            self.first_outside.get_or_insert((instruction, lane));
        }
    }
}
