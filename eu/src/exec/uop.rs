// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Micro-operations: instructions with operands, masks and targets resolved.

use super::fault::FaultKind;
use super::message::{Lanes, Message};
use super::operand::{Input, Output};
use super::thread::Thread;
use crate::isa::Condition;
use crate::isa::table::Control;

/// Function of a uop that works on lanes.
pub type LaneFunction = fn(&mut Thread, &Uop);

/// What a uop does.
#[derive(Clone)]
pub enum Kind {
    /// Channels that wait here are enabled; goes on at `jip`.
    Rejoin,
    /// Goes on at `jip`.
    Jump,
    /// The code at this address, relative to the instruction base, is not decoded. Channels can wait at it if `waits` is true.
    Fetch {
        /// Address.
        address: u32,
        /// See above.
        waits: bool,
    },
    /// An operation on lanes, for any state of the thread, or an instruction without effect.
    Lanes(LaneFunction),
    /// An operation on lanes for the floating-point mode of OpenCL; `Uop::toward_zero` or the general way for others.
    Floats(LaneFunction),
    /// An operation on lanes in the general way.
    General,
    /// A product of matrices.
    Dpas(LaneFunction),
    /// A product of matrices, of which the other thread of the pair has half of the rows.
    Dpasw,
    /// Indexed move.
    Movi,
    /// A branch.
    Control(Control),
    /// A message.
    Send(Box<Message>),
    /// Waits for the barrier.
    Barrier,
    /// Ends the thread with a fault: the instruction cannot be executed.
    Fault(FaultKind),
}

impl Kind {
    /// True if it leads to another uop and is no instruction.
    #[inline(always)]
    pub fn is_link(&self) -> bool {
        matches!(self, Kind::Rejoin | Kind::Jump | Kind::Fetch { .. })
    }
}

/// A micro-operation.
#[derive(Clone)]
pub struct Uop {
    /// What it does.
    pub kind: Kind,
    /// Index of its instruction in the kernel.
    pub instruction: u32,
    /// Number of lanes.
    pub size: u8,
    /// Bits for all lanes.
    pub all: u32,
    /// First channel.
    pub channel: u8,
    /// Lanes are enabled regardless of the execution mask.
    pub no_mask: bool,
    /// Predicate control; 0 for none.
    pub predicate: u8,
    /// The predicate is inverted.
    pub invert: bool,
    /// Flag register times 2 plus the number of its word.
    pub flag: u8,
    /// Condition of which the flag is written.
    pub condition: Option<Condition>,
    /// Floats are clamped to 0 to 1.
    pub saturate: bool,
    /// The accumulator is written too.
    pub acc_write: bool,
    /// The destination is an accumulator with dwords, which have more bits than its registers show. ISA-082.
    pub accumulates: bool,
    /// Writes cr0 or sr0.
    pub writes_state: bool,
    /// Depth and repeat count of a product of matrices.
    pub depth: u8,
    /// See `depth`.
    pub repeat: u8,
    /// A product of matrices that is no last one of its chain. ISA-189.
    pub chained: bool,
    /// Truth table of bfn.
    pub function: u8,
    /// Lanes of the result are floats.
    pub float: bool,
    /// The function of [`Kind::Floats`] for the mode of OpenCL with rounding toward zero; `None` for the general way.
    pub toward_zero: Option<LaneFunction>,
    /// Destination.
    pub dst: Output,
    /// Sources.
    pub src: [Input; 3],
    /// Uops at the targets.
    pub jip: u32,
    /// See `jip`.
    pub uip: u32,
    /// Uop behind a branch.
    pub next: u32,
    /// The target of a branch is in a register; not of a return, which has no other.
    pub register_target: bool,
    /// A backward goto. ISA-171.
    pub backward: bool,
}

impl Uop {
    /// The flag's bits of the lanes. ISA-062.
    #[inline(always)]
    pub fn flag_bits(&self, thread: &Thread) -> u32 {
        thread.flag(self.flag >> 1).rotate_right(u32::from(self.flag & 1) * 16 + u32::from(self.channel))
    }

    /// The predicate of the lanes; all ones without one. ISA-063.
    #[inline(always)]
    pub fn predicate_bits(&self, thread: &Thread) -> u32 {
        match self.predicate {
            0 => !0,
            1 => self.flag_bits(thread) ^ if self.invert { !0 } else { 0 },
            _ => self.grouped_predicate(thread),
        }
    }

    /// Predicates that combine the bits of several channels.
    #[cold]
    #[inline(never)]
    fn grouped_predicate(&self, thread: &Thread) -> u32 {
        let inverted = if self.invert { !0 } else { 0 };
        let shift = u32::from(self.channel);
        let word = u32::from(self.flag & 1) * 16;
        let (f0, f1) = (thread.flag(0).rotate_right(word) ^ inverted, thread.flag(1).rotate_right(word) ^ inverted);
        let bits = thread.flag(self.flag >> 1).rotate_right(word) ^ inverted;
        let group = match self.predicate {
            2 => return (f0 | f1).rotate_right(shift),
            3 => return (f0 & f1).rotate_right(shift),
            code @ 4..=13 => 2u32 << ((code - 4) / 2),
            _ => return !0,
        };
        let any = self.predicate.is_multiple_of(2);
        let mut combined = 0;
        for first in (0..32).step_by(group as usize) {
            let mask = if group == 32 { !0 } else { ((1 << group) - 1) << first };
            let holds = if any { bits & mask != 0 } else { bits & mask == mask };
            if holds {
                combined |= mask;
            }
        }
        combined.rotate_right(shift)
    }

    /// The lanes that the execution mask enables, without the predicate. ISA-061.
    #[inline(always)]
    pub fn channels(&self, thread: &Thread) -> u32 {
        let mask = if self.no_mask { !0 } else { thread.mask >> self.channel };
        mask & self.all
    }

    /// The lanes that are enabled.
    #[inline(always)]
    pub fn enabled(&self, thread: &Thread) -> u32 {
        self.channels(thread) & self.predicate_bits(thread)
    }

    /// The lanes that are enabled, of an instruction with `LANES` of them and no predicate, or one for each lane. Without
    /// the call for others, functions of operations have no registers to save.
    #[inline(always)]
    pub fn enabled_of<const LANES: usize>(&self, thread: &Thread) -> u32 {
        let mask = if self.no_mask { !0 } else { thread.mask >> self.channel };
        let predicate = match self.predicate {
            0 => !0,
            _ => self.flag_bits(thread) ^ if self.invert { !0 } else { 0 },
        };
        mask & u32::MAX >> (32 - LANES) & predicate
    }

    /// The lanes of a message.
    #[inline(always)]
    pub fn lanes(&self, thread: &Thread) -> Lanes {
        Lanes {
            size: self.size,
            channel: self.channel,
            no_mask: self.no_mask,
            enabled: self.enabled(thread),
            instruction: self.instruction,
        }
    }

    /// Writes the flag's bits of the enabled lanes.
    #[inline(always)]
    pub fn write_flag(&self, thread: &mut Thread, bits: u32, enabled: u32) {
        let shift = u32::from(self.flag & 1) * 16 + u32::from(self.channel);
        let at = super::thread::FLAGS + usize::from(self.flag >> 1) * 4;
        let old = thread.u32(at);
        let mask = enabled.rotate_left(shift);
        thread.set_u32(at, old & !mask | bits.rotate_left(shift) & mask);
    }
}
