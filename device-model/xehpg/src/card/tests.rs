// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of GTTMMADR accesses by functions: registers, doorbell windows and VF resets.
#![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

mod inspect;
mod observation;
mod parallel;
mod status;
mod units;

use crate::gpu::{Gpu, Status, VirtualFunctions};
use std::time::Duration;

use arctic_fidelity::proves;
use vm_memory::Bytes;

use super::*;
use crate::doorbell::{ACK, PAGE_BYTES, SEND_TO_CORE, WINDOW};
use crate::gpu::WorkStatus;
use crate::host::{Access, DmaView, ManualClock, NullHost};
use crate::memory::VfMemory;
use crate::memory::ggtt::GgttEntry;
use crate::memory::region::SharedRegion;
use crate::memory::tests::sparse;
use crate::profile::provision::Quota;
use crate::trace::{EventKind, Filter};

const VF1: Function = Function::new(1).unwrap();
const VF2: Function = Function::new(2).unwrap();
const DOORBELL_CTRL: u64 = 0xc5c0;

#[derive(Default)]
struct Msis(AtomicU64);

impl InterruptSink for Msis {
    fn raise(&self, function: Function, _: u16) {
        assert_eq!(function, Function::PF);
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn set_line(&self, _: Function, _: bool) {}
}

/// Powers on the card described by a file in `configs`, with the VF memories given and a clock that does not advance.
fn power_on(file: &str, vfs: Vec<VfMemory>, guests: Arc<dyn Dma>, msis: Arc<Msis>) -> Arc<Card> {
    let profile: CardProfile = toml::from_str(file).unwrap();
    let region = |len| SharedRegion::anonymous(len).unwrap();
    let memories = Memories { local: region(profile.local_memory as usize), ggtt: region(GGTT_BYTES), vfs };
    Card::power_on(&profile, memories, guests, msis, Arc::new(ManualClock::default()))
}

fn card() -> (Arc<Card>, Arc<Msis>) {
    let msis = Arc::new(Msis::default());
    let file = include_str!("../../configs/flex170.toml");
    (power_on(file, Vec::new(), Arc::new(NullHost), msis.clone()), msis)
}

/// Guest memory that must be requested from each function's client. Every request fails.
struct ClientMemory;

impl DmaView for ClientMemory {
    fn slice(&self, _: u64, _: usize, _: Access) -> Option<vm_memory::VolatileSlice<'_>> {
        None
    }

    fn may_wait_for_client(&self) -> bool {
        true
    }
}

impl Dma for ClientMemory {
    fn view(&self, _: Function) -> Arc<dyn DmaView> {
        Arc::new(ClientMemory)
    }
}

/// A small card with one VF that has 2 MiB of local memory. Guest memory must be requested from the client.
fn with_client_memory() -> Arc<Card> {
    let vfs = vec![VfMemory { local: sparse(64 << 20), ggtt: None }];
    power_on(include_str!("../../configs/small.toml"), vfs, Arc::new(ClientMemory), Arc::new(Msis::default()))
}

const QUOTA: Quota = Quota {
    ggtt: 2 << 20,
    local_memory: 2 << 20,
    contexts: 16,
    doorbells: 4,
    exec_quantum_ms: 0,
    preempt_timeout_us: 0,
};

/// A transfer of the GuC's DMA engine from the start of the GGTT, of which the first page has this entry, to SRAM.
struct Transfer<'c>(&'c Card);

impl<'c> Transfer<'c> {
    const CONTROL: u64 = 0xc314;

    fn from(card: &'c Card, entry: u64) -> Transfer<'c> {
        card.gt.memory.ggtt().set_entry(0, GgttEntry::from(entry));
        card.gt.memory.invalidate(ALL_FUNCTIONS);
        let transfer = Transfer(card);
        // The address spaces of source and target are in bits 20:16 of the high dwords.
        for (offset, value) in [(0xc300, 0), (0xc304, 8 << 16), (0xc308, 0), (0xc30c, 6 << 16), (0xc310, 64)] {
            transfer.write(offset, value);
        }
        transfer
    }

    fn write(&self, offset: u64, value: u32) {
        self.0.write_gttmmadr(Function::PF, offset, &value.to_le_bytes());
    }

    fn start(&self) {
        self.write(Self::CONTROL, 0x0001_0001);
    }

    fn goes_on(&self) -> bool {
        read(self.0, Function::PF, Self::CONTROL) & 1 == 1
    }
}

/// Entries of the GGTT: a page of local memory, and one of guest memory.
const LOCAL_PAGE: u64 = 3;
const GUEST_PAGE: u64 = 0x10_0001;

/// Requests that need guest memory from the client are not executed on the thread of the register write. A reset of engines
/// executes them first; a reset of the card drops them.
#[test]
fn work_that_waits_for_the_client_runs_on_a_worker() {
    let card = with_client_memory();
    let transfer = Transfer::from(&card, GUEST_PAGE);
    transfer.start();
    assert!(transfer.goes_on());
    card.step();
    assert!(!transfer.goes_on());
    transfer.start();
    transfer.write(0x941c, 1 << 2);
    assert!(!transfer.goes_on(), "executed before the reset");
    transfer.start();
    card.reset_card();
    assert!(!card.deferred.next(|request| panic!("{request:?} executed after the reset")));
}

/// A transfer in local memory needs no message to the client, and is complete when the register write is: drivers wait for 100 ms
/// only. It is left to a worker if the GuC is busy, and behind requests before it.
#[test]
fn transfers_in_local_memory_are_complete_with_the_register_write() {
    let card = with_client_memory();
    let transfer = Transfer::from(&card, LOCAL_PAGE);
    transfer.start();
    assert!(!transfer.goes_on());
    {
        let _busy = card.guc();
        transfer.start();
        assert!(transfer.goes_on());
    }
    transfer.start();
    assert!(transfer.goes_on(), "the one before is not executed yet");
    while card.carry_out_deferred() {}
    assert!(!transfer.goes_on());
}

/// A TLB invalidation waits for the steps of the engines, which may wait for the client that writes the register. If they do
/// not end soon, it is executed by a worker, and the register reads as busy until then; a reset drops it.
#[test]
fn a_tlb_invalidation_that_waits_for_the_client_is_left_to_a_worker() {
    const GUC_TLB_INV_CR: u64 = 0xcee8;
    let card = with_client_memory();
    let busy = || read(&card, Function::PF, GUC_TLB_INV_CR);
    let invalidate = || card.write_gttmmadr(Function::PF, GUC_TLB_INV_CR, &1_u32.to_le_bytes());
    {
        // A step that is in progress.
        let _step = card.engines.lock(card.engines.present().next().unwrap());
        invalidate();
        invalidate();
        assert_eq!(busy(), 1);
    }
    while card.step() == WorkStatus::Busy {}
    assert_eq!(busy(), 0);
    invalidate();
    assert_eq!(busy(), 0, "no step is in progress");
    {
        let _step = card.engines.lock(card.engines.present().next().unwrap());
        invalidate();
    }
    assert_eq!(busy(), 1);
    card.reset_card();
    assert_eq!(busy(), 0);
}

/// A mailbox request of a function with memory that is accessed by messages.
struct Mailbox<'c>(&'c Card);

impl Mailbox<'_> {
    const AT: u64 = 0x19_0240;
    const SUCCESS: u32 = 0xf000_0000;

    fn request(&self, words: [u32; 4]) -> u32 {
        for (n, word) in (0..).zip(words) {
            self.0.write_gttmmadr(VF1, Self::AT + 4 * n, &word.to_le_bytes());
        }
        self.0.post_guc_notification(VF1);
        self.reply()
    }

    fn reply(&self) -> u32 {
        read(self.0, VF1, Self::AT)
    }
}

fn provisioned() -> Arc<Card> {
    let card = with_client_memory();
    card.provision(&[QUOTA]).unwrap();
    card.enable_vfs(1);
    while card.step() == WorkStatus::Busy {}
    card
}

/// A mailbox request is answered before the notification is complete: the driver waits for 50 ms only. It is left to the GuC's
/// step if it may wait for steps of engines, or if the GuC is busy: each may wait for the client that notifies.
#[test]
fn mailbox_requests_are_answered_at_once() {
    const MATCH_VERSION: u32 = 0x5500;
    const VF_RESET: u32 = 0x5507;
    let card = provisioned();
    let mailbox = Mailbox(&card);
    assert_eq!(mailbox.request([MATCH_VERSION, 0, 0, 0]), Mailbox::SUCCESS);
    assert_eq!(mailbox.request([VF_RESET, 0, 0, 0]), VF_RESET);
    card.step();
    assert_eq!(mailbox.reply(), Mailbox::SUCCESS);
    let busy = card.guc();
    assert_eq!(mailbox.request([MATCH_VERSION, 0, 0, 0]), MATCH_VERSION);
    drop(busy);
    card.step();
    assert_eq!(mailbox.reply(), Mailbox::SUCCESS);
}

/// A step that was requested before does not execute a request of which the driver has written the header alone: it has not
/// notified the GuC.
#[test]
fn a_request_is_not_executed_before_its_notification() {
    const QUERY: u32 = 0x5509;
    let card = provisioned();
    let mailbox = Mailbox(&card);
    assert_eq!(mailbox.request([0x5500, 0, 0, 0]), Mailbox::SUCCESS);
    // As that of the last notification, which is only now executed.
    card.write_gttmmadr(VF1, Mailbox::AT, &QUERY.to_le_bytes());
    card.step();
    assert_eq!(mailbox.reply(), QUERY);
}

/// A request with an access that is a message to the client is no error: it is executed by the GuC's step.
#[test]
fn mailbox_requests_that_need_messages_are_left_to_a_worker() {
    const SELF_CFG: u32 = 0x0508;
    const CONTROL_CTB: u32 = 0x4509;
    let card = provisioned();
    let mailbox = Mailbox(&card);
    let (first, _) = card.function_state(VF1).ggtt().next().unwrap();
    for page in first..first + 3 {
        card.gt.memory.ggtt().set_entry(page, GgttEntry::from(0x10_0000 | u64::from(VF1.number()) << 2 | 1));
    }
    let at = (first as u32) << 12;
    for (key, len, value) in [
        (0x0902, 2, at + 0x1000),
        (0x0903, 2, at),
        (0x0904, 1, 0x1000),
        (0x0905, 2, at + 0x2000),
        (0x0906, 2, at + 0x40),
        (0x0907, 1, 0x1000),
    ] {
        assert_eq!(mailbox.request([SELF_CFG, key << 16 | len, value, 0]), Mailbox::SUCCESS | 1, "{key:#x}");
    }
    assert_eq!(mailbox.request([CONTROL_CTB, 1, 0, 0]), CONTROL_CTB);
    card.step();
    assert_eq!(mailbox.reply() >> 28, 0xe, "the client refuses the access");
}

/// A step delays other functions that wait for the GuC's lock, a GuC step, an engine's lock, or an engine for their
/// contexts. A step does not count as a delay of its own function.
#[test]
fn step_delays_functions_that_wait_for_its_locks() {
    proves!(V13_208, "an interrupt of the host is noted for the GuC, and cleared when the GuC begins to serve it");
    let (card, _) = card();
    let engine = card.engines.present().next().unwrap();
    let held_up = || [Function::PF, VF1].map(|function| card.delays_others(function));
    assert_eq!(held_up(), [false; 2]);
    card.guc_pending.notify(VF1.bit());
    assert_eq!(held_up(), [true, false], "VF 1 has rung");
    card.guc_pending.take_notified();
    assert_eq!(held_up(), [false; 2], "a step has begun");
    card.guc_pending.call(VF1.bit());
    assert_eq!(held_up(), [true, false], "an engine has reported for VF 1");
    card.guc_pending.call(u64::MAX);
    assert_eq!(held_up(), [true; 2]);
    card.guc_pending.due(0);
    card.guc_pending.take_notified();
    card.guc.contention.set_queued(VF1.bit());
    assert_eq!(held_up(), [true, false]);
    card.step();
    assert_eq!(held_up(), [true, false], "unchanged until a GuC step");
    card.kick_guc(Function::PF.bit());
    card.step();
    assert_eq!(held_up(), [false; 2]);
    let eventually = |expected: [bool; 2]| {
        let begun = std::time::Instant::now();
        while held_up() != expected {
            assert!(begun.elapsed() < Duration::from_secs(10), "a thread waits for a lock");
            std::thread::yield_now();
        }
    };
    let card = &card;
    std::thread::scope(|scope| {
        for (of, expected) in [(None, [true; 2]), (Some(VF1), [true, false]), (Some(Function::PF), [false, true])] {
            let guc = card.guc();
            let waits = scope.spawn(move || drop(of.map_or_else(|| card.guc(), |function| card.guc_for(function))));
            eventually(expected);
            drop(guc);
            waits.join().unwrap();
            assert_eq!(held_up(), [false; 2]);
        }
        let locked = card.engines.lock(engine);
        let waits = scope.spawn(|| drop(card.engines.lock(engine)));
        eventually([true; 2]);
        drop(locked);
        waits.join().unwrap();
        assert_eq!(held_up(), [false; 2]);
    });
    card.engines.set_runnable(engine, true);
    assert_eq!(held_up(), [true; 2], "no worker is available for it");
    let _step = card.engines.lock(engine);
    assert_eq!(held_up(), [false; 2], "the engine is in its own step");
}

/// While the memory of a VF is cleared in an FLR without a PF driver, no lock of the GuC or an engine is held.
#[test]
fn memory_is_cleared_without_a_lock() {
    let card = with_client_memory();
    card.provision(&[QUOTA]).unwrap();
    card.enable_vfs(1);
    while card.step() == WorkStatus::Busy {}
    card.gt().memory.write_bar(VF1, 0, &[1]);
    std::thread::scope(|scope| {
        let alone = card.gt().memory.storage().alone();
        let reset = scope.spawn(|| card.reset_function(VF1));
        // The reset requests a GuC step before it clears the memory.
        while !card.guc_pending.due(0) {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_millis(50));
        for _ in 0..20 {
            assert!(card.guc.end_step_soon(), "the GuC's lock is held");
            assert!(card.engines.present().all(|id| card.engines.try_lock(id).is_some()), "an engine's lock is held");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(!reset.is_finished());
        drop(alone);
        reset.join().unwrap();
    });
    assert_eq!(card.gt().memory.stored_by(VF1), 0);
}

/// On a card with worker threads, an FLR led by the PF does not wait until the VF's memory has been emptied.
#[test]
fn flr_does_not_wait_until_memory_is_emptied() {
    let card = with_client_memory();
    let _ = card.scrubber.set(Scrubber { thread: std::thread::current(), names: String::new() });
    card.provision(&[QUOTA]).unwrap();
    let memory = &card.gt().memory;
    memory.write_bar(VF1, 0, &[1]);
    let alone = memory.storage().alone();
    assert!(memory.begin_emptying(VF1));
    card.empty_and_announce(VF1.bit());
    assert!(memory.is_emptying(VF1), "it must wait for the storage lock");
    drop(alone);
    let threads = std::mem::take(&mut *card.threads());
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!((memory.stored_by(VF1), memory.is_emptying(VF1)), (0, false));
}

/// A card with worker threads returns memory to the host only on the scrubber thread.
#[test]
fn scrubbing_is_left_to_the_scrubber_thread() {
    let card = with_client_memory();
    let _ = card.scrubber.set(Scrubber { thread: std::thread::current(), names: String::new() });
    card.provision(&[QUOTA]).unwrap();
    card.gt().memory.storage().region(VF1).unwrap().slice(5 << 20, 1).unwrap().write_slice(&[1], 0).unwrap();
    while card.step() == WorkStatus::Busy {}
    assert_eq!(card.gt().memory.stored_by(VF1), 4096);
    assert!(card.gt().memory.untidy());
    while card.gt().memory.scrub() {}
    assert_eq!(card.gt().memory.stored_by(VF1), 0);
}

fn page(number: u64) -> Page {
    Page::at(WINDOW + number * PAGE_BYTES).unwrap()
}

fn read(card: &Card, function: Function, offset: u64) -> u32 {
    let mut data = [0; 4];
    card.read_gttmmadr(function, offset, &mut data);
    u32::from_le_bytes(data)
}

fn rings(card: &Card, function: Function) -> (u64, u64) {
    let rings = card.gt().doorbells.rings(function);
    (rings.rung, rings.missed)
}

#[test]
fn the_window_never_aliases_registers() {
    proves!(V13_007, "a write in 0x400000..0x800000 reaches no register, including those that its offset would alias");
    let (card, _) = card();
    let registers = &card.gt().registers;
    let snapshot = || registers.listing().map(|(at, _)| registers.value(at)).collect::<Vec<_>>();
    let before = snapshot();
    for (at, _) in registers.listing() {
        for value in [!0u32, 1, 0x0001_0001] {
            card.write_gttmmadr(Function::PF, WINDOW + u64::from(at), &value.to_le_bytes());
        }
        assert_eq!(read(&card, Function::PF, WINDOW + u64::from(at)), NACK);
    }
    assert!(snapshot() == before);
    assert!(registers.unmodelled().is_empty());
    assert_eq!(card.step(), WorkStatus::Idle(None), "no GuC step was requested");
    assert_eq!(rings(&card, Function::PF).0, 0);
}

#[test]
fn any_access_of_a_page_rings_it() {
    proves!(
        V13_091,
        "an access to any byte of an armed page, of any width and value, rings its doorbell; a read returns whether \
        one is armed. Accesses to adjacent pages, and to the barrier page that xe maps to user space, do not ring \
        it"
    );
    let (card, _) = card();
    card.gt().doorbells.arm(0, Function::PF, page(5)).unwrap();
    let bytes = [0; 8];
    for (n, (at, len)) in [(0, 4), (0, 8), (0xff8, 8), (0xfff, 1), (0x123, 2), (0x800, 4)].into_iter().enumerate() {
        card.write_gttmmadr(Function::PF, page(5).offset() + at, &bytes[..len]);
        assert_eq!(rings(&card, Function::PF), (n as u64 + 1, 0));
    }
    assert_eq!(read(&card, Function::PF, page(5).offset() + 0x10), ACK);
    assert_eq!(rings(&card, Function::PF), (7, 0));
    for beside in [page(4).offset(), page(6).offset(), 0x7f_f000] {
        card.write_gttmmadr(Function::PF, beside, &7u32.to_le_bytes());
        assert_eq!(read(&card, Function::PF, beside), NACK);
    }
    assert_eq!(rings(&card, Function::PF), (7, 6));
    let mut odd = [0; 3];
    card.read_gttmmadr(Function::PF, 0x7f_f001, &mut odd);
    assert_eq!(odd, [0xbe, 0xad, 0xde]);
}

#[test]
fn windows_of_functions_are_apart() {
    proves!(
        [V13_016, V13_092, V13_094, V13_119, V13_127],
        "page 0 of VF 1 and page 0 of VF 2 are different doorbells. A disabled VF cannot ring a doorbell, and an \
        FLR of a VF disarms only the VF's doorbells. Clearing VF Enable does so for every VF"
    );
    let (card, _) = card();
    card.gt().doorbells.arm(1, VF1, page(0)).unwrap();
    card.gt().doorbells.arm(2, VF2, page(0)).unwrap();
    assert_eq!(read(&card, VF1, page(0).offset()), !0, "no VF is enabled");
    card.write_gttmmadr(VF1, page(0).offset(), &[0; 4]);
    assert_eq!(rings(&card, VF1), (0, 0));
    card.enable_vfs(2);
    assert_eq!(read(&card, VF2, page(0).offset()), ACK);
    card.write_gttmmadr(VF1, page(0).offset(), &[0; 4]);
    assert_eq!((rings(&card, VF1), rings(&card, VF2)), ((1, 0), (1, 0)));
    card.reset_function(VF1);
    assert_eq!((read(&card, VF1, page(0).offset()), read(&card, VF2, page(0).offset())), (NACK, ACK));
    card.disable_vfs();
    assert_eq!(card.gt().doorbells.watched(2), None);
}

#[test]
fn rings_go_where_they_are_routed() {
    proves!(
        V13_099,
        "doorbells interrupt the host until software routes them to the GuC. After that, only the first ring of a \
        group wakes the GuC, also if the ring arrives as an event (trap 13)"
    );
    let (card, msis) = card();
    let write = |offset, value: u32| card.write_gttmmadr(Function::PF, offset, &value.to_le_bytes());
    write(0x19_0038, !0);
    write(0x19_00e8, 0);
    write(0x19_0008, 1 << 31);
    card.gt().doorbells.arm(1, Function::PF, page(1)).unwrap();
    write(page(1).offset(), 0);
    assert_eq!((msis.0.load(Ordering::SeqCst), card.step()), (1, WorkStatus::Idle(None)));
    assert_eq!(read(&card, Function::PF, DOORBELL_CTRL), 1);
    write(DOORBELL_CTRL, SEND_TO_CORE);
    assert_eq!(
        (card.step(), card.step()),
        (WorkStatus::Busy, WorkStatus::Idle(None)),
        "the earlier ring must be served"
    );
    card.gt().doorbells.take_rung();
    assert!(card.ring_doorbell(Function::PF, page(1)));
    assert_eq!((card.step(), card.step()), (WorkStatus::Busy, WorkStatus::Idle(None)));
    assert!(card.ring_doorbell(Function::PF, page(1)));
    assert_eq!(card.step(), WorkStatus::Idle(None), "the GuC has not taken the first ring yet");
    assert_eq!(msis.0.load(Ordering::SeqCst), 1);
}

/// Trace events of rings have the doorbell, and say which sends a message.
#[test]
fn rings_are_traced() {
    let (card, _) = card();
    let trace = card.gt().trace.subscribe(Filter::default());
    card.gt().doorbells.arm(7, Function::PF, page(1)).unwrap();
    let rung: Vec<_> = [1, 1, 2].map(|number| card.ring_doorbell(Function::PF, page(number))).into();
    assert_eq!(rung, [true, true, false]);
    let events: Vec<_> = trace.take(Duration::ZERO).into_iter().map(|event| (event.function, event.what)).collect();
    let ring =
        |number, doorbell, notifies| (0, EventKind::Doorbell { page: page(number).offset(), doorbell, notifies });
    assert_eq!(events, [ring(1, Some(7), true), ring(1, Some(7), false), ring(2, None, false)]);
}

#[test]
fn virtualisation_page_has_no_registers() {
    proves!(V13_017, "the page reserved for virtualisation software contains no register, for any function");
    let (card, _) = card();
    card.enable_vfs(1);
    for function in [Function::PF, VF1] {
        for offset in (0x17_8000..0x17_9000).step_by(4) {
            card.write_gttmmadr(function, offset, &u32::MAX.to_le_bytes());
            assert_eq!(read(&card, function, offset), 0, "{function:?} {offset:#x}");
        }
    }
}

#[test]
fn vfs_enabled_again_are_in_reset_state() {
    proves!(
        [V13_113, V13_127],
        "VFs cease to exist when VF Enable is cleared. When it is set again, they are in their reset state"
    );
    const MAILBOX: u64 = 0x19_0240;
    const OWN_INTERRUPT_MASK: u64 = 0x19_00b0;
    let (card, _) = card();
    card.enable_vfs(2);
    for vf in [VF1, VF2] {
        card.write_gttmmadr(vf, MAILBOX + 4, &(0x100 + u32::from(vf.number())).to_le_bytes());
        assert_eq!(read(&card, vf, MAILBOX + 4), 0x100 + u32::from(vf.number()));
    }
    let mask = read(&card, VF1, OWN_INTERRUPT_MASK);
    card.write_gttmmadr(VF1, OWN_INTERRUPT_MASK, &(!mask).to_le_bytes());
    assert_ne!(read(&card, VF1, OWN_INTERRUPT_MASK), mask);
    card.disable_vfs();
    assert_eq!((card.enabled_vfs(), read(&card, VF1, MAILBOX + 4)), (0, u32::MAX));
    card.enable_vfs(2);
    for vf in [VF1, VF2] {
        assert_eq!(read(&card, vf, MAILBOX + 4), 0);
    }
    assert_eq!(read(&card, VF1, OWN_INTERRUPT_MASK), mask);
}

#[test]
fn an_flr_without_a_pf_driver_clears_ggtt_mappings() {
    proves!(
        V13_116,
        "an FLR clears the VF's GGTT mappings even while the GuC is in reset and no PF driver handles the FLR"
    );
    let profile: CardProfile = toml::from_str(include_str!("../../configs/small.toml")).unwrap();
    let region = |len| SharedRegion::anonymous(len).unwrap();
    let memories = Memories {
        local: region(profile.local_memory as usize),
        ggtt: region(GGTT_BYTES),
        vfs: vec![VfMemory { local: region(256 << 20), ggtt: Some(region(GGTT_BYTES)) }],
    };
    let (clock, msis) = (Arc::new(ManualClock::default()), Arc::new(Msis::default()));
    let card = Card::power_on(&profile, memories, Arc::new(NullHost), msis, clock);
    card.enable_vfs(1);
    let own = card.gt().memory.ggtt().table_of(VF1).expect("VF 1 has a separate GGTT");
    own.slice(8 * 5, 8).unwrap().write_slice(&[0x55; 8], 0).unwrap();
    card.reset_function(VF1);
    assert!(card.enabled(VF1));
    let mut left = [1; 8];
    own.slice(8 * 5, 8).unwrap().read_slice(&mut left, 0).unwrap();
    assert_eq!(left, [0; 8]);
}

#[test]
fn errors_are_unmasked_and_cleared_by_mmio() {
    proves!(
        [V8_087, V8_089],
        "the driver unmasks and clears an error by MMIO. The status page shows the error bit while the error is \
        set, and one interrupt is sent"
    );
    const PAGE: u64 = 0x5000;
    let (card, msis) = card();
    let gt = card.gt();
    let write = |offset: u64, value: u32| card.write_gttmmadr(Function::PF, offset, &value.to_le_bytes());
    let status = || gt.memory.local().slice(PAGE, 4).unwrap().load::<u32>(0, Ordering::Acquire).unwrap();
    gt.memory.ggtt().set_entry(0x10, GgttEntry::from(PAGE | 3));
    gt.memory.local().slice(PAGE, 4).unwrap().store(0x5a_u32, 0, Ordering::Release).unwrap();
    write(0x2_2080, 0x1_0000);
    write(0x2_2098, !(1 << 3));
    write(0x19_0030, u32::MAX);
    write(0x19_0008, 1 << 31);
    // The command privilege violation, as an engine reports it for a batch while EMR has its reset value.
    gt.registers.set(0x2_20b8, 4);
    write(0x2_20b4, !1);
    assert_eq!((status(), msis.0.load(Ordering::SeqCst), read(&card, Function::PF, 0x2_20b0)), (0x5a, 0, 0));
    write(0x2_20b4, !4);
    assert_eq!((status(), msis.0.load(Ordering::SeqCst), read(&card, Function::PF, 0x2_20b0)), (8, 1, 4));
    write(0x2_20b0, 4);
    assert_eq!((status(), msis.0.load(Ordering::SeqCst), read(&card, Function::PF, 0x2_20b8)), (0, 1, 0));
}

/// SRIOV storage: workers return released memory to the host, after the GuC's step and interleaved with engine steps.
#[test]
fn workers_scrub_memory() {
    let profile = crate::registers::tests::profile();
    let vfs = vec![VfMemory { local: sparse(64 << 20), ggtt: None }];
    let local = sparse(profile.local_memory as usize);
    let memories = Memories { local, ggtt: SharedRegion::anonymous(GGTT_BYTES).unwrap(), vfs };
    let clock = Arc::new(ManualClock::default());
    let card = Card::power_on(&profile, memories, Arc::new(NullHost), Arc::new(Msis::default()), clock);
    let local = card.gt().memory.local();
    local.slice(0, 64 << 20).unwrap().write_slice(&vec![1; 64 << 20], 0).unwrap();
    card.provision(&[Quota { local_memory: 64 << 20, ..QUOTA }]).unwrap();
    let bytes =
        || local.first_data(&(0..64 << 20)).map(|_| local.data(0..64 << 20).map(|run| run.end - run.start).sum());
    assert_eq!(bytes(), Some(64 << 20), "provisioning does not wait for scrubbing");
    let steps = (0..).take_while(|_| card.step() == WorkStatus::Busy).count();
    assert!((32..40).contains(&steps), "{steps} steps for 64 MiB");
    assert_eq!(bytes(), None::<u64>);
    // A reset of the card releases memory itself, because the VF may be reused before the workers run.
    card.gt().memory.write_bar(VF1, 5 << 20, &[1]);
    card.reset_card();
    assert_eq!(card.gt().memory.stored_by(VF1), 0);
}

#[test]
fn an_flr_resets_all_state_of_one_function() {
    proves!(
        [V13_116, V13_117, V13_118, V13_119, V13_120, V13_121, V13_122, V13_123, V13_124, V13_125],
        "all state of a function is reached in one place. An FLR resets what its driver has set up, keeps its \
        quotas, and changes nothing of another function"
    );
    const MAILBOX: u64 = 0x19_0244;
    const ENABLES: u32 = 0x19_0030;
    let (card, _) = card();
    card.provision(&[QUOTA, QUOTA]).unwrap();
    let shown = |vf| {
        let state = card.function_state(vf);
        let config = state.guc().expect("no firmware is running").config;
        assert_eq!(config.ggtt_size, QUOTA.ggtt);
        assert!(state.registers().is_some());
        assert_eq!(state.memory().quota(), QUOTA.local_memory);
        let doorbells: Vec<u8> = state.doorbells().map(|(index, ..)| index).collect();
        let frames: Vec<_> = state.frames().collect();
        let entries: Vec<_> = state.ggtt().filter(|(_, entry)| entry.address() != 0).collect();
        (doorbells, frames, entries, state.interrupts().enable_or_mask(ENABLES))
    };
    let fresh = [VF1, VF2].map(shown);
    assert!(fresh.iter().all(|(_, frames, ..)| frames.len() == 1 && frames[0].is_some()));
    assert_ne!(fresh[0].1, fresh[1].1, "a frame belongs to one function");
    for (vf, index) in [(VF1, 0), (VF2, 4)] {
        let first = card.function_state(vf).ggtt().next().unwrap().0;
        card.write_gttmmadr(vf, MAILBOX, &7u32.to_le_bytes());
        card.write_gttmmadr(vf, ENABLES.into(), &(!0u32).to_le_bytes());
        card.write_gttmmadr(vf, GGTT_WINDOW + first * 8, &0x7001u64.to_le_bytes());
        card.gt().doorbells.arm(index, vf, Page::at(page(0).offset()).unwrap()).unwrap();
    }
    let used = [VF1, VF2].map(shown);
    let entries = |of: &[(Vec<u8>, Vec<_>, Vec<_>, u32); 2]| of.each_ref().map(|(_, _, entries, _)| entries.len());
    assert_eq!((entries(&used), used[1].3), ([1, 1], !0));
    card.reset_function(VF1);
    assert_eq!([VF1, VF2].map(shown), [fresh[0].clone(), used[1].clone()]);
    assert_eq!([VF1, VF2].map(|vf| read(&card, vf, MAILBOX)), [0, 7]);
    card.reset_card();
    let state = card.function_state(VF2);
    assert_eq!((state.guc().is_none(), state.memory().quota()), (true, 0), "a reset of the card takes all");
    drop(state);
    assert_eq!(read(&card, VF2, MAILBOX), 0);
}
