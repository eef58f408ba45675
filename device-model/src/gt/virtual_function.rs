// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registers with a separate copy per virtual function (V13-005, contract C.2), and the function's interrupts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use arctic_sriov::number::count;

use super::{Gt, SideEffect};
use crate::host::{Function, InterruptSink};
use crate::interrupts::Interrupts;
use crate::registers::engine_offsets::GLOBALS;
use crate::registers::{InterruptRegister, Kind, Live};
use crate::topology::EngineId;

/// VF_SW_FLAG(0): first dword of the GuC mailbox.
const SW_FLAG: u32 = 0x19_0240;
/// Number of dwords of the mailbox.
const SW_FLAGS: usize = 4;
/// VF_CAP_REG: bit 0 indicates to the driver that the function is a VF.
const VF_CAP: u32 = 0x19_01f8;
/// GUC_HOST_INTERRUPT: doorbell of the GuC.
const GUC_HOST_INTERRUPT: u32 = 0x19_01f0;
/// Distance between the PF's views of the VFs' registers: the view of VF n is n times this above the PF's own registers
/// (xe: xe_mmio_init_vf_view).
const VIEW_STRIDE: u32 = 0x400;
/// Start of the register range that the views mirror.
const VIEW_BASE: u32 = 0x19_0000;
/// End of the views: the PF's own range is followed by 63 views.
const VIEW_END: u32 = VIEW_BASE + 64 * VIEW_STRIDE;

/// State of the GT for one VF.
pub struct VirtualFunction {
    scratch: [AtomicU32; SW_FLAGS],
    /// The VF's copy of the interrupt tree (V13-262).
    pub interrupts: Interrupts,
    globals: Box<[[AtomicU32; GLOBALS.len()]]>,
}

impl VirtualFunction {
    /// Returns the state of a VF after reset.
    pub fn new(function: Function, sink: Arc<dyn InterruptSink>) -> Self {
        VirtualFunction {
            scratch: Default::default(),
            interrupts: Interrupts::new(function, sink),
            globals: EngineId::all().map(|_| Default::default()).collect(),
        }
    }

    /// Registers that the function's contexts share on an engine (`GLOBALS`), saved here while none of them is loaded.
    pub fn globals(&self, engine: EngineId) -> &[AtomicU32; GLOBALS.len()] {
        &self.globals[engine.index()]
    }

    /// Resets registers and interrupts, as on a reset of the function (V13-124, V13-125).
    pub fn reset(&self) {
        self.scratch.iter().for_each(|dword| dword.store(0, Ordering::Release));
        self.interrupts.reset();
        self.globals.iter().flatten().for_each(|value| value.store(0, Ordering::Release));
    }
}

fn mailbox_dword(offset: u32) -> Option<usize> {
    let at = offset.checked_sub(SW_FLAG)? / 4;
    usize::try_from(at).ok().filter(|at| *at < SW_FLAGS)
}

/// Decodes `offset` in the PF's registers into the VF and the offset within the VF's copy, if it lies in a view.
pub fn pf_view(offset: u32) -> Option<(Function, u32)> {
    if !(VIEW_BASE + VIEW_STRIDE..VIEW_END).contains(&offset) {
        return None;
    }
    let behind = offset - VIEW_BASE;
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

    /// Reads dword `n` of the GuC mailbox of `function`.
    pub fn mailbox(&self, function: Function, n: usize) -> u32 {
        match self.vf(function) {
            None => self.registers.value(SW_FLAG + count(n) * 4),
            Some(vf) => vf.scratch.get(n).map_or(0, |dword| dword.load(Ordering::Acquire)),
        }
    }

    /// Writes the bits in `lanes` of dword `n` of the GuC mailbox of `function`, as the VF driver does.
    fn write_mailbox(&self, function: Function, n: usize, value: u32, lanes: u32) {
        if let Some(dword) = self.vf(function).and_then(|vf| vf.scratch.get(n)) {
            let merged = |old| Some(old & !lanes | value & lanes);
            let _ = dword.fetch_update(Ordering::AcqRel, Ordering::Acquire, merged);
        }
    }

    /// Sets dword `n` of the GuC mailbox of `function`.
    pub fn set_mailbox(&self, function: Function, n: usize, value: u32) {
        match self.vf(function) {
            None => self.registers.set(SW_FLAG + count(n) * 4, value),
            Some(vf) => {
                if let Some(dword) = vf.scratch.get(n) {
                    dword.store(value, Ordering::Release);
                }
            }
        }
    }

    /// Reads the register at `offset` on behalf of a VF; registers without a VF copy read 0 (V13-005).
    pub fn read_vf(&self, function: Function, offset: u32) -> u32 {
        match (offset, mailbox_dword(offset)) {
            (VF_CAP, _) => 1,
            (_, Some(n)) => self.mailbox(function, n),
            _ => match self.interrupt_register(offset) {
                Some((InterruptRegister::Enable | InterruptRegister::Mask, _)) => {
                    self.interrupts_of(function).held(offset)
                }
                Some((register, ordinal)) => self.interrupts_of(function).read(register, ordinal),
                None => 0,
            },
        }
    }

    /// Decodes `offset` if it is an interrupt register with a per-VF copy; the tile's register belongs to the PF.
    fn interrupt_register(&self, offset: u32) -> Option<(InterruptRegister, u16)> {
        let decoded = self.registers.decode(offset)?;
        match decoded.register.kind {
            Kind::Live(Live::Interrupt(InterruptRegister::MasterTile)) => None,
            Kind::Live(Live::Interrupt(register)) => Some((register, decoded.ordinal)),
            _ => None,
        }
    }

    /// Writes the register at `offset` on behalf of a VF; writes to registers without a VF copy are dropped.
    pub fn write_vf(&self, function: Function, offset: u32, value: u32) -> Option<SideEffect> {
        self.write_vf_lanes(function, offset, value, !0)
    }

    /// Like [`Gt::write_vf`], but writes only the bits in `lanes` ([`Gt::write_lanes`]).
    pub fn write_vf_lanes(&self, function: Function, offset: u32, value: u32, lanes: u32) -> Option<SideEffect> {
        let value = value & lanes;
        match (offset, mailbox_dword(offset)) {
            (GUC_HOST_INTERRUPT, _) => return Some(SideEffect::RingGuc),
            (_, Some(n)) => self.write_mailbox(function, n, value, lanes),
            _ => {
                if let Some((register, ordinal)) = self.interrupt_register(offset) {
                    self.interrupts_of(function).write(register, offset, ordinal, value);
                }
            }
        }
        None
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
