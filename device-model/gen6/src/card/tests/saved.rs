// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of saved state: work that is saved at any point and restored on another card ends as if it had not been saved.

mod invalid;
mod registers;

use std::sync::atomic::{AtomicU32, Ordering};

use arctic_base::gpu::WorkStatus;
use arctic_base::host::{Clock, InterruptSink};

use super::*;
use crate::card::saved::SavedCard;
use crate::profile::IntegratedProfile;
use crate::profile::tests::{fused, snb};
use crate::topology::EngineId;

/// Addresses in the GGTT, which maps page n to page n of the guest; the PPGTT maps page n to page n + 16.
const RINGS: [(u32, u32); 3] = [(RCS, 0x1000), (BCS, 0x2000), (VCS, 0x5000)];
const STATUS: u32 = 0x3000;
const BATCH: u32 = 0x4000;
const DATA: u32 = 0x8000;
const CONTEXT: u32 = 0xa000;
const TABLE: u32 = 0xe000;
/// Offset of the PPGTT's pages in the guest.
const BEHIND: u32 = 0x1_0000;
const GUEST: usize = 0x2_0000;

const MASTER: u32 = 1 << 31;

/// The MSIs that a card has sent.
#[derive(Default)]
struct Messages(AtomicU32);

impl InterruptSink for Messages {
    fn raise(&self, _: Function, _: u16) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    fn set_line(&self, _: Function, _: bool) {}
}

/// A card in a machine.
struct Machine {
    profile: IntegratedProfile,
    guest: Guest,
    clock: Arc<ManualClock>,
    messages: Arc<Messages>,
    card: Arc<Card>,
}

impl Machine {
    fn new(profile: &IntegratedProfile) -> Machine {
        let (guest, clock, messages) = (Guest::new(0, GUEST), Arc::new(ManualClock::default()), Arc::default());
        let host =
            Host { memory: Arc::new(guest.clone()), interrupts: Arc::clone(&messages) as _, clock: clock.clone() };
        let card = Card::power_on(profile, host);
        Machine { profile: profile.clone(), guest, clock, messages, card }
    }

    /// A machine with pages in GGTT and PPGTT, with the engines set up and all interrupts enabled but the
    /// master enable.
    fn set_up(profile: &IntegratedProfile) -> Machine {
        let machine = Machine::new(profile);
        machine.clock.advance(1_000_000);
        for page in 0..16 {
            machine.entry(page, if page == 0 { 0 } else { page << 12 | 1 });
            machine.put(TABLE + page * 4, (page + 16) << 12 | 1);
        }
        machine.entry(0x1000, TABLE | 1);
        let generation = machine.card.gt.generation;
        for (_, info) in generation.engines() {
            for (offset, value) in [(0x220, !0), (0x228, 0x0100_0000), (0xa8, 0)] {
                machine.write(info.base + offset, value);
            }
            machine.write(info.translation_mode, 0x0200_0200);
            machine.write(info.status_page, STATUS);
        }
        for (offset, value) in [(0x4_4014, 0), (0x4_401c, !0), (0x4_4004, 0), (0xc_4004, 0), (0x4_4024, 0)] {
            machine.write(offset, value);
        }
        machine
    }

    /// A machine with another clock and a copy of the memory, into which the card was restored from bytes.
    fn moved(&self) -> Machine {
        let other = Machine::new(&self.profile);
        other.clock.advance(77);
        other.guest.fill(&self.guest.bytes());
        let saved = self.card.save();
        assert_eq!(self.card.save(), saved, "saving changes nothing");
        other.card.restore(&through_bytes(&saved)).unwrap();
        assert_eq!(other.card.save(), saved);
        assert_eq!(other.sent(), 0, "a restore sends nothing");
        other
    }

    fn entry(&self, page: u32, value: u32) {
        write(&self.card, 0, (2 << 20) + u64::from(page) * 4, value);
    }

    fn write(&self, offset: u32, value: u32) {
        write(&self.card, 0, offset.into(), value);
    }

    fn read(&self, offset: u32) -> u32 {
        read(&self.card, 0, offset.into())
    }

    fn put(&self, at: u32, value: u32) {
        self.guest.put(at.into(), value);
    }

    fn sent(&self) -> u32 {
        self.messages.0.load(Ordering::SeqCst)
    }

    /// Writes a batch to the guest.
    fn batch(&self, at: u32, dwords: &[u32]) {
        (at..).step_by(4).zip(dwords.iter().chain(&[0x0500_0000])).for_each(|(at, dword)| self.put(at, *dword));
    }

    /// Adds commands to the ring of the engine at `base`, of a page, which need not be enabled.
    fn submit(&self, base: u32, dwords: &[u32]) {
        let (_, ring) = RINGS.into_iter().find(|(engine, _)| *engine == base).unwrap();
        if self.read(base + 0x3c) & 1 == 0 {
            self.write(base + 0x38, ring);
            self.write(base + 0x3c, 1);
        }
        let mut tail = self.read(base + 0x30);
        for dword in dwords.iter().chain(if dwords.len() % 2 == 1 { &[0][..] } else { &[] }) {
            self.put(ring + tail, *dword);
            tail = (tail + 4) % 0x1000;
        }
        self.write(base + 0x30, tail);
    }

    /// Executes steps until the engines have nothing to do; a wait is given some time.
    fn finish(&self) {
        for _ in 0..1000 {
            self.card.work();
            self.clock.advance(10_000);
        }
    }

    /// All that the machine has.
    fn state(&self) -> (SavedCard, Vec<u8>) {
        (self.card.save(), self.guest.bytes())
    }
}

/// Writes saved state to bytes and reads them again.
fn through_bytes(saved: &SavedCard) -> SavedCard {
    let bytes = saved.to_bytes();
    let read = SavedCard::from_bytes(&bytes).unwrap();
    assert!(read.to_bytes() == bytes, "the bytes of the same card differ");
    read
}

/// Executes `begin` and `steps` steps, then `go_on` and all that is left, on one machine and on one into which the card is
/// moved after each step; both must end in the same state. `middle` is text in the state after the steps.
fn is_continued(
    profile: &IntegratedProfile,
    begin: impl Fn(&Machine),
    steps: u32,
    middle: &str,
    go_on: impl Fn(&Machine),
) -> Machine {
    let mut ends = [false, true].map(|moves| {
        let mut machine = Machine::set_up(profile);
        let mut sent = 0;
        begin(&machine);
        for _ in 0..steps {
            machine.card.work();
            if moves {
                sent += machine.sent();
                machine = machine.moved();
            } else {
                // The steps of a card that was restored are due at once.
                machine.card.engines.iter().for_each(EngineSlot::poll_now);
            }
        }
        let text = format!("{:?}", machine.card.save());
        assert!(text.contains(middle), "{middle}: {text}");
        go_on(&machine);
        machine.finish();
        (sent + machine.sent(), machine)
    });
    let states = ends.each_ref().map(|(sent, machine)| (*sent, machine.state()));
    assert_eq!(states[0], states[1]);
    std::mem::replace(&mut ends[1].1, Machine::new(profile))
}

fn cards() -> [IntegratedProfile; 3] {
    [ivb(), snb(), fused()]
}

const RCS: u32 = 0x2000;
const VCS: u32 = 0x1_2000;
const BCS: u32 = 0x2_2000;

/// A batch of the PPGTT that is longer than a step, from a ring with commands behind it.
#[test]
fn a_batch_is_continued() {
    for card in cards() {
        let commands = 0x0040_0000..0x0040_0500;
        let store: [u32; 4] = [0x1000_0002, 0, DATA, 0x1234];
        let begin = |machine: &Machine| {
            machine.batch(BEHIND + BATCH, &commands.clone().chain(store).collect::<Vec<_>>());
            machine.submit(RCS, &[0x1880_0100, BATCH, 0x0040_0007, 0]);
        };
        let end = is_continued(&card, begin, 1, "batch: Some(", |_| {});
        assert_eq!((end.guest.get((BEHIND + DATA).into()), end.read(0x2094)), (0x1234, 7));
    }
}

/// Fills that invert their destination, so that each part must be executed once, of many steps; and the state of a setup
/// command, which a later command uses.
#[test]
fn a_blit_is_continued() {
    for card in cards() {
        let inverted = [0x5430_0004, 0x035a_0000, 0, 0x0fff_0400, DATA, !0];
        let tiled = [0x5430_0804, 0x035a_0080, 0, 0x0018_0080, DATA, 0x0102_0304];
        // XY_SETUP_BLT and XY_PIXEL_BLT.
        let setup = [0x4070_0006, 0x03f0_0000, 0, 0x0100_0100, DATA + 0x1000, 0, 0x7777, 0];
        let pixel = [0x4900_0000, 5];
        let begin = |machine: &Machine| {
            machine.write(0x2_2200, 0x2_0002);
            machine.submit(BCS, &[&setup[..], &tiled, &inverted].concat());
        };
        let go_on = |machine: &Machine| {
            machine.write(0x2_2200, 0x2_0000);
            machine.submit(BCS, &pixel);
        };
        let end = is_continued(&card, begin, 3, "pending: Some(", go_on);
        assert_eq!(end.guest.get(u64::from(BEHIND + DATA + 0x1014)), 0x7777);
        assert_eq!(end.guest.get(u64::from(BEHIND + DATA + 0x400)), !0x0102_0304, "an odd number of rows");
    }
}

/// Waits for a semaphore in memory, and for an event, which ends or which software ends.
#[test]
fn waits_are_continued() {
    for card in cards() {
        let begin = |machine: &Machine| machine.submit(BCS, &[0x0b50_0001, 5, DATA, 0x0040_0009]);
        let end = is_continued(&card, begin, 2, "", |machine| machine.put(DATA, 6));
        assert_eq!(end.read(BCS + 0x94), 9);
        let begin = |machine: &Machine| {
            machine.write(RCS + 0x28, 0x0002_0002);
            machine.submit(RCS, &[0x0182_0000, 0x0040_0009]);
        };
        for (offset, value) in [(0x28, 0x0002_0000), (0x3c, 0x1801)] {
            let end = is_continued(&card, begin, 2, "waiting: true", |machine| machine.write(RCS + offset, value));
            assert_eq!(end.read(RCS + 0x94), 9, "{offset:#x}");
        }
        // Without its flag, the wait would begin anew.
        let end = is_continued(&card, begin, 2, "waiting: true", |_| {});
        assert_eq!((end.read(RCS + 0x94), end.read(RCS + 0x3c) & 0x801), (0, 0x801));
    }
}

/// An interrupt that is pending behind the master enable is sent when it is enabled; one that was sent is not sent again.
#[test]
fn pending_interrupts_are_kept() {
    for card in cards() {
        let begin = |machine: &Machine| {
            machine.write(0x4_400c, 0);
            machine.submit(RCS, &[0x0100_0000, 0]);
        };
        let end = is_continued(&card, begin, 1, "", |machine| machine.write(0x4_400c, MASTER));
        assert_eq!(end.sent(), 1);
        let begin = |machine: &Machine| {
            machine.write(0x4_400c, MASTER);
            machine.submit(RCS, &[0x0100_0000, 0]);
        };
        let end = is_continued(&card, begin, 1, "", |machine| machine.submit(RCS, &[0x0100_0000, 0]));
        assert_eq!((end.sent(), end.read(0x4_4018) & 1), (0, 1), "the level was high all the time");
        let end = is_continued(&card, begin, 1, "", |machine| {
            machine.write(0x4_4018, 1);
            machine.submit(RCS, &[0x0100_0000, 0]);
        });
        assert_eq!(end.sent(), 1);
    }
}

/// A watchdog expires at its time, on a machine with another clock. Timestamps and the time in RC6 go on.
#[test]
fn times_go_on() {
    for card in cards() {
        let begin = |machine: &Machine| {
            machine.write(RCS + 0x17c, 1000);
            machine.write(RCS + 0x178, 0);
            machine.write(0xa090, 1 << 31 | 1 << 18);
            machine.clock.advance(600_000);
        };
        let times = |machine: &Machine| [RCS + 0x358, 0x13_8108, RCS + 0x190].map(|at| machine.read(at));
        let end = is_continued(&card, begin, 1, "since: Some(", |machine| {
            let before = times(machine);
            machine.clock.advance(39_000);
            assert_eq!(machine.card.work(), WorkStatus::Idle(Some(machine.clock.now() + 20_000)));
            assert_eq!(machine.read(0x4_4018) & 1 << 6, 0, "not yet");
            assert!(times(machine).iter().zip(before).all(|(now, before)| *now > before));
            machine.clock.advance(1_000);
        });
        assert_eq!(end.read(0x4_4018) & 1 << 6, 1 << 6);
    }
}

/// A stopped engine, arbitration that is off, a suspended flush, an error, and a fault remain.
#[test]
fn states_of_engines_are_kept() {
    for card in cards() {
        let begin = |machine: &Machine| {
            machine.write(RCS + 0xb4, !1);
            machine.submit(RCS, &[0x0400_0000, 0x0580_0001, 0x1040_0002, 0, 0x30_0000, 1]);
            machine.submit(BCS, &[]);
            machine.submit(BCS, &[0x2000_0000, 0]);
        };
        let end = is_continued(&card, begin, 2, "halted: true", |machine| {
            // A new head, which the arbitration does not take, and a flush, which is suspended.
            machine.write(RCS + 0x134, 1);
            machine.write(RCS + 0xc0, 0x0020_0020);
            machine.submit(RCS, &[0x0280_0000, 0]);
        });
        let (flush, fault) = (end.read(RCS + 0xc0), end.read(0x4094));
        assert_eq!((flush & 0x20, fault & 1), (0x20, 1));
        end.write(0x941c, 1 << 3);
        end.submit(BCS, &[]);
    }
}

/// The next switch saves the current context.
#[test]
fn contexts_are_switched() {
    for card in cards() {
        let begin = |machine: &Machine| {
            machine.write(0x2310, 0x55);
            machine.submit(RCS, &[0x0c00_0000, CONTEXT | 0x10d]);
        };
        let go_on = |machine: &Machine| machine.submit(RCS, &[0x0c00_0000, (CONTEXT + 0x2000) | 0x10d]);
        let end = is_continued(&card, begin, 1, "", go_on);
        let image: Vec<u32> = (0..0x1000).step_by(4).map(|at| end.guest.get(u64::from(CONTEXT) + at)).collect();
        assert!(image.windows(2).any(|pair| pair == [0x2310, 0x55]));
    }
}

/// The aperture has the fences of the restored registers; a fence of the card before is gone. The power controller has its
/// table.
#[test]
fn fences_and_the_frequency_table_are_restored() {
    for card in cards() {
        let machine = Machine::set_up(&card);
        for (offset, value) in
            [(0x10_0004, 0x7007), (0x10_0000, 0x4001), (0x13_8128, 0x0012_0817), (0x13_8124, 1 << 31 | 8)]
        {
            machine.write(offset, value);
        }
        write(&machine.card, 2, 0x4000 + 1024, 0x1111);
        let other = machine.moved();
        assert_eq!(read(&other.card, 2, 0x4000 + 1024), 0x1111);
        other.write(0x13_8128, 0x17);
        other.write(0x13_8124, 1 << 31 | 9);
        assert_eq!(other.read(0x13_8128), 0x0012_0817);
        let plain = Machine::set_up(&card);
        other.card.restore(&plain.card.save()).unwrap();
        assert_eq!(read(&other.card, 2, 0x4000 + 512), 0x1111, "linear");
    }
}

/// A register that a generation does not have has no value, which a restore would lose: on Sandy Bridge that of the events for
/// which the render engine waits.
#[test]
fn a_register_that_is_absent_has_no_value() {
    let begin = |machine: &Machine| {
        machine.write(RCS + 0x28, 0x0002_0002);
        machine.submit(RCS, &[0x0182_0000, 0]);
        // MI_SEMAPHORE_MBOX with a general register.
        machine.submit(BCS, &[0x0b57_0001, 0, 0x22d0, 0x0040_0009]);
    };
    for (card, found) in [(ivb(), 9), (snb(), 0)] {
        let end = is_continued(&card, begin, 2, "waiting: true", |_| {});
        assert_eq!(end.read(BCS + 0x94), found);
    }
}

/// A ring that is disabled while its engine executes a command that fails: the ring can be enabled again.
#[test]
fn a_disabled_ring_has_not_failed() {
    for card in cards() {
        let machine = Machine::set_up(&card);
        machine.submit(BCS, &[0x2000_0000, 0]);
        machine.write(BCS + 0x3c, 0);
        // The step that was in progress ends.
        machine.card.gt.set_halted(EngineId::new(2), true);
        machine.write(BCS + 0x34, 8);
        machine.submit(BCS, &[0x0040_0009, 0]);
        machine.finish();
        assert_eq!(machine.read(BCS + 0x94), 9);
    }
}
