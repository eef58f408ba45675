// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the disassembler with each command at each length.

use arctic_base::command::{Field, FieldKind, Group};
use arctic_base::decode::batch;

use super::*;
use crate::command::PipelineCommand;
use crate::generation::{GENERATIONS, IVY_BRIDGE};

/// Elements of a repeated group that are tried.
const ELEMENTS: u32 = 4;

/// The engines of all generations.
fn engines() -> impl Iterator<Item = EngineRef> {
    GENERATIONS.iter().flat_map(|generation| generation.engines().map(|(id, _)| EngineRef { generation, id }))
}

/// The only command of `header` and ones. Its length is in the header.
fn one(header: u32, length: u32, engine: EngineRef) -> batch::Command {
    let mut words = vec![u32::MAX; length as usize];
    words[0] = header;
    let batch = Batch { requester: Requester::PfKernel, ends: false, ..Batch::new(&words, 0, engine) };
    let mut commands = batch.commands();
    let command = commands.next().unwrap();
    assert!(commands.next().is_none() && command.dwords.len() == words.len(), "{command:?}");
    command
}

/// The names of the fields in the first `length` dwords, with the values that they have in a command of ones.
fn expected(fields: &[Field], group: Option<Group>, header: u32, length: u32) -> Vec<(String, u64)> {
    let within = |field: &&Field| u32::from(field.dword) < length;
    let ones = |field: &Field| match field.kind {
        FieldKind::Base | FieldKind::Register(_) => u64::from(field.mask()),
        // The second dword of a quadword may be absent.
        FieldKind::Qword if u32::from(field.dword) + 1 < length => u64::MAX,
        _ if field.dword == 0 => u64::from(field.get_in(header)),
        _ => u64::from(field.mask() >> field.low),
    };
    let mut all: Vec<_> = fields.iter().filter(within).map(|field| (field.name.to_owned(), ones(field))).collect();
    let Some(group) = group else { return all };
    let elements = length.saturating_sub(group.first.into()) / u32::from(group.dwords);
    for n in 0..elements {
        let of_group = |field: &Field| match field.kind {
            FieldKind::Base | FieldKind::Register(_) => u64::from(field.mask()),
            _ => u64::from(field.mask() >> field.low),
        };
        all.extend(group.fields.iter().map(|field| (format!("{}[{n}]", field.name), of_group(field))));
    }
    all
}

fn assert_shown(command: &batch::Command, expected: &[(String, u64)]) {
    let found: Vec<_> = command.fields.iter().map(|field| (field.name.clone(), field.value)).collect();
    assert_eq!(found, expected, "{command}");
    assert!(command.text().lines().count() <= 1);
}

/// The header bits of `fields`, all set.
fn bits(fields: &[Field]) -> u32 {
    fields.iter().fold(0, |bits, field| bits | field.bits_of(0))
}

/// Every MI command: at its legal lengths it shows the fields in its dwords without a remark; a shorter and a longer one
/// has a remark. Addresses have one dword: what follows an address is another field (IVB-140, G67-120).
#[test]
fn mi_commands_are_shown_at_each_length() {
    let mut tried = 0;
    for engine in engines() {
        let class = engine.info().class;
        for row in engine.generation.commands.mi.iter().flatten().filter(|row| row.classes.has(class)) {
            assert!(row.fields.iter().all(|field| field.dwords() == 1), "{} has a field of two dwords", row.name);
            let header = u32::from(row.opcode) << 23 | bits(row.fields);
            if row.length.mask() == 0 {
                let command = one(header, 1, engine);
                assert_eq!(command.notes, [""; 0], "{command}");
                assert_shown(&command, &expected(row.fields, None, header, 1));
                tried += 1;
                continue;
            }
            let at = |length: u32| one(header | (length - 2), length, engine);
            let least = u32::from(row.least);
            let legal = match row.group {
                Some(group) => (0..=ELEMENTS).map(|n| u32::from(group.first) + n * u32::from(group.dwords)).collect(),
                None => vec![row.most().unwrap().into()],
            };
            for length in legal.into_iter().filter(|length| *length >= least) {
                let command = at(length);
                assert_eq!(command.notes, [""; 0], "{length}: {command}");
                assert_shown(&command, &expected(row.fields, row.group, header, length));
                tried += 1;
            }
            for length in 2..least {
                let command = at(length);
                assert_eq!(command.notes, [format!("illegal: expected at least {least} dwords")]);
                let present = row.fields.iter().filter(|field| u32::from(field.dword) < length).count();
                assert!(command.fields.len() >= present, "{command}");
                tried += 1;
            }
            if let Some(most) = row.most() {
                let notes = [format!("{} dwords, of which only {most} have a meaning", most + 1)];
                let command = at(u32::from(most) + 1);
                assert_eq!(command.notes, notes);
                assert_shown(&command, &expected(row.fields, None, header, most.into()));
            }
        }
    }
    assert!(tried > 100, "{tried} commands");
}

/// Every command of the other clients with a row of its own, at each of its lengths, and with one dword more.
#[test]
fn commands_of_other_clients_are_shown_at_each_length() {
    let mut tried = 0;
    let mut check = |header: u32, mask: u32, lengths: &[usize], fields: &[Field], engine| {
        assert!(fields.iter().all(|field| field.dwords() == 1 || field.kind == FieldKind::Qword));
        let header = header | bits(fields);
        for length in lengths.iter().map(|length| u32::try_from(*length).unwrap()) {
            let command = one(header | (length - 2), length, engine);
            assert_eq!(command.notes, [""; 0], "{command}");
            assert_shown(&command, &expected(fields, None, header, length));
            tried += 1;
        }
        if let Some(longest) = lengths.iter().max() {
            let length = u32::try_from(longest + 1).unwrap();
            assert_eq!(
                one(header | (length - 2), length, engine).notes,
                [format!("invalid length of {length} dwords")]
            );
        }
        if lengths.is_empty() && mask != 0 {
            for length in 2..10 {
                assert_eq!(one(header | (length - 2), length, engine).notes, [""; 0], "its lengths are not known");
            }
        }
        if mask == 0 {
            assert_shown(&one(header, 1, engine), &expected(fields, None, header, 1));
        }
    };
    let on = |class| engines().filter(move |engine| engine.info().class == class);
    for engine in on(crate::topology::EngineClass::Render) {
        let rows: &[PipelineCommand] = engine.generation.commands.pipelines.render;
        for row in rows {
            check(u32::from(row.opcode) << 16, row.length.mask(), row.lengths, row.fields, engine);
        }
    }
    for engine in on(crate::topology::EngineClass::Copy) {
        for row in engine.generation.commands.blitter {
            check(2 << 29 | u32::from(row.opcode) << 22, row.length.mask(), row.lengths, row.fields, engine);
        }
    }
    assert!(tried > 10, "{tried} commands");
}

/// What these commands look like: the dword behind an address is data, and Gen8 has other lengths.
#[test]
fn addresses_have_one_dword() {
    let text = |words: &[u32], engine: &str| {
        let engine = EngineRef::named(&IVY_BRIDGE, engine).unwrap();
        let batch = Batch { requester: Requester::PfKernel, ..Batch::new(words, 0, engine) };
        let command = batch.commands().next().unwrap();
        (command.text(), command.notes.join(", "))
    };
    let plain = |text: &str| (text.to_owned(), String::new());
    assert_eq!(
        text(&[0x1240_0001, 0x2358, 0x8000], "bcs0"),
        plain("Use Global GTT, Register rcs0.TIMESTAMP, Memory Address 0x8000")
    );
    assert_eq!(
        text(&[0x1300_4001, 0x8004, 0x1234], "bcs0"),
        plain(
            "Post-Sync Operation write immediate, Destination Address Type GGTT, Address 0x8000, Immediate Data 0x1234"
        )
    );
    assert_eq!(
        text(&[0x1300_4002, 0x8004, 0x1234, 0x5678], "vcs0"),
        plain(
            "Post-Sync Operation write immediate, Destination Address Type GGTT, Address 0x8000, Immediate Data 0x1234, \
             Immediate Data 0x5678"
        )
    );
    let (shown, notes) = text(&[0x1240_0002, 0x2358, 0x8000, 0], "bcs0");
    assert_eq!(
        (shown.contains("Memory Address 0x8000"), notes.as_str()),
        (true, "4 dwords, of which only 3 have a meaning")
    );
}
