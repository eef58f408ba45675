// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! A family of two generations for tests: five MI commands of two lengths, one of them for drivers only, a 2D command of
//! two lengths, a 3D command; addresses of 32 bits; two engines.

use super::row::{self, ClientCommand, MiCommand, MiTable, Predication};
use super::{
    Addressing, AddressingBits, Decode, Description, Field, Group, Length, Next, Remarks, Requester, Rule, Rules,
    Target,
};
use crate::command::description::split;
use crate::decode::show::Names;

/// What the family's parser does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Do {
    Nothing,
    Store,
    Load,
    Start,
    End,
}

/// Engines, one bit each.
pub(crate) const RENDER: u8 = 1;
pub(crate) const BLITTER: u8 = 2;
const ALL: u8 = RENDER | BLITTER;

type Command = MiCommand<Do, u8>;

const GLOBAL: Field = Field::flag("Use Global GTT", 0, 22);
const SPACE: Field = Field::choice("Address Space", 0, 8, 8, &[(0, "GGTT"), (1, "PPGTT")]);
const SECOND_LEVEL: Field = Field::flag("Second Level", 0, 16);
const ADDRESS: Field = Field::base("Address", 1, 2);

const fn command(opcode: u8, name: &'static str, least: u8, action: Do) -> Command {
    let length = if least == 1 { Length::SINGLE } else { Length::field(0x3f) };
    let rules = Rules::new(Rule::ALLOWED, Rule::ALLOWED);
    let predication = Predication::Never;
    MiCommand { opcode, name, length, least, classes: ALL, rules, predication, action, fields: &[], group: None }
}

pub(crate) const ONE: &[Command] = &[
    command(0x00, "MI_NOOP", 1, Do::Nothing),
    Command {
        rules: Rules::new(Rule::DROPPED, Rule::ALLOWED),
        classes: RENDER,
        ..command(0x08, "MI_ARB", 1, Do::Nothing)
    },
    command(0x0a, "MI_END", 1, Do::End),
    Command {
        rules: Rules::new(Rule::unless(GLOBAL.mask()), Rule::ALLOWED),
        fields: &[GLOBAL, ADDRESS, Field::data("Data", 2)],
        ..command(0x20, "MI_STORE", 3, Do::Store)
    },
    Command {
        group: Some(Group {
            first: 1,
            dwords: 2,
            fields: &[
                Field::register("Register", 0, 22, AddressingBits { relative: Some(19), remapped: None }),
                Field::data("Data", 1),
            ],
        }),
        fields: &[Field::flag("Relative", 0, 19)],
        ..command(0x22, "MI_LOAD", 3, Do::Load)
    },
    Command { fields: &[SPACE, SECOND_LEVEL, ADDRESS], ..command(0x31, "MI_START", 2, Do::Start) },
];

/// In the second generation MI_STORE has a reserved dword before its address, and MI_FLUSH is new.
const CHANGES: &[Command] = &[
    Command {
        fields: &[GLOBAL, Field::base("Address", 2, 2), Field::data("Data", 3)],
        ..command(0x20, "MI_STORE", 4, Do::Store)
    },
    command(0x26, "MI_FLUSH", 2, Do::Nothing),
];

pub(crate) static GENERATION_1: MiTable<Do, u8> = row::by_opcode(ONE);
pub(crate) static GENERATION_2: MiTable<Do, u8> = row::changed(&GENERATION_1, CHANGES);

/// 2D commands, by header bits 28:22.
pub(crate) static FLAT: [ClientCommand<Do>; 1] = [ClientCommand {
    opcode: 0x50,
    name: "XY_FILL",
    length: Length::field(0xff),
    lengths: &[3, 5],
    fields: &[Field::value("Pitch", 1, 15, 0), Field::signed("X", 2, 15, 0)],
    action: Do::Nothing,
}];

/// 3D commands, by header bits 31:16.
pub(crate) static PIPELINE: [ClientCommand<Do>; 2] = [
    ClientCommand {
        opcode: 0x7900,
        name: "3D_STATE",
        length: Length::field(0xff),
        lengths: &[],
        fields: &[],
        action: Do::Nothing,
    },
    ClientCommand {
        opcode: 0x7a00,
        name: "3D_FLUSH",
        length: Length::field(0x1ff),
        lengths: &[4],
        fields: &[],
        action: Do::Nothing,
    },
];

/// An engine of a generation.
#[derive(Clone, Copy)]
pub(crate) struct Engine {
    pub(crate) table: &'static MiTable<Do, u8>,
    pub(crate) class: u8,
}

pub(crate) const RENDER_1: Engine = Engine { table: &GENERATION_1, class: RENDER };
pub(crate) const BLITTER_1: Engine = Engine { table: &GENERATION_1, class: BLITTER };
pub(crate) const RENDER_2: Engine = Engine { table: &GENERATION_2, class: RENDER };

impl Engine {
    fn memory_interface(self, header: u32) -> Option<&'static Command> {
        row::lookup(self.table, header).filter(|command| header >> 29 == 0 && command.classes & self.class != 0)
    }

    fn client(self, header: u32) -> Option<&'static ClientCommand<Do>> {
        let opcode = (header >> 16) as u16;
        match (header >> 29, self.class) {
            (2, BLITTER) => ClientCommand::find(&FLAT, opcode >> 6 & 0x7f),
            (3, RENDER) => ClientCommand::find(&PIPELINE, opcode),
            _ => None,
        }
    }
}

impl Decode for Engine {
    fn name(&self) -> &str {
        if self.class == RENDER { "render" } else { "blitter" }
    }

    fn describe(&self, header: u32) -> Option<Description> {
        let command = self.memory_interface(header).map(|command| command.describe(header));
        command.or_else(|| self.client(header).map(|command| command.describe(header)))
    }

    fn remarks(&self, words: &[u32], requester: Requester) -> Remarks {
        let Some(command) = self.memory_interface(words[0]) else {
            let notes = self.client(words[0]).map_or(Vec::new(), |command| command.remarks(words[0]));
            return Remarks { notes, next: Next::Following };
        };
        let next = match command.action {
            Do::End => Next::End,
            Do::Start => Next::Start {
                target: Target {
                    address: ADDRESS.wide(words),
                    ppgtt: SPACE.is_set(words),
                    returns: requester.privileged() || SECOND_LEVEL.is_set(words),
                },
                conditional: false,
            },
            _ => Next::Following,
        };
        Remarks { notes: command.remarks(words, requester), next }
    }
}

impl Names for Engine {
    fn register(&self, offset: u32, addressing: Addressing) -> String {
        if addressing.relative { format!("{}+{offset:#x}", self.name()) } else { format!("{offset:#x}") }
    }

    fn address(&self, address: u64) -> Option<String> {
        (address >> 12 == 7).then(|| "status page".into())
    }
}

#[test]
fn rows_are_consistent() {
    ONE.iter().chain(CHANGES).for_each(Command::check);
    ClientCommand::check(&FLAT, 0xffc0_0000);
    ClientCommand::check(&PIPELINE, 0xffff_0000);
}

#[test]
#[should_panic(expected = "MI_X: a rule refers to reserved bits")]
fn a_rule_on_a_reserved_bit_is_found() {
    Command { rules: Rules::new(Rule::unless(1 << 9), Rule::ALLOWED), ..command(0x01, "MI_X", 1, Do::Nothing) }.check();
}

#[test]
#[should_panic(expected = "two commands with one opcode")]
fn two_rows_with_one_opcode_are_found() {
    const TWICE: &[Command] = &[command(0x01, "MI_X", 1, Do::Nothing), command(0x01, "MI_Y", 1, Do::Nothing)];
    row::by_opcode(TWICE);
}

#[test]
#[should_panic(expected = "not sorted")]
fn rows_out_of_order_are_found() {
    ClientCommand::check(&[PIPELINE[1], PIPELINE[0]], 0xffff_0000);
}

#[test]
fn a_generation_has_the_rows_of_the_one_before_and_its_own() {
    let named = |table, opcode: u32| row::lookup(table, opcode << 23).map(|command| (command.name, command.least));
    for (opcode, one, two) in [
        (0x20, Some(("MI_STORE", 3)), Some(("MI_STORE", 4))),
        (0x26, None, Some(("MI_FLUSH", 2))),
        (0x31, Some(("MI_START", 2)), Some(("MI_START", 2))),
        (0x3f, None, None),
    ] {
        assert_eq!((named(&GENERATION_1, opcode), named(&GENERATION_2, opcode)), (one, two), "{opcode:#x}");
    }
}

#[test]
fn rules_depend_on_the_requester() {
    let store = row::lookup(&GENERATION_1, 0x20 << 23).unwrap();
    let arb = row::lookup(&GENERATION_1, 0x08 << 23).unwrap();
    for requester in Requester::ALL {
        let user = !requester.privileged();
        assert_eq!(store.rule(requester).forbids(0x1040_0001), user);
        assert!(!store.rule(requester).forbids(0x1000_0001));
        assert_eq!(arb.rule(requester).forbids(0x0400_0000), user);
    }
    assert!(store.may_be_restricted(0x1040_0001) && !store.may_be_restricted(0x1000_0001));
    assert!(arb.may_be_restricted(0x0400_0000));
}

#[test]
fn remarks_name_what_is_wrong() {
    let store = row::lookup(&GENERATION_1, 0x20 << 23).unwrap();
    assert_eq!(store.remarks(&[0x1000_0001, 0, 0], Requester::PfUser), [""; 0]);
    assert_eq!(
        store.remarks(&[0x1040_0100, 0], Requester::VfUser),
        [
            "header bits 0x100 are reserved",
            "illegal: expected at least 3 dwords",
            "executed as MI_NOOP without privilege"
        ]
    );
    assert_eq!(store.remarks(&[0x1000_0002, 0, 0, 0], Requester::PfUser), ["4 dwords, of which only 3 have a meaning"]);
    let load = row::lookup(&GENERATION_1, 0x22 << 23).unwrap();
    assert_eq!(load.remarks(&[0x1100_0005, 0, 0, 0, 0, 0, 0], Requester::PfUser), [""; 0], "it has a group");
    assert_eq!(FLAT[0].remarks(0x5400_0001), [""; 0]);
    assert_eq!(FLAT[0].remarks(0x5400_0002), ["invalid length of 4 dwords"]);
    assert_eq!(PIPELINE[0].remarks(0x7900_0007), [""; 0], "its lengths are not known");
    assert_eq!(format!("{:?}", FLAT[0]), "XY_FILL");
}

#[test]
fn a_batch_is_split_by_the_lengths_of_an_engines_commands() {
    let batch = [0x1000_0001, 0, 0, 0x7a00_0002, 0, 0, 0, 0x5400_0001, 0x0500_0000, 0x0400_0000, 0x1800_0001, 0];
    let pieces =
        |engine| split(engine, &batch).map(|piece| (piece.at, piece.name, piece.dwords.len())).collect::<Vec<_>>();
    assert_eq!(
        pieces(RENDER_1),
        [
            (0, Some("MI_STORE"), 3),
            (3, Some("3D_FLUSH"), 4),
            (7, None, 1),
            (8, Some("MI_END"), 1),
            (9, Some("MI_ARB"), 1),
            (10, None, 1),
            (11, Some("MI_NOOP"), 1),
        ]
    );
    assert_eq!(
        pieces(BLITTER_1)[1..6],
        [
            (3, None, 1),
            (4, Some("MI_NOOP"), 1),
            (5, Some("MI_NOOP"), 1),
            (6, Some("MI_NOOP"), 1),
            (7, Some("XY_FILL"), 3),
        ]
    );
    assert_eq!(split(RENDER_1, &[0x1000_0001, 0]).last().unwrap().dwords.len(), 2, "truncated at the end of the batch");
}
