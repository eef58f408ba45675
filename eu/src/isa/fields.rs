// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Bit positions of the fields of each format in the 128-bit instruction (groups B and C of the document on the ISA).

/// A field of consecutive bits, at most 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits {
    /// Number of the lowest bit.
    pub low: u8,
    /// Number of bits.
    pub width: u8,
}

/// The field with these numbers of its highest and lowest bit.
pub const fn bits(high: u8, low: u8) -> Bits {
    Bits { low, width: high - low + 1 }
}

/// A field of one bit.
pub const fn bit(number: u8) -> Bits {
    bits(number, number)
}

impl Bits {
    /// Value of the field in an instruction.
    pub const fn get(self, word: u128) -> u64 {
        (word >> self.low & ((1u128 << self.width) - 1)) as u64
    }

    /// Value of a field of at most eight bits.
    pub const fn get8(self, word: u128) -> u8 {
        self.get(word) as u8
    }

    /// True if the field is not zero.
    pub const fn is_set(self, word: u128) -> bool {
        self.get(word) != 0
    }

    /// Value of a field of at most 31 bits in a descriptor.
    pub const fn get32(self, dword: u32) -> u32 {
        dword >> self.low & ((1 << self.width) - 1)
    }

    /// True if the field of a descriptor is not zero.
    pub const fn is_set32(self, dword: u32) -> bool {
        self.get32(dword) != 0
    }

    /// Sets the field. Bits of the value that do not fit are dropped.
    pub const fn set(self, word: &mut u128, value: u64) {
        let mask = ((1u128 << self.width) - 1) << self.low;
        *word = *word & !mask | (value as u128) << self.low & mask;
    }
}

// ISA-010: common to all formats.
pub const OPCODE: Bits = bits(6, 0);
pub const SWSB: Bits = bits(15, 8);
pub const EXEC_SIZE: Bits = bits(18, 16);
pub const CHANNEL: Bits = bits(21, 19);
pub const FLAG: Bits = bits(23, 22);
pub const PREDICATE: Bits = bits(27, 24);
pub const INVERT: Bits = bit(28);
pub const COMPACTED: Bits = bit(29);
pub const BREAKPOINT: Bits = bit(30);
pub const NO_MASK: Bits = bit(31);
pub const ATOMIC: Bits = bit(32);
pub const ACC_WRITE: Bits = bit(33);
pub const SATURATE: Bits = bit(34);
pub const MODIFIER: Bits = bits(95, 92);

// ISA-011: destination of the two-source format; most of it is common.
pub const DST_INDIRECT: Bits = bit(35);
pub const DST_TYPE: Bits = bits(39, 36);
pub const DST_STRIDE: Bits = bits(49, 48);
pub const DST_FILE: Bits = bit(50);
pub const DST_SUB: Bits = bits(55, 51);
pub const DST_REG: Bits = bits(63, 56);
pub const DST_ADDRESS: Bits = bits(63, 60);
pub const DST_OFFSET: Bits = bits(59, 50);

/// Fields of a source in the two-source format. ISA-012, ISA-013.
#[derive(Clone, Copy, Debug)]
pub struct SourceFields {
    pub ty: Bits,
    pub abs: Bits,
    pub negate: Bits,
    pub immediate: Bits,
    pub hstride: Bits,
    pub file: Bits,
    pub sub: Bits,
    pub reg: Bits,
    pub indirect: Bits,
    pub width: Bits,
    pub vstride: Bits,
    pub address: Bits,
    pub offset: Bits,
}

/// Source 0 and source 1 of the two-source format.
pub const SOURCES: [SourceFields; 2] = [
    SourceFields {
        ty: bits(43, 40),
        abs: bit(44),
        negate: bit(45),
        immediate: bit(46),
        hstride: bits(65, 64),
        file: bit(66),
        sub: bits(71, 67),
        reg: bits(79, 72),
        indirect: bit(80),
        width: bits(83, 81),
        vstride: bits(87, 84),
        address: bits(79, 76),
        offset: bits(75, 66),
    },
    SourceFields {
        ty: bits(91, 88),
        abs: bit(120),
        negate: bit(121),
        immediate: bit(47),
        hstride: bits(97, 96),
        file: bit(98),
        sub: bits(103, 99),
        reg: bits(111, 104),
        indirect: bit(112),
        width: bits(115, 113),
        vstride: bits(119, 116),
        address: bits(111, 108),
        offset: bits(107, 98),
    },
];
// ISA-014.
pub const IMMEDIATE: Bits = bits(127, 96);
pub const IMMEDIATE_HIGH: Bits = bits(95, 64);

/// Fields of a source in the ternary format. ISA-015.
#[derive(Clone, Copy, Debug)]
pub struct TernaryFields {
    pub ty: Bits,
    pub abs: Bits,
    pub negate: Bits,
    /// Bits of the vertical stride, the higher first; source 2 has none.
    pub vstride: Option<(Bits, Bits)>,
    pub hstride: Bits,
    pub file: Bits,
    pub sub: Bits,
    pub reg: Bits,
    /// Flag and value of a 16-bit immediate; source 1 has none.
    pub immediate: Option<(Bits, Bits)>,
}

pub const TERNARY_FLOAT: Bits = bit(39);
pub const TERNARY_DST_TYPE: Bits = bits(38, 36);
pub const TERNARY_DST_STRIDE: Bits = bit(48);
pub const TERNARY: [TernaryFields; 3] = [
    TernaryFields {
        ty: bits(42, 40),
        abs: bit(44),
        negate: bit(45),
        vstride: Some((bit(43), bit(35))),
        hstride: bits(65, 64),
        file: bit(66),
        sub: bits(71, 67),
        reg: bits(79, 72),
        immediate: Some((bit(46), bits(79, 64))),
    },
    TernaryFields {
        ty: bits(90, 88),
        abs: bit(86),
        negate: bit(87),
        vstride: Some((bit(91), bit(83))),
        hstride: bits(97, 96),
        file: bit(98),
        sub: bits(103, 99),
        reg: bits(111, 104),
        immediate: None,
    },
    TernaryFields {
        ty: bits(82, 80),
        abs: bit(84),
        negate: bit(85),
        vstride: None,
        hstride: bits(113, 112),
        file: bit(114),
        sub: bits(119, 115),
        reg: bits(127, 120),
        immediate: Some((bit(47), bits(127, 112))),
    },
];
/// Low nibble of the truth table of bfn; the high nibble is [`MODIFIER`]. ISA-017.
pub const BFN_LOW: Bits = bits(87, 84);

// ISA-018: dpas.
pub const DPAS_DEPTH: Bits = bits(49, 48);
pub const DPAS_REPEAT: Bits = bits(45, 43);
/// Precision of sources 1 and 2 below a byte: 0 none, 1 four bits, 2 two bits.
pub const DPAS_SUBBYTE: [Bits; 2] = [bits(87, 86), bits(85, 84)];

// ISA-019: send.
pub const SEND_EXBSO: Bits = bit(39);
pub const SEND_DESC_REG: Bits = bit(48);
pub const SEND_EXDESC_REG: Bits = bit(49);
pub const SEND_EXDESC_SUB: Bits = bits(42, 40);
pub const SEND_SRC1_LENGTH: Bits = bits(103, 99);
/// Parts of the immediate descriptor, with the number of their lowest bit in it.
pub const SEND_DESC: [(Bits, u8); 5] =
    [(bits(91, 81), 0), (bits(121, 113), 11), (bits(55, 51), 20), (bits(71, 67), 25), (bits(123, 122), 30)];
/// Parts of the immediate extended descriptor.
pub const SEND_EXDESC: [(Bits, u8); 4] =
    [(bits(47, 35), 11), (bits(65, 64), 24), (bits(97, 96), 26), (bits(127, 124), 28)];

// ISA-021: branches. Both are signed bytes relative to the branch.
pub const JIP: Bits = bits(127, 96);
pub const UIP: Bits = bits(95, 64);

/// Value of a field in parts.
pub fn gather(word: u128, parts: &[(Bits, u8)]) -> u32 {
    parts.iter().map(|(field, low)| field.get(word) << low).sum::<u64>() as u32
}

/// Sets a field in parts.
pub fn scatter(word: &mut u128, parts: &[(Bits, u8)], value: u32) {
    for (field, low) in parts {
        field.set(word, u64::from(value >> low));
    }
}
