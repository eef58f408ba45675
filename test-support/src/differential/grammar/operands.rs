// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Operands: values and addresses from small ranges, so commands interact, and registers of several engines.

use arctic_device_model::generation::XE_HPG;
use arctic_device_model::topology::EngineClass;

use super::{GGTT, RELATIVE, REMAP, Writer};
use crate::differential::choice::of;
use crate::differential::layout::*;

impl Writer<'_> {
    /// MI_PREDICATE_RESULT exists on render and compute engines only (V8-142).
    pub(super) fn has_predicate(&self) -> bool {
        matches!(self.class, EngineClass::Render | EngineClass::Compute)
    }

    /// Returns the bit that adds the partition's offset to the address, or 0.
    pub(super) fn partition(&mut self, bit: u32) -> u32 {
        u32::from(self.choice.one_in(10)) << bit
    }

    pub(super) fn global(&mut self) -> u32 {
        u32::from(self.choice.below(3) == 0 && !self.movable) * GGTT
    }

    /// Returns a value, mostly from a small range, so equal values are frequent.
    pub(super) fn value(&mut self) -> u32 {
        match self.choice.below(4) {
            0 | 1 => self.choice.below(8),
            2 => u32::MAX - self.choice.below(4),
            _ => self.choice.dword(),
        }
    }

    pub(super) fn page(&mut self, global: bool) -> u64 {
        match self.choice.below(64) {
            0..34 => at::DATA + u64::from(self.choice.below(2)),
            34..46 => at::DATA + u64::from(self.choice.below(4)),
            46..54 => at::RAM + u64::from(self.choice.below(2)),
            54..57 => at::REMOTE,
            57..59 => at::NULL,
            59 if global => at::PPHWSP,
            60 if global => at::HWSP,
            61 if global && !self.vf => at::WINDOW + u64::from(self.choice.below(4)) * u64::from(self.stops),
            62 if self.stops && self.choice.one_in(4) => at::READ_ONLY,
            63 if self.stops && self.choice.one_in(4) => of(self.choice, &[at::HOLE, at::FOREIGN]),
            _ => at::DATA,
        }
    }

    /// Returns a data address from a small range, so commands access the same locations.
    pub(super) fn address(&mut self, global: bool, align: u32) -> u64 {
        let page = self.page(global);
        let page = if page == at::WINDOW && !self.stops { at::DATA } else { page };
        let offset = match self.choice.below(8) {
            0..6 => 0x400 + self.choice.below(64 / align) * align,
            6 => 0x400 + self.choice.below(0x400 / align) * align,
            _ => 0x1000 - align,
        };
        let high = if !global && self.choice.one_in(4) { HIGH } else { 0 };
        BASE + page * PAGE + u64::from(offset) + high
    }

    /// Returns a register operand: the header bit for its addressing mode, and the offset.
    pub(super) fn register(&mut self, read: bool) -> (u32, u32) {
        let base = self.base();
        if self.choice.one_in(24) && !self.movable {
            // A register of another engine.
            let other = of(self.choice, &[0x2000u32, 0x2_2000, 0x1_a000, 0x1c_0000, 0x1c_8000]);
            if other != base {
                return (0, other + 0x600 + self.choice.below(32) * 4);
            }
        }
        let offset = self.own_register(read);
        match self.choice.below(12) {
            0..3 => (0, base + offset),
            // By the offset of the class's first instance (trap T19).
            3 => (REMAP, self.first_base() + offset),
            _ => (RELATIVE, offset),
        }
    }

    pub(super) fn base(&self) -> u32 {
        XE_HPG.engines.info(self.engine).mmio_base
    }

    /// Returns the MMIO base of the class's first instance.
    pub(super) fn first_base(&self) -> u32 {
        XE_HPG.engines.find(self.class, 0).map_or(0, |first| XE_HPG.engines.info(first).mmio_base)
    }

    /// Returns a register of the engine; for writes only registers that do not affect addresses.
    pub(super) fn own_register(&mut self, read: bool) -> u32 {
        match self.any_register(read) {
            0x158 | 0x21c | 0x3b4 if !read => 0x600,
            offset => offset,
        }
    }

    pub(super) fn any_register(&mut self, read: bool) -> u32 {
        /// NOPID, INSTPM, BB_OFFSET, WPARID, PREDICATION_MASK, CS_MI_ADDRESS_OFFSET, predicate results.
        const OPEN: [u32; 9] = [0x094, 0x0c0, 0x158, 0x21c, 0x1fc, 0x3b4, 0x3bc, 0x41c, 0x094];
        /// HWSTAM, EMR, PREEMPT_DLY, IDLEDELAY, CTXT_PREMP_DBG, SEMA_WAIT_POLL.
        const CLOSED: [u32; 8] = [0x098, 0x098, 0x0b4, 0x0b4, 0x214, 0x23c, 0x248, 0x24c];
        /// ENGINE_ID and the timestamp.
        const READ_ONLY: [u32; 3] = [0x08c, 0x358, 0x35c];
        match self.choice.below(32) {
            0..5 => of(self.choice, &OPEN),
            5..7 => of(self.choice, &CLOSED),
            7 if read && !self.movable => of(self.choice, &READ_ONLY),
            8..11 if self.has_predicate() => 0x400 + self.choice.below(7) * 4,
            11 if self.has_predicate() => 0x500 + self.choice.below(3) * 4,
            13 if self.class == EngineClass::Render => of(self.choice, &[OAR_CONTROL, CONTEXT_CONTROL]),
            11 if self.class == EngineClass::Copy => of(self.choice, &[0x200, 0x204]),
            12 if self.choice.one_in(4) => 0x3b8,
            _ => 0x600 + self.choice.below(16) * 4,
        }
    }
}
