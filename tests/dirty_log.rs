// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The bitmap of a VMM's memory is the log of the card's writes: each page that differs between two copies of guest memory is
//! marked, for engines, the copy engine, execution units, the GuC and memory-based interrupts, also if the function was paused,
//! saved, restored on another card and resumed in between.
#![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use arctic_gpu::{GuestRam, PciDevice, SavedDevice, Topology, VirtualCard, card_file};
use arctic_test_support::actions::*;
use arctic_test_support::driver::{Access, DriverState, GucDriver, Layout};
use arctic_test_support::kernels::{COUNT, kernel};
use arctic_test_support::logged_ram::LoggedRam;
use arctic_test_support::mi::blt::{Area, Depth, Surface, fast_color, fast_copy};
use arctic_test_support::mi::compute::{Bases, Walker, cfe_state, state_base_address, state_compute_mode};
use arctic_test_support::mi::{self, Global, Process};
use arctic_test_support::null_machine::NullMachine;
use arctic_test_support::random::Random;
use arctic_test_support::{context, ct};

const RAM_BYTES: usize = 4 << 20;
const LIMIT: Duration = Duration::from_secs(30);

// Memory of the driver, by guest address, which is its offset in the GGTT range and its virtual address.
const CT_BUFFERS: u64 = 0x1_0000;
const INTERRUPTS: u64 = 0x1_4000;
const IMAGES: u64 = 0x2_0000;
const RINGS: u64 = 0x10_0000;
const BATCHES: u64 = 0x14_0000;
const CODE: u64 = 0x18_0000;
/// Dwords that contexts write when they have ended, each in a page of its own, then other results.
const DONE: u64 = 0x20_0000;
const RESULTS: u64 = 0x28_0000;
const LAYOUT: Layout =
    Layout { ctb: CT_BUFFERS, firmware: 0, ads: 0, images: IMAGES, rings: RINGS, batches: BATCHES, members: 1 };
/// Contexts of a run.
const CONTEXTS: u32 = 40;
/// Page tables, in local memory.
const TABLES: u64 = 0x10_0000;
/// The window of the GGTT in the BAR of the registers.
const GGTT: u64 = 8 << 20;

/// Classes of the GuC.
const RENDER: u32 = 0;
const COPY: u32 = 3;
const COMPUTE: u32 = 4;

/// A machine with a virtual function.
struct GuestMachine {
    card: VirtualCard,
    ram: LoggedRam,
}

/// A virtual machine with a virtual function, and its driver.
struct Vm {
    machine: GuestMachine,
    driver: DriverState,
}

impl GuestMachine {
    fn vf(&self) -> &dyn PciDevice {
        &**self.card.functions().last().unwrap()
    }

    fn saved(&self) -> &dyn SavedDevice {
        self.vf().saved_device().unwrap()
    }
}

impl Access for GuestMachine {
    fn set(&self, register: u32, value: u32) {
        self.vf().write_bar(0, register.into(), &value.to_le_bytes());
    }

    fn get(&self, register: u32) -> u32 {
        let mut data = [0; 4];
        self.vf().read_bar(0, register.into(), &mut data);
        u32::from_le_bytes(data)
    }

    fn poke(&self, at: u64, value: u32) {
        self.ram.write(at, &value.to_le_bytes());
    }

    fn peek(&self, at: u64) -> u32 {
        let mut data = [0; 4];
        self.ram.read(at, &mut data);
        u32::from_le_bytes(data)
    }
}

impl GucDriver for Vm {
    fn access(&self) -> &dyn Access {
        &self.machine
    }

    fn state(&self) -> &DriverState {
        &self.driver
    }

    fn state_mut(&mut self) -> &mut DriverState {
        &mut self.driver
    }
}

impl Vm {
    fn new() -> Vm {
        let ram = LoggedRam::new(0, RAM_BYTES);
        let memory = GuestRam::new(ram.card.clone());
        let file = card_file::load("small").unwrap();
        let card = VirtualCard::builder(file)
            .vfs(1)
            .topology(Topology::Provisioned)
            .plug_into(Arc::new(NullMachine), memory)
            .unwrap();
        let machine = GuestMachine { card, ram };
        // Memory space and bus master.
        machine.vf().write_config(4, &[6, 0]);
        Vm { machine, driver: DriverState::new(0, LAYOUT, TABLES) }
    }

    fn mail_until(&mut self, message: &[u32]) -> [u32; 4] {
        self.post(message);
        let begin = Instant::now();
        loop {
            let answer = self.response();
            if answer[0] >> 31 != 0 {
                return answer;
            }
            assert!(begin.elapsed() < LIMIT, "no answer to {message:x?}");
            std::thread::yield_now();
        }
    }

    /// Sets the function up: its GGTT entries, page tables, CT buffers and memory-based interrupt.
    fn start(&mut self) {
        assert_eq!(self.mail_until(&[VF_RESET])[0], ct::SUCCESS);
        assert_eq!(self.mail_until(&[MATCH_VERSION, 0x0001_1b00])[0], ct::SUCCESS);
        let [_, low, high, _] = self.mail_until(&[QUERY_SINGLE_KLV, 1]);
        let base = u64::from(low) | u64::from(high) << 32;
        self.driver = DriverState::new(base, LAYOUT, TABLES);
        for page in 0..RAM_BYTES as u64 >> 12 {
            let entry = page << 12 | 1;
            self.machine.vf().write_bar(0, GGTT + (base / 4096 + page) * 8, &entry.to_le_bytes());
        }
        let table = |n: u64| TABLES + n * 0x1000;
        for (at, entry) in
            [(table(0), table(1) | 3), (table(1), table(2) | 3), (table(2), 0x83), (table(2) + 8, 0x20_0083)]
        {
            self.machine.vf().write_bar(2, at, &entry.to_le_bytes());
        }
        let interrupts = base + INTERRUPTS;
        let registrations = ct::registration(base + CT_BUFFERS, base + CT_BUFFERS + ct::G2H);
        let pointers = [(ct::self_cfg::INTERRUPT_SOURCE, 0x419), (ct::self_cfg::INTERRUPT_STATUS, 400)];
        let pointers = pointers.map(|(key, at)| ct::configure(key, interrupts + at));
        for message in registrations.iter().chain(&pointers) {
            assert_eq!(self.mail_until(message)[0], ct::SUCCESS | 1);
        }
        self.write_words(CT_BUFFERS, &[0; ct::DESCRIPTOR_DWORDS]);
        assert_eq!(self.mail_until(&ct::ENABLE)[0], ct::SUCCESS);
    }

    /// Submits a context that does something and then writes [`DONE`].
    fn submit(&mut self, id: u32, random: &mut Random) {
        let base = self.base();
        let result = |random: &mut Random| RESULTS + random.below(0x100) * 0x1000 + random.below(0x3f0) * 4;
        let mut class = COPY;
        let mut batch: Vec<u32> = Vec::new();
        let mut ring: Vec<u32> = Vec::new();
        match random.below(4) {
            0 => {
                for _ in 0..20 {
                    ring.extend(mi::store_data_imm(Global(base + result(random)), random.any() as u32));
                    batch.extend(mi::atomic_increment(Process(result(random))));
                }
                class = [RENDER, COPY][random.below(2) as usize];
            }
            1 => {
                let from = Surface { system: true, ..Surface::linear(RESULTS, 0x1000) };
                let to = Surface { system: true, ..Surface::linear(RESULTS + 0x8_0000, 0x1000) };
                let area = Area::of(64, 1 + random.below(40) as u32);
                batch.extend(fast_color(&from, Depth::Bits32, area, [random.any() as u32; 4]));
                batch.extend(fast_copy(
                    &from,
                    area,
                    &to,
                    random.below(100) as u32,
                    random.below(80) as u32,
                    Depth::Bits32,
                ));
            }
            _ => {
                class = COMPUTE;
                let counter = result(random) & !7;
                let inline = Some([counter as u32, 0, 2000 + random.below(20_000) as u32, 0, 0, 0, 0, 0]);
                let groups = 1 + random.below(4) as u32;
                let walker = Walker { threads: 2, groups: [groups, 1, 1], inline, ..Walker::of(0) };
                let bases = Bases { instruction: CODE, ..Bases::default() };
                batch.extend([&state_base_address(&bases)[..], &state_compute_mode(false), &cfe_state(0)].concat());
                batch.extend(walker.words());
            }
        }
        batch.push(mi::BATCH_BUFFER_END);
        self.write_words(LAYOUT.batch(id), &batch);
        ring.extend(mi::batch_buffer_start(Process(LAYOUT.batch(id))));
        ring.extend(mi::store_data_imm(Global(base + done(id)), VALUE));
        ring.push(mi::USER_INTERRUPT);
        self.write_context(id, 0, &ring);
        // xe: set_memory_based_intr (contract C.3).
        let page = (base + INTERRUPTS) as u32;
        let words = [0x14c8_0002, 0xa8, page + 0x440, 0, 0, 0x1108_1003, 0xac, page, 0xa4, page + 0x400];
        self.write_words(LAYOUT.image(id, 0) + context::IMAGE + 0x50 * 4, &words);
        self.poke(INTERRUPTS + 0x440, 1);
        self.register(id, class, 1);
        self.request(SCHED_CONTEXT_MODE_SET, &[id, 1]);
    }

    fn wait(&self, contexts: u32) {
        let begin = Instant::now();
        while (0..contexts).any(|id| self.peek(done(id)) != VALUE) {
            let done: Vec<bool> = (0..contexts).map(|id| self.peek(done(id)) == VALUE).collect();
            assert!(begin.elapsed() < LIMIT, "contexts that have ended: {done:?}");
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    /// Checks the log since the last copy, and begins with another copy.
    fn copy_again(&self) {
        let missing = self.machine.ram.not_logged();
        assert!(missing.is_empty(), "pages that are not in the log: {missing:x?}");
        self.machine.ram.restart(|| self.machine.card.memory_changed());
    }
}

/// Value that contexts write, and where.
const VALUE: u32 = 0xcafe;

fn done(id: u32) -> u64 {
    DONE + u64::from(id) * 0x1000
}

/// Moves the virtual machine to another card, with its memory.
fn moved(source: Vm) -> Vm {
    source.machine.saved().pause(LIMIT).unwrap();
    let mut target = Vm::new();
    let mut memory = vec![0; RAM_BYTES];
    source.machine.ram.read(0, &mut memory);
    target.machine.ram.write(0, &memory);
    let mut state = Vec::new();
    source.machine.saved().save(&mut state).unwrap();
    target.machine.saved().pause(LIMIT).unwrap();
    target.machine.saved().restore(&mut &state[..]).unwrap();
    target.driver = source.driver;
    // A paused function does not write: its memory is the one that was copied.
    let mut now = vec![0; RAM_BYTES];
    source.machine.ram.read(0, &mut now);
    let mut there = vec![0; RAM_BYTES];
    target.machine.ram.read(0, &mut there);
    assert!(now == there, "memory was written while the function was paused");
    target.machine.saved().resume().unwrap();
    target
}

#[test]
fn each_page_that_differs_between_two_copies_is_marked() {
    for seed in 0..6 {
        let random = &mut Random::new(seed);
        let mut vm = Vm::new();
        vm.write_words(CODE, &kernel(COUNT));
        vm.start();
        for id in 0..CONTEXTS {
            vm.submit(id, random);
            match random.below(8) {
                0 | 1 => vm = moved(vm),
                2 | 3 => vm.copy_again(),
                4 => std::thread::sleep(Duration::from_micros(random.below(2000))),
                5 => vm.wait(id),
                _ => {}
            }
        }
        vm.wait(CONTEXTS);
        assert_eq!(vm.peek(INTERRUPTS) & 0xff, 0xff, "no memory-based interrupt of an engine");
        let mut answers = 0;
        while vm.take().is_some() {
            answers += 1;
        }
        assert!(answers > 0, "no message of the GuC");
        vm.copy_again();
    }
}
