//! The GuC with the real command streamers: contexts with rings of commands, from submission to the answer.

use super::contexts::{append_item, wide};
use super::*;
use crate::engine::blank_image;

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
    /// Writes an image with a ring that holds `commands`; returns the tail.
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

    /// A batch that goes round until its first dword becomes an end.
    fn spinner(&self, id: u32) -> u64 {
        let batch = BATCHES + u64::from(id) * 0x1000;
        for (n, dword) in (0u64..).zip([ARB_CHECK].into_iter().chain(jump(batch))) {
            self.poke(batch + n * 4, dword);
        }
        batch
    }

    /// Registers and enables a context with these commands; the G2H for it is left in the ring.
    fn submit(&mut self, id: u32, class: EngineClass, priority: u32, commands: &[u32]) {
        let tail = self.ring(id, 0, commands);
        self.register(id, class, 1);
        self.policies(id, priority, 1000, 640_000);
        self.set_tail(id, tail);
        self.fast(0x1001, &[id, 1]);
    }

    /// What the card's workers do, for `rounds` rounds of `ns` each.
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
                    Outcome::Waiting | Outcome::Spinning => self.engines.put_off(id, self.clock.now()),
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

    /// Ticks that a context has run, as its image says.
    fn ran(&self, id: u32) -> u32 {
        self.peek(Host::image(id, 0) + 0x1000 + 0x23 * 4)
    }
}

/// Contract F.2, F.4: what is in the ring is carried out, HEAD follows in the image, a second submission goes on.
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

/// Contract F.2: two endless batches share an engine by slices; disabling one takes it off, the other one goes on.
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
    // Enabled again, the first goes on in its batch, and ends.
    host.fast(0x1001, &[1, 1]);
    host.work(4, 100_000);
    assert_eq!(host.runs("rcs0"), Some(1));
    host.poke(BATCHES + 0x1000, BATCH_END);
    host.work(4, 1000);
    assert_eq!(host.runs("rcs0"), None);
}

/// Contract F.2, F.6: a batch that forbids arbitration is reset after its preemption timeout, and only then.
#[test]
fn no_arbitration() {
    let mut host = Host::up();
    let batch = host.spinner(1);
    let commands: Vec<u32> = [ARB_OFF].into_iter().chain(jump(batch)).collect();
    host.submit(1, EngineClass::Render, 2, &commands);
    host.work(4, 1000);
    host.received();
    host.fast(0x1001, &[1, 0]);
    host.work(60, 10_000_000);
    assert!(host.received().is_empty());
    assert_eq!(host.runs("rcs0"), Some(1));
    host.work(6, 10_000_000);
    assert_eq!(host.received(), [vec![2, 0x9000_1008, 1], vec![3, 0x9000_1002, 1, 0]]);
    assert_eq!(host.runs("rcs0"), None);
}

/// Contract F.2: a context that waits lets the one run that it waits for, even a less important one.
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

/// Two contexts that wait for ever take turns without haste.
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

/// Contract F.5: members wait for each other, which ends only where they run at the same time.
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
    assert_eq!(host.peek(Host::image(2, 1) + 0x1014), tails[1], "all of the second ring is done");
}

/// Contract F.6: an access without translation is told as CAT error and reset, and the engine serves the next context.
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
