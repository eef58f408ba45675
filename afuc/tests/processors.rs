// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! BR, BV and LPAC: start, shared registers, locks, streams for each, faults.

#[path = "common/program.rs"]
mod program;

use arctic_afuc::container::Image;
use arctic_afuc::isa::Generation;
use arctic_afuc::machine::{Effect, Fault, FaultKind, INSTR_BASE, Machine, Processor, Stop};
use arctic_afuc::pm4::operation;
use arctic_afuc::replay::{Options, Replay, ReplayError, run_to_idle};
use arctic_afuc::text::{self, assemble};
use arctic_afuc::trace::Record;
use arctic_fidelity::proves;
use program::{BUFFER, Directory, afuc};

/// Semaphores, in memory.
const SEMAPHORES: u32 = 0x20_0000;
const LPAC_BUFFER: u32 = 0x30_0000;
const BOTH: u32 = 3;
const SYNCHRONISE: u32 = 1 << 31;

fn image(source: &str, generation: Generation) -> Image {
    let options = text::Options { generation: Some(generation) };
    assemble(source, &options).unwrap_or_else(|errors| panic!("{}", errors.render(source, "source", false))).image
}

fn open() -> Image {
    image(include_str!("../firmware/sqe-open.asm"), Generation::A7)
}

fn threads(processors: u32) -> Vec<u32> {
    operation(0x17, &[processors])
}

fn scratch(index: u32, value: u32) -> Vec<u32> {
    operation(0x4c, &[index << 20, value])
}

fn signal(semaphore: u32) -> Vec<u32> {
    operation(0x3d, &[SEMAPHORES + semaphore * 4, 0, 1])
}

fn wait(semaphore: u32) -> Vec<u32> {
    operation(0x3c, &[3 | 1 << 4, SEMAPHORES + semaphore * 4, 0, 1, u32::MAX, 16])
}

fn trace(buffer: u32, packets: &[Vec<u32>]) -> [Record; 2] {
    let words = packets.concat();
    let commands = Record::Commands { address: buffer.into(), dword_count: u32::try_from(words.len()).unwrap() };
    [Record::Buffer { address: buffer.into(), length: 4, words }, commands]
}

fn replay(packets: &[Vec<u32>], lpac: Option<&[Vec<u32>]>, options: &Options) -> Result<Replay, ReplayError> {
    let mut replay = Replay::new(&open(), options)?;
    if let Some(packets) = lpac {
        replay.lpac(&trace(LPAC_BUFFER, packets))?;
    }
    trace(BUFFER, packets).iter().try_for_each(|record| replay.record(record, &mut run_to_idle))?;
    Ok(replay)
}

/// Writes to CP_SCRATCH with the processor that made them.
fn scratch_writes(effects: &[Effect]) -> Vec<(Processor, u32, u32)> {
    let mut writer = Processor::First;
    let mut writes = Vec::new();
    for effect in effects {
        match *effect {
            Effect::Writer(processor) => writer = processor,
            Effect::Register(number @ 0x883..=0x88a, value) => writes.push((writer, number - 0x883, value)),
            _ => {}
        }
    }
    writes
}

/// The open firmware of a7xx starts BV and LPAC, which clear their bits of THREAD_SYNC.
#[test]
fn open_firmware_starts_three_processors() {
    proves!(AF_005, "on a7xx BR starts BV and LPAC of the same image");
    proves!(AF_121, "a processor that BV_CNTL or LPAC_CNTL starts changes THREAD_SYNC");
    let mut machine = Machine::new(&open());
    machine.bus.control[0x23f] = 7;
    assert_eq!(machine.run(10_000), Stop::Idle);
    let names: Vec<&str> = machine.processors().map(|machine| machine.processor.name(Generation::A7)).collect();
    assert_eq!(names, ["BR", "BV", "LPAC"]);
    assert_eq!(machine.bus.read_control(0x23f), 0);
    // Registers and packet table are separate for each.
    let tables: Vec<u32> = machine.processors().map(|machine| machine.bus.packet_table[0x10]).collect();
    assert!(tables[0] != tables[1] && tables[1] != tables[2] && !tables.contains(&0), "{tables:?}");
}

/// BR, BV and LPAC write a scratch word each, in each order that semaphores in memory demand.
#[test]
fn semaphores_decide_the_order_of_three_processors() {
    proves!(AF_005, "BR, BV and LPAC execute packets beside each other");
    use Processor::{Bv, First, Lpac};
    for order in [
        [First, Bv, Lpac],
        [First, Lpac, Bv],
        [Bv, First, Lpac],
        [Bv, Lpac, First],
        [Lpac, First, Bv],
        [Lpac, Bv, First],
    ] {
        let part = |processor: Processor| {
            let place = u32::try_from(order.iter().position(|found| *found == processor).unwrap()).unwrap();
            let before = if place == 0 { vec![] } else { wait(place) };
            [before, scratch(place, 0x70 + processor as u32), signal(place + 1)].concat()
        };
        let packets = [threads(2), part(Bv), threads(1), part(First)];
        let run = replay(&packets, Some(&[part(Lpac)]), &Options::default()).unwrap();
        let expected: Vec<_> = (0..).zip(order).map(|(place, part)| (part, place, 0x70 + part as u32)).collect();
        assert_eq!(scratch_writes(&run.machine.bus.effects), expected);
        let packets: Vec<u64> = run.machine.processors().map(|machine| machine.packets[0x4c]).collect();
        assert_eq!(packets, [2, 2, 1], "BR and BV read each other's packets too");
    }
}

/// Bit 31 of CP_THREAD_CONTROL makes BR and BV wait for each other, and both execute what is for both.
#[test]
fn threads_wait_for_each_other_at_a_barrier() {
    let slow = operation(0x10, &[0; 400]);
    let packets = [
        threads(2),
        slow.repeat(4),
        scratch(0, 1),
        threads(BOTH | SYNCHRONISE),
        scratch(1, 2),
        threads(1),
        slow.repeat(4),
        scratch(2, 3),
        threads(2 | SYNCHRONISE),
        scratch(3, 4),
        threads(1),
        scratch(4, 5),
    ];
    let run = replay(&packets, None, &Options { compare: true, ..Options::default() }).unwrap();
    let writes = scratch_writes(&run.machine.bus.effects);
    let place = |processor, value| writes.iter().position(|write| (write.0, write.2) == (processor, value)).unwrap();
    assert_eq!(writes.len(), 6, "{writes:?}");
    assert_eq!(place(Processor::Bv, 1), 0);
    let both = [place(Processor::First, 2), place(Processor::Bv, 2)];
    assert!(place(Processor::First, 3) < place(Processor::Bv, 4) && both.iter().all(|place| *place > 0), "{writes:?}");
    // What BR wrote is what the interpreter wrote.
    assert_eq!(run.compare().unwrap().unwrap().register_writes, 3);
}

/// Preemption of BR changes nothing, though its ring is another one in between.
#[test]
fn preemption_of_br_leaves_bv_alone() {
    let both = [threads(BOTH), scratch(0, 1), operation(0x10, &[0; 50]), threads(1), scratch(1, 2)].concat();
    let packets = [both.repeat(20)];
    let values = |preempt_every| {
        let run = replay(&packets, None, &Options { preempt_every, ..Options::default() }).unwrap();
        let writes = scratch_writes(&run.machine.bus.effects);
        let of = |processor| writes.iter().filter(|write| write.0 == processor && write.2 != 0x55).copied().collect();
        (run.machine.preemptions, [of(Processor::First), of(Processor::Bv)] as [Vec<(Processor, u32, u32)>; 2])
    };
    let (none, plain) = values(None);
    let (some, preempted) = values(Some(13));
    assert!(none == 0 && some > 100, "{some}");
    assert_eq!(plain, preempted);
    assert_eq!(plain.map(|writes| writes.len()), [40, 20]);
}

/// A run in one call and a run of single instructions have the same effects in the same order.
#[test]
fn single_steps_have_the_effects_of_one_run() {
    let packets =
        [threads(BOTH), signal(0).repeat(7), scratch(0, 1), threads(2), scratch(1, 5), threads(1), scratch(2, 6)];
    let at_once = replay(&packets, None, &Options::default()).unwrap();
    let mut parts = Replay::new(&open(), &Options::default()).unwrap();
    let mut drive = |machine: &mut Machine| loop {
        match machine.run(1) {
            Stop::Budget => *machine = machine.clone(),
            stop => return stop,
        }
    };
    for record in trace(BUFFER, &packets) {
        parts.record(&record, &mut drive).unwrap();
    }
    assert!(at_once.machine.bus.effects == parts.machine.bus.effects);
    assert_eq!(at_once.machine.executed, parts.machine.executed);
}

/// A fault of BV and one of LPAC name the processor, and have separate bits in CP_INTERRUPT_STATUS (AFC-026).
#[test]
fn fault_of_another_processor_names_it() {
    let directory = Directory::new("processors");
    let wait = operation(0x3c, &[3, 0x444, 0, 5, 0xff, 16]);
    let file = directory.trace(&[&[threads(2), wait, threads(1)].concat()]);
    let arguments = ["run", "--gen", "7", "--firmware", "open", "--packet-budget", "5000", "--rd", &file];
    let (code, text, _) = afuc(&arguments);
    assert_eq!(code, Some(3), "{text}");
    let line = text.lines().find(|line| line.starts_with("BV at PC 0x")).unwrap_or_else(|| panic!("{text}"));
    assert!(line.ends_with(": the packet's handler did not end"), "{text}");
    assert!(text.contains("packet CP_WAIT_REG_MEM, queue IB1; CP_INTERRUPT_STATUS 0x4000\n"), "{text}");
    let fault = |lpac: &[u32]| match replay(&[], Some(&[lpac.to_vec()]), &Options::default()) {
        Err(ReplayError::Fault(fault)) => fault,
        other => panic!("{other:?}"),
    };
    let Fault { kind, processor, .. } = fault(&operation(0x7e, &[]));
    assert_eq!((kind, processor), (FaultKind::Opcode(0x7e), Processor::Lpac));
    let bits: Vec<u32> = [FaultKind::Opcode(1), FaultKind::Endless, FaultKind::Unmapped(4), FaultKind::Protected(1)]
        .iter()
        .flat_map(|kind| [Processor::First, Processor::Lpac, Processor::Bv].map(|which| kind.interrupt_bit(which)))
        .collect();
    assert_eq!(bits, [0, 8, 13, 1, 9, 14, 2, 10, 15, 4, 11, 16]);
    assert_eq!(FaultKind::Illegal(0).interrupt_bit(Processor::Bv), 17);
}

/// `afuc run` with a trace for LPAC.
#[test]
fn run_executes_a_second_trace_on_lpac() {
    let directory = Directory::new("lpac");
    let lpac = directory.trace(&[&[wait(0), scratch(2, 3)].concat()]);
    let second = directory.0.join("lpac.rd");
    // The buffers must not overlap.
    let bytes = std::fs::read(&lpac).unwrap();
    let moved: Vec<u8> = bytes
        .chunks(4)
        .flat_map(|word| if word == BUFFER.to_le_bytes() { LPAC_BUFFER.to_le_bytes().to_vec() } else { word.to_vec() })
        .collect();
    std::fs::write(&second, moved).unwrap();
    let main = directory.trace(&[&[threads(2), scratch(1, 2), threads(1), scratch(0, 1), signal(0)].concat()]);
    let second = second.to_str().unwrap();
    let arguments = ["run", "--firmware", "open", "--gen", "7", "--rd", &main, "--lpac-rd", second, "--effects"];
    let (code, text, error) = afuc(&arguments);
    assert_eq!(code, Some(0), "{text}{error}");
    assert!(text.contains("processor LPAC\nregister 0x00885 = 00000003\n"), "{text}");
    assert!(text.contains("processor BV\nregister 0x00884 = 00000002\n"), "{text}");
    let (code, text, _) = afuc(&[&arguments[..9], &["--json"]].concat());
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, document["other_processors"][1]["name"].as_str()), (Some(0), Some("LPAC")));
    let (code, _, error) = afuc(&["run", "--firmware", "open", "--rd", &main, "--lpac-rd", second]);
    assert_eq!((code, error.contains("has not started LPAC")), (Some(1), true), "{error}");
}

/// The debugger shows all processors.
#[test]
fn debug_dumps_the_processors() {
    let directory = Directory::new("dump-processors");
    let file = directory.trace(&[&[threads(2), scratch(1, 2), threads(1)].concat()]);
    let script = directory.file("script", "break packet CP_THREAD_CONTROL\nc\nc\ndump processors\n");
    let (code, text, _) = afuc(&["debug", "--gen", "7", "--firmware", "open", "--rd", &file, "--script", &script]);
    assert_eq!(code, Some(0), "{text}");
    let line = |name: &str| text.lines().any(|line| line.starts_with(name) && line.ends_with("instructions executed"));
    assert!(line("BR ") && line("BV ") && line("LPAC "), "{text}");
}

/// Two processors count one shared register up, each under the lock: no count is lost (AFC-019).
#[test]
fn lock_makes_a_read_modify_write_atomic() {
    let count = "mov $08, 0xc8\nagain:\nmov $02, 0x1\ncwrite $02, [$00 + @COPROCESSOR_LOCK]\nlock:\n\
                 cread $03, [$00 + @COPROCESSOR_LOCK]\nbrne $03, b0, #lock\nnop\ncread $04, [$00 + 0x220]\n\
                 add $04, $04, 0x1\ncwrite $04, [$00 + 0x220]\nUNLOCK\n\
                 sub $08, $08, 0x1\nbrne $08, 0x0, #again\nnop\nwaitin\nmov $01, $data\n";
    let run = |unlock: &str| {
        let count = count.replace("UNLOCK", unlock);
        let source = format!(
            "[01730001]\nmov $02, #bv << 2\nmov $03, {:#x}\ncwrite $02, [$00 + @BV_INSTR_BASE]\n\
             cwrite $03, [$00 + @BV_INSTR_BASE+0x1]\nmov $04, 0x1\ncwrite $04, [$00 + @BV_CNTL]\n{count}.align 32\nbv:\n\
             .section BV\n{count}",
            INSTR_BASE >> 32
        );
        let mut machine = Machine::new(&image(&source, Generation::A7));
        machine.packet_budget = 100_000;
        (machine.run(u64::MAX), machine.bus.read_control(0x220))
    };
    assert_eq!(run("cwrite $00, [$00 + @COPROCESSOR_LOCK]"), (Stop::Idle, 400));
    // A lock that is never released stops the other processor.
    let (stop, _) = run("nop");
    assert!(matches!(stop, Stop::Fault(Fault { kind: FaultKind::Endless, .. })), "{stop:?}");
}

/// The numbers that BV has on a7xx are those of other control registers.
#[test]
fn a6xx_has_one_sqe_and_no_bv() {
    proves!(AF_003, "a6xx has a single SQE");
    let source = "[016ee001]\nmov $02, #bv << 2\nmov $03, 0x1\ncwrite $02, [$00 + 0x0d6]\ncwrite $03, [$00 + 0x0d7]\n\
                  cwrite $03, [$00 + 0x0d8]\nwaitin\nmov $01, $data\nbv:\nmov $02, 0x5\nwaitin\nmov $01, $data\n";
    let mut machine = Machine::new(&image(source, Generation::A6));
    assert_eq!(machine.run(1_000), Stop::Idle);
    let names: Vec<&str> = machine.processors().map(|machine| machine.processor.name(Generation::A6)).collect();
    assert_eq!((names, machine.processor(Processor::Bv).is_none()), (vec!["SQE"], true));
    let mut machine = Machine::new(&image(include_str!("../firmware/sqe-open.asm"), Generation::A6));
    assert_eq!((machine.run(10_000), machine.processors().count()), (Stop::Idle, 1));
}

/// CP_LPAC_SQE_CNTL starts LPAC on a6xx, at CP_LPAC_SQE_INSTR_BASE, and stops it (AF-125).
#[test]
fn register_starts_and_stops_lpac_of_a6xx() {
    proves!([AF_004, AF_121], "the SQE starts LPAC, which is in its image");
    let source = |cntl: &str| {
        format!(
            "[016dc001]\nmov $02, #lpac << 2\nmov $03, 0x1\nmov $addr, CP_LPAC_SQE_INSTR_BASE\nmov $data, $02\n\
             mov $data, $03\nmov $addr, CP_LPAC_SQE_CNTL\nmov $data, $03\n{cntl}\nwaitin\nmov $01, $data\nlpac:\n\
             mov $02, 0x5\nl: cread $03, [$00 + @THREAD_SYNC]\nbreq $03, 0x0, #waitin\nnop\nnop\nwaitin:\nmov $addr, 0x444\n\
             mov $data, $02\nwaitin\nmov $01, $data\n"
        )
    };
    let mut machine = Machine::new(&image(&source("nop"), Generation::A6));
    assert_eq!(machine.run(1_000), Stop::Idle);
    assert_eq!((machine.bus.gpu[0x444], machine.processor(Processor::Lpac).map(|other| other.gpr[2])), (5, Some(5)));
    let stop = "mov $addr, CP_LPAC_SQE_CNTL\nmov $data, $00";
    let mut machine = Machine::new(&image(&source(stop), Generation::A6));
    assert_eq!(machine.run(1_000), Stop::Idle);
    assert!(machine.processor(Processor::Lpac).is_none());
    assert!(!machine.submit_to_lpac(0, 1));
}

/// A start where the image has no code is a fault, and so is one at an odd address.
#[test]
fn start_outside_of_the_image_is_a_fault() {
    for (low, address) in [("0x0", 0), ("0x2", 2), ("0xf000", 0xf000)] {
        let source = format!(
            "[01730001]\nmov $02, {low}\ncwrite $02, [$00 + @BV_INSTR_BASE]\nmov $02, 0x1\ncwrite $02, [$00 + @BV_CNTL]\n"
        );
        match Machine::new(&image(&source, Generation::A7)).run(100) {
            Stop::Fault(Fault { kind, processor: Processor::First, .. }) => assert_eq!(kind, FaultKind::Start(address)),
            other => panic!("{other:?}"),
        }
    }
}

/// What a processor stores into the image is executed by the others.
#[test]
fn store_of_bv_into_the_image_is_executed_by_br() {
    let high = INSTR_BASE >> 32;
    let source = format!(
        "[01730001]\nmov $02, #bv << 2\nmov $03, {high:#x}\ncwrite $02, [$00 + @BV_INSTR_BASE]\n\
         cwrite $03, [$00 + @BV_INSTR_BASE+0x1]\nmov $04, 0x1\ncwrite $04, [$00 + @BV_CNTL]\nwait:\n\
         cread $05, [$00 + 0x220]\nbreq $05, 0x0, #wait\nnop\nchanged:\nnop\nwaitin\nmov $01, $data\n.align 32\nbv:\n\
         .section BV\nmov $03, {high:#x}\ncwrite $03, [$00 + @LOAD_STORE_HI]\nmov $02, 0x7003 << 16\nor $02, $02, 0x7\n\
         store $02, [$00 + 0x28]\ncwrite $03, [$00 + 0x220]\nwaitin\nmov $01, $data\n"
    );
    let mut machine = Machine::new(&image(&source, Generation::A7));
    assert_eq!(machine.run(10_000), Stop::Idle);
    assert_eq!(machine.gpr[3], 7, "the word 0x70030007 is `mov $03, 0x7`");
}
