// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The GuC's state as a part of the card's: the kernel with its engines, and what it keeps of each function. Memory of functions
//! is read as far as no message to a client is needed for it.

use arctic_base::inspect::{Inspect, Inspector, Node};

use crate::engine::Engines;
use crate::execlist::descriptor::Descriptor;
use crate::gpu::Quota;
use crate::gt::Gt;
use crate::gt::decoder::Decoder;
use crate::guc::Guc;
use crate::guc::functions::GucFunction;
use crate::guc::functions::client::Client;
use crate::guc::functions::context::{Context, GucContextId};
use crate::guc::functions::member::Member;
use crate::guc::state::GucState;
use crate::host::Function;
use crate::memory::inspect::PageTables;
use crate::memory::{Gam, Space, Tlb};
use crate::topology::EngineClass;

/// Dwords of a context that are decoded: its status page and the registers and state behind it.
const CONTEXT_DWORDS: usize = 0x1000;

impl Guc {
    /// Shows the kernel: firmware, policies, and the engines with the contexts that hold them.
    pub fn inspect(&self, gt: &Gt, engines: &Engines, to: &mut Inspector<'_>) {
        let Some(state) = &self.state else { return to.value("running", false) };
        let GucState { firmware, scheduler, policy, counters, builtin_pf, pending, .. } = &**state;
        to.value("running", true);
        to.value("firmware", firmware.release.to_string());
        to.value("interface", firmware.submission.to_string());
        to.value("without_pf_driver", *builtin_pf);
        to.state("counters", counters);
        to.state("policy", policy);
        to.value("pending_functions", Node::hex(*pending, 16));
        to.part("engines", |to| {
            for id in engines.present() {
                to.state(gt.engine(id).name, scheduler.slot(id));
            }
        });
    }

    /// Shows what the kernel keeps of a function; nothing if none is running. The GuC's lock is held, so memory may be read.
    pub fn inspect_function(&self, gt: &Gt, function: Function, decoder: &dyn Decoder, to: &mut Inspector<'_>) {
        let Some(state) = &self.state else { return };
        let of = &state.scheduler.functions[function];
        let views = gt.memory.views_without_messages();
        let mut tlb = Tlb::default();
        let gam = &mut gt.memory.gam(function, &views, &mut tlb);
        to.state("state", &of.state);
        to.state("quota", &Quota::from(&of.config));
        to.state("requests", &of.counters);
        to.value("messages", of.messages);
        to.value("engine_resets", of.engine_resets);
        to.value("cat_errors", of.cat_errors);
        to.part("client", |to| of.client.inspect(gam, decoder, to));
        to.part("queues", |to| {
            for class in EngineClass::BY_GUC {
                to.value(class.name(), of.queued(class));
            }
        });
        to.part("contexts", |to| inspect_contexts(gt, decoder, of, gam, to));
        to.part("doorbells", |to| self.inspect_doorbells(gt, function, to));
    }

    fn inspect_doorbells(&self, gt: &Gt, function: Function, to: &mut Inspector<'_>) {
        let rings = gt.doorbells.rings(function);
        to.value("rung", rings.rung);
        to.value("missed", rings.missed);
        for index in 0..=u8::MAX {
            let Some((_, page)) = gt.doorbells.watched(index).filter(|(owner, _)| *owner == function) else { continue };
            to.part(&index.to_string(), |to| {
                to.address("page", page.offset());
                let bound = self.doorbell(index);
                to.state("context", &bound.map(|GucContextId { local, .. }| local));
            });
        }
    }
}

impl Client {
    fn inspect(&self, gam: &mut Gam<'_>, decoder: &dyn Decoder, to: &mut Inspector<'_>) {
        let Client { rings: _, channel, interrupt, invalidations, version, cat_error_type } = self;
        to.value("version", version.map_or_else(|| "none".into(), |version| version.to_string()));
        to.value("reports_cat_error_types", *cat_error_type);
        to.part("interrupt", |to| {
            to.address("source", interrupt.source);
            to.address("status", interrupt.status);
        });
        to.state("tlb_invalidations", invalidations);
        to.part("ct", |to| {
            if let Some(channel) = channel {
                channel.inspect(gam, decoder, to);
            }
        });
    }
}

fn inspect_contexts(gt: &Gt, decoder: &dyn Decoder, of: &GucFunction, gam: &mut Gam<'_>, to: &mut Inspector<'_>) {
    for (id, context) in &of.contexts {
        to.part(&id.to_string(), |to| {
            let Context { number, class, mask, members, work_queue, policies, .. } = context;
            to.value("number", *number);
            to.value("class", class.name());
            to.value("instances", Node::hex(*mask, 1));
            to.state("home", &context.home);
            to.value("enabled", context.enabled);
            to.value("disabling", context.disabling);
            to.value("deregistering", context.deregistering);
            to.value("skipped", context.skipped);
            to.value("parallel", work_queue.is_some());
            to.state("policies", policies);
            for (n, member) in members.iter().enumerate() {
                to.part(&format!("member_{n}"), |to| inspect_member(gt, decoder, (*class, member), gam, to));
            }
        });
        if to.is_full() {
            return;
        }
    }
}

/// Shows a logical ring context of a class: its descriptor, the registers and the position in its image, its page tables.
fn inspect_member(
    gt: &Gt,
    decoder: &dyn Decoder,
    (class, member): (EngineClass, &Member),
    gam: &mut Gam<'_>,
    to: &mut Inspector<'_>,
) {
    let function = gam.function();
    let descriptor = Descriptor::from(member.descriptor);
    to.value_with_parts("descriptor", Node::hex(member.descriptor, 16), |to| {
        to.fields(&descriptor);
    });
    to.value("loaded", member.loaded);
    to.value("ready", member.ready);
    let engines = gt.generation.engines;
    let Some(id) = engines.all().find(|id| engines.info(*id).class == class) else { return };
    let Some(dwords) = read_dwords(gam, descriptor.lrca().into(), CONTEXT_DWORDS) else {
        return to.value("image", "cannot be read");
    };
    let root = decoder.context(gt, id, &dwords, to);
    to.table("ppgtt", |to| PageTables { memory: &gt.memory, function, root }.inspect(to));
}

/// Reads dwords of the GGTT; `None` if one of them cannot be read.
fn read_dwords(gam: &mut Gam<'_>, address: u64, count: usize) -> Option<Vec<u32>> {
    let mut bytes = vec![[0; 4]; count];
    gam.read(Space::Ggtt, address, bytes.as_flattened_mut()).ok()?;
    Some(bytes.into_iter().map(u32::from_le_bytes).collect())
}
