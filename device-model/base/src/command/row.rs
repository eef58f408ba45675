// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Rows of the command tables of a family: MI commands, which a table has by opcode, and commands of the other clients,
//! such as 2D and 3D, in sorted rows. A row has what the parser, the disassembler and the fuzzer's grammar use; its
//! action and its set of engines are types of the family.

use super::description::Description;
use super::{Field, Group, Length, Requester, Rule, Rules, field, rule};

/// Effect of MI_SET_PREDICATE_RESULT on a command (V8-140).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Predication {
    /// Skipped while bit 0 is set.
    Global,
    /// Skipped while bit 0 is set if the command's own bit 15 is set.
    Explicit,
    /// Always executed.
    Never,
}

/// One MI command (header bits 31:29 are 0). `A` is the action of the family's parser, `C` a set of engines.
#[derive(Clone, Copy, Debug)]
pub struct MiCommand<A, C> {
    /// Bits 28:23.
    pub opcode: u8,
    /// Name as in the PRM.
    pub name: &'static str,
    /// Length rule.
    pub length: Length,
    /// Minimum length in dwords; a shorter command is illegal.
    pub least: u8,
    /// Engine classes that have the command.
    pub classes: C,
    /// Its rules by requester.
    pub rules: Rules,
    /// Effect of the global predicate.
    pub predication: Predication,
    /// Its action.
    pub action: A,
    /// Its fields, except opcode and length.
    pub fields: &'static [Field],
    /// Repeated elements after the fields.
    pub group: Option<Group>,
}

/// Header bits of client and opcode of an MI command.
const MI_OPCODE: u32 = 0xff80_0000;

impl<A, C> MiCommand<A, C> {
    /// Fast check for the parser: returns false only if no rule forbids the command by this header.
    #[inline(always)]
    pub fn may_be_restricted(&self, header: u32) -> bool {
        (header | rule::ALWAYS) & self.rules.header_mask() != 0
    }

    /// The rule of the command for `requester`.
    #[inline]
    pub fn rule(&self, requester: Requester) -> Rule {
        self.rules.of(requester)
    }

    /// Its description with this header.
    pub const fn describe(&self, header: u32) -> Description {
        Description { name: self.name, dwords: self.length.dwords(header), fields: self.fields, group: self.group }
    }

    /// Remarks on a command with the dwords `words`, as far as they are known: reserved bits, missing and
    /// superfluous dwords, and privileges.
    pub fn remarks(&self, words: &[u32], requester: Requester) -> Vec<String> {
        let header = words.first().copied().unwrap_or(0);
        let mut notes = Vec::new();
        let known = self.fields.iter().fold(MI_OPCODE | self.length.mask(), |bits, field| bits | field.bits_of(0));
        if header & !known != 0 {
            notes.push(format!("header bits {:#x} are reserved", header & !known));
        }
        if words.len() < usize::from(self.least) {
            notes.push(format!("illegal: expected at least {} dwords", self.least));
        }
        if let Some(most) = self.most().filter(|most| words.len() > usize::from(*most)) {
            notes.push(format!("{} dwords, of which only {most} have a meaning", words.len()));
        }
        let rule = self.rule(requester);
        if rule.forbids(header) || rule.forbids_operand(words.get(1).copied().unwrap_or_default()) {
            notes.push("executed as MI_NOOP without privilege".into());
        }
        notes
    }

    /// Number of dwords that have a meaning; `None` if elements are repeated up to the end of the command.
    pub fn most(&self) -> Option<u8> {
        let end = |field: &Field| field.dword.saturating_add(field.dwords());
        self.group.is_none().then(|| self.fields.iter().map(end).fold(self.least, u8::max))
    }

    /// Panics unless the fields are within the command, outside opcode and length, and do not overlap, and the rules
    /// refer only to bits of fields.
    pub fn check(&self) {
        let name = self.name;
        let longest = self.length.dwords(self.length.mask());
        field::check_layout(name, self.fields, self.group, longest, MI_OPCODE | self.length.mask());
        assert!(self.group.is_none_or(|group| self.least >= group.first), "{name} may end before its group");
        let bits = |at| self.fields.iter().fold(0, |bits, field| bits | field.bits_of(at));
        for rule in Requester::ALL.map(|requester| self.rule(requester)) {
            assert_eq!(rule.header_bits() & !rule::ALWAYS & !bits(0), 0, "{name}: a rule refers to reserved bits");
            assert_eq!(rule.operand_bits() & !bits(1), 0, "{name}: a rule refers to reserved bits");
        }
    }
}

/// Number of MI opcodes.
pub const OPCODES: usize = 64;

/// MI commands by opcode.
pub type MiTable<A, C> = [Option<&'static MiCommand<A, C>>; OPCODES];

/// The table of `commands`.
///
/// # Panics
/// If two of them have the same opcode.
#[allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "evaluated at compile time")]
pub const fn by_opcode<A, C>(commands: &'static [MiCommand<A, C>]) -> MiTable<A, C> {
    let mut table = [None; OPCODES];
    let mut n = 0;
    while n < commands.len() {
        assert!(table[commands[n].opcode as usize].is_none(), "two commands with one opcode");
        table[commands[n].opcode as usize] = Some(&commands[n]);
        n += 1;
    }
    table
}

/// `table` with the rows of `changed` instead of those with their opcodes: the table of the next generation.
#[allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "evaluated at compile time")]
pub const fn changed<A, C>(table: &MiTable<A, C>, changed: &'static [MiCommand<A, C>]) -> MiTable<A, C> {
    let mut table = *table;
    let mut n = 0;
    while n < changed.len() {
        table[changed[n].opcode as usize] = Some(&changed[n]);
        n += 1;
    }
    table
}

/// Finds the command of `commands` with an MI header (bits 31:29 are 0).
#[inline]
#[allow(clippy::indexing_slicing, reason = "the opcode has 6 bits")]
pub fn lookup<A, C>(commands: &MiTable<A, C>, header: u32) -> Option<&'static MiCommand<A, C>> {
    commands[(header >> 23 & 0x3f) as usize]
}

/// One command of another client, such as 2D or 3D.
#[derive(Clone, Copy)]
pub struct ClientCommand<A> {
    /// The bits of the header that identify it, shifted down to bit 0. The family determines which bits these are, the
    /// same ones for all rows of a table.
    pub opcode: u16,
    /// Name as in the documents.
    pub name: &'static str,
    /// Length rule.
    pub length: Length,
    /// Valid lengths in dwords; empty if they are not known.
    pub lengths: &'static [usize],
    /// Its fields, except opcode and length.
    pub fields: &'static [Field],
    /// Its action.
    pub action: A,
}

impl<A> ClientCommand<A> {
    /// Finds the command with this opcode in `rows`, which are sorted by opcode.
    pub fn find(rows: &'static [ClientCommand<A>], opcode: u16) -> Option<&'static ClientCommand<A>> {
        rows.get(rows.binary_search_by_key(&opcode, |row| row.opcode).ok()?)
    }

    /// Length in dwords of a command with this header.
    #[inline]
    pub const fn dwords(&self, header: u32) -> u32 {
        self.length.dwords(header)
    }

    /// Its description with this header.
    pub const fn describe(&self, header: u32) -> Description {
        Description { name: self.name, dwords: self.dwords(header), fields: self.fields, group: None }
    }

    /// Remarks on a command with this header.
    pub fn remarks(&self, header: u32) -> Vec<String> {
        let dwords = self.dwords(header);
        let valid = self.lengths.is_empty() || self.lengths.contains(&(dwords as usize));
        if valid { Vec::new() } else { vec![format!("invalid length of {dwords} dwords")] }
    }

    /// Panics unless `rows` are sorted, without two of one opcode, and their fields are within the longest form of the
    /// command, outside the header bits `opcode` and the length, and do not overlap.
    pub fn check(rows: &[ClientCommand<A>], opcode: u32) {
        assert!(rows.is_sorted_by(|one, next| one.opcode < next.opcode), "rows are not sorted by opcode");
        for row in rows {
            let longest = row.lengths.iter().max().and_then(|dwords| u32::try_from(*dwords).ok());
            let longest = longest.unwrap_or_else(|| row.dwords(row.length.mask()));
            field::check_layout(row.name, row.fields, None, longest, opcode | row.length.mask());
        }
    }
}

impl<A> std::fmt::Debug for ClientCommand<A> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name)
    }
}
