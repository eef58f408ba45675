// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! MI commands that control the parser: batches, semaphores, predicates, interrupts (V8-105..121, 134..141).

use arctic_base::command::Addressing;
use arctic_sriov::number::{high, low};

use super::access::address;
use super::head::REPORTED_HEAD;
use super::running::SemaphoreCheck;
use super::streamer::{Flow, Streamer};
use super::{reg, word};
use crate::command::mi::fields;
use crate::interrupts::{SEMAPHORE_WAIT, USER_INTERRUPT};
use crate::memory::{Fault, Space};
use crate::registers::engine_fields::{ContextControl, PredicateResult};
use crate::topology::EngineClass;

/// Offset in the PPHWSP of the dword that delays the switch-out of i915's CCS contexts until the GuC clears it (i915:
/// Wa_14014475959).
const HOLD_SWITCHOUT: u64 = 0x540;

/// Evaluates the header's comparison of memory with the immediate (xe: COMPARE_OP_SAD_*; IGT: MAD_*_IDD).
fn compare(header: u32, memory: u32, immediate: u32) -> bool {
    match fields::COMPARE.get_in(header) {
        0 => memory > immediate,
        1 => memory >= immediate,
        2 => memory < immediate,
        3 => memory <= immediate,
        4 => memory == immediate,
        5 => memory != immediate,
        // Reserved: never true.
        _ => false,
    }
}

impl Streamer<'_> {
    pub(super) fn noop(&mut self, header: u32) -> Flow {
        if fields::WRITE_NOPID.is_set_in(header) {
            self.set_own(reg::NOPID, fields::NOPID.get_in(header));
        }
        Flow::Next
    }

    /// MI_USER_INTERRUPT. Earlier stores are already visible, because each store completes with its command (V8-091).
    pub(super) fn user_interrupt(&mut self) -> Result<Flow, Fault> {
        self.loops().effect();
        self.signal(USER_INTERRUPT)?;
        Ok(Flow::Next)
    }

    pub(super) fn batch_buffer_start(&mut self, words: &[u32]) -> Result<Flow, Fault> {
        let header = word(words, 0);
        let mut target = address(word(words, 1), word(words, 2));
        if fields::BATCH_OFFSET.is_set_in(header) {
            target = target.wrapping_add(u64::from(self.registers.get(reg::BB_OFFSET)));
        }
        let (ppgtt, nested) = (fields::BATCH_SPACE.is_set_in(header), fields::SECOND_LEVEL.is_set_in(header));
        let unchecked = self.unchecked();
        let position = &mut self.running.position;
        let from_batch = position.batch().is_some();
        if unchecked {
            position.enter_unchecked(target, ppgtt, nested);
        } else {
            position.enter(target, ppgtt, nested);
        }
        Ok(if from_batch && self.loops().jump(target) { Flow::Idle } else { Flow::Jump })
    }

    /// MI_BATCH_BUFFER_END. Ignored in the ring, where no batch is active.
    pub(super) fn batch_buffer_end(&mut self, all: bool) -> Result<Flow, Fault> {
        let position = &mut self.running.position;
        if position.workaround.is_some() {
            self.end_workaround()?;
            return Ok(Flow::Jump);
        }
        if position.batch().is_none() {
            return Ok(Flow::Next);
        }
        position.leave(all);
        if position.batch().is_none() {
            self.loops().forget();
        }
        Ok(Flow::Jump)
    }

    /// MI_CONDITIONAL_BATCH_BUFFER_END. Continues if the comparison is true, otherwise ends all levels of batches or
    /// only the current level.
    pub(super) fn conditional_batch_buffer_end(&mut self, words: &[u32]) -> Result<Flow, Fault> {
        let header = word(words, 0);
        if !fields::END_COMPARE.is_set_in(header) {
            return Ok(Flow::Next);
        }
        let space = self.space(fields::GLOBAL.is_set_in(header));
        let at = address(word(words, 2), word(words, 3));
        let data = if fields::END_MASKED.is_set_in(header) {
            let masked = self.gam.read_u64(space, at & !7)?;
            low(masked) & high(masked)
        } else {
            self.gam.read_u32(space, at)?
        };
        if compare(header, data, word(words, 1)) {
            return Ok(Flow::Next);
        }
        self.batch_buffer_end(!fields::END_LEVEL.is_set_in(header))
    }

    /// MI_SEMAPHORE_WAIT (V8-120). Waits for memory or a register, in poll or signal mode (Intel media-driver
    /// mhw_mi_hwcmd_xe_xpm.h). A register is always polled.
    #[allow(clippy::arithmetic_side_effects, reason = "the page has a 32-bit address")]
    pub(super) fn semaphore_wait(&mut self, words: &[u32]) -> Result<Flow, Fault> {
        let header = word(words, 0);
        let (global, register) = (fields::GLOBAL.is_set_in(header), fields::WAIT_REGISTER.is_set_in(header));
        // Ordering: the signal count must be read before memory, otherwise a signal after the read of memory could be
        // lost.
        let check = SemaphoreCheck { at: self.running.position.address(), signals: self.gt.semaphore_signals() };
        let polled = register || fields::WAIT_MODE.is_set_in(header);
        if !polled && self.running.semaphore == Some(check) {
            return Ok(if self.recovered_by_watchdog() { Flow::Recovered } else { Flow::Wait });
        }
        let mut at = address(word(words, 2), word(words, 3));
        let (value, immediate) = if register {
            let offset = self.mmio(word(words, 2), Addressing::default());
            let immediate =
                if fields::WAIT_INDIRECT.is_set_in(header) { self.registers.get(reg::GPR) } else { word(words, 1) };
            (self.read_register(offset), immediate)
        } else {
            if fields::WAIT_PARTITION.is_set_in(header) {
                at = self.partitioned(at);
            }
            let space = self.space(global);
            (self.gam.read_u32(space, at)?, word(words, 1))
        };
        if compare(header, value, immediate) {
            self.running.semaphore = None;
            return Ok(Flow::Next);
        }
        if self.recovered_by_watchdog() {
            return Ok(Flow::Recovered);
        }
        // The driver does not clear this dword. The GuC clears it when no walker is running on the other engines, and
        // the card does not implement walkers (i915: gen8_engine_cs.c hold_switchout_emit_wa_busywait).
        if global && self.class == EngineClass::Compute && at == self.running.lrc.pphwsp + HOLD_SWITCHOUT {
            self.store(Space::Ggtt, at, 0)?;
            self.running.semaphore = None;
            return Ok(Flow::Next);
        }
        // If synchronous context switches are inhibited, a wait on memory is reported to the scheduler once.
        let reported = self.running.semaphore.replace(check).is_some_and(|last| last.at == check.at);
        if !reported && !register && self.registers.fields::<ContextControl>().inhibit_synchronous_switch() {
            self.signal(SEMAPHORE_WAIT)?;
        }
        Ok(Flow::Wait)
    }

    /// MI_SEMAPHORE_SIGNAL. On hardware, the GuC receives the token in SEMAPHORE_TOKEN and signals the engines that may
    /// wait for it (V8-119). The model signals all engines, because a signal only causes them to check their condition
    /// again.
    pub(super) fn semaphore_signal(&mut self) -> Flow {
        self.loops().effect();
        self.gt.signal_semaphores();
        Flow::Next
    }

    /// MI_SET_PREDICATE. Sets MI_SET_PREDICATE_RESULT if at least one of two conditions is true. Bits 3:0 test whether
    /// a result register is clear or set (V8-106). The encodings of RESULT and RESULT_2 are those of the Intel
    /// media-driver (mhw_mi_hwcmd_g8_X.h, mhw_mi_hwcmd_xe_xpm.h). The encodings of RESULT_1 are specific to this model.
    /// Bits 5:4 test the workload partition ID masked by PREDICATION_MASK. Reserved values are never true.
    pub(super) fn set_predicate(&mut self, header: u32) -> Flow {
        let result = |offset| self.registers.get(offset) & 1 != 0;
        let by_result = match fields::SET_PREDICATE.get_in(header) {
            1 => !result(reg::PREDICATE_RESULT_2),
            2 => result(reg::PREDICATE_RESULT_2),
            3 => !result(reg::PREDICATE_RESULT),
            4 => result(reg::PREDICATE_RESULT),
            5 => !result(reg::PREDICATE_RESULT_1),
            6 => result(reg::PREDICATE_RESULT_1),
            15 => true,
            _ => false,
        };
        let partition = self.registers.get(reg::WPARID) & self.registers.get(reg::PREDICATION_MASK);
        let by_partition = match fields::SET_PREDICATE_WPARID.get_in(header) {
            1 => partition == 0,
            2 => partition != 0,
            _ => false,
        };
        self.set_own(reg::SET_PREDICATE_RESULT, u32::from(by_result || by_partition));
        Flow::Next
    }

    /// MI_PREDICATE: compare operation (1:0), combine operation with the current result (4:3), load operation (7:6)
    /// (IVB-150).
    pub(super) fn predicate(&mut self, header: u32) -> Flow {
        let (first, second) = (self.registers.get64(reg::PREDICATE_SRC0), self.registers.get64(reg::PREDICATE_SRC1));
        let delta = first.wrapping_sub(second);
        let compared = match fields::PREDICATE_COMPARE.get_in(header) {
            0 => true,
            1 => false,
            2 => {
                self.set_own64(reg::PREDICATE_DATA, delta);
                delta == 0
            }
            _ => delta == self.registers.get64(reg::PREDICATE_DATA),
        };
        let present = self.registers.fields::<PredicateResult>().result();
        let combined = match fields::PREDICATE_COMBINE.get_in(header) {
            0 => compared,
            1 => present & compared,
            2 => present | compared,
            _ => present ^ compared,
        };
        match fields::PREDICATE_LOAD.get_in(header) {
            2 => self.set_own(reg::PREDICATE_RESULT, u32::from(combined)),
            3 => self.set_own(reg::PREDICATE_RESULT, u32::from(!combined)),
            _ => {}
        }
        Flow::Next
    }

    /// MI_REPORT_HEAD: writes the head to the fifth dword of the PPHWSP (V8-069, V8-110).
    #[allow(clippy::arithmetic_side_effects, reason = "the page has a 32-bit address")]
    pub(super) fn report_head(&mut self) -> Result<Flow, Fault> {
        let (at, head) = (self.running.lrc.pphwsp + REPORTED_HEAD, self.running.position.ring.head);
        self.store(Space::Ggtt, at, head)?;
        Ok(Flow::Next)
    }
}
