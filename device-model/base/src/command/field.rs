// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Fields of commands as data: their location in a command's dwords and their display format. The executors, the
//! disassembler and the fuzzer's grammar use the same tables.

/// Type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// One bit: set or clear.
    Flag,
    /// A number.
    Value,
    /// A number in two's complement.
    Signed,
    /// Bits that are displayed in hexadecimal.
    Hex,
    /// One of these values; all others are reserved.
    Enum(&'static [(u32, &'static str)]),
    /// A graphics address: its low bits unshifted in this dword, bits 47:32 in the next one.
    Address,
    /// As [`FieldKind::Address`], or a register's offset if this bit (dword, bit) of the command is set.
    AddressOrRegister(u8, u8),
    /// A 32-bit graphics address or an offset, unshifted.
    Base,
    /// 64 bits of data: the low dword, and the next one.
    Qword,
    /// A register's offset, unshifted; the command's header says how it is meant.
    Register(AddressingBits),
    /// Must be zero.
    Mbz,
}

/// How a command means a register's offset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Addressing {
    /// The offset is relative to the engine's base.
    pub relative: bool,
    /// The register of another instance of the engine means that of the executing instance.
    pub remapped: bool,
}

/// The header bits of a command that set the [`Addressing`] of a register; `None` where it has no such bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressingBits {
    /// Bit of [`Addressing::relative`].
    pub relative: Option<u8>,
    /// Bit of [`Addressing::remapped`].
    pub remapped: Option<u8>,
}

impl AddressingBits {
    /// All offsets are absolute.
    pub const NONE: AddressingBits = AddressingBits { relative: None, remapped: None };

    /// The addressing in a command with this header. Inlined: the command streamers call it with constant bits.
    #[inline]
    pub fn of(self, header: u32) -> Addressing {
        let is_set = |bit: Option<u8>| bit.is_some_and(|bit| header.checked_shr(bit.into()).unwrap_or(0) & 1 != 0);
        Addressing { relative: is_set(self.relative), remapped: is_set(self.remapped) }
    }
}

/// A field of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name as in the PRM.
    pub name: &'static str,
    /// Index of its first dword, 0 for the header; within a [`Group`] relative to the group's start.
    pub dword: u8,
    /// Its highest bit.
    pub high: u8,
    /// Its lowest bit.
    pub low: u8,
    /// Its type.
    pub kind: FieldKind,
}

/// Bits of the upper dword that belong to a 48-bit address.
const ADDRESS_HIGH: u32 = 0xffff;

impl Field {
    const fn new(name: &'static str, dword: u8, high: u8, low: u8, kind: FieldKind) -> Field {
        assert!(high < 32 && low <= high);
        Field { name, dword, high, low, kind }
    }

    /// One bit.
    pub const fn flag(name: &'static str, dword: u8, bit: u8) -> Field {
        Field::new(name, dword, bit, bit, FieldKind::Flag)
    }

    /// A number in bits `high:low`.
    pub const fn value(name: &'static str, dword: u8, high: u8, low: u8) -> Field {
        Field::new(name, dword, high, low, FieldKind::Value)
    }

    /// A number in two's complement in bits `high:low`.
    pub const fn signed(name: &'static str, dword: u8, high: u8, low: u8) -> Field {
        Field::new(name, dword, high, low, FieldKind::Signed)
    }

    /// Bits `high:low`.
    pub const fn hex(name: &'static str, dword: u8, high: u8, low: u8) -> Field {
        Field::new(name, dword, high, low, FieldKind::Hex)
    }

    /// A dword of data.
    pub const fn data(name: &'static str, dword: u8) -> Field {
        Field::hex(name, dword, 31, 0)
    }

    /// 64 bits of data.
    pub const fn qword(name: &'static str, dword: u8) -> Field {
        Field::new(name, dword, 31, 0, FieldKind::Qword)
    }

    /// One of `values` in bits `high:low`.
    pub const fn choice(
        name: &'static str,
        dword: u8,
        high: u8,
        low: u8,
        values: &'static [(u32, &'static str)],
    ) -> Field {
        Field::new(name, dword, high, low, FieldKind::Enum(values))
    }

    /// A 48-bit address from bit `low` up.
    pub const fn address(name: &'static str, dword: u8, low: u8) -> Field {
        Field::new(name, dword, 31, low, FieldKind::Address)
    }

    /// A 48-bit address, or a register's offset if bit `bit` of dword `of` is set.
    pub const fn address_or_register(name: &'static str, dword: u8, low: u8, (of, bit): (u8, u8)) -> Field {
        Field::new(name, dword, 31, low, FieldKind::AddressOrRegister(of, bit))
    }

    /// A 32-bit address from bit `low` up.
    pub const fn base(name: &'static str, dword: u8, low: u8) -> Field {
        Field::new(name, dword, 31, low, FieldKind::Base)
    }

    /// An unshifted offset in bits `high:low`.
    pub const fn offset(name: &'static str, dword: u8, high: u8, low: u8) -> Field {
        Field::new(name, dword, high, low, FieldKind::Base)
    }

    /// A register's offset, in bits `high`:2.
    pub const fn register(name: &'static str, dword: u8, high: u8, bits: AddressingBits) -> Field {
        Field::new(name, dword, high, 2, FieldKind::Register(bits))
    }

    /// Mask of its bits in its (first) dword.
    #[allow(clippy::arithmetic_side_effects, reason = "Field::new checks the bit positions")]
    #[inline]
    pub const fn mask(self) -> u32 {
        u32::MAX >> (31 - (self.high - self.low)) << self.low
    }

    /// Its bits in its (first) dword, shifted down to bit 0; 0 if the command is too short to contain it.
    #[allow(clippy::indexing_slicing, reason = "`at` is below the number of dwords")]
    #[inline]
    pub const fn get(self, words: &[u32]) -> u32 {
        let at = self.dword as usize;
        if at < words.len() { self.get_in(words[at]) } else { 0 }
    }

    /// Its bits in `dword`, which is its (first) dword, shifted down to bit 0.
    #[inline]
    pub const fn get_in(self, dword: u32) -> u32 {
        (dword & self.mask()) >> self.low
    }

    /// Returns whether any of its bits is set.
    #[inline]
    pub const fn is_set(self, words: &[u32]) -> bool {
        self.get(words) != 0
    }

    /// Returns whether any of its bits is set in `dword`, which is its (first) dword.
    #[inline]
    pub const fn is_set_in(self, dword: u32) -> bool {
        dword & self.mask() != 0
    }

    /// Its value for display: addresses and offsets unshifted, addresses and qwords with their upper dword.
    #[allow(
        clippy::arithmetic_side_effects,
        clippy::indexing_slicing,
        reason = "`at + 1` is below the number of dwords"
    )]
    #[inline]
    pub const fn wide(self, words: &[u32]) -> u64 {
        let at = self.dword as usize;
        let low = self.get(words) as u64;
        let high = if at + 1 < words.len() { words[at + 1] } else { 0 };
        match self.kind {
            FieldKind::Qword => (high as u64) << 32 | low,
            FieldKind::Address | FieldKind::AddressOrRegister(..) => {
                ((high & ADDRESS_HIGH) as u64) << 32 | low << self.low
            }
            FieldKind::Base | FieldKind::Register(_) => low << self.low,
            _ => low,
        }
    }

    /// Number of dwords that it spans.
    #[inline]
    pub const fn dwords(self) -> u8 {
        match self.kind {
            FieldKind::Qword | FieldKind::Address | FieldKind::AddressOrRegister(..) => 2,
            _ => 1,
        }
    }

    /// Mask of its bits in dword `at` of the command.
    #[allow(clippy::arithmetic_side_effects, reason = "a field of two dwords does not begin at dword 255 in any table")]
    #[inline]
    pub const fn bits_of(self, at: u8) -> u32 {
        if at == self.dword {
            self.mask()
        } else if self.dwords() == 2 && at == self.dword + 1 {
            if matches!(self.kind, FieldKind::Qword) { u32::MAX } else { ADDRESS_HIGH }
        } else {
            0
        }
    }
}

/// Elements that a command repeats up to its end: register/value pairs of an LRI, ALU instructions, data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Index of the first dword of the first element.
    pub first: u8,
    /// Number of dwords per element.
    pub dwords: u8,
    /// The fields of an element, relative to its start.
    pub fields: &'static [Field],
}

/// Panics unless the fields are within a command of at most `dwords` and overlap neither each other nor the header bits
/// `taken`.
pub fn check_layout(name: &str, fields: &[Field], group: Option<Group>, dwords: u32, taken: u32) {
    let mut bits = std::collections::BTreeMap::from([(0u8, taken)]);
    let mut names = std::collections::BTreeSet::new();
    let mut lay = |field: &Field, from: u8, within: u32| {
        assert!(names.insert(field.name), "{name} has two fields named {}", field.name);
        for at in field.dword..field.dword.saturating_add(field.dwords()) {
            assert!(u32::from(at) < within, "{name}: {} is in dword {at} of {within}", field.name);
            let laid = bits.entry(from.saturating_add(at)).or_default();
            assert_eq!(*laid & field.bits_of(at), 0, "{name}: {} lies over another field", field.name);
            *laid |= field.bits_of(at);
        }
    };
    fields.iter().for_each(|field| lay(field, 0, dwords));
    if let Some(group) = group {
        assert!(u32::from(group.first.saturating_add(group.dwords)) <= dwords, "{name}: no element of the group fits");
        group.fields.iter().for_each(|field| lay(field, group.first, u32::from(group.dwords)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_where_they_lie() {
        let words = [0x1240_0003, 0xdead_bee7, 0xffff_1234];
        assert_eq!(Field::flag("a", 0, 22).get(&words), 1);
        assert_eq!(Field::value("b", 1, 31, 16).get(&words), 0xdead);
        assert_eq!(Field::address("c", 1, 2).wide(&words), 0x1234_dead_bee4);
        assert_eq!(Field::qword("d", 1).wide(&words), 0xffff_1234_dead_bee7);
        assert_eq!(Field::register("e", 1, 22, AddressingBits::NONE).wide(&words), 0x2d_bee4);
        assert_eq!(Field::data("f", 3).get(&words), 0, "a short form reads zero");
        assert_eq!(Field::data("f", 0).mask(), u32::MAX);
    }

    #[test]
    #[should_panic(expected = "over another field")]
    fn an_overlap_is_found() {
        check_layout("X", &[Field::address("a", 1, 2), Field::flag("b", 2, 3)], None, 4, 0);
    }
}
