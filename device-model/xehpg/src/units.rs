// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The units that workers step, as other threads see them: by their locks, of which a step holds its unit's.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

use std::sync::Arc;

use arctic_base::priority_mutex::PriorityMutex;

use crate::gt::Gt;
use crate::host::Function;
use crate::memory::Memory;
use crate::topology::UnitId;

/// Attempts to lock a unit for which a caller must not wait without a limit. Each takes about a microsecond.
const SOON: u32 = 4096;

/// The lock that a unit's steps hold, whatever it protects.
pub trait StepLock: Send + Sync {
    /// Blocks until the step in progress, if any, has ended. The caller acts for `waiting`, or for the card. Must not be
    /// called with the lock held: deadlock.
    fn end_step(&self, waiting: Option<Function>);

    /// As [`StepLock::end_step`], but gives up after milliseconds. Returns whether the step has ended.
    fn end_step_soon(&self) -> bool;

    /// Returns whether a thread waits for the lock that may act for another function than `function`. Does not block.
    fn delays_others(&self, function: Function) -> bool;

    /// Returns whether a step has panicked, and the unit has not recovered since.
    fn is_poisoned(&self) -> bool;
}

impl<T: Send> StepLock for PriorityMutex<T> {
    fn end_step(&self, _: Option<Function>) {
        drop(self.lock());
    }

    fn end_step_soon(&self) -> bool {
        self.lock_soon(SOON).is_some()
    }

    fn delays_others(&self, _: Function) -> bool {
        self.wanted()
    }

    fn is_poisoned(&self) -> bool {
        PriorityMutex::is_poisoned(self)
    }
}

/// A unit that workers step. Each step is bounded and holds the unit's lock. A step that accesses memory has
/// [`Memory::step_views`] of the unit's identity meanwhile.
pub trait Unit: Send + Sync {
    /// The unit's identity. No two units of a card have the same.
    fn id(&self) -> UnitId;

    /// The lock that a step holds. `None` for a unit without state and accesses to memory of its own: what its steps do is
    /// done with the locks of other units.
    fn lock(&self) -> Option<&dyn StepLock>;

    /// Locks the unit: it executes no step until the returned value is dropped. Workers yield instead of sleeping
    /// meanwhile. `None` if the unit has no lock.
    fn hold(&self) -> Option<Box<dyn HeldUnit + '_>>;
}

/// A unit that executes no step until this is dropped.
pub trait HeldUnit {
    /// Resets the unit with the whole card. Its work is lost.
    fn reset(&mut self, gt: &Gt);
}

/// The units below the GuC in the lock order, for whose steps the GuC waits: the engines and all further units, in lock
/// order.
#[derive(Clone)]
pub struct Units(Arc<[Arc<dyn Unit>]>);

impl Units {
    /// Creates the list of these units.
    pub fn new(units: impl Iterator<Item = Arc<dyn Unit>>) -> Self {
        Units(units.collect())
    }

    /// The units.
    pub fn iter(&self) -> impl Iterator<Item = &dyn Unit> {
        self.0.iter().map(|unit| &**unit)
    }

    /// Blocks until every unit whose current step uses memory of `functions` (one bit each) has passed a step boundary.
    /// Translations and guest mappings of these functions that were changed before the call, and invalidated in the TLBs,
    /// are then no longer in use.
    pub fn end_steps_of(&self, functions: u64, memory: &Memory) {
        for unit in self.iter().filter(|unit| memory.used_by(unit.id(), functions)) {
            unit.lock().into_iter().for_each(|lock| lock.end_step(None));
        }
    }

    /// Locks all units. None executes a step until the returned values are dropped. Must not be called with the lock of a
    /// unit held: deadlock. No other code path holds the locks of two units at a time.
    pub fn hold(&self) -> Vec<Box<dyn HeldUnit + '_>> {
        self.iter().filter_map(Unit::hold).collect()
    }

    /// Runs `work` while no unit executes a step, for changes that must be atomic with respect to steps.
    pub fn while_stopped<T>(&self, work: impl FnOnce() -> T) -> T {
        let _held = self.hold();
        work()
    }
}
