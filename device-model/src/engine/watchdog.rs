//! PR_CTR, the watchdog of an engine (V8-165..167), and what its expiry means to a virtual function (contract C.6).

use super::layout;
use super::reg;
use super::streamer::Streamer;
use crate::command::Requester;
use crate::interrupts::WATCHDOG;

/// PR_CTR_CTRL bits 30:0: 0 lets the counter run; bit 31 chooses its clock, of which the card has one.
const STOPPED: u32 = 0x7fff_ffff;

/// When a watchdog that counts since `since` reaches the threshold, in ticks. The counter is compared when it has counted:
/// a threshold of 0 is not reached.
fn expiry(since: u64, threshold: u32) -> Option<u64> {
    (threshold != 0).then(|| since.saturating_add(u64::from(threshold)))
}

impl Streamer<'_> {
    /// PR_CTR_CTRL has a new value, by a command or from the image: the counter, which is no state of a context, starts
    /// from 0 or stands.
    pub(super) fn restart_watchdog(&mut self) {
        let counts = self.own(reg::PR_CTR_CTRL) & STOPPED == 0;
        self.running.watchdog = counts.then(|| self.gt.timestamp());
    }

    /// When the watchdog expires, in ticks.
    fn watchdog_expires(&self) -> Option<u64> {
        self.running.watchdog.and_then(|since| expiry(since, self.own(reg::PR_CTR_THRSH)))
    }

    /// A wait of a virtual function's ring outlasted the watchdog that was started for it: the GuC resets the engine to
    /// the state of a context that nobody has run yet and lets the ring go on behind the wait. The VF's driver begins
    /// with this the context that it takes as the pattern of all others, and is told nothing about it.
    pub(super) fn recovered_by_watchdog(&mut self) -> bool {
        let expires = if self.requester() == Requester::VirtualKernel { self.watchdog_expires() } else { None };
        let Some(expires) = expires else { return false };
        if self.gt.timestamp() < expires {
            self.running.wait_ends = Some(expires);
            return false;
        }
        self.counters.watchdog_resets += 1;
        layout::clear(self.id, &self.gt.registers);
        self.gam.flush_tlb();
        self.running.watchdog = None;
        self.running.arbitration = true;
        self.loops().forget();
        true
    }

    /// On the physical function the expiry is an event, and the counter starts again (V8-166). It is looked at between
    /// steps, so there is at most one a step.
    pub(super) fn count_watchdog(&mut self) {
        if self.running.watchdog.is_none() || self.running.load.function.is_vf() {
            return;
        }
        let now = self.gt.timestamp();
        if self.watchdog_expires().is_some_and(|expires| now >= expires) {
            self.running.watchdog = Some(now);
            // A report that cannot be written is not worth the context.
            let _ = self.signal(WATCHDOG);
        }
    }
}
