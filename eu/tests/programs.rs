// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Random programs with nested branches and loops: each lane's result must be that of the lane alone (ISA-170).
//!
//! A program is a tree. It is executed lane by lane by walking the tree, and as code in the two ways of compilers: goto and
//! join, and if, else, endif, while, break and cont. The quick tier executes 100,000 instructions, the long one 10 million.

mod common;
mod random;

use std::fmt::Write;

use arctic_eu::exec::{self, Budget, Environment, Group, Host, Program, Stop, Thread, Way};
use arctic_eu::launch::memory::Space;
use random::Random;

/// Instructions to execute.
const GOAL: u64 = if cfg!(feature = "long-tests") { 10_000_000 } else { 100_000 };
/// Variables of a lane.
const VARIABLES: usize = 6;
const LANES: usize = 16;

/// Condition: the low bits of a variable against a number.
#[derive(Clone)]
struct Test {
    variable: usize,
    mask: u32,
    less: bool,
    limit: u32,
}

#[derive(Clone)]
enum Statement {
    /// `dst = a op b`; the operation is an index of [`OPERATIONS`].
    Assign(usize, usize, usize, usize),
    If(Test, Vec<Statement>, Vec<Statement>),
    /// Repeats the body while the loop's counter is below the low bits of a variable.
    Loop(usize, u32, Vec<Statement>),
    Break(Test),
    Continue(Test),
}

const OPERATIONS: [&str; 8] = ["add", "mul", "and", "or", "xor", "shl", "asr", "sel"];

fn operate(operation: usize, a: u32, b: u32) -> u32 {
    match OPERATIONS[operation] {
        "add" => a.wrapping_add(b),
        "mul" => a.wrapping_mul(b & 0xffff),
        "and" => a & b,
        "or" => a | b,
        "xor" => a ^ b,
        "shl" => a << (b & 31),
        "asr" => (a.cast_signed() >> (b & 31)).cast_unsigned(),
        _ => a.min(b),
    }
}

fn test(random: &mut Random) -> Test {
    Test {
        variable: random.below(VARIABLES),
        mask: [1, 3, 7, 15][random.below(4)],
        less: random.below(2) == 0,
        limit: random.below(9) as u32,
    }
}

fn block(random: &mut Random, depth: usize, in_loop: bool) -> Vec<Statement> {
    (0..1 + random.below(4))
        .map(|_| match random.below(if depth == 0 { 3 } else { 7 }) {
            0..=2 => Statement::Assign(
                random.below(8),
                random.below(VARIABLES),
                random.below(VARIABLES),
                random.below(VARIABLES),
            ),
            3 if in_loop => Statement::Break(test(random)),
            4 if in_loop => Statement::Continue(test(random)),
            5 => Statement::Loop(random.below(VARIABLES), [1, 3][random.below(2)], block(random, depth - 1, true)),
            _ => Statement::If(test(random), block(random, depth - 1, in_loop), block(random, depth - 1, in_loop)),
        })
        .collect()
}

/// How a block of a lane ended.
#[derive(PartialEq)]
enum Exit {
    Through,
    Break,
    Continue,
}

fn holds(test: &Test, v: &[u32; VARIABLES]) -> bool {
    let value = v[test.variable] & test.mask;
    if test.less { value < test.limit } else { value >= test.limit }
}

/// Executes a block for one lane.
fn walk(statements: &[Statement], v: &mut [u32; VARIABLES]) -> Exit {
    for statement in statements {
        match statement {
            Statement::Assign(operation, dst, a, b) => v[*dst] = operate(*operation, v[*a], v[*b]),
            Statement::If(test, yes, no) => {
                let way = walk(if holds(test, v) { yes } else { no }, v);
                if way != Exit::Through {
                    return way;
                }
            }
            Statement::Loop(variable, mask, body) => {
                let mut count = 0;
                let limit = v[*variable] & mask;
                loop {
                    if walk(body, v) == Exit::Break {
                        break;
                    }
                    count += 1;
                    if count >= limit {
                        break;
                    }
                }
            }
            Statement::Break(test) if holds(test, v) => return Exit::Break,
            Statement::Continue(test) if holds(test, v) => return Exit::Continue,
            _ => {}
        }
    }
    Exit::Through
}

/// Labels of the enclosing constructs.
#[derive(Clone, Copy)]
struct Scope {
    /// Where channels may wait next.
    nearest: usize,
    /// Continuation and exit of the loop.
    cont: usize,
    exit: usize,
}

struct Emitter {
    text: String,
    labels: usize,
    structured: bool,
    loops: usize,
}

impl Emitter {
    fn label(&mut self) -> usize {
        self.labels += 1;
        self.labels
    }

    fn line(&mut self, text: &str) {
        let _ = writeln!(self.text, "{text}");
    }

    fn place(&mut self, label: usize) {
        let _ = writeln!(self.text, "T{label}:");
    }

    /// Sets f0.0.
    fn test(&mut self, test: &Test) {
        let (variable, code) = (20 + test.variable * 2, if test.less { "lt" } else { "ge" });
        self.line(&format!("and (16|M0) r60.0<1>:ud r{variable}.0<1;1,0>:ud 0x{:X}:ud", test.mask));
        self.line(&format!("cmp (16|M0) ({code})f0.0 null<1>:ud r60.0<1;1,0>:ud 0x{:X}:ud", test.limit));
    }

    fn block(&mut self, statements: &[Statement], scope: Scope) {
        for statement in statements {
            self.statement(statement, scope);
        }
    }

    fn statement(&mut self, statement: &Statement, scope: Scope) {
        match statement {
            Statement::Assign(operation, dst, a, b) => {
                let [dst, a, b] = [dst, a, b].map(|variable| 20 + variable * 2);
                let text = match OPERATIONS[*operation] {
                    "mul" => format!("mul (16|M0) r{dst}.0<1>:d r{a}.0<1;1,0>:d r{b}.0<2;1,0>:uw"),
                    "sel" => format!("sel (16|M0) (lt)f0.0 r{dst}.0<1>:ud r{a}.0<1;1,0>:ud r{b}.0<1;1,0>:ud"),
                    name => format!("{name} (16|M0) r{dst}.0<1>:d r{a}.0<1;1,0>:d r{b}.0<1;1,0>:d"),
                };
                self.line(&text);
            }
            Statement::If(test, yes, no) => self.branch(test, yes, no, scope),
            Statement::Loop(variable, mask, body) => self.repeat(*variable, *mask, body, scope),
            Statement::Break(test) => self.leave(test, scope, scope.exit, "break"),
            Statement::Continue(test) => self.leave(test, scope, scope.cont, "cont"),
        }
    }

    fn branch(&mut self, test: &Test, yes: &[Statement], no: &[Statement], scope: Scope) {
        let (middle, otherwise, end) = (self.label(), self.label(), self.label());
        self.test(test);
        if self.structured {
            self.line(&format!("(f0.0) if (16|M0) T{otherwise} T{end}"));
            self.block(yes, Scope { nearest: middle, ..scope });
            self.place(middle);
            self.line(&format!("else (16|M0) T{end} T{end}"));
            self.place(otherwise);
            self.block(no, Scope { nearest: end, ..scope });
            self.place(end);
            self.line(&format!("endif (16|M0) T{}", scope.nearest));
        } else {
            self.line(&format!("(~f0.0) goto (16|M0) T{otherwise} T{otherwise}"));
            self.block(yes, Scope { nearest: otherwise, ..scope });
            self.line(&format!("goto (16|M0) T{otherwise} T{end}"));
            self.place(otherwise);
            self.line(&format!("join (16|M0) T{end}"));
            self.block(no, Scope { nearest: end, ..scope });
            self.place(end);
            self.line(&format!("join (16|M0) T{}", scope.nearest));
        }
    }

    fn repeat(&mut self, variable: usize, mask: u32, body: &[Statement], scope: Scope) {
        let (head, after, cont, exit) = (self.label(), self.label(), self.label(), self.label());
        // Counter and limit of each nesting level have registers of their own.
        let (count, limit) = (70 + self.loops * 4, 72 + self.loops * 4);
        self.loops += 1;
        self.line(&format!("mov (16|M0) r{count}.0<1>:ud 0x0:ud"));
        self.line(&format!("and (16|M0) r{limit}.0<1>:ud r{}.0<1;1,0>:ud 0x{mask:X}:ud", 20 + variable * 2));
        self.place(head);
        if !self.structured {
            self.line(&format!("join (16|M0) T{after}"));
            self.place(after);
        }
        self.block(body, Scope { nearest: cont, cont, exit });
        if self.structured {
            // Channels that continue wait at the while; the counter is theirs too, so they join before it.
            self.place(cont);
            self.line(&format!("endif (16|M0) T{exit}"));
        } else {
            self.place(cont);
            self.line(&format!("join (16|M0) T{exit}"));
        }
        self.line(&format!("add (16|M0) r{count}.0<1>:ud r{count}.0<1;1,0>:ud 0x1:ud"));
        self.line(&format!("cmp (16|M0) (lt)f0.0 null<1>:ud r{count}.0<1;1,0>:ud r{limit}.0<1;1,0>:ud"));
        if self.structured {
            self.place(exit);
            self.line(&format!("(f0.0) while (16|M0) T{head}"));
        } else {
            self.line(&format!("(f0.0) goto.b (16|M0) T{exit} T{head}"));
            self.place(exit);
            self.line(&format!("join (16|M0) T{}", scope.nearest));
        }
        self.loops -= 1;
    }

    fn leave(&mut self, test: &Test, scope: Scope, target: usize, name: &str) {
        self.test(test);
        // cont of the structured form waits at the end of the body, where an endif is.
        let name = if self.structured { name } else { "goto" };
        self.line(&format!("(f0.0) {name} (16|M0) T{} T{target}", scope.nearest));
    }
}

fn emit(program: &[Statement], structured: bool) -> String {
    let mut emitter = Emitter { text: String::new(), labels: 0, structured, loops: 0 };
    let end = emitter.label();
    emitter.block(program, Scope { nearest: end, cont: end, exit: end });
    emitter.place(end);
    emitter.line(if structured { "endif (16|M0) LAST" } else { "join (16|M0) LAST" });
    emitter.text += "LAST:\n";
    emitter.text += common::END;
    emitter.text
}

#[test]
fn each_lane_has_the_result_of_the_lane_alone() {
    let mut random = Random(5);
    let space = Space::new();
    let (mut executed, mut programs) = (0, 0);
    while executed < GOAL {
        let program = block(&mut random, 4, false);
        let mut start = [[0u32; VARIABLES]; LANES];
        for lane in &mut start {
            for value in lane.iter_mut() {
                *value = random.below(1 << 32) as u32;
            }
        }
        let mask = if random.below(3) == 0 { random.below(1 << 16) as u32 } else { 0xffff };
        for structured in [false, true] {
            let text = emit(&program, structured);
            let bytes = common::code(&text);
            for (way, host, on_demand) in [
                (Way::Fast, Host::detect(), false),
                (Way::General, Host::Portable, false),
                (Way::Fast, Host::Portable, true),
            ] {
                let mut thread = Thread::new(128, mask);
                let mut code = Program::translate(&bytes, 0, 128, host);
                if on_demand {
                    code = Program::new(0, 0, 128, host);
                    thread.start_at(0);
                }
                let mut fetch = |_: u64, address: u64, into: &mut [u8]| {
                    let count = into.len().min(bytes.len() - address as usize);
                    into[..count].copy_from_slice(&bytes[address as usize..][..count]);
                    Ok(count)
                };
                for (lane, values) in start.iter().enumerate() {
                    for (variable, value) in values.iter().enumerate() {
                        thread.set_grf(20 + variable * 2 + lane / 8, lane % 8, *value);
                    }
                }
                let mut group = Group::default();
                let mut memory = &space;
                let mut environment = Environment::new(&mut memory, &mut group);
                let stop = loop {
                    let budget = Budget::instructions(1_000_000);
                    match exec::run(&code, &mut thread, &mut environment, budget, way, &mut ()) {
                        Stop::Fetch(address) => code.extend(address, &mut fetch).unwrap(),
                        stop => break stop,
                    };
                };
                assert_eq!(stop, Stop::End, "{text}");
                executed += thread.executed;
                for (lane, values) in start.iter().enumerate() {
                    let mut expected = *values;
                    if mask >> lane & 1 != 0 {
                        walk(&program, &mut expected);
                    }
                    for (variable, value) in expected.iter().enumerate() {
                        let found = thread.grf(20 + variable * 2 + lane / 8, lane % 8);
                        assert_eq!(found, *value, "lane {lane}, variable {variable}, mask {mask:#x}, {way:?}\n{text}");
                    }
                }
            }
        }
        programs += 1;
    }
    println!("{programs} programs, {executed} instructions");
}
