// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Accumulated time in a state: of the GT in RC6 (G67-040), of an engine that is busy.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

use crate::sync::{IgnorePoison, Mutex};

/// The counter, which is also its saved state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// When the state began in ns, while it lasts.
    since: Option<u64>,
    /// Time in the state before that, in ns.
    before: u64,
}

impl Spent {
    /// The counter of a state that has lasted since this time, if it does, and for some time before.
    pub fn of(since: Option<u64>, before: u64) -> Self {
        Spent { since, before }
    }

    /// Its parts, as for [`Spent::of`].
    pub fn parts(&self) -> (Option<u64>, u64) {
        let Spent { since, before } = self;
        (*since, *before)
    }

    /// Returns whether a card can have this counter at time `now`.
    pub fn possible(&self, now: u64) -> bool {
        let Spent { since, before } = self;
        let since = since.unwrap_or(now);
        since <= now && *before <= since
    }
}

/// Whether a state lasts, and its residency. Times are nanoseconds of the card.
#[derive(Default)]
pub struct Residency {
    spent: Mutex<Spent>,
}

impl Residency {
    /// The state lasts from `now` on if `lasts` returns true, which is evaluated with the counter locked.
    pub fn update(&self, now: u64, lasts: impl FnOnce() -> bool) {
        let mut spent = self.spent.lock().ignore_poison();
        match (spent.since, lasts()) {
            (None, true) => spent.since = Some(now),
            (Some(since), false) => {
                spent.before = spent.before.saturating_add(now.saturating_sub(since));
                spent.since = None;
            }
            _ => {}
        }
    }

    /// Whether the state lasts.
    pub fn is_in(&self) -> bool {
        self.spent.lock().ignore_poison().since.is_some()
    }

    /// Time in the state until `now`, in ns.
    pub fn spent(&self, now: u64) -> u64 {
        let spent = self.spent.lock().ignore_poison();
        spent.before.saturating_add(spent.since.map_or(0, |since| now.saturating_sub(since)))
    }

    /// Returns the counter.
    pub fn save(&self) -> Spent {
        let Residency { spent } = self;
        spent.lock().ignore_poison().clone()
    }

    /// Sets the counter.
    pub fn restore(&self, saved: Spent) {
        *self.spent.lock().ignore_poison() = saved;
    }

    /// Sets the time to 0.
    pub fn reset(&self) {
        *self.spent.lock().ignore_poison() = Spent::default();
    }
}

#[cfg(test)]
mod tests {
    use super::Residency;

    /// G67-040: the counter runs while asleep only.
    #[test]
    fn time_asleep_accumulates() {
        let residency = Residency::default();
        residency.update(100, || true);
        residency.update(150, || true);
        assert_eq!(residency.spent(200), 100);
        residency.update(300, || false);
        assert_eq!(residency.spent(1000), 200);
        residency.update(1000, || true);
        assert_eq!(residency.spent(1001), 201);
        residency.reset();
        assert_eq!(residency.spent(2000), 0);
    }
}
