// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `eu trace`.

use std::fmt::Write;

use std::collections::BTreeMap;

use arctic_eu::capture::{Capture, Replay, ReplayObserver};
use arctic_eu::exec::{self, Budget, Environment, Group, Host, Observer, Program, Stop, Thread};
use arctic_eu::launch::Launch;
use arctic_eu::text;
use serde_json::json;

use super::capture::{self, Driven};
use super::launch::{self, Input};

/// Counts executed instructions by kind and by line, or shows the registers of a thread at an instruction. With --group or --thread,
/// only the instructions of this thread are counted.
///
/// Addresses are those of `eu disasm`; of a captured walker, virtual addresses as in the log of the card.
#[derive(clap::Args)]
pub struct Options {
    #[command(flatten)]
    launch: launch::LaunchOptions,
    /// Stops the thread of --group and --thread before the instruction at this address and prints its registers
    #[arg(long = "break", value_name = "ADDRESS")]
    stop: Option<String>,
    /// Group of the thread [default: 0,0,0]
    #[arg(long, value_name = "X,Y,Z")]
    group: Option<String>,
    /// Number of the thread in its group [default: 0]
    #[arg(long, value_name = "N")]
    thread: Option<u32>,
    /// Times the instruction is passed before the stop
    #[arg(long, default_value_t = 0, value_name = "N")]
    skip: u64,
    /// Registers to print, as 0-7,12; those that are not zero by default
    #[arg(long, value_name = "LIST")]
    registers: Option<String>,
    /// Prints one JSON document
    #[arg(long)]
    json: bool,
}

/// Counts instructions, and stops at one.
struct Counter {
    /// By index in the program.
    counts: Vec<u64>,
    /// Address of the instruction, relative to the instruction base or the start of the kernel.
    stop: Option<u32>,
    skip: u64,
    /// The thread that is executed is the wanted one.
    armed: bool,
    /// Only the wanted thread is counted.
    only_armed: bool,
}

impl Counter {
    fn see(&mut self, instruction: u32, address: impl FnOnce() -> Option<u32>) -> bool {
        if self.armed && self.stop.is_some() && self.stop == address() {
            if self.skip == 0 {
                return true;
            }
            self.skip -= 1;
        }
        if !self.armed && self.only_armed {
            return false;
        }
        let at = instruction as usize;
        if self.counts.len() <= at {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] += 1;
        false
    }
}

/// Counts the instructions of a launch.
struct LaunchCounter<'l> {
    counter: Counter,
    code: &'l Program,
}

impl Observer for LaunchCounter<'_> {
    fn before(&mut self, _thread: &Thread, instruction: u32) -> bool {
        let located = || self.code.instructions.get(instruction as usize).map(|located| located.address);
        self.counter.see(instruction, located)
    }
}

/// Counts the instructions of a captured walker.
struct ReplayCounter {
    counter: Counter,
    group: [u32; 3],
    number: u32,
}

impl ReplayObserver for ReplayCounter {
    fn before(&mut self, group: [u32; 3], number: u32, _: &Thread, program: &Program, instruction: u32) -> bool {
        self.counter.armed = (group, number) == (self.group, self.number);
        let located = || program.instructions.get(instruction as usize).map(|located| located.address);
        self.counter.see(instruction, located)
    }
}

/// Code whose instructions were counted.
struct Code<'c> {
    name: &'c str,
    program: &'c Program,
    /// Address of address 0.
    origin: u64,
}

impl Code<'_> {
    fn address(&self, index: usize) -> u64 {
        self.origin + u64::from(self.program.instructions[index].address)
    }
}

const NOT_REACHED: &str = "error: the thread ended without reaching the instruction: see --group, --thread and --skip";

impl Options {
    pub fn execute(self) -> super::Result {
        let wanted = self.group.as_deref().map_or(Ok([0; 3]), group_of)?;
        let number = self.thread.unwrap_or(0);
        let zebin = match self.launch.input()? {
            Input::Zebin(zebin) => zebin,
            Input::Capture(capture) => return self.execute_capture(&capture, wanted, number),
        };
        let launch = self.launch.launch(&zebin)?;
        let code = Code { name: &launch.name, program: &launch.code, origin: 0 };
        let stop = self.stop.as_deref().map(|text| instruction(&launch, text)).transpose()?;
        let groups = launch.groups();
        let mut observer = LaunchCounter { counter: self.counter(stop), code: &launch.code };
        if let Some(thread) = trace(&launch, groups, wanted, number, &mut observer)? {
            return super::print(&registers(&code, &thread, self.registers.as_deref())?);
        }
        self.print(&code, &observer.counter)
    }

    fn counter(&self, stop: Option<u32>) -> Counter {
        let only_armed = self.group.is_some() || self.thread.is_some();
        Counter { counts: Vec::new(), stop, skip: self.skip, armed: false, only_armed }
    }

    fn print(&self, code: &Code<'_>, counter: &Counter) -> super::Result {
        if self.stop.is_some() {
            return Err(NOT_REACHED.into());
        }
        if counter.only_armed && counter.counts.is_empty() {
            return Err("error: no thread with this number in this group: see --group and --thread".into());
        }
        let counts = &counter.counts;
        super::print(&if self.json { counts_json(code, counts) } else { counts_text(code, counts) })
    }

    fn execute_capture(&self, capture: &Capture, group: [u32; 3], number: u32) -> super::Result {
        let origin = capture.launch.instruction_base;
        let name = format!("kernel at {:#x}", capture.launch.kernel_address());
        let stop = match &self.stop {
            None => None,
            Some(text) => {
                let address = address_of(text)?;
                let offset = address.checked_sub(origin).and_then(|offset| u32::try_from(offset).ok());
                Some(offset.ok_or_else(|| {
                    format!("error: {address:#x} is no address of the code, whose base is {origin:#x}: see `eu trace` without --break")
                })?)
            }
        };
        let mut observer = ReplayCounter { counter: self.counter(stop), group, number };
        let mut replay = Replay::new(capture, Host::detect(), self.launch.limit);
        let ended = capture::drive(&mut replay, &self.launch, &mut observer, false)?;
        let code = Code { name: &name, program: replay.program(), origin };
        if let Driven::Break(at) = ended {
            let thread = replay.thread(at.thread).ok_or(NOT_REACHED)?;
            return super::print(&registers(&code, thread, self.registers.as_deref())?);
        }
        self.print(&code, &observer.counter)
    }
}

/// An address, as 0x1a0 or L416.
fn address_of(text: &str) -> Result<u64, String> {
    let digits = text.trim_start_matches('L');
    let address = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => digits.parse().ok(),
    };
    address.ok_or_else(|| format!("error: `{text}` is no address, as 0x1a0 or L416"))
}

/// The address of an instruction of a launch.
fn instruction(launch: &Launch, text: &str) -> Result<u32, String> {
    let address = address_of(text)?;
    let found = launch.code.instructions.iter().find(|located| u64::from(located.address) == address);
    let found = found.ok_or_else(|| format!("error: no instruction begins at {address:#x}: see `eu disasm`"))?;
    Ok(found.address)
}

fn group_of(text: &str) -> Result<[u32; 3], String> {
    let mut group = [0; 3];
    for (index, part) in group.iter_mut().zip(text.split(',')) {
        *index = part.parse().map_err(|_| format!("error: `{part}` is no number of a group"))?;
    }
    Ok(group)
}

/// Runs all groups on this thread. Returns the thread that was stopped.
fn trace(
    launch: &Launch,
    groups: [u32; 3],
    wanted: [u32; 3],
    number: u32,
    observer: &mut LaunchCounter<'_>,
) -> Result<Option<Thread>, String> {
    let mut threads: Vec<Thread> = (0..launch.threads()).map(|_| Thread::new(launch.code.registers, 0)).collect();
    for z in 0..groups[2] {
        for y in 0..groups[1] {
            for x in 0..groups[0] {
                let mut state = Group { slm: vec![0; launch.local_memory()], ..Group::default() };
                let mut memory = &launch.space;
                let mut environment = Environment::new(&mut memory, &mut state);
                let mut left: Vec<u32> = (0..launch.threads_of([x, y, z])).collect();
                for (index, thread) in (0..).zip(&mut threads) {
                    launch.start(thread, [x, y, z], index, index);
                }
                while !left.is_empty() {
                    let before: u64 = threads.iter().map(|thread| thread.executed).sum();
                    let mut still = Vec::new();
                    for index in left {
                        let thread = &mut threads[index as usize];
                        observer.counter.armed = [x, y, z] == wanted && index == number;
                        let settings = launch.settings();
                        let limit = Budget::instructions(settings.limit);
                        match exec::run(&launch.code, thread, &mut environment, limit, settings.way, observer) {
                            Stop::End => {}
                            Stop::Break => return Ok(Some(thread.clone())),
                            Stop::Barrier => still.push(index),
                            Stop::Fetch(address) | Stop::Exception(address) => {
                                return Err(format!("error: thread {index} stops at {address:#x}"));
                            }
                            Stop::Budget => {
                                return Err(format!(
                                    "error: thread {index} does not end within {} instructions",
                                    settings.limit
                                ));
                            }
                            Stop::Fault(fault) => {
                                let located = &launch.code.instructions[fault.instruction as usize];
                                return Err(format!(
                                    "error: {} at {:#x}, thread {index} of group {x},{y},{z}",
                                    fault.kind, located.address
                                ));
                            }
                        }
                    }
                    left = still;
                    let after: u64 = threads.iter().map(|thread| thread.executed).sum();
                    if !left.is_empty() && after == before {
                        return Err("error: a group waits for a barrier that its other threads do not reach".into());
                    }
                }
            }
        }
    }
    Ok(None)
}

fn by_kind(code: &Code<'_>, counts: &[u64]) -> BTreeMap<&'static str, u64> {
    let mut kinds = BTreeMap::new();
    for (located, count) in code.program.instructions.iter().zip(counts) {
        if let Some(instruction) = &located.instruction
            && *count > 0
        {
            *kinds.entry(instruction.row.name).or_insert(0) += count;
        }
    }
    kinds
}

fn line(code: &Code<'_>, index: usize) -> String {
    let located = &code.program.instructions[index];
    let formatted = located.instruction.as_ref().and_then(|from| text::format(from, located.address));
    formatted.unwrap_or_else(|| "        ?".into())
}

fn counts_text(code: &Code<'_>, counts: &[u64]) -> String {
    let mut kinds: Vec<_> = by_kind(code, counts).into_iter().collect();
    kinds.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
    let mut text = String::new();
    for (name, count) in &kinds {
        let _ = writeln!(text, "{count:>12}  {name}");
    }
    let _ = writeln!(text, "{:>12}  in all\n", counts.iter().sum::<u64>());
    for (index, count) in counts.iter().enumerate() {
        if *count > 0 {
            let _ = writeln!(text, "{count:>12}  {:#06x}  {}", code.address(index), line(code, index));
        }
    }
    text
}

fn counts_json(code: &Code<'_>, counts: &[u64]) -> String {
    let lines: Vec<_> = counts
        .iter()
        .enumerate()
        .filter(|(_, count)| **count > 0)
        .map(|(index, count)| {
            let address = code.address(index);
            json!({ "address": address, "count": count, "text": line(code, index).trim() })
        })
        .collect();
    format!("{:#}\n", json!({ "kernel": code.name, "kinds": by_kind(code, counts), "lines": lines }))
}

/// Registers of a thread: dwords in hexadecimal, and as floats.
fn registers(code: &Code<'_>, thread: &Thread, list: Option<&str>) -> Result<String, String> {
    let index = code.program.instruction_of(thread.next);
    let mut text = format!("{}\n", line(code, index as usize).trim());
    let _ = writeln!(text, "mask {:#010x}  f0 {:#010x}  f1 {:#010x}", thread.mask, thread.flag(0), thread.flag(1));
    let chosen = list.map(numbers).transpose()?;
    for register in 0..code.program.registers as usize {
        let dwords: Vec<u32> = (0..8).map(|index| thread.grf(register, index)).collect();
        let wanted = match &chosen {
            Some(chosen) => chosen.contains(&register),
            None => dwords.iter().any(|dword| *dword != 0),
        };
        if wanted {
            let hex: Vec<String> = dwords.iter().map(|dword| format!("{dword:08x}")).collect();
            let floats: Vec<String> = dwords.iter().map(|dword| format!("{:>11.4e}", f32::from_bits(*dword))).collect();
            let _ = writeln!(text, "r{register:<4} {}\n      {}", hex.join(" "), floats.join(" "));
        }
    }
    Ok(text)
}

fn numbers(list: &str) -> Result<Vec<usize>, String> {
    let mut all = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim_start_matches('r').parse::<usize>().ok().filter(|number| *number < 256);
        match (number(first), number(last)) {
            (Some(first), Some(last)) => all.extend(first..=last),
            _ => return Err(format!("error: `{part}` is no register or range of registers, as 0-7")),
        }
    }
    Ok(all)
}
