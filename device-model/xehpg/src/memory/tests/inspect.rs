// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Page tables as a part of the card's state.

use super::*;
use crate::memory::inspect::PageTables;
use arctic_base::inspect::{Inspect, Inspector, Node, Path, visit};

struct Root<'m>(&'m Memory);

impl Inspect for Root<'_> {
    fn inspect(&self, to: &mut Inspector<'_>) {
        to.table("ppgtt", |to| PageTables { memory: self.0, function: Function::PF, root: ROOT }.inspect(to));
    }
}

fn at(memory: &Memory, path: &str) -> Node {
    visit(&Root(memory), &Path::new(path).unwrap(), 0).unwrap()
}

/// Two pages of 4 KiB, a part of a 64 KiB page, one of 2 MiB, and a compact table.
fn tables() -> Memory {
    let memory = memory();
    chain(&memory);
    entry(&memory, 0x4000, 5, 0x70_0003 | DM);
    entry(&memory, 0x4000, 6, 0x70_1003 | DM);
    entry(&memory, 0x4000, 0x13, 0x71_0003 | DM | 1 << 8);
    entry(&memory, 0x3000, 1, 0x20_0003 | DM | PS);
    entry(&memory, 0x3000, 2, 0x5043);
    entry(&memory, 0x5000, 3, 0x10_0001);
    memory
}

/// The list has a part for each run of pages, of any size; the walk for an address ends at the page that accesses reach.
#[test]
fn tables_are_listed_and_walked() {
    let runs = at(&tables(), "ppgtt");
    let expected = [
        ("0x5000", "0x2000 bytes at 0x700000, local memory"),
        ("0x13000", "0x1000 bytes at 0x710000, local memory"),
        ("0x200000", "0x200000 bytes at 0x200000, local memory"),
        ("0x430000", "0x10000 bytes at 0x100000, system memory, read-only"),
    ];
    assert_eq!(runs.parts(), expected.map(|(name, text)| (name.to_owned(), Node::from(text))));
    for address in [0x5abc_u64, 0x6004, 0x1_3010, 0x24_5678] {
        let memory = tables();
        let walk = at(&memory, &format!("ppgtt/{address:#x}"));
        let target = walk.parts().iter().find(|(name, _)| name == "target").map(|(_, target)| target.clone());
        assert_eq!(target, lands(&memory, Space::Ppgtt(ROOT), address).map(Node::address), "{address:#x}");
    }
    let missing = at(&tables(), "ppgtt/0x7000");
    assert_eq!(missing.parts().len(), 4, "up to the entry that is not present: {missing:?}");
}

/// A table that contains itself is listed up to a limit.
#[test]
fn tables_in_a_loop_are_listed_up_to_a_limit() {
    let memory = memory();
    for index in 0..512 {
        entry(&memory, ROOT, index, ROOT | 3 | (index & 1) << 11);
    }
    let runs = at(&memory, "ppgtt");
    assert!((1..=1025).contains(&runs.parts().len()), "{}", runs.parts().len());
    assert_eq!(runs.parts().last().unwrap().0, "...", "it says that it was cut");
}
