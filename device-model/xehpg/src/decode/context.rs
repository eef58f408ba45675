// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Disassembly of context images: logical ring contexts in memory (V8-040..051).

use arctic_base::decode::loads;
use arctic_sriov::number::qword;

use super::batch::Batch;
use super::{Dword, Line, register};
use crate::command::Requester;
use crate::engine::addressing::image_register;
use crate::engine::stream::BatchEntry;
use crate::generation::EngineRef;
use crate::registers::engine_fields::{BbPerCtxPtr, BbState, ContextControl, IndirectCtx, RingCtl, RingHead, RingTail};
use crate::registers::engine_offsets as reg;

/// Size in dwords of the per-process status page that precedes the image.
pub const PAGE_DWORDS: usize = 0x400;

/// Execution state of a context according to its image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// RING_START.
    pub start: u32,
    /// Size of the ring in bytes; 0 if it is not enabled.
    pub size: u32,
    /// Offset in RING_HEAD.
    pub head: u32,
    /// Offset in RING_TAIL.
    pub tail: u32,
    /// Address of the batch in which the context was switched out.
    pub batch: Option<u64>,
    /// Address of the root of the process's page tables.
    pub root: u64,
}

/// The registers of an image, by offset from the engine's base, with their values.
fn registers(image: &[u32], engine: EngineRef) -> impl Iterator<Item = (usize, u32, u32)> + use<'_> {
    let base = engine.info().mmio_base;
    loads(image, engine).filter_map(move |(index, offset, value)| Some((index, offset.checked_sub(base)?, value)))
}

/// Register loads by the image's LRIs: index of the value, register, value.
fn loads(image: &[u32], engine: EngineRef) -> impl Iterator<Item = (usize, u32, u32)> + use<'_> {
    loads::loads(image, engine).map(move |load| {
        let offset = image_register(engine.generation.engines, engine.id, load.offset, load.addressing);
        (load.index, offset, load.value)
    })
}

/// High dword of PDP0.
const PDP0_UDW: u32 = reg::PDP0 + 4;

/// Extracts the execution state from an image.
pub fn position(image: &[u32], engine: EngineRef) -> Position {
    let mut position = Position::default();
    let mut batch = [0; 2];
    // The engine context contains some of these registers again, with another meaning.
    for (_, offset, value) in
        registers(image, engine).take_while(|(index, ..)| *index < engine.generation.contexts.engine_context)
    {
        match offset {
            reg::RING_TAIL => position.tail = RingTail::from(value).offset(),
            reg::RING_HEAD => position.head = RingHead::from(value).offset(),
            reg::RING_START => position.start = value & 0xffff_f000,
            reg::RING_CTL => position.size = RingCtl::from(value).bytes(),
            reg::BBADDR => batch[0] = value,
            reg::BBADDR_UDW => batch[1] = value,
            reg::PDP0 => position.root |= u64::from(value),
            PDP0_UDW => position.root |= u64::from(value) << 32,
            _ => {}
        }
    }
    let batch = BatchEntry::from(qword(batch[0], batch[1]));
    position.batch = batch.valid().then(|| batch.address());
    position
}

/// Disassembles the image of a context of `engine`. `image` starts after the status page.
#[allow(clippy::arithmetic_side_effects, reason = "the tail is above the head")]
pub fn image(image: &[u32], engine: EngineRef) -> Vec<Line> {
    let mut lines: Vec<_> = loads(image, engine)
        .map(|(index, offset, value)| {
            let within = offset.wrapping_sub(engine.info().mmio_base);
            Line::Dword(Dword {
                index,
                name: register::name(engine.generation, offset),
                value,
                meaning: meaning(within, value, engine),
            })
        })
        .collect();
    let place = position(image, engine);
    if lines.is_empty() {
        lines.push(Line::note("contains no register load: not a context image, or not initialised"));
        return lines;
    }
    lines.push(Line::note(match place {
        Position { size: 0, .. } => "the ring is not enabled".into(),
        Position { head, tail, .. } if head == tail => format!("the ring is empty: HEAD and TAIL are {head:#x}"),
        Position { head, tail, size, .. } => {
            // HEAD and TAIL of a damaged image may be beyond the ring.
            let left = if tail > head { tail - head } else { size.wrapping_sub(head).wrapping_add(tail) };
            format!("{left:#x} bytes of the ring are pending: HEAD {head:#x}, TAIL {tail:#x} of {size:#x}")
        }
    }));
    if let Some(batch) = place.batch {
        lines.push(Line::note(format!("switched out in the batch at {batch:#x}")));
    }
    for (at, command) in others(image, engine) {
        lines.push(Line::note(format!("at [{at:#05x}]: {command}")));
    }
    lines
}

/// Commands of the image other than loads of immediates and MI_NOOPs.
fn others(image: &[u32], engine: EngineRef) -> Vec<(usize, String)> {
    let batch = Batch { requester: Requester::PfKernel, ..Batch::new(image, 0, engine) };
    let commands = batch.commands().filter(|command| !matches!(command.name, Some("MI_NOOP" | "MI_LOAD_REGISTER_IMM")));
    commands
        .take_while(|command| command.name.is_some())
        .map(|command| {
            let text = command.text();
            let name = command.name.unwrap_or_default();
            ((command.address / 4) as usize, if text.is_empty() { name.into() } else { format!("{name}: {text}") })
        })
        .collect()
}

/// Meaning of a register's value in an image, by its offset from the engine's base.
fn meaning(offset: u32, value: u32, engine: EngineRef) -> String {
    let state = |set: bool, yes: &str, no: &str| if set { yes.to_string() } else { no.to_string() };
    match offset {
        reg::RING_TAIL => format!("offset {:#x}", RingTail::from(value).offset()),
        reg::RING_HEAD => {
            let head = RingHead::from(value);
            format!("offset {:#x}, wrapped {} times", head.offset(), head.wraps())
        }
        reg::RING_START => format!("ring at {:#x}", value & !0xfff),
        reg::RING_CTL if RingCtl::from(value).enabled() => {
            format!("{} KiB, enabled", RingCtl::from(value).bytes() / 1024)
        }
        reg::RING_CTL => "not enabled".into(),
        reg::IPEHR => engine
            .generation
            .commands
            .decode(value, engine.info().class)
            .map_or(String::new(), |command| command.name().into()),
        reg::BB_STATE => {
            state(BbState::from(value).ppgtt(), "batch in the process's space", "batch in the global space")
        }
        reg::BBADDR => state(BatchEntry::from(u64::from(value)).valid(), "in a batch", "in no batch"),
        reg::BB_PER_CTX_PTR if BbPerCtxPtr::from(value).valid() => {
            format!("batch at {:#x} before each ring", BbPerCtxPtr::from(value).address())
        }
        reg::INDIRECT_CTX if IndirectCtx::from(value).cachelines() != 0 => {
            let batch = IndirectCtx::from(value);
            let (address, cachelines) = (batch.address(), batch.cachelines());
            format!("batch at {address:#x}, {cachelines} cachelines, in the middle of the restore")
        }
        reg::CONTEXT_CONTROL => {
            let control = ContextControl::from(value);
            let flags = [
                (control.restore_inhibit(), "engine context not restored"),
                (control.inhibit_synchronous_switch(), "no switch while it waits"),
            ];
            flags.iter().filter(|(set, _)| *set).map(|(_, flag)| *flag).collect::<Vec<_>>().join(", ")
        }
        reg::CTX_TIMESTAMP => {
            format!("{} us on the engine", engine.generation.timebase.nanoseconds(u64::from(value)) / 1000)
        }
        _ => String::new(),
    }
}

/// Decodes the nonzero dwords of a per-process status page.
#[allow(clippy::arithmetic_side_effects, reason = "the index of a slice of dwords, in bytes")]
pub fn page(page: &[u32]) -> Vec<Line> {
    let name = |index: usize| match index {
        0x04 => "ring head, reported".into(),
        // Driver-defined offsets: xe_lrc.c, LRC_SEQNO_PPHWSP_OFFSET and following.
        0x80 => "seqno (xe)".into(),
        0x82 => "start seqno (xe)".into(),
        0x84 => "job timestamp (xe)".into(),
        _ => format!("+{:#x}", index * 4),
    };
    let words = page.iter().take(PAGE_DWORDS).enumerate().filter(|(_, value)| **value != 0);
    words
        .map(|(index, value)| Line::Dword(Dword { index, name: name(index), value: *value, meaning: String::new() }))
        .collect()
}
