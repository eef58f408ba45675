// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! PR_CTR, the watchdog of an engine (V8-165..167), and its expiration in a VF (contract C.6).
//!
//! At both rates it counts engine time ([`crate::gt::EngineClock`]), so it does not count while the host does not
//! schedule the card's workers.

use super::reg;
use super::streamer::Streamer;
use super::watchdog_counter::{MODULUS, Watchdog};
use crate::command::Requester;
use crate::interrupts::WATCHDOG;
use crate::registers::engine_fields::{GfxMode, PrCtrCtrl};

/// [`PrCtrCtrl::control`]: stops and clears the counter.
const STOPPED: u32 = 1;

impl Streamer<'_> {
    /// Returns the GPU clock in MHz.
    fn gpu_clock(&self) -> u64 {
        u64::from(self.gt.actual_ratio()) * 50 / 3
    }

    /// Returns the current engine time. Must be called within a step.
    #[allow(clippy::indexing_slicing, reason = "there is a clock for each engine")]
    fn engine_time(&self) -> u64 {
        self.gt.engine_clocks[self.id.index()].at(self.gt.clock.now())
    }

    /// Returns whether execlists are enabled on the engine (V8-167). Always true for contexts of VFs, which require
    /// execlists.
    fn takes_execlists(&self) -> bool {
        self.running.load.function.is_vf() || self.registers.fields::<GfxMode>().disable_legacy_mode()
    }

    /// Returns the current state of the running counter, and whether it reached the threshold since the last check.
    fn watchdog_now(&self) -> Option<(Watchdog, bool)> {
        let mut watchdog = self.running.watchdog?;
        let timebase = self.gt.generation.timebase;
        let (seen, now) = (watchdog.seen, self.engine_time());
        watchdog.seen = now;
        if !self.takes_execlists() {
            return Some((watchdog, false));
        }
        let clocks = if !self.registers.fields::<PrCtrCtrl>().gpu_clock() {
            timebase.ticks(now).saturating_sub(timebase.ticks(seen))
        } else {
            let parts = watchdog.part.saturating_add(now.saturating_sub(seen).saturating_mul(self.gpu_clock()));
            watchdog.part = parts % 1000;
            parts / 1000
        };
        let reached = watchdog.count(clocks, self.registers.get(reg::PR_CTR_THRSH));
        Some((watchdog, reached))
    }

    /// Handles a new value of PR_CTR_CTRL from a command or from the image. The counter is engine state, not context
    /// state: it continues from its last value or is cleared (V8-165, V8-167).
    pub(super) fn control_watchdog(&mut self) {
        self.running.watchdog = match self.registers.fields::<PrCtrCtrl>().control() {
            0 => self.running.watchdog.or(Some(Watchdog {
                count: self.registers.get(reg::PR_CTR),
                seen: self.engine_time(),
                part: 0,
            })),
            control => {
                if control == STOPPED {
                    self.registers.set(reg::PR_CTR, 0);
                }
                None
            }
        };
    }

    /// Updates PR_CTR with the current value.
    pub(super) fn show_watchdog(&self) {
        if let Some((watchdog, _)) = self.watchdog_now() {
            self.registers.set(reg::PR_CTR, watchdog.count);
        }
    }

    /// Handles expiration of the watchdog in a wait of a VF's ring. The registers of the engine context are set to
    /// their reset values, as the GuC does on hardware, and the ring continues after the wait. The VF is not notified.
    /// Its driver uses this to create the default context that it copies for all other contexts. Returns whether the
    /// watchdog had expired.
    #[allow(clippy::arithmetic_side_effects, reason = "the distance has 33 bits, and a 64-bit count does not overflow")]
    pub(super) fn recovered_by_watchdog(&mut self) -> bool {
        if self.requester() != Requester::VfKernel {
            return false;
        }
        let Some((watchdog, reached)) = self.watchdog_now() else { return false };
        if !reached {
            let distance = watchdog.distance(self.registers.get(reg::PR_CTR_THRSH));
            let now = self.engine_time();
            let left = if !self.registers.fields::<PrCtrCtrl>().gpu_clock() {
                let timebase = self.gt.generation.timebase;
                Some(timebase.nanoseconds(timebase.ticks(now).saturating_add(distance)).saturating_sub(now))
            } else {
                let parts = (distance * 1000).saturating_sub(watchdog.part);
                parts.checked_div(self.gpu_clock()).map(|ns| ns.saturating_add(1))
            };
            // Engine time does not advance faster than the card's clock, so an earlier check cannot observe the
            // expiration.
            let expires = left.map(|left| self.gt.clock.now().saturating_add(left));
            // No check is scheduled if the counter must wrap completely to reach the threshold.
            self.running.wait_ends = expires.filter(|_| distance < MODULUS);
            return false;
        }
        self.counters.watchdog_resets += 1;
        self.gt.context_layout(self.id).clear_engine_context(&self.gt.registers);
        self.registers.set(reg::PR_CTR, 0);
        self.gam.flush_tlb();
        self.running.watchdog = None;
        self.running.arbitration = true;
        self.loops().forget();
        true
    }

    /// Advances the counter. On the PF, expiration raises an event and the counter restarts (V8-166). The counter is
    /// checked at the end of each step and when its registers are written. Each check raises at most one event.
    pub(super) fn count_watchdog(&mut self) {
        let Some((watchdog, reached)) = self.watchdog_now() else { return };
        self.registers.set(reg::PR_CTR, watchdog.count);
        let is_vf = self.running.load.function.is_vf();
        // For a VF, expiration is handled when its ring waits.
        if !(is_vf && reached) {
            self.running.watchdog = Some(watchdog);
        }
        if reached && !is_vf {
            // Errors are ignored: a failed report does not affect the context.
            let _ = self.signal(WATCHDOG);
        }
    }
}
