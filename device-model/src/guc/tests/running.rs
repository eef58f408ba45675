// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The GuC with real command streamers: contexts with commands in their rings, from submission to completion.

use super::contexts::{append_item, wide};
use super::*;
use crate::engine::blank_image;
use crate::execlist::descriptor::ContextId;
use crate::execlist::status::{ContextStatus, Detail};

const ARB_CHECK: u32 = 0x05 << 23;
const ARB_OFF: u32 = 0x08 << 23;
const BATCH_END: u32 = 0x0a << 23;
/// Rings, one page each; batches follow the rings.
const RINGS: u64 = 0xe0_0000;
const BATCHES: u64 = 0xe8_0000;

fn store(at: u64, value: u32) -> [u32; 4] {
    [0x20 << 23 | 1 << 22 | 2, at as u32, 0, value]
}

/// MI_SEMAPHORE_WAIT: polls until the dword equals `value`.
fn wait_for(at: u64, value: u32) -> [u32; 5] {
    [0x1c << 23 | 1 << 22 | 1 << 15 | 4 << 12 | 3, value, at as u32, 0, 0]
}

fn jump(to: u64) -> [u32; 3] {
    [0x31 << 23 | 1, to as u32, 0]
}

impl Host {
    /// Writes a context image and a ring with `commands`; returns the tail.
    fn ring(&self, id: u32, member: u32, commands: &[u32]) -> u32 {
        let image = Host::image(id, member) + 0x1000;
        let ring = RINGS + u64::from(id * 4 + member) * 0x1000;
        for (n, dword) in (0u64..).zip(commands) {
            self.poke(ring + n * 4, *dword);
        }
        for (n, dword) in (0u64..).zip(blank_image()) {
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

    /// Registers and enables a context with these commands. The G2H messages stay in the ring.
    fn submit(&mut self, id: u32, class: EngineClass, priority: u32, commands: &[u32]) {
        let tail = self.ring(id, 0, commands);
        self.register(id, class, 1);
        self.policies(id, priority, 1000, 640_000);
        self.set_tail(id, tail);
        self.fast(0x1001, &[id, 1]);
    }

    /// Works as the card's workers do, for `rounds` rounds of `ns` each.
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
                    self.engines.report(EngineReport { engine: id, load, outcome });
                }
            }
            self.clock.advance(ns);
        }
        self.step();
    }

    /// Ticks that a context has run, from its image.
    fn ran(&self, id: u32) -> u32 {
        self.peek(Host::image(id, 0) + 0x1000 + 0x23 * 4)
    }
}

/// Contract F.2, F.4: commands in the ring are executed, HEAD is updated in the image, a second submission continues.
#[test]
fn submission() {
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

/// Contract F.2: two endless batches share an engine by time slices; after one is disabled, the other continues.
#[test]
fn spinners_share() {
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
    // After it is enabled again, the first one continues in its batch and ends.
    host.fast(0x1001, &[1, 1]);
    host.work(4, 100_000);
    assert_eq!(host.runs("rcs0"), Some(1));
    host.poke(BATCHES + 0x1000, BATCH_END);
    host.work(4, 1000);
    assert_eq!(host.runs("rcs0"), None);
}

/// Contract F.2, F.6: a batch that disables arbitration is reset after its preemption timeout, and not before.
#[test]
fn no_arbitration() {
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

/// Contract F.2: a context that waits yields to the one that it waits for, even if that has a lower priority.
#[test]
fn semaphore_between_contexts_of_one_engine() {
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

/// Two contexts that wait indefinitely take turns at a limited rate.
#[test]
fn two_waiting_contexts() {
    let mut host = Host::up();
    for id in [1, 2] {
        host.submit(id, EngineClass::Copy, 2, &wait_for(SCRATCH, 7));
    }
    let mut turns = 0;
    let mut last = None;
    for _ in 0..100 {
        host.work(1, 100_000);
        let now = host.runs("bcs0");
        turns += u32::from(now.is_some() && now != last);
        last = now.or(last);
    }
    assert!((4..=20).contains(&turns), "{turns} turns in 10 ms");
    host.poke(SCRATCH, 7);
    host.work(40, 100_000);
    assert_eq!(host.runs("bcs0"), None);
}

/// Contract F.5: two members wait for each other, which only ends if they run at the same time.
#[test]
fn parallel_members_meet() {
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
    assert_eq!(host.peek(Host::image(2, 1) + 0x1014), tails[1], "all of the second ring is executed");
}

/// Contract F.6: an access without a valid translation is reported as CAT error and the context is reset; then the
/// engine runs the next context.
#[test]
fn fault_of_a_batch() {
    let mut host = Host::up();
    host.submit(1, EngineClass::Copy, 2, &store(0x1000, 1));
    host.submit(2, EngineClass::Copy, 2, &store(SCRATCH, 5));
    host.work(6, 1000);
    let told = host.received();
    assert!(told.contains(&vec![2, 0x9000_6000, 1]) && told.contains(&vec![2, 0x9000_1008, 1]), "{told:x?}");
    assert_eq!(host.peek(SCRATCH), 5);
}

/// The context's id in status words: its local id, and the low bits of the number of its load.
fn named(id: u32, load: u32) -> ContextId {
    ContextId::new(load << 16 | id)
}

/// V8-031, V8-033, V8-060: contexts loaded by the GuC are identified by the id that their driver uses, a load count and
/// the function number. Context switches are only written to the GuC's FIFO, which the GuC reads: status page, its
/// copies and host interrupt stay unchanged. A context that is blocked on one engine does not affect the application's
/// contexts on others.
#[test]
fn switches_come_to_the_guc() {
    let mut host = Host::up();
    let [render, copy] = ["rcs0", "bcs0"].map(engine_named);
    let page = SCRATCH + 0x1000;
    for engine in [render, copy] {
        host.gt.registers.set(engine.info().mmio_base + 0x80, page as u32);
    }
    for (offset, value) in [(0x19_0030, 0x0100_0100), (0x19_0008, 1 << 31)] {
        host.gt.write(offset, value);
    }
    host.submit(7, EngineClass::Render, 2, &wait_for(SCRATCH, 1));
    host.step();
    let ports = |host: &Host| [render, copy].map(|engine| host.gt.csb_ports[engine.index()].waiting());
    assert_eq!(ports(&host), [1, 0], "the entry for idle to active");
    assert_eq!(host.gt.read(render.info().mmio_base + 0x238), 1 << 26 | 7 << 7, "EXECLIST_STATUS contains the ids");
    assert_eq!(host.engines.lock(render).step(&host.gt, 256), Outcome::Waiting);
    host.submit(8, EngineClass::Copy, 2, &store(SCRATCH + 8, 1));
    host.step();
    let load = host.engines.lock(copy).loaded().unwrap();
    assert_eq!(host.engines.lock(copy).step(&host.gt, 256), Outcome::Complete);
    assert_eq!((host.peek(SCRATCH + 8), ports(&host)), (1, [1, 2]));
    host.engines.report(EngineReport { engine: copy, load, outcome: Outcome::Complete });
    host.step();
    assert_eq!((ports(&host), host.runs("rcs0"), host.runs("bcs0")), ([1, 0], Some(7), None));
    // Preemption of the blocked context is requested: a preemption to idle at a polling wait.
    host.fast(0x1001, &[7, 0]);
    host.step();
    let load = host.engines.lock(render).loaded().unwrap();
    assert_eq!(host.engines.lock(render).step(&host.gt, 256), Outcome::Preempted);
    let port = &host.gt.csb_ports[render.index()];
    let first = ContextStatus::new(ContextId::IDLE, named(7, 1), Detail::Complete, true, 0);
    let last = ContextStatus::new(named(7, 1), ContextId::IDLE, Detail::Semaphore { polls: true }, true, 0);
    assert_eq!((port.take(), port.take(), port.take()), (Some(first), Some(last), None));
    port.push(last);
    host.engines.report(EngineReport { engine: render, load, outcome: Outcome::Preempted });
    host.step();
    assert_eq!((ports(&host), host.runs("rcs0")), ([0, 0], None));
    assert!((0..0x1000).step_by(4).all(|at| host.peek(page + at) == 0), "the status page is unchanged");
    for engine in [render, copy] {
        let base = engine.info().mmio_base;
        assert_eq!((host.gt.read(base + 0x3a0), host.gt.read(base + 0x370)), (0x0b0b, 0));
    }
    assert_eq!(host.gt.read(0x19_0018), 0, "no engine interrupts the host");
}

/// V8-060: the status word decides: detail 0 ends the context's work; otherwise it is scheduled again.
#[test]
fn the_status_word_decides() {
    for (detail, back) in [(Detail::Complete, None), (Detail::Preempted, Some(3))] {
        for outcome in [Outcome::Complete, Outcome::Preempted] {
            let mut host = Host::up();
            host.start(3, EngineClass::Copy, 1, 2);
            let port = &host.gt.csb_ports[engine_named("bcs0").index()];
            port.push(ContextStatus::new(named(9, 1), ContextId::IDLE, Detail::Preempted, true, 0));
            port.push(ContextStatus::new(named(3, 1), ContextId::IDLE, detail, true, 0));
            host.end("bcs0", outcome);
            host.step();
            assert_eq!(host.runs("bcs0"), back, "{detail:?} {outcome:?}");
        }
    }
}

/// V8-060, V13-204: the start of the firmware discards entries from before.
#[test]
fn the_fifo_is_drained_at_start() {
    let mut host = Host::up();
    let stale = ContextStatus::new(named(3, 1), ContextId::IDLE, Detail::Complete, false, 0);
    host.gt.csb_ports.iter().for_each(|port| port.push(stale));
    host.guc.reset(&host.gt);
    assert!(host.gt.csb_ports.iter().all(|port| port.waiting() == 1), "a GuC reset does not clear it");
    host.upload();
    assert!(host.gt.csb_ports.iter().all(|port| port.waiting() == 0));
}
