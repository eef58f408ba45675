// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The observation unit among the units of the card: who writes reports, and resets in a backlog.

use super::*;
use crate::topology::{EngineClass, UnitId};

const CONTROL: u64 = 0xdaf4;
const TAIL: u64 = 0xdb04;
const STATUS: u64 = 0xdafc;
/// GGTT address of the buffer of 128 KiB.
const BASE: u32 = 0x40_0000;
/// OAG is enabled, with the format of 256 bytes.
const ENABLED: u32 = 5 << 2 | 1;

fn write(card: &Card, register: u64, value: u32) {
    card.write_gttmmadr(Function::PF, register, &value.to_le_bytes());
}

/// Maps the buffer with these entries' low bits, and enables OAG with a timer of this exponent.
fn observe(card: &Card, flags: u64, exponent: u32) {
    for page in 0..32 {
        let entry = (16 + page) << 12 | flags;
        card.gt().memory.ggtt().set_entry(u64::from(BASE >> 12) + page, GgttEntry::from(entry));
    }
    let registers =
        [(0xdaf8, 0x0024_0024), (0xdb00, BASE), (0xdb08, BASE | 1), (TAIL, BASE), (0x2b28, 3 | exponent << 2)];
    registers.into_iter().for_each(|(register, value)| write(card, register, value));
    write(card, CONTROL, ENABLED);
}

fn advance(card: &Card, clock: &ManualClock, ticks: u64) {
    clock.advance(card.gt().generation.observation.timebase.nanoseconds(ticks));
}

fn tail(card: &Card) -> u32 {
    read(card, Function::PF, TAIL).wrapping_sub(BASE)
}

/// A card with a clock that the test advances.
fn clocked(guests: Arc<dyn Dma>) -> (Arc<Card>, Arc<ManualClock>) {
    let profile: CardProfile = toml::from_str(include_str!("../../../configs/small.toml")).unwrap();
    let region = |len| SharedRegion::anonymous(len).unwrap();
    let vfs = vec![VfMemory { local: sparse(64 << 20), ggtt: None }];
    let memories = Memories { local: region(profile.local_memory as usize), ggtt: region(GGTT_BYTES), vfs };
    let clock = Arc::new(ManualClock::default());
    (Card::power_on(&profile, memories, guests, Arc::new(Msis::default()), clock.clone()), clock)
}

fn settle(card: &Card) {
    while card.step() == WorkStatus::Busy {}
}

/// A worker writes what the timer makes due, and sleeps until the next instant, at least 1 ms.
#[test]
fn workers_write_reports() {
    let (card, clock) = clocked(Arc::new(NullHost));
    settle(&card);
    observe(&card, 3, 5);
    advance(&card, &clock, 64 * 10);
    assert_eq!(tail(&card), 0);
    settle(&card);
    assert_eq!(tail(&card), 2560);
    let now = clock.now();
    assert!(matches!(card.step(), WorkStatus::Idle(Some(next)) if next <= now + 1_000_000 && next > now));
    write(&card, CONTROL, 5 << 2);
    assert_eq!(read(&card, Function::PF, CONTROL), 5 << 2);
    advance(&card, &clock, 64 * 100);
    settle(&card);
    assert_eq!(tail(&card), 2560);
}

/// The client that writes the register must not be asked for memory meanwhile: a worker writes the reports, and the register
/// reads as enabled until it has.
#[test]
fn an_access_of_a_client_with_messages_leaves_reports_to_a_worker() {
    let (card, clock) = clocked(Arc::new(ClientMemory));
    settle(&card);
    observe(&card, 3, 5);
    advance(&card, &clock, 64 * 10);
    write(&card, 0xdb1c, 7);
    write(&card, CONTROL, 5 << 2);
    assert_eq!((tail(&card), read(&card, Function::PF, CONTROL)), (0, ENABLED));
    settle(&card);
    assert_eq!((tail(&card), read(&card, Function::PF, CONTROL)), (11 * 256, 5 << 2));
}

/// A buffer in memory of a client that does not answer: its reports are lost, and everything else goes on.
#[test]
fn a_client_that_does_not_answer_loses_its_reports() {
    let (card, clock) = clocked(Arc::new(ClientMemory));
    settle(&card);
    observe(&card, 1, 0);
    advance(&card, &clock, 10_000);
    settle(&card);
    assert_eq!(read(&card, Function::PF, STATUS) & 1, 1);
    assert_eq!(card.panics(), 0);
    write(&card, CONTROL, 0);
    settle(&card);
    assert_eq!(read(&card, Function::PF, CONTROL), 0);
}

/// FLR of the PF and a reset of the GT in a backlog: nothing is written afterwards. The reset of an engine changes nothing.
#[test]
fn resets_end_a_backlog() {
    for reset in [None, Some(1_u32)] {
        let (card, clock) = clocked(Arc::new(NullHost));
        settle(&card);
        observe(&card, 3, 5);
        advance(&card, &clock, 64 * 400);
        write(&card, 0x941c, 1 << 2);
        assert_eq!(read(&card, Function::PF, CONTROL), ENABLED, "reset of the copy engine");
        match reset {
            None => card.reset_card(),
            Some(domains) => write(&card, 0x941c, domains),
        }
        assert_eq!([CONTROL, TAIL, 0xdb08, 0x2b28].map(|register| read(&card, Function::PF, register)), [0; 4]);
        advance(&card, &clock, 64 * 400);
        settle(&card);
        assert_eq!(card.gt().observation.counts().0, 0);
        // A new stream begins empty.
        observe(&card, 3, 5);
        advance(&card, &clock, 64 * 3);
        settle(&card);
        assert_eq!(tail(&card), 768);
    }
}

/// The PF gives the pages of its buffer to a VF and takes them back, while reports are due; the VF is reset.
#[test]
fn provisioning_and_flr_in_a_backlog() {
    let (card, clock) = clocked(Arc::new(NullHost));
    card.provision(&[QUOTA]).unwrap();
    settle(&card);
    observe(&card, 3, 6);
    for round in 0..8_u64 {
        advance(&card, &clock, 128 * 350);
        for page in 0..32 {
            let owner = if round % 2 == 0 { 1 << 2 } else { 0 };
            let entry = GgttEntry::from((16 + page) << 12 | owner | 3);
            card.gt().memory.ggtt().set_entry(u64::from(BASE >> 12) + page, entry);
        }
        if round % 3 == 0 {
            card.reset_function(VF1);
        }
        card.step();
    }
    settle(&card);
    assert_eq!((card.panics(), tail(&card)), (0, 8 * 350 * 256 % (128 << 10)));
}

/// The unit is one of the list, so a worker steps it and whatever waits for steps waits for it.
#[test]
fn the_unit_is_on_the_list() {
    let (card, _) = clocked(Arc::new(NullHost));
    let position = |unit| card.units.iter().position(|other| other.id() == unit);
    let observation = position(UnitId::Observation).unwrap();
    let engine = card.gt().generation.engines.find(EngineClass::Render, 0).unwrap();
    assert!(observation > position(UnitId::Engine(engine)).unwrap(), "an engine's step may wait for it");
    assert!(observation < position(UnitId::Cluster(0)).unwrap());
}

/// A panic in a step leaves OAG disabled.
#[test]
fn oag_is_disabled_after_a_panic() {
    let (card, clock) = clocked(Arc::new(NullHost));
    settle(&card);
    observe(&card, 3, 5);
    advance(&card, &clock, 64 * 10);
    card.guarded(|| {
        let _step = card.gt().observation.writer.lock();
        panic!("a bug in a step");
    });
    assert_eq!((read(&card, Function::PF, CONTROL), card.panics()), (0, 1));
    assert!(!card.unit_locks().any(StepLock::is_poisoned));
    settle(&card);
    assert_eq!(card.gt().observation.counts().0, 0);
}
