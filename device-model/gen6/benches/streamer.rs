// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Number of host instructions of the command streamer for one MI_STORE_DATA_IMM through the PPGTT, counted by callgrind
//! (target: under 200), and its measured rate.

use std::sync::Arc;

use arctic_base::gpu::Host;
use arctic_base::host::{Access, Dma, DmaView, Function, ManualClock, NullHost};
use arctic_gen6::card::STEP_BUDGET;
use arctic_gen6::engine::{Engine, Outcome};
use arctic_gen6::gt::Gt;
use arctic_gen6::memory::Pte;
use arctic_gen6::topology::EngineId;
use arctic_mi::Process;
use arctic_mi::gen6::{batch_buffer_start, store_data_imm};
use arctic_test_support::measure::{self, Command};
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
    fn slice(&self, iova: u64, len: usize, _: Access) -> Option<VolatileSlice<'_>> {
        let at = usize::try_from(iova).ok()?;
        self.0.get_slice(at, len.min(self.0.size().checked_sub(at)?)).ok()
    }
}

impl Dma for Guest {
    fn view(&self, _: Function) -> Arc<dyn DmaView> {
        Arc::new(self.clone())
    }
}

/// Present bit of an entry of the GGTT or PPGTT.
const PRESENT: u32 = 1;

/// A card, the copy engine of which executes the batch for ever, and the guest's memory.
fn card() -> (Gt, Engine, Guest) {
    let guest = Guest(Arc::new(MmapRegion::new(1 << 20).expect("memory")));
    let put = |at: u32, value: u32| guest.0.as_volatile_slice().write_obj(value, at as usize).expect("a dword");
    (0..256).for_each(|page| put(TABLE + page * 4, page << 12 | PRESENT));
    let start = batch_buffer_start(Process(BATCH.into()));
    let stores = (0..STORES).flat_map(|n| store_data_imm(Process(store(n)), n));
    for (at, dword) in (BATCH..).step_by(4).zip(stores.chain(start)) {
        put(at, dword);
    }
    for (at, dword) in (RING..).step_by(4).zip(start) {
        put(at, dword);
    }
    let profile = toml::from_str(include_str!("../../../configs/ivb.toml")).expect("a card");
    let memory = Arc::new(guest.clone());
    let host = Host { memory, interrupts: Arc::new(NullHost), clock: Arc::new(ManualClock::default()) };
    let gt = Gt::new(&profile, host);
    gt.ggtt.set(1, Pte(RING | PRESENT));
    gt.ggtt.set(DIRECTORY, Pte(TABLE | PRESENT));
    for (at, value) in
        [(0x220, 1), (0x228, DIRECTORY / 16 << 16), (0x29c, 0x0200_0200), (0x38, RING), (0x30, 8), (0x3c, 1)]
    {
        gt.write(0x2_2000 + at, value, !0);
    }
    (gt, Engine::new(EngineId::new(2)), guest)
}

/// Address of a store of the batch.
fn store(n: u32) -> u64 {
    u64::from(DATA + n * 16)
}

/// The engine drops accesses that fault and continues, so the last store of the batch is checked.
fn run(steps: u32) {
    let (gt, mut engine, guest) = card();
    for _ in 0..steps {
        assert_eq!(engine.step(&gt, &*gt.view(), STEP_BUDGET), Outcome::Progress);
    }
    let at = usize::try_from(store(STORES - 1)).expect("an address in the guest");
    assert_eq!(guest.0.as_volatile_slice().read_obj::<u32>(at).expect("a dword"), STORES - 1);
}

fn main() {
    measure::commands(STEP_BUDGET, &[Command { name: "one MI_STORE_DATA_IMM", target: Some(200), run: &run }]);
}
