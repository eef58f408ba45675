// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A unit that the card is assembled with, beside its engines: whatever waits for steps waits for its steps.

use std::sync::Weak;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Instant;

use super::*;
use crate::card::units::Stepped;
use crate::gpu::Gpu;
use crate::sync::Mutex;
use crate::units::HeldUnit;
use arctic_base::priority_mutex::{PriorityGuard, PriorityMutex};

/// What the unit's next step does.
#[derive(Default, PartialEq)]
enum Next {
    #[default]
    Nothing,
    /// It uses memory of VF 1, and ends when it may.
    Wait,
    /// It panics. Before this is noticed, the next step begins, which waits.
    Panic,
}

#[derive(Default)]
struct Counts {
    resets: u32,
    recoveries: u32,
}

struct Probe {
    lock: PriorityMutex<Counts>,
    next: Mutex<Next>,
    panicked: AtomicBool,
    begun: AtomicBool,
    may_end: AtomicBool,
    ended: AtomicBool,
}

impl Probe {
    fn new() -> Arc<Probe> {
        let [panicked, begun, may_end, ended] = [(); 4].map(|()| AtomicBool::new(false));
        let lock = PriorityMutex::new(Counts::default());
        Arc::new(Probe { lock, next: Mutex::default(), panicked, begun, may_end, ended })
    }

    fn plan(&self, next: Next) {
        for flag in [&self.panicked, &self.begun, &self.may_end, &self.ended] {
            flag.store(false, Ordering::SeqCst);
        }
        *self.next.lock().unwrap() = next;
    }
}

impl Unit for Probe {
    fn id(&self) -> UnitId {
        UnitId::Further(0)
    }

    fn lock(&self) -> Option<&dyn StepLock> {
        Some(&self.lock)
    }

    fn hold(&self) -> Option<Box<dyn HeldUnit + '_>> {
        Some(Box::new(HeldProbe(self.lock.hold())))
    }
}

struct HeldProbe<'p>(PriorityGuard<'p, Counts>);

impl HeldUnit for HeldProbe<'_> {
    fn reset(&mut self, _: &Gt) {
        self.0.resets += 1;
    }
}

impl SteppedUnit for Probe {
    fn step(&self, card: &Card, _: u64) -> Stepped {
        let next = std::mem::take(&mut *self.next.lock().unwrap());
        match next {
            Next::Nothing => return Stepped::default(),
            Next::Wait => {
                let _step = self.lock.try_lock().expect("another thread has the lock");
                let memory = &card.gt().memory;
                let (views, mut tlb) = (memory.step_views(self.id()), Tlb::default());
                memory.gam(VF1, &views, &mut tlb);
                views.of(VF1);
                self.begun.store(true, Ordering::SeqCst);
                until("the step may end", || self.may_end.load(Ordering::SeqCst));
                self.ended.store(true, Ordering::SeqCst);
            }
            Next::Panic => {
                let _then = AtDrop(|| {
                    *self.next.lock().unwrap() = Next::Wait;
                    self.panicked.store(true, Ordering::SeqCst);
                    until("the next step has begun", || self.begun.load(Ordering::SeqCst));
                });
                // Dropped first.
                let _step = self.lock.try_lock().expect("another thread has the lock");
                panic!("a bug in a step");
            }
        }
        Stepped { worked: true, ..Stepped::default() }
    }

    fn recover(&self, _: &Card) {
        let mut counts = self.lock.lock();
        counts.recoveries += 1;
        self.lock.clear_poison();
    }
}

struct AtDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for AtDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Blocks until `condition` is met.
fn until(what: &str, condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < Duration::from_secs(60), "not in time: {what}");
        thread::yield_now();
    }
}

/// Guest memory that the test replaces.
struct Replaceable(Mutex<Arc<dyn DmaView>>);

impl Dma for Replaceable {
    fn view(&self, _: Function) -> Arc<dyn DmaView> {
        self.0.lock().unwrap().clone()
    }
}

struct Bench {
    card: Arc<Card>,
    probe: Arc<Probe>,
    guests: Arc<Replaceable>,
}

impl Bench {
    /// A small card with two VFs that the card provisions, and with the probe among its units.
    fn new() -> Bench {
        let profile: CardProfile = toml::from_str(include_str!("../../../configs/small.toml")).unwrap();
        let region = |len| SharedRegion::anonymous(len).unwrap();
        let guests = Arc::new(Replaceable(Mutex::new(Arc::new(NullHost))));
        let local = region(profile.local_memory as usize);
        let ggtt = Ggtt::new(region(GGTT_BYTES));
        let vfs = (0..2).map(|_| VfMemory { local: sparse(64 << 20), ggtt: None });
        let memory = Memory::new(profile.generation().page_tables, local, ggtt, guests.clone())
            .with_flat_ccs(MemoryLayout::of(profile.local_memory).usable)
            .with_vfs(vfs.collect());
        let gt = Gt::new(&profile, memory, Arc::new(Msis::default()), Arc::new(ManualClock::default()));
        let engines = Engines::new(profile.generation(), |engine| profile.has(engine));
        let probe = Probe::new();
        let card = Card::assembled(gt, engines, vec![probe.clone()], BarFiles::default());
        card.provision(&[QUOTA, QUOTA]).unwrap();
        while card.step() == WorkStatus::Busy {}
        Bench { card, probe, guests }
    }

    /// Calls `act` during a step of the probe, which ends when `act` has returned or `may_end` is set.
    fn during_step<T>(&self, act: impl FnOnce() -> T) -> T {
        let probe = &self.probe;
        probe.plan(Next::Wait);
        thread::scope(|scope| {
            let worker = scope.spawn(|| Gpu::work(&*self.card));
            until("the step has begun", || probe.begun.load(Ordering::SeqCst));
            let result = act();
            probe.may_end.store(true, Ordering::SeqCst);
            worker.join().unwrap();
            result
        })
    }

    /// Calls `user` during a step of the probe; returns whether it returns after the end of the step.
    fn waits(&self, user: impl FnOnce() + Send) -> bool {
        let probe = &self.probe;
        let act = || {
            thread::scope(|scope| {
                let user = scope.spawn(|| {
                    user();
                    probe.ended.load(Ordering::SeqCst)
                });
                until("the user waits or returns", || user.is_finished() || probe.lock.wanted());
                probe.may_end.store(true, Ordering::SeqCst);
                user.join().unwrap()
            })
        };
        self.during_step(act)
    }

    /// Returns the replaced memory, which only steps in progress use.
    fn replace_memory(&self, new: Arc<dyn DmaView>) -> Weak<dyn DmaView> {
        Arc::downgrade(&std::mem::replace(&mut *self.guests.0.lock().unwrap(), new))
    }

    fn resets(&self) -> u32 {
        self.probe.lock.lock().resets
    }
}

#[test]
fn quiesce_and_unmap_wait_for_every_unit() {
    let bench = Bench::new();
    assert!(bench.waits(|| Gpu::quiesce(&*bench.card)));
    let unmap = || {
        let old = bench.replace_memory(Arc::new(ClientMemory));
        Gpu::quiesce(&*bench.card);
        assert!(old.upgrade().is_none(), "the old mappings are in use");
    };
    assert!(bench.waits(unmap));
}

#[test]
fn tlb_invalidations_wait_for_every_unit() {
    let bench = Bench::new();
    assert!(bench.waits(|| bench.card.write_gttmmadr(Function::PF, 0xcee8, &1_u32.to_le_bytes())));
    // Where a step may wait for the client that writes the register, a worker waits.
    bench.replace_memory(Arc::new(ClientMemory));
    bench.during_step(|| {
        bench.card.write_gttmmadr(Function::PF, 0xcee8, &1_u32.to_le_bytes());
        assert_eq!(read(&bench.card, Function::PF, 0xcee8), 1, "the step has not ended");
    });
    while bench.card.step() == WorkStatus::Busy {}
    assert_eq!(read(&bench.card, Function::PF, 0xcee8), 0);
}

/// An FLR of a VF waits for a step that uses the VF's memory, and no other. A reset of the card waits for every step, and
/// resets the unit with it.
#[test]
fn resets_wait_for_every_unit() {
    let bench = Bench::new();
    assert!(bench.waits(|| bench.card.reset_function(VF1)));
    assert!(!bench.waits(|| bench.card.reset_function(VF2)), "waits for a step that does not use its memory");
    assert_eq!(bench.resets(), 0);
    assert!(bench.waits(|| bench.card.reset_card()));
    assert_eq!(bench.resets(), 1);
    assert!(bench.waits(|| bench.card.write_gttmmadr(Function::PF, 0x941c, &1_u32.to_le_bytes())));
    assert_eq!(bench.resets(), 2, "a reset of the whole GT");
    bench.card.write_gttmmadr(Function::PF, 0x941c, &(1_u32 << 1).to_le_bytes());
    assert_eq!(bench.resets(), 2, "a reset of one engine");
}

/// A step panics; another worker steps the unit before the panic is noticed. The recovery waits for that step.
#[test]
fn recovery_after_a_panic_waits_for_the_unit() {
    let bench = Bench::new();
    let Bench { card, probe, .. } = &bench;
    probe.plan(Next::Panic);
    thread::scope(|scope| {
        let panics = scope.spawn(|| {
            Gpu::work(&**card);
            probe.ended.load(Ordering::SeqCst)
        });
        until("the step has panicked", || probe.panicked.load(Ordering::SeqCst));
        let worker = scope.spawn(|| Gpu::work(&**card));
        until("the recovery waits or has ended", || panics.is_finished() || probe.lock.wanted());
        probe.may_end.store(true, Ordering::SeqCst);
        assert!(panics.join().unwrap(), "the unit was used while it recovered");
        worker.join().unwrap();
    });
    assert_eq!((card.panics(), probe.lock.lock().recoveries), (1, 1));
    assert!(!probe.lock.is_poisoned());
}

#[test]
fn saved_state_waits_for_every_unit() {
    let bench = Bench::new();
    let card = &bench.card;
    card.function_state(VF1).set_paused(true).unwrap();
    while card.step() == WorkStatus::Busy {}
    assert!(card.function_state(VF1).is_paused());
    let mut saved = None;
    assert!(bench.waits(|| saved = Some(card.function_state(VF1).save().unwrap())));
    assert!(bench.waits(|| card.function_state(VF1).restore(saved.as_ref().unwrap()).unwrap()));
}

/// A step of one function delays the others while a thread waits for the unit.
#[test]
fn a_thread_that_waits_for_a_unit_is_delayed() {
    let bench = Bench::new();
    assert!(!bench.card.delays_others(Function::PF));
    thread::scope(|scope| {
        let held = bench.probe.lock.lock();
        let waits = scope.spawn(|| Gpu::quiesce(&*bench.card));
        until("a thread waits", || bench.card.delays_others(Function::PF));
        drop(held);
        waits.join().unwrap();
    });
    assert!(!bench.card.delays_others(Function::PF));
}
