// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Races: several vCPUs access the same functions during resets and FLRs. Work in progress completes or is dropped as a
//! whole, other functions are not affected, there is no deadlock, and afterwards a new driver finds the card in reset
//! state.
//!
//! - `interleaved` executes single accesses of several actors and single steps of the card on one thread, in an order
//!   determined by a seed.
//! - `threads` runs drivers, vCPUs, the card's workers and a host that resets functions concurrently.
//! - `registers` writes different bits of one register from several vCPUs.
//! - `workers` executes parts of one step on several threads while the memory that they access is taken away.
//! - `invalidations` invalidates translations of one function, and resets it, while a step of another one is blocked.
//!
//! Environment: `ARCTIC_RACES_SEED` is the seed of the first case of `interleaved` (default 1), `ARCTIC_RACES_CASES` their
//! number (default: each test has its own); `ARCTIC_RACES_SEED=n ARCTIC_RACES_CASES=1` repeats case n. `ARCTIC_RACES_MS`
//! is the duration of each test of `threads` and `workers` that runs for a time (default 1500). Interleavings within the
//! lock-free types are covered by `xehpg/tests/loom`.
#![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

mod driver;
mod interleaved;
mod invalidations;
mod registers;
mod threads;
mod workers;
