// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Messages between host and GuC, and interrupts: no message or event is lost, no data is read before it is written,
//! and no interrupt is sent after interrupts have been disabled.

use std::sync::Arc as StdArc;

use arctic_base::host::{Function, InterruptSink};
use arctic_xehpg::generation::XE_HPG;
use arctic_xehpg::guc::messages::ctb::{Channel, Location};
use arctic_xehpg::guc::messages::hxg::{MAX_DWORDS, Outgoing};
use arctic_xehpg::interrupts::{Interrupts, USER_INTERRUPT, XE_HPG_INTERRUPTS};
use arctic_xehpg::registers::InterruptRegister;
use arctic_xehpg::topology::EngineClass;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

use super::check;
use super::memory::Guest;

/// Dwords in each of the two rings: space for two messages, but not for three.
const RING: u32 = 8;
const HEAD: usize = 0;
const TAIL: usize = 1;
const STATUS: usize = 2;
// Dword offsets in memory: two descriptors, two buffers.
const G2H: usize = 4;
const H2G_BUFFER: usize = 8;
const G2H_BUFFER: usize = H2G_BUFFER + RING as usize;
const DWORDS: usize = G2H_BUFFER + RING as usize;

/// Returns both rings, empty, with head and tail at `start`.
fn channel(start: u32) -> (Guest, Channel) {
    let guest = Guest::new(DWORDS);
    let memory = &guest.dwords;
    for descriptor in [0, G2H] {
        memory[descriptor + HEAD].store(start, Ordering::Relaxed);
        memory[descriptor + TAIL].store(start, Ordering::Relaxed);
    }
    let at = |descriptor: usize, buffer: usize| Location {
        descriptor: descriptor as u64 * 4,
        buffer: buffer as u64 * 4,
        bytes: RING * 4,
    };
    let channel = guest.step(|gam| Channel::open(gam, at(0, H2G_BUFFER), at(G2H, G2H_BUFFER))).unwrap();
    (guest, channel)
}

fn value(memory: &[AtomicU32], at: usize) -> u32 {
    memory[at].load(Ordering::Acquire)
}

/// Receives all pending requests; returns their payloads.
fn receive(guest: &Guest, channel: &mut Channel) -> Vec<u32> {
    let mut taken = Vec::new();
    let mut room = [0; MAX_DWORDS];
    while let Some(request) = guest.step(|gam| channel.h2g.receive(gam, &mut room)) {
        assert_eq!((request.fence, request.hxg.len()), (request.hxg[1] as u16, 2), "incomplete message");
        assert_eq!(request.hxg[0], 0x1000 + request.hxg[1]);
        taken.push(request.hxg[1]);
    }
    guest.step(|gam| channel.h2g.publish_head(gam));
    taken
}

/// A host sends three requests, one of which wraps around the end of the ring, while the GuC receives. Each request
/// arrives completely, in order and exactly once. The host sends the third only if the head indicates enough free
/// space.
#[test]
fn requests_arrive_complete_in_order_and_once() {
    check(|| {
        let (guest, mut channel) = channel(6);
        let host = {
            let memory = guest.dwords.clone();
            thread::spawn(move || {
                let mut tail = 6;
                for n in 1..=3 {
                    let head = value(&memory, HEAD);
                    if (tail + RING - head) % RING + 3 >= RING {
                        return n - 1;
                    }
                    for dword in [n << 16 | 2, 0x1000 + n, n] {
                        memory[H2G_BUFFER + tail as usize].store(dword, Ordering::Relaxed);
                        tail = (tail + 1) % RING;
                    }
                    memory[TAIL].store(tail, Ordering::Release);
                }
                3
            })
        };
        let mut taken = receive(&guest, &mut channel);
        taken.extend(receive(&guest, &mut channel));
        let sent = host.join().unwrap();
        taken.extend(receive(&guest, &mut channel));
        assert_eq!(taken, (1..=sent).collect::<Vec<_>>());
        assert_eq!((value(&guest.dwords, HEAD), value(&guest.dwords, STATUS)), ((6 + 3 * sent) % RING, 0));
    });
}

/// The GuC sends three messages while the host reads, and the host's ring has space for two. Each message arrives
/// completely, in order and exactly once.
#[test]
fn messages_to_the_host_arrive_complete_in_order_and_once() {
    check(|| {
        let (guest, mut channel) = channel(6);
        for n in 1..=3 {
            channel.post(Outgoing::event(0x77, &[n]));
        }
        let host = {
            let memory = guest.dwords.clone();
            thread::spawn(move || {
                let (mut head, mut taken) = (6, Vec::new());
                for _ in 0..2 {
                    let tail = value(&memory, G2H + TAIL);
                    while head != tail {
                        let at = |n: u32| G2H_BUFFER + ((head + n) % RING) as usize;
                        let read = |n: u32| memory[at(n)].load(Ordering::Relaxed);
                        assert_eq!((read(0) & 0xff, read(1) & 0xffff), (2, 0x77), "incomplete message");
                        taken.push(read(2));
                        head = (head + 3) % RING;
                    }
                    memory[G2H + HEAD].store(head, Ordering::Release);
                }
                (head, taken)
            })
        };
        guest.step(|gam| channel.flush(gam));
        guest.step(|gam| channel.flush(gam));
        let (mut head, mut taken) = host.join().unwrap();
        let memory = &guest.dwords;
        for _ in 0..2 {
            guest.step(|gam| channel.flush(gam));
            while head != value(memory, G2H + TAIL) {
                taken.push(value(memory, G2H_BUFFER + ((head + 2) % RING) as usize));
                head = (head + 3) % RING;
            }
            memory[G2H + HEAD].store(head, Ordering::Release);
        }
        assert_eq!((taken, channel.waiting()), (vec![1, 2, 3], 0));
    });
}

/// A host writes arbitrary values at any time. The GuC disables the ring or reads garbage, but does not panic or loop
/// forever.
#[test]
fn arbitrary_host_writes_cause_no_panic_or_endless_loop() {
    check(|| {
        let (guest, mut channel) = channel(0);
        channel.post(Outgoing::event(0x77, &[1]));
        let host = {
            let memory = guest.dwords.clone();
            thread::spawn(move || {
                memory[TAIL].store(7, Ordering::Relaxed);
                memory[H2G_BUFFER].store(0x00ff_0005, Ordering::Relaxed);
                memory[HEAD].store(!0, Ordering::Relaxed);
                memory[G2H + HEAD].store(RING, Ordering::Relaxed);
                memory[TAIL].store(!0, Ordering::Relaxed);
            })
        };
        let mut room = [0; MAX_DWORDS];
        for _ in 0..3 {
            if let Some(request) = guest.step(|gam| channel.h2g.receive(gam, &mut room)) {
                assert!(request.hxg.len() < RING as usize);
            }
            guest.step(|gam| channel.h2g.publish_head(gam));
            guest.step(|gam| channel.flush(gam));
        }
        host.join().unwrap();
    });
}

/// Counts MSIs and lets a driver wait for one.
struct Msis {
    sent: Mutex<u32>,
    came: Condvar,
}

struct Sink(Arc<Msis>);

impl InterruptSink for Sink {
    fn raise(&self, function: Function, vector: u16) {
        assert_eq!((function, vector), (Function::new(1).unwrap(), 0));
        *self.0.sent.lock().unwrap() += 1;
        self.0.came.notify_all();
    }

    fn set_line(&self, _: Function, _: bool) {}
}

const VF: Function = Function::new(1).unwrap();
const ENABLE: u32 = 0x19_0030;
const MASK: [u32; 2] = [0x19_0090, 0x19_00a0];
const MASTER: u32 = 1 << 31;

struct Tree {
    interrupts: Interrupts,
    msis: Arc<Msis>,
}

impl Tree {
    /// Returns a virtual function's interrupt tree with render and copy engines enabled, and the master interrupt as
    /// given.
    fn new(enabled: bool) -> Arc<Tree> {
        let msis = Arc::new(Msis { sent: Mutex::new(0), came: Condvar::new() });
        let tree = Tree { interrupts: Interrupts::new(VF, &XE_HPG_INTERRUPTS, StdArc::new(Sink(msis.clone()))), msis };
        tree.interrupts.write(InterruptRegister::Enable, ENABLE, 0, 0x0001_0001);
        MASK.iter().for_each(|mask| tree.interrupts.write(InterruptRegister::Mask, *mask, 0, 0));
        tree.master(enabled);
        Arc::new(tree)
    }

    fn master(&self, enabled: bool) {
        self.interrupts.write(InterruptRegister::MasterGt, 0x19_0010, 0, if enabled { MASTER } else { 0 });
    }

    fn raise(tree: &Arc<Tree>, class: EngineClass) -> thread::JoinHandle<()> {
        let tree = tree.clone();
        thread::spawn(move || tree.interrupts.raise_engine(XE_HPG.engines.find(class, 0).unwrap(), USER_INTERRUPT))
    }

    fn sent(&self) -> u32 {
        *self.msis.sent.lock().unwrap()
    }

    /// The driver's handler (xe: dg1_irq_handler, gt_irq_handler); returns the number of events found.
    fn handle(&self) -> u32 {
        self.master(false);
        let mut found = 0;
        if self.interrupts.read(InterruptRegister::MasterGt, 0) & 1 != 0 {
            let sources = self.interrupts.read(InterruptRegister::Bank, 0);
            for bit in (0..32).filter(|bit| sources >> bit & 1 != 0) {
                self.interrupts.write(InterruptRegister::Selector, 0, 0, 1 << bit);
                let identity = self.interrupts.read(InterruptRegister::Identity, 0);
                found += (identity as u16).count_ones();
                self.interrupts.write(InterruptRegister::Identity, 0, 0, identity);
            }
            self.interrupts.write(InterruptRegister::Bank, 0, 0, sources);
        }
        self.master(true);
        found
    }

    /// Waits for MSIs and handles each, until `events` events have been found.
    fn drive(&self, events: u32) {
        let (mut found, mut handled) = (0, 0);
        while found < events {
            let mut sent = self.msis.sent.lock().unwrap();
            while *sent == handled {
                sent = self.msis.came.wait(sent).unwrap();
            }
            handled = *sent;
            drop(sent);
            found += self.handle();
        }
        assert_eq!(found, events);
    }
}

/// Two engines raise events at any point of the driver's handler. The handler, which only MSIs trigger, finds both
/// events.
#[test]
fn no_event_is_lost() {
    check(|| {
        let tree = Tree::new(true);
        let engines = [EngineClass::Render, EngineClass::Copy].map(|class| Tree::raise(&tree, class));
        tree.drive(2);
        for engine in engines {
            engine.join().unwrap();
        }
    });
}

/// Until the driver handles the interrupt, two events cause one MSI, in either order.
#[test]
fn one_msi_for_events_at_once() {
    check(|| {
        let tree = Tree::new(true);
        for engine in [EngineClass::Render, EngineClass::Copy].map(|class| Tree::raise(&tree, class)) {
            engine.join().unwrap();
        }
        assert_eq!(tree.sent(), 1);
    });
}

/// An event concurrent with enabling the master interrupt causes exactly one MSI.
#[test]
fn an_event_beside_the_enable() {
    check(|| {
        let tree = Tree::new(false);
        let engine = Tree::raise(&tree, EngineClass::Copy);
        tree.master(true);
        engine.join().unwrap();
        assert_eq!(tree.sent(), 1);
    });
}

/// After the write that disables the master interrupt has returned, no MSI is sent.
#[test]
fn no_msi_after_the_disable() {
    check(|| {
        let tree = Tree::new(true);
        let engines = [EngineClass::Render, EngineClass::Copy].map(|class| Tree::raise(&tree, class));
        tree.master(false);
        let sent = tree.sent();
        for engine in engines {
            engine.join().unwrap();
        }
        assert_eq!(tree.sent(), sent);
    });
}

/// After a reset of the function has returned, no MSI is sent.
#[test]
fn no_msi_after_a_reset() {
    check(|| {
        let tree = Tree::new(true);
        let engine = Tree::raise(&tree, EngineClass::Render);
        tree.interrupts.reset_with(|| ());
        let sent = tree.sent();
        engine.join().unwrap();
        assert_eq!(tree.sent(), sent);
    });
}
