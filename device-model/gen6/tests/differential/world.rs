// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A card with a small guest that executes a case.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use arctic_base::host::{Access, Dma, DmaView, Function, ManualClock, NullHost};
use arctic_gen6::engine::{Engine, Outcome};
use arctic_gen6::gt::Gt;
use arctic_gen6::memory::{PAGE, Pte};
use arctic_gen6::topology::EngineId;
use arctic_test_support::differential::compare::Disagreement;
use vm_memory::mmap::MmapRegion;
use vm_memory::{Bytes, VolatileMemory, VolatileSlice};

use super::grammar::*;

/// Number of commands that are executed at most.
pub const TIMEOUT: u32 = 400;

/// State after a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Why the engine stopped.
    pub stop: Stop,
    /// Memory of the guest without the images of contexts.
    pub memory: Vec<u32>,
    /// Entries of the GGTT up to the directory.
    pub entries: Vec<u32>,
    /// Registers with their offsets.
    pub registers: Vec<(u32, u32)>,
}

/// Why an engine stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    /// Everything was executed.
    Done,
    /// It was still executing.
    Endless,
    /// It waits.
    Waiting,
    /// It met an error.
    Halted,
}

/// Where two states differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The reasons for the end: the engine's, and the reference's.
    Stop(Stop, Stop),
    /// Memory of the guest.
    Memory,
    /// Entries of the GGTT.
    Entry,
    /// A register, by offset.
    Register(u32),
}

impl Left {
    /// The first difference to `other`.
    pub fn difference(&self, other: &Left) -> Option<Disagreement<Kind>> {
        let disagreement = |kind, line| Some(Disagreement { kind, lines: vec![line] });
        if self.stop != other.stop {
            let line = format!("the engine is {:?}, the reference {:?}", self.stop, other.stop);
            return disagreement(Kind::Stop(self.stop, other.stop), line);
        }
        let memory = self.memory.iter().zip(&other.memory).position(|(one, other)| one != other);
        if let Some(at) = memory {
            let line = format!("memory {:#x}: {:#x}, reference {:#x}", at * 4, self.memory[at], other.memory[at]);
            return disagreement(Kind::Memory, line);
        }
        let entry = self.entries.iter().zip(&other.entries).position(|(one, other)| one != other);
        if let Some(at) = entry {
            let line = format!("entry {at:#x}: {:#x}, reference {:#x}", self.entries[at], other.entries[at]);
            return disagreement(Kind::Entry, line);
        }
        let mut registers = self.registers.iter().zip(&other.registers);
        let ((at, one), (_, other)) = registers.find(|(one, other)| one != other)?;
        disagreement(Kind::Register(*at), format!("register {at:#x}: {one:#x}, reference {other:#x}"))
    }
}

/// Offsets of the registers that are compared, of an engine at `base` with its fault register.
pub fn compared(base: u32, fault: u32) -> Vec<u32> {
    let own = [0x34, 0x3c, 0x68, 0x74, 0x94, 0xb0, 0xb8, 0xc0, 0x110, 0x140, 0x154, 0x180].map(|at| base + at);
    let others = [0x2418, 0x22d0, fault, 0x40a0, 0x4_4018, 0x4_4010];
    own.into_iter().chain(others).chain(PLAIN).chain([0x2350]).collect()
}

/// Base, fault register and first interrupt of an engine.
pub fn engine(class: Class) -> (u8, u32, u32, u32) {
    match class {
        Class::Render => (0, 0x2000, 0x4094, 0),
        Class::Copy => (2, 0x2_2000, 0x4294, 22),
    }
}

/// Memory of the guest, and the pages of it that were taken for a write.
#[derive(Clone)]
struct Guest(Arc<MmapRegion>, Arc<Mutex<BTreeSet<u32>>>);

impl Guest {
    fn dword(&self, at: u32) -> VolatileSlice<'_> {
        self.0.get_slice(at as usize, 4).expect("an address of the guest")
    }

    fn put(&self, at: u32, value: u32) {
        self.dword(at).write_obj(value, 0).expect("a dword");
    }

    fn get(&self, at: u32) -> u32 {
        self.dword(at).read_obj(0).expect("a dword")
    }

    /// All dwords.
    fn dwords(&self) -> Vec<u32> {
        (0..GUEST).step_by(4).map(|at| self.get(at)).collect()
    }
}

impl DmaView for Guest {
    fn slice(&self, iova: u64, len: usize, access: Access) -> Option<VolatileSlice<'_>> {
        let at = usize::try_from(iova).ok()?;
        let slice = self.0.get_slice(at, len.min(self.0.size().checked_sub(at).filter(|rest| *rest > 0)?)).ok()?;
        if access == Access::Write {
            let last = at + slice.len() - 1;
            self.1.lock().expect("no panic").extend(at as u32 / PAGE..=last as u32 / PAGE);
        }
        Some(slice)
    }
}

impl Dma for Guest {
    fn view(&self, _: Function) -> Arc<dyn DmaView> {
        Arc::new(self.clone())
    }
}

/// A card in its initial state.
pub struct World {
    gt: Gt,
    guest: Guest,
    engine: Engine,
}

/// Contents of the guest at the start: the ring, batches, images of contexts, the page table.
pub fn contents(case: &Case) -> Vec<(u32, u32)> {
    let mut put = Vec::new();
    for (n, word) in case.ring_words().into_iter().enumerate() {
        put.push((RING + (case.head + n as u32 * 4) % RING_BYTES, word));
    }
    for (n, batch) in case.batches.iter().enumerate() {
        let start = BATCHES[n % BATCHES.len()] + if n < BATCHES.len() { 0 } else { BEHIND };
        put.extend((start..).step_by(4).zip(batch.concat()));
    }
    for (image, commands) in CONTEXTS.into_iter().zip(&case.images) {
        put.extend((image..).step_by(4).zip(commands.concat()));
    }
    put.extend((0..16).map(|page| (TABLE + page * 4, (page + 16) << 12 | 1)));
    put
}

/// Registers at the start.
pub fn registers(case: &Case) -> Vec<(u32, u32)> {
    let (_, base, ..) = engine(case.class);
    let [codes, semaphores @ ..] = &case.values[PLAIN.len()..] else { unreachable!() };
    let mut written: Vec<_> = PLAIN.into_iter().zip(case.values.iter().copied()).collect();
    written.extend([
        (base + 0x28, 0x001f_0000 | codes & 1),
        (base + 0x40, semaphores[0]),
        (base + 0x44, semaphores[1]),
        (base + 0x48, semaphores[2]),
        (base + 0x98, !0x89),
        (base + 0xa8, 0),
        (base + 0xb4, !1),
        (0x4_4014, 0),
        (base + 0x220, 1),
        (base + 0x228, DIRECTORY / 16 << 16),
        (base + 0x29c, 0x0200_0000 | u32::from(case.ppgtt) << 9),
        (base + 0x9c, 0x1000_1000),
        (0x2350, 0x77),
    ]);
    written
}

impl World {
    /// A card with the contents of `case`.
    pub fn new(case: &Case) -> World {
        let guest = Guest(Arc::new(MmapRegion::new(GUEST as usize).expect("memory")), Arc::default());
        let profile = toml::from_str(include_str!("../../../../configs/ivb.toml")).expect("a card");
        let host = arctic_base::gpu::Host {
            memory: Arc::new(guest.clone()),
            interrupts: Arc::new(NullHost),
            clock: Arc::new(ManualClock::default()),
        };
        let gt = Gt::new(&profile, host);
        (1..16).for_each(|page| gt.ggtt.set(page, Pte(page << 12 | 1)));
        gt.ggtt.set(DIRECTORY, Pte(TABLE | 1));
        contents(case).into_iter().for_each(|(at, value)| guest.put(at, value));
        let (index, base, ..) = engine(case.class);
        let id = EngineId::new(index);
        let status = gt.generation.engine(id).status_page;
        let ring = [(status, STATUS), (base + 0x38, RING), (base + 0x34, case.head)];
        let tail = (case.head + case.ring_words().len() as u32 * 4) % RING_BYTES;
        let start = [(base + 0x30, tail), (base + 0x3c, 0x1001)];
        for (at, value) in registers(case).into_iter().chain(ring).chain(start) {
            gt.write(at, value, !0);
        }
        World { gt, guest, engine: Engine::new(id) }
    }

    /// Executes the case.
    pub fn run(mut self, case: &Case) -> Left {
        let before = self.guest.dwords();
        let outcome = self.engine.step(&self.gt, &*self.gt.view(), TIMEOUT);
        let changed = (0..).step_by(4).zip(before.iter().zip(self.guest.dwords()));
        let marked = self.guest.1.lock().expect("no panic").clone();
        for (at, _) in changed.filter(|(_, (before, now))| **before != *now) {
            assert!(marked.contains(&(at / PAGE)), "the dword at {at:#x} was changed without a mark");
        }
        let (_, base, fault, _) = engine(case.class);
        let idle = !self.engine.in_batch() && self.gt.read(base + 0x34) & 0x1f_fffc == self.gt.read(base + 0x30);
        let stop = match outcome {
            Outcome::Waiting => Stop::Waiting,
            Outcome::Halted => Stop::Halted,
            _ if idle => Stop::Done,
            _ => Stop::Endless,
        };
        let image = |at: &u32| !(CONTEXTS[0]..BATCHES[0]).contains(at);
        Left {
            stop,
            memory: (0..GUEST).step_by(4).map(|at| if image(&at) { self.guest.get(at) } else { 0 }).collect(),
            entries: (0..DIRECTORY).map(|page| self.gt.ggtt.entry(page).0).collect(),
            registers: compared(base, fault).into_iter().map(|at| (at, self.gt.read(at))).collect(),
        }
    }
}
