// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Limits on the time that the card waits for one client, during which engines and the GuC do no work for others.
//!
//! Only waits that delay other clients are charged: waits for other messages to the client to be sent, for space in its
//! socket buffer, and for its reply. Concurrent waits of several threads are charged once. Waits for a client that
//! delays no other client are limited only by the step budget. Time for which an overloaded host does not schedule the
//! threads of a wait is not the client's; see [`Moment::host_delay`].

use std::cell::LazyCell;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Interval at which a waiting thread checks whether others have to wait.
pub const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// Maximum time charged per interval. A busy host may schedule the waiting thread much later, which must not be charged
/// to the client.
const MAX_CHARGE: Duration = Duration::from_millis(4);
/// Number of threads that a wait wakes one after the other: the client's, the one that receives the reply, the waiting
/// one. On an overloaded host each of them waits for a CPU, on average for equally long.
const WAKEUPS: u32 = 3;
/// Minimum share of a wait that is charged, as a divisor. It limits what a client gains by loading the host itself.
const LEAST_SHARE: u32 = 8;
/// Maximum budget of a client, which it reaches after some time without waits.
const FULL: Duration = Duration::from_millis(400);
/// Minimum remaining budget to start a wait.
const LEAST: Duration = Duration::from_millis(2);
/// Refill rate: the time without waits divided by this. Together with [`FULL`] it limits the charged waits to 0.8 s in
/// any minute, and all waits to 0.8 s times [`LEAST_SHARE`].
const REGAINED: u32 = 150;
/// Time limit for one reply.
pub const ANSWER: Duration = Duration::from_secs(1);
/// Time limit for all replies in one step.
const STEP: Duration = Duration::from_secs(2);
/// Maximum number of requests in one step.
const QUESTIONS: u32 = 16 << 10;

/// The state of a wait at one time, as the waiting thread sees it.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    pub now: Instant,
    /// Other clients are delayed.
    pub held_up: bool,
    /// Time for which the calling thread was ready to run but not running, since its previous call for this wait; 0 if others
    /// were not delayed at both.
    pub host_delay: Duration,
}

/// Returns the time for which the calling thread has been ready to run but not running; 0 if the kernel does not count
/// it (`CONFIG_SCHED_INFO`) or `/proc` is not mounted.
pub fn run_delay() -> Duration {
    thread_local! {
        static SCHEDSTAT: LazyCell<Option<File>> = LazyCell::new(|| File::open("/proc/thread-self/schedstat").ok());
    }
    let read = |file: &File| {
        let mut text = [0; 64];
        let count = file.read_at(&mut text, 0).ok()?;
        // Time on a CPU, run delay (both in nanoseconds), number of time slices.
        std::str::from_utf8(text.get(..count)?).ok()?.split_whitespace().nth(1)?.parse().ok()
    };
    Duration::from_nanos(SCHEDSTAT.with(|file| file.as_ref().and_then(read)).unwrap_or_default())
}

/// The remaining time for which a client may delay others.
#[derive(Debug)]
pub struct Budget {
    left: Duration,
    /// Time up to which waiting and refill have been accounted.
    since: Instant,
    /// Number of waiting threads.
    waiting: u32,
}

impl Budget {
    /// Creates a full budget.
    pub fn new(now: Instant) -> Self {
        Budget { left: FULL, since: now, waiting: 0 }
    }

    /// Accounts for the time up to `moment`.
    #[allow(clippy::arithmetic_side_effects, reason = "division by a constant")]
    fn catch_up(&mut self, Moment { now, held_up, host_delay }: Moment) {
        let gone = now.saturating_duration_since(self.since);
        self.since = self.since.max(now);
        if self.waiting == 0 {
            self.left = self.left.saturating_add(gone / REGAINED).min(FULL);
        } else if held_up {
            let charge = gone.saturating_sub(host_delay.saturating_mul(WAKEUPS)).max(gone / LEAST_SHARE);
            self.left = self.left.saturating_sub(charge.min(MAX_CHARGE));
        }
    }

    /// Begins a wait. Returns false if the budget is exhausted; the caller must then not wait for the client.
    pub fn begin(&mut self, moment: Moment) -> bool {
        self.catch_up(moment);
        let may = self.left >= LEAST;
        self.waiting = self.waiting.saturating_add(may.into());
        may
    }

    /// Returns whether the wait may continue until the next check.
    pub fn go_on(&mut self, moment: Moment) -> bool {
        self.catch_up(moment);
        self.left >= LEAST
    }

    /// Ends a wait.
    pub fn end(&mut self, moment: Moment) {
        self.catch_up(moment);
        self.waiting = self.waiting.saturating_sub(1);
    }
}

/// Requests of one step of an engine or of the GuC to a client: their number, the time waited for replies in
/// nanoseconds, and whether one was not answered.
#[derive(Debug, Default)]
pub struct StepBudget {
    questions: AtomicU32,
    waited: AtomicU64,
    unanswered: AtomicBool,
}

impl StepBudget {
    /// Remaining waiting time for the step's next request; `None` if a limit is reached.
    pub fn left(&self) -> Option<Duration> {
        let left = STEP.saturating_sub(Duration::from_nanos(self.waited.load(Ordering::Relaxed)));
        (left >= LEAST && self.questions.load(Ordering::Relaxed) < QUESTIONS).then_some(left)
    }

    /// Records that a request was not answered, or not sent because of a limit.
    pub fn set_unanswered(&self) {
        self.unanswered.store(true, Ordering::Relaxed);
    }

    /// Returns whether a request was not answered, or not sent because of a limit.
    pub fn unanswered(&self) -> bool {
        self.unanswered.load(Ordering::Relaxed)
    }

    /// Charges one request that took `waited`.
    pub fn spend(&self, waited: Duration) {
        self.questions.fetch_add(1, Ordering::Relaxed);
        self.waited.fetch_add(u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const MINUTE: Duration = Duration::from_secs(60);
    /// Limit of the charged waits in a minute.
    const LIMIT: Duration = Duration::from_millis(850);

    /// A moment on an idle host.
    fn at(now: Instant, held_up: bool) -> Moment {
        Moment { now, held_up, host_delay: Duration::ZERO }
    }

    /// Simulates the waiting time in a minute for a client that replies to each request after `answer`; the engine
    /// sends the next request `pause` later. Either all of the waiting delays others, or none of it. The host runs the
    /// waiting thread `host_delay` later than it wakes.
    fn waited(answer: Duration, pause: Duration, held_up: bool, host_delay: Duration) -> Duration {
        let start = Instant::now();
        let (mut now, mut budget, mut waited) = (start, Budget::new(start), Duration::ZERO);
        while now - start < MINUTE {
            if budget.begin(at(now, held_up)) {
                let begun = now;
                loop {
                    let left = answer.min(ANSWER).saturating_sub(now - begun);
                    now += left.min(POLL_INTERVAL) + host_delay;
                    if left <= POLL_INTERVAL || !budget.go_on(Moment { now, held_up, host_delay }) {
                        break;
                    }
                }
                budget.end(Moment { now, held_up, host_delay });
                waited += now - begun;
            }
            now += pause;
        }
        waited
    }

    /// In any minute others are delayed by less than a second in total, regardless of the reply time and the request
    /// rate.
    #[test]
    fn waits_delay_others_by_less_than_a_second_per_minute() {
        for answer in [MS / 50, MS / 10, MS, 3 * MS / 2, 9 * MS, 50 * MS, 10 * MINUTE] {
            for pause in [MS / 1000, MS / 10, 10 * MS] {
                let waited = waited(answer, pause, true, Duration::ZERO);
                assert!(waited < LIMIT, "{answer:?} {pause:?}: {waited:?}");
            }
        }
    }

    /// An honest client on an overloaded host, which runs each of the three threads of a wait 3 ms late, is not cut off.
    #[test]
    fn delays_by_the_host_are_not_charged_to_the_client() {
        assert!(waited(6 * MS, MS / 10, true, 3 * MS) > 5 * LIMIT);
        assert!(waited(6 * MS, MS / 10, true, Duration::ZERO) < LIMIT);
    }

    /// A client that loads the host gains at most the factor [`LEAST_SHARE`].
    #[test]
    fn a_share_of_every_wait_is_charged() {
        for (answer, host_delay) in [(MS / 10, MS), (MS, 2 * MS), (9 * MS, 3 * MS), (50 * MS, 5 * MS)] {
            let waited = waited(answer, MS / 10, true, host_delay);
            assert!(waited < LIMIT * LEAST_SHARE, "{answer:?}: {waited:?}");
        }
    }

    #[test]
    fn run_delay_never_decreases() {
        let before = run_delay();
        std::thread::yield_now();
        assert!(run_delay() >= before);
    }

    /// Waiting for a client that delays no other is not limited.
    #[test]
    fn wait_that_delays_no_other_client_is_unlimited() {
        for answer in [MS / 10, 9 * MS, 50 * MS, 10 * MINUTE] {
            assert!(waited(answer, MS / 100, false, Duration::ZERO) > MINUTE / 2, "{answer:?}");
        }
    }

    /// Concurrent waits of several threads are charged once.
    #[test]
    fn concurrent_waits_are_charged_once() {
        let start = Instant::now();
        let mut budget = Budget::new(start);
        assert!(budget.begin(at(start, true)));
        assert!(budget.begin(at(start + MS, true)));
        let mut now = start + MS;
        while budget.go_on(at(now, true)) {
            now += MS;
            assert!(budget.go_on(at(now, true)) || now - start >= FULL - LEAST);
        }
        assert!(now - start >= FULL - LEAST);
        budget.end(at(now, true));
        assert!(!budget.begin(at(now, false)), "exhausted also for waits that delay no other: others may connect");
        budget.end(at(now, true));
        assert!(budget.begin(at(now + 2 * MINUTE, true)) && budget.left == FULL, "it is refilled over time");
    }

    /// Other clients that connect during a wait cause charging from then on; the time before is not charged.
    #[test]
    fn wait_is_charged_from_the_connection_of_another_client() {
        let start = Instant::now();
        let mut budget = Budget::new(start);
        assert!(budget.begin(at(start, false)));
        assert!(budget.go_on(at(start + 100 * MS, false)));
        assert_eq!(budget.left, FULL);
        assert!(budget.go_on(at(start + 102 * MS, true)));
        assert_eq!(budget.left, FULL - POLL_INTERVAL);
    }

    /// Late scheduling of the waiting thread does not exhaust the client's budget.
    #[test]
    fn late_poll_is_charged_as_one_poll() {
        let start = Instant::now();
        let mut budget = Budget::new(start);
        assert!(budget.begin(at(start, true)));
        assert!(budget.go_on(at(start + MINUTE, true)));
        assert_eq!(budget.left, FULL - MAX_CHARGE);
    }

    #[test]
    fn step_budget_limits_time_and_number_of_waits() {
        let step = StepBudget::default();
        step.spend(STEP - LEAST);
        assert_eq!(step.left(), Some(LEAST));
        step.spend(MS);
        assert_eq!(step.left(), None);
        let step = StepBudget::default();
        (0..QUESTIONS).for_each(|_| step.spend(Duration::ZERO));
        assert_eq!(step.left(), None);
    }
}
