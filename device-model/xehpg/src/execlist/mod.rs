// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Execlist submission: queues of context descriptors with the semantics of the hardware, and the status of every
//! context switch (V8-008, V8-010..023, V8-052..060).
//!
//! An engine has one [`Execlist`]. The host fills the submission queue through registers and loads it; the GuC model
//! submits queues of one element. [`Execlist`] selects the context to run, and [`crate::engine::Engine`] performs the
//! switch.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

pub mod buffer;
pub mod descriptor;
pub mod queue;
pub mod status;
#[cfg(test)]
mod tests;

use arctic_sriov::number::{byte, high};
use descriptor::{ContextId, Descriptor};
use queue::{ELEMENTS, Queue, SubmitPort};
use status::{ContextStatus, Detail, ExeclistStatus};

/// Immediate effect of a Load on the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loaded {
    /// The engine was idle and starts this element.
    Start(ContextStatus, u8, Descriptor),
    /// The engine was idle and remains idle because the queue is empty.
    StillIdle(ContextStatus),
    /// The running context continues as this element, with its new tail.
    Lite(ContextStatus, u8, Descriptor),
    /// The running context must leave the engine at its next preemption point. Nothing is reported until then.
    Preempt,
}

/// The execution queue of one engine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Execlist {
    pub(crate) queue: Queue,
    /// The queue has elements that have not run, or one that is running.
    valid: bool,
    /// Index of the first element that has not been examined.
    next: usize,
    /// Index of the running element.
    active: u8,
    /// Number of Loads since the running context was requested to leave; `queue` is that of the last Load (V8-019).
    loads: u8,
    instance: u8,
    /// ELSP.
    pub port: SubmitPort,
}

impl Execlist {
    /// The state of engine instance `instance` after reset.
    pub fn new(instance: u8) -> Self {
        Execlist { instance, ..Execlist::default() }
    }

    /// Resets the state: no context runs, and the queue is empty.
    pub fn reset(&mut self) {
        *self = Execlist::new(self.instance);
    }

    fn status(&self, away: ContextId, to: Option<Descriptor>, detail: Detail, new_queue: bool) -> ContextStatus {
        let to = to.map_or(ContextId::IDLE, Descriptor::id);
        ContextStatus::new(away, to, detail, new_queue, self.instance)
    }

    fn take_next(&mut self) -> Option<Descriptor> {
        let found = self.queue.valid_from(self.next);
        self.valid = found.is_some();
        let (element, descriptor) = found?;
        self.next = element.saturating_add(1);
        self.active = byte(element);
        Some(descriptor)
    }

    /// Handles a Load: `queue` immediately replaces the execution queue (V8-014, V8-018). `running` is the context on
    /// the engine; `goes_on` is true if it could continue without being saved.
    pub fn load(&mut self, queue: Queue, running: Option<Descriptor>, goes_on: bool) -> Loaded {
        (self.queue, self.next, self.valid) = (queue, 0, true);
        let Some(running) = running else {
            let first = self.take_next();
            let status = self.status(ContextId::IDLE, first, Detail::Complete, true);
            return match first {
                Some(descriptor) => Loaded::Start(status, self.active, descriptor),
                None => Loaded::StillIdle(status),
            };
        };
        let first = self.queue.valid_from(0).map(|(_, descriptor)| descriptor);
        if goes_on && let Some(new) = first.filter(|first| running.continues_as(*first)) {
            // Cancels an earlier Load for which the context has not left yet (V8-019).
            self.loads = 0;
            self.take_next();
            let status = self.status(running.id(), Some(new), Detail::Complete, true);
            return Loaded::Lite(status, self.active, new);
        }
        self.loads = self.loads.saturating_add(1);
        Loaded::Preempt
    }

    /// Handles a switch away from context `away` for the reason `detail`. Returns the status to report and the next
    /// element. A context that has left the engine is no longer in the queue (V8-017).
    pub fn switch(&mut self, away: Descriptor, detail: Detail) -> (ContextStatus, Option<(u8, Descriptor)>) {
        let new_queue = std::mem::take(&mut self.loads) != 0;
        let next = self.take_next();
        let status = self.status(away.id(), next, detail, new_queue);
        (status, next.map(|descriptor| (self.active, descriptor)))
    }

    /// Contents of EXECLIST_STATUS while `running` is on the engine.
    pub fn shown(&self, running: Option<Descriptor>, arbitration: bool) -> ExeclistStatus {
        let running = running.map_or(ExeclistStatus::new(), |descriptor| {
            let status = ExeclistStatus::new().with_active(true).with_active_element(self.active & 7);
            status.with_descriptor_high(high(descriptor.into()))
        });
        running
            .with_queue_invalid(!self.valid)
            .with_several_loads_pending(self.loads > 1)
            .with_preempt_to_idle_pending(self.loads != 0 && self.queue.valid_from(0).is_none())
            .with_queue_valid(self.valid)
            .with_queue_valid_copy(self.valid)
            .with_arbitration(arbitration)
            .with_load_pending(self.loads != 0)
    }
}

const _: () = assert!(ELEMENTS == 8, "EXECLIST_STATUS and ELSP have eight elements");
