// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Instructions of the command streamer's ALU, the payload of MI_MATH (contract K.8, `i915: gt/intel_gpu_commands.h`).

/// An ALU register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// General purpose register 0 to 15, 64 bits.
    R(u32),
    /// First source.
    SrcA,
    /// Second source.
    SrcB,
    /// The result.
    Accu,
    /// Zero flag of the result; stored as all ones or zero.
    Zf,
    /// Carry of an addition, borrow of a subtraction; stored as all ones or zero.
    Cf,
}

impl Operand {
    const fn code(self) -> u32 {
        match self {
            Operand::R(n) => {
                assert!(n < 16, "there are 16 general purpose registers");
                n
            }
            Operand::SrcA => 0x20,
            Operand::SrcB => 0x21,
            Operand::Accu => 0x31,
            Operand::Zf => 0x32,
            Operand::Cf => 0x33,
        }
    }
}

/// One ALU instruction. Operands of a `Load` are (source operand, register); of a `Store`, (register, result).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alu {
    /// Source = register.
    Load(Operand, Operand),
    /// Source = !register.
    LoadInv(Operand, Operand),
    /// Source = 0.
    Load0(Operand),
    /// Source = all ones.
    Load1(Operand),
    /// ACCU = SRCA + SRCB.
    Add,
    /// ACCU = SRCA - SRCB.
    Sub,
    /// ACCU = SRCA & SRCB.
    And,
    /// ACCU = SRCA | SRCB.
    Or,
    /// ACCU = SRCA ^ SRCB.
    Xor,
    /// Register = result.
    Store(Operand, Operand),
    /// Register = !result.
    StoreInv(Operand, Operand),
}

impl Alu {
    /// Returns the instruction: opcode in bits 31:20, operand 1 in 19:10, operand 2 in 9:0.
    pub const fn dword(self) -> u32 {
        let (opcode, first, second) = match self {
            Alu::Load(to, from) => (0x080, to.code(), from.code()),
            Alu::LoadInv(to, from) => (0x480, to.code(), from.code()),
            Alu::Load0(to) => (0x081, to.code(), 0),
            Alu::Load1(to) => (0x481, to.code(), 0),
            Alu::Add => (0x100, 0, 0),
            Alu::Sub => (0x101, 0, 0),
            Alu::And => (0x102, 0, 0),
            Alu::Or => (0x103, 0, 0),
            Alu::Xor => (0x104, 0, 0),
            Alu::Store(to, from) => (0x180, to.code(), from.code()),
            Alu::StoreInv(to, from) => (0x580, to.code(), from.code()),
        };
        opcode << 20 | first << 10 | second
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Contract K.8, `MI_MATH_INSTR`.
    #[test]
    fn instructions_encode_as_the_driver_s_macros() {
        for (instruction, dword) in [
            (Alu::Load(Operand::SrcB, Operand::R(15)), 0x0800_840f),
            (Alu::LoadInv(Operand::SrcA, Operand::R(0)), 0x4800_8000),
            (Alu::Load0(Operand::SrcB), 0x0810_8400),
            (Alu::Load1(Operand::SrcA), 0x4810_8000),
            (Alu::Sub, 0x1010_0000),
            (Alu::Xor, 0x1040_0000),
            (Alu::Store(Operand::R(2), Operand::Accu), 0x1800_0831),
            (Alu::StoreInv(Operand::R(3), Operand::Zf), 0x5800_0c32),
            (Alu::Store(Operand::R(1), Operand::Cf), 0x1800_0433),
        ] {
            assert_eq!(instruction.dword(), dword, "{instruction:?}");
        }
    }
}
