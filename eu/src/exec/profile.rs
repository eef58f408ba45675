// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Instructions by the pipeline and the operands that they have, for performance counters (V13-250, V13-254).

use super::Observer;
use super::program::Program;
use super::thread::{SR, Thread};
use crate::isa::table::{Execute, LaneOp};
use crate::isa::{Instruction, Type};

/// Where an instruction is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pipe {
    /// In none that has a counter: nop, sync.
    None,
    /// Floats of 16 bits.
    Float16,
    /// Floats of 32 bits.
    Float32,
    /// Integers of up to 16 bits.
    Integer16,
    /// Integers of 32 bits, and copies of 64.
    Integer32,
    /// Extended math.
    Math,
    /// Products of matrices of bfloat16.
    SystolicBf16,
    /// Products of matrices of half-precision floats.
    SystolicFp16,
    /// Products of matrices of integers.
    SystolicInt8,
    /// Messages.
    Send,
    /// Branches, calls and returns.
    Control,
}

/// Number of [`Pipe`]s.
const PIPES: usize = Pipe::Control as usize + 1;

/// Which operands an instruction has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operands {
    /// One, or those of a message or a branch.
    Other,
    /// One, which is copied.
    Mov,
    /// Two.
    Binary,
    /// Three.
    Ternary,
}

/// Number of [`Operands`].
const OPERANDS: usize = Operands::Ternary as usize + 1;

/// Pipeline and operands of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstructionClass {
    /// Pipeline.
    pub pipe: Pipe,
    /// Operands.
    pub operands: Operands,
}

impl InstructionClass {
    /// That of bytes that are no instruction.
    pub(super) const NONE: InstructionClass = InstructionClass { pipe: Pipe::None, operands: Operands::Other };

    /// That of an instruction. An operation is one on floats if an operand is a float, and has the width of its widest operand.
    pub fn of(instruction: &Instruction) -> InstructionClass {
        let sources = instruction.sources();
        let is_mov = matches!(instruction.row.execute, Execute::Lane(LaneOp::Mov) | Execute::Movi);
        let computes = matches!(instruction.row.execute, Execute::Lane(_) | Execute::Dpas);
        let operands = match sources {
            _ if is_mov => Operands::Mov,
            2 if computes => Operands::Binary,
            3 if computes => Operands::Ternary,
            _ => Operands::Other,
        };
        let pipe = match instruction.row.execute {
            Execute::Lane(LaneOp::Math) => Pipe::Math,
            Execute::Lane(_) | Execute::Movi => {
                let mut types = instruction.src.iter().take(sources).map(|source| source.ty()).collect::<TypeSet>();
                types.add(instruction.dst.ty);
                match (types.has_floats, types.bytes) {
                    (true, ..=2) => Pipe::Float16,
                    (true, _) => Pipe::Float32,
                    (false, ..=2) => Pipe::Integer16,
                    (false, _) => Pipe::Integer32,
                }
            }
            Execute::Control(_) => Pipe::Control,
            Execute::Send => Pipe::Send,
            Execute::Dpas => match instruction.src[1].ty() {
                Type::Bf => Pipe::SystolicBf16,
                Type::Hf => Pipe::SystolicFp16,
                _ => Pipe::SystolicInt8,
            },
            Execute::Sync | Execute::Nop | Execute::Illegal | Execute::Unsupported => Pipe::None,
        };
        InstructionClass { pipe, operands }
    }
}

/// Width and kind of several types.
#[derive(Default)]
struct TypeSet {
    has_floats: bool,
    /// Bytes of the widest.
    bytes: u32,
}

impl TypeSet {
    fn add(&mut self, ty: Type) {
        self.has_floats |= ty.is_float();
        self.bytes = self.bytes.max(ty.size());
    }
}

impl FromIterator<Type> for TypeSet {
    fn from_iter<I: IntoIterator<Item = Type>>(types: I) -> TypeSet {
        let mut set = TypeSet::default();
        types.into_iter().for_each(|ty| set.add(ty));
        set
    }
}

/// Execution units of a subslice, as sr0.0 numbers them.
pub const UNITS: usize = 8;

/// Instructions that were executed, by execution unit of the subslice (bits 7 and 5:4 of sr0.0, ISA-085), pipeline and operands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    counts: [[[u64; OPERANDS]; PIPES]; UNITS],
}

impl Profile {
    /// Counts an instruction on an execution unit.
    pub fn count(&mut self, unit: usize, class: InstructionClass, count: u64) {
        if let Some(pipes) = self.counts.get_mut(unit) {
            let count_so_far = &mut pipes[class.pipe as usize][class.operands as usize];
            *count_so_far = count_so_far.wrapping_add(count);
        }
    }

    /// Adds the counts of another one.
    pub fn add(&mut self, other: &Profile) {
        let from = other.counts.as_flattened().as_flattened();
        for (to, from) in self.counts.as_flattened_mut().as_flattened_mut().iter_mut().zip(from) {
            *to = to.wrapping_add(*from);
        }
    }

    /// Number of instructions on the execution units and of the classes that pass.
    pub fn sum(&self, units: impl Fn(usize) -> bool, classes: impl Fn(InstructionClass) -> bool) -> u64 {
        let mut sum = 0_u64;
        for (_, counts) in self.counts.iter().enumerate().filter(|(unit, _)| units(*unit)) {
            for (pipe, counts) in ALL_PIPES.into_iter().zip(counts) {
                for (operands, count) in ALL_OPERANDS.into_iter().zip(counts) {
                    if *count != 0 && classes(InstructionClass { pipe, operands }) {
                        sum = sum.wrapping_add(*count);
                    }
                }
            }
        }
        sum
    }
}

/// In the order of their numbers.
const ALL_PIPES: [Pipe; PIPES] = [
    Pipe::None,
    Pipe::Float16,
    Pipe::Float32,
    Pipe::Integer16,
    Pipe::Integer32,
    Pipe::Math,
    Pipe::SystolicBf16,
    Pipe::SystolicFp16,
    Pipe::SystolicInt8,
    Pipe::Send,
    Pipe::Control,
];

/// In the order of their numbers.
const ALL_OPERANDS: [Operands; OPERANDS] = [Operands::Other, Operands::Mov, Operands::Binary, Operands::Ternary];

/// Counts what the threads of a group execute, as observer of [`super::Workgroup::step`].
pub struct Profiler<'p> {
    program: &'p Program,
    profile: &'p mut Profile,
}

impl<'p> Profiler<'p> {
    /// Counts the instructions of `program` in `profile`.
    pub fn new(program: &'p Program, profile: &'p mut Profile) -> Profiler<'p> {
        Profiler { program, profile }
    }
}

impl Observer for Profiler<'_> {
    #[inline(always)]
    fn executed(&mut self, thread: &Thread, instruction: u32) {
        let sr0 = thread.u32(SR);
        let unit = sr0 >> 4 & 3 | sr0 >> 5 & 4;
        let class = self.program.instructions.get(instruction as usize).map_or(InstructionClass::NONE, |it| it.class);
        self.profile.count(unit as usize, class, 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipes_and_operands_are_listed_in_the_order_of_their_numbers() {
        assert!(ALL_PIPES.iter().enumerate().all(|(index, pipe)| *pipe as usize == index));
        assert!(ALL_OPERANDS.iter().enumerate().all(|(index, kind)| *kind as usize == index));
    }
}
