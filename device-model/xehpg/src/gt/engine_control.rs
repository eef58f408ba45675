// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registers that control an engine: submission, errors, and the reset handshake.

use super::{Gt, SideEffect};
use crate::registers::engine::{CAT_ERROR, LOAD_QUEUE, READY_TO_RESET, REQUEST_RESET};
use crate::registers::{Access, EngineRegister, Unit, XeHpg, masked};

impl Unit<XeHpg, Gt> for EngineRegister {
    type Effect = SideEffect;

    fn read(&self, gt: &Gt, access: Access<'_>) -> u32 {
        gt.function_value(access.function, access.offset)
    }

    fn write(&self, gt: &Gt, access: Access<'_>, value: u32) -> Option<SideEffect> {
        let engine = access.decoded.engine?;
        match self {
            EngineRegister::SubmitPort => Some(SideEffect::Submit(engine, value)),
            EngineRegister::ExeclistControl => LOAD_QUEUE.is_set(value).then_some(SideEffect::LoadQueue(engine)),
            EngineRegister::ErrorIdentity => gt.clear_errors(engine, value).then_some(SideEffect::EngineStatus(engine)),
            EngineRegister::ErrorMask => gt.mask_errors(engine, value).then_some(SideEffect::EngineStatus(engine)),
            EngineRegister::ResetControl => {
                let written = value >> 16 & value;
                gt.registers.update(access.offset, |old| {
                    let wanted = masked(old, value) & REQUEST_RESET.mask();
                    let ready = if wanted != 0 { READY_TO_RESET.mask() } else { 0 };
                    wanted | ready | old & CAT_ERROR.mask() & !written
                });
                Some(SideEffect::EngineReset(engine, value))
            }
        }
    }
}
