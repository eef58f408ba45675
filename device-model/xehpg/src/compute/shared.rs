// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What an engine shares with the clusters that help it to execute a walker (EU-072).
//!
//! # Who may do what
//! The engine alone begins and ends an offer, adds code to the program, and makes accesses that are messages to a function's client.
//! A cluster executes groups in its slot of the walker while an offer is open. It holds the lock of the slot meanwhile, for a
//! part of a step, and waits for nothing. So an engine that has ended its offer and has taken the lock of each slot once is
//! alone; what waits for steps of units waits for those of clusters, too.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

use arctic_eu::exec::payload::Payload;
use arctic_eu::exec::{Program, Workgroup};

use super::capture::CaptureJob;
use super::memory::CapturingMemory;
use super::report::{MOST_SAVED_BYTES, RunStop, saved_bytes};
use super::slot::{Accesses, Groups, Job, SavedInFlight, Slot, SlotStop};
use super::walker::Walker;
use crate::host::Function;
use crate::memory::{Gam, Memory, Space, Tlb};
use crate::topology::{CLUSTERS, UnitId};

/// Cost of a part of a cluster's work, in instructions: as that of an engine's step.
const PART_COST: u64 = 20_000;
/// Cost of reading and decoding code up to the next branch.
const DECODE_COST: u64 = 2_000;

/// The groups of a walker that are not begun.
pub(super) struct Remaining {
    pub group: Option<[u32; 3]>,
    /// Number of groups that were begun.
    pub begun: u64,
}

/// A slot of a cluster.
#[derive(Default)]
pub(super) struct Helper {
    /// `None` before its first group.
    pub slot: Option<Box<Slot>>,
    /// Its group goes on by the engine: code is missing, or an access has failed or is a message to a client.
    pub left_to_engine: bool,
    /// The cluster executes it now: so it does if the lock is poisoned.
    running: bool,
}

/// A walker in progress, as its engine and clusters execute it.
pub(super) struct SharedWalker {
    pub walker: Walker,
    pub payload: Payload,
    /// The translated kernel; `None` before the first step.
    program: RwLock<Option<Program>>,
    remaining: Mutex<Remaining>,
    helpers: [Mutex<Helper>; CLUSTERS],
    /// Number of clusters that may help, so that the groups in flight have room when they are parked.
    most_helpers: usize,
    /// The helpers that have a slot (one bit each).
    used: AtomicU32,
    /// See [`Job::profiled`].
    profiled: AtomicBool,
}

/// Takes groups from [`SharedWalker::remaining`].
pub(super) struct Taking<'w>(pub &'w SharedWalker);

impl Groups for Taking<'_> {
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "a walker has less than 2^96 groups, of which 2^64 are never begun"
    )]
    fn next(&mut self) -> Option<(u64, [u32; 3])> {
        let mut remaining = self.0.remaining();
        let group = remaining.group?;
        remaining.group = self.0.walker.after(group);
        remaining.begun += 1;
        Some((remaining.begun, group))
    }
}

impl SharedWalker {
    pub fn new(walker: Walker) -> SharedWalker {
        let Walker { dispatch, registers, slm, .. } = &walker;
        let group = saved_bytes(dispatch.threads as usize, *registers, *slm).max(1);
        let slots = (MOST_SAVED_BYTES / 4).checked_div(group).unwrap_or(0);
        SharedWalker {
            most_helpers: slots.saturating_sub(1).min(CLUSTERS),
            payload: Payload::new(walker.dispatch.clone()),
            program: RwLock::new(None),
            remaining: Mutex::new(Remaining { group: walker.first, begun: 0 }),
            helpers: [const { Mutex::new(Helper { slot: None, left_to_engine: false, running: false }) }; CLUSTERS],
            used: AtomicU32::new(0),
            profiled: AtomicBool::new(false),
            walker,
        }
    }

    pub fn job(&self, space: Space) -> Job<'_> {
        let profiled = self.profiled.load(Ordering::Relaxed);
        Job { walker: &self.walker, payload: &self.payload, space, profiled }
    }

    /// Counts instructions by class from the next part on, or no longer.
    pub fn set_profiled(&self, profiled: bool) {
        self.profiled.store(profiled, Ordering::Relaxed);
    }

    pub fn remaining(&self) -> MutexGuard<'_, Remaining> {
        self.remaining.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The slots of clusters that have one, each with its lock. Waits for a cluster that executes a part.
    pub fn helpers(&self) -> impl Iterator<Item = MutexGuard<'_, Helper>> {
        self.used_helpers().map(lock)
    }

    /// The helpers of clusters that have a slot.
    fn used_helpers(&self) -> impl Iterator<Item = &Mutex<Helper>> {
        let used = self.used.load(Ordering::Acquire);
        let helpers = (0..).zip(&self.helpers).filter(move |(index, _)| used.checked_shr(*index).unwrap_or(0) & 1 != 0);
        helpers.map(|(_, helper)| helper)
    }

    /// Returns whether a cluster has a slot.
    pub fn has_helpers(&self) -> bool {
        self.used.load(Ordering::Acquire) != 0
    }

    /// As [`SharedWalker::helpers`], without those that execute a part.
    pub fn helpers_at_rest(&self) -> impl Iterator<Item = MutexGuard<'_, Helper>> {
        self.used_helpers().filter_map(|helper| match helper.try_lock() {
            Ok(helper) => Some(checked(helper)),
            Err(TryLockError::Poisoned(helper)) => Some(checked(helper.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        })
    }

    /// Gives the cluster with this number a slot with a restored group.
    pub fn restore_helper(&self, number: usize, group: SavedInFlight) {
        let Some(helper) = self.helpers.get(number) else {
            debug_assert!(false, "the number was checked when the groups were read");
            return;
        };
        let mut slot = self.new_slot(number);
        slot.restore(group);
        lock(helper).slot = Some(slot);
    }

    /// A slot for the cluster with this number.
    fn new_slot(&self, number: usize) -> Box<Slot> {
        let index = u32::try_from(number).unwrap_or(u32::MAX);
        self.used.fetch_or(1_u32.checked_shl(index).unwrap_or(0), Ordering::AcqRel);
        let Walker { dispatch, registers, slm, .. } = &self.walker;
        let threads = Workgroup::new(dispatch.threads as usize, *registers, *slm);
        Box::new(Slot::new(index.saturating_add(1), threads, Box::default()))
    }

    /// The translated kernel.
    pub fn program(&self) -> RwLockReadGuard<'_, Option<Program>> {
        self.program.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`SharedWalker::program`], to change it. Waits for clusters that execute it.
    pub fn program_mut(&self) -> RwLockWriteGuard<'_, Option<Program>> {
        self.program.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Executes groups in a slot by the engine: with messages, and with code that is added to the program. All groups that `groups`
    /// gives have ended if it returns [`RunStop::Done`]. With `capture` what threads access is recorded.
    pub fn run_slot(
        &self,
        slot: &mut Slot,
        gam: &mut Gam<'_>,
        space: Space,
        groups: &mut impl Groups,
        left: &mut u64,
        mut capture: Option<&mut CaptureJob>,
    ) -> RunStop {
        loop {
            let address = {
                let program = self.program();
                debug_assert!(program.is_some(), "a walker has a program before its slots are executed");
                let Some(program) = &*program else { return RunStop::Done };
                let accesses = Accesses { messages: true, capture: capture.as_deref_mut() };
                match slot.run(self.job(space), program, gam, groups, accesses, left) {
                    SlotStop::Idle => return RunStop::Done,
                    SlotStop::Budget => return RunStop::Budget,
                    SlotStop::Message => return RunStop::Message,
                    SlotStop::Deadlock => return RunStop::Deadlock,
                    SlotStop::Fault(fault, place) => return RunStop::Fault(fault, place),
                    SlotStop::Fetch(address) => address,
                }
            };
            *left = left.saturating_sub(DECODE_COST);
            let mut program = self.program_mut();
            let Some(program) = &mut *program else { return RunStop::Done };
            let mut memory = slot.memory(gam, self.job(space));
            let extended = match capture.as_deref_mut() {
                None => program.extend(address, &mut memory),
                Some(job) => program.extend(address, &mut CapturingMemory::new(&mut memory, job)),
            };
            let (fault, messages) = (memory.take_fault(), memory.messages());
            if extended.is_err()
                && let Some(fault) = fault
            {
                return RunStop::Fault(fault, slot.place(&self.walker, program).map(Box::new));
            }
            if messages != 0 {
                return RunStop::Message;
            }
        }
    }
}

/// Takes the lock of a helper.
fn lock(helper: &Mutex<Helper>) -> MutexGuard<'_, Helper> {
    checked(helper.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A slot whose cluster has panicked loses its group.
fn checked(mut helper: MutexGuard<'_, Helper>) -> MutexGuard<'_, Helper> {
    if std::mem::take(&mut helper.running) {
        helper.slot = None;
    }
    helper
}

/// A walker whose groups clusters may execute.
pub(super) struct Offer {
    pub walker: Arc<SharedWalker>,
    function: Function,
    space: Space,
    /// Never used again.
    number: u64,
    open: AtomicBool,
}

/// An offer that is open until this is dropped.
pub(super) struct OpenOffer(Arc<Offer>);

/// Clusters execute nothing of the walker afterwards: waits for the parts that they execute now. The list of offers drops it with
/// the next one that is made or ended.
impl Drop for OpenOffer {
    fn drop(&mut self) {
        self.0.open.store(false, Ordering::Release);
        self.0.walker.helpers().for_each(drop);
    }
}

impl Offer {
    fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire)
    }
}

/// The walkers of a card whose groups clusters may execute. Its lock is held for no other one.
#[derive(Default)]
pub struct Offers {
    open: Mutex<Vec<Arc<Offer>>>,
    /// Length of `open`.
    count: AtomicU32,
    /// Number of offers so far.
    number: AtomicU64,
    /// An offer was made that workers do not know of.
    news: AtomicBool,
}

impl Offers {
    fn list(&self) -> MutexGuard<'_, Vec<Arc<Offer>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Offers the groups of a walker in the address space of a function's process.
    pub(super) fn make(&self, walker: Arc<SharedWalker>, function: Function, space: Space) -> OpenOffer {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let offer = Arc::new(Offer { walker, function, space, number, open: AtomicBool::new(true) });
        let mut list = self.list();
        list.retain(|other| other.is_open());
        list.push(offer.clone());
        self.count.store(u32::try_from(list.len()).unwrap_or(u32::MAX), Ordering::Release);
        self.news.store(true, Ordering::Release);
        OpenOffer(offer)
    }

    /// Ends an offer: as its drop does.
    pub(super) fn end(&self, offer: OpenOffer) {
        drop(offer);
        let mut list = self.list();
        list.retain(|other| other.is_open());
        self.count.store(u32::try_from(list.len()).unwrap_or(u32::MAX), Ordering::Release);
    }

    /// Returns whether an offer was made since the last call.
    pub fn take_news(&self) -> bool {
        self.news.load(Ordering::Relaxed) && self.news.swap(false, Ordering::AcqRel)
    }

    fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }
}

/// Result of [`ClusterState::help`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Help {
    /// There is nothing to do.
    Nothing,
    /// There may be something to do soon.
    Soon,
    /// A part was executed.
    Executed,
}

/// What a cluster keeps from part to part.
#[derive(Default)]
pub struct ClusterState {
    tlb: Tlb,
    /// Offer of the last part.
    offer: Option<u64>,
    traffic: [u64; 2],
}

impl ClusterState {
    /// Takes the bytes of local memory read and written since the last call.
    pub fn take_traffic(&mut self) -> [u64; 2] {
        std::mem::take(&mut self.traffic)
    }

    /// Executes a part of a walker that is offered, as the cluster with this number.
    pub fn help(&mut self, offers: &Offers, memory: &Memory, number: usize, unit: UnitId) -> Help {
        if offers.is_empty() {
            return Help::Nothing;
        }
        let offers = offers.list().clone();
        let helps = offers.iter().map(|offer| self.execute(offer, memory, number, unit));
        let mut best = Help::Nothing;
        for help in helps {
            match help {
                Help::Executed => return Help::Executed,
                Help::Soon => best = Help::Soon,
                Help::Nothing => {}
            }
        }
        best
    }

    fn execute(&mut self, offer: &Offer, memory: &Memory, number: usize, unit: UnitId) -> Help {
        let shared = &*offer.walker;
        let Some(helper) = shared.helpers.get(number).filter(|_| number < shared.most_helpers) else {
            return Help::Nothing;
        };
        let mut helper = match helper.try_lock() {
            Ok(helper) => helper,
            Err(TryLockError::WouldBlock) => return Help::Soon,
            // The cluster has panicked in this walker.
            Err(TryLockError::Poisoned(_)) => return Help::Nothing,
        };
        if !offer.is_open() || helper.left_to_engine {
            return Help::Nothing;
        }
        let in_flight = helper.slot.as_ref().is_some_and(|slot| slot.flight.is_some());
        if !in_flight && shared.remaining().group.is_none() {
            return Help::Nothing;
        }
        // While the engine adds code.
        let Ok(program) = shared.program.try_read() else { return Help::Soon };
        let Some(program) = &*program else { return Help::Nothing };
        if self.offer.replace(offer.number) != Some(offer.number) {
            // As an engine does when it loads a context.
            self.tlb.flush();
        }
        helper.running = true;
        let slot = helper.slot.get_or_insert_with(|| shared.new_slot(number));
        let views = memory.step_views(unit);
        let mut gam = memory.gam(offer.function, &views, &mut self.tlb);
        let mut left = PART_COST;
        let accesses = Accesses { messages: false, capture: None };
        let stop = slot.run(shared.job(offer.space), program, &mut gam, &mut Taking(shared), accesses, &mut left);
        helper.running = false;
        self.traffic = gam.take_traffic();
        helper.left_to_engine = match stop {
            SlotStop::Idle | SlotStop::Budget => false,
            SlotStop::Message | SlotStop::Deadlock | SlotStop::Fetch(_) | SlotStop::Fault(..) => true,
        };
        Help::Executed
    }
}
