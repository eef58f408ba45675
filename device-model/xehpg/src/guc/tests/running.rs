// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The GuC together with the command streamers: the engines execute the commands in the contexts' ring buffers, and the
//! test does not simulate their outcomes.

use super::contexts::{append_item, wide};
use super::*;
use crate::execlist::descriptor::ContextId;
use crate::execlist::status::{ContextStatus, Detail};
use crate::generation::XE_HPG;
use arctic_fidelity::proves;

const ARB_CHECK: u32 = 0x05 << 23;
const ARB_OFF: u32 = 0x08 << 23;
const BATCH_END: u32 = 0x0a << 23;
/// Ring buffers, one page each.
const RINGS: u64 = 0xe0_0000;
/// Batch buffers, one page each.
const BATCHES: u64 = 0xe8_0000;

fn store(at: u64, value: u32) -> [u32; 4] {
    [0x20 << 23 | 1 << 22 | 2, at as u32, 0, value]
}

/// MI_SEMAPHORE_WAIT in polling mode, until the dword at `at` equals `value`.
fn wait_for(at: u64, value: u32) -> [u32; 5] {
    [0x1c << 23 | 1 << 22 | 1 << 15 | 4 << 12 | 3, value, at as u32, 0, 0]
}

fn jump(to: u64) -> [u32; 3] {
    [0x31 << 23 | 1, to as u32, 0]
}

impl Host {
    /// Writes a context image and a ring buffer with `commands`; returns the tail.
    fn ring(&self, id: u32, member: u32, commands: &[u32]) -> u32 {
        let image = Host::image(id, member) + 0x1000;
        let ring = RINGS + u64::from(id * 4 + member) * 0x1000;
        for (n, dword) in (0u64..).zip(commands) {
            self.poke(ring + n * 4, *dword);
        }
        for (n, dword) in (0u64..).zip(XE_HPG.blank_image()) {
            self.poke(image + n * 4, dword);
        }
        for (at, value) in [(3, 0x0009_0009), (5, 0), (7, 0), (9, ring as u32), (0xb, 1)] {
            self.poke(image + at * 4, value);
        }
        (commands.len() as u32 * 4).next_multiple_of(8)
    }

    /// Writes a batch that loops until its first dword is overwritten with MI_BATCH_BUFFER_END; returns its address.
    fn spinner(&self, id: u32) -> u64 {
        let batch = BATCHES + u64::from(id) * 0x1000;
        for (n, dword) in (0u64..).zip([ARB_CHECK].into_iter().chain(jump(batch))) {
            self.poke(batch + n * 4, dword);
        }
        batch
    }

    /// Registers and enables a context with these commands. The resulting G2H messages stay in the CT buffer.
    fn submit(&mut self, id: u32, class: EngineClass, priority: u32, commands: &[u32]) {
        let tail = self.ring(id, 0, commands);
        self.register_on(id, class, 1);
        self.policies(id, priority, 1000, 640_000);
        self.set_tail(id, tail);
        self.fast(0x1001, &[id, 1]);
    }

    /// Runs a step of the GuC and of each engine `rounds` times, as the card's worker threads do, and advances the
    /// clock by `ns` after each round.
    fn work(&mut self, rounds: u32, ns: u64) {
        for _ in 0..rounds {
            self.step();
            for id in self.engines.present() {
                let mut engine = self.engines.lock(id);
                let Some(load) = engine.loaded() else { continue };
                let outcome = engine.step(&self.gt, 256);
                drop(engine);
                let report = match outcome {
                    Outcome::More => {
                        self.engines.set_runnable(id, true);
                        false
                    }
                    Outcome::Waiting | Outcome::Spinning => {
                        self.engines.back_off(id, self.clock.now(), self.engines.changes())
                    }
                    _ => {
                        self.engines.set_runnable(id, false);
                        true
                    }
                };
                if report {
                    self.engines.report(EngineReport { engine: id, load, outcome, skipped: None });
                }
            }
            self.clock.advance(ns);
        }
        self.step();
    }

    /// Execution time of a context in ticks: CTX_TIMESTAMP in its image.
    fn ran(&self, id: u32) -> u32 {
        self.peek(Host::image(id, 0) + 0x1000 + 0x23 * 4)
    }
}

/// Contract F.2, F.4: the commands in the ring buffer are executed, and HEAD in the image is updated; a second
/// submission continues at HEAD.
#[test]
fn submitted_commands_are_executed() {
    let mut host = Host::up();
    host.submit(1, EngineClass::Copy, 2, &store(SCRATCH, 0x1111));
    host.work(4, 1000);
    assert_eq!(host.peek(SCRATCH), 0x1111);
    assert_eq!(host.received(), [[3, 0x9000_1002, 1, 1]]);
    assert_eq!(host.peek(Host::image(1, 0) + 0x1014), 16);
    assert_eq!(host.runs("bcs0"), None);
    for (n, dword) in (4u64..).zip(store(SCRATCH, 0x2222)) {
        host.poke(RINGS + 4 * 0x1000 + n * 4, dword);
    }
    host.set_tail(1, 32);
    host.fast(0x1000, &[1]);
    host.work(4, 1000);
    assert_eq!(host.peek(SCRATCH), 0x2222);
    assert!(host.received().is_empty());
}

/// Contract F.2: two contexts with endless batches share an engine by time slices; after one is disabled, the other
/// continues.
#[test]
fn endless_batches_share_an_engine() {
    let mut host = Host::up();
    for id in [1, 2] {
        let batch = host.spinner(id);
        host.submit(id, EngineClass::Render, 2, &jump(batch));
    }
    host.work(200, 100_000);
    let (one, two) = (i64::from(host.ran(1)), i64::from(host.ran(2)));
    assert!(one > 100_000 && two > 100_000 && (one - two).abs() < 60_000, "{one} {two} ticks of 384000");
    host.received();
    host.fast(0x1001, &[1, 0]);
    host.work(20, 100_000);
    assert_eq!(host.received(), [[3, 0x9000_1002, 1, 0]]);
    assert_eq!(host.runs("rcs0"), Some(2));
    host.poke(BATCHES + 2 * 0x1000, BATCH_END);
    host.work(4, 1000);
    assert_eq!(host.runs("rcs0"), None);
    // After context 1 is enabled again, it resumes its batch, and completes when the batch ends.
    host.fast(0x1001, &[1, 1]);
    host.work(4, 100_000);
    assert_eq!(host.runs("rcs0"), Some(1));
    host.poke(BATCHES + 0x1000, BATCH_END);
    host.work(4, 1000);
    assert_eq!(host.runs("rcs0"), None);
}

/// Contract F.2, F.6: a context that has disabled arbitration is reset when its preemption timeout expires, not
/// earlier.
#[test]
fn a_context_without_arbitration_is_reset_after_the_preemption_timeout() {
    let mut host = Host::up();
    let batch = host.spinner(1);
    let commands: Vec<u32> = [ARB_OFF].into_iter().chain(jump(batch)).collect();
    host.submit(1, EngineClass::Render, 2, &commands);
    host.work(4, 1000);
    host.received();
    host.fast(0x1001, &[1, 0]);
    host.work(6_000, 100_000);
    assert!(host.received().is_empty());
    assert_eq!(host.runs("rcs0"), Some(1));
    host.work(600, 100_000);
    assert_eq!(host.received(), [vec![2, 0x9000_1008, 1], vec![3, 0x9000_1002, 1, 0]]);
    assert_eq!(host.runs("rcs0"), None);
}

/// Contract F.6, G.1: render and compute engines have one reset domain. When a context on one of them is reset, a context
/// on the other is preempted, and reset if it does not leave. Other engines are not affected.
#[test]
fn a_reset_takes_contexts_that_cannot_be_preempted_from_the_other_engines_of_the_domain() {
    for (halts, stays) in [(EngineClass::Render, EngineClass::Compute), (EngineClass::Compute, EngineClass::Render)] {
        for preemptible in [false, true] {
            let mut host = Host::up();
            let without_arbitration = |host: &Host, id| [&[ARB_OFF], &jump(host.spinner(id))[..]].concat();
            let first = without_arbitration(&host, 1);
            host.submit(1, halts, 2, &first);
            let second = if preemptible { jump(host.spinner(2)).to_vec() } else { without_arbitration(&host, 2) };
            host.submit(2, stays, 2, &second);
            let third = without_arbitration(&host, 3);
            host.submit(3, EngineClass::Copy, 2, &third);
            host.work(4, 1000);
            host.received();
            host.policies(1, 2, 1000, 1000);
            host.fast(0x1001, &[1, 0]);
            // The minimum timeout twice, 20 ms each.
            host.work(600, 100_000);
            let mut expected = vec![vec![2, 0x9000_1008, 1], vec![3, 0x9000_1002, 1, 0]];
            expected.extend((!preemptible).then(|| vec![2, 0x9000_1008, 2]));
            assert_eq!(host.received(), expected, "{halts:?}");
            let engine = if stays == EngineClass::Compute { "ccs0" } else { "rcs0" };
            assert_eq!((host.runs(engine), host.runs("bcs0")), (preemptible.then_some(2), Some(3)));
        }
    }
}

/// Contract F.2: a context in a semaphore wait yields the engine to the context that writes the semaphore, even if that
/// context has a lower priority.
#[test]
fn a_semaphore_wait_yields_to_a_context_of_lower_priority() {
    let mut host = Host::up();
    let commands: Vec<u32> = wait_for(SCRATCH, 7).into_iter().chain(store(SCRATCH + 8, 1)).collect();
    host.submit(1, EngineClass::Copy, 0, &commands);
    host.work(4, 20_000);
    assert_eq!(host.runs("bcs0"), Some(1));
    host.submit(2, EngineClass::Copy, 3, &store(SCRATCH, 7));
    host.work(40, 100_000);
    assert_eq!((host.peek(SCRATCH), host.peek(SCRATCH + 8)), (7, 1));
    assert_eq!(host.runs("bcs0"), None);
}

/// Two contexts in endless semaphore waits on one engine are switched at a limited rate.
#[test]
fn waiting_contexts_are_switched_at_a_limited_rate() {
    let mut host = Host::up();
    for id in [1, 2] {
        host.submit(id, EngineClass::Copy, 2, &wait_for(SCRATCH, 7));
    }
    let mut switches = 0;
    let mut last = None;
    for _ in 0..100 {
        host.work(1, 100_000);
        let now = host.runs("bcs0");
        switches += u32::from(now.is_some() && now != last);
        last = now.or(last);
    }
    assert!((4..=20).contains(&switches), "{switches} switches in 10 ms");
    host.poke(SCRATCH, 7);
    host.work(40, 100_000);
    assert_eq!(host.runs("bcs0"), None);
}

/// Contract F.5: the members of a parallel context run concurrently. Each of the two waits for a store of the other.
#[test]
fn parallel_members_run_concurrently() {
    let mut host = Host::up();
    let scratch = wide(&mut host, 2);
    let tails = [(0, SCRATCH, SCRATCH + 8), (1, SCRATCH + 8, SCRATCH)].map(|(member, mine, others)| {
        let commands: Vec<u32> = store(mine, 1).into_iter().chain(wait_for(others, 1)).collect();
        host.ring(2, member, &commands)
    });
    append_item(&mut host, scratch, 2, tails);
    host.fast(0x1001, &[2, 1]);
    host.fast(0x1000, &[2]);
    host.work(20, 100_000);
    assert_eq!((host.peek(SCRATCH), host.peek(SCRATCH + 8)), (1, 1));
    assert_eq!((host.runs("vcs0"), host.runs("vcs2")), (None, None));
    assert_eq!(host.peek(Host::image(2, 1) + 0x1014), tails[1], "all commands of the second member are executed");
}

/// Contract F.6: an access without a valid translation is reported as a CAT error, and the context is reset; then the
/// engine runs the next context.
#[test]
fn a_fault_resets_the_context() {
    let mut host = Host::up();
    host.submit(1, EngineClass::Copy, 2, &store(0x1000, 1));
    host.submit(2, EngineClass::Copy, 2, &store(SCRATCH, 5));
    host.work(6, 1000);
    let messages = host.received();
    assert!(
        messages.contains(&vec![2, 0x9000_6000, 1]) && messages.contains(&vec![2, 0x9000_1008, 1]),
        "{messages:x?}"
    );
    assert_eq!(host.peek(SCRATCH), 5);
}

/// The context ID in status words: the SW context ID is the local id, the SW counter the low bits of the load count.
fn context_id(id: u32, load: u32) -> ContextId {
    ContextId::new(load << 16 | id)
}

#[test]
fn context_switches_are_reported_only_to_the_guc() {
    proves!(
        [V8_031, V8_033, V8_060],
        "contexts loaded by the GuC are identified by the id that their driver uses, a load count and the function \
        number. Context switches are reported only in the FIFO that the GuC reads: the status page, the CSB \
        registers and the host's interrupt registers do not change. A context that is blocked on one engine does \
        not affect the application's contexts on other engines"
    );
    let mut host = Host::up();
    let [render, copy] = ["rcs0", "bcs0"].map(engine_named);
    let page = SCRATCH + 0x1000;
    for engine in [render, copy] {
        host.gt.registers.set(XE_HPG.engines.info(engine).mmio_base + 0x80, page as u32);
    }
    for (offset, value) in [(0x19_0030, 0x0100_0100), (0x19_0008, 1 << 31)] {
        host.gt.write(offset, value);
    }
    host.submit(7, EngineClass::Render, 2, &wait_for(SCRATCH, 1));
    host.step();
    let ports = |host: &Host| [render, copy].map(|engine| host.gt.csb_ports[engine.index()].waiting());
    assert_eq!(ports(&host), [1, 0], "one entry: the switch from idle to the context");
    assert_eq!(
        host.gt.read(XE_HPG.engines.info(render).mmio_base + 0x238),
        1 << 26 | 7 << 7,
        "EXECLIST_STATUS contains the ids"
    );
    assert_eq!(host.engines.lock(render).step(&host.gt, 256), Outcome::Waiting);
    host.submit(8, EngineClass::Copy, 2, &store(SCRATCH + 8, 1));
    host.step();
    let load = host.engines.lock(copy).loaded().unwrap();
    assert_eq!(host.engines.lock(copy).step(&host.gt, 256), Outcome::Complete);
    assert_eq!((host.peek(SCRATCH + 8), ports(&host)), (1, [1, 2]));
    host.engines.report(EngineReport { engine: copy, load, outcome: Outcome::Complete, skipped: None });
    host.step();
    assert_eq!((ports(&host), host.runs("rcs0"), host.runs("bcs0")), ([1, 0], Some(7), None));
    // Disabling the blocked context preempts it to idle, at its polling semaphore wait.
    host.fast(0x1001, &[7, 0]);
    host.step();
    let load = host.engines.lock(render).loaded().unwrap();
    assert_eq!(host.engines.lock(render).step(&host.gt, 256), Outcome::Preempted);
    let port = &host.gt.csb_ports[render.index()];
    let first = ContextStatus::new(ContextId::IDLE, context_id(7, 1), Detail::Complete, true, 0);
    let last = ContextStatus::new(context_id(7, 1), ContextId::IDLE, Detail::Semaphore { polls: true }, true, 0);
    assert_eq!((port.take(), port.take(), port.take()), (Some(first), Some(last), None));
    port.push(last);
    host.engines.report(EngineReport { engine: render, load, outcome: Outcome::Preempted, skipped: None });
    host.step();
    assert_eq!((ports(&host), host.runs("rcs0")), ([0, 0], None));
    assert!((0..0x1000).step_by(4).all(|at| host.peek(page + at) == 0), "the status page is unchanged");
    for engine in [render, copy] {
        let base = XE_HPG.engines.info(engine).mmio_base;
        assert_eq!((host.gt.read(base + 0x3a0), host.gt.read(base + 0x370)), (0x0b0b, 0));
    }
    assert_eq!(host.gt.read(0x19_0018), 0, "no engine interrupt is pending for the host");
}

#[test]
fn the_status_word_takes_precedence_over_the_outcome() {
    proves!(
        V8_060,
        "the scheduler uses the last status word of the context in the FIFO, not the reported outcome: after detail \
        0 (complete) the context has no more work, otherwise it is scheduled again"
    );
    for (detail, scheduled) in [(Detail::Complete, None), (Detail::Preempted, Some(3))] {
        for outcome in [Outcome::Complete, Outcome::Preempted] {
            let mut host = Host::up();
            host.start(3, EngineClass::Copy, 1, 2);
            let port = &host.gt.csb_ports[engine_named("bcs0").index()];
            port.push(ContextStatus::new(context_id(9, 1), ContextId::IDLE, Detail::Preempted, true, 0));
            port.push(ContextStatus::new(context_id(3, 1), ContextId::IDLE, detail, true, 0));
            host.end("bcs0", outcome);
            host.step();
            assert_eq!(host.runs("bcs0"), scheduled, "{detail:?} {outcome:?}");
        }
    }
}

#[test]
fn the_firmware_drains_the_fifo_when_it_starts() {
    proves!([V8_060, V13_204], "the firmware discards stale FIFO entries when it starts");
    let mut host = Host::up();
    let stale = ContextStatus::new(context_id(3, 1), ContextId::IDLE, Detail::Complete, false, 0);
    host.gt.csb_ports.iter().for_each(|port| port.push(stale));
    host.guc.reset(&host.gt);
    assert!(host.gt.csb_ports.iter().all(|port| port.waiting() == 1), "a GuC reset does not clear the FIFO");
    host.upload();
    assert!(host.gt.csb_ports.iter().all(|port| port.waiting() == 0));
}
