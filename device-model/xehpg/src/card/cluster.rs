// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Clusters of execution units, as units that workers step: they execute groups of walkers beside the engines, on workers that have
//! nothing else to do.

use arctic_base::priority_mutex::{PriorityGuard, PriorityMutex};

use crate::compute::{ClusterState, Help};
use crate::gt::Gt;
use crate::topology::{CLUSTERS, UnitId};
use crate::units::{HeldUnit, StepLock, Unit};

/// A cluster.
pub(super) struct Cluster {
    number: u8,
    state: PriorityMutex<ClusterState>,
}

impl Cluster {
    /// Executes a part of a walker that is offered. Returns whether there may be more to do.
    pub(super) fn help(&self, gt: &Gt) -> bool {
        let Some(mut state) = self.state.try_lock() else { return false };
        let help = state.help(&gt.offers, &gt.memory, usize::from(self.number), self.id());
        gt.count_memory_traffic(state.take_traffic());
        help != Help::Nothing
    }

    /// Makes the state valid after a panic of a step. The engine ends the group of its slot.
    pub(super) fn recover(&self) {
        *self.state.hold() = ClusterState::default();
        self.state.clear_poison();
    }

    /// The clusters of a card.
    pub(super) fn all() -> impl Iterator<Item = Cluster> {
        (0..).take(CLUSTERS).map(|number| Cluster { number, state: PriorityMutex::new(ClusterState::default()) })
    }
}

impl Unit for Cluster {
    fn id(&self) -> UnitId {
        UnitId::Cluster(self.number)
    }

    fn lock(&self) -> Option<&dyn StepLock> {
        Some(&self.state)
    }

    fn hold(&self) -> Option<Box<dyn HeldUnit + '_>> {
        Some(Box::new(HeldCluster(self.state.hold())))
    }
}

struct HeldCluster<'c>(PriorityGuard<'c, ClusterState>);

impl HeldUnit for HeldCluster<'_> {
    /// Its work is the engines'.
    fn reset(&mut self, _: &Gt) {
        *self.0 = ClusterState::default();
    }
}
