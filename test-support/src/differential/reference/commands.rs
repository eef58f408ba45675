// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Effects of the commands. Layouts are from Mesa's gen125.xml and Intel's media driver (mhw_mi_hwcmd_*.h), which
//! agree.

use arctic_device_model::topology::EngineClass;

use super::alu::Effect;
use super::atomic;
use super::registers::{Registers, Requester};
use super::{Done, End, Level, Machine};
use crate::differential::layout::*;

/// Use Global GTT, in most commands.
const GGTT: u32 = 1 << 22;

fn bit(word: u32, n: u32) -> bool {
    word >> n & 1 != 0
}

fn address(low: u32, high: u32) -> u64 {
    u64::from(low & !3) | u64::from(high) << 32
}

/// The six comparisons of memory with data (V8-120; contract K.8).
fn compares(operation: u32, memory: u32, data: u32) -> bool {
    match operation {
        0 => memory > data,
        1 => memory >= data,
        2 => memory < data,
        3 => memory <= data,
        4 => memory == data,
        _ => memory != data,
    }
}

/// The space that a bit of a command selects.
fn space(is_ggtt: bool) -> Space {
    if is_ggtt { Space::Ggtt } else { Space::Ppgtt }
}

impl Machine {
    /// Returns the register offset in a command: bits 22:2, relative to the engine's base if `relative` (V8-004), or
    /// converted from the class's first instance if `remap` (V8-051, trap T19).
    fn register(&self, offset: u32, relative: bool, remap: bool) -> u32 {
        let offset = offset & 0x7f_fffc;
        let Registers { base, first, .. } = self.registers;
        match (relative, remap) {
            (true, _) => base + offset,
            (false, true) if (first..first + 0x800).contains(&offset) => offset - first + base,
            _ => offset,
        }
    }

    /// Returns the value that a command reads from a register: 0 for a register that it may not read, with an error for
    /// a user-level command (V8-175, V8-170).
    fn read(&mut self, register: u32) -> u32 {
        let requester = self.requester();
        if !self.registers.may_read(register, requester) {
            let _ = self.refused();
            return 0;
        }
        self.registers.value(register)
    }

    /// Writes a register. A write of EMR can unmask errors that occurred before (V8-089).
    fn write(&mut self, register: u32, value: u32, keep: u32) {
        self.registers.write(register, value, keep);
        if register == self.registers.base + 0x0b4 {
            self.error(0);
        }
    }

    /// V8-089: records errors in ESR and, unless EMR masks them, in EIR; only on the physical function (V13-080).
    pub(super) fn error(&mut self, bits: u32) {
        if !self.vf {
            let status = self.registers.own(0x0b8) | bits;
            self.registers.set_own(0x0b8, status);
            let before = self.registers.own(0x0b0);
            let identity = before | status & !self.registers.own(0x0b4);
            self.registers.set_own(0x0b0, identity);
            if before == 0 && identity != 0 {
                self.event(3);
            }
        }
    }

    /// V8-087, V13-075: an event that HWSTAM does not mask writes the status dword of the PF's status page: bit 3 is
    /// set while an error is pending, bits 0 (user interrupt) and 4 (flush) are written as 0.
    pub(super) fn event(&mut self, event: u32) {
        let masked = self.registers.own(0x098);
        if !self.vf && !bit(masked, event) {
            let error = self.registers.own(0x0b0) != 0 && !bit(masked, 3);
            self.memory.put_local(HWSP, u32::from(error) << 3);
        }
    }

    /// Returns an address; if `partition`, plus the partition number times CS_MI_ADDRESS_OFFSET (compute-runtime:
    /// Workload Partition Id Offset Enable).
    fn partitioned(&self, low: u32, high: u32, partition: bool) -> u64 {
        let part = u64::from(self.registers.own(0x21c)) * u64::from(self.registers.own(0x3b4));
        address(low, high) + if partition { part } else { 0 }
    }

    /// V8-170: drops a command without the required privilege. A user-level command sets error bit 2, on the physical
    /// function (V8-089, V8-090).
    pub(super) fn refused(&mut self) -> Done {
        if self.user() {
            self.error(1 << 2);
        }
        Ok(())
    }

    /// V8-105, IVB-141: bit 22 writes NOPID.
    pub(super) fn noop(&mut self, header: u32) -> Done {
        if bit(header, 22) {
            self.registers.set_own(0x094, header & 0x3f_ffff);
        }
        Ok(())
    }

    /// V8-106, V8-142: sets whether the following commands are executed as MI_NOOP.
    pub(super) fn set_predicate(&mut self, header: u32) -> Done {
        let set = |offset| self.registers.own(offset) & 1 != 0;
        let (result, first, second) = (set(0x418), set(0x41c), set(0x3bc));
        let noop = match header & 0xf {
            0 => false,
            1 => !second,
            2 => second,
            3 => !result,
            4 => result,
            5 => !first,
            6 => first,
            15 => true,
            _ => return Ok(()),
        };
        // Bits 5:4: predication by the bits of the partition number that PREDICATION_MASK selects (compute-runtime:
        // MI_SET_PREDICATE, Predicate Enable WPARID; implicit scaling programs the mask at base + 0x1fc).
        let partition = self.registers.own(0x21c) & self.registers.own(0x1fc);
        let noop = noop
            || match header >> 4 & 3 {
                1 => partition == 0,
                2 => partition != 0,
                _ => false,
            };
        self.registers.set_own(0x3b8, noop.into());
        Ok(())
    }

    /// V8-110: stores the ring's head, which is past this command, in the fifth dword of the status page.
    pub(super) fn report_head(&mut self) -> Done {
        if !self.user() {
            self.memory.put_local(PPHWSP + 16, self.head);
        }
        Ok(())
    }

    /// V8-114, IVB-150: bits 1:0 select the comparison, bits 4:3 the combination, bits 7:6 the load.
    pub(super) fn predicate(&mut self, header: u32) -> Done {
        let pair = |at: u32| u64::from(self.registers.own(at)) | u64::from(self.registers.own(at + 4)) << 32;
        let (first, second, data) = (pair(0x400), pair(0x408), pair(0x410));
        let delta = first.wrapping_sub(second);
        let compared = match header & 3 {
            0 => true,
            1 => false,
            2 => first == second,
            _ => delta == data,
        };
        if header & 3 == 2 {
            self.registers.set_own(0x410, delta as u32);
            self.registers.set_own(0x414, (delta >> 32) as u32);
        }
        let present = self.registers.own(0x418) & 1 != 0;
        let combined = match header >> 3 & 3 {
            0 => compared,
            1 => present && compared,
            2 => present || compared,
            _ => present != compared,
        };
        match header >> 6 & 3 {
            2 => self.registers.set_own(0x418, combined.into()),
            3 => self.registers.set_own(0x418, (!combined).into()),
            _ => {}
        }
        Ok(())
    }

    /// V8-118, V8-145..155. Indirect accesses use the PPGTT; no bit selects the GGTT.
    pub(super) fn math(&mut self, words: &[u32]) -> Done {
        for word in &words[1..] {
            let registers = std::array::from_fn(|n| self.registers.gpr(n));
            match self.alu.instruction(*word, &registers) {
                Effect::None => {}
                Effect::Register(n, value) => self.registers.set_gpr(n, value),
                Effect::Load(n, at) => {
                    let value = self.memory.load64(Space::Ppgtt, at)?;
                    self.registers.set_gpr(n, value);
                }
                Effect::Store(at, value) => self.memory.store64(Space::Ppgtt, at, value)?,
            }
        }
        Ok(())
    }

    /// V8-120, V13-059; bit 16 polls a register.
    pub(super) fn semaphore_wait(&mut self, words: &[u32]) -> Done {
        let header = words[0];
        let space = space(header & GGTT != 0);
        let value = if bit(header, 16) {
            let register = self.register(words[2], false, false);
            self.read(register)
        } else {
            if space == Space::Ggtt && self.user() {
                return self.refused();
            }
            self.memory.load(space, self.partitioned(words[2], words[3], bit(header, 18)))?
        };
        // Bit 17: the register is compared with GPR0.
        let data = if bit(header, 16) && bit(header, 17) { self.registers.own(0x600) } else { words[1] };
        if compares(header >> 12 & 7, value, data) { Ok(()) } else { Err(End::Waits) }
    }

    /// V8-122, V13-057.
    pub(super) fn store_data_imm(&mut self, words: &[u32]) -> Done {
        let space = space(words[0] & GGTT != 0);
        if space == Space::Ggtt && self.user() {
            return self.refused();
        }
        let first = self.partitioned(words[1], words[2], bit(words[0], 11));
        for (n, word) in (0u64..).zip(&words[3..]) {
            self.memory.store(space, first + 4 * n, *word)?;
        }
        Ok(())
    }

    /// Returns the page for indexed stores: the context's own status page, or the engine's global one, which only the
    /// PF may use (V8-123, V13-055, V13-076). `None` for users.
    fn status_page(&self, own: bool) -> Option<u64> {
        match (self.requester(), own) {
            (Requester::User, _) | (Requester::VfKernel, false) => None,
            (_, true) => Some(PPHWSP),
            (Requester::PfKernel, false) => Some(HWSP),
        }
    }

    /// V8-123, IVB-158; bit 21 selects the context's own page.
    pub(super) fn store_data_index(&mut self, words: &[u32]) -> Done {
        let Some(page) = self.status_page(bit(words[0], 21)) else { return self.refused() };
        for (n, word) in (0u64..).zip(&words[2..]) {
            self.memory.put_local(page + u64::from(words[1] & 0xffc) + 4 * n, *word);
        }
        Ok(())
    }

    /// V8-124, V13-052, IVB-159, trap T35: a user-level command with a register that users may not write is dropped as
    /// a whole; for a VF's driver only that register is skipped. Bits 11:8 are byte write disables.
    pub(super) fn load_register_imm(&mut self, words: &[u32]) -> Done {
        let requester = self.requester();
        let relative = bit(words[0], 19);
        let keep = words[0] >> 8 & 0xf;
        let pairs: Vec<(u32, u32)> = words[1..]
            .chunks_exact(2)
            .map(|pair| (self.register(pair[0], relative, bit(words[0], 17)), pair[1]))
            .collect();
        if requester == Requester::User
            && pairs.iter().any(|(register, _)| !self.registers.may_write(*register, requester))
        {
            return self.refused();
        }
        for (register, value) in pairs {
            if self.registers.may_write(register, requester) {
                self.write(register, value, keep);
            }
        }
        Ok(())
    }

    /// V8-125, V13-048: permitted only for the PF's driver.
    pub(super) fn update_gtt(&mut self, words: &[u32]) -> Done {
        if self.requester() != Requester::PfKernel {
            return self.refused();
        }
        let first = u64::from(words[1]) / PAGE;
        for (n, entry) in (0u64..).zip(words[2..].chunks_exact(2)) {
            self.memory.set_entry(first + n, u64::from(entry[0]) | u64::from(entry[1]) << 32);
        }
        Ok(())
    }

    /// V8-126, V8-140, V13-056: bit 21 makes the store conditional on MI_PREDICATE_RESULT.
    pub(super) fn store_register_mem(&mut self, words: &[u32]) -> Done {
        let header = words[0];
        if bit(header, 21) && self.registers.own(0x418) & 1 == 0 {
            return Ok(());
        }
        let space = space(header & GGTT != 0);
        let register = self.register(words[1], bit(header, 19), bit(header, 17));
        let value = self.read(register);
        if space == Space::Ggtt && self.user() {
            return self.refused();
        }
        let at = self.partitioned(words[2], words[3], bit(header, 16));
        Ok(self.memory.store(space, at, value)?)
    }

    /// V13-211, V13-219, V13-220, V13-223, V13-230: a report of the context's counters. The clock stands during a run, and no kernel
    /// is executed: no counter advances. Only the PF's driver may write it to the GGTT.
    pub(super) fn report_perf_count(&mut self, words: &[u32]) -> Done {
        let space = space(bit(words[1], 0));
        if space == Space::Ggtt && self.requester() != Requester::PfKernel {
            return self.refused();
        }
        let control = if self.class == EngineClass::Render { self.registers.own(OAR_CONTROL) } else { 0 };
        // The OA counts twice as fast as the command streamer.
        let (id, time) = (words[3], 2 * TIMESTAMP);
        let mut report = match (bit(control, 0), control >> 1 & 7) {
            (true, 1) => {
                let mut report = vec![id, 0, time as u32, (time >> 32) as u32, CONTEXT_ID, 0, GPU_TICKS, 0];
                report.resize(LONGEST_REPORT as usize / 4, 0);
                report
            }
            _ => vec![id, time as u32, CONTEXT_ID, GPU_TICKS],
        };
        report.resize(report.len().max(64), 0);
        let at = address(words[1], words[2]) & !0x3f;
        for (n, dword) in (0u64..).zip(report) {
            self.memory.store(space, at + 4 * n, dword)?;
        }
        Ok(())
    }

    /// V8-130, V13-054.
    pub(super) fn load_register_mem(&mut self, words: &[u32]) -> Done {
        let (header, requester) = (words[0], self.requester());
        let space = space(header & GGTT != 0);
        let register = self.register(words[1], bit(header, 19), bit(header, 17));
        // A load of a register that the requester may not write is a MI_NOOP; memory is not read.
        if space == Space::Ggtt && self.user() || !self.registers.may_write(register, requester) {
            return self.refused();
        }
        let value = self.memory.load(space, self.partitioned(words[2], words[3], bit(header, 16)))?;
        self.write(register, value, 0);
        Ok(())
    }

    /// V8-131, V13-053: bit 18 applies to the source, bit 19 to the destination.
    pub(super) fn load_register_reg(&mut self, words: &[u32]) -> Done {
        let (header, requester) = (words[0], self.requester());
        let source = self.register(words[1], bit(header, 18), bit(header, 16));
        let destination = self.register(words[2], bit(header, 19), bit(header, 17));
        let value = self.read(source);
        if !self.registers.may_write(destination, requester) {
            return self.refused();
        }
        self.write(destination, value, 0);
        Ok(())
    }

    /// V8-132, V13-070: bit 22 applies to the source, bit 21 to the destination.
    pub(super) fn copy_mem_mem(&mut self, words: &[u32]) -> Done {
        let [source, destination] = [22, 21].map(|n| space(bit(words[0], n)));
        if self.user() && [source, destination].contains(&Space::Ggtt) {
            return self.refused();
        }
        let value = self.memory.load(source, address(words[3], words[4]))?;
        Ok(self.memory.store(destination, address(words[1], words[2]), value)?)
    }

    /// V8-133, V13-065. Operands are in the command (bit 18) or in registers 0 to 3; bit 16 returns the old value in
    /// registers 4 and 5 (media driver: MI_ATOMIC).
    pub(super) fn atomic(&mut self, words: &[u32]) -> Done {
        let header = words[0];
        let space = space(header & GGTT != 0);
        if space == Space::Ggtt && self.user() {
            return self.refused();
        }
        let code = header >> 8 & 0xff;
        let bits = 32u32 << (header >> 19 & 3);
        let at = self.partitioned(words[1], words[2], bit(words[1], 0));
        let operand = |n: usize| {
            if bit(header, 18) {
                (0..4).fold(0u128, |value, dword| value | u128::from(words[3 + n + 2 * dword]) << (32 * dword))
            } else {
                u128::from(self.registers.gpr(2 * n)) | u128::from(self.registers.gpr(2 * n + 1)) << 64
            }
        };
        let (first, second) = (operand(0), operand(1));
        let mut old = 0u128;
        for dword in 0..bits / 32 {
            old |= u128::from(self.memory.load(space, at + 4 * u64::from(dword))?) << (32 * dword);
        }
        let Some(new) = atomic::operation(code, bits, old, first, second) else { return Err(End::Illegal) };
        for dword in 0..bits / 32 {
            self.memory.store(space, at + 4 * u64::from(dword), (new >> (32 * dword)) as u32)?;
        }
        // "Pre-decrement" returns the new value (Mesa: BRW_AOP_PREDEC), all other operations the old one.
        let old = if code & 0xf == 0xf { new } else { old };
        if bit(header, 16) {
            match bits {
                32 => self.registers.set_own(0x620, old as u32),
                64 => self.registers.set_gpr(4, old as u64),
                _ => {
                    self.registers.set_gpr(4, old as u64);
                    self.registers.set_gpr(5, (old >> 64) as u64);
                }
            }
        }
        Ok(())
    }

    /// V8-134, V13-045, V13-066, trap T5: bit 8 selects the PPGTT, bit 22 nests one level deeper. A batch has at most
    /// its parent's privilege, and an unprivileged batch has no access to the GGTT.
    pub(super) fn batch_buffer_start(&mut self, words: &[u32]) -> Done {
        let header = words[0];
        let space = space(!self.user() && !bit(header, 8));
        // Bit 16: BB_OFFSET is added (Mesa's genxml: Add Offset Enable).
        let offset = if bit(header, 16) { self.registers.own(0x158) } else { 0 };
        let address = address(words[1], words[2]) + u64::from(offset);
        let level = Level { address, space, privileged: space == Space::Ggtt };
        if !bit(header, 22) {
            self.levels.pop();
        }
        self.levels.push(level);
        Ok(())
    }

    /// V8-112: returns to the command after the start of the batch, or of the first batch of its chain.
    pub(super) fn batch_buffer_end(&mut self) -> Done {
        self.levels.pop();
        Ok(())
    }

    /// V8-135, V13-067, IVB-165: the batch continues while the comparison is true. Bit 21 enables the comparison, bit
    /// 19 masks memory's first dword with the second, bits 14:12 select the comparison, bit 18 ends only this level.
    pub(super) fn conditional_batch_buffer_end(&mut self, words: &[u32]) -> Done {
        let header = words[0];
        let space = space(header & GGTT != 0);
        if space == Space::Ggtt && self.user() {
            return self.refused();
        }
        if !bit(header, 21) {
            return Ok(());
        }
        let at = address(words[2], words[3]) & !7;
        let mut value = self.memory.load(space, at)?;
        if bit(header, 19) {
            value &= self.memory.load(space, at + 4)?;
        }
        if !compares(header >> 12 & 7, value, words[1]) {
            if bit(header, 18) {
                self.levels.pop();
            } else {
                self.levels.clear();
            }
        }
        Ok(())
    }

    /// Post-sync write: data, or the timestamp (V8-127, V8-137); at an index in a status page if `index` is set, in the
    /// engine's page if `space` is the GGTT (V13-060, V13-062, V13-076). Users write neither status pages nor GGTT
    /// addresses.
    fn post_sync(&mut self, operation: u32, index: bool, space: Space, at: u64, data: &[u32]) -> Done {
        let stamp = [TIMESTAMP as u32, (TIMESTAMP >> 32) as u32];
        let words = match operation {
            1 => data,
            3 => &stamp[..],
            _ => return Ok(()),
        };
        if index {
            let Some(page) = self.status_page(space == Space::Ppgtt) else { return self.refused() };
            for (n, word) in (0u64..).zip(words) {
                self.memory.put_local(page + (at & 0xff8) + 4 * n, *word);
            }
            return Ok(());
        }
        if space == Space::Ggtt && self.user() {
            return self.refused();
        }
        for (n, word) in (0u64..).zip(words) {
            self.memory.store(space, (at & !7) + 4 * n, *word)?;
        }
        Ok(())
    }

    /// V8-127, V13-062: writes a dword or a qword, according to the command's length; bit 2 of the address selects the
    /// GGTT.
    pub(super) fn flush_dw(&mut self, words: &[u32]) -> Done {
        let (header, low) = (words[0], words[1]);
        let at = address(low, words[2] & 0xffff);
        self.post_sync(header >> 14 & 3, bit(header, 21), space(bit(low, 2)), at, &words[3..])?;
        if bit(header, 8) {
            self.event(4);
        }
        Ok(())
    }

    /// V8-137, V8-140, V13-060: bit 8 of the header makes the command conditional on MI_PREDICATE_RESULT; bit 23 of the
    /// flags writes a register as MI_LOAD_REGISTER_IMM does.
    pub(super) fn pipe_control(&mut self, words: &[u32]) -> Done {
        let (header, flags) = (words[0], words[1]);
        if bit(header, 8) && self.registers.own(0x418) & 1 == 0 {
            return Ok(());
        }
        self.after_flush(words)?;
        if bit(flags, 8) {
            self.event(4);
        }
        Ok(())
    }

    /// The post-sync operation of PIPE_CONTROL.
    fn after_flush(&mut self, words: &[u32]) -> Done {
        let flags = words[1];
        if bit(flags, 23) {
            let (register, requester) = (self.register(words[2], false, false), self.requester());
            if !self.registers.may_write(register, requester) {
                return self.refused();
            }
            self.write(register, words[4], 0);
            return Ok(());
        }
        let at = address(words[2], words[3] & 0xffff);
        self.post_sync(flags >> 14 & 3, bit(flags, 21), space(bit(flags, 24)), at, &words[4..6])
    }
}
