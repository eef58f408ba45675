// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Runnable queue of an engine class: dispatches contexts to instances and selects contexts to preempt (contract F.2).
#![allow(clippy::indexing_slicing, reason = "positions are below MAX_LOGICAL, and `push` limits the priority")]

use std::collections::VecDeque;

use arctic_sriov::number::byte;

use crate::guc::functions::engine_map::MAX_LOGICAL;

/// Number of priorities, 0 = highest (xe: GUC_CLIENT_PRIORITY_NUM).
pub const PRIORITIES: u8 = 4;

/// Minimum interval between checks of engine time, in nanoseconds. Engine time advances only at step boundaries.
const POLL_INTERVAL: u64 = 100_000;

/// A context that is ready to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The context, by its function's own id.
    pub context: u16,
    /// Logical instances on which its first member may run, one bit each.
    pub mask: u8,
    /// Number of members, which need adjacent instances at the same time.
    pub width: u8,
    /// Time (ns of the card's clock) until which the context may use only free instances, because it waited for a
    /// memory change.
    pub eligible_at: u64,
}

/// State of an instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InstanceState {
    /// The instance does not exist.
    #[default]
    Absent,
    /// No context runs on it.
    Free,
    /// Preemption of its context has been requested.
    Leaving,
    /// A context runs on it.
    Busy {
        /// Priority of the context.
        priority: u8,
        /// Remaining time slice, in ns of engine time; `None` if unlimited.
        slice_left: Option<u64>,
        /// The context waits for a memory change.
        waiting: bool,
    },
}

/// All instances of a class.
pub type Instances = [InstanceState; MAX_LOGICAL];

/// Scheduling decisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    loads: [Option<(Entry, u8)>; MAX_LOGICAL],
    /// Instances to vacate, one bit each.
    pub leave: u8,
    /// Time by which the next plan is needed, in ns of the card's clock.
    pub deadline: Option<u64>,
}

impl Schedule {
    /// Returns the contexts to load, each with its first instance.
    pub fn loads(&self) -> impl Iterator<Item = (Entry, usize)> {
        self.loads.iter().flatten().map(|(entry, base)| (*entry, usize::from(*base)))
    }

    fn note(&mut self, deadline: u64) {
        self.deadline = Some(self.deadline.map_or(deadline, |d| d.min(deadline)));
    }
}

/// Queue of one class and function.
#[derive(Debug, Default)]
pub struct Queue {
    ready: [VecDeque<Entry>; PRIORITIES as usize],
    /// Contexts, with their priority, that may not preempt others yet or have not been found eligible yet; ordered by
    /// [`Entry::eligible_at`].
    resting: VecDeque<(u8, Entry)>,
    /// Number of ready contexts that could use each instance.
    reach: [u32; MAX_LOGICAL],
    /// Number of parallel contexts (with more than one member).
    wide: u32,
}

impl Queue {
    /// Adds a context behind all contexts that become eligible at the same time or earlier.
    #[allow(clippy::arithmetic_side_effects, reason = "a function has fewer than 2^16 contexts")]
    pub fn push(&mut self, priority: u8, entry: Entry) {
        let priority = priority.min(PRIORITIES - 1);
        self.wide += u32::from(entry.width > 1);
        let behind = self.resting.partition_point(|(_, other)| other.eligible_at <= entry.eligible_at);
        self.resting.insert(behind, (priority, entry));
    }

    /// Removes a context and returns its entry.
    #[allow(clippy::arithmetic_side_effects, reason = "`wake` and `push` have counted the context")]
    pub fn remove(&mut self, context: u16) -> Option<Entry> {
        let is = |entry: &Entry| entry.context == context;
        let ready = self.ready.iter_mut().find_map(|queue| queue.remove(queue.iter().position(is)?));
        let entry = match ready {
            Some(entry) => {
                self.count(&entry, |n| n - 1);
                entry
            }
            None => {
                let at = self.resting.iter().position(|(_, entry)| is(entry))?;
                self.resting.remove(at)?.1
            }
        };
        self.wide -= u32::from(entry.width > 1);
        Some(entry)
    }

    /// Number of contexts that are queued.
    pub fn len(&self) -> usize {
        self.ready.iter().map(VecDeque::len).fold(self.resting.len(), usize::saturating_add)
    }

    /// Returns whether no context is queued.
    pub fn is_empty(&self) -> bool {
        self.resting.is_empty() && self.ready.iter().all(VecDeque::is_empty)
    }

    /// Returns whether a parallel context is queued.
    pub fn has_wide(&self) -> bool {
        self.wide != 0
    }

    /// Returns the instances (one bit each) usable by queued contexts that may preempt others at time `now`.
    pub fn reach(&mut self, now: u64) -> u8 {
        self.wake(now);
        (0..MAX_LOGICAL).filter(|at| self.reach[*at] != 0).fold(0, |mask, at| mask | 1 << at)
    }

    /// Returns the time at which the next context may preempt others. Contexts already found eligible are not
    /// considered.
    pub fn wakes_at(&self) -> Option<u64> {
        self.resting.front().map(|(_, entry)| entry.eligible_at)
    }

    #[allow(clippy::arithmetic_side_effects, reason = "a function has fewer than 2^16 contexts")]
    fn wake(&mut self, now: u64) {
        while self.wakes_at().is_some_and(|at| at <= now)
            && let Some((priority, entry)) = self.resting.pop_front()
        {
            self.count(&entry, |n| n + 1);
            self.ready[usize::from(priority)].push_back(entry);
        }
    }

    fn count(&mut self, entry: &Entry, change: impl Fn(u32) -> u32) {
        let first = u32::from(entry.mask);
        let used = (0..u32::from(entry.width)).fold(0, |set, member| set | first << member);
        for (_, count) in (0..).zip(&mut self.reach).filter(|(at, _)| used >> at & 1 != 0) {
            *count = change(*count);
        }
    }

    fn by_importance(&self) -> impl Iterator<Item = (u8, &Entry)> {
        (0u8..).zip(&self.ready).flat_map(|(priority, queue)| queue.iter().map(move |entry| (priority, entry)))
    }

    /// Plans the dispatch to the instances `places` at time `now` of the card's clock. Removes the contexts to load
    /// from the queue.
    #[allow(clippy::arithmetic_side_effects, reason = "each load claims an instance of its own")]
    pub fn plan(&mut self, places: &[InstanceState; MAX_LOGICAL], now: u64) -> Schedule {
        self.wake(now);
        let mut plan = Schedule::default();
        let mut claims = Reservation { places, claimed: absent(places) };
        let mut loads = 0;
        for (priority, entry) in self.by_importance() {
            if claims.claimed == u8::MAX {
                break;
            }
            if entry.mask & !claims.claimed == 0 {
                continue;
            }
            if let Some(base) = claims.free(entry) {
                plan.loads[loads] = Some((*entry, base));
                loads += 1;
            } else {
                plan.leave |= claims.vacate(priority, entry);
            }
        }
        for (_, entry) in &self.resting {
            if let Some(base) = claims.free(entry) {
                plan.loads[loads] = Some((*entry, base));
                loads += 1;
            } else {
                plan.note(entry.eligible_at);
            }
            if claims.claimed == u8::MAX {
                plan.note(entry.eligible_at);
                break;
            }
        }
        for (entry, _) in plan.loads.iter().flatten() {
            self.remove(entry.context);
        }
        if !self.is_empty() {
            for place in places {
                if let InstanceState::Busy { slice_left: Some(left), .. } = place
                    && *left > 0
                {
                    plan.note(not_before(now, *left));
                }
            }
        }
        plan
    }
}

fn absent(places: &[InstanceState; MAX_LOGICAL]) -> u8 {
    (0..MAX_LOGICAL).filter(|at| places[*at] == InstanceState::Absent).fold(0, |mask, at| mask | 1 << at)
}

/// Returns the earliest time by which `left` ns of engine time can have elapsed; engine time is not faster than the
/// card's clock. An engine in a step may already have used this time, so the result is at least `POLL_INTERVAL` later than
/// `now`.
pub fn not_before(now: u64, left: u64) -> u64 {
    now.saturating_add(left.max(POLL_INTERVAL))
}

struct Reservation<'p> {
    places: &'p [InstanceState; MAX_LOGICAL],
    claimed: u8,
}

impl Reservation<'_> {
    /// Returns the sets of unclaimed instances that the entry could use, as (first instance, mask).
    #[allow(clippy::arithmetic_side_effects, reason = "the width is at most MAX_LOGICAL, and the base below it")]
    fn candidates(&self, entry: &Entry) -> impl Iterator<Item = (u8, u8)> + use<> {
        let claimed = self.claimed;
        let (mask, width) = (entry.mask, usize::from(entry.width));
        (0..MAX_LOGICAL).filter_map(move |base| {
            let set = u8::try_from(((1u32 << width) - 1) << base).ok()?;
            (mask >> base & 1 != 0 && set & claimed == 0).then_some((byte(base), set))
        })
    }

    fn members(&self, set: u8) -> impl Iterator<Item = InstanceState> {
        (0..MAX_LOGICAL).filter(move |at| set >> at & 1 != 0).map(|at| self.places[at])
    }

    fn free(&mut self, entry: &Entry) -> Option<u8> {
        let (base, set) =
            self.candidates(entry).find(|(_, set)| self.members(*set).all(|p| p == InstanceState::Free))?;
        self.claimed |= set;
        Some(base)
    }

    /// Returns whether a context of `priority` may preempt `place` now; `Err` if it never may.
    fn may_push(&self, place: InstanceState, priority: u8) -> Result<bool, ()> {
        match place {
            InstanceState::Absent => Err(()),
            InstanceState::Free | InstanceState::Leaving => Ok(true),
            InstanceState::Busy { waiting: true, .. } => Ok(true),
            InstanceState::Busy { priority: other, slice_left, .. } => match other.cmp(&priority) {
                std::cmp::Ordering::Greater => Ok(true),
                std::cmp::Ordering::Equal => Ok(slice_left == Some(0)),
                std::cmp::Ordering::Less => Err(()),
            },
        }
    }

    /// Claims instances for an entry that cannot be placed on free instances. Returns the instances to vacate. For a
    /// parallel context, instances stay claimed even if some of them are not available yet, so that contexts with one
    /// member do not starve it.
    fn vacate(&mut self, priority: u8, entry: &Entry) -> u8 {
        let least = |set: u8| {
            self.members(set)
                .map(|place| match place {
                    InstanceState::Leaving => u8::MAX,
                    InstanceState::Busy { waiting: true, .. } => u8::MAX - 1,
                    InstanceState::Busy { priority, .. } => priority,
                    InstanceState::Free | InstanceState::Absent => u8::MAX,
                })
                .min()
        };
        let ready = self
            .candidates(entry)
            .filter(|(_, set)| self.members(*set).all(|place| self.may_push(place, priority) == Ok(true)))
            .max_by_key(|(base, set)| (least(*set), std::cmp::Reverse(*base)));
        if let Some((_, set)) = ready {
            self.claimed |= set;
            return self.busy(set);
        }
        if entry.width > 1
            && let Some((_, set)) = self
                .candidates(entry)
                .find(|(_, set)| self.members(*set).all(|place| self.may_push(place, priority).is_ok()))
        {
            self.claimed |= set;
        }
        0
    }

    fn busy(&self, set: u8) -> u8 {
        (0..MAX_LOGICAL)
            .filter(|at| set >> at & 1 != 0 && matches!(self.places[*at], InstanceState::Busy { .. }))
            .fold(0, |mask, at| mask | 1 << at)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

    use super::*;

    fn entry(context: u16, mask: u8, width: u8) -> Entry {
        Entry { context, mask, width, eligible_at: 0 }
    }

    fn busy(priority: u8, slice_left: u64) -> InstanceState {
        InstanceState::Busy { priority, slice_left: Some(slice_left), waiting: false }
    }

    fn places(list: &[InstanceState]) -> [InstanceState; MAX_LOGICAL] {
        std::array::from_fn(|at| list.get(at).copied().unwrap_or_default())
    }

    fn loads(plan: &Schedule) -> Vec<(u16, usize)> {
        plan.loads().map(|(entry, base)| (entry.context, base)).collect()
    }

    /// Contract F.2: contexts are placed in order of priority, as their masks permit, and each only once.
    #[test]
    fn free_instances_go_to_the_most_important() {
        let mut queue = Queue::default();
        queue.push(3, entry(1, 0b11, 1));
        queue.push(0, entry(2, 0b10, 1));
        queue.push(2, entry(3, 0b11, 1));
        let plan = queue.plan(&places(&[InstanceState::Free, InstanceState::Free]), 0);
        assert_eq!((loads(&plan), plan.leave), (vec![(2, 1), (3, 0)], 0));
        assert_eq!(queue.remove(1), Some(entry(1, 0b11, 1)));
        assert!(queue.is_empty());
    }

    /// Contract F.2: a context preempts the one with the lowest priority; one of equal priority waits for the end of
    /// the time slice.
    #[test]
    fn preemption_and_slices() {
        let mut queue = Queue::default();
        queue.push(1, entry(1, 0b11, 1));
        let now = 10;
        let plan = queue.plan(&places(&[busy(2, 50), busy(3, 50)]), now);
        assert_eq!((loads(&plan), plan.leave), (vec![], 0b10));
        let plan = queue.plan(&places(&[busy(2, 50), InstanceState::Leaving]), now);
        assert_eq!(plan.leave, 0, "one leaving context is enough");
        let plan = queue.plan(&places(&[busy(1, 500_000), busy(0, 0)]), now);
        assert_eq!((plan.leave, plan.deadline), (0, Some(500_010)));
        let plan = queue.plan(&places(&[busy(1, 1), busy(0, 0)]), now);
        assert_eq!((plan.leave, plan.deadline), (0, Some(100_010)), "not immediately: the engine is in a step");
        let plan = queue.plan(&places(&[busy(1, 0), busy(0, 0)]), now);
        assert_eq!(plan.leave, 0b01);
    }

    /// A context that waits for a semaphore yields to any other context. Afterwards, it does not preempt others
    /// immediately.
    #[test]
    fn waiting_contexts_yield() {
        let mut queue = Queue::default();
        queue.push(3, entry(1, 1, 1));
        let waiter = InstanceState::Busy { priority: 0, slice_left: Some(1000), waiting: true };
        assert_eq!(queue.plan(&places(&[waiter]), 0).leave, 1);
        let mut queue = Queue::default();
        queue.push(0, Entry { eligible_at: 70, ..entry(1, 1, 1) });
        let plan = queue.plan(&places(&[busy(3, 0)]), 10);
        assert_eq!((plan.leave, plan.deadline), (0, Some(70)), "by the card's clock");
        assert_eq!(loads(&queue.plan(&places(&[InstanceState::Free]), 10)), [(1, 0)]);
    }

    /// Contract F.5: members get adjacent instances at the same time; a parallel context is not starved.
    #[test]
    fn wide_contexts() {
        let mut queue = Queue::default();
        queue.push(2, entry(1, 0b01, 2));
        queue.push(2, entry(2, 0b10, 1));
        let plan = queue.plan(&places(&[busy(2, 50), InstanceState::Free]), 10);
        assert_eq!((loads(&plan), plan.leave), (vec![], 0), "the free instance is kept for the wide context");
        let plan = queue.plan(&places(&[busy(2, 0), InstanceState::Free]), 60);
        assert_eq!(plan.leave, 0b01);
        assert_eq!(loads(&queue.plan(&places(&[InstanceState::Free, InstanceState::Free]), 60)), [(1, 0)]);
    }

    use proptest::prelude::*;

    fn any_place() -> impl Strategy<Value = InstanceState> {
        prop_oneof![
            Just(InstanceState::Absent),
            Just(InstanceState::Free),
            Just(InstanceState::Leaving),
            (0u8..4, prop::option::of(prop_oneof![Just(0), 1u64..100]), any::<bool>())
                .prop_map(|(priority, slice_left, waiting)| InstanceState::Busy { priority, slice_left, waiting }),
        ]
    }

    proptest! {
        /// Only free instances are assigned, each once and only if the mask permits it. Preemption is never requested
        /// on an absent instance, or of a running context with a higher priority. No context is lost.
        #[test]
        fn plans_assign_free_permitted_instances_once(
            places in prop::array::uniform8(any_place()),
            entries in prop::collection::vec((0u8..4, any::<u8>(), 1u8..4, 0u64..100), 0..12),
            now in 0u64..100,
        ) {
            let mut queue = Queue::default();
            for (id, (priority, mask, width, eligible_at)) in (0u16..).zip(&entries) {
                queue.push(*priority, Entry { context: id, mask: *mask, width: *width, eligible_at: *eligible_at });
            }
            let plan = queue.plan(&places, now);
            let mut taken = 0u8;
            for (entry, base) in plan.loads() {
                prop_assert!(entry.mask >> base & 1 != 0);
                for (at, place) in places.iter().enumerate().skip(base).take(usize::from(entry.width)) {
                    prop_assert_eq!(*place, InstanceState::Free);
                    prop_assert_eq!(taken >> at & 1, 0);
                    taken |= 1 << at;
                }
                prop_assert!(queue.remove(entry.context).is_none());
            }
            let left = (0..entries.len() as u16).filter(|id| queue.remove(*id).is_some()).count();
            prop_assert_eq!(left + plan.loads().count(), entries.len());
            let most = entries.iter().map(|entry| entry.0).min();
            for at in (0..MAX_LOGICAL).filter(|at| plan.leave >> at & 1 != 0) {
                let InstanceState::Busy { priority, slice_left, waiting } = places[at] else {
                    return Err(TestCaseError::fail("preemption requested on an instance without a context"));
                };
                let most = most.expect("a queued context needs the instance");
                prop_assert!(waiting || priority > most || priority == most && slice_left == Some(0));
            }
            prop_assert!(plan.deadline.is_none_or(|deadline| deadline > now));
        }
    }
}
