// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registers with a separate copy per virtual function (V13-005, contract C.2), and the function's interrupts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use arctic_sriov::number::count;

use super::{Gt, SideEffect};
use crate::generation::Generation;
use crate::host::{Function, InterruptSink};
use crate::interrupts::Interrupts;
use crate::registers::engine_offsets::GLOBALS;
use crate::registers::guc::VF_SW_FLAG;
use crate::registers::{Access, FunctionRegisters, Kind, RegisterFile, Unit, VIEW_BASE, VIEW_STRIDE};
use crate::topology::EngineId;

/// State of the GT for one VF.
pub struct VirtualFunction {
    /// The VF's values of the registers with one value per function.
    pub registers: FunctionRegisters,
    /// The VF's copy of the interrupt tree (V13-262).
    pub interrupts: Interrupts,
    globals: Box<[[AtomicU32; GLOBALS.len()]]>,
}

impl VirtualFunction {
    /// Returns the state of a VF of the card with the registers of `file`, after reset.
    pub fn new(function: Function, generation: &Generation, file: &RegisterFile, sink: Arc<dyn InterruptSink>) -> Self {
        VirtualFunction {
            registers: FunctionRegisters::new(file),
            interrupts: Interrupts::new(function, generation.interrupts, sink),
            globals: generation.engines.all().map(|_| Default::default()).collect(),
        }
    }

    /// Registers that the function's contexts share on an engine (`GLOBALS`), saved here while none of them is loaded.
    #[allow(clippy::indexing_slicing, reason = "there is an entry for each engine")]
    pub fn globals(&self, engine: EngineId) -> &[AtomicU32; GLOBALS.len()] {
        &self.globals[engine.index()]
    }

    /// Resets registers and interrupts, as on a reset of the function (V13-124, V13-125).
    pub fn reset(&self) {
        // Atomic with the tree: a concurrent write affects either both or neither.
        self.interrupts.reset_with(|| self.reset_registers());
    }

    /// Resets the registers, among them those that the function's contexts share on an engine, but not the interrupt
    /// tree.
    pub fn reset_registers(&self) {
        self.registers.reset();
        self.globals.iter().flatten().for_each(|value| value.store(0, Ordering::Release));
    }
}

/// Decodes `offset` in the PF's registers into the VF and the offset within the VF's copy, if it lies in a view.
#[allow(
    clippy::arithmetic_side_effects,
    reason = "the remainder is below VIEW_STRIDE, and the first view ends below 4 MiB"
)]
pub fn pf_view(offset: u32) -> Option<(Function, u32)> {
    let behind = offset.checked_sub(VIEW_BASE)?;
    Some((Function::vf(behind / VIEW_STRIDE)?, VIEW_BASE + behind % VIEW_STRIDE))
}

impl Gt {
    /// State of `function` if it is a VF.
    pub fn vf(&self, function: Function) -> Option<&VirtualFunction> {
        self.vfs.get(function.index().checked_sub(1)?)
    }

    /// The interrupt tree of `function`.
    pub fn interrupts_of(&self, function: Function) -> &Interrupts {
        self.vf(function).map_or(&self.interrupts, |vf| &vf.interrupts)
    }

    /// The value of the register at `offset` of `function`, without side effects; 0 if a VF has no such register.
    pub(super) fn function_value(&self, function: Function, offset: u32) -> u32 {
        let Some(vf) = self.vf(function) else { return self.registers.value(offset) };
        self.function_copy(offset).map_or(0, |copy| vf.registers.value(copy))
    }

    /// Stores the value of the register at `offset` of `function`, without side effects or write mask. Only for the
    /// unit that owns the register.
    pub(super) fn set_function_value(&self, function: Function, offset: u32, value: u32) {
        match (self.vf(function), self.function_copy(offset)) {
            (None, _) => self.registers.set(offset, value),
            (Some(vf), Some(copy)) => vf.registers.set(copy, value),
            (Some(_), None) => {}
        }
    }

    fn function_copy(&self, offset: u32) -> Option<u16> {
        self.registers.decode(offset)?.function_copy
    }

    /// Reads dword `n` of the GuC mailbox of `function`.
    #[allow(clippy::arithmetic_side_effects, reason = "callers pass numbers of the mailbox's dwords, 0 to 3")]
    pub fn mailbox(&self, function: Function, n: usize) -> u32 {
        self.function_value(function, VF_SW_FLAG + 4 * count(n))
    }

    /// Sets dword `n` of the GuC mailbox of `function`.
    #[allow(clippy::arithmetic_side_effects, reason = "callers pass numbers of the mailbox's dwords, 0 to 3")]
    pub fn set_mailbox(&self, function: Function, n: usize, value: u32) {
        self.set_function_value(function, VF_SW_FLAG + 4 * count(n), value);
    }

    /// Reads the register at `offset` of a VF; registers with one value for the card read 0 (V13-005).
    pub(super) fn read_vf(&self, function: Function, offset: u32) -> u32 {
        let Some(decoded) = self.registers.decode(offset) else { return 0 };
        let (Some(copy), Some(vf)) = (decoded.function_copy, self.vf(function)) else { return 0 };
        match decoded.register.kind {
            Kind::Live(live) => live.read(self, Access { function, offset, decoded }),
            _ => vf.registers.value(copy),
        }
    }

    /// Writes the bits in `lanes` of the register at `offset` of a VF, as [`Gt::mmio_write`]; returns the action that
    /// the card must perform. Writes to registers with one value for the card are dropped.
    pub(super) fn write_vf(&self, function: Function, offset: u32, value: u32, lanes: u32) -> Option<SideEffect> {
        let decoded = self.registers.decode(offset)?;
        let (copy, vf) = (decoded.function_copy?, self.vf(function)?);
        match decoded.register.kind {
            Kind::Live(live) => self.write_live(live, Access { function, offset, decoded }, value, lanes),
            kind => {
                vf.registers.write(copy, kind.limited(lanes), value & lanes);
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Contract A.4: the PF's views of the VFs' registers.
    #[test]
    fn the_pf_sees_vf_registers_behind_its_own() {
        assert_eq!(pf_view(0x19_0240), None);
        assert_eq!(pf_view(0x19_0640), Some((Function(1), 0x19_0240)));
        assert_eq!(pf_view(0x19_0240 + 63 * 0x400), Some((Function(63), 0x19_0240)));
        assert_eq!(pf_view(0x1a_0000), None);
    }
}
