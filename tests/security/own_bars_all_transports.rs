// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! DMA to the card's own BARs, over the transports that a VMM uses.
//!
//! Guards: `ClientDma` waits for a bounded time (over vfio-user the access arrives on the connection on which the card
//! waits for the reply); `GuestRam` accesses RAM only.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arctic_gpu::vfio_user::wire::command;
use arctic_gpu::vfio_user::{Served, ServedCard, Server, Settings, ecam::Ecam};
use arctic_gpu::{CardFunction, GuestRam, PciDevice, Topology, card_file};
use arctic_test_support::client::*;
use arctic_test_support::in_time;
use arctic_test_support::mi::{self, Global, Reg};
use vm_memory::{GuestAddress, GuestMemoryMmap};
use vmm_sys_util::tempdir::TempDir;

use crate::machine;

/// Guest address of GTTMMADR.
const BAR: u64 = 0x40_0000_0000;

/// Offsets to read and write: the copy engine's tail pointer, its submission queue and load register, its reset, the
/// doorbell register of a GuC that is not loaded, the GuC's DMA, resets of the card, GGTT entries.
const TARGETS: [u64; 10] =
    [0x2_2030, 0x2_2034, 0x2_2510, 0x2_2550, 0x2_20d0, 0x19_01f0, 0xc314, 0x941c, 8 << 20, (8 << 20) + 0xf00];

fn load_and_store(offset: u64) -> Vec<u32> {
    let (target, register) = (Global(GUEST + offset), Reg::Own(mi::GPR0));
    let load = mi::load_register_mem(register, target);
    let keep = mi::store_register_mem(register, Global(DATA));
    let store = mi::store_data_imm(target, 0x0001_0001);
    let done = mi::store_data_imm(Global(DATA + 4), 0x600d);
    [load, keep, store, done].concat()
}

/// A vfio-user client that handles DMA to a BAR as QEMU does: it accesses that BAR, and replies to the DMA request
/// after it has received the reply to its own access.
#[test]
fn vfio_user_client_handles_dma_to_the_cards_own_bar() {
    let dir = TempDir::new().unwrap();
    let card = ServedCard::new(card_file::load("small").unwrap(), 0, Topology::Together, Ecam::default()).unwrap();
    let Served { function, .. } = card.functions().remove(0);
    let path = dir.as_path().join("pf.sock");
    let _server = Server::start(&path, function, Settings::default()).unwrap();
    let mut late = 0;
    for target in TARGETS {
        let mut raw = (0..100).find_map(|_| {
            // The previous connection may still be closing.
            std::thread::sleep(Duration::from_millis(20));
            std::panic::catch_unwind(|| Raw::connect(&path)).ok()
        });
        let raw = raw.as_mut().expect("a connection");
        raw.map(BAR, 16 << 20, &[]);
        let start = Instant::now();
        raw.run_beside(BAR + (target & !0xfff), &load_and_store(target & 0xfff), &[]);
        let mut questions = 0;
        while let Some(question) = raw.question(Duration::from_millis(400)) {
            let offset = question.iova - BAR;
            let before = Instant::now();
            match question.header.command {
                command::DMA_READ => {
                    raw.read_u32(GTTMMADR, offset);
                }
                _ => raw.write(GTTMMADR, offset, &0x0001_0001_u32.to_le_bytes()),
            }
            late += u32::from(before.elapsed() > Duration::from_millis(500));
            assert!(before.elapsed() < in_time!(Duration::from_millis(1500)), "{target:#x}: {:?}", before.elapsed());
            raw.answer(&question, Ok(0));
            questions += 1;
        }
        assert!(questions >= 1, "{target:#x}: the engine did not access the BAR");
        assert!(start.elapsed() < in_time!(Duration::from_secs(6)), "{target:#x}: {:?}", start.elapsed());
        assert_eq!(raw.read_u32(CONFIG, 0), 0x56c0_8086);
    }
    println!("{late} accesses waited for the engine that caused them");
    assert_eq!(card.card().report().panics, 0);
}

/// A function of a card in this process.
struct Linked(Arc<CardFunction>);

impl Transport for Linked {
    fn write(&mut self, region: u32, offset: u64, data: &[u8]) {
        match region {
            CONFIG => self.0.write_config(offset, data),
            bar => self.0.write_bar(bar as u8, offset, data),
        }
    }

    fn read_u32(&mut self, region: u32, offset: u64) -> u32 {
        let mut data = [0; 4];
        match region {
            CONFIG => self.0.read_config(offset, &mut data),
            bar => self.0.read_bar(bar as u8, offset, &mut data),
        }
        u32::from_le_bytes(data)
    }
}

/// A VMM in this process: the BAR is not RAM, so the access faults the context and accesses no register, and later
/// batches run. RAM next to the BAR is accessible up to its last byte and not beyond.
#[test]
fn in_process_dma_to_the_cards_own_bar_faults() {
    let ram = GuestMemoryMmap::<()>::from_ranges(&[(GuestAddress(0), 1 << 20), (GuestAddress(BAR - 0x1000), 0x1000)]);
    let (card, _) = machine::card(0, Topology::Native, GuestRam::new(Arc::new(ram.unwrap())));
    let mut pf = Linked(card.pf().clone());
    for target in TARGETS {
        let entry = pf.read_u32(GTTMMADR, (8 << 20) + 0xf00);
        pf.write(LMEM, DATA, &[0; 8]);
        pf.run_beside(BAR + (target & !0xfff), &load_and_store(target & 0xfff), &[]);
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(pf.read_u32(LMEM, DATA + 4), 0, "{target:#x}: the engine continued after the fault");
        assert_eq!(pf.read_u32(GTTMMADR, (8 << 20) + 0xf00), entry, "{target:#x}: a GGTT entry was written");
        pf.reset_engine();
        pf.run_beside(0x1000, &load_and_store(0x10), &[]);
        let done = (0..500).any(|_| {
            std::thread::sleep(Duration::from_millis(2));
            pf.read_u32(LMEM, DATA + 4) == 0x600d
        });
        assert!(done, "{target:#x}: the engine does not run later batches");
        pf.reset_engine();
    }
    for (offset, reached) in [(0xffc, true), (0x1000, false)] {
        pf.write(LMEM, DATA, &[0; 8]);
        pf.run_beside(BAR - 0x1000, &load_and_store(offset), &[]);
        // The negative case waits 0.1 s; the positive case allows for a busy host.
        let done = (0..if reached { 1000 } else { 20 }).any(|_| {
            std::thread::sleep(Duration::from_millis(5));
            pf.read_u32(LMEM, DATA + 4) == 0x600d
        });
        assert_eq!(done, reached, "{offset:#x}");
        pf.reset_engine();
    }
    assert_eq!(card.report().panics, 0);
}
