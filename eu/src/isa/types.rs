// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Element types of operands (ISA-040) and the packed types of immediates (ISA-042).

/// Type of an operand's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are those of the assembler")]
pub enum Type {
    Ub,
    Uw,
    Ud,
    Uq,
    B,
    W,
    D,
    Q,
    Hf,
    F,
    Df,
    Bf,
    /// Immediate of eight unsigned 4-bit integers, read as words.
    Uv,
    /// Immediate of eight signed 4-bit integers, read as words.
    V,
    /// Immediate of four 8-bit floats, read as floats.
    Vf,
    /// Operand of dpas with eight unsigned 4-bit integers in a dword.
    U4,
    /// Operand of dpas with eight signed 4-bit integers in a dword.
    S4,
    /// Operand of dpas with unsigned 2-bit integers.
    U2,
    /// Operand of dpas with signed 2-bit integers.
    S2,
}

/// Types with their names and codes in a 4-bit type field, in the order of [`Type`]. Packed types have no code of their own.
const ROWS: [(Type, &str, u8); Type::S2 as usize + 1] = [
    (Type::Ub, "ub", 0),
    (Type::Uw, "uw", 1),
    (Type::Ud, "ud", 2),
    (Type::Uq, "uq", 3),
    (Type::B, "b", 4),
    (Type::W, "w", 5),
    (Type::D, "d", 6),
    (Type::Q, "q", 7),
    (Type::Hf, "hf", 9),
    (Type::F, "f", 10),
    (Type::Df, "df", 11),
    (Type::Bf, "bf", 13),
    (Type::Uv, "uv", 0),
    (Type::V, "v", 4),
    (Type::Vf, "vf", 8),
    (Type::U4, "u4", 0),
    (Type::S4, "s4", 4),
    (Type::U2, "u2", 0),
    (Type::S2, "s2", 4),
];

const _: () = {
    let mut index = 0;
    while index < ROWS.len() {
        assert!(ROWS[index].0 as usize == index);
        index += 1;
    }
};

impl Type {
    fn row(self) -> (Type, &'static str, u8) {
        ROWS[self as usize]
    }

    /// Name in assembly text, without the colon.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// Returns the type with this name.
    pub fn from_name(name: &str) -> Option<Type> {
        ROWS.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    /// Code in a 4-bit type field. ISA-040, ISA-042.
    pub fn code(self) -> u8 {
        self.row().2
    }

    /// Returns the type of a register operand; `None` for a reserved code.
    pub fn from_code(code: u8) -> Option<Type> {
        ROWS[..12].iter().find(|row| row.2 == code).map(|row| row.0)
    }

    /// Returns the type of an immediate; codes of 8-bit types stand for packed vectors. ISA-014, ISA-042.
    pub fn from_immediate_code(code: u8) -> Option<Type> {
        match code {
            0 => Some(Type::Uv),
            4 => Some(Type::V),
            8 => Some(Type::Vf),
            _ => Type::from_code(code),
        }
    }

    /// Bytes of an element in a register; of a packed type, bytes of an element that a lane reads.
    pub fn size(self) -> u32 {
        match self {
            Type::Ub | Type::B | Type::U4 | Type::S4 | Type::U2 | Type::S2 => 1,
            Type::Uw | Type::W | Type::Hf | Type::Bf | Type::Uv | Type::V => 2,
            Type::Ud | Type::D | Type::F | Type::Vf => 4,
            Type::Uq | Type::Q | Type::Df => 8,
        }
    }

    /// True for signed integers.
    pub fn is_signed(self) -> bool {
        matches!(self, Type::B | Type::W | Type::D | Type::Q | Type::V | Type::S4 | Type::S2)
    }

    /// True for floating-point types.
    pub fn is_float(self) -> bool {
        matches!(self, Type::Hf | Type::F | Type::Df | Type::Bf | Type::Vf)
    }

    /// Type in a ternary instruction from the 3-bit code and the execution type bit. ISA-015.
    pub fn from_ternary_code(code: u8, float: bool) -> Option<Type> {
        if float {
            [None, Some(Type::Hf), Some(Type::F), Some(Type::Df), None, Some(Type::Bf), None, None]
                [usize::from(code & 7)]
        } else {
            Type::from_code(code & 7)
        }
    }

    /// The 3-bit code in a ternary instruction. ISA-015.
    pub fn ternary_code(self) -> u8 {
        match self {
            Type::Hf => 1,
            Type::F => 2,
            Type::Df => 3,
            Type::Bf => 5,
            _ => self.code() & 7,
        }
    }
}

#[cfg(test)]
mod tests {
    use arctic_fidelity::proves;

    use super::*;

    #[test]
    fn codes_of_registers_are_those_of_isa_040() {
        proves!(ISA_136, "no code of a register's type is TF32 or an 8-bit float");
        for code in 0..16 {
            match Type::from_code(code) {
                None => assert!([8, 12, 14, 15].contains(&code)),
                Some(ty) => {
                    assert_eq!(ty.code(), code);
                    assert_eq!(ty.size(), 1 << (code & 3));
                    assert_eq!(ty.is_signed(), code & 8 == 0 && code & 4 != 0);
                    assert_eq!(ty.is_float(), code & 8 != 0);
                    assert_eq!(Type::from_name(ty.name()), Some(ty));
                }
            }
        }
    }
}
