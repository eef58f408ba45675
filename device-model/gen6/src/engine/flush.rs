// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! MI_FLUSH_DW and PIPE_CONTROL. The model has no caches, so a flush is its store and its notification (IVB-166,
//! G67-075..077, G67-122).

use arctic_sriov::number::{high, low};

use super::store::INDEX;
use super::{Current, Engine, Flow};
use crate::memory::{Fault, Space};
use crate::registers::engine::PS_DEPTH_COUNT;
use crate::registers::interrupt::NOTIFY_INTERRUPT;

/// MI_FLUSH_DW header: the address is an offset in the status page.
const FLUSH_INDEX: u32 = 1 << 21;
/// MI_FLUSH_DW header: a notification is sent.
const FLUSH_NOTIFY: u32 = 1 << 8;
/// MI_FLUSH_DW address: it is in the GGTT.
const FLUSH_GGTT: u32 = 1 << 2;
/// PIPE_CONTROL flags: the address is in the GGTT.
const PIPE_GGTT: u32 = 1 << 24;
/// PIPE_CONTROL flags: the data are written to a register.
const PIPE_REGISTER: u32 = 1 << 23;
/// PIPE_CONTROL flags: the address is an offset in the status page.
const PIPE_INDEX: u32 = 1 << 21;
/// PIPE_CONTROL flags: a notification is sent.
const PIPE_NOTIFY: u32 = 1 << 8;

/// A store after a flush.
struct PostSync {
    /// The operation, as in bits 15:14 of both commands.
    operation: u32,
    /// The address is an offset in the status page.
    index: bool,
    /// The address is in the GGTT.
    ggtt: bool,
    address: u32,
    /// Number of the first dword with data.
    data: u32,
}

impl Engine {
    /// MI_FLUSH_DW.
    pub(super) fn flush_dw(&mut self, current: &Current<'_>) -> Result<(), Fault> {
        let address = current.dword(1)?;
        let index = current.header & FLUSH_INDEX != 0;
        let ggtt = address & FLUSH_GGTT != 0;
        let operation = current.header >> 14 & 3;
        self.post_sync(current, PostSync { operation, index, ggtt, address: address & !7, data: 2 })?;
        if current.header & FLUSH_NOTIFY != 0 {
            self.interrupt(current, NOTIFY_INTERRUPT);
        }
        Ok(())
    }

    /// PIPE_CONTROL.
    pub(super) fn pipe_control(&mut self, current: &Current<'_>) -> Result<Flow, Fault> {
        let flags = current.dword(1)?;
        // Writes to registers need privilege; no driver of this generation uses them.
        if flags & PIPE_REGISTER != 0 {
            if self.privileged() {
                self.skip("PIPE_CONTROL with a write to a register");
            }
            return Ok(Flow::Next);
        }
        let (index, ggtt) = (flags & PIPE_INDEX != 0, flags & PIPE_GGTT != 0);
        if current.length > 2 {
            let address = current.dword(2)? & !7;
            self.post_sync(current, PostSync { operation: flags >> 14 & 3, index, ggtt, address, data: 3 })?;
        }
        if flags & PIPE_NOTIFY != 0 {
            self.interrupt(current, NOTIFY_INTERRUPT);
        }
        Ok(Flow::Next)
    }

    /// Executes a store after a flush. A batch without privilege has no access to the GGTT and the status page. A command
    /// with one dword of data stores a dword (G67-077).
    fn post_sync(&mut self, current: &Current<'_>, store: PostSync) -> Result<(), Fault> {
        if store.operation == 0 || (store.index || store.ggtt) && !self.privileged() {
            return Ok(());
        }
        let gt = current.gt;
        let (space, address) = match store.index {
            true => (Space::Ggtt, self.status_page(gt) | store.address & INDEX),
            false => (self.space(gt, store.ggtt), store.address),
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
