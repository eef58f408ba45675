//! MI_MATH: the command streamer's 64-bit ALU and its sixteen registers (V8-145..156).

use super::reg;
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

/// Inputs, accumulator and flags during one MI_MATH.
#[derive(Clone, Copy, Debug, Default)]
struct Alu {
    a: u64,
    b: u64,
    accumulator: u64,
    zero: bool,
    carry: bool,
}

/// The supported shift amount at or below `amount` (V8-153).
fn shift(amount: u64) -> u32 {
    match amount {
        0 => 0,
        amount => 1 << amount.ilog2().min(5),
    }
}

impl Alu {
    fn load(&mut self, operand: u32, value: u64) {
        match operand {
            operand::SRCA => self.a = value,
            operand::SRCB => self.b = value,
            _ => {}
        }
    }

    fn result(&self, operand: u32) -> u64 {
        let all = |flag| if flag { u64::MAX } else { 0 };
        match operand {
            operand::ACCU => self.accumulator,
            operand::ZF => all(self.zero),
            operand::CF => all(self.carry),
            _ => 0,
        }
    }

    /// Carries an arithmetic or logical operation out; false where the code is none.
    fn operate(&mut self, opcode: u32) -> bool {
        let (a, b) = (self.a, self.b);
        let (value, carry) = match opcode {
            0x100 => a.overflowing_add(b),
            0x101 => a.overflowing_sub(b),
            0x102 => (a & b, false),
            0x103 => (a | b, false),
            0x104 => (a ^ b, false),
            0x105 => (a << shift(b), false),
            0x106 => (a >> shift(b), false),
            0x107 => (((a as i64) >> shift(b)) as u64, false),
            _ => return false,
        };
        (self.accumulator, self.carry, self.zero) = (value, carry, value == 0);
        true
    }
}

impl Streamer<'_> {
    fn gpr(&self, operand: u32) -> u64 {
        self.own64(reg::GPR + 8 * (operand & 0xf))
    }

    /// MI_MATH: one ALU instruction a dword: opcode 31:20, first operand 19:10, second 9:0 (V8-147).
    pub(super) fn math(&mut self, instructions: &[u32]) -> Result<Flow, Fault> {
        let mut alu = Alu::default();
        for instruction in instructions {
            let (opcode, first, second) = (instruction >> 20, instruction >> 10 & 0x3ff, instruction & 0x3ff);
            match opcode {
                // NOOP; fences: every access of the ALU is complete when its instruction is (V8-155).
                0x000..=0x002 => {}
                0x080 => alu.load(first, self.gpr(second)),
                0x480 => alu.load(first, !self.gpr(second)),
                0x081 => alu.load(first, 0),
                0x481 => alu.load(first, u64::MAX),
                0x082 => {
                    let (space, at) = (self.space(false), alu.result(second) & !7 & 0xffff_ffff_ffff);
                    let value = self.gam.read_u64(space, at)?;
                    self.set_own64(reg::GPR + 8 * (first & 0xf), value);
                }
                0x180 => self.set_own64(reg::GPR + 8 * (first & 0xf), alu.result(second)),
                0x580 => self.set_own64(reg::GPR + 8 * (first & 0xf), !alu.result(second)),
                0x181 => {
                    let (space, at) = (self.space(false), alu.result(first) & !7 & 0xffff_ffff_ffff);
                    self.store64(space, at, self.gpr(second))?;
                }
                _ => {
                    if !alu.operate(opcode) {
                        return Ok(Flow::Illegal);
                    }
                }
            }
        }
        Ok(Flow::Next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// V8-153, trap T10: only powers of two up to 32; others round down.
    #[test]
    fn shifts_round_down() {
        let pairs = [(0, 0), (1, 1), (3, 2), (15, 8), (31, 16), (32, 32), (63, 32), (64, 32), (70, 32), (u64::MAX, 32)];
        for (amount, supported) in pairs {
            assert_eq!(shift(amount), supported, "{amount}");
        }
    }

    /// V8-148, V8-152: one vector an opcode, with flags.
    #[test]
    fn operations() {
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
            assert!(alu.operate(opcode));
            assert_eq!((alu.accumulator, alu.carry, alu.zero), (value, carry, value == 0), "{opcode:#x}");
        }
        assert!(!Alu::default().operate(0x108));
    }
}
