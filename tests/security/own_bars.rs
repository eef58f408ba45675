// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A guest directs the device's DMA at the device's own registers. The access reenters the card while the access that
//! caused it is still in progress.
//!
//! Guards: an engine's step waits for a client only for a bounded time and holds only the engine's lock (the GuC's step
//! only the GuC's lock); a VMM in the same process gives the card access to RAM only (`GuestRam`).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use arctic_device_model::card::{Card, GGTT_WINDOW};
use arctic_device_model::host::{DmaFault, Function};
use arctic_device_model::topology::EngineClass;
use arctic_test_support::mi::{self, Global, Reg};
use arctic_test_support::vfs::bench::*;
use arctic_test_support::vfs::world::Trap;
use arctic_test_support::{ct, in_time};

/// Guest address of the PF's BAR, which the VFs' BARs follow.
const BARS: u64 = 0x40_0000_0000;
const BAR_BYTES: u64 = 16 << 20;
/// Time that an engine waits for its client; shorter than with the vfio-user server.
const TIMEOUT: Duration = Duration::from_millis(300);

/// A client that behaves like QEMU: DMA to a BAR becomes a BAR access to the card, and the DMA request completes after
/// that access.
struct Vmm {
    card: Arc<Card>,
    accesses: AtomicU64,
    /// Threads of accesses that did not complete within `TIMEOUT`; they continue.
    late: Mutex<Vec<JoinHandle<()>>>,
}

impl Vmm {
    fn carry_out(&self, iova: u64, access: impl FnOnce(&Card, Function, u64) + Send + 'static) -> Result<(), DmaFault> {
        self.accesses.fetch_add(1, Ordering::SeqCst);
        let (card, offset) = (self.card.clone(), iova - BARS);
        let (done, wait) = sync_channel(1);
        let thread = thread::spawn(move || {
            access(&card, Function::new((offset / BAR_BYTES) as u8).unwrap(), offset % BAR_BYTES);
            let _ = done.send(());
        });
        match wait.recv_timeout(TIMEOUT) {
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
        let (len, (result_sender, result_receiver)) = (data.len(), sync_channel(1));
        self.carry_out(iova, move |card, function, offset| {
            let mut data = vec![0; len];
            card.read_gttmmadr(function, offset, &mut data);
            let _ = result_sender.send(data);
        })?;
        data.copy_from_slice(&result_receiver.recv().unwrap());
        Ok(())
    }

    fn write(&self, iova: u64, data: &[u8]) -> Result<(), DmaFault> {
        let data = data.to_vec();
        self.carry_out(iova, move |card, function, offset| card.write_gttmmadr(function, offset, &data))
    }
}

/// Registers to access: the GuC's doorbell register, the engines' tail pointers, submission and reset registers, a
/// doorbell, the mailbox, a GGTT entry, an unmodelled offset.
fn targets() -> Vec<u64> {
    let engine = |base: u64| [0x30, 0x34, 0x510, 0x550, 0xd0, 0x178].map(|offset| base + offset);
    let engines = [0x2000, 0x2_2000, 0x1a000].into_iter().flat_map(engine);
    let others =
        [0x19_01f0, 0x19_0240, 0x941c, 0xcf58, 0xc314, 0xcee8, 0x40_0000, GGTT_WINDOW, GGTT_WINDOW + 8, 0x7f_fffc];
    engines.chain(others).collect()
}

/// An engine writes and reads each target in the BARs of the PF, the attacker and another VF. The card neither
/// deadlocks nor panics, and each access completes within the engine's wait limit.
#[test]
fn engine_dma_to_the_cards_own_bar_does_not_deadlock() {
    let mut bench = VfBench::new(true);
    let vmm = Arc::new(Vmm { card: bench.card.clone(), accesses: AtomicU64::new(0), late: Mutex::default() });
    bench.guests.of(ATTACKER).set_trap(vmm.clone());
    let (mut carried_out, mut late) = (0, 0);
    for function in [Function::PF, ATTACKER, VICTIMS[0]] {
        for target in targets() {
            // The previous write may have reset any unit.
            bench.card.reset_card();
            bench.card.provision(&[QUOTA; 3]).unwrap();
            bench.work(10);
            bench.attacker_up();
            let before = vmm.accesses.load(Ordering::SeqCst);
            // A GGTT page of the attacker that maps to the BAR's page.
            let shown = bench.attacker.base() + at::WINDOW.start;
            let iova = BARS + u64::from(function.number()) * BAR_BYTES + target;
            bench.attacker.set_global(shown >> 12, iova & !0xfff);
            let address = shown + iova % 4096;
            let mut job = mi::store_data_imm(Global(address), 0x0001_0001).to_vec();
            job.extend(mi::load_register_mem(Reg::Own(mi::GPR0), Global(address)));
            job.extend(mi::store_data_imm(bench.attacker.global(at::SCRATCH), 0x600d));
            bench.attacker.poke(at::SCRATCH, 0);
            let start = Instant::now();
            bench.attacker.submit(1, EngineClass::Copy, &job);
            bench.work(60);
            assert!(start.elapsed() < in_time!(4 * TIMEOUT), "{function:?} {target:#x}: {:?}", start.elapsed());
            assert!(
                vmm.accesses.load(Ordering::SeqCst) > before,
                "{function:?} {target:#x}: the engine did not access the BAR"
            );
            carried_out += 1;
            for thread in vmm.late.lock().unwrap().drain(..) {
                // The access and the engine waited for each other until the engine timed out and released its lock.
                thread.join().expect("a card access must not panic");
                late += 1;
            }
        }
    }
    assert_eq!(bench.card.panics(), 0);
    assert!(
        carried_out == 3 * targets().len() && late > 0,
        "{late} of {carried_out} accesses waited for the engine that caused them"
    );
    // These accesses may have reset any unit. The card can nevertheless be initialised again, and works.
    bench.card.reset_card();
    bench.card.provision(&[QUOTA; 3]).unwrap();
    bench.attacker_up();
    bench.attacker.poke(at::SCRATCH, 0);
    let job = mi::store_data_imm(bench.attacker.global(at::SCRATCH), 0x600d);
    bench.attacker.submit(1, EngineClass::Copy, &job);
    bench.until("a batch after the reset", 60_000, |bench| bench.attacker.peek(at::SCRATCH) == 0x600d);
}

/// As above, for reads and writes by the GuC, with its CT buffers at the registers' addresses. The GuC finds no valid
/// ring there and continues.
#[test]
fn guc_with_ct_buffers_in_the_cards_own_bar_continues() {
    let mut bench = VfBench::new(true);
    let vmm = Arc::new(Vmm { card: bench.card.clone(), accesses: AtomicU64::new(0), late: Mutex::default() });
    bench.guests.of(ATTACKER).set_trap(vmm.clone());
    for function in [ATTACKER, Function::PF] {
        for target in [0x19_0000_u64, 0x2_2000, GGTT_WINDOW] {
            bench.attacker_up();
            let shown = bench.attacker.base() + at::WINDOW.start;
            for page in 0..3 {
                let iova = BARS + u64::from(function.number()) * BAR_BYTES + target + page * 4096;
                bench.attacker.set_global((shown >> 12) + page, iova);
            }
            let start = Instant::now();
            let before = vmm.accesses.load(Ordering::SeqCst);
            bench.attacker.mail(&ct::DISABLE);
            for message in ct::registration(shown, shown + ct::G2H) {
                bench.attacker.mail(&message);
            }
            bench.attacker.mail(&ct::ENABLE);
            bench.attacker.set(GUC_HOST_INTERRUPT, 1);
            bench.work(60);
            assert!(
                vmm.accesses.load(Ordering::SeqCst) > before,
                "{function:?} {target:#x}: the GuC did not access the BAR"
            );
            assert!(start.elapsed() < in_time!(12 * TIMEOUT), "{function:?} {target:#x}: {:?}", start.elapsed());
            vmm.late.lock().unwrap().drain(..).for_each(|thread| thread.join().expect("a card access must not panic"));
            bench.card.reset_function(ATTACKER);
            bench.work(40);
        }
    }
    assert_eq!(bench.card.panics(), 0);
}
