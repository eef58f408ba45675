// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of the functions that an invalidation concerns, and of the record of the functions that a step uses.

use super::*;
use crate::topology::{EngineId, XE_HPG_ENGINES};
use arctic_fidelity::proves;

const VF1: Function = Function::new(1).unwrap();
const VF2: Function = Function::new(2).unwrap();

fn engine(n: usize) -> EngineId {
    XE_HPG_ENGINES.all().nth(n).unwrap()
}

/// Contract C.5, E.3: an invalidation drops the translations of its functions only.
#[test]
fn an_invalidation_drops_translations_of_its_functions() {
    type Event = fn(&Memory);
    let events: [(&str, Event, [bool; 3]); 4] = [
        ("the PF invalidates", |memory| memory.invalidate(Function::PF.bit()), [true, false, false]),
        ("VF 1 invalidates", |memory| memory.invalidate(VF1.bit()), [false, true, false]),
        ("VF 1's quota changes", |memory| memory.set_quota(VF1, 2 << 20), [false, true, false]),
        ("the LMTT changes", |memory| memory.set_lmem_cfg(0), [false, true, true]),
    ];
    for (name, event, drops) in events {
        let memory = memory();
        let mut tlbs = [Function::PF, VF1, VF2].map(|function| {
            let (views, mut tlb) = (memory.views(), Tlb::default());
            memory.gam(function, &views, &mut tlb);
            let backing = tlb::Backing::Null;
            tlb.insert(0, tlb::Page { base: 0, len: 0x1000, target: 0, root: ROOT, backing, writable: true });
            (function, tlb)
        });
        event(&memory);
        let dropped = tlbs.each_mut().map(|(function, tlb)| {
            let views = memory.views();
            memory.gam(*function, &views, tlb);
            tlb.find(ROOT, 0).is_none()
        });
        assert_eq!(dropped, drops, "{name}");
    }
}

/// Translations of all slots are invalidated, whichever have been used: small and large pages, and directories.
#[test]
fn a_flush_invalidates_every_slot() {
    let mut tlb = tlb::Tlb::default();
    let backing = tlb::Backing::Null;
    for step in [1, 7, 512] {
        let addresses = || (0..512_u64).step_by(step).map(|slot| slot << 12);
        let large = || addresses().map(|address| address << 9);
        for (address, len) in addresses().map(|address| (address, 0x1000)).chain(large().map(|at| (at, 2 << 20))) {
            tlb.insert(address, tlb::Page { base: address, len, target: 0, root: ROOT, backing, writable: true });
            assert!(tlb.find(ROOT, address).is_some());
        }
        large().for_each(|address| tlb.insert_directory(ROOT, address, 3));
        assert!(large().any(|address| tlb.directory(ROOT, address).is_some()));
        tlb.flush();
        assert!(addresses().chain(large()).all(|address| tlb.find(ROOT, address).is_none()), "{step}");
        assert!(large().all(|address| tlb.directory(ROOT, address).is_none()), "{step}");
    }
}

#[test]
fn a_step_records_the_functions_that_it_uses() {
    proves!(
        [V13_020, V13_030],
        "a step is recorded for the function on whose behalf it accesses memory, and for the owners of GGTT pages \
        that the PF accesses, until its mappings are dropped. Steps of other engines and of the GuC are separate"
    );
    let memory = memory();
    let owned = |vf: Function| GgttEntry::from(GUEST | u64::from(vf.number()) << 2 | 1);
    memory.ggtt().set_entry(1, owned(VF1));
    memory.ggtt().set_entry(2, owned(VF2));
    let used = |n| [Function::PF, VF1, VF2].map(|function| memory.used_by(engine(n), function.bit()));
    let mut tlb = Tlb::default();
    {
        let views = memory.step_views(engine(0));
        assert_eq!(used(0), [false; 3]);
        let mut gam = memory.gam(VF1, &views, &mut tlb);
        assert_eq!(used(0), [false, true, false]);
        assert_eq!(gam.read_u32(Space::Ggtt, 0x2000).unwrap_err().reason, FaultReason::NotOwned);
        assert_eq!(used(0), [false, true, false], "no access to a page of VF 2");
        assert_eq!(used(1), [false; 3]);
    }
    assert_eq!(used(0), [false; 3]);
    {
        let views = memory.step_views(engine(1));
        let mut gam = memory.gam(Function::PF, &views, &mut tlb);
        assert_eq!(used(1), [true, false, false]);
        gam.read_u32(Space::Ggtt, 0x2000).unwrap();
        assert_eq!(used(1), [true, false, true]);
        let mut worker = Tlb::default();
        gam.for_worker(&mut worker).read_u32(Space::Ggtt, 0x1000).unwrap();
        assert_eq!(used(1), [true; 3]);
    }
    assert_eq!(used(1), [false; 3]);
    let views = memory.views();
    memory.gam(VF1, &views, &mut tlb);
    assert!(XE_HPG_ENGINES.all().all(|id| !memory.used_by(id, ALL_FUNCTIONS)));
}
