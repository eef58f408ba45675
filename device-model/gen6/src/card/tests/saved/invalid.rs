// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of saved state that was changed: it is refused without effect, or the card runs with it.

use std::collections::BTreeMap;

use toml::{Table, Value};

use super::*;

/// A machine with something of everything that is saved.
fn busy(profile: &IntegratedProfile) -> Machine {
    let machine = Machine::set_up(profile);
    machine.batch(BEHIND + BATCH, &(0x0040_0000..0x0040_0500).collect::<Vec<_>>());
    machine.submit(RCS, &[0x0c00_0000, CONTEXT | 0x10d, 0x1880_0100, BATCH]);
    machine.submit(BCS, &[0x4070_0006, 0x03f0_0000, 0, 0x0100_0100, DATA + 0x1000, 0, 0x7777, 0]);
    machine.submit(BCS, &[0x5430_0004, 0x035a_0000, 0, 0x0fff_0400, DATA, !0]);
    machine.submit(VCS, &[0x2000_0000, 0]);
    let writes = [
        (0x217c, 100),
        (0x2178, 0),
        (0x10_0004, 0x7007),
        (0x10_0000, 0x4001),
        (0x13_8128, 0x817),
        (0x13_8124, 1 << 31 | 8),
    ];
    writes.into_iter().for_each(|(offset, value)| machine.write(offset, value));
    machine.clock.advance(500_000);
    machine.card.work();
    machine
}

/// The places of all values in a document.
fn places(value: &Value, place: &mut Vec<String>, all: &mut Vec<Vec<String>>) {
    let mut visit = |key: String, value: &Value| {
        place.push(key);
        all.push(place.clone());
        places(value, place, all);
        place.pop();
    };
    match value {
        Value::Table(table) => table.iter().for_each(|(key, value)| visit(key.clone(), value)),
        Value::Array(array) => array.iter().enumerate().for_each(|(n, value)| visit(n.to_string(), value)),
        _ => {}
    }
}

fn at<'v>(value: &'v mut Value, place: &[String]) -> &'v mut Value {
    place.iter().fold(value, |value, key| match value {
        Value::Table(table) => table.get_mut(key).unwrap(),
        Value::Array(array) => &mut array[key.parse::<usize>().unwrap()],
        _ => unreachable!(),
    })
}

/// Other values for one of a document.
fn others(value: &Value) -> Vec<Value> {
    match value {
        Value::Integer(old) => {
            let bits = (0..36).step_by(7).map(|bit| old ^ 1 << bit);
            bits.chain([0, -1, i64::MAX, old + 1]).map(Value::Integer).collect()
        }
        Value::Boolean(old) => vec![Value::Boolean(!old), Value::Integer(1)],
        Value::String(_) => vec![Value::String("other".to_owned())],
        Value::Array(array) => {
            let double: Vec<_> = array.iter().flat_map(|value| [value.clone(), value.clone()]).collect();
            vec![Value::Array(Vec::new()), Value::Array(double), Value::Array(array.iter().skip(1).cloned().collect())]
        }
        _ => vec![Value::Table(Table::new())],
    }
}

/// Restores a changed state on a card with the state `before`. Returns whether it is accepted; the card runs on then, and
/// has not changed else.
fn accepted(machine: &Machine, before: &SavedCard, document: &Value) -> bool {
    let Ok(saved) = document.clone().try_into::<SavedCard>() else { return false };
    if machine.card.restore(&saved).is_err() {
        assert!(machine.card.save() == *before, "an error changes nothing");
        return false;
    }
    assert!(machine.card.save() == saved);
    for _ in 0..3 {
        machine.card.work();
        machine.clock.advance(100_000);
    }
    for (offset, _) in machine.card.gt.registers.listing() {
        machine.read(offset);
    }
    let mut data = [0; 64];
    machine.card.read(Function::PF, 2, 0x4000, &mut data);
    machine.card.restore(before).unwrap();
    true
}

/// Every value of a saved state is changed, and every part removed.
#[test]
fn changed_state_is_refused_or_runs() {
    for card in [ivb(), snb()] {
        let document = Value::try_from(busy(&card).card.save()).unwrap();
        let machine = Machine::set_up(&card);
        let before = machine.card.save();
        let accepted = |document: &Value| accepted(&machine, &before, document);
        assert!(accepted(&document));
        let mut all = Vec::new();
        places(&document, &mut Vec::new(), &mut all);
        let mut counts = BTreeMap::<bool, u32>::new();
        for place in &all {
            let mut changed = document.clone();
            let old = at(&mut changed, place).clone();
            for value in others(&old).into_iter().filter(|value| *value != old) {
                *at(&mut changed, place) = value;
                let version = place.last().is_some_and(|key| key == "format");
                let taken = accepted(&changed);
                assert!(!(version && taken), "{place:?}");
                *counts.entry(taken).or_default() += 1;
            }
            let (last, parent) = place.split_last().unwrap();
            let mut removed = document.clone();
            if let Value::Table(table) = at(&mut removed, parent) {
                table.remove(last);
                let optional = ["batch", "pending", "directory", "since"].contains(&last.as_str());
                assert_eq!(accepted(&removed), optional, "{place:?}");
                table_with(&mut removed, parent);
                assert!(!accepted(&removed), "an unknown part in {parent:?}");
            }
        }
        assert!(counts.len() == 2 && counts.values().all(|n| *n > 300), "{counts:?}");
    }
}

/// Adds a value that does not exist.
fn table_with(document: &mut Value, place: &[String]) {
    if let Value::Table(table) = at(document, place) {
        table.insert("more".to_owned(), Value::Integer(1));
    }
}

/// What a state must have in common with the card.
#[test]
fn the_state_of_another_card_is_refused() {
    let refused = |from: &IntegratedProfile, to: &IntegratedProfile| {
        Machine::set_up(to).card.restore(&busy(from).card.save()).unwrap_err().to_string()
    };
    assert_eq!(refused(&ivb(), &snb()), "invalid saved state of GT: another generation");
    let fuses = "the saved function had FUSE_STRAP 0x0, this one has 0x40000000";
    assert_eq!(refused(&ivb(), &fused()), fuses);
    let large = IntegratedProfile { ggtt_table: 2 << 20, ..ivb() };
    assert_eq!(refused(&ivb(), &large), "the saved function had GGTT pages 0x40000, this one has 0x80000");
    let mut fast = ivb();
    fast.frequency.rp0 += 50;
    assert!(refused(&fast, &ivb()).contains("RP_STATE_CAP"));
}

/// Values that no card can have.
#[test]
fn impossible_values_are_refused() {
    let machine = busy(&ivb());
    let text = toml::to_string(&machine.card.save()).unwrap();
    let value = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {text}"));
        line.to_owned()
    };
    for (line, other, expected) in [
        (value("now = "), "now = 9000000000000000000", "a time or a frequency"),
        (value("slept = "), "slept = 9000000000000000000", "a time or a frequency"),
        (value("frequencies = "), "frequencies = [5, 5]", "a time or a frequency"),
        (value("watchdog = "), "watchdog = 9000000000000000000", "what an engine is doing"),
        (value("status = "), "status = 1", "what an engine is doing"),
        (value("start = "), "start = 3", "an address of a batch"),
        (value("done = "), "done = 9000000000000000000", "a blit"),
        (value("dwords = "), "dwords = [1]", "a blit"),
        (value("directory = "), "directory = [1, 1]", "a blit"),
        (value("pages = "), "pages = 5", "GGTT pages"),
    ] {
        assert_eq!(text.matches(&line).count().min(1), 1, "{line}");
        let saved: SavedCard = toml::from_str(&text.replacen(&line, other, 1)).unwrap();
        let error = machine.card.restore(&saved).unwrap_err().to_string();
        assert!(error.contains(expected), "{other}: {error}");
    }
    assert!(toml::from_str::<SavedCard>(&text.replacen("format = 1", "format = 2", 1)).is_err());
}
