// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Batch buffers under construction. The encoders are those of `arctic-mi`.

use arctic_mi::header::PIPE_FLUSH_ENABLE;
use arctic_mi::{self as mi, Alu, Process, Reg};
pub use arctic_mi::{Compare, MAX_QWORDS, PostSync};

/// A batch under construction, which will be loaded at a fixed GPU virtual address. Addresses of its commands are GPU
/// virtual addresses, registers are relative to the engine's MMIO base.
#[derive(Clone, Debug)]
pub struct Batch {
    base: u64,
    dwords: Vec<u32>,
}

impl Batch {
    /// An empty batch that will be loaded at GPU virtual address `base`.
    pub fn at(base: u64) -> Self {
        Batch { base, dwords: Vec::new() }
    }

    /// The dwords built so far.
    pub fn dwords(&self) -> &[u32] {
        &self.dwords
    }

    /// Address of the next command, as a target of [`Batch::batch_buffer_start`].
    pub fn here(&self) -> u64 {
        self.base + 4 * self.dwords.len() as u64
    }

    /// Appends one command unchanged.
    pub fn push(&mut self, command: &[u32]) -> &mut Self {
        self.dwords.extend_from_slice(command);
        self
    }

    /// MI_NOOP.
    pub fn noop(&mut self) -> &mut Self {
        self.push(&[mi::NOOP])
    }

    /// MI_ARB_CHECK: a point at which the context may be preempted.
    pub fn arbitration_check(&mut self) -> &mut Self {
        self.push(&[mi::ARB_CHECK])
    }

    /// MI_STORE_DATA_IMM of one dword.
    pub fn store_dword(&mut self, address: u64, value: u32) -> &mut Self {
        self.push(&mi::store_data_imm(Process(address), value))
    }

    /// MI_STORE_DATA_IMM of 1 to [`MAX_QWORDS`] quadwords.
    pub fn store_qwords(&mut self, address: u64, values: &[u64]) -> &mut Self {
        self.push(&mi::store_data_imm_qwords(Process(address), values))
    }

    /// MI_LOAD_REGISTER_IMM of both halves of general purpose register `n`.
    pub fn load_gpr(&mut self, n: u32, value: u64) -> &mut Self {
        self.push(&mi::load_gpr(n, value))
    }

    /// MI_LOAD_REGISTER_REG.
    pub fn load_register_reg(&mut self, to: u32, from: u32) -> &mut Self {
        self.push(&mi::load_register_reg(Reg::Own(to), Reg::Own(from)))
    }

    /// MI_LOAD_REGISTER_MEM of one dword.
    pub fn load_register_mem(&mut self, register: u32, address: u64) -> &mut Self {
        self.push(&mi::load_register_mem(Reg::Own(register), Process(address)))
    }

    /// MI_STORE_REGISTER_MEM of one dword.
    pub fn store_register_mem(&mut self, register: u32, address: u64) -> &mut Self {
        self.push(&mi::store_register_mem(Reg::Own(register), Process(address)))
    }

    /// Stores both halves of general purpose register `n` to the quadword at `address`.
    pub fn store_gpr(&mut self, n: u32, address: u64) -> &mut Self {
        self.store_register_mem(mi::gpr(n), address).store_register_mem(mi::gpr(n) + 4, address + 4)
    }

    /// MI_MATH with these ALU instructions.
    pub fn math(&mut self, program: &[Alu]) -> &mut Self {
        self.push(&mi::math(program))
    }

    /// MI_SEMAPHORE_WAIT in polling mode: waits until the dword at `address` satisfies `compare` with `data`.
    pub fn semaphore_wait(&mut self, address: u64, compare: Compare, data: u32) -> &mut Self {
        self.push(&mi::semaphore_wait(Process(address), compare, data))
    }

    /// MI_ATOMIC: adds one to the dword at `address`.
    pub fn atomic_increment(&mut self, address: u64) -> &mut Self {
        self.push(&mi::atomic_increment(Process(address)))
    }

    /// MI_CONDITIONAL_BATCH_BUFFER_END: continues if the dword at `address` satisfies `compare` with `data`, and
    /// ends the batch otherwise.
    pub fn end_unless(&mut self, address: u64, compare: Compare, data: u32) -> &mut Self {
        self.push(&mi::conditional_batch_buffer_end(Process(address), compare, data))
    }

    /// MI_BATCH_BUFFER_START: a jump without return.
    pub fn batch_buffer_start(&mut self, address: u64) -> &mut Self {
        self.push(&mi::batch_buffer_start(Process(address)))
    }

    /// MI_BATCH_BUFFER_START of a second-level batch: its end returns to the command after this one.
    pub fn call(&mut self, address: u64) -> &mut Self {
        self.push(&mi::second_level_batch(Process(address)))
    }

    /// MI_BATCH_BUFFER_END.
    pub fn batch_buffer_end(&mut self) -> &mut Self {
        self.push(&[mi::BATCH_BUFFER_END])
    }

    /// MI_FLUSH_DW with a 64-bit write of `what` to `address` (copy and media engines).
    pub fn flush_dw(&mut self, address: u64, what: PostSync) -> &mut Self {
        self.push(&mi::flush_dw(Process(address), what))
    }

    /// PIPE_CONTROL with a 64-bit write of `what` to `address` (render and compute engines).
    pub fn pipe_control(&mut self, address: u64, what: PostSync) -> &mut Self {
        let mut command = mi::pipe_control(Process(address), what);
        command[1] |= PIPE_FLUSH_ENABLE;
        self.push(&command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VA: u64 = 0x1_2345_6780;

    /// Contract K.8: a flush by the render engine; source and destination of a register move; addresses.
    #[test]
    fn a_batch_consists_of_the_encoded_commands() {
        let mut batch = Batch::at(0x1000);
        batch.pipe_control(VA, PostSync::Immediate(0x2_0000_0001)).load_register_reg(0x600, 0x358);
        assert_eq!(batch.dwords()[..6], [0x7a00_0004, 0x0010_4080, 0x2345_6780, 1, 1, 2]);
        assert_eq!(batch.dwords()[6..], [0x150c_0001, 0x358, 0x600]);
        assert_eq!(batch.here(), 0x1024);
    }
}
