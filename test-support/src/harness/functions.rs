// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Fuzz harness of configuration spaces and BARs: accesses of any offset and width, by any function of a card, in any
//! order. The harness advances the clock and runs the card's steps.
//!
//! Byte 0 of the input selects the card's configuration and the functions that make accesses. If only VF 2 does, the
//! state of the other functions must not change. If all functions do, the card's state must be consistent with its
//! notifications to the machine after each operation.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use arctic_device_model::card::{Card, GGTT_WINDOW, GTTMMADR_BYTES};
use arctic_device_model::doorbell;
use arctic_device_model::gpu::WorkStatus;
use arctic_device_model::host::{Clock, ManualClock};
use arctic_device_model::pci::{GTTMMADR_BAR, LMEM_BAR};
use arctic_device_model::profile::CardProfile;
use arctic_device_model::profile::provision::{GgttAccess, Quota};
use arctic_device_model::registers::RegisterFile;
use arctic_gpu::pci::Event;
use arctic_gpu::{CardFunction, Function, GuestRam, Machine, MsiSink, PciDevice, Topology, VirtualCard};
use vm_memory::{Bytes as _, GuestAddress, GuestMemoryMmap};

use super::msi::{CheckedMsi, MAX_INPUT_BYTES, MAX_OPERATIONS};
use super::tree::visit_part;
use crate::bytes::Bytes;
use crate::model::{Inside, observed};

/// TotalVFs of the card.
const VFS: u8 = 3;
/// Size in bytes of the guest memory, which all functions share.
const RAM: usize = 1 << 20;
const QUOTA: Quota = Quota {
    ggtt: 16 << 20,
    local_memory: 4 << 20,
    contexts: 64,
    doorbells: 8,
    exec_quantum_ms: 5,
    preempt_timeout_us: 100_000,
};
/// Pattern that fills the checked memory of the other functions.
const CANARY: [u8; 8] = *b"\xca\x9a\x27\x1e\xd0\x0d\x5a\xfe";
const SECRET: usize = 0x1000;

/// A machine that records the card's notifications.
#[derive(Default)]
struct NotificationRecorder {
    msis: [Arc<CheckedMsi>; VFS as usize + 1],
    vfs: Mutex<u8>,
    bars: Mutex<[[Option<u64>; 2]; VFS as usize + 1]>,
    events: AtomicU64,
}

impl Machine for NotificationRecorder {
    fn msi(&self, function: Function) -> io::Result<Arc<dyn MsiSink>> {
        Ok(self.msis[function.index()].clone())
    }

    fn bar_moved(&self, function: &Arc<dyn PciDevice>, bar: u8, address: Option<u64>) -> io::Result<()> {
        let at = function.bars().iter().position(|found| found.index == bar).expect("an implemented BAR");
        let recorded = &mut self.bars.lock().unwrap()[function.number().index()][at];
        assert_ne!(*recorded, address, "the BAR's address has not changed");
        // VF BARs are consecutive in one aperture, so only the PF's BARs are aligned to their size.
        if function.number() == Function::PF {
            assert!(address.is_none_or(|address| address % function.bars()[at].size == 0), "{address:x?}");
        }
        *recorded = address;
        Ok(())
    }

    fn vfs_enabled(&self, vfs: &[Arc<dyn PciDevice>]) {
        let numbers: Vec<u8> = vfs.iter().map(|vf| vf.number().number()).collect();
        assert!(vfs.len() <= VFS.into(), "{numbers:?}: more than TotalVFs");
        assert!(numbers.iter().copied().eq(1..=vfs.len() as u8) && vfs.iter().all(|vf| vf.enabled()), "{numbers:?}");
        let mut recorded = self.vfs.lock().unwrap();
        assert_eq!(*recorded, 0, "VFs were enabled twice");
        *recorded = vfs.len() as u8;
    }

    fn vfs_disabled(&self, vfs: &[Arc<dyn PciDevice>]) {
        assert!(vfs.iter().all(|vf| !vf.enabled()));
        let mut recorded = self.vfs.lock().unwrap();
        assert_eq!(*recorded, vfs.len() as u8, "VFs disabled differ from the VFs enabled");
        *recorded = 0;
    }

    fn event(&self, _: &Arc<dyn PciDevice>, _: Event) {
        self.events.fetch_add(1, Ordering::Relaxed);
    }
}

struct World {
    card: VirtualCard,
    inside: Inside,
    recorded: Arc<NotificationRecorder>,
    clock: Arc<ManualClock>,
    ram: GuestMemoryMmap,
    registers: Vec<u32>,
    native: bool,
}

impl World {
    fn new(ggtt: GgttAccess, topology: Topology) -> World {
        let mut profile: CardProfile = arctic_gpu::card_file::load("small").unwrap().flex().unwrap();
        profile.local_memory = 1 << 30;
        profile.ggtt = ggtt;
        let (recorded, clock) = (Arc::new(NotificationRecorder::default()), Arc::new(ManualClock::default()));
        let ram = GuestMemoryMmap::<()>::from_ranges(&[(GuestAddress(0x1000_0000), RAM)]).unwrap();
        let memory = GuestRam::new(Arc::new(ram.clone()));
        let (profile, inside) = observed(profile);
        let builder = VirtualCard::builder(profile).vfs(VFS).topology(topology).clock(clock.clone());
        let card = builder.without_threads(|| {}).plug_into(recorded.clone(), memory).unwrap();
        let registers: &RegisterFile = &inside.card::<Card>().gt().registers;
        let registers = registers.listing().map(|(offset, _)| offset).collect();
        World { card, inside, recorded, clock, ram, registers, native: topology == Topology::Native }
    }

    fn model(&self) -> &Card {
        self.inside.card()
    }

    fn function(&self, n: u8) -> &Arc<CardFunction> {
        &self.card.functions()[usize::from(n % (VFS + 1))]
    }

    fn dword(&self, function: u8, offset: u64) -> u32 {
        let mut data = [0; 4];
        self.function(function).read_config(offset, &mut data);
        u32::from_le_bytes(data)
    }

    fn put(&self, function: u8, offset: u64, value: u32) {
        self.function(function).write_config(offset, &value.to_le_bytes());
    }

    /// Returns the offset of an extended capability of the PF.
    fn capability(&self, id: u32) -> Option<u64> {
        let mut at = 0x100;
        for _ in 0..32 {
            let head = self.dword(0, at);
            if head & 0xffff == id {
                return Some(at);
            }
            at = u64::from(head >> 20);
            if at == 0 {
                break;
            }
        }
        None
    }

    /// Initialises the card as firmware and the PF's driver do: BARs, bus mastering, VFs.
    fn bring_up(&self) {
        for (register, address) in [(0x10, 0x80_0000_0000u64), (0x18, 0x90_0000_0000)] {
            self.put(0, register, address as u32);
            self.put(0, register + 4, (address >> 32) as u32);
        }
        self.put(0, 4, 6);
        let sriov = self.capability(0x10).expect("SR-IOV");
        for (register, address) in [(0x24, 0xa0_0000_0000u64), (0x2c, 0xb0_0000_0000)] {
            self.put(0, sriov + register, address as u32);
            self.put(0, sriov + register + 4, (address >> 32) as u32);
        }
        self.put(0, sriov + 0x10, VFS.into());
        self.model().provision(&[QUOTA; VFS as usize]).unwrap();
        // ARI, VF MSE, VF Enable.
        self.put(0, sriov + 8, 0x19);
        for vf in 1..=VFS {
            self.put(vf, 4, 6);
        }
        self.work(40);
    }

    fn work(&self, calls: u32) {
        for _ in 0..calls {
            match self.model().step() {
                WorkStatus::Idle(None) => return,
                WorkStatus::Idle(Some(at)) => self.clock.advance(at.saturating_sub(self.clock.now())),
                WorkStatus::Busy => self.clock.advance(1000),
            }
        }
    }

    fn offset(&self, bar: u8, bytes: &mut Bytes<'_>) -> u64 {
        match bytes.byte() % 8 {
            0 => bytes.edge(),
            1 | 2 if bar == GTTMMADR_BAR => u64::from(bytes.of(&self.registers)) + u64::from(bytes.byte() & 3),
            // GUC_HOST_INTERRUPT, VF_CAP_REG, the mailbox, interrupts, resets.
            3 if bar == GTTMMADR_BAR => {
                bytes.of(&[0x19_01f0, 0x19_01f8, 0x19_0240, 0x19_0010, 0x941c, 0x10_1010, 0xc314])
            }
            4 if bar == GTTMMADR_BAR => doorbell::WINDOW + u64::from(bytes.word()) * 64,
            5 if bar == GTTMMADR_BAR => {
                GGTT_WINDOW + u64::from(bytes.word()) * 8 + u64::from(bytes.byte()) % 16 * 0x8_0000
            }
            6 => GTTMMADR_BYTES - u64::from(bytes.byte() & 0x1f),
            _ => u64::from(bytes.word()) * bytes.of(&[1, 4, 64, 4096, 0x1_0000]),
        }
    }

    fn config_offset(bytes: &mut Bytes<'_>) -> u64 {
        const KNOWN: [u64; 28] = [
            0x00, 0x04, 0x06, 0x0c, 0x10, 0x14, 0x18, 0x1c, 0x20, 0x24, 0x30, 0x34, 0x3c, 0x40, 0x74, 0x78, 0xac, 0xae,
            0xb0, 0xb8, 0xbc, 0xd0, 0xd4, 0x320, 0x328, 0x330, 0x344, 0x428,
        ];
        match bytes.byte() % 8 {
            0 => u64::from(bytes.word() & 0xfff),
            1 => bytes.edge(),
            2 => 0x320 + u64::from(bytes.byte() & 0x3f),
            _ => bytes.of(&KNOWN) + u64::from(bytes.byte() & 3) * u64::from(bytes.byte() & 1),
        }
    }

    /// Performs one operation on function `n`, an access in most cases.
    fn operation(&self, n: u8, bytes: &mut Bytes<'_>) {
        let function = self.function(n);
        let what = bytes.byte();
        let width = [1, 2, 4, 8, 4, 4, 3, 5][usize::from(what >> 5)];
        match what % 16 {
            0..5 => {
                let offset = Self::config_offset(bytes);
                let value = match bytes.byte() & 3 {
                    0 => bytes.edge(),
                    1 => u64::MAX,
                    _ => bytes.word().into(),
                };
                function.write_config(offset, &value.to_le_bytes()[..width]);
            }
            5 => {
                let offset = Self::config_offset(bytes);
                let mut data = vec![0; if what & 0x80 != 0 { 4096 } else { width }];
                function.read_config(offset, &mut data);
                // Single-byte reads must return the same data. Not checked with `Topology::Together`, where only short
                // reads show the SR-IOV capability.
                for (n, byte) in (0u64..).zip(data.iter().take(64).filter(|_| self.native)) {
                    let mut one = [0];
                    if let Some(at) = offset.checked_add(n) {
                        function.read_config(at, &mut one);
                        assert_eq!(one[0], *byte, "configuration space at {at:#x}: byte reads differ");
                    }
                }
            }
            6..11 => {
                let bar = bytes.of(&[GTTMMADR_BAR, GTTMMADR_BAR, GTTMMADR_BAR, LMEM_BAR, 1, 5]);
                let (offset, value) = (self.offset(bar, bytes), bytes.edge());
                function.write_bar(bar, offset, &value.to_le_bytes()[..width]);
            }
            11 | 12 => {
                let bar = bytes.of(&[GTTMMADR_BAR, GTTMMADR_BAR, LMEM_BAR, 3]);
                let offset = self.offset(bar, bytes);
                let mut data = [0; 8];
                function.read_bar(bar, offset, &mut data[..width]);
                assert!(width < 4 || data[..width] != CANARY[..width], "read another function's memory");
            }
            13 if what & 0x80 != 0 => function.reset(),
            13 => function.io_written(0),
            14 => {
                for bar in function.bars() {
                    for mapping in function.mappings(bar.index) {
                        assert!(mapping.offset.checked_add(mapping.len).is_some_and(|end| end <= bar.size));
                        let file = mapping.file.metadata().unwrap().len();
                        assert!(mapping.file_offset + mapping.len <= file, "a mapping extends beyond its file");
                    }
                }
                self.clock.advance(u64::from(bytes.word()) * 10_000);
            }
            _ => self.work(u32::from(bytes.byte() % 64)),
        }
    }

    /// Checks that the visible state matches the notifications to the machine.
    fn consistent(&self) {
        let recorded = *self.recorded.vfs.lock().unwrap();
        assert_eq!(
            self.card.functions().iter().filter(|function| function.enabled()).count(),
            1 + usize::from(recorded)
        );
        for vf in 1..=VFS {
            let function = self.function(vf);
            assert_eq!(function.enabled(), vf <= recorded, "VF {vf} of {recorded}");
            if !function.enabled() {
                let mut data = [0; 8];
                // With `Topology::Together` the VFs' configuration spaces are always present.
                for offset in [0, 4, 0x100, 0xff8].into_iter().filter(|_| self.native) {
                    function.read_config(offset, &mut data);
                    assert_eq!(data, [0xff; 8], "configuration space of VF {vf}, which is disabled");
                }
                for (bar, offset) in [(GTTMMADR_BAR, 0x19_0240), (GTTMMADR_BAR, GGTT_WINDOW), (LMEM_BAR, 0)] {
                    function.read_bar(bar, offset, &mut data);
                    assert_eq!(data, [0xff; 8], "a BAR of VF {vf}, which is disabled");
                }
                assert_eq!(
                    self.recorded.bars.lock().unwrap()[usize::from(vf)],
                    [None; 2],
                    "BARs of disabled VF {vf} are decoded"
                );
            }
        }
    }

    /// Writes the pattern to the checked local memory of the PF and VF 1, and to guest memory.
    fn fill(&self) {
        let secret = CANARY.repeat(SECRET / 8);
        for neighbour in [0, 1] {
            for chunk in (0..SECRET).step_by(8) {
                self.function(neighbour).write_bar(LMEM_BAR, self.secret(neighbour) + chunk as u64, &CANARY);
            }
        }
        self.ram.write_slice(&secret, GuestAddress(0x1000_0000)).unwrap();
    }

    /// Returns the offset of the checked local memory of the PF or VF 1, which has no other use.
    fn secret(&self, neighbour: u8) -> u64 {
        if neighbour == 0 { 64 << 20 } else { 0x10_0000 }
    }

    /// Returns the ranges of GGTT pages of VFs 1 and 3, with a margin around them.
    fn neighbours_pages(&self) -> Vec<Range<u64>> {
        const STEP: u64 = 1024;
        let ggtt = self.model().gt().memory.ggtt();
        let theirs =
            (0..ggtt.entries()).step_by(STEP as usize).filter(|page| matches!(ggtt.entry(*page).owner(), 1 | 3));
        theirs.map(|page| page.saturating_sub(STEP)..page + STEP).collect()
    }

    /// Returns the state that VF 2 must not be able to change.
    fn snapshot(&self, pages: &[Range<u64>]) -> Vec<(String, Vec<u8>)> {
        let ggtt = self.model().gt().memory.ggtt();
        let not_its_own = |page: &u64| ggtt.entry(*page).owner() != 2;
        let mut parts: Vec<_> = pages
            .iter()
            .map(|range| {
                let entries =
                    range.clone().filter(not_its_own).flat_map(|page| ggtt.effective(page).into_bits().to_le_bytes());
                (format!("GGTT pages {range:x?}"), entries.collect())
            })
            .collect();
        for neighbour in [0, 1, 3] {
            let mut config = vec![0; 4096];
            self.function(neighbour).read_config(0, &mut config);
            parts.push((format!("configuration space of function {neighbour}"), config));
        }
        for neighbour in [0, 1] {
            let mut secret = vec![0; SECRET];
            for (at, chunk) in (self.secret(neighbour)..).step_by(8).zip(secret.chunks_exact_mut(8)) {
                self.function(neighbour).read_bar(LMEM_BAR, at, chunk);
            }
            parts.push((format!("local memory of function {neighbour}"), secret));
        }
        let mut ram = vec![0; SECRET];
        self.ram.read_slice(&mut ram, GuestAddress(0x1000_0000)).unwrap();
        parts.push(("guest memory".into(), ram));
        let mut mailbox = [0; 16];
        for (at, dword) in (0x19_0240..).step_by(4).zip(mailbox.chunks_exact_mut(4)) {
            self.function(1).read_bar(GTTMMADR_BAR, at, dword);
        }
        parts.push(("VF 1's mailbox".into(), mailbox.into()));
        let registers = &self.model().gt().registers;
        let values = registers.listing().filter(|(_, found)| found.engine.is_none());
        let values = values.flat_map(|(offset, _)| registers.value(offset).to_le_bytes()).collect();
        parts.push(("the PF's registers".into(), values));
        parts
    }
}

/// Runs one input; panics if an invariant is violated.
pub fn run(input: &[u8]) {
    let input = &input[..input.len().min(MAX_INPUT_BYTES)];
    let Some((how, rest)) = input.split_first() else { return };
    let mut bytes = Bytes(rest);
    let ggtt = if how & 1 != 0 { GgttAccess::Trapped } else { GgttAccess::Mapped };
    let alone = how & 2 != 0;
    // The two topologies differ only in the VFs' configuration spaces.
    let topology = if how & 4 != 0 { Topology::Together } else { Topology::Native };
    let world = World::new(ggtt, topology);
    if alone || how & 8 != 0 {
        world.bring_up();
        assert_eq!(*world.recorded.vfs.lock().unwrap(), VFS);
    }
    if alone {
        world.fill();
        let pages = world.neighbours_pages();
        assert!(!pages.is_empty());
        let before = world.snapshot(&pages);
        for _ in 0..MAX_OPERATIONS {
            if !bytes.more() {
                break;
            }
            world.operation(2, &mut bytes);
        }
        world.work(100);
        visit_part(&world.card, input);
        for ((what, before), (_, after)) in before.iter().zip(&world.snapshot(&pages)) {
            assert_eq!(before.len(), after.len(), "{what}");
            let at = before.iter().zip(after).position(|(before, after)| before != after);
            assert!(at.is_none(), "{what} has changed at {at:x?}");
        }
    } else {
        for _ in 0..MAX_OPERATIONS {
            if !bytes.more() {
                break;
            }
            let n = bytes.byte();
            world.operation(if n < 128 { 0 } else { n }, &mut bytes);
            world.consistent();
        }
        world.work(100);
        visit_part(&world.card, input);
        world.consistent();
        // A reset of the PF disables its VFs. It must be possible to initialise the card again.
        world.function(0).reset();
        assert_eq!(*world.recorded.vfs.lock().unwrap(), 0);
        world.consistent();
        world.bring_up();
        assert_eq!(*world.recorded.vfs.lock().unwrap(), VFS);
    }
    world.consistent();
    assert_eq!(world.card.report().panics, 0);
}
