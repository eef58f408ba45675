// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Doorbells: no doorbell write is lost or attributed to another context, and a group sends one message.

use arctic_base::host::Function;
use arctic_xehpg::doorbell::DoorbellRegister;
use arctic_xehpg::doorbell::{Doorbells, PAGE_BYTES, Page, Ring, Route, SEND_TO_CORE, WINDOW};
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::sync::{Arc, Mutex, MutexGuard};
use loom::thread::{self, JoinHandle};

use super::check;

const VF1: Function = Function::new(1).unwrap();
const VF2: Function = Function::new(2).unwrap();

fn page(number: u64) -> Page {
    Page::at(WINDOW + number * PAGE_BYTES).unwrap()
}

/// A block with two doorbells routed to the GuC; a write that causes a message notifies the GuC, as in the card.
struct Block {
    doorbells: Doorbells,
    called: Mutex<bool>,
    host_messages: AtomicU32,
}

impl Block {
    fn new() -> Arc<Block> {
        let doorbells = Doorbells::of(2);
        doorbells.write(DoorbellRegister::Control, 0, SEND_TO_CORE);
        Arc::new(Block { doorbells, called: Mutex::new(false), host_messages: AtomicU32::new(0) })
    }

    fn called(&self) -> MutexGuard<'_, bool> {
        self.called.lock().unwrap()
    }

    fn ring(&self, function: Function, page: Page) -> Ring {
        let ring = self.doorbells.ring(function, page);
        match ring {
            Ring::Message { to: Route::Guc, .. } => *self.called() = true,
            Ring::Message { to: Route::Host, .. } => drop(self.host_messages.fetch_add(1, Ordering::Relaxed)),
            Ring::Collapsed | Ring::Missed => {}
        }
        ring
    }

    /// Runs a step of the GuC if it was notified; returns the doorbells that it serves.
    fn step(&self) -> Vec<u8> {
        if std::mem::take(&mut *self.called()) { self.doorbells.take_rung().iter().collect() } else { Vec::new() }
    }
}

/// Writes the function's first doorbell page on another thread.
fn ring_beside(block: &Arc<Block>, function: Function) -> JoinHandle<Ring> {
    let block = block.clone();
    thread::spawn(move || block.ring(function, page(0)))
}

/// A guest advances its tail and writes the doorbell, twice, while the GuC runs. After the last step that is triggered
/// by a message, the GuC has read the last tail.
#[test]
fn no_ring_is_lost() {
    check(|| {
        let block = Block::new();
        block.doorbells.arm(0, VF1, page(0)).unwrap();
        let tail = Arc::new(AtomicU32::new(0));
        let guest = {
            let (block, tail) = (block.clone(), tail.clone());
            thread::spawn(move || {
                for moved in 1..=2 {
                    tail.store(moved, Ordering::Relaxed);
                    assert_ne!(block.ring(VF1, page(0)), Ring::Missed);
                }
            })
        };
        let mut seen = 0;
        let mut serve = || {
            if block.step() == [0] {
                seen = tail.load(Ordering::Relaxed);
            }
        };
        serve();
        serve();
        guest.join().unwrap();
        serve();
        assert_eq!(seen, 2);
    });
}

/// Two guests write two doorbells of one group: both are served, regardless of which message is coalesced into the
/// other.
#[test]
fn no_ring_is_lost_beside_another() {
    check(|| {
        let block = Block::new();
        block.doorbells.arm(0, VF1, page(0)).unwrap();
        block.doorbells.arm(1, VF2, page(0)).unwrap();
        let guests = [VF1, VF2].map(|function| ring_beside(&block, function));
        let mut served = block.step();
        let rings = guests.map(|guest| guest.join().unwrap());
        served.extend(block.step());
        served.sort_unstable();
        assert_eq!(served, [0, 1]);
        assert!(rings.iter().any(|ring| matches!(ring, Ring::Message { .. })));
    });
}

/// The GuC reassigns VF 1's doorbell to VF 2 while VF 1 writes it: afterwards only VF 2's writes are reported for that
/// doorbell.
#[test]
fn a_ring_is_reported_for_the_armed_function() {
    check(|| {
        let block = Block::new();
        block.doorbells.arm(0, VF1, page(0)).unwrap();
        let first = ring_beside(&block, VF1);
        block.doorbells.disarm(0);
        block.doorbells.arm(0, VF2, page(0)).unwrap();
        assert_eq!(block.step(), [0u8; 0], "VF 2 has not written the doorbell");
        first.join().unwrap();
        assert_eq!(block.step(), [0u8; 0], "VF 2 has not written the doorbell");
        assert_ne!(block.ring(VF2, page(0)), Ring::Missed);
        // The status may have been set by VF 1's write, whose message was sent earlier or is this one.
        *block.called() = true;
        assert_eq!(block.step(), [0]);
    });
}

/// After disarming, a doorbell ignores writes, and an earlier write has no effect.
#[test]
fn disarmed_doorbell_ignores_writes() {
    check(|| {
        let block = Block::new();
        block.doorbells.arm(0, VF1, page(0)).unwrap();
        let guest = ring_beside(&block, VF1);
        block.doorbells.disarm(0);
        assert_eq!(block.doorbells.watched(0), None);
        assert_eq!(block.doorbells.ring(VF1, page(0)), Ring::Missed);
        guest.join().unwrap();
        *block.called() = true;
        assert_eq!(block.step(), [0u8; 0]);
        block.doorbells.arm(0, VF1, page(1)).unwrap();
    });
}

/// An FLR of VF 1 concurrent with a write by VF 2: VF 2's write is served.
#[test]
fn function_reset_keeps_a_ring_of_another_function() {
    check(|| {
        let block = Block::new();
        block.doorbells.arm(0, VF1, page(0)).unwrap();
        block.doorbells.arm(1, VF2, page(0)).unwrap();
        let guests = [VF1, VF2].map(|function| ring_beside(&block, function));
        block.doorbells.reset_function(VF1);
        for guest in guests {
            guest.join().unwrap();
        }
        assert_eq!(block.step(), [1]);
    });
}

/// The GuC is reset and started again concurrently with a doorbell write: afterwards the group's first write sends a
/// message.
#[test]
fn first_write_after_a_reset_sends_a_message() {
    check(|| {
        let block = Block::new();
        block.doorbells.arm(0, VF1, page(0)).unwrap();
        let guest = ring_beside(&block, VF1);
        block.doorbells.reset();
        guest.join().unwrap();
        block.doorbells.reset();
        block.doorbells.write(DoorbellRegister::Control, 0, SEND_TO_CORE);
        *block.called() = false;
        block.doorbells.arm(0, VF2, page(3)).unwrap();
        assert_eq!(block.ring(VF2, page(3)), Ring::Message { groups: 1, to: Route::Guc });
        assert_eq!(block.step(), [0]);
    });
}

/// The driver routes doorbells to the GuC concurrently with a write: either the host or the GuC is notified.
#[test]
fn routing_change_loses_no_notification() {
    check(|| {
        let block = Arc::new(Block {
            doorbells: Doorbells::of(2),
            called: Mutex::new(false),
            host_messages: AtomicU32::new(0),
        });
        block.doorbells.arm(0, VF1, page(0)).unwrap();
        let guest = ring_beside(&block, VF1);
        if block.doorbells.write(DoorbellRegister::Control, 0, SEND_TO_CORE) {
            *block.called() = true;
        }
        guest.join().unwrap();
        let served = block.step();
        assert_eq!(served, [0]);
    });
}

/// The host reads the interrupt status, which clears a group, concurrently with a write and a step: the GuC still
/// serves the write.
#[test]
fn a_host_that_reads_the_status() {
    check(|| {
        let block = Block::new();
        block.doorbells.arm(0, VF1, page(0)).unwrap();
        let guest = ring_beside(&block, VF1);
        let host = {
            let block = block.clone();
            thread::spawn(move || block.doorbells.read(DoorbellRegister::InterruptStatus, 0))
        };
        let mut served = block.step();
        guest.join().unwrap();
        host.join().unwrap();
        served.extend(block.step());
        assert_eq!(served, [0]);
    });
}
