// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Fuzz harness of the BARs and the configuration space of an integrated GPU: accesses of any offset and width, in any
//! order, between steps of the card, resets, and moves, in which its saved state is restored.
//!
//! Accesses have one of eight widths, 1 to 64 bytes. Reads have no effect: a byte read returns the same value as the byte
//! in a wider read. What is written through the aperture is read there. No MSI is sent without a route. A new card with the
//! saved state continues. After a reset of the function, the registers are those of power-on.
//!
//! Byte 0 of the input selects the card by bits 1:0, and by bit 2 whether firmware has set up its BARs (0).

use std::io;
use std::sync::{Arc, Mutex};

use arctic_device_model::gen6::card::{Card, GMADR_BAR, GTTMMADR_BAR, GTTMMADR_BYTES, IO_BAR};
use arctic_device_model::gpu::Gpu;
use arctic_device_model::host::ManualClock;
use arctic_gpu::pci::Event;
use arctic_gpu::{CardFile, CardFunction, Function, GuestRam, Machine, MsiSink, PciDevice, VirtualCard};
use vm_memory::{GuestAddress, GuestMemoryMmap};

use super::msi::{CheckedMsi, MAX_INPUT_BYTES, MAX_OPERATIONS};
use super::tree::visit_part;
use crate::bytes::Bytes;
use crate::model::{Inside, observed};

/// Size in bytes of the guest's memory, from address 0 on.
const RAM_BYTES: usize = 0x4_0000;
/// Built-in cards: of both generations, with memory that is swizzled, and with fused-off engines.
const CARDS: [&str; 4] = ["ivb", "ivb-swizzled", "snb", "ivb-fused"];

// Configuration registers (i915: intel_gtt.h, pci_regs.h).
const COMMAND: u64 = 0x04;
/// GTTMMADR, low dword.
const BAR_0: u64 = 0x10;
/// GMADR, low dword.
const BAR_2: u64 = 0x18;
/// I/O ports.
const BAR_4: u64 = 0x20;
const MSI_CONTROL: u64 = 0x92;
const MSI_ADDRESS: u64 = 0x94;
const CONFIG_BYTES: u64 = 0x100;

// Registers in GTTMMADR (i915: i915_reg.h).
/// Offset of the GGTT's entries.
const GGTT: u64 = 2 << 20;
const GTIMR: u64 = 0x4_4014;
const GTIER: u64 = 0x4_401c;
const DEIER: u64 = 0x4_400c;
const DEIER_MASTER_ENABLE: u32 = 1 << 31;
const BCS_IMR: u64 = 0x2_20a8;
const BCS_START: u64 = 0x2_2038;
/// Bits 15:0 of the offsets of the engines' TIMESTAMP.
const TIMESTAMP: [u32; 2] = [0x2358, 0x235c];
const GT_GFX_RC6: u32 = 0x13_8108;
/// MCHBAR and what is behind it, in the upper half of the registers.
const UPPER_REGISTERS: u64 = 0x10_0000;

/// A machine that checks the card's notifications.
#[derive(Default)]
struct CheckingMachine {
    msi: Arc<CheckedMsi>,
    bars: Mutex<[Option<u64>; 6]>,
}

impl Machine for CheckingMachine {
    fn msi(&self, _: Function) -> io::Result<Arc<dyn MsiSink>> {
        Ok(self.msi.clone())
    }

    fn bar_moved(&self, function: &Arc<dyn PciDevice>, bar: u8, address: Option<u64>) -> io::Result<()> {
        assert!(function.bars().iter().any(|found| found.index == bar), "BAR {bar} does not exist");
        let recorded = &mut self.bars.lock().unwrap()[usize::from(bar)];
        assert_ne!(*recorded, address, "the BAR's address has not changed");
        *recorded = address;
        Ok(())
    }

    fn vfs_enabled(&self, _: &[Arc<dyn PciDevice>]) {
        panic!("the card has no VFs");
    }

    fn vfs_disabled(&self, _: &[Arc<dyn PciDevice>]) {
        panic!("the card has no VFs");
    }

    fn event(&self, _: &Arc<dyn PciDevice>, _: Event) {}
}

/// A card, and what it needs to be replaced by another one.
struct Fixture {
    name: String,
    card: VirtualCard,
    inside: Inside,
    clock: Arc<ManualClock>,
    ram: GuestMemoryMmap,
    /// Offsets of the model's registers.
    registers: Vec<u32>,
}

impl Fixture {
    fn new(name: &str) -> Fixture {
        let ram = GuestMemoryMmap::<()>::from_ranges(&[(GuestAddress(0), RAM_BYTES)]).unwrap();
        Fixture::with(name, Arc::new(ManualClock::default()), ram)
    }

    fn with(name: &str, clock: Arc<ManualClock>, ram: GuestMemoryMmap) -> Fixture {
        let CardFile::Integrated(profile) = arctic_gpu::card_file::load(name).unwrap() else {
            panic!("{name} is not an integrated GPU")
        };
        let memory = GuestRam::new(Arc::new(ram.clone()));
        let machine = Arc::new(CheckingMachine::default());
        let (profile, inside) = observed(profile);
        let builder = VirtualCard::builder(profile).clock(clock.clone()).without_threads(|| {});
        let card = builder.plug_into(machine, memory).unwrap();
        let mut fixture = Fixture { name: name.into(), card, inside, clock, ram, registers: Vec::new() };
        fixture.registers = fixture.model().gt().registers.listing().map(|(offset, _)| offset).collect();
        fixture
    }

    /// Replaces the card by a new one with the saved state and the same configuration space.
    fn move_to_new_card(&mut self) {
        let saved = self.model().save();
        let new = Fixture::with(&self.name, self.clock.clone(), self.ram.clone());
        new.model().restore(&saved).unwrap();
        assert!(new.model().save() == saved, "the state after restore differs from the saved state");
        // The command register last: BARs are decoded, and MSIs sent, by what is written before.
        let others = (0..CONFIG_BYTES).step_by(4).filter(|offset| *offset != COMMAND);
        for offset in others.chain([COMMAND]) {
            let mut dword = [0; 4];
            self.function().read_config(offset, &mut dword);
            new.function().write_config(offset, &dword);
        }
        *self = new;
    }

    fn model(&self) -> &Card {
        self.inside.card()
    }

    fn function(&self) -> &Arc<CardFunction> {
        &self.card.functions()[0]
    }

    /// Sets up the function as firmware and a driver do: BARs, bus mastering, an MSI, pages of the GGTT and an engine.
    fn initialize(&self) {
        let function = self.function();
        let write_config_dword = |offset: u64, value: u32| function.write_config(offset, &value.to_le_bytes());
        write_config_dword(BAR_0, 0xe000_0000);
        write_config_dword(BAR_2, 0xd000_0000);
        write_config_dword(BAR_4, 0x3000);
        write_config_dword(COMMAND, 7);
        write_config_dword(MSI_ADDRESS, 0xfee0_0000);
        function.write_config(MSI_CONTROL, &[1, 0]);
        for page in 0..0x40_u64 {
            function.write_bar(GTTMMADR_BAR, GGTT + page * 4, &((page as u32) << 12 | 1).to_le_bytes());
        }
        for (offset, value) in
            [(GTIMR, 0), (GTIER, !0), (DEIER, DEIER_MASTER_ENABLE), (BCS_IMR, 0), (BCS_START, 0x1000)]
        {
            function.write_bar(GTTMMADR_BAR, offset, &value.to_le_bytes());
        }
    }

    /// An offset in a BAR: mostly of registers, GGTT entries, ends of pages and of the BAR, else any.
    fn offset(&self, bar: u8, bytes: &mut Bytes<'_>) -> u64 {
        match (bar, bytes.byte() % 8) {
            (_, 0) => bytes.edge(),
            (GTTMMADR_BAR, 1..4) => {
                u64::from(self.registers[usize::from(bytes.word()) % self.registers.len()])
                    + u64::from(bytes.byte() & 3)
            }
            (GTTMMADR_BAR, 4) => GGTT + u64::from(bytes.word()),
            (GTTMMADR_BAR, 5) => GTTMMADR_BYTES - u64::from(bytes.byte() & 0x1f),
            (GTTMMADR_BAR, 6) => UPPER_REGISTERS + u64::from(bytes.byte()),
            (GMADR_BAR, 1..5) => u64::from(bytes.word()) * 4 + u64::from(bytes.byte() & 3),
            (GMADR_BAR, 5) => (u64::from(bytes.byte()) + 1) * 0x1000 - u64::from(bytes.byte() & 0xf),
            _ => u64::from(bytes.word()) * bytes.of(&[1, 4, 64, 4096, 0x1_0000]),
        }
    }

    fn config_offset(bytes: &mut Bytes<'_>) -> u64 {
        const KNOWN: [u64; 20] = [
            0x00, 0x04, 0x06, 0x0c, 0x10, 0x14, 0x18, 0x1c, 0x20, 0x24, 0x30, 0x34, 0x3c, 0x50, 0x5c, 0x90, 0x94, 0x98,
            0xd4, 0xfc,
        ];
        match bytes.byte() % 4 {
            0 => u64::from(bytes.byte()),
            1 => bytes.edge(),
            _ => bytes.of(&KNOWN) + u64::from(bytes.byte() & 3) * u64::from(bytes.byte() & 1),
        }
    }

    /// A BAR number. BARs 1 and 5 do not exist; repeats are weights.
    fn bar(bytes: &mut Bytes<'_>) -> u8 {
        bytes.of(&[GTTMMADR_BAR, GTTMMADR_BAR, GTTMMADR_BAR, GMADR_BAR, GMADR_BAR, GMADR_BAR, IO_BAR, 1, 5])
    }

    /// Reads by `read_at`, and byte by byte, which must have the same result. `label` is what is read.
    fn check_byte_reads(label: &str, offset: u64, data: &mut [u8], read_at: impl Fn(u64, &mut [u8])) {
        read_at(offset, data);
        // An access may begin at the last addresses: then only the bytes up to the largest address are compared.
        for (at, byte) in (offset..=u64::MAX).zip(&*data) {
            let mut one = [0];
            read_at(at, &mut one);
            assert_eq!(one[0], *byte, "{label} at {at:#x}: byte reads differ");
        }
    }

    fn run_steps(&self, calls: u8) {
        for _ in 0..calls {
            self.model().work();
            // Time for waiting engines to poll again.
            self.clock.advance(10_000);
        }
    }

    /// Runs one operation. Bits 3:0 of its first byte select it, and bits 7:5 the width of an access, or a parameter.
    fn run_operation(&mut self, bytes: &mut Bytes<'_>) {
        let opcode = bytes.byte();
        let width = [4, 8, 4, 1, 2, 64, 3, 5][usize::from(opcode >> 5)];
        match opcode % 16 {
            0..3 => self.write_config(width, bytes),
            3 => {
                let (offset, mut data) = (Self::config_offset(bytes), [0; 64]);
                let read_at = |at, data: &mut [u8]| self.function().read_config(at, data);
                Self::check_byte_reads("configuration space", offset, &mut data[..width], read_at);
            }
            4..9 => self.write_bar(width, bytes),
            9..12 => {
                let bar = Self::bar(bytes);
                let (offset, mut data) = (self.offset(bar, bytes), [0; 64]);
                let read_at = |at, data: &mut [u8]| self.function().read_bar(bar, at, data);
                Self::check_byte_reads("a BAR", offset, &mut data[..width], read_at);
            }
            12 => self.move_to_new_card(),
            13 if opcode & 0xe0 == 0 => self.function().reset(),
            13 => self.clock.advance(u64::from(bytes.word()) * 1000),
            _ => self.run_steps(1 + (opcode >> 5)),
        }
    }

    fn write_config(&self, width: usize, bytes: &mut Bytes<'_>) {
        let offset = Self::config_offset(bytes);
        let data: Vec<u8> = (0..width).map(|_| bytes.byte()).collect();
        self.function().write_config(offset, &data);
    }

    /// Writes to a BAR. What is written within a page of the aperture must be read there.
    fn write_bar(&self, width: usize, bytes: &mut Bytes<'_>) {
        let bar = Self::bar(bytes);
        let offset = self.offset(bar, bytes);
        let data: Vec<u8> = bytes.edge().to_le_bytes().into_iter().cycle().take(width).collect();
        self.function().write_bar(bar, offset, &data);
        if bar == GMADR_BAR && offset % 4096 + width as u64 <= 4096 {
            let mut found = vec![0; width];
            self.function().read_bar(bar, offset, &mut found);
            // A byte whose page has no GGTT translation reads 0xff.
            let is_kept = found.iter().zip(&data).all(|(found, byte)| found == byte || *found == 0xff);
            assert!(is_kept, "a write is lost at {offset:#x}");
        }
    }

    /// Offsets and values of all registers except timestamps and RC6 residency.
    fn untimed_registers(&self) -> Vec<(u32, u32)> {
        let is_timed = |offset: &u32| TIMESTAMP.contains(&(offset & 0xffff)) || *offset == GT_GFX_RC6;
        let registers = self.registers.iter().filter(|offset| !is_timed(offset));
        registers.map(|offset| (*offset, self.model().gt().read(*offset))).collect()
    }
}

/// Runs one input; panics if an invariant is violated.
pub fn run(input: &[u8]) {
    let input = &input[..input.len().min(MAX_INPUT_BYTES)];
    let Some((selector, rest)) = input.split_first() else { return };
    let mut bytes = Bytes(rest);
    let mut fixture = Fixture::new(CARDS[usize::from(selector & 3)]);
    let powered_on = fixture.untimed_registers();
    if selector & 4 == 0 {
        fixture.initialize();
    }
    for _ in 0..MAX_OPERATIONS {
        if !bytes.more() {
            break;
        }
        fixture.run_operation(&mut bytes);
    }
    // Steps for the commands that the last operations have started: a reset must stop what is left of them.
    fixture.run_steps(10);
    let before = fixture.untimed_registers();
    visit_part(fixture.model(), input);
    assert_eq!(fixture.untimed_registers(), before, "a visit of the state has changed a register");
    fixture.function().reset();
    for ((offset, reset), (_, first)) in fixture.untimed_registers().into_iter().zip(powered_on) {
        assert_eq!(reset, first, "after a reset, register {offset:#x} differs from its power-on value");
    }
    // Neither may panic, in any state.
    let (_, _) = (fixture.model().report(), fixture.model().status());
}
