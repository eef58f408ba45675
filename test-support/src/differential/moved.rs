// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Work of a VF that is saved, and restored on another card, in another range of the GGTT, while it runs. Its driver adapts its
//! addresses as xe's does. The result must be that of work that was not moved.

use std::ops::Range;
use std::sync::Arc;

use arctic_device_model::card::Card;
use arctic_device_model::card::function_state::SavedFunction;
use arctic_device_model::generation::XE_HPG;
use arctic_device_model::gpu::{Gpu, WorkStatus};
use arctic_device_model::guc::functions::client::State;
use arctic_device_model::guc::functions::context::Home;
use arctic_device_model::host::{Clock, Function};
use arctic_device_model::memory::ggtt::GGTT_BYTES;
use arctic_device_model::memory::region::SharedRegion;
use arctic_device_model::memory::{Memories, VfMemory};
use arctic_device_model::profile::CardProfile;
use arctic_device_model::profile::provision::Quota;
use arctic_device_model::topology::EngineId;
use arctic_guc_driver::{Access, actions};
use vm_memory::Bytes;

use crate::ct;
use crate::differential::choice::Choice;
use crate::differential::compare::watched;
use crate::differential::grammar::{Case, Words};
use crate::differential::guests::{Guest, Guests};
use crate::differential::initial::{initial_local, initial_memory};
use crate::differential::layout::*;
use crate::differential::world::{Work, registers_of, without_undefined};
use crate::document::Sections;
use crate::driver::{CardAccess, DriverState, GucDriver, Layout};
use crate::mi::{self, Compare, Process};
use crate::vfs::world::{Msis, Shared, Time};

/// Bytes of the card's local memory, and the quota of each of its three VFs.
const CARD_LOCAL: u64 = 1 << 30;
const QUOTA: Quota = Quota {
    ggtt: 16 << 20,
    local_memory: 4 << 20,
    contexts: 64,
    doorbells: 8,
    exec_quantum_ms: 5,
    preempt_timeout_us: 300_000,
};
const VFS: u64 = 3;

/// Memory of the driver, at the same offset in local memory and in the GGTT range: CT buffers, and the page of the memory-based
/// interrupt.
const CT_BUFFERS: u64 = 0x10_0000;
const INTERRUPTS: u64 = 0x12_0000;
const DRIVER_END: u64 = 0x12_1000;
/// Offset in the GGTT range of the pages of a case.
const CASE: u64 = 0x80_0000;
/// Status and source bytes of the GuC's memory-based interrupt, from its page.
const STATUS: u64 = 25 * 16;
const SOURCE: u64 = 0x400 + 25;
/// Number of the context.
const CONTEXT: u32 = 5;
/// Dword of the image with the address of the ring.
const RING_START: u64 = 9;

/// Most waits of a case.
const WAITS: u32 = 10;
/// Value that the waits are for, with their number.
const TOKEN: u32 = 0x70ce_0000;
/// Steps of a card after which a context is taken to be stuck.
const MOST_STEPS: u32 = 20_000;

/// Requests of the driver of a VF that was moved.
const RESFIX_START: u32 = 0x550f;
const RESFIX_DONE: u32 = 0x5508;
const QUERY: u32 = 0x5509;

/// The address that a wait polls, in all address spaces, and its offset in local memory. Commands of cases do not access the
/// begin of a page.
fn token(number: u32) -> (u64, u64) {
    let at = u64::from(number) * 8;
    (BASE + at::DATA * PAGE + at, PPGTT_DATA + at)
}

/// What a run leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Result {
    local: Vec<u8>,
    ram: Vec<u8>,
    remote: Vec<u8>,
    /// Registers of the context's image that the differential test compares.
    image: Vec<(u32, u32)>,
}

impl Result {
    /// Contents of the pages of the batches, which do not depend on the data.
    pub fn batches(&self) -> &[u8] {
        &self.local[BATCHES as usize..][..BATCH_COUNT * PAGE as usize]
    }

    /// The first differences to what is expected.
    pub fn difference(&self, expected: &Result) -> String {
        let parts = [
            ("local memory", &self.local, &expected.local),
            ("guest memory", &self.ram, &expected.ram),
            ("guest memory by message", &self.remote, &expected.remote),
        ];
        let of_memory = parts.into_iter().flat_map(|(name, found, expected)| {
            let differ = found.iter().zip(expected).enumerate().filter(|(_, (found, expected))| found != expected);
            differ.map(move |(at, (found, expected))| format!("{name} at {at:#x}: {found:#x}, not {expected:#x}"))
        });
        let of_image = self.image.iter().zip(&expected.image).filter(|(found, expected)| found != expected);
        let of_image = of_image.map(|(found, expected)| format!("image: {found:x?}, not {expected:x?}"));
        of_memory.chain(of_image).take(12).collect::<Vec<_>>().join("; ")
    }
}

/// Work that can be moved.
pub struct MovableWork {
    work: Work,
    waits: u32,
    /// Cost, in instructions, after which a step of a walker ends.
    cost: u64,
}

impl MovableWork {
    /// A case of commands, with waits at which it stops until it is let go on.
    pub fn of_case(choice: &mut dyn Choice, mut case: Case) -> Self {
        let waits = 1 + choice.below(WAITS);
        let wait = |number| mi::semaphore_wait(Process(token(number).0), Compare::Equal, TOKEN | number);
        let commands: Vec<Words> = (0..waits).map(|number| wait(number).to_vec()).collect();
        case.insert(choice, commands);
        MovableWork { work: case.work(), waits, cost: 1 << 20 }
    }

    /// Work with walkers, of which a step ends after so many instructions.
    pub fn of_walkers(work: Work, cost: u64) -> Self {
        MovableWork { work, waits: 0, cost }
    }
}

/// A card with the driver of one of its VFs.
pub struct Site {
    card: Arc<Card>,
    function: Function,
    guest: Arc<Guest>,
    local: SharedRegion,
    clock: Arc<Time>,
    access: CardAccess,
    driver: DriverState,
    /// Contents of guest memory since the log of writes begins.
    before: Vec<u8>,
}

impl GucDriver for Site {
    fn access(&self) -> &dyn Access {
        &self.access
    }

    fn state(&self) -> &DriverState {
        &self.driver
    }

    fn state_mut(&mut self) -> &mut DriverState {
        &mut self.driver
    }
}

impl Site {
    /// A card with the driver of this VF: that which is moved, or its neighbour.
    pub fn new(function: Function) -> Site {
        let mut profile: CardProfile = toml::from_str(include_str!("../../../configs/flex170.toml")).unwrap();
        profile.local_memory = CARD_LOCAL;
        let guest = Arc::new(Guest::new());
        let guests = Arc::new(Guests { function, own: guest.clone(), other: Arc::new(Guest::new()) });
        let clock = Arc::new(Time::manual());
        let files: Vec<Shared> = (0..=VFS).map(|_| Shared::new(CARD_LOCAL)).collect();
        let memories = Memories {
            local: files[0].map(),
            ggtt: SharedRegion::anonymous(GGTT_BYTES).unwrap(),
            vfs: files[1..].iter().map(|file| VfMemory { local: file.map(), ggtt: None }).collect(),
        };
        let card = Card::power_on(&profile, memories, guests, Arc::new(Msis::default()), clock.clone());
        card.provision(&[QUOTA; VFS as usize]).unwrap();
        let base = XE_HPG.sriov.ggtt.start + (u64::from(function.number()) - 1) * QUOTA.ggtt;
        let layout = Layout { ctb: CT_BUFFERS, firmware: 0, ads: 0, images: 0, rings: 0, batches: 0, members: 1 };
        let file = &files[function.index()];
        let access = CardAccess::of_vf(&card, function, file.map());
        let driver = DriverState::new(base, layout, 0);
        let site = Site { card, function, guest, local: file.map(), clock, access, driver, before: Vec::new() };
        site.steps(100);
        site
    }

    /// Runs steps of the card, until it is idle for good.
    fn steps(&self, count: u32) {
        for _ in 0..count {
            match self.card.step() {
                WorkStatus::Idle(None) => break,
                WorkStatus::Idle(Some(at)) => self.clock.advance(at.saturating_sub(self.clock.now())),
                WorkStatus::Busy => self.clock.advance(1000),
            }
        }
    }

    fn until(&self, what: &str, holds: impl Fn(&Site) -> bool) {
        for _ in 0..MOST_STEPS {
            if holds(self) {
                return;
            }
            self.steps(1);
            self.clock.advance(1000);
        }
        panic!("{what} is not reached: {:?}", self.card.status().functions[self.function.index()]);
    }

    fn pause(&self) {
        let state = self.card.status().functions[self.function.index()].state;
        if !matches!(state, Some(State::Paused { .. })) {
            self.card.function_state(self.function).set_paused(true).unwrap();
            self.until("the end of the pause", |site| site.card.function_state(site.function).is_paused());
        }
    }

    fn resume(&self) {
        self.card.function_state(self.function).set_paused(false).unwrap();
    }

    fn save(&self) -> Vec<u8> {
        self.card.function_state(self.function).save().unwrap().to_bytes()
    }

    fn restore(&self, bytes: &[u8]) {
        let saved = SavedFunction::from_bytes(bytes).unwrap();
        self.card.function_state(self.function).restore(&saved).unwrap();
    }

    fn bytes_of_local(&self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.local.slice(0, len).unwrap().read_slice(&mut bytes, 0).unwrap();
        bytes
    }

    /// The parts of local memory that have pages, with their offsets.
    fn parts_of_local(&self) -> Vec<(u64, Vec<u8>)> {
        let read = |run: Range<u64>| {
            let mut bytes = vec![0; (run.end - run.start) as usize];
            self.local.slice(run.start, bytes.len()).unwrap().read_slice(&mut bytes, 0).unwrap();
            (run.start, bytes)
        };
        self.local.data(0..QUOTA.local_memory).map(read).collect()
    }

    fn write_parts(&self, parts: &[(u64, Vec<u8>)]) {
        for (at, bytes) in parts {
            self.local.slice(*at, bytes.len()).unwrap().write_slice(bytes, 0).unwrap();
        }
    }

    fn write_local(&self, bytes: &[u8]) {
        self.local.slice(0, bytes.len()).unwrap().write_slice(bytes, 0).unwrap();
    }

    fn set_guest(&mut self, ram: &[u8], remote: &[u8]) {
        self.guest.set(ram, remote);
        self.before = ram.to_vec();
    }

    /// The GGTT address of a page of the case.
    fn page(&self, page: u64) -> u64 {
        self.base() + CASE + page * PAGE
    }

    /// What depends on the place in the GGTT: the status page of the engine, which the PF's driver sets, and the ring in the image.
    fn adapt(&self, engine: EngineId) {
        let hwsp = XE_HPG.engines.info(engine).mmio_base + 0x80;
        self.card.gt().registers.set(hwsp, self.page(at::HWSP) as u32);
        self.poke(IMAGE + RING_START * 4, self.page(at::RING) as u32);
    }

    /// Starts the work; with `released`, it waits for nothing.
    fn start(&mut self, movable: &MovableWork, released: bool) {
        let work = &movable.work;
        self.pause();
        self.card.saved_state().unwrap().empty(self.function).unwrap();
        self.resume();
        let own = [CT_BUFFERS..CT_BUFFERS + ct::BYTES, INTERRUPTS..DRIVER_END];
        let own = own.into_iter().flat_map(|part| part.start / PAGE..part.end / PAGE);
        let own = own.map(|page| (self.base() / PAGE + page, page * PAGE | 3));
        let case = (0..at::END).filter_map(|page| {
            let entry = ggtt_entry(BASE / PAGE + page, true) & !0xffc;
            (entry != 0).then_some((self.page(page) / PAGE, entry))
        });
        for (index, entry) in own.chain(case).collect::<Vec<_>>() {
            self.access.set_entry(index, entry);
        }
        self.write_local(&initial_local(work));
        let initial = initial_memory(work.fill);
        self.set_guest(&initial.ram, &initial.remote);
        (0..movable.waits).for_each(|number| self.set_token(number, released));
        self.adapt(work.engine);
        {
            let mut engine = self.card.engines().lock(work.engine);
            let unit = engine.execution_units();
            (unit.part_cost, unit.step_cost) = (movable.cost, movable.cost);
        }
        self.mail(&[actions::MATCH_VERSION]);
        let g2h = self.base() + CT_BUFFERS + ct::G2H;
        self.enable_rings(g2h);
        let interrupts = self.base() + INTERRUPTS;
        for (key, at) in [(ct::self_cfg::INTERRUPT_SOURCE, SOURCE), (ct::self_cfg::INTERRUPT_STATUS, STATUS)] {
            self.must(&ct::configure(key, interrupts + at), ct::SUCCESS | 1);
        }
        let info = XE_HPG.engines.info(work.engine);
        let of_class = self.card.engines().present().filter(|id| XE_HPG.engines.info(*id).class == info.class);
        let logical = of_class.take_while(|id| *id != work.engine).count();
        let descriptor = self.page(at::PPHWSP) as u32 | 0x119;
        let registration =
            arctic_guc_driver::context::registration(CONTEXT, info.class.guc().into(), 1 << logical, descriptor);
        self.request(actions::REGISTER_CONTEXT, &registration);
        self.request(actions::SCHED_CONTEXT_MODE_SET, &[CONTEXT, 1]);
        // A request that the GuC has not taken has an address of the old place: xe adapts such requests.
        self.until("the registration", |site| site.context().is_some_and(|(_, is_enabled)| is_enabled));
    }

    /// Where the context is, and whether it is enabled.
    fn context(&self) -> Option<(Home, bool)> {
        let state = self.card.function_state(self.function);
        let guc = state.guc().expect("the GuC runs");
        guc.contexts.get(&(CONTEXT as u16)).map(|context| (context.home, context.enabled))
    }

    fn set_token(&self, number: u32, released: bool) {
        self.poke(token(number).1, if released { TOKEN | number } else { 0 });
    }

    /// Returns whether the context has executed its ring.
    fn is_done(&self) -> bool {
        self.context() == Some((Home::Rest, true))
    }

    /// Runs the context to its end.
    fn finish(&self) {
        // A context that is enabled or resumed is queued in the next steps.
        self.steps(4);
        self.until("the end of the work", Site::is_done);
    }

    /// Runs work without interruption.
    pub fn run(&mut self, movable: &MovableWork) -> Result {
        self.start(movable, true);
        self.finish();
        self.result(&movable.work)
    }

    /// Runs work that was saved to its end, in the same place of the GGTT.
    pub fn run_saved(&mut self, movable: &MovableWork, saved: &SavedWork) -> Result {
        self.start(movable, true);
        self.pause();
        self.write_local(&saved.local);
        self.set_guest(&saved.ram, &saved.remote);
        self.restore(&saved.document);
        self.resume();
        self.finish();
        self.result(&movable.work)
    }

    fn result(&self, work: &Work) -> Result {
        let local = self.bytes_of_local(LOCAL_BYTES);
        let words = local[IMAGE as usize..HWSP as usize].as_chunks().0.iter().map(|word| u32::from_le_bytes(*word));
        let base = XE_HPG.engines.info(work.engine).mmio_base;
        let mut image = registers_of(&words.collect::<Vec<u32>>(), base);
        let compared = watched(XE_HPG.engines.info(work.engine).class);
        image.retain(|offset, _| compared.contains(&offset.wrapping_sub(base)));
        self.guest.check_marks(&self.before);
        let (ram, remote) = self.guest.bytes();
        Result { local: without_undefined(local), ram, remote, image: image.into_iter().collect() }
    }
}

/// Work that was saved while it runs, with its memory.
pub struct SavedWork {
    document: Vec<u8>,
    local: Vec<u8>,
    ram: Vec<u8>,
    remote: Vec<u8>,
}

impl SavedWork {
    /// Saves work with walkers as soon as one has a group in flight. Its data are zeros, so that the bytes are few.
    pub fn in_flight(movable: &MovableWork) -> SavedWork {
        let mut site = Site::new(VF);
        site.start(movable, true);
        let data = vec![0; (READ_ONLY + PAGE - GGTT_DATA) as usize];
        site.write_parts(&[(GGTT_DATA, data)]);
        site.set_guest(&vec![0; RAM.1], &vec![0; REMOTE.1]);
        loop {
            site.steps(1);
            assert!(!site.is_done(), "no group was in flight");
            site.pause();
            if site.card.gt().parked.count(site.function) == 1 {
                let (ram, remote) = site.guest.bytes();
                return SavedWork {
                    document: site.save(),
                    local: site.bytes_of_local(DRIVER_END as usize),
                    ram,
                    remote,
                };
            }
            site.resume();
        }
    }

    /// The document, and behind it the parts of the memories that are not 0: memory, offset and length as dwords, and the bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.document.clone();
        for (number, memory) in (0_u32..).zip([&self.local, &self.ram, &self.remote]) {
            let dwords = memory.as_chunks::<4>().0;
            let mut at = 0;
            while let Some(skipped) = dwords[at..].iter().position(|dword| *dword != [0; 4]) {
                at += skipped;
                // Single dwords of 0 do not end a part.
                let part = dwords[at..].windows(4).take_while(|dwords| dwords.as_flattened() != [0; 16]).count().max(1);
                for dword in [number, at as u32 * 4, part as u32 * 4] {
                    bytes.extend(dword.to_le_bytes());
                }
                bytes.extend(dwords[at..at + part].as_flattened());
                at += part;
            }
        }
        bytes
    }

    /// Work from its bytes.
    ///
    /// # Panics
    /// If they are none.
    pub fn from_bytes(bytes: &[u8]) -> SavedWork {
        let length = u64::from_le_bytes(bytes[16..24].try_into().unwrap()) as usize;
        let (document, mut rest) = bytes.split_at(length);
        let mut memories = [vec![0; DRIVER_END as usize], vec![0; RAM.1], vec![0; REMOTE.1]];
        while let Some((header, behind)) = rest.split_first_chunk::<12>() {
            let dword = |n: usize| u32::from_le_bytes(header[n * 4..][..4].try_into().unwrap()) as usize;
            let (part, behind) = behind.split_at(dword(2));
            memories[dword(0)][dword(1)..][..part.len()].copy_from_slice(part);
            rest = behind;
        }
        let [local, ram, remote] = memories;
        SavedWork { document: document.to_vec(), local, ram, remote }
    }
}

/// Two cards, between which work is moved.
pub struct Sites {
    sites: [Site; 2],
    /// Which of them the work is on.
    here: usize,
    marker: u32,
    /// Number of moves, and of walkers that were parked in them.
    pub moves: u64,
    /// Number of walkers that were moved with groups in flight.
    pub in_flight: u64,
}

impl Default for Sites {
    fn default() -> Self {
        let sites = [VF, NEIGHBOUR].map(Site::new);
        Sites { sites, here: 0, marker: 0, moves: 0, in_flight: 0 }
    }
}

impl Sites {
    /// The engines of both cards.
    pub fn engines(&self) -> impl Iterator<Item = EngineId> {
        self.sites[0].card.engines().present()
    }

    fn site(&mut self) -> &mut Site {
        &mut self.sites[self.here]
    }

    /// Runs work where it is.
    pub fn run(&mut self, movable: &MovableWork) -> Result {
        self.site().run(movable)
    }

    /// Runs work that is moved at each wait, and up to `most` times between steps of a card.
    pub fn run_moved(&mut self, movable: &MovableWork, choice: &mut dyn Choice, most: u32) -> Result {
        self.site().start(movable, false);
        for number in 0..movable.waits {
            self.site().steps(choice.below(8));
            self.move_over(movable);
            self.site().set_token(number, true);
        }
        for _ in 0..most {
            self.site().steps(1 + choice.below(4));
            if self.site().is_done() {
                break;
            }
            self.move_over(movable);
        }
        self.site().finish();
        self.site().result(&movable.work)
    }

    /// Saves the VF, restores it there, where it saves to the same bytes, and moves it to the other card.
    fn move_over(&mut self, movable: &MovableWork) {
        self.moves += 1;
        self.marker = self.marker % 256 + 1;
        let [one, other] = &mut self.sites;
        let (from, to) = if self.here == 0 { (one, other) } else { (other, one) };
        self.here = 1 - self.here;
        from.pause();
        let saved = from.save();
        self.in_flight += from.card.gt().parked.count(from.function) as u64;
        let (local, (ram, remote)) = (from.parts_of_local(), from.guest.bytes());
        from.guest.check_marks(&from.before);
        from.card.saved_state().unwrap().empty(from.function).unwrap();
        from.write_parts(&local);
        from.restore(&saved);
        assert!(from.save() == saved, "it is saved as other bytes than before");
        from.card.saved_state().unwrap().empty(from.function).unwrap();

        to.pause();
        to.write_parts(&local);
        to.set_guest(&ram, &remote);
        to.restore(&saved);
        assert!(apart_from_place(&to.save()) == apart_from_place(&saved), "it is saved as other bytes elsewhere");
        to.driver.rings = from.driver.rings;
        to.resume();
        to.steps(4);
        assert!(to.card.gt().parked.count(to.function) as u64 <= 1);
        assert_eq!(to.peek(INTERRUPTS + STATUS) & 0xff, 0xff, "SW_INT_0");
        to.poke(INTERRUPTS + STATUS, 0);
        to.must(&[RESFIX_START | self.marker << 16], ct::SUCCESS);
        let start = to.mail(&[QUERY, 1]);
        assert_eq!(start[..2], [ct::SUCCESS | 2, to.base() as u32]);
        assert_ne!(to.base(), from.base());
        to.adapt(movable.work.engine);
        let mut engine = to.card.engines().lock(movable.work.engine);
        let unit = engine.execution_units();
        (unit.part_cost, unit.step_cost) = (movable.cost, movable.cost);
        drop(engine);
        to.must(&[RESFIX_DONE | self.marker << 16], ct::SUCCESS);
        // Messages for requests of before do not come.
        to.consume();
    }
}

/// A saved function but for its place, and for what it is owed for earlier requests, which a move drops.
fn apart_from_place(saved: &[u8]) -> Sections {
    let mut document = Sections::of(saved);
    for tag in [b"PLAC", b"WAIT", b"WAID", b"TLBI"] {
        document.remove(tag);
    }
    document
}
