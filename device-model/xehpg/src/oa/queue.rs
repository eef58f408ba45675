// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Events of OAG that no report has been written for yet, in the order of their times.

use std::collections::VecDeque;

use super::counters::{Activity, Setting};

/// Most triggers that wait. A further one is dropped and sets a bit of OASTATUS.
pub const MOST_TRIGGERS: usize = 64;
/// Most events that wait.
const MOST_EVENTS: usize = 512;

/// What happens to OAG.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The card's activity is another one from now on.
    Activity(Activity),
    /// A frequency was requested.
    Request,
    /// A register that decides about counters or the timer was written.
    Setting(Setting),
    /// A report is to be made.
    Report(Trigger),
}

/// What requests a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trigger {
    /// Bits of [`super::format::reason`].
    pub reason: u8,
    /// Source in RPT_ID.
    pub source: u8,
    /// CTX_ID.
    pub context: u32,
    /// CTX_ID is that of a context.
    pub valid: bool,
}

/// An event with its OA time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timed {
    /// OA time.
    pub at: u64,
    /// The event.
    pub event: Event,
}

/// Result of adding an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// It waits.
    Waits,
    /// Too many triggers wait. The event was dropped.
    TooManyTriggers,
    /// Too many events wait. The event was dropped.
    Full,
}

/// The events that wait. Never grows after its creation.
pub struct Queue {
    events: VecDeque<Timed>,
    triggers: usize,
}

impl Default for Queue {
    fn default() -> Self {
        Queue { events: VecDeque::with_capacity(MOST_EVENTS), triggers: 0 }
    }
}

impl Queue {
    /// Adds an event.
    pub fn push(&mut self, at: u64, event: Event) -> Added {
        if self.events.len() >= MOST_EVENTS {
            return Added::Full;
        }
        if matches!(event, Event::Report(_)) {
            if self.triggers >= MOST_TRIGGERS {
                return Added::TooManyTriggers;
            }
            self.triggers = self.triggers.saturating_add(1);
        }
        self.events.push_back(Timed { at, event });
        Added::Waits
    }

    /// The first event.
    pub fn first(&self) -> Option<Timed> {
        self.events.front().copied()
    }

    /// Removes the first event.
    pub fn pop(&mut self) {
        if let Some(Timed { event: Event::Report(_), .. }) = self.events.pop_front() {
            self.triggers = self.triggers.saturating_sub(1);
        }
    }

    /// Removes all events.
    pub fn clear(&mut self) {
        self.events.clear();
        self.triggers = 0;
    }
}
