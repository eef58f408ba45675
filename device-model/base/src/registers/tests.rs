// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the register file with a family that has two engines, a replicated range, and one unit.

use super::*;
use crate::host::Function;

#[derive(Clone, Copy, Debug)]
enum Toy {}

/// The range at 0x100, replicated four times.
#[derive(Debug)]
struct Slices;

impl Replicated for Slices {
    fn replication(&self) -> usize {
        0
    }

    fn instances(&self) -> u16 {
        4
    }
}

/// A register that counts its reads in a scratch register.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Counter;

impl Family for Toy {
    type Live = Counter;
    type Scope = ();
    type Engine = u8;
    type Range = Slices;
}

impl Unit<Toy, RegisterFile<Toy>> for Counter {
    type Effect = (Function, u32);

    fn read(&self, file: &RegisterFile<Toy>, access: Access<'_, Toy>) -> u32 {
        file.update(0x10, |count| count + 1).1 + u32::from(access.ordinal())
    }

    fn write(&self, _: &RegisterFile<Toy>, access: Access<'_, Toy>, value: u32) -> Option<Self::Effect> {
        (value != 0).then_some((access.function, value))
    }
}

const fn row(offset: u32, name: &'static str, kind: Kind<Counter>, reset: u32) -> Register<Toy> {
    Register { offset, name, kind, reset, count: 1, stride: 4, source: "test", scope: (), copies: Copies::One }
}

const CARD: &[Register<Toy>] = &[
    row(0x0, "STORED", Kind::Storage(0x0000_ffff), 0x12),
    row(0x4, "MASKED", Kind::Masked, 0x3),
    row(0x8, "CLEARED", Kind::Write1Clear(0xff), 0xf),
    row(0xc, "CONSTANT", Kind::ReadOnly, 0x8086),
    row(0x10, "SCRATCH", Kind::Storage(!0), 0).per_function_with(7),
    Register { count: 2, ..row(0x20, "COUNTER", Kind::Live(Counter), 0) },
    row(0x100, "SLICE", Kind::Storage(!0), 5),
];
const ENGINE: &[Register<Toy>] = &[row(0x40, "TAIL", Kind::Storage(0xfff8), 0)];

fn file() -> RegisterFile<Toy> {
    let table = |rows, base, engine| Table { rows, base, engine };
    let tables = [table(CARD, 0, None), table(ENGINE, 0x200, Some(0)), table(ENGINE, 0x300, Some(1))];
    RegisterFile::new(0x1000, tables, |offset| (offset & !0xff == 0x100).then_some(&Slices), &[0b1110])
}

#[test]
fn each_kind_stores_its_bits() {
    let file = file();
    for (offset, written, expected) in
        [(0x0, 0xabcd_1234, 0x1234), (0x4, 0x0006_0004, 0x5), (0x8, 0x3, 0xc), (0xc, 0, 0x8086), (0x20, 1, 0)]
    {
        file.write_plain(offset, file.decode(offset).unwrap().register.kind, written);
        assert_eq!(file.value(offset), expected, "{offset:#x}");
    }
    assert_eq!(Kind::Storage::<Counter>(0xff).limited(0xf0), Kind::Storage(0xf0));
    file.reset();
    assert_eq!([0x0, 0x4, 0x8, 0xc].map(|at| file.value(at)), [0x12, 0x3, 0xf, 0x8086]);
}

#[test]
fn offsets_decode_to_rows_elements_and_engines() {
    let file = file();
    let found = |offset| file.decode(offset).map(|found| (found.name(), found.ordinal, found.engine));
    assert_eq!(found(0x24), Some(("COUNTER[1]".into(), 1, None)));
    assert_eq!(found(0x240), Some(("TAIL".into(), 0, Some(0))));
    assert_eq!(found(0x340), Some(("TAIL".into(), 0, Some(1))));
    assert!([0x14, 0x28, 0x40, 0xffc, 0x1000, u32::MAX].iter().all(|offset| found(*offset).is_none()));
    let listed: Vec<u32> = file.listing().map(|(offset, _)| offset).collect();
    assert_eq!(listed, [0x0, 0x4, 0x8, 0xc, 0x10, 0x20, 0x24, 0x100, 0x240, 0x340]);
}

#[test]
#[should_panic(expected = "two registers at 0x0")]
fn two_registers_at_one_offset_are_refused() {
    let table = Table { rows: CARD, base: 0, engine: None };
    let _ = RegisterFile::new(0x1000, [table, table], |_| None, &[]);
}

#[test]
fn present_instances_have_separate_values() {
    let mut file = file();
    let kind = Kind::Storage(!0);
    (0..5).for_each(|instance| file.write_instance(0x100, instance, kind, 0x10 + u32::from(instance)));
    let values = |file: &RegisterFile<Toy>| [0, 1, 2, 3, 4].map(|instance| file.instance_value(0x100, instance));
    assert_eq!(values(&file), [0, 0x11, 0x12, 0x13, 0]);
    assert_eq!(file.value(0x100), 0x11, "the first that exists");
    file.write_all(0x100, file.decode(0x100).unwrap(), kind, 9);
    assert_eq!(values(&file), [0, 9, 9, 9, 0]);
    file.enable(0, 0b0001);
    file.reset();
    assert_eq!(values(&file), [5, 0, 0, 0, 0]);
    assert_eq!(file.instance_value(0x0, 0), 0, "not replicated");
}

#[test]
fn a_function_has_its_copies() {
    let mut file = file();
    let copies = FunctionRegisters::new(&file);
    let copy = file.decode(0x10).unwrap().function_copy.unwrap();
    assert_eq!(file.function_copies().collect::<Vec<_>>(), [(0x10, 7)]);
    copies.write(copy, Kind::<Counter>::Storage(0xff), 0x1ff);
    assert_eq!((copies.value(copy), file.value(0x10)), (0xff, 0));
    copies.reset();
    assert_eq!((copies.save(), copies.copy_at(0x10), copies.copy_at(0x14)), (vec![(0x10, 7)], Some(copy), None));
    file.set_reset(0x10, 3);
    file.reset_range(0x10..0x14);
    assert_eq!((file.value(0x10), file.reset_value(0x10)), (3, 3));
}

#[test]
fn accesses_of_a_unit_reach_its_code() {
    let file = file();
    let access = |offset| Access { function: Function::new(2).unwrap(), offset, decoded: file.decode(offset).unwrap() };
    assert_eq!([0x20, 0x24].map(|offset| Counter.read(&file, access(offset))), [1, 3]);
    assert_eq!(
        (Counter.write(&file, access(0x20), 0), Counter.write(&file, access(0x20), 4)),
        (None, Some((Function::new(2).unwrap(), 4)))
    );
}

#[test]
fn unmodelled_offsets_are_counted_up_to_a_limit() {
    let file = file();
    (0..5000).for_each(|n| file.note_unmodelled(n * 4, n % 2 == 0));
    let counts = file.unmodelled();
    assert_eq!((counts.len(), counts[&0]), (4097, Touches { reads: 0, writes: 1 }));
    assert_eq!(counts[&u32::MAX], Touches { reads: 452, writes: 452 });
}
