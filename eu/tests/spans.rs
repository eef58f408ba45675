// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Random load/store cache messages: what a memory does for all lanes at once, and shared local memory, are compared with a
//! memory that is asked lane by lane (ISA-213 to ISA-216, ISA-221, ISA-222).

mod common;
mod random;

use arctic_eu::exec::memory::{Access, Atomic, Image, Memory, MemoryFault, Sampler, Surface};
use arctic_eu::exec::{self, Budget, Environment, Group, Host, Program, Stop, Thread, Way};
use arctic_eu::launch::memory::{Space, State};
use common::{END, code};
use random::Random;

const CASES: usize = 10_000;
/// Bytes of the buffer, and those of them that the surface has.
const BYTES: usize = 1024;
const SURFACE: u64 = 1000;

/// A memory that has accesses of single lanes only.
struct LaneByLane<'s>(&'s Space);

impl Memory for LaneByLane<'_> {
    fn read(&mut self, surface: Surface, at: u64, element: usize, bytes: &mut [u8]) -> Result<Access, MemoryFault> {
        self.0.read(surface, at, element, bytes)
    }

    fn write(&mut self, surface: Surface, at: u64, element: usize, bytes: &[u8]) -> Result<Access, MemoryFault> {
        self.0.write(surface, at, element, bytes)
    }

    fn atomic(
        &mut self,
        surface: Surface,
        at: u64,
        size: u32,
        operation: Atomic,
        operands: [u64; 2],
    ) -> Result<Option<u64>, MemoryFault> {
        self.0.atomic(surface, at, size, operation, operands)
    }

    fn image(&mut self, surface: Surface) -> Result<Image, MemoryFault> {
        self.0.image(surface)
    }

    fn sampler(&mut self, pointer: Option<u32>, index: u8) -> Result<Sampler, MemoryFault> {
        self.0.sampler(pointer, index)
    }
}

/// A message and the state before it.
struct Case {
    text: String,
    thread: Thread,
    contents: Vec<u8>,
}

/// What a message leaves.
#[derive(PartialEq)]
struct Outcome {
    stop: Stop,
    file: Vec<u8>,
    contents: Vec<u8>,
    outside: u64,
    first_outside: Option<(u32, u32)>,
}

/// The surface of the message, and whether its addresses are virtual.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Flat,
    Table,
    Local,
}

impl Case {
    /// A message of `kind` at addresses from `base` on.
    fn new(random: &mut Random, kind: Kind, base: u64) -> Case {
        let size = [1, 2, 4, 8, 16, 16, 16, 32][random.below(8)];
        let wide = random.below(3) == 0;
        let mut thread = Thread::new(128, random.next() as u32 | if random.below(2) == 0 { !0 } else { 0 });
        for register in 0..128 {
            for dword in 0..8 {
                thread.set_grf(register, dword, random.next() as u32);
            }
        }
        let operation = [0, 0, 0, 4, 4, 2, 6, 12, 10, 8, 18, 24, 14][random.below(13)];
        let (atomic, quad) = (operation >= 8, matches!(operation, 2 | 6));
        let form = if atomic { [2, 2, 3, 5][random.below(4)] } else { [2, 2, 2, 0, 1, 3, 4, 5, 6][random.below(9)] };
        let block = size == 1 && !atomic && !quad && random.below(2) == 0;
        let form = if block { 2 + random.below(2) as u32 } else { form };
        let vector = match (atomic, quad) {
            (true, _) => 0,
            (_, true) => 1 + random.below(15) as u32,
            _ if block => random.below(8) as u32,
            _ => [0, 0, 0, 1, 2, 3, 4, 5][random.below(8)],
        };
        // Consecutive addresses, strides, one for all, and any; some beyond the surface or the buffer.
        let (start, stride) = (random.below(1100) as u64, [4, 4, 4, 8, 16, 1, 0, 12][random.below(8)]);
        let aligned = if atomic || random.below(3) > 0 { !7 } else { !0 };
        let source = [10, 126, 127, 60][random.below(4)];
        for lane in 0..size {
            let offset = match random.below(12) {
                0 => random.below(1100) as u64,
                _ => start + lane as u64 * stride,
            };
            let address = base.wrapping_add(offset & aligned);
            let dword = source * 8 + lane * if wide { 2 } else { 1 };
            let mut set = |index: usize, value: u32| thread.set_grf(index / 8 % 128, index % 8, value);
            set(dword, address as u32);
            if wide {
                set(dword + 1, (address >> 32) as u32);
            }
        }
        let (function, surface) = match kind {
            Kind::Flat => ("ugm", 0),
            Kind::Table => ("ugm", 3 << 29),
            Kind::Local => ("slm", 0),
        };
        let mut desc = 15 << 25 | 31 << 20 | surface | vector << 12 | form << 9 | operation as u32;
        desc |= if wide { 3 << 7 } else { 2 << 7 } | if block { 1 << 15 } else { 0 };
        let extended = if kind == Kind::Table { "0x01000000" } else { "0x0" };
        let dst = [30, 120, 10, source][random.below(4)];
        let data = [40, 124, 12][random.below(3)];
        let stores = operation == 4 || operation == 6 || atomic;
        let dst = if stores && !atomic { "null".to_owned() } else { format!("r{dst}") };
        let data = if stores { format!("r{data}:31") } else { "null:0".to_owned() };
        let contents = random.bytes(BYTES);
        let text = format!("send.{function} ({size}|M0) {dst} r{source} {data} {extended} {desc:#010X}");
        Case { text, thread, contents }
    }

    fn space(&self) -> (Space, u64) {
        let mut space = Space::new();
        let start = space.allocate_with("buffer", &self.contents).unwrap();
        space.add_state(State::Buffer { start, size: SURFACE });
        space.bindings = vec![(1, 0)];
        (space, start)
    }

    /// Executes the message. The contents afterwards are those of the buffer, or of local memory if there is some.
    fn run(&self, text: &str, slm: usize, at_once: bool) -> Outcome {
        let program = Program::translate(&code(&format!("{text}\n{END}")), 0, 128, Host::detect());
        let (space, start) = self.space();
        let (mut all, mut single) = (&space, LaneByLane(&space));
        let memory: &mut dyn Memory = if at_once { &mut all } else { &mut single };
        let mut group = Group { slm: self.contents[..slm].to_vec(), ..Group::default() };
        let mut environment = Environment::new(memory, &mut group);
        let mut thread = self.thread.clone();
        let stop = exec::run(&program, &mut thread, &mut environment, Budget::instructions(9), Way::Fast, &mut ());
        let (outside, first_outside) = (environment.outside, environment.first_outside);
        let contents = if slm > 0 { group.slm } else { space.peek(start, BYTES) };
        let file = thread.file[..arctic_eu::exec::thread::GRF_BYTES].to_vec();
        Outcome { stop, file, contents, outside, first_outside }
    }
}

fn compare(case: &Case, all: &Outcome, single: &Outcome) {
    let text = &case.text;
    assert_eq!(all.stop, single.stop, "{text}");
    assert_eq!((all.outside, all.first_outside), (single.outside, single.first_outside), "{text}");
    let differs = |a: &[u8], b: &[u8]| a.iter().zip(b).position(|(a, b)| a != b);
    assert_eq!(differs(&all.contents, &single.contents), None, "memory: {text}");
    if all.stop == Stop::End {
        assert_eq!(differs(&all.file, &single.file), None, "registers: {text}");
    }
}

#[test]
fn lanes_at_once_do_what_each_does() {
    let mut random = Random(7);
    for _ in 0..CASES {
        let kind = [Kind::Flat, Kind::Table][random.below(2)];
        // The first buffer of a space is at 64 KiB.
        let case = Case::new(&mut random, kind, if kind == Kind::Flat { 1 << 16 } else { 0 });
        compare(&case, &case.run(&case.text, 0, true), &case.run(&case.text, 0, false));
    }
}

/// The same message to a surface with the contents and the size of the local memory.
#[test]
fn local_memory_does_what_a_surface_does() {
    let mut random = Random(8);
    for _ in 0..CASES {
        let case = Case::new(&mut random, Kind::Local, 0);
        let surface = case.text.replace("send.slm", "send.ugm").replace(" 0x0 0x1", " 0x01000000 0x7");
        let mut local = case.run(&case.text, SURFACE as usize, true);
        let mut other = case.run(&surface, 0, false);
        local.contents.truncate(SURFACE as usize);
        other.contents.truncate(SURFACE as usize);
        // Faults name different places.
        if let (Stop::Fault(local), Stop::Fault(other)) = (&mut local.stop, &mut other.stop) {
            (local.access, other.access) = (None, None);
        }
        compare(&case, &local, &other);
    }
}
