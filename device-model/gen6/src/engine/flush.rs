// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! MI_FLUSH, MI_FLUSH_DW and PIPE_CONTROL. The model has no caches but the TLB, so a flush is its invalidation, its store
//! and its notification (IVB-036, IVB-166, G67-075..077, G67-122).

use arctic_sriov::number::{high, low};

use super::{Current, Engine, Flow};
use crate::command::mi::fields as flush;
use crate::command::pipeline::{GlobalStores, fields as control};
use crate::gt::Gt;
use crate::memory::{Fault, Space};
use crate::registers::engine::{CLFLUSH_TOGGLE, INSTPM, MI_MODE, MODE_FLUSH, PS_DEPTH_COUNT};
use crate::registers::interrupt::NOTIFY_INTERRUPT;
use crate::registers::render::{STATISTICS, STATISTICS_DWORDS};

/// A store after a flush.
struct PostSync {
    /// The operation, with the values of PIPE_CONTROL; MI_FLUSH_DW does not have 2.
    operation: u32,
    /// The address is an offset in the status page.
    index: bool,
    /// The address is in the GGTT.
    ggtt: bool,
    /// A batch without privilege has access to the GGTT.
    ggtt_by_users: bool,
    address: u32,
    /// Number of the first dword with data.
    data: u32,
}

impl Engine {
    /// MI_FLUSH_DW.
    pub(super) fn flush_dw(&mut self, current: &Current<'_>) -> Result<(), Fault> {
        let words = [current.header, current.dword(1)?];
        let store = PostSync {
            operation: match flush::FLUSH_OPERATION.get(&words) {
                // Reserved: nothing is stored.
                2 => 0,
                operation => operation,
            },
            index: flush::FLUSH_INDEX.is_set(&words),
            ggtt: flush::FLUSH_GLOBAL.is_set(&words),
            ggtt_by_users: false,
            address: words[1] & flush::FLUSH_ADDRESS.mask(),
            data: 2,
        };
        if current.has(flush::FLUSH_TLB) {
            self.invalidate(current);
        }
        self.flushed(current);
        self.post_sync(current, store)?;
        if current.has(flush::FLUSH_NOTIFY) {
            self.interrupt(current, NOTIFY_INTERRUPT);
        }
        Ok(())
    }

    /// PIPE_CONTROL, with the stores to the GGTT of the generation.
    pub(super) fn pipe_control(&mut self, current: &Current<'_>, global: GlobalStores) -> Result<Flow, Fault> {
        let address = if current.length > 2 { current.dword(2)? } else { 0 };
        let words = [current.header, current.dword(1)?, address];
        let register = control::CONTROL_REGISTER.is_set(&words);
        // Without privilege, a write to a register makes the whole command a NOOP (G67-122).
        if register && !self.privileged() {
            return Ok(Flow::Next);
        }
        if control::CONTROL_STATISTICS.is_set(&words) {
            reset_statistics(current.gt);
        }
        if control::CONTROL_TLB.is_set(&words) {
            self.invalidate(current);
        }
        if control::CONTROL_FLUSHES.iter().any(|flush| flush.is_set(&words)) {
            self.flushed(current);
        }
        if register && current.length > 3 && control::CONTROL_OPERATION.get(&words) == 1 {
            self.write_register(current, address, current.dword(3)?, !0);
        } else if current.length > 2 && !register {
            let store = PostSync {
                operation: control::CONTROL_OPERATION.get(&words),
                index: control::CONTROL_INDEX.is_set(&words),
                ggtt: global.field.is_set(&words),
                ggtt_by_users: global.by_users,
                address: address & control::CONTROL_ADDRESS.mask(),
                data: 3,
            };
            self.post_sync(current, store)?;
        }
        if control::CONTROL_NOTIFY.is_set(&words) {
            self.interrupt(current, NOTIFY_INTERRUPT);
        }
        Ok(Flow::Next)
    }

    /// MI_FLUSH: with the mode that enables it, statistics are reset if the command asks for it (IVB-118, IVB-144).
    pub(super) fn flush(&self, current: &Current<'_>) {
        let enabled = MODE_FLUSH.is_set(self.value(current.gt, MI_MODE));
        if enabled {
            self.flushed(current);
        }
        if enabled && current.has(flush::FLUSH_STATISTICS) {
            reset_statistics(current.gt);
        }
    }

    /// MI_CLFLUSH: memory is always coherent; the toggle changes (IVB-162).
    pub(super) fn flush_lines(&self, current: &Current<'_>) {
        current.gt.registers.update(self.offset(current.gt, INSTPM), |old| old ^ CLFLUSH_TOGGLE);
    }

    /// Executes a store after a flush. A batch without privilege has no access to the status page, and to the GGTT only
    /// if the command says so. A command with one dword of data stores a dword (G67-077).
    fn post_sync(&mut self, current: &Current<'_>, store: PostSync) -> Result<(), Fault> {
        let guarded = store.index || store.ggtt && !store.ggtt_by_users;
        if store.operation == 0 || guarded && !self.privileged() {
            return Ok(());
        }
        let gt = current.gt;
        let (space, address) = if store.index {
            (Space::Ggtt, gt.status_page(self.id) | store.address & flush::INDEX.mask())
        } else {
            (self.space(gt, store.ggtt), store.address)
        };
        let last = store.data.saturating_add(1);
        let (value, upper) = match store.operation {
            1 if current.length <= store.data => return Ok(()),
            1 if current.length <= last => (current.dword(store.data)?, None),
            1 => (current.dword(store.data)?, Some(current.dword(last)?)),
            // Number of pixels that passed the depth test.
            2 => {
                let count = self.offset(gt, PS_DEPTH_COUNT);
                (gt.registers.value(count), Some(gt.registers.value(count.saturating_add(4))))
            }
            _ => (low(gt.timestamp()), Some(high(gt.timestamp()))),
        };
        current.memory.write32(space, address, value)?;
        match upper {
            Some(upper) => current.memory.write32(space, address.wrapping_add(4), upper),
            None => Ok(()),
        }
    }
}

/// Sets the statistics of the 3D pipeline to 0.
fn reset_statistics(gt: &Gt) {
    (STATISTICS..).step_by(4).zip(0..STATISTICS_DWORDS).for_each(|(at, _)| gt.registers.set(at, 0));
}
