// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Number of host instructions of the command streamer for one MI_STORE_DATA_IMM through the PPGTT, counted by callgrind
//! (target: under 200), and the resulting rate of commands per second.
//!
//! The count is the difference of two runs of this program under `valgrind`, which eliminates the setup of the card.
//! Without valgrind only the rate and a line `skipped: REASON` are printed.

use std::sync::Arc;
use std::time::Instant;

use arctic_base::gpu::Host;
use arctic_base::host::{Dma, DmaView, Function, ManualClock, NullHost};
use arctic_gen6::engine::{Engine, Outcome};
use arctic_gen6::gt::Gt;
use arctic_gen6::memory::Pte;
use arctic_gen6::topology::EngineId;
use arctic_test_support::measure;
use vm_memory::mmap::MmapRegion;
use vm_memory::{Bytes, VolatileMemory, VolatileSlice};

/// Addresses in the guest: ring, page table, batch, data.
const RING: u32 = 0x1000;
const TABLE: u32 = 0x2000;
const BATCH: u32 = 0x1_0000;
const DATA: u32 = 0x4_0000;
/// Number of stores in one round of the batch, each to a different dword in four pages.
const STORES: u32 = 1024;
/// First entry of the page directory in the GGTT's table.
const DIRECTORY: u32 = 0x1000;

#[derive(Clone)]
struct Guest(Arc<MmapRegion>);

impl DmaView for Guest {
    fn slice(&self, iova: u64, len: usize) -> Option<VolatileSlice<'_>> {
        let at = usize::try_from(iova).ok()?;
        self.0.get_slice(at, len.min(self.0.size().checked_sub(at)?)).ok()
    }
}

impl Dma for Guest {
    fn view(&self, _: Function) -> Arc<dyn DmaView> {
        Arc::new(self.clone())
    }
}

/// A card, the copy engine of which executes the batch for ever.
fn card() -> (Gt, Engine) {
    let guest = Guest(Arc::new(MmapRegion::new(1 << 20).expect("memory")));
    let put = |at: u32, value: u32| guest.0.as_volatile_slice().write_obj(value, at as usize).expect("a dword");
    (0..256).for_each(|page| put(TABLE + page * 4, page << 12 | 1));
    let stores = (0..STORES).flat_map(|n| [0x1000_0002, 0, DATA + n * 16, n]);
    for (at, dword) in (BATCH..).step_by(4).zip(stores.chain([0x1880_0100, BATCH])) {
        put(at, dword);
    }
    put(RING, 0x1880_0100);
    put(RING + 4, BATCH);
    let profile = toml::from_str(include_str!("../../../configs/ivb.toml")).expect("a card");
    let memory = Arc::new(guest.clone());
    let host = Host { memory, interrupts: Arc::new(NullHost), clock: Arc::new(ManualClock::default()) };
    let gt = Gt::new(&profile, host);
    gt.ggtt.set(1, Pte(RING | 1));
    gt.ggtt.set(DIRECTORY, Pte(TABLE | 1));
    for (at, value) in
        [(0x220, 1), (0x228, DIRECTORY / 16 << 16), (0x29c, 0x0200_0200), (0x38, RING), (0x30, 8), (0x3c, 1)]
    {
        gt.write(0x2_2000 + at, value, !0);
    }
    (gt, Engine::new(EngineId::new(2)))
}

/// Number of commands of one step, as in the card's workers.
const STEP: u32 = 1024;

fn run(steps: u32) {
    let (gt, mut engine) = card();
    for _ in 0..steps {
        assert_eq!(engine.step(&gt, &*gt.view(), STEP), Outcome::Progress);
    }
}

/// Number of host instructions of a run with this number of steps, or why they cannot be counted.
fn instructions(steps: u32) -> Result<u64, String> {
    measure::instructions(&["--steps".into(), steps.to_string()])
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let steps = args.iter().position(|arg| arg == "--steps").and_then(|at| args.get(at + 1)?.parse().ok());
    if let Some(steps) = steps {
        return run(steps);
    }
    let (short, long) = (4, 24);
    match instructions(long).and_then(|many| Ok((many, instructions(short)?))) {
        Ok((many, few)) => {
            let each = (many - few) as f64 / f64::from((long - short) * STEP);
            println!("instructions for one MI_STORE_DATA_IMM: {each:.1} (target: under 200)");
        }
        Err(why) => println!("skipped: {why}"),
    }
    let started = Instant::now();
    run(2000);
    let rate = f64::from(2000 * STEP) / started.elapsed().as_secs_f64() / 1e6;
    println!("commands per second: {rate:.1} million");
}
