// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Groups of threads, stepped by a budget of cost.

use arctic_eu::exec::payload::{Dispatch, Header, LocalIds, Payload};
use arctic_eu::exec::profile::{InstructionClass, Operands, Pipe, Profile, Profiler};
use arctic_eu::exec::{AccessKind, GroupStop, Host, KindCounts, Program, SavedGroup, Way, Workgroup};

use super::code::{CodeMemory, on_demand};
use super::{COST, END, Page, code};

/// Each thread adds its number to a counter in shared local memory, waits for the others, and stores the sum for its group.
const SUM: &str = "
(W)     and (1|M0) r10.0<1>:ud r0.2<0;1,0>:ud 0xFF:uw
(W)     mov (1|M0) r11.0<1>:ud 0x0:ud
(W)     send.slm (1|M0) null r11 r10:1 0x0 0x0200050C
(W)     mov (1|M0) r12.0<1>:ud 0x0:ud
(W)     mov (1|M0) r12.10<1>:ub r0.11<0;1,0>:ub
(W)     mov (1|M0) r12.11<1>:ub r0.11<0;1,0>:ub
(W)     send.gtwy (1|M0) null r12 null:0 0x0 0x02000004
(W)     sync.bar null
(W)     send.slm (1|M0) r13 r11 null:0 0x0 0x02100500
(W)     shl (1|M0) r14.0<1>:ud r10.0<0;1,0>:ud 0x2:uw
(W)     add (1|M0) r14.0<1>:ud r14.0<0;1,0>:ud 0x10000:ud
(W)     add (1|M0) r13.0<1>:ud r13.0<0;1,0>:ud r0.1<0;1,0>:ud
(W)     send.ugm (1|M0) null r14 r13:1 0x0 0x02000504
";

fn payload(threads: u32) -> Payload {
    Payload::new(Dispatch {
        simd: 16,
        threads,
        last_mask: 0xff,
        header: Header::default(),
        ids: Some(LocalIds {
            local: [threads * 16 - 8, 1, 1],
            order: [0, 1, 2],
            emitted: [true, false, false],
            registers: 1,
        }),
        inline: None,
        cr0: [0; 2],
        exceptions: false,
    })
}

fn workgroup(threads: u32) -> Workgroup {
    let mut group = Workgroup::new(threads as usize, 128, 1024);
    for (number, thread) in (0..).zip(group.threads_mut()) {
        payload(threads).write(thread, [100, 0, 0], number, number);
        thread.start_at(0x40);
    }
    group
}

/// A group is plain data: it is stepped by any budget of cost, parked, copied or restored from bytes between steps, and does the
/// same.
#[test]
fn groups_are_stepped_by_cost_parked_and_moved() {
    fn is_plain<T: Clone + Send + 'static>(_: &T) {}
    let code = CodeMemory::new(0x1000, &[(0x40, code(&format!("{SUM}{END}")))]);
    let mut results = Vec::new();
    for (budget, moves) in [1, 3, 50, 2_000, u64::MAX].into_iter().flat_map(|budget| [(budget, false), (budget, true)])
    {
        let (mut page, mut program, mut group) = (Page::new(), on_demand(), workgroup(7));
        is_plain(&group);
        let mut steps = 0u64;
        loop {
            let before = group.cost();
            let stop = group.step(&program, &mut page, budget, Way::Fast, &mut ());
            assert!(group.cost() - before < budget.saturating_add(2 * COST), "{budget}");
            let is_within = stop == GroupStop::Budget;
            match stop {
                GroupStop::Budget => steps += 1,
                GroupStop::Fetch(address) => {
                    program.extend(address, &mut code.fetch()).unwrap();
                }
                stop => {
                    assert_eq!(stop, GroupStop::End);
                    break;
                }
            }
            let parked = group.clone();
            drop(group);
            group = parked;
            if moves && is_within {
                let bytes = group.save(&program).to_bytes();
                program = on_demand();
                let saved = SavedGroup::from_bytes(&bytes).unwrap();
                assert_eq!((saved.shape(), saved.to_bytes() == bytes), ((7, 128, 1024), true));
                group = saved.into_group(&mut program);
            }
        }
        for thread in 0..7 {
            let stored = u32::from_le_bytes(page.bytes[thread * 4..][..4].try_into().unwrap());
            assert_eq!(stored, 21 + 100, "{thread}");
        }
        assert_eq!(budget == u64::MAX, steps == 0);
        assert_eq!(group.shared().slm[0], 21);
        results.push((
            group.executed(),
            group.cost(),
            page.bytes,
            group.threads().iter().map(|t| t.executed).collect::<Vec<_>>(),
        ));
        // The next group finds nothing of this one.
        group.restart(3);
        assert_eq!((group.threads().len(), group.shared().slm[0], group.cost()), (3, 0, 0));
    }
    assert!(results.iter().all(|result| *result == results[0]));
}

/// A profiler counts each instruction that is executed once, by pipeline and operands and on the execution unit of its thread,
/// wherever steps end.
#[test]
fn a_profile_has_the_instructions_by_class() {
    let code = CodeMemory::new(0x1000, &[(0x40, code(&format!("{SUM}{END}")))]);
    let class = |pipe, operands| InstructionClass { pipe, operands };
    let expected = [
        (class(Pipe::Integer32, Operands::Binary), 4),
        (class(Pipe::Integer32, Operands::Mov), 2),
        (class(Pipe::Integer16, Operands::Mov), 2),
        (class(Pipe::Send, Operands::Other), 5),
        (class(Pipe::None, Operands::Other), 1),
    ];
    for budget in [1, 50, u64::MAX] {
        let (mut page, mut program, mut group) = (Page::new(), on_demand(), workgroup(10));
        let mut profile = Profile::default();
        loop {
            let profiler = &mut Profiler::new(&program, &mut profile);
            match group.step(&program, &mut page, budget, Way::Fast, profiler) {
                GroupStop::Budget => {}
                GroupStop::Fetch(address) => {
                    program.extend(address, &mut code.fetch()).unwrap();
                }
                stop => {
                    assert_eq!(stop, GroupStop::End);
                    break;
                }
            }
        }
        assert_eq!(profile.sum(|_| true, |_| true), group.executed());
        for (unit, threads) in [8, 2, 0, 0, 0, 0, 0, 0].into_iter().enumerate() {
            for (class, count) in expected {
                assert_eq!(profile.sum(|it| it == unit, |it| it == class), threads * count, "{unit}: {class:?}");
            }
            assert_eq!(profile.sum(|it| it == unit, |_| true), threads * 14, "{unit}");
        }
        let mut twice = profile.clone();
        twice.add(&profile);
        assert_eq!(twice.sum(|_| true, |_| true), 2 * group.executed());
    }
}

/// An operation on floats is one of the pipeline for floats, as wide as its widest operand; products of matrices have a pipeline by
/// type.
#[test]
fn the_pipeline_of_an_instruction_follows_its_types() {
    let of = |text: &str| {
        let bytes = code(text);
        let program = Program::translate(&bytes, 0, 128, Host::detect());
        program.instructions[0].class
    };
    for (text, pipe, operands) in [
        ("mad (8|M0) r10.0<1>:f r12.0<1;0>:f r14.0<1;0>:f r16.0<1>:f", Pipe::Float32, Operands::Ternary),
        ("add (8|M0) r10.0<1>:hf r12.0<1;1,0>:hf r14.0<1;1,0>:hf", Pipe::Float16, Operands::Binary),
        ("mov (8|M0) r10.0<1>:f r12.0<1;1,0>:d", Pipe::Float32, Operands::Mov),
        ("mul (8|M0) r10.0<1>:w r12.0<1;1,0>:w r14.0<1;1,0>:w", Pipe::Integer16, Operands::Binary),
        ("lzd (8|M0) r10.0<1>:ud r12.0<1;1,0>:ud", Pipe::Integer32, Operands::Other),
        ("math.inv (8|M0) r10.0<1>:f r12.0<1;1,0>:f", Pipe::Math, Operands::Other),
        ("dpas.8x1 (8|M0) r10:f r12:f r20:hf r28:hf", Pipe::SystolicFp16, Operands::Ternary),
        ("dpas.8x1 (8|M0) r10:f r12:f r20:bf r28:bf", Pipe::SystolicBf16, Operands::Ternary),
        ("dpas.8x1 (8|M0) r10:d r12:d r20:b r28:ub", Pipe::SystolicInt8, Operands::Ternary),
        ("nop", Pipe::None, Operands::Other),
    ] {
        assert_eq!(of(&format!("{text}\n")), InstructionClass { pipe, operands }, "{text}");
    }
}

/// Bytes that are not those of a saved group are refused, and those of a group that was changed are executed without a panic.
#[test]
fn bytes_that_are_no_group_are_refused() {
    let code = CodeMemory::new(0x1000, &[(0x40, code(&format!("{SUM}{END}")))]);
    let (mut page, mut program, mut group) = (Page::new(), on_demand(), workgroup(2));
    while let GroupStop::Fetch(address) = group.step(&program, &mut page, 40, Way::Fast, &mut ()) {
        program.extend(address, &mut code.fetch()).unwrap();
    }
    let bytes = group.save(&program).to_bytes();
    for length in (0..bytes.len()).step_by(13).chain(bytes.len() - 20..bytes.len()) {
        assert!(SavedGroup::from_bytes(&bytes[..length]).is_none(), "{length}");
    }
    assert!(SavedGroup::from_bytes(&[bytes.as_slice(), &[0]].concat()).is_none());
    // The version, the number of threads, registers, bytes of shared memory, exchanges.
    for (at, value) in
        [(0, 1u32), (0, 3), (4, 0), (4, 3), (4, !0), (8, 64), (8, 256), (12, 0), (12, !0), (16, 8), (16, !0)]
    {
        let mut changed = bytes.clone();
        changed[at..at + 4].copy_from_slice(&value.to_le_bytes());
        assert!(SavedGroup::from_bytes(&changed).is_none(), "{at}: {value:#x}");
    }
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x5a;
        let Some(saved) = SavedGroup::from_bytes(&changed) else { continue };
        let mut program = on_demand();
        let mut group = saved.into_group(&mut program);
        for _ in 0..20 {
            match group.step(&program, &mut page, 50, Way::Fast, &mut ()) {
                GroupStop::Fetch(address) if program.extend(address, &mut code.fetch()).is_err() => break,
                GroupStop::Fault(place, _) => group.end_thread(place.thread),
                GroupStop::End | GroupStop::Deadlock(_) => break,
                _ => {}
            }
        }
    }
}

/// Threads that wait for a barrier that no thread completes, a thread that does not end, and faults, have their place.
#[test]
fn groups_that_do_not_end_are_reported_with_their_place() {
    let wait = "(W) sync.bar null\n";
    let program = |text: &str| {
        let mut bytes = vec![0; 0x40];
        bytes.extend(code(&format!("{text}{END}")));
        Program::translate(&bytes, 0, 128, Host::Portable)
    };
    let run = |text: &str, limit: u64| {
        let (mut page, mut group) = (Page::new(), workgroup(3));
        group.set_limit(limit);
        let program = program(text);
        loop {
            match group.step(&program, &mut page, 10, Way::Fast, &mut ()) {
                GroupStop::Budget => {}
                stop => return (stop, program),
            }
        }
    };
    let address = |program: &Program, instruction: u32| program.instructions[instruction as usize].address;
    match run(wait, u64::MAX) {
        (GroupStop::Deadlock(place), program) => {
            assert_eq!((place.thread, address(&program, place.instruction)), (0, 0x40));
        }
        (stop, _) => panic!("{stop:?}"),
    }
    match run("SELF:\n(W) jmpi SELF\n", 100) {
        (GroupStop::Limit(place), program) => {
            assert_eq!((place.thread, address(&program, place.instruction)), (0, 0x40));
        }
        (stop, _) => panic!("{stop:?}"),
    }
    // The last thread's number leads beyond the memory.
    let text = "
(W)     and (1|M0) r10.0<1>:ud r0.2<0;1,0>:ud 0xFE:uw
(W)     shl (1|M0) r10.0<1>:ud r10.0<0;1,0>:ud 0x10:uw
(W)     add (1|M0) r10.0<1>:ud r10.0<0;1,0>:ud 0x10000:ud
(W)     send.ugm (1|M0) null r10 r10:1 0x0 0x02000504
";
    match run(text, u64::MAX) {
        (GroupStop::Fault(place, fault), _) => {
            assert_eq!((place.thread, place.lane), (2, Some(0)));
            assert_eq!(fault.access.map(|access| (access.kind, access.address)), Some((AccessKind::Write, 0x3_0000)));
        }
        (stop, _) => panic!("{stop:?}"),
    }
}

/// Instructions that take the host much longer than others cost more, so that a budget bounds the time of a step.
#[test]
fn slow_instructions_cost_more() {
    let executed = |text: &str| {
        let memory = CodeMemory::new(0x1000, &[(0, code(&format!("LOOP:\n{}(W) jmpi LOOP\n", text.repeat(10))))]);
        let mut program = on_demand();
        let mut group = Workgroup::new(1, 128, 0);
        group.threads_mut()[0].start_at(0);
        loop {
            match group.step(&program, &mut Page::new(), 20_000 - group.cost(), Way::Fast, &mut ()) {
                GroupStop::Fetch(address) => program.extend(address, &mut memory.fetch()).unwrap(),
                stop => {
                    assert_eq!(stop, GroupStop::Budget);
                    return group.executed();
                }
            };
        }
    };
    // cr0 has not the mode of floats in which lanes are executed at once.
    for (text, most) in [
        ("add (16|M0) r20.0<1>:ud r20.0<1;1,0>:ud 0x1:uw\n", 20_000),
        ("add (16|M0) r20.0<1>:f r20.0<1;1,0>:f r22.0<1;1,0>:f\n", 20_000 / 128 * 11 / 10 + 2),
        ("dpas.8x8 (8|M0) r64:d r56:d r40:b r48.0:b\n", 20_000 / 512 * 11 / 10 + 2),
    ] {
        let count = executed(text);
        assert!((most / 2..=most).contains(&count), "{text}: {count} of {most}");
    }
}

/// Instructions are counted by kind, whatever the budget of a step is; those that wait at a barrier or for code are counted once.
#[test]
fn instructions_are_counted_by_kind() {
    let product = "dpas.8x8 (8|M0) r64:d r56:d r40:b r48.0:b\n";
    let text = format!("{SUM}{product}(W) jmpi NEXT\nNEXT:\n{END}");
    let memory = CodeMemory::new(0x1000, &[(0x40, code(&text))]);
    for budget in [1, 7, u64::MAX] {
        let (mut program, mut group, mut page) = (on_demand(), workgroup(3), Page::new());
        let mut counts = KindCounts::default();
        loop {
            let stop = group.step(&program, &mut page, budget, Way::Fast, &mut ());
            counts = counts.each(group.take_counts(), u64::wrapping_add);
            match stop {
                GroupStop::Fetch(address) => drop(program.extend(address, &mut memory.fetch()).unwrap()),
                GroupStop::Budget => {}
                stop => {
                    assert_eq!(stop, GroupStop::End);
                    break;
                }
            }
        }
        // Two messages to shared local memory, the barrier's, the store, the end; all have one channel.
        let of_thread =
            KindCounts { control: 1, messages: 5, channels: 5, accesses: [3, 0, 1, 0, 1], barriers: 1, products: 1 };
        assert_eq!(counts, of_thread.each(KindCounts::default(), |count, _| 3 * count), "{budget}");
        group.restart(3);
        assert_eq!(group.take_counts(), KindCounts::default());
    }
}
