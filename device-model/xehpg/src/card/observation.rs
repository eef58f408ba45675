// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The observation unit, as a unit that workers step: it writes reports.

use std::sync::Arc;

use arctic_base::priority_mutex::PriorityGuard;

use super::Card;
use crate::gt::Gt;
use crate::host::Function;
use crate::oa::Observation;
use crate::oa::writer::Writer;
use crate::topology::UnitId;
use crate::units::{HeldUnit, StepLock, Unit};

/// The unit.
pub(super) struct ObservationUnit(pub(super) Arc<Observation>);

impl Unit for ObservationUnit {
    fn id(&self) -> UnitId {
        UnitId::Observation
    }

    fn lock(&self) -> Option<&dyn StepLock> {
        Some(&self.0.writer)
    }

    fn hold(&self) -> Option<Box<dyn HeldUnit + '_>> {
        Some(Box::new(HeldObservation(self.0.writer.hold())))
    }
}

struct HeldObservation<'o>(PriorityGuard<'o, Writer>);

impl HeldUnit for HeldObservation<'_> {
    fn reset(&mut self, gt: &Gt) {
        *self.0 = Writer::default();
        gt.reset_observation();
    }
}

impl ObservationUnit {
    /// Makes the unit valid after a panic of a step. The driver finds OAG disabled.
    pub(super) fn recover(&self, gt: &Gt) {
        if let Some(mut unit) = self.hold() {
            unit.reset(gt);
        }
        self.0.writer.clear_poison();
    }
}

impl Card {
    /// Writes what is due after a write of a register of observation. A worker does it where an access to the PF's memory may be a
    /// message to the client that waits for this access.
    pub(super) fn write_reports(&self) {
        if !self.gt.memory.may_wait_for_client(Function::PF) {
            self.gt.write_reports_of_access();
        }
        self.gt.observation.step_by(self.gt.clock.now());
        self.wake_workers();
    }
}
