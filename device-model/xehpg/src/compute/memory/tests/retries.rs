// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Accesses that a client does not answer: the message is executed again.

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
