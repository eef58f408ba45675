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
use crate::registers::guc::{VF_SW_FLAG, VF_SW_FLAGS};
use crate::registers::{Access, FunctionRegisters, Kind, RegisterFile, Unit, VIEW_BASE, VIEW_STRIDE};
use crate::topology::EngineId;

/// State of the GT for one VF.
pub struct VirtualFunction {
    /// The VF's values of the registers with one value per function.
    pub registers: FunctionRegisters,
    /// The VF's copy of the interrupt tree (V13-262).
    pub interrupts: Interrupts,
    power_context: Box<[[AtomicU32; GLOBALS.len()]]>,
}

impl VirtualFunction {
    /// Returns the state of a VF of the card with the registers in `tables`, after reset.
    pub fn new(
        function: Function,
        generation: &Generation,
        tables: &RegisterFile,
        sink: Arc<dyn InterruptSink>,
    ) -> Self {
        VirtualFunction {
            registers: FunctionRegisters::new(tables),
            interrupts: Interrupts::new(function, generation.interrupts, sink),
            power_context: generation.engines.all().map(|_| Default::default()).collect(),
        }
    }

    /// Registers that the function's contexts share on an engine (`GLOBALS`), saved here while none of them is loaded.
    #[allow(clippy::indexing_slicing, reason = "there is an entry for each engine")]
    pub fn power_context(&self, engine: EngineId) -> &[AtomicU32; GLOBALS.len()] {
        &self.power_context[engine.index()]
    }

    /// Resets registers and interrupts, as on a reset of the function (V13-124, V13-125). The caller holds the GuC's
    /// lock. No context of the VF may be loaded: the engine would store the old values of the registers that the
    /// function's contexts share here when it leaves the context, for the next owner of the VF to read.
    pub fn reset(&self) {
        // Under the tree's lock, so that the tree and the stored Enable and Mask registers stay equal.
        self.interrupts.reset_with(|| self.reset_registers());
    }

    /// Resets the registers, including those that the function's contexts share on an engine, but not the interrupt
    /// tree. The reset value of the shared ones is 0 (`registers::engine` asserts it).
    pub fn reset_registers(&self) {
        self.registers.reset();
        self.power_context.iter().flatten().for_each(|value| value.store(0, Ordering::Release));
    }
}

/// Decodes `offset` in the PF's BAR. Returns the VF and the offset of its register in its own BAR; `None` outside the
/// views of VFs 1 to 63.
#[allow(
    clippy::arithmetic_side_effects,
    reason = "the remainder is below VIEW_STRIDE, and the first view ends below 4 MiB"
)]
pub fn decode_vf_view(offset: u32) -> Option<(Function, u32)> {
    let distance = offset.checked_sub(VIEW_BASE)?;
    Some((Function::vf(distance / VIEW_STRIDE)?, VIEW_BASE + distance % VIEW_STRIDE))
}

/// Offset of dword `n`, 0 to 3, of the GuC mailbox.
#[allow(clippy::arithmetic_side_effects, reason = "callers pass numbers of the mailbox's dwords")]
fn mailbox_offset(n: usize) -> u32 {
    debug_assert!(n < usize::from(VF_SW_FLAGS), "the mailbox has four dwords");
    VF_SW_FLAG + 4 * count(n)
}

impl Gt {
    /// State of `function`; `None` if it is not a VF, 1 to 63.
    pub fn vf(&self, function: Function) -> Option<&VirtualFunction> {
        self.vfs.get(function.index().checked_sub(1)?)
    }

    /// The interrupt tree of `function`.
    pub fn interrupts_of(&self, function: Function) -> &Interrupts {
        self.vf(function).map_or(&self.interrupts, |vf| &vf.interrupts)
    }

    /// The value of the register at `offset` of `function`, without side effects; 0 if a VF has no such register.
    pub(crate) fn function_value(&self, function: Function, offset: u32) -> u32 {
        if function == Function::PF {
            return self.registers.value(offset);
        }
        let (Some(vf), Some(copy)) = (self.vf(function), self.copy_index(offset)) else { return 0 };
        vf.registers.value(copy)
    }

    /// Stores the value of the register at `offset` of `function`, without side effects or write mask. Dropped if a VF
    /// has no such register. Only for the unit that owns the register, with the lock of its state held.
    pub(super) fn set_function_value(&self, function: Function, offset: u32, value: u32) {
        if function == Function::PF {
            self.registers.set(offset, value);
        } else if let (Some(vf), Some(copy)) = (self.vf(function), self.copy_index(offset)) {
            vf.registers.set(copy, value);
        }
    }

    fn copy_index(&self, offset: u32) -> Option<u16> {
        self.registers.decode(offset)?.function_copy
    }

    /// Reads dword `n`, 0 to 3, of the GuC mailbox of `function`.
    pub fn mailbox_dword(&self, function: Function, n: usize) -> u32 {
        self.function_value(function, mailbox_offset(n))
    }

    /// Sets dword `n`, 0 to 3, of the GuC mailbox of `function`.
    pub fn set_mailbox_dword(&self, function: Function, n: usize, value: u32) {
        self.set_function_value(function, mailbox_offset(n), value);
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
    fn pf_view_offset_maps_to_vf_and_register() {
        for offset in [0x18_ffff, 0x19_0240, 0x19_03ff, 0x1a_0000] {
            assert_eq!(decode_vf_view(offset), None, "{offset:#x}");
        }
        assert_eq!(decode_vf_view(0x19_0400), Some((Function::new(1).unwrap(), 0x19_0000)));
        assert_eq!(decode_vf_view(0x19_0640), Some((Function::new(1).unwrap(), 0x19_0240)));
        assert_eq!(decode_vf_view(0x19_0240 + 63 * 0x400), Some((Function::new(63).unwrap(), 0x19_0240)));
        assert_eq!(decode_vf_view(0x19_ffff), Some((Function::new(63).unwrap(), 0x19_03ff)));
    }
}
