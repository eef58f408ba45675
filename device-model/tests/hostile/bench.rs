// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A card with guest memory, clock and interrupt sink, and a driver that knows the handshake.

use arctic_test_support::mi::{self, At::Global};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arctic_device_model::card::{Card, GGTT_WINDOW, Turn};
use arctic_device_model::engine::blank_image;
use arctic_device_model::engine::id::EngineClass;
use arctic_device_model::memory::Memories;
use arctic_device_model::memory::ggtt::GGTT_BYTES;
use arctic_device_model::memory::local::SharedRegion;
use arctic_device_model::profile::CardProfile;
use arctic_device_model::world::{Clock, Dma, DmaFault, DmaView, Function, HandWoundClock, InterruptSink, Unconnected};
pub use arctic_test_support::grammar::CONTEXTS;
use arctic_test_support::grammar::{self, Places};
use arctic_test_support::process::cpu_time;
use vm_memory::{Bytes, VolatileSlice};

pub use arctic_test_support::random::Random;

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
        if function == PF { Arc::new(View(self.0.clone())) } else { Arc::new(Unconnected) }
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
struct Time(Instant, HandWoundClock);

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
pub const H2G: u64 = CTB + 0x1000;
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
/// GGTT addresses of guest memory: mapped, by message, odd.
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

const KERNEL_DWORDS: u32 = 0x100;
const DMA_BYTES: u32 = 128 + KERNEL_DWORDS * 4;
const RING_DWORDS: u32 = 1024;

pub const GDRST: u32 = 0x941c;
pub const GU_CNTL: u32 = 0x10_1010;
pub const BELL: u32 = 0x19_01f0;
pub const MAILBOX: u32 = 0x19_0240;
pub const GUC_STATUS: u32 = 0xc000;

/// Limit for the CPU time of one call of the card's work, which runs a step of each engine.
const LONGEST_WORK: Duration = Duration::from_millis(100);

/// A card with its surroundings; the methods are a driver's operations.
pub struct Bench {
    pub card: Arc<Card>,
    pub guest: Arc<GuestMemory>,
    clock: Arc<Time>,
    h2g_tail: u32,
}

impl Bench {
    pub fn new() -> Self {
        let mut profile: CardProfile = toml::from_str(include_str!("../../../configs/flex170.toml")).unwrap();
        profile.local_memory = 1 << 30;
        let guest = Arc::new(GuestMemory::new());
        let clock = Arc::new(Time(Instant::now(), HandWoundClock::default()));
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
        Bench { card, guest, clock, h2g_tail: 0 }
    }

    pub fn set(&self, register: u32, value: u32) {
        self.card.write(PF, u64::from(register), &value.to_le_bytes());
    }

    pub fn get(&self, register: u32) -> u32 {
        let mut data = [0; 4];
        self.card.read(PF, u64::from(register), &mut data);
        u32::from_le_bytes(data)
    }

    fn cell(&self, at: u64) -> VolatileSlice<'_> {
        self.card.gt().memory.local().slice(at, 4).unwrap()
    }

    pub fn poke(&self, at: u64, value: u32) {
        self.cell(at).store(value, 0, Ordering::SeqCst).unwrap();
    }

    pub fn poke64(&self, at: u64, value: u64) {
        self.poke(at, value as u32);
        self.poke(at + 4, (value >> 32) as u32);
    }

    pub fn peek(&self, at: u64) -> u32 {
        self.cell(at).load(0, Ordering::SeqCst).unwrap()
    }

    pub fn write_words(&self, at: u64, words: &[u32]) {
        for (n, word) in (0u64..).zip(words) {
            self.poke(at + n * 4, *word);
        }
    }

    pub fn set_global(&self, page: u64, entry: u64) {
        self.card.write(PF, GGTT_WINDOW + page * 8, &entry.to_le_bytes());
    }

    pub fn pass(&self, nanoseconds: u64) {
        self.clock.1.advance(nanoseconds);
    }

    /// Runs the card's work at most `calls` times; returns true if it became idle. Asserts the time limit of each call.
    pub fn work(&self, calls: u32) -> bool {
        for _ in 0..calls {
            let (cpu, start) = (cpu_time(), Instant::now());
            let turn = self.card.work();
            let wall = start.elapsed();
            if wall > LONGEST_WORK {
                let cpu = cpu_time() - cpu;
                assert!(cpu <= LONGEST_WORK, "one call of the work used {cpu:?} of CPU time");
            }
            match turn {
                Turn::Idle(None) => return true,
                Turn::Idle(Some(at)) => self.pass(at.saturating_sub(self.clock.now())),
                Turn::Busy => self.pass(1000),
            }
        }
        false
    }

    fn write_tables(&self) {
        for page in 0..GGTT_BYTES as u64 / 8 {
            if self.card.gt().memory.ggtt().entry(page).0 != 0 {
                self.set_global(page, 0);
            }
        }
        for page in MAPPED.step_by(4096) {
            self.set_global(page >> 12, page | 3);
        }
        for (global, (iova, len)) in [(GLOBAL_RAM, RAM), (GLOBAL_REMOTE, REMOTE), (GLOBAL_ODD, ODD)] {
            for page in (0..len.div_ceil(4096)).take(64) {
                self.set_global((global >> 12) + page, (iova + page * 4096) | 1);
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
        let header = [6, 32 + 96 + 96 + 1, 0x1_0000, 0, 0x8086, 0x2024_0101, 32 + 193 + KERNEL_DWORDS, 96, 96, 1];
        self.write_words(FIRMWARE, &header);
        self.write_words(FIRMWARE + 0x40, &[70 << 16 | 53 << 8, 1 << 16 | 26 << 8]);
        self.poke(FIRMWARE + u64::from(DMA_BYTES), 0x1234_5678);
    }

    fn write_ads(&self) {
        self.poke(ADS + 0x1004, (ADS + 0x11dc) as u32);
        self.poke(ADS + 0x1008, (ADS + 0x123c) as u32);
        self.write_words(ADS + 0x11dc, &[0; 32]);
        self.poke(ADS + 0x1220, 1);
        for (at, word) in grammar::engines_of_ads(&self.card, ADS) {
            self.poke(at, word);
        }
    }

    /// Contract B.4: uploads the firmware by register writes; returns GUC_STATUS.
    pub fn upload(&self) -> u32 {
        let wopcm = [(0xc050, 0x3f_3000), (0xc340, 0x4000)];
        let parameters =
            [(0xc180 + 5 * 4, (ADS >> 12 << 1) as u32), (0xc180 + 3 * 4, 0x14), (0xc180 + 2 * 4, 0x42_4800)];
        let dma = [
            (0xc200, (FIRMWARE + u64::from(DMA_BYTES)) as u32),
            (0xc300, FIRMWARE as u32),
            (0xc304, 0x8_0000),
            (0xc308, 0x2000),
            (0xc30c, 0x7_0000),
            (0xc310, DMA_BYTES),
            (0xc314, 0x11 << 16 | 0x11),
        ];
        for (register, value) in wopcm.into_iter().chain(parameters).chain(dma) {
            self.set(register, value);
        }
        self.get(GUC_STATUS)
    }

    pub fn mail(&self, message: [u32; 4]) -> u32 {
        for (n, value) in (0u32..).zip(message) {
            self.set(MAILBOX + n * 4, value);
        }
        self.set(BELL, 1);
        self.get(MAILBOX)
    }

    /// Contract B.6: registers and enables both rings, with the G2H ring at `g2h`.
    pub fn enable_rings(&mut self, g2h: u64) {
        let keys = [
            (0x0903, 2, CTB),
            (0x0902, 2, H2G),
            (0x0904, 1, u64::from(RING_DWORDS) * 4),
            (0x0906, 2, CTB + 0x800),
            (0x0905, 2, g2h),
            (0x0907, 1, u64::from(RING_DWORDS) * 4),
        ];
        for (key, len, value) in keys {
            assert_eq!(self.mail([0x0508, key << 16 | len, value as u32, 0]), 0xf000_0001);
        }
        for at in (CTB..CTB + 0x1000).step_by(4) {
            self.poke(at, 0);
        }
        self.h2g_tail = 0;
        assert_eq!(self.mail([0x4509, 1, 0, 0]), 0xf000_0000);
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
        assert_eq!(self.upload(), 0x8001_f0ec, "the firmware has not started");
        self.enable_rings(CTB + 0x2000);
    }

    /// Writes a CT message including its header without changes, and rings the doorbell.
    pub fn send(&mut self, message: &[u32]) {
        for dword in message {
            self.poke(H2G + u64::from(self.h2g_tail) * 4, *dword);
            self.h2g_tail = (self.h2g_tail + 1) % RING_DWORDS;
        }
        self.poke(CTB + 4, self.h2g_tail);
        self.set(BELL, 1);
    }

    /// Sends a request without a response.
    pub fn request(&mut self, code: u32, payload: &[u32]) {
        let mut message = vec![0x8001 << 16 | (payload.len() as u32 + 1), 2 << 28 | code];
        message.extend(payload);
        self.send(&message);
    }

    /// Marks all messages of the GuC as read.
    pub fn consume(&self) {
        self.poke(CTB + 0x800, self.peek(CTB + 0x804));
    }

    /// Writes an image with a ring of `commands` and with PPGTT tables.
    pub fn write_context(&self, id: u32, member: u32, commands: &[u32]) {
        let (image, ring) = (PLACES.image(id, member) + 0x1000, PLACES.ring(id, member));
        self.write_words(image, &[0; 0x400]);
        self.write_words(image, &blank_image());
        self.write_words(ring, &mi::padded(commands));
        let tail = (commands.len() as u32 * 4).next_multiple_of(8) % 4096;
        for (at, value) in [(3, 0x0009_0009), (7, tail), (9, ring as u32), (0xb, 1), (0x33, TABLES as u32)] {
            self.poke(image + at * 4, value);
        }
    }

    pub fn register(&mut self, id: u32, class: u32, mask: u32) {
        self.request(0x4502, &[1, id, class, mask, 0, 0, 0, 0, 0, PLACES.image(id, 0) as u32 | 0x119, 0]);
    }

    /// Writes, registers and enables a context with these commands.
    pub fn submit(&mut self, id: u32, class: EngineClass, commands: &[u32]) {
        self.write_context(id, 0, commands);
        self.register(id, u32::from(class.guc()), 1);
        self.request(0x1001, &[id, 1]);
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
