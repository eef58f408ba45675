// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! An engine as a part of the card's state: the context on it, where its parser is, and the command there.

use arctic_base::inspect::{Inspect, Inspector, Node};

use super::running::{Pending, Running};
use super::stream::Source;
use super::{Engine, Halt, Submitter};
use crate::command::Requester;
use crate::gt::Gt;
use crate::gt::decoder::Decoder;
use crate::memory::inspect::PageTables;
use crate::memory::{Gam, Space, Tlb};

/// Number of dwords of the current command that are decoded.
const COMMAND_DWORDS: usize = 64;

impl Engine {
    /// Shows the state between two steps. The engine's lock is held, so memory may be read; that which needs a message to a client
    /// is not.
    pub fn inspect(&self, gt: &Gt, decoder: &dyn Decoder, to: &mut Inspector<'_>) {
        to.value("class", self.info.class.name());
        to.value("base", Node::hex(self.info.mmio_base, 6));
        to.value("tlb_fills", self.tlb.fills());
        to.part("queue", |to| {
            to.part("status", |to| {
                let running = self.running.as_ref().filter(|running| running.load.submitter == Submitter::Execlist);
                to.fields(&self.execlist.shown(running.map(|running| running.load.descriptor()), true));
            });
        });
        let Some(running) = &self.running else { return to.value("loaded", false) };
        to.value("loaded", true);
        self.inspect_running(gt, running, decoder, to);
    }

    fn inspect_running(&self, gt: &Gt, running: &Running, decoder: &dyn Decoder, to: &mut Inspector<'_>) {
        let function = running.load.function;
        to.value("function", function.to_string());
        to.value("submitter", if running.load.submitter == Submitter::Guc { "guc" } else { "execlist" });
        to.value_with_parts("descriptor", Node::hex(running.load.descriptor, 16), |to| {
            to.fields(&running.load.descriptor());
        });
        to.value("restored", running.restored());
        to.value("preemption_requested", running.preempt);
        to.value("waits", running.waits_at.is_some());
        to.state("halted", &running.halted.map(halt_text));
        let operation = match running.pending {
            None => "none",
            Some(Pending::Blit(_)) => "blit",
            Some(Pending::Walker(_)) => "walker",
        };
        to.value("operation_in_progress", operation);
        to.state("kernel", &gt.engine_kernel(self.id).status());
        to.part("ring", |to| {
            let ring = &running.position.ring;
            to.address("start", ring.start);
            to.value("bytes", ring.size);
            to.address("head", ring.head);
            to.address("tail", ring.tail);
        });
        to.part("batches", |to| {
            for (level, batch) in running.position.batches().iter().enumerate() {
                to.part(&level.to_string(), |to| {
                    to.address("address", batch.address);
                    to.value("space", if batch.ppgtt { "ppgtt" } else { "ggtt" });
                });
            }
        });
        let source = running.position.source(running.lrc.space);
        to.part("command", |to| {
            to.address("address", running.position.address());
            to.value("space", if source.space == Space::Ggtt { "ggtt" } else { "ppgtt" });
            let views = gt.memory.unit_views_without_messages(self.id);
            let mut tlb = Tlb::default();
            let mut gam = gt.memory.gam(function, &views, &mut tlb);
            let dwords = read_source(&mut gam, &source);
            let requester = Requester::new(running.position.privileged(), function.is_vf());
            decoder.command(gt, self.id, requester, (&dwords, running.position.address()), to);
        });
        if let Space::Ppgtt(root) = running.lrc.space {
            to.address("ppgtt_root", root);
            to.table("ppgtt", |to| PageTables { memory: &gt.memory, function, root }.inspect(to));
        }
    }
}

/// Reads the dwords at a position, as far as they can be read.
fn read_source(gam: &mut Gam<'_>, source: &Source) -> Vec<u32> {
    let count = source.dwords.min(COMMAND_DWORDS);
    (0..count).map_while(|index| gam.read_u32(source.space, source.address_of(index)).ok()).collect()
}

/// Why a context cannot continue.
fn halt_text(halt: Halt) -> String {
    match halt {
        Halt::Fault(fault) => fault.to_string(),
        Halt::IllegalCommand { header, address } => format!("illegal command {header:#010x} at {address:#x}"),
        Halt::Unmodelled { header, address } => format!("command {header:#010x} at {address:#x} is not modelled"),
        Halt::Bug => "a step has panicked".into(),
    }
}
