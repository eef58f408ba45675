// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Reset of domains of the GT (G67-110, G67-113).

use super::Gt;
use crate::registers::Scope;
use crate::registers::power::RESET_FULL;
use crate::topology::EngineClass;

impl Gt {
    /// Sets the registers of the domains in a value of GDRST to their reset values: those of the engines; with the
    /// render engine those of contexts. Fences, interrupts, timestamps and power management are not changed.
    pub fn reset_domains(&self, domains: u32) {
        let selected = |reset: u32| domains & (RESET_FULL | reset) != 0;
        let render = self.generation.engines.iter().find(|engine| engine.class == EngineClass::Render);
        let render = render.is_some_and(|engine| selected(engine.reset_mask));
        for (offset, decoded) in self.registers.listing() {
            let reset = match (decoded.register.scope, decoded.engine) {
                (Scope::Device | Scope::Aperture, _) => false,
                (Scope::Engine, Some(engine)) => selected(self.generation.engine(engine).reset_mask),
                (Scope::Engine, None) | (Scope::Context | Scope::Extended, _) => render,
            };
            if reset {
                self.registers.reset_register(offset);
            }
        }
        for (engine, info) in self.generation.engines() {
            if selected(info.reset_mask) {
                self.update_status(engine, 0);
            }
        }
        self.update_residency();
    }
}
