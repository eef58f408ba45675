// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic decode`: decodes batches, rings, context images and GuC messages from a file.

use std::fs;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use arctic_device_model::command::Requester;
use arctic_device_model::decode::{Line, context, guc};
use arctic_device_model::trace::{Event, Filter};
use arctic_gpu::card_file;
use arctic_sriov::number::size;

use super::offered::{Offered, built_in};
use super::stdout::Stdout;
use crate::decode::engine::{Batch, Engine, Family};
use crate::decode::limits::{Budget, MOST_OF_FILE, listed};
use crate::decode::{File, capture, i915, xe};

/// Disassemble the input of an engine or of the GuC: raw dwords, a driver's dump, or a capture.
///
/// Each family of GPUs has its own commands and registers. i915's error state names the GPU (`PCI ID`, `Platform`), and a
/// capture its generation; for dwords, --card gives the card, by default a Flex card. An integrated GPU is decoded as Ivy
/// Bridge with `--card ivb`.
///
/// The type of FILE is detected: xe's devcoredump, i915's error state, a capture of `arctic trace`, dwords in
/// hexadecimal (separated by blanks or commas, `#` begins a comment), or raw little-endian dwords. A dump is decoded
/// completely: messages, context images, rings, and batches with ACTHD marked, and the
/// command that has caused an error or a fault. For dwords, --kind gives the type.
///
/// Names, lengths, fields and access rights come from the tables that the card uses for execution, so commands that the
/// card would reject are marked. The disassembly of a batch follows command lengths up to MI_BATCH_BUFFER_END; the
/// disassembly of a ring continues to the last dword and is resynchronised at HEAD and TAIL.
#[derive(clap::Args)]
#[command(after_help = "Where to find the files in a guest:\n  \
    xe    /sys/class/drm/card0/device/devcoredump/data, for five minutes after a hang\n  \
    i915  /sys/class/drm/card0/error, until something is written to it\n\n\
    Examples:\n  \
    arctic decode /sys/class/drm/card0/device/devcoredump/data\n  \
    arctic decode error-state.txt --engine rcs0\n  \
    arctic decode batch.bin --engine bcs0 --base 0x100000 --acthd 0x100058\n  \
    arctic decode ring.bin --kind ring --engine ccs0 --base 0xfe000 --head 0x240 --tail 0x2c0\n  \
    echo 0x1a00001 0x10c00002 | arctic decode - --json | jq .name\n  \
    arctic decode lrc.bin --kind context --class compute\n  \
    arctic decode batch.bin --card ivb --engine bcs0")]
pub struct DecodeArgs {
    /// The file, or - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The card with the engine that executed the input: a card file, or the name of a built-in card (flex170, ivb...). The
    /// default is the GPU that the file names, or a Flex card
    #[arg(long, value_name = "FILE|NAME", value_parser = Offered::new(family, built_in), hide_possible_values = true)]
    card: Option<Family>,
    /// The engine: rcs0, bcs0, ccs0..3, vcs0..7, vecs0..3; the default is the engine named in the dump, or rcs0. An
    /// integrated GPU has rcs0, bcs0 and vcs0
    #[arg(long, value_name = "ENGINE", value_parser = engine)]
    engine: Option<String>,
    /// The engine class: render, copy, compute, video-decode, video-enhance
    #[arg(long, value_name = "CLASS", value_parser = engine, conflicts_with = "engine")]
    class: Option<String>,
    /// The type of the dwords; auto detects a context image by its first commands and a ring by --head or --tail, else
    /// assumes a batch
    #[arg(long, value_name = "KIND", value_enum, default_value_t = Kind::Auto)]
    kind: Kind,
    /// Address of the first dword
    #[arg(long, value_name = "ADDR", default_value = "0", value_parser = address)]
    base: u64,
    /// RING_HEAD: an offset in the ring, or an address; marked in the output
    #[arg(long, value_name = "ADDR", value_parser = address)]
    head: Option<u64>,
    /// RING_TAIL, like --head
    #[arg(long, value_name = "ADDR", value_parser = address)]
    tail: Option<u64>,
    /// ACTHD: the address at which the engine is executing; marked in the output
    #[arg(long, value_name = "ADDR", value_parser = address)]
    acthd: Option<u64>,
    /// Also print the dwords of each command
    #[arg(long)]
    raw: bool,
    /// Print one JSON document per line
    #[arg(long)]
    json: bool,
}

/// The type of dwords.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    /// Detect the type
    Auto,
    /// A user batch
    Batch,
    /// A ring
    Ring,
    /// A context image, with or without the status page before it
    Context,
    /// The ring of a CT buffer; --head and --tail are offsets in dwords, in hexadecimal
    Guc,
    /// One mailbox message: only HXG dwords
    Mailbox,
}

/// Checks the name of an engine or of a class; the families have different engines.
pub fn engine(name: &str) -> Result<String, String> {
    match Family::all().any(|family| family.engine(name).is_some()) {
        true => Ok(name.to_owned()),
        false => Err(format!(
            "expected a class (render, copy, compute, video-decode, video-enhance) or one of {}",
            Family::XeHpg.engines().join(", ")
        )),
    }
}

/// Returns the family of a card.
fn family(card: &str) -> Result<Family, String> {
    card_file::load_any(card).map(|card| Family::of_card(&card)).map_err(|error| error.to_string())
}

/// Parses an address in hexadecimal.
fn address(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text).replace('_', "");
    match u64::from_str_radix(&digits, 16) {
        Ok(address) if address < 1 << 48 => Ok(address),
        _ => Err("expected an address of 48 bits in hexadecimal, like 0x100000".into()),
    }
}

/// Writes lines, as text or as JSON.
struct Printer<W> {
    to: W,
    raw: bool,
    json: bool,
}

impl<W: Write> Printer<W> {
    fn line(&mut self, line: &Line) -> io::Result<()> {
        if self.json {
            serde_json::to_writer(&mut self.to, line)?;
            return self.to.write_all(b"\n");
        }
        writeln!(self.to, "{line}")?;
        if let (true, Line::Command(command)) = (self.raw, line) {
            for dwords in command.dwords.chunks(8) {
                let dwords: Vec<_> = dwords.iter().map(|dword| format!("{dword:08x}")).collect();
                writeln!(self.to, "                  {}", dwords.join(" "))?;
            }
        }
        Ok(())
    }
}

/// Decodes the file.
pub fn run(arguments: &DecodeArgs) -> Result<()> {
    let name =
        if arguments.file.as_os_str() == "-" { "standard input".into() } else { arguments.file.display().to_string() };
    let file = File::of(read(arguments, &name)?).map_err(|why| anyhow!("{name}: {why}"))?;
    let mut printer = Printer { to: Stdout::new(), raw: arguments.raw, json: arguments.json };
    arguments.print(&name, file, &mut printer)?;
    Ok(printer.to.flush()?)
}

fn read(arguments: &DecodeArgs, name: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = if arguments.file.as_os_str() == "-" {
        io::stdin().lock().take(MOST_OF_FILE + 1).read_to_end(&mut bytes)
    } else {
        fs::File::open(&arguments.file).and_then(|file| file.take(MOST_OF_FILE + 1).read_to_end(&mut bytes))
    };
    read.with_context(|| format!("{name} cannot be read"))?;
    if bytes.len() as u64 > MOST_OF_FILE {
        bail!("{name} is larger than {} MiB, the limit for decoding", MOST_OF_FILE >> 20);
    }
    Ok(bytes)
}

impl DecodeArgs {
    /// The engine that the user has selected.
    fn chosen(&self, family: Family) -> Result<Option<Engine>> {
        let Some(name) = self.engine.as_deref().or(self.class.as_deref()) else { return Ok(None) };
        let engines = || family.engines().join(", ");
        family
            .engine(name)
            .map(Some)
            .with_context(|| format!("the card has no engine {name}; its engines are {}", engines()))
    }

    fn print<W: Write>(&self, name: &str, file: File, printer: &mut Printer<W>) -> Result<()> {
        let mut emit = |line: Line| printer.line(&line);
        let budget = &mut Budget::default();
        match file {
            // xe has no integrated GPUs of these families.
            File::Xe(text) => match self.chosen(Family::XeHpg)? {
                Some(Engine::XeHpg(engine)) => xe::decode(budget, &text, Some(engine), &mut emit)?,
                _ => xe::decode(budget, &text, None, &mut emit)?,
            },
            File::I915(text) => {
                let family = self.card.unwrap_or_else(|| i915::family(&text));
                i915::decode(budget, &text, family, self.chosen(family)?, &mut emit)?;
            }
            File::Capture(text) => self.capture(name, &text, printer)?,
            File::Dwords(dwords, rest) => {
                self.dwords(&dwords, &mut emit)?;
                if rest != 0 {
                    emit(Line::note(format!("{rest} trailing bytes are not a whole dword")))?;
                }
            }
        }
        Ok(())
    }

    fn dwords(&self, dwords: &[u32], emit: &mut dyn FnMut(Line) -> io::Result<()>) -> Result<()> {
        let family = self.card.unwrap_or(Family::XeHpg);
        let engine = self.chosen(family)?.or_else(|| family.engine("rcs0")).context("the card has no render engine")?;
        match self.kind_of(dwords) {
            Kind::Context => {
                let (page, image) = split(dwords);
                if !page.is_empty() {
                    emit(Line::section("Status page of the context (PPHWSP), non-zero dwords"))?;
                    context::page(page).into_iter().try_for_each(&mut *emit)?;
                }
                emit(Line::section(format!("Context image, {}", engine.name())))?;
                engine.image(listed(image, emit)?).into_iter().try_for_each(emit)?;
            }
            Kind::Guc => {
                let offset = |at: Option<u64>| at.map(size);
                guc::ring(listed(dwords, emit)?, offset(self.head), offset(self.tail))
                    .into_iter()
                    .try_for_each(emit)?;
            }
            Kind::Mailbox => emit(Line::Message(guc::Message::new(dwords, None)))?,
            kind => {
                let ring = kind == Kind::Ring;
                let place = |at: u64| if ring && at < self.base { self.base + (at & 0x1f_fffc) } else { at };
                let marks = [(self.head, "HEAD"), (self.tail, "TAIL"), (self.acthd, "ACTHD")];
                let batch = Batch {
                    marks: marks.into_iter().filter_map(|(at, name)| Some((place(at?), name))).collect(),
                    ends: !ring,
                    requester: if ring { Requester::PfKernel } else { Requester::PfUser },
                    ..Batch::new(dwords, self.base, engine)
                };
                let mut until = self.base;
                for command in batch.commands() {
                    until = command.address + 4 * command.dwords.len().max(command.times) as u64;
                    emit(Line::Command(command))?;
                }
                let left = dwords.len().saturating_sub(((until - self.base) / 4) as usize);
                if left != 0 {
                    emit(Line::note(format!("{left} dwords after the end; --kind ring also decodes them")))?;
                }
            }
        }
        Ok(())
    }

    fn kind_of(&self, dwords: &[u32]) -> Kind {
        let image = |dwords: &[u32]| dwords.get(1).is_some_and(|header| header & 0xfff8_f000 == 0x1108_1000);
        match self.kind {
            Kind::Auto if image(split(dwords).1) => Kind::Context,
            Kind::Auto if self.head.is_some() || self.tail.is_some() => Kind::Ring,
            Kind::Auto => Kind::Batch,
            kind => kind,
        }
    }

    fn capture<W: Write>(&self, name: &str, text: &str, printer: &mut Printer<W>) -> Result<()> {
        let mut lines = text.lines();
        let heading = capture::heading(lines.next().unwrap_or_default()).map_err(|why| anyhow!("{name}: {why}"))?;
        if !printer.json {
            writeln!(printer.to, "# {}, by `arctic trace`: ms, function, engine, what", heading.card)?;
        }
        let family = match self.card {
            Some(family) => family,
            None => capture::family(&heading).map_err(|why| anyhow!("{name}: {why}"))?,
        };
        let engines = self.chosen(family)?.map(|engine| engine.name().to_owned());
        let filter = Filter { engines: engines.into_iter().collect(), functions: Vec::new() };
        for (n, line) in lines.enumerate() {
            let event: Event = match serde_json::from_str(line) {
                Ok(event) => event,
                // The card was killed while writing.
                Err(error) if error.is_eof() && n + 2 == text.lines().count() => {
                    printer.line(&Line::note("the capture ends in the middle of an event"))?;
                    break;
                }
                Err(error) => bail!("{name}: line {} is no event: {error}", n + 2),
            };
            if let Some(text) = capture::text(&event, family, &filter) {
                if printer.json {
                    let document = serde_json::json!({ "kind": "event", "event": event, "text": text.trim_start() });
                    writeln!(printer.to, "{document}")?;
                } else {
                    writeln!(printer.to, "{text}")?;
                }
            }
        }
        Ok(())
    }
}

/// Splits a context into status page and image; a dump may contain only the image.
fn split(dwords: &[u32]) -> (&[u32], &[u32]) {
    let image = |dwords: &[u32]| dwords.get(1).is_some_and(|header| header >> 23 == 0x22);
    match dwords.split_at_checked(context::PAGE_DWORDS) {
        Some((page, rest)) if image(rest) && !image(dwords) => (page, rest),
        _ => (&[], dwords),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_engines_are_read() {
        assert_eq!(address("0xffff_0000"), Ok(0xffff_0000));
        assert!(address("0x1_0000_0000_0000").is_err() && address("ten").is_err());
        assert_eq!(engine("compute").unwrap(), "compute");
        assert!(engine("rcs9").unwrap_err().contains("rcs0, bcs0"));
    }
}
