// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! The power context: engine-global register state that the power controller saves before RC6 and restores after it
//! (V8-190..194). The state is independent of contexts and changes only by register writes.

use arctic_sriov::number::count;

use crate::command::mi;
use crate::registers::{Kind, RegisterFile, all_selected, engine_offsets as reg, masked};
use crate::topology::{EngineClass, EngineInfo};

/// Contents of a pair in the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pair {
    /// Consecutive registers: first offset from the engine's base, and count in dwords.
    Registers(u32, u32),
    /// RING_CTL with the ring disabled, regardless of its value (trap T27).
    Disabled,
    /// A pair that the PRM counts but does not specify. It loads no register.
    Hole,
}

use Pair::{Disabled, Hole, Registers};

/// One register.
const fn one(offset: u32) -> Pair {
    Registers(offset, 1)
}

/// The pairs of a power image in order. If the header in the PRM differs, the number of pairs is authoritative (trap
/// T18).
#[derive(Clone, Copy, Debug)]
pub struct PowerImage(&'static [Pair]);

/// "CSFE power context without display" (V8-191). CXT_OFFSET and STOP_PARSER_* belong to the back end (CSBE), all other
/// registers belong to the front end (V8-194). The model treats both alike.
pub const WITHOUT_DISPLAY: PowerImage = PowerImage(&[
    one(reg::GFX_MODE),
    one(reg::HWS_PGA),
    Hole,
    one(reg::PWRCTX_MAXCNT),
    one(reg::CTX_WA_PTR),
    one(reg::NOPID),
    one(reg::HWSTAM),
    Hole,
    one(reg::EIR),
    one(reg::EMR),
    one(reg::CMD_CCTL),
    one(reg::PREEMPT_DLY),
    one(reg::CTXT_PREMP_DBG),
    one(reg::CS_SELECTOR),
    one(reg::CTXID_PREEMPTION_HINT),
    one(reg::PREEMPTION_HINT_UDW),
    one(reg::PREEMPTION_HINT),
    one(reg::CCID),
    one(reg::PREDICATE_RESULT_2),
    one(reg::CTXT_ST_PTR),
    Registers(reg::CTXT_ST_BUF, 12),
    Registers(reg::CTXT_ST_BUF_UPPER, 12),
    one(reg::SEMA_WAIT_POLL),
    one(reg::IDLEDLY),
    Registers(reg::FORCE_TO_NONPRIV, 12),
    Registers(reg::FORCE_TO_NONPRIV_12, 4),
    Registers(reg::FORCE_TO_NONPRIV_16, 4),
    // A 64-bit register: the PRM lists one pair and reserves space for two (trap T28).
    Registers(reg::EXECLIST_STATUS, 2),
    one(reg::CXT_OFFSET),
    one(reg::STOP_PARSER_CONTROL),
    Registers(reg::STOP_PARSER_HINT_ADDR, 2),
    Registers(reg::EXECLIST_SQ_CONTENTS, 16),
    one(reg::CSB_INTERRUPT_MASK),
    one(reg::EQ_ELEMENT_MASK),
]);

/// "CSFE power context with display" (V8-192). The header in the PRM specifies 99 registers, the list contains 100.
pub const WITH_DISPLAY: PowerImage = PowerImage(&[
    one(reg::GFX_MODE),
    one(reg::HWS_PGA),
    Hole,
    one(reg::PWRCTX_MAXCNT),
    one(reg::CTX_WA_PTR),
    one(reg::NOPID),
    one(reg::HWSTAM),
    Hole,
    one(reg::EIR),
    one(reg::EMR),
    one(reg::CMD_CCTL),
    one(reg::PREEMPT_DLY),
    one(reg::CTXT_PREMP_DBG),
    Registers(reg::SYNC_FLIP_STATUS_0, 2),
    one(reg::SYNC_FLIP_STATUS_2),
    one(reg::CS_SELECTOR),
    one(reg::CTXID_PREEMPTION_HINT),
    one(reg::PREEMPTION_HINT_UDW),
    one(reg::PREEMPTION_HINT),
    one(reg::CCID),
    one(reg::PREDICATE_RESULT_2),
    one(reg::CTXT_ST_PTR),
    Registers(reg::CTXT_ST_BUF, 12),
    Registers(reg::CTXT_ST_BUF_UPPER, 12),
    one(reg::SEMA_WAIT_POLL),
    one(reg::IDLEDLY),
    one(reg::DISPLAY_MESSAGE_FORWARD_STATUS),
    Registers(reg::FORCE_TO_NONPRIV, 12),
    Registers(reg::FORCE_TO_NONPRIV_12, 4),
    Registers(reg::FORCE_TO_NONPRIV_16, 4),
    Registers(reg::EXECLIST_STATUS, 2),
    one(reg::CXT_OFFSET),
    one(reg::STOP_PARSER_CONTROL),
    Registers(reg::STOP_PARSER_HINT_ADDR, 2),
    one(reg::SYNC_FLIP_STATUS_3),
    Registers(reg::SYNC_FLIP_STATUS_4, 2),
    one(reg::SYNC_FLIP_STATUS_6),
    Registers(reg::DISPLAY_MESSAGE_FORWARD_STATUS_2, 2),
    Registers(reg::EXECLIST_SQ_CONTENTS, 16),
    one(reg::CSB_INTERRUPT_MASK),
    one(reg::EQ_ELEMENT_MASK),
]);

/// "CSFE power context" (V8-193), with ring and batch state. The header in the PRM specifies 110 registers, the list
/// contains 109.
pub const WITH_RING: PowerImage = PowerImage(&[
    one(reg::GFX_MODE),
    one(reg::HWS_PGA),
    Disabled,
    one(reg::RING_HEAD),
    one(reg::RING_TAIL),
    one(reg::RING_START),
    one(reg::RING_CTL),
    one(reg::BBADDR_UDW),
    one(reg::BBADDR),
    one(reg::BB_STATE),
    one(reg::SECOND_BB_ADDR_UDW),
    one(reg::SECOND_BB_ADDR),
    one(reg::SECOND_BB_STATE),
    Hole,
    one(reg::PWRCTX_MAXCNT),
    one(reg::CTX_WA_PTR),
    one(reg::NOPID),
    one(reg::HWSTAM),
    one(reg::IMR),
    one(reg::EIR),
    one(reg::EMR),
    one(reg::CMD_CCTL),
    one(reg::UHPTR),
    one(reg::BB_PREEMPT_ADDR_UDW),
    one(reg::BB_PREEMPT_ADDR),
    one(reg::RING_BUFFER_HEAD_PREEMPT),
    one(reg::PREEMPT_DLY),
    one(reg::CTXT_PREMP_DBG),
    Registers(reg::SYNC_FLIP_STATUS_0, 2),
    one(reg::SYNC_FLIP_STATUS_2),
    one(reg::CS_SELECTOR),
    one(reg::CTXID_PREEMPTION_HINT),
    one(reg::PREEMPTION_HINT_UDW),
    one(reg::PREEMPTION_HINT),
    one(reg::CCID),
    one(reg::SBB_PREEMPT_ADDRESS_UDW),
    one(reg::SBB_PREEMPT_ADDRESS),
    one(reg::PREDICATE_RESULT_2),
    one(reg::CTXT_ST_PTR),
    Registers(reg::CTXT_ST_BUF, 12),
    Registers(reg::CTXT_ST_BUF_UPPER, 12),
    one(reg::SEMA_WAIT_POLL),
    one(reg::IDLEDLY),
    one(reg::DISPLAY_MESSAGE_FORWARD_STATUS),
    Registers(reg::FORCE_TO_NONPRIV, 12),
    Registers(reg::EXECLIST_STATUS, 2),
    one(reg::CXT_OFFSET),
    one(reg::STOP_PARSER_CONTROL),
    Registers(reg::STOP_PARSER_HINT_ADDR, 2),
    one(reg::SYNC_FLIP_STATUS_3),
    Registers(reg::SYNC_FLIP_STATUS_4, 2),
    one(reg::SYNC_FLIP_STATUS_6),
    Registers(reg::DISPLAY_MESSAGE_FORWARD_STATUS_2, 2),
    Registers(reg::EXECLIST_SQ_CONTENTS, 16),
    one(reg::CSB_INTERRUPT_MASK),
    one(reg::EQ_ELEMENT_MASK),
]);

/// Length in dwords of the longest power image, including trailing MI_NOOPs.
pub const POWER_DWORDS: usize = 0xe0;

impl PowerImage {
    /// Returns the image of an engine. The PRM does not assign images to engines. The model uses [`WITH_DISPLAY`] for
    /// engines that support display flips. [`WITH_RING`] describes another generation: it lacks whitelist slots that
    /// this card's engines have.
    pub fn of(engine: &EngineInfo) -> Self {
        match engine.class {
            EngineClass::Render | EngineClass::Copy => WITH_DISPLAY,
            _ => WITHOUT_DISPLAY,
        }
    }

    /// Returns the register offsets of the image's pairs on `engine` in order, 0 for a hole. The flag is set for the
    /// disabled RING_CTL.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "the registers of an image lie in an engine's block, below 4 MiB"
    )]
    fn pairs(self, engine: &EngineInfo) -> impl Iterator<Item = (u32, bool)> + use<> {
        let base = engine.mmio_base;
        self.0.iter().flat_map(move |pair| {
            let (first, n, disabled) = match *pair {
                Registers(first, n) => (base + first, n, false),
                Disabled => (base + reg::RING_CTL, 1, true),
                Hole => (0, 1, false),
            };
            (0..n).map(move |n| (first + 4 * n, disabled))
        })
    }

    /// Writes the image: MI_NOOP, the header of one LRI, its pairs, and MI_NOOPs up to a cacheline. Masked registers
    /// are saved with their mask. Returns the length in dwords.
    #[allow(
        clippy::arithmetic_side_effects,
        reason = "the position is at most POWER_DWORDS + 2, and each image has a pair"
    )]
    pub fn emit(self, engine: &EngineInfo, registers: &RegisterFile, image: &mut [u32; POWER_DWORDS]) -> usize {
        *image = [0; POWER_DWORDS];
        let mut at = 2;
        for (register, disabled) in self.pairs(engine) {
            let Some([offset, value]) = image.get_mut(at..at + 2) else { break };
            let kind = registers.decode(register).filter(|_| register != 0).map(|decoded| decoded.register.kind);
            *offset = register;
            *value = match kind {
                Some(Kind::Masked) => all_selected(registers.value(register)),
                Some(_) if !disabled => registers.value(register),
                _ => 0,
            };
            at += 2;
        }
        image[1] = mi::lri(0, count((at - 2) / 2));
        at.next_multiple_of(16).min(POWER_DWORDS)
    }

    /// Executes the image in order: calls `set` with each register and its value. Unlike command execution, this also
    /// restores registers that commands cannot write, such as EIR and EXECLIST_STATUS.
    pub fn restore(image: &[u32], registers: &RegisterFile, mut set: impl FnMut(u32, u32)) {
        let Some((header, pairs)) = image.split_first().and_then(|(_, rest)| rest.split_first()) else { return };
        let count = (*header as usize & 0xff).div_ceil(2);
        let pairs = pairs.as_chunks().0.iter().take(count);
        for &[register, saved] in pairs.filter(|[register, _]| *register != 0) {
            let Some(decoded) = registers.decode(register) else { continue };
            let value = match decoded.register.kind {
                Kind::Masked => masked(registers.value(register), saved),
                _ => saved,
            };
            set(register, value);
        }
    }
}

/// Applies the effect of RC6 to the engines' registers: saves the power images, removes power and restores the images.
/// Hardware enters RC6 after a delay that drivers may rely on, so the model performs all of this when the GT wakes,
/// before the result is observable. State outside the images is preserved by other units (V8-190).
#[allow(clippy::indexing_slicing, reason = "`emit` returns at most POWER_DWORDS")]
pub fn sleep_and_wake(registers: &RegisterFile) {
    let mut image = [0; POWER_DWORDS];
    for engine in registers.engines().list() {
        let kind = PowerImage::of(engine);
        let len = kind.emit(engine, registers, &mut image);
        let mut woken = [(0, 0); POWER_DWORDS / 2];
        for (slot, (register, _)) in woken.iter_mut().zip(kind.pairs(engine)) {
            *slot = (register, registers.reset_value(register));
        }
        // The image restores the registers in the same order.
        let mut slots = woken.iter_mut();
        PowerImage::restore(&image[..len], registers, |register, value| {
            if let Some((_, restored)) = slots.find(|(of, _)| *of == register) {
                *restored = value;
            }
        });
        // Unchanged registers are not written: a vCPU may write them concurrently.
        for (register, value) in woken.into_iter().filter(|(register, _)| *register != 0) {
            if registers.value(register) != value {
                registers.set(register, value);
            }
        }
    }
}
