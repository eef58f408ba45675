// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The interrupt tree of a function as a part of the card's state.

use arctic_base::inspect::{Inspector, Node};

use super::{InterruptMap, Tree};
use crate::topology::EngineTable;

/// Name of a source: of an engine, or of the unit.
fn name(map: &InterruptMap, engines: EngineTable, source: usize) -> String {
    let engine = engines.all().find(|engine| engine.index() == source);
    match engine {
        Some(engine) => engines.info(engine).name.into(),
        None if source == map.guc => "guc".into(),
        None if source == map.gsc => "gsc".into(),
        None if source == map.observation => "observation".into(),
        None => source.to_string(),
    }
}

impl Tree {
    /// Shows each source with its events, and the banks. A driver's reads take snapshots; this does not.
    pub fn inspect(&self, engines: EngineTable, to: &mut Inspector<'_>) {
        to.value("enabled", self.enabled);
        for (source, state) in self.sources.iter().enumerate().take(self.map.sources.len()) {
            to.part(&name(self.map, engines, source), |to| {
                to.value("enable", Node::hex(state.enable, 4));
                to.value("mask", Node::hex(state.mask, 4));
                to.value("pending", Node::hex(state.pending, 4));
            });
        }
        for (number, bank) in self.banks.iter().enumerate() {
            to.part(&format!("bank_{number}"), |to| {
                to.value("ready", Node::hex(bank.ready, 8));
                to.value("snapshot", Node::hex(bank.open, 8));
                to.value("selector", Node::hex(bank.selector, 8));
                to.value("identity", Node::hex(bank.identity, 8));
            });
        }
    }
}
