// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! i915's error state (i915: i915_gpu_error.c, intel_guc_capture.c).

use std::io;

use arctic_device_model::command::Requester;
use arctic_device_model::decode::EngineRef;
use arctic_device_model::decode::{Batch, Line, context, guc, register, status};

use super::limits::{Budget, Taken, listed};
use super::memory::Memory;
use super::text::{hex, value};

/// Returns whether a text looks like an error state.
pub fn is(text: &str) -> bool {
    let mut lines = text.lines().take(4096);
    lines.any(|line| line.ends_with("command stream:") || object(line).is_some())
}

/// Parses `rcs0 --- batch = 0x00000000 00100000` into engine, type of object and address.
fn object(line: &str) -> Option<(&str, &str, u64)> {
    let (engine, rest) = line.split_once(" --- ")?;
    let (what, address) = rest.split_once(" = ")?;
    let (high, low) = address.trim().split_once(' ')?;
    Some((engine, what, hex(high)? << 32 | hex(low)?))
}

/// Registers of the current engine, parsed so far.
#[derive(Clone, Copy, Debug, Default)]
struct Registers {
    start: Option<u64>,
    head: Option<u64>,
    tail: Option<u64>,
    acthd: Option<u64>,
}

/// Decodes the dump in the order of its lines, within `budget`; `chosen` excludes the objects of other engines.
pub fn decode(
    budget: &mut Budget,
    text: &str,
    chosen: Option<EngineRef>,
    tell: &mut dyn FnMut(Line) -> io::Result<()>,
) -> io::Result<()> {
    let mut registers = Registers::default();
    let mut present: Option<EngineRef> = None;
    let mut waiting: Option<(&str, &str, u64)> = None;
    let mut rings: Vec<Ct> = Vec::new();
    for line in text.lines() {
        if let Some(found) = object(line) {
            waiting = Some(found);
            continue;
        }
        if let Some((engine, what, address)) = waiting
            && line.starts_with([':', '~'])
        {
            waiting = None;
            let engine = register::engine(engine);
            if chosen.is_some() && engine.is_some() && engine != chosen {
                continue;
            }
            match unpack(line, budget) {
                Ok((dwords, rest)) => {
                    object_lines(what, address, dwords, engine.or(present), &registers, &rings, tell)?;
                    rest.map_or(Ok(()), &mut *tell)?;
                }
                Err(why) => tell(Line::note(format!("{what} at {address:#x}: {why}")))?,
            }
            continue;
        }
        let line = line.trim();
        if let Some(name) = line.strip_suffix(" command stream:") {
            (registers, present) = (Registers::default(), register::engine(name));
            tell(Line::section(line))?;
            continue;
        }
        if let Some(ct) = Ct::read(line) {
            rings.push(ct);
        }
        registers.read(line);
        let header = value(line, "IPEHR").or_else(|| value(line, "RING_IPEHR")).and_then(hex);
        let class = present.map(|engine| engine.info().class);
        match header.zip(class).and_then(|(header, class)| register::command(u32::try_from(header).ok()?, class)) {
            Some(name) => tell(Line::note(format!("{line} ({name})")))?,
            None if !line.is_empty() => tell(Line::note(line))?,
            None => {}
        }
    }
    Ok(())
}

impl Registers {
    fn read(&mut self, line: &str) {
        let of = |names: [&str; 2]| names.iter().find_map(|name| value(line, name)).and_then(hex);
        self.start = of(["START", "RING_START"]).or(self.start);
        self.head = of(["HEAD", "RING_HEAD"]).or(self.head);
        self.tail = of(["TAIL", "RING_TAIL"]).or(self.tail);
        // The high and low dword are separate here; the GuC's capture has both in one value.
        let apart = value(line, "ACTHD").and_then(|text| text.split_once(' '));
        let acthd = apart.and_then(|(high, low)| Some(hex(high)? << 32 | hex(low)?));
        self.acthd = acthd.or_else(|| of(["ACTHD", "RING_ACTHD"])).or(self.acthd);
    }

    fn marks(&self) -> Vec<(u64, &'static str)> {
        let mut marks: Vec<_> = self.acthd.map(|at| (at, "ACTHD")).into_iter().collect();
        if let Some(start) = self.start {
            marks.extend(self.head.map(|head| (start + (head & 0x1f_fffc), "HEAD")));
            marks.extend(self.tail.map(|tail| (start + (tail & 0x1f_fff8), "TAIL")));
        }
        marks
    }
}

/// A CT ring: `GuC Send CTB: raw: 0x.., 0xHEAD/0xTAIL, cached: .., desc = 0x.., buf = 0x.. x 0x..`.
#[derive(Clone, Copy, Debug)]
struct Ct {
    send: bool,
    head: usize,
    tail: usize,
    /// Byte offset in the buffer object that follows in the dump; `size` is in dwords.
    at: usize,
    size: usize,
}

impl Ct {
    fn read(line: &str) -> Option<Ct> {
        let rest = line.strip_prefix("GuC ")?;
        let send = rest.starts_with("Send CTB");
        let pointers = rest.split_once("raw: ")?.1.split_once(", ")?.1;
        let (head, tail) = pointers.split_once(',')?.0.split_once('/')?;
        let (at, size) = rest.split_once("buf = ")?.1.split_once(" x ")?;
        let place = |text: &str| usize::try_from(hex(text)?).ok();
        Some(Ct { send, head: place(head)?, tail: place(tail)?, at: place(at)?, size: place(size)? })
    }
}

/// Decodes the dwords in an object's line: ascii85 after `~`, a zlib stream in ascii85 after `:`.
fn unpack(line: &str, budget: &mut Budget) -> Result<Taken, String> {
    let (marker, data) = line.split_at(1);
    let data = data.trim_end().as_bytes();
    match marker {
        "~" => budget.ascii85(data).map_err(|at| format!("no ascii85 at character {at}")),
        _ => budget.inflated(data),
    }
}

fn object_lines(
    what: &str,
    address: u64,
    dwords: Vec<u32>,
    engine: Option<EngineRef>,
    registers: &Registers,
    rings: &[Ct],
    tell: &mut dyn FnMut(Line) -> io::Result<()>,
) -> io::Result<()> {
    let name = engine.map_or("", |engine| engine.info().name);
    let title = Line::section(format!("{what} at {address:#x} {name}").trim_end());
    let Some(engine) = engine else {
        tell(title)?;
        if !what.contains("CT") {
            return tell(Line::note(format!("{} bytes", dwords.len() * 4)));
        }
        for ct in rings {
            tell(Line::section(format!("GuC CT buffer, {}", if ct.send { "host to GuC" } else { "GuC to host" })))?;
            let words = dwords.get(ct.at / 4..).unwrap_or_default();
            let words = words.get(..ct.size.min(words.len())).unwrap_or_default();
            let words = listed(words, tell)?;
            guc::ring(words, Some(ct.head), Some(ct.tail)).into_iter().try_for_each(&mut *tell)?;
        }
        return Ok(());
    };
    match what {
        "batch" | "user" => {
            let mut memory = Memory::default();
            let bytes = dwords.len() * 4;
            memory.add(address, dwords);
            let starts = if what == "batch" { vec![address] } else { Vec::new() };
            if starts.is_empty() {
                tell(title)?;
                return tell(Line::note(format!("{bytes} bytes")));
            }
            memory.batches(&starts, engine, &registers.marks(), tell).map(drop)
        }
        "ring" | "WA context" => {
            tell(title)?;
            let ring = Batch {
                marks: registers.marks(),
                ends: what != "ring",
                requester: Requester::PfKernel,
                ..Batch::new(&dwords, address, engine)
            };
            ring.commands().map(Line::Command).try_for_each(tell)
        }
        "HW context" => {
            tell(title)?;
            let (page, image) = dwords.split_at(context::PAGE_DWORDS.min(dwords.len()));
            context::page(page).into_iter().try_for_each(&mut *tell)?;
            let image = listed(image, tell)?;
            context::image(image, engine).into_iter().try_for_each(tell)
        }
        "HW Status" => {
            tell(title)?;
            status::buffer(&dwords).into_iter().try_for_each(tell)
        }
        _ => {
            tell(title)?;
            tell(Line::note(format!("{} bytes", dwords.len() * 4)))
        }
    }
}
