// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! MI_SEMAPHORE_WAIT and MI_SEMAPHORE_SIGNAL (V8-119, V8-120).

use super::commands::gpr;
use super::*;
use crate::generation::XE_HPG;
use crate::interrupts::event::SEMAPHORE_WAIT;
use arctic_fidelity::proves;

/// MI_SEMAPHORE_SIGNAL.
const SIGNAL: [u32; 2] = [MI_SEMAPHORE_SIGNAL, 0];
const INDIRECT: u32 = 1 << 17;
/// Expected results of comparing 4, 5 and 6 in memory with 5: greater, greater or equal, less, less or equal, equal,
/// not equal, and two reserved codes.
const COMPARISON_RESULTS: [(u32, [bool; 8]); 3] = [
    (4, [false, false, true, true, false, true, false, false]),
    (5, [false, true, false, true, true, false, false, false]),
    (6, [true, true, false, false, false, true, false, false]),
];

#[test]
fn wait_completes_if_the_comparison_holds() {
    proves!(
        V8_120,
        "the six unsigned comparisons, with memory in the GGTT and the PPGTT and with a register, in poll and \
        signal mode. The two reserved codes are never true"
    );
    let global = |compare: u32| [MI_SEMAPHORE_WAIT | GGTT | SEMAPHORE_POLL | 3 | compare << 12, 5, DATA as u32, 0, 0];
    for (value, results) in COMPARISON_RESULTS {
        for (compare, holds) in (0..).zip(results) {
            let mut bench = EngineBench::new(EngineClass::Copy);
            let register = bench.base() + 0x608;
            let expected = if holds { Outcome::Complete } else { Outcome::Waiting };
            bench.put(DATA, value);
            let process = wait(compare, VA + DATA, 5);
            let signal_mode = [process[0] & !SEMAPHORE_POLL, process[1], process[2], process[3], 0];
            let short = [(process[0] & !0xff) | 2, process[1], process[2], process[3]];
            let polled = [&gpr(1, value.into())[..], &[process[0] | SEMAPHORE_REGISTER, 5, register, 0, 0]].concat();
            let indirect = [process[0] | SEMAPHORE_REGISTER | INDIRECT, 99, register, 0, 0];
            let indirect = [&gpr(1, value.into())[..], &gpr(0, 5), &indirect].concat();
            for commands in [&process[..], &signal_mode, &short, &polled, &indirect] {
                assert_eq!(bench.batch(commands), expected, "{value} {compare}: {commands:x?}");
                bench.engine.reset(&bench.gt);
            }
            assert_eq!(bench.ring(&global(compare)), expected, "{value} {compare}, global");
        }
    }
    let mut bench = EngineBench::new(EngineClass::Copy);
    bench.put(DATA, 0x8000_0000);
    assert_eq!(bench.batch(&wait(0, VA + DATA, 1)), Outcome::Complete, "unsigned");
}

#[test]
fn poll_mode_detects_changes_without_a_signal() {
    proves!(V8_120, "in poll mode the engine detects a change of memory or of the register without a signal");
    for in_register in [false, true] {
        let mut bench = EngineBench::new(EngineClass::VideoEnhance);
        let register = bench.base() + 0x600;
        let command = if in_register { wait_on_register(register, 7) } else { wait(4, VA + DATA, 7) };
        assert_eq!(bench.batch(&[&command[..], &store(VA + DATA + 8, 1)].concat()), Outcome::Waiting);
        assert_eq!(bench.run(), Outcome::Waiting);
        bench.put(DATA, 7);
        bench.gt.write(register, 7);
        assert_eq!((bench.run(), bench.get(DATA + 8)), (Outcome::Complete, 1));
    }
}

#[test]
fn a_signal_wakes_a_waiting_engine() {
    proves!(
        [V8_119, V8_120],
        "in signal mode the engine checks memory again only after a signal from any engine. A signal without a \
        change of memory has no effect. A signal sent before the wait is not lost, because the wait checks memory \
        first"
    );
    let mut bench = EngineBench::new(EngineClass::Copy);
    let mut producer = Engine::new(&XE_HPG, XE_HPG.engines.find(EngineClass::Render, 0).unwrap());
    let signal = |bench: &EngineBench, producer: &mut Engine, commands: &[u32]| {
        let context = bench.context(1);
        bench.emit(context, commands);
        producer.load(&bench.gt, context.load());
        assert_eq!(producer.step(&bench.gt, 100), Outcome::Complete);
    };
    let waits =
        [&[MI_SEMAPHORE_WAIT | 4 << 12 | 3, 7, (VA + DATA) as u32, 0, 0][..], &store(VA + DATA + 8, 1)].concat();
    signal(&bench, &mut producer, &SIGNAL);
    assert_eq!(bench.batch(&waits), Outcome::Waiting);
    signal(&bench, &mut producer, &SIGNAL);
    assert_eq!(bench.run(), Outcome::Waiting);
    bench.put(DATA, 7);
    assert_eq!(bench.run(), Outcome::Waiting, "no signal was sent");
    signal(&bench, &mut producer, &SIGNAL);
    assert_eq!((bench.run(), bench.get(DATA + 8)), (Outcome::Complete, 1));
    // Typical use: an atomic on the semaphore, followed by the signal.
    bench.put(DATA, 6);
    assert_eq!(bench.batch(&waits), Outcome::Waiting);
    signal(&bench, &mut producer, &[&[MI_ATOMIC | ATOMIC_INC << 8 | 1, (VA + DATA) as u32, 0][..], &SIGNAL].concat());
    assert_eq!(bench.run(), Outcome::Complete);
    // The value is stored and signalled before the wait.
    bench.put(DATA, 7);
    signal(&bench, &mut producer, &SIGNAL);
    assert_eq!(bench.batch(&waits), Outcome::Complete);
}

#[test]
fn a_wait_is_preempted_and_resumed() {
    proves!(V8_120, "a context preempted in a wait checks memory when it resumes, regardless of signals");
    for mode in [0, SEMAPHORE_POLL] {
        let mut bench = EngineBench::new(EngineClass::Copy);
        let context = bench.context(0);
        bench.emit(context, &store(VA + DATA + 16, 1));
        bench.emit(context, &[MI_SEMAPHORE_WAIT | 4 << 12 | 3 | mode, 7, (VA + DATA) as u32, 0, 0]);
        bench.emit(context, &store(VA + DATA + 8, 1));
        assert_eq!(bench.submit(context), Outcome::Waiting);
        bench.engine.request_preemption();
        assert_eq!(bench.run(), Outcome::Preempted);
        assert_eq!(
            bench.get(context.image(0x05)),
            16,
            "RING_HEAD is that of the wait, behind a command of four dwords"
        );
        bench.put(DATA, 7);
        assert_eq!((bench.submit(context), bench.get(DATA + 8)), (Outcome::Complete, 1));
    }
}

#[test]
fn wait_on_memory_raises_an_interrupt_if_synchronous_switches_are_inhibited() {
    proves!(
        [V8_120, V13_276],
        "in a context that inhibits synchronous switches, a wait on memory is reported to the scheduler once. A \
        wait that is satisfied immediately and a wait on a register are not reported"
    );
    let copy = XE_HPG.engines.find(EngineClass::Copy, 0).unwrap();
    // The events after the first run, and after further ones.
    let events = |value: u32, control: u32, commands: &[u32], expected: Outcome| {
        let mut bench = EngineBench::new(EngineClass::Copy);
        bench.listen(Function::PF);
        bench.put(DATA, value);
        let context = bench.context(0);
        bench.put(context.image(0x03), control);
        bench.emit(context, commands);
        assert_eq!(bench.submit(context), expected, "{commands:x?}");
        let first = bench.take_identity(Function::PF, copy).map(|(.., events)| events);
        for _ in 0..3 {
            bench.run();
        }
        (first, bench.take_identity(Function::PF, copy).map(|(.., events)| events))
    };
    const PERMITTED: u32 = 0x0009_0001;
    const INHIBITED: u32 = PERMITTED | 1 << 3;
    let wait_on_memory = wait(4, VA + DATA, 7);
    assert_eq!(events(1, INHIBITED, &wait_on_memory, Outcome::Waiting), (Some(SEMAPHORE_WAIT), None));
    assert_eq!(events(7, INHIBITED, &wait_on_memory, Outcome::Complete), (None, None));
    assert_eq!(events(1, PERMITTED, &wait_on_memory, Outcome::Waiting), (None, None));
    assert_eq!(events(1, INHIBITED, &wait_on_register(0x2_2600, 7), Outcome::Waiting), (None, None));
}

/// Returns MI_SEMAPHORE_WAIT in poll mode until the register at `offset` has this value.
fn wait_on_register(offset: u32, value: u32) -> [u32; 5] {
    [MI_SEMAPHORE_WAIT | SEMAPHORE_REGISTER | SEMAPHORE_POLL | 4 << 12 | 3, value, offset, 0, 0]
}
