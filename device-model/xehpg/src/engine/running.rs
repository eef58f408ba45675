// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! State of a loaded context between steps.

use super::image::{Cursor, Image};
use super::lrc::Lrc;
use super::stream::{IdleLoopDetector, LEVELS, ParserState};
use super::walkers::PendingWalker;
use super::watchdog_counter::Watchdog;
use super::{Halt, Load};
use crate::blitter::Blit;
use crate::compute::{ComputeState, WalkerWords};
use crate::host::RetryTime;
use crate::interrupts::memirq::Report;
use crate::memory::BegunAtomic;

/// Phase of a loaded context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The image has not been read yet.
    Restore,
    /// Commands are executed.
    Run,
}

/// A check of a semaphore: address of the wait command, and number of signals before the check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SemaphoreCheck {
    pub at: u64,
    pub signals: u64,
}

/// A restore in progress.
pub(super) struct Restoring {
    pub image: Image,
    pub next: Cursor,
    /// Values written to BB_STACK_WRITE_PORT: low and high dwords alternating.
    pub stack: [u32; 2 * LEVELS],
    pub pushed: usize,
    /// The interrupt mask, if the image loaded one.
    pub mask: Option<u32>,
    /// The walker that was in progress when the image was saved.
    pub walker: Option<WalkerWords>,
    pub inhibited: bool,
}

/// State of a loaded context between steps.
pub(super) struct Running {
    pub load: Load,
    pub lrc: Lrc,
    pub position: ParserState,
    pub halted: Option<Halt>,
    /// For how long steps in a row have ended with an unanswered access, by the card's clock.
    pub retry_time: RetryTime,
    /// The atomic operation by messages that is to be repeated.
    pub begun_atomic: BegunAtomic,
    pub preempt: bool,
    /// Ring head at the last check for an automatic head report.
    pub head_seen: Option<u32>,
    /// Header of the unsatisfied wait at which the last step ended.
    pub waits_at: Option<u32>,
    pub tail_moved: bool,
    pub phase: Phase,
    /// State of the restore while an indirect context batch runs.
    pub restoring: Option<Box<Restoring>>,
    /// TIMESTAMP at the end of the restore.
    pub restored_at: u32,
    /// Address from which the image loads the interrupt mask. Saved with the image.
    pub mask_address: u64,
    /// State of the compute pipeline.
    pub compute: ComputeState,
    pub arbitration: bool,
    pub loops: IdleLoopDetector,
    /// The operation of the last command that has begun and is not complete. It is resumed before the next command.
    pub pending: Option<Pending>,
    /// The walker that the restore has resumed, while a workaround batch runs before it.
    pub resumed: Option<Box<PendingWalker>>,
    /// The watchdog counter while it is running (V8-165, V8-167).
    pub watchdog: Option<Watchdog>,
    /// Earliest time at which the watchdog can end the wait of the last step, in ns of the card's clock.
    pub wait_ends: Option<u64>,
    /// A command was skipped in a batch of user space.
    pub skipped: bool,
    /// The last check of a semaphore that was not satisfied.
    pub semaphore: Option<SemaphoreCheck>,
    /// Target of memory-based interrupts, if the image enables them.
    pub report: Option<Report>,
    /// The wait command already reported to trace subscribers: its address, and the value of
    /// [`crate::trace::Recorder::followers`] at that time.
    pub last_traced: Option<(u64, u32)>,
}

/// An operation of a command that takes more than one step.
pub enum Pending {
    /// A command of the copy engine.
    Blit(Blit),
    /// COMPUTE_WALKER.
    Walker(Box<PendingWalker>),
}

impl Running {
    pub fn new(load: Load) -> Self {
        Running {
            load,
            lrc: Lrc::new(load.descriptor),
            position: ParserState::default(),
            halted: None,
            retry_time: RetryTime::default(),
            begun_atomic: BegunAtomic::default(),
            preempt: false,
            head_seen: None,
            waits_at: None,
            tail_moved: false,
            phase: Phase::Restore,
            restoring: None,
            restored_at: 0,
            mask_address: 0,
            compute: ComputeState::default(),
            arbitration: true,
            loops: IdleLoopDetector::default(),
            pending: None,
            resumed: None,
            watchdog: None,
            wait_ends: None,
            skipped: false,
            semaphore: None,
            report: None,
            last_traced: None,
        }
    }

    /// Returns whether the image has been read. Otherwise there is no state to save.
    pub fn restored(&self) -> bool {
        self.phase == Phase::Run
    }
}
