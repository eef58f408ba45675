// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The debugger: breakpoints, steps, watches, dumps and snapshots of a machine. Commands are lines of text, from a script
//! or a terminal.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::isa::register;
use crate::machine::{Effect, Machine, Stop};
use crate::names::{PacketLabel, Space, packet_label, packet_of_label, register_name, register_number};
use crate::symbols::Symbols;
use crate::text::instruction_text;

/// The commands, for `help`.
pub const HELP: &str = "\
break ADDRESS|LABEL        stop before the instruction
break packet NAME|OPCODE   stop at the first instruction of the packet's handler
break register|memory|control NUMBER|NAME [VALUE]
                           stop after a write, of VALUE only if it is there
delete NUMBER              delete a breakpoint
watch register|memory|control|gpr NUMBER|NAME
                           print each change
step [N]                   execute N instructions, 1 without N
next                       execute an instruction; a call with what it calls
finish                     execute to the return of the routine
until ADDRESS|LABEL        execute to the instruction, or to a breakpoint
continue                   execute to a breakpoint
where                      instruction, routine, packet, queue
packet                     the words of the packet that are left
dump gpr|sqe|queues|groups|stack|processors|breakpoints
dump register|memory|control NUMBER|NAME [COUNT]
disasm [COUNT]             instructions from PC
set gpr|register|memory|control NUMBER|NAME VALUE
snapshot NAME, restore NAME
help, quit
";

/// A place that can be read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Gpr(u8),
    Register(u32),
    Memory(u64),
    Control(u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Breakpoint {
    Address(u32),
    Packet(u8),
    Write(Place, Option<u32>),
}

/// How the machine goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Stopped,
    Steps(u64),
    /// To this word.
    Until(u32),
    /// To a call depth below.
    Finish(u32),
    Continue,
}

/// What a command asks of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request {
    /// The next command.
    Command,
    /// Execution, by [`Debugger::run`].
    Run,
    /// The end.
    Quit,
}

/// A debugger. It does not contain the machine: each call gets it.
#[derive(Debug, Clone)]
pub struct Debugger {
    symbols: Symbols,
    breakpoints: BTreeMap<u32, Breakpoint>,
    numbers: u32,
    watches: Vec<(Place, Option<u32>)>,
    snapshots: BTreeMap<String, Machine>,
    mode: Mode,
    /// Text for the user, which the caller takes.
    pub output: String,
}

type Parsed<T> = Result<T, String>;

impl Debugger {
    /// A debugger that is stopped, without breakpoints.
    pub fn new(symbols: Symbols) -> Self {
        Self {
            symbols,
            breakpoints: BTreeMap::new(),
            numbers: 0,
            watches: Vec::new(),
            snapshots: BTreeMap::new(),
            mode: Mode::Stopped,
            output: String::new(),
        }
    }

    /// True if the next thing to do is a command.
    pub fn is_stopped(&self) -> bool {
        self.mode == Mode::Stopped
    }

    fn print(&mut self, text: &str) {
        self.output.push_str(text);
        self.output.push('\n');
    }

    /// Executes a command. An error is printed and changes nothing.
    pub fn command(&mut self, machine: &mut Machine, line: &str) -> Request {
        match self.parse(machine, line) {
            Ok(request) => request,
            Err(error) => {
                self.print(&format!("error: {error}"));
                Request::Command
            }
        }
    }

    fn parse(&mut self, machine: &mut Machine, line: &str) -> Parsed<Request> {
        let line = line.split('#').next().unwrap_or_default();
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [] => {}
            ["help"] => self.output.push_str(HELP),
            ["quit" | "q"] => return Ok(Request::Quit),
            ["break" | "b", "packet", name] => self.add(Breakpoint::Packet(opcode(machine, name)?)),
            ["break" | "b", space @ ("register" | "memory" | "control"), place, ref value @ ..] => {
                let value = value.first().map(|text| number(text)).transpose()?;
                self.add(Breakpoint::Write(Place::parse(machine, space, place)?, value));
            }
            ["break" | "b", place] => self.add(Breakpoint::Address(self.address(machine, place)?)),
            ["delete", which] => {
                if self.breakpoints.remove(&number(which)?).is_none() {
                    return Err(format!("there is no breakpoint {which}"));
                }
            }
            ["watch", space, place] => {
                let place = Place::parse(machine, space, place)?;
                self.watches.push((place, place.read(machine)));
            }
            ["step" | "s"] => return Ok(self.go(Mode::Steps(1))),
            ["step" | "s", count] => return Ok(self.go(Mode::Steps(number(count)?.into()))),
            ["next" | "n"] => {
                let is_call = instruction_at(machine, machine.pc).starts_with("call");
                return Ok(self.go(if is_call { Mode::Until(machine.pc + 2) } else { Mode::Steps(1) }));
            }
            ["finish"] => match machine.call_depth() {
                0 => return Err("there is no call to return from".to_owned()),
                depth => return Ok(self.go(Mode::Finish(depth))),
            },
            ["until", place] => {
                let address = self.address(machine, place)?;
                return Ok(self.go(Mode::Until(address)));
            }
            ["continue" | "c"] => return Ok(self.go(Mode::Continue)),
            ["where" | "w"] => self.print_where(machine),
            ["packet"] => self.print_packet(machine),
            ["disasm"] => self.print_code(machine, 8),
            ["disasm", count] => self.print_code(machine, number(count)?.min(1000)),
            ["dump", space @ ("register" | "memory" | "control"), place, ref count @ ..] => {
                let count = count.first().map_or(Ok(1), |text| number(text))?.min(4096);
                let first = Place::parse(machine, space, place)?;
                for index in 0..count {
                    let place = first.after(index);
                    self.print(&format!("{} = {}", place.name(machine), value_text(place.read(machine))));
                }
            }
            ["dump", what] => self.dump(machine, what)?,
            ["set", space, place, value] => {
                let place = Place::parse(machine, space, place)?;
                let value = number(value)?;
                place.write(machine, value)?;
            }
            ["snapshot", name] => {
                self.snapshots.insert(name.to_owned(), machine.clone());
            }
            ["restore", name] => {
                let saved = self.snapshots.get(name).ok_or_else(|| format!("there is no snapshot {name}"))?;
                *machine = saved.clone();
                for (place, value) in &mut self.watches {
                    *value = place.read(machine);
                }
            }
            _ => return Err(format!("`{}` is no command, or its operands are wrong: see help", line.trim())),
        }
        Ok(Request::Command)
    }

    fn go(&mut self, mode: Mode) -> Request {
        self.mode = mode;
        Request::Run
    }

    fn add(&mut self, breakpoint: Breakpoint) {
        self.numbers += 1;
        self.breakpoints.insert(self.numbers, breakpoint);
        self.print(&format!("breakpoint {}", self.numbers));
    }

    fn address(&self, machine: &Machine, text: &str) -> Parsed<u32> {
        let found = self.symbols.address(machine, text).map_or_else(|| number(text), Ok);
        found.map_err(|_| format!("there is no label `{text}`, and it is no number"))
    }

    /// Executes to a breakpoint, the end of a step, or until the machine is idle or has a fault; then it returns why. `None`
    /// if it stopped for a command.
    pub fn run(&mut self, machine: &mut Machine) -> Option<Stop> {
        let mut is_first = true;
        loop {
            if !is_first && let Some(number) = self.breakpoint_before(machine) {
                return self.stop(machine, &format!("breakpoint {number}"));
            }
            is_first = false;
            // Only those of this instruction are of interest.
            machine.bus.effects.clear();
            machine.bus.take_control_write();
            let stop = machine.run(1);
            let control = machine.bus.take_control_write();
            self.print_watches(machine);
            if stop != Stop::Budget {
                return Some(stop);
            }
            if let Some(number) = self.breakpoint_after(machine, control) {
                return self.stop(machine, &format!("breakpoint {number}"));
            }
            let is_done = match &mut self.mode {
                Mode::Steps(left) => {
                    *left = left.saturating_sub(1);
                    *left == 0
                }
                Mode::Until(address) => machine.pc == *address,
                // The return itself is over after its delay slot.
                Mode::Finish(depth) => machine.call_depth() < *depth && !machine.is_in_slot(),
                Mode::Continue => false,
                Mode::Stopped => true,
            };
            if is_done {
                return self.stop(machine, "");
            }
        }
    }

    /// Stops a run from outside, for instance after a fault.
    pub fn interrupt(&mut self) {
        self.mode = Mode::Stopped;
    }

    fn stop(&mut self, machine: &Machine, reason: &str) -> Option<Stop> {
        self.mode = Mode::Stopped;
        if !reason.is_empty() {
            self.print(reason);
        }
        self.print_instruction(machine);
        None
    }

    fn breakpoint_before(&self, machine: &Machine) -> Option<u32> {
        let hit = |breakpoint: &Breakpoint| match *breakpoint {
            Breakpoint::Address(address) => machine.pc == address,
            Breakpoint::Packet(opcode) => {
                let handler = machine.bus.packet_table[usize::from(opcode)];
                handler != 0 && machine.pc == handler && machine.is_at_packet(opcode)
            }
            Breakpoint::Write(..) => false,
        };
        self.breakpoints.iter().find(|(_, breakpoint)| hit(breakpoint)).map(|(number, _)| *number)
    }

    fn breakpoint_after(&self, machine: &Machine, control: Option<(u32, u32)>) -> Option<u32> {
        let new = &machine.bus.effects;
        let written = |place: Place, value: Option<u32>| {
            let matches = |found: u32| value.is_none_or(|value| value == found);
            match place {
                Place::Register(number) => {
                    new.iter().any(|e| matches!(*e, Effect::Register(n, v) if n == number && matches(v)))
                }
                Place::Memory(address) => {
                    new.iter().any(|e| matches!(*e, Effect::Memory(a, v) if a == address && matches(v)))
                }
                Place::Control(number) => control.is_some_and(|(n, v)| n == number && matches(v)),
                Place::Gpr(_) => false,
            }
        };
        let hit = |breakpoint: &Breakpoint| matches!(*breakpoint, Breakpoint::Write(p, v) if written(p, v));
        self.breakpoints.iter().find(|(_, breakpoint)| hit(breakpoint)).map(|(number, _)| *number)
    }

    fn print_watches(&mut self, machine: &Machine) {
        for index in 0..self.watches.len() {
            let (place, old) = self.watches[index];
            let new = place.read(machine);
            if new != old {
                self.watches[index].1 = new;
                self.print(&format!("{}: {} -> {}", place.name(machine), value_text(old), value_text(new)));
            }
        }
    }

    fn print_instruction(&mut self, machine: &Machine) {
        let place = self.symbols.place(machine, machine.pc);
        self.print(&format!("{:04x} {place}: {}", machine.pc, instruction_at(machine, machine.pc)));
    }

    fn print_where(&mut self, machine: &Machine) {
        self.print_instruction(machine);
        let (header, address) = machine.packet();
        let packet = match header >> 28 {
            4 => format!("PKT4 ({header:08x}) at {address:#x}"),
            7 => {
                let opcode = (header >> 16 & 0x7f).to_le_bytes()[0];
                let name = packet_label(opcode, machine.bus.set().generation());
                format!("{name} ({header:08x}) at {address:#x}")
            }
            _ => "no packet".to_owned(),
        };
        let queue = machine.bus.queue();
        let rem = machine.gpr[usize::from(register::REM)];
        self.print(&format!(
            "{packet}, $rem {rem}; queue {} at {:#x}, {} words left; {} instructions executed{}",
            machine.bus.level_name(),
            queue.address,
            queue.left,
            machine.executed,
            if machine.is_interrupted() { ", in a preemption handler" } else { "" }
        ));
    }

    fn print_packet(&mut self, machine: &Machine) {
        let queue = machine.bus.queue();
        let count = machine.gpr[usize::from(register::REM)].min(queue.left).min(64);
        for index in 0..u64::from(count) {
            let address = queue.address + index * 4;
            self.print(&format!("{address:#x}: {}", value_text(machine.bus.memory.get(address))));
        }
    }

    fn print_code(&mut self, machine: &Machine, count: u32) {
        for pc in (0..count).map(|index| machine.pc.wrapping_add(index)) {
            let mark = if pc == machine.pc { "=>" } else { "  " };
            let place = self.symbols.place(machine, pc);
            self.print(&format!("{mark} {pc:04x} {place}: {}", instruction_at(machine, pc)));
        }
    }

    fn dump(&mut self, machine: &Machine, what: &str) -> Parsed<()> {
        let mut out = String::new();
        // Writing to a string does not fail.
        match what {
            "gpr" => {
                for (number, value) in machine.gpr.iter().enumerate().take(0x1d) {
                    let name =
                        if number == usize::from(register::REM) { "$rem".into() } else { format!("${number:02x}") };
                    let separator = if number % 4 == 0 { "" } else { "   " };
                    let _ = write!(out, "{separator}{name:>4} {value:08x}{}", if number % 4 == 3 { "\n" } else { "" });
                }
                out.push('\n');
            }
            "sqe" => {
                for (number, value) in (0..).zip(&machine.sqe) {
                    if let Some(name) = register_name(Space::Sqe, machine.bus.set(), number) {
                        let _ = writeln!(out, "%{name} {value:08x}");
                    }
                }
            }
            "queues" => {
                for (name, queue) in ["RB", "IB1", "IB2", "IB3", "SDS"].iter().zip(machine.bus.queues) {
                    let current = if *name == machine.bus.level_name() { " current" } else { "" };
                    let _ = writeln!(out, "{name:3} {:#x}, {} words left{current}", queue.address, queue.left);
                }
            }
            "processors" => {
                let generation = machine.bus.set().generation();
                for other in machine.processors() {
                    let name = other.processor.name(generation);
                    let pc = other.pc;
                    let place = self.symbols.place(other, pc);
                    let text = instruction_at(other, pc);
                    let _ =
                        writeln!(out, "{name:4} {pc:04x} {place}: {text}; {} instructions executed", other.executed);
                }
            }
            "groups" => {
                for (number, group) in machine.bus.groups.iter().enumerate().filter(|(_, group)| group.header != 0) {
                    let _ = writeln!(out, "group {number}: header {:08x} at {:#x}", group.header, group.base);
                }
            }
            "stack" => {
                for entry in (0..machine.call_depth() as usize).rev() {
                    let address = machine.sqe[8 + entry];
                    let _ = writeln!(out, "{address:04x} {}", self.symbols.place(machine, address));
                }
            }
            "breakpoints" => {
                for (number, breakpoint) in &self.breakpoints {
                    let text = match *breakpoint {
                        Breakpoint::Address(address) => self.symbols.place(machine, address),
                        Breakpoint::Packet(opcode) => {
                            format!("packet {}", packet_label(opcode, machine.bus.set().generation()))
                        }
                        Breakpoint::Write(place, None) => format!("write to {}", place.name(machine)),
                        Breakpoint::Write(place, Some(value)) => {
                            format!("write of {value:08x} to {}", place.name(machine))
                        }
                    };
                    let _ = writeln!(out, "{number}: {text}");
                }
            }
            _ => return Err(format!("`{what}` cannot be dumped: see help")),
        }
        self.output.push_str(&out);
        Ok(())
    }
}

fn instruction_at(machine: &Machine, pc: u32) -> String {
    match machine.instruction(pc) {
        Some(instruction) => instruction_text(&instruction, machine.bus.set()),
        None => "no instruction".to_owned(),
    }
}

fn value_text(value: Option<u32>) -> String {
    value.map_or_else(|| "not mapped".to_owned(), |value| format!("{value:08x}"))
}

fn wide(text: &str) -> Parsed<u64> {
    let parsed = text.strip_prefix("0x").map_or_else(|| text.parse(), |hex| u64::from_str_radix(hex, 16));
    parsed.map_err(|_| format!("`{text}` is no number: use 17 or 0x11"))
}

fn number(text: &str) -> Parsed<u32> {
    u32::try_from(wide(text)?).map_err(|_| format!("{text} has more than 32 bits"))
}

fn opcode(machine: &Machine, text: &str) -> Parsed<u8> {
    match packet_of_label(text, machine.bus.set().generation()) {
        PacketLabel::Handler(opcode) | PacketLabel::OtherGeneration(opcode, _) => Ok(opcode),
        PacketLabel::None => {
            let opcode = number(text).ok().and_then(|opcode| u8::try_from(opcode).ok()).filter(|opcode| *opcode < 128);
            opcode.ok_or_else(|| format!("there is no packet `{text}`"))
        }
    }
}

impl Place {
    fn parse(machine: &Machine, space: &str, text: &str) -> Parsed<Self> {
        let named = |space| register_number(space, machine.bus.set(), text).map_or_else(|| number(text), Ok);
        match space {
            "gpr" => {
                let name = text.trim_start_matches('$');
                let number = if name == "rem" { Ok(register::REM) } else { u8::from_str_radix(name, 16) };
                let number = number.ok().filter(|number| *number < 0x1d);
                number.map(Place::Gpr).ok_or_else(|| format!("`{text}` is no register: use $02 or $rem"))
            }
            "register" => Ok(Place::Register(named(Space::Gpu)? & 0xffff)),
            "control" => Ok(Place::Control(named(Space::Control)? & 0xfff)),
            "memory" => match wide(text)? {
                address if address.is_multiple_of(4) => Ok(Place::Memory(address)),
                address => Err(format!("{address:#x} is not a multiple of 4")),
            },
            _ => Err(format!("`{space}` is none of gpr, register, memory and control")),
        }
    }

    fn after(self, index: u32) -> Self {
        match self {
            Place::Gpr(number) => Place::Gpr(number),
            Place::Register(number) => Place::Register((number + index) & 0xffff),
            Place::Control(number) => Place::Control((number + index) & 0xfff),
            Place::Memory(address) => Place::Memory(address.wrapping_add(u64::from(index) * 4)),
        }
    }

    fn name(self, machine: &Machine) -> String {
        let set = machine.bus.set();
        let named =
            |space, number: u32| register_name(space, set, number).map_or(String::new(), |name| format!(" {name}"));
        match self {
            Place::Gpr(register::REM) => "$rem".to_owned(),
            Place::Gpr(number) => format!("${number:02x}"),
            Place::Register(number) => format!("register {number:#06x}{}", named(Space::Gpu, number)),
            Place::Control(number) => format!("control {number:#05x}{}", named(Space::Control, number)),
            Place::Memory(address) => format!("memory {address:#x}"),
        }
    }

    fn read(self, machine: &Machine) -> Option<u32> {
        match self {
            Place::Gpr(number) => Some(machine.gpr[usize::from(number & 31)]),
            Place::Register(number) => Some(machine.bus.gpu[number as usize & 0xffff]),
            Place::Control(number) => Some(machine.bus.read_control(number)),
            Place::Memory(address) => machine.bus.memory.get(address),
        }
    }

    fn write(self, machine: &mut Machine, value: u32) -> Parsed<()> {
        match self {
            Place::Gpr(number) => machine.gpr[usize::from(number & 31)] = if number == 0 { 0 } else { value },
            Place::Register(number) => machine.bus.gpu[number as usize & 0xffff] = value,
            Place::Control(number) => machine.bus.write_control(number, value, [0; 2]),
            Place::Memory(address) => machine.store(address, value).map_err(|fault| fault.to_string())?,
        }
        Ok(())
    }
}
