//! Fields of commands as data: where in a command's dwords they lie, and how a person reads them. The executors take
//! their bits from here, the disassembler and the fuzzer's grammar read the same tables.

/// How a field is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// One bit: set or clear.
    Flag,
    /// A number.
    Value,
    /// A number in two's complement.
    Signed,
    /// Bits better read in hexadecimal.
    Hex,
    /// One of these values; others are reserved.
    Enum(&'static [(u32, &'static str)]),
    /// A graphics address: its low bits in place in this dword, bits 47:32 in the next one.
    Address,
    /// As [`FieldKind::Address`], or a register's offset where that bit (dword, bit) of the command is set.
    AddressOrRegister(u8, u8),
    /// A graphics address of 32 bits or an offset, in place.
    Base,
    /// Data of 64 bits: the low dword, and the next one.
    Qword,
    /// A register's offset, in place; relative to the engine's base where that bit of the header is set.
    Register(Option<u8>),
    /// Must be zero.
    Mbz,
}

/// A field of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name as the PRM writes it.
    pub name: &'static str,
    /// The dword it begins in, 0 for the header; within a [`Group`] from the group's start.
    pub dword: u8,
    /// Its highest bit.
    pub high: u8,
    /// Its lowest bit.
    pub low: u8,
    /// How it is read.
    pub kind: FieldKind,
}

/// Bits of the upper dword that belong to an address of 48 bits.
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

    /// A qword of data.
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

    /// An address of 48 bits from bit `low` on.
    pub const fn address(name: &'static str, dword: u8, low: u8) -> Field {
        Field::new(name, dword, 31, low, FieldKind::Address)
    }

    /// An address of 48 bits, or a register's offset where bit `bit` of dword `of` is set.
    pub const fn address_or_register(name: &'static str, dword: u8, low: u8, (of, bit): (u8, u8)) -> Field {
        Field::new(name, dword, 31, low, FieldKind::AddressOrRegister(of, bit))
    }

    /// An address of 32 bits from bit `low` on.
    pub const fn base(name: &'static str, dword: u8, low: u8) -> Field {
        Field::new(name, dword, 31, low, FieldKind::Base)
    }

    /// An offset in place, in bits `high:low`.
    pub const fn offset(name: &'static str, dword: u8, high: u8, low: u8) -> Field {
        Field::new(name, dword, high, low, FieldKind::Base)
    }

    /// A register's offset (bits 22:2); `relative` is the header's bit that adds the engine's base.
    pub const fn register(name: &'static str, dword: u8, relative: Option<u8>) -> Field {
        Field::new(name, dword, 22, 2, FieldKind::Register(relative))
    }

    /// Its bits, in place in its (first) dword.
    pub const fn mask(self) -> u32 {
        u32::MAX >> (31 - (self.high - self.low)) << self.low
    }

    /// Its bits in its (first) dword, moved down; 0 where the command is too short to have it.
    pub const fn get(self, words: &[u32]) -> u32 {
        let at = self.dword as usize;
        if at < words.len() { (words[at] & self.mask()) >> self.low } else { 0 }
    }

    /// Whether any of its bits is set.
    pub const fn is_set(self, words: &[u32]) -> bool {
        self.get(words) != 0
    }

    /// Its value as a person means it: addresses and offsets in place, addresses and qwords with their upper dword.
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

    /// Dwords that it reaches over.
    pub const fn dwords(self) -> u8 {
        match self.kind {
            FieldKind::Qword | FieldKind::Address | FieldKind::AddressOrRegister(..) => 2,
            _ => 1,
        }
    }

    /// Its bits of the command's dword `at`, in place.
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

/// What a command repeats up to its end: pairs of an LRI, instructions of the ALU, data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// The dword that the first one begins in.
    pub first: u8,
    /// Dwords of each.
    pub dwords: u8,
    /// The fields of each, by dword from its start.
    pub fields: &'static [Field],
}

/// Whether the fields lie in a command of at most `dwords`, and none over another or over the header's bits `taken`.
#[cfg(test)]
pub(crate) fn well_laid(name: &str, fields: &[Field], group: Option<Group>, dwords: u32, taken: u32) {
    let mut bits = std::collections::BTreeMap::from([(0u8, taken)]);
    let mut names = std::collections::BTreeSet::new();
    let mut lay = |field: &Field, from: u8, within: u32| {
        assert!(names.insert(field.name), "{name} has two fields {}", field.name);
        for at in field.dword..field.dword + field.dwords() {
            assert!(u32::from(at) < within, "{name}: {} is in dword {at} of {within}", field.name);
            let laid = bits.entry(from + at).or_default();
            assert_eq!(*laid & field.bits_of(at), 0, "{name}: {} lies over another field", field.name);
            *laid |= field.bits_of(at);
        }
    };
    fields.iter().for_each(|field| lay(field, 0, dwords));
    if let Some(group) = group {
        assert!(u32::from(group.first + group.dwords) <= dwords, "{name}: not even one of the group fits");
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
        assert_eq!(Field::register("e", 1, None).wide(&words), 0x2d_bee4);
        assert_eq!(Field::data("f", 3).get(&words), 0, "a short form reads zero");
        assert_eq!(Field::data("f", 0).mask(), u32::MAX);
    }

    #[test]
    #[should_panic(expected = "over another field")]
    fn an_overlap_is_found() {
        well_laid("X", &[Field::address("a", 1, 2), Field::flag("b", 2, 3)], None, 4, 0);
    }
}
