// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `afuc run`

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use arctic_afuc::isa::Generation;
use arctic_afuc::machine::{Effect, Fault, INTERRUPT_STATUS, Machine, Stop};
use arctic_afuc::names::{Space, packet_label, register_name};
use arctic_afuc::pm4::Sums;
use arctic_afuc::replay::{Options, Replay, ReplayError};
use arctic_afuc::trace::{Record, read};
use serde_json::{Map, json};

use super::firmware::Firmware;
use super::{Result, generation, print};

/// Exit code of a run that ends with a fault.
pub const FAULT: u8 = 3;
/// A run that takes longer prints its progress.
const PROGRESS_AFTER: Duration = Duration::from_secs(2);
/// Instructions between two looks at the clock.
const PROGRESS_EVERY: u64 = 1 << 22;

/// Execute a command-stream trace with a firmware.
///
/// The firmware starts, and then gets the trace's command buffers one after the other, through a ring buffer. The run ends
/// when the firmware waits for more packets, or with a fault: then the exit code is 3.
///
/// The list of packets has two columns: all packets of the command buffers with their indirect buffers and draw-state
/// groups, and those that were executed. There is no 3D engine; registers that it would write keep the values of --set.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  afuc run --firmware open --rd trace.rd.gz
  afuc run --firmware open --rd trace.rd.gz --compare --preempt-every 61
  afuc run --firmware sqe.asm --rd trace.rd --set 0xc38-0xc57=0 --json")]
pub struct RunArgs {
    #[command(flatten)]
    pub input: Input,
    /// A trace for LPAC, `.rd` or `.rd.gz`: LPAC executes its command buffers from a separate ring, beside those of --rd.
    #[arg(long, value_name = "RD")]
    lpac_rd: Option<PathBuf>,
    /// Run the interpreter of packets too, and compare all writes to registers and memory.
    #[arg(long)]
    compare: bool,
    /// Print each write to registers and memory.
    #[arg(long, conflicts_with = "json")]
    effects: bool,
    /// Print one JSON document.
    #[arg(long)]
    json: bool,
}

/// What is executed, and how.
#[derive(clap::Args)]
pub struct Input {
    /// The firmware: a file, an assembler source (*.asm), or `open` for the open firmware of the program.
    #[arg(long)]
    pub firmware: PathBuf,
    /// The trace, `.rd` or `.rd.gz`. Several are executed one after the other.
    #[arg(long, required = true)]
    pub rd: Vec<PathBuf>,
    /// Generation: 5, 6 or 7. Needed if the firmware's id is unknown. The open firmware is for 6 unless 7 is named.
    #[arg(long = "gen", value_parser = generation)]
    generation: Option<Generation>,
    /// Instructions that one packet may take.
    #[arg(long, default_value_t = 1_000_000)]
    packet_budget: u64,
    /// Preempt the firmware each time that it has executed this number of instructions.
    #[arg(long, value_name = "INSTRUCTIONS", value_parser = clap::value_parser!(u64).range(1..))]
    preempt_every: Option<u64>,
    /// Stop at an access to memory that the trace does not have. Without it such memory is mapped, filled with zeros.
    #[arg(long)]
    only_mapped: bool,
    /// A value for GPU registers before the first packet, as NUMBER=VALUE or FIRST-LAST=VALUE. Without it VSC_STATE,
    /// 0xc38-0xc57, is all ones: each bin has something visible.
    #[arg(long = "set", value_name = "REGISTERS=VALUE", value_parser = register_values)]
    registers: Vec<(RangeInclusive<u32>, u32)>,
}

fn number(text: &str) -> Result<u32, String> {
    let parsed = text.strip_prefix("0x").map_or_else(|| text.parse(), |hex| u32::from_str_radix(hex, 16));
    parsed.map_err(|_| format!("`{text}` is no number: use 3128 or 0xc38"))
}

fn register_values(text: &str) -> Result<(RangeInclusive<u32>, u32), String> {
    let (registers, value) = text.split_once('=').ok_or("the form is NUMBER=VALUE or FIRST-LAST=VALUE")?;
    let (first, last) = registers.split_once('-').unwrap_or((registers, registers));
    let (first, last) = (number(first)?, number(last)?);
    if last > 0xffff || first > last {
        return Err("registers are 0 to 0xffff, the first before the last".to_owned());
    }
    Ok((first..=last, number(value)?))
}

impl Input {
    /// Reads firmware and trace; `None` after the errors of an assembler source were printed.
    pub fn open(&self) -> Result<Option<(Firmware, Vec<Record>)>> {
        let Some(firmware) = Firmware::open(&self.firmware, self.generation)? else { return Ok(None) };
        let parts = self.rd.iter().map(|path| records(path)).collect::<Result<Vec<_>>>()?;
        Ok(Some((firmware, parts.concat())))
    }

    /// The options of the execution.
    pub fn options(&self, compare: bool, record: bool) -> Options {
        let defaults = Options::default();
        Options {
            map_on_demand: !self.only_mapped,
            packet_budget: self.packet_budget,
            preempt_every: self.preempt_every,
            compare,
            record,
            registers: if self.registers.is_empty() { defaults.registers } else { self.registers.clone() },
        }
    }
}

fn records(path: &Path) -> Result<Vec<Record>> {
    read(&super::read(path)?).map_err(|error| format!("{}: {error}", path.display()).into())
}

/// Executes all records, with a line of progress on standard error now and then.
pub fn replay(replay: &mut Replay, records: &[Record]) -> Result<(), ReplayError> {
    let start = Instant::now();
    let mut printed = Instant::now();
    let mut note = |done: usize, machine: &Machine| {
        if start.elapsed() > PROGRESS_AFTER && printed.elapsed() > PROGRESS_AFTER {
            printed = Instant::now();
            eprintln!("record {done} of {}, {} instructions executed", records.len(), machine.executed);
        }
    };
    for (index, record) in records.iter().enumerate() {
        replay.record(record, &mut |machine| loop {
            match machine.run(PROGRESS_EVERY) {
                Stop::Budget => note(index, machine),
                stop => break stop,
            }
        })?;
        note(index + 1, &replay.machine);
    }
    Ok(())
}

/// The place of a fault in words.
pub fn explain(firmware: &Firmware, machine: &Machine, fault: &Fault) -> String {
    let packet = match fault.header >> 28 {
        4 => "PKT4".into(),
        7 => packet_label((fault.header >> 16 & 0x7f).to_le_bytes()[0], machine.bus.set().generation()),
        _ => "none".into(),
    };
    let processor = machine.processor(fault.processor).unwrap_or(machine);
    format!(
        "{fault}\nin {}, packet {packet}, queue {}; CP_INTERRUPT_STATUS {:#x}",
        firmware.symbols.place(processor, fault.pc),
        processor.bus.level_name(),
        machine.bus.gpu[INTERRUPT_STATUS]
    )
}

pub fn run(arguments: &RunArgs) -> Result<ExitCode> {
    let Some((firmware, records)) = arguments.input.open()? else { return Ok(ExitCode::FAILURE) };
    let mut run = Replay::new(&firmware.image, &arguments.input.options(arguments.compare, arguments.effects))?;
    if let Some(path) = &arguments.lpac_rd {
        run.lpac(&self::records(path)?)?;
    }
    let result = replay(&mut run, &records);
    let compared = match &result {
        Ok(()) => run.compare().map_err(ReplayError::Different),
        Err(_) => Ok(None),
    };
    let end = match (&result, &compared) {
        (Err(ReplayError::Fault(fault)), _) => explain(&firmware, &run.machine, fault),
        (Err(error), _) | (_, Err(error)) => error.to_string(),
        (Ok(()), Ok(_)) => "idle".to_owned(),
    };
    let is_good = result.is_ok() && compared.is_ok();
    let sums = compared.ok().flatten();
    let text = if arguments.json { document(&run, &end, is_good, sums) } else { report(arguments, &run, &end, sums) };
    print(&text)?;
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::from(FAULT) })
}

/// Packets with their number in the stream and the number of those that were executed, most frequent first.
fn packets(run: &Replay) -> Vec<(String, u64, u64)> {
    let generation = run.machine.bus.set().generation();
    let mut rows: Vec<(String, u64, u64)> = (0_u8..128)
        .map(|opcode| (opcode, run.stream.packets[usize::from(opcode)], run.machine.packets[usize::from(opcode)]))
        .filter(|(_, stream, executed)| stream + executed > 0)
        .map(|(opcode, stream, executed)| (packet_label(opcode, generation).into_owned(), stream, executed))
        .collect();
    rows.sort_by(|a, b| (b.1, b.2, &a.0).cmp(&(a.1, a.2, &b.0)));
    rows
}

/// The processors beside the first: name, instructions, packets.
fn others(run: &Replay) -> impl Iterator<Item = (&'static str, u64, u64)> {
    let generation = run.machine.bus.set().generation();
    let row = move |other: &Machine| (other.processor.name(generation), other.executed, other.packets.iter().sum());
    run.machine.processors().skip(1).map(row)
}

/// Packets of which handlers left words.
fn warnings(run: &Replay) -> u64 {
    run.machine.processors().map(|machine| machine.left_words).sum()
}

fn document(run: &Replay, end: &str, is_good: bool, sums: Option<Sums>) -> String {
    let rows = packets(run);
    let map = |column: fn(&(String, u64, u64)) -> u64| -> Map<String, serde_json::Value> {
        rows.iter().filter(|row| column(row) > 0).map(|row| (row.0.clone(), column(row).into())).collect()
    };
    let (registers, memory) = run.machine.bus.writes;
    let others: Vec<_> = others(run)
        .map(|(name, instructions, packets)| json!({ "name": name, "instructions": instructions, "packets": packets }))
        .collect();
    let equal = sums.map(|sums| {
        json!({
            "registers": sums.registers, "register_writes": sums.register_writes, "memory_words": sums.memory_words,
            "memory_writes": sums.memory_writes, "groups": groups(run),
        })
    });
    let document = json!({
        "end": end, "idle": is_good, "boot_instructions": run.boot_instructions,
        "instructions": run.machine.executed, "preemptions": run.machine.preemptions,
        "command_buffers": run.command_buffers, "missing_command_buffers": run.missing_buffers,
        "missing_indirect_buffers": run.machine.bus.missing_buffers, "words": run.stream.words,
        "packets_in_stream": map(|row| row.1), "packets_executed": map(|row| row.2),
        "register_values_in_stream": run.stream.registers, "groups_in_stream": run.stream.groups,
        "register_writes": registers, "memory_writes": memory, "equal": equal,
        "warnings": warnings(run), "other_processors": others, "unmodelled": unmodelled(run).into_iter().collect::<BTreeMap<_, _>>(),
    });
    format!("{document:#}\n")
}

/// Registers without a model that were accessed: name and number of accesses.
fn unmodelled(run: &Replay) -> Vec<(String, u32)> {
    let bus = &run.machine.bus;
    let name = |space, prefix: char, number| {
        let name = register_name(space, bus.set(), number);
        name.map_or_else(|| format!("{prefix}{number:#05x}"), |name| format!("{prefix}{name}"))
    };
    let control = bus.unmodelled_control_registers().map(|(number, count)| (name(Space::Control, '@', number), count));
    let pipe = bus.unmodelled_pipe_registers().map(|(number, count)| (name(Space::Pipe, '|', number), count));
    control.chain(pipe).collect()
}

fn groups(run: &Replay) -> u64 {
    run.interpreter.as_ref().map_or(0, |interpreter| interpreter.groups_executed)
}

fn report(arguments: &RunArgs, run: &Replay, end: &str, sums: Option<Sums>) -> String {
    let mut out = String::new();
    if arguments.effects {
        for effect in &run.machine.bus.effects {
            out += &match effect {
                Effect::Register(number, value) => format!("register {number:#07x} = {value:08x}\n"),
                Effect::Memory(address, value) => format!("memory {address:#x} = {value:08x}\n"),
                Effect::Pipe(number, value) => format!("pipe {number:#04x} = {value:08x}\n"),
                Effect::Writer(processor) => {
                    format!("processor {}\n", processor.name(run.machine.bus.set().generation()))
                }
                Effect::Preempted => "preempted\n".to_owned(),
                Effect::Resumed => "resumed\n".to_owned(),
            };
        }
    }
    out += &format!("{:36}{:>10}{:>10}\n", "packet", "in stream", "executed");
    for (name, stream, executed) in packets(run) {
        out += &format!("{name:36}{stream:10}{executed:10}\n");
    }
    let (registers, memory) = run.machine.bus.writes;
    out += &format!(
        "{} words in {} command buffers; {} register values, {} draw-state groups\n",
        run.stream.words, run.command_buffers, run.stream.registers, run.stream.groups
    );
    out += &format!(
        "{} instructions to the first waitin, {} in all; {registers} register writes, {memory} memory writes, {} \
         preemptions\n",
        run.boot_instructions, run.machine.executed, run.machine.preemptions
    );
    for (name, instructions, packets) in others(run) {
        out += &format!("{name}: {instructions} instructions, {packets} packets\n");
    }
    let skipped = run.missing_buffers + run.machine.bus.missing_buffers;
    if skipped > 0 {
        out += &format!("{skipped} buffers are not in the trace and were skipped\n");
    }
    for (name, count) in unmodelled(run) {
        out += &format!("{name}: {count} accesses; the model has storage only\n");
    }
    if let Some(sums) = sums {
        out += &format!(
            "equal: {} registers written, {} memory words, {} groups\n",
            sums.registers,
            sums.memory_words,
            groups(run)
        );
    }
    out += &format!("{} warnings", warnings(run));
    if warnings(run) > 0 {
        out += ": handlers left words of their packets, which became headers";
    }
    out + &format!("\n{end}\n")
}
