// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Commands that the model does not execute: counts by function, origin and name, and contexts that they stop.

use std::time::Duration;

use super::*;
use crate::command::Origin::{self, Driver, User};
use crate::profile::Unmodelled;
use crate::trace::Filter;

const PRIMITIVE: [u32; 7] = [0x7b00_0005, 0, 0, 0, 0, 0, 0];
const VF_STATISTICS: u32 = 0x680b_0000;

fn bench(class: EngineClass, unmodelled: Unmodelled) -> EngineBench {
    let mut profile = crate::registers::tests::profile();
    profile.unmodelled = unmodelled;
    EngineBench::of(profile, class, Arc::new(NullHost))
}

fn counts(bench: &EngineBench) -> Vec<(u8, Origin, &'static str, u64)> {
    let counts = bench.engine.counters().skipped.iter();
    counts.map(|(function, origin, name, count)| (function.number(), origin, name, count)).collect()
}

/// Takes the noted command of the context that [`EngineBench::submit`] has loaded last.
fn noted(bench: &mut EngineBench) -> Option<SkippedCommand> {
    let load = Load { function: bench.function, ..bench.context_at(0).load() };
    bench.engine.take_skipped(&bench.gt, &load)
}

/// A batch in the PPGTT is of user space; the ring and a batch in the GGTT are of the driver.
#[test]
fn skipped_commands_are_counted_by_function_and_origin() {
    for vf in [0, 3] {
        let mut bench = bench(EngineClass::Render, Unmodelled::Skip);
        bench.give(Function::new(vf).unwrap());
        // MI_BATCH_BUFFER_START of a batch in the GGTT.
        bench.write(BATCH, &[VF_STATISTICS, VF_STATISTICS, END]);
        bench.ring(&[MI_BATCH_BUFFER_START | 1, BATCH as u32, 0, VF_STATISTICS]);
        assert_eq!(counts(&bench), [(vf, Driver, "3DSTATE_VF_STATISTICS", 3)]);
        assert_eq!(noted(&mut bench), None);
        let batch = [&PRIMITIVE[..], &PRIMITIVE, &[VF_STATISTICS, MI_SET_APPID], &store(VA + DATA, 7)].concat();
        assert_eq!((bench.batch(&batch), bench.get(DATA)), (Outcome::Complete, 7));
        let user = [("MI_SET_APPID", 1), ("3DSTATE_VF_STATISTICS", 1), ("3DPRIMITIVE", 2)]
            .map(|(name, n)| (vf, User, name, n));
        assert_eq!(counts(&bench), [&user[..], &[(vf, Driver, "3DSTATE_VF_STATISTICS", 3)]].concat());
        assert_eq!(noted(&mut bench), Some(SkippedCommand { name: "3DPRIMITIVE", stopped: false }));
        assert_eq!(noted(&mut bench), None, "once per load");
        let totals =
            |function| [User, Driver].map(|origin| bench.gt.skipped(Function::new(function).unwrap()).of(origin));
        assert_eq!((totals(vf), totals(1)), ([4, 3], [0, 0]));
    }
}

/// A command that is predicated off is not skipped: it would have no effect on hardware either.
#[test]
fn predicated_commands_are_not_counted() {
    let mut bench = bench(EngineClass::Compute, Unmodelled::Fault);
    assert_eq!(bench.batch(&[&[PRIMITIVE[0] | 1 << 8][..], &PRIMITIVE[1..]].concat()), Outcome::Complete);
    assert_eq!(counts(&bench), []);
}

/// With `unmodelled = "fault"` a context stops at the first command of user space, with an instruction error as for an
/// illegal command. The driver's own commands and other contexts are not concerned.
#[test]
fn a_context_of_user_space_stops_at_the_command() {
    for (class, command) in [
        (EngineClass::Render, &PRIMITIVE[..]),
        (EngineClass::Compute, &PRIMITIVE[..]),
        (EngineClass::VideoDecode, &[0x7000_0003, 0, 0, 0, 0]),
        (EngineClass::VideoEnhance, &[0x7402_0000, 0]),
        (EngineClass::Copy, &[MI_SET_APPID]),
    ] {
        let mut bench = bench(class, Unmodelled::Fault);
        assert_eq!(bench.ring(&[command, &store(VA + DATA, 6)].concat()), Outcome::Complete);
        assert_eq!((bench.get(DATA), noted(&mut bench)), (6, None), "{class:?}: of the driver");
        let batch = [&store(VA + DATA, 7)[..], command, &store(VA + DATA, 8)].concat();
        let outcome = bench.batch(&batch);
        let header = command[0];
        assert_eq!(outcome, Outcome::Halted(Halt::Unmodelled { header, address: VA + BATCH + 16 }), "{class:?}");
        assert_eq!((bench.get(DATA), bench.own(reg::ESR) & 1, bench.own(reg::IPEHR)), (7, 1, header));
        assert!(noted(&mut bench).unwrap().stopped);
        assert_eq!(bench.engine.step(&bench.gt, 100), outcome, "until the engine is reset");
        bench.engine.reset(&bench.gt);
        let other = bench.context(1);
        bench.emit(other, &store(VA + DATA, 9));
        assert_eq!((bench.submit(other), bench.get(DATA)), (Outcome::Complete, 9));
    }
}

#[test]
fn a_skipped_command_is_traced_after_it() {
    let mut bench = bench(EngineClass::Render, Unmodelled::Skip);
    let trace = bench.gt.trace.subscribe(Filter::default());
    bench.batch(&PRIMITIVE);
    let events: Vec<_> = trace.take(Duration::ZERO).into_iter().map(|event| event.what).collect();
    let at = events.iter().position(|what| matches!(what, EventKind::Skipped { .. })).unwrap();
    assert!(matches!(&events[at - 1], EventKind::Command { dwords, .. } if dwords[..] == PRIMITIVE));
    let skipped = EventKind::Skipped { command: "3DPRIMITIVE".into(), origin: User, stopped: false };
    assert_eq!(events[at], skipped);
}

/// A context of the host's queue is counted once, until another one has a skipped command.
#[test]
fn contexts_of_the_hosts_queue_are_counted() {
    let mut bench = bench(EngineClass::Render, Unmodelled::Skip);
    for (number, contexts) in [(0, 1), (0, 1), (1, 2), (0, 3)] {
        bench.batch(&PRIMITIVE);
        let load = Load { submitter: Submitter::Execlist, ..bench.context_at(number).load() };
        assert!(bench.engine.take_skipped(&bench.gt, &load).is_some());
        assert_eq!(bench.gt.skipped(Function::PF).contexts(), contexts);
    }
}
