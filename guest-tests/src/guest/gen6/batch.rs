// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Batches of Gen6 and Gen7: MI commands and flushes with addresses of 32 bits, each with a relocation.
//!
//! Layouts: IVB-140..166, G67-075..081, `i915: gt/intel_gpu_commands.h`.

use super::gem::Object;
use crate::guest::batch::PostSync;
use crate::guest::device::Engine;
use crate::guest::uapi::i915::{DOMAIN_INSTRUCTION, Relocation};
use crate::number::{count, high, low};

const fn mi(opcode: u32) -> u32 {
    opcode << 23
}

/// MI_NOOP.
pub const MI_NOOP: u32 = mi(0x00);
/// MI_BATCH_BUFFER_END.
pub const MI_BATCH_BUFFER_END: u32 = mi(0x0a);
const MI_STORE_DATA_IMM: u32 = mi(0x20);
const MI_LOAD_REGISTER_IMM: u32 = mi(0x22);
const MI_STORE_REGISTER_MEM: u32 = mi(0x24);
const MI_FLUSH_DW: u32 = mi(0x26);
const MI_LOAD_REGISTER_MEM: u32 = mi(0x29);
const MI_BATCH_BUFFER_START: u32 = mi(0x31);
const MI_CONDITIONAL_BATCH_BUFFER_END: u32 = mi(0x36);
const PIPE_CONTROL: u32 = 0x7a00_0000;

/// MI_BATCH_BUFFER_START: the batch is not privileged.
const BB_NON_SECURE: u32 = 1 << 8;
const COND_DO_COMPARE: u32 = 1 << 21;
const PIPE_CONTROL_CS_STALL: u32 = 1 << 20;
const PIPE_CONTROL_STALL_AT_SCOREBOARD: u32 = 1 << 1;

/// Commands, and the objects that they access.
#[derive(Default)]
pub struct Batch<'o> {
    dwords: Vec<u32>,
    objects: Vec<&'o Object<'o>>,
    relocations: Vec<Relocation>,
}

impl<'o> Batch<'o> {
    /// The commands.
    pub fn dwords(&self) -> &[u32] {
        &self.dwords
    }

    /// The accessed objects. The batch itself has index 0 in the relocations, the first object 1.
    pub fn objects(&self) -> &[&'o Object<'o>] {
        &self.objects
    }

    /// The relocations.
    pub fn relocations(&self) -> &[Relocation] {
        &self.relocations
    }

    /// Appends dwords.
    pub fn push(&mut self, dwords: &[u32]) -> &mut Self {
        self.dwords.extend_from_slice(dwords);
        self
    }

    /// Appends the address of byte `delta` of `object`; a command with this address writes in `write_domain`, or only
    /// reads if it is 0.
    pub fn address(&mut self, object: &'o Object<'o>, delta: u32, write_domain: u32) -> &mut Self {
        let known = self.objects.iter().position(|known| std::ptr::eq(*known, object));
        let index = known.unwrap_or_else(|| {
            self.objects.push(object);
            self.objects.len() - 1
        });
        self.relocate(count(index + 1), object.presumed(), delta, write_domain)
    }

    fn relocate(&mut self, target: u32, presumed: u64, delta: u32, write_domain: u32) -> &mut Self {
        self.relocations.push(Relocation {
            target_handle: target,
            delta,
            offset: 4 * self.dwords.len() as u64,
            presumed_offset: presumed,
            read_domains: if write_domain == 0 { DOMAIN_INSTRUCTION } else { write_domain },
            write_domain,
        });
        self.push(&[low(presumed).wrapping_add(delta)])
    }

    /// MI_STORE_DATA_IMM of one dword.
    pub fn store_dword(&mut self, object: &'o Object<'o>, at: u32, value: u32) -> &mut Self {
        self.push(&[MI_STORE_DATA_IMM | 2, 0]).address(object, at, DOMAIN_INSTRUCTION).push(&[value])
    }

    /// MI_STORE_DATA_IMM of one quadword.
    pub fn store_qword(&mut self, object: &'o Object<'o>, at: u32, value: u64) -> &mut Self {
        self.push(&[MI_STORE_DATA_IMM | 3, 0]).address(object, at, DOMAIN_INSTRUCTION).push(&[low(value), high(value)])
    }

    /// MI_LOAD_REGISTER_IMM of one register.
    pub fn load_register(&mut self, register: u32, value: u32) -> &mut Self {
        self.push(&[MI_LOAD_REGISTER_IMM | 1, register, value])
    }

    /// MI_STORE_REGISTER_MEM.
    pub fn store_register(&mut self, register: u32, object: &'o Object<'o>, at: u32) -> &mut Self {
        self.push(&[MI_STORE_REGISTER_MEM | 1, register]).address(object, at, DOMAIN_INSTRUCTION)
    }

    /// MI_LOAD_REGISTER_MEM.
    pub fn load_register_mem(&mut self, register: u32, object: &'o Object<'o>, at: u32) -> &mut Self {
        self.push(&[MI_LOAD_REGISTER_MEM | 1, register]).address(object, at, 0)
    }

    /// MI_CONDITIONAL_BATCH_BUFFER_END: continues if the dword at byte `at` of `object` is greater than `data`.
    pub fn end_unless_greater(&mut self, object: &'o Object<'o>, at: u32, data: u32) -> &mut Self {
        self.push(&[MI_CONDITIONAL_BATCH_BUFFER_END | COND_DO_COMPARE | 1, data]).address(object, at, 0)
    }

    /// MI_BATCH_BUFFER_START: a jump to byte `at` of the batch in `object`.
    pub fn jump(&mut self, object: &'o Object<'o>, at: u32) -> &mut Self {
        self.push(&[MI_BATCH_BUFFER_START | BB_NON_SECURE]).address(object, at, 0)
    }

    /// MI_BATCH_BUFFER_START: a jump to the start of this batch.
    pub fn jump_to_start(&mut self) -> &mut Self {
        self.push(&[MI_BATCH_BUFFER_START | BB_NON_SECURE]).relocate(0, 0, 0, 0)
    }

    /// A flush that writes `what` to the quadword at byte `at` of `object`: PIPE_CONTROL on the render engine,
    /// MI_FLUSH_DW on the others.
    pub fn flush(&mut self, engine: Engine, object: &'o Object<'o>, at: u32, what: PostSync) -> &mut Self {
        let (operation, value) = match what {
            PostSync::Immediate(value) => (1 << 14, value),
            PostSync::Timestamp => (3 << 14, 0),
        };
        match engine.has_pipe_control() {
            true => {
                self.push(&[PIPE_CONTROL | 3, PIPE_CONTROL_CS_STALL | PIPE_CONTROL_STALL_AT_SCOREBOARD | operation])
            }
            false => self.push(&[MI_FLUSH_DW | operation | 2]),
        };
        self.address(object, at, DOMAIN_INSTRUCTION).push(&[low(value), high(value)])
    }

    /// MI_BATCH_BUFFER_END, and MI_NOOP up to a whole number of quadwords.
    pub fn end(&mut self) -> &mut Self {
        self.push(&[MI_BATCH_BUFFER_END]);
        if self.dwords.len() % 2 == 1 {
            self.push(&[MI_NOOP]);
        }
        self
    }
}
