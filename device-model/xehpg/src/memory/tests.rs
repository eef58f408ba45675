// SPDX-License-Identifier: Apache-2.0 OR BSD-3-Clause
//! Tests of address translation: all page sizes and types, faults, TLB caching and invalidation.
#![allow(clippy::arithmetic_side_effects, clippy::indexing_slicing, reason = "an overflow fails the test")]
#![allow(clippy::cast_possible_truncation, reason = "tests: numbers are chosen by the test")]

use arctic_fidelity::proves;
use std::sync::Arc;

use vm_memory::{Bytes, VolatileMemory, VolatileSlice};
use vmm_sys_util::tempfile::TempFile;

use super::ggtt::{GGTT_BYTES, Ggtt, GgttEntry};
use super::region::SharedRegion;
use super::*;
use crate::generation::XE_HPG;
use crate::host::{ALL_FUNCTIONS, Access, DmaFault};

mod functions;
mod inspect;
mod invalidation;
mod traffic;
mod walks;
mod window;

/// A sparse region backed by a file.
pub(crate) fn sparse(len: usize) -> SharedRegion {
    // In /dev/shm, like the card's own files, or in a regular temporary file if the host has no /dev/shm.
    let file = TempFile::new_with_prefix("/dev/shm/arctic").or_else(|_| TempFile::new()).unwrap().into_file();
    file.set_len(len as u64).unwrap();
    SharedRegion::from_file(file, len).unwrap()
}

/// Guest memory of 1 MiB at I/O virtual address 0x10_0000; the next 1 MiB exists but is not directly mapped.
struct Guest(vm_memory::mmap::MmapRegion);

const GUEST: u64 = 0x10_0000;

impl DmaView for Guest {
    fn slice(&self, iova: u64, len: usize, _: Access) -> Option<VolatileSlice<'_>> {
        let at = usize::try_from(iova.checked_sub(GUEST)?).ok()?;
        let rest = self.0.size().checked_sub(at).filter(|rest| *rest > 0)?;
        self.0.get_slice(at, len.min(rest)).ok()
    }

    fn read_remote(&self, iova: u64, data: &mut [u8]) -> Result<(), DmaFault> {
        if !(2 * GUEST..3 * GUEST).contains(&iova) {
            return Err(DmaFault { iova });
        }
        data.fill(0x5a);
        Ok(())
    }
}

struct OneGuest(Arc<Guest>);

impl Dma for OneGuest {
    fn view(&self, _: Function) -> Arc<dyn DmaView> {
        self.0.clone()
    }
}

const LOCAL: usize = 8 << 20;
const ROOT: u64 = 0x1000;

fn memory() -> Memory {
    let guest = Guest(vm_memory::mmap::MmapRegion::new(GUEST as usize).unwrap());
    let ggtt = Ggtt::new(SharedRegion::anonymous(GGTT_BYTES).unwrap());
    Memory::new(XE_HPG.page_tables, SharedRegion::anonymous(LOCAL).unwrap(), ggtt, Arc::new(OneGuest(Arc::new(guest))))
}

fn entry(memory: &Memory, table: u64, index: u64, value: u64) {
    memory.local().slice(table + index * 8, 8).unwrap().store(value, 0, Ordering::Release).unwrap();
}

/// Tables at 0x1000 (root), 0x2000, 0x3000, 0x4000: the first entry of each points to the next.
fn chain(memory: &Memory) {
    entry(memory, ROOT, 0, 0x2003);
    entry(memory, 0x2000, 0, 0x3003);
    entry(memory, 0x3000, 0, 0x4003);
}

const DM: u64 = 1 << 11;
const NULL: u64 = 1 << 9;
const PS: u64 = 1 << 7;

/// Writes to `address`, and returns the local memory address of the written bytes.
fn lands(memory: &Memory, space: Space, address: u64) -> Option<u64> {
    let views = memory.views();
    let mut tlb = Tlb::default();
    let mut gam = memory.gam(Function::PF, &views, &mut tlb);
    gam.write_u32(space, address, 0xfeed_c0de).unwrap();
    assert_eq!(gam.read_u32(space, address).unwrap(), 0xfeed_c0de);
    (0..LOCAL as u64 / 4)
        .map(|n| n * 4)
        .find(|at| memory.local().slice(*at, 4).unwrap().load::<u32>(0, Ordering::Acquire).unwrap() == 0xfeed_c0de)
}

/// Contract E.2: 4 KiB, 64 KiB (hint and compact), 2 MiB and 1 GiB pages translate to the address in their entry.
#[test]
fn pages_of_every_size() {
    let space = Space::Ppgtt(ROOT);
    let with = |place: fn(&Memory)| {
        let memory = memory();
        chain(&memory);
        place(&memory);
        memory
    };
    let small = with(|m| entry(m, 0x4000, 5, 0x70_0003 | DM));
    assert_eq!(lands(&small, space, 0x5abc), Some(0x70_0abc));
    let hint = with(|m| entry(m, 0x4000, 0x13, 0x71_0003 | DM | 1 << 8));
    assert_eq!(lands(&hint, space, 0x1_3010), Some(0x71_3010));
    let compact = with(|m| {
        entry(m, 0x3000, 0, 0x4003 | 1 << 6);
        entry(m, 0x4000, 2, 0x72_0003 | DM);
    });
    assert_eq!(lands(&compact, space, 0x2_8008), Some(0x72_8008));
    let large = with(|m| entry(m, 0x3000, 1, 0x60_0003 | DM | PS));
    assert_eq!(lands(&large, space, 0x20_0000 + 0x1_2344), Some(0x61_2344));
    let huge = with(|m| entry(m, 0x2000, 3, 0x3 | DM | PS));
    assert_eq!(lands(&huge, space, (3 << 30) + 0x50_0000), Some(0x50_0000));
}

/// Contract E.1: NULL leaves at any level read zero and drop writes.
#[test]
fn null_pages() {
    let memory = memory();
    chain(&memory);
    entry(&memory, 0x4000, 1, 0x3 | NULL);
    entry(&memory, 0x3000, 1, 0x3 | NULL | PS);
    entry(&memory, 0x2000, 1, 0x3 | NULL | PS);
    for address in [0x1000, 0x20_0000, 1 << 30] {
        assert!(memory.local().slice(0x70_0000, 4).is_some());
        let views = memory.views();
        let mut tlb = Tlb::default();
        let mut gam = memory.gam(Function::PF, &views, &mut tlb);
        gam.write_u32(Space::Ppgtt(ROOT), address, 7).unwrap();
        assert_eq!(gam.read_u32(Space::Ppgtt(ROOT), address).unwrap(), 0);
    }
}

/// A view that returns an empty slice, against its contract.
struct EmptySlices(vm_memory::mmap::MmapRegion);

impl DmaView for EmptySlices {
    fn slice(&self, _: u64, _: usize, _: Access) -> Option<VolatileSlice<'_>> {
        self.0.get_slice(0, 0).ok()
    }
}

impl Dma for EmptySlices {
    fn view(&self, _: Function) -> Arc<dyn DmaView> {
        Arc::new(EmptySlices(vm_memory::mmap::MmapRegion::new(0x1000).unwrap()))
    }
}

/// A span has at least one byte, so that loops over spans end.
#[test]
fn an_empty_slice_of_guest_memory_is_not_a_span() {
    let ggtt = Ggtt::new(SharedRegion::anonymous(GGTT_BYTES).unwrap());
    let dma = Arc::new(EmptySlices(vm_memory::mmap::MmapRegion::new(0x1000).unwrap()));
    let memory = Memory::new(XE_HPG.page_tables, SharedRegion::anonymous(LOCAL).unwrap(), ggtt, dma);
    chain(&memory);
    entry(&memory, 0x4000, 0, GUEST | 3);
    let (views, mut tlb) = (memory.views(), Tlb::default());
    let mut gam = memory.gam(Function::PF, &views, &mut tlb);
    let fault = |access| Fault { space: Space::Ppgtt(ROOT), address: 8, access, reason: FaultReason::NotMapped };
    assert_eq!(gam.read(Space::Ppgtt(ROOT), 8, &mut [0; 64]), Err(fault(Access::Read)));
    assert_eq!(gam.write(Space::Ppgtt(ROOT), 8, &[0; 64]), Err(fault(Access::Write)));
    assert_eq!(gam.span(Space::Ppgtt(ROOT), 8, 64, Access::Read).unwrap().len(), 64);
}

/// Contract E.2: a missing entry, a read-only page, a table or page outside local memory each cause the corresponding
/// fault.
#[test]
fn faults_have_reasons() {
    let memory = memory();
    chain(&memory);
    entry(&memory, 0x4000, 0, 0x70_0001 | DM);
    entry(&memory, 0x4000, 1, 0x7fff_f003 | DM);
    entry(&memory, 0x3000, 1, 0x7fff_f003);
    let views = memory.views();
    let mut tlb = Tlb::default();
    let mut gam = memory.gam(Function::PF, &views, &mut tlb);
    let space = Space::Ppgtt(ROOT);
    let reason = |result: Result<(), Fault>| result.unwrap_err().reason;
    assert_eq!(reason(gam.write_u32(space, 0, 1)), FaultReason::ReadOnly);
    assert_eq!(reason(gam.write_u32(space, 0x1000, 1)), FaultReason::OutsideLocal);
    assert_eq!(reason(gam.write_u32(space, 0x2000, 1)), FaultReason::NotPresent { level: 0 });
    assert_eq!(reason(gam.write_u32(space, 0x20_0000, 1)), FaultReason::OutsideLocal);
    assert_eq!(reason(gam.write_u32(space, 2 << 30, 1)), FaultReason::NotPresent { level: 2 });
    assert_eq!(reason(gam.write_u32(space, 1 << 39, 1)), FaultReason::NotPresent { level: 3 });
    assert_eq!(reason(gam.write_u32(space, 1 << 48, 1)), FaultReason::NotPresent { level: 3 });
    assert_eq!(reason(gam.write_u32(Space::Ggtt, 0x1000, 1)), FaultReason::NotPresent { level: 0 });
    assert_eq!(reason(gam.write_u32(Space::Ggtt, 1 << 32, 1)), FaultReason::NotPresent { level: 0 });
}

#[test]
fn global_entries_choose_the_memory() {
    proves!([V13_027, V13_029], "bit 1 of a GGTT entry selects local or guest memory, independently of the address");
    let memory = memory();
    memory.ggtt().set_entry(3, GgttEntry::from(GUEST | 3));
    memory.ggtt().set_entry(4, GgttEntry::from(GUEST | 1));
    assert_eq!(lands(&memory, Space::Ggtt, 0x3010), Some(GUEST + 0x10));
    assert_eq!(lands(&memory, Space::Ggtt, 0x4010), Some(GUEST + 0x10), "local memory still has the first write");
    let views = memory.views();
    assert_eq!(
        views.of(Function::PF).slice(GUEST + 0x10, 4, Access::Read).unwrap().load::<u32>(0, Ordering::Acquire).unwrap(),
        0xfeed_c0de
    );
}

/// Guest memory without a file descriptor is accessed by messages; a failed message is a fault.
#[test]
fn remote_memory() {
    let memory = memory();
    memory.ggtt().set_entry(0, GgttEntry::from(2 * GUEST | 1));
    memory.ggtt().set_entry(1, GgttEntry::from(9 * GUEST | 1));
    let views = memory.views();
    let mut tlb = Tlb::default();
    let mut gam = memory.gam(Function::PF, &views, &mut tlb);
    assert_eq!(gam.read_u32(Space::Ggtt, 0x20).unwrap(), 0x5a5a_5a5a);
    assert_eq!(gam.write_u32(Space::Ggtt, 0x20, 0).unwrap_err().reason, FaultReason::NotMapped);
    assert_eq!(gam.read_u32(Space::Ggtt, 0x1020).unwrap_err().reason, FaultReason::NotMapped);
}

#[test]
fn access_across_pages() {
    proves!(
        V13_028,
        "an access across two pages of 4 KiB with different targets accesses both, in the GGTT and in a PPGTT"
    );
    for space in [Space::Ppgtt(ROOT), Space::Ggtt] {
        let memory = memory();
        chain(&memory);
        for (page, target) in [(0, 0x70_0003), (1, 0x50_0003)] {
            entry(&memory, 0x4000, page, target | DM);
            memory.ggtt().set_entry(page, GgttEntry::from(target));
        }
        let views = memory.views();
        let mut tlb = Tlb::default();
        let mut gam = memory.gam(Function::PF, &views, &mut tlb);
        gam.write(space, 0xffe, &[1, 2, 3, 4]).unwrap();
        let mut back = [0; 4];
        gam.read(space, 0xffe, &mut back).unwrap();
        assert_eq!(back, [1, 2, 3, 4]);
        let at = |address| memory.local().slice(address, 2).unwrap().load::<u16>(0, Ordering::Acquire).unwrap();
        assert_eq!((at(0x70_0ffe), at(0x50_0000)), (0x0201, 0x0403));
    }
}

/// Contract E.3: a cached translation is used until the next invalidation, and not afterwards.
#[test]
fn invalidation_drops_cached_pages() {
    let memory = memory();
    chain(&memory);
    entry(&memory, 0x4000, 0, 0x70_0003 | DM);
    let views = memory.views();
    let mut tlb = Tlb::default();
    let space = Space::Ppgtt(ROOT);
    memory.gam(Function::PF, &views, &mut tlb).write_u32(space, 0, 1).unwrap();
    entry(&memory, 0x4000, 0, 0x50_0003 | DM);
    memory.gam(Function::PF, &views, &mut tlb).write_u32(space, 0, 2).unwrap();
    let at = |address| memory.local().slice(address, 4).unwrap().load::<u32>(0, Ordering::Acquire).unwrap();
    assert_eq!((at(0x70_0000), at(0x50_0000)), (2, 0));
    memory.invalidate(ALL_FUNCTIONS);
    memory.gam(Function::PF, &views, &mut tlb).write_u32(space, 0, 3).unwrap();
    assert_eq!((at(0x70_0000), at(0x50_0000)), (2, 3));
}

/// What the threads of a step share, and what each of them receives, can be used from several threads.
#[test]
fn workers_can_share_a_step() {
    fn shared<T: Send + Sync>() {}
    shared::<Memory>();
    shared::<GuestMappings<'_>>();
    shared::<Tlb>();
    shared::<Gam<'_>>();
}

/// Contract E.3: a worker's cached translations do not outlive an invalidation, a flush of the engine's TLB (a context
/// is loaded, or a command flushes), or a change of the function.
#[test]
fn a_worker_drops_what_its_engine_drops() {
    type Event = fn(&Memory, &mut Tlb);
    let events: [(bool, Event); 4] = [
        (false, |_, _| {}),
        (true, |memory, _| memory.invalidate(ALL_FUNCTIONS)),
        (true, |_, engine| engine.flush()),
        (true, |memory, engine| {
            memory.gam(Function::new(1).unwrap(), &memory.views(), engine);
        }),
    ];
    for (drops, event) in events {
        let memory = memory();
        chain(&memory);
        entry(&memory, 0x4000, 0, 0x70_0003 | DM);
        let (mut engine, mut worker) = (Tlb::default(), Tlb::default());
        let write = |engine: &mut Tlb, worker: &mut Tlb, value| {
            let views = memory.views();
            let gam = memory.gam(Function::PF, &views, engine);
            gam.for_worker(worker).write_u32(Space::Ppgtt(ROOT), 0, value).unwrap();
        };
        write(&mut engine, &mut worker, 1);
        entry(&memory, 0x4000, 0, 0x50_0003 | DM);
        event(&memory, &mut engine);
        write(&mut engine, &mut worker, 2);
        let at = |address| memory.local().slice(address, 4).unwrap().load::<u32>(0, Ordering::Acquire).unwrap();
        assert_eq!((at(0x70_0000), at(0x50_0000)), if drops { (1, 2) } else { (2, 0) });
    }
}

proptest::proptest! {
    /// Random tables and addresses cause no panic and no access outside the region.
    #[test]
    fn random_tables(words in proptest::collection::vec(proptest::prelude::any::<u64>(), 64), address in proptest::prelude::any::<u64>(), len in 0usize..5000) {
        let memory = memory();
        for (n, word) in words.iter().enumerate() {
            // Half of the entries point back to the tables, so that walks reach the lower levels.
            let value = if word & 1 << 62 != 0 { word & 0x7003 | 3 } else { *word };
            entry(&memory, ROOT + (n as u64 % 4) * 0x1000, word >> 40 & 0x1ff, value);
            entry(&memory, ROOT, n as u64 % 512, value);
        }
        let views = memory.views();
        let mut tlb = Tlb::default();
        let mut gam = memory.gam(Function::PF, &views, &mut tlb);
        for space in [Space::Ppgtt(ROOT), Space::Ppgtt(words[0]), Space::Ggtt] {
            for address in [address, address & 0x7fff_ffff_ffff, address & 0xff_ffff] {
                if let Ok(span) = gam.span(space, address, len, Access::Write) {
                    proptest::prop_assert!(span.len() <= len);
                }
                let _ = gam.write(space, address, &vec![0; len]);
                let _ = gam.read_u64(space, address);
            }
        }
    }
}
