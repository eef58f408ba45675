//! The parts that several threads meet in without a lock around everything, in every order that the memory model permits.
//!
//! The modules below are the library's own sources, built a second time: their `crate::sync` is here that of loom, which
//! carries out each model again and again until it has seen all interleavings (of at most [`PREEMPTIONS`] switches away
//! from a thread that could have gone on), stale values that a load may find included. A model that gets stuck is a lost
//! call; loom says so and panics. It knows no time, so that a sleep lasts until somebody wakes the sleeper.
//!
//! `cargo test --test loom -- part-of-a-name` runs some of the models; `LOOM_MAX_PREEMPTIONS` and the other variables of
//! loom's change how far it looks.

#![forbid(unsafe_code)]
// What the library's sources have besides.
#![allow(dead_code, unused_imports, clippy::enum_variant_names)]

mod sync {
    pub use std::sync::{LockResult, PoisonError, TryLockError};

    pub use loom::sync::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard};

    pub mod atomic {
        pub use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
    }
}

#[path = "../../src/registers"]
mod registers {
    pub mod cell;

    pub use arctic_device_model::registers::{DoorbellRegister, Kind, Live};
}

mod world {
    pub use arctic_device_model::world::*;
}

#[path = "../../src/engine"]
mod engine {
    pub mod id {
        pub use arctic_device_model::engine::id::*;
    }

    pub mod attention;
    pub mod turnstile;
}

#[path = "../../src/card"]
mod card {
    pub mod bell;
    pub mod calls;
}

#[path = "../../src/doorbell/mod.rs"]
mod doorbell;

#[path = "../../src/guc"]
mod guc {
    pub mod ctb;
    pub mod hxg;
}

#[path = "../../src/interrupts"]
mod interrupts {
    pub mod delivery;
    pub mod event;
    pub mod sources;
    pub mod tree;
}

#[path = "../../src/memory"]
mod memory {
    pub mod local {
        pub use arctic_device_model::memory::local::*;
    }

    pub mod epoch;
    pub mod storage;
    pub mod tlb;

    pub use crate::models::memory::Gam;
    pub use arctic_device_model::memory::{Access, Fault, FaultReason, Space};
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

/// Switches away from a thread that could have gone on, in one execution: nearly all bugs show with two.
const PREEMPTIONS: usize = 2;

/// One model: its name, and what is carried out in every order.
type Model = (&'static str, fn());

fn check(model: fn()) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(PREEMPTIONS));
    builder.check(model);
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // Named before it is carried out: a thread of a model that is unwound out of a lock may end the process.
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
