// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! i915's error state (i915: i915_gpu_error.c, intel_guc_capture.c).

use std::io;

use arctic_device_model::command::Requester;
use arctic_device_model::decode::{Line, context, guc};

use super::engine::{Batch, Engine, Family};
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

/// The family of the GPU that a dump is of, by its PCI device ID and its platform.
pub fn family(text: &str) -> Family {
    let mut lines = text.lines();
    let device = lines.clone().find_map(|line| u16::try_from(hex(value(line, "PCI ID")?)?).ok());
    Family::of_device(device, lines.find_map(|line| value(line, "Platform")))
}

/// Registers of the current engine, parsed so far.
#[derive(Clone, Copy, Debug, Default)]
struct Registers {
    start: Option<u64>,
    head: Option<u64>,
    tail: Option<u64>,
    acthd: Option<u64>,
    error: bool,
    fault: bool,
}

/// Decodes the dump in the order of its lines, within `budget`, with the tables of `family`; `selected` excludes the objects
/// of other engines, unless it is empty.
pub fn decode(
    budget: &mut Budget,
    text: &str,
    family: Family,
    selected: &[Engine],
    emit: &mut dyn FnMut(Line) -> io::Result<()>,
) -> io::Result<()> {
    let mut registers = Registers::default();
    let mut present: Option<Engine> = None;
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
            let engine = family.engine(engine);
            if let Some(engine) = engine
                && !selected.is_empty()
                && selected.iter().all(|selected| selected.name() != engine.name())
            {
                continue;
            }
            match unpack(line, budget) {
                Ok((dwords, rest)) => {
                    object_lines(what, address, dwords, engine.or(present), &registers, &rings, emit)?;
                    rest.map_or(Ok(()), &mut *emit)?;
                }
                Err(why) => emit(Line::note(format!("{what} at {address:#x}: {why}")))?,
            }
            continue;
        }
        let line = line.trim();
        if let Some(name) = line.strip_suffix(" command stream:") {
            (registers, present) = (Registers::default(), family.engine(name));
            emit(Line::section(line))?;
            continue;
        }
        if let Some(ct) = Ct::read(line) {
            rings.push(ct);
        }
        registers.read(line);
        match meaning(line, family, present) {
            Some(meaning) => emit(Line::note(format!("{line} ({meaning})")))?,
            None if !line.is_empty() => emit(Line::note(line))?,
            None => {}
        }
    }
    Ok(())
}

/// Meaning of a line `REGISTER: 0x...` or `fence[n] = ...`, if it is known. Lines before the first engine have registers
/// of the GT, which are those of the render engine.
fn meaning(line: &str, family: Family, present: Option<Engine>) -> Option<String> {
    if let Some((_, fence)) = line.strip_prefix("fence[").and_then(|rest| rest.split_once(" = ")) {
        return family.fence(hex(fence)?);
    }
    let (name, value) = line.split_once(": ")?;
    // The high and the low dword of an address are separate.
    let low = value.split_once(['_', ' ']).filter(|(_, low)| low.len() == 8).map_or(value, |(_, low)| low);
    present.or_else(|| family.engine("rcs0"))?.register(name, u32::try_from(hex(low)?).ok()?)
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
        self.error |= of(["ESR", "RING_ESR"]).is_some_and(|errors| errors != 0);
        self.fault |= of(["FAULT_REG", "RING_FAULT_REG"]).is_some_and(|fault| fault & 1 != 0);
    }

    fn marks(&self) -> Vec<(u64, &'static str)> {
        let of_command = [("ACTHD", true), ("error in ESR", self.error), ("fault in FAULT_REG", self.fault)];
        let of_command = of_command.into_iter().filter(|(_, set)| *set);
        let mut marks: Vec<_> = of_command.filter_map(|(name, _)| Some((self.acthd?, name))).collect();
        if let Some(start) = self.start {
            marks.extend(self.head.map(|head| (start.wrapping_add(head & 0x1f_fffc), "HEAD")));
            marks.extend(self.tail.map(|tail| (start.wrapping_add(tail & 0x1f_fff8), "TAIL")));
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
    engine: Option<Engine>,
    registers: &Registers,
    rings: &[Ct],
    emit: &mut dyn FnMut(Line) -> io::Result<()>,
) -> io::Result<()> {
    let name = engine.map_or("", Engine::name);
    let title = Line::section(format!("{what} at {address:#x} {name}").trim_end());
    let Some(engine) = engine else {
        emit(title)?;
        if !what.contains("CT") {
            return emit(Line::note(format!("{} bytes", dwords.len() * 4)));
        }
        for ct in rings {
            emit(Line::section(format!("GuC CT buffer, {}", if ct.send { "host to GuC" } else { "GuC to host" })))?;
            let words = dwords.get(ct.at / 4..).unwrap_or_default();
            let words = words.get(..ct.size.min(words.len())).unwrap_or_default();
            let words = listed(words, emit)?;
            guc::ring(words, Some(ct.head), Some(ct.tail)).into_iter().try_for_each(&mut *emit)?;
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
                emit(title)?;
                return emit(Line::note(format!("{bytes} bytes")));
            }
            memory.decode_batches(&starts, engine, &registers.marks(), emit).map(drop)
        }
        "ring" | "WA context" => {
            emit(title)?;
            let ring = Batch {
                marks: registers.marks(),
                ends: what != "ring",
                requester: Requester::PfKernel,
                ..Batch::new(&dwords, address, engine)
            };
            ring.commands().map(Line::Command).try_for_each(emit)
        }
        "HW context" => {
            emit(title)?;
            let (page, image) = engine.split(&dwords);
            context::page(page).into_iter().try_for_each(&mut *emit)?;
            let image = listed(image, emit)?;
            engine.image(image).into_iter().try_for_each(emit)
        }
        "HW Status" => {
            emit(title)?;
            engine.status(listed(&dwords, emit)?).into_iter().try_for_each(emit)
        }
        _ => {
            emit(title)?;
            emit(Line::note(format!("{} bytes", dwords.len() * 4)))
        }
    }
}
