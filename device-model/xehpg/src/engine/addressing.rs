// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Which register a command or a context image means.

use arctic_base::command::{Addressing, AddressingBits, Field};

use super::remap::remap;
use crate::command::mi::fields::REGISTER_HIGH;
use crate::topology::{EngineId, EngineTable};

/// Register offset in a command. Registers are in the lower half of that range; commands cannot access the rest.
const REGISTER: u32 = Field::register("Register", 0, REGISTER_HIGH, AddressingBits::NONE).mask();

/// Returns the offset of the register that a command of the engine `id` accesses; `base` is that engine's. All bits of a
/// relative offset are used, unlike in a context restore (i915: intel_gpu_commands.h, MI_LRI_LRM_CS_MMIO).
#[inline]
pub fn command_register(engines: EngineTable, id: EngineId, base: u32, raw: u32, addressing: Addressing) -> u32 {
    let offset = raw & REGISTER;
    let offset = if addressing.relative { base.wrapping_add(offset) & REGISTER } else { offset };
    if addressing.remapped { remap(engines, id, offset) } else { offset }
}

/// Returns the offset of the register that an LRI or LRM of a context image loads: relative to the engine's base, of
/// which only bits 12:2 are used, remapped to the executing instance, or absolute (V8-046, trap T19). Returns an inaccessible
/// offset if the engine has no such register.
pub fn image_register(engines: EngineTable, id: EngineId, raw: u32, addressing: Addressing) -> u32 {
    match addressing {
        Addressing { relative: true, .. } => engines.info(id).relative(raw),
        Addressing { remapped: true, .. } => remap(engines, id, raw & REGISTER),
        _ => raw & REGISTER,
    }
}
