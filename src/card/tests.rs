// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the card through its PCI functions, as a transport uses them.
#![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]
// A list of mappable areas often has one element.
#![allow(clippy::single_range_in_vec_init)]

use arctic_device_model::host;
use arctic_fidelity::proves;
use std::os::unix::fs::FileExt;

use arctic_device_model::registers::REGISTER_BYTES;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use vmm_sys_util::eventfd::EventFd;

use arctic_device_model::card::{Card, GGTT_WINDOW};
use arctic_device_model::host::{InterruptSink, NullHost};
use vm_memory::Bytes;

mod functions;
mod native;
mod vf_bars;

use std::any::Any;
use std::fs::File;
use std::ops::Range;

use super::bus_ports::BusPorts;
use super::*;
use crate::card_file;
use crate::pci::{CONFIG_BYTES, PciDevice};
use crate::vfio_user::ecam::Ecam;
use crate::vfio_user::memory::GuestMemory;
use crate::vfio_user::{CONFIG_REGION, Served, ServedCard};
use arctic_device_model::pci::{GTTMMADR_BAR, LMEM_BAR};

const COMMAND: u64 = 4;
const MEMORY_AND_BUS_MASTER: [u8; 2] = [6, 0];
/// SR-IOV Control: VF Enable and VF MSE (PCIe 9.3.3.3).
const VF_ENABLE: u16 = 1 << 0;
const VF_MEMORY_SPACE_ENABLE: u16 = 1 << 3;
const EXPRESS: u64 = 0x70;
const MSI: u64 = 0xac;
const POWER: u64 = 0xd0;

const GTTMMADR: u32 = GTTMMADR_BAR as u32;
const LMEM: u32 = LMEM_BAR as u32;

/// A card, and its functions as a server's clients use them.
struct TestCard {
    served: ServedCard,
    functions: Vec<Served>,
}

fn served(model: impl Model, vfs: u8, topology: Topology) -> Result<TestCard, CardError> {
    let served = ServedCard::new(model, vfs, topology, Ecam::default())?;
    Ok(TestCard { functions: served.functions(), served })
}

fn small() -> TestCard {
    served(card_file::load("small").unwrap(), 0, Topology::Split).unwrap()
}

fn enabled() -> TestCard {
    let card = small();
    card.pf().write(CONFIG_REGION, COMMAND, &MEMORY_AND_BUS_MASTER);
    card
}

impl TestCard {
    fn pf(&self) -> &CardFunction {
        self.served.card().pf()
    }

    fn card(&self) -> &Card {
        model(self.served.card())
    }

    fn report(&self) -> Report {
        self.served.card().report()
    }

    fn hands(&self, name: &str) -> &crate::vfio_user::Function {
        &self.functions.iter().find(|served| served.name == name).unwrap().function
    }

    fn memory(&self, name: &str) -> &GuestMemory {
        &self.hands(name).memory
    }

    /// Disconnects the client of a function.
    fn leave(&self, name: &str) {
        self.hands(name).device.disconnected();
    }
}

fn read32(card: &TestCard, region: u32, offset: u64) -> u32 {
    card.pf().read32(region, offset)
}

/// A file of guest memory, as a client sends it.
fn guest_file(bytes: u64) -> File {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = File::from(memfd_create("guest", flags).unwrap());
    file.set_len(bytes).unwrap();
    fcntl_add_seals(&file, SealFlags::SHRINK).unwrap();
    file
}

/// The device model of a card.
fn model(card: &VirtualCard) -> &Card {
    let gpu: &dyn Any = &*card.shared.gpu;
    gpu.downcast_ref().unwrap()
}

/// Accesses by VFIO region index.
impl CardFunction {
    fn read(&self, region: u32, offset: u64, data: &mut [u8]) {
        match region {
            CONFIG_REGION => self.read_config(offset, data),
            bar => self.read_bar(bar as u8, offset, data),
        }
    }

    fn write(&self, region: u32, offset: u64, data: &[u8]) {
        match region {
            CONFIG_REGION => self.write_config(offset, data),
            bar => self.write_bar(bar as u8, offset, data),
        }
    }

    fn size(&self, bar: u8) -> u64 {
        self.bars().iter().find(|found| found.index == bar).map_or(0, |bar| bar.size)
    }

    fn areas(&self, bar: u8) -> Vec<Range<u64>> {
        let mappings = self.mappings(bar);
        mappings.iter().for_each(|mapping| assert_eq!(mapping.offset, mapping.file_offset));
        mappings.iter().map(|mapping| mapping.offset..mapping.offset + mapping.len).collect()
    }

    fn file_of(&self, bar: u8) -> File {
        self.mappings(bar)[0].file.try_clone().unwrap()
    }

    fn read32(&self, region: u32, offset: u64) -> u32 {
        let mut data = [0; 4];
        self.read(region, offset, &mut data);
        u32::from_le_bytes(data)
    }
}

#[test]
fn the_function_shows_its_identity_and_bars() {
    let card = small();
    assert_eq!(read32(&card, CONFIG_REGION, 0), 0x56c0_8086);
    assert_eq!(read32(&card, CONFIG_REGION, 8) & 0xff, 8, "revision of the card file");
    assert_eq!([0, 1, 2, 3, 4, 5].map(|bar| card.pf().size(bar)), [16 << 20, 0, 2 << 30, 0, 0, 0]);
    assert_eq!(CONFIG_BYTES, 4096);
}

/// The identity is that of the card file, also in the VFs' capability. The BAR of local memory that is not a power of
/// two is larger: only local memory is mapped, and beyond it reads return all ones and writes are dropped.
#[test]
fn local_memory_need_not_be_a_power_of_two() {
    let mut profile = card_file::load("flex140").unwrap().flex().unwrap();
    let gib = 1_u64 << 30;
    profile.local_memory = 3 * gib;
    let card = served(profile, 2, Topology::Together).unwrap();
    card.pf().write(CONFIG_REGION, COMMAND, &MEMORY_AND_BUS_MASTER);
    assert_eq!((read32(&card, CONFIG_REGION, 0), read32(&card, CONFIG_REGION, 8) & 0xff), (0x56c1_8086, 5));
    assert_eq!(card.pf().size(2), 4 * gib);
    assert_eq!(card.pf().areas(2), [0..3 * gib]);
    card.pf().write(LMEM, 3 * gib - 4, &[1, 2, 3, 4]);
    card.pf().write(LMEM, 3 * gib, &[1, 2, 3, 4]);
    assert_eq!(read32(&card, LMEM, 3 * gib - 4), 0x0403_0201);
    assert_eq!((read32(&card, LMEM, 3 * gib), read32(&card, LMEM, 4 * gib - 4)), (u32::MAX, u32::MAX));
    let mut across = [0; 8];
    card.pf().read(LMEM, 3 * gib - 4, &mut across);
    assert_eq!(across, [1, 2, 3, 4, 0xff, 0xff, 0xff, 0xff]);
    let layout = card.card().gt().read(0x4900) >> 8;
    assert_eq!((layout, card.pf().file_of(2).metadata().unwrap().len()), (3, 3 * gib));
}

#[test]
fn mappings_and_units_access_the_same_memory() {
    proves!(V13_004, "the mappings of a VMM and the accesses of the card's units refer to the same memory");
    let card = enabled();
    let memory = &card.card().gt().memory;
    let file = |region: u32| card.pf().file_of(region as u8);
    assert_eq!(card.pf().areas(0), [8 << 20..16 << 20]);

    file(GTTMMADR).write_at(&0x1234_5001u64.to_le_bytes(), GGTT_WINDOW + 8).unwrap();
    assert_eq!(memory.ggtt().entry(1).address(), 0x1234_5000);
    assert_eq!(read32(&card, GTTMMADR, GGTT_WINDOW + 8), 0x1234_5001, "by trapped access as well");

    file(LMEM).write_at(&[7; 4], 0x7fff_fffc).unwrap();
    assert_eq!(read32(&card, LMEM, 0x7fff_fffc), 0x0707_0707);
    card.pf().write(LMEM, 0, &[1, 2]);
    let mut data = [0; 2];
    memory.local().slice(0, 2).unwrap().read_slice(&mut data, 0).unwrap();
    assert_eq!(data, [1, 2]);
}

#[test]
fn bars_decode_only_in_d0_with_memory_space_enabled() {
    let card = small();
    card.pf().write(LMEM, 0, &[9; 4]);
    assert_eq!(read32(&card, LMEM, 0), u32::MAX, "memory space is off");
    card.pf().write(CONFIG_REGION, COMMAND, &MEMORY_AND_BUS_MASTER);
    assert_eq!(read32(&card, LMEM, 0), 0, "the write was dropped");
    card.pf().write(CONFIG_REGION, POWER + 4, &[3, 0]);
    assert_eq!(read32(&card, LMEM, 0), u32::MAX, "D3hot");
    card.pf().write(CONFIG_REGION, POWER + 4, &[0, 0]);
    assert_eq!(read32(&card, LMEM, 0), 0);
    card.pf().reset();
    assert_eq!(read32(&card, LMEM, 0), u32::MAX, "reset clears the command register");
}

#[test]
fn guest_memory_is_inaccessible_without_bus_mastering() {
    let card = small();
    let file = guest_file(0x1000);
    card.memory("pf").map(0x1000, 0x1000, 3, 0, Some(file)).unwrap();
    let memory = &card.card().gt().memory;
    assert!(memory.views().of(Function::PF).slice(0x1000, 1, host::Access::Read).is_none());
    card.pf().write(CONFIG_REGION, COMMAND, &MEMORY_AND_BUS_MASTER);
    assert!(memory.views().of(Function::PF).slice(0x1000, 1, host::Access::Read).is_some());
    assert!(
        memory.views().of(Function::new(1).unwrap()).slice(0x1000, 1, host::Access::Read).is_none(),
        "each function has separate memory"
    );
    card.pf().write(CONFIG_REGION, EXPRESS + 9, &[0x80]);
    assert!(
        memory.views().of(Function::PF).slice(0x1000, 1, host::Access::Read).is_none(),
        "FLR clears the command register"
    );
}

#[test]
fn interrupt_needs_msi_enable_and_is_pending_while_masked() {
    let card = enabled();
    let ports = BusPorts {
        ports: vec![card.pf().port.clone()],
        memory: Arc::new(NullHost),
        machine: card.served.card().shared.machine.clone(),
        functions: card.served.card().shared.functions.clone(),
    };
    let fd = EventFd::new(libc::EFD_NONBLOCK).unwrap();
    let vectors = &card.hands("pf").vectors;
    vectors.arm_msi(0, crate::vfio_user::irq::tests::file(&fd));
    let signalled = || {
        vectors.wait();
        fd.read().ok()
    };
    ports.raise(Function::PF, 0);
    assert_eq!(signalled(), None, "MSI is off");
    card.pf().write(CONFIG_REGION, MSI + 2, &[1]);
    ports.raise(Function::PF, 0);
    assert_eq!(signalled(), Some(1));
    ports.raise(Function::PF, 1);
    ports.raise(Function::new(1).unwrap(), 0);
    assert_eq!(signalled(), None, "neither vector 1 nor function 1 exists");
    card.pf().write(CONFIG_REGION, MSI + 16, &[1]);
    ports.raise(Function::PF, 0);
    assert_eq!(signalled(), None, "masked");
    card.pf().write(CONFIG_REGION, MSI + 16, &[0]);
    assert_eq!(signalled(), Some(1), "sent when unmasked");
}

#[test]
fn disconnect_of_the_client_resets_memory_and_ggtt() {
    let card = enabled();
    card.pf().write(LMEM, 0x1000, &[1; 8]);
    card.pf().write(GTTMMADR, GGTT_WINDOW, &[1; 8]);
    card.leave("pf");
    card.pf().write(CONFIG_REGION, COMMAND, &MEMORY_AND_BUS_MASTER);
    assert_eq!((read32(&card, LMEM, 0x1000), read32(&card, GTTMMADR, GGTT_WINDOW)), (0, 0));
}

#[test]
fn trapped_accesses_and_missing_registers_are_reported() {
    let card = enabled();
    let report = card.report();
    assert_eq!((report.trapped["config"], report.trapped["register_reads"]), (1, 0));
    let registers = &card.card().gt().registers;
    let hole = (0..REGISTER_BYTES).step_by(4).find(|at| registers.decode(*at).is_none()).unwrap();
    read32(&card, GTTMMADR, hole.into());
    card.pf().write(GTTMMADR, hole.into(), &[0; 4]);
    let report = card.report();
    assert_eq!((report.trapped["register_reads"], report.trapped["register_writes"]), (1, 1));
    let [missing] = &report.unmodelled[..] else { panic!("{report}") };
    assert_eq!((missing.offset, missing.reads, missing.writes), (hole, 1, 1));
}

#[test]
fn doorbell_window_does_not_store_writes() {
    proves!(
        V13_091,
        "with no doorbell enabled, writes to the doorbell window have no effect; user space writes its last page as \
        a barrier"
    );
    let card = enabled();
    for at in [REGISTER_BYTES.into(), GGTT_WINDOW - 0x1000, GGTT_WINDOW - 4] {
        card.pf().write(GTTMMADR, at, &7u32.to_le_bytes());
        assert_eq!(read32(&card, GTTMMADR, at), 0xdead_beef, "{at:#x}");
    }
    assert!(card.report().unmodelled.is_empty());
}
