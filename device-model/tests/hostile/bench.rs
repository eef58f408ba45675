// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A card with guest memory, clock and interrupt sink, and a driver that performs the GuC handshake.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arctic_device_model::card::Card;
use arctic_device_model::gpu::WorkStatus;
use arctic_device_model::host::{Clock, Dma, DmaFault, DmaView, Function, InterruptSink, ManualClock, NullHost};
use arctic_device_model::memory::Memories;
use arctic_device_model::memory::ggtt::GGTT_BYTES;
use arctic_device_model::memory::region::SharedRegion;
use arctic_device_model::profile::CardProfile;
use arctic_device_model::topology::EngineClass;
use arctic_test_support::ct::{self, Rings};
use arctic_test_support::driver::Places;
pub use arctic_test_support::driver::{CONTEXTS, GucDriver};
use arctic_test_support::firmware;
use arctic_test_support::mi::{self, Global};
use arctic_test_support::process;
pub use arctic_test_support::random::Random;
use vm_memory::{Bytes, VolatileSlice};

pub const PF: Function = Function::PF;

/// Mapped guest memory: first address and bytes.
pub const RAM: (u64, u64) = (0x1000_0000, 4 << 20);
/// Guest memory that is accessed by messages.
pub const REMOTE: (u64, u64) = (0x2000_0000, 0x4000);
/// Guest memory with a mapping that ends after three bytes.
pub const ODD: (u64, u64) = (0x3000_0000, 3);
/// Bytes of guard on both sides of the mapped memory, which must not change.
const GUARD: u64 = 0x1000;
const CANARY: u8 = 0xc5;

/// Guest memory as mapped by its VMM.
pub struct GuestMemory {
    ram: SharedRegion,
    remote: Mutex<Vec<u8>>,
    hidden: AtomicBool,
    /// Page on which the next access panics, to simulate a bug in the card.
    trap: AtomicU64,
}

impl GuestMemory {
    fn new() -> Self {
        let ram = SharedRegion::anonymous((RAM.1 + 2 * GUARD) as usize).unwrap();
        for at in [0, GUARD + RAM.1] {
            ram.slice(at, GUARD as usize).unwrap().write_slice(&[CANARY; GUARD as usize], 0).unwrap();
        }
        let remote = Mutex::new(vec![0; REMOTE.1 as usize]);
        GuestMemory { ram, remote, hidden: AtomicBool::new(false), trap: AtomicU64::new(u64::MAX) }
    }

    /// Removes the memory, or restores it.
    pub fn hide(&self, hidden: bool) {
        self.hidden.store(hidden, Ordering::SeqCst);
    }

    /// Makes the next access to the page at `iova` panic.
    pub fn trap(&self, iova: u64) {
        self.trap.store(iova, Ordering::SeqCst);
    }

    pub fn unharmed(&self) -> bool {
        [0, GUARD + RAM.1].into_iter().all(|at| {
            let mut guard = [0; GUARD as usize];
            self.ram.slice(at, guard.len()).unwrap().read_slice(&mut guard, 0).unwrap();
            guard == [CANARY; GUARD as usize]
        })
    }

    /// Returns the offset in the memory at `area`, and the number of bytes up to its end.
    fn inside(&self, iova: u64, area: (u64, u64)) -> Option<(u64, usize)> {
        let offset = iova.checked_sub(area.0).filter(|offset| *offset < area.1)?;
        (!self.hidden.load(Ordering::SeqCst)).then_some((offset, (area.1 - offset) as usize))
    }
}

struct View(Arc<GuestMemory>);

impl DmaView for View {
    fn slice(&self, iova: u64, len: usize) -> Option<VolatileSlice<'_>> {
        assert!(len > 0, "a span of 0 bytes at {iova:#x}");
        if self.0.trap.compare_exchange(iova & !0xfff, u64::MAX, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            panic!("deliberate panic of this test, not a failure");
        }
        if let Some((_, rest)) = self.0.inside(iova, ODD) {
            return self.0.ram.slice(GUARD, rest.min(len));
        }
        let (offset, rest) = self.0.inside(iova, RAM)?;
        self.0.ram.slice(GUARD + offset, rest.min(len))
    }

    fn read_remote(&self, iova: u64, data: &mut [u8]) -> Result<(), DmaFault> {
        let (offset, rest) = self.0.inside(iova, REMOTE).ok_or(DmaFault { iova })?;
        let from = self.0.remote.lock().unwrap();
        let from =
            from.get(offset as usize..offset as usize + data.len()).ok_or(DmaFault { iova: iova + rest as u64 })?;
        data.copy_from_slice(from);
        Ok(())
    }

    fn write_remote(&self, iova: u64, data: &[u8]) -> Result<(), DmaFault> {
        let (offset, rest) = self.0.inside(iova, REMOTE).ok_or(DmaFault { iova })?;
        let mut into = self.0.remote.lock().unwrap();
        let into = into.get_mut(offset as usize..offset as usize + data.len());
        into.ok_or(DmaFault { iova: iova + rest as u64 })?.copy_from_slice(data);
        Ok(())
    }
}

struct Guests(Arc<GuestMemory>);

impl Dma for Guests {
    fn view(&self, function: Function) -> Arc<dyn DmaView> {
        // Random GGTT entries may name any function as owner (V13-030); only the PF has a guest.
        if function == PF { Arc::new(View(self.0.clone())) } else { Arc::new(NullHost) }
    }
}

#[derive(Default)]
pub struct Recorder(pub AtomicU64);

impl InterruptSink for Recorder {
    fn raise(&self, function: Function, vector: u16) {
        assert_eq!((function, vector), (PF, 0));
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Real time, which bounds the duration of steps, plus a manually advanced offset.
struct Time(Instant, ManualClock);

impl Clock for Time {
    fn now(&self) -> u64 {
        self.0.elapsed().as_nanos() as u64 + self.1.now()
    }
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
    ctb: CTB,
    images: IMAGES,
    rings: RINGS,
    batches: BATCHES,
    tables: TABLES,
    queues: QUEUES,
    scratch: SCRATCH,
    ram: GLOBAL_RAM,
    remote: GLOBAL_REMOTE,
    odd: GLOBAL_ODD,
};

pub const GDRST: u32 = 0x941c;
pub const GU_CNTL: u32 = 0x10_1010;

/// CPU time limit of one call of `Card::work`, which runs a step of each engine.
const LONGEST_WORK: Duration = Duration::from_millis(100);

/// A card with its environment; the methods are a driver's operations.
pub struct Bench {
    pub card: Arc<Card>,
    pub guest: Arc<GuestMemory>,
    clock: Arc<Time>,
    rings: Rings,
}

impl Bench {
    pub fn new() -> Self {
        let mut profile: CardProfile = toml::from_str(include_str!("../../configs/flex170.toml")).unwrap();
        profile.local_memory = 1 << 30;
        let guest = Arc::new(GuestMemory::new());
        let clock = Arc::new(Time(Instant::now(), ManualClock::default()));
        let local = SharedRegion::anonymous(profile.local_memory as usize).unwrap();
        let ggtt = SharedRegion::anonymous(GGTT_BYTES).unwrap();
        let dma = Arc::new(Guests(guest.clone()));
        let card = Card::power_on(
            &profile,
            Memories { local, ggtt, vfs: Vec::new() },
            dma,
            Arc::new(Recorder::default()),
            clock.clone(),
        );
        Bench { card, guest, clock, rings: Rings::default() }
    }

    pub fn pass(&self, nanoseconds: u64) {
        self.clock.1.advance(nanoseconds);
    }

    /// Calls `Card::work` at most `calls` times; returns true if the card became idle. Asserts the time limit of each
    /// call.
    pub fn work(&self, calls: u32) -> bool {
        for _ in 0..calls {
            match process::work(&self.card, LONGEST_WORK) {
                WorkStatus::Idle(None) => return true,
                WorkStatus::Idle(Some(at)) => self.pass(at.saturating_sub(self.clock.now())),
                WorkStatus::Busy => self.pass(1000),
            }
        }
        false
    }

    fn write_tables(&self) {
        for page in 0..GGTT_BYTES as u64 / 8 {
            if self.card.gt().memory.ggtt().entry(page).0 != 0 {
                self.set_entry(page, 0);
            }
        }
        for page in MAPPED.step_by(4096) {
            self.set_entry(page >> 12, page | 3);
        }
        for (global, (iova, len)) in [(GLOBAL_RAM, RAM), (GLOBAL_REMOTE, REMOTE), (GLOBAL_ODD, ODD)] {
            for page in (0..len.div_ceil(4096)).take(64) {
                self.set_entry((global >> 12) + page, (iova + page * 4096) | 1);
            }
        }
        const TABLE: u64 = 3;
        const LOCAL: u64 = 0x803;
        const LARGE: u64 = 0x80;
        const NULL: u64 = 0x203;
        for at in (TABLES..TABLES + 0x8000).step_by(8) {
            self.poke64(at, 0);
        }
        self.poke64(TABLES, TABLES + 0x1000 | TABLE);
        self.poke64(TABLES + 0x1000, TABLES + 0x2000 | TABLE);
        self.poke64(TABLES + 0x1008, LOCAL | LARGE);
        let directory = [
            TABLES + 0x3000 | TABLE,
            DATA | LOCAL | LARGE,
            TABLES + 0x4000 | TABLE | 0x40,
            0x3_0000_0000 | LOCAL | LARGE,
            NULL | LARGE,
            TABLES + 0x5000 | TABLE,
        ];
        for (n, entry) in (0u64..).zip(directory) {
            self.poke64(TABLES + 0x2000 + n * 8, entry);
        }
        for page in 0..512u64 {
            let entry = match page {
                0..256 => DATA + page * 4096 | LOCAL,
                256..384 => RAM.0 + (page - 256) * 4096 | 3,
                384..388 => REMOTE.0 + (page - 384) * 4096 | 3,
                400 => ODD.0 | 3,
                401..404 => NULL,
                404 => DATA | 0x801,
                _ => 0,
            };
            self.poke64(TABLES + 0x3000 + page * 8, entry);
            self.poke64(TABLES + 0x5000 + page * 8, if page >= 256 { 0xa0_0000 + page * 4096 | LOCAL } else { 0 });
        }
        for page in 0..32 {
            self.poke64(TABLES + 0x4000 + page * 8, DATA + page * 0x1_0000 | LOCAL);
        }
    }

    fn write_firmware(&self) {
        for (at, words) in firmware::image() {
            self.write_words(FIRMWARE + at, &words);
        }
    }

    fn write_ads(&self) {
        let (at, words) = firmware::ads(ADS, &firmware::engines(&self.card));
        self.write_words(ADS + at, &words);
    }

    /// Contract B.4: uploads the firmware by register writes; returns GUC_STATUS.
    pub fn upload(&self) -> u32 {
        for (register, value) in firmware::start(FIRMWARE, ADS) {
            self.set(register, value);
        }
        self.get(firmware::STATUS)
    }

    /// Initialises a card in any state: function reset, page tables, firmware, rings.
    pub fn revive(&mut self) {
        self.guest.hide(false);
        self.guest.trap(u64::MAX);
        self.set(GDRST, 1);
        self.set(GU_CNTL, 1 << 31);
        self.write_tables();
        self.write_firmware();
        self.write_ads();
        assert_eq!(self.upload(), firmware::READY, "the firmware has not started");
        self.enable_rings(CTB + ct::G2H);
    }

    /// Initialises the card and checks that a job completes.
    pub fn works(&mut self) {
        self.revive();
        self.poke(SCRATCH, 0);
        self.submit(1, EngineClass::Copy, &mi::store_data_imm(Global(SCRATCH), 0x600d));
        for _ in 0..200 {
            self.work(10);
            if self.peek(SCRATCH) == 0x600d {
                return;
            }
        }
        panic!("the card does not complete a job after a reset");
    }
}

impl GucDriver for Bench {
    fn function(&self) -> Function {
        PF
    }

    fn card(&self) -> &Card {
        &self.card
    }

    fn memory(&self) -> (&SharedRegion, u64) {
        (self.card.gt().memory.local(), 0)
    }

    fn base(&self) -> u64 {
        0
    }

    fn places(&self) -> &'static Places {
        &PLACES
    }

    fn root(&self) -> u64 {
        TABLES
    }

    fn rings(&mut self) -> &mut Rings {
        &mut self.rings
    }
}
