// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of execlist submission: a card without GuC firmware, driven through its registers like i915's execlist code,
//! and checked through memory, registers and interrupts.
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "tests: numbers are chosen by the test")]

mod contexts;
mod port;
mod preemption;
mod queue;
mod reports;
mod switches;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use vm_memory::Bytes;

use crate::card::Card;
use crate::engine::Engines;
use crate::generation::XE_HPG;
use crate::gpu::WorkStatus;
use crate::gt::Gt;
use crate::host::{Function, InterruptSink, ManualClock, NullHost};
use crate::memory::Memory;
use crate::memory::ggtt::{GGTT_BYTES, Ggtt, GgttEntry};
use crate::memory::region::SharedRegion;
use crate::topology::{EngineClass, EngineId};

const LOCAL: usize = 16 << 20;
/// Page tables of the process space, which maps local memory at [`VA`].
const ROOT: u64 = 0xc0_0000;
const VA: u64 = 1 << 30;
/// Status pages, one per engine.
const PAGES: u64 = 0x8_0000;
/// Contexts, 64 KiB apart: ring at +0, PPHWSP at +0x4000, image at +0x5000.
const CONTEXTS: u64 = 0x10_0000;
/// Address of the batches.
const BATCH: u64 = 0x80_0000;
/// Data of the tests' commands, 64 KiB per engine.
const DATA: u64 = 0x90_0000;

/// Context ID in status quadwords that means "no context".
const IDLE: u32 = 0xffff;

/// Register offsets and bits, with i915's names.
const ELSP: u32 = 0x230;
const SQ: u32 = 0x510;
const CONTROL: u32 = 0x550;
const LOAD: u32 = 1;
const STATUS: u32 = 0x234;
const STATUS_PTR: u32 = 0x3a0;
const CSB_MASK: u32 = 0x218;
const HWS_PGA: u32 = 0x80;
const GFX_MODE: u32 = 0x29c;

const ARB_CHECK: u32 = 0x0280_0000;
const ARB_OFF: u32 = 0x0400_0000;
const ARB_ON: u32 = 0x0400_0001;
const BATCH_END: u32 = 0x0500_0000;

/// Interrupt sink that records the state of the status page at each interrupt.
#[derive(Default)]
struct Witness {
    card: OnceLock<Weak<Card>>,
    msis: AtomicU64,
    /// Status quadwords and pointers of the copy engine's page at the time of each MSI.
    seen: Mutex<Vec<(u64, u32)>>,
}

impl InterruptSink for Witness {
    fn raise(&self, function: Function, _: u16) {
        assert_eq!(function, Function::PF);
        self.msis.fetch_add(1, Ordering::SeqCst);
        if let Some(card) = self.card.get().and_then(Weak::upgrade) {
            let page = PAGES + copy().index() as u64 * 0x1000;
            let cell =
                |at: u64| card.gt().memory.local().slice(at, 8).unwrap().load::<u64>(0, Ordering::SeqCst).unwrap();
            let pointer = (cell(page + 0xb8) >> 32) as u32 & 0xff;
            self.seen.lock().unwrap().push((cell(page + 0x40 + u64::from(pointer) * 8), pointer));
        }
    }

    fn set_line(&self, _: Function, _: bool) {}
}

/// The engine used by most tests.
fn copy() -> EngineId {
    XE_HPG.engines.find(EngineClass::Copy, 0).unwrap()
}

/// A decoded status quadword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Switch {
    new_queue: bool,
    away: u32,
    to: u32,
    detail: u32,
}

/// N, away, to, detail: the columns of V8-052.
fn switch(new_queue: u8, away: u32, to: u32, detail: u32) -> Switch {
    Switch { new_queue: new_queue != 0, away, to, detail }
}

/// A context in the host's memory, with the ID in its descriptor.
#[derive(Clone, Copy)]
struct Context {
    at: u64,
    id: u32,
}

impl Context {
    fn pphwsp(self) -> u64 {
        self.at + 0x4000
    }

    fn image(self, dword: u64) -> u64 {
        self.at + 0x5000 + dword * 4
    }

    /// Descriptor as i915 composes it: valid, 64-bit addressing, privilege, SW context ID.
    fn descriptor(self) -> u64 {
        u64::from(self.id) << 39 | self.pphwsp() | 1 << 8 | 3 << 3 | 1
    }
}

/// A driver that schedules contexts itself, without the GuC.
struct Host {
    card: Arc<Card>,
    clock: Arc<ManualClock>,
    witness: Arc<Witness>,
    engine: EngineId,
    /// Last entry that was read (i915: csb_head).
    head: u32,
}

impl Host {
    /// A driver that has initialised the copy engine.
    fn new() -> Self {
        Host::of(copy())
    }

    fn of(engine: EngineId) -> Self {
        let ggtt = Ggtt::new(SharedRegion::anonymous(GGTT_BYTES).unwrap());
        for page in 0..LOCAL as u64 >> 12 {
            ggtt.set_entry(page, GgttEntry::from(page << 12 | 3));
        }
        let memory = Memory::new(XE_HPG.page_tables, SharedRegion::anonymous(LOCAL).unwrap(), ggtt, Arc::new(NullHost));
        let profile = crate::registers::tests::profile();
        let (clock, witness) = (Arc::new(ManualClock::default()), Arc::new(Witness::default()));
        let gt = Gt::new(&profile, memory, witness.clone(), clock.clone());
        let card = Card::assemble(gt, Engines::new(&XE_HPG, |engine| profile.has(engine)));
        let host = Host { card, clock, witness, engine, head: 11 };
        host.witness.card.set(Arc::downgrade(&host.card)).unwrap();
        host.put64(ROOT, ROOT + 0x1003);
        host.put64(ROOT + 0x1000 + 8, ROOT + 0x2003);
        for page in 0..LOCAL as u64 >> 21 {
            host.put64(ROOT + 0x2000 + page * 8, page << 21 | 0x883);
        }
        host.enable();
        host
    }

    /// i915's enable_execlists and reset_csb_pointers, and its interrupt enables including the context switch.
    fn enable(&self) {
        self.write(GFX_MODE, 0x0008_0008);
        self.write(HWS_PGA, self.page() as u32);
        self.write(STATUS_PTR, 0xffff_0b0b);
        for entry in 0..12 {
            self.put64(self.page() + 0x40 + entry * 8, !0);
        }
        self.put(self.page() + 0xbc, 11);
        for (offset, value) in [(0x19_0030, 0x0100_0100), (0x19_0038, !0), (0x19_0008, 1 << 31)] {
            self.write_card(offset, value);
        }
    }

    /// The driver of a second engine on the same card.
    fn beside(&self, engine: EngineId) -> Host {
        let host = Host {
            card: self.card.clone(),
            clock: self.clock.clone(),
            witness: self.witness.clone(),
            engine,
            head: 11,
        };
        host.enable();
        host
    }

    fn page(&self) -> u64 {
        PAGES + self.engine.index() as u64 * 0x1000
    }

    fn data(&self, at: u64) -> u64 {
        DATA + self.engine.index() as u64 * 0x1_0000 + at
    }

    fn get(&self, at: u64) -> u32 {
        self.card.gt().memory.local().slice(at, 4).unwrap().load(0, Ordering::Acquire).unwrap()
    }

    fn put(&self, at: u64, value: u32) {
        self.card.gt().memory.local().slice(at, 4).unwrap().store(value, 0, Ordering::Release).unwrap();
    }

    fn get64(&self, at: u64) -> u64 {
        self.card.gt().memory.local().slice(at, 8).unwrap().load(0, Ordering::Acquire).unwrap()
    }

    fn put64(&self, at: u64, value: u64) {
        self.card.gt().memory.local().slice(at, 8).unwrap().store(value, 0, Ordering::Release).unwrap();
    }

    fn write_card(&self, offset: u32, value: u32) {
        self.card.write_gttmmadr(Function::PF, u64::from(offset), &value.to_le_bytes());
    }

    fn mmio_base(&self) -> u32 {
        XE_HPG.engines.info(self.engine).mmio_base
    }

    /// Writes a register of the engine.
    fn write(&self, offset: u32, value: u32) {
        self.write_card(self.mmio_base() + offset, value);
    }

    /// Reads a register of the engine.
    fn read(&self, offset: u32) -> u32 {
        let mut data = [0; 4];
        self.card.read_gttmmadr(Function::PF, u64::from(self.mmio_base() + offset), &mut data);
        u32::from_le_bytes(data)
    }

    fn status(&self) -> u64 {
        u64::from(self.read(STATUS + 4)) << 32 | u64::from(self.read(STATUS))
    }

    /// Location of context `number`.
    fn context_at(&self, number: u64) -> Context {
        let at = CONTEXTS + (self.engine.index() as u64 % 4 * 8 + number) * 0x1_0000;
        Context { at, id: number as u32 + 1 }
    }

    /// A new context with an empty ring, as drivers create it: restore and synchronous switches inhibited.
    fn context(&self, number: u64) -> Context {
        let context = self.context_at(number);
        let at = context.at;
        for dword in 0..0x400 {
            self.put(context.image(dword), 0);
        }
        for (dword, value) in (0..).zip(XE_HPG.blank_image()) {
            self.put(context.image(dword), value);
        }
        for (dword, value) in [(3, 0x0009_0009), (9, at as u32), (11, 0x3001), (0x33, ROOT as u32)] {
            self.put(context.image(dword), value);
        }
        context
    }

    /// A new context with these commands in its ring.
    fn with(&self, number: u64, dwords: &[u32]) -> Context {
        let context = self.context(number);
        self.emit(context, dwords);
        context
    }

    /// Appends commands to a ring, padded to a qword, and updates RING_TAIL in the image.
    fn emit(&self, context: Context, dwords: &[u32]) {
        let mut tail = self.get(context.image(7));
        for dword in dwords.iter().copied().chain((!dwords.len().is_multiple_of(2)).then_some(0)) {
            self.put(context.at + u64::from(tail), dword);
            tail = (tail + 4) % 0x4000;
        }
        self.put(context.image(7), tail);
    }

    fn head_of(&self, context: Context) -> u32 {
        self.get(context.image(5))
    }

    fn tail_of(&self, context: Context) -> u32 {
        self.get(context.image(7))
    }

    /// i915's execlists_submit_ports: writes all elements from last to first, low dword before high, then sets Load.
    fn submit(&self, queue: &[u64]) {
        self.fill(queue);
        self.write(CONTROL, LOAD);
    }

    fn fill(&self, queue: &[u64]) {
        for n in (0..8u32).rev() {
            let descriptor = queue.get(n as usize).copied().unwrap_or(0);
            self.write(SQ + 8 * n, descriptor as u32);
            self.write(SQ + 8 * n + 4, (descriptor >> 32) as u32);
        }
    }

    /// Writes an element to ELSP: high dword before low (i915: write_desc).
    fn push_elsp(&self, descriptor: u64) {
        self.write(ELSP, (descriptor >> 32) as u32);
        self.write(ELSP, descriptor as u32);
    }

    /// The sixteen dwords of the submission queue.
    fn queue(&self) -> Vec<u32> {
        (0..16).map(|n| self.read(SQ + 4 * n)).collect()
    }

    fn load(&self, contexts: &[Context]) {
        self.submit(&contexts.iter().map(|context| context.descriptor()).collect::<Vec<_>>());
    }

    /// Runs the card until it is idle, twice. Advances the clock after each run, so that waiting engines poll again.
    fn work(&self) {
        for _ in 0..2 {
            for _ in 0..1000 {
                if matches!(self.card.step(), WorkStatus::Idle(_)) {
                    break;
                }
            }
            self.clock.advance(1_000_000);
        }
    }

    /// Acknowledges the engine's interrupt as i915's handler does; returns its bits.
    fn acknowledge(&self) -> u16 {
        let (bank, bit) = XE_HPG.engines.info(self.engine).interrupt;
        let bank = u32::from(bank) * 4;
        let mut data = [0; 4];
        self.write_card(0x19_0008, 0);
        self.card.read_gttmmadr(Function::PF, u64::from(0x19_0018 + bank), &mut data);
        let mut bits = 0;
        if u32::from_le_bytes(data) >> bit & 1 != 0 {
            self.write_card(0x19_0070 + bank, 1 << bit);
            self.card.read_gttmmadr(Function::PF, u64::from(0x19_0060 + bank), &mut data);
            bits = u32::from_le_bytes(data) as u16;
            self.write_card(0x19_0060 + bank, 1 << 31);
            self.write_card(0x19_0018 + bank, 1 << bit);
        }
        self.write_card(0x19_0008, 1 << 31);
        bits
    }

    /// New status quadwords, read from the status page as i915's process_csb does.
    fn switches(&mut self) -> Vec<Switch> {
        let mut came = Vec::new();
        let tail = self.get(self.page() + 0xbc) & 0xff;
        assert!(tail < 12);
        while self.head != tail {
            self.head = (self.head + 1) % 12;
            let at = self.page() + 0x40 + u64::from(self.head) * 8;
            let status = self.get64(at);
            assert_ne!(status, !0, "the pointer must not be updated before its entry");
            self.put64(at, !0);
            let (low, high) = (status as u32, (status >> 32) as u32);
            came.push(Switch { new_queue: high & 2 != 0, away: high >> 10, to: low >> 10, detail: low & 0xf });
        }
        came
    }
}

/// MI_STORE_DATA_IMM of a dword in the process space.
fn store(at: u64, value: u32) -> [u32; 4] {
    [0x1000_0002, (VA + at) as u32, 0, value]
}

/// MI_SEMAPHORE_WAIT in the process space, polling, until the dword equals `value`.
fn wait(at: u64, value: u32) -> [u32; 5] {
    [0x0e00_8003 | 4 << 12, value, (VA + at) as u32, 0, 0]
}

/// MI_STORE_REGISTER_MEM of a register of the engine, in the process space.
fn store_register(offset: u32, at: u64) -> [u32; 4] {
    [0x1208_0002, offset, (VA + at) as u32, 0]
}

/// MI_BATCH_BUFFER_START in the process space.
fn start(at: u64) -> [u32; 3] {
    [0x1880_0101, (VA + at) as u32, 0]
}

/// Concatenates command sequences.
fn commands(parts: &[&[u32]]) -> Vec<u32> {
    parts.concat()
}
