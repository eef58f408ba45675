// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Generated streams through the open firmware and through the interpreter, and `afuc run`.

mod common;
#[path = "common/program.rs"]
mod program;

use arctic_afuc::container::Image;
use arctic_afuc::coverage::Coverage;
use arctic_afuc::isa::Generation;
use arctic_afuc::machine::{Effect, Fault, FaultKind};
use arctic_afuc::pm4::{Interpreter, Limit, Unsupported, Write, operation};
use arctic_afuc::replay::{COUNTER, Options, Replay, ReplayError, run_to_idle};
use arctic_afuc::text::{self, LineKind, Listing, assemble};
use arctic_afuc::trace::Record;
use arctic_fidelity::proves;
use common::Random;
use program::{BUFFER, Directory, afuc};

const DATA: u32 = 0x20_0000;

fn open(generation: Generation) -> Image {
    let options = text::Options { generation: Some(generation) };
    assemble(include_str!("../firmware/sqe-open.asm"), &options).unwrap().image
}

fn packet4(register: u32, values: &[u32]) -> Vec<u32> {
    let odd = |value: u32| u32::from(value.count_ones().is_multiple_of(2));
    let count = u32::try_from(values.len()).unwrap();
    let header = 4 << 28 | odd(register) << 27 | register << 8 | odd(count) << 7 | count;
    [&[header], values].concat()
}

/// Registers and words of memory are few, so that packets meet each other's writes.
fn register(random: &mut Random) -> u32 {
    0x1000 + random.next() % 8
}

fn word(random: &mut Random) -> u32 {
    DATA + random.next() % 8 * 4
}

fn value(random: &mut Random) -> u32 {
    match random.below(3) {
        0 => random.next(),
        1 => random.next() % 4,
        _ => u32::MAX - random.next() % 4,
    }
}

fn packet(random: &mut Random, level: u32, next: &mut u32, buffers: &mut Vec<(u32, Vec<u32>)>) -> Vec<u32> {
    let values = |random: &mut Random, count: usize| (0..count).map(|_| value(random)).collect::<Vec<u32>>();
    let flag = |random: &mut Random, bit: u32| (random.next() & 1) << bit;
    match random.below(24) {
        0 | 1 => {
            let count = random.below(6);
            packet4(register(random), &values(random, count))
        }
        2 => {
            let count = random.below(6);
            operation(0x3d, &[vec![word(random) | random.next() & 3, 0], values(random, count)].concat())
        }
        3 => {
            let flags = (random.next() & 0xf000_0000) | (random.next() & 31) << 24;
            let source = |random: &mut Random, bit: u32| {
                if flags >> bit & 1 != 0 { register(random) } else { value(random) }
            };
            let (and, or) = (source(random, 31), source(random, 30));
            operation(0x21, &[flags & 0xff00_0000 | register(random), and, or])
        }
        4 => operation(0x3e, &[register(random) | (random.next() % 4) << 18 | flag(random, 30), word(random), 0]),
        5 => operation(0x42, &[register(random) | (random.next() % 4) << 19, word(random), 0]),
        6 => {
            let sources = (0..random.below(4)).flat_map(|_| [word(random), 0]).collect::<Vec<u32>>();
            operation(0x73, &[vec![random.next() & 7 | flag(random, 29), word(random), 0], sources].concat())
        }
        7 => operation(0x75, &[random.next() % 5, word(random), 0, word(random), 0]),
        8 => operation(0x4c, &[random.next() & 7 << 20, value(random)]),
        9 => {
            operation(0x5c, &(0..random.below(4)).flat_map(|_| [register(random), value(random)]).collect::<Vec<u32>>())
        }
        10 | 11 => {
            let memory = random.next() & 1;
            let poll = if memory != 0 { word(random) } else { register(random) };
            let to_memory = random.next() & 1;
            let target = if to_memory != 0 { word(random) } else { register(random) };
            let flags = random.next() % 7 | flag(random, 3) | memory << 4 | to_memory << 8;
            operation(0x45, &[flags, poll, 0, value(random), value(random), target, 0, value(random)])
        }
        12 => operation(0x39, &[register(random) | (random.next() & 31) << 20]),
        13 => {
            // What is skipped is a whole packet.
            let skipped = packet4(register(random), &values(random, 2));
            let modes = random.next() & 7 << 25;
            let condition = match random.below(6) {
                0 => operation(0x47, &[1 << 28, 3]),
                1 => operation(0x47, &[2 << 28 | register(random), register(random), 3]),
                2 => operation(0x47, &[3 << 28 | modes, 3]),
                3 => operation(0x47, &[4 << 28 | register(random), value(random), 3]),
                4 => operation(0x47, &[5 << 28 | modes, 3]),
                _ => operation(0x44, &[word(random), 0, word(random), 0, value(random), 3]),
            };
            [condition, skipped].concat()
        }
        14 => operation(0x65, &[random.next() & 0x10f]),
        15 => {
            let event = if random.below(2) == 0 { vec![] } else { vec![word(random), 0, value(random)] };
            operation(0x46, &[vec![random.next() & 0x3f], event].concat())
        }
        16 => {
            let mut groups = Vec::new();
            for _ in 0..random.below(4) {
                let body = packet4(register(random), &values(random, 2));
                let head = (random.next() & 3) << 24 | random.next() & 7 << 20 | (random.next() % 8 / 6) << 17;
                let head = if random.below(8) == 0 { head | 1 << 18 } else { head | 3 };
                groups.extend([head, *next, 0]);
                buffers.push((*next, body));
                *next += 0x40;
            }
            operation(0x43, &groups)
        }
        17 => operation(0x38, &values(random, 3)),
        18 => {
            let count = random.below(4);
            operation(0x6d, &[vec![2, register(random)], values(random, count)].concat())
        }
        19 => operation([0x1d, 0x23, 0x5f][random.below(3)], &[random.next() & 1]),
        20 => operation([0x10, 0x12, 0x26, 0x2c, 0x6b][random.below(5)], &[]),
        // Waits that end at once: always, and at least 0.
        21 => operation(0x3c, &[1 << 4, word(random), 0, value(random), value(random), 16]),
        22 => operation(0x14, &[0, word(random), 0, 0]),
        _ if level < 2 => {
            let body = packets(random, level + 1, next, buffers);
            let address = *next;
            *next += u32::try_from(body.len()).unwrap() * 4 + 0x40;
            let length = u32::try_from(body.len()).unwrap();
            buffers.push((address, body));
            operation(0x3f, &[address, 0, length])
        }
        _ => operation(0x62, &[word(random), 0]),
    }
}

fn packets(random: &mut Random, level: u32, next: &mut u32, buffers: &mut Vec<(u32, Vec<u32>)>) -> Vec<u32> {
    (0..random.below(12)).flat_map(|_| packet(random, level, next, buffers)).collect()
}

/// Packets that BV executes, or BR and BV, in separate memory; with and without a barrier.
fn part_for_bv(random: &mut Random) -> Vec<u32> {
    let threads = |random: &mut Random, which: u32| operation(0x17, &[which | (random.next() & 1) << 31]);
    let which = 2 + random.next() % 2;
    let write = operation(0x3d, &[DATA + 0x1000 + random.next() % 8 * 4, 0, random.next()]);
    [threads(random, which), write, operation(0x10, &[0; 3]), threads(random, 1)].concat()
}

/// A trace with a command buffer of random packets, and buffers and groups in it.
fn stream(random: &mut Random, generation: Generation) -> Vec<Record> {
    let (mut next, mut buffers) = (BUFFER, Vec::new());
    let mut commands = Vec::new();
    for _ in 0..4 {
        commands.extend(packets(random, 1, &mut next, &mut buffers));
        if generation == Generation::A7 {
            commands.extend(part_for_bv(random));
        }
    }
    let length = u32::try_from(commands.len()).unwrap();
    buffers.push((next, commands));
    buffers.push((DATA, (0..64).map(|_| value(random)).collect()));
    let records =
        buffers.into_iter().map(|(address, words)| Record::Buffer { address: address.into(), length: 4, words });
    records.chain([Record::Commands { address: next.into(), dword_count: length }]).collect()
}

fn replay(image: &Image, options: &Options, records: &[Record]) -> Result<Replay, ReplayError> {
    let mut replay = Replay::new(image, options)?;
    for record in records {
        replay.record(record, &mut run_to_idle)?;
    }
    Ok(replay)
}

/// A packet that never ends is a fault also if it is preempted again and again: preemption does not renew its budget.
#[test]
fn preemption_does_not_renew_the_budget_of_a_packet() {
    let packets = operation(0x3c, &[3, 0x444, 0, 5, 0xff, 16]);
    let words = u32::try_from(packets.len()).unwrap();
    let records = [
        Record::Buffer { address: BUFFER.into(), length: 4, words: packets },
        Record::Commands { address: BUFFER.into(), dword_count: words },
    ];
    let options = Options { packet_budget: 10_000, preempt_every: Some(500), ..Options::default() };
    let mut run = Replay::new(&open(Generation::A6), &options).unwrap();
    run.record(&records[0], &mut run_to_idle).unwrap();
    let stop = run.record(&records[1], &mut |machine| machine.run(1_000_000)).unwrap_err();
    assert!(matches!(stop, ReplayError::Fault(Fault { kind: FaultKind::Endless, .. })), "{stop:?}");
    assert!(run.machine.preemptions > 5, "{}", run.machine.preemptions);
}

/// Packets of all kinds in random order: the open firmware writes what the interpreter writes, with and without
/// preemption (AFC-071, AFC-072).
#[test]
fn generated_streams_have_the_writes_of_the_interpreter() {
    let (mut writes, mut groups, mut preemptions) = (0, 0, 0);
    for generation in [Generation::A6, Generation::A7] {
        let image = open(generation);
        for seed in 0..350 {
            let records = stream(&mut Random(seed), generation);
            for preempt_every in [None, Some(1 + seed % 61)] {
                let options = Options { compare: true, preempt_every, ..Options::default() };
                let run = replay(&image, &options, &records).unwrap_or_else(|error| panic!("{seed}: {error}"));
                let sums = run.compare().unwrap_or_else(|error| panic!("{seed} {preempt_every:?}: {error}")).unwrap();
                writes += sums.register_writes + sums.memory_writes;
                groups += run.interpreter.as_ref().unwrap().groups_executed;
                preemptions += run.machine.preemptions;
                assert_eq!(run.machine.left_words, 0, "{seed}");
                assert_eq!(run.interpreter.unwrap().packets, run.machine.packets, "{seed}");
            }
        }
    }
    println!("{writes} writes, {groups} groups, {preemptions} preemptions");
    assert!(writes > 10_000 && groups > 200 && preemptions > 10_000, "{writes} {groups} {preemptions}");
}

/// The streams execute the firmware's handlers whole; what is left is shown by the failure.
#[test]
fn generated_streams_cover_the_firmware() {
    for generation in [Generation::A6, Generation::A7] {
        let image = open(generation);
        let mut coverage = Coverage::default();
        let mut replays = Vec::new();
        for seed in 0..60 {
            let options = Options { preempt_every: Some(20 + seed), ..Options::default() };
            let mut run = Replay::new(&image, &options).unwrap();
            for record in &stream(&mut Random(seed), generation) {
                run.record(record, &mut |machine| coverage.run(machine)).unwrap();
            }
            replays.push(run);
        }
        let listing = Listing::of(&image).remove(0);
        let code = u32::try_from(listing.section.code_len()).unwrap();
        let lines = &listing.lines;
        let is_code =
            |word: u32| lines[word as usize].reached && matches!(lines[word as usize].kind, LineKind::Instruction(_));
        let parts = coverage.parts(&replays[0].machine, code, &is_code);
        // The bootstrap is before the first record.
        let parts: Vec<_> = parts.iter().filter(|part| !part.opcodes.is_empty()).collect();
        let (words, executed) = parts.iter().fold((0, 0), |sum, part| (sum.0 + part.words, sum.1 + part.executed));
        println!("{generation:?}: {executed} of {words} instructions");
        let missing: Vec<_> = (0..code).filter(|word| is_code(*word) && coverage.count(*word) == 0).collect();
        assert!(executed * 100 >= words * 95, "{executed} of {words}: {missing:x?}");
    }
}

/// The second ring is executed at each preemption, and its writes are between two marks.
#[test]
fn preemption_executes_the_second_ring() {
    proves!(AF_063, "without PREEMPT_INSTR preemption enters entry 15 of the packet table");
    let image = open(Generation::A6);
    let wait = operation(0x26, &[]);
    let words = u32::try_from(wait.len() * 100).unwrap();
    let records = [
        Record::Buffer { address: BUFFER.into(), length: 4, words: wait.repeat(100) },
        Record::Commands { address: BUFFER.into(), dword_count: words },
    ];
    let mut run = replay(&image, &Options { preempt_every: Some(10), ..Options::default() }, &records).unwrap();
    let preemptions = run.machine.preemptions;
    assert!(preemptions > 20);
    assert_eq!(u64::from(run.machine.bus.memory.read(COUNTER).unwrap()), preemptions);
    let marks = |mark| run.machine.bus.effects.iter().filter(|effect| **effect == mark).count() as u64;
    assert_eq!((marks(Effect::Preempted), marks(Effect::Resumed)), (preemptions, preemptions));
    assert_eq!((run.machine.bus.gpu[0x88a], run.machine.bus.gpu[0x8a0]), (0x55, 0));
}

/// Without PREEMPT_ENABLE a request waits, and CP_CONTEXT_SWITCH_CNTL asks as PREEMPT_TRIGGER does (AFC-042).
#[test]
fn preemption_waits_for_its_enable_bit() {
    proves!(AF_063, "PREEMPT_INSTR is the entry of preemption");
    let source = "[016ee001]\nmov $02, #handler\nswrite $02, [$00 + %PREEMPT_INSTR]\nmov $03, 0x1\nREQUEST\nnop\n\
                  add $04, $04, 0x1\ncwrite $03, [$00 + @PREEMPT_ENABLE]\nadd $04, $04, 0x1\nwaitin\nmov $01, $data\n\
                  handler:\nmov $05, $04\nmov $addr, CP_CONTEXT_SWITCH_CNTL\nmov $data, $00\n\
                  cwrite $00, [$00 + @PREEMPT_TRIGGER]\niret\nadd $05, $05, 0x10\n";
    for trigger in ["cwrite $03, [$00 + @PREEMPT_TRIGGER]", "mov $addr, CP_CONTEXT_SWITCH_CNTL\nmov $data, $03"] {
        let image = assemble(&source.replace("REQUEST", trigger), &text::Options::default()).unwrap().image;
        let mut machine = arctic_afuc::machine::Machine::new(&image);
        assert_eq!(machine.run(100), arctic_afuc::machine::Stop::Idle);
        assert_eq!((machine.gpr[4], machine.gpr[5], machine.preemptions), (2, 0x11, 1), "{trigger}");
    }
}

/// The interpreter and the machine stop at the same packets, each with its own error.
#[test]
fn packets_that_cannot_be_executed_are_errors_of_both() {
    let image = open(Generation::A6);
    let run = |packets: &[u32], options: &Options| {
        let words = u32::try_from(packets.len()).unwrap();
        let records = [
            Record::Buffer { address: BUFFER.into(), length: 4, words: packets.to_vec() },
            Record::Commands { address: BUFFER.into(), dword_count: words },
        ];
        let machine = replay(&image, options, &records).unwrap_err();
        let mut interpreter = Interpreter::new(Limit::default());
        interpreter.load(BUFFER.into(), packets).unwrap();
        interpreter.map_on_demand = options.map_on_demand;
        let ring = operation(0x3f, &[BUFFER, 0, words]);
        (machine, interpreter.execute_ring(&ring, 0).unwrap_err())
    };
    let options = Options { packet_budget: 10_000, ..Options::default() };
    let kind = |error: ReplayError| match error {
        ReplayError::Fault(fault) => fault.kind,
        other => panic!("{other}"),
    };
    let at = u64::from(BUFFER);
    let cases = [
        (operation(0x7e, &[]), FaultKind::Opcode(0x7e), Unsupported::Packet(at, 0x7e)),
        (vec![0x7090_8000], FaultKind::Header(0x7090_8000), Unsupported::Header(at, 0x7090_8000)),
        (operation(0x3c, &[3, 0x444, 0, 5, 0xff, 16]), FaultKind::Endless, Unsupported::Waits(at)),
        (operation(0x3c, &[0x23, 0x444, 0, 5, 0xff, 16]), FaultKind::Illegal(0), Unsupported::Packet(at, 0x3c)),
        (operation(0x3e, &[1 << 31, 0x444, 0]), FaultKind::Illegal(0), Unsupported::Packet(at, 0x3e)),
        (operation(0x47, &[1 << 28, 9]), FaultKind::QueueEmpty(1), Unsupported::Length(at, 0x47)),
        (operation(0x10, &[1, 2, 3])[..2].to_vec(), FaultKind::QueueEmpty(1), Unsupported::Length(at, 0x10)),
        (operation(0x3f, &[BUFFER, 0, 4]), FaultKind::Illegal(0), Unsupported::Depth),
    ];
    for (packets, fault, error) in cases {
        let (machine, interpreter) = run(&packets, &options);
        assert_eq!((kind(machine), interpreter), (fault, error));
    }
    let mapped = Options { map_on_demand: false, ..options };
    let (machine, interpreter) = run(&operation(0x3d, &[0xdead_0000, 0, 1]), &mapped);
    assert_eq!((kind(machine), interpreter), (FaultKind::Unmapped(0xdead_0000), Unsupported::Unmapped(0xdead_0000)));
}

/// A wrong handler is found: the comparison is not empty.
#[test]
fn firmware_with_a_mistake_differs_from_the_interpreter() {
    let source =
        include_str!("../firmware/sqe-open.asm").replace("add $02, $02, CP_SCRATCH\n", "add $02, $02, 0x884\n");
    let options = text::Options { generation: Some(Generation::A6) };
    let image = assemble(&source, &options).unwrap().image;
    let packet = operation(0x4c, &[0, 7]);
    let records = [
        Record::Buffer { address: BUFFER.into(), length: 4, words: packet.clone() },
        Record::Commands { address: BUFFER.into(), dword_count: 3 },
    ];
    let run = replay(&image, &Options { compare: true, ..Options::default() }, &records).unwrap();
    let difference = run.compare().unwrap_err();
    assert_eq!(
        (difference.machine, difference.interpreter),
        (Some(Write::Register(0x884, 7)), Some(Write::Register(0x883, 7)))
    );
}

#[test]
fn first_packet_of_the_ring_is_me_init() {
    proves!(AF_097, "the first packet is CP_ME_INIT, and no other is");
    let packet = operation(0x26, &[]);
    let commands = || Record::Commands { address: BUFFER.into(), dword_count: 1 };
    let records = [Record::Buffer { address: BUFFER.into(), length: 4, words: packet }, commands(), commands()];
    let mut run = replay(&open(Generation::A6), &Options::default(), &records).unwrap();
    let first = run.machine.bus.memory.read(arctic_afuc::replay::RING).unwrap();
    assert_eq!((first, run.machine.packets[0x48], run.command_buffers), (operation(0x48, &[0; 8])[0], 1, 2));
}

/// A buffer that is not in the trace is skipped; one where the emulator's own memory is, is an error.
#[test]
fn buffers_that_are_missing_or_overlap_are_reported() {
    let image = open(Generation::A6);
    let run = replay(&image, &Options::default(), &[Record::Commands { address: 0x999_0000, dword_count: 8 }]).unwrap();
    assert_eq!((run.missing_buffers, run.command_buffers), (1, 0));
    let records = [Record::Buffer { address: arctic_afuc::replay::RING + 0x100, length: 4, words: vec![0] }];
    let error = replay(&image, &Options::default(), &records).unwrap_err();
    assert_eq!(error, ReplayError::Overlap(arctic_afuc::replay::RING + 0x100));
    let boot = assemble("[016ee001]\nl: jump #l\nnop\n", &text::Options::default()).unwrap().image;
    assert!(matches!(replay(&boot, &Options::default(), &[]), Err(ReplayError::Boot(_))));
}

#[test]
fn run_prints_packets_and_the_comparison() {
    let directory = Directory::new("run");
    let trace = directory.trace(&[&[packet4(0x444, &[1, 2]), operation(0x26, &[])].concat()]);
    let arguments = ["run", "--firmware", "open", "--rd", &trace, "--compare", "--preempt-every", "5"];
    let (code, text, _) = afuc(&arguments);
    assert_eq!(code, Some(0), "{text}");
    for part in [
        "PKT4                                         1         1\n",
        "equal: 2 registers written, 0 memory words, 0 groups\n",
        "0 warnings\nidle\n",
    ] {
        assert!(text.contains(part), "{text}");
    }
    let (code, text, _) = afuc(&[&arguments[..], &["--json"]].concat());
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (code, &document["equal"]["registers"], &document["packets_in_stream"]["PKT4"]),
        (Some(0), &2.into(), &1.into())
    );
    assert!(document["preemptions"].as_u64().unwrap() > 2);
}

#[test]
fn run_explains_a_fault_and_exits_with_3() {
    let directory = Directory::new("fault");
    let trace = directory.trace(&[&operation(0x3c, &[3, 0x444, 0, 5, 0xff, 16])]);
    let (code, text, _) = afuc(&["run", "--firmware", "open", "--rd", &trace, "--packet-budget", "5000"]);
    assert_eq!(code, Some(3));
    assert!(text.contains("packet 70bc8006 at 0x100000: the packet's handler did not end"), "{text}");
    assert!(text.contains("in passes, packet CP_WAIT_REG_MEM, queue IB1; CP_INTERRUPT_STATUS 0x2"), "{text}");
    let (code, _, error) = afuc(&["run", "--firmware", "open", "--rd", "/nonexistent.rd"]);
    assert_eq!(code, Some(1));
    assert!(error.starts_with("afuc: cannot read /nonexistent.rd: "), "{error}");
    let (code, _, error) = afuc(&["run", "--firmware", "open", "--rd", &trace, "--set", "0x10=z"]);
    assert_eq!(code, Some(2));
    assert!(error.contains("`z` is no number"), "{error}");
}

/// One packet copies up to 16 GiB, and a few buffers that start each other read as much. The interpreter stops at its limit of
/// words, the machine at that of instructions for a packet.
#[test]
fn numbers_of_consecutive_registers_wrap() {
    let mut interpreter = Interpreter::new(Limit::default());
    interpreter.execute_ring(&operation(0x6d, &[0, u32::MAX, 1, 2]), u64::from(BUFFER)).unwrap();
    let registers = [(0xffff, 1), (0, 2)].map(|(number, value)| Write::Register(number, value));
    assert_eq!(interpreter.writes, registers);
}

#[test]
fn packets_that_move_more_memory_than_the_limit_are_errors() {
    let copy = operation(0x75, &[u32::MAX, BUFFER, 0, BUFFER + 0x1000, 0]);
    let zeros = operation(0x3f, &[BUFFER, 0, 0x8_0000]);
    let limit = Limit { words: 100_000, ..Limit::default() };
    for packets in [copy.clone(), zeros] {
        let mut interpreter = Interpreter::new(limit);
        interpreter.map_on_demand = true;
        interpreter.load(BUFFER.into(), &packets).unwrap();
        assert_eq!(interpreter.execute_ring(&packets, 0), Err(Unsupported::Words));
        assert!(interpreter.writes.len() <= 50_000);
    }
    let words = u32::try_from(copy.len()).unwrap();
    let records = [
        Record::Buffer { address: BUFFER.into(), length: 4, words: copy },
        Record::Commands { address: BUFFER.into(), dword_count: words },
    ];
    let options = Options { packet_budget: 10_000, ..Options::default() };
    let error = replay(&open(Generation::A6), &options, &records).unwrap_err();
    assert!(matches!(error, ReplayError::Fault(Fault { kind: FaultKind::Endless, .. })), "{error:?}");
}
