// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Context descriptors: identity and location of the contexts in a queue (V8-030..032).

use bitfield_struct::bitfield;

/// Context ID as in status quadwords (V8-031), 22 bits.
#[bitfield(u32, new = false)]
#[derive(PartialEq, Eq)]
pub struct ContextId {
    /// SW context ID.
    software_id: u16,
    /// SW counter.
    #[bits(6)]
    software_counter: u8,
    #[bits(10)]
    __: u16,
}

impl ContextId {
    /// No context: the engine is idle (V8-053; i915: XEHP_IDLE_CTX_ID).
    pub const IDLE: ContextId = ContextId::new(0xffff);
    const MASK: u32 = 0x3f_ffff;

    /// Creates an ID from the 22 bits that status quadwords contain.
    pub const fn new(bits: u32) -> Self {
        ContextId::from_bits(bits & Self::MASK)
    }

    /// The 22 bits that status quadwords contain.
    pub const fn bits(self) -> u32 {
        self.into_bits()
    }
}

/// A context descriptor as drivers write it (i915: intel_lrc.c, lrc_descriptor; contract F.1).
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct Descriptor {
    /// The element is valid (V8-012).
    pub valid: bool,
    __: bool,
    /// Restore the context from memory even if it is running (i915: CTX_DESC_FORCE_RESTORE).
    pub force_restore: bool,
    /// 3 is a four-level PPGTT (i915: INTEL_LEGACY_64B_CONTEXT).
    #[bits(2)]
    pub addressing: u8,
    __: bool,
    /// Fault handling: 0 hangs the context, 1 to 3 wait until the fault is repaired (i915: intel_lrc.h FAULT_AND_HANG).
    #[bits(2)]
    pub fault_handling: u8,
    /// Operands of commands that are not global are in the PPGTT (i915: GEN8_CTX_PRIVILEGE).
    pub ppgtt: bool,
    #[bits(3)]
    __: u8,
    /// Bits 31:12 of the GGTT address of the context's PPHWSP.
    #[bits(20)]
    pub page: u32,
    /// Number of the function that owns the context.
    #[bits(6)]
    pub function: u8,
    __: bool,
    /// SW context ID (i915: XEHP_SW_CTX_ID_SHIFT).
    pub software_id: u16,
    #[bits(3)]
    __: u8,
    /// SW counter (i915: XEHP_SW_COUNTER_SHIFT).
    #[bits(6)]
    pub software_counter: u8,
}

impl Descriptor {
    /// Adds the GuC's identification of the context to `low`: its ID, a count of its submissions and the number of the
    /// owning function (V8-031).
    pub fn named(low: u32, id: u16, counter: u8, function: u8) -> Self {
        let descriptor = Descriptor::from(u64::from(low)).with_software_id(id);
        descriptor.with_software_counter(counter & 0x3f).with_function(function & 0x3f)
    }

    /// GGTT address of the context's PPHWSP.
    pub const fn lrca(self) -> u32 {
        self.page() << 12
    }

    /// The context's ID in status quadwords.
    pub fn id(self) -> ContextId {
        let id = ContextId::new(self.software_id().into());
        id.with_software_counter(self.software_counter())
    }

    /// Returns whether the running context `self` can continue as `new`: it is the same context with the same ID, and
    /// its image need not be read again (V8-079). The LRCA is compared too, because a kernel that submits on behalf of
    /// others uses its own ID (V8-034).
    pub fn continues_as(self, new: Descriptor) -> bool {
        self.lrca() == new.lrca() && self.id() == new.id() && !new.force_restore()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

    use super::*;
    use arctic_fidelity::proves;

    #[test]
    fn fields_are_where_the_driver_puts_them() {
        proves!(
            [V8_030, V8_031],
            "the fields of a descriptor as i915 composes it on this generation: valid, 64-bit addressing, \
            privilege; SW context ID from bit 39, SW counter from bit 58, the function's number in bits 37:32"
        );
        let low = 0x0123_4000 | 3 << 3 | 1 << 8 | 1;
        let descriptor = Descriptor::from(0x2a_u64 << 58 | 0xbeef << 39 | 0x15 << 32 | low);
        assert!(descriptor.valid() && !descriptor.force_restore());
        assert_eq!((descriptor.lrca(), descriptor.addressing()), (0x0123_4000, 3));
        let (id, counter) = (descriptor.software_id(), descriptor.software_counter());
        assert_eq!((id, counter, descriptor.function()), (0xbeef, 0x2a, 0x15));
        assert_eq!(descriptor.id().bits(), 0x2a_beef);
        assert_eq!(Descriptor::named(low as u32, 0xbeef, 0x2a, 0x15), descriptor);
        assert_eq!(Descriptor::from(1 << 38 | 7 << 55).id().bits(), 0, "reserved bits are not part of the ID");
        assert!(!Descriptor::from(!1).valid());
    }

    #[test]
    fn lite_restore_requires_the_same_context() {
        proves!([V8_034, V8_079], "a lite restore requires the same context with the same ID, without Force Restore");
        let running = Descriptor::from(7 << 39 | 0x4000 | 1);
        assert!(running.continues_as(Descriptor::from(u64::from(running) | 1 << 9)));
        for other in [8 << 39 | 0x4001, 7 << 39 | 0x8001, 1 << 58 | 7 << 39 | 0x4001, 7 << 39 | 0x4005] {
            assert!(!running.continues_as(Descriptor::from(other)), "{other:#x}");
        }
    }
}
