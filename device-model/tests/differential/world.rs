//! The engine's side: a card with memory, guests and a context, which is put back to the same state for every run.

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::{Arc, OnceLock};

use arctic_device_model::engine::id::EngineId;
use arctic_device_model::engine::{Engine, Halt, Load, Outcome, Submitter};
use arctic_device_model::gt::Gt;
use arctic_device_model::memory::ggtt::{GGTT_BYTES, Ggtt, GgttEntry};
use arctic_device_model::memory::local::SharedRegion;
use arctic_device_model::memory::{Memory, Space};
use arctic_device_model::profile::CardProfile;
use arctic_device_model::world::{Function, HandWoundClock, InterruptSink};
use vm_memory::Bytes;
use vmm_sys_util::tempfile::TempFile;

use crate::guests::{Guest, Guests};
use crate::layout::*;

/// The virtual function that runs, and one that has nothing to do with it.
pub const VF: Function = Function(2);
pub const NEIGHBOUR: Function = Function(3);

/// Frames of local memory as the LMTT hands them out: the PF's, the VF's, the neighbour's, the LMTT's own.
const FRAME: u64 = 2 << 20;
const LOCAL: u64 = 4 * FRAME;
const LMTT: u64 = 3 * FRAME;

/// What is in memory that the context has nothing to do with: whoever reads it is found out by it.
pub const CANARY: u64 = 0xca9a_271e_d00d_5afe;

/// Most times that a context is made to leave the engine in one run.
const PREEMPTIONS: u64 = 64;

/// Commands that the engine is given at a time.
pub const STEP: u32 = 1024;
/// Most commands of a run.
pub const PATIENCE: u32 = 64 * STEP;
/// Looks at what seems to be a loop that are given in place of one full step.
const LOOKS: u32 = 64;

struct Nobody;

impl InterruptSink for Nobody {
    fn raise(&self, _: Function, vector: u16) {
        assert_eq!(vector, 0);
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The ring ran empty.
    Complete,
    /// At a semaphore.
    Waiting,
    /// A loop without end, as far as anybody looked.
    Endless,
    /// An access of this page, from [`BASE`], that no translation permits.
    Fault { global: bool, page: u64 },
    /// A command that the engine has not.
    Illegal { header: u32, address: u64 },
}

/// What an engine is given to run.
#[derive(Clone, Debug)]
pub struct Work {
    pub engine: EngineId,
    /// Where in the ring it starts.
    pub head: u32,
    pub ring: Vec<u32>,
    /// Batches, a page each.
    pub batches: Vec<Vec<u32>>,
    /// What the data pages start with.
    pub fill: u64,
    /// Commands of a step, after each of which somebody wants the engine: whether the context leaves it for a moment must
    /// not be seen in what it does.
    pub interruptions: Option<u32>,
    /// The host submits it by the engine's own queue (V8-010..020), not the GuC; the PF's alone.
    pub execlist: bool,
}

/// What a run leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    pub stop: Stop,
    /// The context's part of local memory, less the pages in which the image is.
    pub home: Vec<u8>,
    pub ram: Vec<u8>,
    pub remote: Vec<u8>,
    /// The page of another function's that the PF's global space shows.
    pub foreign: Vec<u8>,
    /// Entries of the global table's window.
    pub entries: Vec<u64>,
    /// Registers, by offset: where the context is on the engine or was the PF's.
    pub registers: BTreeMap<u32, u32>,
    /// What its image says of registers, where it has left the engine.
    pub image: BTreeMap<u32, u32>,
}

/// A card for contexts of one function.
pub struct World {
    pub gt: Gt,
    pub function: Function,
    guests: Arc<Guests>,
    /// The global table as a VMM maps it.
    ggtt: SharedRegion,
    /// What registers hold after a reset.
    resets: Vec<(u32, u32)>,
    /// By their numbers.
    engines: Vec<Engine>,
    /// Where the function's first frame of local memory is.
    home: u64,
    /// Most commands of a run, and not fewer than [`STEP`].
    pub patience: u32,
    /// How often a context left the engine in the middle of its work.
    pub preemptions: u64,
}

/// The image as xe's default one is, up to what the run does not depend on (V8-046, V8-047).
pub fn image(head: u32, tail: u32) -> Vec<u32> {
    let mut words = vec![0; 0xc00];
    let mut group = |at: usize, header: u32, pairs: &[(u32, u32)]| {
        words[at] = header;
        for (n, (offset, value)) in pairs.iter().enumerate() {
            words[at + 1 + 2 * n] = *offset;
            words[at + 2 + 2 * n] = *value;
        }
    };
    let ring = (BASE + at::RING * PAGE) as u32;
    group(
        1,
        0x1108_1019,
        &[
            // Restore inhibited, no synchronous switch.
            (0x244, 0x0009_0009),
            (0x034, head),
            (0x030, tail),
            (0x038, ring),
            (0x03c, RING_BYTES - 0x1000 | 1),
            (0x168, 0),
            (0x140, 0),
            (0x110, 0),
            (0x1c0, 0),
            (0x1c4, 0),
            (0x1c8, 0),
            (0x180, 0),
            (0x2b4, 0),
        ],
    );
    let pointers = [0x28c, 0x288, 0x284, 0x280, 0x27c, 0x278, 0x274, 0x270].map(|offset| (offset, 0));
    let mut pointers: Vec<(u32, u32)> = [(0x3a8, 0)].into_iter().chain(pointers).collect();
    pointers[8].1 = ROOT as u32;
    group(0x21, 0x1108_1011, &pointers);
    words
}

impl World {
    /// A card for contexts of the PF or of a VF.
    pub fn new(vf: bool) -> Self {
        let function = if vf { VF } else { Function::PF };
        let home = if vf { FRAME } else { 0 };
        let (local, table) = (shared(LOCAL), shared(GGTT_BYTES as u64));
        let map = |file: &File, len| SharedRegion::from_file(file.try_clone().unwrap(), len).unwrap();
        let ggtt = Ggtt::new(map(&table, GGTT_BYTES));
        let guests = Arc::new(Guests { function, own: Arc::new(Guest::new()), other: Arc::new(Guest::new()) });
        let memory = Memory::new(map(&local, LOCAL as usize), ggtt, guests.clone());
        let profile: CardProfile = toml::from_str(include_str!("../../../configs/flex170.toml")).unwrap();
        let clock = Arc::new(HandWoundClock::default());
        clock.advance(TIMESTAMP / 12 * 625);
        let gt = Gt::new(&profile, memory, Arc::new(Nobody), clock);
        let engines = EngineId::all().map(Engine::new).collect();
        let resets = gt.registers.listing().map(|(offset, found)| (offset, found.reset)).collect();
        let ggtt = map(&table, GGTT_BYTES);
        let world = World { gt, function, guests, ggtt, resets, engines, home, preemptions: 0, patience: PATIENCE };
        world.hand_out();
        world.forget_guests();
        world
    }

    /// Local memory and global pages for everybody.
    fn hand_out(&self) {
        let put = |at: u64, value: u32| self.gt.memory.local().slice(at, 4).unwrap().write_obj(value, 0).unwrap();
        for (number, vf, frame) in [(0, VF, 1u32), (1, NEIGHBOUR, 2)] {
            let table = LMTT + 0x1_0000 * (number + 1);
            put(LMTT + 4 * vf.0 as u64, (table >> 16 << 4) as u32 | 1);
            put(table, frame << 5 | 1);
            self.gt.memory.set_quota(vf, FRAME);
        }
        self.gt.memory.set_lmem_cfg((LMTT >> 16) as u32 | 1 << 31);
    }

    /// Puts canaries where another function has its local memory.
    fn write_foreign(&self) {
        let page = self.gt.memory.local().slice(self.foreign(), PAGE as usize).unwrap();
        page.write_slice(canaries(PAGE as usize), 0).unwrap();
    }

    fn foreign_bytes(&self) -> Vec<u8> {
        let mut page = vec![0; PAGE as usize];
        self.gt.memory.local().slice(self.foreign(), page.len()).unwrap().read_slice(&mut page, 0).unwrap();
        page
    }

    /// Local memory of somebody else's that the global space shows.
    fn foreign(&self) -> u64 {
        if self.function.is_vf() { 0 } else { 2 * FRAME }
    }

    /// The global table as it is before every run.
    fn write_global(&self) {
        let owner = u64::from(self.function.0) << 2;
        for page in 0..at::END {
            let entry = match global(page) {
                Page::Home(at) | Page::HomeReadOnly(at) => at | owner | 3,
                Page::Guest(iova) => iova | owner | 1,
                // To the PF the neighbour's page is open; to a VF the PF's is not.
                Page::Foreign if self.function.is_vf() => 3,
                Page::Foreign => u64::from(NEIGHBOUR.0) << 2 | 3,
                Page::Null | Page::Nothing => 0,
            };
            self.gt.memory.ggtt().set_entry(BASE / PAGE + page, GgttEntry(entry));
        }
    }

    /// Resets the engine's registers, and what the function has of its own there (V8-142).
    fn forget_registers(&self, engine: EngineId) {
        self.gt.registers.reset_engine(engine);
        if let Some(vf) = self.gt.vf(self.function) {
            vf.reset();
        }
    }

    fn forget_guests(&self) {
        self.guests.other.set(canaries(RAM.1), canaries(REMOTE.1));
    }

    /// The context's part of local memory before its work is done.
    pub fn home_before(work: &Work) -> Vec<u8> {
        let mut home = start(work.fill).home.clone();
        let mut put = |at: u64, word: u32| home[at as usize..at as usize + 4].copy_from_slice(&word.to_le_bytes());
        for (n, words) in (0u64..).zip(&work.batches) {
            for (at, word) in (0u64..).zip(words).take(PAGE as usize / 4) {
                put(BATCHES + n * PAGE + at * 4, *word);
            }
        }
        let tail = (work.head + work.ring.len() as u32 * 4) % RING_BYTES;
        for (at, word) in (0u32..).zip(&work.ring) {
            put(RING + u64::from((work.head + at * 4) % RING_BYTES), *word);
        }
        for (at, word) in (0u64..).zip(image(work.head, tail)) {
            put(IMAGE + at * 4, word);
        }
        home
    }

    /// Puts everything back, with these commands to run, and an image of the context's that is another as far as it goes.
    fn restore(&mut self, work: &Work, image: &[u32]) -> EngineId {
        let id = work.engine;
        self.forget_registers(id);
        self.gt.registers.set(id.info().mmio_base + 0x80, (BASE + at::HWSP * PAGE) as u32);
        self.write_global();
        self.write_foreign();
        let home = World::home_before(work);
        let local = self.gt.memory.local();
        local.slice(self.home, HOME).unwrap().write_slice(&home, 0).unwrap();
        let image: Vec<u8> = image.iter().flat_map(|word| word.to_le_bytes()).collect();
        local.slice(self.home + IMAGE, image.len()).unwrap().write_slice(&image, 0).unwrap();
        let start = start(work.fill);
        self.guests.own.set(&start.ram, &start.remote);
        self.gt.memory.invalidate();
        id
    }

    /// Runs a context, and tells what it leaves; `watched` are the registers to tell of.
    pub fn run(&mut self, work: &Work, watched: &[u32]) -> Left {
        self.run_with_image(work, &[], watched)
    }

    /// The same with an image of the caller's.
    pub fn run_with_image(&mut self, work: &Work, image: &[u32], watched: &[u32]) -> Left {
        let id = self.restore(work, image);
        let outcome = self.execute(work);
        let left = self.left(id, outcome, watched);
        self.engines[id.index()].reset(&self.gt);
        left
    }

    /// The context's image as it is in memory.
    pub fn image_now(&self) -> Vec<u32> {
        let mut bytes = vec![0; (HWSP - IMAGE) as usize];
        self.gt.memory.local().slice(self.home + IMAGE, bytes.len()).unwrap().read_slice(&mut bytes, 0).unwrap();
        bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
    }

    /// Loads the context, as the GuC or the host does.
    fn submit(&mut self, work: &Work) {
        let engine = &mut self.engines[work.engine.index()];
        if work.execlist {
            self.gt.registers.set(work.engine.info().mmio_base + 0x29c, 1 << 3);
            load_queue(engine, &self.gt, DESCRIPTOR);
        } else {
            let load = Load { function: self.function, submitter: Submitter::Guc, context: 1, descriptor: DESCRIPTOR };
            engine.load(&self.gt, load);
        }
    }

    /// Runs the context for as long as it goes.
    fn execute(&mut self, work: &Work) -> Outcome {
        self.submit(work);
        let (budget, steps) = work.interruptions.map_or((STEP, self.patience / STEP), |n| (n, self.patience / n));
        let (mut outcome, mut left) = (Outcome::More, 0);
        // A step that ends at what looks like a loop is short.
        let mut rest = steps * LOOKS;
        while rest != 0 {
            let engine = &mut self.engines[work.engine.index()];
            outcome = engine.step(&self.gt, budget);
            rest = rest.saturating_sub(if outcome == Outcome::Spinning { 1 } else { LOOKS });
            match outcome {
                Outcome::Preempted => {
                    left += 1;
                    self.submit(work);
                }
                // What looks like a loop may end all the same.
                Outcome::More | Outcome::Spinning => {}
                _ => break,
            }
            // Who waits for ever would leave for ever.
            if work.interruptions.is_some() && left < PREEMPTIONS {
                let engine = &mut self.engines[work.engine.index()];
                if work.execlist { load_queue(engine, &self.gt, 0) } else { engine.request_preemption() }
            }
        }
        self.preemptions += left;
        outcome
    }

    fn left(&self, id: EngineId, outcome: Outcome, watched: &[u32]) -> Left {
        let stop = match outcome {
            Outcome::Complete => Stop::Complete,
            Outcome::Waiting => Stop::Waiting,
            Outcome::Halted(Halt::Fault(fault)) => Stop::Fault {
                global: fault.space == Space::Ggtt,
                page: (fault.address & (HIGH - 1)).wrapping_sub(BASE) / PAGE,
            },
            Outcome::Halted(Halt::IllegalCommand { header, address }) => Stop::Illegal { header, address },
            Outcome::More | Outcome::Spinning | Outcome::Preempted => Stop::Endless,
            other => panic!("an engine that has a context says {other:?}"),
        };
        let stays = stop != Stop::Complete;
        let registers = if stays || !self.function.is_vf() {
            watched.iter().map(|offset| (*offset, self.gt.registers.value(*offset))).collect()
        } else {
            BTreeMap::new()
        };
        let mut home = vec![0; HOME];
        self.gt.memory.local().slice(self.home, HOME).unwrap().read_slice(&mut home, 0).unwrap();
        let image = if stays || watched.is_empty() {
            BTreeMap::new()
        } else {
            let words = home[IMAGE as usize..HWSP as usize].chunks_exact(4);
            let words: Vec<u32> = words.map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
            registers_of(&words, id.info().mmio_base)
        };
        home[IMAGE as usize..HWSP as usize].fill(0);
        // When the context was last on the engine (V8-041, V8-214): a matter of interruptions.
        home[PPHWSP as usize + 0x40..PPHWSP as usize + 0x80].fill(0);
        // And the status of its switches (V8-057).
        home[HWSP as usize + 0x40..HWSP as usize + 0xc0].fill(0);
        let (ram, remote) = self.guests.own.bytes();
        let entries = (0..at::END).map(|page| self.gt.memory.ggtt().entry(BASE / PAGE + page).0).collect();
        let foreign = self.foreign_bytes();
        Left { stop, home, ram, remote, foreign, entries, registers, image }
    }

    /// Whether nothing was written that is nobody's business here: memory of others, and local memory that no table of the
    /// context's leads to.
    pub fn unharmed(&self) -> Result<(), String> {
        self.unharmed_beyond(HOME as u64)
    }

    /// The same for a context that may have made page tables of its own, which lead to all that a VF has.
    pub fn neighbours_unharmed(&self) -> Result<(), String> {
        self.unharmed_beyond(FRAME)
    }

    /// Nothing was written but so many bytes of local memory, and what is the function's own elsewhere.
    fn unharmed_beyond(&self, own: u64) -> Result<(), String> {
        let (ram, remote) = self.guests.other.bytes();
        if ram != canaries(RAM.1) || remote != canaries(REMOTE.1) {
            return Err("another function's guest memory was written".to_owned());
        }
        let local = self.gt.memory.local();
        if self.function.is_vf() && self.foreign_bytes() != canaries(PAGE as usize) {
            return Err("another function's local memory was written".to_owned());
        }
        for range in local.data(0..LOCAL) {
            let known = [
                self.home..self.home + own,
                self.foreign()..self.foreign() + PAGE,
                LMTT..LMTT + PAGE,
                LMTT + 0x1_0000..LMTT + 0x1_0000 + PAGE,
                LMTT + 0x2_0000..LMTT + 0x2_0000 + PAGE,
            ];
            let mut at = range.start;
            while at < range.end {
                match known.iter().find(|part| part.contains(&at)) {
                    Some(part) => at = part.end,
                    None => return Err(format!("local memory at {at:#x} was written")),
                }
            }
        }
        Ok(())
    }

    /// Brings back a card that somebody had who may do anything with it.
    pub fn power_cycle(&self) {
        for (offset, reset) in &self.resets {
            self.gt.registers.set(*offset, *reset);
        }
        self.gt.memory.local().clear(0..LOCAL);
        self.ggtt.clear(0..GGTT_BYTES as u64);
        self.hand_out();
        self.forget_guests();
    }

    /// What registers hold when a run starts.
    pub fn initial(&self, engine: EngineId, registers: &[u32]) -> BTreeMap<u32, u32> {
        self.forget_registers(engine);
        registers.iter().map(|offset| (*offset, self.gt.registers.value(*offset))).collect()
    }

    /// A register as the PF's driver reads it.
    pub fn register(&self, offset: u32) -> u32 {
        self.gt.read(offset)
    }
}

/// The process's tables: one table of pages, reached from two entries of the root.
fn tables() -> Vec<u8> {
    let mut home = vec![0; HOME];
    let mut put = |at: u64, value: u64| {
        home[at as usize..at as usize + 8].copy_from_slice(&value.to_le_bytes());
    };
    put(ROOT, POINTERS | 3);
    put(ROOT + 8, POINTERS | 3);
    put(POINTERS, DIRECTORY | 3);
    put(DIRECTORY + (BASE >> 21) * 8, TABLE | 3);
    for page in 0..at::END {
        let entry = match process(page) {
            Page::Home(at) => at | 0x803,
            Page::HomeReadOnly(at) => at | 0x801,
            Page::Guest(iova) => iova | 3,
            Page::Null => 0x203,
            Page::Foreign | Page::Nothing => 0,
        };
        put(TABLE + (BASE >> 12 & 0x1ff) * 8 + page * 8, entry);
    }
    home
}

/// So many bytes of canaries, at most those of [`RAM`].
pub fn canaries(len: usize) -> &'static [u8] {
    static CANARIES: OnceLock<Vec<u8>> = OnceLock::new();
    &CANARIES.get_or_init(|| CANARY.to_le_bytes().repeat(RAM.1 / 8))[..len]
}

/// Descriptor of the context: valid, with a process's space, by its status page.
const DESCRIPTOR: u64 = BASE + at::PPHWSP * PAGE | 0x119;

/// Loads a queue with one element, or none that is valid (V8-018, V8-020).
fn load_queue(engine: &mut Engine, gt: &Gt, descriptor: u64) {
    let queue = engine.id().info().mmio_base + 0x510;
    for n in 0..16 {
        gt.registers.set(queue + n * 4, 0);
    }
    gt.registers.set(queue, descriptor as u32);
    gt.registers.set(queue + 4, (descriptor >> 32) as u32);
    engine.load_queue(gt);
}

/// A sparse file that the card and a VMM map.
fn shared(len: u64) -> File {
    let file = TempFile::new_with_prefix("/dev/shm/arctic").or_else(|_| TempFile::new()).unwrap().into_file();
    file.set_len(len).unwrap();
    file
}

/// What memory starts with.
pub struct Start {
    /// The context's part of local memory: page tables and data.
    pub home: Vec<u8>,
    pub ram: Vec<u8>,
    pub remote: Vec<u8>,
}

/// What memory starts with where data is filled by `seed`, below [`FILLS`].
pub fn start(seed: u64) -> &'static Start {
    static STARTS: [OnceLock<Start>; FILLS as usize] = [const { OnceLock::new() }; FILLS as usize];
    STARTS[seed as usize % FILLS as usize].get_or_init(|| {
        let mut home = tables();
        for at in (GLOBAL_DATA..READ_ONLY + PAGE).step_by(4) {
            home[at as usize..at as usize + 4].copy_from_slice(&fill(seed, at).to_le_bytes());
        }
        let part = |first: u64, len: usize| {
            (0..len as u64 / 4).flat_map(|n| fill(seed, first + n * 4).to_le_bytes()).collect::<Vec<u8>>()
        };
        Start { home, ram: part(RAM.0, RAM.1), remote: part(REMOTE.0, REMOTE.1) }
    })
}

/// What a context image says of registers, by their offsets (V8-046).
fn registers_of(words: &[u32], base: u32) -> BTreeMap<u32, u32> {
    let mut found = BTreeMap::new();
    let mut at = 0;
    while let Some(&header) = words.get(at) {
        if header >> 23 != 0x22 {
            if header >> 23 == 0x0a {
                break;
            }
            at += if header >> 23 == 0x29 { 4 } else { 1 };
            continue;
        }
        let len = (header & 0xff) as usize + 2;
        for pair in words.get(at + 1..at + len).unwrap_or_default().chunks_exact(2) {
            let offset = if header >> 19 & 1 != 0 { base + (pair[0] & 0xfff) } else { pair[0] & 0x7f_fffc };
            found.insert(offset, pair[1]);
        }
        at += len;
    }
    found
}
