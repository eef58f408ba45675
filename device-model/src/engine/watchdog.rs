//! PR_CTR, the watchdog of an engine (V8-165..167), and what its expiry means to a virtual function (contract C.6).
//!
//! It counts engine time ([`super::EngineClock`]), at either rate: on a host that does not run the card's workers it
//! stands, as the context under it does.

use super::layout;
use super::reg;
use super::streamer::Streamer;
use crate::command::Requester;
use crate::execlist;
use crate::interrupts::WATCHDOG;
use crate::registers::GT_PERF_STATUS;
use crate::world::{ticks, ticks_to_ns};

/// PR_CTR_CTRL bits 30:0: 0 lets the counter run, trap T4 ...
const CONTROL: u32 = 0x7fff_ffff;
/// ... and 1 stops and clears it. What the other values do is not said: the counter stands.
const STOPPED: u32 = 1;
/// PR_CTR_CTRL bit 31: the counter counts clocks of the GPU, else of the timestamp.
const GPU_CLOCK: u32 = 1 << 31;
/// Values of the counter.
const MODULUS: u64 = 1 << 32;

/// A counter that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Watchdog {
    /// Its value when it was looked at last.
    count: u32,
    /// When that was, in ns of engine time.
    seen: u64,
    /// Part of a GPU clock that had passed then, in 1/1000.
    part: u64,
}

impl Watchdog {
    /// Counts on to the threshold and beyond; true if it was reached, whereupon the counter started from 0. The counter is
    /// compared when it has counted, so that 0 reaches no threshold, and one that is below the counter is reached after all
    /// other values.
    fn count(&mut self, clocks: u64, threshold: u32) -> bool {
        let distance = self.distance(threshold);
        let reached = clocks >= distance;
        self.count = match (clocks.checked_sub(distance), u64::from(threshold)) {
            (None, _) => self.count.wrapping_add(clocks as u32),
            (Some(behind), 0) => behind as u32,
            (Some(behind), period) => (behind % period) as u32,
        };
        reached
    }

    /// Clocks up to the threshold.
    fn distance(&self, threshold: u32) -> u64 {
        match threshold.wrapping_sub(self.count) {
            0 => MODULUS,
            clocks => u64::from(clocks),
        }
    }
}

impl Streamer<'_> {
    /// The GPU's clock in MHz: GT_PERF_STATUS bits 19:11, in units of 16.67 MHz.
    fn gpu_clock(&self) -> u64 {
        u64::from(self.gt.registers.value(GT_PERF_STATUS) >> 11 & 0x1ff) * 50 / 3
    }

    /// Engine time, within a step.
    fn engine_time(&self) -> u64 {
        self.gt.engine_clocks[self.id.index()].at(self.gt.clock.now())
    }

    /// Whether the engine takes execlists; a virtual function's contexts have no other way to it (V8-167).
    fn takes_execlists(&self) -> bool {
        self.running.load.function.is_vf() || self.own(reg::GFX_MODE) & execlist::DISABLE_LEGACY_MODE != 0
    }

    /// The running counter as it is now, and whether it reached the threshold since it was looked at last.
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

    /// PR_CTR_CTRL has a new value, by a command or from the image. The counter is the engine's and no state of a context:
    /// it goes on from where it stood, or is cleared (V8-165, V8-167).
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

    /// Shows the counter in its register.
    pub(super) fn show_watchdog(&self) {
        if let Some((watchdog, _)) = self.watchdog_now() {
            self.gt.registers.set(self.base + reg::PR_CTR, watchdog.count);
        }
    }

    /// A wait of a virtual function's ring outlasted the watchdog that was started for it: the GuC resets the engine to
    /// the state of a context that nobody has run yet and lets the ring go on behind the wait. The VF's driver begins
    /// with this the context that it takes as the pattern of all others, and is told nothing about it.
    pub(super) fn recovered_by_watchdog(&mut self) -> bool {
        if self.requester() != Requester::VirtualKernel {
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
            // Engine time is not faster than the card's clock: before that a look is for nothing.
            let expires = left.map(|left| self.gt.clock.now().saturating_add(left));
            // A threshold that only a whole round of the counter comes to is no reason to look.
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

    /// On the physical function the expiry is an event, and the counter starts again (V8-166). It is looked at between
    /// steps and where its registers are written, so there is at most one event a look.
    pub(super) fn count_watchdog(&mut self) {
        let Some((watchdog, reached)) = self.watchdog_now() else { return };
        self.gt.registers.set(self.base + reg::PR_CTR, watchdog.count);
        let is_vf = self.running.load.function.is_vf();
        // That a virtual function's was reached is seen when its ring waits.
        if !(is_vf && reached) {
            self.running.watchdog = Some(watchdog);
        }
        if reached && !is_vf {
            // A report that cannot be written is not worth the context.
            let _ = self.signal(WATCHDOG);
        }
    }
}
