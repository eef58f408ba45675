// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! RC6: the reasons that keep the GT awake, and its accumulated sleep time (contract E.8).
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use arctic_sriov::number::low;

use crate::sync::IgnorePoison;
use crate::topology::{EngineId, MAX_ENGINES};

/// A reason that keeps the GT out of RC6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awake {
    /// The engine runs a context.
    Engine(EngineId),
    /// A forcewake request of the driver, by domain number (0..=13).
    Forcewake(u8),
    /// A forcewake request of the GuC, by domain number (0..=13).
    GucForcewake(u8),
    /// RC6 is not permitted, by the GuC (contract B.11) or by the host.
    Forbidden,
}

/// Position of the engines' bits in the set of reasons.
const ENGINES_SHIFT: usize = 17;
/// The engines' bits of a set of engines.
const ALL_ENGINES: u32 = (1 << MAX_ENGINES) - 1;

impl Awake {
    #[allow(clippy::arithmetic_side_effects, reason = "an engine's index is below MAX_ENGINES")]
    fn bit(self) -> u64 {
        match self {
            Awake::Forcewake(domain) => 1 << (domain & 15),
            Awake::Forbidden => 1 << 16,
            Awake::Engine(engine) => 1 << (ENGINES_SHIFT + engine.index()),
            Awake::GucForcewake(domain) => 1 << (48 + (domain & 15)),
        }
    }
}

#[derive(Default)]
struct Sleep {
    /// Start of the current sleep, in ns; meaningless while awake.
    since: u64,
    /// Sleep time before the current sleep, in ns.
    slept: u64,
}

/// RC6 state and residency of the GT. Times are nanoseconds of the card's clock.
#[derive(Default)]
pub struct Residency {
    /// Set of reasons to be awake; modified only with `sleep` locked.
    awake: AtomicU64,
    sleep: Mutex<Sleep>,
}

impl Residency {
    fn sleep(&self) -> MutexGuard<'_, Sleep> {
        self.sleep.lock().ignore_poison()
    }

    /// Sets or clears `reason` at time `now`. If the GT leaves RC6, calls `wake`, which restores its registers from the
    /// power images, before the GT is reported as awake. A concurrent call with another reason blocks until then.
    pub fn set(&self, reason: Awake, awake: bool, now: u64, wake: impl FnOnce()) {
        let mut sleep = self.sleep();
        let before = self.awake.load(Ordering::Relaxed);
        let after = if awake { before | reason.bit() } else { before & !reason.bit() };
        if before == 0 && after != 0 {
            wake();
            sleep.slept = sleep.slept.saturating_add(now.saturating_sub(sleep.since));
        } else if before != 0 && after == 0 {
            sleep.since = now;
        }
        self.awake.store(after, Ordering::Release);
    }

    /// Returns whether the GT is in RC6.
    #[inline]
    pub fn asleep(&self) -> bool {
        self.awake.load(Ordering::Acquire) == 0
    }

    /// Returns whether `reason` keeps the GT awake.
    #[inline]
    pub fn holds(&self, reason: Awake) -> bool {
        self.awake.load(Ordering::Acquire) & reason.bit() != 0
    }

    /// Engines that run a context, one bit each.
    #[inline]
    pub fn engines(&self) -> u32 {
        low(self.awake.load(Ordering::Acquire) >> ENGINES_SHIFT) & ALL_ENGINES
    }

    /// Accumulated sleep time of the GT at time `now`, in ns.
    pub fn slept(&self, now: u64) -> u64 {
        let sleep = self.sleep();
        sleep.slept.saturating_add(if self.asleep() { now.saturating_sub(sleep.since) } else { 0 })
    }

    /// Clears all forcewake requests (the registers were reset).
    pub fn drop_forcewakes(&self, now: u64) {
        for domain in 0..16 {
            self.set(Awake::Forcewake(domain), false, now, || ());
            self.set(Awake::GucForcewake(domain), false, now, || ());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Contract E.8: time is counted only while no reason keeps the GT awake.
    #[test]
    fn residency_counts_only_sleep() {
        let residency = Residency::default();
        let set = |reason, awake, now| {
            let woken = std::cell::Cell::new(false);
            residency.set(reason, awake, now, || {
                assert!(residency.asleep(), "the GT must not be reported awake before its registers are restored");
                woken.set(true);
            });
            woken.get()
        };
        let engine = Awake::Engine(crate::topology::XE_HPG_ENGINES.all().next().unwrap());
        assert!(residency.asleep());
        assert!(set(engine, true, 100));
        assert!(!set(Awake::Forcewake(0), true, 150), "already awake");
        assert!(!set(engine, false, 200));
        assert_eq!((residency.asleep(), residency.slept(500)), (false, 100));
        assert!(!set(Awake::Forcewake(0), false, 1000));
        assert!(!set(Awake::Forcewake(0), false, 1100));
        assert_eq!((residency.asleep(), residency.slept(1500)), (true, 600));
        assert!(set(Awake::Forbidden, true, 1500));
        assert_eq!(residency.slept(9999), 600);
    }
}
