// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Accumulated time in RC6 (G67-040).
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

use crate::sync::{IgnorePoison, Mutex};

/// State of the counter, which is also its saved state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sleep {
    /// Start of the current sleep in ns, while asleep.
    since: Option<u64>,
    /// Sleep time before the current sleep, in ns.
    slept: u64,
}

impl Sleep {
    /// The state with this start of the current sleep, while asleep, and time before it.
    pub fn of(since: Option<u64>, slept: u64) -> Self {
        Sleep { since, slept }
    }

    /// Its parts, as for [`Sleep::of`].
    pub fn parts(&self) -> (Option<u64>, u64) {
        let Sleep { since, slept } = self;
        (*since, *slept)
    }

    /// Returns whether a card can be in this state at time `now`.
    pub fn possible(&self, now: u64) -> bool {
        let Sleep { since, slept } = self;
        let before = since.unwrap_or(now);
        before <= now && *slept <= before
    }
}

/// RC6 state and residency. Times are nanoseconds of the card.
#[derive(Default)]
pub struct Residency {
    sleep: Mutex<Sleep>,
}

impl Residency {
    /// Sets the state at time `now` to the one that `asleep` returns, which is evaluated with the state locked.
    pub fn update(&self, now: u64, asleep: impl FnOnce() -> bool) {
        let mut sleep = self.sleep.lock().ignore_poison();
        match (sleep.since, asleep()) {
            (None, true) => sleep.since = Some(now),
            (Some(since), false) => {
                sleep.slept = sleep.slept.saturating_add(now.saturating_sub(since));
                sleep.since = None;
            }
            _ => {}
        }
    }

    /// Whether it is asleep.
    pub fn asleep(&self) -> bool {
        self.sleep.lock().ignore_poison().since.is_some()
    }

    /// Time asleep until `now`, in ns.
    pub fn slept(&self, now: u64) -> u64 {
        let sleep = self.sleep.lock().ignore_poison();
        sleep.slept.saturating_add(sleep.since.map_or(0, |since| now.saturating_sub(since)))
    }

    /// Returns the state of the counter.
    pub fn save(&self) -> Sleep {
        let Residency { sleep } = self;
        sleep.lock().ignore_poison().clone()
    }

    /// Sets the state of the counter.
    pub fn restore(&self, saved: Sleep) {
        *self.sleep.lock().ignore_poison() = saved;
    }

    /// Sets the time asleep to 0.
    pub fn reset(&self) {
        *self.sleep.lock().ignore_poison() = Sleep::default();
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
        assert_eq!(residency.slept(200), 100);
        residency.update(300, || false);
        assert_eq!(residency.slept(1000), 200);
        residency.update(1000, || true);
        assert_eq!(residency.slept(1001), 201);
        residency.reset();
        assert_eq!(residency.slept(2000), 0);
    }
}
