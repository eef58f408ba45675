// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Fields of registers. They stand beside the row of their register and are used by its unit, by other units that read
//! it, and by tests.

/// A field of a register: consecutive bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits {
    high: u8,
    low: u8,
}

impl Bits {
    /// Bits `high:low`.
    pub const fn new(high: u8, low: u8) -> Bits {
        assert!(high < 32 && low <= high);
        Bits { high, low }
    }

    /// One bit.
    pub const fn bit(bit: u8) -> Bits {
        Bits::new(bit, bit)
    }

    /// The highest bit.
    pub const fn high(self) -> u8 {
        self.high
    }

    /// The lowest bit.
    pub const fn low(self) -> u8 {
        self.low
    }

    /// The field's bits of a register value set, the others clear.
    #[inline]
    #[allow(clippy::arithmetic_side_effects, reason = "the constructors check the positions")]
    pub const fn mask(self) -> u32 {
        u32::MAX >> (31 - (self.high - self.low)) << self.low
    }

    /// The number in the field of a register value.
    #[inline]
    pub const fn get(self, value: u32) -> u32 {
        (value & self.mask()) >> self.low
    }

    /// A register value with `number` in the field, truncated to its width, and the other bits clear.
    #[inline]
    pub const fn of(self, number: u32) -> u32 {
        number << self.low & self.mask()
    }

    /// Returns whether any bit of the field is set.
    #[inline]
    pub const fn is_set(self, value: u32) -> bool {
        value & self.mask() != 0
    }
}

#[cfg(test)]
mod tests {
    use super::Bits;

    #[test]
    fn a_field_is_extracted_and_placed() {
        let field = Bits::new(19, 11);
        assert_eq!((field.mask(), field.get(0xffff_ffff), field.of(0x12)), (0x000f_f800, 0x1ff, 0x12 << 11));
        assert_eq!(field.of(0x3ff), field.mask(), "truncated");
        assert_eq!((Bits::new(31, 0).mask(), Bits::bit(31).mask(), Bits::bit(0).mask()), (u32::MAX, 1 << 31, 1));
        assert!(Bits::bit(3).is_set(8) && !Bits::bit(3).is_set(0xfff7) && field.is_set(1 << 15));
    }
}
