// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registers that control an engine: submission, errors, and the reset handshake.

use super::{Gt, SideEffect};
use crate::execlist;
use crate::registers::{EngineRegister, masked};
use crate::topology::EngineId;

/// RESET_CTL: reset requested by the driver.
const REQUEST_RESET: u32 = 1 << 0;
/// RESET_CTL: engine ready for reset.
const READY_TO_RESET: u32 = 1 << 1;
/// RESET_CTL: catastrophic error, cleared by a masked write of 1.
const CAT_ERROR: u32 = 1 << 2;

impl Gt {
    /// Writes the register of `engine` at `offset`.
    pub(super) fn write_engine_control(
        &self,
        register: EngineRegister,
        engine: EngineId,
        offset: u32,
        value: u32,
    ) -> Option<SideEffect> {
        match register {
            EngineRegister::SubmitPort => Some(SideEffect::Submit(engine, value)),
            EngineRegister::ExeclistControl => (value & execlist::LOAD != 0).then_some(SideEffect::LoadQueue(engine)),
            EngineRegister::ErrorIdentity => {
                self.clear_errors(engine, value).then_some(SideEffect::EngineStatus(engine))
            }
            EngineRegister::ErrorMask => self.mask_errors(engine, value).then_some(SideEffect::EngineStatus(engine)),
            EngineRegister::ResetControl => {
                let written = value >> 16 & value;
                self.registers.update(offset, |old| {
                    let wanted = masked(old, value) & REQUEST_RESET;
                    let ready = if wanted != 0 { READY_TO_RESET } else { 0 };
                    wanted | ready | old & CAT_ERROR & !written
                });
                Some(SideEffect::EngineReset(engine, value))
            }
        }
    }
}
