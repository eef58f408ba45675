//! DMA at the card's own BARs once more, through what a real VMM has between itself and the card.
//!
//! Guards: `ClientDma` waits for a bounded time (over vfio-user the access comes back on the very connection on which the
//! answer is waited for); `GuestRam` knows RAM and nothing else.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arctic_gpu::vfio_user::wire::command;
use arctic_gpu::vfio_user::{Served, ServedCard, Server, Settings, ecam::Ecam};
use arctic_gpu::{Arrangement, CardFunction, GuestRam, PciDevice, card_file};
use vm_memory::{GuestAddress, GuestMemoryMmap};
use vmm_sys_util::tempdir::TempDir;

use crate::driver::*;
use crate::machine;

/// Where the guest has put GTTMMADR, and LMEM.
const BAR: u64 = 0x40_0000_0000;

/// What is read and written there: the copy engine's tail, its queue and load, its reset, the bell of a GuC that is not
/// loaded, its DMA, resets of the card, a global entry.
const TARGETS: [u64; 10] =
    [0x2_2030, 0x2_2034, 0x2_2510, 0x2_2550, 0x2_20d0, 0x19_01f0, 0xc314, 0x941c, 8 << 20, (8 << 20) + 0xf00];

fn load_and_store(offset: u32) -> Vec<u32> {
    let load = [0x29 << 23 | 1 << 22 | 1 << 19 | 2, 0x600, GUEST as u32 + offset, 0];
    let keep = [0x24 << 23 | 1 << 22 | 1 << 19 | 2, 0x600, DATA as u32, 0];
    let store = [0x20 << 23 | 1 << 22 | 2, GUEST as u32 + offset, 0, 0x0001_0001];
    let done = [0x20 << 23 | 1 << 22 | 2, DATA as u32 + 4, 0, 0x600d];
    [load, keep, store, done].concat()
}

/// A VMM over vfio-user, which does what QEMU does with a DMA at a BAR: an access of that BAR, whose answer it waits for
/// before it answers.
#[test]
fn a_vmm_over_vfio_user() {
    let dir = TempDir::new().unwrap();
    let card = ServedCard::new(card_file::load("small").unwrap(), 0, Arrangement::Together, Ecam::default()).unwrap();
    let Served { function, .. } = card.functions().remove(0);
    let path = dir.as_path().join("pf.sock");
    let _server = Server::start(&path, function, Settings::default()).unwrap();
    let mut late = 0;
    for target in TARGETS {
        let mut raw = (0..100).find_map(|_| {
            // The last one's connection may not have ended yet.
            std::thread::sleep(Duration::from_millis(20));
            std::panic::catch_unwind(|| Raw::connect(&path)).ok()
        });
        let raw = raw.as_mut().expect("a connection");
        raw.map(BAR, 16 << 20, &[]);
        let start = Instant::now();
        raw.run_beside(BAR + (target & !0xfff), &load_and_store((target & 0xfff) as u32), &[]);
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
            assert!(before.elapsed() < Duration::from_millis(1500), "{target:#x}: {:?}", before.elapsed());
            raw.answer(&question, Ok(0));
            questions += 1;
        }
        assert!(questions >= 1, "{target:#x}: the engine never came there");
        assert!(start.elapsed() < Duration::from_secs(6), "{target:#x}: {:?}", start.elapsed());
        assert_eq!(raw.read_u32(CONFIG, 0), 0x56c0_8086);
    }
    println!("{late} accesses had to wait for the engine that waited for them");
    assert_eq!(card.card().model().panics(), 0);
}

impl Door for Arc<CardFunction> {
    fn write(&mut self, region: u32, offset: u64, data: &[u8]) {
        match region {
            CONFIG => self.write_config(offset, data),
            bar => self.write_bar(bar as u8, offset, data),
        }
    }

    fn read_u32(&mut self, region: u32, offset: u64) -> u32 {
        let mut data = [0; 4];
        match region {
            CONFIG => self.read_config(offset, &mut data),
            bar => self.read_bar(bar as u8, offset, &mut data),
        }
        u32::from_le_bytes(data)
    }
}

/// A VMM in this process: the BAR is no RAM, so the access is the context's fault, the registers hear nothing of it, and
/// the next work is done. RAM beside it is reached, up to its last byte and not beyond.
#[test]
fn a_vmm_in_the_same_process() {
    let ram = GuestMemoryMmap::<()>::from_ranges(&[(GuestAddress(0), 1 << 20), (GuestAddress(BAR - 0x1000), 0x1000)]);
    let (card, _) = machine::card(0, Arrangement::Native, GuestRam::new(Arc::new(ram.unwrap())));
    let mut pf = card.pf().clone();
    for target in TARGETS {
        let entry = pf.read_u32(GTTMMADR, (8 << 20) + 0xf00);
        pf.write(LMEM, DATA, &[0; 8]);
        pf.run_beside(BAR + (target & !0xfff), &load_and_store((target & 0xfff) as u32), &[]);
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(pf.read_u32(LMEM, DATA + 4), 0, "{target:#x}: the engine went on");
        assert_eq!(pf.read_u32(GTTMMADR, (8 << 20) + 0xf00), entry, "{target:#x}: a global entry was written");
        pf.reset_engine();
        pf.run_beside(0x1000, &load_and_store(0x10), &[]);
        let done = (0..500).any(|_| {
            std::thread::sleep(Duration::from_millis(2));
            pf.read_u32(LMEM, DATA + 4) == 0x600d
        });
        assert!(done, "{target:#x}: the engine works no more");
        pf.reset_engine();
    }
    for (offset, reached) in [(0xffc, true), (0x1000, false)] {
        pf.write(LMEM, DATA, &[0; 8]);
        pf.run_beside(BAR - 0x1000, &load_and_store(offset), &[]);
        // Of what must not happen, a tenth of a second tells enough; what must, may take its time on a busy host.
        let done = (0..if reached { 1000 } else { 20 }).any(|_| {
            std::thread::sleep(Duration::from_millis(5));
            pf.read_u32(LMEM, DATA + 4) == 0x600d
        });
        assert_eq!(done, reached, "{offset:#x}");
        pf.reset_engine();
    }
    assert_eq!(card.model().panics(), 0);
}
