// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The models, and how loom executes them.
// Without `#[test]`, a model would not run.
#![deny(unused)]

mod doorbells;
mod engines;
mod memory;
mod messages;
mod registers;
mod workers;
mod wrong;

use std::sync::Once;

/// Switches away from a runnable thread per execution; nearly all bugs appear with two.
const PREEMPTIONS: usize = 2;

/// Executes the model in every order. The first call first proves that loom finds known wrong orderings.
fn check(model: fn()) {
    static IN_USE: Once = Once::new();
    IN_USE.call_once(wrong::are_found);
    explore(model);
}

fn explore(model: fn()) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(PREEMPTIONS));
    builder.check(model);
}
