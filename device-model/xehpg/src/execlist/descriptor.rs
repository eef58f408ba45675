// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Context descriptors: identity and location of the contexts in a queue (V8-030..032).

use arctic_sriov::number::low;

/// Context ID as in status quadwords: SW counter and SW context ID (V8-031), 22 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextId(u32);

impl ContextId {
    /// No context: the engine is idle (V8-053; i915: XEHP_IDLE_CTX_ID).
    pub const IDLE: ContextId = ContextId(0xffff);
    const MASK: u32 = 0x3f_ffff;

    /// Creates an ID from the 22 bits that status quadwords contain.
    pub const fn new(bits: u32) -> Self {
        ContextId(bits & Self::MASK)
    }

    /// SW counter in bits 21:16, SW context ID in bits 15:0.
    pub const fn bits(self) -> u32 {
        self.0
    }
}

/// A context descriptor as drivers write it (i915: intel_lrc.c, lrc_descriptor; contract F.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Descriptor(pub u64);

/// First bit of the SW context ID (i915: XEHP_SW_CTX_ID_SHIFT).
const ID_SHIFT: u32 = 39;
/// First bit of the SW counter (i915: XEHP_SW_COUNTER_SHIFT).
const COUNTER_SHIFT: u32 = 58;

impl Descriptor {
    /// Adds the GuC's identification of the context to `low`: its ID, a count of its submissions and the number of the
    /// owning function (V8-031).
    pub fn named(low: u32, id: u16, counter: u8, function: u8) -> Self {
        let high = u64::from(counter & 0x3f) << COUNTER_SHIFT | u64::from(id) << ID_SHIFT;
        Descriptor(high | u64::from(function & 0x3f) << 32 | u64::from(low))
    }

    /// Bit 0: the element is valid (V8-012).
    pub const fn valid(self) -> bool {
        self.0 & 1 << 0 != 0
    }

    /// Bit 2: restore the context from memory even if it is running (i915: CTX_DESC_FORCE_RESTORE).
    pub const fn force_restore(self) -> bool {
        self.0 & 1 << 2 != 0
    }

    /// Bits 4:3: 3 is a four-level PPGTT (i915: INTEL_LEGACY_64B_CONTEXT).
    pub const fn addressing(self) -> u8 {
        (self.0 >> 3 & 3) as u8
    }

    /// Bits 31:12: GGTT address of the context's PPHWSP.
    pub const fn lrca(self) -> u32 {
        low(self.0) & 0xffff_f000
    }

    /// Bits 37:32: number of the function that owns the context.
    pub const fn function(self) -> u8 {
        (self.0 >> 32 & 0x3f) as u8
    }

    /// Bits 54:39.
    pub const fn software_id(self) -> u16 {
        (self.0 >> ID_SHIFT & 0xffff) as u16
    }

    /// Bits 63:58.
    pub const fn software_counter(self) -> u8 {
        (self.0 >> COUNTER_SHIFT) as u8
    }

    /// The context's ID in status quadwords.
    pub fn id(self) -> ContextId {
        let counter = u32::from(self.software_counter()) << 16;
        ContextId((counter | u32::from(self.software_id())) & ContextId::MASK)
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
        let descriptor = Descriptor(0x2a_u64 << 58 | 0xbeef << 39 | 0x15 << 32 | low);
        assert!(descriptor.valid() && !descriptor.force_restore());
        assert_eq!((descriptor.lrca(), descriptor.addressing()), (0x0123_4000, 3));
        let (id, counter) = (descriptor.software_id(), descriptor.software_counter());
        assert_eq!((id, counter, descriptor.function()), (0xbeef, 0x2a, 0x15));
        assert_eq!(descriptor.id().bits(), 0x2a_beef);
        assert_eq!(Descriptor::named(low as u32, 0xbeef, 0x2a, 0x15), descriptor);
        assert_eq!(Descriptor(1 << 38 | 7 << 55).id().bits(), 0, "reserved bits are not part of the ID");
        assert!(!Descriptor(!1).valid());
    }

    #[test]
    fn lite_restore_requires_the_same_context() {
        proves!([V8_034, V8_079], "a lite restore requires the same context with the same ID, without Force Restore");
        let running = Descriptor(7 << 39 | 0x4000 | 1);
        assert!(running.continues_as(Descriptor(running.0 | 1 << 9)));
        for other in [8 << 39 | 0x4001, 7 << 39 | 0x8001, 1 << 58 | 7 << 39 | 0x4001, 7 << 39 | 0x4005] {
            assert!(!running.continues_as(Descriptor(other)), "{other:#x}");
        }
    }
}
