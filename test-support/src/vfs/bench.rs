// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A card with three provisioned virtual functions, and the driver of a virtual function.

use arctic_device_model::gpu::Gpu;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use arctic_device_model::card::Card;
use arctic_device_model::generation::XE_HPG;
use arctic_device_model::gpu::WorkStatus;
use arctic_device_model::guc::functions::client::State;
use arctic_device_model::host::{Clock, Function};
use arctic_device_model::memory::ggtt::GGTT_BYTES;
use arctic_device_model::memory::layout::MemoryLayout;
use arctic_device_model::memory::region::SharedRegion;
use arctic_device_model::memory::{Memories, VfMemory};
use arctic_device_model::profile::CardProfile;
use arctic_device_model::profile::provision::Quota;
use arctic_guc_driver::actions;
use vm_memory::Bytes;

use crate::ct;
pub use crate::ct::{GUC_HOST_INTERRUPT, MAILBOX};
pub use crate::driver::{CONTEXTS, GucDriver, SubmitToClass};
use crate::driver::{CardAccess, DriverState, Layout, Places};
use crate::mi;
use crate::process;
pub use crate::random::Random;
use crate::vfs::pf::Pf;
use crate::vfs::world::*;

/// PPGTT entry of a page of local memory, without its address: present, writable.
pub const LOCAL_PAGE: u64 = 0x803;

/// The hostile function.
pub const ATTACKER: Function = Function::new(2).unwrap();
/// The VFs with the adjacent indices.
pub const VICTIMS: [Function; 2] = [Function::new(1).unwrap(), Function::new(3).unwrap()];

/// Bytes of the card's local memory.
const CARD_LOCAL: u64 = 1 << 30;
/// Bytes of each function's local memory.
pub const LOCAL: u64 = 4 << 20;
/// Bytes of a virtual function's LMEM BAR, which is larger than its quota.
pub const BAR: u64 = 8 << 20;
/// Bytes of each function's GGTT range.
pub const GLOBAL: u64 = 16 << 20;
/// The resources of each function.
pub const QUOTA: Quota = Quota {
    ggtt: GLOBAL,
    local_memory: LOCAL,
    contexts: 64,
    doorbells: 8,
    exec_quantum_ms: 5,
    // Large, because the attacking thread also runs the card's work, and does not run it while it advances the clock.
    preempt_timeout_us: 300_000,
};

/// Returns the first GGTT address of a VF.
pub const fn base(function: Function) -> u64 {
    XE_HPG.sriov.ggtt.start + (function.number() as u64 - 1) * GLOBAL
}

/// Layout of each VF's local memory, by offset. The VF's GGTT range begins with a mapping of that memory.
pub mod at {
    /// Context rings.
    pub const RINGS: u64 = 0x10_0000;
    /// Context batches.
    pub const BATCHES: u64 = 0x14_0000;
    /// Page tables.
    pub const TABLES: u64 = 0x16_0000;
    /// Work queues.
    pub const QUEUES: u64 = 0x17_0000;
    /// Results.
    pub const SCRATCH: u64 = 0x18_0000;
    /// Context images.
    pub const IMAGES: u64 = 0x20_0000;
    /// Data.
    pub const DATA: u64 = 0x30_0000;
    /// Mapped guest memory, in the function's GGTT range.
    pub const RAM: u64 = 0x80_0000;
    /// Guest memory that is accessed by messages.
    pub const REMOTE: u64 = 0xa0_0000;
    /// Guest memory with a mapping that ends within a dword.
    pub const ODD: u64 = 0xb0_0000;
    /// Pages of the function's GGTT range that are not mapped initially.
    pub const WINDOW: std::ops::Range<u64> = 0xc0_0000..0x100_0000;
}

const BASE: u64 = base(ATTACKER);
/// GGTT address of the attacker's results.
pub const SCRATCH: u64 = BASE + at::SCRATCH;
/// GGTT address of the attacker's work queues.
pub const QUEUES: u64 = BASE + at::QUEUES;
/// Offsets of each driver's data structures.
pub const LAYOUT: Places = Places {
    layout: Layout {
        ctb: 0,
        firmware: 0x2_0000,
        ads: 0x3_0000,
        images: at::IMAGES,
        rings: at::RINGS,
        batches: at::BATCHES,
        members: 4,
    },
    tables: at::TABLES,
    queues: at::QUEUES,
    scratch: at::SCRATCH,
    ram: at::RAM,
    remote: at::REMOTE,
    odd: at::ODD,
};
/// GGTT addresses of the attacker's data structures.
pub const PLACES: Places = LAYOUT.at(BASE);

/// Limit for the CPU time of one call of [`Card::step`], which runs a step of each engine.
const LONGEST_WORK: Duration = Duration::from_millis(150);

/// A virtual function with its driver.
pub struct Vf {
    /// The function.
    pub function: Function,
    /// The card.
    pub card: Arc<Card>,
    /// The function's LMEM BAR, as its VMM maps it.
    pub local: SharedRegion,
    /// The function's GGTT window, if its VMM maps it.
    pub table: Option<SharedRegion>,
    /// The function is reset while its driver works, so requests may fail.
    pub disturbed: bool,
    access: CardAccess,
    state: DriverState,
}

impl Vf {
    /// Returns the driver of `function`. `files` contains its BAR at the function's index, and its GGTT window after
    /// all BARs.
    fn of(card: &Arc<Card>, files: &[Shared], function: Function) -> Vf {
        let table = files.get(function.index() + 3).map(Shared::map);
        Vf {
            function,
            card: card.clone(),
            local: files[function.index()].map(),
            table,
            disturbed: false,
            access: CardAccess::of_vf(card, function, files[function.index()].map()),
            state: DriverState::new(base(function), LAYOUT.layout, at::TABLES),
        }
    }

    /// Writes any GGTT entry through the function's path: mapped window or trapped access.
    pub fn set_global(&self, index: u64, entry: u64) {
        match &self.table {
            Some(table) => table.slice(index * 8, 8).unwrap().store(entry, 0, Ordering::SeqCst).unwrap(),
            None => self.access.set_entry(index, entry),
        }
    }

    /// Initialises the function in any state: handshake, GGTT entries, PPGTT tables, rings.
    pub fn up(&mut self) {
        self.mail(&[actions::VF_RESET]);
        self.mail(&[actions::MATCH_VERSION]);
        self.write_global();
        self.write_tables();
        self.enable_rings(self.base() + ct::G2H);
    }

    fn write_global(&self) {
        self.global_entries().for_each(|(index, entry)| self.set_global(index, entry));
    }

    /// The GGTT entries that [`Vf::up`] writes, with their indices.
    pub fn global_entries(&self) -> impl Iterator<Item = (u64, u64)> {
        let first = self.base() >> 12;
        let local = (0..LOCAL >> 12).map(move |page| (first + page, page << 12 | 2));
        let system = [(at::RAM, RAM), (at::REMOTE, REMOTE), (at::ODD, ODD)].into_iter().flat_map(
            move |(global, (iova, len))| {
                (0..len.div_ceil(4096)).map(move |page| (first + (global >> 12) + page, iova + page * 4096))
            },
        );
        local.chain(system)
    }

    /// Writes PPGTT tables: local memory at its GGTT addresses, and pages of all sizes and kinds from address 0.
    fn write_tables(&self) {
        const TABLE: u64 = 3;
        const SYSTEM: u64 = 3;
        const LARGE: u64 = 0x80;
        const NULL: u64 = 0x203;
        let table = |n: u64| at::TABLES + n * 0x1000;
        self.write_words(at::TABLES, &[0; 0x2400]);
        self.poke64(table(0), table(1) | TABLE);
        self.poke64(table(1), table(2) | TABLE);
        self.poke64(table(1) + 8, LOCAL_PAGE | LARGE);
        let directory = [
            table(3) | TABLE,
            0x20_0000 | LOCAL_PAGE | LARGE,
            table(4) | TABLE | 0x40,
            LOCAL | LOCAL_PAGE | LARGE,
            NULL | LARGE,
            table(5) | TABLE,
            RAM.0 | SYSTEM | LARGE,
            private(VICTIMS[0]) | SYSTEM | LARGE,
        ];
        for (n, entry) in (0u64..).zip(directory) {
            self.poke64(table(2) + n * 8, entry);
        }
        for n in 0..2 {
            self.poke64(table(2) + (self.base() >> 21) * 8 + n * 8, table(6 + n) | TABLE);
        }
        for page in 0..512u64 {
            let entry = match page {
                0..256 => at::DATA + page * 4096 | LOCAL_PAGE,
                256..384 => RAM.0 + (page - 256) * 4096 | SYSTEM,
                384..388 => REMOTE.0 + (page - 384) * 4096 | SYSTEM,
                400 => ODD.0 | SYSTEM,
                401..404 => NULL,
                404 => at::DATA | 0x801,
                _ => 0,
            };
            self.poke64(table(3) + page * 8, entry);
            self.poke64(table(5) + page * 8, at::DATA + page % 256 * 4096 | LOCAL_PAGE);
            self.poke64(table(6) + page * 8, page * 4096 | LOCAL_PAGE);
            self.poke64(table(7) + page * 8, 0x20_0000 + page * 4096 | LOCAL_PAGE);
        }
        for page in 0..32 {
            self.poke64(table(4) + page * 8, at::DATA + page % 16 * 0x1_0000 | LOCAL_PAGE);
        }
    }

    /// Returns whether the GuC no longer processes the rings, as visible in the descriptors. Marks all messages from
    /// the GuC as read.
    pub fn rings_stopped(&self) -> bool {
        let lost = self.peek(0) != self.peek(4)
            || self.peek(4) != self.state.rings.tail()
            || self.peek(8) | self.peek(0x808) != 0;
        self.consume();
        lost
    }

    /// Returns the offset of the image of a context's member in local memory.
    pub fn image(id: u32, member: u32) -> u64 {
        LAYOUT.image(id, member)
    }

    /// Returns the offset of the ring of a context's member.
    pub fn ring(id: u32, member: u32) -> u64 {
        LAYOUT.ring(id, member)
    }

    /// Returns the offset of a context's batch.
    pub fn batch(id: u32) -> u64 {
        LAYOUT.batch(id)
    }

    /// Returns a ring that starts the context's unprivileged batch.
    pub fn jump(&self, id: u32) -> [u32; 3] {
        mi::batch_buffer_start(self.process(Self::batch(id)))
    }
}

impl GucDriver for Vf {
    fn access(&self) -> &dyn arctic_guc_driver::Access {
        &self.access
    }

    fn state(&self) -> &DriverState {
        &self.state
    }

    fn state_mut(&mut self) -> &mut DriverState {
        &mut self.state
    }

    fn must(&mut self, message: &[u32], answer: u32) {
        let answered = self.mail(message)[0];
        assert!(self.disturbed || answered == answer, "{:?}: {answered:#x} to {message:x?}", self.function);
    }
}

/// A card with its guests, its drivers and its clock.
pub struct VfBench {
    /// The card.
    pub card: Arc<Card>,
    /// The guests of all functions.
    pub guests: Arc<Guests>,
    /// The files of local memory and of the virtual functions' BARs.
    pub files: Vec<Shared>,
    /// The driver of [`ATTACKER`].
    pub attacker: Vf,
    /// The drivers of [`VICTIMS`].
    pub victims: [Vf; 2],
    /// Layout of local memory.
    pub layout: MemoryLayout,
    clock: Arc<Time>,
    /// The PF's driver; `None` if the card provisions VFs without a PF driver.
    pub pf: RefCell<Option<Pf>>,
}

impl VfBench {
    /// Creates a card with VFs provisioned by [`QUOTA`], and a clock in real time. `mapped`: the functions' GGTT
    /// windows are mapped; otherwise each access to them is trapped.
    pub fn new(mapped: bool) -> Self {
        VfBench::with(mapped, Some(QUOTA), Time::real())
    }

    /// Same as [`VfBench::new`], with a quota and a clock. Without a quota a PF driver provisions the VFs.
    pub fn with(mapped: bool, quota: Option<Quota>, clock: Time) -> Self {
        count_lines();
        let mut profile: CardProfile = toml::from_str(include_str!("../../../configs/flex170.toml")).unwrap();
        profile.local_memory = CARD_LOCAL;
        let guests = Arc::new(Guests::default());
        let clock = Arc::new(clock);
        let mut files = vec![Shared::new(CARD_LOCAL)];
        let tables: Vec<_> = (0..3).map(|_| mapped.then(|| Shared::new(GGTT_BYTES as u64))).collect();
        files.extend((0..3).map(|_| Shared::new(BAR)));
        let vfs = files[1..].iter().zip(&tables);
        let vfs = vfs.map(|(local, ggtt)| VfMemory { local: local.map(), ggtt: ggtt.as_ref().map(Shared::map) });
        let memories =
            Memories { local: files[0].map(), ggtt: SharedRegion::anonymous(GGTT_BYTES).unwrap(), vfs: vfs.collect() };
        let card = Card::power_on(&profile, memories, guests.clone(), Arc::new(Msis::default()), clock.clone());
        let pf = match quota {
            Some(quota) => card.provision(&[quota; 3]).map(|()| None).unwrap(),
            None => Some(Pf::up(&card)),
        };
        files.extend(tables.into_iter().flatten());
        let (attacker, victims) = (Vf::of(&card, &files, ATTACKER), VICTIMS.map(|vf| Vf::of(&card, &files, vf)));
        let layout = MemoryLayout::of(CARD_LOCAL);
        let bench = VfBench { attacker, victims, guests, files, clock, layout, card, pf: RefCell::new(pf) };
        bench.work(40);
        for function in [VICTIMS[0], ATTACKER, VICTIMS[1]] {
            let status = bench.card.status();
            let quota = status.functions[function.index()].quota.as_ref().expect("a quota");
            assert_eq!((quota.ggtt_start, quota.local_memory), (base(function), LOCAL));
        }
        bench
    }

    /// Returns a second driver for `function`, which continues at the ring position of the first.
    pub fn vf(&self, function: Function) -> Vf {
        let first = self.victims.iter().find(|victim| victim.function == function);
        let mut vf = Vf::of(&self.card, &self.files, function);
        if let Some(first) = first {
            vf.state = first.state;
        }
        vf
    }

    /// Returns the card's time in ns.
    pub fn now(&self) -> u64 {
        self.clock.now()
    }

    /// Advances the clock.
    pub fn pass(&self, nanoseconds: u64) {
        self.clock.advance(nanoseconds);
    }

    /// Calls [`Card::step`] at most `calls` times; returns true if the card became idle. Checks the time limit of each
    /// call.
    pub fn work(&self, calls: u32) -> bool {
        for _ in 0..calls {
            match process::work(&self.card, LONGEST_WORK) {
                WorkStatus::Idle(None) => return true,
                WorkStatus::Idle(Some(at)) => self.pass(at.saturating_sub(self.clock.now())),
                WorkStatus::Busy => self.pass(1000),
            }
            if let Some(pf) = &mut *self.pf.borrow_mut() {
                pf.serve();
            }
        }
        false
    }

    /// Initialises the attacker's driver, in any state of its function.
    pub fn attacker_up(&mut self) {
        let state = |bench: &VfBench| bench.card.status().functions[ATTACKER.index()].state;
        self.until("the end of the attacker's reset", 60_000, |bench| {
            state(bench).is_none_or(|state| state == State::Running)
        });
        self.attacker.up();
    }

    /// Resets the attacker by FLR and initialises its driver.
    pub fn flr(&mut self) {
        self.card.reset_function(ATTACKER);
        self.attacker_up();
    }

    /// Runs the card until a condition holds; panics after `milliseconds` of the card's time.
    pub fn until(&self, what: &str, milliseconds: u64, mut holds: impl FnMut(&VfBench) -> bool) {
        let end = self.now() + milliseconds * 1_000_000;
        while !holds(self) {
            self.wait(what, milliseconds, end);
        }
    }

    /// Same as [`VfBench::until`], with a condition that may change state.
    pub fn until_mut(&mut self, what: &str, milliseconds: u64, mut holds: impl FnMut(&mut VfBench) -> bool) {
        let end = self.now() + milliseconds * 1_000_000;
        while !holds(self) {
            self.wait(what, milliseconds, end);
        }
    }

    /// Runs the card for a short time; panics at `end`, which is after `milliseconds`.
    fn wait(&self, what: &str, milliseconds: u64, end: u64) {
        assert!(
            self.now() < end,
            "timed out after {milliseconds} ms of the card's time waiting for: {what}: {:?}",
            self.card.status().functions
        );
        self.work(4);
        self.pass(200_000);
    }
}
