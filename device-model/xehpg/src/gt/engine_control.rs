// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registers that control an engine: submission, errors, and the reset handshake.

use super::{Gt, SideEffect};
use crate::registers::engine::{CAT_ERROR, LOAD_QUEUE, READY_TO_RESET, REQUEST_RESET};
use crate::registers::{EngineRegister, masked};
use crate::topology::EngineId;

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
            EngineRegister::ExeclistControl => LOAD_QUEUE.is_set(value).then_some(SideEffect::LoadQueue(engine)),
            EngineRegister::ErrorIdentity => {
                self.clear_errors(engine, value).then_some(SideEffect::EngineStatus(engine))
            }
            EngineRegister::ErrorMask => self.mask_errors(engine, value).then_some(SideEffect::EngineStatus(engine)),
            EngineRegister::ResetControl => {
                let written = value >> 16 & value;
                self.registers.update(offset, |old| {
                    let wanted = masked(old, value) & REQUEST_RESET.mask();
                    let ready = if wanted != 0 { READY_TO_RESET.mask() } else { 0 };
                    wanted | ready | old & CAT_ERROR.mask() & !written
                });
                Some(SideEffect::EngineReset(engine, value))
            }
        }
    }
}
