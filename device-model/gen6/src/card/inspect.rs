// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The state of the card as a tree: registers, engines, translations.

use arctic_base::host::Function;
use arctic_base::inspect::{Inspect, Inspector, Node, Run, Runs};
use arctic_base::memory::WithoutMessages;
use arctic_base::registers::{Kind, Unit, inspect_registers};

use super::Card;
use crate::gt::Gt;
use crate::memory::{Ggtt, Memory, PAGE, PAGES};
use crate::registers::layouts::{CARD, ENGINE};
use crate::registers::{Access, Decoded};
use crate::sync::IgnorePoison;

/// Bits of an address within a page.
const PAGE_SHIFT: u32 = PAGE.trailing_zeros();

impl Inspect for Card {
    fn inspect(&self, to: &mut Inspector<'_>) {
        let gt = &self.gt;
        // The value of a read: none has a side effect.
        let value = |offset, decoded: &Decoded| Some(gt.value(offset, decoded));
        to.part("registers", |to| {
            inspect_registers(&gt.registers, to, |decoded| decoded.engine.is_none(), CARD, value);
            for (id, info) in gt.generation.engines() {
                to.part(info.name, |to| {
                    let is_of = |decoded: &Decoded| decoded.engine.is_some_and(|engine| engine == id);
                    inspect_registers(&gt.registers, to, is_of, ENGINE, value);
                });
            }
        });
        to.part("engines", |to| {
            for slot in &self.engines {
                to.part(gt.generation.engine(slot.id).name, |to| {
                    let engine = slot.engine.lock();
                    let _access = self.accesses.read().ignore_poison();
                    let view = WithoutMessages::new(gt.view());
                    engine.inspect(gt, &Memory::new(&gt.ggtt, &view), to);
                });
            }
        });
        to.part("functions", |to| {
            to.part(&Function::PF.to_string(), |to| to.table("ggtt", |to| gt.ggtt.inspect(to)));
        });
    }
}

impl Gt {
    /// The value that a CPU reads.
    fn value(&self, offset: u32, decoded: &Decoded) -> u32 {
        match decoded.register.kind {
            Kind::Live(live) => live.read(self, Access { function: Function::PF, offset, decoded }),
            _ => self.registers.value(offset),
        }
    }
}

/// Parts are the runs of valid pages, and each page by its address.
impl Inspect for Ggtt {
    fn inspect(&self, to: &mut Inspector<'_>) {
        if let Some((name, address)) = to.wanted_address()
            && let Ok(page) = u32::try_from(address >> PAGE_SHIFT)
        {
            let entry = self.entry(page);
            return to.value_with_parts(&name, Node::hex(entry.0, 8), |to| {
                to.value("valid", entry.page().is_some());
                entry.page().into_iter().for_each(|target| to.address("target", target));
            });
        }
        let mut runs = Runs::new(to);
        for page in 0..PAGES {
            let run = |target| Run {
                address: u64::from(page).saturating_mul(PAGE.into()),
                bytes: PAGE.into(),
                target,
                kind: "system memory".into(),
            };
            if self.entry(page).page().is_some_and(|target| !runs.add(run(target))) {
                return;
            }
        }
        runs.end();
    }
}
