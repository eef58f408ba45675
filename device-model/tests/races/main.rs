// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Races: several vCPUs access the same functions during resets and FLRs. Work in progress completes or is dropped as a
//! whole, other functions are not affected, there is no deadlock, and afterwards a new driver finds the card in reset
//! state.
//!
//! `interleaved` executes single accesses of several actors and single steps of the card on one thread, in an order
//! determined by a seed; `ARCTIC_RACES_SEED` reproduces a failure. `threads` runs them concurrently for
//! `ARCTIC_RACES_MS` milliseconds. Races within one access are covered by `xehpg/tests/loom`.
#![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

mod driver;
mod interleaved;
mod invalidations;
mod registers;
mod threads;
mod workers;
