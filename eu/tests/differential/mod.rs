// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Runs of random instructions by the interpreter and by the reference, and their comparison.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "bits are reinterpreted and masked all the time"
)]

pub mod generate;
pub mod values;

use std::fmt;

use arctic_eu::exec::thread::{A0, ACC, ACC_HIGH, CR, FLAGS};
use arctic_eu::exec::{self, Budget, Environment, Group, Host, Program, Stop, Thread, Way};
use arctic_eu::isa::{Instruction, Source, encode_native};
use arctic_eu::launch::memory::Space;
use arctic_eu::text;

use crate::random::Random;
use crate::reference::state::{Location, State, Write};
use crate::reference::value::{Expected, format, is_float, width};
use generate::{Combination, Generator, combinations};

/// Disagreements that are described in full.
const DESCRIBED: usize = 100000;

/// What was executed, and where the interpreter and the reference differ.
#[derive(Default)]
pub struct Report {
    pub combinations: usize,
    pub instructions: usize,
    pub lanes: usize,
    /// The first disagreement of each combination of types.
    pub disagreements: Vec<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            to,
            "{} combinations of opcode and types, {} instructions, {} lanes, {} combinations with disagreements",
            self.combinations,
            self.instructions,
            self.lanes,
            self.disagreements.len()
        )?;
        self.disagreements.iter().take(DESCRIBED).try_for_each(|text| writeln!(to, "{text}"))
    }
}

/// Tests one opcode with all combinations of its types. The seeds are fixed: those of a combination are printed with it.
pub fn test_opcode(name: &str, lanes: usize, report: &mut Report) {
    for (index, combination) in combinations(name).iter().enumerate() {
        let seed = name.bytes().fold(index as u64, |seed, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte)));
        report.combinations += 1;
        let mut generator = Generator { random: Random(seed) };
        let mut done = 0;
        // There are few combinations of floats, and what is special about them is rare.
        let lanes = if is_float(combination.src[0]) { lanes * 10 } else { lanes };
        while done < lanes {
            let instruction = generator.instruction(combination);
            // Three fills of the registers for each instruction.
            for _ in 0..3 {
                let state = generator.state(combination, &instruction);
                let result = compare(&instruction, &state);
                report.instructions += 1;
                report.lanes += usize::from(instruction.size);
                done += usize::from(instruction.size);
                if let Err(difference) = result {
                    let types = describe(combination);
                    report.disagreements.push(format!("{name} {types} (seed {seed:#x}): {difference}"));
                    done = lanes;
                    break;
                }
            }
        }
    }
}

fn describe(combination: &Combination) -> String {
    let sources: Vec<&str> = combination.src.iter().map(|ty| ty.name()).collect();
    format!("{} <- {}", combination.dst.name(), sources.join(" "))
}

/// A thread with the registers of a state.
fn thread(state: &State) -> Thread {
    let mut thread = Thread::new((state.grf.len() / 32) as u32, state.mask);
    let mut set = |at: usize, bytes: &[u8]| {
        for (index, dword) in bytes.as_chunks::<4>().0.iter().enumerate() {
            thread.set_u32(at + index * 4, u32::from_le_bytes(*dword));
        }
    };
    set(0, &state.grf);
    set(ACC, &state.acc);
    set(ACC_HIGH, &state.acc_high);
    set(A0, &state.a0);
    thread.set_u32(FLAGS, state.flags[0]);
    thread.set_u32(FLAGS + 4, state.flags[1]);
    thread.set_u32(CR, state.cr0);
    thread.update_modes();
    thread
}

/// The registers of a thread as a state.
fn state(thread: &Thread, mask: u32, registers: usize) -> State {
    let bytes = |at: usize, count: usize| -> Vec<u8> {
        (0..count / 4).flat_map(|index| thread.u32(at + index * 4).to_le_bytes()).collect()
    };
    State {
        grf: bytes(0, registers),
        acc: bytes(ACC, 256).try_into().unwrap(),
        acc_high: bytes(ACC_HIGH, 256).try_into().unwrap(),
        a0: bytes(A0, 32).try_into().unwrap(),
        flags: [thread.u32(FLAGS), thread.u32(FLAGS + 4)],
        cr0: thread.u32(CR),
        mask,
    }
}

/// Executes an instruction in all ways, and describes the first difference.
pub fn compare(instruction: &Instruction, before: &State) -> Result<(), String> {
    let word = encode_native(instruction).map_err(|error| format!("not encoded: {error}: {instruction:?}"))?;
    let mut expected = before.clone();
    let writes = expected.execute(instruction).ok_or("the reference does not have it")?;
    for host in [Host::detect(), Host::Portable] {
        let code = Program::translate(&word.to_le_bytes(), 0, (before.grf.len() / 32) as u32, host);
        for way in [Way::Fast, Way::General] {
            if way != Way::Fast && host == Host::Portable {
                continue;
            }
            let got = execute(&code, before, way).map_err(|stop| format!("{}: {stop:?}", text_of(instruction)))?;
            if let Err(difference) = difference(instruction, &expected, &writes, &got) {
                let inputs = describe_inputs(instruction, before, &difference);
                return Err(format!("{way:?} {host:?}: {}\n    {}\n    {inputs}", text_of(instruction), difference.0));
            }
        }
    }
    Ok(())
}

fn execute(code: &Program, before: &State, way: Way) -> Result<State, Stop> {
    let space = Space::new();
    let mut group = Group::default();
    let mut memory = &space;
    let mut environment = Environment::new(&mut memory, &mut group);
    let mut thread = thread(before);
    let stop = exec::run(code, &mut thread, &mut environment, Budget::instructions(1), way, &mut ());
    if stop == Stop::Budget { Ok(state(&thread, before.mask, before.grf.len())) } else { Err(stop) }
}

/// What differs, and the lane if there is one.
struct Difference(String, Option<u32>);

fn difference(instruction: &Instruction, expected: &State, writes: &[Write], got: &State) -> Result<(), Difference> {
    let mut expected = expected.clone();
    // A NaN that is not determined must be a quiet NaN; then it is taken over, so that all bytes can be compared.
    for write in writes {
        let size = (width(write.ty) / 8) as usize;
        let actual = got.bytes(write.location, size);
        let undetermined = write.expected == Expected::QuietNan && write.location != Location::Null;
        if undetermined && format(write.ty).is_quiet_nan(actual) {
            expected.set_bytes(write.location, size, actual);
        }
    }
    if expected == *got {
        return Ok(());
    }
    if expected.flags != got.flags {
        let differing = (expected.flags[0] ^ got.flags[0], expected.flags[1] ^ got.flags[1]);
        let bit = if differing.0 != 0 { differing.0.trailing_zeros() } else { differing.1.trailing_zeros() };
        let first = u32::from(instruction.channel) + u32::from(instruction.flag % 2) * 16;
        let lane = (bit + 32 - first % 32) % 32;
        return Err(Difference(
            format!("flags: expected {:08x?}, got {:08x?}; lane {lane}", expected.flags, got.flags),
            Some(lane),
        ));
    }
    for write in writes {
        let size = (width(write.ty) / 8) as usize;
        let (wanted, actual) = (expected.bytes(write.location, size), got.bytes(write.location, size));
        if wanted != actual {
            let lane = write.lane;
            return Err(Difference(
                format!("lane {lane}: expected {wanted:#x} ({:?}), got {actual:#x}", write.expected),
                Some(lane),
            ));
        }
    }
    let byte = (0..expected.grf.len()).find(|&byte| expected.grf[byte] != got.grf[byte]);
    let what = match byte {
        Some(byte) => format!("byte {} of r{} was written", byte % 32, byte / 32),
        None if expected.acc != got.acc || expected.acc_high != got.acc_high => "an accumulator was written".into(),
        None => "an address register or cr0 was written".into(),
    };
    Err(Difference(what, None))
}

fn text_of(instruction: &Instruction) -> String {
    text::format(instruction, 0)
        .map_or_else(|| format!("{instruction:?}"), |text| text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The sources of the lane that differs, and the state on which its result depends.
fn describe_inputs(instruction: &Instruction, before: &State, difference: &Difference) -> String {
    let mut inputs = Vec::new();
    if let Some(lane) = difference.1 {
        for source in &instruction.src[..instruction.row.sources()] {
            let value = before.clone().operand_bits(source, lane);
            inputs.push(match source {
                Source::Imm { .. } => format!("immediate {value:#x}"),
                Source::Reg { .. } => format!("{value:#x}:{}", source.ty().name()),
            });
        }
    }
    format!("inputs {}, cr0 {:#x}, mask {:#x}, flags {:08x?}", inputs.join(", "), before.cr0, before.mask, before.flags)
}
