// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of formats, counters and events without a card.
#![allow(clippy::cast_possible_truncation, reason = "test values are in range")]

mod formats;
mod network;
mod replay;

use arctic_fidelity::proves;

use super::context::ContextCounters;
use super::counters::{Activity, Counters};
use super::facts::{ObservationFacts, XE_HPG_OBSERVATION};
use super::state::{Observation, State};
use super::work::KernelWork;

/// Runs `test` with the state of a unit that is told of the card's activity from time 0 on.
fn with_activity<T>(facts: &'static ObservationFacts, activity: Activity, test: impl FnOnce(&mut State) -> T) -> T {
    let observation = Observation::new(facts);
    let mut state = observation.state();
    state.settle(0, 0);
    state.begin(activity);
    test(&mut state)
}

/// Accesses to shared local memory of any context are in the counters of each that counts; threads and atomics are not.
#[test]
fn contexts_share_the_counters_of_shared_memory() {
    proves!(V13_245, "a context's A30 and A31 have the accesses of all contexts; A4, A34 and A35 have its own");
    let mut counters = Counters::new(&XE_HPG_OBSERVATION);
    let mut context = ContextCounters::default();
    context.settle(&counters, true);
    let work = KernelWork { threads: 2, slm_reads: 5, slm_writes: 6, atomics: 7, barriers: 8, ..KernelWork::default() };
    counters.count_kernels(&work, &[0; 14]);
    context.settle(&counters, true);
    let values = |context: &ContextCounters| [4, 30, 31, 34, 35].map(|n| context.values().a(n, 1).next().unwrap());
    assert_eq!(values(&context), [0, 5, 6, 0, 0]);
    context.count_kernels(&work, &[0; 14]);
    assert_eq!(values(&context), [2, 5, 6, 7, 8]);
    context.settle(&counters, false);
    counters.count_kernels(&work, &[0; 14]);
    context.count_kernels(&work, &[0; 14]);
    context.settle(&counters, true);
    assert_eq!(values(&context), [2, 5, 6, 7, 8], "while it does not count");
}
