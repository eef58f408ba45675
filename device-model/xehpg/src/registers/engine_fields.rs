// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Bit fields of the registers that every engine has.

use bitfield_struct::bitfield;

use super::engine_offsets as reg;

/// A register of an engine with bit fields.
pub trait EngineFields: From<u32> + Into<u32> {
    /// Offset from the engine's base.
    const OWN: u32;
}

/// RING_CTL.
#[bitfield(u32)]
pub struct RingCtl {
    /// The ring is enabled.
    pub enabled: bool,
    /// Distance between automatic reports of the head (IVB: RING_BUFFER_CTL).
    #[bits(2)]
    pub head_report: u8,
    #[bits(9)]
    __: u16,
    /// Number of the ring's pages, minus 1.
    #[bits(9)]
    pub last_page: u16,
    #[bits(11)]
    __: u16,
}

impl RingCtl {
    /// Returns the size of the ring in bytes, or 0 if it is not enabled.
    pub fn bytes(self) -> u32 {
        if self.enabled() { u32::from(self.last_page()).saturating_add(1) << 12 } else { 0 }
    }
}

/// RING_HEAD.
#[bitfield(u32)]
pub struct RingHead {
    #[bits(2)]
    __: u8,
    /// Bits 20:2 of the offset of the next command.
    #[bits(19)]
    dword: u32,
    /// Number of times that the head has wrapped.
    #[bits(11)]
    pub wraps: u16,
}

impl RingHead {
    /// Returns the offset of the next command in the ring.
    pub const fn offset(self) -> u32 {
        self.dword() << 2
    }
}

/// RING_TAIL.
#[bitfield(u32)]
pub struct RingTail {
    #[bits(3)]
    __: u8,
    /// Bits 20:3 of the offset behind the last valid command.
    #[bits(18)]
    qword: u32,
    #[bits(11)]
    __: u16,
}

impl RingTail {
    /// Returns the offset behind the last valid command in the ring.
    pub const fn offset(self) -> u32 {
        self.qword() << 3
    }
}

/// RING_RESET_CTL.
#[bitfield(u32)]
pub struct ResetCtl {
    /// Reset requested by the driver.
    pub request: bool,
    /// The engine is ready for reset.
    pub ready: bool,
    /// Catastrophic error, cleared by a masked write of 1.
    pub cat_error: bool,
    #[bits(29)]
    __: u32,
}

/// BB_STATE.
#[bitfield(u32)]
pub struct BbState {
    #[bits(5)]
    __: u8,
    /// The batch is in the PPGTT.
    pub ppgtt: bool,
    #[bits(26)]
    __: u32,
}

/// PR_CTR_CTRL.
#[bitfield(u32)]
pub struct PrCtrCtrl {
    /// 0 enables the counter (trap T4), 1 stops and clears it. Other values are undocumented and stop it.
    #[bits(31)]
    pub control: u32,
    /// The counter counts GPU clocks. If clear, it counts timestamp ticks.
    pub gpu_clock: bool,
}

/// BB_PER_CTX_PTR.
#[bitfield(u32)]
pub struct BbPerCtxPtr {
    /// There is a per-context batch.
    pub valid: bool,
    #[bits(11)]
    __: u16,
    /// Bits 31:12 of its address in the GGTT.
    #[bits(20)]
    page: u32,
}

impl BbPerCtxPtr {
    /// Returns the address of the batch in the GGTT.
    pub fn address(self) -> u64 {
        u64::from(self.page()) << 12
    }
}

/// INDIRECT_CTX.
#[bitfield(u32)]
pub struct IndirectCtx {
    /// Length of the batch in cachelines; 0 for no batch.
    #[bits(6)]
    pub cachelines: u8,
    /// Bits 31:6 of its address in the GGTT.
    #[bits(26)]
    cacheline: u32,
}

impl IndirectCtx {
    /// Returns the address of the batch in the GGTT.
    pub fn address(self) -> u64 {
        u64::from(self.cacheline()) << 6
    }
}

/// INDIRECT_CTX_OFFSET.
#[bitfield(u32)]
pub struct IndirectCtxOffset {
    #[bits(6)]
    __: u8,
    /// Cacheline of the image at which the batch runs.
    #[bits(10)]
    pub cacheline: u16,
    __: u16,
}

/// RING_CONTEXT_CONTROL (CTXT_SR_CTL).
#[bitfield(u32)]
pub struct ContextControl {
    /// The engine context is not restored (xe: CTX_CTRL_ENGINE_CTX_RESTORE_INHIBIT).
    pub restore_inhibit: bool,
    #[bits(2)]
    __: u8,
    /// A wait does not switch to the next context (xe, i915: CTX_CTRL_INHIBIT_SYN_CTX_SWITCH).
    pub inhibit_synchronous_switch: bool,
    #[bits(4)]
    __: u8,
    /// The counters of OAR or OAC are saved and restored with the context (xe: CTX_CTRL_OAC_CONTEXT_ENABLE).
    pub keeps_counters: bool,
    #[bits(23)]
    __: u32,
}

/// MI_PREDICATE_RESULT (V8-126).
#[bitfield(u32)]
pub struct PredicateResult {
    /// The result of MI_PREDICATE.
    pub result: bool,
    #[bits(31)]
    __: u32,
}

/// GFX_MODE.
#[bitfield(u32)]
pub struct GfxMode {
    /// Privilege Check Disable (Intel, Kaby Lake, Volume 2c: GFX_MODE).
    pub privilege_check_disable: bool,
    #[bits(2)]
    __: u8,
    /// Execlist submission is enabled (V8-008; i915: GEN11_GFX_DISABLE_LEGACY_MODE).
    pub disable_legacy_mode: bool,
    #[bits(28)]
    __: u32,
}

/// RING_EXECLIST_CONTROL.
#[bitfield(u32)]
pub struct ExeclistControl {
    /// Loads the submission queue into the execution queue.
    pub load: bool,
    #[bits(31)]
    __: u32,
}

/// RING_FORCE_TO_NONPRIV: one of the driver's slots (V8-186, V13-079).
#[bitfield(u32)]
pub struct NonprivSlot {
    /// Number of registers: 1, 4, 16 or 64.
    #[bits(2)]
    pub range: u8,
    /// Bits 25:2 of the first register's offset.
    #[bits(24)]
    pub dword: u32,
    #[bits(2)]
    __: u8,
    /// Access: read and write, read, write, or none.
    #[bits(2)]
    pub access: u8,
    /// Denies the access instead of permitting it (xe: RING_FORCE_TO_NONPRIV_DENY).
    pub deny: bool,
    /// The slot is for the kernels of VFs. The position is specific to this model.
    pub virtual_kernel: bool,
}

/// ESR, EMR and EIR: one bit for each error condition.
#[bitfield(u32)]
pub struct Errors {
    /// The parser decoded a command that the engine does not implement (i915: I915_ERROR_INSTRUCTION).
    pub instruction: bool,
    __: bool,
    /// A command or part of a command was denied to a non-privileged batch. Parsing continues (i915: "CP_PRIV (bit 2)"
    /// in intel_execlists_submission.c; Kaby Lake's Volume 2c: Command Privilege Violation Error).
    pub privilege: bool,
    #[bits(29)]
    __: u32,
}

macro_rules! at {
    ($($name:ident $own:expr;)*) => {
        $(impl EngineFields for $name {
            const OWN: u32 = $own;
        })*
    };
}

at! {
    RingCtl reg::RING_CTL;
    BbState reg::BB_STATE;
    PrCtrCtrl reg::PR_CTR_CTRL;
    BbPerCtxPtr reg::BB_PER_CTX_PTR;
    IndirectCtx reg::INDIRECT_CTX;
    IndirectCtxOffset reg::INDIRECT_CTX_OFFSET;
    ContextControl reg::CONTEXT_CONTROL;
    PredicateResult reg::PREDICATE_RESULT;
    GfxMode reg::GFX_MODE;
}
