// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Fuzz harness of the command streamers of integrated GPUs. The input becomes commands in the ring of an engine, in a batch
//! of the GGTT or in one of user space, and actions between the steps: accesses to the BARs, and moves of the card, in
//! which its saved state is restored into another card.
//!
//! A batch of user space must not change memory that the PPGTT does not map, GGTT entries, and registers of the driver, nor
//! read other memory. The driver's commands and accesses may change everything; they must not stop the card for good.
//! Commands have the same effects on a card that is moved as on one that is not.
//!
//! Byte 0 of the input selects the card, the engine and the place of the commands, byte 1 whether pages are big and the
//! number of commands; the commands and the actions follow.

use std::sync::{Arc, Mutex};

use arctic_device_model::gen6::card::Card;
use arctic_device_model::gen6::card::saved::SavedCard;
use arctic_device_model::gen6::generation::Generation;
use arctic_device_model::gen6::profile::IntegratedProfile;
use arctic_device_model::gen6::registers::engines::EngineInfo;
use arctic_device_model::gen6::topology::EngineClass;
use arctic_device_model::gpu::{Gpu, Host};
use arctic_device_model::host::{Access, Dma, DmaView, Function, ManualClock, NullHost};
use arctic_device_model::sync::IgnorePoison;
use vm_memory::mmap::MmapRegion;
use vm_memory::{Bytes as _, VolatileMemory, VolatileSlice};

use crate::bytes::Bytes;

/// Maximum number of input bytes that are used; further bytes are ignored.
const MOST: usize = 2048;
/// Maximum number of commands, of their dwords, and of actions.
const COMMANDS: u8 = 40;
const DWORDS: usize = 0x380;
const ACTIONS: usize = 48;

/// Addresses in the GGTT, which maps page n to page n of the guest up to [`BEHIND`]; the PPGTT maps page n behind it.
const RING: u32 = 0x1000;
/// Page of the status page, of which the engine writes two dwords by itself: states of interrupts, and the head.
const STATUS: u32 = 0x3000;
const WRITTEN_BY_ENGINES: [u32; 2] = [STATUS, STATUS + 0x10];
const DATA: u32 = 0x4000;
const CONTEXTS: [u32; 2] = [0x6000, 0x8000];
const BATCH: u32 = 0xa000;
const TABLE: u32 = 0xe000;
/// Offset in the guest of the pages of the PPGTT, and of the pages that nothing maps.
const BEHIND: u32 = 0x1_0000;
const NOT_MAPPED: u32 = 0x2_0000;
const GUEST: u32 = 0x3_0000;
/// Index in the GGTT's table of the page directory.
const DIRECTORY: u32 = 0x1000;
/// Dword that fills the memory that user space cannot read.
const CANARY: u32 = 0x5ec2_e75e;

const CARDS: [&str; 4] = [
    include_str!("../../../configs/ivb.toml"),
    include_str!("../../../configs/ivb-swizzled.toml"),
    include_str!("../../../configs/snb.toml"),
    include_str!("../../../configs/ivb-fused.toml"),
];

/// Guest memory from address 0 on.
#[derive(Clone)]
struct Guest(Arc<MmapRegion>);

impl Guest {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; GUEST as usize];
        self.all().read_slice(&mut bytes, 0).unwrap();
        bytes
    }

    fn set(&self, bytes: &[u8]) {
        self.all().write_slice(bytes, 0).unwrap();
    }

    fn all(&self) -> VolatileSlice<'_> {
        self.0.get_slice(0, GUEST as usize).unwrap()
    }
}

impl DmaView for Guest {
    fn slice(&self, iova: u64, len: usize, _: Access) -> Option<VolatileSlice<'_>> {
        assert!(len > 0 && iova < 1 << 40, "a span of {len} bytes at {iova:#x}");
        let at = usize::try_from(iova).ok()?;
        self.0.get_slice(at, len.min((GUEST as usize).checked_sub(at).filter(|rest| *rest > 0)?)).ok()
    }
}

impl Dma for Guest {
    fn view(&self, _: Function) -> Arc<dyn DmaView> {
        Arc::new(self.clone())
    }
}

/// Location of the commands, which determines their privilege.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Ring,
    Privileged,
    User,
}

/// What happens between steps.
#[derive(Clone, Copy, Debug)]
enum Action {
    Work(u8),
    Advance(u32),
    Read {
        bar: u8,
        offset: u64,
        width: usize,
    },
    Write {
        bar: u8,
        offset: u64,
        value: u64,
        width: usize,
    },
    /// Continues on another card, by way of bytes or not.
    Move {
        bytes: bool,
    },
    Reset,
}

/// A decoded input.
#[derive(Debug)]
struct Script {
    engine: usize,
    place: Place,
    big_pages: bool,
    words: Vec<u32>,
    actions: Vec<Action>,
}

/// Two cards with one guest.
struct World {
    cards: [Arc<Card>; 2],
    generation: &'static Generation,
    guest: Guest,
    clock: Arc<ManualClock>,
    powered_on: SavedCard,
    /// Offsets of the registers.
    registers: Vec<u32>,
}

static WORLDS: Mutex<[Option<World>; 4]> = Mutex::new([None, None, None, None]);

/// Runs one input; panics if an invariant is violated.
pub fn run(input: &[u8]) {
    let input = &input[..input.len().min(MOST)];
    let [which, how, rest @ ..] = input else { return };
    let mut worlds = WORLDS.lock().ignore_poison();
    let which_card = usize::from(which & 3);
    let world = worlds[which_card].get_or_insert_with(|| World::new(CARDS[which_card]));
    let script = Script::new(*which, *how, &mut Bytes(rest), world);
    let moved = world.execute(&script, true);
    let stayed = world.execute(&script, false);
    assert!(moved.0 == stayed.0, "a card that was moved has another state");
    assert!(moved.1 == stayed.1, "a card that was moved has written other memory");
    world.works(script.engine);
}

impl Script {
    fn new(which: u8, how: u8, bytes: &mut Bytes<'_>, world: &World) -> Script {
        let engine = usize::from(which >> 2 & 3) % world.generation.engines.len();
        let place = [Place::Ring, Place::Privileged, Place::User, Place::User][usize::from(which >> 4 & 3)];
        let mut words = Vec::new();
        for _ in 0..(how & 0x3f).min(COMMANDS) {
            words.extend(world.command(engine, bytes));
        }
        words.truncate(DWORDS);
        let mut actions = Vec::new();
        while bytes.more() && actions.len() < ACTIONS {
            actions.push(world.action(&world.generation.engines[engine], place, bytes));
        }
        Script { engine, place, big_pages: how & 0x40 != 0, words, actions }
    }
}

impl World {
    fn new(card: &str) -> World {
        let profile: IntegratedProfile = toml::from_str(card).unwrap();
        let guest = Guest(Arc::new(MmapRegion::new(GUEST as usize).unwrap()));
        let clock = Arc::new(ManualClock::default());
        let cards = [(), ()].map(|()| {
            let memory = Arc::new(guest.clone());
            Card::power_on(&profile, Host { memory, interrupts: Arc::new(NullHost), clock: clock.clone() })
        });
        let powered_on = cards[0].save();
        let registers = cards[0].gt().registers.listing().map(|(offset, _)| offset).collect();
        World { cards, generation: profile.generation, guest, clock, powered_on, registers }
    }

    /// A dword of a command: an address, the offset of a register, or any value.
    fn operand(&self, bytes: &mut Bytes<'_>) -> u32 {
        let choice = bytes.byte();
        let address = match choice % 8 {
            0 => return bytes.dword(),
            1 => return u32::from(bytes.byte()),
            2 => return self.registers[usize::from(bytes.word()) % self.registers.len()],
            3 => bytes.of(&[0, RING, STATUS, TABLE, NOT_MAPPED, DIRECTORY << 12, 0x40_0000, 0xffff_f000]),
            4 => bytes.of(&CONTEXTS) | 0x100,
            5 => BATCH,
            _ => DATA,
        };
        address | if choice & 0x80 != 0 { u32::from(bytes.word() & 0xfff) } else { u32::from(choice >> 3) * 4 }
    }

    /// A command of the engine's tables, with any flags, or any dword.
    fn command(&self, engine: usize, bytes: &mut Bytes<'_>) -> Vec<u32> {
        let (info, commands) = (&self.generation.engines[engine], self.generation.commands);
        let flags = |bytes: &mut Bytes<'_>| if bytes.byte() & 1 != 0 { u32::from(bytes.word()) << 8 } else { 0 };
        let (header, length) = match bytes.byte() % 8 {
            0 => return vec![bytes.dword()],
            1 => {
                let length = 1 + bytes.below(8);
                (3 << 29 | u32::from(bytes.word()) << 16 | length - 1, length + 1)
            }
            2 | 3 if info.class == EngineClass::Copy => {
                let row = &commands.blitter[bytes.below(commands.blitter.len() as u32) as usize];
                let length = match row.lengths {
                    [length, ..] if bytes.byte() & 7 != 0 => *length as u32,
                    _ => 2 + bytes.below(8),
                };
                let flags = u32::from(bytes.word()) << 8 & 0x3f_ff00;
                (2 << 29 | u32::from(row.opcode) << 22 | flags | length - 2, length)
            }
            _ => {
                let rows: Vec<_> = commands.mi.iter().flatten().filter(|row| row.classes.has(info.class)).collect();
                let row = rows[bytes.below(rows.len() as u32) as usize];
                let length = if row.length.mask() == 0 { 1 } else { u32::from(row.least).max(2) + bytes.below(3) };
                let flags = flags(bytes) & 0x7f_ffff & !row.length.mask();
                (u32::from(row.opcode) << 23 | flags | length.saturating_sub(2), length)
            }
        };
        [header].into_iter().chain((1..length).map(|_| self.operand(bytes))).collect()
    }

    /// An action; with commands of user space one that a driver makes without giving them more rights.
    fn action(&self, engine: &EngineInfo, place: Place, bytes: &mut Bytes<'_>) -> Action {
        let what = bytes.byte();
        let width = [4, 4, 4, 1, 2, 8, 3, 4][usize::from(what >> 5)];
        match what % 16 {
            0..5 => Action::Work(1 + (what >> 5) / 2),
            5 => Action::Advance(u32::from(bytes.word()) * 100),
            6 => Action::Move { bytes: what & 0xe0 == 0 },
            7 => Action::Read { bar: 0, offset: self.offset(bytes), width },
            8 => Action::Read { bar: 2, offset: u64::from(self.operand(bytes)), width },
            9 => self.harmless(engine, bytes),
            _ if place == Place::User => Action::Work(1),
            10 | 11 => Action::Write { bar: 0, offset: self.offset(bytes), value: bytes.edge(), width },
            12 => Action::Write { bar: 2, offset: u64::from(self.operand(bytes)), value: bytes.qword(), width },
            13 => {
                let page = u64::from(bytes.byte() % 0x30);
                let value = u64::from(bytes.byte() % 0x31) << 12 | u64::from(bytes.byte() & 3);
                Action::Write { bar: 0, offset: (2 << 20) + page * 4, value, width: 4 }
            }
            14 if what & 0xe0 == 0 => Action::Reset,
            _ => {
                let offset =
                    u64::from(engine.base + bytes.of(&[0x28, 0x30, 0x34, 0x38, 0x3c, 0x9c, 0xc0, 0x134, 0x180]));
                Action::Write { bar: 0, offset, value: u64::from(bytes.word()), width: 4 }
            }
        }
    }

    /// An offset in BAR 0.
    fn offset(&self, bytes: &mut Bytes<'_>) -> u64 {
        match bytes.byte() % 8 {
            0 => bytes.edge(),
            1 => (2 << 20) + u64::from(bytes.word()),
            2 => u64::from(bytes.word()) * 32,
            _ => {
                u64::from(self.registers[usize::from(bytes.word()) % self.registers.len()])
                    + u64::from(bytes.byte() & 3)
            }
        }
    }

    /// A write to a register that does not change what commands have access to.
    fn harmless(&self, engine: &EngineInfo, bytes: &mut Bytes<'_>) -> Action {
        const CONTROL: u32 = 0x3c;
        const OWN: [u32; 12] = [0x28, 0x30, CONTROL, 0x40, 0x44, 0x98, 0x9c, 0xa8, 0xb0, 0xb4, 0x178, 0x17c];
        const OTHERS: [u32; 12] = [
            0x4_4004, 0x4_4008, 0x4_400c, 0x4_4014, 0x4_4018, 0x4_401c, 0x4_4024, 0x4_402c, 0xa090, 0xa188, 0xa18c,
            0x10_0000,
        ];
        let own = bytes.byte() & 1 != 0;
        let offset = if own { engine.base + bytes.of(&OWN) } else { bytes.of(&OTHERS) };
        let value = bytes.edge();
        // The ring keeps its size: behind it are no commands of a driver.
        let value = if own && offset == engine.base + CONTROL { 0x1000 | value & 0xd07 } else { value };
        Action::Write { bar: 0, offset: offset.into(), value, width: 4 }
    }

    fn write(card: &Card, offset: u32, value: u32) {
        card.write(Function::PF, 0, offset.into(), &value.to_le_bytes());
    }

    /// Memory of the guest at the start: page table, ring, commands; the canary in what user space has no access to.
    fn contents(script: &Script) -> Vec<u8> {
        let mut words = vec![0; GUEST as usize / 4];
        let at = |address: u32| address as usize / 4;
        words[at(DATA)..at(DATA) + 0x400].fill(CANARY);
        words[at(NOT_MAPPED)..].fill(CANARY);
        for page in 0..16 {
            words[at(TABLE) + page as usize] = BEHIND + (page << 12) | 1;
        }
        let start = |space: u32| [0x1880_0000 | space, BATCH];
        let (ring, batch) = match script.place {
            Place::Ring => (script.words.clone(), None),
            Place::Privileged => (start(0).to_vec(), Some(BATCH)),
            Place::User => (start(1 << 8).to_vec(), Some(BEHIND + BATCH)),
        };
        words[at(RING)..at(RING) + ring.len()].copy_from_slice(&ring);
        if let Some(batch) = batch {
            words[at(batch)..at(batch) + script.words.len()].copy_from_slice(&script.words);
            words[at(batch) + script.words.len()] = 0x0500_0000;
        }
        words.into_iter().flat_map(u32::to_le_bytes).collect()
    }

    /// Sets up an engine with its ring up to `tail`, and all interrupts.
    fn start(card: &Card, info: &EngineInfo, big_pages: bool, tail: u32) {
        for page in 1..16 {
            Self::write(card, (2 << 20) + page * 4, page << 12 | 1);
        }
        Self::write(card, (2 << 20) + DIRECTORY * 4, TABLE | if big_pages { 3 } else { 1 });
        for (offset, value) in [
            (0x4_4014, 0),
            (0x4_401c, !0),
            (0x4_400c, 1 << 31),
            (info.base + 0x220, !0),
            (info.base + 0x228, DIRECTORY / 16 << 16),
            (info.translation_mode, 0x0200_0200),
            (info.status_page, STATUS),
            (info.base + 0x98, 0),
            (info.base + 0xa8, 0),
            (info.base + 0xb4, 0),
            (info.base + 0x38, RING),
            (info.base + 0x30, tail),
            (info.base + 0x3c, 0x1001),
        ] {
            Self::write(card, offset, value);
        }
    }

    /// Executes a script, on one card or with moves between both. Returns the state and the memory after it.
    fn execute(&self, script: &Script, moves: bool) -> (SavedCard, Vec<u8>) {
        let info = &self.generation.engines[script.engine];
        let mut number = 0;
        self.cards[0].restore(&self.powered_on).unwrap();
        let before = Self::contents(script);
        self.guest.set(&before);
        let dwords = if script.place == Place::Ring { script.words.len() } else { 2 };
        Self::start(&self.cards[0], info, script.big_pages, dwords.next_multiple_of(2) as u32 * 4);
        let entries = self.cards[0].gt().ggtt.save();
        let rights = self.rights(&self.cards[0], info);
        for action in &script.actions {
            let card = &self.cards[number];
            match *action {
                Action::Work(calls) => (0..calls).for_each(|_| {
                    card.work();
                }),
                Action::Advance(time) => self.clock.advance(time.into()),
                Action::Read { bar, offset, width } => card.read(Function::PF, bar, offset, &mut [0; 8][..width]),
                Action::Write { bar, offset, value, width } => {
                    card.write(Function::PF, bar, offset, &value.to_le_bytes()[..width]);
                }
                Action::Move { bytes } => {
                    let mut saved = card.save();
                    if bytes {
                        let bytes = saved.to_bytes();
                        saved = SavedCard::from_bytes(&bytes).unwrap();
                        assert!(saved.to_bytes() == bytes, "a saved card has other bytes than the one that was read");
                    }
                    number = if moves { 1 - number } else { number };
                    self.cards[number].restore(&saved).unwrap();
                    assert!(self.cards[number].save() == saved, "restored state is other state");
                }
                Action::Reset => card.reset(Function::PF),
            }
        }
        let card = &self.cards[number];
        for _ in 0..8 {
            card.work();
            self.clock.advance(10_000);
        }
        let after = self.guest.bytes();
        if script.place == Place::User {
            assert!(card.gt().ggtt.save() == entries, "user space changed entries of the GGTT");
            assert_eq!(self.rights(card, info), rights, "user space changed registers of the driver");
            Self::unharmed(script, &before, &after);
        }
        let (_, _) = (card.report(), card.status());
        (card.save(), after)
    }

    /// Registers that determine what commands have access to.
    fn rights(&self, card: &Card, info: &EngineInfo) -> Vec<u32> {
        let own = [0x38, 0x180, 0x220, 0x228].map(|offset| info.base + offset);
        let all = own.into_iter().chain([info.translation_mode, info.status_page, 0x4030]);
        all.map(|offset| card.gt().registers.value(offset)).collect()
    }

    /// Checks that commands of user space have changed and read memory of the PPGTT only.
    fn unharmed(script: &Script, before: &[u8], after: &[u8]) {
        let dword = |bytes: &[u8], at: u32| u32::from_le_bytes(bytes[at as usize..][..4].try_into().unwrap());
        let other = (0..BEHIND).chain(NOT_MAPPED..GUEST).step_by(4).filter(|at| !WRITTEN_BY_ENGINES.contains(at));
        for at in other {
            let (old, new) = (dword(before, at), dword(after, at));
            assert_eq!(old, new, "memory changed at {at:#x}, which the PPGTT does not map: {script:x?}");
        }
        if !script.words.contains(&CANARY) {
            let read = (BEHIND..NOT_MAPPED).step_by(4).find(|at| dword(after, *at) == CANARY);
            assert_eq!(read, None, "memory was read that the PPGTT does not map");
        }
    }

    /// Checks that the engine executes work after a reset.
    fn works(&self, engine: usize) {
        let info = &self.generation.engines[engine];
        for card in &self.cards {
            card.reset(Function::PF);
            let words = vec![0x1040_0002, 0, DATA, 0x600d, 0x1000_0002, 0, DATA, 0x600e];
            let script = Script { engine, place: Place::Ring, big_pages: false, words, actions: Vec::new() };
            self.guest.set(&Self::contents(&script));
            Self::start(card, info, false, 32);
            for _ in 0..4 {
                card.work();
            }
            let after = self.guest.bytes();
            let dword = |at: u32| u32::from_le_bytes(after[at as usize..][..4].try_into().unwrap());
            assert_eq!([dword(DATA), dword(BEHIND + DATA)], [0x600d, 0x600e], "a store is lost after a reset");
        }
    }
}
