// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Exceptions and the system routine (EU-060, EU-061).

use arctic_eu::exec::payload::{Dispatch, Header, Payload};
use arctic_eu::exec::thread::CR;
use arctic_eu::exec::{
    self, Budget, Environment, Fault, FaultKind, Group, GroupStop, Host, MemoryFault, Program, SavedGroup, Stop,
    Thread, Way, Workgroup,
};
use arctic_eu::isa::table;
use arctic_fidelity::proves;

use super::code::{CodeMemory, ORIGIN, on_demand};
use super::{END, Page, code, thread};

/// Addresses of the kernel and of the system routine, relative to the instruction base.
const KERNEL: u32 = 0x800;
const ROUTINE: u32 = 0x40;

/// cr0.0: the thread is in the system routine.
const IN_ROUTINE: u32 = 1 << 31;
/// cr0.1: enables and states.
const ILLEGAL_ENABLE: u32 = 1 << 12;
const SOFTWARE_ENABLE: u32 = 1 << 13;
const ILLEGAL: u32 = 1 << 28;
const SOFTWARE: u32 = 1 << 29;

/// Passes over the instruction and clears all exceptions, then leaves the system routine.
const RETURN: &str = "
(W)     add (1|M0) cr0.2<1>:ud cr0.2<0;1,0>:ud 0x10:uw
(W)     and (1|M0) cr0.1<1>:ud cr0.1<0;1,0>:ud 0x7FFFFF:ud
(W)     and (1|M0) cr0.0<1>:ud cr0.0<0;1,0>:ud 0x7FFFFFFD:ud
";

fn memory(kernel: &str, routine: &str) -> CodeMemory {
    let kernel = code(&format!("{kernel}{END}"));
    CodeMemory::new(0x1000, &[(KERNEL as usize, kernel), (ROUTINE as usize, code(routine))])
}

/// A thread of hardware, with these enables.
fn enabled(enables: u32) -> Thread {
    let mut state = thread();
    state.exceptions = true;
    state.set_u32(CR + 4, enables);
    state.start_at(KERNEL);
    state
}

/// How a thread was executed.
#[derive(Debug, PartialEq, Eq)]
struct Executed {
    stop: Stop,
    /// Address of each exception.
    exceptions: Vec<u32>,
    /// Instructions that were passed over.
    passed_over: u64,
}

/// Executes at most `most` instructions of a thread, `part` at once, in the system routine after exceptions.
fn execute(code: &CodeMemory, thread: &mut Thread, most: u64, part: u64, way: Way) -> Result<Executed, MemoryFault> {
    let (mut program, mut page, mut group) = (on_demand(), Page::new(), Group::default());
    let (mut exceptions, mut passed_over) = (Vec::new(), 0);
    loop {
        let mut environment = Environment::new(&mut page, &mut group);
        let budget = Budget::instructions(part.min(most - thread.executed));
        let stop = exec::run(&program, thread, &mut environment, budget, way, &mut ());
        passed_over += environment.passed_over;
        assert_eq!(environment.passed_over > 0, environment.first_passed_over.is_some());
        match stop {
            Stop::Budget if thread.executed < most => {}
            Stop::Fetch(address) => drop(program.extend(address, &mut code.fetch())?),
            Stop::Exception(address) => {
                assert_eq!(thread.u32(CR + 8), address);
                exceptions.push(address);
                thread.enter_system_routine(ROUTINE);
            }
            stop => return Ok(Executed { stop, exceptions, passed_over }),
        }
    }
}

/// Address of the instruction behind this text at the start of the kernel.
fn behind(text: &str) -> u32 {
    KERNEL + code(text).len() as u32
}

const ONE: &str = "mov (16|M0) r20.0<1>:ud 0x1:ud\n";
const TWO: &str = "mov (16|M0) r22.0<1>:ud 0x2:ud\n";

#[test]
fn illegal_opcodes_enter_the_system_routine_if_that_is_enabled() {
    proves!(
        [EU_060, EU_061],
        "in the system routine cr0 has the exception, its address and the bit of the routine, another one is passed over, and the \
        thread goes on where the routine says; without the enable the instruction is passed over, and cr0 does not change"
    );
    for illegal in ["illegal\n", ".inst 0x0000007f 0 0 0\n"] {
        let kernel = format!("{ONE}{illegal}{TWO}");
        let routine =
            format!("(W) mov (4|M0) r24.0<1>:ud cr0.0<4;4,1>:ud\n{illegal}{RETURN}(W) mov (1|M0) r26.0<1>:ud 1:w\n");
        let code = memory(&kernel, &routine);
        for (part, way) in [(1, Way::General), (1, Way::Fast), (1000, Way::Fast)] {
            let mut state = enabled(ILLEGAL_ENABLE);
            let expected = Executed { stop: Stop::End, exceptions: vec![behind(ONE)], passed_over: 1 };
            assert_eq!(execute(&code, &mut state, 1000, part, way), Ok(expected));
            let seen = [0, 1, 2].map(|dword| state.grf(24, dword));
            assert_eq!(seen, [IN_ROUTINE, ILLEGAL | ILLEGAL_ENABLE, behind(ONE)], "in the routine");
            assert_eq!((state.grf(20, 0), state.grf(22, 0), state.grf(26, 0)), (1, 2, 0));
            assert_eq!((state.u32(CR), state.u32(CR + 4)), (0, ILLEGAL_ENABLE), "behind it");
            // Three instructions, the end, and five of the routine.
            assert_eq!(state.executed, 9);
        }
        // Without the enable, it is passed over.
        let mut state = enabled(SOFTWARE_ENABLE);
        let expected = Executed { stop: Stop::End, exceptions: vec![], passed_over: 1 };
        assert_eq!(execute(&code, &mut state, 1000, 1, Way::Fast), Ok(expected));
        assert_eq!((state.grf(22, 0), state.u32(CR + 4), state.u32(CR + 8)), (2, SOFTWARE_ENABLE, 0));
        // Without exceptions, it is a fault.
        let mut state = enabled(ILLEGAL_ENABLE);
        state.exceptions = false;
        let kind = if illegal == "illegal\n" { FaultKind::Illegal } else { FaultKind::Opcode };
        let executed = execute(&code, &mut state, 1000, 1, Way::Fast).unwrap();
        assert!(matches!(executed.stop, Stop::Fault(Fault { kind: found, .. }) if found == kind), "{executed:?}");
    }
}

/// ISA-026. What has the opcode of an instruction is not illegal, whatever its fields are: one that cannot be executed ends its
/// thread.
#[test]
fn only_opcodes_of_no_instruction_are_illegal() {
    proves!(
        EU_060,
        "each opcode that no instruction has is illegal, with and without the bit of compaction, and no other"
    );
    let mut illegal = 0;
    for (opcode, rest) in (0..128).flat_map(|opcode| [0u32, 1 << 29, 0x5fff_ff80].map(|rest| (opcode, rest))) {
        let word = opcode | rest;
        let code = memory(&format!(".inst {word:#010x} 0xffffffff 0xffffffff 0xffffffff\n"), RETURN);
        let exists = opcode != 0 && table::by_code(opcode as u8).is_some();
        for enables in [ILLEGAL_ENABLE, 0] {
            let mut state = enabled(enables);
            let executed = execute(&code, &mut state, 1, 1, Way::Fast).unwrap();
            let expected = match (exists, enables) {
                (true, _) => (0, 0),
                (false, 0) => (0, 1),
                (false, _) => (1, 0),
            };
            assert_eq!((executed.exceptions.len() as u64, executed.passed_over), expected, "{word:#010x}");
            illegal += u32::from(!exists);
        }
    }
    assert_eq!(illegal, 6 * (129 - table::TABLE.len() as u32));
    let unsupported = "madm (8|M0) r20.0<1>:f r22.0<1;0>:f r24.0<1;0>:f r26.0<1>:f\n";
    let reserved_field = ".inst 0x00070061 0 0 0\n";
    for (text, kind) in [(unsupported, FaultKind::Unsupported), (reserved_field, FaultKind::Undecodable)] {
        let executed = execute(&memory(text, RETURN), &mut enabled(ILLEGAL_ENABLE), 10, 1, Way::Fast).unwrap();
        assert!(matches!(executed.stop, Stop::Fault(Fault { kind: found, .. }) if found == kind), "{executed:?}");
    }
}

const RAISE: &str = "(W) or (1|M0) cr0.1<1>:ud cr0.1<0;1,0>:ud 0x20000000:ud\n";
const ENABLE: &str = "(W) or (1|M0) cr0.1<1>:ud cr0.1<0;1,0>:ud 0x2000:ud\n";

#[test]
fn software_exceptions_are_raised_by_writes_of_their_bit() {
    proves!(
        EU_062,
        "the thread goes on behind the write that raises a software exception; until it is enabled it is pending, and one that the \
        routine has not cleared is raised again"
    );
    let routine = format!(
        "(W) mov (4|M0) r24.0<1>:ud cr0.0<4;4,1>:ud\n{}",
        RETURN.lines().skip(2).collect::<Vec<_>>().join("\n")
    );
    for (kernel, enables, exceptions) in [
        (format!("{ONE}{RAISE}{TWO}"), SOFTWARE_ENABLE, vec![behind(ONE) + 16]),
        (format!("{ONE}{RAISE}{TWO}"), ILLEGAL_ENABLE, vec![]),
        (format!("{ONE}{RAISE}{ENABLE}{TWO}"), 0, vec![behind(ONE) + 32]),
        (format!("{ONE}{ENABLE}{TWO}"), 0, vec![]),
        (format!("{RAISE}{ONE}{RAISE}{TWO}"), SOFTWARE_ENABLE, vec![KERNEL + 16, behind(ONE) + 32]),
    ] {
        let (pending, count) = (kernel.contains("0x20000000") && exceptions.is_empty(), exceptions.len());
        let mut state = enabled(enables);
        let expected = Executed { stop: Stop::End, exceptions, passed_over: 0 };
        assert_eq!(execute(&memory(&kernel, &routine), &mut state, 1000, 1, Way::Fast), Ok(expected), "{kernel}");
        assert_eq!((state.grf(20, 0), state.grf(22, 0)), (1, 2));
        assert_eq!(state.u32(CR + 4) & SOFTWARE != 0, pending, "{kernel}");
        assert_eq!(state.grf(24, 1) & SOFTWARE != 0, count > 0, "in the routine");
    }
    // Not without exceptions.
    let mut state = enabled(SOFTWARE_ENABLE);
    state.exceptions = false;
    let executed = execute(&memory(RAISE, &routine), &mut state, 1000, 1, Way::Fast).unwrap();
    assert_eq!((executed.stop, executed.exceptions), (Stop::End, vec![]));
    // One that the routine does not clear is raised again; the thread comes to no instruction.
    let leave = RETURN.lines().skip(3).collect::<Vec<_>>().join("\n");
    let mut state = enabled(SOFTWARE_ENABLE);
    let executed = execute(&memory(&format!("{RAISE}{ONE}"), &leave), &mut state, 101, 1000, Way::Fast).unwrap();
    assert_eq!((executed.stop, executed.exceptions), (Stop::Budget, vec![KERNEL + 16; 101]));
    assert_eq!(state.grf(20, 0), 0);
}

/// Lanes with small numbers are at an illegal instruction while the others wait.
const DIVERGED: &str = "
        mov (16|M0) r20.0<1>:ud 0x1:ud
        cmp (16|M0) (lt)f0.0 null<1>:ud r60.0<1;1,0>:ud 0x4:uw
(~f0.0) goto (16|M0) SKIP SKIP
        illegal
        add (16|M0) r20.0<1>:ud r20.0<1;1,0>:ud 0x10:uw
SKIP:
        join (16|M0) NEXT
NEXT:
        illegal
        add (16|M0) r20.0<1>:ud r20.0<1;1,0>:ud 0x100:uw
";

/// A routine with branches of its own, that counts its executions by lane in r28.
const DIVERGES: &str = "
        add (16|M0) r28.0<1>:ud r28.0<1;1,0>:ud 0x1:uw
        cmp (16|M0) (lt)f1.0 null<1>:ud r60.0<1;1,0>:ud 0x2:uw
(f1.0)  goto (16|M0) SKIP SKIP
        add (16|M0) r28.0<1>:ud r28.0<1;1,0>:ud 0x10:uw
SKIP:
        join (16|M0) NEXT
NEXT:
";

/// The system routine has the registers and the channels of the thread; those that wait go on where they wait.
#[test]
fn channels_that_wait_are_not_in_the_system_routine() {
    let code = memory(DIVERGED, &format!("{DIVERGES}{RETURN}"));
    for part in [1, 1000] {
        let mut state = enabled(ILLEGAL_ENABLE);
        let executed = execute(&code, &mut state, 1000, part, Way::Fast).unwrap();
        assert_eq!((executed.stop, executed.exceptions.len()), (Stop::End, 2));
        for lane in 0..16 {
            let of = |register: usize| state.grf(register + lane / 8, lane % 8);
            assert_eq!(of(20), if lane < 4 { 0x111 } else { 0x101 }, "{lane}");
            let expected = [0x02, 0x02, 0x22, 0x22, 0x11];
            assert_eq!(of(28), expected[lane.min(4)], "{lane}");
        }
    }
}

/// A system routine that is in no memory is a fault of the fetch; one with illegal instructions passes over them.
#[test]
fn a_system_routine_without_code_is_a_fault_of_the_fetch() {
    let kernel = code(&format!("illegal\n{END}"));
    let mut program = on_demand();
    let code = CodeMemory::new(0x1000, &[(KERNEL as usize, kernel)]);
    let (mut page, mut group, mut state) = (Page::new(), Group::default(), enabled(ILLEGAL_ENABLE));
    let mut entered = false;
    loop {
        let mut environment = Environment::new(&mut page, &mut group);
        match exec::run(&program, &mut state, &mut environment, Budget::instructions(10), Way::Fast, &mut ()) {
            Stop::Exception(_) => {
                assert!(!std::mem::replace(&mut entered, true));
                state.enter_system_routine(0x4000);
            }
            Stop::Fetch(address) => {
                if let Err(fault) = program.extend(address, &mut code.fetch()) {
                    let expected = MemoryFault { kind: FaultKind::Address, address: Some(ORIGIN + 0x4000) };
                    assert_eq!((fault, entered, state.executed), (expected, true, 1));
                    break;
                }
            }
            stop => panic!("{stop:?}"),
        }
    }
}

/// Each thread has an exception, and stores what its routine has made of its number.
const COUNTED: &str = "
(W)     and (1|M0) r10.0<1>:ud r0.2<0;1,0>:ud 0xFF:uw
        illegal
(W)     shl (1|M0) r14.0<1>:ud r10.0<0;1,0>:ud 0x2:uw
(W)     add (1|M0) r14.0<1>:ud r14.0<0;1,0>:ud 0x10000:ud
(W)     add (1|M0) r11.0<1>:ud r10.0<0;1,0>:ud r12.0<0;1,0>:ud
(W)     send.ugm (1|M0) null r14 r11:1 0x0 0x02000504
";

/// Adds 0x30 to r12.0 by a loop.
const LOOP: &str = "
(W)     mov (1|M0) r13.0<1>:ud 0x3:ud
LOOP:
(W)     add (1|M0) r12.0<1>:ud r12.0<0;1,0>:ud 0x10:uw
(W)     add (1|M0) r13.0<1>:d r13.0<0;1,0>:d -1:w
(W)     mov (1|M0) f0.0<1>:ud 0x0:ud
(W)     cmp (1|M0) (gt)f0.0 null<1>:d r13.0<0;1,0>:d 0:w
(W&f0.0) jmpi LOOP
";

fn workgroup(threads: u32, enables: u32) -> Workgroup {
    let payload = Payload::new(Dispatch {
        simd: 16,
        threads,
        last_mask: 0xffff,
        header: Header::default(),
        ids: None,
        inline: None,
        cr0: [0, enables],
        exceptions: true,
    });
    let mut group = Workgroup::new(threads as usize, 128, 0);
    for (number, thread) in (0..).zip(group.threads_mut()) {
        payload.write(thread, [0; 3], number, number);
        thread.start_at(KERNEL);
    }
    group
}

/// A group with threads in the system routine is plain data: it is stepped by any budget, parked or restored from bytes after
/// each instruction, and does the same.
#[test]
fn threads_in_the_system_routine_are_parked_and_moved() {
    let code = memory(COUNTED, &format!("{LOOP}{RETURN}"));
    let mut results = Vec::new();
    for (budget, moves) in [(u64::MAX, false), (1, false), (1, true), (7, true)] {
        let (mut page, mut program, mut group) = (Page::new(), on_demand(), workgroup(3, ILLEGAL_ENABLE));
        let (mut steps, mut exceptions, mut saved_in_routine) = (0, 0, 0);
        loop {
            match group.step(&program, &mut page, budget, Way::Fast, &mut ()) {
                GroupStop::Budget => steps += 1,
                GroupStop::Fetch(address) => {
                    program.extend(address, &mut code.fetch()).unwrap();
                    continue;
                }
                GroupStop::Exception(place, address) => {
                    assert_eq!((place.thread, address), (exceptions, KERNEL + 16));
                    assert_eq!(program.instructions[place.instruction as usize].address, address);
                    exceptions += 1;
                    group.enter_system_routine(place.thread, ROUTINE);
                }
                stop => {
                    assert_eq!(stop, GroupStop::End);
                    break;
                }
            }
            if moves {
                saved_in_routine += group.threads().iter().filter(|thread| thread.in_system_routine).count();
                let bytes = group.save(&program).to_bytes();
                program = on_demand();
                let saved = SavedGroup::from_bytes(&bytes).unwrap();
                assert!(saved.to_bytes() == bytes);
                group = saved.into_group(&mut program);
            }
        }
        assert_eq!((exceptions, steps == 0), (3, budget == u64::MAX));
        assert_eq!(saved_in_routine > 0, moves, "{budget}");
        for thread in 0..3 {
            let stored = u32::from_le_bytes(page.bytes[thread * 4..][..4].try_into().unwrap());
            assert_eq!(stored, 0x30 + thread as u32, "{thread}");
        }
        let cost = group.cost();
        assert!(cost >= group.executed() + 3 * 100, "exceptions cost more than their instruction");
        results.push((group.executed(), cost, page.bytes));
    }
    assert!(results.iter().all(|result| *result == results[0]));
}

/// Kernels that come to the same exception for ever: a step is bounded, whatever the routine is.
#[test]
fn endless_exceptions_are_bounded() {
    let leave = RETURN.lines().last().unwrap_or_default();
    let jump = "SELF:\n(W) jmpi SELF\n";
    for (kernel, routine) in [
        ("illegal\n", leave),
        ("illegal\n", jump),
        ("illegal\n", "LOOP:\nillegal\n(W) jmpi LOOP\n"),
        (RAISE, leave),
        ("LOOP:\nillegal\n(W) jmpi LOOP\n", RETURN),
    ] {
        let code = memory(kernel, routine);
        let (mut page, mut program) = (Page::new(), on_demand());
        let mut group = workgroup(1, ILLEGAL_ENABLE | SOFTWARE_ENABLE);
        let mut stops = 0;
        for _ in 0..5 {
            let end = group.cost() + 20_000;
            loop {
                match group.step(&program, &mut page, end - group.cost().min(end), Way::Fast, &mut ()) {
                    GroupStop::Budget => break,
                    GroupStop::Fetch(address) => drop(program.extend(address, &mut code.fetch()).unwrap()),
                    GroupStop::Exception(place, _) => group.enter_system_routine(place.thread, ROUTINE),
                    stop => panic!("{stop:?}"),
                }
                stops += 1;
            }
            assert!(group.cost() < end + 2 * 100);
        }
        assert!(stops < 1100, "{kernel}: {stops}");
    }
}

/// Illegal instructions that are passed over are counted, and the first of them is known. Zeros are illegal instructions: a kernel
/// without an end comes to the end of what is decoded, or of the memory.
#[test]
fn instructions_that_are_passed_over_are_counted() {
    let code = memory("illegal\nnop\n.inst 0x0000007f 0 0 0\n", "");
    let (mut page, mut program, mut group) = (Page::new(), on_demand(), workgroup(3, 0));
    let (mut count, mut first) = (0, None);
    loop {
        let stop = group.step(&program, &mut page, 1, Way::Fast, &mut ());
        if let Some((more, place)) = group.take_passed_over() {
            count += more;
            first.get_or_insert(place);
        }
        match stop {
            GroupStop::Budget => {}
            GroupStop::Fetch(address) => drop(program.extend(address, &mut code.fetch()).unwrap()),
            stop => {
                assert_eq!(stop, GroupStop::End);
                break;
            }
        }
    }
    let first = first.map(|place| (place.thread, program.instructions[place.instruction as usize].address));
    assert_eq!((count, first, group.take_passed_over()), (6, Some((0, KERNEL)), None));
    group.restart(1);
    assert_eq!(group.take_passed_over(), None);

    let zeros = CodeMemory::new(0x1000, &[(KERNEL as usize, vec![0; 0x800])]);
    for (limit, expected) in [(1024, Ok(FaultKind::TooMuchCode)), (1 << 20, Err(ORIGIN + 0x1000))] {
        let mut program = Program::new(42, ORIGIN, 128, Host::Portable);
        program.set_limit(limit);
        let mut group = workgroup(1, 0);
        let found = loop {
            match group.step(&program, &mut page, 1000, Way::Fast, &mut ()) {
                GroupStop::Fetch(address) => {
                    if let Err(fault) = program.extend(address, &mut zeros.fetch()) {
                        break Err(fault.address.unwrap());
                    }
                }
                GroupStop::Fault(_, fault) => break Ok(fault.kind),
                stop => assert_eq!(stop, GroupStop::Budget),
            }
        };
        assert_eq!(found, expected);
    }
}
