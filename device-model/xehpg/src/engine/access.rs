// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Register and memory accesses by commands. They are checked against the requester's rights and recorded for loop
//! detection.

use arctic_base::command::Addressing;

use super::addressing::command_register;
use super::stream::{ADDRESS, IdleLoopDetector};
use super::streamer::Streamer;
use super::whitelist::{self, Wanted};
use super::{error, reg};
use crate::command::Requester;
use crate::command::mi::fields;
use crate::gt::SideEffect;
use crate::host::Function;
use crate::memory::{Fault, Space, Tlb};
use crate::registers::REGISTER_BYTES;
use crate::registers::observation::{OAC, OAR_OACONTROL};
use crate::topology::EngineClass;

/// The bases of the engines are multiples of this.
const ENGINE_SPACING: u32 = 0x1000;

/// Returns the address in two dwords of a command.
#[inline]
pub(super) fn address(low: u32, high: u32) -> u64 {
    (u64::from(high) << 32 | u64::from(low)) & ADDRESS
}

/// Returns the mask of the register bits that an LRI with this header preserves.
#[allow(clippy::arithmetic_side_effects, reason = "there are four bytes of eight bits")]
#[inline]
pub(super) const fn bytes_kept(header: u32) -> u32 {
    let disabled = fields::BYTE_DISABLES.get_in(header);
    let (mut kept, mut byte) = (0, 0);
    while byte < 4 && disabled != 0 {
        if disabled >> byte & 1 != 0 {
            kept |= 0xff << (8 * byte);
        }
        byte += 1;
    }
    kept
}

impl Streamer<'_> {
    /// Returns the offset of the register that a command accesses.
    #[inline]
    pub fn mmio(&self, raw: u32, addressing: Addressing) -> u32 {
        command_register(self.gt.generation.engines, self.id, self.registers.offset(0), raw, addressing)
    }

    /// Adds the workload partition's offset, WPARID times CS_MI_ADDRESS_OFFSET, to an address (Intel media-driver
    /// mhw_mi_hwcmd_xe_xpm.h, WORKLOAD_PARTITION_ID_OFFSET_ENABLE).
    #[cold]
    #[allow(clippy::arithmetic_side_effects, reason = "the product of two 32-bit values has 64 bits")]
    pub fn partitioned(&mut self, address: u64) -> u64 {
        let offset = u64::from(self.registers.get(reg::WPARID)) * u64::from(self.registers.get(reg::MI_ADDRESS_OFFSET));
        address.wrapping_add(offset) & ADDRESS
    }

    fn permits(&mut self, offset: u32, wanted: Wanted) -> bool {
        let requester = self.requester();
        let permitted = offset < REGISTER_BYTES
            && (requester == Requester::PfKernel
                || whitelist::permits(&self.gt.registers, self.id, requester, offset, wanted));
        if !permitted {
            self.refuse_register(requester);
        }
        permitted
    }

    /// Counts a denied register access. In a non-privileged batch it is an error (V8-170).
    #[cold]
    #[allow(clippy::arithmetic_side_effects, reason = "a 64-bit count does not overflow")]
    fn refuse_register(&mut self, requester: Requester) {
        self.counters.register_refusals += 1;
        if !requester.privileged() {
            self.error(error::PRIVILEGE);
        }
    }

    /// Returns whether writing the register is permitted. Counts a denied write.
    pub fn may_write(&mut self, offset: u32) -> bool {
        self.permits(offset, Wanted::Write)
    }

    /// Reads a register for a command. Returns 0 if the access is denied.
    pub fn read_register(&mut self, offset: u32) -> u32 {
        if !self.permits(offset, Wanted::Read) {
            return 0;
        }
        if matches!(offset & (ENGINE_SPACING - 1), reg::TIMESTAMP | reg::TIMESTAMP_UDW | reg::CTX_TIMESTAMP) {
            self.running.loops.clock_read();
        }
        if self.registers.own(offset) == reg::PR_CTR {
            self.show_watchdog();
        }
        if OAC.contains(&offset) && self.class == EngineClass::Compute {
            return self.read_oac(offset);
        }
        self.gt.streamer_read(self.id, offset)
    }

    /// Writes a register for a command. The write is dropped if it is denied or if it would trigger an action in
    /// another unit.
    #[allow(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        reason = "there is a clock for each engine, and a 64-bit count does not overflow"
    )]
    pub fn write_register(&mut self, offset: u32, value: u32) {
        if !self.permits(offset, Wanted::Write) {
            return;
        }
        self.running.loops.effect();
        let now = self.gt.timestamp();
        let own = self.registers.own(offset);
        if own == reg::CTX_TIMESTAMP {
            self.gt.context_clock(self.id).set(now, value);
        }
        // The watchdog must be advanced with the old register values first.
        if OAC.contains(&offset) && self.class == EngineClass::Compute {
            return self.write_oac(offset, value);
        }
        let watchdog = matches!(own, reg::PR_CTR_CTRL | reg::PR_CTR_THRSH);
        if watchdog {
            self.count_watchdog();
        }
        match self.gt.streamer_write(self.id, offset, value) {
            None => {}
            Some(SideEffect::Report(request)) => {
                self.gt.trigger_report(request, Some(self.id));
                self.write_due_reports();
            }
            Some(SideEffect::Observe) => self.write_due_reports(),
            Some(SideEffect::EngineStatus(engine)) => {
                self.gt.report_error_bit(&mut self.gam.of(Function::PF, &mut Tlb::default()), engine);
            }
            Some(_) => self.counters.dropped_requests += 1,
        }
        if watchdog {
            self.control_watchdog();
        }
        if own == reg::OACTXCONTROL || offset == OAR_OACONTROL {
            self.observe_context();
        }
    }

    /// Writes a register of this engine for a command, by offset from its base.
    pub fn set_own(&mut self, offset: u32, value: u32) {
        self.running.loops.effect();
        self.registers.set(offset, value);
    }

    /// Writes a register of two dwords of this engine for a command, by offset of the low one.
    #[inline]
    pub fn set_own64(&mut self, offset: u32, value: u64) {
        self.running.loops.effect();
        self.registers.set64(offset, value);
    }

    /// Returns the address space of a memory operand: the GGTT if `global`, otherwise the context's address space.
    #[inline]
    pub fn space(&self, global: bool) -> Space {
        if global { Space::Ggtt } else { self.running.lrc.space }
    }

    /// Stores a dword.
    #[inline]
    pub fn store(&mut self, space: Space, address: u64, value: u32) -> Result<(), Fault> {
        self.running.loops.effect();
        self.gam.write_u32(space, address, value)
    }

    /// Stores a qword.
    #[inline]
    pub fn store64(&mut self, space: Space, address: u64, value: u64) -> Result<(), Fault> {
        self.running.loops.effect();
        self.gam.write_u64(space, address, value)
    }

    /// Returns the context's loop detector.
    pub fn loops(&mut self) -> &mut IdleLoopDetector {
        &mut self.running.loops
    }
}
