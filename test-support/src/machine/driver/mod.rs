// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A minimal driver in plain Rust that can submit work. It is written from the driver contract
//! (`docs/spec/xe-driver-contract.md`) and accesses the card only through the transport under test.
//!
//! All its data structures are in guest memory, so the card accesses them by the transport's DMA.

pub mod context;
pub mod pf;
mod start;

use std::cell::RefCell;
use std::time::Instant;

use arctic_guc_driver::actions::*;
pub use arctic_guc_driver::provision::{Share, VF_CAP};
use arctic_guc_driver::{DriverState, GucDriver, Inbox, Layout};

use crate::ct::{self, self_cfg};
pub use crate::ct::{FAILURE, GUC_HOST_INTERRUPT, MAILBOX, SUCCESS};
use crate::machine::transport::Machine;
use crate::poll::{TIMEOUT, eventually};

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
/// Places of the GuC protocol's data structures, with space for 64 context images.
const LAYOUT: Layout = Layout {
    ctb: CTB,
    firmware: FIRMWARE,
    ads: ADS,
    images: 0x10_0000,
    rings: 0x6_0000,
    batches: 0xa_0000,
    members: 1,
};

/// The driver of one function.
pub struct Driver {
    /// Number of the function.
    pub function: u8,
    /// State of the GuC protocol; its base is for a VF also that of its GGTT range.
    pub state: DriverState,
    /// Guest address of its memory.
    ram: u64,
    /// Next free context ID for the driver's own work.
    next_context: u32,
    /// Messages from the GuC.
    pub inbox: Inbox,
}

/// A driver with the machine whose card it accesses.
struct Session<'m> {
    driver: &'m mut Driver,
    machine: RefCell<&'m mut dyn Machine>,
}

impl arctic_guc_driver::Access for Session<'_> {
    fn set(&self, register: u32, value: u32) {
        self.machine.borrow_mut().set_register(self.driver.function, register, value);
    }

    fn get(&self, register: u32) -> u32 {
        self.machine.borrow_mut().register(self.driver.function, register)
    }

    fn poke(&self, at: u64, value: u32) {
        self.driver.poke(*self.machine.borrow_mut(), at, &[value]);
    }

    fn peek(&self, at: u64) -> u32 {
        self.driver.peek(*self.machine.borrow_mut(), at)
    }

    fn write_words(&self, at: u64, words: &[u32]) {
        self.driver.poke(*self.machine.borrow_mut(), at, words);
    }
}

impl GucDriver for Session<'_> {
    fn access(&self) -> &dyn arctic_guc_driver::Access {
        self
    }

    fn state(&self) -> &DriverState {
        &self.driver.state
    }

    fn state_mut(&mut self) -> &mut DriverState {
        &mut self.driver.state
    }

    fn mail(&mut self, message: &[u32]) -> [u32; 4] {
        self.mail_while(message, |_| ())
    }
}

impl Session<'_> {
    /// Sends a mailbox request and waits for the response; calls `meanwhile` in each iteration of the wait. Repeats the
    /// request if a reset has cleared the mailbox.
    fn mail_while(&mut self, message: &[u32], mut meanwhile: impl FnMut(&mut dyn Machine)) -> [u32; 4] {
        let mut first = 0;
        let what = format!("the GuC's response to function {}: {:#x}", self.driver.function, message[0]);
        eventually(&what, || {
            if first == 0 {
                self.post(message);
            }
            meanwhile(*self.machine.borrow_mut());
            first = self.get(MAILBOX);
            // Origin: the GuC.
            first >> 31 == 1
        });
        self.response()
    }
}

impl Driver {
    fn new(machine: &dyn Machine, function: u8, base: u64) -> Self {
        let ram = machine.ram() + u64::from(function) * OWN_BYTES;
        Driver { function, state: DriverState::new(base, LAYOUT, 0), ram, next_context: 32, inbox: Inbox::default() }
    }

    fn with<'m>(&'m mut self, machine: &'m mut dyn Machine) -> Session<'m> {
        Session { driver: self, machine: RefCell::new(machine) }
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
        machine.fill(self.function, 0, GGTT + (self.state.base >> 12) * 8, &entries);
    }

    /// Sends a request through the mailbox; returns the four dwords of the response.
    pub fn mail(&mut self, machine: &mut dyn Machine, message: &[u32]) -> [u32; 4] {
        self.with(machine).mail(message)
    }

    /// Contract B.6: passes the addresses of the rings to the GuC, and enables the rings.
    fn enable_rings(&mut self, machine: &mut dyn Machine) {
        self.poke(machine, CTB, &[0; ct::BYTES as usize / 4]);
        let g2h = self.state.base + CTB + ct::G2H;
        self.with(machine).enable_rings(g2h);
    }

    /// Sends a fast request, which has no response.
    pub fn request(&mut self, machine: &mut dyn Machine, action: u32, payload: &[u32]) {
        self.with(machine).request(action, payload);
    }

    /// Sends a request through the ring; returns the HXG header of the response.
    pub fn call(&mut self, machine: &mut dyn Machine, action: u32, payload: &[u32]) -> u32 {
        let fence = self.inbox.next_fence();
        self.with(machine).send(&ct::request(fence, action, payload));
        let mut answer = None;
        eventually(&format!("the GuC's response to {action:#x}"), || {
            self.receive(machine);
            answer = self.inbox.take_response(fence);
            answer.is_some()
        });
        answer.unwrap()
    }

    /// Reads all pending messages from the GuC-to-host ring.
    pub fn receive(&mut self, machine: &mut dyn Machine) {
        let status = self.peek(machine, CTB + ct::G2H_DESCRIPTOR + ct::STATUS);
        assert_eq!(status, 0, "the GuC's CT descriptor has an error status");
        while let Some(message) = self.with(machine).take() {
            self.inbox.push(message);
        }
    }

    /// Waits for `event` and removes it from the inbox; panics after [`TIMEOUT`].
    pub fn wait_event(&mut self, machine: &mut dyn Machine, event: &[u32]) {
        let start = Instant::now();
        loop {
            self.receive(machine);
            if self.inbox.take_event(|has| has == event).is_some() {
                return;
            }
            let (function, events) = (self.function, &self.inbox.events);
            assert!(start.elapsed() < TIMEOUT, "function {function}: no event {event:x?} among {events:x?}");
        }
    }

    /// Waits until a doubleword of the driver's memory has this value.
    pub fn wait_for(&self, machine: &mut dyn Machine, offset: u64, value: u32) {
        eventually(&format!("{value:#x} at {offset:#x} of function {}", self.function), || {
            self.peek(machine, offset) == value
        });
    }
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
        assert_eq!(driver.with(machine).mail_while(&[VF_RESET], meanwhile)[0], SUCCESS);
        assert_eq!(driver.mail(machine, &[MATCH_VERSION, 0x0001_0100])[..2], [SUCCESS, 0x0001_1b00]);
        driver.state.base = driver.share(machine).ggtt_start;
        driver.clear(machine);
        driver.show(machine);
        let (source, status) =
            (driver.state.base + MEMIRQ + 0x400 + GUC_SOURCE, driver.state.base + MEMIRQ + GUC_SOURCE * 16);
        for message in
            [ct::configure(self_cfg::INTERRUPT_SOURCE, source), ct::configure(self_cfg::INTERRUPT_STATUS, status)]
        {
            driver.with(machine).must(&message, SUCCESS | 1);
        }
        driver.enable_rings(machine);
        driver
    }

    /// Queries the VF's resources from the GuC.
    pub fn share(&mut self, machine: &mut dyn Machine) -> Share {
        Share::query(|key, len| {
            let answer = self.mail(machine, &[QUERY_SINGLE_KLV, key]);
            assert_eq!(answer[0], SUCCESS | len, "key {key:#x}");
            if len == 2 { u64::from(answer[2]) << 32 | u64::from(answer[1]) } else { answer[1].into() }
        })
    }
}

/// Source index of the GuC for memory-based interrupts.
const GUC_SOURCE: u64 = 25;
