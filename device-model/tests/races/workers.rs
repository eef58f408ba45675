// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Several threads execute parts of one step, each with its own TLB, while the memory that they access is taken away.

use arctic_fidelity::proves;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use arctic_device_model::generation::XE_HPG;
use arctic_device_model::host::{Dma, DmaView, Function};
use arctic_device_model::memory::ggtt::{GGTT_BYTES, Ggtt};
use arctic_device_model::memory::region::SharedRegion;
use arctic_device_model::memory::storage::FRAME;
use arctic_device_model::memory::{Memory, Space, Tlb, VfMemory};
use arctic_test_support::process::setting;
use arctic_test_support::random::Random;
use vm_memory::{Bytes, VolatileSlice};

const VF: Function = Function(1);
/// Threads that execute a step.
const WORKERS: usize = 3;
/// Accesses of one worker in a step.
const ACCESSES: u64 = 200;

/// Addresses of the VF's page tables, in its first frame; the last table maps [`PAGES`] pages from address 0.
const ROOT: u64 = 0x1000;
const LEAVES: u64 = 0x4000;
/// Mapped pages: half are local memory in the VF's second frame, half are guest memory.
const PAGES: u64 = 16;
const GUEST: u64 = 0x100_0000;

/// Local memory of the card: the LMTT, the VF's tables, and two frames of which the LMTT gives one to the VF.
const LMTT: u64 = 0;
const TABLES: u64 = FRAME;
const DATA: [u64; 2] = [2 * FRAME, 3 * FRAME];
const LOCAL: u64 = 4 * FRAME;

/// Guest memory, or none if it is not mapped.
struct View(Option<Arc<SharedRegion>>);

impl DmaView for View {
    fn slice(&self, iova: u64, len: usize) -> Option<VolatileSlice<'_>> {
        let (region, at) = (self.0.as_ref()?, iova.checked_sub(GUEST)?);
        region.slice_up_to(at, len)
    }
}

struct Guest(RwLock<Arc<View>>);

impl Dma for Guest {
    fn view(&self, _: Function) -> Arc<dyn DmaView> {
        self.0.read().unwrap().clone()
    }
}

/// What a step uses exclusively: the TLBs of the engine and of its workers.
#[derive(Default)]
struct Engine {
    tlb: Tlb,
    workers: [Tlb; WORKERS],
}

struct World {
    memory: Memory,
    guest: Arc<Guest>,
    engine: Mutex<Engine>,
    /// The host waits for the engine's lock.
    wanted: AtomicBool,
    stop: AtomicBool,
    writes: [AtomicU64; 2],
    faults: AtomicUsize,
}

impl World {
    fn new() -> Self {
        let region = |len: u64| SharedRegion::anonymous(len as usize).unwrap();
        let guest = Arc::new(Guest(RwLock::new(Arc::new(View(None)))));
        let vf = VfMemory { local: region(2 * FRAME), ggtt: None };
        let memory =
            Memory::new(XE_HPG.page_tables, region(LOCAL), Ggtt::new(region(GGTT_BYTES as u64)), guest.clone())
                .with_vfs(vec![vf]);
        let world = World {
            memory,
            guest,
            engine: Mutex::default(),
            wanted: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            writes: Default::default(),
            faults: AtomicUsize::new(0),
        };
        // The directory's entry of VF 1, and its table in the next 64 KiB.
        world.put32(LMTT + 4, 1 << 4 | 1);
        world.put32(LMTT + 0x1_0000, (TABLES / FRAME) as u32 * 32 | 1);
        world.assign(DATA[0]);
        world.memory.set_lmem_cfg(1 << 31);
        world.memory.set_quota(VF, 2 * FRAME);
        world.memory.adopt_lmtt();
        for table in [ROOT, 0x2000, 0x3000] {
            world.put(TABLES + table, (table + 0x1000) | 3);
        }
        for page in 0..PAGES {
            world.map(page, page / 2);
        }
        world
    }

    fn put(&self, at: u64, value: u64) {
        self.memory.write_bar(Function::PF, at, &value.to_le_bytes());
    }

    fn put32(&self, at: u64, value: u32) {
        self.memory.write_bar(Function::PF, at, &value.to_le_bytes());
    }

    /// Sets the VF's second LMTT entry.
    fn assign(&self, frame: u64) {
        self.put32(LMTT + 0x1_0004, (frame / FRAME) as u32 * 32 | 1);
    }

    /// Maps an odd page to the VF's local memory, an even one to guest memory, at the n-th page of either.
    fn map(&self, page: u64, n: u64) {
        let entry = if page % 2 == 1 { (FRAME + n * 0x1000) | 0x803 } else { (GUEST + n * 0x1000) | 3 };
        self.put(TABLES + LEAVES + page * 8, entry);
    }

    /// Executes one step with all workers.
    fn step(&self, seed: u64) {
        while self.wanted.load(Ordering::Acquire) {
            thread::yield_now();
        }
        let mut engine = self.engine.lock().unwrap();
        let Engine { tlb, workers } = &mut *engine;
        let views = self.memory.views();
        let gam = self.memory.gam(VF, &views, tlb);
        thread::scope(|scope| {
            for (seed, tlb) in (seed..).zip(workers) {
                let mut gam = gam.for_worker(tlb);
                scope.spawn(move || {
                    let mut random = Random::new(seed);
                    for _ in 0..ACCESSES {
                        let page = random.below(PAGES);
                        let at = page << 12 | random.below(0x400) << 2;
                        match gam.write_u32(Space::Ppgtt(ROOT), at, 0xbad) {
                            Ok(()) => self.writes[page as usize % 2].fetch_add(1, Ordering::Relaxed),
                            Err(_) => self.faults.fetch_add(1, Ordering::Relaxed) as u64,
                        };
                    }
                });
            }
        });
    }

    /// Runs `work` while no step is in progress.
    fn between_steps<T>(&self, work: impl FnOnce() -> T) -> T {
        self.wanted.store(true, Ordering::Release);
        let engine = self.engine.lock().unwrap();
        let done = work();
        drop(engine);
        self.wanted.store(false, Ordering::Release);
        done
    }

    /// Maps `page` to the other of its two possible targets, after `changes` earlier calls. Returns the old target.
    fn remap(&self, page: u64, changes: u64) -> u64 {
        let target = |changes: u64| (page / 2 + changes * PAGES / 2) % PAGES;
        self.map(page, target(changes + 1));
        target(changes)
    }

    /// Contents of page `n` of the VF's second frame or of guest memory, whichever `page` may be mapped to.
    fn bytes(&self, page: u64, guest: &SharedRegion, n: u64) -> Vec<u8> {
        let mut data = vec![0; 0x1000];
        if page % 2 == 1 {
            self.memory.read_bar(VF, FRAME + n * 0x1000, &mut data);
        } else {
            guest.slice(n * 0x1000, 0x1000).unwrap().copy_to(&mut data[..]);
        }
        data
    }

    /// Sets the contents of that page.
    fn fill(&self, page: u64, guest: &SharedRegion, n: u64, data: &[u8]) {
        if page % 2 == 1 {
            self.memory.write_bar(VF, FRAME + n * 0x1000, data);
        } else {
            guest.slice(n * 0x1000, 0x1000).unwrap().copy_from(data);
        }
    }
}

#[test]
fn no_worker_uses_memory_that_was_taken_away() {
    proves!(
        [V13_043, V13_108],
        "one thread changes page table entries, the LMTT, and the guest's memory map, while three threads execute \
        each step of an engine. When the thread has invalidated and waited for the end of the step, no worker \
        writes to the memory that was taken away (contract E.3)"
    );
    let world = World::new();
    let new_guest = || Arc::new(SharedRegion::anonymous((PAGES << 12) as usize).unwrap());
    let mut guest = new_guest();
    let set_guest = |guest: Option<&Arc<SharedRegion>>| {
        *world.guest.0.write().unwrap() = Arc::new(View(guest.cloned()));
    };
    set_guest(Some(&guest));
    let mut random = Random::new(1);
    let mut changes = [0; PAGES as usize];
    let mut frame = 0;
    let mut done = [0u32; 3];
    let until = Instant::now() + Duration::from_millis(setting("ARCTIC_RACES_MS", 1500));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut steps = 0;
            while !world.stop.load(Ordering::Relaxed) {
                world.step(steps * WORKERS as u64);
                steps += 1;
            }
        });
        let pause = |random: &mut Random| thread::sleep(Duration::from_micros(random.below(600)));
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            while Instant::now() < until || done.iter().any(|done| *done < 5) {
                let action = random.below(3) as usize;
                done[action] += 1;
                pause(&mut random);
                match action {
                    0 => {
                        let page = random.below(PAGES);
                        let old = world.remap(page, changes[page as usize]);
                        changes[page as usize] += 1;
                        world.memory.invalidate(VF.bit());
                        world.between_steps(|| ());
                        world.fill(page, &guest, old, &[7; 0x1000]);
                        pause(&mut random);
                        assert_eq!(world.bytes(page, &guest, old), [7; 0x1000], "page {page} was written");
                    }
                    1 => {
                        world.assign(DATA[1 - frame]);
                        world.between_steps(|| world.memory.adopt_lmtt());
                        world.memory.write_bar(Function::PF, DATA[frame], &vec![7; FRAME as usize]);
                        pause(&mut random);
                        let mut data = vec![0; FRAME as usize];
                        world.memory.read_bar(Function::PF, DATA[frame], &mut data);
                        assert!(data.iter().all(|byte| *byte == 7), "the frame {:#x} was written", DATA[frame]);
                        frame = 1 - frame;
                    }
                    _ => {
                        set_guest(None);
                        world.between_steps(|| ());
                        guest
                            .slice(0, (PAGES << 12) as usize)
                            .unwrap()
                            .write_slice(&[7; (PAGES << 12) as usize], 0)
                            .unwrap();
                        pause(&mut random);
                        let mut data = vec![0u8; (PAGES << 12) as usize];
                        guest.slice(0, data.len()).unwrap().copy_to(&mut data[..]);
                        assert!(data.iter().all(|byte| *byte == 7), "unmapped memory was written");
                        assert_eq!(Arc::strong_count(&guest), 1, "a view of unmapped memory is left");
                        guest = new_guest();
                        set_guest(Some(&guest));
                    }
                }
            }
        }));
        world.stop.store(true, Ordering::Relaxed);
        if let Err(panic) = result {
            std::panic::resume_unwind(panic);
        }
    });
    println!("{done:?} changes, {:?} writes, {:?} faults", world.writes, world.faults);
    assert!(world.writes.iter().all(|writes| writes.load(Ordering::Relaxed) > 0), "{:?}", world.writes);
}
