// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The track of an engine: its contexts as slices, with batches, kernels and waits within them.

use std::io::{self, Write};

use arctic_device_model::trace::EventKind;

use super::packets::{Packets, Values, hex, number, text};
use super::slice_name;
use crate::decode::engine::{Engine, command};

/// Name of the command that dispatches a kernel.
const WALKER: &str = "COMPUTE_WALKER";

/// The track of an engine.
pub struct EngineTrack {
    /// Its number.
    pub uuid: u64,
    /// The engine's tables; `None` for one that the card does not have.
    engine: Option<Engine>,
    /// Time of the last slice that began or ended. Threads may report events of an engine out of order, and a file may have any.
    last: u64,
    /// Of the context's slice, if there is one, the function's track that has the same slice.
    context: Option<u64>,
    /// Slices within that of the context, or without one, outermost first.
    open: Vec<Nested>,
}

/// A slice within that of a context.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nested {
    Batch,
    Walker,
    Wait,
}

impl EngineTrack {
    /// A track without events.
    pub fn new(uuid: u64, engine: Option<Engine>) -> Self {
        EngineTrack { uuid, engine, last: 0, context: None, open: Vec::new() }
    }

    /// Adds an event of the engine. `using` is the track of the function on the engine, of an event that loads a context.
    pub fn add<W: Write>(
        &mut self,
        packets: &mut Packets<W>,
        ns: u64,
        function: u8,
        using: Option<u64>,
        what: &EventKind,
    ) -> io::Result<()> {
        let ns = self.last.max(ns);
        let instant =
            |packets: &mut Packets<W>, name: &str, values| packets.instant(ns, self.uuid, name.into(), values);
        match what {
            EventKind::Load { context, descriptor } => {
                self.end(packets, ns, &[])?;
                let values = vec![number("context", (*context).into()), hex("descriptor", *descriptor)];
                packets.begin(ns, self.uuid, slice_name(function), values)?;
                if let Some(using) = using {
                    packets.begin(ns, using, slice_name(function), vec![number("context", (*context).into())])?;
                    self.context = Some(using);
                }
                Ok(())
            }
            EventKind::Command { address, level, dwords, .. } => self.command(packets, ns, (*address, *level), dwords),
            EventKind::Walker { kernel, groups, instructions, faults, outside, at } => {
                let counts =
                    [("groups", groups), ("instructions", instructions), ("faults", faults), ("outside", outside)];
                let mut values = vec![hex("kernel", *kernel)];
                values.extend(counts.map(|(name, count)| number(name, *count)));
                values.extend(at.as_deref().map(|at| text("at", at)));
                self.close(packets, ns, |open| open == Nested::Walker, values)
            }
            EventKind::Wait => self.open(packets, ns, Nested::Wait, "waits", Vec::new()),
            EventKind::Stop { outcome, head } => {
                self.end(packets, ns, &[text("outcome", outcome), hex("head", (*head).into())])
            }
            EventKind::Reset => {
                self.end(packets, ns, &[text("outcome", "reset")])?;
                packets.instant(ns, self.uuid, "reset".into(), Vec::new())
            }
            EventKind::LiteRestore { tail } => instant(packets, "resubmitted", vec![hex("tail", (*tail).into())]),
            EventKind::Skipped { command, stopped, .. } => {
                instant(packets, &format!("skipped {command}"), vec![number("stopped", (*stopped).into())])
            }
            EventKind::Interrupt { bits } => instant(packets, "interrupt", vec![hex("bits", (*bits).into())]),
            EventKind::TlbInvalidation { by, .. } => instant(packets, "TLB invalidation", vec![text("by", by)]),
            _ => Ok(()),
        }
    }

    /// A command has a slice only if it is the first of a batch, or dispatches a kernel.
    fn command<W: Write>(
        &mut self,
        packets: &mut Packets<W>,
        ns: u64,
        (address, level): (u64, u8),
        dwords: &[u32],
    ) -> io::Result<()> {
        self.close(packets, ns, |open| open != Nested::Batch || level == 0, Vec::new())?;
        if level != 0 {
            self.open(packets, ns, Nested::Batch, "batch", vec![hex("address", address)])?;
        }
        let name = self.engine.zip(dwords.first()).and_then(|(engine, header)| command(engine, *header));
        if name == Some(WALKER) {
            self.open(packets, ns, Nested::Walker, "kernel", vec![hex("command", address)])?;
        }
        Ok(())
    }

    /// Begins a slice within those that are open, unless there is one of its kind.
    fn open<W: Write>(
        &mut self,
        packets: &mut Packets<W>,
        ns: u64,
        kind: Nested,
        name: &str,
        values: Values,
    ) -> io::Result<()> {
        if self.open.contains(&kind) {
            return Ok(());
        }
        self.open.push(kind);
        self.last = ns;
        packets.begin(ns, self.uuid, name.into(), values)
    }

    /// Ends the outermost slice that `ends`, which has `values`, and those within it.
    fn close<W: Write>(
        &mut self,
        packets: &mut Packets<W>,
        ns: u64,
        ends: impl Fn(Nested) -> bool,
        mut values: Values,
    ) -> io::Result<()> {
        let Some(first) = self.open.iter().position(|open| ends(*open)) else { return Ok(()) };
        self.last = ns;
        while self.open.len() > first {
            self.open.pop();
            let values = if self.open.len() == first { std::mem::take(&mut values) } else { Vec::new() };
            packets.end(ns, self.uuid, values)?;
        }
        Ok(())
    }

    /// Ends all slices, of which that of the context has `values`.
    pub fn end<W: Write>(
        &mut self,
        packets: &mut Packets<W>,
        ns: u64,
        values: &[super::schema::DebugAnnotation],
    ) -> io::Result<()> {
        let ns = self.last.max(ns);
        self.close(packets, ns, |_| true, Vec::new())?;
        self.last = ns;
        let Some(using) = self.context.take() else { return Ok(()) };
        packets.end(ns, self.uuid, values.to_vec())?;
        packets.end(ns, using, Vec::new())
    }
}
