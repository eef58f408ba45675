// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The engine under test: a card with memory, guests and a context. Each run starts from the same state.

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::Arc;

use arctic_device_model::compute::WalkerCounts;
use arctic_device_model::engine::{Engine, Halt, Load, Outcome, Submitter};
use arctic_device_model::generation::XE_HPG;
use arctic_device_model::gt::Gt;
use arctic_device_model::host::{ALL_FUNCTIONS, Function, InterruptSink, ManualClock};
use arctic_device_model::memory::ggtt::{GGTT_BYTES, Ggtt, GgttEntry};
use arctic_device_model::memory::region::SharedRegion;
use arctic_device_model::memory::{self, Memory};
use arctic_device_model::profile::CardProfile;
use arctic_device_model::topology::EngineId;
use vm_memory::Bytes;
use vmm_sys_util::tempfile::TempFile;

use crate::differential::guests::{Guest, Guests};
use crate::differential::initial::{canaries, initial_local, initial_memory};
use crate::differential::layout::*;

/// Frames of local memory: one each for the PF, the VF, the other VF and the LMTT.
const FRAME: u64 = 2 << 20;
const CARD_LOCAL: u64 = 4 * FRAME;
const LMTT: u64 = 3 * FRAME;

/// Maximum number of preemptions of a context per run.
const PREEMPTIONS: u64 = 64;

/// Maximum number of commands per engine step.
pub const STEP: u32 = 1024;
/// Maximum number of commands per run.
pub const TIMEOUT: u32 = 64 * STEP;
/// Number of steps ending in `Outcome::Spinning` that count as one full step.
const SPINNING_STEPS: u32 = 64;

struct NullSink;

impl InterruptSink for NullSink {
    fn raise(&self, _: Function, vector: u16) {
        assert_eq!(vector, 0);
    }

    fn set_line(&self, _: Function, _: bool) {}
}

/// An access without a valid translation: its space, and the first address of its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    pub space: Space,
    pub page: u64,
}

/// Reason for the end of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The ring is empty.
    Complete,
    /// The parser waits at a semaphore.
    Waiting,
    /// The maximum number of commands was reached.
    Endless,
    /// An access without a valid translation.
    Fault(Fault),
    /// A command that the engine does not have.
    Illegal { header: u32, address: u64 },
}

impl Stop {
    /// Returns the name of the reason.
    pub fn name(&self) -> &'static str {
        match self {
            Stop::Complete => "Complete",
            Stop::Waiting => "Waiting",
            Stop::Endless => "Endless",
            Stop::Fault(_) => "Fault",
            Stop::Illegal { .. } => "Illegal",
        }
    }
}

/// Work for an engine.
#[derive(Clone, Debug)]
pub struct Work {
    pub engine: EngineId,
    /// Offset in the ring at which execution starts.
    pub head: u32,
    pub ring: Vec<u32>,
    /// Contents of the batches, one page each.
    pub batches: Vec<Vec<u32>>,
    /// Seed of the initial contents of the data pages.
    pub fill: u64,
    /// Number of commands per step; a preemption is requested after each step. Preemptions must not change the
    /// resulting state.
    pub interruptions: Option<u32>,
    /// The host submits the context through the engine's execlist port (V8-010..020) instead of the GuC; PF only.
    pub execlist: bool,
}

impl Work {
    /// Returns the offset in the ring behind the last command.
    pub fn tail(&self) -> u32 {
        (self.head + self.ring.len() as u32 * 4) % RING_BYTES
    }
}

/// Memory and GGTT after a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinalMemory {
    /// The context's part of local memory, without what [`without_undefined`] clears.
    pub local: Vec<u8>,
    pub ram: Vec<u8>,
    pub remote: Vec<u8>,
    /// The page of another function that is mapped in the PF's GGTT.
    pub foreign: Vec<u8>,
    /// GGTT entries of [`GGTT_PAGES`].
    pub entries: Vec<u64>,
}

/// Returns the context's part of local memory after a run with zeros in what the reference does not model: the pages of
/// the image, which is compared by registers, the times of the last context switch (V8-041, V8-214) and the context switch
/// status (V8-057), which both depend on preemptions.
pub fn without_undefined(mut local: Vec<u8>) -> Vec<u8> {
    for (start, end) in [(IMAGE, HWSP), (PPHWSP + 0x40, PPHWSP + 0x80), (HWSP + 0x40, HWSP + 0xc0)] {
        local[start as usize..end as usize].fill(0);
    }
    local
}

/// State after a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinalState {
    pub stop: Stop,
    pub memory: FinalMemory,
    /// Register values by offset; empty if a VF's context is no longer loaded.
    pub registers: BTreeMap<u32, u32>,
    /// Register values in the saved image, by offset; empty while the context is loaded.
    pub image: BTreeMap<u32, u32>,
}

/// A card for contexts of one function.
pub struct World {
    pub gt: Gt,
    pub function: Function,
    guests: Arc<Guests>,
    /// The GGTT as mapped by a VMM.
    ggtt: SharedRegion,
    /// Reset values of the registers.
    resets: Vec<(u32, u32)>,
    /// Indexed by engine number.
    engines: Vec<Engine>,
    /// Device address of the function's first frame of local memory.
    frame: u64,
    /// Maximum number of commands per run; at least [`STEP`].
    pub timeout: u32,
    /// Number of times that a context was preempted.
    pub preemptions: u64,
}

impl World {
    /// Creates a card for contexts of the PF or of a VF.
    pub fn new(vf: bool) -> Self {
        let function = if vf { VF } else { Function::PF };
        let frame = if vf { FRAME } else { 0 };
        let (local, table) = (shared(CARD_LOCAL), shared(GGTT_BYTES as u64));
        let map = |file: &File, len| SharedRegion::from_file(file.try_clone().unwrap(), len).unwrap();
        let ggtt = Ggtt::new(map(&table, GGTT_BYTES));
        let guests = Arc::new(Guests { function, own: Arc::new(Guest::new()), other: Arc::new(Guest::new()) });
        let memory = Memory::new(XE_HPG.page_tables, map(&local, CARD_LOCAL as usize), ggtt, guests.clone());
        let profile: CardProfile = toml::from_str(include_str!("../../../configs/flex170.toml")).unwrap();
        let clock = Arc::new(ManualClock::default());
        clock.advance(TIMESTAMP / 12 * 625);
        let gt = Gt::new(&profile, memory, Arc::new(NullSink), clock);
        let engines = XE_HPG.engines.all().map(|id| Engine::new(&XE_HPG, id)).collect();
        let resets = gt.registers.listing().map(|(offset, found)| (offset, found.reset)).collect();
        let ggtt = map(&table, GGTT_BYTES);
        let world = World { gt, function, guests, ggtt, resets, engines, frame, preemptions: 0, timeout: TIMEOUT };
        world.hand_out();
        world.forget_guests();
        world
    }

    /// Writes the LMTT and sets the quotas of both VFs.
    fn hand_out(&self) {
        let put = |at: u64, value: u32| self.gt.memory.local().slice(at, 4).unwrap().write_obj(value, 0).unwrap();
        for (number, vf, frame) in [(0, VF, 1u32), (1, NEIGHBOUR, 2)] {
            let table = LMTT + 0x1_0000 * (number + 1);
            put(LMTT + 4 * vf.number() as u64, (table >> 16 << 4) as u32 | 1);
            put(table, frame << 5 | 1);
            self.gt.memory.set_quota(vf, FRAME);
        }
        self.gt.memory.set_lmem_cfg((LMTT >> 16) as u32 | 1 << 31);
    }

    /// Fills a page of another function's local memory with canaries.
    fn write_foreign(&self) {
        let page = self.gt.memory.local().slice(self.foreign(), PAGE as usize).unwrap();
        page.write_slice(canaries(PAGE as usize), 0).unwrap();
    }

    fn foreign_bytes(&self) -> Vec<u8> {
        let mut page = vec![0; PAGE as usize];
        self.gt.memory.local().slice(self.foreign(), page.len()).unwrap().read_slice(&mut page, 0).unwrap();
        page
    }

    /// Returns the device address of the page of another function that is mapped in the GGTT.
    fn foreign(&self) -> u64 {
        if self.function.is_vf() { 0 } else { 2 * FRAME }
    }

    /// Writes the initial GGTT entries of a run.
    fn write_ggtt(&self) {
        for page in GGTT_PAGES {
            self.gt.memory.ggtt().set_entry(page, GgttEntry::from(ggtt_entry(page, self.function.is_vf())));
        }
    }

    /// Resets the engine's registers and the function's own registers (V8-142).
    fn forget_registers(&self, engine: EngineId) {
        self.gt.registers.reset_engine(engine);
        if let Some(vf) = self.gt.vf(self.function) {
            vf.reset();
        }
    }

    fn forget_guests(&self) {
        self.guests.other.set(canaries(RAM.1), canaries(REMOTE.1));
    }

    /// Restores the initial state for this work; `image` replaces the first dwords of the context image.
    fn restore(&mut self, work: &Work, image: &[u32]) -> EngineId {
        let id = work.engine;
        self.forget_registers(id);
        self.gt.registers.set(XE_HPG.engines.info(id).mmio_base + 0x80, (BASE + at::HWSP * PAGE) as u32);
        self.write_ggtt();
        self.write_foreign();
        let initial = initial_local(work);
        let local = self.gt.memory.local();
        local.slice(self.frame, LOCAL_BYTES).unwrap().write_slice(&initial, 0).unwrap();
        let image: Vec<u8> = image.iter().flat_map(|word| word.to_le_bytes()).collect();
        local.slice(self.frame + IMAGE, image.len()).unwrap().write_slice(&image, 0).unwrap();
        let initial = initial_memory(work.fill);
        self.guests.own.set(&initial.ram, &initial.remote);
        self.gt.memory.invalidate(ALL_FUNCTIONS);
        id
    }

    /// Sets the cost, in instructions, after which a step of the engine's walkers ends.
    pub fn set_walker_cost(&mut self, engine: EngineId, cost: u64) {
        let unit = self.engines[engine.index()].execution_units();
        (unit.part_cost, unit.step_cost) = (cost, cost);
    }

    /// Returns the number of walkers of the function that are parked.
    pub fn parked(&self) -> usize {
        self.gt.parked.count(self.function)
    }

    /// Returns what the engine's walkers have executed since the card was created.
    pub fn walkers(&self, engine: EngineId) -> WalkerCounts {
        self.engines[engine.index()].counters().walkers.executed
    }

    /// Runs a context and returns the resulting state, including the registers `watched`.
    pub fn run(&mut self, work: &Work, watched: &[u32]) -> FinalState {
        self.run_with_image(work, &[], watched)
    }

    /// Same as [`World::run`]; `image` replaces the first dwords of the context image.
    pub fn run_with_image(&mut self, work: &Work, image: &[u32], watched: &[u32]) -> FinalState {
        let id = self.restore(work, image);
        let outcome = self.execute(work);
        let state = self.final_state(id, outcome, watched);
        self.guests.own.check_marks(&initial_memory(work.fill).ram);
        self.engines[id.index()].reset(&self.gt);
        state
    }

    /// Returns the context's image from memory.
    pub fn image_now(&self) -> Vec<u32> {
        let mut bytes = vec![0; (HWSP - IMAGE) as usize];
        self.gt.memory.local().slice(self.frame + IMAGE, bytes.len()).unwrap().read_slice(&mut bytes, 0).unwrap();
        bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
    }

    /// Loads the context, as the GuC does or through the execlist port.
    fn submit(&mut self, work: &Work) {
        let engine = &mut self.engines[work.engine.index()];
        if work.execlist {
            self.gt.registers.set(XE_HPG.engines.info(work.engine).mmio_base + 0x29c, 1 << 3);
            load_queue(engine, &self.gt, DESCRIPTOR);
        } else {
            let load = Load {
                function: self.function,
                submitter: Submitter::Guc,
                context: 1,
                descriptor: DESCRIPTOR,
                members: 0,
            };
            engine.load(&self.gt, load);
        }
    }

    /// Runs the context until it stops or reaches the limit of commands.
    fn execute(&mut self, work: &Work) -> Outcome {
        self.submit(work);
        let (budget, steps) = work.interruptions.map_or((STEP, self.timeout / STEP), |n| (n, self.timeout / n));
        let (mut outcome, mut left) = (Outcome::More, 0);
        // A step that ends in a spinning loop is short.
        let mut rest = steps * SPINNING_STEPS;
        while rest != 0 {
            let engine = &mut self.engines[work.engine.index()];
            outcome = engine.step(&self.gt, budget);
            rest = rest.saturating_sub(if outcome == Outcome::Spinning { 1 } else { SPINNING_STEPS });
            match outcome {
                Outcome::Preempted => {
                    left += 1;
                    self.submit(work);
                }
                // A loop that spins may still end.
                Outcome::More | Outcome::Spinning => {}
                _ => break,
            }
            // Bounded, because a context that never completes would be preempted forever.
            if work.interruptions.is_some() && left < PREEMPTIONS {
                let engine = &mut self.engines[work.engine.index()];
                if work.execlist { load_queue(engine, &self.gt, 0) } else { engine.request_preemption() }
            }
        }
        self.preemptions += left;
        outcome
    }

    fn final_state(&self, id: EngineId, outcome: Outcome, watched: &[u32]) -> FinalState {
        let stop = match outcome {
            Outcome::Complete => Stop::Complete,
            Outcome::Waiting => Stop::Waiting,
            Outcome::Halted(Halt::Fault(fault)) => Stop::Fault(Fault {
                space: if fault.space == memory::Space::Ggtt { Space::Ggtt } else { Space::Ppgtt },
                page: fault.address & !(PAGE - 1),
            }),
            Outcome::Halted(Halt::IllegalCommand { header, address }) => Stop::Illegal { header, address },
            Outcome::More | Outcome::Spinning | Outcome::Preempted => Stop::Endless,
            other => panic!("unexpected outcome {other:?} of an engine with a context"),
        };
        let stays = stop != Stop::Complete;
        let registers = if stays || !self.function.is_vf() {
            watched.iter().map(|offset| (*offset, self.gt.registers.value(*offset))).collect()
        } else {
            BTreeMap::new()
        };
        let mut local = vec![0; LOCAL_BYTES];
        self.gt.memory.local().slice(self.frame, LOCAL_BYTES).unwrap().read_slice(&mut local, 0).unwrap();
        let image = if stays || watched.is_empty() {
            BTreeMap::new()
        } else {
            let words = local[IMAGE as usize..HWSP as usize].chunks_exact(4);
            let words: Vec<u32> = words.map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
            registers_of(&words, XE_HPG.engines.info(id).mmio_base)
        };
        let (ram, remote) = self.guests.own.bytes();
        let entries = GGTT_PAGES.map(|page| self.gt.memory.ggtt().entry(page).into_bits()).collect();
        let memory =
            FinalMemory { local: without_undefined(local), ram, remote, foreign: self.foreign_bytes(), entries };
        FinalState { stop, memory, registers, image }
    }

    /// Checks memory that the context must not change: memory of other functions, and local memory that the context's
    /// page tables do not map.
    pub fn unharmed(&self) -> Result<(), String> {
        self.unharmed_beyond(LOCAL_BYTES as u64)
    }

    /// Same as [`World::unharmed`], for a context that may have modified its page tables to map all of a VF's memory.
    pub fn neighbours_unharmed(&self) -> Result<(), String> {
        self.unharmed_beyond(FRAME)
    }

    /// Checks that nothing was written except the first `own` bytes of the function's local memory and the function's
    /// own memory elsewhere.
    fn unharmed_beyond(&self, own: u64) -> Result<(), String> {
        let (ram, remote) = self.guests.other.bytes();
        if ram != canaries(RAM.1) || remote != canaries(REMOTE.1) {
            return Err("another function's guest memory was written".to_owned());
        }
        let local = self.gt.memory.local();
        if self.function.is_vf() && self.foreign_bytes() != canaries(PAGE as usize) {
            return Err("another function's local memory was written".to_owned());
        }
        for range in local.data(0..CARD_LOCAL) {
            let known = [
                self.frame..self.frame + own,
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

    /// Restores a card after privileged work that may have changed any state.
    pub fn power_cycle(&self) {
        for (offset, reset) in &self.resets {
            self.gt.registers.set_all(*offset, *reset);
        }
        self.gt.memory.local().clear(0..CARD_LOCAL);
        self.ggtt.clear(0..GGTT_BYTES as u64);
        self.hand_out();
        self.forget_guests();
    }

    /// Returns the values of registers at the start of a run.
    pub fn initial(&self, engine: EngineId, registers: &[u32]) -> BTreeMap<u32, u32> {
        self.forget_registers(engine);
        registers.iter().map(|offset| (*offset, self.gt.registers.value(*offset))).collect()
    }

    /// Reads a register as the PF's driver does.
    pub fn register(&self, offset: u32) -> u32 {
        self.gt.read(offset)
    }
}

/// Context descriptor: valid, PPGTT enabled, with the address of the PPHWSP and the context's number.
const DESCRIPTOR: u64 = (CONTEXT_ID as u64) << 32 | BASE + at::PPHWSP * PAGE | 0x119;

/// Loads an execlist with one element, or with no valid element if `descriptor` is 0 (V8-018, V8-020).
fn load_queue(engine: &mut Engine, gt: &Gt, descriptor: u64) {
    let queue = XE_HPG.engines.info(engine.id()).mmio_base + 0x510;
    for n in 0..16 {
        gt.registers.set(queue + n * 4, 0);
    }
    gt.registers.set(queue, descriptor as u32);
    gt.registers.set(queue + 4, (descriptor >> 32) as u32);
    engine.load_queue(gt);
}

/// Returns a sparse file that both the card and a VMM map.
fn shared(len: u64) -> File {
    let file = TempFile::new_with_prefix("/dev/shm/arctic").or_else(|_| TempFile::new()).unwrap().into_file();
    file.set_len(len).unwrap();
    file
}

/// Returns the register values in a context image, by register offset (V8-046).
pub fn registers_of(words: &[u32], base: u32) -> BTreeMap<u32, u32> {
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
