// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registers that control an engine: submission, errors, and the reset handshake.

use super::{Gt, SideEffect};
use crate::registers::engine_fields::{ExeclistControl, ResetCtl};
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
            EngineRegister::ExeclistControl => {
                ExeclistControl::from(value).load().then_some(SideEffect::LoadQueue(engine))
            }
            EngineRegister::ErrorIdentity => gt.clear_errors(engine, value).then_some(SideEffect::EngineStatus(engine)),
            EngineRegister::ErrorMask => gt.mask_errors(engine, value).then_some(SideEffect::EngineStatus(engine)),
            EngineRegister::ResetControl => {
                let written = ResetCtl::from(value >> 16 & value);
                gt.registers.update(access.offset, |old| {
                    let request = ResetCtl::from(masked(old, value)).request();
                    let cat_error = ResetCtl::from(old).cat_error() && !written.cat_error();
                    ResetCtl::new().with_request(request).with_ready(request).with_cat_error(cat_error).into()
                });
                Some(SideEffect::EngineReset(engine, value))
            }
        }
    }
}
