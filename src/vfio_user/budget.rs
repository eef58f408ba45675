//! How long the card waits for one client: engines and the GuC do nothing for others meanwhile.
//!
//! All waiting counts: for other messages to the client to be sent, for room in its socket, for its answer. Waits of several
//! threads at a time count once.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Waiting for a client that has not been waited for recently.
const FULL: Duration = Duration::from_millis(400);
/// The shortest wait that is worth a question.
const LEAST: Duration = Duration::from_millis(2);
/// Of the time that goes by without waiting, what is regained of waits that held up other clients: with [`FULL`] that is
/// 0.8 s in any minute.
const REGAINED_OF_OTHERS: u32 = 150;
/// The same of answers that came late, or not at all.
const REGAINED: u32 = 10;
/// An answer within this is not late.
const PROMPT: Duration = Duration::from_millis(10);
/// Questions that one step may ask.
const QUESTIONS: u32 = 16 << 10;

/// What is left of the time that a client may be waited for.
#[derive(Debug)]
pub struct Budget {
    /// Of waits while others had to wait: every one counts, prompt or not.
    others: Duration,
    /// Of waits for answers that are not prompt.
    late: Duration,
    /// Up to when waiting and not waiting has been taken into account.
    since: Instant,
    /// Threads that wait.
    waiting: u32,
}

impl Budget {
    /// A full budget.
    pub fn new(now: Instant) -> Self {
        Budget { others: FULL, late: FULL, since: now, waiting: 0 }
    }

    /// Takes the time up to `now` into account; `held_up` says that others have had to wait for it.
    fn catch_up(&mut self, now: Instant, held_up: bool) {
        let gone = now.saturating_duration_since(self.since);
        self.since = self.since.max(now);
        if self.waiting == 0 {
            self.others = (self.others + gone / REGAINED_OF_OTHERS).min(FULL);
            self.late = (self.late + gone / REGAINED).min(FULL);
            return;
        }
        self.late = self.late.saturating_sub(gone);
        if held_up {
            self.others = self.others.saturating_sub(gone);
        }
    }

    fn left(&self) -> Option<Duration> {
        Some(self.others.min(self.late)).filter(|left| *left >= LEAST)
    }

    /// A wait begins: how long it may take. `None`: the client must not be waited for now.
    pub fn begin(&mut self, now: Instant, held_up: bool) -> Option<Duration> {
        self.catch_up(now, held_up);
        let left = self.left()?;
        self.waiting += 1;
        Some(left)
    }

    /// The wait goes on: how much longer it may take.
    pub fn go_on(&mut self, now: Instant, held_up: bool) -> Option<Duration> {
        self.catch_up(now, held_up);
        self.left()
    }

    /// The wait is over that began at `begun`.
    pub fn end(&mut self, begun: Instant, now: Instant, answered: bool, held_up: bool) {
        self.catch_up(now, held_up);
        self.waiting = self.waiting.saturating_sub(1);
        let took = now.saturating_duration_since(begun);
        if answered && took < PROMPT {
            self.late = (self.late + took).min(FULL);
        }
    }
}

/// What one step of an engine or of the GuC has asked of a client: questions, and nanoseconds waited for answers.
#[derive(Debug, Default)]
pub struct StepBudget {
    questions: AtomicU32,
    waited: AtomicU64,
}

impl StepBudget {
    /// How long the step may wait for its next question; `None` where it has asked or waited too much.
    pub fn left(&self) -> Option<Duration> {
        let left = FULL.saturating_sub(Duration::from_nanos(self.waited.load(Ordering::Relaxed)));
        (left >= LEAST && self.questions.load(Ordering::Relaxed) < QUESTIONS).then_some(left)
    }

    /// A question has taken so long.
    pub fn spend(&self, waited: Duration) {
        self.questions.fetch_add(1, Ordering::Relaxed);
        self.waited.fetch_add(waited.as_nanos() as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const MINUTE: Duration = Duration::from_secs(60);

    /// What a client is waited for in a minute if it answers each question after `answer`, or never; the engine asks again
    /// `pause` later. Others are held up by all of it, or by nothing.
    fn waited(answer: Duration, pause: Duration, held_up: bool) -> Duration {
        let start = Instant::now();
        let (mut now, mut budget, mut waited) = (start, Budget::new(start), Duration::ZERO);
        while now - start < MINUTE {
            if let Some(most) = budget.begin(now, held_up) {
                let took = answer.min(most);
                let begun = now;
                now += took;
                waited += took;
                budget.end(begun, now, answer <= most, held_up);
            }
            now += pause;
        }
        waited
    }

    /// In any minute the others lose less than a second, however quick each answer is and however often it is asked.
    #[test]
    fn others_lose_less_than_a_second_a_minute() {
        for answer in [MS / 50, MS / 10, MS, 3 * MS / 2, 9 * MS, 50 * MS, 10 * MINUTE] {
            for pause in [MS / 1000, MS / 10, 10 * MS] {
                let waited = waited(answer, pause, true);
                assert!(waited < 850 * MS, "{answer:?} {pause:?}: {waited:?}");
            }
        }
    }

    /// A client that holds up no other is waited for without end while it answers promptly, and a tenth of the time if it
    /// does not.
    #[test]
    fn alone() {
        assert!(waited(MS / 10, MS / 100, false) > MINUTE / 2);
        assert!(waited(9 * MS, MS, false) > MINUTE / 2);
        for answer in [50 * MS, 10 * MINUTE] {
            let waited = waited(answer, MS, false);
            assert!(waited > MINUTE / 20 && waited < MINUTE / 9, "{answer:?}: {waited:?}");
        }
    }

    /// Threads that wait at the same time: the time counts once, and the later one does not wait longer than the first.
    #[test]
    fn waits_at_the_same_time_count_once() {
        let start = Instant::now();
        let mut budget = Budget::new(start);
        assert_eq!(budget.begin(start, true), Some(FULL));
        let later = start + FULL - 10 * MS;
        assert_eq!(budget.begin(later, true), Some(10 * MS));
        let end = start + FULL;
        budget.end(start, end, false, true);
        budget.end(later, end, false, true);
        assert_eq!(budget.begin(end, true), None);
        assert!(budget.begin(end + 2 * MINUTE, true).is_some_and(|left| left >= FULL - MS), "it is forgotten in time");
    }

    /// Others who come while a wait goes on end it in time; what was waited before they came costs only what a late answer
    /// costs.
    #[test]
    fn others_come_while_it_waits() {
        let start = Instant::now();
        let mut budget = Budget::new(start);
        budget.begin(start, false).unwrap();
        assert_eq!(budget.go_on(start + 100 * MS, false), Some(FULL - 100 * MS));
        assert_eq!(budget.others, FULL);
        assert_eq!(budget.go_on(start + 110 * MS, true), Some(FULL - 110 * MS));
        assert_eq!(budget.others, FULL - 10 * MS);
        assert_eq!(budget.go_on(start + FULL, true), None);
    }

    #[test]
    fn a_step_has_a_limit_of_its_own() {
        let step = StepBudget::default();
        step.spend(FULL - LEAST);
        assert_eq!(step.left(), Some(LEAST));
        step.spend(MS);
        assert_eq!(step.left(), None);
        let step = StepBudget::default();
        (0..QUESTIONS).for_each(|_| step.spend(Duration::ZERO));
        assert_eq!(step.left(), None);
    }
}
