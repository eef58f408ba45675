// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Model checking of the modules whose state threads share without a global lock, in every order that the memory model
//! permits.
//!
//! The modules below are the library's own sources, recompiled with loom's types as `crate::sync`. loom executes each
//! model repeatedly until it has covered all interleavings (with at most [`PREEMPTIONS`] switches away from a runnable
//! thread), including stale values that a load may return. A deadlock in a model indicates a lost wakeup; loom reports
//! it by a panic. loom has no time, so a sleep lasts until a wakeup.
//!
//! `cargo test --test loom -- part-of-a-name` runs some of the models; `LOOM_MAX_PREEMPTIONS` and loom's other
//! variables set the limits of the search.
#![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]
#![forbid(unsafe_code)]
// The library's sources contain items that the models do not use.
#![allow(dead_code, unused_imports, clippy::enum_variant_names)]

mod sync {
    pub use std::sync::TryLockError;

    pub use arctic_device_model::sync::IgnorePoison;
    pub use loom::sync::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard};

    pub mod atomic {
        pub use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
    }
}

mod state {
    pub use arctic_device_model::state::*;
}

mod gate {
    pub use arctic_device_model::gate::*;
}

mod topology {
    pub use arctic_device_model::topology::*;
}

#[path = "../../base/src/registers"]
mod registers {
    pub mod cell;

    pub use arctic_device_model::registers::{DoorbellRegister, InterruptRegister, Kind};
}

mod hardware_error {
    pub use arctic_device_model::hardware_error::*;
}

mod host {
    pub use arctic_device_model::host::*;
}

#[path = "../../xehpg/src/engine"]
mod engine {
    pub mod priority_mutex;
    pub mod wakeup;
}

#[path = "../../base/src/event_count.rs"]
mod event_count;

#[path = "../../xehpg/src/card"]
mod card {
    pub mod guc_pending;
}

#[path = "../../xehpg/src/doorbell/mod.rs"]
mod doorbell;

#[path = "../../xehpg/src/guc"]
mod guc {
    pub mod ctb;
    pub mod hxg;
}

#[path = "../../xehpg/src/interrupts"]
mod interrupts {
    pub mod delivery;
    pub mod event;
    pub mod sources;
    pub mod tree;
}

#[path = "../../xehpg/src/memory"]
mod memory {
    #[path = "../../../base/src/memory/epoch.rs"]
    pub mod epoch;
    pub mod storage;
    pub mod tlb;

    pub use crate::models::memory::Gam;
    pub use arctic_device_model::memory::{Access, Fault, FaultReason, Space, region};
}

mod models {
    pub mod doorbells;
    pub mod engines;
    pub mod memory;
    pub mod messages;
    pub mod registers;
    pub mod workers;
}

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

/// Switches away from a runnable thread per execution; nearly all bugs appear with two.
const PREEMPTIONS: usize = 2;

/// A model: its name, and the function that loom executes.
type Model = (&'static str, fn());

fn check(model: fn()) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(PREEMPTIONS));
    builder.check(model);
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // One thread, so that the name is printed before the model runs, because unwinding a model's thread that holds a
    // lock may abort the process.
    arguments.test_threads = Some(1);
    let all = [
        models::workers::ALL,
        models::doorbells::ALL,
        models::messages::ALL,
        models::engines::ALL,
        models::registers::ALL,
    ]
    .concat();
    let trial = |(name, model): Model| {
        Trial::test(name, move || {
            check(model);
            Ok(())
        })
    };
    libtest_mimic::run(&arguments, all.into_iter().map(trial).collect()).exit_code()
}
