// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The list of the units that workers step. A worker steps them in this order, which is also the order of their locks;
//! whatever waits for steps, stops them or recovers from a panic in one goes over this list, or over the part of it below
//! the GuC ([`Units`](crate::units::Units)).

use std::sync::Arc;

use super::cluster::Cluster;
use super::deferred::Deferred;
use super::locks::GucUnit;
use super::observation::ObservationUnit;
use super::{Card, Halt, Outcome};
use crate::engine::{EngineUnit, Engines};
use crate::guc::Guc;
use crate::oa::Observation;
use crate::topology::UnitId;
use crate::units::{HeldUnit, StepLock, Unit, Units};

/// Result of a step.
pub(crate) struct Stepped {
    /// Some work was executed. More may be pending.
    pub(crate) worked: bool,
    /// When the unit is next due, in ns of the card's clock; `u64::MAX` if at no known time.
    pub(crate) next: u64,
}

impl Default for Stepped {
    fn default() -> Self {
        Stepped { worked: false, next: u64::MAX }
    }
}

/// A unit that the card's workers step.
pub(crate) trait SteppedUnit: Unit {
    /// Executes a bounded amount of the unit's pending work, unless another thread executes a step. `now` is the time at
    /// which the worker's round began, in ns of the card's clock. Called without locks held.
    fn step(&self, card: &Card, now: u64) -> Stepped;

    /// Returns whether the unit only does what other units leave to it: it is stepped by workers that have nothing else to do.
    fn helps(&self) -> bool {
        false
    }

    /// Called after a panic of a step that held the unit's lock, without locks held: waits for the lock, makes the unit's
    /// state valid, and ends the lock's poisoning. Other workers may step the unit before.
    fn recover(&self, card: &Card);
}

/// The units of a card. The list is made here and nowhere else.
pub(super) struct CardUnits {
    pub(super) guc: Arc<GucUnit>,
    pub(super) deferred: Arc<Deferred>,
    pub(super) all: Box<[Arc<dyn SteppedUnit>]>,
}

impl CardUnits {
    /// Creates the units of a card with these engines, and with the units `further` below them in the lock order.
    pub(super) fn new(engines: &Engines, observation: &Arc<Observation>, further: Vec<Arc<dyn SteppedUnit>>) -> Self {
        let clusters = Cluster::all().map(|cluster| Arc::new(cluster) as _);
        // Below the engines: an engine's step may wait for a step of this unit.
        let observation = std::iter::once(Arc::new(ObservationUnit(observation.clone())) as _);
        let engines = engines.units().map(|engine| engine as _);
        let below_guc: Vec<_> = engines.chain(observation).chain(further).chain(clusters).collect();
        let units = Units::new(below_guc.iter().map(|unit: &Arc<dyn SteppedUnit>| unit.clone() as Arc<dyn Unit>));
        let number_of = |unit: UnitId| units.iter().filter(|other| other.id().index() == unit.index()).count();
        debug_assert!(units.iter().all(|unit| number_of(unit.id()) == 1), "two units have the same identity");
        let guc = Arc::new(GucUnit::new(Guc::new(units)));
        let deferred = Arc::new(Deferred::new());
        let first: [Arc<dyn SteppedUnit>; 2] = [deferred.clone(), guc.clone()];
        let last: [Arc<dyn SteppedUnit>; 1] = [Arc::new(UnusedMemory)];
        CardUnits { guc, deferred, all: first.into_iter().chain(below_guc).chain(last).collect() }
    }
}

impl SteppedUnit for GucUnit {
    fn step(&self, card: &Card, now: u64) -> Stepped {
        card.step_guc(now)
    }

    /// The driver finds the GuC in reset.
    fn recover(&self, card: &Card) {
        self.hold().into_iter().for_each(|mut guc| guc.reset(&card.gt));
        self.clear_poison();
    }
}

impl SteppedUnit for EngineUnit {
    fn step(&self, card: &Card, now: u64) -> Stepped {
        card.step_engine(self.engine(), now)
    }

    /// The lost context is reported to the scheduler.
    fn recover(&self, card: &Card) {
        if let Some(load) = card.engines.abandon(self.engine(), &card.gt) {
            card.report_outcome(self.engine(), load, Outcome::Halted(Halt::Bug), None);
        }
    }
}

impl SteppedUnit for Cluster {
    fn step(&self, card: &Card, _: u64) -> Stepped {
        Stepped { worked: self.help(&card.gt), ..Stepped::default() }
    }

    fn helps(&self) -> bool {
        true
    }

    fn recover(&self, _: &Card) {
        self.recover();
    }
}

impl SteppedUnit for ObservationUnit {
    fn step(&self, card: &Card, now: u64) -> Stepped {
        let (worked, next) = card.gt.step_observation(now);
        Stepped { worked, next }
    }

    fn recover(&self, card: &Card) {
        self.recover(&card.gt);
    }
}

/// The execution of deferred register writes, each with the locks of the units that it concerns.
impl Unit for Deferred {
    fn id(&self) -> UnitId {
        UnitId::DeferredWrites
    }

    fn lock(&self) -> Option<&dyn StepLock> {
        None
    }

    fn hold(&self) -> Option<Box<dyn HeldUnit + '_>> {
        None
    }
}

impl SteppedUnit for Deferred {
    fn step(&self, card: &Card, _: u64) -> Stepped {
        Stepped { worked: card.carry_out_deferred(), ..Stepped::default() }
    }

    fn recover(&self, _: &Card) {}
}

/// The return of unused memory to the host, by a worker or the scrubber thread. No guest memory is accessed.
struct UnusedMemory;

impl Unit for UnusedMemory {
    fn id(&self) -> UnitId {
        UnitId::UnusedMemory
    }

    fn lock(&self) -> Option<&dyn StepLock> {
        None
    }

    fn hold(&self) -> Option<Box<dyn HeldUnit + '_>> {
        None
    }
}

impl SteppedUnit for UnusedMemory {
    fn step(&self, card: &Card, _: u64) -> Stepped {
        card.tidy_memory()
    }

    fn recover(&self, _: &Card) {}
}
