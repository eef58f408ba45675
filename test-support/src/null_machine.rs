// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A machine without a bus and interrupt controller, for tests that use only the card.

use std::io;
use std::sync::Arc;

use arctic_gpu::{Function, Machine, MsiSink};

/// A machine that drops all interrupts and notifications, and the sink of its interrupts.
pub struct NullMachine;

impl MsiSink for NullMachine {
    fn trigger(&self) {}
}

impl Machine for NullMachine {
    fn msi(&self, _: Function) -> io::Result<Arc<dyn MsiSink>> {
        Ok(Arc::new(NullMachine))
    }
}
