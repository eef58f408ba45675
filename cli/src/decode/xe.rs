// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! xe's devcoredump (xe: xe_devcoredump.c; xe_guc_ct.c, xe_lrc.c, xe_vm.c and xe_guc_capture.c print its sections).

use std::io;

use arctic_device_model::decode::{Line, context, guc};
use arctic_device_model::topology::EngineClass;

use super::engine::{Engine, FLEX, command};
use super::limits::{Budget, listed};
use super::memory::Memory;
use super::source::Understood;
use super::text::{hex, number, value};

/// First line of every devcoredump.
pub const HEADING: &str = "**** Xe Device Coredump ****";

/// Offset in bytes of the messages in each of the two buffers: two descriptors of 2 KiB (xe: CTB_H2G_BUFFER_OFFSET).
const CT_OFFSET: usize = 0x1000;

/// The known parameters of a CT ring.
#[derive(Clone, Copy, Debug, Default)]
struct Ring {
    /// Size in dwords.
    size: usize,
    head: Option<usize>,
    tail: Option<usize>,
}

#[derive(Default)]
struct Dump<'d> {
    rings: [Ring; 2],
    /// Index of the ring that the current lines describe.
    ring: usize,
    engine: Option<Engine>,
    batches: Vec<u64>,
    marks: Vec<(u64, &'static str)>,
    memory: Memory,
    /// Name of the engine that the current register lines describe.
    registers: Option<&'d str>,
    understood: Understood,
}

/// Sections with lines that are decoded or have a meaning for what follows.
const SECTIONS: [&str; 7] = ["Xe Device Coredump", "GuC CT", "GuC Log", "Contexts", "Job", "HW Engines", "VM state"];
/// Beginnings of lines in section GuC CT that do not concern the messages.
const CT_LINES: [&str; 9] =
    ["H2G", "G2H", "resv_space", "head", "tail", "space", "broken", "status", "g2h outstanding"];

/// Returns the first engine of the class with a number of the driver, which is that of the hardware (xe: XE_ENGINE_CLASS_*).
fn of_class(class: u64) -> Option<Engine> {
    FLEX.engine(EngineClass::numbered(class)?.name())
}

/// Decodes the dump, section by section, within `budget`; `selected` has the engines that the
/// user has selected, of one class; none stands for the engine that the dump names. Counts in `understood` what has a
/// meaning and what has none.
pub fn decode(
    budget: &mut Budget,
    text: &str,
    selected: &[Engine],
    understood: &mut Understood,
    emit: &mut dyn FnMut(Line) -> io::Result<()>,
) -> io::Result<()> {
    let mut dump = Dump::default();
    let mut section = "";
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(title) = line.strip_prefix("**** ").and_then(|rest| rest.strip_suffix(" ****")) {
            section = title;
            if !SECTIONS.contains(&title) && !title.starts_with("GT #") {
                dump.understood.unknown(format!("section {title}"));
            }
            if !matches!(title, "Xe Device Coredump" | "GuC CT" | "VM state" | "Job") {
                emit(Line::section(title))?;
            }
            continue;
        }
        let line = line.trim();
        let Some((name, data)) = line.split_once(".data:") else {
            dump.line(section, line, selected, emit)?;
            continue;
        };
        // Older kernels split a blob into lines; a line with a blank in it is not part of the blob.
        let mut blob = data.trim().to_string();
        while let Some(more) =
            lines.next_if(|line| !line.is_empty() && !line.contains([' ', '\t']) && !line.starts_with("****"))
        {
            blob += more;
        }
        match budget.ascii85(blob.as_bytes()) {
            Ok((dwords, rest)) => {
                dump.blob(section, name.trim_matches(['[', ']']), dwords, selected, emit)?;
                rest.map_or(Ok(()), &mut *emit)?;
            }
            Err(at) => {
                dump.understood.unknown("damaged data");
                emit(Line::note(format!("{name}: no ascii85 at character {at} of its data")))?;
            }
        }
    }
    *understood = std::mem::take(&mut dump.understood);
    dump.end(selected, understood, emit)
}

impl<'d> Dump<'d> {
    fn line(
        &mut self,
        section: &str,
        line: &'d str,
        selected: &[Engine],
        emit: &mut dyn FnMut(Line) -> io::Result<()>,
    ) -> io::Result<()> {
        if line.is_empty() {
            return Ok(());
        }
        let on = |engine: Option<&str>| {
            selected.is_empty() || selected.iter().any(|selected| engine == Some(selected.name()))
        };
        match section {
            "Xe Device Coredump" => emit(Line::note(line)),
            "GuC CT" => {
                if line.starts_with("H2G") || line.starts_with("G2H") {
                    self.ring = usize::from(line.starts_with("G2H"));
                }
                let ring = &mut self.rings[self.ring];
                match line.split_once(": ").map(|(name, text)| (name, text.trim().parse().ok())) {
                    Some(("size", Some(size))) => ring.size = size,
                    Some(("head (memory)", head)) => ring.head = head,
                    Some(("tail (memory)", tail)) => ring.tail = tail,
                    _ if CT_LINES.iter().any(|start| line.starts_with(start)) || line.contains(".length:") => {}
                    _ => {
                        self.understood.unknown("line of the section GuC CT");
                        return emit(Line::note(line));
                    }
                }
                Ok(())
            }
            "Contexts" => {
                if let Some(class) = value(line, "Class").and_then(number) {
                    self.engine = selected.first().copied().or_else(|| of_class(class));
                }
                emit(Line::note(line))
            }
            "Job" => {
                let batch = line.split_once(": ").filter(|(name, _)| name.starts_with("batch_addr"));
                let Some(address) = batch.and_then(|(_, text)| hex(text)) else { return emit(Line::note(line)) };
                self.batches.push(address);
                Ok(())
            }
            "HW Engines" => {
                if let Some((name, _)) = line.split_once(" (physical)") {
                    self.registers = Some(name);
                }
                if let Some(at) = value(line, "ACTHD").and_then(hex)
                    && on(self.registers)
                {
                    self.marks.push((at, "ACTHD"));
                }
                let header = value(line, "IPEHR").or_else(|| value(line, "RING_IPEHR")).and_then(hex);
                let engine = self.registers.and_then(|name| FLEX.engine(name));
                match header.zip(engine).and_then(|(header, engine)| command(engine, u32::try_from(header).ok()?)) {
                    Some(name) => {
                        self.understood.decoded();
                        emit(Line::note(format!("{line} ({name})")))
                    }
                    None => {
                        if header.is_some() {
                            self.understood.unknown("unknown command in IPEHR");
                        }
                        emit(Line::note(line))
                    }
                }
            }
            "VM state" if line.contains(".length:") || line.contains(".properties:") => Ok(()),
            _ => emit(Line::note(line)),
        }
    }

    fn blob(
        &mut self,
        section: &str,
        name: &str,
        dwords: Vec<u32>,
        selected: &[Engine],
        emit: &mut dyn FnMut(Line) -> io::Result<()>,
    ) -> io::Result<()> {
        let engine = selected.first().copied().or(self.engine);
        match (section, name) {
            ("GuC CT", "CTB") => {
                self.understood.decoded();
                self.messages(&dwords, emit)
            }
            (_, "HWSP") => {
                self.understood.decoded();
                emit(Line::section("Status page of the context (PPHWSP), non-zero dwords"))?;
                context::page(listed(&dwords, emit)?).into_iter().try_for_each(emit)
            }
            (_, "HWCTX") => {
                let Some(engine) = engine else {
                    self.understood.unknown("context image of an unknown engine");
                    return emit(Line::note("the engine of the context image is unknown: give it with --engine"));
                };
                self.understood.decoded();
                emit(Line::section(format!("Context image, {}", engine.name())))?;
                engine.image(listed(&dwords, emit)?).into_iter().try_for_each(emit)
            }
            ("VM state", address) => {
                let Ok(address) = u64::from_str_radix(address, 16) else {
                    self.understood.unknown("memory without an address");
                    return emit(Line::note(format!("{address}: {} bytes", dwords.len() * 4)));
                };
                self.understood.decoded();
                self.memory.add(address, dwords);
                Ok(())
            }
            _ => {
                self.understood.unknown(format!("data of {name}"));
                emit(Line::note(format!("{name}: {} bytes", dwords.len() * 4)))
            }
        }
    }

    /// Decodes both rings: each in a separate buffer after its descriptors, or (older kernels) both after one pair of
    /// descriptors.
    fn messages(&self, dwords: &[u32], emit: &mut dyn FnMut(Line) -> io::Result<()>) -> io::Result<()> {
        let [h2g, g2h] = self.rings;
        let behind = CT_OFFSET / 4;
        let apart = dwords.len() >= (2 * behind).saturating_add(h2g.size).saturating_add(g2h.size);
        let second = behind.saturating_add(h2g.size).saturating_add(if apart { behind } else { 0 });
        for (title, ring, at) in [("host to GuC", h2g, behind), ("GuC to host", g2h, second)] {
            emit(Line::section(format!("GuC CT buffer, {title}")))?;
            let words = dwords.get(at..at.saturating_add(ring.size).min(dwords.len())).unwrap_or_default();
            let words = listed(words, emit)?;
            guc::ring(words, ring.head, ring.tail).into_iter().try_for_each(&mut *emit)?;
        }
        Ok(())
    }

    fn end(
        self,
        selected: &[Engine],
        understood: &mut Understood,
        emit: &mut dyn FnMut(Line) -> io::Result<()>,
    ) -> io::Result<()> {
        let engine = selected.first().copied().or(self.engine);
        let decoded = match engine {
            Some(engine) => self.memory.decode_batches(&self.batches, engine, &self.marks, emit)?,
            None if self.batches.is_empty() => Default::default(),
            None => {
                understood.unknown("batch of an unknown engine");
                emit(Line::note("the engine of the batches is unknown: give it with --engine"))?;
                Default::default()
            }
        };
        if self.memory.ranges().next().is_some() {
            emit(Line::section("Memory of the process in the dump"))?;
        }
        for (address, bytes) in self.memory.ranges() {
            let batches = decoded.range(address..address.saturating_add(bytes as u64)).count();
            let what = if batches == 0 { "" } else { ", with batches shown above" };
            emit(Line::note(format!("{address:#x}: {bytes:#x} bytes{what}")))?;
        }
        Ok(())
    }
}
