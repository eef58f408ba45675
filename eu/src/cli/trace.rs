// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! `eu trace`.

use std::fmt::Write;

use std::collections::BTreeMap;

use arctic_eu::exec::{self, Budget, Environment, Group, Observer, Stop, Thread};
use arctic_eu::launch::Launch;
use arctic_eu::text;
use serde_json::json;

use super::launch;

/// Counts executed instructions by kind and by line, or shows the registers of a thread at an instruction.
#[derive(clap::Args)]
pub struct Options {
    #[command(flatten)]
    launch: launch::LaunchOptions,
    /// Stops the thread of --group and --thread before the instruction at this address and prints its registers
    #[arg(long = "break", value_name = "ADDRESS")]
    stop: Option<String>,
    /// Group of the thread that is shown
    #[arg(long, default_value = "0,0,0", value_name = "X,Y,Z")]
    group: String,
    /// Number of the thread in its group
    #[arg(long, default_value_t = 0, value_name = "N")]
    thread: u32,
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
    counts: Vec<u64>,
    stop: Option<u32>,
    skip: u64,
    armed: bool,
}

impl Observer for Counter {
    fn before(&mut self, _thread: &Thread, instruction: u32) -> bool {
        if self.armed && self.stop == Some(instruction) {
            if self.skip == 0 {
                return true;
            }
            self.skip -= 1;
        }
        if let Some(count) = self.counts.get_mut(instruction as usize) {
            *count += 1;
        }
        false
    }
}

impl Options {
    pub fn execute(self) -> super::Result {
        let zebin = self.launch.zebin()?;
        let launch = self.launch.launch(&zebin)?;
        let stop = self.stop.as_deref().map(|text| self.instruction(&launch, text)).transpose()?;
        let wanted = group_of(&self.group)?;
        let mut counter =
            Counter { counts: vec![0; launch.code.instructions.len()], stop, skip: self.skip, armed: false };
        let groups = launch.groups();
        if let Some(thread) = trace(&launch, groups, wanted, self.thread, &mut counter)? {
            return super::print(&registers(&launch, &thread, self.registers.as_deref())?);
        }
        if stop.is_some() {
            return Err(
                "error: the thread ended without reaching the instruction: see --group, --thread and --skip".into()
            );
        }
        let text =
            if self.json { counts_json(&launch, &counter.counts) } else { counts_text(&launch, &counter.counts) };
        super::print(&text)
    }

    fn instruction(&self, launch: &Launch, text: &str) -> Result<u32, String> {
        let digits = text.trim_start_matches('L');
        let address = match digits.strip_prefix("0x") {
            Some(hex) => u32::from_str_radix(hex, 16).ok(),
            None => digits.parse().ok(),
        };
        let address = address.ok_or_else(|| format!("error: `{text}` is no address, as 0x1a0 or L416"))?;
        let index = launch.code.instructions.binary_search_by_key(&address, |located| located.address);
        index
            .map(|index| index as u32)
            .map_err(|_| format!("error: no instruction begins at {address:#x}: see `eu disasm`"))
    }
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
    counter: &mut Counter,
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
                        counter.armed = [x, y, z] == wanted && index == number;
                        let settings = launch.settings();
                        let limit = Budget::instructions(settings.limit);
                        match exec::run(&launch.code, thread, &mut environment, limit, settings.way, counter) {
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

fn by_kind(launch: &Launch, counts: &[u64]) -> BTreeMap<&'static str, u64> {
    let mut kinds = BTreeMap::new();
    for (located, count) in launch.code.instructions.iter().zip(counts) {
        if let Some(instruction) = &located.instruction
            && *count > 0
        {
            *kinds.entry(instruction.row.name).or_insert(0) += count;
        }
    }
    kinds
}

fn line(launch: &Launch, index: usize) -> String {
    let located = &launch.code.instructions[index];
    let formatted = located.instruction.as_ref().and_then(|from| text::format(from, located.address));
    formatted.unwrap_or_else(|| "        ?".into())
}

fn counts_text(launch: &Launch, counts: &[u64]) -> String {
    let mut kinds: Vec<_> = by_kind(launch, counts).into_iter().collect();
    kinds.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
    let mut text = String::new();
    for (name, count) in &kinds {
        let _ = writeln!(text, "{count:>12}  {name}");
    }
    let _ = writeln!(text, "{:>12}  in all\n", counts.iter().sum::<u64>());
    for (index, count) in counts.iter().enumerate() {
        if *count > 0 {
            let _ = writeln!(
                text,
                "{count:>12}  {:#06x}  {}",
                launch.code.instructions[index].address,
                line(launch, index)
            );
        }
    }
    text
}

fn counts_json(launch: &Launch, counts: &[u64]) -> String {
    let lines: Vec<_> = counts
        .iter()
        .enumerate()
        .filter(|(_, count)| **count > 0)
        .map(|(index, count)| {
            let address = launch.code.instructions[index].address;
            json!({ "address": address, "count": count, "text": line(launch, index).trim() })
        })
        .collect();
    format!("{:#}\n", json!({ "kernel": launch.name, "kinds": by_kind(launch, counts), "lines": lines }))
}

/// Registers of a thread: dwords in hexadecimal, and as floats.
fn registers(launch: &Launch, thread: &Thread, list: Option<&str>) -> Result<String, String> {
    let index = launch.code.uops.get(thread.next as usize).map_or(0, |uop| uop.instruction);
    let mut text = format!("{}\n", line(launch, index as usize).trim());
    let _ = writeln!(text, "mask {:#010x}  f0 {:#010x}  f1 {:#010x}", thread.mask, thread.flag(0), thread.flag(1));
    let chosen = list.map(numbers).transpose()?;
    for register in 0..launch.code.registers as usize {
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
