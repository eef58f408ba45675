// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! PR_CTR, the watchdog of an engine (V8-165..167), and its expiration in a virtual function (contract C.6).
//!
//! It counts engine time ([`super::EngineClock`]), at either rate. While the host does not run the card's workers, the
//! watchdog stops together with the context.

use arctic_sriov::number::low;

use super::layout;
use super::reg;
use super::streamer::Streamer;
use crate::command::Requester;
use crate::execlist;
use crate::host::{ticks, ticks_to_ns};
use crate::interrupts::WATCHDOG;
use crate::registers::GT_PERF_STATUS;

/// PR_CTR_CTRL bits 30:0: 0 enables the counter (trap T4) ...
const CONTROL: u32 = 0x7fff_ffff;
/// ... and 1 stops and clears it. Other values are not documented; they stop the counter.
const STOPPED: u32 = 1;
/// PR_CTR_CTRL bit 31: the counter counts GPU clocks; if clear, timestamp ticks.
const GPU_CLOCK: u32 = 1 << 31;
/// Number of counter values.
const MODULUS: u64 = 1 << 32;

/// A running counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Watchdog {
    /// Value at the last check.
    count: u32,
    /// Time of the last check, in ns of engine time.
    seen: u64,
    /// Fraction of a GPU clock at the last check, in 1/1000.
    part: u64,
}

impl Watchdog {
    /// Advances the counter by `clocks`. Returns true if it reached the threshold, at which it restarts from 0. The
    /// counter is compared after each increment: threshold 0 is reached only after a wrap of the counter, as is a
    /// threshold at or below the current value.
    fn count(&mut self, clocks: u64, threshold: u32) -> bool {
        let distance = self.distance(threshold);
        let reached = clocks >= distance;
        self.count = match (clocks.checked_sub(distance), u64::from(threshold)) {
            (None, _) => self.count.wrapping_add(low(clocks)),
            (Some(behind), 0) => low(behind),
            (Some(behind), period) => low(behind % period),
        };
        reached
    }

    /// Number of clocks until the threshold is reached.
    fn distance(&self, threshold: u32) -> u64 {
        match threshold.wrapping_sub(self.count) {
            0 => MODULUS,
            clocks => u64::from(clocks),
        }
    }
}

impl Streamer<'_> {
    /// GPU clock in MHz: GT_PERF_STATUS bits 19:11, in units of 16.67 MHz.
    fn gpu_clock(&self) -> u64 {
        u64::from(self.gt.registers.value(GT_PERF_STATUS) >> 11 & 0x1ff) * 50 / 3
    }

    /// Current engine time, within a step.
    fn engine_time(&self) -> u64 {
        self.gt.engine_clocks[self.id.index()].at(self.gt.clock.now())
    }

    /// Returns whether execlists are enabled on the engine; always true for contexts of virtual functions, which cannot
    /// run otherwise (V8-167).
    fn takes_execlists(&self) -> bool {
        self.running.load.function.is_vf() || self.own(reg::GFX_MODE) & execlist::DISABLE_LEGACY_MODE != 0
    }

    /// Returns the current state of the running counter, and whether it reached the threshold since the last check.
    fn watchdog_now(&self) -> Option<(Watchdog, bool)> {
        let mut watchdog = self.running.watchdog?;
        let (seen, now) = (watchdog.seen, self.engine_time());
        watchdog.seen = now;
        if !self.takes_execlists() {
            return Some((watchdog, false));
        }
        let clocks = if self.own(reg::PR_CTR_CTRL) & GPU_CLOCK == 0 {
            ticks(now).saturating_sub(ticks(seen))
        } else {
            let parts = watchdog.part.saturating_add(now.saturating_sub(seen).saturating_mul(self.gpu_clock()));
            watchdog.part = parts % 1000;
            parts / 1000
        };
        let reached = watchdog.count(clocks, self.own(reg::PR_CTR_THRSH));
        Some((watchdog, reached))
    }

    /// Handles a new value of PR_CTR_CTRL, from a command or from the image. The counter belongs to the engine, not to
    /// a context: it continues from its last value, or is cleared (V8-165, V8-167).
    pub(super) fn control_watchdog(&mut self) {
        self.running.watchdog = match self.own(reg::PR_CTR_CTRL) & CONTROL {
            0 => self.running.watchdog.or(Some(Watchdog {
                count: self.own(reg::PR_CTR),
                seen: self.engine_time(),
                part: 0,
            })),
            control => {
                if control == STOPPED {
                    self.gt.registers.set(self.base + reg::PR_CTR, 0);
                }
                None
            }
        };
    }

    /// Updates PR_CTR with the current value.
    pub(super) fn show_watchdog(&self) {
        if let Some((watchdog, _)) = self.watchdog_now() {
            self.gt.registers.set(self.base + reg::PR_CTR, watchdog.count);
        }
    }

    /// Handles an expired watchdog in a wait of a virtual function's ring: the GuC resets the engine's context
    /// registers to their reset values and the ring continues after the wait. The VF driver uses this to create the
    /// default context that it copies for all others. It gets no notification. Returns whether the watchdog had
    /// expired.
    pub(super) fn recovered_by_watchdog(&mut self) -> bool {
        if self.requester() != Requester::VfKernel {
            return false;
        }
        let Some((watchdog, reached)) = self.watchdog_now() else { return false };
        if !reached {
            let distance = watchdog.distance(self.own(reg::PR_CTR_THRSH));
            let now = self.engine_time();
            let left = if self.own(reg::PR_CTR_CTRL) & GPU_CLOCK == 0 {
                Some(ticks_to_ns(ticks(now).saturating_add(distance)).saturating_sub(now))
            } else {
                let parts = (distance * 1000).saturating_sub(watchdog.part);
                parts.checked_div(self.gpu_clock()).map(|ns| ns.saturating_add(1))
            };
            // Engine time does not advance faster than the card's clock, so an earlier check is useless.
            let expires = left.map(|left| self.gt.clock.now().saturating_add(left));
            // No check is scheduled for a threshold that is a full wrap of the counter away.
            self.running.wait_ends = expires.filter(|_| distance < MODULUS);
            return false;
        }
        self.counters.watchdog_resets += 1;
        layout::clear(self.id, &self.gt.registers);
        self.gt.registers.set(self.base + reg::PR_CTR, 0);
        self.gam.flush_tlb();
        self.running.watchdog = None;
        self.running.arbitration = true;
        self.loops().forget();
        true
    }

    /// Advances the counter. On the physical function its expiration is an event, and the counter restarts (V8-166). It
    /// is checked between steps and when its registers are written, so each check reports at most one event.
    pub(super) fn count_watchdog(&mut self) {
        let Some((watchdog, reached)) = self.watchdog_now() else { return };
        self.gt.registers.set(self.base + reg::PR_CTR, watchdog.count);
        let is_vf = self.running.load.function.is_vf();
        // For a virtual function the expiration is handled when its ring waits.
        if !(is_vf && reached) {
            self.running.watchdog = Some(watchdog);
        }
        if reached && !is_vf {
            // A report that cannot be written does not affect the context.
            let _ = self.signal(WATCHDOG);
        }
    }
}
