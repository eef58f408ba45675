// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Fuzz harness of the BARs and the configuration space of an integrated GPU: accesses of any offset and width, in any
//! order, between steps of the card, resets, and moves, in which its saved state is restored.
//!
//! Reads have no effect: one byte reads as it does in a wider read. What is written through the aperture is read there. MSIs
//! are sent where they are routed. After a reset of the function, the registers are those of power-on.
//!
//! Byte 0 of the input selects the card, and whether firmware has set up its BARs.

use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use arctic_device_model::gen6::card::{Card, GMADR_BAR, GTTMMADR_BAR, GTTMMADR_BYTES, IO_BAR};
use arctic_device_model::gpu::Gpu;
use arctic_device_model::host::ManualClock;
use arctic_gpu::pci::Event;
use arctic_gpu::{
    CardFile, CardFunction, Function, GuestRam, Machine, MsiMessage, MsiSink, PciDevice, Topology, VirtualCard,
};
use vm_memory::{GuestAddress, GuestMemoryMmap};

use crate::bytes::Bytes;

/// Maximum number of input bytes that are used; further bytes are ignored.
const MOST: usize = 2048;
/// Maximum number of operations per input.
const OPERATIONS: usize = 128;
/// Size in bytes of the guest's memory, from address 0 on.
const RAM: usize = 0x4_0000;
const CARDS: [&str; 4] = ["ivb", "ivb-swizzled", "snb", "ivb-fused"];

/// MSI route of the function.
#[derive(Default)]
struct Msi {
    routed: Mutex<Option<MsiMessage>>,
    sent: AtomicU64,
}

impl MsiSink for Msi {
    fn route(&self, message: Option<MsiMessage>) {
        let mut routed = self.routed.lock().unwrap();
        assert_ne!(*routed, message, "the route has not changed");
        *routed = message;
    }

    fn trigger(&self) {
        assert!(self.routed.lock().unwrap().is_some(), "an MSI was triggered without a route");
        self.sent.fetch_add(1, Ordering::Relaxed);
    }
}

/// A machine that checks the card's notifications.
#[derive(Default)]
struct Notified {
    msi: Arc<Msi>,
    bars: Mutex<[Option<u64>; 6]>,
}

impl Machine for Notified {
    fn msi(&self, _: Function) -> Arc<dyn MsiSink> {
        self.msi.clone()
    }

    fn bar_moved(&self, function: &Arc<dyn PciDevice>, bar: u8, address: Option<u64>) {
        assert!(function.bars().iter().any(|found| found.index == bar), "BAR {bar} does not exist");
        let last = &mut self.bars.lock().unwrap()[usize::from(bar)];
        assert_ne!(*last, address, "the BAR's address has not changed");
        *last = address;
    }

    fn vfs_enabled(&self, _: &[Arc<dyn PciDevice>]) {
        panic!("the card has no VFs");
    }

    fn vfs_disabled(&self, _: &[Arc<dyn PciDevice>]) {
        panic!("the card has no VFs");
    }

    fn event(&self, _: &Arc<dyn PciDevice>, _: Event) {}
}

struct World {
    card: VirtualCard,
    clock: Arc<ManualClock>,
    registers: Vec<u32>,
}

impl World {
    fn new(card: &str) -> World {
        let CardFile::Integrated(profile) = arctic_gpu::card_file::load_any(card).unwrap() else {
            panic!("{card} is an integrated GPU")
        };
        let (machine, clock) = (Arc::new(Notified::default()), Arc::new(ManualClock::default()));
        let ram = GuestMemoryMmap::<()>::from_ranges(&[(GuestAddress(0), RAM)]).unwrap();
        let memory = GuestRam::new(Arc::new(ram));
        let card = VirtualCard::manual(profile, 0, Topology::Native, memory, machine, clock.clone()).unwrap();
        let mut world = World { card, clock, registers: Vec::new() };
        world.registers = world.model().gt().registers.listing().map(|(offset, _)| offset).collect();
        world
    }

    fn model(&self) -> &Card {
        let gpu: &dyn Any = &**self.card.gpu();
        gpu.downcast_ref().expect("the card is an integrated GPU")
    }

    fn function(&self) -> &Arc<CardFunction> {
        &self.card.functions()[0]
    }

    /// Sets up the function as firmware and a driver do: BARs, bus mastering, an MSI, pages of the GGTT and an engine.
    fn bring_up(&self) {
        let function = self.function();
        let put = |offset: u64, value: u32| function.write_config(offset, &value.to_le_bytes());
        put(0x10, 0xe000_0000);
        put(0x18, 0xd000_0000);
        put(0x20, 0x3000);
        put(4, 7);
        put(0x94, 0xfee0_0000);
        function.write_config(0x92, &[1, 0]);
        for page in 0..0x40_u64 {
            function.write_bar(GTTMMADR_BAR, (2 << 20) + page * 4, &((page as u32) << 12 | 1).to_le_bytes());
        }
        for (offset, value) in
            [(0x4_4014, 0_u32), (0x4_401c, !0), (0x4_400c, 1 << 31), (0x2_20a8, 0), (0x2_2038, 0x1000)]
        {
            function.write_bar(GTTMMADR_BAR, offset, &value.to_le_bytes());
        }
    }

    fn offset(&self, bar: u8, bytes: &mut Bytes<'_>) -> u64 {
        match (bar, bytes.byte() % 8) {
            (_, 0) => bytes.edge(),
            (GTTMMADR_BAR, 1..4) => {
                u64::from(self.registers[usize::from(bytes.word()) % self.registers.len()])
                    + u64::from(bytes.byte() & 3)
            }
            (GTTMMADR_BAR, 4) => (2 << 20) + u64::from(bytes.word()),
            (GTTMMADR_BAR, 5) => GTTMMADR_BYTES - u64::from(bytes.byte() & 0x1f),
            (GTTMMADR_BAR, 6) => 0x10_0000 + u64::from(bytes.byte()),
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

    fn bar(bytes: &mut Bytes<'_>) -> u8 {
        bytes.of(&[GTTMMADR_BAR, GTTMMADR_BAR, GTTMMADR_BAR, GMADR_BAR, GMADR_BAR, GMADR_BAR, IO_BAR, 1, 5])
    }

    /// Reads by `read`, and byte by byte, which must have the same result.
    fn read(what: &str, offset: u64, data: &mut [u8], read: impl Fn(u64, &mut [u8])) {
        read(offset, data);
        for (at, byte) in (offset..=u64::MAX).zip(&*data) {
            let mut one = [0];
            read(at, &mut one);
            assert_eq!(one[0], *byte, "{what} at {at:#x}: byte reads differ");
        }
    }

    fn work(&self, calls: u8) {
        for _ in 0..calls {
            self.model().work();
            self.clock.advance(10_000);
        }
    }

    /// Performs one operation.
    fn operate(&self, bytes: &mut Bytes<'_>) {
        let function = self.function();
        let what = bytes.byte();
        let width = [4, 8, 4, 1, 2, 64, 3, 5][usize::from(what >> 5)];
        let mut data = [0; 64];
        let data = &mut data[..width];
        match what % 16 {
            0..3 => {
                let offset = Self::config_offset(bytes);
                data.iter_mut().for_each(|byte| *byte = bytes.byte());
                function.write_config(offset, data);
            }
            3 => {
                let offset = Self::config_offset(bytes);
                Self::read("configuration space", offset, data, |at, data| function.read_config(at, data));
            }
            4..9 => {
                let bar = Self::bar(bytes);
                let offset = self.offset(bar, bytes);
                let value = bytes.edge().to_le_bytes();
                data.iter_mut().zip(value.iter().cycle()).for_each(|(to, from)| *to = *from);
                function.write_bar(bar, offset, data);
                if bar == GMADR_BAR && offset % 4096 + width as u64 <= 4096 {
                    let mut found = [0; 64];
                    function.read_bar(bar, offset, &mut found[..width]);
                    // A byte without a translation reads all ones.
                    let kept = found.iter().zip(&*data).all(|(found, byte)| found == byte || *found == 0xff);
                    assert!(kept, "a write is lost at {offset:#x}");
                }
            }
            9..12 => {
                let bar = Self::bar(bytes);
                let offset = self.offset(bar, bytes);
                Self::read("a BAR", offset, data, |at, data| function.read_bar(bar, at, data));
            }
            12 => {
                let model = self.model();
                let saved = model.save();
                model.restore(&saved).unwrap();
                assert!(model.save() == saved, "restored state is other state");
            }
            13 if what & 0xe0 == 0 => function.reset(),
            13 => self.clock.advance(u64::from(bytes.word()) * 1000),
            _ => self.work(1 + (what >> 5)),
        }
    }

    /// Values of the registers, but of those that count time.
    fn values(&self) -> Vec<(u32, u32)> {
        let time = |offset: &u32| [0x2358, 0x235c].into_iter().any(|at| offset & 0xffff == at) || *offset == 0x13_8108;
        let registers = self.registers.iter().filter(|offset| !time(offset));
        registers.map(|offset| (*offset, self.model().gt().read(*offset))).collect()
    }
}

/// Runs one input; panics if an invariant is violated.
pub fn run(input: &[u8]) {
    let input = &input[..input.len().min(MOST)];
    let Some((how, rest)) = input.split_first() else { return };
    let mut bytes = Bytes(rest);
    let world = World::new(CARDS[usize::from(how & 3)]);
    let powered_on = world.values();
    if how & 4 == 0 {
        world.bring_up();
    }
    for _ in 0..OPERATIONS {
        if !bytes.more() {
            break;
        }
        world.operate(&mut bytes);
    }
    world.work(10);
    world.function().reset();
    for (reset, first) in world.values().into_iter().zip(powered_on) {
        assert_eq!(reset, first, "a register after a reset of the function");
    }
    let (_, _) = (world.model().report(), world.model().status());
}
