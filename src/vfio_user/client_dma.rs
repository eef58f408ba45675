// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Guest memory without a file descriptor: DMA_READ and DMA_WRITE messages to the client.
#![warn(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use arctic_device_model::host::Function;
use arctic_device_model::sync::IgnorePoison;

use super::budget::{ANSWER, Budget, Moment, StepBudget, run_delay};
use super::channel::Sender;
use super::connection::{DmaError, TimeLeft, for_a_time};
use super::inbox::{Inbox, Reply};
use super::quota::Ledger;
use super::wire::{Builder, DmaAccess, Header, command};

/// Bytes before the data.
const ACCESS_LEN: usize = size_of::<DmaAccess>();

/// Remedy for slow accesses to guest memory.
const REMEDY: &str = "give QEMU -object memory-backend-memfd,id=ram,size=SIZE,share=on and -machine memory-backend=ram";

/// The client as the provider of guest memory. Engine threads send requests; they or the connection's thread receive the
/// replies (`inbox`).
pub struct ClientDma {
    sender: Sender,
    inbox: Arc<Inbox>,
    /// The connection's thread.
    receiver: ThreadId,
    max_data: usize,
    budget: Mutex<Budget>,
    ledger: Arc<Ledger>,
    function: Function,
    /// The warning about slow access to the client's memory was logged.
    slow: AtomicBool,
    /// The warning about an exhausted budget was logged.
    exhausted: AtomicBool,
}

impl ClientDma {
    /// Creates the state for the client of `function`, which accepts at most `max_data` bytes per message. Must be
    /// called on the thread that receives the client's messages. `ledger` decides whether others have to wait.
    pub(crate) fn new(
        sender: Sender,
        inbox: Arc<Inbox>,
        max_data: usize,
        ledger: Arc<Ledger>,
        function: Function,
    ) -> Self {
        ClientDma {
            sender,
            inbox,
            receiver: thread::current().id(),
            max_data: max_data.max(1),
            budget: Mutex::new(Budget::new(Instant::now())),
            ledger,
            function,
            slow: AtomicBool::new(false),
            exhausted: AtomicBool::new(false),
        }
    }

    /// Reads `data` from guest address `iova`, within the client's budget and that of the step.
    pub fn read(&self, iova: u64, data: &mut [u8], step: &StepBudget) -> Result<(), DmaError> {
        let mut at = iova;
        for piece in data.chunks_mut(self.max_data) {
            let reply = self.request_within_budget(command::DMA_READ, at, piece.len(), &[], step)?;
            let bytes = reply.get(ACCESS_LEN..).filter(|bytes| bytes.len() == piece.len());
            piece.copy_from_slice(bytes.ok_or(DmaError::NoAnswer)?);
            at = at.wrapping_add(piece.len() as u64);
        }
        Ok(())
    }

    /// Writes `data` to guest address `iova`, within the same budgets.
    pub fn write(&self, iova: u64, data: &[u8], step: &StepBudget) -> Result<(), DmaError> {
        let mut at = iova;
        for piece in data.chunks(self.max_data) {
            self.request_within_budget(command::DMA_WRITE, at, piece.len(), piece, step)?;
            at = at.wrapping_add(piece.len() as u64);
        }
        Ok(())
    }

    /// Reads a few bytes on a thread that delays no other client; not charged to the budgets.
    pub fn read_uncharged(&self, iova: u64, data: &mut [u8]) -> Result<(), DmaError> {
        let reply = self.exchange(command::DMA_READ, iova, data.len(), &[], &for_a_time(ANSWER))?;
        let bytes = reply.get(ACCESS_LEN..).filter(|bytes| bytes.len() == data.len());
        data.copy_from_slice(bytes.ok_or(DmaError::NoAnswer)?);
        Ok(())
    }

    /// Writes a few bytes on a thread that delays no other client; not charged to the budgets.
    pub fn write_uncharged(&self, iova: u64, data: &[u8]) -> Result<(), DmaError> {
        self.exchange(command::DMA_WRITE, iova, data.len(), data, &for_a_time(ANSWER)).map(drop)
    }

    /// Returns whether this is the first call: the warning about slow access to the client's memory is logged once.
    pub(super) fn first_slow_access(&self) -> bool {
        !self.slow.swap(true, Ordering::Relaxed)
    }

    fn budget(&self) -> MutexGuard<'_, Budget> {
        self.budget.lock().ignore_poison()
    }

    /// Returns whether others have to wait for this client now.
    fn held_up(&self) -> bool {
        self.ledger.held_up(self.function)
    }

    fn warn_of_exhausted_budget(&self) {
        if !self.exhausted.swap(true, Ordering::Relaxed) {
            let name = self.function;
            log::warn!(
                "{name}: other functions have waited too long for this function's client, so accesses to its memory fail \
                 until they have not waited for some time: {REMEDY}"
            );
        }
    }

    fn request_within_budget(&self, command: u16, iova: u64, count: usize, data: &[u8], step: &StepBudget) -> Reply {
        let reply = self.request_within_limits(command, iova, count, data, step);
        if reply == Err(DmaError::NoAnswer) {
            step.set_unanswered();
        }
        reply
    }

    fn request_within_limits(&self, command: u16, iova: u64, count: usize, data: &[u8], step: &StepBudget) -> Reply {
        // Logged at the first access, not at the first section without a descriptor: QEMU sends none for firmware and for
        // the BARs of other devices, which the card does not access.
        if self.first_slow_access() {
            let name = self.function;
            log::warn!(
                "{name}: the guest's memory has no file descriptor, so each access is a message to the client, which is \
                 slow: {REMEDY}"
            );
        }
        let most = step.left().ok_or(DmaError::NoAnswer)?.min(ANSWER);
        let begun = Instant::now();
        // Read only while others wait: otherwise nothing is charged.
        let delayed = Cell::new(None);
        let moment = |now| {
            let held_up = self.held_up();
            let after = held_up.then(run_delay);
            let interval = delayed.replace(after).zip(after);
            let host_delay = interval.map_or(Duration::ZERO, |(before, after)| after.saturating_sub(before));
            Moment { now, held_up, host_delay }
        };
        if !self.budget().begin(moment(begun)) {
            self.warn_of_exhausted_budget();
            return Err(DmaError::NoAnswer);
        }
        let reply = self.exchange(command, iova, count, data, &|now| match self.budget().go_on(moment(now)) {
            true => most.saturating_sub(now.saturating_duration_since(begun)),
            false => {
                self.warn_of_exhausted_budget();
                Duration::ZERO
            }
        });
        let now = Instant::now();
        self.budget().end(moment(now));
        step.spend(now.saturating_duration_since(begun));
        reply
    }

    /// Sends a request and waits for its reply within `time_left`.
    fn exchange(&self, command: u16, iova: u64, count: usize, data: &[u8], time_left: &TimeLeft<'_>) -> Reply {
        if thread::current().id() == self.receiver {
            return Err(DmaError::WrongThread);
        }
        let id = self.inbox.enlist()?;
        let mut message = Builder::default();
        message.clear().put(&DmaAccess { address: iova.into(), count: (count as u64).into() }).bytes(data);
        let header = Header { id, command, ..Header::default() };
        let reply = match self.sender.send(message.finish(header), None, time_left) {
            Ok(()) => self.inbox.wait(id, time_left),
            Err(_) => Err(DmaError::NoAnswer),
        };
        self.inbox.forget(id);
        reply
    }

    /// Must be called when the client has disconnected. Waiting threads return immediately.
    pub(super) fn close(&self) {
        self.inbox.close();
    }
}
