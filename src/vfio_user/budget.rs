//! How long the card waits for one client: engines and the GuC do nothing for others meanwhile.
//!
//! What counts is waiting that holds up others: for other messages to the client to be sent, for room in its socket, for its
//! answer. Waits of several threads at a time count once. A client that holds up no other may be waited for as long as a
//! step allows.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long a wait goes on before the next look whether others have to wait.
pub const LOOK: Duration = Duration::from_millis(2);
/// What a look counts at the most. A busy host may come back to the waiting thread much later: that is none of the client's
/// doing.
const MOST_OF_A_LOOK: Duration = Duration::from_millis(4);
/// Waiting for a client that has not been waited for recently.
const FULL: Duration = Duration::from_millis(400);
/// The shortest wait that is worth a question.
const LEAST: Duration = Duration::from_millis(2);
/// Of the time that goes by without waiting, what is regained: with [`FULL`] that is 0.8 s in any minute.
const REGAINED: u32 = 150;
/// How long one answer may take.
pub const ANSWER: Duration = Duration::from_secs(1);
/// How long one step may wait for answers.
const STEP: Duration = Duration::from_secs(2);
/// Questions that one step may ask.
const QUESTIONS: u32 = 16 << 10;

/// What is left of the time that a client may hold up others.
#[derive(Debug)]
pub struct Budget {
    left: Duration,
    /// Up to when waiting and not waiting has been taken into account.
    since: Instant,
    /// Threads that wait.
    waiting: u32,
}

impl Budget {
    /// A full budget.
    pub fn new(now: Instant) -> Self {
        Budget { left: FULL, since: now, waiting: 0 }
    }

    /// Takes the time up to `now` into account; `held_up` says that others have had to wait for it.
    fn catch_up(&mut self, now: Instant, held_up: bool) {
        let gone = now.saturating_duration_since(self.since);
        self.since = self.since.max(now);
        if self.waiting == 0 {
            self.left = (self.left + gone / REGAINED).min(FULL);
        } else if held_up {
            self.left = self.left.saturating_sub(gone.min(MOST_OF_A_LOOK));
        }
    }

    /// A wait begins. False: the client must not be waited for now.
    pub fn begin(&mut self, now: Instant, held_up: bool) -> bool {
        self.catch_up(now, held_up);
        let may = self.left >= LEAST;
        self.waiting += u32::from(may);
        may
    }

    /// Whether the wait may go on, until the next look.
    pub fn go_on(&mut self, now: Instant, held_up: bool) -> bool {
        self.catch_up(now, held_up);
        self.left >= LEAST
    }

    /// A wait is over.
    pub fn end(&mut self, now: Instant, held_up: bool) {
        self.catch_up(now, held_up);
        self.waiting = self.waiting.saturating_sub(1);
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
        let left = STEP.saturating_sub(Duration::from_nanos(self.waited.load(Ordering::Relaxed)));
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

    /// What a client is waited for in a minute if it answers each question after `answer`; the engine asks again `pause`
    /// later. Others are held up by all of it, or by nothing.
    fn waited(answer: Duration, pause: Duration, held_up: bool) -> Duration {
        let start = Instant::now();
        let (mut now, mut budget, mut waited) = (start, Budget::new(start), Duration::ZERO);
        while now - start < MINUTE {
            if budget.begin(now, held_up) {
                let begun = now;
                loop {
                    let left = answer.min(ANSWER).saturating_sub(now - begun);
                    now += left.min(LOOK);
                    if left <= LOOK || !budget.go_on(now, held_up) {
                        break;
                    }
                }
                budget.end(now, held_up);
                waited += now - begun;
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

    /// A client that holds up no other is waited for without end.
    #[test]
    fn alone() {
        for answer in [MS / 10, 9 * MS, 50 * MS, 10 * MINUTE] {
            assert!(waited(answer, MS / 100, false) > MINUTE / 2, "{answer:?}");
        }
    }

    /// Threads that wait at the same time: the time counts once.
    #[test]
    fn waits_at_the_same_time_count_once() {
        let start = Instant::now();
        let mut budget = Budget::new(start);
        assert!(budget.begin(start, true));
        assert!(budget.begin(start + MS, true));
        let mut now = start + MS;
        while budget.go_on(now, true) {
            now += MS;
            assert!(budget.go_on(now, true) || now - start >= FULL - LEAST);
        }
        assert!(now - start >= FULL - LEAST);
        budget.end(now, true);
        assert!(!budget.begin(now, false), "it is used up for waits that hold up nothing, too: others may come");
        budget.end(now, true);
        assert!(budget.begin(now + 2 * MINUTE, true) && budget.left == FULL, "it is forgotten in time");
    }

    /// Others that come while a wait goes on end it in time; what was waited before they came costs nothing.
    #[test]
    fn others_come_while_it_waits() {
        let start = Instant::now();
        let mut budget = Budget::new(start);
        assert!(budget.begin(start, false));
        assert!(budget.go_on(start + 100 * MS, false));
        assert_eq!(budget.left, FULL);
        assert!(budget.go_on(start + 102 * MS, true));
        assert_eq!(budget.left, FULL - LOOK);
    }

    /// A host that comes back late to the waiting thread does not use the client's time up.
    #[test]
    fn a_late_look_counts_as_a_look() {
        let start = Instant::now();
        let mut budget = Budget::new(start);
        assert!(budget.begin(start, true));
        assert!(budget.go_on(start + MINUTE, true));
        assert_eq!(budget.left, FULL - MOST_OF_A_LOOK);
    }

    #[test]
    fn a_step_has_a_limit_of_its_own() {
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
