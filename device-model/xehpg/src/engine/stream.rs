// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Parser position in the ring, nested batches and workaround batches, and detection of loops without progress.

use bitfield_struct::bitfield;

use crate::memory::Space;
use crate::registers::engine_fields::{RingCtl, RingHead, RingTail};

/// Maximum nesting level of batches. The batch stack in the context image has three entries (V8-163).
pub const LEVELS: usize = 3;
/// Implemented bits of a graphics address.
pub const ADDRESS: u64 = 0xffff_ffff_fffc;

/// PRT_BB_STATE, an entry of the batch stack, or BBADDR and BBADDR_UDW, which have no address space (V8-160, V8-163).
#[bitfield(u64)]
pub struct BatchEntry {
    /// There is a batch.
    pub valid: bool,
    /// The batch is in the PPGTT.
    pub ppgtt: bool,
    /// Bits 47:2 of its address.
    #[bits(46)]
    dword: u64,
    __: u16,
}

impl BatchEntry {
    /// Returns the address of the batch.
    pub const fn address(self) -> u64 {
        self.dword() << 2
    }
}

/// The ring of a context, in the GGTT (V8-065, V8-066).
#[derive(Clone, Copy, Debug, Default)]
pub struct Ring {
    /// Address of the first byte.
    pub start: u32,
    /// Size in bytes, or 0 if RING_CTL does not enable the ring.
    pub size: u32,
    /// Offset of the next command.
    pub head: u32,
    /// Offset of the first dword that is not valid.
    pub tail: u32,
}

impl Ring {
    /// Creates the ring that RING_START, RING_CTL, RING_HEAD and RING_TAIL describe.
    pub fn new(start: u32, ctl: RingCtl, head: RingHead, tail: RingTail) -> Self {
        let mut ring = Ring { start: start & !0xfff, size: ctl.bytes(), head: 0, tail: 0 };
        ring.head = ring.offset(head.offset());
        ring.set_tail(tail);
        ring
    }

    /// Sets a new RING_TAIL.
    pub fn set_tail(&mut self, tail: RingTail) {
        self.tail = self.offset(tail.offset());
    }

    #[allow(clippy::arithmetic_side_effects, reason = "the size is not 0 here")]
    fn offset(&self, offset: u32) -> u32 {
        if self.size == 0 { 0 } else { offset % self.size }
    }

    /// Returns the number of dwords from head to tail.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "head and tail are below the size, which is at most 2 MiB, or all are 0"
    )]
    pub fn dwords(&self) -> u32 {
        if self.tail >= self.head {
            self.tail.saturating_sub(self.head) / 4
        } else {
            (self.size - self.head + self.tail) / 4
        }
    }

    #[allow(clippy::arithmetic_side_effects, reason = "the product is at most the size")]
    fn advance(&mut self, dwords: u32) {
        self.head = self.offset(self.head.wrapping_add(dwords.min(self.size / 4) * 4));
    }

    #[allow(
        clippy::arithmetic_side_effects,
        reason = "the head is below the size, and the product at most the size, which is at most 2 MiB"
    )]
    fn rewind(&mut self, dwords: u32) {
        self.head = self.offset((self.head + self.size).wrapping_sub(dwords.min(self.size / 4) * 4));
    }
}

/// An active batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Whether the batch was started in the PPGTT and is therefore not privileged (V8-159).
    pub ppgtt: bool,
    /// Address of the next command.
    pub address: u64,
}

impl Batch {
    /// Encodes the batch as a stack entry or PRT_BB_STATE.
    pub fn entry(self) -> u64 {
        BatchEntry::from(self.address & ADDRESS).with_valid(true).with_ppgtt(self.ppgtt).into()
    }

    /// Decodes a stack entry or PRT_BB_STATE. Returns `None` if it is not valid.
    pub fn from_entry(entry: u64) -> Option<Self> {
        let entry = BatchEntry::from(entry);
        entry.valid().then_some(Batch { ppgtt: entry.ppgtt(), address: entry.address() })
    }
}

/// A batch that runs during a context restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workaround {
    /// INDIRECT_CTX: runs for a given number of dwords, without an end command (V8-161).
    Indirect {
        /// Remaining dwords.
        left: u32,
    },
    /// BB_PER_CTX_PTR: runs until MI_BATCH_BUFFER_END (V8-162).
    PerContext,
}

/// Source of the next commands.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// Address space.
    pub space: Space,
    /// Address of the next dword.
    address: u64,
    /// Number of available dwords. Only the ring and the indirect batch are limited.
    pub dwords: usize,
    /// For a ring, the address of its first byte and the number of dwords before it wraps.
    wrap: Option<(u64, usize)>,
}

impl Source {
    /// Returns the address of the dword at `index`.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "`index` is at least `before` and at most the number of dwords, of which a ring has less than 2^19"
    )]
    pub fn address_of(&self, index: usize) -> u64 {
        match self.wrap {
            Some((start, before)) if index >= before => start + (index - before) as u64 * 4,
            _ => self.address.wrapping_add(index as u64 * 4) & ADDRESS,
        }
    }

    /// Returns the number of contiguous dwords from `index`.
    #[allow(clippy::arithmetic_side_effects, reason = "the index is below `before`")]
    pub fn run(&self, index: usize) -> usize {
        match self.wrap {
            Some((_, before)) if index < before => before - index,
            _ => usize::MAX / 8,
        }
    }
}

/// Ring, batches and workaround batch of a loaded context.
#[derive(Clone, Copy, Debug, Default)]
pub struct ParserState {
    /// The ring.
    pub ring: Ring,
    /// Batches started from the ring, outermost first, followed by the persistent batch and its nested batches.
    batches: [Batch; 2 * LEVELS],
    depth: usize,
    /// Number of batches interrupted by the persistent batch while it runs as part of the restore (V8-160).
    interrupted: Option<usize>,
    /// Start address of the most recently started batch, for BB_START_ADDR (V8-163).
    pub started: u64,
    /// The active workaround batch, which runs before the ring and all batches.
    pub workaround: Option<(Workaround, Batch)>,
}

impl ParserState {
    /// Creates a position in the ring.
    pub fn in_ring(ring: Ring) -> Self {
        ParserState { ring, ..ParserState::default() }
    }

    /// Creates the position described by an image, with the outer batches from BB_STACK_WRITE_PORT and the current
    /// batch (V8-163). The address spaces are not clamped again, because they were clamped when the batches were
    /// started.
    pub fn in_batch(ring: Ring, stack: &[u64; LEVELS], present: Batch, started: u64) -> Self {
        let mut position = ParserState { ring, started, ..ParserState::default() };
        let outer = stack.iter().take(LEVELS - 1).filter_map(|entry| Batch::from_entry(*entry));
        for (level, batch) in outer.chain([present]).enumerate() {
            if let Some(slot) = position.batches.get_mut(level) {
                *slot = batch;
                position.depth = level.saturating_add(1);
            }
        }
        position
    }

    /// Returns the batches entered from the ring, outermost first, without the persistent batch.
    pub fn batches(&self) -> &[Batch] {
        self.batches.get(..self.interrupted.unwrap_or(self.depth)).unwrap_or_default()
    }

    /// Returns the values of BB_STACK_WRITE_PORT that restore this position, the batches outside the current batch.
    pub fn stack(&self) -> [u64; LEVELS] {
        let mut stack = [0; LEVELS];
        if let [outer @ .., _] = self.batches() {
            stack.iter_mut().zip(outer).for_each(|(entry, batch)| *entry = batch.entry());
        }
        stack
    }

    /// Enters the persistent batch, which runs before the interrupted batches and the ring (V8-160, trap T26).
    pub fn interrupt(&mut self, batch: Batch) {
        let Some(slot) = self.batches.get_mut(self.depth) else {
            debug_assert!(false, "batches of the ring leave room for those of the persistent batch");
            return;
        };
        *slot = batch;
        self.interrupted = Some(self.depth);
        self.depth = self.depth.saturating_add(1);
    }

    /// Returns the batch being executed, which may be a workaround batch, or `None` in the ring.
    #[inline]
    pub fn batch(&self) -> Option<&Batch> {
        match &self.workaround {
            Some((_, batch)) => Some(batch),
            None => self.batches.get(self.depth.checked_sub(1)?),
        }
    }

    #[inline]
    fn batch_mut(&mut self) -> Option<&mut Batch> {
        match &mut self.workaround {
            Some((_, batch)) => Some(batch),
            None => self.batches.get_mut(self.depth.checked_sub(1)?),
        }
    }

    /// Returns whether commands at this position are privileged.
    #[inline]
    pub fn privileged(&self) -> bool {
        self.batch().is_none_or(|batch| !batch.ppgtt)
    }

    /// Returns the source of the next commands. `process` is the context's address space.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "the head is at most the size (at most 2 MiB), and the start has 32 bits"
    )]
    pub fn source(&self, process: Space) -> Source {
        let ring = &self.ring;
        match self.batch() {
            Some(batch) => Source {
                space: if batch.ppgtt { process } else { Space::Ggtt },
                address: batch.address,
                dwords: match self.workaround {
                    Some((Workaround::Indirect { left }, _)) => left as usize,
                    _ => usize::MAX / 8,
                },
                wrap: None,
            },
            None => Source {
                space: Space::Ggtt,
                address: u64::from(ring.start) + u64::from(ring.head),
                dwords: ring.dwords() as usize,
                wrap: Some((u64::from(ring.start), ((ring.size - ring.head) / 4) as usize)),
            },
        }
    }

    /// Returns the address of the next command, for ACTHD and for reports.
    #[allow(clippy::arithmetic_side_effects, reason = "the start has 32 bits, and the head is below 2 MiB")]
    pub fn address(&self) -> u64 {
        self.batch().map_or(u64::from(self.ring.start) + u64::from(self.ring.head), |batch| batch.address)
    }

    /// Advances past a command of `dwords`.
    #[inline]
    pub fn advance(&mut self, dwords: u32) {
        if let Some((Workaround::Indirect { left }, _)) = &mut self.workaround {
            *left = left.saturating_sub(dwords);
        }
        match self.batch_mut() {
            Some(batch) => batch.address = batch.address.wrapping_add(u64::from(dwords) * 4) & ADDRESS,
            None => self.ring.advance(dwords),
        }
    }

    /// Advances by `bytes` in a batch.
    pub fn skip(&mut self, bytes: u64) {
        if let Some(batch) = self.batch_mut() {
            batch.address = batch.address.wrapping_add(bytes) & ADDRESS;
        }
    }

    /// Reverts [`ParserState::advance`] for a command that did not complete.
    pub fn rewind(&mut self, dwords: u32) {
        if let Some((Workaround::Indirect { left }, _)) = &mut self.workaround {
            *left = left.saturating_add(dwords);
        }
        match self.batch_mut() {
            Some(batch) => batch.address = batch.address.wrapping_sub(u64::from(dwords) * 4) & ADDRESS,
            None => self.ring.rewind(dwords),
        }
    }

    /// Enters a batch. It is one level deeper if started from the ring or if `nested`, otherwise it replaces the
    /// current batch (V8-134). Batches started by a non-privileged batch are clamped to the PPGTT and are not
    /// privileged (trap T5).
    pub fn enter(&mut self, address: u64, ppgtt: bool, nested: bool) {
        self.enter_unchecked(address, ppgtt || !self.privileged(), nested);
    }

    /// Enters a batch like [`ParserState::enter`], with privilege checks disabled (V8-170).
    pub fn enter_unchecked(&mut self, address: u64, ppgtt: bool, nested: bool) {
        let batch = Batch { ppgtt, address: address & ADDRESS };
        if let Some((_, present)) = &mut self.workaround {
            *present = batch;
            return;
        }
        self.started = batch.address;
        let floor = self.interrupted.unwrap_or(0);
        if (nested || self.depth == floor) && self.depth < floor.saturating_add(LEVELS) {
            self.depth = self.depth.saturating_add(1);
        }
        if let Some(present) = self.batch_mut() {
            *present = batch;
        }
    }

    /// Leaves the current batch or all batches. No effect in the ring. When the persistent batch ends, the interrupted
    /// batches continue.
    pub fn leave(&mut self, all: bool) {
        if self.workaround.take().is_some() {
            return;
        }
        let floor = self.interrupted.unwrap_or(0);
        self.depth = if all { floor } else { self.depth.saturating_sub(1).max(floor) };
        if self.depth == floor {
            self.interrupted = None;
        }
    }
}

/// Detects loops without progress in the command stream. Only an external write can terminate such a loop, so the
/// engine may poll it instead of executing it continuously.
#[derive(Clone, Copy, Debug, Default)]
pub struct IdleLoopDetector {
    seen: [(u64, u64); 8],
    next: usize,
    effects: u64,
    clock_read: bool,
}

impl IdleLoopDetector {
    /// Records a write that is visible to the loop or externally.
    #[inline]
    pub fn effect(&mut self) {
        self.effects = self.effects.wrapping_add(1);
    }

    /// Records a read of a clock. The loop may be waiting for time to pass.
    pub fn clock_read(&mut self) {
        self.clock_read = true;
    }

    /// Discards all recorded jumps. Called when execution continues in the ring, because they belong to an older batch.
    pub fn forget(&mut self) {
        *self = IdleLoopDetector { effects: self.effects, ..IdleLoopDetector::default() };
    }

    /// Records a jump from a batch to `target`. Returns true if a jump to `target` is already recorded and either
    /// nothing was written since that jump or a clock was read since the last jump.
    #[allow(clippy::arithmetic_side_effects, reason = "`seen` is an array with entries")]
    pub fn jump(&mut self, target: u64) -> bool {
        let stamp = self.effects.wrapping_add(1);
        let clock_read = std::mem::take(&mut self.clock_read);
        if let Some(seen) = self.seen.iter_mut().find(|(to, at)| *to == target && *at != 0) {
            let idle = seen.1 == stamp || clock_read;
            seen.1 = stamp;
            return idle;
        }
        if let Some(seen) = self.seen.get_mut(self.next) {
            *seen = (target, stamp);
        }
        self.next = self.next.wrapping_add(1) % self.seen.len();
        false
    }
}
