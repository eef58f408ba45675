// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What each instruction does.

use crate::isa::{Instruction, Op, register};

use super::{Dispatch, FaultKind, Machine, SP, STACK, STACK_DEPTH, alu};

impl Machine {
    /// `(rep)`: until `$rem` is 0, each pass counts once: by the words it reads, or by the modifier (AFC-031).
    pub(super) fn repeat(&mut self, i: &Instruction, dispatch: Dispatch) -> Result<(), FaultKind> {
        while self.rem() != 0 {
            let before = self.bus.queue();
            self.execute(i, dispatch)?;
            if self.bus.queue() == before {
                self.gpr[usize::from(register::REM)] = self.rem().wrapping_sub(1);
            }
            self.executed += 1;
            if self.executed - self.packet_start >= self.packet_budget {
                return Err(FaultKind::Endless);
            }
        }
        Ok(())
    }

    pub(super) fn rem(&self) -> u32 {
        self.gpr[usize::from(register::REM)]
    }

    /// Reads a source register.
    fn source(&mut self, number: u8, peek: bool, dispatch: Dispatch) -> Result<u32, FaultKind> {
        match number & 31 {
            register::MEMDATA_ADDR => self.bus.mem_data(peek),
            register::REGDATA_USRADDR => Ok(self.bus.reg_data(peek)),
            register::DATA if dispatch == Dispatch::BufferEnd => Ok(0),
            register::DATA => {
                let word = self.bus.next_word(peek)?;
                if !peek && dispatch == Dispatch::None {
                    self.gpr[usize::from(register::REM)] = self.rem().saturating_sub(1);
                }
                Ok(word)
            }
            other => Ok(self.gpr[usize::from(other)]),
        }
    }

    /// Writes a destination register.
    fn set(&mut self, number: u8, value: u32) -> Result<(), FaultKind> {
        match number & 31 {
            register::ZERO => {}
            register::MEMDATA_ADDR => self.bus.set_address(value, false),
            register::REGDATA_USRADDR => self.bus.set_address(value, true),
            register::DATA => self.bus.write_data(value)?,
            other => self.gpr[usize::from(other)] = value,
        }
        Ok(())
    }

    pub(super) fn execute(&mut self, i: &Instruction, dispatch: Dispatch) -> Result<(), FaultKind> {
        match i.op {
            Op::Nop => Ok(()),
            Op::MovImm => self.set(i.dst, i.imm << (i.src1 & 31)),
            Op::NotImm => self.set(i.dst, !i.imm),
            Op::SetbitImm | Op::Clrbit => {
                let a = self.source(i.src1, false, dispatch)?;
                self.set(i.dst, alu::compute(i.op, a, i.src2.into(), &mut 0))
            }
            Op::Ubfx => {
                let a = self.source(i.src1, false, dispatch)?;
                self.set(i.dst, alu::extract(a, i.imm, i.src2.into()))
            }
            Op::Bfi => {
                let a = self.source(i.src1, false, dispatch)?;
                let old = self.gpr[usize::from(i.dst & 31)];
                self.set(i.dst, old | (a & alu::field(i.imm, i.src2.into())) << (i.imm & 31))
            }
            op if op.is_alu_immediate() => {
                let a = self.source(i.src1, false, dispatch)?;
                let value = alu::compute(i.op, a, i.imm, &mut self.carry);
                self.set(i.dst, value)
            }
            Op::Load | Op::Cread | Op::Sread | Op::Store | Op::Cwrite | Op::Swrite => self.access(i, dispatch),
            Op::BrneImm | Op::BreqImm | Op::BrneBit | Op::BreqBit => {
                let value = self.source(i.src1, false, dispatch)?;
                let taken = match i.op {
                    Op::BrneImm => value != u32::from(i.src2),
                    Op::BreqImm => value == u32::from(i.src2),
                    Op::BrneBit => value >> (i.src2 & 31) & 1 == 0,
                    _ => value >> (i.src2 & 31) & 1 != 0,
                };
                if taken {
                    self.pending = Some(self.pc.wrapping_add_signed(i.offset()));
                }
                Ok(())
            }
            Op::Call => {
                let depth = self.sqe[SP];
                if depth >= STACK_DEPTH {
                    return Err(FaultKind::StackOverflow);
                }
                self.sqe[STACK + depth as usize] = self.pc.wrapping_add(2);
                self.sqe[SP] = depth + 1;
                self.pending = Some(i.imm);
                Ok(())
            }
            Op::Ret => {
                let depth = self.sqe[SP];
                if depth == 0 || depth > STACK_DEPTH {
                    return Err(FaultKind::StackUnderflow);
                }
                self.sqe[SP] = depth - 1;
                self.pending = Some(self.sqe[STACK + depth as usize - 1]);
                Ok(())
            }
            Op::Bl => {
                self.gpr[usize::from(register::LR)] = self.pc.wrapping_add(2);
                self.pending = Some(i.imm);
                Ok(())
            }
            Op::Jumpa => {
                self.pending = Some(i.imm);
                Ok(())
            }
            Op::JumpReg => {
                self.pending = Some(self.source(i.src1, false, dispatch)?);
                Ok(())
            }
            Op::Sret => {
                self.pending = Some(self.gpr[usize::from(register::LR)]);
                Ok(())
            }
            Op::Iret => self.resume(),
            // There is no second image: the success path (AFC-043).
            Op::Setsecure => {
                self.pending = Some(self.pc.wrapping_add(3));
                Ok(())
            }
            Op::Waitin => {
                let queue = self.bus.queue();
                self.dispatch = if queue.left == 0 { Dispatch::BufferEnd } else { Dispatch::Packet };
                self.left_words += u64::from(self.rem() != 0);
                self.packet = (0, queue.address);
                self.begin_packet()
            }
            _ => self.register_alu(i, dispatch),
        }
    }

    /// A register ALU instruction with `(xmovN)`: after it, `min(N, $rem)` moves from the second source (AF-087..089).
    fn register_alu(&mut self, i: &Instruction, dispatch: Dispatch) -> Result<(), FaultKind> {
        let a = match i.op {
            Op::Not | Op::Msb => 0,
            _ => self.source(i.src1, i.peek, dispatch)?,
        };
        let b = self.source(i.src2, i.peek, dispatch)?;
        let value = alu::compute(i.op, a, b, &mut self.carry);
        self.set(i.dst, value)?;
        if i.extra == 0 {
            return Ok(());
        }
        let moves = u32::from(i.extra).min(self.rem());
        let special = matches!(i.dst & 31, register::MEMDATA_ADDR..);
        for number in 0..moves {
            let value = self.source(i.src2, false, dispatch)?;
            // Of three moves the second goes to the destination of the instruction.
            let dst = if moves == 3 && number == 1 { i.dst } else { register::DATA };
            self.set(if special { dst } else { register::ZERO }, value)?;
        }
        Ok(())
    }

    /// Control registers, SQE registers and memory.
    fn access(&mut self, i: &Instruction, dispatch: Dispatch) -> Result<(), FaultKind> {
        let base = self.source(i.src1, false, dispatch)?;
        let at = base.wrapping_add(i.imm);
        if i.preincrement {
            self.set(i.src1, at)?;
        }
        match i.op {
            Op::Load => {
                let address = self.bus.load_store_address(at);
                let value = self.bus.memory.read(address)?;
                self.set(i.dst, value)
            }
            Op::Cread => {
                let value = self.bus.load_control(at);
                self.set(i.dst, value)
            }
            Op::Sread => self.set(i.dst, self.sqe[at as usize & 15]),
            Op::Store => {
                let value = self.source(i.src2, false, dispatch)?;
                let address = self.bus.load_store_address(at);
                self.store(address, value)
            }
            Op::Swrite => {
                self.sqe[at as usize & 15] = self.source(i.src2, false, dispatch)?;
                Ok(())
            }
            _ => {
                let value = self.source(i.src2, false, dispatch)?;
                let mut more = [0; 2];
                for number in 0..usize::from(i.extra) {
                    let word = self.source(i.src2, false, dispatch)?;
                    if let Some(slot) = more.get_mut(number) {
                        *slot = word;
                    }
                }
                self.bus.write_control(at, value, more);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::container::Image;
    use crate::isa::{ENCODINGS, Slot};
    use crate::names::ControlSet;

    /// The general registers that an instruction changes. Each has another value before it, so that a write changes it.
    fn changed(set: ControlSet, instruction: &Instruction) -> BTreeSet<u8> {
        let mut machine = Machine::new(&Image { words: vec![0; 16], leading_zero: true, set });
        machine.bus.memory.map(0, 0x2_0000);
        machine.sqe[SP] = 1;
        let mut before = [0; 32];
        before.iter_mut().zip(0..).skip(1).for_each(|(value, number)| *value = 0x1000 + 0x124 * number);
        machine.gpr = before;
        // An instruction that faults, as `iret` without preemption, may write registers first.
        let _ = machine.execute(instruction, Dispatch::None);
        (0..register::REM).filter(|number| machine.gpr[usize::from(*number)] != before[usize::from(*number)]).collect()
    }

    #[test]
    fn written_registers_are_those_that_the_interpreter_changes() {
        for set in [ControlSet::A5, ControlSet::A6, ControlSet::A7] {
            let generation = set.generation();
            for encoding in ENCODINGS.iter().filter(|row| row.generations.has(generation)) {
                let mut instruction = Instruction::new(encoding.op);
                for field in encoding.fields {
                    match field.slot {
                        Slot::Dst => instruction.dst = 2,
                        Slot::Src1 => instruction.src1 = 3,
                        // As the high bit of `bfi`, it selects bits that the destination does not have.
                        Slot::Src2 => instruction.src2 = 7,
                        Slot::Imm => instruction.imm = 4,
                        Slot::Preincrement => instruction.preincrement = true,
                        Slot::Rep | Slot::Extra | Slot::Peek => {}
                    }
                }
                let written: BTreeSet<u8> = instruction.written_registers().collect();
                assert_eq!(changed(set, &instruction), written, "{} of {generation:?}", encoding.mnemonic);
            }
        }
    }

    #[test]
    fn registers_with_a_function_are_not_written_as_general_ones() {
        for number in [register::ZERO, register::MEMDATA_ADDR, register::REGDATA_USRADDR, register::DATA] {
            let instruction = Instruction { dst: number, imm: 4, ..Instruction::new(Op::MovImm) };
            assert_eq!(instruction.written_registers().count(), 0);
            assert_eq!(changed(ControlSet::A6, &instruction), BTreeSet::new());
        }
    }
}
