// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! TLB invalidations of one function while engines run other functions.

use arctic_fidelity::proves;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use arctic_device_model::card::Card;
use arctic_device_model::host::DmaFault;
use arctic_device_model::topology::{EngineClass, XE_HPG_ENGINES};
use arctic_device_model::workers::Workers;
use arctic_test_support::mi::{self, Process};
use arctic_test_support::vfs::bench::*;
use arctic_test_support::vfs::world::{REMOTE, Time, Trap};

const ID: u32 = 5;
/// Number of the context that accesses memory of a blocked client.
const BLOCKED: u32 = 6;
/// The page whose translation changes: its address, its table entry, and the two pages to which it is mapped.
const ADDRESS: u64 = 0x5000;
const ENTRY: u64 = at::TABLES + 3 * 0x1000 + (ADDRESS >> 12) * 8;
const PAGES: [u64; 2] = [at::DATA + 0x5000, at::DATA + 0x8_5000];
/// Value that contexts store.
const STORED: u32 = 0xbad;
/// Limit for everything that must happen, on a loaded host.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Guest memory of which each read blocks until it is released.
#[derive(Default)]
struct Gate(Mutex<(bool, bool)>, Condvar);

impl Gate {
    fn entered(&self) -> bool {
        self.0.lock().unwrap().0
    }

    fn release(&self) {
        self.0.lock().unwrap().1 = true;
        self.1.notify_all();
    }
}

impl Trap for Gate {
    fn claims(&self, iova: u64) -> bool {
        (REMOTE.0..REMOTE.0 + REMOTE.1).contains(&iova)
    }

    fn read(&self, _: u64, data: &mut [u8]) -> Result<(), DmaFault> {
        let mut state = self.0.lock().unwrap();
        state.0 = true;
        drop(self.1.wait_while(state, |state| !state.1).unwrap());
        data.fill(0);
        Ok(())
    }

    fn write(&self, _: u64, _: &[u8]) -> Result<(), DmaFault> {
        Ok(())
    }
}

/// Releases the gate when a test ends, also by a panic: the card's threads could not be joined otherwise.
struct Released(Arc<Gate>);

impl Drop for Released {
    fn drop(&mut self) {
        self.0.release();
    }
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + TIMEOUT;
    while !holds() {
        assert!(Instant::now() < end, "timed out waiting for: {what}");
        thread::sleep(Duration::from_micros(50));
    }
}

/// Submits an endless batch of stores to `addresses`.
fn store_forever(vf: &mut Vf, class: EngineClass, addresses: impl Iterator<Item = u64>) {
    let again = vf.jump(ID);
    let mut batch: Vec<u32> = addresses.flat_map(|at| mi::store_data_imm(Process(at), STORED)).collect();
    batch.extend(again);
    vf.write_words(Vf::batch(ID), &batch);
    vf.submit(ID, class, &again);
}

/// Sends TLB_INVALIDATION for all pages.
fn invalidate(vf: &mut Vf, seqno: u32) {
    vf.request(0x7000, &[seqno, 0x8000_0000]);
}

/// Returns whether the response has arrived; skips other messages.
fn answered(vf: &mut Vf, seqno: u32) -> bool {
    std::iter::from_fn(|| vf.take()).any(|message| message[1..] == [0x9000_7001, seqno])
}

fn fills(card: &Card, class: EngineClass) -> u64 {
    card.engines().lock(XE_HPG_ENGINES.find(class, 0).unwrap()).tlb_fills()
}

#[test]
fn an_invalidation_concerns_one_function() {
    proves!(
        V13_041,
        "VF 2's step is blocked in an access to its guest memory, and VF 3 stores in a loop. VF 1, which also \
        stores in a loop, changes a page table entry and invalidates, again and again. Each invalidation completes \
        although VF 2's step does not end, VF 1's engine does not use the old page afterwards, and VF 3's TLB keeps \
        its contents. An invalidation of VF 2 waits for its step (contract C.5, E.3)"
    );
    let mut bench = VfBench::with(true, Some(QUOTA), Time::real());
    bench.victims.iter_mut().for_each(Vf::up);
    bench.attacker.up();
    let gate = Arc::new(Gate::default());
    bench.guests.of(ATTACKER).set_trap(gate.clone());
    let card = bench.card.clone();
    let workers = Workers::start(card.clone(), 3).unwrap();
    let _released = Released(gate.clone());
    let [mut one, mut three] = bench.victims;
    let mut two = bench.attacker;

    let slow = mi::copy_mem_mem(two.global(at::SCRATCH), two.global(at::REMOTE));
    two.submit(BLOCKED, EngineClass::Copy, &slow);
    until("the blocked step", || gate.entered());
    let pages = (0..32).map(|page| three.base() + at::SCRATCH + page * 0x1000).collect::<Vec<_>>();
    store_forever(&mut three, EngineClass::VideoDecode, pages.iter().copied());
    until("stores of VF 3", || three.peek(at::SCRATCH + 31 * 0x1000) == STORED);
    store_forever(&mut one, EngineClass::Compute, std::iter::repeat_n(ADDRESS, 64));
    until("stores of VF 1", || one.peek(PAGES[0]) == STORED);

    let filled = fills(&card, EngineClass::VideoDecode);
    for seqno in 1..200u32 {
        let [new, old] = [seqno, seqno + 1].map(|n| PAGES[n as usize % 2]);
        one.poke64(ENTRY, new | 0x803);
        one.poke(new, 0);
        invalidate(&mut one, seqno);
        until("the response to VF 1", || answered(&mut one, seqno));
        one.poke(old, 7);
        until("stores to the new page", || one.peek(new) == STORED);
        assert_eq!(one.peek(old), 7, "invalidation {seqno}: the old page was written");
    }
    assert_eq!(fills(&card, EngineClass::VideoDecode), filled, "VF 3's translations were dropped");
    card.gt().memory.invalidate(three.function.bit());
    until("VF 3's translations", || fills(&card, EngineClass::VideoDecode) >= filled + 32);

    let reset = thread::spawn({
        let card = card.clone();
        move || card.reset_function(VICTIMS[0])
    });
    until("the reset of VF 1", || reset.is_finished());
    reset.join().unwrap();

    invalidate(&mut two, 1);
    thread::sleep(Duration::from_millis(50));
    assert!(!answered(&mut two, 1), "the response does not wait for VF 2's step");
    gate.release();
    until("the response to VF 2", || answered(&mut two, 1));
    drop(workers);
    assert_eq!(card.panics(), 0);
}
