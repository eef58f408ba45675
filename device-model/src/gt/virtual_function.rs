//! The few registers of which every virtual function has a copy of its own (V13-005, contract C.2), and its interrupts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Gt, Request};
use crate::engine::GLOBALS;
use crate::engine::id::EngineId;
use crate::interrupts::Interrupts;
use crate::registers::{Kind, Live};
use crate::world::{Function, InterruptSink};

/// VF_SW_FLAG(0): first dword of the GuC's mailbox.
const SW_FLAG: u32 = 0x19_0240;
/// Dwords of the mailbox.
const SW_FLAGS: usize = 4;
/// VF_CAP_REG: bit 0 tells a driver that it drives a VF.
const VF_CAP: u32 = 0x19_01f8;
/// GUC_HOST_INTERRUPT: the driver rings the GuC.
const GUC_HOST_INTERRUPT: u32 = 0x19_01f0;
/// The PF's window onto VF n's registers starts n times this behind its own (xe: xe_mmio_init_vf_view).
const VIEW_STRIDE: u32 = 0x400;
/// First of the registers that the windows repeat.
const VIEW_BASE: u32 = 0x19_0000;
/// Their end: 63 windows behind the PF's own.
const VIEW_END: u32 = VIEW_BASE + 64 * VIEW_STRIDE;

/// What the GT keeps for one VF.
pub struct VirtualFunction {
    scratch: [AtomicU32; SW_FLAGS],
    /// Its own copy of the interrupt tree (V13-262).
    pub interrupts: Interrupts,
    globals: Box<[[AtomicU32; GLOBALS.len()]]>,
}

impl VirtualFunction {
    /// A VF out of reset.
    pub fn new(function: Function, sink: Arc<dyn InterruptSink>) -> Self {
        VirtualFunction {
            scratch: Default::default(),
            interrupts: Interrupts::new(function, sink),
            globals: EngineId::all().map(|_| Default::default()).collect(),
        }
    }

    /// What the function's contexts share on an engine: `GLOBALS`, while none of them is loaded there.
    pub fn globals(&self, engine: EngineId) -> &[AtomicU32; GLOBALS.len()] {
        &self.globals[engine.index()]
    }

    /// Registers and interrupts as after a reset of the function (V13-124, V13-125).
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

/// The VF, and the register within its copy, that the PF reaches at `offset` of its own space.
pub fn pf_view(offset: u32) -> Option<(Function, u32)> {
    if !(VIEW_BASE + VIEW_STRIDE..VIEW_END).contains(&offset) {
        return None;
    }
    let behind = offset - VIEW_BASE;
    Some((Function::vf(behind / VIEW_STRIDE)?, VIEW_BASE + behind % VIEW_STRIDE))
}

impl Gt {
    /// What the GT keeps for `function`, a VF.
    pub fn vf(&self, function: Function) -> Option<&VirtualFunction> {
        self.vfs.get(function.index().checked_sub(1)?)
    }

    /// The interrupt tree of `function`.
    pub fn interrupts_of(&self, function: Function) -> &Interrupts {
        self.vf(function).map_or(&self.interrupts, |vf| &vf.interrupts)
    }

    /// Dword `n` of the GuC's mailbox of `function`.
    pub fn mailbox(&self, function: Function, n: usize) -> u32 {
        match self.vf(function) {
            None => self.registers.value(SW_FLAG + n as u32 * 4),
            Some(vf) => vf.scratch.get(n).map_or(0, |dword| dword.load(Ordering::Acquire)),
        }
    }

    /// Sets the bits in `lanes` of dword `n` of the GuC's mailbox of `function`, as its driver does.
    fn write_mailbox(&self, function: Function, n: usize, value: u32, lanes: u32) {
        if let Some(dword) = self.vf(function).and_then(|vf| vf.scratch.get(n)) {
            let merged = |old| Some(old & !lanes | value & lanes);
            let _ = dword.fetch_update(Ordering::AcqRel, Ordering::Acquire, merged);
        }
    }

    /// Sets dword `n` of the GuC's mailbox of `function`.
    pub fn set_mailbox(&self, function: Function, n: usize, value: u32) {
        match self.vf(function) {
            None => self.registers.set(SW_FLAG + n as u32 * 4, value),
            Some(vf) => {
                if let Some(dword) = vf.scratch.get(n) {
                    dword.store(value, Ordering::Release);
                }
            }
        }
    }

    /// Reads the register at `offset` as a VF does: 0 for all that it has no copy of (V13-005).
    pub fn read_vf(&self, function: Function, offset: u32) -> u32 {
        match (offset, mailbox_dword(offset)) {
            (VF_CAP, _) => 1,
            (_, Some(n)) => self.mailbox(function, n),
            _ => match self.interrupt_register(offset) {
                Some((Live::InterruptEnable | Live::InterruptMask, _)) => self.interrupts_of(function).held(offset),
                Some((live, ordinal)) => self.interrupts_of(function).read(live, ordinal),
                None => 0,
            },
        }
    }

    /// The register at `offset`, if it is one of the tree that each VF has a copy of; the tile's is the PF's.
    fn interrupt_register(&self, offset: u32) -> Option<(Live, u16)> {
        let decoded = self.registers.decode(offset)?;
        match decoded.register.kind {
            Kind::Live(
                live @ (Live::MasterGt
                | Live::GtInterrupt
                | Live::InterruptIdentity
                | Live::InterruptSelector
                | Live::InterruptEnable
                | Live::InterruptMask),
            ) => Some((live, decoded.ordinal)),
            _ => None,
        }
    }

    /// Writes the register at `offset` as a VF does; what it has no copy of drops it.
    pub fn write_vf(&self, function: Function, offset: u32, value: u32) -> Option<Request> {
        self.write_vf_lanes(function, offset, value, !0)
    }

    /// The same, of the register's bits in `lanes` alone ([`Gt::write_lanes`]).
    pub fn write_vf_lanes(&self, function: Function, offset: u32, value: u32, lanes: u32) -> Option<Request> {
        let value = value & lanes;
        match (offset, mailbox_dword(offset)) {
            (GUC_HOST_INTERRUPT, _) => return Some(Request::RingGuc),
            (_, Some(n)) => self.write_mailbox(function, n, value, lanes),
            _ => {
                if let Some((live, ordinal)) = self.interrupt_register(offset) {
                    self.interrupts_of(function).write(live, offset, ordinal, value);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Contract A.4: the PF's windows onto the VFs' registers.
    #[test]
    fn the_pf_sees_vf_registers_behind_its_own() {
        assert_eq!(pf_view(0x19_0240), None);
        assert_eq!(pf_view(0x19_0640), Some((Function(1), 0x19_0240)));
        assert_eq!(pf_view(0x19_0240 + 63 * 0x400), Some((Function(63), 0x19_0240)));
        assert_eq!(pf_view(0x1a_0000), None);
    }
}
