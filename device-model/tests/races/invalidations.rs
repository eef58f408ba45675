// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! TLB invalidations and an FLR of one function while engines run other functions, one of which is blocked in an access to
//! guest memory.

use arctic_fidelity::proves;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use arctic_device_model::card::Card;
use arctic_device_model::host::DmaFault;
use arctic_device_model::topology::{EngineClass, XE_HPG_ENGINES};
use arctic_device_model::workers::Workers;
use arctic_test_support::mi::{self, Process};
use arctic_test_support::poll::eventually;
use arctic_test_support::vfs::bench::*;
use arctic_test_support::vfs::world::{REMOTE, Time, Trap};
use arctic_test_support::{actions, ct};

/// The context that stores in a loop.
const CONTEXT: u32 = 5;
/// The context that reads memory of a blocked client.
const BLOCKED_CONTEXT: u32 = 6;
/// Address of the page whose translation changes.
const ADDRESS: u64 = 0x5000;
/// Offset of its entry, in the last level of the page tables.
const ENTRY: u64 = at::TABLES + 3 * 0x1000 + (ADDRESS >> 12) * 8;
/// Offsets in local memory of the two pages to which it is mapped in turn.
const PAGES: [u64; 2] = [at::DATA + 0x5000, at::DATA + 0x8_5000];
/// Value that contexts store.
const STORED: u32 = 0xbad;
/// Value that no context stores.
const INITIAL: u32 = 7;

/// Guest memory of a blocked client: reads block until they are released and then return zeros, and writes are dropped.
#[derive(Default)]
struct BlockedReads {
    state: Mutex<ReadState>,
    released: Condvar,
}

#[derive(Default)]
struct ReadState {
    /// A read has begun.
    entered: bool,
    /// Reads do not block any more.
    released: bool,
}

impl BlockedReads {
    fn entered(&self) -> bool {
        self.state.lock().unwrap().entered
    }

    fn release(&self) {
        self.state.lock().unwrap().released = true;
        self.released.notify_all();
    }
}

impl Trap for BlockedReads {
    fn claims(&self, iova: u64) -> bool {
        (REMOTE.0..REMOTE.0 + REMOTE.1).contains(&iova)
    }

    fn read(&self, _: u64, data: &mut [u8]) -> Result<(), DmaFault> {
        let mut state = self.state.lock().unwrap();
        state.entered = true;
        drop(self.released.wait_while(state, |state| !state.released).unwrap());
        data.fill(0);
        Ok(())
    }

    fn write(&self, _: u64, _: &[u8]) -> Result<(), DmaFault> {
        Ok(())
    }
}

/// Releases the reads when a test ends, also by a panic: the card's threads could not be joined otherwise.
struct ReleaseOnDrop(Arc<BlockedReads>);

impl Drop for ReleaseOnDrop {
    fn drop(&mut self) {
        self.0.release();
    }
}

/// A card with three workers, one of which executes a step of VF 2 that reads memory of a blocked client and stores what
/// it has read, zero, over [`INITIAL`] at [`at::SCRATCH`].
struct Blocked {
    card: Arc<Card>,
    one: Vf,
    two: Vf,
    three: Vf,
    reads: Arc<BlockedReads>,
    // Before `workers`, whose threads are joined when they are dropped.
    _release: ReleaseOnDrop,
    workers: Workers,
}

impl Blocked {
    fn new() -> Self {
        let mut bench = VfBench::with(true, Some(QUOTA), Time::real());
        bench.victims.iter_mut().for_each(Vf::up);
        bench.attacker.up();
        let reads = Arc::new(BlockedReads::default());
        bench.guests.of(ATTACKER).set_trap(reads.clone());
        let card = bench.card.clone();
        let workers = Workers::start(card.clone(), 3, "").unwrap();
        let [one, three] = bench.victims;
        let two = bench.attacker;
        let mut blocked = Self { card, one, two, three, _release: ReleaseOnDrop(reads.clone()), reads, workers };
        blocked.two.poke(at::SCRATCH, INITIAL);
        let slow = mi::copy_mem_mem(blocked.two.global(at::SCRATCH), blocked.two.global(at::REMOTE));
        blocked.two.submit(BLOCKED_CONTEXT, EngineClass::Copy, &slow);
        eventually("the blocked step", || blocked.reads.entered());
        blocked
    }

    /// Lets VF 1 store in a loop.
    fn start_stores_of_one(&mut self) {
        store_forever(&mut self.one, EngineClass::Compute, std::iter::repeat_n(ADDRESS, 64));
        eventually("stores of VF 1", || self.one.peek(PAGES[0]) == STORED);
    }
}

/// Submits an endless batch of stores to `addresses`.
fn store_forever(vf: &mut Vf, class: EngineClass, addresses: impl Iterator<Item = u64>) {
    let again = vf.jump(CONTEXT);
    let mut batch: Vec<u32> = addresses.flat_map(|at| mi::store_data_imm(Process(at), STORED)).collect();
    batch.extend(again);
    vf.write_words(Vf::batch(CONTEXT), &batch);
    vf.submit(CONTEXT, class, &again);
}

/// Sends TLB_INVALIDATION for all pages.
fn invalidate(vf: &mut Vf, seqno: u32) {
    vf.request(actions::TLB_INVALIDATION, &[seqno, actions::INVALIDATE_FLUSH]);
}

/// Returns whether the response has arrived; consumes and drops other messages.
fn answered(vf: &mut Vf, seqno: u32) -> bool {
    std::iter::from_fn(|| vf.take()).any(|message| message[1..] == [actions::TLB_INVALIDATION_DONE, seqno])
}

fn fills(card: &Card, class: EngineClass) -> u64 {
    card.engines().lock(XE_HPG_ENGINES.find(class, 0).unwrap()).tlb_fills()
}

#[test]
fn tlb_invalidation_waits_only_for_steps_of_its_function() {
    proves!(
        V13_041,
        "VF 2's step is blocked in an access to its guest memory, and VF 3 stores in a loop. VF 1, which also \
        stores in a loop, changes a page table entry and invalidates, again and again. Each invalidation completes \
        although VF 2's step does not end, VF 1's engine does not use the old page afterwards, and VF 3's TLB keeps \
        its contents. An invalidation of VF 2 waits for its step (contract C.5, E.3)"
    );
    let mut blocked = Blocked::new();
    let three = &mut blocked.three;
    let pages = (0..32).map(|page| three.base() + at::SCRATCH + page * 0x1000).collect::<Vec<_>>();
    store_forever(three, EngineClass::VideoDecode, pages.iter().copied());
    eventually("stores of VF 3", || three.peek(at::SCRATCH + 31 * 0x1000) == STORED);
    blocked.start_stores_of_one();

    let Blocked { card, one, two, three, reads, .. } = &mut blocked;
    let filled = fills(card, EngineClass::VideoDecode);
    for seqno in 1..200u32 {
        let [new, old] = [seqno, seqno + 1].map(|n| PAGES[n as usize % 2]);
        one.poke64(ENTRY, new | LOCAL_PAGE);
        one.poke(new, 0);
        invalidate(one, seqno);
        eventually("the response to VF 1", || answered(one, seqno));
        one.poke(old, INITIAL);
        eventually("stores to the new page", || one.peek(new) == STORED);
        assert_eq!(one.peek(old), INITIAL, "invalidation {seqno}: the old page was written");
    }
    assert_eq!(fills(card, EngineClass::VideoDecode), filled, "VF 3's translations were dropped");
    card.gt().memory.invalidate(three.function.bit());
    eventually("VF 3's translations", || fills(card, EngineClass::VideoDecode) >= filled + 32);

    invalidate(two, 1);
    eventually("the GuC takes VF 2's request", || two.peek(ct::HEAD) == two.peek(ct::TAIL));
    assert!(!answered(two, 1), "the response does not wait for VF 2's step");
    reads.release();
    eventually("the response to VF 2", || answered(two, 1));
    assert_eq!(two.peek(at::SCRATCH), 0, "the response precedes the end of VF 2's step");
    drop(blocked.workers);
    assert_eq!(blocked.card.panics(), 0);
}

#[test]
fn flr_does_not_wait_for_steps_of_other_functions() {
    proves!(
        V13_116,
        "VF 2's step is blocked in an access to its guest memory. An FLR of VF 1, which stores in a loop, completes \
        although VF 2's step does not end, and VF 2's step completes afterwards"
    );
    let mut blocked = Blocked::new();
    blocked.start_stores_of_one();
    let Blocked { card, two, reads, .. } = &mut blocked;
    let reset = thread::spawn({
        let card = card.clone();
        move || card.reset_function(VICTIMS[0])
    });
    eventually("the reset of VF 1", || reset.is_finished());
    reset.join().unwrap();
    assert_eq!(two.peek(at::SCRATCH), INITIAL, "VF 2's step has ended");
    reads.release();
    eventually("the end of VF 2's step", || two.peek(at::SCRATCH) == 0);
    drop(blocked.workers);
    assert_eq!(blocked.card.panics(), 0);
}
