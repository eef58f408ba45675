// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the command streamer with a minimal card of memory, a manually advanced clock and one engine.
#![allow(clippy::cast_possible_truncation, reason = "test values are in range")]

mod alu;
mod atomics;
mod batches;
mod commands;
mod contexts;
mod engines;
mod errors;
mod flushes;
mod hostile;
mod images;
mod isolation;
mod memirq;
mod observation;
mod opcodes;
mod ordering;
mod power;
mod predicates;
mod privilege;
mod registers;
mod semaphores;
mod skipped;
mod status;
mod trace;
mod transfers;
mod unanswered;
mod violations;
mod walkers;
mod watchdog;
mod whitelists;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use arctic_mi::header::*;
use arctic_mi::{self as mi, ARB_CHECK, BATCH_BUFFER_END as END, Compare, Process, Reg};
use vm_memory::Bytes;

use super::*;
use crate::generation::XE_HPG;
use crate::host::{Dma, InterruptSink, ManualClock, NullHost};
use crate::memory::Memory;
use crate::memory::ggtt::{GGTT_BYTES, Ggtt, GgttEntry};
use crate::memory::region::SharedRegion;
use crate::profile::CardProfile;
use crate::registers::InterruptRegister;
use crate::topology::{EngineClass, EngineId};

/// Counts MSIs and records their functions.
#[derive(Default)]
struct Msis(AtomicU64, Mutex<Vec<Function>>);

impl InterruptSink for Msis {
    fn raise(&self, function: Function, vector: u16) {
        assert_eq!(vector, 0);
        self.0.fetch_add(1, Ordering::SeqCst);
        self.1.lock().unwrap().push(function);
    }

    fn set_line(&self, _: Function, _: bool) {}
}

impl Msis {
    /// Returns the functions of the MSIs sent since the last call.
    fn take(&self) -> Vec<Function> {
        std::mem::take(&mut *self.1.lock().unwrap())
    }
}

const LOCAL: usize = 16 << 20;
/// PPGTT page tables: the root, and a directory of 2 MiB pages that maps local memory at [`VA`].
const ROOT: u64 = 0xc0_0000;
/// LMTT directory, followed by the table of one VF.
const LMTT: u64 = 0xd0_0000;
/// Address of local memory in the PPGTT.
const VA: u64 = 1 << 30;
/// 1 GiB of NULL pages in the PPGTT.
const NULL_VA: u64 = 2 << 30;
/// Contexts: ring at +0, PPHWSP at +0x4000, image at +0x5000, workaround batch at +0x6000.
const CONTEXTS: u64 = 0x10_0000;
/// Addresses of test batches and data in local memory. The GGTT maps local memory at identical addresses.
const BATCH: u64 = 0x20_0000;
const DATA: u64 = 0x30_0000;

/// A card with one engine.
struct EngineBench {
    gt: Gt,
    clock: Arc<ManualClock>,
    msis: Arc<Msis>,
    engine: Engine,
    /// Function that owns the contexts loaded by [`EngineBench::submit`].
    function: Function,
}

/// A context in the memory of the bench.
#[derive(Clone, Copy)]
struct Context {
    at: u64,
}

impl Context {
    fn load(self) -> Load {
        let descriptor = self.pphwsp() | 0x119;
        Load { function: Function::PF, submitter: Submitter::Guc, context: self.at as u32, descriptor, members: 0 }
    }

    fn pphwsp(self) -> u64 {
        self.at + 0x4000
    }

    fn image(self, dword: usize) -> u64 {
        self.at + 0x5000 + dword as u64 * 4
    }
}

impl EngineBench {
    fn new(class: EngineClass) -> Self {
        EngineBench::beside(class, Arc::new(NullHost))
    }

    /// Creates a card with guest memory.
    fn beside(class: EngineClass, guest: Arc<dyn Dma>) -> Self {
        EngineBench::of(crate::registers::tests::profile(), class, guest)
    }

    /// Creates the card described by `profile` with guest memory.
    fn of(profile: CardProfile, class: EngineClass, guest: Arc<dyn Dma>) -> Self {
        EngineBench::assemble(profile, class, guest, LOCAL)
    }

    /// Creates a card with `local` bytes of local memory, of which GGTT and PPGTT map the first [`LOCAL`].
    fn with_local(class: EngineClass, local: usize) -> Self {
        let profile = crate::registers::tests::profile();
        EngineBench::assemble(profile, class, Arc::new(NullHost), local)
    }

    fn assemble(profile: CardProfile, class: EngineClass, guest: Arc<dyn Dma>, local: usize) -> Self {
        let ggtt = Ggtt::new(SharedRegion::anonymous(GGTT_BYTES).unwrap());
        for page in 0..LOCAL as u64 >> 12 {
            ggtt.set_entry(page, GgttEntry::from(page << 12 | 3));
        }
        let memory = Memory::new(XE_HPG.page_tables, SharedRegion::anonymous(local).unwrap(), ggtt, guest);
        let clock = Arc::new(ManualClock::default());
        let msis = Arc::new(Msis::default());
        let gt = Gt::new(&profile, memory, msis.clone(), clock.clone());
        let bench = EngineBench {
            gt,
            clock,
            msis,
            engine: Engine::new(&XE_HPG, XE_HPG.engines.find(class, 0).unwrap()),
            function: Function::PF,
        };
        bench.put64(ROOT, ROOT + 0x1003);
        bench.put64(ROOT + 0x1000 + 8, ROOT + 0x2003);
        bench.put64(ROOT + 0x1000 + 16, 0x283);
        for page in 0..LOCAL as u64 >> 21 {
            bench.put64(ROOT + 0x2000 + page * 8, page << 21 | 0x883);
        }
        bench
    }

    /// Creates a card with the given engine.
    fn on(engine: EngineId) -> Self {
        EngineBench { engine: Engine::new(&XE_HPG, engine), ..EngineBench::new(XE_HPG.engines.info(engine).class) }
    }

    /// Enables and unmasks every event of every engine for `function`.
    fn listen(&self, function: Function) {
        let tree = self.gt.interrupts_of(function);
        for enables in [0x19_0030, 0x19_0034, 0x19_0048] {
            tree.write(InterruptRegister::Enable, enables, 0, u32::MAX);
        }
        tree.write(InterruptRegister::MasterTile, 0x19_0008, 0, 1 << 31);
    }

    /// Reads and clears an engine's interrupt identity in `function`'s registers. Returns class, instance and events,
    /// or `None` if the identity is not valid.
    fn take_identity(&self, function: Function, engine: EngineId) -> Option<(u8, u8, u16)> {
        let tree = self.gt.interrupts_of(function);
        let (bank, bit) = XE_HPG.engines.info(engine).interrupt;
        let bank = u16::from(bank);
        tree.write(InterruptRegister::Selector, 0x19_0070, bank, 1 << bit);
        let identity = tree.read(InterruptRegister::Identity, bank);
        tree.write(InterruptRegister::Identity, 0x19_0060, bank, 1 << 31);
        tree.write(InterruptRegister::Bank, 0x19_0018, bank, 1 << bit);
        (identity >> 31 != 0).then_some(((identity >> 16 & 7) as u8, (identity >> 20 & 0x3f) as u8, identity as u16))
    }

    /// Creates a card with all GGTT pages assigned to a VF, and local memory mapped as for the PF. [`EngineBench::submit`]
    /// loads contexts of the VF.
    fn of_vf(class: EngineClass, vf: u8) -> Self {
        let mut bench = EngineBench::new(class);
        bench.give(Function::new(vf).unwrap());
        bench
    }

    /// Assigns all GGTT pages to `function`, and local memory at identical addresses (contract D.5). [`EngineBench::submit`]
    /// then loads contexts of `function`.
    fn give(&mut self, function: Function) {
        self.function = function;
        for page in 0..LOCAL as u64 >> 12 {
            self.gt.memory.ggtt().set_entry(page, GgttEntry::from(page << 12 | u64::from(function.number()) << 2 | 3));
        }
        if function.is_vf() {
            self.put(LMTT + 4 * u64::from(function.number()), ((LMTT + 0x1_0000) >> 16 << 4) as u32 | 1);
            for frame in 0..LOCAL as u64 >> 21 {
                self.put(LMTT + 0x1_0000 + 4 * frame, (frame << 5) as u32 | 1);
            }
            self.gt.memory.set_lmem_cfg((LMTT >> 16) as u32 | 1 << 31);
            self.gt.memory.set_quota(function, LOCAL as u64);
        }
    }

    fn base(&self) -> u32 {
        XE_HPG.engines.info(self.engine.id()).mmio_base
    }

    fn get(&self, at: u64) -> u32 {
        self.gt.memory.local().slice(at, 4).unwrap().load(0, Ordering::Acquire).unwrap()
    }

    fn put(&self, at: u64, value: u32) {
        self.gt.memory.local().slice(at, 4).unwrap().store(value, 0, Ordering::Release).unwrap();
    }

    fn put64(&self, at: u64, value: u64) {
        self.gt.memory.local().slice(at, 8).unwrap().store(value, 0, Ordering::Release).unwrap();
    }

    fn get64(&self, at: u64) -> u64 {
        self.gt.memory.local().slice(at, 8).unwrap().load(0, Ordering::Acquire).unwrap()
    }

    fn write(&self, at: u64, dwords: &[u32]) {
        for (n, dword) in dwords.iter().enumerate() {
            self.put(at + 4 * n as u64, *dword);
        }
    }

    /// Reads a register of the engine.
    fn own(&self, offset: u32) -> u32 {
        self.gt.registers.value(self.base() + offset)
    }

    /// Returns the location of context `number`.
    fn context_at(&self, number: u64) -> Context {
        Context { at: CONTEXTS + number * 0x1_0000 }
    }

    /// Creates context `number` as initialised by xe, with an empty ring and restore inhibited.
    fn context(&self, number: u64) -> Context {
        let context = self.context_at(number);
        for dword in 0..0x400 {
            self.put(context.image(dword), 0);
        }
        self.write(context.image(0), &XE_HPG.blank_image());
        for (dword, value) in [
            (0x03, 0x0009_0009),
            (0x05, 0),
            (0x07, 0),
            (0x09, context.at as u32),
            (0x0b, 0x3001),
            (0x31, 0),
            (0x33, ROOT as u32),
        ] {
            self.put(context.image(dword), value);
        }
        context
    }

    /// Appends commands to the context's ring, padded to a qword, and advances RING_TAIL.
    fn emit(&self, context: Context, dwords: &[u32]) {
        let mut tail = self.get(context.image(0x07));
        for dword in dwords.iter().copied().chain((!dwords.len().is_multiple_of(2)).then_some(0)) {
            self.put(context.at + u64::from(tail), dword);
            tail = (tail + 4) % 0x4000;
        }
        self.put(context.image(0x07), tail);
    }

    /// Steps the engine while the outcome is `More`. Panics after 100 steps.
    fn run(&mut self) -> Outcome {
        for _ in 0..100 {
            let outcome = self.engine.step(&self.gt, 1000);
            if outcome != Outcome::More {
                return outcome;
            }
        }
        panic!("the engine is still running after 100 steps");
    }

    /// Loads and runs the context.
    fn submit(&mut self, context: Context) -> Outcome {
        self.engine.load(&self.gt, Load { function: self.function, ..context.load() });
        self.run()
    }

    /// Runs commands in the ring of a new context.
    fn ring(&mut self, dwords: &[u32]) -> Outcome {
        let context = self.context(0);
        self.emit(context, dwords);
        self.submit(context)
    }

    /// Runs commands in a non-privileged batch.
    fn batch(&mut self, dwords: &[u32]) -> Outcome {
        self.write(BATCH, dwords);
        self.put(BATCH + 4 * dwords.len() as u64, END);
        self.ring(&start(VA + BATCH))
    }
}

/// Returns MI_BATCH_BUFFER_START of a batch in the PPGTT.
fn start(at: u64) -> [u32; 3] {
    mi::batch_buffer_start(Process(at))
}

/// Returns MI_STORE_DATA_IMM of a dword to the PPGTT.
fn store(at: u64, value: u32) -> [u32; 4] {
    mi::store_data_imm(Process(at), value)
}

/// Returns MI_STORE_REGISTER_MEM of an engine register to the PPGTT.
fn store_register(offset: u32, at: u64) -> [u32; 4] {
    mi::store_register_mem(Reg::Own(offset), Process(at))
}

/// Returns MI_SEMAPHORE_WAIT in poll mode on a PPGTT address, with the given comparison.
fn wait(compare: u32, at: u64, value: u32) -> [u32; 5] {
    let mut command = mi::semaphore_wait(Process(at), Compare::Greater, value);
    command[0] |= compare << 12;
    command
}
