// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the bytes of local memory that are counted.

use super::*;

/// A PPGTT with a page of local memory at 0, one of guest memory at 0x1000, and one of local memory at 0x2000.
fn world() -> Memory {
    let memory = memory();
    chain(&memory);
    entry(&memory, 0x4000, 0, 0x70_0003 | DM);
    entry(&memory, 0x4000, 1, GUEST | 3);
    entry(&memory, 0x4000, 2, 0x72_0003 | DM);
    memory.ggtt().set_entry(5, GgttEntry::from(0x70_0000 | 3));
    memory
}

#[test]
fn every_access_is_counted() {
    proves!(
        V13_246,
        "each access to local memory counts its bytes, also in a page that the TLB has and if a part of it is guest memory, of \
        which none is counted"
    );
    let memory = world();
    let space = Space::Ppgtt(ROOT);
    let mut tlb = Tlb::default();
    let mut counts = |what: &dyn Fn(&mut Gam<'_>)| {
        let views = memory.views();
        let mut gam = memory.gam(Function::PF, &views, &mut tlb);
        what(&mut gam);
        gam.take_traffic()
    };
    let stores = |gam: &mut Gam<'_>| (0..10).for_each(|n| gam.write_u32(space, 4 * n, 1).unwrap());
    counts(&stores);
    memory.count_traffic(true);
    assert_eq!(counts(&stores), [0, 40]);
    assert_eq!(counts(&|gam| (0..10).for_each(|n| assert!(gam.read_u64(space, 8 * n).is_ok()))), [80, 0]);
    assert_eq!(counts(&|gam| gam.write_u32(space, 0xffe, 1).unwrap()), [0, 2], "half of it in guest memory");
    assert_eq!(counts(&|gam| gam.write(space, 0xf00, &[1; 0x1200]).unwrap()), [0, 0x200]);
    assert_eq!(counts(&|gam| gam.read(space, 0x1000, &mut [0; 64]).unwrap()), [0, 0]);
    assert_eq!(counts(&|gam| assert!(gam.read_u32(Space::Ggtt, 0x5000).is_ok())), [4, 0]);
    let add = |gam: &mut Gam<'_>| {
        gam.update::<u32>(space, 0x10, &mut BegunAtomic::default(), |old| Some(old + 1)).unwrap();
    };
    assert_eq!(counts(&add), [4, 4]);
    memory.count_traffic(false);
    assert!(counts(&stores)[1] < 40, "the fast path of stores");
}
