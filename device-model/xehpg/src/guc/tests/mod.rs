// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the GuC through the driver's interface: upload, handshake, message contents, contexts.
#![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

mod capture;
mod contexts;
mod dma;
mod doorbells;
mod functions;
mod load;
mod rings;
mod running;
mod services;
mod time;
mod turns;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use arctic_base::priority_mutex::{PriorityGuard, PriorityMutex};
use arctic_guc_driver::firmware::{DMA_BYTES, READY};
use arctic_guc_driver::{DriverState, GucDriver, Layout, actions, context as lrc, ct};
use vm_memory::Bytes;

use super::*;
use crate::engine::{Halt, Outcome};
use crate::generation::XE_HPG;
use crate::host::{Clock, DmaView, InterruptSink, ManualClock, NullHost};
use crate::memory::ggtt::{GGTT_BYTES, Ggtt, GgttEntry};
use crate::memory::region::SharedRegion;
use crate::memory::{Access, Fault, FaultReason, Memory, Space};
use crate::topology::{EngineClass, EngineId, UnitId};
use crate::units::{HeldUnit, StepLock, Unit};

/// The function with this number.
const fn numbered(number: u8) -> Function {
    Function::new(number).unwrap()
}

#[derive(Default)]
struct Recorder(Mutex<Vec<u16>>);

impl InterruptSink for Recorder {
    fn raise(&self, _: Function, vector: u16) {
        self.0.lock().unwrap().push(vector);
    }

    fn set_line(&self, _: Function, _: bool) {}
}

/// GGTT addresses that are mapped one to one to local memory.
const MAPPED: std::ops::Range<u64> = 0x40_0000..0x140_0000;
const FIRMWARE: u64 = 0x40_0000;
const ADS: u64 = 0x60_0000;
const CTB: u64 = 0x70_0000;
const SCRATCH: u64 = 0x80_0000;
/// Context images, 64 KiB apart.
const IMAGES: u64 = 0x90_0000;

const LAYOUT: Layout =
    Layout { ctb: CTB, firmware: FIRMWARE, ads: ADS, images: IMAGES, rings: SCRATCH, batches: SCRATCH, members: 4 };

/// Returns whether an engine is present with the fuses of a Flex 170 (contract K.3).
fn present(id: EngineId) -> bool {
    !matches!(XE_HPG.engines.info(id).name, "vcs1" | "vcs3" | "vcs4" | "vcs5" | "vcs6" | "vcs7" | "vecs2" | "vecs3")
}

/// A host driver with the GT of a card and a manual clock.
struct Host {
    gt: Gt,
    engines: Engines,
    guc: Guc,
    clock: Arc<ManualClock>,
    ram: Arc<turns::GuestRam>,
    driver: DriverState,
    deadline: Option<u64>,
}

/// Accesses of the PF's driver. Register accesses have no side effects on the GuC: tests start its DMA and its steps.
impl arctic_guc_driver::Access for Host {
    fn set(&self, register: u32, value: u32) {
        let _ = self.gt.write(register, value);
    }

    fn get(&self, register: u32) -> u32 {
        self.gt.read(register)
    }

    fn poke(&self, at: u64, value: u32) {
        self.cell(at).store(value, 0, std::sync::atomic::Ordering::SeqCst).unwrap();
    }

    fn peek(&self, at: u64) -> u32 {
        self.cell(at).load(0, std::sync::atomic::Ordering::SeqCst).unwrap()
    }
}

impl GucDriver for Host {
    fn access(&self) -> &dyn arctic_guc_driver::Access {
        self
    }

    fn state(&self) -> &DriverState {
        &self.driver
    }

    fn state_mut(&mut self) -> &mut DriverState {
        &mut self.driver
    }

    fn notify(&mut self) {
        assert!(Guc::mailbox_holds_request(&self.gt, Function::PF));
        self.guc.mailbox(&self.gt, &self.engines, &self.gt.memory.views(), Function::PF);
    }
}

/// A unit that is no engine.
struct FurtherUnit(PriorityMutex<()>);

impl Unit for FurtherUnit {
    fn id(&self) -> UnitId {
        UnitId::Further(0)
    }

    fn lock(&self) -> Option<&dyn StepLock> {
        Some(&self.0)
    }

    fn hold(&self) -> Option<Box<dyn HeldUnit + '_>> {
        Some(Box::new(HeldFurtherUnit(self.0.hold())))
    }
}

struct HeldFurtherUnit<'u>(#[expect(dead_code, reason = "held until dropped")] PriorityGuard<'u, ()>);

impl HeldUnit for HeldFurtherUnit<'_> {
    fn reset(&mut self, _: &Gt) {}
}

/// The GuC of a card with these engines and one further unit.
fn guc_beside(engines: &Engines) -> Guc {
    let further: Arc<dyn Unit> = Arc::new(FurtherUnit(PriorityMutex::new(())));
    Guc::new(Units::new(engines.units().map(|engine| engine as Arc<dyn Unit>).chain([further])))
}

impl Host {
    fn new() -> Self {
        let local = SharedRegion::anonymous(0x140_0000).unwrap();
        let ggtt = Ggtt::new(SharedRegion::anonymous(GGTT_BYTES).unwrap());
        for page in (MAPPED.start..MAPPED.end).step_by(4096) {
            ggtt.set_entry(page >> 12, GgttEntry::from(page | 3));
        }
        let clock = Arc::new(ManualClock::default());
        clock.advance(1_000_000_000);
        let engines = Engines::new(&XE_HPG, present);
        let ram = Arc::new(turns::GuestRam::default());
        let memory = Memory::new(XE_HPG.page_tables, local, ggtt, ram.clone());
        let profile = crate::registers::tests::profile();
        let gt = Gt::new(&profile, memory, Arc::new(Recorder::default()), clock.clone());
        let guc = guc_beside(&engines);
        let host = Host { gt, engines, guc, clock, ram, driver: DriverState::new(0, LAYOUT, 0), deadline: None };
        host.write_firmware(&host.instances());
        host
    }

    /// Advances the clock and the engine time.
    fn pass(&self, ns: u64) {
        pass(&self.gt, &self.clock, ns);
    }

    fn cell(&self, at: u64) -> vm_memory::VolatileSlice<'_> {
        self.gt.memory.local().slice(at, 4).unwrap()
    }

    /// Copies `length` bytes of local memory, pages of the GGTT, to the start of the PF's guest memory, which replaces them
    /// in the GGTT and is accessed by messages.
    fn move_to_guest(&mut self, from: u64, length: usize) -> Arc<turns::Ram> {
        let ram = self.ram.0[0].clone();
        let bytes = self.gt.memory.local().slice(from, length).unwrap();
        bytes.copy_to_volatile_slice(ram.slice(0, length, Access::Write).unwrap());
        for page in 0..length as u64 / 4096 {
            self.gt.memory.ggtt().set_entry((from >> 12) + page, GgttEntry::from(page << 12 | 1));
        }
        self.guc.tlb.flush();
        ram.via_client.store(true, Ordering::SeqCst);
        ram
    }

    /// Returns the instance numbers of each engine class, in the GuC's order.
    fn instances(&self) -> Vec<Vec<u8>> {
        let present: Vec<_> = self.engines.present().map(|engine| XE_HPG.engines.info(engine)).collect();
        let of = |class| present.iter().filter(|info| info.class == class).map(|info| info.instance).collect();
        EngineClass::BY_GUC.into_iter().map(of).collect()
    }

    /// Loads the firmware (contract B.4 steps 19 and 20); returns GUC_STATUS.
    fn upload(&mut self) -> u32 {
        self.start_firmware();
        self.start_dma()
    }

    fn start_dma(&mut self) -> u32 {
        self.guc.start_dma(&self.gt, &self.engines, &self.gt.memory.views());
        assert_eq!(self.gt.registers.value(0xc314) & 1, 0, "DMA is complete");
        self.gt.registers.value(0xc000)
    }

    fn up() -> Self {
        let mut host = Host::new();
        assert_eq!(host.upload(), READY);
        host.enable_rings(CTB + ct::G2H);
        host
    }

    fn step(&mut self) {
        let tail = self.peek(CTB + 0x804);
        let step = self.guc.step(&self.gt, &self.engines, 1);
        assert_eq!(
            step.interrupts != 0,
            self.peek(CTB + 0x804) != tail,
            "the host is notified of new messages, and only then"
        );
        self.deadline = step.next;
    }

    fn fast(&mut self, code: u32, payload: &[u32]) {
        self.put_padded(&ct::fast_request(code, payload));
    }

    /// Sends a tracked request and returns its only reply.
    fn tracked(&mut self, code: u32, payload: &[u32]) -> u32 {
        self.put_padded(&ct::request(0x12, code, payload));
        self.step();
        let replies = self.received();
        assert_eq!(replies.len(), 1, "{replies:x?}");
        assert_eq!(replies[0][0], 0x0012_0001);
        replies[0][1]
    }

    /// Reads the received messages, CT header first, and advances the head.
    fn received(&mut self) -> Vec<Vec<u32>> {
        std::iter::from_fn(|| self.take()).collect()
    }

    fn stepped(&mut self) -> Vec<Vec<u32>> {
        self.step();
        self.received()
    }

    fn image(id: u32, member: u32) -> u64 {
        LAYOUT.image(id, member)
    }

    fn set_tail(&self, id: u32, tail: u32) {
        self.poke(Self::image(id, 0) + 0x1000 + 7 * 4, tail);
    }

    fn register_on(&mut self, id: u32, class: EngineClass, mask: u32) {
        let registration = lrc::registration(id, class.guc().into(), mask, self.descriptor(id, 0));
        self.fast(actions::REGISTER_CONTEXT, &registration);
    }

    fn policies(&mut self, id: u32, priority: u32, quantum: u32, timeout: u32) {
        self.fast(actions::UPDATE_CONTEXT_POLICIES, &actions::policies(id, priority, quantum, timeout));
    }

    /// Registers a context, gives it work and enables it; checks the response.
    fn start(&mut self, id: u32, class: EngineClass, mask: u32, priority: u32) {
        self.register_on(id, class, mask);
        self.policies(id, priority, 1000, 640_000);
        self.poke(Self::image(id, 0) + 0x1000 + 5 * 4, 0);
        self.set_tail(id, 64);
        self.fast(0x1001, &[id, 1]);
        assert_eq!(self.stepped(), [[3, 0x9000_1002, id, 1]]);
    }

    fn slot(&self, engine: &str) -> &scheduler::engine_slot::EngineSlot {
        self.guc.scheduler().expect("no kernel is running").slot(engine_named(engine))
    }

    fn runs(&self, engine: &str) -> Option<u32> {
        let id = engine_named(engine);
        self.engines.lock(id).loaded().map(|load| load.context & 0xffff)
    }

    /// Ends the engine's context with `outcome`, and reports it as a worker does.
    fn end(&mut self, engine: &str, outcome: Outcome) {
        let id = engine_named(engine);
        let load = {
            let mut streamer = self.engines.lock(id);
            let load = streamer.loaded().expect("no context is loaded");
            if matches!(outcome, Outcome::Complete | Outcome::Preempted) {
                streamer.reset(&self.gt);
            }
            load
        };
        // A VF's image is not in the host's mapping.
        if outcome == Outcome::Complete && !load.function.is_vf() {
            let image = (load.descriptor & 0xffff_f000) + 0x1000;
            self.poke(image + 5 * 4, self.peek(image + 7 * 4));
        }
        if outcome == Outcome::Waiting {
            self.engines.back_off(id, self.clock.now(), self.engines.changes());
        }
        self.engines.report(EngineReport { engine: id, load, outcome, skipped: None });
    }
}

/// Advances the clock and the engine time of all engines.
fn pass(gt: &Gt, clock: &ManualClock, ns: u64) {
    clock.advance(ns);
    gt.engine_clocks.iter().for_each(|engine| engine.run(ns));
}

fn engine_named(name: &str) -> EngineId {
    XE_HPG.engines.named(name).expect("no engine has this name")
}

const FAULT: Fault = Fault {
    space: Space::Ppgtt(0),
    address: 0x1000,
    access: Access::Read,
    reason: FaultReason::NotPresent { level: 3 },
};
