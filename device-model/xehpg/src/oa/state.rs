// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The state of OAG: counters up to now, the events without reports, and counters up to the last report.

use arctic_base::priority_mutex::PriorityMutex;

use super::counters::{Activity, Counters, Setting};
use super::facts::ObservationFacts;
use super::format::reason;
use super::network::{EngineSignals, Writes};
use super::queue::{Added, Event, Queue, Timed, Trigger};
use super::timer;
use super::values::Values;
use super::writer::Writer;
use crate::registers::observation::OaDebug;
use crate::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::sync::{IgnorePoison, Mutex, MutexGuard};
use crate::topology::EngineId;

/// Bit of [`Observation::active`]: OAG is enabled.
const GLOBAL: u32 = 1 << 31;

/// Observation of a card: what other units tell it, and what workers write.
pub struct Observation {
    /// Who needs the card's activity: OAG, and engines whose context counts, by index.
    active: AtomicU32,
    /// When the unit is to be stepped, in ns of the card's clock.
    due: AtomicU64,
    /// A leaf lock: no other lock is taken and no memory accessed with it.
    state: Mutex<State>,
    /// What a step has. Also the lock of the unit.
    pub writer: PriorityMutex<Writer>,
    /// Reports written since power-on.
    written: AtomicU64,
    /// Reports that were due and not written.
    lost: AtomicU64,
}

impl Observation {
    /// Observation after reset.
    pub fn new(facts: &'static ObservationFacts) -> Self {
        Observation {
            active: AtomicU32::new(0),
            due: AtomicU64::new(u64::MAX),
            state: Mutex::new(State::new(facts)),
            writer: PriorityMutex::new(Writer::default()),
            written: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        }
    }

    /// Returns whether the card's activity is to be noted.
    #[inline]
    pub fn active(&self) -> bool {
        self.active.load(Ordering::Relaxed) != 0
    }

    /// Returns whether OAG is enabled. It remains so until the reports due before its disable are written.
    #[inline]
    pub fn enabled(&self) -> bool {
        self.active.load(Ordering::Acquire) & GLOBAL != 0
    }

    /// The state.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().ignore_poison()
    }

    /// Notes whether a user needs the card's activity: an engine, or OAG. Must be called before the activity is read for
    /// it.
    pub fn set_active(&self, user: Option<EngineId>, active: bool) {
        let bit = user.map_or(GLOBAL, EngineId::bit);
        if active {
            self.active.fetch_or(bit, Ordering::AcqRel);
        } else {
            self.active.fetch_and(!bit, Ordering::AcqRel);
        }
    }

    /// When the unit is to be stepped, in ns of the card's clock.
    #[inline]
    pub fn due(&self) -> u64 {
        self.due.load(Ordering::Acquire)
    }

    /// The unit is to be stepped at `time` at the latest.
    pub fn step_by(&self, time: u64) {
        self.due.fetch_min(time, Ordering::AcqRel);
    }

    /// The unit is to be stepped at `time`.
    pub fn step_at(&self, time: u64) {
        self.due.store(time, Ordering::Release);
    }

    /// Counts reports.
    pub fn count(&self, written: u64, lost: u64) {
        self.written.fetch_add(written, Ordering::Relaxed);
        self.lost.fetch_add(lost, Ordering::Relaxed);
    }

    /// Reports written, and reports lost, since power-on.
    pub fn counts(&self) -> (u64, u64) {
        (self.written.load(Ordering::Relaxed), self.lost.load(Ordering::Relaxed))
    }

    /// Resets all state, with the lock of the unit held.
    pub fn reset(&self) {
        let mut state = self.state();
        self.active.fetch_and(!GLOBAL, Ordering::AcqRel);
        self.due.store(u64::MAX, Ordering::Release);
        state.reset();
    }
}

/// A report that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// OA time.
    pub at: u64,
    /// What requests it.
    pub trigger: Trigger,
    /// Frequency in units of 16.67 MHz.
    pub ratio: u32,
    /// GPU_TICKS.
    pub ticks: u64,
}

/// The state behind the lock.
pub struct State {
    facts: &'static ObservationFacts,
    /// Counters up to the last event.
    pub now: Counters,
    /// The time that the GT was awake, in ticks, when `now` was last computed, if nobody needs the card's activity: then the
    /// clocks since are computed from the time that it is awake.
    awake_before: Option<u64>,
    /// Counters up to the last report.
    replay: Counters,
    /// What has happened since.
    queue: Queue,
    /// Events were dropped: the counters of reports are those of `now` when the queue is empty.
    dropped: bool,
    /// Instants of the timer up to this one have a report, or need none.
    timer_from: u64,
    /// OA time at which OAG was disabled, until the reports before it are written.
    stop_at: Option<u64>,
    /// The writes that have connected signals since the network was switched on.
    writes: Writes,
    /// OASTATUS bits of events since the last call of [`State::take_flags`].
    flags: Flags,
}

/// What is to be shown in OASTATUS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// Number of reports that were not made.
    pub lost: u64,
    /// More were due than the buffer holds.
    pub overflow: bool,
    /// A trigger was dropped.
    pub triggers: bool,
}

impl State {
    fn new(facts: &'static ObservationFacts) -> Self {
        State {
            facts,
            now: Counters::new(facts),
            awake_before: Some(0),
            replay: Counters::new(facts),
            queue: Queue::default(),
            dropped: false,
            timer_from: 0,
            stop_at: None,
            writes: Writes::default(),
            flags: Flags::default(),
        }
    }

    /// Resets all but what the counts of contexts on engines need: time, clocks and the card's activity.
    fn reset(&mut self) {
        let fresh = State::new(self.facts);
        let now = self.now.after_reset();
        *self = State { now, awake_before: self.awake_before, ..fresh };
    }

    /// Computes the counters up to `time`, at which the GT was awake for `awake` ticks.
    pub fn settle(&mut self, time: u64, awake: u64) {
        if let Some(before) = &mut self.awake_before {
            let passed = awake.saturating_sub(*before);
            *before = awake.max(*before);
            self.now.advance(passed);
            self.now.at = self.now.at.max(time);
        } else {
            self.now.settle(time);
        }
    }

    /// The card's activity is noted from now on. The counters must be settled.
    pub fn begin(&mut self, activity: Activity) {
        if self.awake_before.take().is_some() {
            self.now.activity = activity;
        }
    }

    /// The card's activity is no longer noted. The counters must be settled; the GT was awake for `awake`
    /// ticks.
    pub fn end(&mut self, awake: u64) {
        if self.awake_before.is_none() {
            self.awake_before = Some(awake);
            self.now.activity = Activity { ratio: self.now.activity.ratio, ..Activity::default() };
        }
    }

    /// The frequency while the activity is not noted. The counters must be settled.
    pub fn set_idle_ratio(&mut self, ratio: u32) {
        if self.awake_before.is_some() {
            self.now.activity.ratio = ratio;
        }
    }

    /// The card's activity at `time`.
    pub fn note(&mut self, time: u64, activity: Activity) {
        if self.awake_before.is_none() && self.now.activity != activity {
            let time = self.advance_to(time);
            self.now.activity = activity;
            self.push(time, Event::Activity(activity));
        }
    }

    /// A frequency was requested at `time`, and does not differ from the one before.
    pub fn note_request(&mut self, time: u64) {
        let time = self.advance_to(time);
        self.push(time, Event::Request);
    }

    /// A setting changes at `time`. The counters must be settled.
    pub fn set(&mut self, time: u64, setting: Setting) {
        let time = self.advance_to(time);
        self.now.set(setting);
        if self.now.enabled {
            self.push(time, Event::Setting(setting));
        }
    }

    /// The network is switched on or off at `time`.
    pub fn switch_network(&mut self, time: u64, on: bool) {
        self.writes = Writes::default();
        self.set(time, Setting::Network(on));
        self.connect(time, None);
    }

    /// NOA_WRITE of the card with this die is written at `time`.
    pub fn write_network(&mut self, time: u64, die: &str, value: u32) {
        self.writes = self.writes.then(value);
        let (node, data) = (value >> 16, value & 0xffff);
        let is_of = |known: &str| known == die;
        let pattern = self.facts.patterns.iter().find(|it| is_of(it.die) && u32::from(it.node) == node);
        if let Some(pattern) = pattern {
            self.set(time, Setting::Pattern(u32::from(pattern.data) == data));
        }
        let engines = self.facts.signals.iter().find(|it| is_of(it.die) && it.writes == self.writes);
        self.connect(time, engines);
    }

    fn connect(&mut self, time: u64, engines: Option<&'static EngineSignals>) {
        if self.now.settings.engines != engines {
            self.set(time, Setting::Engines(engines));
        }
    }

    /// Requests a report at `time`.
    pub fn trigger(&mut self, time: u64, trigger: Trigger) {
        let time = self.advance_to(time);
        self.push(time, Event::Report(trigger));
    }

    /// Settles the counters to `time`, which is that of the last event at least: times do not decrease.
    fn advance_to(&mut self, time: u64) -> u64 {
        let time = time.max(self.now.at);
        if self.awake_before.is_none() {
            self.now.settle(time);
        }
        time
    }

    fn push(&mut self, time: u64, event: Event) {
        if !self.now.enabled || self.stop_at.is_some() {
            return;
        }
        let added = if self.dropped { Added::Full } else { self.queue.push(time, event) };
        match (added, event) {
            (Added::Waits, _) => {}
            (Added::TooManyTriggers, _) => self.lose(Flags { triggers: true, lost: 1, ..Flags::default() }),
            (Added::Full, Event::Report(_)) => self.lose(Flags { lost: 1, ..Flags::default() }),
            (Added::Full, _) => self.dropped = true,
        }
    }

    fn lose(&mut self, flags: Flags) {
        self.flags.lost = self.flags.lost.saturating_add(flags.lost);
        self.flags.overflow |= flags.overflow;
        self.flags.triggers |= flags.triggers;
    }

    /// Counts what has been done, for earlier reports that are not written yet too: it is known only afterwards.
    pub fn count(&mut self, count: impl Fn(&mut Counters)) {
        count(&mut self.now);
        count(&mut self.replay);
    }

    /// Changes all counters, those of earlier reports too.
    pub fn change_values(&mut self, change: impl Fn(&mut Values)) {
        change(&mut self.now.values);
        change(&mut self.replay.values);
    }

    /// Enables OAG at `time`, of which the counters must be settled. What waits from before is dropped.
    pub fn enable(&mut self, time: u64) {
        self.now.enabled = true;
        self.stop_at = None;
        self.queue.clear();
        self.dropped = false;
        self.replay = self.now.clone();
        self.timer_from = time;
    }

    /// Disables OAG at `time`. It remains enabled until the reports before it have been taken.
    pub fn disable(&mut self, time: u64) {
        let time = self.advance_to(time);
        if self.now.enabled {
            self.stop_at.get_or_insert(time);
        }
    }

    /// Ends OAG's work without the reports that are left. Returns how many events and instants have none.
    pub fn abandon(&mut self) {
        if self.first_due().is_some() {
            self.lose(Flags { lost: 1, ..Flags::default() });
        }
        self.finish();
    }

    /// Ends a disable whose reports were taken.
    fn finish(&mut self) {
        self.now.enabled = false;
        self.replay.enabled = false;
        self.stop_at = None;
        self.queue.clear();
        self.dropped = false;
    }

    /// Returns whether OAG is enabled.
    pub fn enabled(&self) -> bool {
        self.now.enabled
    }

    /// Returns whether OAG was disabled, and reports from before are left.
    pub fn stopping(&self) -> bool {
        self.stop_at.is_some()
    }

    /// Takes what is to be shown in OASTATUS.
    pub fn take_flags(&mut self) -> Flags {
        std::mem::take(&mut self.flags)
    }

    /// The next instant of the timer that needs a report.
    fn next_instant(&self) -> Option<u64> {
        let exponent = self.replay.settings.exponent().filter(|_| self.replay.enabled && self.replay.activity.awake)?;
        Some(timer::next(exponent, self.timer_from))
    }

    /// OA time at which something is due: an instant of the timer, an event or the end of a disable.
    pub fn first_due(&self) -> Option<u64> {
        if !self.replay.enabled {
            return None;
        }
        let event = self.queue.first().map(|timed| timed.at);
        [self.next_instant(), event, self.stop_at].into_iter().flatten().min()
    }

    /// Returns whether a report or an event is due before or at `time`.
    fn is_due(&self, time: u64) -> bool {
        self.first_due().is_some_and(|due| due <= time)
    }

    /// Executes events and instants up to OA time `until`, and returns the next report with the counters at its time. `None`:
    /// none is due. `most`: number of reports that the buffer holds; older ones are skipped.
    pub fn next_report(&mut self, until: u64, debug: OaDebug, most: u64) -> Option<Due> {
        let until = self.stop_at.map_or(until, |stop| stop.min(until));
        while self.is_due(until) {
            let event = self.queue.first().filter(|event| event.at <= until);
            let instant = self.next_instant().filter(|instant| *instant <= until);
            let trigger = match (event, instant) {
                (event, Some(instant)) if event.is_none_or(|event| instant <= event.at) => {
                    self.timer_report(instant, event.map_or(until, |event| event.at), most)
                }
                (Some(event), _) => self.execute(event, debug),
                _ => break,
            };
            if let Some(trigger) = trigger {
                let Counters { at, ticks, activity, .. } = self.replay;
                return Some(Due { at, trigger, ratio: activity.ratio, ticks });
            }
        }
        if self.stop_at.is_some_and(|stop| stop <= until) {
            self.finish();
        } else if self.dropped && until >= self.now.at {
            self.dropped = false;
            self.replay = self.now.clone();
            self.timer_from = self.timer_from.max(self.now.at);
        }
        None
    }

    /// Counters at the time of the last report.
    pub fn reported(&self) -> &Values {
        &self.replay.values
    }

    /// Settles to an instant of the timer. If more instants are due before `until`, to which no event is due, than the buffer
    /// holds, the older ones are skipped.
    fn timer_report(&mut self, instant: u64, until: u64, most: u64) -> Option<Trigger> {
        let exponent = self.replay.settings.exponent()?;
        let period = timer::period(exponent);
        let behind = until.saturating_sub(instant).checked_div(period).unwrap_or(0);
        let skipped = behind.saturating_sub(most);
        let instant = instant.saturating_add(skipped.saturating_mul(period));
        if skipped != 0 {
            self.lose(Flags { lost: skipped, overflow: true, ..Flags::default() });
        }
        if exponent < timer::THINNED {
            self.lose(Flags { lost: 1, ..Flags::default() });
        }
        self.timer_from = instant;
        self.replay.settle(instant);
        Some(Trigger { reason: reason::TIMER, source: 0, context: 0, valid: false })
    }

    /// Executes the first event. Returns what requests a report.
    fn execute(&mut self, Timed { at, event }: Timed, debug: OaDebug) -> Option<Trigger> {
        self.queue.pop();
        self.replay.settle(at);
        let because = |reason| Some(Trigger { reason, source: 0, context: 0, valid: false });
        match event {
            Event::Activity(activity) => {
                let before = std::mem::replace(&mut self.replay.activity, activity);
                if activity.awake && !before.awake {
                    self.timer_from = self.timer_from.max(at);
                }
                if before.awake && !activity.awake && !debug.no_sleep_reports() {
                    return because(reason::SLEEP);
                }
                let changed = before.ratio != activity.ratio && !debug.no_frequency_reports();
                if changed { because(reason::FREQUENCY) } else { None }
            }
            Event::Request if debug.no_frequency_reports() => None,
            Event::Request => because(reason::FREQUENCY),
            Event::Setting(setting) => {
                self.replay.set(setting);
                if matches!(setting, Setting::Control(_)) {
                    self.timer_from = self.timer_from.max(at);
                }
                None
            }
            Event::Report(trigger) => Some(trigger),
        }
    }
}
