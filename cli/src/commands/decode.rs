// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `arctic decode`: decodes batches, rings, context images and GuC messages from a file.

mod container;
mod printer;
mod values;

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use arctic_device_model::command::Requester;
use arctic_device_model::decode::{Line, context, guc};
use arctic_device_model::trace::{Event, Filter};
use arctic_sriov::number::size;

use super::offered::{Offered, built_in};
use super::stdout::Stdout;
use crate::capture::Heading;
use crate::decode::engine::{Batch, Engine, FLEX, Family, names};
use crate::decode::limits::{Budget, MOST_OF_FILE, listed};
use crate::decode::source::{Gpu, Source, Understood};
use crate::decode::{File, capture, i915, xe};
use crate::perfetto::Timeline;
use printer::Printer;
pub use values::engine;
use values::{address, class, class_help, family};

/// Disassemble the input of an engine or of the GuC: raw dwords, a driver's dump, or a capture.
///
/// Each family of GPUs has its own commands and registers. Dumps of xe and i915 name the GPU (`PCI ID`, `Platform`), and a
/// capture its generation; for dwords, --card gives the card, by default a Flex card. An integrated GPU is decoded as Ivy
/// Bridge with `--card ivb`. A dump of a GPU without tables is decoded only with --card.
///
/// The output says what the file was taken for, and at its end what of it was not understood; with --json, the last
/// document, of the kind `summary`, says both. If nothing was understood, the exit status is 1.
///
/// The type of FILE is detected: xe's devcoredump, i915's error state, a capture of `arctic trace`, dwords in
/// hexadecimal (separated by blanks or commas, `#` begins a comment), or raw little-endian dwords. A dump is decoded
/// completely: messages, context images, rings, and batches with ACTHD marked, and the
/// command that has caused an error or a fault. For dwords, --kind gives the type; --kind, --base, --head, --tail and
/// --acthd are for dwords only.
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
    echo 0x11000001 0x2600 5 0x5000000 | arctic decode - --json | jq .name\n  \
    arctic decode lrc.bin --kind context --class compute\n  \
    arctic decode batch.bin --card ivb --engine bcs0\n  \
    arctic decode boot.capture --perfetto boot.perfetto")]
pub struct DecodeArgs {
    /// The file, or - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The card with the engine that executed the input: a card file (docs/card-files.md), or the name of a built-in card
    /// (flex170, ivb...). The default is the GPU that the file names, or a Flex card
    #[arg(long, value_name = "FILE|NAME", value_parser = Offered::new(family, built_in), hide_possible_values = true)]
    card: Option<Family>,
    /// The engine: rcs0, bcs0, ccs0..3, vcs0..7, vecs0..3, or a class like --class; the default is the engine named in the
    /// dump, or rcs0. An integrated GPU has rcs0, bcs0 and vcs0
    #[arg(long, value_name = "ENGINE", value_parser = engine)]
    engine: Option<String>,
    #[arg(long, value_name = "CLASS", value_parser = class, conflicts_with = "engine", help = class_help())]
    class: Option<String>,
    /// The type of the dwords; auto detects a context image of the engine by its first commands, and a ring by --head or
    /// --tail; else it assumes a batch
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
    /// Of a capture, write a timeline to this file, for https://ui.perfetto.dev, and print only the number of events
    #[arg(long, value_name = "FILE", conflicts_with_all = ["raw", "json"])]
    perfetto: Option<PathBuf>,
    /// Place the timeline on the axis of a guest's clock: FILE has the line that `arctic guest clock` prints in a guest with the PF
    #[arg(long, value_name = "FILE", requires = "perfetto")]
    guest_clock: Option<PathBuf>,
    /// Add the guest's ftrace to the timeline: the text of /sys/kernel/tracing/trace with the trace_clock `mono` or `boot`
    #[arg(long, value_name = "FILE", requires = "guest_clock")]
    ftrace: Option<PathBuf>,
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

/// Bits of RING_HEAD and RING_TAIL with the offset in the ring.
const RING_OFFSET: u64 = 0x1f_fffc;

/// Decodes the file and prints it on standard output.
///
/// # Errors
///
/// If the file cannot be read or is of no known type, an option does not fit it, or standard output fails.
pub fn run(arguments: &DecodeArgs) -> Result<()> {
    let path = Some(arguments.file.as_path()).filter(|path| path.as_os_str() != "-");
    let name = path.map_or_else(|| "standard input".into(), |path| path.display().to_string());
    let bytes = read(path, &name)?;
    if let Some(reason) = container::of(&bytes).filter(|_| arguments.kind == Kind::Auto) {
        bail!("{name} is {reason}; --kind decodes its bytes as dwords");
    }
    let file = File::of(bytes).map_err(|error| anyhow!("{name}: {error}"))?;
    let mut printer = Printer { output: Stdout::new(), raw: arguments.raw, json: arguments.json };
    let understood = arguments.print(&name, file, &mut printer)?;
    printer.output.flush()?;
    understood.check().map_err(|reason| anyhow!("{name}: {reason}"))
}

/// Reads a file, or standard input without `path`.
fn read(path: Option<&Path>, name: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = match path {
        None => io::stdin().lock().take(MOST_OF_FILE + 1).read_to_end(&mut bytes),
        Some(path) => fs::File::open(path).and_then(|file| file.take(MOST_OF_FILE + 1).read_to_end(&mut bytes)),
    };
    read.with_context(|| format!("{name} cannot be read"))?;
    if bytes.len() as u64 > MOST_OF_FILE {
        bail!("{name} is larger than {} MiB, the limit for decoding", MOST_OF_FILE >> 20);
    }
    Ok(bytes)
}

impl DecodeArgs {
    /// The engines that the user has selected; empty without a selection.
    fn selected_engines(&self, family: Family) -> Result<Vec<Engine>> {
        let Some(name) = self.selected_name() else { return Ok(Vec::new()) };
        let engines = family.select(name);
        if engines.is_empty() {
            bail!("the card has no engine {name}; its engines are {}", names(family).join(", "));
        }
        Ok(engines)
    }

    fn selected_name(&self) -> Option<&str> {
        self.engine.as_deref().or(self.class.as_deref())
    }

    /// Fails if an option was given that only dwords have.
    fn check_no_dword_options(&self, file: &str) -> Result<()> {
        let options = [
            ("--kind", self.kind != Kind::Auto),
            ("--base", self.base != 0),
            ("--head", self.head.is_some()),
            ("--tail", self.tail.is_some()),
            ("--acthd", self.acthd.is_some()),
        ];
        match options.into_iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) => Err(super::usage(anyhow!("{option} is for dwords only, but the file is {file}"))),
            None => Ok(()),
        }
    }

    /// Prints the file. Returns what of it was understood.
    fn print<W: Write>(&self, name: &str, file: File, printer: &mut Printer<W>) -> Result<Understood> {
        let budget = &mut Budget::default();
        let mut understood = Understood::default();
        if self.perfetto.is_some() && !matches!(file, File::Capture(_)) {
            return Err(super::usage(anyhow!("--perfetto is for captures of `arctic trace` only, and {name} is none")));
        }
        let source = match file {
            File::Xe(text) => {
                self.check_no_dword_options("xe's devcoredump")?;
                if let Some(generation) = self.card.and_then(|card| card.name()) {
                    return Err(super::usage(anyhow!(
                        "{name} is xe's devcoredump, of a Flex card, and --card is of {generation}"
                    )));
                }
                let source = Source::of_dump("xe's devcoredump", &Gpu::of(&text), self.card);
                let mut source = source.map_err(|reason| anyhow!("{name}: {reason}"))?;
                if let Some(generation) = source.family.and_then(|family| family.name()) {
                    // xe does not drive these GPUs: the line is damaged.
                    source.input += &format!(", which xe does not drive ({generation})");
                    (source.tables, source.assumed) = (FLEX.title(), true);
                }
                printer.source(&source)?;
                let engines = self.selected_name().map(|name| FLEX.select(name)).unwrap_or_default();
                xe::decode(budget, &text, &engines, &mut understood, &mut |line| printer.line(&line))?;
                source
            }
            File::I915(text) => {
                self.check_no_dword_options("i915's error state")?;
                let source = Source::of_dump("i915's error state", &Gpu::of(&text), self.card);
                let source = source.map_err(|reason| anyhow!("{name}: {reason}"))?;
                let family = source.family.unwrap_or(FLEX);
                let selected = self.selected_engines(family)?;
                printer.source(&source)?;
                let emit = &mut |line| printer.line(&line);
                i915::decode(budget, &text, (family, &selected), &mut understood, emit)?;
                source
            }
            File::Capture(text) => {
                self.check_no_dword_options("a capture")?;
                self.capture(name, &text, &mut understood, printer)?
            }
            File::Dwords(dwords, rest) => {
                let source = self.dwords(&dwords, &mut understood, printer)?;
                if rest != 0 {
                    printer.line(&Line::note(format!("{rest} trailing bytes are not a whole dword")))?;
                    understood.unknown("trailing bytes");
                }
                source
            }
        };
        printer.summary(&source, &understood)?;
        Ok(understood)
    }

    fn dwords<W: Write>(
        &self,
        dwords: &[u32],
        understood: &mut Understood,
        printer: &mut Printer<W>,
    ) -> Result<Source> {
        let family = self.card.unwrap_or(FLEX);
        let selected = self.selected_engines(family)?.first().copied();
        let engine = selected.or_else(|| family.engine("rcs0")).context("the card has no render engine")?;
        let kind = self.detect_kind(dwords, engine);
        let what = match kind {
            Kind::Auto | Kind::Batch => "a batch",
            Kind::Ring => "a ring",
            Kind::Context => "a context image",
            Kind::Guc => "a CT buffer of the GuC",
            Kind::Mailbox => "a mailbox message of the GuC",
        };
        let of_engine = if matches!(kind, Kind::Guc | Kind::Mailbox) { "" } else { engine.name() };
        let assumed = [
            ("--kind", self.kind == Kind::Auto),
            ("--engine", !of_engine.is_empty() && selected.is_none()),
            ("--card", self.card.is_none()),
        ];
        let assumed: Vec<_> = assumed.into_iter().filter(|(_, is_assumed)| *is_assumed).map(|(name, _)| name).collect();
        let of = if of_engine.is_empty() { String::new() } else { format!(" of {of_engine}") };
        let source = Source {
            input: format!("dwords, taken for {what}{of}"),
            tables: family.title(),
            assumed: !assumed.is_empty(),
            family: Some(family),
        };
        if source.assumed && !printer.json {
            let options = assumed.join(", ");
            let text = format!("{}, with the tables of {} (options: {options})", source.input, source.tables);
            printer.line(&Line::note(text))?;
        }
        let mut emit = |line: Line| {
            match &line {
                Line::Command(command) if command.name.is_none() => understood.unknown("unknown command"),
                Line::Note { .. } | Line::Section { .. } => {}
                _ => understood.decoded(),
            }
            printer.line(&line)
        };
        let emit: &mut dyn FnMut(Line) -> io::Result<()> = &mut emit;
        match kind {
            Kind::Context => context_image(dwords, engine, emit)?,
            Kind::Guc => {
                let offset = |at: Option<u64>| at.map(size);
                guc::ring(listed(dwords, emit)?, offset(self.head), offset(self.tail))
                    .into_iter()
                    .try_for_each(emit)?;
            }
            Kind::Mailbox => emit(Line::Message(guc::Message::new(dwords, None)))?,
            kind => self.commands(dwords, engine, kind == Kind::Ring, emit)?,
        }
        Ok(source)
    }

    /// Disassembles a ring or a batch.
    fn commands(
        &self,
        dwords: &[u32],
        engine: Engine,
        is_ring: bool,
        emit: &mut dyn FnMut(Line) -> io::Result<()>,
    ) -> io::Result<()> {
        let ring_address = |at: u64| {
            if is_ring && at < self.base { self.base + (at & RING_OFFSET) } else { at }
        };
        let marks = [(self.head, "HEAD"), (self.tail, "TAIL"), (self.acthd, "ACTHD")];
        let batch = Batch {
            marks: marks.into_iter().filter_map(|(at, name)| Some((ring_address(at?), name))).collect(),
            ends: !is_ring,
            requester: if is_ring { Requester::PfKernel } else { Requester::PfUser },
            ..Batch::new(dwords, self.base, engine)
        };
        let mut end = self.base;
        for command in batch.commands() {
            end = command.address + 4 * command.dwords.len().max(command.times) as u64;
            emit(Line::Command(command))?;
        }
        let undecoded = dwords.len().saturating_sub(((end - self.base) / 4) as usize);
        if undecoded != 0 {
            emit(Line::note(format!("{undecoded} dwords after the end; --kind ring also decodes them")))?;
        }
        Ok(())
    }

    fn detect_kind(&self, dwords: &[u32], engine: Engine) -> Kind {
        match self.kind {
            Kind::Auto if engine.find_image(dwords).is_some() => Kind::Context,
            Kind::Auto if self.head.is_some() || self.tail.is_some() => Kind::Ring,
            Kind::Auto => Kind::Batch,
            kind => kind,
        }
    }

    /// The family of the card of which a capture is: that of its heading, which --card must not contradict.
    fn capture_family(&self, name: &str, heading: &Heading) -> Result<Family> {
        let family = capture::family(heading).map_err(|error| anyhow!("{name}: {error}"))?;
        match self.card {
            Some(card) if card.name() != family.name() => {
                Err(super::usage(anyhow!("{name} is of {}, and --card is of {}", family.title(), card.title())))
            }
            _ => Ok(family),
        }
    }

    fn capture<W: Write>(
        &self,
        name: &str,
        text: &str,
        understood: &mut Understood,
        printer: &mut Printer<W>,
    ) -> Result<Source> {
        let count = text.lines().count();
        let mut lines = (1..).zip(text.lines()).skip_while(|(_, line)| line.trim().is_empty());
        let (_, heading) = lines.next().with_context(|| format!("{name}: a capture without a heading"))?;
        let heading = capture::heading(heading).map_err(|error| anyhow!("{name}: {error}"))?;
        let family = self.capture_family(name, &heading)?;
        let source = Source {
            input: format!("a capture of {}, by `arctic trace`", heading.card),
            tables: family.title(),
            assumed: false,
            family: Some(family),
        };
        // A capture without events is one of a card that has done nothing.
        understood.decoded();
        let guest = self.guest_clock.as_deref();
        let create = |path: &PathBuf| Timeline::create(path, &heading.card, family, guest);
        let mut timeline = self.perfetto.as_ref().map(create).transpose()?;
        if !printer.json && timeline.is_none() {
            writeln!(printer.output, "# {}, by `arctic trace`: ms, function, engine, what", heading.card)?;
        }
        let engines = self.selected_engines(family)?.into_iter().map(|engine| engine.name().to_owned()).collect();
        let filter = Filter { engines, functions: Vec::new() };
        for (number, line) in lines {
            let event: Event = match serde_json::from_str(line) {
                Ok(event) => event,
                // A writer that is killed may leave an incomplete last line.
                Err(error) if error.is_eof() && number == count => {
                    printer.line(&Line::note("the capture ends in the middle of an event"))?;
                    break;
                }
                Err(error) => bail!("{name}: line {number} is not an event: {error}"),
            };
            understood.decoded();
            if event.engine.as_deref().is_some_and(|engine| family.engine(engine).is_none()) {
                understood.unknown("event of an engine that the card does not have");
            }
            if let Some(timeline) = &mut timeline {
                if filter.passes(&event) {
                    timeline.add(&event)?;
                }
            } else if let Some(text) = capture::text(&event, family, &filter) {
                if printer.json {
                    let document = serde_json::json!({ "kind": "event", "event": event, "text": text.trim_start() });
                    writeln!(printer.output, "{document}")?;
                } else {
                    writeln!(printer.output, "{text}")?;
                }
            }
        }
        if let Some(mut timeline) = timeline {
            if let Some(path) = &self.ftrace {
                let name = path.display().to_string();
                let bytes = read(Some(path), &name)?;
                if timeline.add_ftrace(&String::from_utf8_lossy(&bytes))? == 0 {
                    bail!("{name} has no lines of an ftrace");
                }
            }
            writeln!(printer.output, "# {}", timeline.finish()?)?;
        }
        Ok(source)
    }
}

/// Decodes the image of a context, with or without a status page before it.
fn context_image(dwords: &[u32], engine: Engine, emit: &mut dyn FnMut(Line) -> io::Result<()>) -> io::Result<()> {
    let (page, image) = engine.find_image(dwords).unwrap_or((&[], dwords));
    if !page.is_empty() {
        emit(Line::section("Status page of the context (PPHWSP), non-zero dwords"))?;
        context::page(page).into_iter().try_for_each(&mut *emit)?;
    }
    emit(Line::section(format!("Context image, {}", engine.name())))?;
    engine.image(listed(image, emit)?).into_iter().try_for_each(emit)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::decode::engine::classes;

    #[derive(clap::Parser)]
    struct CommandLine {
        #[command(flatten)]
        decode: DecodeArgs,
    }

    fn arguments(options: &[&str]) -> DecodeArgs {
        CommandLine::parse_from(["decode", "-"].iter().chain(options)).decode
    }

    fn decode(options: &[&str], input: &[u8]) -> Result<String> {
        let arguments = arguments(options);
        let mut printer = Printer { output: Vec::new(), raw: arguments.raw, json: arguments.json };
        arguments.print("input", File::of(input.to_vec()).unwrap(), &mut printer)?;
        Ok(String::from_utf8(printer.output).unwrap())
    }

    fn refusal(options: &[&str], input: &str) -> String {
        decode(options, input.as_bytes()).unwrap_err().to_string()
    }

    const WAIT: &str = r#"{"ns":1,"function":1,"engine":"ENGINE","event":"wait"}"#;

    fn capture(generation: &str, engines: &[&str]) -> String {
        let mut text = format!("{{\"arctic_capture\":1,\"card\":\"Test\"{generation}}}\n");
        for engine in engines {
            text += &WAIT.replace("ENGINE", engine);
            text += "\n";
        }
        text
    }

    /// Engines in the lines of a decoded capture.
    fn waiting(text: &str) -> Vec<&str> {
        text.lines().filter(|line| line.ends_with("waits")).filter_map(|line| line.split_whitespace().nth(2)).collect()
    }

    #[test]
    fn the_dwords_of_the_example_are_legal() {
        let help = <CommandLine as clap::CommandFactory>::command().render_long_help().to_string();
        let dwords = help.split("echo ").nth(1).unwrap().split(" |").next().unwrap();
        let text = decode(&[], dwords.as_bytes()).unwrap();
        assert!(text.contains("MI_LOAD_REGISTER_IMM") && text.contains("MI_BATCH_BUFFER_END"), "{text}");
        assert!(!text.contains("illegal") && !text.contains("not understood"), "{text}");
    }

    /// The kind of dwords is detected with the context images of the engine.
    #[test]
    fn kind_is_detected_by_image_and_options() {
        let flex = [0, 0x1108_101b, 0x244, 0x0009_0009];
        let ivb = [0, 0x1100_0005, 0x20c0, 0xffff_0000, 0x2110, 0x20, 0x229c, 0];
        let with_page = [vec![0; context::PAGE_DWORDS], flex.to_vec()].concat();
        let kind = |options: &[&str], engine: &str, dwords: &[u32]| {
            let arguments = arguments(options);
            let engine = arguments.card.unwrap_or(FLEX).engine(engine).unwrap();
            arguments.detect_kind(dwords, engine)
        };
        assert_eq!(kind(&[], "rcs0", &flex), Kind::Context);
        assert_eq!(kind(&[], "rcs0", &with_page), Kind::Context);
        assert_eq!(kind(&["--kind", "batch"], "rcs0", &flex), Kind::Batch);
        assert_eq!(kind(&[], "rcs0", &ivb), Kind::Batch);
        assert_eq!(kind(&["--tail", "8"], "rcs0", &ivb), Kind::Ring);
        assert_eq!(kind(&["--card", "ivb"], "rcs0", &ivb), Kind::Context);
        assert_eq!(kind(&["--card", "ivb"], "bcs0", &ivb), Kind::Batch, "bcs0 has no contexts");
        // A batch that loads one register.
        assert_eq!(kind(&["--card", "ivb"], "rcs0", &[0, 0x1100_0001, 0x2600, 5, 0x0500_0000]), Kind::Batch);
        assert_eq!(kind(&[], "rcs0", &[]), Kind::Batch);
    }

    /// Each engine is of exactly one class of the list, and the help of --class names all classes.
    #[test]
    fn classes_have_all_engines() {
        let selected = classes().into_iter().flat_map(|class| FLEX.select(class));
        let mut selected: Vec<_> = selected.map(|engine| engine.name()).collect();
        selected.sort_unstable();
        let mut engines = names(FLEX);
        engines.sort_unstable();
        assert_eq!(selected, engines);
        assert!(classes().iter().all(|name| class(name).is_ok() && class_help().contains(name)));
    }

    #[test]
    fn class_selects_all_its_engines_in_a_capture() {
        let input = capture("", &["rcs0", "ccs0", "ccs3", "bcs0"]);
        let text = |options: &[&str]| decode(options, input.as_bytes()).unwrap();
        assert_eq!(waiting(&text(&[])), ["rcs0", "ccs0", "ccs3", "bcs0"]);
        assert_eq!(waiting(&text(&["--class", "compute"])), ["ccs0", "ccs3"]);
        assert_eq!(waiting(&text(&["--engine", "ccs3"])), ["ccs3"]);
        let input = capture(",\"generation\":\"ivy-bridge\"", &["rcs0", "bcs0"]);
        assert_eq!(waiting(&decode(&["--class", "copy"], input.as_bytes()).unwrap()), ["bcs0"]);
        assert!(refusal(&["--class", "compute"], &input).contains("its engines are rcs0"));
    }

    #[test]
    fn capture_with_leading_blanks_or_a_truncated_last_line_is_decoded() {
        let input = format!("\n \n  {}", capture("", &["ccs0", "ccs1"]));
        assert_eq!(waiting(&decode(&[], input.as_bytes()).unwrap()), ["ccs0", "ccs1"]);
        let cut = decode(&[], &input.as_bytes()[..input.len() - 9]).unwrap();
        assert_eq!(waiting(&cut), ["ccs0"]);
        assert!(cut.ends_with("# the capture ends in the middle of an event\n"), "{cut}");
        assert!(refusal(&[], &input.replace("\"ns\":1,", "")).contains("line 4 is not an event"));
    }

    #[test]
    fn a_timeline_is_written_in_place_of_the_text() {
        let dir = vmm_sys_util::tempdir::TempDir::new().unwrap();
        let file = dir.as_path().join("timeline");
        let path = file.to_str().unwrap();
        let input = capture("", &["rcs0", "ccs0"]);
        assert_eq!(decode(&["--perfetto", path], input.as_bytes()).unwrap(), "# timeline of 2 events; 0 missing\n");
        let all = std::fs::read(&file).unwrap();
        decode(&["--perfetto", path, "--engine", "ccs0"], input.as_bytes()).unwrap();
        assert!((100..all.len()).contains(&std::fs::read(&file).unwrap().len()));
        assert!(refusal(&["--perfetto", path], "0x5000000").contains("--perfetto is for captures"));
        assert!(refusal(&["--perfetto", "/nowhere/at/all"], &input).contains("/nowhere/at/all cannot be created"));
        assert!(refusal(&["--perfetto", path, "--guest-clock", path], &input).contains("cannot be read"), "no UTF-8");
    }

    #[test]
    fn options_that_do_not_fit_the_file_are_rejected() {
        let flex = capture("", &[]);
        assert!(refusal(&["--card", "ivb"], &flex).contains("is of the Flex series, and --card is of ivy-bridge"));
        assert!(decode(&["--card", "small"], flex.as_bytes()).is_ok());
        let xe = format!("{}\n", xe::HEADING);
        assert!(refusal(&["--card", "snb"], &xe).contains("of a Flex card, and --card is of sandy-bridge"));
        for (option, value) in [("--kind", "ring"), ("--base", "8"), ("--head", "0"), ("--tail", "0"), ("--acthd", "0")]
        {
            for file in [&flex, &xe] {
                assert!(refusal(&[option, value], file).starts_with(&format!("{option} is for dwords only")));
            }
        }
    }
}
