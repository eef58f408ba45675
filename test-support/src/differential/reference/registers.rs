// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Register accesses by commands: write permissions, read permissions, and effects of writes.

use std::collections::BTreeMap;

use arctic_device_model::topology::EngineClass;

use crate::differential::layout::{CONTEXT_CONTROL, OAR_CONTROL};

/// Requester of a command (V13-044..047, V13-080).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requester {
    User,
    VfKernel,
    PfKernel,
}

pub struct Registers {
    pub class: EngineClass,
    pub base: u32,
    /// MMIO base of the class's first instance.
    pub first: u32,
    pub values: BTreeMap<u32, u32>,
}

/// Offsets from the base that users of any engine may write (V8-181..184), limited to those that the grammar uses.
/// `USERS_OF_PIPES` (render and compute engines) and `USERS_OF_COPY` are the additional offsets.
const USERS: [u32; 9] = [0x094, 0x0c0, 0x1fc, 0x21c, 0x3b4, 0x3b8, 0x3bc, 0x41c, 0x158];
const USERS_OF_PIPES: [u32; 10] = [0x400, 0x404, 0x408, 0x40c, 0x410, 0x414, 0x418, 0x500, 0x504, 0x508];
const USERS_OF_COPY: [u32; 2] = [0x200, 0x204];
const USERS_OF_RENDER: [u32; 2] = [CONTEXT_CONTROL, OAR_CONTROL];
/// FORCE_TO_NONPRIV (V8-186).
const SLOTS: [(u32, u32); 3] = [(0x4d0, 12), (0x010, 4), (0x1d0, 4)];

impl Registers {
    fn pipes(&self) -> bool {
        matches!(self.class, EngineClass::Render | EngineClass::Compute)
    }

    /// V8-181..184: returns whether the register is on the whitelist for users.
    fn on_the_list(&self, register: u32) -> bool {
        let Some(offset) = register.checked_sub(self.base) else { return false };
        match offset {
            0x600..0x680 => true,
            // BB_OFFSET is only on the lists of render and compute.
            0x158 => self.pipes(),
            _ => {
                USERS.contains(&offset)
                    || self.pipes() && USERS_OF_PIPES.contains(&offset)
                    || self.class == EngineClass::Copy && USERS_OF_COPY.contains(&offset)
                    || self.class == EngineClass::Render && USERS_OF_RENDER.contains(&offset)
            }
        }
    }

    /// V8-186, V13-078, V13-079: evaluates the FORCE_TO_NONPRIV slots: `Some(true)` if one permits the access,
    /// `Some(false)` if one denies it. Bit 31 is set in slots for drivers of virtual functions.
    fn slots(&self, register: u32, requester: Requester, write: bool) -> Option<bool> {
        let slots = SLOTS.iter().flat_map(|(first, count)| (0..*count).map(move |n| first + n * 4));
        let mut verdict = None;
        for slot in slots {
            let value = self.values.get(&(self.base + slot)).copied().unwrap_or(0);
            let first = value & 0x03ff_fffc;
            let bytes = 4 << (2 * (value & 3));
            let first = first & !(bytes - 1);
            if value & 0x03ff_fffc == 0 || !(first..first + bytes).contains(&register) {
                continue;
            }
            if (value >> 31 != 0) != (requester == Requester::VfKernel) {
                continue;
            }
            // Access field: 0 read and write, 1 read, 2 write.
            let applies = match value >> 28 & 3 {
                0 => true,
                1 => !write,
                2 => write,
                _ => false,
            };
            if !applies {
                continue;
            }
            if value >> 30 & 1 != 0 {
                return Some(false);
            }
            verdict = Some(true);
        }
        verdict
    }

    /// Returns whether the register is context state, which a VF's driver may access (V13-052): the registers of the
    /// list, and BB_OFFSET on every engine (V8-050).
    fn of_the_context(&self, register: u32) -> bool {
        self.on_the_list(register) || register == self.base + 0x158
    }

    pub fn may_write(&self, register: u32, requester: Requester) -> bool {
        match requester {
            Requester::PfKernel => true,
            Requester::User => self.slots(register, requester, true).unwrap_or_else(|| self.on_the_list(register)),
            Requester::VfKernel => {
                self.of_the_context(register) || self.slots(register, requester, true).unwrap_or(false)
            }
        }
    }

    pub fn may_read(&self, register: u32, requester: Requester) -> bool {
        // V8-177..180: ENGINE_ID and the timestamp.
        let constant = [0x8c, 0x358, 0x35c].map(|offset| self.base + offset).contains(&register);
        match requester {
            Requester::PfKernel => true,
            Requester::User => {
                self.slots(register, requester, false).unwrap_or_else(|| self.on_the_list(register) || constant)
            }
            Requester::VfKernel => {
                self.of_the_context(register) || constant || self.slots(register, requester, false).unwrap_or(false)
            }
        }
    }

    /// Returns the value without an access check.
    pub fn value(&self, register: u32) -> u32 {
        self.values.get(&register).copied().unwrap_or(0)
    }

    /// Writes the bytes that `keep` does not select, without an access check (masked registers: INSTPM, BCS_SWCTRL).
    pub fn write(&mut self, register: u32, value: u32, keep: u32) {
        let old = self.value(register);
        let kept = (0..4).filter(|n| keep >> n & 1 != 0).fold(0u32, |mask, n| mask | 0xff << (8 * n));
        let offset = register.wrapping_sub(self.base);
        let masked = offset == 0x0c0 || offset == 0x200 && self.class == EngineClass::Copy;
        let new = if offset == 0x0b4 {
            // EMR: bits 31:8 do not exist and read 1 (IVB-093).
            old & kept | value & !kept | 0xffff_ff00
        } else if masked {
            // A disabled byte contributes no mask bits, and keeps its value regardless of the mask.
            let mask = (value & !kept) >> 16 & !kept;
            old & !mask | value & mask
        } else {
            old & kept | value & !kept
        };
        if ![0x08c, 0x358, 0x35c].contains(&offset) {
            self.values.insert(register, new);
        }
    }

    pub fn own(&self, offset: u32) -> u32 {
        self.value(self.base + offset)
    }

    pub fn set_own(&mut self, offset: u32, value: u32) {
        self.values.insert(self.base + offset, value);
    }

    pub fn gpr(&self, n: usize) -> u64 {
        let at = 0x600 + 8 * n as u32;
        u64::from(self.own(at)) | u64::from(self.own(at + 4)) << 32
    }

    pub fn set_gpr(&mut self, n: usize, value: u64) {
        let at = 0x600 + 8 * n as u32;
        self.set_own(at, value as u32);
        self.set_own(at + 4, (value >> 32) as u32);
    }
}
