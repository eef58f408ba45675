// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Races: several processors access the same functions, with resets and FLRs during work. Work in progress completes or
//! is dropped as a whole, other functions are not affected, there is no deadlock, and afterwards a new driver finds the
//! card in reset state.
//!
//! `interleaved` executes single accesses of several actors and single steps of the card on one thread, in an order
//! determined by a seed; `RACES_SEED` reproduces a failure. `threads` runs them concurrently for `RACES_MS`
//! milliseconds. Races within one access are covered by `tests/loom`.
#![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

#[path = "../../../test-support/src/vfs/bench.rs"]
#[allow(dead_code)]
mod bench;
#[path = "../../../test-support/src/vfs/canary.rs"]
#[allow(dead_code)]
mod canary;
mod driver;
#[path = "../../../test-support/src/grammar.rs"]
#[allow(dead_code)]
mod grammar;
mod interleaved;
#[path = "../../../test-support/src/vfs/others.rs"]
#[allow(dead_code)]
mod others;
#[path = "../../../test-support/src/vfs/pf.rs"]
#[allow(dead_code)]
mod pf;
#[path = "../../../test-support/src/process.rs"]
#[allow(dead_code)]
mod process;
#[path = "../../../test-support/src/random.rs"]
#[allow(dead_code)]
mod random;
mod registers;
mod threads;
#[path = "../../../test-support/src/vfs/world.rs"]
#[allow(dead_code)]
mod world;
