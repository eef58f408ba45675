// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Engines: locks, the flags by which workers select engines, and memory that is unmapped while engines run.

use std::ops::Range;

use arctic_base::host::Function;
use arctic_base::memory::epoch::{Epochs, StepFunctions};
use arctic_base::memory::region::SharedRegion;
use arctic_base::priority_mutex::PriorityMutex;
use arctic_base::wakeup::{EngineWakeup, MemoryGeneration};
use arctic_xehpg::memory::storage::{FRAME, FrameBacking, Storage};
use arctic_xehpg::memory::tlb::{Backing, Page, Tlb};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use loom::thread;
use vm_memory::Bytes;

use super::check;

/// Mutual exclusion of a step, a waiting thread, and a control path that holds the engine.
#[test]
fn engine_lock_is_exclusive() {
    check(|| {
        let engine = Arc::new(PriorityMutex::new(0));
        let waits = {
            let engine = engine.clone();
            thread::spawn(move || *engine.lock() += 1)
        };
        let steps = {
            let engine = engine.clone();
            thread::spawn(move || engine.try_lock().map(|mut step| *step += 1).is_some())
        };
        {
            let mut held = engine.hold();
            let before = *held;
            assert!(engine.wanted(), "`wanted` is not set while the engine is held");
            *held = before + 1;
            assert_eq!(*held, before + 1);
        }
        waits.join().unwrap();
        let stepped = steps.join().unwrap();
        assert!(!engine.wanted());
        assert_eq!(*engine.lock(), 2 + u32::from(stepped));
    });
}

/// If a worker cannot lock an engine that no control path is waiting for, another worker has locked it. Of two workers,
/// at least one executes a step.
#[test]
fn a_failed_lock_attempt_has_a_cause() {
    check(|| {
        let engine = Arc::new(PriorityMutex::new(0));
        let worker = |engine: Arc<PriorityMutex<u32>>| {
            move || match engine.try_lock() {
                Some(mut step) => {
                    *step += 1;
                    true
                }
                None => {
                    assert!(!engine.wanted());
                    false
                }
            }
        };
        let other = thread::spawn(worker(engine.clone()));
        let one = worker(engine.clone())();
        let other = other.join().unwrap();
        assert!(one || other);
        assert_eq!(*engine.lock(), u32::from(one) + u32::from(other));
    });
}

/// An engine finds its semaphore not satisfied and backs off while another engine satisfies it. The first engine polls
/// again without delay.
#[test]
fn change_during_backoff_causes_an_immediate_poll() {
    check(|| {
        struct Shared {
            waiting: EngineWakeup,
            changes: MemoryGeneration,
            semaphore: AtomicU32,
        }
        let shared = Arc::new(Shared {
            waiting: EngineWakeup::new(),
            changes: MemoryGeneration::new(),
            semaphore: AtomicU32::new(0),
        });
        shared.waiting.set_runnable(true);
        let other = {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.semaphore.store(1, Ordering::Relaxed);
                shared.changes.notify(std::iter::once(&shared.waiting));
            })
        };
        let seen = shared.changes.count();
        let satisfied = shared.semaphore.load(Ordering::Relaxed) == 1;
        if !satisfied {
            assert!(shared.waiting.back_off(1, &shared.changes, seen));
        }
        other.join().unwrap();
        assert_eq!(shared.waiting.next_poll(), 0, "deadline not cleared; satisfied at the first poll: {satisfied}");
        assert!(shared.waiting.runnable());
    });
}

const ADDRESS: u64 = 0x1000;
const VF: Function = Function::new(1).unwrap();
const OTHER: Function = Function::new(2).unwrap();

/// A page table with one entry, which contains the index of its target page.
struct Table {
    epochs: Epochs,
    /// The functions that the engine's step uses.
    step: StepFunctions,
    entry: AtomicU64,
    pages: [AtomicU32; 2],
}

impl Table {
    fn new() -> Self {
        Table {
            epochs: Epochs::default(),
            step: StepFunctions::default(),
            entry: AtomicU64::new(0),
            pages: [AtomicU32::new(0), AtomicU32::new(0)],
        }
    }

    /// Writes to the page that `tlb` contains, or to the table's.
    fn write(&self, tlb: &mut Tlb) {
        let target = match tlb.find(0, ADDRESS) {
            Some(page) => page.target,
            None => {
                let target = self.entry.load(Ordering::Acquire);
                let backing = Backing::Local;
                tlb.insert(ADDRESS, Page { base: ADDRESS, len: 0x1000, target, root: 0, backing, writable: true });
                target
            }
        };
        self.pages[target as usize].store(1, Ordering::Relaxed);
    }

    /// Changes the entry, and invalidates. `wait` waits for a step boundary. The old page then belongs to another
    /// owner; it must still contain that owner's value when `join` returns.
    fn replace(&self, wait: impl FnOnce(), join: impl FnOnce()) {
        self.entry.store(1, Ordering::Release);
        self.epochs.invalidate(VF.bit());
        wait();
        self.pages[0].store(7, Ordering::Relaxed);
        join();
        assert_eq!(self.pages[0].load(Ordering::Relaxed), 7);
    }
}

/// After a page table entry has changed, the TLBs have been invalidated and each engine has passed a step boundary, the
/// old page is no longer written and may be reused by another owner.
#[test]
fn tlb_invalidation_drops_cached_pages() {
    check(|| {
        let engine = Arc::new(PriorityMutex::new(Tlb::default()));
        let table = Arc::new(Table::new());
        let worker = {
            let (engine, table) = (engine.clone(), table.clone());
            thread::spawn(move || {
                for _ in 0..2 {
                    let Some(mut tlb) = engine.try_lock() else { continue };
                    tlb.catch_up(table.epochs.now(VF), VF);
                    table.write(&mut tlb);
                }
            })
        };
        table.replace(|| drop(engine.lock()), || worker.join().unwrap());
    });
}

/// As above, for a step of which another thread executes a part with its own TLB, which keeps its contents between the
/// steps.
#[test]
fn invalidation_reaches_the_workers_of_a_step() {
    check(|| {
        let engine = Arc::new(PriorityMutex::new((Tlb::default(), Some(Tlb::default()))));
        let table = Arc::new(Table::new());
        let stepping = {
            let (engine, table) = (engine.clone(), table.clone());
            thread::spawn(move || {
                for _ in 0..2 {
                    let Some(mut step) = engine.try_lock() else { continue };
                    let (tlb, worker) = &mut *step;
                    tlb.catch_up(table.epochs.now(VF), VF);
                    let mut own = worker.take().unwrap();
                    own.follow(tlb);
                    let part = {
                        let table = table.clone();
                        thread::spawn(move || {
                            table.write(&mut own);
                            own
                        })
                    };
                    table.write(tlb);
                    *worker = Some(part.join().unwrap());
                }
            })
        };
        table.replace(|| drop(engine.lock()), || stepping.join().unwrap());
    });
}

/// An engine runs contexts of two functions. One of them changes its table and invalidates, and waits for the engine
/// only if it finds itself in the engine's set, possibly while the engine begins or ends its step.
#[test]
fn a_skipped_engine_uses_no_old_translation() {
    check(|| {
        let engine = Arc::new(PriorityMutex::new(Tlb::default()));
        let table = Arc::new(Table::new());
        let worker = {
            let (engine, table) = (engine.clone(), table.clone());
            thread::spawn(move || {
                for function in [VF, OTHER, VF] {
                    let Some(mut tlb) = engine.try_lock() else { continue };
                    table.step.add(function);
                    tlb.catch_up(table.epochs.now(function), function);
                    if function == VF {
                        table.write(&mut tlb);
                    }
                    table.step.clear();
                }
            })
        };
        let wait = || {
            if table.step.contains(VF.bit()) {
                drop(engine.lock());
            }
        };
        table.replace(wait, || worker.join().unwrap());
    });
}

/// As above, for a context of the PF that accesses a GGTT page of the function. The page is not cached: its entry is
/// read again after the owner that it names has been added to the set.
#[test]
fn a_skipped_engine_uses_no_old_global_page() {
    check(|| {
        let engine = Arc::new(PriorityMutex::new(()));
        let table = Arc::new(Table::new());
        let worker = {
            let (engine, table) = (engine.clone(), table.clone());
            thread::spawn(move || {
                for _ in 0..2 {
                    let Some(_lock) = engine.try_lock() else { continue };
                    table.step.add(Function::PF);
                    let owner = VF;
                    table.entry.load(Ordering::Acquire);
                    table.step.add(owner);
                    let target = table.entry.load(Ordering::Acquire);
                    table.pages[target as usize].store(1, Ordering::Relaxed);
                    table.step.clear();
                }
            })
        };
        let wait = || {
            if table.step.contains(VF.bit()) {
                drop(engine.lock());
            }
        };
        table.replace(wait, || worker.join().unwrap());
    });
}

/// A frame is assigned to a virtual function and back while a trapped access writes to it. The access uses one location
/// of the frame for its whole duration, and the virtual function keeps no copy.
#[test]
fn trapped_write_during_a_frame_move_is_not_lost() {
    check(|| {
        let region = || SharedRegion::anonymous(FRAME as usize).unwrap();
        let mut storage = Storage::new(region());
        storage.set_vfs(vec![region()]);
        let storage = Arc::new(storage);
        let writer = {
            let storage = storage.clone();
            thread::spawn(move || {
                let _still = storage.still();
                storage.slice(0x40, 4).unwrap().write_obj(7u32, 0).unwrap();
                assert_eq!(storage.slice(0x40, 4).unwrap().read_obj::<u32>(0).unwrap(), 7);
            })
        };
        assert_eq!(storage.settle(&[FrameBacking::of(Function::new(1).unwrap(), 0)]), [Range { start: 0, end: FRAME }]);
        storage.scrub();
        assert_eq!(storage.settle(&[FrameBacking::PF]), [Range { start: 0, end: FRAME }]);
        writer.join().unwrap();
        let home = storage.slice(0x40, 4).unwrap().read_obj::<u32>(0).unwrap();
        let away =
            storage.region(Function::new(1).unwrap()).unwrap().slice(0x40, 4).unwrap().read_obj::<u32>(0).unwrap();
        assert_eq!(home + away, 7, "the write must be in exactly one location");
    });
}
