// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A VMM that runs the card on a thread of its own, with memory of a type of its own: an Ivy Bridge GPU executes a command from
//! a ring in guest memory. `cargo run --release -p arctic-gpu --example own_threads`

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};
use std::{io, thread};

use arctic_gpu::vm_memory::{Bytes, MmapRegion, VolatileMemory, VolatileSlice};
use arctic_gpu::{Access, Dma, DmaView, Function, Machine, MsiSink, PciDevice, VirtualCard, WorkStatus, card_file};

/// 64 pages of guest RAM, with a dirty bit for each.
struct Ram {
    pages: MmapRegion,
    dirty: AtomicU64,
}

impl DmaView for Ram {
    fn slice(&self, iova: u64, len: usize, access: Access) -> Option<VolatileSlice<'_>> {
        // Up to the end of the page: the card asks for the rest again.
        let len = len.min(0x1000 - (iova & 0xfff) as usize);
        let slice = self.pages.get_slice(iova.try_into().ok()?, len).ok()?;
        if access == Access::Write {
            self.dirty.fetch_or(1 << (iova >> 12), Ordering::Relaxed);
        }
        Some(slice)
    }
}

/// The machine.
struct Board(Arc<Ram>);

impl Dma for Board {
    fn view(&self, _: Function) -> Arc<dyn DmaView> {
        self.0.clone()
    }
}

struct Interrupt;

impl MsiSink for Interrupt {
    fn trigger(&self) {}
}

impl Machine for Board {
    fn msi(&self, _: Function) -> io::Result<Arc<dyn MsiSink>> {
        Ok(Arc::new(Interrupt))
    }
}

/// Runs the machine; also called by a test.
pub fn main() -> Result<(), Box<dyn Error>> {
    let ram = Arc::new(Ram { pages: MmapRegion::new(64 << 12)?, dirty: AtomicU64::new(0) });
    let board = Arc::new(Board(ram.clone()));

    // The channel has room for one message: one wakeup is as good as several.
    let (wake, woken) = sync_channel(1);
    let waker = wake.clone();
    let builder = VirtualCard::builder(card_file::load("ivb")?);
    let builder = builder.without_threads(move || {
        let _ = waker.try_send(());
    });
    let card = Arc::new(builder.plug_into(board.clone(), board)?);
    let stop = Arc::new(AtomicBool::new(false));
    let (runner, stopped) = (card.clone(), stop.clone());
    let worker = thread::spawn(move || {
        while !stopped.load(Ordering::Acquire) {
            let WorkStatus::Idle(until) = runner.work() else { continue };
            let left = until.map_or(u64::MAX, |until| until.saturating_sub(runner.clock().now()));
            let Err(RecvTimeoutError::Timeout) = woken.recv_timeout(Duration::from_nanos(left)) else { continue };
        }
    });

    // The guest: memory decode and bus mastering, forcewake, two pages in the GGTT, a ring of one page, and in it one
    // MI_STORE_DATA_IMM to GGTT address 0x2000.
    let pf = card.pf();
    pf.write_config(4, &6_u16.to_le_bytes());
    let write = |offset: u64, value: u32| pf.write_bar(0, offset, &value.to_le_bytes());
    write(0xa188, 0x1_0001);
    write((2 << 20) + 4, 0x1_0001);
    write((2 << 20) + 8, 0x2_0001);
    let command: [u32; 4] = [0x1040_0002, 0, 0x2000, 0xc0ff_ee00];
    ram.pages.as_volatile_slice().write_obj(command, 0x1_0000)?;
    for (register, value) in [(0x2038, 0x1000), (0x203c, 1), (0x2030, 16)] {
        write(register, value);
    }
    let written = || ram.pages.as_volatile_slice().read_obj::<u32>(0x2_0000);
    let start = Instant::now();
    while written()? == 0 && start.elapsed() < Duration::from_secs(10) {
        thread::yield_now();
    }
    stop.store(true, Ordering::Release);
    let _ = wake.try_send(());
    worker.join().expect("the worker does not panic");
    println!("the GPU has written {:#x}; dirty pages: {:#x}", written()?, ram.dirty.load(Ordering::Relaxed));
    Ok(())
}
