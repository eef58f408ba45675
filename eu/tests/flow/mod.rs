// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Random programs with control flow, as trees of statements turned into code. See `control_flow.rs`.
#![allow(clippy::cast_possible_truncation, reason = "numbers of registers and lanes are small")]

pub mod operations;

use std::collections::HashMap;

use arctic_eu::isa::table::by_name;
use arctic_eu::isa::{Destination, Instruction, Place, Region, Source, Type, decode, encode};
use arctic_eu::text::assemble;

use crate::random::Random;
use crate::reference::walk::Program;

/// Registers of a program. Each channel has a dword of each variable; all channels share the uniform dwords.
pub const VARIABLES: usize = 10;
pub const FIRST_VARIABLE: u8 = 10;
/// Counters of loops, one for each level of nesting.
pub const FIRST_COUNTER: u8 = 50;
/// Return addresses: of the main program's calls and of calls in functions.
const RETURNS: [u8; 2] = [62, 63];
pub const UNIFORM: u8 = 64;
/// First of the two uniform dwords with targets of branches.
const TARGETS: u8 = 6;
/// Registers that are never written begin here.
pub const CONSTANTS: u8 = 65;
/// Level of nesting at most.
const DEPTH: usize = 4;

/// An end of a block, to be known when the program is complete.
type Label = usize;

struct Item {
    instruction: Instruction,
    jip: Option<Label>,
    uip: Option<Label>,
    /// The immediate of this instruction is a target, which a branch reads from a register.
    target: Option<Target>,
}

/// A value of a register that a branch reads.
#[derive(Clone, Copy)]
enum Target {
    /// Bytes from the branch, the item with this number. ISA-022.
    Distance(Label, usize),
    /// Address relative to the instruction base. ISA-176.
    Address(Label),
}

/// The loop in which a statement is.
#[derive(Clone, Copy)]
enum Loop {
    None,
    /// With `while` at the label.
    Structured(Label),
    /// With a join before the backward goto, and a join behind it.
    Goto {
        again: Label,
        exit: Label,
    },
}

/// Where a statement is.
#[derive(Clone, Copy)]
struct Context {
    depth: usize,
    /// The next place at which channels of this thread may wait.
    end: Label,
    around: Loop,
    /// No channel waits elsewhere, unless it has halted.
    convergent: bool,
    /// Level of nested loops.
    level: usize,
    /// Number of the function, 0 in the main program.
    function: usize,
}

pub struct Generator {
    pub random: Random,
    /// Channels: 8, 16 or 32.
    pub size: u8,
    items: Vec<Item>,
    /// Index of the item at a label.
    labels: Vec<Option<usize>>,
    halt: Label,
    halts: bool,
    functions: [Label; 2],
    called: [bool; 2],
}

/// A generated program.
pub struct Generated {
    pub code: Vec<u8>,
    pub program: Program,
    pub size: u8,
}

impl Generator {
    pub fn new(seed: u64) -> Generator {
        let mut random = Random(seed);
        let size = [8, 16, 16, 32][random.below(4)];
        Generator {
            random,
            size,
            items: Vec::new(),
            labels: Vec::new(),
            halt: 0,
            halts: false,
            functions: [0; 2],
            called: [false; 2],
        }
    }

    pub fn chance(&mut self, one_in: usize) -> bool {
        self.random.below(one_in) == 0
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.random.below(from.len())]
    }

    fn label(&mut self) -> Label {
        self.labels.push(None);
        self.labels.len() - 1
    }

    fn here(&mut self, label: Label) {
        self.labels[label] = Some(self.items.len());
    }

    /// A branch of all channels.
    fn branch(&self, name: &str) -> Instruction {
        let mut into = Instruction::new(by_name(name).unwrap());
        into.size = self.size;
        into
    }

    fn emit(&mut self, instruction: Instruction) {
        self.items.push(Item { instruction, jip: None, uip: None, target: None });
    }

    fn jump(&mut self, instruction: Instruction, jip: Label, uip: Label) {
        self.items.push(Item { instruction, jip: Some(jip), uip: Some(uip), target: None });
    }

    /// Writes a target to a uniform dword.
    fn set_target(&mut self, dword: u8, target: Target) {
        let mut set = Instruction::new(by_name("mov").unwrap());
        set.no_mask = true;
        let place = Place::Grf { reg: UNIFORM, byte: 4 * dword };
        set.dst = Destination { place, stride: 1, ty: Type::D };
        set.src[0] = Source::Imm { ty: Type::D, value: 0 };
        self.items.push(Item { instruction: set, jip: None, uip: None, target: Some(target) });
    }

    /// A forward branch of channels with the predicate: goto, brd or brc, the latter two with targets in registers, too.
    /// ISA-171, ISA-177.
    fn forward(&mut self, mut condition: Instruction, jip: Label, uip: Label) {
        let name =
            if jip == uip { self.pick(&["goto", "goto", "brd", "brc"]) } else { self.pick(&["goto", "goto", "brc"]) };
        condition.row = by_name(name).unwrap();
        if name == "goto" || !self.chance(2) {
            return self.jump(condition, jip, uip);
        }
        let targets = if name == "brd" { &[jip][..] } else { &[jip, uip] };
        let branch = self.items.len() + targets.len();
        for (dword, target) in (TARGETS..).zip(targets) {
            self.set_target(dword, Target::Distance(*target, branch));
        }
        condition.register_target = true;
        let place = Place::Grf { reg: UNIFORM, byte: 4 * TARGETS };
        condition.src[0] = Source::Reg { place, region: Region::SCALAR, ty: Type::D, abs: false, negate: false };
        self.emit(condition);
    }

    /// Flags of channels: those of SIMD32 have both words. The last one is that of jmpi.
    pub fn flag(&mut self) -> u8 {
        if self.size == 32 { 0 } else { self.random.below(3) as u8 }
    }

    pub fn jump_flag(&self) -> u8 {
        if self.size == 32 { 2 } else { 3 }
    }

    fn predicated(&mut self, name: &str) -> Instruction {
        let mut into = self.branch(name);
        into.predicate = 1;
        into.flag = self.flag();
        into.invert = self.chance(2);
        into
    }

    /// Makes a program.
    pub fn generate(mut self) -> Generated {
        self.halt = self.label();
        self.functions = [self.label(), self.label()];
        self.halts = self.chance(3);
        let end = self.halt;
        let top = Context { depth: 0, end, around: Loop::None, convergent: true, level: 0, function: 0 };
        self.block(top);
        // Compilers close the program with a halt to the target of all halts. ISA-174.
        let halt = self.branch("halt");
        self.jump(halt, end, end);
        self.here(end);
        let last = decode(&assemble("(W) send.gtwy (1|M0) null r127 null:0 0x0 0x02000010 {EOT}\n").unwrap()).unwrap();
        self.emit(last);
        for function in 0..2 {
            if self.called[function] {
                self.function(function);
            }
        }
        self.layout()
    }

    /// A subroutine: no halts, and all channels are back at its end. ISA-176.
    fn function(&mut self, function: usize) {
        let (start, halts) = (self.functions[function], self.halts);
        self.halts = false;
        self.here(start);
        let end = self.label();
        let level = 1 + function;
        let context =
            Context { depth: DEPTH - 2, end, around: Loop::None, convergent: false, level, function: function + 1 };
        self.block(context);
        self.here(end);
        let mut ret = self.branch("ret");
        ret.register_target = true;
        ret.src[0] = register(RETURNS[function], Type::D);
        self.emit(ret);
        self.halts = halts;
    }

    fn block(&mut self, context: Context) {
        for _ in 0..1 + self.random.below(4) {
            self.statement(context);
        }
    }

    fn statement(&mut self, context: Context) {
        let nested = context.depth < DEPTH;
        match self.random.below(20) {
            0 | 1 if nested => self.branches(context),
            2 | 3 if nested => self.goto_branches(context),
            4 if nested && context.level < 3 => self.structured_loop(context),
            5 if nested && context.level < 3 => self.goto_loop(context),
            6 | 7 => self.leave(context),
            8 if self.halts => {
                let halt = self.predicated("halt");
                let target = self.halt;
                self.jump(halt, context.end, target);
            }
            9 if context.function < 2 && context.level < 2 => self.call(context),
            10 if context.convergent && nested => self.uniform_loop(context),
            11..=13 => self.compare(),
            _ => {
                for _ in 0..1 + self.random.below(3) {
                    self.operation();
                }
            }
        }
    }

    /// if, else, endif. ISA-173.
    fn branches(&mut self, context: Context) {
        let end = self.label();
        let inner = Context { depth: context.depth + 1, end, convergent: false, ..context };
        let mut condition = self.predicated("if");
        condition.size = self.size;
        if self.chance(2) {
            // JIP is the instruction after the else; the block before it ends at the else.
            let (middle, after) = (self.label(), self.label());
            self.jump(condition, after, end);
            self.block(Context { end: middle, ..inner });
            self.here(middle);
            let other = self.branch("else");
            self.jump(other, end, end);
            self.here(after);
            self.block(inner);
        } else {
            self.jump(condition, end, end);
            self.block(inner);
        }
        self.here(end);
        self.join("endif", context);
    }

    /// An endif or join that goes to the next place with waiting channels, or for the outermost simply on. ISA-172.
    fn join(&mut self, name: &str, context: Context) {
        let join = self.branch(name);
        let next = if context.convergent && self.chance(2) {
            let next = self.label();
            self.labels[next] = Some(self.items.len() + 1);
            next
        } else {
            context.end
        };
        self.jump(join, next, next);
    }

    /// Two blocks or one by goto and join. ISA-171.
    fn goto_branches(&mut self, context: Context) {
        let end = self.label();
        let inner = Context { depth: context.depth + 1, end, convergent: false, ..context };
        let condition = self.predicated("goto");
        if self.chance(2) {
            let other = self.label();
            self.forward(condition, other, other);
            self.block(Context { end: other, ..inner });
            let skip = self.branch("goto");
            self.forward(skip, other, end);
            self.here(other);
            let join = self.branch("join");
            self.jump(join, end, end);
            self.block(inner);
        } else {
            self.forward(condition, end, end);
            self.block(inner);
        }
        self.here(end);
        self.join("join", context);
    }

    /// Sets a counter, in all channels that enter the loop.
    fn count_from(&mut self, level: usize) {
        let count = 1 + self.random.below(5) as u64;
        for (part, channel) in self.parts() {
            let mut set = Instruction::new(by_name("mov").unwrap());
            (set.size, set.channel) = (part, channel);
            set.dst = dword(self.counter(level) + channel / 8, Type::D);
            set.src[0] = Source::Imm { ty: Type::D, value: count };
            self.emit(set);
        }
    }

    /// Counts down; the flag says that the counter is below 0.
    fn count_down(&mut self, level: usize, flag: u8) {
        for (part, channel) in self.parts() {
            let place = self.counter(level) + channel / 8;
            let mut add = Instruction::new(by_name("add").unwrap());
            (add.size, add.channel) = (part, channel);
            (add.flag, add.modifier) = (flag, 5);
            add.dst = dword(place, Type::D);
            add.src[0] = packed(place, Type::D);
            add.src[1] = Source::Imm { ty: Type::D, value: 0xffff_ffff };
            self.emit(add);
        }
    }

    fn counter(&self, level: usize) -> u8 {
        FIRST_COUNTER + level as u8 * (self.size / 8)
    }

    /// A loop closed by while, left by break. ISA-174.
    fn structured_loop(&mut self, context: Context) {
        let (head, end) = (self.label(), self.label());
        self.count_from(context.level);
        self.here(head);
        let flag = self.flag();
        self.count_down(context.level, flag);
        let mut leave = self.branch("break");
        (leave.predicate, leave.flag) = (1, flag);
        self.jump(leave, end, end);
        self.block(Context {
            depth: context.depth + 1,
            end,
            around: Loop::Structured(end),
            convergent: false,
            level: context.level + 1,
            ..context
        });
        self.here(end);
        let again = if self.chance(2) { self.branch("while") } else { self.predicated("while") };
        self.jump(again, head, head);
    }

    /// A loop closed by a backward goto. ISA-171.
    fn goto_loop(&mut self, context: Context) {
        let (head, again, exit) = (self.label(), self.label(), self.label());
        self.count_from(context.level);
        self.here(head);
        let flag = self.flag();
        self.count_down(context.level, flag);
        let mut leave = self.branch("goto");
        (leave.predicate, leave.flag) = (1, flag);
        self.jump(leave, again, exit);
        self.block(Context {
            depth: context.depth + 1,
            end: again,
            around: Loop::Goto { again, exit },
            convergent: false,
            level: context.level + 1,
            ..context
        });
        self.here(again);
        let join = self.branch("join");
        self.jump(join, exit, exit);
        let mut back = if self.chance(2) { self.branch("goto") } else { self.predicated("goto") };
        back.acc_write = true;
        self.jump(back, exit, head);
        self.here(exit);
        self.join("join", context);
    }

    /// Leaves the innermost loop, or begins it anew.
    fn leave(&mut self, context: Context) {
        let leaves = self.chance(2);
        match context.around {
            Loop::None => self.operation(),
            Loop::Structured(end) => {
                let branch = self.predicated(if leaves { "break" } else { "cont" });
                self.jump(branch, context.end, end);
            }
            Loop::Goto { again, exit } => {
                let branch = self.predicated("goto");
                self.forward(branch, context.end, if leaves { exit } else { again });
            }
        }
    }

    /// A call, by some channels or all, of a distance or of an address, which can be in a register. ISA-176.
    fn call(&mut self, context: Context) {
        let function = context.function;
        self.called[function] = true;
        let name = self.pick(&["call", "call", "calla"]);
        let mut call = if self.chance(3) { self.predicated(name) } else { self.branch(name) };
        call.dst = dword(RETURNS[function], Type::D);
        let target = self.functions[function];
        if self.chance(3) {
            let branch = self.items.len() + 1;
            let value = if name == "call" { Target::Distance(target, branch) } else { Target::Address(target) };
            self.set_target(TARGETS, value);
            call.register_target = true;
            let place = Place::Grf { reg: UNIFORM, byte: 4 * TARGETS };
            call.src[0] = Source::Reg { place, region: Region::SCALAR, ty: Type::D, abs: false, negate: false };
            return self.emit(call);
        }
        self.jump(call, target, target);
    }

    /// A loop of all channels together by jmpi: its counter is uniform. ISA-175.
    fn uniform_loop(&mut self, context: Context) {
        let head = self.label();
        let place = Place::Grf { reg: UNIFORM, byte: 4 * context.depth as u8 };
        let mut set = Instruction::new(by_name("mov").unwrap());
        set.no_mask = true;
        set.dst = Destination { place, stride: 1, ty: Type::D };
        set.src[0] = Source::Imm { ty: Type::D, value: 1 + self.random.below(4) as u64 };
        self.emit(set);
        self.here(head);
        self.block(Context { depth: context.depth + 1, ..context });
        let mut add = Instruction::new(by_name("add").unwrap());
        add.no_mask = true;
        (add.flag, add.modifier) = (self.jump_flag(), 3);
        add.dst = set.dst;
        add.src[0] = Source::Reg { place, region: Region::SCALAR, ty: Type::D, abs: false, negate: false };
        add.src[1] = Source::Imm { ty: Type::W, value: 0xffff };
        self.emit(add);
        let mut jump = Instruction::new(by_name("jmpi").unwrap());
        jump.no_mask = true;
        (jump.predicate, jump.flag) = (1, self.jump_flag());
        self.jump(jump, head, head);
    }

    /// Parts of the channels that one instruction covers, as size and first channel.
    pub fn parts(&mut self) -> Vec<(u8, u8)> {
        let part = self.size.min(self.pick(&[8, 16, 16, 32]));
        (0..self.size / part).map(|index| (part, index * part)).collect()
    }

    /// Addresses of the items, then distances of the branches, then bytes. Some instructions are compacted.
    fn layout(mut self) -> Generated {
        let base = self.random.below(64) as u32 * 64;
        for item in &mut self.items {
            let mut small = item.instruction;
            small.compacted = true;
            if item.jip.is_none() && item.target.is_none() && self.random.below(2) == 0 && encode(&small).is_ok() {
                item.instruction = small;
            }
        }
        let mut addresses = vec![0u32];
        for item in &self.items {
            addresses.push(addresses.last().unwrap() + item.instruction.length());
        }
        let mut code = Vec::new();
        let mut instructions = HashMap::new();
        for (item, &address) in self.items.iter().zip(&addresses) {
            let mut instruction = item.instruction;
            let at = |label: Label| addresses[self.labels[label].unwrap()];
            let distance = |label: Label| at(label) as i32 - address as i32;
            if let (Some(jip), Some(uip)) = (item.jip, item.uip) {
                (instruction.jip, instruction.uip) = (distance(jip), distance(uip));
                if instruction.row.name == "calla" {
                    instruction.jip = (base + at(jip)) as i32;
                }
            }
            if let Some(target) = item.target {
                let value = match target {
                    Target::Distance(label, branch) => at(label).wrapping_sub(addresses[branch]),
                    Target::Address(label) => base + at(label),
                };
                instruction.src[0] = Source::Imm { ty: Type::D, value: value.into() };
            }
            code.extend(encode(&instruction).unwrap().bytes());
            instructions.insert(address, instruction);
        }
        Generated { code, program: Program { instructions, base }, size: self.size }
    }
}

/// A packed destination.
pub fn dword(reg: u8, ty: Type) -> Destination {
    Destination { place: Place::Grf { reg, byte: 0 }, stride: 1, ty }
}

/// A packed source.
pub fn packed(reg: u8, ty: Type) -> Source {
    Source::Reg { place: Place::Grf { reg, byte: 0 }, region: Region::PACKED, ty, abs: false, negate: false }
}

fn register(reg: u8, ty: Type) -> Source {
    Source::Reg { place: Place::Grf { reg, byte: 0 }, region: Region::SCALAR, ty, abs: false, negate: false }
}
