// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Packets of the command stream (PM4): headers, a walk over a stream, and an interpreter that is written from the
//! documents of the packets. It shares no code with the machine, so that the two can be compared.

mod compare;
mod interpreter;
mod walk;

pub use compare::{Difference, Sums, compare};
pub use interpreter::{Interpreter, Limit, Unsupported, Write};
pub use walk::{Histogram, walk};

/// A packet header (AF-099).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Header {
    /// Type 4: values for registers.
    Registers {
        /// The first register.
        first: u32,
        /// Number of values.
        count: u32,
    },
    /// Type 7: an operation.
    Operation {
        /// Which one.
        opcode: u8,
        /// Words after the header.
        count: u32,
    },
}

impl Header {
    /// Words after the header.
    pub const fn count(self) -> u32 {
        match self {
            Self::Registers { count, .. } | Self::Operation { count, .. } => count,
        }
    }
}

/// Reads a header. `None` if the type, a reserved bit or a parity bit is wrong.
pub fn header(word: u32) -> Option<Header> {
    // Each parity bit makes the number of ones in its field odd.
    let field = |low: u32, bits: u32, parity: u32| {
        let value = word >> low & ((1 << bits) - 1);
        let ones = value.count_ones() + (word >> parity & 1);
        (!ones.is_multiple_of(2)).then_some(value)
    };
    match word >> 28 {
        4 => Some(Header::Registers { first: field(8, 19, 27)? & 0x3_ffff, count: field(0, 7, 7)? }),
        7 if word & 0x0f00_4000 == 0 => {
            #[expect(clippy::cast_possible_truncation, reason = "seven bits")]
            let opcode = field(16, 7, 23)? as u8;
            Some(Header::Operation { opcode, count: field(0, 14, 15)? })
        }
        _ => None,
    }
}

/// Builds the header of a type-7 packet with its words.
pub fn operation(opcode: u8, words: &[u32]) -> Vec<u32> {
    let odd = |value: u32| u32::from(value.count_ones().is_multiple_of(2));
    #[expect(clippy::cast_possible_truncation, reason = "fourteen bits")]
    let (opcode, count) = (u32::from(opcode & 0x7f), words.len() as u32 & 0x3fff);
    let header = 7 << 28 | odd(opcode) << 23 | opcode << 16 | odd(count) << 15 | count;
    std::iter::once(header).chain(words.iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use arctic_fidelity::proves;

    use super::*;

    #[test]
    fn header_has_fields_and_odd_parity() {
        proves!(AF_099, "a header has a type, reserved bits and odd parity");
        assert_eq!(header(0x7010_8000), Some(Header::Operation { opcode: 0x10, count: 0 }));
        assert_eq!(header(0x7010_0000), None, "parity of the count");
        assert_eq!(header(0x7090_8000), None, "parity of the opcode");
        assert_eq!(header(0x7110_8000), None, "reserved bit");
        assert_eq!(header(0x4800_0101), None, "parity of the register");
        assert_eq!(header(0x4000_0101), Some(Header::Registers { first: 1, count: 1 }));
        assert_eq!(header(0x3000_0000), None);
        for opcode in 0..128 {
            for length in 0..20 {
                let packet = operation(opcode, &vec![0; length]);
                let count = u32::try_from(length).unwrap();
                assert_eq!(header(packet[0]), Some(Header::Operation { opcode, count }));
            }
        }
    }
}
