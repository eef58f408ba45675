// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of saved state that was changed: it is refused without effect, or the card runs with it.

use std::collections::BTreeMap;

use arctic_test_support::document::{Section, Sections};

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

/// Other bytes for the one at a place of a section.
fn others(old: u8) -> impl Iterator<Item = u8> {
    [old ^ 1, old ^ 0x10, old ^ 0x80, 0, 0xff, old.wrapping_add(1)].into_iter().filter(move |value| *value != old)
}

/// Restores a changed state on a card with the state `before`. Returns whether it is accepted; the card runs on then, and
/// has not changed else.
fn accepted(machine: &Machine, before: &SavedCard, bytes: &[u8]) -> bool {
    let Ok(saved) = SavedCard::from_bytes(bytes) else { return false };
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

/// Every byte of a saved state is changed, records are doubled and removed, and so is every section.
#[test]
fn changed_state_is_refused_or_runs() {
    for card in [ivb(), snb()] {
        let document = Sections::of(&busy(&card).card.save().to_bytes());
        let machine = Machine::set_up(&card);
        let before = machine.card.save();
        let accepted = |document: &Sections| accepted(&machine, &before, &document.to_bytes());
        assert!(accepted(&document));
        let mut counts = BTreeMap::<bool, u32>::new();
        for (section, original) in document.sections.iter().enumerate() {
            let mut changed = document.clone();
            // Of the many registers and entries, some.
            let step = original.body.len() / 80 + 1;
            for (at, old) in original.body.iter().copied().enumerate().step_by(step) {
                for value in others(old) {
                    changed.sections[section].body[at] = value;
                    *counts.entry(accepted(&changed)).or_default() += 1;
                }
                changed.sections[section].body[at] = old;
            }
            let width = usize::from(original.record);
            for body in [original.body[width..].to_vec(), [&original.body[..], &original.body[..width]].concat()] {
                changed.sections[section].body = body;
                *counts.entry(accepted(&changed)).or_default() += 1;
            }
            changed.sections.remove(section);
            let optional = [*b"FREQ", *b"REGV", *b"GTTE"].contains(&original.tag);
            assert_eq!(accepted(&changed), optional, "without {original:?}");
        }
        assert!(counts.len() == 2 && counts.values().all(|n| *n > 300), "{counts:?}");
    }
}

/// Sections and fields of a later version.
#[test]
fn the_state_of_other_versions_is_restored() {
    let machine = busy(&ivb());
    let saved = machine.card.save();
    let mut document = Sections::of(&saved.to_bytes());
    let refused = |document: &Sections| SavedCard::from_bytes(&document.to_bytes()).unwrap_err().to_string();
    for section in &mut document.sections {
        let (width, records) = (usize::from(section.record), section.len());
        let longer = (0..records).flat_map(|n| [&section.body[n * width..][..width], &[7; 12]].concat());
        section.body = longer.collect();
        section.record += 12;
    }
    document.sections.reverse();
    document.sections.push(Section { tag: *b"MORE", flags: 0, record: 0, body: vec![1; 5] });
    assert_eq!(SavedCard::from_bytes(&document.to_bytes()), Ok(saved));
    document.get(b"MORE").flags = 1;
    assert_eq!(refused(&document), "the saved state needs section MORE, which this version does not know");
}

/// What a state must have in common with the card.
#[test]
fn the_state_of_another_card_is_refused() {
    let refused = |from: &IntegratedProfile, to: &IntegratedProfile| {
        Machine::set_up(to).card.restore(&busy(from).card.save()).unwrap_err().to_string()
    };
    let device = "the saved state is of device 0x0162 revision 0x09, this is device 0x0112 revision 0x09";
    assert_eq!(refused(&ivb(), &snb()), device);
    let stepped = IntegratedProfile { revision: 8, ..ivb() };
    let device = "the saved state is of device 0x0162 revision 0x08, this is device 0x0162 revision 0x09";
    assert_eq!(refused(&stepped, &ivb()), device);
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
    let document = Sections::of(&machine.card.save().to_bytes());
    let huge = 9_000_000_000_000_000_000_u64.to_le_bytes();
    let refused = |tag: &[u8; 4], offset: usize, value: &[u8]| {
        let mut changed = document.clone();
        let section = changed.get(tag);
        // The engine of the blit is the second one.
        let index = if tag == b"ENGN" { 0 } else { section.len() - 1 };
        section.at(index)[offset..][..value.len()].copy_from_slice(value);
        let saved = SavedCard::from_bytes(&changed.to_bytes());
        saved.and_then(|saved| machine.card.restore(&saved)).unwrap_err().to_string()
    };
    for (tag, offset, value, expected) in [
        (b"GTST", 16, &huge[..], "a time or a frequency"),
        (b"GTST", 32, &huge, "a time or a frequency"),
        (b"FREQ", 0, &[0; 4], "a time or a frequency"),
        (b"ACTV", 0, &huge, "what an engine is doing"),
        (b"ACTV", 8, &[1], "what an engine is doing"),
        (b"ENGN", 4, &[3], "an address of a batch"),
        (b"BLIT", 20, &huge, "a blit"),
        (b"BLIT", 4, &[1], "a blit"),
        (b"BLIT", 4, &[200], "a blit"),
        // Its engine has none then, but a flag of one.
        (b"BLIT", 0, &[7], "a flag"),
        (b"ENGN", 1, &[1], "a flag"),
        (b"GTTT", 0, &[5, 0, 0, 0], "GGTT pages"),
    ] {
        let error = refused(tag, offset, value);
        assert!(error.contains(expected), "{}: {error}", tag.escape_ascii());
    }
}
