//! RC6: whether anything keeps the GT awake, and how long it has slept (contract E.8).

use std::sync::{Mutex, MutexGuard};

use crate::engine::id::EngineId;

/// Something that keeps the GT out of RC6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awake {
    /// An engine that runs a context.
    Engine(EngineId),
    /// A forcewake request of the driver, by the number of its domain (0..=13).
    Forcewake(u8),
    /// RC6 is not permitted (GuCRC is under the host's control, contract B.11).
    Forbidden,
}

impl Awake {
    fn bit(self) -> u64 {
        match self {
            Awake::Forcewake(domain) => 1 << (domain & 15),
            Awake::Forbidden => 1 << 16,
            Awake::Engine(engine) => 1 << (17 + engine.index()),
        }
    }
}

#[derive(Default)]
struct State {
    awake: u64,
    /// When the present sleep began, in ns; meaningless while awake.
    since: u64,
    /// Sleep before the present one, in ns.
    slept: u64,
}

/// The GT's sleep, in nanoseconds of the card's clock.
#[derive(Default)]
pub struct Residency {
    state: Mutex<State>,
}

impl Residency {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// From `now` on `reason` does or does not keep the GT awake.
    pub fn set(&self, reason: Awake, awake: bool, now: u64) {
        let mut state = self.state();
        let before = state.awake;
        if awake {
            state.awake |= reason.bit()
        } else {
            state.awake &= !reason.bit()
        }
        if before == 0 && state.awake != 0 {
            state.slept += now.saturating_sub(state.since);
        } else if before != 0 && state.awake == 0 {
            state.since = now;
        }
    }

    /// Whether the GT is in RC6.
    pub fn asleep(&self) -> bool {
        self.state().awake == 0
    }

    /// How long the GT has slept until `now`.
    pub fn slept(&self, now: u64) -> u64 {
        let state = self.state();
        let present = if state.awake == 0 { now.saturating_sub(state.since) } else { 0 };
        state.slept + present
    }

    /// Nobody holds a forcewake any more (the registers were reset).
    pub fn drop_forcewakes(&self, now: u64) {
        for domain in 0..16 {
            self.set(Awake::Forcewake(domain), false, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Contract E.8: time counts while nothing keeps the GT awake, and only then.
    #[test]
    fn only_sleep_counts() {
        let residency = Residency::default();
        let engine = Awake::Engine(EngineId::all().next().unwrap());
        assert!(residency.asleep());
        residency.set(engine, true, 100);
        residency.set(Awake::Forcewake(0), true, 150);
        residency.set(engine, false, 200);
        assert_eq!((residency.asleep(), residency.slept(500)), (false, 100));
        residency.set(Awake::Forcewake(0), false, 1000);
        residency.set(Awake::Forcewake(0), false, 1100);
        assert_eq!((residency.asleep(), residency.slept(1500)), (true, 600));
        residency.set(Awake::Forbidden, true, 1500);
        assert_eq!(residency.slept(9999), 600);
    }
}
