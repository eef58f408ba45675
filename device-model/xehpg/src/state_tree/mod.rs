// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The state of the card as a tree: registers, engines, the GuC, functions. Units show their state themselves, with what this
//! module decodes for them.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

mod decoder;
mod layouts;

use std::thread;
use std::time::{Duration, Instant};

use arctic_base::inspect::{Inspect, Inspector, Node};
use arctic_base::registers::{Layouts, inspect_registers};

use self::decoder::Disassembler;
use self::layouts::{CARD, ENGINE};
use crate::card::Card;
use crate::gt::Gt;
use crate::host::Function;
use crate::memory::ggtt::GGTT_PAGE;
use crate::memory::inspect::{GgttRange, LocalMemory};
use crate::registers::{Access, Decoded, Kind};
use crate::topology::EngineId;

/// Time for which an engine's step is waited for.
const STEP_WAIT: Duration = Duration::from_millis(100);
/// Time between two attempts.
const POLL: Duration = Duration::from_micros(50);

impl Inspect for Card {
    fn inspect(&self, to: &mut Inspector<'_>) {
        to.part("registers", |to| {
            self.gt().inspect_registers(to, |decoded| decoded.engine.is_none(), CARD);
            for id in self.engines().present() {
                to.part(self.gt().engine(id).name, |to| {
                    let is_of = |decoded: &Decoded| decoded.engine.is_some_and(|engine| engine == id);
                    self.gt().inspect_registers(to, is_of, ENGINE);
                });
            }
        });
        to.part("engines", |to| {
            for id in self.engines().present() {
                to.part(self.gt().engine(id).name, |to| self.inspect_engine(id, to));
            }
        });
        to.part("guc", |to| self.guc().inspect(self.gt(), self.engines(), to));
        to.part("functions", |to| {
            let has = |function: &Function| self.enabled(*function) || self.gt().memory.has_vf(*function);
            for function in Function::all().filter(has) {
                to.part(&function.to_string(), |to| self.inspect_function(function, to));
            }
        });
        to.part("memory", |to| {
            let memory = &self.gt().memory;
            to.value("local_bytes", memory.local().len());
            to.value("lmem_cfg", Node::hex(memory.lmem_cfg(), 8));
        });
    }
}

impl Card {
    fn inspect_engine(&self, id: EngineId, to: &mut Inspector<'_>) {
        let begin = Instant::now();
        loop {
            if let Some(engine) = self.engines().try_lock(id) {
                return engine.inspect(self.gt(), &Disassembler, to);
            }
            if begin.elapsed() >= STEP_WAIT {
                return to.value("busy", "its step has not ended: ask again");
            }
            thread::sleep(POLL);
        }
    }

    fn inspect_function(&self, function: Function, to: &mut Inspector<'_>) {
        let memory = &self.gt().memory;
        to.value("enabled", self.enabled(function));
        to.part("guc", |to| self.guc_for(function).inspect_function(self.gt(), function, &Disassembler, to));
        to.part("interrupts", |to| self.gt().interrupts_of(function).inspect(self.gt().generation.engines, to));
        if !function.is_vf() {
            let range = 0..memory.ggtt().entries().saturating_mul(GGTT_PAGE);
            return to.table("ggtt", |to| GgttRange { memory, function, range }.inspect(to));
        }
        // The range is that of the running firmware.
        to.table("ggtt", |to| {
            let range = self.guc_for(function).function(function).map(|of| of.config.ggtt()).unwrap_or_default();
            GgttRange { memory, function, range }.inspect(to);
        });
        to.part("registers", |to| self.gt().inspect_function_registers(function, to));
        to.table("local_memory", |to| LocalMemory { memory, vf: function }.inspect(to));
    }
}

impl Gt {
    fn inspect_registers(&self, to: &mut Inspector<'_>, selects: impl Fn(&Decoded) -> bool, layouts: Layouts) {
        let value = |offset, decoded: &Decoded| self.value_without_effect(Function::PF, offset, decoded);
        inspect_registers(&self.registers, to, selects, layouts, value);
    }

    /// The registers of which the VF has values of its own.
    fn inspect_function_registers(&self, vf: Function, to: &mut Inspector<'_>) {
        let value = |offset, decoded: &Decoded| self.value_without_effect(vf, offset, decoded);
        inspect_registers(&self.registers, to, |decoded| decoded.function_copy.is_some(), CARD, value);
    }

    /// The value that `function` would read; `None` if the read would change something.
    fn value_without_effect(&self, function: Function, offset: u32, decoded: &Decoded) -> Option<u32> {
        match decoded.register.kind {
            Kind::Live(live) => live.peek(self, Access { function, offset, decoded }),
            _ => Some(self.function_value(function, offset)),
        }
    }
}
