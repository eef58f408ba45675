// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Commands that load and store registers.

use arctic_base::gpu::Permission;

use super::{Current, Engine};
use crate::command::mi::fields;
use crate::gt::SideEffect;
use crate::memory::Fault;
use crate::registers::Decoded;
use crate::registers::engine::{CTL, CTL_NO_WRITES};

/// First offset that commands must not write (IVB-159).
const FORBIDDEN: u32 = 0xc_0000;
/// Offsets below [`FORBIDDEN`] that commands must not write.
const FORBIDDEN_BLOCK: std::ops::Range<u32> = 0x8800..0x8900;
/// The registers of the memory controller, which only CPUs can read (ILK-031).
const MEMORY_CONTROLLER: std::ops::Range<u32> = 0x14_0000..0x18_0000;

/// Whether commands may write the register at `offset` at all.
fn writable(offset: u32) -> bool {
    offset < FORBIDDEN && !FORBIDDEN_BLOCK.contains(&offset)
}

/// The access that commands with or without privilege have to a register (IVB-159, IVB-161, IVB-163). A ring of which CTL
/// forbids it writes none.
pub fn register_permission(offset: u32, decoded: &Decoded, privileged: bool) -> Option<Permission> {
    let read = privileged && !MEMORY_CONTROLLER.contains(&offset);
    Permission::new(read, writable(offset) && (privileged || decoded.register.scope.of_contexts()))
}

/// Bits of each register that an MI_LOAD_REGISTER_IMM with this header writes: those of the bytes that it does not
/// disable (IVB-159).
pub(super) fn written_lanes(header: u32) -> u32 {
    let disabled = fields::BYTE_DISABLES.get_in(header);
    let written = (0..4).filter(|byte| disabled >> byte & 1 == 0);
    written.fold(0, |lanes, byte: u32| lanes | 0xff << byte.saturating_mul(8))
}

impl Engine {
    /// MI_LOAD_REGISTER_IMM: pairs of offset and value; a dword without a partner at its end is ignored.
    pub(super) fn load_register(&mut self, current: &Current<'_>) -> Result<(), Fault> {
        let lanes = written_lanes(current.header);
        for n in (1..current.length.saturating_sub(1)).step_by(2) {
            let (offset, value) =
                (current.dword(n)? & fields::LOADED_REGISTER.mask(), current.dword(n.saturating_add(1))?);
            self.write_register(current, offset, value & lanes, lanes);
        }
        Ok(())
    }

    /// MI_STORE_REGISTER_MEM (IVB-161). Of registers that only CPUs can access, it stores 0 (ILK-031).
    pub(super) fn store_register(&mut self, current: &Current<'_>) -> Result<(), Fault> {
        let space = self.space(current.gt, current.has(fields::GLOBAL));
        let offset = current.dword(1)? & fields::REGISTER.mask();
        let value = if MEMORY_CONTROLLER.contains(&offset) { 0 } else { current.gt.read(offset) };
        current.memory.write32(space, current.dword(2)? & fields::MEMORY.mask(), value)
    }

    /// MI_LOAD_REGISTER_MEM (IVB-163). Without privilege, only registers of contexts can be loaded.
    pub(super) fn load_register_memory(&mut self, current: &Current<'_>) -> Result<(), Fault> {
        let space = self.space(current.gt, current.has(fields::GLOBAL));
        let offset = current.dword(1)? & fields::REGISTER.mask();
        let value = current.memory.read32(space, current.dword(2)? & fields::MEMORY.mask())?;
        let context =
            |offset| current.gt.registers.decode(offset).is_some_and(|found| found.register.scope.of_contexts());
        if self.privileged() || context(offset) {
            self.write_register(current, offset, value, !0);
        }
        Ok(())
    }

    /// Writes a register for a command, unless the ring's control register forbids it. A reset cannot be requested by
    /// commands.
    pub(super) fn write_register(&self, current: &Current<'_>, offset: u32, value: u32, lanes: u32) {
        let gt = current.gt;
        let in_ring = self.batch.is_none() && CTL_NO_WRITES.is_set(self.value(gt, CTL));
        if in_ring || !writable(offset) || lanes == 0 {
            return;
        }
        // An engine does not wait for the steps of others: it would be a deadlock.
        if let Some(SideEffect::Wake(_)) = gt.write(offset, value, lanes) {
            gt.wakeups.post();
        }
    }
}
