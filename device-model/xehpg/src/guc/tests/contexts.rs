// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registration of contexts, and dispatch to the engines.

use super::*;
use crate::engine::skipped::SkippedCommand;
use arctic_fidelity::proves;

/// Contract F.2, K.11: register, enable, submit, disable, deregister, with exact lengths and one response each.
#[test]
fn context_is_registered_enabled_submitted_disabled_and_deregistered() {
    let mut host = Host::up();
    host.start(5, EngineClass::Render, 1, 2);
    assert_eq!(host.runs("rcs0"), Some(5));
    assert!(host.engines.runnable(engine_named("rcs0")));
    host.end("rcs0", Outcome::Complete);
    assert!(host.stepped().is_empty());
    assert_eq!(host.runs("rcs0"), None);
    // Tail equals head: no work.
    host.fast(0x1000, &[5]);
    assert!(host.stepped().is_empty());
    assert_eq!(host.runs("rcs0"), None);
    host.set_tail(5, 128);
    host.fast(0x1000, &[5]);
    assert!(host.stepped().is_empty());
    assert_eq!(host.runs("rcs0"), Some(5));
    // Disabled while it runs: the response is sent when it has left the engine.
    host.fast(0x1001, &[5, 0]);
    assert!(host.stepped().is_empty());
    host.end("rcs0", Outcome::Preempted);
    assert_eq!(host.stepped(), [[3, 0x9000_1002, 5, 0]]);
    assert_eq!(host.runs("rcs0"), None);
    // After it is enabled again, it resumes.
    host.fast(0x1001, &[5, 1]);
    assert_eq!(host.stepped(), [[3, 0x9000_1002, 5, 1]]);
    assert_eq!(host.runs("rcs0"), Some(5));
    host.end("rcs0", Outcome::Complete);
    host.fast(0x1001, &[5, 0]);
    assert_eq!(host.stepped(), [[3, 0x9000_1002, 5, 0]]);
    host.fast(0x4503, &[5]);
    assert_eq!(host.stepped(), [[2, 0x9000_4600, 5]]);
    host.fast(0x1000, &[5]);
    assert_eq!(host.stepped(), [[0x8001_0001, 0xe000_0100]], "it is deregistered");
    assert_eq!(host.guc.counters().failed, 1);
}

/// A submission concurrent with the end of the context's last run is not lost.
#[test]
fn submission_while_the_report_is_on_the_way() {
    let mut host = Host::up();
    host.start(1, EngineClass::Copy, 1, 2);
    host.end("bcs0", Outcome::Complete);
    host.set_tail(1, 128);
    host.fast(0x1000, &[1]);
    host.step();
    host.step();
    assert_eq!(host.runs("bcs0"), Some(1));
}

/// Contract F.2: a context preempts one of lower priority, which is resumed later.
#[test]
fn priorities() {
    let mut host = Host::up();
    host.start(1, EngineClass::Copy, 1, 2);
    host.start(2, EngineClass::Copy, 1, 3);
    host.start(3, EngineClass::Copy, 1, 0);
    assert_eq!(host.runs("bcs0"), Some(1));
    host.end("bcs0", Outcome::Preempted);
    host.step();
    assert_eq!(host.runs("bcs0"), Some(3));
    host.end("bcs0", Outcome::Complete);
    host.step();
    assert_eq!(host.runs("bcs0"), Some(1));
    host.end("bcs0", Outcome::Complete);
    host.step();
    assert_eq!(host.runs("bcs0"), Some(2));
}

/// Contract F.2: contexts of equal priority alternate after each quantum; a single context keeps the engine.
#[test]
fn time_slices() {
    let mut host = Host::up();
    host.start(1, EngineClass::Copy, 1, 2);
    host.pass(700_000);
    assert_eq!(host.deadline, None);
    host.start(2, EngineClass::Copy, 1, 2);
    let due = host.deadline.expect("the slice ends");
    assert_eq!(due - host.clock.now(), 300_000);
    host.pass(300_000);
    host.step();
    // From here on, only the ends of time slices cause GuC steps.
    for turn in 0..4 {
        host.end("bcs0", Outcome::Preempted);
        host.step();
        assert_eq!(host.runs("bcs0"), Some(2 - turn % 2));
        assert_eq!(host.deadline, Some(host.clock.now() + 1_000_000), "turn {turn}");
        host.pass(1_000_000);
        host.step();
    }
}

/// Contract F.2, F.6: a context that exceeds its preemption timeout is reset; the host is notified of the reset, then
/// of the disabled scheduling.
#[test]
fn preemption_timeout() {
    let mut host = Host::up();
    host.start(1, EngineClass::Render, 1, 2);
    host.fast(0x1001, &[1, 0]);
    assert!(host.stepped().is_empty());
    assert_eq!(host.deadline, Some(host.clock.now() + 640_000_000));
    host.pass(640_000_000);
    assert_eq!(host.stepped(), [vec![2, 0x9000_1008, 1], vec![3, 0x9000_1002, 1, 0]]);
    assert_eq!(host.runs("rcs0"), None);
    host.fast(0x4503, &[1]);
    assert_eq!(host.stepped(), [[2, 0x9000_4600, 1]]);
}

/// Contract K.5, key 0x2004: at the end of its time slice, a context leaves the engine even if no other context waits, and
/// is queued again. One that does not leave is reset.
#[test]
fn preempt_to_idle_at_the_end_of_a_slice() {
    let mut host = Host::up();
    host.start(1, EngineClass::Render, 1, 2);
    host.fast(0x100b, &[1, 0x2001_0001, 5_000, 0x2002_0001, 30_000, 0x2004_0001, 1]);
    // The slice in progress keeps its length.
    host.step();
    assert_eq!(host.deadline, Some(host.clock.now() + 1_000_000));
    host.pass(1_000_000);
    host.step();
    assert!(host.slot("rcs0").leaving);
    host.end("rcs0", Outcome::Preempted);
    assert!(host.stepped().is_empty());
    assert_eq!((host.runs("rcs0"), host.slot("rcs0").leaving), (Some(1), false), "queued again");
    assert_eq!(host.deadline, Some(host.clock.now() + 5_000_000));
    host.pass(5_000_000);
    host.step();
    assert_eq!(host.deadline, Some(host.clock.now() + 30_000_000));
    host.pass(30_000_000);
    assert_eq!(host.stepped(), [[2, 0x9000_1008, 1]]);
    assert_eq!(host.runs("rcs0"), None);
    // Without the key, a context that is alone keeps its engine.
    host.start(2, EngineClass::Copy, 1, 2);
    host.pass(100_000_000);
    host.step();
    assert_eq!((host.runs("bcs0"), host.deadline), (Some(2), None));
}

/// Contract F.6: if engine resets are disabled by policy, no context is reset.
#[test]
fn engine_reset_disabled() {
    let mut host = Host::up();
    host.poke(ADS + 0x1228, 1);
    host.fast(0x0506, &[(ADS + 0x11dc) as u32]);
    host.start(1, EngineClass::Render, 1, 2);
    host.fast(0x1001, &[1, 0]);
    host.step();
    host.pass(10_000_000_000);
    assert!(host.stepped().is_empty());
    assert_eq!(host.runs("rcs0"), Some(1));
}

/// Issue point 7 (c): while the host does not run the engine's steps, no time slice ends and no preemption timeout
/// expires. The GuC does not check continuously, only at the earliest possible expiry.
#[test]
fn delayed_steps_expire_no_slice_or_timeout() {
    let mut host = Host::up();
    host.start(1, EngineClass::Copy, 1, 2);
    host.start(2, EngineClass::Copy, 1, 2);
    host.pass(600_000);
    for _ in 0..5 {
        host.clock.advance(100_000_000);
        host.step();
        assert!(!host.slot("bcs0").leaving);
        assert_eq!(host.deadline, Some(host.clock.now() + 400_000));
    }
    host.pass(399_999);
    host.step();
    assert_eq!(host.deadline, Some(host.clock.now() + 100_000), "a step may end at any moment");
    assert!(!host.slot("bcs0").leaving);
    host.pass(1);
    host.step();
    assert!(host.slot("bcs0").leaving);
    // Preemption has been requested, but the engine is not stepped.
    for _ in 0..20 {
        host.clock.advance(100_000_000);
        assert!(host.stepped().is_empty());
        assert_eq!(host.deadline, Some(host.clock.now() + 640_000_000));
    }
    host.pass(639_999_999);
    assert!(host.stepped().is_empty());
    host.pass(1);
    assert_eq!(host.stepped(), [[2, 0x9000_1008, 1]]);
    assert_eq!(host.runs("bcs0"), Some(2));
}

/// Contract F.6, G.4: if resets are disabled, a halted context stays on its engine, so that the host can inspect it
/// (IGT: gem_eio). Later submissions do not report the fault again. Once resets are enabled and preemption is
/// requested, the context is reset.
#[test]
fn a_halted_context_stays_if_resets_are_disabled() {
    let mut host = Host::up();
    host.poke(ADS + 0x1228, 1);
    host.fast(0x0506, &[(ADS + 0x11dc) as u32]);
    host.start(1, EngineClass::Render, 1, 2);
    host.start(2, EngineClass::Copy, 1, 2);
    host.end("rcs0", Outcome::Halted(Halt::IllegalCommand { header: u32::MAX, address: 0 }));
    assert!(host.stepped().is_empty());
    host.end("bcs0", Outcome::Halted(Halt::Fault(FAULT)));
    assert_eq!(host.stepped(), [[2, 0x9000_6000, 2]]);
    for engine in ["rcs0", "bcs0"] {
        host.end(engine, Outcome::Halted(Halt::Fault(FAULT)));
    }
    host.pass(10_000_000_000);
    assert!(host.stepped().is_empty());
    assert_eq!((host.runs("rcs0"), host.runs("bcs0")), (Some(1), Some(2)));
    host.poke(ADS + 0x1228, 0);
    host.fast(0x0506, &[(ADS + 0x11dc) as u32]);
    // Steps of a halted context would not count towards the preemption timeout.
    host.fast(0x1001, &[1, 0]);
    assert_eq!(host.stepped(), [vec![2, 0x9000_1008, 1], vec![3, 0x9000_1002, 1, 0]]);
    assert_eq!(host.runs("rcs0"), None);
}

/// The first report of a skipped command of user space counts the context. A context that was stopped at the command is
/// reset, with a notification of its driver, and no other context is.
#[test]
fn contexts_with_skipped_commands_are_counted_and_stopped() {
    let mut host = Host::up();
    let skip = |host: &Host, engine: &str, outcome, stopped| {
        let engine = engine_named(engine);
        let load = host.engines.lock(engine).loaded().unwrap();
        let skipped = Some(SkippedCommand { name: "3DPRIMITIVE", stopped });
        host.engines.report(EngineReport { engine, load, outcome, skipped });
    };
    host.start(1, EngineClass::Render, 1, 2);
    host.start(2, EngineClass::Compute, 1, 2);
    for _ in 0..2 {
        skip(&host, "rcs0", Outcome::More, false);
        assert!(host.stepped().is_empty());
    }
    assert_eq!(host.gt.skipped(Function::PF).contexts(), 1);
    skip(&host, "ccs0", Outcome::Halted(Halt::Unmodelled { header: 0x7208_0025, address: 0 }), true);
    assert_eq!(host.stepped(), [[2, 0x9000_1008, 2]]);
    assert_eq!((host.runs("rcs0"), host.runs("ccs0")), (Some(1), None));
    assert_eq!(host.gt.skipped(Function::PF).contexts(), 2);
}

/// Contract F.6: a fault resets the engine. The message has one dword before the opt-in and two after. A banned context
/// still gets responses.
#[test]
fn faults() {
    let mut host = Host::up();
    host.start(1, EngineClass::Compute, 1, 2);
    host.end("ccs0", Outcome::Halted(Halt::Fault(FAULT)));
    assert_eq!(host.stepped(), [[2, 0x9000_6000, 1], [2, 0x9000_1008, 1]]);
    assert_eq!(host.runs("ccs0"), None);
    host.fast(0x1001, &[1, 0]);
    assert_eq!(host.stepped(), [[3, 0x9000_1002, 1, 0]]);
    host.fast(0x4503, &[1]);
    assert_eq!(host.stepped(), [[2, 0x9000_4600, 1]]);
    host.poke(SCRATCH, 0x4001_0000);
    host.tracked(0x550e, &[SCRATCH as u32, 0, 1]);
    host.start(2, EngineClass::Compute, 1, 2);
    host.end("ccs0", Outcome::Halted(Halt::Fault(FAULT)));
    assert_eq!(host.stepped(), [vec![3, 0x9000_6000, 2, 0xdead_beef], vec![2, 0x9000_1008, 2]]);
    host.start(3, EngineClass::Compute, 1, 2);
    host.end("ccs0", Outcome::Halted(Halt::IllegalCommand { header: u32::MAX, address: 0 }));
    assert_eq!(host.stepped(), [[2, 0x9000_1008, 3]]);
}

/// Issue item 6: instances take contexts from their class's queue according to the mask; classes are independent.
#[test]
fn instances_by_mask() {
    let mut host = Host::up();
    host.start(1, EngineClass::VideoDecode, 0b11, 2);
    host.start(2, EngineClass::VideoDecode, 0b11, 2);
    host.start(3, EngineClass::Render, 1, 2);
    host.start(4, EngineClass::Compute, 0b1000, 2);
    let runs: Vec<_> = ["vcs0", "vcs2", "rcs0", "ccs3", "ccs0"].map(|name| host.runs(name)).to_vec();
    assert_eq!(runs, [Some(1), Some(2), Some(3), Some(4), None]);
}

/// A context that waits for a semaphore yields to another, and is loaded again afterwards.
#[test]
fn waiting_context_yields() {
    let mut host = Host::up();
    host.start(1, EngineClass::Copy, 1, 0);
    host.end("bcs0", Outcome::Waiting);
    assert!(host.stepped().is_empty());
    assert_eq!(host.runs("bcs0"), Some(1), "no other context needs it");
    // It no longer waits: a context of lower priority does not preempt it.
    host.engines.set_runnable(engine_named("bcs0"), true);
    host.start(3, EngineClass::Copy, 1, 3);
    host.fast(0x1001, &[3, 0]);
    assert_eq!(host.stepped(), [[3, 0x9000_1002, 3, 0]]);
    host.end("bcs0", Outcome::Waiting);
    assert!(host.stepped().is_empty());
    host.start(2, EngineClass::Copy, 1, 3);
    host.end("bcs0", Outcome::Preempted);
    host.step();
    assert_eq!(host.runs("bcs0"), Some(2));
    assert!(host.deadline.is_some());
    host.end("bcs0", Outcome::Complete);
    host.step();
    assert_eq!(host.runs("bcs0"), Some(1));
}

/// Contract G.5: the GuC clears the semaphore at the end of i915's compute contexts.
#[test]
fn compute_switch_out() {
    let mut host = Host::up();
    host.start(1, EngineClass::Compute, 1, 2);
    host.poke(Host::image(1, 0) + 0x540, 1);
    host.end("ccs0", Outcome::Waiting);
    host.step();
    assert_eq!(host.peek(Host::image(1, 0) + 0x540), 0);
}

pub(super) fn wide(host: &mut Host, id: u32) -> u64 {
    let scratch = Host::image(id, 0) + 0x800;
    let lrca: Vec<u32> = (0..2).flat_map(|n| [Host::image(id, n) as u32 | 0x119, 0]).collect();
    let mut message = vec![1, id, 1, 0b01, scratch as u32, 0, scratch as u32 + 0x400, 0, 0x400, 2];
    message.extend(lrca);
    host.poke(scratch + 12, 1);
    host.fast(0x4601, &message);
    host.policies(id, 2, 1000, 640_000);
    scratch
}

pub(super) fn append_item(host: &mut Host, scratch: u64, id: u32, tails: [u32; 2]) {
    let at = host.peek(scratch + 4);
    let item = [5 | 4 << 16, Host::image(id, 0) as u32, id | (tails[0] / 8) << 18, 0, tails[1] / 8];
    for (n, value) in (0u64..).zip(item) {
        host.poke(scratch + 0x400 + u64::from(at) + n * 4, value);
    }
    host.poke(scratch + 4, at + 20);
}

/// Contract F.5: the members of a parallel context start together on adjacent instances, with tails from the work
/// queue.
#[test]
fn parallel_contexts() {
    let mut host = Host::up();
    host.start(1, EngineClass::VideoDecode, 0b10, 2);
    let scratch = wide(&mut host, 2);
    append_item(&mut host, scratch, 2, [0x40, 0x80]);
    host.fast(0x1001, &[2, 1]);
    host.fast(0x1000, &[2]);
    assert_eq!(host.stepped(), [[3, 0x9000_1002, 2, 1]]);
    assert_eq!(host.peek(scratch), 20, "the item is consumed");
    assert_eq!(host.peek(Host::image(2, 0) + 0x101c), 0x40);
    assert_eq!(host.peek(Host::image(2, 1) + 0x101c), 0x80);
    assert_eq!((host.runs("vcs0"), host.runs("vcs2")), (None, Some(1)), "no member runs alone");
    host.end("vcs2", Outcome::Complete);
    host.step();
    assert_eq!((host.runs("vcs0"), host.runs("vcs2")), (Some(2), Some(2)));
    // One member is complete; there is new work for both.
    host.end("vcs0", Outcome::Complete);
    host.step();
    append_item(&mut host, scratch, 2, [0x100, 0x100]);
    host.fast(0x1000, &[2]);
    assert!(host.stepped().is_empty());
    assert_eq!((host.runs("vcs0"), host.runs("vcs2")), (Some(2), Some(2)));
    host.fast(0x1001, &[2, 0]);
    host.end("vcs0", Outcome::Complete);
    assert!(host.stepped().is_empty());
    host.end("vcs2", Outcome::Preempted);
    assert_eq!(host.stepped(), [[3, 0x9000_1002, 2, 0]]);
}

/// A submission of an idle context of a copy engine, whose image is in memory of a client that does not answer.
fn submission_to_a_silent_client() -> (Host, Arc<turns::Ram>) {
    let mut host = Host::up();
    host.start(1, EngineClass::Copy, 1, 2);
    host.end("bcs0", Outcome::Complete);
    host.step();
    host.set_tail(1, 128);
    let ram = host.move_to_guest(Host::image(1, 0), 0x2000);
    ram.set_silent(true, 0x2000);
    host.fast(0x1000, &[1]);
    (host, ram)
}

/// Work that a submission announces is found later if the client does not answer meanwhile.
#[test]
fn work_is_read_again_while_the_client_does_not_answer() {
    let (mut host, ram) = submission_to_a_silent_client();
    for _ in 0..3 {
        host.step();
        assert!(host.runs("bcs0").is_none() && host.deadline.is_some());
        host.pass(10_000_000);
    }
    ram.set_silent(false, 0);
    host.step();
    assert_eq!(host.runs("bcs0"), Some(1));
}

/// Work of a client that never answers is given up after a limited time.
#[test]
fn work_of_a_client_that_never_answers_is_given_up() {
    let (mut host, ram) = submission_to_a_silent_client();
    let unchecked = |host: &Host| host.guc.scheduler().unwrap().unchecked();
    for _ in 0..4 {
        host.step();
        assert_eq!(unchecked(&host), Function::PF.bit());
        host.pass(14_000_000_000);
    }
    host.step();
    assert_eq!(unchecked(&host), 0);
    ram.set_silent(false, 0);
    host.step();
    assert_eq!(host.runs("bcs0"), None);
}

/// A submission of a parallel context is not lost, and each of its items counts once, wherever the client stops answering.
#[test]
fn work_queues_are_read_again_while_the_client_does_not_answer() {
    for (writes, lost) in [(false, 0x800..0x804), (false, 0x80c..0x810), (false, 0xc00..0xc20), (true, 0x800..0x804)] {
        let mut host = Host::up();
        let scratch = wide(&mut host, 2);
        append_item(&mut host, scratch, 2, [0x40, 0x80]);
        host.fast(0x1001, &[2, 1]);
        let ram = host.move_to_guest(Host::image(2, 0), 0x1000);
        ram.unanswered.store(true, Ordering::SeqCst);
        *ram.lost.lock().unwrap() = Some((writes, lost.clone()));
        host.fast(0x1000, &[2]);
        host.step();
        assert!(host.deadline.is_some(), "{lost:x?}");
        // The engine has executed the item.
        let read = host.peek(Host::image(2, 1) + 0x101c) == 0x80;
        host.poke(Host::image(2, 1) + 0x101c, 0);
        ram.set_silent(false, 0);
        host.step();
        assert_eq!(host.peek(Host::image(2, 1) + 0x101c) == 0x80, !read, "{lost:x?}");
        let mut head = [0; 4];
        ram.read_remote(0x800, &mut head).unwrap();
        assert_eq!(u32::from_le_bytes(head), 20, "{lost:x?}");
    }
}

/// A request that needs memory which the client does not answer for is executed again, for a limited time.
#[test]
fn requests_are_repeated_while_the_client_does_not_answer() {
    for answers in [true, false] {
        let mut host = Host::up();
        let ram = host.move_to_guest(Host::image(2, 0), 0x1000);
        ram.set_silent(true, 0x1000);
        wide(&mut host, 2);
        host.fast(0x1001, &[2, 1]);
        assert!(host.stepped().is_empty() && host.deadline.is_some());
        host.pass(29_000_000_000);
        assert!(host.stepped().is_empty());
        if answers {
            ram.set_silent(false, 0);
            assert_eq!(host.stepped(), [[3, 0x9000_1002, 2, 1]]);
        } else {
            host.pass(2_000_000_000);
            let replies = host.stepped();
            assert!(!replies.is_empty() && replies.iter().all(|reply| reply[1] >> 28 == 0xe), "{replies:x?}");
        }
    }
}

/// Contract F.5: an item for another context stops the queue and sets its error status.
#[test]
fn parallel_work_queue_with_a_bad_item() {
    let mut host = Host::up();
    let scratch = wide(&mut host, 2);
    append_item(&mut host, scratch, 3, [0x40, 0x80]);
    host.fast(0x1001, &[2, 1]);
    host.step();
    assert_eq!((host.peek(scratch), host.peek(scratch + 8), host.peek(scratch + 12)), (0, 0, 3));
    assert_eq!(host.runs("vcs0"), None);
}

#[test]
fn bad_registrations() {
    proves!(V13_036, "invalid registrations are rejected (contract F.8)");
    let mut host = Host::up();
    let good = [1, 5, 0, 1, 0, 0, 0, 0, 0, Host::image(5, 0) as u32, 0];
    let with = |at: usize, value: u32| {
        let mut message = good;
        message[at] = value;
        message
    };
    for (message, error) in [
        (with(1, 65535), 0x61),
        (with(1, u32::MAX), 0x61),
        (with(2, 5), 0x64),
        (with(3, 0b10), 0x64),
        (with(9, 0x1000), 0x80),
    ] {
        assert_eq!(host.tracked(0x4502, &message), 0xe000_0000 | error, "{message:x?}");
    }
    assert_eq!(host.tracked(0x4502, &good), 0xf000_0000);
    assert_eq!(host.tracked(0x4502, &good), 0xe000_0101);
    assert_eq!(host.tracked(0x4502, &good[..10]), 0xe000_0102);
}
