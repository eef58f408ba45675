//! A guest aims the device's own DMA at the device's registers: the access comes back while the one that caused it is
//! still under way.
//!
//! Guards: an engine's step waits for a client for a bounded time, with no lock held but the engine's (and the GuC's with
//! the GuC's); a VMM in the same process gives the card RAM and nothing else (`GuestRam`).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use arctic_device_model::card::{Card, GGTT_WINDOW};
use arctic_device_model::engine::id::EngineClass;
use arctic_device_model::world::{DmaFault, Function};

use crate::bench::*;
use crate::world::Trap;

/// Where the guest has put the BARs: of the PF, and of the VFs behind it.
const BARS: u64 = 0x40_0000_0000;
const BAR_BYTES: u64 = 16 << 20;
/// How long an engine waits for its client, as the vfio-user door has it, made short.
const PATIENCE: Duration = Duration::from_millis(300);

/// A client as QEMU is one: an access of a BAR goes to the card as an access of its own, and the DMA is answered when that
/// has been answered.
struct Vmm {
    card: Arc<Card>,
    accesses: AtomicU64,
    /// Accesses that were not answered in time; they go on.
    late: Mutex<Vec<JoinHandle<()>>>,
}

impl Vmm {
    fn carry_out(&self, iova: u64, access: impl FnOnce(&Card, Function, u64) + Send + 'static) -> Result<(), DmaFault> {
        self.accesses.fetch_add(1, Ordering::SeqCst);
        let (card, offset) = (self.card.clone(), iova - BARS);
        let (done, wait) = sync_channel(1);
        let thread = thread::spawn(move || {
            access(&card, Function((offset / BAR_BYTES) as u8), offset % BAR_BYTES);
            let _ = done.send(());
        });
        match wait.recv_timeout(PATIENCE) {
            Ok(()) => Ok(()),
            Err(RecvTimeoutError::Disconnected) => panic!("the card panicked"),
            Err(RecvTimeoutError::Timeout) => {
                self.late.lock().unwrap().push(thread);
                Err(DmaFault { iova })
            }
        }
    }
}

impl Trap for Vmm {
    fn claims(&self, iova: u64) -> bool {
        (BARS..BARS + 4 * BAR_BYTES).contains(&iova)
    }

    fn read(&self, iova: u64, data: &mut [u8]) -> Result<(), DmaFault> {
        let (len, (tell, told)) = (data.len(), sync_channel(1));
        self.carry_out(iova, move |card, function, offset| {
            let mut data = vec![0; len];
            card.read(function, offset, &mut data);
            let _ = tell.send(data);
        })?;
        data.copy_from_slice(&told.recv().unwrap());
        Ok(())
    }

    fn write(&self, iova: u64, data: &[u8]) -> Result<(), DmaFault> {
        let data = data.to_vec();
        self.carry_out(iova, move |card, function, offset| card.write(function, offset, &data))
    }
}

/// What a write of is worth trying: the GuC's bell, the engines' tails, submission and resets, a doorbell, the mailbox, a
/// global entry, the middle of nowhere.
fn targets() -> Vec<u64> {
    let engine = |base: u64| [0x30, 0x34, 0x510, 0x550, 0xd0, 0x178].map(|offset| base + offset);
    let engines = [0x2000, 0x2_2000, 0x1a000].into_iter().flat_map(engine);
    let others =
        [0x19_01f0, 0x19_0240, 0x941c, 0xcf58, 0xc314, 0xcee8, 0x40_0000, GGTT_WINDOW, GGTT_WINDOW + 8, 0x7f_fffc];
    engines.chain(others).collect()
}

/// Every target, of the PF's BAR, of the attacker's own and of a neighbour's, written and read by an engine on the way: the
/// card neither stands still nor panics, and each access is over within the engine's patience.
#[test]
fn an_engine_that_writes_registers_of_its_own_card() {
    let mut bench = Bench::new(true);
    let vmm = Arc::new(Vmm { card: bench.card.clone(), accesses: AtomicU64::new(0), late: Mutex::default() });
    bench.guests.of(ATTACKER).set_trap(vmm.clone());
    let (mut carried_out, mut late) = (0, 0);
    for function in [Function::PF, ATTACKER, VICTIMS[0]] {
        for target in targets() {
            // The last write may have reset anything.
            bench.card.reset();
            bench.card.provision(&[QUOTA; 3]).unwrap();
            bench.work(10);
            bench.attacker_up();
            let before = vmm.accesses.load(Ordering::SeqCst);
            // A page of the attacker's global space that shows the BAR's page.
            let shown = bench.attacker.base() + at::WINDOW.start;
            let iova = BARS + u64::from(function.0) * BAR_BYTES + target;
            bench.attacker.set_global(shown >> 12, iova & !0xfff);
            let address = shown + iova % 4096;
            let mut job = store(address, 0x0001_0001).to_vec();
            job.extend([0x29 << 23 | 1 << 22 | 1 << 19 | 2, 0x600, address as u32, 0]);
            job.extend(store(bench.attacker.base() + at::SCRATCH, 0x600d));
            bench.attacker.poke(at::SCRATCH, 0);
            let start = Instant::now();
            bench.attacker.submit(1, EngineClass::Copy, &job);
            bench.work(60);
            assert!(start.elapsed() < 4 * PATIENCE, "{function:?} {target:#x}: {:?}", start.elapsed());
            assert!(
                vmm.accesses.load(Ordering::SeqCst) > before,
                "{function:?} {target:#x}: the engine never came there"
            );
            carried_out += 1;
            for thread in vmm.late.lock().unwrap().drain(..) {
                // It was waiting for the engine that waited for it, and gets its turn now.
                thread.join().expect("an access of the card panicked");
                late += 1;
            }
        }
    }
    assert_eq!(bench.card.panics(), 0);
    assert!(carried_out == 3 * targets().len() && late > 0, "{late} of {carried_out} were a circle");
    // Whatever has been reset by that, the card can be brought up again and works.
    bench.card.reset();
    bench.card.provision(&[QUOTA; 3]).unwrap();
    bench.attacker_up();
    bench.attacker.poke(at::SCRATCH, 0);
    let job = store(bench.attacker.base() + at::SCRATCH, 0x600d);
    bench.attacker.submit(1, EngineClass::Copy, &job);
    bench.until("work after all that", 60_000, |bench| bench.attacker.peek(at::SCRATCH) == 0x600d);
}

/// The GuC's own reads and writes: its CT buffers are where the registers are. The GuC finds no ring there and goes on.
#[test]
fn a_guc_whose_rings_are_registers_of_its_own_card() {
    let mut bench = Bench::new(true);
    let vmm = Arc::new(Vmm { card: bench.card.clone(), accesses: AtomicU64::new(0), late: Mutex::default() });
    bench.guests.of(ATTACKER).set_trap(vmm.clone());
    for function in [ATTACKER, Function::PF] {
        for target in [0x19_0000_u64, 0x2_2000, GGTT_WINDOW] {
            bench.attacker_up();
            let shown = bench.attacker.base() + at::WINDOW.start;
            for page in 0..3 {
                let iova = BARS + u64::from(function.0) * BAR_BYTES + target + page * 4096;
                bench.attacker.set_global((shown >> 12) + page, iova);
            }
            let start = Instant::now();
            let before = vmm.accesses.load(Ordering::SeqCst);
            let keys: [(u32, u32, u64); 6] = [
                (0x0903, 2, shown),
                (0x0902, 2, shown + 0x1000),
                (0x0904, 1, 4096),
                (0x0906, 2, shown + 0x800),
                (0x0905, 2, shown + 0x2000),
                (0x0907, 1, 4096),
            ];
            bench.attacker.mail([0x4509, 0, 0, 0]);
            for (key, len, value) in keys {
                bench.attacker.mail([0x0508, key << 16 | len, value as u32, 0]);
            }
            bench.attacker.mail([0x4509, 1, 0, 0]);
            bench.attacker.set(BELL, 1);
            bench.work(60);
            assert!(vmm.accesses.load(Ordering::SeqCst) > before, "{function:?} {target:#x}: the GuC never came there");
            assert!(start.elapsed() < 12 * PATIENCE, "{function:?} {target:#x}: {:?}", start.elapsed());
            vmm.late.lock().unwrap().drain(..).for_each(|thread| thread.join().expect("the card panicked"));
            bench.card.reset_function(ATTACKER);
            bench.work(40);
        }
    }
    assert_eq!(bench.card.panics(), 0);
}
