// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Control flow: batches, waits and preemption.

use super::{Batch, Current, Engine, Flow};
use crate::command::mi::fields;
use crate::gt::Gt;
use crate::memory::Fault;
use crate::registers::engine::{
    CTL, CTL_SEMAPHORE_WAIT, CTL_WAIT, EXCC, HEAD, HEAD_OFFSET, HEAD_PREEMPT, HEAD_WAITS, HEAD_WRAPS, SYNC_0, UHPTR,
    VALID,
};
use crate::registers::render::{CONDITION_CODES, SYNC_FLIP_STATUS};
use crate::topology::EngineClass;

impl Engine {
    /// MI_BATCH_BUFFER_START: from the ring, or from a batch, of which the new one is the continuation. It keeps the space
    /// of the first one, whatever its own bit is (IVB-164, ILK-124), and so its privilege.
    pub(super) fn batch_start(&mut self, current: &Current<'_>) -> Result<Flow, Fault> {
        let start = current.dword(1)? & fields::BATCH_ADDRESS.mask();
        let ppgtt = self.batch.map_or(current.has(fields::BATCH_SPACE), |batch| batch.ppgtt);
        if self.batch.is_none() {
            self.advance(current.gt, current.memory, current.length);
        }
        self.batch = Some(Batch { start, next: start, ppgtt });
        self.invalidate(current);
        Ok(Flow::Jumped)
    }

    /// MI_BATCH_BUFFER_END: continues in the ring; in the ring it has no effect.
    pub(super) fn batch_end(&mut self, current: &Current<'_>) -> Flow {
        match self.batch.take() {
            Some(_) => {
                self.publish_batch(current.gt);
                self.invalidate(current);
                Flow::Jumped
            }
            None => Flow::Next,
        }
    }

    /// MI_CONDITIONAL_BATCH_BUFFER_END: continues if the value in memory is greater (IVB-165).
    pub(super) fn conditional_end(&mut self, current: &Current<'_>) -> Result<Flow, Fault> {
        if !current.has(fields::END_COMPARE) {
            return Ok(Flow::Next);
        }
        let space = self.space(current.gt, current.has(fields::GLOBAL));
        let value = current.memory.read32(space, current.dword(2)? & fields::END_ADDRESS.mask())?;
        Ok(if value > current.dword(1)? { Flow::Next } else { self.batch_end(current) })
    }

    /// MI_SEMAPHORE_MBOX: waits until a value is greater than the command's (IVB-154), and may update it.
    pub(super) fn semaphore(&mut self, current: &Current<'_>) -> Result<Flow, Fault> {
        let gt = current.gt;
        let ggtt = current.has(fields::GLOBAL) && self.privileged();
        let (space, data, target) = (self.space(gt, ggtt), current.dword(1)?, current.dword(2)?);
        let address = target & fields::MAILBOX_ADDRESS.mask();
        let control = self.offset(gt, CTL);
        if current.has(fields::MAILBOX_COMPARE) {
            let value = if current.has(fields::MAILBOX_COMPARE_REGISTER) {
                match fields::MAILBOX_REGISTER.get(&[current.header]) {
                    0 => self.value(gt, SYNC_0),
                    1 => self.value(gt, SYNC_0.saturating_add(8)),
                    2 => self.value(gt, SYNC_0.saturating_add(4)),
                    _ => {
                        let offset = target & fields::REGISTER.mask();
                        gt.registers.decode(offset).map_or(0, |_| gt.registers.value(offset))
                    }
                }
            } else {
                current.memory.read32(space, address)?
            };
            if value <= data {
                gt.registers.set_bits(control, CTL_SEMAPHORE_WAIT.mask());
                return Ok(Flow::Wait);
            }
            gt.registers.clear_bits(control, CTL_SEMAPHORE_WAIT.mask());
        }
        if current.has(fields::MAILBOX_UPDATE) && !current.has(fields::MAILBOX_COMPARE_REGISTER) {
            current.memory.write32(space, address, data)?;
        }
        Ok(Flow::Next)
    }

    /// MI_WAIT_FOR_EVENT: waits while the selected condition code is set (IVB-066, IVB-143). Events of the display do not
    /// occur, because no pipe is active, and are not waited for.
    pub(super) fn wait_for_event(&mut self, current: &Current<'_>) -> Flow {
        let (gt, control) = (current.gt, self.offset(current.gt, CTL));
        let ended = self.wait_ended(gt);
        let code = fields::WAIT_CONDITION.get(&[current.header]).checked_sub(1).filter(|code| *code < 5);
        let blocked = code.is_some_and(|code| self.value(gt, EXCC) >> code & 1 != 0);
        if !blocked || ended {
            self.waiting = false;
            gt.registers.clear_bits(control, CTL_WAIT.mask());
            self.show_condition(gt, None);
            return Flow::Next;
        }
        if !self.waiting {
            self.waiting = true;
            gt.registers.set_bits(control, CTL_WAIT.mask());
            self.show_condition(gt, code);
        }
        Flow::Wait
    }

    /// Shows the condition code for which the render engine waits in its head and in SYNC_FLIP_STATUS (IVB-076, IVB-110).
    fn show_condition(&self, gt: &Gt, code: Option<u32>) {
        if gt.generation.engine(self.id).class == EngineClass::Render {
            let bits = CONDITION_CODES.of(code.map_or(0, |code| 1 << code));
            gt.registers.update(SYNC_FLIP_STATUS, |old| old & !CONDITION_CODES.mask() | bits);
            let waits = if code.is_some() { HEAD_WAITS.mask() } else { 0 };
            gt.registers.update(self.offset(gt, HEAD), |old| old & !HEAD_WAITS.mask() | waits);
        }
    }

    /// MI_ARB_CHECK: unless MI_ARB_ON_OFF forbids it, continues at the offset in UHPTR, if it is valid, and ends the batch (IVB-081, IVB-145).
    pub(super) fn arbitration_check(&mut self, current: &Current<'_>) -> Flow {
        let gt = current.gt;
        let pointer = self.value(gt, UHPTR);
        if !VALID.is_set(pointer) || !self.arbitration {
            return Flow::Next;
        }
        gt.registers.clear_bits(self.offset(gt, UHPTR), VALID.mask());
        let head = self.value(gt, HEAD);
        let target = HEAD_OFFSET.mask() & pointer;
        if self.batch.is_none() && HEAD_OFFSET.mask() & head == target {
            return Flow::Next;
        }
        let origin = u32::from(self.batch.take().is_some());
        gt.registers.set(self.offset(gt, HEAD_PREEMPT), HEAD_OFFSET.mask() & head | origin);
        // The number of wraps is the pointer's (IVB-081).
        gt.registers.set(self.offset(gt, HEAD), pointer & (HEAD_WRAPS.mask() | HEAD_OFFSET.mask()));
        Flow::Jumped
    }
}
