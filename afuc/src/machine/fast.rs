// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The short way for instructions that use general registers only: the same results as the long way, which executes all
//! others.

use crate::isa::{Generation, Instruction, Op, decode, register};

use super::{Dispatch, Machine, alu};

/// A word of the image, decoded once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Decoded {
    /// `None` if the word cannot be executed.
    pub instruction: Option<Instruction>,
    class: Class,
}

/// How the short way executes an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// It does not.
    Long,
    Nop,
    /// `mov` of an immediate
    Move,
    /// ALU operation with an immediate as its second source.
    Immediate,
    /// ALU operation of registers.
    Register,
    /// Branch if the source is an immediate, or is not.
    Compare(bool),
    /// Branch if a bit is set, or is not.
    Bit(bool),
}

impl Decoded {
    /// Decodes a word. A word with bits 31:27 = 0 is a NOP whatever its data is; on a6xx and later one with a top byte of 0
    /// is illegal (AF-050, AF-051).
    pub fn new(word: u32, generation: Generation) -> Self {
        let instruction = decode(word, generation).or_else(|| {
            let is_nop = word >> 27 == 0 && (generation == Generation::A5 || word >> 24 & 3 != 0);
            let mut nop = Instruction::new(Op::Nop);
            nop.rep = word >> 26 & 1 != 0;
            is_nop.then_some(nop)
        });
        Self { instruction, class: instruction.map_or(Class::Long, |instruction| class(&instruction)) }
    }
}

fn class(i: &Instruction) -> Class {
    let general = |registers: &[u8]| registers.iter().all(|number| *number < register::MEMDATA_ADDR);
    if i.rep || i.extra != 0 || i.peek {
        return Class::Long;
    }
    match i.op {
        Op::Nop => Class::Nop,
        Op::MovImm if general(&[i.dst]) => Class::Move,
        op if op.is_alu_immediate() && general(&[i.dst, i.src1]) => Class::Immediate,
        Op::Add
        | Op::Addhi
        | Op::Sub
        | Op::Subhi
        | Op::And
        | Op::Or
        | Op::Xor
        | Op::Shl
        | Op::Ushr
        | Op::Ishr
        | Op::Rot
        | Op::Mul8
        | Op::Min
        | Op::Max
        | Op::Cmp
        | Op::Bic
        | Op::Setbit
            if general(&[i.dst, i.src1, i.src2]) =>
        {
            Class::Register
        }
        Op::BreqImm if general(&[i.src1]) => Class::Compare(true),
        Op::BrneImm if general(&[i.src1]) => Class::Compare(false),
        Op::BreqBit if general(&[i.src1]) => Class::Bit(true),
        Op::BrneBit if general(&[i.src1]) => Class::Bit(false),
        _ => Class::Long,
    }
}

impl Machine {
    /// Executes instructions while the short way has them, until `end` instructions were executed or the packet's budget
    /// is spent.
    pub(super) fn run_short(&mut self, end: u64) {
        if self.dispatch != Dispatch::None || self.bus.is_preempted() || self.preempt_every.is_some() {
            return;
        }
        let end = end.min(self.packet_start.saturating_add(self.packet_budget));
        let offset = self.offset;
        while self.executed < end {
            let at = offset.wrapping_add(self.pc as usize);
            let Some(Decoded { instruction: Some(i), class }) = self.code.get(at) else { return };
            let a = self.gpr[usize::from(i.src1 & 31)];
            let taken = match class {
                Class::Long => return,
                Class::Nop => false,
                Class::Move => {
                    self.gpr[usize::from(i.dst & 31)] = i.imm << (i.src1 & 31);
                    false
                }
                Class::Immediate => {
                    self.gpr[usize::from(i.dst & 31)] = alu::compute(i.op, a, i.imm, &mut self.carry);
                    false
                }
                Class::Register => {
                    let b = self.gpr[usize::from(i.src2 & 31)];
                    self.gpr[usize::from(i.dst & 31)] = alu::compute(i.op, a, b, &mut self.carry);
                    false
                }
                Class::Compare(equal) => (a == u32::from(i.src2)) == *equal,
                Class::Bit(set) => (a >> (i.src2 & 31) & 1 != 0) == *set,
            };
            self.gpr[usize::from(register::ZERO)] = 0;
            let target = taken.then(|| self.pc.wrapping_add_signed(i.offset()));
            if taken && self.pending.is_some() {
                // Both are taken: the long way reports it.
                return;
            }
            self.pc = std::mem::replace(&mut self.pending, target).unwrap_or(self.pc.wrapping_add(1));
            self.executed += 1;
        }
    }
}
