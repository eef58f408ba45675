// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! An engine as a part of the card's state: where its parser is, and the command there.

use arctic_base::inspect::{Inspector, Node};

use super::Engine;
use crate::decode::Batch;
use crate::generation::EngineRef;
use crate::gt::Gt;
use crate::memory::{Memory, Space};
use crate::registers::engine::{CTL, CTL_ENABLE, HEAD, HEAD_OFFSET, IPEHR, TAIL, TAIL_OFFSET};

/// Number of dwords of the current command that are decoded.
const COMMAND_DWORDS: u32 = 64;

impl Engine {
    /// Shows the state between two steps. The engine's lock is held. `memory` sends no messages to the client.
    pub fn inspect(&self, gt: &Gt, memory: &Memory<'_>, to: &mut Inspector<'_>) {
        to.value("class", gt.generation.engine(self.id).class.name());
        to.value("idle", gt.engine_idle(self.id));
        to.value("waits", self.waiting);
        to.value("arbitration", self.arbitration);
        to.value("operation_in_progress", if self.pending.is_some() { "blit" } else { "none" });
        to.part("ring", |to| {
            let (start, size) = self.ring(gt);
            to.value("enabled", CTL_ENABLE.is_set(self.value(gt, CTL)));
            to.address("start", start);
            to.value("bytes", size);
            to.address("head", HEAD_OFFSET.of(HEAD_OFFSET.get(self.value(gt, HEAD))));
            to.address("tail", TAIL_OFFSET.of(TAIL_OFFSET.get(self.value(gt, TAIL))));
        });
        to.part("batch", |to| {
            if let Some(batch) = self.batch {
                to.address("start", batch.start);
                to.address("address", batch.next);
                to.value("space", if batch.ppgtt { "ppgtt" } else { "ggtt" });
            }
        });
        to.part("command", |to| {
            let (address, fetch) = self.position(gt);
            to.address("address", address);
            to.value("space", if fetch.space == Space::Ggtt { "ggtt" } else { "ppgtt" });
            to.value("last_header", Node::hex(self.value(gt, IPEHR), 8));
            memory.bypass(gt.bypasses_translation());
            let dwords: Vec<u32> =
                (0..COMMAND_DWORDS).map_while(|n| memory.read32(fetch.space, fetch.address(address, n)).ok()).collect();
            let engine = EngineRef { generation: gt.generation, id: self.id };
            let batch = Batch { requester: self.requester(), ..Batch::new(&dwords, address.into(), engine) };
            match batch.commands().next() {
                Some(command) => {
                    to.value("name", command.name.unwrap_or("not a command of the engine"));
                    to.value("text", command.text());
                }
                None => to.value("name", "cannot be read"),
            }
        });
    }
}
