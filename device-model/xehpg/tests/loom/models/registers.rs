// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Registers: concurrent writes do not undo each other.

use arctic_base::registers::{Cell, Kind};
use loom::sync::Arc;
use loom::thread;

use super::check;

/// Two vCPUs write different bits of a masked register, one of them twice.
#[test]
fn masked_writes() {
    check(|| {
        let cell = Arc::new(Cell::new(0));
        let other = {
            let cell = cell.clone();
            thread::spawn(move || cell.write(Kind::<()>::Masked, 0x0002_0002))
        };
        cell.write(Kind::<()>::Masked, 0x0001_0001);
        cell.write(Kind::<()>::Masked, 0x0004_0004);
        other.join().unwrap();
        assert_eq!(cell.value(), 7);
    });
}

/// Two vCPUs each write one half of a register, while the card sets another bit of it.
#[test]
fn partly_writable() {
    check(|| {
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
    });
}

/// A status bit that is set while others are cleared stays set.
#[test]
fn a_bit_set_during_a_clear_stays_set() {
    check(|| {
        let cell = Arc::new(Cell::new(1));
        let card = {
            let cell = cell.clone();
            thread::spawn(move || cell.set_bits(2))
        };
        cell.write(Kind::<()>::Write1Clear(!0), 1);
        card.join().unwrap();
        assert_eq!(cell.value(), 2);
    });
}

/// Two vCPUs write a register that the first write locks. One write takes effect, and both vCPUs read its value.
#[test]
fn first_write_locks_the_register() {
    check(|| {
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
    });
}
