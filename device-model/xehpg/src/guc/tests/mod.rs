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

use std::sync::{Arc, Mutex};

use vm_memory::Bytes;

use super::*;
use crate::engine::{Halt, Outcome};
use crate::generation::XE_HPG;
use crate::host::{Clock, InterruptSink, ManualClock, NullHost};
use crate::memory::ggtt::{GGTT_BYTES, Ggtt, GgttEntry};
use crate::memory::region::SharedRegion;
use crate::memory::{Access, Fault, FaultReason, Memory, Space};
use crate::topology::{EngineClass, EngineId};

#[derive(Default)]
struct Recorder(Mutex<Vec<u16>>);

impl InterruptSink for Recorder {
    fn raise(&self, _: Function, vector: u16) {
        self.0.lock().unwrap().push(vector);
    }
}

/// GGTT addresses that are mapped one to one to local memory.
const MAPPED: std::ops::Range<u64> = 0x40_0000..0x140_0000;
const FIRMWARE: u64 = 0x40_0000;
const ADS: u64 = 0x60_0000;
const CTB: u64 = 0x70_0000;
const SCRATCH: u64 = 0x80_0000;
/// Context images, 64 KiB apart.
const IMAGES: u64 = 0x90_0000;

const KERNEL_DWORDS: u32 = 0x100;
const DMA_BYTES: u32 = 128 + KERNEL_DWORDS * 4;

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
    h2g_tail: u32,
    g2h_head: u32,
    deadline: Option<u64>,
}

const H2G_DWORDS: u32 = 1024;
const G2H_DWORDS: u32 = 1024;

impl Host {
    fn new() -> Self {
        let local = SharedRegion::anonymous(0x140_0000).unwrap();
        let ggtt = Ggtt::new(SharedRegion::anonymous(GGTT_BYTES).unwrap());
        for page in (MAPPED.start..MAPPED.end).step_by(4096) {
            ggtt.set_entry(page >> 12, GgttEntry(page | 3));
        }
        let clock = Arc::new(ManualClock::default());
        clock.advance(1_000_000_000);
        let engines = Engines::new(&XE_HPG, present);
        let ram = Arc::new(turns::GuestRam::default());
        let memory = Memory::new(XE_HPG.page_tables, local, ggtt, ram.clone());
        let profile = crate::registers::tests::profile();
        let gt = Gt::new(&profile, memory, Arc::new(Recorder::default()), clock.clone());
        let host = Host { gt, engines, guc: Guc::new(), clock, ram, h2g_tail: 0, g2h_head: 0, deadline: None };
        host.write_firmware();
        host.write_ads();
        host
    }

    /// Advances the clock and the engine time.
    fn pass(&self, ns: u64) {
        pass(&self.gt, &self.clock, ns);
    }

    fn cell(&self, at: u64) -> vm_memory::VolatileSlice<'_> {
        self.gt.memory.local().slice(at, 4).unwrap()
    }

    fn poke(&self, at: u64, value: u32) {
        self.cell(at).store(value, 0, std::sync::atomic::Ordering::SeqCst).unwrap();
    }

    fn peek(&self, at: u64) -> u32 {
        self.cell(at).load(0, std::sync::atomic::Ordering::SeqCst).unwrap()
    }

    fn write_firmware(&self) {
        let header = [6, 32 + 96 + 96 + 1, 0x1_0000, 0, 0x8086, 0x2024_0101, 32 + 193 + KERNEL_DWORDS, 96, 96, 1];
        for (n, value) in (0u64..).zip(header) {
            self.poke(FIRMWARE + n * 4, value);
        }
        self.poke(FIRMWARE + 0x40, 70 << 16 | 53 << 8);
        self.poke(FIRMWARE + 0x44, 1 << 16 | 26 << 8);
        self.poke(FIRMWARE + u64::from(DMA_BYTES), 0x1234_5678); // signature
    }

    fn write_ads(&self) {
        self.poke(ADS + 0x1004, (ADS + 0x11dc) as u32);
        self.poke(ADS + 0x1008, (ADS + 0x123c) as u32);
        self.poke(ADS + 0x1220, 1);
        for class in EngineClass::BY_GUC {
            let row = ADS + 0x123c + u64::from(class.guc()) * 32;
            let instances: Vec<u8> = self
                .engines
                .present()
                .map(|e| XE_HPG.engines.info(e))
                .filter(|i| i.class == class)
                .map(|i| i.instance)
                .collect();
            let table: Vec<u8> = (0..32).map(|n| instances.get(n).copied().unwrap_or(32)).collect();
            for (n, quad) in (0u64..).zip(table.chunks_exact(4)) {
                self.poke(row + n * 4, u32::from_le_bytes([quad[0], quad[1], quad[2], quad[3]]));
            }
            let mask = instances.iter().fold(0, |mask, n| mask | 1 << n);
            self.poke(ADS + 0x143c + u64::from(class.guc()) * 4, mask);
        }
    }

    /// Loads the firmware (contract B.4 steps 19 and 20); returns GUC_STATUS.
    fn upload(&mut self) -> u32 {
        let set = |offset, value| self.gt.registers.set(offset, value);
        set(0xc050, 0x3f_3001);
        set(0xc340, 0x4001);
        set(0xc180 + 5 * 4, (ADS >> 12 << 1) as u32);
        set(0xc180 + 3 * 4, 0x14); // features: SLPC, lite restore
        set(0xc180 + 2 * 4, 0x42_4800); // workarounds
        set(0xc200, (FIRMWARE + u64::from(DMA_BYTES)) as u32);
        set(0xc300, FIRMWARE as u32);
        set(0xc304, 0x8_0000);
        set(0xc308, 0x2000);
        set(0xc30c, 0x7_0000);
        set(0xc310, DMA_BYTES);
        set(0xc314, 0x11);
        self.start_dma()
    }

    fn start_dma(&mut self) -> u32 {
        self.guc.start_dma(&self.gt);
        assert_eq!(self.gt.registers.value(0xc314) & 1, 0, "DMA is complete");
        self.gt.registers.value(0xc000)
    }

    fn mail(&mut self, message: &[u32]) -> [u32; 4] {
        for (n, value) in (0u32..).zip(message) {
            self.gt.registers.set(0x19_0240 + n * 4, *value);
        }
        assert!(Guc::mailbox_holds_request(&self.gt, Function::PF));
        self.guc.mailbox(&self.gt, &self.engines, Function::PF);
        std::array::from_fn(|n| self.gt.registers.value(0x19_0240 + n as u32 * 4))
    }

    /// Enables the CT buffers (contract B.6), with the locations in the driver's order.
    fn enable_rings(&mut self) {
        let keys = [
            (0x0903, 2, CTB),
            (0x0902, 2, CTB + 0x1000),
            (0x0904, 1, u64::from(H2G_DWORDS) * 4),
            (0x0906, 2, CTB + 0x800),
            (0x0905, 2, CTB + 0x2000),
            (0x0907, 1, u64::from(G2H_DWORDS) * 4),
        ];
        for (key, len, value) in keys {
            assert_eq!(self.mail(&[0x0508, key << 16 | len, value as u32, 0])[0], 0xf000_0001);
        }
        for at in (CTB..CTB + 0x3000).step_by(4) {
            self.poke(at, 0);
        }
        (self.h2g_tail, self.g2h_head) = (0, 0);
        assert_eq!(self.mail(&[0x4509, 1])[0], 0xf000_0000);
    }

    fn up() -> Self {
        let mut host = Host::new();
        assert_eq!(host.upload(), 0x8001_f0ec);
        host.enable_rings();
        host
    }

    /// Writes a CT message as xe does, with zeros up to the end of the ring if it does not fit.
    fn send_raw(&mut self, message: &[u32]) {
        if self.h2g_tail + message.len() as u32 > H2G_DWORDS {
            while self.h2g_tail < H2G_DWORDS {
                self.poke(CTB + 0x1000 + u64::from(self.h2g_tail) * 4, 0);
                self.h2g_tail += 1;
            }
            self.h2g_tail = 0;
        }
        for dword in message {
            self.poke(CTB + 0x1000 + u64::from(self.h2g_tail) * 4, *dword);
            self.h2g_tail += 1;
        }
        self.h2g_tail %= H2G_DWORDS;
        self.poke(CTB + 4, self.h2g_tail);
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
        let mut message = vec![0x8001 << 16 | (payload.len() as u32 + 1), 2 << 28 | code];
        message.extend(payload);
        self.send_raw(&message);
    }

    /// Sends a tracked request and returns its only reply.
    fn request(&mut self, code: u32, payload: &[u32]) -> u32 {
        let mut message = vec![0x0012 << 16 | (payload.len() as u32 + 1), code];
        message.extend(payload);
        self.send_raw(&message);
        self.step();
        let replies = self.received();
        assert_eq!(replies.len(), 1, "{replies:x?}");
        assert_eq!(replies[0][0], 0x0012_0001);
        replies[0][1]
    }

    /// Reads the received messages, CT header first, and advances the head.
    fn received(&mut self) -> Vec<Vec<u32>> {
        let tail = self.peek(CTB + 0x800 + 4);
        let mut messages = Vec::new();
        let at = |dword: u32| CTB + 0x2000 + u64::from(dword % G2H_DWORDS) * 4;
        while self.g2h_head != tail {
            let header = self.peek(at(self.g2h_head));
            let message: Vec<u32> = (0..=header & 0xff).map(|n| self.peek(at(self.g2h_head + n))).collect();
            self.g2h_head = (self.g2h_head + message.len() as u32) % G2H_DWORDS;
            messages.push(message);
        }
        self.poke(CTB + 0x800, self.g2h_head);
        messages
    }

    fn stepped(&mut self) -> Vec<Vec<u32>> {
        self.step();
        self.received()
    }

    fn image(id: u32, member: u32) -> u64 {
        IMAGES + u64::from(id * 4 + member) * 0x4000
    }

    fn set_tail(&self, id: u32, tail: u32) {
        self.poke(Self::image(id, 0) + 0x1000 + 7 * 4, tail);
    }

    fn register(&mut self, id: u32, class: EngineClass, mask: u32) {
        let lrca = Self::image(id, 0) as u32 | 0x119;
        self.fast(0x4502, &[1, id, u32::from(class.guc()), mask, 0, 0, 0, 0, 0, lrca, 0]);
    }

    fn policies(&mut self, id: u32, priority: u32, quantum: u32, timeout: u32) {
        self.fast(0x100b, &[id, 0x2003_0001, priority, 0x2001_0001, quantum, 0x2002_0001, timeout]);
    }

    /// Registers a context, gives it work and enables it; checks the response.
    fn start(&mut self, id: u32, class: EngineClass, mask: u32, priority: u32) {
        self.register(id, class, mask);
        self.policies(id, priority, 1000, 640_000);
        self.poke(Self::image(id, 0) + 0x1000 + 5 * 4, 0);
        self.set_tail(id, 64);
        self.fast(0x1001, &[id, 1]);
        assert_eq!(self.stepped(), [[3, 0x9000_1002, id, 1]]);
    }

    fn slot(&self, engine: &str) -> &engine_slot::EngineSlot {
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
