// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! MI_MATH: the command streamer's 64-bit ALU and its sixteen registers (V8-145..156).

use super::reg;
use super::stream::ADDRESS;
use super::streamer::{Flow, Streamer};
use crate::memory::Fault;

/// Operand numbers (V8-149).
mod operand {
    pub const SRCA: u32 = 0x20;
    pub const SRCB: u32 = 0x21;
    pub const ACCU: u32 = 0x31;
    pub const ZF: u32 = 0x32;
    pub const CF: u32 = 0x33;
}

/// Instructions (V8-148).
mod opcode {
    pub const NOOP: u32 = 0x000;
    pub const FENCE_RD: u32 = 0x001;
    pub const FENCE_WR: u32 = 0x002;
    pub const LOAD: u32 = 0x080;
    pub const LOADINV: u32 = 0x480;
    pub const LOAD0: u32 = 0x081;
    pub const LOAD1: u32 = 0x481;
    pub const LOADIND: u32 = 0x082;
    pub const ADD: u32 = 0x100;
    pub const SUB: u32 = 0x101;
    pub const AND: u32 = 0x102;
    pub const OR: u32 = 0x103;
    pub const XOR: u32 = 0x104;
    pub const SHL: u32 = 0x105;
    pub const SHR: u32 = 0x106;
    pub const SAR: u32 = 0x107;
    pub const STORE: u32 = 0x180;
    pub const STOREINV: u32 = 0x580;
    pub const STOREIND: u32 = 0x181;
}

/// Inputs, accumulator and flags during the execution of a MI_MATH.
#[derive(Clone, Copy, Debug, Default)]
struct Alu {
    a: u64,
    b: u64,
    accumulator: u64,
    zero: bool,
    carry: bool,
}

/// Rounds a shift amount down to a supported one (V8-153).
fn shift(amount: u64) -> u32 {
    match amount {
        0 => 0,
        amount => 1 << amount.ilog2().min(5),
    }
}

impl Alu {
    /// Loads an input. Flags are unchanged (trap T37). Returns `None` if the operand is not an input.
    fn load(&mut self, operand: u32, value: u64) -> Option<()> {
        match operand {
            operand::SRCA => self.a = value,
            operand::SRCB => self.b = value,
            _ => return None,
        }
        Some(())
    }

    /// Returns the accumulator, or a flag replicated to all bits. Returns `None` for any other operand.
    fn result(&self, operand: u32) -> Option<u64> {
        let all = |flag| if flag { u64::MAX } else { 0 };
        match operand {
            operand::ACCU => Some(self.accumulator),
            operand::ZF => Some(all(self.zero)),
            operand::CF => Some(all(self.carry)),
            _ => None,
        }
    }

    /// Executes an arithmetic or logical operation. Returns `None` for an invalid opcode.
    fn operate(&mut self, opcode: u32) -> Option<()> {
        let (a, b) = (self.a, self.b);
        let (value, carry) = match opcode {
            opcode::ADD => a.overflowing_add(b),
            opcode::SUB => (a.wrapping_sub(b), a < b),
            opcode::AND => (a & b, false),
            opcode::OR => (a | b, false),
            opcode::XOR => (a ^ b, false),
            opcode::SHL => (a << shift(b), false),
            opcode::SHR => (a >> shift(b), false),
            opcode::SAR => ((a.cast_signed() >> shift(b)).cast_unsigned(), false),
            _ => return None,
        };
        (self.accumulator, self.carry, self.zero) = (value, carry, value == 0);
        Some(())
    }
}

/// Returns the register offset of a GPR, or `None` if the operand is not a GPR (V8-149).
fn gpr(operand: u32) -> Option<u32> {
    (operand < 0x10).then(|| reg::gpr(operand))
}

/// Returns the address in the accumulator. The low three bits are ignored (V8-154).
fn indirect(accumulator: u64) -> u64 {
    accumulator & ADDRESS & !7
}

impl Streamer<'_> {
    /// MI_MATH. Each dword is an ALU instruction: opcode 31:20, first operand 19:10, second operand 9:0 (V8-147). An
    /// invalid instruction or operand makes the command illegal (V8-148).
    pub(super) fn math(&mut self, instructions: &[u32]) -> Result<Flow, Fault> {
        let mut alu = Alu::default();
        for instruction in instructions {
            if self.instruct(&mut alu, *instruction)?.is_none() {
                return Ok(Flow::Illegal);
            }
        }
        Ok(Flow::Next)
    }

    /// Executes one instruction. Returns `None` if it is invalid.
    fn instruct(&mut self, alu: &mut Alu, instruction: u32) -> Result<Option<()>, Fault> {
        let opcode = instruction >> 20;
        let (first, second) = (instruction >> 10 & 0x3ff, instruction & 0x3ff);
        Ok(match opcode {
            // Fences are no-ops, because each instruction completes its accesses before the next one executes (V8-155).
            opcode::NOOP | opcode::FENCE_RD | opcode::FENCE_WR => Some(()),
            opcode::LOAD => gpr(second).and_then(|from| alu.load(first, self.registers.get64(from))),
            opcode::LOADINV => gpr(second).and_then(|from| alu.load(first, !self.registers.get64(from))),
            opcode::LOAD0 => alu.load(first, 0),
            opcode::LOAD1 => alu.load(first, u64::MAX),
            opcode::LOADIND => {
                let Some(to) = gpr(first).filter(|_| second == operand::ACCU) else { return Ok(None) };
                let value = self.gam.read_u64(self.space(false), indirect(alu.accumulator))?;
                self.set_own64(to, value);
                Some(())
            }
            opcode::STORE => gpr(first).zip(alu.result(second)).map(|(to, value)| self.set_own64(to, value)),
            opcode::STOREINV => gpr(first).zip(alu.result(second)).map(|(to, value)| self.set_own64(to, !value)),
            opcode::STOREIND => {
                let Some(from) = gpr(second).filter(|_| first == operand::ACCU) else { return Ok(None) };
                let (at, value) = (indirect(alu.accumulator), self.registers.get64(from));
                self.store64(self.space(false), at, value)?;
                Some(())
            }
            _ => alu.operate(opcode),
        })
    }
}

#[cfg(test)]
mod tests {
    use arctic_fidelity::proves;

    use super::*;

    #[test]
    fn shifts_round_down() {
        proves!(V8_153, "only powers of two up to 32 are supported. Other amounts are rounded down (trap T10)");
        let pairs = [(0, 0), (1, 1), (3, 2), (15, 8), (31, 16), (32, 32), (63, 32), (64, 32), (70, 32), (u64::MAX, 32)];
        for (amount, supported) in pairs {
            assert_eq!(shift(amount), supported, "{amount}");
        }
    }

    #[test]
    fn operations() {
        proves!([V8_148, V8_152], "one test vector per opcode, including flags");
        let vectors = [
            (0x100, u64::MAX, 1, 0, true),
            (0x101, 1, 2, u64::MAX, true),
            (0x101, 2, 2, 0, false),
            (0x102, 0xf0, 0x3c, 0x30, false),
            (0x103, 0xf0, 0x0f, 0xff, false),
            (0x104, 0xff, 0x0f, 0xf0, false),
            (0x105, 1, 32, 1 << 32, false),
            (0x106, 1 << 63, 4, 1 << 59, false),
            (0x107, 1 << 63, 4, 0xf8 << 56, false),
        ];
        for (opcode, a, b, value, carry) in vectors {
            let mut alu = Alu { a, b, ..Alu::default() };
            assert!(alu.operate(opcode).is_some());
            assert_eq!((alu.accumulator, alu.carry, alu.zero), (value, carry, value == 0), "{opcode:#x}");
        }
        assert!(Alu::default().operate(0x108).is_none());
    }
}
