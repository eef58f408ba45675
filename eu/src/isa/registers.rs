// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Architecture registers (ISA-080).

/// A kind of architecture register.
#[derive(Debug)]
pub struct Register {
    /// Name without number.
    pub name: &'static str,
    /// Number field of the first.
    pub first: u8,
    /// Number of them; 0 if the name has no number.
    pub count: u8,
    /// Bytes of each.
    pub size: u8,
    /// True if the text has a subregister.
    pub has_sub: bool,
    /// True if a subregister counts bytes, not elements.
    pub in_bytes: bool,
}

impl Register {
    /// Bytes from one subregister to the next, for elements of `unit` bytes.
    pub fn step(&self, unit: u32) -> u32 {
        if self.in_bytes { 1 } else { unit }
    }
}

const fn register(name: &'static str, first: u8, count: u8, size: u8, has_sub: bool) -> Register {
    Register { name, first, count, size, has_sub, in_bytes: false }
}

/// A register with subregisters in bytes.
const fn in_bytes(from: Register) -> Register {
    Register { in_bytes: true, ..from }
}

/// All architecture registers.
pub const REGISTERS: &[Register] = &[
    register("null", 0x00, 0, 32, false),
    register("a", 0x10, 1, 32, true),
    register("acc", 0x20, 8, 32, true),
    register("mme", 0x28, 8, 32, true),
    register("f", 0x30, 2, 4, true),
    in_bytes(register("ce", 0x40, 0, 4, false)),
    in_bytes(register("msg", 0x50, 8, 4, true)),
    register("sr", 0x70, 1, 16, true),
    register("cr", 0x80, 1, 12, true),
    register("n", 0x90, 1, 12, true),
    in_bytes(register("ip", 0xa0, 0, 4, false)),
    register("tdr", 0xb0, 1, 16, true),
    register("tm", 0xc0, 1, 20, true),
    register("fc", 0xd0, 4, 128, true),
    register("dbg", 0xf0, 1, 8, true),
];

/// Returns the register with this number field, and which of its kind it is.
pub fn by_number(number: u8) -> Option<(&'static Register, u8)> {
    REGISTERS.iter().find_map(|register| {
        let index = number.checked_sub(register.first)?;
        (index < register.count.max(1)).then_some((register, index))
    })
}
