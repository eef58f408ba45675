// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Batches of Gen6 and Gen7 under construction: each address of a command has a relocation. The encoders are those of
//! `arctic-mi`.

use arctic_mi::{BATCH_BUFFER_END, NOOP, PostSync, Process, gen6};

use super::gem::Object;
use crate::device::Engine;
use crate::number::{count, low};
use crate::uapi::i915::{DOMAIN_INSTRUCTION, Relocation};

/// Address in an encoded command that a relocation replaces.
const RELOCATED: arctic_mi::At = Process(0);

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

    /// Appends `command`, with the address of byte `delta` of `object` as dword `at`, like [`Batch::address`].
    pub fn addressed(
        &mut self,
        command: &[u32],
        at: usize,
        object: &'o Object<'o>,
        delta: u32,
        write_domain: u32,
    ) -> &mut Self {
        self.push(&command[..at]).address(object, delta, write_domain).push(&command[at + 1..])
    }

    /// MI_STORE_DATA_IMM of one dword.
    pub fn store_dword(&mut self, object: &'o Object<'o>, at: u32, value: u32) -> &mut Self {
        self.addressed(&gen6::store_data_imm(RELOCATED, value), 2, object, at, DOMAIN_INSTRUCTION)
    }

    /// MI_STORE_DATA_IMM of one quadword.
    pub fn store_qword(&mut self, object: &'o Object<'o>, at: u32, value: u64) -> &mut Self {
        self.addressed(&gen6::store_data_imm_qword(RELOCATED, value), 2, object, at, DOMAIN_INSTRUCTION)
    }

    /// MI_LOAD_REGISTER_IMM of one register.
    pub fn load_register(&mut self, register: u32, value: u32) -> &mut Self {
        self.push(&gen6::load_register_imm(register, value))
    }

    /// MI_STORE_REGISTER_MEM.
    pub fn store_register(&mut self, register: u32, object: &'o Object<'o>, at: u32) -> &mut Self {
        self.addressed(&gen6::store_register_mem(register, RELOCATED), 2, object, at, DOMAIN_INSTRUCTION)
    }

    /// MI_LOAD_REGISTER_MEM.
    pub fn load_register_mem(&mut self, register: u32, object: &'o Object<'o>, at: u32) -> &mut Self {
        self.addressed(&gen6::load_register_mem(register, RELOCATED), 2, object, at, 0)
    }

    /// MI_CONDITIONAL_BATCH_BUFFER_END: continues if the dword at byte `at` of `object` is greater than `data`.
    pub fn end_unless_greater(&mut self, object: &'o Object<'o>, at: u32, data: u32) -> &mut Self {
        self.addressed(&gen6::end_unless_greater(RELOCATED, data), 2, object, at, 0)
    }

    /// MI_BATCH_BUFFER_START: a jump to byte `at` of the batch in `object`.
    pub fn jump(&mut self, object: &'o Object<'o>, at: u32) -> &mut Self {
        self.addressed(&gen6::batch_buffer_start(RELOCATED), 1, object, at, 0)
    }

    /// MI_BATCH_BUFFER_START: a jump to the start of this batch.
    pub fn jump_to_start(&mut self) -> &mut Self {
        self.push(&gen6::batch_buffer_start(RELOCATED)[..1]).relocate(0, 0, 0, 0)
    }

    /// A flush that writes `what` to the quadword at byte `at` of `object`: PIPE_CONTROL on the render engine,
    /// MI_FLUSH_DW on the others.
    pub fn flush(&mut self, engine: Engine, object: &'o Object<'o>, at: u32, what: PostSync) -> &mut Self {
        match engine.has_pipe_control() {
            true => self.addressed(&gen6::pipe_control(RELOCATED, what), 2, object, at, DOMAIN_INSTRUCTION),
            false => self.addressed(&gen6::flush_dw(RELOCATED, what), 1, object, at, DOMAIN_INSTRUCTION),
        }
    }

    /// MI_BATCH_BUFFER_END, and MI_NOOP up to a whole number of quadwords.
    pub fn end(&mut self) -> &mut Self {
        self.push(&[BATCH_BUFFER_END]);
        if self.dwords.len() % 2 == 1 {
            self.push(&[NOOP]);
        }
        self
    }
}
