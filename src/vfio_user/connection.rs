// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Why a connection ends, why an access by messages fails, and how long a thread waits for the client.
#![warn(clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use std::io;
use std::time::{Duration, Instant};

use super::budget::POLL_INTERVAL;

/// Why a connection ended.
#[derive(Debug)]
pub enum Closed {
    /// The client closed the connection between two messages.
    ByClient,
    /// The server is stopping.
    Stopped,
    /// The client has not negotiated the version, and another client connects.
    GaveWay,
    /// The stream is broken: a read or write failed, or it ended inside a message.
    Broken(io::Error),
}

/// Errors of a DMA message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DmaError {
    /// The client has disconnected, does not reply, or is not asked because it has used up its budget. The access may
    /// still be performed, and can be retried.
    #[error("the client does not reply")]
    NoAnswer,
    /// The client replied with this error number; QEMU replies ENODEV while bus mastering is off.
    #[error("the client replied with errno {0}")]
    Refused(u32),
    /// Called on the connection's own thread, which must receive the reply.
    #[error("called on the thread that receives the client's replies")]
    WrongThread,
}

/// Returns the remaining time that a thread may wait for the client. Called at every [`POLL_INTERVAL`] interval of a wait.
pub type TimeLeft<'a> = dyn Fn(Instant) -> Duration + 'a;

/// Returns a wait that ends after `time` from now.
pub fn for_a_time(time: Duration) -> impl Fn(Instant) -> Duration {
    let begun = Instant::now();
    move |now| time.saturating_sub(now.saturating_duration_since(begun))
}

/// Returns the time until the next check; `None` if the time is over.
pub fn next_poll(time_left: &TimeLeft<'_>) -> Option<Duration> {
    Some(time_left(Instant::now()).min(POLL_INTERVAL)).filter(|timeout| !timeout.is_zero())
}
