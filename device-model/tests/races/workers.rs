// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Several threads execute parts of one step, each with its own TLB, while the memory that they access is taken away.

use arctic_fidelity::proves;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use arctic_device_model::gate::lmtt;
use arctic_device_model::generation::XE_HPG;
use arctic_device_model::host::{Access, Dma, DmaView, Function};
use arctic_device_model::memory::ggtt::{GGTT_BYTES, Ggtt};
use arctic_device_model::memory::region::SharedRegion;
use arctic_device_model::memory::storage::FRAME;
use arctic_device_model::memory::{Memory, Space, Tlb, VfMemory};
use arctic_test_support::process::setting;
use arctic_test_support::random::Random;
use arctic_test_support::vfs::bench::LOCAL_PAGE;
use vm_memory::{Bytes, VolatileSlice};

const VF: Function = Function::new(1).unwrap();
/// Threads that execute a step.
const WORKERS: usize = 3;
/// Accesses of one worker in a step.
const ACCESSES: u64 = 200;

/// Bytes of a page of the VF's PPGTT.
const PAGE: u64 = 0x1000;
/// Tables of the VF's PPGTT, one level after the other, at offsets in its first frame. The last one maps [`PAGES`] pages
/// from address 0.
const TABLE_LEVELS: [u64; 4] = [0x1000, 0x2000, 0x3000, 0x4000];
/// Entry of the PPGTT: a page of guest memory, or a table, present and writable.
const SYSTEM_PAGE: u64 = 3;
/// Mapped pages: half are local memory in the VF's second frame, half are guest memory.
const PAGES: u64 = 16;
/// Address of the guest's memory in the VF's DMA address space.
const GUEST_BASE: u64 = 0x100_0000;
/// Bytes of the guest's memory.
const GUEST_BYTES: usize = (PAGES * PAGE) as usize;

/// Local memory of the card: the LMTT, the VF's tables, and two frames of which the LMTT gives one to the VF.
const LMTT: u64 = 0;
/// Table of the VF in the LMTT, behind the directory.
const LMTT_TABLE: u64 = LMTT + 0x1_0000;
const TABLES: u64 = FRAME;
const DATA_FRAMES: [u64; 2] = [2 * FRAME, 3 * FRAME];
const LOCAL_BYTES: u64 = 4 * FRAME;

/// Byte that the host writes to memory that it has taken away.
const FILL: u8 = 7;
/// Dword that the workers write.
const WORKER_VALUE: u32 = 0xbad;
/// Rounds of each action, at least.
const LEAST_ROUNDS: u32 = 5;

/// Guest memory, or none if it is not mapped.
struct View(Option<Arc<SharedRegion>>);

impl DmaView for View {
    fn slice(&self, iova: u64, len: usize, _: Access) -> Option<VolatileSlice<'_>> {
        let (region, at) = (self.0.as_ref()?, iova.checked_sub(GUEST_BASE)?);
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
    host_waits: AtomicBool,
    stop: AtomicBool,
    /// Completed writes, to pages of guest memory and of local memory.
    writes: [AtomicU64; 2],
    /// Accesses without a translation.
    faults: AtomicU64,
}

impl World {
    fn new() -> Self {
        let region = |len: u64| SharedRegion::anonymous(len as usize).unwrap();
        let guest = Arc::new(Guest(RwLock::new(Arc::new(View(None)))));
        let vf = VfMemory { local: region(2 * FRAME), ggtt: None };
        let memory =
            Memory::new(XE_HPG.page_tables, region(LOCAL_BYTES), Ggtt::new(region(GGTT_BYTES as u64)), guest.clone())
                .with_vfs(vec![vf]);
        let world = World {
            memory,
            guest,
            engine: Mutex::default(),
            host_waits: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            writes: Default::default(),
            faults: AtomicU64::new(0),
        };
        // The directory's entry of VF 1, and its table in the next 64 KiB.
        world.put32(LMTT + 4, lmtt::directory_entry(LMTT_TABLE));
        world.put32(LMTT_TABLE, lmtt::table_entry(TABLES));
        world.assign(DATA_FRAMES[0]);
        world.memory.set_lmem_cfg(lmtt::register(LMTT));
        world.memory.set_quota(VF, 2 * FRAME);
        world.memory.adopt_lmtt();
        for level in TABLE_LEVELS.windows(2) {
            world.put(TABLES + level[0], level[1] | SYSTEM_PAGE);
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

    /// Gives this frame to the VF as its second one.
    fn assign(&self, frame: u64) {
        self.put32(LMTT_TABLE + 4, lmtt::table_entry(frame));
    }

    /// Maps an odd page to page `n` of the VF's second frame, an even one to page `n` of guest memory.
    fn map(&self, page: u64, n: u64) {
        let entry = if page % 2 == 1 { (FRAME + n * PAGE) | LOCAL_PAGE } else { (GUEST_BASE + n * PAGE) | SYSTEM_PAGE };
        self.put(TABLES + TABLE_LEVELS[3] + page * 8, entry);
    }

    /// Executes one step with all workers.
    fn step(&self, seed: u64) {
        while self.host_waits.load(Ordering::Acquire) {
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
                        let at = page * PAGE + random.below(PAGE / 4) * 4;
                        match gam.write_u32(Space::Ppgtt(TABLE_LEVELS[0]), at, WORKER_VALUE) {
                            Ok(()) => self.writes[page as usize % 2].fetch_add(1, Ordering::Relaxed),
                            Err(_) => self.faults.fetch_add(1, Ordering::Relaxed),
                        };
                    }
                });
            }
        });
    }

    /// Runs `work` while no step is in progress.
    fn between_steps<T>(&self, work: impl FnOnce() -> T) -> T {
        self.host_waits.store(true, Ordering::Release);
        let engine = self.engine.lock().unwrap();
        let result = work();
        drop(engine);
        self.host_waits.store(false, Ordering::Release);
        result
    }

    /// Maps `page` to the other of its two possible targets, after `changes` earlier calls. Returns the old target.
    fn remap(&self, page: u64, changes: u64) -> u64 {
        let target = |changes: u64| (page / 2 + changes * PAGES / 2) % PAGES;
        self.map(page, target(changes + 1));
        target(changes)
    }

    /// Contents of page `n` of the VF's second frame or of guest memory, whichever `page` may be mapped to.
    fn bytes(&self, page: u64, guest: &SharedRegion, n: u64) -> Vec<u8> {
        let mut data = vec![0; PAGE as usize];
        if page % 2 == 1 {
            self.memory.read_bar(VF, FRAME + n * PAGE, &mut data);
        } else {
            guest.slice(n * PAGE, PAGE as usize).unwrap().copy_to(&mut data[..]);
        }
        data
    }

    /// Writes the page that [`World::bytes`] reads.
    fn fill(&self, page: u64, guest: &SharedRegion, n: u64, data: &[u8]) {
        if page % 2 == 1 {
            self.memory.write_bar(VF, FRAME + n * PAGE, data);
        } else {
            guest.slice(n * PAGE, PAGE as usize).unwrap().copy_from(data);
        }
    }
}

/// An action of the host that takes memory away.
#[derive(Clone, Copy)]
enum Action {
    /// Changes an entry of the VF's page tables.
    Remap,
    /// Gives another frame to the VF.
    Reassign,
    /// Unmaps the guest's memory.
    Unmap,
}

impl Action {
    const ALL: [Action; 3] = [Action::Remap, Action::Reassign, Action::Unmap];
}

/// The host: it takes memory away from the workers, and checks that they do not write to it.
struct Host<'a> {
    world: &'a World,
    guest: Arc<SharedRegion>,
    random: Random,
    /// Number of times that each page was mapped anew.
    changes: [u64; PAGES as usize],
    /// Index in [`DATA_FRAMES`] of the VF's second frame.
    frame: usize,
}

impl<'a> Host<'a> {
    fn new(world: &'a World) -> Self {
        let host = Host { world, guest: new_guest(), random: Random::new(1), changes: [0; PAGES as usize], frame: 0 };
        host.set_guest(Some(&host.guest));
        host
    }

    fn set_guest(&self, guest: Option<&Arc<SharedRegion>>) {
        *self.world.guest.0.write().unwrap() = Arc::new(View(guest.cloned()));
    }

    /// Lets the workers run for a while.
    fn pause(&mut self) {
        thread::sleep(Duration::from_micros(self.random.below(600)));
    }

    fn execute(&mut self, action: Action) {
        self.pause();
        match action {
            Action::Remap => self.remap_and_check(),
            Action::Reassign => self.reassign_and_check(),
            Action::Unmap => self.unmap_and_check(),
        }
    }

    fn remap_and_check(&mut self) {
        let page = self.random.below(PAGES);
        let changes = &mut self.changes[page as usize];
        let old = self.world.remap(page, *changes);
        *changes += 1;
        self.world.memory.invalidate(VF.bit());
        self.world.between_steps(|| ());
        self.world.fill(page, &self.guest, old, &[FILL; PAGE as usize]);
        self.pause();
        assert_eq!(self.world.bytes(page, &self.guest, old), [FILL; PAGE as usize], "page {page} was written");
    }

    fn reassign_and_check(&mut self) {
        let (old, new) = (DATA_FRAMES[self.frame], DATA_FRAMES[1 - self.frame]);
        self.world.assign(new);
        self.world.between_steps(|| self.world.memory.adopt_lmtt());
        self.world.memory.write_bar(Function::PF, old, &vec![FILL; FRAME as usize]);
        self.pause();
        let mut data = vec![0; FRAME as usize];
        self.world.memory.read_bar(Function::PF, old, &mut data);
        assert!(data.iter().all(|byte| *byte == FILL), "the frame {old:#x} was written");
        self.frame = 1 - self.frame;
    }

    fn unmap_and_check(&mut self) {
        self.set_guest(None);
        self.world.between_steps(|| ());
        self.guest.slice(0, GUEST_BYTES).unwrap().write_slice(&[FILL; GUEST_BYTES], 0).unwrap();
        self.pause();
        let mut data = vec![0u8; GUEST_BYTES];
        self.guest.slice(0, GUEST_BYTES).unwrap().copy_to(&mut data[..]);
        assert!(data.iter().all(|byte| *byte == FILL), "unmapped memory was written");
        assert_eq!(Arc::strong_count(&self.guest), 1, "a view of unmapped memory is left");
        self.guest = new_guest();
        self.set_guest(Some(&self.guest));
    }
}

fn new_guest() -> Arc<SharedRegion> {
    Arc::new(SharedRegion::anonymous(GUEST_BYTES).unwrap())
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
    let mut host = Host::new(&world);
    // Number of times that each action was executed, by its place in `Action::ALL`.
    let mut rounds = [0u32; 3];
    let until = Instant::now() + Duration::from_millis(setting("ARCTIC_RACES_MS", 1500));
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut steps = 0;
            while !world.stop.load(Ordering::Relaxed) {
                world.step(steps * WORKERS as u64);
                steps += 1;
            }
        });
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            while Instant::now() < until || rounds.iter().any(|rounds| *rounds < LEAST_ROUNDS) {
                let action = host.random.below(3) as usize;
                rounds[action] += 1;
                host.execute(Action::ALL[action]);
            }
        }));
        world.stop.store(true, Ordering::Relaxed);
        if let Err(panic) = result {
            std::panic::resume_unwind(panic);
        }
    });
    println!("{rounds:?} changes, {:?} writes, {:?} faults", world.writes, world.faults);
    assert!(world.writes.iter().all(|writes| writes.load(Ordering::Relaxed) > 0), "{:?}", world.writes);
}
