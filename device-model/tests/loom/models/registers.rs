// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registers: concurrent writes do not undo each other.

use loom::sync::Arc;
use loom::thread;

use crate::registers::Kind;
use crate::registers::cell::Cell;

pub const ALL: &[crate::Model] = &[
    ("registers::masked_writes", masked_writes),
    ("registers::partly_writable", partly_writable),
    ("registers::a_bit_set_during_a_clear_stays_set", a_bit_set_during_a_clear_stays_set),
    ("registers::the_first_locks", the_first_locks),
];

/// Two vCPUs write different bits of a masked register, one of them twice.
fn masked_writes() {
    let cell = Arc::new(Cell::new(0));
    let other = {
        let cell = cell.clone();
        thread::spawn(move || cell.write(Kind::<()>::Masked, 0x0002_0002))
    };
    cell.write(Kind::<()>::Masked, 0x0001_0001);
    cell.write(Kind::<()>::Masked, 0x0004_0004);
    other.join().unwrap();
    assert_eq!(cell.value(), 7);
}

/// Two vCPUs each write one half of a register, while the card sets another bit of it.
fn partly_writable() {
    let cell = Arc::new(Cell::new(0));
    let others = [(0xff00, 0x5500), (0x00ff, 0x0033)].map(|(mask, value)| {
        let cell = cell.clone();
        thread::spawn(move || cell.write(Kind::<()>::Storage(mask), value))
    });
    cell.set_bits(1 << 31);
    for other in others {
        other.join().unwrap();
    }
    assert_eq!(cell.value(), 1 << 31 | 0x5533);
}

/// A status bit that is set while others are cleared stays set.
fn a_bit_set_during_a_clear_stays_set() {
    let cell = Arc::new(Cell::new(1));
    let card = {
        let cell = cell.clone();
        thread::spawn(move || cell.set_bits(2))
    };
    cell.write(Kind::<()>::Write1Clear(!0), 1);
    card.join().unwrap();
    assert_eq!(cell.value(), 2);
}

/// Two vCPUs write a register that the first write locks. One write takes effect, and both vCPUs read its value.
fn the_first_locks() {
    let cell = Arc::new(Cell::new(0));
    let write = |cell: &Cell, value: u32| {
        cell.update(|old| if old & 1 == 0 { value | 1 } else { old });
        cell.value()
    };
    let other = {
        let cell = cell.clone();
        thread::spawn(move || write(&cell, 0x20))
    };
    let one = write(&cell, 0x10);
    assert_eq!(one, other.join().unwrap());
}
