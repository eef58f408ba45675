// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! i915's error state (i915: i915_gpu_error.c, intel_guc_capture.c), in the forms of Linux 3.8 to 7.2. Linux before 4.11 wrote
//! objects as rows of hexadecimal dwords, with other names of engines and objects.

use std::collections::BTreeMap;
use std::io;

use arctic_device_model::command::Requester;
use arctic_device_model::decode::{Line, context, guc};

use super::engine::{Batch, Engine, Family, command, of_i915};
use super::limits::{Budget, Taken, listed};
use super::memory::Memory;
use super::source::Understood;
use super::text::{hex, value};

/// Returns whether a text looks like an error state.
pub fn is(text: &str) -> bool {
    let mut lines = text.lines().take(4096);
    lines.any(|line| line.ends_with("command stream:") || object(line).is_some())
}

/// An object of an engine.
#[derive(Clone, Copy, Debug)]
struct Object<'l> {
    engine: &'l str,
    what: &'l str,
    address: u64,
}

/// Parses `rcs0 --- batch = 0x00000000 00100000`, or before Linux 4.11 `render ring (submitted by X [1]) --- gtt_offset =
/// 0x00100000`.
fn object(line: &str) -> Option<Object<'_>> {
    let (engine, rest) = line.split_once(" --- ")?;
    let (what, address) = rest.split_once(" = ")?;
    let address = address.trim();
    let address = match address.split_once([' ', '_']) {
        Some((high, low)) => hex(high)? << 32 | u64::from(u32::try_from(hex(low)?).ok()?),
        None => hex(address)?,
    };
    let engine = engine.split(" (").next().unwrap_or_default().trim();
    let what = match what {
        "gtt_offset" => "batch",
        "ringbuffer" => "ring",
        "HW Context" => "HW context",
        other => other,
    };
    Some(Object { engine, what, address })
}

/// Parses a row of an object: `00000040 :  7a000003`, or `[0040] 00000000 00000000 00000000 00000000`. Returns the offset and
/// the dwords.
fn row(line: &str) -> Option<(u64, Vec<u32>)> {
    let dword = |text: &str| (text.len() == 8).then(|| u32::from_str_radix(text, 16).ok())?;
    let (offset, dwords) = match line.trim().strip_prefix('[') {
        Some(rest) => rest.split_once("] ")?,
        None => line.trim().split_once(" : ")?,
    };
    let dwords = dwords.split_whitespace().map(dword).collect::<Option<Vec<u32>>>()?;
    Some((u64::from_str_radix(offset.trim(), 16).ok()?, dwords)).filter(|(_, dwords)| !dwords.is_empty())
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
/// of other engines, unless it is empty. Counts in `understood` what has a meaning and what has none.
pub fn decode(
    budget: &mut Budget,
    text: &str,
    (family, selected): (Family, &[Engine]),
    understood: &mut Understood,
    emit: &mut dyn FnMut(Line) -> io::Result<()>,
) -> io::Result<()> {
    // The registers of all engines may precede all objects.
    let mut registers: BTreeMap<&str, Registers> = BTreeMap::new();
    let mut present: Option<Engine> = None;
    let mut current = "";
    let mut waiting: Option<Object<'_>> = None;
    let mut rings: Vec<Ct> = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let next = object(line);
        let data = line.starts_with([':', '~']);
        let rows = if waiting.is_some() && !data && next.is_none() { row(line) } else { None };
        if let Some(object) = waiting
            && (data || rows.is_some())
        {
            waiting = None;
            let unpacked = match rows {
                None => unpack(line, budget),
                Some((_, mut dwords)) => {
                    while let Some((_, more)) = lines.peek().and_then(|line| row(line)) {
                        dwords.extend(more);
                        lines.next();
                    }
                    Ok(budget.words(dwords))
                }
            };
            let engine = of_i915(family, object.engine);
            if let Some(engine) = engine
                && !selected.is_empty()
                && selected.iter().all(|selected| selected.name() != engine.name())
            {
                understood.decoded();
                continue;
            }
            let Object { what, address, .. } = object;
            match unpacked {
                Ok((dwords, rest)) => {
                    let own = engine.map_or("", |engine| engine.name());
                    let registers = registers.get(own).copied().unwrap_or_default();
                    let is_ct = what.contains("CT");
                    match engine {
                        None if object.engine != "global" => understood
                            .unknown(format!("{what} of {}, an engine that the card does not have", object.engine)),
                        None if !is_ct => understood.unknown(format!("{what}, which is not decoded")),
                        _ => {}
                    }
                    object_lines((what, address, dwords), engine, &registers, &rings, understood, emit)?;
                    if is_ct {
                        // Another GT has other rings.
                        rings.clear();
                    }
                    rest.map_or(Ok(()), &mut *emit)?;
                }
                Err(why) => {
                    understood.unknown(format!("damaged {what}"));
                    emit(Line::note(format!("{what} at {address:#x}: {why}")))?;
                }
            }
            continue;
        }
        if let Some(Object { what, address, engine }) = waiting.take() {
            understood.unknown(format!("{what} without data"));
            emit(Line::note(format!("{what} of {engine} at {address:#x}: no data follows")))?;
        }
        if next.is_some() {
            waiting = next;
            continue;
        }
        if data || row(line).is_some() {
            understood.unknown("data of no object");
        }
        let line = line.trim();
        if let Some(name) = line.strip_suffix(" command stream:") {
            present = of_i915(family, name);
            current = match present {
                Some(engine) => engine.name(),
                None => name,
            };
            registers.insert(current, Registers::default());
            if present.is_none() {
                understood.unknown(format!("registers of {name}, an engine that the card does not have"));
            }
            emit(Line::section(line))?;
            continue;
        }
        if let Some(ct) = Ct::read(line) {
            rings.push(ct);
        }
        if let Some(registers) = registers.get_mut(current) {
            registers.read(line);
        }
        match meaning(line, family, present) {
            Some(meaning) => {
                understood.decoded();
                emit(Line::note(format!("{line} ({meaning})")))?;
            }
            None if !line.is_empty() => {
                if line.starts_with("IPEHR:") || line.starts_with("RING_IPEHR:") {
                    understood.unknown("unknown command in IPEHR");
                }
                emit(Line::note(line))?;
            }
            None => {}
        }
    }
    if let Some(Object { what, address, engine }) = waiting {
        understood.unknown(format!("{what} without data"));
        emit(Line::note(format!("{what} of {engine} at {address:#x}: no data follows")))?;
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
    let (engine, value) = (present.or_else(|| family.engine("rcs0"))?, u32::try_from(hex(low)?).ok()?);
    match name {
        "IPEHR" | "RING_IPEHR" => command(engine, value).map(Into::into),
        _ => engine.error_register(name, value),
    }
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
    (what, address, dwords): (&str, u64, Vec<u32>),
    engine: Option<Engine>,
    registers: &Registers,
    rings: &[Ct],
    understood: &mut Understood,
    emit: &mut dyn FnMut(Line) -> io::Result<()>,
) -> io::Result<()> {
    let name = engine.map_or("", |engine| engine.name());
    let title = Line::section(format!("{what} at {address:#x} {name}").trim_end());
    let Some(engine) = engine else {
        emit(title)?;
        if !what.contains("CT") {
            return emit(Line::note(format!("{} bytes", dwords.len() * 4)));
        }
        understood.decoded();
        for ct in rings {
            emit(Line::section(format!("GuC CT buffer, {}", if ct.send { "host to GuC" } else { "GuC to host" })))?;
            let words = dwords.get(ct.at / 4..).unwrap_or_default();
            let words = words.get(..ct.size.min(words.len())).unwrap_or_default();
            let words = listed(words, emit)?;
            guc::ring(words, Some(ct.head), Some(ct.tail)).into_iter().try_for_each(&mut *emit)?;
        }
        return Ok(());
    };
    if matches!(what, "batch" | "ring" | "WA context" | "HW context" | "HW Status") {
        understood.decoded();
    } else {
        understood.unknown(format!("{what}, which is not decoded"));
    }
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
