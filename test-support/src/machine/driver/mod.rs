// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A minimal driver in plain Rust that can submit work. It is written from the driver contract
//! (`docs/spec/xe-driver-contract.md`) and accesses the card only through the transport under test.
//!
//! All its data structures are in guest memory, so the card accesses them by the transport's DMA.

pub mod context;
pub mod pf;
mod start;

use std::time::Instant;

use crate::ct::{self, Rings};
pub use crate::ct::{BELL, FAILURE, MAILBOX, SUCCESS};
use crate::machine::transport::{Machine, PATIENCE, eventually};

// Registers.
/// VF_CAP_REG: reads 1 on a VF.
pub const VF_CAP: u32 = 0x19_01f8;
/// Offset of the GGTT entries in GTTMMADR.
pub const GGTT: u64 = 8 << 20;
/// Bytes of GTTMMADR.
pub const GTTMMADR_BYTES: u64 = 16 << 20;

/// Bytes of guest memory for each function's driver; the ranges are consecutive.
const OWN_BYTES: u64 = 2 << 20;
/// GGTT address at which the PF's driver maps its memory.
const PF_BASE: u64 = 0x2000_0000;

// Offsets in the driver's memory.
const FIRMWARE: u64 = 0;
const ADS: u64 = 0x1_0000;
/// Both CT rings and their descriptors.
pub const CTB: u64 = 0x2_0000;
const LIST: u64 = 0x3_0000;
/// Scratch memory that the batches of tests write.
pub const SCRATCH: u64 = 0x4_0000;
/// Memory-based interrupts (contract C.3).
const MEMIRQ: u64 = 0x5_0000;
const RINGS: u64 = 0x6_0000;
const BATCHES: u64 = 0xa_0000;
/// Space for 64 context images.
const IMAGES: u64 = 0x10_0000;

/// The driver of one function.
pub struct Driver {
    /// Number of the function.
    pub function: u8,
    /// GGTT address of its memory; for a VF also the base of its GGTT range.
    pub base: u64,
    /// Guest address of its memory.
    ram: u64,
    rings: Rings,
    fence: u32,
    /// Next free context ID for the driver's own work.
    next_context: u32,
    /// Messages from the GuC that are not responses, HXG header first.
    pub events: Vec<Vec<u32>>,
    answers: Vec<Vec<u32>>,
}

impl Driver {
    fn new(machine: &dyn Machine, function: u8, base: u64) -> Self {
        let ram = machine.ram() + u64::from(function) * OWN_BYTES;
        Driver {
            function,
            base,
            ram,
            rings: Rings::default(),
            fence: 0,
            next_context: 32,
            events: Vec::new(),
            answers: Vec::new(),
        }
    }

    /// Returns the guest address of the driver's memory at `offset`.
    pub fn address(&self, offset: u64) -> u64 {
        self.ram + offset
    }

    /// Reads a doubleword of the driver's memory.
    pub fn peek(&self, machine: &mut dyn Machine, offset: u64) -> u32 {
        machine.ram32(self.function, self.address(offset))
    }

    /// Writes doublewords to the driver's memory.
    pub fn poke(&self, machine: &mut dyn Machine, offset: u64, words: &[u32]) {
        machine.set_ram(self.function, self.address(offset), words);
    }

    /// Fills the driver's memory with zeros.
    fn clear(&self, machine: &mut dyn Machine) {
        machine.write_ram(self.function, self.ram, &vec![0; OWN_BYTES as usize]);
    }

    /// Maps the driver's memory into the GGTT.
    fn show(&self, machine: &mut dyn Machine) {
        let entries = (0..OWN_BYTES >> 12).flat_map(|page| (self.address(page << 12) | 1).to_le_bytes());
        let entries: Vec<u8> = entries.collect();
        machine.fill(self.function, 0, GGTT + (self.base >> 12) * 8, &entries);
    }

    /// Sends a request through the mailbox; returns the four dwords of the response.
    pub fn mail(&self, machine: &mut dyn Machine, message: &[u32]) -> [u32; 4] {
        self.mail_while(machine, message, |_| ())
    }

    /// Same as [`Driver::mail`], and calls `meanwhile` in each iteration of the wait. Repeats the request if a reset
    /// has cleared the mailbox.
    fn mail_while(
        &self,
        machine: &mut dyn Machine,
        message: &[u32],
        mut meanwhile: impl FnMut(&mut dyn Machine),
    ) -> [u32; 4] {
        let mut first = 0;
        eventually(&format!("the GuC's response to function {}: {:#x}", self.function, message[0]), || {
            if first == 0 {
                for n in 0..4 {
                    let value = message.get(n as usize).copied().unwrap_or(0);
                    machine.set_register(self.function, MAILBOX + n * 4, value);
                }
                machine.set_register(self.function, BELL, 1);
            }
            meanwhile(machine);
            first = machine.register(self.function, MAILBOX);
            // Origin: the GuC.
            first >> 31 == 1
        });
        std::array::from_fn(|n| machine.register(self.function, MAILBOX + n as u32 * 4))
    }

    /// Contract B.6: passes the addresses of the rings to the GuC, and enables the rings.
    fn enable_rings(&mut self, machine: &mut dyn Machine) {
        self.poke(machine, CTB, &[0; ct::BYTES as usize / 4]);
        self.rings = Rings::default();
        let buffers = self.base + CTB;
        for message in ct::registration(buffers, buffers + ct::G2H) {
            assert_eq!(self.mail(machine, &message)[0], SUCCESS | 1, "{message:x?}");
        }
        assert_eq!(self.mail(machine, &ct::ENABLE)[0], SUCCESS, "CT buffers are enabled");
    }

    /// Writes a message into the ring and notifies the GuC.
    fn send(&mut self, machine: &mut dyn Machine, message: &[u32]) {
        let mut rings = self.rings;
        rings.put(message, |at, dword| self.poke(machine, CTB + at, &[dword]));
        self.rings = rings;
        machine.set_register(self.function, BELL, 1);
    }

    /// Sends a fast request, which has no response.
    pub fn tell(&mut self, machine: &mut dyn Machine, action: u32, payload: &[u32]) {
        self.send(machine, &ct::fast_request(action, payload));
    }

    /// Sends a request through the ring; returns the HXG header of the response.
    pub fn ask(&mut self, machine: &mut dyn Machine, action: u32, payload: &[u32]) -> u32 {
        self.fence = self.fence % 0x7fff + 1;
        let fence = self.fence;
        self.send(machine, &ct::request(fence, action, payload));
        let mut answer = None;
        eventually(&format!("the GuC's response to {action:#x}"), || {
            self.receive(machine);
            answer = self.answers.iter().position(|answer| answer[0] >> 16 == fence).map(|n| self.answers.remove(n));
            answer.is_some()
        });
        answer.unwrap()[1]
    }

    /// Reads all pending messages from the GuC-to-host ring.
    pub fn receive(&mut self, machine: &mut dyn Machine) {
        let status = self.peek(machine, CTB + ct::G2H_DESCRIPTOR + ct::STATUS);
        assert_eq!(status, 0, "the GuC's CT descriptor has an error status");
        let mut rings = self.rings;
        while let Some(message) = rings.take(|at| self.peek(machine, CTB + at)) {
            self.poke(machine, CTB + ct::G2H_DESCRIPTOR + ct::HEAD, &[rings.head()]);
            // Message type: event or response.
            match message[1] >> 28 & 7 {
                1 => self.events.push(message[1..].to_vec()),
                _ => self.answers.push(message),
            }
        }
        self.rings = rings;
    }

    /// Waits for `event` and removes it from [`Driver::events`]; panics after [`PATIENCE`].
    pub fn wait_event(&mut self, machine: &mut dyn Machine, event: &[u32]) {
        let start = Instant::now();
        loop {
            self.receive(machine);
            if let Some(n) = self.events.iter().position(|has| has == event) {
                self.events.remove(n);
                return;
            }
            let (function, events) = (self.function, &self.events);
            assert!(start.elapsed() < PATIENCE, "function {function}: no event {event:x?} among {events:x?}");
        }
    }

    /// Waits until a doubleword of the driver's memory has this value.
    pub fn wait_for(&self, machine: &mut dyn Machine, offset: u64, value: u32) {
        eventually(&format!("{value:#x} at {offset:#x} of function {}", self.function), || {
            self.peek(machine, offset) == value
        });
    }
}

/// A VF's resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// First address of its GGTT range.
    pub ggtt_start: u64,
    /// Bytes of its GGTT range.
    pub ggtt_bytes: u64,
    /// Bytes of its local memory.
    pub local_bytes: u64,
    /// Number of context IDs.
    pub contexts: u32,
    /// Number of doorbells.
    pub doorbells: u32,
}

impl Driver {
    /// Returns a VF's driver after querying its resources (contract C.1), mapping its memory and enabling its rings.
    pub fn vf(machine: &mut dyn Machine, function: u8) -> Self {
        Self::vf_while(machine, function, |_| ())
    }

    /// Same as [`Driver::vf`] for a VF that may be in reset; `pf` performs the PF's part of the reset.
    pub fn vf_led(machine: &mut dyn Machine, function: u8, pf: &mut Driver) -> Self {
        Self::vf_while(machine, function, |machine| pf.lead_resets(machine))
    }

    fn vf_while(machine: &mut dyn Machine, function: u8, meanwhile: impl FnMut(&mut dyn Machine)) -> Self {
        let mut driver = Driver::new(machine, function, 0);
        assert_eq!(machine.register(function, VF_CAP), 1, "a VF");
        // VF_RESET, and MATCH_VERSION.
        assert_eq!(driver.mail_while(machine, &[0x5507], meanwhile)[0], SUCCESS);
        assert_eq!(driver.mail(machine, &[0x5500, 0x0001_0100])[..2], [SUCCESS, 0x0001_1a00]);
        driver.base = driver.share(machine).ggtt_start;
        driver.clear(machine);
        driver.show(machine);
        let (source, status) = (driver.base + MEMIRQ + 0x400 + GUC_SOURCE, driver.base + MEMIRQ + GUC_SOURCE * 16);
        for message in [ct::configure(0x0901, 2, source), ct::configure(0x0900, 2, status)] {
            assert_eq!(driver.mail(machine, &message)[0], SUCCESS | 1, "{message:x?}");
        }
        driver.enable_rings(machine);
        driver
    }

    /// Queries the VF's resources from the GuC.
    pub fn share(&self, machine: &mut dyn Machine) -> Share {
        let mut query = |key: u32, len: u32| {
            let answer = self.mail(machine, &[0x5509, key]);
            assert_eq!(answer[0], SUCCESS | len, "key {key:#x}");
            if len == 2 { u64::from(answer[2]) << 32 | u64::from(answer[1]) } else { answer[1].into() }
        };
        Share {
            ggtt_start: query(1, 2),
            ggtt_bytes: query(2, 2),
            local_bytes: query(3, 2),
            contexts: query(4, 1) as u32,
            doorbells: query(6, 1) as u32,
        }
    }
}

/// Source index of the GuC for memory-based interrupts.
const GUC_SOURCE: u64 = 25;
