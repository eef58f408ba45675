// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A card with guest memory, clock and interrupt sink, and a driver that performs the GuC handshake.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arctic_device_model::card::Card;
use arctic_device_model::gpu::WorkStatus;
use arctic_device_model::host::{Clock, Function, InterruptSink};
use arctic_device_model::memory::Memories;
use arctic_device_model::memory::ggtt::GGTT_BYTES;
use arctic_device_model::memory::region::SharedRegion;
use arctic_device_model::profile::CardProfile;
use arctic_device_model::topology::EngineClass;
use arctic_test_support::ct;
pub use arctic_test_support::driver::{CONTEXTS, GucDriver, SubmitToClass};
use arctic_test_support::driver::{CardAccess, DriverState, Layout, Places, instances};
use arctic_test_support::firmware;
use arctic_test_support::mi::{self, Global};
use arctic_test_support::process;
pub use arctic_test_support::random::Random;
use arctic_test_support::vfs::bench::LOCAL_PAGE;
pub use arctic_test_support::vfs::world::{FUNCTIONS, Guest, Guests, ODD, RAM, REMOTE, Time, Trap};

pub const PF: Function = Function::PF;

/// Unmaps all guest memory.
struct Unmapped;

impl Trap for Unmapped {
    fn claims(&self, _: u64) -> bool {
        true
    }
}

/// Panics at the next access to a page, to simulate a bug in the card.
struct PanicAt(AtomicU64);

impl Trap for PanicAt {
    fn claims(&self, iova: u64) -> bool {
        if self.0.compare_exchange(iova & !0xfff, u64::MAX, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            panic!("deliberate panic of this test, not a failure");
        }
        false
    }
}

#[derive(Default)]
pub struct Recorder(pub AtomicU64);

impl InterruptSink for Recorder {
    fn raise(&self, function: Function, vector: u16) {
        assert_eq!((function, vector), (PF, 0));
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn set_line(&self, _: Function, _: bool) {}
}

/// GGTT addresses with an identity mapping to local memory.
pub const MAPPED: std::ops::Range<u64> = 0x40_0000..0x140_0000;
const FIRMWARE: u64 = 0x40_0000;
const ADS: u64 = 0x60_0000;
pub const CTB: u64 = 0x70_0000;
pub const SCRATCH: u64 = 0x80_0000;
const IMAGES: u64 = 0x90_0000;
const RINGS: u64 = 0xa0_0000;
/// Batches, one page each; the PPGTT maps them at the same addresses.
pub const BATCHES: u64 = 0xb0_0000;
/// Page tables: root, directory pointers, directory, page tables.
pub const TABLES: u64 = 0xc0_0000;
/// Work queues: descriptor, and the ring one page after it.
pub const QUEUES: u64 = 0xd0_0000;
pub const DATA: u64 = 0x100_0000;
/// GGTT addresses of guest memory: mapped, accessed by messages, and with the odd length.
pub const GLOBAL_RAM: u64 = 0x200_0000;
pub const GLOBAL_REMOTE: u64 = 0x240_0000;
pub const GLOBAL_ODD: u64 = 0x250_0000;
pub const PLACES: Places = Places {
    layout: Layout {
        ctb: CTB,
        firmware: FIRMWARE,
        ads: ADS,
        images: IMAGES,
        rings: RINGS,
        batches: BATCHES,
        members: 4,
    },
    tables: TABLES,
    queues: QUEUES,
    scratch: SCRATCH,
    ram: GLOBAL_RAM,
    remote: GLOBAL_REMOTE,
    odd: GLOBAL_ODD,
};

pub const GDRST: u32 = 0x941c;
pub const GU_CNTL: u32 = 0x10_1010;

/// CPU time limit of one call of `Card::step`, which runs a step of each engine.
const LONGEST_WORK: Duration = Duration::from_millis(100);

/// A card with its environment; the methods are a driver's operations.
pub struct CardBench {
    pub card: Arc<Card>,
    guests: Arc<Guests>,
    clock: Arc<Time>,
    pub access: CardAccess,
    state: DriverState,
}

impl CardBench {
    pub fn new() -> Self {
        let mut profile: CardProfile = toml::from_str(include_str!("../../configs/flex170.toml")).unwrap();
        profile.local_memory = 1 << 30;
        let guests = Arc::new(Guests::default());
        // Random GGTT entries may name any function as owner (V13-030); only the PF has a guest.
        (1..FUNCTIONS as u8).for_each(|vf| guests.map(Function::new(vf).unwrap(), false));
        let clock = Arc::new(Time::real());
        let local = SharedRegion::anonymous(profile.local_memory as usize).unwrap();
        let ggtt = SharedRegion::anonymous(GGTT_BYTES).unwrap();
        let card = Card::power_on(
            &profile,
            Memories { local, ggtt, vfs: Vec::new() },
            guests.clone(),
            Arc::new(Recorder::default()),
            clock.clone(),
        );
        let access = CardAccess::of_pf(&card, 0);
        CardBench { card, guests, clock, access, state: DriverState::new(0, PLACES.layout, TABLES) }
    }

    /// Returns the PF's guest.
    pub fn guest(&self) -> &Guest {
        self.guests.of(PF)
    }

    /// Unmaps the guest's memory, or maps it again.
    pub fn set_memory_unmapped(&self, hidden: bool) {
        if hidden { self.guest().set_trap(Arc::new(Unmapped)) } else { self.guest().clear_trap() }
    }

    /// Makes the next access to the page of the guest at `iova` panic.
    pub fn panic_at(&self, iova: u64) {
        self.guest().set_trap(Arc::new(PanicAt(AtomicU64::new(iova))));
    }

    pub fn advance_clock(&self, nanoseconds: u64) {
        self.clock.advance(nanoseconds);
    }

    /// Calls `Card::step` at most `calls` times; returns true if the card became idle. Asserts the time limit of each
    /// call.
    pub fn work(&self, calls: u32) -> bool {
        for _ in 0..calls {
            match process::work(&self.card, LONGEST_WORK) {
                WorkStatus::Idle(None) => return true,
                WorkStatus::Idle(Some(at)) => self.advance_clock(at.saturating_sub(self.clock.now())),
                WorkStatus::Busy => self.advance_clock(1000),
            }
        }
        false
    }

    fn write_tables(&self) {
        for page in 0..GGTT_BYTES as u64 / 8 {
            if self.card.gt().memory.ggtt().entry(page).into_bits() != 0 {
                self.access.set_entry(page, 0);
            }
        }
        for page in MAPPED.step_by(4096) {
            self.access.set_entry(page >> 12, page | 3);
        }
        for (global, (iova, len)) in [(GLOBAL_RAM, RAM), (GLOBAL_REMOTE, REMOTE), (GLOBAL_ODD, ODD)] {
            for page in (0..len.div_ceil(4096)).take(64) {
                self.access.set_entry((global >> 12) + page, (iova + page * 4096) | 1);
            }
        }
        const TABLE: u64 = 3;
        const LARGE: u64 = 0x80;
        const NULL: u64 = 0x203;
        for at in (TABLES..TABLES + 0x8000).step_by(8) {
            self.poke64(at, 0);
        }
        self.poke64(TABLES, TABLES + 0x1000 | TABLE);
        self.poke64(TABLES + 0x1000, TABLES + 0x2000 | TABLE);
        self.poke64(TABLES + 0x1008, LOCAL_PAGE | LARGE);
        let directory = [
            TABLES + 0x3000 | TABLE,
            DATA | LOCAL_PAGE | LARGE,
            TABLES + 0x4000 | TABLE | 0x40,
            0x3_0000_0000 | LOCAL_PAGE | LARGE,
            NULL | LARGE,
            TABLES + 0x5000 | TABLE,
        ];
        for (n, entry) in (0u64..).zip(directory) {
            self.poke64(TABLES + 0x2000 + n * 8, entry);
        }
        for page in 0..512u64 {
            let entry = match page {
                0..256 => DATA + page * 4096 | LOCAL_PAGE,
                256..384 => RAM.0 + (page - 256) * 4096 | 3,
                384..388 => REMOTE.0 + (page - 384) * 4096 | 3,
                400 => ODD.0 | 3,
                401..404 => NULL,
                404 => DATA | 0x801,
                _ => 0,
            };
            self.poke64(TABLES + 0x3000 + page * 8, entry);
            self.poke64(TABLES + 0x5000 + page * 8, if page >= 256 { 0xa0_0000 + page * 4096 | LOCAL_PAGE } else { 0 });
        }
        for page in 0..32 {
            self.poke64(TABLES + 0x4000 + page * 8, DATA + page * 0x1_0000 | LOCAL_PAGE);
        }
    }

    /// Initialises a card in any state: function reset, page tables, firmware, rings.
    pub fn initialise_driver(&mut self) {
        self.guest().clear_trap();
        self.set(GDRST, 1);
        self.set(GU_CNTL, 1 << 31);
        self.write_tables();
        self.write_firmware(&instances(&self.card));
        self.start_firmware();
        assert_eq!(self.get(firmware::STATUS), firmware::READY, "the firmware has not started");
        self.enable_rings(CTB + ct::G2H);
    }

    /// Initialises the card and checks that a job completes, and that no step has panicked: the card would have reset the
    /// engine and continued.
    pub fn assert_job_completes(&mut self) {
        self.initialise_driver();
        self.poke(SCRATCH, 0);
        self.submit(1, EngineClass::Copy, &mi::store_data_imm(Global(SCRATCH), 0x600d));
        for _ in 0..200 {
            self.work(10);
            if self.peek(SCRATCH) == 0x600d {
                assert_eq!(self.card.panics(), 0, "a step has panicked");
                return;
            }
        }
        panic!("the card does not complete a job after a reset");
    }
}

impl GucDriver for CardBench {
    fn access(&self) -> &dyn arctic_guc_driver::Access {
        &self.access
    }

    fn state(&self) -> &DriverState {
        &self.state
    }

    fn state_mut(&mut self) -> &mut DriverState {
        &mut self.state
    }
}
