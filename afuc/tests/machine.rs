// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The machine: ALU vectors, modifiers, queues, the open firmware, faults.

mod common;
#[path = "common/steps.rs"]
mod steps;

use arctic_afuc::isa::Generation;
use arctic_afuc::machine::{Effect, Fault, FaultKind, Group, INSTR_BASE, Machine, Stop};
use arctic_fidelity::proves;

const RING: u64 = 0x10_0000;
const OPEN: &str = concat!(".gen 6\n", include_str!("../firmware/sqe-open.asm"));

fn machine(source: &str) -> Machine {
    steps::mapped(source, RING, 0x1_0000)
}

fn put(machine: &mut Machine, address: u64, words: &[u32]) {
    for (index, word) in (0..).zip(words) {
        machine.bus.memory.write(address + index * 4, *word).unwrap();
    }
}

fn submit(machine: &mut Machine, words: &[u32]) {
    put(machine, RING, words);
    machine.submit(RING, u32::try_from(words.len()).unwrap());
}

/// A machine with the open firmware that has executed the packets.
fn open(packets: &[u32]) -> (Machine, Stop) {
    let mut machine = machine(OPEN);
    assert_eq!(machine.run(1_000), Stop::Idle);
    submit(&mut machine, packets);
    let stop = machine.run(100_000);
    (machine, stop)
}

/// A machine that ran the instructions once, with the words in its queue and in `$rem`.
fn execute(instructions: &str, words: &[u32], rem: u32) -> Machine {
    let mut machine = machine(&format!(".gen 7\n{instructions}\nwaitin\nnop\n"));
    submit(&mut machine, words);
    machine.gpr[0x1c] = rem;
    let _ = machine.run(instructions.lines().count() as u64);
    machine
}

fn odd(value: u32) -> u32 {
    value.count_ones() & 1 ^ 1
}

fn packet7(opcode: u32, payload: &[u32]) -> Vec<u32> {
    let count = u32::try_from(payload.len()).unwrap();
    let header = 7 << 28 | odd(opcode) << 23 | opcode << 16 | odd(count) << 15 | count;
    [&[header], payload].concat()
}

fn packet4(register: u32, payload: &[u32]) -> Vec<u32> {
    let count = u32::try_from(payload.len()).unwrap();
    let header = 4 << 28 | odd(register) << 27 | register << 8 | odd(count) << 7 | count;
    [&[header], payload].concat()
}

fn fault(stop: Stop) -> FaultKind {
    match stop {
        Stop::Fault(Fault { kind, .. }) => kind,
        other => panic!("{other:?}"),
    }
}

/// Packets of 1 to 8 words, N 1 to 3, with `(rep)` and without (AFC-032).
#[test]
fn xmov_takes_no_word_of_the_next_packet() {
    proves!(AF_087, "(xmovN) makes up to N more moves from the second source");
    proves!(AF_088, "an ordinary destination keeps the first word, and the others are dropped");
    proves!(AF_089, "the words left after the first one limit the moves");
    proves!(AF_091, "without (rep) (xmov1) moves two words");
    let words: Vec<u32> = (1..=20).collect();
    for n in 1..=3_u32 {
        for length in 1..=8_u32 {
            let all = execute(&format!("(rep)(xmov{n})mov $data, $data"), &words, length);
            assert_eq!((all.bus.queues[0].left, all.gpr[0x1c]), (20 - length, 0), "{n} {length}");
            let values = all.bus.effects.iter().map(|effect| match effect {
                Effect::Register(_, value) => *value,
                other => panic!("{other:?}"),
            });
            assert!(values.eq(1..=length));
            let once = execute(&format!("(xmov{n})mov $data, $data"), &words, length);
            let taken = 1 + n.min(length - 1);
            assert_eq!((once.bus.queues[0].left, once.gpr[0x1c]), (20 - taken, length - taken), "{n} {length}");
            let dropped = execute(&format!("(xmov{n})mov $05, $data"), &words, length);
            assert_eq!((dropped.gpr[5], dropped.bus.queues[0].left), (1, 20 - taken));
            assert!(dropped.bus.effects.is_empty());
        }
    }
}

#[test]
fn rep_counts_by_the_words_read_or_by_the_modifier() {
    proves!(AF_055, "a loop of cwrite with pre-increment writes consecutive registers");
    proves!(AF_085, "(rep) ends when $rem is 0, which falls by one in each pass");
    proves!(AF_087, "of three moves the second goes to the destination");
    proves!(AF_088, "$usraddr is a destination that (xmovN) writes again");
    proves!(AF_090, "(rep)(xmov3)mov $usraddr, $data writes pairs of register and value");
    let cleared = execute("(rep)cwrite $00, [$03 + 0x100]!", &[], 4);
    assert_eq!((cleared.gpr[3], cleared.gpr[0x1c]), (0x400, 0));
    assert_eq!(execute("(rep)add $02, $02, 0x1", &[], 0).gpr[2], 0);
    assert_eq!(execute("(rep)add $02, $02, $data", &[1, 2, 3, 4], 3).gpr[2], 6);
    let pairs = execute("(rep)(xmov3)mov $usraddr, $data", &[0x10, 1, 0x20, 2, 0x30, 3, 9], 6);
    let expected = [Effect::Register(0x10, 1), Effect::Register(0x20, 2), Effect::Register(0x30, 3)];
    assert_eq!(pairs.bus.effects, expected);
    let two = execute("(xmov2)mov $usraddr, $data", &[0x10, 1, 2, 9], 3);
    assert_eq!(two.bus.effects, [Effect::Register(0x10, 1), Effect::Register(0x11, 2)]);
    let address = execute("(rep)(xmov3)mov $addr, $data", &[0x10, 1, 0x20, 2], 4);
    assert_eq!(address.bus.effects, [Effect::Register(0x10, 1), Effect::Register(0x20, 2)]);
}

/// At another register than DRAW_STATE_SET_HDR the words are read and dropped.
#[test]
fn sds_takes_three_words_for_a_group() {
    proves!(AF_092, "the extra words of (sdsN) are the address of a draw-state group");
    proves!(AF_093, "(rep)(sds2) lowers $rem by three in each pass");
    let words = [0x0100_0004, 0x1000, 2, 0x0300_0008, 0x2000, 0, 7];
    let groups = execute("(rep)(sds2)cwrite $data, [$00 + @DRAW_STATE_SET_HDR]", &words, 6);
    assert_eq!((groups.gpr[0x1c], groups.bus.queues[0].left), (0, 1));
    assert_eq!(groups.bus.groups[1], Group { header: words[0], base: 0x2_0000_1000 });
    assert_eq!((groups.bus.groups[3].base, groups.bus.control[0x49]), (0x2000, 0b1010));
    let dropped = execute("(sds2)cwrite $data, [$00 + 0x101]", &words, 6);
    assert_eq!((dropped.bus.control[0x101], dropped.gpr[0x1c]), (words[0], 3));
}

#[test]
fn peek_leaves_the_word_in_the_queue() {
    proves!(AF_094, "(peek) reads a word and leaves it in the queue");
    let machine = execute("(peek)mov $02, $data\n(peek)mov $03, $data\nmov $04, $data", &[5, 6], 2);
    assert_eq!((machine.gpr[2], machine.gpr[3], machine.gpr[4], machine.gpr[0x1c]), (5, 5, 5, 1));
}

#[test]
fn open_firmware_executes_packets_of_ring_and_indirect_buffers() {
    proves!(AF_096, "the bootstrap loads the packet table");
    proves!(AF_101, "CP_MEM_WRITE writes the words behind the address, without its flags");
    let (ib1, ib2) = (RING + 0x1000, RING + 0x2000);
    let buffer = |address: u64, words: usize| {
        packet7(0x3f, &[u32::try_from(address).unwrap(), 0, u32::try_from(words).unwrap()])
    };
    let second = packet4(0x1234, &[1, 2, 3, 4, 5]);
    let target = u32::try_from(RING + 0x3000).unwrap();
    let first = [
        packet7(0x3d, &[target | 1, 0, 0xaa, 0xbb, 0xcc]),
        buffer(ib2, second.len()),
        packet7(0x5c, &[0x2000, 7, 0x2001, 8]),
    ]
    .concat();
    let ring = [
        packet7(0x48, &[0x2f, 3, 0x2000_0000, 0, 0, 0, 0, 0]),
        buffer(ib1, first.len()),
        packet7(0x4c, &[2 << 20, 0x55]),
        packet7(0x3e, &[0x1234 | 3 << 18, target + 0x100, 0]),
        packet7(0x26, &[]),
    ]
    .concat();
    let mut machine = machine(OPEN);
    assert_eq!(machine.run(1_000), Stop::Idle);
    put(&mut machine, ib1, &first);
    put(&mut machine, ib2, &second);
    submit(&mut machine, &ring);
    assert_eq!(machine.run(10_000), Stop::Idle);
    let memory = |offset: u64, value| Effect::Memory(RING + 0x3000 + offset, value);
    let expected = [
        vec![memory(0, 0xaa), memory(4, 0xbb), memory(8, 0xcc)],
        (0..5).map(|n| Effect::Register(0x1234 + n, n + 1)).collect(),
        vec![Effect::Register(0x2000, 7), Effect::Register(0x2001, 8), Effect::Register(0x885, 0x55)],
        vec![memory(0x100, 1), memory(0x104, 2), memory(0x108, 3), Effect::Pipe(0x80, 0)],
    ]
    .concat();
    assert_eq!(machine.bus.effects, expected);
}

/// All functions of CP_COND_WRITE5 on a value below, at and above the reference, polled in memory and in a register.
#[test]
fn open_firmware_writes_if_the_condition_passes() {
    let compare: [fn(u32, u32) -> bool; 7] =
        [|_, _| true, |a, b| a < b, |a, b| a <= b, |a, b| a == b, |a, b| a != b, |a, b| a >= b, |a, b| a > b];
    let target = u32::try_from(RING).unwrap() + 0x4000;
    for (function, passes) in (0_u32..).zip(compare) {
        for (value, from_memory) in [(4, false), (5, false), (6, false), (4, true), (5, true), (6, true)] {
            let (poll, source) = if from_memory { (target + 4, 1 << 4) } else { (0x444, 0) };
            let set =
                if from_memory { packet7(0x3d, &[poll, 0, 0xf0 | value]) } else { packet4(poll, &[0xf0 | value]) };
            let condition = packet7(0x45, &[function | source | 1 << 8, poll, 0, 5, 0xf, target, 0, 9]);
            let (machine, stop) = open(&[set, condition].concat());
            assert_eq!(stop, Stop::Idle);
            let written = machine.bus.effects.get(1) == Some(&Effect::Memory(u64::from(target), 9));
            assert_eq!(written, passes(value, 5), "{function} {value}");
        }
    }
}

/// An event with a value ends a wait for it, in memory that is mapped on demand.
#[test]
fn event_with_a_value_ends_a_wait_in_memory_mapped_on_demand() {
    let packets = [
        packet7(0x46, &[4]),
        packet7(0x46, &[4, 0xdead_0000, 9, 7]),
        packet7(0x3c, &[3 | 1 << 4, 0xdead_0000, 9, 7, 0xff, 1]),
    ]
    .concat();
    assert_eq!(fault(open(&packets).1), FaultKind::Unmapped(0x9_dead_0000));
    let mut machine = machine(OPEN);
    machine.bus.memory.map_on_demand = true;
    assert_eq!(machine.run(1_000), Stop::Idle);
    submit(&mut machine, &packets);
    assert_eq!(machine.run(10_000), Stop::Idle);
    assert_eq!(machine.bus.effects, [Effect::Memory(0x9_dead_0000, 7)]);
}

#[test]
fn indirect_buffer_without_memory_is_skipped_and_counted() {
    let mut machine = machine(OPEN);
    machine.bus.memory.map_on_demand = true;
    assert_eq!(machine.run(1_000), Stop::Idle);
    submit(&mut machine, &[packet7(0x3f, &[0xdead_0000, 9, 5]), packet4(0x444, &[1])].concat());
    assert_eq!(machine.run(1_000), Stop::Idle);
    assert_eq!((machine.bus.missing_buffers, machine.bus.gpu[0x444]), (1, 1));
}

/// CP_WAIT_REG_MEM ends if the value is there, and is a fault if nothing writes it (AFC-040).
#[test]
fn poll_that_nothing_ends_is_a_fault() {
    let wait = |value| [packet4(0x444, &[value]), packet7(0x3c, &[3, 0x444, 0, 5, 0xff, 16])].concat();
    assert_eq!(open(&wait(5)).1, Stop::Idle);
    let mut machine = machine(OPEN);
    machine.packet_budget = 10_000;
    assert_eq!(machine.run(1_000), Stop::Idle);
    submit(&mut machine, &wait(6));
    assert_eq!(fault(machine.run(u64::MAX)), FaultKind::Endless);
}

/// Firmware that enters `waitin` again without having taken a word does not begin a packet: with and without a header, at
/// the end of a buffer, and with preemption in between, which does not renew the budget (AFC-040).
#[test]
fn waitin_without_a_word_is_a_fault_after_the_budget() {
    const PROLOGUE: &str = "[016ee001]\n[#jumptbl]\nmov $01, #jumptbl\nmov $02, 0x1\nshl $01, $01, 0x2\n";
    let stops = |body: &str, words: &[u32], preempt_every| {
        let source = format!("{PROLOGUE}{body}\n.align 32\njumptbl:\n.jumptbl\n");
        let mut machine = machine(&source);
        machine.packet_budget = 10_000;
        machine.preempt_every = preempt_every;
        submit(&mut machine, words);
        let stop = machine.run(10_000_000);
        assert!(machine.executed < 100_000, "{body}: {}", machine.executed);
        stop
    };
    let nop = packet7(0x10, &[]);
    // The header is that of a NOP that no word of the stream has.
    let again = "cwrite $00, [$00 + @PACKET_TABLE_WRITE_ADDR]\nmov $03, #handler\n(rep)nop\n\
                 mov $04, 0x80\ntable: cwrite $03, [$00 + @PACKET_TABLE_WRITE]\nsub $04, $04, 0x1\n\
                 brne $04, 0x0, #table\nnop\nmov $01, 0x7010 << 16\nor $01, $01, 0x8000\n\
                 handler: waitin\nSLOT";
    for preempt_every in [None, Some(u64::MAX)] {
        let stop = stops(&again.replace("SLOT", "nop"), &nop.repeat(20), preempt_every);
        assert_eq!(fault(stop), FaultKind::Endless, "{preempt_every:?}");
        let stop = stops(&again.replace("SLOT", "mov $01, $data"), &nop.repeat(20), preempt_every);
        assert_eq!(stop, Stop::Idle, "a word of each packet is taken");
    }
}

/// Each fault is a value with its place, and sets its bit of CP_INTERRUPT_STATUS (AFC-026).
#[test]
fn faults_are_values_and_set_the_interrupt_status() {
    proves!(AF_099, "a header has a type, reserved bits and odd parity");
    let status = |machine: &Machine| machine.bus.gpu[0x823];
    let (machine, stop) = open(&packet7(0x7e, &[]));
    assert_eq!((fault(stop), status(&machine)), (FaultKind::Opcode(0x7e), 1));
    assert!(matches!(stop, Stop::Fault(Fault { header: 0x707e_8000.., address: RING, .. })), "{stop:?}");
    let (operation, registers) = (packet7(0x10, &[0])[0], packet4(0x444, &[0])[0]);
    let wrong =
        [operation ^ 1 << 15, operation ^ 1 << 23, operation ^ 1 << 14, registers ^ 1 << 7, registers ^ 1 << 27];
    for bad in wrong.into_iter().chain([operation & 0x0fff_ffff | 3 << 28]) {
        let (machine, stop) = open(&[bad, 0]);
        assert_eq!((fault(stop), status(&machine)), (FaultKind::Header(bad), 1));
    }
    let (_, stop) = open(&packet7(0x10, &[1, 2, 3])[..2]);
    assert_eq!(fault(stop), FaultKind::QueueEmpty(0));
    let unmapped = packet7(0x3d, &[0xdead_0000, 9, 1]);
    let (machine, stop) = open(&unmapped);
    assert_eq!((fault(stop), status(&machine)), (FaultKind::Unmapped(0x9_dead_0000), 4));
}

/// The same register through `$usraddr` is a fault and through `$addr` is not.
#[test]
fn protection_is_for_usraddr_only() {
    proves!(AF_013, "as destinations 0x1d and 0x1e are $addr and $usraddr");
    proves!(AF_070, "$usraddr sets the address with the check of CP_PROTECT, $addr without");
    proves!(AF_075, "CP_PROTECT covers the registers of its entries, for $usraddr only");
    for (name, register, protected) in [
        ("$usraddr", 0x802, true),
        ("$addr", 0x802, false),
        ("$usraddr", 0x803, true),
        ("$usraddr", 0x804, false),
        ("$usraddr", 0x7ff, false),
    ] {
        let mut machine = machine(&format!("[016ee001]\nmov {name}, {register:#x}\nmov $data, $01\nwaitin\nnop\n"));
        (machine.bus.gpu[0x84f], machine.bus.gpu[0x850]) = (1, 3 << 18 | 0x800);
        machine.gpr[1] = 5;
        // The literal is a NOP.
        let stop = machine.run(10);
        let (status, value) = (machine.bus.gpu[0x823], machine.bus.gpu[register as usize]);
        match protected {
            true => assert_eq!((fault(stop), status, value), (FaultKind::Protected(register), 1 << 4, 0)),
            false => assert_eq!((stop, status, value), (Stop::Idle, 0, 5)),
        }
    }
}

#[test]
fn wrong_control_flow_is_a_fault() {
    proves!(AF_042, "a taken branch in the delay slot of a taken branch is a fault");
    let run = |source: &str| fault(machine(&format!(".gen 6\n{source}")).run(10_000_000));
    assert_eq!(run("[00000000]"), FaultKind::Illegal(0));
    assert_eq!(run("nop"), FaultKind::OutsideImage);
    assert_eq!(run("f: call #f\nnop"), FaultKind::StackOverflow);
    assert_eq!(run("ret\nnop"), FaultKind::StackUnderflow);
    assert_eq!(run("jump #l\njump #l\nl: nop"), FaultKind::BothTaken);
    assert_eq!(run("l: jump #l\nnop"), FaultKind::Endless);
    assert_eq!(run("load $02, [$00 + 0x2]"), FaultKind::Unaligned(2));
    assert_eq!(run("mov $rem, 0xffff << 16\n(rep)nop\n(rep)mov $rem, 0x2"), FaultKind::Endless);
}

#[test]
fn delay_slot_is_executed_and_an_untaken_branch_in_it_is_legal() {
    let source = ".gen 6\nbreq $02, 0x0, #l\nbreq $02, 0x1, #l\nadd $03, $03, 0x1\nl: waitin\nadd $03, $03, 0x10\n";
    proves!(AF_041, "the instruction after a branch is executed");
    proves!(AF_042, "a branch in a delay slot is legal unless both are taken");
    for slow in [false, true] {
        let mut machine = machine(source);
        machine.preempt_every = slow.then_some(u64::MAX);
        assert_eq!(machine.run(10), Stop::Idle);
        assert_eq!((machine.gpr[3], machine.pc), (0, 3));
    }
}

/// What a machine has after reset.
#[test]
fn state_after_reset_is_zero_and_has_its_sizes() {
    proves!(AF_117, "the state has the documented sizes and is zero after reset");
    let machine = machine(".gen 7\nnop\n");
    assert_eq!((machine.gpr, machine.sqe, machine.pc, machine.packet()), ([0; 32], [0; 16], 0, (0, 0)));
    assert_eq!((machine.bus.gpu.len(), machine.bus.pipe, machine.bus.packet_table), (0x1_0000, [0; 256], [0; 128]));
    assert!(machine.bus.groups == [Group::default(); 32] && machine.call_depth() == 0 && !machine.is_in_slot());
    assert!((0..0x1000).all(|number| machine.bus.read_control(number) == 0));
    // CP_SQE_INSTR_BASE is the address of the image.
    let set: Vec<usize> = (0..0x1_0000).filter(|number| machine.bus.gpu[*number] != 0).collect();
    assert_eq!((set, machine.bus.gpu[0x831]), (vec![0x831], 1));
    // A number of a control register has 12 bits.
    let wrapped = execute("mov $02, 0x10\ncwrite $02, [$02 + 0xfff]\nmov $03, 0xf\ncread $04, [$03 + 0x000]", &[], 0);
    assert_eq!(wrapped.gpr[4], 0x10);
}

#[test]
fn bootstrap_ends_at_waitin_or_at_the_first_read_of_data() {
    proves!(AF_119, "a bootstrap ends at waitin, or when it reads a word of a packet");
    let mut idle = machine(".gen 6\nmov $02, 0x1\nwaitin\nmov $02, 0x2\n");
    assert_eq!((idle.run(100), idle.gpr[2], idle.pc), (Stop::Idle, 1, 1));
    let mut read = machine(".gen 6\nmov $02, 0x1\nmov $03, $data\nmov $02, 0x2\n");
    assert_eq!((fault(read.run(100)), read.gpr[2], read.pc), (FaultKind::QueueEmpty(0), 1, 1));
}

/// A store into the image changes the instruction.
#[test]
fn store_into_the_image_is_executed() {
    let source = ".gen 6\ncwrite $01, [$00 + @LOAD_STORE_HI]\nstore $02, [$00 + 0xc]\nnop\nnop\nwaitin\nnop\n";
    let mut machine = machine(source);
    machine.gpr[1] = u32::try_from(INSTR_BASE >> 32).unwrap();
    machine.gpr[2] = 0x8803_0007;
    assert_eq!(machine.run(10), Stop::Idle);
    assert_eq!(machine.gpr[3], 7);
}

/// No image and no stream makes the machine panic or run without end.
#[test]
fn random_images_stop_within_the_budget() {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        u32::try_from(state >> 32).unwrap()
    };
    for number in 0..2_000 {
        let words: Vec<u32> = (0..64).map(|_| next()).collect();
        let bytes: Vec<u8> = std::iter::once(0).chain(words).flat_map(u32::to_le_bytes).collect();
        let image = arctic_afuc::container::Image::from_bytes(&bytes, Some(Generation::ALL[number % 3])).unwrap();
        let mut machine = Machine::new(&image);
        machine.bus.memory.map(RING, 0x1000);
        machine.packet_budget = 10_000;
        machine.submit(RING, 100);
        // A preemption that is never due: all instructions go the long way.
        let mut long = machine.clone();
        long.preempt_every = Some(u64::MAX);
        assert_eq!(machine.run(20_000), long.run(20_000));
        assert_eq!((machine.gpr, machine.pc, machine.executed), (long.gpr, long.pc, long.executed));
        assert!(machine.executed <= 30_000);
    }
}

/// ALU instructions and branches of random operands: the short way of execution has the results of the long way.
#[test]
fn fast_path_has_the_results_of_the_slow_path() {
    let mut random = common::Random(5);
    let mut executed = 0;
    for number in 0..300 {
        let generation = Generation::ALL[number % 3];
        let is_simple = |row: &&arctic_afuc::isa::Encoding| {
            let items = ["AF-018", "AF-019", "AF-020", "AF-021", "AF-022", "AF-024", "AF-029", "AF-036", "AF-037"];
            row.generations.has(generation) && items.iter().any(|item| row.items.contains(item))
        };
        let rows: Vec<_> = arctic_afuc::isa::ENCODINGS.iter().filter(is_simple).collect();
        // Without (rep), and with branches of a few words.
        let word = |random: &mut common::Random| match common::instruction(random, &rows) & !(1 << 26) {
            branch if branch >> 28 == 0xc => branch & 0xffff_0003,
            other => other,
        };
        let words: Vec<u32> = (0..64).map(|_| word(&mut random)).collect();
        let bytes: Vec<u8> = std::iter::once(0).chain(words).flat_map(u32::to_le_bytes).collect();
        let image = arctic_afuc::container::Image::from_bytes(&bytes, Some(generation)).unwrap();
        let mut short = Machine::new(&image);
        short.gpr.iter_mut().skip(1).for_each(|register| *register = random.next());
        short.packet_budget = 500;
        let mut long = short.clone();
        long.preempt_every = Some(u64::MAX);
        for step in 1..50 {
            assert_eq!(short.run(step), long.run(step));
            assert_eq!((short.gpr, short.pc, short.executed), (long.gpr, long.pc, long.executed), "{number}");
        }
        executed += short.executed;
    }
    assert!(executed > 10_000, "{executed}");
}

/// Accesses to control and pipe registers without a model are counted; scratch and modelled registers are not (AFC-066).
#[test]
fn accesses_to_registers_without_a_model_are_counted() {
    let source = "[016ee001]\ncwrite $00, [$00 + @PERFCNTR_CNTL]\ncread $02, [$00 + @PERFCNTR_CNTL]\n\
                  cwrite $00, [$00 + @LOAD_STORE_HI]\ncwrite $00, [$00 + 0x120]\nmov $addr, 0xe7 << 24\n\
                  mov $data, $00\nwaitin\nnop\n";
    let mut machine = machine(source);
    assert_eq!(machine.run(100), Stop::Idle);
    assert!(machine.bus.unmodelled_control_registers().eq([(0x5d, 2)]));
    assert!(machine.bus.unmodelled_pipe_registers().eq([(0xe7, 1)]));
    let (machine, stop) = open(&packet7(0x10, &[]));
    assert_eq!((stop, machine.bus.unmodelled_control_registers().count()), (Stop::Idle, 0));
}
