// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of rings, batches and commands on a card with a small guest.

mod blit;
mod commands;
mod contexts;
mod errors;
mod properties;
mod rings;
mod spaces;
mod translations;
mod unanswered;

use std::sync::Arc;

use arctic_base::gpu::Host;
use arctic_base::host::{ManualClock, NullHost};
use arctic_fidelity::proves;
use arctic_mi::header::*;

use super::*;
use crate::guest::Guest;
use crate::memory::Pte;
use crate::profile::IntegratedProfile;
use crate::profile::tests::{ivb, snb};

/// Addresses in the GGTT, which maps page n to page n of the guest; the PPGTT maps page n to page n + 16.
const RING: u32 = 0x1000;
const STATUS: u32 = 0x3000;
const BATCH: u32 = 0x4000;
const DATA: u32 = 0x5000;
const CONTEXT: u32 = 0x6000;
/// Offset of the PPGTT's pages in the guest.
const BEHIND: u32 = 0x1_0000;
const TABLE: u32 = 0xe000;

/// Registers of the GT's interrupts: state, mask and identity (G67-045).
const GT_ISR: u32 = 0x4_4010;
const GT_IMR: u32 = 0x4_4014;
const GT_IIR: u32 = 0x4_4018;

const RCS: EngineId = EngineId::new(0);
const BCS: EngineId = EngineId::new(2);

struct EngineBench {
    gt: Gt,
    clock: Arc<ManualClock>,
    guest: Guest,
    engine: Engine,
    tail: u32,
}

impl EngineBench {
    /// An engine with an enabled ring of two pages, and the PPGTT enabled.
    fn new(id: EngineId) -> Self {
        EngineBench::of(&ivb(), id)
    }

    /// The same on another card.
    fn of(card: &IntegratedProfile, id: EngineId) -> Self {
        let guest = Guest::new(0, 0x2_0000);
        let clock = Arc::new(ManualClock::default());
        let host = Host { memory: Arc::new(guest.clone()), interrupts: Arc::new(NullHost), clock: clock.clone() };
        let gt = Gt::new(card, host);
        for page in 1..16 {
            gt.ggtt.set(page, Pte(page << 12 | 1));
        }
        gt.ggtt.set(0x1000, Pte(TABLE | 1));
        let bench = EngineBench { gt, clock, guest, engine: Engine::new(id), tail: 0 };
        for page in 0..16 {
            bench.put(TABLE + page * 4, (page + 16) << 12 | 1);
        }
        bench.start(id, RING);
        bench.gt.write(GT_IMR, 0, !0);
        bench
    }

    /// Enables the ring of an engine, of two pages, and the PPGTT.
    fn start(&self, id: EngineId, ring: u32) {
        let info = self.gt.generation.engine(id);
        for (offset, value) in [
            (info.base + 0x38, ring),
            (info.base + 0x220, !0),
            (info.base + 0x228, MI_USER_INTERRUPT),
            (info.translation_mode, 0x0200_0200),
            (info.base + 0xa8, 0),
            (info.status_page, STATUS),
            (info.base + 0x3c, 0x1001),
        ] {
            self.write(offset, value);
        }
    }

    fn write(&self, offset: u32, value: u32) {
        self.gt.write(offset, value, !0);
    }

    fn base(&self) -> u32 {
        self.gt.generation.engine(self.engine.id).base
    }

    /// Writes a register of the engine, by offset from its base.
    fn write_register(&self, offset: u32, value: u32) {
        self.write(self.base() + offset, value);
    }

    fn put(&self, at: u32, value: u32) {
        self.guest.put(at.into(), value);
    }

    fn get(&self, at: u32) -> u32 {
        self.guest.get(at.into())
    }

    /// Reads a register of the engine, by offset from its base.
    fn register(&self, offset: u32) -> u32 {
        self.gt.read(self.base() + offset)
    }

    /// Writes a batch at an address of the guest.
    fn batch(&self, at: u32, dwords: &[u32]) {
        (at..).step_by(4).zip(dwords.iter().chain(&[MI_BATCH_BUFFER_END])).for_each(|(at, dword)| self.put(at, *dword));
    }

    /// Adds commands to the ring and executes everything.
    fn run(&mut self, dwords: &[u32]) -> Outcome {
        for dword in dwords {
            self.put(RING + self.tail, *dword);
            self.tail = (self.tail + 4) % 0x2000;
        }
        if !self.tail.is_multiple_of(8) {
            self.put(RING + self.tail, 0);
            self.tail = (self.tail + 4) % 0x2000;
        }
        self.gt.write(self.base() + 0x30, self.tail, !0);
        self.step()
    }

    fn step(&mut self) -> Outcome {
        self.steps(10_000)
    }

    /// Executes at most `budget` commands.
    fn steps(&mut self, budget: u32) -> Outcome {
        self.engine.step(&self.gt, &*self.gt.view(), budget)
    }

    /// Writes commands to the ring of another engine, of which they are the first, and executes them.
    fn run_other(&self, engine: &mut Engine, ring: u32, dwords: &[u32]) -> Outcome {
        self.start(engine.id, ring);
        (ring..).step_by(4).zip(dwords).for_each(|(at, dword)| self.put(at, *dword));
        let bytes = u32::try_from(dwords.len() * 4).unwrap();
        self.write(self.gt.generation.engine(engine.id).base + 0x30, bytes);
        engine.step(&self.gt, &*self.gt.view(), 10_000)
    }
}

/// IVB-075, IVB-076: commands up to the tail are executed; the head wraps at the end of the ring and counts it.
#[test]
fn the_ring_wraps_and_counts() {
    proves!([IVB_075, IVB_076, ILK_104], "the head wraps at the end of the ring and counts it");
    let mut bench = EngineBench::new(BCS);
    assert_eq!(bench.step(), Outcome::Idle);
    for n in 0..0x1000_u32 {
        assert_eq!(bench.run(&[0x0040_0000 | n, 0]), Outcome::Progress);
    }
    assert_eq!(bench.register(0x94), 0xfff, "NOPID");
    assert_eq!(bench.register(0x34), 4 << 21, "4096 times 8 bytes are 4 rings of 8 KiB");
    assert_eq!(bench.register(0x9c), 1 << 9, "idle");
}

/// IVB-030, IVB-157: the store's own bit selects its space; in the ring and in a batch of the GGTT both are allowed, in a
/// batch of the PPGTT only the PPGTT (IVB-131).
#[test]
fn stores_select_their_space_by_a_bit() {
    proves!(
        [IVB_030, IVB_131, IVB_157, ILK_011],
        "a store's own bit selects its space; a batch of the PPGTT has no access to the GGTT"
    );
    let mut bench = EngineBench::new(RCS);
    let stores = [0x1040_0002, 0, DATA, 1, 0x1000_0002, 0, DATA + 4, 2, 0x1000_0003, 0, DATA + 8, 3, 4];
    bench.run(&stores);
    assert_eq!([bench.get(DATA), bench.get(BEHIND + DATA + 4)], [1, 2]);
    assert_eq!([bench.get(BEHIND + DATA + 8), bench.get(BEHIND + DATA + 12)], [3, 4]);
    let again = [MI_STORE_DATA_IMM | GGTT | 2, 0, DATA, 5, MI_STORE_DATA_IMM | 2, 0, DATA + 4, 6];
    bench.batch(BATCH, &again);
    bench.run(&[MI_BATCH_BUFFER_START, BATCH]);
    assert_eq!([bench.get(DATA), bench.get(BEHIND + DATA + 4)], [5, 6]);
    let user =
        [0x1040_0002, 0, DATA, 7, 0x1000_0002, 0, DATA + 4, 8, 0x1100_0001, 0x2094, 9, 0x1240_0001, 0x2038, DATA];
    bench.batch(BEHIND + BATCH, &user);
    assert_eq!(bench.run(&[MI_BATCH_BUFFER_START | BATCH_PPGTT, BATCH]), Outcome::Progress);
    assert_eq!([bench.get(DATA), bench.get(BEHIND + DATA + 4)], [5, 8]);
    assert_eq!((bench.register(0x110), bench.register(0x140) & 1), (1 << 5, 0), "the batch has ended");
}

/// IVB-031, ILK-003: with the PPGTT disabled, its accesses use the GGTT.
#[test]
fn without_ppgtt_its_accesses_use_the_ggtt() {
    proves!([IVB_031, ILK_003], "with the PPGTT disabled, its accesses use the GGTT");
    let mut bench = EngineBench::new(RCS);
    bench.gt.write(0x229c, 0x0200_0000, !0);
    bench.run(&[MI_STORE_DATA_IMM | 2, 0, DATA, 9]);
    assert_eq!(bench.get(DATA), 9);
}

/// A chained batch keeps the space of the first, so it does not gain privilege.
#[test]
fn a_chained_batch_gains_no_privilege() {
    let mut bench = EngineBench::new(BCS);
    bench.batch(BEHIND + BATCH, &[MI_BATCH_BUFFER_START, BATCH + 0x100]);
    bench.batch(BEHIND + BATCH + 0x100, &[MI_STORE_DATA_IMM | 2, 0, DATA, 1, MI_STORE_DATA_IMM | GGTT | 2, 0, DATA, 2]);
    bench.run(&[MI_BATCH_BUFFER_START | BATCH_PPGTT, BATCH, MI_NOOP | WRITE_NOPID | 7]);
    assert_eq!((bench.get(BEHIND + DATA), bench.get(DATA), bench.register(0x94)), (1, 0, 7));
}

/// G67-075, IVB-158: the breadcrumb of a request on BCS: flush with a store to the status page, index stores, interrupt.
#[test]
fn a_breadcrumb_of_the_copy_engine() {
    proves!([IVB_158, ILK_037], "flushes and MI_STORE_DATA_INDEX store to the status page");
    let mut bench = EngineBench::new(BCS);
    let flush = [MI_FLUSH_DW | FLUSH_TLB | 1 << 21 | 1 << 14 | 1, 0x104, 0x77];
    bench.run(&[&flush[..], &[0x1080_0001, 0x108, 0x78], &[0x1300_0001, 0, 0, 0x0100_0000, 0]].concat());
    assert_eq!([bench.get(STATUS + 0x100), bench.get(STATUS + 0x108)], [0x77, 0x78]);
    assert_eq!(bench.gt.read(GT_IIR), 1 << 22, "GTIIR");
    bench.gt.write(GT_IIR, !0, !0);
    bench.gt.write(0x2_20a8, !0, !0);
    bench.run(&[MI_USER_INTERRUPT, 0]);
    assert_eq!(bench.gt.read(GT_IIR), 0, "masked by the engine");
}

/// G67-074, G67-077, G67-122: the post-sync operations of PIPE_CONTROL; a write to a register is a NOOP without privilege.
#[test]
fn pipe_control_stores() {
    let mut bench = EngineBench::new(RCS);
    bench.put(DATA + 4, 0xdead);
    bench.run(&[PIPE_CONTROL | 2, 1 << 24 | 1 << 20 | 1 << 14 | 1 << 8, DATA, 0x55]);
    assert_eq!([bench.get(DATA), bench.get(DATA + 4)], [0x55, 0xdead], "one dword of data");
    assert_eq!(bench.gt.read(GT_IIR), 1 << 4, "notification");
    bench.run(&[PIPE_CONTROL | 3, 1 << 24 | 1 << 14, DATA, 0x66, 0x67]);
    assert_eq!([bench.get(DATA), bench.get(DATA + 4)], [0x66, 0x67]);
    bench.run(&[PIPE_CONTROL | 3, 1 << 24 | 3 << 14, DATA, 0x66, 0x67]);
    assert_eq!([bench.get(DATA), bench.get(DATA + 4)], [0, 0], "the time");
    bench.batch(BEHIND + BATCH, &[0x7a00_0003, 1 << 23 | 1 << 14, DATA, 1, 1, 0x7a00_0002, 1 << 14, DATA + 8, 2]);
    bench.run(&[MI_BATCH_BUFFER_START | BATCH_PPGTT, BATCH]);
    assert_eq!([bench.get(BEHIND + DATA), bench.get(BEHIND + DATA + 8)], [0, 2]);
    bench.batch(BEHIND + BATCH, &[PIPE_CONTROL | 2, 1 << 24 | 1 << 14, DATA, 9]);
    bench.run(&[MI_BATCH_BUFFER_START | BATCH_PPGTT, BATCH]);
    assert_eq!(bench.get(DATA), 0, "the GGTT needs privilege");
}

/// IVB-159, IVB-161, IVB-163: registers are loaded and stored; bytes can be disabled.
#[test]
fn registers_are_loaded_and_stored() {
    proves!([IVB_159, IVB_161, IVB_163], "registers are loaded and stored; bytes can be disabled");
    let mut bench = EngineBench::new(RCS);
    bench.run(&[MI_LOAD_REGISTER_IMM | 3, 0x2430, 0x1122_3344, 0x2434, 0x5566_7788]);
    bench.run(&[0x1100_0501, 0x2430, 0xaabb_ccdd, 0x1240_0001, 0x2430, DATA]);
    assert_eq!([bench.get(DATA), bench.gt.read(0x2434)], [0xaa22_cc44, 0x5566_7788]);
    bench.put(DATA + 4, 0x99);
    bench.run(&[MI_LOAD_REGISTER_MEM | GGTT | 1, 0x2438, DATA + 4]);
    assert_eq!(bench.gt.read(0x2438), 0x99);
    bench.put(BEHIND + DATA, 0xf000);
    bench.batch(BEHIND + BATCH, &[MI_LOAD_REGISTER_MEM | 1, 0x2038, DATA, MI_LOAD_REGISTER_MEM | 1, 0x2438, DATA]);
    bench.run(&[MI_BATCH_BUFFER_START | BATCH_PPGTT, BATCH]);
    assert_eq!((bench.register(0x38), bench.gt.read(0x2438)), (RING, 0xf000), "only registers of contexts");
}

/// IVB-160: entries of the GGTT are updated by the ring.
#[test]
fn entries_are_updated() {
    proves!([IVB_160, ILK_018], "MI_UPDATE_GTT changes entries of consecutive pages");
    let mut bench = EngineBench::new(RCS);
    bench.run(&[MI_UPDATE_GTT | 1 << 22 | 2, 0x9000, 0x5001, 0x7001]);
    assert_eq!([bench.gt.ggtt.entry(9), bench.gt.ggtt.entry(10)], [Pte(0x5001), Pte(0x7001)]);
}

/// IVB-154, IVB-170: the compared value must be greater; a wait ends when another engine writes the register.
#[test]
fn semaphores_wait_for_a_greater_value() {
    proves!([IVB_154, IVB_170], "the compared value must be greater; the register of the wait ends it");
    let mut bench = EngineBench::new(RCS);
    let wait = MI_SEMAPHORE_MBOX | MAILBOX_COMPARE | MAILBOX_REGISTER | 1;
    bench.gt.write(0x2040, 5, !0);
    assert_eq!(bench.run(&[wait, 5, 0, MI_NOOP | WRITE_NOPID | 1]), Outcome::Waiting);
    assert_eq!((bench.register(0x3c) >> 10 & 1, bench.register(0x94)), (1, 0));
    assert_eq!(bench.step(), Outcome::Waiting);
    bench.gt.write(0x2040, 6, !0);
    assert_eq!(bench.step(), Outcome::Progress);
    assert_eq!((bench.register(0x3c) >> 10 & 1, bench.register(0x94)), (0, 1));
    bench.put(DATA, 4);
    assert_eq!(
        bench.run(&[MI_SEMAPHORE_MBOX | GGTT | MAILBOX_UPDATE | MAILBOX_COMPARE | 1, 3, DATA, 0]),
        Outcome::Progress
    );
    assert_eq!(bench.get(DATA), 3, "compared and updated");
}

/// IVB-066, IVB-078, IVB-143: a wait for a condition code ends when the code is cleared, or by the control register.
#[test]
fn waits_for_events() {
    proves!([IVB_066, IVB_078, IVB_143], "a wait ends when the condition code is cleared, or by the ring control");
    let mut bench = EngineBench::new(RCS);
    bench.gt.write(0x2028, 0x0002_0002, !0);
    assert_eq!(bench.run(&[MI_WAIT_FOR_EVENT | 1 << 16, MI_WAIT_FOR_EVENT | 2 << 16]), Outcome::Waiting);
    assert_eq!(bench.register(0x3c) >> 11 & 1, 1);
    bench.gt.write(0x2028, 0x0002_0000, !0);
    assert_eq!((bench.step(), bench.register(0x3c) >> 11 & 1), (Outcome::Progress, 0));
    bench.gt.write(0x2028, 0x0002_0002, !0);
    assert_eq!(bench.run(&[MI_WAIT_FOR_EVENT | 2 << 16, MI_NOOP | WRITE_NOPID | 3]), Outcome::Waiting);
    bench.gt.write(0x203c, 0x1801, !0);
    assert_eq!((bench.step(), bench.register(0x94)), (Outcome::Progress, 3), "ended by software");
    assert_eq!(bench.run(&[MI_WAIT_FOR_EVENT | 1 << 3, 0]), Outcome::Progress, "no pipe is active");
}

/// IVB-081, IVB-082: MI_ARB_CHECK takes the new head.
#[test]
fn preemption_by_the_head_pointer() {
    proves!([IVB_081, IVB_082], "MI_ARB_CHECK continues at UHPTR and records the old head");
    let mut bench = EngineBench::new(RCS);
    bench.put(RING + 0x100, MI_NOOP | WRITE_NOPID | 0x42);
    bench.gt.write(0x2134, 0x101, !0);
    bench.gt.write(0x2030, 0x108, !0);
    bench.put(RING, MI_ARB_CHECK);
    bench.put(RING + 4, MI_NOOP | WRITE_NOPID | 1);
    assert_eq!(bench.step(), Outcome::Progress);
    assert_eq!((bench.register(0x94), bench.register(0x134), bench.register(0x34)), (0x42, 0x100, 0x108));
    assert_eq!(bench.register(0x14c), 0, "the offset of the check");
}

/// IVB-155, G67-091: contexts keep their registers; the first use does not load the image; the same context again is no
/// switch.
#[test]
fn contexts_keep_their_registers() {
    proves!([IVB_155, ILK_163, ILK_168], "contexts keep their registers; the first use does not load the image");
    let mut bench = EngineBench::new(RCS);
    let switch = |context: u32, flags: u32| [MI_SET_CONTEXT, context | 0x100 | flags, 0, 0];
    let other = CONTEXT + 0x2000;
    bench.run(&switch(CONTEXT, 0xd));
    assert_eq!(bench.register(0x180), CONTEXT | 0x10d);
    bench.gt.write(0x2430, 0x11, !0);
    bench.gt.write(0x7004, 0x0040_0040, !0);
    bench.run(&switch(other, 0xd));
    bench.gt.write(0x2430, 0x22, !0);
    bench.gt.write(0x7004, 0x0040_0000, !0);
    bench.run(&switch(CONTEXT, 0xc));
    assert_eq!((bench.gt.read(0x2430), bench.gt.read(0x7004)), (0x11, 0x1c0));
    bench.gt.write(0x2430, 0x33, !0);
    bench.run(&switch(CONTEXT, 0xc));
    assert_eq!(bench.gt.read(0x2430), 0x33, "the same context");
    bench.run(&switch(other, 0xc));
    assert_eq!((bench.gt.read(0x2430), bench.gt.read(0x7004)), (0x22, 0x180));
    // An image that loads a register of the ring.
    bench.batch(CONTEXT, &[MI_LOAD_REGISTER_IMM | 1, 0x2038, 0]);
    bench.run(&switch(CONTEXT, 0xc));
    assert_eq!(bench.register(0x38), RING);
}

/// IVB-093: a header of no command stops the engine, with an error that stays.
#[test]
fn errors_stop_the_engine() {
    proves!(IVB_093, "a header of no command stops the engine, with an error that stays");
    let mut bench = EngineBench::new(BCS);
    bench.gt.write(0x2_20b4, 0xfe, !0);
    assert_eq!(bench.run(&[0, 0x2000_0000]), Outcome::Halted);
    assert_eq!((bench.register(0xb0), bench.register(0x74), bench.register(0x68)), (1, RING + 4, 0x2000_0000));
    assert_eq!(bench.gt.read(GT_IIR), 1 << 25);
    bench.gt.write(0x2_20b0, !0, !0);
    assert_eq!(bench.register(0xb0), 1);
}

/// IVB-039, IVB-040: the first fault of an engine is recorded until software clears it; a store without a page is dropped.
#[test]
fn faults_are_recorded_once() {
    proves!([IVB_039, IVB_040], "the first fault of an engine is recorded until software clears it");
    let mut bench = EngineBench::new(RCS);
    assert_eq!(bench.run(&[0x1040_0002, 0, 0x20_0004, 1, 0x1000_0002, 0, 0x40_0000, 2]), Outcome::Progress);
    assert_eq!((bench.gt.read(0x4094), bench.gt.read(0x40a0)), (0x20_0000 | 1 << 11 | 8 << 3 | 1, 1 | 1 << 2));
    assert_eq!(bench.gt.read(GT_IIR), 1 << 7);
    bench.gt.write(0x4094, 0, !0);
    bench.gt.write(0x2220, 0, !0);
    bench.run(&[MI_STORE_DATA_IMM | 2, 0, 0x40_1000, 2]);
    assert_eq!((bench.gt.read(0x4094), bench.gt.read(0x40a0)), (0x40_1000 | 8 << 3 | 2 << 1 | 1, 1 | 1 << 2 | 1 << 8));
    assert_eq!(bench.run(&[MI_BATCH_BUFFER_START, 0x30_0000]), Outcome::Halted, "no command can be fetched");
}

/// Commands of the pipelines are skipped by their length, and counted.
#[test]
fn pipeline_commands_are_counted() {
    proves!([ILK_126, ILK_127, ILK_131], "commands of the pipelines are accepted by their length, and counted");
    let mut bench = EngineBench::new(RCS);
    bench.batch(BEHIND + BATCH, &[0x7805_0000, 0xffff_ffff, 0x6904_0000, MI_PREDICATE]);
    bench.run(&[MI_BATCH_BUFFER_START | BATCH_PPGTT, BATCH]);
    let skipped: Vec<_> =
        bench.engine.skipped().iter().map(|((origin, name), count)| (*origin, *name, *count)).collect();
    assert_eq!(skipped, [(Origin::User, "3DSTATE_DEPTH_BUFFER", 1), (Origin::User, "PIPELINE_SELECT", 1)]);
}

/// IVB-091: an event that HWSTAM does not mask is written to the status page, with the state of the sources that have
/// one.
#[test]
fn the_status_page_is_written_on_events() {
    proves!(IVB_091, "an event that HWSTAM does not mask is written to the status page");
    let mut bench = EngineBench::new(RCS);
    bench.put(STATUS, 0xffff);
    bench.run(&[MI_USER_INTERRUPT, 0]);
    assert_eq!(bench.get(STATUS), 0xffff, "masked");
    bench.gt.write(0x2098, !1, !0);
    bench.run(&[MI_USER_INTERRUPT, 0]);
    assert_eq!(bench.get(STATUS), 0);
}
