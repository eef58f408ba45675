// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! What the harnesses of configuration spaces and BARs have in common: their limits, and a checked MSI route.

use std::sync::Mutex;

use arctic_gpu::{MsiMessage, MsiSink};

/// Maximum number of input bytes that are used; further bytes are ignored.
pub const MAX_INPUT_BYTES: usize = 2048;
/// Maximum number of operations per input.
pub const MAX_OPERATIONS: usize = 128;

/// MSI route of one function. Panics if an MSI is sent without a route, or if a change of the route is none.
#[derive(Default)]
pub struct CheckedMsi {
    route: Mutex<Option<MsiMessage>>,
}

impl MsiSink for CheckedMsi {
    fn route(&self, message: Option<MsiMessage>) {
        let mut route = self.route.lock().unwrap();
        assert_ne!(*route, message, "the machine is notified of a route that it already has");
        *route = message;
    }

    fn trigger(&self) {
        assert!(self.route.lock().unwrap().is_some(), "an MSI was triggered without a route");
    }
}
