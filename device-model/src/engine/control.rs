//! MI commands that steer the parser: batches, semaphores, predicates, interrupts (V8-105..121, 134..141).

use super::access::address;
use super::reg;
use super::streamer::{Flow, Streamer};
use crate::command::mi::fields;
use crate::engine::id::EngineClass;
use crate::interrupts::USER_INTERRUPT;
use crate::memory::{Fault, Space};

/// MI_NOOP bit 22: bits 21:0 go to NOPID.
const NOOP_WRITE_ID: u32 = fields::WRITE_NOPID.mask();
/// MI_BATCH_BUFFER_START bit 8: the batch is in the process's space.
const START_PPGTT: u32 = fields::BATCH_SPACE.mask();
/// MI_BATCH_BUFFER_START bit 16: BB_OFFSET is added to the address.
const START_ADD_OFFSET: u32 = fields::BATCH_OFFSET.mask();
/// MI_BATCH_BUFFER_START bit 22: one level deeper.
const START_NESTED: u32 = fields::SECOND_LEVEL.mask();
/// Bit 22 of most commands: the address is global.
const GGTT: u32 = fields::GLOBAL.mask();
/// MI_CONDITIONAL_BATCH_BUFFER_END bit 21: there is something to compare.
const END_COMPARE: u32 = fields::END_COMPARE.mask();
/// MI_CONDITIONAL_BATCH_BUFFER_END bit 19: memory holds a mask and then the data.
const END_MASKED: u32 = fields::END_MASKED.mask();
/// MI_CONDITIONAL_BATCH_BUFFER_END bit 18: only the present level ends.
const END_LEVEL: u32 = fields::END_LEVEL.mask();
/// MI_SEMAPHORE_WAIT bit 16: the address is a register's offset.
const WAIT_REGISTER: u32 = fields::WAIT_REGISTER.mask();
/// Where i915's CCS contexts hold their switch-out until the GuC lets them go (i915: Wa_14014475959).
const HOLD_SWITCHOUT: u64 = 0x540;

/// The comparison of bits 14:12: memory against immediate (xe: COMPARE_OP_SAD_*; IGT: MAD_*_IDD).
fn compare(header: u32, memory: u32, immediate: u32) -> bool {
    match header >> 12 & 7 {
        0 => memory > immediate,
        1 => memory >= immediate,
        2 => memory < immediate,
        3 => memory <= immediate,
        4 => memory == immediate,
        5 => memory != immediate,
        // Reserved: never holds.
        _ => false,
    }
}

impl Streamer<'_> {
    pub(super) fn noop(&mut self, header: u32) -> Flow {
        if header & NOOP_WRITE_ID != 0 {
            self.set_own(reg::NOPID, header & 0x3f_ffff);
        }
        Flow::Next
    }

    /// The stores before it are visible: every store of the parser is complete when its command is (V8-091).
    pub(super) fn user_interrupt(&mut self) -> Result<Flow, Fault> {
        self.loops().effect();
        self.signal(USER_INTERRUPT)?;
        Ok(Flow::Next)
    }

    pub(super) fn batch_buffer_start(&mut self, words: &[u32]) -> Result<Flow, Fault> {
        let header = words[0];
        let mut target = address(words[1], words[2]);
        if header & START_ADD_OFFSET != 0 {
            target = target.wrapping_add(u64::from(self.own(reg::BB_OFFSET)));
        }
        let position = &mut self.running.position;
        let from_batch = position.batch().is_some();
        position.enter(target, header & START_PPGTT != 0, header & START_NESTED != 0);
        Ok(if from_batch && self.loops().jump(target) { Flow::Idle } else { Flow::Jump })
    }

    /// In the ring there is no batch to end.
    pub(super) fn batch_buffer_end(&mut self, all: bool) -> Flow {
        let position = &mut self.running.position;
        if position.workaround.is_some() {
            self.end_workaround();
            return Flow::Jump;
        }
        if position.batch().is_none() {
            return Flow::Next;
        }
        position.leave(all);
        if position.batch().is_none() {
            self.loops().forget();
        }
        Flow::Jump
    }

    /// Goes on while the comparison holds, else ends the batch: the whole of it, or its present level.
    pub(super) fn conditional_batch_buffer_end(&mut self, words: &[u32]) -> Result<Flow, Fault> {
        let header = words[0];
        if header & END_COMPARE == 0 {
            return Ok(Flow::Next);
        }
        let space = self.space(header & GGTT != 0);
        let at = address(words[2], words[3]);
        let data = if header & END_MASKED != 0 {
            let masked = self.gam.read_u64(space, at & !7)?;
            masked as u32 & (masked >> 32) as u32
        } else {
            self.gam.read_u32(space, at)?
        };
        Ok(if compare(header, data, words[1]) { Flow::Next } else { self.batch_buffer_end(header & END_LEVEL == 0) })
    }

    /// Poll and signal mode alike look at the value each time: a signal is only a hint to look (V8-119, V8-120).
    pub(super) fn semaphore_wait(&mut self, words: &[u32]) -> Result<Flow, Fault> {
        let (header, immediate) = (words[0], words[1]);
        let at = address(words[2], words[3]);
        let global = header & GGTT != 0;
        let value = if header & WAIT_REGISTER != 0 {
            let offset = self.mmio(words[2], false);
            self.read_register(offset)
        } else {
            let space = self.space(global);
            self.gam.read_u32(space, at)?
        };
        if compare(header, value, immediate) {
            return Ok(Flow::Next);
        }
        if self.recovered_by_watchdog() {
            return Ok(Flow::Recovered);
        }
        // The driver never clears this dword: the GuC does, once it sees no walker running on the other engines; the
        // card has none (i915: gen8_engine_cs.c hold_switchout_emit_wa_busywait).
        if global && self.class == EngineClass::Compute && at == self.running.lrc.pphwsp + HOLD_SWITCHOUT {
            self.store(Space::Ggtt, at, 0)?;
            return Ok(Flow::Next);
        }
        Ok(Flow::Wait)
    }

    /// MI_SET_PREDICATE: bits 3:0 choose the result register that suppresses the commands that follow, and by which
    /// value (0 none, 1/2 RESULT_2 clear/set, 3/4 RESULT, 5/6 RESULT_1, 15 always).
    pub(super) fn set_predicate(&mut self, header: u32) -> Flow {
        if header & 0x30 != 0 || matches!(header & 0xf, 7..=14) {
            self.counters.state_only("MI_SET_PREDICATE by another source");
        }
        let result = |offset| self.own(offset) & 1;
        let suppress = match header & 0xf {
            1 => result(reg::PREDICATE_RESULT_2) == 0,
            2 => result(reg::PREDICATE_RESULT_2) != 0,
            3 => result(reg::PREDICATE_RESULT) == 0,
            4 => result(reg::PREDICATE_RESULT) != 0,
            5 => result(reg::PREDICATE_RESULT_1) == 0,
            6 => result(reg::PREDICATE_RESULT_1) != 0,
            15 => true,
            _ => false,
        };
        self.set_own(reg::SET_PREDICATE_RESULT, u32::from(suppress));
        Flow::Next
    }

    /// MI_PREDICATE: compare (1:0), combine with the present result (4:3), load (7:6) (IVB-150).
    pub(super) fn predicate(&mut self, header: u32) -> Flow {
        let (first, second) = (self.own64(reg::PREDICATE_SRC0), self.own64(reg::PREDICATE_SRC1));
        let delta = first.wrapping_sub(second);
        let compared = match header & 3 {
            0 => true,
            1 => false,
            2 => {
                self.set_own64(reg::PREDICATE_DATA, delta);
                delta == 0
            }
            _ => delta == self.own64(reg::PREDICATE_DATA),
        };
        let present = self.own(reg::PREDICATE_RESULT) & 1 != 0;
        let combined = match header >> 3 & 3 {
            0 => compared,
            1 => present & compared,
            2 => present | compared,
            _ => present ^ compared,
        };
        match header >> 6 & 3 {
            2 => self.set_own(reg::PREDICATE_RESULT, u32::from(combined)),
            3 => self.set_own(reg::PREDICATE_RESULT, u32::from(!combined)),
            _ => {}
        }
        Flow::Next
    }

    /// MI_REPORT_HEAD: into the PPHWSP's fifth dword (V8-069, V8-110).
    pub(super) fn report_head(&mut self) -> Result<Flow, Fault> {
        let (at, head) = (self.running.lrc.pphwsp + 16, self.running.position.ring.head);
        self.store(Space::Ggtt, at, head)?;
        Ok(Flow::Next)
    }
}
