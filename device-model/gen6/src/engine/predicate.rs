// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! MI_PREDICATE.

use super::{Current, Engine};
use crate::command::mi::fields;
use crate::command::pipeline::fields::DRAW_PREDICATE;
use crate::gt::Gt;
use crate::registers::render::{PREDICATE_DATA, PREDICATE_RESULT, PREDICATE_SRC0, PREDICATE_SRC1};

/// Value of a register of 64 bits.
fn wide(gt: &Gt, register: u32) -> u64 {
    let half = |at: u32| u64::from(gt.registers.value(at));
    half(register.saturating_add(4)) << 32 | half(register)
}

impl Engine {
    /// MI_PREDICATE: compares the operands, combines the result with the predicate, and loads the predicate (IVB-150).
    pub(super) fn predicate(&self, current: &Current<'_>) {
        let (gt, words) = (current.gt, [current.header]);
        let difference = wide(gt, PREDICATE_SRC0).wrapping_sub(wide(gt, PREDICATE_SRC1));
        let compared = match fields::PREDICATE_COMPARE.get(&words) {
            0 => true,
            1 => false,
            2 => {
                gt.registers.set(PREDICATE_DATA, arctic_sriov::number::low(difference));
                gt.registers.set(PREDICATE_DATA.saturating_add(4), arctic_sriov::number::high(difference));
                difference == 0
            }
            _ => difference == wide(gt, PREDICATE_DATA),
        };
        let present = gt.registers.value(PREDICATE_RESULT) & 1 != 0;
        let combined = match fields::PREDICATE_COMBINE.get(&words) {
            0 => compared,
            1 => present & compared,
            2 => present | compared,
            _ => present ^ compared,
        };
        match fields::PREDICATE_LOAD.get(&words) {
            2 => gt.registers.set(PREDICATE_RESULT, u32::from(combined)),
            3 => gt.registers.set(PREDICATE_RESULT, u32::from(!combined)),
            _ => {}
        }
    }

    /// 3DPRIMITIVE: there is no pipeline; the command is counted, unless the predicate withholds it (IVB-151).
    pub(super) fn draw(&mut self, current: &Current<'_>) {
        if !current.has(DRAW_PREDICATE) || current.gt.registers.value(PREDICATE_RESULT) & 1 != 0 {
            self.skip(current.name);
        }
    }
}
