// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Accesses that a client does not answer: the message is executed again.

use arctic_eu::exec::{Budget, Environment, Group, Host, Program, Stop, Thread, Way, run};

use super::*;

const COUNTERS: [u64; 4] = [LOCAL_VA, REMOTE_VA, GUEST_VA, REMOTE_VA + 8];

/// A message of the interpreter: an increment by each of four lanes. Returns the values before, or the lane that has failed.
fn message(memory: &mut KernelMemory<'_, '_>) -> Result<Vec<u64>, usize> {
    let mut results = Vec::new();
    for (lane, address) in COUNTERS.into_iter().enumerate() {
        match memory.atomic(Surface::Flat, address, 4, Atomic::Inc, [0; 2]) {
            Ok(old) => results.push(old.unwrap()),
            Err(fault) => {
                assert_eq!((fault.kind, memory.unanswered()), (FaultKind::Address, true));
                memory.take_cost();
                return Err(lane);
            }
        }
    }
    memory.take_cost();
    Ok(results)
}

fn world() -> World {
    let world = World::new();
    for (value, address) in (10u32..).zip(COUNTERS) {
        world.write(address, &value.to_le_bytes());
    }
    world
}

/// Whatever access of a message is not answered, and how often, every operation is applied once, and all lanes have the
/// values of the one execution.
#[test]
fn atomics_of_a_message_are_applied_once() {
    // Each operation by messages is a read and a write.
    for late in [false, true] {
        for answered in 0..4 {
            let (world, mut walker) = (world(), Surfaces::default());
            world.client.late.store(late, Ordering::SeqCst);
            world.answers(answered);
            for _ in 0..3 {
                let failed = if answered < 2 { 1 } else { 3 };
                assert_eq!(world.step(&mut walker, message), Err(failed), "{answered}");
                world.answers(0);
            }
            world.answers(u64::MAX);
            assert_eq!(world.step(&mut walker, message), Ok(vec![10, 11, 12, 13]), "{answered} {late}");
            assert_eq!(COUNTERS.map(|address| world.dword(address)), [11, 12, 13, 14], "{answered} {late}");
            // The next message is another one, with the same operations.
            assert_eq!(world.step(&mut walker, message), Ok(vec![11, 12, 13, 14]));
            assert_eq!(COUNTERS.map(|address| world.dword(address)), [12, 13, 14, 15]);
        }
    }
}

/// Answers that come one at a time are enough.
#[test]
fn a_message_advances_by_each_answer() {
    let (world, mut walker) = (world(), Surfaces::default());
    let mut steps = 0;
    let results = loop {
        world.answers(1);
        steps += 1;
        match world.step(&mut walker, message) {
            Ok(results) => break results,
            Err(_) => assert!(steps < 10, "no progress"),
        }
    };
    assert_eq!(results, [10, 11, 12, 13]);
    world.answers(u64::MAX);
    assert_eq!(COUNTERS.map(|address| world.dword(address)), [11, 12, 13, 14]);
}

/// Another message ends the replay: its own operations are applied.
#[test]
fn another_message_has_its_own_operations() {
    let (world, mut walker) = (world(), Surfaces::default());
    world.answers(0);
    assert_eq!(world.step(&mut walker, message), Err(1));
    world.answers(u64::MAX);
    world.step(&mut walker, |memory| {
        assert_eq!(memory.atomic(Surface::Flat, LOCAL_VA, 4, Atomic::Add, [5, 0]), Ok(Some(11)));
        memory.take_cost();
        assert_eq!(memory.atomic(Surface::Flat, LOCAL_VA, 4, Atomic::Inc, [0; 2]), Ok(Some(16)));
        memory.take_cost();
    });
}

/// A fault that is a property of the address is not repeated, and neither is a fetch of code part of a message.
#[test]
fn other_faults_end_the_message() {
    let (world, mut walker) = (world(), Surfaces::default());
    world.step(&mut walker, |memory| {
        for old in [10, 11] {
            assert_eq!(memory.atomic(Surface::Flat, LOCAL_VA, 4, Atomic::Inc, [0; 2]), Ok(Some(old)));
            assert!(memory.atomic(Surface::Flat, UNMAPPED_VA, 4, Atomic::Inc, [0; 2]).is_err());
            memory.take_cost();
        }
    });
    world.answers(0);
    world.step(&mut walker, |memory| {
        assert!(memory.fetch(0, REMOTE_VA, &mut [0; 8]).is_err() && memory.unanswered());
    });
    world.step(&mut walker, |memory| {
        for old in [12, 13] {
            assert_eq!(memory.atomic(Surface::Flat, LOCAL_VA, 4, Atomic::Inc, [0; 2]), Ok(Some(old)));
            memory.take_cost();
        }
    });
}

/// A load that is not answered does not change the registers: they may have its addresses.
#[test]
fn a_load_changes_all_bytes_or_none() {
    let world = world();
    world.write(REMOTE_VA - 4, &[1, 2, 3, 4]);
    world.answers(0);
    world.once(|memory| {
        let mut bytes = [0xee; 8];
        assert!(memory.read(Surface::Flat, REMOTE_VA - 4, 4, &mut bytes).is_err() && memory.unanswered());
        assert_eq!(bytes, [0xee; 8]);
    });
    world.answers(u64::MAX);
    world.once(|memory| {
        let mut bytes = [0xee; 8];
        assert_eq!(memory.read(Surface::Flat, REMOTE_VA - 4, 4, &mut bytes), Ok(Access::Inside));
        assert_eq!(bytes, [1, 2, 3, 4, 11, 0, 0, 0]);
    });
}

/// Lanes in the client's memory are loaded and stored with one answer in each step. What was stored is not stored again over
/// the store of another agent, and the next message loads anew.
#[test]
fn lanes_advance_by_each_answer() {
    let (world, mut walker) = (world(), Surfaces::default());
    let addresses: Vec<u64> = (0..8).map(|lane| REMOTE_VA + 0x100 + lane * 12).collect();
    let lanes = LaneSpans { surface: Surface::Flat, addresses: &addresses, enabled: 0xff, element: 4, size: 8 };
    let values: Vec<u8> = (0..64).collect();
    let mut repeat = |load: bool| {
        let (mut bytes, mut steps) = (vec![0xee; 64], 0);
        loop {
            world.answers(1);
            steps += 1;
            let result = world.step(&mut walker, |memory| {
                let result = if load {
                    memory.read_lanes(&lanes, &mut bytes, &mut 0)
                } else {
                    memory.write_lanes(&lanes, &values, &mut 0)
                };
                memory.take_cost();
                result
            });
            if result.is_ok() {
                return (bytes, steps);
            }
            if !load && steps == 1 {
                world.client.remote.lock().unwrap()[0x100] = 0x77;
            }
        }
    };
    assert_eq!(repeat(false).1, 8);
    let mut expected = values.clone();
    expected[0] = 0x77;
    assert_eq!(repeat(true), (expected.clone(), 8));
    world.client.remote.lock().unwrap()[0x100] = 0x78;
    expected[0] = 0x78;
    assert_eq!(repeat(true).0, expected);
}

/// A surface state that is not answered is decoded later.
#[test]
fn states_are_read_again() {
    let mut world = world();
    world.bases.surface = REMOTE_VA;
    let mut walker = Surfaces::default();
    world.write(REMOTE_VA + 0x40, buffer(LOCAL_VA, 64).map(u32::to_le_bytes).as_flattened());
    world.answers(0);
    let found = |walker: &mut Surfaces| world.step(walker, |memory| load(memory, Surface::State(0x40, 0), 0));
    assert_eq!(found(&mut walker).unwrap_err().address, Some(REMOTE_VA + 0x40));
    world.answers(1);
    assert_eq!(found(&mut walker), Ok((10, Access::Inside)));
    assert_eq!(found(&mut walker), Ok((10, Access::Inside)), "decoded once");
}

/// Messages of a thread with the response in the registers of their addresses: an increment and a load by each of 16 lanes, in
/// three kinds of memory. One answer of the client in each step is enough, and the result is that of one execution.
#[test]
fn a_thread_executes_its_message_again() {
    const TEXT: &str = "send.ugm (16|M0) r10 r10 null:0 0x0 0x08200588\n\
        send.ugm (16|M0) r20 r20 null:0 0x0 0x08200580\n\
        (W) send.gtwy (1|M0) null r127 null:0 0x0 0x02000010 {EOT}\n";
    let code = arctic_eu::text::assemble(TEXT).unwrap_or_else(|errors| panic!("{}", errors.render(TEXT, "test")));
    let program = Program::translate(&code, 0, 128, Host::Portable);
    // All lanes increment one of six dwords, which are 100 and more before.
    let address = |lane: usize| [LOCAL_VA, REMOTE_VA, GUEST_VA][lane % 3] + (lane as u64 % 2) * 4;
    let world = World::new();
    for lane in 0..6 {
        world.write(address(lane), &(100 + lane as u32).to_le_bytes());
    }
    let mut thread = Thread::new(128, 0xffff);
    for lane in 0..16 {
        for register in [10, 20] {
            let at = address(lane);
            for (half, value) in [at as u32, (at >> 32) as u32].into_iter().enumerate() {
                let dword = lane * 2 + half;
                thread.set_grf(register + dword / 8, dword % 8, value);
            }
        }
    }
    let (mut walker, mut group, mut steps) = (Surfaces::default(), Group::default(), 0);
    loop {
        world.answers(1);
        let stop = world.step(&mut walker, |memory| {
            let mut environment = Environment::new(memory, &mut group);
            let stop = run(&program, &mut thread, &mut environment, Budget::cost(REMOTE_COST), Way::Fast, &mut ());
            let unanswered = memory.unanswered();
            assert_eq!(unanswered, matches!(stop, Stop::Fault(_)), "{stop:?}");
            stop
        });
        steps += 1;
        assert!(steps < 40, "no progress");
        match stop {
            Stop::End => break,
            Stop::Fault(_) | Stop::Budget => {}
            other => panic!("{other:?}"),
        }
    }
    world.answers(u64::MAX);
    for lane in 0..16 {
        let same: Vec<usize> = (0..16).filter(|other| address(*other) == address(lane)).collect();
        let before = same.iter().position(|other| *other == lane).unwrap() as u32;
        let first = 100 + (lane % 6) as u32;
        assert_eq!(thread.grf(10 + lane / 8, lane % 8), first + before, "lane {lane}");
        assert_eq!(thread.grf(20 + lane / 8, lane % 8), first + same.len() as u32, "lane {lane}");
        assert_eq!(world.dword(address(lane)), first + same.len() as u32, "lane {lane}");
    }
}
