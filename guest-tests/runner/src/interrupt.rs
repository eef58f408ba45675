// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Converts SIGINT, SIGTERM and SIGHUP to an error that unwinds a run, so that all child processes and files are
//! cleaned up.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// The run was interrupted by SIGINT, SIGTERM or SIGHUP.
#[derive(Debug, thiserror::Error)]
#[error("interrupted")]
pub struct Interrupted;

static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Installs handlers by which the three signals set a flag that [`check`] reports. Idempotent.
pub fn install() {
    FLAG.get_or_init(|| {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            if let Err(error) = signal_hook::flag::register(signal, flag.clone()) {
                log::warn!("signal {signal} cannot be caught: {error}");
            }
        }
        flag
    });
}

/// Interrupts the run in the same way as a signal.
pub fn request() {
    if let Some(flag) = FLAG.get() {
        flag.store(true, Ordering::Relaxed);
    }
}

/// Fails with [`Interrupted`] after a signal. Must be called in every loop that waits.
pub fn check() -> Result<(), Interrupted> {
    match FLAG.get() {
        Some(flag) if flag.load(Ordering::Relaxed) => Err(Interrupted),
        _ => Ok(()),
    }
}
