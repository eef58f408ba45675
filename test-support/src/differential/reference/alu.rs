// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The ALU, with one function per item.

/// State of MI_MATH besides the general-purpose registers (V8-146).
#[derive(Default)]
pub struct Alu {
    source_a: u64,
    source_b: u64,
    accumulator: u64,
    zero: bool,
    carry: bool,
}

/// Effect of an instruction outside the ALU, to be performed by the streamer.
pub enum Effect {
    None,
    Register(usize, u64),
    /// Loads the QWord at this address into this register (V8-154).
    Load(usize, u64),
    /// Stores this QWord at this address (V8-154).
    Store(u64, u64),
}

const SRCA: u32 = 0x20;
const ACCU: u32 = 0x31;
const ZF: u32 = 0x32;
const CF: u32 = 0x33;

impl Alu {
    /// V8-147, V8-148: executes one instruction with the given register values.
    pub fn instruction(&mut self, word: u32, registers: &[u64; 16]) -> Effect {
        let (opcode, first, second) = (word >> 20, word >> 10 & 0x3ff, word & 0x3ff);
        match opcode {
            // NOOP and the fences (V8-155).
            0x000..=0x002 => Effect::None,
            0x080 => self.load(first, registers[second as usize & 15]),
            0x480 => self.load(first, !registers[second as usize & 15]),
            // V8-150, trap T9: LOAD1 loads all ones.
            0x081 => self.load(first, 0),
            0x481 => self.load(first, u64::MAX),
            0x082 => Effect::Load(first as usize & 15, self.accumulator & !7),
            0x181 => Effect::Store(self.accumulator & !7, registers[second as usize & 15]),
            0x180 => Effect::Register(first as usize & 15, self.output(second)),
            0x580 => Effect::Register(first as usize & 15, !self.output(second)),
            _ => self.operation(opcode),
        }
    }

    /// V8-150: loads SRCA or SRCB.
    fn load(&mut self, input: u32, value: u64) -> Effect {
        if input == SRCA {
            self.source_a = value;
        } else {
            self.source_b = value;
        }
        Effect::None
    }

    /// V8-151: a flag is stored as all ones or 0.
    fn output(&self, source: u32) -> u64 {
        let flag = |set: bool| if set { u64::MAX } else { 0 };
        match source {
            ACCU => self.accumulator,
            ZF => flag(self.zero),
            CF => flag(self.carry),
            _ => 0,
        }
    }

    /// V8-152, V8-153: executes an operation and sets accumulator and flags.
    fn operation(&mut self, opcode: u32) -> Effect {
        let (a, b) = (self.source_a, self.source_b);
        let (result, carry) = match opcode {
            0x100 => ((u128::from(a) + u128::from(b)) as u64, u128::from(a) + u128::from(b) > u128::from(u64::MAX)),
            0x101 => ((i128::from(a) - i128::from(b)) as u64, a < b),
            0x102 => (a & b, false),
            0x103 => (a | b, false),
            0x104 => (a ^ b, false),
            0x105 => (a << shift_amount(b), false),
            0x106 => (a >> shift_amount(b), false),
            0x107 => ((a as i64 >> shift_amount(b)) as u64, false),
            _ => return Effect::None,
        };
        self.accumulator = result;
        self.zero = result == 0;
        self.carry = carry;
        Effect::None
    }
}

/// V8-153, trap T10: the amount is rounded down to a supported one.
fn shift_amount(wanted: u64) -> u32 {
    [32, 16, 8, 4, 2, 1].into_iter().find(|amount| u64::from(*amount) <= wanted).unwrap_or(0)
}
