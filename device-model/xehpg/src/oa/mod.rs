// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Observation (OA): counters of the card's work, and reports of them in memory.
//!
//! OAG is one unit of the card. It counts the work of all engines, and writes reports to a ring buffer in the GGTT: by a timer, at
//! context switches of the render engine, at changes of the frequency, and at writes of trigger registers. OAR and OAC are
//! part of the render engine and of a compute engine: counters of the running context, which MI_REPORT_PERF_COUNT writes.
//!
//! What happens to OAG is an event with its time ([`queue`]). Counters are computed up to the time of each event ([`counters`]).
//! Reports are written later, by a step of the unit, by an engine's step for a context of the PF, or by an access to a control
//! register: the events are then executed a second time, in the order of their times and together with the instants of the
//! timer, on a second copy of the counters ([`state`]). So a report has the values of its instant, however late it is written.
//!
//! The registers are in `registers/observation.rs`, their effects in `gt/observation.rs`.
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects, clippy::indexing_slicing))]

pub mod buffer;
pub mod cec;
pub mod context;
pub mod counters;
pub mod facts;
pub mod flexible;
pub mod format;
pub mod network;
pub mod queue;
pub mod state;
#[cfg(test)]
mod tests;
pub mod timer;
pub mod values;
pub mod work;
pub mod writer;

pub use facts::{ObservationFacts, XE_HPG_OBSERVATION};
pub use state::Observation;
