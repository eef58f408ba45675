// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Each operation on each pair of types, on random values with special ones, against a reference that is written from the
//! document on the ISA and shares no code with the interpreter (ISA-273).
//!
//! The quick tier has 200 lanes a pair; `--features long-tests` has 20,000.

mod random;
mod reference;

use arctic_eu::exec::memory::{Access, Atomic, Image, Memory, Sampler, Surface};
use arctic_eu::exec::thread::{ACC, CR, FLAGS};
use arctic_eu::exec::{self, Code, Environment, FaultKind, Group, Host, Stop, Thread, Way};
use arctic_eu::isa::table::{Execute, Format, Lane, Row, TABLE};
use arctic_eu::isa::{self, Destination, Instruction, Place, Region, Source, Type};
use random::Random;
use reference::{Context, Operand};

const LANES: usize = if cfg!(feature = "long-tests") { 20_000 } else { 200 };

/// Memory that does not exist.
struct Nothing;

impl Memory for Nothing {
    fn read(&self, _: Surface, _: u64, _: &mut [u8]) -> Result<Access, FaultKind> {
        Err(FaultKind::Address)
    }
    fn write(&self, _: Surface, _: u64, _: &[u8]) -> Result<Access, FaultKind> {
        Err(FaultKind::Address)
    }
    fn atomic(&self, _: Surface, _: u64, _: u32, _: Atomic, _: [u64; 2]) -> Result<Option<u64>, FaultKind> {
        Err(FaultKind::Address)
    }
    fn image(&self, _: Surface) -> Result<Image, FaultKind> {
        Err(FaultKind::Surface)
    }
    fn sampler(&self, _: Option<u32>, _: u8) -> Result<Sampler, FaultKind> {
        Err(FaultKind::Surface)
    }
}

impl Random {
    fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }

    /// Bits of a type, special values often.
    fn value(&mut self, ty: Type) -> u64 {
        let bits = ty.size() * 8;
        let mask = if bits == 64 { !0 } else { (1 << bits) - 1 };
        let edges: &[u64] = match ty {
            Type::F => &[
                0,
                0x8000_0000,
                1,
                0x8000_0001,
                0x7f_ffff,
                0x80_0000,
                0x3f80_0000,
                0xbf80_0000,
                0x7f7f_ffff,
                0x7f80_0000,
                0xff80_0000,
                0x7fc0_0000,
                0x7f80_0001,
                0x3f00_0000,
                0x4b00_0001,
                0x4f00_0000,
                0xcf00_0000,
                0x4f80_0000,
            ],
            Type::Hf => &[0, 0x8000, 1, 0x3ff, 0x400, 0x3c00, 0xbc00, 0x7bff, 0x7c00, 0xfc00, 0x7e00, 0x7c01, 0x3800],
            Type::Bf => &[0, 0x8000, 1, 0x80, 0x3f80, 0x7f80, 0xff80, 0x7fc0],
            _ => &[0, 1, 2, !0, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xffff, 0x7fff_ffff, 0x8000_0000, 31, 32],
        };
        if self.chance(4) {
            return edges[self.below(edges.len())] & mask;
        }
        if ty == Type::F && self.chance(2) {
            // Close exponents, so that sums cancel.
            return self.next() & 0x80ff_ffff | (120 + self.next() % 16) << 23;
        }
        self.next() & mask
    }
}

/// Types of the sources of a row that go with these of the destination, one combination for each test.
fn combinations(row: &Row) -> Vec<(Type, Vec<Type>)> {
    let mut all = Vec::new();
    for (dsts, srcs) in row.types {
        for dst in *dsts {
            for src in *srcs {
                all.push((*dst, vec![*src; 3]));
                for other in *srcs {
                    if other != src && (row.format == Format::Binary || row.format == Format::Ternary) {
                        all.push((*dst, vec![*src, *other, *src]));
                    }
                }
            }
        }
    }
    all.retain(|(dst, srcs)| {
        let float = srcs[0].is_float();
        // Three sources have one kind of types in their encoding.
        row.format != Format::Ternary || srcs.iter().all(|ty| ty.is_float() == float) && dst.is_float() == float
    });
    all
}

fn same(ty: Type, a: u64, b: u64) -> bool {
    let nan = |bits: u64| {
        let format = reference::format(ty);
        ty.is_float()
            && bits & ((1 << (format.0 + format.1)) - 1) > u64::from(reference::exact::infinity(format, false))
    };
    a == b || nan(a) && nan(b)
}

struct Test {
    row: &'static Row,
    lane: Lane,
    dst: Type,
    srcs: Vec<Type>,
}

impl Test {
    /// An instruction with random modifiers: 8 or 16 lanes, sources in r10, r20, r30, destination in r40.
    fn instruction(&self, random: &mut Random) -> Instruction {
        let row = self.row;
        let mut into = Instruction::new(row);
        into.size = [8, 16][random.below(2)];
        into.dst = Destination {
            place: Place::Grf { reg: 40, byte: 0 },
            stride: if random.chance(3) { 2 } else { 1 },
            ty: self.dst,
        };
        let has = |letter| row.modifiers.contains(letter);
        into.saturate = has('S') && random.chance(3);
        let compares = matches!(self.lane, Lane::Cmp | Lane::Csel) || self.lane == Lane::Sel && random.chance(2);
        if compares || has('C') && self.lane != Lane::Sel && random.chance(2) {
            into.modifier = [1, 2, 3, 4, 5, 6][random.below(6)];
            if self.lane == Lane::Sel {
                into.modifier = [4, 5][random.below(2)];
            }
            into.flag = random.below(4) as u8;
        }
        // ISA-066: sel has either a predicate or a condition.
        let predicated = if self.lane == Lane::Sel { into.modifier == 0 } else { random.chance(3) };
        // Half of the instructions have nothing but their operands, as most of a compiler's have.
        if random.chance(2) && !compares {
            (into.saturate, into.modifier) = (false, 0);
        } else if has('P') && predicated {
            into.predicate = 1;
            into.invert = random.chance(2);
            if into.modifier == 0 {
                into.flag = random.below(4) as u8;
            }
        }
        into.acc_write = matches!(self.lane, Lane::Addc | Lane::Subb) || self.lane == Lane::Mach && random.chance(2);
        into.function = random.next() as u8;
        for (index, source) in into.src.iter_mut().enumerate().take(row.sources()) {
            let ty = self.srcs[index];
            let place = Place::Grf { reg: 10 * (index as u8 + 1), byte: 0 };
            let ternary = matches!(row.format, Format::Ternary | Format::Bfn);
            let region = match random.below(3) {
                0 => Region::SCALAR,
                1 if !ternary => Region { vstride: Some(2), width: 1, hstride: 0 },
                _ => Region::PACKED,
            };
            let modifies = has('M') && !matches!(ty, Type::Uq | Type::Q);
            let logic = row.is_logic();
            *source = Source::Reg {
                place,
                region,
                ty,
                abs: modifies && !logic && random.chance(4),
                negate: modifies && random.chance(4),
            };
        }
        into
    }

    fn run(&self, lanes: usize) {
        let mut random = Random(u64::from(self.row.code) << 32 | self.dst as u64 * 64 + self.srcs[0] as u64);
        let mut done = 0;
        while done < lanes {
            let instruction = self.instruction(&mut random);
            let size = usize::from(instruction.size);
            let mut thread = Thread::new(128, if random.chance(2) { 0xffff } else { 0x7f7b });
            let modes = [0x4c0, 0x4c0, 0x4f0, 0x4d0, 0x4e0, 0, 0x80, 0x400][random.below(8)];
            thread.set_u32(CR, modes);
            thread.update_modes();
            for (index, ty) in self.srcs.iter().enumerate() {
                let unit = ty.size() as usize;
                for element in 0..32 {
                    let value = random.value(*ty).to_le_bytes();
                    let at = (index + 1) * 320 + element * unit;
                    thread.file[at..at + unit].copy_from_slice(&value[..unit]);
                }
            }
            let flags = [random.next() as u32, random.next() as u32];
            thread.set_u32(FLAGS, flags[0]);
            thread.set_u32(FLAGS + 4, flags[1]);
            let encoded = isa::encode(&instruction).unwrap();
            let code = [encoded.bytes(), &[0x60; 1], &[0; 15]].concat();
            for (way, host) in [
                (Way::Fast, Host::detect()),
                (Way::Fast, Host::Portable),
                (Way::Plain, Host::Portable),
                (Way::General, Host::Portable),
            ] {
                let mut thread = thread.clone();
                let before = thread.clone();
                let code = Code::translate(&code, 0, 128, host);
                let mut group = Group::default();
                let mut environment =
                    Environment { memory: &Nothing, group: &mut group, outside: 0, first_outside: None };
                let stop = exec::run(&code, &mut thread, &mut environment, 1, way, &mut ());
                assert_eq!(stop, Stop::Budget, "{instruction:?}");
                self.check(&instruction, &before, &thread, modes, way);
            }
            done += size;
        }
    }

    fn check(&self, instruction: &Instruction, before: &Thread, after: &Thread, modes: u32, way: Way) {
        let size = usize::from(instruction.size);
        let flag_at = |thread: &Thread, lane: usize| {
            thread.u32(FLAGS + usize::from(instruction.flag / 2) * 4) >> (usize::from(instruction.flag % 2) * 16 + lane)
                & 1
                != 0
        };
        for lane in 0..size {
            let operands: Vec<Operand> = instruction.src[..self.row.sources()]
                .iter()
                .enumerate()
                .map(|(index, source)| {
                    let Source::Reg { region, ty, abs, negate, .. } = *source else { unreachable!() };
                    let at = (index + 1) * 320 + lane * usize::from(region.vstride.unwrap()) * ty.size() as usize;
                    let bytes = &before.file[at..at + ty.size() as usize];
                    let bits = bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
                    Operand { bits, ty, abs, negate }
                })
                .collect();
            let predicate = instruction.predicate == 0 || flag_at(before, lane) != instruction.invert;
            let context = Context {
                dst: self.dst,
                saturate: instruction.saturate,
                condition: instruction.modifier,
                round: modes >> 4 & 3,
                keeps: [modes & 0x80 != 0, modes & 0x400 != 0],
                predicate,
                function: instruction.function,
                acc_write: instruction.acc_write,
            };
            let expected = reference::execute(self.row.name, &operands, &context);
            let unit = self.dst.size() as usize;
            let at = 40 * 32 + lane * usize::from(instruction.dst.stride) * unit;
            let read = |thread: &Thread| {
                thread.file[at..at + unit].iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
            };
            let describe = || {
                format!(
                    "{way:?} lane {lane} {operands:x?} {context:x?}\n{instruction:?}\nexpected {expected:x?}, found {:x}",
                    read(after)
                )
            };
            let enabled = (predicate || self.lane == Lane::Sel) && before.mask >> lane & 1 != 0;
            if !enabled {
                assert_eq!(read(after), read(before), "{}", describe());
                continue;
            }
            assert!(same(self.dst, read(after), expected.bits), "{}", describe());
            let writes_flag = instruction.modifier != 0 && !matches!(self.lane, Lane::Sel | Lane::Csel);
            let flag = if writes_flag { expected.flag } else { flag_at(before, lane) };
            assert_eq!(flag_at(after, lane), flag, "flag: {}", describe());
            if let Some(accumulator) = expected.accumulator
                && instruction.acc_write
            {
                assert_eq!(u64::from(after.u32(ACC + lane * 4)), accumulator, "accumulator: {}", describe());
            }
        }
    }
}

/// Operations with a reference.
fn tests() -> Vec<Test> {
    let mut all = Vec::new();
    for row in TABLE {
        let Execute::Lane(lane) = row.execute else { continue };
        // Functions have a test of their own; mac has the accumulator as a source.
        if matches!(lane, Lane::Math | Lane::Mac | Lane::Frc | Lane::Cmpn) {
            continue;
        }
        for (dst, srcs) in combinations(row) {
            all.push(Test { row, lane, dst, srcs });
        }
    }
    all
}

/// ISA-044 to ISA-046, ISA-058, ISA-064 to ISA-068, ISA-111 to ISA-122, ISA-130 to ISA-135.
#[test]
fn operations_have_the_results_of_the_reference() {
    let tests = tests();
    let pairs = tests.len();
    assert!(pairs > 300, "{pairs}");
    for test in tests {
        test.run(LANES);
    }
    println!("{pairs} pairs of operation and types, {LANES} lanes each");
}
