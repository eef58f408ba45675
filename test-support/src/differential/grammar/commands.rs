// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Selection of the commands of a ring or batch, and the values of their fields.

use arctic_device_model::command::mi::{self, MiCommand};
use arctic_device_model::command::{Length, Mi};
use arctic_device_model::topology::EngineClass;

use super::{ADD_OFFSET, LOAD_QWORD, LOADIND, OFFSETS, RELATIVE, REMAP, STOREIND, Words, Writer, batch_address};
use crate::differential::choice::of;
use crate::differential::layout::*;

impl Writer<'_> {
    pub(super) fn commands(&mut self, count: u32) -> Vec<Words> {
        let mut commands = Vec::new();
        let mut dwords = 0;
        while (commands.len() as u32) < count && self.choice.more() {
            for words in self.some() {
                dwords += words.len();
                if dwords > (PAGE as usize - OFFSETS as usize) / 4 - 2 {
                    return commands;
                }
                commands.push(words);
            }
        }
        commands
    }

    /// Returns a command, preceded by the commands that load its operands.
    pub(super) fn some(&mut self) -> Vec<Words> {
        let pipes = matches!(self.class, EngineClass::Render | EngineClass::Compute);
        match self.choice.below(40) {
            0..4 if pipes => return vec![self.pipe_control()],
            4 if pipes => return vec![self.state_only()],
            5..10 => return self.indirect(),
            10..13 => return vec![self.load_gpr()],
            13 if self.stops && self.choice.one_in(4) => return vec![self.illegal()],
            _ => {}
        }
        loop {
            let command = &mi::COMMANDS[self.choice.below(mi::COMMANDS.len() as u32) as usize];
            if command.classes.has(self.class)
                && let Some(words) = self.command(command)
            {
                return vec![words];
            }
            if !self.choice.more() {
                return vec![vec![0]];
            }
        }
    }

    /// Returns a table row's command with operands; `None` if it has no arm or may not occur in this ring or batch.
    pub(super) fn command(&mut self, command: &MiCommand) -> Option<Words> {
        let opcode = u32::from(command.opcode) << 23;
        let words = match command.action {
            Mi::Noop => {
                let number = self.choice.below(2) << 22;
                vec![opcode | number | self.choice.dword() & 0x3f_ffff]
            }
            Mi::SetPredicate => {
                let result = self.has_predicate();
                let wanted: &[u32] = if result { &[0, 0, 0, 1, 2, 3, 4, 5, 6, 15] } else { &[0, 0, 0, 1, 2, 5, 6, 15] };
                match self.choice.below(8) {
                    // Predication by the partition number.
                    0 => vec![opcode | self.choice.below(3) << 4],
                    _ => vec![opcode | of(self.choice, wanted)],
                }
            }
            Mi::ArbOnOff if self.movable => vec![opcode | 1],
            Mi::UserInterrupt | Mi::WaitForEvent | Mi::ArbCheck | Mi::ArbOnOff => {
                vec![opcode | self.choice.below(2)]
            }
            Mi::ReportHead if self.batch.is_none() => vec![opcode],
            Mi::BatchBufferEnd if self.batch.is_some() && self.choice.one_in(8) => {
                vec![opcode | self.choice.below(2) << 15]
            }
            // Load or load inverted; keeping the old result has no visible effect.
            Mi::Predicate => {
                let load = of(self.choice, &[2u32, 3]);
                vec![opcode | load << 6 | self.choice.below(4) << 3 | self.choice.below(4)]
            }
            Mi::Math => self.math(opcode),
            Mi::SemaphoreWait => self.semaphore_wait(opcode),
            Mi::StoreDataImm => self.store_data_imm(opcode),
            Mi::StoreDataIndex => {
                let qword = self.choice.below(2);
                let own = self.choice.below(2) << 21;
                let offset = 0x200 + self.choice.below(32) * if qword != 0 { 8 } else { 4 };
                let mut words = vec![opcode | own | 1 + qword, offset];
                words.extend((0..=qword).map(|_| self.value()));
                words
            }
            Mi::LoadRegisterImm => self.load_register_imm(opcode),
            Mi::UpdateGtt if !self.movable => self.update_gtt(opcode),
            Mi::StoreRegisterMem => {
                let global = self.global();
                let predicate = if self.has_predicate() { self.choice.below(2) << 21 } else { 0 };
                let (relative, register) = self.register(true);
                let address = self.address(global != 0, 4);
                let predicate = predicate | self.partition(16);
                vec![opcode | global | predicate | relative | 2, register, address as u32, (address >> 32) as u32]
            }
            Mi::LoadRegisterMem => {
                let global = self.global();
                let (relative, register) = self.register(false);
                let address = self.address(global != 0, 4);
                let asynchronous = self.choice.below(2) << 21 | self.partition(16);
                vec![opcode | global | asynchronous | relative | 2, register, address as u32, (address >> 32) as u32]
            }
            Mi::LoadRegisterReg => {
                let (source_relative, source) = self.register(true);
                let (relative, register) = self.register(false);
                vec![opcode | relative | source_relative >> 1 | 1, source, register]
            }
            Mi::FlushDw => self.flush_dw(opcode),
            Mi::ReportPerfCount if !self.movable => self.report_perf_count(opcode),
            Mi::CopyMemMem => {
                let (source, destination) = (self.global(), self.global());
                let from = self.address(source != 0, 4);
                let to = self.address(destination != 0, 4);
                let header = opcode | source | destination >> 1 | 3;
                vec![header, to as u32, (to >> 32) as u32, from as u32, (from >> 32) as u32]
            }
            Mi::Atomic => self.atomic(opcode),
            Mi::BatchBufferStart => return self.start(),
            Mi::ConditionalBatchBufferEnd if self.batch.is_some() => {
                let global = self.global();
                let address = self.address(global != 0, 8);
                let flags = self.choice.below(2) << 21 | self.choice.below(2) << 19 | self.choice.below(2) << 18;
                let compare = self.choice.below(6) << 12;
                let predicate = u32::from(self.choice.one_in(4)) << 15;
                let header = opcode | global | flags | compare | predicate | 2;
                vec![header, self.value(), address as u32, (address >> 32) as u32]
            }
            // These commands change no compared state, whatever their fields contain.
            Mi::NoEffect | Mi::StateOnly | Mi::SemaphoreSignal => {
                let dwords = u32::from(command.least);
                let mut words = vec![0; dwords as usize];
                for field in command.fields {
                    if let Some(word) = words.get_mut(usize::from(field.dword)) {
                        *word |= self.choice.dword() & field.mask();
                    }
                }
                words[0] |= opcode | if command.length == Length::SINGLE { 0 } else { dwords - 2 };
                words
            }
            // Only in the ring and without Persistence Enable: a persistent batch runs again at each restore, so
            // preemptions would change the result.
            Mi::PrtBatchBufferStart if self.batch.is_none() => {
                let target = batch_address(self.choice.below(3) as usize);
                let mut words = self.start_of(target, false, 0);
                words[0] = words[0] & 0xff | words[0] & 1 << 8 | opcode;
                words
            }
            _ => return None,
        };
        Some(words)
    }

    pub(super) fn load_gpr(&mut self) -> Words {
        let n = self.choice.below(6) * 8;
        vec![LOAD_QWORD, 0x600 + n, self.value(), 0x604 + n, if self.choice.one_in(2) { 0 } else { self.value() }]
    }

    pub(super) fn load_register_imm(&mut self, opcode: u32) -> Words {
        let pairs = if self.choice.one_in(3) { 1 + self.choice.below(4) } else { 1 };
        let (base, place) = match self.choice.below(12) {
            0..3 => (self.base(), 0),
            3 => (self.first_base(), REMAP),
            _ => (0, RELATIVE),
        };
        let disables = if self.choice.one_in(6) { self.choice.below(16) << 8 } else { 0 };
        let header = opcode | place | disables | self.choice.below(2) << 12 | 2 * pairs - 1;
        let mut words = vec![header];
        for _ in 0..pairs {
            let slot = self.choice.one_in(40);
            let (offset, value) = if slot {
                (0x4d0 + self.choice.below(4) * 4, self.slot())
            } else {
                let offset = self.any_register(false);
                (offset, self.immediate(offset))
            };
            words.extend([base + offset, value]);
        }
        words
    }

    /// Returns an immediate value for a register: write enables for a masked register, one bit for a one-bit register.
    pub(super) fn immediate(&mut self, offset: u32) -> u32 {
        match offset {
            0x0c0 | 0x200 => self.choice.dword() & 0x000f_000f,
            0x3b8 => u32::from(self.choice.one_in(3)),
            // Masks of events and errors with visible effects.
            0x098 => of(self.choice, &[0, !8, !1, !0x10, !0x19]),
            0x0b4 => of(self.choice, &[0, !1, !4, u32::MAX]),
            0x3bc | 0x418 | 0x41c | CONTEXT_CONTROL => self.choice.below(2),
            // The unit's enable and the format.
            OAR_CONTROL => self.choice.below(16),
            // The partition number; then the offset per partition and BB_OFFSET, multiples of 16 bytes.
            0x21c => self.choice.below(4),
            0x3b4 | 0x158 => self.choice.below(OFFSETS / 16) * 16,
            _ => self.value(),
        }
    }

    /// Returns a FORCE_TO_NONPRIV slot value for one of the engine's registers (V8-186).
    pub(super) fn slot(&mut self) -> u32 {
        let register = self.base() + of(self.choice, &[0x24c, 0x214, 0x600, 0x094, 0x248]);
        register | self.choice.below(3) << 28 | u32::from(self.choice.one_in(4)) << 30 | self.choice.below(2)
    }

    pub(super) fn store_data_imm(&mut self, opcode: u32) -> Words {
        let global = self.global();
        let qword = self.choice.below(2);
        let units = if self.choice.one_in(4) { 1 + self.choice.below(8) } else { 1 };
        let data = units << qword;
        // All data stays in one page: the next page may be unmapped.
        let align = 4 << qword;
        let mut address = self.address(global != 0, align);
        if address % PAGE + u64::from(data) * 4 > PAGE {
            address -= 0x100;
        }
        let header = opcode | global | qword << 21 | self.partition(11) | 1 + data;
        let mut words = vec![header, address as u32, (address >> 32) as u32];
        words.extend((0..data).map(|_| self.value()));
        words
    }

    pub(super) fn update_gtt(&mut self, opcode: u32) -> Words {
        let page = BASE / PAGE + at::WINDOW + u64::from(self.choice.below(4));
        let count = 1 + self.choice.below(3);
        let mut words = vec![opcode | 2 * count, (page * PAGE) as u32];
        for _ in 0..count {
            let entry = match self.choice.below(4) {
                0 => 0,
                1 => RAM.0 + u64::from(self.choice.below(2)) * PAGE | 1,
                _ => GGTT_DATA + u64::from(self.choice.below(4)) * PAGE | 3,
            };
            words.extend([entry as u32, (entry >> 32) as u32]);
        }
        words
    }

    /// Returns a post-sync operation: none, a write of the data, or of the time.
    fn post_sync(&mut self) -> u32 {
        match of(self.choice, &[0u32, 1, 1, 1, 3]) {
            3 if self.movable => 1,
            operation => operation,
        }
    }

    pub(super) fn flush_dw(&mut self, opcode: u32) -> Words {
        let operation = self.post_sync();
        let index = u32::from(self.choice.one_in(5));
        let global = self.choice.below(2) * u32::from(!self.movable);
        let address =
            if index != 0 { u64::from(0x200 + self.choice.below(32) * 8) } else { self.address(global != 0, 8) };
        let qword = self.choice.below(2);
        let flags = of(self.choice, &[0u32, 0, 1 << 8, 1 << 16, 1 << 18, 1 << 9]);
        let mut words = vec![
            opcode | index << 21 | operation << 14 | flags | 2 + qword,
            address as u32 | global << 2,
            (address >> 32) as u32,
        ];
        words.extend((0..=qword).map(|_| self.value()));
        words
    }

    /// All of a report is in one page. Bit 4 of the address is a mode that has no effect.
    pub(super) fn report_perf_count(&mut self, opcode: u32) -> Words {
        let global = self.choice.one_in(3);
        let mut address = self.address(global, 64);
        if address % PAGE + LONGEST_REPORT > PAGE {
            address -= LONGEST_REPORT;
        }
        let flags = u32::from(global) | self.choice.below(2) << 4;
        vec![opcode | 2, address as u32 | flags, (address >> 32) as u32, self.value()]
    }

    pub(super) fn pipe_control(&mut self) -> Words {
        let operation = self.post_sync() << 14;
        let predicate = u32::from(self.choice.one_in(4)) << 8;
        let stall = self.choice.below(2) << 20;
        let ignored = self.choice.dword() & 0x0000_003d;
        let notify = u32::from(self.choice.one_in(8)) << 8;
        let flags = operation | stall | ignored | notify;
        let (flags, address) = match self.choice.below(8) {
            0 => {
                // A post-sync write to a register.
                let register = self.base() + self.own_register(false);
                (flags & !(3 << 14) | 1 << 14 | 1 << 23, u64::from(register))
            }
            1 => (flags | 1 << 21 | self.choice.below(2) << 24, u64::from(0x200 + self.choice.below(32) * 8)),
            _ => {
                let global = self.choice.below(3) == 0 && !self.movable;
                (flags | u32::from(global) << 24, self.address(global, 8))
            }
        };
        let header = 0x7a00_0004 | predicate;
        vec![header, flags, address as u32, (address >> 32) as u32, self.value(), self.value()]
    }

    /// Returns a command of a pipeline that is not modelled; the parser skips it by its length.
    pub(super) fn state_only(&mut self) -> Words {
        if self.choice.one_in(3) {
            return vec![0x680b_0302];
        }
        let opcode = of(self.choice, &[0x6104u32, 0x7811, 0x7105, 0x7805, 0x7809]);
        let dwords = 2 + self.choice.below(20);
        let mut words = vec![opcode << 16 | dwords - 2];
        words.extend((1..dwords).map(|_| self.choice.dword()));
        words
    }

    /// Returns register loads, followed by a command that uses these registers as indirect operands: MI_MATH with an
    /// address in ACCU, or MI_ATOMIC with operands in registers.
    pub(super) fn indirect(&mut self) -> Vec<Words> {
        let address = self.address(false, 8);
        let register = self.choice.below(16);
        let set = vec![LOAD_QWORD, 0x600 + register * 8, address as u32, 0x604 + register * 8, (address >> 32) as u32];
        if self.choice.one_in(2) {
            let other = self.choice.below(16);
            let access = if self.choice.one_in(2) { alu(LOADIND, other, 0x31) } else { alu(STOREIND, 0x31, other) };
            let program = [alu(0x080, 0x20, register), alu(0x081, 0x21, 0), alu(0x100, 0, 0), access, alu(0x002, 0, 0)];
            vec![set, math_of(&program)]
        } else {
            let loads = (0..4).map(|n| vec![LOAD_QWORD, 0x600 + n * 8, self.value(), 0x604 + n * 8, self.value()]);
            let mut commands: Vec<Words> = loads.collect();
            commands.push(self.atomic_of(0x2f << 23, false));
            commands
        }
    }

    /// Returns an ALU program that loads both inputs before each operation (V8-145..155).
    pub(super) fn math(&mut self, opcode: u32) -> Words {
        let mut program = Vec::new();
        for _ in 0..1 + self.choice.below(4) {
            for input in [0x20, 0x21] {
                let register = self.choice.below(16);
                program.push(match self.choice.below(8) {
                    0 => alu(0x081, input, 0),
                    1 => alu(0x481, input, 0),
                    2 => alu(0x480, input, register),
                    _ => alu(0x080, input, register),
                });
            }
            let operation = of(self.choice, &[0x100u32, 0x101, 0x100, 0x101, 0x102, 0x103, 0x104, 0x105, 0x106, 0x107]);
            program.push(alu(operation, 0, 0));
            if self.choice.one_in(6) {
                program.push(alu(of(self.choice, &[0u32, 1, 2]), 0, 0));
            }
            for _ in 0..1 + self.choice.below(2) {
                // No document defines the carry flag after operations other than addition and subtraction.
                let sources: &[u32] = if operation <= 0x101 { &[0x31, 0x31, 0x32, 0x33] } else { &[0x31, 0x31, 0x32] };
                let store = of(self.choice, &[0x180u32, 0x180, 0x580]);
                program.push(alu(store, self.choice.below(16), of(self.choice, sources)));
            }
        }
        let mut words = vec![opcode | program.len() as u32 - 1];
        words.extend(program);
        words
    }

    pub(super) fn semaphore_wait(&mut self, opcode: u32) -> Words {
        let global = self.global();
        // Comparisons that are always true; any comparison if the parser may stop.
        let (compare, value) = if self.stops && self.choice.one_in(4) {
            (self.choice.below(6), self.value())
        } else {
            of(self.choice, &[(1u32, 0u32), (3, u32::MAX)])
        };
        let dwords = 4 + self.choice.below(2);
        let (poll, address) = if self.choice.one_in(6) {
            // Polls a register, which is compared with GPR0 or with the command's data.
            let indirect = u32::from(self.stops && self.choice.one_in(2)) << 17;
            (1 << 16 | indirect, u64::from(self.base() + 0x600 + self.choice.below(32) * 4))
        } else {
            (self.partition(18), self.address(global != 0, 4))
        };
        let header = opcode | global & !((poll & 1 << 16) << 6) | poll | 1 << 15 | compare << 12 | dwords - 2;
        let mut words = vec![header, value, address as u32, (address >> 32) as u32];
        words.resize(dwords as usize, 0);
        words
    }

    pub(super) fn atomic(&mut self, opcode: u32) -> Words {
        self.atomic_of(opcode, true)
    }

    pub(super) fn atomic_of(&mut self, opcode: u32, inline: bool) -> Words {
        let operation = of(self.choice, &[1u32, 2, 3, 4, 5, 6, 7, 8, 9, 0xa, 0xb, 0xc, 0xd, 0xe, 0xf]);
        let (size, operation) = match self.choice.below(5) {
            0..2 => (0, operation),
            2..4 => (1, operation | 0x20),
            _ => (2, 0x4e),
        };
        let global = self.global();
        let address = self.address(global != 0, 16);
        let flags = size << 19 | self.choice.below(2) << 17 | self.choice.below(2) << 16;
        let header = opcode | global | flags | operation << 8;
        let mut words = vec![header | 1, address as u32 | self.partition(0), (address >> 32) as u32];
        if inline {
            words[0] = header | 1 << 18 | 9;
            words.extend((0..8).map(|_| self.value()));
        }
        words
    }

    /// Returns a batch start; `None` if no further start is allowed here.
    pub(super) fn start(&mut self) -> Option<Words> {
        self.starts = self.starts.checked_sub(1)?;
        let from = self.batch.map_or(0, |n| LEVELS[n]);
        let nested = self.batch.is_some() && self.choice.one_in(2);
        let level = if nested || from == 0 { from + 1 } else { from };
        let least = self.batch.map_or(0, |n| n + 1);
        let targets: Vec<usize> = (least..LEVELS.len()).filter(|n| LEVELS[*n] == level).collect();
        if targets.is_empty() {
            return None;
        }
        let target = batch_address(of(self.choice, &targets));
        let predicate = u32::from(self.choice.one_in(4)) << 15;
        let offset = u32::from(self.offsets && self.choice.one_in(2)) * ADD_OFFSET;
        Some(self.start_of(target, nested, predicate | offset))
    }

    pub(super) fn batch_buffer_start(&mut self) -> Words {
        let target = batch_address(self.choice.below(3) as usize);
        self.start_of(target, false, 0)
    }

    pub(super) fn start_of(&mut self, target: u64, nested: bool, flags: u32) -> Words {
        let process = u32::from(self.choice.below(3) != 0 || self.movable) << 8;
        vec![0x31 << 23 | u32::from(nested) << 22 | process | flags | 1, target as u32, 0]
    }

    /// Returns a command that no engine has, or that this engine does not have (V8-097..099).
    pub(super) fn illegal(&mut self) -> Words {
        let mut opcodes = vec![0x10u32, 0x15, 0x17, 0x1f, 0x30, 0x32, 0x33, 0x37, 0x38, 0x3a, 0x3f];
        opcodes.extend(mi::COMMANDS.iter().filter(|c| !c.classes.has(self.class)).map(|c| u32::from(c.opcode)));
        vec![of(self.choice, &opcodes) << 23]
    }
}

/// Encodes one ALU instruction (V8-147).
fn alu(opcode: u32, first: u32, second: u32) -> u32 {
    opcode << 20 | first << 10 | second
}

fn math_of(program: &[u32]) -> Words {
    let mut words = vec![0x1a << 23 | program.len() as u32 - 1];
    words.extend(program);
    words
}
