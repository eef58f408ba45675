// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Event tracing of a running card: subscribers receive the events of engines, GuC and interrupts in order. Without
//! subscribers the cost is one flag check per step. Queues are bounded: a subscriber that does not keep up loses events
//! and receives the number of lost events; the card never blocks on a subscriber.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::command::Origin;
use crate::host::{Clock, Function, InterruptSink};
use crate::sync::IgnorePoison;

/// Maximum number of queued events per subscriber.
const MOST_EVENTS: usize = 1 << 16;
/// Maximum number of queued dwords of commands and messages per subscriber.
const MOST_DWORDS: usize = 1 << 20;
/// Number of dwords of a command that an event contains.
pub const KEPT_DWORDS: usize = 64;

/// One trace event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Event {
    /// Timestamp in ns of the card's clock.
    pub ns: u64,
    /// Function that the event belongs to: 0 for the PF.
    pub function: u8,
    /// Driver name of the engine that the event belongs to, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<Cow<'static, str>>,
    /// The event's type and data.
    #[serde(flatten)]
    pub what: EventKind,
}

/// Type and data of an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// A context was submitted to an engine.
    Load {
        /// The scheduler's identifier of the context.
        context: u32,
        /// The context descriptor.
        descriptor: u64,
    },
    /// The engine has restored the context image.
    Restore {
        /// RING_START.
        ring: u32,
        /// Offset in RING_HEAD.
        head: u32,
        /// Offset in RING_TAIL.
        tail: u32,
        /// Address of the batch in which execution resumes, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        batch: Option<u64>,
    },
    /// The running context was resubmitted: its RING_TAIL was read again.
    LiteRestore {
        /// Offset in RING_TAIL.
        tail: u32,
    },
    /// A command is executed.
    Command {
        /// Address of the command.
        address: u64,
        /// The address is in the PPGTT, not in the GGTT.
        ppgtt: bool,
        /// Batch nesting level: 0 for the ring.
        level: u8,
        /// Length of the command in dwords.
        length: u32,
        /// The command's first dwords.
        dwords: Vec<u32>,
    },
    /// The previous command is not executed, because the model has no unit for it.
    Skipped {
        /// Name of the command.
        command: Cow<'static, str>,
        /// The kind of batch that contains it.
        origin: Origin,
        /// The context is stopped at the command.
        stopped: bool,
    },
    /// A walker has ended, or its context has left the engine before.
    Walker {
        /// Virtual address of its kernel.
        kernel: u64,
        /// Groups that it has executed since it was begun on the card.
        groups: u64,
        /// Instructions.
        instructions: u64,
        /// Threads that have ended at an instruction that cannot be executed.
        faults: u64,
        /// Accesses outside of a surface.
        outside: u64,
        /// Of a walker that has not ended, the instruction at which a thread is: group, thread, address and disassembly.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<String>,
    },
    /// The previous command waits for memory, a register or an event.
    Wait,
    /// The context was unloaded from the engine, or remains loaded and cannot make progress.
    Stop {
        /// Reason of the stop.
        outcome: String,
        /// Offset in RING_HEAD.
        head: u32,
    },
    /// The engine reports a context switch.
    Switch {
        /// The context status quadword.
        status: u64,
    },
    /// A stream of counters begins or ends.
    Stream {
        /// Name of the unit that writes it.
        unit: Cow<'static, str>,
        /// It begins.
        enabled: bool,
        /// Distance of two reports of the timer in nanoseconds, if it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        period_ns: Option<u64>,
        /// Reports written since power-on.
        written: u64,
        /// Reports that were due since power-on and not written.
        lost: u64,
    },
    /// The engine was reset.
    Reset,
    /// The engine raised an interrupt.
    Interrupt {
        /// Bits as in the engine's interrupt registers.
        bits: u16,
    },
    /// A message-signalled interrupt to the function's VMM.
    Msi {
        /// MSI vector.
        vector: u16,
    },
    /// A message between host and GuC.
    Guc {
        /// Sent through the mailbox registers; otherwise through the CT buffers.
        mailbox: bool,
        /// Fence of the CT header.
        fence: u16,
        /// HXG dwords of the message.
        dwords: Vec<u32>,
    },
    /// A page of the function's doorbell window was accessed.
    Doorbell {
        /// Offset of the page in the BAR with the registers.
        page: u64,
        /// The first physical doorbell that watches the page; absent if none does.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        doorbell: Option<u8>,
        /// The ring sends a message; otherwise an earlier one has not been served.
        notifies: bool,
    },
    /// Cached translations were invalidated: of the engine, or without one of the function.
    TlbInvalidation {
        /// What invalidated them: a command, a register, or a request by its kind.
        by: Cow<'static, str>,
        /// Translations of all functions were invalidated.
        all: bool,
    },
    /// Events were dropped because the subscriber did not keep up.
    Lost {
        /// Number of dropped events.
        events: u64,
    },
}

impl EventKind {
    fn dwords(&self) -> usize {
        match self {
            EventKind::Command { dwords, .. } | EventKind::Guc { dwords, .. } => dwords.len(),
            _ => 0,
        }
    }
}

/// Selects the events that a subscriber receives; the default is all events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Filter {
    /// Names of engines; empty for all. Events without an engine always pass.
    pub engines: Vec<String>,
    /// Function numbers; empty for all.
    pub functions: Vec<u8>,
}

impl Filter {
    /// Returns whether the subscriber receives `event`.
    pub fn passes(&self, event: &Event) -> bool {
        self.selects(event.function, event.engine.as_deref())
    }

    /// Returns whether what belongs to this function and, if any, to this engine is selected.
    pub fn selects(&self, function: u8, engine: Option<&str>) -> bool {
        let selected = |engine: &str| self.engines.is_empty() || self.engines.iter().any(|name| name == engine);
        engine.is_none_or(selected) && (self.functions.is_empty() || self.functions.contains(&function))
    }
}

#[derive(Default)]
struct Queue {
    events: VecDeque<Event>,
    dwords: usize,
    lost: u64,
}

struct Mailbox {
    filter: Filter,
    queue: Mutex<Queue>,
    filled: Condvar,
}

impl Mailbox {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().ignore_poison()
    }

    fn put(&self, event: &Event) {
        if !self.filter.passes(event) {
            return;
        }
        let mut queue = self.queue();
        if queue.events.len() >= MOST_EVENTS || queue.dwords.saturating_add(event.what.dwords()) > MOST_DWORDS {
            queue.lost = queue.lost.saturating_add(1);
            return;
        }
        if queue.lost != 0 {
            let events = std::mem::take(&mut queue.lost);
            queue.events.push_back(Event { engine: None, what: EventKind::Lost { events }, ..event.clone() });
        }
        queue.dwords = queue.dwords.saturating_add(event.what.dwords());
        queue.events.push_back(event.clone());
        self.filled.notify_one();
    }
}

/// A subscription to the card's events; unsubscribes on drop.
pub struct Subscription {
    recorder: Arc<Recorder>,
    mailbox: Arc<Mailbox>,
}

impl Subscription {
    /// Returns the events since the last call, oldest first. Blocks for up to `timeout` if there is none.
    pub fn take(&self, timeout: Duration) -> Vec<Event> {
        let queue = self.mailbox.queue();
        let waited = self.mailbox.filled.wait_timeout_while(queue, timeout, |queue| queue.events.is_empty());
        let (mut queue, _) = waited.ignore_poison();
        queue.dwords = 0;
        std::mem::take(&mut queue.events).into()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut mailboxes = self.recorder.mailboxes();
        mailboxes.retain(|mailbox| !Arc::ptr_eq(mailbox, &self.mailbox));
        self.recorder.on.store(!mailboxes.is_empty(), Ordering::Relaxed);
    }
}

/// Distributes the events of the card's units to the subscribers.
pub struct Recorder {
    on: AtomicBool,
    followers: AtomicU32,
    clock: Arc<dyn Clock>,
    mailboxes: Mutex<Vec<Arc<Mailbox>>>,
}

impl Recorder {
    /// Returns a recorder without subscribers.
    pub fn new(clock: Arc<dyn Clock>) -> Arc<Self> {
        Arc::new(Recorder {
            on: AtomicBool::new(false),
            followers: AtomicU32::new(0),
            clock,
            mailboxes: Mutex::default(),
        })
    }

    fn mailboxes(&self) -> MutexGuard<'_, Vec<Arc<Mailbox>>> {
        self.mailboxes.lock().ignore_poison()
    }

    /// Subscribes to the card's events from now on.
    pub fn subscribe(self: &Arc<Self>, filter: Filter) -> Subscription {
        let mailbox = Arc::new(Mailbox { filter, queue: Mutex::default(), filled: Condvar::new() });
        self.mailboxes().push(mailbox.clone());
        self.followers.fetch_add(1, Ordering::Relaxed);
        self.on.store(true, Ordering::Relaxed);
        Subscription { recorder: self.clone(), mailbox }
    }

    /// Returns whether there is a subscriber.
    #[inline]
    pub fn on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// Total number of subscriptions made so far. A change indicates a new subscriber, which has not received earlier
    /// events.
    pub fn followers(&self) -> u32 {
        self.followers.load(Ordering::Relaxed)
    }

    /// Records an event of no engine if there is a subscriber; `what` is not called otherwise.
    #[inline]
    pub fn record(&self, function: Function, what: impl FnOnce() -> EventKind) {
        if self.on() {
            self.put(function, None, what());
        }
    }

    /// Records an event of an engine if there is a subscriber; `what`, which returns the engine's name and the event, is
    /// not called otherwise.
    #[inline]
    pub fn record_of_engine(&self, function: Function, what: impl FnOnce() -> (&'static str, EventKind)) {
        if self.on() {
            let (engine, what) = what();
            self.put(function, Some(engine), what);
        }
    }

    #[cold]
    fn put(&self, function: Function, engine: Option<&'static str>, what: EventKind) {
        let engine = engine.map(Cow::Borrowed);
        let event = Event { ns: self.clock.now(), function: function.number(), engine, what };
        for mailbox in self.mailboxes().iter() {
            mailbox.put(&event);
        }
    }
}

/// An interrupt sink that also records each interrupt as an event.
pub struct TracingSink {
    /// Receiver of the interrupts.
    pub sink: Arc<dyn InterruptSink>,
    /// Recorder of the events.
    pub trace: Arc<Recorder>,
}

impl InterruptSink for TracingSink {
    fn raise(&self, function: Function, vector: u16) {
        self.trace.record(function, || EventKind::Msi { vector });
        self.sink.raise(function, vector);
    }

    fn set_line(&self, function: Function, requested: bool) {
        self.sink.set_line(function, requested);
    }

    fn fatal_error(&self, function: Function) {
        self.sink.fatal_error(function);
    }

    fn mappings_changed(&self, function: Function, bar: u8) {
        self.sink.mappings_changed(function, bar);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::ManualClock;

    fn recorder() -> Arc<Recorder> {
        Recorder::new(Arc::new(ManualClock::default()))
    }

    const AT_ONCE: Duration = Duration::ZERO;

    #[test]
    fn events_without_subscribers_are_not_constructed() {
        let recorder = recorder();
        recorder.record(Function::PF, || unreachable!());
        let all = recorder.subscribe(Filter::default());
        recorder.record(Function::PF, || EventKind::Wait);
        assert_eq!(all.take(AT_ONCE).len(), 1);
        drop(all);
        assert!(!recorder.on());
    }

    #[test]
    fn subscriber_filters_apply() {
        let recorder = recorder();
        let copies = recorder.subscribe(Filter { engines: vec!["bcs0".into()], functions: vec![1] });
        recorder.record_of_engine(Function::new(1).unwrap(), || ("bcs0", EventKind::Reset));
        recorder.record_of_engine(Function::new(2).unwrap(), || ("bcs0", EventKind::Reset));
        recorder.record_of_engine(Function::new(1).unwrap(), || ("rcs0", EventKind::Reset));
        recorder.record(Function::new(1).unwrap(), || EventKind::Msi { vector: 0 });
        let received: Vec<_> = copies.take(AT_ONCE).into_iter().map(|event| event.what).collect();
        assert_eq!(received, [EventKind::Reset, EventKind::Msi { vector: 0 }]);
    }

    #[test]
    fn a_slow_subscriber_learns_the_number_of_lost_events() {
        let recorder = recorder();
        let slow = recorder.subscribe(Filter::default());
        for _ in 0..MOST_EVENTS + 5 {
            recorder.record(Function::PF, || EventKind::Wait);
        }
        assert_eq!(slow.take(AT_ONCE).len(), MOST_EVENTS);
        recorder.record(Function::PF, || EventKind::Reset);
        let received: Vec<_> = slow.take(AT_ONCE).into_iter().map(|event| event.what).collect();
        assert_eq!(received, [EventKind::Lost { events: 5 }, EventKind::Reset]);
        for _ in 0..3 * MOST_DWORDS / 64 {
            recorder.record(Function::PF, || EventKind::Guc { mailbox: false, fence: 0, dwords: vec![0; 64] });
        }
        assert_eq!(slow.take(AT_ONCE).len(), MOST_DWORDS / 64);
    }
}
