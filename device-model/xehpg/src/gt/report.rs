// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The part of the report of unmodelled accesses that covers registers.

use super::Gt;
use crate::registers::{Touches, known};
use crate::report::{Report, TouchedRegister};

impl Gt {
    /// Returns the registers that were accessed and are not modelled, or were accessed asleep.
    pub fn report(&self) -> Report {
        let describe = |(offset, touches): (u32, Touches)| TouchedRegister {
            offset,
            name: self.registers.decode(offset).map(|decoded| self.registers.name(decoded)),
            reads: touches.reads,
            writes: touches.writes,
            reason: None,
        };
        let explain =
            |register: TouchedRegister| TouchedRegister { reason: known::reason(register.offset), ..register };
        Report {
            unmodelled: self.registers.unmodelled().into_iter().map(describe).map(explain).collect(),
            asleep: self.registers.asleep().into_iter().map(describe).collect(),
            ..Report::default()
        }
    }
}
